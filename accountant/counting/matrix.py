"""The matrix mechanism: strategies, participation schemas and sensitivity."""

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


# --- Participation schemas: which steps use one record, and how far it moves C x ------------------
# In the steps i of a pattern π, one record changes x by vectors u_i with ‖u_i‖ ≤ 1. It changes C x
# by Σ_{i∈π} u_i ⊗ C_{·i}, whose squared norm is Σ_{i,j∈π} ⟨u_i, u_j⟩ G_ij with G = CᵀC. The squared
# sensitivity is the maximum over all patterns and vectors. With H_ij = |G_ij|
#
# * an upper bound is the maximum of Σ_{i,j∈π} H_ij, since |⟨u_i, u_j⟩| ≤ 1;
# * a lower bound is Σ_{i,j∈π} s_i s_j G_ij for any pattern and signs s, from the record u_i = s_i u
#   with a fixed unit vector u.
#
# Both are equal if G_ij ≥ 0 for i, j of the best pattern (all signs +), and if there are signs with
# every s_i s_j G_ij ≥ 0. (Choquette-Choo, McMahan, Rush and Thakurta 2023, "Multi-Epoch Matrix
# Factorization Mechanisms for Private Machine Learning", treat G ≥ 0.)
#
# The code below maximises h(π) = Σ_{i,j∈π} H_ij.
#
# **single**: the largest H_ii.
#
# **cyclic**: at most k participations, consecutive ones exactly b steps apart. There is one pattern
# for every first step (u_i = 0 makes a shorter one).
#
# **min-separation**: at most k participations, with gaps of at least b. Entries with 0 < |i − j| <
# b never count. The first of these methods that applies is used:
#
# 1. *Orthogonal columns*: H_ij = 0 for |i − j| ≥ b, as for at most b bands. Then h is the sum of at
#    most k squared norms of columns at least b apart; dynamic programming maximises it
#    (Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta and Xu 2023, "(Amplified) Banded
#    Matrix Factorization", Algorithm 3).
# 2. *Decreasing inner products*: H_ij ≥ H_{i,j+1} for j − i ≥ b, and H_ij ≥ H_{i+1,j+1} for i = j
#    and for j − i ≥ b. Then the worst pattern has k participations exactly b apart, from the first
#    step on. (Kalinin and Lampert 2024, "Banded Square Root Matrix Factorization for Differentially
#    Private Model Training", Theorem 2, for Toeplitz matrices with c_0 ≥ c_1 ≥ … ≥ 0.) *Proof.* Let
#    a gap of π exceed b. Move all participations after the gap to earlier steps, by the excess of
#    the gap over b. Pairs after the gap move along their diagonal; for pairs across it only the
#    later step moves. So no term decreases. Likewise, all participations can be moved until the
#    first is in the first step. Further participations add terms ≥ 0. For a Toeplitz C with such c
#    the conditions hold: G_ij is the sum over s < n − j of c_s c_{s+j−i}; its terms decrease with
#    j − i, and their number decreases with j.
# 3. *Few patterns*: all are tried.
# 4. *Bounds*: put v_i = H_ii + max over patterns π ∋ i of Σ_{j∈π, j≠i} H_ij. Then h(π) ≤ Σ_{i∈π}
#    v_i, which dynamic programming maximises. The lower bound is the best pattern found.

SCHEMAS = ("single", "cyclic", "min-separation")
_MOST_PATTERNS = 20_000
"""Most patterns that are tried one by one, in about a second."""
_MOST_TABLED = 50_000_000
"""Most entries of tables that limit the number of participations, in some seconds."""
_FEW = 8
"""Patterns tried for a lower bound; more seldom find a better one."""

Gram: TypeAlias = Sequence[Sequence[int]]
Pattern: TypeAlias = tuple[int, ...]
Record: TypeAlias = dict[int, int]
"""The steps that use a record, each with the sign of its contribution."""


@final
@dataclass(frozen=True, slots=True)
class Most:
    """Proved bounds on the largest squared norm, in units of the inner products."""

    lower: int
    upper: int
    record: Record
    """A record that attains `lower`."""
    reason: str
    """Why these bounds hold, in words."""


@final
@dataclass(frozen=True, slots=True)
class Participation:
    """A participation schema: which of n steps may use one record."""

    schema: str
    steps: int
    separation: int
    most: int

    @staticmethod
    def of(
        schema: str, steps: int, separation: int | None, participations: int | None
    ) -> Participation:
        """Return a schema; raise InvalidInputError if its numbers are inconsistent."""
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
        """Return the pattern from the first step on, as dense and long as allowed."""
        return self.from_step(0)

    def from_step(self, step: int) -> Pattern:
        """Return the pattern from a given step on, as dense and long as allowed."""
        return tuple(range(step, self.steps, self.separation))[: self.most]

    def count(self) -> int:
        """Return the number of patterns whose gaps are at least the separation."""
        room = (m * (self.separation - 1) for m in range(self.most))
        return sum(comb(max(0, self.steps - r), m) for m, r in enumerate(room, 1))

    def patterns(self) -> Iterator[Pattern]:
        """Yield the patterns that cannot be extended: no participation or no step is left."""

        def longer(pattern: Pattern) -> Iterator[Pattern]:
            start = pattern[-1] + self.separation if pattern else 0
            if len(pattern) == self.most or start >= self.steps:
                yield pattern
                return
            for step in range(start, self.steps):
                yield from longer((*pattern, step))

        return longer(())


def largest(gram: Gram, schema: Participation) -> Most:
    """Bound the squared sensitivity, from the inner products of the columns of C."""
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
    """Return an upper bound on h, patterns that are likely to include the best, and a reason."""
    b, k = schema.separation, schema.most
    if k == 1:
        best = max(range(schema.steps), key=lambda i: size[i][i])
        return size[best][best], [(best,)], f"Step {best + 1} has the longest column."
    in_turn = _dense_patterns(size, schema)
    starts = nlargest(_FEW, range(schema.steps), key=lambda step: in_turn[step])
    if schema.schema == "cyclic":
        worst = f"Of all first steps, {starts[0] + 1} is the worst."
        return in_turn[starts[0]], [*map(schema.from_step, starts)], worst
    if b == 1 and k == schema.steps:
        return in_turn[0], [schema.first()], "A record may take part in every step."
    if not any(any(row[i + b :]) for i, row in enumerate(size)):
        value, pattern = best_steps([row[i] for i, row in enumerate(size)], schema)
        return value, [pattern], "Columns of one record are orthogonal; the longest are chosen."
    if _is_decreasing(size, b):
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


def _dense_patterns(size: Gram, schema: Participation) -> list[int]:
    """Return h of the dense pattern from every first step on.

    It is that of the pattern from one separation later, plus the terms of the first step, minus
    those of a step that exceeds the number of participations.
    """
    n, b = schema.steps, schema.separation
    sums = [0] * (n + b)
    for i in range(n - 1, -1, -1):
        between = schema.from_step(i)[1:]
        sums[i] = sums[i + b] + size[i][i] + 2 * sum(size[i][j] for j in between)
        if (last := i + schema.most * b) < n:
            sums[i] -= size[last][last] + 2 * sum(size[last][j] for j in between)
    return sums[:n]


def _is_decreasing(size: Gram, b: int) -> bool:
    """Whether the inner products decrease, as method 2 requires."""
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
    upper, pattern = best_steps(_with_each(size, schema), schema)
    found = [_improved(size, start, schema) for start in (pattern, *starts)]
    return upper, found, "Patterns are too many to look at."


def _with_each(size: Gram, schema: Participation) -> list[int]:
    """Return all v_i of method 4, from the tables F_m(i) of `best_steps` for every row of H."""
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
    else:  # without a limit on the number of participations, which gives an upper bound
        for i in range(n - 1, -1, -1):
            best[:, i] = np.maximum(best[:, i + 1], far[:, i] + best[:, i + b])
    return list(own + best[:, 0])


def _improved(size: Gram, pattern: Pattern, schema: Participation) -> Pattern:
    """Return a pattern that is at least as good, by repeated maximisation of linear bounds."""
    while True:
        linear = [sum(row[j] for j in pattern) for row in size]
        _, other = best_steps(linear, schema)
        if _sum(size, other) <= _sum(size, pattern):
            return pattern
        pattern = other


def best_steps(values: Sequence[int], schema: Participation) -> tuple[int, Pattern]:
    """Return the largest sum of at most k values ≥ 0 at steps at least b apart, and these steps.

    F_m(i), the maximum over at most m steps from step i on, is the larger one of F_m(i + 1) and
    values[i] + F_{m−1}(i + b).
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
    """Return Σ s_i s_j G_ij with signs that no single change improves."""
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
    """Return Σ_t y_t², where y sums k columns of a Toeplitz matrix, b apart, from the first on.

    y_t = c_t + y_{t−b} − c_{t−kb}, for numbers of any type with the given zero.
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


# --- Strategies of correlated noise: lower-triangular matrices C, where C⁻¹Z is the noise ---------
# A strategy is Toeplitz, C_ij = c_{i−j}, or given by its entries. Its numbers are balls at flint's
# precision, and integers over a common denominator if these are not too long.

Row: TypeAlias = tuple[Fraction, ...]
Given: TypeAlias = "str | Row | tuple[Row, ...] | BufferedToeplitz"
"""A strategy in the notation: a name, coefficients, rows, or a recursion."""

NAMES = ("identity", "square-root", "tree")
_MOST_ROWS = 1024
"""Most rows that are written out: a million entries."""
_MOST_BITS = 1 << 27
"""Most bits of all coefficients together that are stored exactly, 16 MB; others are balls."""
_MOST_GRAM_BITS = 1 << 31
"""Most bits of all inner products together, 256 MB."""


@declared
class BufferedToeplitz(Description):
    """Toeplitz coefficients c_0 = 1 and c_i = Σ_j ω_j θ_jⁱ⁻¹, whose noise needs only a few buffers.

    This is the BLT of Dvijotham, McMahan, Pillutla, Steinke and Thakurta, "Efficient and
    Near-Optimal Noise Generation for Streaming Differential Privacy" (2024); it has one buffer for
    each j.

    Parameters
    ----------
    output_scales
        ω, rational.
    decays
        θ, rational, as many as ω.
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
        """Whether all ω and θ are ≥ 0."""
        return min(self.output_scales) >= 0 and min(self.decays) >= 0

    @property
    def decreases(self) -> bool:
        """Whether 1 ≥ c_1 ≥ c_2 ≥ … ≥ 0 is known: it holds if ω ≥ 0, Σω ≤ 1 and θ ∈ [0, 1]."""
        return self.nonnegative and sum(self.output_scales) <= 1 and max(self.decays) <= 1


@final
class StrategyField(Field[Given, Any]):
    """A strategy: a name, Toeplitz coefficients, the rows of a matrix, or a `BufferedToeplitz`."""

    def read(self, value: Any) -> Given:
        """Convert a strategy; raise InvalidInputError, which names the wrong entry."""
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
    """C_ij = c_{i−j} for steps i ≥ j, counted from 0; c is 0 from `bands` on."""

    given: str | Row | BufferedToeplitz
    steps: int
    most_bands: int | None

    @property
    def bands(self) -> int:
        """The number of coefficients that may differ from 0."""
        wanted = self.steps if self.most_bands is None else min(self.most_bands, self.steps)
        if self.given == "identity":
            return 1
        if isinstance(self.given, tuple):
            last = max(i for i, c in enumerate(self.given) if c)
            return min(wanted, last + 1)
        return wanted

    @cached_property
    def exact(self) -> tuple[list[int], int] | None:
        """The coefficients as integers and a common denominator; None if these are too long."""
        if self.bands**2 * self._bits > _MOST_BITS:
            return None
        listed = self._fractions()
        below = lcm(*(c.denominator for c in listed))
        return [c.numerator * (below // c.denominator) for c in listed], below

    @property
    def _bits(self) -> int:
        """The bits by which each coefficient is longer than the one before."""
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
        """Return the coefficients as balls, at flint's precision."""
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
        """Return all entries; None if there are too many or they are not exact."""
        if self.exact is None or self.steps > _MOST_ROWS:
            return None
        integers, below = self.exact
        padded = [*integers, *[0] * (self.steps - self.bands)]
        rows = [[*padded[i::-1], *[0] * (self.steps - i - 1)] for i in range(self.steps)]
        return Dense(tuple(map(tuple, rows)), below)

    def squared_norms(self, pattern: Sequence[int]) -> list[Fraction] | None:
        """Return ‖C_{·i}‖² for the steps of a pattern; None if they are not exact."""
        if self.exact is None:
            return None
        integers, below = self.exact
        sums = [0, *accumulate(c * c for c in integers)]
        return [Fraction(sums[min(self.bands, self.steps - i)], below**2) for i in pattern]

    def prefix_coefficients(self) -> list[arb]:
        """Return the coefficients of B = A C⁻¹, Toeplitz too: those of 1/((1 − x) Σ c_j xʲ)."""
        with ctx.workcap(self.steps):
            series = arb_series(self.balls(), self.steps) * arb_series([1, -1], self.steps)
            inverse = 1 / series
            return [inverse[i] for i in range(self.steps)]

    def floats(self) -> list[list[float]]:
        """Return every row, from its diagonal backwards, in floats; all rows are equal."""
        with ctx.workprec(64):
            return [[float(c) for c in self.balls()]] * self.steps


@final
@dataclass(frozen=True)
class Dense:
    """C by its entries, integers over a common denominator.

    For a tree, a row is the indicator of the steps below a vertex; rows are ordered by last step.
    """

    integers: tuple[tuple[int, ...], ...]
    below: int
    outputs: tuple[tuple[int, ...], ...] | None = None
    """B = A C⁻¹ for a tree, whose entries are 0 and 1; None for other matrices."""

    @property
    def steps(self) -> int:
        """The number of columns."""
        return len(self.integers[0])

    @staticmethod
    def of(rows: tuple[Row, ...]) -> Dense:
        """Convert rows of rationals to integers over a common denominator."""
        below = lcm(*(c.denominator for row in rows for c in row))
        return Dense(
            tuple(tuple(c.numerator * (below // c.denominator) for c in row) for row in rows),
            below,
        )

    @property
    def bands(self) -> int:
        """The least b with C_ij = 0 for i − j ≥ b; for a tree, the most steps below a vertex."""
        if self.outputs is not None:
            return max(map(sum, self.integers))
        return 1 + max(i - j for i, row in enumerate(self.integers) for j, c in enumerate(row) if c)

    @cached_property
    def gram(self) -> list[list[int]]:
        """CᵀC times the squared denominator; InvalidInputError if it has too many digits."""
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
        """Return every row, from its diagonal backwards, in floats."""
        rows = enumerate(self.integers)
        return [[c / self.below for c in row[i::-1]] for i, row in rows]

    def prefix_rows(self) -> list[list[arb]]:
        """Return the rows of B = A C⁻¹ at flint's precision: cumulative sums of the rows of C⁻¹."""
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
    """Return the strategy of binary trees over `period` steps each; outputs add past trees too.

    Within a tree, an output uses the vertices of the binary digits of the number of steps since the
    tree started (`BinaryTree`). Vertices that no output uses are left out. Exactly one of the
    remaining vertices ends at each step, so C is lower triangular, and the outputs determine all
    measured sums.
    """
    if steps > _MOST_ROWS:
        raise expected("steps", steps, f"at most {_MOST_ROWS} with strategy='tree'")
    vertices: dict[tuple[int, int], int] = {}  # (start, end) and its index
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
    """Return C for a number of steps.

    Raises InvalidInputError if the number of rows differs from `steps`, or if `bands` is given with
    rows.
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


# --- The sensitivity of a strategy: how far one record moves C x, exactly or enclosed -------------
# The first columns of a Toeplitz C are the longest. Three cases need no inner products: a single
# participation; bands that end before the next participation, so that columns are orthogonal; and
# coefficients c_0 ≥ c_1 ≥ … ≥ 0. (If steps are exactly b apart, any c ≥ 0 will do, since
# G_{i+1,j+1} ≤ G_ij suffices to move a pattern to the first step.) All other cases use CᵀC.


@final
@dataclass(frozen=True)
class ColumnSensitivity:
    """Δ² = max ‖Σ_{i∈π} u_i ⊗ C_{·i}‖² over the patterns π of a schema and ‖u_i‖ ≤ 1."""

    matrix: Toeplitz | Dense
    schema: Participation

    @cached_property
    def _in_order(self) -> str | None:
        """Why the dense pattern from the first step on is worst; None if this is not known."""
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
        """The bounds on Δ² from CᵀC, and their denominator."""
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
        """Why the worst pattern is worst, or how the sensitivity is bounded."""
        return self._in_order or self._most[0].reason

    @property
    def record(self) -> Record:
        """The steps and signs of a record that attains Δ², or its proved lower bound."""
        if self._in_order is None:
            return self._most[0].record
        return dict.fromkeys(self.schema.first(), 1)

    @cached_property
    def exact(self) -> Fraction | None:
        """Δ² if it is known and rational with not too many digits, else None."""
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
        """Whether Δ² is only known to lie between `ends`."""
        return self._in_order is None and self.exact is None

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """The lower and the upper bound on Δ² from CᵀC."""
        most, below = self._most
        return Fraction(most.lower, below), Fraction(most.upper, below)

    def ball(self) -> arb:
        """Return a ball that contains Δ²; if only bounds are known, it contains both."""
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


# --- Amplification by sampling: a record that takes part in its steps at random -------------------
# Let a strategy have at most b bands. A record may take part in steps i, i + b, …, in each with
# probability q, independently (Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta and Xu
# 2023, "(Amplified) Banded Matrix Factorization", Section 5, which uses the longest column for all
# steps). For add/remove the guarantee is exactly that of one `PoissonSubsampled` Gaussian release
# of sensitivity ‖C_{·i}‖ for each of these steps.
#
# *Proof.* Column i is 0 outside rows i to i + b − 1, so each row y_t = (C x + Z)_t depends on at
# most one participation. Condition on all y before row i and on the samples of the other records.
# With probability q, the law of the rows from i on is the one without the record, shifted by
# u_i ⊗ C_{·i}, where u_i is known and the shift is at most ‖C_{·i}‖; otherwise it is unshifted.
# That is the mixture of a sampled release. A record with ‖u_i‖ = 1 in all of its steps attains it.
#
# Compare two records by their sorted column norms. If one has no more norms than the other, and
# none is larger, it is no worse, since a smaller shift is a post-processing. The first steps that
# no other one covers in this sense are all listed as worst.


def sampled_releases(
    matrix: Toeplitz | Dense, schema: Participation, noise: ExactReal, sampling_prob: ExactReal
) -> list[Composed]:
    """Return compositions, one for each candidate of a worst first step; the worst one is exact.

    For a Toeplitz strategy this is the first step, whose columns are the longest and most numerous.
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
    """Whether the first sorted list is at least as long, and entrywise at least as large."""
    return len(one) >= len(other) and all(a >= b for a, b in zip(one, other, strict=False))


# --- Correlated noise for training and prefix sums: the Gaussian matrix mechanism -----------------

_MOST_LISTED = 100_000
"""Most steps of a Toeplitz strategy; every question computes all of its coefficients."""
_MOST_RELEASED = 1024
"""Most steps of a release on a lattice, with half a million coefficients."""


@declared
class MatrixMechanism(GaussianNoise):
    """Add the noise C⁻¹Z to the inputs of n steps, and thus A C⁻¹Z to their prefix sums A x.

    Z has independent entries N(0, σ²). The strategy C is lower triangular, so that the noise of a
    step depends only on steps up to it. This is DP-FTRL by matrix factorisation, A = B C with
    B = A C⁻¹ (Denisov, McMahan, Rush, Smith and Thakurta 2022, "Improved Differential Privacy for
    SGD via Optimal Private Linear Operators on Adaptive Streams"). C = I is DP-SGD without
    sampling.

    Parameters
    ----------
    strategy
        C, with rational entries, as one of: the rows of a lower-triangular matrix; a list of
        Toeplitz coefficients c_0, c_1, … (C_ij = c_{i−j}, 0 beyond the list); "identity";
        "square-root", c_j = C(2j, j)/4ʲ, for which C² = A (Fichtenberger, Henzinger and Upadhyay
        2023); a `BufferedToeplitz`; or "tree", the vertices of a binary tree that restarts every
        `bands` steps (DP-FTRL, Kairouz, McMahan, Song, Thakkar, Thakurta and Xu 2021), where B adds
        the vertices of the binary digits.
    noise_multiplier
        σ, in units of the largest change of one step's input by one record: the clipping norm if a
        record is added, removed or zeroed out, and twice that if it is replaced.
    steps
        n ≥ 1.
    participation
        The steps that may use one record: "single", one step; "cyclic", steps exactly `separation`
        apart (the same order in every epoch); "min-separation", steps at least `separation` apart.
    separation, participations
        b ≥ 1, and the most participations of one record (None: as many as fit).
    bands
        Keep the first `bands` coefficients of a Toeplitz strategy, and set the others to 0. With
        "square-root" this is the banded square root of Kalinin and Lampert (2024).
    step_sampling_prob
        q: each record takes part in each of its steps with this probability, independently.
        Requires "cyclic" participation with separation ≥ bands. The first of a record's steps,
        among the first b, is fixed beforehand.

    Notes
    -----
    The sensitivity is Δ = max ‖Σ_{i∈π} u_i ⊗ C_{·i}‖ over the patterns π of the schema and vectors
    ‖u_i‖ ≤ 1; `dpassay.accountant.counting.matrix` shows how it is computed and proved. The
    mechanism is exactly Δ/σ-GDP, even if inputs and participations depend on earlier outputs.

    *Proof.* The outputs are a function of y = C x + Z, namely A C⁻¹y, and determine it. Without
    adaptivity Σ u_i ⊗ C_{·i} is the difference of two means under N(0, σ²I); the maximal difference
    is attained and has the pair of Δ/σ. With adaptivity (Denisov et al. 2022, Theorem 2.1, for one
    participation), y_1, …, y_{t−1} determine x_t and the u_i, i ≤ t, and the means of y_t differ by
    v_t = Σ_{i≤t} C_ti u_i. On every path Σ‖v_t‖² ≤ Δ²; one more output with its own noise makes
    this an equality. Under the second stream, conditioning successively from the last step
    backwards gives E exp(iθ Σ⟨v_t, Z_t⟩ + θ²σ² Σ‖v_t‖²/2) = 1. So Σ⟨v_t, Z_t⟩ is N(0, σ²Δ²), and
    the privacy loss, Σ⟨v_t, Z_t⟩/σ² − Δ²/2σ², has the same law as without adaptivity.

    With `step_sampling_prob` the mechanism is a composition of sampled Gaussian releases; the proof
    is in `dpassay.accountant.counting.matrix`.

    Errors refer to the prefix sums in each coordinate: output t has variance σ²‖B_t‖².
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
        """The participation schema of one record."""
        return Participation.of(
            self.participation, self.steps, self.separation, self.participations
        )

    @cached_property
    def matrix(self) -> Toeplitz | Dense:
        """The strategy C."""
        return strategy(self.strategy, self.steps, self.bands)

    @cached_property
    def column_sensitivity(self) -> ColumnSensitivity:
        """Δ², and why it has this value."""
        return ColumnSensitivity(self.matrix, self.schema)

    def sensitivity(self) -> Interval:
        """Enclose Δ; if the worst pattern is not known, the ends are those of the proved bounds."""
        found = self.column_sensitivity
        with ctx.workprec(128):
            low, high = map(ball, found.ends) if found.is_open else (found.ball(), found.ball())
            return Interval.between(low.sqrt(), high.sqrt(), 20)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return N(Δ/σ, 1) against N(0, 1) for every relation; with sampling, the composition's.

        If the sensitivity is only enclosed, so are all answers about the pair. With sampling,
        AdjacencyError is raised unless add-remove is given.
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
            f"μ is largest for the longest sum. {self.column_sensitivity.reason}",
        )

    @property
    def _sampled(self) -> bool:
        """Whether a record may be left out at random."""
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
        """Return compositions of sampled Gaussian releases; the worst is exactly as private."""
        if self.step_sampling_prob is None:
            raise NotApplicableError("Nothing is sampled: step_sampling_prob is left out.")
        return sampled_releases(
            self.matrix, self.schema, self.noise_multiplier, self.step_sampling_prob
        )

    def _release(self, square: Fraction) -> Gaussian:
        return Gaussian(self.noise_multiplier, ExactReal.of_root(square))

    @property
    def only_alone(self) -> str:
        """What to compose instead, if the sensitivity is only enclosed."""
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
        """Return Δ/σ if Δ² is known exactly, else None."""
        if self._sampled:
            return None
        known = self.column_sensitivity.exact
        return None if known is None else ExactReal.of_root(known) / self.noise_multiplier

    def worst_shift(self) -> Array:
        """Return the change of every prefix sum by the record of the largest sensitivity.

        With sampling, the change by a record that takes part in all of its steps.
        """
        record = self.column_sensitivity.record
        inputs = np.zeros(self.steps)
        inputs[list(record)] = list(record.values())
        return np.cumsum(inputs)

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` outputs for true prefix sums; sampling leaves out inputs at random."""
        if not self._sampled:
            return super().outputs(answer, size, rng=rng)
        taken = rng.random((size, self.steps)) < float(self.step_sampling_prob or 1)
        inputs = np.diff(np.asarray(answer, dtype=float), prepend=0.0)
        released: Array = self.sample(size, rng=rng)
        released += np.cumsum(np.where(taken, inputs, 0.0), axis=1)
        return released

    @property
    def dimension(self) -> int:
        """The number of steps n, for inputs with one coordinate."""
        return self.steps

    def variances(self) -> list[arb]:
        """Return σ²‖B_t‖² for the prefix sum of every step t."""
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
        """Draw C⁻¹Z, the noise of the gradients, step by step, as arrays of a shape.

        C y = Z is solved by substitution, which stores fewer arrays than there are bands. For
        simulation only: the noise is drawn in floating point.
        """
        return correlated(self.matrix, float(self.noise_multiplier), shape, rng)

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of the prefix sums of `size` whole runs, one run per row."""
        drawn = np.array(list(self.step_noise((size,), rng=rng)))
        return np.cumsum(drawn, axis=0).T

    def lattice_sampler(self) -> LatticeSampler:
        """Return the noise of the prefix sums of a stream, on a lattice that holds the integers."""

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


# --- The correlated noise C⁻¹Z of a strategy, step by step, by substitution in C y = Z ------------


def correlated(
    matrix: Toeplitz | Dense, sigma: float, shape: tuple[int, ...], rng: np.random.Generator
) -> Iterator[NDArray[Any]]:
    """Yield y_t = (Z_t − Σ_{s<t} C_ts y_s)/C_tt for each step t, an array of doubles of a shape.

    The last bands − 1 arrays are stored. For a tree, y_t is the difference of successive outputs.
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
