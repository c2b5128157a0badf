"""`dpassay stream` with every counter: chosen by a budget, interrupted, resumed, refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from accountant import notation
from accountant.counting.streams import StateFile
from tests.verify.stream_shell import Shell

COUNTERS = [
    "KaryTree(steps=200, arity=5, epsilon=1)",
    "BinaryTree(steps=200, epsilon=1)",
    "BridgedTree(steps=200, arities=[4, 5, 10], epsilon=1)",
    "DelannoyCounter(steps=200, levels=3, epsilon=1)",
    "HonakerTree(steps=200, mu=1)",
    "SmoothBinary(steps=200, mu='1/2')",
    "SquareRootFactorization(steps=200, mu=1)",
]


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capsys)


def ones(count: int) -> str:
    return "1\n" * count


@pytest.mark.parametrize("counter", COUNTERS)
def test_an_interrupted_stream_goes_on_and_releases_nothing_twice(
    counter: str, shell: Shell, tmp_path: Path
) -> None:
    """The numbers that are out do not come again, those that follow have numbers of their own."""
    options = ["--mechanism", counter, "--state", str(tmp_path / "state"), "--json"]
    first = [json.loads(line) for line in shell(ones(83), *options)]
    second = [json.loads(line) for line in shell(ones(200), *options)]
    assert [entry["step"] for entry in first + second] == list(range(1, 201))
    assert "83 numbers are counted already; the output goes on with number 84" in shell.errors
    assert shell(ones(200), *options) == []
    with StateFile(tmp_path / "state") as state:
        saved = state.load()
    assert saved is not None
    assert saved.counted == 200
    assert notation.parse(saved.record["mechanism"]) == notation.parse(counter)


@pytest.mark.parametrize("counter", COUNTERS)
def test_bad_lines_state_and_length(counter: str, shell: Shell, tmp_path: Path) -> None:
    """The line is named; another stream, mechanism or a damaged file is refused."""
    state = tmp_path / "state"
    options = ["--mechanism", counter, "--state", str(state)]
    assert len(shell(ones(4) + "x\n", *options, code=2)) == 4
    assert "Line 5: Expected item='x'" in shell.errors
    assert shell(ones(4) + "1.5\n", *options, code=2) == []
    assert "Line 5: Expected item='1.5' in [0, 1]" in shell.errors
    assert shell("0\n" * 9, *options, code=2) == []
    assert "not those that the state file has counted" in shell.errors
    other = COUNTERS[counter == COUNTERS[0]]
    assert shell(ones(9), "--mechanism", other, "--state", str(state), code=2) == []
    assert "The state file is that of" in shell.errors
    assert len(shell(ones(201), *options, code=2)) == 196
    assert "Line 201: expected at most 200 numbers" in shell.errors
    state.write_text(state.read_text().replace("counted", "cuonted"))
    assert shell(ones(9), *options, code=2) == []
    assert "corrupted" in shell.errors


@pytest.mark.parametrize(
    ("options", "mechanism"),
    [
        (["--epsilon", "1", "--steps", "1000"], "BridgedTree(steps=1000, arities=[6, 14, 14]"),
        pytest.param(
            ["--epsilon", "1", "--delta", "1e-6", "--steps", "100000"],
            "SquareRootFactorization(",
            marks=pytest.mark.slow,
        ),
        (["--epsilon", "1", "--steps", "99", "--contributions", "3"], "contributions=3"),
    ],
)
def test_the_best_for_a_budget(options: list[str], mechanism: str, shell: Shell) -> None:
    """Without a mechanism the best that is known is taken, and named on stderr."""
    assert len(shell(ones(3), *options)) == 3
    assert mechanism in shell.errors
    assert "mean squared error" in shell.errors
    assert len(shell(ones(3), *options, "--quiet")) == 3
    assert shell.errors == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Expected --epsilon and --steps"),
        (["--epsilon", "1"], "Expected --epsilon and --steps"),
        (["--epsilon", "0", "--steps", "9"], "Expected epsilon='0' > 0"),
        (["--epsilon", "-1", "--steps", "9"], "Expected epsilon='-1' > 0"),
        (["--epsilon", "1", "--steps", "0"], "Expected steps=0 ≥ 1"),
        (["--epsilon", "1", "--steps", "2.5"], "steps='2.5' to be an integer"),
        (["--epsilon", "1", "--steps", "9", "--mechanism", "Gaussian"], "Known: BinaryTree"),
        (["--epsilon", "1", "--mechanism", COUNTERS[0]], "says it all"),
        (["--mechanism", "Gaussian(standard_deviation=1)"], "to be for streams"),
        (["--mechanism", "KaryTree(steps=10, arity=1, epsilon=1)"], "Expected arity=1 ≥ 2"),
        (["--mechanism", COUNTERS[0], "--insecure-seed", "-1"], "insecure-seed=-1 ≥ 0"),
        (["--epsilon", "1", "--steps", "9", "--contributions", "0"], "contributions=0 ≥ 1"),
    ],
)
def test_bad_usage(options: list[str], message: str, shell: Shell) -> None:
    """Nothing is read and nothing is released."""
    assert shell(ones(3), *options, code=2) == []
    assert message in shell.errors


def test_a_kind_by_its_name(shell: Shell) -> None:
    """The best structure of the kind."""
    for name in ("KaryTree", "DelannoyCounter", "HonakerTree"):
        assert len(shell(ones(5), "--mechanism", name, "--epsilon", "1", "--steps", "50")) == 5
