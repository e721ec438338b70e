"""The resolver held against the shipped tables, which are read, searched and judged here without it."""
