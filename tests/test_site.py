"""The documentation: console blocks show what is printed, examples run, the site is whole."""

from __future__ import annotations

import argparse
import io
import json
import re
import runpy
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms import DESCRIPTIONS
from dpassay.figures import production
from dpassay.figures.cli import COMMAND as FIGURES
from dpassay.figures.comparison.cli import COMMAND
from dpassay.verifier.cli import main
from tests.quick import slow
from tests.scripts import script

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GUIDES = [
    *("adjacency", "releases"),
    *map(slow, ("training", "matrix", "selection", "local", "own_noise", "compare")),
    slow("interoperation"),
]
EXAMPLES = [
    path for path in sorted((ROOT / "examples").glob("*.py")) if "training" not in path.stem
]


def module(name: str) -> Any:
    return script(f"docs/{name}.py")


def consoles(page: str) -> list[tuple[str, str]]:
    """Return the commands of the console blocks of a page, with what they are said to print."""
    text = (DOCS / f"{page}.md").read_text("utf-8")
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        for command, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
            found.append((command, printed))
    return found


@pytest.mark.parametrize("page", GUIDES)
def test_console_blocks_show_what_is_printed(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command, printed in consoles(page):
        words = shlex.split(command)
        if words[0] == "head":
            shown = "".join(Path(words[2]).read_text("utf-8").splitlines(True)[: -int(words[1])])
        else:
            assert words[0] == "dpassay"
            out = io.StringIO()
            with redirect_stdout(out), redirect_stderr(io.StringIO()):
                main(words[1:], commands=[COMMAND])
            shown = out.getvalue()
        assert shown == printed, command


def commands() -> list[str]:
    """Return every command of the program that a page shows."""
    found: dict[str, None] = {}
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        for block in re.findall(
            r"^```(?:sh|console)\n(.*?)^```", page.read_text("utf-8"), re.M | re.S
        ):
            for line in block.replace("\\\n", " ").splitlines():
                command = line.removeprefix("$ ").split(" < ")[0].split(" > ")[0]
                if command.startswith("dpassay ") and "COMMAND" not in command:
                    found[command] = None
    return list(found)


def test_every_command_shown_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options and mechanisms are read; only those of the guides are run."""
    from dpassay.accountant import notation
    from dpassay.verifier import cli

    parse = cli.parse

    def parse_only(parser: Any, arguments: list[str]) -> argparse.Namespace:
        parse(parser, arguments)
        return argparse.Namespace(run=lambda options: 0)

    monkeypatch.setattr(cli, "parse", parse_only)
    shown = commands()
    assert len(shown) > 30
    for command in shown:
        words = shlex.split(command, comments=True)[1:]
        err = io.StringIO()
        with redirect_stderr(err):
            code = main(words, commands=[FIGURES, COMMAND])
        assert code == 0, f"{command}: {err.getvalue()}"
        for word in words:
            if re.fullmatch(r"[A-Z]\w+\(.*\)", word):
                notation.parse_description(word)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path: Path) -> None:
    """The build of the site runs them all."""
    for name in ("jax", "torch"):
        if f"import {name}\n" in path.read_text("utf-8"):
            pytest.importorskip(name)
    out = io.StringIO()
    with redirect_stdout(out):
        runpy.run_path(str(path), run_name="__main__")
    assert out.getvalue().strip()


def test_the_notebook_has_the_cells_of_the_tutorial() -> None:
    made = module("make_notebook")
    stored = json.loads(made.NOTEBOOK.read_text("utf-8"))["cells"]
    page = made.cells(made.PAGE.read_text("utf-8"))
    assert [cell["cell_type"] for cell in stored] == [kind for kind, _ in page]
    shown = [cell["source"].replace(made.SITE, "](") for cell in stored]
    assert shown == [source.replace("](../docs/", "](") for _, source in page]
    printed = "".join(out["text"] for cell in stored for out in cell.get("outputs", []))
    assert "REFUTED" in printed


def test_the_budget_file_of_the_guide_is_read(tmp_path: Path) -> None:
    from dpassay.verifier.compare.comparison import read_file

    (text,) = re.findall(
        r"^```toml\n(.*?)^```", (DOCS / "compare.md").read_text("utf-8"), re.M | re.S
    )
    file = tmp_path / "budget.toml"
    file.write_text(text, encoding="utf-8")
    question = read_file(file)
    assert len(question.read()["candidates"]) == 1


def test_every_mechanism_has_a_page() -> None:
    pages = module("mechanism_pages")
    shown = {type(mechanism) for listed in pages.examples().values() for mechanism, _ in listed}
    assert shown == {kind for kind in DESCRIPTIONS.values() if issubclass(kind, Mechanism)}


@pytest.mark.browser
def test_the_site_is_built_without_warnings_and_opens_in_a_browser(tmp_path: Path) -> None:
    site, made = tmp_path / "html", tmp_path / "made"
    for name in ("better-gaussian/2", "less-is-more/1"):
        assert not production.make_stored(name, made).error
    command = [sys.executable, str(DOCS / "build.py"), str(site), "--figures", str(made)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr + built.stdout
    require_whole_links(site)
    require_pages_that_open(site)


def require_whole_links(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    texts = {page: page.read_text("utf-8") for page in pages}
    anchors = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in texts.items()}
    for page, text in texts.items():
        assert ">Type<span" not in text, page  # a docstring of an attribute, torn at its colon
        for target in re.findall(r'(?:href|src)="([^"]+)"', text):
            if re.match(r"[a-z]+:|//", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path.split("?")[0]).resolve() if path else page
            assert file.exists(), f"{page.name}: {target}"
            if anchor and file in anchors:
                assert anchor in anchors[file], f"{page.name}: {target}"


def require_pages_that_open(site: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        for name in (
            "index",
            "tutorial",
            "compare",
            "gallery",
            "training",
            "reference/questions-about-a-mechanism",
            "mechanisms/Gaussian",
            "mechanisms/index",
            "findings/less-is-more",
        ):
            page.goto((site / f"{name}.html").as_uri())
            assert page.locator("h1").count() == 1
            widths = page.eval_on_selector_all(
                "article img:not([loading])", "pictures => pictures.map(each => each.naturalWidth)"
            )
            assert all(width > 0 for width in widths)
            if name == "mechanisms/Gaussian":
                assert len(widths) == 1
        require_a_home_page_and_cards(page, site)
        require_verdicts_that_are_picked(page, site)
        assert complaints == []
        browser.close()


def require_a_home_page_and_cards(page: Page, site: Path) -> None:
    """One picture; on the page of figures cards whose pictures load and lead to the gallery."""
    page.goto((site / "index.html").as_uri())
    assert page.locator("article figure svg[role=img]").count() == 1
    page.goto((site / "figures.html").as_uri())
    pictures = page.locator(".cards img")
    assert pictures.count() == 2
    for index in range(2):
        pictures.nth(index).scroll_into_view_if_needed()
        page.wait_for_function(
            "each => each.naturalWidth > 0", arg=pictures.nth(index).element_handle()
        )
    page.locator(".cards a").nth(1).click()
    asked = page.locator("details[open]")
    assert asked.count() == 1
    assert asked.locator("#figure-less-is-more-1").is_visible()


def require_verdicts_that_are_picked(page: Page, site: Path) -> None:
    """What is refuted is shown first; other verdicts, papers and words on request."""
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto((site / "verdicts.html").as_uri())
    shown = page.locator(".row:visible")
    refuted = shown.count()
    assert page.locator(".row.REFUTED").count() == refuted > 0
    assert page.locator("label[for=verdict-REFUTED]").inner_text() == f"REFUTED {refuted}"
    size = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    wide, tall = page.evaluate(size)
    assert wide <= 390
    assert tall < 150 * refuted
    page.locator("label[for=paper-less-is-more]").click()
    assert 0 < shown.count() < refuted
    page.locator("#words").fill("theorem-5/tight")
    assert shown.count() == 0
    page.locator("#words").fill("theorem-5/proof/tight")
    assert shown.count() == 1
    shown.locator("summary").click()
    assert shown.get_by_text("What is true:").is_visible()


@pytest.mark.browser  # needs the tools of the documentation, as the pages do
def test_letters_are_raised_and_lowered_in_text_and_formulas_are_mathml() -> None:
    mathematics = module("extensions/mathematics")

    def shown(text: str) -> str:
        return "".join(str(node) for node in mathematics.scripts(text))

    up, down = "superscript", "subscript"
    assert shown("R^M") == f"R<{up}>M</{up}>"
    assert shown("σ_* z") == f"σ<{down}>*</{down}> z"
    assert shown("e^{−n_i ε}") == f"e<{up}>−n<{down}>i</{down}> ε</{up}>"
    for name in ("l2_sensitivity", "a ^ b", "__init__", "sampling_prob=0"):
        assert shown(name) == name
    assert "<mfrac>" in mathematics.tex2mathml(r"\frac{1}{2}")


def test_every_row_of_the_verdicts_is_on_the_page_of_verdicts() -> None:
    text = (DOCS / "verdicts.md").read_text("utf-8")
    page = module("site_pages").verdict_page(text)
    rows = re.findall(r'class="row (\w+)', page)
    claims = [line for line in text.splitlines() if re.match(r"\| `\S+` .* “", line)]
    assert len(rows) == len(claims)
    assert rows[0] == "REFUTED"
    assert rows.count("REFUTED") == sum("| REFUTED |" in line for line in claims)


def test_every_public_name_is_in_the_reference_or_has_a_page() -> None:
    public: list[str] = import_module("dpassay").__all__
    pages = "".join(module("build").reference().values())
    for name in public:
        assert name in DESCRIPTIONS or re.search(rf":: dpassay\.{name}$", pages, re.M), name
