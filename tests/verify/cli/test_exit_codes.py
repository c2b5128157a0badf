"""How a command ends when something else goes wrong than a claim: codes, and what is printed."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpassay
from accountant.errors import InvalidInputError
from tests.quick import quick
from verify.cli import main
from verify.cli.shell import Command

PROGRAM = [sys.executable, str(Path(dpassay.__file__))]
REFUTED = ["verify", "Laplace(scale=1)", "--epsilon", "0.5"]
LONG = ["profile", "Laplace(scale=1)", *("--epsilon", "0.5") * 3000]


def failing(error: BaseException) -> list[Command]:
    """A command `fail`, which prints and raises."""

    def run(_: argparse.Namespace) -> int:
        sys.stdout.write("begun\n")
        raise error

    return [Command("fail", "", "", "", lambda parser: None, run)]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OverflowError("a\nb"), "internal error: OverflowError a b. Please report this"),
        (RecursionError("too deep"), "internal error: RecursionError too deep. Please report"),
        (AssertionError(), "internal error: AssertionError. Please report"),
        (SystemExit(1), "internal error: SystemExit 1. Please report"),
        (SystemExit("a text"), "internal error: SystemExit a text. Please report"),
        (MemoryError(), "error: there is not enough memory for this."),
        (ModuleNotFoundError("No module named 'sklearn'"), "error: No module named 'sklearn'. In"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_an_unforeseen_error_is_one_line_and_70(
    error: BaseException, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fail"], commands=failing(error)) == 70
    out, err = capsys.readouterr()
    assert out == "begun\n"
    assert err.startswith(f"dpassay: {said}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["fail", "--debug"], ["--debug", "fail"]])
def test_debug_shows_the_traceback(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments, commands=failing(OverflowError("here"))) == 70
    told = capsys.readouterr().err
    assert told.startswith("Traceback (most recent call last):")
    assert "in run" in told


@pytest.mark.parametrize(("value", "shown"), [("1", True), ("0", False), ("", False)])
def test_debug_by_the_environment(
    value: str, shown: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DPASSAY_DEBUG", value)
    assert main(["fail"], commands=failing(OverflowError("here"))) == 70
    assert ("Traceback" in capsys.readouterr().err) == shown


def test_an_error_that_is_foreseen_has_its_own_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fail", "--debug"], commands=failing(InvalidInputError("Bad."))) == 2
    assert main(["fail"], commands=failing(KeyboardInterrupt())) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_an_error_while_commands_are_found_is_70(capsys: pytest.CaptureFixture[str]) -> None:
    missing = (__import__(name).COMMAND for name in ("no_such_module",))
    assert main(["doctor"], commands=missing) == 70
    assert "No module named 'no_such_module'" in capsys.readouterr().err


def in_shell(*arguments: str, redirection: str) -> subprocess.CompletedProcess[str]:
    """Run the program in bash, with the streams redirected."""
    return subprocess.run(
        ["bash", "-c", f'set -o pipefail; "$@" {redirection}', "bash", *PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("redirection", [">&-", ">&- 2>&-", ">&- <&-"])
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param(["doctor"], 0, marks=pytest.mark.slow),
        (["--help"], 0),
        pytest.param(["stream"], 2, marks=pytest.mark.slow),
        (REFUTED, 1),
    ],
)
def test_a_stream_closed_before_the_start(
    arguments: list[str], code: int, redirection: str
) -> None:
    result = in_shell(*arguments, redirection=redirection)
    assert result.returncode == code
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.count("\n") == (code == 2 and "2>&-" not in redirection)


def test_what_is_written_does_not_take_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    result = in_shell(*REFUTED, "--certificate", str(path), redirection=">&- 2>&-")
    assert result.returncode == 1
    assert path.read_text("utf-8").lstrip()[:1] in ("{", "[")


@pytest.mark.parametrize(
    "redirection", quick(["| true", "2>&1 | true", "| head -c 1 >/dev/null"], 2)
)
@pytest.mark.parametrize(
    "arguments",
    [
        LONG,
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (["--help"], ["verify", "x.toml"])
        ),
    ],
)
def test_a_reader_that_leaves(arguments: list[str], redirection: str) -> None:
    result = in_shell(*arguments, redirection=redirection)
    assert result.returncode in (0, 2, 141)  # 2: a message that was read; never 1 or 120
    assert "Traceback" not in result.stderr
    assert "Exception" not in result.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the device /dev/full")
def test_a_full_disk_is_said_once() -> None:
    result = in_shell(*REFUTED, redirection="> /dev/full")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "No space left on device" in result.stderr
