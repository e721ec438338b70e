"""Plan → stages → text: assembly, self-test, formats."""
