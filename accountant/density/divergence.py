"""Rényi and Kullback–Leibler divergences of f(x − t) from f(x), and what tails add to them.

Let D = −(ln f)′ ≥ low·y^k for y ≥ R − t. Beyond R on the right the integrand r = p^a q^{1−a} has

    −(ln r)′ = a D(x − t) − (a − 1) D(x) = (aρ − a + 1) D(x),  ρ = D(x − t)/D(x).

If aρ − a + 1 ≥ c > 0 there, r falls at least like the power −c·low·R^{1+k} of x, and its integral
is at most r(R) R/(c·low·R^{1+k} − 1); if aρ − a + 1 < 0 it grows, and the divergence is infinite.
On the left, with y = −x, ρ is D(y + t)/D(y).

Of p ln(p/q), the loss is at most t in size times the larger of D at both ends of a stretch of
length t, and ∫ f D beyond z is f(z).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise

from flint import acb, arb

from dpassay.accountant.density.balls import real
from dpassay.accountant.density.law import Law, integral, negligible
from dpassay.accountant.density.loss import ABOVE, OPEN, Losses, Run, losses
from dpassay.accountant.density.pieces import Piece
from dpassay.accountant.density.tail import Decay, Tail, TailError, ratio
from dpassay.accountant.density.tree import ZERO
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.interval import ball

_DOUBLINGS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""How often the reach is doubled until the tails no longer count."""

_OPEN = arb(2) ** -8
"""Share of an integral that is open where it was given up: more precision would not be enough."""

Curve = Callable[[acb, acb], acb]
"""The integrand, from ln f(x − t) and ln f(x), in units of the written density."""


def renyi(law: Law, shift: Fraction, order: arb) -> arb:
    """Return D_a for a > 1."""
    if _misses(law, shift):
        return arb.pos_inf()

    def curve(log_p: acb, log_q: acb) -> acb:
        return (order * log_p - (order - 1) * log_q).exp()

    def rest(found: Losses) -> arb:
        return _tail(law, found, 1, order) + _tail(law, found, 0, order)

    moment = _whole(law, shift, curve, rest) / law.total()
    return moment.log() / (order - 1)


def kullback_leibler(law: Law, shift: Fraction) -> arb:
    """Return D_1."""
    if _misses(law, shift):
        return arb.pos_inf()

    def curve(log_p: acb, log_q: acb) -> acb:
        return log_p.exp() * (log_p - log_q)

    def rest(found: Losses) -> arb:
        most = _mean_tail(law, found, 1) + _mean_tail(law, found, 0)
        return most.union(-most)

    return _whole(law, shift, curve, rest) / law.total()


def _misses(law: Law, shift: Fraction) -> bool:
    """Whether P has mass where Q has none."""
    return any(part.side == ABOVE for part in losses(law, shift, 0).missed())


def _whole(law: Law, shift: Fraction, curve: Curve, rest: Callable[[Losses], arb]) -> arb:
    """Return the integral over the line, from finite parts and a bound of both tails."""
    if any(part.side == OPEN for part in losses(law, shift, 0).missed()):
        raise UndecidedError(
            "A divergence of a density with a kink at an irrational point is not known. Round it."
        )
    value = arb(0)
    panels: dict[tuple[Fraction, Fraction], arb] = {}
    for doublings in _DOUBLINGS:
        found = losses(law, shift, doublings)
        tails = rest(found)
        if tails == arb.pos_inf():
            return tails
        if not tails.is_finite():
            continue
        value = _finite(found, curve, panels) + (
            tails if tails.contains(arb(0)) else arb(0).union(tails)
        )
        if tails.upper() <= abs(value).lower() * negligible():
            break
    else:
        if not value.is_finite() or value.is_zero():
            raise UndecidedError("The tails of a divergence were not bounded.")
    return value


def _finite(found: Losses, curve: Curve, panels: dict[tuple[Fraction, Fraction], arb]) -> arb:
    """Return the integral up to R; `panels` keeps those of smaller R, which are panels here too."""
    whole, t = arb(0), ball(found.shift)
    runs = [run for run in found.stretches if isinstance(run, Run)]
    cut = [(low, high, run) for run in runs for low, high in _panels(run.low, run.high)]
    for low, high, run in sorted(cut, key=lambda part: abs(part[0] + part[1])):
        if (low, high) not in panels:
            integrand = partial(_at, curve, run, t)
            panels[low, high] = here = integral(integrand, low, high, whole)
            if not 2 * here.rad() <= _OPEN * (abs(here) + abs(whole)).upper():
                raise UndecidedError(
                    f"A divergence was not integrated between x = {float(low):.6g} and "
                    f"{float(high):.6g} in as many steps as are taken."
                )
        whole += panels[low, high]
    if not whole.is_finite():
        raise UndecidedError("A divergence was not integrated: the density is 0 somewhere inside.")
    return whole


def _at(curve: Curve, run: Run, t: arb, x: acb, analytic: bool) -> acb:
    """Return the integrand at a point."""
    return curve(run.p.log_integrand(x - t, analytic), run.q.log_integrand(x, analytic))


def _panels(low: Fraction, high: Fraction) -> list[tuple[Fraction, Fraction]]:
    """Return panels whose ends are at distances from 0 that double."""
    cuts, step = {low, high}, Fraction(1)
    while step < max(abs(low), abs(high)):
        cuts |= {cut for cut in (-step, step) if low < cut < high}
        step *= 2
    cuts |= {cut for cut in (Fraction(0),) if low < cut < high}
    ends = sorted(cuts)
    return list(pairwise(ends))


def _side(law: Law, found: Losses, right: int) -> tuple[Decay, Piece] | None:
    """Return how f falls beyond R on one side, and its piece there, mirrored on the left."""
    tail = found.tails[right]
    side = law if right else law.mirrored
    return None if tail is None else (tail, side.pieces.parts[-1])


def _tail(law: Law, found: Losses, right: int, order: arb) -> arb:
    """Return an upper bound of ∫ p^a q^{1−a} beyond R, ∞ if it diverges; NaN if none is known."""
    known = _side(law, found, right)
    if known is None:
        return arb(0)
    tail, part = known
    by = -found.shift if right else found.shift
    try:
        share = order * ratio(part.slope, found.reach, by) - (order - 1)
    except TailError:
        return arb.nan()
    if share < 0:
        return arb.pos_inf()
    x = ball(found.reach)
    rate = share.lower() * tail.low.lower() * ((1 + ball(tail.power)) * x.log()).exp()
    if not (share > 0 and rate > 1):
        return arb.nan()
    log = order * real(part.log, x + ball(by)) - (order - 1) * real(part.log, x)
    return (log.exp() * x / (rate - 1)).upper()


def _mean_tail(law: Law, found: Losses, right: int) -> arb:
    """Return an upper bound of ∫ p |ln(p/q)| beyond R; NaN where none is known."""
    known = _side(law, found, right)
    if known is None:
        return arb(0)
    slope, bend = known[1].slope, known[1].bend
    nearest = found.reach - found.shift if right else found.reach
    ahead = Tail(nearest)
    try:
        grows = bend != ZERO and ahead.sign(bend) < 0
        factor = arb(1)
        if grows == bool(right) and bend != ZERO:
            moved = ratio(slope, nearest, found.shift)
            factor = moved if right else 1 / moved
    except TailError:  # D may tend to a constant, from a side that is not known
        try:
            sizes = abs(ahead.values(slope))
        except TailError:
            return arb.nan()
        if not sizes > 0:
            return arb.nan()
        factor = sizes.upper() / sizes.lower()
    z = nearest if right else nearest + found.shift
    return (ball(found.shift) * factor * real(known[1].log, ball(z)).exp()).upper()
