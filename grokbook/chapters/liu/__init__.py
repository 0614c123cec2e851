"""Liu et al. (2022), "Towards Understanding Grokking": when embeddings form a line, and four ways of learning."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

from grokbook import settings
from grokbook.chapter import Chapter
from grokbook.settings import Budget, Range, Seeds, Steps, whole


def _folder_or_none(value: str) -> bool:
    from grokbook.chapters.liu.pictures import mnist

    if value:
        mnist(value)
    return True


@dataclass(frozen=True)
class Settings(settings.Settings):
    """What a reader may change; see the parameters cell of the notebook for the words."""

    p: Annotated[int, whole(5, 30)] = 10  # fewer leave nothing to imply, more make the theory's tables slow
    train_size: Annotated[int, whole(1)] = 45
    seeds: Seeds = 10
    draws: Annotated[int, whole(1)] = 2_000
    steps: Steps = 100_000
    coarseness: Annotated[int, whole(1, 12)] = 1
    split_seeds: Seeds = 3
    transformer_p: Annotated[int, whole(5, 300)] = 59
    transformer_steps: Steps = 20_000
    mnist_dir: Annotated[str, Range("empty, or a folder with the four files of MNIST,", _folder_or_none)] = ""
    budget: Budget = 0.03

    def __post_init__(self) -> None:
        """Refuse, by ``ValueError``, a training set that is no part of the table."""
        super().__post_init__()
        if self.mnist_dir:  # a page's kernel has another working directory
            object.__setattr__(self, "mnist_dir", os.path.abspath(self.mnist_dir))
        if self.train_size >= (samples := self.p * (self.p + 1) // 2):
            raise ValueError(
                f"train_size = {self.train_size}: it must be fewer than the {samples} samples of p = {self.p}"
            )


CHAPTER = Chapter(
    "liu",
    Settings,
    ("parallelograms", "networks", "effective", "phases", "groups", "transformers", "images", "beyond"),
    quick={"p": 6, "train_size": 17, "seeds": 2, "draws": 200, "steps": 1000, "coarseness": 5, "split_seeds": 1,
           "transformer_p": 11, "transformer_steps": 300},
)  # fmt: skip
