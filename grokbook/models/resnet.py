"""ResNet-18 (He et al., 2016) in its common form, for members that train together.

A stem of 7 x 7 filters at stride 2 and a 3 x 3 maximum, four stages of two blocks of two 3 x 3 convolutions, batch
normalisation after each, a linear readout of the mean over places. Names, shapes and initial distributions are those
of the implementation that everybody uses, so that its weights can be loaded.

Members are folded into the channels: one convolution with M groups does the work of M, and on a core it takes two
thirds of their time, if channels lie beside each other in memory. `tests/textbook_resnet.py` writes the net out.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from grokbook import checks
from grokbook.lazy import Generator, Params, Tensor, torch

STAGES = (64, 128, 256, 512)
MOMENTUM, EPSILON = 0.1, 1e-5  # of batch normalisation


@dataclass(frozen=True)
class ResNet18:
    """The network; with its defaults that of 11,689,512 parameters.

    Parameters, each with a leading member axis, under the common names: ``conv1.weight`` (out, in, 7, 7),
    ``bn1.weight`` (out), ..., ``layer4.1.conv2.weight``, ``fc.weight`` (classes, features), ``fc.bias``. Besides them
    ``*.running_mean`` and ``*.running_var`` (out) of batch normalisation, which no gradient moves. ``ValueError`` names
    a size out of range.
    """

    classes: int = 1000  #: answers
    width: float = 1.0  #: factor on the channels of all stages; 64 times it must be a whole number
    channels: int = 3  #: of the images, 1 or 3
    size: int = 224  #: height and width of the images in pixels
    #: "pool" reads the mean over places, "flatten" every place by weights of its own (up to 32 pixels there is one
    #: place, and the two are the same network).
    head: str = "pool"
    #: A file with trained weights to start from, all but the readout; see ``pretrained``.
    weights: str = field(default="", metadata={"recipe": False})
    #: Which weights these are; where the file lies is not part of a recipe.
    weights_digest: str | None = field(default=None, metadata={"recipe": "where set"})

    version: ClassVar[int] = 1
    batch_norm: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (self.width > 0 and (64 * self.width).is_integer()):
            raise ValueError(f"width = {self.width}: 64 times it must be a whole number of channels")
        if self.channels not in (1, 3):
            raise ValueError(f"channels = {self.channels}: 1 (grey) and 3 are allowed")
        if self.size < 8 or self.classes < 2:
            raise ValueError(
                f"size = {self.size}, classes = {self.classes}: at least 8 pixels and 2 classes are needed"
            )
        checks.one_of("head", self.head, ("pool", "flatten"))

    @classmethod
    def pretrained(cls, file: str | Path, **sizes: Any) -> ResNet18:
        """The network that starts from the weights in ``file``, a dictionary of tensors under the common names.

        ``ValueError`` if that cannot be read.
        """
        try:
            digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]
        except OSError as error:
            raise ValueError(f"weights = {str(file)!r}: cannot be read ({error.strerror})") from None
        return cls(weights=str(file), weights_digest=digest, **sizes)

    @property
    def buffers(self) -> tuple[str, ...]:
        """Names of the running statistics."""
        return tuple(name for name in self.shapes() if name.endswith(("running_mean", "running_var")))

    @property
    def side_by_side(self) -> int:
        """Members that a core takes at once: narrow networks gain by it, wide ones would only need more memory."""
        return 4 if self.width <= 0.25 else 1

    @property
    def flops_per_sample(self) -> int:
        """Floating point operations of the convolutions for one image, forward and backward."""
        products = 0
        for name, shape in self.shapes().items():
            if len(shape) == 4:  # a stride of 2 in the stem, in its maximum, and at the start of stages 2 to 4
                stage = int(name[5]) if name.startswith("layer") else 0
                products += math.prod(shape) * math.ceil(self.size / 2 ** (stage + 1 if stage else 1)) ** 2
        return 6 * products

    @property
    def floats_per_sample(self) -> int:
        """Numbers that one image needs between the layers."""
        return int(64 * self.width) * math.ceil(self.size / 4) ** 2 * 24

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name -> shape of everything that one member carries, in the common order."""
        widths = [int(stage * self.width) for stage in STAGES]
        found: dict[str, tuple[int, ...]] = {}

        def convolution(conv: str, norm: str, fan_in: int, out: int, side: int) -> None:
            found[f"{conv}.weight"] = (out, fan_in, side, side)
            found.update({f"{norm}.{part}": (out,) for part in ("weight", "bias", "running_mean", "running_var")})

        convolution("conv1", "bn1", self.channels, widths[0], 7)
        before = widths[0]
        for stage, out in enumerate(widths, 1):
            for block in (0, 1):
                at = f"layer{stage}.{block}"
                convolution(f"{at}.conv1", f"{at}.bn1", before, out, 3)
                convolution(f"{at}.conv2", f"{at}.bn2", out, out, 3)
                if stage > 1 and block == 0:
                    convolution(f"{at}.downsample.0", f"{at}.downsample.1", before, out, 1)
                before = out
        places = math.ceil(self.size / 32) ** 2 if self.head == "flatten" else 1
        return {**found, "fc.weight": (self.classes, before * places), "fc.bias": (self.classes,)}

    def init(self, generator: Generator) -> Params:
        """What one member starts with, without the member axis: float32, drawn on the CPU.

        ``ValueError`` for a file of weights that does not hold this network.
        """
        params: Params = {}
        for name, shape in self.shapes().items():
            value = params[name] = torch.zeros(shape)
            if name.startswith("fc"):
                value.uniform_(-1, 1, generator=generator).mul_(self.shapes()["fc.weight"][1] ** -0.5)
            elif len(shape) == 4:
                value.normal_(0, (2 / (shape[0] * shape[2] * shape[3])) ** 0.5, generator=generator)
            elif not name.endswith(("bias", "running_mean")):
                value.fill_(1)
        return params | self._stored(params) if self.weights else params

    def _stored(self, like: Params) -> Params:
        """All of the file's weights but the readout."""
        try:
            found = torch.load(self.weights, map_location="cpu", weights_only=True)
        except Exception as error:
            raise ValueError(f"weights = {self.weights!r}: no file of tensors ({type(error).__name__})") from None
        wanted = {name: value for name, value in like.items() if not name.startswith("fc")}
        for name, value in wanted.items():
            there = tuple(getattr(found.get(name), "shape", ())) if isinstance(found, dict) else ()
            if there != tuple(value.shape):
                held = f"is {there}" if there else "is missing"
                raise ValueError(f"weights = {self.weights!r}: {name} {held} there and {tuple(value.shape)} here")
        return {name: found[name].float() for name in wanted}

    def __call__(self, params: Params, inputs: Tensor, training: bool = False) -> Tensor:
        """Outputs (M, B, classes) for images (M, B, channels, size, size).

        In ``training`` what normalises is the batch, and the running means and variances in ``params`` follow it, in
        place; otherwise it is those.
        """

        def fold(x: Tensor, conv: str, norm: str, stride: int = 1) -> Tensor:
            """(B, M in, height, width) -> (B, M out, height / stride, width / stride): convolved and normalised."""
            W = params[f"{conv}.weight"]  # (M, out, in, side, side)
            side = W.shape[-1]
            weight = W.flatten(0, 1).contiguous(memory_format=torch.channels_last)
            x = torch.nn.functional.conv2d(x, weight, stride=stride, padding=side // 2, groups=len(W))
            gain, shift = (params[f"{norm}.{part}"].reshape(-1) for part in ("weight", "bias"))
            mean, var = (params[f"{norm}.{part}"].view(-1) for part in ("running_mean", "running_var"))
            return torch.nn.functional.batch_norm(x, mean, var, gain, shift, training, MOMENTUM, EPSILON)

        M, B = inputs.shape[:2]
        x = inputs.transpose(0, 1).reshape(B, -1, *inputs.shape[3:])  # (B, M channels, height, width)
        x = fold(x.contiguous(memory_format=torch.channels_last), "conv1", "bn1", 2).relu_()
        x = torch.nn.functional.max_pool2d(x, 3, 2, 1)
        for stage in range(1, 5):
            for block in (0, 1):
                at, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
                y = fold(x, f"{at}.conv1", f"{at}.bn1", stride).relu_()
                y = fold(y, f"{at}.conv2", f"{at}.bn2")
                if stride == 2:
                    x = fold(x, f"{at}.downsample.0", f"{at}.downsample.1", 2)
                x = (x + y).relu_()
        x = x.reshape(B, M, -1, x.shape[2] * x.shape[3]).transpose(0, 1)  # (M, B, features, places)
        x = x.mean(-1) if self.head == "pool" else x.flatten(2)
        return torch.baddbmm(params["fc.bias"][:, None], x, params["fc.weight"].mT)
