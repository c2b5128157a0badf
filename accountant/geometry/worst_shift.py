"""Laplace noise on vectors of which only the ℓ1 and the ℓ2 sensitivity are known.

Neighbours may differ by any x with ‖x‖₁ ≤ Δ₁ and ‖x‖₂ ≤ Δ₂ in d coordinates; t = x/scale, and
T₁, T₂ are the bounds of its norms (with T₂ ≤ T₁ ≤ √d T₂, which lower one of them where they do not
hold). Let κ = T₁²/T₂², and t* = T₂²/T₁: κ coordinates of size t* have both norms.

*Of all shifts, κ equal ones have the largest Rényi divergences.* For order a = z + 1 and one
coordinate, z·D_a = g(t) = ln(((z + 1) e^{zt} + z e^{−(z+1)t})/(2z + 1)). This is the logarithm of
the sum of two exponentials, so with p the share of the first, g''' = (2z + 1)³ p(1 − p)(1 − 2p),
and p ≥ ½ for t ≥ 0: g''' ≤ 0. For γ(t) = g(t)/t the function t³γ'' = t²g'' − 2tg' + 2g is 0 at
t = 0 and has the derivative t²g''' ≤ 0: γ is concave. It increases, since g is convex with
g(0) = 0. With S = Σ t_i and Q = Σ t_i², Jensen's inequality with weights t_i/S gives

    Σ g(t_i) = Σ t_i γ(t_i) ≤ S γ(Q/S) ≤ T₁ γ(T₂²/T₁) = κ g(t*),

as S γ(Q/S) grows with Q and with S (γ(r) − rγ'(r) ≥ 0 for a concave γ ≥ 0). It is attained where κ
is an integer. As g(t) ≤ z(z + 1)t²/2, which is γ'(0) and concavity again, all of this is at most
what Gaussian noise of standard deviation `scale` has.

*Hockey-stick divergences* have no one worst shift: it depends on ε. Three upper bounds hold for
every shift, in any number of coordinates:

- 1 − e^{(ε−T₁)/2}, one coordinate of size T₁;
- for κ ≤ 12 the δ(ε) of ⌈κ⌉ coordinates whose partial sums are √k T₂, the last one T₁
  (`accountant.geometry.shift_order`);
- e^{κ g(t*) − zε} z^z/(1 + z)^{1+z} for every z > 0, from the Rényi divergences.

The worst shift itself is searched among k equal coordinates, and k equal ones with one other; what
is found is attained, so that the truth lies between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TypeAlias, final

from flint import arb

from accountant.budget.calibrate import calibrate
from accountant.budget.target import EpsilonDelta
from accountant.composition.exact.laplace_product import of_distances
from accountant.composition.product import Product
from accountant.core.validate import Integer, Positive
from accountant.errors import expected
from accountant.geometry.shift_order import majorant
from accountant.mechanisms.additive.laplace_vector import LaplaceVector
from accountant.numbers import solve
from accountant.numbers.chernoff import log_peak, rough_log_peak
from accountant.numbers.exact import ExactReal, Number, exact
from accountant.numbers.interval import Interval, enclose
from accountant.numbers.precision import ctx

Shifts: TypeAlias = tuple[tuple[Fraction, int], ...]
"""Sizes of coordinates and how many have each; the others are 0."""

WIDTH = Fraction(1, 10**9)
_ROUGH = 60
"""Bits of δ where shifts are compared."""
_DIGITS = 9
"""Digits of the size of equal coordinates, rounded down."""
_MOST_SIZES = 24
"""Numbers of equal coordinates that are tried, each √2 of the last one: to 3,000."""
_ALL_SIZES = 12
"""Numbers of equal coordinates up to which all are tried."""
_MOST_MAJORANT = 12
"""κ up to which partial sums bound δ: where there are more coordinates, Rényi divergences do."""
_SCALE_PRECISION = 192
"""Bits of the bound by which a scale is found."""


@final
@dataclass(frozen=True)
class WorstShift:
    """What is known of the largest δ(ε) over all shifts."""

    shifts: Shifts
    """The worst shift that was found."""
    attained: Interval
    """Encloses its δ(ε): a lower bound of the largest one."""
    bound: Interval
    """Encloses an upper bound, proved for every shift."""


@final
@dataclass(frozen=True)
class BoundedShifts:
    """Laplace noise of one scale in d coordinates, for all shifts with ‖x‖₁ ≤ l1, ‖x‖₂ ≤ l2."""

    scale: Positive = Positive()
    l1: Positive = Positive()
    l2: Positive = Positive()
    dimension: Integer = Integer(least=1)

    def norms(self) -> tuple[ExactReal, ExactReal]:
        """Return T₁ and T₂."""
        least = min(self.l1, self.l2)
        widest = ExactReal.of_root(Fraction(self.dimension)) * least
        return min(self.l1, widest) / self.scale, least / self.scale

    def coordinates(self) -> Fraction:
        """Return κ = T₁²/T₂², between 1 and d."""
        first, second = self.norms()
        return first.square / second.square

    def renyi(self, order: Number, *, relative_width: Fraction = WIDTH) -> Interval:
        """Enclose κ D_a(t*), the largest Rényi divergence where κ is an integer, else a bound.

        Raises InvalidInputError unless order > 1.
        """
        a = exact(order, "order")
        if not a > ExactReal.of_rational(1):
            raise expected("order", order, "> 1")
        return enclose(
            lambda: self._log_moment(a.ball() - 1) / (a.ball() - 1), relative_width=relative_width
        )

    def delta_bound(self, epsilon: Number, *, relative_width: Fraction = WIDTH) -> Interval:
        """Enclose the least known upper bound of δ(ε), ε ≥ 0, for every shift; 0 from ε = T₁ on.

        It is up to twice the largest δ where κ ≤ 12, and 2 to 6 times for δ > 1e-12 elsewhere.

        Raises InvalidInputError for ε < 0.
        """
        eps = _not_negative(epsilon)
        return enclose(lambda: self._bound(eps), relative_width=relative_width)

    def worst(self, epsilon: Number, *, relative_width: Fraction = WIDTH) -> WorstShift:
        """Search the shift with the largest δ(ε), ε ≥ 0.

        Raises InvalidInputError for ε < 0.
        """
        eps = _not_negative(epsilon)
        best = self.search(eps)
        pair = self._pair(best).to_width(relative_width)
        return WorstShift(
            best,
            enclose(lambda: pair.hockey_stick(eps), relative_width=relative_width),
            self.delta_bound(epsilon, relative_width=relative_width),
        )

    def search(self, epsilon: ExactReal) -> Shifts:
        """Return the candidate with the largest δ(ε)."""
        with ctx.workprec(_ROUGH):
            return max(self.candidates(), key=lambda s: self._pair(s).hockey_stick(epsilon).mid())

    def equal(self, count: int) -> Shifts:
        """Return the largest equal coordinates in the set, rounded down."""
        first, second = float(self.l1), float(self.l2)
        return _rounded([(min(first / count, second / math.sqrt(count)), count)])

    def candidates(self) -> Iterator[Shifts]:
        """Yield shifts in the set: k equal coordinates, or k and another one, rounded down."""
        first, second, d = float(self.l1), float(self.l2), self.dimension
        kappa = self.coordinates()
        near = {math.floor(kappa), math.ceil(kappa)}
        steps = {min(d, round(2 ** (n / 2))) for n in range(_MOST_SIZES)}
        steps |= set(range(1, min(_ALL_SIZES, d) + 1))
        for k in sorted(near | {n for n in steps if n <= d}):
            yield self.equal(k)
        first = min(first, second * math.sqrt(d))
        for k in sorted({math.ceil(kappa) - 1, *near} | steps):
            room = k * ((k + 1) * second**2 - first**2)
            if not 1 <= k < d or room < 0:
                continue
            for sign in (-1, 1):  # both norms are attained
                other = (first + sign * math.sqrt(room)) / (k + 1)
                each = (first - other) / k
                if other > 0 and each > 0:
                    yield _rounded([(each, k), (other, 1)])

    def _pair(self, shifts: Shifts) -> Product:
        listed: list[ExactReal] = []
        for size, count in shifts:
            listed += [ExactReal.of_rational(size) / self.scale] * count
        return of_distances(listed)

    def _log_moment(self, z: arb) -> arb:
        """Return κ g(t*)."""
        first, second = self.norms()
        t = (second * second / first).ball()
        rise = (z + 1) * (z * t).expm1() + z * (-(z + 1) * t).expm1()
        return ExactReal.of_rational(self.coordinates()).ball() * (rise / (2 * z + 1)).log1p()

    def _bound(self, epsilon: ExactReal) -> arb:
        first, second = self.norms()
        if epsilon >= first:
            return arb(0)
        eps, kappa = epsilon.ball(), self.coordinates()
        least = -((eps - first.ball()) / 2).expm1()
        if kappa <= _MOST_MAJORANT:
            least = least.min(majorant(second, kappa).hockey_stick(epsilon))
        z = arb(self._tilt(float(epsilon)))
        return least.min((self._log_moment(z) - z * eps + log_peak(z)).exp())

    def _tilt(self, epsilon: float) -> float:
        """Return the z of the least bound, nearly."""

        def exponent(x: float) -> float:
            with ctx.workprec(_ROUGH):
                z = math.exp(x)
                value = float(self._log_moment(arb(z)))
            return value - z * epsilon + rough_log_peak(z)

        low, high = -9.0, 9.0
        for _ in range(40):
            left, right = low + (high - low) * 0.382, low + (high - low) * 0.618
            low, high = (low, right) if exponent(left) < exponent(right) else (left, high)
        return math.exp((low + high) / 2)


def least_scale(
    epsilon: Number, delta: Number, *, l1: Number, l2: Number, dimension: int
) -> Interval:
    """Enclose the least scale at which Laplace noise is (ε, δ)-DP for all shifts, 0 < δ < 1.

    At the upper end the bound of δ holds for every shift; below the lower end one that was found
    exceeds δ.

    Raises InvalidInputError for ε ≤ 0 or δ outside (0, 1).
    """
    eps, target = _not_negative(epsilon), exact(delta, "delta")
    if eps.sign == 0:
        raise expected("epsilon", epsilon, "> 0")
    if not ExactReal.of_rational(0) < target < ExactReal.of_rational(1):
        raise expected("delta", delta, "in (0, 1)")

    enough = _enough(eps, target, partial(BoundedShifts, l1=l1, l2=l2, dimension=dimension))
    at_enough = BoundedShifts(enough, l1, l2, dimension)
    kappa = at_enough.coordinates()
    tried = {at_enough.equal(math.floor(kappa)), at_enough.equal(math.ceil(kappa))}
    needed = []
    for shifts in tried | {at_enough.search(eps)}:
        found = calibrate(
            LaplaceVector,
            EpsilonDelta(epsilon, delta),
            shifts=[size for size, count in shifts for _ in range(count)],
            relative_width=WIDTH,
        )
        needed.append(found.least.lower)
    upper = Interval.of_exact(enough).upper
    return Interval(max(needed), max(upper, *needed))


def _enough(
    epsilon: ExactReal, delta: ExactReal, bounded: Callable[[Fraction], BoundedShifts]
) -> Fraction:
    """Return the scale at which the bound of δ(ε) is delta, rounded up."""
    goal = delta.ball()

    def excess(scale: ExactReal) -> arb:
        assert scale.rational is not None
        value = bounded(scale.rational)._bound(epsilon)
        return arb.neg_inf() if value.is_zero() else (value / goal).log()

    pure = bounded(Fraction(1)).norms()[0] / epsilon  # enough, by the pure guarantee
    top = Fraction(float(pure)) * Fraction(1 + 10**9, 10**9)
    with ctx.workprec(_SCALE_PRECISION):
        return Fraction(solve.root(excess, (top / 10**6, top), relative_width=WIDTH).upper)


def _rounded(groups: Sequence[tuple[float, int]]) -> Shifts:
    """Round sizes down, to a common grid where there are two."""
    largest = max(size for size, _ in groups)
    digits = (
        _DIGITS - math.floor(math.log10(largest))
        if len(groups) == 1
        else (4 - math.floor(math.log10(largest)))
    )
    unit = Fraction(10) ** -digits
    return tuple((math.floor(size * (1 - 1e-12) / unit) * unit, n) for size, n in groups)


def _not_negative(epsilon: Number) -> ExactReal:
    eps = exact(epsilon, "epsilon")
    if eps.sign < 0:
        raise expected("epsilon", epsilon, "≥ 0")
    return eps
