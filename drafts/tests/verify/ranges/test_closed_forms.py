"""The closed forms of the kernel against the accountant, at random exact parameters."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import pytest
from flint import arb, ctx

from dpassay.verifier.expression import Expression
from dpassay.verifier.ranges.claims import resolved
from dpassay.verifier.ranges.domain import Domain, Goal
from dpassay.verifier.ranges.expressions import ZERO, Budget, number, parse, substitute
from dpassay.verifier.ranges.extended import evaluate
from dpassay.verifier.ranges.ranges import Range
from tests.tables import rows

_EQUAL = [text for (text,) in rows(Path(__file__).with_name("closed_forms.txt"))]
_BOUNDS = ["mu(CorrelatedGaussian(dimension=n, mu=a, release_size=False), adjacency='add-remove')"]


def _values(seed: int) -> dict[str, Fraction]:
    rng = random.Random(seed)
    n = rng.randint(1, 8)
    values = {name: Fraction(rng.randint(1, 60), rng.randint(1, 20)) for name in "abc"}
    return {**values, "n": Fraction(n), "k": Fraction(rng.randint(1, n))}


def _formula(text: str, values: dict[str, Fraction], relation: str) -> Range:
    node = parse(text)
    for name, value in values.items():
        node = substitute(node, {name: number(value)})
    told, conditions = resolved(Goal(node, relation, ZERO, Domain()))
    for condition in conditions:
        if condition.relation in ("<=", "<", ">=", ">"):
            low = evaluate(condition.left, {}, Budget())
            high = evaluate(condition.right, {}, Budget())
            assert low.low <= high.high if condition.relation[0] == "<" else high.low <= low.high
    return evaluate(told.left, {}, Budget())


@pytest.mark.parametrize("text", _EQUAL)
def test_closed_forms_equal_the_accountant(text: str) -> None:
    """Both enclosures contain the same number, to 10 digits (the accountant's own widths)."""
    for values in map(_values, range(6)):
        _assert_equal(text, values)


def _assert_equal(text: str, values: dict[str, Fraction]) -> None:
    with ctx.workprec(256):
        known = Expression(text).ball(values)
        found = _formula(text, values, "==")
        difference = found.low.union(found.high) - known
        assert difference.contains(0)
        assert abs(difference) <= arb(10) ** -10 * (1 + abs(known))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("text", _BOUNDS)
def test_bounds_are_not_below_the_accountant(text: str, seed: int) -> None:
    """A bound is at least the exact answer."""
    values = _values(seed)
    with ctx.workprec(256):
        known = Expression(text).ball(values)
        assert known <= _formula(text, values, "<=").high + arb(10) ** -30
