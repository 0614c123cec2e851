"""Tasks: labelled tables to learn, and how they are split. Drawn by numpy: a seed means the same everywhere."""

from __future__ import annotations

import ast
import itertools
import operator
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

SIGNS: dict[type, Any] = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
_ALLOWED = "n, m, whole numbers, +, -, * and **"


@dataclass(frozen=True)
class ModularTask:
    """Learn f(n, m) mod p from a random share of its table.

    Args:
        p: modulus, from 2 to 5000, prime or not.
        f: an expression in ``n`` and ``m``, such as ``"n + m"`` or ``"n**2 + m**2 + n*m"``.
        train_fraction: share alpha of the p**2 ordered pairs that is trained on, strictly between 0 and 1.

    Raises:
        ValueError: a value outside those ranges, or an expression with anything else in it.
    """

    p: int = 97
    f: str = "n + m"
    train_fraction: float = 0.5
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not 2 <= self.p <= 5000:  # of a table that is made whole
            raise ValueError(f"p = {self.p}: the modulus must be a whole number from 2 to 5000")
        if not 0 < self.train_fraction < 1:
            raise ValueError(f"train_fraction = {self.train_fraction}: it must lie strictly between 0 and 1")
        if not 0 < self.train_size < self.p**2:
            raise ValueError(
                f"train_fraction = {self.train_fraction} leaves {self.train_size} of {self.p**2} pairs to train on: "
                "both the training and the test set need at least one"
            )
        modular_function(self.f, self.p)

    @property
    def train_size(self) -> int:
        """Number of pairs trained on."""
        return round(self.train_fraction * self.p**2)

    def table(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All ordered pairs, (p*p, 2), row n*p + m, and their answers, (p*p,)."""
        n, m = np.divmod(np.arange(self.p**2), self.p)
        return np.stack([n, m], -1), modular_function(self.f, self.p).reshape(-1)

    def in_train(self, seed: int) -> NDArray[np.bool_]:
        """Which rows of the table a seed trains on: (p*p,), ``train_size`` of them true."""
        chosen = np.random.default_rng([seed, 0]).permutation(self.p**2)[: self.train_size]
        mask = np.zeros(self.p**2, bool)
        mask[chosen] = True
        return mask


@lru_cache(maxsize=64)
def modular_function(expression: str, p: int) -> NDArray[np.int64]:
    """The (p, p) table of an expression in n (rows) and m (columns) over Z_p.

    Raises:
        ValueError: the expression is not a polynomial in n and m.
    """

    def value(node: ast.AST) -> NDArray[np.int64] | int:
        match node:
            case ast.Expression(body):
                return value(body)
            case ast.Name("n"):
                return np.arange(p)[:, None]
            case ast.Name("m"):
                return np.arange(p)[None, :]
            case ast.Constant(int(number)) if not isinstance(number, bool):
                return number % p
            case ast.UnaryOp(ast.USub(), operand):
                return -value(operand) % p
            case ast.BinOp(left, sign, right) if type(sign) in SIGNS:
                return SIGNS[type(sign)](value(left), value(right)) % p
            case ast.BinOp(left, ast.Pow(), ast.Constant(int(exponent))) if 0 <= exponent <= 64:
                base, power = value(left), np.ones((1, 1), np.int64)
                for _ in range(exponent):
                    power = power * base % p
                return power
        raise ValueError(f"f = {expression!r}: only {_ALLOWED} are understood, not {ast.unparse(node)!r}")

    try:
        found = value(ast.parse(expression, mode="eval"))
    except (SyntaxError, TypeError):
        raise ValueError(f"f = {expression!r}: not an expression; {_ALLOWED} are understood") from None
    except (RecursionError, MemoryError):
        raise ValueError(f"f = {expression[:20]!r}...: nested too deeply to be read") from None
    table = np.broadcast_to(np.asarray(found, np.int64), (p, p)).copy()
    table.flags.writeable = False
    return table


@cache
def group_table(group: str) -> NDArray[np.int64]:
    """The table of products of a group: (n, n), the entry (a, b) the index of a b; read-only.

    Args:
        group: "S2" to "S5" are permutations, in lexicographic order and composed so that (a b)(x) = a(b(x)); "Z" and a
            number is addition modulo that number.

    Raises:
        ValueError: another name.
    """
    name = re.fullmatch(r"([SZ])([1-9]\d{0,2})", str(group))
    kind, number = (name[1], int(name[2])) if name else ("", 0)
    if kind == "Z":
        table = np.add.outer(np.arange(number), np.arange(number)) % number
    elif kind == "S" and 2 <= number <= 5:
        elements = list(itertools.permutations(range(number)))
        where = {element: k for k, element in enumerate(elements)}
        table = np.array([[where[tuple(a[x] for x in b)] for b in elements] for a in elements])
    else:
        raise ValueError(f"group must be S2 to S5 or Z followed by a number up to 999, as 'S3' or 'Z6', got {group!r}")
    table.flags.writeable = False
    return table
