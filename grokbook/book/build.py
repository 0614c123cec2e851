"""From notebooks to pages: check the parameters, execute with papermill, render with Jupyter Book.

    book/*.ipynb --papermill--> _build/<kind>/stage/ --jupyter-book--> _build/html/

Everything is made beside the old result and moved into place at the end, so a build that fails or is
interrupted leaves what was there. The notebooks in book/ are never written to.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import json
import multiprocessing
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grokbook import session, words
from grokbook.book import notebooks, parameters
from grokbook.book.light import lighten
from grokbook.book.parameters import BadInput
from grokbook.train import workers
from grokbook.train.records import write_whole

ROOT = Path(__file__).resolve().parents[2]
SCALES = ("full", "quick")
SUMMARIES = ("intro", "scorecard", "gallery")  # chapters made of what all others leave in figures/
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class BuildError(RuntimeError):
    """The build stopped; the message says where and why, and needs no traceback of ours."""


@dataclass(frozen=True)
class Settings:
    """What `make` lets one choose about any build."""

    scale: str = "full"  # full: the notebooks' own parameters; quick: those of book/quick.yaml
    fresh: bool = False  # train again whatever is stored
    device: str = "auto"
    root: Path = field(default=ROOT)  # the repository
    output: Path | None = None  # where to build; root/_build if None

    def __post_init__(self) -> None:
        parameters.one_of("scale", self.scale, SCALES)
        parameters.check_device(self.device)

    @property
    def build(self) -> Path:
        return self.output or self.root / "_build"


def chapters(root: Path = ROOT) -> list[str]:
    """The pages that are notebooks: those of _toc.yml, in its order."""
    return [name for name in _toc_names(root) if (root / "book" / f"{name}.ipynb").exists()]


# ----------------------------------------------------------------------------------- the three things to make


def make_book(settings: Settings) -> Path:
    """Execute every chapter and render the book; returns the path of its index.html."""
    given = {name: plan(name, {}, settings) for name in chapters(settings.root)}
    with _building(settings, "the book") as log:
        stage = settings.build / "book" / "stage"
        _stage(settings.root, stage)
        _execute(given, stage, settings, log, figures=stage / "figures")
        index = _render(stage, settings.build / "html", settings.build / "jupyter-book.log", strict=True)
        log.report(index)
    return index


def make_figures(settings: Settings) -> Path:
    """Execute every chapter and put its plots into figures/ (at quick scale: into the build)."""
    given = {name: plan(name, {}, settings) for name in chapters(settings.root)}
    full = settings.scale == "full"
    place = settings.root / "figures" if full else settings.build / "figures-quick"
    with _building(settings, "the figures") as log:
        stage = settings.build / "figures" / "stage"
        _stage(settings.root, stage)
        shutil.rmtree(stage / "figures", ignore_errors=True)
        _execute(given, stage, settings, log, figures=stage / "figures")
        made = sorted(path.relative_to(stage / "figures") for path in (stage / "figures").rglob("*.*"))
        changed = [path for path in made if _replace_if_different(stage / "figures" / path, place / path)]
        for path in sorted(place.rglob("*.*")) if place.exists() else []:
            if path.relative_to(place) not in made:
                print(f"  {path}: no page makes this file any more")
        log.report(place, f"{len(made)} files, {len(changed)} of them new or changed")
    return place


def make_chapter(chapter: str, given: Mapping[str, Any], settings: Settings) -> Path:
    """Execute one chapter with other parameters and render it in a place of its own; returns its page."""
    parameters.one_of("chapter", chapter, chapters(settings.root))
    values = plan(chapter, given, settings)
    with _building(settings, f"chapter {chapter}") as log:
        place = settings.build / "chapter" / chapter
        stage = place / "stage"
        _stage(settings.root, stage, only=chapter)
        _execute({chapter: values}, stage, settings, log, figures=stage / "figures")
        # Not strict: a reference to a page that is left out here is no error.
        index = _render(stage, place / "html", place / "jupyter-book.log", strict=False)
        page = index.parent / "book" / f"{chapter}.html"
        log.report(page)
    return page


def plan(chapter: str, given: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """The checked parameters of a chapter at this scale; what is given goes before what quick.yaml says."""
    notebook = settings.root / "book" / f"{chapter}.ipynb"
    scaled = _quick(settings.root, chapter) if settings.scale == "quick" else {}
    return parameters.resolve(notebook, {**scaled, **given})


# ---------------------------------------------------------------------------------------------------- staging


def _toc_names(root: Path) -> list[str]:
    return re.findall(r"(?:root|file): book/(\w+)", (root / "_toc.yml").read_text(encoding="utf-8"))


def _quick(root: Path, chapter: str) -> dict[str, Any]:
    """A chapter's parameters at the quick scale: its own, or those of book/quick.yaml."""
    from grokbook.chapters import chapters as known

    if made := known().get(chapter):
        return made.quick
    import yaml

    path = root / "book" / "quick.yaml"
    try:
        scaled = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        for one in scaled:
            if not (root / "book" / f"{one}.ipynb").exists():
                raise BadInput(f'{path} names a chapter "{one}"{parameters.suggest(one, chapters(root))}')
        return dict(scaled.get(chapter, {}))
    except (yaml.YAMLError, AttributeError, TypeError) as error:
        raise BadInput(f"{path} is not of the form `chapter: {{parameter: value}}`: {error}") from None


def _stage(root: Path, stage: Path, only: str | None = None) -> None:
    """A fresh copy of all that the pages are rendered from; with `only`, the other chapters are left out."""
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    for name in ("_assets", "book", "figures", "results"):
        (stage / name).mkdir()
        if (root / name).exists():
            shutil.copytree(root / name, stage / name, ignore=shutil.ignore_patterns(".*"), dirs_exist_ok=True)
    shutil.copy(root / "_config.yml", stage)
    toc = (root / "_toc.yml").read_text(encoding="utf-8")
    if only:
        toc = f"format: jb-book\nroot: book/{only}\noptions:\n  numbered: 1\n"
        if (root / "book" / "references.md").exists():  # what the chapter cites
            toc += "chapters:\n- file: book/references\n"
    (stage / "_toc.yml").write_text(toc, encoding="utf-8")


# -------------------------------------------------------------------------------------------------- executing


def _execute(
    given: Mapping[str, dict[str, Any]], stage: Path, settings: Settings, log: RecordLog, figures: Path
) -> None:
    """Execute the chapters, one per core at a time, and leave their canonical notebooks in the stage.

    Raises:
        BuildError: a chapter failed; the others are ended.
    """
    handed = dataclasses.replace(
        session.current(),
        scale=settings.scale,
        device=settings.device,
        fresh=settings.fresh,
        figures=str(figures),
        log=str(log.path),
        progress=str(log.progress),
        turn=str(settings.build / "lock.training"),
    )
    environment = {
        **THREADS,
        **handed.variable(),
        "IPYTHONDIR": str(settings.build / "ipython"),  # not the reader's own start-up files
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",  # plots belong on the page
        "PYTHONHASHSEED": "0",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    figures.mkdir(parents=True, exist_ok=True)
    (settings.build / "lock.training").touch()
    rounds = [[name for name in given if (name in SUMMARIES) == late] for late in (False, True)]
    with _environment(environment), _shown(log.progress):
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(min(workers.cores(), len(given)), context, workers.end_with_parent)
        try:
            for names in rounds:
                futures = {
                    pool.submit(
                        execute_notebook,
                        settings.root / "book" / f"{name}.ipynb",
                        stage / "book" / f"{name}.ipynb",
                        given[name],
                        root=settings.root,
                    ): name
                    for name in names
                }
                for future in as_completed(futures):
                    seconds, told = future.result()
                    for line in told:
                        print(f"  {line}", file=sys.stderr)
                    print(f"  {futures[future]}: executed in {words.seconds(seconds)}", flush=True)
        except BrokenProcessPool:
            raise BuildError("a chapter's process was killed; most often the machine had no memory left") from None
        except BaseException:
            for process in list(pool._processes.values()):  # whose kernels end with them
                process.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def execute_notebook(
    source: Path, target: Path, values: Mapping[str, Any], *, root: Path = ROOT
) -> tuple[float, list[str]]:
    """Execute one notebook with papermill, kernel in `root`, and write it canonically to `target`.

    Returns:
        The seconds it took, and what cells wrote to stderr, with the cell.

    Raises:
        BuildError: a cell failed; names the notebook and the cell and holds the traceback.
    """
    import warnings

    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    started = time.monotonic()
    settled = ", ".join(f"{name}={value}" for name, value in values.items())
    if shown := session.current().progress:
        with open(shown, "a", encoding="utf-8") as lines:
            lines.write(f"{source.stem}: executing" + (f" with {settled}" if settled else "") + "\n")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            papermill.execute_notebook(
                source,
                target,
                parameters=dict(values),
                kernel_name="python3",  # whatever name an editor saved in the file
                cwd=root,
                progress_bar=False,
                start_timeout=300,  # a busy machine is slow, not wrong
                extra_arguments=["--log-level=CRITICAL"],  # the kernel's own log goes to the terminal
            )
    except PapermillExecutionError as error:
        cell = error.cell_index + 1
        traceback = "\n".join(error.traceback) if isinstance(error.traceback, list) else str(error.traceback)
        if not sys.stderr.isatty():
            traceback = re.sub(r"\x1b\[[0-9;]*m", "", traceback)
        raise BuildError(f"{traceback}\n{source.name}, cell {cell} failed: {error.ename}: {error.evalue}") from None
    except DeadKernelError:
        raise BuildError(f"{source.name}: its kernel died; most often the machine had no memory left") from None
    executed = notebooks.read(target)
    if failed := notebooks.errors(executed):
        raise BuildError(f"{source.name} holds an error in {failed[0]}")
    notebooks.write(notebooks.canonical(executed), target)
    told = [f"{source.stem}, cell {cell}, on stderr: {line}" for cell, line in notebooks.stderr_lines(executed)]
    return time.monotonic() - started, told


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """os.environ with these values while it lasts; kernels inherit it."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _shown(progress: Path) -> Iterator[None]:
    """Show the lines that the kernels append to the progress file, as they come."""
    stop = threading.Event()

    def follow() -> None:
        with progress.open(encoding="utf-8") as lines:
            while True:
                ending = stop.wait(0.5)
                for line in lines:
                    print(f"    {line.rstrip()}", flush=True)
                if ending:
                    return

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=2)


# -------------------------------------------------------------------------------------------------- rendering


def _render(stage: Path, place: Path, log: Path, *, strict: bool) -> Path:
    """Render the stage into a fresh folder and swap it in; the old site stays if anything fails."""
    fresh = place.with_name(place.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    words = ["build", str(stage), "--path-output", str(fresh), "-n", "--keep-going", *(["-W"] if strict else [])]
    with _environment({"PYTHONWARNINGS": "ignore"}):
        process = multiprocessing.get_context("spawn").Process(target=_jupyter_book, args=(words, log), daemon=True)
        process.start()
        process.join()
    text = re.sub(r"\x1b\[[0-9;]*m", "", log.read_text(encoding="utf-8"))
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
    _swap(html, place)
    shutil.rmtree(fresh, ignore_errors=True)
    return place / "index.html"


def _jupyter_book(words: list[str], log: Path) -> None:
    """Run Jupyter Book's command in this process, which nothing else is for; what it says goes to a file."""
    workers.end_with_parent()
    with open(log, "wb") as told:
        for stream in (1, 2):
            os.dup2(told.fileno(), stream)
    from jupyter_book.cli.main import main

    os.chdir(words[1])
    main(words)


def _swap(new: Path, place: Path) -> None:
    """Put the folder `new` at `place`; two renames, and what was there comes back if the second fails."""
    old = place.with_name(place.name + ".old")
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    try:
        new.rename(place)
    except BaseException:
        if old.exists():
            old.rename(place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _replace_if_different(new: Path, place: Path) -> bool:
    """Copy the file unless the same bytes are there already; the place never holds half a file."""
    content = new.read_bytes()
    if place.exists() and place.read_bytes() == content:
        return False
    write_whole(place, content)
    return True


# ------------------------------------------------------------------------------------ one build, from outside


class RecordLog:
    """What the kernels say about the records they obtained, and the closing lines of a build."""

    def __init__(self, build: Path) -> None:
        self.path = build / "records.jsonl"
        self.progress = build / "progress.txt"
        self.started = time.monotonic()
        self.path.write_text("", encoding="utf-8")
        self.progress.write_text("", encoding="utf-8")

    def entries(self) -> list[dict[str, Any]]:
        """One per record (by hash); its first mention counts: what was just trained is found afterwards."""
        text = self.path.read_text(encoding="utf-8")
        lines = [json.loads(line) for line in text.splitlines() if line.strip()]
        return list({line["hash"]: line for line in reversed(lines)}.values())[::-1]

    def report(self, result: Path, note: str = "") -> None:
        """Where the result is, how long it took, which records it stands on."""
        entries = self.entries()
        verbs = {"stored": "used as committed", "cached": "used from the local cache", "trained": "trained"}
        for source, verb in verbs.items():
            names = [
                f"{e['experiment']}{' (reduced)' if e['scale'] == 'reduced' else ''}"
                for e in entries
                if e["source"] == source
            ]
            if names:
                print(f"  records {verb}: {len(names)} ({words.listed(names, 12)})")
        reduced = [e["experiment"] for e in entries if e["scale"] == "reduced"]
        print(f"  records at reduced settings: {len(reduced)}" + (f" ({words.listed(reduced, 12)})" if reduced else ""))
        if note:
            print(f"  {note}")
        print(f"Done in {words.seconds(time.monotonic() - self.started)}: {result}", flush=True)


@contextlib.contextmanager
def _building(settings: Settings, what: str) -> Iterator[RecordLog]:
    """One build at a time in a build folder; a second one waits and says so."""
    build = settings.build
    build.mkdir(parents=True, exist_ok=True)
    with (build / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            print(f"Another build is at work in {build}; waiting for it.", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        scale = "" if settings.scale == "full" else f" at {settings.scale} scale"
        print(f"Building {what}{scale}.", flush=True)
        yield RecordLog(build)
