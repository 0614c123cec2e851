"""The house style: one palette, a few panels that every chapter uses, and files that are the same bytes each time.

Figures are made without pyplot: nothing is left open, no backend is needed. What fills an ``Axes`` returns it.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import seaborn
import xarray as xr
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from grokbook import session
from grokbook.curves import median, t_test, t_train
from grokbook.train.records import ROOT, write_whole

WIDTH = 5.6  # inches; a phone shows this at two thirds of its size, so letters must not be small

COLORS: tuple[str, ...] = tuple(to_hex(color) for color in seaborn.color_palette("colorblind"))
BLUE, ORANGE, GREEN, RED, PURPLE, BROWN, PINK, GREY, YELLOW, SKY = COLORS
SMALL = 10.2  # points: the smallest letters, nine pixels on a phone
INK = "#26262b"
FAINT = "#8d8d96"
TRAIN, TEST = BLUE, ORANGE

SEQUENTIAL = "viridis"  # values that start at zero
DIVERGING = "RdBu_r"  # values with a sign
CYCLIC = seaborn.color_palette("husl", as_cmap=True)  # residues; no colour of it is near white

RC: Any = {
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",  # comes with matplotlib, so letters are the same on every machine
    "font.size": 10.5,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titley": 1.0,  # where it would be put after a long search
    "axes.labelsize": 10.5,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#55555e",
    "xtick.color": "#55555e",
    "ytick.color": "#55555e",
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e7e7ec",
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "axes.prop_cycle": cycler(color=COLORS),
    "image.interpolation": "none",  # the cells as they are; an SVG then holds one pixel for each
}

# A machine may have another edition of this font, whose letters have other numbers: the SVG files would tell. And its
# list of fonts may be of a time when matplotlib was not whole.
fontManager.ttflist = [face for face in fontManager.ttflist if face.name != RC["font.family"]]
for _file in sorted(Path(matplotlib.get_data_path(), "fonts", "ttf").glob("DejaVuSans*.ttf")):
    fontManager.addfont(_file)


def use() -> None:
    """The house style for a whole notebook, with pictures sharp enough for a good screen."""
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("retina")
    matplotlib.rcParams.update(RC)


def panels(
    rows: int = 1, columns: int = 1, *, height: float = 2.5, width: float = WIDTH, **options: Any
) -> tuple[Figure, NDArray[Any]]:
    """A figure and its axes, (rows, columns): a row's height and the width in inches, options of Figure.subplots."""
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(width, rows * height), layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=False, **options)


def merged(row: Sequence[Axes]) -> Axes:
    """One wide panel in place of a row of panels."""
    figure, place = row[0].figure, row[0].get_subplotspec()
    assert isinstance(figure, Figure) and place is not None
    for ax in row:
        ax.remove()
    return figure.add_subplot(place.get_gridspec()[place.rowspan.start, :])


# ------------------------------------------------------------------------------------------------------------- panels


def curves(
    ax: Axes,
    x: ArrayLike,
    values: ArrayLike,
    *,
    color: str,
    label: str | None = None,
    dashed: bool = False,
    thin: bool = True,
    width: float = 1.8,
) -> Axes:
    """Every seed as a line if ``thin``, their median as a thick one, and the range from lowest to highest as a band.

    Values (seed, n) against x (n,); nan where a seed has no value. Columns without any value are left out.
    """
    steps, seeds = np.asarray(x, float), np.atleast_2d(np.asarray(values, float))
    some = np.isfinite(seeds).any(0)
    steps, seeds = steps[some], seeds[:, some]
    style = "--" if dashed else "-"
    if len(seeds) > 1:
        ax.fill_between(steps, np.nanmin(seeds, 0), np.nanmax(seeds, 0), color=color, alpha=0.15, lw=0, zorder=1)
        for row in seeds if thin else ():
            known = np.isfinite(row)
            ax.plot(steps[known], row[known], style, color=color, lw=0.6, alpha=0.45, zorder=2)
    ax.plot(steps, np.nanmedian(seeds, 0), style, color=color, lw=width, label=label, zorder=3)
    return ax


def dots(
    ax: Axes,
    x: ArrayLike,
    values: ArrayLike,
    *,
    color: str,
    label: str | None = None,
    marker: str = "o",
    style: str = "-",
) -> Axes:
    """A sweep over x (n,): values (seed, n), nan where none, as small marks; their median as a line through larger."""
    x, values = np.asarray(x, float), np.atleast_2d(np.asarray(values, float))
    if len(values) > 1:
        ax.plot(x, values.T, marker, color=color, ms=2.6, alpha=0.5, mew=0, ls="none", zorder=2)
    some = np.isfinite(values).any(0)
    median = np.nanmedian(values[:, some], 0)
    ax.plot(x[some], median, marker=marker, color=color, ms=4.5, mew=0, ls=style, lw=1.5, label=label, zorder=3)
    return ax


def heatmap(
    ax: Axes,
    values: ArrayLike,
    *,
    title: str = "",
    cmap: str | None = None,
    centre: bool = False,
    limit: tuple[float, float] | None = None,
    labels: tuple[str, str] = ("m", "n"),
) -> Any:
    """A map of (rows, columns) values, rows upwards from the bottom; returns the image, for a colour bar.

    With ``centre`` the colours diverge from zero. Without a ``limit``, (lowest, highest), they span the values, but for
    the most extreme 0.1 % at each end.
    """
    values = np.asarray(values, float)
    if limit is None:
        low, high = np.nanquantile(values, [0.001, 0.999])
        largest = max(abs(low), abs(high))
        limit = (-largest, largest) if centre else (low, high)
    colors = cmap or (DIVERGING if centre else SEQUENTIAL)
    image = ax.imshow(values, origin="lower", cmap=colors, vmin=limit[0], vmax=limit[1])
    ax.grid(False)
    ax.spines[:].set_visible(False)
    rows, columns = values.shape
    ax.set(title=title, xlabel=labels[0], ylabel=labels[1], xticks=[0, columns - 1], yticks=[0, rows - 1])
    ax.tick_params(length=2)
    return image


def fourier_map(ax: Axes, values: ArrayLike, title: str = "") -> Any:
    """The modulus of a (p, p) map's Fourier transform without its mean: frequencies a of rows and b of columns."""
    table = np.asarray(values, float)
    p, half = len(table), len(table) // 2
    image = np.fft.fftshift(np.abs(np.fft.fft2(table - table.mean())))
    highest = float(np.quantile(image, 0.9999))
    drawn = heatmap(ax, image, cmap="magma", limit=(0, highest), labels=("b", "a"), title=title)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks([0, half, p - 1], [f"−{half}", "0", f"{p - 1 - half}"])
    return drawn


def histogram(ax: Axes, values: ArrayLike, bins: ArrayLike, *, color: str, **style: Any) -> Axes:
    """A density as steps; what lies beyond the outermost bins is counted in them."""
    flat, edges = np.asarray(values, float).ravel(), np.asarray(bins, float)
    flat = flat[np.isfinite(flat)]
    counts, _ = np.histogram(np.clip(flat, edges[0], edges[-1]), edges)
    ax.stairs(counts / len(flat) / np.diff(edges), edges, color=color, **{"lw": 1.6, **style})
    return ax


def mark(ax: Axes, at: float, text: str, *, height: float = 0.97, side: str = "right") -> Axes:
    """A dotted vertical line with a word beside it; none where the axis has no such place."""
    if not np.isfinite(at) or (ax.get_xscale() == "log" and at <= 0):
        return ax
    ax.axvline(at, color=FAINT, ls=":", lw=1.2, zorder=1.5)
    place: Any = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "va": "top"}
    place |= {"xytext": (3, 0), "ha": "left"} if side == "right" else {"xytext": (-3, 0), "ha": "right"}
    ax.annotate(text, (at, height), fontsize=SMALL, color=INK, **place)
    return ax


def level(ax: Axes, at: float, text: str = "", *, color: str = INK, x: float = 0.99, above: bool = True) -> Axes:
    """A dashed horizontal line, as for a prediction, with its name on it."""
    ax.axhline(at, color=color, ls="--", lw=1.1, zorder=1.5)
    place: Any = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    place |= {"xytext": (0, 2), "va": "bottom"} if above else {"xytext": (0, -4), "va": "top"}
    if text:
        ax.annotate(text, (x, at), ha="right" if x > 0.5 else "left", fontsize=SMALL, color=INK, **place)
    return ax


def fraction_axis(ax: Axes, label: str = "accuracy") -> Axes:
    """An axis from 0 to 1, with a little room at both ends."""
    ax.set(ylim=(-0.03, 1.04), ylabel=label)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])
    return ax


def steps_axis(ax: Axes, *, log: bool = False) -> Axes:
    """An axis of optimizer steps."""
    ax.set_xlabel("optimizer steps")
    if log:
        ax.set_xscale("log")
    plain_numbers(ax.xaxis)
    return ax


def accuracies(ax: Axes, record: xr.Dataset) -> Axes:
    """Train and test accuracy of every run against steps."""
    for split, color in (("train", TRAIN), ("test", TEST)):
        curves(ax, record.step, record[f"{split}_accuracy"], color=color, label=split)
    return fraction_axis(ax)


def losses(ax: Axes, record: xr.Dataset, label: str = "mean squared error") -> Axes:
    """Train and test loss of every run against steps, on a logarithmic axis."""
    for split, color in (("train", TRAIN), ("test", TEST)):
        curves(ax, record.step, record[f"{split}_loss"], color=color, label=split)
    ax.set(yscale="log", ylabel=label)
    plain_numbers(ax.yaxis)
    return ax


def onset(ax: Axes, record: xr.Dataset, *, words: bool = True) -> Axes:
    """Dotted lines where the median run fits its training set and where it generalises."""
    for time, word, side in ((t_train(record), "train", "left"), (t_test(record), "test", "right")):
        mark(ax, float(median(time)), word if words else "", side=side, height=0.3)
    return ax


def plain_numbers(axis: Any) -> None:
    """Ticks as 20, 500, 10k rather than powers of ten; call it once all is drawn, since a short axis gets more."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_formatter(NullFormatter())
    low, high = axis.get_view_interval()
    if axis.get_scale() == "log" and low > 0:
        decades = np.log10(high / low)
        few = (1.0, 2.0, 5.0) if decades < 2.2 else (1.0, 3.0) if decades < 3 else (1.0,)
        subs = tuple(map(float, range(1, 10))) if decades < 0.7 else few
        axis.set_major_locator(LogLocator(subs=subs, numticks=12))


def short(value: float) -> str:
    """25000 -> "25k", 2e6 -> "2M", 0.02 -> "0.02", 1e-5 -> a power of ten."""
    if 0 < abs(value) < 1e-3:
        mantissa, exponent = f"{value:.0e}".split("e")
        return rf"${mantissa}\cdot 10^{{{int(exponent)}}}$".replace(r"$1\cdot ", "$")
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1000:g}k" if abs(value) >= 1000 else f"{value:g}"


def legend(ax: Axes, **options: Any) -> Any:
    """The legend, without a frame and where it hides least."""
    return ax.legend(**{"loc": "best", "borderaxespad": 0.3, **options})


def blank(ax: Axes, text: str, **style: Any) -> Axes:
    """A panel that has no record yet."""
    ax.set_axis_off()
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", **{"color": FAINT, **style})
    return ax


# -------------------------------------------------------------------------------------------------------------- saving


def folder(chapter: str) -> Path:
    """Where a chapter's plots go: below the session's ``figures``, else below figures/ of the checkout."""
    return Path(session.current().figures or ROOT / "figures") / chapter


def drawn(figure: Figure, *, dpi: int = 200) -> FigureCanvasAgg:
    """A figure drawn on pixels, once for its PNG and for who looks where things lie; it keeps resolution and layout."""
    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    with matplotlib.rc_context(RC), np.errstate(over="ignore"):  # of corners of a surface in space that are left out
        canvas.draw()
    figure.set_layout_engine("none")  # its SVG is to lie as this does, and finding places takes as long as drawing
    return canvas


def picture(figure: Figure) -> Any:
    """A figure as notebook and page show it, whether or not a kernel knows how to show figures."""
    from IPython.display import Image as Shown

    return Shown(palette(drawn(figure)), retina=True)


def save(figure: Figure, chapter: str, name: str, picture: bytes | None = None) -> None:
    """Write a figure as figures/<chapter>/<name>.png, ``picture`` where that is drawn already, and .svg.

    Raises ``OSError`` where the folder cannot be written to, and leaves no half-written file.
    """
    buffer = io.BytesIO()
    figure.set_dpi(200)  # of what is drawn as pixels inside the SVG
    with matplotlib.rc_context({**RC, "svg.hashsalt": f"{chapter}/{name}"}), np.errstate(over="ignore"):
        # not savefig, which draws everything twice
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, "Creator": None})
    write_whole(folder(chapter) / f"{name}.png", picture or palette(drawn(figure)))
    write_whole(folder(chapter) / f"{name}.svg", lean(buffer.getvalue()))


def lean(svg: bytes) -> bytes:
    """An SVG without indentation, its coordinates to a tenth of a point, or a hundredth below ten, as in markers.

    Points of a path are given from the one before, which takes half the letters; pictures inside have a palette.
    """

    def rounded(number: bytes) -> int:
        value = float(number)
        return round(100 * round(value, 1 if abs(value) >= 10 else 2))

    def relative(path: re.Match[bytes]) -> bytes:
        text, before, here, start = "", "", (0, 0), (0, 0)
        for letter, numbers in re.findall(rb"([MLCQz])([^MLCQz]*)", path[1]):
            given = [rounded(one) for one in numbers.split()]
            moved = [one - here[i % 2] for i, one in enumerate(given)]
            command = letter.decode().lower()
            text += "" if command == "l" and before in ("m", "l") else command
            for one in moved:
                word = re.sub(r"^(-?)0\.", r"\1.", f"{one / 100:g}")
                apart = text[-1].isdigit() and not word.startswith("-")
                apart &= not (word.startswith(".") and "." in re.split(r"[ a-z-]", text)[-1])
                text += " " * apart + word
            start = (given[0], given[1]) if command == "m" else start
            here, before = (start if command == "z" else (given[-2], given[-1])), command
        return b' d="' + text.encode() + b'"'

    svg = re.sub(rb' d="([^"]*)"', relative, svg)
    svg = re.sub(rb"(?<=data:image/png;base64,)[^\"]+", lambda picture: indexed(picture[0]), svg)
    svg = re.sub(
        rb' (x|y|cx|cy|x[12]|y[12]|width|height)="[^"]*"',
        lambda attribute: re.sub(rb"-?\d+\.\d{3,}", lambda number: b"%g" % (rounded(number[0]) / 100), attribute[0]),
        svg,
    )
    return re.sub(rb"\s*\n\s*", b"\n", re.sub(rb"<!--.*?-->", b"", svg))


def indexed(picture: bytes) -> bytes:
    """A PNG in base64 with a palette, to the pixel the same, where 256 colours are enough: a third of the letters."""
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGBA"))
    colors, places = np.unique(pixels.view(np.uint32)[..., 0], return_inverse=True)
    if len(colors) > 256:
        return picture
    small, image = io.BytesIO(), Image.fromarray(places.reshape(pixels.shape[:2]).astype(np.uint8), "P")
    image.putpalette(colors.tobytes(), "RGBA")
    image.save(small, format="png", optimize=True)
    return base64.b64encode(small.getvalue())


def palette(canvas: FigureCanvasAgg, colors: int = 256) -> bytes:
    """What was drawn as a PNG with a palette of so many colours; rare ones too, for a bright cell of a map is one."""
    small, image = io.BytesIO(), Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])
    image.quantize(colors, Image.Quantize.MAXCOVERAGE).save(small, format="png", optimize=True)
    return small.getvalue()


def some(values: Sequence[Any], most: int) -> list[Any]:
    """At most ``most`` of the values, evenly spread, first and last among them."""
    places = np.linspace(0, len(values) - 1, min(most, len(values)))
    return [values[i] for i in places.round().astype(int)]
