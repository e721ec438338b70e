"""What is looked at, one module per subject: ``probe(machine, seen)`` adds facts, and says what stays open."""
