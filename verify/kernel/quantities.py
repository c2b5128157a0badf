"""What is asked of a mechanism: δ, ε, β, Rényi divergences and more, as numbers or balls.

For one release H is the largest over its laws. For several, a lattice above gives an upper end, and
one below a lower end (lattice.py); Gaussian factors are first made one. An answer is a ball around
both ends. Where the ways are only an upper bound, there is no lower end but that of a release that
tells nothing, H ≥ (1 − e^ε)⁺, and of the laws that are below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from flint import arb, ctx, fmpq

from . import lattice, laws, lemmas
from .expressions import real
from .laws import ONE, ZERO, Law, told
from .lemmas import Way, Worst, merged, worst
from .notation import Noise
from .numbers import (
    Budget,
    NotProved,
    Number,
    TooFewDigits,
    ball,
    compare,
    exp,
    maximum,
    precision,
    rational,
    sqrt,
    whole,
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


def delta(found: Worst, epsilon: Number, budget: Budget) -> arb:
    """Return a ball around H(ε)."""
    if is_single(found) and found.lower is None:
        return ball(upper_delta(found, epsilon, Grid(budget)))
    high = upper_delta(found, epsilon, Grid(budget))
    low = maximum([ZERO, 1 - exp(epsilon)])
    with suppress(NotProved):
        low = maximum([low, lower_delta(found, epsilon, Grid(budget))])
    return ball(low).lower().union(ball(high).upper())


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
        return order * _rho(law)

    return maximum([_total(merged(way), part) for way in found.ways])


def rho(found: Worst) -> Number:
    """Return a ρ with D_a ≤ ρa for all orders; of losses up to t it is t²/2 (row pure)."""
    return maximum([_total(merged(way), _rho) for way in found.ways])


def _rho(law: Law) -> Number:
    if law.rho is not None:
        return law.rho
    if isinstance(law.largest, arb) and not law.largest.is_finite():
        raise NotProved("a rho of a loss that is not bounded")
    return law.largest * law.largest / 2


def halved(above: Callable[[fmpq], bool | None]) -> tuple[fmpq, fmpq]:
    """Return two near numbers, `above` at the first and not at the second."""
    low, high = fmpq(-1), fmpq(1)
    while above(low) is not True or above(high) is not False:
        if above(low) is not True:
            low *= 2
        if above(high) is not False:
            high *= 2
        if max(-low, high) > 1 << 20:
            raise NotProved("a number beyond a million")
    for _ in range(200):
        middle = (low + high) / 2
        side = above(middle)
        if side is None:
            break
        low, high = (middle, high) if side else (low, middle)
    return low, high


def epsilon(found: Worst, level: Number, budget: Budget) -> arb:
    """Return a ball around the least ε ≥ 0 with H(ε) ≤ δ, between two sides that are checked."""
    if compare(level, "==", ZERO):
        return ball(max_loss(found))
    if not is_single(found):
        raise NotProved("an epsilon of a composition: ask for its delta")
    low, high = halved(lambda x: compare(upper_delta(found, x, Grid(budget)), ">", level))
    return ball(low).union(ball(high)).max(arb(0))


def beta(found: Worst, alpha: Number) -> arb:
    """Return a ball around the least type II error at type I error α.

    For every ε, 1 − H(ε) − e^ε α is at most β. Where Q(L > ε) falls past α between two ε, β is at
    most the chord of the tests there, and the test with the smaller α at least as good.
    """
    if not is_single(found) or found.lower is not None:
        raise NotProved("the trade-off function of a composition, or of a bound")
    ends: list[Number] = []
    for law in (law for way in map(merged, found.ways) for law in way[0][0]):
        low, high = halved(lambda x, of=law: compare(of.at(x)[1], ">", alpha))  # type: ignore[misc]
        least = maximum([ZERO, *(1 - law.delta(x) - exp(x) * alpha for x in (low, high))])
        (h0, q0), (h1, q1) = law.at(low), law.at(high)
        b0, most = 1 - h0 - exp(low) * q0, 1 - h1 - exp(high) * q1
        if compare(q0, ">", q1) and compare(q0, ">=", alpha):
            most = most + (alpha - q1) / (q0 - q1) * (b0 - most)
        ends.append(ball(least).lower().union(ball(most).upper()))
    return ball(-maximum([-x for x in ends]))


def variance(noise: Noise, value: lemmas.Value) -> Number:
    """Return the variance of the noise of an answer."""
    args = lemmas.Arguments(noise, value)
    if noise.name == "DiscreteGaussian":
        return _discrete_gaussian_variance(args["parameter"])
    if noise.name == "IntegerNoise":
        masses, low = args.masses("probabilities"), args.integer("lowest")
    elif noise.name == "OptimalEllipse":
        return ellipse(args.integer("dimension"), args.integer("sparsity")) / args["mu"] ** 2
    elif noise.name == "BoundedCountNoise":
        low = -args.integer("support")
        masses = lemmas.count_noise(args)
    else:
        raise NotProved(f"the variance of {noise.name}")  # others have formulas in the table
    first = sum(((low + i) * p for i, p in enumerate(masses)), ZERO)
    return sum(((low + i) ** 2 * p for i, p in enumerate(masses)), ZERO) - first * first


def ellipse(d: int, k: int) -> Number:
    """Return the variance of the ellipse with at most 1 at all j ≤ k, for μ = 1 (row ellipse).

    Σ has the least trace 1/x + (d − 1)/y with P_j x + Q_j y ≤ 1, P_j = j²/d, Q_j = j − P_j. By
    duality it is the largest (√P + √((d − 1)Q))² for P, Q between these points: on a segment it is
    concave, with its peak where P (d − 1)(dQ)² = Q (dP)², or at an end.
    """
    if not 1 <= k <= d or d > 10_000:
        raise NotProved("an ellipse of such a dimension")
    found: list[Number] = []
    for j in range(k):
        p, q, dp, dq = (
            fmpq(j * j, d),
            j - fmpq(j * j, d),
            fmpq(2 * j + 1, d),
            1 - fmpq(2 * j + 1, d),
        )
        t = ONE
        if dq < 0:
            t = (q * dp * dp - (d - 1) * p * dq * dq) / (dp * dq * ((d - 1) * dq - dp))
            t = min(max(t, ZERO), ONE)
        found.append(sqrt(p + t * dp) + sqrt((d - 1) * (q + t * dq)))
    best = maximum(found)
    return best * best / d


def _discrete_gaussian_variance(v: Number) -> arb:
    """Return Σ z² e^(−z²/(2v))/Σ e^(−z²/(2v)); beyond N the terms are below a geometric series."""
    last = whole((2 * ball(v) * (ctx.prec + 60)).sqrt()) + 2
    if last > laws.MOST_MASSES:
        raise NotProved("the variance of discrete Gaussian noise of so large a parameter")
    weights = [(-ball(fmpq(z * z)) / (2 * ball(v))).exp() for z in range(last + 1)]
    ratio = (fmpq(last + 1, last) ** 2) * (-ball(fmpq(2 * last + 1)) / (2 * ball(v))).exp()
    if not ratio < 1:
        raise TooFewDigits("the tail of discrete Gaussian noise")
    rest = arb(0).union(last * last * weights[-1] * ratio / (1 - ratio))
    second = sum((z * z * w for z, w in enumerate(weights)), arb(0)) + rest
    return 2 * second / (2 * (sum(weights[1:], arb(0)) + rest) + 1)


def quantity(
    name: str, noise: Any, adjacency: str | None, numbers: Sequence[Number], budget: Budget
) -> tuple[Number, set[str]]:
    """Return what an expression asks of a mechanism, and the lemmas that it rests on."""
    if len(numbers) != (name in ("delta", "epsilon", "beta", "renyi", "loss_above")):
        raise NotProved(f"{name} with {len(numbers)} numbers")
    value = partial(real, budget=budget)
    if name == "variance" and isinstance(noise, Noise):
        return variance(noise, value), {"ellipse"} if noise.name == "OptimalEllipse" else set()
    found = worst(noise, adjacency, value, budget)
    if not is_single(found):
        with precision(max(ctx.prec, LATTICE_BITS)):  # the masses of a lattice have more digits
            found = worst(noise, adjacency, value, budget)
    ways = [merged(way) for way in found.ways]
    only = ways[0][0][0][0] if len(ways) == 1 and is_single(found) else None
    smooth = all(law.mu is not None for way in ways for f, _ in way for law in f)
    match name:
        case "delta" | "total_variation":
            answer: Number = delta(found, (numbers or [ZERO])[0], budget)
        case "epsilon" if found.lower is None:
            answer = epsilon(found, numbers[0], budget)
        case "beta":
            answer = beta(found, numbers[0])
        case "renyi":
            answer = renyi(found, numbers[0])
        case "mu" if found.lower is None:
            answer = sqrt(gaussian_square(found))
        case "rho" if found.lower is None and smooth:
            answer = rho(found)
        case "max_loss":
            answer = max_loss(found)
            if found.lower is not None:
                answer = ball(max_loss(found, lower=True)).union(ball(answer))
            if not ball(answer).is_finite():
                raise NotProved("a largest loss that is infinite")
        case "loss_above" if only is not None and len(ways[0][0][0]) == 1 and found.lower is None:
            if only.only_alone:
                raise NotProved("the loss of a mechanism with a worst pair for each epsilon")
            height, slope = only.at(numbers[0])
            answer = height + exp(numbers[0]) * slope
        case _:
            raise NotProved(f"the kernel does not compute {name} of this mechanism")
    return answer, {*found.rows}
