"""Optimizers over stacked parameters: each member keeps its own learning rate, momentum and weight decay.

The recipes (``SGD``, ``Adam``, ``AdamW``) are frozen dataclasses; ``stepper`` turns one recipe per member into the
object that updates a stack. The updates are those of ``torch.optim``, member by member, and a test holds them to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from grokbook.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

    Params = dict[str, Tensor]


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
class AdamW:
    """Adam with decoupled weight decay, as ``torch.optim.AdamW``."""

    lr: float
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    groups: tuple[Group, ...] = ()
    version: ClassVar[int] = 1


@dataclass(frozen=True)
class WarmAdamW(AdamW):
    """AdamW whose learning rate starts at zero: update t, from 0, has the share min(t / warmup, 1) of it.

    The first update changes no weight, as with ``LambdaLR(optimizer, lambda t: min(t / warmup, 1))``.
    """

    warmup: int = 10


Optimizer = SGD | Adam | AdamW


def settings(recipe: Optimizer, name: str) -> tuple[float, float]:
    """Learning rate and weight decay of the parameter called ``name``."""
    for group in recipe.groups:
        if name.startswith(group.prefix):
            return (
                recipe.lr if group.lr is None else group.lr,
                recipe.weight_decay if group.weight_decay is None else group.weight_decay,
            )
    return recipe.lr, recipe.weight_decay


def warmth(recipe: Optimizer, count: int) -> float:
    """The share of the learning rate in update number ``count``, from 1."""
    return min((count - 1) / recipe.warmup, 1.0) if isinstance(recipe, WarmAdamW) else 1.0


# What a member may set for itself, read from its recipe for the parameter of a name.
SETTINGS: dict[str, Callable[[Any, str], float]] = {
    "lr": lambda recipe, name: settings(recipe, name)[0],
    "weight_decay": lambda recipe, name: settings(recipe, name)[1],
    "momentum": lambda recipe, name: getattr(recipe, "momentum", 0.0),
    "beta1": lambda recipe, name: getattr(recipe, "betas", (0.0, 0.0))[0],
    "beta2": lambda recipe, name: getattr(recipe, "betas", (0.0, 0.0))[1],
    "eps": lambda recipe, name: getattr(recipe, "eps", 0.0),
    "warmup": lambda recipe, name: getattr(recipe, "warmup", 0),
}


SHARED = ("beta1", "beta2", "eps", "warmup")  # besides learning rate and weight decay, by those who step in one call


class Stepper:
    """Updates the params of M members in place from their gradients.

    Args:
        recipes: one recipe per member, all of one class.
        params: name -> (M, ...) tensors, updated in place.
    """

    def __init__(self, recipes: Sequence[Optimizer], params: Params) -> None:
        kinds = {type(recipe) for recipe in recipes}
        if len(kinds) != 1:
            raise ValueError(
                f"members of one stack need one class of optimizer, got {sorted(k.__name__ for k in kinds)}"
            )
        self.recipes, self.params = list(recipes), params
        self.slots: dict[str, Params] = {
            slot: {name: torch.zeros_like(value) for name, value in params.items()} for slot in self.slot_names()
        }
        # On the device once, for a step must not wait for the host: setting -> parameter -> (M, 1, ...).
        self.settings = {
            setting: {
                name: value.new_tensor([read(one, name) for one in self.recipes]).view(-1, *[1] * (value.ndim - 1))
                for name, value in params.items()
            }
            for setting, read in SETTINGS.items()
        }

    def slot_names(self) -> tuple[str, ...]:
        """Names of the running averages that a member carries."""
        raise NotImplementedError

    def step(self, gradients: Params, count: int | Tensor) -> None:
        """Update number ``count`` (from 1); a tensor on the device where the step is captured as a graph."""
        raise NotImplementedError

    def keep(self, members: Sequence[int]) -> None:
        """Go on with these members only, by position in the stack; the others' numbers are dropped."""
        index = list(members)
        self.recipes = [self.recipes[i] for i in index]
        for table in (self.params, *self.slots.values(), *self.settings.values()):
            for name in table:
                table[name] = table[name][index]


def _momentum(recipe: Any) -> float:
    return float(recipe.momentum)


class _SGD(Stepper):
    def slot_names(self) -> tuple[str, ...]:
        return ("velocity",) if any(_momentum(recipe) for recipe in self.recipes) else ()

    def step(self, gradients: Params, count: int | Tensor) -> None:
        for name, value in self.params.items():
            update = gradients[name]
            if any(settings(recipe, name)[1] for recipe in self.recipes):
                update = update + self.settings["weight_decay"][name] * value
            if "velocity" in self.slots:
                velocity = self.slots["velocity"][name]
                update = velocity.mul_(self.settings["momentum"][name]).add_(update)
            value.sub_(self.settings["lr"][name] * update)


class _Adam(Stepper):
    def __init__(self, recipes: Sequence[Optimizer], params: Params) -> None:
        super().__init__(recipes, params)
        self._parts: list[tuple[Any, ...]] = []

    def keep(self, members: Sequence[int]) -> None:
        super().keep(members)
        self._parts = []

    def slot_names(self) -> tuple[str, ...]:
        return ("mean", "square")

    def step(self, gradients: Params, count: int | Tensor) -> None:
        if isinstance(count, int):
            self._step_fused(gradients, count)
        else:
            self._step_broadcast(gradients, count)

    def _step_fused(self, gradients: Params, count: int) -> None:
        """One pass over memory per parameter: on a CPU five times as fast as the formula written out."""
        fused = torch._fused_adamw_ if isinstance(self.recipes[0], AdamW) else torch._fused_adam_
        if not self._parts:
            self._parts = self._parts_of()
        # The fused kernel reads memory in order and is silently wrong for a transposed gradient.
        by_member = {name: gradient.contiguous().unbind() for name, gradient in gradients.items()}
        step = torch.tensor(float(count))
        for recipe, (lr, weight_decay), places, value, mean, square in self._parts:
            fused(
                value,
                [by_member[name][member] for member, name in places],
                mean,
                square,
                [],
                [step] * len(places),
                lr=lr * warmth(recipe, count),
                beta1=recipe.betas[0],
                beta2=recipe.betas[1],
                weight_decay=weight_decay,
                eps=recipe.eps,
                amsgrad=False,
                maximize=False,
            )

    def _parts_of(self) -> list[tuple[Any, ...]]:
        """What shares all settings, over members: a recipe, its settings, places, values and running averages.

        Making a view, or a call, costs more than updating a small parameter: views are made once, and calls are few.
        """
        alike: dict[tuple[Any, ...], list[tuple[int, str]]] = defaultdict(list)
        for member, recipe in enumerate(self.recipes):
            for name in self.params:
                alike[settings(recipe, name), *(SETTINGS[one](recipe, name) for one in SHARED)].append((member, name))
        tables = (self.params, self.slots["mean"], self.slots["square"])
        views = [{name: table[name].detach().unbind() for name in table} for table in tables]
        return [
            (
                self.recipes[places[0][0]],
                pair,
                places,
                *([one[name][member] for member, name in places] for one in views),
            )
            for (pair, *_), places in alike.items()
        ]

    def _step_broadcast(self, gradients: Params, count: int | Tensor) -> None:
        """The formula written out for all members at once, without a word from the host."""
        decoupled = isinstance(self.recipes[0], AdamW)
        for name, value in self.params.items():
            lr, decay, _, beta1, beta2, eps, warmup = (self.settings[setting][name] for setting in SETTINGS)
            lr = torch.where(warmup > 0, lr * ((count - 1) / warmup).clamp(max=1), lr)
            gradient = gradients[name]
            if decoupled:
                value.mul_(1 - lr * decay)
            else:
                gradient = gradient + decay * value
            mean = self.slots["mean"][name].mul_(beta1).add_((1 - beta1) * gradient)
            square = self.slots["square"][name].mul_(beta2).add_((1 - beta2) * gradient * gradient)
            denominator = (square / (1 - beta2**count)).sqrt_().add_(eps)
            value.sub_(lr / (1 - beta1**count) * mean / denominator)


def stepper(recipes: Sequence[Optimizer], params: Mapping[str, Tensor]) -> Stepper:
    """The updater of a stack of members, one recipe each, all of one class."""
    kind = _SGD if isinstance(recipes[0], SGD) else _Adam
    return kind(recipes, dict(params))
