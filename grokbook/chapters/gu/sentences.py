"""Sentences of the chapter that carry numbers: each is computed from records, so that none is ever typed in."""

from __future__ import annotations

from itertools import pairwise
from math import gcd

import numpy as np
import xarray as xr

from grokbook.chapters.gu import studies, theory
from grokbook.chapters.gu.claims import (
    CLAIMS,
    OPERATIONS,
    RIVALS,
    figs,
    figure_trainings,
    listed_and,
    one_training,
    speeds,
)
from grokbook.chapters.gu.studies import MADE_OF, last, reached
from grokbook.firstform.claims import Records, Sentence, number, percent
from grokbook.measures import median, never_median
from grokbook.train.records import conditions, select


def _step(value: float) -> str:
    """A time in a sentence: "step 1,200", or "no step"."""
    return f"step {number(value)}" if np.isfinite(value) else "no step"


def base(records: Records) -> str:
    """Beside the baseline: when it fits and generalises, and what MED does meanwhile."""
    record = records["base"]
    start, end = median(record.med_M1.values[:, 0]), last(record, "med_M1")
    highest = np.nanmax(record.med_M1.values, axis=1)
    below = int(np.isfinite(studies.below_start(record)).sum())
    return (
        f"The median network knows its training pairs at {_step(never_median(studies.fitted(record)))} and half of "
        f"the others at {_step(never_median(reached(record, 0.5)))}; at the end it knows "
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
        if records[name].attrs.get("size", "full") != "full":
            text += f"; `python -m grokbook train gu/{name}` runs its full setting"
        told.append(f"{text}.")
    return " ".join(told)


def relabelled(records: Records) -> str:
    """Beside the symmetry that MED does not have."""
    record = records["base"]
    p = int(record.p.values[0])
    ways = {1: "med_M1"}  # by the step up to its sign, for MED is the same both ways round
    for step in (2, 3, 5, 7, 11):
        if f"med_step_{step}" in record and gcd(step, p) == 1:  # else it is no naming
            ways.setdefault(min(step % p, -step % p), f"med_step_{step}")
    ends = np.array([last(record, name) for name in ways.values()])
    found = [f"{number(float(of.min()))} to {number(float(of.max()))}" for of in ends.T]
    many = {1: "one way", 2: "two ways", 3: "three ways", 4: "four ways", 5: "five ways", 6: "six ways"}[len(ways)]
    return (
        "The number that MED gives one and the same trained network depends on what its residues are called. "
        f"For the {many} of naming them that {'was' if len(ways) == 1 else 'were'} logged it ends at "
        f"{', '.join(found)} (one range a seed)."
    )


SHORT = {"med_M1": "MED", "med_permuted": "permuted MED", "embedding_norm": "R", "total_norm": "W"}


def _groups(study: xr.Dataset) -> dict[str, xr.Dataset]:
    """The runs that fitted their training set, at the paper's sizes and at others; only groups with runs."""
    known = np.isfinite(study.correlation.sel(measure="med_M1").values)
    parts = {
        "at the paper's sizes": known & study.as_paper.values,
        "at other sizes (stand-ins)": known & ~study.as_paper.values,
    }
    return {words: study.isel(run=np.flatnonzero(runs)) for words, runs in parts.items() if runs.any()}


def _medians(table: xr.DataArray) -> dict[str, float]:
    return {name: median(table.sel(measure=name).values) for name in SHORT}


def special(records: Records) -> str:
    """Beside the comparison of trackers: both measures, apart at the paper's sizes and in stand-ins."""
    told = []
    for words, runs in _groups(records["special"]).items():
        rank, sign = (
            ", ".join(f"{number(value)} for {SHORT[name]}" for name, value in _medians(runs[kind]).items())
            for kind in ("correlation", "agreement")
        )
        med = runs.correlation.sel(measure="med_M1").values
        told.append(
            f"Over the {runs.sizes['run']} runs {words} that fitted their training set the median rank correlations "
            f"with the test loss are {rank}; MED's is negative in {int((med < 0).sum())}. The median shares of "
            f"increments with the sign of the loss's are {sign}."
        )
    return " ".join([*told, apart(records)])


def apart(records: Records, most: int = 2) -> str:
    """What follows for the first groups: which controls do as well as MED, to within the margin of the claims."""
    told = []
    for words, runs in list(_groups(records["special"]).items())[:most]:
        close = {}
        for kind, measure in (("correlation", "rank correlation"), ("agreement", "sign of increments")):
            found = _medians(runs[kind])
            close[measure] = [SHORT[name] for name in RIVALS if found[name] > found["med_M1"] - 0.05]
        names = "; ".join(f"by {measure} {listed_and(who) if who else 'none'}" for measure, who in close.items())
        told.append(f"{words} these controls come within 0.05 of MED or do better: {names}")
        if all("permuted MED" in who for who in close.values()):
            told[-1] += ". Permuted MED, which knows nothing of the order of the numbers, is among them both times"
    if not told:
        return "No run fitted its training set, so that MED is not compared with its controls."
    text = ". ".join(f"{one[0].upper()}{one[1:]}" for one in told)
    return f"{text}."


def rivals(records: Records) -> str:
    """Beside the table of rivals: which comes closest to our ceilings and to the paper's."""
    told = []
    for whose, rows in studies.rival_errors(records["table_1"]).items():
        for kind in ("squares", "strips"):
            known = {name: errors[kind] for name, errors in rows.items() if np.isfinite(errors[kind])}
            if known:
                best = min(known, key=lambda name: known[name])
                told.append(f"“{best}” to {whose} {kind} ({known[best]:.1f} points)")
    overall = [
        errors["all rows"] for rows in studies.rival_errors(records["table_1"]).values() for errors in rows.values()
    ]
    least = min((value for value in overall if np.isfinite(value)), default=float("nan"))
    if not told:
        return "No network memorises, so that there is no ceiling to explain."
    verdict = "no rule explains the table" if least > 5 else "one rule comes within 5 points of a whole table"
    return f"Closest come {listed_and(told)}. Over all rows the smallest distance is {number(least)} points: {verdict}."


def strips(records: Records) -> str:
    """Beside Table 1: what a trained mirror is worth in a strip."""
    rows = records["table_1"]
    rows = rows.isel(row=np.flatnonzero(rows.kind.values == "strip"))
    with_mirror, without = median(rows.inside_mirrored.values), median(rows.inside_unmirrored.values)
    if not np.isfinite([with_mirror, without]).any():
        return ""  # no strips were trained
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
        f"At p = {study.attrs['p']} a random training set covers everything with probability one half at *less* than "
        f"the bound for k = {', '.join(map(str, under)) or 'none'}, and needs as much or more for the others; at "
        f"k = {int(study.k[0])} the bound is {number(float(study.bound[0]))}."
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
    """Beside Fig. 4: the shares that mirrors in the runs' own training sets answer."""
    record = records["fractions"]
    told, rest = [], []
    for alpha in np.unique(record.train_fraction.values):
        runs = select(record, train_fraction=float(alpha))
        share, top = median(studies.own_share(runs)), median(studies.best(runs))
        told.append(f"{number(top)} at α = {alpha:g}, where {number(share)} have a trained mirror")
        rest.append((alpha, top * (1 - alpha), share * (1 - alpha)))
    products = listed_and(
        f"{number(ours)} at α = {alpha:g} ({number(mirrors)} by mirrors)" for alpha, ours, mirrors in rest
    )
    text = f"The best test accuracies are {'; '.join(told)}. A (1 − α) is {products}"
    if max(abs(ours - mirrors) for _, ours, mirrors in rest) < 0.05:
        text += ": it stays where α (1 − α) stays and falls where that falls, as mirrors predict"
    return f"{text}."


def dnn(records: Records) -> str:
    """Beside the network with two hidden layers: both functions at every fraction."""
    told = []
    for f, runs in conditions(records["dnn"]):
        tops = [
            f"{number(median(studies.best(select(runs, train_fraction=float(alpha)))))} at α = {alpha:g}"
            for alpha in np.unique(runs.train_fraction.values)
        ]
        told.append(f"{', '.join(tops)} on {studies.pretty(f)}")
    return f"Its best test accuracies are {'; '.join(told)}."


def overlap(records: Records) -> str:
    """Beside the earlier Fig. 3: who gets to one half, and where the others end."""
    record = records["overlap"]
    times = {label: never_median(reached(runs, 0.5)) for label, runs in conditions(record)}
    final = {label: median(last(runs, "test_accuracy")) for label, runs in conditions(record)}
    got = [f"step {number(time)} at {label}" for label, time in times.items() if np.isfinite(time)]
    late = [f"{label} ({number(final[label])} at the end)" for label, time in times.items() if not np.isfinite(time)]
    told = [f"Half of the test set is known at {listed_and(got)}" if got else ""]
    told += [f"within {number(float(record.step[-1]))} steps never at {listed_and(late)}" if late else ""]
    text = "; ".join(filter(None, told))
    return f"{text[0].upper()}{text[1:]}."


def toeplitz(records: Records) -> str:
    """Beside Fig. 20: what the structured start saves, and what its control does."""
    record = records["toeplitz"]
    gains = {start: speeds(record, start, "gaussian") for start in ("toeplitz", "matched")}
    known = [alpha for alpha, ratio in gains["toeplitz"].items() if np.isfinite(ratio)]
    if not known:
        return "No comparison: at no fraction do both the Toeplitz and the random start know half of the test set."
    told = [
        f"{gains['toeplitz'][alpha]:.2f} (Toeplitz) and {gains['matched'][alpha]:.2f} (matched) at α = {alpha:g}"
        for alpha in known
    ]
    text = f"Steps to half of the test set, as a share of those of the random start: {'; '.join(told)}."
    apart_ = speeds(record, "toeplitz", "matched")
    saves = [f"{apart_[alpha]:.2f} at α = {alpha:g}" for alpha in known if np.isfinite(apart_[alpha])]
    return text + (f" Of the matched start's steps the Toeplitz start needs {listed_and(saves)}." if saves else "")


def layers(records: Records) -> str:
    """Beside Fig. 2: what depth does to accuracy, its oscillation and MED."""
    found = list(conditions(records["layers"]))
    told = ", ".join(f"{number(median(studies.best(runs)))} with {label}" for label, runs in found)
    ends = [median(studies.settled(runs, "med_M1")) for _, runs in found]
    falls = all(a > b for a, b in pairwise(ends))
    overfit = [
        label for label, runs in found[1:] if median(studies.best(runs)) <= median(studies.best(found[0][1])) - 0.1
    ]
    lost = f"lost with {listed_and(overfit)}" if overfit else "no depth loses it here"
    return (
        f"The best test accuracy is {told}; {lost}. "
        f"MED at the end {'falls with every layer' if falls else 'does not fall with every layer'}: "
        f"{', '.join(map(number, ends))}."
    )


def widths(records: Records) -> str:
    """Beside Figs 9 to 11: which width is the first to know 90 % of the test set, and which never does."""
    told = []
    for name, figure in (
        ("width_apart", "9, left"), ("width_shared", "9, right"), ("width_ceiling", "10"), ("width_boundary", "11")
    ):  # fmt: skip
        record = records[name]
        times = {label: never_median(reached(runs, 0.9)) for label, runs in conditions(record)}
        first, never = min(times, key=lambda label: times[label]), [k for k, t in times.items() if not np.isfinite(t)]
        setting = f"p = {int(record.p[0])}, k = {int(record.offset[0])}, α = {float(record.train_fraction[0]):g}"
        best = f"{first} (step {number(times[first])})" if np.isfinite(times[first]) else "none"
        told.append(
            f"in Fig. {figure} ({setting}) {best} of {listed_and(times)}"
            + (
                f", while {listed_and(never)} never {'does' if len(never) == 1 else 'do'}"
                if never and best != "none"
                else ""
            )
        )
    return "The first to know 90 % of the test set, by the median seed, is " + "; ".join(told) + "."


def operations(records: Records) -> str:
    """Beside Figs 12 to 19: which functions go beyond their symmetries."""
    beyond: list[str] = []
    within: list[str] = []
    for names, runs in figure_trainings(records, list(OPERATIONS)).items():
        share, top = median(studies.own_share(runs, None)), median(studies.best(runs))
        mirrors = median(studies.own_share(runs))
        words = f"{studies.pretty(str(runs.f.values[0]))} ({figs(names)}): {number(top)}, symmetries {number(share)}"
        if len(names) > 1 and share != mirrors:
            words += f", mirrors alone {number(mirrors)}"
        (beyond if top > share + 0.05 else within).append(words)
    shared = one_training(figure_trainings(records, list(OPERATIONS)))
    told = [f"Beyond what symmetries answer by more than 0.05: {'; '.join(beyond) or 'none'}."]
    told += [f"Not so: {'; '.join(within) or 'none'}."]
    return " ".join(told) + (f" {shared}." if shared else "")


def positions(records: Records) -> str:
    """Beside earlier Figs 19 to 21: what the table does at each width."""
    told = []
    for d in np.unique(records["positions"].d_model.values):
        runs = select(records["positions"], d_model=d)
        given, without = (never_median(reached(select(runs, label=label), 0.5)) for label in ("with", "without"))
        told.append(f"{_step(given)} with and {_step(without)} without at d = {d}")
    return f"Half of the test set is known, by the median seed, at {'; '.join(told)}."


def seeds_apart(records: Records) -> str:
    """Beside earlier Fig. 22: where seeds end, and what mirrors alone would give."""
    record = records["seeds_apart"]
    final, share = last(record, "test_accuracy"), studies.own_share(record)
    near = int((np.abs(final - share) <= 0.1).sum())
    return (
        f"The networks end between {number(float(final.min()))} and {number(float(final.max()))}. Mirrors alone would "
        f"answer {number(median(share))}: {near} of {len(final)} networks end within 0.1 of that."
    )


def diameters(records: Records) -> str:
    """Beside earlier appendix F: how far the two vocabularies lie apart."""
    end = studies.two_vocabularies(records["diameters"]).isel(snapshot=-1)
    return (
        f"The trained blocks have diameters of {number(float(end.diameter_a))} and {number(float(end.diameter_b))}, "
        f"their union one of {number(float(end.union))}: they lie "
        f"{'apart' if float(end.union) > float(end.diameter_a + end.diameter_b) else 'in one another'}."
    )


# --- the page as a whole ------------------------------------------------------------------------------------


def results(records: Records) -> str:
    """Under the title: what was found, in a few lines."""
    lines = []
    record = records["base"]
    half, fit = never_median(reached(record, 0.5)), never_median(studies.fitted(record))
    f = str(record.f.values[0])
    lines.append(
        f"{'Addition' if f == 'n + m' else studies.pretty(f)} is learnt late: the training pairs by {_step(fit)}, "
        f"half of the others by {_step(half)}, {percent(median(last(record, 'test_accuracy')))} of them at the end."
    )
    words, runs = next(iter(_groups(records["special"]).items()), ("", None))
    if runs is not None:
        rank, sign = (_medians(runs[kind]) for kind in ("correlation", "agreement"))
        lines.append(
            f"MED follows the test loss with a rank correlation of {number(rank['med_M1'])} (median of "
            f"{runs.sizes['run']} runs {words}), the norm of all weights with {number(rank['total_norm'])}; the sign "
            f"of its increments is right in {number(sign['med_M1'])}, that of MED with permuted residues in "
            f"{number(sign['med_permuted'])}."
        )
    table = records["table_1"]
    lines.append(
        f"A hole in the training set costs accuracy in the hole: its median over holes is "
        f"{percent(median(table.outside.values))} outside and {percent(median(table.inside.values))} inside."
    )
    form = records["fractions"]
    alpha = float(form.train_fraction.values.min())
    of = select(form, train_fraction=alpha)
    seen, unseen = (median(studies.settled(of, f"accuracy_{name}")) for name in ("mirrored", "unmirrored"))
    lines.append(
        f"{studies.pretty(str(form.f.values[0]))} at α = {alpha:g} is answered on {percent(seen)} of the pairs whose "
        f"mirror was trained and on {percent(unseen)} of the others."
    )
    return "What this page finds:\n\n" + "\n".join(f"- {line}" for line in lines) + "\n\n" + totals(records)


def totals(records: Records) -> str:
    """How many claims rest on theory, on the paper's sizes, and on small stand-ins."""
    counts = {"theory": 0, "paper": 0, "small": 0, "missing": 0}
    for claim in CLAIMS:
        read = {one for name in claim.needs for one in MADE_OF.get(name, (name,))}
        held = [name for name in read & set(studies.TRACKED) if name in records]
        small = any(not studies.as_paper(name, records[name]).all() for name in held)
        missing = any(name in studies.TRACKED and name not in records for name in read)
        kind = "missing" if missing else "small" if small else "paper" if held else "theory"
        counts[kind] += 1
    text = (
        f"Of the {len(CLAIMS)} claims {counts['theory']} rest on computation without training, {counts['paper']} on "
        f"trainings at the paper's sizes, some with fewer seeds, and {counts['small']}, in whole or in part, on "
        "trainings at other sizes: small stand-ins"
    )
    if counts["missing"]:
        text += f"; {counts['missing']} lack a record"
    shared = one_training(figure_trainings(records, list(OPERATIONS))) if "operations" in records else ""
    return f"{text}." + (f" {shared}." if shared else "")


THEORY = {  # claim -> what is the matter where it is not reproduced
    "th310": "one distance does not fit the table",
    "th312": "the bound on the data is no bound",
    "fig8-attractor": "the flow does not end where it is said to",
    "thm35": "the classes are not apart where a theorem puts them",
}


def all_in_all(records: Records) -> str:
    """The conclusion: which theorems fail here, and whether MED stands out."""
    failed = [
        THEORY[claim.id] for claim in CLAIMS if claim.id in THEORY and claim.judge(records).outcome != "reproduced"
    ]
    theory_ = f"The theory does not carry what is built on it: {listed_and(failed)}. " if failed else ""
    return theory_ + apart(records, 1)


SENTENCES: dict[str, Sentence] = {
    "results": Sentence(results, ("base", "special", "table_1", "fractions")),
    "base": Sentence(base, ("base",)),
    "primes": Sentence(primes, ("base",)),
    "relabelled": Sentence(relabelled, ("base",)),
    "special": Sentence(special, ("special",)),
    "rivals": Sentence(rivals, ("table_1",)),
    "strips": Sentence(strips, ("table_1",)),
    "coverage": Sentence(coverage, ("coverage",)),
    "rows": Sentence(rows, ("same_class",)),
    "fractions": Sentence(fractions, ("fractions",)),
    "dnn": Sentence(dnn, ("dnn",)),
    "overlap": Sentence(overlap, ("overlap",)),
    "toeplitz": Sentence(toeplitz, ("toeplitz",)),
    "layers": Sentence(layers, ("layers",)),
    "widths": Sentence(widths, ("width_apart", "width_shared", "width_ceiling", "width_boundary")),
    "operations": Sentence(operations, ("operations",)),
    "positions": Sentence(positions, ("positions",)),
    "seeds_apart": Sentence(seeds_apart, ("seeds_apart",)),
    "diameters": Sentence(diameters, ("diameters",)),
    "totals": Sentence(totals, ()),
    "all_in_all": Sentence(all_in_all, ("special", "same_class", "coverage", "flow", "centroids", "separability")),
}
