"""Reproducible figures of the grokking papers."""

__version__ = "0.2.0"
