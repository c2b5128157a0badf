"""The closed forms of the kernel against the accountant, at random exact parameters."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from flint import arb, ctx

from verify.checker.kernel.claims import resolved
from verify.checker.kernel.domain import Domain, Goal
from verify.checker.kernel.expressions import ZERO, Budget, number, parse, substitute
from verify.checker.kernel.extended import evaluate
from verify.checker.kernel.ranges import Range
from verify.expression import Expression

_EQUAL = [
    "mu(Gaussian(standard_deviation=a, l2_sensitivity=b))",
    "rho(Gaussian(standard_deviation=a, l2_sensitivity=b))",
    "renyi(Gaussian(standard_deviation=a), 1 + b)",
    "delta(Gaussian(standard_deviation=a, l2_sensitivity=b), c)",
    "loss_above(Gaussian(standard_deviation=a, l2_sensitivity=b), c)",
    "variance(Gaussian(standard_deviation=a))",
    "mse(Gaussian(standard_deviation=a))",
    "max_loss(Laplace(scale=a, l1_sensitivity=b))",
    "delta(Laplace(scale=a, l1_sensitivity=b), c)",
    "variance(Laplace(scale=a))",
    "mse(Laplace(scale=a))",
    "max_loss(LaplaceVector(scale=a, shifts=[b, c, 1]))",
    "renyi(LaplaceVector(scale=a, shifts=[b, c]), 1)",
    "mu(CorrelatedGaussian(dimension=n, mu=a), adjacency='add-remove')",
    "mu(CorrelatedGaussian(dimension=n, mu=a, c=b), adjacency='replace-one')",
    "rho(CorrelatedGaussian(dimension=n, mu=a), adjacency='replace-one')",
    "delta(CorrelatedGaussian(dimension=n, mu=a, c=b), c, adjacency='add-remove')",
    "variance(CorrelatedGaussian(dimension=n, mu=a, c=b, release_size=False))",
    "variance(CorrelatedGaussian(dimension=n, mu=a, c=b), n)",
    "variance(CorrelatedGaussian(dimension=n, mu=a), n - 1)",
    "mu(CountEllipse(dimension=2*n + 1, sparsity=k, mu=a), adjacency='add-remove')",
    "variance(CountEllipse(dimension=2*n, sparsity=k, mu=a))",
    "variance(OptimalEllipse(dimension=2*n, sparsity=k, mu=a))",
    "count_noise_delta(1 + a, b/(b + 1), 1)",
    "count_noise_delta(1 + a/9, b/(b + 1), 5)",
    "tree_mse(k + 1, (k + 1)**2 - 1)",
    "tree_height(k + 1, (k + 1)**3 - 1)",
    "signed_tree_mse(2*k + 1, ((2*k + 1)**2 - 1)/2)",
    "signed_tree_mse(2*k + 1, ((2*k + 1)**3 - 1)/2)",
    "signed_tree_height(2*k + 1, ((2*k + 1)**3 - 1)/2)",
    "mu(KnownSizeGaussian(dimension=n, mu=a), adjacency='add-remove')",
    "mu(KnownSizeGaussian(dimension=n, mu=a, size_mu=b), adjacency='add-remove')",
    "mu(KnownSizeGaussian(dimension=n, mu=a, size_mu=b), adjacency='replace-one')",
    "variance(KnownSizeGaussian(dimension=n, mu=a, size_mu=b), 0)",
    "variance(KnownSizeGaussian(dimension=n, mu=a, size_mu=b), n)",
    "mu(CorrelatedGaussian(dimension=n, mu=a, release_size=False), adjacency='add-remove')",
    "mu(CorrelatedGaussian(dimension=n, mu=a, c=b, release_size=False), adjacency='add-remove')",
    "rho(DiscreteCorrelatedGaussian(dimension=n, mu=a, c=b), adjacency='add-remove')",
    "rho(DiscreteCorrelatedGaussian(dimension=n, mu=a, c=b), adjacency='replace-one')",
    "mu(EllipticalGaussian(sensitivities=[a, b, 1], mu=c))",
    "variance(EllipticalGaussian(sensitivities=[a, b, 1], mu=c), 1)",
    "mu(GeneralGaussian(covariance=Isotropic(dimension=3, variance=c), "
    "space=Box(bounds=[a, b, 1])))",
    "mu(GeneralGaussian(covariance=Diagonal(variances=[a, b, c]), space=Box(bounds=[b, 2, a])))",
    "mu(KnownSizeGaussian(dimension=n, mu=a), adjacency='replace-one')",
    "variance(KnownSizeGaussian(dimension=n, mu=a))",
    *(
        f"{question}(DisjointGroupsGaussian(groups=k, dimension=n, mu=a, {made}){asked})"
        for question, asked in (
            ("mu", ", adjacency='add-remove'"),
            ("mu", ""),
            ("variance", ", 0"),
            ("variance", ", n - 1"),
        )
        for made in (
            "adjacency='add-remove'",
            "adjacency='replace-one'",
            "adjacency='replace-one', as_printed=True",
        )
    ),
    "mu(GeneralGaussian(covariance=Isotropic(dimension=n, variance=a), "
    "space=SparseBox(dimension=n, sparsity=k, bound=b)))",
    "mu(GeneralGaussian(covariance=Isotropic(dimension=3*n, variance=a), "
    "space=DisjointGroups(groups=3, space=SparseBox(dimension=n, sparsity=k, signed=True))))",
    "delta(GeneralGaussian(covariance=Isotropic(dimension=n, variance=a), "
    "space=SparseBox(dimension=n, sparsity=k)), c)",
]
_BOUNDS = ["mu(CorrelatedGaussian(dimension=n, mu=a, release_size=False), adjacency='add-remove')"]


def _values(seed: int) -> dict[str, Fraction]:
    rng = random.Random(seed)
    n = rng.randint(1, 8)
    values = {name: Fraction(rng.randint(1, 60), rng.randint(1, 20)) for name in "abc"}
    return {**values, "n": Fraction(n), "k": Fraction(rng.randint(1, n))}


def _formula(text: str, values: dict[str, Fraction], relation: str) -> Range:
    node = parse(text)
    for name, value in values.items():
        node = substitute(node, {name: number(value)})
    told, conditions = resolved(Goal(node, relation, ZERO, Domain()))
    for condition in conditions:
        if condition.relation in ("<=", "<", ">=", ">"):
            low = evaluate(condition.left, {}, Budget())
            high = evaluate(condition.right, {}, Budget())
            assert low.low <= high.high if condition.relation[0] == "<" else high.low <= low.high
    return evaluate(told.left, {}, Budget())


@pytest.mark.parametrize("text", _EQUAL)
def test_closed_forms_equal_the_accountant(text: str) -> None:
    """Both enclosures contain the same number, to 10 digits (the accountant's own widths)."""
    for values in map(_values, range(6)):
        _assert_equal(text, values)


def _assert_equal(text: str, values: dict[str, Fraction]) -> None:
    with ctx.workprec(256):
        known = Expression(text).ball(values)
        found = _formula(text, values, "==")
        difference = found.low.union(found.high) - known
        assert difference.contains(0)
        assert abs(difference) <= arb(10) ** -10 * (1 + abs(known))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("text", _BOUNDS)
def test_bounds_are_not_below_the_accountant(text: str, seed: int) -> None:
    """A bound is at least the exact answer."""
    values = _values(seed)
    with ctx.workprec(256):
        known = Expression(text).ball(values)
        assert known <= _formula(text, values, "<=").high + arb(10) ** -30
