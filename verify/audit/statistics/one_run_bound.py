r"""The largest probability of so many right guesses of one run under a claim.

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
So is the one that uses another ε at every count (`statistics.curve_bound`): the less is taken.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpassay.accountant.numbers.exact import exact
from dpassay.verifier.audit.statistics import binomial
from dpassay.verifier.audit.statistics.curve_bound import BothOrders, curve_bound
from dpassay.verifier.audit.statistics.exact_test import gaussian_delta
from dpassay.verifier.audit.statistics.guarantee import Guarantee

Floats: TypeAlias = NDArray[np.float64]
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
    chance, up = special.expit(eps), 1 + binomial.ROUNDING
    beta = np.minimum(1.0, binomial.at_least(right, guesses, chance) * up)
    below = np.minimum(1.0, binomial.at_most(right - 1, guesses, chance) * up)
    mass = binomial.masses(np.array([right]), guesses, chance)[:, 0] / up
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
