"""The gallery page: a card for each figure, with the paper's claims and their verdicts.

The page is self-contained: figures are inline SVG, and there are no scripts or external files. A
card expands to the full figure, its description, and the verdicts on the claims that it is about.
Cards can be filtered by paper and by verdict.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpassay.figures import production, registry
from dpassay.figures.pages import template
from dpassay.figures.pages.template import render
from dpassay.figures.style import PAGE
from dpassay.verifier import report
from dpassay.verifier.batch import concluded, decide_all
from dpassay.verifier.cli.verify import ledger, with_lemmas
from dpassay.verifier.refutation import remedy
from dpassay.verifier.verdict import Finding


def claims_of(name: str) -> list[str]:
    """Return the full ids of the claims that a figure is about."""
    claims = registry.description(name).claims
    return [f"{registry.paper(name)}/{claim}" for claim in claims]


def decide(names: Sequence[str], *, jobs: int) -> dict[str, Finding]:
    """Decide the claims of some figures; return the findings by id, in the order of the ledgers."""
    wanted = {claim for name in names for claim in claims_of(name)}
    everything = [claim for paper in registry.PAPERS for claim in ledger(paper)]
    claims = with_lemmas(everything, wanted)
    outcomes = dict(decide_all(claims, lemmas=everything, jobs=jobs, certified=False))
    findings = [outcome.finding for outcome in concluded(claims, outcomes).values()]
    return {f.id: f for f in findings if f is not None and f.id in wanted}


PAGE_NAME = "index.html"


def write(
    names: Sequence[str], out: Path, findings: Mapping[str, Finding], errors: Mapping[str, str]
) -> Path:
    """Write the page of some figures, finished or not, and return its path."""
    path = out / PAGE_NAME
    path.write_text(page(names, out, findings, errors), encoding="utf-8")
    return path


def page(
    names: Sequence[str], out: Path, findings: Mapping[str, Finding], errors: Mapping[str, str]
) -> str:
    """Return the page as HTML."""
    shown = cards(names, out, findings, errors)
    papers = Counter(card["paper"] for card in shown)
    by_verdict = Counter(verdict for card in shown for verdict in card["verdicts"])
    return render(
        "gallery.html",
        cards=shown,
        papers=[{"name": name, "title": _title(name), "cards": papers[name]} for name in papers],
        verdicts=[(name, by_verdict[name]) for name in report.VERDICTS if by_verdict[name]],
    )


def cards(
    names: Sequence[str], out: Path, findings: Mapping[str, Finding], errors: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the content of each figure's card."""
    return [_card(name, out, findings, errors.get(name, "")) for name in names]


def _card(name: str, out: Path, findings: Mapping[str, Finding], error: str) -> dict[str, Any]:
    about = registry.description(name)
    made = production.provenance(name, out)
    found = [findings[claim] for claim in claims_of(name) if claim in findings]
    counts = Counter(finding.verdict.value for finding in found)
    words = [("Plotted", about.plotted), ("The paper says", about.says)]
    words += [("In its words", f"“{about.quote}” ({about.where})"), ("Differs", about.differs)]
    words += [("Assumed", text) for text in about.assumptions]
    words += [("Parameters", _parameters(made["parameters"]))] if made is not None else []
    return {
        "name": name,
        "paper": registry.paper(name),
        "number": about.number,
        "title": (made or {}).get("finding") or about.title,
        "about": about.title,
        "alt": about.alt,
        "picture": "" if made is None else _picture(name, out),
        "share": 1 if made is None else made.get("width", PAGE) / PAGE,
        "missing": "" if made is not None else error or "Not made in this run.",
        "words": [(label, text) for label, text in words if text],
        "verdicts": {v: counts[v] for v in report.VERDICTS if counts[v]},
        "claims": [_claim(finding) for finding in report.worst_first(found)],
        "files": [] if made is None else _files(name, out),
        "seconds": None if made is None else made["seconds"],
    }


def _picture(name: str, out: Path) -> str:
    about = registry.description(name)
    drawn = production.files(name, out)[".svg"].read_text("utf-8")
    title = f"{about.number}: {about.title}"
    return template.inline(drawn, slug=template.slug(name), title=title, alt=about.alt)


def _files(name: str, out: Path) -> list[tuple[str, str]]:
    paths = production.files(name, out)
    return [
        (suffix[1:].upper(), path.relative_to(out).as_posix()) for suffix, path in paths.items()
    ]


def _claim(finding: Finding) -> dict[str, Any]:
    paper, _, short = finding.id.partition("/")
    return {
        "finding": finding,
        "verdict": finding.verdict.value,
        "remedy": remedy(finding),
        "command": f"dpassay verify --paper {paper} --only {short}",
    }


def _parameters(parameters: Mapping[str, object]) -> str:
    return "; ".join(
        f"{key} = {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in parameters.items()
    )


def _title(paper: str) -> str:
    from dpassay.verifier import document

    about = document.read_paper(paper)
    return f"{about.authors}: {about.title}"
