"""Tasks: labelled tables to learn, and how they are split. Drawn by numpy: a seed means the same everywhere."""

from __future__ import annotations

import ast
import itertools
import operator
import re
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from grokbook import checks

Recipe = Literal["trainer", "diagram"]

SIGNS: dict[type, Any] = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
_ALLOWED = "n, m, whole numbers, +, -, * and ** (for division see grokbook.chapters.power.tasks)"


@dataclass(frozen=True)
class ModularTask:
    """Learn f(n, m) mod p from a random share of its table.

    ``ValueError`` for a value out of its range, or an expression with anything else in it.
    """

    p: int = 97  #: modulus, from 2 to 5000, prime or not
    f: str = "n + m"  #: an expression in ``n`` and ``m``, such as ``"n**2 + m**2 + n*m"``
    train_fraction: float = 0.5  #: share of the p**2 ordered pairs that is trained on, strictly between 0 and 1

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
        mask = np.zeros(self.p**2, bool)
        mask[np.random.default_rng([seed, 0]).permutation(len(mask))[: self.train_size]] = True
        return mask


@lru_cache(maxsize=64)
def modular_function(expression: str, p: int) -> NDArray[np.int64]:
    """The (p, p) table over Z_p of a polynomial in n (rows) and m (columns); ``ValueError`` for anything else."""

    def value(node: ast.AST) -> NDArray[np.int64] | int:
        match node:
            case ast.Name("n" | "m" as name):
                return np.arange(p).reshape((-1, 1) if name == "n" else (1, -1))
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
        found = value(ast.parse(expression, mode="eval").body)
    except (SyntaxError, TypeError):
        raise ValueError(f"f = {expression!r}: not an expression; {_ALLOWED} are understood") from None
    except (RecursionError, MemoryError):
        raise ValueError(f"f = {expression[:20]!r}...: nested too deeply to be read") from None
    table = np.broadcast_to(np.asarray(found, np.int64), (p, p)).copy()
    table.flags.writeable = False
    return table


class _Drawn:
    """A task of pairs, ``samples``, whose seed decides targets and training set together."""

    def __post_init__(self: Any) -> None:
        checks.sizes(self, target_size=0)
        checks.one_of("recipe", self.recipe or "trainer", get_args(Recipe))
        rows = len(self.samples)
        if not 0 < self.train_size < rows:
            raise ValueError(
                f"train_size = {self.train_size}: between 1 and {rows - 1} of the {rows} samples is needed, so that "
                "neither the training nor the test set is empty"
            )

    def targets(self, seed: int) -> NDArray[np.float64] | None:
        """What the outputs are to be for each answer, (labels, target_size); None is one-hot."""
        return self._draw(seed)[0]

    def in_train(self, seed: int) -> NDArray[np.bool_]:
        """Which samples a seed trains on, (rows,)."""
        return self._draw(seed)[1]

    def _draw(self: Any, seed: int) -> tuple[NDArray[np.float64] | None, NDArray[np.bool_]]:
        """Both, by NumPy's legacy generator, whose stream is the one of the publications."""
        generator, (unused, chosen) = np.random.RandomState(seed), self._given()
        generator.normal(size=unused)
        drawn = generator.normal(size=(self.labels, self.target_size)) if self.target_size else None
        mask = np.zeros(len(self.samples), bool)
        mask[generator.choice(len(mask), self.train_size, replace=False) if chosen is None else chosen] = True
        return drawn, mask

    def _given(self) -> tuple[tuple[int, int], list[int] | None]:
        """The shape of numbers that are drawn first and not used; the training set, where it is not drawn."""
        return (0, 0), None


@dataclass(frozen=True)
class AdditionTask(_Drawn):
    """Learn i + j of two symbols from some of its samples: the toy problem of Liu et al. (2022), section 3.

    A sample is unordered, and enters as the number of times that each symbol occurs in it, so that its product with
    a table of embeddings is E_i + E_j. ``ValueError`` for a value out of range, a pair outside the table, an empty or a
    full training set.
    """

    p: int  #: number of symbols, at least 2
    train_size: int  #: how many samples are trained on
    target_size: int = 30  #: answers are this many normal numbers, drawn from the seed; 0 leaves them one-hot
    modular: bool = False  #: take the sum mod p
    ordered: bool = False  #: take all p**2 ordered pairs, (i, j) and (j, i) being two samples
    pairs: tuple[tuple[int, int], ...] = ()  #: the training set, if it is not to be drawn from the seed
    #: In which order a seed is used up, for the step counts of published trainings to come out again: ``"trainer"``
    #: draws targets and then the training set; ``"diagram"``, of the phase diagrams, begins with p times
    #: ``target_size`` (or the number of answers) normal numbers that nobody needs.
    recipe: Recipe = "trainer"

    version: ClassVar[int] = 1
    split_fields: ClassVar[tuple[str, ...]] = ("train_size", "pairs")

    def __post_init__(self) -> None:
        checks.sizes(self, p=2)
        if self.pairs:
            if outside := [pair for pair in self.pairs if not all(0 <= symbol < self.p for symbol in pair)]:
                raise ValueError(f"pairs: {outside[0]} is outside the table; symbols are 0 to {self.p - 1}")
            if self.train_size != (held := len(self._rows_of_pairs())):
                raise ValueError(f"train_size = {self.train_size}: pairs holds {held} different samples")
        super().__post_init__()

    @property
    def samples(self) -> NDArray[np.int64]:
        """All samples in lexicographic order, (rows, 2)."""
        i, j = np.divmod(np.arange(self.p**2), self.p)
        return np.stack([i, j], -1)[slice(None) if self.ordered else i <= j]

    @property
    def labels(self) -> int:
        """How many answers there are."""
        return self.p if self.modular else 2 * self.p - 1

    def table(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """How often each symbol is in each sample, (rows, p), and the answers, (rows,)."""
        one_hot = np.eye(self.p, dtype=np.float32)
        answers = self.samples.sum(-1)
        return one_hot[self.samples].sum(1), answers % self.p if self.modular else answers

    def train_pairs(self, seed: int) -> NDArray[np.int64]:
        """The samples that a seed trains on, (train_size, 2)."""
        return self.samples[self.in_train(seed)]

    def _given(self) -> tuple[tuple[int, int], list[int] | None]:
        unused = (self.p, self.target_size or self.labels) if self.recipe == "diagram" else (0, 0)
        return unused, self._rows_of_pairs() if self.pairs else None

    def _rows_of_pairs(self) -> list[int]:
        wanted = {pair if self.ordered else tuple(sorted(pair)) for pair in self.pairs}
        return [row for row, sample in enumerate(self.samples.tolist()) if tuple(sample) in wanted]


@dataclass(frozen=True)
class GroupTask(_Drawn):
    """Learn the product of two elements of a group: Liu et al. (2022), appendix H.

    ``ValueError`` for an unknown group, or a value out of range.
    """

    group: str  #: a name that `group_table` knows
    train_size: int  #: how many of the ordered pairs are trained on
    target_size: int = 30  #: as in `AdditionTask`
    #: ``"diagram"`` writes products in the other order, (a b)(x) = b(a(x)), as behind the published diagram.
    recipe: Recipe | None = field(default=None, metadata={"recipe": "where set"})

    version: ClassVar[int] = 1
    split_fields: ClassVar[tuple[str, ...]] = ("train_size",)

    @property
    def labels(self) -> int:
        """The group's order."""
        return len(group_table(self.group))

    @property
    def samples(self) -> NDArray[np.int64]:
        """All ordered pairs, (rows, 2)."""
        return np.stack(np.divmod(np.arange(self.labels**2), self.labels), -1)

    def table(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Both factors one-hot, (rows, 2, order), and the index of their product, (rows,)."""
        products = group_table(self.group)
        answers = products.T if self.recipe == "diagram" else products
        return np.eye(self.labels, dtype=np.float32)[self.samples], answers.reshape(-1)


@cache
def group_table(group: str) -> NDArray[np.int64]:
    """The table of products of a group: (n, n), the entry (a, b) the index of a b; read-only.

    "S2" to "S5" are permutations, in lexicographic order and composed so that (a b)(x) = a(b(x)); "Z" and a number is
    addition modulo that number. Raises ``ValueError`` for another name.
    """
    if not re.fullmatch(r"S[2-5]|Z[1-9]\d{0,2}", str(group)):
        raise ValueError(f"group must be S2 to S5 or Z followed by a number up to 999, as 'S3' or 'Z6', got {group!r}")
    number = int(group[1:])
    if group[0] == "Z":
        table = np.add.outer(np.arange(number), np.arange(number)) % number
    else:
        elements = list(itertools.permutations(range(number)))
        where = {element: k for k, element in enumerate(elements)}
        table = np.array([[where[tuple(a[x] for x in b)] for b in elements] for a in elements])
    table.flags.writeable = False
    return table
