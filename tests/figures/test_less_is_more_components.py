"""Figures 6 and 11 of Ji and Li's paper against the level of random directions."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from figures.data.swarm import swarms
from figures.description import Settings, Size
from figures.less_is_more import fig06, fig11, pca
from figures.table import Table

FAST = Settings(size=Size.FAST)


@cache
def table() -> Table:
    return fig06.compute(FAST)


@cache
def random_level() -> float:
    """Σ|λᵢ − tr(C)/M|: random directions capture the mean variance, up to a few per cent."""
    data = swarms(None, FAST.rng("swarms"), records=1201, boids=10)
    values = np.linalg.eigvalsh(data.features.T @ data.features / 1201)
    return float(abs(values - values.mean()).sum())


@pytest.mark.slow
def test_the_face_names_the_stand_in() -> None:
    assert "stand-in" in table().parameters["data"]
    assert table().parameters["factor"] == pytest.approx(0.576 / 120**2, rel=1e-12)


@pytest.mark.slow
def test_the_non_private_components_have_no_deviation() -> None:
    for kind in ("printed", "verified"):
        where = {"kind": kind, "mechanism": "non-private"}
        assert max(table().numbers("deviation", **where)) < 1e-9 * random_level()
        assert min(table().numbers("accuracy", **where)) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "mechanism"), [("printed", "MVG"), ("verified", "R1SMG"),
                                                 ("verified", "Wishart")])  # fmt: skip
def test_too_much_noise_gives_random_directions(kind: str, mechanism: str) -> None:
    found = table().numbers("deviation", kind=kind, mechanism=mechanism)
    assert found == pytest.approx([random_level()] * 3, rel=0.15)


@pytest.mark.slow
def test_the_order_that_the_noises_have() -> None:
    large = {"epsilon": 1.6}
    deviation = {
        (kind, name): table().value("deviation", kind=kind, mechanism=name, **large)
        for kind, name in (
            ("printed", "R1SMG"), ("printed", "analytic"), ("printed", "MOD-SULQ"),
            ("verified", "R1SMG"), ("verified", "Gaussian, exact"), ("verified", "MOD-SULQ"),
        )
    }  # fmt: skip
    assert deviation["printed", "R1SMG"] < 0.8 * random_level()
    assert deviation["verified", "Gaussian, exact"] < 0.9 * deviation["verified", "R1SMG"]
    assert deviation["verified", "MOD-SULQ"] < deviation["printed", "MOD-SULQ"]


def test_amounts_of_independent_noise() -> None:
    sensitivity = 2400 * math.sqrt(2) / 24016
    amounts = {
        name: pca.independent_deviation(name, 2400, sensitivity, "1.6")
        for name in ("classic", "analytic", "MGM", "MVG")
    }
    assert amounts["classic"] == pytest.approx(
        sensitivity * math.sqrt(2 * math.log(1.25e7)) / 1.6, rel=1e-12
    )
    mu = brentq(
        lambda m: norm.cdf(m / 2 - 1.6 / m) - math.exp(1.6) * norm.cdf(-m / 2 - 1.6 / m) - 1e-7,
        0.05, 2,
    )  # fmt: skip
    assert amounts["analytic"] == pytest.approx(sensitivity / mu, rel=1e-6)
    assert amounts["analytic"] < amounts["MGM"] < amounts["classic"]
    # The entries' variance is √(MN)/B, B = 2.287e-17.
    assert amounts["MVG"] == pytest.approx(math.sqrt(2400 / 2.287e-17), rel=3e-4)


@pytest.mark.slow
def test_figure_11_everything_but_the_printed_rank_one_noise_is_random() -> None:
    found = fig11.compute(FAST)
    for kind in ("printed", "verified"):
        for name in found.distinct("mechanism", kind=kind):
            if name in ("non-private", "PPCA") or (kind, name) == ("printed", "R1SMG"):
                continue
            values = found.numbers("deviation", kind=kind, mechanism=name)
            assert values == pytest.approx([random_level()] * 3, rel=0.15)
    printed = found.numbers("deviation", kind="printed", mechanism="R1SMG")
    assert printed == table().numbers("deviation", kind="printed", mechanism="R1SMG")
