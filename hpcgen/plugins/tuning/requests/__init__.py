"""A request file, in any of the forms that are known, as one record."""
