"""hpcgen's resolver held against its own tables: read, searched and judged without anything of ``hpcgen.resolver``."""
