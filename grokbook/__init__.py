"""Reproducible figures of the grokking papers."""

__version__ = "0.3.0"
