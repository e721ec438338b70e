"""What a build takes from outside: fetched, pinned, bundled."""
