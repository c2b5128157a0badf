"""The noise of `SquareRootFactorization`: a convolution, computed for the whole stream at once.

That of `NormalizedSquareRoot` is a sum of its entries with weights from 0 to 1, of sum 1
(`dpassay.accountant.counting.normalized`).

In whole steps of a lattice g·ℤ an entry of M z is ⌊y + 1/2⌋ for y = Σ_j c_j z_{t−j}, c_j = b f_j/g,
with the scale b of z. In units of 2^−p each |z| is a whole number and an unknown part of 1, and
each c_j a whole number to within 2. So the product of two integer polynomials gives y to within
n·(max|c| + 2 + 2 max|z|) units of 4^−p, the maxima in units of 2^−p. Where a boundary of the
rounding lies that near, more digits of all z are drawn, until none does. A sum with whole weights
of sum 256 is known to within 256 such errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
from flint import arb, fmpq, fmpz, fmpz_poly
from numpy.typing import NDArray

from dpassay.accountant.counting.normalized import LEVEL_BITS, LEVELS
from dpassay.accountant.counting.streams.exact_noise import WholeSource
from dpassay.accountant.counting.streams.noise import FloatSource, NoiseProcess, NoiseSource, finite
from dpassay.accountant.errors import expected
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.release.lazy_reals import WORD, laplace, normal

if TYPE_CHECKING:
    from dpassay.accountant.core.randomness import Randomness
    from dpassay.accountant.mechanisms.counting.normalized_square_root import NormalizedSquareRoot
    from dpassay.accountant.mechanisms.counting.square_root_factorization import (
        SquareRootFactorization,
    )

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
