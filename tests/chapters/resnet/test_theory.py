"""Counts of the four-shape sum against lists of all pictures, and against the numbers published with the task."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from grokbook.chapters.resnet import theory
from grokbook.chapters.resnet.tasks import dictionary

# Group order, and the share of test pictures that a memory of the training set answers at n = 11.
PUBLISHED = {
    "one swap": (2, 0.2273),
    "columns": (2, 0.2479),
    "swaps within rows": (4, 0.5191),
    "columns and rows": (4, 0.5703),
    "rotations": (4, 0.5753),
    "three cells": (6, 0.6758),
    "dihedral": (8, 0.8093),
    "all permutations": (24, 0.9634),
}


@pytest.mark.parametrize("values", [dictionary(11), range(1, 6), (0, 3, 3, 8)])
def test_histogram_equals_a_count_of_all_pictures(values: tuple[int, ...]) -> None:
    assert theory.class_histogram(values) == Counter(map(sum, itertools.product(values, repeat=4)))


def test_histograms_of_the_three_value_tables_have_the_published_largest_classes() -> None:
    generator, drawing, text = dictionary(11), (0, *range(2, 12)), range(1, 12)
    largest = {generator: (28, 813, 47), drawing: (24, 853, 44), text: (24, 891, 41)}
    for values, (label, count, labels) in largest.items():
        found = theory.class_histogram(values)
        assert (found.most_common(1)[0], len(found)) == ((label, count), labels)
    sides = theory.class_histogram(generator)
    assert sides[1] == sides[2] == 0 and sides[0] == sides[48] == 1
    shares = np.array(list(sides.values())) / 11**4
    assert -(shares * np.log2(shares)).sum() == pytest.approx(4.84, abs=0.005)


def test_multisets_of_eleven_symbols_have_the_published_orbit_sizes() -> None:
    orbits = theory.orbit_of(11, theory.group_of("all permutations"))
    sizes = Counter(np.unique(orbits, return_counts=True)[1].tolist())
    assert sizes == {24: 330, 12: 495, 6: 55, 4: 110, 1: 11}
    assert sizes.total() == math.comb(14, 4)


@pytest.mark.parametrize("group", theory.GROUPS)
def test_groups_and_shares_are_the_published_ones(group: str) -> None:
    order, share = PUBLISHED[group]
    assert len(theory.group_of(group)) == order
    assert theory.orbit_share(11, group, 3660) == pytest.approx(share, abs=5e-5)


@pytest.mark.parametrize("group", theory.GROUPS)
def test_orbit_share_equals_the_mean_over_every_training_set(group: str) -> None:
    pictures = list(itertools.product(range(2), repeat=4))
    same = {one: {tuple(one[i] for i in g) for g in theory.group_of(group)} for one in pictures}
    touched = tests = 0
    for train in itertools.combinations(pictures, 3):
        rest = set(pictures) - set(train)
        tests += len(rest)
        touched += sum(bool(same[one] & set(train)) for one in rest)
    assert theory.orbit_share(2, group, 3) == pytest.approx(touched / tests, abs=1e-12)


@pytest.mark.parametrize("classes", [[0, 1, 1, 2, 2], [0, 0, 0, 0, 0], [0, 1, 2, 3, 4], [0, 1, 0, 2, 1]])
def test_merged_accuracy_equals_the_best_answer_to_each_picture_as_it_is_seen(classes: list[int]) -> None:
    values = dictionary(5)
    answers: dict[tuple[int, ...], Counter] = {}
    for places in itertools.product(range(5), repeat=4):
        seen = tuple(classes[k] for k in places)
        answers.setdefault(seen, Counter())[sum(values[k] for k in places)] += 1
    best = sum(max(counts.values()) for counts in answers.values()) / 5**4
    assert theory.merged_accuracy(values, classes) == pytest.approx(best, abs=1e-12)


def test_confused_symbols_give_the_published_accuracies() -> None:
    values = dictionary(11)
    merged = {
        0.3805: [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5],
        0.364: [0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7],
        0.185: [0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5],
        0.515: [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8],
        0.565: [0, 1, 2, 3, 4, 5, 6, 7, 7, 8, 8],
    }
    for accuracy, classes in merged.items():
        assert theory.merged_accuracy(values, classes) == pytest.approx(accuracy, abs=5e-4)


def test_noisy_sums_give_the_published_accuracies() -> None:
    published = {1.0: (0.383, 0.87), 1.1: (0.351, 0.83), 1.2: (0.323, 0.79), 1.3: (0.299, 0.75)}
    for sigma, (exact, near) in published.items():
        assert theory.noisy_accuracy(sigma) == pytest.approx(exact, abs=2e-3)
        assert theory.noisy_accuracy(sigma, within=1) == pytest.approx(near, abs=5e-3)


@pytest.mark.parametrize(
    "n, train_size, told", [(11, 14641, "between 1 and 14640"), (2, 0, "between 1 and 15"), (1, 1, "n = 1")]
)
def test_a_training_set_that_leaves_nothing_to_count_is_refused_in_one_line(n: int, train_size: int, told: str) -> None:
    with pytest.raises(ValueError, match=told) as refusal:
        theory.orbit_share(n, "columns", train_size)
    assert "\n" not in str(refusal.value)
