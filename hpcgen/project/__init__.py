"""A user's project → a stack for it, with the reason for every guess. Nothing of the project is run."""
