"""Engines by name, and values beside tails: each encloses what the others enclose."""

from __future__ import annotations

from fractions import Fraction

import pytest

import dpassay
from dpassay.accountant.composition.choose import METHODS, RENAMED, smooth
from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    MixtureOfGaussians,
    PoissonSubsampled,
)
from dpassay.accountant.notation import parse
from dpassay.accountant.questions.profile import applicable, pairs_of
from dpassay.accountant.questions.tradeoff import beta, power
from tests.near import narrow
from tests.quick import slow

BOTH = "add-remove"
STEP = PoissonSubsampled(Gaussian(standard_deviation=1), "1/4")
CASES: list[tuple[Mechanism, list[str]]] = [
    (Composed(DiscreteLaplace(scale=3), 9), ["auto", "exact", "grid"]),
    (Composed([Laplace(scale=2), Gaussian(standard_deviation=3)], 2), ["auto", "grid"]),
    (Composed(STEP, 4), ["auto", "fourier", "grid"]),
    (Composed(Gaussian(standard_deviation=3), 4), ["auto", "exact", "fourier", "grid"]),
    (STEP, ["auto", "exact", "fourier", "grid"]),
    (Composed(MixtureOfGaussians(1, [0, 1, 2], ["1/2", "1/4", "1/4"]), 2), ["auto", "grid"]),
]


@pytest.mark.parametrize(("mechanism", "expected"), CASES)
def test_which_engines_apply_and_that_they_agree(mechanism: Mechanism, expected: list[str]) -> None:
    found_engines = applicable(mechanism, Adjacency.ADD_REMOVE)
    assert set(expected) <= set(found_engines)
    width = Fraction(1, 20)
    found = [
        dpassay.delta(mechanism, "0.7", adjacency=BOTH, method=method, relative_width=width)
        for method in found_engines
    ]
    assert all(one.overlaps(other) for one in found for other in found)
    for method in set(METHODS) - set(found_engines):
        with pytest.raises(NotApplicableError) as caught:
            dpassay.epsilon(mechanism, "1e-3", adjacency=BOTH, method=method)
        assert str(caught.value).endswith(
            f"Ask with method={' or '.join(repr(name) for name in found_engines)}."
        )


def test_every_question_takes_a_method() -> None:
    whole, width = Composed(STEP, 8), Fraction(1, 20)
    for ask, at in ((dpassay.delta, "0.7"), (dpassay.log_delta, "0.7"), (dpassay.epsilon, "1e-3")):
        own, grid = (
            ask(whole, at, adjacency=BOTH, method=method, relative_width=width)
            for method in ("fourier", "grid")
        )
        assert own.overlaps(grid)
    gaussian = Composed(Gaussian(standard_deviation=3), 4)
    for question in (
        dpassay.delta_complement,
        dpassay.beta,
        dpassay.power,
        dpassay.loss_cdf,
        dpassay.loss_survival,
    ):
        closed, contour = (
            question(gaussian, "0.1", method=method, relative_width=Fraction(1, 10**9))
            for method in ("exact", "fourier")
        )
        assert closed.overlaps(contour)
        with pytest.raises(NotApplicableError, match="Ask with method='auto'"):
            question(whole, "0.1", adjacency=BOTH, method="exact")
    total = dpassay.total_variation(whole, adjacency=BOTH, method="grid", relative_width=width)
    assert total.overlaps(dpassay.delta(whole, 0, adjacency=BOTH, relative_width=width))


def test_one_direction_of_a_named_engine() -> None:
    pairs = pairs_of(Composed(STEP, 8), "fourier", Adjacency.ADD_REMOVE)
    assert None not in map(smooth, pairs)
    for pair, direction in zip(pairs, Direction, strict=True):
        assert pairs_of(Composed(STEP, 8), "fourier", Adjacency.ADD_REMOVE, direction) == (pair,)


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_former_names_are_answered_with_the_new_ones(old: str, new: str) -> None:
    with pytest.raises(InvalidInputError, match=f"method='{old}' is now method='{new}'"):
        dpassay.delta(Composed(STEP, 8), 1, adjacency=BOTH, method=old)


COARSE, MIDDLE, FINE = (Fraction(1, 10**digits) for digits in (6, 10, 12))


def sampled(sigma: str, q: str, count: int) -> Composed:
    return Composed(PoissonSubsampled(Gaussian(standard_deviation=sigma), q), count)


LEVELS: list[tuple[Mechanism, str]] = [
    slow(sampled("0.8", "0.01", 1000), "1e-3"),
    (sampled("2", "0.1", 300), "1/2"),
]


@pytest.mark.parametrize(("mechanism", "level"), LEVELS)
def test_values_and_tails_agree(mechanism: Mechanism, level: str) -> None:
    for ask in (beta, power):
        fine = ask(mechanism, level, adjacency=BOTH, relative_width=FINE)
        for width in (COARSE, MIDDLE):
            found = ask(mechanism, level, adjacency=BOTH, relative_width=width)
            assert found.overlaps(fine)
            assert narrow(found, width)


TABLE = "Tabulated(p=['1/2', '1/3', '1/6'], q=['1/4', '1/4', '1/2'])"


@pytest.mark.parametrize(
    ("text", "level", "width"),
    [
        slow(
            "Composed(PoissonSubsampled(Gaussian(standard_deviation='0.6'), '0.05'), 3)",
            "1e-3",
            6,
        ),
        ("Composed(PoissonSubsampled(Laplace(scale=1), '0.01'), 10)", "0.01", 6),
        ("Composed(PoissonSubsampled(Laplace(scale=3), '0.1'), 2)", "3/4", 3),
        ("Composed(TruncatedLaplace(scale=2, bound=10), 2)", "0.1", 6),
        ("Composed(Logistic(scale=2), 2)", "0.1", 7),
        (TABLE, "0.1", 3),
        (f"Composed({TABLE}, 2)", "0.1", 3),
    ],
)
def test_beta_where_the_best_test_is_next_to_an_end_or_an_atom(
    text: str, level: str, width: int
) -> None:
    """By values on a grid, which agree with its tails at another width, or with exact sums."""
    mechanism, asked = parse(text), BOTH if "Poisson" in text else None
    found = beta(mechanism, level, adjacency=asked, method="grid", relative_width=f"1e-{width}")
    assert narrow(found, Fraction(1, 10**width))
    assert found.overlaps(beta(mechanism, level, adjacency=asked, relative_width="1/50"))


def test_laplace_releases_of_unrelated_scales() -> None:
    """Their sums are too long to be exact; a grid knows three digits of them all."""
    scales = [f"{3 + 0.7391 * i + 0.013 * i * i:.6g}" for i in range(24)]
    mechanism = Composed([Laplace(scale=scale) for scale in scales])
    width = Fraction(1, 1000)
    found = [
        dpassay.delta(mechanism, "1/2", relative_width=width),
        dpassay.epsilon(mechanism, "1e-5", relative_width=width),
        beta(mechanism, "0.1", relative_width=width),
        dpassay.total_variation(mechanism, relative_width=width),
    ]
    assert all(narrow(each, width) for each in found)


@pytest.mark.parametrize(
    ("mechanism", "adjacency"),
    [
        ("LaplaceThreshold(1, 12)", "add-remove"),
        ("GaussianThreshold(1, 12)", "add-remove"),
        slow(
            "Channel([['1/2', '1/4', '1/4'], ['1/4', '1/2', '1/4'], ['1/8', '1/8', '3/4']])",
            None,
        ),
        slow(
            "SampledWithoutReplacement(Channel([['1/2','1/2'], ['1/4','3/4'], [0,1]]), 1, 4)",
            None,
        ),
    ],
)
def test_an_engine_is_asked_about_every_worst_pair(mechanism: str, adjacency: str | None) -> None:
    made = parse(mechanism)
    for method in applicable(made, Adjacency(adjacency) if adjacency else None):
        found, known = (
            dpassay.delta(made, ["0.2", 1], adjacency=adjacency, method=name)
            for name in (method, "auto")
        )
        assert all(one.overlaps(other) for one, other in zip(found, known, strict=True))
