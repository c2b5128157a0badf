"""Accountants of others, and wrong ones, on a table of training runs."""

from __future__ import annotations

import json
import math
import sys
import types
from pathlib import Path

import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import brentq
from scipy.stats import norm

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.cli import main
from dpassay.verifier.foreign.accountants import (
    SETTINGS,
    Setting,
    check_accountant,
    read_settings,
    verdict,
)
from dpassay.verifier.foreign.drop_in import EventAccountant, OpacusAccountant
from dpassay.verifier.verdict import Verdict

FEW = (SETTINGS[0], SETTINGS[12], Setting("0.8", "1/100", 10, "1e-5"))


def central_limit(noise_multiplier: float, sample_rate: float, steps: int, delta: float) -> float:
    """Return the ε of μ-GDP, μ = q √(T (e^{1/σ²} − 1)): a limit, and no bound (Bu et al. 2020)."""
    mu = sample_rate * math.sqrt(steps * math.expm1(noise_multiplier**-2))

    def excess(epsilon: float) -> float:
        far = norm.cdf(-mu / 2 - epsilon / mu)
        return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * far - delta)

    return float(brentq(excess, 0.0, 300.0))


def test_the_central_limit_is_no_bound() -> None:
    rows = check_accountant(central_limit, FEW)
    assert [row.verdict for row in rows] == [Verdict.REFUTED, Verdict.HOLDS, Verdict.REFUTED]
    assert verdict(rows) is Verdict.REFUTED
    assert f"{rows[0].true:.6g}" == "1.63621"
    assert rows[0].excess is not None
    assert abs(float(rows[0].excess) + 0.0349) < 1e-4


@pytest.mark.parametrize("accountant", [PLDAccountant, RdpAccountant])
def test_the_accountants_of_dp_accounting_are_not_below(accountant: type) -> None:
    rows = check_accountant(accountant, FEW[:2])
    assert verdict(rows) is Verdict.SUPPORTED
    assert all(float(row.excess or 0) < 0.11 for row in rows)


@pytest.mark.parametrize("accountant", [EventAccountant(), EventAccountant, OpacusAccountant])
def test_our_own_are_at_the_upper_end(accountant: object) -> None:
    rows = check_accountant(accountant, FEW)
    assert verdict(rows) is Verdict.SUPPORTED
    assert all(row.excess is not None and 0 <= row.excess < 1e-5 for row in rows)


def test_what_raises_or_is_no_number_is_said() -> None:
    def odd(sigma: float, q: float, T: int, delta: float, order: int = 2) -> object:
        if T > 1000:
            raise RuntimeError("too long")
        return math.inf if q == 1 else math.nan

    rows = check_accountant(odd, FEW)
    assert [row.problem for row in rows] == ["raised RuntimeError: too long", "", "returned nan"]
    assert [row.verdict for row in rows] == [Verdict.PENDING, Verdict.HOLDS, Verdict.PENDING]
    assert verdict(rows) is Verdict.UNDECIDED


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = types.ModuleType("an_accountant")
    vars(mine)["limit"] = central_limit
    monkeypatch.setitem(sys.modules, "an_accountant", mine)
    runs = tmp_path / "runs.csv"
    runs.write_text("noise_multiplier,sampling_prob,steps,delta\n1.1,256/60000,7032,1e-5\n")
    asked = ["check-accountant", "an_accountant:limit", "--settings", str(runs)]
    assert main(asked) == 1
    assert "3.49% too small" in capsys.readouterr().out
    assert main([*asked, "--json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["verdict"] == "REFUTED"
    assert row["true"]["lower"].startswith("1.6362122")
    assert main([*asked, "--quiet"]) == 1
    assert capsys.readouterr().out == "REFUTED\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1 to 10000 settings"),
        ("noise_multiplier,sampling_prob,steps\n1,1,1\n", "line 2: Expected the columns"),
        ("noise_multiplier,sampling_prob,steps,delta\n0,1,1,1e-5\n", "noise_multiplier='0' > 0"),
        ("noise_multiplier,sampling_prob,steps,delta\n1,2,1,1e-5\n", "sampling_prob"),
        ("noise_multiplier,sampling_prob,steps,delta\n1,1,1.5,1e-5\n", "whole number"),
        ("noise_multiplier,sampling_prob,steps,delta\n1,1,1,nan\n", "delta"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=message):
        read_settings(path)


@pytest.mark.parametrize("accountant", [3, lambda x: x, lambda sigma, q, steps, delta, order: 1])
def test_what_cannot_be_asked_is_refused(accountant: object) -> None:
    with pytest.raises(InvalidInputError, match="Expected a function of"):
        check_accountant(accountant)
