"""Certified contour integrals for the profile and the tails of a sum of losses.

Let M(z) = E_P[e^{zL}] = Π M_i(z)^{k_i} be finite on the whole line, and let κ be one of the kernels
1/(z(z + 1)), 1/z and 1/(z + 1). For real c that is no pole of κ, with Re z = c,

    (1/2πi) ∫ M(z) e^{−zε} κ(z) dz = ± G(ε),

where ± is the sign of κ(c) and G is, by the residues at the poles that lie to the right of c,

    1/(z(z + 1)):  δ(ε) for c > 0;  1 − δ(ε) for −1 < c < 0;  δ(ε) − 1 + e^ε for c < −1;
    1/z:           P(L > ε) for c > 0;  P(L ≤ ε) for c < 0;
    1/(z + 1):     e^ε Q(L > ε) for c > −1;  e^ε Q(L ≤ ε) for c < −1.

In every case 0 ≤ G(ε) ≤ E(s) := M(s) e^{−sε} for all s between the same two poles as c.

*Discretisation.* By Poisson summation the trapezoidal sum with step h is Σ_n G(ε + nB) e^{ncB},
B = 2π/h, over all integers n: the error is one-sided, and for s₁ < c < s₂ between the same poles
at most E(s₁)/(e^{(c−s₁)B} − 1) + E(s₂)/(e^{(s₂−c)B} − 1).

*Truncation.* |M(c + it)| ≤ r(T) M(c) for |t| ≥ T, with r from the transforms; where κ falls like
1/t only, the part beyond a far point, from where |M(c + it)| ≤ M(c) (C/t)^m, is bounded apart.
Losses with atoms do not fall so: what is left of a = Π a_i^{k_i}, the transform of the atoms
alone, is taken away before the integral and added after it, as [0, a(c) e^{−cε}]. If r(T) is made
of bounds of |M_i| and |a_i|, and |M_i − a_i| ≤ M_i(c) C_i/t, then |M − a| is at most
M(c) r(T)^{1 − 1/k} Σ k_i C_i/t, k the least k_i with C_i > 0.

The contour is chosen by floats (c near the saddle of E·|κ|); nothing that is proved rests on that.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from flint import acb, acb_mat, arb

from dpassay.accountant.composition.fourier.measure import (
    LOSS,
    Loss,
    Measure,
    estimator,
    guard,
    is_narrow,
)
from dpassay.accountant.composition.fourier.saddle import Saddle, Strip, nearest_bound, saddle
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import START_PRECISION, ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import shortened

MOST_NODES = 40_000
"""Most nodes on a contour."""
LONG = 1500
"""Nodes of a straight line above which other contours come first: planning these takes as long."""
_BEYOND = (1.0, 1.25, 1.5)
"""Where the fall of M is looked at, by the end of such a line: at one point it may be by chance."""
_WORD = 64
"""Bits of a word of flint: fewer are as slow, and bounds of the decay take as many."""
_LOG_2 = math.log(2)
_NOTHING = arb(0)
_AGAIN = 4
"""Part of the bits that a second try has more of, by which it is more accurate: sums in floats
often miss a width by a bit."""
_GROWTH = 1.1
"""Least factor by which a line is made longer: a smaller one asks for more bounds of the decay."""
_MOST_GROWTH = 2.0
"""Largest such factor, but for that of a normal law: a larger one overshoots where the decay begins
late."""
_CAUTION = 0.75
"""Power of the fall that is missing by which a line is made longer: ½ is right for a normal law, 1
for one that falls exponentially."""
_COARSE = 0.75
"""Grain of a rounded saddle at most, in its widths: neighbouring questions share a line."""
_STEEP = 0.4
"""Slope at a rounded saddle, in its widths, up to which the line hardly gets longer."""
_FINEST = 2.0**-10
"""Rounding of a saddle, in its widths, that is taken whatever the slope: floats know no more."""
_REST = 1.0
"""Natural logarithm of the room for rounding in a truncation: without it digits may be missing."""
_FAR_LOG = 4.0
"""About ln of ∫ dt/t from the end of a line to where M falls faster, for kernels with one pole:
with a smaller one lines are too short for the accuracy."""


@final
@dataclass(frozen=True)
class Kernel:
    """What is integrated against M(z) e^{−zε}: a product of 1/(z − pole)."""

    CALL: ClassVar[Kernel]
    """1/(z(z + 1))"""
    ABOVE_P: ClassVar[Kernel]
    """1/z"""
    ABOVE_Q: ClassVar[Kernel]
    """1/(z + 1)"""

    poles: tuple[int, ...]

    def at(self, z: acb) -> acb:
        """Return κ(z)."""
        first, *others = self.poles
        product = z - first if first else z
        for pole in others:
            product *= z - pole
        return 1 / product

    def strip(self, c: float) -> Strip:
        """Return the strip between poles that contains c."""
        below = max((float(p) for p in self.poles if p < c), default=-math.inf)
        above = min((float(p) for p in self.poles if p > c), default=math.inf)
        return Strip(below, above, tuple(float(p) for p in self.poles))


Kernel.CALL, Kernel.ABOVE_P, Kernel.ABOVE_Q = Kernel((0, -1)), Kernel((0,)), Kernel((-1,))


@final
@dataclass(frozen=True)
class Line:
    """The nodes c + ijh, 0 ≤ j < count."""

    c: Fraction
    step: Fraction
    count: int


@final
@dataclass(frozen=True)
class Plan:
    """A contour, and the points s₁ < c < s₂ of the aliasing bound."""

    line: Line
    left: Fraction
    right: Fraction


def integral(
    loss: Measure,
    kernel: Kernel,
    strip: Strip,
    epsilon: ExactReal,
    bits: int,
    *,
    added: arb = _NOTHING,
    most: int = MOST_NODES,
) -> arb:
    """Return a ball around G(ε), and what is added to it, of relative accuracy of about 2^−bits.

    Raises UndecidedError where that needs too many nodes, or more than `most` in balls.
    """
    plan = plan_contour(loss, kernel, strip, near(float(epsilon)), bits)
    line = plan.line
    quick = Sum.of(loss, kernel, plan, bits, quick=True)
    if quick is not None:
        found = quick.at(epsilon) + added
        strict = most < MOST_NODES  # other ways come before long sums in balls
        if is_narrow(found, bits) if strict else found.rel_accuracy_bits() >= bits - LOSS:
            return found
    if line.count > most:
        raise UndecidedError(f"Sums in floats do not give {bits} bits.")
    whole = Sum.of(loss, kernel, plan, bits, quick=False)
    assert whole is not None
    return whole.at(epsilon) + added


@final
@dataclass(frozen=True)
class Sum:
    """A contour that was formed, to be asked at any ε: the nearer to the plan's, the narrower."""

    loss: Measure
    plan: Plan
    contour: _Contour
    precision: int

    @staticmethod
    def of(loss: Measure, kernel: Kernel, plan: Plan, bits: int, *, quick: bool) -> Sum | None:
        """Form it in balls, or quickly, from floats; None where these err too much."""
        precision = _precision(loss, float(plan.line.c), bits)
        with ctx.workprec(precision):
            contour = _contour(loss, kernel, plan.line, precision, quick)
        return None if contour is None else Sum(loss, plan, contour, precision)

    def at(self, epsilon: ExactReal) -> arb:
        """Return a ball around G(ε)."""
        with ctx.workprec(self.precision):
            return _summed(self.loss, self.plan, self.contour, epsilon)


def _precision(loss: Measure, c: float, bits: int) -> int:
    """Return the precision of the moments on a line: one word at least, so that all share them."""
    return max(_WORD, bits + guard(loss.count, loss.cumulants(c)[0]))


def near(epsilon: float) -> float:
    """Cut to 20 bits, so that neighbouring questions share a contour."""
    return shortened(epsilon, 20, math.trunc)


def _summed(loss: Measure, plan: Plan, contour: _Contour, epsilon: ExactReal) -> arb:
    """Return the sum over a contour, with its truncation and its aliases."""
    line = plan.line
    eps, h = epsilon.ball(), ball(line.step)
    total = _turned(contour.rows, -h * eps) - contour.first / 2
    total *= h / arb.pi()
    sign = 1 if contour.first > 0 else -1
    rest = contour.truncation * h / arb.pi()
    value = (sign * total + arb(0, rest.upper())) * _chernoff(contour.size, line.c, eps)
    period = 2 * arb.pi() / h
    beside = alias(loss, plan.left, line.c - plan.left, period, eps)
    beside += alias(loss, plan.right, plan.right - line.c, period, eps)
    found = value - (beside / 2).upper() + arb(0, (beside / 2).upper())
    return found.max(arb(0))


def _turned(rows: acb_mat, angle: arb) -> arb:
    """Return the real part of Σ terms e^{ij·angle}: by blocks, as long powers of boxes grow."""
    count, length = rows.nrows(), rows.ncols()
    inner = acb_mat(length, 1, [acb(0, g * angle).exp() for g in range(length)])
    blocks = acb_mat(1, count, [acb(0, g * length * angle).exp() for g in range(count)])
    return (blocks * (rows * inner))[0, 0].real


def _in_rows(terms: Sequence[acb]) -> acb_mat:
    """Return the terms in rows of about as many as there are rows, the last one filled up by 0."""
    length = math.isqrt(len(terms))
    count = -(-len(terms) // length)
    return acb_mat(count, length, [*terms, *[acb(0)] * (count * length - len(terms))])


def _chernoff(log_moment: arb, c: Fraction, epsilon: arb) -> arb:
    return (log_moment - ball(c) * epsilon).exp()


def alias(loss: Measure, s: Fraction, distance: Fraction, period: arb, epsilon: arb) -> arb:
    """Return E(s)/(e^{distance·B} − 1), a bound that needs few digits."""
    with ctx.workprec(guard(loss.count, loss.cumulants(float(s))[0])):
        moment = _log_upper(loss, s, ctx.prec)
        bound = _chernoff(moment, s, epsilon) / (ball(distance) * period).expm1()
        return bound.upper()


@functools.lru_cache(maxsize=256)
def _log_value(loss: Measure, s: Fraction, precision: int) -> arb:
    with ctx.workprec(precision):
        return loss.log_value(s)


@functools.lru_cache(maxsize=256)
def _log_upper(loss: Measure, s: Fraction, precision: int) -> arb:
    with ctx.workprec(precision):
        return loss.log_upper(s)


@final
@dataclass(frozen=True)
class _Contour:
    """What a contour needs to be asked at any ε."""

    rows: acb_mat
    """M(c + ijh)/M(c) κ(c + ijh), in rows."""
    first: arb
    size: arb
    """ln M(c)."""
    truncation: arb
    """A bound of Σ |terms| over all later j."""


@functools.lru_cache(maxsize=32)
def _contour(
    loss: Measure, kernel: Kernel, line: Line, precision: int, quick: bool
) -> _Contour | None:
    """Return it by sums in balls, or quickly, by those of floats; None where they err too much."""
    c, step = line.c, line.step
    values = (loss.quick_line if quick else loss.line)(c, step, line.count)
    if values is None:
        return None
    size = _log_value(loss, c, precision)
    at, h = ball(c), ball(step)
    terms = [value * kernel.at(acb(at, j * h)) for j, value in enumerate(values)]
    return _Contour(_in_rows(terms), terms[0].real, size, _truncation(loss, kernel, line))


def _truncation(loss: Measure, kernel: Kernel, line: Line) -> arb:
    """Bound Σ_{j ≥ N} |M(c + ijh)/M(c)| |κ(c + ijh)|, where |κ(c + it)| ≤ 1/t^m for m poles."""
    step, count = line.step, line.count
    h, last = float(step), count - 1
    ratio = arb(loss.log_ratio(line.c, h * count)).exp()
    if (order := len(kernel.poles)) >= 2:
        fall = ball(step) ** order
        return ratio / (fall * arb(last) ** (order - 1))
    atoms = loss.atoms(line.c) if isinstance(loss, Loss) else None
    if atoms is not None:
        share, rate, least = atoms
        added = arb.pi() / ball(step) + count * abs(kernel.at(acb(ball(line.c))))
        fallen = ratio ** (1 - 1 / arb(least))
        return fallen * rate / (ball(step) ** 2 * last) + share * added
    scale, times = loss.far(line.c)
    doublings = 2 + (ctx.prec + 32) // times
    log_far = max(scale, math.log(h * count)) + doublings * _LOG_2
    near = ratio * (log_far - math.log(h * last)) / ball(step)
    beyond = (times * (arb(scale) - arb(log_far))).exp() / (times * ball(step))
    return near * (1 + arb(2) ** -20) + beyond * (1 + arb(2) ** -20)


@functools.lru_cache(maxsize=256)
def plan_contour(loss: Measure, kernel: Kernel, strip: Strip, epsilon: float, bits: int) -> Plan:
    """Choose a contour for about 2^bits; raise UndecidedError where there is no short one."""
    target = bits * _LOG_2
    place = _place(loss, kernel, strip, epsilon, target)
    c, step = place.c, place.step
    spread = loss.cumulants(float(c))[2]
    share = target + sum(math.log(abs(float(c) - pole)) for pole in kernel.poles)
    share += 0.5 * math.log(place.curvature)
    t = math.sqrt(2 * target / spread) / _GROWTH
    with ctx.workprec(_precision(loss, float(c), bits)):  # as for the integral
        while (fall := -loss.log_ratio(c, t)) < (
            needed := max(target, share - _rest(kernel, t)) + _REST
        ):
            if t >= float(step) * MOST_NODES:
                raise UndecidedError(
                    f"The contour for epsilon={epsilon:.6g} needs more than {MOST_NODES} nodes at "
                    f"{bits} bits. Ask for a larger relative_width, such as 1e-9."
                )
            missing = needed / max(fall, 1.0)
            t *= min(max(missing**_CAUTION, _GROWTH), max(math.sqrt(missing), _MOST_GROWTH))
            t = min(t, float(step) * MOST_NODES)
    count = math.ceil(t / float(step)) + 2
    return Plan(Line(c, step, _rounded_up(count)), *place.ends)


@functools.lru_cache(maxsize=64)
def falls_soon(loss: Loss, kernel: Kernel, strip: Strip, epsilon: float, bits: int) -> bool:
    """Whether M has fallen enough after `LONG` nodes: in floats, where nothing is cut off."""
    with contextlib.suppress(UndecidedError):
        if any(not part.is_whole for part, _ in loss.factors):
            return plan_contour(loss, kernel, strip, epsilon, bits).line.count <= LONG
        place = _place(loss, kernel, strip, epsilon, bits * _LOG_2)
        end = float(place.step) * LONG * np.array(_BEYOND)
        return bool(estimator(loss).log_ratio(float(place.c), end)[0].max() < -bits * _LOG_2)
    return False


@final
@dataclass(frozen=True)
class _Place:
    """Where a contour is, its step, and the points of the aliasing bound; not its length."""

    c: Fraction
    step: Fraction
    ends: tuple[Fraction, Fraction]
    curvature: float


@functools.lru_cache(maxsize=256)
def _place(loss: Measure, kernel: Kernel, strip: Strip, epsilon: float, target: float) -> _Place:
    try:
        point = saddle(loss, strip, epsilon)
    except ArithmeticError as error:
        raise UndecidedError(f"A contour was not found: {error}.") from error
    c = _abscissa(loss, kernel, point, epsilon)
    here = float(c)
    size, _, spread = loss.cumulants(here)
    if not spread > 0:
        raise UndecidedError(f"Floats do not tell epsilon={epsilon:.6g} from an end of the losses.")
    kappa = -sum(math.log(abs(here - pole)) for pole in kernel.poles)
    log_value = size - here * epsilon + kappa - 0.5 * math.log(2 * math.pi * point.curvature)
    sides = [nearest_bound(loss, strip, epsilon, here, side, log_value, target) for side in (-1, 1)]
    period = max(needed for needed, _ in sides)
    step = Fraction(shortened(2 * math.pi / period, 4, math.floor))
    left, right = (Fraction(s) if s in strip.poles else c + _shorter(s - here) for _, s in sides)
    return _Place(c, step, (left, right), point.curvature)


def _shorter(distance: float) -> Fraction:
    """Cut to 10 bits, so that neighbouring questions share a bound of aliases."""
    return Fraction(shortened(distance, 10, math.trunc))


def _rest(kernel: Kernel, t: float) -> float:
    """Return about −ln of the integral of |κ(c + iu)| over u ≥ t that is taken with |M| at t."""
    order = len(kernel.poles)
    return (order - 1) * math.log(t) if order >= 2 else -_FAR_LOG


def _abscissa(loss: Measure, kernel: Kernel, point: Saddle, epsilon: float) -> Fraction:
    """Round the saddle to few bits, where the slope is still small against the curvature."""
    width = 1 / math.sqrt(point.curvature)
    quantum = Fraction(2) ** (math.frexp(_COARSE * width)[1] - 1)
    while True:
        c = round(Fraction(point.c) / quantum) * quantum
        if c not in kernel.poles:
            slope = loss.cumulants(float(c))[1] - epsilon
            slope -= sum(1 / (float(c) - pole) for pole in kernel.poles)
            if abs(slope) * width < _STEEP or quantum < width * _FINEST:
                return c
        quantum /= 2


def _rounded_up(value: int) -> int:
    grain = 1 << max(0, value.bit_length() - 4)
    return -(-value // grain) * grain


_SPARE = 12
"""Bits between the precision and the accuracy, and between that and what is asked for: sums and
bounds lose some, and with fewer an answer is wider than asked."""


def accuracy(asked: Fraction | None) -> int:
    """Return the relative accuracy in bits that is aimed at, for a width that is asked for."""
    best = ctx.prec - _SPARE
    if asked is None:
        return best
    needed = (asked.denominator // asked.numerator).bit_length()
    again = max(0, ctx.prec - max(START_PRECISION + 8, needed + 34))  # hardly a bit was missing
    return min(best, needed + _SPARE + again // _AGAIN)
