"""The transformer and the attention-only nets of Gromov (2023), appendix E (Figs. 11 to 13).

A pair (n, m) is a sequence of two tokens and the answer is read at the second. Attention is causal, as in the
decoder-only nets of Power et al. (2022). The paper does not say, and with one layer it makes no difference,
because only the second position is read. There is no LayerNorm and no bias.

Three exact rearrangements make the nets fast; `tests/textbook_transformer.py` writes the same nets out plainly.

* The first position sees itself alone, so what it holds depends on n alone: one row per token of the
  vocabulary, (M, p, d), instead of one per sample. Before the first layer the same is true of m.
* The scores between the two positions are then a p x p table per head, in which samples look theirs up.
* Only the second position is followed from there on, and W_O W_U is formed before it meets the samples.

Axes: M members, B samples, p tokens, d = d_model, H heads of size d / H. Vectors are rows, `x @ W`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Literal, get_args

from grokbook import checks
from grokbook.lazy import Generator, Params, Tensor, torch

Attention = Literal["softmax", "linear"]
# With so few look-ups CUDA's own backward pass can, rarely, be wrong (PyTorch's pull request 187687).
FEW_ROWS = 3072
ATTENTION_WEIGHTS = ("W_Q", "W_K", "W_V", "W_O")


@dataclass(frozen=True)
class Transformer:
    """One layer of softmax attention and a ReLU MLP, both with residual connections.

    Parameters, each with a leading member axis: W_E (p, d), W_pos (2, d), W_Q, W_K, W_V, W_O (d, d),
    W_in (d, mlp_ratio d), W_out (mlp_ratio d, d), W_U (d, p).
    """

    p: int  #: number of tokens, and of answers
    d_model: int = 128  #: width of the residual stream
    heads: int = 4  #: attention heads; must divide `d_model`
    mlp_ratio: int = 4  #: hidden units of the MLP, in multiples of `d_model`
    logit_scale: float | None = None  #: factor on the output; None means 1 / d_model
    init_scale: float = 1.0  #: factor on all initial weights, normal with standard deviation 1 / sqrt(fan-in)

    version: ClassVar[int] = 1
    axes: ClassVar[dict[str, tuple[str, str]]] = {"W_E": ("token", "feature"), "W_U": ("feature", "output")}

    def __post_init__(self) -> None:
        checks.sizes(self, p=2, heads=1, mlp_ratio=1)
        _check_heads(self)

    def init(self, generator: Generator) -> Params:
        """The parameters of one member, without the member axis: float32, drawn on the CPU."""
        d, width = self.d_model, self.mlp_ratio * self.d_model
        shapes = dict.fromkeys(ATTENTION_WEIGHTS, (d, d)) | {"W_in": (d, width), "W_out": (width, d)}
        return _draw(self.p, d, shapes, self.init_scale, generator)

    def __call__(self, params: Params, inputs: Tensor) -> Tensor:
        """Outputs (M, B, p) at the second token, for tokens `inputs` (M, B, 2)."""
        stream, hidden = self._forward(params, inputs)
        W_U = params["W_U"] * _scale(self)
        return torch.baddbmm(stream @ W_U, hidden, params["W_out"] @ W_U)

    def activations(self, params: Params, inputs: Tensor) -> Tensor:
        """The MLP's hidden units after their ReLU at the second token, (M, B, units), for tokens `inputs` (M, B, 2)."""
        return self._forward(params, inputs)[1]

    def _forward(self, params: Params, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """The residual stream after attention (M, B, d) and the hidden units of the MLP (M, B, units)."""
        first, second = _embed(params)
        *W, W_O = (params[name] for name in ATTENTION_WEIGHTS)
        alone, added = _attend_tokens(first, second, W, inputs, self.heads, "softmax")
        stream = torch.baddbmm(rows_of(second + alone @ W_O, inputs[..., 1]), added, W_O)
        return stream, torch.relu_(stream @ params["W_in"])


@dataclass(frozen=True)
class AttentionOnly:
    """Attention layers with residual connections, and nothing else.

    Parameters, each with a leading member axis: W_E (p, d), W_pos (2, d), W_Q, W_K, W_V, W_O (layers, d, d),
    W_U (d, p).
    """

    p: int  #: number of tokens, and of answers
    d_model: int = 128  #: width of the residual stream
    heads: int = 4  #: attention heads; must divide `d_model`. The number of parameters does not depend on it
    layers: int = 1  #: attention layers
    attention: Attention = "softmax"  #: or "linear", whose weights are the plain scores q.k / sqrt(d / H)
    logit_scale: float | None = None  #: factor on the output; None means 1 / d_model
    init_scale: float = 1.0  #: factor on all initial weights, normal with standard deviation 1 / sqrt(fan-in)
    #: Standard deviation of initial embeddings and positions; None means init_scale / sqrt(d_model).
    embedding_std: float | None = field(default=None, metadata={"recipe": "where set"})

    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        checks.sizes(self, p=2, heads=1, layers=1)
        _check_heads(self)
        checks.one_of("attention", self.attention, get_args(Attention))
        if self.embedding_std is not None and self.embedding_std <= 0:
            raise ValueError(f"embedding_std must be above 0, got {self.embedding_std}")

    def init(self, generator: Generator) -> Params:
        """The parameters of one member, without the member axis: float32, drawn on the CPU."""
        shapes = dict.fromkeys(ATTENTION_WEIGHTS, (self.layers, self.d_model, self.d_model))
        params = _draw(self.p, self.d_model, shapes, self.init_scale, generator)
        if self.embedding_std is None:
            return params
        larger = self.embedding_std * self.d_model**0.5 / self.init_scale
        return {**params, "W_E": params["W_E"] * larger, "W_pos": params["W_pos"] * larger}

    def __call__(self, params: Params, inputs: Tensor) -> Tensor:
        """Outputs (M, B, p) at the second token, for tokens `inputs` (M, B, 2)."""
        n, m = inputs.unbind(-1)
        W_U = params["W_U"] * _scale(self)
        (*W, W_O), *later = zip(*(params[name].unbind(1) for name in ATTENTION_WEIGHTS), strict=True)

        first, second = _embed(params)  # (M, p, d)
        alone, added = _attend_tokens(first, second, W, inputs, self.heads, self.attention)
        second = second + alone @ W_O  # what does not depend on n: still one row per token
        if not later:
            return torch.baddbmm(rows_of(second @ W_U, m), added, W_O @ W_U)

        stream = rows_of(second, m)  # (M, B, d)
        for *W_next, W_O_next in later:
            stream = torch.baddbmm(stream, added, W_O)
            first = first + _attend_itself(first, W, self.heads, self.attention) @ W_O
            W, W_O = W_next, W_O_next
            added = _attend_samples(first, stream, W, n, self.heads, self.attention)
        return torch.baddbmm(stream @ W_U, added, W_O @ W_U)


def _attend_tokens(
    first: Tensor, second: Tensor, W: list[Tensor], inputs: Tensor, heads: int, attention: Attention
) -> tuple[Tensor, Tensor]:
    """Attention of the second position where both positions hold plain token rows (M, p, d).

    Returns what it gathers, split in two: a part that depends on m alone, one row per token (M, p, d), and
    what n adds to it, one row per sample (M, B, d). W holds W_Q, W_K, W_V, each (M, d, d).
    """
    n, m = inputs.unbind(-1)
    p, d = second.shape[1:]
    W_Q, W_K, W_V = W
    head = heads_of(d, heads, second.device, second.dtype)
    query, key, value = second @ W_Q * (d // heads) ** -0.5, second @ W_K, second @ W_V
    itself = (query * key) @ head.T  # (M, p, H)
    asked, shown = (x.unflatten(-1, (heads, -1)) for x in (query, first @ W_K))
    scores = shown.transpose(1, 2) @ asked.permute(0, 2, 3, 1)  # (M, H, n, d/H) @ (M, H, d/H, m)
    if attention == "softmax":
        scores = scores - itself.mT[:, :, None]
    of_samples = (n * p + m)[:, None].expand(-1, heads, -1)
    scores = scores.flatten(2).gather(2, of_samples)  # (M, H, B)
    if attention == "softmax":  # of two scores: the logistic function of their difference
        return value, (torch.sigmoid(scores).mT @ head) * (rows_of(first @ W_V, n) - rows_of(value, m))
    return (itself @ head) * value, (scores.mT @ head) * rows_of(first @ W_V, n)


def _attend_itself(first: Tensor, W: list[Tensor], heads: int, attention: Attention) -> Tensor:
    """Attention of the first position (M, p, d), which sees itself alone: (M, p, d)."""
    W_Q, W_K, W_V = W
    if attention == "softmax":
        return first @ W_V
    d = first.shape[-1]
    head = heads_of(d, heads, first.device, first.dtype)
    query = first @ W_Q * (d // heads) ** -0.5
    return ((query * (first @ W_K)) @ head.T @ head) * (first @ W_V)


def _attend_samples(
    first: Tensor, second: Tensor, W: list[Tensor], n: Tensor, heads: int, attention: Attention
) -> Tensor:
    """Attention of the second position (M, B, d) over itself and the first, whose rows (M, p, d) n picks."""
    d = second.shape[-1]
    W_Q, W_K, W_V = W
    head = heads_of(d, heads, first.device, first.dtype)
    query, key, value = second @ (W_Q * (d // heads) ** -0.5), second @ W_K, second @ W_V
    first_key, first_value = rows_of(first @ W_K, n), rows_of(first @ W_V, n)
    if attention == "softmax":
        weight = torch.sigmoid((query * (first_key - key)) @ head.T)  # (M, B, H)
        return value + (weight @ head) * (first_value - value)
    itself, other = (query * key) @ head.T, (query * first_key) @ head.T
    return (itself @ head) * value + (other @ head) * first_value


@cache
def heads_of(d: int, heads: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Which head owns which of the d columns, as zeros and ones (H, d), made once a device.

    `x @ head.T` sums over each head and `w @ head` hands a weight to its columns; for heads of few columns
    this is much faster than reducing and broadcasting over a short last axis.
    """
    return torch.eye(heads, dtype=dtype, device=device).repeat_interleave(d // heads, 1)


def rows_of(table: Tensor, index: Tensor) -> Tensor:
    """Row `index` (M, B) of each member's `table` (M, rows, k): (M, B, k).

    One embedding look-up in all tables at once: its backward is several times faster than that of indexing.
    """
    if table.is_cuda and index.numel() <= FEW_ROWS:
        return _safe_rows()(table, index)
    return _rows(table, index)


def _rows(table: Tensor, index: Tensor) -> Tensor:
    members, rows, _ = table.shape
    if members == 1:
        return torch.nn.functional.embedding(index, table.squeeze(0))
    start = torch.arange(members, device=index.device)[:, None] * rows
    return torch.nn.functional.embedding(index + start, table.flatten(0, 1))


@cache
def _safe_rows() -> Callable[[Tensor, Tensor], Tensor]:
    """The same with a backward pass that is a product of matrices, ones where a row was looked up, and exact."""

    class Rows(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, table: Tensor, index: Tensor) -> Tensor:
            context.save_for_backward(index)
            context.rows = table.shape[1]
            return _rows(table, index)

        @staticmethod
        def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
            (index,) = context.saved_tensors
            ones = index[..., None] == torch.arange(context.rows, device=index.device)  # (M, B, rows)
            return ones.to(gradient.dtype).mT @ gradient, None

    return Rows.apply


def _embed(params: Params) -> tuple[Tensor, Tensor]:
    """Every token at the first and at the second position, each (M, p, d)."""
    first, second = params["W_pos"][:, :, None].unbind(1)  # (M, 1, d)
    return params["W_E"] + first, params["W_E"] + second


def _draw(p: int, d: int, shapes: Mapping[str, tuple[int, ...]], scale: float, generator: Generator) -> Params:
    """Normal weights of standard deviation scale / sqrt(fan-in); an embedding has a norm of about `scale`."""

    def normal(shape: tuple[int, ...], fan_in: int) -> Tensor:
        return torch.randn(shape, generator=generator) * (scale * fan_in**-0.5)

    return {
        "W_E": normal((p, d), d),
        "W_pos": normal((2, d), d),
        **{name: normal(shape, shape[-2]) for name, shape in shapes.items()},
        "W_U": normal((d, p), d),
    }


def _scale(model: Transformer | AttentionOnly) -> float:
    return 1 / model.d_model if model.logit_scale is None else model.logit_scale


def _check_heads(model: Transformer | AttentionOnly) -> None:
    if model.d_model % model.heads:
        raise ValueError(f"heads must divide d_model = {model.d_model}, got {model.heads}")
