"""Every mechanism: its notation reads back, and a bad argument is named with its range."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import pytest

from accountant.errors import AdjacencyError, InvalidInputError, NotApplicableError
from accountant.geometry.ellipse import optimal_ellipse
from accountant.mechanisms import (
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
from accountant.mechanisms.additive.staircase import optimal_gamma
from accountant.mechanisms.counting import count_noise_law as law
from accountant.notation import parse, parse_description
from accountant.numbers.exact import exact
from accountant.questions import profile, utility

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


BAD = [
    ("BoundedCountNoise(epsilon=-1, eta=0.5, support=2)", "Expected epsilon='-1' ≥ 0."),
    ("BoundedCountNoise(epsilon=1, eta=1, support=2)", "Expected eta='1' in (0, 1)."),
    ("BoundedCountNoise(epsilon=1, eta=0, support=2)", "Expected eta='0' in (0, 1)."),
    ("BoundedCountNoise(epsilon=1, eta=0.5, support=0)", "Expected support=0 ≥ 1."),
    ("BridgedTree(steps=9, arities=[2, 4], epsilon=1)", "steps=9 at most 8"),
    ("BridgedTree(steps=9, arities=[9, 1], epsilon=1)", "arities[1]=1 ≥ 2"),
    ("BridgedTree(steps=9, arities=[9.5], epsilon=1)", "arities[0]"),
    ("BridgedTree(steps=9, arities=[], epsilon=1)", "at least one entry"),
    *((f"Composed(mechanism={NORMAL}, count={n})", "count") for n in (0, -3, 1.5, "'1/2'", True)),
    ("CorrelatedGaussian(dimension=0, mu=1)", "Expected dimension=0 ≥ 1"),
    ("CorrelatedGaussian(dimension=2, mu=0)", "Expected mu='0' > 0"),
    ("CorrelatedGaussian(dimension=2, mu=1, c=-1)", "Expected c='-1' > 0"),
    ("CorrelatedGaussian(dimension=2, mu=1, release_size=1)", "to be True or False"),
    ("CountEllipse(dimension=4, sparsity=5, mu=1)", "Expected sparsity=5 between 1 and dim"),
    ("CountEllipse(dimension=4, sparsity=3, mu=1)", "OptimalEllipse serves every sparsity"),
    ("DelannoyCounter(steps=9, levels=2)", " or mu"),
    ("DelannoyCounter(steps=9, levels=2, epsilon=1, mu=1)", "not both"),
    ("DelannoyCounter(steps=9, levels=10, epsilon=1)", "levels=10 at most steps=9"),
    ("DelannoyCounter(steps=9, levels=2, epsilon=0)", "epsilon='0' > 0"),
    ("DelannoyCounter(steps=9, levels=2, epsilon=1, contributions=0)", "contributions=0 ≥ 1"),
    ("DiscreteCorrelatedGaussian(dimension=2, mu=1, c='sqrt(2)')", "to be rational"),
    ("DiscreteCorrelatedGaussian(dimension=2, mu=1, c=0)", "Expected c='0' > 0"),
    ("DiscreteCorrelatedGaussian(dimension=0, mu=1, c=1)", "Expected dimension=0 ≥ 1"),
    ("DiscreteCorrelatedGaussian(dimension=1, mu=1)", "needs c"),
    ("DiscreteGaussian(parameter=-1)", "Expected parameter='-1' > 0. Give a positive number."),
    ("DiscreteGaussian(parameter='1e-3x')", "Expected parameter='1e-3x' to be a number."),
    ("DiscreteGaussian(parameter=1, sensitivity=1.5)", "sensitivity='1.5' to be an integer"),
    ("DiscreteLaplace(scale=0)", "Expected scale='0' > 0. Give a positive number."),
    ("DiscreteLaplace(scale=1, sensitivity=0)", "Expected sensitivity=0 ≥ 1."),
    ("DiscreteLaplace(scale=1, sensitivity='1/2')", "sensitivity='1/2' to be an integer"),
    ("DisjointGroupsGaussian(groups=1, dimension=1, mu=1)", "needs adjacency"),
    ("DisjointGroupsGaussian(groups=1, dimension=1, mu=1, adjacency='add')",
     "Expected adjacency='add' to be one of"),
    ("EllipticalGaussian(sensitivities=[1, 0], mu=1)", "sensitivities[1]='0' > 0"),
    ("EllipticalGaussian(sensitivities=[], mu=1)", "at least one entry"),
    ("Gaussian(standard_deviation=0)", "Expected standard_deviation='0' > 0"),
    ("Gaussian(standard_deviation='nan')", "Expected standard_deviation='nan' to be a number"),
    ("Gaussian(standard_deviation=1, l2_sensitivity='0.0')", "Expected l2_sensitivity='0.0' > 0"),
    ("Guaranteed(epsilon=-1)", "epsilon"),
    ("Guaranteed(epsilon=1, delta='1.1')", "delta"),
    ("IntegerNoise(probabilities=['1/3', '1/3'], lowest=0)", "probabilities of sum 1, not 2/3."),
    ("IntegerNoise(probabilities=['-1/3', '4/3'], lowest=0)", "probabilities[0]='-1/3' ≥ 0."),
    ("IntegerNoise(probabilities=['sqrt(1/2)', '1/2'], lowest=0)", "=sqrt(0.5) to be rational."),
    ("IntegerNoise(probabilities=[], lowest=0)", "probabilities to have at least one entry."),
    ("KaryTree(steps=10, arity=3, epsilon=0)", "Expected epsilon='0' > 0"),
    ("KaryTree(steps=0, arity=3, epsilon=1)", "Expected steps=0 ≥ 1"),
    ("KaryTree(steps=10, arity=1, epsilon=1)", "Expected arity=1 ≥ 2"),
    ("KaryTree(steps=10, arity=3, epsilon=1, subtraction=1)", "to be True or False"),
    ("KnownSizeGaussian(dimension=1, mu=1, size_mu=0)", "Expected size_mu='0' > 0"),
    ("Laplace(scale='1e-3x')", "Expected scale='1e-3x' to be a number"),
    ("Laplace(scale=1, l1_sensitivity=-2)", "Expected l1_sensitivity='-2' > 0"),
    ("LaplaceVector(scale=-1, shifts=[1])", "Expected scale='-1' > 0"),
    ("LaplaceVector(scale=1, shifts=[1, 'x'])", "shifts[1]='x' to be a number"),
    ("LaplaceVector(scale=1, shifts=[1, 'sqrt(2)'])", "ratios are rational"),
    ("LaplaceVector(scale=1, shifts=[])", "at least one entry"),
    ("MatrixVariateGaussian(row_covariance=Matrix(rows=[[1, 1], [1, 1]]), "
     "column_covariance=Isotropic(dimension=1, variance=1))",
     "Expected row_covariance to be positive definite"),
    ("OptimalEllipse(dimension=4, sparsity=5, mu=1)", "Expected sparsity=5 between 1 and dim"),
    ("OptimalEllipse(dimension=4, sparsity=0, mu=1)", "Expected sparsity=0 ≥ 1"),
    *((f"PoissonSubsampled(mechanism={NORMAL}, sampling_prob={q})",
     "sampling_prob") for q in ("-0.1", "1.5", "'x'", "'3/2'")),
    ("RandomizedResponse(epsilon=-1)", "Expected epsilon='-1' ≥ 0"),
    ("RandomizedResponse(epsilon=1, categories=1)", "Expected categories=1 ≥ 2"),
    ("RankOneGaussian(dimension=2, sigma_star=1)", "Expected dimension=2 > 2."),
    ("RankOneGaussian(dimension=-3, sigma_star=1)", "Expected dimension=-3 > 2."),
    *((f"RankOneGaussian(dimension=3, sigma_star={s})", "sigma_star") for s in (0, "'sqrt(2)'")),
    ("Staircase(epsilon=0, gamma=0.5)", "Expected epsilon='0' > 0."),
    ("Staircase(epsilon=1, gamma=1.5)", "Expected gamma='1.5' in [0, 1]"),
    ("Tabulated(p=['0.5', '0.4'], q=['0.5', '0.5'])", "Expected p of sum 1, not 0.9"),
    ("Tabulated(p=['1/2', '1/2'], q=['1/2', '1/4', '1/4'])", "same outcomes, not 2 and 3"),
    ("Tabulated(p=[2, -1], q=[0, 1])", "p[1]"),
    ("Tabulated(p=['sqrt(2)'], q=[1])", "to be rational"),
    ("Tabulated(p=[], q=[])", "at least one entry"),
    ("TruncatedGeometric(scale=1, low=2, high=2)", "Expected high=2 > low=2. Give a larger high"),
    ("TruncatedGeometric(scale=1, low=0, high=3, sensitivity=4)", "=4 ≤ high − low = 3."),
    ("TruncatedGeometric(scale=1, low=0, high=3, sensitivity=0)", "Expected sensitivity=0 ≥ 1."),
    ("TruncatedGeometric(scale=1, low=0.5, high=3)", "Expected low='0.5' to be an integer"),
    ("AboveThreshold(threshold_scale=0, query_scale=1)", "threshold_scale='0' > 0"),
    ("AboveThreshold(threshold_scale=1, query_scale=-1)", "query_scale"),
    ("AboveThreshold(threshold_scale=1, query_scale='sqrt(2)')", "to be rational"),
    ("AboveThreshold(threshold_scale=1, query_scale=1, count=0)", "count=0 ≥ 1"),
    ("AboveThreshold(threshold_scale=1, query_scale=1, variant='sparse')", "one of 'standard'"),
    ("Channel(matrix=[[1]])", "2 to 100 rows, not 1"),
    ("Channel(matrix=[[1, 0], [1]])", "matrix[1]=['1'] to have 2 entries"),
    ("Channel(matrix=[[1, 0], ['1/2', '1/3']])", "matrix[1] of sum 1, not 5/6"),
    ("Channel(matrix=[[1, 0], ['3/2', '-1/2']])", "matrix[1][1]=-0.5 ≥ 0"),
    ("Channel(matrix=[[1, 0], [0, 1]], neighbours=[[0, 2]])", "neighbours=[0, 2] to be in 0..1"),
    ("Channel(matrix=[[1, 0], [0, 1]], neighbours=[[0, 0]])", "to be two different inputs"),
    ("Channel(matrix=[[1, 0], [0, 1]], neighbours=[[1]])", "to be a pair of inputs"),
    ("Channel(matrix=[[1, 0], [0, 1]], neighbours=[])", "to be a list of pairs"),
    ("Composed([])", "at least one entry"),
    ("Composed(L2Ball(dimension=2))", "to be a mechanism, not L2Ball"),
    (f"Composed({NORMAL}, 2, 2)", "has 2 arguments, not 3"),
    (f"Composed({NORMAL}, mechanism={NORMAL})", "given twice"),
    ("CorrelatedGaussian(dimension=2)", "needs mu"),
    ("CorrelatedGaussian(dimension='3/2', mu=1)", "to be an integer"),
    ("Guaranteed(epsilon=1, delta=2)", "delta='2' in [0, 1]"),
    ("HadamardResponse(epsilon=0, categories=3)", "epsilon='0' > 0"),
    ("HadamardResponse(epsilon=1, categories=1)", "categories=1 ≥ 2"),
    ("KNorm(scale=1, dimension=2, norm='l3')", "norm='l3' to be one of 'l1', 'l2', 'linf'"),
    ("KNorm(scale=1, dimension=0)", "dimension=0 ≥ 1"),
    ("Laplace(scale=1, sensitivity=1000)", "Did you mean 'l1_sensitivity'?"),
    ("Laplace(scale='1/0')", "a denominator other than 0"),
    ("Laplace(scale=True)", "not a truth value"),
    ("Laplace(scale=[1])", "not list"),
    ("LocalHashing(epsilon=1, categories=3, buckets=1)", "buckets=1 ≥ 2"),
    ("MixtureOfGaussians(standard_deviation=1, sensitivities=[0, 1], "
     "sampling_probs=['0.5', '0.4'])", "sum 1"),
    ("MixtureOfGaussians(standard_deviation=1, sensitivities=[0, 1], sampling_probs=[1])",
     "2 entries"),
    ("OneSidedGaussian(bounds=[1, 0], mu=1)", "bounds[1]"),
    ("RandomAllocation(Gaussian(1), steps=0)", "steps=0"),
    ("RandomAllocation(Gaussian(1), steps=2, participations=3)", "participations=3"),
    ("RandomAllocation(Gaussian(1), steps=nan)", "nan"),
    ("Rappor(flip=1, categories=3)", "flip=1 < 1"),
    ("Rappor(flip='sqrt(2)/2', categories=3)", "flip"),
    ("ReportNoisyMax(noise='Cauchy', scale=1, candidates=3)", "noise='Cauchy' to be one of"),
    ("ReportNoisyMax(noise='Laplace', scale=0, candidates=3)", "scale='0' > 0"),
    ("ReportNoisyMax(noise='Laplace', scale=1, candidates=1)", "candidates=1 ≥ 2"),
    ("ReportNoisyMax(noise='Laplace', scale=1)", "needs candidates"),
    ("ReportNoisyMax(noise='Exponential', scale=1, candidates=3, returns='gap')", "gap"),
    ("ReportNoisyMax(noise='Gumbel', scale=2, candidates=3, returns='value')",
     "Laplace or Gaussian"),
    (f"SampledWithoutReplacement({NORMAL}, sample_size=3, population=2)",
     "sample_size=3 ≤ population=2"),
    (f"SampledWithoutReplacement({NORMAL}, sample_size=0, population=2)", "sample_size=0 ≥ 1"),
    ("Shuffled(RandomizedResponse(epsilon=1), users=0)", "users=0 ≥ 1"),
    ("SubsetSelection(epsilon=1, categories=3, size=3)", "size=3 in 1..2"),
    ("TruncatedLaplace(scale=1, bound='0.9')", "bound"),
    ("UnaryEncoding(epsilon=0, categories=3)", "epsilon='0' > 0"),
    ("UnaryEncoding(epsilon=1, categories=1)", "categories=1 ≥ 2"),
    # covariances and sensitivity spaces
    ("Matrix(rows=[[1, 2], [2, 1]])", "positive semidefinite"),
    ("Matrix(rows=[[0, 1], [1, 1]])", "positive semidefinite"),
    ("Matrix(rows=[[1, 2], [0, 1]])", "rows[1][0]=0 to equal rows[0][1]=2"),
    ("Matrix(rows=[[1, 2]])", "to have 1 entries"),
    ("Matrix(rows=[])", "to be a list of rows"),
    ("Matrix(rows=[['sqrt(2)']])", "to be rational"),
    ("Exchangeable(dimension=3, diagonal=1, off_diagonal=-0.6)", "not positive semidefinite"),
    ("Exchangeable(dimension=3, diagonal=1, off_diagonal=2)", "diagonal = 1"),
    ("Diagonal(variances=[1, -1])", "variances[1]=-1 ≥ 0"),
    ("Isotropic(dimension=2, variance=0)", "Expected variance='0' > 0"),
    ("Box(bounds=[0, 0])", "nothing would change"),
    ("Box(bounds=[1, -1])", "bounds[1]='-1' ≥ 0"),
    ("SparseBox(dimension=2, sparsity=3)", "sparsity=3 between 1 and dimension=2"),
    ("FiniteSet(vectors=[[1, 2], [3]])", "to have 2 entries"),
    ("FiniteSet(vectors=[[0, 0]])", "other than 0"),
    ("L2Ball(dimension=2, radius=0)", "Expected radius='0' > 0"),
    ("DisjointGroups(groups=2, space=3)", "to be a sensitivity space"),
    ("GeneralGaussian(covariance=Isotropic(dimension=2, variance=1), space=L2Ball(dimension=3))",
     "the covariance has 2, the space has 3"),
    ("GeneralGaussian(covariance=3, space=L2Ball(dimension=3))", "to be a covariance"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_input_is_named(text: str, message: str) -> None:
    """The checker refuses the same: `verify/test_checker_mechanisms.py`."""
    with pytest.raises(InvalidInputError) as caught:
        parse_description(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DiscreteGaussian(math.inf), "Expected parameter=inf to be finite."),
        (lambda: DiscreteLaplace(math.nan), "Expected scale=nan to be finite."),
        (lambda: Gaussian(math.nan), "Expected standard_deviation=nan to be finite"),
        (lambda: Gaussian(True), "not a truth value"),
        (lambda: Laplace(0.0), "Expected scale=0.0 > 0"),
        (lambda: Laplace(cast(int, None)), "not NoneType"),
        # binary fractions do not sum to 1
        (lambda: IntegerNoise([0.1, 0.2, 0.7], 0), "of sum 1, not 0.99999999999999997"),
        (lambda: Tabulated(["0.5", "0.5"], [0.1, 0.2, 0.7]), "Expected q of sum 1"),
        (lambda: KaryTree(100_001, 3, 1).variances(), "steps=100001 at most 100000"),
        (lambda: KaryTree(2001, 3, 1).covariance_matrix(), "steps=2001 at most 2000"),
        (lambda: law.count_noise_delta(exact(1), exact("1.5"), 6), "Expected eta=1.5 in (0, 1)."),
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


def test_what_is_not_defined_is_refused() -> None:
    flips = RandomizedResponse(1)
    with pytest.raises(AdjacencyError, match="exactly one record"):
        profile.delta(flips, 0, adjacency="add-remove")
    assert profile.delta(flips, 0, adjacency="replace-one").lower > 0
    with pytest.raises(NotApplicableError, match="variance is not known"):
        Guaranteed(epsilon=1).variances()
    with pytest.raises(NotApplicableError, match="no variance"):
        utility.variance(Tabulated(["0.5", "0.5"], ["0.25", "0.75"]))
