"""What is asked of a mechanism: δ, ε, β, Rényi divergences and more, as numbers or balls.

For one release H is the largest over its laws. For several, a lattice above gives an upper end, and
one below a lower end (lattice.py); Gaussian factors are first made one. An answer is a ball around
both ends. Where the ways are only an upper bound, there is no lower end but that of a release that
tells nothing, H ≥ (1 − e^ε)⁺, and of the laws that are below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from flint import arb, fmpq

from . import laws
from .laws import ONE, ZERO, Law, told
from .lemmas import Way, Worst, merged
from .numbers import (
    Budget,
    NotProved,
    Number,
    ball,
    compare,
    maximum,
    rational,
)

FINENESS = {16: 84, 64: 112, 256: 176}
"""Steps of a lattice are the total variation of one release over these; bits of a mass."""
LATTICE_BITS = 384
"""Precision of the laws that are put on a lattice."""
BOUND = "the table of lemmas bounds this mechanism from above only"


@dataclass(frozen=True)
class Grid:
    """How fine a lattice is, and what the witness says about it."""

    budget: Budget
    fine: int = 64
    hints: Mapping[str, Any] = field(default_factory=dict)

    def hint(self, name: str) -> fmpq | None:
        """Return a positive number of the witness, or None."""
        if name not in self.hints:
            return None
        try:
            number = rational(self.hints[name])
        except ValueError:
            raise NotProved(f"the hint {name} is no number") from None
        if not number > 0:
            raise NotProved(f"the hint {name} is not positive")
        return number


def is_single(found: Worst) -> bool:
    """Return whether every way is a single release, once Gaussian ones are made one."""
    return all(_alone(merged(way)) for way in found.ways)


def _alone(way: Way) -> bool:
    return len(way) == 1 and way[0][1] == 1


def step_for(way: Way, fineness: int) -> fmpq:
    """Return a step for a lattice: a part of the largest loss where that is rational."""
    found = [law for laws_, _ in way for law in laws_]
    grids = [law.grid for law in found if isinstance(law.grid, fmpq) and law.grid > 0]
    if len(grids) == len(found):
        common = grids[0]
        for grid in grids[1:]:  # the largest number of which both are multiples
            common = fmpq((common.p * grid.q).gcd(grid.p * common.q), common.q * grid.q)
        if max(grids) / common < 64:
            return common if fineness == 16 else common / fineness
    smooth = [law for law in found if not law.atoms] or found
    finest = min(float(ball(law.delta(ZERO)).upper()) for law in smooth) or 1.0
    width = fmpq(max(1, round(finest / fineness * 2**40)), 2**40)
    exact = [x for law in found if isinstance(x := law.largest, fmpq) and x > 0]
    return min(exact) / max(1, int((min(exact) / width).ceil())) if exact else width


def composed(way: Way, epsilon: Number, grid: Grid, *, upper: bool, added: bool = False) -> arb:
    """Return an upper (lower) end of H of a composition."""
    step = (grid.hint("step_add") if added else None) or grid.hint("step")
    from . import lattice

    bits = int((grid.hint("bits") or fmpq(FINENESS.get(grid.fine, 112))).floor())
    if not 64 <= bits <= 2048:
        raise NotProved("a lattice of fewer than 64 or more than 2048 bits")
    step = step or step_for(way, grid.fine)
    return lattice.compose(way, step, bits, grid.budget, upper=upper).delta(epsilon)


def upper_delta(found: Worst, epsilon: Number, grid: Grid) -> Number:
    """Return a ball of which the upper end is at least H(ε)."""
    ends: list[Number] = []
    for i, way in enumerate(map(merged, found.ways)):
        if _alone(way):
            ends += [law.delta(epsilon) for law in way[0][0]]
        elif compare(_total(way, _finite), "<=", epsilon):
            none: Number = ONE  # only an infinite loss is larger
            for laws_, count in way:
                none = none * (1 - maximum([law.infinite for law in laws_])) ** count
            ends.append(1 - none)
        else:
            added = i >= len(found.remove)
            ends.append(composed(way, epsilon, grid, upper=True, added=added))
    return maximum(ends)


def _finite(law: Law) -> Number:
    """Return the largest finite loss of a law."""
    if not law.atoms:
        return law.largest
    kept = [p / q for p, q in law.atoms if not (compare(p, "==", 0) or compare(q, "==", 0))]
    return maximum([ball(x).log() for x in kept]) if kept else ZERO


def _total(way: Way, part: Callable[[Law], Number]) -> Number:
    """Return the sum over a way of the largest number of each factor."""
    total: Number = ZERO
    for laws_, count in way:
        total = total + count * maximum([part(law) for law in laws_])
    return total


def lower_delta(found: Worst, epsilon: Number, grid: Grid) -> Number:
    """Return a ball of which the lower end is at most H(ε)."""
    ends: list[Number] = []
    ways, removed = found.ways, len(found.remove)
    if found.lower is not None:
        ways = [w for w in found.lower if all(f[0].name != "a largest loss" for f, _ in w)]
        removed = len(ways)
        if not ways:
            raise NotProved(BOUND)
    only = str(grid.hints.get("direction", ""))
    if only in ("remove", "add") and found.lower is None:
        ways, removed = (found.remove, removed) if only == "remove" else (found.add, 0)
    for k, way in enumerate(map(merged, ways)):
        if _alone(way):
            ends += [law.delta(epsilon) for law in way[0][0]]
            continue
        for chosen in _choices(way):
            if (listed := laws.joint([(f[0], n) for f, n in chosen])) is not None:
                ends.append(listed.delta(epsilon))
            else:
                ends.append(composed(chosen, epsilon, grid, upper=False, added=k >= removed))
    return maximum(ends)


def _choices(way: Way) -> Iterator[Way]:
    """Yield ways with one law for each release: the same of its factor in all, or two by halves."""
    most = max(len(laws_) for laws_, _ in way)
    for i in range(most):
        yield tuple(((f[min(i, len(f) - 1)],), n) for f, n in way)
    if most > 1 and sum(n for _, n in way) > 1:
        halves = [((f[0], n - n // 2), (f[-1], n // 2)) for f, n in way]
        yield tuple(((law,), n) for parts in halves for law, n in parts if n)


def max_loss(found: Worst, *, lower: bool = False) -> Number:
    """Return the supremum of the loss, or what it is at least."""
    if lower and found.lower is not None:
        if not found.lower:
            raise NotProved(BOUND)
        return maximum([_total(way, lambda law: law.largest) for way in found.lower])
    return maximum([_total(way, lambda law: law.largest) for way in found.ways])


def gaussian_square(found: Worst) -> Number:
    """Return μ² of a mechanism whose pair is Gaussian."""
    ends: list[Number] = []
    for way in map(merged, found.ways):
        for law in way[0][0]:
            plain = law.mu is None and compare(law.delta(ZERO), "==", ZERO)
            if not _alone(way) or ((law.rho is None or law.mu is None) and not plain):
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

    return maximum([_total(merged(way), part) for way in found.ways])


def rho(found: Worst) -> Number:
    """Return a ρ with D_a ≤ ρa for all orders; of losses from −t to t it is t²/2 (row pure)."""
    return maximum([_total(merged(way), _rho) for way in found.ways])


def _rho(law: Law) -> Number:
    if law.rho is not None:
        return law.rho
    t = laws.reach(law)
    if isinstance(t, arb) and not t.is_finite():
        raise NotProved("a rho of a loss that is not bounded")
    return t * t / 2
