"""What the engine asks of a task and of a model. What is optional has a default here, and nothing else is asked."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from types import CodeType
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from grokbook.lazy import Generator, Params, Tensor


class Task(Protocol):
    """A labelled table to learn, and its split: a frozen dataclass whose fields are its part of a recipe.

    The train accuracy is the share of training rows answered as they were labelled in training; the test accuracy is
    against the table's own labels. The two differ where ``train_labels`` gives noisy ones.
    """

    version: ClassVar[int]  # raised when the same fields come to mean other numbers

    @property
    def train_size(self) -> int:
        """How many rows a seed trains on, the same for every seed."""

    def table(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Inputs (rows, ...) and labels (rows,)."""

    def in_train(self, seed: int) -> NDArray[np.bool_]:
        """Which rows a seed trains on, (rows,)."""

    # Optional.

    # Fields that change which rows are trained on, or what their labels are, and not the inputs: runs that differ in no
    # other train as one stack.
    split_fields: ClassVar[tuple[str, ...]] = ("train_fraction",)
    # From a seed: labels (rows,) to train on where they are not the table's; only those of training rows count.
    train_labels: Callable[[int], NDArray[np.int64] | None] = staticmethod(lambda seed: None)
    # From a seed: what the outputs are to be for each label, (labels, outputs); None is one-hot.
    targets: Callable[[int], NDArray[np.float64] | None] = staticmethod(lambda seed: None)
    # From rows of the table (M, B, ...) to what the model is given, where that is too large to keep: pictures from the
    # symbols on them, numbers from bytes. Made for the samples of a step and for blocks of rows in evaluation.
    compose: Callable[[Tensor], Tensor] | None = None


class Model(Protocol):
    """A network without its weights: a frozen dataclass whose fields are its part of a recipe.

    Params have a leading member axis M, inputs (M, B, ...) are rows of a table.
    """

    version: ClassVar[int]

    def init(self, generator: Generator) -> Params:
        """What one member starts with, without the member axis: float32, drawn on the CPU from the generator alone."""

    def __call__(self, params: Params, inputs: Tensor) -> Tensor:
        """Outputs (M, B, classes), as in evaluation.

        In a training step a model with ``dropout`` is also given ``noise`` (``grokbook.streams.Stream``), which masks
        are drawn from, and one with ``buffers`` is given ``training=True``: it then moves them, in place.
        """

    # Optional.

    # Params that no gradient moves and the optimizer never sees, such as running means; contiguous, unlike the others.
    buffers: tuple[str, ...] = ()
    # Samples of a batch meet: only members with equally many of them train as one stack, and, without buffers that
    # stand in for the others in evaluation, the table is evaluated whole.
    batch_norm: bool = False
    dropout: float | None = 0.0
    floats_per_sample: int = 1024  # between the layers; decides how many members and rows go side by side
    side_by_side: int = 1  # members that a core is quicker with than with fewer, even where they leave its cache
    flops_per_sample: int | None = None  # of a training step; for models of which one is too long to count by taking it
    # Fields that ``init`` alone reads: runs whose models differ in no other train as one stack.
    init_fields: ClassVar[tuple[str, ...]] = ()
    axes: ClassVar[dict[str, Sequence[str]]] = {}  # what records call the dimensions of a param, without the members'

    # Gradients by hand instead of autograd's: of any loss, from (params, inputs, function from outputs to the gradient
    # with respect to them); or, where ``has_own_gradients``, of one loss, from (params, inputs, labels, weights).
    gradients: Callable[..., Params] | None = None
    has_own_gradients: bool = False
    mse_gradients: Callable[..., Params] | None = None
    cross_entropy_gradients: Callable[..., Params] | None = None

    # Of the hidden units, from (params, inputs), after and before their nonlinearity, (M, B, hidden); for measures.
    activations: Callable[..., Tensor] | None = None
    hidden: Callable[..., Tensor] | None = None


def optional(thing: Any, name: str) -> Any:
    """An optional part of a task or model: its own, or the default of the protocol that names it."""
    return getattr(thing, name, getattr(Model if hasattr(Model, name) else Task, name))


@functools.cache
def own_code(thing: Any) -> str:
    """A hash of a class's or function's code without what that calls; "" for those of this package: see ``version``.

    Defaults, what a function closes over and attributes of a class are part of it where they are plain data.
    """
    if thing.__module__.startswith("grokbook."):
        return ""
    owners = [one for one in getattr(thing, "__mro__", [thing]) if not one.__module__.startswith("grokbook.")]
    told: list[Any] = []
    for owner in owners:
        own = {one.name for one in fields(owner)} if is_dataclass(owner) else ()  # part of a recipe by their values
        for name, part in (("", owner), *vars(owner).items()):
            it = inspect.unwrap(getattr(part, "fget", getattr(part, "func", getattr(part, "__func__", part))))
            if code := getattr(it, "__code__", None):
                given = getattr(part, "args", ()), getattr(part, "keywords", {})  # of a partial
                around = [cell.cell_contents for cell in it.__closure__ or ()]
                told += [_plainly(one) for one in (code, it.__defaults__, it.__kwdefaults__, around, *given)]
            elif name and not name.startswith("__") and name not in own:
                told.append([name, _plainly(it)])
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def _plainly(value: Any) -> Any:
    """Code and plain data as what is the same in every process; other things, which may tell their address, as ""."""
    if isinstance(value, CodeType):
        return value.co_code, value.co_names, [_plainly(one) for one in value.co_consts]
    if isinstance(value, Mapping):
        value = [[key, one] for key, one in value.items()]
    if isinstance(value, Set):
        return sorted(map(repr, map(_plainly, value)))
    if isinstance(value, tuple | list):
        return [_plainly(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return repr(value) if isinstance(value, int | float | complex | str | bytes | None) else ""
