"""What is said about a figure, and the settings that it is computed with.

The words stand in `figures/words/PAPER.toml`, a table for each figure, in the paper's order.
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
"""Seed of simulations, so that a figure is drawn twice alike."""


class Size(Enum):
    """How much is computed."""

    FAST = "fast"
    """A reduced grid; the figures are watermarked."""
    DEFAULT = "default"
    FULL = "full"
    """The paper's own sizes, where the default ones are smaller."""


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """What a figure may depend on besides its own parameters."""

    size: Size = Size.DEFAULT
    seed: int = DEFAULT_SEED
    data: Path | None = None
    """The folder of the original data files, None for the stand-ins."""
    column: bool = False
    """Whether pictures are for the width of a column: the panels below each other."""

    def pick(self, fast: T, default: T, full: T | None = None) -> T:
        """Return the value for the size asked for; without one for FULL, the default."""
        if self.size is Size.FAST:
            return fast
        return full if self.size is Size.FULL and full is not None else default

    def thinned(self, values: Iterable[T], step: int) -> list[T]:
        """Return all values, or at the reduced size every step-th one and the last."""
        everything = list(values)
        if self.size is not Size.FAST:
            return everything
        kept = everything[::step]
        return kept if (len(everything) - 1) % step == 0 else [*kept, everything[-1]]

    def rng(self, purpose: str) -> Generator:
        """Return the generator for one purpose: others do not change what it draws."""
        import numpy as np

        return np.random.default_rng([self.seed, zlib.crc32(purpose.encode())])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """The words about a figure: a table of `figures/words`."""

    module: str
    """The module below dpassay.figures that computes and draws it."""
    number: str
    """The figure of the paper ("Figure 1"), or the place in it that a further plot is about."""
    title: str
    plotted: str
    """What is plotted, in a sentence or two."""
    says: str
    """The paper's statement about it, in our words."""
    quote: str
    """The paper's own words that the title is about; … is what is left out, or was lost."""
    where: str
    """The place of these words: a title that says "printed" names it."""
    alt: str
    """What one would see: the text in place of the picture."""
    claims: tuple[str, ...] = ()
    """Ids in the paper's ledger of the statements that the figure is about."""
    assumptions_of: str = ""
    """The figure of the paper whose assumptions come first."""
    assumptions: tuple[str, ...] = ()
    """Parameters that the paper does not state, and what was taken for them."""
    differs: str = ""
    """How the figure differs from the printed one, and why."""
    needs: tuple[str, ...] = ()
    """Modules of optional extras, as (module) names of dpassay.figures.registry.EXTRAS."""


@cache
def described(paper: str) -> dict[str, Description]:
    """Return the words about the figures of a paper, by the part of an id after the paper."""
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
    """A figure: what is said about it, its numbers, and its picture, which computes nothing."""

    description: Description
    compute: Callable[[Settings], Table]
    draw: Callable[[Table], Figure]


Plots: TypeAlias = "Mapping[str, tuple[Callable[[Settings], Table], Callable[[Table], Figure]]]"
"""What a module declares: compute and draw, by the part of an id after the paper."""
