"""A stream of unknown length, counted in epochs that double."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpassay.accountant.core.randomness import SECURE, Randomness
from dpassay.accountant.counting.streams.stream_counter import StreamCounter, continued, read_inputs
from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.accountant.mechanisms.counting.bridged_tree import BridgedTree
from dpassay.accountant.numbers.exact import ExactReal, Number

FIRST: Final = 10
"""Epoch e has 2^(10 + e) inputs."""
_BITS = 4
"""Binary digits of the steps to a level of the tree, about: cells of 16, near the least error."""


@final
class UnboundedCounter:
    """Release the prefix sums of a stream that has no last input.

    Epoch e counts its 2^(10+e) inputs with a `BridgedTree` of its own whose first level is one
    cell, the whole epoch: its last estimate has one unit of noise. The estimate of a prefix is the
    last one of the epoch before (released already) plus that of this epoch. An input is in one,
    so the whole release is ε-DP (or μ-GDP) as each epoch is; O(log n) numbers are stored, and the
    error after n inputs is O(log³n/ε²) as for a known n, of a larger constant.

    Parameters
    ----------
    epsilon, mu
        Exactly one: Laplace or Gaussian noise, as in `LinearCounter`.
    rng
        Draws the noise; a generator of NumPy can be guessed.
    insecure_floats
        Whether to simulate in floating point.
    """

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        mu: Number | None = None,
        rng: Randomness = SECURE,
        insecure_floats: bool = False,
    ) -> None:
        self._epsilon, self._mu, self._rng = epsilon, mu, rng
        self._floats = insecure_floats
        self._epoch, self._base = 0, 0.0
        self._counter = self._begun(0)

    def epoch_mechanism(self, epoch: int) -> BridgedTree:
        """Return the mechanism of an epoch: cells of about 16 below the whole."""
        bits = FIRST + epoch
        levels = -(-bits // _BITS)
        each, larger = divmod(bits, levels)
        arities = [2 ** (each + (level < larger)) for level in range(levels)]
        return BridgedTree(2**bits, [1, *arities], self._epsilon, self._mu)

    def _begun(self, epoch: int) -> StreamCounter:
        return StreamCounter(
            self.epoch_mechanism(epoch), rng=self._rng, insecure_floats=self._floats
        )

    @property
    def counted(self) -> int:
        """How many inputs have come, and outputs been released."""
        return (1 << FIRST) * ((1 << self._epoch) - 1) + self._counter.counted

    @property
    def stored(self) -> int:
        """How many numbers with noise in them are kept at the moment."""
        return 1 + self._counter.stored

    def variance(self, step: int) -> ExactReal:
        """Return the exact variance of the estimate after so many inputs, ≥ 1."""
        if step < 1:
            raise expected("step", step, "≥ 1")
        total, epoch = Fraction(0), 0
        while True:
            mechanism = self.epoch_mechanism(epoch)
            unit = mechanism.unit_variance.rational
            assert unit is not None  # the square of the scale is rational
            if step <= mechanism.steps:
                return ExactReal.of_rational(total + unit * mechanism.grids.output_units(step))
            total += unit
            step -= mechanism.steps
            epoch += 1

    def update(self, x: float) -> float:
        """Take the next input, in [0, 1], and return the estimate of the sum so far."""
        return float(self.extend([x])[0])

    def extend(self, block: ArrayLike) -> NDArray[np.float64]:
        """Take a block of inputs and return their estimates.

        Raises InvalidInputError, and then has taken none of them, if one is outside [0, 1].
        """
        inputs = read_inputs(block, self.counted)
        found = np.empty(len(inputs))
        position = 0
        while position < len(inputs):
            left = self._counter.mechanism.steps - self._counter.counted
            part = slice(position, position + left)
            found[part] = self._base + self._counter.extend(inputs[part])
            position += left
            if position <= len(inputs):
                self._base = float(found[position - 1])
                self._epoch += 1
                self._counter = self._begun(self._epoch)
        return found

    def record(self) -> dict[str, Any]:
        """Return what a continuation needs, as plain data: secret, and for one continuation."""
        return {"epoch": self._epoch, "base": self._base, "counter": self._counter.record()}

    @staticmethod
    def of_record(record: dict[str, Any], *, rng: Randomness = SECURE) -> UnboundedCounter:
        """Continue from a record.

        Raises InvalidInputError where it is not one that `record` returns.
        """
        try:
            epoch, base, inner = record["epoch"], record["base"], record["counter"]
        except (KeyError, TypeError) as error:
            raise InvalidInputError(f"This is not the record of a counter: {error!r}.") from error
        counter = continued(inner, rng=rng)
        mechanism = counter.mechanism
        if not isinstance(mechanism, BridgedTree):
            raise expected("mechanism", mechanism, "to be that of an epoch")
        if type(epoch) is not int or epoch < 0:
            raise expected("epoch", epoch, "to be an integer ≥ 0")
        if type(base) not in (int, float) or not math.isfinite(base):
            raise expected("base", base, "to be a finite number")
        found = UnboundedCounter(
            epsilon=mechanism.epsilon,
            mu=mechanism.mu,
            rng=rng,
            insecure_floats=counter.step is None,
        )
        if found.epoch_mechanism(epoch) != mechanism:
            raise expected("epoch", epoch, f"to be that of {mechanism!r}")
        found._epoch, found._base, found._counter = epoch, float(base), counter
        return found
