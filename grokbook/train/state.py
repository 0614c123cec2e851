"""Members of one shape in training: a step of all of them, and what can be measured of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokbook.lazy import Params, Tensor, torch
from grokbook.optim import Stepper, stepper
from grokbook.streams import Stream, keys
from grokbook.train import monitor
from grokbook.train.capture import capture
from grokbook.train.contract import optional
from grokbook.train.data import Batch, Data, output_gradients, predictions, sample_losses
from grokbook.train.experiment import CURVES, DIMENSIONS, Run, coordinates
from grokbook.train.monitor import Measured

FLOATS_AT_ONCE = {"cpu": 1 << 25, "cuda": 1 << 31}  # between the layers in evaluation: 128 MB, 8 GB
STOPPED = "stopped; the same call goes on from its last checkpoint"


@dataclass
class State:
    """M members in training: everything that a checkpoint holds."""

    runs: list[Run]
    members: list[int]  # position of each in the experiment
    step: int
    optimizer: Stepper
    data: Data = field(repr=False)
    buffers: Params = field(repr=False)  # params that the optimizer never sees
    mask_keys: Tensor = field(repr=False)  # (M, 1) of the stream that dropout's masks are from
    count: Tensor | None = None  # number of the update, on the device
    eager: bool = False  # whether a step could not be captured
    replays: dict[int, Callable[[], None]] = field(default_factory=dict)  # one update, by B, as a graph if there is one
    # Asked between the blocks of a look at the whole table, which may take long.
    stop: Callable[[], bool] = lambda: False

    @property
    def params(self) -> Params:
        """The stacked parameters, name -> (M, ...), buffers among them."""
        return {**self.optimizer.params, **self.buffers}

    @classmethod
    def start(cls, runs: Sequence[Run], device: torch.device, dtype: torch.dtype) -> State:
        """Every member drawn on the CPU from its own seed, then moved: a seed means the same on every device."""
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float32)  # whatever whoever imports this has made PyTorch's
        try:
            drawn = [run.model.init(torch.Generator().manual_seed(run.seed)) for run in runs]
            again = runs[0].model.init(torch.Generator().manual_seed(runs[0].seed))
        finally:
            torch.set_default_dtype(before)
        if not all(torch.equal(value, again[name]) for name, value in drawn[0].items()):
            raise ValueError("model: its init must draw from its generator alone, and gives other numbers each time")
        params = {name: torch.stack([one[name] for one in drawn]).to(device, dtype) for name in drawn[0]}
        buffers = {name: params.pop(name) for name in optional(runs[0].model, "buffers")}
        seeds = [run.seed for run in runs]
        optimizer = stepper([run.optimizer for run in runs], params, seeds)
        masks = torch.from_numpy(keys(seeds, "dropout")).to(device)
        return cls(list(runs), list(range(len(runs))), 0, optimizer, Data.of(runs, device, dtype), buffers, masks)

    def batch(self) -> Batch:
        """What the next step is taken on."""
        return self.data.whole or self.data.batch(*self.data.batches.at(self.step))

    def gradients(self) -> Params:
        """The gradient of each member's training loss over the next batch; nothing changes."""
        own, self.buffers = self.buffers, {name: value.clone() for name, value in self.buffers.items()}
        found = self._pass(self.step + 1)
        self.buffers = own
        return found

    def _pass(self, count: int | Tensor) -> Params:
        """Forward and backward through the next batch: gradients for update number ``count``, and buffers moved."""
        run, (inputs, labels, weights, wanted) = self.runs[0], self.batch()
        learnt = self.optimizer.perturbed(count)
        own = optional(run.model, f"{run.loss}_gradients")
        if own and optional(run.model, "has_own_gradients") and inputs.is_cpu:
            return own(learnt, inputs, labels, weights)
        if by_hand := optional(run.model, "gradients"):
            of_loss = partial(output_gradients, labels=labels, weights=weights, loss=run.loss, wanted=wanted)
            return by_hand(learnt, inputs, of_loss)
        learnt = {name: value.detach().requires_grad_() for name, value in learnt.items()}
        options: dict[str, Any] = {"training": True} if self.buffers else {}
        if optional(run.model, "dropout"):  # masks from seed and step alone, so that a resumed run goes on
            options["noise"] = Stream(self.mask_keys, count)
        outputs = run.model({**learnt, **self.buffers}, inputs, **options)
        losses = (sample_losses(outputs, labels, run.loss, wanted) * weights).sum(-1)  # (M,)
        # Members share nothing, so the gradient of the sum is each member's own.
        gradients = torch.autograd.grad(losses.sum(), list(learnt.values()))
        return dict(zip(learnt, gradients, strict=True))

    def update(self) -> None:
        """One optimizer step; on a GPU as a captured graph, one launch where there were hundreds."""
        size = 0 if self.data.whole else self.data.batches.at(self.step)[0].shape[1]
        if size not in self.replays:
            self.replays[size] = self._advance
            # On the device where steps are not captured, too: the fused kernels there cannot read the host's memory.
            if self.count is None and (self.data.labels.is_cuda or wants_graph(self)):
                self.count = torch.ones((), dtype=torch.float64, device=self.data.labels.device)
            if wants_graph(self):
                self.replays[size] = capture(self._advance, [*self.optimizer.tables.values(), *self.buffers.values()])
                self.eager = self.replays[size] == self._advance
        # All that changes from step to step, before what a graph replays.
        if self.count is not None:
            self.count.fill_(self.step + 1)
        self.replays[size]()
        self.step += 1

    def _advance(self) -> None:
        count = self.step + 1 if self.count is None else self.count
        self.optimizer.step(self._pass(count), count)

    def measure(self, names: Sequence[str], losses: bool = True) -> dict[str, NDArray[np.float64]]:
        """Losses, accuracies and the named measures, each (M,)."""
        of_rows, found = self._evaluate(losses)
        asked = {"loss": of_rows} if losses else {}
        asked["accuracy"] = (found == self.data.labels).double()
        numbers = {}
        for split, mask in (("train", self.data.in_train.double()), ("test", (~self.data.in_train).double())):
            for name, values in asked.items():
                numbers[f"{split}_{name}"] = ((values * mask).sum(-1) / mask.sum(-1)).cpu().numpy()
        taken = {*CURVES, *DIMENSIONS, *self.params, *coordinates(self.runs[:1])} if names else set()
        for name, own in monitor.numbers(names, self.measured(found)).items() if names else ():
            if name in taken or "/" in name:
                why = "has a '/'" if "/" in name else "is there already"
                raise ValueError(f"a measure gives {name}, which {why}: it needs another name")
            if np.shape(own) != (len(self.runs),):
                raise ValueError(f"a measure gives {name} of shape {np.shape(own)}: one number a member is needed")
            numbers[name] = np.asarray(own)
        return numbers

    def losses(self, params: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        """The training loss (M,) that other params would have."""
        moved = {name: torch.from_numpy(value).to(self.params[name]) for name, value in params.items()}
        losses, mask = self._evaluate(params=moved)[0], self.data.in_train.double()
        return ((losses * mask).sum(-1) / mask.sum(-1)).cpu().numpy()

    def _evaluate(self, losses: bool = True, params: Params | None = None) -> tuple[Tensor, Tensor]:
        """The loss of every row of the table, in double precision, and what it is answered, each (M, rows)."""
        data, run, params = self.data, self.runs[0], params or self.params
        found = []
        with torch.no_grad():
            for rows, inputs in self._blocks():
                outputs, labels = run.model(params, inputs), data.labels[:, rows]
                if outputs.shape[:-1] != labels.shape or outputs.shape[-1] < data.least:
                    told = f"{type(run.model).__name__} gives outputs of shape {tuple(outputs.shape)}"
                    need = f"({', '.join(map(str, labels.shape))}, {data.least} or more)"
                    raise ValueError(f"{told}, and (M, B, classes) = {need} is needed")
                answers = predictions(outputs, data.targets)
                of_rows = sample_losses(outputs, labels, run.loss, data.wanted(labels)).double() if losses else answers
                found.append((of_rows, answers))
        return torch.cat([of_rows for of_rows, _ in found], 1), torch.cat([answers for _, answers in found], 1)

    def _blocks(self) -> Iterator[tuple[slice, Tensor]]:
        for block in self.data.blocks(self._at_once()):
            if self.stop():
                raise KeyboardInterrupt(STOPPED)
            yield block

    def _at_once(self) -> int:
        """Rows of the table that are evaluated at once: all, if what a model makes of them fits."""
        model = self.runs[0].model
        if optional(model, "batch_norm") and not self.buffers:
            return len(self.data.table)
        floats = FLOATS_AT_ONCE[self.data.labels.device.type]
        return max(1, floats // (len(self.runs) * optional(model, "floats_per_sample")))

    def measured(self, answers: Tensor | None = None) -> Measured:
        """What measures may ask for; the costly parts, but for the ``answers`` if known, are computed when asked."""
        found = cache(lambda: self._evaluate(losses=False)[1] if answers is None else answers)
        return Measured(
            weights=self.params,
            params=monitor.Brought(self.params),
            in_train=self.data.in_train.cpu().numpy(),
            tasks=[run.task for run in self.runs],
            model=self.runs[0].model,
            answers=lambda: found().cpu().numpy(),
            correct=lambda: (found() == self.data.answers).cpu().numpy(),
            gradients=self.gradients,
            losses=self.losses,
            outputs=lambda: self._over_table("__call__"),
            activations=lambda: self._over_table("activations"),
            preactivations=lambda: self._over_table("hidden"),
        )

    def _over_table(self, name: str) -> NDArray[Any]:
        """What a part of the model gives for every row of the table, (M, rows, ...)."""
        model = self.runs[0].model
        if not callable(function := optional(model, name)):
            raise ValueError(f"{type(model).__name__} has no {name}, which something measured or kept asks for")
        with torch.no_grad():
            blocks = [function(self.params, inputs).cpu() for _, inputs in self._blocks()]
            return torch.cat(blocks, 1).numpy()

    def keep(self, positions: list[int]) -> None:
        """Go on with these members only."""
        self.runs = [self.runs[i] for i in positions]
        self.members = [self.members[i] for i in positions]
        self.optimizer.keep(positions)
        self.buffers = {name: value[positions] for name, value in self.buffers.items()}
        self.mask_keys = self.mask_keys[positions]
        self.data = Data.of(self.runs, self.data.table.device, self.data.dtype)
        self.count, self.replays = None, {}


def wants_graph(state: State) -> bool:
    """Whether a step is to be captured: on a GPU, where it can be and did not fail before."""
    return state.data.labels.is_cuda and not state.eager
