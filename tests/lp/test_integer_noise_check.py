"""The second checker of optimal integer noise accepts proofs and refuses forgeries."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lp.integer_noise import optimal_integer_noise
from lp.integer_problem import IntegerNoiseProblem
from verify import seal
from verify.checker import check
from verify.cli import main
from verify.cli.optimal_integer import certificate


def _certificate(**options: Any) -> dict[str, Any]:
    data = certificate(optimal_integer_noise(IntegerNoiseProblem(**options)))
    again: dict[str, Any] = json.loads(json.dumps(data))
    return again


def problems(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Check data under a new seal."""
    plain = {key: value for key, value in data.items() if key != "seal"}
    return check({**plain, "seal": seal.seal(plain)}).problems


@pytest.mark.parametrize(
    "options",
    [
        {"objective": "variance", "support": 20, "delta": "1e-5", "epsilon": 1},
        {"objective": "absolute", "support": 12, "delta": "0.1", "epsilon": "sqrt(2)"},
        {"objective": "error", "support": 12, "delta": "0.1", "ratio": 3, "sensitivity": 2},
        {"objective": "delta", "support": 6, "ratio": 2, "error_free": "1/2"},
        {"objective": "delta", "support": 6, "epsilon": 0},
        {"objective": "cost", "support": 3, "delta": "0.2", "epsilon": 1, "costs": [1, 5, 9]},
        {"objective": "error", "support": 9, "delta": "0.1", "epsilon": 1, "monotone": True},
        {"objective": "delta", "support": 6, "ratio": 2, "error_free": "1/9", "monotone": True},
    ],
)
def test_accepts_proofs(options: dict[str, Any]) -> None:
    assert problems(_certificate(**options)) == []


def _narrow(data: dict[str, Any]) -> None:
    data["optimum"]["upper"] = data["optimum"]["lower"] = "1.5"


def _raise(data: dict[str, Any]) -> None:
    data["optimum"]["lower"] = "1.6"


def _shift_mass(data: dict[str, Any]) -> None:
    data["law"][8], data["law"][9] = data["law"][9], data["law"][8]


def _lose_mass(data: dict[str, Any]) -> None:
    data["law"][8] = "0"


def _less_delta(data: dict[str, Any]) -> None:
    data["given"]["delta"] = "0.009"


def _other_epsilon(data: dict[str, Any]) -> None:
    data["given"]["epsilon"] = "1.01"


def _negative_test(data: dict[str, Any]) -> None:
    data["tests"][0][0] = "-1"


def _unsteady(data: dict[str, Any]) -> None:
    data["given"]["monotone"] = True
    data["steps"] = ["0"] * 8
    data["law"][7], data["law"][6] = data["law"][6], data["law"][7]


def _more_steps(data: dict[str, Any]) -> None:
    data["steps"] = ["1"]


def _exactly(data: dict[str, Any]) -> None:
    data["exact"] = "3/2"


def _other_delta(data: dict[str, Any]) -> None:
    data["given"]["delta"] = "1e-400000"


def _version(data: dict[str, Any]) -> None:
    data["schema_version"] = 3


def _drop(data: dict[str, Any]) -> None:
    del data["law"]


@pytest.mark.parametrize(
    ("forge", "field"),
    [
        (_narrow, "optimum.upper"),
        (_raise, "optimum.lower"),
        (_shift_mass, "law"),
        (_lose_mass, "law"),
        (_less_delta, "law"),
        (_other_epsilon, "ratio"),
        (_negative_test, "tests"),
        (_unsteady, "law"),
        (_more_steps, "steps"),
        (_exactly, "exact"),
        (_other_delta, "given.delta"),
        (_version, "schema_version"),
        (_drop, ""),
    ],
)
def test_refuses_forgeries(forge: Any, field: str) -> None:
    data = _certificate(objective="variance", support=8, delta="0.01", epsilon=1)
    forge(data)
    assert field in [name for name, _ in problems(data)]


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "noise.json"
    command = ["optimal", "integer-noise", "--epsilon", "1", "--delta", "0.01", "--support", "8"]
    assert main([*command, "--quiet", "--certificate", str(path)]) == 0
    assert main(["check", str(path)]) == 0
    assert (
        "\nVALID  OPTIMAL: the least variance of a law on -8..8 at epsilon = 1"
        in capsys.readouterr().out
    )
    data = json.loads(path.read_text(encoding="utf-8"))
    data["law"][8] = str(Fraction(data["law"][8]) / 2)
    path.write_text(json.dumps(data), encoding="utf-8")
    assert main(["check", str(path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["certificates"][0]["outcome"] == "INVALID"
    path.write_text("[]", encoding="utf-8")
    assert main(["check", str(path)]) == 2
    path.write_text("no", encoding="utf-8")
    assert main(["check", str(path)]) == 2
