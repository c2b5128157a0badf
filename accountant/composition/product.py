"""Products of pairs: quantities that add up over the factors, and engines for the others."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, TypeAlias, TypeVar, final

from flint import arb

from dpassay.accountant.core.pair import (
    Known,
    Pair,
    Tails,
    exact_infinity_mass,
    max_finite_loss,
    rho_bound,
    upper_bound,
)
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import COMPOSED_WIDTH, Interval
from dpassay.accountant.numbers.precision import cached_property
from dpassay.accountant.pairs.discrete import DiscreteGaussianPair
from dpassay.accountant.pairs.finite import largest_profile, tables
from dpassay.accountant.pairs.invert import ends


def exact_sum(values: Sequence[ExactReal]) -> ExactReal | None:
    """Return the sum, or None if it has too many terms.

    Also return None for roots without rational ratios. They are linearly independent over the
    rationals, so their sum is not a root of a rational, and ball arithmetic decides every
    comparison with one.
    """
    terms = [value for value in values if value.sign]
    if not terms:
        return ExactReal.of_rational(0)
    if any(term.formula for term in terms):
        return formula_sum(terms)
    ratios = [(term / terms[0]).rational for term in terms]
    total = Fraction(0)
    for ratio in ratios:
        if ratio is None:
            return None
        total += ratio
    return ExactReal.of_rational(total) * terms[0]


def formula_sum(terms: Sequence[ExactReal]) -> ExactReal | None:
    """Return the sum of any numbers, or None if it has too many terms."""
    try:
        return functools.reduce(operator.add, terms)
    except ArithmeticError:
        return None


def bound_of(
    families: Sequence[tuple[Sequence[Pair], int]], epsilon: ExactReal
) -> ExactReal | None:
    """Return the largest H(ε) for one pair from each family, or None unless tables are few."""
    factors = []
    for family, count in families:
        if (listed := tables(family)) is None:
            return None
        factors.append((listed, count))
    return largest_profile(factors, epsilon)


T = TypeVar("T")
Factor: TypeAlias = tuple[Pair, int]
"""A pair and the number of its independent copies in a product."""

_MOST_DIGITS = 1 << 16  # bits of a probability that is stored as a fraction
_CHORDS, _FINEST = 256, Fraction(1, 10**11)


class Engine(ABC):
    """An algorithm that computes H and the tails of a product.

    An engine answers for a product and is not one itself. It has no state except limits on its
    cost, or other forms of a product that it may use.
    """

    of_choices: ClassVar[bool] = False
    """Whether H belongs to a choice among several pairs, not to the product of the factors."""

    on_contours: ClassVar[bool] = False
    """Whether H is a contour integral, whose cost falls with the number of digits."""

    numerical: ClassVar[bool] = False
    """Whether it reaches some relative width only, not any width."""

    @abstractmethod
    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return H(ε), for ε that some finite loss may exceed."""

    def at_most(self, product: Product, epsilon: ExactReal) -> arb:
        """Return an upper bound on H(ε)."""
        return self.profile(product, epsilon).upper()

    def tails(self, product: Product, epsilon: ExactReal) -> Tails:
        """Return the tails, from the slopes of H.

        A chord over a step gives a slope with an error of about the step, plus the error of H
        divided by the step. So H is computed to the square of the width, if engines reach it.
        """
        asked = product.relative_width
        fine = None if asked is None else asked * asked / _CHORDS
        if fine is not None and fine >= _FINEST:
            with contextlib.suppress(UndecidedError):
                return tails_by_slopes(product.to_width(fine), epsilon)
        return tails_by_slopes(product, epsilon)

    def inverse(
        self, product: Product, delta: ExactReal, relative_width: Fraction
    ) -> Interval | None:
        """Enclose ε(δ), or return None; it is then found from values of H."""
        return None

    def fallback(
        self, product: Product, delta: ExactReal, relative_width: Fraction
    ) -> Interval | None:
        """Enclose ε(δ) if values of H near it are refused, or return None if nothing is known."""
        return None

    def estimate_log_delta(self, product: Product, epsilon: float) -> float | None:
        """Return ln H(ε) in floats without error bounds, or None if there is no fast way."""
        return None

    def estimate_epsilon(self, product: Product, log_delta: float) -> float | None:
        """Return the ε with ln H(ε) = log_delta in floats without error bounds, or None."""
        return None

    def bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return a proved upper bound on H(ε) that takes little time; 1 if none is known."""
        return arb(1)

    def closed_bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return a bound in closed form, perhaps a large one; 1 if there is none."""
        return arb(1)

    def width(self, product: Product) -> Fraction:
        """Return the default relative width, which most engines reach quickly."""
        return COMPOSED_WIDTH

    def is_numerical(self, product: Product) -> bool:
        """Whether the engine is `numerical` for this product."""
        return self.numerical

    def attained(self, product: Product, epsilon: ExactReal) -> Pair:
        """Return a pair of two datasets that attains H at ε, if the product only bounds them."""
        return product

    def first_answer(self, product: Product, ask: Callable[[Pair], T], width: Fraction) -> T:
        """Return the answer of the first engine that this one would use for a width."""
        return ask(product)

    def law(self, product: Product) -> dict[str, object]:
        """Return {"law": "product", "counts", "factors"}, with each factor as JSON text."""
        return {
            "law": "product",
            "counts": [count for _, count in product.factors],
            "factors": [json.dumps(pair.law()) for pair in product.pairs],
        }

    def describe_event(self, product: Product, epsilon: ExactReal) -> str:
        """Describe the set {L > ε}."""
        return f"the releases whose privacy losses ln(dP/dQ) have a sum above {epsilon}"

    def exact_bound(self, product: Product, epsilon: ExactReal) -> ExactReal | None:
        """Return H(ε) exactly for few releases with rational masses."""
        return (
            None
            if self.of_choices
            else bound_of([((pair,), n) for pair, n in product.factors], epsilon)
        )

    def reverse(self) -> Engine:
        """Return the engine for the product of the reversed pairs."""
        return self


@final
@dataclass(frozen=True)
class Product(Pair):
    """P = ⊗ P_i^{k_i}, Q = ⊗ Q_i^{k_i}: the losses of the factors are independent and add up.

    Hence the Rényi divergences, the Kullback–Leibler divergence and the largest losses add up, and
    the loss is finite if it is finite in every factor. An engine computes the profile.
    """

    factors: tuple[Factor, ...]
    """The pairs (P_i, Q_i) and their counts k_i."""
    engine: Engine
    relative_width: Fraction | None = field(default=None, compare=False)
    """The relative width requested of the engine. Cached values are used for every width."""

    def __hash__(self) -> int:
        """Return a hash that is computed once, since engines cache by product."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.factors, self.engine))

    def asked(self, engine: Engine) -> Product:
        """Return the same product with another engine."""
        return Product(self.factors, engine, self.relative_width)

    def to_width(self, relative_width: Fraction | None) -> Product:
        """Return the same product with a relative width requested of its engine."""
        return Product(self.factors, self.engine, relative_width)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The distinct pairs."""
        return tuple(pair for pair, _ in self.factors)

    @property
    def is_product(self) -> bool:
        """Whether H belongs to the product of the factors."""
        return not self.engine.of_choices

    @property
    def known(self) -> Known:
        """Return what adds up over the factors and what the engine knows about the product."""
        engine, ask = self.engine, functools.partial
        return Known(
            to_width=self.to_width,
            asked=self.relative_width,
            width=ask(engine.width, self),
            max_loss=lambda: self._exact_max_loss,
            finite_loss=self._max_finite_loss,
            infinity_mass=self._exact_infinity_mass,
            exact=ask(engine.exact_bound, self),
            upper=self._upper,
            attained=ask(engine.attained, self) if engine.of_choices else None,
            bound=ask(engine.bound, self),
            closed_bound=ask(engine.closed_bound, self),
            inverse=ask(engine.inverse, self),
            fallback=ask(engine.fallback, self),
            log_delta=ask(engine.estimate_log_delta, self),
            epsilon=ask(engine.estimate_epsilon, self),
            rho=self._rho,
            rho_bound=lambda: _weighted([(rho_bound(pair), n) for pair, n in self.factors]),
        )

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε); this is P(L = ∞) if no finite loss exceeds ε."""
        if self.is_beyond(epsilon):
            return self.infinity_mass()
        return self.engine.profile(self, epsilon)

    def is_beyond(self, epsilon: ExactReal) -> bool:
        """Whether it is certain that no finite loss exceeds ε."""
        known = self._exact_max_loss
        if known is not None:
            return epsilon >= known
        with contextlib.suppress(NotApplicableError):
            return bool(self._max_finite_loss() <= epsilon.ball())
        return False

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the tails as computed by the engine."""
        return self.engine.tails(self, epsilon)

    def _upper(self, epsilon: ExactReal) -> arb:
        """Return the smaller of the engine's upper bound on H(ε) and the basic bound."""
        if self.is_beyond(epsilon):
            return self.infinity_mass()
        return self.engine.at_most(self, epsilon).min(self.basic_bound(epsilon))

    def basic_bound(self, epsilon: ExactReal) -> arb:
        """Return the bound of basic composition for ε ≥ 0, with ε shared evenly.

        Statement: for ε_i ≥ 0 with δ_i = H_i(ε_i), H(Σ k_i ε_i) ≤ 1 − Π (1 − δ_i)^{k_i}. Proof: a
        loss with this profile at ε_i is dominated by one that is infinite with probability δ_i and
        otherwise at most ε_i. The bound also holds if releases choose among pairs whose profiles
        are bounded by those of the factors.
        """
        if epsilon.sign < 0:
            return arb(1)
        share = epsilon * ExactReal.of_rational(Fraction(1, sum(n for _, n in self.factors)))
        kept = arb(1)
        for pair, count in self.factors:
            try:
                kept *= (1 - upper_bound(pair, share).min(arb(1))).max(arb(0)) ** count
            except (NotApplicableError, UndecidedError):
                return arb(1)
        return (1 - kept).upper()

    def renyi(self, order: arb) -> arb:
        """Return Σ k_i D_order(P_i‖Q_i)."""
        return _weighted([(pair.renyi(order), count) for pair, count in self.factors])

    def _rho(self) -> arb | None:
        """Return Σ k_i ρ_i if every D_a/a tends to its supremum ρ_i as a grows, or the sum is ∞."""
        known = [(pair.known.rho(), count) for pair, count in self.factors]
        found = [(rho, count) for rho, count in known if rho is not None]
        total = _weighted(found)
        return total if len(found) == len(known) or total == arb.pos_inf() else None

    def max_loss(self) -> arb:
        """Return Σ k_i times the largest loss of factor i."""
        largest = [(pair.max_loss(), count) for pair, count in self.factors]
        if any(loss == arb.pos_inf() for loss, _ in largest):
            return arb.pos_inf()  # exactly, whatever the other terms are
        return _weighted(largest)

    def _max_finite_loss(self) -> arb:
        """Return Σ k_i times the largest finite loss of factor i; −∞ if a factor has none."""
        return _weighted([(max_finite_loss(pair), count) for pair, count in self.factors])

    @cached_property
    def _exact_max_loss(self) -> ExactReal | None:
        terms = []
        for pair, count in self.factors:
            largest = pair.known.max_loss()
            if largest is None:
                return None
            terms.append(largest.times(count))
        return exact_sum(terms) or formula_sum(terms)

    def infinity_mass(self) -> arb:
        """Return 1 − Π (1 − m_i)^{k_i}, where m_i is the mass at infinity of factor i."""
        exponent, doubtful = arb(0), arb(1)
        for pair, count in self.factors:
            known = exact_infinity_mass(pair)
            if known is not None and known.rational == 1:
                return arb(1)
            mass = pair.infinity_mass() if known is None else known.ball()
            if mass < 1:
                exponent += count * (-mass).log1p()
            else:  # the ball contains 1
                doubtful *= (1 - mass).max(arb(0)) ** count
        certain = -exponent.expm1()
        return certain if doubtful == 1 else certain + (1 - certain) * (1 - doubtful)

    def _exact_infinity_mass(self) -> ExactReal | None:
        """Return the mass at infinity as a fraction, or None if it is none or is too long."""
        rest, length = Fraction(1), 0
        for pair, count in self.factors:
            mass = exact_infinity_mass(pair)
            if mass is None or mass.rational is None:
                return None
            if mass.rational:
                length += count * mass.rational.denominator.bit_length()
                if length > _MOST_DIGITS:
                    return None
                rest *= (1 - mass.rational) ** count
        return ExactReal.of_rational(1 - rest)

    def reverse(self) -> Product:
        """Return the product of the reversed pairs."""
        return self._reversed

    @cached_property
    def _reversed(self) -> Product:
        turned = tuple((pair.reverse(), count) for pair, count in self.factors)
        return Product(turned, self.engine.reverse(), self.relative_width)

    def law(self) -> dict[str, object]:
        """Return the product as plain data."""
        return self.engine.law(self)

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the set {L > ε}."""
        return self.engine.describe_event(self, epsilon)


def simple_bound(pair: Pair, epsilon: ExactReal) -> arb:
    """Return the least bound on H(ε) that needs no composition; no answer may exceed it."""
    found = pair.known.bound(epsilon).min(arb(1))
    return found.min(pair.basic_bound(epsilon)) if isinstance(pair, Product) else found


def is_numerical(pair: Pair) -> bool:
    """Whether the pair's engine reaches some relative width only, not any width."""
    return isinstance(pair, Product) and pair.engine.is_numerical(pair)


def tails_by_slopes(pair: Pair, epsilon: ExactReal) -> Tails:
    """Return the tails, from the slopes of H, a convex function of z = e^ε.

    Q(L > ε) lies between the negative slopes of the chords from z to z(1 + w) and from z(1 − w) to
    z.
    """
    middle = pair.hockey_stick(epsilon)
    slack = float((middle.rad() / middle.abs_upper()).mid()) if middle.rad() > 0 else 0.0
    width = Fraction(min(max(math.sqrt(slack), 2.0**-40), 0.25)).limit_denominator(1 << 44)
    z = epsilon.ball().exp()
    right, left = _profile_nearby(pair, epsilon, width), _profile_nearby(pair, epsilon, -width)
    steepest = (left[1] - middle) / (z - left[0].exp())
    flattest = (middle - right[1]) / (right[0].exp() - z)
    q_above = flattest.max(arb(0)).union(steepest.min(arb(1)))
    p_above = (middle + z * q_above).max(arb(0)).min(arb(1))
    return Tails(p_above=p_above, p_below=1 - p_above, q_above=q_above, q_below=1 - q_above)


def _profile_nearby(pair: Pair, epsilon: ExactReal, step: Fraction) -> tuple[arb, arb]:
    """Return the point ε + step, rounded away from ε if ε is irrational, and H there."""
    at = epsilon.rational
    if at is None:
        low, high = ends(epsilon.ball())
        at = (high if step > 0 else low).rational
        assert at is not None
    point = ExactReal.of_rational(at + step)
    return point.ball(), pair.hockey_stick(point)


def expanded(factors: Sequence[Factor], *, coordinates: bool = True) -> tuple[Factor, ...]:
    """Return the distinct factors of a product with their counts, with products expanded.

    A mechanism may have a product as its worst pair (noise on a tree, noise on several
    coordinates). A product of products is the product of all their factors.

    With `coordinates`, discrete Gaussian noise on several coordinates, which also has exact sums of
    its own, is split into its coordinates.
    """
    parts = ((_parts(pair, coordinates), count) for pair, count in factors)
    return counted((inner, count * times) for inside, count in parts for inner, times in inside)


def counted(factors: Iterable[Factor]) -> tuple[Factor, ...]:
    """Return the distinct factors, each with the sum of its counts."""
    found: dict[Pair, int] = {}
    for pair, count in factors:
        found[pair] = found.get(pair, 0) + count
    return tuple(found.items())


def _parts(pair: Pair, coordinates: bool) -> Iterator[Factor]:
    if isinstance(pair, DiscreteGaussianPair) and coordinates:
        yield DiscreteGaussianPair(pair.parameter, pair.shift), pair.count
        if pair.last_shift:
            yield DiscreteGaussianPair(pair.last_parameter, pair.last_shift), 1
    elif isinstance(pair, Product) and pair.is_product:
        yield from expanded(pair.factors, coordinates=coordinates)
    else:
        yield pair, 1


def _weighted(terms: Sequence[tuple[arb, int]]) -> arb:
    return sum((count * value for value, count in terms), start=arb(0))
