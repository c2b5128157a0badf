"""How a command ends: codes, what is printed where something goes wrong, what it loads."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpassay
from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier import batch, document
from dpassay.verifier.cli import main
from dpassay.verifier.cli.shell import Command
from tests.quick import slow

PROGRAM = [sys.executable, "-m", "dpassay"]
REFUTED = ["verify", "Laplace(scale=1)", "--epsilon", "0.5"]
LONG = ["profile", "Laplace(scale=1)", *("--epsilon", "0.5") * 3000]


def failing(error: BaseException) -> list[Command]:
    """A command `fail`, which prints and raises."""

    def run(_: argparse.Namespace) -> int:
        sys.stdout.write("begun\n")
        raise error

    return [Command("fail", "", "", "", "", run)]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (LookupError("a\nb"), "internal error: LookupError a b. Please report this"),
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


@pytest.mark.parametrize("hint", ["", "the same command goes on"])
def test_an_interrupted_command_says_so_once(hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    stop = KeyboardInterrupt(hint) if hint else KeyboardInterrupt()
    assert main(["fail"], commands=failing(stop)) == 130
    said = f"dpassay: interrupted; {hint}" if hint else "dpassay: interrupted"
    assert capsys.readouterr().err == f"\n{said}\n"


def test_so_does_one_that_has_not_begun(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(dpassay, "import_module", interrupted)
    assert dpassay.main() == 130
    assert capsys.readouterr().err == "\ndpassay: interrupted\n"


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ([], b"remedy        needs scale >= 2; true at epsilon >= 1 (delta = 0)"),
        (["--json"], b'"verdict": "REFUTED"'),
    ],
)
def test_letters_that_a_terminal_lacks_are_written_out(form: list[str], shown: bytes) -> None:
    done = subprocess.run(
        [*PROGRAM, *REFUTED, *form],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert shown in done.stdout
    done.stdout.decode("ascii")


@pytest.mark.parametrize("arguments", [["fail", "--debug"], ["--debug", "fail"]])
def test_debug_shows_the_traceback(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments, commands=failing(LookupError("here"))) == 70
    told = capsys.readouterr().err
    assert told.startswith("Traceback (most recent call last):")
    assert "in run" in told


@pytest.mark.parametrize(("value", "shown"), [("1", True), ("0", False), ("", False)])
def test_debug_by_the_environment(
    value: str, shown: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DPASSAY_DEBUG", value)
    assert main(["fail"], commands=failing(LookupError("here"))) == 70
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


@pytest.mark.parametrize(
    ("arguments", "code", "redirection"),
    [
        (["--help"], 0, ">&- 2>&-"),
        (REFUTED, 1, ">&-"),
        slow(["doctor"], 0, ">&- <&-"),
        slow(["stream"], 2, ">&- <&-"),
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
    ("arguments", "redirection"),
    [
        (LONG, "| head -c 1 >/dev/null"),
        slow(["--help"], "| true"),
        slow(["verify", "x.toml"], "2>&1 | true"),
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


QUESTIONS = [
    (["Gaussian(standard_deviation=3)", "--epsilon", "1", "--delta", "1e-5"], 1),
    (["Laplace(scale=2)", "--epsilon", "0.5"], 0),
]
ENGINES = "choose lattice blur tails exact"
LOADED = """
import sys
from dpassay.verifier.cli import main
code = main(["verify", *sys.argv[2:]])
heavy = (
    *(f"dpassay.accountant.composition.{room}" for room in sys.argv[1].split()),
    *("dpassay.verifier.kernel", "numpy", "scipy", "mpmath"),
)
sys.exit(code if not (found := [m for m in sys.modules if m.startswith(heavy)]) else str(found))
"""


@pytest.mark.parametrize(("question", "code"), QUESTIONS)
@pytest.mark.parametrize(
    ("rooms", "options"), [(f"{ENGINES} fourier losses", ["--quiet"]), (ENGINES, [])]
)
def test_a_simple_verdict_loads_nothing_heavy(
    question: list[str], code: int, rooms: str, options: list[str]
) -> None:
    command = [sys.executable, "-c", LOADED, rooms, *question, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr


def many(count: int) -> str:
    return "schema_version = 1\n" + "\n".join(
        f'[[claims]]\nid = "c{i}"\nstatement = "c"\nkind = "pure-dp"\n'
        f'mechanism = "Laplace(scale={1 + i % 7})"\nepsilon = "{1 + i % 3}/5"'
        for i in range(count)
    )


@pytest.mark.slow
def test_many_claims_are_decided_in_parts() -> None:
    """Each of them once, by several processes, without certificates where none is wanted."""
    read = document.read_text(many(300)).claims
    found = dict(batch.decide_all(read, jobs=2, certified=False))
    assert sorted(found) == list(range(300))
    for index, claim in enumerate(read):
        finding = found[index].finding
        assert finding is not None
        assert finding.id == claim.id
        assert (finding.verdict.value == "HOLDS") == ((1 + index % 3) * (1 + index % 7) >= 5)
        assert found[index].certificate is None


TRUE = 'kind = "relation"\nclaim = "1 < 2"'
FALSE = 'kind = "relation"\nclaim = "2 < 1"'
EXPECTED = '\nexpected = "REFUTED"'
GRID = 'kind = "relation"\nclaim = "x > 0"\nfor_all.x = {low = 1, grid = [1, 2]}'
ARGUED = f'{GRID}\nargument = "One is positive."'
OPEN = 'kind = "relation"\nclaim = "gamma(1/3)*gamma(2/3) == 2*pi()/sqrt(3)"'
PENDING = 'kind = "pending"\nneeds = "audit"\nreason = "runs are needed"'


def written(folder: Path, *claims: str) -> str:
    path = folder / "claims.toml"
    tables = [f'[[claims]]\nid = "c{index}"\n{claim}\n' for index, claim in enumerate(claims)]
    path.write_text("schema_version = 1\n" + "".join(tables), "utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ([TRUE], 0),
        ([TRUE, PENDING], 0),
        ([TRUE, FALSE + EXPECTED], 0),
        ([FALSE + EXPECTED], 0),
        ([FALSE], 1),
        ([FALSE, OPEN, ARGUED], 1),
        ([TRUE + EXPECTED], 1),
        ([ARGUED], 3),
        ([GRID], 3),
        ([TRUE, FALSE + EXPECTED, GRID], 3),
        ([OPEN], 3),
        ([PENDING], 3),
        ([TRUE, 'kind = "relation"\nclaim = "y < 1"'], 2),
        ([FALSE, 'kind = "relation"\nclaim = "y < 1"'], 2),
    ],
)
def test_exit_codes(tmp_path: Path, claims: list[str], code: int) -> None:
    assert main(["verify", written(tmp_path, *claims), "--quiet"]) == code


def test_every_verdict_is_counted_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["verify", written(tmp_path, TRUE, ARGUED, GRID, FALSE, OPEN, PENDING)])
    last = capsys.readouterr().out.splitlines()[-1]
    counts = "1 HOLDS, 1 ARGUED, 1 SUPPORTED, 1 REFUTED, 1 UNDECIDED, 1 PENDING"
    assert last == f"6 claims: {counts}"


def test_the_formal_claim_is_the_headline_and_the_words_are_quoted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = 'statement = "Every number is positive."\n'
    listed = 'kind = "relation"\nclaim = "x > 0"\nwhere.x = [1, 2]'
    assert main(["verify", written(tmp_path, words + listed)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split(maxsplit=1) == ["claim", "in the cases x in {1, 2}: x > 0"]
    assert "“Every number is positive.”" in lines[2]
    assert lines[3].endswith("more than was decided: only the listed cases.")


def test_the_certificate_of_an_argued_claim_says_so(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    claims = written(tmp_path, ARGUED)
    assert main(["verify", claims, "--certificate", str(path), "--quiet"]) == 3
    data = json.loads(path.read_text("utf-8"))
    assert data["theorem"]["verdict"] == "ARGUED"
    assert data["theorem"]["argument"] == "One is positive."


def test_help_is_asked_for_as_the_program_was_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DPASSAY_COMMAND", "python3 run.py")
    assert main(["verfy"]) == main(["verify", "--epsilom", "1"]) == 2
    said = capsys.readouterr().err
    assert "Try: python3 run.py --help\n" in said
    assert "Try: python3 run.py verify --help\n" in said
