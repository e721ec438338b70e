"""An image started: here, or submitted and followed."""
