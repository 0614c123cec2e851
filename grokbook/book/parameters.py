"""Strict parameters: names, types and ranges are checked before anything runs, against a chapter's ``Settings``.

papermill itself accepts unknown names with a warning and checks no types, so every way into the book that is ours comes
through `resolve`. The notebook makes the same settings, so that plain papermill refuses the same values.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from grokbook import session
from grokbook.settings import DEVICES, declared, given_as, read
from grokbook.words import suggest


class BadInput(ValueError):
    """Something the user asked for cannot be; the message is one line that says what is allowed."""


@contextlib.contextmanager
def asked_of(owner: str = "") -> Iterator[None]:
    """While it lasts, a ``ValueError`` is what the user asked for and ``owner`` refuses: a BadInput."""
    try:
        yield
    except ValueError as error:
        raise BadInput(f"{owner}: {error}" if owner else str(error)) from None


def one_of(what: str, value: str, known: Iterable[str], meant: Iterable[str] = ()) -> str:
    """`value` if it is known, else a BadInput that names what, the value, what is allowed and the nearest."""
    known = list(known)
    if value not in known:
        raise BadInput(f'no {what} "{value}"{suggest(value, [*known, *meant])}; there is: {", ".join(known) or "none"}')
    return value


def check_device(device: str, scheduler: str | None = None) -> None:
    """Refuse what is no device; cuda only where there is one, which a scheduler's workers are asked themselves."""
    one_of("device", device, DEVICES)
    if device == "cuda" and not (scheduler or session.current().scheduler):
        from grokbook.lazy import torch

        if not torch.cuda.is_available():
            raise BadInput('device = "cuda", but torch finds no CUDA device here; allowed: auto, cpu')


def parse_assignments(texts: Iterable[str]) -> dict[str, str]:
    """["p=59", "width=1024"] as {"p": "59", "width": "1024"}."""
    given: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name.isidentifier():
            raise BadInput(f'a parameter is given as name=value, for example p=59; got "{text}"')
        if name in given:
            raise BadInput(f"parameter {name} is given twice: {given[name]} and {value}")
        given[name] = value
    return given


def convert(owner: str, known: Mapping[str, tuple[Any, Any]], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given values with their declared types, text read as them; ``BadInput`` for an unknown name, or another type.

    They are parameters of ``owner``, which takes those ``known``, name -> type and default (see ``settings.declared``).
    """
    values = {}
    for name, value in given.items():
        if name not in known:
            told = f'{owner} has no parameter "{name}" (given as {name}={value}){suggest(name, known)}'
            raise BadInput(f"{told}; it takes: {', '.join(known) or 'none'}")
        kind, default = known[name]
        try:
            values[name] = read(value, kind)
        except ValueError:
            told = f"{kind.__name__ if isinstance(kind, type) else kind}{', or not finite' * (kind is float)}"
            told += f"; for example {given_as(name, default)}" * (default != ())
            raise BadInput(f"{owner}: {name} = {value!r} is not of type {told}") from None
    return values


def resolve(page: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The given parameters of a page, and no others, checked with the defaults of the rest, as its settings hold them.

    ``BadInput`` for an unknown name, a wrong type, a value that the page's settings refuse, or no such device.
    """
    settings = settings_of(page)
    values = convert(page, declared(settings), given)
    with asked_of(page):
        made = settings(**values)
    check_device(values.get("device", "auto"))
    return {name: getattr(made, name) for name in values}


def settings_of(page: str) -> Callable[..., Any]:
    """The class ``Settings`` in the package of a page; a page without one takes no parameters."""
    name = f"grokbook.chapters.{page}"
    module = importlib.import_module(name) if importlib.util.find_spec(name) else None
    return getattr(module, "Settings", lambda: None)
