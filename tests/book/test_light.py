"""What is taken out of a rendered page, and what stays."""

from __future__ import annotations

import base64

from grokbook.book.light import lighten

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8) + (3).to_bytes(4, "big") + (2).to_bytes(4, "big")
PAGE = """<html><head><script defer src="../_static/scripts/fontawesome.js?v=1"></script>
<script src="../_static/doctools.js"></script><script>DOCUMENTATION_OPTIONS.pagename = 'a';</script>
<script defer="defer" src="../_static/vendor/mathjax/tex-chtml.js"></script></head><body><img src="logo.png">
<article><img src="../_images/a.png" alt="one"><img alt="two" src="data:image/png;base64,{picture}">{rest}
<a class="reference internal" href="words.html#term-RQI"><span>RQI</span></a></article></body></html>"""


def test_a_page_loads_only_what_it_shows(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "_images").mkdir()
    (tmp_path / "_images" / "a.png").write_bytes(PNG)
    (tmp_path / "book" / "words.html").write_text(
        '<html><head></head><dl><dt id="term-RQI">RQI</dt><dd><p>A <em>share</em>.</p></dd></dl>'
    )
    picture = base64.b64encode(PNG).decode()
    for name, rest in (("plain", ""), ("formula", '<span class="math">x</span>')):
        (tmp_path / "book" / f"{name}.html").write_text(PAGE.format(picture=picture, rest=rest))
    (tmp_path / "theme.css.map").write_text("")
    lighten(tmp_path)
    plain, formula = ((tmp_path / "book" / f"{name}.html").read_text() for name in ("plain", "formula"))
    assert "fontawesome" not in plain and "tex-chtml" not in plain and "tex-chtml" in formula
    assert '<script defer src="../_static/doctools.js">' in plain and '<script type="module">DOC' in plain
    first, second = plain.split("<img")[2:]
    assert 'width="3" height="2"' in first and "lazy" not in first
    assert "base64" not in second and 'loading="lazy"' in second and 'src="../_images/' in second
    assert 'href="words.html#term-RQI" title="A share."' in plain
    assert len(list((tmp_path / "_images").glob("*.png"))) == 2 and not list(tmp_path.glob("*.map"))
