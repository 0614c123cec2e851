"""The page that puts the verdicts of all chapters side by side."""
