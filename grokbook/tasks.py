"""Tasks: labelled tables to learn, and how they are split. Drawn by numpy: a seed means the same everywhere."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

_ALLOWED = "n, m, whole numbers, +, -, * and **"


@dataclass(frozen=True)
class ModularTask:
    """Learn f(n, m) mod p from a random share of its table.

    Args:
        p: modulus, at least 2, prime or not.
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
        if self.p < 2:
            raise ValueError(f"p = {self.p}: the modulus must be a whole number of at least 2")
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
            case ast.Constant(int(number)):
                return number % p
            case ast.UnaryOp(ast.USub(), operand):
                return -value(operand) % p
            case ast.BinOp(left, ast.Add(), right):
                return (value(left) + value(right)) % p
            case ast.BinOp(left, ast.Sub(), right):
                return (value(left) - value(right)) % p
            case ast.BinOp(left, ast.Mult(), right):
                return (value(left) * value(right)) % p
            case ast.BinOp(left, ast.Pow(), ast.Constant(int(exponent))) if 0 <= exponent <= 64:
                base, power = value(left), np.ones((1, 1), np.int64)
                for _ in range(exponent):
                    power = power * base % p
                return power
        raise ValueError(f"f = {expression!r}: only {_ALLOWED} are understood, not {ast.unparse(node)!r}")

    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError:
        raise ValueError(f"f = {expression!r}: not an expression; {_ALLOWED} are understood") from None
    table = np.broadcast_to(np.asarray(value(tree), np.int64), (p, p)).copy()
    table.flags.writeable = False
    return table
