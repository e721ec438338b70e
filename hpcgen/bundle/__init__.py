"""A bundle: every input of a lock in one folder, for a machine without a network."""
