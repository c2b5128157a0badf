"""What commands answer: right words with their answers, wrong ones with a line that names them."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

from dpassay.accountant.composition.choose import METHODS
from dpassay.accountant.geometry.workload import WORKLOADS
from dpassay.figures.comparison import cli as comparison
from dpassay.verifier.cli import main
from tests.tables import rows

HERE = Path(__file__).parent
NORMAL = "Gaussian(standard_deviation=1)"
SHORT = {
    "TRAINING": "'Composed(PoissonSubsampled(Gaussian(standard_deviation=1.1), "
    "sampling_prob=256/60000), count=7032)' --adjacency add-remove",
    "ONE": f"'{NORMAL}'",
    "NINE": "'Gaussian(standard_deviation=9)'",
    "LAPLACE": "'Laplace(scale=1)'",
    "TRAIN": "training --noise-multiplier 1 --batch 9 --size 99 --delta 1e-5 --epochs 1",
    "NOISE": "optimal count-noise --epsilon 1",
    "COUNT": "optimal count-noise --eta 1/2 --support 4",
    "INTEGER": "optimal integer-noise --epsilon 1",
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a module of releases, and a certificate that was cut off."""
    (tmp_path / "releases.py").write_text("def noisy(dataset, rng):\n    return rng.random()\n")
    (tmp_path / "cut.json").write_text('{"cut off')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "releases", raising=False)


def refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, message = said.rpartition(": ") if said[:2] == "3:" else ("2", "", said)
    assert main(arguments, commands=[comparison.COMMAND]) == int(code)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("dpassay: ")
    assert message in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize(("words", "said"), rows(HERE / "wrong.txt"))
def test_what_is_wrong_is_named(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in SHORT.items():
        words = words.replace(name, text)
    refused(shlex.split(words), said, capsys)


@pytest.mark.parametrize(("mechanism", "said"), rows(HERE / "wrong_mechanisms.txt"))
def test_so_is_a_wrong_mechanism(
    mechanism: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(["profile", mechanism, "--mu"], said, capsys)
    refused(["verify", mechanism, "--epsilon", "1", "--delta", "1e-5"], said, capsys)


@pytest.mark.parametrize(("typed", "code", "printed"), rows(HERE / "said.txt"))
def test_what_is_typed_is_answered(
    typed: str, code: str, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shlex.split(typed)) == int(code)
    assert re.search(printed, capsys.readouterr().out, re.DOTALL)


@pytest.mark.parametrize("epsilon", ["0", "1", "3", "sqrt(2)"])
def test_a_delta_of_1_is_turned_round_only_where_that_is_a_claim(
    epsilon: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", NORMAL, "--epsilon", epsilon, "--delta", "1"]) == 2
    assert "is a claim" not in capsys.readouterr().err


def test_no_arguments_print_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage: dpassay" in capsys.readouterr().err


def test_the_help_names_every_engine_workload_and_metric(
    capsys: pytest.CaptureFixture[str],
) -> None:
    help_of = {}
    for command in ("profile", "compare"):
        assert main([command, "--help"], commands=[comparison.COMMAND]) == 0
        help_of[command] = capsys.readouterr().out
    assert f"{', '.join(METHODS[:-1])} or {METHODS[-1]}" in " ".join(help_of["profile"].split())
    assert all(f"{name}(" in help_of["compare"] for name in WORKLOADS)
    metrics = ("variance", "rmse", "mean-absolute-error", "bias", "p-exact", "quantile:P")
    for name in (*metrics, "max-quantile:P", "regret:P"):
        assert name in help_of["compare"]


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_help_fits_the_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for command in ("profile", "training", "audit", "stream", "check"):
        assert main([command, "--help"]) == 0
        shown = capsys.readouterr().out
        prose = [line for line in shown.splitlines() if not line.startswith("  ")]
        assert max(map(len, prose)) <= columns
        if columns >= 80:
            assert max(map(len, shown.splitlines())) <= columns
        assert 'profile "DiscreteLaplace' in shown or command != "profile"


def test_completion_is_printed_by_shtab(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["--print-completion", "bash"]) == 2
    assert "pip install 'dpassay[completion]'" in capsys.readouterr().err
    library = ModuleType("shtab")
    vars(library)["complete"] = lambda parser, shell: f"{parser.prog} in {shell}"
    monkeypatch.setitem(sys.modules, "shtab", library)
    assert main(["--print-completion", "zsh"]) == 0
    assert capsys.readouterr().out.endswith(" in zsh\n")
