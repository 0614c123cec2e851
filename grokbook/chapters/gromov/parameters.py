"""The ranges of the chapter's parameters: what types alone cannot say."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from grokbook.book.parameters import budget_and_device, fraction, number, several, whole


def check(given: Mapping[str, Any] | None = None, /, **named: Any) -> None:
    """Refuse values with which the chapter cannot run.

    Args:
        given, named: parameter -> value; those of the notebook that are not mentioned here are not looked at.

    Raises:
        ValueError: one line that names the parameter, the value and what is allowed.
    """
    values = {**(given or {}), **named}
    for name, value in values.items():
        if name == "p":
            whole(name, value, 4)  # of fewer pairs than 4 * 4, Fig. 10's 95 % would be all
        elif name in ("width", "wide", "seeds", "d_model", "attention_heads") or name.endswith("steps"):
            whole(name, value, 1)
        elif name.startswith("train_fraction"):
            fraction(name, value)
        elif name == "fractions":
            several(name, value, fraction)
            _increasing(name, value)
        elif name in ("widths", "moduli", "heads"):
            least = 3 if name == "moduli" else 1  # of 2 * 2 pairs the largest fraction would be all
            several(name, value, partial(whole, least=least))
            _increasing(name, value)
        elif name == "gd_lr":
            number(name, value, lambda rate: rate > 0, "a number above 0")
        else:
            budget_and_device(name, value)
    if values.get("d_model", 0) % 4:  # the transformer has 4 heads
        raise ValueError(f"d_model = {values['d_model']}: a multiple of 4 is needed")
    for name in ("heads", "attention_heads"):
        for count in _listed(values.get(name, ())):
            if values.get("d_model", count) % count:
                raise ValueError(f"{name} = {count}: divisors of d_model = {values['d_model']} are allowed")
    p = values.get("p")
    for name, value in values.items():
        if p is None or not (name.startswith("train_fraction") or name == "fractions"):
            continue
        for one in _listed(value):
            if not 0 < round(one * p * p) < p * p:
                raise ValueError(
                    f"{name} = {one}: with p = {p} it leaves {round(one * p * p)} of {p * p} pairs to train on; "
                    "both the training and the test set need at least one"
                )


def _listed(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


def _increasing(name: str, value: Any) -> None:
    if any(later <= one for one, later in pairwise(value)):
        raise ValueError(f"{name} = {value!r}: numbers in increasing order, none of them twice, are allowed")
