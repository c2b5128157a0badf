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

*Cut* (`accountant.composition.decisive`): φχ takes the place of φ, with χ an end on the right
(`accountant.composition.smooth_cut`); the bounds above hold with a factor e^{y²/2τ²}.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from flint import arb

from accountant.composition import node_values
from accountant.composition.joint import UnsuitedError
from accountant.composition.laws import Law, Small, Taken
from accountant.composition.smooth_cut import SmoothCut
from accountant.composition.subsampling import SubsampledPair
from accountant.number import ExactReal
from accountant.pair import Pair
from accountant.pairs.gaussian import GaussianPair
from accountant.pairs.gaussian_mixture import GaussianMixturePair
from accountant.precision import ctx

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
_SLACK = 1 + 1e-9  # covers the rounding of some thousand floats with exponents up to 10^5
_MOST_EXPONENT = 1e5
_WIDTHS = (2.0, 5.0, 8.0)
_STEEP = math.log(2) / 2
_MANY, _MOST_POINTS = 4, 1 << 12
_BEYOND = tuple(4.0 * 2.0**k for k in range(8))
_FARTHEST, _GRAIN = 64.0, 2.0**-8
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
    """The loss of Σ w_i N(a_i, 1) against Σ v_j N(b_j, 1), b_j ≤ 0 ≤ a_i, and its count.

    With ends, without what they take away: φ Π χ takes the place of φ.
    """

    def __init__(
        self, p: Components, q: Components, count: int, ends: tuple[SmoothCut, ...] = ()
    ) -> None:
        self._p, self._q, self.count, self._cuts = p, q, count, ends
        self._end = min(ends, key=lambda end: end.at, default=None)
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
        most, found = math.pi / max(self._a, self._b), []
        heights = [min(share * most, math.sqrt(2 * digits)) for share in _STRIPS]
        for y in heights + self._low(_STRIPS[-1] * most):
            loss = max(float(c), 0.0) * -math.log(math.cos(self._b * y / 2))
            turned = float(self._turned(c, omega, arb(y)))
            fall = digits + 1 + y * y / 2 + turned + loss + self._grown(y)
            found.append((2 * math.pi * y / fall, y))
        spacing, y = max(found)
        step, high = arb(spacing), arb(y)
        most_a, most_b = (max(abs(mean).upper() for _, mean in side) for side in (self._p, self._q))
        if not high * most_a.max(most_b) < arb.pi():
            raise UnsuitedError("The strip of a mixture of normal laws is too wide.")
        kappa = (most_b * high / 2).cos() ** (-c.max(arb(0)))
        exponent = high**2 / 2 + self._turned(c, omega, high)
        exponent += sum((end.growth(high) for end in self._cuts), start=arb(0))
        return step, 2 * kappa * exponent.exp() / (2 * arb.pi() * high / step).expm1()

    def _turned(self, c: arb, omega: float, y: arb) -> arb:
        """Return ln of how much |w^{iω}| adds to an integral on the line Im x = y, from above.

        Angles are at most (a + b)y. Where Q is N(0, 1) and ay < π/2, tan arg A = Im A/Re A is at
        most y E[a_i | x]/cos(ay), which increases with x: with an end, so little of the integral is
        beyond some x that the bound there is that of all x but for a share e^{ωay} of that.
        """
        most_a, most_b = (max(abs(mean).upper() for _, mean in side) for side in (self._p, self._q))
        found = arb(omega) * (most_a + most_b) * y
        plain = len(self._q) == 1 and self._q[0][1].is_zero()
        if not (omega and plain and self._end is not None and most_a * y < arb.pi() / 2):
            return found
        log_peak, middle, steep, start = self._tail_ball(c, 1)
        size, steepest = self.moment(c), 1 / (most_a * y).cos()
        for widths in _BEYOND:
            x = arb(self._end.at + widths * self._end.width)
            if x > middle and x >= start:
                share = (log_peak - steep * (x - middle) ** 2 / 2).exp() / 2 / size
                slow = arb(omega) * y * _mean_at(self._p, x) * steepest
                found = found.min((slow.exp() + found.exp() * share).log().upper())
        return found

    def _low(self, most: float) -> list[float]:
        """Return heights below a largest one at which an end is not much larger than it is."""
        if self._end is None:
            return []
        return [share * self._end.width for share in _WIDTHS if share * self._end.width < most]

    def _grown(self, y: float) -> float:
        return sum((y / end.width) ** 2 / 2 for end in self._cuts)

    def _terms(self, c: arb, spacing: arb, digits: float) -> tuple[list[tuple[arb, arb]], arb]:
        """Return masses and losses at the nodes, and a ball from 0 to what lies beyond them.

        With f ≤ e^{h − Λ(x − m)²/2}/√(2π), Λ ≥ 1, the nodes beyond R ≥ m have at most the integral
        from R, which is below e^{h − Λ(R − m)²/2}/2.
        """
        step, ends = float(spacing), self._ends(c, digits)
        low, high = -math.ceil(ends[0] / step), math.ceil(ends[1] / step)
        if high - low > self._most_nodes():
            raise UnsuitedError(
                f"A loss of mixtures of normal laws takes {high - low} nodes, more than "
                f"{self._most_nodes()}. Ask with method='grid'."
            )
        root = spacing / (2 * arb.pi()).sqrt()
        found = []
        for j in range(low, high + 1):
            x = j * spacing
            log_a, log_b = _log_density(self._p, x), _log_density(self._q, x)
            mass = root * (-x * x / 2 + log_a + c * (log_a - log_b)).exp()
            for end in self._cuts:
                mass *= end.kept(x)
            found.append((mass, log_a - log_b))
        tails = arb(0)
        for sign, last in ((1, high), (-1, -low)):
            log_peak, middle, steep, start = self._tail_ball(c, sign)
            over = last * spacing - middle
            if not (over > 0 and last * spacing >= start):
                raise UnsuitedError("The nodes of a mixture end before its tail.")
            tails += (log_peak - steep * over * over / 2).exp() / 2
        return found, arb(0).union(tails.upper())

    def _most_nodes(self) -> int:
        """Return how many nodes serve: with an end the frequencies are few."""
        return MAX_NODES if self._end is None else _MANY * MAX_NODES

    def _ends(self, c: arb, digits: float) -> tuple[float, float]:
        """Return how far to the left and to the right the integrand counts."""
        least, ends = self.log_moment(float(c)) - 1, []
        for log_peak, middle, steep, start in (self._tail(c, -1), self._tail(c, 1)):
            fall = digits + log_peak - least
            ends.append(max(middle, start) + math.sqrt(2 * max(fall, 1.0) / steep))
        return ends[0], ends[1]

    def _tail_ball(self, c: arb, sign: int) -> tuple[arb, arb, arb, float]:
        """Return h, m, Λ and from where the bound holds, for x or for its mirror image.

        Without an end, and on the left, f ≤ C e^{−x²/2 + kx}/√(2π): h = ln C + k²/2, m = k, Λ = 1.

        On the right A ≤ e^{ax}; for c > 0, B^{−c} ≤ (e^{−bx} B(0))^{−c}, or v^{−c} if the mean 0
        has a weight v in B; for c < 0, at most 1. On the left, with |x|, A ≤ 1; for c > 0, B^{−c}
        is at most B(0)^{−c}, as B decreases, for c < 0 at most e^{−cb|x|}.
        """
        a, b = (max(abs(mean).upper() for _, mean in side) for side in (self._p, self._q))
        at_zero, up, down = _log_density(self._q, arb(0)), c.max(arb(0)), (-c).max(arb(0))
        if sign > 0:
            found = [(-up * at_zero, (1 + c) * a + up * b)]
            found += [(-up * w.log(), (1 + c) * a) for w, mean in self._q if mean.is_zero()]
            if self._end is None:
                tails = [(log_size + k * k / 2, k, arb(1), 0.0) for log_size, k in found]
            else:
                start, tails = max(self._end.at, 0.0), []
                for log_size, k in found:
                    peak, middle, steep = self._end.tail(k)
                    tails.append((log_size + peak, middle, steep, start))
            return min(tails, key=lambda tail: float(tail[0]))
        k = down * b
        return -up * at_zero + k * k / 2, k, arb(1), 0.0

    def _tail(self, c: arb, sign: int) -> tuple[float, float, float, float]:
        log_peak, middle, steep, start = self._tail_ball(c, sign)
        return float(log_peak), float(middle), float(steep), start

    def beyond(self, c: arb, omega: float) -> float:
        """Return the least bound over some lines, by cells."""
        return self._beyond(c, omega, None)

    def _beyond(self, c: arb, omega: float, start: SmoothCut | None) -> float:
        """Return the bound, with a factor 1 − χ for a start.

        With g = ln(φ A^{1+c} B^{−c}), g'' ≤ K = −1 + (1 + c)a²/4 + max(−c, 0) b²/4 (given x, means
        lie in intervals of lengths a and b), the integral of e^g over a cell of width w around m
        is at most e^{g(m) + K⁺w²/8} 2 sinh(g'(m)w/2)/g'(m).
        """
        line = float(c)
        tails = self._tail(c, -1), self._tail(c, 1)
        log_moment = float(self.moment(c).log())
        ends = [
            max(middle, start)
            + math.sqrt(2 * (_REACH_LOG + max(log_peak - log_moment, 0.0)) / steep)
            for log_peak, middle, steep, start in tails
        ]
        cell = _CELL if self._end is None else min(_CELL, self._end.width)
        count = math.ceil((ends[0] + ends[1]) / cell)
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
            log_peak - steep * (end - middle) ** 2 / 2 - log_moment
            for (log_peak, middle, steep, _), end in zip(tails, ends, strict=True)
        ]
        best, most = 0.0, math.pi / 2 / max(self._a, self._b)
        for share in _HEIGHTS:
            for low, high, kept in self._heights(share * most, edges, start):
                turned = _angle(self._floats[0], low, edges[:-1])
                turned += _angle(self._floats[1], -low, edges[1:])
                rise = high * high / 2 - max(line, 0.0) * np.log(np.cos(self._b * high / 2))
                beyond = np.array(outside)
                beyond += [rise[0] + kept[0], rise[-1] + self._grown(float(low[-1]))]
                if start is not None:
                    beyond[1] += start.log_most(edges[-1:], high[-1:], above=True)[0]
                inside = logs + rise + kept - omega * turned * (1 - 1e-12)
                whole = np.concatenate([inside, beyond])
                top = float(whole.max())  # logarithms: a high line has an e^{y²/2} beyond floats
                best = min(best, top + math.log(float(np.exp(whole - top).sum())))
        return min(1.0, math.exp(best * (1 - 1e-12)) * _SLACK)

    def _heights(
        self, most: float, edges: NDArray[Any], start: SmoothCut | None
    ) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
        """Yield the least and the largest y of every cell, and ln|χ dz/dx| from above, for lines.

        Towards an end they go down by one in one, to where χ is not much larger than on the axis.
        """
        if self._end is None:
            yield (same := np.full(len(edges) - 1, most)), same, np.zeros(len(edges) - 1)
            return
        for share in _WIDTHS:
            least, y = min(share * self._end.width, most), self._end.at - edges
            if start is not None:
                y = np.minimum(y, edges - start.at)
            y = np.clip(y, least, most)
            low, high = np.minimum(y[1:], y[:-1]), np.maximum(y[1:], y[:-1])
            kept = np.where(low < high, _STEEP, 0.0)
            for end in self._cuts:
                kept += end.log_most(edges[:-1], high)
            if start is not None:
                kept += start.log_most(edges[1:], high, above=True)
            yield low, high, kept

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
            if length / longer > self._most_nodes() - 8:
                return nodes, rest
        return most, 1.0

    # What decides alone.

    def cut(self, threshold: float, width: float, room: float) -> MixtureLaw | None:
        """Return the law with an end, whose distance from the threshold `room` and τ decide."""
        t = self._place(threshold)
        if t is None or not self._loss_at(t) >= threshold:
            return None
        least = min(float(mean) for _, mean in self._q)
        gap = width * math.sqrt(max(2 * room - (t - least) ** 2, 1.0))
        gap = max(gap, width**2 * (t - least)) + _GRAIN
        end = SmoothCut(t + math.ceil(gap / _GRAIN) * _GRAIN, width)
        found = MixtureLaw(self._p, self._q, self.count, (end,))
        found.taken = Taken(end.taken(self._p), end.taken(self._q), end.taken_below(t, self._q))
        return found

    def small(self, threshold: float, room: float) -> Small | None:
        """Return the law with a further end below a threshold; None where that is no use."""
        if self._end is None or (t := self._place(threshold)) is None:
            return None
        t -= _GRAIN
        if not self._loss_at(t) <= threshold:
            return None
        gap = self._end.width * math.sqrt(max(2 * room - max(t, 0.0) ** 2, 1.0))
        end = SmoothCut(t - math.ceil(gap / _GRAIN) * _GRAIN, self._end.width)
        law = MixtureLaw(self._p, self._q, self.count, (*self._cuts, end))
        above = end.left_above(t, self._p)
        return Small(law, above, lambda c, omega: self._beyond(c, omega, end))

    def _place(self, threshold: float) -> float | None:
        """Return an x, of few bits, a little above which the loss exceeds a threshold, nearly."""
        low, high = -_FARTHEST, _FARTHEST
        if not self._near_loss(low) < threshold < self._near_loss(high):
            return None
        while high - low > _GRAIN:
            middle = (low + high) / 2
            low, high = (low, middle) if self._near_loss(middle) > threshold else (middle, high)
        return math.ceil(high / _GRAIN) * _GRAIN

    def _near_loss(self, x: float) -> float:
        (log_a, _), (log_b, _) = (_at(side, np.array([x])) for side in self._floats)
        return float(log_a[0] - log_b[0])

    def _loss_at(self, x: float) -> arb:
        return _log_density(self._p, arb(x)) - _log_density(self._q, arb(x))

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
        if self._end is not None:
            at, width = self._end.at, self._end.width
            last = at + _REACH * width + max(c, 0.0) * (self._a + self._b) * width**2
            spacing = max(min(spacing, width), (last - low) / _MOST_POINTS)
            return np.arange(low, last, spacing), spacing
        base = np.arange(low, high, spacing)
        first = max(x - _REACH, base[-1] + spacing)
        return np.concatenate([base, np.arange(first, max(x + _REACH, first), spacing)]), spacing

    def _tilted(self, c: float) -> tuple[NDArray[Any], NDArray[Any], float]:
        x, spacing = self._grid(c)
        (log_a, _), (log_b, _) = (_at(side, x) for side in self._floats)
        loss = log_a - log_b
        logs = -x * x / 2 + log_a + c * loss
        for end in self._cuts:
            logs += end.log_kept(x)
        return logs, loss, spacing / math.sqrt(2 * math.pi)

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


def _mean_at(side: Components, x: arb) -> arb:
    """Return the mean of the component given x."""
    masses = [(w * (m * (x - m / 2)).exp(), m) for w, m in side]
    whole = sum((mass for mass, _ in masses), start=arb(0))
    return sum((mass * m for mass, m in masses), start=arb(0)) / whole


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


def _angle(
    side: tuple[NDArray[Any], NDArray[Any]], y: NDArray[Any], x: NDArray[Any]
) -> NDArray[Any]:
    """Return arcsin E[sin(m y) | x]."""
    weights, means = side
    terms = means[:, None] * (x[None, :] - means[:, None] / 2) + np.log(weights)[:, None]
    shares = np.exp(terms - terms.max(axis=0))
    sines = (shares * np.sin(means[:, None] * y[None, :])).sum(axis=0) / shares.sum(axis=0)
    found: NDArray[Any] = np.arcsin(np.minimum(sines, 1.0) * (1 - 1e-12))
    return found
