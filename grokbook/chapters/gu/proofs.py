"""The theory, checked: the flow of Fig. 8, and what algebra says of other theorems."""

from __future__ import annotations

import numpy as np
import xarray as xr

from grokbook.chapter import Section
from grokbook.chapters.gu import theory
from grokbook.claims import Part, at_least, at_most
from grokbook.words import percent

section = Section("proofs")
STARTS = np.stack(np.meshgrid(*[np.linspace(0.1, 0.9, 5)] * 3, indexing="ij"), -1).reshape(-1, 3)  # drawn in Fig. 8


@section.study
def flow() -> xr.Dataset:
    """Fig. 8's flow from 100,000 random points of the cube: the ``distance`` (start,) of its limit from (1, 1, 1).

    As attributes ``near``, the share that ends within 0.05 of it, rounded as far as other starts agree, and ``stays``,
    how far away trajectories get that start 0.01 away, on all sides.
    """
    begin = np.random.default_rng(0).uniform(0, 1, (100_000, 3))
    distance = np.linalg.norm(theory.flow_limit(begin) - 1, axis=1)
    sides = np.random.default_rng(1).standard_normal((200, 3))
    around = 1 + 0.01 * sides / np.linalg.norm(sides, axis=1, keepdims=True)
    away = np.linalg.norm(theory.flow_path(around, np.linspace(0, 5, 51)) - 1, axis=-1)
    found = {"near": round(float((distance < 0.05).mean()), 3), "stays": float(away.max())}
    return xr.Dataset({"distance": ("start", distance)}, attrs=found)


section.claim("fig8-attractor", "Fig. 8",
    "(1, 1, 1) is a stable equilibrium point of the flow, and the points of the cube move to it.",
    Part("farthest that trajectories from 0.01 away get", lambda study: study.attrs["stays"], at_most(0.02)),
    Part("random starts in the cube that end within 0.05 of it", lambda study: study.attrs["near"],
         at_least(0.95), percent),
    on="flow", paper="points within the cube move towards it")  # fmt: skip
