"""Measures of sums of losses, given by their transforms, and contour integrals over them.

On a vertical line Re z = c only the ratios M(c + it)/M(c) are computed, and bounds on their decay.

*Cutting off rare large losses.* The moments of a subsampled Gaussian loss grow like
e^{s²μ²/2} q^s. For large s they are dominated by a jump that is far less likely than δ itself, and
the line through their saddle point gives no useful bound. Therefore the normal density φ is
replaced by φχ with χ ≤ 1 (`losses.transform.Cut`). The laws P and Q of factor i lose the masses p_i
and q_i, which have closed forms. Statement: a function of the losses with 0 ≤ g ≤ b satisfies

    E[g; φχ] ≤ E[g] ≤ E[g; φχ] + b Σ k_i p_i.

The cut is placed where Σ k_i p_i is far below the requested error.
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
"""Bits by which the precision exceeds the accuracy, besides those for the count and for ln M."""
_UNIT = 2.0**-53
"""The unit roundoff u."""
_QUICK, _USUAL = 10, 16.0
"""Bits of the precision that floats may lose; and the length of a usual line, in units of one over
the standard deviation. A longer line is allowed less error per unit of t."""
_POWER = 1 << 12
"""Largest power on a short line whose rounding is accepted: balls take a millisecond for it."""
_ROOM = 1.001
"""Factor that covers the rounding of error bounds."""
_BOUNDED_SHARE = 0.95
"""Share of the variance that must belong to the factors whose decay is bounded."""
_MOST_DECAYS = 8
"""Largest number of factors whose decay is bounded: each takes milliseconds."""
_MANY = 1 << 20
"""Number of releases above which moments are computed: the excess of quick bounds on ln M, up to
1e-6 for one release, would be too large."""
LOSS = 12
"""Bits by which an integral may miss its target; the target is that much more accurate."""


@final
@dataclass(frozen=True)
class Loss:
    """A sum of independent losses: the transforms of the factors and their counts."""

    factors: tuple[tuple[Transform, int], ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.factors)

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return ln M(c) and its first two derivatives, in floats without error bounds."""
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
        """Return an upper bound on ln M(c): a quick one, whose excess is small for few releases."""
        with contextlib.suppress(UndecidedError):  # the value may take too many nodes
            if self.count > _MANY and (found := self.log_value(c)).is_finite():
                return found.upper()
        return sum((count * part.log_upper(c) for part, count in self.factors), start=arb(0))

    def line(self, c: Fraction, step: Fraction, count: int) -> list[acb]:
        """Return M(c + ij·step)/M(c) for j < count."""
        lines = [part.line(c, step, count) for part, _ in self.factors]
        first, *others = (
            [power(ratio, times) for ratio in ratios]
            for (_, times), ratios in zip(self.factors, lines, strict=True)
        )
        for other in others:
            first = [p * q for p, q in zip(first, other, strict=True)]
        return first

    def quick_line(self, c: Fraction, step: Fraction, count: int) -> QuickLine | None:
        """Return the same ratios from floats, or None if their errors are too large."""
        return _quick_line(self, c, step, count)

    def log_ratio(self, c: Fraction, t: float) -> float:
        """Return an upper bound on ln(|M(c + iu)|/M(c)) for all u ≥ t."""
        return _log_ratio(self, c, t)

    def far(self, c: Fraction) -> tuple[float, int]:
        """Return ln C and k such that |M(c + it)|/M(c) ≤ (C/t)^k."""
        found = [
            (scale, times)
            for decay, times in _decays(self, c)
            if (scale := decay.log_scale()) is not None
        ]
        if not found:
            raise UndecidedError("No decay of the transform of these losses is known.")
        return max(found, key=lambda row: row[1])

    @property
    def count(self) -> int:
        """The number of independent losses."""
        return sum(count for _, count in self.factors)


@functools.lru_cache(maxsize=64)
def estimator(loss: Loss) -> Estimator:
    """Return the float estimator for a loss; it shares lines with losses of proportional counts."""
    power = math.gcd(*(count for _, count in loss.factors))
    once = tuple((part, count // power) for part, count in loss.factors)
    return Estimator(_powers(once), power)


@functools.lru_cache(maxsize=64)
def _powers(factors: tuple[tuple[Transform, int], ...]) -> Powers:
    """Return the data that the powers of a product of transforms share."""
    return Powers([(part.estimate(), count) for part, count in factors])


@final
@dataclass(frozen=True, eq=False)
class QuickLine:
    """Ratios e^{ijhm} (v_j + η_j)/n on a line, in floats; `norm` encloses 1/n, which is near 1."""

    mean: arb
    """m"""
    values: Complexes
    """v"""
    errors: Reals
    """Bounds on |η|."""
    norm: arb
    """1/n"""


def _quick_line(loss: Loss, c: Fraction, step: Fraction, count: int) -> QuickLine | None:
    """Return the products of powers from floats, or None if their errors are too large.

    Statement: for factors v_i = 1 + w_i + η_i with |η_i| ≤ η, and m_i = |1 + w_i| + η, the product
    of the powers v_i^{k_i} differs from that of the (1 + w_i)^{k_i} by at most
    Π m_i^{k_i} Σ k_i η/m_i. In floats each factor is rounded too, and the Σ k_i factors are
    multiplied in any order, each time with an error of at most √5 units. A power for which this
    rounding matters is computed in ball arithmetic, and counts as one factor.
    """
    allowed = _allowed(loss, c)
    rate = quick_rate(loss, c, float(step * count)) / len(loss.factors)
    longest = allowed / (8 * _UNIT * len(loss.factors))
    longest = min(longest, _POWER) if count <= SHORT else longest
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
            away = 1.5 * (found.errors + found.blur)  # √2 for both parts, and for rounding
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
    """Return (1 + w)^count and error bounds, for complex numbers w with error bounds."""
    rows = zip(more.tolist(), errors.tolist(), strict=True)
    balls = [power(acb(1 + arb(w.real, e), arb(w.imag, e)), count) for w, e in rows]
    middles = [complex(float(x.real.mid()), float(x.imag.mid())) for x in balls]
    radii = [
        float(abs(x - acb(m.real, m.imag)).upper()) for x, m in zip(balls, middles, strict=True)
    ]
    return np.array(middles), np.array(radii) * (1 + 1e-9)


def quick_rate(measure: Loss, c: Fraction, reach: float) -> float:
    """Return the allowed error, per unit of t, of ratios on a line at the current precision.

    It is about the allowed error divided by the standard deviation of the tilted loss. On a line
    that is much longer it is a share per length, since terms far out matter there.
    """
    return _allowed(measure, c) * min(math.sqrt(measure.cumulants(float(c))[2]), _USUAL / reach)


def _allowed(measure: Loss, c: Fraction) -> float:
    """Return about the largest error that ratios on a line may have."""
    bits = ctx.prec - guard(measure.count, measure.cumulants(float(c))[0]) - _QUICK
    return math.ldexp(1.0, -bits)


def is_narrow(found: arb, bits: int) -> bool:
    """Whether the relative radius of a ball is at most about 2^{LOSS − bits}."""
    return bool(2 * found.rad() < abs(found).lower() * arb(2) ** (LOSS - bits))


def guard(count: int, size: float) -> int:
    """Return the bits by which the precision must exceed the accuracy; `size` is about ln M(c)."""
    return _GUARD + count.bit_length() + math.frexp(1 + abs(size))[1]


def power(ratio: acb, count: int) -> acb:
    """Return ratio^count, through the logarithm where that gives a narrow ball."""
    if count < 64 or not abs(ratio) > 0:
        return ratio**count
    if ratio.real > 0:
        return (count * ratio.log()).exp()
    return (
        (1 - 2 * (count % 2)) * (count * (-ratio).log()).exp() if ratio.real < 0 else ratio**count
    )


@functools.lru_cache(maxsize=128)
def _decays(loss: Loss, c: Fraction) -> tuple[tuple[Decay, int], ...]:
    """Return the decay of the factors that matter; the ratio of any other factor is at most 1.

    Factors with a closed form are always included.
    """
    found = [(part.decay(c), count) for part, count in loss.factors if part.is_closed]
    rest = [i for i, (part, _) in enumerate(loss.factors) if not part.is_closed]
    if not rest:
        return tuple(found)
    parts = estimator(loss).variances(float(c))
    order = sorted(rest, key=lambda i: -parts[i])
    wanted, reached = _BOUNDED_SHARE * sum(parts[i] for i in rest), 0.0
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
"""Times that cuts are placed again, given the value that they lead to; any placement is valid."""
_GRAIN = 16
"""Bits to a multiple of which an accuracy is rounded up, so that more questions share a result."""
_GAIN = 3.0
"""Least difference of ln G at which two saddle-point approximations count as different."""
_MOST_TILT_RATIO = 4.0
"""Ratio of the tilts with and without a cut from which large losses count as a hindrance."""
_FIRST = 20.0
"""If a cut leaves no saddle point, ln G is next guessed as 4 times the last guess minus this."""
_FURTHEST = 1.3
"""Factor of the largest tilt that is needed, in units of the distance at which a normal law falls
to the accuracy: with less, the aliasing bounds do not allow such smooth cuts."""
_NEGLIGIBLE = 36.0
"""−ln of a share that is negligible in floats: a part that small needs no cut."""
_MARGIN = 14.0
"""−ln of the ratio of the mass that cuts lose to what they may lose: a larger value moves them to
where moments explode."""
_EDGE_WIDTHS = 4.0
"""Widths: a smooth cut begins to matter this far before its place."""
_REACH = 9.0
"""Distance at which a normal density has fallen below e^−40 of its peak."""
_POINTS = 256
"""Points at which a tilted law is evaluated: with fewer a narrow peak near a cut is missed."""
_LEFT, _MEASURE_BEYOND = -40.0, 12.0
"""A point to the left of all mass of a tilted law; and the number of widths beyond a cut at which
the decay of the law is measured."""
_WIDTHS = tuple(Fraction(1, 1 << i) for i in range(2, 8))
"""Widths of cuts, the smoothest first: a sharper cut needs finer nodes."""


@functools.lru_cache(maxsize=128)
def with_cuts(loss: Loss, strip: Strip, epsilon: float, bits: int) -> Loss:
    """Return the loss, with cuts if they lower the saddle-point value of the integral.

    Any placement of the cuts is valid.
    """
    whole = saddle_value(loss, strip, epsilon, bits)
    if whole is not None and _are_beyond_mass(
        loss, bits * _LOG_2 - whole.log_value, whole.furthest
    ):
        return loss
    best, level = loss, 0.0 if whole is None else whole.log_value
    found: Level | None = None
    tilt = start = None
    for _ in range(_ROUNDS):
        shorter = cut_off(loss, -level + bits * _LOG_2, tilt)
        found = saddle_value(shorter, strip, epsilon, bits, start)
        if found is None and best is loss:
            level = 4 * level - _FIRST  # ε lies beyond the losses that are kept
            continue
        if found is None:
            break
        if whole is not None and best is loss and _changes_little(whole, found):
            return loss
        first, last = best is loss, level
        best, level, tilt, start = shorter, found.log_value, rounded(found.furthest), found.c
        if not first and abs(last - level) < _GAIN:
            break
    if whole is None or found is None:
        return best
    return loss if _changes_little(whole, found) else best


@final
@dataclass(frozen=True)
class Level:
    """The saddle-point approximation of an integral."""

    log_value: float
    """About ln G(ε)."""
    c: float
    """The saddle point."""
    furthest: float
    """The largest tilt that is needed."""


def _changes_little(whole: Level, cut: Level) -> bool:
    """Whether a cut changes little. If not, jumps keep the saddle point from larger tilts."""
    lower = whole.log_value - cut.log_value
    return lower < _GAIN and cut.furthest < _MOST_TILT_RATIO * whole.furthest


def _are_beyond_mass(loss: Loss, log_mass: float, tilt: float) -> bool:
    """Whether cuts that lose e^−log_mass lie where the law with this tilt has no mass left."""
    for (part, count), (shorter, _) in zip(
        loss.factors, cut_off(loss, log_mass).factors, strict=True
    ):
        if isinstance(part, MixtureTransform) and isinstance(shorter, MixtureTransform):
            assert shorter.cut is not None
            s = max(part.tilt(tilt), 0.0)
            edge = float(shorter.cut.at) - _EDGE_WIDTHS * float(shorter.cut.width)
            x = np.linspace(-_REACH, max(edge, s * part.floats().mu) + _REACH, _POINTS)
            size = part.floats().bell(x) + s * part.floats().log_density(x)
            if size[x >= edge].max() > size.max() - _NEGLIGIBLE - math.log(count):
                return False
    return True


def saddle_value(
    loss: Loss, strip: Strip, epsilon: float, bits: int, start: float | None = None
) -> Level | None:
    """Return the saddle-point approximation of G(ε), or None if there is no saddle point."""
    if start is None:
        start = estimator(loss).last.get(strip, (None,))[0]
    try:
        point = saddle(loss, strip, epsilon, start=start)
    except (ArithmeticError, UndecidedError):
        return None
    value = loss.cumulants(point.c)[0] - point.c * epsilon
    if value > max(epsilon, 0.0) + _GAIN:  # its value at a pole is an upper bound
        return None
    value -= sum(math.log(abs(point.c - pole)) for pole in strip.poles)
    furthest = point.c + _FURTHEST * math.sqrt(2 * bits * _LOG_2 / point.curvature)
    return Level(value - 0.5 * math.log(2 * math.pi * point.curvature), point.c, furthest)


def near_for_cuts(epsilon: float) -> float:
    """Round to eight bits, so that questions about nearly the same ε share their cuts."""
    return shortened(epsilon, 8)


def coarse(bits: int) -> int:
    """Round an accuracy up, so that questions of similar accuracy share their cuts."""
    return max(3, -(-bits // _GRAIN)) * _GRAIN


def rounded(value: float) -> float:
    """Round to four bits, so that questions with nearly the same tilt share a cut."""
    return shortened(value, 4)


@functools.lru_cache(maxsize=128)
def cut_off(loss: Loss, log_mass: float, tilt: float | None = None) -> Loss:
    """Return the loss with every normal law cut, such that about e^−log_mass is lost in total.

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

    The default of s is twice the tilt at which φ(x) w(x)^s is as large at the cut as at 0.
    """
    floats = part.floats()
    shifted = floats.mu + math.sqrt(2 * max(needed + floats.log_share, 0.0))
    at = max(math.sqrt(2 * needed), shifted)
    if s is None:
        ends = floats.log_density(np.array([0.0, at]))
        s = at * at / max(float(ends[1] - ends[0]), 1e-300)
    for width in _WIDTHS:
        place = Fraction(math.ceil(at * math.sqrt(1 + float(width) ** 2) * 16), 16)
        cut = Cut(place, width)
        if decays_beyond(part, cut, s):
            break
    return cut


def has_rare_jumps(loss: Loss) -> bool:
    """Whether all losses are smooth, and some may be large but rare."""
    smooth = all(isinstance(p, (GaussianTransform, MixtureTransform)) for p, _ in loss.factors)
    mixtures = [part for part, _ in loss.factors if isinstance(part, MixtureTransform)]
    return smooth and bool(mixtures) and all(part.mixed_first for part in mixtures)


def all_decay(loss: Loss, tilt: float) -> bool:
    """Whether all cuts are sharp enough for φχw^s, s = tilt + 1, to decay beyond them."""
    return all(
        decays_beyond(part, part.cut, tilt + 1)
        for part, _ in loss.factors
        if isinstance(part, MixtureTransform) and part.cut is not None
    )


def decays_beyond(part: MixtureTransform, cut: Cut, s: float) -> bool:
    """Whether φχw^s decays beyond a cut."""
    end = float(cut.at) + _MEASURE_BEYOND * float(cut.width)
    return replace(part, cut=cut).floats().rates(_LEFT, end, s, 0.0)[1] >= LEAST_RATE


def lost_masses(loss: Loss) -> tuple[arb, arb]:
    """Return upper bounds on the masses that the cuts remove from the products P and Q."""
    first, second = arb(0), arb(0)
    for part, count in loss.factors:
        if isinstance(part, MixtureTransform):
            p, q = part.lost()
            first, second = first + count * p, second + count * q
    return first.upper(), second.upper()


# --- Certified contour integrals for the profile and the tails of a sum of losses -----------------
# Let M(z) = E_P[e^{zL}] = Π M_i(z)^{k_i} be finite on the whole line, and let κ be one of the
# kernels 1/(z(z + 1)), 1/z and 1/(z + 1). For Re z = c, a real number that is not a pole of κ,
#
#     (1/2πi) ∫ M(z) e^{−zε} κ(z) dz = ± G(ε),
#
# where ± is the sign of κ(c). By the residues at the poles to the right of c, G is
#
#     1/(z(z + 1)):  δ(ε) for c > 0;  1 − δ(ε) for −1 < c < 0;  δ(ε) − 1 + e^ε for c < −1;
#     1/z:           P(L > ε) for c > 0;  P(L ≤ ε) for c < 0;
#     1/(z + 1):     e^ε Q(L > ε) for c > −1;  e^ε Q(L ≤ ε) for c < −1.
#
# In every case 0 ≤ G(ε) ≤ E(s) := M(s) e^{−sε} for all s between the same two poles as c.
#
# *Discretisation.* By Poisson summation the trapezoidal sum with step h is Σ_n G(ε + nB) e^{ncB}
# over all integers n, with B = 2π/h. Since G ≥ 0, the error is one-sided. For s₁ < c < s₂ between
# the same poles it is at most E(s₁)/(e^{(c−s₁)B} − 1) + E(s₂)/(e^{(s₂−c)B} − 1).
#
# *Truncation.* |M(c + it)| ≤ r(T) M(c) for |t| ≥ T, where r is computed from the transforms. If κ
# falls only like 1/t, the part beyond a far point is bounded separately: from there on
# |M(c + it)| ≤ M(c) (C/t)^m.
#
# Floats choose the contour, with c near the saddle point of E·|κ|; any choice is valid.

MOST_NODES = 40_000
"""Largest number of nodes on a contour."""
LONG = 1500
"""Nodes of a straight line above which other contours are tried first: planning those takes about
as long as summing this many nodes."""
SHORT = 256
"""Nodes of a line up to which no cut is sought to shorten it: the search would take longer."""
_DECAY_POINTS = (1.0, 1.25, 1.5)
"""Points, as multiples of the end of such a line, where the decay of M is evaluated: at one point M
may be small by chance."""
_WORD_BITS = 64
"""Bits of a word: a lower precision is not faster, and bounds on the decay need as many."""
_LOG_2 = math.log(2)
_ZERO = arb(0)
_RETRY_SHARE = 4
"""A second try is more accurate by one over this of its additional bits: sums in floats often miss
a width by a bit."""
_GROWTH = 1.1
"""Least factor by which a line is lengthened: a smaller one takes more bounds on the decay."""
_MOST_GROWTH = 2.0
"""Largest such factor, unless a normal law needs a larger one: it would overshoot where the decay
begins late."""
_LENGTHENING_POWER = 0.75
"""Power of the missing decay by which a line is lengthened: ½ is right for a normal law, and 1 for
an exponential decay."""
_MOST_RISE, _WORTH = 1.5, 0.8
"""Largest increase of the integrand on a line further from the saddle point, as a logarithm; and
the ratio of periods from which it is worth that."""
_SHARES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08)
"""Distances of such lines that are tried, as shares of that where both periods are equal."""
_COARSE = 0.75
"""Largest rounding of a saddle point, in its widths: neighbouring questions share a line."""
_STEEP = 0.4
"""Slope at a rounded saddle point, in its widths, below which the line gets hardly longer."""
_FINEST = 2.0**-10
"""Rounding of a saddle point, in its widths, that is accepted at any slope: floats know no more."""
_REST = 1.0
"""Margin, as a natural logarithm, for rounding in the truncation; without it digits may be lost."""
_FAR_LOG = 4.0
"""About ln of the ratio of the point where M falls faster to the end of a line, for kernels with
one pole: with a smaller value lines are too short for the accuracy."""


_INTERVAL, _INTERVALS, _LAST_REMAINDER = 0.1, 200, 0.01
"""For `size_bound`: the length of its intervals, in widths of the saddle point; their largest
number; and the ratio of the remainder to the sum at which they end."""


@final
@dataclass(frozen=True)
class Kernel:
    """A kernel κ, integrated against M(z) e^{−zε}: the product of 1/(z − pole) over its poles."""

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
    added: arb = _ZERO,
    most: int = MOST_NODES,
) -> arb:
    """Return a ball around G(ε) + `added` of relative accuracy about 2^−bits.

    Raises UndecidedError if that takes too many nodes, or more than `most` nodes in balls.
    """
    plan = plan_contour(loss, kernel, strip, near(float(epsilon)), bits)
    line = plan.line
    quick = Sum.of(loss, kernel, plan, bits, quick=True)
    if quick is not None:
        found = quick.at(epsilon) + added
        strict = most < MOST_NODES  # the caller tries other ways before long sums in balls
        if is_narrow(found, bits) if strict else found.rel_accuracy_bits() >= bits - LOSS:
            return found
    if line.count > most:
        raise UndecidedError(
            f"Sums in floats do not give {bits} bits. Ask for a larger relative_width."
        )
    whole = Sum.of(loss, kernel, plan, bits, quick=False)
    assert whole is not None
    return whole.at(epsilon) + added


@final
@dataclass(frozen=True)
class Sum:
    """The terms on a contour, which give G at any ε; the ball is narrowest near the plan's ε."""

    loss: Loss
    plan: Plan
    contour: _Contour
    precision: int

    @staticmethod
    def of(loss: Loss, kernel: Kernel, plan: Plan, bits: int, *, quick: bool) -> Sum | None:
        """Compute the terms in balls or, with `quick`, in floats; None if those err too much."""
        precision = _precision(loss, float(plan.line.c), bits)
        with ctx.workprec(precision):
            contour = _contour(loss, kernel, plan.line, precision, quick)
        return None if contour is None else Sum(loss, plan, contour, precision)

    def at(self, epsilon: ExactReal) -> arb:
        """Return a ball around G(ε): the sum, widened by its truncation and its aliases."""
        with ctx.workprec(self.precision):
            loss, plan, contour, line = self.loss, self.plan, self.contour, self.plan.line
            eps, h = epsilon.ball(), ball(line.step)
            total = contour.terms.total(h, eps) * h / arb.pi()
            rest = contour.truncation * h / arb.pi()
            value = (contour.sign * total + arb(0, rest.upper())) * _chernoff(
                contour.size, line.c, eps
            )
            period = 2 * arb.pi() / h
            aliases = alias(loss, plan.left, line.c - plan.left, period, eps)
            aliases += alias(loss, plan.right, plan.right - line.c, period, eps)
            found = value - (aliases / 2).upper() + arb(0, (aliases / 2).upper())
            return found.max(arb(0))


def size_bound(loss: Loss, c: Fraction, epsilon: ExactReal) -> arb:
    """Return an upper bound on E[(1 − e^{ε−L})⁺] from the sizes of the terms at c > 0.

    Let r(t) ≥ |M(c + iu)|/M(c) for all u ≥ t. The bound is E(c)/π times ∫ r(t) |κ(c + it)| dt over
    t ≥ 0. Both factors decrease, and |κ(c + it)| is below 1/t². So the integral is at most the sum
    over intervals with the integrand at their left ends, plus r(t)/t at the end t of the last one.
    Chernoff's bound, E(c) times the maximum of (1 − e^{−x}) e^{−cx}, is returned if it is smaller.
    """
    size, _, variance = loss.cumulants(float(c))
    with ctx.workprec(max(_WORD_BITS, guard(loss.count, size))):
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
        if fall < _LAST_REMAINDER * t * total:
            break
    total = (total + fall / t) / math.pi * _ROOM
    return value * arb(total).min(peak)


def _precision(loss: Loss, c: float, bits: int) -> int:
    """Return the precision of the moments on a line, at least one word so that lines share it."""
    return max(_WORD_BITS, bits + guard(loss.count, loss.cumulants(c)[0]))


def near(epsilon: float) -> float:
    """Truncate to 20 bits, so that questions about nearly the same ε share a contour."""
    return shortened(epsilon, 20, math.trunc)


@final
@dataclass(frozen=True, eq=False)
class _Balls:
    """Terms M(c + ijh)/M(c) κ(c + ijh) of a sum, in balls."""

    rows: acb_mat
    """About as many rows as columns, padded with 0: high powers would widen the balls."""
    first: arb

    @staticmethod
    def of(terms: Sequence[acb]) -> _Balls:
        """Arrange the terms in rows."""
        length = math.isqrt(len(terms))
        count = -(-len(terms) // length)
        filled = [*terms, *[acb(0)] * (count * length - len(terms))]
        return _Balls(acb_mat(count, length, filled), terms[0].real)

    def total(self, h: arb, epsilon: arb) -> arb:
        """Return the real part of Σ terms e^{−ijhε}, with the first term halved."""
        angle, count, length = -h * epsilon, self.rows.nrows(), self.rows.ncols()
        inner = acb_mat(length, 1, [acb(0, g * angle).exp() for g in range(length)])
        blocks = acb_mat(1, count, [acb(0, g * length * angle).exp() for g in range(count)])
        return (blocks * (self.rows * inner))[0, 0].real - self.first / 2


@final
@dataclass(frozen=True, eq=False)
class _Floats:
    """The same terms in floats, e^{ijhm} (v + η)/n for every j, with bounds on their errors."""

    mean: arb
    norm: arb
    t: Reals
    """jh, without rounding"""
    values: Complexes
    """v, with the first term halved"""
    error: float
    """An upper bound on Σ |η|."""
    size: float
    """Σ |v|"""
    reach: float
    """Σ |v| jh"""

    @staticmethod
    def of(line: QuickLine, kernel: Kernel, c: float, h: float) -> _Floats:
        """Return the terms with a kernel, whose values have errors below 32 units."""
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

        Each e^{itx} has an error of 10u|tx| (`losses.bounds`), plus t times that of x. The products
        have errors below 8u, and so has their sum, which adds rounded numbers.
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
    """Return an upper bound on E(s)/(e^{distance·B} − 1), computed at low precision."""
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
    """The part of a contour integral that does not depend on ε."""

    terms: _Balls | _Floats
    sign: int
    """The sign of κ(c)."""
    size: arb
    """ln M(c)."""
    truncation: arb
    """A bound on Σ |terms| over all later j."""


@functools.lru_cache(maxsize=32)
def _contour(
    loss: Loss, kernel: Kernel, line: Line, precision: int, quick: bool
) -> _Contour | None:
    """Return it in balls or, with `quick`, in floats; None if those err too much."""
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
    return _Contour(
        terms, sign, _log_value(loss, c, precision), truncation_bound(loss, kernel, line)
    )


def truncation_bound(loss: Loss, kernel: Kernel, line: Line) -> arb:
    """Bound Σ_{j ≥ N} |M(c + ijh)/M(c)| |κ(c + ijh)|, given |κ(c + it)| ≤ 1/t^m for m poles."""
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
    """Choose a contour for relative accuracy 2^−bits; UndecidedError if there is no short one."""
    target = bits * _LOG_2
    place = _place(loss, kernel, strip, epsilon, target)
    c, step = place.c, place.step
    spread = loss.cumulants(float(c))[2]
    share = target + sum(math.log(abs(float(c) - pole)) for pole in kernel.poles)
    share += 0.5 * math.log(place.curvature)
    t = math.sqrt(2 * target / spread) / _GROWTH
    with ctx.workprec(_precision(loss, float(c), bits)):  # the precision of the integral
        while True:
            count = _rounded_up(math.ceil(t / float(step)) + 2)
            end = float(step) * count
            fall, needed = -loss.log_ratio(c, end), max(target, share - _rest(kernel, end)) + _REST
            if fall >= needed:
                return Plan(Line(c, step, count), *place.ends)
            if count >= MOST_NODES:
                raise UndecidedError(
                    f"The contour for epsilon={epsilon:.6g} needs more than {MOST_NODES} nodes at "
                    f"{bits} bits. Ask for a larger relative_width, such as 1e-9."
                )
            missing = needed / max(fall, 1.0)
            t *= min(
                max(missing**_LENGTHENING_POWER, _GROWTH), max(math.sqrt(missing), _MOST_GROWTH)
            )
            t = min(t, float(step) * MOST_NODES)


@functools.lru_cache(maxsize=64)
def falls_soon(  # noqa: PLR0917  # all arguments are the key
    loss: Loss, kernel: Kernel, strip: Strip, epsilon: float, bits: int, most: int = LONG
) -> bool:
    """Whether M has decayed enough after `most` nodes; estimated in floats if nothing is cut."""
    with contextlib.suppress(UndecidedError):
        if any(not part.is_whole for part, _ in loss.factors):
            return plan_contour(loss, kernel, strip, epsilon, bits).line.count <= most
        place = _place(loss, kernel, strip, epsilon, bits * _LOG_2)
        end = float(place.step) * most * np.array(_DECAY_POINTS)
        return bool(estimator(loss).log_ratio(float(place.c), end)[0].max() < -bits * _LOG_2)
    return False


@final
@dataclass(frozen=True)
class _Place:
    """A contour without its length: its abscissa, its step and the s₁, s₂ of the aliasing bound."""

    c: Fraction
    step: Fraction
    ends: tuple[Fraction, Fraction]
    curvature: float


@functools.lru_cache(maxsize=256)
def _place(loss: Loss, kernel: Kernel, strip: Strip, epsilon: float, target: float) -> _Place:
    start, aliases = estimator(loss).last.get(strip, (None, (None, None)))
    try:
        point = saddle(loss, strip, epsilon, start=start)
    except ArithmeticError as error:
        raise UndecidedError(f"No contour was found: {error}. Give a smaller epsilon.") from error
    c = _abscissa(loss, kernel, point, epsilon)
    here = float(c)
    size, _, spread = loss.cumulants(here)
    if not spread > 0:
        raise UndecidedError(
            f"Floats cannot distinguish epsilon={epsilon:.6g} from the least or the largest loss. "
            "Give an epsilon further from it."
        )
    kappa = -sum(math.log(abs(here - pole)) for pole in kernel.poles)
    log_value = size - here * epsilon + kappa - 0.5 * math.log(2 * math.pi * point.curvature)
    sides = [
        nearest_bound(loss, strip, epsilon, here, side, log_value, target, start)
        for side, start in zip((-1, 1), aliases, strict=True)
    ]
    c, period = _balanced(loss, c, sides, epsilon, kernel, point)
    step = Fraction(shortened(2 * math.pi / period, 4, math.floor))
    here = float(c)
    left, right = (Fraction(s) if s in strip.poles else c + _shorter(s - here) for _, s in sides)
    return _Place(c, step, (left, right), point.curvature)


def _balanced(  # noqa: PLR0917
    loss: Loss,
    c: Fraction,
    sides: Sequence[tuple[float, float]],
    epsilon: float,
    kernel: Kernel,
    point: Saddle,
) -> tuple[Fraction, float]:
    """Return a line where the periods of both aliasing bounds are more alike, and the longer one.

    A bound is a pair (size/|c − s|, s), whose size hardly depends on c. The integrand may grow by
    the factor e^`_MOST_RISE` at most: its terms cancel. Without cuts they do already, if the right
    period is much longer.
    """
    here, longest = float(c), max(sides)[0]
    (left, low), (right, high) = sides
    if math.isinf(longest) or all(part.is_whole for part, _ in loss.factors):
        return c, longest
    left, right = left * (here - low), right * (high - here)
    even = (left * high + right * low) / (left + right)

    def size(at: float) -> float:
        kappa = -sum(math.log(abs(at - pole)) for pole in kernel.poles)
        return loss.cumulants(at)[0] - at * epsilon + kappa

    top, quantum = size(here) + _MOST_RISE, _quantum(point) / 2
    for share in _SHARES:
        place = round(Fraction(here + share * (even - here)) / quantum) * quantum
        if low < (at := float(place)) < high and place not in kernel.poles:
            longer = max(left / (at - low), right / (high - at))
            if longer <= _WORTH * longest and size(at) <= top:
                return place, longer
    return c, longest


def _quantum(point: Saddle) -> Fraction:
    """Return the rounding of a saddle point, such that neighbouring questions share a line."""
    return Fraction(2) ** (math.frexp(_COARSE / math.sqrt(point.curvature))[1] - 1)


def _shorter(distance: float) -> Fraction:
    """Truncate to 6 bits, so that neighbouring questions share a bound on aliases."""
    return Fraction(shortened(distance, 6, math.trunc))


def _rest(kernel: Kernel, t: float) -> float:
    """Return about −ln ∫ |κ(c + iu)| du over u ≥ t, the factor of |M| in the truncation at t."""
    order = len(kernel.poles)
    return (order - 1) * math.log(t) if order >= 2 else -_FAR_LOG


def _abscissa(loss: Loss, kernel: Kernel, point: Saddle, epsilon: float) -> Fraction:
    """Round the saddle point to few bits, while the slope stays small against the curvature."""
    width, quantum = 1 / math.sqrt(point.curvature), _quantum(point)
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
"""Bits by which the precision exceeds the accuracy, and the accuracy the requested one: sums and
bounds lose some, and with fewer the answer is wider than requested."""


def accuracy(asked: Fraction | None) -> int:
    """Return the relative accuracy, in bits, to aim at for a requested relative width."""
    best = ctx.prec - _SPARE
    if asked is None:
        return best
    needed = (asked.denominator // asked.numerator).bit_length()
    again = max(0, ctx.prec - max(START_PRECISION + 8, needed + 34))  # hardly a bit was missing
    return min(best, needed + _SPARE + again // _RETRY_SHARE)
