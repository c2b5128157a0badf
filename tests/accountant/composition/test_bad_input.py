"""What composition and subsampling refuse: in Python, and on the command line."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

import pytest

from accountant import notation
from accountant.core.adjacency import Direction
from accountant.core.mechanism import Mechanism
from accountant.errors import InvalidInputError, UndecidedError
from accountant.mechanisms import (
    Composed,
    Gaussian,
    PoissonSubsampled,
)
from accountant.questions import profile
from verify.cli import main

MIXED = (
    "Composed(mechanism=[Laplace(scale=5), Laplace(scale='sqrt(3)'), Laplace(scale='sqrt(2)')], "
    "count=3)"
)


def test_a_tolerance_that_is_not_met_says_what_was_reached(
    capsys: pytest.CaptureFixture[str],
) -> None:
    mixed = notation.parse(MIXED)
    assert isinstance(mixed, Mechanism)
    with pytest.raises(UndecidedError, match=r"Reached delta in .* of relative width") as caught:
        profile.delta(mixed, 1, relative_width=Fraction(1, 10**25))
    assert caught.value.interval is not None
    width = ["--relative-width", "1e-25"]
    assert main(["profile", MIXED, "--epsilon", "1", *width]) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Reached delta in" in shown.err
    assert "points are the most" in shown.err
    assert main(["profile", MIXED, "--epsilon", "1", "--relative-width", "1e-2"]) == 0
    assert main(["profile", MIXED, "--epsilon", "1", "--relative-width", "2"]) == 0
    assert main(["profile", MIXED, "--epsilon", "1", "--relative-width", "0"]) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--count", "0"], "count=0"),
        (["--count", "-1"], "count=-1"),
        (["--count", "1.5"], "invalid int value"),
        (["--sampling-prob", "1.5", "--adjacency", "add-remove"], "sampling_prob='1.5' in [0, 1]"),
        (["--sampling-prob", "-1", "--adjacency", "add-remove"], "sampling_prob='-1' in [0, 1]"),
        (["--digits", "0"], "digits=0"),
        (["--adjacency", "neighbours"], "adjacency='neighbours'"),
    ],
)
def test_calibration_refuses_the_same(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    target = ["calibrate", "Gaussian", "--epsilon", "1", "--delta", "1e-5"]
    assert main([*target, *options]) == 2
    assert message in capsys.readouterr().err


def test_a_direction_is_read_by_its_name_or_refused() -> None:
    """A text was taken for both directions."""
    sample = PoissonSubsampled(Gaussian(1), "0.1")
    for direction in Direction:
        named = direction.value
        found = profile.delta(sample, 1, adjacency="add-remove", direction=named)  # type: ignore[arg-type]  # from JSON, say
        assert found == profile.delta(sample, 1, adjacency="add-remove", direction=direction)
    with pytest.raises(InvalidInputError, match="direction='both' to be one of"):
        profile.delta(sample, 1, adjacency="add-remove", direction="both")  # type: ignore[arg-type]  # bad on purpose


def test_an_estimate_below_the_smallest_float_is_not_zero(
    capsys: pytest.CaptureFixture[str],
) -> None:
    question = ["profile", "Composed(Gaussian(standard_deviation=1), count=100)"]
    question += ["--epsilon", "4521.88", "--adjacency", "add-remove"]
    assert main([*question, "--quiet", "--estimate"]) == 0
    estimate = Decimal(capsys.readouterr().out.strip())
    assert main([*question, "--json"]) == 0
    known = Decimal(json.loads(capsys.readouterr().out)["delta"]["lower"])
    assert abs(estimate / known - 1) < Decimal("1e-4")
    assert main([*question, "--json", "--estimate"]) == 0
    shown = json.loads(capsys.readouterr().out)["delta_estimate"]["estimate"]
    assert Decimal(shown) == estimate


@pytest.mark.parametrize("epsilon", ["1e400", "-1e400"])
def test_numbers_beyond_floats_are_refused(epsilon: str) -> None:
    mechanism = Composed(PoissonSubsampled(Gaussian(1), "0.01"), 10)
    with pytest.raises(UndecidedError, match="smaller"):
        profile.delta(mechanism, epsilon, adjacency="add-remove")
