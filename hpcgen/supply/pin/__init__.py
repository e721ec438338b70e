"""Plan → pins: asks registries, indexes and package managers what a build takes from outside."""
