"""A user's project → a stack for it, with the reason of every guess. Nothing of the project is run."""
