"""How fast the engine is, side by side with a plain PyTorch step of the same mathematics: ``python -m benchmarks``."""
