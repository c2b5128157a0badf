"""Verdicts: claims that are just met, far from the middle, exact, or without a number."""

from __future__ import annotations

import re
from fractions import Fraction

import mpmath
import pytest
from flint import ctx

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import Laplace
from dpassay.accountant.questions import profile
from dpassay.verifier import document, kernel
from dpassay.verifier.ask import verify
from dpassay.verifier.claims import KINDS, ApproximateDP, Claim, Domain, Relation
from dpassay.verifier.expression import Expression
from dpassay.verifier.prover import decided as certify
from dpassay.verifier.verdict import Rigour, Verdict
from tests.near import narrow
from tests.quick import slow


@pytest.mark.parametrize(
    ("kind", "mechanism", "fields"),
    [
        ("pure-dp", "Laplace(scale=10)", {"epsilon": "0.1"}),
        ("pure-dp", "DiscreteLaplace(scale=3, sensitivity=2)", {"epsilon": "2/3"}),
        ("gaussian-dp", "Gaussian(standard_deviation=10)", {"mu": "0.1"}),
        ("gaussian-dp", "Gaussian(standard_deviation='sqrt(2)')", {"mu": "sqrt(1/2)"}),
        ("gaussian-dp", "EllipticalGaussian(sensitivities=[1, 2], mu='0.3')", {"mu": "0.3"}),
        ("zcdp", "Gaussian(standard_deviation=10)", {"rho": "0.005"}),
        ("renyi-dp", "Gaussian(standard_deviation=10)", {"order": "3", "epsilon": "0.015"}),
    ],
)
def test_a_claim_that_is_just_met_holds(kind: str, mechanism: str, fields: dict[str, str]) -> None:
    assert verify(KINDS[kind](id="tie", mechanism=mechanism, **fields)).verdict is Verdict.HOLDS
    *others, (name, value) = fields.items()
    less = {**dict(others), name: f"({value}) * (1 - 1e-12)"}
    found = verify(KINDS[kind](id="less", mechanism=mechanism, **less))
    assert found.verdict is Verdict.REFUTED


ROWS = "Channel([[1/2, 1/2, 0, 0], [49/100, 49/100, 1/100, 1/100], [12/25, 51/100, 1/100, 0]])"
FLIP = "Channel([[3/4, 1/4], [1/4, 3/4]])"
TABLE = "Tabulated(['1/2', '1/2'], ['1/3', '2/3'])"


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "delta"),
    [
        slow(f"Composed({ROWS}, count=2)", "0", "0.0396"),
        (f"Composed({FLIP}, 2)", "2*log(3)", "0"),
        (f"Composed({FLIP}, 2)", "log(9)", "0"),
        (f"Composed({FLIP}, 300)", "300*log(3)", "0"),
        (f"Composed({FLIP}, 2)", "log(2)", "7/16"),
        (TABLE, "0", "1/6"),
        (f"Composed({TABLE}, 2)", "0", "7/36"),
        (f"Composed({TABLE}, 2)", "1/10", "4/9 - exp(1/10)/4"),
        (f"Composed([{TABLE}, Composed({FLIP}, 2)])", "log(3)", "3/8"),
    ],
)
def test_a_few_releases_of_tables_may_meet_a_claim_exactly(
    mechanism: str, epsilon: str, delta: str
) -> None:
    less, truth = f"({delta}) * (1 - 1e-9)", Verdict.HOLDS if delta == "0" else Verdict.REFUTED
    for claimed, verdict in ((delta, Verdict.HOLDS), (less, truth)):
        claim = ApproximateDP(id="tie", mechanism=mechanism, epsilon=epsilon, delta=claimed)
        assert verify(claim).verdict is verdict


@pytest.mark.parametrize(("relation", "mu"), [("add-remove", "0.1"), ("replace-one", "0.2")])
def test_size_released_beside_the_counts(relation: str, mu: str) -> None:
    mechanism = "KnownSizeGaussian(dimension=3, mu='0.1')"
    claim = KINDS["gaussian-dp"](id="tie", mechanism=mechanism, mu=mu, adjacency=relation)
    assert verify(claim).verdict is Verdict.HOLDS


def test_a_divergence_below_rho_times_its_order_is_not_refuted_by_it() -> None:
    # ρ = 8, but at orders that are no integer the divergence of integer noise is below ρ·order
    mechanism = "DiscreteCorrelatedGaussian(dimension=2, mu=4, c=1)"
    fields = {"mechanism": mechanism, "adjacency": "add-remove", "order": "3/2"}
    holds = verify(KINDS["renyi-dp"](id="below", epsilon="11.7", **fields))
    assert holds.verdict is Verdict.HOLDS
    assert Fraction(holds.true["epsilon"]["upper"]) < Fraction("11.41")
    refuted = verify(KINDS["renyi-dp"](id="above", epsilon="11.4", **fields))
    assert refuted.verdict is Verdict.REFUTED


@pytest.mark.parametrize("nines", [20, 100, 2000])
def test_epsilon_at_a_delta_next_to_one(nines: int) -> None:
    """Far below 0 the Laplace profile is 1 − e^ε: its inverse is the logarithm of 1 − δ."""
    found = profile.signed_epsilon(Laplace(scale=2), "0." + "9" * nines)
    with mpmath.workdps(60):
        true = -nines * mpmath.log(10)
        assert mpmath.mpf(str(found.lower)) <= true <= mpmath.mpf(str(found.upper))
    assert narrow(found, Fraction(1, 10**30))


def test_the_worst_case_is_the_infinite_one() -> None:
    """An infinite excess is worse than any factor."""
    claim = document.read_text(
        'schema_version = 1\n[[claims]]\nid = "c"\nkind = "renyi-dp"\n'
        "mechanism = \"Tabulated(p=['1/2', '1/2'], q=[q, 1 - q])\"\n"
        'order = "2"\nepsilon = "0.001"\nwhere = {q = ["1/100", 0, "1/10"]}'
    ).claims[0]
    finding = verify(claim)
    assert finding.verdict is Verdict.REFUTED
    assert finding.witness["case"] == {"q": "0"}


def test_a_delta_beyond_the_usual_decimals_is_described() -> None:
    """δ(1) of this noise is about 10^(−1.9 million): the factor leaves the default context."""
    claim = ApproximateDP(
        id="tiny",
        source="test",
        statement="",
        mechanism="Gaussian(standard_deviation=3000)",
        epsilon="1",
        delta="0.00001",
    )
    finding = verify(claim)
    assert finding.verdict is Verdict.HOLDS
    assert re.search(r"by a factor of \d\.\d+e19\d{5}", finding.reason)


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("1/3 + 1/3 == 2/3", Verdict.HOLDS),
        ("1/3 <= 1/3", Verdict.HOLDS),
        ("1/3 < 1/3", Verdict.REFUTED),
        ("sqrt(1/3) != sqrt(3)/3", Verdict.REFUTED),
        ("15/sqrt(27) == 5*sqrt(3)/3", Verdict.HOLDS),
        ("sqrt(2) >= sqrt(3)", Verdict.REFUTED),
        ("-sqrt(2) > -sqrt(3)", Verdict.HOLDS),
        ("exp(1)**2 == exp(2)", Verdict.HOLDS),
        ("exp(1)**2 < exp(2)", Verdict.REFUTED),
        ("sqrt(2)*sqrt(3) == sqrt(6)", Verdict.HOLDS),
        ("sqrt(3 + 2*sqrt(2)) == 1 + sqrt(2)", Verdict.HOLDS),
        ("sqrt(3 + 2*sqrt(2)) != 1 + sqrt(2)", Verdict.REFUTED),
        ("mu(Gaussian(standard_deviation=3)) == 1/3", Verdict.HOLDS),
        ("gamma(1/3)*gamma(2/3) == 2*pi()/sqrt(3)", Verdict.UNDECIDED),  # true
    ],
)
def test_exact_sides_are_compared_exactly(claim: str, verdict: Verdict) -> None:
    assert verify(Relation(id="exact", claim=claim)).verdict is verdict


def test_a_domain_without_ends_is_only_supported() -> None:
    boxed = Domain(statement="x in [0, 1]", grid=["0", "1"], low="0", high="1")
    listed = Domain(statement="n ≥ 1", grid=[1, 2])
    claim = "x/(x + n) < 1"
    proved = verify(
        Relation(id="a", claim="x < 2", proof={"method": "sweep"}, for_all={"x": boxed})
    )
    assert proved.verdict is Verdict.HOLDS
    both = {"x": boxed, "n": listed}
    found = verify(Relation(id="b", claim=claim, proof={"method": "sweep"}, for_all=both))
    assert found.verdict is Verdict.SUPPORTED


def test_a_sum_in_one_name_does_not_evaluate_the_others() -> None:
    names = {"first": "sum(i, 1, 3, i)", "second": "first + product(i, 1, 3, i)"}
    assert verify(Relation(id="c", claim="second == 12", let=names)).verdict is Verdict.HOLDS


@pytest.mark.parametrize("precision", [20, 53, 128, 512])
def test_rounding_does_not_depend_on_the_precision(precision: int) -> None:
    with ctx.workprec(precision):
        up = Expression("round_up(log(2)/2)").exact({})
        down = Expression("round_down(log(2)/2)").exact({})
    assert str(up) == "0.3465735902799726547086160607290882840378"
    assert str(down) == "0.3465735902799726547086160607290882840377"


STEP = "PoissonSubsampled(Gaussian(standard_deviation='1.1'), sampling_prob='0.01')"


@pytest.mark.parametrize(
    ("mechanism", "rigour"),
    [
        ("Gaussian(standard_deviation=5)", Rigour.PROVED),
        ("Composed(Gaussian(standard_deviation=50), count=100)", Rigour.PROVED),
        (STEP, Rigour.PROVED),
        ("Composed(DiscreteLaplace(scale=30), count=10)", Rigour.PROVED),
        (f"Composed({STEP}, count=100)", Rigour.BOUNDED),
        slow("Composed(Laplace(scale=1000), count=1000000)", Rigour.BOUNDED),
        (
            "Composed(PoissonSubsampled(Laplace(scale=1), sampling_prob='0.01'), count=20)",
            Rigour.BOUNDED,
        ),
    ],
)
def test_floats_with_a_ledger_are_no_balls(mechanism: str, rigour: Rigour) -> None:
    claim = ApproximateDP(
        id="x", mechanism=mechanism, epsilon="3", delta="0.01", adjacency="add-remove"
    )
    found = verify(claim)
    assert found.verdict is Verdict.HOLDS
    assert found.rigour is rigour


PROFILE = 'kind = "profile"\nmechanism = "Gaussian(standard_deviation=1)"\n'
TRADEOFF = 'kind = "tradeoff"\nmechanism = "Gaussian(standard_deviation=1)"\n'
RELATION = 'kind = "relation"\n'
PRINTED = 'kind = "printed-number"\nexpression = "1/8"\n'


def claim(text: str) -> Claim:
    return document.read_text(f'schema_version = 1\n[[claims]]\nid = "c"\n{text}').claims[0]


@pytest.mark.parametrize(
    "text",
    [
        PROFILE + 'bound = "0.0001 + epsilon"\nlow = 0\nhigh = 1',  # δ(0) = 0.38
        PROFILE + 'bound = "0.0001"\nlow = 1\nhigh = 1',
        TRADEOFF + 'bound = "alpha"\nlow = 0\nhigh = "1/2"',
        TRADEOFF + 'bound = "0.99"\nlow = "1/2"\nhigh = "1/2"',
        # the loss of discrete Gaussian noise has no largest value; its μ²/2 is that of N(1/2, 1)
        'kind = "gaussian-dp"\nmechanism = "DiscreteGaussian(parameter=4)"\nmu = "1/2"',
        RELATION + 'claim = "x >= 1"\nwhere = {x = ["1/3", 2]}\nassume = ["x >= 1/3"]',
    ],
)
def test_a_false_claim_is_refuted(text: str) -> None:
    finding, certificate = certify(claim(text))
    assert finding.verdict is Verdict.REFUTED
    assert certificate is not None
    assert kernel.check(certificate).problems == ()


@pytest.mark.parametrize(
    "text",
    [
        PROFILE + 'bound = "0.4 - epsilon*(epsilon - 1)/10"\nlow = 0\nhigh = "1/2"',
        PROFILE + 'bound = "delta(Gaussian(standard_deviation=1/2), epsilon)"\nlow = 0\nhigh = 2',
        PROFILE + 'bound = "0.13"\nlow = 1\nhigh = 1',
        PRINTED + 'printed = "0.12"',  # halfway, decided exactly
        PRINTED + 'printed = "0.13"',
    ],
)
def test_a_true_claim_holds(text: str) -> None:
    finding, certificate = certify(claim(text))
    assert finding.verdict is Verdict.HOLDS
    assert certificate is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PROFILE + 'bound = "1"\nlow = 2\nhigh = 1', "low=2 ≤ high=1"),
        (PROFILE + 'bound = "1"\nlow = 0\nhigh = "2**(1/2)"', "high=.*to be rational"),
        (PROFILE + 'bound = "2 - delta(Gaussian(standard_deviation=1), epsilon)"\n'
         "low = 0\nhigh = 2", "bound that does not increase"),
        (RELATION + 'claim = "n != 2"\nwhere = {n = [1, 2]}\nassume = ["exp(log(n)) <= 2"]',
         "is not decided in the case"),
        (RELATION + 'claim = "x < 1"\n[claims.for_all.x]\nstatement = "0 ≤ x ≤ 1/2"\n'
         'grid = [2]\nlow = "0"\nhigh = "1/2"', "for_all.x.grid within x in"),
        (PRINTED + 'printed = "NaN"', "printed: expected a decimal such as"),
        (PRINTED + 'printed = "1/8"', "printed: expected a decimal such as"),
        (PRINTED + 'printed = "1e999999999"', "an exponent up to 10000"),
        ("a = " + "[" * 5000, "nested too deeply"),
    ],
)  # fmt: skip
def test_what_cannot_be_decided_is_an_error(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        certify(claim(text))


@pytest.mark.parametrize("left", ["log(0)", "log(-1)", "gamma(-1)"])
def test_an_undefined_side_is_undecided(left: str) -> None:
    finding, certificate = certify(claim(RELATION + f'claim = "{left} < 1"'))
    assert finding.verdict is Verdict.UNDECIDED
    assert certificate is None


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "delta"),
    [
        ("BridgedTree(steps=12, arities=[3, 2, 2], epsilon=2, contributions=3)", "1", "0.2"),
        ("ReportNoisyMax('Laplace', 2, 5)", "1/2", "0.12"),
        slow("Shuffled(Guaranteed(1), 10000)", "0.045", "1e-6"),
    ],
)
def test_between_two_ends_nothing_is_decided(mechanism: str, epsilon: str, delta: str) -> None:
    claim = ApproximateDP(id="x", mechanism=mechanism, epsilon=epsilon, delta=delta)
    assert verify(claim).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize("text", [" 12 + 1", "\t12 + 1\n", "12 + 1  "])
def test_blanks_around_an_expression_are_no_digits(text: str) -> None:
    assert Expression(text).value({}) == 13


@pytest.mark.parametrize(
    "text",
    [
        *("floor(2**(10**12))", "ceil(-2**(10**10))", "round_up(2**(10**12))"),
        *("round_down(2**-(10**12))", "binomial(10**9, 5*10**8)", "harmonic(10**30)"),
    ],
)
def test_a_number_that_does_not_fit_into_memory_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        Expression(text).value({})
    theorem = {"kind": "relation", "verdict": "HOLDS", "claim": f"{text} == 1"}
    data = {"version": 2, "theorem": theorem, "lemmas": [], "witness": {}}
    assert kernel.check(data).outcome is not kernel.Outcome.VALID


GAPS = "BridgedTree(steps=12, arities=[3, 2, 2], epsilon=2, contributions=3)"


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "verdict", "said"),
    [
        (GAPS, "1", Verdict.UNDECIDED, "may be on either side of the claimed epsilon"),
        (GAPS, "0.2", Verdict.REFUTED, "exceeds the claimed epsilon"),
        (GAPS, "2", Verdict.HOLDS, "does not exceed the claimed epsilon"),
    ],
)
def test_a_loss_between_two_ends_is_given_by_both(
    mechanism: str, epsilon: str, verdict: Verdict, said: str
) -> None:
    """None of them is called what the loss reaches, or never exceeds."""
    claim = KINDS["pure-dp"](id="x", mechanism=mechanism, epsilon=epsilon)
    found = verify(claim)
    assert found.verdict is verdict
    low, high = (float(end) for end in re.findall(r"[\d.]+", found.reason)[:2])
    true = found.true["epsilon"]
    assert low <= float(true["lower"]) < float(true["upper"]) <= high
    assert found.reason.startswith("The largest privacy loss lies in [")
    assert said in found.reason


def test_a_largest_loss_that_no_known_event_shows_is_not_called_enclosed() -> None:
    """That of the outputs is 1, as of all measured sums; no pair known from below has it."""
    mechanism = "BridgedTree(steps=4, arities=[2, 2], epsilon=1, pooled=1)"
    claim = KINDS["pure-dp"](id="x", mechanism=mechanism, epsilon="1/2")
    found = verify(claim)
    assert found.verdict is Verdict.UNDECIDED
    assert found.reason.startswith("The privacy loss comes arbitrarily close to 1, but no event")
