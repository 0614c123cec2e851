"""What of Power et al. (2022) can be computed without training, and what its measures mean: a module a subject."""
