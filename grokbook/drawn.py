"""The numbers of a figure as they are drawn: a table with a row for every point of a line, bar and cell of a map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, PolyCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch
from numpy.typing import NDArray

from grokbook import lint

MOST = 40_000  # rows of a table; what is larger is read from its records

Points = tuple[str, Any, NDArray[Any]]  # kind, artist, and (n, 3) x, y, value


def table(figures: Mapping[str, Figure]) -> bytes | None:
    """What figures draw, as CSV: panel, names of its axes, series, kind, number within the panel, x, y, value.

    A figure's key is the word for its frame, or "" if it stands alone. None for no numbers, or more than ``MOST`` rows.
    """
    found = [rows.assign(frame=frame or None) for frame, figure in figures.items() for rows in _series(figure)]
    if not 0 < sum(map(len, found)) <= MOST:
        return None
    filled = pd.concat(found).dropna(axis="columns", how="all")
    return filled.to_csv(index=False, float_format="%.5g", lineterminator="\n").encode()


def _series(figure: Figure) -> Iterator[pd.DataFrame]:
    """What each series of a figure draws; without points that have no place, and without what only guides the eye."""
    axes: list[Any] = [one for ax in figure.axes for one in (ax, *ax.child_axes) if not hasattr(ax, "_colorbar")]
    # Seeds are drawn without a name, in the colour of their median: named here, or in a panel of the same quantity.
    own = [_names(ax) for ax in axes]
    quantity = [lint.axis_name(figure, ax, "y") for ax in axes]
    for number, ax in enumerate(axes, 1):
        alike = [own[k] for k, one in enumerate(quantity) if one == quantity[number - 1]]
        about = {
            "panel": ax.get_title(loc="left") or ax.get_title() or str(number),
            "x axis": lint.axis_name(figure, ax, "x"),
            "y axis": quantity[number - 1],
        }
        for place, (kind, one, points) in enumerate(_points(ax), 1):
            label = str(one.get_label())
            series = _named(_color(one), own[number - 1], *alike) if not label or label.startswith("_") else label
            inside = points[np.isfinite(points[:, :2]).all(1)]
            if len(inside):
                columns = dict(zip(("x", "y", "value"), inside.T, strict=True))
                yield pd.DataFrame({**about, "series": series, "kind": kind, "number": place, **columns})


def _names(ax: Axes) -> dict[str, set[str]]:
    """Colour -> the series of a panel that are named in it."""
    found: dict[str, set[str]] = {}
    for one, label in zip(*ax.get_legend_handles_labels(), strict=True):
        found.setdefault(_color(one), set()).add(label)
    return found


def _named(color: str, *places: Mapping[str, set[str]]) -> str:
    """The one series of this colour, in the first place that has any; nothing where it could be another's."""
    found = next((one[color] for one in places if color and color in one), set[str]())
    return next(iter(found)) if len(found) == 1 else ""


def _points(ax: Axes) -> Iterator[Points]:
    if ax.name == "3d":
        return
    for line in ax.lines:
        if line.get_transform() == ax.transData:
            yield "line", line, _with(line.get_xdata(orig=False), line.get_ydata(orig=False))
    for bars in ax.containers:
        if orientation := getattr(bars, "orientation", None):
            boxes = [(bar.get_x(), bar.get_y(), bar.get_width(), bar.get_height()) for bar in bars]
            x, y, width, height = np.array(boxes, float).T.reshape(4, -1)
            up = orientation == "vertical"
            yield "bar", bars, _with(x + width / (2 if up else 1), y + height / (1 if up else 2))
    for step in (one for one in ax.patches if isinstance(one, StepPatch)):
        values, edges, _ = step.get_data()
        yield "step", step, _with((edges[1:] + edges[:-1]) / 2, values)
    for some in ax.collections:
        yield from _collection(some)
    for image in ax.images:
        cells: Any = image.get_array()
        if cells.ndim == 2:
            left, right, bottom, top = image.get_extent()
            first, last = (bottom, top) if image.origin == "lower" else (top, bottom)
            m, n = cells.shape
            columns = left + (np.arange(n) + 0.5) * (right - left) / n
            rows = first + (np.arange(m) + 0.5) * (last - first) / m
            yield "map", image, _with(columns, rows[:, None], cells)


def _collection(some: Any) -> Iterator[Points]:
    if isinstance(some, PathCollection):
        at: Any = some.get_offsets()
        yield "points", some, _with(at[:, 0], at[:, 1], np.nan if some.get_array() is None else some.get_array())
    elif isinstance(some, QuadMesh):
        corners = np.asarray(some.get_coordinates())
        middle = (corners[1:, 1:] + corners[:-1, :-1]) / 2
        values: Any = some.get_array()
        yield "map", some, _with(middle[..., 0], middle[..., 1], values.reshape(middle.shape[:2]))
    elif isinstance(some, PolyCollection | LineCollection):
        kind = "band" if isinstance(some, PolyCollection) else "segment"
        for path in some.get_paths():
            corner: Any = path.vertices
            yield kind, some, _with(corner[:, 0], corner[:, 1])


def _with(x: Any, y: Any, value: Any = np.nan) -> NDArray[Any]:
    filled: Any = (np.ma.filled(np.ma.asarray(one, float), np.nan) for one in (x, y, value))
    return np.stack(np.broadcast_arrays(*filled), -1).reshape(-1, 3)


def _color(one: Any) -> str:
    """The colour by which a reader knows what belongs together; nothing where there are many."""
    if hasattr(one, "patches"):
        one = one.patches[0] if one.patches else None
    color = getattr(one, "get_color", None) or getattr(one, "get_facecolor", None)
    found = np.empty(0) if color is None else color()
    if isinstance(found, str | tuple):
        return to_hex(found)
    return to_hex(found[0]) if len(found) == 1 else ""
