"""Noise of a density that is written as a formula."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

from flint import arb

from accountant.core.adjacency import Adjacency
from accountant.core.mechanism import Mechanism
from accountant.core.pair import Pair, WorstCase
from accountant.core.validate import Field, Positive
from accountant.density import accuracy
from accountant.density.law import Law, law
from accountant.density.pieces import second_rise
from accountant.errors import expected
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import ball
from accountant.numbers.precision import cached_property
from accountant.pairs.own_density import OwnDensityPair
from accountant.pairs.own_shifts import OwnShiftsPair

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@final
class Density(Field[str, str]):
    """A formula of a density in x, not normalised."""

    def read(self, value: str) -> str:
        """Require what is proved to be a density."""
        law(value, self._name)
        return value.strip()


@final
@dataclass(frozen=True, repr=False)
class AdditiveNoise(Mechanism):
    """Release the true scalar answer plus scale·X, X of any density.

    Parameters
    ----------
    density
        A formula in x, not normalised: numbers, pi, + − * / **, abs, exp, log, sqrt, cosh, sinh,
        tanh, min, max, and pieces as `a if x < 1 else b`. It is read by a grammar of its own, never
        evaluated as Python.
    scale
        s > 0, by which the noise is multiplied.
    sensitivity
        The largest distance between the true answers on two neighbours; sensitivity/scale is
        rational.

    Notes
    -----
    δ(ε) is the supremum over all shifts up to the sensitivity. Whether the density has one mode is
    proved, from enclosures of the slope of ln f over the whole line (`accountant.density.pieces`);
    where it has several, a sweep over the shift finds the worst with proof
    (`accountant.density.shifts`). Of one mode the full shift is worst. Let I_y = {f ≥ y}, intervals
    that shrink as y grows, and c = e^ε ≥ 1. (a − cb)⁺ is the length of {y : cb < y ≤ a}, so that
    for a shift t

        H_t(ε) = ∫ |(I_y + t) ∖ I_{y/c}| dy over y > 0,

    and as I_y lies within the interval I_{y/c}, what of it is moved out grows with |t|. For ε < 0,
    H_c(P‖Q) = 1 − c + c H_{1/c}(Q‖P), the same for the reversed pair.
    """

    example = "AdditiveNoise(density='exp(-abs(x)**3)', scale=2)"
    noise_argument = "scale"

    density: Density = Density()
    scale: Positive = Positive(1)
    sensitivity: Positive = Positive(1)

    def __post_init__(self) -> None:
        """Require a rational distance."""
        if (self.sensitivity / self.scale).rational is None:
            raise expected(
                "sensitivity", self.sensitivity, f"to be rational in units of scale={self.scale}"
            )

    @cached_property
    def _law(self) -> Law:
        return law(self.density, "density")

    @cached_property
    def _distance(self) -> Fraction:
        found = (self.sensitivity / self.scale).rational
        assert found is not None
        return found

    @cached_property
    def _has_one_mode(self) -> bool:
        return second_rise(self._law.pieces) is None

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return two laws at the worst distance, to both sides where the density is lopsided."""
        sides = (False,) if self._law.is_symmetric else (False, True)
        if self._has_one_mode:
            pairs: tuple[Pair, ...] = tuple(
                OwnDensityPair(self.density, self._distance, side) for side in sides
            )
            reason = (
                "The density is proved to have one mode: its level sets are intervals, of which a "
                "larger shift moves out more, so the worst pair is at distance sensitivity."
            )
        else:
            pairs = tuple(OwnShiftsPair(self.density, self._distance, side) for side in sides)
            reason = (
                "The noise does not depend on the data, so a pair of neighbours is a shift of the "
                "density; the worst of all shifts up to sensitivity is proved by a sweep."
            )
        return WorstCase(pairs, pairs, reason)

    @property
    def only_alone(self) -> str:
        """Of several modes: which shift is worst depends on ε."""
        if self._has_one_mode:
            return ""
        return (
            "Its density has several modes, so that the worst shift depends on epsilon, and no one "
            "pair is worst for a composition. Ask for it alone."
        )

    @property
    def dimension(self) -> int:
        """One."""
        return 1

    @property
    def is_symmetric(self) -> bool:
        """Whether both sides of the density have the same terms."""
        return self._law.is_symmetric

    def probability_exact(self) -> arb:
        """Return 0: a law with a density has no atoms."""
        return arb(0)

    def sample(self, size: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw the noise of `size` releases, by rejection under bounds of the density."""
        from accountant.density.draw import draw

        drawn: NDArray[Any] = draw(self._law, size, rng) * float(self.scale)
        return drawn

    def worst_shift(self) -> float:
        """Return the full distance; of several modes, the worst at ε = 1."""
        if self._has_one_mode:
            return float(self.sensitivity)
        one = ExactReal.of_rational(1)
        pairs = (OwnShiftsPair(self.density, self._distance, side) for side in (False, True))
        found = max(pairs, key=lambda pair: pair.worst(one).lower)
        shift = float(found.worst(one).shift or self._distance) * float(self.scale)
        return -shift if found.mirrored else shift

    def variances(self) -> list[arb]:
        """Return [s² (E X² − (E X)²)], ∞ where a tail is too heavy."""
        second = accuracy.second_moment(self._law)
        mean = accuracy.mean(self._law) if second.is_finite() else arb(0)
        return [self.scale.ball() ** 2 * (second - mean * mean)]

    def mean_squared_error(self) -> arb:
        """Return s² E X²."""
        return self.scale.ball() ** 2 * accuracy.second_moment(self._law)

    def mean_absolute_error(self) -> arb:
        """Return s E|X|."""
        return self.scale.ball() * accuracy.absolute_moment(self._law)

    def quantile(self, probability: ExactReal) -> arb:
        """Return s times the x with F(x) = p."""
        p = probability.ball() if probability.rational is None else ball(probability.rational)
        return self.scale.ball() * accuracy.quantile(self._law, probability, p)
