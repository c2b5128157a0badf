"""Products with losses of heavy tails and no transform: bounds that take few tails and moments.

The loss of rank-one Gaussian noise has P(L > l) about e^{−l/(M − 1)}, finite moments E[e^{cL}] for
c < 1/(M − 1) alone, and tails that are integrals of thousands of terms each: too slow for a grid.

*Below*: the event that some of the k releases of one factor has a loss above l has the
probabilities 1 − (1 − p)^k and 1 − (1 − q)^k, with p = P(L > l) and q = Q(L > l), so that

    H(ε) ≥ 1 − (1 − p)^k − e^ε (1 − (1 − q)^k).

Where one large loss decides, this is most of H.

*Above*: Chernoff's inequality, (1 − e^{−x})⁺ ≤ e^{cx} c^c/(1 + c)^{1 + c}, hence

    H(ε) ≤ E[e^{cL}] e^{−cε} c^c/(1 + c)^{1 + c},   0 < c < 1/(M − 1).

A sample with probability q has E_Q[(1 − q + q e^l)^a] ≤ 1 − q + q E_Q[e^{al}] by convexity, and
E_P[(1 − q + q e^{−l})^{−c}] ≤ 1 − q + q E_P[e^{cl}] for the reversed pair.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from accountant.composition.product import Engine, Factor, Product
from accountant.core.pair import Pair
from accountant.errors import NotApplicableError, UndecidedError
from accountant.numbers.chernoff import log_peak
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import Interval, asked_width, ball
from accountant.numbers.precision import ctx
from accountant.numbers.solve import fraction
from accountant.pairs.rank_one.pair import RankOnePair
from accountant.pairs.subsampled import SubsampledPair

_PRECISION = 53
"""Bits of both bounds: they are apart by more than that."""
_SHARES = (Fraction(1, 2), Fraction(4, 5), Fraction(14, 15))
"""Exponents c of Chernoff's bound as shares of 1/(M − 1), where the moments end: near it for large
ε."""
_PLACES = (Fraction(1, 2), Fraction(3, 4), Fraction(9, 10), Fraction(1))
"""Shares of ε at which one large loss is asked for: the other losses may add the rest."""
_START = Fraction(1, 8)
"""First loss that is tried: ε(δ) of rank-one noise is seldom below it."""
_MOST_DOUBLINGS = 40
"""Doublings of it at most: each asks for a tail, and p falls below every δ before."""
_HALVINGS = 4
"""Halvings of the last step: the bound is flat about its best loss."""
_SHOWN = 6
"""Digits of the bounds in a refusal."""


def applies(pairs: Sequence[Pair]) -> bool:
    """Whether some loss is that of rank-one noise, subsampled or not."""
    return any(_rank_one(pair) is not None for pair in pairs)


def _rank_one(pair: Pair) -> RankOnePair | None:
    inner = pair.inner if isinstance(pair, SubsampledPair) else pair
    return inner if isinstance(inner, RankOnePair) else None


@final
@dataclass(frozen=True)
class Heavy(Engine):
    """The two bounds, for products that `applies` is true of."""

    def is_numerical(self, product: Product) -> bool:
        """Return True: the bounds stay apart."""
        return True

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return a ball around both bounds.

        Raises UndecidedError, with what was reached, if a width is asked for that it has not.
        """
        with ctx.workprec(_PRECISION):
            eps = epsilon.ball()
            lower = (-eps.expm1()).max(arb(0))
            for pair, count in _heavy(product):
                for share in _PLACES:
                    p, q = _some(pair, count, max(epsilon.ball(), arb(0)) * ball(share))
                    lower = lower.max(p - eps.exp() * q)
            lower, upper = lower.lower(), self.bound(product, epsilon)
            wanted = asked_width.get()
            if wanted is not None and not upper - lower <= lower * ball(wanted):
                raise _refusal("delta", lower, upper)
            return lower.union(upper)

    def inverse(self, product: Product, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ) by the points at which the bounds pass δ.

        Raises UndecidedError as for `profile`.
        """
        with ctx.workprec(_PRECISION):
            target = delta.ball()
            lower = _passed_below(product, target)
            upper = arb.pos_inf()
            for c, log_size in _chernoff(product):
                upper = upper.min((log_size - target.log()) / ball(c))
            narrow = lower > 0 and upper - lower <= lower * ball(relative_width)
            if not (narrow and upper.is_finite()):
                raise _refusal("epsilon", lower, upper)
            return Interval.of_ball(lower.union(upper))

    def bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return the upper bound."""
        with ctx.workprec(_PRECISION):
            found = arb(1)
            for c, log_size in _chernoff(product):
                found = found.min((log_size - ball(c) * epsilon.ball()).exp().upper())
            return found


@functools.lru_cache(maxsize=16)
def _chernoff(product: Product) -> tuple[tuple[Fraction, arb], ...]:
    """Return some c, and ln E[e^{cL}] c^c/(1 + c)^{1 + c}."""
    most = max(inner.dimension for inner in map(_rank_one, product.pairs) if inner)
    found = []
    for share in _SHARES:
        c = share / (most - 1)
        try:
            moment = sum((n * _log_moment(pair, c) for pair, n in product.factors), start=arb(0))
        except (NotApplicableError, UndecidedError):
            continue
        found.append((c, moment + log_peak(ball(c))))
    return tuple(found)


def _heavy(product: Product) -> Iterator[Factor]:
    return ((pair, n) for pair, n in product.factors if _rank_one(pair) is not None)


def _passed_below(product: Product, target: arb) -> arb:
    """Return the largest ε found at which the lower bound is δ; it is near p = δ/k.

    It is −∞ where none is found: for δ above H(0) it is below 0.
    """
    best = arb.neg_inf()
    for pair, count in _heavy(product):
        low, high = Fraction(0), _START
        for _ in range(_MOST_DOUBLINGS):
            p, q = _some(pair, count, ball(high))
            if not p > target or not q > 0:
                break
            best = best.max(((p - target) / q).log().lower())
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            p, q = _some(pair, count, ball(middle))
            if p > target and q > 0:
                best = best.max(((p - target) / q).log().lower())
            low, high = (middle, high) if p > 2 * target else (low, middle)
    return best


def _some(pair: Pair, count: int, loss: arb) -> tuple[arb, arb]:
    """Return the probabilities of a loss above some number in one of the releases."""
    tails = pair.tails(ExactReal.of_rational(fraction(loss.mid())))
    p, q = (-(count * (-x).log1p()).expm1() for x in (tails.p_above, tails.q_above))
    return p, q


@functools.lru_cache(maxsize=256)
def _log_moment(pair: Pair, c: Fraction) -> arb:
    """Return an upper bound of ln E[e^{cL}]."""
    with ctx.workprec(_PRECISION):
        if isinstance(pair, SubsampledPair) and _rank_one(pair) is not None:
            return (pair.sampling_prob.ball() * _log_moment(pair.inner, c).expm1()).log1p()
        place = ball(c)
        return place * pair.renyi(1 + place)


def _refusal(what: str, lower: arb, upper: arb) -> UndecidedError:
    """Return what says the bounds, rounded outward."""
    low, high = Interval.of_ball(lower, _SHOWN).lower, Interval.of_ball(upper, _SHOWN).upper
    known = lower > 0 and bool(upper.is_finite())
    return UndecidedError(
        f"Reached {what} in [{low}, {high}]: a composition with rank-one noise is enclosed by two "
        "quick bounds, as its tails are too slow for a fine grid. Ask for a larger "
        "relative_width, for Rényi divergences, or with method='grid', which takes minutes.",
        reached=float(((upper - lower) / lower).upper()) if known else math.inf,
        interval=Interval(low, high) if what == "epsilon" else None,
    )
