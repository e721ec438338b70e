"""Where everything in a kit comes from: the fact, the line of the stack, the block, the rule; what was refused."""
