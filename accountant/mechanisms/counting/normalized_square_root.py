"""Continual counting with the square root of prefix sums, its columns of one length."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from dpassay.accountant.composition.exact.laplace_product import of_distances
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Integer, OptionalPositive
from dpassay.accountant.counting import normalized
from dpassay.accountant.counting.tree_walk import Rows
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms.counting.linear_counter import LinearCounter
from dpassay.accountant.mechanisms.counting.square_root_factorization import SquareRootFactorization
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.landau import coefficients

_MOST_RATIONAL = 256
"""Steps of exact numbers: L has n² entries of 2n digits."""
_MOST_COLUMNS = 24
"""Steps up to which all columns are compared, with Laplace noise: some seconds for the most."""
MOST_STEPS = 1 << 17
"""Steps of the error: some seconds for the variances of all."""


@declared
class NormalizedSquareRoot(LinearCounter):
    """Count with the square root of A, its columns stretched to the length of the first one.

    R = M W⁻¹ and L = A W M⁻¹ with M² = A: `dpassay.accountant.counting.normalized` has the
    definition of the weights W, which are whole numbers over 256, and the proofs. The first column
    of R is that of M, and the longest in ℓ1 and ℓ2. With Gaussian noise the error is 7 % below that
    of `SquareRootFactorization` at 10³ steps and 5 % at 10⁵, and within 3 % of what no
    factorisation can be below (`dpassay.accountant.counting.least_error`). A stream stores n
    numbers.

    Parameters
    ----------
    steps
        n from 1 to 2¹⁷, the number of inputs and outputs.
    epsilon, mu, contributions
        As in `LinearCounter`: exactly one of the first two. Meant for Gaussian noise.
    """

    example = "NormalizedSquareRoot(steps=16, mu=1)"

    steps: Integer = Integer(least=1)
    epsilon: OptionalPositive = OptionalPositive()
    mu: OptionalPositive = OptionalPositive()
    contributions: Integer = Integer(1, least=1)

    def __post_init__(self) -> None:
        LinearCounter.__post_init__(self)
        self.require(MOST_STEPS, "for the normalized square root; SquareRootFactorization has more")

    @property
    def _plain(self) -> SquareRootFactorization:
        return SquareRootFactorization(self.steps, self.epsilon, self.mu, self.contributions)

    @property
    def distances(self) -> tuple[ExactReal, ...]:
        """Return the first column of R, that of M."""
        return self._plain.distances

    def weights(self) -> tuple[int, ...]:
        """Return 256 times the diagonal of W."""
        return normalized.weights(self.steps)

    def units(self) -> Fraction:
        """Return the squared Frobenius norm of L, exactly."""
        return sum(self.output_units(), Fraction(0))

    def output_units(self) -> list[Fraction]:
        """Return the squared norms of the rows of L, exactly."""
        return [sum((c * c for c in row), Fraction(0)) for row in self._left()]

    def factorisation(self) -> tuple[Rows, Rows]:
        """Return L and R."""
        f, w, zero = coefficients(self.steps), self.weights(), Fraction(0)
        times = [Fraction(normalized.LEVELS, entry) for entry in w]
        right = [
            [times[j] * f[i - j] if j <= i else zero for j in range(self.steps)]
            for i in range(self.steps)
        ]
        return self._left(), right

    def _left(self) -> Rows:
        self.require(_MOST_RATIONAL, "for exact numbers")
        return normalized.rows(self.steps)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair of the first column, with Laplace noise of all; no matter which relation.

        A later column is shorter in ℓ1, but has fewer and larger entries, which Laplace noise may
        hide less well at small ε. Of equal weights the first column is the whole of the others.
        Raises NotApplicableError for several contributions, and for Laplace noise and many steps.
        """
        if self.contributions > 1:
            return super().worst_case(adjacency)
        if self.mu is not None:
            return self._plain.worst_case(adjacency)
        if self.steps > _MOST_COLUMNS:
            raise NotApplicableError(
                f"The exact profile of {self!r} takes too long: any of its columns may be the "
                f"worst, and all are compared up to {_MOST_COLUMNS} steps. It is at most that of "
                f"Guaranteed(epsilon={self.epsilon}): ask about that."
            )
        entries, weights = coefficients(self.steps), self.weights()
        kept = [t for t in range(self.steps) if not t or weights[t] < weights[t - 1]]
        pairs = tuple(
            of_distances(
                [
                    ExactReal.of_rational(Fraction(normalized.LEVELS, weights[t]) * f) / self.scale
                    for f in entries[: self.steps - t]
                ]
            )
            for t in kept
        )
        return WorstCase(
            pairs,
            pairs,
            "One position moves the measured sums by a column of R, and which one is worst depends "
            "on epsilon: later columns have fewer and larger entries.",
        )

    @property
    def spread(self) -> float:
        """The scale as a float, for any number of steps."""
        return self._plain.spread

    def variance_ball(self) -> arb:
        """Return the variance of one noise variable, for any number of steps."""
        return self._plain.variance_ball()

    def variances(self) -> list[arb]:
        """Return the variance of every output."""
        unit = self.variance_ball()
        return [unit * count for count in normalized.row_units(self.steps)]

    def mean_squared_error(self) -> arb:
        """Return the average variance of the outputs."""
        return sum(self.variances(), arb(0)) / self.steps

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` whole streams, one row each, by the fast Fourier transform."""
        from dpassay.accountant.counting.streams.square_root_noise import square_root_rows

        return square_root_rows(self, size, rng)
