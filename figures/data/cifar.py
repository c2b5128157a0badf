"""Colour images: CIFAR-10's python batches, or structured images of the same shape.

The stand-in's ten classes are gratings of ten directions and two colours, with a random phase,
frequency, contrast and place of a bright spot, under noise: a linear classifier learns part of
them, a convolutional network more.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.figures.data.digits import Images
from dpassay.figures.data.source import Source, find, wrong

SIDE, COLOURS, CLASSES = 32, 3, 10
_PIXELS = COLOURS * SIDE**2
_TRAIN = tuple(f"data_batch_{i}" for i in range(1, 6))
_TEST = "test_batch"
_NOISE = 30.0
"""Standard deviation of a stand-in's pixels, of 255."""
_CHUNK = 500
"""Images that are made at once."""


def colour_images(
    folder: Path | None, rng: np.random.Generator, *, train: int = 50000, test: int = 10000
) -> Images:
    """Return the batches' images, or without a folder the stand-in with so many images.

    Raises
    ------
    InvalidInputError
        If a batch is missing, or not what it should be.
    """
    paths = [find(folder, (name,)) for name in (*_TRAIN, _TEST)]
    batches = [read_batch(path) for path in paths if path is not None]
    if not batches:
        first, second = (_structured(count, rng) for count in (train, test))
        return Images(*first, *second, Source("gratings", is_original=False))
    images = np.concatenate([batch[0] for batch in batches[:-1]])
    labels = np.concatenate([batch[1] for batch in batches[:-1]])
    return Images(images, labels, *batches[-1], Source("CIFAR-10", is_original=True))


class _Plain(pickle.Unpickler):
    """Reads a batch without running what a file might want to run: only arrays are made."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the few names that numpy arrays are made of."""
        if name in ("_reconstruct", "ndarray", "dtype") and f"{module}.".startswith("numpy."):
            return super().find_class(module, name)
        if (module, name) == ("_codecs", "encode"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def read_batch(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return images and labels of one python batch."""
    try:
        with path.open("rb") as stream:
            batch = _Plain(stream, encoding="bytes").load()
    except (pickle.UnpicklingError, EOFError, ValueError, AttributeError, ImportError) as error:
        raise wrong(path, "the whole file", f"no whole python batch ({error})") from None
    if not isinstance(batch, dict):
        raise wrong(path, "the whole file", f"expected a dict, found {type(batch).__name__}")
    for key in (b"data", b"labels"):
        if key not in batch:
            raise wrong(path, f"entry {key!r}", f"missing; found {sorted(map(str, batch))}")
    data, labels = batch[b"data"], np.asarray(batch[b"labels"])
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (_PIXELS,):
        shape = getattr(data, "shape", None)
        problem = f"expected bytes of shape (n, {_PIXELS}), found {shape}"
        raise wrong(path, "entry b'data'", problem)
    if labels.shape != (len(data),):
        problem = f"expected {len(data)} labels, found shape {labels.shape}"
        raise wrong(path, "entry b'labels'", problem)
    outside = (labels < 0) | (labels >= CLASSES)
    if outside.any():
        at = int(np.argmax(outside))
        raise wrong(path, f"entry b'labels', line {at}", f"expected 0 to 9, found {labels[at]}")
    return data, labels.astype(np.int64)


def halved(images: Images) -> Images:
    """Return images of half the side: means of 2×2 pixels, rounded."""

    def half(rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
        parts = rows.reshape(len(rows), COLOURS, SIDE // 2, 2, SIDE // 2, 2)
        total = parts.sum(axis=(3, 5), dtype=np.uint16)
        return np.asarray((total + 2) // 4, np.uint8).reshape(len(rows), -1)

    return replace(images, train=half(images.train), test=half(images.test))


def _structured(
    count: int, rng: np.random.Generator
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Draw images: brightness 128 + contrast·cos(k·x + phase) in the class's colour, a spot."""
    labels = rng.integers(CLASSES, size=count)
    images = np.empty((count, _PIXELS), np.uint8)
    x, y = np.meshgrid(np.arange(SIDE) - SIDE / 2, np.arange(SIDE) - SIDE / 2)
    colours = np.array([[np.cos(c), np.cos(c - 2.1), np.cos(c + 2.1)] for c in range(CLASSES)])
    for start in range(0, count, _CHUNK):
        chosen = labels[start : start + _CHUNK]
        size = (len(chosen), 1, 1)
        angle = (np.pi * chosen / CLASSES).reshape(size) + 0.15 * rng.standard_normal(size)
        frequency = rng.uniform(0.3, 0.6, size)
        phase = rng.uniform(0, 2 * np.pi, size)
        waves = np.cos(frequency * (np.cos(angle) * x + np.sin(angle) * y) + phase)
        centre = rng.uniform(-SIDE / 3, SIDE / 3, (2, *size))
        spot = np.exp(-((x - centre[0]) ** 2 + (y - centre[1]) ** 2) / 40)
        tint = colours[chosen][:, :, np.newaxis, np.newaxis]
        bright = 128 + 12 * tint + 35 * waves[:, np.newaxis] * (1 + tint) / 2
        bright += 60 * spot[:, np.newaxis]
        noise = rng.standard_normal(bright.shape, dtype=np.float32)
        bright = np.maximum(np.minimum(bright + _NOISE * noise, 255), 0)
        images[start : start + _CHUNK] = bright.reshape(len(chosen), -1)
    return images, labels.astype(np.int64)
