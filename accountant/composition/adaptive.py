"""Compositions in which every release may choose among several pairs, none worst at every ε.

*Setting.* At every ε, release i is dominated by some pair of a family F_i; which one may depend on
ε. An adversary chooses the pair of every release, also depending on earlier outputs. Let W be the
largest of the profiles of all such sequences.

*Lower bound.* The profile of every product of pairs chosen from the families is at most W. Proof:
independent releases with fixed pairs attain it.

*Upper bound.* The maximum of the profiles over F_i is the profile of a pair, the *envelope* of F_i.
The product of the envelopes dominates all releases together, so its profile is at least W. Proof:
the maximum is convex in e^ε, non-increasing, at least (1 − e^ε)⁺ and at most 1, which makes it the
profile of a pair (Zhu, Dong and Wang 2022, Proposition 7). The envelope dominates release i on
every history, so the product dominates (Theorem 10).

Hence a guarantee that the product of envelopes has is true, and one that some sequence violates is
false. Between the two nothing is decided. The bounds meet if one pair is the worst at every ε that
matters, which is common for many releases; in general no precision closes the gap.

*Releases whose worst neighbours depend on the question* (`enclosed`). Lower bound: independent
releases, each with one pair of neighbours, are attained. So is a single release on its own, which
is included where its losses have no largest value but those of the sequences have. Upper bound: a
pair that dominates every release on every history dominates all of them together, in a product
(Zhu, Dong and Wang 2022, Theorem 10). Divergences are at most the sums of those of the parts.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.composition import choose
from dpassay.accountant.composition.exact import convolution
from dpassay.accountant.composition.lattice import (
    GRID,
    POINTS,
    bracket_bound,
    bracket_bounds,
    bracket_root,
    relative_gap,
)
from dpassay.accountant.composition.product import Engine, Product, bound_of, counted
from dpassay.accountant.composition.tails import Table, envelope_of, releases
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair, WorstCase, refined
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.between import Between
from dpassay.accountant.pairs.finite import tables
from dpassay.accountant.pairs.invert import inverse
from dpassay.accountant.pairs.subsampled import EnvelopePair, Family, envelope

MOST_SEQUENCES = 24
"""Largest number of products for a lower bound: more are slower, fewer give a weaker bound."""
_SPREAD = 5
"""Standard deviations above the mean at which losses are compared, for a δ of 3e-7."""
_LARGEST = 6
"""Tables with the largest losses that are tried alone and in pairs: 21 choices."""
_ENOUGH = Fraction(1, 10**6)
"""Default relative width, also used where a grid has no information; a finer one is slower."""
_PRECISION = 128
"""Precision, in bits, of lower bounds: their rounding is far below the width of any grid."""
_LEVELS, _FAST_LEVELS = POINTS[:2], POINTS[1:3]
"""Grid points, tried in turn; the second pair is for releases with all tails in floats.

More are slower and seldom narrow the gap between the two bounds; with fewer the grid adds its own
width.
"""
_GAIN = 0.9
"""A finer grid that leaves more of the width than this is the last: the bounds themselves differ.
"""
_SPARE = arb("0.9")
"""Share of the requested width that the bounds may take; the rest is for rounding to decimals."""
_FEW = 1 << 10
"""Largest number of values of a sum of tables that is computed exactly."""
_KEPT = 2
"""Number of sequences, those with the largest ε, for a finer grid; one alone would miss near ties.
"""


@final
@dataclass(frozen=True)
class Adaptive(Engine):
    """The profile W for a product of envelopes, where each release may be any pair of its family.

    Its balls contain W but are no narrower than the gap between the bounds of this module. Largest
    losses and masses at infinity are exact: for each of them one choice is the worst.
    """

    of_choices = True

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return a ball around both bounds on W(ε), from the finest grid that narrows it.

        For tables whose sums have few values both bounds are exact.
        """
        if (exact := _exactly(product)) is not None:
            above, below = exact
            least = [each.hockey_stick(epsilon) for each in below]
            return functools.reduce(arb.max, least).union(above.hockey_stick(epsilon))
        return _as_near_as(product, epsilon, product.relative_width or _ENOUGH)

    def exact_bound(self, product: Product, epsilon: ExactReal) -> ExactReal | None:
        """Return W(ε) for a few releases of one family of tables; else their order matters."""
        families = _families(product)
        return bound_of(families, epsilon) if len(families) == 1 else None

    def at_most(self, product: Product, epsilon: ExactReal) -> arb:
        """Return the upper bound over all choices, exact or on the coarsest grid."""
        if (exact := _exactly(product)) is not None:
            return exact[0].hockey_stick(epsilon).upper()
        return bracket_bound(product, epsilon, _levels(product)[0], above=True).upper()

    def inverse(self, product: Product, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose the ε with W(ε) = δ between the points where both bounds cross δ.

        Raises UndecidedError, with the enclosure reached, if the width is not.
        """
        if (exact := _exactly(product)) is not None:
            return _between_exact(*exact, delta, relative_width)
        last, chosen = math.inf, list(sequences(product))
        for cells in _levels(product):
            high = bracket_root(product, delta, cells, above=True)
            lows = [(bracket_root(each, delta, cells, above=False), each) for each in chosen]
            lows.sort(key=lambda entry: entry[0], reverse=True)
            low, chosen = lows[0][0], [each for _, each in lows[:_KEPT]]
            found = Interval.of_exact(low, 20).hull(Interval.of_exact(high, 20))
            width = relative_gap((low, high))
            if width <= relative_width:
                return found
            if width > _GAIN * last:
                break
            last = width
        raise _refusal(found, width)

    def attained(self, product: Product, epsilon: ExactReal) -> Pair:
        """Return the product of pairs with the largest H(ε) among those tried."""
        cells = _levels(product)[0]
        best = max(sequences(product), key=lambda each: float(_below(epsilon, cells, [each])))
        return choose.product(best.factors)


def adaptive(families: Sequence[tuple[Family, int, bool]]) -> Product:
    """Return the product in which every release may be any pair of its family.

    The last entries become `EnvelopePair.listed`: whether all neighbours are listed.
    """
    factors = ((envelope(family, listed=listed), count) for family, count, listed in families)
    return Product(counted(factors), Adaptive())


@functools.lru_cache(maxsize=256)
def _as_near_as(product: Product, epsilon: ExactReal, wanted: Fraction) -> arb:
    """Return a ball around both bounds on W(ε), from the first grid that makes it narrow enough.

    If no grid does, return that from the last one: a higher precision would not help.
    """
    chosen = list(sequences(product))
    for cells in _levels(product):
        least, upper = bracket_bounds(product, epsilon, cells)
        if upper.is_zero():
            return arb(0)
        lower = _below(epsilon, cells, chosen)
        enough = ball(wanted) * _SPARE * (lower if lower > 0 else least.min(arb(1)))
        if upper - lower <= enough or not least - lower < enough:  # narrow, or no grid can be
            break
    return lower.lower().max(arb(0)).union(upper.min(arb(1)).upper())


@functools.lru_cache(maxsize=64)
def _exactly(product: Product) -> tuple[Pair, tuple[Pair, ...]] | None:
    """Return the product of the envelopes and those below it, if all sums have few values."""
    if sum(count for _, count in product.factors) > _FEW:
        return None
    whole = []
    for family, count in _families(product):
        listed = tables(family)
        if listed is None:
            return None
        whole.append((envelope_of(listed), count))
    below = tuple(choose.product(each.factors) for each in sequences(product))
    above = choose.product(whole)
    for each in (above, *below):
        factors = each.factors if isinstance(each, Product) else ((each, 1),)
        own = convolution.of_finite(factors)
        if len(own) < len(factors) or convolution.size(own) > _FEW:
            return None
    return above, below


def _between_exact(
    above: Pair, below: tuple[Pair, ...], delta: ExactReal, width: Fraction
) -> Interval:
    """Enclose the ε with W(ε) = δ. Raises UndecidedError if the bounds are further apart."""
    high, low = inverse([above], delta, width / 4), inverse(below, delta, width / 4)
    found = Interval(min(low.lower, high.lower), high.upper)
    reached = found.relative_width
    if reached is not None and reached <= width:
        return found
    raise _refusal(found, math.inf if reached is None else float(reached))


def _families(product: Product) -> list[tuple[Family, int]]:
    return [(p.family if isinstance(p, EnvelopePair) else (p,), n) for p, n in product.factors]


def _levels(product: Product) -> tuple[int, ...]:
    slow = any(release.slow for release, _ in releases(product.factors))
    return _LEVELS if slow else _FAST_LEVELS


def _below(epsilon: ExactReal, cells: int, chosen: Sequence[Product]) -> arb:
    """Return a lower bound on the largest H(ε) among products, from grids.

    If floats cannot distinguish it from 0, the engine of the product computes it.
    """
    found = arb(0)
    with ctx.workprec(_PRECISION):
        for each in chosen:
            value = bracket_bound(each, epsilon, cells, above=False)
            if not value > 0:
                with contextlib.suppress(NotApplicableError, UndecidedError):
                    whole = refined(choose.product(each.factors), _ENOUGH)
                    value = whole.hockey_stick(epsilon)
            if value.is_finite():
                found = found.max(value.lower())
    return found


def sequences(product: Product) -> Iterator[Product]:
    """Yield products with a chosen pair for every release: all of them, if they are few.

    Otherwise the releases of each family have one pair throughout, or two pairs in equal shares.
    """
    families = _families(product)
    ways = math.prod(math.comb(count + len(family) - 1, count) for family, count in families)
    share = _splits if ways <= MOST_SEQUENCES else _even_splits
    choices = [share(family, count) for family, count in families]
    for chosen in itertools.islice(itertools.product(*choices), MOST_SEQUENCES):
        pairs = itertools.chain.from_iterable(family for family, _ in families)
        shares = zip(pairs, itertools.chain.from_iterable(chosen), strict=True)
        yield Product(counted((pair, count) for pair, count in shares if count), GRID)


def _splits(family: Family, count: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to share `count` releases among the pairs of a family."""
    places = count + len(family) - 1
    for bars in itertools.combinations(range(places), len(family) - 1):
        yield tuple(b - a - 1 for a, b in itertools.pairwise((-1, *bars, places)))


def _even_splits(family: Family, count: int) -> Iterator[tuple[int, ...]]:
    """Yield shares of one pair only, and equal shares of two pairs."""
    kinds, listed = len(family), tables(family)
    best = range(kinds) if listed is None else by_size(listed)[:_LARGEST]
    for kind in best:
        yield tuple(count if i == kind else 0 for i in range(kinds))
    for one, other in itertools.combinations(best, 2):
        shares = {one: count - count // 2, other: count // 2}
        yield tuple(shares.get(i, 0) for i in range(kinds))


def _refusal(found: Interval, width: float) -> UndecidedError:
    return UndecidedError(
        f"Reached epsilon in {found}, of relative width {width:.1e}. The lower end is "
        "attained by releases with one worst pair each; the upper end is that of a pair that "
        "dominates every choice. Ask for a larger relative_width.",
        reached=width,
        interval=found,
    )


def by_size(listed: Sequence[Table]) -> list[int]:
    """Return the indices of the tables, roughly in descending order of their largest losses."""

    def size(table: Table) -> tuple[float, float]:
        rows = [(float(a), float(b)) for a, b in zip(*table, strict=True) if a]
        infinite = sum(a for a, b in rows if not b)
        losses = [(a, math.log(a / b)) for a, b in rows if b]
        mean = sum(a * loss for a, loss in losses)
        return infinite, mean + _SPREAD * sum(a * (loss - mean) ** 2 for a, loss in losses) ** 0.5

    return sorted(range(len(listed)), key=lambda i: size(listed[i]), reverse=True)


Case = tuple[Mechanism, int, WorstCase]
_UNKNOWN = "which neighbours are worst for all releases"


def enclosed(cases: Sequence[Case], dominating: WorstCase) -> WorstCase:
    """Return the worst case between both bounds: the parts with their counts, and `dominating`."""
    remove, add = (_between(cases, dominating, add=add) for add in (False, True))
    if all(case.remove == case.add for _, _, case in cases) and dominating.remove == dominating.add:
        add = remove  # the same pairs in another order
    return WorstCase(
        (remove,),
        (add,),
        "Lower bound: independent releases, each with one pair of neighbours. Upper bound: a pair "
        "that dominates every release, whatever the earlier outputs.",
    )


def _between(cases: Sequence[Case], dominating: WorstCase, *, add: bool) -> Between:
    singles = [(case.add if add else case.remove)[0] for _, _, case in cases]
    # the pairs that are composed may have bounded losses where a single release has an infinite ρ
    infinite = [pair for pair in singles if pair.known.rho() == arb.pos_inf()]
    listed = [(case.add if add else case.remove, n, case.enveloped) for _, n, case in cases]
    known = all(len(pairs) == 1 and not enveloped for pairs, _, enveloped in listed)
    parts = tuple((pairs[0], n) for pairs, n, _ in listed) if known else ()
    return Between(
        (*(choose.product(choice) for choice in _choices(cases, add=add)), *infinite),
        (dominating.add if add else dominating.remove)[0],
        _UNKNOWN,
        _largest(parts),
        parts,
    )


def _largest(parts: Sequence[tuple[Pair, int]]) -> ExactReal | None:
    """Return the sum of the largest losses, each attained or approached by some neighbours."""
    total = ExactReal.of_rational(0)
    for pair, n in parts:
        largest = pair.known.max_loss()
        if largest is None:
            return None
        total = total + ExactReal.of_rational(n) * largest
    return total if parts else None


def _choices(cases: Sequence[Case], *, add: bool) -> list[list[tuple[Pair, int]]]:
    """Return sequences of choices; the i-th one takes the i-th pair of every part, cyclically."""
    listed = []
    for part, n, case in cases:
        pairs = part.attained() or case.remove[:1]
        if add:
            pairs = tuple(pair.reverse() for pair in part.attained()) or case.add[:1]
        listed.append((pairs, n))
    most = max(len(pairs) for pairs, _ in listed)
    return [[(pairs[i % len(pairs)], n) for pairs, n in listed] for i in range(most)]
