"""Data of the case studies: loaders of the original files, and generators of stand-in data.

* Handwritten digits: `mnist.npz` as distributed by Keras, with the arrays x_train, y_train, x_test
  and y_test and images of 28×28 bytes. The stand-in uses the 1797 digits of 8×8 pixels in
  scikit-learn, a sixth of them for testing. It enlarges them to 28×28 by linear interpolation, and
  repeats them with small random shifts up to the size of MNIST. Since the images of a digit are
  similar, accuracies differ from those on MNIST.
* Colour images: CIFAR-10 as `cifar10.npz`, with the same arrays and images of 32×32×3 bytes. The
  stand-in has gratings of ten directions, one per class, with class-dependent tint, random phase,
  frequency and bright spot, and noise; a linear classifier learns them in part.
* Uber pickups in New York, 1 to 3 April 2014, counted on an 89×89 grid: `uber-raw-data-apr14.csv`
  of fivethirtyeight's uber-tlc-foil-response, with one line Date/Time, Lat, Lon, Base per pickup.
  The stand-in is a mixture of normal distributions around places in the city, restricted to land,
  with enough pickups for a largest count near the paper's 27.
* Swarms: the Swarm Behaviour data of UCI and Kaggle (Flocking.csv; Swarm_Behaviour.csv at Kaggle).
  The columns of boid m are x_m, y_m (position), xVel_m, yVel_m, xA_m, yA_m (alignment), xS_m, yS_m
  (separation), xC_m, yC_m (cohesion), nAC_m, nS_m (neighbours within two radii); the last column is
  the class, 0 or 1. There are 200 boids and 24016 records. The stand-in simulates Reynolds' boids:
  a record is a group on a torus after some steps. Groups of class 1 follow the three rules, and
  those of class 0 hardly do.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant.errors import InvalidInputError

_STAND_IN = "(stand-in data)"
"""Marks stand-in data in the titles of figures."""


def find(folder: Path, *names: str) -> Path:
    """Return the first of some files that exists in a folder or its subfolders.

    Raises InvalidInputError if there is none.
    """
    for name in names:
        for path in [folder / name, *sorted(folder.rglob(name))]:
            if path.is_file():
                return path
    raise InvalidInputError(
        f"Expected {' or '.join(names)} in the folder {folder}. Put the file there, or leave out "
        "--data to use stand-in data."
    )


def wrong(path: Path, problem: object) -> InvalidInputError:
    """Return the error for a file with invalid content."""
    return InvalidInputError(f"{path}: {problem}")


CLASSES = 10
"""Number of classes of digits and of colour images."""
SIDE = 28
"""Side of a digit, in pixels."""
_LARGEST_SHIFT = 2.0
"""Largest shift of a stand-in digit, in pixels."""


@final
@dataclass(frozen=True, slots=True)
class Images:
    """Images as rows of bytes, with labels from 0 to 9."""

    train: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    source: str


def digits(
    folder: Path | None, rng: np.random.Generator, *, train: int = 60000, test: int = 10000
) -> Images:
    """Return the images in the file, or, without a folder, stand-in images of these numbers.

    Raises InvalidInputError if the file is missing or invalid.
    """
    if folder is None:
        return _stand_in(rng, train, test)
    return _stored(find(folder, "mnist.npz"), (SIDE, SIDE), "MNIST")


_ARRAYS = ("x_train", "y_train", "x_test", "y_test")


def _stored(path: Path, shape: tuple[int, ...], name: str) -> Images:
    """Read images of a shape with colours last; in the rows returned, colours come first."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            parts = [file[array] for array in _ARRAYS]
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise wrong(path, f"expected the arrays {', '.join(_ARRAYS)} ({error})") from None
    for images, labels in (parts[:2], parts[2:]):
        if images.dtype != np.uint8 or images.shape[1:] != shape:
            raise wrong(path, f"expected images of {shape} bytes, found {images.shape}")
        if labels.size != len(images) or not ((labels >= 0) & (labels < CLASSES)).all():
            raise wrong(path, f"expected {len(images)} labels from 0 to {CLASSES - 1}")
    rows = [np.moveaxis(part, -1, 1) if len(shape) > 2 else part for part in parts[::2]]
    train, test = (images.reshape(len(images), -1) for images in rows)
    labels = [part.ravel().astype(np.int64) for part in parts[1::2]]
    return Images(train, labels[0], test, labels[1], name)


def _stand_in(rng: np.random.Generator, train: int, test: int) -> Images:
    from sklearn.datasets import load_digits

    bundled = load_digits()
    images, labels = bundled.images / 16, bundled.target
    order = rng.permutation(len(images))
    parts = order[: -len(images) // 6], order[-len(images) // 6 :]
    first, second = rng.choice(parts[0], size=train), rng.choice(parts[1], size=test)
    return Images(
        _enlarged(images[first], rng),
        labels[first].astype(np.int64),
        _enlarged(images[second], rng),
        labels[second].astype(np.int64),
        f"digits of scikit-learn {_STAND_IN}",
    )


def _enlarged(images: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Enlarge images to 28×28 bytes by linear interpolation, with random shifts."""
    shifts = np.linspace(-_LARGEST_SHIFT, _LARGEST_SHIFT, 5)
    factors = np.stack([_interpolation(images.shape[1], shift) for shift in shifts])
    up, across = rng.integers(len(shifts), size=(2, len(images)))
    result = np.empty((len(images), SIDE**2), np.uint8)
    for a in range(len(shifts)):
        for b in range(len(shifts)):
            here = (up == a) & (across == b)
            large = factors[a] @ images[here] @ factors[b].T
            result[here] = np.rint(255 * large).reshape(-1, SIDE**2)
    return result


def _interpolation(size: int, shift: float) -> NDArray[np.float64]:
    """Return the 28×size matrix that interpolates a line of pixels, with 0 beyond its ends."""
    places = (np.arange(SIDE) + 0.5 - shift) * size / SIDE - 0.5
    weights = 1 - np.abs(places[:, np.newaxis] - np.arange(size))
    return np.asarray(np.maximum(weights, 0))


SIDE_OF_COLOURS, COLOURS = 32, 3
_PIXELS = COLOURS * SIDE_OF_COLOURS**2
_NOISE = 30.0
"""Standard deviation of the noise on stand-in pixels, which range to 255."""
_CHUNK = 500
"""Number of images generated at a time."""


def colour_images(
    folder: Path | None, rng: np.random.Generator, *, train: int = 50000, test: int = 10000
) -> Images:
    """Return the images in the file, or, without a folder, stand-in images of these numbers.

    Raises InvalidInputError if the file is missing or invalid.
    """
    if folder is None:
        first, second = (_structured(count, rng) for count in (train, test))
        return Images(*first, *second, f"gratings {_STAND_IN}")
    shape = (SIDE_OF_COLOURS, SIDE_OF_COLOURS, COLOURS)
    return _stored(find(folder, "cifar10.npz"), shape, "CIFAR-10")


def halved(images: Images) -> Images:
    """Halve the side of colour images: each new pixel is the rounded mean of 2×2 pixels."""

    def half(rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
        parts = rows.reshape(len(rows), COLOURS, SIDE_OF_COLOURS // 2, 2, SIDE_OF_COLOURS // 2, 2)
        total = parts.sum(axis=(3, 5), dtype=np.uint16)
        return np.asarray((total + 2) // 4, np.uint8).reshape(len(rows), -1)

    return replace(images, train=half(images.train), test=half(images.test))


def _structured(
    count: int, rng: np.random.Generator
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Draw stand-in colour images and labels: gratings in the class's tint, with a bright spot."""
    labels = rng.integers(CLASSES, size=count)
    images = np.empty((count, _PIXELS), np.uint8)
    x, y = np.meshgrid(
        np.arange(SIDE_OF_COLOURS) - SIDE_OF_COLOURS / 2,
        np.arange(SIDE_OF_COLOURS) - SIDE_OF_COLOURS / 2,
    )
    colours = np.array([[np.cos(c), np.cos(c - 2.1), np.cos(c + 2.1)] for c in range(CLASSES)])
    for start in range(0, count, _CHUNK):
        chosen = labels[start : start + _CHUNK]
        size = (len(chosen), 1, 1)
        angle = (np.pi * chosen / CLASSES).reshape(size) + 0.15 * rng.standard_normal(size)
        frequency = rng.uniform(0.3, 0.6, size)
        phase = rng.uniform(0, 2 * np.pi, size)
        waves = np.cos(frequency * (np.cos(angle) * x + np.sin(angle) * y) + phase)
        centre = rng.uniform(-SIDE_OF_COLOURS / 3, SIDE_OF_COLOURS / 3, (2, *size))
        spot = np.exp(-((x - centre[0]) ** 2 + (y - centre[1]) ** 2) / 40)
        tint = colours[chosen][:, :, np.newaxis, np.newaxis]
        bright = 128 + 12 * tint + 35 * waves[:, np.newaxis] * (1 + tint) / 2
        bright += 60 * spot[:, np.newaxis]
        noise = rng.standard_normal(bright.shape, dtype=np.float32)
        bright = np.maximum(np.minimum(bright + _NOISE * noise, 255), 0)
        images[start : start + _CHUNK] = bright.reshape(len(chosen), -1)
    return images, labels.astype(np.int64)


CELLS = 89
"""Number of cells along a side of the map, as in the paper."""
FIRST, LAST = datetime(2014, 4, 1, 0, 11), datetime(2014, 4, 3, 23, 57)
LATITUDES, LONGITUDES = (40.60, 40.90), (-74.06, -73.70)
"""The range of the map, which the paper does not state: Manhattan, Brooklyn, Queens, LaGuardia."""
_TIME = "%m/%d/%Y %H:%M:%S"
_PICKUPS = 3000
"""Number of stand-in pickups."""
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
    """Cells that can have pickups, which is assumed to be public."""
    source: str


def pickups(folder: Path | None, rng: np.random.Generator) -> Pickups:
    """Return the counts in the file, or, without a folder, stand-in counts.

    The valid cells are those with a pickup in the whole month.

    Raises InvalidInputError if the file is missing or invalid.
    """
    if folder is None:
        return _stand_in_uber(rng)
    path = find(folder, "uber-raw-data-apr14.csv")
    try:
        rows = np.loadtxt(
            path, delimiter=",", quotechar='"', skiprows=1, usecols=(0, 1, 2), ndmin=2,
            encoding="utf-8",
            converters={0: lambda text: datetime.strptime(text, _TIME).timestamp()},
        )  # fmt: skip
    except ValueError as error:
        raise wrong(path, f"expected lines of Date/Time, Lat, Lon and Base ({error})") from None
    during = (FIRST.timestamp() <= rows[:, 0]) & (rows[:, 0] <= LAST.timestamp())
    if not during.any():
        raise wrong(path, f"expected pickups from {FIRST} to {LAST}")
    counts, month = grid(rows[during, 1:]), grid(rows[:, 1:])
    return Pickups(counts, month > 0, "Uber pickups")


def grid(places: NDArray[Any]) -> NDArray[np.int64]:
    """Count points (latitude, longitude) in the cells of the map, ignoring those outside."""
    counts, _, _ = np.histogram2d(
        places[:, 0], places[:, 1], bins=CELLS, range=(LATITUDES, LONGITUDES)
    )
    return np.asarray(counts, np.int64)


def _stand_in_uber(rng: np.random.Generator) -> Pickups:
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
    return Pickups(counts, valid, f"pickups in a city {_STAND_IN}")


def _on_land(places: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether places are on land: not in a river, and east of the Hudson."""
    land = np.ones(len(places), dtype=bool)
    for start, end, width in _RIVERS:
        a, b = np.array(start), np.array(end)
        along = np.clip((places - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1)
        nearest = a + along[:, np.newaxis] * (b - a)
        land &= np.hypot(*(places - nearest).T) > width
    (south, west), (north, east), _ = _RIVERS[0]
    border = west + (places[:, 0] - south) / (north - south) * (east - west)
    return land & (places[:, 1] > border)


FEATURES = ("x", "y", "xVel", "yVel", "xA", "yA", "xS", "yS", "xC", "yC", "nAC", "nS")
_BOX = 40.0
"""Side of the torus."""
_SIGHT, _TOO_CLOSE = 8.0, 3.0
_SPEED = 1.0
"""Distance that a boid covers in one step."""
_STEPS = 40
"""Number of simulated steps."""
_CHUNK_SWARM = 200_000
"""Number of pairs of boids whose distances are computed at a time."""


@final
@dataclass(frozen=True, slots=True)
class Swarms:
    """Records with features in [−1, 1], and classes 0 and 1."""

    features: NDArray[np.float64]
    classes: NDArray[np.int64]
    source: str


def swarms(folder: Path | None, rng: np.random.Generator, *, records: int, boids: int) -> Swarms:
    """Return the records in the file, or, without a folder, simulated ones.

    Raises InvalidInputError if the file is missing or invalid.
    """
    if folder is None:
        raw, classes = _simulated(rng, records, boids)
        return Swarms(_scaled(raw), classes, f"simulated boids {_STAND_IN}")
    raw, classes = _read_swarm(find(folder, "Swarm_Behaviour.csv", "Flocking.csv"))
    return Swarms(_scaled(raw), classes, "swarm behaviour")


def _scaled(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Map each feature linearly to [−1, 1], and a constant feature to 0.

    The range is that of the data. As in the paper, it is assumed to be public.
    """
    low, high = raw.min(axis=0), raw.max(axis=0)
    wide = np.where(high > low, high - low, 1)
    return np.where(high > low, 2 * (raw - low) / wide - 1, 0)


def columns(boids: int) -> list[str]:
    """Return the names of the feature columns."""
    return [f"{feature}{m}" for m in range(1, boids + 1) for feature in FEATURES]


def _read_swarm(path: Path) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    with path.open(encoding="utf-8") as stream:
        head = [name.strip().replace("_", "").lower() for name in stream.readline().split(",")]
        boids = (len(head) - 1) // len(FEATURES)
        if boids < 1 or head[:-1] != [name.lower() for name in columns(boids)]:
            raise wrong(path, "expected 12 columns per boid, from x1 to nS1, and the class")
        try:
            rows = np.loadtxt(stream, delimiter=",", ndmin=2)
        except ValueError as error:
            raise wrong(path, f"below line 1: {error}") from None
    if rows.shape[1:] != (len(head),) or not np.isfinite(rows).all():
        raise wrong(path, f"expected {len(head)} finite numbers in each line")
    if set(rows[:, -1].tolist()) != {0, 1}:
        raise wrong(path, "expected records of both classes, 0 and 1, in the last column")
    return rows[:, :-1], rows[:, -1].astype(np.int64)


def _simulated(
    rng: np.random.Generator, records: int, boids: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    classes = rng.integers(2, size=records)
    features = np.empty((records, len(FEATURES) * boids))
    chunk = max(1, _CHUNK_SWARM // boids**2)
    for start in range(0, records, chunk):
        some = classes[start : start + chunk]
        features[start : start + chunk] = _groups(rng, some, boids)
    return features, classes


def _groups(
    rng: np.random.Generator, classes: NDArray[np.int64], boids: int
) -> NDArray[np.float64]:
    """Simulate groups of given classes and return their features, boid by boid."""
    count = len(classes)
    place = rng.uniform(0, _BOX, (count, boids, 2))
    angle = rng.uniform(0, 2 * np.pi, (count, boids))
    velocity = _SPEED * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    will = np.where(classes == 1, rng.uniform(0.5, 1.0, count), rng.uniform(0, 0.05, count))
    will = will[:, np.newaxis, np.newaxis]
    rules = _rules(place, velocity)
    for _ in range(_STEPS):
        alignment, separation, cohesion, _, _ = rules
        turn = 0.3 * alignment + 0.2 * separation + 0.02 * cohesion
        velocity = velocity + will * turn + 0.15 * rng.standard_normal(velocity.shape)
        velocity *= _SPEED / np.linalg.norm(velocity, axis=-1, keepdims=True)
        place = (place + velocity) % _BOX
        rules = _rules(place, velocity)
    alignment, separation, cohesion, near, close = rules
    parts = [place, velocity, alignment, separation, cohesion, near, close]
    return np.concatenate(parts, axis=-1).reshape(count, -1)


def _rules(
    place: NDArray[np.float64], velocity: NDArray[np.float64]
) -> tuple[NDArray[np.float64], ...]:
    """Return alignment, separation, cohesion, and the numbers of near and of close neighbours."""
    between = place[:, np.newaxis] - place[:, :, np.newaxis]
    between -= _BOX * np.rint(between / _BOX)
    distance = np.hypot(between[..., 0], between[..., 1])
    itself = np.eye(place.shape[1], dtype=bool)
    near = (distance < _SIGHT) & ~itself
    close = (distance < _TOO_CLOSE) & ~itself
    neighbours = near.sum(axis=2, keepdims=True)
    share = near / np.maximum(neighbours, 1)
    alignment = share @ velocity - np.where(neighbours > 0, velocity, 0)
    cohesion = np.einsum("gij,gijk->gik", share, between)
    separation = -np.einsum("gij,gijk->gik", close.astype(float), between)
    return alignment, separation, cohesion, neighbours, close.sum(axis=2, keepdims=True)
