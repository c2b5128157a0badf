"""Reports about events: judgements in Python, and as JSON on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dp_accounting import dp_event

from accountant.errors import InvalidInputError, NotApplicableError
from verify.cli import main
from verify.foreign import reports


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
