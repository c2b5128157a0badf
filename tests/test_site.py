"""The documentation: console blocks show what is printed, examples run, the site is whole."""

from __future__ import annotations

import argparse
import importlib.util
import io
import re
import runpy
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from accountant.core.mechanism import Mechanism
from accountant.mechanisms import DESCRIPTIONS
from figures.cli import COMMAND as FIGURES
from figures.comparison.cli import COMMAND
from verify.cli import main

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GUIDES = ["start", "compare", "interoperation"]
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))


def module(name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    found = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(found)
    return found


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
    from accountant import notation
    from verify import cli

    parsed = cli._parsed

    def parse_only(parser: Any, arguments: list[str]) -> argparse.Namespace:
        parsed(parser, arguments)
        return argparse.Namespace(run=lambda options: 0)

    monkeypatch.setattr(cli, "_parsed", parse_only)
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
    out = io.StringIO()
    with redirect_stdout(out):
        runpy.run_path(str(path), run_name="__main__")
    assert out.getvalue().strip()


def test_the_budget_file_of_the_guide_is_read(tmp_path: Path) -> None:
    from verify.compare.document import read_file

    (text,) = re.findall(
        r"^```toml\n(.*?)^```", (DOCS / "compare.md").read_text("utf-8"), re.M | re.S
    )
    file = tmp_path / "budget.toml"
    file.write_text(text, encoding="utf-8")
    question = read_file(file)
    assert len(question.candidates) == len(question.sweeps) == 1


def test_every_mechanism_has_a_page() -> None:
    pages = module("mechanism_pages")
    shown = {type(mechanism) for listed in pages.examples().values() for mechanism, _ in listed}
    assert shown == {kind for kind in DESCRIPTIONS.values() if issubclass(kind, Mechanism)}


@pytest.mark.browser
def test_the_site_is_built_without_warnings_and_opens_in_a_browser(tmp_path: Path) -> None:
    site = tmp_path / "html"
    command = [sys.executable, str(DOCS / "build.py"), str(site)]
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
        for target in re.findall(r'(?:href|src)="([^"]+)"', text):
            if re.match(r"[a-z]+:|//", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path.split("?")[0]).resolve() if path else page
            assert file.exists(), f"{page.name}: {target}"
            if anchor and file in anchors:
                assert anchor in anchors[file], f"{page.name}: {target}"


def require_pages_that_open(site: Path) -> None:
    from playwright.sync_api import sync_playwright

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
            "start",
            "compare",
            "gallery",
            "mechanisms/Gaussian",
            "mechanisms/index",
            "findings/less-is-more",
        ):
            page.goto((site / f"{name}.html").as_uri())
            assert page.locator("h1").count() == 1
            widths = page.eval_on_selector_all(
                "article img", "pictures => pictures.map(each => each.naturalWidth)"
            )
            assert all(width > 0 for width in widths)
            if name == "mechanisms/Gaussian":
                assert len(widths) == 1
        assert complaints == []
        browser.close()
