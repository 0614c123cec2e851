"""What Liu et al. (2022) claim, the criteria, and the checks that decide.

The criteria hold for the paper's settings; at other parameters they are applied unchanged. Bounds come from the
paper, from the step counts that its authors released, and from an independent numpy computation made beforehand.
Most criteria were committed before their records; half of them were changed after. The register,
results/liu/criteria.json, holds every version, with why and with what the earlier one gives.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook import measures
from grokbook.chapters.liu import studies, theory
from grokbook.chapters.liu.experiments import DEFAULT_RATES, FAST_DECODER, FAST_EMBEDDINGS, LARGE, SLOW_DECODER, USUAL
from grokbook.chapters.liu.theory.phases import PHASES
from grokbook.firstform.claims import Claim, Records, Verdict, entering, number, outcome, percent, spread
from grokbook.measures import median, never_median, or_never
from grokbook.train.records import conditions, select

CLAIMS: list[Claim] = []
claim = entering(CLAIMS)

C, G, M, X = range(4)  # codes of PHASES


def _at(study: xr.Dataset, name: str, size: int) -> NDArray:
    return study[name].sel(size=size).values


def _range(values: NDArray) -> str:
    known = values[np.isfinite(values)]
    return f"{number(float(known.min()))} to {number(float(known.max()))}" if len(known) else "–"


def _shown(phases: NDArray) -> str:
    return ", ".join(f"{count} {name}" for name, count in studies.counts(phases).items() if count)


# ------------------------------------------------------------------------------------------------------- parallelograms


@claim(
    "fig9",
    "Fig. 9, App. C",
    "Adding samples in a good order closes more and more parallelograms; seven samples of p = 6 give the line.",
    expected="nullity 4, 3, 2; 2, 3, 5 seen; 3, 7, 13 of 13 follow; ideal accuracy 4/21, 6/21, 8/21",
    criterion="these integers exactly",
)
def _fig9(records: Records) -> Verdict:
    rows = [
        (
            int(theory.nullity(pairs, 6)),
            len(theory.parallelograms_of(pairs, 6)),
            int(theory.implied_parallelograms(pairs, 6).sum()),
            round(21 * float(theory.ideal_accuracy(pairs, 6))),
        )
        for pairs in studies.STAGES
    ]
    free, seen, follow, right = zip(*rows, strict=True)
    return Verdict(
        outcome(free == (4, 3, 2), seen == (2, 3, 5), follow == (3, 7, 13), right == (4, 6, 8)),
        f"nullity {free}, seen {seen}, following {follow}, right answers {right} of 21",
        note="an index of 1 with an accuracy of 0.38: few sums occur among the samples",
    )


@claim(
    "fig11",
    "Fig. 11",
    "Among four symbols any two of the three equations imply the third.",
    expected="freedom 2, 2, 2, 2, 3, 3, 3, 4; 12 arrows; 5 different closed sets",
    criterion="these integers exactly",
)
def _fig11(records: Records) -> Verdict:
    levels = theory.hierarchy(4)
    closed = len(set(levels.closure))
    return Verdict(
        outcome(levels.freedom == (2, 2, 2, 2, 3, 3, 3, 4), len(levels.arrows) == 12, closed == 5),
        f"freedom {', '.join(map(str, levels.freedom))}; {len(levels.arrows)} arrows; {closed} closed sets",
    )


@claim(
    "fig16",
    "Fig. 16, eqs 29 to 31",
    "Two vector parallelograms imply a third; with matrices two relations do not, three do.",
    expected="gap above 0.1 after two relations, below 1e-9 after three; rank 2 of three vector equations",
    criterion="in every draw of random matrices; rank exactly 2",
    needs=("deduction",),
)
def _fig16(records: Records) -> Verdict:
    study = records["deduction"]
    rows = np.zeros((3, 6))
    for row, (i, j, m, n) in zip(rows, ((0, 3, 1, 2), (2, 5, 3, 4), (0, 5, 1, 4)), strict=True):
        row[[i, j]] += 1
        row[[m, n]] -= 1
    rank = int(np.linalg.matrix_rank(rows))
    two, three = float(study.two.min()), float(study.three.max())
    return Verdict(
        outcome(two > 0.1, three < 1e-9, rank == 2),
        f"smallest gap {number(two)} after two relations, largest {three:.0e} after three; rank {rank}",
        n=study.sizes["draw"],
    )


# ------------------------------------------------------------------------------------------------ what sets imply


@claim(
    "fig4a",
    "Fig. 4a",
    "Above about 40 % of the table the line is the only solution for most training sets.",
    expected="50 % at 22.5 of 55 samples, r = 0.41; 0.427 at 22 samples",
    criterion="50 % between r = 0.395 and 0.425; 0.427 ± 4 standard errors at 22; below 1 % up to r = 0.28, above 97 % "
    "from r = 0.55; no fall from one size to the next by more than 4 standard errors; never a nullity below 2",
    needs=("ideal",),
)
def _fig4a(records: Records) -> Verdict:
    study = records["ideal"]
    if study.attrs["p"] != 10:
        return Verdict("not tested", "the reference is for p = 10")
    share = study["size"].values / study.attrs["samples"]
    line = (study.nullity == 2).mean("draw").values
    at, draws = studies.crossing(share, line), study.sizes["draw"]
    here = float(line[np.argmin(np.abs(share - 22 / 55))])
    error = 4 * np.sqrt(0.427 * 0.573 / draws)
    noise = 4 * np.sqrt((line * (1 - line))[:-1] / draws + (line * (1 - line))[1:] / draws)
    return Verdict(
        outcome(
            0.395 <= at <= 0.425,
            abs(here - 0.427) <= error,
            bool((line[share <= 0.28] < 0.01).all()),
            bool((line[share >= 0.55] > 0.97).all()),
            bool((np.diff(line) >= -noise).all()),
            int(study.nullity.min()) >= 2,
        ),
        f"50 % at r = {number(at)}; {number(here)} at r = 0.4",
        n=draws,
    )


@claim(
    "fig4a-small",
    "Fig. 4a",
    "For p = 4 every training set can be tried.",
    expected="3 of 210, 18 of 252, 43 of 210, 52 of 120, 33 of 45, 10 of 10 sets of 4 to 9 samples",
    criterion="these integers exactly",
)
def _fig4a_small(records: Records) -> Verdict:
    from itertools import combinations

    samples = measures.sums_of(4).pairs
    counts = []
    for size in range(4, 10):
        sets = np.array([samples[list(chosen)] for chosen in combinations(range(10), size)])
        counts.append(int((theory.nullity(sets, 4) == 2).sum()))
    return Verdict(outcome(counts == [3, 18, 43, 52, 33, 10]), ", ".join(map(str, counts)))


@claim(
    "fig5a",
    "Fig. 5a",
    "The grokking rate is zero below r of about 0.4 and grows above, in either reading of the average.",
    expected="ours: medians 0 up to 22 samples and above 0 from 23; means 2.37, 8.58, 13.5, 20.2 at 30, 40, 45, 50; "
    "30 at 55",
    criterion="medians as said; means within 5 %; 30 at the full table to 1e-9; means rise from 20 samples on",
    needs=("ideal",),
)
def _fig5a(records: Records) -> Verdict:
    study = records["ideal"]
    if study.attrs["p"] != 10:
        return Verdict("not tested", "the reference is for p = 10")
    middle, mean = study.rate.median("draw"), study.rate.mean("draw")
    averaged = (study.rate / np.maximum(study.parallelograms, 1)).mean("draw")
    wanted = {30: 2.37, 40: 8.58, 45: 13.53, 50: 20.2}
    apart = {size: float(mean.sel(size=size)) / value - 1 for size, value in wanted.items()}
    rising = all(bool((np.diff(one.sel(size=slice(20, 55))) > 0).all()) for one in (mean, averaged))
    return Verdict(
        outcome(
            bool((middle.sel(size=slice(1, 22)) == 0).all()) and bool((middle.sel(size=slice(23, 55)) > 0).all()),
            all(abs(one) <= 0.05 for one in apart.values()),
            abs(float(mean.sel(size=55)) - 30) < 1e-9,
            rising,
        ),
        "means " + ", ".join(f"{number(float(mean.sel(size=size)))} at {size}" for size in wanted),
        n=study.sizes["draw"],
    )


@claim(
    "fig10-ideal",
    "Fig. 10b, e",
    "An ideal model's index and accuracy rise with the data; index 1 is possible below 40 % of the table.",
    expected="ours: index .036 .136 .498 .710 .910 .993 .999 at 10, 15, 20, 22, 25, 30, 35 samples; accuracy .183 .297 "
    ".528 .661 .805 .900 .940 .981 .999 at 10, 15, 20, 22, 25, 30, 35, 45, 54",
    criterion="within 0.03 of these; some set of at most 22 samples with index 1",
    needs=("ideal",),
)
def _fig10_ideal(records: Records) -> Verdict:
    study = records["ideal"]
    if study.attrs["p"] != 10:
        return Verdict("not tested", "the reference is for p = 10")
    wanted = {
        "ideal_rqi": {10: 0.036, 15: 0.136, 20: 0.498, 22: 0.710, 25: 0.910, 30: 0.993, 35: 0.999},
        "ideal_accuracy": {
            10: 0.183,
            15: 0.297,
            20: 0.528,
            22: 0.661,
            25: 0.805,
            30: 0.900,
            35: 0.940,
            45: 0.981,
            54: 0.999,
        },
    }
    apart = max(
        abs(float(_at(study, name, size).mean()) - value) for name, row in wanted.items() for size, value in row.items()
    )
    full = study.ideal_rqi.sel(size=slice(1, 22)) == 1
    least = int(study["size"].values[:22][full.any("draw").values].min()) if bool(full.any()) else None
    return Verdict(
        outcome(apart <= 0.03, least is not None),
        f"largest difference {number(apart)}; index 1 from {least or 'no set of'} samples on",
        n=study.sizes["draw"],
    )


# ------------------------------------------------------------------------------------------------------ the toy model


@claim(
    "fig3",
    "Fig. 3",
    "The accuracy of a network is what its embeddings allow.",
    expected="correlation 0.996, mean difference 0.019 (33 runs of the authors)",
    criterion="correlation ≥ 0.97 and mean difference ≤ 0.05 over at least 30 runs; accuracy ≥ r − 0.06 in all; mean "
    "accuracy at 45 samples ≥ 0.90; mean gain over memorising at 25 to 35 samples ≥ 0.05",
    needs=("fractions",),
)
def _fig3(records: Records) -> Verdict:
    found = studies.outcomes(records["fractions"])
    real, hat, r = found.accuracy.values, found.predicted.values, found.fraction.values
    correlation, apart = float(np.corrcoef(real, hat)[0, 1]), float(np.abs(real - hat).mean())
    late = real[np.isclose(r, 45 / 55, atol=0.01)].mean() if np.isclose(r, 45 / 55, atol=0.01).any() else np.nan
    middle = (r > 0.44) & (r < 0.65)
    gain = float((real - r)[middle].mean()) if middle.any() else np.nan
    return Verdict(
        outcome(
            correlation >= 0.97 and apart <= 0.05 and len(real) >= 30,
            bool((real >= r - 0.06).all()),
            late >= 0.90,
            gain >= 0.05,
        ),
        f"correlation {number(correlation)}, mean difference {number(apart)}; accuracy {number(float(late))} at r = "
        f"0.82; "
        f"gain {number(gain)} at r near 0.55",
        **spread(np.abs(real - hat)),
        of="difference",
    )


@claim(
    "fig10-real",
    "Fig. 10c, f",
    "Real models stay at or below the ideal ones, but for very rare lucky ones.",
    expected="lucky exceptions at r up to 0.37 only",
    criterion="from r = 0.45 on no accuracy above the ideal by more than 0.02 and no index by more than 0.05; below, "
    "none by more than 0.20; no more than 5 % of all runs above in accuracy (added later)",
    needs=("fractions",),
)
def _fig10_real(records: Records) -> Verdict:
    found = studies.outcomes(records["fractions"])
    accuracy = (found.accuracy - found.ideal_accuracy).values
    index = (found.rqi - found.ideal_rqi).values
    high = found.fraction.values >= 0.45
    if high.all() or not high.any():
        return Verdict("not tested", "runs on both sides of r = 0.45 are needed")
    small = 1e-6  # accuracies are made of single-precision ones
    lucky, above = int((accuracy[~high] > small).sum()), float((accuracy > small).mean())
    return Verdict(
        outcome(
            bool((accuracy[high] <= 0.02 + small).all()) and bool((index[high] <= 0.05).all()),
            bool((np.maximum(accuracy, index)[~high] <= 0.20 + small).all()),
            above <= 0.05,
        ),
        f"from r = 0.45 on at most {number(float(accuracy[high].max()))} above in accuracy and "
        f"{number(float(index[high].max()))} in index; below, {lucky} of {int((~high).sum())} runs are above in "
        f"accuracy, by at most {number(float(accuracy[~high].max()))}, and the index by at most "
        f"{number(float(index[~high].max()))}",
        n=len(accuracy),
    )


@claim(
    "fig4b",
    "Fig. 4b",
    "Networks find the line above a critical share of data, sooner the more data there are.",
    expected="ours: 50 % between r = 0.61 and 0.77",
    criterion="≤ 1 % of runs with a nullity above 2 get there; ≥ 85 % do at r ≥ 0.9 and ≤ 5 % at r ≤ 0.33; rank "
    "correlation "
    "of success with r ≥ 0.9; median steps at r ≥ 0.9 at most 0.75 of those at 0.5 to 0.65 (a bound on where 50 % "
    "lies, which the paper's own 0.4 would not have met, was taken out later: the next claim is about that)",
    needs=("structure_times",),
)
def _fig4b(records: Records) -> Verdict:
    found = studies.structure(records["structure_times"])
    own = found.isel(run=np.flatnonzero(found.label.values == FAST_EMBEDDINGS))
    r, there = own.fraction.values, np.isfinite(own.steps.values)
    shares = np.unique(r)
    success = np.array([there[r == one].mean() for one in shares])
    impossible = own.nullity.values > 2
    forbidden = float(there[impossible].mean()) if impossible.any() else 0.0
    at = studies.crossing(shares, success)
    high, low = r >= 0.9, r <= 0.33
    fast = median(own.steps.values[high]) / median(own.steps.values[(r >= 0.5) & (r <= 0.65)])
    return Verdict(
        outcome(
            forbidden <= 0.01,
            bool(high.any() and there[high].mean() >= 0.85) and bool(not low.any() or there[low].mean() <= 0.05),
            studies.rank_correlation(shares, success) >= 0.9,
            fast <= 0.75,
        ),
        f"50 % of networks at r = {number(at)}; {percent(float(there[high].mean()) if high.any() else None)} at r ≥ "
        f"0.9; "
        f"{percent(forbidden)} of those whose set does not imply the line; steps there fall to {number(fast)}",
        n=len(r),
    )


@claim(
    "fig4b-share",
    "Fig. 4b",
    "Networks need the theory's critical share, about 0.4.",
    expected="0.4, the median of three seeds; the theory's share for random training sets",
    criterion="50 % of the networks find the line within 0.05 of r = 0.4 and of the theory's share (added later)",
    needs=("structure_times", "ideal"),
)
def _fig4b_share(records: Records) -> Verdict:
    at, theirs = studies.critical_shares(records)
    return Verdict(
        outcome(abs(at - 0.4) <= 0.05 and abs(at - theirs) <= 0.05),
        f"networks {number(at)}, theory {number(theirs)}",
        n=int((records["structure_times"].label.values == FAST_EMBEDDINGS).sum()),
        note="the theory's share is where the line becomes the only solution; networks need more to find it",
    )


@claim(
    "fig5b",
    "Fig. 5b",
    "The theory's 1/(λ₃η) follows the steps that networks need.",
    expected="ours: rank correlation 0.66 (54 runs), slope 0.31 instead of 1",
    criterion="rank correlation ≥ 0.45 over ≥ 40 runs; both medians fall from r = 0.65 to 0.98; theory (sum, η = 1e-3 "
    "as in the paper) over network (embeddings at 1e-2) between 0.3 and 4 from 36 samples on; over networks whose "
    "embeddings learn at 1e-3, too, as the paper's do (added later)",
    needs=("structure_times",),
)
def _fig5b(records: Records) -> Verdict:
    found = studies.structure(records["structure_times"])
    own = found.isel(run=np.flatnonzero(found.label.values == FAST_EMBEDDINGS))
    if np.isfinite(own.steps.values).sum() < 3:
        return Verdict("not reproduced", "fewer than three networks found the line")
    agreement = theory.rate_agreement(own.steps.values, own["sum"].values)
    sizes, steps = studies.by_size(own, "steps")
    predicted = studies.by_size(own, "predicted")[1]
    r = np.array([own.fraction.values[own["size"].values == size][0] for size in sizes])
    late = r >= 36 / 55 - 1e-9
    both = np.array([[median(one), median(other)] for one, other in zip(steps, predicted, strict=True)])[late]
    ratio = both[:, 1] / both[:, 0]
    interval = " to ".join(number(one) for one in agreement.spearman_interval)
    everywhere = studies.theory_over_network(own)[1]
    shares, usual = studies.theory_over_network(found.isel(run=np.flatnonzero(found.label.values == DEFAULT_RATES)))
    papers = usual[(shares >= 36 / 55 - 1e-9) & np.isfinite(usual)]
    wait = np.where(own["sum"] > 0, 1 / np.maximum(own["sum"].values, 1e-300), np.nan)
    within = studies.rank_correlation(own.steps.values, wait, own["size"].values)
    return Verdict(
        outcome(
            agreement.spearman >= 0.45 and agreement.runs >= 40,
            bool(len(both) > 1 and (both[-1] < both[0]).all()),
            bool(((ratio >= 0.3) & (ratio <= 4)).all()),
            bool(len(papers) and ((papers >= 0.3) & (papers <= 4)).all()),
        ),
        f"rank correlation {number(agreement.spearman)} ({interval}), slope {number(agreement.slope)} "
        f"({' to '.join(number(one) for one in agreement.slope_interval)}); theory over network "
        f"{number(float(np.nanmin(ratio)))} to {number(float(np.nanmax(ratio)))}",
        n=agreement.runs,
        note=f"agreement is one of trend, and among sets of one size the rank correlation "
        f"is {number(within)}; over all sizes theory over network is {_range(everywhere)}, "
        f"for embeddings at 1e-3 it is {_range(usual)}, and {_range(papers)} from 36 samples on; with η = 1e-2, "
        f"the rate of these networks, theory over network is a tenth of that",
    )


@claim(
    "fig4cd",
    "Fig. 4c, d",
    "The flow and a network agree in kind, and both reach the line in about 3 n_h steps.",
    expected="ours: n_h 362; network's line distance 0.41, 0.033, 0.009 at steps 360, 720, 1080; RQI > 0.95 at "
    "step 801",
    criterion="flow: line fit ≥ 0.999 at 7 n_h, size kept to 1e-8, rate from 10 to 12 n_h within 5 % of λ₃, distance "
    "at 3 n_h ≤ e⁻³ of its start; network: RQI 1 and fit ≥ 0.99 at the end, RQI > 0.95 within a factor 3 of 3 n_h; "
    "both, the flow at 12 n_h, in the order of the symbols; the flow's fit ≥ 0.95 at 3 n_h (added later)",
    needs=("trajectory",),
)
def _fig4cd(records: Records) -> Verdict:
    run = records["trajectory"].isel(run=0)
    path = studies.trajectory(records["trajectory"])
    start = path.network[0][:, None]
    pairs = studies.task_of(run).train_pairs(int(run.seed))
    rate = float(run.W_E_lr)
    steps = np.array([0, 3, 7, 10, 12]) * path.n_h
    flow = theory.flow(start, pairs, rate * steps)
    rho, r2 = theory.line_fit(flow).rho, theory.line_fit(flow).r2
    kept = np.ptp(theory.conserved(flow).Z0) / float(theory.conserved(start).Z0)
    slope = -np.log(rho[4] / rho[3]) / (rate * (steps[4] - steps[3])) * (rate * path.n_h)
    end = path.network[-1][:, None]
    reached = float(run.reached_rqi)
    monotone = [
        bool((np.diff(values) > 0).all() or (np.diff(values) < 0).all()) for values in (flow[4][:, 0], end[:, 0])
    ]
    return Verdict(
        outcome(
            bool(r2[2] >= 0.999 and kept <= 1e-8),
            bool(abs(slope - 1) <= 0.05 and rho[1] <= np.exp(-3) * rho[0] * (1 + 1e-9)),
            bool(measures.representation_quality_index(end) == 1 and theory.line_fit(end).r2 >= 0.99),
            bool(path.n_h <= reached <= 9 * path.n_h),
            all(monotone),
            bool(r2[1] >= 0.95),
        ),
        f"n_h = {number(path.n_h)}; flow's fit {number(float(r2[1]))} at 3 n_h and {r2[2]:.4f} at 7 n_h; network: "
        f"RQI > 0.95 "
        f"at step {number(reached)}, fit {number(float(theory.line_fit(end).r2))} at the end",
        note=f"the time to the line is n_h times log(10 ρ(0)), here {number(float(np.log(10 * rho[0])))} n_h, not 3",
    )


@claim(
    "conserved",
    "App. F, eq. 27",
    "The flow of the effective loss conserves the sum C and the size Z₀.",
    expected="Z₀ always; C only if it is 0 at the start: shifted by 1 it goes from 10 to 13.5",
    criterion="both constant to 1e-6 from a centred start; from a shifted one too (added later)",
    needs=("conservation",),
)
def _conserved(records: Records) -> Verdict:
    study = records["conservation"].sel(flow="exact")
    centred, shifted = study.sel(start="centred"), study.sel(start="shifted")
    size = float(np.abs(centred.Z0 / centred.Z0[0] - 1).max())
    drift = float(np.abs(centred.C).max())
    moved = float(shifted.C[-1] / shifted.C[0])
    return Verdict(
        outcome(size <= 1e-6 and drift <= 1e-6, abs(moved - 1) <= 1e-6),
        f"size to {size:.0e}, sum to {drift:.0e}; from a shifted start the sum grows to {number(moved)} times its "
        f"value",
        note="eq. 27 drops the term 2 l₀ C / Z₀²; the size is kept from a shifted start too",
    )


@claim(
    "attraction",
    "App. L, eqs 40, 41",
    "Samples with one label attract each other linearly when the decoder learns slowly.",
    expected="e^{−t} for a decoder at rest; a fast one leaves them apart",
    criterion="distance within 1e-4 of e^{−t} for a decoder whose A rests; within 0.1 in the median at a tenth of the "
    "embeddings' rate; at ten times their rate more than half of the distance is left in the median",
    needs=("attraction",),
)
def _attraction(records: Records) -> Verdict:
    study = records["attraction"]
    apart = np.abs(study.separation - study.limit).max("time")
    rest, slow = float(apart.sel(rate=0.0).max()), median(apart.sel(rate=0.1).values)
    left = study.separation.sel(rate=10.0).isel(time=-1).values
    return Verdict(
        outcome(rest <= 1e-4, slow <= 0.1, median(left) > 0.5),
        f"{rest:.0e} from the limit at rest, {number(slow)} at a tenth of the rate; {percent(median(left))} of the "
        "distance left at ten times the rate",
        **spread(left),
        of="distance left, fast decoder",
    )


@claim(
    "fig12",
    "Fig. 12",
    "A fast decoder leaves equations broken that a slow one lets the embeddings satisfy.",
    expected="ours: mean number of equations 0.55 and 2.60; all three in 16 of 20 with the slow decoder",
    criterion="difference of the means ≥ 1; all three in ≥ 50 % with the slow decoder and ≤ 25 % with the fast one; "
    "at most "
    "2 runs with exactly two",
    needs=("four_symbols",),
)
def _fig12(records: Records) -> Verdict:
    record = records["four_symbols"]
    fast, slow = (studies.formed(select(record, label=label)) for label in (FAST_DECODER, SLOW_DECODER))
    means = fast.sum(1).mean(), slow.sum(1).mean()
    two = int((fast.sum(1) == 2).sum() + (slow.sum(1) == 2).sum())
    return Verdict(
        outcome(means[1] - means[0] >= 1, slow.all(1).mean() >= 0.5 and fast.all(1).mean() <= 0.25, two <= 2),
        f"{number(float(means[0]))} equations with the fast decoder, {number(float(means[1]))} with the slow one; "
        f"all three in "
        f"{int(fast.all(1).sum())} and {int(slow.all(1).sum())} of {len(slow)}; exactly two in {two}",
        **spread(slow.sum(1)),
        of="equations, slow decoder",
    )


@claim(
    "fig2",
    "Fig. 2",
    "Where a network generalises its embeddings are ordered, and where it memorises they are not.",
    expected="ours: best of 8 seeds in (b) and (d); one in four in (d)",
    criterion="(a), (c): train ≥ 0.99 and held-out ≤ 0.3 in the median; (b): best held-out ≥ 0.8, and best on held-out "
    "pairs whose mirror image is held out too ≥ 0.8 of what an ideal model would know; (d): best on held-out samples, "
    "of equals the best ring, with train ≥ 0.98, ring share ≥ 0.9 and held-out ≥ 0.6, and at least one seed with ring "
    "share below 0.6",
    needs=("planes",),
)
def _fig2(records: Records) -> Verdict:
    own = dict(conditions(records["planes"]))
    train, test = ({k: studies.last(v, f"{split}_accuracy") for k, v in own.items()} for split in ("train", "test"))
    best, share = studies.best_ring(own["d"])
    pairs = studies.mirrors(own["b"])
    new = pairs.right / np.maximum(pairs.held - pairs.mirrored, 1)
    return Verdict(
        outcome(
            all(median(train[k]) >= 0.99 and median(test[k]) <= 0.3 for k in "ac"),
            bool(test["b"].max() >= 0.8 and (new >= 0.8 * pairs.ideal).any()),
            train["d"][best] >= 0.98 and share[best] >= 0.9 and test["d"][best] >= 0.6,
            bool((share < 0.6).any()),
        ),
        f"held out: "
        f"{', '.join(f'({k}) {number(median(v))}, best {number(float(v.max()))}' for k, v in test.items())}; ring "
        f"share in (d) {number(float(share[best]))} of the best network, {number(median(share))} in the median",
        n=len(share),
        note=f"(b) takes (i, j) and (j, i) for two samples with one input: {pairs.mirrored.min()} to "
        f"{pairs.mirrored.max()} of {pairs.held[0]} held-out pairs have their mirror image in training; of the others "
        f"the networks that know their training set get a share of {_range(new)}",
    )


# ------------------------------------------------------------------------------------------------------ phase diagrams


def _panel(records: Records, name: str) -> tuple[studies.Diagram, NDArray, float]:
    found, budget = studies.panel_diagram(records, name), studies.budget_of(records[name])
    return found, found.map(budget=budget)[0], budget


def _too_short(phases: NDArray, budget: float) -> Verdict | None:
    """No verdict where nothing has been learnt: a criterion on what generalises would hold of itself."""
    if (phases == X).all():
        return Verdict("not tested", f"{_shown(phases)}: nothing is learnt within {number(budget)} steps")
    return None


def _no_reference(record: xr.Dataset) -> Verdict | None:
    """No verdict on a table that the published step counts are not of."""
    if not studies.of_published_table(record):
        return Verdict("not tested", f"the published diagrams are for {studies.PUBLISHED_TABLE}")
    return None


@claim(
    "fig6a",
    "Fig. 6a",
    "Embeddings must learn faster than the decoder: below a constant ratio of the rates there is no generalisation.",
    expected="29 comprehension, 31 grokking, 109 memorisation; boundary 1.8 to 5.6 times the decoder's rate",
    criterion="phases as published in ≥ 85 % of cells; boundary ratio in [1, 20] for ≥ 80 % of decoder rates that "
    "have one, "
    "log-log slope 1 ± 0.25; nothing generalises at ratios ≤ 1/3; no confusion",
    needs=("phases_rates",),
)
def _fig6a(records: Records) -> Verdict:
    found, phases, budget = _panel(records, "phases_rates")
    if untold := _no_reference(records["phases_rates"]) or _too_short(phases, budget):
        return untold
    same = studies.agreement(found, "rates", budget=budget).phases.mean()
    edge = _boundary(found, phases)
    return Verdict(
        outcome(same >= 0.85, edge.constant, edge.none_below, not (phases == X).any()),
        f"{_shown(phases)}; {percent(float(same))} as published{_cut(budget)}; boundary at {number(edge.ratio)} times "
        f"the decoder's rate, slope {number(edge.slope)}",
        n=phases.size,
    )


class Boundary(NamedTuple):
    """Between what generalises and what does not, in a diagram of the embeddings' rate over the decoder's."""

    constant: bool  #: a ratio in [1, 20] for 80 % of the decoder's rates that have one, and a slope of 1 ± 0.25
    none_below: bool  #: nothing generalises where the embeddings learn at a third of the decoder's rate or less
    ratio: float  #: of the two rates, in the median
    slope: float  #: of its logarithm against that of the decoder's rate


def _boundary(found: studies.Diagram, phases: NDArray) -> Boundary:
    good = phases <= G
    columns = np.flatnonzero(good.any(0) & ~good.all(0))
    edge = np.array([found.y[good[:, c]].min() for c in columns])
    ratio = edge / found.x[columns]
    inside = (ratio >= 1 - 1e-9) & (ratio <= 20)
    slope = float(np.polyfit(np.log(found.x[columns]), np.log(edge), 1)[0]) if len(columns) > 1 else float("nan")
    slow = found.y[:, None] / found.x[None, :] <= 1 / 3
    return Boundary(
        bool(len(columns)) and bool(inside.mean() >= 0.8) and abs(slope - 1) <= 0.25,
        not good[slow].any(),
        median(ratio),
        slope,
    )


def _cut(budget: float) -> str:
    """What has to be said where the published step counts are cut at the length of ours."""
    return f" (both cut at {number(budget)} steps)" if budget < studies.PUBLISHED_BUDGET else ""


def _cut_alike(records: Records, name: str) -> str:
    """What the published diagram shows if it is cut at the length of our runs, as a note; nothing where they are whole.

    A phase that this has, too, says nothing about splits.
    """
    found, _, budget = _panel(records, name)
    if budget >= studies.PUBLISHED_BUDGET or not studies.of_published_table(records[name]):
        return ""
    theirs = studies.published_at(found, studies.PANELS[name.removesuffix("_splits")][0]).map(budget=budget)[0]
    return f"the published diagram, cut at {number(budget)} steps on this grid: {_shown(theirs)}"


@claim(
    "fig6a-splits",
    "Fig. 6a",
    "The boundary is the same for other splits.",
    expected="boundary 1 to 20 times the decoder's rate",
    criterion="majority over 3 splits: boundary ratio in [1, 20] for ≥ 80 % of decoder rates that have one, log-log "
    "slope 1 ± 0.25; nothing generalises at ratios ≤ 1/3; no confusion",
    needs=("phases_rates_splits",),
)
def _fig6a_splits(records: Records) -> Verdict:
    found, phases, budget = _panel(records, "phases_rates_splits")
    if untold := _too_short(phases, budget):
        return untold
    edge = _boundary(found, phases)
    return Verdict(
        outcome(edge.constant, edge.none_below, not (phases == X).any()),
        f"{_shown(phases)}; boundary at {number(edge.ratio)} times the decoder's rate, slope {number(edge.slope)}",
        n=found.t_val.shape[-1],
        note=_cut_alike(records, "phases_rates_splits"),
    )


class _Comparison(NamedTuple):
    """One panel of Fig. 6 against the published one."""

    words: str
    n: int
    phases: NDArray
    found: studies.Diagram
    same: float  #: share of the cells whose phase is the published one
    near: float  #: share of the published generalising cells whose times are within 1 %


def _against_published(records: Records, name: str) -> _Comparison | Verdict:
    found, phases, budget = _panel(records, name)
    if untold := _no_reference(records[name]) or _too_short(phases, budget):
        return untold
    same = studies.agreement(found, studies.PANELS[name][0], budget=budget)
    near = float((same.steps <= 0.01).mean()) if len(same.steps) else float("nan")
    alike = percent(float(same.phases.mean()))
    words = f"{_shown(phases)}; {alike} of phases as published{_cut(budget)}, {percent(near)} of times to 1 %"
    return _Comparison(words, phases.size, phases, found, float(same.phases.mean()), near)


FIG6_SWEEPS = ("phases_regression", "phases_classification", "phases_group")


@claim(
    "fig6b",
    "Fig. 6b",
    "Regression has the four phases: cell by cell, those that are published.",
    expected="17 comprehension, 60 grokking, 60 memorisation, 39 confusion; most generalising cells to the step",
    criterion="phases as published in ≥ 90 % of cells and both times within 1 % in ≥ 90 % of the published "
    "generalising ones",
    needs=("phases_regression",),
)
def _fig6b(records: Records) -> Verdict:
    both = _against_published(records, "phases_regression")
    if isinstance(both, Verdict):
        return both
    return Verdict(outcome(both.same >= 0.9, both.near >= 0.9), both.words, n=both.n)


@claim(
    "fig6b-order",
    "Fig. 6b–d, section 4",
    "Grokking is sandwiched between comprehension and memorisation.",
    expected="in (b) along growing decay 4 steps from comprehension to grokking, none to memorisation; along the rate "
    "6",
    criterion="in (b) along growing weight decay no step from comprehension to memorisation, and some to grokking; in "
    "(b), (c) and (d) comprehension touches memorisation neither along the decay nor along the rate (added later)",
    needs=FIG6_SWEEPS,
)
def _fig6b_order(records: Records) -> Verdict:
    touching = {}
    for name in FIG6_SWEEPS:
        _, phases, budget = _panel(records, name)
        if not (phases <= G).any():
            return Verdict("not tested", f"{_shown(phases)}: nothing generalises within {number(budget)} steps")
        touching[studies.PANEL_TITLES[name][0]] = [studies.borders(phases, axis).get((C, M), 0) for axis in (0, 1)]
    phases = _panel(records, FIG6_SWEEPS[0])[1]
    up = [(int(a), int(b)) for a, b in zip(phases[:-1].ravel(), phases[1:].ravel(), strict=True)]
    direct, soft = up.count((C, M)), up.count((C, G))
    along, beside = zip(*touching.values(), strict=True)
    return Verdict(
        outcome(direct == 0 and soft > 0, not any(along), not any(beside)),
        f"in (b) {soft} steps from comprehension to grokking and {direct} to memorisation along growing decay; cells "
        f"of comprehension that touch memorisation in {', '.join(f'({one})' for one in touching)}: along the decay "
        f"{', '.join(map(str, along))}, along the rate {', '.join(map(str, beside))}",
    )


@claim(
    "fig6b-splits",
    "Fig. 6b",
    "The same four phases for other splits.",
    expected="all four phases",
    criterion="majority over 3 splits: each phase in ≥ 4 % of cells; highest rate without decay memorises, with the "
    "highest "
    "decay it is confused; ≥ 75 % of comprehension at rates ≤ 1e-3; steps from comprehension to memorisation along the "
    "decay ≤ 20 % of those to grokking, plus 1",
    needs=("phases_regression_splits",),
)
def _fig6b_splits(records: Records) -> Verdict:
    found, phases, budget = _panel(records, "phases_regression_splits")
    if untold := _too_short(phases, budget):
        return untold
    shares = [(phases == code).mean() for code in range(4)]
    up = [(int(a), int(b)) for a, b in zip(phases[:-1].ravel(), phases[1:].ravel(), strict=True)]
    columns = np.broadcast_to(found.x, phases.shape)[phases == C]
    slow = float((columns <= 1.001e-3).mean()) if len(columns) else np.nan
    return Verdict(
        outcome(
            min(shares) >= 0.04,
            phases[0, -1] == M and phases[-1, -1] == X,
            slow >= 0.75,
            up.count((C, M)) <= 0.2 * up.count((C, G)) + 1,
        ),
        f"{_shown(phases)}; corners {PHASES[phases[0, -1]]}, {PHASES[phases[-1, -1]]}; {percent(slow)} of "
        f"comprehension at rates up to 1e-3; {up.count((C, M))} steps from comprehension to memorisation, "
        f"{up.count((C, G))} to grokking",
        n=found.t_val.shape[-1],
        note=_cut_alike(records, "phases_regression_splits"),
    )


@claim(
    "fig6c",
    "Fig. 6c",
    "Classification has the same phases, and grokking needs more decay than comprehension.",
    expected="30 comprehension, 85 grokking, 50 memorisation, 11 confusion",
    criterion="phases as published in ≥ 85 % of cells; median decay of grokking cells ≥ 4 above comprehension's; all "
    "four "
    "phases occur",
    needs=("phases_classification",),
)
def _fig6c(records: Records) -> Verdict:
    both = _against_published(records, "phases_classification")
    if isinstance(both, Verdict):
        return both
    phases, found = both.phases, both.found
    rows = np.broadcast_to(found.y[:, None], phases.shape)
    apart = median(rows[phases == G]) - median(rows[phases == C])
    return Verdict(
        outcome(both.same >= 0.85, apart >= 4, all((phases == code).any() for code in range(4))),
        f"{both.words}; median decay of grokking {number(apart)} above comprehension's",
        n=both.n,
    )


@claim(
    "fig6c-splits",
    "Fig. 6c",
    "The corners of the diagram are the same for other splits.",
    expected="memorisation and confusion",
    criterion="majority over 3 splits: highest rate without decay memorises, with the highest decay it is confused",
    needs=("phases_classification_splits",),
)
def _fig6c_splits(records: Records) -> Verdict:
    found, phases, budget = _panel(records, "phases_classification_splits")
    if untold := _too_short(phases, budget):
        return untold
    return Verdict(
        outcome(phases[0, -1] == M, phases[-1, -1] == X),
        f"{_shown(phases)}; corners {PHASES[phases[0, -1]]}, {PHASES[phases[-1, -1]]}",
        n=found.t_val.shape[-1],
        note=_cut_alike(records, "phases_classification_splits"),
    )


@claim(
    "fig6d",
    "Fig. 6d",
    "The permutation group S₃ has the four phases too.",
    expected="73 comprehension, 31 grokking, 62 memorisation, 10 confusion",
    criterion="majority over 3 splits: all four phases occur; for rates in [5e-5, 2e-4] and decay ≤ 30 at least 60 % "
    "of cells generalise; without both, not reproduced; nothing generalises at decay 200; confusion only from decay "
    "50 on",
    needs=("phases_group_splits",),
)
def _fig6d(records: Records) -> Verdict:
    found, phases, budget = _panel(records, "phases_group_splits")
    if untold := _too_short(phases, budget):
        return untold
    middle = ((found.x >= 5e-5) & (found.x <= 2e-4))[None, :] & (found.y <= 30)[:, None]
    good = float((phases[middle] <= G).mean()) if middle.any() else np.nan
    rows = np.broadcast_to(found.y[:, None], phases.shape)
    confused = rows[phases == X]
    main = all((phases == code).any() for code in range(4)) and good >= 0.6
    rest = not (phases[found.y >= 200] <= G).any(), not len(confused) or bool(confused.min() >= 50)
    return Verdict(
        outcome(main, *rest) if main else "not reproduced",  # where nothing generalises the rest holds of itself
        f"{_shown(phases)}; {percent(good)} of the middle generalise; least decay with confusion "
        f"{number(float(confused.min())) if len(confused) else '–'}",
        n=found.t_val.shape[-1],
    )


@claim(
    "fig6d-published",
    "Fig. 6d",
    "S₃ on the split of the publication: the same phases, cell by cell.",
    expected="73 comprehension, 31 grokking, 62 memorisation, 10 confusion",
    criterion="phases as published in ≥ 85 % of cells; all four phases occur, comprehension most often (added later: "
    "split, start and norm are not in the paper and were found by the published step counts)",
    needs=("phases_group",),
)
def _fig6d_published(records: Records) -> Verdict:
    both = _against_published(records, "phases_group")
    if isinstance(both, Verdict):
        return both
    phases, counts = both.phases, studies.counts(both.phases)
    return Verdict(
        outcome(
            both.same >= 0.85,
            all((phases == code).any() for code in range(4)),
            counts[PHASES[C]] == max(counts.values()),
        ),
        both.words,
        n=both.n,
    )


@claim(
    "fig13",
    "Fig. 13",
    "Smaller batches seem harmful.",
    expected="ours: at batch 5 the training set is not learnt in 5,000 steps, at 45 in about 1,400 (rate 1e-4)",
    criterion="regression, rates ≤ 3.2e-4: median t_train at batch 5 (or the next smaller) at least twice that at the "
    "full one, or never; of the regression's networks a smaller share generalises at that batch than at the full one "
    "(added later)",
    needs=("phases_batch",),
)
def _fig13(records: Records) -> Verdict:
    record = records["phases_batch"]
    sizes = studies.batch_sizes(record)
    own = (record.label.values == "regression") & (record.lr.values <= 3.3e-4)
    t = record.reached_train_accuracy.values
    small = sizes[sizes <= 5].max() if (sizes <= 5).any() else sizes.min()
    if small == sizes.max() or not own.any():
        return Verdict("not tested", "two batch sizes and a rate of at most 3.2e-4 are needed")
    slow, fast = (never_median(t[own & (sizes == size)]) for size in (small, sizes.max()))
    good, all_rates = np.isfinite(record.reached_test_accuracy.values), record.label.values == "regression"
    fewer, more = (float(good[all_rates & (sizes == size)].mean()) for size in (small, sizes.max()))
    return Verdict(
        outcome(np.isfinite(fast) and slow >= 2 * fast, fewer < more),
        f"median t_train {'never' if np.isinf(slow) else number(slow)} at batch {number(float(small))}, "
        f"{'never' if np.isinf(fast) else number(fast)} at the full batch; {percent(fewer)} against {percent(more)} "
        "generalise",
        n=int(own.sum()),
    )


@claim(
    "fig14",
    "Fig. 14",
    "Small initial embeddings help generalisation.",
    expected="ours: at rate 1e-3 all of six at scale 0.3 or less, none at 3 or more",
    criterion="rates near 1e-3: share that generalises at scale ≤ 0.3 less that at ≥ 3 is ≥ 0.6 for both tasks",
    needs=("phases_scale",),
)
def _fig14(records: Records) -> Verdict:
    record = records["phases_scale"]
    here = np.abs(np.log10(record.lr.values) + 3) < 0.3
    good = np.isfinite(record.reached_test_accuracy.values)
    gains = []
    for label in ("regression", "classification"):
        own = here & (record.label.values == label)
        low, high = (own & (record.init_scale.values <= 0.31)), (own & (record.init_scale.values >= 2.9))
        gains.append(float(good[low].mean() - good[high].mean()) if low.any() and high.any() else np.nan)
    return Verdict(
        outcome(*(gain >= 0.6 for gain in gains)),
        f"gain {number(gains[0])} in regression, {number(gains[1])} in classification",
        n=int(here.sum()),
    )


@claim(
    "fig15",
    "Fig. 15",
    "Weight decay of the embeddings hardly matters.",
    expected="ours: slower, but the same phase",
    criterion="majority phase differs in ≤ 30 % of cells between decay 0 and decay 1 (or the next larger one)",
    needs=("phases_decay",),
)
def _fig15(records: Records) -> Verdict:
    record = records["phases_decay"]
    changed = []
    for _, own in conditions(record):
        found = studies.diagram(own, "lr", "W_E_weight_decay")
        if found.y[0] > 0 or found.y[-1] < 1 - 1e-9:
            return Verdict("not tested", "decay 0 and a decay of at least 1 are needed")
        phases = found.map(budget=studies.budget_of(record))[0]
        row = int(np.argmin(np.where(found.y >= 1 - 1e-9, found.y, np.inf)))
        changed.append(phases[0] != phases[row])
    share = float(np.mean(changed))
    return Verdict(outcome(share <= 0.3), f"{percent(share)} of cells change their phase", n=record.sizes["run"])


# ------------------------------------------------------------------------------------------------------------------ S3


@claim(
    "fig17",
    "Fig. 17",
    "The six matrices of S₃ form a hexagon in a plane of principal components.",
    expected="ours: 4 or 5 components of nearly equal size; a hexagon in some plane of the first four",
    criterion="best run of 30 samples (on held-out ones, then by RQI, then nearest to a hexagon): held-out 1, RQI ≥ "
    "0.9, 4 or 5 components above 2 % of the variance; in some plane of the first four, largest gap ≤ 110° and "
    "variation of the radius ≤ 0.35",
    needs=("group_fractions",),
)
def _fig17(records: Records) -> Verdict:
    record = records["group_fractions"]
    chosen, found = studies.best_of_thirty(record)
    embedding = record.W_E.isel(run=chosen, snapshot=-1).values.astype(float).reshape(6, -1)
    shape, share = studies.hexagon(embedding), studies.principal(embedding)[1]
    rank = int((share > 0.02).sum())
    test, rqi = float(found.test_accuracy[chosen]), float(found.rqi[chosen])
    return Verdict(
        outcome(test == 1 and rqi >= 0.9, rank in (4, 5), shape.misfit <= 1),
        f"held-out {number(test)}, RQI {number(rqi)}; {rank} components; largest gap {number(shape.gap)}°, radius ± "
        f"{percent(shape.spread)}",
        n=int((found["size"] == found["size"][chosen]).sum()),
    )


@claim(
    "fig18",
    "Fig. 18",
    "S₃ has its transition near half of the table.",
    expected="ours: best accuracy 1 and best RQI 0.91 at r = 0.5 to 0.67; below 0.42 the best RQI is under 0.3",
    criterion="best accuracy ≥ 0.95 at r = 0.5 and ≤ 0.7 at 0.33; best RQI ≤ 0.3 up to r = 0.42 and ≥ 0.8 from 0.58; "
    "the "
    "first r with a seed at RQI > 0.95 in [0.45, 0.70]",
    needs=("group_fractions",),
)
def _fig18(records: Records) -> Verdict:
    found = studies.group_outcomes(records["group_fractions"])
    r = found.fraction.values
    shares = np.unique(r)
    best = {name: np.array([found[name].values[r == one].max() for one in shares]) for name in ("accuracy", "rqi")}
    there = np.array([np.isfinite(found.steps.values[r == one]).any() for one in shares])
    first = float(shares[there][0]) if there.any() else np.nan

    def near(share: float) -> int:
        return int(np.argmin(np.abs(shares - share)))

    return Verdict(
        outcome(
            best["accuracy"][near(0.5)] >= 0.95 and best["accuracy"][near(1 / 3)] <= 0.7,
            bool((best["rqi"][shares <= 0.42] <= 0.3).all()) and bool((best["rqi"][shares >= 0.58] >= 0.8).all()),
            0.45 <= first <= 0.70,
        ),
        f"best accuracy {number(float(best['accuracy'][near(1 / 3)]))} at r = 0.33, "
        f"{number(float(best['accuracy'][near(0.5)]))} "
        f"at 0.5; RQI > 0.95 first at r = {number(first)}",
        n=len(r),
    )


@claim(
    "fig18-bound",
    "Fig. 18d, e",
    "The accuracy that the matrices predict is a lower bound.",
    expected="ours: never above the real one in 88 runs",
    criterion="accuracy ≥ predicted − 0.03 in ≥ 95 % of runs",
    needs=("group_fractions",),
)
def _fig18_bound(records: Records) -> Verdict:
    found = studies.group_outcomes(records["group_fractions"])
    above = (found.accuracy - found.predicted).values
    share = float((above >= -0.03).mean())
    return Verdict(
        outcome(share >= 0.95),
        f"{percent(share)} of runs; smallest difference {number(float(above.min()))}",
        **spread(above),
        of="accuracy less prediction",
    )


# ------------------------------------------------------------------------------------------------------- transformers


@claim(
    "fig1",
    "Fig. 1",
    "Embeddings of a transformer become a ring when it generalises, not when it memorises.",
    expected="ours: ring share 0.1 at the start, at least 0.8 at the end; in small networks from 0.33 to 0.8 and more",
    criterion="in half of the seeds and more: at step 1,000 train ≥ 0.99 and test ≤ 0.5, at the end test ≥ 0.99; ring "
    "share ≤ 0.3 at the start and at step 1,000, ≥ 0.8 at the end, with a radius of ± 25 % at most. For p ≤ 30, where "
    "chance makes rings: t_test ≥ 5 t_train, and ring share at the end at least 0.3 above the start's",
    needs=("ring",),
)
def _fig1(records: Records) -> Verdict:
    record = next(own for _, own in conditions(records["ring"]))
    t_train, t_test = record.reached_train_accuracy.values, record.reached_test_accuracy.values
    planes = [[studies.best_plane(one.astype(float)) for one in run] for run in record.W_E.values]
    share = np.array([[plane.share for plane in run] for run in planes])  # (run, snapshot)
    radius = [np.linalg.norm(run[-1].points, axis=-1) for run in planes]
    round_ = np.array([one.std() / one.mean() for one in radius])
    if float(record.p[0]) > 30:
        then = int(np.argmin(np.abs(record.step.values - record.snapshot_step.values[0, 1])))
        train, test = (record[f"{split}_accuracy"].values[:, then] for split in ("train", "test"))
        first = (train >= 0.99) & (test <= 0.5) & (studies.last(record, "test_accuracy") >= 0.99)
        ring = (share[:, :-1].max(1) <= 0.3) & (share[:, -1] >= 0.8) & (round_ <= 0.25)
    else:
        first = np.isfinite(t_test) & (t_test >= 5 * t_train)
        ring = share[:, -1] - share[:, 0] >= 0.3
    told = ", ".join(number(median(column)) for column in share.T)
    return Verdict(
        outcome(first.mean() >= 0.5, ring.mean() >= 0.5),
        f"99 % of training at step {number(never_median(t_train))}, of the rest at {number(never_median(t_test))}; "
        f"ring share {told}; radius ± {percent(median(round_))} at the end",
        **spread(share[:, -1]),
        of="ring share at the end",
    )


@claim(
    "fig7a",
    "Fig. 7, left",
    "The effective dimension of the embeddings rises until generalisation and then drops.",
    expected="ours: in small networks from 18 to 6",
    criterion="in ≥ 80 % of seeds the largest value lies at or before 1.05 t_test, and in as many the last is ≤ 0.7 of "
    "the first; mean over seeds at t_test ≥ 0.9 of the first; the largest value ≥ 1.02 of the first in ≥ 80 % of seeds "
    "(added later)",
    needs=("ring",),
)
def _fig7a(records: Records) -> Verdict:
    record = next(own for _, own in conditions(records["ring"]))
    curve, t_test = record.effective_dimension.values, record.reached_test_accuracy.values
    first, end = curve[:, 0], studies.last(record, "effective_dimension")
    top = record.step.values[np.nanargmax(curve, axis=1)]
    early = top <= 1.05 * t_test  # never true of a network that never generalised
    falls = end <= 0.7 * first
    then = np.array([np.interp(t, record.step.values, row) for t, row in zip(t_test, curve, strict=True)])
    return Verdict(
        outcome(
            early.mean() >= 0.8,
            falls.mean() >= 0.8,
            then.mean() >= 0.9 * first.mean(),
            float((np.nanmax(curve, axis=1) >= 1.02 * first).mean()) >= 0.8,
        ),
        f"from {number(median(first))} over {number(median(np.nanmax(curve, axis=1)))} to {number(median(end))}; "
        f"largest at step {number(median(top))}, generalised at {number(never_median(t_test))}, then "
        f"{number(float(then.mean()))}",
        **spread(end / first),
        of="last over first",
    )


@claim(
    "fig7b",
    "Fig. 7, centre",
    "Dropout brings generalisation forward and removes grokking.",
    expected="ours: in small networks not without dropout, within 2,500 steps with it",
    criterion="best median t_test ≤ ⅓ of that without dropout, or that is never reached; at some rate the medians have "
    "t_test − t_train < 1,000 with t_test ≤ 1,000",
    needs=("dropout_times",),
)
def _fig7b(records: Records) -> Verdict:
    record = records["dropout_times"]
    t_train, t_test = record.reached_train_accuracy.values, record.reached_test_accuracy.values
    rates = np.unique(record.dropout.values)
    known, middle = (
        np.array([never_median(times[record.dropout.values == rate]) for rate in rates]) for times in (t_train, t_test)
    )
    best = int(np.argmin(middle))
    quick = bool(((middle <= 1000) & (middle < known + 1000)).any())
    reached = np.isfinite(middle[best])
    words = ", ".join(
        f"{rate:g}: {number(float(t)) if np.isfinite(t) else 'never'}" for rate, t in zip(rates, middle, strict=True)
    )
    return Verdict(
        outcome(reached and best > 0 and middle[best] <= middle[0] / 3, quick),
        f"median t_test by dropout {words}",
        n=len(t_test),
    )


@claim(
    "fig7c",
    "Fig. 7, right",
    "Transformers have the four phases, and weight decay of the decoder removes grokking.",
    expected="comprehension at rates of 1e-3 to 6e-3 with decay 0.5 to 6",
    criterion="all four phases; comprehension at decays from 0.1 to 20 only; at the rates next to 1e-4 and 1e-3 "
    "growing the decay from its least to about 2 halves t_test, or lets it be reached; highest rate and decay are "
    "confused",
    needs=("phases_transformer",),
)
def _fig7c(records: Records) -> Verdict:
    record = records["phases_transformer"]
    found = studies.diagram(record, "lr", "weight_decay")
    phases = found.map(budget=studies.budget_of(record))[0]
    row = int(np.argmin(np.abs(np.log(found.y / 2))))
    columns = [int(np.argmin(np.abs(np.log(found.x / rate)))) for rate in (1e-4, 1e-3)]
    low, high = (or_never(found.t_val[k]).min(-1)[columns] for k in (0, row))
    sooner = np.isfinite(high) & (high <= low / 2)
    clear = np.broadcast_to(found.y[:, None], phases.shape)[phases == C]
    return Verdict(
        outcome(
            all((phases == code).any() for code in range(4)),
            bool(((clear >= 0.1) & (clear <= 20)).all()),
            bool(sooner.all()),
            phases[-1, -1] == X,
        ),
        f"{_shown(phases)}; decay {number(float(found.y[row]))} halves the time or makes it finite at "
        f"{int(sooner.sum())} of the 2 rates ({' and '.join(f'{found.x[c]:.1e}' for c in columns)}); corner "
        f"{PHASES[phases[-1, -1]]}",
        n=phases.size,
    )


@claim(
    "fig21",
    "Fig. 21",
    "The initial embeddings already hold part of the final structure.",
    expected="ours: in small networks without decay of the embeddings 0.5 where chance is 0.09",
    criterion="median ring share of the initial embeddings on the final plane ≥ 3 times that of unrelated ones; "
    "final ≥ 0.8, for p ≤ 30 ≥ 0.6",
    needs=("ring",),
)
def _fig21(records: Records) -> Verdict:
    record = next(own for _, own in conditions(records["ring"]))
    own, chance, final = studies.initial_shares(record)
    share = median(final)
    return Verdict(
        outcome(median(own) >= 3 * float(np.median(chance)), share >= (0.8 if float(record.p[0]) > 30 else 0.6)),
        f"{number(median(own))} against {number(float(np.median(chance)))} by chance; final {number(share)}",
        **spread(own),
        of="ring share of the start",
    )


@claim(
    "fig22",
    "Fig. 22",
    "A few components of the final embeddings carry the generalisation, sooner than the embeddings' own.",
    expected="ours: in small networks ten are enough, two are not",
    criterion="at the end ≥ 0.97 with ten and ≤ 0.5 with two; between t_train and t_test those of the end do at "
    "least as well "
    "as those of the moment, less 0.02, for ⅔ of the seeds",
    needs=("component_accuracy",),
)
def _fig22(records: Records) -> Verdict:
    study = records["component_accuracy"]
    ten, two = (study.at_end.sel(component=k).values for k in (10, 2))
    test = studies.while_generalising(study)
    good = float((test.sel(way="final") - test.sel(way="own") >= -0.02).mean())
    return Verdict(
        outcome(median(ten) >= 0.97, median(two) <= 0.5, good >= 2 / 3),
        f"ten components {number(median(ten))}, two {number(median(two))}; those of the end are as good as those of "
        f"the moment in {percent(good)} of seeds",
        **spread(ten),
        of="accuracy with ten",
    )


# ------------------------------------------------------------------------------------------------------------- images


def _stand_in(record: xr.Dataset) -> bool:
    """Whether the bundled digits stand in for the paper's images."""
    return str(record.source.values[0]) == "digits"


def _size(record: xr.Dataset) -> str:
    """Of a record against one of the paper's images."""
    return "smaller" if _stand_in(record) else "full"


def _images(record: xr.Dataset) -> str:
    """Which images a verdict is about."""
    return "on 8 × 8 digits: " if _stand_in(record) else "on MNIST: "


def _steps(record: xr.Dataset, split: str, threshold: float) -> NDArray:
    return measures.first_step(record[f"{split}_accuracy"].values, record.step.values, threshold)


@claim(
    "fig8a",
    "Fig. 8, left",
    "Images grok when the initial weights are large, and do not when they are usual.",
    expected="ours, on digits: training at 1,000, 60 % of the rest at 6,400; usual weights: both by 100",
    criterion="large weights: test accuracy at t_train ≤ half its last, last ≥ 0.8, t_test ≥ 3 t_train; usual weights: "
    "t_test ≤ 2 t_train",
    needs=("image_curves",),
)
def _fig8a(records: Records) -> Verdict:
    record = records["image_curves"]
    big, usual = select(record, label=LARGE), select(record, label=USUAL)
    big = select(big, weight_decay=float(big.weight_decay.values.min()))
    t_train, t_test = big.reached_train_accuracy.values, big.reached_test_accuracy.values
    end = studies.last(big, "test_accuracy")
    then = np.array(
        [np.interp(t, big.step.values, row) for t, row in zip(t_train, big.test_accuracy.values, strict=True)]
    )
    known = np.isfinite(t_train)
    ratio = np.where(known, or_never(t_test) / np.where(known, t_train, 1), np.nan)  # a wait needs a beginning
    control = or_never(usual.reached_test_accuracy.values) / usual.reached_train_accuracy.values
    return Verdict(
        outcome(
            median(then / end) <= 0.5,
            median(end) >= 0.8,
            bool(known.all()) and np.isfinite(never_median(t_test)) and float(np.median(ratio)) >= 3,
            float(np.median(control)) <= 2,
        ),
        f"{_images(record)}large weights: t_train {number(never_median(t_train))}, t_test "
        f"{number(never_median(t_test))}, accuracy "
        f"{number(median(then))} then and {number(median(end))} at last; usual: delay "
        f"{number(float(np.median(control)))}",
        **spread(ratio[np.isfinite(ratio)]),
        of="delay",
        size=_size(record),
    )


@claim(
    "image-norm",
    "Fig. 8, beyond",
    "Generalisation of images waits for weight decay to shrink the weights.",
    expected="ours, on digits: t_test × decay × learning rate = 0.64 to 0.73 for three decays",
    criterion="that product differs by less than 1.5 times between decays",
    needs=("image_curves",),
)
def _image_norm(records: Records) -> Verdict:
    big = select(records["image_curves"], label=LARGE)
    decays = np.unique(big.weight_decay.values)
    products = [
        never_median(select(big, weight_decay=float(one)).reached_test_accuracy.values) * float(one) * float(big.lr[0])
        for one in decays
    ]
    if len(decays) < 2:
        return Verdict("not tested", "one weight decay only")
    return Verdict(
        outcome(bool(np.isfinite(products).all()) and max(products) / min(products) < 1.5),
        _images(big)
        + ", ".join(f"{number(one)} at decay {decay:g}" for one, decay in zip(products, decays, strict=True)),
        n=big.sizes["run"],
        size=_size(big),
    )


@claim(
    "fig8b",
    "Fig. 8, right",
    "Images have the phases too: memorisation at low decay and rate, confusion at high.",
    expected="memorisation, grokking, comprehension, confusion from corner to corner",
    criterion="corners memorise and are confused; comprehension and grokking occur; every grokking cell has a smaller "
    "decay or rate than some comprehension cell, and none exceeds all of them in both; the highest decay is not "
    "confused at the lowest rate (added later)",
    needs=("image_phases",),
)
def _fig8b(records: Records) -> Verdict:
    record = records["image_phases"]
    found = studies.diagram(record, "W_2_lr", "weight_decay")
    phases = found.map(budget=studies.budget_of(record), gap=studies.image_gap(record))[0]
    if untold := _too_short(phases, studies.budget_of(record)):
        return untold
    late, clear = np.argwhere(phases == G), np.argwhere(phases == C)
    below = all(any((g < c).any() for c in clear) for g in late) and not any((g > clear).all() for g in late)
    return Verdict(
        outcome(phases[0, 0] == M and phases[-1, -1] == X, bool(len(late) and len(clear)), below, phases[-1, 0] != X),
        f"{_images(record)}{_shown(phases)}; corners {PHASES[phases[0, 0]]}, {PHASES[phases[-1, -1]]}; highest decay "
        f"and lowest rate: {PHASES[phases[-1, 0]]}",
        n=found.t_val.shape[-1],
        size=_size(record),
    )


@claim(
    "fig19",
    "Fig. 19, App. I",
    "The effective loss pulls images of a class together and keeps the classes apart and the size Z.",
    expected="ours, on digits: scatter ratio 2.2 to 2e-4 in 100 steps; Z kept to 3e-4 by descent, not by Adam",
    criterion="ratio after 100 steps ≤ 0.01 of the first; class means at ≥ 0.8 of their distance; gradient descent "
    "keeps Z to "
    "1e-3; without the 1/Z it falls below 0.9",
    needs=("class_features",),
)
def _fig19(records: Records) -> Verdict:
    study = records["class_features"]
    adam, descent, bare = (study.sel(way=way) for way in ("Adam", "gradient descent", "without 1/Z"))
    ratio = float(adam.ratio[-1] / adam.ratio[0])
    kept = float(np.abs(descent.Z / descent.Z[0] - 1).max())
    fallen = float(bare.Z[-1] / bare.Z[0])
    return Verdict(
        outcome(ratio <= 0.01, float(adam.distance[-1]) >= 0.8, kept <= 1e-3, fallen < 0.9),
        f"ratio falls to {number(ratio)} of its start; distance {number(float(adam.distance[-1]))}; Z changes by "
        f"{kept:.0e} "
        f"under descent, by {percent(float(adam.Z[-1] / adam.Z[0] - 1))} under Adam; to {number(fallen)} without the "
        f"1/Z",
        note="free features keep the means of their classes, and with them most of Z; the collapse that the division "
        "by Z "
        "is to prevent needs a shared encoder",
        size="smaller" if study.attrs["source"] == "digits" else "full",
    )


@claim(
    "fig20",
    "Fig. 20",
    "The time to generalise grows rapidly once there are fewer images than some number.",
    expected="ours, on digits: 2,375 to 1,100 from 30 to 797 images",
    criterion="median t_test never rises with the number of images (one rise of 10 % allowed); smallest over largest "
    "≥ 1.8; from the second smallest number to the smallest it grows at least twice as steeply, on logarithmic axes, "
    "as from the largest to the second smallest (added later)",
    needs=("image_sizes",),
)
def _fig20(records: Records) -> Verdict:
    record = records["image_sizes"]
    t = _steps(record, "test", 0.6)
    sizes = np.unique(record.train_size.values)
    middle = np.array([never_median(t[record.train_size.values == size]) for size in sizes])
    if len(sizes) < 2:
        return Verdict("not tested", "one number of images only")
    if not np.isfinite(t).any():
        return Verdict("not tested", "no network generalises within its steps")
    rises = middle[1:] > middle[:-1]
    mild = rises.sum() <= 1 and bool((middle[1:] <= 1.1 * middle[:-1])[rises].all())
    ratio = float(middle[0] / middle[-1]) if np.isfinite(middle[-1]) else float("nan")
    words = ", ".join(f"{size}: {number(float(one))}" for size, one in zip(sizes, middle, strict=True))
    few, rest = (np.log(middle[a] / middle[b]) / np.log(sizes[b] / sizes[a]) for a, b in ((0, 1), (1, -1)))
    return Verdict(
        outcome(bool(mild), ratio >= 1.8, bool(len(sizes) > 2 and few >= 2 * rest)),
        f"{_images(record)}t_test by images {words}; ratio {number(ratio)}; it grows as the power {number(float(few))} "
        f"of the number at the lower end and {number(float(rest))} above",
        n=len(t),
        size=_size(record),
    )


# ------------------------------------------------------------------------------------------------------------- beyond


@claim(
    "transition",
    "beyond Fig. 4a",
    "The critical share is not 0.4 in general: it falls as the number of symbols grows.",
    expected="ours: about as p^−0.8; the number of samples grows a little faster than p",
    criterion="falls at every p; log-log slope between −1 and −0.6",
    needs=("transition",),
)
def _transition(records: Records) -> Verdict:
    study = records["transition"]
    slope = float(np.polyfit(np.log(study.p), np.log(study.fraction), 1)[0])
    return Verdict(
        outcome(bool((np.diff(study.fraction) < 0).all()), -1 <= slope <= -0.6),
        f"{number(float(study.fraction[0]))} at p = {int(study.p[0])} to {number(float(study.fraction[-1]))} at p = "
        f"{int(study.p[-1])}; slope {number(slope)}",
        n=study.sizes["order"],
    )


@claim(
    "critical-trained",
    "beyond Fig. 4b",
    "Networks follow: the share that they need falls with the number of symbols.",
    expected="ours: no network beforehand; the theory's share falls",
    criterion="median smallest share at the largest p below that at the smallest, and never below the theory's by "
    "more than "
    "0.05",
    needs=("critical_sizes", "transition"),
)
def _critical_trained(records: Records) -> Verdict:
    found, study = studies.smallest_share(records["critical_sizes"]), records["transition"]
    middle = {p: median(values) for p, values in found.items()}
    predicted = np.exp(np.interp(np.log(list(middle)), np.log(study.p.values), np.log(study.fraction.values)))
    ours = np.array(list(middle.values()))
    if not np.isfinite(ours).any():
        return Verdict("not tested", "no network finds the line within its steps")
    return Verdict(
        outcome(bool(ours[-1] < ours[0]), bool((ours[np.isfinite(ours)] >= predicted[np.isfinite(ours)] - 0.05).all())),
        ", ".join(f"{number(one)} at p = {p}" for p, one in middle.items()),
        n=records["critical_sizes"].sizes["run"],
    )


@claim(
    "dimensions",
    "App. D",
    "In more dimensions the index misses structure that the decoder uses.",
    expected="the paper says so and measures nothing",
    criterion="some dimension above 1 with median held-out accuracy ≥ 0.9 and median RQI ≤ 0.8; decided only if some "
    "dimension above 1 has that accuracy (added later)",
    needs=("dimensions",),
)
def _dimensions(records: Records) -> Verdict:
    record = records["dimensions"]
    rows = {}
    for label, own in conditions(record):
        test, rqi = studies.last(own, "test_accuracy"), studies.last(own, "rqi")
        for d in np.unique(own.dimension.values):
            here = own.dimension.values == d
            rows[f"d = {d}, {label}"] = int(d), median(test[here]), median(rqi[here])
    found = [key for key, (d, accuracy, index) in rows.items() if d > 1 and accuracy >= 0.9 and index <= 0.8]
    words = "; ".join(f"{number(a)} and {number(b)} at {key}" for key, (_, a, b) in rows.items())
    told = f"held-out accuracy and RQI {words}"
    if not any(d > 1 and accuracy >= 0.9 for d, accuracy, _ in rows.values()):
        return Verdict("not tested", told, n=record.sizes["run"], note="in no dimension above 1 do they generalise")
    return Verdict(outcome(bool(found)), told, n=record.sizes["run"])


@claim(
    "modular",
    "Section 4.2, beyond",
    "The effective loss of modular addition prefers no circle: all its rates are equal.",
    expected="p (p + 3) / 2 = 77 for p = 11, ten times",
    criterion="all eigenvalues but the first equal to 1e-9, for odd p",
    needs=("spectra",),
)
def _modular(records: Records) -> Verdict:
    rates = records["spectra"].rate.sel(task="addition mod p").values
    apart = float(np.ptp(rates[1:]))
    return Verdict(
        outcome(apart <= 1e-9),
        f"{len(rates) - 1} eigenvalues of {number(float(rates[1]))}, {apart:.0e} apart",
        note="so every centred representation has one and the same loss and stays where it is, circle or not, and the "
        "least loss is that of equal embeddings: that trained networks find rings must come from the decoder",
    )


BY_ID = {one.id: one for one in CLAIMS}
