"""Artifacts: what blocks compiled, kept in a store by the hash of what decides it, and unpacked into later images."""
