"""What a pair of laws (P, Q) answers, enclosed a second time: every answer is a number or a ball.

Those of a product are made in `compositions.composed`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

from flint import arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker import allocation
from dpassay.verifier.checker.arithmetic import crossing, largest, least, total
from dpassay.verifier.checker.compositions import composed, samples
from dpassay.verifier.checker.declared import BY_LAW
from dpassay.verifier.checker.declared.law import laplace_moment, laplace_tails
from dpassay.verifier.checker.integrals import laplace_product_tails, rank_one_complement
from dpassay.verifier.checker.masses import Bounded, masses, mixed, theta
from dpassay.verifier.checker.mechanisms import shuffled
from dpassay.verifier.checker.reals import (
    INFINITE,
    FewDigitsError,
    Real,
    UnknownError,
    apply,
    ball,
    compare,
    exp,
    hull,
    log,
)

_FARTHEST = 1 << 20
"""Losses beyond it are not asked for: a bracket that long holds no root."""
_MOST_BITS = 400
"""Halvings of an interval in which a level is looked for."""
_MOST_INTEGER_BITS = 1 << 20
"""Of an integer part: a larger one would not fit into memory."""
_ZERO, _ONE = Fraction(0), Fraction(1)
Law: TypeAlias = dict[str, Any]
"""A name under "law" and parameters that are numbers or lists of numbers."""


def tails(law: Law, epsilon: Any) -> tuple[Any, Any]:
    """Return P(L > ε) and Q(L > ε)."""
    if composed.composite(law):
        found = composed.answers(law, epsilon)
        return Real(found.above_p), Real(found.above_q)
    if law["law"] in BY_LAW:
        return BY_LAW[law["law"]].tails(law, epsilon)
    match law["law"]:
        case "gaussian":
            half, cut = law["mu"] / 2, epsilon / law["mu"]
            return apply("Phi", half - cut), apply("Phi", -half - cut)
        case "laplace":
            return laplace_tails(law["distance"], epsilon)
        case "discrete-gaussian":
            v, shift = law["parameter"], law["shift"]
            first = whole_part(v * epsilon / shift + Fraction(shift) / 2) + 1
            return theta(v, first - shift) / theta(v), theta(v, first) / theta(v)
        case "laplace-product":
            return laplace_product_tails(law["distances"], epsilon)
        case "rank-one-gaussian":
            shape = law["dimension"], law["ratio"]
            return 1 - rank_one_complement(*shape, epsilon), rank_one_complement(*shape, -epsilon)
        case "subsampled":
            return _subsampled_tails(law, epsilon)
        case "allocation-event":
            return allocation.event_tails(law, epsilon)
        case "gaussian-mixture":
            return _mixture_tails(law, epsilon)
        case "others-alike":
            return shuffled.event(law, epsilon)
    factor = exp(epsilon)
    above = [(p, q) for p, q in masses(law) if p > factor * q]  # a loss of exactly ε is not above
    return total([p for p, _ in above]), total([q for _, q in above])


def loss_tails(law: Law, epsilon: Any) -> tuple[Any, Any]:
    """Return P(L > ε) and Q(L > ε), or raise UnknownError where H is only bounded."""
    declared = BY_LAW.get(law["law"])
    if declared is not None and declared.only_bounded:
        raise UnknownError(f"the loss of {law['law']!r}")
    return tails(law, epsilon)


def whole_part(x: Any) -> Fraction:
    """Return ⌊x⌋; raise FewDigitsError where the ball holds two answers."""
    if isinstance(x, Fraction):
        return Fraction(math.floor(x))
    if not abs(x.ball) < arb(2) ** _MOST_INTEGER_BITS:
        raise FewDigitsError("the integer part of a number of so many digits")
    found = x.ball.floor().unique_fmpz()
    if found is not None:
        return Fraction(int(found))
    nearest = x.ball.mid().floor() + 1
    near = (nearest + 1).floor().unique_fmpz() if nearest.is_finite() else None
    for whole in () if near is None else (int(near) - 2, int(near) - 1):
        if compare(x, "==", Fraction(whole)):
            return Fraction(whole)
    raise FewDigitsError("the integer part of a number too near an integer")


def hockey_stick(law: Law, epsilon: Any) -> Any:
    """Return H(ε) = P(L > ε) − e^ε Q(L > ε)."""
    if composed.composite(law):
        return Real(composed.answers(law, epsilon).hockey_stick)
    declared = BY_LAW.get(law["law"])
    if declared is not None and declared.hockey_stick is not None:
        return declared.hockey_stick(law, epsilon)
    if law["law"] in ("finite", "discrete-laplace"):
        factor = exp(epsilon)
        found = total([largest([_ZERO, p - factor * q]) for p, q in masses(law)])
        if not isinstance(law, Bounded) or compare(found, "<=", law.most[1]):
            return found
        return hull(found, law.most[1]) if compare(law.most[0], "==", epsilon) else found
    if law["law"] == "between":
        *factors, most = law["factors"]
        high = hockey_stick(most, epsilon)
        return hull(largest([_known(factor, epsilon) for factor in factors]), high)
    if law["law"] == "shuffled-reports" or (
        law["law"] == "others-alike" and (law["held"] == 2 or not 0 <= epsilon < law["epsilon"])
    ):
        return shuffled.bounded(law, epsilon)
    p, q = tails(law, epsilon)
    return p - exp(epsilon) * q


def _known(law: Law, epsilon: Any) -> Any:
    """Return H(ε), or 0, which is not more, where an event takes too long."""
    try:
        return hockey_stick(law, epsilon)
    except UnknownError:
        if law["law"] != "allocation-event":
            raise
        return _ZERO


def _mixture_tails(law: Law, epsilon: Any) -> tuple[Any, Any]:
    """Return those of mixtures of N(m, 1), m ≥ 0 as P, m ≤ 0 as Q: L increases with the outcome.

    Its place for L = ε lies between two numbers, at which the sign of L − ε is known.
    """
    p, q = (list(law[side]) for side in ("p", "q"))
    positive, negative = [mean for _, mean in p], [mean for _, mean in q]
    if not (least(positive) >= 0 < largest(positive) and least(negative) < 0 >= largest(negative)):
        raise UnknownError("the law of this mixture")
    factor = ball(exp(epsilon))

    def below(x: Fraction) -> Real:
        densities = [
            sum((ball(w) * (ball(m) * (ball(x) - ball(m) / 2)).exp() for w, m in side), arb(0))
            for side in (p, q)
        ]
        return Real(factor * densities[1] - densities[0])

    low, high = _bracket(below)
    around = hull(*crossing(below, low, high, min(ctx.prec, _MOST_BITS)))
    return tuple(  # type: ignore[return-value]  # one of each side
        sum((w * apply("Phi", mean - around) for w, mean in side), start=_ZERO) for side in (p, q)
    )


def _bracket(falling: Callable[[Fraction], Any]) -> tuple[Fraction, Fraction]:
    """Return numbers at which a falling function is > 0, and ≤ 0."""
    low, high = -_ONE, _ONE
    while not falling(low) > 0:
        low = 2 * low
        if low < -_FARTHEST:
            raise UnknownError("a level that no loss up to a million has")
    while not falling(high) <= 0:
        high = 2 * high
        if high > _FARTHEST:
            raise UnknownError("a level that no loss up to a million has")
    return low, high


def _subsampled_tails(law: Law, epsilon: Any) -> tuple[Any, Any]:
    """Return the tails of one subsampled release from those of its pair (A, B), l its loss.

    With the mixture as P, L = ln(1 − q + q e^l); as Q, L = −ln(1 − q + q e^{−l}).
    """
    if composed.composite(law["pair"]):
        raise UnknownError("the law of a sample that is used in a composition")
    q, first = law["sampling_prob"], law["mixture"] == "P"
    sign = 1 if first else -1
    inner = (exp(sign * epsilon) - 1 + q) / q  # e^l, or e^{−l}, at L = ε
    if inner <= 0:
        return (_ONE, _ONE) if first else (_ZERO, _ZERO)
    a, b = tails(law["pair"], sign * log(inner))
    return mixed(a, b, q, first=first)


def renyi(law: Law, order: Any) -> Any:
    """Return the Rényi divergence of an order ≥ 1, or raise UnknownError."""
    less = order - 1
    if less < 0:
        raise ValueError("a Rényi divergence of an order below 1")
    if law["law"] in BY_LAW:
        return BY_LAW[law["law"]].renyi(law, order)
    match law["law"]:
        case "product":
            pieces = zip(law["factors"], law["counts"], strict=True)
            return sum((int(count) * renyi(factor, order) for factor, count in pieces), _ZERO)
        case "between":
            *low, high = (renyi(factor, order) for factor in law["factors"])
            return hull(largest(low), high)
        case "subsampled" if law["pair"]["law"] in samples.KNOWN:
            return samples.renyi(law, order)
        case "subsampled" | "gaussian-mixture":
            if not isinstance(order, Fraction):
                raise UnknownError("a Rényi divergence of an irrational order")
            found = composed.renyi(law, order)
            return INFINITE if found is None else found
        case "gaussian":
            return order * law["mu"] ** 2 / 2
        case "laplace":
            t = law["distance"]
            if not less:
                return t + exp(-t) - 1
            return log(laplace_moment(t, order)) / less
        case "laplace-product":
            laws = ({"law": "laplace", "distance": t} for t in law["distances"])
            return total([renyi(one, order) for one in laws])
        case "discrete-gaussian":
            return _discrete_renyi(law["parameter"], law["shift"], order)
        case "rank-one-gaussian":
            if less * (law["dimension"] - 1) >= 1:
                return INFINITE
            raise UnknownError("a Rényi divergence of the rank-one Gaussian law")
    charged = [(p, q) for p, q in masses(law) if p]
    if not all(q for _, q in charged):
        return INFINITE
    if not less:
        return total([p * log(p / q) for p, q in charged])
    powers = (ball(q) * (ball(order) * ball(p / q).log()).exp() for p, q in charged)
    return log(Real(sum(powers, start=arb(0)))) / less


def _discrete_renyi(v: Any, shift: Any, order: Any) -> Any:
    """Return a s²/2v + ln(θ(as)/θ)/(a − 1), θ(c) the sum of e^{−(z − c)²/2v} over the integers."""
    less, plain = order - 1, order * shift**2 / (2 * v)
    if not isinstance(order, Fraction):
        raise UnknownError("a Rényi divergence of an irrational order")
    around = order * shift % 1
    if not less or not around:
        return plain
    return plain + log((theta(v, -around) + theta(v, 1 + around)) / theta(v)) / less


def enveloped_renyi(laws: list[Law], order: Any) -> Any:
    """Return an upper bound of the divergence of a law whose H is at most the largest of several.

    With M = e^{(a − 1) D_a}, M − 1 is an integral of H and of that of the reverse with weights ≥ 0,
    so at most the sum of all M_i − 1; D_1 is at most the sum of the D_1.
    """
    found = [renyi(law, order) for law in laws]
    if order == 1:
        return sum(found, start=_ZERO)
    less = order - 1
    return log(1 + sum((exp(less * one) - 1 for one in found), start=_ZERO)) / less


def trade_off(law: Law, alpha: Any) -> Any:
    """Enclose the least type II error β at type I error α.

    For every ε, 1 − H(ε) − e^ε α is a lower bound. Where Q(L > ε) crosses α, between two ε, the
    tests {L > ε} of both give points of a convex curve: β is below their chord, and it falls.
    """
    low, high = _support(law, alpha)
    ends = [loss_tails(law, end) for end in (low, high)]
    lines = [1 - p + exp(end) * (q - alpha) for end, (p, q) in zip((low, high), ends, strict=True)]
    (p, q), (less_p, less_q) = ends
    bounds = [1 - less_p]
    if compare(q, ">", less_q):
        share = (alpha - less_q) / (q - less_q)
        bounds.append(1 - less_p - share * (p - less_p))
    above = min(bounds, key=lambda bound: float(ball(bound).upper()))
    return hull(largest(lines), above)


def enveloped_trade_off(laws: list[Law], alpha: Any) -> Any:
    """Return a lower bound of β for a law whose H is at most the largest of several at every ε."""
    found = []
    for epsilon in (_ZERO, *(end for law in laws for end in _support(law, alpha))):
        largest_one = largest([hockey_stick(law, epsilon) for law in laws])
        found.append(1 - largest_one - exp(epsilon) * alpha)
    return largest(found)


def _support(law: Law, alpha: Any) -> tuple[Fraction, Fraction]:
    if composed.composite(law):
        raise UnknownError("the trade-off function of a composition")
    return _crossing(lambda loss: loss_tails(law, loss)[1] - alpha)


def least_epsilon(laws: list[Law], delta: Any) -> Any:
    """Enclose the ε at which the largest H(ε) is δ: at δ = 0 the largest loss of declared laws."""
    if delta == 0 and all(law["law"] in BY_LAW for law in laws):
        losses = [composed.largest_loss(law) for law in laws]
        if not any(loss is INFINITE for loss in losses):
            return largest(losses)
    if any(map(composed.composite, laws)):
        raise UnknownError("the epsilon of a composition")

    def above(loss: Fraction) -> Any:
        return largest([hockey_stick(law, loss) for law in laws]) - delta

    return hull(*_crossing(above))


def _crossing(falling: Callable[[Fraction], Any]) -> tuple[Fraction, Fraction]:
    return crossing(falling, *_bracket(falling), min(ctx.prec, _MOST_BITS))
