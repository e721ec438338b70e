"""Site × stack → chosen blocks and versions, with the reason for each."""
