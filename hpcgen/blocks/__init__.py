"""What a building block is written with: base class, steps, options, capabilities, inputs, sources."""
