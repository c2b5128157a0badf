"""Descriptions of figures, and the settings that they are computed with.

The descriptions are in `figures/words/PAPER.toml`, one table per figure, in the paper's order.
"""

from __future__ import annotations

import tomllib
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar, final

from dpassay.figures.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.random import Generator

T = TypeVar("T")
DEFAULT_SEED = 2026
"""Default seed of simulations, which makes figures reproducible."""


class Size(Enum):
    """The size of the computation."""

    FAST = "fast"
    """A reduced grid; the figures are watermarked."""
    DEFAULT = "default"
    FULL = "full"
    """The paper's own sizes, if the default ones are smaller."""


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """Settings common to all figures."""

    size: Size = Size.DEFAULT
    seed: int = DEFAULT_SEED
    data: Path | None = None
    """The folder with the original data files; None uses stand-in data."""
    column: bool = False
    """Whether the pictures are as wide as a column, with stacked panels."""

    def pick(self, fast: T, default: T, full: T | None = None) -> T:
        """Return the value for the current size; FULL without a value of its own is the default."""
        if self.size is Size.FAST:
            return fast
        return full if self.size is Size.FULL and full is not None else default

    def thinned(self, values: Iterable[T], step: int) -> list[T]:
        """Return all values; at the reduced size, only every step-th one and the last."""
        everything = list(values)
        if self.size is not Size.FAST:
            return everything
        kept = everything[::step]
        return kept if (len(everything) - 1) % step == 0 else [*kept, everything[-1]]

    def rng(self, purpose: str) -> Generator:
        """Return a generator for one purpose, independent of those for other purposes."""
        import numpy as np

        return np.random.default_rng([self.seed, zlib.crc32(purpose.encode())])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """The description of a figure: a table in `figures/words`."""

    module: str
    """The module in dpassay.figures that computes and draws it."""
    number: str
    """The paper's number ("Figure 1"), or the passage that a further plot is about."""
    title: str
    plotted: str
    """What is plotted, in a sentence or two."""
    says: str
    """The paper's statement about it, paraphrased."""
    quote: str
    """The sentence of the paper that the title refers to; … marks omissions."""
    where: str
    """The section of the quotation."""
    alt: str
    """Alternative text that describes the picture."""
    claims: tuple[str, ...] = ()
    """Ids of the claims in the paper's ledger that the figure is about."""
    assumptions_of: str = ""
    """Another figure of the paper, whose assumptions are included before the own ones."""
    assumptions: tuple[str, ...] = ()
    """Values assumed for parameters that the paper does not state."""
    differs: str = ""
    """How and why the figure differs from the printed one."""
    needs: tuple[str, ...] = ()
    """Optional modules that it needs; keys of dpassay.figures.registry.EXTRAS."""


@cache
def described(paper: str) -> dict[str, Description]:
    """Return the descriptions of a paper's figures, by the part of the id after the paper."""
    import msgspec

    text = (resources.files("dpassay.figures") / "words" / f"{paper}.toml").read_text("utf-8")
    tables = tomllib.loads(text)
    for table in tables.values():
        shared = tables.get(table.get("assumptions_of"), {}).get("assumptions", [])
        table["assumptions"] = [*shared, *table.get("assumptions", [])]
    return msgspec.convert(tables, dict[str, Description])


@final
@dataclass(frozen=True, slots=True)
class Plot:
    """A figure: its description, and the functions that compute and draw it."""

    description: Description
    compute: Callable[[Settings], Table]
    draw: Callable[[Table], Figure]


Plots: TypeAlias = "Mapping[str, tuple[Callable[[Settings], Table], Callable[[Table], Figure]]]"
"""The PLOTS of a module: (compute, draw), by the part of the id after the paper."""
