"""Bundles: every input of a lock in one folder or tar file, fetched, checked, compared and put together again."""
