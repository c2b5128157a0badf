"""What a person sees in a terminal of 80 or 120 columns, with and without colour."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path

import msgspec
import pytest

import dpassay
from dpassay.verifier import report, terminal
from dpassay.verifier.ask import verify
from dpassay.verifier.cli import main
from dpassay.verifier.cli.verify import ledger
from dpassay.verifier.refutation import remedy
from dpassay.verifier.verdict import Finding, Rigour, Verdict

ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Terminal(io.StringIO):
    """A stream that somebody looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(params=[80, 120])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("COLUMNS", str(request.param))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return int(request.param)


def finding(identity: str, verdict: Verdict, cause: str = "", correction: str = "") -> Finding:
    return Finding(
        id=identity,
        source="Theorem 1",
        formal="for every d ≥ 1 (integer) and m > 0: CorrelatedGaussian(dimension=d) is m-GDP",
        verdict=verdict,
        kind="relation",
        true={},
        claimed={},
        margin={},
        rigour=Rigour.PROVED,
        witness={},
        reason="An event has too large a probability.",
        statement="",
        cause=cause,
        correction=correction,
    )


LONG = "count-on-your-elders/abstract/gaussian-replaceable/small-epsilon"
FINDINGS = [
    finding(LONG, Verdict.HOLDS),
    finding("a/theorem-5", Verdict.REFUTED, cause="Equation (13) divides by the wrong density."),
    finding("a/lemma-2", Verdict.UNDECIDED),
]


class TestTheTableOfVerdicts:
    def test_it_fits_and_keeps_every_id_whole(self, width: int) -> None:
        screen = Terminal()
        report.show_table(FINDINGS, screen)
        lines = ESCAPE.sub("", screen.getvalue()).splitlines()
        assert max(map(len, lines)) <= width
        for one in FINDINGS:
            assert any(one.id in line for line in lines)

    def test_what_is_refuted_comes_first_with_its_cause(self, width: int) -> None:
        screen = Terminal()
        report.show_table(FINDINGS, screen)
        lines = ESCAPE.sub("", screen.getvalue()).splitlines()
        verdicts = [line.split()[0] for line in lines if line[:1].isupper()]
        assert verdicts == ["REFUTED", "UNDECIDED", "HOLDS"]
        text = " ".join(" ".join(lines).split())
        assert "because: Equation (13) divides by the wrong density." in text
        assert "for every d ≥ 1" in text
        assert lines[-1] == "3 claims: 1 HOLDS, 1 REFUTED, 1 UNDECIDED"

    @pytest.mark.parametrize("coloured", [True, False])
    def test_colour_is_for_terminals_that_want_it(
        self, width: int, coloured: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not coloured:
            monkeypatch.setenv("NO_COLOR", "1")
        screen = Terminal()
        report.show_table(FINDINGS, screen)
        assert ("\x1b[1;31m" in screen.getvalue()) == coloured  # bold and red

    def test_a_pipe_has_one_line_for_each_claim(self) -> None:
        stream = io.StringIO()
        report.show_table(FINDINGS, stream)
        lines = stream.getvalue().splitlines()
        assert len(lines) == 1 + len(FINDINGS) + 2
        assert "\x1b" not in stream.getvalue()
        assert lines[1].endswith("because: Equation (13) divides by the wrong density.")


class TestRemedies:
    def test_every_refutation_has_one_right_after_the_claim(self) -> None:
        corrected = finding("a", Verdict.REFUTED, correction="Use 2Δ.")
        for refuted in (FINDINGS[1], corrected):
            label, text = report.details(refuted)[1]
            assert (label, bool(text)) == ("remedy", True)
        assert remedy(corrected) == "Use 2Δ."
        assert remedy(FINDINGS[0]) == ""
        one = finding("a", Verdict.REFUTED)
        assert remedy(one) == "change the statement: its only case refutes it"
        assert remedy(msgspec.structs.replace(one, cases=2)).startswith("leave out the case")
        assert (
            remedy(msgspec.structs.replace(one, witness={"mechanism": "M"}))
            == "add noise, or claim less"
        )

    def test_of_a_ledger(self) -> None:
        claim = next(c for c in ledger("count-queries") if c.id.endswith("remark-2/guarantee"))
        text = remedy(verify(claim))
        assert text.startswith("true at ε ≥ 3.7846 (δ = 1.3643e-6) or δ ≥ 0.34991 (ε = 2.2); For C")


def test_news_is_one_line_that_is_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    screen, pipe = Terminal(), io.StringIO()
    for stream in (screen, pipe):
        line = terminal.Line(stream)
        for number in range(40):
            line.say(f"{number} of 40 blocks")
        line.close()
    assert "\n" not in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[2K")
    assert len(pipe.getvalue().splitlines()) <= 9


def test_one_long_answer_says_on_a_terminal_that_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(terminal, "QUIET_SECONDS", 0)
    monkeypatch.setattr(terminal, "TICK_SECONDS", 0.01)
    screen, pipe = Terminal(), io.StringIO()
    for stream in (screen, pipe):
        with terminal.working(stream):
            time.sleep(0.3)
    assert "dpassay: computing, 0 s" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[2K")
    assert not pipe.getvalue()


class TestTraining:
    SETTINGS = ("--noise-multiplier", "1.1", "--batch", "256", "--size", "60000", "--delta", "1e-5")


def test_the_first_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DPASSAY_COMMAND", "python3 run.py")
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) < 40
    verdicts = [line.split()[0] for line in lines[3:9]]
    assert verdicts == ["REFUTED", "REFUTED", "REFUTED", "ARGUED", "HOLDS", "HOLDS"]
    assert shown.count("python3 run.py") == 4
    assert "█" in shown
    assert list(tmp_path.iterdir()) == []
    readme = Path(__file__).resolve().parents[2] / "README.md"
    assert "\n".join(lines[2:9]) in readme.read_text("utf-8")


def test_prose_goes_on_below_where_it_began(width: int) -> None:
    words = " ".join(["word"] * 60)
    shown = terminal.fitted(f"  - {words}\nlabel  {words}\n\n1  22  {words}", Terminal())
    *prose, table = shown.splitlines()
    assert max(map(len, prose)) <= width
    assert prose[1].startswith("    word")
    first = next(i for i, line in enumerate(prose) if line.startswith("label"))
    assert prose[first + 1].startswith("       word")
    assert table == f"1  22  {words}"  # of several columns
    assert terminal.fitted(words, io.StringIO()) == words


def test_an_answer_about_training_fits(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    asked = ["--noise-multiplier", "1.1", "--batch", "256", "--size", "60000", "--steps", "1"]
    assert main(["training", *asked, "--delta", "1e-5"]) == 0
    *prose, copied = terminal.getvalue().splitlines()
    assert max(map(len, prose)) <= width
    dpassay.parse(copied.removeprefix("mechanism: "))  # whole, however wide the terminal is
