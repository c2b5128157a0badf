"""Walker's alias method with whole weights: laws on integers from one word, without rounding.

The weights of n outcomes are integers with sum 2⁶⁴. They are packed into 2^k columns of equal
height 2^{64−k}, each with at most two outcomes: the upper k bits of a word choose the column, its
other bits the height. The outcome has the probability weight/2⁶⁴ exactly (Walker, "An efficient
method for generating discrete random variables with general distributions", 1977).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.verifier.audit.runs.device.arrays import Array, Device

Values: TypeAlias = NDArray[np.float64]

_BITS = 64
"""Of a word: weights are multiples of 2⁻⁶⁴."""
_PRECISION = 192
"""Bits at which masses are computed: rounding to 2⁻⁶⁴ is then all that is wrong with them."""
_LEAST_COLUMNS = 4
"""So that the shift of a word is below 64 bits, and signed words stay in range."""
_MOST_OUTCOMES = 1 << 19
"""Outcomes of a table: more would leave the caches, 16 bytes each."""
_NEPERS = 50.0
"""What is left out of an infinite support: less than e^{−50} < 2⁻⁷²."""


@final
@dataclass(frozen=True, eq=False)
class Table:
    """A law on lowest, lowest + 1, …"""

    lowest: int
    weights: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many outcomes."""
        return len(self.weights)

    def draw(self, word: Array, device: Device) -> Array:
        """Return the indices of outcomes."""
        shift, cut, other = self._columns
        xp = device.xp
        column = (word >> shift) & (len(cut) - 1)
        height = word & ((1 << shift) - 1)
        own = height < xp.take(device.array(cut), column)
        return xp.where(own, column, xp.take(device.array(other), column))

    @cached_property
    def _columns(self) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
        """Return the number of bits of a height, and for every column where the other begins."""
        bits = (max(_LEAST_COLUMNS, self.size) - 1).bit_length()
        count, height = 1 << bits, 1 << (_BITS - bits)
        left = [*self.weights, *[0] * (count - self.size)]
        cut, other = left.copy(), list(range(count))
        short = [i for i, weight in enumerate(left) if weight < height]
        tall = [i for i, weight in enumerate(left) if weight >= height]
        while short and tall:
            low, high = short.pop(), tall[-1]
            cut[low], other[low] = left[low], high
            left[high] -= height - left[low]
            if left[high] < height:
                short.append(tall.pop())
        for index in short + tall:
            cut[index] = height
        return _BITS - bits, np.array(cut, dtype=np.int64), np.array(other, dtype=np.int64)

    @cached_property
    def _sums(self) -> tuple[Values, Values]:
        """Return the probabilities below and from every outcome on."""
        below = [0, *itertools.accumulate(self.weights)]
        one = 1 << _BITS
        return (
            np.array([part / one for part in below]),
            np.array([(one - part) / one for part in below]),
        )

    def lower(self, outcome: Values) -> Values:
        """Return the probability below an outcome."""
        return self._sums[0][self._index(outcome)]

    def upper(self, outcome: Values) -> Values:
        """Return the probability of an outcome and of all above."""
        return self._sums[1][self._index(outcome)]

    def _index(self, outcome: Values) -> NDArray[np.intp]:
        return np.clip(np.asarray(outcome) - self.lowest, 0, self.size).astype(np.intp)


def rational(masses: Sequence[Fraction]) -> Table:
    """Return the table of rational masses."""
    total = sum(masses)
    return Table(0, _filled([math.floor(Fraction(mass) / total * (1 << _BITS)) for mass in masses]))


def finite(masses: Callable[[], Sequence[Any]], lowest: int) -> Table:
    """Return the table of masses that are balls at the precision at which they are asked for."""
    with ctx.workprec(_PRECISION):
        balls = [arb(mass) for mass in masses()]
        total = sum(balls, start=arb(0))
        return Table(lowest, _filled([_floor(mass / total) for mass in balls]))


def discrete_laplace(scale: ExactReal) -> Table:
    """Return the table of p(z) ∝ e^{−|z|/scale}."""
    reach = _reach(_NEPERS * float(scale))
    return finite(lambda: _mirrored(reach, lambda z: (-z / scale.ball()).exp()), -reach)


def discrete_gaussian(parameter: ExactReal) -> Table:
    """Return the table of p(z) ∝ e^{−z²/(2·parameter)}."""
    reach = _reach(math.sqrt(2 * _NEPERS * float(parameter)))
    return finite(
        lambda: _mirrored(reach, lambda z: (-z * z / (2 * parameter.ball())).exp()), -reach
    )


def _mirrored(reach: int, weight: Callable[[arb], arb]) -> list[arb]:
    half = [weight(arb(z)) for z in range(reach + 1)]
    return half[:0:-1] + half


def _reach(value: float) -> int:
    reach = math.ceil(value) + 1
    if 2 * reach + 1 > _MOST_OUTCOMES:
        raise InvalidInputError(
            f"Expected device=None for a law on more than {_MOST_OUTCOMES} integers: a device "
            "draws integers from a table."
        )
    return reach


def _floor(ball: arb) -> int:
    """Return the middle of a ball as a multiple of 2⁻⁶⁴, rounded down."""
    mantissa, exponent = (int(part) for part in ball.mid().man_exp())
    shift = exponent + _BITS
    return mantissa << shift if shift >= 0 else mantissa >> -shift


def _filled(weights: list[int]) -> tuple[int, ...]:
    """Give to the largest weight what the others leave of 2⁶⁴."""
    largest = max(range(len(weights)), key=weights.__getitem__)
    weights[largest] += (1 << _BITS) - sum(weights)
    return tuple(weights)
