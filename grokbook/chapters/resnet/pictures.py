"""Pictures of the four-shape sum: 2 x 2 cells, in each a blank or a regular polygon with spokes.

A picture is never stored: it is composed from 4 n patches (what each of n symbols looks like in each cell) when a
batch needs it. Two steps make a patch, as in the released code (Gu et al. (2025), section 6.3 and figure 6): a drawing
of 224 x 224 pixels in black and white, then a resize by 8/7 and a crop of 14 pixels at each outer side. At other sizes
both are one resampling with an antialiased triangle filter. Left out: the lossy JPEG between the two steps, and the
one to three pixels by which the released drawing's larger polygons leak into the next cell (here a glyph is clipped).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from grokbook.checks import one_of
from grokbook.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

Drawing = Literal["as_released", "intended"]

DICTIONARY = (0, *range(3, 13))  # blank, then the number of sides
SOURCE, CROP = 224, 14  # pixels of the released drawing, and how many of them are cut at each side
CELL = SOURCE // 2
RADIUS, SLIPPED = 46, -56
FAINTEST = 0.05  # two symbols must differ somewhere by this share of white

# ImageNet's mean and deviation, which the released code subtracts and divides by; grey is their mean.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def check(symbols: Sequence[int]) -> None:
    """Refuse symbols that make no dictionary.

    Raises:
        ValueError: a symbol that is not 0 or 3 to 12, one that is there twice, or fewer than two.
    """
    for symbol in symbols:
        if symbol not in DICTIONARY:
            raise ValueError(f"symbol {symbol}: the dictionary holds 0 (blank) and 3 to 12 sides")
    if len(set(symbols)) != len(symbols) or len(symbols) < 2:
        raise ValueError(f"symbols = {symbols}: at least 2 different ones are needed")


def radius_of(cell: int, drawing: Drawing) -> int:
    """Pixels from the centre of a glyph to its vertices in the drawing of 224 pixels.

    The released generator limits 46 by the distance to the cell's border, but takes that distance from the picture's
    corner: in all cells but the top left it comes out as -56, a larger glyph turned by 180 degrees.
    """
    return RADIUS if drawing == "intended" or cell == 0 else SLIPPED


def glyph(sides: int, radius: int = RADIUS) -> NDArray[np.bool_]:
    """Which pixels of a cell of 112 x 112 are dark: the outline and the spokes of a polygon, one pixel wide.

    Args:
        sides: 0 for a blank, 3 to 12 for a polygon, whose first vertex points to the right.
        radius: of the vertices, in pixels; a negative one turns the polygon by 180 degrees.

    Raises:
        ValueError: a symbol outside the dictionary.
    """
    check((0, sides or 3))
    dark = np.zeros((CELL, CELL), bool)
    centre = np.full(2, CELL / 2)
    angles = 2 * math.pi * np.arange(sides) / max(sides, 1)
    vertices = centre + radius * np.stack([np.cos(angles), np.sin(angles)], -1)  # (sides, 2), x and y, y downwards
    for vertex, following in zip(vertices, np.roll(vertices, -1, 0), strict=True):
        for start, end in ((vertex, following), (centre, vertex)):
            points = np.linspace(start, end, math.ceil(np.abs(end - start).max()) + 1)
            x, y = np.rint(points).astype(int).T
            inside = (x >= 0) & (x < CELL) & (y >= 0) & (y < CELL)
            dark[y[inside], x[inside]] = True
    return dark


def _resampling(size: int) -> NDArray[np.float64]:
    """(2, size // 2, 112): how the pixels of a cell's left (upper) or right (lower) side make those of a patch."""
    scale = (SOURCE - 2 * CROP) / size  # source pixels a pixel
    centre = CROP + (np.arange(size) + 0.5) * scale
    # Source pixels beyond the cell belong to the next one: a patch takes nothing from them.
    source = np.arange(SOURCE).reshape(2, 1, CELL) + 0.5
    weights = np.clip(1 - np.abs(source - centre.reshape(2, -1, 1)) / max(scale, 1), 0, None)
    return weights / weights.sum(-1, keepdims=True)


@lru_cache(maxsize=16)
def patches(symbols: tuple[int, ...] = DICTIONARY, size: int = 224, drawing: Drawing = "as_released") -> NDArray:
    """What each symbol looks like in each cell of a picture of ``size`` pixels.

    Returns:
        (4, n, size // 2, size // 2) in single precision, 0 black and 1 white; cells row by row.

    Raises:
        ValueError: a symbol outside the dictionary or twice, an unknown drawing, an odd size, or one at which two
            symbols look the same.
    """
    one_of("drawing", drawing, get_args(Drawing))
    check(symbols)
    if size < 2 or size % 2:
        raise ValueError(f"size = {size}: an even number of pixels is needed")
    filters = _resampling(size)
    found = np.empty((4, len(symbols), size // 2, size // 2), np.float32)
    for cell in range(4):
        row, column = divmod(cell, 2)
        light = 1.0 - np.stack([glyph(sides, radius_of(cell, drawing)) for sides in symbols])
        found[cell] = filters[row] @ light @ filters[column].T
    gap, pair = closest(found)
    if gap < FAINTEST:
        alike = " and ".join(str(symbols[k]) for k in pair)
        raise ValueError(f"size = {size}: too few pixels, the symbols {alike} differ by {gap:.3f} of white at most")
    found.flags.writeable = False
    return found


def closest(cells: NDArray) -> tuple[float, tuple[int, int]]:
    """The two symbols of patches (4, n, h, h) that look most alike: their largest difference in any pixel, and who."""
    flat = cells.reshape(*cells.shape[:2], -1)
    gaps = {
        (i, j): float(np.abs(flat[:, i] - flat[:, j]).max(-1).min()) for i in range(flat.shape[1]) for j in range(i)
    }
    pair = min(gaps, key=gaps.__getitem__)
    return gaps[pair], (pair[1], pair[0])


def picture(places: NDArray, cells: NDArray) -> NDArray:
    """Pictures (..., 2 h, 2 h) of symbols ``places`` (..., 4), indices into patches ``cells`` (4, n, h, h)."""
    four = cells[np.arange(4), places]  # (..., 4, h, h)
    top, bottom = (np.concatenate([four[..., k, :, :], four[..., k + 1, :, :]], -1) for k in (0, 2))
    return np.concatenate([top, bottom], -2)


def network_patches(symbols: tuple[int, ...], size: int, drawing: Drawing, channels: int) -> NDArray:
    """Patches as a network is given them, (4, n, channels, h, h): ImageNet's mean subtracted, its deviation divided."""
    mean, deviation = (np.array(one if channels == 3 else [np.mean(one)]) for one in (MEAN, DEVIATION))
    cells = patches(symbols, size, drawing)[:, :, None]
    return ((cells - mean[:, None, None]) / deviation[:, None, None]).astype(np.float32)


def compose(cells: Tensor, places: Tensor) -> Tensor:
    """Pictures (M, B, channels, 2 h, 2 h) of ``places`` (M, B, 4) from ``cells`` (4, n, channels, h, h)."""
    _, n, channels, h, _ = cells.shape
    rows = torch.nn.functional.embedding(places + n * torch.arange(4, device=places.device), cells.reshape(4 * n, -1))
    cut = rows.view(*places.shape[:2], 2, 2, channels, h, h)
    return cut.permute(0, 1, 4, 2, 5, 3, 6).reshape(*places.shape[:2], channels, 2 * h, 2 * h)
