"""Single-number guarantees: total variation, loss distribution, Rényi, zCDP, Gaussian DP."""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial

from flint import arb

from dpassay.accountant.composition.product import Factor, Product
from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair, loss_tails, rho_beyond, rho_bound
from dpassay.accountant.errors import BetweenError, UndecidedError, expected
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.interval import (
    MAX_PRECISION,
    RELATIVE_WIDTH,
    START_PRECISION,
    Interval,
    ball,
    enclose,
    nonnegative,
    within,
)
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.pairs.invert import least, most
from dpassay.accountant.pairs.subsampled import EnvelopePair, GaussianMixturePair, SubsampledPair
from dpassay.accountant.questions import profile
from dpassay.accountant.questions.profile import (
    NONNEGATIVE,
    PROBABILITIES,
    answer,
    enclosed,
    joined,
    largest,
    usual,
    worst_pairs,
)

SEARCHED = Fraction(1, 10**6)
"""Default relative width of a ρ that is found by branch and bound."""
_SPLITS, _COSTLY_SPLITS = 100_000, 1000
"""Largest numbers of splits of a range of orders: with closed forms, and with integrals."""
_NEARLY = 1 + 1e-4
"""If divergences are integrals, larger orders are not tried once the upper bound of D_a/a is within
this factor of the largest value found."""
_INFINITE = ("inf", "Infinity", "∞")
"""Spellings of the order ∞, whose divergence is the largest privacy loss."""
_FAR = 1 << 40
"""An order beyond which D_a/a must have a finite bound for a search to begin."""
_RHO_SPARE_BITS = 20
"""Bits that D_2 must have beyond those of the width, since divergences near order 1 have fewer."""


def total_variation(
    mechanism: Mechanism,
    *,
    adjacency: Adjacency | str | None = None,
    method: str = "auto",
    relative_width: Number | None = None,
) -> Interval:
    """Enclose the total variation distance sup_S P(S) − Q(S) = δ(0)."""
    return profile.delta(
        mechanism, 0, adjacency=adjacency, method=method, relative_width=relative_width
    )


def loss_cdf(
    mechanism: Mechanism,
    loss: Number,
    *,
    adjacency: Adjacency | str | None = None,
    direction: Direction = Direction.REMOVE,
    method: str = "auto",
    relative_width: Number | None = None,
) -> Interval:
    """Enclose the least P(L ≤ loss) over the worst pairs of one direction, L = ln dP/dQ."""
    at = exact(loss, "loss")
    pairs = worst_pairs(mechanism, adjacency, direction, method)
    return enclosed(
        lambda asked: least([loss_tails(pair, at).p_below for pair in asked]),
        relative_width,
        pairs,
        lambda: PROBABILITIES,
        PROBABILITIES,
    )


def loss_survival(
    mechanism: Mechanism,
    loss: Number,
    *,
    adjacency: Adjacency | str | None = None,
    direction: Direction = Direction.REMOVE,
    method: str = "auto",
    relative_width: Number | None = None,
) -> Interval:
    """Enclose the largest P(L > loss) over the worst pairs of one direction, L = ln dP/dQ."""
    at = exact(loss, "loss")
    pairs = worst_pairs(mechanism, adjacency, direction, method)
    return enclosed(
        lambda asked: most([loss_tails(pair, at).p_above for pair in asked]),
        relative_width,
        pairs,
        lambda: PROBABILITIES,
        PROBABILITIES,
    )


def renyi(
    mechanism: Mechanism,
    order: Number,
    *,
    adjacency: Adjacency | str | None = None,
    direction: Direction | None = None,
    relative_width: Number | None = None,
) -> Interval:
    """Enclose the largest Rényi divergence D_a over neighbours, for an order a ≥ 1.

    D_1 is the Kullback–Leibler divergence. D_∞, order "inf" or `math.inf`, is the largest privacy
    loss. For Gaussian noise every order a > 0 is allowed.

    Given a direction, the answer is the largest D_a of the pairs of that direction. Suppose both
    directions are asked for and the mechanism is dominated only by the maximum of several profiles
    (`WorstCase.enveloped`). Then the largest D_a of the pairs is attained, but other neighbours may
    have a larger one. With M the moment e^{(a − 1) D_a},

        M − 1 = a(a − 1) ∫ (e^{(a−1)ε} H(ε) + e^{−aε} H'(ε)) dε over ε > 0,

    where H and H' are the profiles of a pair and of its reverse. Both are at most the sum of the
    profiles of all pairs. So M − 1 ≤ Σ (M_i − 1), and D_1 is at most the sum of the D_1 of the
    pairs.

    Raises
    ------
    InvalidInputError
        If the order is below 1, or for Gaussian noise not above 0.
    UndecidedError
        If `relative_width` is given and not reached; the error carries the bounds.
    """
    if str(order).strip() in _INFINITE:
        at_zero = functools.partial(profile.epsilon, mechanism, 0, adjacency=adjacency)
        return at_zero(direction=direction, relative_width=relative_width)
    a = exact(order, "order")
    pairs = worst_pairs(mechanism, adjacency, direction)
    gaussian = all(isinstance(pair, GaussianPair) for pair in pairs)
    if a.sign <= 0 or (a < ExactReal.of_rational(1) and not gaussian):
        raise expected("order", order, "≥ 1", "Order 1 is the Kullback–Leibler divergence.")
    deciding = [
        pair for pair in pairs if not (_never_exceeds_reverse(pair) and pair.reverse() in pairs)
    ]
    enveloped = direction is None and mechanism.worst_case(Adjacency.read(adjacency)).enveloped

    def all_together() -> arb:
        if a.rational == 1:
            return sum((pair.renyi(arb(1)) for pair in pairs), start=arb(0))
        return enveloped_renyi(pairs, a.ball())

    def ask(width: Fraction) -> Interval:
        found = enclose(
            lambda: nonnegative(most([pair.renyi(a.ball()) for pair in deciding])),
            relative_width=width,
        )
        if not enveloped:
            return found
        with within():
            found = found.hull(enclose(lambda: all_together().upper(), relative_width=width))
        if found.lower < found.upper and (found.relative_width or 1) > width:
            raise BetweenError("a Rényi divergence", found)
        return found

    return answer(ask, relative_width, usual(pairs), lambda: NONNEGATIVE, whole=NONNEGATIVE)


def _never_exceeds_reverse(pair: Pair) -> bool:
    """Whether no Rényi divergence of a pair exceeds that of its reverse.

    `SubsampledPair.renyi` has the proof for sampled releases. Divergences of compositions add up,
    so the same holds for them.
    """
    if isinstance(pair, SubsampledPair):
        return not pair.mixed_first and pair.inner == pair.inner.reverse()
    if not isinstance(pair, Product) or not pair.is_product or pair == pair.reverse():
        return False
    return all(_never_exceeds_reverse(part) or part == part.reverse() for part, _ in pair.factors)


def enveloped_renyi(pairs: Sequence[Pair], order: arb) -> arb:
    """Return ln(1 + Σ (M_i − 1))/(a − 1), an upper bound of D_a of the envelope of the pairs."""
    less = order - 1
    moments = [(less * pair.renyi(order)).expm1() for pair in pairs]
    return sum(moments, start=arb(0)).log1p() / less


def mu(
    mechanism: Mechanism,
    *,
    adjacency: Adjacency | str | None = None,
    relative_width: Number | None = None,
) -> Interval:
    """Enclose the μ of a mechanism whose trade-off function is exactly that of N(μ, 1) vs. N(0, 1).

    Raises NotApplicableError for any other mechanism.
    """
    relation = Adjacency.read(adjacency)

    def ask(width: Fraction) -> Interval:
        return enclose(lambda: mechanism.gaussian_mu(relation), relative_width=width)

    return answer(ask, relative_width, RELATIVE_WIDTH, lambda: NONNEGATIVE, whole=NONNEGATIVE)


def rho(
    mechanism: Mechanism,
    *,
    adjacency: Adjacency | str | None = None,
    relative_width: Number | None = None,
) -> Interval:
    """Enclose the least ρ for which the mechanism is ρ-zCDP, that is, sup D_a/a over a > 1.

    It is +∞ if some divergence is infinite. For a mechanism with `WorstCase.enveloped` the largest
    ρ of the pairs is attained, so it is a lower bound only.

    For Gaussian noise, continuous or discrete, subsampled or not, ρ is the limit of D_a/a at large
    orders, which does not depend on the sampling rate (`SubsampledPair._rho`). In a composition
    the ρ of Gaussian releases is added. For all others the supremum is found by branch and bound,
    if `rho_beyond` bounds D_a/a at large orders. K(a) = (a − 1) D_a is convex with K(1) = 0, so on
    [a₁, a₂] the chord of K gives an upper bound of D_a/a.

    Raises
    ------
    UndecidedError
        If `relative_width` is given and not reached, because too many splits are needed or no
        bound of D_a/a at large orders is known.
    """
    pairs = worst_pairs(mechanism, adjacency, None)
    enveloped = mechanism.worst_case(Adjacency.read(adjacency)).enveloped
    closed = _closed_rho(pairs) is not None

    def ask(width: Fraction) -> Interval:
        if closed:
            found = enclose(lambda: _known(_closed_rho(pairs)), relative_width=width)
        elif any(pair.infinity_mass() > 0 for pair in pairs):
            return Interval.of_ball(arb.pos_inf())
        else:
            found = joined([partial(_rho, pair, width) for pair in pairs], largest)
        if enveloped and found.lower.is_finite():
            raise BetweenError("rho", Interval(found.lower, Decimal("Infinity")))
        return found

    finest = RELATIVE_WIDTH if closed else SEARCHED
    return answer(ask, relative_width, finest, lambda: NONNEGATIVE, whole=NONNEGATIVE)


def _closed_rho(pairs: Sequence[Pair]) -> arb | None:
    """Return the largest ρ if it has a closed form that no other pair can exceed, else None."""
    known = [rho for rho in (pair.known.rho() for pair in pairs) if rho is not None]
    if not known:
        return None
    found, bound = most(known), most([rho_bound(pair) for pair in pairs])
    if found == arb.pos_inf() or bound.upper() <= found.upper():
        return found
    return found.union(bound) if bound.is_finite() and not bound > found else None


def _known(rho: arb | None) -> arb:
    assert rho is not None
    return nonnegative(rho)


def _rho(pair: Pair, relative_width: Fraction) -> Interval:
    if pair.known.rho() is not None:
        return enclose(lambda: _known(pair.known.rho()), relative_width=relative_width)
    precision = START_PRECISION
    bits = (relative_width.denominator // relative_width.numerator).bit_length() + _RHO_SPARE_BITS
    while precision <= MAX_PRECISION:
        with ctx.workprec(precision):
            known = _divergence(_without_gaussian(pair)[1])(Fraction(2))
            accurate = known.rel_accuracy_bits() >= bits or 2 * precision > MAX_PRECISION
            if known.is_finite() and accurate:
                return _supremum(pair, relative_width)
            if known.lower() == arb.pos_inf():
                return Interval.of_ball(arb.pos_inf())
        precision *= 2  # very large or small losses, such as 1e150 or 1e-100, need many bits
    raise UndecidedError("The Rényi divergence of order 2, which rho needs, was not enclosed.")


def _supremum(pair: Pair, relative_width: Fraction) -> Interval:
    steady, rest = _without_gaussian(pair)
    divergence = _divergence(rest)

    def bound(low: Fraction, high: Fraction | None) -> arb:
        if high is not None:
            return _bound(divergence, low, high)
        return sum((count * rho_beyond(pair, ball(low)) for pair, count in rest), start=arb(0))

    stretch = 1 + ball(relative_width) / 2
    start, largest = Fraction(1), min(_largest_order(pair) for pair, _ in rest)
    if not bound(Fraction(_FAR), None).is_finite():
        raise UndecidedError(
            "The least rho of an unbounded privacy loss is not known here: no search over finitely "
            "many orders bounds D_a/a. Ask for a Rényi divergence.",
            interval=Interval.between(steady + divergence(Fraction(2)) / 2, arb.pos_inf()),
        )
    best = divergence(start)  # D_a/a tends to KL as a → 1
    heap = [(0.0, start, None, bound(start, None))]
    costly = largest < math.inf
    splits = _COSTLY_SPLITS if costly else _SPLITS
    for _ in range(splits):
        _, low, high, most = heap[0]
        if most <= best * stretch:
            return Interval.of_ball(steady + best.union(most.max(best)))
        if high is None and (low >= largest or (costly and most <= best * _NEARLY)):
            break
        middle = 2 * low if high is None else (low + high) / 2
        value = divergence(middle) / ball(middle)
        if value.is_nan():  # the integral was not enclosed at this precision
            break
        heapq.heappop(heap)
        best = best.max(value)
        for part in ((low, middle), (middle, high)):
            known = bound(*part).min(most)
            heapq.heappush(heap, (_heap_key(known), *part, known))
    found = Interval.between(steady + best, steady + heap[0][3])
    raise UndecidedError(
        f"rho was not found to relative width {float(relative_width):.1e} within {splits} splits; "
        f"it lies in {found}. Ask for a larger relative_width.",
        reached=float(found.relative_width or math.inf),
        interval=found,
    )


def _heap_key(bound: arb) -> float:
    """Return a heap key that decreases as the bound increases."""
    return -float(bound.upper().log()) if bound.is_finite() else -math.inf


def _without_gaussian(pair: Pair) -> tuple[arb, list[Factor]]:
    """Return Σ D_a/a of the Gaussian factors, the same at every order, and the other factors."""
    if not isinstance(pair, Product):
        return arb(0), [(pair, 1)]
    gaussian = [part for part in pair.factors if isinstance(part[0], GaussianPair)]
    steady = sum((count * _known(part.known.rho()) for part, count in gaussian), start=arb(0))
    return steady, [part for part in pair.factors if part not in gaussian]


def _largest_order(pair: Pair) -> float:
    """Return the order above which a Rényi divergence takes seconds; ∞ for closed forms."""
    match pair:
        case GaussianMixturePair(q=(_, _, *_)):  # integrals of two mixtures
            return 64
        case EnvelopePair():
            return min(map(_largest_order, pair.family))
    return math.inf


def _divergence(factors: Sequence[Factor]) -> Callable[[Fraction], arb]:
    @functools.cache
    def divergence(order: Fraction) -> arb:
        return sum((count * pair.renyi(ball(order)) for pair, count in factors), start=arb(0))

    return divergence


def _bound(divergence: Callable[[Fraction], arb], low: Fraction, high: Fraction) -> arb:
    """Return an upper bound of D_x/x = K(x)/(x(x − 1)) on [low, high].

    K is convex, so its chord s·x + c on [low, high] lies above it, and the bound is the maximum of
    (s·x + c)/(x(x − 1)) = −c/x + (c + s)/(x − 1). Here c < 0, and c + s = r·c with r in [0, 1],
    since the chord extended to x = 1 lies below K(1) = 0. The function increases up to
    x = 1/(1 − √r), where its value is −c(1 − √r)², and decreases beyond.
    """
    if low == 1:  # the chord is (x − 1) D_high
        return divergence(high)
    a, b = ball(low), ball(high)
    k_a, k_b = (a - 1) * divergence(low), (b - 1) * divergence(high)
    at_one = (a - 1) * (b - 1) * (divergence(low) - divergence(high)) / (b - a)  # c + s
    c = at_one - (k_b - k_a) / (b - a)
    root = (at_one / c).max(arb(0)).sqrt()
    peak = 1 / (1 - root)
    if peak < a:
        return k_a / (a * (a - 1))
    if peak > b:
        return k_b / (b * (b - 1))
    return -c * (1 - root) ** 2
