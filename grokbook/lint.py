"""What a reader of a figure would trip over: tiny, cut or overlapping letters, axes without names, hidden data."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

PHONE = 358  # pixels that a phone gives to the text's column
LEAST = 9.0  # pixels of the smallest letters there


def problems(canvas: FigureCanvasAgg) -> list[str]:
    """Of a figure as it was drawn, each as a line; empty for one that can be read."""
    figure, renderer = canvas.figure, canvas.get_renderer()
    found, slack = [], figure.dpi / 50  # pixels
    scale = PHONE / (figure.get_figwidth() * 72)
    shown = [one for one in figure.findobj(Text) if one.get_visible() and one.get_text().strip() and one.figure]
    boxes = [(one, one.get_window_extent(renderer)) for one in shown]
    idle = _not_drawn(figure)  # this places ticks anew: only once all is measured
    boxes = [(one, box) for one, box in boxes if box.width > 1 and box.height > 1 and one not in idle]
    frame = figure.bbox.padded(slack)
    for one, box in boxes:
        if not (frame.contains(box.x0, box.y0) and frame.contains(box.x1, box.y1)):
            found.append(f'"{one.get_text()}" is cut off at the edge')
        size = float(one.get_fontsize()) * scale
        if size < LEAST - 0.01:
            found.append(f'"{one.get_text()}" is {size:.1f} px high on a phone')
    for (one, box), (other, second) in combinations(boxes, 2):
        across = min(box.x1, second.x1) - max(box.x0, second.x0)
        if across > slack and min(box.y1, second.y1) - max(box.y0, second.y0) > slack:
            found.append(f'"{one.get_text()}" and "{other.get_text()}" overlap')
    for ax in figure.axes:
        if not ax.axison or hasattr(ax, "_colorbar"):
            continue
        if not (ax.lines or ax.collections or ax.images or ax.patches or ax.texts):
            found.append("a panel is empty")
        for name in ("x", "y"):
            ticked = getattr(ax, f"get_{name}ticks")().size and getattr(ax, f"get_{name}ticklabels")()
            if ticked and not axis_name(figure, ax, name):
                found.append(f'the {name} axis of "{ax.get_title(loc="left") or "a panel"}" has no name')
        if legend := ax.get_legend():
            found += _hidden(ax, legend.get_window_extent(renderer))
    return list(dict.fromkeys(found))


def axis_name(figure: Figure, ax: Axes, name: str) -> str:
    """What the "x" or "y" axis of a panel is called: by the panel, by one that it is in line with, or by the figure."""
    shared = getattr(ax, f"get_shared_{name}_axes")().get_siblings(ax)
    alike = [ax, *shared, *(one for one in figure.axes if _in_line(ax, one, name))]
    whole = getattr(figure, f"get_sup{name}label")()
    return next(filter(None, (getattr(one, f"get_{name}label")() for one in alike)), whole)


def _in_line(ax: Axes, other: Axes, name: str) -> bool:
    """Whether two panels stand in one column (for x) or row (for y), so that one name serves both."""
    here, there = ax.get_position(), other.get_position()
    along = ("x0", "x1") if name == "x" else ("y0", "y1")
    return all(abs(getattr(here, one) - getattr(there, one)) < 0.01 for one in along)


def _not_drawn(figure: Figure) -> set[Any]:
    """Texts that have an extent but are not drawn: labels of idle ticks, and all but notes where an axis is off."""
    found: set[Any] = set()
    for ax in figure.axes:
        if not ax.axison:
            found |= {*ax.findobj(Text)} - {*ax.texts}
            continue
        for axis in (ax.xaxis, ax.yaxis):
            idle = {*axis.majorTicks, *axis.minorTicks} - {*axis._update_ticks()}  # type: ignore[union-attr]
            found |= {label for tick in idle for label in (tick.label1, tick.label2)}
    return found


def _hidden(ax: Axes, box: Any) -> list[str]:
    """Whether a legend covers more than a twentieth of the points of a line."""
    for line in ax.lines:
        points = line.get_transform().transform(np.column_stack([line.get_xdata(), line.get_ydata()]))
        points = points[np.isfinite(points).all(1)]
        if len(points) > 2 and box.shrunk(0.98, 0.98).count_contains(points) > 0.05 * len(points):
            return ["a legend lies over data"]
    return []
