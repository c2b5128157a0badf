"""Figures 4 and 10 of Less is More: maps of pickups released by each mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from dpassay.figures import style
from dpassay.figures.description import Plots, Settings, Size
from dpassay.figures.less_is_more import losses
from dpassay.figures.table import Table, columns_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpassay.figures.data import Pickups


DELTA = "1e-7"
SQUARED_SENSITIVITY = 2
"""Square of the ℓ2 sensitivity: moving a pickup changes two cells."""
_CELLS = 89
"""Number of cells along a side of the map, as in the paper."""
_SIZE = _CELLS**2
_DRAWS = 9
"""Number of releases, of which the one with median error is drawn."""
EXACT = "Gaussian, exact"
_LOW = "1e-5"
"""The ε of R1SMG."""

Request = tuple[str, str, str]
"""Kind ("printed" or "verified"), mechanism, ε."""


def compute(settings: Settings, requests: Sequence[Request]) -> Table:
    """Tabulate a release of the counts for each request; at the reduced size, every second cell."""
    import numpy as np

    from dpassay.figures.data import pickups

    data = pickups(settings.data, settings.rng("pickups"))
    step = 2 if settings.size is Size.FAST else 1
    kept = range(0, _CELLS, step)
    rows: list[tuple[object, ...]] = []
    draws = settings.pick(3, _DRAWS)
    for kind, mechanism, epsilon in (_DATA, *requests):
        rng = settings.rng(f"map of {mechanism}")
        found = []
        for _ in range(1 if kind == "data" else draws):
            released = _released(data, kind, mechanism, epsilon, rng)
            error = math.sqrt(float(np.mean((released - data.counts)[data.valid] ** 2)))
            found.append((error, released))
        found.sort(key=lambda one: one[0])
        error, released = found[len(found) // 2]
        shown = np.maximum(np.rint(released), 0)
        largest = float(shown[data.valid].max())
        for place in kept:
            cells = [
                float(c) if v else None
                for c, v in zip(shown[place, ::step], data.valid[place, ::step], strict=True)
            ]
            first = place == 0
            about = (error, found[0][0], found[-1][0], largest) if first else (None,) * 4
            rows.append((kind, mechanism, epsilon, place, *about, *cells))
    size = ("pickups", 1e-6)
    columns = columns_of(
        "kind", "mechanism", "epsilon", row="cells from the south",
        error=("root mean square over the valid cells, pickups", 1e-6),
        error_least=size, error_most=size, largest=(*size, 1.0),
        **{f"c{place}": (*size, 1.0) for place in kept},
    )  # fmt: skip
    return Table.of(
        columns, rows, M=_SIZE, squared_sensitivity=SQUARED_SENSITIVITY, delta=DELTA,
        draws=draws, data=data.source, pickups=int(data.counts.sum()), seed=settings.seed,
    )  # fmt: skip


def _released(
    data: Pickups, kind: str, mechanism: str, epsilon: str, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Release the counts with noise by the printed formula, or with noise that is (ε, δ)-DP.

    Moving a pickup removes one and adds one. DAWA and H_b, whose ε is for one of these changes, get
    ε/2 when they are verified.
    """
    from dpassay.figures.baselines import histograms, private_sgd

    counts = data.counts.astype(float)
    if kind == "data":
        return counts
    if mechanism in ("DAWA", "H_b"):
        release = histograms.release_dawa if mechanism == "DAWA" else histograms.release_hierarchy
        budget = float(epsilon) / (2 if kind == "verified" else 1)
        return release(data.counts, budget, rng)
    if mechanism == "R1SMG":
        star = losses.sigma_star(_SIZE, epsilon, DELTA, printed=kind == "printed")
        noise = private_sgd.rank_one(SQUARED_SENSITIVITY * star)(_SIZE, rng)
        return counts + noise.reshape(counts.shape)
    name, root = "analytic" if kind == "verified" else mechanism, math.sqrt(SQUARED_SENSITIVITY)
    each = losses.independent_deviation(name, _CELLS, root, epsilon, DELTA)
    return counts + each * rng.standard_normal(counts.shape)


def draw(
    table: Table, rows: int, columns: int, places: dict[tuple[str, str, str], int]
) -> style.Figure:
    """Draw the maps in a grid of panels with a common square-root scale, up to 60 pickups."""
    import numpy as np
    from matplotlib.colors import PowerNorm

    cells = [c.name for c in table.columns if c.name.startswith("c")]
    with style.panels(rows, columns, height=rows * (style.PAGE / columns + 0.5) + 1.2) as (
        figure,
        grid,
    ):
        for axes in grid:
            style.schematic(axes)
        image = None
        for (kind, mechanism, epsilon), place in places.items():
            axes = grid[place]
            where = {"kind": kind, "mechanism": mechanism, "epsilon": epsilon}
            values = np.array([table.column(c, **where) for c in cells], dtype=float).T
            image = axes.imshow(
                values, origin="lower", cmap="viridis", norm=PowerNorm(0.5, 0, 60),
                interpolation="none",
            )  # fmt: skip
            largest = table.numbers("largest", **where)[0]
            error = table.numbers("error", **where)[0]
            least, most = (table.numbers(c, **where)[0] for c in ("error_least", "error_most"))
            simple = ", simplified" if mechanism == "DAWA" else ""
            letter = chr(ord("a") + list(places).index((kind, mechanism, epsilon)))
            about = f"({letter}) {mechanism}{simple}\n"
            about += f"ε = {epsilon}, " if epsilon else ""
            about += f"max {_short(largest)}\n"
            if epsilon:
                about += f"error {_short(error)} ({_short(least)}–{_short(most)})"
            axes.set_title(style.powers(about), fontsize=6.5, loc="left")
            if place % columns == 0:
                side = losses.KINDS["printed" if kind == "data" else kind]
                axes.text(
                    -0.04, 0.5, side, rotation=90, ha="right", va="center",
                    transform=axes.transAxes,
                )  # fmt: skip
        for axes in grid:
            if not axes.has_data():
                axes.remove()
        if image is not None:
            bar = figure.colorbar(
                image,
                ax=figure.axes,
                orientation="horizontal",
                fraction=0.025,
                aspect=60,
                extend="max",
            )
            bar.set_label("pickups per cell; blank: no valid cell")
        exact = next(eps for kind, name, eps in places if (kind, name) == ("verified", EXACT))
        printed, needed, gaussian = (
            _short(table.numbers("error", kind=kind, mechanism=name, epsilon=eps)[0])
            for kind, name, eps in (
                ("printed", "R1SMG", _LOW), ("verified", "R1SMG", _LOW), ("verified", EXACT, exact),
            )
        )  # fmt: skip
        style.finding(
            figure,
            f"With the noise of Theorem 5 the error of R1SMG at ε = {_LOW} is {printed} pickups "
            f"per cell; with noise that is private it is {needed}, and Gaussian noise at "
            f"ε = {exact} has {gaussian}",
            f"Data: {table.parameters['data']}; maps of median error (range) of "
            f"{table.parameters['draws']} releases",
        )
        return figure


def _short(value: float) -> str:
    if 10 <= value < 10**4 or value == 0:
        return f"{value:.0f}"
    return f"{value:.1g}" if value >= 10**4 else f"{value:.2g}"


_DATA = ("data", "non-private", "")


def _requests(epsilon: str) -> tuple[Request, ...]:
    """Return requests for R1SMG at its own ε and the others at a common ε, first printed."""
    others = ("classic", "analytic", "MVG", "MGM", "DAWA", "H_b")
    printed = [("printed", name, epsilon) for name in others]
    verified = [("verified", name, epsilon) for name in ("R1SMG", EXACT, "DAWA", "H_b")]
    own = ("printed", "R1SMG", _LOW), *printed, ("verified", "R1SMG", _LOW), *verified
    return tuple(dict.fromkeys(own))


def _plot(
    requests: tuple[Request, ...], columns: int, places: Sequence[int]
) -> tuple[Callable[[Settings], Table], Callable[[Table], style.Figure]]:
    panels = dict(zip((_DATA, *requests), places, strict=True))
    return partial(compute, requests=requests), partial(
        draw, rows=3, columns=columns, places=panels
    )


PLOTS: Plots = {
    "4": _plot(_requests("0.5"), 5, (*range(8), *range(10, 15))),
    "10": _plot(_requests(_LOW), 4, range(12)),
}
