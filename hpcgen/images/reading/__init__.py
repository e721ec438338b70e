"""What an image has, whoever built it: read from its files as they lie, never started. One file for one subject."""
