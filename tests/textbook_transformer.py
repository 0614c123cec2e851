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
            (x @ W).view(B, T, self.heads, d // self.heads).transpose(1, 2)
            for W in (self.W_Q, self.W_K, self.W_V)
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

    def __init__(
        self, p: int, d_model: int, heads: int, layers: int, linear: bool, logit_scale: float
    ) -> None:
        super().__init__()
        self.logit_scale = logit_scale
        self.W_E, self.W_pos, self.W_U = matrix(p, d_model), matrix(2, d_model), matrix(d_model, p)
        self.layers = nn.ModuleList(SelfAttention(d_model, heads, linear) for _ in range(layers))

    def forward(self, tokens: Tensor) -> Tensor:  # (B, 2) -> (B, p)
        x = self.W_E[tokens] + self.W_pos  # (B, 2, d)
        for attention in self.layers:
            x = x + attention(x)
        return (x @ self.W_U)[:, -1] * self.logit_scale
