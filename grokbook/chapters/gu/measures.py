"""What the chapter's trainings log besides losses and accuracies."""

from __future__ import annotations

import math

import numpy as np

from grokbook import measures
from grokbook.chapters.gu import theory
from grokbook.chapters.gu.tasks import HoledTask
from grokbook.measures.common import Array, ratio
from grokbook.train.monitor import Measured, Numbers, register


def _med(now: Measured) -> Numbers:
    """MED in its published forms, and what it must beat to say more than that weights shrink, on the word embeddings.

    The controls are means over the operands' two blocks: the norm R, MED over it, and MED of permuted residues.
    """
    p, offset = now.model.p, now.model.offset
    blocks = measures.embedding_blocks(now.params["W_E"], p, offset)
    both = np.stack(blocks) if offset else blocks[0][None]  # (blocks, M, p, d)
    forms = {f"med_{form}": of(*blocks) for form, of in theory.MED_FORMS.items()}
    norm = measures.embedding_norm(both)
    controls = {
        "embedding_norm": norm.mean(0),
        "med_over_norm": ratio(measures.main_embedding_difference(both), norm).mean(0),
        "med_permuted": measures.permuted_embedding_difference(both).mean(0),
    }
    steps = [step for step in (2, 3, 5, 7, 11) if step % p]
    renamed = {f"med_step_{a}": measures.main_embedding_difference(both, step=a).mean(0) for a in steps}
    return forms | controls | renamed


def _accuracy_by_place(now: Measured) -> Numbers:
    """Test accuracy inside and outside the hole, and of pairs whose mirror was trained or not; nan over no pair."""
    p = now.model.p
    correct, trained = (values.reshape(-1, p, p) for values in (now.correct(), now.in_train))
    test, mirrored = ~trained, np.swapaxes(trained, -1, -2)
    none = np.zeros((p, p), bool)
    inside = np.stack([one.never_trained() if isinstance(one, HoledTask) else none for one in now.tasks])
    places = {"inside": inside, "outside": ~inside, "mirrored": mirrored, "unmirrored": ~mirrored,
              "inside_mirrored": inside & mirrored, "inside_unmirrored": inside & ~mirrored}  # fmt: skip
    tested = {name: place & test for name, place in places.items()}
    return {f"accuracy_{name}": ratio((correct & one).sum((-2, -1)), one.sum((-2, -1))) for name, one in tested.items()}


def _correct(now: Measured) -> Numbers:
    p = now.model.p
    return {"correct": now.correct().reshape(-1, p, p).astype(np.float32)}


def _per_sum(now: Measured) -> tuple[int, int]:
    """How many pairs of a sum are trained where all have as many, rounded down and up."""
    return math.floor(now.tasks[0].train_size / now.model.p), math.ceil(now.tasks[0].train_size / now.model.p)


def _wrong_answers(now: Measured) -> Numbers:
    """Of wrong answers to test pairs (i, j): what they have to do with the trained ones.

    ``answers_seen``: the share that was trained with i in its place, or with j; a mean of both.
    ``answers_off``: how far they are from the right ones, as a part of the way round, 1/4 by luck, once each number n
    is called n times the pairs per sum: under these names each sum of an even training set is one stretch.
    """
    p, i = now.model.p, np.arange(now.model.p)
    answers, trained, correct = (one.reshape(-1, p, p) for one in (now.answers(), now.in_train, now.correct()))
    member = np.arange(len(trained))[:, None, None]
    with_i = trained[member, i[:, None], (answers - i[:, None]) % p]
    with_j = trained[member, (answers - i) % p, i]
    off = (answers - i[:, None] - i) * _per_sum(now)[0] % p
    wrong = ~trained & ~correct
    shown = {"answers_seen": (with_i + 1.0 * with_j) / 2, "answers_off": np.minimum(off, p - off) / p}
    return {name: ratio((one * wrong).sum((-2, -1)), wrong.sum((-2, -1))) for name, one in shown.items()}


def _tokens(now: Measured) -> Array:
    """(M, p, d) the first operand's embeddings."""
    return measures.embedding_blocks(now.params["W_E"], now.model.p, now.model.offset)[0]


def _spacing_power(now: Measured) -> Numbers:
    """Share of the embeddings' power at the frequencies of a training set that is evenly spaced along each sum.

    They are the pairs per sum: 29 and 30 of 48, for 2,822 pairs of 97 numbers.
    """
    p, power = now.model.p, measures.wave_power(_tokens(now))
    own = sorted({min(f, p - f) - 1 for f in _per_sum(now) if 0 < f < p})
    return {"spacing_power": ratio(power[:, own].sum(-1), power.sum(-1))}


def _shown_power(now: Measured) -> Numbers:
    """Share of the embeddings' power at the waves that the training set shows most, as many as it has circles."""
    masks = now.in_train.reshape(-1, now.model.p, now.model.p)
    pairs = zip(_tokens(now), masks, now.tasks, strict=True)
    return {"shown_power": np.stack([theory.power_shown(tokens, mask, task.circles) for tokens, mask, task in pairs])}


def _frequencies(now: Measured) -> Numbers:
    """How many waves the embeddings have, and whether each of their directions is one.

    ``frequencies``: the inverse of the sum of squared shares of the power. ``direction_ipr``: the inverse participation
    ratio over frequencies of a principal direction, 1 for a wave, mean over directions by their share of the variance.
    """
    tokens = _tokens(now)
    power = measures.wave_power(tokens)
    tokens = tokens - tokens.mean(-2, keepdims=True)
    variance, directions = np.linalg.eigh(tokens @ tokens.swapaxes(-1, -2))
    ipr = measures.inverse_participation_ratio(measures.fourier_power(directions.swapaxes(-1, -2))[..., 1:])
    return {
        "frequencies": 1 / measures.inverse_participation_ratio(power),
        "direction_ipr": ratio((ipr * variance).sum(-1), variance.sum(-1)),
    }


register(med=_med, accuracy_by_place=_accuracy_by_place, wrong_answers=_wrong_answers)
register(spacing_power=_spacing_power, shown_power=_shown_power, frequencies=_frequencies)
register(correct=_correct)  # (M, p, p): for ``Experiment.keep`` only
