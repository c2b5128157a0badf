"""What the site shows besides its Markdown: cards of figures, one picture, the table of verdicts.

`docs/build.py` calls it. Templates are in `docs/templates/`; those of the program are used too.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import jinja2

from dpassay.figures import event, gallery, production, registry, schemes
from dpassay.figures.pages import template
from dpassay.verifier import document, report
from dpassay.verifier.processes import workers

HERE = Path(__file__).resolve().parent
PICTURE, TABLE = "<!-- picture -->", "\n| id |"
EPOCHS = "<!-- epsilon against epochs -->"
COUNT_NOISE = "BoundedCountNoise(epsilon=2.2, eta='0.01', support=8)"
CLAIM = {"epsilon": "2.2", "delta": "1.4e-6"}
"""The refutation of the home page: a published law, and the guarantee that is claimed of it."""
_ROW = re.compile(
    r"^\| `(?P<id>[^`]+)` (?P<formal>.*?) \| “(?P<statement>.*?)” (?P<note>.*?) \| (?P<source>.*?) "
    r"\| (?P<verdict>[A-Z]+) \| (?P<reason>.*) \|$"
)


def make_figures(folder: Path, *, jobs: int = 2) -> None:
    """Draw all figures from their stored tables; what is finished is kept."""
    with workers(jobs, "drew a figure", "Run it again.") as executor:
        drawn = list(executor.map(partial(production.make_stored, out=folder), registry.FIGURES))
    for made in drawn:
        if made.error:
            print(f"{made.name}: {made.error}")  # noqa: T201


def write(source: Path, figures: Path | None) -> None:
    """Fill the places of the pages in a folder that Sphinx reads.

    Parameters
    ----------
    source
        The folder.
    figures
        Where figures were made; None for a site without them.
    """
    styles = [source / "_static" / "site.css", template.FOLDER / "cards.css"]
    styles[0].write_text("".join(path.read_text("utf-8") for path in styles), encoding="utf-8")
    _fill(source / "index.md", PICTURE, picture())
    _fill(source / "training.md", EPOCHS, epochs())
    if figures is not None:
        page = source / "figures.md"
        _fill(page, TABLE, cards(figures, source), after=TABLE)
    page = source / "verdicts.md"
    page.write_text(verdict_page(page.read_text("utf-8")), encoding="utf-8")


def _fill(page: Path, place: str, html: str, *, after: str = "") -> None:
    text = page.read_text("utf-8")
    if place not in text:
        raise LookupError(f"{page} has no place {place}")
    page.write_text(text.replace(place, f"{_raw(html)}\n{after}", 1), encoding="utf-8")


def _raw(html: str) -> str:
    return f"````{{raw}} html\n{html}\n````" if html else ""


def picture() -> str:
    """Return the law of the count noise under both neighbours, and the event that refutes it."""
    from dpassay.verifier.ask import verify

    finding = verify(COUNT_NOISE, **CLAIM)
    witness = finding.witness
    table = event.compute(witness["law"], witness["loss_above"])
    if table is None:
        raise LookupError(f"Nothing can be drawn of the event of {COUNT_NOISE}.")
    alt = "The noise is nearly always +1 or −1, so that the parity of the output tells neighbours."
    drawn = template.of(event.draw(table))
    return f"<figure>{template.inline(drawn, slug='home', title='The event', alt=alt)}</figure>"


def epochs() -> str:
    """Return ε against epochs by sampling, of the run that the page is about."""
    from dpassay.accountant.training import training_schemes

    table = training_schemes(256, 60000, noise_multiplier="1.1", epochs=30, delta="1e-5")
    alt = "Poisson batches and random allocation are close; shuffled batches leak far more."
    drawn = template.of(schemes.draw(schemes.compute(table)))
    return f"<figure>{template.inline(drawn, slug='epochs', title='Epsilon', alt=alt)}</figure>"


def cards(figures: Path, source: Path) -> str:
    """Return the cards of the figures that are there, and copy the gallery and all files."""
    names = [name for name in registry.FIGURES if production.provenance(name, figures)]
    findings = gallery.decide(names, jobs=2)
    static = source / "_static" / "figures"
    for name in names:
        for path in production.files(name, figures).values():
            copy = static / path.relative_to(figures)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    gallery.write(names, static, findings, {})
    shown = gallery.cards(names, static, findings, {})
    for card in shown:
        name = f"figures/{card['name']}.card.svg"
        drawn = production.files(card["name"], static)[".svg"].read_text("utf-8")
        (source / "_static" / name).write_text(template.alone(drawn), encoding="utf-8")
        card["image"] = f"_static/{name}"
    return _environment().get_template("home_cards.html").render(cards=shown)


def verdict_page(text: str) -> str:
    """Return the page of all verdicts as one table to be searched, what is refuted first."""
    known = {
        f"{ledger.name}/{claim.id}": claim
        for ledger in [*document.every_paper(), document.read_paper(document.FIELD)]
        for claim in ledger.claims
    }
    head, *sections = re.split(r"^## (?=[a-z-]+\n)", text, flags=re.M)
    rows: list[dict[str, Any]] = []
    for section in sections:
        paper, _, rest = section.partition("\n")
        for line in rest.splitlines():
            found = _ROW.match(line)
            if found:
                row = {key: value.replace("\\|", "|") for key, value in found.groupdict().items()}
                claim = known[f"{paper}/{row['id']}"]
                row |= {"paper": paper, "short": row["id"], "id": f"{paper}/{row['id']}"}
                row |= {"cause": claim.cause, "correction": claim.correction}
                rows.append(row)
    rows.sort(key=lambda row: report.VERDICTS.index(row["verdict"]))
    counts = Counter(row["verdict"] for row in rows)
    table = (
        _environment()
        .get_template("verdicts.html")
        .render(
            rows=rows,
            verdicts=[(name, counts[name]) for name in report.VERDICTS if counts[name]],
            papers=list(dict.fromkeys(row["paper"] for row in rows)),
        )
    )
    title, _, rest = head.partition("\n")
    tables = f"## In numbers\n\n{rest.strip()}"
    hint = "Open a row for its author's words and the reason."
    return f"{title}\n\n{hint}\n\n{_raw(table)}\n\n{tables}\n"


def _environment() -> jinja2.Environment:
    folders = [HERE / "templates", template.FOLDER]
    return template.environment(jinja2.FileSystemLoader(folders))
