"""The checker's errors of counting trees against those of the accountant, exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest

from verify import functions
from verify.checker.functions import FUNCTIONS

STEPS = [1, 2, 3, 9, 32, 180, 181, 1000, 10**6, 10**30, 10**300, (19**40 - 1) // 2]


@pytest.mark.parametrize(
    "name", ["tree_mse", "tree_height", "signed_tree_mse", "signed_tree_height"]
)
@pytest.mark.parametrize("arity", [2, 3, 4, 8, 19, 20])
def test_trees(name: str, arity: int) -> None:
    for steps in STEPS:
        at = Fraction(arity), Fraction(steps)
        assert FUNCTIONS[name](*at) == functions.FUNCTIONS[name](*at)


@pytest.mark.parametrize("steps", [*STEPS, 2**300 - 1])
def test_honaker(steps: int) -> None:
    at = Fraction(steps)
    assert FUNCTIONS["honaker_mse"](at) == functions.FUNCTIONS["honaker_mse"](at)
