"""The ranges of the chapter's parameters: what types alone cannot say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grokbook.chapters.liu.phases import solvable_seeds
from grokbook.images import check_mnist

DEVICES = ("auto", "cpu", "cuda")
COUNTS = (
    *("seeds", "split_seeds", "four_seeds", "plane_seeds", "group_seeds", "image_seeds", "transformer_seeds"),
    *("draws", "coarseness", "shorten", "dropouts"),
)


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
            _between(name, value, 5, 30)  # fewer leave no parallelogram to imply, more make the tables of theory slow
        elif name in ("image_steps", "image_phase_steps"):
            _between(name, value, 0)
        elif name in COUNTS or name.endswith(("steps", "coarseness")) or name in ("d_model", "layers", "hidden"):
            _between(name, value, 1)
        elif name == "moduli":
            _several(name, value)
            for one in value:
                _between(name, one, 4, 50)
        elif name in ("sizes", "time_sizes"):
            _several(name, value)
            for one in value:
                _between(name, one, 1, 54)
        elif name == "group_sizes":
            _several(name, value)
            for one in value:
                _between(name, one, 1, 35)
        elif name in ("transformer_p", "dropout_p"):
            _between(name, value, 5)
        elif name == "delta" and not (_is_number(value) and value >= 0):
            raise ValueError(f"delta = {value!r}: a length of at least 0 is allowed")
        elif name == "dropout" and not (_is_number(value) and 0 <= value < 1):
            raise ValueError(f"dropout = {value!r}: a number from 0 to below 1 is allowed")
        elif name == "budget" and not (_is_number(value) and value >= 0):
            raise ValueError(f"budget = {value!r}: a number of at least 0 is allowed (PFLOP)")
        elif name == "device" and value not in DEVICES:
            raise ValueError(f"device = {value!r}: choose one of {', '.join(DEVICES)}")
        elif name == "mnist_dir" and value:
            check_mnist(value)
    if "p" in values and "train_size" in values:
        p, size = values["p"], values["train_size"]
        _between("train_size", size, 1, p * (p + 1) // 2 - 1)
        solvable_seeds(p, size, values.get("split_seeds", 1))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _between(name: str, value: Any, least: int, most: int | None = None) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        allowed = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} = {value!r}: a whole number {allowed} is allowed")


def _several(name: str, value: Any) -> None:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f"{name} = {value!r}: a list of at least one whole number is allowed")
