"""Making, keeping, checking; whole runs; the command line; the gallery as text."""

from __future__ import annotations

import itertools
import json
import os
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from dpassay.accountant.errors import NotApplicableError
from dpassay.figures import gallery, production, registry, style
from dpassay.figures.cli import COMMAND
from dpassay.figures.description import Settings, Size
from dpassay.verifier import processes
from dpassay.verifier.cli import main
from dpassay.verifier.cli.verify import ledger
from tests.quick import slow

FAST = Settings(size=Size.FAST)
NAME = "better-gaussian/2"


def run(*arguments: str) -> int:
    return main(["figures", *arguments], commands=[COMMAND])


@pytest.mark.slow
def test_a_figure_is_five_files_the_same_ones_every_time(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        made = production.make(NAME, FAST, folder)
        assert not made.error
    for suffix in (".png", ".pdf", ".svg", ".csv"):
        first, second = ((f / f"{NAME}{suffix}").read_bytes() for f in folders)
        assert len(first) > 300
        assert first == second
    assert b"reduced grid" in (folders[0] / f"{NAME}.svg").read_bytes()
    written = production.provenance(NAME, folders[0])
    assert written is not None
    assert written["parameters"]["d"] == 10_000
    assert written["seed"] == FAST.seed
    assert "2550.25 instead of 10000" in written["finding"]
    svg = (folders[0] / f"{NAME}.svg").read_text("utf-8").replace("\u00a0", " ")
    assert written["finding"].split(";")[0] in svg.replace("&#160;", " ")
    assert {"query", "size"} <= {column["name"] for column in written["columns"]}


def test_check_passes_and_fails_when_a_table_is_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--check", "--fast", "--only", NAME, "--quiet") == 0
    stored = production.stored_table(NAME, Size.FAST)
    assert stored is not None
    changed = stored.replace("5000.5", "5000.50001")
    assert changed != stored
    monkeypatch.setattr(production, "stored_table", lambda *_: changed)
    assert run("--check", "--fast", "--only", NAME, "--quiet") == 1
    assert "stored: 5000.50001" in capsys.readouterr().out


def test_every_figure_has_its_tables_its_words_and_its_claims() -> None:
    ids = {claim.id for paper in registry.PAPERS for claim in ledger(paper)}
    for name in registry.FIGURES:
        about = registry.description(name)
        assert about.plotted
        assert about.says
        assert len(about.alt) > 60, name
        assert set(gallery.claims_of(name)) <= ids, name
        for size in (Size.DEFAULT, Size.FAST):
            assert production.stored_table(name, size), (name, size)
        assert production.stored(name) is not None, name


PAGE = Path(__file__).parents[2] / "docs" / "figures.md"
TITLES: dict[str, str] = {
    name: title.replace("\\|", "|")
    for name, title in re.findall(r"(?m)^\| `([^`]+)` \| (.*) \|$", PAGE.read_text("utf-8"))
}
_SAID = re.compile(r"[Pp]rinted \((.+?)\): (.*?)(?:[.;] |$)")
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_NUMBER = re.compile(r"(?<![A-Za-z])\d+(?:\.\d+)?")


def test_a_title_that_says_printed_names_where_and_its_numbers_stand_there() -> None:
    assert list(TITLES) == list(registry.FIGURES)
    quoting = 0
    for name, title in TITLES.items():
        about = registry.description(name)
        assert title, name
        assert "rinted" not in _SAID.sub("", title), title
        for place, said in _SAID.findall(title):
            quoting += 1
            assert place == about.where, title
            numbers = set(_NUMBER.findall(said.translate(_DIGITS)))
            assert numbers <= set(_NUMBER.findall(about.quote.translate(_DIGITS))), title
    assert quoting


@pytest.mark.parametrize("name", [NAME, "less-is-more/2"])
def test_a_stored_table_is_the_one_that_is_computed(name: str) -> None:
    stored, computed = production.stored(name), production.computed(name, Settings())
    assert stored is not None
    assert (stored.columns, stored.rows) == (computed.columns, computed.rows)
    assert stored.about() == computed.about()


def words(figure: Figure) -> dict[str, Bbox]:
    """Return where the title, the panels' titles, labels and legends of a drawn figure stand."""
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    figure.draw_without_rendering()
    parts: list[Text | Legend] = [*figure.texts, *figure.legends]
    for axes in figure.axes:
        parts += [axes.xaxis.label, axes.yaxis.label, *axes.texts]
        parts += [child for child in axes.get_children() if isinstance(child, Text)]
    shown = [part for part in parts if part.get_visible()]
    boxes = {f"{n} {p}": p.get_window_extent(renderer) for n, p in enumerate(shown)}
    return {name: box for name, box in boxes.items() if box.width > 0}


@pytest.mark.parametrize("column", [True, slow(False)], ids=["column", "page"])
@pytest.mark.parametrize("name", registry.FIGURES)
def test_the_title_is_that_of_the_page_and_no_word_is_cut_off_or_on_it(
    name: str, column: bool
) -> None:
    """Drawn from the stored table."""
    table = production.stored(name)
    assert table is not None
    figure = registry.load(name).draw(table)
    assert figure.get_label() == TITLES[name]
    if column:
        style.narrow(figure)
    title, *others = words(figure).items()
    page = figure.bbox.padded(2)
    for word, box in (title, *others):
        assert page.x0 <= box.x0 <= box.x1 <= page.x1, word
        assert page.y0 <= box.y0 <= box.y1 <= page.y1, word
    assert not [word for word, box in others if box.overlaps(title[1])]
    assert round(figure.get_figwidth(), 1) <= (style.COLUMN if column else style.PAGE)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--only", "better-gausian/1"), "Did you mean 'better-gaussian/1'?"),
        (("--paper", "better"), "No paper with figures has the name 'better'"),
        (("--out", "/dev/null/figures"), "Cannot make the folder /dev/null/figures"),
        (("--jobs", "0"), "Expected --jobs 0 ≥ 1"),
        (("--seed", "-1"), "Expected seed=-1 ≥ 0"),
        (("--data", "/no/such/folder"), "to be a folder"),
        (("--check", "--full"), "--check compares with tables of the default"),
    ],
)
def test_bad_input_is_said_before_anything_is_computed(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert said in capsys.readouterr().err


def test_missing_extras_are_said_before_any_figure_is_made(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda name: None if name == "sklearn" else name)
    assert run("--fast", "--out", str(tmp_path / "out")) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "less-is-more/6, less-is-more/7, less-is-more/11: install" in line
    assert "'dpassay[figures]'" in line
    assert not (tmp_path / "out").exists()


def test_the_list_has_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(registry.FIGURES)
    assert run("--list", "--json", "--only", NAME) == 0
    (row,) = json.loads(capsys.readouterr().out)["figures"]
    assert row["figure"] == "Figure 2"


class _Links(HTMLParser):
    """Collects ids and links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        for key, value in attrs:
            if key == "id" and value:
                self.ids.append(value)
            if key == "href" and value and tag == "a":
                self.links.append(value)


@pytest.mark.slow
def test_one_command_makes_figures_and_a_page_that_needs_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [NAME, "better-gaussian/3"]
    only = [part for name in names for part in ("--only", name)]
    assert run(*only, "--fast", "--out", str(tmp_path), "--jobs", "1", "--json") == 0
    rows = json.loads(capsys.readouterr().out)["figures"]
    assert [row["id"] for row in rows] == names
    assert rows[1]["verdicts"]["better-gaussian/figure-3/right"] == "HOLDS"
    assert all(Path(file).is_file() for row in rows for file in row["files"])
    page = (tmp_path / gallery.PAGE_NAME).read_text("utf-8")
    found = _Links()
    found.feed(page)
    assert len(found.ids) == len(set(found.ids))
    assert found.scripts == 0
    for link in found.links:
        inside = link.removeprefix("#")
        assert inside in found.ids if link.startswith("#") else (tmp_path / link).is_file()
    pictures = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    assert len(pictures) == len(names)
    for picture in pictures:
        root = ET.fromstring(picture)
        assert root.get("role") == "img"
        labels = (root.get("aria-labelledby") or "").split()
        texts = {node.get("id"): node.text for node in root if node.get("id") in labels}
        assert len(texts) == 2
        assert all(texts.values())
        assert "#1a1a1a" not in picture
    assert "://" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", page).replace("href", "")


QUICK = [name for name in registry.FIGURES if not registry.description(name).needs]
FIRST = [next(figures) for _, figures in itertools.groupby(QUICK, lambda n: n.split("/")[0])]


@pytest.mark.slow
@pytest.mark.parametrize(("size", "names"), [([], FIRST), (["--fast"], QUICK)])
def test_every_stored_table_is_found_again(size: list[str], names: list[str]) -> None:
    """The fast size is the same figure on fewer points: one of each paper is computed whole."""
    only = [part for name in names for part in ("--only", name)]
    assert main(["figures", "--check", "--quiet", *size, *only], commands=[COMMAND]) == 0


def test_a_process_that_is_killed_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every worker dies as it starts, as under a limit on memory."""
    monkeypatch.setattr(processes, "work_for", os._exit)
    with pytest.raises(NotApplicableError, match="--jobs 1"):
        list(production.make_all(["better-gaussian/1", NAME], FAST, tmp_path, jobs=2))
