"""Discrete Gaussian noise beside losses whose profile is quick, such as Laplace noise.

The sum of the losses of n releases of discrete Gaussian noise of parameter v at distance s is
(2sW + ns²)/2v, where W is, under P, the sum of n independent discrete Gaussian integers. So with H₁
the profile of the other losses together,

    H(ε) = Σ_w P(W = w) H₁(ε − (2sw + ns²)/2v).

The masses are coefficients of the n-th power of a polynomial, |w| ≤ R; the others have 1 − Σ in
all, and add at most that. H₁ is 0 above the largest of its losses, and 1 − e^ε below the least: of
bounded losses it is asked for few w.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from flint import arb, arb_poly

from accountant.composition.argument import exact_sum, hockey_stick_at
from accountant.composition.joint import Factor, JointPair, UnsuitedError
from accountant.composition.mixture import MAX_VALUES
from accountant.interval import asked_width, ball
from accountant.number import ExactReal
from accountant.pair import Pair
from accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from accountant.pairs.theta import theta
from accountant.precision import cached_property, ctx

_SPARE = 24
_PRECISION = 128
_ENOUGH = 2
_FEW_STEPS = 8


def split(factors: Sequence[Factor]) -> tuple[list[Factor], Factor] | None:
    """Return the other factors, and that of discrete Gaussian noise; None unless there is one."""
    integers = [factor for factor in factors if isinstance(factor[0], DiscreteGaussianPair)]
    others = [factor for factor in factors if not isinstance(factor[0], DiscreteGaussianPair)]
    return (others, integers[0]) if len(integers) == 1 and others else None


def meets_few(first: Pair, integer: DiscreteGaussianPair) -> bool:
    """Whether the range of the first loss is no longer than few of the steps s/v of the other."""
    with ctx.workprec(_PRECISION):
        length = first.max_loss() + first.reverse().max_loss()
        return bool(length * integer.parameter.ball() <= _FEW_STEPS * integer.shift)


@final
@dataclass(frozen=True)
class IntegerMixedPair(JointPair):
    """The product of a pair with a known profile and of `count` discrete Gaussian ones."""

    first: Pair
    integer: DiscreteGaussianPair
    count: int

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The pairs and their counts."""
        return (self.first, 1), (self.integer, self.count)

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return the sum, the heaviest values first; what is negligible is bounded.

        Raises UnsuitedError for too many values.
        """
        n, s, v = self.count, self.integer.shift, self.integer.parameter
        masses, missing = _masses(self.integer.parameter, n, ctx.prec)
        asked = asked_width.get()
        share = ball(asked) / (2 * _ENOUGH * len(masses)) if asked else arb(2) ** -ctx.prec
        total = arb(0).union(missing)
        for w in sorted(range(1 - len(masses), len(masses)), key=abs):
            mass = masses[abs(w)]
            if mass <= share * total.lower():
                total += arb(0).union(mass)
                continue
            loss = ExactReal.of_rational(2 * s * w + n * s * s) / v / ExactReal.of_rational(2)
            total += mass * self._first_at(epsilon, loss)
        return total.max(arb(0)).min(arb(1))

    def _first_at(self, epsilon: ExactReal, loss: ExactReal) -> arb:
        """Return H₁(ε − loss)."""
        least, largest = self._ends
        at = epsilon.ball() - loss.ball()
        if at >= largest:
            return self.first.infinity_mass()
        if at <= least:
            return -at.expm1()
        rest = exact_sum([epsilon, -loss])
        return hockey_stick_at(self.first, at) if rest is None else self.first.hockey_stick(rest)

    @cached_property
    def _ends(self) -> tuple[arb, arb]:
        """Return a lower and an upper bound of the first loss."""
        with ctx.workprec(_PRECISION):
            least, largest = -self.first.reverse().max_loss(), self.first.max_loss()
        return least.lower(), largest.upper()

    def reverse(self) -> IntegerMixedPair:
        """Return the product of the reversed pairs; a discrete Gaussian one is its own."""
        return IntegerMixedPair(self.first.reverse(), self.integer, self.count)


@functools.lru_cache(maxsize=32)
def _masses(v: ExactReal, count: int, precision: int) -> tuple[tuple[arb, ...], arb]:
    """Return P(W = w) = P(W = −w), less what was cut off, for 0 ≤ w ≤ R, and all that these lack.

    What is cut off on the way belongs to outcomes that count with the latter.
    """
    fall = precision * math.log(2) + 2
    single = math.isqrt(math.ceil(2 * float(v) * (fall + math.log(count)))) + 1
    reach = min(count * single, math.isqrt(math.ceil(2 * count * float(v) * fall)) + 1)
    if 2 * reach > MAX_VALUES:
        raise UnsuitedError(
            f"The sum of {count} integers has {2 * reach} values that count, more than "
            f"{MAX_VALUES}. Ask with method='grid'."
        )
    with ctx.workprec(precision + _SPARE + count.bit_length() * 2):
        terms = [(-arb(z * z) / (2 * v.ball())).exp() for z in range(-single, single + 1)]
        law = _power(arb_poly(terms) * (1 / theta(v)), single, count, reach)
        masses = [law[law.degree() // 2 + w] for w in range(reach + 1)]
        rest = 1 - masses[0] - 2 * sum(masses[1:], start=arb(0))
    return tuple(masses), rest.max(arb(0)).upper()


def _power(law: arb_poly, single: int, count: int, reach: int) -> arb_poly:
    """Return a power of a polynomial that is symmetric about its middle, cut at every stage."""
    result = law
    for bit in bin(count)[3:]:
        result = _cut(result * result, reach)
        if bit == "1":
            result = _cut(result * law, reach)
    return _cut(result, reach, exactly=True)


def _cut(law: arb_poly, reach: int, *, exactly: bool = False) -> arb_poly:
    middle = law.degree() // 2
    if middle > reach:
        return arb_poly(law.coeffs()[middle - reach : middle + reach + 1])
    if exactly and middle < reach:
        return arb_poly([0] * (reach - middle) + law.coeffs() + [0] * (reach - middle))
    return law
