"""Strategies of correlated noise: lower-triangular matrices C, of which C⁻¹Z is the noise.

A strategy is Toeplitz, C_ij = c_{i−j}, or given entry by entry. Its numbers are balls at flint's
precision, and exact integers over one denominator where these are not too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from math import lcm
from typing import Any, TypeAlias, final

from flint import arb, arb_mat, arb_series, fmpz_mat

from dpassay.accountant.core.description import Description, declared
from dpassay.accountant.core.validate import Field, Rationals, rational
from dpassay.accountant.errors import InvalidInputError, expected, suggestion
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.landau import coefficients
from dpassay.accountant.numbers.precision import cached_property, ctx

Row: TypeAlias = tuple[Fraction, ...]
Given: TypeAlias = "str | Row | tuple[Row, ...] | BufferedToeplitz"
"""What the notation holds: a name, coefficients, rows, or a recursion."""

NAMES = ("identity", "square-root", "tree")
_MOST_ROWS = 1024
"""Rows that are written out: a million entries."""
_MOST_BITS = 1 << 27
"""Bits of all coefficients together that are kept exactly, 16 MB; others are balls."""
_MOST_GRAM_BITS = 1 << 31
"""Bits of all inner products together, 256 MB."""


@declared
class BufferedToeplitz(Description):
    """Toeplitz coefficients c_0 = 1 and c_i = Σ_j ω_j θ_jⁱ⁻¹: noise that few buffers make.

    Dvijotham, McMahan, Pillutla, Steinke and Thakurta, "Efficient and Near-Optimal Noise Generation
    for Streaming Differential Privacy" (2024): BLT, one buffer for each j.

    Parameters
    ----------
    output_scales
        ω, rational.
    decays
        θ, rational, as many.
    """

    output_scales: Rationals = Rationals()
    decays: Rationals = Rationals()

    def __post_init__(self) -> None:
        if len(self.decays) != len(self.output_scales):
            raise InvalidInputError(
                f"Expected as many decays as output_scales, not {len(self.decays)} and "
                f"{len(self.output_scales)}. Give one of each for a buffer."
            )

    @property
    def nonnegative(self) -> bool:
        """Whether all ω and θ are."""
        return min(self.output_scales) >= 0 and min(self.decays) >= 0

    @property
    def decreases(self) -> bool:
        """Whether 1 ≥ c_1 ≥ c_2 ≥ … ≥ 0, as it is for ω ≥ 0 of sum at most 1, θ in [0, 1]."""
        return self.nonnegative and sum(self.output_scales) <= 1 and max(self.decays) <= 1


@final
class StrategyField(Field[Given, Any]):
    """A strategy: a name, Toeplitz coefficients, the rows of a matrix, or a `BufferedToeplitz`."""

    def read(self, value: Any) -> Given:
        """Convert, naming what is wrong."""
        name = self._name
        if isinstance(value, BufferedToeplitz):
            return value
        listed = value.tolist() if hasattr(value, "tolist") else value
        if isinstance(listed, str):
            if listed not in NAMES:
                raise InvalidInputError(
                    f"Unknown {name} {listed[:40]!r}. {suggestion(listed, NAMES)} Or give Toeplitz "
                    "coefficients [1, '1/2'], rows [[1, 0], ['1/2', 1]], or BufferedToeplitz(…)."
                )
            return listed
        if not isinstance(listed, Sequence) or not len(listed):
            raise expected(
                name,
                value,
                f"to be a name ({', '.join(NAMES)}), a list of Toeplitz coefficients or of rows",
                "Write [1, '1/2'] or [[1, 0], ['1/2', 1]].",
            )
        if isinstance(listed[0], Sequence) and not isinstance(listed[0], str):
            return self._rows(listed)
        found = tuple(rational(f"{name}[{i}]", entry) for i, entry in enumerate(listed))
        if not found[0]:
            raise expected(f"{name}[0]", 0, "≠ 0", "The diagonal of C must be invertible.")
        return found

    def _rows(self, listed: Sequence[Any]) -> tuple[Row, ...]:
        name, size = self._name, len(listed)
        if size > _MOST_ROWS:
            raise InvalidInputError(
                f"Expected {name} of at most {_MOST_ROWS} rows, not {size}. Give Toeplitz "
                "coefficients, or a name."
            )
        rows = []
        for i, row in enumerate(listed):
            if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != size:
                length = len(row) if isinstance(row, Sequence) else "no"
                raise InvalidInputError(
                    f"Expected {name}[{i}] to have {size} entries, one for each row, not {length}. "
                    f"Write a square matrix, with zeros above its diagonal."
                )
            found = tuple(rational(f"{name}[{i}][{j}]", entry) for j, entry in enumerate(row))
            above = next((j for j in range(i + 1, size) if found[j]), None)
            if above is not None:
                raise expected(
                    f"{name}[{i}][{above}]",
                    row[above],
                    "to be 0",
                    "A strategy is lower triangular: the noise of a step uses no later step.",
                )
            if not found[i]:
                raise expected(
                    f"{name}[{i}][{i}]",
                    row[i],
                    "≠ 0",
                    "C must be invertible: no 0 on its diagonal.",
                )
            rows.append(found)
        return tuple(rows)


@final
@dataclass(frozen=True)
class Toeplitz:
    """C_ij = c_{i−j} for steps i ≥ j, the first of which is 0; c is 0 from `bands` on."""

    given: str | Row | BufferedToeplitz
    steps: int
    most_bands: int | None

    @property
    def bands(self) -> int:
        """How many coefficients there are that may differ from 0."""
        wanted = self.steps if self.most_bands is None else min(self.most_bands, self.steps)
        if self.given == "identity":
            return 1
        if isinstance(self.given, tuple):
            last = max(i for i, c in enumerate(self.given) if c)
            return min(wanted, last + 1)
        return wanted

    @cached_property
    def exact(self) -> tuple[list[int], int] | None:
        """The coefficients as integers over one denominator; None where these are too long."""
        if self.bands**2 * self._bits > _MOST_BITS:
            return None
        listed = self._fractions()
        below = lcm(*(c.denominator for c in listed))
        return [c.numerator * (below // c.denominator) for c in listed], below

    @property
    def _bits(self) -> int:
        """Bits by which the coefficients become longer with every one."""
        if isinstance(self.given, BufferedToeplitz):
            sizes = (abs(c.numerator) | c.denominator for c in self.given.decays)
            return sum(size.bit_length() for size in sizes)
        return 2 if self.given == "square-root" else 0

    def _fractions(self) -> list[Fraction]:
        if isinstance(self.given, tuple):
            return list(self.given[: self.bands])
        if isinstance(self.given, str):
            return coefficients(self.bands)
        found, powers = [Fraction(1)], list(self.given.output_scales)
        for _ in range(self.bands - 1):
            found.append(sum(powers, Fraction(0)))
            powers = [p * theta for p, theta in zip(powers, self.given.decays, strict=True)]
        return found

    def balls(self) -> list[arb]:
        """Return the coefficients at flint's precision."""
        if self.exact is not None:
            integers, below = self.exact
            return [arb(c) / below for c in integers]
        assert not isinstance(self.given, tuple)
        found = [arb(1)]
        if isinstance(self.given, str):
            for j in range(1, self.bands):
                found.append(found[-1] * (2 * j - 1) / (2 * j))
            return found
        powers = [ball(scale) for scale in self.given.output_scales]
        decays = [ball(theta) for theta in self.given.decays]
        for _ in range(self.bands - 1):
            found.append(sum(powers, arb(0)))
            powers = [p * theta for p, theta in zip(powers, decays, strict=True)]
        return found

    @cached_property
    def decreases(self) -> bool:
        """Whether c_0 ≥ c_1 ≥ … ≥ 0 is known."""
        if isinstance(self.given, str):
            return True
        if isinstance(self.given, BufferedToeplitz) and self.given.decreases:
            return True
        if self.exact is None:
            return False
        integers = self.exact[0]
        return integers[-1] >= 0 and all(a >= b for a, b in pairwise(integers))

    @cached_property
    def nonnegative(self) -> bool:
        """Whether c ≥ 0 is known."""
        if isinstance(self.given, BufferedToeplitz) and self.given.nonnegative:
            return True
        return self.decreases or (self.exact is not None and min(self.exact[0]) >= 0)

    def dense(self) -> Dense | None:
        """Return all entries; None where they are too many or not exact."""
        if self.exact is None or self.steps > _MOST_ROWS:
            return None
        integers, below = self.exact
        padded = [*integers, *[0] * (self.steps - self.bands)]
        rows = [[*padded[i::-1], *[0] * (self.steps - i - 1)] for i in range(self.steps)]
        return Dense(tuple(map(tuple, rows)), below)

    def squared_norms(self, pattern: Sequence[int]) -> list[Fraction] | None:
        """Return ‖C_{·i}‖² for the steps of a pattern; None where they are not exact."""
        if self.exact is None:
            return None
        integers, below = self.exact
        sums = [0, *accumulate(c * c for c in integers)]
        return [Fraction(sums[min(self.bands, self.steps - i)], below**2) for i in pattern]

    def prefix_coefficients(self) -> list[arb]:
        """Return those of B = A C⁻¹, Toeplitz too: the series 1/((1 − x) Σ c_j xʲ)."""
        with ctx.workcap(self.steps):
            series = arb_series(self.balls(), self.steps) * arb_series([1, -1], self.steps)
            inverse = 1 / series
            return [inverse[i] for i in range(self.steps)]

    def floats(self) -> list[list[float]]:
        """Return every row from its diagonal on backwards, rounded: all are the same."""
        with ctx.workprec(64):
            return [[float(c) for c in self.balls()]] * self.steps


@final
@dataclass(frozen=True)
class Dense:
    """C by its entries, integers over one denominator.

    A tree has a row for each vertex, ordered by the last step below it.
    """

    integers: tuple[tuple[int, ...], ...]
    below: int
    outputs: tuple[tuple[int, ...], ...] | None = None
    """B = A C⁻¹ of a tree, whose entries are 0 and 1."""

    @property
    def steps(self) -> int:
        """The number of columns."""
        return len(self.integers[0])

    @staticmethod
    def of(rows: tuple[Row, ...]) -> Dense:
        """Bring the entries to one denominator."""
        below = lcm(*(c.denominator for row in rows for c in row))
        return Dense(
            tuple(tuple(c.numerator * (below // c.denominator) for c in row) for row in rows),
            below,
        )

    @property
    def bands(self) -> int:
        """The least b with C_ij = 0 for i − j ≥ b; the most steps below a vertex."""
        if self.outputs is not None:
            return max(map(sum, self.integers))
        return 1 + max(i - j for i, row in enumerate(self.integers) for j, c in enumerate(row) if c)

    @cached_property
    def gram(self) -> list[list[int]]:
        """CᵀC times the square of the denominator. Raises InvalidInputError for too many digits."""
        longest = max(abs(c).bit_length() for row in self.integers for c in row)
        if 2 * longest * self.steps**2 > _MOST_GRAM_BITS:
            raise InvalidInputError(
                f"Expected inner products of the columns of at most {_MOST_GRAM_BITS} bits in all. "
                "Give coefficients of fewer digits, or fewer steps."
            )
        matrix = fmpz_mat([list(row) for row in self.integers])
        product = matrix.transpose() * matrix
        return [[int(c) for c in row] for row in product.tolist()]

    def squared_norms(self, pattern: Sequence[int]) -> list[Fraction]:
        """Return ‖C_{·i}‖² for the steps of a pattern."""
        return [Fraction(sum(row[i] ** 2 for row in self.integers), self.below**2) for i in pattern]

    def floats(self) -> list[list[float]]:
        """Return every row from its diagonal on backwards, rounded."""
        rows = enumerate(self.integers)
        return [[c / self.below for c in row[i::-1]] for i, row in rows]

    def prefix_rows(self) -> list[list[arb]]:
        """Return B = A C⁻¹ at flint's precision: the rows of C⁻¹ added up; or B as given."""
        if self.outputs is not None:
            return [list(map(arb, row)) for row in self.outputs]
        inverse = arb_mat([[arb(c) / self.below for c in row] for row in self.integers]).inv()
        rows: list[list[arb]] = []
        for i, row in enumerate(inverse.tolist()):
            before = rows[-1] if rows else [arb(0)] * self.steps
            both = enumerate(zip(before, row, strict=True))
            rows.append([a + b if j <= i else arb(0) for j, (a, b) in both])
        return rows


def restarted_tree(steps: int, period: int) -> Dense:
    """Return binary trees above `period` steps each: an output adds vertices of past trees too.

    Those of a tree are the ones of the binary digits of the steps since it was started
    (`BinaryTree`); other vertices are in no output, and left out. One of those left ends at each
    step, so that C is lower triangular and the outputs determine all measured sums.
    """
    if steps > _MOST_ROWS:
        raise expected("steps", steps, f"at most {_MOST_ROWS} with strategy='tree'")
    vertices: dict[tuple[int, int], int] = {}  # (start, end), and its number
    outputs: list[list[int]] = []
    past: list[int] = []
    for step in range(1, steps + 1):
        start = (step - 1) // period * period
        place, length, own = start, step - start, []
        for height in reversed(range(length.bit_length())):
            if length >> height & 1:
                end = place + (1 << height)
                own.append(vertices.setdefault((place, end), len(vertices)))
                place = end
        outputs.append(past + own)
        if length == period:
            past = past + own
    rows = tuple(tuple(int(a <= i < b) for i in range(steps)) for a, b in vertices)
    sums = tuple(tuple(int(v in row) for v in range(len(rows))) for row in map(set, outputs))
    return Dense(rows, 1, sums)


def strategy(given: Given, steps: int, bands: int | None) -> Toeplitz | Dense:
    """Return C of a number of steps.

    Raises InvalidInputError where rows are not as many as steps, or `bands` cut them off.
    """
    if given == "tree":
        return restarted_tree(steps, min(bands or steps, steps))
    if isinstance(given, tuple):
        if isinstance(given[0], tuple):
            return _matrix(given, steps, bands)
        if len(given) > steps:
            raise expected("steps", steps, f"≥ {len(given)}, the coefficients of the strategy")
    return Toeplitz(given, steps, bands)


def _matrix(rows: tuple[Row, ...], steps: int, bands: int | None) -> Dense:
    if len(rows) != steps:
        raise expected("steps", steps, f"to be {len(rows)}, the rows of the strategy")
    if bands is not None:
        raise expected(
            "bands", bands, "to be left out", "It cuts off a Toeplitz strategy, not given rows."
        )
    return Dense.of(rows)
