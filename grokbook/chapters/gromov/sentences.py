"""Sentences of the chapter that carry numbers: each is computed from records, so that none is ever typed in."""

from __future__ import annotations

from functools import partial

import numpy as np

from grokbook.chapters.gromov import studies
from grokbook.chapters.gromov.studies import median
from grokbook.firstform.claims import Records, Sentence, number, percent


def dynamics(records: Records) -> str:
    """Beside Fig. 1: when training and test pairs are learnt, and where the test loss peaks."""
    record = records["learning_curves"]
    p = int(record.p.values[0])
    (t_train, t_test), (where, peak) = studies.times(record), studies.loss_peak(record)
    before = studies.at(record, "test_accuracy", t_train)
    steepest = studies.highest_at(studies.gradient_norm(record), record.step.values)
    return (
        f"The median network knows its training pairs at step {number(median(t_train))}, when it answers "
        f"{percent(median(before))} of the others, and the others at step {number(median(t_test))}; the median delay "
        f"is {number(median(t_test / t_train))}. Its test loss is largest at step {number(median(where))}, "
        f"{percent(median(peak) * p - 1)} above that of a network that says nothing; its gradients are largest at step "
        f"{number(median(steepest))}."
    )


def delays(records: Records) -> str:
    """Beside the comparison of scalings: the three delays."""
    words = []
    for name, label in (
        ("learning_curves", "1/(2pN) under gradient descent"),
        ("printed_scaling", "2/N with momentum"),
        ("printed_scaling_plain", "2/N without momentum"),
    ):
        record = records[name]
        t_train, t_test = studies.times(record)
        learnt = int(np.isfinite(t_test).sum())
        delay = number(median(t_test / t_train)) if learnt else "longer than the run"
        words.append(f"{delay} for {label} ({learnt} of {len(t_test)} networks got there)")
    return "The median delays are " + ", ".join(words) + "."


def widths(records: Records) -> str:
    """Beside the analytic solution: where accuracy and error pass their marks."""
    study = records["analytic"].mean("seed")
    p = int(records["analytic"].attrs["p"])
    enough = study.width.values[(study.accuracy >= 0.999).values]
    below = study.width.values[(study.mse < 1 / p).values]
    return (
        f"Of the widths drawn, {enough[0] if len(enough) else 'none'} is the first to answer 99.9 % of the table, and "
        f"{below[0] if len(below) else 'none'} "
        f"the first whose error is below 1/p = {1 / p:.4f}, that of saying nothing, since 4/N must be smaller than "
        "1/p. A network can answer "
        "everything right and have a larger loss than one that is silent."
    )


def lines(records: Records) -> str:
    """Beside the lines of the Fourier image: how weak the weak lines are."""
    share = records["line_shares"].share
    others = (1 - share.sel(line="n + m") - share.sel(line="rest")).median("seed")
    weak = {str(name): float(others.sel(condition=name)) for name in others.condition.values}
    analytic, gd, adamw = (percent(weak[name]) for name in ("analytic", "GD", "AdamW"))
    return (
        f"The paper sees the weak lines in the analytic image only. They hold {analytic} of its power, against {gd} "
        f"after gradient descent and {adamw} after AdamW: a trained network does better than random phases, because it "
        "can make the unwanted families cancel."
    )


def controls(records: Records) -> str:
    """Beside the controls of Fig. 3: the four standard deviations, at the end and where they are smallest."""
    found = []
    for label, record in studies.conditions(records["phase_controls"]):
        record = studies.own_steps(record)
        middle = np.degrees(np.median(record.residual_sd.values, axis=0))  # (step,)
        lowest = int(np.argmin(np.where(np.isfinite(middle), middle, np.inf)))
        end = np.degrees(np.median(studies.last(record, "residual_sd")))
        found.append(f"{end:.1f}° for {label} ({middle[lowest]:.1f}° at step {number(float(record.step[lowest]))})")
    return f"At the end, and in brackets where it is smallest, the median standard deviation is {', '.join(found)}."


def constant(records: Records) -> str:
    """Beside Fig. 4b: how far the curves are apart, with and without the constant part of the analytic outputs."""
    study = records["analytic_widths"].mean("seed")
    by_label = dict(studies.conditions(records["width_scaling"]))
    widths, trained = studies.sweep(by_label["AdamW"], "width", studies.final_test_accuracy)
    mean = np.nanmean(trained, axis=0)
    gaps = {name: mean - study[name].sel(width=widths.astype(int)).values for name in ("accuracy", "accuracy_centred")}
    widest = int(np.argmax(np.abs(gaps["accuracy"])))
    plain, centred = gaps["accuracy"][widest], np.abs(gaps["accuracy_centred"])
    return (
        f"Between AdamW's networks and the analytic one the accuracies differ by up to {percent(plain)} of the pairs "
        f"(at N = {int(widths[widest])}). Once the mean of every output is subtracted from the analytic network, by "
        f"{percent(centred[widest])} at that width and by {percent(centred.max())} at most."
    )


def ipr(records: Records) -> str:
    """Beside Fig. 6: four values of the participation ratio."""
    record = records["adamw_curves"]
    t_train, t_test = studies.times(record)
    start, fit, grok = (median(studies.at(record, "ipr", t)) for t in (0 * t_train, t_train, t_test))
    end = np.median(studies.last(record, "ipr"))
    return (
        f"It starts at {number(start)}, the value of Gaussian weights, is {number(fit)} when the training set is "
        "learnt (step "
        f"{number(median(t_train))}) and {number(grok)} when the test set is (step {number(median(t_test))}), and ends "
        f"at {number(end)}."
    )


def basis(records: Records) -> str:
    """Beside Fig. 9: the participation ratio of networks that are periodic in another order of the operands."""
    found = []
    for f in dict.fromkeys(records["modular_functions"].f.values.tolist()):
        record = studies.select(records["modular_functions"], f=f)
        accuracy, value = (np.median(studies.last(record, name)) for name in ("test_accuracy", "ipr"))
        found.append(f"{studies.pretty(f)}: test accuracy {percent(accuracy)}, participation ratio {number(value)}")
    return (
        "A warning for whoever measures periodicity: the ratio looks at the operands in their usual order. "
        + "; ".join(found)
        + ". A small value means that nothing periodic in *n* was learnt, not that nothing was."
    )


def sample(records: Records) -> str:
    """Beside Fig. 5: on how many pairs these accuracies rest."""
    study = records["activations"].accuracy
    p, seeds = int(records["activations"].attrs["p"]), study.sizes["seed"]
    pairs = min(studies.SAMPLE, p * p)
    return (
        f"**What was computed**: p = {p}, {seeds} draws of the phases, and for each of them {pairs} of the {p * p:,} "
        "pairs, chosen at random, since the widest networks would take minutes on the whole table. Nothing is trained."
    )


def heads(records: Records) -> str:
    """Beside Fig. 13: how many heads each net needs, and how much of the training set the fewest heads ever learn."""
    found = []
    for label, record in studies.conditions(records["attention_heads"]):
        counts, test = studies.sweep(record, "heads", partial(studies.best, split="test"))
        _, train = studies.sweep(record, "heads", partial(studies.best, split="train"))
        enough = counts[np.median(test, axis=0) >= 0.9]
        reached = f"from {int(enough[0])} heads on" if len(enough) else "with none of the head counts"
        fewest = percent(np.median(train[:, 0]))
        found.append(f"{label}: {reached} (with {int(counts[0])}, at most {fewest} of the training pairs are right)")
    words = "; ".join(found)
    return f"Heads with which the median network at its best answers 90 % of the test pairs. {words}."


SENTENCES: dict[str, Sentence] = {
    "dynamics": Sentence(dynamics, ("learning_curves",)),
    "delays": Sentence(delays, ("learning_curves", "printed_scaling", "printed_scaling_plain")),
    "widths": Sentence(widths, ("analytic",)),
    "lines": Sentence(lines, ("learning_curves", "adamw_curves", "line_shares")),
    "controls": Sentence(controls, ("phase_controls",)),
    "constant": Sentence(constant, ("width_scaling", "analytic_widths")),
    "sample": Sentence(sample, ("activations",)),
    "ipr": Sentence(ipr, ("adamw_curves",)),
    "basis": Sentence(basis, ("modular_functions",)),
    "heads": Sentence(heads, ("attention_heads",)),
}
