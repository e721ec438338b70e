"""Downloads and package indexes."""
