"""Sliders over precomputed frames that keep working in the static page, where no kernel answers.

Only links between widget traits live there (no callbacks, no `interact`), so every frame is drawn beforehand
and the slider picks one. Frames are HTML with an <img>, because the Image widget has no alternative text.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ipywidgets import VBox
    from matplotlib.figure import Figure

BUDGET = 1_500_000  # bytes of PNG in one set of frames; base64 makes a third more of it, twice in the site


def frames(
    pictures: Sequence[Figure | bytes],
    *,
    labels: Sequence[str],
    alts: Sequence[str],
    description: str,
    interval: int = 400,
    dpi: int = 90,
) -> VBox:
    """A slider and a play button over pictures.

    Args:
        pictures: (n,) matplotlib figures (drawn here as PNG, then closed) or PNG files as bytes.
        labels: (n,) what the slider shows beside itself for each picture, e.g. "step 1,000".
        alts: (n,) what each picture shows, in words.
        description: the slider's name, e.g. "training step".

    Other arguments:
        interval: milliseconds a frame stays when playing.
        dpi: resolution at which figures are drawn; PNG bytes are taken as they are.

    Returns:
        The widget; make it the last line of a cell.

    Raises:
        ValueError: different lengths, no picture, an empty alt, or more than `BUDGET` bytes of pictures.
    """
    import ipywidgets as widgets

    if not len(pictures) == len(labels) == len(alts) or not pictures:
        raise ValueError(f"{len(pictures)} pictures, {len(labels)} labels and {len(alts)} alts: need one of each")
    if not all(alt.strip() for alt in alts):
        raise ValueError("every frame needs an alternative text that says what it shows")
    pngs = [p if isinstance(p, bytes) else _png(p, dpi) for p in pictures]
    if (total := sum(map(len, pngs))) > BUDGET:
        raise ValueError(
            f"{len(pngs)} frames of {total:,} bytes: above {BUDGET:,}; draw fewer, smaller or flatter ones"
        )

    images = [
        widgets.HTML(f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{base64.b64encode(png).decode()}">')
        for alt, png in zip(alts, pngs, strict=True)
    ]
    last = len(images) - 1
    slider = widgets.IntSlider(
        0, 0, last, description=description, readout=False, style={"description_width": "initial"}
    )
    play = widgets.Play(value=0, min=0, max=last, interval=interval, show_repeat=False)
    captions = widgets.Stack([widgets.HTML(html.escape(label)) for label in labels], selected_index=0)
    stack = widgets.Stack(images, selected_index=0)
    box = widgets.VBox([widgets.HBox([play, slider, captions]), stack])
    box.add_class("grok-frames")
    # Held by the box: a link that nobody holds is deleted, and its state does not reach the notebook.
    box.links = [
        widgets.jslink((play, "value"), (slider, "value")),
        widgets.jslink((slider, "value"), (stack, "selected_index")),
        widgets.jslink((slider, "value"), (captions, "selected_index")),
    ]
    return box


def _png(figure: Any, dpi: int) -> bytes:
    """The figure as a PNG file on white paper, the same bytes each time."""
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, facecolor="white", metadata={"Software": None})
    plt.close(figure)
    return buffer.getvalue()
