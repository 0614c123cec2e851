"""Execution, staging, swapping, locking: on books of a cell or two."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import papermill
import pytest

from grokbook import __main__ as command_line
from grokbook.book import build as book
from grokbook.book import notebooks
from grokbook.book.build import BuildError, Settings
from grokbook.book.parameters import BadInput
from tests import forked
from tests.waiting import eventually


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def grokbook(*arguments: str, root: Path, **options) -> subprocess.Popen:
    """`python -m grokbook` on another repository, as its own process group."""
    code = (
        # A runner started in the background hands on an ignored Ctrl-C; a user's terminal does not.
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "import sys; from pathlib import Path; from grokbook import __main__; from grokbook.book import build as book;"
        "settings = book.Settings;"
        "book.Settings = lambda **given: settings(**given, root=Path(sys.argv[1]));"
        "sys.exit(__main__.main(sys.argv[2:]))"
    )
    environment = os.environ | {"PYTHONPATH": str(book.ROOT)}
    command = [sys.executable, "-c", code, str(root), *arguments]
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


@pytest.fixture(scope="module", autouse=True)
def quick_processes() -> Iterator[None]:
    """Of builds in this process; those that a command starts, and those of the whole site, import what they need."""
    with forked.instead():
        yield


@pytest.fixture
def unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pages are not the point: rendering takes longer than all else."""
    monkeypatch.setattr(book, "_render", lambda stage, place, log, strict: place / "index.html")


def old_site(root: Path) -> Path:
    """The folder of a site that was built before."""
    place = root / "_build" / "html"
    (place / "book").mkdir(parents=True)
    for page in ("index.html", "book/small.html"):
        (place / page).write_text("as it was")
    return place


@pytest.fixture(scope="module")
def built(tmp_path_factory, write_book, quick_processes) -> Path:
    """A repository with a chapter that draws, prints and warns; built twice, into `a` and `b`."""
    draws = "import matplotlib.pyplot as plt", "plt.plot([1, p])"
    warns = "import sys; print('careful', file=sys.stderr)"
    place = write_book(tmp_path_factory.mktemp("built"), *draws, "print('p is', p + 1000)", warns)
    for name in "ab":
        book.make_book(Settings(root=place, output=place / name))
    return place


def test_two_builds_of_the_same_book_are_byte_identical(built):
    assert tree(built / "a" / "html") == tree(built / "b" / "html")


def test_parameters_reach_the_cells_and_the_pages(built, monkeypatch, capsys):
    monkeypatch.setattr(book.parameters, "settings_of", lambda page: lambda p=7: SimpleNamespace(p=p))
    before = tree(built / "a" / "html")
    assert "p is 1007" in before["book/small.html"].decode()
    page = book.make_chapter("small", {"p": "59"}, Settings(root=built, output=built / "a"))
    assert "p is 1059" in page.read_text()
    assert tree(built / "a" / "html") == before
    assert "careful" in capsys.readouterr().err  # for the terminal, not for the page
    assert "<p>careful" not in page.read_text() and "careful\n</pre>" not in page.read_text()


def test_quick_scale_takes_the_chapters_own_parameters_and_what_is_given_goes_first():
    assert book.plan("gromov", {}, Settings(scale="quick"))["p"] == 31
    assert book.plan("gromov", {"p": "11"}, Settings(scale="quick"))["p"] == 11
    assert book.plan("gromov", {}, Settings()) == {}


def test_a_failing_cell_stops_the_build_and_leaves_the_site_and_the_notebook_as_they_were(
    small_book, monkeypatch, capfd
):
    root = small_book("print('fine')", "raise RuntimeError('broke ' + 'here')")
    before = tree(site := old_site(root))
    source = (root / "book" / "small.ipynb").read_bytes()
    monkeypatch.setattr(book, "Settings", lambda **given: Settings(**given, root=root))
    assert command_line.main(["book"]) == 1
    out, err = capfd.readouterr()
    assert err.strip().endswith("small.ipynb, cell 4 failed: RuntimeError: broke here")
    assert err.count("Traceback (most recent call last)") == 1
    assert "book.py" not in err  # no traceback of ours around it
    assert "Done" not in out
    assert tree(site) == before
    assert (root / "book" / "small.ipynb").read_bytes() == source


def test_a_page_that_does_not_render_leaves_the_site_as_it_was(small_book):
    root = small_book("print('whole')")
    before = tree(site := old_site(root))
    (root / "book" / "intro.md").write_text("# Small\n\nSee {numref}`no-such-figure`.\n")
    with pytest.raises(BuildError, match="no-such-figure"):
        book.make_book(Settings(root=root))
    assert tree(site) == before


def test_a_kernel_that_dies_is_told_in_one_line(small_book):
    root = small_book("import os; os._exit(1)")
    with pytest.raises(BuildError, match=r"^small\.ipynb: its kernel died"):
        book.make_book(Settings(root=root))


def test_a_kernel_whose_ports_were_taken_is_started_again(small_book, monkeypatch):
    root, real, tried = small_book("p + 1"), papermill.execute_notebook, []

    def execute(*arguments, **options):
        tried.append(arguments)
        if len(tried) < 3:
            raise RuntimeError("Kernel died before replying to kernel_info")
        real(*arguments, **options)

    monkeypatch.setattr(papermill, "execute_notebook", execute)
    path = root / "book" / "small.ipynb"
    book._execute_notebook(path, {"p": 3}, root)
    assert [output["data"]["text/plain"] for _, output in notebooks.outputs(notebooks.read(path))] == ["4"]


def test_a_chapters_process_that_is_killed_is_told_in_one_line(small_book):
    root = small_book("import os", "os.kill(os.getppid(), 9)", "import time; time.sleep(60)")
    with pytest.raises(BuildError, match="process was killed"):
        book.make_chapter("small", {}, Settings(root=root))
    assert not (root / "_build" / "html").exists()


def test_a_second_build_waits_for_the_first_and_says_so(tmp_path, capsys):
    settings = Settings(root=tmp_path)
    order, inside = [], threading.Event()

    def first() -> None:
        with book._building(settings, "the first"):
            inside.set()
            time.sleep(0.5)
            order.append("first")

    thread = threading.Thread(target=first)
    thread.start()
    inside.wait()
    with book._building(settings, "the second"):
        order.append("second")
    thread.join()
    assert order == ["first", "second"]
    assert f"another process builds in {settings.build}; waiting for it" in capsys.readouterr().err


def test_figures_are_collected_and_only_what_changed_is_written(small_book, capsys):
    folder = "import os, json, pathlib; folder = pathlib.Path(json.loads(os.environ['GROKBOOK'])['figures']) / 'small'"
    save = f"{folder}; folder.mkdir(exist_ok=True)"
    root = small_book(
        save, "(folder / 'one.svg').write_text(f'<svg>{p}</svg>'); (folder / 'two.svg').write_text('<svg/>');"
    )
    place = root / "figures"
    (place / "small").mkdir(parents=True)
    (place / "small" / "one.svg").write_text("<svg>another</svg>")
    (place / "small" / "two.svg").write_text("<svg/>")
    os.utime(place / "small" / "two.svg", ns=(5, 5))
    assert book.make_figures(Settings(root=root)) == place
    assert f"2 files in {place}, 1 of them new or changed" in capsys.readouterr().out
    assert tree(place) == {"small/one.svg": b"<svg>7</svg>", "small/two.svg": b"<svg/>"}
    assert (place / "small" / "two.svg").stat().st_mtime_ns == 5
    before = tree(place)
    quick = book.make_figures(Settings(scale="quick", root=root))
    assert tree(quick) == before and quick != place
    assert tree(place) == before  # committed figures are never those of another scale
    (place / "other").mkdir()
    (place / "other" / "two.svg").write_text("<svg/>")
    book.make_figures(Settings(root=root), "small")
    assert "no page makes" not in capsys.readouterr().out and (place / "other" / "two.svg").exists()
    with pytest.raises(BadInput, match='no chapter "smal"'):
        book.make_figures(Settings(root=root), "smal")


def test_figures_that_lost_a_record_are_left_as_they_were(small_book):
    place = "import os, json, pathlib; place = pathlib.Path(json.loads(os.environ['GROKBOOK'])['figures']) / 'small'"
    rows = [{"name": "there", "size": "missing"}, {"name": "new", "size": "missing"}]
    said = f"place.mkdir(exist_ok=True); (place / 'claims.json').write_text(json.dumps({{'records': {rows}}}))"
    root = small_book(place, said)
    committed = root / "figures/small/claims.json"
    committed.parent.mkdir(parents=True)
    committed.write_text('{"records": [{"name": "there", "size": "full"}, {"name": "gone", "size": "full"}]}')
    before = tree(root / "figures")
    with pytest.raises(book.BuildError, match="no record to be read of small/there; figures/ is left as it was"):
        book.make_figures(Settings(root=root))
    assert tree(root / "figures") == before


def test_records_are_told_once_each_with_where_they_came_from(tmp_path, capsys):
    log = tmp_path / "records.jsonl"
    log.write_text(
        '{"experiment": "small/a", "hash": "1", "source": "trained", "scale": "full", "seconds": 3}\n'
        '{"experiment": "small/a", "hash": "1", "source": "cached", "scale": "full", "seconds": 0}\n'
        '{"experiment": "small/b", "hash": "2", "source": "stored", "scale": "reduced", "seconds": 0}\n'
    )
    book.tell_records(log)
    told = capsys.readouterr().out
    assert told == "  records read from results/: 1 (small/b (reduced))\n  records trained: 1 (small/a)\n"


def test_chapters_are_executed_side_by_side_and_their_summary_after_them(small_book, unrendered, monkeypatch):
    """Two chapters that wait for each other, and a third, first in the list, that counts what they left."""
    begin = (
        "import json, os, time; from pathlib import Path; there = Path(json.loads(os.environ['GROKBOOK'])['figures'])"
    )
    root = small_book(begin, "print(len(list(there.glob('*'))), 'were there')")
    (root / "book" / "small.ipynb").rename(root / "book" / "sum.ipynb")
    leave = "(there / str(os.getpid())).touch(); end = time.monotonic() + 60"
    wait = "while len(list(there.glob('*'))) < 2:\n    time.sleep(0.1)\n    assert time.monotonic() < end, 'alone'"
    small_book(begin, leave, wait)
    shutil.copy(root / "book" / "small.ipynb", root / "book" / "other.ipynb")
    names = "sum", "small", "other"
    files = "".join(f"- file: book/{name}\n" for name in names)
    (root / "_toc.yml").write_text(f"format: jb-book\nroot: book/intro\nchapters:\n{files}")
    monkeypatch.setattr(book, "SUMMARIES", ("sum",))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    book.make_book(Settings(root=root))
    executed = notebooks.read(root / "_build" / "book" / "stage" / "book" / "sum.ipynb")
    assert "2 were there\n" in ["".join(output["text"]) for _, output in notebooks.outputs(executed)]


def test_kernels_find_the_settings_in_their_environment_and_tell_how_far_they_are(small_book, unrendered, capsys):
    names = "device", "fresh", "figures", "log"
    root = small_book(
        "import json, os; handed = json.loads(os.environ['GROKBOOK']);"
        f"[print(n, '=', handed[n]) for n in {names}]; print(os.getcwd());",
        "print(os.environ['OMP_NUM_THREADS'])",
        "open(handed['progress'], 'a').write('half way\\n');",
    )
    book.make_chapter("small", {}, Settings(root=root, device="cpu", fresh=True))
    stage = root / "_build" / "chapter" / "small" / "stage"
    cells = notebooks.read(stage / "book" / "small.ipynb")["cells"]
    assert "".join(cells[2]["outputs"][0]["text"]).splitlines() == [
        "device = cpu",
        "fresh = True",
        f"figures = {stage / 'figures'}",
        f"log = {root / '_build' / 'records.jsonl'}",
        str(root),
    ]
    assert "".join(cells[3]["outputs"][0]["text"]) == "1\n"
    assert "    half way\n" in capsys.readouterr().out


def test_an_interrupt_ends_the_build_its_kernel_and_nothing_else(small_book, tmp_path):
    pid = tmp_path / "kernel"
    root = small_book(f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid()))", "time.sleep(600)")
    process = grokbook("book", root=root)
    eventually(lambda: pid.exists() and pid.read_text(), "the kernel to be there", 60)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.strip().splitlines()[-1] == "grokbook: interrupted; the same command goes on with what was trained"
    assert "Traceback" not in err
    eventually(lambda: not alive(int(pid.read_text())), "the kernel to end", 10)
    assert not (root / "_build" / "html").exists()


@pytest.mark.parametrize("moment", ["executing", "rendering"])
def test_a_build_that_is_killed_leaves_no_process_behind(small_book, tmp_path, moment):
    begun = tmp_path / "begun"
    wait = f"import time; open({str(begun)!r}, 'w').close(); time.sleep(600)"
    root = small_book(wait if moment == "executing" else "print('soon done')")
    (tmp_path / "slow.py").write_text(f"def setup(app):\n    {wait}\n")
    if moment == "rendering":
        config = (root / "_config.yml").read_text().replace("    extensions: [", "    extensions: [slow, ")
        (root / "_config.yml").write_text(f"{config}\n  local_extensions:\n    slow: {tmp_path}\n")
    process = grokbook("book", root=root)
    eventually(lambda: begun.exists() or process.poll() is not None, moment)
    ours = descendants(process.pid)
    assert ours
    process.kill()
    process.wait()
    # 5 seconds on a machine that has nothing else to do
    eventually(lambda: not any(map(alive, ours)), "all that it started to end", 20)


def descendants(pid: int) -> set[int]:
    """The processes that a process started, and those that these did."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True).stdout.split()
    parents = dict(zip(map(int, table[::2]), map(int, table[1::2]), strict=True))
    found: set[int] = set()
    while more := {one for one, parent in parents.items() if parent in {pid, *found}} - found:
        found |= more
    return found


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not Path(f"/proc/{pid}/stat").exists() or ") Z" not in Path(f"/proc/{pid}/stat").read_text()
