"""Findings for people: one as rows of text, a table for many."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TextIO, final

from dpassay.accountant.errors import InvalidInputError, one_line
from dpassay.accountant.numbers.exact import exact, floats_in_short, in_short
from dpassay.accountant.numbers.interval import Interval, decimal_context, enclose, ratio
from dpassay.verifier.refutation import TYPED, event, program, remedy
from dpassay.verifier.terminal import Row, fitted, styled
from dpassay.verifier.terminal import show as show_rows
from dpassay.verifier.verdict import Finding, Verdict, distinct_errors

STYLES = {
    Verdict.HOLDS: "green",
    Verdict.ARGUED: "blue",
    Verdict.REFUTED: "red",
    Verdict.SLIP: "magenta",
    Verdict.UNDECIDED: "yellow",
    Verdict.SUPPORTED: "cyan",
    Verdict.PENDING: "bright_black",
}
"""The colour of a verdict on a terminal."""
_WORST_FIRST = (
    Verdict.REFUTED,
    Verdict.SLIP,
    Verdict.UNDECIDED,
    Verdict.ARGUED,
    Verdict.SUPPORTED,
    Verdict.HOLDS,
    Verdict.PENDING,
)
VERDICTS = tuple(verdict.value for verdict in _WORST_FIRST)
"""The verdicts, in the order in which a reader wants to know of them."""
_PAIRS = (("left", "right"), ("delta", "gaussian_delta"))
"""Names of two true numbers that are compared with each other."""
_PLAIN = decimal_context(28, ROUND_HALF_EVEN)
"""For numbers that are shown, also those below 1e-1000000; it has no errors, only NaN."""
_FEW_DIGITS = 4
"""A number with fewer digits is shown by both of its ends."""


@final
@dataclass(frozen=True)
class Comparison:
    """A true number, and the one that was claimed."""

    name: str
    true: Interval
    other: Interval | None
    """The claimed number, or the other side; None where the claim has none of this name."""
    other_name: str

    @property
    def factor(self) -> str:
        """The true number over the claimed one; empty where the ratio has no meaning."""
        if self.other is None:
            return ""
        if self.true == self.other:
            return "equal"
        if self.true.overlaps(self.other):
            digits = min(self.true.digits, self.other.digits)
            return f"equal to {int(digits)} digits" if digits >= _FEW_DIGITS else ""
        if self.true.lower <= 0 or self.other.lower <= 0:
            return ""
        wide = self.true.digits < _FEW_DIGITS
        ends = (self.true.lower, self.true.upper) if wide else (middle(self.true),)
        times = [ratio(_PLAIN.divide(end, middle(self.other))) for end in ends]
        return f"{' to '.join(times)} times" if all(times) else ""


def comparisons(finding: Finding) -> list[Comparison]:
    """Return the true numbers of a finding, each with what it is compared with."""
    true = {name: Interval.of_json(value) for name, value in finding.true.items()}
    for name, other in _PAIRS:
        if {name, other} <= true.keys():
            return [Comparison(name, true[name], true[other], other)]
    found = []
    for name, value in true.items():
        claimed = finding.claimed.get(name, finding.claimed.get("printed"))
        found.append(Comparison(name, value, _number(claimed), "claimed"))
    return found


def middle(value: Interval) -> Decimal:
    """Return the middle of an enclosure, to the digits that a reader wants."""
    return _PLAIN.divide(_PLAIN.add(value.lower, value.upper), Decimal(2))


def show(finding: Finding, stream: TextIO) -> None:
    """Print one finding as text, its verdict in colour on a terminal."""
    verdict, text = finding.verdict.value, fitted(_rows(finding), stream)
    coloured = styled(verdict, f"bold {STYLES[finding.verdict]}", stream)
    stream.write(coloured + text.removeprefix(verdict) + program(finding) + "\n")


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings in the order in which a reader wants them: refuted ones first."""
    return sorted(findings, key=lambda finding: _WORST_FIRST.index(finding.verdict))


def show_table(findings: Sequence[Finding], stream: TextIO) -> None:
    """Print the findings, refuted ones first and with their causes, and how many there are."""
    rows = [
        Row(
            (finding.verdict.value, _name(finding), _factor(finding)),
            floats_in_short(finding.formal),
            _cause(finding),
            f"bold {STYLES[finding.verdict]}",
        )
        for finding in worst_first(findings)
    ]
    head = Row(("verdict", "id", "true/claimed"), "claim", style="bold")
    show_rows([head, *rows], stream, caption=counts(findings))


def _cause(finding: Finding) -> str:
    """Return the cause of a refutation, or what was found."""
    if not finding.verdict.is_false:
        return ""
    return f"because: {finding.cause or finding.reason}"


def counts(findings: Sequence[Finding]) -> str:
    """Say how many claims there are of each verdict."""
    number = Counter(finding.verdict for finding in findings)
    parts = [f"{number[verdict]} {verdict.value}" for verdict in Verdict if number[verdict]]
    return f"{len(findings)} claims: " + ", ".join(parts) + _errors(findings)


def _errors(findings: Sequence[Finding]) -> str:
    """Say how many distinct errors the refuted statements have, where a file groups them."""
    stricter = sum(f.is_stricter for f in findings if f.verdict is Verdict.REFUTED)
    if not stricter and not any(finding.error for finding in findings):
        return ""
    errors = distinct_errors(findings)
    fallen = sum(map(len, errors.values()))
    several = "" if len(errors) == 1 else "s"
    fall = f"{fallen} by {len(errors)} distinct error{several}" if errors else "no distinct error"
    strict = f"; {stricter} only read more strictly than meant, or cited" if stricter else ""
    return f". REFUTED: {fall}{strict}"


def details(finding: Finding) -> list[tuple[str, str]]:
    """Return all that is said about a finding, label by label and nothing twice."""
    witness = finding.witness
    said, mechanism = finding.statement, str(witness.get("mechanism", ""))
    rows = [
        ("claim", finding.formal),
        (
            "remedy" if finding.verdict is Verdict.REFUTED else "correction",
            remedy(finding) or finding.correction,
        ),
        (
            "in words",
            ""
            if _without_brackets(said[3:-1]) in _without_brackets(finding.formal)
            else f"“{said}”",
        ),
        ("note", finding.note),
        ("expected", finding.expected),
        ("source", "" if finding.source in TYPED else finding.source),
        ("adjacency", finding.adjacency or ""),
        ("case", _case(witness.get("case", {}))),
        ("mechanism", "" if mechanism in finding.formal else mechanism),
    ]
    if not any(entry.other for entry in comparisons(finding)):
        rows.append(("claimed", ", ".join(f"{k} = {v}" for k, v in finding.claimed.items())))
    elif "relation" in finding.claimed:
        rows.append(("claimed", finding.claimed["relation"]))
    rows += [(f"true {c.name}", _in_words(c, finding)) for c in comparisons(finding)]
    rows += [("because", finding.reason), *event(finding)]
    rows += [
        ("worst case", str(witness.get("worst_case", ""))),
        ("cause", finding.cause),
        ("error", finding.error),
        ("rigour", _footer(finding)),
    ]
    return [(label, one_line(floats_in_short(text))) for label, text in rows if text]


def _rows(finding: Finding) -> str:
    """Return the verdict of a finding and what is said about it, line by line."""
    rows = [(finding.verdict.value, _name(finding)), *details(finding)]
    if finding.source in TYPED:  # who types one claim gives it no name
        rows[:2] = [(finding.verdict.value, rows[1][1])]
    width = max(len(label) for label, _ in rows)
    return "".join(f"{label.ljust(width)}  {text}\n" for label, text in rows)


def _name(finding: Finding) -> str:
    """Return the id, which a file may choose: quoted unless it is one word."""
    plain = re.fullmatch(r"[\w./:+()*-]+", finding.id, re.ASCII)
    return finding.id if plain else ascii(finding.id)


def _factor(finding: Finding) -> str:
    """Return the factor by which the worst case exceeds what is claimed: above 1 it fails."""
    value = finding.margin.get("factor")
    return "" if value is None else ratio(middle(Interval.of_json(value)))


def _in_words(entry: Comparison, finding: Finding) -> str:
    text = str(entry.true)
    if entry.other is None:
        return text
    if entry.other_name != "claimed":
        text += f" against {entry.other_name} {entry.other}"
    else:
        text += f" ({_in_short(entry.other)} claimed{_other_numbers(entry.name, finding)})"
    return f"{text}: {entry.factor}" if entry.factor else text


def _other_numbers(name: str, finding: Finding) -> str:
    """Say at which other claimed numbers a true one was computed."""
    others = [key for key in ("epsilon", "delta", "order") if key in finding.claimed]
    shown = {key: _number(finding.claimed[key]) or finding.claimed[key] for key in others}
    return "".join(f", at {key} {_in_short(value)}" for key, value in shown.items() if key != name)


def _in_short(value: Interval | str) -> str:
    """Return a claimed number as numbers are written, 1e-5 for 0.00001."""
    if isinstance(value, Interval) and value.lower == value.upper:
        return in_short(value.lower)
    return str(value)


def _without_brackets(text: str) -> str:
    """Return a text without brackets, so that "1/3-GDP" and "(1/3)-GDP" are the same."""
    return text.translate({ord(bracket): None for bracket in "()"})


def _case(case: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in case.items())


def _footer(finding: Finding) -> str:
    cases = f"; {finding.cases} cases, the worst one shown" if finding.cases > 1 else ""
    return finding.rigour.value + cases


def _number(text: str | None) -> Interval | None:
    """Return a claimed number, None for a claim in words."""
    if text is None:
        return None
    try:
        number = exact(text)
    except InvalidInputError:
        return None
    if number.rational is not None:
        return Interval.of_exact(number.rational)
    return enclose(number.ball)
