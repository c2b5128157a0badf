"""The discrete Gaussian mechanism."""

from __future__ import annotations

from fractions import Fraction
from itertools import count

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integer, Positive
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms.additive.added_integers import LogConcaveIntegers
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.theta import upper_tail, variance
from dpassay.accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from dpassay.accountant.release import sampling

_MOST_TERMS = 100_000
"""Terms up to which a mean absolute error is summed: about a second."""


@declared
class DiscreteGaussian(LogConcaveIntegers):
    """Release a true integer plus Z, P(Z = z) ∝ e^{−z²/2σ²}, z an integer.

    Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020),
    Definition 1.

    Parameters
    ----------
    parameter
        σ² > 0 of the formula. It is *not* the variance, which is smaller (`variances`): by less
        than 10⁻⁶ of σ² where σ² ≥ 1, but without bound where σ² is small.
    sensitivity
        The largest distance, an integer ≥ 1, between the true answers on two neighbours (for
        whichever relation it was computed).

    Notes
    -----
    The full shift is worst. The law is log-concave: p(z)² ≥ p(z − 1) p(z + 1). So p(z − d)/p(z)
    is non-decreasing in z for every d ≥ 0, and the best event against the shift d is a half-line:
    H_d(ε) = max over m of P(Z ≥ m − d) − e^ε P(Z ≥ m), where each term is non-decreasing in d.
    A shift by −d is the mirror image of a shift by d.

    The tight zCDP parameter is sensitivity²/2σ², as for the continuous Gaussian: it bounds
    D_a/a at every order a and is attained at every a for which a·sensitivity is an integer.
    """

    example = "DiscreteGaussian(parameter=9)"

    noise_argument = "parameter"

    parameter: Positive = Positive()
    sensitivity: Integer = Integer(1, least=1)

    def pair(self) -> DiscreteGaussianPair:
        """Return the laws of Z + sensitivity and Z."""
        return DiscreteGaussianPair(self.parameter, self.sensitivity)

    def exact_rho(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return sensitivity²/2σ²."""
        return ExactReal.of_rational(Fraction(self.sensitivity**2, 2)) / self.parameter

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw the integer noise of `size` releases, exactly."""
        if self.parameter.rational is not None:
            return sampling.discrete_gaussian(self.parameter.rational, size, rng=rng)
        return super().sample(size, rng=rng)

    def mean_absolute_error(self) -> arb:
        """Return E|Z|, a sum with a bound of its rest."""
        return self._first_moments()[1]

    def probability_exact(self) -> arb:
        """Return P(Z = 0)."""
        return self._first_moments()[0]

    def _first_moments(self) -> tuple[arb, arb]:
        """Return P(Z = 0) and E|Z|.

        Sums Σ z^j e^{−z²/2s}, z ≥ 1, are cut at N ≥ 2√s + 2: then each further term of either is at
        most r = (1 + 1/N) e^{−N/s} times the one before it. (z + 1)/z and e^{−(2z+1)/2s} both fall.
        """
        s = self.parameter.ball()
        rate = 1 / (2 * s)
        start = int((2 * s.sqrt() + 2).upper().ceil().fmpz())
        if start > _MOST_TERMS:
            raise NotApplicableError(
                f"Expected a parameter of DiscreteGaussian below {_MOST_TERMS**2 // 4}, not "
                f"{self.parameter}: its mean absolute error is summed term by term. Ask for its "
                "variance."
            )
        mass, first = arb(0), arb(0)
        tiny = arb(2) ** (-ctx.prec)
        for z in count(1):
            term = (-rate * z * z).exp()
            if z >= start:
                ratio = (1 + arb(1) / z) * (-z / s).exp()
                if ratio < 1 and z * term / (1 - ratio) < tiny * (1 + first):
                    rest = (z * term / (1 - ratio)).upper()
                    mass += arb(0, rest)
                    first += arb(0, rest)
                    break
            mass += term
            first += z * term
        normaliser = 1 + 2 * mass
        return 1 / normaliser, 2 * first / normaliser

    def variances(self) -> list[arb]:
        """Return [Σ z² e^{−z²/2σ²}/Σ e^{−z²/2σ²}], below σ²."""
        return [variance(self.parameter)]

    def at_most(self, x: int) -> arb:
        """Return P(Z ≤ x) = P(Z ≥ −x)."""
        return upper_tail(self.parameter, -x)
