"""The transformer of Gu et al. (2025): three tokens, the answer read at the third, one to several layers.

A pair (i, j) becomes the tokens i, j + offset and "cls", the last of the vocabulary. Attention is causal, the MLP has
ReLUs and biases, there are residual connections and no LayerNorm, and the unembedding is its own matrix.

Four exact rearrangements make it fast; `tests/textbook_transformer.py` writes the same net out plainly.

* Before the first layer a position holds one of p rows ("cls": of one). Keys, values and, for the third position,
  whose query is then the same for all samples, scores are computed once per row and looked up.
* The first position sees itself alone, so at any depth it holds one row per token.
* In the last layer only the third position is followed.
* There W_O W_in, W_out W_U and W_O W_U are formed before they meet the samples, which leaves each sample
  4 d d + 4 d p + d p products.

With one layer the gradient of the cross-entropy is taken by hand from the gathered values on: over slices of samples
that stay in a core's cache, and without keeping what autograd would. Evaluation goes by the same slices.

Axes: M members, B samples, p residues, d = d_model, H heads of size d / H. Vectors are rows, `x @ W`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, get_args

from grokbook import checks
from grokbook.lazy import Generator, Params, Tensor, torch
from grokbook.models.transformer import rows_of

Start = Literal["gaussian", "toeplitz", "matched"]

LAYER_WEIGHTS = ("W_Q", "W_K", "W_V", "W_O", "W_in", "b_in", "W_out", "b_out")
LINE = 16  # numbers in a line of the cache
SLICE = 512  # samples of the hand-derived gradient at a time: their hidden units stay in a core's own cache


@dataclass(frozen=True)
class PairTransformer:
    """Causal transformer on the tokens i, j + offset, "cls".

    Parameters, each with a leading member axis: W_E (vocabulary, d), W_pos (3, d) if `positions`, W_Q, W_K, W_V, W_O
    (layers, d, d), W_in (layers, d, 4 d), b_in (layers, 4 d), W_out (layers, 4 d, d), b_out (layers, d), W_U (d, p).
    Matrices start with the variance 1 / d, also W_out, biases at zero. ``ValueError`` names a size out of range.
    """

    p: int  #: residues, and answers
    d_model: int = 128  #: width of the residual stream; the MLPs are four times as wide
    layers: int = 1  #: attention layers, each with its MLP
    heads: int = 4  #: attention heads; must divide `d_model`
    #: Token of the second operand's 0, from 0, where both operands share their tokens, to p, where they share none.
    offset: int = 0
    positions: bool = True  #: whether a positional table is added
    #: How the embedding is drawn: "toeplitz", the structured start of figure 20, is a symmetric Toeplitz matrix of
    #: uniform numbers, which needs a vocabulary of at most `d_model`; "matched" is Gaussian with the mean and the norm
    #: that every token has there. All other weights are the same in all three.
    start: Start = "gaussian"

    version: ClassVar[int] = 1
    axes: ClassVar[dict[str, tuple[str, str]]] = {"W_E": ("token", "feature"), "W_U": ("feature", "output")}

    def __post_init__(self) -> None:
        checks.sizes(self, p=2, layers=1)
        checks.one_of("start", self.start, get_args(Start))
        if self.heads < 1 or self.d_model < 1 or self.d_model % self.heads:
            raise ValueError(f"heads = {self.heads}: a divisor of d_model = {self.d_model} is needed")
        if not 0 <= self.offset <= self.p:
            raise ValueError(f"offset = {self.offset}: from 0 to p = {self.p}, else j + offset leaves the vocabulary")
        if self.start != "gaussian" and self.vocabulary > self.d_model:
            raise ValueError(
                f"d_model = {self.d_model}: the {self.start} start needs one for each of {self.vocabulary} tokens"
            )

    @property
    def vocabulary(self) -> int:
        """Number of tokens, offset + p + 1; the last one is "cls"."""
        return self.offset + self.p + 1

    @property
    def floats_per_sample(self) -> int:
        return 6 * self.d_model * self.layers

    @property
    def has_own_gradients(self) -> bool:
        """Whether `cross_entropy_gradients` stands in for autograd."""
        return self.layers == 1

    def init(self, generator: Generator) -> Params:
        """The parameters of one member, without the member axis: float32, drawn on the CPU."""
        d, layers = self.d_model, self.layers

        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator) * d**-0.5

        params = {"W_E": normal(self.vocabulary, d)}
        if self.positions:
            params["W_pos"] = normal(3, d)
        params |= {name: normal(layers, d, d) for name in ("W_Q", "W_K", "W_V", "W_O")}
        params |= {"W_in": normal(layers, d, 4 * d), "b_in": torch.zeros(layers, 4 * d)}
        params |= {"W_out": normal(layers, 4 * d, d), "b_out": torch.zeros(layers, d)}
        params["W_U"] = normal(d, self.p)
        if self.start != "gaussian":
            structured = toeplitz(torch.rand(d, generator=generator))[: self.vocabulary] * d**-0.5
            params["W_E"] = structured if self.start == "toeplitz" else _matched(params["W_E"], structured)
        return params

    def __call__(self, params: Params, inputs: Tensor) -> Tensor:
        """Outputs (M, B, p) at the third position, for pairs `inputs` (M, B, 2)."""
        net = self._last(params, inputs)
        samples = inputs.shape[1]
        step = samples if torch.is_grad_enabled() or inputs.is_cuda else SLICE
        logits = [_logits(net, slice(begin, begin + step)) for begin in range(0, samples, step)]
        return logits[0] if len(logits) == 1 else torch.cat(logits, 1)

    def activations(self, params: Params, inputs: Tensor) -> Tensor:
        """The last MLP's hidden units after their ReLU at the third position, (M, B, 4 d)."""
        gathered, into, constant, *_ = self._last(params, inputs)
        return torch.relu_(gathered @ into + constant)

    def cross_entropy_gradients(self, params: Params, inputs: Tensor, labels: Tensor, weights: Tensor) -> Params:
        """The gradient of each member's cross-entropy over samples (M, B) of given weights; one layer only."""
        params = {name: value.requires_grad_() for name, value in params.items()}
        parts = self._last(params, inputs)
        with torch.no_grad():
            found = _cross_entropy_backward(parts, labels, weights)
        gradients = torch.autograd.grad(parts, list(params.values()), found)
        for value in params.values():
            value.requires_grad_(False)
        return dict(zip(params, gradients, strict=True))

    def _last(self, params: Params, inputs: Tensor) -> Last:
        """The last layer and the unembedding, re-associated, at the third position."""
        n, m = inputs.unbind(-1)
        W_E = params["W_E"]
        places = [W_E[:, : self.p], W_E[:, self.offset : self.offset + self.p], W_E[:, -1:]]
        if self.positions:
            places = [row + at for row, at in zip(places, params["W_pos"][:, :, None].unbind(1), strict=True)]
        seen = [
            Place(places[0], lambda rows: rows_of(rows, n)),
            Place(places[1], lambda rows: rows_of(rows, m)),
            Place(places[2], lambda rows: rows.expand(-1, n.shape[1], -1)),
        ]
        for layer in range(self.layers - 1):
            seen = self._layer(seen, {name: params[name][:, layer] for name in LAYER_WEIGHTS})
        W = {name: params[name][:, -1] for name in LAYER_WEIGHTS}
        stream, W_U = seen[2].rows, params["W_U"]
        return Last(
            self._attend(stream @ W["W_Q"], self._shown(seen, W)),
            W["W_O"] @ W["W_in"],
            stream @ W["W_in"] + W["b_in"][:, None],
            W["W_out"] @ W_U,
            W["W_O"] @ W_U,
            (stream + W["b_out"][:, None]) @ W_U,
        )

    def _layer(self, seen: Sequence[Place], W: Params) -> list[Place]:
        """All three positions after one layer: the first still one row per token, the others one per sample."""
        (first, *others), shown = seen, self._shown(seen, W)
        streams = [first.rows + shown[0].rows[..., self.d_model :] @ W["W_O"]]
        for position, place in enumerate(others, start=1):
            query = place.rows @ W["W_Q"]
            if query.shape[1] > 1:
                query = place.spread(query)
            gathered = self._attend(query, shown[: position + 1])
            streams.append(torch.baddbmm(place.spread(place.rows), gathered, W["W_O"]))
        hidden = [torch.relu_(torch.baddbmm(W["b_in"][:, None], x, W["W_in"])) for x in streams]
        after = [x + torch.baddbmm(W["b_out"][:, None], h, W["W_out"]) for x, h in zip(streams, hidden, strict=True)]
        return [Place(after[0], first.spread), *(Place(rows, lambda rows: rows) for rows in after[1:])]

    def _shown(self, seen: Sequence[Place], W: Params) -> list[Place]:
        """What positions show to attention: keys and values beside each other, (M, R, 2 d)."""
        W_KV = torch.cat([W["W_K"], W["W_V"]], -1)
        return [Place(place.rows @ W_KV, place.spread) for place in seen]

    def _attend(self, query: Tensor, shown: Sequence[Place]) -> Tensor:
        """What a position gathers before W_O, (M, B, d), by its query: (M, B, d), or (M, 1, d) for all samples."""
        d, heads = self.d_model, self.heads
        query = query * (d // heads) ** -0.5
        owner = torch.eye(heads, dtype=query.dtype, device=query.device).repeat_interleave(d // heads, 0)  # (d, H)
        scores, values = [], []
        for place in shown:
            if query.shape[1] == 1:  # a score then belongs to a row
                key, value = place.rows.chunk(2, -1)
                score, value = place.spread(torch.cat([(key * query) @ owner, value], -1)).split([heads, d], -1)
            else:
                key, value = place.spread(place.rows).chunk(2, -1)
                score = (key * query) @ owner
            scores.append(score)
            values.append(value.unflatten(-1, (heads, -1)))
        weights = torch.stack(scores).softmax(0)[..., None]  # (positions, M, B, H, 1)
        return sum(weight * value for weight, value in zip(weights, values, strict=True)).flatten(2)


class Place(NamedTuple):
    """What a position holds: its distinct rows (M, R, d), and how they become one row per sample (M, B, d)."""

    rows: Tensor
    spread: Callable[[Tensor], Tensor]


class Last(NamedTuple):
    """logits = relu(z W_hidden + b_hidden) W_logits + z W_skip + b_logits, or the gradients of these six.

    Each has a leading member axis. The biases hold what the samples share, (M, 1, ...), with one layer, and the
    sample's own residual stream, (M, B, ...), with more.
    """

    z: Tensor
    W_hidden: Tensor
    b_hidden: Tensor
    W_logits: Tensor
    W_skip: Tensor
    b_logits: Tensor


def _logits(net: Last, part: slice) -> Tensor:
    """The logits of some samples, (M, part, p)."""
    z, *biases = (x if x.shape[1] == 1 else x[:, part] for x in (net.z, net.b_hidden, net.b_logits))
    hidden = torch.relu_(torch.baddbmm(biases[0], z, net.W_hidden))
    return torch.baddbmm(biases[1], hidden, net.W_logits) + z @ net.W_skip


def _cross_entropy_backward(net: Last, labels: Tensor, weights: Tensor) -> Last:
    """The gradient of each member's sum(weights * cross-entropy) over samples (M, B), for biases that all share.

    With a column of ones beside z, biases are rows of weights; side by side, hidden units, z and ones meet W_logits,
    W_skip and b_logits at once. Errors have classes along their first axis: 97 of them along the last would leave an
    eighth of the registers empty. LINE - 1 columns of zeros make rows begin where lines of the cache do.
    """
    members, d, width = net.W_hidden.shape
    ones, zeros = net.z.new_ones(SLICE, 1), net.z.new_zeros(members, LINE - 1, net.W_logits.shape[-1])
    below = torch.cat([net.W_hidden, net.b_hidden], 1)  # (M, d + 1, width)
    above = torch.cat([net.W_logits, net.W_skip, net.b_logits, zeros], 1).mT.contiguous()  # (M, p, width + d + LINE)
    into_z, into_below, into_above = (torch.zeros_like(one) for one in (net.z, below, above))
    # Fresh memory would cost as much as what is done with it.
    buffers = [net.z.new_zeros(SLICE, size) for size in (width, *[above.shape[-1]] * 2)]
    for member in range(members):
        for begin in range(0, labels.shape[1], SLICE):
            part = slice(begin, begin + SLICE)
            index = labels[member, None, part]
            h, both, into_both = (one[: index.numel()] for one in buffers)
            z = torch.cat([net.z[member, part], ones[: len(h)]], 1)
            torch.clamp_min(torch.mm(z, below[member], out=h), 0, out=both[:, :width])
            both[:, width : width + d + 1] = z
            error = torch.mm(above[member], both.T).softmax(0)  # (p, samples)
            error.scatter_add_(0, index, error.new_full((1, 1), -1).expand_as(index)).mul_(weights[member, part])
            into_above[member].addmm_(error, both)
            torch.mm(error.T, above[member], out=into_both)
            torch.ops.aten.threshold_backward.grad_input(into_both[:, :width], both[:, :width], 0, grad_input=h)
            into_below[member].addmm_(z.T, h)
            torch.addmm(into_both[:, width : width + d], h, net.W_hidden[member].T, out=into_z[member, part])
    into_logits = into_above.mT.split([width, d, 1, LINE - 1], 1)[:3]
    return Last(into_z, into_below[:, :-1], into_below[:, -1:], *into_logits)


def toeplitz(first: Tensor) -> Tensor:
    """The symmetric matrix (d, d) whose entry (i, j) is ``first[|i - j|]``, for ``first`` (d,)."""
    index = torch.arange(len(first))
    return first[(index[:, None] - index).abs()]


def _matched(random: Tensor, like: Tensor) -> Tensor:
    """Rows of `random` shifted and scaled to the mean and the norm of those of `like`, both (tokens, d)."""
    centred, wanted = (rows - rows.mean(1, keepdim=True) for rows in (random, like))
    return like.mean(1, keepdim=True) + centred * (wanted.norm(dim=1) / centred.norm(dim=1))[:, None]
