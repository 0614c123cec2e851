"""The two-layer perceptron of Gromov (2023), eqs 1, 2 and 4."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from grokbook import checks
from grokbook.lazy import Generator, Params, Tensor, torch
from grokbook.models.transformer import rows_of
from grokbook.streams import Stream

# name -> (factor on the output, standard deviation at initialisation), each a function of (p, width)
SCALINGS: dict[str, Callable[[int, int], tuple[float, float]]] = {
    "mean_field": lambda p, width: (2 / width, 1.0),  # as printed, eq. 2
    "input_mean_field": lambda p, width: (1 / (2 * p * width), 1.0),  # in which the paper's Fig. 1 was evidently made
    "standard": lambda p, width: (1.0, 0.5 * (2 * width) ** (-1 / 3)),  # the group's public code
}

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "quadratic": lambda h: h * h,
    "relu": lambda h: torch.relu(h),
    "gelu": lambda h: torch.nn.functional.gelu(h),
    "abs": lambda h: torch.abs(h),
    "tanh": lambda h: torch.tanh(h),
}

ROWS = 384  # samples per chunk of the hand-derived gradient: two (384, 500) buffers stay in a core's own cache


@dataclass(frozen=True)
class TwoLayerMLP:
    """f(n, m) = c W_out phi(W_in [onehot(n); onehot(m)]), without biases.

    Params of M members: ``W_in`` (M, width, 2p) and ``W_out`` (M, p, width), all entries normal at initialisation.
    ``ValueError`` for an unknown scaling or activation, or a size out of range.
    """

    p: int  #: modulus, so 2p inputs and p outputs
    width: int  #: hidden units N
    scaling: str = "mean_field"  #: the output factor c and the initial standard deviation, see ``SCALINGS``
    activation: str = "quadratic"  #: phi, this one in eq. 4
    dropout: float = 0.0  #: probability that a hidden activation is dropped in a training step
    #: Normalise each preactivation over the samples at hand (no learnt scale or shift): in full-batch training those
    #: are the training set, in evaluation the whole table.
    batch_norm: bool = False
    masks: str | None = field(default=None, init=False, metadata={"recipe": "where set"})  # before, the host drew them
    version: ClassVar[int] = 1
    axes: ClassVar[dict[str, tuple[str, str]]] = {"W_in": ("hidden", "input"), "W_out": ("output", "hidden")}

    def __post_init__(self) -> None:
        checks.sizes(self, width=1)
        checks.one_of("scaling", self.scaling, SCALINGS)
        checks.one_of("activation", self.activation, ACTIVATIONS)
        checks.dropout(self.dropout)
        if self.dropout:
            object.__setattr__(self, "masks", "counted")

    @property
    def factor(self) -> float:
        """The constant c in front of W_out."""
        return SCALINGS[self.scaling](self.p, self.width)[0]

    @property
    def floats_per_sample(self) -> int:
        return 2 * self.width

    def init(self, generator: Generator) -> Params:
        """Weights of one member: ``W_in`` (width, 2p), ``W_out`` (p, width)."""
        std = SCALINGS[self.scaling](self.p, self.width)[1]
        return {
            "W_in": std * torch.randn(self.width, 2 * self.p, generator=generator),
            "W_out": std * torch.randn(self.p, self.width, generator=generator),
        }

    def hidden(self, params: Params, inputs: Tensor) -> Tensor:
        """First-layer preactivations h1, (M, B, width), of the pairs ``inputs`` (M, B, 2)."""
        # A one-hot input picks a column, so the product with W_in is two look-ups and a sum.
        columns = params["W_in"].transpose(1, 2).contiguous()  # (M, 2p, width)
        return rows_of(columns, inputs[..., 0]) + rows_of(columns, inputs[..., 1] + self.p)

    def activations(self, params: Params, inputs: Tensor) -> Tensor:
        """Hidden activations z, (M, B, width)."""
        h = self.hidden(params, inputs)
        if self.batch_norm:
            h = (h - h.mean(1, keepdim=True)) / (h.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()
        return ACTIVATIONS[self.activation](h)

    def __call__(self, params: Params, inputs: Tensor, noise: Stream | None = None) -> Tensor:
        """Outputs (M, B, p) for pairs ``inputs`` (M, B, 2); ``noise`` switches dropout on."""
        z = self.activations(params, inputs)
        if self.dropout and noise is not None:
            z = z * noise.kept(z.shape[1:], self.dropout) / (1 - self.dropout)
        return self.factor * z @ params["W_out"].transpose(1, 2)

    @property
    def has_own_gradients(self) -> bool:
        """Whether ``mse_gradients`` covers these settings."""
        return self.activation == "quadratic" and not self.dropout and not self.batch_norm

    def mse_gradients(self, params: Params, inputs: Tensor, labels: Tensor, weights: Tensor) -> Params:
        """The gradient of the mean squared error, derived by hand: 1.5 times as fast as autograd on a core.

        The samples are taken a few hundred at a time so that the activations never leave the cache. The errors have
        classes along their first axis: 97 of them along the last would leave an eighth of the registers empty.

        Named and shaped like ``params``, from pairs ``inputs`` (M, B, 2), ``labels`` (M, B) and ``weights`` (M, B) of
        samples in the mean; those of weight zero stand at the end.
        """
        p, factor = self.p, self.factor
        gradients = {name: torch.zeros_like(value) for name, value in params.items()}
        like = params["W_out"]
        into = like.new_empty(ROWS, self.width)  # fresh memory would cost as much as what is done with it
        minus_one = like.new_full((1, ROWS), -1)
        begins = 2 * torch.arange(ROWS)  # of the pairs, one after the other
        for member in range(len(labels)):
            rows = params["W_in"][member].T.contiguous()  # (2p, width)
            W_out, into_W_out = params["W_out"][member], gradients["W_out"][member]
            scaled_W_out, twice_W_out = factor * W_out, 2 * W_out
            into_rows = torch.zeros_like(rows)
            size = int((weights[member] > 0).sum())
            scale = 2 * factor / p * weights[member]
            pairs = inputs[member, :size] + inputs.new_tensor([0, p])
            columns = pairs.T.contiguous()
            for begin in range(0, size, ROWS):
                chunk = slice(begin, min(begin + ROWS, size))
                n, m = columns[:, chunk]
                h = torch.embedding_bag(rows, pairs[chunk].flatten(), begins[: len(n)])[0]
                z = torch.mul(h, h, out=into[: len(n)])
                error = torch.mm(scaled_W_out, z.T)  # (p, rows of the chunk)
                error.scatter_add_(0, labels[member, None, chunk], minus_one[:, : len(n)]).mul_(scale[chunk])
                into_W_out.addmm_(error, z)
                into_h = torch.mm(error.T, twice_W_out, out=z).mul_(h)
                into_rows.index_add_(0, n, into_h).index_add_(0, m, into_h)
            gradients["W_in"][member] = into_rows.T
        return gradients
