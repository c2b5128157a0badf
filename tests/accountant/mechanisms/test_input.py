"""Every mechanism: its notation reads back, and a bad argument is named with its range."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any, cast

import pytest

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import AdjacencyError, InvalidInputError, NotApplicableError
from dpassay.accountant.mechanisms import DESCRIPTIONS, Composed
from dpassay.accountant.notation import parse, parse_description
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


def test_a_long_text_is_refused_at_once() -> None:
    """In time that grows with its length, not with the square."""
    began = time.process_time()
    with pytest.raises(InvalidInputError, match="characters"):
        Composed(cast(Any, "1" * 100_000 + "x"))
    assert time.process_time() - began < 5


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
