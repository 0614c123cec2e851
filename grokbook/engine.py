"""The training loop: members of one shape, stacked, stepped together, measured on a schedule, checkpointed.

``train`` is the whole of it. It knows tasks, models, optimizers and measures by their interfaces and no chapter.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import pickle
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from grokbook import records
from grokbook.experiment import Experiment, Run, Watch
from grokbook.lazy import torch
from grokbook.monitor import MEASURES, Measured
from grokbook.optim import Stepper, stepper

if TYPE_CHECKING:
    from torch import Tensor

    Params = dict[str, Tensor]

CHECKPOINT_SECONDS = 45.0  # then the next evaluation is followed by a checkpoint,
LATEST_CHECKPOINT_SECONDS = 55.0  # and if none comes, any step is
REPORT_SECONDS = 1.0
CURVES = ("train_loss", "test_loss", "train_accuracy", "test_accuracy")

Report = Callable[[int, dict[str, float]], None]


@dataclass
class Data:
    """The tables of M members on their device: all rows to measure on, the training rows to step on.

    ``inputs`` (M, rows, ...) and ``labels`` (M, rows) with ``in_train`` (M, rows); ``train_inputs`` (M, n, ...),
    ``train_labels`` (M, n) and ``weights`` (M, n), which sum to one and are zero where a shorter set is padded.
    ``targets`` (M, labels, outputs) is what each label's outputs are to be, None for one-hot vectors;
    ``train_targets`` (M, n, outputs) is that for the training rows.
    """

    inputs: Tensor
    labels: Tensor
    in_train: Tensor
    train_inputs: Tensor
    train_labels: Tensor
    weights: Tensor
    targets: Tensor | None
    train_targets: Tensor | None

    @classmethod
    def of(cls, runs: Sequence[Run], device: torch.device, dtype: torch.dtype) -> Data:
        """Stack the tables and splits of ``runs``."""
        tables = {run.task: run.task.table() for run in runs}
        masks = [run.task.in_train(run.seed) for run in runs]
        longest = max(int(mask.sum()) for mask in masks)
        inputs, labels, weights = [], [], []
        for run, mask in zip(runs, masks, strict=True):
            x, y = (part[mask] for part in tables[run.task])
            padding = longest - len(y)
            inputs.append(np.concatenate([x, np.zeros((padding, *x.shape[1:]), x.dtype)]))
            labels.append(np.concatenate([y, np.zeros(padding, y.dtype)]))
            weights.append(np.concatenate([np.full(len(y), 1 / len(y)), np.zeros(padding)]))

        def on_device(arrays: list[NDArray[Any]]) -> Tensor:
            stacked = torch.from_numpy(np.stack(arrays)).to(device)
            return stacked.to(dtype) if stacked.is_floating_point() else stacked

        of_labels: list[Any] = [getattr(run.task, "targets", _one_hot)(run.seed) for run in runs]
        targets = None if of_labels[0] is None else on_device(of_labels)
        train_labels = on_device(labels)

        return cls(
            on_device([tables[run.task][0] for run in runs]),
            on_device([tables[run.task][1] for run in runs]),
            on_device(masks),
            on_device(inputs),
            train_labels,
            on_device(weights),
            targets,
            None if targets is None else targets_of(train_labels, targets),
        )

    def keep(self, members: Sequence[int]) -> Data:
        """The same for some of the members."""
        index = list(members)

        def kept(value: Any) -> Any:
            return None if value is None else value[index]

        return Data(*(kept(getattr(self, name)) for name in self.__dataclass_fields__))


def _one_hot(seed: int) -> None:
    """Targets of a task that has none of its own."""


def sample_losses(outputs: Tensor, labels: Tensor, loss: str, targets: Tensor | None = None) -> Tensor:
    """The loss of each sample, (M, B), from ``outputs`` (M, B, classes) and ``labels`` (M, B).

    With ``targets`` (M, labels, outputs) the mean squared error is against those, else against one-hot vectors.
    """
    if loss == "cross_entropy":
        return torch.nn.functional.cross_entropy(outputs.transpose(1, 2), labels, reduction="none")
    wanted = None if targets is None else targets_of(labels, targets)
    return _errors(outputs, labels, wanted).square().mean(-1)


def targets_of(labels: Tensor, targets: Tensor) -> Tensor:
    """What the outputs of samples with ``labels`` (M, B) are to be, (M, B, outputs)."""
    return targets.gather(1, labels[..., None].expand(-1, -1, targets.shape[-1]))


def output_gradients(outputs: Tensor, labels: Tensor, weights: Tensor, loss: str, wanted: Tensor | None) -> Tensor:
    """The gradient of each member's weighted mean of ``sample_losses`` with respect to the outputs, by hand.

    ``wanted`` (M, B, outputs) is what the outputs are to be, None for one-hot vectors.
    """
    if loss == "cross_entropy":
        return _errors(outputs.softmax(-1), labels, None).mul_(weights[..., None])
    return _errors(outputs, labels, wanted).mul_(2 / outputs.shape[-1] * weights[..., None])


def _errors(outputs: Tensor, labels: Tensor, wanted: Tensor | None) -> Tensor:
    """Outputs less what they are to be, (M, B, outputs)."""
    if wanted is None:
        return outputs.scatter_add(2, labels[..., None], torch.full_like(labels[..., None], -1, dtype=outputs.dtype))
    return outputs - wanted


def predictions(outputs: Tensor, targets: Tensor | None) -> Tensor:
    """The label of the largest output, or of the nearest target: (M, B)."""
    if targets is None:
        return outputs.argmax(-1)
    # |y - t|**2 up to what all labels share
    return torch.baddbmm(targets.square().sum(-1)[:, None], outputs, targets.mT, beta=-0.5).argmax(-1)


@dataclass
class State:
    """M members in training: everything that a checkpoint holds."""

    runs: list[Run]
    members: list[int]  # position of each in the experiment
    step: int
    optimizer: Stepper
    data: Data = field(repr=False)
    rows: Tensor | None = None  # (M, B) training rows of the next step; always the same memory, for a graph reads it
    drawn: int = -1  # the step that they are for
    orders: tuple[int, Tensor] | None = None  # an epoch, and the order of its samples
    count: Tensor | None = None  # number of the update, on the device
    replay: Callable[[], None] | None = None  # one update, as a graph if there is one

    @property
    def params(self) -> Params:
        """The stacked parameters, name -> (M, ...)."""
        return self.optimizer.params

    @classmethod
    def start(cls, runs: Sequence[Run], device: torch.device, dtype: torch.dtype) -> State:
        """Every member drawn on the CPU from its own seed, then moved: a seed means the same on every device."""
        with _single_precision():
            drawn = [run.model.init(torch.Generator().manual_seed(run.seed)) for run in runs]
        params = {name: torch.stack([one[name] for one in drawn]).to(device, dtype) for name in drawn[0]}
        optimizer = stepper([run.optimizer for run in runs], params)
        return cls(list(runs), list(range(len(runs))), 0, optimizer, Data.of(runs, device, dtype))

    def batch(self) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs, labels and weights of the next step, each (M, B, ...)."""
        data, size = self.data, self.runs[0].batch_size
        if size is None:
            return data.train_inputs, data.train_labels, data.weights
        rows = self._draw(size)
        inputs = data.train_inputs[torch.arange(len(rows), device=rows.device)[:, None], rows]
        weights = data.weights.new_full(rows.shape, 1 / size)
        return inputs, data.train_labels.gather(1, rows), weights

    def _draw(self, size: int) -> Tensor:
        """Training rows of the next step, (M, B): epochs of distinct full batches in an order drawn for each."""
        if self.rows is None or self.drawn != self.step:
            epoch, batch = divmod(self.step, self.runs[0].task.train_size // size)
            if self.orders is None or self.orders[0] != epoch:
                order = np.stack([epoch_order(run, epoch) for run in self.runs])
                self.orders = epoch, torch.from_numpy(order).to(self.data.labels.device)
            chosen = self.orders[1][:, batch * size : (batch + 1) * size]
            self.rows = chosen.clone() if self.rows is None else self.rows.copy_(chosen)
            self.drawn = self.step
        return self.rows

    def gradients(self) -> Params:
        """The gradient of each member's training loss over the next batch."""
        run, (inputs, labels, weights) = self.runs[0], self.batch()
        own = getattr(run.model, f"{run.loss}_gradients", None)
        if own and run.model.has_own_gradients and not inputs.is_cuda:
            return own(self.params, inputs, labels, weights)
        if hasattr(run.model, "gradients"):
            wanted, targets = self.data.train_targets, self.data.targets
            if targets is not None and run.batch_size:
                wanted = targets_of(labels, targets)
            of_loss = partial(output_gradients, labels=labels, weights=weights, loss=run.loss, wanted=wanted)
            return run.model.gradients(self.params, inputs, of_loss)
        params = {name: value.requires_grad_() for name, value in self.params.items()}
        noise = {"noise": [_noise(run, self.step) for run in self.runs]} if getattr(run.model, "dropout", 0) else {}
        outputs = run.model(params, inputs, **noise)
        losses = (sample_losses(outputs, labels, run.loss, self.data.targets) * weights).sum(-1)  # (M,)
        # Members share nothing, so the gradient of the sum is each member's own.
        gradients = torch.autograd.grad(losses.sum(), list(params.values()))
        for value in params.values():
            value.requires_grad_(False)
        return dict(zip(params, gradients, strict=True))

    def update(self) -> None:
        """One optimizer step; on a GPU as a captured graph, one launch where there were hundreds."""
        if self.replay is None:
            self.replay = self._advance
            if wants_graph(self):
                self.count = torch.tensor(1.0, device=self.data.labels.device)
                self.replay = capture(self._advance, [self.params, *self.optimizer.slots.values()])
        # All that changes from step to step, before what a graph replays.
        if size := self.runs[0].batch_size:
            self._draw(size)
        if self.count is not None:
            self.count.fill_(self.step + 1)
        self.replay()
        self.step += 1

    def _advance(self) -> None:
        self.optimizer.step(self.gradients(), self.step + 1 if self.count is None else self.count)

    def measure(self, names: Sequence[str]) -> dict[str, NDArray[np.float64]]:
        """Losses, accuracies and the named measures, each (M,)."""
        data, run = self.data, self.runs[0]
        with torch.no_grad():
            outputs = run.model(self.params, data.inputs)  # (M, rows, classes)
            losses = sample_losses(outputs, data.labels, run.loss, data.targets).double()
            correct = (predictions(outputs, data.targets) == data.labels).double()
        numbers = {}
        for split, mask in (("train", data.in_train.double()), ("test", (~data.in_train).double())):
            for name, values in (("loss", losses), ("accuracy", correct)):
                numbers[f"{split}_{name}"] = ((values * mask).sum(-1) / mask.sum(-1)).cpu().numpy()
        measured = self.measured(outputs)
        for name in names:
            numbers.update(MEASURES[name](measured))
        return numbers

    def glance(self, watch: Watch, names: Sequence[str]) -> dict[str, NDArray[np.float64]]:
        """What a watch asks for, each (M,): accuracies without losses, or else everything."""
        wanted = {name for name, _ in watch.thresholds}
        if not wanted <= {"train_accuracy", "test_accuracy"}:
            return self.measure(names)
        data = self.data
        with torch.no_grad():
            found = predictions(self.runs[0].model(self.params, data.inputs), data.targets)
        right, in_train = (found == data.labels).cpu().numpy(), data.in_train.cpu().numpy()
        masks = {"train_accuracy": in_train, "test_accuracy": ~in_train}
        return {name: (right & masks[name]).sum(-1) / masks[name].sum(-1) for name in wanted}

    def measured(self, outputs: Tensor | None = None) -> Measured:
        """What measures may ask for; the costly parts, but for ``outputs`` if known, are computed when asked."""

        def over_table() -> NDArray[Any]:
            return self._over_table(lambda model: model) if outputs is None else outputs.cpu().numpy()

        def correct() -> NDArray[np.bool_]:
            found = predictions(torch.from_numpy(over_table()).to(self.data.labels.device), self.data.targets)
            return (found == self.data.labels).cpu().numpy()

        return Measured(
            params=_host(self.params),
            in_train=self.data.in_train.cpu().numpy(),
            task=self.runs[0].task,
            model=self.runs[0].model,
            correct=correct,
            gradients=lambda: _host(self.gradients()),
            outputs=over_table,
            activations=lambda: self._over_table(lambda model: model.activations),
            preactivations=lambda: self._over_table(lambda model: model.hidden),
            halfway=self._halfway,
        )

    def _halfway(self, points: NDArray[Any]) -> NDArray[Any]:
        like = next(iter(self.params.values()))
        with torch.no_grad():
            return self.runs[0].model.halfway(self.params, torch.from_numpy(points).to(like)).cpu().numpy()

    def _over_table(self, function: Callable[[Any], Callable[[Params, Tensor], Tensor]]) -> NDArray[Any]:
        with torch.no_grad():
            return function(self.runs[0].model)(self.params, self.data.inputs).cpu().numpy()

    def keep(self, positions: Sequence[int]) -> None:
        """Go on with these members only."""
        self.runs = [self.runs[i] for i in positions]
        self.members = [self.members[i] for i in positions]
        self.optimizer.keep(positions)
        self.data = self.data.keep(positions)
        self.rows = self.orders = self.count = self.replay = None


@contextlib.contextmanager
def _single_precision() -> Iterator[None]:
    """Draw as single-precision numbers, whatever whoever imports this has made PyTorch's default."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def wants_graph(state: State) -> bool:
    """Whether a step is to be captured: on a GPU, unless the host has a part in each step, as in dropout's noise."""
    return state.data.labels.is_cuda and not getattr(state.runs[0].model, "dropout", 0)


def capture(step: Callable[[], None], tables: Sequence[Params]) -> Callable[[], None]:
    """A step as a CUDA graph. Warming up, which CUDA asks for, takes real steps: ``tables`` are put back after it."""
    before = [{name: value.clone() for name, value in table.items()} for table in tables]
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for table, kept in zip(tables, before, strict=True):
        for name, value in table.items():
            value.copy_(kept[name])
    replay: Callable[[], None] = graph.replay
    return replay


def epoch_order(run: Run, epoch: int) -> NDArray[np.int64]:
    """The order in which an epoch takes the training rows; a last batch that is not full is left out."""
    return np.random.default_rng([run.seed, 1, epoch]).permutation(run.task.train_size)


@contextlib.contextmanager
def products(precision: str | None) -> Iterator[None]:
    """Matrix products of this precision while it lasts (see ``Experiment.precision``)."""
    before = torch.get_float32_matmul_precision()
    fast = "high" if torch.cuda.is_available() else "medium"
    torch.set_float32_matmul_precision(fast if precision == "fast" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _noise(run: Run, step: int) -> torch.Generator:
    """Dropout's own stream, from seed and step alone, so that a resumed run goes on as an uninterrupted one."""
    mixed = np.random.SeedSequence([run.seed, 2, step]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(mixed) >> 1)


def _host(params: Params) -> dict[str, NDArray[Any]]:
    return {name: value.detach().cpu().numpy() for name, value in params.items()}


@dataclass
class Curves:
    """What was measured: ``values`` name -> (M, evaluations) and ``kept`` name -> {(member, snapshot): array}."""

    steps: NDArray[np.int64]
    members: int
    values: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    kept: dict[str, dict[tuple[int, int], NDArray[Any]]] = field(default_factory=dict)
    kept_at: dict[tuple[int, int], int] = field(default_factory=dict)
    stopped_at: dict[int, int] = field(default_factory=dict)
    diverged: dict[int, int] = field(default_factory=dict)
    reached: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.due = frozenset(self.steps.tolist())

    def write(self, state: State, numbers: dict[str, NDArray[np.float64]]) -> None:
        """Note ``numbers`` (each (M,)) at the state's step."""
        column = int(np.searchsorted(self.steps, state.step))
        for name, value in numbers.items():
            table = self.values.setdefault(name, np.full((self.members, len(self.steps)), np.nan))
            table[state.members, column] = value

    def watch(self, state: State, numbers: dict[str, NDArray[np.float64]], watch: Watch) -> set[int]:
        """Note who has reached which threshold by now; positions of the members that have reached all."""
        for name, threshold in watch.thresholds:
            table = self.reached.setdefault(name, np.full(self.members, np.nan))
            first = np.isnan(table[state.members]) & (numbers[name] >= threshold)
            table[np.array(state.members)[first]] = state.step
        times = np.stack([self.reached[name][state.members] for name, _ in watch.thresholds])
        return set(np.flatnonzero(np.isfinite(times).all(0)).tolist())

    def snapshot(self, state: State, positions: Sequence[int], number: int, keep: Sequence[str]) -> None:
        """Keep arrays of some members as snapshot ``number``."""
        measured = state.measured()
        for name in keep:
            values = kept_values(name, measured)
            for i in positions:
                self.kept.setdefault(name, {})[state.members[i], number] = np.array(values[i])  # the host may share it
        for i in positions:
            self.kept_at[state.members[i], number] = state.step


def kept_values(name: str, measured: Measured) -> NDArray[Any]:
    """The array called ``name`` in ``Experiment.keep``, (M, ...)."""
    if name in measured.params:
        return measured.params[name]
    if name in MEASURES:
        (values,) = MEASURES[name](measured).values()
        return values
    found = re.fullmatch(r"(output|activation|preactivation)\[(\d+)\]", name)
    if not found:
        allowed = f"a parameter ({', '.join(measured.params)}), output[q], activation[i], preactivation[i] or a measure"
        raise ValueError(f"keep = {name!r}: {allowed}")
    table = getattr(measured, found[1] + "s")()[..., int(found[2])]  # (M, rows)
    side = round(table.shape[-1] ** 0.5)
    return table.reshape(len(table), side, side)


@dataclass
class Training:
    """One stack on its way: the state, what was measured, and where it stands."""

    experiment: Experiment
    state: State
    curves: Curves
    streak: NDArray[np.int64]  # (M,) evaluations in a row at which the stop criterion held
    evaluated: int = -1  # the last step that was measured
    seconds: float = 0.0  # spent before this process took over
    resumed: list[str] = field(default_factory=list)  # steps at which a process took over, and what changed
    places: list[dict[str, str]] = field(default_factory=list)  # device, machine and library of each that took part

    @classmethod
    def start(cls, experiment: Experiment, device: torch.device, dtype: torch.dtype) -> Training:
        """At step 0."""
        runs = experiment.runs
        curves = Curves(experiment.schedule.steps(runs[0].steps), len(runs))
        state = State.start(runs, device, dtype)
        return cls(experiment, state, curves, np.zeros(len(runs), np.int64), places=[_place(device)])

    @property
    def last(self) -> int:
        """The step at which every member ends."""
        return self.experiment.runs[0].steps

    def due(self) -> bool:
        """Whether something is to be measured or kept before the next step."""
        step = self.state.step
        watch = self.experiment.watch
        watched = watch is not None and step % watch.every == 0
        return step != self.evaluated and (watched or step in self.experiment.snapshots or step in self.curves.due)

    def evaluate(self) -> dict[str, float]:
        """Measure, keep snapshots, let members leave; the mean of losses and accuracies, for a progress line."""
        state, curves, experiment = self.state, self.curves, self.experiment
        everyone = range(len(state.members))
        self.evaluated = state.step
        if state.step in experiment.snapshots:
            curves.snapshot(state, everyone, experiment.snapshots.index(state.step), experiment.keep)
        watch = experiment.watch if experiment.watch and state.step % experiment.watch.every == 0 else None
        if state.step not in curves.due and watch is None:
            return {}
        leaving: set[int] = set()
        if state.step in curves.due:
            numbers = state.measure(experiment.measures)
            curves.write(state, numbers)
            leaving = self._leaving(numbers)
        elif watch:
            numbers = state.glance(watch, experiment.measures)
        if watch:
            arrived = curves.watch(state, numbers, watch)
            leaving |= arrived if watch.leave else set()
        if state.step == self.last:
            leaving = set(everyone)
        if leaving:
            if -1 in experiment.snapshots:
                curves.snapshot(state, sorted(leaving), experiment.snapshots.index(-1), experiment.keep)
            curves.stopped_at.update({state.members[i]: state.step for i in leaving})
            state.keep([i for i in everyone if i not in leaving])
        return {name: float(np.mean(numbers[name])) for name in CURVES if name in numbers}

    def _leaving(self, numbers: dict[str, NDArray[np.float64]]) -> set[int]:
        """Positions of members that met the stop criterion or whose loss is no longer finite."""
        lost = set(np.flatnonzero(~np.isfinite(numbers["train_loss"])).tolist())
        self.curves.diverged.update({self.state.members[i]: self.state.step for i in lost})
        stop = self.experiment.stop
        if stop is None:
            return lost
        here = np.array(self.state.members)
        self.streak[here] = np.where(numbers[stop.measure] >= stop.threshold, self.streak[here] + 1, 0)
        return lost | set(np.flatnonzero(self.streak[here] >= stop.evaluations).tolist())

    def save(self, path: Path, seconds: float) -> None:
        """Write all that is needed to go on, whole or not at all; the checkpoint before it stays beside it."""
        state, curves = self.state, self.curves
        content = {
            "hash": self.experiment.hash,
            "step": state.step,
            "members": state.members,
            "params": {name: value.cpu() for name, value in state.params.items()},
            "slots": {
                slot: {name: value.cpu() for name, value in of.items()} for slot, of in state.optimizer.slots.items()
            },
            "values": {name: torch.from_numpy(table) for name, table in curves.values.items()},
            "kept": {
                name: {place: torch.from_numpy(np.array(value)) for place, value in of.items()}
                for name, of in curves.kept.items()
            },
            "kept_at": curves.kept_at,
            "stopped_at": curves.stopped_at,
            "diverged": curves.diverged,
            "reached": {name: torch.from_numpy(times) for name, times in curves.reached.items()},
            "streak": self.streak.tolist(),
            "evaluated": self.evaluated,
            "seconds": self.seconds + seconds,
            "resumed": self.resumed,
            "places": self.places,
        }
        buffer = io.BytesIO()
        torch.save(content, buffer)
        packed = hashlib.sha256(buffer.getvalue()).digest() + buffer.getvalue()
        records.patiently(lambda: records.write_whole(path, packed, keep=previous(path)))

    @classmethod
    def load(cls, path: Path, experiment: Experiment, device: torch.device, dtype: torch.dtype) -> Training | None:
        """From the latest undamaged checkpoint of this very experiment; None if there is none."""
        for candidate in (path, previous(path)):
            try:
                found = _unpack(candidate.read_bytes())
            except FileNotFoundError:
                continue
            except (OSError, EOFError, RuntimeError, ValueError, pickle.UnpicklingError):
                _say(f"{candidate} is damaged; the checkpoint before it is used, if there is one")
                continue
            if found["hash"] == experiment.hash:
                break
        else:
            return None
        training = cls.start(experiment, device, dtype)
        state, curves = training.state, training.curves
        state.keep(found["members"])
        state.step = found["step"]
        for table, stored in [(state.params, found["params"])] + [
            (state.optimizer.slots[slot], of) for slot, of in found["slots"].items()
        ]:
            for name, value in stored.items():
                table[name].copy_(value)
        curves.values = {name: table.numpy().copy() for name, table in found["values"].items()}
        curves.kept = {name: {at: value.numpy() for at, value in of.items()} for name, of in found["kept"].items()}
        curves.kept_at, curves.stopped_at, curves.diverged = found["kept_at"], found["stopped_at"], found["diverged"]
        curves.reached = {name: times.numpy().copy() for name, times in found.get("reached", {}).items()}
        training.streak = np.array(found["streak"])
        training.evaluated, training.seconds = found["evaluated"], found["seconds"]
        training.places = [*found["places"], *training.places]
        before, here = training.places[-2:]
        changes = [f"{before[key]} -> {here[key]}" for key in here if before[key] != here[key]]
        if changes:
            _say(f"{experiment.name} goes on from step {state.step} elsewhere ({'; '.join(changes)}): not bit for bit")
        training.resumed = [*found["resumed"], " ".join([str(state.step), *(f"({change})" for change in changes)])]
        return training


def previous(path: Path) -> Path:
    """Where the checkpoint before the latest one lies."""
    return path.with_name(path.name + ".previous")


def _unpack(packed: bytes) -> dict[str, Any]:
    """A checkpoint's contents. PyTorch's own reader does not notice a flipped bit, so a digest goes ahead of them."""
    digest, content = packed[:32], packed[32:]
    if hashlib.sha256(content).digest() != digest:
        raise ValueError("not what was written")
    found: dict[str, Any] = torch.load(io.BytesIO(content), weights_only=True)
    return found


def _place(device: torch.device) -> dict[str, str]:
    """What decides rounding: the same three, the same bits."""
    machine = torch.cuda.get_device_name(device) if device.type == "cuda" else records.processor()
    return {"device": device.type, "machine": machine, "torch": str(torch.__version__)}


def _say(line: str) -> None:
    print(f"grokbook: {line}", file=sys.stderr, flush=True)


def train(
    experiment: Experiment,
    *,
    device: str = "cpu",
    dtype: str = "float32",
    checkpoint: Path | None = None,
    report: Report | None = None,
) -> xr.Dataset:
    """Train the runs of one stack side by side and return what was measured.

    A member whose loss is no longer finite leaves, and the record says at which step; the others go on.

    Args:
        experiment: runs of equal shape (see ``Experiment.shards``).
        device: ``"cpu"`` or ``"cuda"``.
        dtype: ``"float32"``, or ``"float64"`` for tests.
        checkpoint: a file to resume from and to write about every minute; whoever stores the record deletes it.
        report: called about once a second with the step and the latest mean losses and accuracies, and how many
            ``members`` are still in training.

    Returns:
        A record (see ``grokbook.records``) with dimensions ``run``, ``step`` and, where asked for, ``snapshot``.
    """
    where = torch.device(device), getattr(torch, dtype)
    started, saved, reported = time.time(), time.monotonic(), 0.0
    found = Training.load(checkpoint, experiment, *where) if checkpoint else None
    training = found or Training.start(experiment, *where)

    numbers: dict[str, float] = {}
    with products(experiment.precision):
        while True:
            if training.due():
                numbers = training.evaluate() or numbers
                if not training.state.members:
                    break
            now = time.monotonic()
            if report and now - reported >= REPORT_SECONDS:
                report(training.state.step, {**numbers, "members": len(training.state.members)})
                reported = now
            patience = CHECKPOINT_SECONDS if training.evaluated == training.state.step else LATEST_CHECKPOINT_SECONDS
            if checkpoint and now - saved >= patience:
                training.save(checkpoint, time.time() - started)
                saved = now
            training.state.update()

    return _record(training, training.seconds + time.time() - started, started)


def _record(training: Training, seconds: float, started: float) -> xr.Dataset:
    """The labelled outcome."""
    experiment, curves = training.experiment, training.curves
    variables: dict[str, Any] = {name: (("run", "step"), table) for name, table in curves.values.items()}
    runs = range(len(experiment.runs))
    variables["stopped_at"] = ("run", [curves.stopped_at[i] for i in runs])
    for name, times in curves.reached.items():
        variables[f"reached_{name}"] = ("run", times)
    variables["diverged_at"] = ("run", [float(curves.diverged.get(i, np.nan)) for i in runs])
    count = len(experiment.snapshots)
    for name, places in curves.kept.items():
        shape = next(iter(places.values())).shape
        table = np.full((len(runs), count, *shape), np.nan, np.float32)
        for (member, number), value in places.items():
            table[member, number] = value
        axes = _axes(experiment.runs[0].model, name, len(shape))
        variables[name] = (("run", "snapshot", *axes), table)
    if count:
        at = [[float(curves.kept_at.get((i, number), np.nan)) for number in range(count)] for i in runs]
        variables["snapshot_step"] = (("run", "snapshot"), at)
    provenance = {
        **{key: ", ".join(dict.fromkeys(place[key] for place in training.places)) for key in training.places[0]},
        "wall_seconds": seconds,
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "resumed_at": f"[{', '.join(training.resumed)}]",
    }
    return records.assemble(experiment, curves.steps, variables, provenance)


def _axes(model: Any, name: str, count: int) -> list[str]:
    """Names for the dimensions of a kept array."""
    if "[" in name:
        return ["n", "m"]
    return list(getattr(model, "axes", {}).get(name, [f"{name}_{axis}" for axis in range(count)]))
