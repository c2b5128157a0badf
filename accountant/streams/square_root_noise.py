"""The noise of `SquareRootFactorization`: a convolution, computed for the whole stream at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
from flint import arb, arb_poly
from numpy.typing import NDArray

from accountant.errors import expected
from accountant.streams.noise import NoiseProcess, NoiseSource, finite

if TYPE_CHECKING:
    from accountant.mechanisms.square_root_factorization import SquareRootFactorization

MOST_STREAMED: Final = 1 << 24
"""Most steps of a stream: all its noise is stored."""


@final
class SquareRootNoise(NoiseProcess):
    """M z, by the fast Fourier transform, when the first output is asked for.

    Every output depends on all noise before it, so nothing can be forgotten.
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
        self._source = source
        self._noise: Sequence[Any] | NDArray[np.float64] | None = None
        self._at = 0

    def one(self) -> Any:
        """Return the next entry."""
        self._at += 1
        entry = self._whole()[self._at - 1]
        return entry if isinstance(entry, arb) else float(entry)

    def fill(self, out: NDArray[np.float64]) -> None:
        """Write the next entries."""
        out[:] = self._whole()[self._at : self._at + len(out)]
        self._at += len(out)

    def _whole(self) -> Sequence[Any] | NDArray[np.float64]:
        if self._noise is None:
            drawn = self._source.many(self._steps)
            self._noise = (
                _convolved(drawn[None, :])[0]
                if isinstance(drawn, np.ndarray)
                else _convolved_balls(drawn)
            )
        return self._noise

    @property
    def stored(self) -> int:
        """How many entries are ahead."""
        return self._steps - self._at

    def record(self) -> dict[str, Any]:
        """Return the entries ahead."""
        ahead = self._whole()[self._at :]
        return {"ahead": ahead.tolist() if isinstance(ahead, np.ndarray) else list(ahead)}

    def resume(self, record: dict[str, Any], counted: int) -> None:
        """Go on from a record."""
        ahead = finite("ahead", record["ahead"], self._steps - counted)
        entries = [0.0] * counted + ahead
        self._noise = entries if any(isinstance(x, arb) for x in ahead) else np.array(entries)
        self._at = counted


def square_root_rows(
    mechanism: SquareRootFactorization, size: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the noise of `size` whole streams, one row each."""
    drawn = NoiseSource(mechanism, rng).draw(size * mechanism.steps)
    return _convolved(drawn.reshape(size, mechanism.steps))


def _convolved(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return M z for every row z: f_j = f_{j−1} (2j − 1)/(2j)."""
    steps = rows.shape[1]
    j = np.arange(1, steps)
    entries = np.cumprod(np.concatenate([[1.0], (2 * j - 1) / (2 * j)]))
    length = 1 << (2 * steps - 1).bit_length()
    product = np.fft.rfft(rows, length) * np.fft.rfft(entries, length)
    return np.fft.irfft(product, length)[:, :steps]


def _convolved_balls(drawn: Sequence[arb]) -> list[arb]:
    """Return M z as a product of polynomials with balls as coefficients."""
    entries = [arb(1)]
    for j in range(1, len(drawn)):
        entries.append(entries[-1] * (2 * j - 1) / (2 * j))
    product = arb_poly(entries) * arb_poly(list(drawn))
    return [product[index] for index in range(len(drawn))]
