"""Continual counting with the square root of the matrix of prefix sums."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Integer, OptionalPositive
from dpassay.accountant.counting.tree_walk import Rows
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms.counting.linear_counter import MOST_LISTED, LinearCounter
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.landau import central, coefficients, landau

_MOST_RATIONAL = 4096
"""Steps of exact variances: beyond they have thousands of digits."""
_MOST_DISTANCES = 64
"""Steps up to which the product of Laplace laws is known in seconds: their distances share a unit
of two bits a step."""


@declared
class SquareRootFactorization(LinearCounter):
    """Count with A = M², M lower triangular and Toeplitz with the entries f_j = C(2j, j)/4ʲ.

    Henzinger, Upadhyay and Upadhyay, "Almost Tight Error Bounds on Differentially Private
    Continual Counting" (2023). L = R = M. With S_n = Σ_{j<n} f_j² the first column has the squared
    ℓ2 norm S_n, and the squared Frobenius norm is n S_n − Σ j f_j², where
    Σ_{j<n} (j + 1/4) f_j² = n² f_n² telescopes. So with Gaussian noise the mean squared error is
    S_n (S_n (1 + 1/(4n)) − n f_n²)/μ², exactly. Output t has the variance S_t S_n/μ².

    All numbers are rational; beyond 4096 steps, where they would have thousands of digits, they
    are enclosed. The noise of a stream needs n stored numbers.

    Parameters
    ----------
    steps
        n ≥ 1, the number of inputs and outputs.
    epsilon, mu, contributions
        As in `LinearCounter`: exactly one of the first two. With `epsilon` the ℓ1 norm, 2n f_n,
        counts, and the error is of order n ln n: the factorization is for Gaussian noise.
    """

    example = "SquareRootFactorization(steps=16, mu=1)"

    steps: Integer = Integer(least=1)
    epsilon: OptionalPositive = OptionalPositive()
    mu: OptionalPositive = OptionalPositive()
    contributions: Integer = Integer(1, least=1)

    @property
    def distances(self) -> tuple[ExactReal, ...]:
        """Return the first column of M, the worst: the others are shorter."""
        self._require_rational()
        return tuple(map(ExactReal.of_rational, coefficients(self.steps)))

    def weights(self) -> None:
        """Return None: the columns are those of M."""

    def worst_positions(self) -> tuple[Fraction, ...] | None:
        """Return the sum of the first c columns of M, up to 4096 steps.

        With f_j > 0 falling, the product Σ f_i f_{i+d} of the columns s and s + d, over i + d + s <
        n, grows as s and d become smaller, and so do the sums of columns: of sorted positions the
        first ones have the smallest of all these.
        """
        if self.steps > _MOST_RATIONAL:
            return None
        sums = [Fraction(0), *accumulate(coefficients(self.steps))]
        c = min(self.contributions, self.steps)
        return tuple(sums[t] - sums[max(0, t - c)] for t in range(1, self.steps + 1))

    def units(self) -> Fraction:
        """Return n S_n − Σ j f_j², exactly."""
        self._require_rational()
        squares = [entry**2 for entry in coefficients(self.steps)]
        total = sum(squares, Fraction(0))
        last = Fraction(central(self.steps)) ** 2
        return total * (self.steps + Fraction(1, 4)) - self.steps**2 * last

    def output_units(self) -> list[Fraction]:
        """Return S_t for every step."""
        self._require_rational()
        found, total = [], Fraction(0)
        for entry in coefficients(self.steps):
            total += entry**2
            found.append(total)
        return found

    def factorisation(self) -> tuple[Rows, Rows]:
        """Return M twice."""
        self.require_entries(self.steps)
        entries, zero = coefficients(self.steps), Fraction(0)
        rows = [
            [entries[i - j] if j <= i else zero for j in range(self.steps)]
            for i in range(self.steps)
        ]
        return rows, rows

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair of the first column; no matter which relation.

        Raises NotApplicableError for several contributions, and for Laplace noise and many steps.
        """
        if self.epsilon is not None and self.steps > _MOST_DISTANCES:
            raise NotApplicableError(
                f"The exact profile of {self!r} takes too long: it has {self.steps} different "
                f"distances, and is known up to {_MOST_DISTANCES} steps. It is at most that of "
                f"Guaranteed(epsilon={self.epsilon}): ask about that."
            )
        return super().worst_case(adjacency)

    @property
    def spread(self) -> float:
        """The scale as a float, for any number of steps."""
        return math.sqrt(float(self.variance_ball() / (1 if self.epsilon is None else 2)))

    def variance_ball(self) -> arb:
        """Return the variance of one noise variable, for any number of steps."""
        times = arb(self.contributions) ** 2
        if self.mu is not None:
            return times * landau(self.steps) / self.mu.ball() ** 2
        assert self.epsilon is not None
        norm = 2 * self.steps * arb(central(self.steps, exact=False))
        return 2 * times * norm**2 / self.epsilon.ball() ** 2

    def variances(self) -> list[arb]:
        """Return S_t times the variance of one noise variable, for every step."""
        self.require(MOST_LISTED, "to list every variance")
        unit, entry, total, found = self.variance_ball(), arb(1), arb(0), []
        for step in range(1, self.steps + 1):
            total += entry**2
            found.append(unit * total)
            entry = entry * (2 * step - 1) / (2 * step)
        return found

    def mean_squared_error(self) -> arb:
        """Return the average variance of the outputs, for any number of steps."""
        n = self.steps
        last = central(n, exact=False) ** 2
        return self.variance_ball() * (landau(n) * (1 + 1 / arb(4 * n)) - n * last)

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` whole streams, one row each, by the fast Fourier transform."""
        from dpassay.accountant.counting.streams.square_root_noise import square_root_rows

        return square_root_rows(self, size, rng)

    def _require_rational(self) -> None:
        if self.steps > _MOST_RATIONAL:
            raise NotApplicableError(
                f"The rational numbers of {self.steps} steps are not written out beyond "
                f"{_MOST_RATIONAL}: they have thousands of digits. Ask for an enclosure "
                "(mean_squared_error, variances)."
            )
