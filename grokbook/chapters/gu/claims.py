"""What Gu et al. claim, in both versions, the criteria, and their checks.

The criteria hold for the papers' settings; at other parameters they are applied unchanged, except that those of Figs 9
and 11 set a margin and a time as parts of the paper's run: a run of another length is held to as large a part of its
own. A record with too few conditions for a claim does not test it. Where several seeds were trained, a rule must hold
for the median seed. Where a rule asks when something happens, a run in which it never does counts as infinitely late.
Claims about MED are held to what the paper says of it and, apart, to whether a control does as well.

The criteria were committed before any training; two thirds of them, or the stand-ins that they judge, were changed once
records existed. The register, results/gu/criteria.json, holds every version, with why and with what the earlier gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import xarray as xr

from grokbook.chapters.gu import studies, theory
from grokbook.chapters.gu.experiments import OPERATIONS, QUADRATIC
from grokbook.chapters.gu.studies import Array, last, reached, regular_steps
from grokbook.firstform.claims import Check, Claim, Records, Verdict, entering, number, outcome, percent, spread
from grokbook.measures import median, never_median, or_never
from grokbook.tasks import modular_function
from grokbook.train.records import conditions, select

CLAIMS: list[Claim] = []
claim = entering(CLAIMS)


def at_step(value: float) -> str:
    """A time in words: a step, or "never"."""
    return number(value) if np.isfinite(value) else "never"


def _seeds(record: xr.Dataset) -> int:
    return len(np.unique(record.seed.values))


def untested(why: str, note: str = "") -> Verdict:
    """A record that cannot decide a claim: too few conditions at these parameters, or nothing to judge."""
    return Verdict("not tested", why, note=note)


def listed_and(words: Iterable[object]) -> str:
    """Words as a list: a, b and c."""
    *most, final = map(str, words)
    return f"{', '.join(most)} and {final}" if most else final


# ----------------------------------------------------------------------------------------------------------- baseline


@claim(
    "base",
    "Sec. 6.1",
    "With a random 30 % of the pairs test accuracy starts to rise around step 5000 and ends at 1.",
    expected="onset near 5000, final accuracy 1",
    criterion="median t_0.5 in [2500, 9000]; median final accuracy ≥ 0.99; median t_fit ≤ 500",
    needs=("base",),
)
def _base(records: Records) -> Verdict:
    record = records["base"]
    half, fit, final = reached(record, 0.5), studies.fitted(record), last(record, "test_accuracy")
    return Verdict(
        outcome(2500 <= never_median(half) <= 9000, median(final) >= 0.99, never_median(fit) <= 500),
        f"t_fit {at_step(never_median(fit))}, t_0.5 {at_step(never_median(half))}, final accuracy "
        f"{number(median(final))}",
        **spread(half),
        of="t_0.5 over seeds",
    )


# ------------------------------------------------------------------------------------------------ holes and symmetries


@claim(
    "fig3",
    "Fig. 3",
    "The training sets: a random one, one that leaves out a square, one that leaves out a strip.",
    expected="a fraction α of all pairs, none in the hole",
    criterion="exact: floor(α p²) trained pairs or all that the hole leaves; none in the hole; the square's mirror "
    "is the "
    "square, of the strip's only (t + 1)² pairs stay in it",
    needs=("masks",),
)
def _fig3(records: Records) -> Verdict:
    study = records["masks"]
    size, p = study.attrs["hole_size"], study.sizes["i"]
    free = {"square": p * p - (size + 1) ** 2, "strip": p * p - (size + 1) * p}
    trained = study.trained.values.sum((1, 2))
    allowed = theory.training_size(p, study.attrs["train_fraction"])
    square, strip = (theory.hole(kind, p, size) for kind in ("square", "strip"))
    return Verdict(
        outcome(
            trained[0] == allowed,
            trained[1] == min(allowed, free["square"]) and trained[2] == min(allowed, free["strip"]),
            not (study.trained.values[1] & square).any() and not (study.trained.values[2] & strip).any(),
            bool((square == square.T).all()) and int((strip & strip.T).sum()) == (size + 1) ** 2,
        ),
        f"{trained[0]:,}, {trained[1]:,} and {trained[2]:,} trained pairs; holes of {square.sum():,} and "
        f"{strip.sum():,}",
    )


def _rows(study: xr.Dataset, kind: str) -> xr.Dataset:
    return study.isel(row=np.flatnonzero(study.kind.values == kind)).sortby("size")


def _over_seeds(values: xr.DataArray) -> Array:
    """(row,) medians over the seeds that have a value."""
    return np.array([median(row) for row in values.values])


def _with_ceiling(study: xr.Dataset) -> tuple[xr.Dataset, str]:
    """The rows in which some network memorises, and a note that names the others: they have no U."""
    known = np.isfinite(_over_seeds(study.U))
    missing = ", ".join(map(str, study.row.values[~known]))
    note = f"no U, as no network memorises: {missing}" if missing else ""
    return study.isel(row=np.flatnonzero(known)), note


def _generalises(study: xr.Dataset) -> str:
    """ "" or why a smaller table says nothing of holes: its networks are wrong where nothing was left out, too."""
    if study.attrs.get("size") != "smaller" or study.attrs["p"] == PAPER_P:
        return ""
    outside = _over_seeds(study.outside)
    wrong = int((outside < 0.9).sum())
    if 2 * wrong <= len(outside):
        return ""
    return f"accuracy outside the hole is below 0.9 in {wrong} of {len(outside)} rows: nothing generalised there"


PAPER_P = 97  # the modulus of Table 1
SMALLER = "; a smaller stand-in decides only if half of its rows reach 0.9 outside the hole (added later)"
RANKED = 3  # rows that a rank correlation needs
CLOSE = 8  # rows of Table 1 that must come close


def _table_claims(name: str, study: str, words: str) -> tuple[Check, Check, Check]:
    """The rules (1) to (3) of Table 1, for one way of drawing the training set."""

    @claim(
        f"{name}-order",
        "Table 1",
        f"The larger the hole, the lower the ceiling of test accuracy ({words}).",
        expected="ρ = −1 for squares, −1 for strips",
        criterion="Spearman(size, U) ≤ −0.9 over the squares and over the strips, of the rows whose networks memorise"
        + SMALLER,
        needs=(study,),
    )
    def _order(records: Records) -> Verdict:
        rows, note = _with_ceiling(records[study])
        of_kind = {kind: _rows(rows, kind) for kind in theory.HOLES}
        found = {kind: studies.spearman(one["size"].values, _over_seeds(one.U)) for kind, one in of_kind.items()}
        told = "ρ: " + ", ".join(f"{kind}s {number(value)}" for kind, value in found.items())
        if why := _generalises(records[study]):
            return untested(told, why)
        if few := [kind for kind, one in of_kind.items() if one.sizes["row"] < RANKED]:
            return untested(f"{told}; fewer than {RANKED} {' and '.join(few)} rows with a U", note)
        held = [value <= -0.9 for value in found.values()]
        return Verdict(outcome(*held), told, n=rows.sizes["seed"], note=note)

    @claim(
        f"{name}-values",
        "Table 1",
        f"The values of U-Acc ({words}).",
        expected="0.99 to 0.57 for squares, 0.90 to 0.08 for strips",
        criterion=f"|U − paper| ≤ 8 points in at least {CLOSE} of 11 rows; only rows whose networks memorise have a U"
        + SMALLER,
        needs=(study,),
    )
    def _values(records: Records) -> Verdict:
        rows, note = _with_ceiling(records[study])
        gap = np.abs(_over_seeds(rows.U) - rows.paper_U.values)
        gap = gap[np.isfinite(gap)]
        if len(gap) < CLOSE:
            return untested(f"{len(gap)} rows to compare, {CLOSE} are needed", note)
        close = int((gap <= 0.08).sum())
        if why := _generalises(records[study]):
            return untested(f"{close} of {len(gap)} rows; largest gap {100 * gap.max():.0f} points", why)
        return Verdict(
            outcome(close >= CLOSE),
            f"{close} of {len(gap)} rows; largest gap {100 * gap.max():.0f} points",
            n=rows.sizes["seed"],
            median=median(100 * gap),
            low=float(100 * gap.min()),
            high=float(100 * gap.max()),
            of="gap in points over rows",
            note=note,
        )

    @claim(
        f"{name}-places",
        "Table 1",
        f"What is lost is lost in the hole ({words}).",
        expected="all right outside",
        criterion="for squares of k ≥ 40 (of 97), of the rows whose networks memorise: accuracy outside ≥ 0.97 and "
        "inside ≤ 0.6" + SMALLER,
        needs=(study,),
    )
    def _places(records: Records) -> Verdict:
        squares = _rows(records[study], "square")
        rows, note = _with_ceiling(
            squares.isel(row=np.flatnonzero(squares["size"].values >= round(40 * squares.attrs["p"] / 97)))
        )
        if not rows.sizes["row"]:
            return untested("no such row", note)
        outside, inside = (_over_seeds(rows[place]) for place in ("outside", "inside"))
        outside = outside[np.isfinite(outside)]  # where all pairs outside are trained on, none is left to test
        if not len(outside):
            return untested("no test pair outside the hole", note)
        told = f"outside at least {number(outside.min())}, inside at most {number(inside.max())}"
        if why := _generalises(records[study]):
            return untested(told, why)
        return Verdict(
            outcome(bool((outside >= 0.97).all()), bool((inside <= 0.6).all())),
            told,
            n=rows.sizes["seed"],
            note=note,
        )

    return _order, _values, _places


_table_order, _table_values, _table_places = _table_claims("table1", "table_1", "split of the scripts")


@claim(
    "table1-67",
    "Table 1",
    "With the widest strip, t = 67, there is no grokking.",
    expected="U = 0.076",
    criterion="the largest running median of test accuracy over the whole run < 0.15 at t = 67 (of 97)",
    needs=("table_1",),
)
def _table_67(records: Records) -> Verdict:
    rows = _rows(records["table_1"], "strip")
    widest = round(67 * rows.attrs["p"] / 97)
    rows = rows.isel(row=np.flatnonzero(rows["size"].values == widest))
    if not rows.sizes["row"]:
        return untested(f"no strip of size {widest}")
    value = rows.highest.values[0]
    return Verdict(
        outcome(median(value) < 0.15),
        f"{number(median(value))} over the whole run, {number(median(rows.U.values[0]))} after t_fit",
        **spread(value),
        of="over the whole run, of seeds",
        note=f"trained mirrors alone would give {number(median(rows.mirror.values[0]))}" if "mirror" in rows else "",
    )


@claim(
    "table1-L",
    "Table 1",
    "After the ceiling is reached accuracy never falls more than 15 points below it.",
    expected="falls of 2.1 to 16.2 points",
    criterion="L ≥ U − 15 points in every row whose networks memorise",
    needs=("table_1",),
)
def _table_L(records: Records) -> Verdict:
    rows, note = _with_ceiling(records["table_1"])
    own = "the paper's own row t = 60, 33.25 to 17.05 %, fails this rule"
    note = f"{note}; {own}" if note else own
    fall = 100 * (_over_seeds(rows.U) - _over_seeds(rows.L))
    if not len(fall):
        return untested("no row has a U", note)
    return Verdict(
        outcome(bool((fall <= 15).all())),
        f"largest fall {number(float(fall.max()))} points",
        **spread(fall),
        of="fall in points over rows",
        note=note,
    )


@claim(
    "table1",
    "Table 1",
    "Table 1 as a whole: ceilings that fall with the hole, by these values, for what is lost in it.",
    expected="as the five claims above",
    criterion="the claims on order, values, places, t = 67 and L all hold; partly if those on order and places do",
    needs=("table_1",),
)
def _table_whole(records: Records) -> Verdict:
    checks = {"order": _table_order, "values": _table_values, "places": _table_places, "67": _table_67, "L": _table_L}
    found = {name: check(records).outcome for name, check in checks.items()}
    told = ", ".join(f"{name.replace('67', 't = 67')} {value}" for name, value in found.items())
    if "not tested" in found.values():
        return untested(told)
    held = {name for name, value in found.items() if value == "reproduced"}
    order_and_places = {"order", "places"} <= held
    whole = "reproduced" if len(held) == len(found) else "partly" if order_and_places else "not reproduced"
    return Verdict(whole, told, n=records["table_1"].sizes["seed"])


_table_claims("table1-text", "table_1_text", "split of the text")


@claim(
    "th310",
    "Th. 3.10",
    "Whether a training pair of its class lies within a distance D decides what a network can get right.",
    expected="our reading, with Remark 3.11: one D for the whole of Table 1",
    criterion="one D predicts the paper's U of all rows with an error of at most 5 points (rms)",
    needs=("same_class",),
)
def _th310(records: Records) -> Verdict:
    study = records["same_class"]
    found = {}
    for name, kinds in (("squares", ("square",)), ("strips", ("strip",)), ("all rows", ("square", "strip"))):
        chosen = np.isin(study.kind.values, kinds)
        covered = study.coverage.mean("seed").sel(surface="torus").values[chosen]
        errors = 100 * theory.coverage_errors(covered, study.U.values[chosen])
        found[name] = (float(errors.min()), int(study.D.values[errors.argmin()]))
    told = ", ".join(f"{name} {error:.1f} points at D = {D}" for name, (error, D) in found.items())
    needed = study.matching.median("seed").values
    return Verdict(
        outcome(found["all rows"][0] <= 5),
        f"best single D: {told}; row by row D from {number(needed.min())} to {number(needed.max())}",
        **spread(needed),
        of="D that gives U, over rows",
    )


@claim(
    "fig4-rise",
    "Fig. 4",
    "The ceiling for x² + xy + y² rises with the training fraction.",
    expected="rises",
    criterion="the best smoothed accuracy A increases from each fraction to the next",
    needs=("fractions",),
)
def _fig4_rise(records: Records) -> Verdict:
    if why := _another_form(records["fractions"]):
        return untested(why)
    alphas, tops = _ceilings(records["fractions"])
    if len(alphas) < 2:
        return untested("only one fraction")
    return Verdict(outcome(bool((np.diff(tops) > 0).all())), _pairs("A", alphas, tops), n=_seeds(records["fractions"]))


FIG4_FRACTIONS = (0.5, 0.6, 0.7)  # the paper's


@claim(
    "fig4-constant",
    "Fig. 4",
    "The number of right answers stays the same: more data does not help.",
    expected="A (1 − α) constant",
    criterion="largest / smallest A (1 − α) ≤ 1.25 over the paper's fractions 0.5, 0.6 and 0.7, at least two of them",
    needs=("fractions",),
)
def _fig4_constant(records: Records) -> Verdict:
    if why := _another_form(records["fractions"]):
        return untested(why)
    alphas, tops = _ceilings(records["fractions"], FIG4_FRACTIONS)
    if len(alphas) < 2:
        return untested("fewer than two of the paper's fractions")
    rest = tops * (1 - alphas)
    return Verdict(
        outcome(float(rest.max() / rest.min()) <= 1.25),
        f"{_pairs('A (1 − α)', alphas, rest)}; ratio {number(float(rest.max() / rest.min()))}",
        n=_seeds(records["fractions"]),
    )


@claim(
    "fig4-mirror",
    "Fig. 4",
    "Ours: what is right are the pairs (i, j) whose mirror (j, i) was trained, and nothing else.",
    expected="(not in the paper)",
    criterion="at α = 0.5 accuracy ≥ 0.9 on mirrored test pairs and ≤ 0.3 on the others",
    needs=("fractions",),
)
def _fig4_mirror(records: Records) -> Verdict:
    if why := _another_form(records["fractions"]):
        return untested(why)
    half = select(records["fractions"], train_fraction=0.5)
    if not half.sizes["run"]:
        return untested("no run at α = 0.5")
    with_mirror, without = (studies.settled(half, f"accuracy_{name}") for name in ("mirrored", "unmirrored"))
    return Verdict(
        outcome(median(with_mirror) >= 0.9, median(without) <= 0.3),
        f"mirrored {number(median(with_mirror))}, others {number(median(without))}",
        **spread(with_mirror - without),
        of="difference over seeds",
    )


@claim(
    "fig4-more",
    "Fig. 4",
    "The form x² + xy + y² never generalises, whatever the fraction.",
    expected="accuracy never reaches 1",
    criterion="best smoothed accuracy < 0.9 + 0.1 × (share of test pairs with a trained mirror) at the largest "
    "fraction, 0.9 or more",
    needs=("fractions",),
)
def _fig4_more(records: Records) -> Verdict:
    if why := _another_form(records["fractions"]):
        return untested(why)
    record = records["fractions"]
    most = select(record, train_fraction=float(record.train_fraction.values.max()))
    alpha = float(most.train_fraction.values[0])
    if alpha < 0.9:
        return untested(f"no fraction above {alpha:g}")
    known = median(studies.own_share(most))
    top, without = studies.best(most), studies.settled(most, "accuracy_unmirrored")
    return Verdict(
        outcome(median(top) < 0.9 + 0.1 * known),
        f"at α = {alpha:g}: {number(median(top))} overall, {number(median(without))} of pairs without a trained mirror",
        **spread(top),
        of="accuracy over seeds",
    )


def _another_form(record: xr.Dataset) -> str:
    """ "" or which other function than x² + xy + y² was trained."""
    f, p = str(record.f.values[0]), int(record.p.values[0])
    same = np.array_equal(modular_function(f, p), modular_function(QUADRATIC, p))
    return "" if same else f"the function trained is {studies.pretty(f)}"


def _ceilings(record: xr.Dataset, among: Sequence[float] | None = None) -> tuple[Array, Array]:
    """The fractions, or those ``among`` them, and the median best accuracy at each."""
    groups = [(float(runs.train_fraction.values[0]), runs) for _, runs in conditions(record)]
    groups = sorted((one for one in groups if among is None or np.isclose(one[0], among).any()), key=lambda one: one[0])
    return np.array([alpha for alpha, _ in groups]), np.array([median(studies.best(runs)) for _, runs in groups])


def _pairs(name: str, alphas: Array, values: Array) -> str:
    told = ", ".join(f"{number(float(value))} at {alpha:g}" for alpha, value in zip(alphas, values, strict=True))
    return f"{name}: {told}"


@claim(
    "dnn-form",
    "Sec. 6.1",
    "A network with two hidden layers fails on x² + xy + y², where accuracy stays around 0.01, while it works on "
    "functions of a linear structure.",
    expected="0.01, and grokking on a linear structure",
    criterion="best test accuracy on the form ≤ 0.05 at α = 0.5, and at 0.3 where it was trained, with train accuracy "
    "1; x + y at α = 0.5 reaches ≥ 0.9. A smaller stand-in that learns x + y only at a larger fraction must fail on "
    "the form at that fraction too (added later)",
    needs=("dnn",),
)
def _dnn_form(records: Records) -> Verdict:
    forms, sums = (_by_fraction(select(records["dnn"], f=f)) for f in (QUADRATIC, "n + m"))
    if 0.5 not in forms:
        return untested("no run at α = 0.5")
    tops = {alpha: studies.best(runs) for alpha, runs in forms.items()}
    known = {alpha: median(studies.best(runs)) for alpha, runs in sums.items()}
    learnt = min((alpha for alpha, value in known.items() if value >= 0.9), default=0.5)
    small = not studies.as_paper("dnn", records["dnn"]).any()
    at = max(0.5, learnt) if small and learnt in forms else 0.5  # where both functions are judged
    judged = [alpha for alpha in forms if alpha in (0.3, 0.5, at)]
    fails = all(
        median(tops[alpha]) <= 0.05 and median(last(forms[alpha], "train_accuracy")) >= 0.999 for alpha in judged
    )
    right = known.get(at, 0.0) >= 0.9
    told = ", ".join(f"{number(median(top))} at α = {alpha:g}" for alpha, top in tops.items())
    if not right:
        note = "a network that fails on x + y as well says nothing about the form"
    else:
        note = f"judged up to α = {at:g}, where this smaller network learns x + y" if at > 0.5 else ""
    return Verdict(
        outcome(fails, right),
        f"best on the form: {told}; on x + y: {_at_fractions(known)}",
        **spread(tops[at]),
        of=f"accuracy on the form at α = {at:g} over seeds",
        note=note,
    )


def _by_fraction(record: xr.Dataset) -> dict[float, xr.Dataset]:
    """Runs by training fraction, in its order."""
    found = np.unique(record.train_fraction.values.round(9))
    return {float(alpha): select(record, train_fraction=float(alpha)) for alpha in found}


def _at_fractions(values: dict[float, float]) -> str:
    return ", ".join(f"{number(value)} at α = {alpha:g}" for alpha, value in values.items())


@claim(
    "dnn-sum",
    "Sec. 6.1",
    "The same network works on functions of a linear structure.",
    expected="grokking",
    criterion="x + y at α = 0.5 reaches test accuracy ≥ 0.9; partly (added later) if it does at a larger fraction only",
    needs=("dnn",),
)
def _dnn_sum(records: Records) -> Verdict:
    tops = {alpha: studies.best(runs) for alpha, runs in _by_fraction(select(records["dnn"], f="n + m")).items()}
    if 0.5 not in tops:
        return untested("no run at α = 0.5")
    known = {alpha: median(top) for alpha, top in tops.items()}
    later = any(value >= 0.9 for alpha, value in known.items() if alpha > 0.5)
    return Verdict(
        "reproduced" if known[0.5] >= 0.9 else "partly" if later else "not reproduced",
        f"best {_at_fractions(known)}",
        **spread(tops[0.5]),
        of="accuracy at α = 0.5 over seeds",
    )


# ------------------------------------------------------------------------------------------------------------- fig. 5


def _tracked(record: xr.Dataset, kind: str) -> dict[str, float]:
    """Median over seeds of a column of ``studies.tracking``, by quantity."""
    table = studies.tracking(record)[kind]
    return {str(name): median(table.sel(measure=name).values) for name in table.measure.values}


RIVALS = ("med_permuted", "embedding_norm", "total_norm")
CONTROLS = "permuted MED, embedding norm R and total weight norm W"  # these, in words
FIG5 = ("base", "primes", "largest_prime")
LARGEST = 379  # the paper's largest prime
FEW_PRIMES = "fewer than two primes whose networks memorise"


def _memorises(runs: xr.Dataset) -> bool:
    """Whether some run was measured long enough after t_fit for MED to be compared with its test loss."""
    return bool(np.isfinite(studies.tracking(runs, ("med_M1",)).correlation.values).any())


def _primes(records: Records, *, fitted: bool = True) -> tuple[dict[int, xr.Dataset], str]:
    """Runs by prime, if ``fitted`` of those whose networks memorise, and a note on which they are, if not all four."""
    found = studies.by_prime(records)
    judged = {p: runs for p, runs in found.items() if _memorises(runs) or not fitted}
    parts = []
    if judged and LARGEST not in judged:
        parts.append(f"judged over p = {listed_and(list(judged))}, without p = {LARGEST}")
    if left := [p for p in found if p not in judged]:
        parts.append(f"left out, as no network memorises in time: p = {listed_and(left)}")
    return judged, "; ".join(parts)


def _lead(found: dict[str, float]) -> tuple[str, float]:
    """The control that follows the test loss best, and how far MED is ahead of it."""
    rival = max(RIVALS, key=lambda name: np.nan_to_num(found[name], nan=-2))
    return rival, found["med_M1"] - found[rival]


@claim(
    "fig5-follows",
    "Fig. 5",
    "MED and the test loss change together, for all four primes.",
    expected="consistent trends",
    criterion="after t_fit, Spearman(MED, test loss) ≥ 0.8 (median seed) for at least three quarters of the primes",
    needs=FIG5,
)
def _fig5_follows(records: Records) -> Verdict:
    judged, note = _primes(records)
    if len(judged) < 2:
        return untested(FEW_PRIMES, note)
    tables = {p: studies.tracking(runs).correlation.sel(measure="med_M1").values for p, runs in judged.items()}
    found = {p: median(values) for p, values in tables.items()}
    high = [value >= 0.8 for value in found.values()]
    told = ", ".join(f"p = {p}: {number(value)}" for p, value in found.items())
    return Verdict(
        outcome(sum(high) >= 0.75 * len(high)),
        f"ρ {told}",
        **spread(np.concatenate(list(tables.values()))),
        of="ρ over runs",
        note=note,
    )


@claim(
    "fig5-increments",
    "Fig. 5, earlier Fig. 4",
    "Increments of MED and of the test loss have the same sign.",
    expected="same sign",
    criterion="sign agreement ≥ 0.75 of smoothed 100-step increments and ≥ 0.6 of single steps (median over primes)",
    needs=FIG5,
)
def _fig5_increments(records: Records) -> Verdict:
    judged, note = _primes(records)
    if len(judged) < 2:
        return untested(FEW_PRIMES, note)
    smooth, raw = (
        np.array([_tracked(runs, kind)["med_M1"] for runs in judged.values()])
        for kind in ("agreement", "agreement_raw")
    )
    if not np.isfinite(raw).any():
        return untested("no single steps were logged after t_fit", note)
    return Verdict(
        outcome(median(smooth) >= 0.75, median(raw) >= 0.6),
        f"smoothed {number(median(smooth))}, single steps {number(median(raw))}",
        **spread(smooth),
        of="smoothed agreement over primes",
        note=note,
    )


@claim(
    "fig5-below",
    "Earlier Fig. 4",
    "Grokking comes when MED falls below its starting value.",
    expected="at t_0.5",
    criterion="the first time MED is below its start after t_fit is within a factor of 1.5 of t_0.5, for at least "
    "three quarters of the primes",
    needs=FIG5,
)
def _fig5_below(records: Records) -> Verdict:
    judged, note = _primes(records)
    if len(judged) < 2:
        return untested(FEW_PRIMES, note)
    found = {
        p: (never_median(studies.below_start(runs)), never_median(reached(runs, 0.5))) for p, runs in judged.items()
    }
    close = [1 / 1.5 <= below / half <= 1.5 for below, half in found.values() if np.isfinite([below, half]).all()]
    told = ", ".join(f"p = {p}: {at_step(below)} and {at_step(half)}" for p, (below, half) in found.items())
    return Verdict(outcome(sum(close) >= 0.75 * len(found)), f"below its start and t_0.5: {told}", note=note)


@claim(
    "fig5-special",
    "Fig. 5",
    "Ours: MED says more than that weights shrink.",
    expected="a measure of uniformity",
    criterion=f"ρ(MED) − largest ρ of {CONTROLS} ≥ 0.05, median over primes",
    needs=FIG5,
)
def _fig5_special(records: Records) -> Verdict:
    judged, note = _primes(records)
    if len(judged) < 2:
        return untested(FEW_PRIMES, note)
    leads, told = [], []
    for p, runs in judged.items():
        found = _tracked(runs, "correlation")
        rival, lead = _lead(found)
        leads.append(lead)
        told.append(f"p = {p}: {number(found['med_M1'])} against {number(found[rival])} ({studies.TRACKERS[rival]})")
    return Verdict(
        outcome(median(np.array(leads)) >= 0.05), "; ".join(told), **spread(leads), of="lead over primes", note=note
    )


@claim(
    "fig5-sooner",
    "Fig. 5, earlier Fig. 4",
    "Larger primes grok sooner.",
    expected="more than 10,000 steps at p = 47, one or two thousand at p = 397 (the later version has p = 379)",
    criterion="median t_0.9 decreases strictly with p; at every prime median t_0.9 ≥ 5 t_fit, so that there is a delay "
    "(added later)",
    needs=FIG5,
)
def _fig5_sooner(records: Records) -> Verdict:
    judged, note = _primes(records, fitted=False)
    if len(judged) < 2:
        return untested("only one prime", note)
    found = {p: never_median(reached(runs, 0.9)) for p, runs in judged.items()}
    falling = all(a > b for a, b in pairwise(found.values()))
    fit = {p: never_median(studies.fitted(runs)) for p, runs in judged.items()}
    delayed = all(t >= 5 * fit[p] for p, t in found.items())
    told = "; ".join(f"p = {p}: {at_step(t)} (t_fit {at_step(fit[p])})" for p, t in found.items())
    return Verdict(outcome(falling, delayed) if falling else "not reproduced", told, note=note)


# ---------------------------------------------------------------------------------- overlap, start, depth, width


def _listed(found: dict[str, float], show: Callable[[float], str] = number) -> str:
    return ", ".join(f"{label}: {show(value)}" for label, value in found.items())


@claim(
    "overlap-slower",
    "Earlier Fig. 3",
    "Grokking slows down as the operands share fewer tokens.",
    expected="slower with k",
    criterion="median t_0.5 strictly increasing in k (never counts as infinite); partly (added later) where it never "
    "falls and rises at least once",
    needs=("overlap",),
)
def _overlap(records: Records) -> Verdict:
    found = {label: never_median(reached(runs, 0.5)) for label, runs in conditions(records["overlap"])}
    if len(found) < 2:
        return untested("only one offset")
    times = list(found.values())
    rising = [a < b for a, b in pairwise(times)]
    never_falls = all(a <= b for a, b in pairwise(times))
    tied = sum(np.isinf(times)) > 1
    return Verdict(
        "reproduced" if all(rising) else "partly" if never_falls and any(rising) else "not reproduced",
        f"t_0.5: {_listed(found, at_step)}",
        n=_seeds(records["overlap"]),
        note="runs of this length cannot tell one never from another" if tied else "",
    )


@claim(
    "overlap-med",
    "Earlier Fig. 3",
    "MED tracks every one of these runs.",
    expected="tracks",
    criterion="after t_fit, Spearman(MED, test loss) ≥ 0.8 (median seed) for at least three quarters of the offsets",
    needs=("overlap",),
)
def _overlap_med(records: Records) -> Verdict:
    groups = dict(conditions(records["overlap"]))
    judged = [label for label, runs in groups.items() if _memorises(runs)]
    left = ", ".join(label for label in groups if label not in judged)
    note = f"left out, as no network memorises in time: {left}" if left else ""
    if len(judged) < 2:
        return untested("fewer than two offsets whose networks memorise", note)
    found = {label: _tracked(groups[label], "correlation")["med_M1"] for label in judged}
    high = sum(value >= 0.8 for value in found.values())
    return Verdict(
        outcome(high >= 0.75 * len(found)), f"ρ {_listed(found)}", **spread(list(found.values())), of="ρ over offsets",
        note=note,
    )  # fmt: skip


def speeds(record: xr.Dataset, fast: str, slow: str) -> dict[float, float]:
    """alpha -> median t_0.5 of one start over that of another; nan if neither got there."""
    found = {}
    for alpha in sorted({float(one) for one in record.train_fraction.values}, reverse=True):
        runs = select(record, train_fraction=alpha)
        a, b = (never_median(reached(select(runs, start=start), 0.5)) for start in (fast, slow))
        found[alpha] = a / b if np.isfinite(a) else float("nan") if not np.isfinite(b) else float("inf")
    return found


def _ratios(found: dict[float, float]) -> str:
    def told(value: float) -> str:
        if np.isnan(value):
            return "none (neither gets there)"
        return {0.0: "0 (only the first gets there)", np.inf: "infinite (only the second gets there)"}.get(
            value, f"{value:.2f}"
        )

    return ", ".join(f"{told(value)} at α = {alpha:g}" for alpha, value in found.items())


def _faster(found: dict[float, float], more: str = "") -> Verdict:
    """Whether every ratio is at most 0.65; a fraction at which neither start gets there says nothing."""
    known = [value for value in found.values() if not np.isnan(value)]
    left = [f"α = {alpha:g}" for alpha, value in found.items() if np.isnan(value)]
    note = f"left out, as neither start gets there: {listed_and(left)}" if left else ""
    if not known:
        return untested("neither start gets to 0.5 at any fraction", note)
    held = [value <= 0.65 for value in known]
    return Verdict(
        outcome(*held), f"ratio {_ratios(found)}{more}", **spread(known), of="ratio over fractions", note=note
    )


@claim(
    "fig20-faster",
    "Fig. 20, earlier Fig. 7",
    "A Toeplitz start of the embedding halves the steps to grokking.",
    expected="half the steps",
    criterion="median t_0.5(Toeplitz) / t_0.5(random) ≤ 0.65 at every fraction at which one of them gets there; from "
    "one seed at most partly (added later)",
    needs=("toeplitz",),
)
def _fig20_faster(records: Records) -> Verdict:
    found = _faster(speeds(records["toeplitz"], "toeplitz", "gaussian"))
    if found.outcome != "reproduced" or _seeds(records["toeplitz"]) > 1:
        return found
    others = ""
    if _same_start(records):
        times = reached(records["base"], 0.5)
        others = f"; the baseline has {len(times)} such starts: t_0.5 {_range(times)}"
    return replace(found, outcome="partly", note=f"one seed{others}")


def _same_start(records: Records) -> bool:
    """Whether the baseline has more networks of the kind that starts at random in Fig. 20."""
    if "base" not in records:
        return False
    base, own = records["base"], select(records["toeplitz"], start="gaussian")
    return all(bool(np.isin(base[name].values[0], own[name].values)) for name in ("p", "d_model", "train_fraction"))


@claim(
    "fig20-structure",
    "Fig. 20, earlier Fig. 7",
    "It is the structure that helps.",
    expected="structure (no control in the paper)",
    criterion="median t_0.5(Toeplitz) / t_0.5(random of the same means and norms) ≤ 0.65 at every fraction at which "
    "one of them gets there",
    needs=("toeplitz",),
)
def _fig20_structure(records: Records) -> Verdict:
    scale = speeds(records["toeplitz"], "matched", "gaussian")
    return _faster(
        speeds(records["toeplitz"], "toeplitz", "matched"), f"; the matched start against the random: {_ratios(scale)}"
    )


def _by_label(record: xr.Dataset, value: Callable[[xr.Dataset], Array]) -> dict[str, float]:
    return {label: median(value(runs)) for label, runs in conditions(record)}


def _oscillation(record: xr.Dataset) -> Array:
    """(run,) standard deviation of test accuracy over the last 30 % of the steps."""
    even = regular_steps(record)
    late = even.step.values >= 0.7 * even.step.values[-1]
    return np.nanstd(even.test_accuracy.values[:, late], axis=1)


@claim(
    "fig2",
    "Fig. 2, earlier Fig. 6",
    "One layer groks; two overfit; with three and four accuracy oscillates and MED ends lower.",
    expected="as stated",
    criterion="median t_0.9 exists with 1 layer; oscillation with the most layers ≥ 2 × with one; final MED falls with "
    "depth; best accuracy with 2 layers ≤ that with 1 − 0.1",
    needs=("layers",),
)
def _fig2(records: Records) -> Verdict:
    record = records["layers"]
    depths = sorted({int(depth) for depth in record.layers.values})
    if depths[:2] != [1, 2]:
        return untested("no runs with one and with two layers")
    top, shake = _by_label(record, studies.best), _by_label(record, _oscillation)
    end = _by_label(record, lambda runs: studies.settled(runs, "med_M1"))
    spikes = _by_label(record, lambda runs: (np.diff(runs.train_loss.values, axis=1) > 0.1).sum(1).astype(float))
    by_depth = [select(record, layers=depth) for depth in depths]
    one, two, most = by_depth[0], by_depth[1], by_depth[-1]
    ends = [median(studies.settled(runs, "med_M1")) for runs in by_depth]
    return Verdict(
        outcome(
            bool(np.isfinite(never_median(reached(one, 0.9)))),
            median(_oscillation(most)) >= 2 * median(_oscillation(one)),
            all(a > b for a, b in pairwise(ends)),
            median(studies.best(two)) <= median(studies.best(one)) - 0.1,
        ),
        f"best accuracy {_listed(top)}; oscillation {_listed(shake)}; final MED {_listed(end)}; "
        f"spikes of the train loss {_listed(spikes)}",
        n=_seeds(record),
    )


def _plateau(record: xr.Dataset) -> list[str]:
    """A note where mirrors alone bring a network to about 0.5: what t_0.9 says there."""
    share = studies.on_plateau(record)
    if not share:
        return []
    late = {label: never_median(reached(runs, 0.9)) for label, runs in conditions(record)}
    return [
        f"t_0.5 is passed with the help of trained mirrors, which alone answer {number(share)}; t_0.9 "
        f"{_listed(late, at_step)}"
    ]


def _wider(id: str, name: str, figure: str, margin: int, steps: int, expected: str) -> None:
    """The margin is stated for runs of the paper's length, ``steps``; shorter ones are asked for as large a part."""

    @claim(
        id,
        figure,
        "A wider network groks much sooner.",
        expected=expected,
        criterion=f"median t_0.5 (narrow) − t_0.5 (wide) > {margin:,} steps in runs of {steps:,}, or as large a part "
        "of runs of another length; a run that never gets there counts at the end",
        needs=(name,),
    )
    def _check(records: Records) -> Verdict:
        record = records[name]
        end = float(record.step.values[-1])
        half = {label: reached(runs, 0.5) for label, runs in conditions(record)}
        times = {label: np.nan_to_num(found, nan=end) for label, found in half.items()}
        middle = {label: never_median(found) for label, found in half.items()}
        if len(times) < 2:
            return untested("only one width")
        narrow, *_, wide = times.values()
        gain, wanted = median(narrow) - median(wide), margin / steps * end
        told = _listed(middle, lambda t: number(t) if np.isfinite(t) else f"never (counted as {number(end)})")
        notes = [] if end == steps else [f"margin scaled to {number(wanted)} of {number(end)} steps"]
        return Verdict(
            outcome(gain > wanted),
            f"t_0.5 {told}",
            **spread(narrow - wide),
            of="gain over seeds",
            note="; ".join((*notes, *_plateau(record))),
        )


_wider("fig9-left", "width_apart", "Fig. 9 left, earlier Fig. 5", 10_000, 60_000, "more than 20,000 steps")
_wider("fig9-right", "width_shared", "Fig. 9 right, earlier Fig. 5", 5_000, 40_000, "more than 10,000 steps")


@claim(
    "fig10",
    "Fig. 10, earlier Fig. 9",
    "Width helps up to a point: 0.7 at d = 128, 0.99 at 512, no more at 1024, while MED's floor falls.",
    expected="0.7, 0.99, 0.99; M3 from 80 to 60",
    criterion="final(third width) ≥ 0.95; final(first) in [0.5, 0.9]; |final(fourth) − final(third)| ≤ 0.05; least M3 "
    "after t_fit (fourth) ≤ 0.9 × (third)",
    needs=("width_ceiling",),
)
def _fig10(records: Records) -> Verdict:
    record = records["width_ceiling"]
    final = _by_label(record, lambda runs: last(runs, "test_accuracy"))
    floor = _by_label(record, lambda runs: studies.floor(runs, "med_M3"))
    ends, floors = list(final.values()), list(floor.values())
    if len(ends) < 4:
        return untested("fewer than four widths")
    return Verdict(
        outcome(
            ends[2] >= 0.95,
            0.5 <= ends[0] <= 0.9,
            abs(ends[3] - ends[2]) <= 0.05,
            floors[3] <= 0.9 * floors[2],
        ),
        f"final {_listed(final)}; least M3 after t_fit {_listed(floor)}",
        n=_seeds(record),
    )


@claim(
    "fig11",
    "Fig. 11, earlier Fig. 10",
    "At the boundary no amount of training helps a narrow network, and a wide one groks.",
    expected="none at d = 256 and 512, grokking at 1024 and 2048",
    criterion="best accuracy < 0.2 for the two narrowest over the whole run (200,000 steps); ≥ 0.9 for each wider one "
    "in its first half (100,000); a stand-in whose narrowest network gets to 0.9 is at no boundary and does not decide "
    "(added later)",
    needs=("width_boundary",),
)
def _fig11(records: Records) -> Verdict:
    record = records["width_boundary"]
    end = int(record.step.values[-1])
    early = record.isel(step=np.flatnonzero(record.step.values <= end / 2))
    top, half = list(_by_label(record, studies.best).items()), list(_by_label(early, studies.best).items())
    if len(top) < 3:
        return untested("no wider network than two")
    narrow, wide = dict(top[:2]), dict(half[2:])
    told = f"best {_listed(narrow)}; in the first half {_listed(wide)}; over the whole run {_listed(dict(top[2:]))}"
    length = "" if end == 200_000 else f"runs of {number(end)} steps"
    if record.attrs.get("size") == "smaller" and top[0][1] >= 0.9:
        return untested(told, f"{length + '; ' if length else ''}the narrowest network generalises: no boundary")
    return Verdict(
        outcome(all(value < 0.2 for value in narrow.values()), all(value >= 0.9 for value in wide.values())),
        told,
        n=_seeds(record),
        note=length,
    )


# --------------------------------------------------------------------------------------------------- other operations


def _operation(records: Records, name: str) -> xr.Dataset:
    return select(records["operations"], label=name)


RECIPE = ("f", "p", "d_model", "train_fraction", "steps")  # what tells the runs of figures 12 to 19 apart


def figure_trainings(records: Records, names: Sequence[str]) -> dict[tuple[str, ...], xr.Dataset]:
    """Figures that have runs -> these, with figures of one and the same training together."""
    found: dict[tuple[object, ...], list[str]] = {}
    for name in names:
        runs = _operation(records, name)
        if runs.sizes["run"]:
            found.setdefault(tuple(runs[field].values[0].item() for field in RECIPE), []).append(name)
    return {tuple(figures): _operation(records, figures[0]) for figures in found.values()}


def figs(names: Sequence[str]) -> str:
    numbers = [name.removeprefix("fig") for name in names]
    return f"Fig{'s' if len(numbers) > 1 else '.'} {listed_and(numbers)}"


def one_training(trainings: dict[tuple[str, ...], xr.Dataset]) -> str:
    """Which figures rest on one training, as a note."""
    return "; ".join(f"{figs(names)} are one and the same training here" for names in trainings if len(names) > 1)


def _operation_claims(name: str, words: str) -> None:
    @claim(
        f"{name}-med",
        f"Fig. {name.removeprefix('fig')}",
        f"MED tracks the test loss for {words}.",
        expected="tracks",
        criterion="after t_fit: Spearman(MED, test loss) ≥ 0.8; sign agreement of smoothed increments ≥ 0.75; lead "
        f"over each of {CONTROLS} ≥ 0.05. Single steps, whose signs should agree in 0.6, are not logged here",
        needs=("operations",),
    )
    def _check(records: Records) -> Verdict:
        runs = _operation(records, name)
        if not runs.sizes["run"]:
            return untested("left out at these parameters")
        same = {names: one for names, one in figure_trainings(records, list(OPERATIONS)).items() if name in names}
        note = one_training(same)
        if not _memorises(runs):
            return untested("no network memorises in time", note)
        found, signs = _tracked(runs, "correlation"), _tracked(runs, "agreement")
        rival, lead = _lead(found)
        return Verdict(
            outcome(found["med_M1"] >= 0.8, signs["med_M1"] >= 0.75, lead >= 0.05),
            f"ρ {number(found['med_M1'])}, signs {number(signs['med_M1'])}; {studies.TRACKERS[rival]} "
            f"{number(found[rival])}",
            **spread(studies.tracking(runs).correlation.sel(measure="med_M1").values),
            of="ρ over seeds",
            note=note,
        )


for _figure, (_function, *_) in OPERATIONS.items():
    _operation_claims(_figure, studies.pretty(_function))


@claim(
    "fig12-groks",
    "Fig. 12",
    "Subtraction groks.",
    expected="groks",
    criterion="median t_0.9 within the run; ≥ 5 t_fit (added later)",
    needs=("operations",),
)
def _fig12(records: Records) -> Verdict:
    runs = _operation(records, "fig12")
    if not runs.sizes["run"]:
        return untested("left out at these parameters")
    times = reached(runs, 0.9)
    end, fit = never_median(times), never_median(studies.fitted(runs))
    return Verdict(
        outcome(bool(np.isfinite(end)), end >= 5 * fit) if np.isfinite(end) else "not reproduced",
        f"t_fit {at_step(fit)}, t_0.9 {at_step(end)}",
        **spread(times),
        of="t_0.9 over seeds",
    )


@claim(
    "fig16-18",
    "Figs 16 to 18",
    "Ours: x² + xy + y² is answered where its mirror was trained, no further.",
    expected="(no accuracy given)",
    criterion="best accuracy ≤ the run's own share of test pairs with a trained mirror + 0.1; accuracy on these pairs "
    "at the end ≥ 0.9",
    needs=("operations",),
)
def _fig16(records: Records) -> Verdict:
    told, below, answered = [], [], []
    trainings = figure_trainings(records, ("fig16", "fig17", "fig18"))
    for names, runs in trainings.items():
        share, top = median(studies.own_share(runs)), median(studies.best(runs))
        mirrored = median(studies.settled(runs, "accuracy_mirrored"))
        below.append(top <= share + 0.1)
        answered.append(mirrored >= 0.9)
        told.append(f"{figs(names)}: {number(top)} against {number(share)}, mirrored pairs {number(mirrored)}")
    if not told:
        return untested("left out at these parameters")
    return Verdict(
        outcome(*below, *answered), "; ".join(told), n=_seeds(records["operations"]), note=one_training(trainings)
    )


@claim(
    "fig13-15",
    "Figs 13 to 15",
    "Ours: products and sums of powers generalise, beyond what their symmetries answer.",
    expected="(no accuracy given)",
    criterion="best accuracy ≥ 0.9, and ≥ what the function's symmetries alone answer + 0.05, or 0.999 where that sum "
    "is more, for all three",
    needs=("operations",),
)
def _fig13(records: Records) -> Verdict:
    told, held = [], []
    for name in ("fig13", "fig14", "fig15"):
        runs = _operation(records, name)
        if not runs.sizes["run"]:
            continue
        p, alpha = int(runs.p.values[0]), float(runs.train_fraction.values[0])
        share, top = studies.symmetry_share(str(runs.f.values[0]), p, alpha), median(studies.best(runs))
        wanted = max(0.9, min(share + 0.05, 0.999))
        held.append(top >= wanted)
        told.append(
            f"{figs([name])}: {number(top)} of {number(wanted)}, t_0.9 {at_step(never_median(reached(runs, 0.9)))}, "
            f"symmetries {number(share)} on average over splits"
        )
    if not told:
        return untested("left out at these parameters")
    return Verdict(outcome(*held), "; ".join(told), n=_seeds(records["operations"]))


# ------------------------------------------------------------------------------ the earlier version's further figures


def _arms(record: xr.Dataset, place: int) -> tuple[Array, Array, str]:
    """t_0.5 with and without the table at one of the record's widths, and that width; empty if it has fewer."""
    widths = np.unique(record.d_model.values)
    if place >= len(widths):
        return np.zeros(0), np.zeros(0), ""
    runs = select(record, d_model=widths[place])
    given, without = (reached(select(runs, label=label), 0.5) for label in ("with", "without"))
    return given, without, f"at d = {widths[place]}: "


def _range(times: Array) -> str:
    late = np.sort(or_never(times))
    return f"{at_step(late[0])} to {at_step(late[-1])}"


@claim(
    "pos19",
    "Earlier Fig. 19",
    "At d = 128 a positional table makes grokking much slower.",
    expected="much slower",
    criterion="median t_0.5 (with) ≥ 1.5 × median t_0.5 (without), at the smallest width; at most partly if the ranges "
    "of both overlap, which is luck by the rule of Fig. 20 (added later)",
    needs=("positions",),
)
def _pos19(records: Records) -> Verdict:
    given, without, width = _arms(records["positions"], 0)
    slow, fast = never_median(given), never_median(without)
    slower, apart = np.isfinite(fast) and slow >= 1.5 * fast, or_never(given).min() > or_never(without).max()
    return Verdict(
        "not reproduced" if not slower else outcome(True, bool(apart)),
        f"{width}with {at_step(slow)}, without {at_step(fast)}; ranges {_range(given)} and {_range(without)}",
        n=len(given),
    )


@claim(
    "pos20",
    "Earlier Fig. 20",
    "At d = 256 the order is a matter of luck.",
    expected="without, with, without",
    criterion="the ranges of t_0.5 with and without overlap, at the second width",
    needs=("positions",),
)
def _pos20(records: Records) -> Verdict:
    *arms, width = _arms(records["positions"], 1)
    given, without = map(or_never, arms)
    if not len(given):
        return untested("only one width")
    if len(given) < 2:
        return untested("one seed has no range")
    some = np.isfinite([given.min(), without.min()]).all()
    return Verdict(
        outcome(bool(some and given.min() <= without.max() and without.min() <= given.max())),
        f"{width}with {_range(given)}, without {_range(without)}",
        n=len(given),
    )


@claim(
    "pos21",
    "Earlier Fig. 21",
    "At d = 512 the erratic speeds vanish.",
    expected="equal speeds",
    criterion="largest / smallest t_0.5 over all runs ≤ 2, at the third width",
    needs=("positions",),
)
def _pos21(records: Records) -> Verdict:
    *arms, width = _arms(records["positions"], 2)
    times = or_never(np.concatenate(arms))
    if not len(times):
        return untested("fewer than three widths")
    ratio = float(times.max() / times.min()) if np.isfinite(times.max()) else float("inf")
    told = f"{width}t_0.5 {_range(times)}, ratio {number(ratio)}"
    return Verdict(outcome(ratio <= 2), told, n=_seeds(records["positions"]))


@claim(
    "pos-floor",
    "Earlier Fig. 19",
    "A positional table lowers the floor of MED.",
    expected="lower with the table",
    criterion="median over seeds of the least MED after t_fit is lower with the table than without, at the smallest "
    "width (added later, when the statement was found to be missing)",
    needs=("positions",),
)
def _pos_floor(records: Records) -> Verdict:
    told, lower = [], []
    for d in np.unique(records["positions"].d_model.values):
        runs = select(records["positions"], d_model=d)
        given, without = (median(studies.floor(select(runs, label=label), "med_M1")) for label in ("with", "without"))
        told.append(f"d = {d}: with {number(given)}, without {number(without)}")
        lower.append(given < without)
    if not np.isfinite(studies.floor(records["positions"], "med_M1")).any():
        return untested("no network memorises in time")
    return Verdict(
        outcome(lower[0]),
        f"least MED after t_fit at {'; '.join(told)}",
        n=_seeds(records["positions"]),
        note="a run ends once it has grokked, and its MED would fall on",
    )


@claim(
    "seed22",
    "Earlier Fig. 22",
    "At p = 47 seeds differ in speed and in final accuracy.",
    expected="different speed and final accuracy",
    criterion="over seeds: range of final accuracy ≥ 0.2, and largest / smallest t_0.5 ≥ 1.5; at most partly where a "
    "seed's accuracy still rises by more than 0.05 over the last fifth of its steps (added later)",
    needs=("seeds_apart",),
)
def _seed22(records: Records) -> Verdict:
    groups = dict(conditions(records["seeds_apart"]))
    if _seeds(records["seeds_apart"]) < 2:
        return untested("one seed has no range")
    told: list[str] = []
    held: list[bool] = []
    rising = 0
    for label, runs in groups.items():
        final, times = last(runs, "test_accuracy"), or_never(reached(runs, 0.5))
        spread_ = float(np.ptp(final))
        ratio = float(times.max() / times.min()) if np.isfinite(times.min()) else float("nan")
        told.append(f"{label}: accuracy {number(final.min())} to {number(final.max())}, t_0.5 {_range(times)}")
        if not held:
            held, rising = [spread_ >= 0.2, ratio >= 1.5], _still_rising(runs)
    n, notes = next(iter(groups.values())).sizes["run"], _plateau(records["seeds_apart"])
    if rising:
        notes = [*notes, f"{rising} of {n} seeds still rise at the end"]
    found = "partly" if rising and all(held) else outcome(*held)
    return Verdict(found, "; ".join(told), n=n, note="; ".join(notes))


def _still_rising(runs: xr.Dataset) -> int:
    """How many runs end with a test accuracy more than 0.05 above that after four fifths of the steps."""
    end = runs.step.values[-1]
    before = [np.interp(0.8 * end, runs.step.values, row) for row in runs.test_accuracy.values]
    return int((last(runs, "test_accuracy") - np.array(before) > 0.05).sum())


@claim(
    "diam",
    "Earlier App. F",
    "Two vocabularies that share nothing lie far apart, and neighbours half a diameter from each other: no circle.",
    expected="d(A, B) much larger than d(A) + d(B); neighbours at half a diameter",
    criterion="at the end of a run that reached t_0.9: union / (d(A) + d(B)) ≥ 2; neighbour / diameter in [0.4, 0.6]",
    needs=("diameters",),
)
def _diam(records: Records) -> Verdict:
    record = records["diameters"]
    end = studies.two_vocabularies(record).isel(snapshot=-1)
    union = float(end.union / (end.diameter_a + end.diameter_b))
    if not np.isfinite(reached(record, 0.9)[0]):
        return untested("the run did not reach 0.9")
    return Verdict(
        outcome(union >= 2, 0.4 <= float(end.ratio) <= 0.6),
        f"union / (d(A) + d(B)) = {number(union)}, set distance {number(float(end.set_distance))}, neighbour / "
        "diameter "
        f"{number(float(end.ratio))}",
        n=1,
    )


# ------------------------------------------------------------------------------------------------------------- theory


@claim(
    "th312",
    "Th. 3.12",
    "Covering every test pair with diamonds of size k needs at least the fraction 2 ln p / C.",
    expected="a lower bound",
    criterion="a random training set covers everything with probability one half at no smaller fraction than the "
    "bound, for k = 2 to 6 on the plain grid",
    needs=("coverage",),
)
def _th312(records: Records) -> Verdict:
    study = records["coverage"]
    seen, bound = study.half.sel(surface="grid").values, study.bound.values
    fails = [int(k) for k, a, b in zip(study.k.values, seen, bound, strict=True) if a < b]
    told = ", ".join(f"k = {k}: {b:.3f}, seen {a:.3f}" for k, a, b in zip(study.k.values, seen, bound, strict=True))
    return Verdict(
        outcome(not fails) if len(fails) in (0, len(bound)) else "partly",
        f"bound and seen: {told}; violated for k = {', '.join(map(str, fails)) or 'none'}; over "
        f"{study.attrs['draws']} draws",
    )


@claim(
    "th312-trend",
    "Th. 3.12, Fig. 5",
    "Ours: the bound by itself would explain that larger primes need less.",
    expected="falls with p",
    criterion="the bound at fixed k falls from p = 47 to 97 to 379",
    needs=(),
)
def _th312_trend(records: Records) -> Verdict:
    found = {p: theory.coverage_bound(p, 4) for p in (47, 97, 379)}
    values = list(found.values())
    return Verdict(
        outcome(values[0] > values[1] > values[2]),
        "k = 4: " + ", ".join(f"{value:.3f} at p = {p}" for p, value in found.items()),
    )


@claim(
    "thm35",
    "Th. 3.5, Remark 3.6",
    "Sums φ(i) + φ(j) of one class lie in a ball of its own, which tells the classes apart.",
    expected="classes apart",
    criterion="class centroids of a trained embedding differ by more than 10⁻⁵ of their size; some of the 78 pairs of "
    "classes at p = 13 are convexly separable",
    needs=("centroids", "separability"),
)
def _thm35(records: Records) -> Verdict:
    deviation = float(records["centroids"].deviation.sel(embedding="trained"))
    classes = records["separability"]
    told = ", ".join(
        f"{name}: {int(n)}" for name, n in zip(classes.embedding.values, classes.classes.values, strict=True)
    )
    return Verdict(
        outcome(deviation > 1e-5, bool((classes.classes > 0).any())),
        f"largest deviation of a centroid {f'{deviation:.0e}' if deviation else '0'}; separable "
        f"pairs of {classes.attrs['pairs']}: {told}",
        note="every class uses each i once and each j once, so all have one centroid",
    )


@claim(
    "lemma34",
    "Lemma 3.4",
    "‖M‖ ≤ ‖M‖_F ≤ √min(m, n) ‖M‖.",
    expected="always",
    criterion="holds for random matrices and for the trained embeddings of the baseline, where it is at hand; equality "
    "on the left for rank one and on the right for an orthogonal one",
    needs=("lemmas",),
)
def _lemma34(records: Records) -> Verdict:
    study = records["lemmas"]
    trained = _trained_bounds(records)
    low, middle, high = (
        np.r_[study[name].values, [getattr(one, name) for one in trained]]
        for name in ("operator", "frobenius", "upper")
    )
    left, right = study.matrix.values.tolist().index("rank one"), study.matrix.values.tolist().index("orthogonal")
    return Verdict(
        outcome(
            bool((low <= middle * (1 + 1e-12)).all() and (middle <= high * (1 + 1e-12)).all()),
            abs(middle[left] / low[left] - 1) < 1e-9 and abs(high[right] / middle[right] - 1) < 1e-9,
        ),
        f"{study.sizes['matrix']} random and {len(trained)} trained matrices; rank one "
        f"{middle[left] / low[left]:.6f}, orthogonal {high[right] / middle[right]:.6f}",
    )


def _trained_bounds(records: Records) -> list[theory.NormBounds]:
    """The norms of the baseline's trained embeddings; none without its record."""
    if "base" not in records:
        return []
    return [theory.norm_bounds(table[-1].astype(float)) for table in records["base"].W_E.values]


@claim(
    "lemmaB1",
    "Lemma B.1 with Remark 3.9",
    "The least map with l(x_i) + l(x_−i) = r has the norm |r| / 2M, and uniformly distributed tokens reduce norms.",
    expected="0.5 for |r| = M = 1",
    criterion="random unit tokens, which are spread evenly, reach within 10 % of 0.5; tokens that are all one vector, "
    "as in the lemma's proof, reach it to 10⁻⁸",
    needs=("lemmas",),
)
def _lemmaB1(records: Records) -> Verdict:
    study = records["lemmas"]
    found = dict(zip(study.tokens.values.tolist(), study.exact.values.tolist(), strict=True))
    spread_out = [value for name, value in found.items() if name.startswith("random")]
    return Verdict(
        outcome(all(value <= 0.55 for value in spread_out), abs(found["all one vector"] - 0.5) <= 1e-8),
        f"least norms: {_listed(found)}",
        note="the proof itself takes all tokens to be one vector: collapse, not uniformity",
    )


@claim(
    "fig8-attractor",
    "Fig. 8",
    "(1, 1, 1) is a stable equilibrium point of the flow, and the points of the cube move to it.",
    expected="stable; points of the cube move towards it",
    criterion="stable: trajectories from all sides at a distance of 0.01 stay within 0.02; at least 95 % of random "
    "starts in the cube end within 0.05",
    needs=("flow",),
)
def _fig8(records: Records) -> Verdict:
    study = records["flow"]
    distance, stays = study.distance.values, study.attrs["stays"]
    eigen = np.linalg.eigvalsh(theory.flow_jacobian([1.0, 1.0, 1.0]))
    near = float((distance < 0.05).mean())
    return Verdict(
        outcome(stays <= 0.02, near >= 0.95),
        f"from {study.attrs['near']:g} away at most {number(stays)}; {percent(near)} end within 0.05",
        **spread(distance),
        of="distance at the end over starts",
        note="not asymptotically stable, which the papers do not say either: the eigenvalues are "
        + ", ".join(f"{value:.0f}".replace("-", "−") for value in eigen),
    )


@claim(
    "fig8-limits",
    "Fig. 8",
    "Ours: x² − w² and w² − u² are conserved, which fixes every limit.",
    expected="(not in the paper)",
    criterion="integrated limits agree with the closed form to 10⁻⁶, conserved quantities to 10⁻⁸",
    needs=("flow",),
)
def _fig8_limits(records: Records) -> Verdict:
    study = records["flow"]
    gap, drift = float(study.gap.max()), study.attrs["invariant"]
    return Verdict(
        outcome(gap < 1e-6, drift < 1e-8),
        f"largest gap {gap:.0e}, drift {drift:.0e} in {study.sizes['some']} trajectories",
    )


@claim(
    "fig8-lyapunov",
    "Eqs 17, 18 (earlier 22, 23)",
    "The squared distance V from (1, 1, 1) does not rise along the flow in the cube, which makes the point stable.",
    expected="V' ≤ 0 in the cube",
    criterion="V' < 0 at random points of the open cube; ours: V' < 0 everywhere on some small sphere around the "
    "point, as the conclusion needs, for trajectories leave the cube",
    needs=("flow",),
)
def _fig8_lyapunov(records: Records) -> Verdict:
    study = records["flow"]
    rate = float(theory.lyapunov_rate([1.104, 0.904, 1.004]))
    shares = ", ".join(
        f"{percent(float(share))} at {radius:g}"
        for radius, share in zip(study.radius.values, study.rising.values, strict=True)
    )
    return Verdict(
        outcome(study.attrs["rate"] < 0, bool((study.rising == 0).any())),
        f"largest V' in the cube {number(study.attrs['rate'])}; V rises on {shares} of the sphere; "
        f"V' = {rate:+.1e} at (1.104, 0.904, 1.004)",
    )


@claim(
    "separability",
    "Def. 5.1",
    "Convex separability is stronger than convex separability after a projection.",
    expected="(2) implies (3)",
    criterion="no pair of sets is separable before a projection and not after it",
    needs=("separability",),
)
def _separability(records: Records) -> Verdict:
    study = records["separability"]
    counts = dict(zip(study.case.values.tolist(), study.counts.values.tolist(), strict=True))
    return Verdict(
        outcome(counts["before only"] == 0),
        f"of {study.attrs['trials']} pairs of sets before only {counts['before only']}, after only "
        f"{counts['after only']}: it is the other way round",
    )


@claim(
    "separability-reverse",
    "Def. 5.1",
    "Ours: what is convexly separable after a projection is so before it.",
    expected="(not in the paper: (3) implies (2))",
    criterion="no pair of sets is separable after a projection and not before it",
    needs=("separability",),
)
def _separability_reverse(records: Records) -> Verdict:
    study = records["separability"]
    counts = dict(zip(study.case.values.tolist(), study.counts.values.tolist(), strict=True))
    return Verdict(
        outcome(counts["after only"] == 0),
        f"of {study.attrs['trials']} pairs of sets after only {counts['after only']}, both {counts['both']}",
    )


@claim(
    "circles",
    "Def. 4.2",
    "MED measures how uniform an embedding is.",
    expected="one level for one degree of uniformity",
    criterion="MED / R of perfectly uniform circles differs by less than a factor of 2 over their frequencies",
    needs=("circles",),
)
def _circles(records: Records) -> Verdict:
    study = records["circles"]
    low, high = float(study.one.min()), float(study.one.max())
    return Verdict(
        outcome(high < 2 * low),
        f"from {number(low)} to {number(high)}, random vectors {number(study.attrs['random'])}",
        **spread(study.one.values),
        of="MED / R over frequencies",
        note="x + y is the same task after i → a i, which permutes the frequencies",
    )


@claim(
    "parseval",
    "Sec. 4",
    "MED is tied to the Fourier picture of earlier progress measures.",
    expected="related",
    criterion="mean |φ(i+1) − φ(i)|² = Σ P_f 4 sin²(πf/p) to 10⁻¹⁰",
    needs=("circles",),
)
def _parseval(records: Records) -> Verdict:
    error = records["circles"].attrs["parseval"]
    return Verdict(outcome(error < 1e-10), f"relative error {error:.0e}")


@claim(
    "local",
    "Sec. 5",
    "Ours: MED and local complexity, the number of hyperplanes of neurons near a point, scale alike.",
    expected="related",
    criterion="both scale alike under (W, b) → c (W, b), embeddings → c embeddings",
    needs=(),
)
def _local(records: Records) -> Verdict:
    draw = np.random.default_rng(0)
    W, b, x = draw.standard_normal((64, 16)), draw.standard_normal(64), draw.standard_normal((50, 16))
    counts = [int(theory.local_complexity(c * W, c * b, x, 0.2).sum()) for c in (1, 3)]
    embedding = draw.standard_normal((97, 16))
    meds = [float(studies.measures.main_embedding_difference(c * embedding)) for c in (1, 3)]
    return Verdict(
        outcome(abs(meds[1] / meds[0] - counts[1] / counts[0]) < 1e-9),
        f"weights × 3: local complexity × {counts[1] / counts[0]:g}; embedding × 3: MED × {meds[1] / meds[0]:g}",
    )


@claim(
    "neighbours",
    "Assumption 1 (earlier version)",
    "The weight of training neighbours grows like p², so that larger primes need fewer steps.",
    expected="∝ p²",
    criterion="it grows at least like p from p = 47 to 397",
    needs=("neighbours",),
)
def _neighbours(records: Records) -> Verdict:
    study = records["neighbours"]
    weight, p = study.weight.values, study.p.values
    return Verdict(
        outcome(weight[-1] / weight[0] >= p[-1] / p[0]),
        ", ".join(f"p = {a}: {w:.1f}" for a, w in zip(p, weight, strict=True)) + "; it grows like ln p",
    )
