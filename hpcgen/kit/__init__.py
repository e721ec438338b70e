"""All files of a kit together, and a kit's folder read back."""
