"""What the zoo's trainings log; a module for the engine to find."""

from grokbook.chapters.across import decoder, mlp, surrogate, toy, transformer, watched

__all__ = ["decoder", "mlp", "surrogate", "toy", "transformer", "watched"]
