"""How many members a GPU's memory holds: a step of one is taken without numbers, and what lives at once added up."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from grokbook.lazy import torch
from grokbook.train.contract import optional
from grokbook.train.experiment import Experiment, Run
from grokbook.train.state import FLOATS_AT_ONCE, State

USED = 0.85  # of what is free; the rest is for the libraries and for what lies between blocks
COPIES = 2  # of all tables while a step is captured, and while members leave


def block_in(experiment: Experiment, free: int) -> int:
    """The largest stack of an experiment's members that ``free`` bytes hold, at least 1."""
    shapes = {repr((run.task, run.model, run.batch_size, type(run.optimizer))): run for run in experiment.runs}
    return max(1, int(USED * free) // max(map(bytes_of, shapes.values())))


def bytes_of(run: Run) -> int:
    """Memory that a member takes in training: its tables, and the larger of a step and an evaluation."""
    from torch.utils._pytree import tree_leaves

    state = State.start([run], torch.device("meta"), torch.float32)
    state.count = torch.ones((), dtype=torch.float64, device="meta")
    tables = sum(table.nbytes for table in (*state.optimizer.tables.values(), state.optimizer.gradient))
    inputs = state.batch().inputs
    data = sum(value.nbytes for value in tree_leaves(vars(state.data)) if isinstance(value, torch.Tensor))
    rows = min(len(state.data.table), FLOATS_AT_ONCE["cuda"] // optional(run.model, "floats_per_sample"))

    def look() -> None:
        with torch.no_grad():
            run.model(state.params, inputs)

    return COPIES * tables + data + max(most_bytes(state._advance), rows * most_bytes(look) // inputs.shape[1])


def most_bytes(call: Callable[[], object]) -> int:
    """The most bytes that live at once of all that a call makes."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Watch(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.now = self.most = 0
            self.known: weakref.WeakSet[Any] = weakref.WeakSet()

        def release(self, size: int) -> None:
            self.now -= size

        def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            before = {one.untyped_storage()._cdata for one in tree_leaves((args, kwargs)) if torch.is_tensor(one)}
            found = operator(*args, **(kwargs or {}))
            for one in tree_leaves(found):
                if torch.is_tensor(one) and one.untyped_storage()._cdata not in before:
                    storage = one.untyped_storage()
                    if storage not in self.known:
                        self.known.add(storage)
                        self.now += storage.nbytes()
                        weakref.finalize(storage, self.release, storage.nbytes())
            self.most = max(self.most, self.now)
            return found

    with Watch() as watch:
        call()
    return watch.most
