"""Fill the templates of the pages; every text is escaped unless it is made here.

A page is whole in itself: style and pictures are inline, there is no script, nothing is fetched.
"""

from __future__ import annotations

import base64
import functools
import json
from typing import TYPE_CHECKING, Any

from figures.pages.svg import slug

if TYPE_CHECKING:
    from jinja2 import Environment


def render(name: str, **values: object) -> str:
    """Return the page that a template of this folder makes of some values."""
    return _environment().get_template(name).render(**values)


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("figures.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["slug"] = slug
    environment.filters["download"] = download
    return environment


def download(data: Any) -> str:
    """Return plain data as a link that saves it as a file of JSON."""
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    return f"data:application/json;base64,{base64.b64encode(text.encode()).decode()}"
