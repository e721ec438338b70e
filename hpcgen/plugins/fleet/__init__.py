"""Many images: a list of site × stack, which of them changed, and building, publishing and piping just these."""
