"""Tables of the chapter that are not claims: Table 1 of the paper beside ours, and what looks wrong or fragile."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from grokbook.chapters.gu import studies, theory
from grokbook.chapters.gu.claims import at_step
from grokbook.chapters.gu.studies import last
from grokbook.firstform.claims import Records, Table, number, percent, plain_table
from grokbook.measures import median, never_median
from grokbook.train.records import select


def _points(value: float) -> str:
    return f"{100 * value:.1f}" if np.isfinite(value) else "–"


def _seeds(values: xr.DataArray, show: Callable[[float], str] = _points) -> str:
    """The median over seeds, and their range where there are several."""
    known = values.values[np.isfinite(values.values)]
    if not len(known):
        return "–"
    text = show(float(np.median(known)))
    return text if len(known) == 1 else f"{text}<br><small>{show(known.min())} to {show(known.max())}</small>"


def _beside(paper: str, ours: str) -> str:
    return f"{ours}<br><small>{paper}</small>"


def table_1(records: Records, name: str = "table_1") -> Table:
    """Table 1: the paper's numbers beside ours."""
    head = ("Hole", "share", "U", "L", "onset")
    return _table_1(
        records,
        name,
        head,
        lambda row: [
            _points(float(row.share)),
            _beside(_points(float(row.paper_U)), _seeds(row.U)),
            _beside(_points(float(row.paper_L)), _seeds(row.L)),
            _beside(number(float(row.paper_onset)), _seeds(row.onset, number)),
        ],
        "the paper's number below ours. Share: of test pairs in the hole. A dash for U: 99.9 % of the training set "
        "were never right",
    )


def places(records: Records, name: str = "table_1") -> Table:
    """Table 1 by place, beside what the rival explanations predict."""
    head = ("Hole", "outside", "inside", "inside, mirror trained", "inside, not", "coverage", "mirrors")
    return _table_1(
        records,
        name,
        head,
        lambda row: [
            *(_seeds(row[one]) for one in ("outside", "inside", "inside_mirrored", "inside_unmirrored")),
            *(_seeds(row[one].mean("seed").expand_dims("seed")) for one in ("coverage", "mirror")),
        ],
        "accuracy at the end outside and inside the hole, there with and without a trained mirror. Coverage, mirrors: "
        "the ceilings U that coverage within {reach} and mirrors alone predict",
    )


def _table_1(
    records: Records, name: str, head: Sequence[str], cells: Callable[[xr.Dataset], list[str]], words: str
) -> Table:
    if name not in records:
        return plain_table(("Table 1",), [["no record at these settings"]], "Table 1 beside ours")
    study = records[name]
    rows = [
        [html.escape(str(label)).replace(" ", "&nbsp;"), *cells(study.sel(row=label))] for label in study.row.values
    ]
    count, p = study.sizes["seed"], study.attrs["p"]
    over = "median over seeds" if count > 1 else "one seed"
    size = study.attrs.get("size", "full")
    what = f"p = {p}" if size == "full" else f"p = {p} ({size})"
    caption = f"Table 1, {what}, percent, {over}: {words.format(reach=studies.reach(p))}."
    return plain_table(head, rows, caption, cards=True)


def rivals(records: Records, name: str = "table_1") -> Table:
    """How far three explanations are from our ceilings and from the paper's."""
    if name not in records:
        return plain_table(("Rule",), [["no record at these settings"]], "Explanations of Table 1")
    found = studies.rival_errors(records[name])
    rows = [
        [html.escape(rule), whose, *(f"{value:.1f}" if np.isfinite(value) else "–" for value in errors.values())]
        for whose, rules in found.items()
        for rule, errors in rules.items()
    ]
    return plain_table(
        ("Rule", "Against", "Squares", "Strips", "All rows"),
        [[rule, f"{whose} U", *cells] for rule, whose, *cells in rows],
        "Explanations of Table 1: root mean square distance from U in points. The distance of coverage was fitted to "
        "the paper's squares, the share of every hole to all rows of the U beside it; mirrors need no fit.",
        cards=True,
    )


FORMS = {
    "M1": "mean over p cyclic differences (2025, definition 4.2)",
    "M2": "their sum (2025, Fig. 5)",
    "M3": "sum of p − 1 differences without the wrap, both blocks added (earlier version, eq. 12)",
    "M4": "mean of p − 2 differences, averaged over the blocks (script base.py)",
    "M5": "p − 1 times that mean, both blocks added (script rec.py)",
    "M6": "the two blocks' means added (script str.py)",
}


def forms(records: Records) -> Table:
    """MED in its six published forms: at the start and at the end of the baseline, and how they rank the steps."""
    if "base" not in records:
        return plain_table(("Forms of MED",), [["no record of the baseline at these settings"]], "MED as published")
    record = records["base"]
    rows = []
    for form, words in FORMS.items():
        values = record[f"med_{form}"].values
        alike = [
            studies.spearman(*(row[np.isfinite(row)] for row in (one, other)))
            for one, other in zip(values, record.med_M1.values, strict=True)
        ]
        ends = (values[:, 0], last(record, f"med_{form}"))
        rows.append([form, words, *(number(median(end)) for end in ends), f"{median(np.array(alike)):.4f}"])
    head = ("Form", "What it is", "At the start", "At the end", "Rank correlation with M1")
    return plain_table(head, rows, "MED as published, for the median run of the baseline", cards=True)


def fragile(records: Records) -> Table:
    """What looks wrong or fragile, with evidence computed from the records and studies at hand."""
    rows: list[tuple[str, str, str]] = []

    def add(where: str, what: str, evidence: str) -> None:
        rows.append((html.escape(where), html.escape(what), html.escape(evidence)))

    evidence = "not trained here"
    if "base" in records:
        record = records["base"]
        found = studies.tracking(record).correlation
        told = "; ".join(
            f"seed {int(seed)}: MED {number(float(found.sel(measure='med_M1')[i]))}, permuted "
            f"{number(float(found.sel(measure='med_permuted')[i]))}, W "
            f"{number(float(found.sel(measure='total_norm')[i]))}"
            for i, seed in enumerate(record.seed.values)
        )
        below = int(np.isfinite(studies.below_start(record)).sum())
        evidence = (
            f"rank correlation with the test loss, {told}; MED fell below its start in {below} of "
            f"{len(record.seed)} runs"
        )
    add("Figs 5, 12 to 19", "MED tracks the test loss, and grokking comes when it drops below its start.", evidence)

    coverage = records["coverage"]
    grid = coverage.half.sel(surface="grid").values
    under = [int(k) for k, a, b in zip(coverage.k.values, grid, coverage.bound.values, strict=True) if a < b]
    add(
        "Th. 3.12",
        "A lower bound on the training fraction: an expectation equal to one is read as necessary, draws are taken "
        "with "
        "replacement, borders are left out. And it grows with p.",
        f"violated for k = {', '.join(map(str, under)) or 'none'}; at k = {coverage.k.values[0]} it is "
        f"{float(coverage.bound[0]):.2f}{', above 1' if coverage.bound[0] > 1 else ''}; "
        f"at k = 4 {theory.coverage_bound(47, 4):.3f} for p = 47, "
        f"{theory.coverage_bound(379, 4):.3f} for 379",
    )

    study = records["same_class"]
    errors = 100 * theory.coverage_errors(study.coverage.mean("seed").sel(surface="torus").values, study.U.values)
    needed = study.matching.median("seed").values
    add(
        "Th. 3.10",
        "One distance D as the ceiling. The proof shows that near pairs are right, not that right pairs are near, "
        "and uses "
        "a mean as if it were a maximum.",
        f"rows of Table 1 need D from {number(needed.min())} to {number(needed.max())}; the best single D misses by "
        f"{errors.min():.0f} points (rms)",
    )
    row = next(one for one in theory.TABLE_1 if one.kind == "strip" and one.size == 67)
    add(
        "Table 1",
        "The text draws 30 % of what the hole leaves, the released script 30 % of all pairs.",
        "with the text's split the row t = 67 would need an accuracy of "
        f"{percent(theory.implied_hole_accuracy(row, split='text'))} in the hole; with the script's "
        f"{percent(theory.implied_hole_accuracy(row, split='code'))}",
    )

    evidence = "not trained here"
    if "fractions" in records:
        record = records["fractions"]
        alpha = float(record.train_fraction.values.min())
        runs = select(record, train_fraction=alpha)
        with_mirror, without = (
            median(studies.settled(runs, f"accuracy_{name}")) for name in ("mirrored", "unmirrored")
        )
        evidence = (
            f"at α = {alpha:g}: {percent(with_mirror)} of mirrored test pairs right, {percent(without)} of the others"
        )
    shares = [(1 - a) * studies.symmetry_share("n**2 + n*m + m**2", 97, a, ["mirror"]) for a in (0.5, 0.6, 0.7)]
    add(
        "Fig. 4",
        "“No benefit of data”: knowing that f(i, j) = f(j, i) gives the same curve.",
        f"{evidence}; mirrors alone predict A (1 − α) = {', '.join(number(one) for one in shares)} at 0.5, 0.6, 0.7",
    )

    apart, lemmas = records["separability"], records["lemmas"]
    evidence = (
        f"{int(apart.classes.sum())} of {apart.attrs['pairs'] * apart.sizes['embedding']} pairs of classes separable"
    )
    if "centroids" in records:
        deviation = float(records["centroids"].deviation.max())
        agree = f"{deviation:.0e} of their length" if deviation else "the last digit"
        evidence += f"; centroids of all classes agree to {agree}"
    least = dict(zip(lemmas.tokens.values.tolist(), lemmas.exact.values.tolist(), strict=True))
    add(
        "Th. 3.5, Lemma B.1",
        "The balls of different classes share their centre, whatever the embedding; and the lemma's minimum is "
        "reached when "
        "all tokens are one vector: collapse, not uniform spread.",
        f"{evidence}; least norm {number(least['random (p = 97, d = 128)'])} for random unit vectors, "
        f"{number(least['all one vector'])} for one vector",
    )

    flow = records["flow"]
    add(
        "Fig. 8",
        "The points of the cube move to (1, 1, 1). Two quantities are conserved, so only starts with x = w = u "
        "reach it.",
        f"{percent(float((flow.distance < 0.05).mean()))} of random starts end within 0.05 of it; "
        f"{percent(float((flow.limit > 1).any('axis').mean()))} end outside the cube",
    )
    counts = dict(zip(apart.case.values.tolist(), apart.counts.values.tolist(), strict=True))
    add(
        "Def. 5.1",
        "The order of separabilities is reversed.",
        f"separable after a projection only: {counts['after only']}; before it only: {counts['before only']}",
    )

    evidence = "not trained here"
    if "toeplitz" in records:
        record = records["toeplitz"]
        starts = {
            start: median(select(record, start=start).med_M1.values[:, 0])
            for start in ("gaussian", "toeplitz", "matched")
        }
        times = {start: never_median(studies.reached(select(record, start=start), 0.5)) for start in starts}
        told = ", ".join(f"{start}: MED {number(starts[start])}, t_0.5 {at_step(times[start])}" for start in starts)
        evidence = f"median over fractions, {told}"
    add("Fig. 20", "A Toeplitz start makes the embedding smaller too, and the paper has no control for that.", evidence)

    evidence = "not trained here"
    if "seeds_apart" in records:
        groups = {label: select(records["seeds_apart"], label=label) for label in ("own split", "one split")}
        ranges = []
        for label, runs in groups.items():
            final = last(runs, "test_accuracy")
            ranges.append(f"{label}: {number(float(final.min()))} to {number(float(final.max()))}")
        evidence = f"final accuracy over seeds, {'; '.join(ranges)}"
        if share := studies.on_plateau(records["seeds_apart"]):
            evidence += f", where trained mirrors alone give {number(share)}"
    add("Figs 9 to 11, earlier 19 to 21", "Width and positions are judged on one split each.", evidence)
    return plain_table(("Place", "What", "Evidence"), rows, "Claims that look wrong or fragile", cards=True)
