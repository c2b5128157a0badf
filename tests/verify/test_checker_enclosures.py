"""A 0 must be proved to be 0: what the checker's exact arithmetic decides, and what it does not."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier import checker, document
from dpassay.verifier.certificate import certify
from dpassay.verifier.checker.arithmetic import settle
from dpassay.verifier.checker.facts import mechanism
from dpassay.verifier.checker.language import Variables, evaluate, holds
from dpassay.verifier.checker.laws import hockey_stick
from dpassay.verifier.checker.mechanisms.pairs import pairs
from dpassay.verifier.checker.reals import UnknownError, ball, compare, exp, hull, log, sqrt
from dpassay.verifier.claims import ApproximateDP, Minimiser
from tests.verify.forge import Data, decided, problems, sealed


def relation(text: str) -> str:
    return f'kind = "relation"\nclaim = "{text}"\n'


def forged(data: Data, **changed: Any) -> Data:
    return sealed({**data, **changed})


def proved(data: Data) -> bool:
    checked = checker.check(data)
    return checked.valid and not checked.taken_as_given


def test_a_difference_that_cancels_to_198_digits_is_decided() -> None:
    verdict, data = decided(relation("1 - Phi(30) > 0"))
    assert verdict == "HOLDS"
    assert proved(data)


def test_a_difference_of_numbers_that_are_alike_is_known_to_30_digits() -> None:
    quantile = "0.841621233572914205178706121363"  # Phi(quantile) is 0.8 to 30 digits
    verdict, data = decided(
        relation(f"abs(beta(Gaussian(standard_deviation=2), 0.2) - Phi({quantile} - 0.5)) < 1e-9")
    )
    assert verdict == "HOLDS"
    assert proved(data)
    facts = json.loads(json.dumps(data["facts"]))
    facts[0]["value"] = {"lower": "-1e-10", "upper": "1e-10"}
    assert problems(forged(data, facts=facts)) == [("facts[0].value", "is not narrow")]


@pytest.mark.parametrize(
    ("true", "false", "left"),
    [
        ("1 - Phi(30) <= 1", "1 - Phi(30) <= 0", "1 - Phi(30)"),
        ("exp(1e-100) - 1 <= 1", "exp(1e-100) - 1 <= 0", "exp(1e-100) - 1"),
        ("log(1 + 1e-120) <= 1", "log(1 + 1e-120) <= 0", "log(1 + 1e-120)"),
        ("sqrt(1 + 1e-90) - 1 <= 1", "sqrt(1 + 1e-90) - 1 <= 0", "sqrt(1 + 1e-90) - 1"),
    ],
)
def test_a_small_number_is_not_0(true: str, false: str, left: str) -> None:
    """The facts of a forged certificate say 0; nothing else is wrong with it."""
    verdict, data = decided(relation(true))
    assert verdict == "HOLDS"
    zero = {"lower": "0", "upper": "0"}
    facts = [
        {**fact, "value": zero, "expression": left if fact["name"] == "left" else "0"}
        for fact in data["facts"]
    ]
    claimed = {key: text.replace(true, false) for key, text in data["claimed"].items()}
    claim = {**data["claim"], "claim": false}
    assert not checker.check(forged(data, claim=claim, claimed=claimed, facts=facts)).valid


def test_noise_of_a_large_scale_is_not_pure() -> None:
    verdict, data = decided(
        'kind = "approximate-dp"\nmechanism = "Gaussian(standard_deviation=1e100)"\n'
        'epsilon = "0"\ndelta = "1e-99"\n'
    )
    assert verdict == "HOLDS"
    zero = {"lower": "0", "upper": "0"}
    facts = [{**fact, "value": zero} for fact in data["facts"]]
    for delta in ("0", "1e-101"):
        claim, claimed = ({**data[key], "delta": delta} for key in ("claim", "claimed"))
        checked = checker.check(forged(data, claim=claim, claimed=claimed, facts=facts))
        assert "verdict" in [path for path, _ in checked.problems]


@pytest.mark.parametrize(
    "text",
    [
        "sqrt(2)*sqrt(2) == 2",
        "sqrt(8) == 2*sqrt(2)",
        "exp(1/3)*exp(2/3) == exp(1)",
        "log(12) == 2*log(2) + log(3)",
        "exp(log(1 + exp(1)) - log(1 + exp(1))) == 1",
        "mu(Gaussian(standard_deviation='sqrt(2)')) == sqrt(1/2)",
        "(1 - exp(-1))/(1 + exp(-1)) == (exp(1) - 1)/(exp(1) + 1)",
    ],
)
def test_identical_numbers_are_equal(text: str) -> None:
    assert holds(text, Variables({}, {}))
    assert not holds(text.replace("==", "!="), Variables({}, {}))


def test_nothing_is_divided_by_what_may_be_0() -> None:
    zero = "(Phi(1) + Phi(-1) - 1)"
    with pytest.raises(UnknownError, match="may be 0"):
        holds(f"{zero}/{zero} == 1", Variables({}, {}))
    with pytest.raises(ZeroDivisionError):
        holds("1/(sqrt(8) - 2*sqrt(2)) > 0", Variables({}, {}))


@pytest.mark.parametrize(
    "text", ["Phi(1) == 1 - Phi(-1)", "sqrt(5 + 2*sqrt(6)) == sqrt(2) + sqrt(3)"]
)
def test_what_is_equal_for_another_reason_is_not_decided(text: str) -> None:
    with pytest.raises(UnknownError, match="whether"):
        holds(text, Variables({}, {}))


@pytest.mark.parametrize(
    ("noise", "epsilon"),
    [
        ("RandomizedResponse(epsilon=1, categories=4)", "1"),
        ("RandomizedResponse(epsilon='sqrt(2)')", "sqrt(2)"),
        ("Staircase(epsilon=1, gamma='0.3')", "1"),
        ("Laplace(scale='sqrt(3)')", "1/sqrt(3)"),
        ("DiscreteLaplace(scale=3, sensitivity=2)", "2/3"),
    ],
)
def test_a_pure_claim_that_is_just_met_is_proved(noise: str, epsilon: str) -> None:
    with ctx.workprec(192):
        level = evaluate(epsilon)
        for law in pairs(mechanism(noise)):
            assert hockey_stick(law, level) == 0
            assert hockey_stick(law, level - Fraction(1, 10**40)) > 0


@pytest.mark.parametrize(
    "text",
    [
        "1e99999999",
        "1e-99999999",
        "exp(" * 70 + "1" + ")" * 70,
        "sum(i, 1, 10**9, 1)",
        "sum(i, 1, 10**6, sum(j, 1, 1000, 1))",
        "binomial(10**9, 2)",
        "-" * 500 + "1",
        "1 +" * 60_000 + "1",
    ],
)
def test_what_takes_too_long_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expression|exponent|terms|integer"):
        settle(lambda: [evaluate(text)])


def test_a_power_of_too_many_digits_is_a_ball() -> None:
    assert holds("10**(10**9) > 9**(10**9)", Variables({}, {}))


def test_names_that_are_defined_by_each_other_are_refused() -> None:
    for let in ({"a": "b", "b": "a"}, {f"x{i}": f"x{i + 1} + x{i + 1}" for i in range(100)}):
        with pytest.raises(ValueError, match=r"itself|unknown|terms"):
            evaluate(next(iter(let)), Variables({}, let))


small = st.fractions(min_value=Fraction(1, 50), max_value=50, max_denominator=1000)


@given(small, small, small)
def test_exact_arithmetic_agrees_with_mpmath(a: Fraction, b: Fraction, c: Fraction) -> None:
    with ctx.workprec(192):
        found = (sqrt(a) * exp(b) + log(c)) / (1 + exp(-b)) ** 2 - sqrt(a) / exp(c / 100)
        texts = [end.str(70, radius=False) for end in (ball(found).lower(), ball(found).upper())]
    with mp.workdps(80):
        low, high = map(mp.mpf, texts)
        x, y, z = (mp.mpf(v.numerator) / v.denominator for v in (a, b, c))
        value = (mp.sqrt(x) * mp.exp(y) + mp.log(z)) / (1 + mp.exp(-y)) ** 2
        value -= mp.sqrt(x) / mp.exp(z / 100)
        slack = mp.mpf(10) ** -50 * (1 + abs(low))  # the ball is at most so wide
        assert low - slack <= value <= high + slack
        assert high - low < slack


def test_the_ends_of_a_hull_are_kept() -> None:
    between = hull(Fraction(1, 3), Fraction(2, 3))
    assert compare(between, "<=", Fraction(2, 3)) is True
    assert compare(Fraction(1, 3), "<=", between) is True
    assert compare(between, "<", Fraction(2, 3)) is None


TWICE = """
schema_version = 1
name = "Names"

[[claims]]
kind = "relation"
id = "twice"
claim = "x <= 1"
where = {x = [1]}
"""


def test_the_product_reads_a_name_once() -> None:
    for field in ("let", "for_all"):
        given = {"let": "2", "for_all": "{low = 0, grid = [1]}"}[field]
        with pytest.raises(InvalidInputError, match="the name 'x' is given twice"):
            document.read_text(f"{TWICE}{field} = {{x = {given}}}\n", "names.toml")


def _forged(**fields: Any) -> Data:
    data = decided('kind = "relation"\nclaim = "x <= 1"\nwhere = {x = [1]}')[1]
    return forged(data, claim={**data["claim"], **fields})


def test_the_checker_reads_a_name_once() -> None:
    assert checker.check(_forged()).valid
    assert not checker.check(_forged(let={"y": "2"})).problems
    for fields in ({"let": {"x": "2"}}, {"for_all": {"x": {"low": "0", "grid": ["1"]}}}):
        found = checker.check(_forged(**fields)).problems
        assert found[0] == ("claim", "the name 'x' is given twice")


def test_a_relation_names_neighbours_in_its_questions_alone() -> None:
    with pytest.raises(InvalidInputError, match="only a claim about a mechanism has one"):
        document.read_text(f'{TWICE}adjacency = "replace-one"\n', "names.toml")
    found = checker.check(_forged(adjacency="replace-one")).problems
    ((field, why),) = found
    assert field == "claim.adjacency"
    assert why.startswith("only a claim about a mechanism has one")


@pytest.mark.parametrize(
    "text",
    [
        "0*gamma(-1)",
        "gamma(-1) - gamma(-1)",
        "log(1 - pi()) - log(1 - pi())",
        "0*max_loss(Gaussian(standard_deviation=1))",
    ],
)
def test_what_is_no_number_does_not_cancel(text: str) -> None:
    with ctx.workprec(200):
        assert compare(evaluate(text), "==", Fraction(0)) is None


@pytest.mark.parametrize(("dimension", "sparsity"), [("5/2", "1"), ("3", "3/2"), ("3", "5")])
def test_an_ellipse_has_whole_sizes(dimension: str, sparsity: str) -> None:
    with pytest.raises(ValueError, match=r"integer|sparsity"):
        evaluate(f"ellipse_defects({dimension}, {sparsity})")


def test_the_worst_record_of_many_counts_is_found_among_all() -> None:
    """μ² = 4j(B − j)/B² for the integer j next to B/2 is at least 1 − 1/B², here 1 − 1e-40."""
    c = "CorrelatedGaussian(dimension=10**20, mu=1, c=3*pi()*10**9, release_size=False)"
    with ctx.workprec(400):
        mu = evaluate(f'mu({c}, adjacency="add-remove")')
        assert compare(mu, ">=", 1 - Fraction(1, 10**39)) is True


def test_a_power_of_very_many_digits_is_not_written_out() -> None:
    with ctx.workprec(200):
        assert compare(evaluate("exp(1000000*log(10**1000 + 1))"), ">", Fraction(1)) is True


def test_a_point_without_a_value_is_refused() -> None:
    claim = Minimiser(
        id="points",
        expression="(k - 1)/log2(k)**3",
        variable="k",
        at=["15", "16", "17", "18"],
        claimed="18",
    )
    _, data = certify(claim)
    assert data is not None
    assert checker.check(data).problems == []
    data["claim"]["at"][0] = "-15"
    assert any(field == "claim.at" for field, _ in problems(data))


@pytest.mark.parametrize("delta", ["7/5", "-1/10"])
def test_a_delta_that_is_no_probability_is_refused(delta: str) -> None:
    claim = ApproximateDP(id="d", mechanism="Laplace(scale=1)", epsilon="1/2", delta="0.4")
    _, data = certify(claim)
    assert data is not None
    assert checker.check(data).problems == []
    assert problems(json.loads(json.dumps(data).replace('"0.4"', f'"{delta}"')))


def test_a_box_with_roots_for_bounds_has_its_worst_corner() -> None:
    """v'Σ⁻¹v of (√2, −1) and Σ = [[2, 1], [1, 2]] is (6 + 2√2)/3."""
    covariance, bounds = "Matrix(rows=[[2, 1], [1, 2]])", "['sqrt(2)', 1]"
    with ctx.workprec(192):
        mu = evaluate(f"mu(GeneralGaussian(covariance={covariance}, space=Box(bounds={bounds})))")
        assert abs(mu * mu - evaluate("(6 + 2*sqrt(2))/3")) < Fraction(1, 10**50)


def test_quotients_of_roots_are_exact() -> None:
    for text in (
        "1/(1 + sqrt(2)) == sqrt(2) - 1",
        "1/(sqrt(2) + sqrt(3)) == sqrt(3) - sqrt(2)",
        "(3 + sqrt(5))/(sqrt(5) - 1) == 2 + sqrt(5)",
        "1/(2 - sqrt(2)) > 1 + sqrt(2)/2 - 10**-60",
    ):
        assert holds(text, Variables({}, {}))
    assert isinstance(evaluate("(6 + 2*sqrt(5))/(3 + sqrt(5))"), Fraction)
