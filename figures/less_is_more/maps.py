"""Maps of pickups under each mechanism: what figures 4 and 10 share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from figures import style
from figures.description import Settings, Size
from figures.less_is_more import calibrations
from figures.table import Column, Table, label, number

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from figures.data.uber import Pickups

DELTA = "1e-7"
SQUARED_SENSITIVITY = 2
_CELLS = 89
_SIZE = _CELLS**2
ASSUMPTIONS = (
    "The map is the box of latitudes 40.60 to 40.90 and longitudes −74.06 to −73.70.",
    "MVG and MGM have equal eigenvalues, MVG with γ = Δ/2: the least loss that they allow. The "
    "paper does not state MGM's condition: taken is P(privacy loss > ε) ≤ δ for the worst pair.",
    "DAWA spends a quarter of ε on its partition; H_b has branching 10, which its authors' rule "
    "gives for a side of 89.",
    "The recipient knows the valid cells, and rounds to whole counts ≥ 0 (post-processing).",
)
OUTPUT = ("R1SMG", "classic", "analytic", "MVG", "MGM")
EXACT = "Gaussian, exact"

Request = tuple[str, str, str]
"""Kind (printed, verified), mechanism, ε."""


def compute(settings: Settings, requests: Sequence[Request]) -> Table:
    """Release the counts for each request; at the reduced size every second cell is kept."""
    import numpy as np

    from figures.data.uber import pickups

    data = pickups(settings.data, settings.rng("pickups"))
    step = 2 if settings.size is Size.FAST else 1
    kept = range(0, _CELLS, step)
    rows: list[tuple[object, ...]] = []
    for kind, mechanism, epsilon in [("data", "non-private", ""), *requests]:
        rng = settings.rng(f"map of {mechanism}")
        released = _released(data, kind, mechanism, epsilon, rng)
        shown = np.maximum(np.rint(released), 0)
        error = math.sqrt(float(np.mean((released - data.counts)[data.valid] ** 2)))
        largest = float(shown[data.valid].max())
        for place in kept:
            cells = [
                float(c) if v else None
                for c, v in zip(shown[place, ::step], data.valid[place, ::step], strict=True)
            ]
            first = place == 0
            about = (error if first else None, largest if first else None)
            rows.append((kind, mechanism, epsilon, place, *about, *cells))
    columns: tuple[Column, ...] = (
        label("kind"),
        label("mechanism"),
        label("epsilon"),
        number("row", "cells from the south"),
        number("error", "root mean square over the valid cells, pickups", relative=1e-6),
        number("largest", "pickups", relative=1e-6, absolute=1.0),
        *(number(f"c{place}", "pickups", relative=1e-6, absolute=1.0) for place in kept),
    )
    return Table.of(
        columns, rows, M=_SIZE, squared_sensitivity=SQUARED_SENSITIVITY, delta=DELTA,
        data=data.source.words(), pickups=int(data.counts.sum()), seed=settings.seed,
    )  # fmt: skip


def _released(
    data: Pickups, kind: str, mechanism: str, epsilon: str, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Release the counts, with noise by the printed formula or by the exact guarantee.

    A moved pickup is one removed and one added: DAWA and H_b, whose ε is for one of the two, get
    half of ε when they are verified.
    """
    import numpy as np

    from figures.baselines import dawa, hierarchy

    counts = data.counts.astype(float)
    if kind == "data":
        return counts
    if mechanism in ("DAWA", "H_b"):
        release = dawa.release if mechanism == "DAWA" else hierarchy.release
        budget = float(epsilon) / (2 if kind == "verified" else 1)
        return release(data.counts, budget, rng)
    if mechanism == "R1SMG":
        direction = rng.standard_normal(_SIZE)
        direction /= np.linalg.norm(direction)
        length = math.sqrt(_sigma_star(kind, epsilon)) * rng.standard_normal()
        return counts + (length * direction).reshape(counts.shape)
    return counts + _deviation(kind, mechanism, epsilon) * rng.standard_normal(counts.shape)


def _sigma_star(kind: str, epsilon: str) -> float:
    if kind == "verified":
        return SQUARED_SENSITIVITY * calibrations.exact_sigma_star(_SIZE, epsilon, DELTA)
    printed = calibrations.sigma_star_of_theorem_5(_SIZE, float(epsilon), float(DELTA))
    return SQUARED_SENSITIVITY * printed


def _deviation(kind: str, mechanism: str, epsilon: str) -> float:
    """Return the standard deviation of each cell's Gaussian noise."""
    from figures.baselines import matrix_gaussian

    root = math.sqrt(SQUARED_SENSITIVITY)
    if kind == "verified" or mechanism == "analytic":
        return root * calibrations.analytic_deviation(epsilon, DELTA)
    if mechanism == "classic":
        return root * calibrations.classic_deviation(float(epsilon), float(DELTA))
    if mechanism == "MVG":
        return matrix_gaussian.mvg_deviation(_CELLS, _CELLS, root, float(epsilon), float(DELTA))
    return matrix_gaussian.mgm_deviation(root, float(epsilon), float(DELTA))


def draw(table: Table, rows: int, columns: int, places: dict[tuple[str, str, str], int]) -> Figure:
    """Draw the maps in a grid of panels, with one scale up to 60 pickups."""
    import numpy as np

    cells = [c.name for c in table.columns if c.name.startswith("c")]
    with style.panels(rows, columns, height=1.95 * rows + 0.6) as (figure, grid):
        for axes in grid:
            style.schematic(axes)
        image = None
        for (kind, mechanism, epsilon), place in places.items():
            axes = grid[place]
            where = {"kind": kind, "mechanism": mechanism, "epsilon": epsilon}
            values = np.array([table.column(c, **where) for c in cells], dtype=float).T
            image = axes.imshow(
                values, origin="lower", cmap="viridis", vmin=0, vmax=60, interpolation="none"
            )
            largest = table.numbers("largest", **where)[0]
            error = table.numbers("error", **where)[0]
            at = f"ε = {epsilon}" if epsilon else ""
            word = "verified: " if kind == "verified" else ""
            axes.set_title(
                f"({chr(ord('a') + list(places).index((kind, mechanism, epsilon)))}) "
                f"{word}{mechanism}\n{at}\nmax {_short(largest)}, error {_short(error)}".replace(
                    "\n\n", "\n"
                ),
                fontsize=6.5,
                loc="left",
            )
        if image is not None:
            bar = figure.colorbar(
                image, ax=grid, orientation="horizontal", fraction=0.025, aspect=60, extend="max"
            )
            bar.set_label("pickups per cell; blank: no valid cell")
        figure.suptitle(f"Data: {table.parameters['data']}", fontsize=8, x=0.01, ha="left")
        return figure


def _short(value: float) -> str:
    return f"{value:.0f}" if 10 <= value < 10**4 or value == 0 else f"{value:.2g}"
