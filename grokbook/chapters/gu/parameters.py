"""The ranges of the chapter's parameters: what types alone cannot say."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from grokbook.book.parameters import budget_and_device, fraction, several, whole
from grokbook.chapters.gu import theory
from grokbook.tasks import modular_function

HEADS = 4
ORDERED = ("offsets", "form_fractions", "dnn_fractions", "depths", "moduli")  # a claim or figure reads them in order


def check(given: Mapping[str, Any] | None = None, /, **named: Any) -> None:
    """Refuse values with which the chapter cannot run.

    Args:
        given, named: parameter -> value; those of the notebook that are not mentioned here are not looked at.

    Raises:
        ValueError: one line that names the parameter, the value and what is allowed.
    """
    values = {**(given or {}), **named}
    for name, value in values.items():
        if name == "p":
            whole(name, value, 5)  # the strips of Table 1 leave no pair outside at smaller ones
        elif name in ("largest", "small_p", "seed_p"):
            whole(name, value, 3)
        elif name == "moduli":
            several(name, value, partial(whole, least=3))
        elif name in ("d_model", "layer_d", "start_d", "dnn_d"):
            _width(name, value)
        elif name.startswith("widths"):
            several(name, value, _width)
        elif name in ("depths", "prime_steps", "position_steps", "width_steps"):
            several(name, value, partial(whole, least=1))
        elif name.endswith(("seeds", "steps")) or name == "dnn_width":
            whole(name, value, 1)
        elif name in ("f", "form"):
            if not isinstance(value, str):
                raise ValueError(f"{name} = {value!r}: text is allowed, an expression in n and m")
        elif name in ("squares", "strips"):
            if not isinstance(value, list | tuple):
                raise ValueError(f"{name} = {value!r}: a list of whole numbers is allowed")
            for size in value:
                whole(name, size, 0)
        elif name == "offsets":
            several(name, value, partial(whole, least=0))
        elif name == "train_fraction":
            fraction(name, value)
        elif name.endswith("fractions"):
            several(name, value, fraction)
        else:
            budget_and_device(name, value)
        if name in ORDERED or name.startswith("widths"):
            _increasing(name, value)
    p = values.get("p")
    if p is None:
        return
    for name in ("f", "form"):
        if name in values:
            try:
                modular_function(values[name], p)
            except ValueError as error:
                raise ValueError(str(error).replace("f = ", f"{name} = ", 1)) from None
    for name in ("squares", "strips"):
        for size in values.get(name, ()):
            if size > p - 2:
                raise ValueError(
                    f"{name} = {size!r}: 0 to p - 2 = {p - 2} is allowed; a larger hole leaves no pair outside"
                )
    if "squares" in values and "strips" in values and not values["squares"] and not values["strips"]:
        raise ValueError("squares = [] and strips = []: one of them must name a size of a hole")
    for offset in values.get("offsets", ()):
        if offset > p:
            raise ValueError(
                f"offsets = {offset!r}: 0 to p = {p} is allowed; beyond it k + p exceeds the vocabulary of two operands"
            )
    if values.get("start_d", p + 1) < p + 1:
        raise ValueError(
            f"start_d = {values['start_d']}: at least p + 1 = {p + 1} is allowed; the Toeplitz start has a column "
            "a token"
        )
    for name, many in (("prime_steps", "moduli"), ("position_steps", "widths_positions"), ("width_steps", None)):
        wanted = 4 if many is None else len(values.get(many, values.get(name, ())))
        if name in values and len(values[name]) != wanted:
            raise ValueError(
                f"{name} = {values[name]}: {wanted} numbers are needed, one for each of "
                f"{many or 'figures 9 left, 9 right, 10, 11'}"
            )
    for name, value in values.items():
        if name.endswith("fractions"):
            for alpha in value:
                _trains(name, alpha, "p", p)
    if "train_fraction" in values:
        _check_train_fraction(values)


def _check_train_fraction(values: Mapping[str, Any]) -> None:
    """That it leaves pairs to train on in every table that it is used for, with and without holes."""
    name, alpha, p = "train_fraction", values["train_fraction"], values["p"]
    for of in ("p", "moduli", "largest", "small_p", "seed_p"):
        if of in values:
            for modulus in values[of] if of == "moduli" else [values[of]]:
                _trains(name, alpha, of, modulus)
    for of, kind in (("squares", "square"), ("strips", "strip")):
        for size in values.get(of, ()):
            inside = int(theory.hole(kind, p, size).sum())
            if not theory.training_size(p, alpha, inside, split="text"):
                raise ValueError(
                    f"{name} = {alpha}: with p = {p} and {of} = {size} it leaves none of the {p * p - inside} pairs "
                    "outside the hole to train on, drawn as the text says"
                )


def _trains(name: str, alpha: float, of: str, modulus: int) -> None:
    if not 0 < theory.training_size(modulus, alpha) < modulus**2:
        raise ValueError(f"{name} = {alpha}: with {of} = {modulus} it leaves no pair to train on or none to test")


def _width(name: str, value: Any) -> None:
    whole(name, value, HEADS)
    if value % HEADS:
        raise ValueError(f"{name} = {value}: multiples of {HEADS}, the number of heads, are allowed")


def _increasing(name: str, value: Any) -> None:
    if any(later <= one for one, later in pairwise(value)):
        raise ValueError(f"{name} = {value!r}: numbers in increasing order, none of them twice, are allowed")
