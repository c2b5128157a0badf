"""Few releases of subsampled Laplace noise: H as polynomials between its breaks.

The loss of one release has two atoms, at its ends b < t, and an analytic density between them. With
G_0(ε) = (1 − e^ε)⁺ and G_{k+1}(ε) = E_P[G_k(ε − L)], H of n releases is G_n. Let w = t − b: G_k is
analytic between the neighbouring points k b + j w, j = 0, …, k, it is 1 − e^ε to the left of all of
them and 0 to the right. Tilted, g_k(ε) = e^{cε} G_k(ε)/M(c)^k for some c ≥ 0, and on the piece
ε = k b + (j + σ) w, 0 ≤ σ ≤ 1,

    g_{k+1,j}(σ) = A_b g_{k,j}(σ) + A_t g_{k,j−1}(σ) + w ∫_0^σ d(ν) g_{k,j}(σ − ν) dν
                 + w ∫_σ^1 d(ν) g_{k,j−1}(1 + σ − ν) dν,

where A_b + A_t + w ∫ d = 1: a mean, so that errors do not grow in the largest absolute value. The
second integral is the first one, seen from the other side. With d a polynomial, a step is a linear
map of polynomials, the same one for all pieces and steps: a matrix in Chebyshev's basis, whose
products are cut off at a fixed degree. Four errors are added up,

- that of d, interpolated at Chebyshev's points: at most 4Mρ^{−m}/(ρ − 1) for a bound M on
  Bernstein's ellipse, by boxes (Trefethen 2013, Theorem 8.2, for both kinds of points);
- the coefficients that are cut off, which are known;
- those of the function 1 − e^ε, a power series with its remainder;
- rounding: after every step the balls become their middles, and their radii are counted.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

from flint import acb, arb, arb_mat, arb_poly

from accountant.composition.chebyshev import (
    borel,
    clenshaw,
    monomials,
    shifted,
    to_chebyshev,
    unborel,
)
from accountant.composition.joint import Factor, FactorsPair, UnsuitedError
from accountant.composition.line import guess_epsilon, known_laws
from accountant.composition.subsampled_laplace import Mixture
from accountant.composition.subsampling import SubsampledPair
from accountant.errors import NotApplicableError, UndecidedError
from accountant.interval import Interval, asked_width, ball
from accountant.mechanisms.laplace import LaplacePair
from accountant.number import ExactReal
from accountant.precision import ctx

if TYPE_CHECKING:
    from accountant.reference import Reference

MOST_RELEASES = 200
FEW = 40
"""Releases up to which this is the first engine to be asked."""
MOST_DEGREE = 140
WIDTH = Fraction(1, 10**9)
"""What is aimed at where no width is asked for."""
_PRECISION = 192
_LEAST = Fraction(1, 10**32)  # less is not aimed at
_SPARE = 14.0  # natural logarithm of what H may be below its largest possible value
_ARCS = 64
_SHARES = (0.2, 0.4, 0.6, 0.75, 0.9)
_WIDEST = 20.0
_BISECTIONS = 60
_WIDENINGS = 6
_TRIALS = 5
_LEAST_ERROR = -110.0
_STEEPEST = 40.0
_ROUGH = 1e-6


def applies(factors: Sequence[Factor]) -> bool:
    """Whether these are not too many releases of one subsampled Laplace noise."""
    if len(factors) != 1:
        return False
    pair, count = factors[0]
    laplace = isinstance(pair, SubsampledPair) and isinstance(pair.inner, LaplacePair)
    return laplace and count <= MOST_RELEASES


@final
@dataclass(frozen=True)
class PiecewisePair(FactorsPair):
    """A product that `applies` is true of."""

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return a ball around H(ε).

        Raises UndecidedError where the width that is asked for is not reached, and UnsuitedError
        where polynomials of a low degree do not do.
        """
        if epsilon.ball() >= self.max_loss():
            return arb(0)
        if epsilon.ball() <= -self.reverse().max_loss():
            return -epsilon.ball().expm1()
        wanted = max(asked_width.get() or WIDTH, _LEAST)
        with ctx.workprec(_PRECISION):
            value, width = self._value(epsilon.ball(), float(wanted))
        asked = asked_width.get()
        if asked is not None and width > asked:
            raise UndecidedError(
                f"Reached delta in [{value.lower().str(12, radius=False)}, "
                f"{value.upper().str(12, radius=False)}], of relative width {width:.1e}, by "
                "polynomials between breaks. Ask for a larger relative_width.",
                reached=width,
            )
        return value

    def _value(self, eps: arb, wanted: float) -> tuple[arb, float]:
        """Return a ball around H(ε), with smaller errors until it is narrow, and its width."""
        c = _tilt(self.any_factors, float(eps))
        log_error = math.log(wanted) - _SPARE
        for _ in range(_TRIALS):
            pieces = _pieces(self.any_factors, c, 8 * math.floor(log_error / 8))
            value = pieces.at(eps).max(arb(0)).min(arb(1))
            width = float(2 * value.rad() / value.mid()) if value > 0 else math.inf
            if width <= 0.95 * wanted or log_error < _LEAST_ERROR:
                break
            log_error -= 2 + (math.log(width / wanted) if width < math.inf else _SPARE)
        return value, width

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ) by two points at which H is certainly on its side of δ.

        Raises UndecidedError as for `hockey_stick`.
        """
        with ctx.workprec(_PRECISION):
            target = delta.ball()
            low, high = -float(self.reverse().max_loss()), float(self.max_loss())
            near = guess_epsilon(self.any_factors, min(float(target.log()), -1e-9))
            for wanted in (_ROUGH, float(max(relative_width, _LEAST))):
                near = self._root(target, min(max(near, low), high), wanted)
            gap = Fraction(max(abs(near), 1e-9)) * relative_width / 8
            top = self.max_loss().lower()
            for _ in range(_WIDENINGS):
                left, right = Fraction(near) - gap, Fraction(near) + gap
                wanted = float(relative_width)
                beyond = ball(right) >= top
                if self._excess(left, target, wanted) > 0 and (
                    beyond or self._excess(right, target, wanted) < 0
                ):
                    break
                gap *= 2
            else:
                raise UndecidedError(
                    f"epsilon near {near:.10g} was not enclosed to {float(relative_width):.1e} by "
                    "polynomials between breaks. Ask for a larger relative_width."
                )
            end = Interval.of_ball(self.max_loss(), 20) if beyond else Interval.of_exact(right, 20)
        return Interval.of_exact(left, 20).hull(end)

    def _excess(self, at: Fraction, target: arb, wanted: float) -> arb:
        return self._value(ball(at), wanted)[0] - target

    def _root(self, target: arb, near: float, wanted: float) -> float:
        """Return about the root: values of one table are cheap, and rough far from its tilt."""
        low, high = -float(self.reverse().max_loss()), float(self.max_loss())
        c = _tilt(self.any_factors, near)
        pieces = _pieces(self.any_factors, c, 8 * math.floor((math.log(wanted) - _SPARE) / 8))
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            above = pieces.at(arb(middle)).mid() > target.mid()
            low, high = (middle, high) if above else (low, middle)
        return (low + high) / 2

    def reference(self) -> Reference:
        """Raise NotApplicableError: there is no second route to these products."""
        raise NotApplicableError(
            "The mpmath route does not integrate over several subsampled Laplace releases. Ask "
            "with method='grid', which is proved on its own."
        )

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the set {L > ε}."""
        return f"the releases whose privacy losses ln(p/q) have a sum above {epsilon}"


@final
@dataclass(frozen=True)
class _Pieces:
    """g_n on its pieces, as Chebyshev coefficients in columns, from the one left of all breaks."""

    c: arb
    log_scale: arb
    """n ln M(c)."""
    start: arb
    """n b."""
    width: arb
    columns: list[list[arb]]
    error: arb

    def at(self, eps: arb) -> arb:
        """Return a ball around H(ε), for an exact ε up to the largest loss."""
        if eps <= self.start:
            return -eps.expm1()
        place = (eps - self.start) / self.width
        first, last = (int(float(end.floor())) for end in (place.lower(), place.upper()))
        found = None
        for index in {max(first, -1), max(last, -1)}:  # on a break, both sides
            if index + 1 >= len(self.columns):
                value = arb(0)
            else:
                value = clenshaw(self.columns[index + 1], 2 * (place - index) - 1)
            found = value if found is None else found.union(value)
        assert found is not None
        size = (self.log_scale - self.c * eps).exp()
        return size * (found + arb(0, 1) * self.error)


def _tilt(factors: tuple[Factor, ...], epsilon: float) -> float:
    """Return about the c > 0 with the least M(c)^n e^{−cε}/(c(c + 1)), but not too steep a tilt."""
    law = known_laws(factors, 0.0)[0]
    (pair, _) = factors[0]
    width = float(pair.max_loss() + pair.reverse().max_loss())
    tilts = [2.0 ** (power / 2) for power in range(-12, 60)]
    tilts = [c for c in tilts if c * width < _STEEPEST]
    if not tilts:
        raise UnsuitedError(f"Losses up to {width:.3g} are too large for polynomials.")

    def height(c: float) -> float:
        value: float = law.count * law.log_moment(c) - c * epsilon - math.log(c * (c + 1))
        return value

    return float(min(tilts, key=height))


@functools.lru_cache(maxsize=8)
def _pieces(factors: tuple[Factor, ...], c: float, log_error: int) -> _Pieces:
    (pair, count), tilt = factors[0], arb(c)
    assert isinstance(pair, SubsampledPair)
    assert isinstance(pair.inner, LaplacePair)
    law = _Law(pair.inner.distance, pair.sampling_prob, pair.mixed_first, c)
    goal = log_error - math.log(4 * count)
    with ctx.workprec(_PRECISION):
        density, slack = law.density(goal)
        degree = _degree(law, density, goal)
        step = _Step.of(law, density, degree)
        before, tail = _before(law, degree)
        moment = step.moment + arb(0, 1) * slack * law.width
        step = step.over(moment)
        log_moment = moment.log()
        lost = slack * law.width / moment
        columns, error = [before(0, log_moment)], tail
        for k in range(1, count + 1):
            whole = _size(columns)
            columns, cut = step.apply(columns)
            columns, radii = _middles([before(k, log_moment), *columns])
            error = (error + cut + lost * whole + radii).upper()
        return _Pieces(tilt, count * log_moment, count * law.low, law.width, columns, error.upper())


@final
class _Law:
    """The tilted loss of one release: its ends and its density."""

    def __init__(self, distance: ExactReal, share: ExactReal, mixed_first: bool, c: float) -> None:
        self._distance, self._share, self._first, self._c = distance, share, mixed_first, c
        mixture = Mixture(distance.ball(), share.ball())
        self._ends = tuple(mixture.log_w(acb(sign * mixture.t)).real for sign in (-1, 1))
        self.exponent = arb(1) + arb(c) if mixed_first else -arb(c)
        masses = mixture.ends(self.exponent)
        self.low_mass, self.high_mass = masses if mixed_first else masses[::-1]
        self.low = self._ends[0] if mixed_first else -self._ends[1]
        self.width = self._ends[1] - self._ends[0]
        self.tilt = c

    def _place(self, sigma: acb | arb) -> acb | arb:
        """Return ln w where the loss is b + σ w."""
        low, high = self._ends
        return low + (high - low) * sigma if self._first else high - (high - low) * sigma

    def _log_density(self, place: acb) -> acb:
        """Return ln of the density times e^{cL}, in terms of ln w; NaN where it is not analytic."""
        t, q = self._distance.ball(), self._share.ball()
        v = (place.exp() - (1 - q)) / q
        if not v.real > 0:
            return acb(arb("nan"))
        return (self.exponent + 1) * place - arb("1.5") * v.log() - t / 2 - (4 * q).log()

    def density(self, log_error: float) -> tuple[list[arb], arb]:
        """Return Chebyshev coefficients of the density on 0 ≤ σ ≤ 1, and a bound of their error.

        Raises UnsuitedError where they are too many.
        """
        best: tuple[int, float, arb] | None = None
        low, _ = self._ends
        gap = float((low - (1 - self._share.ball()).log()) / self.width)
        scale = float(_size([[self.low_mass, self.high_mass]]).log())
        for share in _SHARES:
            half = 1 + 2 * min(share * gap, _WIDEST)
            rho = half + math.sqrt(half * half - 1)
            most = self._on_ellipse(rho)
            if most is None:
                continue
            needed = (float(most) - scale - log_error + 2 - math.log(rho - 1)) / math.log(rho)
            degree = max(4, math.ceil(needed))
            if best is None or degree < best[0]:
                best = degree, rho, most
        if best is None or best[0] > MOST_DEGREE:
            raise UnsuitedError(
                "The density of this subsampled Laplace loss is too steep for a polynomial. Ask "
                "with another method."
            )
        degree, rho, most = best
        error = 4 * (most - degree * arb(rho).log()).exp() / (arb(rho) - 1)
        found = self._interpolated(degree + 1)
        error += sum((arb(c.rad()) for c in found), start=arb(0))
        return [c.mid() for c in found], error.upper()

    def _on_ellipse(self, rho: float) -> arb | None:
        """Return a bound of the logarithm on Bernstein's ellipse, None where there is none.

        Where Re w exceeds 1 − q on the ellipse it does so inside (it is harmonic in ln w).
        """
        a, b = (arb(rho) + 1 / arb(rho)) / 2, (arb(rho) - 1 / arb(rho)) / 2
        found = []
        for arc in range(_ARCS):
            angle = arb.pi() * arb(2 * arc + 1, 1) / (2 * _ARCS)
            place = self._place((1 + acb(a * angle.cos(), b * angle.sin())) / 2)
            log = self._log_density(acb(place)).real
            if not log.is_finite():
                return None
            found.append(log.upper())
        return max(found)

    def _interpolated(self, count: int) -> list[arb]:
        """Return the coefficients of the polynomial through Chebyshev's points."""
        angles = [arb.pi() * (2 * j + 1) / (2 * count) for j in range(count)]
        values = [
            self._log_density(acb(self._place((1 + angle.cos()) / 2))).real.exp()
            for angle in angles
        ]
        found = []
        for k in range(count):
            terms = (v * (k * a).cos() for v, a in zip(values, angles, strict=True))
            found.append(sum(terms, start=arb(0)) * (2 if k else 1) / count)
        return found


@final
@dataclass(frozen=True)
class _Step:
    """The matrices of one step in Chebyshev's basis, before they are divided by the moment."""

    own: arb_mat
    """From a piece to itself."""
    next: arb_mat
    """From a piece to the one on its right."""
    cut: list[arb]
    """What a unit of each coefficient loses, in both together."""
    moment: arb

    @staticmethod
    def of(law: _Law, density: list[arb], degree: int) -> _Step:
        """Integrate every basis polynomial, at a precision that monomials need."""
        size = degree + len(density) + 1
        with ctx.workprec(_PRECISION + 3 * size):
            mirrored = [c * (-1) ** k for k, c in enumerate(density)]
            forward, backward = (borel(monomials(d)) for d in (density, mirrored))
            long = [
                [unborel(side * borel(arb_poly(shifted(j)))) for j in range(degree + 1)]
                for side in (forward, backward)
            ]
            to_basis = to_chebyshev(size)
            rows = []
            for polys in long:
                table = arb_mat(
                    [
                        [poly[i] if i <= poly.degree() else arb(0) for poly in polys]
                        for i in range(size)
                    ]
                )
                rows.append((to_basis * table).tolist())
            integral = unborel(borel(monomials(density)) * arb_poly([1]))(arb(1))
        own = [[law.width * x for x in row] for row in rows[0]]
        # T_k seen from the other side is (−1)^k T_k, before and after
        other = [
            [law.width * x * (-1) ** (i + j) for j, x in enumerate(row)]
            for i, row in enumerate(rows[1])
        ]
        cut = [
            sum((abs(side[i][j]) for side in (own, other) for i in range(degree + 1, size)), arb(0))
            for j in range(degree + 1)
        ]
        for j in range(degree + 1):
            own[j][j] += law.low_mass
            other[j][j] += law.high_mass
        return _Step(
            arb_mat(own[: degree + 1]),
            arb_mat(other[: degree + 1]),
            [loss.upper() for loss in cut],
            law.low_mass + law.high_mass + law.width * integral,
        )

    def over(self, moment: arb) -> _Step:
        """Divide by the moment."""
        return _Step(
            self.own * (1 / moment),
            self.next * (1 / moment),
            [(loss / moment).upper() for loss in self.cut],
            moment,
        )

    def apply(self, columns: list[list[arb]]) -> tuple[list[list[arb]], arb]:
        """Return the pieces after one more release, without the first, and what was cut off."""
        size = len(columns[0])
        zero = [arb(0)] * size
        here = arb_mat(_transposed([*columns[1:], zero]))
        left = arb_mat(_transposed(columns))
        found = _transposed((self.own * here + self.next * left).tolist())
        lost = [
            sum((abs(x) * loss for x, loss in zip(column, self.cut, strict=True)), arb(0))
            for column in columns
        ]
        most = lost[0]
        for other in lost[1:]:
            most = most.max(other)
        return found, 2 * most


def _degree(law: _Law, density: list[arb], goal: float) -> int:
    """Return a degree that polynomials may have: as that of the density, or of e^{cε}."""
    steep = (law.tilt + 1) * float(law.width) / 4
    degree = len(density)
    while degree < MOST_DEGREE and degree * math.log(max(steep, 1e-9) * math.e / degree) > goal:
        degree += 4
    if degree >= MOST_DEGREE:
        raise UnsuitedError(
            "The tilt of this subsampled Laplace loss is too steep for a polynomial. Ask with "
            "another method."
        )
    return degree


def _before(law: _Law, degree: int) -> tuple[Callable[[int, arb], list[arb]], arb]:
    """Return the piece left of all breaks after k releases, and a bound of its error.

    There e^{cε}/M^k ≤ e^{c(ε − kb)} ≤ 1, as M ≥ e^{cb}; and e^ε ≤ 1, as b < 0.
    """
    size = max(2 * degree, 40) + math.ceil(4 * (law.tilt + 1) * float(law.width))
    with ctx.workprec(_PRECISION + 3 * size):
        to_basis = to_chebyshev(size)
        curves, errors = [], arb(0)
        for rate in (arb(law.tilt), arb(law.tilt) + 1):
            a = rate * law.width
            powers = [arb(1)]
            for i in range(1, size):
                powers.append(powers[-1] * a / i)
            rest = powers[-1] * a / size * a.exp()
            column = [row[0] for row in (to_basis * arb_mat([[x] for x in powers])).tolist()]
            errors += rest + sum((abs(x) for x in column[degree + 1 :]), arb(0))
            curves.append(column[: degree + 1])

    def piece(k: int, log_moment: arb) -> list[arb]:
        start = k * law.low - law.width
        scale = (law.tilt * start - k * log_moment).exp()
        growth = start.exp()
        return [scale * (x - growth * y) for x, y in zip(*curves, strict=True)]

    return piece, errors.upper()


def _transposed(rows: list[list[arb]]) -> list[list[arb]]:
    return [list(row) for row in zip(*rows, strict=True)]


def _middles(columns: list[list[arb]]) -> tuple[list[list[arb]], arb]:
    """Return the middles, and the largest sum of the radii of a column."""
    radii = [sum((arb(x.rad()) for x in column), arb(0)).upper() for column in columns]
    return [[x.mid() for x in column] for column in columns], max(radii)


def _size(columns: list[list[arb]]) -> arb:
    """Return a bound of the largest absolute value on all pieces."""
    return max(sum((abs(x) for x in column), arb(0)).upper() for column in columns)
