"""The table of lemmas: δ, μ and the largest loss are the accountant's; both ends of a bound."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from flint import fmpq

import dpassay
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.mechanisms import DESCRIPTIONS
from dpassay.accountant.notation import parse as parse_mechanism
from dpassay.accountant.questions.profile import delta
from dpassay.verifier.kernel import Outcome, check, quantities, questions
from dpassay.verifier.kernel.expressions import comparison, real, value
from dpassay.verifier.kernel.expressions import parse as formula
from dpassay.verifier.kernel.lemmas import LEMMAS, LINES, SPECIAL, worst
from dpassay.verifier.kernel.notation import parse, signatures
from dpassay.verifier.kernel.numbers import Budget, NotProved, Wrong, ball, precision, rational
from dpassay.verifier.kernel.statements import conditions, formulas
from tests.quick import quick, slow

EPSILONS = ("0", "1/10", "1/2", "3/2", "4")
NAMES = sorted({*LINES, *" ".join(SPECIAL.values()).split()} - {"Composed"})
BOUNDED = {
    *("AboveThreshold", "AdditiveNoise", "PartitionSelection", "ReportNoisyMax", "TopSelections")
}
"""Mechanisms of which the kernel has two ends, or none under this relation."""
SLOW = {
    *("AboveThreshold", "AdditiveNoise", "LaplaceVector", "RankOneGaussian"),
    "SampledWithoutReplacement",
}
"""About a second and more each."""


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


@pytest.mark.parametrize("name", [slow(name) if name in SLOW else name for name in NAMES])
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
            parse(f"Shuffled(RandomizedResponse(1), users={users})"), "replace-one", real, Budget()
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


# Rows of the table of lemmas: formulas of μ and of loss, and brute force over small data sets.


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


# What lies below a mechanism, and rows that are exact: against the accountant's δ.


TREE = "BridgedTree(steps=12, arities=[3, 2, 2], {}, contributions={}, released={})"
EXACT = [
    TREE.format("mu=1", 3, "'measurements'"),
    TREE.format("mu=1", 3, "'outputs'"),
    "BridgedTree(steps=12, arities=[3, 2, 2], mu=1, contributions=2, pooled=1)",
    "BinaryTree(steps=15, mu=1)",
]
BETWEEN = [
    "ReportNoisyMax('Laplace', 2, 2)",
    "ReportNoisyMax('Laplace', 1, 2, monotone=True)",
    "ReportNoisyMax('Gaussian', 2, 3)",
    "ReportNoisyMax('Laplace', 2, 5)",
    "Composed(ExponentialMechanism(1), 4)",
    "Composed([PermuteAndFlip(1), Gaussian(2)])",
    "SquareRootFactorization(steps=40, mu=1, contributions=4)",
    TREE.format("epsilon=2", 1, "'measurements'"),
]


def _ends(text: str, epsilon: str) -> tuple[float, float, float, float]:
    with precision(128):
        found = worst(parse(text), None, real, Budget())
    with precision(quantities.LATTICE_BITS if not quantities.is_single(found) else 128):
        found = worst(parse(text), None, real, Budget())
        budget = Budget()
        low = ball(quantities.lower_delta(found, rational(epsilon), budget))
        high = ball(quantities.upper_delta(found, rational(epsilon), budget))
    known = delta(parse_mechanism(text), epsilon, adjacency=None)
    ends = (low.lower(), known.upper, known.lower, high.upper())
    return tuple(float(x) for x in ends)  # type: ignore[return-value]


@pytest.mark.parametrize("text", quick(EXACT + BETWEEN, 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13))
def test_the_ends_are_on_their_sides(text: str) -> None:
    for epsilon in ("0", "1/5", "3/5"):
        low, most, least, high = _ends(text, epsilon)
        assert low <= most * (1 + 1e-12)
        assert least <= high * (1 + 1e-12)
        if text in EXACT:
            assert high - low <= 1e-7


@pytest.mark.parametrize("text", ["PermuteAndFlip(1)", "ReportNoisyMax('Gaussian', 1, 2)"])
def test_one_release_of_each_epsilon_tells_no_divergence(text: str) -> None:
    """Which pair is worst depends on ε, so a divergence of the worst curve refutes nothing."""
    found = worst(parse(text), None, real, Budget())
    with pytest.raises(NotProved):
        quantities.renyi(found, rational("3"))


def test_samples_of_selections_are_not_attained_together() -> None:
    text = "Composed(PoissonSubsampled(ExponentialMechanism(1), '1/2'), 3)"
    with precision(128):
        found = worst(parse(text), "add-remove", real, Budget())
        assert found.lower is not None


def test_a_tree_has_room_for_its_steps() -> None:
    with pytest.raises(Exception, match="room"):
        worst(parse("BridgedTree(steps=12, arities=[2, 2], mu=1)"), None, real, Budget())


# Certificates about densities of one's own, beside what the accountant encloses.


SHARE = Fraction(1, 10**6)


def outcome(kind: str, verdict: str, density: str, scale: str, **claim: str) -> Outcome:
    mechanism = f"AdditiveNoise(density='{density}', scale={scale})"
    theorem: dict[str, Any] = {"kind": kind, "verdict": verdict, "mechanism": mechanism, **claim}
    fields = {"version": 2, "theorem": theorem, "lemmas": [], "witness": {}}
    return check(fields, Budget(seconds=5, bits=128)).outcome


@pytest.mark.parametrize(
    ("density", "scale"),
    [
        ("exp(-abs(x)**3)", "2"),
        ("exp(-abs(x)**1.5)", "1"),
        ("exp(-x)/(1+exp(-x))**2", "5/4"),
        ("exp(-x**2/2)", "3"),
        slow("1/cosh(x)", "5/4"),
    ],
)
@pytest.mark.parametrize("epsilon", ["1/100", "1/2"])
def test_delta_is_proved_and_refuted_close_to_it(density: str, scale: str, epsilon: str) -> None:
    real = dpassay.AdditiveNoise(density, scale=scale).delta(epsilon)
    high, low = Fraction(real.upper) * (1 + SHARE), Fraction(real.lower) * (1 - SHARE)
    claims = {"HOLDS": (high, low), "REFUTED": (low, high)}
    for verdict, (true, false) in claims.items():
        at = {"epsilon": epsilon, "scale": scale, "density": density}
        assert outcome("approximate-dp", verdict, delta=str(true), **at) is Outcome.VALID
        assert outcome("approximate-dp", verdict, delta=str(false), **at) is Outcome.CONDITIONAL


@pytest.mark.parametrize(
    "density",
    [
        *("(1+x**2/3)**-2", "1/(1+abs(x))", "exp(-abs(x))+exp(-3*abs(x))", "exp(-(x-1)**2)"),
        *("exp(x**2)", "0*x", "abs(x)", "exp(-abs(x)) if x > 0 else 1", "exp(-y*x**2)"),
        *("exp(-abs(x-1))", "1+0*x", "exp(-pi()*x**2)", "exp(-x**2)*sum(i,0,1,1)"),
    ],
)
def test_a_density_whose_logarithm_is_not_concave_is_not_judged(density: str) -> None:
    """It may be no density, not even, or with two best events, or not be integrated here."""
    for verdict in ("HOLDS", "REFUTED"):
        claim = {"epsilon": "1/2", "delta": "99/100" if verdict == "HOLDS" else "1e-9"}
        assert outcome("approximate-dp", verdict, density, "2", **claim) is Outcome.CONDITIONAL


def test_a_largest_loss_is_only_a_bound() -> None:
    assert outcome("pure-dp", "HOLDS", "1/cosh(x)", "5/4", epsilon="4/5") is Outcome.VALID
    for epsilon in ("79/100", "2"):
        at = {"density": "1/cosh(x)", "scale": "5/4", "epsilon": epsilon}
        assert outcome("pure-dp", "REFUTED", **at) is Outcome.CONDITIONAL
    assert outcome("pure-dp", "HOLDS", "exp(-x**2)", "1", epsilon="9") is Outcome.CONDITIONAL
