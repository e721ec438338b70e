"""Tools of all packages: quoting, atomic writing, processes, units, progress."""
