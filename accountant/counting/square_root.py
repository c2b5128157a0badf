"""Counting with the square-root factorisation of prefix sums."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, final

from flint import arb, fmpq, fmpz, fmpz_poly

from dpassay.accountant.core.arrays import Array, NDArray, np
from dpassay.accountant.core.validate import Integer, Positive, declared
from dpassay.accountant.counting.counters import MOST_LISTED, LinearCounter
from dpassay.accountant.counting.grids import Rows
from dpassay.accountant.counting.noise import NoiseProcess, NoiseSource, finite
from dpassay.accountant.errors import NotApplicableError, expected
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.theta import central, coefficients, landau, squared
from dpassay.accountant.release.sampling import WORD, normal

if TYPE_CHECKING:
    from dpassay.accountant.core.randomness import Randomness


# --- Continual counting with the square root of the matrix of prefix sums -------------------------

_FACTORIZATION_MOST_RATIONAL = 4096
"""Most steps with exact variances; beyond, these have thousands of digits."""


@declared
class SquareRootFactorization(LinearCounter):
    """Count with A = M², M lower triangular and Toeplitz with the entries f_j = C(2j, j)/4ʲ.

    Henzinger, Upadhyay and Upadhyay, "Almost Tight Error Bounds on Differentially Private
    Continual Counting" (2023). L = R = M. With S_n = Σ_{j<n} f_j², the first column has squared
    ℓ2 norm S_n, and the squared Frobenius norm is n S_n − Σ j f_j², where
    Σ_{j<n} (j + 1/4) f_j² = n² f_n² telescopes. So with Gaussian noise the mean squared error is
    exactly S_n (S_n (1 + 1/(4n)) − n f_n²)/μ². Output t has variance S_t S_n/μ².

    All numbers are rational. Beyond 4096 steps, where they would have thousands of digits, they are
    enclosed. The noise of a stream requires n stored numbers.

    Parameters
    ----------
    steps
        n ≥ 1, the number of inputs and outputs.
    mu, contributions
        As in `LinearCounter`. Laplace noise is not offered: its scale would be proportional to the
        ℓ1 norm of the first column, 2n f_n, and its error of order n ln n.
    """

    example = "SquareRootFactorization(steps=16, mu=1)"

    noise_argument = "mu"
    gaussian_noise_argument = None
    epsilon = None  # the noise is always Gaussian

    steps: Integer = Integer(least=1)
    mu: Positive = Positive()
    contributions: Integer = Integer(1, least=1)

    @property
    def distances(self) -> tuple[ExactReal, ...]:
        """Return the first column of M, which is the worst because it is the longest."""
        self._require_rational()
        return tuple(map(ExactReal.of_rational, coefficients(self.steps)))

    def worst_positions(self) -> tuple[Fraction, ...] | None:
        """Return the sum of the first c columns of M, up to 4096 steps.

        The f_j > 0 decrease. The product of the columns s and s + d, Σ f_i f_{i+d} over
        i + d + s < n, therefore increases as s and d decrease, and so do the sums of columns. Among
        sorted positions, the first c have the smallest s and d.
        """
        if self.steps > _FACTORIZATION_MOST_RATIONAL:
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
        """Return S_t for every step t."""
        self._require_rational()
        found, total = [], Fraction(0)
        for entry in coefficients(self.steps):
            total += entry**2
            found.append(total)
        return found

    def factorisation(self) -> tuple[Rows, Rows]:
        """Return (M, M)."""
        self.require_entries(self.steps)
        entries, zero = coefficients(self.steps), Fraction(0)
        rows = [
            [entries[i - j] if j <= i else zero for j in range(self.steps)]
            for i in range(self.steps)
        ]
        return rows, rows

    @property
    def spread(self) -> float:
        """The standard deviation of one noise variable in floats, for any number of steps."""
        return math.sqrt(float(self.variance_ball()))

    def variance_ball(self) -> arb:
        """Return the variance of one noise variable, for any number of steps."""
        return arb(self.contributions) ** 2 * landau(self.steps) / self.mu.ball() ** 2

    def variances(self) -> list[arb]:
        """Return S_t times the variance of one noise variable, for every step t."""
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
        last = squared(arb(n))
        return self.variance_ball() * (landau(n) * (1 + 1 / arb(4 * n)) - n * last)

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` whole streams, one per row, by the fast Fourier transform."""
        return _convolved(self.spread * rng.standard_normal((size, self.steps)))

    def _require_rational(self) -> None:
        if self.steps > _FACTORIZATION_MOST_RATIONAL:
            raise NotApplicableError(
                f"The rational numbers of {self.steps} steps are not written out beyond "
                f"{_FACTORIZATION_MOST_RATIONAL}: they have thousands of digits. Ask for an "
                "enclosure (mean_squared_error, variances)."
            )


# --- The noise of `SquareRootFactorization`: a convolution, computed for the whole stream at once -
# In steps of a lattice g·ℤ, an entry of M z is ⌊y + 1/2⌋ for y = Σ_j c_j z_{t−j} with c_j = b
# f_j/g, where b is the scale of z. In units of 2^−p, each |z| is a known integer plus an unknown
# part of at most 1, and each c_j is an integer to within 2. The product of two integer polynomials
# therefore gives y to within n·(max|c| + 2 + 2 max|z|) units of 4^−p, with maxima in units of 2^−p.
# If a rounding boundary lies within that distance, further digits of all z are drawn.


_GUARD: Final = 128
MOST_STREAMED: Final = 1 << 20
"""Most steps of a stream, whose noise is stored in full."""


@final
class SquareRootNoise(NoiseProcess):
    """The noise M z of a stream, computed in full when the first output is requested.

    Every output depends on all noise before it, so no variable can be discarded.
    """

    def __init__(self, mechanism: SquareRootFactorization, source: NoiseSource) -> None:
        self._steps = mechanism.steps
        if self._steps > MOST_STREAMED:
            raise expected(
                "steps",
                self._steps,
                f"at most {MOST_STREAMED} to stream the square root",
                "It stores all its noise; BridgedTree stores little.",
            )
        self._mechanism, self._source = mechanism, source
        self._noise: list[fmpq] | None = None
        self._at = 0

    def one(self) -> fmpq:
        """Return the next entry."""
        self._at += 1
        return self._whole()[self._at - 1]

    def _whole(self) -> list[fmpq]:
        if self._noise is None:
            source = self._source
            self._noise = rounded_product(self._mechanism, source.exponent, rng=source.rng)
        return self._noise

    @property
    def stored(self) -> int:
        """The number of entries not yet returned."""
        return self._steps - self._at

    def record(self) -> dict[str, Any]:
        """Return the entries not yet returned."""
        return {"ahead": self._whole()[self._at :]}

    def resume(self, record: dict[str, Any], counted: int) -> None:
        """Continue from a record, after `counted` outputs."""
        ahead = finite("ahead", record["ahead"], self._steps - counted)
        self._noise, self._at = [self._source.zero] * counted + ahead, counted


def _convolved(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return M z for every row z, using f_j = f_{j−1} (2j − 1)/(2j)."""
    steps = rows.shape[1]
    j = np.arange(1, steps)
    entries = np.cumprod(np.concatenate([[1.0], (2 * j - 1) / (2 * j)]))
    length = 1 << (2 * steps - 1).bit_length()
    product = np.fft.rfft(rows, length) * np.fft.rfft(entries, length)
    return np.fft.irfft(product, length)[:, :steps]


def rounded_product(
    mechanism: SquareRootFactorization, exponent: int, *, rng: Randomness
) -> list[fmpq]:
    """Return ⌊(M z)_t/2^exponent + 1/2⌋ for every t, exactly."""
    n = mechanism.steps
    drawn = normal(n, rng=rng)
    digits = [drawn.digits(index) for index in range(n)]
    places = max(known for _, known in digits)
    numbers = [_more(value, places - known, rng) for value, known in digits]
    while True:
        groups = rng.integers(0, 1 << WORD, n).tolist()
        numbers = [value << WORD | group for value, group in zip(numbers, groups, strict=True)]
        places += WORD
        signed = [int(s) * value for s, value in zip(drawn.sign, numbers, strict=True)]
        weights = _weights(mechanism, exponent, places)
        product = (fmpz_poly(weights) * fmpz_poly(signed)).coeffs()[:n]
        product += [fmpz(0)] * (n - len(product))
        error = n * (max(weights) + 2 + 2 * max(numbers))
        bits = 2 * places
        half = 1 << bits - 1
        low = [entry + half - error >> bits for entry in product]
        if all(
            entry + half + error >> bits == whole for entry, whole in zip(product, low, strict=True)
        ):
            return [fmpq(whole) for whole in low]


def _more(value: int, bits: int, rng: Randomness) -> int:
    """Append `bits` further random digits to a number, in groups of `WORD`."""
    for _ in range(bits // WORD):
        value = value << WORD | int(rng.integers(0, 1 << WORD))
    return value


def _weights(mechanism: SquareRootFactorization, exponent: int, places: int) -> list[int]:
    """Return b f_j/2^exponent in units of 2^−places, each to within 2 units."""
    size = max(0, math.frexp(mechanism.spread)[1]) + mechanism.steps.bit_length()
    with ctx.workprec(places + _GUARD + size):
        entry = mechanism.variance_ball().sqrt() * arb(2) ** (places - exponent)
        found = []
        for j in range(1, mechanism.steps + 1):
            assert entry.rad() < 1  # ensured by the guard digits
            whole = entry.mid().floor().unique_fmpz()
            assert whole is not None  # a midpoint is exact
            found.append(int(whole))
            entry = entry * (2 * j - 1) / (2 * j)
        return found
