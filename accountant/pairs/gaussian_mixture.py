"""Two mixtures of normal laws with one variance, the first shifted to the right of the second."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from flint import arb

from dpassay.accountant.core.pair import Pair, Tails
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.gaussian import normal_cdf

Mixture: TypeAlias = tuple[tuple[Fraction, ExactReal], ...]
"""The (weight > 0, mean) of every component, with variance 1; the means are distinct."""

_GUARD = 32
"""Bits that the search of an inverse may lose."""
_FARTHEST = 80  # doublings
_TOLD = 256
"""Bits at which equal shifts are told from others: differences of square roots have no names."""
_MOST_STEPS = 4000
"""Halvings of a bracket: as many bits as it may have."""


@final
@dataclass(frozen=True)
class GaussianMixturePair(Pair):
    """P = Σ w_i N(a_i, 1), Q = Σ v_j N(b_j, 1) with every a_i ≥ every b_j, P ≠ Q.

    With E over the components given x, the derivative of L(x) = ln(p/q)(x) is E_P[a | x] −
    E_Q[b | x] > 0. So L increases, {L > ε} is a half-line (x, ∞), and

        H(ε) = Σ w_i Φ(a_i − x) − e^ε Σ v_j Φ(b_j − x),   L(x) = ε.

    Loss far to the left, or to the right, tends to a finite limit where the outermost components
    of P and Q have one mean, and is unbounded else.
    """

    p: Mixture
    q: Mixture

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε) for any real ε."""
        side = self._beyond(epsilon)
        if side > 0:
            return arb(0)
        if side < 0:
            return -epsilon.ball().expm1()
        tails = self.tails(epsilon)
        return tails.p_above - epsilon.ball().exp() * tails.q_above

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the probabilities on both sides of the root of L(x) = ε."""
        side = self._beyond(epsilon)
        if side:
            above, below = (arb(0), arb(1)) if side > 0 else (arb(1), arb(0))
            return Tails(above, below, above, below)
        x = self._root(epsilon)
        return Tails(
            p_above=_above(self.p, x),
            p_below=_below(self.p, x),
            q_above=_above(self.q, x),
            q_below=_below(self.q, x),
        )

    def _beyond(self, epsilon: ExactReal) -> int:
        """Return 1 if no loss exceeds ε, −1 if every loss does, else 0."""
        eps = epsilon.ball()
        if eps >= self.max_loss():
            return 1
        return -1 if eps <= -self.reverse().max_loss() else 0

    def loss(self, x: arb) -> arb:
        """Return ln(dP/dQ) at x."""
        return (_density(self.p, x) / _density(self.q, x)).log()

    def _root(self, epsilon: ExactReal) -> arb:
        """Enclose x with L(x) = ε: Newton steps inside a bracket, then a proof by two signs."""
        with ctx.workprec(ctx.prec + _GUARD):
            eps = epsilon.ball()
            low, high = self._bracket(eps)
            x, radius = ((low + high) / 2).mid(), arb(2) ** (-ctx.prec + _GUARD)
            for _ in range(_MOST_STEPS):
                value = self.loss(x) - eps
                if value < 0:
                    low = x
                elif value > 0:
                    high = x
                else:
                    break
                step = (value / (_mean(self.p, x) - _mean(self.q, x))).mid()
                newton = (x - step).mid()
                inside = low < newton < high
                new = newton if inside else ((low + high) / 2).mid()
                moved, x = abs(new - x), new
                if moved <= radius * (1 + abs(x)):
                    break
            for _ in range(ctx.prec):
                reach = (radius * (1 + abs(x))).mid()
                left, right = (x - reach).mid(), (x + reach).mid()
                if self.loss(left) < eps and self.loss(right) > eps:
                    return left.union(right)
                radius *= 4
        raise UndecidedError(f"The loss of a mixture was not told from epsilon={epsilon}.")

    def _bracket(self, eps: arb) -> tuple[arb, arb]:
        low, high = arb(-1), arb(1)
        for _ in range(_FARTHEST):
            if self.loss(low) < eps:
                break
            low *= 2
        for _ in range(_FARTHEST):
            if self.loss(high) > eps:
                return low, high
            high *= 2
        raise UndecidedError("The loss of a mixture was not told from its limit.")

    @property
    def largest_order(self) -> float:
        """Integrals of two mixtures take seconds from this order on."""
        return math.inf if len(self.q) == 1 else 64

    def renyi(self, order: arb) -> arb:
        """Return D_a, an integral, or a closed form where the largest shift dominates it."""
        from dpassay.accountant.pairs.density_moments import mixture_renyi

        extreme = self._renyi_of_large_losses(order)
        if extreme is not None:
            return extreme
        return mixture_renyi(_in_balls(self.p), _in_balls(self.q), order)

    def _renyi_of_large_losses(self, order: arb) -> arb | None:
        """Return D_a between two bounds where these agree and Q is one normal law, else None.

        With r_i the ratio of N(a_i, 1) to Q, and m the largest mean,
        w_m^a E_Q[r_m^a] ≤ E_Q[(Σ w_i r_i)^a] ≤ (Σ w_i E_Q[r_i^a]^{1/a})^a (Minkowski), and
        E_Q[r_i^a] = e^{a(a − 1)(a_i − b)²/2}.
        """
        if len(self.q) > 1 or not order > 1:
            return None
        (_, b), (weight, farthest) = self.q[0], _largest(self.p)
        largest = (farthest.ball() - b.ball()) ** 2 / 2
        least = order * (ball(weight).log() + (order - 1) * largest)
        rest = arb(0)
        for w, mean in self.p:
            if mean != farthest:
                less = (order - 1) * ((mean.ball() - b.ball()) ** 2 / 2 - largest)
                rest += ball(w / weight) * less.exp()
        excess = order * rest.log1p()
        if not excess < least * arb(2) ** (-ctx.prec):
            return None
        return (least + arb(0).union(excess.upper())) / (order - 1)

    def kullback_leibler(self) -> arb:
        """Return D_1, an integral."""
        from dpassay.accountant.pairs.density_moments import mixture_kullback_leibler

        return mixture_kullback_leibler(_in_balls(self.p), _in_balls(self.q))

    def largest_shift(self) -> arb:
        """Return the largest a_i − b_j."""
        return _largest(self.p)[1].ball() + _largest(_reflected(self.q))[1].ball()

    def closed_rho(self) -> arb | None:
        """Return (m − n)²/2 where no coupled components are farther apart than the largest means.

        With w and v their weights P ≥ w N(m, 1), and Q = v N(n, 1)(1 + o(1)) far to the right,
        where for large a the mass of P^a Q^{1 − a} lies: D_a/a tends to (m − n)²/2, its bound.
        """
        with ctx.workprec(_TOLD):
            *others, limit = self._coupled()
            if any(shift > limit for shift in others):
                return None
        return (self._coupled()[-1] ** 2 / 2).union(self.rho_bound())

    def rho_bound(self) -> arb:
        """Return half the square of the largest shift of coupled components.

        P and Q are mixtures, with the weights of any coupling, of N(a_i, 1) and N(b_j, 1), and
        Rényi divergences are jointly quasi-convex. The monotone coupling has the least such shift.
        """
        return functools.reduce(arb.max, self._coupled()) ** 2 / 2

    def _coupled(self) -> list[arb]:
        """Return a_i − b_j of the components that the monotone coupling has together, in order."""
        left, right = (sorted(m, key=lambda part: part[1]) for m in (self.p, self.q))
        (of_p, a), (of_q, b) = left.pop(0), right.pop(0)
        found = [a.ball() - b.ball()]
        while left or right:
            less = min(of_p, of_q)
            of_p, of_q = of_p - less, of_q - less
            if not of_p:
                of_p, a = left.pop(0)
            if not of_q:
                of_q, b = right.pop(0)
            found.append(a.ball() - b.ball())
        return found

    def max_loss(self) -> arb:
        """Return the limit of L on the right: finite where the largest means are equal."""
        (w, a), (v, b) = _largest(self.p), _largest(self.q)
        return (ball(w) / ball(v)).log() if a == b else arb.pos_inf()

    def reverse(self) -> GaussianMixturePair:
        """Return (Q, P), reflected."""
        return GaussianMixturePair(_reflected(self.q), _reflected(self.p))

    def law(self) -> dict[str, object]:
        """Return {"law": "gaussian-mixture", "p", "q"}, JSON texts of [weight, mean] lists."""

        def text(mixture: Mixture) -> str:
            return json.dumps([[str(weight), str(mean)] for weight, mean in mixture])

        return {"law": "gaussian-mixture", "p": text(self.p), "q": text(self.q)}


def _in_balls(mixture: Mixture) -> list[tuple[arb, arb]]:
    return [(ball(weight), mean.ball()) for weight, mean in mixture]


def _density(mixture: Mixture, x: arb) -> arb:
    """Return the density at x over that of N(0, 1)."""
    terms = ((ball(w), mean.ball()) for w, mean in mixture)
    return sum((w * (m * (x - m / 2)).exp() for w, m in terms), start=arb(0))


def _mean(mixture: Mixture, x: arb) -> arb:
    """Return the mean of the component given x."""
    terms = [(ball(w), mean.ball()) for w, mean in mixture]
    masses = [w * (m * (x - m / 2)).exp() for w, m in terms]
    return sum((n * m for n, (_, m) in zip(masses, terms, strict=True)), start=arb(0)) / sum(
        masses, start=arb(0)
    )


def _above(mixture: Mixture, x: arb) -> arb:
    return sum((ball(w) * normal_cdf(m.ball() - x) for w, m in mixture), start=arb(0))


def _below(mixture: Mixture, x: arb) -> arb:
    return sum((ball(w) * normal_cdf(x - m.ball()) for w, m in mixture), start=arb(0))


def _largest(mixture: Mixture) -> tuple[Fraction, ExactReal]:
    return max(mixture, key=lambda part: part[1])


def _reflected(mixture: Mixture) -> Mixture:
    return tuple((weight, -mean) for weight, mean in mixture)


def mixture(weights: Sequence[Fraction], means: Sequence[ExactReal]) -> Mixture:
    """Return the components with positive weights, those of one mean together, in order."""
    found: dict[ExactReal, Fraction] = {}
    for weight, mean in zip(weights, means, strict=True):
        if weight:
            found[mean] = found.get(mean, Fraction(0)) + weight
    return tuple((found[mean], mean) for mean in sorted(found))
