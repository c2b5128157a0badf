"""`dpassay demo`: six published guarantees decided, one of the false ones in plain words."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from dpassay.verifier.cli.shell import Command, ExitCode, program, say

if TYPE_CHECKING:
    from dpassay.verifier.verdict import Verdict

_DESCRIPTION = """\
Decide six published guarantees, and explain one counterexample in plain words.
"""
_EPILOG = """\
example:
  dpassay demo
"""
_TRY = """\
Your turn:
  {run} verify "Gaussian(3)" --epsilon 1 --delta 1e-5
  {run} calibrate Gaussian --epsilon 1 --delta 1e-5
  {run} training --noise-multiplier 1.1 --batch 256 --size 60000 \\
      --epochs 30 --delta 1e-5

All claims of a paper: {run} verify --paper less-is-more
"""
_BAR = 22
"""Characters of a probability of one half, in the picture."""
_DRAWN = range(8, 14)
"""Published counts in the picture; all others together are rarer than one in fifty."""
_COUNT = 10
"""The true count of the picture, and one more with one more person."""


@final
@dataclass(frozen=True)
class _Line:
    """One line of the scoreboard: a claim, and the case that is shown of it."""

    name: str
    """The id of a claim of a ledger; or a mechanism, whose claim is the case."""
    words: str
    case: dict[str, str]
    """Values of the claim's variables; the others are as they come."""
    by_case: bool = False
    """Decide this case only: one counterexample refutes the claim, and others take long."""


_BOARD = (
    _Line(
        "less-is-more/theorem-5", "noise on 7921 pixels, ε = 0.0001", {"M": "7921"}, by_case=True
    ),
    _Line(
        "count-queries/remark-2/guarantee",
        "noise on one count, ε = 2.2",
        {"epsilon": "2.2", "eta": "0.01", "D": "8"},
    ),
    _Line(
        "Gaussian(standard_deviation='0.4844805262606')",
        "textbook formula misused, ε = 10",
        {"epsilon": "10", "delta": "1e-5"},
    ),
    _Line(
        "count-on-your-elders/lemma-5-4",
        "Laplace noise, 4 counts, ε = 10",
        {"epsilon": "10", "delta": "1e-6"},
    ),
    _Line(
        "elliptical-gaussian/theorem-1",
        "textbook Gaussian formula, ε = 0.5",
        {"epsilon": "0.5", "delta": "1e-5"},
    ),
    _Line(
        "better-gaussian/theorem-3-1", "correlated noise, 10000 counts", {"d": "10000", "m": "1"}
    ),
)


def run(_: argparse.Namespace) -> int:
    """Decide, and show the scoreboard, a counterexample, and what to try."""
    from dpassay.verifier.terminal import Progress, Row, show
    from dpassay.verifier.verdict import Verdict

    started = time.monotonic()
    say("Is a privacy guarantee true? Six claims from papers and textbooks, decided now:\n")
    styles = {Verdict.HOLDS: "bold green", Verdict.REFUTED: "bold red"}
    rows = [Row(("verdict", "what is claimed to be private", "claimed", "true"), style="bold")]
    progress = Progress(len(_BOARD), sys.stderr)
    for line in _BOARD:
        verdict, claimed, true = _score(line)
        progress.advance(line.words)
        style = styles.get(verdict, "bold blue")
        rows.append(Row((verdict.value, line.words, claimed, true), style=style))
    progress.close()
    show(rows, sys.stdout)
    say("\nSmaller is more private. δ: the leak beyond ε; μ: the leak in Gaussian DP.")
    say("HOLDS and REFUTED are proved; ARGUED rests on one step that a person argued.\n")
    say(_counterexample())
    say(_TRY.format(run=program()))
    say(f"{time.monotonic() - started:.0f} s")
    return ExitCode.DONE


def _score(line: _Line) -> tuple[Verdict, str, str]:
    """Return the verdict on a claim, and what is claimed and true in the case that is shown."""
    from dpassay.accountant import notation
    from dpassay.accountant.numbers.interval import few
    from dpassay.verifier import batch
    from dpassay.verifier.ask import claims_about
    from dpassay.verifier.cli.verify import ledger, with_lemmas

    if "(" in line.name:
        (claim,) = everything = claims_about(notation.parse(line.name), **line.case)
        scope = next(iter(claim.cases()))
    else:
        everything = ledger(line.name.partition("/")[0])
        claim = next(claim for claim in everything if claim.id == line.name)
        scope = next(s for s in claim.cases() if line.case.items() <= s.to_json().items())
    decision = claim.decide(scope)
    verdict = decision.verdict
    if not line.by_case:
        claims = with_lemmas(everything, [claim.id])
        outcomes = batch.concluded(claims, dict(batch.decide_all(claims, lemmas=everything)))
        finding = next(o.finding for i, o in outcomes.items() if claims[i].id == claim.id)
        verdict = verdict if finding is None else finding.verdict
    ((name, true),) = decision.true.items()
    symbol = {"delta": "δ", "mu": "μ"}[name]
    # Two digits, to the nearest: what is proved is in the finding.
    claimed, least = few(decision.claimed[name], 2), few(true.upper, 2)
    return verdict, f"{symbol} = {claimed}", f"{symbol} = {least}"


def _counterexample() -> str:
    """Tell the refutation of the noise for one count, with both laws drawn."""
    from dpassay.accountant.mechanisms import BoundedCountNoise
    from dpassay.verifier.ask import verify

    noise = BoundedCountNoise(epsilon="2.2", eta="0.01", support=8)
    finding = verify(noise, epsilon="2.2", delta="1.4e-6")
    more, fewer = (float(finding.witness[side]["upper"]) for side in "pq")
    allowed = math.exp(2.2) * fewer + 1.4e-6
    law = [float(mass.mid()) for mass in noise.masses(0)[0]]
    lines = [f"  published   if {_COUNT} people{'':{_BAR - 9}}if {_COUNT + 1} people"]
    for count in _DRAWN:
        bars = (_bar(law, count - _COUNT), _bar(law, count - _COUNT - 1))
        lines.append(f"  {count:9}   {bars[0]:{_BAR + 3}}{bars[1]}".rstrip())
    return "\n".join(
        [
            "The second one, in plain words: the noise on the count is nearly always +1 or",
            "-1, so the published number tells whether you were counted.",
            "",
            *lines,
            "",
            f"10, 12 or more is published with chance {fewer:.3f} if there are {_COUNT} people,",
            f"and with chance {more:.2f} if {_COUNT + 1}. The claim allows at most "
            f"e^2.2 · {fewer:.3f} + δ = {allowed:.2f}.",
            "",
        ]
    )


def _bar(law: Sequence[float], noise: int) -> str:
    """Draw the probability of a value of the noise on −D..D."""
    middle = len(law) // 2
    mass = law[middle + noise] if abs(noise) <= middle else 0.0
    return "█" * round(2 * _BAR * mass) or "▏"


COMMAND = Command("demo", "six published guarantees, decided", _DESCRIPTION, _EPILOG, "", run)
