"""What the mechanisms for continual counting share: A = L R, and noise between the two."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from flint import arb, fmpq, fmpq_mat

from dpassay.accountant.composition.exact.laplace_product import of_distances
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.noise import SymmetricDensity
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integer, OptionalPositive
from dpassay.accountant.counting.tree_walk import Rows
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, expected
from dpassay.accountant.mechanisms.wrappers.guaranteed import Guaranteed
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.between import Between
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.release.lattice import LatticeSampler, release_stream
from dpassay.accountant.release.lattice_noise import combined

MOST_LISTED = 100_000
"""Most outputs whose variances are listed one by one."""
_MOST_ENTRIES = 4_000_000
"""Entries of L: 32 MB as floats, and more as exact numbers."""


class StreamNoise(SymmetricDensity, ABC):
    """Noise on the n prefix sums of a stream."""

    steps: Integer

    @property
    def dimension(self) -> int:
        """The number of steps n."""
        return self.steps

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Release all n estimates for a stream of n inputs in [0, 1], on one lattice."""
        return release_stream(self.lattice_sampler(), value, times, rng=rng)


class LinearCounter(StreamNoise, ABC):
    """Release A x + L z: the n prefix sums of a stream x in [0, 1]ⁿ, with independent noise z.

    A x are the prefix sums (A is the lower triangle of ones) and L R = A. The outputs are the
    function L of the measured sums R x + z, and tell as much, or less (`PartlyShown`). Neighbouring
    streams differ in one input, which moves R x by a column of R, of ℓ1 norm at most Δ₁ and ℓ2 norm
    at most Δ₂. With `contributions` = c a person is in at most c positions, and both are c times as
    large (an upper bound for Δ₂ where columns have disjoint supports). Where `worst_positions` are
    known, μ is exact, and so is the largest loss of Laplace noise, of which δ(ε) has two ends. Else
    there is no exact profile, and the refusal names what bounds it.

    * `epsilon`: z is Laplace noise of scale cΔ₁/ε, and the release is ε-DP.
    * `mu`: z is Gaussian noise of standard deviation cΔ₂/μ, and the release is μ-GDP.

    For ε-DP the inputs may be chosen after seeing earlier outputs, although L need not be lower
    triangular: when the position i of the difference is fixed, the outputs before i are those of
    z + R e_i on the other stream as well, since rows of L R = A before i are zero at i. So
    z ↦ z + R e_i maps the noise of one to that of the other with the same outputs, and the density
    changes by a factor of at most e^{Δ₁/b}.

    Numbers of units are exact: the variance of an output is that of one noise variable times the
    sum of the squares of its row of L.
    """

    noise_argument = "epsilon"
    noise_grows = False
    gaussian_noise_argument: ClassVar[str | None] = "mu"

    steps: Integer
    epsilon: OptionalPositive
    mu: OptionalPositive
    contributions: Integer

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.mu is None):
            raise InvalidInputError(
                f"Expected {type(self).__name__} to have epsilon (Laplace noise) or mu (Gaussian "
                "noise), and not both. Give one; calibrate finds the mu of an (epsilon, delta)."
            )

    @property
    @abstractmethod
    def distances(self) -> tuple[ExactReal, ...]:
        """The absolute values of the column of R that is worst, without zeros."""

    @abstractmethod
    def units(self) -> Fraction:
        """Return the squared Frobenius norm of L, the units of all outputs together."""

    @abstractmethod
    def output_units(self) -> Sequence[Fraction]:
        """Return the units of every output, for moderate n."""

    @abstractmethod
    def factorisation(self) -> tuple[Rows, Rows]:
        """Return (L, R) with L R = A exactly, for small n."""

    @property
    def l1_sensitivity(self) -> ExactReal:
        """Δ₁ of one position: the largest ℓ1 norm of a column of R."""
        total = Fraction(0)
        for distance in self.distances:
            assert distance.rational is not None  # every factorisation here is rational
            total += distance.rational
        return ExactReal.of_rational(total)

    @property
    def l2_sensitivity(self) -> ExactReal:
        """Δ₂ of one position: the largest ℓ2 norm of a column of R."""
        return ExactReal.of_root(sum((d.square for d in self.distances), start=Fraction(0)))

    @property
    def scale(self) -> ExactReal:
        """The scale cΔ₁/ε of Laplace, or the standard deviation cΔ₂/μ of Gaussian noise."""
        times = ExactReal.of_rational(self.contributions)
        if self.epsilon is not None:
            return times * self.l1_sensitivity / self.epsilon
        assert self.mu is not None
        return times * self.l2_sensitivity / self.mu

    @property
    def unit_variance(self) -> ExactReal:
        """The variance of one noise variable: exact, rational for every rational ε² or μ²."""
        return self.scale.squared.times(2 if self.epsilon is not None else 1)

    @property
    def spread(self) -> float:
        """The scale as a float, for samplers."""
        return float(self.scale)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair of the measured sums; no matter which relation.

        Raises NotApplicableError for several contributions, where it is not known which positions
        are worst.
        """
        if self.contributions > 1 and self.mu is None:
            distances = [ExactReal.of_rational(d) / self.scale for d in self._worst_positions()]
            attaining = of_distances(distances)
            largest = attaining.exact_max_loss()
            assert largest is not None  # distances have rational ratios
            (most,) = Guaranteed(largest).worst_case(adjacency).remove
            return WorstCase.symmetric(
                Between((attaining,), most, "which positions of a person are worst"),
                "R has no negative entry: the ℓ1 norms of the columns of a person's positions add "
                "up, and no others have a larger sum. Below: those positions. Above: that loss.",
            )
        if self.mu is not None:
            return WorstCase.symmetric(
                GaussianPair(self, None),
                "A person moves the measured sums by at most the largest norm of a sum of columns "
                "of R.",
            )
        return WorstCase.symmetric(
            of_distances([d / self.scale for d in self.distances]),
            "One position moves the measured sums by a column of R, each entry in units of the "
            "noise scale; no column exceeds this one, and smaller differences are a "
            "post-processing of larger ones.",
        )

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return μ for Gaussian noise, and less where c columns are not parallel.

        Raises NotApplicableError where the worst of several positions are not known.
        """
        if self.mu is None or self.contributions == 1:
            return self.mu
        square = sum((d * d for d in self._worst_positions()), start=Fraction(0))
        return ExactReal.of_root(square) / self.scale

    def worst_positions(self) -> tuple[Fraction, ...] | None:
        """Return by how much a person in the worst positions moves the measured sums at most.

        No other set of as many positions has a larger ℓ1 or ℓ2 norm. None where that is not known.
        """
        return None

    @property
    def only_alone(self) -> str:
        """Say what to compose where several positions have two ends."""
        if self.contributions == 1 or self.mu is not None or self.worst_positions() is None:
            return ""
        return (
            f"{self!r} is known between two ends only. Ask about "
            f"Guaranteed(epsilon={self.epsilon}), which is no more private."
        )

    def _worst_positions(self) -> tuple[Fraction, ...]:
        found = self.worst_positions()
        if found is None:
            bound = f"Guaranteed(epsilon={self.epsilon})"
            if self.mu is not None:
                bound = f"Gaussian(standard_deviation=1, l2_sensitivity={self.mu})"
            raise unknown_positions(self, self.contributions, bound)
        return found

    def variances(self) -> list[arb]:
        """Return the variance of every output."""
        self.require(MOST_LISTED, "to list every variance")
        unit = self.unit_variance.ball()
        return [unit * _ball(count) for count in self.output_units()]

    def exact_mean_squared_error(self) -> ExactReal:
        """Return the average variance of the n outputs, as an exact number."""
        return self.unit_variance * ExactReal.of_rational(self.units() / self.steps)

    def mean_squared_error(self) -> arb:
        """Return the same as a ball."""
        return self.exact_mean_squared_error().ball()

    def covariance_matrix(self) -> list[list[arb]]:
        """Return L Lᵀ times the variance of one noise variable."""
        left = fmpq_mat(
            [[fmpq(c.numerator, c.denominator) for c in row] for row in self.factorisation()[0]]
        )
        unit = self.unit_variance.ball()
        return [[unit * entry for entry in row] for row in (left * left.transpose()).tolist()]

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise L z of `size` whole streams, one row each (all at once: for small n)."""
        left = np.array(self.factorisation()[0], dtype=np.float64)
        shape, spread = (size, left.shape[1]), self.spread
        draw = rng.normal if self.epsilon is None else rng.laplace
        return np.asarray(draw(0.0, spread, shape) @ left.T)

    def lattice_sampler(self) -> LatticeSampler:
        """Return the noise L z of a whole stream, on one lattice that holds the integers."""
        law = "normal" if self.epsilon is None else "laplace"
        noise = combined(self.factorisation()[0], self.scale.ball, law)
        return LatticeSampler(noise, common=True)

    def require(self, most: int, purpose: str) -> None:
        """Raise InvalidInputError where there are too many steps for a purpose."""
        if self.steps > most:
            raise expected(
                "steps",
                self.steps,
                f"at most {most} {purpose}",
                "The mean squared error has a formula, for any number of steps.",
            )

    def require_entries(self, columns: int) -> None:
        """Raise InvalidInputError where the factorisation is too large to write out."""
        if self.steps * columns > _MOST_ENTRIES:
            raise expected(
                "steps", self.steps, f"to need at most {_MOST_ENTRIES} matrix entries in L"
            )


def unknown_positions(
    counter: SymmetricDensity, contributions: int, bound: str
) -> NotApplicableError:
    """Build the error for a person in several positions, with what bounds that."""
    return NotApplicableError(
        f"The exact profile of {counter!r} is not known: it depends on the {contributions} "
        "positions of a person, and which are worst is not pursued. It is at most that of "
        f"{bound}: ask about that."
    )


def _ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))
