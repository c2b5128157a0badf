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
from figures.less_is_more import fig07, fig08, training
from figures.table import Table

FAST = Settings(size=Size.FAST)


@cache
def table() -> Table:
    return fig07.compute(FAST)


def about(total: str, kind: str, curve: str) -> float:
    where = {"total epsilon": total, "kind": kind, "curve": curve}
    return table().numbers("about", **where)[0]


@pytest.mark.slow
def test_the_exact_epsilons_of_30_epochs() -> None:
    """From above by dp_accounting's privacy loss distribution (interval 1e-4)."""
    for total, above in (("1.795", 1.636146), ("16.983", 14.942545)):
        found = about(total, "printed", "DP-SGD")
        assert above - 2e-4 < found <= above < float(total)


@pytest.mark.slow
def test_the_steps_of_rank_one_noise_hide_nothing() -> None:
    """One step leaks a sampled record nearly always: δ is q to two digits."""
    for total in ("1.795", "16.983"):
        found = about(total, "printed", "R1SMG-SGD")
        assert 0.98 * 256 / 60000 < found <= 256 / 60000 * (1 + 1e-11)
        assert about(total, "verified", "R1SMG-SGD") > 1e15


@pytest.mark.slow
def test_the_calibrated_noise_meets_the_total() -> None:
    for total in ("1.795", "16.983"):
        sigma = about(total, "verified", "DP-SGD")
        assert training.exact_epsilon(f"{sigma:.6g}", 7031) <= float(total)
        assert training.exact_epsilon(f"{sigma * 0.998:.6g}", 7031) > float(total)


@pytest.mark.slow
def test_who_learns() -> None:
    for total in ("1.795", "16.983"):
        accuracy = {
            (kind, curve): table().numbers(
                "test", **{"total epsilon": total}, kind=kind, curve=curve
            )[-1]
            for kind in ("printed", "verified")
            for curve in ("non-private", "DP-SGD", "R1SMG-SGD")
        }
        assert accuracy["printed", "non-private"] > 0.8
        assert accuracy["printed", "DP-SGD"] > 0.7
        assert accuracy["printed", "R1SMG-SGD"] > 0.7
        assert accuracy["verified", "R1SMG-SGD"] < 0.3


@pytest.mark.slow
def test_the_face_names_the_stand_in_and_the_model() -> None:
    assert "stand-in" in table().parameters["data"]
    assert table().parameters["parameters"] == 7850


def test_halved_images_are_means_of_four_pixels() -> None:
    images = colour_images(None, np.random.default_rng(3), train=5, test=5)
    found = halved(images).train.reshape(5, 3, 16, 16)
    whole = images.train.reshape(5, 3, 32, 32).astype(float)
    means = whole.reshape(5, 3, 16, 2, 16, 2).mean(axis=(3, 5))
    assert np.abs(found - means).max() <= 0.5


@pytest.mark.slow
def test_the_exact_epsilons_of_100_epochs_are_above_the_printed_ones() -> None:
    found = fig08.compute(FAST)
    for total, exact in (("2.673", 3.159), ("20.713", 28.05)):
        where = {"total epsilon": total, "kind": "printed", "curve": "DP-SGD"}
        assert found.numbers("about", **where)[0] == pytest.approx(exact, rel=2e-4)


def test_the_papers_network_without_torch_names_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find(name: str) -> ModuleSpec | None:
        return None if name == "torch" else importlib.util.find_spec(name)

    monkeypatch.setattr(extras, "find_spec", find)
    training.require_torch(FAST, "less-is-more/7")
    with pytest.raises(NotApplicableError, match=r"pip install .*\[casestudies\]'"):
        fig07.compute(Settings(size=Size.FULL))
