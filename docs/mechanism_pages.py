"""Write the pages of the mechanisms: law, worst pair, guarantees and a plot of one example each.

What a page says is the docstring of the class and what the accountant answers when the page is
made, so that it is never out of date. `docs/build.py` calls it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from accountant import guarantees, notation, profile, utility
from accountant.errors import DpassayError
from accountant.interval import Interval
from accountant.mechanism import Mechanism
from accountant.mechanisms import DESCRIPTIONS

WIDTH = Fraction(1, 10**12)
SHORT = 240
LEAST = Fraction(1, 10**6)

GROUPS: dict[str, dict[str, tuple[str, str | None]]] = {
    "One answer": {
        "Gaussian": ("Gaussian(standard_deviation=3)", None),
        "Laplace": ("Laplace(scale=2)", None),
        "DiscreteGaussian": ("DiscreteGaussian(parameter=9)", None),
        "DiscreteLaplace": ("DiscreteLaplace(scale=2)", None),
        "Staircase": ("Staircase(epsilon=1, gamma='0.4')", None),
        "TruncatedGeometric": ("TruncatedGeometric(scale=2, low=0, high=10)", None),
        "IntegerNoise": ("IntegerNoise(probabilities=['1/4', '1/2', '1/4'], lowest=-1)", None),
        "BoundedCountNoise": ("BoundedCountNoise(epsilon=1, eta='1/3', support=3)", None),
        "RandomizedResponse": ("RandomizedResponse(epsilon=1, categories=4)", None),
        "Tabulated": ("Tabulated(p=['3/4', '1/4'], q=['1/4', '3/4'])", None),
    },
    "Many answers": {
        "LaplaceVector": ("LaplaceVector(scale=4, shifts=[1, 2, 3])", None),
        "EllipticalGaussian": ("EllipticalGaussian(sensitivities=[1, 2, 8], mu=1)", None),
        "GeneralGaussian": (
            "GeneralGaussian(covariance=Diagonal(variances=[1, 4]), space=Box(bounds=[1, 2]))",
            None,
        ),
        "CorrelatedGaussian": ("CorrelatedGaussian(dimension=9, mu=1)", "add-remove"),
        "DiscreteCorrelatedGaussian": (
            "DiscreteCorrelatedGaussian(dimension=4, mu=1, c='3/2')",
            "add-remove",
        ),
        "KnownSizeGaussian": ("KnownSizeGaussian(dimension=9, mu=1)", "add-remove"),
        "DisjointGroupsGaussian": (
            "DisjointGroupsGaussian(groups=4, dimension=9, mu=1, adjacency='add-remove')",
            "add-remove",
        ),
        "OptimalEllipse": ("OptimalEllipse(dimension=10, sparsity=3, mu=1)", "add-remove"),
        "CountEllipse": ("CountEllipse(dimension=10, sparsity=3, mu=1)", "add-remove"),
        "MatrixVariateGaussian": (
            "MatrixVariateGaussian(row_covariance=Diagonal(variances=[4, 9]), "
            "column_covariance=Isotropic(dimension=2, variance=1))",
            None,
        ),
        "RankOneGaussian": ("RankOneGaussian(dimension=5, sigma_star=400)", None),
    },
    "Running counts": {
        "BinaryTree": ("BinaryTree(steps=15, epsilon=1)", None),
        "KaryTree": ("KaryTree(steps=27, arity=3, epsilon=1)", None),
        "DiscreteKaryTree": ("DiscreteKaryTree(steps=27, arity=3, epsilon=1)", None),
        "HonakerTree": ("HonakerTree(steps=15, epsilon=1)", None),
        "SmoothBinary": ("SmoothBinary(steps=19, mu=1)", None),
        "BridgedTree": ("BridgedTree(steps=16, arities=[4, 4], mu=1)", None),
        "DelannoyCounter": ("DelannoyCounter(steps=12, levels=2, epsilon=1)", None),
        "SquareRootFactorization": ("SquareRootFactorization(steps=16, mu=1)", None),
    },
    "Several releases": {
        "Guaranteed": ("Guaranteed(epsilon='0.1', delta='1e-6')", None),
        "Composed": ("Composed(mechanism=Gaussian(standard_deviation=4), count=10)", None),
        "PoissonSubsampled": (
            "PoissonSubsampled(mechanism=Gaussian(standard_deviation=1), sampling_prob='1/10')",
            "add-remove",
        ),
        "MixtureOfGaussians": (
            "MixtureOfGaussians(standard_deviation=1, sensitivities=[0, 1, 2], "
            "sampling_probs=['0.81', '0.18', '0.01'])",
            "add-remove",
        ),
        "SampledWithoutReplacement": (
            "SampledWithoutReplacement(mechanism=Gaussian(standard_deviation=1), sample_size=1, "
            "population=10)",
            "replace-one",
        ),
    },
}
"""The example of each page, in the notation, and its relation where one must be named."""


def write(folder: Path, *, plots: bool = True) -> list[str]:
    """Write all pages and their index; return the names of the mechanisms.

    Parameters
    ----------
    plots
        Whether to draw the profiles.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# Mechanisms", "", "Each page is made from the class itself and from the accountant."]
    names = []
    for title, examples in GROUPS.items():
        lines += ["", f"## {title}", "", "| mechanism | law |", "|---|---|"]
        for name, (text, relation) in examples.items():
            mechanism = notation.parse(text)
            (folder / f"{name}.md").write_text(page(mechanism, relation, plots), encoding="utf-8")
            if plots:
                _draw(mechanism, relation, folder / f"{name}.svg")
            lines.append(f"| [{name}]({name}.md) | {_cell(_paragraphs(mechanism)[0])} |")
            names.append(name)
    lines += ["", "```{toctree}", ":hidden:", "", *names, "```", ""]
    (folder / "index.md").write_text("\n".join(lines), encoding="utf-8")
    return names


def missing() -> set[str]:
    """Return the mechanisms without a page."""
    every = {name for name, kind in DESCRIPTIONS.items() if issubclass(kind, Mechanism)}
    return every - {name for examples in GROUPS.values() for name in examples}


def page(mechanism: Mechanism, relation: str | None, plot: bool) -> str:
    """Return the page of one mechanism."""
    name = type(mechanism).__name__
    under = f" under {relation}" if relation else ""
    parts = [f"# {name}", *_paragraphs(mechanism)]
    parts += [
        "## An example",
        f"```python\nimport dpassay\n\nnoise = dpassay.{_call(mechanism)}\n```",
    ]
    try:
        worst = mechanism.worst_case(_adjacency(relation))
        parts += ["## The worst pair", _plain(worst.reason)]
    except DpassayError as refusal:
        parts += ["## The worst pair", _plain(str(refusal))]
    parts.append(f"## What is proved of it{under}")
    rows = [f"| {label} | {_answer(ask)} |" for label, ask in _questions(mechanism, relation)]
    parts.append("\n".join(["| question | answer |", "|---|---|", *rows]))
    if plot:
        parts.append(f"![The privacy profile of the example: delta against epsilon]({name}.svg)")
    flag = f" --adjacency {relation}" if relation else ""
    parts.append(f'```sh\ndpassay profile "{mechanism!r}"{flag} --epsilon 1 --delta 1e-5\n```')
    return "\n\n".join(parts) + "\n"


def _questions(
    mechanism: Mechanism, relation: str | None
) -> list[tuple[str, Callable[[], Interval]]]:
    return [
        (
            "δ at ε = 1",
            lambda: profile.delta(mechanism, 1, adjacency=relation, relative_width=WIDTH),
        ),
        (
            "ε at δ = 1e-5",
            lambda: profile.epsilon(mechanism, "1e-5", adjacency=relation, relative_width=WIDTH),
        ),
        ("largest privacy loss", lambda: profile.epsilon(mechanism, 0, adjacency=relation)),
        ("total variation", lambda: guarantees.total_variation(mechanism, adjacency=relation)),
        ("exact μ of Gaussian DP", lambda: guarantees.mu(mechanism, adjacency=relation)),
        (
            "ρ of zCDP",
            lambda: guarantees.rho(mechanism, adjacency=relation),
        ),
        ("mean squared error", lambda: utility.mean_squared_error(mechanism)),
    ]


def _answer(ask: Callable[[], Interval]) -> str:
    try:
        return str(ask()).replace("Infinity", "∞")
    except DpassayError as refusal:
        text = _cell(_plain(str(refusal)))
        return text if len(text) <= SHORT else text[:SHORT].rsplit(" ", 1)[0] + " …"


def _draw(mechanism: Mechanism, relation: str | None, path: Path) -> None:
    from figures import profile as plotted
    from figures import style

    try:
        table = plotted.compute(mechanism, adjacency=relation, least=LEAST)
    except DpassayError:
        table = None
    if table is not None:
        style.save(plotted.draw(table), path)


def _adjacency(relation: str | None) -> object:
    from accountant.adjacency import Adjacency

    return Adjacency.read(relation)


def _call(mechanism: Mechanism) -> str:
    """Return the notation as Python: nested names need the package's name too."""
    names = "|".join(DESCRIPTIONS)
    nested = re.sub(rf"(?<=[=\[ ])({names})\(", r"dpassay.\1(", repr(mechanism))
    return nested


def _paragraphs(mechanism: Mechanism) -> list[str]:
    """Return the docstring of a class as Markdown."""
    text = inspect.getdoc(type(mechanism)) or ""
    parts = re.split(r"^(Parameters|Notes)\n-+\n", text, flags=re.M)
    found = [_plain(part) for part in parts[0].strip().split("\n\n")]
    for heading, body in zip(parts[1::2], parts[2::2], strict=True):
        if heading == "Parameters":
            found += ["## Parameters", _parameters(body)]
        else:
            found += ["## Why", *(_plain(part) for part in body.strip("\n").split("\n\n"))]
    return found


def _parameters(body: str) -> str:
    """Return the arguments as a list."""
    entries: list[list[str]] = []
    for line in body.strip("\n").splitlines():
        if line and not line.startswith(" "):
            entries.append([line, ""])
        elif entries:
            entries[-1][1] += f" {line.strip()}"
    return "\n".join(f"- `{name}`: {_plain(text.strip())}" for name, text in entries)


def _plain(text: str) -> str:
    """Return text with what Markdown would read as marks escaped, outside of code."""
    if text.startswith("    "):
        return text
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(
        part if index % 2 else re.sub(r"([*_<\[\]$\\])", r"\\\1", part)
        for index, part in enumerate(parts)
    )


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
