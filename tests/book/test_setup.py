"""Setting up: what `make` does before it does anything, without downloading anything here."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from grokbook.book import notebooks


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """The files that set-up reads, elsewhere."""
    for name in ("requirements.txt", "pyproject.toml", "Makefile", "tools/environment.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(root / name, tmp_path / name)
    return tmp_path


def set_up(checkout: Path, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["sh", "tools/environment.sh", "venv"],
        cwd=checkout,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def pretend_ready(checkout: Path) -> Path:
    """A venv as set-up leaves it, as far as set-up looks."""
    (checkout / "venv" / "bin").mkdir(parents=True)
    (checkout / "venv" / "bin" / "python").symlink_to(sys.executable)
    sums = subprocess.run("cat requirements.txt pyproject.toml | cksum", shell=True, cwd=checkout, capture_output=True)
    stamp = checkout / "venv" / ".ready"
    stamp.write_bytes(sums.stdout)
    return stamp


def test_serving_on_a_taken_port_is_refused_in_one_line(checkout):
    pretend_ready(checkout)
    (checkout / "_build" / "html").mkdir(parents=True)
    (checkout / "_build" / "html" / "index.html").touch()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = ["make", "serve", "VENV=venv", f"PORT={port}"]
        answer = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=60)
    told = [line for line in answer.stderr.splitlines() if not line.startswith("make:")]
    assert answer.returncode and told == [f"make serve: port {port} cannot be had; name another: make serve PORT=8001"]


def test_an_unsupported_python_is_refused_in_one_line(checkout):
    old = checkout / "python3.10"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.10.13\nexit 1\n')
    old.chmod(0o755)
    answer = set_up(checkout, PYTHON=str(old))
    assert answer.returncode == 1
    assert len(answer.stderr.splitlines()) == 1
    assert "needs Python 3.11, 3.12 or 3.13, and found Python 3.10.13" in answer.stderr
    assert not (checkout / "venv").exists()


def test_what_is_ready_is_left_alone_without_a_word(checkout):
    stamp = pretend_ready(checkout)
    os.utime(stamp, (0, 0))
    answer = set_up(checkout, PYTHON="/no/python/is/asked")
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
    assert stamp.stat().st_mtime > 0  # so that make does not come back


@pytest.mark.parametrize("changed", ["requirements.txt", "pyproject.toml"])
def test_other_pins_are_noticed(checkout, changed):
    pretend_ready(checkout)
    with (checkout / changed).open("a") as file:
        file.write("\n# changed\n")
    assert set_up(checkout, PYTHON="/no/such/python").returncode == 1


def test_a_second_set_up_waits_for_the_first(checkout):
    (checkout / "venv.lock").symlink_to(str(os.getpid()))
    command = ["sh", "tools/environment.sh", "venv"]
    waiting = subprocess.Popen(command, cwd=checkout, stderr=subprocess.PIPE, text=True)
    assert "waiting" in waiting.stderr.readline()  # type: ignore[union-attr]
    pretend_ready(checkout)  # the first one ends well
    (checkout / "venv.lock").unlink()
    assert waiting.wait(timeout=30) == 0


def test_a_set_up_that_was_killed_does_not_block_the_next_one(checkout):
    (checkout / "venv.lock").symlink_to("999999999")
    python = checkout / "python"
    python.write_text('#!/bin/sh\n[ "$1" = -c ] || [ "$1" = --version ]\n')  # a good version, but without venv
    python.chmod(0o755)
    answer = set_up(checkout, PYTHON=str(python))
    assert answer.returncode == 1
    assert "cannot make a virtual environment" in answer.stderr
    assert not (checkout / "venv.lock").is_symlink()


@pytest.mark.parametrize("target", ["book", "figures", "chapter", "status", "test"])
def test_every_target_sets_up_first(checkout, target):
    told = subprocess.run(["make", "-n", target], cwd=checkout, capture_output=True, text=True)
    assert told.stdout.splitlines()[0] == "sh tools/environment.sh .venv"


def test_options_of_make_reach_the_command_line(checkout):
    bin_ = checkout / ".venv" / "bin"
    bin_.mkdir(parents=True)
    (bin_ / "python").write_text('#!/bin/sh\necho "$@"\n')
    (bin_ / "python").chmod(0o755)
    (checkout / ".venv" / ".ready").write_text("")
    options = ["CHAPTER=gromov", "PARAMS=p=59 fractions=[0.1,0.2]", "SCALE=quick", "FRESH=1", "DEVICE=cpu"]
    told = subprocess.run(["make", "chapter", *options], cwd=checkout, capture_output=True, text=True).stdout
    assert told == "-m grokbook run gromov --scale quick --device cpu --fresh -p p=59 fractions=[0.1,0.2]\n"
    told = subprocess.run(["make", "book", "FRESH=0"], cwd=checkout, capture_output=True, text=True).stdout
    assert told == "-m grokbook book\n"


def test_where_the_book_is_published_is_told_to_its_buttons_its_citation_and_colab(root, tmp_path):
    for name in ("tools/address.py", "_config.yml", "CITATION.cff", "_assets/extra/404.html", "book/gromov.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(root / name, tmp_path / name)
    told = [sys.executable, "tools/address.py", "https://github.com/a/b", "https://a.github.io/b/"]
    subprocess.run(told, cwd=tmp_path, check=True)
    config = yaml.safe_load((tmp_path / "_config.yml").read_text())
    assert config["repository"] == {"url": "https://github.com/a/b", "branch": "published"}
    assert config["html"]["baseurl"] == "https://a.github.io/b/"
    assert yaml.safe_load((tmp_path / "CITATION.cff").read_text())["url"] == "https://a.github.io/b/"
    assert 'href="/b/"' in (tmp_path / "_assets" / "extra" / "404.html").read_text()
    first = next(
        cell for cell in notebooks.read(tmp_path / "book" / "gromov.ipynb")["cells"] if cell["cell_type"] == "code"
    )
    assert "--branch published https://github.com/a/b grokking-book" in "".join(first["source"])
