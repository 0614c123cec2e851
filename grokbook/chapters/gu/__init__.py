"""Gu et al. (2025), "Beyond Progress Measures", and its earlier version."""
