"""Every mechanism: its notation reads back, and a bad argument is named with its range."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.counting.count_noise import CountNoise
from dpassay.accountant.errors import AdjacencyError, InvalidInputError, NotApplicableError
from dpassay.accountant.geometry.ellipse import optimal_ellipse
from dpassay.accountant.mechanisms import (
    DESCRIPTIONS,
    AdditiveNoise,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Guaranteed,
    IntegerNoise,
    KaryTree,
    Laplace,
    RandomizedResponse,
    Tabulated,
)
from dpassay.accountant.mechanisms.additive.laplace import optimal_gamma
from dpassay.accountant.notation import parse, parse_description
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.questions import accuracy, profile
from tests.tables import rows

NORMAL = "Gaussian(standard_deviation=1)"
AS_PRINTED = [
    "Composed(mechanism=Gaussian(standard_deviation='1.1'), count=1000000000000)",
    f"Composed(mechanism=[{NORMAL}, "
    "PoissonSubsampled(mechanism=Laplace(scale=3), sampling_prob='0.1')], count=3)",
    "PoissonSubsampled(mechanism=Gaussian(standard_deviation='1.1'), sampling_prob='0.25')",
    "IntegerNoise(probabilities=['1/3', '2/3'], lowest=-1, sensitivity=2)",
    "RankOneGaussian(dimension=7921, sigma_star='402110.1', l2_sensitivity='sqrt(2)')",
]
READ_BACK = [
    "BoundedCountNoise(epsilon='2.18', eta='4/5', support=6)",
    "CorrelatedGaussian(dimension=3, mu='sqrt(2)', c=2, release_size=False)",
    "DiscreteGaussian(parameter='1/3', sensitivity=2)",
    "Guaranteed(epsilon='sqrt(2)', delta='1/3')",
    "LaplaceVector(scale='1/3', shifts=[1, '0.5', 'sqrt(4)'])",
    "Tabulated(p=['1/2', '1/4', '1/4'], q=['1/4', '1/2', '1/4'])",
    "TruncatedGeometric(scale=1, low=0, high=3)",
]


@pytest.mark.parametrize("text", AS_PRINTED + READ_BACK)
def test_the_notation_reads_back(text: str) -> None:
    mechanism = parse(text)
    assert parse(repr(mechanism)) == mechanism
    assert hash(parse(repr(mechanism))) == hash(mechanism)
    assert text in READ_BACK or repr(mechanism) == text


TWO_BY_TWO = np.array([[1, 2], [3, 4]])
BAD: list[list[str]] = rows(Path(__file__).with_name("bad.txt"))
OWN: list[list[str]] = [
    *rows(Path(__file__).with_name("own_laws.txt")),
    [f"AdditiveNoise({'+'.join(['exp(-abs(x))'] * 300)!r})", "characters"],
]


@pytest.mark.parametrize(("text", "message"), BAD + OWN)
def test_bad_input_is_named(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_description(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DiscreteGaussian(math.inf), "Expected parameter=inf to be finite."),
        (lambda: DiscreteLaplace(math.nan), "Expected scale=nan to be finite."),
        (lambda: Gaussian(math.nan), "Expected standard_deviation=nan to be finite"),
        (lambda: Gaussian(True), "not a truth value"),
        (lambda: Laplace(0.0), "Expected scale=0.0 > 0"),
        (lambda: Laplace(cast(int, None)), "not NoneType"),
        (lambda: KaryTree(cast(Any, TWO_BY_TWO), 3, 1), "steps=[[1 2] [3 4]] to be an integer"),
        (lambda: AdditiveNoise(cast(Any, ["x"])), "density=['x'] to be a text"),
        # binary fractions do not sum to 1
        (lambda: IntegerNoise([0.1, 0.2, 0.7], 0), "to sum to 1, not 0.99999999999999997"),
        (lambda: Tabulated(["0.5", "0.5"], [0.1, 0.2, 0.7]), "Expected q to sum to 1"),
        (lambda: KaryTree(100_001, 3, 1).variances(), "steps=100001 at most 100000"),
        (lambda: KaryTree(3001, 3, 1).covariance_matrix(), "steps=3001 to need at most 4000000"),
        (lambda: CountNoise.of(exact(1), exact("1.5"), 6), "Expected eta=1.5 in (0, 1)."),
        (lambda: optimal_gamma(-1, "absolute"), "Expected epsilon=-1 > 0"),
        (lambda: optimal_gamma(1, cast(Any, "varience")), "Did you mean 'variance'"),
        (lambda: optimal_ellipse(3, 4), "Expected sparsity=4 between 1 and dimension=3"),
        (lambda: optimal_ellipse(3, 0), "Expected sparsity=0 between 1 and dimension=3"),
        (lambda: optimal_ellipse(0, 1), "Expected dimension=0 ≥ 1"),
    ],
)
def test_bad_input_is_named_in_python(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        make()
    assert message in str(caught.value)


def test_a_long_text_is_refused_at_once() -> None:
    """In time that grows with its length, not with the square."""
    began = time.process_time()
    with pytest.raises(InvalidInputError, match="characters"):
        Composed(cast(Any, "1" * 100_000 + "x"))
    assert time.process_time() - began < 5
    with pytest.raises(InvalidInputError, match="not -1/3"):
        Composed(cast(Any, "-1/3"))


def test_a_relation_may_be_named_by_its_text() -> None:
    """As in every question; taken for another relation, it would halve or double a guarantee."""
    for kind in DESCRIPTIONS.values():
        if not issubclass(kind, Mechanism):
            continue
        mechanism = parse(kind.example)
        for ask, relation in itertools.product(
            (mechanism.worst_case, mechanism.exact_gaussian_mu, mechanism.exact_rho), Adjacency
        ):
            try:
                found = ask(relation)
            except (AdjacencyError, NotApplicableError) as error:
                with pytest.raises(type(error)):
                    ask(cast(Any, relation.value))
            else:
                assert found == ask(cast(Any, relation.value)), mechanism
        with pytest.raises(AdjacencyError, match="to be one of"):
            mechanism.worst_case(cast(Any, "neighbours"))


def test_a_number_of_thousands_of_digits_is_printed_and_read_back() -> None:
    noise = Laplace(Fraction(10**5000 + 1, 10**5000))
    assert parse(repr(noise)) == noise


def test_what_is_not_defined_is_refused() -> None:
    flips = RandomizedResponse(1)
    with pytest.raises(AdjacencyError, match="exactly one record"):
        profile.delta(flips, 0, adjacency="add-remove")
    assert profile.delta(flips, 0, adjacency="replace-one").lower > 0
    with pytest.raises(NotApplicableError, match="variance is not known"):
        Guaranteed(epsilon=1).variances()
    with pytest.raises(NotApplicableError, match="no variance"):
        accuracy.variance(Tabulated(["0.5", "0.5"], ["0.25", "0.75"]))
