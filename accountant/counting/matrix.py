"""The matrix mechanism: strategies, participation and sensitivity."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import nlargest
from itertools import accumulate, pairwise
from math import comb, lcm
from typing import TYPE_CHECKING, Any, TypeAlias, final

from flint import arb, arb_mat, arb_series, fmpz_mat

from dpassay.accountant.core.adjacency import Adjacency, require
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.mechanism import GaussianNoise
from dpassay.accountant.core.pair import Pair, WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import (
    Description,
    Field,
    Integer,
    OneOf,
    OptionalInteger,
    OptionalProbability,
    Positive,
    Rationals,
    declared,
    rational,
)
from dpassay.accountant.errors import (
    AdjacencyError,
    InvalidInputError,
    NotApplicableError,
    expected,
    suggestion,
)
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.sampling import PoissonSubsampled
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, ball
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.numbers.theta import coefficients
from dpassay.accountant.pairs.between import Between
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.release.lattice import LatticeSampler, LinearNoise, release_stream

if TYPE_CHECKING:
    from numpy.typing import NDArray


# --- The steps that one record takes part in, and how far it moves C x then -----------------------
# A record moves x by u_i in step i, vectors with ‖u_i‖ ≤ 1, where i ranges over a pattern π. So
# it moves C x by Σ_{i∈π} u_i ⊗ C_{·i}, whose squared norm is Σ_{i,j∈π} ⟨u_i, u_j⟩ G_ij with
# G = CᵀC. The squared sensitivity is the largest of these over all patterns and vectors. With
# H_ij = |G_ij|
#
# * above, it is at most the largest Σ_{i,j∈π} H_ij, as |⟨u_i, u_j⟩| ≤ 1;
# * below, it is at least Σ_{i,j∈π} s_i s_j G_ij for any pattern and signs s, the record u_i = s_i
#   u.
#
# Both are equal where G_ij ≥ 0 for i, j of the best pattern (all signs +), and wherever signs are
# found that make every s_i s_j G_ij ≥ 0. (Choquette-Choo, McMahan, Rush and Thakurta 2023,
# "Multi-Epoch Matrix Factorization Mechanisms for Private Machine Learning", treat G ≥ 0.)
#
# What follows maximises h(π) = Σ_{i,j∈π} H_ij.
#
# **single**: the largest H_ii.
#
# **cyclic**: consecutive participations exactly b steps apart, at most k: one pattern for every
# first step (u_i = 0 makes a shorter one).
#
# **min-separation**: gaps of at least b, at most k participations. Entries with 0 < |i − j| < b
# never count. The first of these that applies is taken:
#
# 1. *Orthogonal columns*: H_ij = 0 for |i − j| ≥ b, as for b bands or fewer. Then h is the sum of
#    at most k squared norms of columns b apart, largest by dynamic programming (Choquette-Choo,
#    Ganesh, McKenna, McMahan, Rush, Thakurta and Xu 2023, "(Amplified) Banded Matrix
#    Factorization", Algorithm 3).
# 2. *Falling inner products*: H_ij ≥ H_{i,j+1} for j − i ≥ b, and H_ij ≥ H_{i+1,j+1} for i = j and
#    for j − i ≥ b. Then k participations from the first step on, exactly b apart, are worst.
#    (Kalinin and Lampert 2024, "Banded Square Root Matrix Factorization for Differentially Private
#    Model Training", Theorem 2, for Toeplitz matrices with c_0 ≥ c_1 ≥ … ≥ 0.) *Proof.* Let π have
#    a gap above b. Move all participations behind the gap to earlier steps, by the excess of the
#    gap over b: pairs behind it move along their diagonal, and those across it only in their later
#    step, so no term falls. The same with all participations if the first is not in the first step.
#    Further participations add terms ≥ 0. For Toeplitz C with such c the conditions hold: G_ij is
#    the sum over s < n − j of c_s c_{s+j−i}, of which the terms fall with j − i, and their number
#    with j.
# 3. *Few patterns*: all are tried.
# 4. *Bounds*: with v_i = H_ii + max over patterns π ∋ i of Σ_{j∈π, j≠i} H_ij, h(π) ≤ Σ_{i∈π} v_i,
#    whose maximum over patterns is found by dynamic programming; below, the best pattern found.

SCHEMAS = ("single", "cyclic", "min-separation")
_MOST_PATTERNS = 20_000
"""Patterns that are tried one by one: about a second."""
_MOST_TABLED = 50_000_000
"""Entries of tables with a limit to the number of participations: some seconds."""
_FEW = 8
"""Patterns that are tried for a lower bound: more rarely find a better one."""

Gram: TypeAlias = Sequence[Sequence[int]]
Pattern: TypeAlias = tuple[int, ...]
Record: TypeAlias = dict[int, int]
"""The steps that a record takes part in, each with the sign of what it adds."""


@final
@dataclass(frozen=True, slots=True)
class Most:
    """What is proved about the largest squared norm, in units of the inner products."""

    lower: int
    upper: int
    record: Record
    """One that attains `lower`."""
    reason: str
    """Why, in words."""


@final
@dataclass(frozen=True, slots=True)
class Participation:
    """A schema: which steps one record may take part in, of n."""

    schema: str
    steps: int
    separation: int
    most: int

    @staticmethod
    def of(
        schema: str, steps: int, separation: int | None, participations: int | None
    ) -> Participation:
        """Return one of the schemas. Raises InvalidInputError where the numbers do not fit."""
        if schema == "single":
            if separation is not None or participations is not None:
                raise InvalidInputError(
                    "Expected separation and participations to be left out where participation is "
                    "'single'. Name 'cyclic' or 'min-separation' for records that take part again."
                )
            return Participation(schema, steps, steps, 1)
        if separation is None:
            raise InvalidInputError(
                f"Expected separation=…, the steps between two participations of a record, with "
                f"participation={schema!r}."
            )
        room = -(-steps // separation)
        if participations is not None and participations > room:
            raise expected(
                "participations",
                participations,
                f"≤ {room}: no more fit into steps={steps} with separation={separation}",
                "Leave it out for as many as fit.",
            )
        return Participation(schema, steps, separation, participations or room)

    def first(self) -> Pattern:
        """Return participations from the first step on, as close and as many as may be."""
        return self.from_step(0)

    def from_step(self, step: int) -> Pattern:
        """Return the same from another step on."""
        return tuple(range(step, self.steps, self.separation))[: self.most]

    def count(self) -> int:
        """Return how many patterns have gaps of at least the separation."""
        room = (m * (self.separation - 1) for m in range(self.most))
        return sum(comb(max(0, self.steps - r), m) for m, r in enumerate(room, 1))

    def patterns(self) -> Iterator[Pattern]:
        """Yield all of these that cannot be longer: the last step has no room behind it, or k."""

        def longer(pattern: Pattern) -> Iterator[Pattern]:
            start = pattern[-1] + self.separation if pattern else 0
            if len(pattern) == self.most or start >= self.steps:
                yield pattern
                return
            for step in range(start, self.steps):
                yield from longer((*pattern, step))

        return longer(())


def largest(gram: Gram, schema: Participation) -> Most:
    """Return what is proved about the squared sensitivity, from the inner products of columns."""
    size = [[abs(entry) for entry in row] for row in gram]
    upper, candidates, reason = _maximum(size, schema)
    records = [_signed(gram, pattern) for pattern in candidates]
    lower, record = max(records, key=lambda found: found[0])
    if lower < upper:
        reason += (
            " It is only enclosed: above, no inner product of columns is taken for negative, nor "
            "two participations for worse than they are; below is the best record that was found."
        )
    return Most(lower, upper, record, reason)


def _maximum(size: Gram, schema: Participation) -> tuple[int, list[Pattern], str]:
    """Return an upper bound of h, and patterns of which one is likely the best."""
    b, k = schema.separation, schema.most
    if k == 1:
        best = max(range(schema.steps), key=lambda i: size[i][i])
        return size[best][best], [(best,)], f"Step {best + 1} has the longest column."
    in_turn = _in_turn(size, schema)
    starts = nlargest(_FEW, range(schema.steps), key=lambda step: in_turn[step])
    if schema.schema == "cyclic":
        worst = f"Of all first steps, {starts[0] + 1} is the worst."
        return in_turn[starts[0]], [*map(schema.from_step, starts)], worst
    if b == 1 and k == schema.steps:
        return in_turn[0], [schema.first()], "A record may take part in every step."
    if not any(any(row[i + b :]) for i, row in enumerate(size)):
        value, pattern = chosen([row[i] for i, row in enumerate(size)], schema)
        return value, [pattern], "Columns of one record are orthogonal; the longest are chosen."
    if _falls(size, b):
        return (
            in_turn[0],
            [schema.first()],
            "Inner products of columns fall with time and distance, so that participations from "
            "the first step on, as close as may be, are worst.",
        )
    if schema.count() <= _MOST_PATTERNS:
        found = nlargest(_FEW, schema.patterns(), key=lambda pattern: _sum(size, pattern))
        return _sum(size, found[0]), found, "All patterns were tried."
    return _bounds(size, schema, [*map(schema.from_step, starts)])


def _in_turn(size: Gram, schema: Participation) -> list[int]:
    """Return h of participations from every first step on, as close and as many as may be.

    From the same one separation later it differs by the first step, and the last one there.
    """
    n, b = schema.steps, schema.separation
    sums = [0] * (n + b)
    for i in range(n - 1, -1, -1):
        between = schema.from_step(i)[1:]
        sums[i] = sums[i + b] + size[i][i] + 2 * sum(size[i][j] for j in between)
        if (last := i + schema.most * b) < n:
            sums[i] -= size[last][last] + 2 * sum(size[last][j] for j in between)
    return sums[:n]


def _falls(size: Gram, b: int) -> bool:
    """Whether the second condition holds."""
    n = len(size)
    for i in range(n - 1):
        row, below = size[i], size[i + 1]
        if row[i] < below[i + 1]:
            return False
        for j in range(i + b, n - 1):
            if row[j] < row[j + 1] or row[j] < below[j + 1]:
                return False
    return True


def _bounds(
    size: Gram, schema: Participation, starts: Sequence[Pattern]
) -> tuple[int, list[Pattern], str]:
    upper, pattern = chosen(_with_each(size, schema), schema)
    found = [_climb(size, start, schema) for start in (pattern, *starts)]
    return upper, found, "Patterns are too many to look at."


def _with_each(size: Gram, schema: Participation) -> list[int]:
    """Return v_i for every step, all at once: F_m(i) of `chosen` over the rows of H."""
    import numpy as np

    n, b = schema.steps, schema.separation
    far = np.array(size, dtype=object)
    own = far.diagonal().copy()
    for offset in range(min(b, n)):
        far[np.arange(n - offset), np.arange(offset, n)] = 0
        far[np.arange(offset, n), np.arange(n - offset)] = 0
    best = np.zeros((n, n + b), dtype=object)
    if n**2 * schema.most <= _MOST_TABLED:
        for _ in range(schema.most - 1):
            taken = (far + best[:, b:])[:, ::-1]
            best[:, :n] = np.maximum.accumulate(taken, axis=1)[:, ::-1]
    else:  # without a limit to the number, which is no less
        for i in range(n - 1, -1, -1):
            best[:, i] = np.maximum(best[:, i + 1], far[:, i] + best[:, i + b])
    return list(own + best[:, 0])


def _climb(size: Gram, pattern: Pattern, schema: Participation) -> Pattern:
    """Return a pattern that is not worse: the best for the sums of rows, as long as it helps."""
    while True:
        linear = [sum(row[j] for j in pattern) for row in size]
        _, other = chosen(linear, schema)
        if _sum(size, other) <= _sum(size, pattern):
            return pattern
        pattern = other


def chosen(values: Sequence[int], schema: Participation) -> tuple[int, Pattern]:
    """Return the largest sum of at most k values ≥ 0 at steps b apart, and the steps.

    F_m(i), the most from step i on with m of them, is F_m(i + 1) or values[i] + F_{m−1}(i + b).
    """
    n, b = len(values), schema.separation
    tables = [[0] * (n + b)]
    for _ in range(schema.most):
        before, now = tables[-1], [0] * (n + b)
        for i in range(n - 1, -1, -1):
            now[i] = max(now[i + 1] if i + 1 < n else 0, values[i] + before[i + b])
        tables.append(now)
    pattern, i, m = [], 0, schema.most
    while i < n and m:
        if tables[m][i] == values[i] + tables[m - 1][i + b]:
            pattern.append(i)
            i, m = i + b, m - 1
        else:
            i += 1
    return tables[-1][0], tuple(pattern)


def _sum(size: Gram, pattern: Pattern) -> int:
    return sum(size[i][j] for i in pattern for j in pattern)


def _signed(gram: Gram, pattern: Pattern) -> tuple[int, Record]:
    """Return Σ s_i s_j G_ij and the signs, of which no single one should be the other."""
    signs: Record = {}
    for i in pattern:
        signs[i] = 1 if sum(s * gram[i][j] for j, s in signs.items()) >= 0 else -1
    moved = True
    while moved:
        moved = False
        for i in pattern:
            if signs[i] * sum(s * gram[i][j] for j, s in signs.items() if j != i) < 0:
                signs[i], moved = -signs[i], True
    return sum(s * t * gram[i][j] for i, s in signs.items() for j, t in signs.items()), signs


def progression(coefficients: Sequence[Any], schema: Participation, zero: Any) -> Any:
    """Return Σ_t y_t², y the sum of the first columns of a Toeplitz matrix, b apart, k of them.

    y_t = c_t + y_{t−b} − c_{t−kb}, over numbers of any kind with the given zero.
    """
    b, k, bands = schema.separation, schema.most, len(coefficients)
    sums: list[Any] = []
    total = zero
    for t in range(schema.steps):
        y = coefficients[t] if t < bands else zero
        if t >= b:
            y = y + sums[t - b]
        if 0 <= t - k * b < bands:
            y = y - coefficients[t - k * b]
        sums.append(y)
        total = total + y * y
    return total


# --- Strategies of correlated noise: lower-triangular matrices C, of which C⁻¹Z is the noise ------
# A strategy is Toeplitz, C_ij = c_{i−j}, or given entry by entry. Its numbers are balls at flint's
# precision, and exact integers over one denominator where these are not too long.

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


# --- The sensitivity of a strategy: how far one record moves C x, proved or enclosed --------------
# For Toeplitz C the first columns are the longest, and three cases of
# `dpassay.accountant.counting.matrix` need no inner products: one participation; bands that end
# before the next one, so that columns are orthogonal; and coefficients c_0 ≥ c_1 ≥ … ≥ 0 (any c ≥
# 0, where steps are exactly b apart: G_{i+1,j+1} ≤ G_ij alone moves a pattern to the first step).
# All others go through CᵀC.


@final
@dataclass(frozen=True)
class ColumnSensitivity:
    """Δ² = max ‖Σ_{i∈π} u_i ⊗ C_{·i}‖² over the patterns π of a schema and ‖u_i‖ ≤ 1."""

    matrix: Toeplitz | Dense
    schema: Participation

    @cached_property
    def _in_order(self) -> str | None:
        """Say why participations from the first step on are worst; None where that is open."""
        c = self.matrix
        if not isinstance(c, Toeplitz):
            return None
        if self.schema.most == 1:
            return "The first column is the longest."
        if c.bands <= self.schema.separation:
            return "Columns of one record are orthogonal, and earlier ones are longer."
        if c.decreases or (c.nonnegative and self.schema.schema != "min-separation"):
            return (
                "Coefficients are not negative, and inner products of columns fall with time"
                + (" and distance" if c.decreases else "")
                + ": participations from the first step on, as close as may be, are worst."
            )
        return None

    @cached_property
    def _most(self) -> tuple[Most, int]:
        """What is proved of Δ² from CᵀC, and its denominator."""
        dense = self.matrix.dense() if isinstance(self.matrix, Toeplitz) else self.matrix
        if dense is None:
            raise NotApplicableError(
                "The sensitivity of a Toeplitz strategy whose coefficients rise or are negative "
                "takes the inner products of all columns, here of too many digits. Give at most "
                "1024 steps and shorter coefficients, or separation ≥ bands."
            )
        return largest(dense.gram, self.schema), dense.below**2

    @property
    def reason(self) -> str:
        """Why the worst pattern is that, or between what its sensitivity lies."""
        return self._in_order or self._most[0].reason

    @property
    def record(self) -> Record:
        """The steps and signs of a record that attains it, or the least that is proved."""
        if self._in_order is None:
            return self._most[0].record
        return dict.fromkeys(self.schema.first(), 1)

    @cached_property
    def exact(self) -> Fraction | None:
        """Δ², where it is proved and rational of not too many digits, else None."""
        if self._in_order is None:
            low, high = self.ends
            return low if low == high else None
        assert isinstance(self.matrix, Toeplitz)
        if self.matrix.exact is None:
            return None
        integers, below = self.matrix.exact
        return Fraction(progression(integers, self.schema, 0), below**2)

    @property
    def is_open(self) -> bool:
        """Whether Δ² is only enclosed, by `ends`."""
        return self._in_order is None and self.exact is None

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """What Δ² lies between, from CᵀC."""
        most, below = self._most
        return Fraction(most.lower, below), Fraction(most.upper, below)

    def ball(self) -> arb:
        """Return Δ² as a ball: as wide as what is not known of it."""
        if self.is_open:
            low, high = self.ends
            return ball(low).union(ball(high))
        if self.exact is not None:
            return ball(self.exact)
        precision, known = int(ctx.prec), self._by_precision
        if precision not in known:
            assert isinstance(self.matrix, Toeplitz)
            known[precision] = progression(self.matrix.balls(), self.schema, arb(0))
        return known[precision]

    @cached_property
    def _by_precision(self) -> dict[int, arb]:
        return {}


# --- Amplification by sampling: what a record shows that takes part in its steps by chance --------
# A record may take part in steps i, i + b, … of a strategy with at most b bands, in each with
# probability q, independently (Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta and Xu
# 2023, "(Amplified) Banded Matrix Factorization", Section 5, which has the longest column for all).
# For add/remove the guarantee is exactly that of one `PoissonSubsampled` Gaussian release of
# sensitivity ‖C_{·i}‖ for each of these steps.
#
# *Proof.* Column i is 0 outside rows i to i + b − 1, so that each row y_t = (C x + Z)_t shows one
# participation at most. Given all y before row i, and the other records' samples, the rows from i
# on have the law that they have without the record, but with probability q moved by u_i ⊗ C_{·i},
# u_i known, by ‖C_{·i}‖ at most: the mixture that a sampled release has. A record that always moves
# its steps by the full norm attains it.
#
# A record whose columns, sorted, are no longer than those of another one, and no more, is no worse:
# to be moved less is a post-processing. The first steps that are left are all named as worst.


def sampled_releases(
    matrix: Toeplitz | Dense, schema: Participation, noise: ExactReal, sampling_prob: ExactReal
) -> list[Composed]:
    """Return the compositions of which the worst is as private: one for each worst first step.

    Of a Toeplitz strategy it is the first step: its columns are the longest, and the most.
    """
    if sampling_prob.sign == 0:
        return [Composed(PoissonSubsampled(Gaussian(noise), sampling_prob))]
    steps = 1 if isinstance(matrix, Toeplitz) else min(schema.separation, schema.steps)
    found: list[list[Fraction]] = []
    for step in range(steps):
        norms = matrix.squared_norms(schema.from_step(step))
        if norms is None:
            raise NotApplicableError(
                "The columns of this strategy have too many digits for an exact norm. Give fewer "
                "bands, or shorter coefficients."
            )
        norms.sort(reverse=True)
        if not any(_covers(other, norms) for other in found):
            found = [other for other in found if not _covers(norms, other)] + [norms]

    def release(square: Fraction) -> PoissonSubsampled:
        return PoissonSubsampled(Gaussian(noise, ExactReal.of_root(square)), sampling_prob)

    return [
        Composed([Composed(release(square), n) for square, n in Counter(norms).items()])
        for norms in found
    ]


def _covers(one: list[Fraction], other: list[Fraction]) -> bool:
    """Whether sorted norms are as many or more, and each at least as large."""
    return len(one) >= len(other) and all(a >= b for a, b in zip(one, other, strict=False))


# --- Correlated noise for training and prefix sums: the Gaussian matrix mechanism -----------------

_MOST_LISTED = 100_000
"""Steps of a Toeplitz strategy: every question takes all of its coefficients."""
_MOST_RELEASED = 1024
"""Steps that are released on a lattice, with half a million coefficients."""


@declared
class MatrixMechanism(GaussianNoise):
    """Add the noise C⁻¹Z to the inputs of n steps, and so A C⁻¹Z to their prefix sums A x.

    Z has independent entries N(0, σ²). C is the strategy, lower triangular, so that the noise of a
    step is made from that of the steps before: DP-FTRL by matrix factorisation, A = B C with
    B = A C⁻¹ (Denisov, McMahan, Rush, Smith and Thakurta 2022, "Improved Differential Privacy for
    SGD via Optimal Private Linear Operators on Adaptive Streams"). C = I is DP-SGD unsampled.

    Parameters
    ----------
    strategy
        C: the rows of a lower-triangular matrix; or a list of Toeplitz coefficients c_0, c_1, …
        (C_ij = c_{i−j}, 0 beyond the list); or "identity"; or "square-root", c_j = C(2j, j)/4ʲ,
        for which C² = A (Fichtenberger, Henzinger and Upadhyay 2023); or `BufferedToeplitz`; or
        "tree", the vertices of a binary tree that is started again every `bands` steps (DP-FTRL,
        Kairouz, McMahan, Song, Thakkar, Thakurta and Xu 2021), for which B adds those of the
        binary digits. All numbers are rational.
    noise_multiplier
        σ, in units of the most that one record changes the input of one step (the clipping norm,
        where a record is added, removed or zeroed out; twice that where it is replaced).
    steps
        n ≥ 1.
    participation
        The steps that one record may take part in: "single", one; "cyclic", steps exactly
        `separation` apart (the same order in every epoch); "min-separation", steps at least
        `separation` apart.
    separation, participations
        b ≥ 1, and at most how often one record takes part (None: as often as fits).
    bands
        Keep the first `bands` coefficients of a Toeplitz strategy, and set the others to 0. With
        "square-root" this is the banded square root of Kalinin and Lampert (2024).
    step_sampling_prob
        q: each record takes part in its steps by chance, independently. For "cyclic" participation
        with separation ≥ bands; the first step of a record, of the first b, is fixed beforehand.

    Notes
    -----
    The sensitivity is Δ = max ‖Σ_{i∈π} u_i ⊗ C_{·i}‖ over the patterns π of the schema and vectors
    ‖u_i‖ ≤ 1; how it is found, and proved, is in `dpassay.accountant.counting.matrix`. The
    mechanism is exactly Δ/σ-GDP, with inputs and participations chosen after earlier outputs.

    *Proof.* The outputs determine y = C x + Z and are a function of it, A C⁻¹y. Without
    adaptivity Σ u_i ⊗ C_{·i} is the difference of two means under N(0, σ²I); the largest is
    attained, and has the pair of Δ/σ. With it (Denisov et al. 2022, Theorem 2.1, for one
    participation), let y_1, …, y_{t−1} be given: then x_t and the u_i, i ≤ t, are, and the means
    of y_t differ by v_t = Σ_{i≤t} C_ti u_i. On every path Σ‖v_t‖² ≤ Δ²; a further output of its own
    noise makes that an equality. Under the second stream, conditioning from the last step on,
    E exp(iθ Σ⟨v_t, Z_t⟩ + θ²σ² Σ‖v_t‖²/2) = 1. So Σ⟨v_t, Z_t⟩ is N(0, σ²Δ²), and the privacy loss,
    Σ⟨v_t, Z_t⟩/σ² − Δ²/2σ², has the law it has without adaptivity.

    With `step_sampling_prob` it is a composition of sampled Gaussian releases: the proof is in
    `dpassay.accountant.counting.matrix`.

    Errors are those of the prefix sums in each coordinate: output t has variance σ²‖B_t‖².
    """

    noise_argument = "noise_multiplier"
    example = (
        "MatrixMechanism(strategy='square-root', noise_multiplier=2, steps=16, "
        "participation='min-separation', separation=4, bands=4)"
    )

    strategy: StrategyField = StrategyField()
    noise_multiplier: Positive = Positive()
    steps: Integer = Integer(least=1)
    participation: OneOf = OneOf(*SCHEMAS)
    separation: OptionalInteger = OptionalInteger(least=1)
    participations: OptionalInteger = OptionalInteger(least=1)
    bands: OptionalInteger = OptionalInteger(least=1)
    step_sampling_prob: OptionalProbability = OptionalProbability()

    def __post_init__(self) -> None:
        if self.steps > _MOST_LISTED:
            raise expected("steps", self.steps, f"at most {_MOST_LISTED}")
        bands, b = self.matrix.bands, self.schema.separation
        if self.step_sampling_prob is None:
            return
        if self.participation != "cyclic" or self.participations is not None:
            raise InvalidInputError(
                "Expected step_sampling_prob only with participation='cyclic' and no "
                "participations: a record may take part in every separation-th step, by chance."
            )
        if bands > b:
            raise expected(
                "separation",
                b,
                f"≥ {bands}, the bands of the strategy, where step_sampling_prob is given",
                f"Cut the strategy off with bands={b}, or leave step_sampling_prob out.",
            )

    @cached_property
    def schema(self) -> Participation:
        """The patterns of one record."""
        return Participation.of(
            self.participation, self.steps, self.separation, self.participations
        )

    @cached_property
    def matrix(self) -> Toeplitz | Dense:
        """C."""
        return strategy(self.strategy, self.steps, self.bands)

    @cached_property
    def column_sensitivity(self) -> ColumnSensitivity:
        """Δ², and why it is that."""
        return ColumnSensitivity(self.matrix, self.schema)

    def sensitivity(self) -> Interval:
        """Enclose Δ: both ends of what is proved, where the worst pattern is not known."""
        found = self.column_sensitivity
        with ctx.workprec(128):
            low, high = map(ball, found.ends) if found.is_open else (found.ball(), found.ball())
            return Interval.between(low.sqrt(), high.sqrt(), 20)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return N(Δ/σ, 1) against N(0, 1), no matter which relation; of samples, the composition.

        Where the sensitivity is only enclosed, so is all that is asked about the pair. Raises
        AdjacencyError for samples unless add-remove is named.
        """
        if self._sampled:
            return self._worst_sample(adjacency)
        pair: Pair = GaussianPair(self, None)
        if self.column_sensitivity.is_open:
            ends = map(self._release, self.column_sensitivity.ends)
            low, high = (GaussianPair(end, None) for end in ends)
            pair = Between((low,), high, "how private the worst record is")
        return WorstCase.symmetric(
            pair,
            "The outputs are a function of C x + Z, which a record moves by a sum of columns of C; "
            f"Gaussian noise hides the longest one least. {self.column_sensitivity.reason}",
        )

    @property
    def _sampled(self) -> bool:
        """Whether a record may be left out by chance."""
        return self.step_sampling_prob is not None and self.step_sampling_prob.rational != 1

    def _worst_sample(self, adjacency: Adjacency | None) -> WorstCase:
        self._require_added(adjacency, "step_sampling_prob")
        cases = [release.worst_case(adjacency) for release in self.sampled_releases()]
        return WorstCase(
            tuple(pair for case in cases for pair in case.remove),
            tuple(pair for case in cases for pair in case.add),
            "Bands do not reach from one step of a record to its next one, so that each is a "
            "sampled Gaussian release of its own, moved by the norm of a column of C. Assumed: "
            f"the first of its steps, every {self.schema.separation}-th, is fixed for each record "
            "beforehand, and it takes part in each with step_sampling_prob, independently.",
        )

    def _require_added(self, adjacency: Adjacency | None, argument: str) -> None:
        if require(adjacency, self) is Adjacency.REPLACE_ONE:
            raise AdjacencyError(
                f"MatrixMechanism with {argument} is for a record that is added, removed or zeroed "
                "out. Name adjacency='add-remove'."
            )

    def sampled_releases(self) -> list[Composed]:
        """Return the compositions of sampled Gaussian releases of which the worst is as private."""
        if self.step_sampling_prob is None:
            raise NotApplicableError("Nothing is sampled: step_sampling_prob is left out.")
        return sampled_releases(
            self.matrix, self.schema, self.noise_multiplier, self.step_sampling_prob
        )

    def _release(self, square: Fraction) -> Gaussian:
        return Gaussian(self.noise_multiplier, ExactReal.of_root(square))

    @property
    def only_alone(self) -> str:
        """Say what to compose where the sensitivity, or the profile, is only enclosed."""
        if self._sampled or not self.column_sensitivity.is_open:
            return ""
        found = self.sensitivity()
        more = Gaussian(self.noise_multiplier, str(found.upper))
        return (
            f"The sensitivity of this strategy is only known to lie between {found.lower:.12g} and "
            f"{found.upper:.12g}. Ask about {more!r}, which is at most as private."
        )

    def gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return Δ/σ."""
        if self._sampled:
            return super().gaussian_mu(adjacency)
        return self.column_sensitivity.ball().sqrt() / self.noise_multiplier.ball()

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the same where Δ² is known exactly."""
        if self._sampled:
            return None
        known = self.column_sensitivity.exact
        return None if known is None else ExactReal.of_root(known) / self.noise_multiplier

    def worst_shift(self) -> Array:
        """Return by how much the record of the largest sensitivity moves every prefix sum.

        Where it is in its steps by chance, by how much it would if it were in all.
        """
        record = self.column_sensitivity.record
        inputs = np.zeros(self.steps)
        inputs[list(record)] = list(record.values())
        return np.cumsum(inputs)

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` outputs for true prefix sums, where samples leave out inputs by chance."""
        if not self._sampled:
            return super().outputs(answer, size, rng=rng)
        taken = rng.random((size, self.steps)) < float(self.step_sampling_prob or 1)
        inputs = np.diff(np.asarray(answer, dtype=float), prepend=0.0)
        released: Array = self.sample(size, rng=rng)
        released += np.cumsum(np.where(taken, inputs, 0.0), axis=1)
        return released

    @property
    def dimension(self) -> int:
        """The number of steps n, for inputs of one coordinate."""
        return self.steps

    def variances(self) -> list[arb]:
        """Return σ²‖B_t‖² for the prefix sum of every step."""
        square = self.noise_multiplier.ball() ** 2
        if isinstance(self.matrix, Dense):
            rows = self.matrix.prefix_rows()
            return [square * sum((b * b for b in row), arb(0)) for row in rows]
        found, total = [], arb(0)
        for b in self.matrix.prefix_coefficients():
            total += b * b
            found.append(square * total)
        return found

    def covariance_matrix(self) -> list[list[arb]]:
        """Return σ²B Bᵀ."""
        square, rows = self.noise_multiplier.ball() ** 2, self._rows()
        return [
            [
                square * sum((a * b for a, b in zip(one, other, strict=False)), arb(0))
                for other in rows
            ]
            for one in rows
        ]

    def _rows(self) -> list[list[arb]]:
        """Return the rows of B up to the diagonal."""
        if self.steps > _MOST_RELEASED:
            raise expected("steps", self.steps, f"at most {_MOST_RELEASED} to write out all noise")
        if isinstance(self.matrix, Dense):
            return self.matrix.prefix_rows()
        listed = self.matrix.prefix_coefficients()
        return [listed[i::-1] for i in range(self.steps)]

    def step_noise(
        self, shape: tuple[int, ...] = (), *, rng: np.random.Generator
    ) -> Iterator[Array]:
        """Draw C⁻¹Z step by step, each an array of a shape: the noise of a gradient.

        It solves C y = Z by substitution, and stores as many arrays as there are bands. For
        simulation: it is drawn in floating point.
        """
        return correlated(self.matrix, float(self.noise_multiplier), shape, rng)

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of the prefix sums of `size` whole runs, one row each."""
        drawn = np.array(list(self.step_noise((size,), rng=rng)))
        return np.cumsum(drawn, axis=0).T

    def lattice_sampler(self) -> LatticeSampler:
        """Return the noise of the prefix sums of a stream, on one lattice with the integers."""

        def rows() -> list[list[tuple[int, arb]]]:
            each = self.noise_multiplier.ball()
            return [
                [(j, each * b) for j, b in enumerate(row) if not b.is_zero()]
                for row in self._rows()
            ]

        width = len(self.matrix.integers) if isinstance(self.matrix, Dense) else self.steps
        return LatticeSampler(LinearNoise(rows, width), common=True)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Release all n prefix sums of a stream of n inputs in [0, 1], on one lattice."""
        if self._sampled:
            raise NotApplicableError(
                "MatrixMechanism with step_sampling_prob chooses records before it answers, so "
                "there is no one true stream. Choose them yourself, and release without it."
            )
        return release_stream(self.lattice_sampler(), value, times, rng=rng)


# --- The correlated noise C⁻¹Z of a strategy, step by step: C y = Z is solved by substitution -----


def correlated(
    matrix: Toeplitz | Dense, sigma: float, shape: tuple[int, ...], rng: np.random.Generator
) -> Iterator[NDArray[Any]]:
    """Yield an array of a shape for each step: y_t = (Z_t − Σ_{s<t} C_ts y_s)/C_tt, in doubles.

    As many of the arrays before are kept as there are bands, less one. Of a tree it is the
    difference of two outputs.
    """
    if isinstance(matrix, Dense) and matrix.outputs is not None:
        drawn: dict[int, NDArray[Any]] = {}
        before = np.zeros(shape)
        for output in matrix.outputs:
            taken = [v for v, entry in enumerate(output) if entry]
            for v in taken:
                if v not in drawn:
                    drawn[v] = np.asarray(rng.normal(0.0, sigma, shape))
            total = np.sum([drawn[v] for v in taken], axis=0)
            yield total - before
            before = total
        return
    kept: deque[NDArray[Any]] = deque(maxlen=matrix.bands - 1)
    for row in matrix.floats():
        step = np.asarray(rng.normal(0.0, sigma, shape))
        if kept:
            step = step - np.tensordot(row[1 : len(kept) + 1], np.stack(kept), axes=1)
        step = step / row[0]
        kept.appendleft(step)
        yield step
