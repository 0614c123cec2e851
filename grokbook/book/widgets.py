"""Sliders: over precomputed frames, in plain HTML for notebook and page alike; and, where a kernel runs, live."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from grokbook import lint, plotting, session
from grokbook.fold import Html

BUDGET = 1_500_000  # bytes of PNG in one set of frames
QUICK = 6  # frames of a set, with first, shown and last, at quick scale, where drawing takes longer than training

# Written into the elements, so that a notebook needs no script file. `loading` is lazy until somebody is about to move.
_SHOW = (
    "const b=this.closest('.grok-frames'),i=b.querySelectorAll('img');"
    "i.forEach((x,k)=>{x.loading='eager';x.hidden=k!=this.value});"
    "b.querySelector('output').value=i[this.value].dataset.label;"
    "this.setAttribute('aria-valuetext',i[this.value].dataset.label)"
)
_PLAY = (
    "const b=this.closest('.grok-frames'),s=b.querySelector('input'),t=this,stop=()=>{clearInterval(b.timer);b.timer=0;"
    "t.textContent='▶';t.setAttribute('aria-label','play')},go=v=>{s.value=v;s.dispatchEvent(new Event('input'))};"
    "if(b.timer)return stop();if(s.value==s.max)go(0);t.textContent='❚❚';t.setAttribute('aria-label','pause');"
    "b.timer=setInterval(()=>{go(+s.value+1);if(s.value==s.max)stop()},400)"
)


def frames(
    pictures: Sequence[Figure],
    *,
    labels: Sequence[str],
    alts: Sequence[str],
    description: str,
    dpi: int = 160,
    colors: int = 64,
    start: int = 0,
) -> Html:
    """A slider and a play button over pictures, which show themselves as the last line of a cell.

    Args:
        pictures: (n,) matplotlib figures.
        labels: (n,) what the slider shows beside itself for each picture, e.g. "step 1,000".
        alts: (n,) what each picture shows, in words.
        description: the slider's name, e.g. "training step".
        dpi, colors: resolution and palette with which they are drawn as PNG.
        start: the frame that is shown first.

    ``ValueError`` for different lengths, no picture, an empty alt, or more than `BUDGET` bytes of pictures. At quick
    scale only some are drawn.
    """
    if not len(pictures) == len(labels) == len(alts) or not pictures:
        raise ValueError(f"{len(pictures)} pictures, {len(labels)} labels and {len(alts)} alts: need one of each")
    if not all(alt.strip() for alt in alts):
        raise ValueError("every frame needs an alternative text that says what it shows")
    if session.current().scale == "quick":
        few = sorted({*range(0, len(pictures), -(-len(pictures) // QUICK)), start, len(pictures) - 1})
        pictures, labels, alts = [pictures[k] for k in few], [labels[k] for k in few], [alts[k] for k in few]
        start = few.index(start)
    pngs, problems = [], []
    for label, figure in zip(labels, pictures, strict=True):
        canvas = plotting.drawn(figure, dpi=dpi)
        problems += [f"{description} {label}: {one}" for one in lint.problems(canvas)]
        pngs.append(plotting.palette(canvas, colors))
    if (total := sum(map(len, pngs))) > BUDGET:
        told = f"{len(pngs)} frames of {total:,} bytes: above {BUDGET:,}"
        raise ValueError(f"{told}; draw fewer, smaller or flatter ones")
    images = [
        f'<img alt="{html.escape(alt)}" data-label="{html.escape(label)}"{"" if k == start else " hidden"} '
        f'src="data:image/png;base64,{base64.b64encode(png).decode()}">'
        for k, (alt, label, png) in enumerate(zip(alts, labels, pngs, strict=True))
    ]
    label = html.escape(labels[start])
    return Html(
        '<div class="grok-frames"><p>'
        f'<button type="button" aria-label="play" onclick="{_PLAY}">▶</button> '
        f'<label>{html.escape(description)} <input type="range" min="0" max="{len(images) - 1}" value="{start}" '
        f'aria-valuetext="{label}" oninput="{_SHOW}"></label> <output>{label}</output></p>{"".join(images)}</div>',
        poster=pngs[-1],
        figures=dict(zip(labels, pictures, strict=True)),
        problems=problems,
    )


def choose(widgets: Mapping[str, Html], *, description: str) -> Html:
    """One of several sets of frames at a time, by a list in front of them: what a line of it says -> what it shows.

    The list's name is its ``description``, e.g. "family".
    """
    options = "".join(f"<option>{html.escape(name)}</option>" for name in widgets)
    boxes = "".join(f"<div{' hidden' * (k > 0)}>{one.markup}</div>" for k, one in enumerate(widgets.values()))
    show = "[...this.closest('.grok-choose').children].forEach((x,k)=>{if(k)x.hidden=k-1!=this.selectedIndex})"
    head = f'<p><label>{html.escape(description)} <select onchange="{show}">{options}</select></label></p>'
    return Html(
        f'<div class="grok-choose">{head}{boxes}</div>',
        poster=next(iter(widgets.values())).poster if widgets else b"",
        figures={f"{name}, {one}": figure for name, w in widgets.items() for one, figure in w.figures.items()},
        problems=[f"{name}, {one}" for name, w in widgets.items() for one in w.problems],
    )


def live(draw: Callable[..., Any], /, **choices: Sequence[Any]) -> Any:
    """Sliders that call ``draw`` anew, where a kernel runs behind the page; nothing in a built book, which has none.

    It draws with matplotlib, given one of each of the choices by name: (n,) what a slider runs through, from the first.
    """
    if session.current().figures:
        return None
    import ipywidgets

    sliders = {name: ipywidgets.SelectionSlider(options=list(values)) for name, values in choices.items()}
    return ipywidgets.interactive(draw, **sliders)
