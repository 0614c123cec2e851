"""The ranges of the chapter's parameters: what types alone cannot say."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

DEVICES = ("auto", "cpu", "cuda")


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
            _at_least(name, value, 4)  # of fewer pairs than 4 * 4, Fig. 10's 95 % would be all
        elif name in ("width", "wide", "seeds", "d_model", "attention_heads") or name.endswith("steps"):
            _at_least(name, value, 1)
        elif name.startswith("train_fraction"):
            _fraction(name, value)
        elif name == "fractions":
            _several(name, value)
            for one in value:
                _fraction(name, one)
            _increasing(name, value)
        elif name in ("widths", "moduli", "heads"):
            _several(name, value)
            for one in value:
                _at_least(name, one, 3 if name == "moduli" else 1)  # of 2 * 2 pairs the largest fraction would be all
            _increasing(name, value)
        elif name == "budget" and not (_is_number(value) and value >= 0):
            raise ValueError(f"budget = {value!r}: a number of at least 0 is allowed (PFLOP)")
        elif name == "gd_lr" and not (_is_number(value) and value > 0):
            raise ValueError(f"gd_lr = {value!r}: a number above 0 is allowed")
        elif name == "device":
            _device(value)
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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _at_least(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} = {value!r}: a whole number of at least {least} is allowed")


def _fraction(name: str, value: Any) -> None:
    if not _is_number(value) or not 0 < value < 1:
        raise ValueError(f"{name} = {value!r}: a number strictly between 0 and 1 is allowed")


def _several(name: str, value: Any) -> None:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f"{name} = {value!r}: a list of at least one number is allowed")


def _increasing(name: str, value: Any) -> None:
    if any(later <= one for one, later in pairwise(value)):
        raise ValueError(f"{name} = {value!r}: numbers in increasing order, none of them twice, are allowed")


def _device(value: Any) -> None:
    if value not in DEVICES:
        raise ValueError(f"device = {value!r}: one of {', '.join(DEVICES)} is allowed")
    if value == "cuda":
        from grokbook.lazy import torch

        if not torch.cuda.is_available():
            raise ValueError("device = 'cuda': PyTorch finds no CUDA GPU on this machine; cpu and auto are allowed")
