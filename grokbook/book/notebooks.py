"""Executed notebooks made canonical: the same content gives the same bytes, whoever ran it and when.

papermill and Jupyter leave times, paths and random cell ids in an executed notebook, and cut the printed text into
pieces as it arrived. None of it is content. Without it two runs can be compared byte by byte, and no path of the
machine reaches the pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grokbook.words import unbroken

Notebook = dict[str, Any]  # the JSON object of an .ipynb file


def read(path: Path) -> Notebook:
    """The notebook's JSON object."""
    return json.loads(path.read_text(encoding="utf-8"))


def write(notebook: Notebook, path: Path) -> None:
    """Write as Jupyter does: one space of indentation, a newline at the end."""
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


def outputs(notebook: Notebook) -> Iterator[tuple[int, dict[str, Any]]]:
    """(cell number from 1, output) of every output."""
    for number, cell in enumerate(notebook["cells"], start=1):
        for output in cell.get("outputs", ()):
            yield number, output


def canonical(notebook: Notebook) -> Notebook:
    """The same notebook without anything that differs between two runs. The argument is not changed."""
    result: Notebook = json.loads(json.dumps(notebook))
    language = result["metadata"].get("language_info", {})
    result["metadata"] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {key: value for key, value in language.items() if key != "version"},
    }
    _dash_missing_facts(result)
    result["cells"] = [part for cell in result["cells"] for part in _apart(cell)]
    for number, cell in enumerate(result["cells"], start=1):
        cell["id"] = f"cell-{number}"
        for key in ("papermill", "execution"):
            cell["metadata"].pop(key, None)
        if "outputs" in cell:
            cell["outputs"] = _settled(cell["outputs"])
    return result


def _dash_missing_facts(notebook: Notebook) -> None:
    """A fact whose record is missing reads "–" in the prose; that a page computes each is a test's to check."""
    known = {
        output.get("metadata", {}).get("scrapbook", {}).get("name", "").removeprefix("application/papermill.record/")
        for _, output in outputs(notebook)
    }

    def dashed(text: str) -> str:
        return re.sub(r"\{glue:(?:text)?\}`([\w-]+)`", lambda found: found[0] if found[1] in known else "–", text)

    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = unbroken(dashed("".join(cell["source"])))
        elif figure := cell["metadata"].get("mystnb", {}).get("figure"):
            figure["caption"] = unbroken(dashed(figure["caption"]))


def _apart(cell: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What stands below a figure in a cell of its own: MyST captions every output of a figure's cell."""
    if "figure" not in cell["metadata"].get("mystnb", {}):
        yield cell
        return
    below = [one for one in cell["outputs"] if "<details" in "".join(one.get("data", {}).get("text/html", ""))]
    yield {**cell, "outputs": [one for one in cell["outputs"] if one not in below]}
    if below:
        yield {**cell, "metadata": {"tags": ["remove-input"]}, "source": "# below the figure", "outputs": below}


def _settled(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Pieces of stdout joined; no stderr (warnings carry temporary paths), no memory addresses."""
    settled: list[dict[str, Any]] = []
    for output in (one for one in outputs if one.get("name") != "stderr"):
        if output["output_type"] == "stream":
            output["text"] = "".join(output["text"])
            if settled and settled[-1]["output_type"] == "stream":
                settled[-1]["text"] += output["text"]
                continue
        elif plain := output.get("data", {}).get("text/plain"):
            output["data"]["text/plain"] = re.sub(r" at 0x[0-9a-f]+>", ">", "".join(plain))
        settled.append(output)
    return settled
