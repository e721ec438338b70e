"""What images are built and started with: engines, batch systems, hardware; one class, one file each."""
