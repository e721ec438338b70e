"""What differs between two locks."""
