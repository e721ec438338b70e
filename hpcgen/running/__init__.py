"""An image started: here, or submitted as a job and followed; tested; installed as commands."""
