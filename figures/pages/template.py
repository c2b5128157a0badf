"""Fill HTML templates, and embed figures in them as SVG.

Pages are self-contained: styles and pictures are inline, and there are no scripts or external
files. All text is escaped, except markup made in this module. An embedded SVG has alternative text,
ids that are unique in the page, and the colours of the page's theme.
"""

from __future__ import annotations

import base64
import functools
import io
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from dpassay.accountant.errors import printable

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment
    from matplotlib.figure import Figure


FOLDER = Path(__file__).parent / "templates"


def render(name: str, **values: object) -> str:
    """Fill a template of this package and return the page."""
    return _own().get_template(name).render(**values)


@functools.cache
def _own() -> Environment:
    from jinja2 import FileSystemLoader

    return environment(FileSystemLoader(FOLDER))


def environment(loader: BaseLoader) -> Environment:
    """Return a Jinja environment with the given loader and the filters of this module."""
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
    """Return a data URL of a certificate, as written by `dpassay verify --certificate`."""
    from dpassay.verifier.prover import canonical

    return f"data:application/json;base64,{base64.b64encode(canonical(data)).decode()}"


def shell(words: Sequence[str]) -> str:
    """Join the words of a command, with double quotes around words that contain single quotes.

    >>> print(shell(["dpassay", "verify", "Laplace('1/3') is 3-DP"]))
    dpassay verify "Laplace('1/3') is 3-DP"
    """
    return " ".join(
        f'"{word}"' if "'" in word and not set(word) & set('"$`!\\') else shlex.quote(word)
        for word in words
    )


_IDS = re.compile(r'\b(id="|xlink:href="#|href="#|url\(#)')
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_COLOUR = re.compile(r"(?<=[ \"])((?:fill|stroke): )(#[0-9a-f]{6})\b")
_THEME = {
    "#ffffff": "paper",
    "#000000": "ink",
    "#1a1a1a": "ink",
    "#4d4d4d": "faint",
    "#808080": "faint",
    "#e6e6e6": "grid",
    "#0072b2": "blue",
}
"""Maps colours of `dpassay.figures.style` that a dark theme must replace to their names."""

_DARK = {"paper": "#15181b", "ink": "#e9e9e6", "faint": "#a9adb1", "grid": "#33383d"}
_DARK |= {"blue": "#4fb0ea"}
"""The dark theme of a stand-alone picture."""


def of(figure: Figure) -> str:
    """Return a figure as SVG, without a date."""
    from dpassay.figures.style import drawn

    file = io.StringIO()
    with drawn():
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def inline(svg: str, *, slug: str, title: str, alt: str) -> Markup:
    """Return an SVG file as an element with alternative text and ids that start with the slug."""
    body = _METADATA.sub("", svg[svg.index("<svg") :])
    body = _IDS.sub(lambda match: f"{match[1]}{slug}-", body)
    body = _COLOUR.sub(_themed, body)
    head, _, rest = body.partition(">")
    head = re.sub(r'\s(?:width|height)="[^"]*"', "", head)
    labels = f"{slug}-title {slug}-alt"
    return Markup(  # all foreign text is escaped
        f'{head} role="img" aria-labelledby="{labels}"><title id="{slug}-title">{escape(title)}'
        f'</title><desc id="{slug}-alt">{escape(alt)}</desc>{rest.strip()}'
    )


def element(figure: Figure, slug: str, title: str, alt: str) -> Markup:
    """Return a figure as an SVG element."""
    return inline(of(figure), slug=slug, title=title, alt=alt)


def alone(svg: str) -> str:
    """Return a stand-alone SVG file that follows the reader's light or dark theme."""
    head, close, rest = _COLOUR.sub(_themed, _METADATA.sub("", svg)).partition("<defs>")
    light = "".join(f"--{name}: {colour}; " for colour, name in reversed(_THEME.items()))
    dark = "".join(f"--{name}: {colour}; " for name, colour in _DARK.items())
    style = (
        f"svg {{ {light}}} text {{ fill: var(--ink); }}\n"
        f"@media (prefers-color-scheme: dark) {{ svg {{ {dark}}} }}"
    )
    return f"{head}<style>{style}</style>{close}{rest}"


def slug(name: str) -> str:
    """Return a name in a form that is valid in an id.

    >>> slug("less-is-more/5")
    'less-is-more-5'
    """
    return re.sub(r"[^A-Za-z0-9]+", "-", name)


def _themed(match: re.Match[str]) -> str:
    name = _THEME.get(match[2])
    return match[0] if name is None else f"{match[1]}var(--{name}, {match[2]})"
