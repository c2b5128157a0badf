"""A stream of inputs counted with a k-ary tree of Laplace noise, in constant time and O(log n)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any, final

import numpy as np
from flint import arb
from numpy.typing import NDArray

from accountant import notation
from accountant.errors import expected
from accountant.interval import Interval
from accountant.lattice import RESOLUTION, LatticeSampler
from accountant.lattice_noise import independent
from accountant.mechanisms.discrete_kary_tree import DiscreteKaryTree
from accountant.mechanisms.kary_tree import KaryTree
from accountant.sampling import discrete_laplace
from accountant.streams.counter import Counter, floating_noise

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_BUFFERED = 1024
_FARTHEST = 1000
_DIGITS = 52
_LARGEST_SUBTREE = 1 << 18
_FEW_ROWS = 64


@final
class TreeCounter(Counter):
    """Release prefix sums of a stream in [0, 1]ⁿ, as `KaryTree` describes them.

    Algorithm 2: the digits of the time step t say which noise variables its output adds. Level i
    keeps the sum of the noise from the root down to its own node, and, while its digit is
    negative, the sums of the nodes it will come back through. A step changes level i once in kⁱ
    steps, so it costs amortised O(1), with at most (1 + ⌊(k−1)/2⌋) h numbers stored.

    The noise is binary floating-point noise, ±Exp(1)·h/ε, and a sum is a sum of doubles: the
    guarantee of the mechanism is that of real numbers. That of a `DiscreteKaryTree` is exact: its
    inputs are 0 or 1, its noise is integers, drawn with integer arithmetic, and sums below 2⁵³
    are what they are.

    With `lattice` so is that of a `KaryTree`: inputs are rounded to multiples of a power of two
    2^e ≤ 1 (0 and 1 stay), so that no sensitivity grows, and exact real noise is rounded to the
    same lattice (`accountant.lattice`): the rounded noisy sum of a vertex is its sum plus rounded
    noise. Sums of multiples are exact in doubles unless a noise variable exceeds 1000 times its
    scale, which `extra_delta` bounds. This is the way for secrets; it draws some 4·10⁶ numbers a
    second.

    Parameters
    ----------
    mechanism
        Which tree, for how many steps.
    rng
        Draws the noise.
    lattice
        Whether a `KaryTree` releases multiples of one power of two, without a channel in the bits.
    """

    def __init__(
        self,
        mechanism: KaryTree | DiscreteKaryTree,
        *,
        rng: np.random.Generator,
        lattice: bool = False,
    ) -> None:
        self._integer_scale: Fraction | None = None
        self._sampler: LatticeSampler | None = None
        if isinstance(mechanism, DiscreteKaryTree):
            tree, self._integer_scale = mechanism.continuous.tree, mechanism.scale
        else:
            tree = mechanism.tree
        self._mechanism, self._rng, self._tree = mechanism, rng, tree
        self._arity, self._steps, self._height = tree.arity, tree.steps, tree.height
        self._lowest = tree.lowest
        self._highest = tree.arity - 1 - tree.lowest
        self._scale = float(mechanism.scale)
        self._grid = 1.0
        if lattice and isinstance(mechanism, KaryTree):
            self._sampler = _lattice(mechanism)
            self._grid = float(self._sampler.lattice[0])
        self._noise: list[float] = []  # drawn, and not used by any output
        self._open = True
        self._clear()

    def _clear(self) -> None:
        self._counted, self._sum = 0, 0.0
        self._digits = [0] * self._height
        self._values = [0.0] * (self._height + 1)  # the last one is the root: no noise
        self._waiting: list[list[float]] = [[] for _ in range(self._height)]

    @property
    def mechanism(self) -> KaryTree | DiscreteKaryTree:
        """What is released."""
        return self._mechanism

    @property
    def extra_delta(self) -> Interval:
        """What the sampler costs in δ: (1 + e^ε) times the chance that a sum is not exact.

        A noise variable exceeds 1000 times its scale with probability e^{−1000}; nobody has more
        than arity·height of them for every step.

        Raises NotApplicableError for noise that is on no lattice.
        """
        if self._integer_scale is None and self._sampler is None:
            raise floating_noise()
        if self._sampler is None or isinstance(self._mechanism, DiscreteKaryTree):
            return Interval.of_exact(0)
        variables = self._steps * self._arity * self._height
        chance = variables * arb(-_FARTHEST).exp()
        factor = 1 + self._mechanism.epsilon.ball().exp()
        return Interval.of_exact(0).hull(Interval.of_ball(factor * chance))

    @property
    def stored(self) -> int:
        """How many sums of noise variables are kept at the moment."""
        return self._height + sum(map(len, self._waiting))

    def update(self, x: float) -> float:
        """Take the next input, in [0, 1], and return the estimate of the sum so far."""
        if not 0 <= x <= 1:
            raise expected(f"input {self._counted + 1}", x, "in [0, 1]")
        if self._integer_scale is not None and x not in (0, 1):
            raise expected(f"input {self._counted + 1}", x, "0 or 1", "KaryTree takes fractions.")
        if self._counted >= self._steps or not self._open:
            raise self._refusal(1)
        self._counted += 1
        self._sum += x if self._sampler is None else round(x / self._grid) * self._grid
        self._advance(0)
        return self._sum + self._values[0]

    def extend(self, block: ArrayLike) -> NDArray[np.float64]:
        """Take a block of inputs and return their estimates.

        Raises InvalidInputError, and then has taken none of them, if one is outside [0, 1] or
        there are more than the mechanism has steps left.
        """
        inputs = self._inputs(block)
        if self._integer_scale is not None and not (whole := inputs % 1 == 0).all():
            index = int(np.argmin(whole))
            raise expected(f"input {self._counted + 1 + index}", inputs[index], "0 or 1")
        if self._sampler is not None:
            inputs = np.rint(inputs / self._grid) * self._grid
        noise = np.empty(len(inputs))
        position = 0
        while position < len(inputs):
            position += self._fill(noise[position:])
        sums = np.cumsum(inputs)
        sums += self._sum
        if len(inputs):
            self._sum = float(sums[-1])
        self._counted += len(inputs)
        sums += noise
        return sums

    def record(self) -> dict[str, Any]:
        """Return what a continuation needs, as plain data: secret, and for one continuation.

        It holds noise. `StateFile` writes it down before the outputs it counts are released.
        """
        return {
            "mechanism": repr(self._mechanism),
            **({} if self._sampler is None else {"lattice": True}),
            "counted": self._counted,
            "sum": float(self._sum),
            "values": self._values[:-1],
            "waiting": [list(entries) for entries in self._waiting],
        }

    @classmethod
    def _continued(cls, record: dict[str, Any], rng: np.random.Generator) -> TreeCounter:
        mechanism = notation.parse(record["mechanism"])
        if not isinstance(mechanism, (KaryTree, DiscreteKaryTree)):
            raise expected("mechanism", record["mechanism"], "to be a KaryTree")
        counter = TreeCounter(mechanism, rng=rng, lattice=record.get("lattice", False) is True)
        counted, total = cls._read_counted(record, mechanism.steps), record["sum"]
        if not _all_finite([total]) or not 0 <= total <= counted:
            raise expected("sum", total, f"in [0, {counted}]")
        values, waiting = record["values"], record["waiting"]
        digits = counter._tree.written(counted)
        lengths = [len(entries) for entries in waiting]
        if lengths != [max(-digit - 1, 0) for digit in digits]:
            raise expected("waiting", lengths, f"to fit the {counted} inputs counted")
        if len(values) != counter._height or not _all_finite([*values, *chain(*waiting)]):
            raise expected("values", values, f"to be {counter._height} finite numbers")
        counter._counted, counter._sum, counter._digits = counted, float(total), digits
        counter._values = [*map(float, values), 0.0]
        counter._waiting = [list(map(float, entries)) for entries in waiting]
        return counter

    def _advance(self, level: int) -> None:
        """Count one up at a level; all digits below it are at their highest."""
        digits, values, waiting = self._digits, self._values, self._waiting
        at = level
        while digits[at] == self._highest:
            at += 1
        digit = digits[at] + 1
        digits[at] = digit
        if digit > 0:
            values[at] += self._draw()
        elif digit:
            values[at] = waiting[at].pop()
        else:
            values[at] = values[at + 1]
        lowest = self._lowest
        while at > level:
            at -= 1
            value = values[at + 1]
            if lowest:  # this level will come back through all of these nodes
                row = []
                for _ in range(lowest):
                    value += self._draw()
                    row.append(value)
                value = row.pop()
                waiting[at] = row
            digits[at], values[at] = -lowest, value

    def _draw(self) -> float:
        if not self._noise:
            self._noise = self._laplace(_BUFFERED).tolist()
        return self._noise.pop()

    def _laplace(self, count: int) -> NDArray[np.float64]:
        """Draw Lap(h/ε): a random sign of an exponential, six times faster than `rng.laplace`."""
        if self._integer_scale is not None:
            return discrete_laplace(self._integer_scale, count, rng=self._rng).astype(np.float64)
        if self._sampler is not None:
            return self._sampler.noise(count, rng=self._rng).ravel()
        noise = self._rng.standard_exponential(count)
        np.negative(noise, out=noise, where=self._rng.integers(0, 2, count, dtype=np.bool_))
        noise *= self._scale
        return noise

    def _fill(self, noise: NDArray[np.float64]) -> int:
        """Write the noise of the next subtree that fits, and return how many outputs it has."""
        levels, size = 0, 1
        limit = min(len(noise), _LARGEST_SUBTREE)
        while (
            levels < self._height
            and self._digits[levels] == self._highest
            and size * self._arity <= limit
        ):
            levels, size = levels + 1, size * self._arity
        self._advance(levels)
        if not levels:
            noise[0] = self._values[0]
            return 1
        current = np.array([self._values[levels]])
        for level in range(levels - 1, -1, -1):
            current = self._children(current)
            self._digits[level], self._values[level] = self._highest, float(current[-1])
        noise[:size] = current
        return size

    def _children(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of noise one level down, from the lowest digit to the highest."""
        rows, k, lowest = len(values), self._arity, self._lowest
        drawn = self._laplace(rows * (k - 1)).reshape(k - 1, rows)
        found = np.empty((k, rows))
        found[lowest] = values
        if rows < _FEW_ROWS:  # one call for all digits; slower than one for each on long rows
            found[:lowest] = values + np.cumsum(drawn[:lowest], axis=0)[::-1]
            found[lowest + 1 :] = values + np.cumsum(drawn[lowest:], axis=0)
            return found.T.ravel()
        for digit in range(lowest - 1, -1, -1):
            np.add(found[digit + 1], drawn[digit], out=found[digit])
        for digit in range(lowest + 1, k):
            np.add(found[digit - 1], drawn[digit - 1], out=found[digit])
        return found.T.ravel()


def _lattice(mechanism: KaryTree) -> LatticeSampler:
    """Return the noise of a vertex on a lattice on which doubles hold every sum.

    The step is the power of two 2^−32 below the scale b, or the least one, at most 1, of which
    2^52 exceed steps + 1000·b·arity·height.
    """
    scale, tree = float(mechanism.scale), mechanism.tree
    largest = mechanism.steps + _FARTHEST * scale * tree.arity * tree.height
    fine = math.frexp(scale)[1] - 1 - RESOLUTION
    coarse = math.frexp(largest)[1] - _DIGITS
    exponent = min(0, max(fine, coarse))
    if coarse > 0:
        raise expected(
            "steps", mechanism.steps, "and noise to fit a double", "Take a larger epsilon."
        )
    resolution = math.frexp(scale)[1] - 1 - exponent
    return LatticeSampler(
        independent(lambda: [mechanism.scale.ball()], "laplace"), resolution=resolution
    )


def _all_finite(numbers: Sequence[object]) -> bool:
    return all(type(n) in (int, float) and math.isfinite(n) for n in numbers)  # type: ignore[arg-type]  # its type is known then
