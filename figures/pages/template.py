"""Fill the templates of the pages; every text is escaped unless it is made here.

A page is whole in itself: style and pictures are inline, there is no script, nothing is fetched.
"""

from __future__ import annotations

import base64
import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpassay.accountant.errors import printable
from dpassay.figures.pages.svg import slug

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment

FOLDER = Path(__file__).parent / "templates"


def render(name: str, **values: object) -> str:
    """Return the page that a template of this folder makes of some values."""
    return _own().get_template(name).render(**values)


@functools.cache
def _own() -> Environment:
    from jinja2 import FileSystemLoader

    return environment(FileSystemLoader(FOLDER))


def environment(loader: BaseLoader) -> Environment:
    """Return the environment that fills templates from a place."""
    from jinja2 import Environment, StrictUndefined

    made = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["slug"] = slug
    made.filters["download"] = download
    return made


def download(data: Any) -> str:
    """Return plain data as a link that saves it as a file of JSON."""
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    return f"data:application/json;base64,{base64.b64encode(text.encode()).decode()}"
