"""What holds for every product of pairs, however its profile is computed.

Questions at an irrational ε, and exact sums of losses.
"""

from __future__ import annotations

import contextlib
import json
import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self, TypeAlias

from flint import arb

from accountant.core.pair import Pair, Tails
from accountant.errors import UndecidedError
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import COMPOSED_WIDTH, asked_width, narrowed
from accountant.numbers.solve import fraction
from accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from accountant.pairs.discrete_gaussian_product import DiscreteGaussianProductPair


def hockey_stick_at(pair: Pair, epsilon: arb) -> arb:
    """Return a ball for H at every ε in the ball.

    H does not increase, so its values at the two ends of the ball, which are rational, enclose it.
    """
    low, high = ends(epsilon)
    upper = pair.hockey_stick(low)
    return upper if low == high else upper.union(pair.hockey_stick(high))


def tails_at(pair: Pair, epsilon: arb) -> Tails:
    """Return balls for the tails at every ε in the ball: they are monotone too."""
    low, high = ends(epsilon)
    left = pair.tails(low)
    return left if low == high else hull(left, pair.tails(high))


def hull(first: Tails, second: Tails) -> Tails:
    """Return the tails that contain both."""
    return Tails(
        p_above=first.p_above.union(second.p_above),
        p_below=first.p_below.union(second.p_below),
        q_above=first.q_above.union(second.q_above),
        q_below=first.q_below.union(second.q_below),
    )


def ends(value: arb) -> tuple[ExactReal, ExactReal]:
    """Return the two ends of a finite ball, exactly."""
    low, high = (ExactReal.of_rational(fraction(end)) for end in (value.lower(), value.upper()))
    return low, high


def exact_sum(values: Sequence[ExactReal]) -> ExactReal | None:
    """Return the sum where the numbers that are not 0 have rational ratios, else None.

    Square roots of rationals that are pairwise incommensurable are linearly independent over the
    rationals, so that a sum of two of them is never the root of a rational: None is final.
    """
    terms = [value for value in values if value.sign]
    if not terms:
        return ExactReal.of_rational(0)
    ratios = [(term / terms[0]).rational for term in terms]
    total = Fraction(0)
    for ratio in ratios:
        if ratio is None:
            return None
        total += ratio
    return ExactReal.of_rational(total) * terms[0]


Factor: TypeAlias = tuple[Pair, int]
"""A pair, and how many independent copies of it a product has."""

_MOST_DIGITS = 1 << 16  # bits of a probability that is written out as a fraction
_CHORDS, _FINEST = 256, Fraction(1, 10**11)


class UnsuitedError(UndecidedError):
    """An engine that applies to a product is not for this question about it."""


class JointPair(Pair):
    """P = ⊗ P_i^{k_i}, Q = ⊗ Q_i^{k_i}: the losses of the factors add up, independently.

    So the Rényi divergences, the Kullback–Leibler divergence and the largest losses add up, and
    the loss is finite where it is finite in every factor.
    """

    is_product: ClassVar[bool] = True
    """Whether H is that of the product of the factors, not of a choice among several pairs."""
    seldom_below: ClassVar[Fraction] = Fraction(0)
    """A relative width below which this engine hardly ever answers, after minutes."""

    @property
    def is_numerical(self) -> bool:
        """Whether the engine answers to a width that it reaches, not to any width."""
        return False

    @property
    def usual_width(self) -> Fraction:
        """Relative width of answers for which none is named: what all engines reach soon."""
        return COMPOSED_WIDTH

    @property
    @abstractmethod
    def factors(self) -> Sequence[Factor]:
        """The pairs (P_i, Q_i) and their counts k_i."""

    def renyi(self, order: arb) -> arb:
        """Return Σ k_i D_order(P_i‖Q_i)."""
        return _weighted([(pair.renyi(order), count) for pair, count in self.factors])

    def kullback_leibler(self) -> arb:
        """Return Σ k_i KL(P_i‖Q_i)."""
        return _weighted([(pair.kullback_leibler(), count) for pair, count in self.factors])

    def closed_rho(self) -> arb | None:
        """Return Σ k_i ρ_i where every D_a/a tends to its supremum ρ_i at large orders."""
        known = [(pair.closed_rho(), count) for pair, count in self.factors]
        found = [(rho, count) for rho, count in known if rho is not None]
        return _weighted(found) if len(found) == len(known) else None

    def rho_bound(self) -> arb:
        """Return Σ k_i times the bound of factor i."""
        return _weighted([(pair.rho_bound(), count) for pair, count in self.factors])

    def max_loss(self) -> arb:
        """Return Σ k_i times the largest loss of factor i."""
        largest = [(pair.max_loss(), count) for pair, count in self.factors]
        if any(loss == arb.pos_inf() for loss, _ in largest):
            return arb.pos_inf()  # exactly, whatever is added
        return _weighted(largest)

    def max_finite_loss(self) -> arb:
        """Return Σ k_i times the largest finite loss of factor i; −∞ where one has none."""
        return _weighted([(pair.max_finite_loss(), count) for pair, count in self.factors])

    def exact_max_loss(self) -> ExactReal | None:
        """Return the largest loss where those of the factors are known and have an exact sum."""
        terms = []
        for pair, count in self.factors:
            largest = pair.exact_max_loss()
            if largest is None:
                return None
            terms.append(ExactReal.of_rational(count) * largest)
        return exact_sum(terms)

    def infinity_mass(self) -> arb:
        """Return 1 − Π (1 − m_i)^{k_i}, where m_i is the mass at infinity of factor i."""
        exponent, doubtful = arb(0), arb(1)
        for pair, count in self.factors:
            known = pair.exact_infinity_mass()
            if known is not None and known.rational == 1:
                return arb(1)
            mass = pair.infinity_mass() if known is None else known.ball()
            if mass < 1:
                exponent += count * (-mass).log1p()
            else:  # not told from 1
                doubtful *= (1 - mass).max(arb(0)) ** count
        certain = -exponent.expm1()
        return certain if doubtful == 1 else certain + (1 - certain) * (1 - doubtful)

    def exact_infinity_mass(self) -> ExactReal | None:
        """Return the same as a fraction, where it is one that is short enough to be written."""
        rest, length = Fraction(1), 0
        for pair, count in self.factors:
            mass = pair.exact_infinity_mass()
            if mass is None or mass.rational is None:
                return None
            if mass.rational:
                length += count * mass.rational.denominator.bit_length()
                if length > _MOST_DIGITS:
                    return None
                rest *= (1 - mass.rational) ** count
        return ExactReal.of_rational(1 - rest)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the tails, from the slopes of H.

        Those of chords over a step are wrong by about the step, and by the error of H over it: H
        is asked for with the square of a width, where that is no finer than engines reach.
        """
        asked = asked_width.get()
        fine = None if asked is None else asked * asked / _CHORDS
        if fine is not None and fine >= _FINEST:
            with contextlib.suppress(UndecidedError), narrowed(fine):
                return self.tails_by_slopes(epsilon)
        return self.tails_by_slopes(epsilon)

    def tails_by_slopes(self, epsilon: ExactReal) -> Tails:
        """Return the tails, from the slopes of H, a convex function of z = e^ε.

        Q(L > ε) lies between the slopes of the chords from z(1 − w) to z and from z to z(1 + w).
        """
        middle = self.hockey_stick(epsilon)
        slack = float((middle.rad() / middle.abs_upper()).mid()) if middle.rad() > 0 else 0.0
        width = Fraction(min(max(math.sqrt(slack), 2.0**-40), 0.25)).limit_denominator(1 << 44)
        z = epsilon.ball().exp()
        right = self._beside(epsilon, width)
        left = self._beside(epsilon, -width)
        steepest = (left[1] - middle) / (z - left[0].exp())
        flattest = (middle - right[1]) / (right[0].exp() - z)
        q_above = flattest.max(arb(0)).union(steepest.min(arb(1)))
        p_above = (middle + z * q_above).max(arb(0)).min(arb(1))
        return Tails(p_above=p_above, p_below=1 - p_above, q_above=q_above, q_below=1 - q_above)

    def _beside(self, epsilon: ExactReal, step: Fraction) -> tuple[arb, arb]:
        """Return a loss beside ε, on the side of the step, and H there."""
        at = epsilon.rational
        if at is None:
            low, high = ends(epsilon.ball())
            at = (high if step > 0 else low).rational
            assert at is not None
        at += step
        point = ExactReal.of_rational(at)
        return point.ball(), self.hockey_stick(point)

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the set {L > ε}."""
        return f"the releases whose privacy losses ln(dP/dQ) have a sum above {epsilon}"

    def law(self) -> dict[str, object]:
        """Return {"law": "product", "counts", "factors"}, each factor a law as a JSON text."""
        return {
            "law": "product",
            "counts": [count for _, count in self.factors],
            "factors": [json.dumps(pair.law()) for pair, _ in self.factors],
        }


@dataclass(frozen=True)
class FactorsPair(JointPair):
    """A product for an engine that takes its factors as they come."""

    any_factors: tuple[Factor, ...]

    @property
    def is_numerical(self) -> bool:
        """Whether it is: all such engines are but the sums over pairs of lists."""
        return True

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The pairs and their counts."""
        return self.any_factors

    def reverse(self) -> Self:
        """Return the product of the reversed pairs, for the same engine."""
        return replace(self, any_factors=tuple((pair.reverse(), n) for pair, n in self.factors))


def apart(factors: Sequence[Factor], *, coordinates: bool = True) -> tuple[Factor, ...]:
    """Return the distinct factors of a product with their counts, none of them a product itself.

    Discrete Gaussian noise on several coordinates, which has exact sums of its own, is taken apart
    if `coordinates` is asked for.

    A mechanism may have a product as its worst pair (a tree of noise, noise on several
    coordinates). Products of products are products of all the factors, which engines know.
    """
    found: dict[Pair, int] = {}
    for pair, count in factors:
        for inner, times in _parts(pair, coordinates):
            found[inner] = found.get(inner, 0) + count * times
    return tuple(found.items())


def _parts(pair: Pair, coordinates: bool) -> Iterator[Factor]:
    if isinstance(pair, DiscreteGaussianProductPair) and coordinates:
        square = ExactReal.of_rational(pair.scale**2 * pair.parameter)
        yield DiscreteGaussianPair(ExactReal.of_rational(pair.parameter), pair.shift), pair.count
        if pair.last_shift:
            yield DiscreteGaussianPair(square, pair.last_shift), 1
    elif isinstance(pair, JointPair) and pair.is_product:
        yield from apart(pair.factors, coordinates=coordinates)
    else:
        yield pair, 1


def _weighted(terms: Sequence[tuple[arb, int]]) -> arb:
    return sum((count * value for value, count in terms), start=arb(0))
