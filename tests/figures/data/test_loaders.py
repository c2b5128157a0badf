"""The loaders: files as they are published, wrong ones, and the stand-ins."""

from __future__ import annotations

import gzip
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpassay.accountant.errors import InvalidInputError
from dpassay.figures.data import (
    CELLS,
    LATITUDES,
    LONGITUDES,
    colour_images,
    columns,
    digits,
    pickups,
    read_batch,
    read_idx,
    swarms,
)

HEAD = '"Date/Time","Lat","Lon","Base"\n'
UBER = "uber-raw-data-apr14.csv"


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_pickups_of_three_days_are_counted(tmp_path: Path) -> None:
    lines = [
        '"4/1/2014 0:10:00",40.7505,-73.9805,"B02512"',  # a minute too early
        '"4/1/2014 0:11:00",40.7505,-73.9805,"B02512"',
        '"4/3/2014 23:57:00",40.7505,-73.9805,"B02512"',
        '"4/2/2014 5:00:00",40.6,-74.06,"B02512"',  # the corner
        '"4/2/2014 5:00:00",41.5,-73.9805,"B02512"',  # off the map
        '"4/20/2014 5:00:00",40.9,-73.7,"B02512"',  # later in the month
    ]
    (tmp_path / UBER).write_text(HEAD + "\n".join(lines) + "\n")
    found = pickups(tmp_path, rng())
    row = int((40.7505 - LATITUDES[0]) / (LATITUDES[1] - LATITUDES[0]) * CELLS)
    column = int((-73.9805 - LONGITUDES[0]) / (LONGITUDES[1] - LONGITUDES[0]) * CELLS)
    assert found.counts.shape == (89, 89)
    assert found.counts[row, column] == 2
    assert found.counts[0, 0] == 1
    assert found.counts.sum() == 3
    assert found.valid.sum() == 3
    assert found.source.is_original
    assert found.source.words() == "Uber pickups"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("Date,Lat,Lon,Base\n", "expected the columns"),
        (HEAD + '"4/1/2014 0:11:00",40.7\n', "line 2: "),
        (HEAD + '"2014-04-01",40.7,-73.9,"B"\n', "line 2: .*does not match format"),
        (HEAD + '"4/1/2014 0:11:00",407,-73.9,"B"\n', "line 2: .*no degrees"),
        (HEAD + '"4/9/2014 0:11:00",40.7,-73.9,"B"\n', "expected pickups from 2014-04-01"),
    ],
)
def test_wrong_pickups_are_refused_by_line_and_column(
    tmp_path: Path, content: str, words: str
) -> None:
    (tmp_path / UBER).write_text(content)
    with pytest.raises(InvalidInputError, match=words):
        pickups(tmp_path, rng())


def test_a_folder_without_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"uber-raw-data-apr14\.csv in the folder"):
        pickups(tmp_path, rng())


def swarm_file(folder: Path, rows: list[str], head: str = "") -> None:
    head = head or ",".join([*columns(2), "Swarm_Behaviour"])
    (folder / "Flocking.csv").write_text("\n".join([head, *rows]) + "\n")


@pytest.mark.parametrize(
    ("rows", "head", "words"),
    [
        (["1,2"], "x1,y1", "expected 12 columns per boid"),
        (["1,2"], "", "expected 25 finite numbers"),
        ([",".join(["1"] * 3 + ["fast"] + ["1"] * 21)], "", "below line 1: .*'fast'"),
        ([",".join(["1"] * 24 + ["2"])], "", "both classes, 0 and 1"),
        ([",".join(["1"] * 25)], "", "both classes"),
    ],
)
def test_wrong_swarms_are_refused(tmp_path: Path, rows: list[str], head: str, words: str) -> None:
    swarm_file(tmp_path, rows, head)
    with pytest.raises(InvalidInputError, match=words):
        swarms(tmp_path, rng(), records=1, boids=1)


def idx(array: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


def mnist(folder: Path, *, side: int = 28, labels: int = 3, worst: int = 9) -> None:
    images = np.arange(3 * side * side, dtype=np.uint8).reshape(3, side, side)
    for part in ("train", "t10k"):
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        found = np.full(labels, worst, np.uint8)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx(found))


def test_mnist_files_are_read(tmp_path: Path) -> None:
    mnist(tmp_path)
    found = digits(tmp_path, rng())
    assert found.train.shape == (3, 784)
    assert found.train[0, :3].tolist() == [0, 1, 2]
    assert found.test_labels.tolist() == [9, 9, 9]
    assert found.source.is_original


@pytest.mark.parametrize(
    ("change", "words"),
    [({"side": 20}, "images of 28×28 pixels"), ({"worst": 10}, "expected 3 labels from 0 to 9")],
)
def test_wrong_mnist_files_are_refused(tmp_path: Path, change: dict[str, int], words: str) -> None:
    mnist(tmp_path, **change)
    with pytest.raises(InvalidInputError, match=words):
        digits(tmp_path, rng())


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda content: b"\x89PNG" + content, "whole idx file"),
        (lambda content: content[:-1], "whole idx file"),
    ],
)
def test_a_truncated_idx_file_is_refused(
    tmp_path: Path, edit: Callable[[bytes], bytes], words: str
) -> None:
    path = tmp_path / "labels"
    path.write_bytes(edit(idx(np.zeros(3, np.uint8))))
    with pytest.raises(InvalidInputError, match=words):
        read_idx(path)


def test_a_cut_gzip_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels.gz"
    path.write_bytes(gzip.compress(idx(np.zeros(300, np.uint8)))[:-12])
    with pytest.raises(InvalidInputError, match="whole idx file"):
        read_idx(path)


def batch(data: object, labels: object) -> bytes:
    return pickle.dumps({b"data": data, b"labels": labels}, protocol=2)


def test_cifar_batches_are_read(tmp_path: Path) -> None:
    data = np.arange(2 * 3072, dtype=np.uint8).reshape(2, 3072)
    for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        (tmp_path / name).write_bytes(batch(data, [3, 4]))
    found = colour_images(tmp_path, rng())
    assert found.train.shape == (10, 3072)
    assert found.test_labels.tolist() == [3, 4]


class Dangerous:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("this must not run",)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (batch(np.zeros((1, 3072), np.uint8), [1])[:-20], "whole python batch"),
        (pickle.dumps({b"data": 1}), "whole python batch"),
        (batch(np.zeros((1, 99), np.uint8), [1]), "the shape"),
        (batch(np.zeros((2, 3072), np.uint8), [1]), "expected 2 labels"),
        (batch(np.zeros((2, 3072), np.uint8), [1, 10]), "expected 2 labels from 0 to 9"),
        (pickle.dumps(Dangerous()), "it asks for builtins.print"),
    ],
)
def test_wrong_batches_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "data_batch_1"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=words):
        read_batch(path)
