"""Events of dp-accounting, and the values that its own unit tests expect.

The expected values are those of dp_accounting/pld/pld_privacy_accountant_test.py (google/
differential-privacy, commit 0c0e3fd) with the tolerances stated there, and of prv_accountant's
tests/test_accountant.py (commit 1d9048b), which compare with the closed form of a Gaussian.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from dp_accounting import dp_event
from scipy.stats import norm

from accountant import profile
from accountant.errors import InvalidInputError, NotApplicableError
from accountant.mechanisms import Composed, Gaussian, PoissonSubsampled
from verify.cli import main
from verify.foreign import events, reports

SUBSAMPLED = dp_event.PoissonSampledDpEvent(0.2, dp_event.GaussianDpEvent(0.5))
TABLE = [
    # event, ε, δ, tolerance of δ, name of the test
    (dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(3**0.5), 3), 1, 0.126936, 1e-3,
     "test_gaussian_basic"),
    (dp_event.SelfComposedDpEvent(SUBSAMPLED, 3), 1, 0.15594, 1e-3,
     "test_self_composed_subsampled_gaussian"),
    (dp_event.ComposedDpEvent([
        dp_event.SelfComposedDpEvent(dp_event.LaplaceDpEvent(1), 3),
        dp_event.SelfComposedDpEvent(dp_event.LaplaceDpEvent(2), 2)]), 4, 1e-14, 1e-6,
     "test_laplace_basic"),
    (dp_event.ComposedDpEvent([
        dp_event.SelfComposedDpEvent(dp_event.DiscreteLaplaceDpEvent(1, 1), 3),
        dp_event.SelfComposedDpEvent(dp_event.DiscreteLaplaceDpEvent(0.5, 1), 2)]), 4, 0.0, 1e-6,
     "test_discrete_laplace_basic"),
]  # fmt: skip


@pytest.mark.parametrize(("event", "epsilon", "delta", "tolerance", "name"), TABLE)
def test_expected_values_of_dp_accounting(
    event: object, epsilon: float, delta: float, tolerance: float, name: str
) -> None:
    mechanism = events.mechanism_of(event)
    width = Fraction(1, 10**4)
    found = profile.delta(mechanism, epsilon, adjacency="add-remove", relative_width=width)
    assert abs(float(found.lower) - delta) <= tolerance, name


def test_subsampled_laplace_of_dp_accounting_has_the_expected_largest_loss() -> None:
    # test_poisson_subsampled_laplace expects ε = 2.46964 ± 1e-3 at δ = 1e-14 for three steps
    event = dp_event.PoissonSampledDpEvent(0.2, dp_event.LaplaceDpEvent(0.5))
    one = profile.epsilon(events.mechanism_of(event), 0, adjacency="add-remove")
    assert abs(3 * float(one.upper) - 2.46964) < 1e-3


@pytest.mark.parametrize("count", [10_000, 10_001, 10_002])
def test_expected_values_of_prv_accountant(count: int) -> None:
    mu = count**0.5 / 100
    expected = norm.cdf(-4 / mu + mu / 2) - norm.cdf(-4 / mu - mu / 2) * 2.718281828459045**4
    whole = Composed(PoissonSubsampled(Gaussian(standard_deviation=100), 1), count)
    found = profile.delta(whole, 4, adjacency="add-remove")
    assert abs(float(found.lower) / expected - 1) < 1e-10


def test_judgements() -> None:
    event = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(10.0), 100)
    too_large = reports.judge(event, 5, "1e-6")
    assert too_large.is_upper_bound is True
    assert 0.023 < too_large.excess.lower < 0.0235
    too_small = reports.judge(event, "4.88", "1e-6")
    assert too_small.is_upper_bound is False
    assert "below the exact epsilon" in too_small.reason
    equal = reports.judge(event, too_small.epsilon.lower, "1e-6")
    assert equal.is_upper_bound in (None, False)


def test_json_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    event = {
        "type": "SelfComposed",
        "count": 7032,
        "event": {
            "type": "PoissonSampled",
            "sampling_probability": "256/60000",
            "event": {"type": "Gaussian", "noise_multiplier": "1.1"},
        },
    }
    reports = [
        {"event": event, "epsilon": "1.6363", "delta": "1e-5", "accountant": "PLDAccountant"},
        {"event": event, "epsilon": "1.6", "delta": "1e-5"},
    ]
    path = tmp_path / "reports.json"
    path.write_text(json.dumps(reports))
    assert main(["verify", "--event", str(path), "--json", "--jobs", "1"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [finding["verdict"] for finding in findings] == ["HOLDS", "REFUTED"]
    path.write_text("{")
    assert main(["verify", "--event", str(path)]) == 2
    path.write_text("[3]")
    assert main(["verify", "--event", str(path)]) == 2


def test_refusals() -> None:
    with pytest.raises(NotApplicableError, match="ZCDpEvent"):
        reports.judge(dp_event.ZCDpEvent(0.5), 1, "1e-5")
    assert reports.judge(dp_event.NonPrivateDpEvent(), 1, "1e-5").is_upper_bound is False
    with pytest.raises(InvalidInputError, match="noise_multiplier"):
        reports.judge({"type": "Gaussian"}, 1, "1e-5")
    with pytest.raises(InvalidInputError, match="epsilon=0 > 0"):
        reports.judge({"type": "Laplace", "noise_multiplier": 1}, 0, "1e-5")
    with pytest.raises(InvalidInputError, match="report 0"):
        reports.claims({"event": {}})
