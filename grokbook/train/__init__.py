"""Recipes, the training loop, records, and who runs them where."""
