"""The least μ of a sample of discrete Gaussian noise: often that of the limit of small levels.

With T and t as in `dpassay.accountant.questions.least_mu.discrete`, P has the tails (1 − q)T(k) +
qT(k − s), and Q has T(k). The test {Z ≥ k} needs the difference of their scores.

*Far to the right*, x = k − s ≥ X: P has at most T(x), so that the test needs no more than without
a sample, t(k) − t(x), which falls there. Also, P has at most W T(x), W = q + (1 − q) T(X + s)/T(X),
and a score that is at least −ln W/λ(τ) above t(x), λ = φ/Φ̄ and Φ̄(τ) = W T(x). As
Φ̄(τ) ≤ e^{−τ²/2}/2 and T(x) ≥ e^{−x²/2v}/θ, τ is at most u, u² = x²/v + max(0, 2 ln(θ/2W)), and
λ(τ) < u + 1/u if τ ≥ 1. If t' ≤ (1 + E(x))/√v from x on, no test needs more than s/√v if

    (s/√v) E(x) ≤ −ln W/(u + 1/u)

at X, where x E(x) falls: x/(u + 1/u) rises.

*E.* For real x ≥ 1 let T(x) = f(x) S(x)/θ, f(x) = e^{−x²/2v} and S(x) = Σ_{j≥0} w_j with
w_j = e^{−(2xj + j²)/2v}, and κ be the mean of j under the weights w_j, which falls. Then
t' = (x + κ)/(vλ(t)). Φ̄(u) ≥ φ(u)/(u + 1/u), so that t(x) ≥ u where u² = x²/v − g ≥ 1 and
g = 2 max(1, ln(√(2π) S(X)/θ) + ln(y + 1/y)) at y = x/√v ≥ 1. As λ(t) > t,

    t'(x) √v ≤ (1 + κ(X)/x)/√(1 − g v/x²) = 1 + E(x)   for x ≥ X,

and x E(x) falls, as g/x does.

*Far to the left*, 1 − k ≥ X: Z < k has a probability under P of at least (1 − q) T(1 − k), so that
μ_k ≤ t((1 − q) T(X)) − t(T(X)), over which λ has the integral −ln(1 − q).
"""

from __future__ import annotations

from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.theta import theta, upper_tail
from dpassay.accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from dpassay.accountant.questions.least_mu.curve import score, stretch

_MOST_TESTS = 20_000
"""Half-lines that are asked for until a refusal."""
_MOST_TERMS = 100_000
"""Terms of a tail that are summed."""


def least_mu(
    pair: DiscreteGaussianPair, sampling_prob: ExactReal, floor: arb, most: arb, width: Fraction
) -> arb:
    """Enclose the least μ of a sample of the pair, to a relative width if that succeeds.

    It is `floor`, s/√v, itself where that is proved to be enough; `most` is known to be.
    """
    search = _Search(pair, sampling_prob.ball(), floor)
    return search.run(most, 1 + ball(width) / 2)


@final
class _Search:
    """Tests from the middle outward."""

    def __init__(self, pair: DiscreteGaussianPair, q: arb, floor: arb) -> None:
        self._exact, self._shift, self._q = pair.parameter, pair.shift, q
        self._root, self._theta = pair.parameter.ball().sqrt(), theta(pair.parameter)
        self._floor, self._best = floor, floor
        self._tails: dict[int, arb] = {}

    def run(self, most: arb, allowed: arb) -> arb:
        """Return the least μ."""
        right = max(1, int(float(self._root.upper())))
        left, seen = right, range(1, 1)
        while right + left <= _MOST_TESTS:
            wanted = range(1 - left, right + self._shift + 1)
            for k in wanted:
                if k not in seen:
                    self._meet(k)
            seen = wanted
            goal = self._best if self._best is self._floor else self._best * allowed
            on_the_left = self._bounded_left(left, goal)
            on_the_right = self._bounded_right(right, goal)
            if on_the_left and on_the_right:
                return self._best.union(goal) if goal is not self._floor else goal
            left += 0 if on_the_left else left // 4 + 1
            right += 0 if on_the_right else right // 4 + 1
        return self._best.union(most)

    def _meet(self, k: int) -> None:
        """Take the need of {Z ≥ k} for the largest one, if it is."""
        need = self._score(k) - self._mixed(k)
        if not need < self._floor and (need > self._best or self._best is self._floor):
            self._best = need.max(self._best)

    def _bounded_left(self, x: int, goal: arb) -> bool:
        """Whether no test with 1 − k ≥ x needs more."""
        tail = (1 - self._q) * self._tail(x)
        return bool(stretch(score(tail), -(1 - self._q).log()) < goal)

    def _bounded_right(self, x: int, goal: arb) -> bool:
        """Whether no test with k − s ≥ x needs more."""
        if goal is not self._floor:
            return bool(self._score(x + self._shift) - self._score(x) <= goal)
        excess = excess_beyond(self._exact, x)
        if not excess.is_finite():
            return False
        w = self._q + (1 - self._q) * self._tail(x + self._shift) / self._tail(x)
        u = ((x / self._root) ** 2 + (2 * (self._theta / (2 * w)).log()).max(arb(0))).sqrt()
        room = -w.log() / (u + 1 / u)
        return bool(score(w * self._tail(x)) >= 1 and self._shift / self._root * excess <= room)

    def _tail(self, x: int) -> arb:
        """Return T(x)."""
        if x not in self._tails:
            self._tails[x] = upper_tail(self._exact, x)
        return self._tails[x]

    def _score(self, k: int) -> arb:
        return score(self._tail(k)) if k > 0 else -score(self._tail(1 - k))

    def _mixed(self, k: int) -> arb:
        """Return the score of (1 − q)T(k) + qT(k − s), by the smaller one of it and its rest."""
        s, q = self._shift, self._q
        above = (1 - q) * self._tail(k) + q * self._tail(k - s)
        if above < arb(1) / 2:
            return score(above)
        return -score((1 - q) * self._tail(1 - k) + q * self._tail(s + 1 - k))


def excess_beyond(parameter: ExactReal, x: int) -> arb:
    """Return E(x), a bound of t'√v − 1 from x on; +∞ where that fails."""
    v = parameter.ball()
    y = x / v.sqrt()
    total, mean = _sums(v, x)
    constant = ((2 * arb.pi()).sqrt() * total / theta(parameter)).log()
    g = 2 * (constant + (y + 1 / y).log()).max(arb(1))
    if not (y >= 1 and y * y - g >= 1):
        return arb.pos_inf()
    return (1 + mean / x) / (1 - g / (y * y)).sqrt() - 1


def _sums(v: arb, x: int) -> tuple[arb, arb]:
    """Return S(x) and κ(x).

    Once (1 + 1/j) w_{j+1}/w_j < 1, which falls, what is left out is a geometric series at most.
    """
    ratio, fall = (-(2 * x + 1) / (2 * v)).exp(), (-1 / v).exp()
    total, moment, weight = arb(1), arb(0), ratio
    for j in range(1, _MOST_TERMS):
        total, moment = total + weight, moment + j * weight
        ratio *= fall
        weight *= ratio
        most, left = ratio * (1 + arb(1) / (j + 1)), (j + 1) * weight
        if most < 1 and left < arb(2) ** -ctx.prec:
            rest = arb(0).union(left / (1 - most))
            return total + rest, (moment + rest) / (total + rest)
    raise UndecidedError(f"Sums of more than {_MOST_TERMS} terms are not formed.")
