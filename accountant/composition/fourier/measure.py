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

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol, final

import numpy as np
from flint import acb, arb

from dpassay.accountant.composition.fourier.estimates import Estimator
from dpassay.accountant.composition.fourier.saddle import Strip, saddle
from dpassay.accountant.composition.losses.decay import Decay
from dpassay.accountant.composition.losses.kernels import LEAST_RATE
from dpassay.accountant.composition.losses.transform import (
    Cut,
    GaussianTransform,
    MixtureTransform,
    Transform,
)
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.numbers.solve import shortened

_GUARD = 16
"""Bits by which the precision exceeds the accuracy, besides those of the count and of ln M."""
_QUICK, _USUAL = 10, 16.0
"""Bits of the precision that floats may lose, and the length of a usual line in units of one over
the deviation: on a longer one less error is allowed for each t."""
_ENOUGH = 0.95
"""Share of the variance whose factors bound the decay: the others fall little."""
_MOST_DECAYS = 8
"""Most factors of which it is asked: each takes milliseconds."""
_PIECES, _MOST_PIECES = 8, 512
"""Pieces of the shortest period of several lists, and most in all: finer ones bound better, and
take longer."""

LOSS = 12
"""By how many bits an integral may miss what is aimed at: what is asked is that much wider."""


class Measure(Protocol):
    """The transform M of a positive measure, as far as a contour integral asks for it."""

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return ln M(c) and its first two derivatives, without proof."""

    def log_value(self, c: Fraction) -> arb:
        """Return ln M(c)."""

    def log_upper(self, c: Fraction) -> arb:
        """Return an upper bound of ln M(c), where its value takes too many nodes."""

    def line(self, c: Fraction, step: Fraction, count: int) -> list[acb]:
        """Return M(c + ij·step)/M(c) for j < count."""

    def quick_line(self, c: Fraction, step: Fraction, count: int) -> list[acb] | None:
        """Return the same from floats, None where their error matters."""

    def log_ratio(self, c: Fraction, t: float) -> float:
        """Return an upper bound of ln(|M(c + iu)|/M(c)) for all u ≥ t."""

    def far(self, c: Fraction) -> tuple[float, int]:
        """Return ln C and k with |M(c + it)|/M(c) ≤ (C/t)^k."""

    @property
    def count(self) -> int:
        """The number of independent losses."""

    def __hash__(self) -> int: ...


@final
@dataclass(frozen=True)
class Loss:
    """A sum of independent losses: the transforms of the factors, and how often each occurs."""

    factors: tuple[tuple[Transform, int], ...]
    last: float = math.inf
    """The frequency beyond which M does not matter: that of a lattice, where M is periodic."""

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.factors, self.last))

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

    def quick_line(self, c: Fraction, step: Fraction, count: int) -> list[acb] | None:
        """Return the same from floats, None where their error matters."""
        rate = quick_rate(self, c, float(step * count)) / len(self.factors)
        parts = [(part, rate / times) for part, times in self.factors]
        found = quick_lines(parts, c, step, count)
        return None if found is None else self._powers(found)

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
        """Return an upper bound of ln(|M(c + iu)|/M(c)) for t ≤ u ≤ last; −∞ if there is no u."""
        return -math.inf if t >= self.last else self.log_between(c, t, self.last)

    def log_between(self, c: Fraction, t: float, last: float) -> float:
        """Return an upper bound of ln(|M(c + iu)|/M(c)) for t ≤ u ≤ last."""
        ends = [end for end in _ends(self, c, last) if t < end]
        pieces = itertools.pairwise([*ends, last])
        sizes = [_between(self, c, t, ends[0] if ends else last)]
        return max(sizes + [_between(self, c, low, high) for low, high in pieces if ends])

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

    def atoms(self, c: Fraction) -> tuple[arb, arb, int] | None:
        """Return a(c)/M(c), Σ k_i C_i and k: see the head of this file.

        None where a loss has a density alone, and all of them fall.
        """
        share, rate, least = arb(1), arb(0), self.count
        for decay, count in _decays(self, c):
            split = decay.split()
            if split is None:
                return None
            own, fall = split
            share *= own**count
            rate += count * fall
            least = min(least, count) if fall > 0 else least
        return share, rate, least

    @property
    def count(self) -> int:
        """The number of independent losses."""
        return sum(count for _, count in self.factors)


@functools.lru_cache(maxsize=64)
def estimator(loss: Loss) -> Estimator:
    """Return the float engine for a loss."""
    parts = [(part.estimate(), count) for part, count in loss.factors]
    return Estimator(parts)


def quick_lines(
    parts: Sequence[tuple[Transform, float]], c: Fraction, step: Fraction, count: int
) -> list[list[acb]] | None:
    """Return the ratios of each part on a line, from floats where their error per t allows it.

    None where it does for no part.
    """
    found = [part.quick_line(c, step, count, rate) for part, rate in parts]
    if all(ratios is None for ratios in found):
        return None
    return [
        part.line(c, step, count) if ratios is None else ratios
        for (part, _), ratios in zip(parts, found, strict=True)
    ]


def quick_rate(measure: Measure, c: Fraction, reach: float) -> float:
    """Return the error per t that ratios on a line may have, at flint's current precision.

    It is about what is asked for over the deviation of the tilted loss, or, where the line reaches
    much further than that, over a share of its length: terms far out count there.
    """
    size, _, variance = measure.cumulants(float(c))
    bits = ctx.prec - guard(measure.count, size) - _QUICK
    return 2.0**-bits * min(math.sqrt(variance), _USUAL / reach)


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


@functools.lru_cache(maxsize=64)
def _ends(loss: Loss, c: Fraction, last: float) -> tuple[float, ...]:
    """Return where a line is cut for bounds of all factors at once.

    Different lists return to 1 at different frequencies, so that a common period is cut finely.
    """
    limits = [decay.limits for decay, _ in _decays(loss, c) if decay.limits]
    ends = {end for row in limits for end in row}
    if math.isfinite(last) and len(limits) > 1:
        grain = min(row[-1] for row in limits) / _PIECES
        ends |= {k * grain for k in range(1, min(math.ceil(last / grain), _MOST_PIECES))}
    return tuple(sorted(end for end in ends if end < last))


@functools.lru_cache(maxsize=2048)
def _between(loss: Loss, c: Fraction, low: float, high: float) -> float:
    """Return an upper bound of ln(|M(c + iu)|/M(c)) for low ≤ u ≤ high."""
    decays = _decays(loss, c)
    return sum(count * decay.log_between(low, high) for decay, count in decays) * (1 - 1e-9)


_LOG_2 = math.log(2)
_ROUNDS = 12
"""Times that cuts are placed anew for the value they give; the last ones are as valid."""
_GRAIN = 16
"""Bits to which an accuracy is rounded up: fewer are shared by fewer questions, more cost time."""
_GAIN = 3.0
"""Difference of ln G from which on two saddle-point values are told apart: they are that rough."""
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
"""Places at which a tilted law is looked at: with fewer a narrow peak near a cut is missed."""
_LEFT, _BEYOND = -40.0, 12.0
"""Where a tilted law is taken to begin, and the widths beyond a cut where its fall is asked for."""
_WIDTHS = tuple(Fraction(1, 1 << i) for i in range(2, 8))
"""Widths of cuts, the smoothest first: the sharper one is, the finer the nodes beside it."""


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
    loss: Measure, strip: Strip, epsilon: float, bits: int, start: float | None = None
) -> Level | None:
    """Return the saddle-point approximation of G(ε), None where there is no saddle."""
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


def near(epsilon: float) -> float:
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
    end = float(cut.at) + _BEYOND * float(cut.width)
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
