"""Numbers that bound a pair at all levels or orders: the least μ and ρ, a second time in balls.

N(μ, 1) against N(0, 1) bounds what it is mixed with (hockey-stick divergences are jointly convex)
and what is composed of parts that it bounds, Σ μ_i² = μ² (Dong, Roth and Su 2022, Corollary 3.3).
So does μ²a/2 for D_a, which adds up.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from accountant.numbers.precision import ctx
from verify.checker.arithmetic import largest, least
from verify.checker.compositions.composed import largest_loss
from verify.checker.gaussian_mu import more_than_discrete, more_than_mixtures
from verify.checker.laws import Law, renyi
from verify.checker.reals import (
    INFINITE,
    FewDigitsError,
    Real,
    UnknownError,
    ball,
    compare,
    hull,
    sqrt,
)

_BITS = 160
"""Least bits of a supremum's pieces."""
_SLACK = Fraction(1, 10**25)
"""What a proved bound lies below the claimed one, relatively, so that a search ends."""
_MOST_ORDERS = 4000
"""Orders that are bounded before it is left undecided."""
_ZERO, _ONE = Fraction(0), Fraction(1)
_PLAIN = [[1, 0]]


def least_mu(law: Law, claimed: Any) -> Any:
    """Return the least μ of a pair, or an interval that contains it and ends at a claimed one.

    That of Gaussian releases, sampled or mixed, is a number; where a search proves that a claimed
    μ is enough, the interval begins with what small levels need.

    Raises
    ------
    UnknownError
        If it is neither.
    """
    own = _closed_mu(law)
    if own is not None:
        return own
    parts = [(factor, count, _closed_mu(factor)) for factor, count in _parts(law)]
    known = sum((count * mu**2 for _, count, mu in parts if mu is not None), start=_ZERO)
    rest = [(factor, count, _limit(factor)) for factor, count, mu in parts if mu is None]
    limits = sum((count * limit**2 for _, count, limit in rest), start=_ZERO)
    with ctx.workprec(max(ctx.prec, _BITS)):
        whole, small = claimed, sqrt(known + limits)
        if whole <= small * (1 - _SLACK):
            return small
        whole = whole if whole * (1 - _SLACK) < small else whole * (1 - _SLACK)
        share = sqrt((whole * whole - known) / limits)
        needed = [_more(factor, share * limit) for factor, _, limit in rest]
        if any(mu is not None for mu in needed):
            if law is rest[0][0]:
                return needed[0]
            raise UnknownError("that the claimed mu is enough for all releases together")
        return hull(small, whole)


def _closed_mu(law: Law) -> Any:
    """Return the least μ of Gaussian releases, sampled or mixed; None for other laws."""
    match law["law"]:
        case "gaussian":
            return law["mu"]
        case "random-allocation":
            return law["mu"]
        case "subsampled":
            return _closed_mu(law["pair"])
        case "gaussian-mixture":
            return _largest_shift(law) if _PLAIN in _sides(law) else None
        case "product":
            found = [(_closed_mu(factor), count) for factor, count in _parts(law)]
            if all(mu is not None for mu, _ in found):
                return sqrt(sum((count * mu**2 for mu, count in found), start=_ZERO))
    return None


def _limit(law: Law) -> Any:
    """Return the μ that tests of small levels need in the limit."""
    match law["law"]:
        case "discrete-gaussian":
            return law["shift"] / sqrt(law["parameter"])
        case "gaussian-mixture":
            p, q = ([mean for _, mean in side] for side in _sides(law))
            return largest([largest(p) - largest(q), least(p) - least(q)])
        case "subsampled":
            return _limit(law["pair"])
    raise UnknownError(f"the least mu of the law {law['law']!r}")


def _more(law: Law, mu: Any) -> Any:
    """Return what some test needs beyond μ, None where none does."""
    match law["law"]:
        case "subsampled":  # a mixture shows no more, but perhaps less
            needed = _more(law["pair"], mu)
            if needed is not None:
                raise UnknownError("that the claimed mu is enough for a sample")
            return None
        case "discrete-gaussian":
            return more_than_discrete(law["parameter"], int(law["shift"]), mu)
    p, q = _sides(law)
    return more_than_mixtures(p, q, mu)


def _sides(law: Law) -> list[list[list[Any]]]:
    return [[list(part) for part in law[side]] for side in ("p", "q")]


def _largest_shift(law: Law) -> Any:
    sides = _sides(law)
    if _PLAIN not in sides:
        raise UnknownError("the least mu of two mixtures")
    return largest([abs(mean) for side in sides for _, mean in side])


def bounded_rho(law: Law, claimed: Any) -> Any:
    """Return a number that is at least sup D_a/a over a > 1, or an interval that contains it.

    Parts with a closed bound give it: μ²/2 of Gaussian noise, s²/2v of discrete Gaussian noise, of
    samples that of what is sampled. The others have bounded losses, and a search over the orders
    proves that all their D_a/a together are at most what `claimed` leaves: (a − 1) D_a is convex,
    0 at a = 1, hence below its chords; D_a is at most the largest loss.

    Raises
    ------
    UnknownError
        If a part has neither, or the orders become too many.
    """
    known: Any = _ZERO
    rest: list[tuple[Law, int]] = []
    for factor, count in _parts(law):
        closed = _closed(factor)
        if closed is None:
            rest.append((factor, count))
        else:
            known += count * closed
    if not rest:
        return known
    with ctx.workprec(max(ctx.prec, _BITS)):
        goal = claimed * (1 - _SLACK)
        found, proved = _search(rest, goal - known)
        return hull(known + found, goal) if proved else known + found


def _parts(law: Law) -> list[tuple[Law, int]]:
    if law["law"] != "product":
        return [(law, 1)]
    pieces = zip(law["factors"], law["counts"], strict=True)
    inner = [(entry, int(count)) for piece, count in pieces for entry in _parts(piece)]
    return [(factor, times * count) for (factor, times), count in inner]


def _closed(law: Law) -> Any:
    """Return a bound of D_a/a at all orders in closed form; None where there is none."""
    match law["law"]:
        case "gaussian":
            return law["mu"] ** 2 / 2
        case "gaussian-mixture":
            return _largest_shift(law) ** 2 / 2
        case "discrete-gaussian":
            return law["shift"] ** 2 / (2 * law["parameter"])
        case "subsampled":
            return _closed(law["pair"])
    return None


def _search(parts: list[tuple[Law, int]], goal: Any) -> tuple[Any, bool]:
    """Return the largest D_a/a that was met, and whether none is above `goal`: else it is."""
    most = sum((count * largest_loss(factor) for factor, count in parts), start=_ZERO)
    if not ball(most).is_finite():
        return INFINITE, False
    found = {_ONE: _divergence(parts, _ONE)}
    if goal <= 0:
        return found[_ONE], False
    best, end, pieces = found[_ONE], Fraction(2), [(_ONE, Fraction(2))]
    while most > goal * end:
        pieces.append((end, 2 * end))
        end *= 2
    while pieces:
        low, high = pieces.pop()
        for order in (low, high):
            if order not in found:
                found[order] = _divergence(parts, order)
                best = largest([best, found[order] / order])
        truth = compare(best, ">", goal)
        if truth is None:
            raise FewDigitsError
        if truth:
            return best, False
        if compare(_above(low, high, found[low], found[high]), "<=", goal):
            continue
        if len(found) > _MOST_ORDERS:
            raise UnknownError("that no other order has a larger divergence for its size")
        middle = (low + high) / 2
        pieces += [(low, middle), (middle, high)]
    return best, True


def _divergence(parts: list[tuple[Law, int]], order: Fraction) -> Any:
    found = (count * renyi(factor, order) for factor, count in parts)
    return Real(ball(sum(found, start=_ZERO)))


def _above(low: Fraction, high: Fraction, at_low: Any, at_high: Any) -> Any:
    """Bound K(x)/(x(x − 1)) on [low, high] by the chord sx + c of K(a) = (a − 1) D_a.

    From 1 on it is D_high (x − 1). Else it is −c/x + (c + s)/(x − 1), which rises up to the x
    with x/(x − 1) = √(c/(c + s)), and falls after it, if c < c + s < 0; its value there is then
    −c(1 − √((c + s)/c))², a bound for all x. As K(1) = 0 and K is convex, c + s ≤ 0: else the chord
    is at most sx.
    """
    if low == 1:
        return at_high
    k_low, k_high = (low - 1) * at_low, (high - 1) * at_high
    s = (k_high - k_low) / (high - low)
    c = k_low - s * low
    ends = [at_low / low, at_high / high]
    if compare(c + s, "<", _ZERO) and compare(s, ">", _ZERO):
        root = sqrt((c + s) / c)
        place = 1 / (1 - root)
        if compare(place, "<=", low) or compare(place, ">=", high):
            return largest(ends)
        return largest([*ends, -c * (1 - root) ** 2])
    return largest([*ends, s / low, _ZERO])
