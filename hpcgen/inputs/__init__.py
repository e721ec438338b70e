"""What a build takes from outside: found, pinned, and fetched from where it is kept. Needs the network."""
