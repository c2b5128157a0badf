"""Contour integrals without the releases that have no large loss: a rare jump, and several.

Where ε is reached by one large loss of one release among many small ones, no vertical line is good
for M(z) e^{−zε}κ(z): at the tilt at which the sum of the losses is ε, most of M belongs to outcomes
without a jump, or to jumps that are too large, and their contributions cancel. They are taken
apart. With χ, 0 ≤ χ ≤ 1, a smooth cut at a threshold (`losses.transform.Cut`) and χ₂ one far above,

    T_i(z) = E[χ w^s],    J_i(z) = E[(1 − χ)χ₂ w^s],    s = z + 1,

are the transforms of two positive measures, of the small and of the large losses of a factor, whose
sum differs from the law by the mass that χ₂ takes away (`cut`). Hence

    M = Π T_i^{k_i} + F,    F = Π (T_i + J_i)^{k_i} − Π T_i^{k_i},

and F, outcomes with at least one large loss, is the transform of a positive measure, too. It has a
saddle of its own; on the line through it |F(c + it)| ≤ F(c) ρ(t) r(t), with

    ρ = max_i sup_{u ≥ t} |J_i(c + iu)|/J_i(c) / m_i,   r = Π m_i^{k_i},   m_i ≥ the ratios of both,

as every product in F has at least one factor J. Large losses have a smooth law: so that F decays
fast, although M hardly does for small q. The part without large losses is bounded by Chernoff's
inequality, E(s) of `certified`, or integrated on a line of its own.

The thresholds are chosen by floats; nothing that is proved rests on that.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import acb, arb

from dpassay.accountant.composition.fourier.estimates import FloatTransform
from dpassay.accountant.composition.fourier.measure import Loss, power, quick_lines, quick_rate
from dpassay.accountant.composition.losses.decay import Decay
from dpassay.accountant.composition.losses.transform import MixtureTransform, Transform
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.precision import cached_property

_NEGLIGIBLE = -30.0
"""ln x below which floats do not tell ln(1 + x) from x, to 1e-13."""
_LARGEST = 600.0
"""Largest exponent that is formed: e^709 is the last float."""
_FLAT = 1e-6
"""Least second derivative of ln F as a share of that of ln Π T: by rounding it may be negative."""
_FEW = 64
"""Count up to which a difference of powers is a sum of its terms; of more it is bounded."""


@final
@dataclass(frozen=True)
class Jumps:
    """F(z) = Π (T_i + J_i)^{k_i} − Π T_i^{k_i}, a `measure.Measure`."""

    small: Loss
    """The transforms T_i, and k_i."""
    large: tuple[MixtureTransform | None, ...]
    """The transforms J_i, None for losses without any."""

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.small, self.large))

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return ln F(c) and its first two derivatives, without proof.

        With D = Σ k_i ln(1 + J_i/T_i), ln F = Σ k_i ln T_i + ln(e^D − 1).
        """
        found: tuple[float, float, float] = _cumulants(self, c)
        return found

    def log_value(self, c: Fraction) -> arb:
        """Return ln F(c)."""
        total, excess = arb(0), arb(0)
        for (part, count), jump in zip(self.small.factors, self.large, strict=True):
            value = part.value(c)
            total += count * value.log()
            if jump is not None:
                excess += count * (jump.value(c) / value).log1p()
        return total + excess.expm1().log()

    def log_upper(self, c: Fraction) -> arb:
        """Return an upper bound: F(c) increases with every T_i(c) and every J_i(c)."""
        total, excess = arb(0), arb(0)
        for (part, count), jump in zip(self.small.factors, self.large, strict=True):
            size = part.log_upper(c)
            total += count * size
            if jump is not None:
                excess += count * (jump.log_upper(c) - size).exp().log1p()
        return (total + excess.expm1().log()).upper()

    def line(self, c: Fraction, step: Fraction, count: int) -> list[acb]:
        """Return F(c + ij·step)/F(c) for j < count."""
        small = [part.line(c, step, count) for part, _ in self.small.factors]
        large = [None if jump is None else jump.line(c, step, count) for jump in self.large]
        return self._ratios(c, small, large)

    def quick_line(self, c: Fraction, step: Fraction, count: int) -> list[acb] | None:
        """Return the same from floats, None where their error matters.

        An error of T_i counts k_i times, one of J_i as often as there are large losses.
        """
        rate = quick_rate(self, c, float(step * count)) / (2 * len(self.large))
        small = [(part, rate / times) for part, times in self.small.factors]
        large = [(jump, rate / self._jumps(c)) for jump in self.large if jump is not None]
        found = quick_lines([*small, *large], c, step, count)
        if found is None:
            return None
        rest = iter(found[len(small) :])
        jumps = [None if jump is None else next(rest) for jump in self.large]
        return self._ratios(c, found[: len(small)], jumps)

    def _jumps(self, c: Fraction) -> float:
        """Return about the number of large losses under the tilt c, at least 1."""
        ratios = [
            (floats_of(jump).cumulants(float(c))[0] - floats_of(part).cumulants(float(c))[0], times)
            for (part, times), jump in zip(self.small.factors, self.large, strict=True)
            if jump is not None
        ]
        return 1 + sum(times * math.exp(min(ratio, _LARGEST)) for ratio, times in ratios)

    def _ratios(
        self, c: Fraction, small: list[list[acb]], large: list[list[acb] | None]
    ) -> list[acb]:
        """Return the ratios of F on a line from those of the T_i and J_i."""
        rows, whole = [], arb(0)
        factors = zip(self.small.factors, self.large, small, large, strict=True)
        for (part, times), jump, ratios, beyond in factors:
            share = arb(0) if jump is None else jump.value(c) / part.value(c)
            rows.append(_Row(times, ratios, beyond, share))
            whole += times * share.log1p()
        scale = whole.expm1()
        return [_excess(rows, j) / scale for j in range(len(small[0]))]

    def log_ratio(self, c: Fraction, t: float) -> float:
        """Return an upper bound of ln(|F(c + iu)|/F(c)) for all u ≥ t."""
        total, best = 0.0, -math.inf
        for small, large, count in _decays(self, c):
            low = small.log_ratio(t)
            if large is None:
                total += count * low
                continue
            jump = large.log_ratio(t)
            total += count * max(low, jump)
            best = max(best, jump - max(low, jump))
        return (total + best) * (1 - 1e-9)

    def far(self, c: Fraction) -> tuple[float, int]:
        """Return ln C and 1 with |F(c + it)|/F(c) ≤ C/t."""
        scales = [decay.log_scale() for _, decay, _ in _decays(self, c) if decay is not None]
        known = [scale for scale in scales if scale is not None]
        if len(known) < len(scales):
            raise UndecidedError("No rate of decay is known of these losses.")
        return max(known), 1

    @property
    def count(self) -> int:
        """The number of independent losses."""
        return self.small.count


@final
@dataclass(frozen=True)
class _Row:
    """The ratios of T and J on a line, and J(c)/T(c)."""

    times: int
    small: list[acb]
    large: list[acb] | None
    share: arb


def _excess(rows: list[_Row], j: int) -> acb:
    """Return (Π (T + J)^k − Π T^k)/Π T(c)^k at a node.

    It is Π T^k (e^D − 1), D = Σ k ln(1 + J/T); where T may vanish, the sum over i of
    (Π_{l < i} (T_l + J_l)^{k_l}) ((T_i + J_i)^{k_i} − T_i^{k_i}) Π_{l > i} T_l^{k_l}.
    """
    product, exponent = acb(1), acb(0)
    for row in rows:
        t = row.small[j]
        product *= power(t, row.times)
        if row.large is not None:
            part = row.share * row.large[j] / t
            if not (part.is_finite() and abs(part) < 0.5):
                return _telescoped(rows, j)
            exponent += row.times * part.log1p()
    return product * exponent.expm1() if exponent.is_finite() else _telescoped(rows, j)


def _telescoped(rows: list[_Row], j: int) -> acb:
    total = acb(0)
    for i, row in enumerate(rows):
        if row.large is None:
            continue
        jump, t = row.share * row.large[j], row.small[j]
        if row.times <= _FEW:
            term, before = acb(0), acb(1)
            for n in range(row.times):
                term += before * power(t, row.times - 1 - n)
                before *= t + jump
            term *= jump
        else:
            size = row.times * abs(jump) * (abs(t) + abs(jump)) ** (row.times - 1)
            bound = arb(0, size.upper())
            term = acb(bound, bound)
        for other in rows[:i]:
            here = other.small[j]
            if other.large is not None:
                here += other.share * other.large[j]
            term *= power(here, other.times)
        for other in rows[i + 1 :]:
            term *= power(other.small[j], other.times)
        total += term
    return total


@functools.lru_cache(maxsize=64)
def _decays(jumps: Jumps, c: Fraction) -> tuple[tuple[Decay, Decay | None, int], ...]:
    """Return the decays of T_i and J_i, and k_i."""
    return tuple(
        (part.decay(c), None if jump is None else jump.decay(c), count)
        for (part, count), jump in zip(jumps.small.factors, jumps.large, strict=True)
    )


@functools.lru_cache(maxsize=512)
def _cumulants(jumps: Jumps, c: float) -> tuple[float, float, float]:
    size, mean, variance = 0.0, 0.0, 0.0
    terms: list[_Term] = []
    for (part, count), jump in zip(jumps.small.factors, jumps.large, strict=True):
        small = floats_of(part).cumulants(c)
        size += count * small[0]
        mean += count * small[1]
        variance += count * small[2]
        if jump is not None:
            large = floats_of(jump).cumulants(c)
            ratio = large[0] - small[0]
            log_share = -math.log1p(math.exp(-ratio)) if ratio > _NEGLIGIBLE else ratio
            terms.append(
                _Term(
                    math.log(count),
                    _log_log1p(ratio),
                    log_share,
                    large[1] - small[1],
                    large[2] - small[2],
                )
            )
    logs = [term.log_count + term.log_excess for term in terms]
    top = max(logs)
    log_d = top + math.log(math.fsum(math.exp(each - top) for each in logs))
    first = second = 0.0  # D′/D and D″/D
    for term in terms:
        share = math.exp(term.log_count + term.log_share - log_d)
        first += share * term.mean
        second += share * (term.variance - math.expm1(term.log_share) * term.mean**2)
    d = math.exp(log_d)
    if d > _LARGEST:  # ln(e^D − 1) = D
        return size + d, mean + d * first, variance + d * second
    growth = d / -math.expm1(-d) if d > 0 else 1.0  # D e^D/(e^D − 1)
    log_excess = log_d if log_d < _NEGLIGIBLE else math.log(math.expm1(d))
    bend = growth * second - first * first * growth * (growth - d)
    return size + log_excess, mean + growth * first, max(variance + bend, _FLAT * variance)


@final
@dataclass(frozen=True)
class _Term:
    """One factor: ln k, ln ln(1 + J/T), ln(J/(T + J)), and what J has more than T."""

    log_count: float
    log_excess: float
    log_share: float
    mean: float
    variance: float


@functools.lru_cache(maxsize=64)
def floats_of(part: Transform) -> FloatTransform:
    """Return the transform in floats, with the tables that it keeps."""
    return part.estimate()


def _log_log1p(log_value: float) -> float:
    """Return ln ln(1 + e^x)."""
    if log_value < _NEGLIGIBLE:
        return log_value
    return math.log(math.log1p(math.exp(log_value)) if log_value < 700 else log_value)
