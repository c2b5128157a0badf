"""Masses on the integers that are written as a formula: values, and sums of tails, enclosed.

Beyond the last kink the formula is analytic. Where its fourth derivative is proved to be ≥ 0 on
[a, ∞), with all integers n ≥ a,

    Σ f(n) = ∫ f + f(a)/2 − f′(a)/12 + R,   f‴(a)/384 ≤ R ≤ 0,

by Euler and Maclaurin: R = −∫ B(x) f⁗(x) dx/24 with B(x) = {x}²(1 − {x})² between 0 and 1/16.
Elsewhere f falls, and Σ f(n) lies between ∫ f and ∫ f + f(a).

What is known of the density holds of the masses: at an integer where two pieces meet one of them
holds, so that no mass stands alone.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, final

from flint import arb

from dpassay.accountant.density.balls import real
from dpassay.accountant.density.law import Law, goal, law_of
from dpassay.accountant.density.pieces import Piece
from dpassay.accountant.density.tail import Tail, TailError
from dpassay.accountant.density.text import read
from dpassay.accountant.density.tree import Node, at, derivative, num, rebuilt
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, UndecidedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpassay.accountant.core.randomness import Randomness

_STARTS = tuple(1 << n for n in range(4, 13))
"""Where tails are tried to begin: sums of more terms take seconds."""
_BITS = 160
"""Where the remainder of a tail is so small its sum begins, if that is not too far out."""
_FARTHEST = 1 << 16
"""Ends of the support beyond which masses are not listed."""
_KEPT = 64
"""Laws whose values, or derivatives, are kept: a question asks about few."""


@final
class IntegerLaw:
    """f(z) for integers z, not normalised."""

    def __init__(self, tree: Node) -> None:
        self.tree = tree
        found = law_of(tree, "mass")
        self._sides = {1: found, -1: found.mirrored}
        for before, after in pairwise(found.pieces.parts):
            self._require_joined(before, after)
        self._values: dict[tuple[int, int], arb] = {}
        self._sums: dict[tuple[int, int, int], arb] = {}
        ends = [self._starts(side) for side in (-1, 1)]
        self.low, self.high = -ends[0], ends[1]
        """Between them, both included, masses are listed; beyond are tails."""
        if all(self.is_zero(z) for z in range(self.low, self.high + 1)) and self.is_finite:
            raise InvalidInputError("mass is 0 at every integer: it is no law.")

    def _require_joined(self, before: Piece, after: Piece) -> None:
        """Require of an integer between two pieces that one of them holds there."""
        place = before.high
        if place is None or not place.exact or place.low.denominator != 1:
            return
        z = int(place.low)
        if self.node(z) not in [at(part.tree, num(z)) for part in (before, after)]:
            raise InvalidInputError(
                f"mass at x = {z} is that of neither side. Write it on an interval, as in "
                f"'abs(x - {z}) < 0.5'."
            )

    @property
    def law(self) -> Law:
        """The density of the same formula."""
        return self._sides[1]

    @property
    def is_finite(self) -> bool:
        """Whether the support is."""
        return all(side.support[1] is not None for side in self._sides.values())

    @functools.cached_property
    def is_symmetric(self) -> bool:
        """Whether f(−z) = f(z), by the same terms."""
        if not (self.low == -self.high and self.law.is_symmetric):
            return False
        return all(self.node(z) == self.node(-z) for z in range(1, self.high + 1))

    def _starts(self, side: int) -> int:
        """Return the last integer, on one side, before what is summed as a tail."""
        found = self._sides[side]
        end = found.support[1]
        if end is not None:
            if abs(end) > _FARTHEST:
                raise InvalidInputError(f"mass reaches to {float(end):.6g}: at most {_FARTHEST}.")
            return math.floor(end)
        assert found.pieces.right is not None
        least = max([found.pieces.right.start, *(place.high for place in found.pieces.breaks)])
        for start in _STARTS:
            if start < least:
                continue
            rest = self._remainder(side, start + 1)
            whole = found.total()
            if rest is not None and rest <= whole.lower() * arb(2) ** -_BITS:
                return start
        return max(_STARTS[-1], math.ceil(least))

    def _remainder(self, side: int, a: int) -> arb | None:
        """Return a bound of R from a on, None where f⁗ > 0 is not proved."""
        slopes = _derivatives(self._sides[side])
        try:
            if Tail(Fraction(a)).sign(slopes[4]) <= 0:
                return None
        except TailError:
            return None
        return abs(real(slopes[3], arb(a))).upper() / 384

    def node(self, z: int) -> Node:
        """Return the formula at an integer, its conditions decided."""
        return _decided(at(self.tree, num(z)))

    def is_zero(self, z: int) -> bool:
        """Whether the mass is exactly 0."""
        node = self.node(z)
        return node.op == "num" and node.number == 0

    def rational(self, z: int) -> Fraction | None:
        """Return the mass where it is rational."""
        node = self.node(z)
        return node.number if node.op == "num" else None

    def value(self, z: int) -> arb:
        """Return the mass of z."""
        key = (z, goal())
        if key not in self._values:
            value = real(self.node(z), arb(z))
            if not value.is_finite() or value < 0:
                raise InvalidInputError(f"mass is not a number ≥ 0 at x = {z}.")
            self._values[key] = value
        return self._values[key]

    def above(self, z: int, side: int = 1) -> arb:
        """Return Σ f(side·n) over n > z."""
        last, bits = self.high if side > 0 else -self.low, goal()
        if z >= last:
            return self._tail(z + 1, side)
        if (z, side, bits) not in self._sums:  # from the far end on: each sum is kept
            found = self._tail(last + 1, side)
            for n in range(last - 1, z - 1, -1):
                found = found + self.value(side * (n + 1))
                self._sums[n, side, bits] = found
        return self._sums[z, side, bits]

    def _tail(self, a: int, side: int) -> arb:
        found = self._sides[side]
        if found.support[1] is not None:
            return arb(0)
        f = real(found.pieces.parts[-1].log, arb(a)).exp()
        whole = found.above(Fraction(a))
        rest = self._remainder(side, a)
        if rest is None:
            return whole + arb(0).union(f)
        slope = real(_derivatives(found)[1], arb(a))
        return whole + f / 2 - slope / 12 - arb(0).union(rest)

    def total(self) -> arb:
        """Return Σ f."""
        return self.above(-1) + self.above(0, -1)


def _decided(node: Node) -> Node:
    """Return a tree without conditions, decided by balls where they are irrational."""
    parts = tuple(map(_decided, node.parts))
    if node.op in ("if", "join"):
        sign = real(parts[0], arb(0))
        if sign > 0:
            return parts[1]
        if sign <= 0 or node.op == "join":
            return parts[2]
        raise UndecidedError("A condition of mass is not decided at an integer.")
    return node if parts == node.parts else rebuilt(node, parts)


@functools.lru_cache(maxsize=_KEPT)
def _derivatives(found: Law) -> list[Node]:
    """Return the formula far out on the right, and its first four derivatives."""
    slopes = [found.pieces.parts[-1].tree]
    for _ in range(4):
        slopes.append(derivative(slopes[-1]))
    return slopes


def integer_law(text: str) -> IntegerLaw:
    """Return the law of a text. Raises InvalidInputError where it is none."""
    return integer_law_of(read(text, "mass"))


@functools.lru_cache(maxsize=_KEPT)
def integer_law_of(tree: Node) -> IntegerLaw:
    """Return the law of a formula that was read."""
    return IntegerLaw(tree)


def draw(found: IntegerLaw, size: int, rng: Randomness) -> NDArray[Any]:
    """Draw integers exactly, by inversion on enclosures."""
    from dpassay.accountant.release import sampling

    if found.is_finite:
        listed = range(found.low, found.high)
        indices = sampling.indices_by_inversion(
            lambda: [found.above(-z - 1, -1) / found.total() for z in listed], size, rng=rng
        )
        moved: NDArray[Any] = found.low + indices
        return moved
    if any(side.support[1] is not None for side in (found.law, found.law.mirrored)):
        raise NotApplicableError(
            "Masses without end on one side alone are not drawn. Cut them off, as in "
            "'exp(-x) if x >= 0 and x < 50 else 0'."
        )
    return sampling.integers_by_inversion(
        lambda z: found.above(-z - 1, -1) / found.total(), size, rng=rng
    )
