"""The form of the chapters on Liu et al. and Gu et al. until they move: figures, claims and sentences in Python."""
