"""The rendered book at quick scale, trained from nothing, looked at with a browser where there is one."""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from grokbook.book import build as book
from grokbook.book import notebooks
from grokbook.session import Session

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # others cannot be reached
]
SIZES = {"phone": {"width": 390, "height": 844}, "desk": {"width": 1300, "height": 900}}
LOCAL = ("http://127.0.0.1:", "data:", "blob:")


def pages(html: Path) -> list[str]:
    """Every page a reader can reach, as a path below the site."""
    found = (str(page.relative_to(html)) for page in html.rglob("*.html") if "_static" not in page.parts)
    return sorted(page for page in found if page != "index.html")  # which only leads on


# ------------------------------------------------------------------------------------------ without a browser


def test_every_chapter_is_a_page_with_output(site):
    for chapter in book.chapters():
        assert "&lt;Figure size" not in (site.html / "book" / f"{chapter}.html").read_text()  # words for a picture
        executed = notebooks.read(site.stage / "book" / f"{chapter}.ipynb")
        assert any(True for _ in notebooks.outputs(executed))


def test_no_cell_fails_on_what_is_trained_at_quick_scale(site):
    """Which a page forgives at a reader's settings, as those of this build are."""
    assert "not to be had" not in site.told


def test_every_record_was_trained_from_nothing(site):
    lines = [json.loads(line) for line in (site.build / "records.jsonl").read_text().splitlines()]
    first = {line["hash"]: line["source"] for line in reversed(lines)}
    assert first and set(first.values()) == {"trained"}


SAMPLE = ("across",)  # executed a second time: with sliders, and at a cost that a test can bear


def test_plain_papermill_from_inside_book_gives_the_same_notebook_and_figures(site, root, tmp_path):
    """What `papermill gromov.ipynb out.ipynb -f ...` gives a user is what the page shows, byte by byte."""

    def execute(chapter: str) -> str:
        values = book.plan(chapter, {}, book.Settings(scale="quick", root=root))
        given = tmp_path / f"{chapter}.yaml"
        given.write_text(yaml.safe_dump(values, sort_keys=False))
        # the records of the site's own run: only drawing is left to do
        handed = Session("quick", "cpu", figures=str(tmp_path / "figures"), cache=str(site.cache))
        backend = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}  # as a kernel chooses by itself
        environment = os.environ | handed.variable() | backend
        command = [sys.executable, "-m", "papermill", f"{chapter}.ipynb", str(tmp_path / f"{chapter}.ipynb")]
        command += ["-f", str(given), "--start-timeout", "300"]
        done = subprocess.run(command, cwd=root / "book", env=environment, capture_output=True, text=True)
        return done.stderr if done.returncode else ""

    with ThreadPoolExecutor(2) as pool:
        assert "".join(pool.map(execute, SAMPLE)) == ""
    for chapter in SAMPLE:
        again = notebooks.canonical(notebooks.read(tmp_path / f"{chapter}.ipynb"))
        assert again == notebooks.read(site.stage / "book" / f"{chapter}.ipynb")
        made = list((tmp_path / "figures" / chapter).iterdir())
        assert made
        for path in made:
            assert path.read_bytes() == (site.stage / "figures" / chapter / path.name).read_bytes(), path


class Loaded(HTMLParser):
    """The addresses that a page loads by itself, and the alternative texts of its images."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.alts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in ("script", "img", "iframe", "source"):
            self.addresses.append(given.get("src", ""))
        if tag == "link" and given.get("rel") not in ("canonical",):
            self.addresses.append(given.get("href", ""))
        if tag == "img":
            self.alts.append(given.get("alt", ""))


def test_no_page_names_a_script_style_or_image_of_another_machine(site):
    for page in pages(site.html):
        loaded = Loaded((site.html / page).read_text())
        assert [a for a in loaded.addresses if re.match(r"(https?:)?//", a)] == [], page


def test_every_image_in_the_pages_says_in_words_what_it_shows(site):
    seen = 0
    for page in pages(site.html):
        for alt in Loaded((site.html / page).read_text()).alts:
            seen += 1
            assert len(alt.split()) >= 3 and "_images/" not in alt, f"{page}: {alt!r}"
    assert seen


def test_every_internal_link_leads_somewhere(site):
    for page in pages(site.html):
        text = (site.html / page).read_text()
        for address in re.findall(r'(?:href|src)="([^"#?:]+)[#?"]', text):
            assert (site.html / page).parent.joinpath(address).exists(), f"{page} -> {address}"


# --------------------------------------------------------------------------------------------- with a browser


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address(site) -> Iterator[str]:
    """The site over http, on this machine only."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site.html)))
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a tab that closes early
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Any]:
    """A Chromium of this machine, with a profile of its own; skipped where there is none, unless demanded."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("GROKBOOK_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if not found:
        if os.environ.get("GROKBOOK_BROWSER") == "required":
            pytest.fail("no Chromium on this machine, and GROKBOOK_BROWSER=required")
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    profile = tmp_path_factory.mktemp("profile")
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=found, headless=True, args=FLAGS
        )
        yield context
        context.close()


class Visit:
    """One page opened in one window size: what it asked for and what it complained about."""

    def __init__(self, browser: Any, address: str, page: str, size: dict[str, int]) -> None:
        self.outside: list[str] = []
        self.complaints: list[str] = []
        self.loaded: list[float] = []
        self.tab = browser.new_page()
        self.tab.set_default_timeout(180_000)  # a busy machine is slow, not wrong
        self.tab.set_viewport_size(size)
        self.tab.on("request", lambda r: None if r.url.startswith(LOCAL) else self.outside.append(r.url))
        self.tab.on("pageerror", lambda error: self.complaints.append(f"script: {error}"))
        self.tab.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.tab.on("response", lambda r: self.complaints.append(f"{r.status} {r.url}") if r.status >= 400 else None)
        network = self.tab.context.new_cdp_session(self.tab)
        network.on("Network.loadingFinished", lambda done: self.loaded.append(done["encodedDataLength"]))
        network.send("Network.enable")
        network.send("Network.setCacheDisabled", {"cacheDisabled": True})
        self.tab.goto(f"{address}/{page}", wait_until="load")
        if page == "index.html":
            self.tab.wait_for_url("**/intro.html", wait_until="load")
        self.tab.evaluate("window.MathJax && MathJax.startup ? MathJax.startup.promise : null")
        self.tab.wait_for_timeout(200)

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.tab.close()


class Seen(NamedTuple):
    """What was found on one page in one window size; what came with the page, before it was widened."""

    outside: list[str]  # addresses of other machines that it asked for
    complaints: list[str]  # script errors, console errors and warnings, failed requests
    images: list[tuple[str, bool]]  # (alternative text, whether it is drawn)
    wide: list[str]  # elements that reach past the window and that no box of their own scrolls
    width: int  # what there is to scroll sideways, in pixels
    cut: list[str]  # equations that do not fit their box
    loaded: float  # bytes that come before anybody scrolls


IMAGES = """() => Promise.all([...document.images].map(async i => {     // those that wait until they are near as well
    i.loading = 'eager';
    await i.decode().catch(() => 0);
    return [i.alt, i.naturalWidth > 0];
}))"""
SETTLED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
WIDE = """() => [...document.querySelectorAll('.bd-article *')].filter(e => {
    const past = e => e.getBoundingClientRect().right > innerWidth + 1;
    if (!past(e)) return false;
    for (let box = e.parentElement; box.closest('.bd-article *'); box = box.parentElement)
        if (['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(box).overflowX) && !past(box)) return false;
    return true;
}).map(e => e.outerHTML.slice(0, 120))"""
CUT = """() => [...document.querySelectorAll('.bd-article mjx-container[display="true"]')]
    .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.closest('[id]').id)"""


@pytest.fixture(scope="module")
def seen(site, browser, address) -> dict[tuple[str, str], Seen]:
    """Every page, on a phone and then at a desk; each opened once."""
    found = {}
    for page in ["index.html", *pages(site.html)]:
        with Visit(browser, address, page, SIZES["phone"]) as visit:
            loaded = sum(visit.loaded)
            images = [(alt, drawn) for alt, drawn in visit.tab.evaluate(IMAGES)]
            for place, size in SIZES.items():
                visit.tab.set_viewport_size(size)
                visit.tab.evaluate(SETTLED)
                width = visit.tab.evaluate("document.documentElement.scrollWidth")
                wide, cut = visit.tab.evaluate(WIDE), visit.tab.evaluate(CUT)
                found[page, place] = Seen(visit.outside, visit.complaints, images, wide, width, cut, loaded)
    return found


def test_no_request_leaves_the_machine(seen):
    assert {where: page.outside for where, page in seen.items() if page.outside} == {}


def test_no_page_raises_a_script_error(seen):
    assert {where: page.complaints for where, page in seen.items() if page.complaints} == {}


def test_an_outside_request_and_a_script_error_would_be_noticed(browser, address):
    with Visit(browser, address, "book/intro.html", SIZES["desk"]) as visit:
        visit.tab.evaluate("fetch('http://example.invalid/x').catch(() => 0); setTimeout(() => nonsense(), 0); null")
        visit.tab.wait_for_timeout(500)
        assert visit.outside == ["http://example.invalid/x"]
        assert any("nonsense is not defined" in text for text in visit.complaints)


def test_no_page_scrolls_sideways_on_a_phone(seen):
    """Also not where the theme merely hides what is too wide."""
    phone = {page: found for (page, place), found in seen.items() if place == "phone"}
    assert {page: found.wide for page, found in phone.items() if found.wide} == {}
    assert {page: found.width for page, found in phone.items() if found.width > SIZES["phone"]["width"]} == {}


def test_equations_fit_the_window(seen):
    assert {where: page.cut for where, page in seen.items() if page.cut} == {}


def test_an_equation_that_does_not_fit_would_be_noticed(browser, address):
    with Visit(browser, address, "book/gromov.html", {"width": 200, "height": 844}) as visit:
        assert visit.tab.evaluate(CUT)


def test_something_too_wide_would_be_noticed(browser, address):
    with Visit(browser, address, "book/intro.html", SIZES["phone"]) as visit:
        add = "const p = document.createElement('p'); p.style.width = '600px'; p.id = 'wide';"
        visit.tab.evaluate(f"{add} document.querySelector('.bd-article section').append(p)")
        assert any('id="wide"' in found for found in visit.tab.evaluate(WIDE))


def test_every_image_in_the_browser_is_drawn_and_says_in_words_what_it_shows(seen):
    """Also those that widgets make, in the browser only."""
    for where, page in seen.items():
        for alt, drawn in page.images:
            assert drawn, f"{where}: {alt!r}"
            assert len(alt.split()) >= 3 and "_images/" not in alt, f"{where}: {alt!r}"


SHOWN = "box.querySelector('img:not([hidden])').src + box.querySelector('output').value"
MOVED = f"""() => [...document.querySelectorAll('.grok-frames')].map(box => [0, 1, 2].map(k => {{
    const slider = box.querySelector('input');
    slider.value = k;
    slider.dispatchEvent(new Event('input'));
    return {SHOWN};
}}))"""


def test_sliders_move_frames_and_play_plays_them(site, browser, address):
    moved = 0
    for page in [page for page in pages(site.html) if "grok-frames" in (site.html / page).read_text()]:
        with Visit(browser, address, page, SIZES["desk"]) as visit:
            visit.tab.evaluate("document.querySelectorAll('details:has(.grok-frames)').forEach(one => one.open = true)")
            of_boxes = visit.tab.evaluate(MOVED)
            assert [k for k, frames in enumerate(of_boxes) if len(set(frames)) < 3] == [], page
            moved += len(of_boxes)
            box = visit.tab.query_selector(".grok-frames")  # by keyboard, and playing, all are alike
            for key, frame in (("Home", 0), ("ArrowRight", 1), ("Home", 0)):
                box.query_selector("input").press(key)
                assert box.evaluate(f"box => {SHOWN}") == of_boxes[0][frame]
            box.query_selector("button").click()
            visit.tab.wait_for_function(f"([box, next]) => {SHOWN} === next", arg=[box, of_boxes[0][1]])
    assert moved


def test_the_scorecard_is_filtered_searched_and_sorted_by_keyboard(browser, address):
    with Visit(browser, address, "book/scorecard.html", SIZES["desk"]) as visit:
        rows = "() => [...document.querySelectorAll('.grok-table tbody tr:not([hidden])')].map(row => row.id)"
        everything = visit.tab.evaluate(rows)
        visit.tab.select_option("[data-key=chapter]", "Gromov")
        some = visit.tab.evaluate(rows)
        assert 0 < len(some) < len(everything) and all(id.startswith("gromov-") for id in some)
        visit.tab.fill(".grok-table input", "gelu")
        found = visit.tab.evaluate(rows)
        assert 0 < len(found) < len(some)
        assert visit.tab.inner_text(".grok-table output") == f"{len(found)} of {len(everything)}"
        visit.tab.fill(".grok-table input", "")
        visit.tab.focus(".grok-table thead button")
        visit.tab.keyboard.press("Enter")
        up = visit.tab.evaluate(rows)
        visit.tab.keyboard.press("Enter")
        assert sorted(up) == sorted(some) and visit.tab.evaluate(rows)[0] == up[-1]


def test_a_figure_is_enlarged_by_keyboard_and_escape_goes_back(browser, address):
    with Visit(browser, address, "book/gromov.html", SIZES["phone"]) as visit:
        visit.tab.focus(".grok-enlarge")
        visit.tab.keyboard.press("Enter")
        assert visit.tab.is_visible("dialog.grok-view img")
        visit.tab.keyboard.press("Escape")
        assert not visit.tab.is_visible("dialog.grok-view img")


THEME = {"region", "label-content-name-mismatch"}  # of the theme's own sidebar and buttons
THEME |= {"aria-allowed-role", "aria-deprecated-role", "aria-required-children"}  # of the list of references


# Every fold, and of those that hold only code, whose thousands of words are coloured alike, the first.
OPEN = """() => {
    const code = fold => fold.querySelector(':scope > .highlight');
    const folds = [...document.querySelectorAll('details')], first = folds.find(code);
    folds.filter(fold => fold === first || !code(fold)).forEach(fold => fold.open = true);
}"""


@pytest.mark.parametrize("page", ["intro", "scorecard", "gallery", "gromov", "references"])
def test_axe_finds_nothing_but_what_is_the_themes(browser, address, page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    with Visit(browser, address, f"book/{page}.html", SIZES["desk"]) as visit:
        visit.tab.add_style_tag(content="* { animation: none !important }")  # folds that fade in are pale at first
        visit.tab.evaluate(OPEN)
        found = axe.Axe().run(visit.tab, options={"resultTypes": ["violations"]}).response["violations"]
    ours = {one["id"]: one["nodes"][0]["html"] for one in found if one["id"] not in THEME}
    assert ours == {}


def test_no_script_holds_up_the_first_paint_and_formulas_come_where_there_are_some(site):
    for page in pages(site.html):
        text = (site.html / page).read_text()
        blocking = [
            tag for tag in re.findall("<script[^>]*src=[^>]*>", text) if "defer" not in tag and "async" not in tag
        ]
        assert blocking == [], page
        assert ("tex-chtml" in text) == ('class="math' in text), page
        assert "data:image/png" not in text, f"{page} carries a picture"
    assert not (site.html / "_sources").exists()


def test_pages_are_light_on_a_phone(seen):
    phone = {page: found.loaded for (page, place), found in seen.items() if place == "phone"}
    assert {page: loaded for page, loaded in phone.items() if loaded > 4e6} == {}
    assert phone["book/gromov.html"] > 1e5, "nothing was counted"


def test_search_works_without_a_network(site, browser, address):
    with Visit(browser, address, "search.html?q=grokking", SIZES["desk"]) as visit:
        visit.tab.wait_for_selector("#search-results ul.search li")
        assert visit.outside == []
