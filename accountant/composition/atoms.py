"""Products of losses with atoms, by Fourier inversion at nodes that are bounded beyond the last.

With M(z) = E_P[e^{zL}] over the finite losses, on any line Re z = c > 0,

    H(ε) = P(L = ∞) + (1/2πi) ∫ M(z) e^{−zε} / (z(z + 1)) dz,

and the trapezoidal rule of step h adds H(ε + jB) e^{jcB} − P(L = ∞) e^{jcB} ≥ 0, B = 2π/h, j ≠ 0
(Poisson summation), bounded by Chernoff's inequality at two real points. For −1 < c < 0 the
integral is −E[min(1, e^{ε−L})], finite losses, and the same holds for it.

A loss with atoms has an almost periodic M(c + iω)/M(c) = Φ(ω), which need not fall: the sum
beyond the last node K is bounded by its *mean size* near 0. If a² is the characteristic function of
a symmetric law, as |φ|² is, then for every k₀

    Σ_k (1 − |k|/K)⁺ a²(k₀ + k) = E[F(Y) e^{ik₀Y}] ≤ E[F(Y)] = Σ_k (1 − |k|/K)⁺ a²(k) =: S(a),

since the Fejér kernel F is ≥ 0. The weights are at least ½ on K nodes, and |Φ| = ab for two such
functions: so every block of K nodes has Σ |Φ| ≤ 2 √(S(a) S(b)), by Cauchy's inequality, and what
is left out adds at most (h/2π)·2·(π²/6)·2 √(S(a) S(b))/(hK)². No block is looked at but the first;
the error falls with the square of the number of nodes, for lattices and for losses of irrational
ratio alike. Values at nodes are floats with bounds (`accountant.composition.node_values`), so that
a relative width of about 1e-11 is the least that can be reached.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from flint import arb

from accountant import ledger
from accountant.composition.cut_line import best_line, start
from accountant.composition.decisive import decided
from accountant.composition.difference import Difference
from accountant.composition.joint import Factor, FactorsPair, UnsuitedError
from accountant.composition.laws import ListedLaw
from accountant.composition.line import Line, laws_of, log_beyond
from accountant.composition.node_values import (
    ROW,
    UNIT,
    Array,
    circle,
    fraction_of_turn,
)
from accountant.composition.quiet import quiet
from accountant.errors import UndecidedError
from accountant.interval import Interval, asked_width
from accountant.number import ExactReal
from accountant.pair import Pair
from accountant.precision import ctx

MAX_NODES = 1 << 23
"""Most nodes of one sum."""
BYTES = 96
"""Memory per node, roughly."""
QUIET_NODES = 1 << 14
"""Nodes beyond which |Φ| is bounded at few frequencies first."""
WIDTH = Fraction(1, 10**9)
"""What is aimed at where no width is asked for."""
_PRECISION = 192
_BALL = 0.95  # what a ball may have of the width that it is asked for
_COARSE = 1e-5
_POOR = 0.1
_LEAST = 2e-12  # less is not aimed at: the sums are in sixteen digits
_BATCH = 64  # rows at a time
_MANY = 1 << 20  # nodes
_FAR = 1e300  # a frequency
_FEW_DENSE = -2.5
_FURTHER = 2
_MOST_QUIET = 1 << 18
_SECANTS = 30
_WIDENINGS = 8
_CORRECTIONS = 4
_STEEP_ENOUGH, _SETTLED = 16, 0.25
_NEARLY = Fraction(29, 20)  # 2/3 of the width that is asked for times it is still within it


def applies(pairs: Sequence[Pair]) -> bool:
    """Whether all losses are listed, of (subsampled) Laplace noise or of normal mixtures."""
    return laws_of(tuple((pair, 1) for pair in pairs), 0.0) is not None


@final
@dataclass(frozen=True)
class AtomicPair(FactorsPair):
    """A product of pairs that `applies` to."""

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return a ball around H(ε).

        Raises UndecidedError, with what was reached, if the width that is asked for needs more
        nodes, or more digits, than there are.
        """
        ledger.note("atoms")
        wanted = float(asked_width.get() or WIDTH) * _BALL
        known = self.exact_max_loss()
        if known is not None and epsilon >= known:
            return arb(0)
        if epsilon.ball() >= self.max_finite_loss():
            return self.infinity_mass()
        with ctx.workprec(_PRECISION):
            line = best_line(self.any_factors, float(epsilon), max(wanted, _LEAST))
            value, width = self._value(epsilon, line, max(wanted, _LEAST))
        if width > wanted and asked_width.get() is not None:
            raise _refusal(value, width, wanted)
        return value

    def _value(self, epsilon: ExactReal, line: Line, wanted: float) -> tuple[arb, float]:
        """Return a ball, and its relative width.

        Raises UnsuitedError where densities leave nearly all to atoms.
        """
        laws = line.laws(self.any_factors)
        if not any(isinstance(law, ListedLaw) for law in laws):
            atomic = log_beyond(laws, line.c, _FAR)
            if _FEW_DENSE < atomic < 0:
                raise UnsuitedError(
                    f"The densities of these losses leave {math.exp(atomic):.2g} to atoms, which "
                    "inversion resolves slowly. Ask with method='grid'."
                )
        outside = self.infinity_mass() + arb(0).union(_missing(self.any_factors, line))
        if line.c < 0:
            outside += _finite_mass(self.any_factors, line)
        if line.cut is not None:
            sure, rest = decided(laws, self.any_factors, line.cut, epsilon)
            outside += sure + arb(0).union(rest)
        count, best = _first_count(line), (math.inf, arb("0.5 +/- 0.5"))
        while True:
            nodes = _nodes(self.any_factors, line, count)
            value = (nodes.integral(epsilon) + outside).max(arb(0)).min(arb(1))
            width = float(2 * value.rad() / value.mid()) if value > 0 else math.inf
            best = min(best, (width, value), key=operator.itemgetter(0))
            if width <= wanted or count >= nodes.enough:
                return best[1], best[0]
            more = 1.1 * math.sqrt(width / wanted) if math.isfinite(width) else 4.0
            count = _rounded(count * min(max(more, 2.0), 64.0), nodes.enough)

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ) by two points at which H is certainly on its side of δ.

        Raises UndecidedError as for `hockey_stick`.
        """
        ledger.note("atoms")
        with ctx.workprec(_PRECISION):
            target = delta.ball()
            near, slope = self._near(target)
            slope = 1e-300 + abs(slope)
            fine = float(relative_width) * max(abs(near), 1e-9)
            wanted = max(fine * slope / 4, _LEAST)
            line = best_line(self.any_factors, near, wanted)

            def excess(at: Fraction) -> arb:
                return self._value(ExactReal.of_rational(at), line, wanted)[0] - target

            here, miss, move = Fraction(near), 0.0, 0.0
            gap = Fraction(fine / 3)
            for _ in range(_CORRECTIONS):
                value, width = self._value(ExactReal.of_rational(here), line, wanted)
                if not value > 0:
                    raise _refusal(value, width, wanted)
                last, miss = miss, float((value / target).log().mid())
                if move and abs(last - miss) > _STEEP_ENOUGH * width:
                    slope = abs(last - miss) / abs(move)
                move = miss / slope
                here += Fraction(move)
                if abs(move) < _SETTLED * gap or abs(miss) < width:
                    break
            for widening in range(_WIDENINGS):
                low, high = here - gap, here + gap
                if excess(low) > 0 and excess(high) < 0:
                    break
                gap *= 3 if widening else _NEARLY
            else:
                raise UndecidedError(
                    f"epsilon near {near:.10g} was not enclosed to {float(relative_width):.1e}: "
                    "values of delta there are not narrow enough. Ask for a larger relative_width."
                )
        found = Interval.of_exact(low, 20).hull(Interval.of_exact(high, 20))
        if (found.relative_width or 1) > relative_width:
            raise UndecidedError(
                f"Reached epsilon in [{found.lower}, {found.upper}], wider than "
                f"{float(relative_width):.1e}. Ask for a larger relative_width.",
                reached=float(found.relative_width or math.inf),
            )
        return found

    def _near(self, target: arb) -> tuple[float, float]:
        """Return an ε near the root, and the slope of ln H: secants inside a bracket."""
        log_target = float(target.log())

        low = high = start(self.any_factors, log_target)
        line = best_line(self.any_factors, high, _COARSE)  # any line serves; its sums are kept

        def miss(at: float) -> float:
            nonlocal line
            value, width = self._value(ExactReal.of_rational(Fraction(at)), line, _COARSE)
            if width > _POOR and line.cut is not None:
                line = best_line(self.any_factors, at, _COARSE)
                value, width = self._value(ExactReal.of_rational(Fraction(at)), line, _COARSE)
            if width > _POOR:
                raise _refusal(value, width, _COARSE)
            return float(value.mid().log()) - log_target if value > 0 else -1e4

        # far from the saddle of a line its sums have no digits left
        step = min(max(abs(high), 1e-3) / 64, 0.5 / abs(line.c))
        at_high = miss(high)
        at_low = at_high
        while at_high > 0:
            low, at_low, high, step = high, at_high, high + step, 2 * step
            at_high = miss(high)
        while at_low <= 0:
            if step > 1e9:
                raise UndecidedError("No epsilon was found at which delta is so large.")
            high, at_high, low, step = low, at_low, low - step, 2 * step
            at_low = miss(low)
        for turn in range(_SECANTS):
            slope = (at_high - at_low) / (high - low)
            if high - low <= 1e-10 * max(abs(low), abs(high)):
                break
            share = at_low / (at_low - at_high) if turn % 3 < 2 else 0.5
            middle = low + (high - low) * min(max(share, 1e-6), 1 - 1e-6)
            value = miss(middle)
            if abs(value) < 1e-7:
                return middle, slope
            if value > 0:
                low, at_low = middle, value
            else:
                high, at_high = middle, value
        return (low + high) / 2, slope


def _refusal(value: arb, width: float, wanted: float) -> UndecidedError:
    ends = value.lower().max(arb(0)), value.upper().min(arb(1))
    low, high = (end.str(16, radius=False) for end in ends)
    return UndecidedError(
        f"Reached delta in [{low}, {high}], of relative width {width:.1e}, for {wanted:.1e}; "
        f"{MAX_NODES} nodes ({MAX_NODES * BYTES / 2**30:.2g} GiB), or the sixteen digits that "
        "they are computed in, do not give it. Ask for a larger relative_width.",
        reached=width,
    )


def _first_count(line: Line) -> int:
    """Return how many nodes it takes if Φ is small but near 0."""
    needed = min(_needed(line), line.last)
    return _rounded(needed if needed < _MANY else min(needed, QUIET_NODES), MAX_NODES)


def _needed(line: Line) -> float:
    """Return the number of nodes beyond which the rest is negligible, if Φ is but near 0."""
    return math.sqrt(6 * abs(line.c * (line.c + 1)) / line.wanted) / line.step


def _rounded(count: float, most: int) -> int:
    """Return a power of 2 times ROW: neighbouring questions share their nodes."""
    rows = 1 << (max(1, math.ceil(count / ROW)) - 1).bit_length()
    return min(rows * ROW, most)


@functools.lru_cache(maxsize=64)
def _missing(factors: tuple[Factor, ...], line: Line) -> arb:
    """Return a bound of what the outcomes that are not listed add."""
    laws = line.laws(factors)
    return sum((law.count * law.missing for law in laws), start=arb(0)).upper()


@functools.lru_cache(maxsize=64)
def _finite_mass(factors: tuple[Factor, ...], line: Line) -> arb:
    """Return M(0), the mass that is listed."""
    laws = line.laws(factors)
    product = arb(1)
    for law in laws:
        product *= law.moment(arb(0)) ** law.count
    return product


@final
@dataclass(frozen=True)
class _Nodes:
    """Φ(ω_k)/(z(z + 1)) at the nodes, and everything that bounds the rest."""

    line: Line
    factors: tuple[Factor, ...]
    values: Array
    size: float
    """Σ of the absolute values."""
    error: float
    """Bound of the sum of their errors, and of what lies beyond the last node."""
    enough: int
    """The number of nodes that more do not improve."""
    log_moment: arb
    centre: arb

    def integral(self, epsilon: ExactReal) -> arb:
        """Return a ball around the integral."""
        line, eps = self.line, epsilon.ball()
        turn = (self.centre - eps) * arb(line.step) / (2 * arb.pi())
        rows = len(self.values) // ROW
        inner = circle([fraction_of_turn(turn)], ROW)[:, 0]
        outer = circle([fraction_of_turn(turn * ROW)], rows)[:, 0]
        table = self.values.reshape(rows, ROW)
        # a row is summed as one product of vectors: 2·1024 products and as many sums
        real = table.real @ inner.real - table.imag @ inner.imag
        imag = table.real @ inner.imag + table.imag @ inner.real
        total = math.fsum(outer.real * real - outer.imag * imag)
        error = self.error + self.size * ((3 * ROW + 60) * UNIT + (rows + ROW) * 2.0**-62)
        scale = (self.log_moment - arb(line.c) * eps).exp() * arb(line.step) / arb.pi()
        value = scale * (arb(total) + arb(0, error * (1 + 1e-6)))
        aliases = self._aliases(eps)
        return value - aliases if line.c > 0 else value + aliases

    def _aliases(self, eps: arb) -> arb:
        """Return a ball from 0 to the bound of all other terms of Poisson's sum."""
        line, total = self.line, arb(0)
        laws = line.laws(self.factors)
        for other in (line.above, line.below):
            there = arb(other)
            log_moment = sum((law.count * law.moment(there).log() for law in laws), start=arb(0))
            ratio = (-abs(there - line.c) * 2 * arb.pi() / arb(line.step)).exp()
            total += (log_moment - there * eps).exp() * ratio / (1 - ratio)
        return arb(0).union(total.upper())


@functools.lru_cache(maxsize=4)
def _nodes(factors: tuple[Factor, ...], line: Line, count: int) -> _Nodes:
    """Evaluate Φ at the nodes."""
    with ctx.workprec(_PRECISION):
        laws = line.laws(factors)
        c, h, rows = arb(line.c), line.step, count // ROW
        log_moment = sum((law.count * law.moment(c).log() for law in laws), start=arb(0))
        centre = sum((law.count * law.mean(c) for law in laws), start=arb(0))
        small = line.small_laws(factors)
        at_nodes = Difference(laws, small, c, h, rows)
    whole = np.empty(count, dtype=complex)
    size, error, fejer, around = 0.0, 0.0, [0.0, 0.0], [0.0, 0.0]
    batch = _BATCH if at_nodes.number < _BATCH else _BATCH // 8
    for first in range(0, rows, batch):
        last = min(first + batch, rows)
        found = at_nodes.values(first, last)
        k = np.arange(first * ROW, last * ROW)
        omega = k * h
        kernel = 1 / ((line.c + 1j * omega) * (line.c + 1 + 1j * omega))
        own = found.values * kernel
        heights = np.sqrt(kernel.real**2 + kernel.imag**2)
        both = np.where(k > 0, 2.0, 1.0)
        if first == 0:
            own[0] /= 2
        whole[first * ROW : last * ROW] = own
        size += float(np.abs(own).sum()) * (1 + 1e-6)
        error += float((found.errors * heights).sum()) * (1 + 1e-6)
        weights = (1 - k / count) * both
        for i, half in enumerate((found.first, found.second)):
            fejer[i] += float((weights * half**2).sum()) * (1 + 1e-6)
            around[i] += float((both * half**2).sum()) * (1 + 1e-6)
    # ½ (h/π)·… of both sides: see the head of this file; the common factor h/π is left out
    beyond = (math.pi**2 / 6) * 2 * math.sqrt(fejer[0] * fejer[1]) / (h * count) ** 2
    enough = MAX_NODES
    if count <= _MOST_QUIET and _needed(line) >= _MANY and not small:
        # the same with longer blocks, most of which are not summed
        known = quiet(
            laws, c, h, h * (count - 1), _FURTHER * (count / QUIET_NODES) * h * _needed(line)
        )
        if known is not None:
            squares = math.prod(entry + 2 * known.squares for entry in around)
            rest = (math.pi**2 / 6) * 2 * math.sqrt(squares) / known.upto**2
            beyond = min(beyond, rest + known.whole)
    # Σ 1/(hk)² over k ≥ K is at most 1/(h²(K − 1))
    largest = math.exp(line.log_beyond(factors, h * count)) * (1 + 1e-6)
    beyond = min(math.inf if small else beyond, largest / (h * h * (count - 1)))
    if count >= line.last:
        enough = count
    rounding = error + 20 * UNIT * size
    if beyond < rounding / 4:
        enough = count
    return _Nodes(
        line,
        factors,
        whole,
        size,
        rounding + beyond * (1 + 1e-6),
        enough,
        log_moment,
        centre,
    )
