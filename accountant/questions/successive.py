"""δ(ε) and ε(δ) of several similar compositions, by Fourier sums on a shared contour.

Users query a run of DP-SGD after every step, for a curve of δ(ε), or for each cell of a table of
noise and steps. The transforms M_i(z) of the releases do not depend on their counts n_i, and
(`dpassay.accountant.composition.fourier.measure`)

    δ(ε) = (1/2πi) ∫ Π M_i(z)^{n_i} e^{−zε}/(z(z + 1)) dz    on Re z = c, for every c > 0.

So the ratios M_i(c + ijh)/M_i(c) on a *line* Re z = c are computed once, with error bounds; another
query takes powers of them. Aliasing and truncation errors are bounded as in `measure`, from ln M_i
at three points and the decay of M_i at the end of the line, which are stored too. A line that does
not pass through the saddle point of a query is still valid, but its enclosures are wider. A line is
reused as long as the answers are narrow enough; then a new one is made.

*Rounding.* Let u = 2^−53. A product of N complex floats, in any order, has a relative error of at
most (1 + √5u)^N − 1. If the factors are v_i + η_i with |η_i| ≤ η and m_i = |v_i| + η, their product
with powers n_i differs from that of the v_i by at most Π m_i^{n_i} Σ n_i η/m_i. The phase factors
e^{ijhx} have an error of at most 10u|jhx| (`losses.bounds`). A sum of r numbers has an error of at
most (r − 1)u times the sum of their absolute values.

The first query about a composition is not answered here; lines are made from the second one on.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, final

from flint import arb

from dpassay.accountant.composition.choose import smooth
from dpassay.accountant.composition.fourier.engine import FOURIER
from dpassay.accountant.composition.fourier.estimates import CALL
from dpassay.accountant.composition.fourier.measure import (
    Kernel,
    Loss,
    Plan,
    accuracy,
    coarse,
    guard,
    near,
    near_for_cuts,
    plan_contour,
    with_cuts,
)
from dpassay.accountant.composition.losses.bounds import LARGEST_ANGLE, powered, turned, up
from dpassay.accountant.composition.losses.transform import (
    GaussianTransform,
    MixtureTransform,
    Transform,
)
from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.arrays import NDArray, np
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import Interval, ball
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.pairs.invert import most
from dpassay.accountant.pairs.subsampled import SubsampledPair

if TYPE_CHECKING:
    Floats: TypeAlias = NDArray[np.float64]
    Complexes: TypeAlias = NDArray[np.complex128]

_UNIT = 2.0**-53
"""The unit roundoff u."""
_ROUNDED = 2.24 * 1.01 * _UNIT
"""An upper bound of √5u that also covers the rounding of the bound itself."""
_SLACK = 1.001
"""Safety factor of float error bounds; it covers their own rounding and that of ln and e^x."""
_BITS = 96
"""Precision of moments in bits; even a million times their error is far below that of floats."""
_WORD = 64
"""Least precision of a plan in bits, as in `measure`."""
_WIDER = 14
"""Extra bits of accuracy of aliasing and truncation, so that a line serves other queries: a factor
of e^10, as at four standard deviations of the tilted law from the saddle point."""
_MOST_NODES = 1 << 14
"""Largest number of nodes of a line; a query takes a few microseconds for ten nodes."""
_ROW = 64
"""Number of terms in a partial sum; two-level summation has a smaller rounding error."""
_LARGEST_LOG_DELTA = -0.3
"""Largest ln δ; above it c → 0, and other integrals are better."""
_FINEST = Fraction(1, 10**10)
"""Finest relative width for which floats are used."""
_CANCELLED = 1e-6
"""If a sum is smaller than this fraction of the sum of the absolute values, it is not used for a
root search."""
_STEPS, _SETTLED = 40, 1e-7
"""Largest number of Newton steps, and the error of ln δ after which one more step is exact to float
precision."""
_MOST_PER_QUERY = 1 << 12
"""Largest number of nodes times releases of a new line per query so far; these take 0.2 s."""
_FEW = 3
"""Largest number of different releases for which a line is planned with all of them."""
_LINES = 4
"""Number of lines kept for the compositions with one first sampled release."""
_RETRY_RATIO = 1.3
"""After a failure a new line is tried only if the number of releases changed by this factor."""


@final
@dataclass(frozen=True, eq=False)
class _Column:
    """The data of one release on a line: ratios M(c + it)/M(c) = e^{itm} (v + η)/ν, and bounds."""

    values: Complexes
    """v"""
    errors: Floats
    """Upper bounds of |η|."""
    mean: float
    """m"""
    blur: float
    """An upper bound of |ν − 1|."""
    size: arb
    """ln M(c)"""
    left: arb
    right: arb
    """Upper bounds of ln M at the two points of the aliasing bound."""
    lost: arb
    """An upper bound of the P-mass that the truncation of the loss removes."""
    fall: float
    """An upper bound of ln(|M(c + iu)|/M(c)) for all u beyond the end of the line."""


@final
@dataclass(frozen=True, eq=False)
class _Sum:
    """The terms of the Fourier sum of a composition on a line, for any ε."""

    line: _Line
    counts: Mapping[Transform, int]
    total: Complexes
    """Π v^n"""
    grown: Floats
    """Σ n ln(|v| + |η|)"""
    wrong: Floats
    """Σ n |η|/(|v| + |η|)"""
    mean: arb = field(default_factory=arb)
    blur: float = 0.0
    size: arb = field(default_factory=arb)
    left: arb = field(default_factory=arb)
    right: arb = field(default_factory=arb)
    lost: arb = field(default_factory=arb)
    fall: float = 0.0

    def plus(self, part: Transform, times: int) -> _Sum:
        """Return the terms with `times` more copies of a release."""
        found = self.line.column(part)
        with np.errstate(under="ignore", divide="ignore"):
            most = np.abs(found.values) * (1 + 8 * _UNIT) + found.errors + 1e-300
            return _Sum(
                self.line,
                {**self.counts, part: self.counts.get(part, 0) + times},
                self.total * powered(found.values, times),
                self.grown + times * np.log(most),
                self.wrong + times * (found.errors / most),
                self.mean + times * arb(found.mean),
                self.blur + times * found.blur,
                self.size + times * found.size,
                self.left + times * found.left,
                self.right + times * found.right,
                self.lost + times * found.lost,
                self.fall + times * found.fall,
            )

    @cached_property
    def terms(self) -> tuple[Complexes, Floats, float]:
        """The terms Π v^n/(z(z + 1)), bounds of their errors, and the sum of their moduli."""
        rounded = math.expm1(2 * sum(self.counts.values()) * _ROUNDED)
        with np.errstate(under="ignore", over="ignore"):
            sizes = np.abs(self.total)
            errors = (sizes * rounded + np.exp(self.grown) * self.wrong) * _SLACK + 1e-280
            found = self.total * self.line.kernel
            errors = (errors + sizes * (32 * _UNIT)) * np.abs(self.line.kernel) * _SLACK
        found[0] *= 0.5
        return found, errors, float(np.abs(found).sum())

    def estimate(self, epsilon: float) -> tuple[float, float] | None:
        """Return ln δ(ε) and its derivative, without proof; None if the terms cancel."""
        found, _, whole = self.terms
        t = self.line.t
        terms = found * np.exp(1j * (t * (self._mean - epsilon)))
        total = float(terms.real.sum())
        if not total > _CANCELLED * whole:
            return None
        value = self._size - self.line.c * epsilon + math.log(total * self.line.h / math.pi)
        return value, float(np.dot(terms.imag, t)) / total - self.line.c

    @cached_property
    def _mean(self) -> float:
        return float(self.mean.mid())

    @cached_property
    def _size(self) -> float:
        return float(self.size.mid())

    def root(self, log_delta: float, start: float) -> float | None:
        """Return an estimate of the ε > 0 with ln δ(ε) = log_delta by Newton's method, or None."""
        at = start
        for _ in range(_STEPS):
            found = self.estimate(at)
            if found is None or not found[1] < 0:
                return None
            value, slope = found
            at += (log_delta - value) / slope
            if abs(log_delta - value) <= _SETTLED:
                return at if at > 0 else None
        return None

    def at(self, epsilon: ExactReal) -> arb:
        """Return a ball that contains δ(ε), possibly all of [0, 1]."""
        found, errors, whole = self.terms
        line = self.line
        with ctx.workprec(_BITS):
            eps = epsilon.ball()
            exactly = self.mean - eps
            away = float(exactly.mid())
            off = float((abs(exactly - away)).upper())
        reach = abs(away) * line.reach
        if not (reach < LARGEST_ANGLE and math.isfinite(whole) and self.blur < 1):
            return arb(0).union(arb(1))
        turns = turned(line.t, np.array([away]))[:, 0]
        turns.real += 1.0
        rows = found.real * turns.real - found.imag * turns.imag
        blocks = -(-len(rows) // _ROW)
        padded = np.zeros(blocks * _ROW)
        padded[: len(rows)] = rows
        total = float(padded.reshape(blocks, _ROW).sum(axis=1).sum())
        angles = float(np.abs(found) @ line.t) * (10 * _UNIT * abs(away) + 2 * off)
        error = whole * (_ROW + blocks + 16) * 2 * _UNIT + angles + float(errors.sum())
        with ctx.workprec(_BITS):
            norm = arb(1, math.expm1(1.01 * self.blur / (1 - self.blur)))
            value = arb(total, _SLACK * _SLACK * error) * norm
            value += arb(0, (arb(self.fall).exp() * line.beyond).upper())
            value *= line.share * (self.size - line.balls[0] * eps).exp()
            aliases = (self.left - line.balls[1] * eps).exp() * line.aliases[0]
            aliases += (self.right - line.balls[2] * eps).exp() * line.aliases[1]
            value += arb(0).union(self.lost.upper()) - arb(0).union(aliases.upper())
            return value.max(arb(0)).min(arb(1))


@final
class _Line:
    """A line for δ(ε) of a loss and of similar losses, which are truncated at the same places."""

    def __init__(self, whole: Loss, epsilon: float, bits: int) -> None:
        """Choose the line for a loss, ε and accuracy; raise UndecidedError if it is too long."""
        whole = _simple(whole)
        loss = with_cuts(whole, CALL, near_for_cuts(epsilon), coarse(bits))
        self.plan: Plan = plan_contour(loss, Kernel.CALL, CALL, near(epsilon), bits + _WIDER)
        line = self.plan.line
        if line.count > _MOST_NODES:
            raise UndecidedError(f"The line needs {line.count} nodes.")
        pairs = zip(whole.factors, loss.factors, strict=True)
        self._cut = {
            part: cut.cut for (part, _), (cut, _) in pairs if isinstance(cut, MixtureTransform)
        }
        self._columns: dict[Transform, _Column] = {}
        rate = math.ldexp(math.sqrt(loss.cumulants(float(line.c))[2]), -2 * _WIDER - bits)
        self._rate = rate / loss.count
        size = loss.cumulants(float(line.c))[0]
        self._bits = max(_WORD, bits + _WIDER + guard(loss.count, size))
        self.c, self.h = float(line.c), float(line.step)
        with ctx.workprec(_BITS):
            c, h = ball(line.c), ball(line.step)
            left, right = ball(self.plan.left), ball(self.plan.right)
            self.balls = c, left, right
            self.share, period = h / arb.pi(), 2 * arb.pi() / h
            self.beyond = 1 / (h * h * (line.count - 1))
            self.aliases = [1 / (x * period).expm1() for x in (c - left, right - c)]
        self.t = np.arange(line.count) * self.h  # exact, since the step has few bits
        self.reach = line.count * self.h
        z = self.c + 1j * self.t
        self.kernel: Complexes = np.asarray(1.0 / (z * (z + 1.0)), np.complex128)
        none = np.zeros(line.count)
        self._last = _Sum(self, {}, np.ones(line.count, dtype=np.complex128), none, none)
        self._first = self._last

    def sum(self, counts: Mapping[Transform, int]) -> _Sum | None:
        """Return the terms of a composition, or None if a release has no sums in floats.

        They extend those of the last composition if no release has a smaller count now.
        """
        last = self._last
        if any(counts.get(part, 0) < times for part, times in last.counts.items()):
            last = self._first
        try:
            for part, times in counts.items():
                more = times - last.counts.get(part, 0)
                if more:
                    last = last.plus(part, more)
        except UndecidedError:
            return None
        self._last = last
        return last

    def column(self, part: Transform) -> _Column:
        """Return the data of a release, stored for a sampled one.

        Gaussian releases are merged into one of a different μ each time, so theirs is not stored.
        """
        found = self._columns.get(part)
        if found is None:
            with ctx.workprec(_BITS):
                if not isinstance(part, MixtureTransform):
                    return self._made(part)
                first = next(iter(self._cut.values()), None)
                found = self._made(replace(part, cut=self._cut.get(part, first)))
            self._columns[part] = found
        return found

    def _made(self, part: Transform) -> _Column:
        c, step, count = self.plan.line.c, self.plan.line.step, self.plan.line.count
        left, right = self.plan.left, self.plan.right
        if not isinstance(part, (GaussianTransform, MixtureTransform)):
            raise UndecidedError("There are no sums in floats of these losses.")
        found = part.quick_sums(c, step, count, self._rate)
        found = found or part.quick_sums(c, step, count, math.inf)
        if found is None:
            raise UndecidedError("The sums in floats are too long.")
        with ctx.workprec(_BITS - 16):  # the precision of these sums, whose nodes are shared
            low, high = (part.log_upper(s).upper() for s in (left, right))
            if isinstance(part, MixtureTransform):
                size = part.rule(part.tilt(c), up(float(step * count))).total().log()
                lost = part.lost()[0].upper()
            else:
                size, lost = part.value(c).log(), arb(0)
        with ctx.workprec(self._bits):  # the precision of the plan, whose decay bound is shared
            fall = min(0.0, Loss(((part, 1),)).log_ratio(c, self.reach))
        ratios = 1.0 + found.values
        errors = np.asarray(1.5 * (found.errors + found.blur) + 4 * _UNIT, np.float64)
        return _Column(ratios, errors, found.mean, found.blur, size, low, high, lost, fall)


@final
class _Lines:
    """The lines of all compositions with the same first sampled release."""

    def __init__(self) -> None:
        self._lines: list[_Line] = []
        self._first: object = None
        self._asked = 0
        self._vain, self._needed = 0, 0
        self.epsilon = 0.0
        """The root of the last query, where the next search starts."""

    def is_first(self, question: object) -> bool:
        """Count a query; return whether it is the first one, or the first one repeated."""
        self._first = self._first or question
        self._asked += 1
        return self._first == question

    def root(self, product: Product, log_delta: float) -> tuple[float, _Sum] | None:
        """Return the root for a composition, and its terms on the most recent line that has one."""
        counts = dict(FOURIER.loss(product).factors)
        for line in reversed(self._lines):
            terms = line.sum(counts)
            if terms is not None and (root := terms.root(log_delta, self.epsilon)) is not None:
                return root, terms
        return None

    def value(self, product: Product, epsilon: ExactReal, relative_width: Fraction) -> arb | None:
        """Return H(ε) by the most recent line that reaches a relative width, or None."""
        counts = dict(FOURIER.loss(product).factors)
        for line in reversed(self._lines):
            terms = line.sum(counts)
            if terms is not None:
                found = terms.at(epsilon)
                if found > 0 and 2 * found.rad() < ball(relative_width) * found.lower():
                    return found
        return None

    def made(self, product: Product, epsilon: float, bits: int) -> _Sum | None:
        """Make a line for an ε and return the terms on it; None if no line is short enough."""
        loss = FOURIER.loss(product)
        with contextlib.suppress(UndecidedError, ArithmeticError):
            line = _Line(loss, epsilon, bits)
            self._needed = len(line.t) * len(loss.factors)
            if self._is_long():
                return None
            if (found := line.sum(dict(loss.factors))) is not None:
                self._lines = [*self._lines[1 - _LINES :], line]
                return found
        self.failed(product)
        return None

    def _is_long(self) -> bool:
        """Whether the last planned line is too long for the number of queries so far."""
        return self._needed > _MOST_PER_QUERY * self._asked

    def is_pointless(self, product: Product) -> bool:
        """Whether a line failed for a similar number of releases, or a new one is too long."""
        alike = 1 / _RETRY_RATIO < self._vain / FOURIER.loss(product).count < _RETRY_RATIO
        return alike or self._is_long()

    def failed(self, product: Product) -> None:
        """Record that no line serves a composition of this number of releases."""
        self._vain = FOURIER.loss(product).count


def _simple(loss: Loss) -> Loss:
    """Return a similar loss of few different releases, for which a line is planned quickly.

    No proof depends on the plan.
    """
    if len(loss.factors) <= _FEW:
        return loss
    mixtures = [part for part, _ in loss.factors if isinstance(part, MixtureTransform)]
    others = [factor for factor in loss.factors if not isinstance(factor[0], MixtureTransform)]
    times = sum(count for part, count in loss.factors if isinstance(part, MixtureTransform))
    return Loss(((mixtures[len(mixtures) // 2], times), *others))


@functools.lru_cache(maxsize=64)
def _lines(pair: Pair) -> _Lines:
    """Return the lines of the compositions whose first sampled release has this pair."""
    return _Lines()


def _of(pairs: Sequence[Pair], question: object) -> list[tuple[Product, _Lines]] | None:
    """Return each composition with its lines; None for other pairs, and for the first query."""
    products = [product for product in map(smooth, pairs) if product is not None]
    if not products or len(products) < len(pairs):
        return None
    sampled = [
        [pair for pair, _ in product.factors if isinstance(pair, SubsampledPair)]
        for product in products
    ]
    if not all(sampled):
        return None
    found = [(product, _lines(each[0])) for product, each in zip(products, sampled, strict=True)]
    first = [lines.is_first((product.factors, question)) for product, lines in found]
    return None if any(first) else found


def inverse(pairs: Sequence[Pair], delta: ExactReal, relative_width: Fraction) -> Interval | None:
    """Enclose the largest ε(δ) of the pairs; None if lines do not apply or are too inaccurate."""
    with ctx.workprec(_BITS):
        log_delta = float(delta.ball().log().mid())
    if log_delta > _LARGEST_LOG_DELTA or relative_width < _FINEST:
        return None
    known = _of(pairs, delta)
    if known is None:
        return None
    bits, found = accuracy(relative_width / 4), list[tuple[float, _Sum]]()
    for product, lines in known:
        best = lines.root(product, log_delta) or _on_new_line(product, lines, log_delta, bits)
        if best is None:
            return None
        found.append(best)
    worst = max(range(len(found)), key=lambda i: found[i][0])
    product, lines = known[worst]
    root, terms = found[worst]
    interval = _root_of(terms, delta, root, relative_width)
    if interval is None:
        again = _on_new_line(product, lines, log_delta, bits)
        interval = None if again is None else _root_of(again[1], delta, again[0], relative_width)
        if interval is None:
            lines.failed(product)
            return None
    lines.epsilon = root
    upper, limit = exact(interval.upper), delta.ball()
    for i, (product, lines) in enumerate(known):
        if i != worst:
            lines.epsilon, terms = found[i]
            if not terms.at(upper) < limit:
                again = _on_new_line(product, lines, log_delta, bits)
                if again is None or not again[1].at(upper) < limit:
                    return None
    return interval


def hockey_stick(pairs: Sequence[Pair], epsilon: ExactReal, relative_width: Fraction) -> arb | None:
    """Return a ball that contains the largest H(ε); None as for `inverse`."""
    at = float(epsilon)
    if relative_width < _FINEST or at <= 0:
        return None
    known, found = _of(pairs, epsilon), list[arb]()
    for product, lines in known or ():
        value = lines.value(product, epsilon, relative_width)
        if value is None and not lines.is_pointless(product):
            log_delta = product.known.log_delta(at)
            if log_delta is None or not -math.inf < log_delta < _LARGEST_LOG_DELTA:
                return None
            if lines.made(product, at, accuracy(relative_width)) is not None:
                value = lines.value(product, epsilon, relative_width)
            if value is None:
                lines.failed(product)
        if value is None:
            return None
        found.append(value)
    return most(found) if found else None


def _on_new_line(
    product: Product, lines: _Lines, log_delta: float, bits: int
) -> tuple[float, _Sum] | None:
    """Return the root for a composition and its terms on a new line, or None."""
    if lines.is_pointless(product):
        return None
    guess = product.known.epsilon(log_delta)
    if guess is None or not 0 < guess < math.inf:
        lines.failed(product)
        return None
    made = lines.made(product, guess, bits)
    root = None if made is None else made.root(log_delta, guess)
    if made is None or root is None:
        return None
    lines.epsilon = root
    return root, made


def _root_of(
    terms: _Sum, delta: ExactReal, root: float, relative_width: Fraction
) -> Interval | None:
    def excess(epsilon: ExactReal) -> arb:
        return (terms.at(epsilon) / delta.ball()).log()

    return solve.root_near(excess, Fraction(root), relative_width=relative_width)
