"""What a browser need not load is taken out of the rendered pages."""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import re
import struct
from collections.abc import Mapping
from pathlib import Path

MEANING = re.compile(r'<dt id="(term-[^"]+)">.*?<dd><p>(.*?)</p>', re.DOTALL)
TERM = re.compile(r'<a class="reference internal" href="(?:words\.html)?#(term-[^"]+)"')


def lighten(site: Path) -> None:
    """Rewrite every page of a rendered site in place.

    No script blocks the first paint, pictures below the first are loaded when they come near, those that were written
    into a page become files beside the others, and what nobody asks for (maps of sources, fonts in a second format)
    is removed.
    """
    meanings = {}
    if (words := site / "book" / "words.html").exists():  # what a term means, where the pointer rests on it
        found = MEANING.findall(words.read_text(encoding="utf-8"))
        meanings = {term: html.escape(re.sub(r"<[^>]+>|\\[()]", "", said)) for term, said in found}
    for page in site.rglob("*.html"):
        if "</head>" in (text := page.read_text(encoding="utf-8")):
            page.write_text(_light(text, site, page, meanings), encoding="utf-8")
    for waste in (*site.rglob("*.map"), *site.rglob("*.ttf"), *site.rglob("fontawesome.js")):
        waste.unlink()


def _light(text: str, site: Path, page: Path, meanings: Mapping[str, str]) -> str:
    # The style sheet has the same icons as a font.
    unused = "fontawesome" if 'class="math' in text else "fontawesome|tex-chtml"
    text = re.sub(rf"<script[^>]*(?:{unused})\.js[^>]*></script>", "", text)
    if meanings:
        text = TERM.sub(lambda link: f'{link[0]} title="{meanings[link[1]]}"', text)
    text = re.sub(r"<script (?!defer|async)([^>]*src=)", r"<script defer \1", text)
    # What this adds to is deferred now as well.
    text = re.sub(r"<script>(DOCUMENTATION_OPTIONS\.[^<]*)</script>", r'<script type="module">\1</script>', text)
    text = re.sub('src="data:image/png;base64,([^"]+)"', lambda found: f'src="{_file(found[1], site, page)}"', text)
    head, article, rest = text.partition("<article")
    order = itertools.count()
    return head + article + re.sub("<img ([^>]*)>", lambda found: _lazy(found, page, first=next(order) == 0), rest)


def _file(encoded: str, site: Path, page: Path) -> str:
    """Write a picture as a file; its address from the page."""
    content = base64.b64decode(encoded)
    place = site / "_images" / f"{hashlib.sha256(content).hexdigest()[:32]}.png"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(content)
    return "../" * len(page.parent.relative_to(site).parts) + f"_images/{place.name}"


def _lazy(found: re.Match[str], page: Path, *, first: bool) -> str:
    """An image that waits until it is near, and whose place is kept free meanwhile."""
    attributes = found[1].rstrip("/ ")
    source = re.search(r'src="([^"]+)"', attributes)
    if source and "width=" not in attributes and (file := page.parent / source[1]).suffix == ".png" and file.exists():
        width, height = struct.unpack(">II", file.read_bytes()[16:24])
        attributes += f' width="{width}" height="{height}"'
    wait = "" if first or "loading=" in attributes else ' loading="lazy"'
    return f"<img {attributes}{wait}>"
