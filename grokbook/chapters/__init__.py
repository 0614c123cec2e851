"""One package a chapter: what it trains, its theory, its figures, its claims."""

CHAPTERS = ("gromov", "liu", "gu")
