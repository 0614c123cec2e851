"""The analytic solution of modular arithmetic, Gromov (2023), section 3 and appendices A and B.

``W_in`` (width, 2p) is the paper's W^(1), ``W_out`` (p, width) its W^(2). A table over all pairs has the axes (n, m)
and, where it holds outputs, the answer q last. A function on Z_p (``f1``, ``f2``, ``F``) is a callable of one integer.
``generator`` is a numpy Generator, a seed, or None for fresh entropy.
"""

from grokbook.chapters.gromov.theory.kernel import *  # noqa: F403
from grokbook.chapters.gromov.theory.outputs import *  # noqa: F403
from grokbook.chapters.gromov.theory.waves import *  # noqa: F403
from grokbook.chapters.gromov.theory.weights import *  # noqa: F403
