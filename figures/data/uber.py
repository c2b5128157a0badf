"""Uber pickups in New York, 1 to 3 April 2014, counted on an 89×89 grid.

The original is `uber-raw-data-apr14.csv` of fivethirtyeight's uber-tlc-foil-response: one line
per pickup with the columns Date/Time, Lat, Lon, Base. The stand-in is drawn from a mixture of
normal laws around places of the city, on its land, with as many pickups as give a largest count
near the 27 that the paper names.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dpassay.figures.data.source import Source, find, wrong

CELLS = 89
"""Cells of a side of the map, as in the paper."""
FIRST, LAST = datetime(2014, 4, 1, 0, 11), datetime(2014, 4, 3, 23, 57)
LATITUDES, LONGITUDES = (40.60, 40.90), (-74.06, -73.70)
"""The box of the map, which the paper does not state: Manhattan, Brooklyn, Queens, LaGuardia."""
FILES = ("uber-raw-data-apr14.csv",)
COLUMNS = ["Date/Time", "Lat", "Lon", "Base"]
_TIME = "%m/%d/%Y %H:%M:%S"
_PICKUPS = 3000
"""Pickups of a stand-in."""
_PLACES = (
    # weight, latitude, longitude, spread north, spread east (degrees)
    (0.20, 40.724, -73.999, 0.010, 0.008),  # Soho and the Village
    (0.24, 40.756, -73.982, 0.013, 0.010),  # Midtown, along Fifth Avenue
    (0.15, 40.774, -73.962, 0.014, 0.009),  # the Upper East and West Side
    (0.07, 40.710, -74.010, 0.006, 0.005),  # the Financial District
    (0.06, 40.774, -73.873, 0.004, 0.006),  # LaGuardia
    (0.05, 40.646, -73.786, 0.004, 0.008),  # Kennedy Airport
    (0.08, 40.714, -73.957, 0.012, 0.010),  # Williamsburg
    (0.07, 40.683, -73.978, 0.014, 0.014),  # Downtown Brooklyn
    (0.04, 40.753, -73.925, 0.016, 0.016),  # Astoria and Long Island City
    (0.04, 40.730, -73.880, 0.050, 0.060),  # the rest
)
_RIVERS = (
    # from and to (latitude, longitude), half-width: the Hudson and the East River
    ((40.60, -74.045), (40.90, -73.945), 0.011),
    ((40.69, -74.003), (40.715, -73.972), 0.005),
    ((40.715, -73.970), (40.785, -73.935), 0.004),
)


@final
@dataclass(frozen=True, slots=True)
class Pickups:
    """Counts by row (latitude from south to north) and column (longitude from west to east)."""

    counts: NDArray[np.int64]
    valid: NDArray[np.bool_]
    """Cells that may have pickups: the prior knowledge of the recipient."""
    source: Source


def pickups(folder: Path | None, rng: np.random.Generator) -> Pickups:
    """Return the counts of the file in a folder, of the stand-in without a folder.

    The file's valid cells are those with a pickup in the whole month, taken for public.

    Raises
    ------
    InvalidInputError
        If the folder has no such file, or the file is not what it should be.
    """
    path = find(folder, FILES)
    if path is None:
        return _stand_in(rng)
    rows = list(_read(path))
    inside = [(row[1], row[2]) for row in rows if FIRST <= row[0] <= LAST]
    if not inside:
        raise wrong(path, "column Date/Time", f"no pickup from {FIRST} to {LAST}")
    month = grid(np.array([(row[1], row[2]) for row in rows]))
    return Pickups(grid(np.array(inside)), month > 0, Source("Uber pickups", is_original=True))


def grid(places: NDArray[Any]) -> NDArray[np.int64]:
    """Count (latitude, longitude) in the cells of the map; what is outside it is left out."""
    counts, _, _ = np.histogram2d(
        places[:, 0], places[:, 1], bins=CELLS, range=(LATITUDES, LONGITUDES)
    )
    return np.asarray(counts, np.int64)


def _read(path: Path) -> Iterator[tuple[datetime, float, float]]:
    with path.open(newline="", encoding="utf-8") as stream:
        lines = csv.reader(stream)
        head = next(lines, [])
        if head != COLUMNS:
            raise wrong(path, "line 1", f"expected the columns {COLUMNS}, found {head}")
        for row in lines:
            place = f"line {lines.line_num}"
            if len(row) != len(COLUMNS):
                raise wrong(path, place, f"expected {len(COLUMNS)} columns, found {len(row)}")
            try:
                moment = datetime.strptime(row[0], _TIME)
            except ValueError:
                problem = f"expected a time like 4/1/2014 0:11:00, found {row[0]!r}"
                raise wrong(path, f"{place}, column Date/Time", problem) from None
            yield moment, *_degrees(path, place, row)


def _degrees(path: Path, place: str, row: list[str]) -> tuple[float, float]:
    found = []
    for name, text, most in (("Lat", row[1], 90.0), ("Lon", row[2], 180.0)):
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not abs(value) <= most:
            problem = f"expected degrees in [-{most:g}, {most:g}], found {text!r}"
            raise wrong(path, f"{place}, column {name}", problem)
        found.append(value)
    return found[0], found[1]


def _stand_in(rng: np.random.Generator) -> Pickups:
    weights = np.array([place[0] for place in _PLACES])
    chosen = np.array(_PLACES)[rng.choice(len(_PLACES), size=4 * _PICKUPS, p=weights)]
    places = chosen[:, 1:3] + chosen[:, 3:5] * rng.standard_normal((len(chosen), 2))
    inside = [
        (low <= places[:, i]) & (places[:, i] < high)
        for i, (low, high) in enumerate((LATITUDES, LONGITUDES))
    ]
    places = places[inside[0] & inside[1] & _on_land(places)][:_PICKUPS]
    centres = [
        np.linspace(low, high, CELLS, endpoint=False) + (high - low) / (2 * CELLS)
        for low, high in (LATITUDES, LONGITUDES)
    ]
    middles = np.stack(np.meshgrid(*centres, indexing="ij"), axis=-1).reshape(-1, 2)
    counts = grid(places)
    valid = _on_land(middles).reshape(CELLS, CELLS) | (counts > 0)
    return Pickups(counts, valid, Source("pickups in a city", is_original=False))


def _on_land(places: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether places are on land: in no river, and not west of the Hudson."""
    land = np.ones(len(places), dtype=bool)
    for start, end, width in _RIVERS:
        a, b = np.array(start), np.array(end)
        along = np.clip((places - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1)
        nearest = a + along[:, np.newaxis] * (b - a)
        land &= np.hypot(*(places - nearest).T) > width
    (south, west), (north, east), _ = _RIVERS[0]
    border = west + (places[:, 0] - south) / (north - south) * (east - west)
    return land & (places[:, 1] > border)
