r"""One-run audits: many canaries, each included by a fair coin of its own, one run.

An auditor who sees the output guesses some of the coins; more right guesses than a claim allows
refute it.

*One point of a claim.* An auditor who sees the output of one run M(S), S uniform on {−1, 1}^m,
guesses r of the m coins (a number fixed beforehand; which ones, and how, may depend on the output).
Let V be the number of right guesses, W ~ Bin(r, e^ε/(1 + e^ε)), β = P(W ≥ v) and w = P(W = v). Over
all (ε, δ)-DP M, for neighbours that differ in one canary, and v ≥ 1,

    max P(V ≥ v) = min(1, β + m δ β(1 − β)/(v w)).                                            (1)

*Proof.* Put a = e^ε. Let T in {−1, 0, 1}^m be the guesses. Averaging M over all ways to flip coins
(S and T together) and to permute canaries changes neither P(V ≥ v) nor (ε, δ)-DP, which is convex
in the law. Then the probability of T at S depends on the number k of right guesses alone; let f_k
be C(m, r) times it, so that P(V = k) = C(r, k) f_k. Flipping the coin of canary i turns a right
guess of it into a wrong one. Of the patterns with k right guesses C(m − 1, r − 1) C(r − 1, k − 1)
have i among them, and C(m − 1, r − 1) = (r/m) C(m, r); so with d_k = f_k − a f_{k−1}

    Σ_{k ≥ 1} C(r − 1, k − 1) max(d_k, 0) ≤ δ m/r,    d_0 = f_0.                              (2)

By f_k = Σ_{j ≤ k} a^{k−j} d_j, and with B_j = P(W ≥ j), w_j = P(W = j) = C(r, j) a^j (1 + a)^{−r},

    1 = Σ_k C(r, k) f_k = Σ_j d_j (1 + a)^r a^{−j} B_j,
    P(V ≥ v) = Σ_j d_j (1 + a)^r a^{−j} B_{max(j, v)}.

So P(V ≥ v) − β = Σ_{j ≥ 1} d_j (1 + a)^r a^{−j} c_j, c_j = B_{max(j, v)} − β B_j ≥ 0 (and c_0 = 0).
Only positive d_j help. As C(r − 1, j − 1) = (j/r) C(r, j), the gain of d_j per unit of (2) is
c_j r/(j w_j): (2) gives at most δ m max_j c_j/(j w_j). For j ≤ v, c_j = β P(W < j); with
W' ~ Bin(r − 1, a/(1 + a)), j w_j is P(W' = j − 1) times a constant, and P(W < j)/P(W' = j − 1) =
P(W' ≤ j − 1)/P(W' = j − 1) − a/(1 + a) grows with j, as binomial laws are log-concave. For j ≥ v,
c_j = (1 − β) B_j, and B_j/(j w_j) falls in the same way. The best j is v, with c_v = β(1 − β): (1)
is an upper bound. It is attained by d_v and d_0 alone, where these make f at most 1. ∎

The published bound has 2 max_i P(v − i ≤ W < v)/i in place of β(1 − β)/(v w) (Steinke, Nasr and
Jagielski, "Privacy auditing with one (1) training run", 2023, Theorem 5.2).

Nothing is assumed about how the canaries depend on each other given S: a mechanism may spoil all of
them together. A claim of a whole curve δ(ε), such as μ-GDP, implies (ε, δ(ε))-DP at every ε, and
(1) bounds one event {V ≥ v}: the least bound over a set of ε is one too, without any correction.
So is the one that uses another ε at every count: the less is taken.

*A whole curve*, with another point of it at every count. Let p_k = P(V = k). Averaged over coins
and canaries, P(V = k, canary i is guessed right) = (k/m) p_k. Take the event that i is guessed
right and at least j guesses are. With the coin of i flipped the same outputs guess i wrong, and
have one right guess less, so that (ε, δ)-DP in both orders says for every j ≥ 1

    R_j ≤ e^ε H_{j−1} + δ,    R_j = Σ_{k ≥ j} (k/m) p_k,    H_j = Σ_{k ≥ j} ((r − k)/m) p_k.   (4)

(These are the constraints of Mahloujifar, Melis and Chaudhuri, "Auditing f-differential privacy in
one run", 2024.) Let the curve give a point (ε_j, δ_j) for each j from j₀ to v, put λ_j ≥ 0 on that
inequality and ν > 0 on Σ p_k = 1. With A_k the sum of λ_j over j ≤ k and B_k that of e^{ε_j} λ_j
over j ≤ k + 1, if for every k

    1[k ≥ v] ≤ ν + (k/m) A_k − ((r − k)/m) B_k,                                             (5)

then multiplying by p_k and adding up gives P(V ≥ v) ≤ ν + Σ λ_j δ_j (weak duality). Equality in (5)
for k from j₀ − 1 to v − 1 determines every λ from ν; below both sums are 0; beyond v the right side
grows with k, so that equality at v fixes ν. In terms of

    X_k = m ν + r A_{k−1} + k (r − k + 1) λ_k,

λ_{j₀} = e^{−ε} mν/(r − j₀ + 1), λ_{k+1} = e^{−ε} X_k/((r − k)(r − k + 1)), 1 = X_v/(m(r − v + 1)):
nothing negative occurs, and rounding stays relative. So

    P(V ≥ v) ≤ min(1, (1 + Σ λ_j δ_j) m (r − v + 1)/X_v)    at ν = 1.                          (6)

(6) holds for any points of the curve. Good ones are those at which the inequalities are tight when
P(V ≥ v) is the level: there H_{j−1} is the largest (R_j − δ)/e^ε along the curve, and p_{j−1}
follows from H_{j−1} − H_j.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.accountant.numbers.exact import Number, exact
from dpassay.accountant.numbers.interval import few
from dpassay.accountant.numbers.solve import halved
from dpassay.verifier.audit import exact_test
from dpassay.verifier.audit.curve import Curve
from dpassay.verifier.audit.exact_test import LARGEST_MU, Design, gaussian_delta, least
from dpassay.verifier.audit.features import Histogram, Partition, Rule, coordinate
from dpassay.verifier.audit.guarantees import (
    Claim,
    Guarantee,
    Point,
    epsilon_delta,
    guarantee,
    read_count,
    read_seed,
    read_significance,
)
from dpassay.verifier.audit.learn import Tested
from dpassay.verifier.audit.result import AuditResult
from dpassay.verifier.audit.samples import real_numbers

Floats: TypeAlias = NDArray[np.float64]

_MOST_STEPS = 1000
"""Inequalities that are used; those of much smaller counts add next to nothing."""
_LEVELS = 8
"""Levels that are tried, each of which is the bound found at the one before."""
_LARGE = 1e200
"""Larger multipliers are scaled down, so that they do not overflow."""
_ROUNDING = 1e-9
"""Relative rounding error of sums and products of some thousand positive numbers."""


@final
class BothOrders(NamedTuple):
    """Points (ε, δ) of a claim; the second half are those of the first in the other order."""

    epsilons: Floats
    deltas: Floats

    @staticmethod
    def of(epsilons: Floats, deltas: Floats) -> BothOrders:
        """Return points with what they imply in the other order: (−ε, 1 − e^{−ε}(1 − δ))."""
        other = -np.expm1(-epsilons) + np.exp(-epsilons) * deltas
        return BothOrders(
            np.append(epsilons, -epsilons), np.append(deltas, other * (1 + _ROUNDING))
        )


def curve_bound(
    right: int, guesses: int, canaries: int, curve: BothOrders, level: float
) -> tuple[float, list[int]]:
    """Return (6), rounded up, for points that make it small near a level; and these points."""
    best: tuple[float, list[int]] = 1.0, []
    for _ in range(_LEVELS):
        points = binding(right, guesses, canaries, curve, level)
        found = bound(right, guesses, canaries, curve, points)
        if found >= best[0]:
            break
        best, level = (found, points), found
    return best


def binding(right: int, guesses: int, canaries: int, curve: BothOrders, level: float) -> list[int]:
    """Return the points of a curve that bind at a level: for the counts j = v, v − 1, …"""
    factors, deltas, r = np.exp(-curve.epsilons), curve.deltas, guesses
    likely, unlikely = level * right / canaries, level * (r - right) / canaries
    found: list[int] = []
    for i in range(right - 1, max(-1, right - 1 - _MOST_STEPS), -1):
        needed = (likely - deltas) * factors
        place = int(needed.argmax())
        if not unlikely < needed[place] <= 1:
            break
        found.append(place)
        likely += i / (r - i) * (needed[place] - unlikely)
        unlikely = float(needed[place])
    return found


def bound(right: int, guesses: int, canaries: int, curve: BothOrders, points: list[int]) -> float:
    """Return (6), rounded up, for points of a curve: those of j = v, v − 1, …"""
    if not points:
        return 1.0
    m, r = float(canaries), guesses
    nu, total, paid, x = 1.0, 0.0, 0.0, 0.0
    for j, place in enumerate(reversed(points), right - len(points) + 1):
        share = x / ((r - j + 1) * (r - j + 2)) if x else m * nu / (r - j + 1)
        weight = float(np.exp(-curve.epsilons[place])) * share
        x = m * nu + r * total + j * (r - j + 1) * weight
        total, paid = total + weight, paid + weight * float(curve.deltas[place])
        if x > _LARGE:
            nu, total, paid, x = nu / _LARGE, total / _LARGE, paid / _LARGE, x / _LARGE
    return min(1.0, (nu + paid) * m * (r - right + 1) / x * (1 + _ROUNDING))


Steps: TypeAlias = list[tuple[str, str, bool]]
"""Points (ε, δ), and whether they are used in the other order: for j = v, v − 1, …; a single one
may also represent equation (1)."""


LARGEST_EPSILON = 60.0
"""The largest bound of ε: no machine holds enough canaries to prove more."""
_LEAST = 1e-290
"""Smaller probabilities, which may underflow, are replaced by it."""
_EPSILONS = np.concatenate([[0.0], np.geomspace(1e-3, LARGEST_EPSILON, 1500)])
"""Where δ_μ(ε) is evaluated: with fewer points, bounds lose some per mille."""


@final
class Points(NamedTuple):
    """Points of a curve, with their exact numbers as texts where floats are not exact."""

    epsilons: Floats
    deltas: Floats
    texts: list[tuple[str, str]] | None

    def step(self, place: int) -> tuple[str, str, bool]:
        """Return the point at a place of `BothOrders.of`."""
        back, at = divmod(place, len(self.epsilons))
        if self.texts is not None:
            return *self.texts[at], back > 0
        return repr(float(self.epsilons[at])), repr(float(self.deltas[at])), back > 0


def tail_bound(
    right: int, guesses: int, canaries: int, epsilon: ArrayLike, delta: ArrayLike
) -> Floats:
    """Return max P(V ≥ right) over all (ε, δ)-DP mechanisms, rounded up: equation (1).

    Parameters
    ----------
    right
        v, how many guesses are right at least.
    guesses, canaries
        r ≤ m, fixed before the run.
    epsilon, delta
        ε ≥ 0, 0 ≤ δ ≤ 1: numbers, or arrays of one length.
    """
    eps = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))
    most = np.atleast_1d(np.asarray(delta, dtype=np.float64))
    if right <= 0:
        return np.ones(len(eps))
    beta, slope = _tail(right, guesses, canaries, eps)
    with np.errstate(invalid="ignore"):
        added = np.where((most > 0) & (beta < 1), slope * most, 0.0)
    found: Floats = np.minimum(1.0, beta + added)
    return found


def _tail(right: int, guesses: int, canaries: int, epsilon: Floats) -> tuple[Floats, Floats]:
    """Return equation (1) at δ = 0 and its slope in δ, rounded up, for v ≥ 1."""
    chance, up = special.expit(epsilon), 1 + exact_test.ROUNDING
    beta = np.minimum(1.0, exact_test.at_least(right, guesses, chance) * up)
    below = np.minimum(1.0, exact_test.at_most(right - 1, guesses, chance) * up)
    mass = exact_test.masses(np.array([right]), guesses, chance)[:, 0] / up
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Where one of them underflows: P(W = j + 1)/P(W = j) is at most this beyond v, so that β/w
        # is at most that of a geometric series.
        falling = np.exp(epsilon) * ((guesses - right) / (right + 1))
        series = np.where(falling < 1, 1 / (1 - falling), np.inf)
        odds = np.where(np.minimum(mass, beta) > _LEAST, beta / mass, series)
        slope = canaries / right * odds * below * up
    return np.maximum(beta, _LEAST), slope


def bound_of_claim(
    right: int, guesses: int, canaries: int, claim: Guarantee, level: float = 0.05
) -> float:
    """Return a bound of P(V ≥ right) under a claim, least where it is near a level."""
    return least_bound(right, guesses, canaries, points_of(claim), level)[0]


def points_of(claim: Guarantee) -> Points:
    """Return points of a claimed curve."""
    if claim.kind == "gaussian":
        return points_of_mu(math.nextafter(float(exact(claim.parameter, "mu").ball()), math.inf))
    points = claim.candidates(LARGEST_EPSILON)
    texts = [(str(p.epsilon), str(p.delta)) for p in points]
    deltas = [math.nextafter(float(p.delta), 1.0) if p.delta else 0.0 for p in points]
    return Points(np.array([float(p.epsilon) for p in points]), np.array(deltas), texts)


def points_of_mu(mu: float) -> Points:
    """Return points of the curve of μ-GDP."""
    deltas = gaussian_delta(mu, _EPSILONS) if mu > 0 else np.zeros(len(_EPSILONS))
    return Points(_EPSILONS, deltas, None)


def least_bound(
    right: int, guesses: int, m: int, points: Points, level: float
) -> tuple[float, Steps]:
    """Return the least bound of P(V ≥ right) along a curve, and the points that it rests on."""
    bounds = tail_bound(right, guesses, m, points.epsilons, points.deltas)
    if not len(bounds):
        return 1.0, [("0", "1", False)]
    best, places = float(bounds.min()), [int(bounds.argmin())]
    if len(bounds) > 1 and right > 0:
        curve = BothOrders.of(points.epsilons, points.deltas)
        value, along = curve_bound(right, guesses, m, curve, level)
        if value < best:
            best, places = value, along
    return best, [points.step(place) for place in places]


_MOST_CANARIES = 1 << 30
"""Largest number of canaries that is tried: no run holds a billion."""
_FEWEST = 8
"""Least number of guesses that is tried."""
_SHARES = (1, 2, 4, 16, 64)
"""The usual numbers of guesses are the number of canaries divided by these."""
_UNFAIR = 6.0
"""Fair coins are not so many standard deviations off half of the canaries (2e-9)."""
_NARROW = 1e-6
"""Relative width of bounds of μ."""
_CELLS = 32
"""Cells of the scores, for pictures and estimates."""


@final
@dataclass(frozen=True, repr=False, eq=False)
class Guesses:
    """The guesses of one run, and the bounds that follow from them, all at once.

    δ(ε) and ε(δ) invert (1), with an equal part of the significance for each number of guesses. For
    one number of guesses, more right guesses refute more claims, so that one event covers all of
    them.
    """

    scores: NDArray[Any]
    included: NDArray[np.bool_]
    seed: int
    right: Mapping[int, int]
    """Right guesses, by how many were made."""
    number: int
    """The number of guesses that refutes most clearly, of those that were tried."""
    bounded_at: float
    """δ at which ε is bounded."""
    tested: Steps
    """The points of the claim that the p-value rests on."""
    seen: Curve
    """Included and excluded canaries in cells of the score, for estimates."""
    significance: float

    @property
    def canaries(self) -> int:
        """Their number m."""
        return len(self.scores)

    @property
    def level(self) -> float:
        """The significance of one number of guesses."""
        return self.significance / len(self.right)

    @property
    def best(self) -> int:
        """The number of guesses that the bound of ε rests on."""
        found = self._epsilons(self.bounded_at)
        return max(found, key=found.__getitem__)

    def epsilon(self, delta: float) -> float:
        """Return a lower bound of ε(δ); 0 where there is none."""
        return max(self._epsilons(delta).values())

    def delta(self, epsilon: float) -> float:
        """Return a lower bound of δ(ε); 0 where there is none."""
        return float(self._deltas(np.array([epsilon]))[0])

    def mu(self) -> float:
        """Return a lower bound of μ; 0 where there is none."""
        return self._mu

    def delta_estimate(self, epsilon: float) -> float:
        """Return that of the frequencies of scores."""
        return self.seen.delta_estimate(epsilon)

    def epsilon_estimate(self, delta: float) -> float | None:
        """Return that of the frequencies of scores."""
        return self.seen.epsilon_estimate(delta)

    def delta_upper(self, epsilon: float) -> None:
        """Return None: canaries may depend on each other, and nothing bounds them from above."""

    def epsilon_upper(self, delta: float) -> None:
        """Return None, as well."""

    def tradeoff_estimate(self) -> list[tuple[float, float]]:
        """Return points (α, β) of the trade-off function of the frequencies of scores."""
        return self.seen.tradeoff_estimate()

    def tradeoff(self) -> list[tuple[float, float]]:
        """Return points (α, β) of the trade-off function of (ε̲(δ), δ)-DP, which is refuted.

        That of the mechanism is somewhere below it. Where it is, one run does not show.
        """
        factor, delta = math.exp(self.epsilon(self.bounded_at)), self.bounded_at
        corner = (1 - delta) / (1 + factor)
        return [(0.0, 1 - delta), (corner, corner), (1 - delta, 0.0)]

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "canaries": self.canaries,
            "guesses": self.number,
            "right": self.right[self.number],
            "guesses_tried": list(self.right),
            "bounded_at_delta": self.bounded_at,
        }

    def _epsilons(self, delta: float) -> dict[int, float]:
        return {r: _epsilon(v, r, self.canaries, delta, self.level) for r, v in self.right.items()}

    def _deltas(self, epsilons: Floats) -> Floats:
        found = np.zeros(len(epsilons))
        for guesses, right in self.right.items():
            if right > 0:
                beta, slope = _tail(right, guesses, self.canaries, epsilons)
                refuted = (self.level - beta) / slope * (1 - _ROUNDING)
                found = np.maximum(found, np.where(beta < self.level, refuted, 0.0))
        return np.minimum(found, 1.0)

    @cached_property
    def _mu(self) -> float:
        def bound(mu: float, right: int, guesses: int) -> float:
            points = points_of_mu(mu)
            return least_bound(right, guesses, self.canaries, points, self.level)[0]

        return max(
            _largest(partial(bound, right=v, guesses=r), self.level, LARGEST_MU, _NARROW)
            for r, v in self.right.items()
        )


def audit_one_run(
    scores: ArrayLike,
    included: ArrayLike,
    claim: Claim | None = None,
    *,
    delta: Number = "1e-5",
    guesses: int | Sequence[int] | None = None,
    significance: float = 0.05,
    seed: int = 0,
) -> AuditResult:
    """Audit one run with canaries that fair coins included.

    Parameters
    ----------
    scores
        One number for each of m canaries, computed from the output alone: larger where the canary
        seems to be included.
    included
        Whether each was: m independent fair coins.
    claim
        ε, (ε, δ), {"mu": μ}, a mechanism or a profile, for neighbours that differ in one canary
        (added or removed); without one the result is the bounds alone.
    delta
        δ at which ε is bounded.
    guesses
        How many guesses are made: the largest half of them says "included", the least "excluded".
        Several numbers may be given, and pay for each other. By default m, m/2, m/4, m/16 and m/64.
    significance
        The largest probability with which a private mechanism is accused.
    seed
        Decides among canaries with the same score.

    Raises
    ------
    InvalidInputError
        For scores that are not finite or all equal, coins that are not fair, or too few canaries.

    Examples
    --------
    >>> coins = np.random.default_rng(1).random(1000) < 0.5
    >>> found = audit_one_run(np.where(coins, 3.0, 0.0), coins, 2)
    >>> found.verdict.value, round(found.epsilon, 2)
    ('REFUTED', 5.42)
    """
    started = time.perf_counter()
    values, coins = _read(scores, included)
    significance, seed = read_significance(significance), read_seed(seed)
    about = epsilon_delta(0, delta)
    at = float(about.points[0].delta)
    m = len(values)
    numbers = _numbers(guesses, m)
    whole = None if claim is None else guarantee(claim)
    level = significance / len(numbers)
    _require_enough(whole, m, None if guesses is None else numbers, significance)
    about = about if whole is None else whole
    order = _order(values, seed)
    right = {r: _count_right(order, coins, r) for r in numbers}
    points = points_of(about)
    found = {r: least_bound(v, r, m, points, level) for r, v in right.items()}
    best = min(numbers, key=lambda r: found[r][0])
    if whole is None:
        best = max(numbers, key=lambda r: _epsilon(right[r], r, m, at, level))
    rule, histogram = _rule(values[order], coins[order], best, found[best][1], about)
    guessed = Guesses(
        values,
        coins,
        seed,
        right,
        best,
        at,
        found[best][1],
        Curve(histogram, significance, significance),
        significance,
    )
    return AuditResult(
        target=f"one run with {m} canaries",
        claimed=whole is not None,
        guarantee=about,
        pair=("with a canary", "without it"),
        pairs=1,
        values=Tested(
            rule,
            histogram,
            rule.counts(histogram),
            min(1.0, len(numbers) * found[best][0]),
            guessed.epsilon(at),
            guessed.delta(float(rule.point.epsilon)),
        ),
        bits=None,
        bits_claimed=False,
        cells=histogram,
        significance=significance,
        seed=seed,
        training=0,
        samples=m,
        seconds=time.perf_counter() - started,
        guesses=guessed,
    )


def _rule(
    scores: Floats, coins: NDArray[np.bool_], guesses: int, tested: Steps, about: Guarantee
) -> tuple[Rule, Histogram]:
    """Return the events that are guessed, and the canaries of both sides in cells of the score.

    Scores and coins are in the order of the guesses; equal scores may lie in several cells.
    """
    m, bottom = len(scores), guesses // 2
    top = m - (guesses - bottom)
    cuts = np.unique([*(np.arange(1, _CELLS) * m // _CELLS), bottom, top])
    cuts = cuts[(cuts > 0) & (cuts < m)]
    cell = np.searchsorted(cuts, np.arange(m), side="right")
    starts = np.append(0, cuts)
    marks = np.where(starts >= top, 1, np.where(starts < bottom, -1, 0)).astype(np.int8)
    partition = Partition(scores[cuts], ends=(float(scores[0]), float(scores[-1])))
    point = about.points[0] if len(about.points) == 1 else Point.read(*tested[0][:2])
    rule = Rule(
        coordinate(0), partition, marks, Design.GUESSES, 0, point, 0.0, label="score of the canary"
    )
    sides = [np.bincount(cell[coins == side], minlength=len(starts)) for side in (True, False)]
    return rule, np.array(sides)


def canaries_needed(
    epsilon: float,
    truth: float,
    *,
    delta: float = 1e-5,
    significance: float = 0.05,
    power: float = 0.9,
) -> int:
    """Return how many canaries refute (ε, δ)-DP, where each guess is right as at ε = `truth`.

    That is randomised response on every coin, the mechanism that leaks most at `truth`: others need
    more. All canaries are guessed, and `power` is the probability of a refutation.

    Raises
    ------
    InvalidInputError
        If `truth` is not above ε, or more than a billion canaries are needed.
    """
    if not 0 <= epsilon < truth:
        raise expected("truth", truth, f"> epsilon={epsilon}", "Nothing is to be refuted.")
    chance = 1 / (1 + math.exp(-truth))

    def enough(m: int) -> bool:
        most = int(stats.binom.ppf(1 - power, m, chance))  # P(V ≥ most) is at least the power
        return float(tail_bound(most, m, m, epsilon, delta)[0]) <= significance

    needed = least(enough, _MOST_CANARIES)
    if needed is None:
        raise InvalidInputError(
            f"More than a billion canaries are needed at delta={few(delta)}: the bound has a "
            "term of their number times delta. Take a smaller delta."
        )
    return needed


def _read(scores: ArrayLike, included: ArrayLike) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    values = real_numbers(scores, "scores to be numbers, one for each canary")
    coins = np.asarray(included)
    if values.ndim != 1 or coins.shape != values.shape:
        raise InvalidInputError(
            f"Expected scores and included to be lists of one length, not of shapes {values.shape} "
            f"and {coins.shape}."
        )
    if coins.dtype != np.bool_:
        if not np.isin(coins, (0, 1)).all():
            raise InvalidInputError("Expected included to be true or false for each canary.")
        coins = coins.astype(bool)
    if not np.isfinite(values).all():
        first = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InvalidInputError(
            f"Expected finite scores: scores[{first}] is {values[first]}. Give the middle score "
            "to a canary that has none."
        )
    m, inside = len(values), int(coins.sum())
    if m > 1 and (values == values[0]).all():
        raise InvalidInputError(f"All {m} scores are {values[0]:g}: nothing can be guessed.")
    if abs(2 * inside - m) > _UNFAIR * math.sqrt(m):
        raise InvalidInputError(
            f"{inside} of {m} canaries were included: fair coins would not give this. Include "
            "each canary with probability 1/2, independently."
        )
    return values, coins


def _numbers(guesses: int | Sequence[int] | None, m: int) -> tuple[int, ...]:
    if guesses is None:
        found = {m // share for share in _SHARES if m // share >= _FEWEST} or {m}
        return tuple(sorted(found, reverse=True))
    listed = [guesses] if isinstance(guesses, (int, str)) else guesses
    found = {read_count(number, "guesses") for number in listed}
    for number in found:
        if not 1 <= number <= m:
            raise expected("guesses", number, f"in [1, {m}]", "There are so many canaries.")
    if not found:
        raise InvalidInputError("Expected at least one number of guesses.")
    return tuple(sorted(found, reverse=True))


def _require_enough(
    claim: Guarantee | None, m: int, numbers: tuple[int, ...] | None, significance: float
) -> None:
    """Raise where even guesses that are all right could not refute the claim, or anything.

    `numbers` of guesses that were asked for share the significance; None means the usual ones.
    """
    about = epsilon_delta(0, 0) if claim is None else claim

    def enough(canaries: int) -> bool:
        tried = numbers if canaries == m and numbers else _numbers(None, canaries)
        level = significance / len(tried)
        return any(bound_of_claim(r, r, canaries, about) <= level for r in tried)

    if enough(m):
        return
    needed = least(enough, _MOST_CANARIES)
    if needed is None:
        raise InvalidInputError("More than a billion canaries are needed to refute this claim.")
    raise InvalidInputError(
        f"{m} canaries are too few: even if every guess were right, nothing would be refuted at "
        f"this significance. At least {needed} are needed."
    )


def _order(values: NDArray[Any], seed: int) -> NDArray[np.intp]:
    """Return the canaries in increasing order of their scores.

    The order of equal scores does not depend on the coins: it is that of the SHA-256 of seed and
    index, which can be computed again when a certificate is checked.
    """
    lots = np.zeros(len(values), "S32")
    if len(np.unique(values)) < len(values):
        lots[:] = [hashlib.sha256(f"{seed} {i}".encode()).digest() for i in range(len(values))]
    return np.lexsort((lots, values))


def _count_right(order: NDArray[np.intp], coins: NDArray[np.bool_], guesses: int) -> int:
    """Count the right guesses: the canaries with the largest scores are in, the least are out."""
    out = guesses // 2
    inside = order[len(order) - (guesses - out) :]
    return int(coins[inside].sum()) + int((~coins[order[:out]]).sum())


def _epsilon(right: int, guesses: int, m: int, delta: float, level: float) -> float:
    """Return the largest ε at which so many right guesses are refuted; 0 where there is none."""

    def bound(epsilon: float) -> float:
        return float(tail_bound(right, guesses, m, epsilon, delta)[0])

    return _largest(bound, level, LARGEST_EPSILON)


def _largest(
    bound: Callable[[float], float], level: float, top: float, width: float = 1e-9
) -> float:
    """Return where an increasing bound passes the level, rounded down."""
    if bound(0.0) > level:
        return 0.0
    return halved(lambda x: bound(x) <= level, 0.0, top, width=width)[0]
