"""The gallery: one HTML page with all figures, what the papers say, and what is true.

The page is whole in itself: the figures are inline SVG, there is no script and nothing is
fetched. Each picture has a text alternative, each verdict a link to its entry of the ledger.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from figures import production, registry, verdicts

if TYPE_CHECKING:
    from verify.verdict import Finding

PAGE_NAME = "index.html"
_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
       max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { margin-top: 3rem; border-bottom: 2px solid #1a1a1a; }
h3 { margin: 2.5rem 0 .5rem; }
figure { margin: 0; } figure svg { width: 100%; height: auto; max-width: 48rem; }
figure svg text { font-family: "DejaVu Sans", Verdana, sans-serif !important; }
dt { font-weight: 600; margin-top: .4rem; } dd { margin: 0 0 0 1rem; }
nav ul { columns: 2; padding-left: 1.2rem; }
a { color: #00528a; } code { font-size: .9em; }
.verdict { display: inline-block; min-width: 6.5em; padding: 0 .4em; border: 1.5px solid;
           border-radius: .3em; font-size: .8em; font-weight: 700; text-align: center; }
.HOLDS { color: #00613f; } .REFUTED { color: #a32c00; border-style: double; border-width: 3px; }
.SUPPORTED { color: #00528a; } .ARGUED { color: #4b3f8f; border-style: dotted; }
.PENDING, .UNDECIDED { color: #555; border-style: dashed; }
.missing { border: 1px dashed #555; padding: 1rem; }
ul.claims { list-style: none; padding: 0; } ul.claims li { margin: .3rem 0; }
section.ledger li { margin: .9rem 0; }
"""
_IDS = re.compile(r'\b(id="|xlink:href="#|href="#|url\(#)')


def write(
    names: Sequence[str], out: Path, findings: Mapping[str, Finding], errors: Mapping[str, str]
) -> Path:
    """Write the page about some figures, finished or not, and return its path."""
    path = out / PAGE_NAME
    path.write_text(page(names, out, findings, errors), encoding="utf-8")
    return path


def page(
    names: Sequence[str], out: Path, findings: Mapping[str, Finding], errors: Mapping[str, str]
) -> str:
    """Return the page."""
    papers = list(dict.fromkeys(registry.paper(name) for name in names))
    links = "".join(
        f'<li><a href="#{_anchor(name)}">{escape(name)}</a> '
        f"{escape(registry.load(name).DESCRIPTION.title)}</li>"
        for name in names
    )
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>Figures of five papers, recomputed</title>\n<style>{_STYLE}</style>\n</head>\n"
        "<body>\n<header><h1>Figures of five papers, recomputed</h1>\n"
        "<p>Each figure is computed from the definitions in the paper, or from what is true where "
        "that differs; each verdict is decided by the ledgers of dpassay.</p></header>\n"
        f'<nav aria-label="Figures"><ul>{links}</ul></nav>\n<main>'
    ]
    for paper in papers:
        parts.append(f'<section aria-label="{escape(paper)}">\n<h2>{escape(_title(paper))}</h2>')
        parts += [
            _article(name, out, findings, errors) for name in names if registry.paper(name) == paper
        ]
        parts.append("</section>")
    parts.append(_ledger(findings))
    parts.append("</main>\n</body>\n</html>\n")
    return "\n".join(parts)


def inline_svg(svg: str, *, slug: str, title: str, alt: str) -> str:
    """Return an SVG file as an element with a text alternative, its ids made unique by a slug."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = _IDS.sub(lambda match: match.group(1) + slug + "-", body)
    head, _, rest = body.partition(">")
    head = re.sub(r'\s(?:width|height)="[^"]*"', "", head)
    labels = f"{slug}-title {slug}-alt"
    return (
        f'{head} role="img" aria-labelledby="{labels}"><title id="{slug}-title">{escape(title)}'
        f'</title><desc id="{slug}-alt">{escape(alt)}</desc>{rest.strip()}'
    )


def _article(
    name: str, out: Path, findings: Mapping[str, Finding], errors: Mapping[str, str]
) -> str:
    about = registry.load(name).DESCRIPTION
    paths = production.files(name, out)
    made = production.provenance(name, out)
    title = f"{about.number}: {about.title}"
    head = f'<article id="{_anchor(name)}">\n<h3>{escape(title)}</h3>'
    if made is None:
        reason = errors.get(name, "Not made in this run.")
        return f'{head}\n<p class="missing">{escape(reason)}</p>\n</article>'
    svg = inline_svg(paths[".svg"].read_text("utf-8"), slug=_slug(name), title=title, alt=about.alt)
    rows = [("Plotted", about.plotted), ("The paper says", about.says), ("Differs", about.differs)]
    rows += [("Assumed", text) for text in about.assumptions]
    rows.append(("Parameters", _parameters(made["parameters"])))
    words = "".join(f"<dt>{k}</dt><dd>{escape(text)}</dd>" for k, text in rows if text)
    claims = "".join(
        f'<li>{_badge(findings[claim])} <a href="#{_anchor(claim, "claim")}">'
        f"<code>{escape(claim)}</code></a> {_words(findings[claim])}</li>"
        for claim in verdicts.claims_of(name)
        if claim in findings
    )
    verdict = f'<ul class="claims" aria-label="Verdicts">{claims}</ul>' if claims else ""
    downloads = ", ".join(
        f'<a href="{escape(paths[suffix].relative_to(out).as_posix())}">{suffix[1:].upper()}</a>'
        for suffix in paths
    )
    return (
        f"{head}\n<figure>{svg}<figcaption><dl>{words}</dl></figcaption></figure>\n{verdict}\n"
        f"<p>{downloads} · {made['seconds']:.1f} s</p>\n</article>"
    )


def _ledger(findings: Mapping[str, Finding]) -> str:
    entries = []
    for finding in findings.values():
        paper, _, short = finding.id.partition("/")
        command = f"dpassay verify --paper {paper} --only {short}"
        rest = [finding.reason, *([finding.note] if finding.note else [])]
        rest += [f"Likely cause: {finding.cause}"] if finding.cause else []
        rest += [f"Corrected: {finding.correction}"] if finding.correction else []
        entries.append(
            f'<li id="{_anchor(finding.id, "claim")}">{_badge(finding)} '
            f"<code>{escape(finding.id)}</code> ({escape(finding.source)})<br>"
            f"{_words(finding)}<br>{escape(' '.join(rest))}<br>"
            f"<code>{escape(command)}</code></li>"
        )
    if not entries:
        return ""
    listed = "\n".join(entries)
    return f'<section class="ledger"><h2>The ledger</h2>\n<ul>\n{listed}\n</ul></section>'


def _words(finding: Finding) -> str:
    """Return the formal claim, and what its author says."""
    said = f" “{escape(finding.statement)}”" if finding.statement else ""
    return f"<code>{escape(finding.formal)}</code>{said}"


def _badge(finding: Finding) -> str:
    verdict = finding.verdict.value
    return f'<span class="verdict {verdict}">{verdict}</span>'


def _parameters(parameters: Mapping[str, object]) -> str:
    return "; ".join(
        f"{key} = {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in parameters.items()
    )


def _title(paper: str) -> str:
    from verify import document

    about = document.read_paper(paper)
    return f"{about.authors}: {about.title}"


def _anchor(name: str, kind: str = "figure") -> str:
    return f"{kind}-{_slug(name)}"


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name)
