"""Settings with which a stack runs fastest: requests, measurements, models and searches."""
