"""Choose, on training runs, the one event that the test is made on.

Each feature is cut into cells: at quantiles where its values have an order; else a cell is a value,
and cells are sorted by their observed likelihood ratio. The candidates are both ends of that order,
either alone (`Design.SIDES`) or against each other (`Design.GUESSES`), for both orders of the
datasets and at every point of the claim. What is compared is what the fresh runs promise
(`promised_by_sides`, `promised_by_guesses`): the lower bound of ε at the claimed δ where the claim
is one point, else by how many standard deviations the event exceeds it. These are normal
approximations of the exact tests; no statement rests on them, as the chosen event is tested once,
on runs that were not examined.

*Luck.* Raw counts promise too much, since the luckiest of many events is taken. They are read as if
there were fewer fresh runs than there will be, by some standard deviations. A feature of few values
has few events, which share most of their runs: there nothing is taken off.

For δ = 0 one side must promise clearly more than the guesses of both orders (`handicapped`).

*Fits.* For δ > 0, where rare events are best, the counts are also smoothed: by a straight line of
the log-likelihood ratio, as Gaussian noise has it, unless the counts contradict it.

*Rare events.* A leak that shows in one output of 1000 puts seven training runs into an event: too
few to promise more than the best common event, though the fresh runs would refute by it. So the
most promising event has 95 % of the significance, and up to four rare ones share the rest: for
either dataset the value and the end of some cells, of at most 2 % of the runs, that exceed the
claim most in training. All are fixed before the first fresh run. Under the claim the event with
share s_i has P(p_i ≤ s_i α) ≤ s_i α, and Σ s_i ≤ 1: some p_i/s_i is at most α with probability at
most α (Bonferroni). Each bound that is printed is taken at level s_i α, so that all hold together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpassay.verifier.audit import features
from dpassay.verifier.audit.curve import EPSILONS
from dpassay.verifier.audit.exact_test import (
    Counts,
    Design,
    delta_lower_bound,
    epsilon_lower_bound,
    nested_p_value,
)
from dpassay.verifier.audit.features import (
    Chosen,
    Feature,
    Histogram,
    Matrix,
    Partition,
    Proposer,
    Ranked,
    Rule,
    Values,
)
from dpassay.verifier.audit.guarantees import Guarantee, Point

Array: TypeAlias = NDArray[Any]

MAIN = 0.95
"""The most promising event has this share of the significance: it costs 1 % of ε at 10⁵ runs."""
_RARE = 0.02
"""A rare event holds at most this share of the training runs."""
_FEWEST = 2
"""Training runs that a rare event must hold."""


_FINE = 500
"""Quantiles at which a feature is cut: an event misses its best threshold by 0.2 % of the runs."""
_FEW = 8
"""A feature with at most this many values has few events, and all of them are examined."""
SPARE_DEVIATIONS = 3.0
"""Standard deviations by which the training counts may have been lucky, unless values are few."""


_MOST_ENTRIES, _LEAST_JUDGES = 2_000_000, 10_000
"""Features of bits are judged on so many entries of wide outputs, and at least so many runs on each
side. Each million entries takes seconds."""

_LEAST_CELLS = 18
"""A line is fitted to at least so many cells with runs."""
_STEPS = 12
"""Steps of Newton's method, each of which doubles the digits of the weights."""
_SINGULAR = 1e10
"""Largest condition number of the information matrix with which the weights count as known."""
_CONTRADICTION = 4.0
"""Standard deviations between fit and counts, at the worst of 500 cells, that refute the fit."""


@final
@dataclass(frozen=True)
class Cells:
    """A feature cut into cells, in their order, with the training runs of both datasets in each."""

    feature: Feature
    bounds: Values
    """The lower edge of every cell but the first; for a discrete feature the value of each."""
    first: Array
    second: Array
    spare_deviations: float
    """Standard deviations by which the best of these events may exceed its mean by luck."""

    share: float = 1.0
    """The part of the training runs that was counted."""
    ends: tuple[float, float] = (-np.inf, np.inf)
    """The least and the largest value."""
    is_fitted: bool = False
    """Whether the counts are those of a fit."""


def cells_of(feature: Feature, first: Matrix, second: Matrix, *, tails: bool) -> list[Cells]:
    """Return the training runs of both datasets in the cells of a feature.

    Where rare events may be best, in the `tails`, the counts of a fit are returned as well.
    """
    runs = len(first)
    if feature.kind in features.OF_BITS and first.shape[1] > 1:
        rows = max(_LEAST_JUDGES, _MOST_ENTRIES // first.shape[1])
        first, second = first[:rows], second[:rows]
    a, b = feature(first), feature(second)
    share = len(a) / runs
    if feature.discrete:
        return [_categories(feature, a, b, share)]
    plain = _intervals(feature, a, b, share)
    fitted = _smoothed(plain) if tails else None
    return [plain] if fitted is None else [plain, fitted]


def _intervals(feature: Feature, a: Values, b: Values, share: float) -> Cells:
    """Cut ordered values at quantiles, and at extreme ones in both tails."""
    both = np.sort(np.concatenate([a, b]))
    total = len(both)
    far = np.unique(np.geomspace(1, total / 2, 120).astype(int))
    ranks = np.concatenate([np.linspace(1, total - 1, _FINE).astype(int), far, total - far])
    edges = np.unique(both[np.clip(ranks, 0, total - 1)])
    edges = edges[edges > both[0]]  # a guess of an empty cell would be no guess of both datasets
    p, q = (
        np.bincount(np.searchsorted(edges, side, side="right"), minlength=len(edges) + 1)
        for side in (a, b)
    )
    spare = SPARE_DEVIATIONS if len(p) > _FEW else 0.0
    return Cells(feature, edges, p, q, spare, share, ends=(float(both[0]), float(both[-1])))


def _smoothed(cells: Cells) -> Cells | None:
    """Return the cells with the counts of a fitted straight line of the log-likelihood ratio.

    How often a value occurs is known from the runs of both datasets together, and which dataset it
    favours from a logistic regression of the dataset on the value. Far out in the tail, where there
    are few runs, that is much more precise than the counts. Returns None if there are few cells, or
    if the counts contradict the line, as with noise that is not Gaussian.
    """
    hits, total = cells.first, cells.first + cells.second
    places = np.append(cells.ends[0], cells.bounds)
    if (total > 0).sum() < _LEAST_CELLS or not np.isfinite(places).all():
        return None
    scaled = (places - np.average(places, weights=total)) / (places.std() or 1.0)
    design = np.stack([np.ones(len(places)), scaled], axis=1)
    weights, information = np.zeros(2), np.eye(2)
    for _ in range(_STEPS):  # Newton's method; the likelihood is concave
        share = special.expit(design @ weights)
        information = (design * (total * share * (1 - share))[:, np.newaxis]).T @ design
        if not np.linalg.cond(information) < _SINGULAR:
            return None
        step = np.linalg.solve(information, design.T @ (hits - total * share))
        weights = weights + step * min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-12))
    off = np.cumsum(total * share - hits)
    spread = np.sqrt(np.cumsum(total * share * (1 - share)))
    if np.max(np.abs(off) / (spread + 1)) > _CONTRADICTION:
        return None
    first, second = total * share, total * (1 - share)
    return replace(cells, first=first, second=second, spare_deviations=0.0, is_fitted=True)


def _categories(feature: Feature, a: Values, b: Values, of: float) -> Cells:
    """Sort categories by their likelihood ratio; of many, count other runs than those that sort.

    An order that is found and judged on the same runs always looks like a leak.
    """
    values, place = np.unique(np.concatenate([a, b]), return_inverse=True)
    sides = place[: len(a)], place[len(a) :]
    few = len(values) <= _FEW and feature.kind != "binned"
    ranking, counted = (slice(None), slice(None)) if few else (slice(0, None, 2), slice(1, None, 2))
    p, q = (np.bincount(side[ranking], minlength=len(values)) for side in sides)
    order = np.argsort(np.log((p + 1.0) / (q + 1.0)), kind="stable")
    p, q = (np.bincount(side[counted], minlength=len(values)) for side in sides)
    spare, share = (0.0, of) if few else (SPARE_DEVIATIONS, of / 2)
    return Cells(feature, values[order], p[order], q[order], spare, share)


def rare_ends(cells: Cells, claim: Claimed) -> Iterable[Candidate]:
    """Yield for either dataset the rare end of the cells that exceeds the claim most."""
    if cells.is_fitted:
        return  # no counts
    sides, size = (cells.first, cells.second), len(cells.first)
    for favoured in (0, 1):
        best: Candidate | None = None
        for upper in (False, True):
            step = -1 if upper else 1
            a, b = (np.cumsum(sides[i][::step])[:-1] for i in (favoured, 1 - favoured))
            n = float(sides[favoured].sum())
            found = _largest_excess(a, b, n, claim)
            if found is not None and (best is None or found[0] > best.objective):
                score, point, index = found
                top, bottom = (size - 1 - index, 0) if upper else (size, index + 1)
                score = score / math.sqrt(cells.share) - largest_deviation(size)
                best = Candidate(score, point, cells, Design.SIDES, favoured, top, bottom, upper)
        if best is not None:
            yield best


def largest_deviation(size: int) -> float:
    """Return about how many standard deviations the largest of so many normal deviates is."""
    return math.sqrt(2 * math.log(size))


def _largest_excess(
    a: Array, b: Array, runs: float, claim: Claimed
) -> tuple[float, Point, int] | None:
    """Return the largest excess over the claim among rare events, its point and its index."""
    held = np.flatnonzero((a >= _FEWEST) & (a + b <= 2 * _RARE * runs))
    if not len(held):
        return None
    score, point, index = largest(excess(Design.SIDES, a[held], b[held], runs, claim), claim)
    return score, point, int(held[index])


def rare_outcomes(first: Matrix, second: Matrix, claim: Claimed) -> Iterable[Rule]:
    """Yield for either dataset the rare value of an entry that exceeds the claim most.

    The event has the other rare values of that entry that clearly exceed the claim, too.
    """
    best: dict[int, tuple[float, Rule]] = {}
    for index in features.coordinates(first, second):
        feature = features.coordinate(index, discrete=True)
        given = [feature(side) for side in (first, second)]
        values, place = np.unique(np.concatenate(given), return_inverse=True)
        if not 1 < len(values) < len(place):
            continue
        cut = len(given[0])
        counts = [np.bincount(part, minlength=len(values)) for part in (place[:cut], place[cut:])]
        for favoured in (0, 1):
            a, b = counts[favoured], counts[1 - favoured]
            n = float(a.sum())
            found = _largest_excess(a, b, n, claim)
            if found is None or (favoured in best and found[0] <= best[favoured][0]):
                continue
            score, point, which = found
            each = Claimed.of([replace(point, delta=point.delta * 0)])
            beyond = excess(Design.SIDES, a, b, n, each)[0]
            others = (beyond > largest_deviation(len(values)) + 1) & (a <= _RARE * n)
            chosen = values[np.union1d(np.flatnonzero(others), [which])]
            marks = np.append(np.ones(len(chosen), np.int8), np.int8(0))
            partition = Partition(None, chosen)
            rule = Rule(feature, partition, marks, Design.SIDES, favoured, point, score)
            best[favoured] = score, rule
    return (rule for _, rule in best.values())


def with_rare_events(rule: Rule, rare: Sequence[Rule], share: float) -> Rule:
    """Return a rule that shares its part of the significance with rare events."""
    kept = list({each.digest(): each for each in rare if each.digest() != rule.digest()}.values())
    if not kept:
        return replace(rule, share=share)
    part = share * (1 - MAIN) / len(kept)
    hedges = tuple(replace(each, share=part) for each in kept)
    return replace(rule, share=share * MAIN, hedges=hedges)


class Tested(NamedTuple):
    """The clearest event, and what its counts show."""

    rule: Rule
    histogram: Histogram
    counts: Counts
    p_value: float
    """The p-value of the event over its share of the significance."""
    epsilon: float
    delta: float

    def __repr__(self) -> str:
        """Return its numbers; the rule alone would fill a screen."""
        n = self.counts
        counts = f"{n.hits} of {n.runs} runs against {n.misses} of {n.other_runs}"
        return f"<{counts}: p-value {self.p_value:.3g}, epsilon >= {self.epsilon:.4g}>"


def decide(rule: Rule, histogram: Histogram, significance: float) -> Tested:
    """Test every event at its share of the significance; return the clearest one.

    If the claim is one point and events refute it, that is the one with the largest bound of ε;
    otherwise the one with the least p-value.
    """
    tested: list[Tested] = []
    columns = 0
    one_point = len({each.point for each in rule.rules}) == 1
    for each in rule.rules:
        own = histogram[:, columns : columns + each.partition.size]
        columns += each.partition.size
        if each is not rule and not own.sum(axis=1).all():
            continue  # fair coins gave no run to one of the datasets
        counts, level = each.counts(own), each.share * significance
        eps, delta = float(each.point.epsilon), float(each.point.delta)
        found = min(1.0, nested_p_value(counts, eps, delta, level) / each.share)
        if each is not rule and found > significance:
            continue
        bounds = (epsilon_lower_bound(counts, delta, level), delta_lower_bound(counts, eps, level))
        tested.append(Tested(each, own, counts, found, *bounds))
    refuting = [each for each in tested if each.p_value <= significance]
    if one_point and refuting:
        return max(refuting, key=lambda each: each.epsilon)
    return min(tested, key=lambda each: each.p_value)


VALUES: tuple[Proposer, ...] = (features.plain, features.geometry)
BITS: tuple[Proposer, ...] = (features.bits,)
BITS_IN_SHORT: tuple[Proposer, ...] = (features.bits_in_short,)
"""For bits that are not part of the claim."""
_PAIRS = 72
"""Cuts of each kind in the first look at pairs of cuts, which are 72² / 2."""

_CURVE = 32
"""Cells into which the curve groups a fine feature; results keep the counts of each."""
_FEWEST_BEYOND = 60
"""Training runs of both sides beyond the outermost cut of the curve."""


_FOR_LEARNING = 0.6
"""The share of the training runs that learns features of vectors; the others choose among them."""


@final
@dataclass(frozen=True)
class Candidate:
    """One event (or two) of one feature."""

    objective: float
    point: Point
    cells: Cells
    design: Design
    favoured: int
    top: int
    """The first cell of the upper end; the number of cells where there is none."""
    bottom: int
    """The first cell above the lower end; 0 where there is none."""
    upper_is_event: bool

    @property
    def marks(self) -> NDArray[np.int8]:
        """Which dataset each cell favours, as in `Rule.marks`."""
        event, other = (1, -1) if self.upper_is_event else (-1, 1)
        if self.design is Design.SIDES:
            event, other = max(event, 0), max(other, 0)
        marks = np.zeros(len(self.cells.first), dtype=np.int8)
        marks[self.top :] = event
        marks[: self.bottom] = other
        return marks


@final
@dataclass(frozen=True, slots=True)
class Shares:
    """How the significance of an audit is divided, so that all of its statements hold together."""

    values: float
    bits: float
    below: float = 1.0
    """Lower bounds of the whole curve; 1 where they are a statement of their own."""
    above: float = 1.0
    """Upper bounds of the binned curve."""


OF_A_CLAIM = Shares(0.95, 0.05)
"""Leaks in last bits are usually large: a small share shows them, and costs 1 % of ε elsewhere."""
WITH_BITS = Shares(0.5, 0.5)
"""Where last bits are part of the claim."""
OF_AN_ESTIMATE = Shares(0.75, 0.05, 0.15, 0.05)
"""The curve has some 200 bounds; what its share is hardly changes any of them."""


def bits_of(bits: bool | None) -> tuple[Proposer, ...]:
    """Return what proposes features of bits: nothing where they are left out."""
    return () if bits is False else BITS if bits else BITS_IN_SHORT


def shares_of(bits: bool | None, *, claimed: bool) -> Shares:
    """Return how an audit divides its significance."""
    return (WITH_BITS if bits else OF_A_CLAIM) if claimed else OF_AN_ESTIMATE


def choose(
    first: Matrix,
    second: Matrix,
    guarantee: Guarantee,
    *,
    runs: int,
    significance: float,
    values: Sequence[Proposer] = VALUES,
    bits: Sequence[Proposer] = (),
    shares: Shares = OF_A_CLAIM,
    mixed: bool = False,
) -> Chosen:
    """Return the most promising rules for tests on `runs` fresh runs on each side.

    `mixed` rows hold codes of texts, between which there are no directions and no distances.
    """
    if mixed:
        plain = partial(features.plain, codes=range(1, 1 + first.shape[1] // 2))
        values = [
            plain if propose is features.plain else propose
            for propose in values
            if propose is not features.geometry
        ]
    search = _Search(first, second, Claimed.of(guarantee.candidates()), runs)
    low = search.best(bits, significance * shares.bits)
    share = shares.values + (shares.bits if low is None else 0.0)
    best = search.best(values, significance * share * MAIN, of_values=True)
    if best is None:
        best = _constant(search.claim.points[0], *search.picking)
    rare = rare_outcomes(first, second, search.claim)
    ends = [_rule(end) for end in search.rare.values()]
    return Chosen(
        with_rare_events(_rule(best), [*rare, *ends], share),
        None if low is None else replace(_rule(low), share=shares.bits),
        _ranked(best.cells if search.widest is None else search.widest[1]),
    )


class _Search:
    """The search in the training runs of one pair."""

    def __init__(self, first: Matrix, second: Matrix, claim: Claimed, runs: int) -> None:
        wide = first.shape[1] > 1
        cut = int(len(first) * _FOR_LEARNING) if wide else 0
        self.claim, self.runs = claim, runs
        self.learning = (first[:cut], second[:cut]) if wide else (first, second)
        self.picking = (first[cut:], second[cut:])
        self.rare: dict[int, Candidate] = {}
        self.widest: tuple[float, Cells] | None = None
        """The cells that show most of the curve, and how much."""

    def best(
        self, proposers: Sequence[Proposer], significance: float, *, of_values: bool = False
    ) -> Candidate | None:
        """Return the most promising event of some features at a significance."""
        claim, scale = self.claim, Scale.of(len(self.picking[0]), self.runs, significance)
        tails = bool(claim.deltas.any())
        best: Candidate | None = None
        features = (each for propose in proposers for each in propose(*self.learning))
        for cells in (c for f in features for c in cells_of(f, *self.picking, tails=tails)):
            if of_values:
                self._note(cells)
            best = max([best, *candidates(cells, claim, scale)], key=_objective)
        return best

    def _note(self, cells: Cells) -> None:
        """Keep the rare ends of the cells, and the cells if they show more of the curve."""
        for end in rare_ends(cells, self.claim):
            known = self.rare.get(end.favoured)
            if known is None or end.objective > known.objective:
                self.rare[end.favoured] = end
        if not cells.is_fitted and len(cells.first) > 1:
            shown = _area(cells)
            if self.widest is None or shown > self.widest[0]:
                self.widest = shown, cells


def _objective(candidate: Candidate | None) -> float:
    return -math.inf if candidate is None else candidate.objective


def _area(cells: Cells) -> float:
    """Return the sum over a grid of ε of the δ(ε) that ends of ordered cells show, less luck."""
    below = np.stack([_cumulative(side)[1:-1] / side.sum() for side in (cells.first, cells.second)])
    runs = float(min(cells.first.sum(), cells.second.sum()))
    found = 0.0
    for factor in np.exp(EPSILONS):
        shown = [
            p
            - factor * q
            - SPARE_DEVIATIONS * np.sqrt((p * (1 - p) + factor**2 * q * (1 - q)) / runs)
            for one, other in (below, below[::-1])
            for p, q in ((one, other), (1 - one, 1 - other))
        ]
        found += max(0.0, float(np.max(shown)))
    return found


def _ranked(cells: Cells) -> Ranked:
    """Group the cells, in the order in which they favour the first dataset."""
    both = cells.first + cells.second
    share = np.cumsum(both)[:-1] / both.sum()
    tails = 2.0 ** -np.arange(6, max(6, math.log2(max(2.0, both.sum() / _FEWEST_BEYOND))))
    wanted = np.concatenate([np.arange(1, _CURVE) / _CURVE, tails, 1 - tails])
    cuts = np.unique(np.searchsorted(share, wanted).clip(0, len(share) - 1))
    if not cells.feature.discrete:
        partition = Partition(cells.bounds[cuts], ends=cells.ends)
        rising = np.cumsum(cells.first[::-1] / cells.first.sum())
        other = np.cumsum(cells.second[::-1] / cells.second.sum())
        place = np.arange(partition.size)
        return Ranked(
            cells.feature, partition, place if (rising - other).sum() >= 0 else place[::-1]
        )
    group = np.searchsorted(cuts, np.arange(len(both)))  # cells up to cut 0, 1, …
    order = np.argsort(cells.bounds)
    level = int(np.argmin(np.abs(np.log((cells.first + 1.0) / (cells.second + 1.0)))))
    partition = Partition(None, cells.bounds[order])
    return Ranked(cells.feature, partition, np.append(group[order], group[level]))


@final
@dataclass(frozen=True)
class Scale:
    """How training counts are read as fresh counts."""

    trained: int
    runs: int
    level: float

    @staticmethod
    def of(trained: int, runs: int, significance: float) -> Scale:
        """Return the scale of a test at a significance."""
        return Scale(trained, runs, -float(special.ndtri(significance)))

    def factor(self, cells: Cells) -> float:
        """Return fresh counts per training count, as if there were fewer fresh runs."""
        trained = self.trained * cells.share
        if cells.spare_deviations == 0:
            return self.runs / trained
        root = self.level / math.sqrt(self.runs) + cells.spare_deviations / math.sqrt(trained)
        return (self.level / root) ** 2 / trained


def candidates(cells: Cells, claim: Claimed, scale: Scale) -> Iterable[Candidate]:
    """Yield the best event of each design: by its bound, or for several points by its excess."""
    size = len(cells.first)
    if size < 2:
        return
    level = scale.level if len(claim.points) == 1 else None
    sums = _Sums.of(cells, scale.factor(cells), level)
    thin = np.unique(np.linspace(1, size - 1, min(_PAIRS, size - 1)).astype(int))
    reach = np.arange(-(size // _PAIRS) - 1, size // _PAIRS + 2)
    cuts = np.arange(1, size)
    for favoured in (0, 1):
        coarse = sums.best(claim, Design.GUESSES, favoured, *_ordered(thin, thin))
        near = (np.unique(np.clip(c + reach, 1, size - 1)) for c in (coarse.bottom, coarse.top))
        guesses = sums.best(claim, Design.GUESSES, favoured, *_ordered(*near))
        yield guesses
        for bottoms, tops in ((0 * cuts, cuts), (cuts, 0 * cuts + size)):
            side = sums.best(claim, Design.SIDES, favoured, bottoms, tops)
            yield sums.handicapped(side, guesses)


def _ordered(lows: Array, highs: Array) -> tuple[Array, Array]:
    """Return the pairs of cuts low ≤ high."""
    low, high = (grid.reshape(-1) for grid in np.meshgrid(lows, highs, indexing="ij"))
    return low[low <= high], high[low <= high]


@final
@dataclass(frozen=True, eq=False)
class _Sums:
    """Cumulative counts of both sides, scaled to the fresh runs: entry k is of cells 0 to k − 1."""

    cells: Cells
    factor: float
    level: float | None
    totals: tuple[Array, Array]

    @staticmethod
    def of(cells: Cells, factor: float, level: float | None) -> _Sums:
        first, second = (_cumulative(side) * factor for side in (cells.first, cells.second))
        return _Sums(cells, factor, level, (first, second))

    def best(
        self, claim: Claimed, design: Design, favoured: int, low: Array, high: Array
    ) -> Candidate:
        """Return the best of some events: cells from `high` on, and those below `low`."""
        a, b = _ends(self.totals, design, favoured, low, high)

        value, point, index = largest(self._predicted(design, a, b, claim), claim)
        bottom, top = int(low[index]), int(high[index])
        upper = design is Design.GUESSES or top < len(self.cells.first)
        return Candidate(value, point, self.cells, design, favoured, top, bottom, upper)

    def handicapped(self, side: Candidate, guesses: Candidate) -> Candidate:
        """Take off a standard deviation by which one side may exceed guesses by luck, for δ = 0.

        If both orders leak alike, the one that looks better is the luckier one. Guesses use the
        counts of the side and more, so that the variance of the difference is the difference of the
        variances (Hausman, "Specification tests in econometrics", 1978).
        """
        if self.level is None or side.point.delta > 0:
            return side
        difference = max(0.0, self._variance(side) - self._variance(guesses))
        return replace(side, objective=side.objective - math.sqrt(difference))

    def _variance(self, found: Candidate) -> float:
        """Return the variance of the logarithm of the ratio of a candidate's counts."""
        a, b = _ends(self.totals, found.design, found.favoured, found.bottom, found.top)
        known = 2 / float(self.totals[0][-1]) if found.design is Design.SIDES else 0.0
        return self.factor * max(0.0, float(1 / (a + 0.5) + 1 / (b + 0.5)) - known)

    def _predicted(self, design: Design, a: Array, b: Array, claim: Claimed) -> Array:
        """Return what events promise at every point, shape (points, events)."""
        sides = design is Design.SIDES
        runs = float(self.totals[0][-1]) * (1 if sides else 2)
        if self.level is None:
            return excess(design, a, b, runs, claim)
        bound = promised_by_sides if sides else promised_by_guesses
        return np.stack([bound(a, b, runs, point, self.level) for point in claim.points])


def _cumulative(counts: Array) -> Array:
    return np.append(0.0, np.cumsum(counts))


def _ends(
    sums: tuple[Array, Array], design: Design, favoured: int, low: Any, high: Any
) -> tuple[Any, Any]:
    """Return the counts for the favoured dataset, and those against it."""
    p, q = sums[favoured], sums[1 - favoured]
    against = (q, p) if design is Design.GUESSES else (p, q)
    return p[-1] - p[high] + against[0][low], q[-1] - q[high] + against[1][low]


def _rule(best: Candidate) -> Rule:
    """Return the rule of a candidate, its feature cut no finer than event and estimates need."""
    cells, marks = best.cells, best.marks
    if cells.feature.discrete:
        order = np.argsort(cells.bounds)
        partition = Partition(None, cells.bounds[order])
        marks = np.append(marks[order], np.int8(0))
    else:
        share = np.cumsum(cells.first + cells.second)[:-1] / (cells.first + cells.second).sum()
        wanted = np.searchsorted(share, np.arange(1, _CURVE) / _CURVE)
        wanted = wanted[wanted < len(share)]
        ends = [cell - 1 for cell in (best.top, best.bottom) if 0 < cell <= len(share)]
        keep = np.unique(np.concatenate([wanted, ends])).astype(int)
        partition = Partition(cells.bounds[keep], ends=cells.ends)
        # the cell above edge k of the fine cut is fine cell k + 1
        marks = np.concatenate([marks[:1], marks[keep + 1]])
    return Rule(
        cells.feature, partition, marks, best.design, best.favoured, best.point, best.objective
    )


def _constant(point: Point, first: Matrix, second: Matrix) -> Candidate:
    """Return the empty event, for outputs that are all the same."""
    cells = Cells(
        features.whole_row(),
        np.unique(features.whole_row()(np.concatenate([first, second])))[:1],
        np.array([len(first)]),
        np.array([len(second)]),
        SPARE_DEVIATIONS,
    )
    return Candidate(0.0, point, cells, Design.SIDES, 0, 1, 0, upper_is_event=True)


_LARGEST_EPSILON = 40.0
"""In place of an infinite bound: no counts promise more."""
_LARGEST_EXPONENT = 700.0
"""Largest ε whose e^ε is a double; no event exceeds such a claim."""


class Claimed(NamedTuple):
    """Points of a claim, and their e^ε and δ, shape (points, 1)."""

    points: Sequence[Point]
    factors: Array
    deltas: Array

    @staticmethod
    def of(points: Sequence[Point]) -> Claimed:
        """Return points with their numbers."""
        epsilons = [min(float(point.epsilon), _LARGEST_EXPONENT) for point in points]
        deltas = np.array([float(point.delta) for point in points])
        return Claimed(points, np.exp(epsilons)[:, np.newaxis], deltas[:, np.newaxis])


def excess(design: Design, a: Array, b: Array, n: float, claim: Claimed) -> Array:
    """Return by how many standard deviations events exceed a claim, shape (points, events).

    `n` counts the runs of a side, or for guesses all runs.
    """
    score = side_score if design is Design.SIDES else guess_score
    return score(np.maximum(a - 0.5, 0.0), b + 0.5, n, claim.factors, claim.deltas)


def largest(values: Array, claim: Claimed) -> tuple[float, Point, int]:
    """Return the largest of some values, shape (points, events), its point and its event."""
    place = int(values.argmax())
    point, event = divmod(place, values.shape[1])
    return float(values.flat[place]), claim.points[point], event


def promised_by_sides(a: Array, b: Array, n: float, point: Point, level: float) -> Array:
    """Return the bound of ε where the excess is `level`.

    With u = a − nδ and v = cb the score (u − v)/√(nδ(1 − δ) + s(1 + c − 2δ) − 2s²/n) at
    s = (u + v)/2 reaches the level at a root c of a quadratic.
    """
    delta = float(point.delta)
    a, b = np.maximum(a - 0.5, 0.0), b + 0.5
    u, z2 = a - n * delta, level * level
    lead = b * b - z2 * (b / 2 - b * b / (2 * n))
    middle = 2 * u * b + z2 * ((u + b * (1 - 2 * delta)) / 2 - u * b / n)
    last = u * u - z2 * (n * delta * (1 - delta) + u * (1 - 2 * delta) / 2 - u * u / (2 * n))
    root = np.sqrt(np.maximum(middle * middle - 4 * lead * last, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where((u > 0) & (last > 0), 2 * last / (middle + root), 0.0)
    short = side_score(a, b, n, 1.0, delta) - level
    return _bounds(factor, short)


def _bounds(factor: Array, short: Array) -> Array:
    """Return ln(factor); where that is not positive, how far the excess is below the level."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.minimum(np.log(factor), _LARGEST_EPSILON)
    return np.where(factor > 1, found, np.minimum(short, 0.0) * 1e-3)


def side_score(a: Array, b: Array, n: float, factor: Any, delta: Any) -> Array:
    """Return the excess a − nδ − cb in its standard deviations on the boundary p = cq + δ."""
    u, v = a - n * delta, factor * b
    s = np.minimum((u + v) / 2, n * (1 - delta))
    spread = n * delta * (1 - delta) + s * (1 + factor - 2 * delta - 2 * s / n)
    score: Array = (u - v) / np.sqrt(np.maximum(spread, 0.25 * (1 + factor)))
    return score


def promised_by_guesses(right: Array, wrong: Array, n: float, point: Point, level: float) -> Array:
    """Return the same for guesses: the ε that the bound of their chance needs (Wilson 1927)."""
    delta = float(point.delta)
    right, wrong = np.maximum(right - 0.5, 0.0), wrong + 0.5
    guesses, z2 = right + wrong, level * level
    spread = np.sqrt(right * wrong / guesses + z2 / 4)
    chance = (right + z2 / 2 - level * spread) / (guesses + z2)
    factor = _share_of_guesses(guesses, n, delta) / (1 - chance) - 1
    return _bounds(factor, guess_score(right, wrong, n, 1.0, delta) - level)


def guess_score(right: Array, wrong: Array, runs: float, factor: Any, delta: Any) -> Array:
    """Return by how many standard deviations more guesses are right than the claim allows."""
    guesses = right + wrong
    share = _share_of_guesses(guesses, runs, delta)
    chance = 1 - share / (1 + factor)
    spread = np.sqrt(np.maximum(guesses * chance * (1 - chance), 0.1))
    score: Array = (right - guesses * chance) / spread
    return np.where(share > 0, score, -1.0)


def _share_of_guesses(guesses: Array, runs: float, delta: Any) -> Array:
    """Return the share of the guesses that δ does not account for."""
    if not np.any(delta):
        return np.ones_like(guesses)
    least = np.maximum(guesses - 3.3 * np.sqrt(guesses), 0.0) / runs
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((least > delta) | (delta == 0), 1 - delta / np.maximum(least, 1e-300), 0.0)
