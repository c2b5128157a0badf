"""Trees and grids of partial sums: what they measure, and how much of it outputs reveal."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Final, TypeAlias, final

from dpassay.accountant.errors import InvalidInputError, expected

# --- Continual counting with k-ary trees of Laplace noise: exact errors and the use of vertices ---
# A stream of n inputs in [0, 1] is released as its n prefix sums. The leaves of a tree of arity k
# and height h hold the inputs. Every vertex below the root has one noise variable Lap(h/ε). A
# prefix sum adds (or subtracts) vertices as given by the digits of its time step t:
#
# * `Digits.PLAIN`: t = Σ d_i kⁱ with 0 ≤ d_i < k. At level i add the d_i leftmost children
#   (Andersson, Pagh and Torkamani, "Count on Your Elders", Algorithm 1). Capacity kʰ − 1.
# * `Digits.SIGNED`: −⌊(k−1)/2⌋ ≤ d_i ≤ ⌊k/2⌋. If d_i > 0, add the d_i leftmost children; if
#   d_i < 0, subtract the |d_i| rightmost ones (Algorithms 2 and 3; for even k, Definition C.1).
#   Capacity ⌊k/2⌋ (kʰ − 1)/(k − 1).
#
# The prefix sum at t has Σ|d_i| noise variables of variance 2h²/ε² each, so the mean squared error
# over the n outputs is 2h²/ε² times the average of Σ|d_i|. All numbers here are exact.

_MOST_WALKED: Final = 1_000_000
"""Most digits that are written out one by one."""


class Digits(Enum):
    """The digits that represent a time step."""

    PLAIN = "plain"
    SIGNED = "signed"


@final
@dataclass(frozen=True, slots=True)
class Tree:
    """The tree for a number of outputs.

    Parameters
    ----------
    arity
        k ≥ 2.
    steps
        n ≥ 1, the number of outputs.
    digits
        Whether digits may be negative, that is, vertices subtracted.
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
        """The absolute value of the least digit."""
        return (self.arity - 1) // 2 if self.digits is Digits.SIGNED else 0

    def capacity(self, height: int) -> int:
        """Return the largest number that `height` digits represent."""
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
        """Return Σ_t Σ_i |d_i(t)|, the number of vertices used by all outputs together.

        Adding `lowest` to every digit gives the plain digits of t + lowest·(kⁱ⁺¹ − 1)/(k − 1), so
        the occurrences of each digit at each level are counted in closed form.
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
        """Return every noise variable that an output uses, in the order of first use.

        Raises InvalidInputError if that would need more than a million digits.
        """
        found: dict[tuple[int, int], NoiseVariable] = {}
        for step, before, after in self.moves():
            first, last = sorted((before, after))
            known = found.get((first, last))
            uses = (step,) if known is None else (*known.outputs, step)
            found[first, last] = NoiseVariable(first, last, uses)
        return list(found.values())

    def moves(self) -> Iterator[tuple[int, int, int]]:
        """Yield (step, p before, p after) for every vertex that Algorithm 2 adds or subtracts.

        The vertex lies above the inputs between the two values of p. It is added if p grows, and
        subtracted if p decreases.
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
    """Return the largest number of used vertices above one input.

    It is the ℓ1 sensitivity of all that is released, found by enumeration.
    """
    changes = [0] * (tree.arity**tree.height + 1)
    for variable in tree.noise_variables():
        changes[variable.first] += 1
        changes[variable.last] -= 1
    return max(itertools.accumulate(changes[: tree.steps]))


def misfits(tree: Tree) -> int:
    """Count the outputs whose vertices leave the tree, or do not add up to the prefix.

    The count is 0 by Proposition 4.1: the added vertices minus the subtracted ones are the inputs
    up to the time step.
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
    """Count the values of p after a move that denote two vertices, or one vertex with two signs.

    Proposition 4.3 requires the count to be 0: noise may be indexed by p, and its sign dropped.
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
    """Return the largest number of noise variables that are between their first and last use."""
    changes = [0] * (tree.steps + 2)
    for variable in tree.noise_variables():
        changes[variable.outputs[0]] += 1
        changes[variable.outputs[-1] + 1] -= 1
    return max(itertools.accumulate(changes))


def honaker_mean_squared_error(steps: int) -> Fraction:
    """Return the mean squared error of the binary tree with Honaker's estimates, times ε².

    Each vertex below the unused root is estimated from its own measurement and those of its two
    children, weighted by their variances: v_0 = 1 and v_i = 1/(1 + 1/(2 v_{i−1})) = 2ⁱ/(2ⁱ⁺¹ − 1)
    times 2h²/ε², h = ⌈lg(n + 1)⌉ ("Honaker Online").
    """
    tree = Tree(2, steps, Digits.PLAIN)
    total = Fraction(0)
    for level in range(tree.height):
        used = _below(steps + 1, 1, 1 << level, 2)
        total += used * level_units(level)
    return 2 * tree.height**2 * total / steps


def level_units(level: int) -> Fraction:
    """Return v_i, the variance of the estimate of a vertex at level i, in units."""
    return Fraction(1 << level, (2 << level) - 1)


def _below(end: int, digit: int, unit: int, arity: int) -> int:
    """Count the integers 0 ≤ u < end whose plain digit of weight `unit` equals `digit`."""
    periods, rest = divmod(end, unit * arity)
    return periods * unit + min(max(rest - digit * unit, 0), unit)


# --- The noise of a counting tree as a walk: each output adds one noise variable to an earlier one
# Algorithm 2 of "Count on Your Elders" starts at p = 0 and adds sign(d_i)·kⁱ exactly |d_i| times
# for each digit of t, most significant first. It adds one noise variable Z_p at each p > 0 on the
# way. The number before the last step is the `parent` of t, so
#
#     noise(t) = noise(parent(t)) + Z_t,    noise(0) = 0:
#
# the time steps are the nodes of a rooted tree, and the noise is a sum of independent variables
# along a path. Z_p belongs to the vertex between parent(p) and p in the tree of intervals
# (Proposition 4.3); both forms give the same sums.

Rows: TypeAlias = list[list[Fraction]]


def parent(tree: Tree, node: int) -> int:
    """Return the number before the last step of the walk from 0 to `node` ≥ 1."""
    k, unit = tree.arity, 1
    while node % (unit * k) == 0:
        unit *= k
    digit = (node // unit + tree.lowest) % k - tree.lowest
    return node - unit if digit > 0 else node + unit


def nodes(tree: Tree) -> list[int]:
    """Return every node that an output uses, each after its parent."""
    known = {0}
    order: list[int] = []
    for step in range(1, tree.steps + 1):
        node, fresh = step, []
        while node not in known:
            fresh.append(node)
            known.add(node)
            node = parent(tree, node)
        order += reversed(fresh)
    return order


def factorisation(tree: Tree) -> tuple[Rows, Rows]:
    """Return (L, R) with L R = A, where A x are the n prefix sums; nodes are ordered as in `nodes`.

    The mechanism releases L (R x + Z) with independent noise Z. A row of R is the signed sum of
    the inputs between a node and its parent, with entries 0 and ±1. A row of L has entries 0 and 1
    and selects the nodes that an output adds.
    """
    steps, parents = tree.steps, {node: parent(tree, node) for node in nodes(tree)}
    place = {node: index for index, node in enumerate(parents)}
    one, zero = Fraction(1), Fraction(0)
    left = [[zero] * len(place) for _ in range(steps)]
    for step, row in enumerate(left, 1):
        node = step
        while node:
            row[place[node]] = one
            node = parents[node]
    right = []
    for node, before in parents.items():
        low, high, sign = (before, node, one) if before < node else (node, before, -one)
        right.append([sign if low < step <= high else zero for step in range(1, steps + 1)])
    return left, right


# --- Counting by interpolation: grids that refine each other; cells also measure their parent -----
# The grid of level i has cells of size K_i = k_{i+1} ⋯ k_h: level 1 cuts the stream into k_1 cells,
# level 2 cuts each of these into k_2, and the cells of the last grid are the inputs. The sum of the
# inputs in every cell of every level is measured, with noise z. For each level let P(t) be the sum
# of its cells before t, where a cell that contains t counts in proportion to its part before t: the
# linear interpolation, at t, of the sums at the grid points. For every level but the first let Q(t)
# weight the cells of each parent cell by the part of the parent before t: the interpolation on the
# grid above, as measured by this level. The estimate is
#
#     out(t) = Σ_i P_i(t) − Σ_{i ≥ 2} Q_i(t).
#
# Without noise Q_i = P_{i−1}, since the cells of a parent add up to it. The sum then telescopes to
# P_h(t), the prefix sum: L R = A. An input lies in one cell of each level, so Δ₁ = h and Δ₂ = √h.
#
# The noise of level i ≥ 2 is a random-walk bridge over each parent cell, interpolated linearly. At
# t = (j + f) K in a parent cell of k cells (0 ≤ f < 1) its variance in units is
#
#     j + f² − (j + f)²/k,          and on the first level        j + f².
#
# For long cells the first averages (k − 1)/6, a third of the (k − 1)/2 of the tree without
# subtraction.
#
# **Pooling.** The sum of a cell is also the sum of its descendants at any later level. With
# `pooled` = r it is estimated from the measurements of the cell and of its next r generations. The
# cells of level l have the weight K_l/S_i, S_i = K_i + … + K_{i+r}; this is the estimate of least
# variance, K_i/S_i units. L R = A still holds, as P_i and Q_i use estimates of the same sums. The
# variance of level i is the one above times K_i/S_i. Levels are uncorrelated: an estimate gives
# equal weight to all descendants of one generation, while P_j − Q_j of a lower level j weights the
# cells of a parent with sum zero. With r = h − 1 this is least squares on all measurements.


@final
@dataclass(frozen=True, slots=True)
class Grids:
    """The grids above a stream.

    Parameters
    ----------
    arities
        k_1 ≥ 1, and all others ≥ 2; their product is the largest number of inputs.
    steps
        n ≥ 1, the number of outputs.
    pooled
        r ≥ 0, the number of generations whose measurements are pooled into that of a cell.
    """

    arities: tuple[int, ...]
    steps: int
    pooled: int = 0

    def __post_init__(self) -> None:
        if not self.arities:
            raise InvalidInputError("Expected arities to have at least one entry. Give [steps].")
        for index, arity in enumerate(self.arities):
            least = 2 if index else 1
            if arity < least:
                raise expected(f"arities[{index}]", arity, f"≥ {least}")
        if self.steps > math.prod(self.arities):
            raise expected(
                "steps",
                self.steps,
                f"at most {math.prod(self.arities)}, the product of the arities",
                "Give a larger first arity.",
            )

    @property
    def height(self) -> int:
        """h, the number of levels: the ℓ1 sensitivity, and the square of the ℓ2 sensitivity."""
        return len(self.arities)

    def cell_sizes(self) -> tuple[int, ...]:
        """Return K_1, …, K_h = 1."""
        return _cell_sizes(self.arities)

    def share(self, level: int, below: int) -> Fraction:
        """Return the weight of the cells of level `below` in the estimate of a cell of `level`."""
        sizes = self.cell_sizes()
        return Fraction(sizes[below], sum(sizes[level : level + self.pooled + 1]))

    def units(self) -> Fraction:
        """Return the number of units of all n outputs together, by summing powers."""
        levels = enumerate(zip(self.arities, self.cell_sizes(), strict=True))
        return sum(
            (self.share(i, i) * _level_sum(k, size, self.steps, i > 0) for i, (k, size) in levels),
            Fraction(0),
        )

    def output_units(self, step: int) -> Fraction:
        """Return the number of units of one output."""
        total = Fraction(0)
        for index, (arity, size) in enumerate(zip(self.arities, self.cell_sizes(), strict=True)):
            inside = step % (arity * size) if index else step
            cell, rest = divmod(inside, size)
            units = cell + Fraction(rest, size) ** 2
            if index:
                units -= Fraction(inside, size) ** 2 / arity
            total += units * self.share(index, index)
        return total

    def cells(self) -> Iterator[tuple[int, int, int]]:
        """Yield (level, first, last) for every cell on which some output depends.

        These are the cells whose parent, or the parent of an ancestor that they are pooled into,
        begins before the last step.
        """
        sizes = self.cell_sizes()
        for level, size in enumerate(sizes):
            outer = sizes[max(level - self.pooled - 1, 0)]
            for start in range(0, -(-self.steps // outer) * outer, size):
                yield level, start, start + size

    def coefficient(self, step: int, level: int, first: int) -> Fraction:
        """Return the entry of L for an output and the cell of a level that begins at `first`."""
        sizes, found = self.cell_sizes(), Fraction(0)
        for above in range(max(level - self.pooled, 0), level + 1):
            part = _part(step, first, sizes[above])
            if above:
                part -= _part(step, first, sizes[above - 1])
            found += part * self.share(above, level)
        return found


@functools.lru_cache(maxsize=64)
def _cell_sizes(arities: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(itertools.accumulate(reversed(arities[1:]), operator.mul, initial=1))[::-1]


def _part(step: int, inside: int, size: int) -> Fraction:
    """Return the part, up to the step, of the cell of a size that contains position `inside`."""
    return Fraction(min(max(step - inside // size * size, 0), size), size)


def _level_sum(arity: int, size: int, steps: int, closed: bool) -> Fraction:
    """Sum j + f², minus (j + f)²/k if `closed`, over t = 0..steps, t = (j + f)·size in a parent."""
    periods, last = divmod(steps + 1, arity * size) if closed else (0, steps + 1)
    total = _first_sum(arity, size, last, closed)
    if periods:
        total += periods * _first_sum(arity, size, arity * size, closed)
    return total


def _first_sum(arity: int, size: int, count: int, closed: bool) -> Fraction:
    """Return the same sum over the first `count` values of t in a parent cell."""
    cells, rest = divmod(count, size)
    whole = size * (cells * (cells - 1) // 2) + cells * rest
    parts = Fraction(cells * _squares(size) + _squares(rest), size**2)
    bridge = Fraction(_squares(count), arity * size**2) if closed else Fraction(0)
    return whole + parts - bridge


def _squares(count: int) -> int:
    """Return 0² + … + (count − 1)²."""
    return (count - 1) * count * (2 * count - 1) // 6


# --- How much of the measured sums R x + z of grids the outputs A x + L z reveal, L R = A ---------
# A change e of one input changes the outputs by A e. With Gaussian noise their privacy is that of
# the shortest change of the noise with the same effect:
#
#     μ²σ² = (A e)ᵀ(L Lᵀ)⁻¹(A e) = min{‖v‖² : L v = A e},
#
# at most ‖R e‖², since v = R e is one such change. `bridged` returns the maximum over all inputs.
# It stays the same if x depends on earlier outputs: L Lᵀ = C Cᵀ for a lower triangular C, so the
# outputs are equivalent to C⁻¹A x + N(0, σ²I), which is the case of `MatrixMechanism`.
#
# Let the first level have a whole cell. Then the outputs are equivalent to the estimates of all
# cells of the first level, and the differences between the estimates of the cells of a parent and
# their mean. These are uncorrelated between levels. Let T_i be the sum of K_l/K_i over the pooled
# l. An estimate has variance 1/T_i, so a change s_i of the cells of level i contributes T_i(‖s_i‖²
# − ‖s_{i−1}‖²/k_i), where s_{i−1} are the sums over their parents. Since T_i − T_{i+1}/k_{i+1} = 1
# − K_{i+r+1}/K_i, all levels together give Σ (1 − K_{i+r+1}/K_i)‖s_i‖², with K_i = 0 for i > h.
# Fewer outputs than the grids hold reveal no more. If n < K_1, the outputs up to the largest K_i ≤
# n consist of parts of the one at K_i, which the upper levels make up, and bridges of the lower
# levels.
#
# **Laplace noise** of scale b. Let v = Lᵀu for some u have no entry beyond ±1, and v·R e = Δ₁. Then
# the outputs have the largest loss of the measured sums, Δ₁/b: u·y has the noise v·z and changes by
# Δ₁, and P(v·z > t) decreases as a power of t times e^{−t/b}, so the ratio of both tails tends to
# e^{Δ₁/b}. There is such a u for the first input if the first cell is an output. Combine the
# estimates of the first cell of each level, and their differences from the mean of their siblings,
# with weights a_i such that v is 1 at all first cells. As level l has the weight K_l/S_i in level
# i, a_l = (S_l/K_l)(1 − Σ_{i<l} (K_l/S_i) a_i) ≥ 0, because this sum is at most 1/k_l of that of
# the level above, which is 1. At all other cells v is a part of that sum minus at most 1.


def bridged(grids: Grids, moved: Sequence[Sequence[Fraction]]) -> Fraction:
    """Return Σ (1 − K_{i+r+1}/K_i)‖s_i‖² for changes s_i of each level's cells."""
    sizes = (*grids.cell_sizes(), *(0 for _ in range(grids.pooled + 1)))
    return sum(
        (
            (1 - Fraction(sizes[level + grids.pooled + 1], sizes[level])) * sum(s * s for s in own)
            for level, own in enumerate(moved)
        ),
        Fraction(0),
    )


def bridged_at_least(grids: Grids) -> Fraction:
    """Return the squared distance that outputs up to the largest whole cell reveal of an input.

    The input is the first one.
    """
    sizes = grids.cell_sizes()
    first = next(level for level, size in enumerate(sizes) if size <= grids.steps)
    found = 1 / grids.output_units(sizes[first])
    for level in range(first + 1, grids.height):
        found += (1 - Fraction(1, grids.arities[level])) / grids.share(level, level)
    return found
