"""From notebooks to pages: check the parameters, execute with papermill, render with Jupyter Book.

    book/*.ipynb --papermill--> _build/<kind>/stage/ --jupyter-book--> _build/html/

Everything is made beside the old result and moved into place at the end, so a build that fails or is
interrupted leaves what was there. The notebooks in book/ are never written to.
"""

from __future__ import annotations

import contextlib
import dataclasses
import filecmp
import json
import multiprocessing
import os
import re
import shutil
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grokbook.chapters
from grokbook import session, words
from grokbook.book import notebooks, parameters
from grokbook.book.light import lighten
from grokbook.train import workers
from grokbook.train.records import ROOT, write_whole

SCALES = ("full", "quick")
SUMMARIES = ("intro", "scorecard", "gallery")  # chapters made of what all others leave in figures/
BACK = "git checkout results brings back committed ones, grokbook train makes others anew"
SCORECARD = re.compile(r'<p><a href=\\"scorecard\.html#[^>]*>In the scorecard</a></p>')  # as a notebook has it
COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # as a terminal is told of them


class BuildError(RuntimeError):
    """The build stopped; the message says where and why, and needs no traceback of ours."""


@dataclass(frozen=True)
class Settings:
    """What `make` lets one choose about any build."""

    scale: str = "full"  # full: the notebooks' own parameters; quick: the small ones of each chapter
    fresh: bool = False  # train again whatever is stored
    device: str = "auto"
    root: Path = ROOT  # the repository
    output: Path | None = None  # where to build; root/_build if None

    def __post_init__(self) -> None:
        parameters.check_device(self.device)

    @property
    def build(self) -> Path:
        return self.output or self.root / "_build"


def chapters(root: Path = ROOT) -> list[str]:
    """The pages that are notebooks: those of _toc.yml, in its order."""
    named = re.findall(r"(?:root|file): book/(\w+)", (root / "_toc.yml").read_text(encoding="utf-8"))
    return [name for name in named if (root / "book" / f"{name}.ipynb").exists()]


def make_book(settings: Settings) -> Path:
    """Execute every chapter and render the book; returns the path of its index.html."""
    given = {name: plan(name, {}, settings) for name in chapters(settings.root)}
    with _building(settings, "the book"):
        stage = _stage(settings.root, settings.build / "book" / "stage")
        _execute(given, stage, settings)
        return _render(stage, settings.build / "html", settings.build / "jupyter-book.log", strict=True)


def make_figures(settings: Settings, chapter: str | None = None) -> Path:
    """Execute every chapter, or one, and put its plots into figures/ (at quick scale: into the build)."""
    known, own = chapters(settings.root), chapter or ""
    names = [parameters.one_of("chapter", own, known)] if own else known
    given = {name: plan(name, {}, settings) for name in names}
    full = settings.scale == "full"
    place = settings.root / "figures" if full else settings.build / "figures-quick"
    with _building(settings, "the figures"):
        stage = _stage(settings.root, settings.build / "figures" / "stage")
        drawn = stage / "figures"
        shutil.rmtree(drawn / own, ignore_errors=True)
        _execute(given, stage, settings)
        if full and (lost := _lost(drawn, place)):
            raise BuildError(f"no record to be read of {', '.join(lost)}; figures/ is left as it was ({BACK})")
        made, there = ({path.relative_to(top) for path in (top / own).rglob("*.*")} for top in (drawn, place))
        same, _, _ = filecmp.cmpfiles(drawn, place, map(str, made), shallow=False)
        new = made - set(map(Path, same))
        for path in new:
            write_whole(place / path, (drawn / path).read_bytes())
        for path in sorted(there - made):
            print(f"  {place / path}: no page makes this file any more")
        print(f"  {len(made)} files in {place}, {len(new)} of them new or changed")
    return place


def _lost(drawn: Path, place: Path) -> list[str]:
    """The records behind the figures in a place of which those drawn now had none."""
    lost = []
    for path in sorted(drawn.glob("*/claims.json")):
        with contextlib.suppress(OSError, LookupError, ValueError):  # never drawn before, or by another version
            files = path, place / path.parent.name / path.name
            now, before = (json.loads(one.read_text(encoding="utf-8"))["records"] for one in files)
            had = {one["name"] for one in before if one["size"] != "missing"}
            lost += [
                f"{path.parent.name}/{one['name']}" for one in now if one["size"] == "missing" and one["name"] in had
            ]
    return lost


def make_chapter(chapter: str, given: Mapping[str, Any], settings: Settings) -> Path:
    """Execute one chapter with other parameters and render it in a place of its own; returns its page."""
    parameters.one_of("chapter", chapter, chapters(settings.root))
    values = plan(chapter, given, settings)
    with _building(settings, f"chapter {chapter}"):
        place = settings.build / "chapter" / chapter
        stage = _stage(settings.root, place / "stage", only=chapter)
        _execute({chapter: values}, stage, settings)
        page = stage / "book" / f"{chapter}.ipynb"
        page.write_text(SCORECARD.sub("", page.read_text(encoding="utf-8")), encoding="utf-8")  # which is not made
        # Not strict: a reference to a page that is left out here is no error.
        index = _render(stage, place / "html", place / "jupyter-book.log", strict=False)
        return index.parent / "book" / f"{chapter}.html"


def plan(chapter: str, given: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """The checked parameters of a page at this scale; what is given goes before what the quick scale says."""
    made = grokbook.chapters.chapters().get(chapter)
    quick = made.quick if made and settings.scale == "quick" else {}
    return parameters.resolve(chapter, {**quick, **given})


@contextlib.contextmanager
def _building(settings: Settings, what: str) -> Iterator[None]:
    """One build at a time in a build folder, a second one waits."""
    with workers.alone(settings.build / "lock", f"builds in {settings.build}"):
        scale = "" if settings.scale == "full" else f" at {settings.scale} scale"
        print(f"Building {what}{scale}.", flush=True)
        started = time.monotonic()
        yield
        print(f"Done in {words.seconds(time.monotonic() - started)}.", flush=True)


def tell_records(log: Path) -> None:
    """Print where a build had its records from; the first mention counts: what was just trained is found afterwards."""
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    first = {one["hash"]: one for one in reversed(lines)}.values()
    for source in ("stored", "cached", "trained"):
        found = [one for one in first if one["source"] == source]
        names = [one["experiment"] + (" (reduced)" if one["scale"] == "reduced" else "") for one in found][::-1]
        if names:
            shown = names if len(names) <= 12 else [*names[:2], f"… {names[-1]}"]
            print(f"  records {READ.get(source, source)}: {len(names)} ({', '.join(shown)})")


def _stage(root: Path, stage: Path, only: str | None = None) -> Path:
    """A fresh copy of all that the pages are rendered from; with `only`, the other chapters are left out."""
    shutil.rmtree(stage, ignore_errors=True)
    for name in ("_assets", "book", "figures", "results"):
        (stage / name).mkdir(parents=True)
        if (root / name).exists():
            shutil.copytree(root / name, stage / name, ignore=shutil.ignore_patterns(".*"), dirs_exist_ok=True)
    shutil.copy(root / "_config.yml", stage)
    toc = (root / "_toc.yml").read_text(encoding="utf-8")
    if only:
        toc = f"format: jb-book\nroot: book/{only}\noptions:\n  numbered: 1\n"
        if (root / "book" / "references.md").exists():  # what the chapter cites
            toc += "chapters:\n- file: book/references\n"
    (stage / "_toc.yml").write_text(toc, encoding="utf-8")
    return stage


def _execute(given: Mapping[str, dict[str, Any]], stage: Path, settings: Settings) -> None:
    """Execute the chapters, one per core at a time, and leave their canonical notebooks and plots in the stage.

    Says in the end which records they stand on; ``BuildError`` where one failed: the others are ended.
    """
    log, progress = settings.build / "records.jsonl", settings.build / "progress.txt"
    for file in (log, progress):  # kernels say in them which records they obtained, and how far a training is
        file.write_text("", encoding="utf-8")
    handed = dataclasses.replace(
        session.current(),
        scale=settings.scale,
        device=settings.device,
        fresh=settings.fresh,
        figures=str(stage / "figures"),
        log=str(log),
        progress=str(progress),
        turn=str(settings.build / "lock.training"),
    )
    environment = {
        **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
        **handed.variable(),
        "IPYTHONDIR": str(settings.build / "ipython"),  # not the reader's own start-up files
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",  # plots belong on the page
        "PYTHONHASHSEED": "0",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    (stage / "figures").mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(workers.cores(), len(given)), context, _begin, (environment,))
    bar = len(given) == 1 and sys.stderr.isatty()  # of cells; several would write over each other
    try:
        with progress.open(encoding="utf-8") as lines:
            for late in (False, True):
                futures = {
                    pool.submit(_execute_notebook, stage / "book" / f"{name}.ipynb", values, settings.root, bar): name
                    for name, values in given.items()
                    if (name in SUMMARIES) == late
                }
                _follow(futures, lines, "\r\033[K" * bar)
    except BrokenProcessPool:
        raise BuildError("a chapter's process was killed; most often the machine had no memory left") from None
    except BaseException:
        for process in list(pool._processes.values()):  # whose kernels end with them
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    tell_records(log)


def _begin(environment: Mapping[str, str]) -> None:
    """What a process that executes chapters does first; its kernels inherit the environment."""
    os.environ.update(environment)
    workers.end_with_parent()


def _follow(futures: Mapping[Future[Any], str], lines: Iterable[str], over: str) -> None:
    """Show the lines that the kernels append to the progress file, as they come, and each chapter that is done.

    ``over`` is what takes a terminal back to the beginning of a line that holds a bar.
    """
    left = set(futures)
    while left:
        done, left = wait(left, timeout=0.5, return_when=FIRST_COMPLETED)
        for line in lines:
            print(f"{over}    {line.rstrip()}", flush=True)
        for one in done:
            seconds, told = one.result()
            for line in told:
                print(f"  {line}", file=sys.stderr)
            print(f"  {futures[one]}: executed in {words.seconds(seconds)}", flush=True)


READ = {"stored": "read from results/", "cached": "read from the cache"}  # where a record was found, in words
STARTS = 3  # of a kernel, whose ports another program may take between their choice and their use
# A kernel writes its own log, and tornado's of how it ends, to the terminal.
QUIET = "__import__('logging').getLogger('tornado').setLevel('CRITICAL')"


def _execute_notebook(path: Path, values: Mapping[str, Any], root: Path, bar: bool = False) -> tuple[float, list[str]]:
    """Execute a notebook of the stage, kernel in `root`, and make it canonical: seconds, and what cells told stderr."""
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    started = time.monotonic()
    for left in reversed(range(STARTS)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                papermill.execute_notebook(
                    path,
                    path,
                    parameters={name: list(one) if isinstance(one, tuple) else one for name, one in values.items()},
                    kernel_name="python3",  # whatever name an editor saved in the file
                    cwd=root,
                    progress_bar=bar and {"desc": f"  {path.stem}", "leave": False},
                    start_timeout=300,  # a busy machine is slow, not wrong
                    iopub_timeout=300,  # the same: of a kernel that has answered, but not yet sent what it printed
                    extra_arguments=["--log-level=CRITICAL", f"--IPKernelApp.exec_lines={QUIET}"],
                )
            break
        except PapermillExecutionError as error:
            if error.ename == "TrainingFailed":  # which says what and where
                raise BuildError(f"{path.name}: {error.evalue}") from None
            cell, traceback = error.cell_index + 1, "\n".join(error.traceback)
            if not sys.stderr.isatty():
                traceback = COLOURS.sub("", traceback)
            raise BuildError(f"{traceback}\n{path.name}, cell {cell} failed: {error.ename}: {error.evalue}") from None
        except RuntimeError as error:
            if not left or isinstance(error, DeadKernelError):
                raise BuildError(f"{path.name}: its kernel died; most often the machine had no memory left") from None
    executed = notebooks.read(path)
    notebooks.write(notebooks.canonical(executed), path)
    told = [
        f"{path.stem}, cell {cell}, on stderr: {line}"
        for cell, output in notebooks.outputs(executed)
        if output.get("name") == "stderr"
        for line in "".join(output["text"]).splitlines()
    ]
    return time.monotonic() - started, told


def _render(stage: Path, place: Path, log: Path, *, strict: bool) -> Path:
    """Render the stage into a fresh folder and put it at the place; the old site stays if anything fails."""
    fresh = place.with_name(f"{place.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    words = ["build", str(stage), "--path-output", str(fresh), "-n", "--keep-going", *(["-W"] if strict else [])]
    process = multiprocessing.get_context("spawn").Process(target=_jupyter_book, args=(words, log), daemon=True)
    process.start()
    process.join()
    text = COLOURS.sub("", log.read_text(encoding="utf-8"))
    log.write_text(text, encoding="utf-8")
    html = fresh / "_build" / "html"
    if process.exitcode or not (html / "index.html").exists():
        told = [line for line in text.splitlines() if re.search(r"WARNING|ERROR|Error:|Exception", line)]
        lines = "\n".join(told[:20] or text.splitlines()[-20:])
        raise BuildError(f"{lines}\njupyter-book could not render the pages (all it said: {log})")
    # Jupyter Book's own front page names no icon, so that browsers ask for one that is not there.
    front = (html / "index.html").read_text(encoding="utf-8")
    (html / "index.html").write_text(f'<link rel="icon" href="_static/favicon.svg">{front}', encoding="utf-8")
    lighten(html)
    if place.exists():
        place.rename(fresh / "old")
    html.rename(place)
    shutil.rmtree(fresh, ignore_errors=True)
    return place / "index.html"


def _jupyter_book(words: list[str], log: Path) -> None:
    """Run Jupyter Book's command in this process, which nothing else is for; what it says goes to a file."""
    workers.end_with_parent()
    with open(log, "wb") as told:
        for stream in (1, 2):
            os.dup2(told.fileno(), stream)
    warnings.simplefilter("ignore")
    from jupyter_book.cli.main import main

    os.chdir(words[1])
    main(words)
