"""The transformer of Liu et al. (2022), section 4.2: encoder blocks over two tokens, read out side by side.

The paper calls it decoder-only; its code has blocks without a causal mask and without positions. With one head of the
full width, products of weights with each other replace products of every token with each of them.
`tests/textbook_encoder.py` writes it out with ``torch.nn``'s own layers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from grokbook import checks
from grokbook.lazy import Generator, Params, Tensor, torch
from grokbook.models.dense import draw_layer
from grokbook.models.transformer import rows_of
from grokbook.streams import Stream


@dataclass(frozen=True)
class PairEncoder:
    """Embeddings, blocks of attention and a ReLU layer (each after a LayerNorm, each added), and one linear readout.

    Params of M members: ``W_E`` (M, p, d_model), and of block l those of ``block_names`` with ``_l``; ``W_U`` (M, p,
    2 d_model) and ``b_U``. Matrices are (out, in).
    """

    p: int  #: number of symbols and of answers
    d_model: int = 256  #: width of an embedding
    layers: int = 2  #: blocks
    hidden: int = 128  #: units of a block's ReLU layer
    dropout: float = 0.0  #: probability, in training, at attention weights, hidden units and whatever is added
    masks: str | None = field(default=None, init=False, metadata={"recipe": "where set"})  # before, the host drew them
    version: ClassVar[int] = 1
    block_names: ClassVar[tuple[str, ...]] = (
        *("W_QKV", "b_QKV", "W_O", "b_O", "W_in", "b_in", "W_out", "b_out"),
        *("g1", "c1", "g2", "c2"),
    )
    axes: ClassVar[dict[str, tuple[str, str]]] = {"W_E": ("symbol", "feature")}

    def __post_init__(self) -> None:
        checks.sizes(self, p=1, d_model=1, layers=1, hidden=1)
        checks.dropout(self.dropout)
        if self.dropout:
            object.__setattr__(self, "masks", "counted")

    @property
    def floats_per_sample(self) -> int:
        """Numbers that one sample needs in a block; decides how many members share a core's cache."""
        return 2 * (8 * self.d_model + self.hidden)

    def init(self, generator: Generator) -> Params:
        """Parameters of one member: normal embeddings, layers as ``torch.nn`` draws them."""
        d, draw = self.d_model, partial(draw_layer, generator=generator)
        params = {"W_E": torch.randn(self.p, d, generator=generator)}
        for block in range(self.layers):
            params[f"W_QKV_{block}"] = torch.nn.init.xavier_uniform_(torch.empty(3 * d, d), generator=generator)
            params[f"b_QKV_{block}"] = torch.zeros(3 * d)
            params[f"W_O_{block}"], params[f"b_O_{block}"] = draw(d, d)[0], torch.zeros(d)
            params[f"W_in_{block}"], params[f"b_in_{block}"] = draw(d, self.hidden)
            params[f"W_out_{block}"], params[f"b_out_{block}"] = draw(self.hidden, d)
            for norm in "12":
                params[f"g{norm}_{block}"], params[f"c{norm}_{block}"] = torch.ones(d), torch.zeros(d)
        params["W_U"], params["b_U"] = draw(2 * d, self.p)
        return params

    def __call__(self, params: Params, inputs: Tensor, noise: Stream | None = None) -> Tensor:
        """Outputs (M, B, p) for pairs ``inputs`` (M, B, 2); ``noise`` switches dropout on."""
        M, B = inputs.shape[:2]

        def drop(x: Tensor) -> Tensor:  # each number with a probability; the others are scaled up
            if noise is None or not self.dropout:
                return x
            return x * noise.kept(x.shape[1:], self.dropout).to(x).div_(1 - self.dropout)

        def rows(table: Tensor) -> Tensor:  # a row a symbol becomes a row a token, both tokens of a sample neighbours
            return rows_of(table, inputs.flatten(1))  # (M, 2B, d)

        x = rows(params["W_E"])
        for block in range(self.layers):
            of = {name.removesuffix(f"_{block}"): value for name, value in params.items() if name.endswith(f"_{block}")}
            # Before the first block a token is its symbol and nothing else: p rows serve all 2 B tokens.
            query, key, value = _projected(x if block else params["W_E"], of)
            if not block:
                query, key, value = rows(query), rows(key), rows(value)
            x = x + drop(_attend(query, key, value, drop) + of["b_O"][:, None])
            h = torch.relu(_linear(_norm(x), *_with_norm(of["W_in"], of["b_in"], of["g2"], of["c2"])))
            x = x + drop(_linear(drop(h), of["W_out"], of["b_out"]))
        return _linear(x.view(M, B, -1), params["W_U"], params["b_U"])


def _projected(x: Tensor, of: Params) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values (M, n, d) of rows ``x``, for two products with matrices instead of five.

    A score (W_Q x + b_Q) . (W_K y + b_K) is a product of y with W_K' (W_Q x + b_Q), but for what is equal for all y and
    leaves a softmax as it is; and W_O, which comes after the average over values, may come before it.
    """
    W, b = _with_norm(of["W_QKV"], of["b_QKV"], of["g1"], of["c1"])
    (W_Q, W_K, W_V), (b_Q, _, b_V) = W.chunk(3, 1), (part[..., None] for part in b.chunk(3, 1))
    key, W_O = _norm(x), of["W_O"]
    query = _linear(key, W_K.mT @ W_Q, (W_K.mT @ b_Q)[..., 0])
    return query, key, _linear(key, W_O @ W_V, (W_O @ b_V)[..., 0])


def _attend(query: Tensor, key: Tensor, value: Tensor, drop: Callable[[Tensor], Tensor]) -> Tensor:
    """Attention with one head between the two tokens of every sample, all (M, 2B, d)."""
    query, key, value = (part.unflatten(1, (-1, 2)) for part in (query, key, value))
    weights = torch.softmax(query @ key.mT * key.shape[-1] ** -0.5, -1)  # (M, B, 2, 2)
    return (drop(weights) @ value).flatten(1, 2)


def _linear(x: Tensor, W: Tensor, b: Tensor) -> Tensor:
    return torch.baddbmm(b[:, None], x, W.mT)


def _norm(x: Tensor) -> Tensor:
    """LayerNorm without its gain and shift, which `_with_norm` moves into the layer behind it."""
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def _with_norm(W: Tensor, b: Tensor, gain: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    return W * gain[:, None], b + (W @ shift[..., None])[..., 0]
