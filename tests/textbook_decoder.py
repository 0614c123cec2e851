"""The decoder of `grokbook.models.decoder` as a textbook writes it: one member, every position, torch's own layers."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Block(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.W_Q, self.W_K, self.W_V, self.W_O = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.W_in, self.W_out = nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False)
        self.norm_1, self.norm_2 = nn.LayerNorm(d), nn.LayerNorm(d)

    def forward(self, x: Tensor, kept: Tensor | None = None) -> Tensor:  # (B, T, d) -> (B, T, d)
        B, T, d = x.shape
        q, k, v = (W(x).view(B, T, self.heads, -1).transpose(1, 2) for W in (self.W_Q, self.W_K, self.W_V))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)  # (B, H, T, T)
        future = torch.ones(T, T, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, float("-inf")).softmax(-1)
        x = self.norm_1(x + self.W_O((weights @ v).transpose(1, 2).reshape(B, T, d)))
        added = self.W_out(torch.relu(self.W_in(x)))
        return self.norm_2(x + (added if kept is None else added * kept))


class Decoder(nn.Module):
    def __init__(self, p: int, d: int, layers: int, heads: int) -> None:
        super().__init__()
        self.p = p
        self.W_E = nn.Embedding(p + 2, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.W_U = nn.Linear(d, p, bias=False)
        position = torch.zeros(4, d)
        for t in range(4):
            for i in range(0, d, 2):
                position[t, i], position[t, i + 1] = math.sin(t / 10_000 ** (i / d)), math.cos(t / 10_000 ** (i / d))
        self.register_buffer("position", position)

    def forward(self, pairs: Tensor, kept: list[Tensor] | None = None) -> Tensor:  # (B, 2) -> (B, p)
        x, y = pairs.unbind(-1)
        tokens = torch.stack([x, torch.full_like(x, self.p), y, torch.full_like(x, self.p + 1)], 1)
        stream = self.W_E(tokens) + self.position
        for layer, block in enumerate(self.blocks):
            stream = block(stream, kept and kept[layer])
        return self.W_U(stream)[:, -1]


def load(net: Decoder, params: dict[str, Tensor], member: int) -> Decoder:
    """Give the net the weights of one member of an ensemble; torch's linear layers hold them transposed."""
    with torch.no_grad():
        for name, parameter in named(net):
            parameter.copy_(one(params, name, member))
    return net


def named(net: Decoder) -> list[tuple[str, nn.Parameter]]:
    """Parameters under the names of the ensemble, a block's as ``name.block``."""
    found = [("W_E", net.W_E.weight), ("W_U", net.W_U.weight)]
    for layer, block in enumerate(net.blocks):
        found += [(f"{w}.{layer}", getattr(block, w).weight) for w in ("W_Q", "W_K", "W_V", "W_O", "W_in", "W_out")]
        for norm in (1, 2):
            layer_norm = getattr(block, f"norm_{norm}")
            found += [(f"gain_{norm}.{layer}", layer_norm.weight), (f"shift_{norm}.{layer}", layer_norm.bias)]
    return found


def one(values: dict[str, Tensor], name: str, member: int) -> Tensor:
    """What the ensemble holds for a parameter of the net, as the net holds it."""
    name, _, layer = name.partition(".")
    value = values[name][member] if not layer else values[name][member, int(layer)]
    return value.T if value.ndim == 2 and name != "W_E" else value
