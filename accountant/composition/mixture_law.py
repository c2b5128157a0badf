"""The loss of two mixtures of normal laws, for Fourier inversion: subsampled Gaussian noise, say.

With P = Σ w_i N(a_i, 1) and Q = Σ v_j N(b_j, 1), b_j ≤ 0 ≤ a_i, let A(x) = Σ w_i e^{a_i x − a_i²/2}
and B(x) = Σ v_j e^{b_j x − b_j²/2} be their densities over that of N(0, 1). The loss ln(A/B) has

    M(z) = ∫ φ(x) A(x)^{1+z} B(x)^{−z} dx.

Let a = max a_i, b = max |b_j|, |y| < π/max(a, b) and z = c + iω, c ≥ −1. The terms of A(x + iy)
have angles between 0 and ay, those of B(x + iy) angles between 0 and −by. Therefore

- *the trapezoidal sum* of step d errs by at most 2κ e^{y²/2 + |ω|(a+b)y} M(c)/(e^{2πy/d} − 1) for
  any such y > 0, where κ = cos(by/2)^{−c} for c > 0 and 1 elsewhere (Trefethen and Weideman 2014,
  Theorem 5.1, with |A(x + iy)| ≤ A(x) and |B(x + iy)| between B(x) cos(by/2) and B(x));
- *beyond a frequency* Ω, on the line x + iy with y ≤ π/(2 max(a, b)) where arg A ≥ α, −arg B ≥ β,
  |M(c + iω)| ≤ κ e^{y²/2} ∫ φ A^{1+c} B^{−c} e^{−Ω(α + β)} dx. As Im A/A(x) is the sine of an angle
  that is at most arg A, α(x) = arcsin E[sin(a_i y) | x] under the weights of A at x will do, which
  increases with x; β is its mirror image.

For x > 0, A ≤ e^{ax} and B ≥ e^{−bx} B(0), and the mirror images of these for x < 0: so the
integrand has tails of normal laws on both sides.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from flint import arb, ctx

from accountant.composition import node_values
from accountant.composition.joint import UnsuitedError
from accountant.composition.laws import Law
from accountant.composition.subsampling import SubsampledPair
from accountant.number import ExactReal
from accountant.pair import Pair
from accountant.pairs.gaussian import GaussianPair
from accountant.pairs.gaussian_mixture import GaussianMixturePair

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from accountant.composition.node_values import Array

Components: TypeAlias = list[tuple[arb, arb]]
"""Weights and means."""

MAX_NODES = 1 << 12
"""Most nodes of the quadrature."""
_REAL = 118.0  # natural logarithm of the relative error of real moments, negated
_LOG_ERROR = 46.0  # of the characteristic function: a share of what rounding has
_STRIPS = (0.15, 0.3, 0.45, 0.6, 0.7, 0.8, 0.9, 0.96)
_HEIGHTS = (0.02, 0.06, 0.15, 0.3, 0.5, 0.7, 0.9)
_REACH = 9.0
_REACH_LOG = 40.0
_CELL = 0.05
_MOST_CELLS = 4000
_SLACK = 1 + 1e-9  # covers the rounding of some thousand floats with exponents up to 10^4
_MOST_EXPONENT = 1e4
_ZERO = ExactReal.of_rational(0)


def components(pair: Pair) -> tuple[Components, Components] | None:
    """Return the two mixtures of a pair, at flint's current precision; None for other pairs."""
    if isinstance(pair, SubsampledPair) and isinstance(pair.inner, GaussianPair):
        mu, share = (2 * pair.inner.kullback_leibler()).sqrt(), pair.sampling_prob.ball()
        plain = [(arb(1), arb(0))]
        if pair.mixed_first:
            return [(1 - share, arb(0)), (share, mu)], plain
        return plain, [(1 - share, arb(0)), (share, -mu)]
    if isinstance(pair, GaussianMixturePair):
        least, most = min(mean for _, mean in pair.p), max(mean for _, mean in pair.q)
        if most <= _ZERO <= least:
            first, second = (
                [(arb(w.numerator) / w.denominator, mean.ball()) for w, mean in side]
                for side in (pair.p, pair.q)
            )
            return first, second
    return None


@final
class MixtureLaw(Law):
    """The loss of Σ w_i N(a_i, 1) against Σ v_j N(b_j, 1), b_j ≤ 0 ≤ a_i, and its count."""

    def __init__(self, p: Components, q: Components, count: int) -> None:
        self._p, self._q, self.count = p, q, count
        self._a, self._b = (max(abs(float(mean)) for _, mean in side) for side in (p, q))
        self._floats = tuple(
            (np.array([float(w) for w, _ in side]), np.array([float(m) for _, m in side]))
            for side in (p, q)
        )
        self._moments: dict[tuple[str, int], arb] = {}

    # Bounds.

    def moment(self, z: arb) -> arb:
        """Return M(z), z ≥ −1, by a trapezoidal sum."""
        key = (z.str(60), ctx.prec)
        if key not in self._moments:
            spacing, error = self._spacing(z, 0.0, _REAL)
            terms, tails = self._terms(z, spacing, _REAL)
            total = sum((mass for mass, _ in terms), start=arb(0)) + tails
            self._moments[key] = total / (1 + arb(0, 1) * error)
        return self._moments[key]

    def _spacing(self, c: arb, omega: float, digits: float) -> tuple[arb, arb]:
        """Return the step of a sum, and its error relative to M(c) for frequencies up to ω."""
        wide, found = max(self._a, self._b), []
        for share in _STRIPS:
            y = min(share * math.pi / wide, math.sqrt(2 * digits))
            loss = max(float(c), 0.0) * -math.log(math.cos(self._b * y / 2))
            fall = digits + 1 + y * y / 2 + omega * (self._a + self._b) * y + loss
            found.append((2 * math.pi * y / fall, y))
        spacing, y = max(found)
        step, high = arb(spacing), arb(y)
        most_a, most_b = (max(abs(mean).upper() for _, mean in side) for side in (self._p, self._q))
        if not high * most_a.max(most_b) < arb.pi():
            raise UnsuitedError("The strip of a mixture of normal laws is too wide.")
        kappa = (most_b * high / 2).cos() ** (-c.max(arb(0)))
        grown = (high**2 / 2 + arb(omega) * (most_a + most_b) * high).exp()
        return step, 2 * kappa * grown / (2 * arb.pi() * high / step).expm1()

    def _terms(self, c: arb, spacing: arb, digits: float) -> tuple[list[tuple[arb, arb]], arb]:
        """Return masses and losses at the nodes, and a ball from 0 to what lies beyond them.

        With f ≤ C e^{−x²/2 + kx}/√(2π) for x ≥ 0, the nodes beyond R ≥ k have at most the integral
        from R, which is below C e^{k²/2 − (R−k)²/2}/2.
        """
        step, ends = float(spacing), self._ends(c, digits)
        low, high = -math.ceil(ends[0] / step), math.ceil(ends[1] / step)
        if high - low > MAX_NODES:
            raise UnsuitedError(
                f"A loss of mixtures of normal laws takes {high - low} nodes, more than "
                f"{MAX_NODES}. Ask with method='grid'."
            )
        root = spacing / (2 * arb.pi()).sqrt()
        found = []
        for j in range(low, high + 1):
            x = j * spacing
            log_a, log_b = _log_density(self._p, x), _log_density(self._q, x)
            found.append((root * (-x * x / 2 + log_a + c * (log_a - log_b)).exp(), log_a - log_b))
        tails = arb(0)
        for sign, end in ((1, high), (-1, -low)):
            log_size, k = self._tail_ball(c, sign)
            over = end * spacing - k
            if not over > 0:
                raise UnsuitedError("The nodes of a mixture end before its tail.")
            tails += (log_size + k * k / 2 - over * over / 2).exp() / 2
        return found, arb(0).union(tails.upper())

    def _ends(self, c: arb, digits: float) -> tuple[float, float]:
        """Return how far to the left and to the right the integrand counts."""
        least, ends = self.log_moment(float(c)) - 1, []
        for log_size, k in (self._tail(c, -1), self._tail(c, 1)):
            fall = digits + log_size + k * k / 2 - least
            ends.append(max(k, 0.0) + math.sqrt(2 * max(fall, 1.0)))
        return ends[0], ends[1]

    def _tail_ball(self, c: arb, sign: int) -> tuple[arb, arb]:
        """Return ln C and k, for x > 0 or for the mirror image of x < 0.

        On the right A ≤ e^{ax}; for c > 0, B^{−c} ≤ (e^{−bx} B(0))^{−c}, or v^{−c} if the mean 0
        has a weight v in B; for c < 0, at most 1. On the left, with |x|, A ≤ 1; for c > 0, B^{−c}
        is at most B(0)^{−c}, as B decreases, for c < 0 at most e^{−cb|x|}.
        """
        a, b = (max(abs(mean).upper() for _, mean in side) for side in (self._p, self._q))
        at_zero, up, down = _log_density(self._q, arb(0)), c.max(arb(0)), (-c).max(arb(0))
        if sign > 0:
            found = [(-up * at_zero, (1 + c) * a + up * b)]
            found += [(-up * w.log(), (1 + c) * a) for w, mean in self._q if mean.is_zero()]
            return min(found, key=lambda bound: float(bound[0] + bound[1] ** 2 / 2))
        return -up * at_zero, down * b

    def _tail(self, c: arb, sign: int) -> tuple[float, float]:
        log_size, k = self._tail_ball(c, sign)
        return float(log_size), float(k)

    def beyond(self, c: arb, omega: float) -> float:
        """Return the least bound over some lines, by cells.

        With g = ln(φ A^{1+c} B^{−c}), g'' ≤ K = −1 + (1 + c)a²/4 + max(−c, 0) b²/4 (given x, means
        lie in intervals of lengths a and b), the integral of e^g over a cell of width w around m
        is at most e^{g(m) + K⁺w²/8} 2 sinh(g'(m)w/2)/g'(m).
        """
        line = float(c)
        right, left = self._tail(c, 1), self._tail(c, -1)
        log_moment = float(self.moment(c).log())
        ends = [
            k + math.sqrt(2 * (_REACH_LOG + max(log_size + k * k / 2 - log_moment, 0.0)))
            for log_size, k in (left, right)
        ]
        count = math.ceil((ends[0] + ends[1]) / _CELL)
        if (
            count > _MOST_CELLS
            or (1 + abs(line)) * max(ends) * (self._a + self._b + 1) > _MOST_EXPONENT
        ):
            return 1.0
        edges = np.linspace(-ends[0], ends[1], count + 1)
        middle, width = (edges[1:] + edges[:-1]) / 2, (ends[0] + ends[1]) / count
        (log_a, mean_a), (log_b, mean_b) = (_at(side, middle) for side in self._floats)
        slope = np.abs(-middle + (1 + line) * mean_a - line * mean_b) * width / 2 + 1e-9
        bend = max(0.0, -1 + (1 + line) * self._a**2 / 4 + max(-line, 0.0) * self._b**2 / 4)
        logs = -middle * middle / 2 + (1 + line) * log_a - line * log_b - log_moment
        logs += bend * width**2 / 8 + np.log(np.sinh(slope) / slope)
        logs += math.log(width / math.sqrt(2 * math.pi))
        outside = [
            log_size + k * k / 2 - (end - k) ** 2 / 2 - log_moment
            for (log_size, k), end in zip((left, right), ends, strict=True)
        ]
        best = 0.0
        for share in _HEIGHTS:  # logarithms, as a high line has an e^{y²/2} beyond floats
            y = share * math.pi / 2 / max(self._a, self._b)
            turned = _angle(self._floats[0], y, edges[:-1]) + _angle(self._floats[1], -y, edges[1:])
            rise = y * y / 2 - max(line, 0.0) * math.log(math.cos(self._b * y / 2))
            whole = np.concatenate([logs - omega * turned * (1 - 1e-12), outside])
            top = float(whole.max())
            size = math.log(float(np.exp(whole - top).sum()))
            best = min(best, top + size + rise * (1 + 1e-12))
        return min(1.0, math.exp(best) * _SLACK)

    def factor(self, c: arb, step: float, rows: int) -> node_values.Factor:
        """Return the nodes of the sum as a list; 0 where φ^count is negligible, or not known."""
        moment, centre = self.moment(c), self.mean(c)
        last, rest = self._last(c, step, rows)
        spacing, error = self._spacing(c, step * last, _LOG_ERROR)
        terms, tails = self._terms(c, spacing, _LOG_ERROR)
        lost = float((error + tails / moment).upper())
        weights = [mass / moment for mass, _ in terms]
        turns = [(loss - centre) * arb(step) / (2 * arb.pi()) for _, loss in terms]
        listed = node_values.Atoms(weights, turns, self.count, rows, lost)
        return Faded(listed, last, rest) if last < rows * node_values.ROW else listed

    def _last(self, c: arb, step: float, rows: int) -> tuple[int, float]:
        """Return a number of nodes, and a bound of |φ| beyond them.

        As few as leave nothing to count, and not so many that the sum in x would be too long.
        """
        most, length = rows * node_values.ROW, sum(self._ends(c, _LOG_ERROR))
        for power in range(2 * most.bit_length()):
            nodes = math.ceil(math.sqrt(2.0) ** power)
            if nodes >= most:
                return most, 1.0
            rest = self.beyond(c, step * nodes)
            longer = float(self._spacing(c, step * nodes * 1.5, _LOG_ERROR)[0])
            if self.count * math.log(max(rest, 1e-300)) < -_LOG_ERROR:
                return nodes, rest
            if length / longer > MAX_NODES - 8:
                return nodes, rest
        return most, 1.0

    # Estimates in floats.

    def _grid(self, c: float) -> tuple[NDArray[Any], float]:
        """Return points where the mass of the tilted law is, and their distance."""
        spacing = min(0.3, 0.6 / (self._a + self._b))
        x = (1 + c) * self._a + max(c, 0.0) * self._b
        for _ in range(30):  # from the right, to the last maximum of the integrand
            (_, up), (_, down) = (_at(side, np.array([x])) for side in self._floats)
            x, last = float((1 + c) * up[0] - c * down[0]), x
            if abs(x - last) < 0.01:
                break
        low, high = -_REACH - max(-c, 0.0) * self._b, _REACH + self._a
        base = np.arange(low, high, spacing)
        first = max(x - _REACH, base[-1] + spacing)
        return np.concatenate([base, np.arange(first, max(x + _REACH, first), spacing)]), spacing

    def _tilted(self, c: float) -> tuple[NDArray[Any], NDArray[Any], float]:
        x, spacing = self._grid(c)
        (log_a, _), (log_b, _) = (_at(side, x) for side in self._floats)
        loss = log_a - log_b
        return -x * x / 2 + log_a + c * loss, loss, spacing / math.sqrt(2 * math.pi)

    def log_moment(self, c: float) -> float:
        """Return ln M in floats."""
        logs, _, scale = self._tilted(c)
        top = float(logs.max())
        return top + math.log(float(np.exp(logs - top).sum()) * scale)

    def mean(self, c: arb) -> arb:
        """Return the mean in floats."""
        logs, loss, _ = self._tilted(float(c))
        shares = np.exp(logs - logs.max())
        return arb(float((shares * loss).sum() / shares.sum()))


@final
class Faded(node_values.Factor):
    """A factor up to a node, and 0 beyond it, with a bound of what it is there."""

    def __init__(self, factor: node_values.Factor, nodes: int, rest: float) -> None:
        self.count = factor.count
        self._factor, self._nodes, self._rest = factor, nodes, rest

    def rows(self, first: int, last: int) -> tuple[Array, Array | float]:
        """Return the values, with an error for each."""
        size = (last - first) * node_values.ROW
        start = first * node_values.ROW
        if start >= self._nodes:
            return np.zeros(size, dtype=complex), self._rest
        values, error = self._factor.rows(first, last)
        far = np.arange(start, start + size) >= self._nodes
        return np.where(far, 0, values), np.where(far, self._rest, error)


def _log_density(side: Components, x: arb) -> arb:
    if len(side) == 1 and side[0][1].is_zero():
        return arb(0)
    return sum((w * (m * (x - m / 2)).exp() for w, m in side), start=arb(0)).log()


def _at(
    side: tuple[NDArray[Any], NDArray[Any]], x: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the logarithm of a mixture over the normal density, and the mean given x."""
    weights, means = side
    terms = means[:, None] * (x[None, :] - means[:, None] / 2) + np.log(weights)[:, None]
    top = terms.max(axis=0)
    shares = np.exp(terms - top)
    whole = shares.sum(axis=0)
    return top + np.log(whole), (shares * means[:, None]).sum(axis=0) / whole


def _angle(side: tuple[NDArray[Any], NDArray[Any]], y: float, x: NDArray[Any]) -> NDArray[Any]:
    """Return arcsin E[sin(m y) | x]."""
    weights, means = side
    terms = means[:, None] * (x[None, :] - means[:, None] / 2) + np.log(weights)[:, None]
    shares = np.exp(terms - terms.max(axis=0))
    sines = (shares * np.sin(means * y)[:, None]).sum(axis=0) / shares.sum(axis=0)
    found: NDArray[Any] = np.arcsin(np.minimum(sines, 1.0) * (1 - 1e-12))
    return found
