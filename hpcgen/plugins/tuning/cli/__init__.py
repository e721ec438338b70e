"""The commands that measure, and decide by measurements."""
