"""Records of builds: kept as JSON, one file each, listed and compared."""
