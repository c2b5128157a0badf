"""Successive questions about one release share a line: as right as the first, and as narrow."""

from fractions import Fraction

import pytest

from dpassay import Account, Composed, Gaussian, PoissonSubsampled, delta, epsilon
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import successive
from tests.near import narrow

ADD_REMOVE = "add-remove"
STEP = PoissonSubsampled(Gaussian("0.9"), "0.02")
WIDE = Fraction(1, 10**9)


def meets(found: Interval, other: Interval) -> bool:
    """Whether two enclosures of one number can both be right."""
    return found.lower <= other.upper and other.lower <= found.upper


@pytest.mark.parametrize(
    "others",
    [(), (Gaussian(30),), (PoissonSubsampled(Gaussian("1.7"), "0.005"), Gaussian(12))],
    ids=["steps", "with noise", "with other steps"],
)
def test_answers_are_those_of_another_engine(others: tuple[Mechanism, ...]) -> None:
    for count in (400, 401, 430, 700, 300):
        whole = Composed((Composed(STEP, count), *others))
        found = epsilon(whole, "1e-6", adjacency=ADD_REMOVE)
        # finer than lines are asked for: by the contours alone
        known = epsilon(whole, "1e-6", adjacency=ADD_REMOVE, relative_width="1e-11")
        assert meets(found, known)
        assert narrow(found, WIDE)


def test_a_curve_is_that_of_another_engine() -> None:
    whole, at = Composed(STEP, 900), [Fraction(i, 4) for i in range(1, 25)]
    found = delta(whole, at, adjacency=ADD_REMOVE)
    known = delta(whole, at, adjacency=ADD_REMOVE, relative_width="1e-11")
    for one, other in zip(found, known, strict=True):
        assert meets(one, other)
        assert narrow(one, WIDE)


def test_the_second_question_is_answered_by_a_line() -> None:
    fresh = PoissonSubsampled(Gaussian("0.93"), "0.02")
    pairs = Composed(fresh, 1500).worst_case(Adjacency.ADD_REMOVE).pairs(None)
    assert successive.inverse(pairs, exact("1e-5"), WIDE) is None
    assert successive.inverse(pairs, exact("1e-6"), WIDE) is not None


def test_one_step_more_costs_more_privacy() -> None:
    account, last = Account(adjacency=ADD_REMOVE), Interval.of_exact(0)
    account.spend(STEP, 200)
    for _ in range(12):
        account.spend(STEP)
        found = account.epsilon("1e-5")
        assert last.upper < found.lower
        last = found


def test_each_step_with_other_noise() -> None:
    account = Account(adjacency=ADD_REMOVE)
    account.spend(STEP, 500)
    for i in range(4):
        account.spend(PoissonSubsampled(Gaussian(Fraction(100 + i, 100)), "0.01"), 20)
        found = account.epsilon("1e-5")
        whole = account.mechanism
        assert whole is not None
        known = epsilon(whole, "1e-5", adjacency=ADD_REMOVE, relative_width="1e-11")
        assert meets(found, known)
