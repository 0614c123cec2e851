"""Dense layers of M members: drawn as ``torch.nn.Linear`` draws them, passed forward, and back by hand.

Deriving the gradient by hand saves a sixth of a training step of the small nets of Liu et al. (2022) and half of it
where a member trains alone. Layer l has ``W_l`` (M, out, in) and ``b_l`` (M, out).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from grokbook import checks
from grokbook.lazy import Generator, Params, Tensor, torch

LANES = 32  # numbers that a step of PyTorch's vectorised loops takes


def tanh_(h: Tensor) -> Tensor:
    """tanh h = 2 logistic(2 h) - 1 in place, off by at most 1.8e-7: a quarter of the time that PyTorch takes for it.

    PyTorch computes what does not fill its vectors by another formula, to other bits: a last piece is padded, so that a
    member's bits do not depend on how many train beside it.
    """
    if h.is_cuda or not h.is_contiguous():
        return h.tanh_()
    flat = h.view(-1)
    odd = len(flat) % LANES
    parts = [flat[: len(flat) - odd]]
    if odd:
        parts.append(torch.cat([flat[len(flat) - odd :], flat.new_zeros(LANES - odd)]))
    for part in parts:
        torch.add(part.new_tensor(-1), part.mul_(2).sigmoid_(), alpha=2, out=part)
    if odd:
        flat[len(flat) - odd :] = parts[1][:odd]
    return h


# name -> (in place on the preactivations, (gradient of the activations, activations) -> gradient before, in its place).
# Memory that is written anew each step has left the cache by then: in place saves a twentieth of a step.
ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]] = {
    "tanh": (tanh_, lambda into, z: torch.ops.aten.tanh_backward.grad_input(into, z, grad_input=into)),
    "relu": (
        lambda h: h.relu_(),
        lambda into, z: torch.ops.aten.threshold_backward.grad_input(into, z, 0, grad_input=into),
    ),
}


def draw_layer(inputs: int, outputs: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """W (out, in) and b (out,), uniform within 1 / sqrt(inputs)."""
    bound = 1 / math.sqrt(inputs)
    W = torch.nn.init.kaiming_uniform_(torch.empty(outputs, inputs), a=math.sqrt(5), generator=generator)
    return W, torch.empty(outputs).uniform_(-bound, bound, generator=generator)


def draw_layers(sizes: Sequence[int], generator: Generator) -> Params:
    """Layers of one member from ``sizes[0]`` inputs to ``sizes[-1]`` outputs, uniform within 1 / sqrt(inputs)."""
    layers: Params = {}
    for number, (inputs, outputs) in enumerate(pairwise(sizes)):
        layers[f"W_{number}"], layers[f"b_{number}"] = draw_layer(inputs, outputs, generator)
    return layers


def forward(params: Params, x: Tensor, depth: int, activation: str) -> list[Tensor]:
    """What each of ``depth`` layers is given, (M, B, in), and the outputs of the last, (M, B, out)."""
    passed = [x]
    for number in range(depth):
        W, b, of = params[f"W_{number}"], params[f"b_{number}"][:, None], passed[-1]
        h = torch.addcmul(b, of, W.mT) if of.shape[-1] == 1 else torch.baddbmm(b, of, W.mT)
        passed.append(h if number == depth - 1 else ACTIVATIONS[activation][0](h))
    return passed


def backward(params: Params, passed: list[Tensor], into: Tensor, activation: str) -> tuple[Params, Tensor]:
    """From the gradient of the outputs (M, B, out) those of the layers, and what to pull the inputs back by.

    That is the gradient of the first layer's preactivations, (M, B, out of layer 0).
    """
    gradients: Params = {}
    for number in reversed(range(len(passed) - 1)):
        of = passed[number]
        gradients[f"W_{number}"] = (into * of).sum(1)[..., None] if of.shape[-1] == 1 else torch.bmm(into.mT, of)
        gradients[f"b_{number}"] = into.sum(1)
        if number:
            into = ACTIVATIONS[activation][1](torch.bmm(into, params[f"W_{number}"]), of)
    return gradients, into


class Dense:
    """What has dense layers of some ``sizes``, inputs and outputs included; refuses what cannot be built."""

    sizes: Any  #: (layers + 1,) units
    activation: str
    init_scale: float

    def __post_init__(self) -> None:
        if len(self.sizes) < 2 or min(self.sizes) < 1:
            raise ValueError(f"sizes = {tuple(self.sizes)}: at least two layers of at least one unit are needed")
        checks.one_of("activation", self.activation, ACTIVATIONS)
        if not self.init_scale > 0:
            raise ValueError(f"init_scale = {self.init_scale}: it must be above 0")

    @property
    def floats_per_sample(self) -> int:
        """Numbers of the widest layer; decides how many members share a core's cache."""
        return max(self.sizes)

    def forward(self, params: Params, x: Tensor) -> Tensor:
        """Outputs of the last layer, (M, B, out), from what the first is given, (M, B, in)."""
        return forward(params, x, len(self.sizes) - 1, self.activation)[-1]

    def backward(self, params: Params, x: Tensor, of_loss: Callable[[Tensor], Tensor]) -> tuple[Params, Tensor]:
        """As the function of this name, from the inputs and from outputs -> the gradient of the loss by them."""
        depth = len(self.sizes) - 1
        # The inner layers' weights of all members in one piece: oneDNN would copy them at every use.
        params = params | {name: params[name].contiguous() for name in (f"W_{number}" for number in range(1, depth))}
        passed = forward(params, x, depth, self.activation)
        return backward(params, passed, of_loss(passed[-1]), self.activation)


@dataclass(frozen=True)
class DenseNet(Dense):
    """A perceptron of any depth on plain inputs: the image classifier of Liu et al. (2022), section 4.

    Params: ``W_l``, ``b_l`` of each layer.
    """

    sizes: tuple[int, ...] = (784, 200, 200, 10)  #: inputs, hidden units of each layer, outputs
    activation: str = "relu"  #: or ``"tanh"``
    init_scale: float = 1.0  #: factor on all initial weights and biases, the paper's alpha

    version: ClassVar[int] = 1
    init_fields: ClassVar[tuple[str, ...]] = ("init_scale",)

    @property
    def flops_per_sample(self) -> int:
        """Floating point operations of a step for one sample, whose inputs need no gradient."""
        products = [one * other for one, other in pairwise(self.sizes)]
        return 6 * sum(products) - 2 * products[0]

    def init(self, generator: Generator) -> Params:
        """Layers of one member."""
        return {name: self.init_scale * value for name, value in draw_layers(self.sizes, generator).items()}

    def __call__(self, params: Params, inputs: Tensor) -> Tensor:
        """Outputs (M, B, classes) for ``inputs`` (M, B, features)."""
        return self.forward(params, inputs)

    def gradients(self, params: Params, inputs: Tensor, of_loss: Callable[[Tensor], Tensor]) -> Params:
        """The gradient of a loss whose gradient with respect to the outputs ``of_loss`` gives."""
        return self.backward(params, inputs, of_loss)[0]
