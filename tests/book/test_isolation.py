"""What may import what: training stands without the book's packages, drawing without torch."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import grokbook

BOOK = "matplotlib seaborn papermill ipykernel IPython nbformat nbclient yaml jupyter_book sphinx"
DRAWING = "drawing drawn plotting lint fold widgets cards tables gallery notebooks figures page"  # last parts of names

MODULES = [module.name for module in pkgutil.walk_packages(grokbook.__path__, "grokbook.")]


def imports_without(blocked: str, modules: list[str]) -> subprocess.CompletedProcess:
    """Import the modules in a fresh interpreter where the blocked packages cannot be imported."""
    code = f"""
import importlib, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if any(name == b or name.startswith(b + ".") for b in {blocked.split()!r}):
            raise ModuleNotFoundError(f"{{name}} is blocked in this test", name=name)

sys.meta_path.insert(0, Blocked())
for name in {modules!r}:
    importlib.import_module(name)
print("ok")
"""
    root = Path(grokbook.__file__).parent.parent
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)


def test_the_training_side_needs_none_of_the_books_packages():
    modules = [name for name in MODULES if name.rsplit(".", 1)[-1] not in DRAWING.split()]
    assert "grokbook.__main__" in modules and "grokbook.book" in modules
    answer = imports_without(BOOK, modules)
    assert answer.stdout == "ok\n", answer.stderr


def test_torch_is_asked_for_by_a_training_only():
    assert {"grokbook.book.widgets", "grokbook.train.engine"} <= set(MODULES)
    answer = imports_without("torch", MODULES)
    assert answer.stdout == "ok\n", answer.stderr


def test_a_blocked_package_is_noticed():
    answer = imports_without("json", ["grokbook.book.notebooks"])
    assert "is blocked in this test" in answer.stderr
