"""Collections: find, load and validate sites, stacks, blocks and release tables by name."""
