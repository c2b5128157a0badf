"""Measures of sums of losses by their transforms: what a contour integral asks of them.

On a vertical line Re z = c only ratios M(c + it)/M(c) are formed, and bounds of their decay.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, final

from flint import acb, arb

from accountant.composition.fourier.estimates import Estimator
from accountant.composition.losses.decay import Decay
from accountant.composition.losses.transform import Transform
from accountant.errors import UndecidedError
from accountant.numbers.precision import cached_property, ctx

_GUARD = 24
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
"""By how many bits an integral may miss what is aimed at, which is 13 bits above what is asked."""


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
