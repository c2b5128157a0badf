"""What is asked of a mechanism: δ, ε, β, Rényi divergences and more, as numbers or balls.

For one release H is the largest over its laws. For several, a lattice above gives an upper end, and
one below a lower end (lattice.py); Gaussian factors are first made one. An answer is a ball around
both ends. Where the ways are only an upper bound, there is no lower end but that of a release that
tells nothing, H ≥ (1 − e^ε)⁺.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flint import arb, ctx, fmpq

from . import lattice
from .laws import INFINITE, ONE, ZERO, told
from .lemmas import CURVE, LARGEST, Way, Worst, merged, worst
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
    real,
    sqrt,
)

FINENESS = (16, 64, 256)
"""Steps of a lattice are the total variation of one release over these, in this order."""
LATTICE_BITS = 384
"""Precision of the laws that are put on a lattice."""
BITS = {16: 84, 64: 112, 256: 176}
"""Of a mass, where the witness does not say, by fineness."""


@dataclass(frozen=True)
class Answer:
    """A number, and the rows of the table of lemmas that it rests on."""

    value: Number
    lemmas: set[str] = field(default_factory=set)


def is_single(way: Way) -> bool:
    """Return whether a way is a single release."""
    return len(way) == 1 and way[0][1] == 1


def step_for(way: Way, fineness: int) -> fmpq:
    """Return a step for a lattice: a part of the largest loss where that is rational."""
    found = [law for laws_, _ in way for law in laws_]
    grids = [law.grid for law in found]
    if all(isinstance(grid, fmpq) and grid > 0 for grid in grids):
        common = grids[0]
        for grid in grids[1:]:  # the largest number of which both are multiples
            common = fmpq((common.p * grid.q).gcd(grid.p * common.q), common.q * grid.q)
        if max(grids) / common < 64:
            return common if fineness == FINENESS[0] else common / fineness
    smooth = [law for law in found if not law.atoms] or found
    finest = min(float(ball(law.delta(ZERO)).upper()) for law in smooth) or 1.0
    width = fmpq(max(1, round(finest / fineness * 2**40)), 2**40)
    exact = [x for law in found if isinstance(x := law.largest, fmpq) and x > 0]
    return min(exact) / max(1, int((min(exact) / width).ceil())) if exact else width


def hint(witness: Mapping[str, Any], name: str) -> Any:
    """Return a hint of the witness, or None."""
    text = witness.get(name)
    if text is None:
        return None
    try:
        number = rational(text)
    except ValueError:
        raise NotProved(f"the hint {name} is no number") from None
    if not number > 0:
        raise NotProved(f"the hint {name} is not positive")
    return number


def composed(
    way: Way,
    epsilon: Number,
    budget: Budget,
    upper: bool,
    witness: Mapping[str, Any],
    fine: int,
    added: bool,
) -> arb:
    """Return an upper (lower) end of H of a composition."""
    step = hint(witness, "step_add" if added else "step") or hint(witness, "step")
    step = step or step_for(way, fine)
    bits = int((hint(witness, "bits") or fmpq(BITS[fine])).floor())
    if not 64 <= bits <= 2048:
        raise NotProved("a lattice of fewer than 64 or more than 2048 bits")
    measure = lattice.compose(way, step, bits, budget, upper=upper)
    return measure.delta(epsilon)


def upper_delta(
    found: Worst, epsilon: Number, budget: Budget, witness: Mapping[str, Any] = {}, fine: int = 16
) -> Number:
    """Return a ball of which the upper end is at least H(ε)."""
    ends: list[Number] = []
    for i, way in enumerate(map(merged, found.ways)):
        if is_single(way):
            ends += [law.delta(epsilon) for law in way[0][0]]
        elif _beyond(way, epsilon):
            ends.append(_infinite(way))
        else:
            ends.append(composed(way, epsilon, budget, True, witness, fine, i >= len(found.remove)))
    return maximum([*ends])


def _beyond(way: Way, epsilon: Number) -> bool:
    """Return whether ε is no less than the sum of the largest finite losses."""
    total: Number = ZERO
    for found, count in way:
        losses = []
        for law in found:
            largest = law.largest
            if law.atoms:
                finite = [(p, q) for p, q in law.atoms if not compare(q, "==", 0)]
                if len(finite) < len(law.atoms):
                    kept = [(p, q) for p, q in finite if not compare(p, "==", 0)]
                    largest = maximum([ball(p / q).log() for p, q in kept]) if kept else ZERO
            losses.append(largest)
        total = total + count * maximum(losses)
    return bool(ball(total).is_finite() and compare(total, "<=", epsilon))


def _infinite(way: Way) -> Number:
    """Return the chance of an infinite loss."""
    none: Number = ONE
    for found, count in way:
        none = none * (1 - maximum([law.infinite for law in found])) ** count
    return 1 - none


def lower_delta(
    found: Worst, epsilon: Number, budget: Budget, witness: Mapping[str, Any] = {}, fine: int = 16
) -> Number:
    """Return a ball of which the lower end is at most H(ε); of ways that are attained."""
    if found.attained != CURVE:
        raise NotProved("the table of lemmas bounds this mechanism from above only")
    ends: list[Number] = []
    ways, removed = found.ways, len(found.remove)
    only = str(witness.get("direction", ""))
    if only in ("remove", "add") and found.add:
        ways, removed = (found.remove, removed) if only == "remove" else (found.add, 0)
    for k, way in enumerate(map(merged, ways)):
        if is_single(way):
            ends += [law.delta(epsilon) for law in way[0][0]]
        else:
            for chosen in _choices(way):
                ends.append(composed(chosen, epsilon, budget, False, witness, fine, k >= removed))
    return maximum([*ends])


def _choices(way: Way) -> list[Way]:
    """Return ways with one law for each release: the same of its factor in all, or two by halves."""
    most = max(len(laws_) for laws_, _ in way)
    found: list[Way] = [tuple(((f[min(i, len(f) - 1)],), n) for f, n in way) for i in range(most)]
    if most > 1 and sum(n for _, n in way) > 1:
        half: list[Any] = []
        for f, n in way:
            parts = ((f[0], n - n // 2), (f[-1], n // 2)) if len(f) > 1 else ((f[0], n),)
            half += [((law,), count) for law, count in parts if count]
        found.append(tuple(half))
    return found


def delta(found: Worst, epsilon: Number, budget: Budget) -> arb:
    """Return a ball around H(ε)."""
    trivial = ball(maximum([ZERO, 1 - exp(epsilon)]))
    if all(is_single(merged(way)) for way in found.ways) and found.attained == CURVE:
        return ball(upper_delta(found, epsilon, budget))
    high = upper_delta(found, epsilon, budget, fine=64)
    low = lower_delta(found, epsilon, budget, fine=64) if found.attained == CURVE else trivial
    return ball(low).lower().max(trivial.lower()).union(ball(high).upper())


def max_loss(found: Worst) -> Number:
    """Return the supremum of the loss."""
    ends: list[Number] = []
    for way in found.ways:
        total: Number = ZERO
        for laws_, count in way:
            total = total + count * maximum([law.largest for law in laws_])
        ends.append(total)
    return maximum(ends)


def gaussian_square(found: Worst) -> Number:
    """Return μ² of a mechanism whose pair is Gaussian."""
    ends: list[Number] = []
    for way in map(merged, found.ways):
        laws_ = way[0][0]
        if not is_single(way):
            raise NotProved("a mu of what is not Gaussian")
        for law in laws_:
            if law.mu is None and told(law.delta(ZERO), ">", ZERO):
                raise NotProved("a mu of what is not Gaussian")
            ends.append(2 * law.rho if law.mu is not None and law.rho is not None else ZERO)
    return maximum(ends)


def renyi(found: Worst, order: Number) -> Number:
    """Return the Rényi divergence of an order above 1."""
    if not told(order, ">", ONE):
        raise NotProved("a Rényi divergence of an order that is not above 1")
    ends: list[Number] = []
    for way in map(merged, found.ways):
        total: Number = ZERO
        for laws_, count in way:
            total = total + count * maximum([law.renyi(order) for law in laws_])
        ends.append(total)
    return maximum(ends)


def rho(found: Worst) -> Number:
    """Return a ρ with D_a ≤ ρa for all orders; of losses up to t it is t²/2 (row pure)."""
    ends: list[Number] = []
    for way in map(merged, found.ways):
        total: Number = ZERO
        for laws_, count in way:
            parts = [_rho(law.rho, law.largest) for law in laws_]
            total = total + count * maximum(parts)
        ends.append(total)
    return maximum(ends)


def _rho(known: Number | None, largest: Number) -> Number:
    if known is not None:
        return known
    if isinstance(largest, arb) and not largest.is_finite():
        raise NotProved("a rho of a loss that is not bounded")
    return largest * largest / 2


def epsilon(found: Worst, level: Number, budget: Budget) -> arb:
    """Return a ball around the least ε with H(ε) ≤ δ, between two sides that are checked."""
    if compare(level, "==", ZERO):
        return ball(max_loss(found))
    if not all(is_single(merged(way)) for way in found.ways):
        raise NotProved("an epsilon of a composition: ask for its delta")

    def above(x: fmpq) -> bool | None:
        return compare(upper_delta(found, x, budget), ">", level)

    low, high = fmpq(-1), fmpq(1)
    while above(low) is not True:
        low *= 2
        if low < -(1 << 20):
            raise NotProved("an epsilon beyond a million")
    while above(high) is not False:
        high *= 2
        if high > 1 << 20:
            raise NotProved("an epsilon beyond a million")
    for _ in range(200):
        middle = (low + high) / 2
        side = above(middle)
        if side is None:
            break
        low, high = (middle, high) if side else (low, middle)
    return ball(low).union(ball(high))


def beta(found: Worst, alpha: Number, budget: Budget) -> arb:
    """Return a ball around the least type II error at type I error α.

    For every ε, 1 − H(ε) − e^ε α is at most β. Where Q(L > ε) falls past α between two ε, β is at
    most the chord of the tests there, and the test with the smaller α at least as good.
    """
    if not all(is_single(merged(way)) for way in found.ways) or found.attained != CURVE:
        raise NotProved("the trade-off function of a composition, or of a bound")
    ends = []
    for way in map(merged, found.ways):
        for law in way[0][0]:
            low, high = fmpq(-1), fmpq(1)
            while compare(law.at(low)[1], ">", alpha) is not True and low > -(1 << 20):
                low *= 2
            while compare(law.at(high)[1], "<=", alpha) is not True and high < 1 << 20:
                high *= 2
            for _ in range(120):
                middle = (low + high) / 2
                side = compare(law.at(middle)[1], ">", alpha)
                if side is None:
                    break
                low, high = (middle, high) if side else (low, middle)
            least = maximum([ZERO, *(1 - law.delta(x) - exp(x) * alpha for x in (low, high))])
            (h0, q0), (h1, q1) = law.at(low), law.at(high)
            b0, b1 = 1 - h0 - exp(low) * q0, 1 - h1 - exp(high) * q1
            most = b1
            if compare(q0, ">", q1) and compare(q0, ">=", alpha):
                most = b1 + (alpha - q1) / (q0 - q1) * (b0 - b1)
            ends.append(ball(least).lower().union(ball(most).upper()))
    return -ball(maximum([-x for x in ends]))


VARIANCES: dict[str, str] = {
    "Gaussian": "standard_deviation**2",
    "Laplace": "2*scale**2",
    "LaplaceVector": "2*scale**2",
    "Logistic": "pi**2*scale**2/3",
    "Skellam": "variance",
    "DiscreteLaplace": "2*exp(-1/scale)/(1 - exp(-1/scale))**2",
}
"""Mechanism → the variance of its noise."""


def variance(noise: Noise, value: Callable[[str], Number]) -> Number:
    """Return the variance of the noise of an answer."""
    if noise.name in ("IntegerNoise", "BoundedCountNoise"):
        from .lemmas import Arguments, count_noise

        args = Arguments(noise, value)
        if noise.name == "IntegerNoise":
            masses, low = args.numbers("probabilities"), args.integer("lowest")
        else:
            d = args.integer("support")
            masses, low = count_noise(exp(args["epsilon"]), args["eta"], d)[1], -d
        first = sum(((low + i) * p for i, p in enumerate(masses)), ZERO)
        second = sum(((low + i) ** 2 * p for i, p in enumerate(masses)), ZERO)
        return second - first * first
    if noise.name not in VARIANCES:
        raise NotProved(f"the variance of {noise.name}")
    names = {k: value(v) for k, v in noise.arguments.items() if isinstance(v, str) and v[:1] != "N"}
    return real(VARIANCES[noise.name], names)


def constant(text: str) -> Number:
    """Return the value of a formula without variables."""
    from . import expressions

    try:
        return rational(text)
    except ValueError:
        return expressions.value(expressions.parse(text, "theorem.mechanism"), Budget(seconds=1e9))


def quantity(
    name: str,
    noise: Any,
    adjacency: str | None,
    arguments: Sequence[Number] | Mapping[str, Any],
    budget: Budget,
    value: Callable[[str], Number] = constant,
) -> Answer:
    """Return what an expression asks of a mechanism, with the lemmas that it rests on."""
    given = list(arguments.values()) if isinstance(arguments, Mapping) else list(arguments)
    numbers = [x if isinstance(x, (fmpq, arb)) else rational(str(x)) for x in given]
    wanted = {"delta": 1, "epsilon": 1, "beta": 1, "renyi": 1, "loss_above": 1}.get(name, 0)
    if len(numbers) != wanted:
        raise NotProved(f"{name} with {len(numbers)} numbers")
    if name == "variance" and isinstance(noise, Noise):
        return Answer(variance(noise, value))
    found = worst(noise, adjacency, value, budget)
    if not all(is_single(merged(way)) for way in found.ways):
        with precision(max(ctx.prec, LATTICE_BITS)):  # the masses of a lattice have more digits
            found = worst(noise, adjacency, value, budget)
    rows = set(found.rows)
    match name:
        case "delta":
            return Answer(delta(found, numbers[0], budget), rows)
        case "total_variation":
            return Answer(delta(found, ZERO, budget), rows)
        case "epsilon":
            if found.attained != CURVE:
                raise NotProved("an epsilon of a mechanism that is bounded from above only")
            return Answer(epsilon(found, numbers[0], budget), rows)
        case "beta":
            return Answer(beta(found, numbers[0], budget), rows)
        case "renyi" if found.attained == CURVE:
            return Answer(renyi(found, numbers[0]), rows)
        case "mu":
            return Answer(sqrt(gaussian_square(found)), rows)
        case "rho" if all(law.mu is not None for way in found.ways for f, _ in way for law in f):
            return Answer(rho(found), rows)
        case "max_loss" if found.attained in (CURVE, LARGEST):
            largest = max_loss(found)
            if largest is INFINITE or not ball(largest).is_finite():
                raise NotProved("a largest loss that is infinite")
            return Answer(largest, rows)
        case "loss_above":
            ways = [merged(way) for way in found.ways]
            if len(ways) == 1 and is_single(ways[0]) and len(ways[0][0][0]) == 1:
                height, slope = ways[0][0][0][0].at(numbers[0])
                return Answer(height + exp(numbers[0]) * slope, rows)
    raise NotProved(f"the kernel does not compute {name} of this mechanism")


__all__ = ["Answer", "TooFewDigits", "quantity"]
