"""Questions as methods of a mechanism, composition as `*` and `+`, plots, HTML for notebooks."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from html import escape as _escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, final

from dpassay.accountant.aliases import METHODS
from dpassay.accountant.errors import NotApplicableError, no_attribute, printable

Result = TypeVar("Result")
QUESTIONS = (
    "epsilon",
    "delta",
    "beta",
    "power",
    "renyi",
    "mu",
    "rho",
    "variance",
    "total_variation",
    "profile",
    "verify",
)
"""The functions of `dpassay` that are also methods, as in `noise.epsilon(delta=…)`."""
_SHOWN = (*QUESTIONS, "release", "plot")
_INSTEAD = {
    "compose": "Write mechanism * 10, or mechanism + other.",
    "self_compose": "Write mechanism * 10.",
    "calibrate": 'Ask dpassay.calibrate("Gaussian", epsilon=…, delta=…).',
    "audit": "Ask dpassay.audit(mechanism, …).",
    "variances": "Ask .variance().",
    "subsample": "Write dpassay.PoissonSubsampled(mechanism, sampling_prob).",
    "poisson_subsampled": "Write dpassay.PoissonSubsampled(mechanism, sampling_prob).",
    "rdp": "Ask .renyi(order).",
    "std": "Ask .variance().",
    "mse": "Ask dpassay.mean_squared_error(mechanism).",
    "map": "Ask .epsilon(delta=…); the sensitivity is an argument of the mechanism.",
}
"""Replacements for methods that other libraries have."""


class Askable:
    """Base class of everything that `dpassay`'s questions can be asked about.

    An argument of a mechanism takes precedence over the question of the same name:
    `RandomizedResponse(2).epsilon` is 2. In that case ask `dpassay.epsilon(mechanism, delta=…)`.
    """

    __slots__ = ()
    asker: ClassVar[Callable[[str], Any] | None] = None
    """Returns a public name of `dpassay`, which sets it; this module does not import questions."""

    if TYPE_CHECKING:  # some mechanisms have arguments with these names
        epsilon: Any
        delta: Any
        beta: Any
        power: Any
        renyi: Any
        mu: Any
        rho: Any
        variance: Any
        total_variation: Any
        profile: Any
        verify: Any
    else:

        def __getattr__(self, name: str) -> Any:
            """Return a question bound to this mechanism, or raise with what to write instead."""
            own = METHODS.get(name, name)
            if own in QUESTIONS and Askable.asker is not None:
                question = Askable.asker(own)
                return functools.update_wrapper(functools.partial(question, self), question)
            if own != name and hasattr(type(self), own):
                return getattr(self, own)
            raise no_attribute(self, name, _INSTEAD.get(name) or "")

    def __dir__(self) -> list[str]:
        """List the arguments, the questions, `release` and `plot`."""
        return sorted({*getattr(type(self), "__dataclass_fields__", ()), *_SHOWN})

    def __mul__(self, count: int) -> Any:
        """Compose `count` runs of this mechanism on the same data."""
        return _composed(self, count)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Any:
        """Compose both mechanisms on the same data; a sum of several is one flat composition."""
        if not isinstance(other, Askable):
            return NotImplemented
        return _composed([*_parts(self), *_parts(other)])

    def __radd__(self, other: Any) -> Any:
        """Accept the 0 that `sum` starts with."""
        return self if type(other) is int and other == 0 else NotImplemented


def _composed(*arguments: object) -> Any:
    if Askable.asker is None:
        raise NotApplicableError("Composition is not loaded. Write `import dpassay` first.")
    return Askable.asker("Composed")(*arguments)


def _parts(mechanism: Any) -> list[Any]:
    """Return the parts of a composition that runs each part once, or the mechanism alone."""
    is_sum = type(mechanism).__name__ == "Composed" and mechanism.count == 1
    parts = mechanism.mechanism if is_sum else mechanism
    return list(parts) if isinstance(parts, (list, tuple)) else [parts]


# --- The method `plot`; `dpassay` sets the function of `dpassay.figures` that draws ---------------


class Drawable:
    """A mechanism or an answer that can be plotted."""

    __slots__ = ()
    drawer: ClassVar[Callable[..., Any] | None] = None
    """The function that draws, set by `dpassay`; this package does not import figures."""

    def plot(self, path: Path | str | None = None, **options: Any) -> Any:
        """Return a matplotlib Figure, and save it if `path` is given: see `dpassay.plot`."""
        if Drawable.drawer is None:
            raise NotApplicableError("Plots are not loaded. Write `import dpassay` first.")
        return Drawable.drawer(self, path, **options)


# --- HTML for notebooks, made on demand -----------------------------------------------------------

_CELL = "padding:.2em .7em;text-align:left;vertical-align:top"
_COLOURS = {
    "HOLDS": "#1b6e3c",
    "ARGUED": "#4b3f8f",
    "REFUTED": "#a32c00",
    "SLIP": "#8a3a7a",
    "SUPPORTED": "#1f5a94",
    "UNDECIDED": "#6a5200",
    "PENDING": "#555555",
}


def escape(text: object) -> str:
    """Escape a text for HTML; drop control characters and marks of text direction."""
    return _escape(printable(text))


def summary(thing: object) -> str:
    """Return the first paragraph of the docstring of the object's class, on one line."""
    text = inspect.cleandoc(type(thing).__doc__ or "")
    return " ".join(text.split("\n\n")[0].split())


def describe_html(thing: object) -> str:
    """Return the notation and a summary of the law, as HTML."""
    return f"<code>{escape(repr(thing))}</code><br><em>{escape(summary(thing))}</em>"


def describe_markdown(thing: object) -> str:
    """Return the notation and a summary of the law, as Markdown."""
    return f"`{thing!r}`\n\n*{summary(thing)}*"


def badge(verdict: str) -> str:
    """Return a verdict as a coloured word. The word alone carries the meaning."""
    colour = _COLOURS.get(verdict, "#333333")
    style = f"background:{colour};color:#fff;padding:.1em .5em;border-radius:.3em;font-weight:700"
    return f'<span style="{style}">{escape(verdict)}</span>'


def rows(entries: Sequence[tuple[str, str]]) -> str:
    """Return a table of names and values; the values are HTML."""
    lines = "".join(
        f'<tr><th scope="row" style="{_CELL}">{escape(name)}</th>'
        f'<td style="{_CELL}">{value}</td></tr>'
        for name, value in entries
        if value
    )
    return f"<table>{lines}</table>"


def table(lines: Sequence[Sequence[str]], struck: Sequence[bool] = ()) -> str:
    """Return a table of plain text with a header line; rows may be struck out."""
    head, *rest = ([escape(cell) for cell in line] for line in lines)
    return grid(head, rest, struck)


def grid(head: Sequence[str], lines: Sequence[Sequence[str]], struck: Sequence[bool] = ()) -> str:
    """Return a table whose cells are HTML, with a header line; rows may be struck out."""
    heads = "".join(f'<th scope="col" style="{_CELL}">{cell}</th>' for cell in head)
    body = []
    for index, line in enumerate(lines):
        style = _CELL
        if index < len(struck) and struck[index]:
            style += ";color:#666;text-decoration:line-through"
        cells = "".join(f'<td style="{style}">{cell}</td>' for cell in line)
        body.append(f"<tr>{cells}</tr>")
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table>"


@final
class Results(list[Result]):
    """A list of answers, which notebooks show as one table.

    Parameters
    ----------
    answers
        Enclosures, findings, audits, or any other objects.
    asked, at
        The argument that varies, such as "epsilon", and its value for each answer.

    Examples
    --------
    >>> Results([2, 3])
    [2, 3]
    """

    def __init__(
        self, answers: Iterable[Result] = (), asked: str = "", at: Iterable[object] = ()
    ) -> None:
        super().__init__(answers)
        self.asked, self.at = asked, tuple(at)

    def _repr_html_(self) -> str:
        """Return a table with a row per answer; its columns are the keys of `html_cells`."""
        found = [
            answer.html_cells()
            if hasattr(answer, "html_cells")
            else {"answer": escape(str(answer))}
            for answer in self
        ]
        names = list(dict.fromkeys(name for cells in found for name in cells))
        lines = [[cells.get(name, "") for name in names] for cells in found]
        if self.asked and len(self.at) == len(self):
            names = [self.asked, *names]
            lines = [[escape(at), *line] for at, line in zip(self.at, lines, strict=True)]
        return grid([escape(name) for name in names], lines)


def frame(records: Sequence[dict[str, Any]]) -> Any:
    """Convert records to a pandas DataFrame."""
    try:
        import pandas
    except ImportError:
        raise NotApplicableError(
            "to_pandas() needs pandas: pip install pandas. Without it to_records() has the same "
            "rows as dictionaries."
        ) from None
    return pandas.DataFrame(records)
