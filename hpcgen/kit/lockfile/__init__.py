"""The file hpcgen.lock: written, read back, compared."""
