"""The page "Running it at scale": what was measured, and plans for larger machines."""
