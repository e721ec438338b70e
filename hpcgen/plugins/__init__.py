"""Optional parts, each with its own commands, records and pages; nothing imports one but the command."""
