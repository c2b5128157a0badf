"""Which of at most m answers is the first above a threshold with Laplace noise: the worst streams.

The threshold has noise of scale κ and each answer of scale 1, in that unit; an answer moves by at
most t. What is said is the place of the first answer above, 1 … m, or m + 1 if there is none. Let S
be a set of places, u the answers under P and v those under Q, and F the distribution function of
the noise; F_i = F(z − u_i) is the chance that answer i is below a threshold z.

*Neighbours move as far as they may.* With K_{m+1} = [m + 1 ∈ S] and
K_i = [i ∈ S] + F_i (K_{i+1} − [i ∈ S]), P(S) is the mean of K_1 over the threshold. Its derivative
in F_i is the mean of F_1 ⋯ F_{i−1}(K_{i+1} − [i ∈ S]), where 0 ≤ K ≤ 1: of one sign. So P(S) grows
with u_i where i ∈ S and falls with it elsewhere, whatever the others are, and at the least Q(S) the
answers with i ∈ S fall by t and the others rise by t; where all move in one direction, those that
may do so move, and the others stay. Left is u: Φ(u) = P_u(S) − e^ε P_{u+d}(S).

*A bound of Φ on a box* of half-widths h around c. G_i = |∂P(S)/∂u_i| is a mean of products of
F or 1 − F of other answers, of sums of them, and of the density of one. Each of them changes by
a factor of at most e^{|x|} where its answer moves by x; so does G_i, and with ρ = Σ h_i and
E(x) = (e^x − 1)/x − 1 integrals along a line give, all at c and G' under Q,

    Φ ≤ Φ(c) + Σ h_i |G_i − e^ε G'_i| + Σ h_i (G_i + e^ε G'_i) E(ρ).

Where t is small, G_i − e^ε G'_i = (G_i − G'_i) − (e^ε − 1) G'_i, and G_i − G'_i is an integral over
the move, of length t, of Σ_j ± ∂_j G_i. For j ≠ i that is of one sign and at most G_i, and for
j = i a difference of two parts, of the thresholds below and above u_i, which sum to G_i. The end of
a part moves with u_i, which adds at most C − 1 times the part, C = m + 1 + 1/κ. On the way to Q all
are at most e^{mt} G_i; so the last sum is also at most Σ h_i (mt e^{mt} G_i E(Cρ) + (e^ε − 1) G'_i
E(ρ)). And P − Q is such a mean itself: Φ ≤ (P − Q) e^ρ − (e^ε − 1) Q e^{−ρ}.

Along a side that is wide, P is taken at its best end and Q at its worst one, as P(S) is monotone;
then the other bounds hold for the rest with h_i = 0 there. (The second one needs P and Q of one
point, and is left out.) Boxes are cut until no bound exceeds what is found by more than a small
share; an answer more than 30 max(κ, 1) + t away is below, or above, but for a chance of
e^{−30} (2 + 30)/4, and without it the stream is a shorter one. In a run of places that are all in S
or all outside the order of the answers does not matter: one of the boxes is enough.

*Rounding.* Between l and h, two of 0, u_1, …, u_m, each F is e^{z − h}/2 times a number ≤ 1, or
1 − e^{l − z}/2 times one. So integrals are sums of terms whose sizes add up to at most 16 for m ≤ 3
(that of K_i is 1 + 3/2 (1 + that of K_{i+1})), each with five factors that are off by at most
50 · 2^{−52}: as exponents beyond −40 do not count, and NumPy's functions are within four units. All
of it is less than 2^{−39}, which is added to every chance and derivative; so is that ε, t and κ are
floats, as e^ε Q ≤ P where it counts. A search ends at twice what this adds: it sees no more.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, final

from dpassay.accountant.core.arrays import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
else:
    Floats = Any

MOST_STEPS, LONGEST = 3, 4
"""Answers of which all streams are bounded; of which one is looked for."""
_ROUNDING = 2.0**-39
"""Of a chance and of its derivatives, as at the head."""
_SHARE = 2.0**-20
"""Of H, that the bound exceeds it by."""
_FAR, _BEYOND = 30.0, 8 * math.exp(-30)
"""From where on an answer is sure, in units of the larger noise, but for this chance."""
_WIDE = 0.5
"""Half-width of a side from which on both ends count, in units of the noise of an answer."""
_MOST_BOXES = 200_000
"""Of one bound: about two seconds."""
_BEAM, _TURNS, _ROUGH, _FINE = 6, 80, 0.05, 1e-6
"""Streams that are kept and made longer; steps of a climb, and how short they become."""
_GRID = 1 << 24
"""Places are multiples of a unit by this, which changes H by its square."""
_STARTS = (-3.0, -1.0, 0.0, 1.0, 3.0)
"""Of the first answer, in units of the larger noise."""


@final
@dataclass(frozen=True)
class Streams:
    """Rows of (S, moves, u): which places are in S, how its answers and the others move, and u."""

    inside: Floats
    moves: Floats
    at: Floats

    def taken(self, which: Any) -> Streams:
        """Return some rows."""
        return Streams(self.inside[which], self.moves[which], self.at[which])

    @property
    def shift(self) -> Floats:
        """How the answers move from P to Q, in units of t."""
        one, other = self.moves[:, :1], self.moves[:, 1:]
        return np.where(self.inside[:, :-1] > 0, one, other)


@final
@dataclass(frozen=True)
class FirstAbove:
    """The scale κ of the threshold and the move t, in units of the noise of an answer."""

    ratio: float
    move: float
    monotone: bool

    def _chances(self, rows: Streams, at: Floats) -> tuple[Floats, Floats]:
        """Return P(S) and |∂P(S)/∂u_i| of every row, with its answers at these places."""
        n, m = at.shape
        ends = np.sort(np.concatenate([at, np.zeros((n, 1))], 1), 1)
        low = np.concatenate([np.full((n, 1), -np.inf), ends], 1)
        high = np.concatenate([ends, np.full((n, 1), np.inf)], 1)
        left, width = high <= 0, high - low
        start = np.where(left, high, low)
        density = np.exp(-np.abs(start) / self.ratio) / (2 * self.ratio)
        sides = []
        for i in range(m):
            under = high <= at[:, i : i + 1]
            near = np.where(under, high - at[:, i : i + 1], at[:, i : i + 1] - low)
            tail = np.exp(near) / 2
            sides.append((~under, np.where(under, tail, 0.0), np.where(under, 0.0, tail)))

        @cache
        def measure(p: int, q: int) -> Floats:  # ∫ density e^{p(z − high) + q(low − z)}
            up, down = p + left / self.ratio, q + ~left / self.ratio
            with np.errstate(invalid="ignore", divide="ignore"):
                slope, rest = np.abs(up - down) * width, np.minimum(up, down) * width
                mean = np.where(slope > 0, -np.expm1(-slope) / slope, 1.0)
                found = np.exp(-rest) * width * mean
            found[:, 0], found[:, -1] = 1 / up[:, 0], 1 / down[:, -1]
            weighed: Floats = density * found
            return weighed

        def total(terms: dict[tuple[int, int], Floats]) -> Floats:
            kept = (np.where(x == 0, 0.0, x * measure(*key)) for key, x in terms.items())
            added: Floats = sum(kept, np.zeros_like(density)).sum(1)
            return added

        def times(terms: dict[tuple[int, int], Floats], i: int, sign: int) -> Any:
            one, rising, falling = sides[i]  # F, or its derivative with the sign 0
            found: dict[tuple[int, int], Floats] = {}
            for (p, q), x in terms.items():
                parts = [((p + 1, q), rising), ((p, q + 1), -falling if sign else falling)]
                for key, factor in [((p, q), one), *parts] if sign else parts:
                    found[key] = found.get(key, 0) + x * factor
            return found

        rest, chain = [], {(0, 0): rows.inside[:, m:] + np.zeros_like(density)}
        for i in reversed(range(m)):
            here = rows.inside[:, i : i + 1]
            left_over = {**chain, (0, 0): chain[0, 0] - here}
            rest.append(left_over)
            chain = times(left_over, i, 1)
            chain[0, 0] = chain[0, 0] + here
        slopes = np.empty((n, m))
        for i, terms in enumerate(reversed(rest)):
            slope = times(terms, i, 0)
            for j in range(i):
                slope = times(slope, j, 1)
            slopes[:, i] = np.abs(total(slope))
        return total(chain), slopes

    def value(self, rows: Streams, factor: float) -> tuple[Floats, Floats, Floats]:
        """Return P(S), Q(S) and P(S) − e^ε Q(S) of every row."""
        p = self._chances(rows, rows.at)[0]
        q = self._chances(rows, rows.at + self.move * rows.shift)[0]
        return p, q, p - factor * q

    @property
    def _unit(self) -> float:
        return max(1.0, self.ratio)

    @property
    def _moves(self) -> list[tuple[float, float]]:
        return [(0.0, 1.0), (-1.0, 0.0)] if self.monotone else [(-1.0, 1.0)]

    @staticmethod
    def _words(m: int) -> list[tuple[float, ...]]:
        # where m and m + 1 are both in S, or outside, answer m does not matter
        return [(*x, 1 - x[-1]) for x in itertools.product((0.0, 1.0), repeat=m)]

    def best(self, steps: int, factor: float) -> Streams:
        """Return a stream, as one row, with the largest P(S) − e^ε Q(S) that is found."""
        first = min(steps, 2)
        places = itertools.product(_STARTS, repeat=first)
        each = itertools.product(self._words(first), self._moves, places)
        columns = (np.array(column) for column in zip(*each, strict=True))
        inside, moves, at = columns
        rows = self._climbed(Streams(inside, moves, at * self._unit), factor)
        for m in range(first, min(steps, LONGEST)):
            longer = []
            for place, letter in itertools.product(range(m + 1), (0.0, 1.0)):
                near = min(place, m - 1)
                inside = np.insert(rows.inside, place, letter, 1)
                off = 0.0 if inside[0, place] == inside[0, place + 1] else self._unit / 2
                at = np.insert(rows.at, place, rows.at[:, near] + off, 1)
                longer.append(Streams(inside, rows.moves, at))
            joined = [
                np.concatenate([getattr(x, name) for x in longer])
                for name in ("inside", "moves", "at")
            ]
            kinds = np.concatenate(
                joined[:2], 1
            )  # of each S and moves, that of the best shorter one
            first_ones = np.sort(np.unique(kinds, axis=0, return_index=True)[1])
            rows = self._climbed(Streams(*joined).taken(first_ones), factor)
        return self._climbed(rows.taken(slice(0, 2)), factor, _FINE).taken(slice(0, 1))

    def _climbed(self, rows: Streams, factor: float, fine: float = _ROUGH) -> Streams:
        """Return the rows with the largest values, after steps along the axes and the gradient."""
        n, m = rows.at.shape
        size, at = np.full(n, self._unit), rows.at.copy()
        every = np.repeat(np.arange(n), 2 * m + 2)
        for _ in range(_TURNS):
            here = Streams(rows.inside, rows.moves, at)
            grown = self._chances(here, at)[1]
            grown = grown - factor * self._chances(here, at + self.move * here.shift)[1]
            grown *= np.where(rows.inside[:, :-1] > 0, 1.0, -1.0)
            grown /= np.maximum(np.abs(grown).max(1, keepdims=True), _FINE**2)
            axes = np.broadcast_to(np.concatenate([np.eye(m), -np.eye(m)]), (n, 2 * m, m))
            steps = np.concatenate([np.zeros((n, 1, m)), grown[:, None], axes], 1)
            tried = (at[:, None] + size[:, None, None] * steps).reshape(-1, m)
            far = _FAR * self._unit
            found = Streams(rows.inside[every], rows.moves[every], np.clip(tried, -far, far))
            values = self.value(found, factor)[2].reshape(n, -1)
            chosen = values.argmax(1)
            at = found.at.reshape(n, -1, m)[np.arange(n), chosen]
            size = np.where(chosen == 0, size / 4, size * 1.5)
            if (size < fine * self._unit).all():
                break
        order = np.argsort(-values.max(1))  # the best one of each S and moves
        kinds = np.concatenate([rows.inside, rows.moves], 1)[order]
        first = np.sort(np.unique(kinds, axis=0, return_index=True)[1])
        return Streams(rows.inside, rows.moves, at).taken(order[first[:_BEAM]])

    def most(self, steps: int, factor: float, known: float) -> float:
        """Return a bound of H, larger by a small share than `known` where that is H."""
        level = 0.0
        for m in range(1, steps + 1):
            level = self._most_of(m, factor, max(known, level)) + (1 + factor) * _BEYOND
        return level

    def _most_of(self, m: int, factor: float, known: float) -> float:
        sets = list(itertools.product(self._words(m), self._moves))
        inside, moves = (np.array(column) for column in zip(*sets, strict=True))
        rows = Streams(inside, moves, np.zeros((len(sets), m)))
        half = np.full(rows.at.shape, _FAR * self._unit + self.move)
        enough, level, used = known * (1 + _SHARE) + 2 * (1 + factor) * _ROUNDING, known, 0
        while len(half):
            same = rows.inside[:, : m - 1] == rows.inside[:, 1:m]
            low, high = rows.at - half, rows.at + half
            kept = ~(same & (low[:, :-1] > high[:, 1:])).any(1)
            rows, half = rows.taken(kept), half[kept]
            bound, weight = self._bounds(rows, half, factor)
            used += len(half)
            open_ = bound > enough
            level = max(level, float(bound[~open_].max(initial=0.0)))
            if used > _MOST_BOXES:
                return max(level, float(bound.max(initial=0.0)))
            rows, half, weight = rows.taken(open_), half[open_], weight[open_]
            which = np.arange(len(half)), weight.argmax(1) if len(half) else np.zeros(0, int)
            half = half.copy()
            half[which] /= 2
            step = np.zeros_like(half)
            step[which] = half[which]
            rows = Streams(
                np.concatenate([rows.inside] * 2),
                np.concatenate([rows.moves] * 2),
                np.concatenate([rows.at - step, rows.at + step]),
            )
            half = np.concatenate([half, half])
        return level

    def _bounds(self, rows: Streams, half: Floats, factor: float) -> tuple[Floats, Floats]:
        """Return bounds of P − e^ε Q on boxes, and how much every side adds to them."""
        m, t = half.shape[1], self.move
        wide = half > _WIDE
        side = np.where(rows.inside[:, :-1] > 0, half, -half)
        aside, h = np.where(wide, side, 0.0), np.where(wide, 0.0, half)
        p, g = self._chances(rows, rows.at + aside)
        q, also = self._chances(rows, rows.at - aside + t * rows.shift)
        apart, spare = np.abs(g - factor * also), (1 + factor) * _ROUNDING
        p, q, g, also = p + _ROUNDING, q - _ROUNDING, g + _ROUNDING, also + _ROUNDING
        rho, both = h.sum(1), g + factor * also
        usual = (h * both).sum(1) * _excess(rho)
        small = (h * g).sum(1) * m * t * math.exp(m * t) * _excess((m + 1 + 1 / self.ratio) * rho)
        small += (factor - 1) * (h * also).sum(1) * _excess(rho)
        rest = np.where(wide.any(1), usual, np.minimum(usual, small))
        bound = p - factor * q + (h * (apart + spare)).sum(1) + rest
        near = np.maximum(p - q, 0) * np.exp(rho) - (factor - 1) * np.maximum(q, 0) * np.exp(-rho)
        inner = np.maximum(np.abs(rows.at) - half, 0)
        spread = h * (apart + both * min(1.0, m * t) * rho[:, None])
        weight = np.where(wide, np.exp(-inner / self._unit) / 2, spread)
        return np.minimum(bound, near), weight


_Places: TypeAlias = tuple[Fraction, ...]


@lru_cache(maxsize=256)
def best_stream(
    search: FirstAbove, steps: int, epsilon: float
) -> tuple[str, tuple[int, int], _Places]:
    """Return S as text, x for places in it; how its answers and the others move; and all places."""
    row = search.best(steps, math.exp(epsilon))
    inside = "".join("x" if x else "o" for x in row.inside[0].tolist())
    rise, other = map(int, row.moves[0].tolist())
    return (
        inside,
        (rise, other),
        tuple(Fraction(round(x * _GRID), _GRID) for x in row.at[0].tolist()),
    )


@lru_cache(maxsize=256)
def most_of_streams(search: FirstAbove, steps: int, epsilon: float, known: float) -> float:
    """Return a bound of H(ε) for ε ≥ 0, given the largest that is found."""
    return search.most(steps, math.exp(epsilon), known)


def _excess(x: Floats) -> Floats:
    """Return (e^x − 1)/x − 1, 0 at 0."""
    return np.where(x > 0, np.expm1(x) / np.where(x > 0, x, 1.0) - 1, 0.0)
