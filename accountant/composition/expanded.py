"""A few Laplace releases, and lists of losses, beside smooth losses: one contour for every jump.

The transform of the loss of Laplace noise at distance t, with s = z + ½ and y = 1/(2z + 1), is

    e^{−t/2} (cosh ts + y sinh ts) = ½ e^{−t/2} (e^{ts} (1 + y) + e^{−ts} (1 − y)).

So that of d releases, of distances t_i and T = Σ t_i, is a sum over the sums J of ±t_i,

    2^{−d} Σ_J e^{(J − T)/2} e^{Jz} Σ_m w_m(J) y^m,

w_m(J) the coefficient of y^m in (1 + y)^p (1 − y)^{d − p}, p the number of signs +. With the
profile H of the smooth losses beside them, and U_m the sum of m independent exponential variables
of mean 2, whose transform y^m is, the profile of all together is

    2^{−d} Σ_J e^{(J − T)/2} Σ_m w_m(J) K_m(ε − J),    K_m(ε) = E[H(ε + U_m)],

without the jumps that make a transform oscillate on every line: each K_m is a contour integral of
its own (`saddle_certified.Kernel`), on a straight line, or those of one J are on one that bends. A
list of losses adds its values to J. As 0 ≤ K_m ≤ H, what is beyond all that matters is bounded by
Chernoff's inequality.

*Below the least loss.* With x = L − ε ≥ 0, partial fractions of y^m/(z(z + 1)) give

    K_m(ε) = E[1 − (−1)^m e^{−x} − 2 Σ_n (x/2)^{n−1} e^{−x/2}/(n − 1)!],   n = m, m − 2, … ≥ 1,

with the derivatives of M at −½. These are central differences: j of them at the distance r are off
by at most (j/24) r² sup |M^{(j+2)}| (a B-spline has that variance), and as M ≤ 1 on [−1, 0] and
|L|^n ≤ n! e^{ρ|L|}/ρ^n, |M^{(n)}| ≤ 2 n!/ρ^n within ½ − ρ of −½.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb, fmpz_poly

from accountant.composition.argument import ends, exact_sum
from accountant.composition.bent import bent_integral
from accountant.composition.convolution import ConvolvedPair
from accountant.composition.finite import finite
from accountant.composition.joint import Factor, FactorsPair
from accountant.composition.line import guess_epsilon
from accountant.composition.rough import rough_root
from accountant.composition.saddle_certified import Kernel, integral
from accountant.composition.saddle_cut import chosen, coarse, lost, near
from accountant.composition.saddle_pair import SmoothPair, transform
from accountant.composition.saddle_search import Strip
from accountant.composition.subsampling import SubsampledPair
from accountant.errors import UndecidedError
from accountant.interval import START_PRECISION, asked_width, ball
from accountant.mechanisms.laplace import LaplacePair
from accountant.number import ExactReal
from accountant.pairs.finite import FinitePair
from accountant.pairs.laplace_product import LaplaceProductPair
from accountant.precision import cached_property, ctx

MOST_TERMS = 64
"""Most integrals of one value."""
_SPARE = 10
_LESS = 3
_FEWEST = 8
_ENOUGH = 24
_TINY = 1e-9
_RHO = 0.375
_ROUGH_WIDTH = Fraction(1, 10**6)
_LEAST_WIDTH = Fraction(1, 10**12)
_CLOSE = 1e-3


def applies(factors: Sequence[Factor]) -> bool:
    """Whether these are subsampled Gaussian releases beside few Laplace ones, and lists."""
    found = _Parts.of(factors)
    if found is None or not found.laplace:
        return False
    sides = {pair.mixed_first for pair, _ in found.smooth if isinstance(pair, SubsampledPair)}
    return len(sides) == 1 and found.terms() <= MOST_TERMS


@final
@dataclass(frozen=True)
class _Parts:
    """The factors by kind."""

    smooth: tuple[Factor, ...]
    laplace: tuple[tuple[ExactReal, int], ...]
    """Distances, and how many releases have them."""
    listed: tuple[tuple[FinitePair, int], ...]

    @staticmethod
    def of(factors: Sequence[Factor]) -> _Parts | None:
        """Sort the factors; None where one is of another kind."""
        smooth: list[Factor] = []
        laplace: dict[ExactReal, int] = {}
        listed: list[tuple[FinitePair, int]] = []
        for pair, count in factors:
            small = finite(pair)
            if transform(pair) is not None:
                smooth.append((pair, count))
            elif isinstance(pair, LaplacePair):
                laplace[pair.distance] = laplace.get(pair.distance, 0) + count
            elif isinstance(pair, LaplaceProductPair):
                for multiple, number in pair.groups:
                    distance = ExactReal.of_rational(multiple) * pair.unit
                    laplace[distance] = laplace.get(distance, 0) + number * count
            elif small is not None:
                listed.append((small, count))
            else:
                return None
        return _Parts(tuple(smooth), tuple(laplace.items()), tuple(listed))

    def terms(self) -> int:
        """Return how many integrals there are."""
        number = 1 + sum(count for _, count in self.laplace)
        for _, count in self.laplace:
            number *= count + 1
        return number * ConvolvedPair(self.listed).size() if self.listed else number


@final
@dataclass(frozen=True)
class _Jump:
    """One J: its size, the weight 2^{−d} e^{(J − T)/2} times a mass, and the w_m."""

    sizes: tuple[ExactReal, ...]
    """Exact numbers whose sum is J, but for `more`."""
    more: arb
    weight: arb
    signs: tuple[int, ...]

    def beyond(self, epsilon: ExactReal) -> ExactReal | arb:
        """Return ε − J."""
        if self.more.is_zero():
            rest = exact_sum([epsilon, *(-size for size in self.sizes)])
            if rest is not None:
                return rest
        return epsilon.ball() - self.more - sum((s.ball() for s in self.sizes), start=arb(0))


@final
@dataclass(frozen=True)
class ExpandedPair(FactorsPair):
    """A product that `applies` is true of."""

    @cached_property
    def _parts(self) -> _Parts:
        found = _Parts.of(self.any_factors)
        assert found is not None
        return found

    @property
    def smooth(self) -> SmoothPair:
        """The product of the smooth losses."""
        return SmoothPair(self._parts.smooth)

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε), about as accurate as it is asked for.

        Raises UndecidedError where a contour would have too many nodes.
        """
        eps = epsilon.ball()
        if self.max_loss() <= eps:
            return self.infinity_mass()
        if -self.reverse().max_loss() >= eps:
            return -eps.expm1()
        bits = _accuracy()
        with ctx.workprec(ctx.prec + _ENOUGH):
            jumps = sorted(self._jumps(), key=lambda jump: float(jump.beyond(epsilon)))
            total = self._infinity()
            for jump in jumps:
                total += self._term(jump, epsilon, total, bits)
        return total.max(arb(0)).min(arb(1))

    def _infinity(self) -> arb:
        listed = self._parts.listed
        return ConvolvedPair(listed).infinity_mass() if listed else arb(0)

    def _term(self, jump: _Jump, epsilon: ExactReal, total: arb, bits: int) -> arb:
        """Return what a jump adds, a bound where that is negligible beside the others."""
        at = jump.beyond(epsilon)
        low, high = ends(at) if isinstance(at, arb) else (at, at)
        most = jump.weight * sum(map(abs, jump.signs)) * self.smooth.bound(low)
        if total > 0:  # what is small beside the others takes fewer bits
            if most.is_zero():
                return arb(0)
            bits += min(0, _LESS + math.ceil(float((most / total).log()) / math.log(2)))
            if bits < _FEWEST:
                return arb(0, most.upper())
        found = damped(self.smooth, jump.signs, low, bits)
        if low != high:
            found = found.union(damped(self.smooth, jump.signs, high, bits))
        return jump.weight * found

    def _jumps(self) -> Iterator[_Jump]:
        """Return all J."""
        parts = self._parts
        zero = ExactReal.of_rational(0)
        values = ConvolvedPair(parts.listed).values() if parts.listed else []
        masses = [(v.exact or zero, arb(0) if v.exact else v.loss, v.p) for v in values]
        for ups in itertools.product(*(range(count + 1) for _, count in parts.laplace)):
            sizes, signs, weight = [], fmpz_poly([1]), arb(1)
            for (distance, count), up in zip(parts.laplace, ups, strict=True):
                sizes.append(ExactReal.of_rational(2 * up - count) * distance)
                signs *= fmpz_poly([1, 1]) ** up * fmpz_poly([1, -1]) ** (count - up)
                ways = arb(math.comb(count, up)) / 2**count
                weight *= ways * (-(count - up) * distance.ball()).exp()
            coefficients = tuple(int(c) for c in signs.coeffs())
            for exact, more, mass in masses or [(zero, arb(0), arb(1))]:
                yield _Jump((*sizes, exact), more, weight * mass, coefficients)

    def estimate_epsilon(self, log_delta: float) -> float | None:
        """Return ε with ln H(ε) = log_delta by Newton's method on enclosures.

        As accurate as those that the answer is asked for: they are likely to share their contours.
        """
        width = max(asked_width.get() or _ROUGH_WIDTH, _LEAST_WIDTH)
        try:
            start = self._start(log_delta)
            return rough_root(self.hockey_stick, log_delta, start, width, _CLOSE)
        except (UndecidedError, ArithmeticError):
            return None

    def _start(self, log_delta: float) -> float:
        """Return an ε to begin at: where all Laplace losses are largest, if δ is that small."""
        parts = self._parts
        number = sum(count for _, count in parts.laplace)
        rest = log_delta + number * math.log(2)
        if not parts.listed and rest < -1:
            found = self.smooth.estimate_epsilon(rest)
            if found is not None:
                return found + sum(float(distance) * count for distance, count in parts.laplace)
        return guess_epsilon(self.any_factors, min(log_delta, -_TINY))

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the set {L > ε}."""
        return f"the releases whose privacy losses ln(dP/dQ) have a sum above {epsilon}"


def _accuracy() -> int:
    """Return the relative accuracy in bits that is wanted."""
    asked = asked_width.get()
    if asked is None:
        return int(ctx.prec) - _SPARE
    needed = (asked.denominator // asked.numerator).bit_length()
    more = max(0, ctx.prec - max(START_PRECISION, needed + 34))
    return needed + _SPARE + more


def damped(pair: SmoothPair, signs: tuple[int, ...], epsilon: ExactReal, bits: int) -> arb:
    """Return Σ w_m K_m(ε), of the weights `signs`, each on a straight line or all on a bent one.

    Raises UndecidedError where both would be too long.
    """
    eps = epsilon.ball()
    if pair.max_loss() <= eps:
        return arb(0)
    terms = [(m, sign) for m, sign in enumerate(signs) if sign]
    if -pair.reverse().max_loss() >= eps:
        return sum((sign * _below(pair, m, eps) for m, sign in terms), start=arb(0))
    try:
        return sum((sign * _straight(pair, m, epsilon, bits) for m, sign in terms), start=arb(0))
    except UndecidedError:
        pass
    strip = Strip(0.0, math.inf, Kernel.CALL.poles)
    loss = chosen(pair.loss(), strip, near(float(epsilon)), coarse(bits), guarded=False)
    most = sum(map(abs, signs)) * lost(loss)[0]
    found = bent_integral(loss, pair.is_mixed_first(), Kernel.CALL, strip, epsilon, bits, signs)
    return found + arb(0, most.upper())


def _straight(pair: SmoothPair, times: int, epsilon: ExactReal, bits: int) -> arb:
    """Return K_m(ε), m = `times`. Raises UndecidedError where the line would be too long."""
    kernel = Kernel(Kernel.CALL.whole, times)
    strip = Strip(0.0, math.inf, kernel.poles)
    loss = chosen(pair.loss(), strip, near(float(epsilon)), coarse(bits))
    found = integral(loss, kernel, strip, epsilon, bits) + arb(0).union(lost(loss)[0])
    if found.rel_accuracy_bits() < bits - _SPARE:
        raise UndecidedError(f"The contour does not give {bits} bits.")
    return found


def _below(pair: SmoothPair, times: int, eps: arb) -> arb:
    """Return K_m(ε) where no loss is below ε."""
    value: arb = 1 - (-1) ** times * eps.exp()
    if times:
        derivatives = _half_moments(pair, times, ctx.prec)
        for n in range(times, 0, -2):
            j = n - 1
            mean = sum(
                (math.comb(j, i) * derivatives[i] * (-eps) ** (j - i) for i in range(n)),
                start=arb(0),
            )
            value -= 2 * (eps / 2).exp() * mean / (2**j * math.factorial(j))
    return value


@functools.lru_cache(maxsize=64)
def _half_moments(pair: SmoothPair, number: int, precision: int) -> tuple[arb, ...]:
    """Return the first derivatives of M at −½: E[L^j e^{−L/2}]."""
    loss, bits = pair.loss(), precision // 2 + _ENOUGH
    r = Fraction(1, 1 << bits)
    found = []
    for j in range(number):
        with ctx.workprec(precision + j * bits + _ENOUGH):
            places = [(Fraction(j, 2) - i) * r - Fraction(1, 2) for i in range(j + 1)]
            values = [loss.log_value(place).exp() for place in places]
            total = sum(
                ((-1) ** i * math.comb(j, i) * value for i, value in enumerate(values)),
                start=arb(0),
            )
            size = 2 * math.factorial(j + 2) / arb(_RHO) ** (j + 2)
            found.append(total / ball(r) ** j + arb(0, (j * ball(r) ** 2 * size / 24).upper()))
    return tuple(found)
