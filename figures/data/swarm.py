"""Swarm behaviour: 12 features for each boid of a group, and whether the group flocks.

The original is the Swarm Behaviour data of UCI and Kaggle (Flocking.csv; Swarm_Behaviour.csv at
Kaggle): for boid m the columns x_m, y_m (place), xVel_m, yVel_m, xA_m, yA_m (alignment), xS_m,
yS_m (separation), xC_m, yC_m (cohesion), nAC_m, nS_m (neighbours within the two radii), and last
the class, 0 or 1; 200 boids, 24016 records. The stand-in simulates Reynolds' boids: every record
is a group on a torus after some steps; in groups of class 1 the boids steer by the three rules,
in those of class 0 they hardly do.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from dpassay.figures.data.source import Source, find, wrong

FILES = ("Swarm_Behaviour.csv", "Flocking.csv")
FEATURES = ("x", "y", "xVel", "yVel", "xA", "yA", "xS", "yS", "xC", "yC", "nAC", "nS")
_BOX = 40.0
"""Side of the torus."""
_SIGHT, _TOO_CLOSE = 8.0, 3.0
_SPEED = 1.0
"""Distance that a boid flies in one step."""
_STEPS = 40
"""Steps before a swarm is measured."""
_CHUNK = 200_000
"""Pairs of boids whose distances are formed at once."""


@final
@dataclass(frozen=True, slots=True)
class Swarms:
    """Records with features in [−1, 1], and classes 0 and 1."""

    features: NDArray[np.float64]
    classes: NDArray[np.int64]
    source: Source


def swarms(folder: Path | None, rng: np.random.Generator, *, records: int, boids: int) -> Swarms:
    """Return the file's records, or without a folder simulated ones of so many boids.

    Raises
    ------
    InvalidInputError
        If the folder has no such file, or the file is not what it should be.
    """
    path = find(folder, FILES)
    if path is None:
        raw, classes = _simulated(rng, records, boids)
        return Swarms(_scaled(raw), classes, Source("simulated boids", is_original=False))
    raw, classes = _read(path)
    return Swarms(_scaled(raw), classes, Source("swarm behaviour", is_original=True))


def _scaled(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Map each feature linearly to [−1, 1]; a constant one to 0.

    The range is that of the data, as in the paper, which takes it for public.
    """
    low, high = raw.min(axis=0), raw.max(axis=0)
    wide = np.where(high > low, high - low, 1)
    return np.where(high > low, 2 * (raw - low) / wide - 1, 0)


def columns(boids: int) -> list[str]:
    """Return the names of the columns of features."""
    return [f"{feature}{m}" for m in range(1, boids + 1) for feature in FEATURES]


def _read(path: Path) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rows, classes = [], []
    with path.open(newline="", encoding="utf-8") as stream:
        lines = csv.reader(stream)
        head = [name.strip() for name in next(lines, [])]
        boids, rest = divmod(len(head) - 1, len(FEATURES))
        if boids < 1 or rest:
            problem = f"expected 12 columns per boid and the class, found {len(head)} columns"
            raise wrong(path, "line 1", problem)
        for place, (name, found) in enumerate(zip(columns(boids), head, strict=False), start=1):
            if name.lower() != found.lower().replace("_", ""):
                raise wrong(path, f"line 1, column {place}", f"expected {name}, found {found!r}")
        for row in lines:
            place = lines.line_num
            if len(row) != len(head):
                problem = f"expected {len(head)} columns, found {len(row)}"
                raise wrong(path, f"line {place}", problem)
            try:
                values = [float(text) for text in row]
            except ValueError:
                values = []
            if not values or not np.isfinite(values).all():
                at = next(i for i, text in enumerate(row) if not _is_number(text))
                problem = f"expected a number, found {row[at]!r}"
                raise wrong(path, f"line {place}, column {head[at]}", problem)
            if values[-1] not in (0, 1):
                problem = f"expected the class 0 or 1, found {row[-1]!r}"
                raise wrong(path, f"line {place}, column {head[-1]}", problem)
            rows.append(values[:-1])
            classes.append(int(values[-1]))
    if len(set(classes)) < 2:
        raise wrong(path, f"column {head[-1]}", "expected records of both classes")
    return np.array(rows), np.array(classes)


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _simulated(
    rng: np.random.Generator, records: int, boids: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    classes = rng.integers(2, size=records)
    features = np.empty((records, len(FEATURES) * boids))
    chunk = max(1, _CHUNK // boids**2)
    for start in range(0, records, chunk):
        some = classes[start : start + chunk]
        features[start : start + chunk] = _groups(rng, some, boids)
    return features, classes


def _groups(
    rng: np.random.Generator, classes: NDArray[np.int64], boids: int
) -> NDArray[np.float64]:
    """Simulate some groups and return their features, boid by boid."""
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
    """Return what each boid is steered by: others' velocity, away from them, to their middle."""
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
