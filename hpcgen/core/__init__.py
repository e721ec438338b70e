"""What everything rests on: errors, records, files into records, quoting and writing."""
