"""The commands of fleets."""
