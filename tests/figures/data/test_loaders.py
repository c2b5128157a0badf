"""The loaders: files as they are published, wrong ones, and the stand-ins."""

from __future__ import annotations

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
    assert found.source == "Uber pickups"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (HEAD + '"4/1/2014 0:11:00",40.7\n', "expected lines of Date/Time"),
        (HEAD + '"2014-04-01",40.7,-73.9,"B"\n', "could not convert string '2014-04-01'"),
        (HEAD + '"4/9/2014 0:11:00",40.7,-73.9,"B"\n', "expected pickups from 2014-04-01"),
    ],
)
def test_wrong_pickups_are_refused(tmp_path: Path, content: str, words: str) -> None:
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


def arrays(shape: tuple[int, ...], count: int = 3, label: int = 9) -> dict[str, Any]:
    images = np.arange(3 * np.prod(shape)).astype(np.uint8).reshape(3, *shape)
    labels = np.full((count, 1), label, np.uint8)
    return {"x_train": images, "y_train": labels, "x_test": images, "y_test": labels}


def test_stored_digits_and_colours_are_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "mnist.npz", **arrays((28, 28)))
    found = digits(tmp_path, rng())
    assert found.train.shape == (3, 784)
    assert found.train[0, :3].tolist() == [0, 1, 2]
    assert found.test_labels.tolist() == [9, 9, 9]
    assert found.source == "MNIST"
    np.savez(tmp_path / "cifar10.npz", **arrays((32, 32, 3)))
    colours = colour_images(tmp_path, rng())
    assert colours.train[0, :3].tolist() == [0, 3, 6]
    assert colours.train[0, 1024:1026].tolist() == [1, 4]


class Dangerous:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("this must not run",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (arrays((20, 28)), "images of \\(28, 28\\) bytes"),
        (arrays((28, 28), label=10), "expected 3 labels from 0 to 9"),
        (arrays((28, 28), count=2), "expected 3 labels"),
        ({"x_train": np.zeros(3)}, "expected the arrays x_train, y_train, x_test, y_test"),
        ({"x_train": np.array(Dangerous())}, "Object arrays cannot be loaded"),
    ],
)
def test_wrong_arrays_are_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    np.savez(tmp_path / "mnist.npz", **change)
    with pytest.raises(InvalidInputError, match=words):
        digits(tmp_path, rng())


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mnist.npz"
    np.savez(path, **arrays((28, 28)))
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InvalidInputError, match="expected the arrays"):
        digits(tmp_path, rng())
