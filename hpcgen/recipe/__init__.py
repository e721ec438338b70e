"""A plan → stages independent of the format → the text of a recipe; the self-test."""
