"""The network with two hidden layers of Gu et al. (2025), section 6.1: embeddings, concatenated, and an MLP.

A pair (i, j) is three tokens, i, j and "cls", whose embeddings are concatenated. The first layer acts on each of them
by its own block of weights, so a block meets every token once, not every sample; then rows are looked up and added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from grokbook import checks
from grokbook.lazy import Generator, Params, Tensor, torch
from grokbook.models.transformer import rows_of


@dataclass(frozen=True)
class EmbeddedMLP:
    """Embedding, two hidden ReLU layers with biases, output with a bias.

    Parameters, each with a leading member axis: W_E (p + 1, d), W_1 (3 d, width), b_1 (width), W_2 (width, width),
    b_2 (width), W_U (width, p), b_U (p). The embedding starts with the variance 1 / d, the layers uniformly within
    1 / sqrt(fan-in), as ``torch.nn.Linear`` does. ``ValueError`` names a size out of range.
    """

    p: int  #: residues, and answers
    d_model: int = 128  #: width of an embedding
    width: int = 512  #: hidden units of each layer

    version: ClassVar[int] = 1
    axes: ClassVar[dict[str, tuple[str, str]]] = {"W_E": ("token", "feature"), "W_U": ("hidden", "output")}
    offset: ClassVar[int] = 0

    def __post_init__(self) -> None:
        checks.sizes(self, p=2, d_model=1, width=1)

    @property
    def floats_per_sample(self) -> int:
        return 2 * self.width

    def init(self, generator: Generator) -> Params:
        """The parameters of one member, without the member axis: float32, drawn on the CPU."""
        params = {"W_E": torch.randn((self.p + 1, self.d_model), generator=generator) * self.d_model**-0.5}
        sizes = {"1": (3 * self.d_model, self.width), "2": (self.width, self.width), "U": (self.width, self.p)}
        for name, (fan_in, fan_out) in sizes.items():
            for kind, shape in (("W", (fan_in, fan_out)), ("b", (fan_out,))):
                params[f"{kind}_{name}"] = (2 * torch.rand(shape, generator=generator) - 1) * fan_in**-0.5
        return params

    def __call__(self, params: Params, inputs: Tensor) -> Tensor:
        """Outputs (M, B, p) for pairs `inputs` (M, B, 2)."""
        W_E, blocks = params["W_E"], params["W_1"].chunk(3, 1)
        first, second = W_E[:, :-1] @ blocks[0], W_E[:, :-1] @ blocks[1]
        rest = W_E[:, -1:] @ blocks[2] + params["b_1"][:, None]  # what all samples share
        n, m = inputs.unbind(-1)
        hidden = torch.relu_(rows_of(first + rest, n) + rows_of(second, m))
        hidden = torch.relu_(torch.baddbmm(params["b_2"][:, None], hidden, params["W_2"]))
        return torch.baddbmm(params["b_U"][:, None], hidden, params["W_U"])
