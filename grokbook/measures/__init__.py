"""What one measures on weights: plain functions of numpy arrays.

Everything is computed in double precision and vectorised over leading axes, so that a record's ``(run, snapshot, ...)``
needs no loop. The Fourier transforms use ``exp(-2 pi i k n / p)``; powers are one-sided, ``k = 0 .. p // 2``.
"""

from grokbook.measures.angles import circular_mean, circular_sd, resultant_length
from grokbook.measures.fourier import (
    first_layer_ipr,
    fourier_power,
    frequency_family_share,
    halves,
    inverse_participation_ratio,
    line_shares,
    phase_residuals,
    ring_share,
    single_frequency_share,
    wave_power,
)
from grokbook.measures.groups import characters, representation_shares
from grokbook.measures.med import embedding_blocks, main_embedding_difference, permuted_embedding_difference
from grokbook.measures.norms import effective_dimension, embedding_norm
from grokbook.measures.parallelograms import (
    group_parallelogram_gaps,
    group_representation_quality_index,
    parallelogram_gaps,
    representation_quality_index,
    standardised,
    sums_of,
)
