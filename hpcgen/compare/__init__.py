"""Two locks, or two site profiles: what differs, as records."""
