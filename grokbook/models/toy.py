"""The toy model of Liu et al. (2022), section 3.1: trainable embeddings, a hard-coded operation, a dense decoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from grokbook.lazy import Generator, Params, Tensor, torch
from grokbook.models.dense import Dense, draw_layers
from grokbook.tasks import Recipe


def _drawn(model: AdditionDecoder | ProductDecoder, unneeded: tuple[int, ...], generator: Generator) -> Params:
    """Parameters of one member, the embeddings drawn first.

    The recipe ``"diagram"``, of the published phase diagrams, draws a net with the layers ``unneeded`` before, and the
    embeddings last.
    """
    if model.recipe != "diagram":
        return {"W_E": model.embeddings(generator), **draw_layers(model.sizes, generator)}
    draw_layers(unneeded, generator)
    decoder = draw_layers(model.sizes, generator)
    return {"W_E": model.embeddings(generator), **decoder}


@dataclass(frozen=True)
class AdditionDecoder(Dense):
    """Dec(E_i + E_j): the sum is given, the embeddings and what to make of it are learnt.

    Params of M members: ``W_E`` (M, p, dimension) and the decoder's ``W_l``, ``b_l``.
    """

    p: int  #: number of symbols
    dimension: int = 1  #: of an embedding
    hidden: tuple[int, ...] = (200, 200)  #: units of the decoder's hidden layers
    outputs: int = 30  #: of the decoder
    activation: str = "tanh"  #: or ``"relu"``, for fig. 2
    init_scale: float = 1.0  #: factor on the initial embeddings, which are uniform in [-1/2, 1/2]
    input_scale: float = 1.0  #: factor on the sum; 1/2 gives the decoder the mean
    normal: float | None = None  #: where set, the mean of a normal distribution in place of the uniform one around 0
    recipe: Recipe = "trainer"  #: the order in which a seed is used up (see ``_drawn``)

    version: ClassVar[int] = 1
    axes: ClassVar[dict[str, tuple[str, str]]] = {"W_E": ("symbol", "dimension")}
    init_fields: ClassVar[tuple[str, ...]] = ("init_scale", "normal", "recipe")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units of the decoder's layers, inputs and outputs included."""
        return (self.dimension, *self.hidden, self.outputs)

    def init(self, generator: Generator) -> Params:
        """Parameters of one member."""
        return _drawn(self, (self.p, 200, 200, 1), generator)

    def embeddings(self, generator: Generator) -> Tensor:
        """Those of one member, (p, dimension)."""
        shape = self.p, self.dimension
        if self.normal is not None:
            return self.init_scale * (torch.randn(shape, generator=generator) + self.normal)
        return self.init_scale * (torch.rand(shape, generator=generator) - 0.5)

    def __call__(self, params: Params, inputs: Tensor) -> Tensor:
        """Outputs (M, B, outputs) for samples given as counts of symbols, ``inputs`` (M, B, p)."""
        return self.forward(params, self.input_scale * (inputs @ params["W_E"]))

    def halfway(self, params: Params, points: Tensor) -> Tensor:
        """Outputs (M, B, outputs) for any two symbols with ``points`` (M, B, dimension) halfway between them."""
        return self.forward(params, 2 * self.input_scale * points)

    def gradients(self, params: Params, inputs: Tensor, of_loss: Callable[[Tensor], Tensor]) -> Params:
        """The gradient of a loss whose gradient with respect to the outputs ``of_loss`` gives."""
        x = self.input_scale * torch.bmm(inputs, params["W_E"])
        gradients, into = self.backward(params, x, of_loss)
        return {"W_E": torch.bmm(inputs.mT, self.input_scale * torch.bmm(into, params["W_0"])), **gradients}


@dataclass(frozen=True)
class ProductDecoder(Dense):
    """Dec(E_a E_b) with a matrix for every element of a group, appendix H.

    Params of M members: ``W_E`` (M, order, dimension, dimension) and the decoder's ``W_l``, ``b_l``; the decoder is
    given the product row by row.
    """

    order: int  #: of the group
    dimension: int = 3  #: of the matrices
    hidden: tuple[int, ...] = (200, 200)  #: units of the decoder's hidden layers
    outputs: int = 30  #: of the decoder
    activation: str = "tanh"  #: or ``"relu"``
    init_scale: float = 0.1  #: factor on the initial matrices, whose entries are uniform in [-1/2, 1/2]
    shrinkage: float = 1e-3  #: weight of the mean absolute entry of the matrices in the loss that is trained on
    recipe: Recipe | None = field(default=None, metadata={"recipe": "where set"})  #: likewise

    version: ClassVar[int] = 1
    axes: ClassVar[dict[str, tuple[str, str, str]]] = {"W_E": ("element", "row", "column")}
    init_fields: ClassVar[tuple[str, ...]] = ("init_scale", "recipe")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units of the decoder's layers, inputs and outputs included."""
        return (self.dimension**2, *self.hidden, self.outputs)

    def init(self, generator: Generator) -> Params:
        """Parameters of one member."""
        return _drawn(self, (1, 200, 200, self.dimension**2), generator)

    def embeddings(self, generator: Generator) -> Tensor:
        """The matrices of one member, (order, dimension, dimension)."""
        return self.init_scale * (torch.rand(self.order, self.dimension, self.dimension, generator=generator) - 0.5)

    def _factors(self, params: Params, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """The matrices of both factors, each (M B, dimension, dimension)."""
        side, flat = self.dimension, params["W_E"].flatten(2)
        left, right = (torch.bmm(one, flat).view(-1, side, side) for one in inputs.unbind(-2))
        return left, right

    def __call__(self, params: Params, inputs: Tensor) -> Tensor:
        """Outputs (M, B, outputs) for one-hot factors ``inputs`` (M, B, 2, order)."""
        product = torch.bmm(*self._factors(params, inputs)).view(*inputs.shape[:2], -1)
        return self.forward(params, product)

    def gradients(self, params: Params, inputs: Tensor, of_loss: Callable[[Tensor], Tensor]) -> Params:
        """The gradient of a loss whose gradient with respect to the outputs ``of_loss`` gives, and of the shrinkage."""
        left, right = self._factors(params, inputs)
        product = torch.bmm(left, right).view(*inputs.shape[:2], -1)
        gradients, into = self.backward(params, product, of_loss)
        into_product = torch.bmm(into, params["W_0"]).view_as(left)
        into_left = torch.bmm(into_product, right.mT).view_as(product)
        into_right = torch.bmm(left.mT, into_product).view_as(product)
        first, second = inputs.unbind(-2)
        W_E = params["W_E"]
        shrink = self.shrinkage / W_E[0].numel() * W_E.sign()
        into_E = torch.bmm(first.mT, into_left) + torch.bmm(second.mT, into_right)
        return {"W_E": into_E.view_as(W_E) + shrink, **gradients}
