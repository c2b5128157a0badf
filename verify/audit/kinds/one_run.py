r"""One-run audits: many canaries, each included by a fair coin of its own, one run.

An auditor who sees the output guesses some of the coins; more right guesses than a claim allows
refute it.

The largest probability of so many right guesses of one run under a claim.

An auditor who sees the output of one run M(S), S uniform on {−1, 1}^m, guesses r of the m coins (a
number fixed beforehand; which ones, and how, may depend on the output). Let V be the number of
right guesses, W ~ Bin(r, e^ε/(1 + e^ε)), β = P(W ≥ v) and w = P(W = v). Over all (ε, δ)-DP M, for
neighbours that differ in one canary, and v ≥ 1,

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

Guesses of one run against a whole curve: a bound that uses another point of it at every count.

Now with p_k = P(V = k). Averaged over coins and
canaries, P(V = k, canary i is guessed right) = (k/m) p_k. Take the event that i is guessed right
and at least j guesses are. With the coin of i flipped the same outputs guess i wrong, and have one
right guess less, so that (ε, δ)-DP in both orders says for every j ≥ 1

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

Any points of the curve make (6) true. Good ones are those at which the inequalities bind when
P(V ≥ v) is the level: there H_{j−1} is the largest (R_j − δ)/e^ε along the curve, and p_{j−1}
follows from H_{j−1} − H_j.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from dpassay.accountant.errors import InvalidInputError, NeitherTrueNorFalse, expected
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.reading import few
from dpassay.accountant.numbers.solve import halved
from dpassay.verifier.audit.kinds.result import COMPARE
from dpassay.verifier.audit.kinds.samples import real_numbers
from dpassay.verifier.audit.outcome import Outcome
from dpassay.verifier.audit.statistics import exact_test
from dpassay.verifier.audit.statistics.exact_test import LARGEST_MU, gaussian_delta, least
from dpassay.verifier.audit.statistics.guarantee import Claim, Guarantee, epsilon_delta, guarantee

Floats: TypeAlias = NDArray[np.float64]

_MOST_STEPS = 1000
"""Inequalities that are used: those of far smaller counts add next to nothing."""
_LEVELS = 8
"""Levels that are tried: each is the bound that the one before gave."""
_LARGE = 1e200
"""Where multipliers are scaled down, lest they overflow."""
_ROUNDING = 1e-9
"""Relative, of sums and products of some thousand positive numbers."""


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
    """Return (3) rounded up, least near a level, and its points for j = v, v − 1, …"""
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
    """Return (3) for points of a curve, those of j = v, v − 1, …, rounded up."""
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
may also stand for equation (1)."""


LARGEST_EPSILON = 60.0
"""Where bounds of ε end: as many canaries as any machine holds prove no more."""
_LEAST = 1e-290
"""Probabilities below it are close to where doubles underflow: they count as so much."""
_EPSILONS = np.concatenate([[0.0], np.geomspace(1e-3, LARGEST_EPSILON, 1500)])
"""Where δ_μ(ε) is asked for: with fewer, bounds that use many of them lose some per mille each."""


@final
class Points(NamedTuple):
    """Points of a curve, with what they are called where floats are not exact."""

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
    chance, up = special.expit(eps), 1 + exact_test.ROUNDING
    beta = np.minimum(1.0, exact_test.at_least(right, guesses, chance) * up)
    below = np.minimum(1.0, exact_test.at_most(right - 1, guesses, chance) * up)
    mass = exact_test.masses(np.array([right]), guesses, chance)[:, 0] / up
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Where one of them underflows: P(W = j + 1)/P(W = j) is at most this beyond v, so that β/w
        # is at most that of a geometric series.
        falling = np.exp(eps) * ((guesses - right) / (right + 1))
        series = np.where(falling < 1, 1 / (1 - falling), np.inf)
        odds = np.where(np.minimum(mass, beta) > _LEAST, beta / mass, series)
        added = np.where(most > 0, canaries / right * most * odds * below * up, 0.0)
    beta = np.maximum(beta, _LEAST)
    found: Floats = np.minimum(1.0, beta + np.where(beta < 1, added, 0.0))
    return found


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
"""Where the search for a number of canaries ends: no run holds a billion."""
_FEWEST = 8
"""Guesses that are worth trying."""
_SHARES = (1, 2, 4, 16, 64)
"""The usual numbers of guesses are the canaries over these."""
_UNFAIR = 6.0
"""Standard deviations from half of the canaries that fair coins do not give (2e-9)."""
_NARROW = 1e-6
"""Relative width to which bounds of μ are searched."""


@final
@dataclass(frozen=True, repr=False, eq=False)
class Evidence:
    """What a certificate of one run holds besides the result."""

    scores: NDArray[Any]
    included: NDArray[np.bool_]
    seed: int
    guarantee: Guarantee | None
    tested: Steps
    """The points of the claim that the p-value rests on."""
    epsilon_guesses: int
    """The number of guesses that the bound of ε rests on."""


@final
@dataclass(frozen=True, repr=False)
class OneRunResult(NeitherTrueNorFalse):
    """What one run tells."""

    compare: ClassVar[str] = COMPARE
    outcome: Outcome | None
    """None where nothing was claimed."""
    claim: str
    canaries: int
    guesses: int
    """The number of guesses that tells most, of those that were tried."""
    right: int
    tried: tuple[int, ...]
    delta: float
    epsilon: float
    """Lower bound of ε at δ, at confidence 1 − significance."""
    mu: float
    """Lower bound of μ, at the same confidence."""
    p_value: float | None
    """Of the claim, times the numbers of guesses that were tried; None without a claim."""
    significance: float
    evidence: Evidence

    @property
    def verdict(self) -> Outcome | None:
        """The outcome; None where nothing was claimed."""
        return self.outcome

    @property
    def refuted(self) -> bool:
        """Whether the claim was refuted."""
        return self.outcome is Outcome.REFUTED

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "schema_version": 1,
            "verdict": None if self.outcome is None else self.outcome.value,
            "claim": self.claim,
            "canaries": self.canaries,
            "guesses": self.guesses,
            "right": self.right,
            "guesses_tried": list(self.tried),
            "delta": self.delta,
            "epsilon_lower_bound": self.epsilon,
            "mu_lower_bound": self.mu,
            "p_value": self.p_value,
            "significance": self.significance,
        }

    def certificate(self) -> dict[str, Any]:
        """Return scores, coins and result as a certificate, for `dpassay check`.

        Raises InvalidInputError where nothing was claimed.
        """
        from dpassay.verifier.prover import audits

        return audits.one_run(self)

    def __str__(self) -> str:
        """Return the result in a few lines."""
        head = "" if self.outcome is None else f"{self.outcome.value}  {self.claim}\n"
        p_value = "" if self.p_value is None else f"  p-value      {few(self.p_value, 3)}\n"
        tried = ", ".join(map(str, self.tried))
        return (
            f"{head}  canaries     {self.canaries}, each included by a fair coin of its own\n"
            f"  guesses      {self.right} of {self.guesses} right (numbers tried: {tried})\n"
            f"{p_value}"
            f"  with confidence {1 - self.significance:.7g} each: epsilon({few(self.delta)}) ≥ "
            f"{self.epsilon:.6g}; mu ≥ {self.mu:.6g}"
        )

    __repr__ = __str__


def audit_one_run(
    scores: ArrayLike,
    included: ArrayLike,
    claim: Claim | None = None,
    *,
    delta: float = 1e-5,
    guesses: int | Sequence[int] | None = None,
    significance: float = 0.05,
    seed: int = 0,
) -> OneRunResult:
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
    >>> found.outcome.value, round(found.epsilon, 2)
    ('REFUTED', 5.42)
    """
    values, coins = _read(scores, included)
    if not 0 < significance < 1:
        raise expected("significance", significance, "in (0, 1)")
    if not 0 <= delta < 1:
        raise expected("delta", delta, "in [0, 1)")
    m = len(values)
    numbers = _numbers(guesses, m)
    whole = None if claim is None else guarantee(claim)
    level = significance / len(numbers)
    _require_enough(whole, m, None if guesses is None else numbers, significance)
    right = {r: _right(values, coins, r, seed) for r in numbers}
    epsilons = {r: _epsilon(v, r, m, delta, level) for r, v in right.items()}
    mus = {r: _mu(v, r, m, level) for r, v in right.items()}
    best = max(numbers, key=lambda r: (epsilons[r], mus[r]))
    p_value, tested = None, []
    if whole is not None:
        points = points_of(whole)
        found = {r: least_bound(v, r, m, points, level) for r, v in right.items()}
        best = min(numbers, key=lambda r: found[r][0])
        p_value, tested = min(1.0, len(numbers) * found[best][0]), found[best][1]
    return OneRunResult(
        outcome=None if p_value is None else Outcome.of(p_value, significance),
        claim="" if whole is None else whole.description,
        canaries=m,
        guesses=best,
        right=right[best],
        tried=numbers,
        delta=float(delta),
        epsilon=max(epsilons.values()),
        mu=max(mus.values()),
        p_value=p_value,
        significance=significance,
        evidence=Evidence(
            values, coins, seed, whole, tested, max(numbers, key=epsilons.__getitem__)
        ),
    )


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
            f"Expected finite scores: scores[{first}] is {values[first]}. Give a canary without a "
            "score the middle one."
        )
    m, inside = len(values), int(coins.sum())
    if m > 1 and (values == values[0]).all():
        raise InvalidInputError(f"All {m} scores are {values[0]:g}: nothing can be guessed.")
    if abs(2 * inside - m) > _UNFAIR * math.sqrt(m):
        raise InvalidInputError(
            f"{inside} of {m} canaries were included: that is no result of fair coins. Include "
            "each canary with probability 1/2, independently."
        )
    return values, coins


def _numbers(guesses: int | Sequence[int] | None, m: int) -> tuple[int, ...]:
    if guesses is None:
        found = {m // share for share in _SHARES if m // share >= _FEWEST} or {m}
        return tuple(sorted(found, reverse=True))
    found = {guesses} if isinstance(guesses, int) else {int(number) for number in guesses}
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

    `numbers` of guesses that were asked for share the significance; None stands for the usual ones.
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
        f"this significance. From {needed} on something can be."
    )


def _right(values: NDArray[Any], coins: NDArray[np.bool_], guesses: int, seed: int) -> int:
    """Count the right guesses: the canaries with the largest scores are in, the least are out.

    Equal scores are put in an order that does not depend on the coins: by SHA-256 of seed and
    place, which whoever checks a certificate can compute again.
    """
    lots = np.zeros(len(values), "S32")
    if len(np.unique(values)) < len(values):
        lots[:] = [hashlib.sha256(f"{seed} {i}".encode()).digest() for i in range(len(values))]
    order = np.lexsort((lots, values))
    out = guesses // 2
    inside = order[len(values) - (guesses - out) :]
    return int(coins[inside].sum()) + int((~coins[order[:out]]).sum())


def _epsilon(right: int, guesses: int, m: int, delta: float, level: float) -> float:
    """Return the largest ε at which so many right guesses are refuted; 0 where there is none."""

    def bound(epsilon: float) -> float:
        return float(tail_bound(right, guesses, m, epsilon, delta)[0])

    return _largest(bound, level, LARGEST_EPSILON)


def _mu(right: int, guesses: int, m: int, level: float) -> float:
    """Return the largest μ that is refuted; 0 where there is none."""
    return _largest(
        lambda mu: least_bound(right, guesses, m, points_of_mu(mu), level)[0],
        level,
        LARGEST_MU,
        _NARROW,
    )


def _largest(
    bound: Callable[[float], float], level: float, top: float, width: float = 1e-9
) -> float:
    """Return where a growing bound passes the level, from below."""
    if bound(0.0) > level:
        return 0.0
    return halved(lambda x: bound(x) <= level, 0.0, top, width=width)[0]
