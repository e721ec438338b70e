"""Finished images: found, read without being started, shown, converted."""
