"""Measurements into predictions: a linear model over settings, scaling by nodes, how well either would have chosen."""
