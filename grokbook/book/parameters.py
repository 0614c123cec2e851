"""Strict parameters: a chapter's declared names, types and ranges are checked before anything runs.

A notebook declares its parameters in the one cell tagged `parameters`, one annotated line each:

    width: int = 500        # hidden units

papermill itself accepts unknown names with a warning and checks no types, so every way into the book that is
ours comes through `resolve`. What types cannot say (p >= 2, 0 < train_fraction < 1) a chapter says in
`grokbook/chapters/<chapter>/parameters.py`, as `check(parameters: dict) -> None` raising ValueError. The
notebook calls the same function, so that plain papermill refuses the same values.

Standard library only (torch is asked for CUDA, and only when CUDA was asked for).
"""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import io
import json
import math
import re
import tokenize
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grokbook import session

DEVICES = ("auto", "cpu", "cuda")


class BadInput(ValueError):
    """Something the user asked for cannot be; the message is one line that says what is allowed."""


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell."""

    name: str
    type: str  # as annotated: int, float, bool, str, list[float], int | None, ...
    default: Any
    comment: str

    def convert(self, value: Any) -> Any:
        """`value` as this parameter's type; text (from a command line) is read as that type.

        Raises:
            BadInput: it is not one.
        """
        try:
            return _convert(value, ast.parse(self.type, mode="eval").body)
        except ValueError:
            meaning = f" ({self.comment})" if self.comment else ""
            raise BadInput(
                f"parameter {self.name} = {value!r} is not of type {self.type}{meaning}; "
                f"for example {self.name}={self.default!r}"
            ) from None


def suggest(name: str, known: Iterable[str]) -> str:
    """' (did you mean "x"?)' for the nearest known name, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f' (did you mean "{near[0]}"?)' if near else ""


def one_of(what: str, value: str, known: Iterable[str]) -> str:
    """`value` if it is known, else a BadInput that names what, the value, what is allowed and the nearest."""
    known = list(known)
    if value not in known:
        raise BadInput(f'no {what} "{value}"{suggest(value, known)}; there is: {", ".join(known) or "none"}')
    return value


def check_device(device: Any, scheduler: str | None = None) -> str:
    """auto, cpu or cuda; cuda only where there is one, which a scheduler's workers are asked themselves."""
    if device not in DEVICES:
        raise BadInput(f"device = {device!r}{suggest(str(device), DEVICES)}; allowed: {', '.join(DEVICES)}")
    if device == "cuda" and not (scheduler or session.current().scheduler):
        from grokbook.lazy import torch

        if not torch.cuda.is_available():
            raise BadInput('device = "cuda", but torch finds no CUDA device here; allowed: auto, cpu')
    return str(device)


def declared(notebook: Path) -> dict[str, Parameter]:
    """The parameters of a notebook, in order; empty if it has no cell tagged `parameters`.

    Raises:
        BadInput: the file is no notebook, or the cell is not made of annotated assignments of literals.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        tagged = [c for c in cells if "parameters" in c.get("metadata", {}).get("tags", ())]
        source = "".join(tagged[0]["source"]) if tagged else ""
        return declared_in(source)
    except FileNotFoundError:
        raise BadInput(f"there is no notebook {notebook}") from None
    except (ValueError, KeyError, TypeError, SyntaxError) as error:
        raise BadInput(f"cannot read the parameters cell of {notebook}: {error}") from None


def declared_in(source: str) -> dict[str, Parameter]:
    """The parameters that a parameters cell's source declares."""
    comments = {
        token.start[0]: token.string.lstrip("#").strip()
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    found = {}
    for statement in ast.parse(source).body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.expr() as value):
                default = ast.literal_eval(value)
                comment = comments.get(statement.end_lineno or statement.lineno, "")
                found[name] = Parameter(name, ast.unparse(annotation), default, comment)
                _convert(default, annotation)
            case _:
                raise ValueError(f"line {statement.lineno} is not of the form `name: type = value  # meaning`")
    return found


def parse_assignments(texts: Iterable[str]) -> dict[str, str]:
    """["p=59", "width=1024"] as {"p": "59", "width": "1024"}."""
    given: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise BadInput(f'a parameter is given as name=value, for example p=59; got "{text}"')
        if name in given:
            raise BadInput(f"parameter {name} is given twice: {given[name]} and {value.strip()}")
        given[name] = value.strip()
    return given


def convert_all(owner: str, known: Mapping[str, Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given values with their declared types; `owner` is whose parameters they are, for the messages."""
    for name, value in given.items():
        if name not in known:
            raise BadInput(
                f'{owner} has no parameter "{name}" (given as {name}={value}){suggest(name, known)}; '
                f"it takes: {', '.join(known) or 'none'}"
            )
    try:
        return {name: known[name].convert(value) for name, value in given.items()}
    except BadInput as error:
        raise BadInput(f"{owner}: {error}") from None


def resolve(notebook: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """The given parameters of a chapter's notebook, converted and checked together with the defaults.

    Args:
        notebook: book/<chapter>.ipynb.
        given: name -> value; text is read as the declared type.

    Returns:
        Only what was given, with Python values of the declared types.

    Raises:
        BadInput: unknown name, wrong type, a value the chapter refuses, no such device.
    """
    chapter = notebook.stem
    known = declared(notebook)
    values = convert_all(chapter, known, given)
    everything = {name: parameter.default for name, parameter in known.items()} | values
    if "device" in everything:
        check_device(everything["device"])
    try:
        chapter_check(chapter)(everything)
    except ValueError as error:
        raise BadInput(f"{chapter}: {error}") from None
    return values


def chapter_check(chapter: str) -> Callable[[dict[str, Any]], object]:
    """What refuses a chapter's values: its settings, or the ``check`` of its module ``parameters``."""
    from grokbook.chapters import chapters

    if made := chapters().get(chapter):
        return lambda parameters: made.settings(**parameters)
    name = f"grokbook.chapters.{chapter}"
    if importlib.util.find_spec(name) and importlib.util.find_spec(f"{name}.parameters"):
        return importlib.import_module(f"{name}.parameters").check
    return lambda parameters: None


def _convert(value: Any, annotation: ast.expr) -> Any:
    """`value` as the annotated type, or ValueError. Text is read as that type; nothing is rounded."""
    text = value.strip() if isinstance(value, str) else None
    match annotation:
        case ast.Name(id="int"):
            if text is not None and re.fullmatch(r"[+-]?[0-9]+(_[0-9]+)*", text):
                return int(text)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        case ast.Name(id="float"):
            if text is not None or (isinstance(value, int | float) and not isinstance(value, bool)):
                number = float(value)
                if math.isfinite(number):
                    return number
        case ast.Name(id="bool"):
            if text is not None and text.lower() in ("true", "false"):
                return text.lower() == "true"
            if isinstance(value, bool):
                return value
        case ast.Name(id="str"):
            if isinstance(value, str):
                return value
        case ast.Constant(value=None):
            if value is None or text in ("None", "none", "null"):
                return None
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            # None before str, else the text "none" would never mean None
            for option in sorted((left, right), key=lambda o: not isinstance(o, ast.Constant)):
                try:
                    return _convert(value, option)
                except ValueError:
                    pass
        case ast.Subscript(value=ast.Name(id="list" | "tuple" | "Sequence" as kind), slice=inner):
            element = inner.elts[0] if isinstance(inner, ast.Tuple) else inner
            items = text.strip("[]()").split(",") if text is not None else value
            if isinstance(items, list | tuple):
                items = [i for i in items if i != ""]
                converted = [_convert(i.strip(" '\"") if text is not None else i, element) for i in items]
                return converted if kind == "list" else tuple(converted)
        case _:
            raise ValueError(f"a parameter cannot be of type {ast.unparse(annotation)}")
    raise ValueError(f"{value!r} is not of type {ast.unparse(annotation)}")
