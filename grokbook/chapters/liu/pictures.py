"""Tasks made of images: handwritten digits that come with the package, or MNIST from a folder that the user names."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from grokbook.checks import one_of
from grokbook.train.records import ROOT

Images = tuple[NDArray[Any], NDArray[Any]]  # pixels and digits

HOME = ROOT / "_mnist"  # where MNIST is looked for unless a folder is named
# name -> (images, labels) in the four standard files, and how many there are
MNIST = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", 60_000),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", 10_000),
}
# images to train on, and to test on
SOURCES = {"digits": (797, 1_000), "mnist": tuple(count for *_, count in MNIST.values())}


@dataclass(frozen=True)
class ImageTask:
    """Learn to name the digit on an image, from a few of them: Liu et al. (2022), section 4.3.

    The training set is the first ``train_size`` images, the same for every seed; a seed decides the weights and the
    order of batches. ``"digits"`` has 8 x 8 pixels and 1,000 test images, ``"mnist"`` has 28 x 28 and 10,000.

    Args:
        train_size: how many images are trained on.
        source: ``"digits"`` or ``"mnist"``.
        folder: where the four files of MNIST lie, gzipped or not, if not in ``_mnist/``; no part of the recipe.
            ``table`` reads it, and raises a ValueError if it does not hold them.

    Raises:
        ValueError: a size out of range, or an unknown source.
    """

    train_size: int
    source: str = "digits"
    folder: str = field(default="", metadata={"recipe": False}, compare=False)
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        one_of("source", self.source, SOURCES)
        most = SOURCES[self.source][0]
        if not 0 < self.train_size <= most:
            raise ValueError(f"train_size = {self.train_size}: between 1 and the {most} training images is needed")

    @property
    def pixels(self) -> int:
        """Of one image."""
        return 64 if self.source == "digits" else 784

    def table(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Pixels from 0 to 1, training images first, (rows, pixels), and digits, (rows,)."""
        (x, y), (x_test, y_test) = digits() if self.source == "digits" else mnist(self.folder)
        pixels = np.concatenate([x[: self.train_size], x_test]).reshape(-1, self.pixels)
        largest = 16 if self.source == "digits" else 255
        return (pixels / largest).astype(np.float32), np.concatenate([y[: self.train_size], y_test]).astype(np.int64)

    def in_train(self, seed: int) -> NDArray[np.bool_]:
        """The first ``train_size`` rows, whatever the seed."""
        return np.arange(self.train_size + SOURCES[self.source][1]) < self.train_size


@lru_cache(maxsize=1)
def digits() -> tuple[Images, Images]:
    """Training and test images of the bundled digits, pixels from 0 to 16, mixed once and for all."""
    with gzip.open(Path(__file__).with_name("digits.csv.gz")) as file:
        rows = np.loadtxt(file, delimiter=",")
    rows = rows[np.random.RandomState(0).permutation(len(rows))]
    train, test = rows[:-1000], rows[-1000:]
    return (train[:, :-1], train[:, -1]), (test[:, :-1], test[:, -1])


def mnist(folder: str) -> tuple[Images, Images]:
    """Training and test images of MNIST, pixels from 0 to 255; ``ValueError`` names a wrong folder or file."""
    place = Path(folder) if folder else HOME
    if not place.is_dir():
        named = f"mnist_dir = {folder!r}" if folder else f"{HOME.name} in this checkout, or mnist_dir"
        raise ValueError(f"{named}: no such folder; one with the four IDX files of MNIST is needed")
    return _read(place)


@lru_cache(maxsize=1)
def _read(place: Path) -> tuple[Images, Images]:
    train, test = ((_idx(place, x, (n, 28, 28)), _idx(place, y, (n,))) for x, y, n in MNIST.values())
    return train, test


def _idx(folder: Path, name: str, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """One IDX file of bytes: a magic number that ends in the number of axes, the axes, the bytes."""
    path = folder / name
    path = path if path.exists() else path.with_name(name + ".gz")
    if not path.exists():
        raise ValueError(f"mnist_dir = {str(folder)!r}: {name} is missing (with or without .gz)")
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"mnist_dir = {str(folder)!r}: {path.name} cannot be read ({error})") from None
    header = np.array([0x800 + len(shape), *shape], ">u4").tobytes()
    body = np.frombuffer(content.removeprefix(header), np.uint8)
    if not content.startswith(header) or len(body) != np.prod(shape):
        raise ValueError(f"mnist_dir = {str(folder)!r}: {path.name} has another header or length than MNIST's")
    return body.reshape(shape)
