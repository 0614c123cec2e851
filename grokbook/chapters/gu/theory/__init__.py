"""What Gu et al. claim that needs no training, and what is true of it.

Theorem, lemma and definition numbers are those of the 2025 paper unless "earlier version" is said. Masks and tables
over all pairs (i, j) are (p, p) arrays, i as rows; ``True`` in a mask is a training pair. An embedding is (p, d), a row
a residue. Distances between pairs are Manhattan, on the plain grid or on the torus, where p - 1 and 0 are neighbours.
"""

from grokbook.chapters.gu.theory.coverage import *  # noqa: F403
from grokbook.chapters.gu.theory.flow import *  # noqa: F403
from grokbook.chapters.gu.theory.forms import *  # noqa: F403
from grokbook.chapters.gu.theory.masks import *  # noqa: F403
from grokbook.chapters.gu.theory.symmetry import *  # noqa: F403
from grokbook.chapters.gu.theory.uniformity import *  # noqa: F403
