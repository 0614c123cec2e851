"""The nets of `grokbook.models` as a textbook writes them: one member, every position, nothing rearranged."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def matrix(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(*shape))


class SelfAttention(nn.Module):
    """Causal multi-head attention; `linear` leaves the softmax out and masks with zeros instead of -inf."""

    def __init__(self, d_model: int, heads: int, linear: bool = False) -> None:
        super().__init__()
        self.heads, self.linear = heads, linear
        self.W_Q, self.W_K, self.W_V, self.W_O = (matrix(d_model, d_model) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:  # (B, T, d) -> (B, T, d)
        B, T, d = x.shape
        q, k, v = (
            (x @ W).view(B, T, self.heads, d // self.heads).transpose(1, 2) for W in (self.W_Q, self.W_K, self.W_V)
        )  # (B, H, T, d/H)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)  # (B, H, T, T)
        future = torch.ones(T, T, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, 0) if self.linear else scores.masked_fill(future, -math.inf).softmax(-1)
        return (weights @ v).transpose(1, 2).reshape(B, T, d) @ self.W_O


class Transformer(nn.Module):
    """Embedding, attention, ReLU MLP, unembedding; residual connections, no LayerNorm, no biases."""

    def __init__(self, p: int, d_model: int, heads: int, mlp_ratio: int, logit_scale: float) -> None:
        super().__init__()
        self.logit_scale = logit_scale
        self.hidden = torch.empty(0)
        self.W_E, self.W_pos, self.W_U = matrix(p, d_model), matrix(2, d_model), matrix(d_model, p)
        self.W_in, self.W_out = matrix(d_model, mlp_ratio * d_model), matrix(mlp_ratio * d_model, d_model)
        self.attention = SelfAttention(d_model, heads)

    def forward(self, tokens: Tensor) -> Tensor:  # (B, 2) -> (B, p)
        x = self.W_E[tokens] + self.W_pos  # (B, 2, d)
        x = x + self.attention(x)
        self.hidden = torch.relu(x @ self.W_in)  # (B, 2, mlp_ratio d), kept for Fig. 11
        x = x + self.hidden @ self.W_out
        return (x @ self.W_U)[:, -1] * self.logit_scale


class AttentionOnly(nn.Module):
    """Embedding, attention layers with residual connections, unembedding."""

    def __init__(self, p: int, d_model: int, heads: int, layers: int, linear: bool, logit_scale: float) -> None:
        super().__init__()
        self.logit_scale = logit_scale
        self.W_E, self.W_pos, self.W_U = matrix(p, d_model), matrix(2, d_model), matrix(d_model, p)
        self.layers = nn.ModuleList(SelfAttention(d_model, heads, linear) for _ in range(layers))

    def forward(self, tokens: Tensor) -> Tensor:  # (B, 2) -> (B, p)
        x = self.W_E[tokens] + self.W_pos  # (B, 2, d)
        for attention in self.layers:
            x = x + attention(x)
        return (x @ self.W_U)[:, -1] * self.logit_scale


class PairTransformer(nn.Module):
    """Gu et al.: tokens i, j + offset, "cls", causal layers with a biased ReLU MLP each, read at "cls"."""

    def __init__(self, p: int, d_model: int, layers: int, heads: int, offset: int, positions: bool) -> None:
        super().__init__()
        self.offset = offset
        self.embed = nn.Embedding(offset + p + 1, d_model)
        self.positions = matrix(3, d_model) if positions else None
        self.attention = nn.ModuleList(SelfAttention(d_model, heads) for _ in range(layers))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.ReLU(), nn.Linear(4 * d_model, d_model))
            for _ in range(layers)
        )
        self.unembed = nn.Linear(d_model, p, bias=False)

    def forward(self, pairs: Tensor) -> Tensor:  # (B, 2) -> (B, p)
        cls = torch.full((len(pairs), 1), self.embed.num_embeddings - 1)
        x = self.embed(torch.cat([pairs[:, :1], pairs[:, 1:] + self.offset, cls], 1))  # (B, 3, d)
        if self.positions is not None:
            x = x + self.positions
        for attention, mlp in zip(self.attention, self.mlp, strict=True):
            x = x + attention(x)
            x = x + mlp(x)
        return self.unembed(x)[:, 2]


class EmbeddedMLP(nn.Module):
    """Gu et al.: the embeddings of i, j and "cls", concatenated, through two hidden ReLU layers."""

    def __init__(self, p: int, d_model: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(p + 1, d_model)
        self.layers = nn.Sequential(
            nn.Linear(3 * d_model, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, p)
        )

    def forward(self, pairs: Tensor) -> Tensor:  # (B, 2) -> (B, p)
        cls = torch.full((len(pairs), 1), self.embed.num_embeddings - 1)
        return self.layers(self.embed(torch.cat([pairs, cls], 1)).flatten(1))
