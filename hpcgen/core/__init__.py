"""What all packages use: errors, records, files into records, quoting, writing, processes."""
