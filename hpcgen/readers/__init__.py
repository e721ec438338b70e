"""Files of a user's project → records with the position of everything. Nothing of them is run."""
