"""Bounds of δ, the largest loss, μ, Rényi divergences and ρ of a mechanism.

They are computed from its `Worst` (lemmas.py). For a single release, H(ε) is the maximum over its
laws. For a composition, the lattice gives bounds from above and below (lattice.py), after Gaussian
factors are merged. If `found.lower` is set, the ways only bound the mechanism from above, and lower
bounds come from the ways in `found.lower`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from flint import arb

from . import laws
from .laws import ONE, ZERO, Law, resolve
from .lemmas import Way, Worst, merged
from .numbers import Budget, NotProved, Number, compare, maximum

Hints: TypeAlias = Mapping[str, Any]
NONE: Hints = {}
LATTICE_BITS = 384
"""Precision in bits of the laws that are put on a lattice."""
BOUND = "the table of lemmas bounds this mechanism from above only"


def is_single(found: Worst) -> bool:
    """Return whether every way is a single release, after merging Gaussian factors."""
    return all(alone(merged(way)) for way in found.ways)


def alone(way: Way) -> bool:
    """Return whether a way is a single release."""
    return len(way) == 1 and way[0][1] == 1


def upper_delta(found: Worst, epsilon: Number, budget: Budget, hints: Hints = NONE) -> Number:
    """Return a ball whose upper end is at least H(ε)."""
    return _delta(found.ways, len(found.remove), epsilon, budget, hints, upper=True)


def lower_delta(found: Worst, epsilon: Number, budget: Budget, hints: Hints = NONE) -> Number:
    """Return a ball whose lower end is at most H(ε) of some neighbours."""
    ways, removed = found.ways, len(found.remove)
    only = str(hints.get("direction", ""))
    if found.lower is not None:
        ways = [w for w in found.lower if all(f[0].name != "a largest loss" for f, _ in w)]
        removed = len(ways)
    elif only in ("remove", "add"):
        ways, removed = (found.remove, removed) if only == "remove" else (found.add, 0)
    if not ways:
        raise NotProved(BOUND)
    return _delta(ways, removed, epsilon, budget, hints, upper=False)


def _delta(
    ways: list[Way], removed: int, epsilon: Number, budget: Budget, hints: Hints, *, upper: bool
) -> Number:
    ends: list[Number] = []
    for i, way in enumerate(map(merged, ways)):
        if alone(way):
            ends += [law.delta(epsilon) for law in way[0][0]]
        else:
            from . import lattice

            bound = lattice.upper if upper else lattice.lower
            ends.append(bound(way, epsilon, budget, hints, added=i >= removed))
    return maximum(ends)


def total(way: Way, part: Callable[[Law], Number]) -> Number:
    """Return the sum over the releases of a way of the maximum of `part` over each one's laws."""
    total: Number = ZERO
    for laws_, count in way:
        total = total + count * maximum([part(law) for law in laws_])
    return total


def max_loss(found: Worst, *, lower: bool = False) -> Number:
    """Return an upper bound of the supremum of the loss, or a lower bound."""
    ways = found.lower if lower and found.lower is not None else found.ways
    if not ways:
        raise NotProved(BOUND)
    return maximum([total(way, lambda law: law.largest) for way in ways])


def gaussian_square(found: Worst) -> Number:
    """Return μ² of a mechanism with Gaussian worst pairs."""
    ends: list[Number] = []
    for way in map(merged, found.ways):
        for law in way[0][0]:
            plain = law.mu is None and compare(law.delta(ZERO), "==", ZERO)
            if not alone(way) or ((law.rho is None or law.mu is None) and not plain):
                raise NotProved("the worst pair of the mechanism is not Gaussian")
            ends.append(ZERO if law.mu is None or law.rho is None else 2 * law.rho)
    return maximum(ends)


def renyi(found: Worst, order: Number, *, upper: bool = False) -> Number:
    """Return the Rényi divergence of an order above 1, or an upper bound of it."""
    if not resolve(order, ">", ONE):
        raise NotProved("the order of a Rényi divergence is not above 1")
    if not upper and found.lower is not None:
        raise NotProved(BOUND)

    def part(law: Law) -> Number:
        if law.only_alone and not upper:
            raise NotProved(f"the worst pair of {law.name} depends on epsilon: no divergence")
        if law.divergence is not None and not (upper and law.rho is not None):
            return law.divergence(order)
        if not upper:
            raise NotProved(f"the kernel has no Rényi divergence of {law.name}")
        if law.rho is None:
            found.rows.add("pure")
        return order * _rho(law)

    return maximum([total(merged(way), part) for way in found.ways])


def rho(found: Worst) -> Number:
    """Return ρ with D_a ≤ ρa for all a > 1; for losses in [−t, t] it is t²/2 (lemma pure)."""
    return maximum([total(merged(way), _rho) for way in found.ways])


def _rho(law: Law) -> Number:
    if law.rho is not None:
        return law.rho
    t = laws.reach(law)
    if isinstance(t, arb) and not t.is_finite():
        raise NotProved("the loss is not bounded, so the kernel has no rho")
    return t * t / 2
