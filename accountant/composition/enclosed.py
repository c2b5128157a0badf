"""Compositions of releases whose worst neighbours depend on the question: two ends.

*Below*: independent releases, each with one pair of neighbours, are attained, and each of them
alone, where its losses have no largest value but those of the former do. *Above*: a pair that
dominates every release on every history dominates all of them together in a product (Zhu, Dong and
Wang 2022, Theorem 10). Of exponential mechanisms with one ε `accountant.pairs.bounded_range` knows
the worst adaptive choices, and `accountant.pairs.fixed_selections` those that are fixed in advance.
"""

from __future__ import annotations

from collections.abc import Sequence

from flint import arb

from accountant.composition.choose import product
from accountant.core.mechanism import Mechanism
from accountant.core.pair import Pair, WorstCase
from accountant.mechanisms.selection.exponential import BoundedRangePair
from accountant.pairs.between import Between
from accountant.pairs.bounded_range import MOST_RELEASES, BoundedRangeProduct
from accountant.pairs.fixed_selections import MOST_FIXED, FixedSelections

Case = tuple[Mechanism, int, WorstCase]
_UNKNOWN = "which neighbours are worst for all releases"


def enclosed(
    cases: Sequence[Case], dominating: WorstCase, *, adaptive: frozenset[bool]
) -> WorstCase:
    """Return the pair between both ends: parts with their counts, and what dominates all.

    `adaptive` says whether releases depend on earlier outputs: in every composition, in none, or in
    some of them.
    """
    factors = [(case.remove[0], count) for _, count, case in cases]
    whole, fixed = _bounded_range(factors), _fixed(factors)
    if fixed is not None and adaptive == {False}:
        return WorstCase.symmetric(
            fixed,
            "Scores that are fixed in advance are worst for two candidates, the same in all "
            "selections.",
        )
    if fixed is not None and whole is not None and adaptive == {True}:
        return WorstCase.symmetric(
            whole,
            "Every selection may have the scores of two candidates that are worst after what was "
            "selected before.",
        )
    if whole is not None:
        dominating = WorstCase.symmetric(whole, "")
    if fixed is not None:
        return WorstCase.symmetric(
            Between((fixed,), dominating.remove[0], _UNKNOWN),
            "Below: scores that are fixed in advance. Above: a pair that dominates every choice of "
            "them, whatever came before.",
        )
    remove, add = (_between(cases, dominating, add=add) for add in (False, True))
    if all(case.remove == case.add for _, _, case in cases) and dominating.remove == dominating.add:
        add = remove  # the same pairs in another order
    return WorstCase(
        (remove,),
        (add,),
        "Below: independent releases, each with one pair of neighbours. Above: a pair that "
        "dominates every release, whatever came before.",
    )


def _is_heavier(pair: Pair, attained: Sequence[Pair]) -> bool:
    """Whether a pair has no finite ρ, or perhaps none and losses above all those attained."""
    rho = pair.closed_rho()
    if pair.only_bounded or rho is None or rho < arb.pos_inf():
        return rho is not None and bool(rho == arb.pos_inf())
    ends = [each.max_loss() for each in (pair, *attained)]
    return bool(attained) and ends[0] == arb.pos_inf() and arb.pos_inf() not in ends[1:]


def _between(cases: Sequence[Case], dominating: WorstCase, *, add: bool) -> Between:
    singles = [((case.add if add else case.remove)[0], part) for part, _, case in cases]
    heavy = [pair for pair, part in singles if _is_heavier(pair, part.attained())]
    return Between(
        (*(product(choice) for choice in _choices(cases, add=add)), *heavy),
        (dominating.add if add else dominating.remove)[0],
        _UNKNOWN,
    )


def _bounded_range(factors: Sequence[tuple[Pair, int]]) -> BoundedRangeProduct | None:
    """Return the pair of exponential mechanisms with one ε, None for others or for many."""
    lengths, count = set(), 0
    for pair, n in factors:
        most = pair.most if isinstance(pair, Between) else pair
        if not isinstance(most, (BoundedRangePair, BoundedRangeProduct)):
            return None
        lengths.add(most.length)
        count += n * (most.count if isinstance(most, BoundedRangeProduct) else 1)
    if len(lengths) != 1 or count > MOST_RELEASES:
        return None
    return BoundedRangeProduct(lengths.pop(), count)


def _fixed(factors: Sequence[tuple[Pair, int]]) -> FixedSelections | None:
    """Return the pair of exponential mechanisms with one ε, None for others or for many."""
    lengths = {pair.length if isinstance(pair, BoundedRangePair) else None for pair, _ in factors}
    count, length = sum(n for _, n in factors), lengths.pop()
    if lengths or length is None or count > MOST_FIXED:
        return None
    return FixedSelections(length, count)


def _choices(cases: Sequence[Case], *, add: bool) -> list[list[tuple[Pair, int]]]:
    """Return choices of a pair for every part: the same place in the list of each."""
    listed = []
    for part, n, case in cases:
        pairs = part.attained() or case.remove[:1]
        if add:
            pairs = tuple(pair.reverse() for pair in part.attained()) or case.add[:1]
        listed.append((pairs, n))
    most = max(len(pairs) for pairs, _ in listed)
    return [[(pairs[i % len(pairs)], n) for pairs, n in listed] for i in range(most)]
