"""The matrices of permutations, which multiply as the permutations do."""

import itertools

import numpy as np


def permutation_matrices(k):
    """Those of all permutations of k things, in the order of ``group_table``: (k!, k, k)."""
    orders = list(itertools.permutations(range(k)))
    matrices = np.zeros((len(orders), k, k))
    for row, element in enumerate(orders):
        matrices[row, element, range(k)] = 1
    return matrices
