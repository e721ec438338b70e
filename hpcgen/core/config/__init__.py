"""Files that people write → records: YAML with positions, decoding, diagnostics, inheritance, provenance."""
