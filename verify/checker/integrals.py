"""The two laws of the checker whose probabilities are more than one special function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

from mpmath import mp

from verify.checker.arithmetic import AGREEMENT


def laplace_work(distances: Sequence[Any]) -> int:
    """Bound the terms that `laplace_product_tails` adds up."""
    sizes = _multiples(tuple(distances))[1]
    total, reach = 0, 0
    for number, size in enumerate(sizes, 1):
        reach += int(size) if isinstance(size, int) else 1 << number
        total += 4 * (number + 1) * min(2 * reach + 1, 3**number)
    return total


def laplace_product_tails(distances: list[Any], epsilon: Any) -> tuple[Any, Any]:
    """Return both tails of a sum of independent losses of Laplace pairs.

    With dP = e^{l/2} dm and dQ = e^{−l/2} dm, each coordinate gives m two atoms e^{−t/2}/2 at ±t
    and the density e^{−t/2}/4 on (−t, t), the difference of the half-lines below t and −t. So m
    is a sum of atoms and of powers (j − l)₊^{n−1}/(n − 1)!. Their integrals against e^{±l/2} over
    l > ε are e^{±j/2} times A_n and B_n, with A_0 = B_0 = 1, z = j − ε and

        A_{n+1} = 2(A_n − e^{−z/2} z^n/n!),   B_{n+1} = 2(e^{z/2} z^n/n! − B_n).

    Both lose digits with n, and so does the sum: three for each of the distances are added.
    """
    unit, weights = _laplace_weights(tuple(distances))
    by_place: dict[Any, dict[int, int]] = {}
    for (j, n), weight in weights.items():
        if weight:
            by_place.setdefault(j, {})[n] = weight
    p = q = mp.zero
    with mp.workdps(mp.dps + 3 * len(distances)):
        for j, row in by_place.items():
            place = j * unit
            z = place - epsilon
            if not z > AGREEMENT:
                continue
            far, power = mp.exp(mp.mpf(z) / 2), mp.one
            above, below, up, down = mp.one, mp.one, mp.zero, mp.zero
            for n in range(max(row) + 1):
                weight = row.get(n, 0)
                up, down = up + weight * above, down + weight * below
                above, below = 2 * (above - power / far), 2 * (far * power - below)
                power *= mp.mpf(z) / (n + 1)
            side = mp.exp(mp.mpf(place) / 2)
            p, q = p + side * up, q + down / side
        scale = mp.exp(-mp.mpf(sum(distances)) / 2) / mp.mpf(4) ** len(distances)
        p, q = scale * p, scale * q
    return +p, +q


def _multiples(distances: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """Write rational distances as multiples of one unit; others are what they are."""
    if not all(isinstance(distance, Fraction) for distance in distances):
        return 1, list(distances)
    below = math.lcm(*(distance.denominator for distance in distances))
    whole = [int(distance * below) for distance in distances]
    common = math.gcd(*whole)
    return Fraction(common, below), [size // common for size in whole]


@lru_cache(maxsize=64)
def _laplace_weights(distances: tuple[Any, ...]) -> tuple[Any, dict[tuple[Any, int], int]]:
    """Return the unit of j, and the weights, times 4 for each of the distances, by j and n."""
    unit, sizes = _multiples(distances)
    weights: dict[tuple[Any, int], int] = {(0, 0): 1}
    for t in sizes:
        grown: dict[tuple[Any, int], int] = {}
        for (j, n), weight in weights.items():
            for state, share in (
                ((j + t, n), 2),
                ((j - t, n), 2),
                ((j + t, n + 1), 1),
                ((j - t, n + 1), -1),
            ):
                grown[state] = grown.get(state, 0) + weight * share
        weights = grown
    return unit, weights


def rank_one_complement(dimension: Any, ratio: Any, epsilon: Any) -> Any:
    """Return G(ε) of `_rank_one`, with digits to spare for the power a and for differences."""
    with mp.workdps(mp.dps + 15 + len(str(dimension))):
        return _rank_one(dimension, ratio, epsilon, mp.prec)


@lru_cache(maxsize=64)
def _rank_one(dimension: Any, ratio: Any, epsilon: Any, _precision: int) -> Any:
    """Return G(ε) = ∫ erfc(ρ/√2) c (1 − τ²)^{a−1} dτ for the rank-one Gaussian law.

    Noise √σ_* z v with z normal and v uniform on the sphere of R^M; a = (M − 1)/2, κ the shift
    in units of √σ_*. At the distances ρ, w from the centres of P and Q the loss is
    L = 2a ln(w/ρ) + (w² − ρ²)/2, and {L > ε} meets the sphere of radius ρ in the cap cos > τ(ρ),
    of share C(τ), C' = −c (1 − τ²)^{a−1}. Integrating P(L > ε) = ∫ φ(ρ) C(τ(ρ)) dρ by parts gives
    1 − G(ε), and the mirror image x → s − x gives Q(L > ε) = P(L < −ε) = G(−ε).

    The curve L = ε is run through by x = ln(s/(1 − s)), s the share of (w² − ρ²)/2 in ε: there
    ln(w²/ρ²) = ε(1 − s)/a. It has |τ| < 1 from the segment between the centres on, except
    between two crossings of the axis beyond a centre, if there are any.
    """
    a, kappa, size = mp.mpf(dimension - 1) / 2, mp.mpf(ratio), mp.mpf(abs(epsilon))
    c = mp.exp(mp.loggamma(a + mp.mpf(1) / 2) - mp.loggamma(a)) / mp.sqrt(mp.pi)
    mirrored = epsilon < 0

    def integrand(x: Any) -> Any:
        s = 1 / (1 + mp.exp(-x))
        d, z = 2 * size * s, size * (1 - s) / a
        shape = z / mp.expm1(z) if z else mp.one
        square = 2 * a * mp.exp(x) * shape + (d if mirrored else 0)  # ρ², or w² when mirrored
        growth = 1 - s + s * shape + (0 if mirrored else s * z)  # its logarithmic derivative
        sign, root = (-1 if mirrored else 1), mp.sqrt(square)
        tau = (sign * d - kappa**2) / (2 * kappa * root)
        slope = sign * d * (1 - s) / (2 * kappa * root) - tau * growth / 2
        inside = max((1 - tau) * (1 + tau), mp.zero)
        return mp.erfc(root / mp.sqrt(2)) * inside ** (a - 1) * slope

    def crossing(v: Any, ends: list[Any]) -> Any:  # x at the root of v, ln(w²/ρ²) = 2v there
        h = mp.findroot(v, ends, solver="anderson", tol=mp.eps, verify=False) if size else ends[0]
        return mp.log(size - 2 * a * h) - mp.log(2 * a * h) if size else mp.log(kappa**2 / (8 * a))

    def between(h: Any) -> Any:
        return 2 * a * h + kappa**2 / 2 * mp.tanh(h / 2) - size

    def beyond(h: Any) -> Any:
        return 2 * a * h + kappa**2 / 2 * mp.coth(h / 2) - size

    horizon = mp.log(mp.log(10) * (2 * mp.dps + 20) + size) - mp.log(a)
    pieces = [(crossing(between, [mp.zero, size / (2 * a)]), horizon)]
    lowest = 2 * mp.asinh(kappa / mp.sqrt(8 * a))
    if size and beyond(lowest) < 0:
        near = crossing(beyond, [lowest, size / (2 * a)])
        far = crossing(beyond, [kappa**2 / size, lowest])
        pieces = [(pieces[0][0], near), (far, horizon)]
    total = mp.zero
    for low, high in pieces:
        steps = max(int(mp.ceil((high - low) / 2)), 0)
        cuts = [low + (high - low) * k / steps for k in range(steps + 1)] if steps else []
        for index, cut in enumerate(pairwise(cuts)):  # (1 − τ²)^{a−1} may be singular at an end
            method = "tanh-sinh" if index in (0, steps - 1) else "gauss-legendre"
            total += mp.quad(integrand, cut, method=method)
    return c * total
