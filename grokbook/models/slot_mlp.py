"""A perceptron with two hidden layers on tokens in slots: an embedding for each slot, or one for all of them.

With an embedding each, they are concatenated, and the first layer acts on every slot by its own block of weights: it
meets each token once, not every sample; then rows are looked up and added. With one for all, embeddings are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from grokbook import checks
from grokbook.lazy import Generator, Params, Tensor, torch
from grokbook.models.transformer import rows_of


@dataclass(frozen=True)
class SlotMLP:
    """Embedding, two hidden ReLU layers with biases, output with a bias.

    Parameters, each with a leading member axis: W_E (slots or 1, tokens, d), of standard normal numbers; W_1 (slots or
    1, d, width), W_2 (width, width), W_U (width, classes), of variance 2 over their inputs (He initialisation); biases
    b_1, b_2, b_U, which start at zero. ``ValueError`` names a size out of range.
    """

    tokens: int  #: what may stand in a slot, the same in all of them
    classes: int  #: answers
    slots: int = 4  #: tokens of a sample
    d_model: int = 32  #: width of an embedding
    width: int = 128  #: hidden units of each layer
    shared: bool = False  #: one embedding for all slots, whose rows are added: the order of tokens is lost at the start

    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        checks.sizes(self, tokens=2, classes=2, slots=1, d_model=1, width=1)

    @property
    def floats_per_sample(self) -> int:
        return 2 * self.width

    def init(self, generator: Generator) -> Params:
        """The parameters of one member, without the member axis: float32, drawn on the CPU."""
        tables = 1 if self.shared else self.slots
        shapes = {
            "W_1": (tables, self.d_model, self.width),
            "W_2": (self.width, self.width),
            "W_U": (self.width, self.classes),
        }
        params = {"W_E": torch.randn((tables, self.tokens, self.d_model), generator=generator)}
        for name, shape in shapes.items():
            fan_in = shape[0] * shape[1] if len(shape) == 3 else shape[0]
            params[name] = torch.randn(shape, generator=generator) * (2 / fan_in) ** 0.5
            params[name.replace("W", "b")] = torch.zeros(shape[-1])
        return params

    def __call__(self, params: Params, inputs: Tensor) -> Tensor:
        """Outputs (M, B, classes) for tokens `inputs` (M, B, slots)."""
        hidden = torch.baddbmm(params["b_2"][:, None], self.activations(params, inputs), params["W_2"])
        return torch.baddbmm(params["b_U"][:, None], torch.relu_(hidden), params["W_U"])

    def activations(self, params: Params, inputs: Tensor) -> Tensor:
        """The first layer's hidden units after their ReLU, (M, B, width), for tokens `inputs` (M, B, slots)."""
        seen = params["W_E"] @ params["W_1"]  # (M, slots or 1, tokens, width): what each token adds to the first layer
        by_slot = seen.expand(-1, self.slots, -1, -1).unbind(1)
        hidden = params["b_1"][:, None] + sum(rows_of(*one) for one in zip(by_slot, inputs.unbind(-1), strict=True))
        return torch.relu_(hidden)
