"""What everything else stands on: quoting, atomic writing, processes, units, progress."""
