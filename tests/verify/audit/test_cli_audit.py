"""`dpassay audit` end to end, `assert_private`, neighbours, and what is known without a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay.accountant import notation
from dpassay.accountant.errors import AdjacencyError
from dpassay.verifier.ask import read_claim
from dpassay.verifier.audit import AuditResult, PrivacyError, assert_private, auditor, neighbours
from dpassay.verifier.cli import main
from dpassay.verifier.verdict import Finding

MODULE = """\
import numpy as np

def noisy(dataset, rng):
    return dataset + rng.laplace(0, 1)

def total(dataset, rng):
    return sum(dataset) + rng.laplace(0, 1)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "releases.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "releases", raising=False)
    return tmp_path


def test_a_mechanism_is_audited(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "Laplace(scale=1)", "--claim", "1", "--seed", "1"]) == 0
    assert capsys.readouterr().out.startswith("NOT_REFUTED  (1, 0)-DP of Laplace(scale=1)")
    code = main(["audit", "Laplace(scale=1)", "--claim", "0.8", "--seed", "1", "--json"])
    data = json.loads(capsys.readouterr().out)
    assert code == 1
    assert data["verdict"] == "REFUTED"
    assert data["tested"] == {"epsilon": "0.8", "delta": "0"}


@pytest.mark.slow
def test_the_certificate_is_checked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for extra in ([], ["--until-refuted"], ["--until"]):
        arguments = ["audit", "releases:noisy", "--claim", "0.5", "--pair", "0", "1", "--seed", "2"]
        arguments += ["--samples", "1e4", "--confidence", "0.999", "--certificate", "c.json"]
        assert main([*arguments, *extra, "--quiet"]) == 1
        assert capsys.readouterr().out == ""
        assert main(["check", "c.json"]) == 3
        _, rests, *fixed, theorem, _, _ = capsys.readouterr().out.splitlines()
        fixed = [line for line in fixed if line.startswith("  rests on")]
        assert all("it has 0.9025 of the risk" in line for line in fixed)  # 0.95 of the values'
        assert rests.startswith("  rests on: that the runs were drawn from the audited program")
        level = "0.0005" if extra else "0.001"  # of several audits, each has a part
        assert theorem.startswith(f"  theorem:  REFUTED at significance {level} ")
        assert theorem.endswith(': "noisy" is (0.5, 0)-DP')


@pytest.mark.slow
def test_neighbours_are_searched(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["audit", "releases:total", "--claim", "0.5", "--search", "table"]
    assert main([*arguments, "--samples", "8000", "--seed", "3", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["pairs_searched"] > 5


def test_a_command_is_audited(capsys: pytest.CaptureFixture[str]) -> None:
    draw = "print({dataset} + (random.random() < 0.1))"
    script = f"import random; random.seed({{seed}}); [{draw} for i in range({{size}})]"
    target = f'{sys.executable} -c "{script}"'
    arguments = ["audit", target, "--command", "--claim", "1", "--pair", "0", "1"]
    assert main([*arguments, "--samples", "400", "--seed", "3"]) == 1
    assert "REFUTED" in capsys.readouterr().out


def test_claims_are_read() -> None:
    assert read_claim("epsilon=1, delta=1e-5") == {"epsilon": "1", "delta": "1e-5"}
    assert repr(read_claim("Gaussian(standard_deviation=2)")).startswith("Gaussian")


def test_a_claim_may_name_its_neighbours(capsys: pytest.CaptureFixture[str]) -> None:
    said, few = "Laplace(1) is 2-DP, for neighbours by replace-one", ["--samples", "500", "--quiet"]
    assert main(["audit", said, *few]) == 0
    assert not dpassay.audit(said, samples=500, seed=1).refuted
    assert not dpassay.audit("Laplace(1)", "2-DP under add-remove", samples=500, seed=1).refuted
    assert main(["audit", said, "--adjacency", "add-remove", *few]) == 2
    assert "The claim states its own adjacency" in capsys.readouterr().err
    assert main(["audit", "Laplace(1)", "--claim", "2-DP under swap", *few]) == 2
    assert "Did you mean 'replace-one'?" in capsys.readouterr().err


def test_assert_private() -> None:
    noise = notation.parse("Laplace(scale=1)")
    assert not assert_private(noise, 1, samples=20_000).refuted
    with pytest.raises(PrivacyError, match="REFUTED") as caught:
        assert_private(noise, "0.8", samples=50_000)
    assert caught.value.result.refuted


def test_assert_private_draws_for_half_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = 0

    class Clock:
        """A clock on which every run takes 1/4096 second, and nothing else any time."""

        @staticmethod
        def perf_counter() -> float:
            return drawn / 4096

    def slow(dataset: int, rng: np.random.Generator) -> float:
        nonlocal drawn
        drawn += 1
        return dataset + float(rng.geometric(1 - np.exp(-1)) - rng.geometric(1 - np.exp(-1)))

    monkeypatch.setattr(auditor, "time", Clock)
    result = assert_private(slow, 1, pairs=[(0, 1)], seconds=2)
    assert isinstance(result, AuditResult)
    assert result.samples + result.training == 2048
    assert 2 * 2048 <= drawn <= 2 * 2048 + 512


@pytest.mark.parametrize("kind", ["count", "number", "vector", "table", "rows"])
def test_neighbours_are_distinct(kind: str) -> None:
    pairs = neighbours(kind)
    assert len(pairs) >= 5
    assert len({repr(pair) for pair in pairs}) == len(pairs)
    assert all(repr(first) != repr(second) for first, second in pairs)


def test_relations_of_tables() -> None:
    for first, second in neighbours("table", adjacency="add-remove"):
        assert len(second) == len(first) + 1
    for first, second in neighbours("table", adjacency="replace-one"):
        assert len(first) == len(second)
        assert sum(a != b for a, b in zip(first, second, strict=True)) == 1
        assert all(0 <= value <= 1 for value in [*first, *second])
    with pytest.raises(AdjacencyError):
        neighbours("table", adjacency="one")


def test_delta_is_the_decimal_that_was_written(capsys: pytest.CaptureFixture[str]) -> None:
    main(["audit", "Laplace(scale=1)", "--delta", "1e-5", "--samples", "2000", "--json"])
    assert json.loads(capsys.readouterr().out)["tested"]["delta"] == "1e-5"


# A claim about a mechanism of this package is decided exactly; runs are for the rest.


def test_what_holds_is_proved_without_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(dpassay.Gaussian, "sample", drawn)
    found = dpassay.assert_private(dpassay.Gaussian("3.74"), epsilon=1, delta="1e-5")
    assert isinstance(found, Finding)
    assert found.holds


@pytest.mark.parametrize(
    ("mechanism", "claim", "refuted"),
    [
        ("Laplace(2)", {"epsilon": "0.5"}, False),
        ("Laplace(2)", {"epsilon": "0.4999"}, True),
        ("Gaussian(2)", {"mu": "0.5"}, False),
        ("Gaussian(2)", {"mu": "0.49999"}, True),
        ("Gaussian(2)", {"rho": "0.125"}, False),
        ("Gaussian(2)", {"rho": "0.1249"}, True),
        ("RandomizedResponse(1)", {"epsilon": 1}, False),
        ("RandomizedResponse(1)", {"epsilon": "0.99999"}, True),
    ],
)
def test_every_notion_is_decided(mechanism: str, claim: dict[str, Any], refuted: bool) -> None:
    found = dpassay.audit(mechanism, **claim)
    assert isinstance(found, Finding)
    assert found.refuted is refuted
    assert found.holds is not refuted
    if refuted:
        with pytest.raises(PrivacyError):
            dpassay.assert_private(dpassay.parse(mechanism), **claim)


def test_of_several_points_the_refuted_one_counts() -> None:
    found = dpassay.audit(dpassay.Laplace(2), [("0.5", 0), ("0.4", "1e-3")])
    assert found.refuted
    true = dpassay.audit(dpassay.Laplace(2), [("0.5", 0), ("0.6", 0)])
    assert isinstance(true, Finding)
    assert true.holds


def test_runs_that_are_asked_for_are_drawn_and_the_truth_is_said() -> None:
    found = dpassay.audit("Gaussian(3.7)", epsilon=1, delta="1e-5", samples=2000, seed=1)
    assert isinstance(found, AuditResult)
    assert found.outcome == "NOT_REFUTED"
    assert found.verdict == "REFUTED"
    assert found.refuted
    assert str(found).startswith("REFUTED  ")
    data = found.to_json()
    assert data["verdict"] == "REFUTED"
    assert data["notes"][0].startswith("known exactly, without any run: REFUTED: Gaussian")
    assert found.certificate()["theorem"]["verdict"] == "NOT_REFUTED"  # all that these runs prove
    with pytest.raises(PrivacyError, match="REFUTED"):
        dpassay.assert_private(dpassay.Gaussian("3.7"), (1, "1e-5"), samples=2000)


@pytest.mark.parametrize("until", [False, True])
@pytest.mark.parametrize(("claim", "code"), [("1,1e-5", 1), ("1.1,1e-5", 0)])
def test_the_command_line_has_the_same_rule(
    until: bool, claim: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["audit", "Gaussian(3.7)", "--claim", claim, "--samples", "2000", "--seed", "1"]
    assert main([*asked, "--json", *["--until-refuted"] * until]) == code
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == ("REFUTED" if code else "NOT_REFUTED")
    assert ("REFUTED" in found["notes"][0]) == bool(code)


def test_a_relation_that_matters_has_to_be_given() -> None:
    noise = dpassay.parse('PoissonSubsampled(Gaussian(1), "0.1")')
    with pytest.raises(AdjacencyError):
        dpassay.assert_private(noise, epsilon=1, delta="1e-5")
    options: dict[str, Any] = {"epsilon": 1, "delta": "1e-1", "adjacency": "add-remove"}
    found = dpassay.assert_private(noise, **options)
    assert isinstance(found, Finding)
    assert found.holds


def test_a_program_is_sampled() -> None:
    def mechanism(dataset: float, size: int, rng: np.random.Generator) -> Any:
        return np.where(rng.random(size) < 0.3, 1 - dataset, dataset)

    found = dpassay.assert_private(mechanism, 1, pairs=[(0, 1)], samples=2000)
    assert isinstance(found, AuditResult)
    assert not any(note.startswith("known") for note in found.notes)
