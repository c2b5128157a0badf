"""Products of Laplace laws, each coordinate shifted by its own distance.

Coordinate i contributes to the loss L an atom +t with mass 1/2, an atom −t with mass e^{−t}/2 and
the density (1/4) e^{(l − t)/2} on (−t, t), t = t_i. Tilting by e^{l/2} makes every coordinate
symmetric: dP = e^{l/2} dm and dQ = e^{−l/2} dm, where m is the product of measures with the
two-sided Laplace transform, with u = 1/(2s),

    (1/2) e^{−t/2} [e^{ts} (1 + u) + e^{−ts} (1 − u)].

So with T = Σ t_i and B_k(u) = (1 + u)^{d−k} (1 − u)^k, whose coefficients are integers, the
transform of m is 2^{−d} e^{−T/2} Σ w(J, k) e^{Js} B_k(u), where w(J, k) counts the sign choices
with Σ ±t_i = J and k minus signs. Reading e^{Js} uⁿ as the function 2^{−n} (J − l)₊^{n−1}/(n − 1)!
(an atom at J for n = 0), each integral over (ε, ∞) becomes a finite sum over J > ε: with
z = (J − ε)/2 and polynomial quotients (remainders dropped), for 0 ≤ ε < T,

    H(ε)     = 1 − 2^{1−d} e^{(ε−T)/2}  Σ w Σ_r q_r z^r/r!,     q = u B_k div (u² − 1),
    P(L > ε) = 1 − 2^{−d}  e^{(ε−T)/2}  Σ w Σ_r c_r z^r/r!,     c = B_k div (u − 1),
    Q(L > ε) =   − 2^{−d}  e^{−(ε+T)/2} Σ w Σ_r g_r (−z)^r/r!,  g = B_{d−k} div (u − 1),

Reflection of every coordinate exchanges P and Q, so −L under Q has the law of L under P; that
serves ε < 0. All but the outer exponentials and the powers of z are exact integers; cancellation
is met by a higher working precision.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, final

from flint import arb, arb_poly, ctx, fmpz, fmpz_poly

from accountant.errors import InvalidInputError
from accountant.number import ExactReal
from accountant.pair import Pair, Tails

if TYPE_CHECKING:
    from accountant.interval import Interval
    from accountant.reference import Reference

MAX_TERMS = 300_000
"""Most pairs (J, k) in the expansion: 17 shifts with all signed sums distinct have 131072."""
MAX_WORK = 20_000_000
"""Most terms above ε, times the number of coordinates."""
_GUARD_BITS = 40
_MOST_GUESSED = 1 << 16
_ROUNDS = 6
_PRECISION_STEP = 256
"""Precisions are rounded up to a multiple of so many bits, so that polynomials serve again."""
_MANY = 200
_HALF = Fraction(1, 2)
_NEAR = Fraction(1, 500)

Quotient: TypeAlias = Callable[[fmpz_poly], fmpz_poly]
Counts: TypeAlias = tuple[tuple[tuple[int, int], ...], ...]
"""Entry k lists (J in units, w(J, k)), J descending."""


@final
@dataclass(frozen=True)
class LaplaceProductPair(Pair):
    """P = Lap(1)^d at (t_1, …, t_d), Q = Lap(1)^d at 0, with t_i = multiples[i]·unit > 0.

    Parameters
    ----------
    unit
        Any exact number > 0; no matter if there are no coordinates.
    multiples
        Integers ≥ 1, ascending.
    """

    unit: ExactReal
    multiples: tuple[int, ...]

    @staticmethod
    def of_distances(distances: Sequence[ExactReal]) -> LaplaceProductPair:
        """Return the pair at the given distances ≥ 0; a distance 0 loses nothing.

        Raises InvalidInputError if two distances have an irrational ratio.
        """
        positive = sorted(distance for distance in distances if distance.sign > 0)
        if not positive:
            return LaplaceProductPair(ExactReal.of_rational(1), ())
        ratios = [(distance / positive[0]).rational for distance in positive]
        if None in ratios:
            raise InvalidInputError(
                "Expected shifts whose ratios are rational, so that the losses of the coordinates "
                "share a unit. Round the shifts up to a common grid: delta grows with each of them."
            )
        fractions = [ratio for ratio in ratios if ratio is not None]
        denominator = math.lcm(*(ratio.denominator for ratio in fractions))
        numbers = [int(ratio * denominator) for ratio in fractions]
        divisor = math.gcd(*numbers)
        unit = positive[0] * ExactReal.of_rational(Fraction(divisor, denominator))
        return LaplaceProductPair(unit, tuple(number // divisor for number in numbers))

    def exact_max_loss(self) -> ExactReal:
        """Return T = Σ t_i."""
        return ExactReal.of_rational(sum(self.multiples)) * self.unit

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε) for any real ε."""
        top = self.exact_max_loss()
        if epsilon >= top:
            return arb(0)
        if epsilon <= -top:
            return -epsilon.ball().expm1()
        if epsilon.sign >= 0:
            return self._narrow(lambda: [self._hockey_stick(epsilon)])[0]
        return self._narrow(
            lambda: [epsilon.ball().exp() * self._hockey_stick(-epsilon) - epsilon.ball().expm1()]
        )[0]

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval | None:
        """Enclose ε(δ) between the ends that a grid proves, where a value of H is expensive."""
        if len(self.multiples) < _MANY or delta.rational is None or delta.rational > _HALF:
            return None
        from accountant import solve
        from accountant.composition.grid import GridPair
        from accountant.mechanisms.laplace import LaplacePair

        single = {
            LaplacePair(ExactReal.of_rational(number) * self.unit): count
            for number, count in Counter(self.multiples).items()
        }
        near = GridPair(tuple(single.items())).inverse(delta, _NEAR)
        target = delta.ball

        def excess(epsilon: ExactReal) -> arb:
            return (self.hockey_stick(epsilon) / target()).log()

        between = (Fraction(near.lower), Fraction(near.upper))
        return solve.root(excess, between, relative_width=relative_width)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return both tails, an atom at ε counted on the side ≤."""
        top = self.exact_max_loss()
        if epsilon >= top:
            return Tails(arb(0), arb(1), arb(0), arb(1))
        if epsilon < -top:
            return Tails(arb(1), arb(0), arb(1), arb(0))
        if epsilon.sign >= 0:
            p, q, rest_p, rest_q = self._narrow(lambda: self._upper(epsilon, strict=True))
            return Tails(p_above=p, p_below=rest_p, q_above=q, q_below=rest_q)
        p, q, rest_p, rest_q = self._narrow(lambda: self._upper(-epsilon, strict=False))
        return Tails(p_above=rest_q, p_below=q, q_above=rest_p, q_below=p)

    def renyi(self, order: arb) -> arb:
        """Return Σ ln((a e^{(a−1)t} + (a−1) e^{−at})/(2a − 1))/(a − 1)."""
        less, both = order - 1, 2 * order - 1
        total = arb(0)
        for t, count in self._distances():
            moment = order * (less * t).expm1() + less * (-order * t).expm1()
            total += count * (moment / both).log1p()
        return total / less

    def kullback_leibler(self) -> arb:
        """Return Σ t + e^{−t} − 1."""
        terms = [count * (t + (-t).expm1()) for t, count in self._distances()]
        return sum(terms, start=arb(0))

    def max_loss(self) -> arb:
        """Return T."""
        return self.exact_max_loss().ball()

    def reverse(self) -> LaplaceProductPair:
        """Return the pair itself: reflecting every coordinate exchanges P and Q."""
        return self

    def law(self) -> dict[str, object]:
        """Return {"law": "laplace-product", "unit", "multiples"}."""
        return {
            "law": "laplace-product",
            "unit": str(self.unit),
            "multiples": list(self.multiples),
        }

    def reference(self) -> Reference:
        """Return the law of the loss, coordinate by coordinate on an atom or between them."""
        from accountant.pairs.laplace_product_reference import LaplaceProductReference

        return LaplaceProductReference(self.unit, self.multiples)

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the set {L > ε}."""
        return (
            "the outcomes x, in units of the scale and from the true answer under Q, with "
            f"Σ |x_i| − |x_i − t_i| > {epsilon}, where t_i are the shifts in units of the scale"
        )

    def _distances(self) -> list[tuple[arb, int]]:
        unit = self.unit.ball()
        return [(number * unit, count) for number, count in Counter(self.multiples).items()]

    def _hockey_stick(self, epsilon: ExactReal) -> arb:
        """Evaluate H(ε) for 0 ≤ ε < T from the expansion."""
        inner = self._sum_over_jumps(epsilon, _over_both_lines, 1)
        rise = (self.max_loss() - epsilon.ball()) / 2
        return 1 - 2 * (-rise).exp() * inner / fmpz(2) ** len(self.multiples)

    def _upper(self, epsilon: ExactReal, *, strict: bool) -> list[arb]:
        """Return P(L > ε), Q(L > ε) (≥ unless strict) and the complements, for 0 ≤ ε ≤ T."""
        below = (epsilon.ball() - self.max_loss()) / 2
        weight_p = below.exp() / fmpz(2) ** len(self.multiples)
        weight_q = weight_p * (-epsilon.ball()).exp()
        p_rest = weight_p * self._sum_over_jumps(epsilon, _over_line, 1)
        q = -weight_q * self._sum_over_jumps(epsilon, _mirrored_over_line, -1)
        if epsilon >= self.exact_max_loss():
            p_rest = arb(1)
        if not strict:
            atom = self._count_at(epsilon)
            p_rest -= weight_p * atom
            q += weight_q * atom
        return [1 - p_rest, q, p_rest, 1 - q]

    def _sum_over_jumps(self, epsilon: ExactReal, quotient: Quotient, sign: int) -> arb:
        """Return Σ over J > ε and k of w(J, k) Σ_r h_r (sign·z)^r/r! with h = quotient(B_k)."""
        counts, d = _expansion(self.multiples), len(self.multiples)
        bar, _ = self._in_units(epsilon)
        used = sum(jump > bar for row in counts for jump, _ in row)
        if used * d > MAX_WORK:
            raise InvalidInputError(
                f"Expected at most {MAX_WORK // d} signed sums of the {d} shifts above epsilon, "
                f"not {used}. Use fewer distinct shifts, or round them up to a common grid: delta "
                "grows with each of them."
            )
        unit, threshold, total = self.unit.ball(), epsilon.ball(), arb(0)
        terms = _terms(d, quotient, -(-ctx.prec // _PRECISION_STEP) * _PRECISION_STEP)
        for k, row in enumerate(counts):
            if not row or row[0][0] <= bar:
                continue
            term = terms.at(k)
            for jump, count in row:
                if jump <= bar:
                    break
                total += count * term(sign * (jump * unit - threshold) / 2)
        return total / fmpz(math.factorial(d))

    def _count_at(self, epsilon: ExactReal) -> int:
        """Return Σ_k w(ε, k), the number of sign choices with the sum ε."""
        bar, on_grid = self._in_units(epsilon)
        counts = _expansion(self.multiples)
        return sum(n for row in counts for jump, n in row if jump == bar) if on_grid else 0

    def _in_units(self, epsilon: ExactReal) -> tuple[int, bool]:
        """Return ⌊ε/unit⌋ for ε ≥ 0, and whether nothing was rounded."""
        ratio = epsilon / self.unit
        return _floor(ratio), ratio.rational == _floor(ratio)

    def _narrow(self, compute: Callable[[], list[arb]]) -> list[arb]:
        """Evaluate at rising precision until every ball is narrow for the ambient one."""
        goal = ctx.prec
        lost = len(self.multiples) + _floor(self.exact_max_loss())  # to cancellation, roughly
        precision = goal + _GUARD_BITS + 2 * min(lost, _MOST_GUESSED)
        for _ in range(_ROUNDS):
            with ctx.workprec(precision):
                values = compute()
            if all(value.rel_accuracy_bits() > goal for value in values):
                break
            precision *= 2
        return [+value for value in values]


def _over_both_lines(basis: fmpz_poly) -> fmpz_poly:
    return fmpz_poly([0, 1]) * basis // fmpz_poly([-1, 0, 1])


def _over_line(basis: fmpz_poly) -> fmpz_poly:
    return basis // fmpz_poly([-1, 1])


def _mirrored_over_line(basis: fmpz_poly) -> fmpz_poly:
    return basis(fmpz_poly([0, -1])) // fmpz_poly([-1, 1])


class _Terms:
    """The polynomials d! Σ_r h_r z^r/r!, h = quotient(B_k), k = 0, 1, …, formed when asked for.

    They depend on the number of coordinates only, not on the shifts: a calibration asks for the
    same ones at every step.
    """

    def __init__(self, d: int, quotient: Quotient, precision: int) -> None:
        self._quotient, self._precision = quotient, precision
        self._basis = fmpz_poly([1, 1]) ** d
        falling = [fmpz(1)]  # d!/r! for r = d, …, 0
        for r in range(d, 0, -1):
            falling.append(falling[-1] * r)
        self._falling = falling[::-1]
        self._formed: list[arb_poly] = []

    def at(self, k: int) -> arb_poly:
        """Return the polynomial of B_k."""
        with ctx.workprec(self._precision):
            while len(self._formed) <= k:
                pairs = zip(self._quotient(self._basis).coeffs(), self._falling, strict=False)
                self._formed.append(arb_poly([c * f for c, f in pairs]))
                self._basis = self._basis * fmpz_poly([1, -1]) // fmpz_poly([1, 1])
        return self._formed[k]


@lru_cache(maxsize=4)
def _terms(d: int, quotient: Quotient, precision: int) -> _Terms:
    return _Terms(d, quotient, precision)


def _floor(number: ExactReal) -> int:
    """Return the whole part of a number ≥ 0."""
    if number.rational is not None:
        return math.floor(number.rational)
    return math.isqrt(number.square.numerator // number.square.denominator)


@lru_cache(maxsize=16)
def _expansion(multiples: tuple[int, ...]) -> Counts:
    """Return the numbers w(J, k), J in units.

    Raises InvalidInputError if there are more than MAX_TERMS.
    """
    table: dict[tuple[int, int], int] = {(0, 0): 1}
    for step, n in Counter(multiples).items():
        binomials = [math.comb(n, j) for j in range(n + 1)]
        grown: dict[tuple[int, int], int] = {}
        for (jump, minus), count in table.items():
            for j, ways in enumerate(binomials):
                key = (jump + (n - 2 * j) * step, minus + j)
                grown[key] = grown.get(key, 0) + count * ways
            if len(grown) > MAX_TERMS:
                raise InvalidInputError(
                    f"Expected the {len(multiples)} shifts to have at most {MAX_TERMS} signed "
                    "sums. Use fewer distinct shifts, or round them up to a common grid: delta "
                    "grows with each of them."
                )
        table = grown
    rows: list[list[tuple[int, int]]] = [[] for _ in range(len(multiples) + 1)]
    for (jump, minus), count in table.items():
        rows[minus].append((jump, count))
    return tuple(tuple(sorted(row, reverse=True)) for row in rows)
