"""Sentences of the chapter that carry numbers: each is computed from records, so that none is ever typed in."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import xarray as xr

from grokbook.chapters.liu import studies, theory
from grokbook.chapters.liu.claims import CLAIMS
from grokbook.chapters.liu.experiments import FAST_EMBEDDINGS, LARGE
from grokbook.chapters.liu.theory.phases import PHASES
from grokbook.firstform.claims import OUTCOMES, Records, Sentence, Verdict, number, percent
from grokbook.measures import median, never_median, or_never
from grokbook.train.records import conditions, select


def overview(records: Records) -> str:
    """On top: how many claims came out how, by the criterion that counts, and which."""
    counted = getattr(records, "counted", lambda id, verdict: verdict.outcome)
    judged = [(claim, claim.judge(records)) for claim in CLAIMS]
    verdicts = [(claim, replace(verdict, outcome=counted(claim.id, verdict))) for claim, verdict in judged]
    lines = []
    for name, words in zip(OUTCOMES, ("What holds", "In part", "What fails", "Undecided", "Not tested"), strict=True):
        own = [(claim, verdict) for claim, verdict in verdicts if verdict.outcome == name]
        places = dict.fromkeys(claim.figure for claim, _ in own)
        if own:
            lines.append(f"- **{words}**, {len(own)}{_sizes([verdict for _, verdict in own])}: {'; '.join(places)}.")
    return f"{len(verdicts)} claims are judged on this page; a figure may carry several.\n\n" + "\n".join(lines)


def _sizes(verdicts: list[Verdict]) -> str:
    """How many of them do not rest on full records."""
    words = {"fewer seeds": "on fewer seeds", "smaller": "on smaller records"}
    of = {size: sum(verdict.size == size for verdict in verdicts) for size in words}
    told = [f"{count} {words[size]}" for size, count in of.items() if count]
    return f" ({', '.join(told)})" if told else ""


def _never(times: float) -> str:
    return number(times) if np.isfinite(times) else "never"


def unique(records: Records) -> str:
    """Beside Fig. 4a: where the transition is, and what an ideal model can do there."""
    study = records["ideal"]
    share = study["size"].values / study.attrs["samples"]
    line = (study.nullity == 2).mean("draw").values
    at = studies.crossing(share, line)
    if study.sizes["draw"] < 2:
        return "With 1 random training set of each size there is no half of them; more draws are needed."
    ideal = float(np.interp(at, share, study.ideal_accuracy.mean("draw").values))
    return (
        f"Half of the {study.sizes['draw']:,} random training sets leave the line as the only solution at r = "
        f"{number(at)}, "
        f"which is {number(at * study.attrs['samples'])} of {study.attrs['samples']} samples. An ideal model answers "
        f"{percent(ideal)} of all samples there.{_with_the_line(study, at)}"
    )


def _with_the_line(study: xr.Dataset, at: float) -> str:
    """What is out of reach at the crossing although the line is the only solution."""
    if not np.isfinite(at):
        return ""
    size = int(study["size"].values[np.argmin(np.abs(study["size"].values / study.attrs["samples"] - at))])
    here = study.sel(size=size)
    fixed = here.ideal_accuracy.values[here.nullity.values == 2]
    if not len(fixed):
        return ""
    return f" Even where {size} samples do fix the line, it still misses {percent(float(1 - fixed.mean()))}."


def transition(records: Records) -> str:
    """Beside the transition for several p."""
    study = records["transition"]
    slope = np.polyfit(np.log(study.p), np.log(study.fraction), 1)[0]
    samples = study.fraction * study.samples / study.p
    return (
        f"From p = {int(study.p[0])} to {int(study.p[-1])} the critical share falls from "
        f"{number(float(study.fraction[0]))} to "
        f"{number(float(study.fraction[-1]))}, as a power of {number(float(slope))}; in samples per symbol it rises "
        f"from "
        f"{number(float(samples[0]))} to {number(float(samples[-1]))}."
    )


def accuracy(records: Records) -> str:
    """Beside Fig. 3."""
    found = studies.outcomes(records["fractions"])
    apart = np.abs(found.accuracy - found.predicted).values
    return (
        f"Over {found.sizes['run']} networks the two differ by {number(float(apart.mean()))} in the mean and by "
        f"{number(float(apart.max()))} at most; their correlation is "
        f"{number(float(np.corrcoef(found.accuracy, found.predicted)[0, 1]))}."
    )


def ideal(records: Records) -> str:
    """Beside Fig. 10: how often networks fall short."""
    found = studies.outcomes(records["fractions"])
    short = (found.rqi < found.ideal_rqi - 0.05).values
    whole = (found.ideal_rqi == 1).values
    reached = float((found.rqi.values[whole] == 1).mean()) if whole.any() else float("nan")
    return (
        f"{percent(float(short.mean()))} of the networks have an index that is smaller by more than 0.05 than an "
        f"ideal model's would be. Of "
        f"those whose "
        f"training set implies the whole line, {percent(reached)} find it."
    )


def mirrors(records: Records) -> str:
    """Beside Fig. 2: what the held-out accuracy of (b) is worth."""
    pairs = studies.mirrors(select(records["planes"], label="b"))
    new = pairs.held - pairs.mirrored
    known = np.flatnonzero(np.isfinite(pairs.right))
    words = ", ".join(f"{int(pairs.right[i])} of {new[i]}" for i in known) or "none that could be told"
    return (
        f"In (b) samples are ordered and inputs are not: {pairs.mirrored.min()} to {pairs.mirrored.max()} of "
        f"{pairs.held[0]} held-out pairs have their mirror image, the same input, in training. Of the others the "
        f"{len(known)} networks that know their whole training set get right: {words}."
    )


def readings(records: Records) -> str:
    """Below the definition of n_h."""
    path = studies.trajectory(records["trajectory"])
    return (
        f"With H as printed, an average over P₀(D), the training set of the trajectories below has nₕ = "
        f"{number(path.n_h_mean)} steps; with a sum in its place, H = 2 AᵀA / Z₀, {number(path.n_h)}. The paper's "
        f"figures fit the sum, and where nothing else is said the sum is meant below."
    )


class Order(NamedTuple):
    """Rank correlations of the steps of networks with fast embeddings, of those that found the line."""

    runs: int
    rate: float  #: with 1 / lambda_3
    size: float  #: with fewer samples
    within: float  #: with 1 / lambda_3 among sets of one size


def _order(records: Records) -> Order:
    own = select(studies.structure(records["structure_times"]).set_coords("label"), label=FAST_EMBEDDINGS)
    steps, size = own.steps.values, own["size"].values
    wait = np.full(len(steps), np.nan)
    wait[own["sum"].values > 0] = 1 / own["sum"].values[own["sum"].values > 0]
    steps = np.where(np.isfinite(wait), steps, np.nan)
    return Order(
        int(np.isfinite(steps).sum()),
        studies.rank_correlation(steps, wait),
        studies.rank_correlation(steps, -size),
        studies.rank_correlation(steps, wait, size),
    )


def _what_it_orders(order: Order) -> str:
    if not order.within < 0.5 * order.rate:
        return "it orders training sets of one size too"
    return "it tells sizes apart, hardly one training set from another of its size"


def times(records: Records) -> str:
    """Beside Figs 4b and 5b."""
    own = select(studies.structure(records["structure_times"]).set_coords("label"), label=FAST_EMBEDDINGS)
    at, theirs = studies.critical_shares(records)
    words = (
        f"With the faster embeddings half of the networks find the line at r = {number(at)}; the theory's r "
        f"is {number(theirs)} and the paper's for networks 0.4{'' if abs(at - theirs) <= 0.05 else ': they disagree'}"
        if np.isfinite(at)
        else "Success of the networks with the faster embeddings never passes a half from below"
    )
    there = np.isfinite(own.steps.values)
    if there.sum() < 3:
        return f"{words}; {int(there.sum())} networks got there."
    agreement, order = theory.rate_agreement(own.steps.values, own["sum"].values), _order(records)
    low, high = agreement.spearman_interval
    return (
        f"{words}. Over the {agreement.runs} runs that got there the rank correlation of their steps with 1/λ₃ is "
        f"{number(agreement.spearman)} ({number(low)} to {number(high)}), and the steps grow as its power "
        f"{number(agreement.slope)} where the theory says 1. The number of training samples alone gives "
        f"{number(order.size)}, and among sets of one size 1/λ₃ gives {number(order.within)}: "
        f"{_what_it_orders(order)}. From the smallest size to the largest, theory over network goes from "
        f"{_ratios(own)}."
    )


def _ratios(own: xr.Dataset) -> str:
    ratio = studies.theory_over_network(own)[1]
    known = ratio[np.isfinite(ratio)]
    return f"{number(float(known[0]))} to {number(float(known[-1]))}" if len(known) else "– to –"


def trajectory(records: Records) -> str:
    """Beside Fig. 4c and d."""
    path = studies.trajectory(records["trajectory"])
    run = records["trajectory"].isel(run=0)
    rho = theory.line_fit(path.network[0][:, None]).rho
    needed = float(path.n_h * np.log(10 * rho))
    reached = float(run.reached_rqi)
    when = f"at step {number(reached)}" if np.isfinite(reached) else "not within the run"
    return (
        f"Here nₕ = {number(path.n_h)} steps. At the start the part that is no line is ρ = {number(float(rho))} times "
        f"as large as the linear one, so the flow needs nₕ log(10 ρ) = "
        f"{number(needed)} steps to bring it to "
        f"a tenth, {'more' if needed > 3 * path.n_h else 'less'} than 3 nₕ = {number(3 * path.n_h)}. "
        f"The network's index passes 0.95 {when}."
    )


def phases(records: Records) -> str:
    """Beside Fig. 6: how many cells of each phase, and how many as published."""
    rows = []
    for name, title in studies.PANEL_TITLES.items():
        found, budget = studies.panel_diagram(records, name), studies.budget_of(records[name])
        counts = studies.counts(found.map(budget=budget)[0])
        shown = " / ".join(str(counts[phase]) for phase in PHASES[:4])
        if not studies.of_published_table(records[name]):
            rows.append(f"({title[0]}) {shown}")
            continue
        same = studies.agreement(found, studies.PANELS[name][0], budget=budget).phases.mean()
        cut = f" (both cut at {number(budget)} steps)" if budget < studies.PUBLISHED_BUDGET else ""
        rows.append(f"({title[0]}) {shown}, {percent(float(same))} as published{cut}")
    return "Cells of comprehension / grokking / memorisation / confusion: " + "; ".join(rows) + "."


def never(records: Records) -> str:
    """Below table 1: how long "never" is."""
    budgets: dict[float, list[str]] = {}
    for name in NEVER:
        budgets.setdefault(studies.budget_of(records[name]), []).append(NEVER[name])
    rows = [f"{number(budget)} steps in {', '.join(names)}" for budget, names in budgets.items()]
    return f"“Never” means not within {'; '.join(rows)} (the paper's figures)."


NEVER = {
    **{name: f"6{title[0]}" for name, title in studies.PANEL_TITLES.items()},
    **{f"{name}_splits": f"6{title[0]} over splits" for name, title in studies.PANEL_TITLES.items()},
    "phases_batch": "13",
    "phases_scale": "14",
    "phases_decay": "15",
    "phases_transformer": "7 right",
}


def borders(records: Records) -> str:
    """Beside Fig. 6: which phases touch comprehension."""
    rows: dict[str, list[str]] = {"upwards": [], "sideways": []}
    for name, title in studies.PANEL_TITLES.items():
        phases = studies.panel_diagram(records, name).map(budget=studies.budget_of(records[name]))[0]
        for way, axis in (("upwards", 0), ("sideways", 1)):
            count = studies.borders(phases, axis)
            rows[way].append(f"{count.get((0, 1), 0)} and {count.get((0, 2), 0)} ({title[0]})")
    return (
        "Grokking would lie between comprehension and memorisation if comprehension touched grokking only. Cells of "
        f"comprehension touch cells of grokking and of memorisation, up or down, {', '.join(rows['upwards'])} times; "
        f"to the side, {', '.join(rows['sideways'])} times."
    )


DECAYS = tuple(name for name in studies.PANEL_TITLES if name != "phases_rates")


def decay(records: Records) -> str:
    """Beside Fig. 6: what more weight decay of the decoder does in the toy model."""
    return f"More weight decay of the decoder: {'; '.join(_decay(records, name) for name in DECAYS)}."


def _decay(records: Records, name: str) -> str:
    found, budget = studies.panel_diagram(records, name), studies.budget_of(records[name])
    t = np.where(found.t_val[..., 0] <= budget, found.t_val[..., 0], np.nan)
    there, both = np.isfinite(t), np.isfinite(t[1:]) & np.isfinite(t[:-1])
    return (
        f"({studies.PANEL_TITLES[name][0]}) held-out samples are learnt at {there[0].sum()} of {there.shape[1]} rates "
        f"with decay {found.y[0]:g} and at {there[-1].sum()} with {found.y[-1]:g}, and where two neighbouring decays "
        f"both allow it the larger one takes longer in {int((t[1:] > t[:-1])[both].sum())} of {both.sum()} cases"
    )


def splits(records: Records) -> str:
    """Beside the majority diagrams."""
    rows, split = [], []
    for name, title in studies.PANEL_TITLES.items():
        own = f"{name}_splits"
        found, budget = studies.panel_diagram(records, own), studies.budget_of(records[own])
        phases, share = found.map(budget=budget)
        theirs = studies.published_at(found, studies.PANELS[name][0]).map(budget=budget)[0]
        same = float((phases == theirs).mean()) if studies.of_published_table(records[own]) else None
        rows.append(f"({title[0]}) {percent(float((share == 1).mean()))} and {percent(same)} at {number(budget)} steps")
        split.append(f"({title[0]}) {int((share <= 0.5).sum())}")
    return (
        "Cells in which all splits agree, and whose majority is as published if the published counts are cut at the "
        f"same length: {', '.join(rows)}. What is still learning then is drawn as confusion or memorisation. Cells in "
        f"which no phase has more than half of the splits, drawn in the one that comes first in the legend: "
        f"{', '.join(split)}."
    )


def group_splits(records: Records) -> str:
    """Beside the majority diagrams: what is left of (d)."""
    name = "phases_group_splits"
    found, budget = studies.panel_diagram(records, name), studies.budget_of(records[name])
    good = found.phases(budget=budget) <= 1
    if not studies.of_published_table(records[name]):
        return f"In (d) {int(good.sum())} of {good.size} runs generalise within {number(budget)} steps."
    theirs = studies.published_at(found, "group").phases(budget=budget) <= 1
    why = (
        "what it shows belongs to its one split and start, not to the longer runs"
        if theirs.mean() > 2 * good.mean()
        else "so that the shorter runs may be why"
    )
    return (
        f"In (d) {int(good.sum())} of {good.size} runs generalise within {number(budget)} steps. The published diagram "
        f"has {int(theirs.sum())} of {theirs.size} of these cells generalise within as many: {why}."
    )


def _knob(records: Records, name: str, setting: str, words: str) -> str:
    """How many networks generalise at each value of a setting."""
    record = records[name]
    if setting == "batch_size":
        record = record.assign_coords(batch_size=("run", studies.batch_sizes(record)))
    rows = []
    for label, own in conditions(record):
        good = np.isfinite(own.reached_test_accuracy.values)
        shares = [
            f"{percent(float(good[own[setting].values == value].mean()))} at {value:g}"
            for value in np.unique(own[setting].values)
        ]
        rows.append(f"{label}: {', '.join(shares)}")
    return f"Networks that generalise within {number(studies.budget_of(record))} steps, by {words}: {'; '.join(rows)}."


def batch(records: Records) -> str:
    """Beside Fig. 13."""
    return _knob(records, "phases_batch", "batch_size", "batch size")


def scale(records: Records) -> str:
    """Beside Fig. 14."""
    return _knob(records, "phases_scale", "init_scale", "initial size of the embeddings")


def embedding_decay(records: Records) -> str:
    """Beside Fig. 15."""
    return _knob(records, "phases_decay", "W_E_weight_decay", "weight decay of the embeddings")


def hexagon(records: Records) -> str:
    """Beside Fig. 17."""
    record = records["group_fractions"]
    chosen, found = studies.best_of_thirty(record)
    embedding = record.W_E.isel(run=chosen, snapshot=-1).values.astype(float).reshape(6, -1)
    shape, share = studies.hexagon(embedding), studies.principal(embedding)[1]
    return (
        f"Its index is {number(float(found.rqi[chosen]))}; {int((share > 0.02).sum())} components hold more than 2 % "
        f"of the variance each. Around the hexagon the largest gap is {number(shape.gap)}° where 60° would be even; "
        f"the radius varies by {percent(shape.spread)}."
    )


def group(records: Records) -> str:
    """Beside Fig. 18: what the index does not explain."""
    found = studies.group_outcomes(records["group_fractions"])
    real, hat = found.accuracy.values, found.predicted.values
    perfect = real > 1 - 1e-6
    low = int((found.rqi.values[perfect] < 0.5).sum())
    beyond = ": something beyond the index is at work, as the paper says itself" if low else ""
    return (
        f"Accuracy and prediction have a correlation of {number(_correlation(real, hat))} and differ by "
        f"{number(float(np.abs(real - hat).mean()))} in the mean. Of {int(perfect.sum())} networks with an accuracy "
        f"of 1, {low} have an index below 0.5{beyond}."
    )


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.corrcoef(x, y)[0, 1]) if np.ptp(x) and np.ptp(y) else float("nan")


def ring(records: Records) -> str:
    """Beside Fig. 1: whether it is a ring."""
    record = next(own for _, own in conditions(records["ring"]))
    planes = [studies.best_plane(one.astype(float)) for one in record.W_E.isel(snapshot=-1).values]
    radius = [np.linalg.norm(plane.points, axis=-1) for plane in planes]
    spread = [float(one.std() / one.mean()) for one in radius]
    good = sum(plane.share >= 0.8 and one <= 0.25 for plane, one in zip(planes, spread, strict=True))
    return (
        f"A ring would have a share of at least 0.8 and a radius within 25 %: {good} of {len(planes)} networks do at "
        f"step {number(studies.budget_of(record))}. Their shares are "
        f"{', '.join(number(plane.share) for plane in planes)}, their radii vary by "
        f"{', '.join(percent(one) for one in spread)}."
    )


def effective_dimension(records: Records) -> str:
    """Beside Fig. 7, left: how large rise and drop are."""
    record = next(own for _, own in conditions(records["ring"]))
    curve = record.effective_dimension.values
    first, top, end = curve[:, 0], np.nanmax(curve, axis=1), studies.last(record, "effective_dimension")
    return (
        f"In the median of {len(curve)} networks the dimension rises by {percent(median(top / first - 1))} of its "
        f"first value and then falls by {percent(median(1 - end / top))} of its largest; the criterion asks for a fall "
        f"to 0.7 of the first. {_when_it_generalises(record)}"
    )


def _when_it_generalises(record: xr.Dataset) -> str:
    curve, t_test = record.effective_dimension.values, record.reached_test_accuracy.values
    some = np.isfinite(t_test)
    if not some.any():
        return "No network generalises."
    then = [np.interp(t, record.step.values, row) for t, row in zip(t_test[some], curve[some], strict=True)]
    shares = np.array(then) / curve[some, 0]
    after = ": the drop comes after" if (shares >= 0.95).all() else ""
    return (
        f"When the networks generalise it is at {', '.join(percent(float(one)) for one in shares)} of its first value"
        f"{after}."
    )


def initial(records: Records) -> str:
    """Beside Fig. 21."""
    own, chance, final = studies.initial_shares(next(own for _, own in conditions(records["ring"])))
    return (
        f"On the final plane the initial embeddings have a ring share of {number(median(own))} in the median of "
        f"{len(own)} networks, unrelated ones {number(median(chance))}, the final ones {number(median(final))}."
    )


def components(records: Records) -> str:
    """Beside Fig. 22: which components carry more."""
    study = records["component_accuracy"]
    test = studies.while_generalising(study)
    worse = int((test.sel(way="final") < test.sel(way="own")).sum())
    shown = {way: number(float(test.sel(way=way).mean())) for way in ("actual", "own", "final")}
    enough = [float(k) for k in study.component.values if float(study.at_end.sel(component=k).median()) >= 0.97]
    return (
        f"Between the times at which the training and the test set are known, test accuracy is {shown['actual']} in "
        f"the mean, {shown['own']} with {study.attrs['shown']} components of the moment and {shown['final']} with "
        f"those of the end, which are worse in {worse} of {study.sizes['run']} networks; the paper finds them better. "
        f"At the end {number(enough[0]) if enough else 'more'} components are enough for 97 % in the median."
    )


def dropout(records: Records) -> str:
    """Beside Fig. 7, centre."""
    record = records["dropout_times"]
    rates = np.unique(record.dropout.values)
    middle = [never_median(record.reached_test_accuracy.values[record.dropout.values == rate]) for rate in rates]
    words = ", ".join(f"{_never(t)} at {rate:g}" for rate, t in zip(rates, middle, strict=True))
    within = number(studies.budget_of(record))
    return f"Median step at which the test set is known, by dropout: {words} (within {within} steps)."


def transformer_decay(records: Records) -> str:
    """Beside Fig. 7, right: what weight decay does there, and in the toy model."""
    found = studies.diagram(records["phases_transformer"], "lr", "weight_decay")
    t = or_never(found.t_val).min(-1)
    row = int(np.argmin(np.abs(np.log(found.y / 2))))
    known = np.isfinite(t[row])
    sooner = known & (t[row] <= t[0] / 2)
    return (
        f"From decay {number(float(found.y[0]))} to {number(float(found.y[row]))} the time to generalise is at least "
        f"halved, or becomes finite, at {int(sooner.sum())} of {len(found.x)} rates, and stays infinite at "
        f"{int((~known).sum())}. The paper notes that its toy model has it otherwise "
        f"(its Fig. 6b and c)."
    )


def image_curves(records: Records) -> str:
    """Beside Fig. 8, left: whether the curve has ended."""
    record = select(records["image_curves"], label=LARGE)
    record = select(record, weight_decay=float(record.weight_decay.values.min()))
    step, test = record.step.values, np.median(record.test_accuracy.values, axis=0)
    before = int(np.argmin(np.abs(step - 0.9 * step[-1])))
    state = "still rising" if test[-1] > test[before] + 0.01 else "at rest"
    return (
        f"With large weights and decay {float(record.weight_decay[0]):g} test accuracy is "
        f"{number(float(test[before]))} "
        f"at step {number(float(step[before]))} and "
        f"{number(float(test[-1]))} at the last, {number(float(step[-1]))}: "
        f"{state}."
    )


def critical(records: Records) -> str:
    """Beside the critical share of networks: by how much it falls."""
    found, study = studies.smallest_share(records["critical_sizes"]), records["transition"]
    ps = list(found)
    theirs = np.exp(np.interp(np.log(ps), np.log(study.p.values), np.log(study.fraction.values)))
    ours = [median(found[p]) for p in ps]
    return (
        f"From p = {ps[0]} to {ps[-1]} networks need {number(ours[0])} to {number(ours[-1])} of the table in the "
        f"median, where the theory's share goes from {number(float(theirs[0]))} to {number(float(theirs[-1]))}: a "
        f"factor of {number(ours[0] / ours[-1])} beside one of {number(float(theirs[0] / theirs[-1]))}."
    )


def holds(records: Records) -> str:
    """At the end: what holds."""
    one, other = studies.outcomes(records["fractions"]), studies.group_outcomes(records["group_fractions"])
    at, theirs = studies.critical_shares(records)
    rows = [
        f"{number(_correlation(found.accuracy.values, found.predicted.values))}, mean difference "
        f"{number(float(np.abs(found.accuracy - found.predicted).mean()))}"
        for found in (one, other)
    ]
    return (
        "What holds is the picture: generalisation is a property of the representation, and in one dimension the "
        f"representation is as good as its parallelograms. There accuracy is what the embeddings allow (correlation "
        f"{rows[0]}); for S₃ it is at least that, and often more (correlation {rows[1]}). Which training sets can "
        f"imply a line is settled by linear algebra: half of them do at r = {number(theirs)}; half of the networks "
        f"find it at {number(at)}."
    )


def trend(records: Records) -> str:
    """At the end: what is a trend."""
    order, t = _order(records), or_never(studies.diagram(records["phases_transformer"], "lr", "weight_decay").t_val)
    free, most = (int(np.isfinite(t[k]).any(-1).sum()) for k in (0, int(np.isfinite(t).any(-1).sum(1).argmax())))
    return (
        f"What holds only as a trend is the timing. The rank correlation of the steps with 1/λ₃ is "
        f"{number(order.rate)} over {order.runs} networks, with the number of samples {number(order.size)}, "
        f"and among sets of one size {number(order.within)}: {_what_it_orders(order)}. "
        f"The theory leaves the decoder out. What holding it back does differs between the models: in the toy model of "
        f"Fig. 6 {_decay(records, 'phases_regression')}; a transformer generalises at {free} of "
        f"{len(t[0])} rates with the least decay and at {most} with the best."
    )


def images(records: Records) -> str:
    """Beside the norms: the product that is nearly the same for all decays."""
    record = select(records["image_curves"], label=LARGE)
    rows = []
    for decay in np.unique(record.weight_decay.values):
        own = select(record, weight_decay=float(decay))
        step = median(own.reached_test_accuracy.values)
        rows.append(f"{number(step * decay * float(own.lr[0]))} at decay {decay:g} (step {number(step)})")
    return f"The time to 60 % of the test images, times decay, times learning rate is {', '.join(rows)}."


def dimensions(records: Records) -> str:
    """Beside the networks with more dimensions than they need."""
    record = records["dimensions"]
    free = record.isel(run=np.flatnonzero(record.weight_decay.values == record.weight_decay.values.min()))
    test, rqi = studies.last(free, "test_accuracy"), studies.last(free, "rqi")
    rows = []
    for d in np.unique(free.dimension.values):
        here = free.dimension.values == d
        rows.append(f"{number(median(test[here]))} and {number(median(rqi[here]))} at d = {int(d)}")
    return f"{_index_fails(record)} Without decay held-out accuracy and index are {', '.join(rows)} (medians)."


def _index_fails(record: xr.Dataset) -> str:
    test, rqi = studies.last(record, "test_accuracy"), studies.last(record, "rqi")
    more = record.dimension.values > 1
    known = more & (test >= 0.9)
    if not known.any():
        return f"These networks cannot tell: none of {int(more.sum())} in more than one dimension generalises."
    return (
        f"Of {int(known.sum())} networks in more than one dimension that generalise, {int((rqi[known] <= 0.8).sum())} "
        "have an index of 0.8 or less."
    )


DIAGRAMS = tuple(studies.PANEL_TITLES)
SPLITS = tuple(f"{name}_splits" for name in studies.PANEL_TITLES)
SENTENCES = {
    "overview": Sentence(overview, ()),
    "unique": Sentence(unique, ("ideal",)),
    "transition": Sentence(transition, ("transition",)),
    "accuracy": Sentence(accuracy, ("fractions",)),
    "ideal": Sentence(ideal, ("fractions",)),
    "mirrors": Sentence(mirrors, ("planes",)),
    "readings": Sentence(readings, ("trajectory",)),
    "times": Sentence(times, ("structure_times", "ideal")),
    "trajectory": Sentence(trajectory, ("trajectory",)),
    "never": Sentence(never, tuple(NEVER)),
    "phases": Sentence(phases, DIAGRAMS),
    "borders": Sentence(borders, DIAGRAMS),
    "decay": Sentence(decay, DECAYS),
    "splits": Sentence(splits, SPLITS),
    "group_splits": Sentence(group_splits, ("phases_group_splits",)),
    "batch": Sentence(batch, ("phases_batch",)),
    "scale": Sentence(scale, ("phases_scale",)),
    "embedding_decay": Sentence(embedding_decay, ("phases_decay",)),
    "hexagon": Sentence(hexagon, ("group_fractions",)),
    "group": Sentence(group, ("group_fractions",)),
    "ring": Sentence(ring, ("ring",)),
    "effective_dimension": Sentence(effective_dimension, ("ring",)),
    "initial": Sentence(initial, ("ring",)),
    "components": Sentence(components, ("component_accuracy",)),
    "dropout": Sentence(dropout, ("dropout_times",)),
    "transformer_decay": Sentence(transformer_decay, ("phases_transformer",)),
    "image_curves": Sentence(image_curves, ("image_curves",)),
    "images": Sentence(images, ("image_curves",)),
    "critical": Sentence(critical, ("critical_sizes", "transition")),
    "dimensions": Sentence(dimensions, ("dimensions",)),
    "holds": Sentence(holds, ("fractions", "group_fractions", "structure_times", "ideal")),
    "trend": Sentence(trend, ("structure_times", "phases_regression", "phases_transformer")),
}
