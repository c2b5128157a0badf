"""Answers come without a width; a named width is kept or refused; and epsilon is not negative."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from flint import arb

import dpassay
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.interval import COMPOSED_WIDTH, Interval, enclose
from dpassay.accountant.numbers.solve import root
from dpassay.accountant.questions import profile
from dpassay.accountant.questions.estimate import Estimate
from dpassay.accountant.questions.profile import answer, joined, largest, smallest

WHOLE = Interval(Decimal(0), Decimal(1))
SAMPLE = dpassay.PoissonSubsampled(dpassay.Gaussian(standard_deviation="0.6"), "0.001")


@pytest.mark.parametrize("width", [None, "1e-9"])
def test_an_answer_that_says_nothing_is_refused(width: str | None) -> None:
    """What every probability lies in is no answer about one of them; an exact 0 is one."""

    def ask(width: Fraction) -> Interval:
        raise UndecidedError("No.")

    wider = Interval(Decimal(-1), Decimal(2))
    for bounds in (WHOLE, wider):
        with pytest.raises(UndecidedError, match=r"No\. It is only known .* lies in \[0, 1\]"):
            answer(ask, width, COMPOSED_WIDTH, lambda found=bounds: found, whole=WHOLE)  # type: ignore[misc]
    infinite = Interval(Decimal("Infinity"), Decimal("Infinity"))
    assert answer(ask, None, COMPOSED_WIDTH, lambda: infinite, whole=infinite) == infinite


def test_an_enclosure_of_another_number_is_not_taken() -> None:
    """What a refusal within a computation encloses is not the value of the computation."""

    def refuse(*_: object) -> arb:
        raise UndecidedError("No.", interval=WHOLE)

    with pytest.raises(UndecidedError) as refusal:
        enclose(refuse)
    assert refusal.value.interval is None
    with pytest.raises(UndecidedError) as refusal:
        root(refuse, (Fraction(0), Fraction(1)), relative_width=COMPOSED_WIDTH)
    assert refusal.value.interval is None


def test_parts_that_are_refused_still_bound_the_whole() -> None:
    def refuse() -> Interval:
        raise UndecidedError("No.", interval=Interval(Decimal("0.1"), Decimal("0.5")))

    def known() -> Interval:
        return Interval(Decimal("0.3"), Decimal("0.4"))

    for join, ends in ((largest, ("0.3", "0.5")), (smallest, ("0.1", "0.4"))):
        with pytest.raises(UndecidedError) as refusal:
            joined([known, refuse], join)
        assert refusal.value.interval == Interval(*map(Decimal, ends))


def test_estimates_carry_an_error_and_read_any_notation() -> None:
    noise = dpassay.Gaussian(standard_deviation=1)
    truth = dpassay.delta(noise, "1/2")
    for at in (0.5, "1/2", Fraction(1, 2), Decimal("0.5")):
        found = dpassay.estimate_delta(noise, at)
        assert isinstance(found, Estimate)
        assert found.error < 1e-12
        assert abs(Fraction(float(found)) - Fraction(truth.lower)) <= 2 * Fraction(found.error)


# How private a release is, is said by ε ≥ 0; the profile below 0 has to be asked for by name.


@pytest.mark.parametrize(
    "given",
    [
        {"mu": 1},
        {"mu": 0},
        {"zcdp": "0.5"},
        {"pure": 1},
        {"approximate": (1, "0.1")},
        {"renyi": (2, 1)},
    ],
)
def test_conversions_agree_that_the_least_epsilon_is_zero(given: dict[str, object]) -> None:
    assert dpassay.convert(**given, delta="0.99") == 0  # type: ignore[arg-type]


def test_the_question_and_its_estimate_agree() -> None:
    for noise in ("Gaussian(1)", "Laplace(1)", "RandomizedResponse(1)", "DiscreteLaplace(1)"):
        assert dpassay.epsilon(noise, "0.9") == 0
        assert dpassay.estimate_epsilon(noise, 0.9) == 0
        assert dpassay.epsilon(noise, 1) == 0


def test_the_inverse_of_the_profile_is_there_by_name() -> None:
    found = profile.signed_epsilon(dpassay.Gaussian(1), "0.9")
    assert found.upper < Decimal(-1)
    back = dpassay.delta(dpassay.Gaussian(1), found.upper)
    assert abs(back.upper - Decimal("0.9")) < Decimal("1e-10")
