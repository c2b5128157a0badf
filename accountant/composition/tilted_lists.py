"""The two lists of partial sums for one question, and what bounds that which they lack.

See `accountant.composition.halved` for the bounds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from accountant.chernoff import log_peak, rough_log_peak
from accountant.composition import lattice
from accountant.composition.finite import finite
from accountant.composition.half_lists import Draws, Halves, TooLongError
from accountant.composition.half_sums import PairSums
from accountant.composition.joint import Factor
from accountant.composition.lattice import Generators
from accountant.composition.line import Line, choose_line, curvature
from accountant.composition.listed import Listed, listed
from accountant.interval import ball
from accountant.number import ExactReal
from accountant.pair import Pair
from accountant.precision import ctx

_PRECISION = 192
_BITS = 60  # of the largest sum of losses
_LEAST_REACH = 2.0**-10
_MOST_ENTROPY = 16.0
_MOST_STEPS = 64
_UNDERFLOW = 1e-290  # more than products and their sums lose to it


@final
@dataclass(frozen=True)
class TiltedLists:
    """The two lists on one line, and what bounds that which they lack."""

    pairs: PairSums
    c: float
    bits: int
    log_moment: arb
    """ln M(c)."""
    scale: arb
    """What the weights of the halves are multiplied by."""
    dropped: float
    rounding: arb
    """η."""
    mass: arb
    """M(0)."""
    outside: arb
    """A ball from 0 to what outcomes that are not listed add."""

    def at(self, epsilon: ExactReal) -> tuple[arb, arb]:
        """Return a ball around H(ε) − P(L = ∞), and one near e^ε Q(L > ε)."""
        first, second = self._sums(epsilon)
        value = first - second if self.c > 0 else self.mass - first - second
        return value + self._slack(epsilon) + self.outside, second

    def _sums(self, epsilon: ExactReal) -> tuple[arb, arb]:
        """Return P(L > ε), or P(L ≤ ε) for c < 0, and e^ε Q(L > ε) over the lists."""
        eps, c = epsilon.ball(), arb(self.c)
        threshold = _nearest(eps, self.bits)
        above, below, second = self.pairs.at(threshold - self.pairs.middle)
        apart = eps - arb(self.pairs.middle) / arb(2) ** self.bits
        size = (self.log_moment - c * eps).exp() * self.scale
        wide = 1 + arb(0, self.pairs.error)
        first = above if self.c > 0 else below
        shift = arb(0, 1) * self.rounding * (abs(c) + 1)
        p_tiny = arb(0, _UNDERFLOW) + arb(0, self.pairs.p_rough)
        q_tiny = arb(0, _UNDERFLOW) + arb(0, self.pairs.q_rough)
        return (
            size * (c * apart + shift).exp() * (first * wide + p_tiny),
            size * ((c + 1) * apart + shift).exp() * (second * wide + q_tiny),
        )

    def _slack(self, epsilon: ExactReal) -> arb:
        """Return a ball around what was left out, and put on the wrong side of ε."""
        c, eps = arb(self.c), epsilon.ball()
        size = (self.log_moment - c * eps).exp()
        wrong = self.rounding.expm1() * (abs(c) * self.rounding).exp()
        lost = arb(self.dropped)
        if self.c < 0:
            return size * ((-lost.upper()).union(arb(0)) + arb(0).union(wrong.upper()))
        peak = log_peak(c).exp()
        return size * arb(0).union((lost * peak + wrong).upper())


def tilted_lists(factors: tuple[Factor, ...], epsilon: float, wanted: float) -> TiltedLists:
    """Return lists for ε and a width. Raises TooLongError."""
    line = choose_line(factors, epsilon, wanted)
    # H is about M(c) e^{−cε}/(c(c + 1)√(2πv)): what is lost may be a share of its width
    c, spread = line.c, math.sqrt(2 * math.pi * curvature(factors, line))
    peak = math.exp(rough_log_peak(c)) if c > 0 else 1.0
    budget = wanted / 8 / max(peak * abs(c) * (1 + c) * spread, 1e-3)
    return _lists(factors, line, math.floor(math.log2(min(budget, 1e-3)) / 2))


@functools.lru_cache(maxsize=8)
def _lists(factors: tuple[Factor, ...], line: Line, power: int) -> TiltedLists:
    """List the halves, leaving out about 4^power of the tilted mass. Raises TooLongError."""
    budget = 4.0**power
    with ctx.workprec(_PRECISION):
        laws = [_listed(pair, line.log_missing) for pair, _ in factors]
        reach = sum(
            count * max(float(abs(loss)) for loss in law.losses)
            for law, (_, count) in zip(laws, factors, strict=True)
        )
        bits = _BITS - math.ceil(math.log2(max(reach, _LEAST_REACH)))
        c, log_moment, mass, outside = arb(line.c), arb(0), arb(1), arb(0)
        draws, errors, left_out, unlisted = [], 2, 0.0, arb(0)
        places = _rounded(laws, factors, bits)
        for law, (_, count), rounded in zip(laws, factors, places, strict=True):
            weights = [p * (c * loss).exp() for p, loss in zip(law.p, law.losses, strict=True)]
            moment = sum(weights, start=arb(0))
            log_moment += count * moment.log()
            mass *= sum(law.p, start=arb(0)) ** count
            outside += count * law.missing_p
            merged: dict[int, arb] = {}
            for place, weight in zip(rounded.places, weights, strict=True):
                merged[place] = merged.get(place, arb(0)) + weight / moment
            kept = {k: t for k, t in merged.items() if count * t > budget / 64 / len(merged)}
            lost = count * (1 - sum(kept.values(), start=arb(0)))
            left_out += max(0.0, float(lost.upper()))
            unlisted += lost
            errors += count * rounded.error
            draws.append(Draws(count, tuple(kept), tuple(kept.values())))
        draws.sort(key=_entropy, reverse=True)
        draws = draws[1:] + draws[:1]
        if sum(map(_entropy, draws)) / 2 > _MOST_ENTROPY:
            raise TooLongError
        halves = Halves.of(draws, budget / 4)
        last = arb(halves.count)
        return TiltedLists(
            PairSums.of(halves, line.c, bits),
            line.c,
            bits,
            log_moment,
            # 1/Pois(n; n), and that no value is drawn that is not listed
            (last - unlisted).exp() * last.fac() / last**halves.count,
            (halves.dropped + left_out) * (1 + 1e-6),
            ball(errors) / arb(2) ** bits,
            mass,
            arb(0).union(outside.upper()),
        )


def _listed(pair: Pair, log_missing: float) -> Listed:
    """List a loss. Raises TooLongError."""
    law = listed(pair, log_missing)
    if law is None or not law.p:
        raise TooLongError
    return law


@final
@dataclass(frozen=True)
class _Rounded:
    """Losses as multiples of 2^−bits, and a bound of their errors in these units."""

    places: list[int]
    error: int


def _rounded(laws: Sequence[Listed], factors: Sequence[Factor], bits: int) -> list[_Rounded]:
    """Round losses, or the generators of which they are small integer combinations.

    In the latter case sums that are equal have equal roundings, so that they are merged.
    """
    known = [finite(pair) for pair, _ in factors]
    exact = [
        [] if pair is None else [loss for loss in lattice.losses(pair) if loss is not None]
        for pair in known
    ]
    generators = Generators.of(loss for row in exact for loss in row)
    units = [_nearest(value, bits) for value in generators.balls()]
    found = []
    for law, row in zip(laws, exact, strict=True):
        vectors = [generators.vector(loss) for loss in row]
        error = max((sum(map(abs, vector)) for vector in vectors), default=_MOST_STEPS + 1)
        if error > _MOST_STEPS:
            found.append(_Rounded([_nearest(loss, bits) for loss in law.losses], 1))
            continue
        places = [sum(n * unit for n, unit in zip(v, units, strict=True)) for v in vectors]
        found.append(_Rounded(places, error))
    return found


def _nearest(value: arb, bits: int) -> int:
    """Return the nearest multiple of 2^−bits, to within one of them."""
    return math.floor(Fraction(*_fraction((value * arb(2) ** bits).mid())))


def _fraction(point: arb) -> tuple[int, int]:
    """Return a numerator and a denominator of a float."""
    mantissa, exponent = (int(part) for part in point.man_exp())
    return (mantissa << exponent, 1) if exponent >= 0 else (mantissa, 1 << -exponent)


def _entropy(draws: Draws) -> float:
    """Return the entropy of the numbers of draws of each value, were they independent, roughly."""
    means = [draws.count * float(mass) for mass in draws.masses]
    return sum(
        math.log(2 * math.pi * math.e * x) / 2 if x > 1 else x * (1.4 - math.log(x)) for x in means
    )
