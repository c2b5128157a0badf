"""Build the documentation as a site, warnings as errors.

    python docs/build.py [OUT] [--no-plots] [--figures DIR]
    python docs/build.py --page [FOLDER]

The pages of this folder are copied; the pages of the mechanisms, the examples, the cards of the
figures and the reference of all names are made from the program itself; then Sphinx builds all of
it into OUT (build/site). The figures are drawn from their stored tables into build/figures, once.
With --page, the page that decides claims in a browser is written into FOLDER (build/page) instead.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import re
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
_BELOW = {
    "findings": ["field", "deployments", "verdicts", "figures", "findings/*"],
    "training": ["matrix"],
    "releases": ["streams"],
    "claims": ["proofs"],
}
"""Pages below another one, which the sidebar shows when that is open."""
_REST = "rigour"
"""The page above all others that the index does not name."""
_CHAPTERS = {
    "dpassay.accountant.questions": "Questions about a mechanism",
    "dpassay.accountant.summary": "Questions about a mechanism",
    "dpassay.accountant.training": "Training with noise",
    "dpassay.verifier.audit": "Audits",
    "dpassay.verifier.claims": "Claims",
    "dpassay.verifier": "Verdicts, calibration, comparison",
    "dpassay.accountant.account": "Budgets",
    "dpassay.accountant.budget": "Budgets",
    "dpassay.lp": "The least noise of a kind",
    "dpassay.accountant.geometry": "What is released",
    "dpassay.accountant.counting": "Running counts",
    "dpassay.accountant.errors": "Errors",
    "": "Numbers and notation",
}
"""The chapter of the reference, by where a name comes from: the first beginning that fits."""


def main() -> int:
    """Build; return Sphinx's exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", nargs="?", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--no-plots", action="store_true", help="leave the plots out")
    parser.add_argument(
        "--figures", type=Path, metavar="DIR", help="show what `dpassay figures` made there"
    )
    parser.add_argument(
        "--page",
        nargs="?",
        type=Path,
        const=ROOT / "build" / "page",
        metavar="FOLDER",
        help="build the page that decides claims in a browser",
    )
    options = parser.parse_args()
    if options.page is not None:
        sys.path.insert(0, str(DOCS))
        import_module("web_page").build(options.page)
        return 0
    figures = options.figures
    if figures is None and not options.no_plots:
        figures = ROOT / "build" / "figures"
        site_pages().make_figures(figures)
    source = options.out.parent / f"{options.out.name}-source"
    prepare(source, plots=not options.no_plots, figures=figures)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-b", "html"]
    return subprocess.run([*command, source, options.out], check=False).returncode


def site_pages() -> ModuleType:
    """Return the module beside this one that fills in figures and verdicts."""
    sys.path.insert(0, str(DOCS))
    return import_module("site_pages")


def prepare(source: Path, *, plots: bool = True, figures: Path | None = None) -> None:
    """Write everything that Sphinx reads into a new folder."""
    pages = site_pages()
    import mechanism_pages

    if source.exists():
        shutil.rmtree(source)
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns("__pycache__", "templates"))
    shutil.copyfile(ROOT / "CHANGELOG.md", source / "changelog.md")
    for schema in (ROOT / "verify" / "schema").glob("*.json"):
        shutil.copy(schema, source / "_static")
    mechanism_pages.write(source / "mechanisms", plots=plots)
    (source / "gallery.md").write_text(gallery(), encoding="utf-8")
    page = source / "capabilities.md"
    rows = re.compile(r"^\|(\w+)(?=\|[✓–])", re.M)
    page.write_text(rows.sub(r"|[\1](mechanisms/\1.md)", page.read_text("utf-8")), "utf-8")
    page = source / "tutorial.md"
    page.write_text(tutorial(page.read_text("utf-8")), encoding="utf-8")
    (source / "reference").mkdir()
    for name, text in reference().items():
        (source / "reference" / f"{name}.md").write_text(text, encoding="utf-8")
    pages.write(source, figures)
    named = (source / "index.md").read_text("utf-8").split()
    below = {parent: list(pages) for parent, pages in _BELOW.items()}
    kept = {*named, *(page for pages in below.values() for page in pages), "index"}
    below[_REST] = sorted(page.stem for page in source.glob("*.md") if page.stem not in kept)
    for parent, listed in below.items():
        with (source / f"{parent}.md").open("a", encoding="utf-8") as page:
            page.write("\n```{toctree}\n:hidden:\n:glob:\n\n" + "\n".join(listed) + "\n```\n")
    outside(source)


def outside(source: Path) -> None:
    """Say where files are that are not on the site: a link to them becomes their name."""
    for page in source.rglob("*.md"):
        text = page.read_text("utf-8")
        changed = re.sub(
            r"\[([^\]]+)\]\((?:\.\./)+(?!findings)([^)]+\.[a-z]+)\)", r"\1 (`\2`)", text
        )
        if changed != text:
            page.write_text(changed, encoding="utf-8")


def tutorial(text: str) -> str:
    """Return the tutorial with what each program prints, from the notebook that was executed."""
    cells = json.loads((ROOT / "examples" / "tutorial.ipynb").read_text("utf-8"))["cells"]
    printed = ["".join(out["text"] for out in cell.get("outputs", [])) for cell in cells]
    shown = iter(text for cell, text in zip(cells, printed, strict=True) if "outputs" in cell)

    def with_output(block: re.Match[str]) -> str:
        output = next(shown)
        return f"{block[0]}\n```text\n{output.rstrip()}\n```\n" if output else block[0]

    return re.sub(r"^```python\n.*?^```\n", with_output, text, flags=re.M | re.S)


def gallery() -> str:
    """Return the page of the examples: what each is about, its code, and what it prints."""
    parts = [
        "# Examples\n\nEach is a program in `examples/`; what it prints is from the run that "
        "made this page."
    ]
    for path in sorted((ROOT / "examples").glob("*.py")):
        code = path.read_text("utf-8")
        title, _, rest = (ast.get_docstring(ast.parse(code)) or path.stem).partition("\n")
        body = code.split('"""', 2)[2].strip()
        missing = [name for name in ("jax", "torch") if f"import {name}\n" in code]
        if any(find_spec(name) is None for name in missing):
            printed = f"(not run here: it needs {' and '.join(missing)})\n"
        else:
            printed = subprocess.run(
                [sys.executable, path], capture_output=True, text=True, check=True, cwd=ROOT
            ).stdout
        parts.append(
            f"## {title.rstrip('.')}\n\n{rest.strip()}\n\n```python\n{body}\n```\n\n"
            f"```text\n{printed}```"
        )
    return "\n\n".join(parts) + "\n"


def reference() -> dict[str, str]:
    """Return the pages on every public name but the mechanisms, from its docstring."""
    import dpassay
    from dpassay.accountant.mechanisms import DESCRIPTIONS

    found: dict[str, list[str]] = {title: [] for title in _CHAPTERS.values()}
    for name in dpassay.__all__:
        if name not in DESCRIPTIONS:
            thing = getattr(dpassay, name)
            home = f"{getattr(thing, '__module__', '')}.{name}"
            title = next(title for start, title in _CHAPTERS.items() if home.startswith(start))
            found[title].append(_directive(name, thing))
    pages = {
        re.sub(r"\W+", "-", title.lower()): f"# {title}\n\n```{{eval-rst}}\n"
        + "\n".join(entries)
        + "```\n"
        for title, entries in found.items()
        if entries
    }
    pages["index"] = (
        "# Every public name\n\nWhat `import dpassay` offers, from the docstrings. The mechanisms "
        "have [pages of their own](../mechanisms/index.md).\n\n"
        "```{toctree}\n" + "\n".join(pages) + "\n```\n"
    )
    return pages


def _directive(name: str, thing: object) -> str:
    """Return what tells autodoc to show a name."""
    if not inspect.isclass(thing):
        return f".. autofunction:: dpassay.{name}\n"
    members = "" if issubclass(thing, Exception) else "   :members:\n"
    return f".. autoclass:: dpassay.{name}\n{members}"


if __name__ == "__main__":
    raise SystemExit(main())
