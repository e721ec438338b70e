"""Measurements of collections: read, looked up, added to, imported from other tools' files."""
