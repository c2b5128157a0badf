"""What is asked of a mechanism: δ, ε, β, Rényi divergences and more, as numbers or balls.

For one release H is the largest over its laws. For several, a lattice above gives an upper end, and
one below a lower end (lattice.py); Gaussian factors are first made one. An answer is a ball around
both ends. Where the ways are only an upper bound, there is no lower end but that of a release that
tells nothing, H ≥ (1 − e^ε)⁺, and of the laws that are below it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from flint import arb

from . import laws
from .laws import ONE, ZERO, Law, told
from .lemmas import Way, Worst, merged
from .numbers import Budget, NotProved, Number, compare, maximum

Hints: TypeAlias = Mapping[str, Any]
NONE: Hints = {}
LATTICE_BITS = 384
"""Precision of the laws that are put on a lattice."""
BOUND = "the table of lemmas bounds this mechanism from above only"


def is_single(found: Worst) -> bool:
    """Return whether every way is a single release, once Gaussian ones are made one."""
    return all(alone(merged(way)) for way in found.ways)


def alone(way: Way) -> bool:
    """Return whether a way is a single release."""
    return len(way) == 1 and way[0][1] == 1


def upper_delta(found: Worst, epsilon: Number, budget: Budget, hints: Hints = NONE) -> Number:
    """Return a ball of which the upper end is at least H(ε)."""
    ends: list[Number] = []
    for i, way in enumerate(map(merged, found.ways)):
        if alone(way):
            ends += [law.delta(epsilon) for law in way[0][0]]
        else:
            added = i >= len(found.remove)
            from . import lattice

            ends.append(lattice.upper(way, epsilon, budget, hints, added=added))
    return maximum(ends)


def lower_delta(found: Worst, epsilon: Number, budget: Budget, hints: Hints = NONE) -> Number:
    """Return a ball of which the lower end is at most H(ε)."""
    ends: list[Number] = []
    ways, removed = found.ways, len(found.remove)
    if found.lower is not None:
        ways = [w for w in found.lower if all(f[0].name != "a largest loss" for f, _ in w)]
        removed = len(ways)
        if not ways:
            raise NotProved(BOUND)
    only = str(hints.get("direction", ""))
    if only in ("remove", "add") and found.lower is None:
        ways, removed = (found.remove, removed) if only == "remove" else (found.add, 0)
    for k, way in enumerate(map(merged, ways)):
        if alone(way):
            ends += [law.delta(epsilon) for law in way[0][0]]
        else:
            from . import lattice

            ends.append(lattice.lower(way, epsilon, budget, hints, added=k >= removed))
    return maximum(ends)


def total(way: Way, part: Callable[[Law], Number]) -> Number:
    """Return the sum over a way of the largest number of each factor."""
    total: Number = ZERO
    for laws_, count in way:
        total = total + count * maximum([part(law) for law in laws_])
    return total


def max_loss(found: Worst, *, lower: bool = False) -> Number:
    """Return the supremum of the loss, or what it is at least."""
    ways = found.lower if lower and found.lower is not None else found.ways
    if not ways:
        raise NotProved(BOUND)
    return maximum([total(way, lambda law: law.largest) for way in ways])


def gaussian_square(found: Worst) -> Number:
    """Return μ² of a mechanism whose pair is Gaussian."""
    ends: list[Number] = []
    for way in map(merged, found.ways):
        for law in way[0][0]:
            plain = law.mu is None and compare(law.delta(ZERO), "==", ZERO)
            if not alone(way) or ((law.rho is None or law.mu is None) and not plain):
                raise NotProved("a mu of what is not Gaussian")
            ends.append(ZERO if law.mu is None or law.rho is None else 2 * law.rho)
    return maximum(ends)


def renyi(found: Worst, order: Number, *, upper: bool = False) -> Number:
    """Return the Rényi divergence of an order above 1, or what it is at most."""
    if not told(order, ">", ONE):
        raise NotProved("a Rényi divergence of an order that is not above 1")
    if not upper and found.lower is not None:
        raise NotProved(BOUND)

    def part(law: Law) -> Number:
        if law.only_alone and not upper:
            raise NotProved(f"the kernel has no Rényi divergence of {law.name}, chosen from")
        if law.divergence is not None and not (upper and law.rho is not None):
            return law.divergence(order)
        if not upper:
            raise NotProved(f"the kernel has no Rényi divergence of {law.name}")
        if law.rho is None:
            found.rows.add("pure")
        return order * _rho(law)

    return maximum([total(merged(way), part) for way in found.ways])


def rho(found: Worst) -> Number:
    """Return a ρ with D_a ≤ ρa for all orders; of losses from −t to t it is t²/2 (row pure)."""
    return maximum([total(merged(way), _rho) for way in found.ways])


def _rho(law: Law) -> Number:
    if law.rho is not None:
        return law.rho
    t = laws.reach(law)
    if isinstance(t, arb) and not t.is_finite():
        raise NotProved("a rho of a loss that is not bounded")
    return t * t / 2
