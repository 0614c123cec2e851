"""The effective theory of representation learning, Liu et al. (2022), section 3 and appendices C to F, H, I and L.

Equation numbers are the paper's; where a printed equation is wrong the docstring says what was corrected. The
symbols are 0 .. p - 1 and a sample is an unordered pair of them: in ``train_pairs`` (..., n, 2) the order within a
pair and repeats do not matter, and leading axes are independent training sets. There are N = p (p + 1) / 2 samples.
Embeddings are (p, d), or (..., p, d) where that is said. One step of an optimizer lasts one learning rate of the
theory's time. Random draws come from ``generator``: a numpy Generator, a seed, or None for fresh entropy.
"""

from grokbook.chapters.liu.theory.flows import *  # noqa: F403
from grokbook.chapters.liu.theory.groups import *  # noqa: F403
from grokbook.chapters.liu.theory.image_classes import *  # noqa: F403
from grokbook.chapters.liu.theory.phases import *  # noqa: F403
from grokbook.chapters.liu.theory.relations import *  # noqa: F403
from grokbook.chapters.liu.theory.training_sets import *  # noqa: F403
from grokbook.chapters.liu.theory.transition import *  # noqa: F403
