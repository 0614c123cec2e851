"""What the page's parameters may be."""

from __future__ import annotations

from typing import Any


def check(values: dict[str, Any]) -> None:
    """Refuse what no plan can be made for.

    Raises:
        ValueError: a value out of range.
    """
    if not values["workers"] or any(count < 1 for count in values["workers"]):
        raise ValueError(f"workers = {values['workers']}: numbers of GPUs, each at least 1, are needed")
    for name in ("gpu_tflops", "launch_ms"):
        if not values[name] > 0:
            raise ValueError(f"{name} = {values[name]}: it must be above 0")
