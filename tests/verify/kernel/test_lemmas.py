"""The table of lemmas: of each mechanism's example the same δ as the accountant."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from dpassay.accountant.mechanisms import DESCRIPTIONS
from dpassay.accountant.notation import parse as parse_mechanism
from dpassay.accountant.questions.profile import delta
from dpassay.verifier.kernel import quantities, questions
from dpassay.verifier.kernel.expressions import real
from dpassay.verifier.kernel.lemmas import LEMMAS, LINES, SPECIAL, worst
from dpassay.verifier.kernel.notation import parse, signatures
from dpassay.verifier.kernel.numbers import Budget, NotProved, Wrong, ball, precision, rational
from tests.quick import quick

EPSILONS = ("0", "1/10", "1/2", "3/2", "4")
NAMES = sorted({*LINES, *" ".join(SPECIAL.values()).split()} - {"Composed"})
BOUNDED = {
    *("AboveThreshold", "AdditiveNoise", "PartitionSelection", "ReportNoisyMax", "TopSelections")
}
"""Mechanisms of which the kernel has two ends, or none under this relation."""


def _both(text: str, mechanism: Any, adjacency: str | None, epsilon: str) -> None:
    """Compare an enclosure of δ with the accountant's, within what a lattice loses."""
    with precision(quantities.LATTICE_BITS):
        found = worst(parse(text), adjacency, real, Budget(seconds=60))
        single = quantities.is_single(found)
        ours = questions.delta(found, rational(epsilon), Budget(seconds=60))
        known = delta(mechanism, epsilon, adjacency=adjacency)
        low, high = ball(rational(str(known.lower))), ball(rational(str(known.upper)))
        assert not ours.upper() < low, (text, ours.str(), known)
        assert not ours.lower() > high, (text, ours.str(), known)
        if found.lower is None:
            width = 1e-9 if single else 2e-3
            assert ours.rad() <= width * ours + 1e-25, (text, ours.str())


def example(name: str) -> str:
    return str(DESCRIPTIONS[name].example)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name",
    quick(
        NAMES,
        0,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        10,
        11,
        12,
        13,
        14,
        15,
        16,
        17,
        18,
        19,
        20,
        21,
        22,
        23,
        24,
        25,
        27,
        28,
        29,
        30,
        31,
        32,
        33,
        34,
        35,
        36,
        37,
        38,
        39,
        41,
        42,
        43,
        44,
        45,
        46,
        47,
        48,
        49,
        50,
        51,
        52,
        53,
    ),
)
def test_every_mechanism_has_the_accountants_delta(name: str) -> None:
    mechanism = parse_mechanism(example(name))
    compared = 0
    for adjacency in (None, "add-remove", "replace-one"):
        for epsilon in ("1/2",) if name == "DiscreteCorrelatedGaussian" else EPSILONS:
            try:
                known = delta(mechanism, epsilon, adjacency=adjacency)
            except Exception:  # noqa: BLE001  (the accountant knows nothing under this relation)
                continue
            del known
            try:
                _both(example(name), mechanism, adjacency, epsilon)
            except NotProved:
                continue
            compared += 1
    assert compared or name in BOUNDED


def test_every_row_is_a_name_a_sentence_and_a_source() -> None:
    assert all(row.statement and row.source for row in LEMMAS.values())
    assert len(LEMMAS) >= 30


@pytest.mark.parametrize("name", sorted(signatures()))
def test_a_mechanism_without_a_row_is_not_proved(name: str) -> None:
    """Whatever the table does not know is CONDITIONAL, never wrong."""
    example = getattr(DESCRIPTIONS[name], "example", None)
    if example is None:
        return
    with precision(128), pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpassay.verifier.kernel.lemmas.TABLE", "")
        try:
            found = worst(parse(str(example)), "replace-one", real, Budget())
        except NotProved:
            return
        assert found.rows <= {*LEMMAS}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Gaussian(standard_deviation=0)", "standard_deviation"),
        ("Gaussian(standard_deviation=-1)", "standard_deviation"),
        ("DiscreteLaplace(scale=1, sensitivity=1/2)", "sensitivity"),
        ("Tabulated(p=[1/2, 1/3], q=[1/2, 1/2])", "p"),
        ("Tabulated(p=[3/2, -1/2], q=[1/2, 1/2])", "p"),
        ("Guaranteed(epsilon=1, delta=2)", "delta"),
        ("Composed(mechanism=Gaussian(1), count=3/2)", "count"),
        ("PoissonSubsampled(mechanism=Gaussian(1), sampling_prob=2)", "sampling_prob"),
        ("GeneralGaussian(covariance=Matrix(rows=[[1, 2], [3, 4]]), space=Box(bounds=[1, 1]))", ""),
    ],
)
def test_arguments_out_of_their_domain_are_wrong(text: str, reason: str) -> None:
    with precision(128), pytest.raises(Wrong) as error:
        worst(parse(text), "add-remove", real, Budget())
    assert error.value.field == "theorem.mechanism"
    assert reason in error.value.reason
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "epsilon", "least"),
    [
        # a record that counts −1 has δ = 1/4, one that counts +1 has 1/10 (e = 1)
        ("PoissonSubsampled(IntegerNoise(['1/2','3/10','1/5'], lowest=0), '1/2')", "1", "0.25"),
        # one release up and one down
        ("Composed(IntegerNoise(['1/25','17/25','7/25'], lowest=0), 2)", "2", "0.68"),
    ],
)
def test_a_record_may_count_up_or_down(text: str, epsilon: str, least: str) -> None:
    with precision(quantities.LATTICE_BITS):
        found = worst(parse(text), "add-remove", real, Budget())
        ours = questions.delta(found, rational(epsilon), Budget())
        assert ours.lower() >= rational(least)


GROUPS = "OptimalGroups(groups=4, counts=9, mu=1, adjacency='{}')"


@pytest.mark.parametrize(
    "other", [GROUPS.format("replace-one"), "RandomizedResponse(1)", f"Composed({GROUPS}, 2)"]
)
def test_releases_that_are_made_for_different_relations_have_no_pair(other: str) -> None:
    first = GROUPS.format("add-remove")
    text = f"Composed([{first}, {other.format('replace-one')}])"
    with precision(128), pytest.raises(NotProved, match="different relations"):
        worst(parse(text), None, real, Budget())


@pytest.mark.parametrize("epsilon", ["-1/10", "0", "1/5", "1/2", "9/10"])
@pytest.mark.parametrize("users", [2, 3, 6])
def test_shuffled_reports_of_a_bit_are_below_the_bound_by_clones(users: int, epsilon: str) -> None:
    with precision(128):
        found = worst(
            parse(f"Shuffled(RandomizedResponse(1), users={users})"),
            "replace-one",
            real,
            Budget(),
        )
        bound = quantities.upper_delta(found, rational(epsilon), Budget())
    e, x = math.e, math.exp(float(Fraction(epsilon)))
    keep = e / (1 + e)
    for ones in range(users):  # the others' records
        others = [1.0]
        for i in range(users - 1):
            one = keep if i < ones else 1 - keep
            others = [
                (others[j] if j < len(others) else 0) * (1 - one)
                + (others[j - 1] * one if j else 0)
                for j in range(len(others) + 1)
            ]
        laws = []
        for one in (keep, 1 - keep):
            padded = [0.0, *others, 0.0]
            laws.append(
                [padded[j + 1] * (1 - one) + padded[j] * one for j in range(len(padded) - 1)]
            )
        for p, q in (laws, laws[::-1]):
            truth = sum(max(a - x * b, 0) for a, b in zip(p, q, strict=True))
            assert float(ball(bound).upper()) >= truth * (1 - 1e-12)


@pytest.mark.parametrize(("dimension", "sparsity"), [(1, 1), (3, 2), (4, 2), (5, 4), (10, 7)])
def test_the_optimal_ellipse_has_the_accountants_variance(dimension: int, sparsity: int) -> None:
    text = f"OptimalEllipse(dimension={dimension}, sparsity={sparsity}, mu='1/3')"
    with precision(128):
        ours, rows = questions.quantity("variance", parse(text), None, [], Budget())
        assert rows == {"ellipse"}
        known = parse_mechanism(text).variances()[0]
        assert abs(float(ball(ours)) - float(known)) <= 1e-12 * float(known)
