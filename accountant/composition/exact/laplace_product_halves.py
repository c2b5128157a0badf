"""The exact terms of a product of Laplace laws with many different shifts: sums over two halves.

Every sum J of signed shifts is J₁ + J₂, of the signs of two halves of the coordinates, and its
weights are Σ_m w_m(J) y^m = w(J₁; y) w(J₂; y). With z = a + b, a = (J₁ − ε)/2 and b = J₂/2, the
function that a jump J > ε contributes for y^m
(`accountant.composition.exact.laplace_product_sums`) is

    α e^z + β_m e^{−z} − Σ_{r<m} γ_{m,r} z^r/r!,

so that a sum over all J₂ > ε − J₁ takes the sums of w_j(J₂) e^{±b} and of w_j(J₂) b^q alone. While
J₁ grows more J₂ count, and these few sums are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from flint import arb, arb_poly, fmpz, fmpz_poly

from accountant.composition.exact.laplace_product_plan import Kernel
from accountant.numbers.exact import ExactReal

Weights: TypeAlias = Mapping[int, fmpz_poly]
"""Jumps, and Σ_m w_m y^m of each."""


def sum_of_halves(
    halves: tuple[Weights, Weights],
    parts: int,
    where: tuple[ExactReal, ExactReal, int],
    kernel: Kernel,
) -> arb:
    """Return the sum over all J₁ + J₂ > bar of the terms m < parts.

    Parameters
    ----------
    halves
        The jumps of both halves with their weights.
    parts
        M, the number of terms.
    where
        The unit of the jumps, ε, and the bar in units.
    kernel
        Which of the three functions.
    """
    (first, second), (unit, epsilon, bar) = halves, where
    half, eps = unit.ball() / 2, epsilon.ball() / 2
    waiting = sorted(second.items(), reverse=True)
    rising, falling = [arb(0)] * parts, [arb(0)] * parts
    powers = [arb_poly()] * parts
    total, taken = arb(0), 0
    for jump, weights in sorted(first.items()):
        while taken < len(waiting) and waiting[taken][0] + jump > bar:
            place, others = waiting[taken]
            taken += 1
            b = place * half
            up = b.exp()
            down, series = 1 / up, arb_poly(_series(b, parts - 1))
            for j, weight in enumerate(_balls(tuple(others.coeffs()))):
                rising[j] += weight * up
                falling[j] += weight * down
                powers[j] += weight * series
        if taken:
            plan = _factors(tuple(weights.coeffs()), parts, kernel)
            total += _term(plan, jump * half - eps, (rising, falling, powers))
    return total


@lru_cache(maxsize=256)
def _balls(weights: tuple[fmpz, ...]) -> tuple[arb, ...]:
    return tuple(map(arb, weights))


def _series(x: arb, length: int) -> list[arb]:
    """Return x^n/n!, n < length."""
    found = [arb(1)]
    for n in range(1, length):
        found.append(found[-1] * x / n)
    return found


Table: TypeAlias = tuple[list[arb], list[arb], list[arb_poly]]
"""What is multiplied by the sums of w_j e^b and of w_j e^{−b}; and Σ_r g_{j,r} y^{M − 2 − r}."""


@lru_cache(maxsize=256)
def _factors(weights: tuple[fmpz, ...], parts: int, kernel: Kernel) -> Table:
    """Return the factors that the weights w_i(J₁) give for j + i = m < M.

    Those of z^r/r! are g_{j,r} = Σ γ_{m,r} w_i over r < m < M.
    """
    rise, fall, rests = [], [], []
    for j in range(parts):
        kept = list(enumerate(weights[: parts - j], j))  # m, and w_i with i = m − j
        rise.append(arb(sum((w for _, w in kept), start=fmpz(0))))
        fall.append(arb(sum((-w if m % 2 else w for m, w in kept), start=fmpz(0))))
        rows = [
            sum((_gamma(kernel, m, r) * w for m, w in kept if m > r), start=fmpz(0))
            for r in range(parts - 1)
        ]
        rests.append(arb_poly([arb(g) for g in rows[::-1]]))
    zero = [arb(0)] * parts
    if kernel is Kernel.P:
        return rise, zero, rests
    return (zero, fall, rests) if kernel is Kernel.Q else (rise, [-f for f in fall], rests)


def _gamma(kernel: Kernel, m: int, r: int) -> int:
    mirrored = -1 if (m + r) % 2 else 1
    return {Kernel.P: 1, Kernel.Q: mirrored, Kernel.EXCESS: 1 - mirrored}[kernel]


def _term(factors: Table, a: arb, sums: tuple[list[arb], list[arb], list[arb_poly]]) -> arb:
    """Return what one J₁ contributes, beside the J₂ that are summed.

    z^r/r! is the coefficient of y^r in Σ a^n y^n/n! times Σ b^q y^q/q!.
    """
    (rise, fall, rests), (rising, falling, powers) = factors, sums
    up, last = a.exp(), len(rests) - 2
    grown = sum((f * s for f, s in zip(rise, rising, strict=True)), start=arb(0))
    fallen = sum((f * s for f, s in zip(fall, falling, strict=True)), start=arb(0))
    whole = sum((g * s for g, s in zip(rests, powers, strict=True)), start=arb_poly())
    total = sum((whole[last - n] * x for n, x in enumerate(_series(a, last + 1))), start=arb(0))
    return grown * up + fallen / up - total
