"""Numbers that bound a pair at all levels or orders: the least μ and ρ, a second time in balls.

N(μ, 1) against N(0, 1) bounds what it is mixed with (hockey-stick divergences are jointly convex)
and what is composed of parts that it bounds, Σ μ_i² = μ² (Dong, Roth and Su 2022, Corollary 3.3).
So does μ²a/2 for D_a, which adds up.

*The least μ of unbounded losses.* A test of level α and power p needs t(α) − t(p), where a standard
normal law has the upper tail α beyond t(α). The power is concave in the level: on a piece it is
below the tangents at both ends, and Φ(μ − z_α) is concave too, so that it is above where it is
above at the ends and where the tangents meet. Beyond the pieces closed bounds take over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from flint import arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.arithmetic import largest, least
from dpassay.verifier.checker.compositions.composed import largest_loss
from dpassay.verifier.checker.laws import Law, renyi
from dpassay.verifier.checker.reals import (
    INFINITE,
    FewDigitsError,
    Real,
    UnknownError,
    ball,
    compare,
    hull,
    sqrt,
)
from dpassay.verifier.checker.special import phi, phi_inverse

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
    """Return the least μ of Gaussian releases, sampled or mixed; None for other laws.

    Of a law below a Gaussian one, an interval that contains it.
    """
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
        case "between":
            *low, most = map(_closed_mu, law["factors"])
            if most is not None:
                return hull(largest([_ZERO, *(mu for mu in low if mu is not None)]), most)
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


_MOST_PIECES = 4000
"""Pieces of a range that are bounded before it is left undecided."""
_MOST_TESTS = 4000
"""Half-lines that are asked for one by one."""
_MOST_TERMS = 100_000
"""Terms of a tail."""
_DOUBLINGS = 12
"""Doublings of a range to where a bound takes over: it does within a few."""
_UNKNOWN = "that no other test needs a larger mu"

Mixture: TypeAlias = Sequence[Sequence[Any]]
"""Weights and means of normal laws of variance 1."""
Balls: TypeAlias = list[tuple[arb, arb]]
Test: TypeAlias = Callable[[Fraction], tuple[arb, arb, arb]]
"""The level, the power and the likelihood ratio at the end of a half-line."""


def score(tail: arb) -> arb:
    """Return t with P(N(0, 1) > t) = tail."""
    return -phi_inverse(tail)


def more_than_discrete(parameter: Any, shift: int, mu: Any) -> Any:
    """Return what a test of discrete Gaussian noise needs beyond μ; None where μ is enough.

    The noise has the parameter v, and is moved by s.

    The tests {Z ≥ k} and {Z ≥ s + 1 − k} need the same. With T(x) = Σ_{z ≥ x} f(z)/θ for
    f(z) = e^{−z²/2v}, and Φ̄(u) ≥ φ(u)/(u + 1/u), the score t(x) is at least u, u² = x²/v − g,
    g = 2 max(1/2, ln(√(2π) T(X)/f(X)) + ln(y + 1/y)), y = x/√v; its slope is −T'/T over the hazard
    at t, which exceeds t, hence at most (x + κ)/(vu) for x ≥ X, where κ is the mean of z − X under
    f on z ≥ X, and that falls. So k > X + s needs at most s times its value at X.
    """
    v, goal, far = ball(parameter), ball(mu), 1
    while not far * far > 2 * v * ctx.prec:
        far *= 2
        if far > _MOST_TERMS:
            raise UnknownError(_UNKNOWN)
    end = int(float(v)) + 1
    while True:
        last = end + shift
        if last > _MOST_TESTS:
            raise UnknownError(_UNKNOWN)
        masses, beyond = _masses(v, last + far)
        whole = 2 * (sum(masses, arb(0)) + beyond) - 1
        tails, above = [arb(0)] * (last + 1), beyond
        for z in range(last + far, 0, -1):
            above += masses[z]
            if z <= last:
                tails[z] = above / whole
        y = end / v.sqrt()
        excess = ((2 * arb.pi()).sqrt() * tails[end] / masses[end]).log() + (y + 1 / y).log()
        square = y * y - (2 * excess).max(arb(1))
        mean = _mean(masses, end) / (tails[end] * whole)
        need = shift * (end + mean) / (v * square.sqrt()) if square > 0 else arb.pos_inf()
        if y >= 1 and square >= 1 and need <= goal - ball(_SLACK):
            break
        end += end // 4 + 1
    scores = {k: score(tails[k]) for k in range(1, last + 1)}
    scores |= {1 - k: -value for k, value in scores.items()}
    needed = arb.neg_inf()
    for k in range(shift // 2 + 1, last + 1):
        needed = needed.max(scores[k] - scores[k - shift])
    return None if needed <= goal - ball(_SLACK) else Real(needed)


def _masses(v: arb, last: int) -> tuple[list[arb], arb]:
    """Return e^{−z²/2v} for z = 0, …, last, and a ball of the sum of all further ones."""
    found = [(-arb(z * z) / (2 * v)).exp() for z in range(last + 1)]
    ratio = (-arb(2 * last + 1) / (2 * v)).exp()
    return found, arb(0).union(found[-1] * ratio / (1 - ratio))


def _mean(masses: Sequence[arb], end: int) -> arb:
    """Enclose Σ (z − end) f(z) over z ≥ end; the rest is at most that of a geometric series.

    Its terms are at most Rr^j for z = last + j, r the ratio of the last two: Σ (d + j) Rr^j is
    R r (d + 1)/(1 − r)² at most.
    """
    last = len(masses) - 1
    ratio = masses[last] / masses[last - 1]
    rest = masses[last] * ratio * (last - end + 1) / (1 - ratio) ** 2
    inner = sum((j * masses[end + j] for j in range(last - end + 1)), arb(0))
    return inner + arb(0).union(rest)


def more_than_mixtures(p: Mixture, q: Mixture, mu: Any) -> Any:
    """Return what a half-line needs beyond μ, of mixtures P to the right of Q; else None.

    The half-lines right of the middle of all means are looked at, and those of the reflected pair.
    """
    mirrored = [[[weight, -mean] for weight, mean in side] for side in (q, p)]
    for sides in ((p, q), mirrored):
        shift = largest([m for _, m in sides[0]]) - largest([m for _, m in sides[1]])
        one, other = ([(ball(w), ball(m)) for w, m in side] for side in sides)
        within = compare(shift, "<=", mu) is True
        needed = _more_on_the_right(one, other, ball(mu), within=within)
        if needed is not None:
            return Real(needed)
    return None


def _more_on_the_right(p: Balls, q: Balls, mu: arb, *, within: bool) -> arb | None:
    most, least = p[0][1], q[0][1]
    for _, mean in p:
        most = most.max(mean)
    for _, mean in q:
        least = least.min(mean)
    low = Fraction(round(float(most + least) * 2**19), 2**20)
    if not 2 * ball(low) <= most + least:  # any number to the left of the middle will do
        low -= Fraction(1, 2**18)
    for doubling in range(_DOUBLINGS):
        end = Fraction(round(float(most) * 2**20), 2**20) + (1 << doubling)
        if _enough_beyond(p, q, ball(end), mu, within=within):
            return _more_between(lambda x: _test(p, q, ball(x)), low, end, mu - ball(_SLACK))
    raise UnknownError(_UNKNOWN)


def _enough_beyond(p: Balls, q: Balls, x: arb, mu: arb, *, within: bool) -> bool:
    """Whether no half-line from x on is seen to need more; `within` says that a − b ≤ μ.

    With a and b the largest means, w = P(x, ∞)/Φ̄(x − a) is at most that further out, and v is the
    weight of b. Then μ ≤ a − b where w ≤ v, and else μ ≤ a − b + t(vΦ̄(y)) − t(wΦ̄(y)), y = x − b:
    the last difference is a length over which the hazard has the integral ln(w/v), which falls.
    """
    a = p[0][1]
    for _, mean in p:
        a = a.max(mean)
    v, b = max(q, key=lambda part: float(part[1]))
    if not all(mean <= b for _, mean in q):
        return False
    w = _right_of(p, x) / phi(a - x)
    shift, rest = a - b, phi(b - x)
    if w <= v:
        return within
    return bool(shift + score(v * rest) - score(w * rest) <= mu - ball(_SLACK))


def _more_between(test: Test, low: Fraction, high: Fraction, mu: arb) -> arb | None:
    pieces, found = [(low, high)], {x: test(x) for x in (low, high)}
    for _ in range(_MOST_PIECES):
        if not pieces:
            return None
        left, right = pieces.pop()
        one, other = found[left], found[right]
        for side in (one, other):
            needed = score(side[0]) - score(side[1])
            if needed > mu:
                return needed
        if _enough_between(one, other, mu):
            continue
        middle = (left + right) / 2
        found[middle] = test(middle)
        pieces += [(left, middle), (middle, right)]
    raise UnknownError(_UNKNOWN)


def _enough_between(one: tuple[arb, arb, arb], other: tuple[arb, arb, arb], mu: arb) -> bool:
    """Whether μ is enough at two tests, and where their tangents meet."""
    level, power = _meeting(one, other)
    if not power < 1:
        return False
    points = [one[:2], other[:2], (level, power)]
    return all(bool(score(alpha) - score(beta) <= mu) for alpha, beta in points)


def _meeting(one: tuple[arb, arb, arb], other: tuple[arb, arb, arb]) -> tuple[arb, arb]:
    """Return where the tangents at two tests meet, the second one of a lower level."""
    (alpha, p, slope), (below, q, steeper) = one, other
    level = (p - q - slope * alpha + steeper * below) / (steeper - slope)
    return level, q + steeper * (level - below)


def _test(p: Balls, q: Balls, x: arb) -> tuple[arb, arb, arb]:
    """Return the level and power of (x, ∞), and the likelihood ratio at x."""
    densities = [sum((w * (-((x - m) ** 2) / 2).exp() for w, m in side), arb(0)) for side in (p, q)]
    return _right_of(q, x), _right_of(p, x), densities[0] / densities[1]


def _right_of(side: Balls, x: arb) -> arb:
    return sum((w * phi(m - x) for w, m in side), arb(0))
