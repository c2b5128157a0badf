"""What a verdict says of the numbers behind it: balls alone, or floats with an error ledger."""

from __future__ import annotations

import pytest

from accountant.numbers import ledger
from verify import exact
from verify.claims import ApproximateDP
from verify.verdict import Rigour, Verdict

STEP = "PoissonSubsampled(Gaussian(standard_deviation='1.1'), sampling_prob='0.01')"


@pytest.mark.parametrize(
    ("mechanism", "rigour"),
    [
        ("Gaussian(standard_deviation=5)", Rigour.PROVED),
        ("Composed(Gaussian(standard_deviation=50), count=100)", Rigour.PROVED),
        (STEP, Rigour.PROVED),
        ("Composed(DiscreteLaplace(scale=30), count=10)", Rigour.PROVED),
        (f"Composed({STEP}, count=100)", Rigour.BOUNDED),
        ("Composed(Laplace(scale=1000), count=1000000)", Rigour.PROVED),
        (
            "Composed(PoissonSubsampled(Laplace(scale=1), sampling_prob='0.01'), count=20)",
            Rigour.BOUNDED,
        ),
    ],
)
def test_floats_with_a_ledger_are_no_balls(mechanism: str, rigour: Rigour) -> None:
    claim = ApproximateDP(
        id="x", mechanism=mechanism, epsilon="3", delta="0.01", adjacency="add-remove"
    )
    found = exact.verify(claim)
    assert found.verdict is Verdict.HOLDS
    assert found.rigour is rigour


def test_watches_nest() -> None:
    with ledger.watched() as outer:
        ledger.note("grid")
        with ledger.watched() as inner:
            ledger.note("saddle")
        assert inner == {"saddle"}
    assert outer == {"grid", "saddle"}
    ledger.note("atoms")  # nobody watches
    assert outer == {"grid", "saddle"}
