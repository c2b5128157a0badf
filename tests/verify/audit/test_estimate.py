"""Audits without a claim, values apart from last bits, and numbers that are no doubles."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpassay
from dpassay.figures import audit as picture
from dpassay.verifier.audit.curve import EPSILONS, Curve
from dpassay.verifier.cli import main

LEVEL = 1e-6
PAIR = (0.0, 1.0)


def laplace(scale: float) -> Any:
    def released(dataset: float, size: int, rng: np.random.Generator) -> Any:
        return dataset + rng.laplace(0.0, scale, size)

    return released


def rank_one(answer: Any, size: int, rng: np.random.Generator) -> Any:
    """A rank-one Gaussian mechanism as a stranger writes it, rounded so that no bits leak."""
    direction = rng.standard_normal((size, 20))
    direction /= np.linalg.norm(direction, axis=1)[:, np.newaxis]
    noise = direction * (10 * rng.standard_normal(size))[:, np.newaxis]
    return np.rint((np.asarray(answer) + noise) * 2.0**20) / 2.0**20


def test_bounds_of_a_finite_mechanism_hold_the_exact_curve() -> None:
    """Of randomised response the cells are the outputs: δ is between both bounds at every ε."""
    found = dpassay.audit("RandomizedResponse(1)", significance=LEVEL, samples=20_000, seed=1)
    assert isinstance(found, dpassay.AuditResult)
    assert found.verdict is None
    assert not found.refuted
    for row in found.deltas:
        assert row["lower"] <= float(row["exact"].lower)
        assert row["upper"] >= float(row["exact"].upper)
    assert found.deltas[0]["upper"] - found.deltas[0]["lower"] < 0.1
    assert 0.8 < found.epsilon <= 1
    told = found.to_json()
    assert told["verdict"] is None
    assert [row["epsilon"] for row in told["delta"]] == list(EPSILONS)
    json.dumps(told)


def test_bounds_hold_at_once_and_are_near() -> None:
    """100 pairs of histograms of known laws at 1e-6: no bound is wrong, and all are close."""
    p, q = (stats.norm(shift).cdf(np.linspace(-3, 4, 30)) for shift in (1, 0))
    p, q = (np.diff([0.0, *each, 1.0]) for each in (p, q))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        counts = np.array([rng.multinomial(50_000, law) for law in (p, q)])
        curve = Curve(counts, LEVEL, LEVEL)
        for epsilon in (*EPSILONS, 0.7):
            true = float(np.maximum(p - np.exp(epsilon) * q, 0).sum())
            assert curve.delta(epsilon) <= true <= curve.delta_upper(epsilon)
            assert curve.delta(epsilon) <= curve.delta_estimate(epsilon)
        assert curve.delta(0) > 0.383 - 0.04
        assert curve.delta_upper(0) < 0.383 + 0.04
        assert curve.epsilon(0.1) <= (curve.epsilon_upper(0.1) or 9)


@pytest.mark.slow
def test_distances_bound_a_mechanism_of_many_dimensions_closely() -> None:
    mechanism = dpassay.RankOneGaussian(dimension=20, sigma_star=100)
    found = dpassay.audit(mechanism, significance=LEVEL, samples=20_000, seed=1)
    assert isinstance(found, dpassay.AuditResult)
    for epsilon in (0.5, 1.0, 2.0):
        exact = float(dpassay.delta(mechanism, epsilon=epsilon).lower)
        assert exact - 0.07 < found.delta(epsilon) <= exact


def test_distances_to_the_answers_show_noise_round_them() -> None:
    zero, one = [0.0] * 20, [1.0] + [0.0] * 19
    found = dpassay.audit(rank_one, pair=(zero, one), samples=20_000, seed=1, bits=False)
    assert isinstance(found, dpassay.AuditResult)
    exact = dpassay.delta(dpassay.RankOneGaussian(dimension=20, sigma_star=100), epsilon=1)
    assert float(exact.lower) - 0.06 < found.delta(1.0) <= float(exact.upper)


def test_values_and_last_bits_have_a_verdict_each() -> None:
    """Right noise of numpy leaks by its bits alone; half of it leaks by its values."""
    common: dict[str, Any] = {"pair": PAIR, "samples": 10_000, "significance": LEVEL, "seed": 1}
    right = dpassay.audit(laplace(1.0), 1, **common)
    assert isinstance(right, dpassay.AuditResult)
    assert right.verdict == "NOT_REFUTED"
    assert right.bits is not None
    assert right.bits.p_value <= LEVEL
    assert "its bits     REFUTED" in str(right)
    assert (right.to_json()["values"]["verdict"], right.to_json()["bits"]["verdict"]) == (
        "NOT_REFUTED",
        "REFUTED",
    )
    half = dpassay.audit(laplace(0.5), 1, **common)
    assert half.refuted
    assert "its values   REFUTED" in str(half)
    assert dpassay.audit(laplace(1.0), 1, bits=True, **common).refuted
    left_out = dpassay.audit(laplace(1.0), 1, bits=False, **common)
    assert isinstance(left_out, dpassay.AuditResult)
    assert left_out.bits is None
    assert "its bits" not in str(left_out)


NOISE = np.arange(-3, 4)


@pytest.mark.parametrize(
    "written",
    [
        lambda count: 10**30 + int(count),
        lambda count: Fraction(int(count), 10**40) + Fraction(1, 3),
        lambda count: Decimal(10) ** 25 + int(count),
        lambda count: Decimal(10) ** (1000 + int(count)),
        lambda count: np.int64(2**62 + int(count)),
        lambda count: -0.0 if count == 0 else 0.0,
    ],
    ids=["int", "fraction", "decimal", "beyond", "int64", "zeros"],
)
def test_numbers_beyond_doubles_are_told_apart(written: Any) -> None:
    def released(dataset: int, size: int, rng: np.random.Generator) -> list[Any]:
        return [written(dataset + count) for count in rng.choice(NOISE, size)]

    found = dpassay.audit(released, 0.05, pair=(0, 4), samples=2000, significance=LEVEL, seed=1)
    assert found.refuted


def test_an_exact_release_is_not_said_to_leak_by_its_bits() -> None:
    """Too little noise shows in the binades of its values as well, and no bit is to blame."""
    found = dpassay.audit("Laplace(1)", "0.8", samples=60_000, seed=7)
    assert found.refuted
    assert "reveal no more than its values do" in str(found)
    assert "floating-point noise" not in str(found)


@pytest.mark.slow
def test_outputs_that_are_infinite_or_no_number_are_drawn(tmp_path: Path) -> None:
    def odd(dataset: float, size: int, rng: np.random.Generator) -> Any:
        found = dataset + rng.laplace(0.0, 1.0, size)
        return np.where(rng.random(size) < 0.1, rng.choice([np.nan, np.inf, -np.inf], size), found)

    found = dpassay.audit(odd, pair=PAIR, samples=1000, seed=1)
    assert isinstance(found, dpassay.AuditResult)
    found.plot(tmp_path / "a.png")
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.slow
def test_pictures_and_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from matplotlib.figure import Figure

    laplace_of = laplace(1.0)
    laplace_of.__name__ = "<b>" + "a_long_name" * 30
    found = dpassay.audit(laplace_of, pair=PAIR, samples=2000, seed=1)
    assert isinstance(found, dpassay.AuditResult)
    assert "<b>" not in found._repr_html_()
    axes = Figure().add_subplot()
    found.plot(ax=axes)
    assert axes.get_ylabel().startswith("β")
    figure = found.plot()
    assert len(figure.axes) == 2
    picture, page = tmp_path / "a.png", tmp_path / "a.html"
    words = ["audit", "DiscreteLaplace(2)", "--samples", "2000", "--seed", "1"]
    words += ["--plot", str(picture), "--html", str(page)]
    assert main(words) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in page.read_text("utf-8")
    assert "█" in capsys.readouterr().out


def test_categories_are_told_one_by_one() -> None:
    def released(dataset: int, size: int, rng: np.random.Generator) -> Any:
        colours = ["red" * 20, "green", "blue", None]
        chances = [0.1 + 0.2 * dataset, 0.2, 0.3 - 0.1 * dataset, 0.4 - 0.1 * dataset]
        return [colours[i] for i in rng.choice(4, size=size, p=chances)]

    found = dpassay.audit(released, pair=(0, 1), samples=10_000, seed=1)
    assert isinstance(found, dpassay.AuditResult)
    assert "red" in found.rule.event()["description"]
    labels = [label.strip("'") for label in picture.compute(found).labels]
    assert "blue" in labels
    assert any(label.startswith("redredred") for label in labels)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_difference_of_distances_shows_no_last_bits(seed: int) -> None:
    """Where the largest entry is far away the difference is one number, but for rounding."""

    def released(dataset: Any, size: int, rng: np.random.Generator) -> Any:
        return dataset + rng.laplace(0.0, 5.0, (size, 5))  # epsilon = 1

    found = dpassay.audit(
        released,
        epsilon=1,
        pair=(np.zeros(5), np.ones(5)),
        samples=20_000,
        significance=LEVEL,
        seed=seed,
        bits=False,
    )
    assert isinstance(found, dpassay.AuditResult)
    assert not found.refuted
