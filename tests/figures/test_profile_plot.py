"""Pictures that pages show: profiles, what an attacker gains, ε against epochs."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dpassay
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import Composed, Gaussian, Laplace, PoissonSubsampled, Tabulated
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions.profile import delta
from dpassay.figures import schemes, style, tradeoff
from dpassay.figures.profile import Table, compute, draw, estimate
from dpassay.verifier.cli import main
from tests.quick import quick

# profile plot


HEADS = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}


@pytest.fixture(scope="module")
def table() -> Table:
    marks = [(at, delta(Laplace(scale=2), at)) for at in ("0.1", "-0.2", "0.6")]
    return compute(Laplace(scale=2), marks=marks)


@pytest.mark.parametrize("suffix", quick(HEADS, 2))
def test_a_file_is_written_and_the_same_one_again(suffix: str, tmp_path: Path) -> None:
    marks = [("0.1", delta(Laplace(scale=2), "0.1"))]
    paths = [tmp_path / f"{name}{suffix}" for name in ("one", "two")]
    for path in paths:
        style.save(draw(compute(Laplace(scale=2), marks=marks)), path)
    first, second = (path.read_bytes() for path in paths)
    assert first.startswith(HEADS[suffix])
    assert len(first) > 5000
    assert first == second


def test_another_suffix_is_refused(table: Table, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"to end in \.png, \.pdf, \.svg"):
        style.save(draw(table), tmp_path / "profile.jpg")


def test_the_table_is_the_closed_form(table: Table) -> None:
    # 1 − e^{(ε − ½)/2} up to ε = ½, and 1 − e^ε below −½
    for row in table.rows:
        exact = -math.expm1((float(row.epsilon) - 0.5) / 2) if row.epsilon < Fraction(1, 2) else 0.0
        assert isinstance(row.remove, Interval)
        # the float itself cancels near ½; the enclosure does not
        assert float(row.remove.lower) <= exact * (1 + 1e-8) + 1e-15
        assert float(row.remove.upper) >= exact * (1 - 1e-8) - 1e-15
        assert row.add is None


def test_one_curve_and_a_logarithmic_axis(table: Table) -> None:
    (axes,) = draw(table).axes
    assert axes.get_yscale() == "log"
    assert axes.get_xlabel() == "ε (nats)"
    assert axes.get_ylabel() == "δ(ε) (probability)"
    curve, *points = axes.lines
    assert np.shape(curve.get_xdata())[0] == len(table.rows)
    assert len(points) == 2  # δ(0.6) = 0 is left out
    assert {text.get_text() for text in axes.texts} == {"δ(0.1) = 0.1813", "δ(-0.2) = 0.2953"}


def test_two_directions_where_they_differ() -> None:
    noise = PoissonSubsampled(Tabulated(["1/2", "1/4", "1/4", 0], [0, "1/2", "1/4", "1/4"]), "1/2")
    table = compute(noise, adjacency="add-remove")
    assert table.rows[0].add is not None
    # the profile never falls to 0: it is shown a little beyond its largest finite loss, ln 2
    assert math.log(2) < float(table.rows[-1].epsilon) < 2 * math.log(2)
    (axes,) = draw(table).axes
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["remove", "add"]
    assert axes.get_title(loc="left").endswith(", add-remove")
    assert len({line.get_linestyle() for line in axes.lines}) == 2


@pytest.mark.slow
def test_estimates_are_drawn_as_such(tmp_path: Path) -> None:
    training = Composed(PoissonSubsampled(Gaussian(standard_deviation=1), "1/100"), 1000)
    table = estimate(training, adjacency="add-remove")
    assert table.estimated
    truth = delta(training, table.rows[40].epsilon, adjacency="add-remove")
    found = [table.rows[40].remove, table.rows[40].add]
    assert math.isclose(max(x for x in found if isinstance(x, float)), float(truth.lower))
    axes = draw(table).axes[0]
    assert axes.get_title(loc="left").endswith("(estimate)")
    style.save(draw(compute(training, adjacency="add-remove")), tmp_path / "profile.svg")
    assert (tmp_path / "profile.svg").read_bytes().startswith(HEADS[".svg"])


# The picture of what an attacker gains, on the page of a verdict


def test_the_picture_has_the_exact_probability_and_what_the_claim_allows() -> None:
    noise = dpassay.Gaussian(1)
    table = tradeoff.compute(noise, {"mu": "0.8"})
    assert table is not None
    rows = {prior: (true, claimed) for prior, true, claimed in tradeoff.guesses(table)}
    for prior in (0.125, 0.25, 0.5, 0.75):
        exact = float(dpassay.membership(noise, str(prior)))
        allowed = float(dpassay.membership(dpassay.Gaussian(1, "0.8"), str(prior)))
        # The best of some tests: below the best of all, by no more than their distance tells.
        assert exact - 2e-3 < rows[prior][0] < exact + 1e-12
        assert allowed - 2e-3 < rows[prior][1] < allowed + 1e-12
    legend = tradeoff.draw_guesses(table).axes[0].get_legend()
    assert legend is not None
    labels = [text.get_text() for text in legend.texts]
    assert labels == ["true", "claimed 0.8-GDP", "without the release"]


# The picture of ε against epochs


@pytest.mark.slow
def test_epsilon_against_epochs_is_what_each_run_has(tmp_path: Path) -> None:
    table = dpassay.training_schemes(10, 40, epochs=3, noise_multiplier=4, delta="1e-5")
    drawn = schemes.compute(table)
    assert drawn.epochs[0] == 1
    assert drawn.epochs[-1] == 10
    for _, epsilons in drawn.rows:
        lower = [epsilon.lower for epsilon in epsilons]
        assert lower == sorted(lower)
    again = dpassay.dpsgd(4, 10, 40, epochs=10, delta="1e-5", sampling="shuffle")
    assert drawn.rows[2][1][-1] == again.epsilon
    figure = table.plot(tmp_path / "epochs.svg")
    assert len(figure.axes[0].get_legend().get_texts()) == len(table.runs)
    assert "batches of 10 of 40, noise multiplier 4" in figure.axes[0].get_title(loc="left")


WORDS = ["training", "--noise-multiplier", "4", "--batch", "10", "--size", "20"]
WORDS += ["--epochs", "1", "--delta", "1e-5"]


def test_schemes_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "--plot", str(tmp_path / "epochs.png")]) == 2
    assert "Expected --schemes with --plot" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_draws(tmp_path: Path) -> None:
    file = tmp_path / "epochs.png"
    assert main([*WORDS, "--schemes", "--plot", str(file)]) == 0
    assert file.stat().st_size > 1000
