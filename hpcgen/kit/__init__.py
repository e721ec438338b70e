"""All files of a kit, also read back; the lock file; bills of materials."""
