"""The ranges of the chapter's parameters: what types alone cannot say."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from grokbook.book.parameters import budget_and_device, number, several, whole
from grokbook.chapters.liu.training import solvable_seeds
from grokbook.images import check_mnist

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
            whole(name, value, 5, 30)  # fewer leave no parallelogram to imply, more make the tables of theory slow
        elif name in ("image_steps", "image_phase_steps"):
            whole(name, value, 0)
        elif name in COUNTS or name.endswith(("steps", "coarseness")) or name in ("layers", "hidden"):
            whole(name, value, 1)
        elif name == "d_model":
            whole(name, value, 2)  # the plane of Figs 1 and 7 has two directions
        elif name == "moduli":
            several(name, value, partial(whole, least=4, most=50))
        elif name in ("sizes", "time_sizes"):
            several(name, value, partial(whole, least=1, most=54))
        elif name == "group_sizes":
            several(name, value, partial(whole, least=1, most=35))
        elif name in ("transformer_p", "dropout_p"):
            whole(name, value, 5)
        elif name == "dropout":
            number(name, value, lambda share: 0 <= share < 1, "a number from 0 to below 1")
        elif name == "mnist_dir" and value:
            check_mnist(value)
        else:
            budget_and_device(name, value)
    if "p" in values and "train_size" in values:
        p, size = values["p"], values["train_size"]
        whole("train_size", size, 1, p * (p + 1) // 2 - 1)
        solvable_seeds(p, size, values.get("split_seeds", 1))
