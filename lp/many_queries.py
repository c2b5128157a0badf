"""Bounded count noise for k queries: the least δ of (ε, δ)-DP for all k answers together.

Each of k counts n_i is released as n_i + Z_i with independent noise of one law on −D..D, P(Z = 0) =
η and mean 0; a neighbour changes every count by 1, up or down.

*Symmetric laws are enough.* The mean of a law and its mirror image answers each query by one of
them; by joint convexity its δ is at most the mean of the δ over all choices, and each choice is
the given law against other signs of the changes. So p(±j) = α_j (1 − η)/2, Σ α = 1.

*Floor.* An answer with one Z_i = D cannot be given by the neighbour with n_i − 1, so at every ε

    δ ≥ 1 − (1 − p(D))^k.

*Bounds.* With a_z answers of error z the probabilities are M Π p(z)^{a_z} and M Π p(z + 1)^{a_z},
M a multinomial coefficient, and δ(p) = 1 − (1 − p(D))^k + Σ_a max(0, P − E Q). Over a box of laws
it is at least the same sum with the least P and the largest Q. Boxes are halved until none can
hold a law that is better than the best one found by more than the width that is asked for, or until
there are too many: then the lower bound is the largest of the least of theirs, of
`dpassay.lp.query_bound`, and of the optimum for one query, as what is published may be ignored.
Both ends are proved; the law that is returned has the upper.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from dpassay.accountant.errors import expected
from dpassay.accountant.mechanisms.additive.integers import IntegerNoise
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.numbers.precision import ctx
from dpassay.lp.count_noise import optimal_count_noise
from dpassay.lp.problem import CountNoiseProblem, Value, to_fmpq
from dpassay.lp.query_bound import lower_bound

Array: TypeAlias = NDArray[np.float64]

_MOST_TYPES = 20_000
"""Ways to share k answers among 2D errors: each is a term of δ."""
_SMALL = 4
"""D up to which boxes of laws find the best one; beyond, a search is quicker."""
_MARGIN = 1e-9
"""Relative room for rounding in floats: exponents below 2^13 in size err by less than 2^−36."""
_NEVER = -1e4
"""ln 0 in floats: e to this power is 0, and 0 times it is 0."""
_MOST_BOXES = 100_000
"""Boxes that are looked at: up to D = 4 it takes fewer for a width of 1 %."""
_MOST_TERMS = 300_000_000
"""And terms of all their δ: seconds."""
_BATCH = 1 << 22
"""Numbers held at once while boxes are looked at."""
_BITS = 128
"""Precision of the δ that is returned."""
_SHOWN = 12
"""Digits of the bounds."""
_DIGITS = 10**9
"""Denominator of the α that are returned."""


@final
@dataclass(frozen=True)
class ManyQueries:
    """The best law found, its α_1, …, α_D, and bounds of the least δ of any law."""

    count: int
    delta: Interval
    alpha: tuple[Fraction, ...]
    eta: Fraction

    @property
    def mechanism(self) -> IntegerNoise:
        """The noise of one query."""
        side = [share * (1 - self.eta) / 2 for share in self.alpha]
        return IntegerNoise([*reversed(side), self.eta, *side], -len(side))

    @property
    def floor(self) -> Fraction:
        """1 − (1 − p(D))^k: no ε brings the δ of this law below it."""
        return 1 - (1 - self.alpha[-1] * (1 - self.eta) / 2) ** self.count


def optimal_for_queries(
    problem: CountNoiseProblem, count: int, *, relative_width: float = 0.01
) -> ManyQueries:
    """Find the law of least δ for k queries.

    Parameters
    ----------
    problem
        ε (of all k answers together) or E, η and D, for one law (`max_count` None).
    count
        k ≥ 1.
    relative_width
        How far the two bounds of the least δ may be apart; for D ≥ 5 they may stay further.
    """
    support = problem.support
    if problem.max_count is not None or support < 2 or count < 1:
        raise expected("problem", problem, "to ask for one law, support ≥ 2 and count ≥ 1")
    if math.comb(count + 2 * support - 1, 2 * support - 1) > _MOST_TYPES:
        raise expected("count", count, f"to give at most {_MOST_TYPES} ways to share the answers")
    sums = _Sums(problem, count)
    start = None if support <= _SMALL else _searched(sums, problem)
    alpha, low = _by_boxes(sums, support, relative_width, start)
    one = CountNoiseProblem(
        eta=problem.eta,
        support=support,
        objective="true-delta",
        epsilon=problem.epsilon,
        ratio=problem.ratio,
    )
    with ctx.workprec(_BITS):
        upper = Interval.of_ball(sums.exactly(alpha), _SHOWN).upper
        most = float(arb(problem.exponential()).upper())
        if low < float(upper) * (1 - relative_width):
            ratio = Fraction(math.nextafter(most, math.inf))
            low = max(low, float(lower_bound(problem.eta, support, ratio, count)) * (1 - _MARGIN))
        lower = max(Interval.of_ball(arb(low), _SHOWN).lower, optimal_count_noise(one).delta.lower)
    return ManyQueries(count, Interval(min(lower, upper), upper), alpha, problem.eta)


class _Sums:
    """δ as a function of α: for a list of laws in floats, of boxes of laws, and exactly."""

    def __init__(self, problem: CountNoiseProblem, count: int) -> None:
        self.count, self.eta, self._problem = count, problem.eta, problem
        cells = 2 * problem.support
        bars = itertools.combinations(range(count + cells - 1), cells - 1)
        ends = ((-1, *bar, count + cells - 1) for bar in bars)
        self.types = np.array([[b - a - 1 for a, b in itertools.pairwise(end)] for end in ends])
        self.ways = [
            math.factorial(count) // math.prod(map(math.factorial, row))
            for row in self.types.tolist()
        ]
        self._log_ways = np.array([math.log(ways) for ways in self.ways])
        with ctx.workprec(_BITS):
            self.log_ratio = float(arb(problem.exponential()).log().upper()) + 1e-15

    def boxes(self, low: Array, high: Array) -> Array:
        """Return lower bounds of δ over boxes low ≤ α ≤ high, one a row."""
        share = (1 - float(self.eta)) / 2
        size = max(1, _BATCH // len(self.types))
        found = [
            self._box(low[i : i + size] * share, high[i : i + size] * share)
            for i in range(0, len(low), size)
        ]
        return np.concatenate(found)

    def _box(self, low: Array, high: Array) -> Array:
        least, most = (self._logs(side) for side in (low, high))
        p = np.exp(least[:, :-1] @ self.types.T + self._log_ways) * (1 - _MARGIN)
        q = np.exp(most[:, 1:] @ self.types.T + self._log_ways + self.log_ratio) * (1 + _MARGIN)
        floor = -np.expm1(self.count * np.log1p(-low[:, -1])) * (1 - _MARGIN)
        total: Array = floor + np.maximum(p - q, 0).sum(axis=1) * (1 - _MARGIN)
        return total

    def _logs(self, side: Array) -> Array:
        centre = np.full((len(side), 1), float(self.eta))
        law = np.hstack([side[:, ::-1], centre, side])
        with np.errstate(divide="ignore"):
            logs: Array = np.maximum(np.log(law), _NEVER)
        return logs

    def exactly(self, alpha: tuple[Fraction, ...]) -> arb:
        """Return δ of a law, as a ball."""
        side = [to_fmpq(share * (1 - self.eta) / 2) for share in alpha]
        law = [*reversed(side), to_fmpq(self.eta), *side]
        ratio: Value = self._problem.exponential()
        total = arb(1 - (1 - side[-1]) ** self.count)
        powers = [[value**n for n in range(self.count + 1)] for value in law]
        for row, ways in zip(self.types.tolist(), self.ways, strict=True):
            p = q = fmpq(ways)
            for z, n in enumerate(row):
                p, q = p * powers[z][n], q * powers[z + 1][n]
            total += (arb(p) - arb(ratio * q)).max(arb(0))
        return total


def _exact(alpha: Array) -> tuple[Fraction, ...]:
    """Return shares near the given ones whose sum is 1."""
    rest = [Fraction(max(round(float(share) * _DIGITS), 0), _DIGITS) for share in alpha[1:]]
    return (1 - sum(rest, start=Fraction(0)), *rest)


def _by_boxes(
    sums: _Sums, support: int, width: float, start: Array | None
) -> tuple[tuple[Fraction, ...], float]:
    """Return the best α found, and a lower bound of every δ. Boxes are of α_2, …, α_D."""
    low, high = np.zeros((1, support - 1)), np.ones((1, support - 1))
    alpha = np.full(support, 1 / support) if start is None else start
    best, seen, least = float(sums.boxes(alpha[None], alpha[None])[0]), 0, math.inf
    most = min(_MOST_BOXES, _MOST_TERMS // len(sums.types))
    while len(low):
        seen += len(low)
        first_low = np.maximum(1 - high.sum(axis=1), 0)
        first_high = 1 - low.sum(axis=1)
        inside = first_high >= 0
        low, high = low[inside], high[inside]
        ends = (
            np.column_stack([first_low[inside], low]),
            np.column_stack([first_high[inside], high]),
        )
        bounds = sums.boxes(*ends)
        middle = (low + high) / 2
        points = np.column_stack([1 - middle.sum(axis=1), middle])
        points = points[points[:, 0] >= 0]
        if len(points):
            values = sums.boxes(points, points)
            place = int(values.argmin())
            if values[place] < best:
                best, alpha = float(values[place]), points[place]
        keep = (bounds < best * (1 - width)) & (seen < most)
        least = min(least, float(bounds[~keep].min(initial=math.inf)))
        low, high = low[keep], high[keep]
        axis = (high - low).argmax(axis=1)
        row = np.arange(len(low))
        cut = (low[row, axis] + high[row, axis]) / 2
        upper_low, lower_high = low.copy(), high.copy()
        upper_low[row, axis] = lower_high[row, axis] = cut
        low, high = np.vstack([low, upper_low]), np.vstack([lower_high, high])
    return _exact(alpha), least


def _searched(sums: _Sums, problem: CountNoiseProblem) -> Array:
    """Return the best α that a search from geometric laws finds."""
    from scipy.optimize import minimize

    def shares(logs: Array) -> Array:
        weights = np.exp(np.concatenate([[0.0], logs]) - max(0.0, float(logs.max())))
        law: Array = weights / weights.sum()
        return law

    def value(logs: Array) -> float:
        law = shares(logs)[np.newaxis]
        return float(sums.boxes(law, law)[0])

    places = np.arange(1.0, problem.support)
    starts = [-sums.log_ratio * share / sums.count * places for share in (0.7, 1, 1.5, 2.5)]
    # Nelder and Mead's method needs no slopes, which δ has not everywhere
    found = [
        minimize(
            value,
            start,
            method="Nelder-Mead",
            options={"maxiter": 2000, "xatol": 1e-7, "fatol": 1e-14},
        )
        for start in starts
    ]
    return shares(min(found, key=lambda each: each.fun).x)
