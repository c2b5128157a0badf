"""Noise whose density falls with a norm: the K-norm mechanism of Hardt and Talwar (2010)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.noise import SymmetricDensity
from dpassay.accountant.core.pair import Pair, WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import (
    Integer,
    Maybe,
    OneOf,
    Positive,
    Rational,
    Rationals,
    Read,
)
from dpassay.accountant.density.radii import require_falling
from dpassay.accountant.density.radius import draw, is_integrable
from dpassay.accountant.density.text import formula, with_parameters
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, expected
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
from dpassay.accountant.numbers.exact import ExactReal, Number
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.pairs.falling_noise import (
    BallNoisePair,
    FallingNoisePair,
    LevelsPair,
    RadialNoisePair,
    RoundNoisePair,
    mean_power,
)
from dpassay.accountant.pairs.finite import LossTables
from dpassay.accountant.pairs.own_density import OwnDensityPair
from dpassay.accountant.release.lattice import LatticeSampler, independent

_SQUARE, _ROOT_HALF = 2, ExactReal.of_root(Fraction(1, 2))
"""The power of Gaussian noise, and its standard deviation at scale 1."""
_FARTHER = "Level sets are balls, which meet in less the farther apart they are."


@declared
class KNorm(SymmetricDensity):
    """Release a vector of d answers plus noise with a density in proportion to e^{−(‖x‖/b)^p}.

    Its integral is Γ(d/p + 1) b^d |K|, K the unit ball of the norm. For p = 1 it is exactly
    sensitivity/b-DP; in one dimension, and for any d where the norm is ℓ1, it is Laplace noise.
    ℓ2, or one dimension, and p = 2 are Gaussian noise of standard deviation b/√2.

    Parameters
    ----------
    scale
        b > 0.
    dimension
        d, the number of answers.
    norm
        "l1", "l2" or "linf".
    sensitivity
        The largest distance in that norm between the true answers on two neighbours.
    power
        p ≥ 1, rational.
    density
        Instead of a power, a formula in r = ‖x‖/b that never rises, not normalised, in the grammar
        of `AdditiveNoise`: "exp(-r - r**2)"; sensitivity/scale is then rational.
    parameters
        Numbers that the formula calls a, b, c, d in this order; they are written into it.

    Notes
    -----
    For a density, and for p > 1, see `dpassay.accountant.pairs.falling_noise`; that a density falls
    is proved. Now let p be 1. At distance t = sensitivity/b, in units of b,
    level sets are balls: for ε ≥ 0 and a shift v

    H_v(ε) = ∫ e^{−r} |(rK + v) ∖ (r + ε)K| dr / (d! |K|).

    For ‖v‖ ≤ t both balls contain a translate of sK, s = r − (t − ε)/2, so that H of no norm
    exceeds 1 − ∫ e^{−r} (s⁺)^d dr/d! = 1 − e^{(ε−t)/2}, that of Laplace noise. ℓ1 attains it by a
    shift of one coordinate, which the others do not see; ℓ∞ by one of all, as the cubes meet in a
    cube of side 2s. Of ℓ2 any direction is alike, and balls meet in less the farther apart they
    are (`dpassay.accountant.geometry.ball_loss`). For ε < 0 reflection gives the same.
    """

    example = "KNorm(scale=2, dimension=3)"
    noise_argument = "scale"

    scale: Positive = Positive()
    dimension: Integer = Integer(least=1)
    norm: OneOf = OneOf("l1", "l2", "linf", default="l2")
    sensitivity: Positive = Positive(1)
    power: Rational = Rational(1, least=1)
    density: Read[str, str] = Read(formula, "")
    parameters: Maybe[tuple[Fraction, ...], Sequence[Number]] = Maybe(Rationals())

    def __post_init__(self) -> None:
        """Require of a density that it falls, is integrable, and stands for the power."""
        if not self.density:
            if self.parameters is not None:
                raise InvalidInputError("Expected parameters of a density. Give density='…' too.")
            return
        if self.parameters is not None:
            object.__setattr__(self, "density", with_parameters(self.density, self.parameters))
            object.__setattr__(self, "parameters", None)
        if self.power != 1:
            raise InvalidInputError(
                f"Expected either power={self.power} or a density: write the power into the "
                "formula, as in density='exp(-r**3)'."
            )
        require_falling(self.density)
        if not is_integrable(self.density, self.dimension):
            raise InvalidInputError(
                f"density was not proved to be integrable in {self.dimension} dimensions: times "
                f"r**{self.dimension - 1} it must fall like a power below -1 of r, or faster. Cut "
                "it off, as in 'exp(-r) if r < 9 else 0'."
            )
        if (self.sensitivity / self.scale).rational is None:
            raise expected(
                "sensitivity", self.sensitivity, f"to be rational in units of scale={self.scale}"
            )

    @property
    def _is_power(self) -> bool:
        """Whether the density is that of `power`, and not a formula."""
        return not self.density

    @property
    def _is_gaussian(self) -> bool:
        return (
            self._is_power and self.power == _SQUARE and (self.norm == "l2" or self.dimension == 1)
        )

    @property
    def _gaussian(self) -> Gaussian:
        return Gaussian(self.scale * _ROOT_HALF, self.sensitivity)

    @property
    def only_alone(self) -> str:
        """Of integrals that take long at every loss."""
        if self.dominated_by is None:
            return ""
        return (
            "The law of its loss is an integral at every point: a composition is only enclosed, "
            "and a sample not known. Ask about power=1, or l2 and power=2."
        )

    @property
    def dominated_by(self) -> LossTables | None:
        """A table of losses, of such integrals."""
        (pair,) = self.worst_case(None).remove
        return LossTables(pair, pair.table_points) if isinstance(pair, LevelsPair) else None

    def attained(self) -> tuple[Pair, ...]:
        """Return the pair of which the cell of the loss is told."""
        return () if (table := self.dominated_by) is None else table.below

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return two laws at the full distance."""
        t = self.sensitivity / self.scale
        if self.density:
            assert t.rational is not None
            own: Pair = OwnDensityPair(self.density, t.rational, False)
            if self.dimension > 1:
                own = FallingNoisePair(self.density, t, self.dimension, self.norm)
            return WorstCase.symmetric(own, _FARTHER)
        if self._is_gaussian:
            return self._gaussian.worst_case(adjacency)
        if self.power != 1:
            if self.norm == "l2" and self.dimension > 1:
                return WorstCase.symmetric(RoundNoisePair(t, self.dimension, self.power), _FARTHER)
            radial = RadialNoisePair(t, self.dimension, self.power)
            return WorstCase.symmetric(
                radial, "Balls hold the same smaller ball whatever the shift, and one attains it."
            )
        if self.norm != "l2" or self.dimension == 1:
            pair: Pair = LaplacePair(t)
            reason = "No norm exceeds the profile of Laplace noise, and a shift attains it."
        else:
            pair = BallNoisePair(t, self.dimension)
            reason = _FARTHER
        return WorstCase.symmetric(pair, reason)

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return √2·sensitivity/b of Gaussian noise."""
        return self._gaussian.exact_gaussian_mu(adjacency) if self._is_gaussian else None

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases in floats, one row each.

        A point of K, uniform, times a radius whose power p is Gamma(d/p + 1): level sets are balls.
        In the direction of a normal or Laplace vector, on the surface of K, it is Gamma(d/p).
        """
        if self.density:
            return self._drawn(size, rng)
        shape, b, p = (size, self.dimension), float(self.scale), float(self.power)
        if self.norm == "linf":
            inside = rng.uniform(-b, b, shape)
            return inside * rng.gamma(self.dimension / p + 1, size=(size, 1)) ** (1 / p)
        at = rng.laplace(size=shape) if self.norm == "l1" else rng.normal(size=shape)
        order = 1 if self.norm == "l1" else 2
        radius = b * rng.gamma(self.dimension / p, size=(size, 1)) ** (1 / p)
        drawn: Array = at * (radius / np.linalg.norm(at, ord=order, axis=1, keepdims=True))
        return drawn

    def _drawn(self, size: int, rng: np.random.Generator) -> Array:
        """Draw a radius, and the direction of a point that is uniform in the ball."""
        shape = (size, self.dimension)
        at = rng.uniform(-1, 1, shape)
        if self.norm != "linf":
            at = rng.laplace(size=shape) if self.norm == "l1" else rng.normal(size=shape)
        order = {"l1": 1, "l2": 2, "linf": np.inf}[self.norm]
        radius = float(self.scale) * draw(self.density, self.dimension, size, rng)[:, None]
        drawn: Array = at * (radius / np.linalg.norm(at, ord=order, axis=1, keepdims=True))
        return drawn

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Release a true answer on a lattice where the coordinates of the noise are independent.

        Raises NotApplicableError elsewhere.
        """
        if self._is_gaussian:
            law, deviation = "normal", self._gaussian.standard_deviation.ball()
        elif self._is_power and self.power == 1 and (self.norm == "l1" or self.dimension == 1):
            law, deviation = "laplace", self.scale.ball()
        else:
            raise NotApplicableError(
                f"The coordinates of {self!r} depend on each other: no lattice sampler is known. "
                "Release noise with norm='l1', or norm='l2' and power=2; `sample` simulates."
            )
        noise = independent(lambda: [deviation] * self.dimension, law)
        return LatticeSampler(noise).release(value, times, rng=rng)

    def worst_shift(self) -> Any:
        """Return the shift of one coordinate, of all for ℓ∞."""
        shift = np.zeros(self.dimension)
        shift[slice(None) if self.norm == "linf" else slice(1)] = float(self.sensitivity)
        return shift

    def _moment(self, order: int) -> arb:
        """Return b^n Γ(d/p + 1 + n/p)/Γ(d/p + 1): of the radius by which a point of K is scaled.

        Of a density E r^n (d + n)/d: a uniform point of K has E ‖x‖^n = d/(d + n).
        """
        if self.density:
            found = mean_power(self.density, self.dimension, order)
            return self.scale.ball() ** order * found * (self.dimension + order) / self.dimension
        shape = ball(self.dimension / self.power) + 1
        grown = (shape + ball(order / self.power)).lgamma() - shape.lgamma()
        return self.scale.ball() ** order * grown.exp()

    def variances(self) -> list[arb]:
        """Return E R² times the variance of a coordinate of a uniform point of K."""
        d = self.dimension
        inside = {
            "l1": arb(2) / ((d + 1) * (d + 2)), "l2": arb(1) / (d + 2), "linf": arb(1) / 3
        }[self.norm]  # fmt: skip
        return [self._moment(2) * inside]

    def mean_absolute_error(self) -> arb:
        """Return E R/(d + 1), E R Γ(d/2 + 1)/(√π Γ((d + 3)/2)) or E R/2."""
        half = arb(self.dimension) / 2
        inside = {
            "l1": arb(1) / (self.dimension + 1),
            "l2": ((half + 1).lgamma() - (half + 1.5).lgamma()).exp() / arb.pi().sqrt(),
            "linf": arb("0.5"),
        }[self.norm]
        return self._moment(1) * inside
