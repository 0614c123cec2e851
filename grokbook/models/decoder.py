"""The decoder-only transformer of Power et al. (2022): tokens x, op, y, "=", the answer read at "=".

Two blocks of causal attention and a ReLU MLP, each followed by a LayerNorm of the residual sum (post-norm), without
biases elsewhere, on embeddings plus fixed sinusoidal positions, with an output matrix of its own: the paper's appendix
A.1.2 and its released code, which reads six tokens, and answers over the whole vocabulary, where this reads four.

Three exact rearrangements make it fast; `tests/textbook_decoder.py` writes the same net out plainly.

* A position is kept for as few cases as there are: "op" and "=" are one row before the first block, x and y one row
  per symbol; what has seen x alone is one row per symbol at any depth. Only what has seen both is one per sample.
* Queries, keys, values and scores are taken on those rows and looked up for the samples afterwards.
* In the last block only "=" is followed. It is one row per sample and asks four rows, so no keys and values are made:
  its query goes back through W_K, and what it finds forward through W_V, a head at a time.

Axes: M members, B samples, p symbols, d = d_model, H heads of size d / H. Vectors are rows, `x @ W`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

from grokbook import checks
from grokbook.lazy import Generator, Params, Tensor, torch
from grokbook.models.transformer import heads_of, rows_of
from grokbook.streams import Stream

LookUp = Callable[[Tensor, str, str], Tensor]  # rows for the cases of something as rows for those of a larger set

# What the four positions depend on, before the first block and after it: on nothing, x, y, or both.
BEFORE, AFTER = ("x", "", "y", ""), ("x", "x", "xy", "xy")
EQUALS = 3  # the position at which the answer is read


@dataclass(frozen=True)
class Decoder:
    """Causal post-norm transformer on x, op, y, "=".

    Parameters, each with a leading member axis: W_E (p + 2, d), whose last two rows are op and "="; W_Q, W_K, W_V, W_O
    (layers, d, d), W_in (layers, d, 4 d), W_out (layers, 4 d, d); gain_1, shift_1, gain_2, shift_2 (layers, d) of the
    LayerNorms after attention and MLP; W_U (d, p). Embeddings start with unit variance, matrices uniform within
    1 / sqrt(fan-in), as torch's own layers do. ``ValueError`` names a size out of range.
    """

    p: int  #: symbols, and answers
    d_model: int = 128  #: width of the residual stream; the MLPs are four times as wide
    layers: int = 2  #: blocks
    heads: int = 4  #: attention heads; must divide `d_model`
    #: Probability, in training, at what the MLPs add to the residual stream, as in the released code. What has seen x
    #: alone is then one row per sample, too: on a core a step costs a tenth more.
    dropout: float | None = field(default=None, metadata={"recipe": "where set"})

    version: ClassVar[int] = 1
    axes: ClassVar[dict[str, tuple[str, str]]] = {"W_E": ("token", "feature"), "W_U": ("feature", "output")}

    def __post_init__(self) -> None:
        checks.sizes(self, p=2, layers=1)
        if self.heads < 1 or self.d_model < 2 or self.d_model % self.heads or self.d_model % 2:
            raise ValueError(f"heads = {self.heads}: a divisor of an even d_model is needed, which is {self.d_model}")
        checks.dropout(self.dropout or 0.0)

    @property
    def floats_per_sample(self) -> int:
        return 20 * self.d_model * self.layers

    def init(self, generator: Generator) -> Params:
        """The parameters of one member, without the member axis: float32, drawn on the CPU."""
        d, layers = self.d_model, self.layers

        def uniform(*shape: int) -> Tensor:
            return (2 * torch.rand(shape, generator=generator) - 1) * shape[-2] ** -0.5

        params = {"W_E": torch.randn(self.p + 2, d, generator=generator)}
        params |= {name: uniform(layers, d, d) for name in ("W_Q", "W_K", "W_V", "W_O")}
        params |= {"W_in": uniform(layers, d, 4 * d), "W_out": uniform(layers, 4 * d, d)}
        for norm in (1, 2):
            params |= {f"gain_{norm}": torch.ones(layers, d), f"shift_{norm}": torch.zeros(layers, d)}
        return {**params, "W_U": uniform(d, self.p)}

    def __call__(self, params: Params, inputs: Tensor, noise: Stream | None = None) -> Tensor:
        """Outputs (M, B, p) at "=", for pairs `inputs` (M, B, 2); ``noise`` switches dropout on."""
        return self._forward(params, inputs, noise)[0] @ params["W_U"]

    def activations(self, params: Params, inputs: Tensor) -> Tensor:
        """The hidden units of the last MLP at "=" after their ReLU, (M, B, 4 d); of two blocks or more."""
        return self._forward(params, inputs, None)[1]

    def _forward(self, params: Params, inputs: Tensor, noise: Stream | None) -> tuple[Tensor, Tensor]:
        """What stands at "=" after the last block, (M, B, d), and its hidden units (M, B, 4 d) in all but the first."""
        index, drop = dict(zip("xy", inputs.unbind(-1), strict=True)), noise if self.dropout else None

        def look_up(rows: Tensor, known: str, wanted: str) -> Tensor:
            """Rows (M, cases of `known`, k) as (M, cases of `wanted`, k); a single row stays one and broadcasts."""
            if known in (wanted, ""):
                return rows if known or wanted != "x" else rows.expand(-1, self.p, -1)
            return rows_of(rows, index[known])

        W_E = params["W_E"]
        place = sinusoids(4, self.d_model, W_E.device, W_E.dtype)
        symbols, op, equals = W_E[:, : self.p], W_E[:, self.p : self.p + 1], W_E[:, self.p + 1 :]
        seen = [row + at for row, at in zip((symbols, op, symbols, equals), place, strict=True)]
        known, hidden = BEFORE, W_E
        # All blocks at once: their gradients are then put together once, too.
        blocks = {name: value.unbind(1) for name, value in params.items() if name not in ("W_E", "W_U")}
        for layer in range(self.layers):
            W = {name: value[layer] for name, value in blocks.items()}
            last = layer == self.layers - 1
            if last and layer:
                stream, hidden = self._answer(seen, known, W, look_up)
                seen = [self._dropped(stream, hidden @ W["W_out"], W, drop) if drop else _added(stream, hidden, W)]
            else:
                seen = self._block(seen, known, W, (EQUALS,) if last else range(4), look_up, drop)
            known = ("xy",) * 4 if drop else AFTER
        return seen[-1], hidden

    def _block(
        self,
        seen: list[Tensor],
        known: tuple[str, ...],
        W: Params,
        followed: range | tuple[int, ...],
        look_up: LookUp,
        drop: Stream | None,
    ) -> list[Tensor]:
        """The positions in `followed` after a block, from all four before it; `known` says what those depend on."""
        d = self.d_model
        head = heads_of(d, self.heads, seen[0].device, seen[0].dtype)
        # The rows of all positions in one product each, here and below: larger products are faster.
        rows, sizes = torch.cat(seen, 1), [rows.shape[1] for rows in seen]
        W_Q = W["W_Q"] * (d // self.heads) ** -0.5
        queries, keys, values = ((rows @ factor).split(sizes, 1) for factor in (W_Q, W["W_K"], W["W_V"]))
        shown: dict[tuple[int, str], Tensor] = {}  # values, looked up once for all that see them
        gathered, streams = [], []
        for i in followed:
            level = _join(AFTER[i], known[i])
            streams.append(look_up(seen[i], known[i], level))
            if i == 0:  # it sees itself alone
                gathered.append(values[i])
                continue
            scores = []
            for j in range(i + 1):
                both = _join(known[i], known[j])
                product = look_up(queries[i], known[i], both) * look_up(keys[j], known[j], both)
                scores.append(look_up(product @ head.T, both, level))
                if (j, level) not in shown:
                    shown[j, level] = look_up(values[j], known[j], level)
            weights = torch.stack(torch.broadcast_tensors(*scores)).softmax(0) @ head  # (j, M, rows, d)
            first, *others = weights.unbind()
            found = first * shown[0, level]
            for j, weight in enumerate(others, 1):
                found = torch.addcmul(found, weight, shown[j, level])
            gathered.append(found)
            streams[-1] = streams[-1].expand_as(found)
        sizes = [rows.shape[1] for rows in gathered]
        stream, hidden = _fed(torch.cat(streams, 1), torch.cat(gathered, 1), W)
        if drop is None:
            return list(_added(stream, hidden, W).split(sizes, 1))
        levels = [_join(AFTER[i], known[i]) for i in followed]

        def spread(rows: Tensor) -> Tensor:  # every sample drops numbers of its own
            parts = zip(rows.split(sizes, 1), levels, strict=True)
            return torch.cat([look_up(part, level, "xy") for part, level in parts], 1)

        stream = self._dropped(spread(stream), spread(hidden @ W["W_out"]), W, drop)
        return list(stream.chunk(len(levels), 1))

    def _dropped(self, stream: Tensor, added: Tensor, W: Params, drop: Stream) -> Tensor:
        """The residual stream after a block, (M, rows, d), from what it was before the MLP and what that gave."""
        share = self.dropout or 0.0
        return _norm(stream + added * drop.kept(added.shape[1:], share) / (1 - share), W["gain_2"], W["shift_2"])

    def _answer(self, seen: list[Tensor], known: tuple[str, ...], W: Params, look_up: LookUp) -> tuple[Tensor, Tensor]:
        """The last block at "=", from all four after another block: before its MLP (M, B, d), and hidden units."""
        by_head = {name: W[name].unflatten(-1, (self.heads, -1)).transpose(1, 2) for name in ("W_K", "W_V")}
        rows = torch.stack([look_up(rows, level, "xy") for rows, level in zip(seen, known, strict=True)], 2)
        query = seen[EQUALS] @ (W["W_Q"] * (self.d_model // self.heads) ** -0.5)
        query = query.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (M, H, B, d/H)
        asked = (query @ by_head["W_K"].mT).transpose(1, 2)  # (M, B, H, d)
        weights = (asked @ rows.mT).softmax(-1)  # (M, B, H, 4)
        found = (weights @ rows).transpose(1, 2) @ by_head["W_V"]  # (M, H, B, d/H)
        return _fed(seen[EQUALS], found.transpose(1, 2).flatten(2), W)


def _join(one: str, other: str) -> str:
    return "".join(sorted({*one, *other}))


def _fed(stream: Tensor, gathered: Tensor, W: Params) -> tuple[Tensor, Tensor]:
    """A block's residual stream before its MLP, (M, rows, d), and the MLP's hidden units, (M, rows, 4 d)."""
    stream = _norm(torch.baddbmm(stream, gathered, W["W_O"]), W["gain_1"], W["shift_1"])
    return stream, torch.relu_(stream @ W["W_in"])


def _added(stream: Tensor, hidden: Tensor, W: Params) -> Tensor:
    """The residual stream after a block, (M, rows, d)."""
    return _norm(torch.baddbmm(stream, hidden, W["W_out"]), W["gain_2"], W["shift_2"])


def _norm(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    """LayerNorm over the last axis of (M, rows, d), with gain and shift (M, d) of each member."""
    norm = torch.nn.functional.layer_norm
    if len(x) == 1:  # one kernel instead of three
        return norm(x, x.shape[-1:], gain[0], shift[0])
    return torch.addcmul(shift[:, None], norm(x, x.shape[-1:]), gain[:, None])


# A step that is captured as a graph may copy nothing from the host: what never changes is made once a device.


@lru_cache
def sinusoids(positions: int, d: int, device: torch.device | str = "cpu", dtype: Any = None) -> Tensor:
    """Fixed positions (positions, d): sines in even columns, cosines in odd ones, of ever longer wavelength."""
    angle = torch.arange(positions)[:, None] / 10_000 ** (torch.arange(0, d, 2) / d)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1).to(device, dtype)
