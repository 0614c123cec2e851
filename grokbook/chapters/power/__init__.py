"""Grokking: generalisation beyond overfitting on small algorithmic datasets, Power et al. (2022)."""
