"""Additive noise whose density is given as a formula."""

from __future__ import annotations

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.randomness import Randomness, SecureIntegers
from dpassay.accountant.core.validate import Positive, Read, declared
from dpassay.accountant.density import accuracy
from dpassay.accountant.density.law import Law, law
from dpassay.accountant.density.pieces import second_rise
from dpassay.accountant.density.text import formula
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, expected
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import cached_property
from dpassay.accountant.pairs.own_density import OwnDensityPair


@declared
class AdditiveNoise(Mechanism):
    """Release the true scalar answer plus scale·X, where X has a given unimodal density.

    Parameters
    ----------
    density
        A formula in x for the density f, up to a constant factor. It can contain numbers, pi,
        + − * / **, abs, exp, log, sqrt, cosh, sinh, tanh, min, max, and cases such as
        `a if x < 1 else b`. It is parsed by a grammar of its own, never evaluated as Python.
    scale
        s > 0, the factor of the noise.
    sensitivity
        The largest distance between the true answers on two neighbours; sensitivity/scale must be
        rational.

    Notes
    -----
    δ(ε) is the supremum over all shifts up to the sensitivity. A density is accepted only if it is
    proved to be unimodal, from enclosures of the derivative of ln f on the whole line
    (`dpassay.accountant.density.pieces`). Then the full shift is worst. *Proof.* The level sets
    I_y = {f ≥ y} are intervals that shrink as y increases. Let c = e^ε ≥ 1. For a, b ≥ 0, (a − cb)⁺
    is the length of {y : cb < y ≤ a}, so that for a shift t

        H_t(ε) = ∫ |(I_y + t) ∖ I_{y/c}| dy over y > 0.

    Since I_y is contained in the interval I_{y/c}, the integrand increases with |t|. For ε < 0,
    H_c(P‖Q) = 1 − c + c H_{1/c}(Q‖P) reduces the claim to the reversed pair.
    """

    example = "AdditiveNoise(density='exp(-abs(x)**3)', scale=2)"
    noise_argument = "scale"

    density: Read[str, str] = Read(formula)
    scale: Positive = Positive(1)
    sensitivity: Positive = Positive(1)

    def __post_init__(self) -> None:
        """Raise InvalidInputError unless f is proved unimodal and sensitivity/scale is rational."""
        rise = second_rise(law(self.density, "density").pieces)
        if rise is not None:
            raise InvalidInputError(
                f"density={self.density!r} was not proved to have one mode: it may rise again "
                f"next to x = {rise:.6g} after it fell, and then the worst shift depends on "
                "epsilon. Expected a density that rises and then falls."
            )
        if (self.sensitivity / self.scale).rational is None:
            raise expected(
                "sensitivity", self.sensitivity, f"to be rational in units of scale={self.scale}"
            )

    @cached_property
    def _law(self) -> Law:
        return law(self.density, "density")

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return f shifted by the sensitivity and f; for both signs unless f has an axis."""
        distance = (self.sensitivity / self.scale).rational
        assert distance is not None  # as required above
        sides = (False, True) if self._law.axis is None else (False,)
        pairs = tuple(OwnDensityPair(self.density, distance, side) for side in sides)
        reason = (
            "The density is proved to have one mode: its level sets are intervals, of which a "
            "larger shift moves out more, so the worst pair is at distance sensitivity."
        )
        return WorstCase(pairs, pairs, reason)

    @property
    def is_symmetric(self) -> bool:
        """Whether f(−x) = f(x), proved by comparing terms."""
        return self._law.is_symmetric

    def probability_exact(self) -> arb:
        """Return 0, because a law with a density has no atoms."""
        return arb(0)

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw the noise of `size` releases, by rejection in floats."""
        from dpassay.accountant.density.draw import draw

        if isinstance(rng, SecureIntegers):
            raise NotApplicableError("A density that is a formula is drawn by a NumPy generator.")
        drawn: Array = draw(self._law, size, rng) * float(self.scale)
        return drawn

    def worst_shift(self) -> float:
        """Return the sensitivity."""
        return float(self.sensitivity)

    def variances(self) -> list[arb]:
        """Return [s² (E X² − (E X)²)], which is infinite if a tail is too heavy."""
        second = self.mean_squared_error()
        if not second.is_finite():
            return [second]
        mean = self.scale.ball() * accuracy.mean(self._law)
        return [second - mean * mean]

    def mean_squared_error(self) -> arb:
        """Return s² E X²."""
        return self.scale.ball() ** 2 * accuracy.absolute_moment(self._law, 2)

    def mean_absolute_error(self) -> arb:
        """Return s E|X|."""
        return self.scale.ball() * accuracy.absolute_moment(self._law, 1)

    def quantile(self, probability: ExactReal) -> arb:
        """Return s·F⁻¹(p), where F is the distribution function of X."""
        p = probability.ball() if probability.rational is None else ball(probability.rational)
        return self.scale.ball() * accuracy.quantile(self._law, probability, p)
