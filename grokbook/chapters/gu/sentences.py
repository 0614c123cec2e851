"""Sentences of the chapter that carry numbers: each is computed from records, so that none is ever typed in."""

from __future__ import annotations

import numpy as np

from grokbook.chapters.gu import studies, theory
from grokbook.chapters.gu.claims import at_step
from grokbook.chapters.gu.studies import last, reached
from grokbook.claims import Records, Sentence, number, percent
from grokbook.measures import median, never_median
from grokbook.records import select


def base(records: Records) -> str:
    """Beside the baseline: when it fits and generalises, and what MED does meanwhile."""
    record = records["base"]
    start, end = median(record.med_M1.values[:, 0]), last(record, "med_M1")
    highest = np.nanmax(record.med_M1.values, axis=1)
    below = int(np.isfinite(studies.below_start(record)).sum())
    return (
        f"The median network knows its training pairs at step {at_step(never_median(studies.fitted(record)))} and "
        "half of "
        f"the others at step {at_step(never_median(reached(record, 0.5)))}; at the end it knows "
        f"{percent(median(last(record, 'test_accuracy')))} of them. MED starts at {number(start)}, rises to "
        f"{number(median(highest))} and ends at {number(median(end))}; after the training set is fitted it is "
        "below its "
        f"start in {below} of {len(end)} runs. The norm of all weights goes from "
        f"{number(median(record.total_norm.values[:, 0]))} to {number(median(last(record, 'total_norm')))}."
    )


def primes(records: Records) -> str:
    """Beside Fig. 5: which primes are drawn, and which record is not."""
    told = [f"Drawn are p = {', '.join(map(str, studies.by_prime(records)))}."]
    for name, moduli in studies.not_drawn(records).items():
        text = f"`{name}` has a record of p = {', '.join(map(str, moduli))} too, which is left out"
        if records[name].attrs["scale"] == "reduced":
            text += f"; `python -m grokbook train gu/{name}` runs its full setting"
        told.append(f"{text}.")
    return " ".join(told)


def relabelled(records: Records) -> str:
    """Beside the symmetry that MED does not have."""
    record = records["base"]
    found = []
    for run in range(record.sizes["run"]):
        values = [
            float(last(record, f"med_step_{step}")[run]) for step in (2, 3, 5, 7, 11) if f"med_step_{step}" in record
        ]
        values.append(float(last(record, "med_M1")[run]))
        found.append(f"{number(min(values))} to {number(max(values))}")
    return (
        "So the number that MED gives one and the same trained network depends on what its residues are called. "
        "For the "
        "six ways of naming them that were logged it ends at " + ", ".join(found) + " (one range a seed)."
    )


def special(records: Records) -> str:
    """Beside the comparison of trackers: medians, and who wins how often."""
    study = records["special"]
    table = study.correlation
    known = np.isfinite(table.sel(measure="med_M1").values)
    med = table.sel(measure="med_M1").values[known]
    beaten = {
        name: int((table.sel(measure=name).values[known] >= med).sum()) for name in ("med_permuted", "total_norm")
    }
    negative = int((med < 0).sum())
    medians = ", ".join(
        f"{number(median(table.sel(measure=name).values))} for {words}"
        for name, words in (
            ("med_M1", "MED"),
            ("med_permuted", "permuted MED"),
            ("embedding_norm", "R"),
            ("total_norm", "W"),
        )
    )
    return (
        f"Over {known.sum()} runs that fitted their training set the median rank correlations with the test loss are "
        f"{medians}. MED's is negative in {negative} of them, so that it falls while the loss rises or rises while "
        "it falls. The same "
        f"number with permuted residues does at least as well in {beaten['med_permuted']}, the plain norm of all "
        "weights in "
        f"{beaten['total_norm']}."
    )


def rivals(records: Records) -> str:
    """Beside Table 1: how far three explanations are from our ceilings and from the paper's."""
    study = records["table_1"]
    ours = np.array([median(row) for row in study.U.values])
    told = []
    for whose, target in (("ours", ours), ("the paper's", study.paper_U.values)):
        fits = []
        known = np.isfinite(target)
        if not known.any():
            continue
        for name, words in (
            ("coverage", f"coverage within {studies.reach(study.attrs['p'])}"),
            ("mirror", "mirrors alone"),
        ):
            predicted = study[name].median("seed").values
            by_kind = [
                f"{100 * np.sqrt(np.mean((predicted - target)[known & (study.kind.values == kind)] ** 2)):.1f} "
                f"({kind}s)"
                for kind in theory.HOLES
                if (known & (study.kind.values == kind)).any()
            ]
            fits.append(f"{words} {' and '.join(by_kind)}")
        right, error = theory.constant_hole_accuracy(study.share.values[known], target[known])
        fits.append(f"“{percent(right)} of every hole is right” {100 * error:.1f} over all rows")
        told.append(f"{whose}: " + ", ".join(fits))
    return "Root mean square distance in points from U, for " + "; for ".join(told) + "."


def strips(records: Records) -> str:
    """Beside Table 1: what a trained mirror is worth in a strip."""
    rows = records["table_1"]
    rows = rows.isel(row=np.flatnonzero(rows.kind.values == "strip"))
    with_mirror, without = median(rows.inside_mirrored.values), median(rows.inside_unmirrored.values)
    return (
        f"Inside the strips the median accuracy is {percent(with_mirror)} for pairs whose mirror was trained and "
        f"{percent(without)} for the others."
    )


def coverage(records: Records) -> str:
    """Beside theorem 3.12."""
    study = records["coverage"]
    grid = study.half.sel(surface="grid").values
    under = [int(k) for k, a, b in zip(study.k.values, grid, study.bound.values, strict=True) if a < b]
    return (
        f"At p = {study.attrs['p']} a random training set covers everything at *less* than the bound for "
        f"k = {', '.join(map(str, under)) or 'none'}, and needs more for the others."
    )


def rows(records: Records) -> str:
    """Beside theorem 3.10: the distances."""
    study = records["same_class"]
    needed = study.matching.median("seed").values
    strips = ", ".join(
        f"{percent(theory.implied_hole_accuracy(row))} for t = {row.size}"
        for row in reversed(theory.TABLE_1)
        if row.kind == "strip"
    )
    random = float(study.random.sel(D=study.D.values[min(2, study.sizes["D"] - 1)]))
    return (
        f"To give the paper's ceilings the distance would have to be anything from {number(needed.min())} to "
        f"{number(needed.max())}. In a random training set {percent(random)} of the test pairs have a training pair of "
        f"their class within {int(study.D.values[min(2, study.sizes['D'] - 1)])} already. If all is right outside its "
        f"strips, the paper's network is right inside on {strips}."
    )


def fractions(records: Records) -> str:
    """Beside Fig. 4: the shares that symmetry alone answers."""
    record = records["fractions"]
    f, p = str(record.f.values[0]), int(record.p.values[0])
    told = []
    for alpha in np.unique(record.train_fraction.values):
        runs = select(record, train_fraction=float(alpha))
        share = studies.symmetry_share(f, p, float(alpha), ["mirror"])
        told.append(
            f"{number(median(studies.best(runs)))} at α = {alpha:g}, where {number(share)} have a trained mirror"
        )
    return "The best test accuracies are " + "; ".join(told) + "."


SENTENCES: dict[str, Sentence] = {
    "base": Sentence(base, ("base",)),
    "primes": Sentence(primes, ("base",)),
    "relabelled": Sentence(relabelled, ("base",)),
    "special": Sentence(special, ("special",)),
    "rivals": Sentence(rivals, ("table_1",)),
    "strips": Sentence(strips, ("table_1",)),
    "coverage": Sentence(coverage, ("coverage",)),
    "rows": Sentence(rows, ("same_class",)),
    "fractions": Sentence(fractions, ("fractions",)),
}
