"""Figures 7 and 8 of Ji and Li's paper: the accounting, the amounts of noise, the training."""

from __future__ import annotations

import importlib.util
from functools import cache
from importlib.machinery import ModuleSpec

import numpy as np
import pytest

from accountant.errors import NotApplicableError
from figures import extras
from figures.data.cifar import colour_images, halved
from figures.description import Settings, Size
from figures.less_is_more import fig07, training
from figures.table import Table

FAST = Settings(size=Size.FAST)


@cache
def table() -> Table:
    return fig07.compute(FAST)


def test_halved_images_are_means_of_four_pixels() -> None:
    images = colour_images(None, np.random.default_rng(3), train=5, test=5)
    found = halved(images).train.reshape(5, 3, 16, 16)
    whole = images.train.reshape(5, 3, 32, 32).astype(float)
    means = whole.reshape(5, 3, 16, 2, 16, 2).mean(axis=(3, 5))
    assert np.abs(found - means).max() <= 0.5


def test_the_papers_network_without_torch_names_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find(name: str) -> ModuleSpec | None:
        return None if name == "torch" else importlib.util.find_spec(name)

    monkeypatch.setattr(extras, "find_spec", find)
    training.require_torch(FAST, "less-is-more/7")
    with pytest.raises(NotApplicableError, match=r"pip install .*\[casestudies\]'"):
        fig07.compute(Settings(size=Size.FULL))
