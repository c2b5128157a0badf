"""Products with losses of heavy tails and no transform: bounds that take few tails and moments.

The loss of rank-one Gaussian noise has P(L > l) about e^{−l/(M − 1)}, finite moments E[e^{cL}] for
c < 1/(M − 1) alone, and tails that are integrals of thousands of terms each: too slow for a grid.

*Below*: the event that some of the k releases of one factor has a loss above l has the
probabilities 1 − (1 − p)^k and 1 − (1 − q)^k, with p = P(L > l) and q = Q(L > l), so that

    H(ε) ≥ 1 − (1 − p)^k − e^ε (1 − (1 − q)^k).

Where one large loss decides, this is most of H.

*Above*: let t be a threshold, and p = P(L > t) for each of the factors that are heavy. Chernoff's
inequality, (1 − e^{−x})⁺ ≤ e^{cx} c^c/(1 + c)^{1 + c}, where all their losses are at most t, gives

    H(ε) ≤ 1 − Π(1 − p)^k + Π E[e^{cL}; L ≤ t]^k e^{−cε} c^c/(1 + c)^{1 + c},   c > 0.

The moment is bounded cell by cell from P and Q of the cells a < L ≤ b: x = e^{−L} is between
e^{−b} and e^{−a} there, its mean is Q/P, and x^{−c} lies below its chord.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.composition.product import Engine, Factor, Product
from dpassay.accountant.core.pair import Pair, Tails
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.numbers.chernoff import log_peak
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import fraction
from dpassay.accountant.pairs.rank_one.pair import RankOnePair
from dpassay.accountant.pairs.subsampled import SubsampledPair

_PRECISION = 53
"""Bits of both bounds: they are apart by more than that."""
_TOPS = (Fraction(1), Fraction(3, 4), Fraction(1, 2))
"""Thresholds t as shares of ε: beyond it P(L > t) is lost, and below it more of that counts."""
_HIGHER_TOPS = (
    Fraction(1),
    Fraction(9, 8),
    Fraction(5, 4),
    Fraction(3, 2),
    Fraction(2),
    Fraction(3),
)
"""Thresholds for ε(δ), as multiples of its lower bound: P(L > t) has to fall below δ."""
_CENTRE = Fraction(1, 16)
"""P(L > a) from which on there are no more cells: the rest is the centre of the law."""
_NEAR = Fraction(4, 5)
"""Ratio of the ends of cells down to `_FAR` of the least threshold: e^{cL} varies much in them."""
_FAR = Fraction(1, 4)
"""And ratio of the ends of the cells below, where e^{cL} is nearly linear."""
_MOST_CELLS = 24
"""Cells between 0 and the thresholds at most."""
_LOWER_CELLS = 4
"""Cells below 0, each four times as wide as the one before: losses there only help."""
_TAIL_BITS = 32
"""Bits of the tails at the ends of cells."""
_UNCUT = (Fraction(1, 2), Fraction(4, 5), Fraction(14, 15))
"""Exponents c as shares of 1/(M − 1), up to where the moment is finite without a threshold."""
_EXPONENTS = range(-6, 16)
"""i of the exponents c = 2^{i/2}/ε: of more than 2^8/ε the term of Chernoff's bound is 1."""
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
    """The two bounds, for products that `applies` is true of; they stay apart."""

    numerical = True

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return a ball around both bounds.

        Raises UndecidedError, with what was reached, if a width is asked for that it has not.
        """
        with ctx.workprec(_PRECISION):
            lower, upper = self.lower_bound(product, epsilon), self.bound(product, epsilon)
            wanted = product.relative_width
            if wanted is not None and not upper - lower <= lower * ball(wanted):
                raise _refusal("delta", lower, upper)
            return lower.union(upper)

    def lower_bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return what one large loss shows."""
        with ctx.workprec(_PRECISION):
            eps = epsilon.ball()
            lower = (-eps.expm1()).max(arb(0))
            for pair, count in _heavy(product):
                for share in _PLACES:
                    p, q = _some(pair, count, max(epsilon.ball(), arb(0)) * ball(share))
                    lower = lower.max(p - eps.exp() * q)
            return lower.lower()

    def inverse(self, product: Product, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ) by the points at which the bounds pass δ.

        Raises UndecidedError as for `profile`.
        """
        with ctx.workprec(_PRECISION):
            target = delta.ball()
            lower = _passed_below(product, target)
            upper = arb.pos_inf()
            scale = fraction(lower.mid()) if lower > 0 else _START
            for c, lost, log_size in _chernoff(product, scale, _HIGHER_TOPS):
                if lost < target:
                    upper = upper.min(((log_size - (target - lost).log()) / c).upper())
            narrow = lower > 0 and upper - lower <= lower * ball(relative_width)
            if not (narrow and upper.is_finite()):
                raise _refusal("epsilon", lower, upper)
            return Interval.of_ball(lower.union(upper))

    def bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return the upper bound."""
        with ctx.workprec(_PRECISION):
            found = arb(1)
            scale = max(fraction(epsilon.ball().mid()), _START)
            for c, lost, log_size in _chernoff(product, scale, _TOPS):
                found = found.min((lost + (log_size - c * epsilon.ball()).exp()).upper())
            return found


def _chernoff(
    product: Product, scale: Fraction, tops: Sequence[Fraction]
) -> Iterator[tuple[arb, arb, arb]]:
    """Yield some c, with 1 − Π(1 − p)^k and ln Π E[e^{cL}; L ≤ t]^k c^c/(1 + c)^{1 + c}."""
    heavy = [(_cells(pair, scale, tuple(tops)), n) for pair, n in _heavy(product)]
    others = [(pair, n) for pair, n in product.factors if _rank_one(pair) is None]
    most = max(inner.dimension for inner in map(_rank_one, product.pairs) if inner)
    # below c = 1/ε Chernoff's bound says nothing
    uncut = [share / (most - 1) for share in _UNCUT if share / (most - 1) * scale >= 1]
    exponents = [fraction((arb(2) ** (arb(i) / 2) / ball(scale)).mid()) for i in _EXPONENTS]
    for exponent in [*uncut, *exponents]:
        c = ball(exponent)
        try:
            rest = sum((n * _log_moment(pair, exponent) for pair, n in others), start=arb(0))
            if exponent in uncut:
                moment = sum((n * _log_moment(p, exponent) for p, n in _heavy(product)), rest)
                yield c, arb(0), moment + log_peak(c)
        except (NotApplicableError, UndecidedError):
            continue
        moments = [(_truncated(cells, c), n) for cells, n in heavy]
        for t in range(-len(tops), 0):
            lost = sum((n * (-cells[t][1].p_above).log1p() for cells, n in heavy), start=arb(0))
            log_size = sum((n * cut[t].log() for cut, n in moments), start=rest)
            yield c, -lost.expm1(), log_size + log_peak(c)


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


@functools.lru_cache(maxsize=64)
def _cells(
    pair: Pair, scale: Fraction, tops: tuple[Fraction, ...]
) -> tuple[tuple[arb, Tails], ...]:
    """Return ends of cells from below 0 up to the thresholds, with the tails there."""

    def at(place: Fraction) -> tuple[arb, Tails]:
        with ctx.workprec(_TAIL_BITS):
            return ball(place), pair.tails(ExactReal.of_rational(place))

    found = [at(scale * share) for share in sorted(tops)]
    place = least = scale * min(tops)
    for _ in range(_MOST_CELLS):
        if found[0][1].p_above > ball(_CENTRE):
            break
        place *= _NEAR if place > least * _FAR else _FAR
        found.insert(0, at(place))
    found.insert(0, at(Fraction(0)))
    for j in range(_LOWER_CELLS):
        found.insert(0, at(-place * 4**j))
    return tuple(found)


def _truncated(cells: Sequence[tuple[arb, Tails]], c: arb) -> list[arb]:
    """Return upper bounds of E[e^{cL}; L ≤ t] for the ends t of the cells."""
    (first, below), *_ = cells
    found = [(c * first).exp() * below.p_below]
    for (a, low), (b, high) in itertools.pairwise(cells):
        if b <= 0:
            p, q = high.p_below - low.p_below, high.q_below - low.q_below
        else:
            p, q = low.p_above - high.p_above, low.q_above - high.q_above
        near, far = (-a).exp(), (-b).exp()
        chord = (near * p - q) * (c * b).exp() + (q - far * p) * (c * a).exp()
        found.append((found[-1] + chord / (near - far)).upper())
    return found


@functools.lru_cache(maxsize=256)
def _log_moment(pair: Pair, c: Fraction) -> arb:
    """Return an upper bound of ln E[e^{cL}].

    A sample with probability q has E_Q[(1 − q + q e^l)^a] ≤ 1 − q + q E_Q[e^{al}] by convexity, and
    E_P[(1 − q + q e^{−l})^{−c}] ≤ 1 − q + q E_P[e^{cl}] for the reversed pair.
    """
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
