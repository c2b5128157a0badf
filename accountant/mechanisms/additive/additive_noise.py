"""Noise of a density that is written as a formula."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair, WorstCase
from dpassay.accountant.core.randomness import Randomness, SecureIntegers
from dpassay.accountant.core.validate import Maybe, Positive, Rationals, Read
from dpassay.accountant.density import accuracy, integers
from dpassay.accountant.density.integers import IntegerLaw, integer_law
from dpassay.accountant.density.law import Law, law
from dpassay.accountant.density.pieces import second_rise
from dpassay.accountant.density.text import formula, with_parameters
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, expected
from dpassay.accountant.mechanisms.additive.integers import integer_quantile
from dpassay.accountant.numbers.exact import ExactReal, Number
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import cached_property
from dpassay.accountant.pairs.finite import FinitePair
from dpassay.accountant.pairs.own_density import MassTable, OwnDensityPair, OwnMassPair
from dpassay.accountant.release.lattice import release_integers

_MOST_SHIFTS = 1000
"""Sensitivity of masses: a pair for each where there are several modes."""


@declared
class AdditiveNoise(Mechanism):
    """Release the true scalar answer plus scale·X, X of any density of one mode.

    Parameters
    ----------
    density
        A formula in x, not normalised: numbers, pi, + − * / **, abs, exp, log, sqrt, cosh, sinh,
        tanh, min, max, and pieces as `a if x < 1 else b`. It is read by a grammar of its own, never
        evaluated as Python. A table is one too: `steps((x, f), …)`, `linear(…)`, `loglinear(…)`.
    scale
        s > 0, by which the noise is multiplied; 1 for masses.
    sensitivity
        The largest distance between the true answers on two neighbours; sensitivity/scale is
        rational, and an integer for masses.
    mass
        Instead of the density, the masses at the integers x, in the same grammar.
    parameters
        Numbers that the formula calls a, b, c, d in this order; they are written into it.

    Notes
    -----
    δ(ε) is the supremum over all shifts up to the sensitivity. That the density has one mode is
    proved, from enclosures of the slope of ln f over the whole line
    (`dpassay.accountant.density.pieces`); others are refused. So the full shift is worst. Let
    I_y = {f ≥ y}, intervals that shrink as y grows, and c = e^ε ≥ 1. (a − cb)⁺ is the length of {y
    : cb < y ≤ a}, so that for a shift t

        H_t(ε) = ∫ |(I_y + t) ∖ I_{y/c}| dy over y > 0,

    and as I_y lies within the interval I_{y/c}, what of it is moved out grows with |t|. For ε < 0,
    H_c(P‖Q) = 1 − c + c H_{1/c}(Q‖P), the same for the reversed pair. On the integers level sets
    are intervals where the formula has one mode on the line; else every shift is listed.
    """

    example = "AdditiveNoise(density='exp(-abs(x)**3)', scale=2)"
    noise_argument = "scale"

    density: Read[str, str] = Read(formula, "")
    scale: Positive = Positive(1)
    sensitivity: Positive = Positive(1)
    mass: Read[str, str] = Read(formula, "")
    parameters: Maybe[tuple[Fraction, ...], Sequence[Number]] = Maybe(Rationals())

    def __post_init__(self) -> None:
        """Require one law, and a rational distance."""
        if bool(self.density) == bool(self.mass):
            raise InvalidInputError(
                "Expected AdditiveNoise with either density='…', a formula in x on the reals, "
                "or mass='…', one on the integers."
            )
        if self.parameters is not None:
            for name in ("density", "mass"):
                if written := getattr(self, name):
                    written = with_parameters(written, self.parameters)
                    object.__setattr__(self, name, written)
            object.__setattr__(self, "parameters", None)
        if not self.mass:
            rise = second_rise(law(self.density, "density").pieces)
            if rise is not None:
                raise InvalidInputError(
                    f"density={self.density!r} was not proved to have one mode: it may rise again "
                    f"next to x = {rise:.6g} after it fell, and then the worst shift depends on "
                    "epsilon. Expected a density that rises and then falls, or mass='…'."
                )
        else:
            integer_law(self.mass)  # what is no formula is named first
            shift = self.sensitivity.rational
            if self.scale != ExactReal.of_rational(1):
                raise expected("scale", self.scale, "to be 1 for mass", "Write it into the mass.")
            if shift is None or shift.denominator != 1 or shift > _MOST_SHIFTS:
                raise expected(
                    "sensitivity", self.sensitivity, f"to be an integer up to {_MOST_SHIFTS}"
                )
        if (self.sensitivity / self.scale).rational is None:
            raise expected(
                "sensitivity", self.sensitivity, f"to be rational in units of scale={self.scale}"
            )

    @cached_property
    def _law(self) -> Law:
        return integer_law(self.mass).law if self.mass else law(self.density, "density")

    @cached_property
    def _distance(self) -> Fraction:
        found = (self.sensitivity / self.scale).rational
        assert found is not None
        return found

    @cached_property
    def _sides(self) -> tuple[bool, ...]:
        """Whether shifts are of −X: of one side, where −X is X up to a shift."""
        return (False, True) if self._law.axis is None else (False,)

    @cached_property
    def _has_one_mode(self) -> bool:
        return second_rise(self._law.pieces) is None

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return two laws at the worst distance, to both sides where the density is lopsided."""
        if self.mass:
            return self._worst_masses()
        pairs = tuple(OwnDensityPair(self.density, self._distance, side) for side in self._sides)
        reason = (
            "The density is proved to have one mode: its level sets are intervals, of which a "
            "larger shift moves out more, so the worst pair is at distance sensitivity."
        )
        return WorstCase(pairs, pairs, reason)

    def _worst_masses(self) -> WorstCase:
        found, last = integer_law(self.mass), int(self._distance)
        shifts = [last] if self._has_one_mode else range(1, last + 1)
        sides = (False,) if found.is_symmetric else (False, True)
        if found.is_finite:
            table = MassTable(self.mass)
            pairs: tuple[Pair, ...] = tuple(
                FinitePair(table, shift, side) for shift in shifts for side in sides
            )
        else:
            pairs = tuple(OwnMassPair(self.mass, shift, side) for shift in shifts for side in sides)
        which = "the full shift is worst, as there is one mode" if self._has_one_mode else (
            "every shift from 1 to sensitivity is listed"
        )  # fmt: skip
        reason = f"A pair of neighbours is a shift of the masses, in either direction; {which}."
        return WorstCase(pairs, pairs, reason)

    @property
    def is_symmetric(self) -> bool:
        """Whether both sides of the law have the same terms."""
        return integer_law(self.mass).is_symmetric if self.mass else self._law.is_symmetric

    def probability_exact(self) -> arb:
        """Return the mass at 0; none of a density."""
        if not self.mass:
            return arb(0)
        found = integer_law(self.mass)
        return found.value(0) / found.total()

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw the noise of `size` releases: by rejection in floats, of masses exactly."""
        if self.mass:
            return integers.draw(integer_law(self.mass), size, rng)
        from dpassay.accountant.density.draw import draw

        if isinstance(rng, SecureIntegers):
            raise NotApplicableError("A density that is a formula is drawn by a NumPy generator.")
        drawn: Array = draw(self._law, size, rng) * float(self.scale)
        return drawn

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Add exact noise to every entry of an integer answer, where the noise is of masses."""
        if not self.mass:
            raise NotApplicableError(
                "A density that is a formula has no lattice sampler. Write masses on the integers "
                "(mass='…') to release, or simulate the noise with `sample`."
            )
        return release_integers(lambda count: self.sample(count, rng=rng), value, times)

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return the worst shift; every shift of masses with several modes."""
        if self.mass and not self._has_one_mode:
            return [(0, shift) for shift in range(1, int(self._distance) + 1)]
        return [(0, int(self._distance))] if self.mass else super().worst_answers()

    def worst_shift(self) -> float:
        """Return the full distance."""
        return float(self.sensitivity)

    @property
    def _own(self) -> Law | IntegerLaw:
        return integer_law(self.mass) if self.mass else self._law

    def variances(self) -> list[arb]:
        """Return [s² (E X² − (E X)²)], ∞ where a tail is too heavy."""
        second = self.mean_squared_error()
        if not second.is_finite():
            return [second]
        mean = self.scale.ball() * accuracy.mean(self._own)
        return [second - mean * mean]

    def mean_squared_error(self) -> arb:
        """Return s² E X²."""
        return self.scale.ball() ** 2 * accuracy.absolute_moment(self._own, 2)

    def mean_absolute_error(self) -> arb:
        """Return s E|X|."""
        return self.scale.ball() * accuracy.absolute_moment(self._own, 1)

    def quantile(self, probability: ExactReal) -> arb:
        """Return s times the x with F(x) = p."""
        if self.mass:
            return _integer_quantile(integer_law(self.mass), probability)
        p = probability.ball() if probability.rational is None else ball(probability.rational)
        return self.scale.ball() * accuracy.quantile(self._law, probability, p)


def _integer_quantile(found: IntegerLaw, probability: ExactReal) -> arb:
    """Return the least integer z with P(Z ≤ z) ≥ p."""
    whole = found.total()
    if found.is_finite:
        listed = [z for z in range(found.low, found.high + 1) if not found.is_zero(z)]
        if probability.sign == 0:
            return arb.neg_inf()
        p = probability.ball()
        sure = [z for z in listed if found.above(-z - 1, -1) >= p * whole]
        maybe = [z for z in listed if not found.above(-z - 1, -1) < p * whole]
        last = listed[-1]
        return arb(min(maybe, default=last)).union(arb(min(sure, default=last)))
    return integer_quantile(
        lambda z: found.above(-z - 1, -1) / whole, lambda z: found.above(z) / whole, probability
    )
