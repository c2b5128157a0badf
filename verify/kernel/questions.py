"""Quantities of mechanisms inside formulas, as numbers or balls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from flint import arb, ctx, fmpq

from . import laws, lemmas
from .expressions import real
from .laws import ONE, ZERO
from .lemmas import Worst, merged, worst
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
    sqrt,
    whole,
)
from .quantities import (
    LATTICE_BITS,
    gaussian_square,
    is_single,
    lower_delta,
    max_loss,
    renyi,
    rho,
    upper_delta,
)


def delta(found: Worst, epsilon: Number, budget: Budget) -> arb:
    """Return a ball that contains H(ε), the mechanism's least δ at ε."""
    if is_single(found) and found.lower is None:
        return ball(upper_delta(found, epsilon, budget))
    high = upper_delta(found, epsilon, budget)
    low = maximum([ZERO, 1 - exp(epsilon)])
    with suppress(NotProved):
        low = maximum([low, lower_delta(found, epsilon, budget)])
    return ball(low).lower().union(ball(high).upper())


def halved(above: Callable[[fmpq], bool | None]) -> tuple[fmpq, fmpq]:
    """Bisect: return near numbers low < high with `above(low)` true and `above(high)` false."""
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
    """Return a ball that contains the least ε ≥ 0 with H(ε) ≤ δ."""
    if compare(level, "==", ZERO):
        return ball(max_loss(found))
    if not is_single(found):
        raise NotProved("the kernel has no epsilon of a composition: use its delta")
    low, high = halved(lambda x: compare(upper_delta(found, x, budget), ">", level))
    return ball(low).union(ball(high)).max(arb(0))


def beta(found: Worst, alpha: Number) -> arb:
    """Return a ball that contains the least type II error β at type I error α.

    For every ε, β ≥ 1 − H(ε) − e^ε α. If Q(L > ε) crosses α between two values of ε, β is at most
    the chord between the two likelihood-ratio tests, and at most the β of the test with smaller α.

    If the worst pair depends on ε, some pair raises an event of probability p to F(p), for every p,
    and none raises it further; F is concave (lemmas exponential, permute-and-flip). H(ε) is the
    maximum of F(p) − e^ε p, and β = 1 − F(α) is convex, so the same bounds hold.
    """
    if not is_single(found) or found.lower is not None:
        raise NotProved("the kernel has no trade-off function of a composition or a bound")
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
    """Return the variance of the noise on one coordinate of the output."""
    args = lemmas.Arguments(noise, value)
    if noise.name == "DiscreteGaussian":
        return _discrete_gaussian_variance(args["parameter"])
    if noise.name == "IntegerNoise":
        masses, low = args.masses("probabilities"), args.integer("lowest")
    elif noise.name == "OptimalEllipse":
        return ellipse(args.integer("dimension"), args.integer("sparsity")) / args["mu"] ** 2
    elif noise.name == "BoundedCountNoise":
        low = -args.integer("support")
        from .particular import count_noise

        masses = count_noise(args)
    else:
        raise NotProved(f"the kernel has no number for the variance of {noise.name}")
    first = sum(((low + i) * p for i, p in enumerate(masses)), ZERO)
    return sum(((low + i) ** 2 * p for i, p in enumerate(masses)), ZERO) - first * first


def ellipse(d: int, k: int) -> Number:
    """Return the variance per coordinate of the optimal ellipse for μ = 1 (lemma ellipse).

    With P_j = j²/d and Q_j = j − P_j, it minimises the trace 1/x + (d − 1)/y subject to
    P_j x + Q_j y ≤ 1 for 0 ≤ j ≤ k. By duality the minimum is the largest (√P + √((d − 1)Q))² over
    the polygon through the points (P_j, Q_j). On each segment this is concave, with its peak where
    P (d − 1)(dQ)² = Q (dP)², or at an end.
    """
    if not 1 <= k <= d or d > 10_000:
        raise NotProved("the kernel has ellipses with 1 <= sparsity <= dimension <= 10000")
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
    """Return Σ z² e^(−z²/(2v))/Σ e^(−z²/(2v)), with a geometric bound of the tails."""
    last = whole((2 * ball(v) * (ctx.prec + 60)).sqrt()) + 2
    if last > laws.MOST_MASSES:
        raise NotProved("discrete Gaussian noise of so large a parameter takes too long")
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
    """Return the quantity `name` of a mechanism, and the lemmas that it rests on."""
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
        case "loss_above" if only is not None and len(ways[0][0][0]) == 1 and found.lower is None:
            if only.only_alone:
                raise NotProved(
                    "the worst pair depends on epsilon: there is no one law of the loss"
                )
            height, slope = only.at(numbers[0])
            answer = height + exp(numbers[0]) * slope
        case _:
            raise NotProved(f"the kernel does not compute {name} of this mechanism")
    if not ball(answer).is_finite():
        raise TooFewDigits(f"{name} of a mechanism is infinite, or has no finite bound")
    return answer, {*found.rows}
