"""Claim files whose words are false: no verdict says more than what is true; slips."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier import batch, document, kernel, report
from dpassay.verifier.cli import main
from dpassay.verifier.verdict import Finding, Verdict, distinct_errors

LEMMA = '[[claims]]\nkind = "relation"\nid = "lemma"\nclaim = "1 + 1 == 2"\n'
"""A true claim that has nothing to do with the others."""
ARGUED = 'argument = "Obviously."\nlemmas = ["lemma"]\n'


class FalseClaim(NamedTuple):
    """A claim whose words are false, and what may be said of it at most."""

    name: str
    claim: str
    verdict: Verdict
    formal: str = ""
    """What the headline must say, so that what was decided is true."""


def over(name: str, grid: str, ends: str = "") -> str:
    return f'[claims.for_all.{name}]\nstatement = "every {name}"\ngrid = {grid}\n{ends}\n'


def mechanism(kind: str, notation: str, numbers: str, rest: str = "") -> str:
    return f'kind = "{kind}"\nmechanism = "{notation}"\n{numbers}\n{rest}'


def relation(claim: str, rest: str = "") -> str:
    return f'kind = "relation"\nclaim = "{claim}"\n{rest}'


def behaviour(kind: str, expression: str, at: str, rest: str) -> str:
    return f'kind = "{kind}"\nexpression = "{expression}"\nvariable = "x"\nat = {at}\n{rest}'


SUPPORTED, UNDECIDED, REFUTED = Verdict.SUPPORTED, Verdict.UNDECIDED, Verdict.REFUTED
HOLDS = Verdict.HOLDS
GAUSSIAN = "Gaussian(standard_deviation=4, l2_sensitivity=s)"
BUDGET = "epsilon = 1\ndelta = 1e-5"

FALSE = [
    # a text in the place of a proof
    FalseClaim("argued polynomial", relation("d**2 <= 100",
     ARGUED + over("d", "[1, 2, 3]", 'low = "1"')), Verdict.ARGUED, "for every d ≥ 1: d**2 <= 100"),
    FalseClaim("argued without lemma", relation("d**2 <= 100",
     'argument = "See above."\n' + over("d", "[1]", 'low = "1"')), Verdict.ARGUED),
    FalseClaim("lemma without argument", relation("d**2 <= 100",
     'lemmas = ["lemma"]\n' + over("d", "[1]", 'low = "1"')), SUPPORTED),
    FalseClaim("blank argument", relation("d**2 <= 100",
     'argument = "  "\nlemmas = ["lemma"]\n' + over("d", "[1]")), SUPPORTED),
    FalseClaim("argued noise", mechanism("approximate-dp", GAUSSIAN, BUDGET,
     ARGUED + over("s", '["1/2", "1/4"]', 'above = "0"')), Verdict.ARGUED,
     "for every s > 0: Gaussian("),
    # a grid that stops before the failure
    FalseClaim("noise", mechanism("approximate-dp", GAUSSIAN, BUDGET, over("s", '["1/2"]')),
     SUPPORTED),
    FalseClaim("epsilon", mechanism("approximate-dp",
     "Gaussian(standard_deviation=round_up(sqrt(2*log(1.25/1e-5))/e))",
     'epsilon = "e"\ndelta = 1e-5', over("e", '["1/2", "1"]', 'above = "0"')), SUPPORTED),
    FalseClaim("releases", mechanism("approximate-dp",
     "Composed(Gaussian(standard_deviation=20), count=k)", BUDGET,
     over("k", "[1, 2, 4]", 'low = "1"\ninteger = true')), SUPPORTED),
    FalseClaim("scale", mechanism("pure-dp", "Laplace(scale=b)", "epsilon = 1",
     over("b", "[1, 2]", 'above = "0"')), SUPPORTED),
    FalseClaim("Rényi order", mechanism("renyi-dp", "Gaussian(standard_deviation=2)",
     'order = "a"\nepsilon = 2', over("a", "[2, 3, 16]", 'above = "1"')), SUPPORTED),
    FalseClaim("zCDP", mechanism("zcdp", "Laplace(scale=b)", 'rho = "1/8"',
     over("b", "[2, 3]", 'above = "0"')), SUPPORTED),
    FalseClaim("μ", mechanism("gaussian-dp", GAUSSIAN, 'mu = "1"',
     over("s", "[1, 4]", 'above = "0"')), SUPPORTED),
    FalseClaim("grid", relation("x**2 < 1000", over("x", "[1, 10, 30]", 'low = "0"')), SUPPORTED),
    FalseClaim("Euler's primes", relation("x**2 + x + 41 < 1763",
     over("x", "[0, 1, 2, 39]", 'low = "0"\ninteger = true')), SUPPORTED),
    # cases as if they were for all
    FalseClaim("listed cases", relation("d**2 <= 100",
     'statement = "d² ≤ 100 for every d."\n[claims.where]\nd = [1, 2, 3]\n'), HOLDS,
     "in the cases d in {1, 2, 3}: d**2 <= 100"),
    FalseClaim("listed sensitivities", mechanism("approximate-dp", GAUSSIAN, BUDGET,
     'statement = "For all sensitivities."\n[claims.where]\ns = ["1/2", "1/4"]\n'), HOLDS,
     "in the cases s in {1/2, 1/4}: Gaussian("),
    FalseClaim("one case", mechanism("zcdp", "Laplace(scale=2)", 'rho = "1/8"',
     'statement = "Any scale is 1/8-zCDP."\n'), HOLDS, "Laplace(scale=2) is (1/8)-zCDP"),
    FalseClaim("a counterexample assumed away", relation("x**2 <= 100",
     'statement = "x² ≤ 100 for every x ≤ 20."\nassume = ["x <= 10"]\n'
     "[claims.where]\nx = [1, 10, 20]\n"), HOLDS, "where x <= 10: x**2 <= 100"),
    # a sweep with a hole: the words say more than the domain
    FalseClaim("sweep with a hole", relation("(x - 3)**2 > 1",
     'statement = "For every x in [0, 10]."\nproof.method = "sweep"\n' + over("x", "[0, 1]",
     'low = "0"\nhigh = "1.5"')), HOLDS, "for every x in [0, 1.5]: (x - 3)**2 > 1"),
    FalseClaim("sweep of a false claim", relation("(x - 3)**2 > 1",
     'proof.method = "sweep"\n' + over("x", "[0, 1, 9]", 'low = "0"\nhigh = "10"')), SUPPORTED),
    FalseClaim("a proof that is none", relation("x < 100",
     'proof.method = "identity"\n' + over("x", "[1, 2]", 'low = "0"')), SUPPORTED),
    # behaviour
    FalseClaim("monotone until 50", behaviour("monotone", "(x - 50)**2", "[1, 10, 50]",
     'direction = "decreasing"\nover.low = "0"'), SUPPORTED, "x ≥ 0"),
    FalseClaim("monotone between points", behaviour("monotone", "x + 2*sin(2*pi()*x)", "[0, 1, 2]",
     'direction = "increasing"'), SUPPORTED, "no range is given"),
    FalseClaim("monotone argued", behaviour("monotone", "(x - 50)**2", "[1, 10, 50]",
     'direction = "decreasing"\n' + ARGUED + 'over.low = "0"'), Verdict.ARGUED),
    FalseClaim("e rounded", behaviour("limit", "(1 + 1/x)**x", "[10, 1000]",
     'limit = "2.71828"\nrate = "2/x + 0.00001"'), SUPPORTED),
    FalseClaim("Euler's constant rounded", behaviour("limit", "harmonic(x) - log(x)", "[10, 1000]",
     'limit = "0.5772"\nrate = "1/x + 1e-4"'), SUPPORTED),
    FalseClaim("a constant rate", behaviour("limit", "1/x", "[10, 1000]",
     'limit = "1"\nrate = "1"'), SUPPORTED),
    FalseClaim("a rate that grows slowly", behaviour("limit", "1/x", "[10, 1000]",
     'limit = "1"\nrate = "log(x)"'), SUPPORTED),
    FalseClaim("a limit without a rate", behaviour("limit", "1/x", "[10, 1000]",
     'limit = "1/1000"'), UNDECIDED),
    FalseClaim("minimiser between the points", behaviour("minimiser", "(x - 3/2)**2", "[1, 2, 3]",
     'claimed = 1\nover.low = "0"'), SUPPORTED, "over x ≥ 0"),
    FalseClaim("minimiser beyond the points", behaviour("minimiser", "-x**2 + 10*x", "[0, 1, 2]",
     "claimed = 0"), SUPPORTED),
    FalseClaim("minimiser among some integers", behaviour("minimiser", "(x - 10)**2", "[1, 2, 3]",
     'claimed = 3\nover = {low = "1", high = "20", integer = true}'), SUPPORTED),
    # optimality
    FalseClaim("a tolerance of one", 'kind = "optimality"\nvalue = "2"\ntolerance = "1"\n'
     'dual.law = "corners"\n' 'among = {type = "Gaussian", mu = "1", objective = "total", '
     'space = {type = "Box", bounds = ["1"]}}\n', HOLDS,
     "below (2)/(1 + 1): the value is within a factor 1 + 1 of optimal"),
    FalseClaim("a dual that misses", 'kind = "optimality"\nvalue = "2"\ndual.law = "corners"\n'
     'among = {type = "Gaussian", mu = "1", objective = "total", '
     'space = {type = "Box", bounds = ["1"]}}\n', UNDECIDED),
    FalseClaim("only words for a domain", relation("1/x <= 1", over("x", "[1, 2]")), SUPPORTED,
     "in words only"),
]  # fmt: skip


def decided(claim: str) -> Finding:
    """Decide a claim of a file that has the lemma, too; return what is concluded."""
    text = f'schema_version = 1\n{LEMMA}[[claims]]\nid = "claim"\n{claim}'
    claims = document.read_text(text).claims
    outcomes = batch.concluded(claims, dict(batch.decide_all(claims)))
    finding = outcomes[1].finding
    assert finding is not None, outcomes[1].error
    return finding


@pytest.mark.parametrize("case", FALSE, ids=lambda case: case.name)
def test_a_false_claim_is_not_said_to_hold_for_more_than_it_does(case: FalseClaim) -> None:
    found = decided(case.claim)
    if found.verdict is Verdict.REFUTED:  # by a counterexample that a search found
        return
    assert found.verdict is case.verdict
    assert case.formal in found.formal
    if case.verdict is HOLDS:
        universal = any(word in found.statement.lower() for word in ("every", "all", "any"))
        ranged = "for every" in found.formal
        assert bool(found.note) is (universal and not ranged)


def test_an_argument_is_shown_as_a_persons() -> None:
    found = decided(next(case.claim for case in FALSE if case.name == "argued noise"))
    assert "“Obviously.”" in found.reason
    assert "not proved here" in found.reason
    assert found.rigour.value == "ARGUED"


TRUE: list[tuple[str, Any]] = [
    (relation("mu(Gaussian(standard_deviation=3)) == 1/3"), HOLDS),
    (relation("rho(Gaussian(standard_deviation=3)) == 1/18"), HOLDS),
    (behaviour("monotone", "(x - 5)**2", "[0, 1, 2, 3, 4]",
     'direction = "decreasing"\nover = {low = "0", below = "5", integer = true}'), HOLDS),
    (behaviour("minimiser", "(x - 3/2)**2", "[1, 2, 3]",
     'claimed = 2\nover = {above = "0", high = "3", integer = true}'), HOLDS),
]  # fmt: skip


@pytest.mark.parametrize(("claim", "verdict"), TRUE)
def test_a_true_claim_is_not_refuted(claim: str, verdict: Verdict) -> None:
    found = decided(claim)
    assert found.verdict is verdict
    if verdict is UNDECIDED:
        assert "rate 1/x fails at x = 10" in found.reason


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (
            behaviour("minimiser", "x", "[0, 1]", 'claimed = 1\nover.low = "1"'),
            "Expected at within x ≥ 1, not 0",
        ),
        (
            behaviour(
                "monotone", "x", '["1/2", 1]', 'direction = "increasing"\nover.integer = true'
            ),
            "Expected at to be integers, not 0.5",
        ),
        (relation("x > 0", over("x", "[0, 1]", 'above = "0"')), "within x > 0, not 0"),
    ],
)
def test_a_point_outside_the_range_neither_refutes_nor_supports(claim: str, message: str) -> None:
    text = f'schema_version = 1\n[[claims]]\nid = "claim"\n{claim}'
    outcome = batch.decide(document.read_text(text).claims[0])
    assert message in outcome.error


def test_a_better_point_of_the_range_refutes() -> None:
    for claim in (
        behaviour("minimiser", "(x - 3/2)**2", '[1, "3/2"]', 'claimed = 1\nover.low = "0"'),
        behaviour("monotone", "(x - 50)**2", "[1, 50, 60]", 'direction = "decreasing"'),
    ):
        assert decided(claim).verdict is REFUTED


HEAD = "schema_version = 1\n"
PRINTED = (
    '[[claims]]\nkind = "printed-number"\nid = "factor"\nexpression = "920/90"\nprinted = "8"\n'
)
FACTOR = PRINTED + 'slip = true\ncorrection = "It is 10.2: factor/corrected."\n'


def corrected(printed: str) -> str:
    return PRINTED.replace('"factor"', '"factor/corrected"').replace('"8"', f'"{printed}"')


def false(name: str, error: str = "") -> str:
    return f'[[claims]]\nkind = "relation"\nid = "{name}"\nclaim = "1 < 0"\nerror = "{error}"\n'


def run(text: str) -> list[batch.Outcome]:
    claims = document.read_text(HEAD + text).claims
    return [*batch.concluded(claims, dict(batch.decide_all(claims))).values()]


def findings(text: str) -> list[Finding]:
    return [outcome.finding for outcome in run(text) if outcome.finding is not None]


def test_a_misprint_whose_correction_holds_is_a_slip() -> None:
    slip, right = run(FACTOR + corrected("10.2"))
    assert slip.finding is not None
    assert right.finding is not None
    assert [slip.finding.verdict, right.finding.verdict] == [Verdict.SLIP, Verdict.HOLDS]
    assert slip.certificate is not None
    checked = kernel.check(slip.certificate)
    assert checked.outcome is kernel.Outcome.VALID
    assert slip.certificate["theorem"]["verdict"] == "REFUTED"


def test_without_a_correction_that_holds_it_stays_refuted() -> None:
    assert findings(FACTOR + corrected("11"))[0].verdict is Verdict.REFUTED


def test_what_holds_is_no_slip() -> None:
    true = FACTOR.replace('"8"', '"10.2"')
    assert findings(true + corrected("10.2"))[0].verdict is Verdict.HOLDS


@pytest.mark.parametrize("correction", ["", "It is 10.2.", "factor", "factor/other"])
def test_a_slip_names_its_correction(correction: str) -> None:
    text = FACTOR.replace("It is 10.2: factor/corrected.", correction)
    with pytest.raises(InvalidInputError, match=r"factor\.slip: its correction names no other"):
        document.read_text(HEAD + text + corrected("10.2"))


def test_statements_that_fall_with_one_error_are_counted_once() -> None:
    text = "".join(
        [false("a", "one"), false("b", "one"), false("c"), false("d/wording"), false("e/finite")]
    )
    found = findings(text + FACTOR + corrected("10.2"))
    errors = {name: [f.id for f in fallen] for name, fallen in distinct_errors(found).items()}
    assert errors == {"one": ["a", "b"], "c": ["c"]}
    assert report.counts(found) == (
        "7 claims: 1 HOLDS, 5 REFUTED, 1 SLIP. REFUTED: 3 by 2 distinct errors; 2 only read "
        "more strictly than meant, or cited"
    )


def test_one_slip_alone_is_decided_with_its_correction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(HEAD + FACTOR + corrected("10.2"), "utf-8")
    assert main(["verify", str(path), "--only", "factor", "--quiet"]) == 1
    assert capsys.readouterr().out.split() == ["SLIP"]
