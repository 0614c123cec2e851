"""What of Power et al. (2022) can be computed without training, and what its measures mean: a module a subject."""

from grokbook.chapters.power.theory.cosets import coset_contrast as coset_contrast
from grokbook.chapters.power.theory.operations import operation as operation
from grokbook.chapters.power.theory.operations import partner_share as partner_share
from grokbook.chapters.power.theory.sharpness import sharpness as sharpness
from grokbook.chapters.power.theory.times import fit_times as fit_times
