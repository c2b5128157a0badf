"""Rényi and Kullback–Leibler divergences of f(x − t) from f(x), and what tails add to them.

Beyond R on the right, with D = −(ln f)′ in y^k·[low, high] for y ≥ R − t, the integrand
r = p^a q^{1−a} has −(ln r)′ = a D(x − t) − (a − 1) D(x) ≥ c x^k with

    c = a·low·min(1, (1 − t/R)^k) − (a − 1)·high,

so that r falls at least like a power −cR^{1+k} of x, and its integral is at most
r(R) R/(cR^{1+k} − 1). On the left, with y = −x, D(y + t) stands for D(x − t). Of p ln(p/q) the loss
is at most t·high·(z + t)^k in size, z the argument of f; f(z) z^k falls in the same way.
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
from dpassay.accountant.density.tail import Decay
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.interval import ball

_DOUBLINGS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""How often the reach is doubled until the tails no longer count."""

Curve = Callable[[acb, acb], acb]
"""The integrand, from ln f(x − t) and ln f(x), in units of the written density."""


def renyi(law: Law, shift: Fraction, order: arb) -> arb:
    """Return D_a for a > 1."""
    if _misses(law, shift):
        return arb.pos_inf()

    def curve(log_p: acb, log_q: acb) -> acb:
        return (order * log_p - (order - 1) * log_q).exp()

    def rest(found: Losses) -> arb:
        return _tail(found, 1, order) + _tail(found, 0, order)

    moment = _whole(law, shift, curve, rest) / law.total()
    return moment.log() / (order - 1)


def kullback_leibler(law: Law, shift: Fraction) -> arb:
    """Return D_1."""
    if _misses(law, shift):
        return arb.pos_inf()

    def curve(log_p: acb, log_q: acb) -> acb:
        return log_p.exp() * (log_p - log_q)

    def rest(found: Losses) -> arb:
        most = _mean_tail(found, 1) + _mean_tail(found, 0)
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
            panels[low, high] = integral(integrand, ball(low), ball(high), whole)
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


def _side(found: Losses, right: int) -> tuple[Decay, Run] | None:
    tail = found.tails[right]
    if tail is None:
        return None
    runs = [run for run in found.stretches if isinstance(run, Run)]
    return tail, runs[-1] if right else runs[0]


def _tail(found: Losses, right: int, order: arb) -> arb:
    """Return an upper bound of ∫ p^a q^{1−a} beyond R; NaN where none is known."""
    known = _side(found, right)
    if known is None:
        return arb(0)
    tail, run = known
    reach, t = ball(found.reach), ball(found.shift)
    k = ball(tail.power)
    moved = 1 - t / reach if right else 1 + t / reach
    nearer = (k * moved.log()).exp().min(arb(1))
    c = (order * tail.low.lower() * nearer - (order - 1) * tail.high.upper()).lower()
    rate = c * ((1 + k) * reach.log()).exp()
    if not (c > 0 and rate > 1):
        return arb.nan()
    x = reach if right else -reach
    log = order * real(run.p.log, x - t) - (order - 1) * real(run.q.log, x)
    return (log.exp() * reach / (rate - 1)).upper()


def _mean_tail(found: Losses, right: int) -> arb:
    """Return an upper bound of ∫ p |ln(p/q)| beyond R; NaN where none is known."""
    known = _side(found, right)
    if known is None:
        return arb(0)
    tail, run = known
    if not tail.high.is_finite():
        return arb.nan()
    t, k = ball(found.shift), ball(tail.power)
    z = ball(found.reach) - t if right else ball(found.reach) + t
    grown = (k.max(arb(0)) * (1 + t / z).log()).exp() if right else arb(1)
    rate = (tail.low.lower() * ((1 + k) * z.log()).exp() - k).lower()
    if not rate > 1:
        return arb.nan()
    value = real(run.p.log, z if right else -z).exp() * (k * z.log()).exp()
    if tail.power < 0:  # |l| is at most t·high·(z − t)^k on the left, z^k on the right
        grown = (k * (1 - t / z).log()).exp() if not right else arb(1)
    return (t * tail.high.upper() * grown * value * z / (rate - 1)).upper()
