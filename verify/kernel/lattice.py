"""Upper and lower bounds of compositions, by integer masses on a lattice of losses.

A *measure* M has masses m_j at the losses l_j = jh, and m_∞ at infinite loss. It represents

    S(x) = m_∞ + Σ m_j (1 − x/e^{l_j})⁺,    x = e^ε > 0.

M is *above* a pair of laws if S(e^ε) ≥ H(ε) for all real ε, and *below* it if S(e^ε) ≤ H(ε).

Lemma (products). Let M be above every pair (P_i, Q_i) of one set, and N above every pair of another
set. Then the measure with the products of their masses, at the sums of their losses, is above the
composition of a pair of each set, even if the second is chosen after the first outcome y. Proof: δ
of the composition is at most
E_{P_i}[H_y(ε − L(y))] ≤ E_{P_i}[S_N(e^{ε − L})] = n_∞ + Σ n_k E_{P_i}[(1 − e^{ε − l_k − L})⁺]
= n_∞ + Σ n_k H_i(ε − l_k) ≤ n_∞ + Σ n_k S_M(e^{ε − l_k}). For measures below two pairs, with
independent outcomes, both inequalities are reversed, and δ equals the first expression.

Lemma (rounding). S increases with every mass and with every loss. So masses are integers over
2^bits, rounded up for a measure above and down for one below. A measure above moves masses dropped
on the left to the first loss kept, and those dropped on the right to ∞; one below discards them.

Above: H is convex in x, so it is at most the polygon through (0, 1), (x_0, H_0), …, (x_n, H_n), and
at most H_n beyond x_n. The polygon is S of the masses x_j times the changes of slope. The maximum
of several H is convex too. The nodes may be any lattice points; for smooth laws they are sparser
far from 0.

Below: on segment j, H is at least the larger of its tangents at both ends, which is at most e_j
below the chord. So the polygon through H_j − max(e_{j−1}, e_j) with the last value 0 is below H on
[x_0, x_n]. Left of x_0 its slope is −Q(L > l_0), a subgradient of H at x_0. The polygon need not
be convex: a negative mass is subtracted from masses at larger losses, which decreases S.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from flint import arb, ctx, fmpq, fmpz_poly

from .laws import ONE, ZERO, Answer, Law, table
from .lemmas import Way
from .numbers import (
    Budget,
    NotProved,
    Number,
    TooFewDigits,
    ball,
    compare,
    exp,
    log,
    maximum,
    rational,
    whole,
)
from .quantities import NONE, Hints, total

FINENESS, BITS = 32, 112
"""Defaults: a step is the total variation of one release over 32; masses have 112 bits."""
MOST_OUTCOMES = 5000
"""Limit on the outcomes of a product of tables."""
_SPARE = 64
"""Bits of precision in addition to those of the masses."""
_TRIM = 28
"""After every product, tails of mass up to 2^(28 − bits) are cut off on each side."""


def up(x: Number, bits: int) -> int:
    """Return an integer ≥ 2^bits x."""
    if isinstance(x, fmpq):
        return int((x * (1 << bits)).ceil())
    return _integer((x * (arb(2) ** bits)).upper().ceil())


def down(x: Number, bits: int) -> int:
    """Return an integer ≤ 2^bits x."""
    if isinstance(x, fmpq):
        return int((x * (1 << bits)).floor())
    return _integer((x * (arb(2) ** bits)).lower().floor())


def _integer(x: arb) -> int:
    found = x.unique_fmpz() if x.is_finite() and x.bits() < 1 << 20 else None
    if found is None:
        raise TooFewDigits("a number has no finite bound")
    return int(found)


@dataclass(frozen=True)
class Measure:
    """Integer masses over 2^bits at the losses (low + j)·step, and at infinity."""

    step: fmpq
    bits: int
    above: bool
    masses: Sequence[int]
    low: int
    infinite: int = 0

    def delta(self, epsilon: Number) -> arb:
        """Return S(e^ε)."""
        step, size = ball(self.step), len(self.masses)
        first = min(size, max(0, _floor(ball(epsilon) / step) - self.low - 1))
        ratio, start = (-step).exp(), (self.low + first) * self.step
        part, decayed, mass = (ball(epsilon) - ball(start)).exp(), arb(0), 0
        unsure = arb(0)
        for m in self.masses[first:]:
            if part < 1:
                mass += m
                decayed += m * part
            elif not part >= 1:
                unsure += m * (1 - part).nonnegative_part()
            part *= ratio
        return (self.infinite + mass - decayed + unsure) / arb(2) ** self.bits


def _floor(x: arb) -> int:
    return whole(x.lower()) if abs(x) < arb(2) ** 60 else 1 << 60 if x > 0 else -1 << 60


def precision_for(bits: int, step: Number) -> int:
    """Return the working precision for masses of `bits` bits."""
    return int(bits + _SPARE + 2 * max(0, -_floor(ball(step).log() / arb(2).log())))


def window(laws: Sequence[Law], step: fmpq, bits: int, budget: Budget) -> tuple[int, int]:
    """Return near-optimal lattice points low < 0 < high with tails below 2^−bits."""
    tiny = arb(2) ** (-bits)

    def little(place: int) -> bool:
        budget.check(size=abs(place))
        loss = place * step
        for law in laws:
            height, slope = law.at(loss)
            rest = height - law.infinite if place > 0 else 1 - height - exp(loss) * slope
            if not rest < tiny:
                return False
        return True

    ends = []
    for sign in (-1, 1):
        far = 1
        while not little(sign * far):
            far *= 2
        near = far // 2
        while far - near > 1 + far // 64:
            middle = (far + near) // 2
            near, far = (near, middle) if little(sign * middle) else (middle, far)
        ends.append(sign * far)
    return ends[0], ends[1]


def _corners(laws: Sequence[Law], low: int, high: int) -> list[int]:
    """Return the nodes of a polygon: all lattice points, or fewer far from 0 for smooth laws."""
    if any(law.atoms or law.grid is not None or law.last for law in laws):
        return [*range(low, high + 1)]
    found = {low, high, 0}
    for sign, end in ((1, high), (-1, -low)):
        place = 0
        while place < end:
            found.add(sign * place)
            place += max(1, place // 200)
    return sorted(found)


def _weights(places: Sequence[int], step: fmpq) -> tuple[list[arb], list[arb]]:
    """Return x_k and x_(k+1) divided by x_(k+1) − x_k, for each segment."""
    ratios = {gap: ball(gap * step).exp() for gap in {b - a for a, b in pairwise(places)}}
    gaps = [ratios[b - a] for a, b in pairwise(places)]
    return [1 / (r - 1) for r in gaps], [r / (r - 1) for r in gaps]


def _dense(masses: Sequence[int], places: Sequence[int]) -> list[int]:
    found = [0] * (places[-1] - places[0] + 1)
    for mass, place in zip(masses, places, strict=False):
        found[place - places[0]] = mass
    return found


def above(laws: Sequence[Law], step: fmpq, low: int, high: int, bits: int) -> Measure:
    """Return a measure above each of several pairs."""
    places = _corners(laws, low, high)
    heights = []
    for j in places:
        height = laws[0].at(j * step)[0]
        for other in laws[1:]:
            height = height.max(other.at(j * step)[0])
        heights.append(height)
    right, left = _weights(places, step)
    rises = [b - a for a, b in pairwise(heights)]
    masses = [up(rises[0] * right[0] - (heights[0] - 1), bits)]
    masses += [
        up(rises[k] * right[k] - rises[k - 1] * left[k - 1], bits) for k in range(1, len(rises))
    ]
    masses.append(up(-rises[-1] * left[-1], bits))
    dense = _dense([max(0, m) for m in masses], places)
    return Measure(step, bits, True, dense, low, up(heights[-1], bits))


def below(law: Law, step: fmpq, low: int, high: int, bits: int) -> Measure:
    """Return a measure below a pair; the losses of a table are rounded down to the lattice."""
    if law.atoms:
        return _rounded_down(law, step, bits)
    places = _corners([law], low, high)
    found = [law.at(j * step) for j in places]
    right, left = _weights(places, step)
    sizes = [ball(j * step).exp() / r for j, r in zip(places, right, strict=False)]
    infinite = ball(law.infinite)
    heights, slopes = [h - infinite for h, _ in found], [q for _, q in found]
    top = len(sizes)
    for k, j in enumerate(places):
        if k and isinstance(law.largest, fmpq) and law.largest == j * step:
            top, slopes[k] = k, ball(law.last)  # the slope just below the largest loss
    lines = [1 - ball(j * step).exp() - infinite for j in places]
    drops = _drops(heights, slopes, lines, sizes[:top])
    lowered = [(h - d).lower() for h, d in zip(heights, drops, strict=False)]
    end = next((j for j in range(1, top) if not lowered[j] > 0), top)
    floor = (
        (slopes[end] * sizes[end - 1]).max(heights[end]).lower()
    )  # a lower bound of H left of x_end
    points = [*lowered[:end], arb(0), arb(0)]
    points[end - 1] = points[end - 1].min(floor).max(arb(0))
    masses, debt = [], 0
    for k in range(end + 1):
        rise = (points[k + 1] - points[k]) * right[k] if k < end else arb(0)
        before = -slopes[0] * ball(low * step).exp()
        if k:
            before = (points[k] - points[k - 1]) * left[k - 1]
        mass = down(rise - before, bits) + debt
        masses.append(max(0, mass))
        debt = min(0, mass)
    if debt:  # no larger losses are left to subtract from: the zero measure is below every pair
        masses = [0]
    dense = _dense(masses, places[: len(masses)])
    return Measure(step, bits, False, dense, low, down(infinite, bits))


def _rounded_down(law: Law, step: fmpq, bits: int) -> Measure:
    found: dict[int, int] = {}
    for p, q in law.atoms:
        if compare(q, "==", 0) or not compare(p, ">", 0):
            continue
        loss = ball(log(p / q)) / step
        if isinstance(law.grid, fmpq) and (law.grid / step).q == 1:
            unit = int((law.grid / step).p)
            place = unit * whole(loss / unit + fmpq(1, 2))
        else:
            place = whole(loss.lower())
        found[place] = found.get(place, 0) + down(p, bits)
    low, high = (min(found), max(found)) if found else (0, 0)
    masses = [found.get(j, 0) for j in range(low, high + 1)]
    return Measure(step, bits, False, masses, low, down(law.infinite, bits))


def _drops(
    heights: Sequence[arb], slopes: Sequence[arb], lines: Sequence[arb], sizes: Sequence[arb]
) -> list[arb]:
    """Return d_j such that the polygon through H_j − d_j is below H.

    On segment j the larger of the two tangents is furthest below the chord, by e_j, at the fraction
    t_j of the segment. It suffices that (1 − t_j) d_j + t_j d_(j+1) ≥ e_j, or that both nodes are
    on the line 1 − x, which is below H.
    """
    gaps, shares = [arb(0)], [arb(0)]
    for j, size in enumerate(sizes):
        chord = (heights[j] - heights[j + 1]) / size
        left, right = slopes[j] - chord, chord - slopes[j + 1]
        share = right / (left + right) if left + right > 0 else arb(1)
        gaps.append((left * share * size).upper().max(arb(0)))
        shares.append(share)
    gaps.append(arb(0))
    most = [(h - line).upper().max(arb(0)) for h, line in zip(heights, lines, strict=False)]
    drops = [((gaps[j] + gaps[j + 1]) / 2).upper().min(most[j]) for j in range(len(sizes) + 1)]
    for j, share in enumerate(shares[1:]):
        need = (gaps[j + 1] - (1 - share) * drops[j] - share * drops[j + 1]).upper()
        if need > 0 and not (drops[j] >= most[j] and drops[j + 1] >= most[j + 1]):
            if share > 0.5:
                drops[j + 1] = (drops[j + 1] + need / share).upper()
            else:
                drops[j] = (drops[j] + need / (1 - share).max(arb(0.25))).upper()
    return drops


def product(a: Measure, b: Measure, budget: Budget) -> Measure:
    """Return the product of two measures, with its tails cut off."""
    budget.check(size=len(a.masses) + len(b.masses))
    whole = [int(c) for c in (fmpz_poly([*a.masses]) * fmpz_poly([*b.masses])).coeffs()] or [0]
    bits, low = a.bits, a.low + b.low
    half = (1 << bits) - 1 if a.above else 0
    whole = [(c + half) >> bits for c in whole]
    infinite = b.infinite + (a.infinite * sum(b.masses) + half >> bits)
    tiny = 1 << _TRIM
    first, last, left, right = 0, len(whole), 0, 0
    while first < last - 1 and left + whole[first] < tiny:
        left, first = left + whole[first], first + 1
    while last > first + 1 and right + whole[last - 1] < tiny:
        right, last = right + whole[last - 1], last - 1
    whole = whole[first:last]
    if a.above:
        whole[0] += left
        infinite += right
    return Measure(a.step, bits, a.above, whole, low + first, infinite)


def power(measure: Measure, count: int, budget: Budget) -> Measure:
    """Return the `count`-fold product of a measure, count ≥ 1."""
    result = None
    while count:
        if count & 1:
            result = measure if result is None else product(result, measure, budget)
        count >>= 1
        if count:
            measure = product(measure, measure, budget)
    assert result is not None
    return result


def compose(
    factors: Sequence[tuple[Sequence[Law], int]],
    step: fmpq,
    bits: int,
    budget: Budget,
    *,
    upper: bool,
) -> Measure:
    """Return a measure above, or below, a composition of factors (laws, count).

    The measure above covers every choice of one law for each release of a factor; the measure below
    is for the first law.
    """
    whole = None
    before = ctx.prec
    ctx.prec = precision_for(bits, step)
    try:
        for given, count in factors:
            laws = list(given)
            low, high = window(laws, step, bits - _TRIM, budget)
            budget.check(size=high - low)
            if upper:
                measure = above(laws, step, low, high, bits)
            else:
                measure = below(laws[0], step, low, high, bits)
            part = power(measure, count, budget)
            whole = part if whole is None else product(whole, part, budget)
    finally:
        ctx.prec = before
    if whole is None:
        raise NotProved("the composition is empty")
    return whole


# --- the ends of a composition ---
def step_for(way: Way, fineness: int = FINENESS) -> fmpq:
    """Return a step that divides all losses, or a fraction of the least total variation."""
    found = [law for laws, _ in way for law in laws]
    grids = [law.grid for law in found if isinstance(law.grid, fmpq) and law.grid > 0]
    if len(grids) == len(found):
        common = grids[0]
        for grid in grids[1:]:  # the greatest common divisor of two fractions
            common = fmpq((common.p * grid.q).gcd(grid.p * common.q), common.q * grid.q)
        if max(grids) / common < 64:
            return common
    smooth = [law for law in found if not law.atoms] or found
    finest = min(float(ball(law.delta(ZERO)).upper()) for law in smooth) or 1.0
    width = fmpq(max(1, round(finest / fineness * 2**40)), 2**40)
    exact = [x for law in found if isinstance(x := law.largest, fmpq) and x > 0]
    return min(exact) / max(1, int((min(exact) / width).ceil())) if exact else width


def _hint(hints: Hints, name: str) -> fmpq | None:
    """Return a positive number from the hints, or None if it is missing."""
    if name not in hints:
        return None
    try:
        number = rational(hints[name])
    except ValueError:
        raise NotProved(f"the hint {name} is not a number") from None
    if not number > 0:
        raise NotProved(f"the hint {name} is not positive")
    return number


def _composed(way: Way, budget: Budget, hints: Hints, *, upper: bool, added: bool) -> Measure:
    step = (_hint(hints, "step_add") if added else None) or _hint(hints, "step")
    bits = int((_hint(hints, "bits") or fmpq(BITS)).floor())
    if not 64 <= bits <= 2048:
        raise NotProved("a lattice has from 64 to 2048 bits")
    return compose(way, step or step_for(way), bits, budget, upper=upper)


def upper(
    way: Way, epsilon: Number, budget: Budget, hints: Hints = NONE, *, added: bool = False
) -> Number:
    """Return an upper bound of H of a composition, exact beyond the largest finite loss."""
    if compare(total(way, _largest_finite), "<=", epsilon):
        none: Number = ONE  # the probability that no loss is infinite
        for laws, count in way:
            none = none * (1 - maximum([law.infinite for law in laws])) ** count
        return 1 - none
    return _composed(way, budget, hints, upper=True, added=added).delta(epsilon)


def _largest_finite(law: Law) -> Number:
    if not law.atoms:
        return law.largest
    kept = [p / q for p, q in law.atoms if not (compare(p, "==", 0) or compare(q, "==", 0))]
    return maximum([ball(x).log() for x in kept]) if kept else ZERO


def lower(
    way: Way, epsilon: Number, budget: Budget, hints: Hints = NONE, *, added: bool = False
) -> Number:
    """Return a lower bound of H of a composition, from several choices of attained laws."""
    ends: list[Number] = []
    for chosen in _choices(way):
        if (listed := _joint(chosen)) is not None:
            ends.append(listed.delta(epsilon))
        else:
            measure = _composed(chosen, budget, hints, upper=False, added=added)
            ends.append(measure.delta(epsilon))
    return maximum(ends)


def _choices(way: Way) -> Iterator[Way]:
    """Yield ways with one law per release: the i-th of each factor, or two laws, half each."""
    most = max(len(laws_) for laws_, _ in way)
    for i in range(most):
        yield tuple(((f[min(i, len(f) - 1)],), n) for f, n in way)
    if most > 1 and sum(n for _, n in way) > 1:
        halves = [((f[0], n - n // 2), (f[-1], n // 2)) for f, n in way]
        yield tuple(((law,), n) for parts in halves for law, n in parts if n)


def _joint(way: Way) -> Law | None:
    """Return the product of tables as one table, or None if it is too long or no table."""
    found: list[Answer] = [(ONE, ONE)]
    for (law, *_), count in way:
        if count > MOST_OUTCOMES:
            return None
        for _ in range(count):
            found = [(p * a, q * b) for p, q in found for a, b in law.atoms]
            if not 0 < len(found) <= MOST_OUTCOMES:
                return None
    return table(found)
