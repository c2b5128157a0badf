"""A second implementation: textbook definitions evaluated in mpmath. Nothing here is proved.

For two laws P and Q with densities or masses p and q, and L = ln p/q,

    H(ε) = ∫ (p − e^ε q)⁺,    D_a = ln ∫ p^a q^{1−a} / (a − 1),    D_1 = ∫ p L.

δ(ε) and the Rényi divergence of a mechanism are the maximum over its pairs in both directions; its
trade-off function is β(α) = sup over ε of 1 − δ(ε) − e^ε α. The laws follow from the definition of
each mechanism, with true answers as far apart as the sensitivity allows. To make agreement of the
two implementations meaningful, they share only the reading of numbers and formulas. Integrals are
Gauss–Legendre sums between the points where a density has a kink; a sum stops when further terms
have no effect. No error is bounded; answers have about twelve digits.

*Compositions.* Lists of outcomes are multiplied, and outcomes of equal loss merged. Products of
Laplace laws have a formula. If a factor has a smooth density,

    H(ε) = (1/2πi) ∫ M(z) e^{−zε} / (z(z + 1)) dz,  Re z > 0,  M(z) = Π ∫ p^{z+1} q^{−z},

the inverse transform of (1 − e^{ε−L})⁺, is computed by the trapezoidal rule on the vertical line
through the saddle point.
"""

from __future__ import annotations

import functools
import itertools
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

import numpy as np
from mpmath import mp, mpf
from mpmath.calculus.quadrature import GaussLegendre
from scipy.optimize import brentq

from dpassay.accountant import mechanisms as kinds
from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.arrays import Array
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.density import tree
from dpassay.accountant.density.text import read
from dpassay.accountant.errors import AdjacencyError, NotApplicableError, expected
from dpassay.accountant.numbers.exact import ExactReal, Number, exact

Real = Any
"""An mpmath number."""
Exact = Fraction | int | ExactReal
Integrand = Callable[[Real, Real], Real]
Node = tuple[Real, Real, Real]
"""A weight, and the densities p and q at a node of an integration rule."""

DIGITS = 30
"""Decimal digits of the computation."""
_CLOSE = mpf("1e-16")
"""Relative change at which a result or a root counts as converged."""
_SMALL = 1e-18
"""Relative weight below which a loss is neglected."""
_ZERO, _STEEPEST = mpf("1e-320"), 2**22
"""M(c) e^{−cε} below the first counts as 0; the second bounds the real part c of the line."""
_NOISE, _AGREE = 1e-15, 1e-12
"""Relative size of the last terms on a line, and of the change when its step is halved, at which
the sum is accepted."""
_CHUNK = 32
"""Nodes on a line that are evaluated at a time."""
_SHORT = 8
"""Pieces of equal width at the beginning of an unbounded interval."""
_LONG = 32
"""The same for a transform, whose integrand oscillates as e^{itL}; the rest is then negligible."""
_DOUBLED = 3
"""Further pieces, each as long as all pieces before it; the last piece is unbounded."""
_SAME = 18
"""Decimal digits of a loss by which outcomes are merged."""
_QUIET = 40
"""Consecutive negligible terms that end a sum."""
_MOST_OUTCOMES = 20_000
"""Most outcomes of a list; products of longer lists take minutes."""
_MOST_COORDINATES = 16
"""Most coordinates of a product of Laplace laws; the number of cases grows with their square for
each distance."""
_MOST_PIECES = 256
"""Most pieces of one width between two knots; more take minutes."""
_MOST_NODES = 2_000
"""Most nodes on a line; an M that has not decayed by then belongs to a loss with atoms."""
_SAMPLES = 9
"""Sample points of a piece; L − ε is assumed to change its sign at most once between neighbours."""
_FAR = 256.0
"""Largest threshold ε of a test that is tried."""
_RULE = 5
"""Degree of the Gauss–Legendre rule of a piece, which has 3·2^{degree−1} nodes."""


@functools.cache
def _rule(_precision: int) -> list[tuple[Real, Real]]:
    """Return the nodes and weights on (−1, 1) at mpmath's working precision."""
    return list(GaussLegendre(mp).calc_nodes(_RULE, mp.prec))


class Law(ABC):
    """A pair of laws (P, Q)."""

    @abstractmethod
    def integrate(self, integrand: Integrand, epsilon: Real | None = None) -> Real:
        """Integrate integrand(p, q) over the outcomes with p > e^ε q, or over all outcomes."""

    @abstractmethod
    def mapped(self, change: Callable[[Real, Real], tuple[Real, Real]]) -> Law:
        """Return the pair with (p, q) replaced by change(p, q) at every outcome."""

    def reverse(self) -> Law:
        """Return (Q, P)."""
        return self.mapped(lambda p, q: (q, p))

    def sampled(self, share: Real) -> Law:
        """Return ((1 − share) Q + share P, Q): the record is sampled with probability `share`."""
        return self.mapped(lambda p, q: ((1 - share) * q + share * p, q))

    def hockey_stick(self, epsilon: Real) -> Real:
        """Return H(ε)."""
        return self.integrate(lambda p, q: p - mp.exp(epsilon) * q, epsilon)

    def renyi(self, order: Real) -> Real:
        """Return D_order, for order ≥ 1."""
        if order == 1:
            return self.integrate(_mean_loss)
        return mp.log(self.integrate(lambda p, q: _power(p, q, order - 1))) / (order - 1)

    def nodes(self) -> list[Node]:
        """Return the nodes of a rule that integrates over all outcomes."""
        raise NotApplicableError(
            'method="mpmath" has no composition of this mechanism. Ask without it.'
        )

    @functools.cached_property
    def _losses(self) -> list[tuple[Real, Real]]:
        return [(w * p, mp.log(p / q)) for w, p, q in self.nodes() if p and q]

    def infinity_mass(self) -> Real:
        """Return P(L = ∞)."""
        return mp.fsum(w * p for w, p, q in self.nodes() if not q)

    def losses(self, c: Real) -> list[tuple[Real, Real]]:
        """Return pairs (w, L) with M(c + it) = Σ w e^{itL}, without negligible terms."""
        found = [(w * mp.exp(c * loss), loss) for w, loss in self._losses]
        least = max(w for w, _ in found) * _SMALL
        return [(w, loss) for w, loss in found if w > least]


def _mean_loss(p: Real, q: Real) -> Real:
    if not p:
        return mpf(0)
    return p * mp.log(p / q) if q else mp.inf


def _power(p: Real, q: Real, z: Real) -> Real:
    if not p:
        return mpf(0)
    return p * mp.exp(z * mp.log(p / q)) if q else mp.inf


@final
@dataclass(frozen=True)
class Line(Law):
    """Two densities on the real line."""

    densities: Callable[[Real], tuple[Real, Real]]
    knots: tuple[Real, ...]
    """The points where a density has a kink, a jump or the end of its support."""
    width: Real
    """The width of the first piece beyond an outermost knot."""
    smooth: bool = False
    """Whether L has a density: no interval of positive probability has constant loss."""
    bounded: bool = False
    """Whether the densities are 0 outside the knots."""

    def mapped(self, change: Callable[[Real, Real], tuple[Real, Real]]) -> Line:
        """Return the pair with changed densities."""
        return replace(self, densities=lambda x: change(*self.densities(x)))

    def integrate(self, integrand: Integrand, epsilon: Real | None = None) -> Real:
        """Integrate piece by piece, each between the points where L = ε."""
        total = mpf(0)
        for (low, high), nodes in self._pieces_and_nodes:
            for left, right in self._above(low, high, epsilon):
                whole = (left, right) == (low, high)
                found = nodes if whole else self._densities(left, right)
                total += mp.fsum(w * integrand(p, q) for w, p, q in found if p or q)
        return total

    @functools.cached_property
    def _pieces_and_nodes(self) -> list[tuple[tuple[Real, Real], list[Node]]]:
        """Every piece with its nodes."""
        return [(piece, self._densities(*piece)) for piece in self._pieces()]

    def nodes(self) -> list[Node]:
        """Return nodes that are dense enough for the oscillations of a transform too."""
        return [node for piece in self._pieces(_LONG) for node in self._densities(*piece)]

    def _densities(self, low: Real, high: Real) -> list[Node]:
        """Return weights and densities at the nodes of a piece."""
        if mp.isinf(low) or mp.isinf(high):  # x = end ± reach (1/u − 1)
            start, side = (high, -1) if mp.isinf(low) else (low, 1)
            reach = self.width * _SHORT * 2**_DOUBLED
            rule = [((u + 1) / 2, w / 2) for u, w in _rule(mp.prec)]
            places = [(start + side * reach * (1 / u - 1), reach * w / u**2) for u, w in rule]
        else:
            middle, half = (low + high) / 2, (high - low) / 2
            places = [(middle + half * u, half * w) for u, w in _rule(mp.prec)]
        return [(w, *self.densities(x)) for x, w in places]

    def _pieces(self, short: int = _SHORT) -> Iterator[tuple[Real, Real]]:
        for low, high in itertools.pairwise(self.knots):
            yield from itertools.pairwise(_cut(low, high, self.width))
        if self.bounded:
            return
        steps = [*range(short), *(short * 2**k for k in range(_DOUBLED + 1))]
        for start, side in ((self.knots[0], -1), (self.knots[-1], 1)):
            cuts = [start + side * self.width * step for step in steps]
            for pair in itertools.pairwise([*cuts, side * mp.inf]):
                yield pair if side > 0 else pair[::-1]

    def _above(self, low: Real, high: Real, epsilon: Real | None) -> list[list[Real]]:
        """Return the parts of a piece where L > ε."""
        if epsilon is None:
            return [[low, high]]
        factor, far = mp.exp(epsilon), self.width * 10**12

        def above(x: Real) -> bool:
            p, q = self.densities(x)
            return bool(p > factor * q)

        first = low if mp.isfinite(low) else high - far
        last = high if mp.isfinite(high) else low + far
        inner = (last - first) * mp.eps * 2**8  # a density may jump at a knot
        points = [first + inner, *mp.linspace(first, last, _SAMPLES)[1:-1], last - inner]
        ends = [low, high]
        for left, right in itertools.pairwise(points):
            if above(left) != above(right):
                ends.append(_change(above, left, right))
        ends.sort()
        inside = [above(points[0])]
        inside += [not inside[0] if k % 2 else inside[0] for k in range(1, len(ends) - 1)]
        return [
            list(part)
            for part, there in zip(itertools.pairwise(ends), inside, strict=True)
            if there
        ]


def _cut(low: Real, high: Real, width: Real) -> list[Real]:
    """Cut an interval into pieces of at most the given width."""
    pieces = max(1, int(mp.ceil((high - low) / width)))
    if pieces > _MOST_PIECES:
        raise NotApplicableError(
            f'The densities are {pieces} widths of the noise long; method="mpmath" integrates at '
            f"most {_MOST_PIECES}. Ask without it."
        )
    return list(mp.linspace(low, high, pieces + 1))


def _change(
    holds: Callable[[Real], bool], left: Real, right: Real, near: Real | None = None
) -> Real:
    """Return where a condition changes between two points, to the relative error `near`."""
    at_left = holds(left)
    near = mp.eps * 2**8 if near is None else near
    while abs(right - left) > near * max(near, abs(left), abs(right)):
        middle = (left + right) / 2
        left, right = (middle, right) if holds(middle) == at_left else (left, middle)
    return left


@final
@dataclass(frozen=True)
class Outcomes(Law):
    """Two lists of masses, with an entry per outcome."""

    rows: tuple[tuple[Real, Real], ...]

    def mapped(self, change: Callable[[Real, Real], tuple[Real, Real]]) -> Outcomes:
        """Return the pair with changed masses."""
        return Outcomes(tuple(change(p, q) for p, q in self.rows))

    def integrate(self, integrand: Integrand, epsilon: Real | None = None) -> Real:
        """Sum over the outcomes."""
        factor = mpf(0) if epsilon is None else mp.exp(epsilon)
        above = (row for row in self.rows if epsilon is None or row[0] > factor * row[1])
        return mp.fsum(integrand(p, q) for p, q in above)

    def nodes(self) -> list[Node]:
        """Return the outcomes, each with weight 1."""
        return [(mpf(1), p, q) for p, q in self.rows]

    def times(self, other: Outcomes) -> Outcomes:
        """Return the product, with outcomes of equal loss merged."""
        merged: dict[object, tuple[Real, Real]] = {}
        own, others = self._with_losses(), other._with_losses()
        for (loss, a, b), (more, p, q) in itertools.product(own, others):
            both = loss + more
            at = int(both * 10**_SAME) if mp.isfinite(both) else str(both)
            x, y = merged.get(at, (mpf(0), mpf(0)))
            merged[at] = (x + a * p, y + b * q)
            if len(merged) > _MOST_OUTCOMES:
                raise NotApplicableError(
                    f"The product has more than {_MOST_OUTCOMES} different losses, the most that "
                    'method="mpmath" lists. Ask without it.'
                )
        least = mpf(10) ** (-2 * DIGITS)
        return Outcomes(tuple(row for row in merged.values() if max(row) > least))

    def _with_losses(self) -> list[Node]:
        return [
            (mp.log(p / q) if p and q else mp.inf * (1 if p else -1), p, q) for p, q in self.rows
        ]

    def power(self, count: int) -> Outcomes:
        """Return the product of `count` independent releases."""
        if count == 1:
            return self
        half = self.power(count // 2)
        square = half.times(half)
        return square.times(self) if count % 2 else square


def integers(mass: Callable[[int], Real], shift: int) -> Outcomes:
    """List P(z) = mass(z − shift) and Q(z) = mass(z), until both are below 10^−2·`DIGITS`."""
    least, rows = mpf(10) ** (-2 * DIGITS), list[tuple[Real, Real]]()
    for step in (1, -1):
        z, quiet = (0, 0) if step > 0 else (-1, 0)
        while quiet < _QUIET + shift:
            row = (mass(z - shift), mass(z))
            quiet = 0 if max(row) > least else quiet + 1
            rows.append(row)
            z += step
            if len(rows) > _MOST_OUTCOMES:
                raise NotApplicableError(
                    f"The masses do not fall below 1e-{2 * DIGITS} within {_MOST_OUTCOMES} "
                    'integers, the most that method="mpmath" lists. Ask without it.'
                )
    return Outcomes(tuple(row for row in rows if any(row)))


@final
@dataclass(frozen=True)
class Product(Law):
    """Independent releases, at least one with a smooth loss; H comes from their transform."""

    factors: tuple[tuple[Law, int], ...]

    def mapped(self, change: Callable[[Real, Real], tuple[Real, Real]]) -> Law:
        """Raise NotApplicableError: only the transform is known."""
        raise NotApplicableError(
            'method="mpmath" has no outcomes of a composition with densities. Ask without it.'
        )

    def integrate(self, integrand: Integrand, epsilon: Real | None = None) -> Real:
        """Raise NotApplicableError: only H is known."""
        raise NotApplicableError(
            'method="mpmath" has delta and epsilon of a composition with densities, nothing else. '
            "Ask without it."
        )

    def reverse(self) -> Product:
        """Return (Q, P)."""
        return Product(tuple((law.reverse(), count) for law, count in self.factors))

    def hockey_stick(self, epsilon: Real) -> Real:
        """Return H(ε): the probability of an infinite loss plus an integral along a line.

        The step on the line is halved until the sum converges. H ≤ M(c) e^{−cε} for every c; if ε
        exceeds all finite losses, this bound tends to 0 as c grows.
        """

        def log(c: Real) -> Real:
            moments = (n * mp.log(mp.fsum(w for w, _ in law.losses(c))) for law, n in self.factors)
            return mp.fsum(moments) - c * epsilon - mp.log(c * (c + 1))

        finite = (mp.log1p(-law.infinity_mass()) * n for law, n in self.factors)
        infinite = -mp.expm1(mp.fsum(finite))
        c = mpf(1)
        while log(2 * c) < log(c):
            c *= 2
            if c * (c + 1) * mp.exp(log(c)) < _ZERO:
                return infinite
            if c > _STEEPEST:
                raise NotApplicableError(
                    "epsilon is too near the largest loss of this composition for "
                    'method="mpmath". Ask without it.'
                )
        c = _least(log, c)
        h = c / 100
        width = h / mp.sqrt(log(c + h) + log(c - h) - 2 * log(c))
        height = mp.exp(log(c)) * c * (c + 1) / mp.pi
        factors = [(*_floats(law.losses(c)), n) for law, n in self.factors]
        step, last = float(width), None
        while True:
            total = _trapezoid(factors, float(c), float(epsilon), step)
            if last is not None and abs(total - last) <= abs(total) * _AGREE:
                return infinite + height * total
            last, step = total, step / 2


def _floats(losses: Sequence[tuple[Real, Real]]) -> tuple[Array, Array]:
    """Return the weights and the losses as float arrays."""
    return np.array([float(w) for w, _ in losses]), np.array([float(loss) for _, loss in losses])


def _trapezoid(
    factors: Sequence[tuple[Array, Array, int]], c: float, epsilon: float, step: float
) -> float:
    """Sum Re Π (M(c + it)/M(c))^n e^{−itε}/((c + it)(c + it + 1)) over t = 0, step, …, halved at 0.

    Floats suffice: the rounding error of a sum Σ w e^{itL} is relative to Σ w = M(c), its maximum.
    """
    total = 0.0
    for start in range(0, _MOST_NODES, _CHUNK):
        t = step * np.arange(start, start + _CHUNK)
        terms = np.exp(-1j * t * epsilon) / ((c + 1j * t) * (c + 1j * t + 1))
        for w, loss, n in factors:
            terms *= (np.exp(1j * np.outer(t, loss)) @ (w / w.sum())) ** n
        terms[0] /= 1 if start else 2
        total += float(terms.real.sum())
        if np.all(np.abs(terms[-_CHUNK // 4 :]) < abs(total) * _NOISE):
            return total * step
    raise NotApplicableError(
        "The transform of this composition does not fall: its loss has atoms. Ask without "
        'method="mpmath".'
    )


@final
@dataclass(frozen=True)
class LaplaceProduct(Law):
    """Laplace laws of scale 1, shifted by the given distances.

    A coordinate lies beyond P's centre (L = t) with probabilities 1/2 under P and e^{−t}/2 under Q,
    and beyond Q's centre with these exchanged. Between the centres, p = (1/4) e^{−t/2} e^{L/2} as a
    density in L on (−t, t). For m coordinates between the centres, the sum of losses has the factor
    V(l), the convolution of the indicators of (−t, t):
    V(l) = Σ over signs of Π sign · (l + sign·t)₊^{m−1}/(m − 1)!.
    """

    distances: tuple[tuple[Real, int], ...]
    """Each distance, and the number of coordinates with it."""

    def mapped(self, change: Callable[[Real, Real], tuple[Real, Real]]) -> Law:
        """Raise NotApplicableError: outcomes of equal loss are merged here."""
        raise NotApplicableError('method="mpmath" has no such mixture. Ask without it.')

    def reverse(self) -> LaplaceProduct:
        """Return the pair itself, as the laws are symmetric."""
        return self

    def integrate(self, integrand: Integrand, epsilon: Real | None = None) -> Real:
        """Sum over the numbers of coordinates, for each distance, in each of the three regions."""
        total, coordinates = mpf(0), sum(n for _, n in self.distances)
        if coordinates > _MOST_COORDINATES:
            raise NotApplicableError(
                f'method="mpmath" sums the cases of at most {_MOST_COORDINATES} Laplace laws, not '
                f"{coordinates}. Ask without it."
            )
        sides = [
            [(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)]
            for _, n in self.distances
        ]
        for case in itertools.product(*sides):
            weight, start, between = mpf(1), mpf(0), []
            for (t, n), (a, b, m) in zip(self.distances, case, strict=True):
                ways = math.comb(n, a) * math.comb(n - a, b)
                weight *= ways * mpf(2) ** -(a + b + 2 * m) * mp.exp(-t * (b + m / mpf(2)))
                start += (a - b) * t
                between.append((t, m))
            with mp.workdps(mp.dps + 2 * coordinates):  # the signed terms of V cancel
                total += self._case(integrand, epsilon, weight, start, between)
        return total

    def _case(
        self,
        integrand: Integrand,
        epsilon: Real | None,
        weight: Real,
        start: Real,
        between: list[tuple[Real, int]],
    ) -> Real:
        order = sum(m for _, m in between)
        if not order:  # an atom; within rounding error of ε it counts as equal to ε
            counted = epsilon is None or start > epsilon + mpf(10) ** (-DIGITS // 2)
            return integrand(weight, weight * mp.exp(-start)) if counted else mpf(0)
        signs: Counter[Real] = Counter({mpf(0): 1})
        for t, m in between:
            signs = _spread(signs, t, m)
        knots = sorted(-at for at in signs)
        low = knots[0] if epsilon is None else max(knots[0], epsilon - start)

        def value(loss: Real) -> Real:
            terms = (
                c * max(loss + at, mpf(0)) ** (order - 1) for at, c in signs.items() if loss > -at
            )
            p = weight * mp.exp(loss / 2) * mp.fsum(terms) / mp.factorial(order - 1)
            return integrand(p, p * mp.exp(-start - loss))

        cuts = [low, *(knot for knot in knots if knot > low)]
        return mp.fsum(
            (high - low) / 2 * w * value((low + high) / 2 + (high - low) / 2 * u)
            for knot, other in itertools.pairwise(cuts)
            for low, high in itertools.pairwise(_cut(knot, other, mpf(4)))
            for u, w in _rule(mp.prec)
        )


def _spread(signs: Counter[Real], t: Real, m: int) -> Counter[Real]:
    """Return the signed sums ±t … ±t with m further coordinates, each with its signed count."""
    found: Counter[Real] = Counter()
    for at, c in signs.items():
        for k in range(m + 1):
            found[at + (m - 2 * k) * t] += c * math.comb(m, k) * (-1) ** k
    return found


def _least(convex: Callable[[Real], Real], high: Real) -> Real:
    """Return a point near the minimum of a convex function on (0, ∞), by golden-section search."""
    while convex(high / 2) < convex(high):
        high /= 2
    low, high = high / 2, 2 * high
    return _golden(convex, low, high, 12)


def _golden(convex: Callable[[Real], Real], low: Real, high: Real, steps: int) -> Real:
    """Return the minimiser of a convex function on [low, high], to 0.618^steps of its length."""
    ratio = (mp.sqrt(5) - 1) / 2
    for _ in range(steps):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if convex(left) < convex(right) else (left, high)
    return (low + high) / 2


_ADD_REMOVE = (
    'method="mpmath" knows samples and mixtures under add-remove. Ask with adjacency="add-remove".'
)


def laws(mechanism: Mechanism, adjacency: Adjacency | None = None) -> tuple[list[Law], list[Law]]:
    """Return the worst pairs of a mechanism for a removed record and for an added one.

    Raises NotApplicableError for a mechanism without a definition by densities or masses here.
    """
    match mechanism:
        case kinds.Composed():
            parts = [(laws(part, adjacency), count) for part, count in mechanism.parts()]
            laplace = _laplace(mechanism)
            if laplace:
                return [laplace], [laplace]
            remove, add = (
                [
                    _product([(law, n) for law, (_, n) in zip(choice, parts, strict=True)])
                    for choice in itertools.product(*(both[side] for both, _ in parts))
                ]
                for side in (0, 1)
            )
            if len(remove) + len(add) > 2 and sum(n for _, n in parts) > 1:
                raise _unknown(mechanism)
            return remove, add
        case kinds.PoissonSubsampled() if adjacency is Adjacency.ADD_REMOVE:
            share = mechanism.sampling_prob.mpf()
            remove = [law.sampled(share) for law in laws(mechanism.mechanism, adjacency)[0]]
            return remove, [law.reverse() for law in remove]
        case kinds.PoissonSubsampled():
            raise AdjacencyError(_ADD_REMOVE)
        case kinds.MixtureOfGaussians() if adjacency is Adjacency.REPLACE_ONE:
            raise AdjacencyError(_ADD_REMOVE)
    remove = _release(mechanism)
    return remove, [law.reverse() for law in remove]


def _unknown(mechanism: Mechanism) -> NotApplicableError:
    return NotApplicableError(
        f'method="mpmath" has no densities or masses for {mechanism!r}. Ask without it.'
    )


def _product(factors: Sequence[tuple[Law, int]]) -> Law:
    """Return the product of independent releases: pairs of a law and its number of releases."""
    lists = [law.power(n) for law, n in factors if isinstance(law, Outcomes)]
    if len(factors) == 1 and factors[0][1] == 1:
        return factors[0][0]
    rest = tuple((law, n) for law, n in factors if not isinstance(law, Outcomes))
    if not rest:
        return functools.reduce(Outcomes.times, lists)
    if not any(isinstance(law, Line) and law.smooth for law, _ in rest):
        raise NotApplicableError(
            'method="mpmath" has no composition of these densities, whose losses have atoms. Ask '
            "without it."
        )
    return Product(tuple(factors))


def _laplace(mechanism: kinds.Composed) -> LaplaceProduct | None:
    """Return the product if all parts are Laplace mechanisms, else None."""
    distances: Counter[Real] = Counter()
    for part, count in mechanism.parts():
        if not isinstance(part, kinds.Laplace):
            return None
        distances[(part.l1_sensitivity / part.scale).mpf()] += count
    return LaplaceProduct(tuple(distances.items()))


def _release(mechanism: Mechanism) -> list[Law]:
    """Return the worst pairs of one release, for a removed record."""
    match mechanism:
        case kinds.Gaussian():
            mu = mechanism.l2_sensitivity.mpf() / mechanism.standard_deviation.mpf()
            return [_shifted(mp.npdf, mu, smooth=True)]
        case kinds.MixtureOfGaussians():
            sigma = mechanism.standard_deviation.mpf()
            means = [m.mpf() / sigma for m in mechanism.sensitivities]
            weights = [_number(w) for w in mechanism.sampling_probs]

            def mixed(x: Real) -> tuple[Real, Real]:
                p = mp.fsum(w * mp.npdf(x - m) for w, m in zip(weights, means, strict=True))
                return p, mp.npdf(x)

            return [Line(mixed, _knots(mpf(0), max(means), mpf(1)), mpf(1), smooth=True)]
        case kinds.Laplace():
            t = (mechanism.l1_sensitivity / mechanism.scale).mpf()
            return [_shifted(lambda x: mp.exp(-abs(x)) / 2, t)]
        case kinds.LaplaceVector():
            ratios = Counter(abs((shift / mechanism.scale).mpf()) for shift in mechanism.shifts)
            return [LaplaceProduct(tuple((t, n) for t, n in ratios.items() if t))]
        case kinds.Logistic():
            t = (mechanism.sensitivity / mechanism.scale).mpf()
            return [_shifted(lambda x: mp.sech(x / 2) ** 2 / 4, t)]
        case kinds.TruncatedLaplace():
            b = mechanism.scale.mpf()
            end, t = mechanism.bound.mpf() / b, mechanism.sensitivity.mpf() / b
            mass = -2 * mp.expm1(-end)
            return [
                _shifted(
                    lambda x: mp.exp(-abs(x)) / mass if abs(x) < end else mpf(0),
                    t,
                    (-end, 0, end),
                    bounded=True,
                )
            ]
        case kinds.Staircase():
            return [_staircase(mechanism)]
        case kinds.AdditiveNoise():
            return [_own_noise(mechanism)]
        case kinds.DiscreteLaplace():
            b = mechanism.scale.mpf()
            return [
                integers(
                    lambda z: mp.tanh(1 / (2 * b)) * mp.exp(-abs(z) / b), mechanism.sensitivity
                )
            ]
        case kinds.DiscreteGaussian():
            v = mechanism.parameter.mpf()
            listed = integers(lambda z: mp.exp(-z * z / (2 * v)), mechanism.sensitivity)
            total = mp.fsum(q for _, q in listed.rows)
            return [listed.mapped(lambda p, q: (p / total, q / total))]
        case kinds.Skellam():
            v = mechanism.variance.mpf()
            return [integers(lambda z: mp.exp(-v) * mp.besseli(abs(z), v), mechanism.sensitivity)]
        case kinds.IntegerNoise():
            shifts = range(1, mechanism.sensitivity + 1)
            masses: list[Exact] = list(mechanism.probabilities)
            return [_table([*[0] * t, *masses], [*masses, *[0] * t]) for t in shifts]
        case kinds.RandomizedResponse():
            odds, k = mp.exp(mechanism.epsilon.mpf()), mechanism.categories
            total = odds + k - 1
            rest = ((k - 2) / total, (k - 2) / total)
            return [Outcomes(((odds / total, 1 / total), (1 / total, odds / total), rest))]
        case kinds.UnaryEncoding() | kinds.Rappor():
            return [_two_bits(*_chances(mechanism))]
        case kinds.SubsetSelection() if mechanism.size is not None:
            return [_subsets(mp.exp(mechanism.epsilon.mpf()), mechanism.categories, mechanism.size)]
        case kinds.Tabulated():
            return [_table(mechanism.p, mechanism.q)]
        case kinds.Channel() if mechanism.neighbours is None:
            rows = itertools.permutations(mechanism.matrix, 2)
            return [_table(p, q) for p, q in rows]
        case kinds.Guaranteed():
            e, delta = mp.exp(mechanism.epsilon.mpf()), mechanism.delta.mpf()
            high, low = (1 - delta) * e / (1 + e), (1 - delta) / (1 + e)
            return [Outcomes(((delta, mpf(0)), (high, low), (low, high), (mpf(0), delta)))]
    raise _unknown(mechanism)


def _table(p: Sequence[Exact], q: Sequence[Exact]) -> Outcomes:
    """Return the pair of two lists of exact masses."""
    rows = zip(p, q, strict=True)
    return Outcomes(tuple((_number(a), _number(b)) for a, b in rows if a or b))


def _number(value: Exact) -> Real:
    if isinstance(value, ExactReal):
        return value.mpf()
    return mpf(value.numerator) / value.denominator


def _knots(*points: Real) -> tuple[Real, ...]:
    return tuple(sorted(set(points)))


def _shifted(
    density: Callable[[Real], Real],
    t: Real,
    kinks: Sequence[Real] = (0,),
    *,
    smooth: bool = False,
    bounded: bool = False,
) -> Line:
    """Return noise of a density around t and around 0, in units of the noise's scale."""
    knots = _knots(*(mpf(k) for k in kinks), *(k + t for k in kinks))
    return Line(lambda x: (density(x - t), density(x)), knots, mpf(1), smooth, bounded)


def _staircase(mechanism: kinds.Staircase) -> Outcomes:
    """Return the masses of the intervals between the steps of both densities.

    Geng and Viswanath (2016), eq. (8): in units of the sensitivity, f(x) is a on [0, γ) and a
    e^{−ε} on [γ, 1), and f(|x| + 1) = e^{−ε} f(|x|).
    """
    ratio, gamma = mp.exp(-mechanism.epsilon.mpf()), mechanism.gamma.mpf()
    height = (1 - ratio) / (2 * (gamma + ratio * (1 - gamma)))

    def density(x: Real) -> Real:
        whole = mp.floor(abs(x))
        return height * ratio ** (whole + (abs(x) - whole >= gamma))

    cuts = _knots(mpf(0), min(gamma, 1 - gamma), max(gamma, 1 - gamma), mpf(1))
    reach = int(2 * DIGITS * mp.log(10) / mechanism.epsilon.mpf()) + 2
    if 6 * reach > _MOST_OUTCOMES:
        raise _unknown(mechanism)
    rows: list[tuple[Real, Real]] = []
    for whole in range(-reach, reach):
        for low, high in itertools.pairwise(cuts):
            x = whole + (low + high) / 2
            rows.append(((high - low) * density(x - 1), (high - low) * density(x)))
    return Outcomes(tuple(rows))


def _chances(mechanism: kinds.UnaryEncoding | kinds.Rappor) -> tuple[Real, Real]:
    """Return the probabilities that the bit of the true category, and of another one, is 1."""
    if isinstance(mechanism, kinds.Rappor):
        half = _number(mechanism.flip) / 2
        return 1 - half, half
    odds = mp.exp(mechanism.epsilon.mpf())
    if mechanism.optimised:
        return mpf(1) / 2, 1 / (1 + odds)
    return mp.sqrt(odds) / (1 + mp.sqrt(odds)), 1 / (1 + mp.sqrt(odds))


def _two_bits(p: Real, q: Real) -> Outcomes:
    """Return the laws of the two bits that differ: those of the two true categories."""
    own, other = Outcomes(((p, q), (1 - p, 1 - q))), Outcomes(((q, p), (1 - q, 1 - p)))
    return own.times(other)


def _subsets(odds: Real, k: int, size: int) -> Outcomes:
    """Return the subsets of a size; one with the true category is e^ε times as probable."""
    total = odds * math.comb(k - 1, size - 1) + math.comb(k - 1, size)
    only = math.comb(k - 2, size - 1) / total
    both = math.comb(k - 2, size - 2) * odds / total if size > 1 else mpf(0)
    none = math.comb(k - 2, size) / total
    return Outcomes(((odds * only, only), (only, odds * only), (both, both), (none, none)))


def _own_noise(mechanism: kinds.AdditiveNoise) -> Law:
    """Return noise with a density given as a formula, shifted by the sensitivity.

    This is the worst shift of a density with one mode.
    """
    node = read(mechanism.density, "density")
    t = (mechanism.sensitivity / mechanism.scale).mpf()
    _require_one_mode(mechanism, lambda x: _value(node, x))
    kinks = sorted({mpf(0), *_kinks(node)})
    plain = _shifted(lambda x: _value(node, x), t, kinks)
    total, again = (
        replace(plain, width=width).integrate(lambda _, q: q) for width in (mpf(1), mpf(1) / 3)
    )
    if abs(total - again) > abs(total) * _AGREE:
        raise _unknown(mechanism)
    return plain.mapped(lambda p, q: (p / total, q / total))


def _require_one_mode(mechanism: Mechanism, density: Callable[[Real], Real]) -> None:
    """Refuse a density that rises after it fell, judged by its values at many points."""
    values = [density(x) for x in mp.linspace(-16, 16, 513)]
    steps = [b > a for a, b in itertools.pairwise(values) if a != b]
    if sum(a != b for a, b in itertools.pairwise(steps)) > 1:
        raise _unknown(mechanism)


def _nodes(node: tree.Node) -> Iterable[tree.Node]:
    yield node
    for part in node.parts:
        yield from _nodes(part)


def _kinks(node: tree.Node) -> list[Real]:
    """Return where the conditions of pieces change, judged by their signs at many points."""
    conditions = {found.parts[0] for found in _nodes(node) if found.op in ("if", "join")}
    points = [x + mpf("0.001") for x in mp.linspace(-64, 64, 2049)]
    return [
        _change(functools.partial(_holds, u), left, right)
        for u in conditions
        for left, right in itertools.pairwise(points)
        if _holds(u, left) != _holds(u, right)
    ]


def _holds(condition: tree.Node, x: Real) -> bool:
    return bool(_value(condition, x) > 0)


def _value(node: tree.Node, x: Real) -> Real:
    """Return the value of a formula at x."""
    if node.op in ("if", "join"):
        u, a, b = node.parts
        return _value(a if _value(u, x) > 0 else b, x)
    parts = [_value(part, x) for part in node.parts]
    match node.op:
        case "num":
            return _number(node.number)
        case "pi":
            return +mp.pi
        case "x":
            return x
        case "add":
            return parts[0] + parts[1]
        case "mul":
            return parts[0] * parts[1]
        case "pow":
            return parts[0] ** _number(node.number)
        case "exp":
            return mp.exp(parts[0])
        case "log":
            return mp.log(parts[0])
        case "logsum":
            return mp.log(mp.exp(parts[0]) + mp.exp(parts[1]))
        case "sigmoid":
            return 1 / (1 + mp.exp(-parts[0]))
    raise NotApplicableError(f'method="mpmath" does not know {node.op} in a formula.')


@dataclass(frozen=True)
class Reference:
    """The pairs of a mechanism, and the questions that they answer."""

    pairs: tuple[Law, ...]

    @staticmethod
    def of(
        mechanism: Mechanism,
        adjacency: Adjacency | str | None = None,
        direction: Direction | str | None = None,
    ) -> Reference:
        """Define the pairs of one direction, or of both; the relation is not checked."""
        side = Direction.read(direction)
        with mp.workdps(DIGITS):
            remove, add = laws(mechanism, Adjacency.read(adjacency))
        both = {Direction.REMOVE: remove, Direction.ADD: add, None: remove + add}
        return Reference(tuple(both[side]))

    def delta(self, epsilon: Number) -> float:
        """Return δ(ε)."""
        return self._asked(lambda: self._delta(exact(epsilon, "epsilon").mpf()))

    def epsilon(self, delta: Number) -> float:
        """Return the least ε ≥ 0 with δ(ε) ≤ δ, or +∞ if it exceeds 2^10."""
        return self._asked(lambda: self._epsilon(exact(delta, "delta").mpf()))

    def beta(self, alpha: Number) -> float:
        """Return β(α), the least type II error at type I error α in [0, 1]."""
        return self._asked(lambda: self._beta(exact(alpha, "alpha").mpf()))

    def renyi(self, order: Number) -> float:
        """Return the Rényi divergence of an order ≥ 1; order 1 is the mean loss."""
        at = exact(order, "order")
        if not at >= exact(1):
            raise expected("order", order, "≥ 1")
        return self._asked(lambda: max(law.renyi(at.mpf()) for law in self.pairs))

    def _asked(self, question: Callable[[], Real]) -> float:
        with mp.workdps(DIGITS):
            return float(question())

    def _delta(self, epsilon: Real) -> Real:
        return max(law.hockey_stick(epsilon) for law in self.pairs)

    def _epsilon(self, delta: Real) -> Real:
        if not 0 <= delta <= 1:
            raise expected("delta", delta, "in [0, 1]")
        if self._delta(mpf(0)) <= delta:
            return mpf(0)
        high = mpf(1)
        while self._delta(high) > delta:
            high *= 2
            if high > 2**10:
                return mp.inf
        if not delta:  # δ(ε) is 0 from the largest loss on, so bisect
            return _change(lambda x: self._delta(x) > 0, mpf(0), high, _CLOSE)

        low = mpf(0)
        while self._delta(high) <= 0:
            middle = (low + high) / 2
            low, high = (middle, high) if self._delta(middle) > delta else (low, middle)
        if low == high:
            return high

        def excess(x: float) -> float:
            return float(mp.log(self._delta(mpf(x)) / delta))

        return mpf(brentq(excess, float(low), float(high), xtol=1e-15, rtol=1e-15))

    def _beta(self, alpha: Real) -> Real:
        if not 0 <= alpha <= 1:
            raise expected("alpha", alpha, "in [0, 1]")
        return min(_least_error(law, alpha) for law in self.pairs)


def _least_error(law: Law, alpha: Real) -> Real:
    """Return the maximum of 1 − H(ε) − e^ε α, at the ε with Q(L > ε) = α (Neyman and Pearson)."""

    def excess(x: float) -> float:
        return float(law.integrate(lambda _, q: q, mpf(x)) - alpha)

    if excess(-_FAR) <= 0:  # Q(L > −∞) ≤ α: rejecting there has no type II error
        return mpf(0)
    at = mpf(brentq(excess, -_FAR, _FAR, xtol=1e-15, rtol=1e-15)) if excess(_FAR) < 0 else _FAR
    return 1 - law.hockey_stick(at) - mp.exp(at) * alpha
