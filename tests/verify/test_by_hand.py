"""What a refutation says to a reader, and its program of the standard library."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dpassay
from dpassay.verifier import report
from dpassay.verifier.refutation import by_hand

CLAIMS = {
    "Gaussian(3) is (1, 1e-5)-DP": "the published value is above 9.5",
    "Gaussian(1) is (6, 1e-13)-DP": "the published value is above 6.5",
    "Gaussian(3) is 0.1-GDP": "the published value is above 0.5",
    "Gaussian(3, 2) is 1-DP": "the published value is above 5.5",
    "Composed(Gaussian(3), 10) is (1, 1e-5)-DP": "the mean of the 10 published values is above 1.4",
    "Composed([Gaussian(3), Gaussian(4)]) is (0.5, 1e-5)-DP": "the release, along",
    "PoissonSubsampled(Gaussian(1), 0.1) is (0.5, 1e-5)-DP under add-remove": "above 2.5131",
    "Laplace(1) is 0.5-DP": "the published value is above 0.75",
    "Laplace(2, 3) is (0.5, 1e-3)-DP": "the published value is above 2",
    "Laplace(1) is 0.5-GDP": "the published value is above 0.75",
    "Logistic(1) is 0.5-DP": "the published value is above 1.6193",
    "DiscreteLaplace(2) is 0.2-DP": "the published value is at least 1",
    "DiscreteGaussian(4) is (0.5, 1e-5)-DP": "the published value is at least 3",
    "RandomizedResponse(2) is 1-DP": "the output is the true category under P",
    "BoundedCountNoise(epsilon=2.2, eta='0.01', support=8) is (2.2, 1.4e-6)-DP": "in {0, 2, 3",
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_program_prints_what_is_proved_without_dpassay(claim: str) -> None:
    """To 1e-9: the cut has 15 digits, and no probability here is steeper than e^40."""
    found = by_hand(dpassay.verify(claim))
    assert found is not None
    assert CLAIMS[claim] in found.event
    assert max(map(len, found.program)) <= 80
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", "\n".join(found.program)],
        capture_output=True,
        text=True,
        check=True,
    )
    p, q, left, sign, right = run.stdout.split()
    assert sign == ">"
    assert float(left) > float(right)
    assert float(p) == pytest.approx(float(found.p), rel=1e-9, abs=0)
    assert float(q) == pytest.approx(float(found.q), rel=1e-9, abs=0)
    less, _, more = found.inequality.partition(" > ")
    told = (less.rpartition(" = ")[2], more.split(",")[0])
    assert float(left) == pytest.approx(float(told[0]), rel=1e-6, abs=0)
    assert float(right) == pytest.approx(float(told[1]), rel=1e-6, abs=0)


@pytest.mark.parametrize(
    "claim",
    [
        "Gaussian(3) is 1e400-DP",
        "Gaussian('1e300', '1e301') is 1-DP",
        "Gaussian(1) is (60, 1e-900)-DP",
        "Skellam(10) is (0.5, 1e-5)-DP",
        "Gaussian(3) is 1000-DP",
    ],
)
def test_where_floats_do_not_tell_there_is_no_program(claim: str) -> None:
    found = by_hand(dpassay.verify(claim))
    assert found is not None
    assert found.program == ()
    assert found.event


def test_a_refutation_beyond_floats_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    for claim in ("Gaussian(3) is 1e400-DP", "Laplace('1e-400') is 1-DP"):
        report.show(dpassay.verify(claim), sys.stdout)
        assert capsys.readouterr().out.startswith("REFUTED")


def test_what_has_no_event_has_none() -> None:
    assert by_hand(dpassay.verify("Gaussian(3) is 0.01-zCDP")) is None
    assert by_hand(dpassay.verify("Gaussian(3) is 1-GDP")) is None
