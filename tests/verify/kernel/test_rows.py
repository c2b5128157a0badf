"""Rows of the table of lemmas: formulas of μ and of loss, and brute force over small data sets."""

from __future__ import annotations

import pytest
from flint import fmpq

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.notation import parse as parse_mechanism
from dpassay.verifier.kernel import quantities
from dpassay.verifier.kernel.expressions import comparison, real, value
from dpassay.verifier.kernel.expressions import parse as formula
from dpassay.verifier.kernel.lemmas import worst
from dpassay.verifier.kernel.notation import parse
from dpassay.verifier.kernel.numbers import Budget, NotProved, Wrong, ball, precision
from dpassay.verifier.kernel.statements import conditions, formulas

MU = [
    ("Gaussian(standard_deviation=2, l2_sensitivity=3)", None),
    *(
        (f"CorrelatedGaussian(dimension={d}, mu='1/2'{c}{size})", relation)
        for d in (1, 2, 5, 9)
        for c in ("", ", c=2")
        for size in ("", ", release_size=False")
        for relation in ("add-remove", "replace-one")
        if not (size and relation == "replace-one")
    ),
    ("KnownSizeGaussian(dimension=3, mu=2)", "add-remove"),
    ("KnownSizeGaussian(dimension=3, mu=2)", "replace-one"),
    ("KnownSizeGaussian(dimension=3, mu=2, size_mu=1)", "add-remove"),
    ("EllipticalGaussian(sensitivities=[1, 2], mu=3)", "replace-one"),
    ("OneSidedGaussian(bounds=[1, 2, 8], mu=2)", "add-remove"),
    *(
        (f"DisjointGroupsGaussian(groups={g}, dimension=4, mu=2, adjacency='{made}')", relation)
        for g in (1, 3)
        for made in ("add-remove", "replace-one")
        for relation in ("add-remove", "replace-one")
    ),
    ("OptimalGroups(groups=4, counts=9, mu=1, adjacency='replace-one')", "replace-one"),
    ("CountEllipse(dimension=10, sparsity=3, mu=2)", "add-remove"),
    ("OptimalEllipse(dimension=10, sparsity=7, mu=2)", "add-remove"),
    ("GeneralGaussian(covariance=Diagonal(variances=[1, 4]), space=Box(bounds=[1, 2]))", None),
    (
        "GeneralGaussian(covariance=Isotropic(dimension=5, variance=2),"
        " space=SparseBox(dimension=5, sparsity=3))",
        None,
    ),
]


@pytest.mark.parametrize(("text", "adjacency"), MU)
def test_the_formula_of_mu_is_the_accountants(text: str, adjacency: str | None) -> None:
    found = next(node for _, node, exact in formulas("mu", parse(text), adjacency) if exact)
    with precision(256):
        ours = ball(value(found, Budget()))
        theirs = parse_mechanism(text).worst_case(Adjacency.read(adjacency))
        for pair in (*theirs.remove, *theirs.add):
            assert ours.overlaps(pair.mu()), (ours, pair)  # type: ignore[attr-defined]
        assert ours.rad() < 1e-60


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Laplace(scale=h/e, l1_sensitivity=h)", "h/(h/e)"),
        ("LaplaceVector(scale=s, shifts=[a, -b])", "(abs(a) + abs(-b))/s"),
        ("KaryTree(steps=k, arity=3, epsilon=e)", "e"),
        ("ExponentialMechanism(epsilon=e)", "e"),
    ],
)
def test_the_largest_loss_over_ranges(text: str, wanted: str) -> None:
    assert formula(wanted) in [node for _, node, _ in formulas("loss", parse(text), None)]


def test_conditions_over_ranges() -> None:
    space = "SparseBox(dimension=d, sparsity=k)"
    text = f"GeneralGaussian(covariance=Isotropic(dimension=d, variance=v), space={space})"
    assert set(conditions(parse(text), None)) == {comparison("d == d"), comparison("k <= d")}
    assert comparison("2*k <= d") in conditions(
        parse("CountEllipse(dimension=d, sparsity=k, mu=1)"), "add-remove"
    )


@pytest.mark.parametrize(
    "text",
    [
        "ReportNoisyMax(noise='Laplace', scale=1, candidates=2, monotone=3)",
        "KaryTree(steps=9, arity=3, epsilon=1, subtraction=2)",
        "EllipticalGaussian(sensitivities=[1, -2], mu=1)",
    ],
)
def test_flags_and_lists_are_what_they_should_be(text: str) -> None:
    with pytest.raises((Wrong, NotProved)):
        worst(parse(text), None, real, Budget())


@pytest.mark.parametrize(
    ("text", "adjacency"),
    [
        ("AboveThreshold(threshold_scale=2, query_scale=4)", None),
        ("ReportNoisyMax(noise='Gaussian', scale=2, candidates=10)", None),
        ("RankOneGaussian(dimension=5, sigma_star=400)", None),
        ("RandomAllocation(mechanism=Gaussian(standard_deviation=1), steps=10)", "add-remove"),
    ],
)
def test_both_ends_of_a_bound(text: str, adjacency: str | None) -> None:
    """What is below a mechanism is not above what is above it, for every ε."""
    with precision(128):
        found = worst(parse(text), adjacency, real, Budget())
        for epsilon in (fmpq(0), fmpq(1, 100), fmpq(1, 2), fmpq(2), fmpq(8)):
            low = quantities.lower_delta(found, epsilon, Budget())
            high = quantities.upper_delta(found, epsilon, Budget())
            assert ball(low).lower() <= ball(high).upper()
            assert ball(low).lower() > 0 or epsilon > fmpq(1, 4)
