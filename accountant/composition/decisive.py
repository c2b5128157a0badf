"""Losses so large that each of them decides alone, of any kind: what a cut takes away.

In a product of independent losses let every one that is about a threshold a or above be *taken*,
with a probability that depends on it alone, and let A be the outcomes with at least one loss that
is taken. With p_i and q_i the masses that are taken from the two laws of a factor, those of A are

    p = 1 − Π(1 − p_i)^{k_i},    q = 1 − Π(1 − q_i)^{k_i}

where all losses are finite, and (1 − e^{ε−S})⁺ = 1 − e^{ε−S} + (e^{ε−S} − 1)⁺ for the sum S. So

    H(ε) = E_P[(1 − e^{ε−S})⁺; not A] + p − e^ε q + R,    R = E_P[(e^{ε−S} − 1)⁺; A].

Let −m be the sum of the least losses of all factors, m ≥ 0. If a ≥ ε + m, then S ≥ ε wherever a
loss of at least a is taken, and 0 ≤ R ≤ e^ε Q(S < ε, A) ≤ e^ε Σ k_i u_i with u_i the mass under Q
that is taken from losses below a. A lower threshold serves as well where few sums come back below
ε: (e^y − 1)⁺ ≤ e^{sy}/s for s > 1, since (1 − x)x^{s−1} < 1/s on [0, 1], so that with
F_i(s) = E_P[e^{−sL_i}] and no loss below a taken

    R ≤ e^{s(ε − a)}/s Σ_i k_i p_i Π_j F_j(s)^{k_j}/F_i(s).

The first term is an integral of the transform of the losses
that are left, none of which is much larger than ε + m: at the tilt at which ε is reached their
moments are about H e^{cε}, whereas those of heavy tails belong to losses that are much larger, and
what is left of them at ε is a difference that has lost its digits.

*Nothing but small losses.* Where b_i bounds the loss of factor i from above, or most of a part of
its law, and Σ k_i b_i ≤ ε, the outcomes whose losses are all of these parts add to H at most what
the parts have above b_i, Σ k_i P_i(part, L_i > b_i). Their transform Π T_i^{k_i} falls slowly, as
few releases often have losses near the least one. Without it Π M_i^{k_i} − Π T_i^{k_i} is left, at
frequency ω at most Π M_i(c)^{k_i} Σ k_i |M_i − T_i|/M_i(c), and the laws of M_i − T_i, of the
larger losses, are smooth and spread out.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

from flint import arb

from accountant.composition.joint import Factor
from accountant.composition.laws import Law, Small
from accountant.number import ExactReal

_ABOVE = 1.0 + 2.0**-6
_BITS = 8
_WHOLE = 16.0
_MOST_LEAST = 4.0
_LEAST_SIZE = 1e-300
_MOST_POWERS = 24


@final
@dataclass(frozen=True)
class Cut:
    """A threshold, how smooth the ends of densities are, and how little they take below it."""

    threshold: float
    width: float
    room: float
    small: float | None = None
    """The b of losses that have no bound, where outcomes of small losses alone are left out."""


def least_loss(factors: Sequence[Factor]) -> arb:
    """Return −m, a lower bound; −∞ where losses are not bounded below, or not all are finite."""
    total = arb(0)
    for pair, count in factors:
        other = pair.reverse()
        largest = other.max_loss()
        if not (pair.infinity_mass().is_zero() and largest.is_finite()):
            return arb.neg_inf()
        total -= count * largest
    return total


def threshold_of(factors: Sequence[Factor], epsilon: float) -> float | None:
    """Return a little more than ε + m, in few bits, None where m is not small beside ε."""
    least = -float(least_loss(factors).lower())
    if not (epsilon > 0 and least < _MOST_LEAST * epsilon):
        return None
    mantissa, exponent = math.frexp((epsilon + least) * _ABOVE)
    return math.ldexp(math.ceil(math.ldexp(mantissa, _BITS)), exponent - _BITS)


def small_threshold(factors: Sequence[Factor], epsilon: float) -> float | None:
    """Return a little less than a b for all factors whose losses have no bound, None for none."""
    bounded, free = small_share(factors)
    share = (epsilon / _ABOVE - float(bounded.upper())) / max(free, 1)
    if not (free and share > 0):
        return None
    mantissa, exponent = math.frexp(share)
    return math.ldexp(math.floor(math.ldexp(mantissa, _BITS)), exponent - _BITS)


def small_share(factors: Sequence[Factor]) -> tuple[arb, int]:
    """Return Σ k_i max L_i over the bounded losses, and the number of the others."""
    bounded, free = arb(0), 0
    for pair, count in factors:
        largest = pair.max_loss()
        if largest.is_finite():
            bounded += count * largest
        else:
            free += count
    return bounded, free


def whole_room(room: float) -> float:
    """Round up, so that neighbouring questions share a cut."""
    return math.ceil(room / _WHOLE) * _WHOLE


def cut_laws(laws: Sequence[Law], cut: Cut) -> tuple[Law, ...]:
    """Return the laws, cut where they can be."""
    return tuple(law.cut(cut.threshold, cut.width, cut.room) or law for law in laws)


def decided(
    laws: Sequence[Law], factors: Sequence[Factor], cut: Cut, epsilon: ExactReal
) -> tuple[arb, arb]:
    """Return p − e^ε q, and an upper bound of R and of what small losses alone add.

    The latter is +∞ where a threshold does not serve ε.
    """
    log_p, log_q, below = arb(0), arb(0), arb(0)
    for law in laws:
        if law.taken is not None:
            log_p += law.count * (-law.taken.p).log1p()
            log_q += law.count * (-law.taken.q).log1p()
            below += law.count * law.taken.below
    eps = epsilon.ball()
    sure = -log_p.expm1() + eps.exp() * log_q.expm1()
    if cut.threshold >= eps - least_loss(factors):
        rest = eps.exp() * below
    else:
        rest = _back_below(tuple(laws), cut, eps)
    if cut.small is not None:
        bounded, free = small_share(factors)
        if not bounded + free * cut.small <= eps:
            return sure, arb.pos_inf()
        parts = small_parts(laws, cut)
        if parts is None:
            return sure, arb.pos_inf()
        rest += sum((part.law.count * part.above for part in parts), start=arb(0))
    return sure, rest.upper()


def _back_below(laws: tuple[Law, ...], cut: Cut, eps: arb) -> arb:
    """Return the bound of R for a low threshold; +∞ where it is not known."""
    found = arb.pos_inf()
    for s, log_size in _falls(laws):
        found = found.min((log_size + s * (eps - cut.threshold)).exp().upper())
    return found


@functools.lru_cache(maxsize=64)
def _falls(laws: tuple[Law, ...]) -> tuple[tuple[arb, arb], ...]:
    """Return some s, and ln of Σ_i k_i p_i Π_j F_j^{k_j}/F_i/s; none where an F is not known."""
    rows = []
    for power in range(_MOST_POWERS):
        s = arb(2) ** (1 + arb(power) / 2)
        logs = [law.log_falling(s) for law in laws]
        known = [log for log in logs if log is not None]
        if len(known) < len(logs):
            return ()
        whole = sum((law.count * log for law, log in zip(laws, known, strict=True)), start=arb(0))
        taken = arb(0)
        for law, log in zip(laws, known, strict=True):
            if law.taken is not None:
                if not law.taken.below.is_zero():
                    return ()
                taken += law.count * law.taken.p * (-log).exp()
        rows.append((s, whole + taken.log() - s.log()))
    return tuple(rows)


def lowest_threshold(
    laws: Sequence[Law], factors: Sequence[Factor], epsilon: float, cut: Cut, log_most: float
) -> float | None:
    """Return the lowest threshold, of few bits, below that of a cut with R below a bound, or None.

    For lists alone.
    """
    if any(law.log_falling(arb(2)) is None for law in laws):
        return None
    at, best = ExactReal.of_rational(Fraction(epsilon)), None
    low, high = 0.0, cut.threshold - epsilon
    for _ in range(_BITS):
        middle = (low + high) / 2
        lower = replace(cut, threshold=_rounded(epsilon + middle))
        left = cut_laws(laws, lower)
        rest = decided(left, factors, lower, at)[1]
        taken = any(law.taken is not None for law in left)
        if not taken or (rest.is_finite() and float(rest.log()) < log_most):
            high, best = middle, lower.threshold if taken else best
        else:
            low = middle
    return best


def _rounded(threshold: float) -> float:
    mantissa, exponent = math.frexp(threshold)
    return math.ldexp(math.ceil(math.ldexp(mantissa, 2 * _BITS)), exponent - 2 * _BITS)


def small_parts(laws: Sequence[Law], cut: Cut) -> tuple[Small, ...] | None:
    """Return the parts of small losses of all laws, None where one is not known."""
    assert cut.small is not None
    parts = [law.small(cut.small, cut.room) for law in laws]
    known = tuple(part for part in parts if part is not None)
    return known if len(known) == len(parts) else None


def log_large(laws: Sequence[Law], parts: Sequence[Small], c: float, omega: float) -> float:
    """Return ln Σ k_i |M_i − T_i|/M_i(c) for all frequencies above ω, from above but for 1e−9."""
    sizes = [law.count * part.beyond(arb(c), omega) for law, part in zip(laws, parts, strict=True)]
    return math.log(max(math.fsum(sizes), _LEAST_SIZE))
