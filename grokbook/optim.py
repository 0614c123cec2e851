"""Optimizers over stacked parameters: each member keeps its own learning rate, momentum and weight decay.

The recipes (``SGD``, ``Adam``, ``AdamW``) are frozen dataclasses; ``stepper`` turns one recipe per member into the
object that updates a stack. The updates are those of ``torch.optim``, member by member, and a test holds them to it.

All numbers of a stack lie in one (M, P) table, a member a row, and parameters are views of it: one call updates all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any, ClassVar

from grokbook.lazy import Params, Tensor, torch
from grokbook.streams import Stream, keys


@dataclass(frozen=True)
class Group:
    """Settings for the parameters whose name starts with ``prefix``; what is None is inherited."""

    prefix: str
    lr: float | None = None
    weight_decay: float | None = None


@dataclass(frozen=True)
class SGD:
    """Gradient descent with heavy-ball momentum and coupled weight decay, as ``torch.optim.SGD``."""

    lr: float
    momentum: float = 0.0
    weight_decay: float = 0.0
    groups: tuple[Group, ...] = ()
    version: ClassVar[int] = 1


@dataclass(frozen=True)
class Adam:
    """Adam with weight decay added to the gradient, as ``torch.optim.Adam``."""

    lr: float
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    groups: tuple[Group, ...] = ()
    version: ClassVar[int] = 1


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam with decoupled weight decay, as ``torch.optim.AdamW``, and the variants of Power et al. (2022), A.1.2."""

    weight_decay: float = 0.01
    #: Whether weights decay towards what they were at the start instead of towards zero.
    decay_to_start: bool | None = field(default=None, kw_only=True, metadata={"recipe": "where set"})
    #: Standard deviation of normal noise on each entry of the update, before the learning rate.
    update_noise: float | None = field(default=None, kw_only=True, metadata={"recipe": "where set"})
    #: Standard deviation of normal noise on each weight wherever a gradient is taken.
    weight_noise: float | None = field(default=None, kw_only=True, metadata={"recipe": "where set"})


@dataclass(frozen=True)
class WarmAdamW(AdamW):
    """AdamW whose learning rate starts at zero: update t, from 0, has min(t / warmup, 1) of it, as by ``LambdaLR``."""

    warmup: int = 10


Optimizer = SGD | Adam
KNOWN = (SGD, Adam, AdamW, WarmAdamW)  # a ``Stepper`` for each is what another would need
VARIANTS = ("decay_to_start", "update_noise", "weight_noise")


def kind(recipe: Optimizer) -> tuple[str, ...]:
    """What members of one stack have in common: the class of their optimizer, and what it does besides."""
    return (type(recipe).__name__, *(name for name in VARIANTS if getattr(recipe, name, None)))


# What a member may set for itself, and its parameters each.
SETTINGS = ("lr", "weight_decay", "momentum", "beta1", "beta2", "eps", "warmup", "update_noise", "weight_noise")


def settings(recipe: Optimizer, name: str) -> dict[str, float]:
    """All settings of the parameter called ``name``; what its optimizer does not know is zero."""
    beta1, beta2 = getattr(recipe, "betas", (0.0, 0.0))
    known: dict[str, Any] = {**vars(recipe), "beta1": beta1, "beta2": beta2}
    if group := next((one for one in recipe.groups if name.startswith(one.prefix)), None):
        known |= {key: value for key, value in vars(group).items() if value is not None}
    return {one: known.get(one) or 0.0 for one in SETTINGS}


AVERAGED = ("params", "mean", "square")  # what Adam's kernel works on
LINE = 16  # every parameter of a member begins at a multiple of this many numbers: a line of the cache


class Stepper:
    """Updates ``params`` of its own, name -> (M, ...), in place from gradients; it begins with those that it is given.

    ``recipes``, all of one ``kind``, and ``seeds``, which noise is drawn from, are one per member; ``held`` are names
    of what a member carries of its gradients.
    """

    def __init__(self, recipes: Sequence[Optimizer], params: Params, seeds: Sequence[int], held: Sequence[str]) -> None:
        kinds = {kind(recipe) for recipe in recipes}
        if len(kinds) != 1:
            told = sorted(" with ".join(one) for one in kinds)
            raise ValueError(f"members of one stack need one class of optimizer, got {told}")
        self.recipes = list(recipes)
        self.does = kinds.pop()
        self.shapes = {name: tuple(value.shape[1:]) for name, value in params.items()}
        for group in (group for recipe in recipes for group in recipe.groups):
            if not any(name.startswith(group.prefix) for name in params):
                raise ValueError(f"groups: no parameter begins with {group.prefix!r}; there are {', '.join(params)}")
        self.sizes = [-(-prod(shape) // LINE) * LINE for shape in self.shapes.values()]  # in a row of a table
        table = next(iter(params.values())).new_zeros(len(recipes), sum(self.sizes))
        for name, value in self.views(table).items():
            value.copy_(params[name])
        self.tables = {"params": table, **{slot: torch.zeros_like(table) for slot in held}}
        if "decay_to_start" in self.does:
            self.tables["start"] = table.clone()
        noisy = [name for name in VARIANTS[1:] if name in self.does]
        self.keys = {name: torch.from_numpy(keys(seeds, name)).to(table.device) for name in noisy}
        self._settle()

    def step(self, gradients: Params, count: int | Tensor) -> None:
        """Update number ``count`` (from 1); a float64 on the device where the step is captured as a graph."""
        raise NotImplementedError

    def perturbed(self, count: int | Tensor) -> Params:
        """The params that the gradient of update number ``count`` is taken at: with weight noise, if there is any."""
        if "weight_noise" not in self.does:
            return self.params
        table = self.tables["params"]
        noise = Stream(self.keys["weight_noise"], count).normal(table.shape[1:], table)
        return self.views(noise.mul_(self.settings["weight_noise"]).add_(table))

    def keep(self, members: list[int]) -> None:
        """Go on with these members only, by position in the stack; the others' numbers are dropped."""
        self.recipes = [self.recipes[i] for i in members]
        self.tables = {name: table[members] for name, table in self.tables.items()}
        self.keys = {name: key[members] for name, key in self.keys.items()}
        self._settle()

    @property
    def slots(self) -> dict[str, Params]:
        """All that a member carries besides its weights."""
        return {name: self.views(table) for name, table in self.tables.items() if name != "params"}

    def views(self, table: Tensor) -> Params:
        """A table (M, P), weights or a running average, by name of parameter: (M, ...) each."""
        parts = zip(self.shapes.items(), table.split(self.sizes, 1), strict=True)
        return {name: part[:, : prod(shape)].view(len(table), *shape) for (name, shape), part in parts}

    def _settle(self) -> None:
        """What follows from who is here. On the device once, for a step must not wait for the host."""
        self.params = self.views(self.tables["params"])
        self.gradient = torch.zeros_like(self.tables["params"])
        gaps = {name: -prod(shape) % LINE for name, shape in self.shapes.items()}
        self.padding = {name: self.gradient.new_zeros(len(self.recipes), gap) for name, gap in gaps.items()}
        self.own = [{name: settings(recipe, name) for name in self.shapes} for recipe in self.recipes]
        self.settings = {setting: self._setting(setting) for setting in SETTINGS}

    def _setting(self, setting: str) -> Any:
        """A setting of all numbers: one, (M, 1) where members differ, (M, P) where their parameters do."""
        rows = [[one[setting] for one in member.values()] for member in self.own]
        if len({one for row in rows for one in row}) < 2:
            return rows[0][0]
        if all(len(set(row)) == 1 for row in rows):
            return self.gradient.new_tensor([row[:1] for row in rows])
        table = torch.tensor(rows, dtype=self.gradient.dtype).repeat_interleave(torch.tensor(self.sizes), 1)
        return table.to(self.gradient.device)

    def gathered(self, gradients: Params) -> Tensor:
        """Gradients by name as one table (M, P), always in the same memory."""
        rows = [(gradients[name].reshape(len(padding), -1), padding) for name, padding in self.padding.items()]
        return torch.cat([part for pair in rows for part in pair if part.shape[1]], 1, out=self.gradient)


class _SGD(Stepper):
    def step(self, gradients: Params, count: int | Tensor) -> None:
        update, table = self.gathered(gradients), self.tables["params"]
        lr, decay, momentum, *_ = self.settings.values()
        if not isinstance(decay, float) or decay:
            update = update.add_(decay * table)
        if "velocity" in self.tables:
            update = self.tables["velocity"].mul_(momentum).add_(update)
        table.sub_(lr * update)


class _Adam(Stepper):
    def _settle(self) -> None:
        """And, for the fused kernel, views made once: making one costs more than updating a small parameter."""
        super()._settle()
        alike: dict[tuple[float, ...], list[tuple[int, str]]] = defaultdict(list)
        for member, of_params in enumerate(self.own):
            for name, own in of_params.items():
                alike[tuple(own.values())].append((member, name))
        views = [{name: value.unbind() for name, value in self.views(self.tables[slot]).items()} for slot in AVERAGED]
        # Updated in one call, for they share all settings: these, places, and values, means and squares over members.
        self._parts: list[tuple[Any, ...]] = [
            (dict(zip(SETTINGS, own, strict=True)), places, *([one[name][i] for i, name in places] for one in views))
            for own, places in alike.items()
        ]

    def step(self, gradients: Params, count: int | Tensor) -> None:
        table = self.tables["params"]
        if "decay_to_start" in self.does:
            table.add_(self._rate(count) * self.settings["weight_decay"] * (self.tables["start"] - table))
        if isinstance(count, int):
            self._step_fused(gradients, count)
        else:
            self._step_broadcast(self.gathered(gradients), count)
        if "update_noise" in self.does:
            noise = Stream(self.keys["update_noise"], count).normal(table.shape[1:], table)
            table.sub_(noise.mul_(self.settings["update_noise"] * self._rate(count)))

    def _rate(self, count: int | Tensor) -> Any:
        """The learning rate, which may rise to what it is."""
        lr = self.settings["lr"]
        if not isinstance(self.recipes[0], WarmAdamW):
            return lr
        done = torch.as_tensor(count - 1, dtype=torch.float64, device=self.gradient.device)
        return lr * (done / self.settings["warmup"]).nan_to_num(nan=1.0).clamp(max=1)  # nan: the first of no warm-up

    def _step_fused(self, gradients: Params, count: int) -> None:
        """One pass over memory per parameter: on a CPU five times as fast as the formula written out.

        Parameters one by one: at the end of each the kernel rounds otherwise, and records hold what came of that.
        """
        fused = torch._fused_adamw_ if isinstance(self.recipes[0], AdamW) else torch._fused_adam_
        update = partial(fused, amsgrad=False, maximize=False)
        # The fused kernel reads memory in order and is silently wrong for a transposed gradient.
        by_member = {name: gradient.contiguous().unbind() for name, gradient in gradients.items()}
        step = torch.tensor(float(count))
        for own, places, value, mean, square in self._parts:
            found = [by_member[name][member] for member, name in places]
            lr = own["lr"] * (min((count - 1) / own["warmup"], 1.0) if own["warmup"] else 1.0)
            decay = 0.0 if "decay_to_start" in self.does else own["weight_decay"]
            others = {name: own[name] for name in ("beta1", "beta2", "eps")}
            update(value, found, mean, square, [], [step] * len(places), lr=lr, weight_decay=decay, **others)

    def _step_broadcast(self, gradient: Tensor, count: Tensor) -> None:
        """The formula written out for all members at once, without a word from the host."""
        table, mean, square = (self.tables[name] for name in AVERAGED)
        lr = self._rate(count)
        _, decay, _, beta1, beta2, eps, *_ = self.settings.values()
        if not isinstance(self.recipes[0], AdamW):
            gradient = gradient.add_(decay * table)
        elif "decay_to_start" not in self.does:
            table.mul_(1 - lr * decay)
        mean.lerp_(gradient, 1 - beta1)
        square.lerp_(gradient * gradient, 1 - beta2)
        denominator = (square / (1 - beta2**count)).sqrt_().add_(eps)
        table.addcdiv_(mean * (lr / (1 - beta1**count)), denominator, value=-1)


def stepper(recipes: Sequence[Optimizer], params: Params, seeds: Sequence[int] = ()) -> Stepper:
    """The updater of a stack of members, one recipe each, all of one kind."""
    if not isinstance(recipes[0], SGD):
        return _Adam(recipes, params, seeds, AVERAGED[1:])
    moves = any(getattr(recipe, "momentum", 0) for recipe in recipes)
    return _SGD(recipes, params, seeds, ("velocity",) * moves)
