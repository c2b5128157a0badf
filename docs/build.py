"""Build the documentation as a site, warnings as errors.

    python docs/build.py [OUT] [--no-plots]

The pages of this folder are copied; the pages of the mechanisms, the gallery and the list of all
names are made from the program itself; then Sphinx builds all of it into OUT (build/site).
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
_MORE = "<!-- more -->"


def main() -> int:
    """Build; return Sphinx's exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", nargs="?", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--no-plots", action="store_true", help="leave the plots out")
    options = parser.parse_args()
    source = options.out.parent / f"{options.out.name}-source"
    prepare(source, plots=not options.no_plots)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-b", "html"]
    return subprocess.run([*command, source, options.out], check=False).returncode


def prepare(source: Path, *, plots: bool = True) -> None:
    """Write everything that Sphinx reads into a new folder."""
    sys.path.insert(0, str(DOCS))
    import mechanism_pages

    if source.exists():
        shutil.rmtree(source)
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns("__pycache__", "*.svg.tmp"))
    shutil.copyfile(ROOT / "CHANGELOG.md", source / "changelog.md")
    mechanism_pages.write(source / "mechanisms", plots=plots)
    (source / "gallery.md").write_text(gallery(), encoding="utf-8")
    (source / "names.md").write_text(names(), encoding="utf-8")
    index = source / "index.md"
    text = index.read_text("utf-8")
    others = sorted(
        page.stem
        for page in source.glob("*.md")
        if page.stem != "index" and not re.search(rf"^{re.escape(page.stem)}$", text, re.M)
    )
    index.write_text(text.replace(_MORE, "\n".join(others)), encoding="utf-8")
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


def gallery() -> str:
    """Return the page of the examples: what each is about, its code, and what it prints."""
    parts = [
        "# Examples\n\nEach is a program in `docs/examples/`; what it prints is from the run that "
        "made this page."
    ]
    for path in sorted((DOCS / "examples").glob("*.py")):
        code = path.read_text("utf-8")
        title, _, rest = (ast.get_docstring(ast.parse(code)) or path.stem).partition("\n")
        body = code.split('"""', 2)[2].strip()
        printed = subprocess.run(
            [sys.executable, path], capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout
        parts.append(
            f"## {title.rstrip('.')}\n\n{rest.strip()}\n\n```python\n{body}\n```\n\n"
            f"```text\n{printed}```"
        )
    return "\n\n".join(parts) + "\n"


def names() -> str:
    """Return the list of the public names, with how they are called."""
    import dpassay

    lines = [
        "# Every public name",
        "",
        "What `import dpassay` offers, mechanisms aside; `help(dpassay.NAME)` says more.",
        "",
        "| name | what |",
        "|---|---|",
    ]
    from accountant.mechanisms import DESCRIPTIONS

    for name in dpassay.__all__:
        if name in DESCRIPTIONS:
            continue
        thing = getattr(dpassay, name)
        first = (inspect.getdoc(thing) or "").split("\n\n")[0]
        call = _signature(thing)
        lines.append(f"| `{name}{call}` | {' '.join(first.split()).replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


def _signature(thing: object) -> str:
    """Return the names of the arguments of a function; nothing for a class."""
    if not inspect.isfunction(thing):
        return ""
    return f"({', '.join(inspect.signature(thing).parameters)})"


if __name__ == "__main__":
    raise SystemExit(main())
