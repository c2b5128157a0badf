"""How much work an answer takes, over the number of different releases: no engine has a cliff.

Work is the number of calls of functions, which neither the machine nor its load changes.
"""

from __future__ import annotations

import cProfile
from collections.abc import Callable
from fractions import Fraction

import pytest

import dpassay
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.notation import parse
from dpassay.accountant.questions import profile
from tests.near import narrow
from tests.quick import slow

KINDS = {
    "Laplace": lambda i: f"Laplace({5 + i})",
    "fractions": lambda i: f"Laplace('{36 + i}/7')",
    "integers": lambda i: f"DiscreteLaplace({5 + i})",
    "mixed": lambda i: f"{('Gaussian', 'Laplace')[i % 2]}({10 + i})",
}


def calls(kinds: int, law: Callable[[int], str]) -> int:
    """Return how many calls ε takes, after a question that loads what all answers need."""
    first, whole = (
        parse(f"Composed([{', '.join(law(i + shift) for i in range(kinds))}])") for shift in (1, 0)
    )
    profile.epsilon(first, "1e-3", adjacency=Adjacency.ADD_REMOVE)
    counter = cProfile.Profile()
    with counter:
        found = profile.epsilon(whole, "1e-3", adjacency=Adjacency.ADD_REMOVE)
    assert narrow(found, 1e-6)
    return sum(entry.callcount for entry in counter.getstats())


@pytest.mark.parametrize("name", [slow("Laplace"), *("fractions", "integers", "mixed")])
def test_no_number_of_kinds_takes_far_more_work_than_others(name: str) -> None:
    """700,000 calls take less than a second; sums over the signs of 16 kinds took 16 million."""
    for kinds in (5, 10, 12, 15, 16, 17, 20, 30):
        assert calls(kinds, KINDS[name]) < 700_000, kinds


def test_many_kinds_keep_their_largest_loss_exactly() -> None:
    """Twelve kinds are exactly as private as their losses add up to, whatever sums them."""
    whole = parse(f"Composed([{', '.join(KINDS['integers'](i) for i in range(12))}])")
    most = sum((Fraction(1, 5 + i) for i in range(12)), start=Fraction(0))
    for epsilon, verdict in ((most, "HOLDS"), (most - Fraction(1, 10**12), "REFUTED")):
        assert dpassay.verify(whole, epsilon=epsilon, adjacency="add-remove").verdict == verdict


@pytest.mark.slow
def test_one_value_left_in_floats_is_no_crash() -> None:
    """At δ = 1e-12 the largest of 2^20 values decides, whose law no longer varies in floats."""
    whole = parse(f"Composed([{', '.join(KINDS['integers'](i) for i in range(20))}])")
    found = profile.epsilon(whole, "1e-12", adjacency=Adjacency.ADD_REMOVE)
    most = sum((Fraction(1, 5 + i) for i in range(20)), start=Fraction(0))
    assert Fraction(found.lower) < most
    assert most - Fraction(found.lower) < Fraction(1, 10**4)
    assert Fraction(found.upper) <= most + Fraction(1, 10**4)
