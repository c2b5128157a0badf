"""Write examples/tutorial.ipynb from docs/tutorial.md, with what its programs print.

    python docs/make_notebook.py

A cell for each block of Python and for the text between; a test holds the cells to the page.
"""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "tutorial.md"
NOTEBOOK = ROOT / "examples" / "tutorial.ipynb"
SITE = "](../docs/"


def cells(text: str) -> list[tuple[str, str]]:
    """Return what the page has: ("markdown", text) and ("code", program), in turn."""
    parts = re.split(r"^```python\n(.*?)^```\n", text, flags=re.M | re.S)
    kinds = [("markdown", "code")[number % 2] for number in range(len(parts))]
    return [(kind, part.strip()) for kind, part in zip(kinds, parts, strict=True) if part.strip()]


def notebook(text: str) -> dict[str, Any]:
    """Return the page as a notebook, each program run after those before it."""
    names: dict[str, Any] = {}
    made = []
    for number, (kind, source) in enumerate(cells(text)):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
        cell["source"] = source if kind == "code" else re.sub(r"\]\((?=\w+\.md)", SITE, source)
        if kind == "code":
            out = io.StringIO()
            with redirect_stdout(out):
                exec(compile(source, "tutorial", "exec"), names)
            printed = {"output_type": "stream", "name": "stdout", "text": out.getvalue()}
            cell |= {"execution_count": None, "outputs": [printed] if printed["text"] else []}
        made.append(cell)
    python = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"cells": made, "metadata": python, "nbformat": 4, "nbformat_minor": 5}


if __name__ == "__main__":
    made = notebook(PAGE.read_text("utf-8"))
    NOTEBOOK.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", "utf-8")
