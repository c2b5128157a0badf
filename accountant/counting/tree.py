"""Continual counting with k-ary trees of Laplace noise: exact errors and who touches what.

A stream of n inputs in [0, 1] is released as its n prefix sums. The leaves of a tree of arity k
and height h hold the inputs; every vertex below the root carries one noise variable Lap(h/ε), and
a prefix sum adds (or subtracts) vertices as the digits of its time step t say:

* `Digits.PLAIN`: t = Σ d_i kⁱ with 0 ≤ d_i < k. At level i add the d_i leftmost children
  (Andersson, Pagh and Torkamani, "Count on Your Elders", Algorithm 1). Capacity kʰ − 1.
* `Digits.SIGNED`: −⌊(k−1)/2⌋ ≤ d_i ≤ ⌊k/2⌋. Add |d_i| leftmost children where d_i > 0, subtract
  as many rightmost ones where d_i < 0 (Algorithms 2 and 3; for even k, Definition C.1). Capacity
  ⌊k/2⌋ (kʰ − 1)/(k − 1).

The prefix at t has Σ|d_i| noise variables, of variance 2h²/ε² each, so the mean squared error over
the n outputs is 2h²/ε² times the average of Σ|d_i|. All numbers here are exact.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Final, final

from dpassay.accountant.errors import expected

_MOST_WALKED: Final = 1_000_000
"""Most digits that are written out one by one."""


class Digits(Enum):
    """Which digits write a time step."""

    PLAIN = "plain"
    SIGNED = "signed"


@final
@dataclass(frozen=True, slots=True)
class Tree:
    """The tree that serves `steps` outputs.

    Parameters
    ----------
    arity
        k ≥ 2.
    steps
        n ≥ 1, the number of outputs.
    digits
        Whether vertices may be subtracted.
    """

    arity: int
    steps: int
    digits: Digits

    def __post_init__(self) -> None:
        if self.arity < 2:
            raise expected("arity", self.arity, "≥ 2", "A tree of arity 1 has no leaves to spare.")
        if self.steps < 1:
            raise expected("steps", self.steps, "≥ 1")

    @property
    def lowest(self) -> int:
        """The least digit, negated."""
        return (self.arity - 1) // 2 if self.digits is Digits.SIGNED else 0

    def capacity(self, height: int) -> int:
        """Return the largest number that `height` digits write."""
        leaves: int = self.arity**height
        return (self.arity - 1 - self.lowest) * ((leaves - 1) // (self.arity - 1))

    @property
    def height(self) -> int:
        """The least h ≥ 1 whose capacity is at least `steps`.

        It is the ℓ1 sensitivity of the tree: an input lies below one vertex of each level.
        """
        return next(h for h in itertools.count(1) if self.capacity(h) >= self.steps)

    def written(self, step: int) -> list[int]:
        """Return the digits of a time step, least significant first."""
        found = []
        for _ in range(self.height):
            digit = (step + self.lowest) % self.arity - self.lowest
            found.append(digit)
            step = (step - digit) // self.arity
        return found

    def vertices(self) -> int:
        """Return Σ_t Σ_i |d_i(t)|, the vertices combined in all outputs, by counting digits.

        Adding `lowest` to every digit makes plain digits of t + lowest·(kⁱ⁺¹ − 1)/(k − 1), so
        each digit at each level is counted in closed form.
        """
        k, total = self.arity, 0
        for level in range(self.height):
            unit = k**level
            shift = self.lowest * (unit * k - 1) // (k - 1)
            for plain in range(k):
                weight = abs(plain - self.lowest)
                if weight:
                    last, first = self.steps + shift + 1, shift + 1
                    count = _below(last, plain, unit, k) - _below(first, plain, unit, k)
                    total += weight * count
        return total

    def mean_squared_error(self) -> Fraction:
        """Return the mean squared error over the outputs, in units of 1/ε²."""
        return Fraction(2 * self.height**2 * self.vertices(), self.steps)

    def noise_variables(self) -> list[NoiseVariable]:
        """Return every noise variable that some output uses, in the order of first use.

        Raises InvalidInputError where that would need more than a million digits.
        """
        found: dict[tuple[int, int], NoiseVariable] = {}
        for step, before, after in self.moves():
            first, last = sorted((before, after))
            known = found.get((first, last))
            uses = (step,) if known is None else (*known.outputs, step)
            found[first, last] = NoiseVariable(first, last, uses)
        return list(found.values())

    def moves(self) -> Iterator[tuple[int, int, int]]:
        """Yield (step, p before, p after) for every vertex that Algorithm 2 combines.

        The vertex lies above the inputs between the two values of p; it is added where p grows
        and subtracted where p falls.
        """
        if self.steps * self.height * self.arity > 2 * _MOST_WALKED:
            raise expected(
                "steps",
                self.steps,
                f"at most {_MOST_WALKED} digits to write out",
                "The mean squared error is found by counting, for any number of steps.",
            )
        for step in range(1, self.steps + 1):
            at = 0
            for level, digit in reversed(list(enumerate(self.written(step)))):
                size = self.arity**level if digit > 0 else -(self.arity**level)
                for _ in range(abs(digit)):
                    yield step, at, at + size
                    at += size


@final
@dataclass(frozen=True, slots=True)
class NoiseVariable:
    """The noise of the vertex above the inputs first+1, …, last, and the outputs that use it."""

    first: int
    last: int
    outputs: tuple[int, ...]

    @property
    def contiguous(self) -> bool:
        """Whether the outputs that use it are consecutive (Proposition 4.10)."""
        return self.outputs[-1] - self.outputs[0] + 1 == len(self.outputs)


def largest_load(tree: Tree) -> int:
    """Return how many of the used vertices one input changes, for the input that changes most.

    It is the ℓ1 sensitivity of everything that is released, found by enumeration.
    """
    changes = [0] * (tree.arity**tree.height + 1)
    for variable in tree.noise_variables():
        changes[variable.first] += 1
        changes[variable.last] -= 1
    return max(itertools.accumulate(changes[: tree.steps]))


def misfits(tree: Tree) -> int:
    """Count the outputs whose vertices leave the tree, or do not make up the prefix.

    0 is Proposition 4.1: what is added less what is subtracted are the inputs up to the time.
    """
    leaves = tree.arity**tree.height
    ends: dict[int, Counter[int]] = {step: Counter() for step in range(1, tree.steps + 1)}
    outside = set()
    for step, before, after in tree.moves():
        ends[step][before] += 1
        ends[step][after] -= 1
        size = abs(after - before)
        if not 0 <= min(before, after) <= max(before, after) <= leaves or before % size:
            outside.add(step)
    wrong = {step for step, end in ends.items() if {p: c for p, c in end.items() if c}
             != {0: 1, step: -1}}  # fmt: skip
    return len(outside | wrong)


def clashes(tree: Tree) -> int:
    """Count the values of p after a move that name two vertices, or one with two signs.

    0 is what Proposition 4.3 needs: noise may be indexed by p, and the sign may be dropped.
    """
    named: dict[int, set[int]] = {}
    for _, before, after in tree.moves():
        named.setdefault(after, set()).add(before)
    by_vertex: dict[tuple[int, int], set[int]] = {}
    for after, sources in named.items():
        for before in sources:
            ends = (min(before, after), max(before, after))
            by_vertex.setdefault(ends, set()).add(after)
    return sum(len(sources) > 1 for sources in named.values()) + sum(
        len(names) > 1 for names in by_vertex.values()
    )


def most_live(tree: Tree) -> int:
    """Return the largest number of noise variables between their first and their last use."""
    changes = [0] * (tree.steps + 2)
    for variable in tree.noise_variables():
        changes[variable.outputs[0]] += 1
        changes[variable.outputs[-1] + 1] -= 1
    return max(itertools.accumulate(changes))


def honaker_mean_squared_error(steps: int) -> Fraction:
    """Return the mean squared error of the binary tree with Honaker's estimates, times ε².

    Each vertex below the unused root is estimated from itself and from its two children, which
    weigh by their variances: v_0 = 1 and v_i = 1/(1 + 1/(2 v_{i−1})) = 2ⁱ/(2ⁱ⁺¹ − 1) times
    2h²/ε², h = ⌈lg(n + 1)⌉ ("Honaker Online").
    """
    tree = Tree(2, steps, Digits.PLAIN)
    total = Fraction(0)
    for level in range(tree.height):
        used = _below(steps + 1, 1, 1 << level, 2)
        total += used * level_units(level)
    return 2 * tree.height**2 * total / steps


def level_units(level: int) -> Fraction:
    """Return v_i, the units of the estimate of a vertex."""
    return Fraction(1 << level, (2 << level) - 1)


def own_weight(level: int) -> Fraction:
    """Return the weight of a vertex' own measured sum, 2v/(1 + 2v) for the v of its children."""
    if not level:
        return Fraction(1)
    twice = 2 * level_units(level - 1)
    return twice / (1 + twice)


def _below(end: int, digit: int, unit: int, arity: int) -> int:
    """Count 0 ≤ u < end whose plain digit of weight `unit` is `digit`."""
    periods, rest = divmod(end, unit * arity)
    return periods * unit + min(max(rest - digit * unit, 0), unit)
