"""Files of a user's project → records with the place of everything. Nothing of them is run, and nothing is fetched."""
