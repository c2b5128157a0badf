"""Measures of sums of losses by their transforms: what a contour integral asks of them.

On a vertical line Re z = c only ratios M(c + it)/M(c) are formed, and bounds of their decay.

*Cutting rare large losses off*, where their moments explode although they do not matter. The
moments of a subsampled Gaussian loss grow like e^{s²μ²/2} q^s: for large s they belong to a jump
that is far less likely than δ itself, and the line through their saddle says nothing. With
the normal density φ replaced by φχ, χ ≤ 1 (`losses.transform.Cut`), the two laws lose the masses
p and q of the factors; a bounded function of the losses, 0 ≤ g ≤ b, then satisfies

    E[g; φχ] ≤ E[g] ≤ E[g; φχ] + b Σ k_i p_i,

and the masses are closed forms. So the cut is put where Σ k_i p_i is far below what is asked for.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, final

from flint import acb, acb_mat, arb

from dpassay.accountant.composition.fourier.estimates import Estimator, Powers
from dpassay.accountant.composition.fourier.saddle import Saddle, Strip, nearest_bound, saddle
from dpassay.accountant.composition.losses.bounds import (
    LARGEST_ANGLE,
    LEAST_RATE,
    Decay,
    powered,
    turned,
)
from dpassay.accountant.composition.losses.transform import (
    Cut,
    GaussianTransform,
    MixtureTransform,
    Transform,
)
from dpassay.accountant.core.arrays import np
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import START_PRECISION, ball
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.numbers.solve import log_peak, shortened

if TYPE_CHECKING:
    from dpassay.accountant.composition.losses.bounds import Complexes, Reals

_GUARD = 16
"""Bits by which the precision exceeds the accuracy, besides those of the count and of ln M."""
_UNIT = 2.0**-53
"""The unit roundoff u."""
_QUICK, _USUAL = 10, 16.0
"""Bits of the precision that floats may lose, and the length of a usual line in units of one over
the deviation: on a longer one less error is allowed for each t."""
_ROOM = 1.001
"""Factor of bounds of errors, more than what their own rounding adds."""
_ENOUGH = 0.95
"""Share of the variance whose factors bound the decay: the others fall little."""
_MOST_DECAYS = 8
"""Most factors of which it is asked: each takes milliseconds."""
LOSS = 12
"""By how many bits an integral may miss what is aimed at: what is asked is that much wider."""


@final
@dataclass(frozen=True)
class Loss:
    """A sum of independent losses: the transforms of the factors, and how often each occurs."""

    factors: tuple[tuple[Transform, int], ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.factors)

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return ln M(c) and its first two derivatives, without proof."""
        return self._engine.cumulants(c)

    @cached_property
    def _engine(self) -> Estimator:
        return estimator(self)

    def log_value(self, c: Fraction) -> arb:
        """Return ln M(c)."""
        if c in (0, -1) and all(part.is_whole for part, _ in self.factors):
            return arb(0)
        return sum((count * part.value(c).log() for part, count in self.factors), start=arb(0))

    def log_upper(self, c: Fraction) -> arb:
        """Return an upper bound of ln M(c), where its value takes too many nodes."""
        return sum((count * part.log_upper(c) for part, count in self.factors), start=arb(0))

    def line(self, c: Fraction, step: Fraction, count: int) -> list[acb]:
        """Return M(c + ij·step)/M(c) for j < count."""
        return self._powers([part.line(c, step, count) for part, _ in self.factors])

    def quick_line(self, c: Fraction, step: Fraction, count: int) -> QuickLine | None:
        """Return the same from floats, None where their error matters."""
        return _quick_line(self, c, step, count)

    def _powers(self, lines: Sequence[list[acb]]) -> list[acb]:
        """Return the products of the powers of the ratios of the factors."""
        first, *others = (
            [power(ratio, times) for ratio in ratios]
            for (_, times), ratios in zip(self.factors, lines, strict=True)
        )
        for other in others:
            first = [p * q for p, q in zip(first, other, strict=True)]
        return first

    def log_ratio(self, c: Fraction, t: float) -> float:
        """Return an upper bound of ln(|M(c + iu)|/M(c)) for all u ≥ t."""
        return _log_ratio(self, c, t)

    def far(self, c: Fraction) -> tuple[float, int]:
        """Return ln C and k with |M(c + it)|/M(c) ≤ (C/t)^k."""
        found = [
            (scale, times)
            for decay, times in _decays(self, c)
            if (scale := decay.log_scale()) is not None
        ]
        if not found:
            raise UndecidedError("No rate of decay is known of these losses.")
        return max(found, key=lambda row: row[1])

    @property
    def count(self) -> int:
        """The number of independent losses."""
        return sum(count for _, count in self.factors)


@functools.lru_cache(maxsize=64)
def estimator(loss: Loss) -> Estimator:
    """Return the float engine for a loss, which shares lines with those of other counts."""
    power = math.gcd(*(count for _, count in loss.factors))
    once = tuple((part, count // power) for part, count in loss.factors)
    parts = [(part.estimate(), count) for part, count in loss.factors]
    return Estimator(parts, _powers(once), power)


@functools.lru_cache(maxsize=64)
def _powers(factors: tuple[tuple[Transform, int], ...]) -> Powers:
    """Return what the powers of a product of transforms share."""
    return Powers([(part.estimate(), count) for part, count in factors])


@final
@dataclass(frozen=True, eq=False)
class QuickLine:
    """Ratios e^{ijhm} (v_j + η_j)/n on a line, in floats, |n − 1| bounded by that of `norm`."""

    mean: arb
    """m"""
    values: Complexes
    """v"""
    errors: Reals
    """Bounds of |η|."""
    norm: arb
    """1/n"""


def _quick_line(loss: Loss, c: Fraction, step: Fraction, count: int) -> QuickLine | None:
    """Return the products of powers from floats; None where their error matters.

    With factors v_i = 1 + w_i + η_i, |η_i| ≤ η, and m_i = |1 + w_i| + η, the product of their
    powers is within Π m_i^{k_i} Σ k_i η/m_i of that of the 1 + w_i. In floats each of these is
    rounded, and Σ k_i are multiplied, in any order, each time by at most √5 units. A power whose
    roundings matter is formed in balls, and counts as one.
    """
    allowed = _allowed(loss, c)
    rate = quick_rate(loss, c, float(step * count)) / len(loss.factors)
    longest = allowed / (8 * _UNIT * len(loss.factors))
    total, grown = np.ones(count, dtype=np.complex128), np.zeros(count)
    wrong, number = np.zeros(count), sum(k if k <= longest else 1 for _, k in loss.factors)
    rounded = math.expm1(2 * number * 2.24 * 1.01 * _UNIT)
    if not rounded < allowed:
        return None
    mean, blur = arb(0), 0.0
    with np.errstate(under="ignore"):
        for part, times in loss.factors:
            found = part.quick_sums(c, step, count, rate / times)
            if found is None:
                return None
            away = 1.5 * (found.errors + found.blur)  # √2 for both parts, and their roundings
            value = 1.0 + found.values
            if times > longest:
                value, away = _power_in_balls(found.values, away, times)
            share = times if times <= longest else 1
            most = (np.abs(value) + away) * (1 + 8 * _UNIT) + 1e-300
            wrong += share * away / most
            grown += share * np.log(most)
            total *= powered(value, share)
            mean += times * arb(found.mean)
            blur += times * found.blur
        off = (np.abs(total) * rounded + np.exp(grown) * wrong) * 1.001 + 1e-280
    if not (np.isfinite(off).all() and blur < 1):
        return None
    return QuickLine(mean, total, off, arb(1, math.expm1(1.01 * blur / (1 - blur))))


def _power_in_balls(more: Complexes, errors: Reals, count: int) -> tuple[Complexes, Reals]:
    """Return the powers of 1 + w for complex numbers w with errors."""
    rows = zip(more.tolist(), errors.tolist(), strict=True)
    balls = [power(acb(1 + arb(w.real, e), arb(w.imag, e)), count) for w, e in rows]
    middles = [complex(float(x.real.mid()), float(x.imag.mid())) for x in balls]
    radii = [
        float(abs(x - acb(m.real, m.imag)).upper()) for x, m in zip(balls, middles, strict=True)
    ]
    return np.array(middles), np.array(radii) * (1 + 1e-9)


def quick_rate(measure: Loss, c: Fraction, reach: float) -> float:
    """Return the error per t that ratios on a line may have, at flint's current precision.

    It is about what is asked for over the deviation of the tilted loss, or, where the line reaches
    much further than that, over a share of its length: terms far out count there.
    """
    return _allowed(measure, c) * min(math.sqrt(measure.cumulants(float(c))[2]), _USUAL / reach)


def _allowed(measure: Loss, c: Fraction) -> float:
    """Return about the error that ratios on a line may have at all."""
    bits = ctx.prec - guard(measure.count, measure.cumulants(float(c))[0]) - _QUICK
    return math.ldexp(1.0, -bits)


def is_narrow(found: arb, bits: int) -> bool:
    """Whether a ball is as narrow, for its size, as an integral that is aimed at so many bits."""
    return bool(2 * found.rad() < abs(found).lower() * arb(2) ** (LOSS - bits))


def guard(count: int, size: float) -> int:
    """Return the bits by which the precision exceeds the accuracy, for ln M(c) of this size."""
    return _GUARD + count.bit_length() + math.frexp(1 + abs(size))[1]


def power(ratio: acb, count: int) -> acb:
    """Return ratio^count, through the logarithm where that is narrow."""
    if count < 64 or not abs(ratio) > 0:
        return ratio**count
    if ratio.real > 0:
        return (count * ratio.log()).exp()
    return (
        (1 - 2 * (count % 2)) * (count * (-ratio).log()).exp() if ratio.real < 0 else ratio**count
    )


@functools.lru_cache(maxsize=128)
def _decays(loss: Loss, c: Fraction) -> tuple[tuple[Decay, int], ...]:
    """Return the decays of the factors that matter; no other factor ever exceeds 1.

    Those that are closed forms all do.
    """
    found = [(part.decay(c), count) for part, count in loss.factors if part.is_closed]
    rest = [i for i, (part, _) in enumerate(loss.factors) if not part.is_closed]
    if not rest:
        return tuple(found)
    parts = estimator(loss).variances(float(c))
    order = sorted(rest, key=lambda i: -parts[i])
    wanted, reached = _ENOUGH * sum(parts[i] for i in rest), 0.0
    for i in order[:_MOST_DECAYS]:
        part, count = loss.factors[i]
        found.append((part.decay(c), count))
        reached += parts[i]
        if reached >= wanted:
            break
    return tuple(found)


@functools.lru_cache(maxsize=2048)
def _log_ratio(loss: Loss, c: Fraction, t: float) -> float:
    return sum(count * decay.log_ratio(t) for decay, count in _decays(loss, c)) * (1 - 1e-9)


_ROUNDS = 12
"""Times that cuts are placed anew for the value they give; the last ones are as valid."""
_GRAIN = 16
"""Bits to which an accuracy is rounded up: fewer are shared by fewer questions, more cost time."""
_GAIN = 3.0
"""Least difference of ln G by which two saddle-point values are distinguished: they are rough."""
_SPURIOUS = 4.0
"""Ratio of the tilts of a cut and a whole loss from which on large losses held the saddle back."""
_FIRST = 20.0
"""How much lower than 4 times the last guess ln G is guessed where a cut leaves no saddle."""
_FURTHEST = 1.3
"""Distance of the largest tilt that is needed, in those at which a normal law falls to the
accuracy: with less a cut is smoother than its aliasing bounds allow."""
_NEGLIGIBLE = 36.0
"""−ln of a share that no float shows: what is that small needs no cut, or does not change one."""
_MARGIN = 14.0
"""−ln of the share of what may be lost that cuts do lose: with more they lie where moments
explode."""
_EDGE = 4.0
"""Widths before its place at which a smooth cut begins to matter."""
_REACH = 9.0
"""Distance at which a normal law has fallen below e^−40."""
_POINTS = 256
"""Places at which a tilted law is evaluated: with fewer a narrow peak near a cut is missed."""
_LEFT, _MEASURE_BEYOND = -40.0, 12.0
"""Where a tilted law is taken to begin, and the widths beyond a cut where its fall is asked for."""
_WIDTHS = tuple(Fraction(1, 1 << i) for i in range(2, 8))
"""Widths of cuts, the smoothest first: the sharper one is, the finer the nodes near it."""


@functools.lru_cache(maxsize=128)
def chosen(loss: Loss, strip: Strip, epsilon: float, bits: int) -> Loss:
    """Return the loss, cut where that lowers the saddle-point value of the integral.

    Nothing that is proved rests on the place of the cut.
    """
    whole = saddle_value(loss, strip, epsilon, bits)
    if whole is not None and _far_off(loss, bits * _LOG_2 - whole.log_value, whole.furthest):
        return loss
    best, level = loss, 0.0 if whole is None else whole.log_value
    found: Level | None = None
    tilt = start = None
    for _ in range(_ROUNDS):
        shorter = cut_off(loss, -level + bits * _LOG_2, tilt)
        found = saddle_value(shorter, strip, epsilon, bits, start)
        if found is None and best is loss:
            level = 4 * level - _FIRST  # ε lies beyond what is kept
            continue
        if found is None:
            break
        if whole is not None and best is loss and _same(whole, found):
            return loss
        first, last = best is loss, level
        best, level, tilt, start = shorter, found.log_value, rounded(found.furthest), found.c
        if not first and abs(last - level) < _GAIN:
            break
    if whole is None or found is None:
        return best
    return loss if _same(whole, found) else best


@final
@dataclass(frozen=True)
class Level:
    """The saddle-point approximation of an integral."""

    log_value: float
    """ln G(ε), about."""
    c: float
    """The saddle."""
    furthest: float
    """The largest tilt that is needed."""


def _same(whole: Level, cut: Level) -> bool:
    """Whether a cut changes little; else jumps hold the saddle back."""
    lower = whole.log_value - cut.log_value
    return lower < _GAIN and cut.furthest < _SPURIOUS * whole.furthest


def _far_off(loss: Loss, log_mass: float, tilt: float) -> bool:
    """Whether cuts that lose e^−log_mass lie where nothing is, tilted as far as that."""
    for (part, count), (shorter, _) in zip(
        loss.factors, cut_off(loss, log_mass).factors, strict=True
    ):
        if isinstance(part, MixtureTransform) and isinstance(shorter, MixtureTransform):
            assert shorter.cut is not None
            s = max(part.tilt(tilt), 0.0)
            edge = float(shorter.cut.at) - _EDGE * float(shorter.cut.width)
            x = np.linspace(-_REACH, max(edge, s * part.floats().mu) + _REACH, _POINTS)
            size = part.floats().bell(x) + s * part.floats().log_density(x)
            if size[x >= edge].max() > size.max() - _NEGLIGIBLE - math.log(count):
                return False
    return True


def saddle_value(
    loss: Loss, strip: Strip, epsilon: float, bits: int, start: float | None = None
) -> Level | None:
    """Return the saddle-point approximation of G(ε), None where there is no saddle."""
    if start is None:
        start = estimator(loss).last.get(strip, (None,))[0]
    try:
        point = saddle(loss, strip, epsilon, start=start)
    except (ArithmeticError, UndecidedError):
        return None
    value = loss.cumulants(point.c)[0] - point.c * epsilon
    if value > max(epsilon, 0.0) + _GAIN:  # it is at most what it is at a pole
        return None
    value -= sum(math.log(abs(point.c - pole)) for pole in strip.poles)
    furthest = point.c + _FURTHEST * math.sqrt(2 * bits * _LOG_2 / point.curvature)
    return Level(value - 0.5 * math.log(2 * math.pi * point.curvature), point.c, furthest)


def measure_near(epsilon: float) -> float:
    """Round to eight bits, so that neighbouring questions share their cuts."""
    return shortened(epsilon, 8)


def coarse(bits: int) -> int:
    """Round an accuracy up, so that questions of nearly the same one share their cuts."""
    return max(3, -(-bits // _GRAIN)) * _GRAIN


def rounded(value: float) -> float:
    """Round to four bits, so that neighbouring questions share a cut."""
    return shortened(value, 4)


@functools.lru_cache(maxsize=128)
def cut_off(loss: Loss, log_mass: float, tilt: float | None = None) -> Loss:
    """Return the loss with each normal law cut, so that about e^−log_mass is lost in all.

    The cuts are as smooth as a contour through `tilt` allows.
    """
    factors: list[tuple[Transform, int]] = []
    for part, count in loss.factors:
        if isinstance(part, MixtureTransform):
            needed = max(log_mass, 0.0) + math.log(count) + math.log(len(loss.factors)) + _MARGIN
            s = None if tilt is None else part.tilt(tilt)
            factors.append((replace(part, cut=_cut(part, needed, s)), count))
        else:
            factors.append((part, count))
    return Loss(tuple(factors))


def _cut(part: MixtureTransform, needed: float, s: float | None) -> Cut:
    """Return a cut of mass e^−needed, sharp enough for φχw^s to vanish beyond it.

    Without a tilt s it is twice the one at which φ(x) w(x)^s is as large at the cut as at 0.
    """
    floats = part.floats()
    shifted = floats.mu + math.sqrt(2 * max(needed + floats.log_share, 0.0))
    at = max(math.sqrt(2 * needed), shifted)
    if s is None:
        s = largest_tilt(part, at)
    for width in _WIDTHS:
        place = Fraction(math.ceil(at * math.sqrt(1 + float(width) ** 2) * 16), 16)
        cut = Cut(place, width)
        if is_tame(part, cut, s):
            break
    return cut


def takes_apart(loss: Loss) -> bool:
    """Whether large losses may be rare, and all others are smooth."""
    smooth = all(isinstance(p, (GaussianTransform, MixtureTransform)) for p, _ in loss.factors)
    mixtures = [part for part, _ in loss.factors if isinstance(part, MixtureTransform)]
    return smooth and bool(mixtures) and all(part.mixed_first for part in mixtures)


def are_tame(loss: Loss, tilt: float) -> bool:
    """Whether all cuts are sharp enough for φχw^s, s = tilt + 1, to fall beyond them."""
    return all(
        is_tame(part, part.cut, tilt + 1)
        for part, _ in loss.factors
        if isinstance(part, MixtureTransform) and part.cut is not None
    )


def is_tame(part: MixtureTransform, cut: Cut, s: float) -> bool:
    """Whether φχw^s falls beyond a cut."""
    end = float(cut.at) + _MEASURE_BEYOND * float(cut.width)
    return replace(part, cut=cut).floats().rates(_LEFT, end, s, 0.0)[1] >= LEAST_RATE


def largest_tilt(part: MixtureTransform, at: float) -> float:
    """Return twice the tilt s at which φ(x) w(x)^s is as large at a place as at 0."""
    ends = part.floats().log_density(np.array([0.0, at]))
    return at * at / max(float(ends[1] - ends[0]), 1e-300)


def lost(loss: Loss) -> tuple[arb, arb]:
    """Return the masses that the cuts take from the products P and Q."""
    first, second = arb(0), arb(0)
    for part, count in loss.factors:
        if isinstance(part, MixtureTransform):
            p, q = part.lost()
            first, second = first + count * p, second + count * q
    return first.upper(), second.upper()


# --- Certified contour integrals for the profile and the tails of a sum of losses -----------------
# Let M(z) = E_P[e^{zL}] = Π M_i(z)^{k_i} be finite on the whole line, and let κ be one of the
# kernels 1/(z(z + 1)), 1/z and 1/(z + 1). For real c that is no pole of κ, with Re z = c,
#
#     (1/2πi) ∫ M(z) e^{−zε} κ(z) dz = ± G(ε),
#
# where ± is the sign of κ(c) and G is, by the residues at the poles that lie to the right of c,
#
#     1/(z(z + 1)):  δ(ε) for c > 0;  1 − δ(ε) for −1 < c < 0;  δ(ε) − 1 + e^ε for c < −1;
#     1/z:           P(L > ε) for c > 0;  P(L ≤ ε) for c < 0;
#     1/(z + 1):     e^ε Q(L > ε) for c > −1;  e^ε Q(L ≤ ε) for c < −1.
#
# In every case 0 ≤ G(ε) ≤ E(s) := M(s) e^{−sε} for all s between the same two poles as c.
#
# *Discretisation.* By Poisson summation the trapezoidal sum with step h is Σ_n G(ε + nB) e^{ncB},
# B = 2π/h, over all integers n: the error is one-sided, and for s₁ < c < s₂ between the same poles
# at most E(s₁)/(e^{(c−s₁)B} − 1) + E(s₂)/(e^{(s₂−c)B} − 1).
#
# *Truncation.* |M(c + it)| ≤ r(T) M(c) for |t| ≥ T, with r from the transforms; where κ falls like
# 1/t only, the part beyond a far point, from where |M(c + it)| ≤ M(c) (C/t)^m, is bounded
# separately.
#
# The contour is chosen by floats (c near the saddle of E·|κ|); nothing that is proved rests on
# that.

MOST_NODES = 40_000
"""Most nodes on a contour."""
LONG = 1500
"""Nodes of a straight line above which other contours come first: planning these takes as long."""
SHORT = 256
"""Nodes of a line up to which no cut is sought that makes it shorter: the search takes longer."""
_BEYOND = (1.0, 1.25, 1.5)
"""Where the fall of M is evaluated, by the end of such a line: at one point it may be by chance."""
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


_INTERVAL, _INTERVALS, _LITTLE = 0.1, 200, 0.01
"""Length of the intervals of a bound by sizes, in widths of the saddle, most of them, and the share
of what lies beyond them at which they end."""


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
    loss: Loss,
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

    loss: Loss
    plan: Plan
    contour: _Contour
    precision: int

    @staticmethod
    def of(loss: Loss, kernel: Kernel, plan: Plan, bits: int, *, quick: bool) -> Sum | None:
        """Form it in balls, or quickly, from floats; None where these err too much."""
        precision = _precision(loss, float(plan.line.c), bits)
        with ctx.workprec(precision):
            contour = _contour(loss, kernel, plan.line, precision, quick)
        return None if contour is None else Sum(loss, plan, contour, precision)

    def at(self, epsilon: ExactReal) -> arb:
        """Return a ball around G(ε)."""
        with ctx.workprec(self.precision):
            return _summed(self.loss, self.plan, self.contour, epsilon)


def size_bound(loss: Loss, c: Fraction, epsilon: ExactReal) -> arb:
    """Return an upper bound of E[(1 − e^{ε−L})⁺] from the sizes of the terms at c > 0.

    With r(t) ≥ |M(c + iu)|/M(c) for all u ≥ t it is at most E(c)/π times ∫ r(t) |κ(c + it)| dt over
    t ≥ 0. Both factors decrease, and κ(c + it) is below 1/t²: sums over the left ends of intervals,
    and r(t)/t at the last of them, bound the integral. Chernoff's bound has the largest value of
    (1 − e^{−x}) e^{−cx} instead.
    """
    size, _, variance = loss.cumulants(float(c))
    with ctx.workprec(max(_WORD, guard(loss.count, size))):
        value, at = _chernoff(_log_upper(loss, c, ctx.prec), c, epsilon.ball()), float(c)
        peak = log_peak(ball(c)).exp().upper()
        try:
            decays = _decays(loss, c)
        except UndecidedError:
            return value * peak
    step = _INTERVAL / math.sqrt(variance + at**-2)
    total, fall, t = 0.0, 1.0, 0.0
    for k in range(1, _INTERVALS + 1):
        total += step * fall / math.sqrt((at**2 + t**2) * ((at + 1) ** 2 + t**2))
        t = k * step
        fall = math.exp(sum(count * decay.known(t) for decay, count in decays) * (1 - 1e-9))
        if fall < _LITTLE * t * total:
            break
    total = (total + fall / t) / math.pi * _ROOM
    return value * arb(total).min(peak)


def _precision(loss: Loss, c: float, bits: int) -> int:
    """Return the precision of the moments on a line: one word at least, so that all share them."""
    return max(_WORD, bits + guard(loss.count, loss.cumulants(c)[0]))


def near(epsilon: float) -> float:
    """Cut to 20 bits, so that neighbouring questions share a contour."""
    return shortened(epsilon, 20, math.trunc)


def _summed(loss: Loss, plan: Plan, contour: _Contour, epsilon: ExactReal) -> arb:
    """Return the sum over a contour, with its truncation and its aliases."""
    line = plan.line
    eps, h = epsilon.ball(), ball(line.step)
    total = contour.terms.total(h, eps) * h / arb.pi()
    rest = contour.truncation * h / arb.pi()
    value = (contour.sign * total + arb(0, rest.upper())) * _chernoff(contour.size, line.c, eps)
    period = 2 * arb.pi() / h
    beside = alias(loss, plan.left, line.c - plan.left, period, eps)
    beside += alias(loss, plan.right, plan.right - line.c, period, eps)
    found = value - (beside / 2).upper() + arb(0, (beside / 2).upper())
    return found.max(arb(0))


@final
@dataclass(frozen=True, eq=False)
class _Balls:
    """Terms M(c + ijh)/M(c) κ(c + ijh) of a sum, in balls."""

    rows: acb_mat
    """About as many as their length, the last one filled up by 0: long powers of boxes grow."""
    first: arb

    @staticmethod
    def of(terms: Sequence[acb]) -> _Balls:
        """Put terms in rows."""
        length = math.isqrt(len(terms))
        count = -(-len(terms) // length)
        filled = [*terms, *[acb(0)] * (count * length - len(terms))]
        return _Balls(acb_mat(count, length, filled), terms[0].real)

    def total(self, h: arb, epsilon: arb) -> arb:
        """Return the real part of Σ terms e^{−ijhε}, the first one halved."""
        angle, count, length = -h * epsilon, self.rows.nrows(), self.rows.ncols()
        inner = acb_mat(length, 1, [acb(0, g * angle).exp() for g in range(length)])
        blocks = acb_mat(1, count, [acb(0, g * length * angle).exp() for g in range(count)])
        return (blocks * (self.rows * inner))[0, 0].real - self.first / 2


@final
@dataclass(frozen=True, eq=False)
class _Floats:
    """The same in floats, e^{ijhm} (v + η)/n for every j, with what bounds the errors."""

    mean: arb
    norm: arb
    t: Reals
    """jh, exactly"""
    values: Complexes
    """v, the first one halved"""
    error: float
    """A bound of Σ |η|."""
    size: float
    """Σ |v|"""
    reach: float
    """Σ |v| jh"""

    @staticmethod
    def of(line: QuickLine, kernel: Kernel, c: float, h: float) -> _Floats:
        """Return the terms with a kernel, whose values are wrong by less than 32 units."""
        t = np.arange(len(line.values)) * h
        shares: Complexes = np.ones(len(t), dtype=np.complex128)
        for pole in kernel.poles:
            shares *= (c - pole) + 1j * t
        shares = 1.0 / shares
        with np.errstate(under="ignore"):
            values = line.values * shares
            errors = (line.errors + np.abs(line.values) * (32 * _UNIT)) * np.abs(shares)
            values[0] *= 0.5
            sizes = np.abs(values)
        error, size, reach = (float(x) * _ROOM for x in (errors.sum(), sizes.sum(), sizes @ t))
        return _Floats(line.mean, line.norm, t, values, error, size, reach)

    def total(self, h: arb, epsilon: arb) -> arb:
        """Return the real part of Σ terms e^{−ijhε}.

        The turns e^{itx} are wrong by 10u|tx| (`losses.bounds`), and by what x is; the products
        and their sum, which is that of rounded numbers, by less than 8u each.
        """
        exactly = self.mean - epsilon
        away = float(exactly.mid())
        off = float(abs(exactly - away).upper())
        if not (abs(away) * float(self.t[-1]) < LARGEST_ANGLE and math.isfinite(self.size)):
            return arb(0, "inf")
        turns = turned(self.t, np.array([away]))[:, 0]
        with np.errstate(under="ignore"):
            rows = self.values.real * (1.0 + turns.real) - self.values.imag * turns.imag
        error = self.error + self.reach * (10 * _UNIT * abs(away) + 2 * off)
        error = (error + self.size * (8 * _UNIT)) * _ROOM + 1e-280
        return arb(math.fsum(rows.tolist()), error) * self.norm


def _chernoff(log_moment: arb, c: Fraction, epsilon: arb) -> arb:
    return (log_moment - ball(c) * epsilon).exp()


def alias(loss: Loss, s: Fraction, distance: Fraction, period: arb, epsilon: arb) -> arb:
    """Return E(s)/(e^{distance·B} − 1), a bound that needs few digits."""
    with ctx.workprec(guard(loss.count, loss.cumulants(float(s))[0])):
        moment = _log_upper(loss, s, ctx.prec)
        bound = _chernoff(moment, s, epsilon) / (ball(distance) * period).expm1()
        return bound.upper()


@functools.lru_cache(maxsize=256)
def _log_value(loss: Loss, s: Fraction, precision: int) -> arb:
    with ctx.workprec(precision):
        return loss.log_value(s)


@functools.lru_cache(maxsize=256)
def _log_upper(loss: Loss, s: Fraction, precision: int) -> arb:
    with ctx.workprec(precision):
        return loss.log_upper(s)


@final
@dataclass(frozen=True)
class _Contour:
    """What a contour needs to be asked at any ε."""

    terms: _Balls | _Floats
    sign: int
    """That of κ(c)."""
    size: arb
    """ln M(c)."""
    truncation: arb
    """A bound of Σ |terms| over all later j."""


@functools.lru_cache(maxsize=32)
def _contour(
    loss: Loss, kernel: Kernel, line: Line, precision: int, quick: bool
) -> _Contour | None:
    """Return it by sums in balls, or quickly, by those of floats; None where they err too much."""
    c, step = line.c, line.step
    terms: _Balls | _Floats | None = None
    if not quick:
        at, h, values = ball(c), ball(step), loss.line(c, step, line.count)
        terms = _Balls.of([v * kernel.at(acb(at, j * h)) for j, v in enumerate(values)])
    elif c == float(c) and step == float(step):
        found = loss.quick_line(c, step, line.count)
        if found is not None:
            terms = _Floats.of(found, kernel, float(c), float(step))
    if terms is None:
        return None
    sign = 1 if math.prod(c - pole for pole in kernel.poles) > 0 else -1
    return _Contour(terms, sign, _log_value(loss, c, precision), _truncation(loss, kernel, line))


def _truncation(loss: Loss, kernel: Kernel, line: Line) -> arb:
    """Bound Σ_{j ≥ N} |M(c + ijh)/M(c)| |κ(c + ijh)|, where |κ(c + it)| ≤ 1/t^m for m poles."""
    step, count = line.step, line.count
    h, last = float(step), count - 1
    ratio = arb(loss.log_ratio(line.c, h * count)).exp()
    if (order := len(kernel.poles)) >= 2:
        fall = ball(step) ** order
        return ratio / (fall * arb(last) ** (order - 1))
    scale, times = loss.far(line.c)
    doublings = 2 + (ctx.prec + 32) // times
    log_far = max(scale, math.log(h * count)) + doublings * _LOG_2
    near = ratio * (log_far - math.log(h * last)) / ball(step)
    beyond = (times * (arb(scale) - arb(log_far))).exp() / (times * ball(step))
    return near * (1 + arb(2) ** -20) + beyond * (1 + arb(2) ** -20)


@functools.lru_cache(maxsize=256)
def plan_contour(loss: Loss, kernel: Kernel, strip: Strip, epsilon: float, bits: int) -> Plan:
    """Choose a contour for about 2^bits; raise UndecidedError where there is no short one."""
    target = bits * _LOG_2
    place = _place(loss, kernel, strip, epsilon, target)
    c, step = place.c, place.step
    spread = loss.cumulants(float(c))[2]
    share = target + sum(math.log(abs(float(c) - pole)) for pole in kernel.poles)
    share += 0.5 * math.log(place.curvature)
    t = math.sqrt(2 * target / spread) / _GROWTH
    with ctx.workprec(_precision(loss, float(c), bits)):  # as for the integral
        while True:
            count = _rounded_up(math.ceil(t / float(step)) + 2)
            t = float(step) * count
            fall, needed = -loss.log_ratio(c, t), max(target, share - _rest(kernel, t)) + _REST
            if fall >= needed:
                return Plan(Line(c, step, count), *place.ends)
            if count >= MOST_NODES:
                raise UndecidedError(
                    f"The contour for epsilon={epsilon:.6g} needs more than {MOST_NODES} nodes at "
                    f"{bits} bits. Ask for a larger relative_width, such as 1e-9."
                )
            missing = needed / max(fall, 1.0)
            t *= min(max(missing**_CAUTION, _GROWTH), max(math.sqrt(missing), _MOST_GROWTH))
            t = min(t, float(step) * MOST_NODES)


@functools.lru_cache(maxsize=64)
def falls_soon(  # noqa: PLR0917  # all of it is the key
    loss: Loss, kernel: Kernel, strip: Strip, epsilon: float, bits: int, most: int = LONG
) -> bool:
    """Whether M has fallen enough after `most` nodes: in floats, where nothing is cut off."""
    with contextlib.suppress(UndecidedError):
        if any(not part.is_whole for part, _ in loss.factors):
            return plan_contour(loss, kernel, strip, epsilon, bits).line.count <= most
        place = _place(loss, kernel, strip, epsilon, bits * _LOG_2)
        end = float(place.step) * most * np.array(_BEYOND)
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
def _place(loss: Loss, kernel: Kernel, strip: Strip, epsilon: float, target: float) -> _Place:
    start, beside = estimator(loss).last.get(strip, (None, (None, None)))
    try:
        point = saddle(loss, strip, epsilon, start=start)
    except ArithmeticError as error:
        raise UndecidedError(f"A contour was not found: {error}.") from error
    c = _abscissa(loss, kernel, point, epsilon)
    here = float(c)
    size, _, spread = loss.cumulants(here)
    if not spread > 0:
        raise UndecidedError(f"Floats do not tell epsilon={epsilon:.6g} from an end of the losses.")
    kappa = -sum(math.log(abs(here - pole)) for pole in kernel.poles)
    log_value = size - here * epsilon + kappa - 0.5 * math.log(2 * math.pi * point.curvature)
    sides = [
        nearest_bound(loss, strip, epsilon, here, side, log_value, target, start)
        for side, start in zip((-1, 1), beside, strict=True)
    ]
    period = max(needed for needed, _ in sides)
    step = Fraction(shortened(2 * math.pi / period, 4, math.floor))
    left, right = (Fraction(s) if s in strip.poles else c + _shorter(s - here) for _, s in sides)
    return _Place(c, step, (left, right), point.curvature)


def _shorter(distance: float) -> Fraction:
    """Cut to 6 bits, so that neighbouring questions share a bound of aliases."""
    return Fraction(shortened(distance, 6, math.trunc))


def _rest(kernel: Kernel, t: float) -> float:
    """Return about −ln of the integral of |κ(c + iu)| over u ≥ t that is taken with |M| at t."""
    order = len(kernel.poles)
    return (order - 1) * math.log(t) if order >= 2 else -_FAR_LOG


def _abscissa(loss: Loss, kernel: Kernel, point: Saddle, epsilon: float) -> Fraction:
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
