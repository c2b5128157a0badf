"""The page of verdicts: each claim with the true values, plots, a remedy and its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpassay.accountant import notation
from dpassay.accountant.errors import DpassayError
from dpassay.accountant.numbers.interval import Interval
from dpassay.figures.pages import template
from dpassay.figures.pages.template import render
from dpassay.verifier import report
from dpassay.verifier.refutation import TYPED, by_hand, remedy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpassay.figures.tradeoff import Table
    from dpassay.verifier.batch import Outcome
    from dpassay.verifier.verdict import Finding

_DRAWN = 3
"""Up to this number of findings are expanded and have plots; longer lists are collapsed."""
_SHOWN_ELSEWHERE = {"claim", "in words", "remedy", "correction", "because", "datasets", "event S"}
_SHOWN_ELSEWHERE |= {"so", "P(S), Q(S)"}
"""Rows of details that are shown elsewhere on the page."""
_MEANINGS = {
    "HOLDS": "Proved over everything that the claim ranges over.",
    "ARGUED": "The lemmas were proved; the step from them to the claim is a person's text.",
    "SUPPORTED": "Proved in every case of a grid; the claim ranges over more.",
    "REFUTED": "The claim is false: a counterexample was proved.",
    "SLIP": "False as printed, a misprint or arithmetic; the corrected statement was proved.",
    "UNDECIDED": "Neither side was proved within the precision and time allowed.",
    "PENDING": "This is not a question about one release.",
}


def write(path: Path, outcomes: Sequence[Outcome], command: Sequence[str]) -> None:
    """Write the page of some findings and their certificates; `command` repeats the run."""
    path.write_text(page(outcomes, command), encoding="utf-8")


def page(outcomes: Sequence[Outcome], command: Sequence[str]) -> str:
    """Return the page as HTML, with refuted claims first."""
    found = [(one.finding, one.certificate) for one in outcomes if one.finding is not None]
    order = {f.id: at for at, f in enumerate(report.worst_first([f for f, _ in found]))}
    found.sort(key=lambda one: order[one[0].id])
    entries = [
        _entry(finding, certificate, f"claim-{number}", drawn=len(found) <= _DRAWN)
        for number, (finding, certificate) in enumerate(found, start=1)
    ]
    return render(
        "verdict.html",
        entries=entries,
        counts=report.counts([finding for finding, _ in found]),
        meanings=_MEANINGS,
        typed=TYPED,
        opened=len(found) <= _DRAWN,
        command=template.shell(command),
    )


def _entry(
    finding: Finding, certificate: dict[str, Any] | None, slug: str, *, drawn: bool
) -> dict[str, Any]:
    return {
        "slug": slug,
        "finding": finding,
        "verdict": finding.verdict.value,
        "remedy": remedy(finding),
        "numbers": report.comparisons(finding),
        "event": by_hand(finding),
        "pictures": _pictures(finding, slug) if drawn else [],
        "details": [
            row
            for row in report.details(finding)
            if row[0] not in _SHOWN_ELSEWHERE and not row[0].startswith("true ")
        ],
        "certificate": certificate,
        "file": f"{template.slug(finding.id)}.json",
    }


def _pictures(finding: Finding, slug: str) -> list[dict[str, Any]]:
    """Return the plots of the trade-off function and of the event, as far as they exist."""
    if find_spec("matplotlib") is None:  # such as in a browser
        return []
    from dpassay.figures import event, tradeoff

    witness = finding.witness
    try:
        mechanism: Any = notation.parse(str(witness.get("mechanism", "")))
    except DpassayError:
        return []
    is_event = witness.get("fact") == "event"
    point = (_number(witness["q"]), _number(witness["p"])) if is_event else None
    drawn: list[tuple[str, str, Figure]] = []
    allowed = "what the claim allows" + "; shaded where it is exceeded" * finding.refuted
    table = tradeoff.compute(mechanism, finding.claimed, adjacency=finding.adjacency, point=point)
    if table is not None:
        both = ("Trade-off", f"Errors of the best attack, and {allowed}.", tradeoff.draw(table))
        closer = []
        if tradeoff.excess(table):
            caption = f"The δ that an attack needs at ε = {table.epsilon:g}, and {allowed}."
            closer = [("Excess", caption, tradeoff.draw_excess(table))]
        elif table.epsilon is None:
            caption = f"True positives at few false positives, and {allowed}."
            closer = [("Few false positives", caption, tradeoff.draw_near(table))]
        drawn = [*closer, both] if finding.refuted else [both, *closer]
        drawn.append(_attacker(table))
    if is_event:
        laws = event.compute(witness["law"], witness["loss_above"])
        if laws is not None:
            words = "The laws P and Q of the worst two neighbours, and the event S."
            drawn.append(("The event", words, event.draw(laws)))
    return [
        {
            "title": title,
            "caption": caption,
            "svg": template.element(figure, f"{slug}-plot-{number}", title, caption),
        }
        for number, (title, caption, figure) in enumerate(drawn)
    ]


def _attacker(table: Table) -> tuple[str, str, Figure]:
    """Return the title, caption and plot of the success of membership inference."""
    from dpassay.figures import tradeoff

    _, true, claimed = min(tradeoff.guesses(table), key=lambda row: abs(row[0] - 0.5))
    words = (
        "How often the best guess whether a record is in the data is right. At even odds: "
        f"{true:.3g}; the claim allows {claimed:.3g}."
    )
    return "What an attacker gains", words, tradeoff.draw_guesses(table)


def _number(value: dict[str, str]) -> float:
    return float(report.middle(Interval.of_json(value)))
