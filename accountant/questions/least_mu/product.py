"""The least μ of a composition: small levels, and a search over the others.

Let every factor have P_i = Σ_j w_ij A_ij and Q_i ≥ e^{−e_i} B_i, where A_ij against B_i is
Δ_ij-GDP with Δ_ij ≤ Δ_i. A bounded loss has Δ_i = 0 and e_i, its largest value; a sample has the
weight q of its release; of a mixture of normal laws B_i is the component of Q that is farthest
out, and −e_i the logarithm of its weight. A test of level α has at most the level e^e α under
Π B_i, e = Σ e_i, and so at most the power ψ_Δ(e^e α), where ψ_Δ(a) = Φ(Δ − z_a), Δ² = Σ Δ_i². With
Φ̄(t) = α and Φ̄(u) = e^e α it needs

    μ ≤ Δ + t − u, which falls to Δ as t grows.

Where Δ' < Δ is the largest sum without the Δ_i of one factor, and w the product of the weights of
all Δ_i, it needs no more than Δ if

    e^e (w ψ_Δ(α) + (1 − w) ψ_Δ'(α)) ≤ ψ_Δ(α):

ψ(e^e α) ≤ e^e ψ(α), for ψ is concave, and ψ_Δ'(α)/ψ_Δ(α) = Φ̄(t − Δ')/Φ̄(t − Δ) falls in t.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.composition.invert import most
from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.halving import halved
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from dpassay.accountant.pairs.gaussian import normal_cdf
from dpassay.accountant.pairs.gaussian_mixture import GaussianMixturePair
from dpassay.accountant.pairs.subsampled import SubsampledPair
from dpassay.accountant.questions.least_mu import closed, discrete, mixture
from dpassay.accountant.questions.least_mu.curve import stretch
from dpassay.accountant.questions.least_mu.search import DEEPEST, Tail, least

_HALVINGS = 5
"""Halvings of a depth: it needs to be known to a thirty-second."""
_DEEP = 2
"""A depth, of levels of 0.02, up to which tests are met where small levels are not bounded well."""

Least = Callable[[Pair, Fraction], arb]


def least_mu(pair: Product, width: Fraction, of_factor: Least) -> arb:
    """Enclose the least μ, to a relative width if that succeeds.

    It is at least every μ_i, and at most √Σ μ_i² (Dong, Roth and Su 2022, Corollary 3.3), which it
    is where small levels need as much.
    """
    alike = _discrete(pair, width)
    if alike is not None:
        return alike
    floor, share = closed.floor(pair), width / 8
    known = [(part, of_factor(part, share), count) for part, count in pair.factors]
    together = sum((count * mu**2 for _, mu, count in known), start=arb(0)).sqrt()
    if together <= floor * (1 + ball(width) / 2) or together.overlaps(floor):
        return floor.union(together)
    reverse = pair.reverse()

    def delta(at: Fraction) -> arb:
        point = ExactReal.of_rational(at)
        value = pair.hockey_stick(point)
        return value if reverse == pair else value.max(reverse.hockey_stick(point))

    found = least(delta, floor, together, _Ends(known), width)
    return most([found, *(mu for _, mu, _ in known)])


def _discrete(pair: Product, width: Fraction) -> arb | None:
    """Return that of several discrete Gaussian releases alike, where their sum is nearly one."""
    (part, count), *others = pair.factors
    if others or not isinstance(part, DiscreteGaussianPair):
        return None
    return discrete.of_sum(part.parameter, part.shift, count, width)


@final
@dataclass(frozen=True, slots=True)
class _Form:
    """One factor at one end: Δ_i, the second largest Δ_ij or None, w_i and e_i, and its count."""

    most: arb
    less: arb | None
    weight: arb
    excess: arb
    count: int
    tight: bool
    """Whether small levels do need Δ_i, if w_i and e_i are taken away."""


class _Ends:
    """Small levels of both ends."""

    def __init__(self, known: list[tuple[Pair, arb, int]]) -> None:
        self._sides = [
            _End([_form(pair, mu, count) for pair, mu, count in known]),
            _End([_form(pair.reverse(), mu, count) for pair, mu, count in known]),
        ]

    def tail(self, depth: int, best: arb, most: arb) -> Tail:
        """Return t = depth, or less, down to its half, where that does."""
        goal, low, high = best * most, Fraction(depth, 2), Fraction(depth)
        if depth > _DEEP and not self._bounded(Fraction(DEEPEST), goal):
            raise UndecidedError("Small levels are bounded by more than any test needs.")
        if not self._bounded(high, goal):
            return Tail(ball(high), None)
        _, high = halved(lambda t: not self._bounded(t, goal), low, high, _HALVINGS)
        return Tail(ball(high), best)

    def _bounded(self, t: Fraction, goal: arb) -> bool:
        return all(side.bound(ball(t)) <= goal for side in self._sides)

    def within(self, depth: int) -> bool:
        """Whether no test needs more than Δ of its end."""
        return all(side.within(arb(depth)) for side in self._sides)


class _End:
    """Small levels of one end."""

    def __init__(self, forms: list[_Form]) -> None:
        self._excess = sum((form.count * form.excess for form in forms), start=arb(0))
        square = sum((form.count * form.most**2 for form in forms), start=arb(0))
        self._most, self._tight = square.sqrt(), all(form.tight for form in forms)
        self._weight, gained = arb(1), arb.pos_inf()
        for form in forms:
            if form.less is not None:
                self._weight *= form.weight**form.count
                gained = gained.min(form.most**2 - form.less**2)
        self._less = (square - gained).max(arb(0)).sqrt() if gained.is_finite() else arb(0)

    def bound(self, t: arb) -> arb:
        """Return what tests of levels of at most Φ̄(t) need at most."""
        return self._most + stretch(t, self._excess)

    def within(self, t: arb) -> bool:
        """Whether that is Δ."""
        if not self._tight:
            return False
        ratio = normal_cdf(self._less - t) / normal_cdf(self._most - t)
        share = self._weight + (1 - self._weight) * ratio
        return bool(self._excess.exp() * share <= 1)


def _form(pair: Pair, mu: arb, count: int) -> _Form:
    """Return the form of a factor whose least μ is known."""
    zero, one = arb(0), arb(1)
    if isinstance(pair, GaussianMixturePair):
        means = sorted((mean for _, mean in pair.p), reverse=True)
        far = max(pair.q, key=lambda part: part[1])[1].ball()
        less = means[1].ball() - far if len(means) > 1 else None
        weight, excess = mixture.weights(pair)
        return _Form(means[0].ball() - far, less, weight, excess, count, True)
    loss = pair.max_loss()
    if loss.is_finite():
        return _Form(zero, None, one, loss.max(zero), count, True)
    if isinstance(pair, SubsampledPair) and pair.mixed_first:
        own = closed.mu_of_all(pair.inner)
        if own is not None:
            return _Form(own, zero, pair.sampling_prob.ball(), zero, count, True)
    return _Form(mu, None, one, zero, count, closed.mu_of_all(pair) is not None)
