"""The two laws of the checker whose probabilities are more than one special function."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from flint import acb, arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.arithmetic import crossing
from dpassay.verifier.checker.reals import FewDigitsError, Real, UnknownError, ball, compare

_SPARE_BITS = 40
"""Bits for rounding, besides those that the number of factors takes."""
_LAPLACE_BITS = 10
"""Bits that every distance of a product of Laplace laws takes."""
_MOST_EVALUATIONS = 200_000
"""Evaluations of an integrand: a minute."""
_MOST_BITS = 1300
"""Bits beyond which an integral is no more precise: it would take minutes."""
_FARTHEST = 1 << 12
"""Losses beyond it are not asked for."""
_LARGEST_PRODUCT = 40
"""Half powers up to which they are products, which are sharper than exponentials."""

Bracket: TypeAlias = tuple[Fraction, Fraction]
"""Two numbers with a third one between them."""


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

    Both lose digits with n, and so does the sum: ten bits for each of the distances are added.
    """
    if any(compare(distance, ">", Fraction(0)) is None for distance in distances):
        raise FewDigitsError
    bits = ctx.prec + _SPARE_BITS + _LAPLACE_BITS * len(distances)
    with ctx.workprec(bits):
        return _laplace_sum(distances, epsilon)


def _laplace_sum(distances: list[Any], epsilon: Any) -> tuple[Any, Any]:
    unit, weights = _laplace_weights(tuple(distances))
    by_place: dict[Any, dict[int, int]] = {}
    for (j, n), weight in weights.items():
        if weight:
            by_place.setdefault(j, {})[n] = weight
    p, q = arb(0), arb(0)
    for j, row in by_place.items():
        place = j * unit
        if not place - epsilon > 0:
            continue
        z, half = ball(place - epsilon), ball(place) / 2
        far, power = (z / 2).exp(), arb(1)
        above, below, up, down = arb(1), arb(1), arb(0), arb(0)
        for n in range(max(row) + 1):
            weight = row.get(n, 0)
            up, down = up + weight * above, down + weight * below
            above, below = 2 * (above - power / far), 2 * (far * power - below)
            power *= z / (n + 1)
        side = half.exp()
        p, q = p + side * up, q + down / side
    scale = (-ball(sum(distances, start=Fraction(0))) / 2).exp() / arb(4) ** len(distances)
    return Real(scale * p), Real(scale * q)


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


def rank_one_complement(dimension: Any, ratio: Any, epsilon: Any) -> Real:
    """Return G(ε) of `_RankOne`, with bits to spare for the power a and for differences."""
    with ctx.workprec(min(ctx.prec, _MOST_BITS) + _SPARE_BITS + int(dimension).bit_length()):
        return _rank_one(dimension, ratio, epsilon, ctx.prec)


@lru_cache(maxsize=64)
def _rank_one(dimension: Any, ratio: Any, epsilon: Any, _precision: int) -> Real:
    return Real(_RankOne(dimension, ratio, epsilon).complement())


class _RankOne:
    """G(ε) = ∫ erfc(ρ/√2) c (1 − τ²)^{a−1} dτ for the rank-one Gaussian law.

    Noise √σ_* z v with z normal and v uniform on the sphere of R^M; a = (M − 1)/2, κ the shift
    in units of √σ_*. At the distances ρ, w from the centres of P and Q the loss is
    L = 2a ln(w/ρ) + (w² − ρ²)/2, and {L > ε} meets the sphere of radius ρ in the cap cos > τ(ρ),
    of share C(τ), C' = −c (1 − τ²)^{a−1}. Integrating P(L > ε) = ∫ φ(ρ) C(τ(ρ)) dρ by parts gives
    1 − G(ε), and the mirror image x → s − x gives Q(L > ε) = P(L < −ε) = G(−ε).

    The curve L = ε is run through by x = ln(s/(1 − s)), s the share of (w² − ρ²)/2 in ε: there
    ln(w²/ρ²) = ε(1 − s)/a. It has |τ| < 1 from the segment between the centres on, except
    between two crossings of the axis beyond a centre, if there are any.
    """

    def __init__(self, dimension: Any, ratio: Any, epsilon: Any) -> None:
        self.a, self.kappa = ball(dimension - 1) / 2, ball(ratio)
        self.size, self.zero = abs(ball(epsilon)), compare(epsilon, "==", Fraction(0)) is True
        mirrored = compare(epsilon, "<", Fraction(0))
        if mirrored is None:
            raise FewDigitsError
        self.mirrored = mirrored
        self.c = ((self.a + arb(1) / 2).lgamma() - self.a.lgamma()).exp() / arb.pi().sqrt()

    def complement(self) -> arb:
        """Enclose G: by integrals of an analytic function, and bounds of what they leave out."""
        total, slack = arb(0), arb(0)
        horizon = self._horizon()
        for low, high in self._pieces(horizon):
            start, stop = low[1], min(high[0], horizon)
            for sliver in {low, high}:
                if sliver[0] < horizon:
                    slack += self._sliver(*sliver)
            if start < stop:
                total += self._integral(start, stop)
        slack += self._tail(horizon)
        return self.c * (total + slack.union(-slack))

    def _curve(self, x: Any, analytic: bool) -> tuple[Any, Any, Any]:
        """Return ρ or w, 1 − τ² and the slope of τ at x, which may be complex."""
        share = 1 / (1 + (-x).exp())
        rest = 1 / (1 + x.exp())
        d, z = 2 * self.size * share, self.size * rest / self.a
        shape = (-z / 2).exp() / (acb(0, 1) * z / 2).sinc()  # z/(e^z − 1)
        if isinstance(x, arb):
            shape = shape.real
        square = 2 * self.a * x.exp() * shape + (d if self.mirrored else 0)
        growth = rest + share * shape + (0 if self.mirrored else share * z)
        sign = -1 if self.mirrored else 1
        root = square.sqrt(analytic) if isinstance(square, acb) else square.sqrt()
        tau = (sign * d - self.kappa**2) / (2 * self.kappa * root)
        slope = sign * d * rest / (2 * self.kappa * root) - tau * growth / 2
        return root, 1 - tau * tau, slope

    def _integral(self, start: Fraction, stop: Fraction) -> arb:
        half = int((2 * self.a - 2).unique_fmpz() or 0)  # 2(a − 1)

        def integrand(x: acb, analytic: bool) -> acb:
            root, inside, slope = self._curve(x, analytic)
            if analytic:
                shape = _half_power(inside, half)
            else:  # x is real, and in the range where |τ| ≤ 1
                low = inside.real.lower().max(arb(0)).min(arb(1))
                high = inside.real.upper().max(arb(0)).min(arb(1))
                shape = acb((low ** (self.a - 1)).union(high ** (self.a - 1)))
            return acb((root / arb(2).sqrt()).erfc() * shape * slope)

        ends = acb(ball(start)), acb(ball(stop))
        found = acb.integral(integrand, *ends, eval_limit=_MOST_EVALUATIONS)
        return found.real

    def _sliver(self, low: Fraction, high: Fraction) -> arb:
        """Bound the integral where it is not known whether |τ| < 1: (1 − τ²)^{a−1} is at most 1."""
        root, _, slope = self._curve(ball(low).union(ball(high)), False)
        return arb(ball(high - low) * abs(slope) * (root / arb(2).sqrt()).erfc())

    def _horizon(self) -> Fraction:
        reach = (ball(Fraction(7, 10)) * ctx.prec + self.size + _SPARE_BITS) / self.a
        return _near(reach.log())

    def _tail(self, horizon: Fraction) -> arb:
        """Bound the integral beyond X = `horizon`, without c.

        There ρ²/2 ≥ Be^x, B = az/(e^z − 1) at X, erfc(ρ/√2) ≤ e^{−ρ²/2}, and the slope of τ is at
        most ε(1 − s)/(κρ) + (1 + z)/2, which falls; ∫ e^{−Be^x} dx ≤ e^{−Be^X}/(Be^X).
        """
        x = ball(horizon)
        rest = 1 / (1 + x.exp())
        z = self.size * rest / self.a
        size = self.a * x.exp() * ((-z / 2).exp() / (acb(0, 1) * z / 2).sinc()).real
        slope = self.size * rest / (self.kappa * (2 * size).sqrt()) + (1 + z) / 2
        return slope * (-size).exp() / size

    def _pieces(self, horizon: Fraction) -> list[tuple[Bracket, Bracket]]:
        """Return the places between which |τ| < 1, each one between two numbers."""
        end = horizon, horizon
        if self.zero:
            x = (self.kappa**2 / (8 * self.a)).log()
            return [((_below(x), -_below(-x)), end)]
        low = Fraction(-1)
        while not self._between(low) > 0:
            low = 2 * low
            if low < -_FARTHEST:
                raise UnknownError("a rank-one Gaussian law at so extreme a loss")
        start = _root(self._between, low)
        lowest = 2 * (self.kappa / (8 * self.a).sqrt()).asinh()
        room = self.size - 2 * self.a * lowest
        if room <= 0:
            return [(start, end)]
        if not room > 0:
            raise FewDigitsError
        middle = _near((room / (2 * self.a * lowest)).log())
        at_lowest = self._beyond(middle)
        if compare(at_lowest, ">=", Fraction(0)) is None:
            raise FewDigitsError
        if at_lowest >= 0:
            least = 2 * self.a * lowest + self.kappa**2 / 2 * (lowest / 2).coth() - self.size
            if not least > 0:
                raise FewDigitsError
            return [(start, end)]
        far = _root(lambda x: -self._beyond(middle + x), Fraction(0))
        near = _root(lambda x: -self._beyond(middle - x), Fraction(0))
        return [
            (start, (middle - near[1], middle - near[0])),
            ((middle + far[0], middle + far[1]), end),
        ]

    def _between(self, x: Fraction) -> Real:
        """Return what has the sign of 1 + τ or 1 − τ on the segment: it falls."""
        h, share = self._place(x)
        return Real(self.kappa**2 / 2 * (h / 2).tanh() - self.size * share)

    def _beyond(self, x: Fraction) -> Real:
        """Return the same beyond a centre: it falls, and then it rises."""
        h, share = self._place(x)
        return Real(self.kappa**2 / 2 * (h / 2).coth() - self.size * share)

    def _place(self, x: Fraction) -> tuple[arb, arb]:
        """Return h = ln(w/ρ) and s."""
        at = ball(x)
        return self.size / (1 + at.exp()) / (2 * self.a), 1 / (1 + (-at).exp())


def _half_power(base: acb, half: int) -> acb:
    """Return base^{half/2} where it is analytic."""
    if half > _LARGEST_PRODUCT:
        return (base.log(True) * half / 2).exp()
    return base.sqrt(True) ** half if half % 2 else base ** (half // 2)


def _root(falling: Callable[[Fraction], Real], low: Fraction) -> Bracket:
    """Enclose where a function that falls from `low` on, where it is > 0, is 0."""
    step = Fraction(1)
    while not falling(low + step) <= 0:
        step = 2 * step
        if step > _FARTHEST:
            raise UnknownError("a rank-one Gaussian law at so extreme a loss")
    return crossing(falling, low, low + step, ctx.prec)


def _near(x: arb) -> Fraction:
    """Return a short number near a ball."""
    return Fraction(round(float(x) * 2**20), 2**20)


def _below(x: arb) -> Fraction:
    mantissa, exponent = x.lower().man_exp()
    return int(mantissa) * Fraction(2) ** int(exponent)
