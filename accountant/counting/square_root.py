"""Square-root factorisations of prefix sums."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from flint import arb, fmpq, fmpz, fmpz_poly
from numpy.typing import NDArray

from dpassay.accountant.composition.exact.laplace_product import of_distances
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Integer, OptionalPositive
from dpassay.accountant.counting.counters import MOST_LISTED, LinearCounter
from dpassay.accountant.counting.grids import Rows
from dpassay.accountant.counting.noise import (
    FloatSource,
    NoiseProcess,
    NoiseSource,
    WholeSource,
    finite,
)
from dpassay.accountant.errors import NotApplicableError, expected
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.theta import central, coefficients, landau
from dpassay.accountant.release.sampling import WORD, laplace, normal

if TYPE_CHECKING:
    from dpassay.accountant.core.randomness import Randomness


"""The square root of prefix sums with columns of nearly one length, and what it costs.

M is lower triangular and Toeplitz with the entries f_j = C(2j, j)/4ʲ, and M² = A. Its column t,
from 0, has the squared length S_{n−t}, S_m = Σ_{j<m} f_j². All could be as long as the first: that
costs no privacy with Gaussian noise. With the whole numbers w_t = ⌈256 √(S_{n−t}/S_n)⌉ and
W = diag(w_t/256)

    R = M W⁻¹,    L = A W M⁻¹,    L R = A,

and w_0 = 256: no column of R is longer than the first. It is the longest in the ℓ1 norm too: with
F_m = Σ_{j<m} f_j = 2m f_m, (F_{m+1}/F_m)² = (1 + 1/2m)² > 1 + 1/m ≥ 1 + f_m²/S_m = S_{m+1}/S_m, as
f falls, so that F_m/F_n ≤ √(S_m/S_n).

y = M z = A (M⁻¹z) are the prefix sums of M⁻¹z, so that summation by parts gives

    (L z)_i = (w_i y_i + Σ_{t<i} (w_t − w_{t+1}) y_t)/256,

where no coefficient is negative, and all add up to w_0.

Henzinger, Kalinin and Upadhyay, "Normalized Square Root" (2025), without the rounding of w.
"""

LEVEL_BITS = 8
"""Of a weight, as below."""
LEVELS = 1 << LEVEL_BITS
"""Of the weights: the error is within 0.4 % of that without rounding from 10³ to 10⁵ steps, where a
hundred different weights make `row_units` quick."""
_NEAR = 1e-6
"""Of 256 √(S_m/S_n) to a whole number: doubles decide the rest, with errors below 1e-7."""
_DECIDING = 256
"""Bits for those that are near."""


@functools.lru_cache(maxsize=16)
def weights(steps: int) -> tuple[int, ...]:
    """Return w_0, …, w_{n−1}, from 256 downwards."""
    j = np.arange(1, steps)
    entries = np.cumprod(np.concatenate([[1.0], (2 * j - 1) / (2 * j)]))
    lengths = np.cumsum(entries * entries)
    roots = LEVELS * np.sqrt(lengths[::-1] / lengths[-1])
    found = np.ceil(roots).astype(np.int64)
    near = np.flatnonzero(np.abs(roots - np.round(roots)) < _NEAR)
    for t in near[near > 0].tolist():
        found[t] = _rounded_up(steps - t, steps, round(roots[t]))
    found[0] = LEVELS
    return tuple(found.tolist())


def _rounded_up(m: int, n: int, w: int) -> int:
    """Return w if w²S_n ≥ 256²S_m, and w + 1 else."""
    with ctx.workprec(_DECIDING):
        return w if landau(n) * (w * w) >= landau(m) * (LEVELS * LEVELS) else w + 1


def rows(steps: int) -> list[list[Fraction]]:
    """Return L, exactly."""
    f, w = coefficients(steps), weights(steps)
    before, found = [Fraction(0)] * steps, []
    for i in range(steps):
        column = f[i::-1]
        found.append([Fraction(w[i], LEVELS) * c + b for c, b in zip(column, before, strict=False)])
        found[-1] += [Fraction(0)] * (steps - i - 1)
        step = Fraction(w[i] - w[i + 1], LEVELS) if i + 1 < steps else Fraction(0)
        if step:
            before = [b + step * c for b, c in zip(before, column, strict=False)] + before[i + 1 :]
    return found


def row_units(steps: int) -> list[arb]:
    """Return the squared norm of every row of L, at flint's precision.

    That is the variance of (w_i y_i + Σ_{t<i} (w_t − w_{t+1}) y_t)/256 for unit z, with the
    covariances c(t, d) = Σ_{l≤t} f_l f_{l+d} of y_t and y_{t+d}. As l f_l = (l − ½) f_{l−1},

        Σ l f_l f_{l+d} = Σ (l + ½) f_l f_{l+d+1} − (t + ½) f_t f_{t+d+1},
        Σ (l + d + 1) f_l f_{l+d+1} = Σ (l + d + ½) f_l f_{l+d},

    which add up to c(t, d + 1) = c(t, d) − (t + ½) f_t f_{t+d+1}/(d + ½). Most weights fall near
    the end, so that few covariances are needed.
    """
    entries, entry = [arb(1)], arb(1)
    for j in range(1, steps):
        entry = entry * (2 * j - 1) / (2 * j)
        entries.append(entry)
    lengths = list(accumulate(f * f for f in entries))
    inverses = [2 / arb(2 * d - 1) for d in range(1, steps)]
    w = weights(steps)
    before, sums = arb(0), [arb(0)] * steps
    """The variance of Σ_{t<i} (w_t − w_{t+1}) y_t, and its covariance with each y_i."""
    found = []
    for i in range(steps):
        found.append((w[i] * w[i] * lengths[i] + 2 * w[i] * sums[i] + before) / LEVELS**2)
        fall = w[i] - w[i + 1] if i + 1 < steps else 0
        if fall:
            before = before + fall * fall * lengths[i] + 2 * fall * sums[i]
            covariance, factor = fall * lengths[i], fall * (i + arb(0.5)) * entries[i]
            for later in range(i + 1, steps):
                covariance -= factor * entries[later] * inverses[later - i - 1]
                sums[later] += covariance
    return found


"""Continual counting with the square root of the matrix of prefix sums."""

_FACTORIZATION_MOST_RATIONAL = 4096
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
        return square_root_rows(self, size, rng)

    def _require_rational(self) -> None:
        if self.steps > _FACTORIZATION_MOST_RATIONAL:
            raise NotApplicableError(
                f"The rational numbers of {self.steps} steps are not written out beyond "
                f"{_FACTORIZATION_MOST_RATIONAL}: they have thousands of digits. Ask for an "
                "enclosure (mean_squared_error, variances)."
            )


"""Continual counting with the square root of prefix sums, its columns of one length."""

_MOST_RATIONAL = 256
"""Steps of exact numbers: L has n² entries of 2n digits."""
_MOST_COLUMNS = 24
"""Steps up to which all columns are compared, with Laplace noise: some seconds for the most."""
MOST_STEPS = 1 << 17
"""Steps of the error: some seconds for the variances of all."""


@declared
class NormalizedSquareRoot(LinearCounter):
    """Count with the square root of A, its columns stretched to the length of the first one.

    R = M W⁻¹ and L = A W M⁻¹ with M² = A: `dpassay.accountant.counting.square_root` has the
    definition of the weights W, which are whole numbers over 256, and the proofs. The first column
    of R is that of M, and the longest in ℓ1 and ℓ2. With Gaussian noise the error is 7 % below that
    of `SquareRootFactorization` at 10³ steps and 5 % at 10⁵, and within 3 % of what no
    factorisation can be below (`dpassay.accountant.counting.best_counter`). A stream stores n
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
        return weights(self.steps)

    def units(self) -> Fraction:
        """Return the squared Frobenius norm of L, exactly."""
        return sum(self.output_units(), Fraction(0))

    def output_units(self) -> list[Fraction]:
        """Return the squared norms of the rows of L, exactly."""
        return [sum((c * c for c in row), Fraction(0)) for row in self._left()]

    def factorisation(self) -> tuple[Rows, Rows]:
        """Return L and R."""
        f, w, zero = coefficients(self.steps), self.weights(), Fraction(0)
        times = [Fraction(LEVELS, entry) for entry in w]
        right = [
            [times[j] * f[i - j] if j <= i else zero for j in range(self.steps)]
            for i in range(self.steps)
        ]
        return self._left(), right

    def _left(self) -> Rows:
        self.require(_MOST_RATIONAL, "for exact numbers")
        return rows(self.steps)

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
                    ExactReal.of_rational(Fraction(LEVELS, weights[t]) * f) / self.scale
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
        return [unit * count for count in row_units(self.steps)]

    def mean_squared_error(self) -> arb:
        """Return the average variance of the outputs."""
        return sum(self.variances(), arb(0)) / self.steps

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` whole streams, one row each, by the fast Fourier transform."""
        return square_root_rows(self, size, rng)


"""The noise of `SquareRootFactorization`: a convolution, computed for the whole stream at once.

That of `NormalizedSquareRoot` is a sum of its entries with weights from 0 to 1, of sum 1
(`dpassay.accountant.counting.square_root`).

In whole steps of a lattice g·ℤ an entry of M z is ⌊y + 1/2⌋ for y = Σ_j c_j z_{t−j}, c_j = b f_j/g,
with the scale b of z. In units of 2^−p each |z| is a whole number and an unknown part of 1, and
each c_j a whole number to within 2. So the product of two integer polynomials gives y to within
n·(max|c| + 2 + 2 max|z|) units of 4^−p, the maxima in units of 2^−p. Where a boundary of the
rounding lies that near, more digits of all z are drawn, until none does. A sum with whole weights
of sum 256 is known to within 256 such errors.
"""

SquareRoot: TypeAlias = "SquareRootFactorization | NormalizedSquareRoot"

_GUARD: Final = 128
MOST_STREAMED: Final = 1 << 20
"""Most steps of a stream: all its noise is stored."""


@final
class SquareRootNoise(NoiseProcess):
    """M z, by the fast Fourier transform, when the first output is asked for.

    Every output depends on all noise before it, so nothing can be forgotten.
    """

    def __init__(self, mechanism: SquareRoot, source: NoiseSource) -> None:
        self._steps = mechanism.steps
        if self._steps > MOST_STREAMED:
            raise expected(
                "steps",
                self._steps,
                f"at most {MOST_STREAMED} to stream the square root",
                "It stores all its noise; BridgedTree stores little.",
            )
        self._mechanism, self._source = mechanism, source
        self._noise: Sequence[Any] | NDArray[np.float64] | None = None
        self._at = 0

    def one(self) -> Any:
        """Return the next entry."""
        self._at += 1
        return self._whole()[self._at - 1]

    def _whole(self) -> Sequence[Any] | NDArray[np.float64]:
        if self._noise is None:
            source = self._source
            if isinstance(source, WholeSource):
                self._noise = rounded_product(self._mechanism, source.exponent, rng=source.rng)
            else:
                self._noise = _outputs(self._mechanism, source.draw(self._steps)[None, :])[0]
        return self._noise

    @property
    def stored(self) -> int:
        """How many entries are ahead."""
        return self._steps - self._at

    def record(self) -> dict[str, Any]:
        """Return the entries ahead."""
        ahead = self._whole()[self._at :]
        return {"ahead": ahead.tolist() if isinstance(ahead, np.ndarray) else ahead}

    def resume(self, record: dict[str, Any], counted: int) -> None:
        """Go on from a record."""
        ahead = finite("ahead", record["ahead"], self._steps - counted)
        entries = [self._source.zero] * counted + ahead
        self._noise = entries if isinstance(self._source, WholeSource) else np.array(entries)
        self._at = counted


def square_root_rows(
    mechanism: SquareRoot, size: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the noise of `size` whole streams, one row each."""
    drawn = FloatSource(mechanism, rng).draw(size * mechanism.steps)
    return _outputs(mechanism, drawn.reshape(size, mechanism.steps))


def _outputs(mechanism: SquareRoot, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return L z for every row z."""
    sums, whole = _convolved(rows), mechanism.weights()
    if whole is None:
        return sums
    w = np.array(whole) / LEVELS
    falls = np.append(-np.diff(w), 0.0) * sums
    return w * sums + np.cumsum(falls, axis=1) - falls


def _convolved(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return M z for every row z: f_j = f_{j−1} (2j − 1)/(2j)."""
    steps = rows.shape[1]
    j = np.arange(1, steps)
    entries = np.cumprod(np.concatenate([[1.0], (2 * j - 1) / (2 * j)]))
    length = 1 << (2 * steps - 1).bit_length()
    product = np.fft.rfft(rows, length) * np.fft.rfft(entries, length)
    return np.fft.irfft(product, length)[:, :steps]


def rounded_product(mechanism: SquareRoot, exponent: int, *, rng: Randomness) -> list[fmpq]:
    """Return ⌊(L z)_t/2^exponent + 1/2⌋ for every t, exactly."""
    n = mechanism.steps
    drawn = (laplace if mechanism.mu is None else normal)(n, rng=rng)
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
        if (w := mechanism.weights()) is not None:
            product, error, bits = _weighted(w, product), error * LEVELS, bits + LEVEL_BITS
        half = 1 << bits - 1
        low = [entry + half - error >> bits for entry in product]
        if all(
            entry + half + error >> bits == whole for entry, whole in zip(product, low, strict=True)
        ):
            return [fmpq(whole) for whole in low]


def _weighted(w: tuple[int, ...], sums: list[fmpz]) -> list[fmpz]:
    """Return w_i y_i + Σ_{t<i} (w_t − w_{t+1}) y_t."""
    before, found = fmpz(0), []
    for now, after, y in zip(w, (*w[1:], 0), sums, strict=True):
        found.append(now * y + before)
        before += (now - after) * y
    return found


def _more(value: int, bits: int, rng: Randomness) -> int:
    """Return a number with so many digits more, groups of `WORD` each."""
    for _ in range(bits // WORD):
        value = value << WORD | int(rng.integers(0, 1 << WORD))
    return value


def _weights(mechanism: SquareRoot, exponent: int, places: int) -> list[int]:
    """Return b f_j/2^exponent in units of 2^−places, each to within 2 of them."""
    size = max(0, math.frexp(mechanism.spread)[1]) + mechanism.steps.bit_length()
    with ctx.workprec(places + _GUARD + size):
        units = 1 if mechanism.epsilon is None else 2
        entry = (mechanism.variance_ball() / units).sqrt() * arb(2) ** (places - exponent)
        found = []
        for j in range(1, mechanism.steps + 1):
            assert entry.rad() < 1  # by its guard digits
            whole = entry.mid().floor().unique_fmpz()
            assert whole is not None  # a midpoint is exact
            found.append(int(whole))
            entry = entry * (2 * j - 1) / (2 * j)
        return found
