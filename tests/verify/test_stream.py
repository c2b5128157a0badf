"""`dpassay stream` end to end: what is printed, refused, and never released twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpassay.accountant import notation
from dpassay.accountant.counting.streams import StateFile, StreamCounter
from dpassay.accountant.mechanisms import KaryTree
from tests.quick import slow
from tests.verify.stream_shell import Shell

PROGRAM = [sys.executable, "-m", "dpassay"]
TREE = "KaryTree(steps=1000, arity=5, epsilon=1)"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tree:
    return Tree(monkeypatch, capsys)


class Tree(Shell):
    """The shell with one mechanism, where no other is named."""

    def __call__(self, text: str, *options: str, mechanism: str = TREE, code: int = 0) -> list[str]:
        return super().__call__(text, *options, mechanism=mechanism, code=code)


def stream(length: int) -> str:
    return "".join(f"{i * i % 7 % 2}\n" for i in range(length))


def test_outputs_are_those_of_the_counter(shell: Shell) -> None:
    mechanism = notation.parse(TREE)
    assert isinstance(mechanism, KaryTree)
    counter = StreamCounter(mechanism, rng=np.random.default_rng([7, 0]))
    expected = counter.extend([float(line) for line in stream(600).split()])
    head, *printed = shell(stream(600), "--insecure-seed", "7")
    assert head == "# NOT PRIVATE: --insecure-seed 7: the seed tells the noise"
    assert [float(line) for line in printed] == expected.tolist()
    assert "600 of 1000 numbers counted" in shell.errors
    head, *lines = shell(stream(600), "--insecure-seed", "7", "--json", "--quiet")
    assert json.loads(head) == {"insecure": ["--insecure-seed 7: the seed tells the noise"]}
    rows = [json.loads(line) for line in lines]
    assert [row["step"] for row in rows] == list(range(1, 601))
    assert [row["estimate"] for row in rows] == expected.tolist()
    assert shell.errors == ""


@pytest.mark.parametrize("text", ["0\n", slow("1\n")])
def test_bits_do_not_tell_the_input(shell: Shell, text: str) -> None:
    """As doubles, 27 of 100 outputs for 0 were below 1/2 and no multiple of 2^−53; none for 1."""
    for _ in range(30):
        (line,) = shell(text, mechanism="KaryTree(steps=1, arity=2, epsilon=1)")
        assert (float(line) * 2**32).is_integer()


def test_a_budget_is_promised_in_its_own_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(monkeypatch, capsys)
    shell("1\n0.5\n", "--epsilon", "1", "--delta", "1e-6", "--steps", "365")
    assert "the whole output is (1, 1e-6)-DP (1.00000799998-DP) for" in shell.errors


def test_what_is_promised_is_said(shell: Shell) -> None:
    shell(stream(5))
    assert "the whole output is 1-DP for streams that differ in one number" in shell.errors
    shell(stream(5), mechanism="BinaryTree(steps=9, mu='1/2', contributions=3)")
    assert "is 0.5-GDP for streams that differ in the 3 numbers of one person" in shell.errors
    shell(stream(5), "--insecure-seed", "3")
    assert "the whole output" not in shell.errors


def test_noise_is_drawn_by_the_operating_system(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its bytes are not random, neither is the output: there is no other source."""
    generator = np.random.default_rng(1)
    monkeypatch.setattr(os, "urandom", generator.bytes)
    first = shell(stream(50))
    generator = np.random.default_rng(1)
    monkeypatch.setattr(os, "urandom", generator.bytes)
    assert shell(stream(50)) == first


def test_every_way_to_write_a_number(shell: Shell) -> None:
    text = "0\r\n1.\n .5 \n+2.5e-1\n-0\n0.25"
    noise = [float(line) for line in shell("0\n" * 6, "--insecure-seed", "1")[1:]]
    found = [float(line) for line in shell(text, "--insecure-seed", "1")[1:]]
    np.testing.assert_allclose(
        np.subtract(found, noise), [0, 1, 1.5, 1.75, 1.75, 2], rtol=0, atol=1e-12
    )
    assert shell("") == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x", "item='x' to be a number in [0, 1]"),
        ("", "item='' to be a number"),
        ("nan", "item='nan' to be a number"),
        ("0_1", "item='0_1' to be a number"),
        ("0 1", "item='0 1' to be a number"),
        ("٠", "item='٠' to be a number"),
        ("1.5", "item='1.5' in [0, 1]"),
        ("2", "item='2' in [0, 1]"),
        ("-1e-9", "item='-1e-9' in [0, 1]"),
        ("1e999", "item='1e999' in [0, 1]"),
    ],
)
def test_a_bad_line_is_named(shell: Shell, line: str, message: str) -> None:
    for before in ("1\n0\n", "1\n0.5\n"):
        assert len(shell(f"{before}{line}\n1\n", code=2)) == 2
        assert "dpassay: error: Line 3: Expected " in shell.errors
        assert message in shell.errors


def test_an_endless_line_is_refused(shell: Shell) -> None:
    assert len(shell("1\n" + "1" * 10_000, code=2)) == 1
    assert "Line 2: expected a number in [0, 1], not a line of more than 4096" in shell.errors


# ---------------------------------------------------------------- interrupted streams


def test_what_may_be_out_is_repeated_word_by_word(shell: Shell, tmp_path: Path) -> None:
    """As if the program had been stopped between writing the state and the outputs."""
    path = tmp_path / "state"
    options = ("--state", str(path), "--json")
    whole = shell(stream(40), *options)
    with StateFile(path) as state:
        saved = state.load()
        assert saved is not None
        counted = np.array([json.loads(line)["estimate"] for line in whole])
        state.commit(type(saved)(saved.record, saved.digest, 25, counted[25:]))
    assert shell(stream(40), *options) == whole[25:]
    assert shell(stream(40), *options) == []


def test_another_stream_gets_no_noise_of_this_one(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "state"
    options = ("--state", str(path))
    shell(stream(40), *options)
    before = path.read_bytes()
    other = "1" + stream(40)[1:]
    assert other != stream(40)
    for text, message in (
        (other, "are not those that the state file has counted"),
        (other + stream(9), "are not those that the state file has counted"),
        (stream(39), "this one ends after 39"),
        ("", "this one ends after 0"),
    ):
        assert shell(text, *options, code=2) == []
        assert message in shell.errors
        assert path.read_bytes() == before
    assert shell(stream(40), *options, mechanism=TREE.replace("=1)", "=2)"), code=2) == []
    assert "The state file is that of KaryTree" in shell.errors


def test_a_seed_is_not_repeated_behind_an_interruption(shell: Shell, tmp_path: Path) -> None:
    options = ("--state", str(tmp_path / "state"), "--insecure-seed", "3")
    zeros = "0\n" * 5
    plain = "KaryTree(steps=1000, arity=1001, epsilon=1, subtraction=False)"
    # one level: the differences of the outputs are the noise variables themselves
    first = np.diff([0.0, *map(float, shell(zeros, *options, mechanism=plain)[1:])])
    last = float(np.sum(first))
    rest = np.diff([last, *map(float, shell(zeros * 2, *options, mechanism=plain)[1:])])
    assert np.abs(np.subtract.outer(first, rest)).min() > 1e-9


def test_a_stream_goes_on_as_it_began(shell: Shell, tmp_path: Path) -> None:
    """Insecure noise does not become secure, nor the other way round."""
    path = tmp_path / "state"
    shell(stream(5), "--state", str(path), "--insecure-seed", "3")
    assert shell(stream(9), "--state", str(path), code=2) == []
    assert "began with --insecure-seed 3, not with none" in shell.errors
    assert len(shell(stream(9), "--state", str(path), "--insecure-seed", "3")) == 5
    shell(stream(5), "--state", str(tmp_path / "other"))
    other = ("--state", str(tmp_path / "other"), "--insecure-seed", "4")
    assert shell(stream(9), *other, code=2) == []
    assert "began with no insecure option, not with --insecure-seed 4" in shell.errors


@pytest.mark.parametrize(
    ("stop", "code"), [(signal.SIGKILL, -signal.SIGKILL), slow(signal.SIGINT, 130)]
)
def test_stopped_and_continued(stop: signal.Signals, code: int, tmp_path: Path) -> None:
    """Lines come out one by one; after a signal the rest follows, and nothing comes anew."""
    command = [
        *PROGRAM,
        *("stream", "--mechanism", TREE, "--state", str(tmp_path / "state"), "--json"),
    ]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert child.stdin is not None
    assert child.stdout is not None
    released = {}
    for line in stream(20).splitlines(keepends=True):
        child.stdin.write(line.encode())
        child.stdin.flush()
        row = json.loads(child.stdout.readline())  # the answer comes before the next line
        released[row["step"]] = row["estimate"]
    os.kill(child.pid, stop)
    assert child.wait(timeout=60) == code
    child.communicate()
    again = subprocess.run(
        command, input=stream(50), capture_output=True, text=True, check=True, timeout=60
    )
    rows = [json.loads(line) for line in again.stdout.splitlines()]
    assert [row["step"] for row in rows] == list(range(20, 51))
    assert rows[0]["estimate"] == released[20]


COUNTERS = [
    "KaryTree(steps=200, arity=5, epsilon=1)",
    "BinaryTree(steps=200, epsilon=1)",
    "BridgedTree(steps=200, arities=[4, 5, 10], epsilon=1)",
    "SquareRootFactorization(steps=200, mu=1)",
]


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capsys)


def ones(count: int) -> str:
    return "1\n" * count


@pytest.mark.parametrize("counter", COUNTERS)
def test_an_interrupted_stream_goes_on_and_releases_nothing_twice(
    counter: str, bare: Shell, tmp_path: Path
) -> None:
    """The numbers that are out do not come again, those that follow have numbers of their own."""
    options = ["--mechanism", counter, "--state", str(tmp_path / "state"), "--json"]
    first = [json.loads(line) for line in bare(ones(83), *options)]
    second = [json.loads(line) for line in bare(ones(200), *options)]
    assert [entry["step"] for entry in first + second] == list(range(1, 201))
    assert "83 numbers are counted already; the output goes on with number 84" in bare.errors
    assert bare(ones(200), *options) == []
    with StateFile(tmp_path / "state") as state:
        saved = state.load()
    assert saved is not None
    assert saved.counted == 200
    assert notation.parse(saved.record["mechanism"]) == notation.parse(counter)


@pytest.mark.parametrize("counter", COUNTERS)
def test_bad_lines_state_and_length(counter: str, bare: Shell, tmp_path: Path) -> None:
    """The line is named; another stream, mechanism or a damaged file is refused."""
    state = tmp_path / "state"
    options = ["--mechanism", counter, "--state", str(state)]
    assert len(bare(ones(4) + "x\n", *options, code=2)) == 4
    assert "Line 5: Expected item='x'" in bare.errors
    assert bare(ones(4) + "1.5\n", *options, code=2) == []
    assert "Line 5: Expected item='1.5' in [0, 1]" in bare.errors
    assert bare("0\n" * 9, *options, code=2) == []
    assert "not those that the state file has counted" in bare.errors
    other = COUNTERS[counter == COUNTERS[0]]
    assert bare(ones(9), "--mechanism", other, "--state", str(state), code=2) == []
    assert "The state file is that of" in bare.errors
    assert len(bare(ones(201), *options, code=2)) == 196
    assert "Line 201: expected at most 200 numbers" in bare.errors
    state.write_text(state.read_text().replace("counted", "cuonted"))
    assert bare(ones(9), *options, code=2) == []
    assert "corrupted" in bare.errors


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
        (
            ["--epsilon", "1", "--delta", "1e-6", "--steps", "1000", "--contributions", "3"],
            "contributions=3",
        ),
    ],
)
def test_the_best_for_a_budget(options: list[str], mechanism: str, bare: Shell) -> None:
    """Without a mechanism the best that is known is taken, and named on stderr."""
    assert len(bare(ones(3), *options)) == 3
    assert mechanism in bare.errors
    assert "mean squared error" in bare.errors
    assert len(bare(ones(3), *options, "--quiet")) == 3
    assert bare.errors == ""


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
        (["--epsilon", "1", "--mechanism", COUNTERS[0]], "is complete"),
        (["--mechanism", "Gaussian(standard_deviation=1)"], "to be for streams"),
        (["--mechanism", "KaryTree(steps=10, arity=1, epsilon=1)"], "Expected arity=1 ≥ 2"),
        (["--mechanism", COUNTERS[0], "--insecure-seed", "-1"], "insecure-seed=-1 ≥ 0"),
        (["--epsilon", "1", "--steps", "9", "--contributions", "0"], "contributions=0 ≥ 1"),
        # options of earlier versions
        (["--mechanism", COUNTERS[0], "--seed", "7"], "--seed is --insecure-seed now"),
        (["--mechanism", COUNTERS[0], "--lattice"], "every output is on the lattice"),
    ],
)
def test_bad_usage(options: list[str], message: str, bare: Shell) -> None:
    """Nothing is read and nothing is released."""
    assert bare(ones(3), *options, code=2) == []
    assert message in bare.errors
