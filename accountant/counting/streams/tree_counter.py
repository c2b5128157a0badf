"""A stream of inputs counted with a k-ary tree of Laplace noise, in constant time and O(log n)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from accountant import notation
from accountant.core.randomness import SECURE, floating
from accountant.counting.streams.counter import Counter
from accountant.counting.streams.exact_noise import whole_steps
from accountant.counting.streams.noise import laplace_doubles
from accountant.errors import expected
from accountant.mechanisms.counting.discrete_kary_tree import DiscreteKaryTree
from accountant.mechanisms.counting.kary_tree import KaryTree
from accountant.release.lattice import RESOLUTION
from accountant.release.sampling import discrete_laplace

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from accountant.core.randomness import Randomness
    from accountant.numbers.exact import ExactReal

Draws: TypeAlias = Callable[[int], NDArray[Any]]

_BUFFERED = 1 << 13
"""Draws made at once: fewer calls, and 64 kB that wait."""
_FAR = 64
"""Noise in scales that a lattice of 62 bits leaves room for: more has a probability of e^−64."""
_DIGITS = 61
"""Bits of a sum of lattice points: 64 hold it with its sign, and what is added to it."""
_LARGEST = 1 << _DIGITS
_LARGEST_SUBTREE = 1 << 18
"""Values of a subtree that are filled at once: 2 MB."""
_FEW_ROWS = 64
"""Rows up to which one call draws all digits; longer ones are faster drawn one digit at a time."""


@final
class TreeCounter(Counter):
    """Release prefix sums of a stream in [0, 1]ⁿ, as `KaryTree` describes them.

    Algorithm 2: the digits of the time step t say which noise variables its output adds. Level i
    keeps the sum of the noise from the root down to its own node, and, while its digit is
    negative, the sums of the nodes it will come back through. A step changes level i once in kⁱ
    steps, so it costs amortised O(1), with at most (1 + ⌊(k−1)/2⌋) h numbers stored.

    Everything is counted in whole steps of a lattice 2^e ≤ 1, in integers. Inputs are rounded to
    the lattice (0 and 1 stay), so that no sensitivity grows, and exact real noise z is rounded to
    it: the measured sum of a vertex is a multiple of the step, so that its noisy sum plus the
    rounded noise is its rounded noisy sum. What is released is a function of those, computed
    without any rounding until a last one to a double: the guarantee is that of the mechanism, and
    δ grows by nothing. The noise of a `DiscreteKaryTree` is integers, drawn with integer
    arithmetic, and its inputs are 0 or 1.

    With `insecure_floats` the noise of a `KaryTree` and the sums are doubles: the guarantee is then
    that of real numbers, and the bits of an output tell about the inputs. For simulation.

    Parameters
    ----------
    mechanism
        Which tree, for how many steps.
    rng
        Draws the noise; a generator of NumPy can be guessed.
    insecure_floats
        Whether to simulate in floating point.
    """

    def __init__(
        self,
        mechanism: KaryTree | DiscreteKaryTree,
        *,
        rng: Randomness = SECURE,
        insecure_floats: bool = False,
    ) -> None:
        self._draws: Draws
        if isinstance(mechanism, DiscreteKaryTree):
            tree, scale = mechanism.continuous.tree, mechanism.scale
            self._exponent = 0
            self._draws = lambda count: discrete_laplace(scale, count, rng=rng)
        else:
            tree = mechanism.tree
            self._exponent = _exponent(mechanism)
            self._draws = (
                partial(laplace_doubles, float(mechanism.scale), floating(rng))
                if insecure_floats
                else _whole(mechanism.scale, self._exponent, rng)
            )
        self._discrete = isinstance(mechanism, DiscreteKaryTree)
        self._floats = insecure_floats and not self._discrete
        self._mechanism, self._rng, self._tree = mechanism, rng, tree
        self._arity, self._steps, self._height = tree.arity, tree.steps, tree.height
        self._lowest = tree.lowest
        self._highest = tree.arity - 1 - tree.lowest
        self._narrow = _LARGEST // (tree.arity * tree.height)  # such sums along a path fit
        self._ready = np.empty(0)  # drawn, and not used by any output
        self._noise: list[float] = []  # so are these, for single steps
        self._open = True
        self._clear()

    def _clear(self) -> None:
        self._kind: type = np.float64 if self._floats else np.int64
        zero = 0.0 if self._floats else 0
        self._counted, self._sum = 0, zero
        self._digits = [0] * self._height
        self._values = [zero] * (self._height + 1)  # the last one is the root: no noise
        self._waiting: list[list[float]] = [[] for _ in range(self._height)]

    @property
    def mechanism(self) -> KaryTree | DiscreteKaryTree:
        """What is released."""
        return self._mechanism

    @property
    def step(self) -> Fraction | None:
        """The step of the lattice, if there is one."""
        return None if self._floats else Fraction(2) ** self._exponent

    @property
    def stored(self) -> int:
        """How many sums of noise variables are kept at the moment."""
        return self._height + sum(map(len, self._waiting))

    def update(self, x: float) -> float:
        """Take the next input, in [0, 1], and return the estimate of the sum so far."""
        if self._discrete and x not in (0, 1) and 0 <= x <= 1:
            raise expected(f"input {self._counted + 1}", x, "0 or 1", "KaryTree takes fractions.")
        self._count(x)
        self._sum += x if self._floats else round(math.ldexp(x, -self._exponent))
        self._advance(0)
        total = self._sum + self._values[0]
        return total if self._floats else math.ldexp(total, self._exponent)

    def extend(self, block: ArrayLike) -> NDArray[np.float64]:
        """Take a block of inputs and return their estimates.

        Raises InvalidInputError, and then has taken none of them, if one is outside [0, 1] or
        there are more than the mechanism has steps left.
        """
        inputs = self._inputs(block)
        if self._discrete and not (whole := inputs % 1 == 0).all():
            index = int(np.argmin(whole))
            raise expected(f"input {self._counted + 1 + index}", inputs[index], "0 or 1")
        if not len(inputs):
            return np.empty(0)
        parts, missing = [], len(inputs)
        while missing:
            parts.append(self._fill(missing))
            missing -= len(parts[-1])
        if not self._floats:
            inputs = np.rint(np.ldexp(inputs, -self._exponent)).astype(np.int64)
        sums: NDArray[Any] = np.cumsum(inputs.astype(self._kind, copy=False))
        sums += self._sum
        self._sum = sums[-1:].tolist()[0]
        self._counted += len(inputs)
        sums += np.concatenate(parts)
        if self._floats:
            return sums
        released: NDArray[np.float64] = np.ldexp(sums.astype(np.float64), self._exponent)
        return released

    def record(self) -> dict[str, Any]:
        """Return what a continuation needs, as plain data: secret, and for one continuation.

        It holds noise. `StateFile` writes it down before the outputs it counts are released.
        """
        return {
            "mechanism": repr(self._mechanism),
            "floats": self._floats,
            "counted": self._counted,
            "sum": self._sum,
            "values": self._values[:-1],
            "waiting": [list(entries) for entries in self._waiting],
        }

    @classmethod
    def _continued(cls, record: dict[str, Any], rng: Randomness) -> TreeCounter:
        mechanism = notation.parse(record["mechanism"])
        if not isinstance(mechanism, (KaryTree, DiscreteKaryTree)):
            raise expected("mechanism", record["mechanism"], "to be a KaryTree")
        counter = TreeCounter(mechanism, rng=rng, insecure_floats=record["floats"] is True)
        counted, total = cls._read_counted(record, mechanism.steps), record["sum"]
        most = counted if counter.step is None else counted / counter.step
        if not counter._fit([total]) or not 0 <= total <= most:
            raise expected("sum", total, f"in [0, {most}]")
        values, waiting = record["values"], record["waiting"]
        digits = counter._tree.written(counted)
        lengths = [len(entries) for entries in waiting]
        if lengths != [max(-digit - 1, 0) for digit in digits]:
            raise expected("waiting", lengths, f"to fit the {counted} inputs counted")
        noise = [*values, *chain(*waiting)]
        if len(values) != counter._height or not counter._fit(noise):
            raise expected("values", values, f"to be {counter._height} finite numbers")
        if not counter._floats and max(map(abs, noise), default=0) > _LARGEST:
            counter._kind = np.object_
        counter._counted, counter._sum, counter._digits = counted, total, digits
        counter._values = [*values, counter._values[-1]]
        counter._waiting = [list(entries) for entries in waiting]
        return counter

    def _fit(self, numbers: Sequence[Any]) -> bool:
        """Whether these are numbers as this counter keeps them."""
        kind = float if self._floats else int
        return all(type(n) is kind and math.isfinite(n) for n in numbers)

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

    def _laplace(self, count: int) -> NDArray[Any]:
        """Draw Lap(h/ε), in steps; once one is too large, all is counted in Python's integers."""
        if count > len(self._ready):  # what is left is not used: no output knows it
            self._ready = self._draws(max(count, _BUFFERED))
        drawn, self._ready = self._ready[:count], self._ready[count:]
        if self._kind is np.int64 and self._far(drawn):
            self._kind = np.object_
        return drawn.astype(self._kind, copy=False)

    def _far(self, drawn: NDArray[Any]) -> bool:
        most = max(-int(np.min(drawn, initial=0)), int(np.max(drawn, initial=0)))
        return drawn.dtype == object or most > self._narrow

    def _fill(self, most: int) -> NDArray[Any]:
        """Return the noise of the next subtree that fits into so many outputs."""
        levels, size = 0, 1
        limit = min(most, _LARGEST_SUBTREE)
        while (
            levels < self._height
            and self._digits[levels] == self._highest
            and size * self._arity <= limit
        ):
            levels, size = levels + 1, size * self._arity
        self._advance(levels)
        current: NDArray[Any] = np.array([self._values[levels]], dtype=self._kind)
        for level in range(levels - 1, -1, -1):
            current = self._children(current)
            self._digits[level], self._values[level] = self._highest, current[-1:].tolist()[0]
        return current

    def _children(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of noise one level down, from the lowest digit to the highest."""
        rows, k, lowest = len(values), self._arity, self._lowest
        drawn = self._laplace(rows * (k - 1)).reshape(k - 1, rows)
        found: NDArray[Any] = np.empty((k, rows), dtype=self._kind)
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


def _exponent(mechanism: KaryTree) -> int:
    """Return e of the lattice step 2^e ≤ 1, on which sums usually fit 62 bits.

    It is 2^−32 below the scale b, or the least one of which 2^61 exceed steps + 64·b·arity·height:
    a noise variable beyond 64 b, of probability e^{−64}, costs time and nothing else.
    """
    scale, tree = float(mechanism.scale), mechanism.tree
    largest = mechanism.steps + _FAR * scale * tree.arity * tree.height
    fine = math.frexp(scale)[1] - 1 - RESOLUTION
    return min(0, max(fine, math.frexp(largest)[1] - _DIGITS))


def _whole(scale: ExactReal, exponent: int, rng: Randomness) -> Draws:
    """Return a sampler of exact real noise, rounded to whole steps."""
    sampler = whole_steps(scale, exponent, "laplace")
    return lambda count: sampler.whole_steps(np.zeros((count, 1)), rng=rng)[:, 0]
