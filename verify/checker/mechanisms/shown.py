"""What the outputs of a counter show of its measured sums, where there are more of these.

An input moves the outputs A x + L z by A e, and Gaussian noise hides the least ‖v‖² with L v = A e.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Any, Final

from flint import arb

from dpassay.verifier.checker.mechanisms import counters
from dpassay.verifier.checker.notation import Noise
from dpassay.verifier.checker.reals import Real, UnknownError

PARTLY: Final = ("BridgedTree", "HonakerTree", "SmoothBinary")
_MOST_ONES: Final = 40
"""Of balanced leaves: some 10²² steps."""


def hides(noise: Noise) -> bool:
    """Whether the outputs of a counter are asked about, and do not determine the measured sums."""
    if noise.name not in PARTLY or noise["released"] == "measurements":
        return False
    if noise["contributions"] > 1 and noise.name != "BridgedTree":
        return False
    return alone(noise) < counters.sums_of_an_input(noise)


def is_open(noise: Noise) -> bool:
    """Whether what the outputs show lies between two ends."""
    return hides(noise) and (noise["mu"] is None or len(shown_squares(noise)) > 1)


def alone(noise: Noise) -> int:
    """Return how many of the measured sums of an input are outputs."""
    match noise.name:
        case "HonakerTree":
            return 1
        case "SmoothBinary":
            return int(noise["steps"] == 1)
    whole = noise["steps"] >= _sizes(noise)[0]
    return int(whole and (noise["pooled"] == 0 or len(noise["arities"]) == 1))


def shown_squares(noise: Noise) -> list[Any]:
    """Return the largest squared distance in units of the noise, or both its ends."""
    match noise.name:
        case "HonakerTree":
            return [_honaker(int(noise["steps"]).bit_length())]
        case "SmoothBinary":
            return [_leaves(int(noise["steps"]))]
    return _bridged(noise)


def _sizes(noise: Noise) -> list[int]:
    sizes = [1]
    for arity in reversed(noise["arities"][1:]):
        sizes.insert(0, sizes[0] * int(arity))
    return sizes


def _bridged(noise: Noise) -> list[Any]:
    """Return Σ_i (1 − K_{i+r+1}/K_i)‖s_i‖² for the first c inputs, s_i those in cells of level i.

    Outputs up to the end of cells of the first level determine the estimates of these, and for each
    parent those of its cells less their mean. An estimate of variance K_i/S_i, S_i = K_i + … +
    K_{i+r}, gives S_i/K_i·(‖s_i‖² − ‖s_{i−1}‖²/k_i); with S_{i+1}/K_i = S_i/K_i − 1 + K_{i+r+1}/K_i
    the levels add up to that. Inputs in whole cells attain it. Of fewer steps than a cell, those up
    to a smaller cell's end show its sum, and the levels inside.
    """
    n, r, sizes = int(noise["steps"]), int(noise["pooled"]), _sizes(noise)
    c = min(int(noise["contributions"]), n)

    def of(inputs: int) -> Fraction:
        total = Fraction(0)
        for i, size in enumerate(sizes):
            beyond = sizes[i + r + 1] if i + r + 1 < len(sizes) else 0
            square = inputs // size * size**2 + (inputs % size) ** 2
            total += (1 - Fraction(beyond, size)) * square
        return total

    whole = n // sizes[0] * sizes[0]
    if -(-c // sizes[0]) * sizes[0] <= n:
        return [of(c)]
    if whole:
        return [of(min(c, whole)), of(c)]
    first = next(i for i, size in enumerate(sizes) if size <= n)
    low = 1 / counters.output_units(noise, sizes[first])
    for i in range(first + 1, len(sizes)):
        low += Fraction(sum(sizes[i : i + r + 1]), sizes[i]) * (1 - 1 / noise["arities"][i])
    return [low, of(c)]


def _honaker(height: int) -> Fraction:
    """Return the largest square of an input below the first vertex of the last level.

    E = w m + (1 − w)(E_l + E_r) has, given all outputs inside of its vertex, the variance
    V = w² + (1 − w)²V_r. It moves by w for an input on the left, whose E_l came out before with
    d²/V; for one on the right by w + (1 − w)d. Without E_l's the variance of m + … is v/(v + 1/2).
    """
    own, variance, unseen = Fraction(1), Fraction(1), {Fraction(1): Fraction(0)}
    estimate = Fraction(1)  # the variance of E from all that is below
    for _ in range(height - 1):
        own = estimate / (estimate + Fraction(1, 2))
        estimate = own
        best = max(out + d * d / variance for d, out in unseen.items())
        unseen = {own + (1 - own) * d: out for d, out in unseen.items()}
        unseen[own] = max(best, unseen.get(own, best))
        variance = own * own + (1 - own) ** 2 * variance
    return max(out + d * d / variance for d, out in unseen.items())


def _leaves(steps: int) -> Any:
    """Return the largest square over the inputs at balanced leaves.

    Let c be the sum of noise on the way to a vertex, and u = E(0), w = E(1) the least ‖z‖² below it
    for which all outputs are c + … = 0 up to the input, and 1 later: a quadratic in c with p c², so
    that E(c) = u + (w − u − p)c + pc², and over c + z with z² its least is that of u, w below. For
    sums clipped to [0, 1] no z grows, so that an input of smaller u and w is never worse.
    """
    half = counters.balanced(steps)
    if half > _MOST_ONES:
        raise UnknownError(f"what {steps} outputs of balanced leaves show")
    known: dict[tuple[int, int, int], tuple[arb, list[tuple[arb, arb]]]] = {}

    def below(zeros: int, ones: int, leaves: int) -> tuple[arb, list[tuple[arb, arb]]]:
        if not zeros:
            return 1 / arb(ones), [(arb(0), 1 / arb(ones))]
        if (zeros, ones, leaves) not in known:
            left = min(leaves, comb(zeros - 1 + ones, ones))
            p, ends = below(zeros - 1, ones, left)
            if leaves > left:
                right, more = beyond(zeros, ones - 1, leaves - left)
                moved = [(u + right, w) for u, w in ends] + [(u, w + p) for u, w in more]
                ends, p = _maximal(moved), p + right
            known[zeros, ones, leaves] = p, ends
        return known[zeros, ones, leaves]

    def beyond(zeros: int, ones: int, leaves: int) -> tuple[arb, list[tuple[arb, arb]]]:
        if not zeros or not ones:
            return 1 / arb(1 + ones), [(arb(0), 1 / arb(1 + ones))]
        p, ends = below(zeros, ones, leaves)
        found = []
        for u, w in ends:
            slope, other = w - u - p, w - u + p  # E' at 0 and at 1
            low = u - slope * slope / (4 * (1 + p))
            found.append((low, w - other * other / (4 * (1 + p))))
        return p / (1 + p), found

    most, later = arb(0), arb(0)
    for zeros in range(half, 0, -1):  # left of those before the first 1 of the leaves
        before = comb(zeros - 1 + half, half)
        leaves = min(steps + 1 - before, comb(zeros + half - 1, half - 1))
        if leaves > 0:
            p, ends = beyond(zeros, half - 1, leaves)
            for u, _ in ends:
                most = most.max(later + u)
            later += p
    return Real(most.max(later))


def _maximal(ends: list[tuple[arb, arb]]) -> list[tuple[arb, arb]]:
    kept: list[tuple[arb, arb]] = []
    for u, w in sorted(ends, key=lambda each: float(each[0].mid()), reverse=True):
        if not any(u <= more and w <= also for more, also in kept):
            kept.append((u, w))
    return kept
