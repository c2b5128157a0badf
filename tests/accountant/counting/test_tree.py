"""Trees for continual counting: closed counts against enumeration, and the printed identities."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.counting.tree import (
    Digits,
    Tree,
)
from accountant.errors import InvalidInputError


@given(
    arity=st.integers(2, 30),
    steps=st.integers(1, 200),
    digits=st.sampled_from(list(Digits)),
)
def test_counting_digits_is_summing_them(arity: int, steps: int, digits: Digits) -> None:
    tree = Tree(arity, steps, digits)
    written = [tree.written(t) for t in range(1, steps + 1)]
    for step, found in enumerate(written, 1):
        assert step == sum(digit * arity**level for level, digit in enumerate(found))
        assert all(-tree.lowest <= digit <= arity - 1 - tree.lowest for digit in found)
    assert tree.vertices() == sum(abs(digit) for found in written for digit in found)
    assert tree.capacity(tree.height) >= steps
    assert tree.height == 1 or tree.capacity(tree.height - 1) < steps


@pytest.mark.parametrize("arity", [2, 3, 4, 17, 19, 20])
@pytest.mark.parametrize("height", [1, 2, 5, 100])
def test_errors_at_capacity(arity: int, height: int) -> None:
    """Lemmas 3.5 and 4.7, and Claim 1 with its second term."""
    k, h = Fraction(arity), height
    plain = Tree(arity, arity**h - 1, Digits.PLAIN)
    assert plain.height == h
    assert plain.mean_squared_error() == (k - 1) * h**3 / (1 - k**-h)
    signed = Tree(arity, (arity // 2) * ((arity**h - 1) // (arity - 1)), Digits.SIGNED)
    assert signed.height == h
    expected = (
        k * (1 - k**-2) * h**3 / (2 * (1 - k**-h))
        if arity % 2
        else k * h**3 / (2 * (1 - k**-h)) + (k - 2) * h**2 / (2 * (k - 1))
    )
    assert signed.mean_squared_error() == expected


def test_ranges() -> None:
    with pytest.raises(InvalidInputError, match="arity=1"):
        Tree(1, 5, Digits.PLAIN)
    with pytest.raises(InvalidInputError, match="steps=0"):
        Tree(2, 0, Digits.PLAIN)
    with pytest.raises(InvalidInputError, match="steps=10000000"):
        Tree(2, 10**7, Digits.SIGNED).noise_variables()
