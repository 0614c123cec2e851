"""The pictures of the four-shape sum: what a glyph is, what a cell shows, and what composing makes of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from grokbook.chapters.resnet import pictures


def plainly(places: np.ndarray, size: int, drawing: str) -> np.ndarray:
    """A picture drawn whole, as a loop over cells and pixels of the resized drawing: slow and independent."""
    source = np.ones((224, 224))
    for cell, place in enumerate(places):
        row, column = divmod(cell, 2)
        dark = pictures.glyph(pictures.DICTIONARY[place], pictures.radius_of(cell, drawing))
        source[112 * row : 112 * row + 112, 112 * column : 112 * column + 112][dark] = 0
    scale = 196 / size

    def weights(k: int) -> np.ndarray:
        begin = 0 if k < size // 2 else 112
        found = np.zeros(224)
        for x in range(begin, begin + 112):
            found[x] = max(0, 1 - abs(x + 0.5 - (14 + (k + 0.5) * scale)) / max(scale, 1))
        return found / found.sum()

    return np.array([[weights(i) @ source @ weights(j) for j in range(size)] for i in range(size)])


@pytest.mark.parametrize("drawing", ["as_released", "intended"])
@pytest.mark.parametrize("size", [20, 32])
def test_composed_pictures_equal_pictures_drawn_whole(drawing: str, size: int) -> None:
    cells = pictures.patches(size=size, drawing=drawing)
    for places in ([1, 2, 3, 10], [0, 0, 9, 9]):
        whole = plainly(np.array(places), size, drawing)
        np.testing.assert_allclose(pictures.picture(np.array(places), cells), whole, atol=1e-6)


def test_composing_on_the_device_equals_composing_by_hand() -> None:
    symbols = (0, 3, 5, 8, 12)
    places = np.random.default_rng(0).integers(5, size=(2, 7, 4))
    composed = pictures.compose(
        torch.from_numpy(pictures.network_patches(symbols, 24, "as_released", 3)), torch.from_numpy(places)
    ).numpy()
    assert composed.shape == (2, 7, 3, 24, 24)
    grey = pictures.picture(places, pictures.patches(symbols, 24))
    for channel, (mean, deviation) in enumerate(zip(pictures.MEAN, pictures.DEVIATION, strict=True)):
        np.testing.assert_allclose(composed[:, :, channel], (grey - mean) / deviation, atol=1e-5)


def test_a_glyph_has_as_many_spokes_as_sides() -> None:
    angles = np.linspace(0, 2 * math.pi, 720, endpoint=False)
    for sides in pictures.DICTIONARY[1:]:
        dark = pictures.glyph(sides)
        ring = np.rint(56 + 20 * np.stack([np.sin(angles), np.cos(angles)])).astype(int)
        hit = dark[tuple(ring)]
        assert (hit & ~np.roll(hit, 1)).sum() == sides
    assert not pictures.glyph(0).any()


def test_glyphs_have_about_the_published_number_of_dark_pixels() -> None:
    # How a line is made of pixels differs between drawing libraries.
    for sides, small, large in ((3, 339, 414), (12, 737, 898)):
        assert pictures.glyph(sides, pictures.RADIUS).sum() == pytest.approx(small, rel=0.01)
        assert pictures.glyph(sides, pictures.SLIPPED).sum() == pytest.approx(large, rel=0.01)


def test_the_released_drawing_slips_in_three_cells() -> None:
    assert [pictures.radius_of(cell, "as_released") for cell in range(4)] == [46, -56, -56, -56]
    assert [pictures.radius_of(cell, "intended") for cell in range(4)] == [46] * 4


def test_a_negative_radius_turns_by_half_a_circle() -> None:
    triangle, turned = pictures.glyph(3, 46), pictures.glyph(3, -46)
    rows, columns = np.nonzero(triangle)
    assert columns.max() == 56 + 46 and np.nonzero(turned)[1].min() == 56 - 46
    assert (turned == np.pad(triangle[::-1, ::-1], ((1, 0), (1, 0)))[:112, :112]).mean() > 0.99
    assert rows.max() - rows.min() == pytest.approx(2 * 46 * math.sin(2 * math.pi / 3), abs=1)


@pytest.mark.parametrize("drawing", ["as_released", "intended"])
def test_glyphs_stay_distinct_after_resizing(drawing: str) -> None:
    gap, _ = pictures.closest(pictures.patches(size=32, drawing=drawing))
    assert gap > 0.1


@pytest.mark.parametrize(
    "arguments, told",
    [
        ({"symbols": (0, 2)}, "symbol 2: the dictionary holds 0"),
        ({"symbols": (0, 13)}, "symbol 13"),
        ({"symbols": (3, 3)}, "different"),
        ({"size": 33}, "size = 33: an even number"),
        ({"size": 16}, "size = 16: too few pixels, the symbols .* differ by 0.0"),
        ({"drawing": "by_hand"}, "one of 'as_released', 'intended', got 'by_hand'"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(arguments: dict, told: str) -> None:
    with pytest.raises(ValueError, match=told) as refusal:
        pictures.patches(**arguments)
    assert "\n" not in str(refusal.value)


def test_few_symbols_need_fewer_pixels() -> None:
    assert pictures.patches((0, 3, 12), 12).shape == (4, 3, 6, 6)
