"""``python -m hpcgen``."""

from hpcgen.cli import main

main()
