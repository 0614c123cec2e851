"""The transformer of Liu et al. (2022), section 4.2: encoder blocks over two tokens, read out side by side.

The paper calls it decoder-only; its code has blocks without a causal mask and without positions. Of two tokens, each
attends to itself and to the other, so a softmax over two scores is a logistic function of their difference and
attention needs no matrix of scores. `tests/textbook_encoder.py` writes it out with ``torch.nn``'s own layers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from grokbook.lazy import torch

if TYPE_CHECKING:
    from torch import Generator, Tensor

    Params = dict[str, Tensor]


@dataclass(frozen=True)
class PairEncoder:
    """Embeddings, blocks of attention and a ReLU layer (each after a LayerNorm, each added), and one linear readout.

    Params of M members: ``W_E`` (M, p, d_model), and of block l those of ``block_names`` with ``_l``; ``W_U`` (M, p,
    2 d_model) and ``b_U``. Matrices are (out, in).

    Args:
        p: number of symbols and of answers.
        d_model: width of an embedding.
        layers: blocks.
        hidden: units of a block's ReLU layer.
        dropout: probability, in training, at attention weights, hidden units and whatever is added.
    """

    p: int
    d_model: int = 256
    layers: int = 2
    hidden: int = 128
    dropout: float = 0.0
    version: ClassVar[int] = 1
    block_names: ClassVar[tuple[str, ...]] = (
        *("W_QKV", "b_QKV", "W_O", "b_O", "W_in", "b_in", "W_out", "b_out"),
        *("g1", "c1", "g2", "c2"),
    )
    axes: ClassVar[dict[str, tuple[str, str]]] = {"W_E": ("symbol", "feature")}

    def __post_init__(self) -> None:
        for name in ("p", "d_model", "layers", "hidden"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}: a whole number of at least 1 is needed")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout = {self.dropout}: it must lie in [0, 1)")

    @property
    def floats_per_sample(self) -> int:
        """Numbers that one sample needs in a block; decides how many members share a core's cache."""
        return 2 * (8 * self.d_model + self.hidden)

    def init(self, generator: Generator) -> Params:
        """Parameters of one member: normal embeddings, layers as ``torch.nn`` draws them."""
        d = self.d_model
        uniform, spread = torch.nn.init.kaiming_uniform_, math.sqrt(5)

        def linear(out: int, inputs: int) -> tuple[Tensor, Tensor]:
            bound = 1 / math.sqrt(inputs)
            W = uniform(torch.empty(out, inputs), a=spread, generator=generator)
            return W, torch.empty(out).uniform_(-bound, bound, generator=generator)

        params = {"W_E": torch.randn(self.p, d, generator=generator)}
        for block in range(self.layers):
            params[f"W_QKV_{block}"] = torch.nn.init.xavier_uniform_(torch.empty(3 * d, d), generator=generator)
            params[f"b_QKV_{block}"] = torch.zeros(3 * d)
            params[f"W_O_{block}"], params[f"b_O_{block}"] = linear(d, d)[0], torch.zeros(d)
            params[f"W_in_{block}"], params[f"b_in_{block}"] = linear(self.hidden, d)
            params[f"W_out_{block}"], params[f"b_out_{block}"] = linear(d, self.hidden)
            for norm in "12":
                params[f"g{norm}_{block}"], params[f"c{norm}_{block}"] = torch.ones(d), torch.zeros(d)
        params["W_U"], params["b_U"] = linear(self.p, 2 * d)
        return params

    def __call__(self, params: Params, inputs: Tensor, noise: Sequence[Generator] | None = None) -> Tensor:
        """Outputs (M, B, p) for pairs ``inputs`` (M, B, 2); ``noise``, one generator a member, switches dropout on."""
        M, B = inputs.shape[:2]
        drop = _Dropout(self.dropout, noise if self.dropout else None)
        start = torch.arange(M, device=inputs.device)[:, None, None] * self.p
        x = torch.nn.functional.embedding(inputs + start, params["W_E"].flatten(0, 1))  # (M, B, 2, d)
        x = x.flatten(1, 2)  # (M, 2B, d): both tokens of a sample are neighbours
        for block in range(self.layers):
            of = {name.removesuffix(f"_{block}"): value for name, value in params.items() if name.endswith(f"_{block}")}
            x = x + drop(self._attend(_norm(x, of["g1"], of["c1"]), of, drop))
            h = torch.relu(_linear(_norm(x, of["g2"], of["c2"]), of["W_in"], of["b_in"]))
            x = x + drop(_linear(drop(h), of["W_out"], of["b_out"]))
        return _linear(x.view(M, B, -1), params["W_U"], params["b_U"])

    def _attend(self, x: Tensor, of: Params, drop: _Dropout) -> Tensor:
        """Attention with one head between the two tokens of every sample, (M, 2B, d)."""
        query, key, value = _linear(x, of["W_QKV"], of["b_QKV"]).unflatten(1, (-1, 2)).chunk(3, -1)  # (M, B, 2, d)
        advantage = (query * (key.flip(2) - key)).sum(-1, keepdim=True) * self.d_model**-0.5
        other = torch.sigmoid(advantage)
        mixed = drop(1 - other) * value + drop(other) * value.flip(2)
        return _linear(mixed.flatten(1, 2), of["W_O"], of["b_O"])


def _linear(x: Tensor, W: Tensor, b: Tensor) -> Tensor:
    return torch.baddbmm(b[:, None], x, W.mT)


def _norm(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:]) * gain[:, None] + shift[:, None]


@dataclass(frozen=True)
class _Dropout:
    """Each number is dropped with a probability, and the others scaled up, from one generator a member."""

    probability: float
    noise: Sequence[Generator] | None

    def __call__(self, x: Tensor) -> Tensor:
        if self.noise is None:
            return x
        kept = torch.stack([torch.rand(x.shape[1:], generator=one) >= self.probability for one in self.noise])
        return x * kept.to(x.device) / (1 - self.probability)
