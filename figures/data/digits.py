"""Handwritten digits: MNIST's idx files, or scikit-learn's bundled digits in their shape.

The stand-in takes the 1797 digits of 8×8 pixels that come with scikit-learn, a sixth of them
for testing, scales them to 28×28 by linear interpolation, and repeats each with small seeded
shifts until there are as many as in MNIST: the images of one digit are similar, so accuracies
are not those of MNIST.
"""

from __future__ import annotations

import gzip
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from dpassay.figures.data.source import Source, find, wrong

SIDE = 28
"""Pixels of a side of an image."""
CLASSES = 10
"""Digits."""
_NAMES = {
    "training images": "train-images-idx3-ubyte",
    "training labels": "train-labels-idx1-ubyte",
    "test images": "t10k-images-idx3-ubyte",
    "test labels": "t10k-labels-idx1-ubyte",
}
_UNSIGNED_BYTE = 8
"""The code of the type of pixels in an IDX file."""
_LARGEST_SHIFT = 2.0
"""Pixels by which a stand-in's digit is moved."""


@final
@dataclass(frozen=True, slots=True)
class Images:
    """Images as rows of bytes, with labels from 0 to 9."""

    train: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    source: Source


def digits(
    folder: Path | None, rng: np.random.Generator, *, train: int = 60000, test: int = 10000
) -> Images:
    """Return the files' images, or without a folder the stand-in with so many images.

    Raises
    ------
    InvalidInputError
        If a file is missing, or not what it should be.
    """
    paths = {
        part: find(folder, (name, f"{name}.gz", name.replace("-idx", ".idx")))
        for part, name in _NAMES.items()
    }
    found = {part: read_idx(path) for part, path in paths.items() if path is not None}
    if not found:
        return _stand_in(rng, train, test)
    for kind in ("training", "test"):
        images, labels = found[f"{kind} images"], found[f"{kind} labels"]
        path = paths[f"{kind} labels"]
        assert path is not None
        if images.shape[1:] != (SIDE, SIDE) or labels.shape != images.shape[:1]:
            problem = f"{labels.shape} labels for images of shape {images.shape}"
            raise wrong(path, "bytes 4 to 7", problem)
        if labels.max() >= CLASSES:
            at = int(np.argmax(labels >= CLASSES))
            raise wrong(path, f"byte {8 + at}", f"expected a digit, found {labels[at]}")
    flat = {part: found[f"{part} images"].reshape(-1, SIDE**2) for part in ("training", "test")}
    return Images(
        flat["training"], found["training labels"].astype(np.int64),
        flat["test"], found["test labels"].astype(np.int64),
        Source("MNIST", is_original=True),
    )  # fmt: skip


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Return the array of an idx file of bytes, which may be compressed by gzip.

    The file has two bytes of zero, the type, the number of dimensions, each size as a big-endian
    integer of four bytes, and the bytes.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, gzip.BadGzipFile) as error:
        raise wrong(path, "the whole file", f"no whole gzip file ({error})") from None
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _UNSIGNED_BYTE:
        raise wrong(path, "bytes 0 to 3", f"expected an idx file of bytes, found {content[:4]!r}")
    dimensions = content[3]
    start = 4 + 4 * dimensions
    if len(content) < start:
        raise wrong(path, f"byte {len(content)}", f"the file ends before its {dimensions} sizes")
    sizes = struct.unpack(f">{dimensions}I", content[4:start])
    expected = start + int(np.prod(sizes))
    if len(content) != expected:
        problem = f"sizes {sizes} need {expected} bytes, the file has {len(content)}"
        raise wrong(path, f"byte {min(len(content), expected)}", problem)
    return np.frombuffer(content, np.uint8, offset=start).reshape(sizes)


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
        Source("digits of scikit-learn", is_original=False),
    )


def _enlarged(images: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return 28×28 bytes: linear interpolation of 8×8 pixels, moved by up to two pixels."""
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
    """Return the 28×size matrix that enlarges a line, with black beyond its ends."""
    places = (np.arange(SIDE) + 0.5 - shift) * size / SIDE - 0.5
    weights = 1 - np.abs(places[:, np.newaxis] - np.arange(size))
    return np.asarray(np.maximum(weights, 0))
