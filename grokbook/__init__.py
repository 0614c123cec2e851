"""Reproducible figures of the grokking papers."""

__version__ = "0.4.0"
