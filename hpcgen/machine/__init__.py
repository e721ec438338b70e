"""A machine, or what its administrators wrote about it, as facts; and a profile compared with its machine."""
