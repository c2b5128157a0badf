"""The command line and Python: the same names of arguments, and the same words of answers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

import dpassay
import dpassay.verifier.audit
from dpassay.accountant.budget.calibrate import calibrate
from dpassay.figures.comparison.cli import COMMAND as COMPARE
from dpassay.lp.problem import CountNoiseProblem
from dpassay.verifier.cli import audit, check, convert, main, optimal, profile, training
from dpassay.verifier.cli import calibrate as calibrating
from dpassay.verifier.cli import verify as verifying
from dpassay.verifier.cli.shell import Command, Parser

SHOWN = {
    "alphas", "all_papers", "certificate", "command", "details",
    "epsilons", "event", "export", "files", "help", "html", "jobs", "json", "only", "out",
    "paper", "plot", "quiet", "replay", "replay_code", "target", "trust",
}  # fmt: skip
"""Options about files, and about what is printed: Python has objects."""
OTHER_WORDS = {
    "confidence": "significance",  # 1 − confidence
    "metric": "metrics",
    "candidate": "candidates",
    "pair": "pairs",
    "search": "pairs",
    "no_bits": "bits",
    "workers": "executor",
    "question": "workload",
    "in": "included",
    "until_refuted": "audit_until_refuted",
    "plan": "canaries_needed",
    "set": "options",
    "profile": "target",
    "up_to": "target",
    "shares": "options",
    "find": "argument",
    "schemes": "training_schemes",
    "data_independent": "max_count",
    "queries": "count",
    "fixed": "options",
}
"""What an option is called in Python: a list, a choice of functions, or the other way round."""
SAID_BY: dict[str, tuple[Any, ...]] = {
    "audit": (dpassay.audit, dpassay.audit_until_refuted, dpassay.verify),
    "audit-one-run": (dpassay.audit_one_run, dpassay.canaries_needed),
    "audit-samples": (dpassay.audit_samples, dpassay.verify),
    "audit-scores": (dpassay.audit_scores,),
    "calibrate": (dpassay.calibrate, calibrate),
    "check": (dpassay.check,),
    "compare": (dpassay.compare,),
    "convert": (dpassay.convert,),
    "count-noise": (CountNoiseProblem, dpassay.optimal_count_noise),
    "profile": (dpassay.profile, dpassay.delta),
    "training": (dpassay.dpsgd, dpassay.dpsgd_noise, dpassay.training_schemes),
    "verify": (dpassay.verify,),
}
COMMANDS = (
    audit.COMMAND, *audit.COMMANDS, calibrating.COMMAND, check.COMMAND, COMPARE,
    convert.COMMAND, *optimal.COMMAND.kinds[:1], profile.COMMAND, training.COMMAND,
    verifying.command(None),
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_an_option_is_called_as_the_argument_in_python(command: Command) -> None:
    parser = Parser()
    command.configure(parser)
    known = {p for said in SAID_BY[command.name] for p in inspect.signature(said).parameters}
    known |= {said.__name__ for said in SAID_BY[command.name]}
    if command.name == "profile":  # each question is a function of its own, too
        known |= {*dpassay.__all__}  # type: ignore[attr-defined]
    missing = []
    for action in parser._actions:
        names = {name[2:].replace("-", "_") for name in action.option_strings} or {action.dest}
        names |= {OTHER_WORDS[name] for name in names if name in OTHER_WORDS}
        if not names & (known | SHOWN):
            missing.append(action.dest)
    assert not missing


TYPED: tuple[tuple[str, Callable[[], Any]], ...] = (
    (
        "training --noise-multiplier 1.1 --batch-size 256 --dataset-size 60000 --epochs 1 "
        "--delta 1e-5",
        lambda: dpassay.training(
            noise_multiplier="1.1", batch_size=256, dataset_size=60000, epochs=1, delta="1e-5"
        ),
    ),
    (
        "calibrate Gaussian --epsilon 1 --delta 1e-5",
        lambda: dpassay.calibrate("Gaussian", epsilon=1, delta="1e-5"),
    ),
    (
        "profile Gaussian(3) --epsilon 1 --delta 1e-5 --tpr-at-fpr 0.1 --mu",
        lambda: dpassay.profile("Gaussian(3)", epsilon=1, delta="1e-5", tpr_at_fpr="0.1", mu=True),
    ),
    (
        "profile Laplace(2) --membership 0.5 --posterior 0.1 --reconstruction 1/8",
        lambda: dpassay.profile(
            "Laplace(2)", membership="0.5", posterior="0.1", reconstruction="1/8"
        ),
    ),
)


@pytest.mark.parametrize(("typed", "asked"), TYPED, ids=[typed.split()[0] for typed, _ in TYPED])
def test_python_prints_what_the_command_prints(
    typed: str, asked: Callable[[], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(typed.split()) == 0
    assert capsys.readouterr().out == f"{asked()}\n"


def test_what_python_says_of_a_verdict_and_a_conversion_is_on_the_screen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    claim = "Gaussian(3) is (1, 1e-5)-DP"
    found = str(dpassay.verify(claim)).splitlines()
    main(["verify", claim])
    said = capsys.readouterr().out
    for words in (found[0].partition(": ")[2], found[1], re.sub("^It (is )?", "", found[2])[:-1]):
        assert words in said
    assert "needs standard_deviation ≥ 3.7307; true at" in found[2]
    main(["convert", "--mu", "1", "--delta", "1e-6", "--quiet"])
    assert capsys.readouterr().out == f"{dpassay.convert(mu=1, delta='1e-6')}\n"


def test_python_prints_the_decision_of_a_comparison_as_the_command_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["compare", "Counts(9, 2)", "--mu", "0.5"], commands=[COMPARE])
    typed = [line.split() for line in capsys.readouterr().out.splitlines()]
    asked = str(dpassay.compare("Counts(9, 2)", mu="0.5")).splitlines()
    for line in asked:
        assert line.replace("left_out says", "--details says").split() in typed
    assert len(asked) == len(typed)
    assert any(line.startswith("left out: ") for line in asked)
