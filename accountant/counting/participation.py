"""The steps that one record takes part in, and how far it moves C x then.

A record moves x by u_i in step i, vectors with ‖u_i‖ ≤ 1, where i ranges over a pattern π. So
it moves C x by Σ_{i∈π} u_i ⊗ C_{·i}, whose squared norm is Σ_{i,j∈π} ⟨u_i, u_j⟩ G_ij with
G = CᵀC. The squared sensitivity is the largest of these over all patterns and vectors. With
H_ij = |G_ij|

* above, it is at most the largest Σ_{i,j∈π} H_ij, as |⟨u_i, u_j⟩| ≤ 1;
* below, it is at least Σ_{i,j∈π} s_i s_j G_ij for any pattern and signs s, the record u_i = s_i u.

Both are equal where G_ij ≥ 0 for i, j of the best pattern (all signs +), and wherever signs are
found that make every s_i s_j G_ij ≥ 0. (Choquette-Choo, McMahan, Rush and Thakurta 2023,
"Multi-Epoch Matrix Factorization Mechanisms for Private Machine Learning", treat G ≥ 0.)

What follows maximises h(π) = Σ_{i,j∈π} H_ij.

**single**: the largest H_ii.

**cyclic**: consecutive participations exactly b steps apart, at most k: one pattern for every first
step (u_i = 0 makes a shorter one).

**min-separation**: gaps of at least b, at most k participations. Entries with 0 < |i − j| < b never
count. The first of these that applies is taken:

1. *Orthogonal columns*: H_ij = 0 for |i − j| ≥ b, as for b bands or fewer. Then h is the sum of at
   most k squared norms of columns b apart, largest by dynamic programming (Choquette-Choo, Ganesh,
   McKenna, McMahan, Rush, Thakurta and Xu 2023, "(Amplified) Banded Matrix Factorization",
   Algorithm 3).
2. *Falling inner products*: H_ij ≥ H_{i,j+1} for j − i ≥ b, and H_ij ≥ H_{i+1,j+1} for i = j and
   for j − i ≥ b. Then k participations from the first step on, exactly b apart, are worst. (Kalinin
   and Lampert 2024, "Banded Square Root Matrix Factorization for Differentially Private Model
   Training", Theorem 2, for Toeplitz matrices with c_0 ≥ c_1 ≥ … ≥ 0.) *Proof.* Let π have a gap
   above b. Move all participations behind the gap to earlier steps, by the excess of the gap over
   b: pairs behind it move along their diagonal, and those across it only in their later step, so
   no term falls. The same with all participations if the first is not in the first step. Further
   participations add terms ≥ 0. For Toeplitz C with such c the conditions hold: G_ij is the sum
   over s < n − j of c_s c_{s+j−i}, of which the terms fall with j − i, and their number with j.
3. *Few patterns*: all are looked at.
4. *Bounds*: with v_i = H_ii + max over patterns π ∋ i of Σ_{j∈π, j≠i} H_ij, h(π) ≤ Σ_{i∈π} v_i,
   whose maximum over patterns is found by dynamic programming; below, the best pattern found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from math import comb
from typing import Any, TypeAlias, final

from dpassay.accountant.errors import InvalidInputError, expected

ALLOCATED = "random-allocation"
"""Cyclic, the first step being chosen by chance
(`dpassay.accountant.counting.allocated_columns`)."""
SCHEMAS = ("single", "cyclic", "min-separation", ALLOCATED)
_MOST_PATTERNS = 20_000
"""Patterns that are looked at one by one: about a second."""
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
        if schema == ALLOCATED and participations is not None:
            raise InvalidInputError(
                "Expected participations to be left out where participation is "
                "'random-allocation': a record takes part in every separation-th step."
            )
        if schema == ALLOCATED and separation > steps:
            raise expected(
                "separation",
                separation,
                f"≤ steps={steps} with participation={ALLOCATED!r}",
                "One of the first `separation` steps is chosen: all have to be there.",
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
    if schema.schema in {"cyclic", ALLOCATED}:
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
        return _sum(size, found[0]), found, "All patterns were looked at."
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
