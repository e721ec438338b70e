"""Typed records: the one place where the shape of the data is written down."""
