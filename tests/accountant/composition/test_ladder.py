"""Products that several engines apply to: the best first, the grid last."""

from __future__ import annotations

from fractions import Fraction

import dpassay
from accountant.composition.choose import LadderPair


def rungs(mechanism: dpassay.Composed) -> list[str]:
    (pair,) = mechanism.worst_case(None).remove
    assert isinstance(pair, LadderPair)
    return [type(rung).__name__ for rung in pair.rungs]


def test_the_order_of_engines() -> None:
    mixed = dpassay.Composed([dpassay.Laplace(scale=5), dpassay.Gaussian(standard_deviation=4)], 3)
    assert rungs(mixed) == ["SmoothPair", "GridPair"]
    lists = dpassay.Composed(dpassay.DiscreteGaussian(parameter="sqrt(2)"), 3)
    assert rungs(lists) == ["CirclePair", "PairedPair", "GridPair"]


def test_the_next_engine_answers_where_one_refuses() -> None:
    few = dpassay.Composed([dpassay.Laplace(scale=5), dpassay.Gaussian(standard_deviation=4)], 2)
    found = dpassay.delta(few, "0.5", relative_width=Fraction(1, 1000))
    assert found.overlaps(dpassay.delta(few, "0.5", method="grid", relative_width=Fraction(1, 50)))
