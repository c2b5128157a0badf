"""Claims over ranges with proofs, kinds that are stated as comparisons, and duals of optima."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier import batch, document, kernel, prover
from dpassay.verifier.ask import verify
from dpassay.verifier.claims import KINDS, Optimality
from dpassay.verifier.expression import renamed as substituted
from dpassay.verifier.kernel import Outcome, check
from dpassay.verifier.proof import named, reachable, renamed, theorem_of
from dpassay.verifier.verdict import Verdict
from tests.verify.forge import certified

FILE = """
schema_version = 1
[[claims]]
kind = "relation"
id = "square"
claim = "x**2 >= 0"
proof.method = "sweep"
for_all.x = {above = "-inf", grid = [-1, 2]}
[[claims]]
kind = "relation"
id = "sum"
claim = "x**2 + 1 > 0"
proof = {method = "combine", from = [{claim = "square", at = {x = "x"}}]}
for_all.x = {above = "-inf", grid = [-1, 2]}
[[claims]]
kind = "relation"
id = "false"
claim = "x > 0"
proof.method = "sweep"
for_all.x = {low = -1, grid = [-1, 2]}
[[claims]]
kind = "monotone"
id = "monotone"
expression = "x**2"
variable = "x"
at = [1, 2]
over.low = 0
direction = "increasing"
proof.method = "positive"
"""
CLAIMS = {claim.id: claim for claim in document.read_text(FILE).claims}


def test_an_accepted_proof_makes_a_claim_over_a_domain_hold() -> None:
    found = verify(CLAIMS["square"])
    assert found.verdict is Verdict.HOLDS
    assert "x**2 >= 0" in found.reason
    assert verify(CLAIMS["monotone"]).verdict is Verdict.HOLDS


def test_a_proof_that_names_lemmas_gets_them() -> None:
    alone = verify(CLAIMS["sum"])
    assert alone.verdict is Verdict.SUPPORTED
    assert "Its proof was not accepted" in alone.reason
    assert verify(CLAIMS["sum"], lemmas=CLAIMS.values()).verdict is Verdict.HOLDS
    found, data = prover.decided(CLAIMS["sum"], list(CLAIMS.values()))
    assert found.verdict is Verdict.HOLDS
    assert data is not None
    (fact,) = data["witness"]["proof"]["from"]
    assert fact == {"fact": "(x ** 2)>=0", "by": {"method": "sweep"}}
    assert kernel.check(data).outcome is kernel.Outcome.VALID


def test_a_part_of_a_file_is_decided_with_the_lemmas_of_all_of_it() -> None:
    wanted = [CLAIMS["sum"]]
    ((_, outcome),) = batch.decide_all(wanted, lemmas=list(CLAIMS.values()))
    assert outcome.finding is not None
    assert outcome.finding.verdict is Verdict.HOLDS


def test_names_in_proofs() -> None:
    proof = CLAIMS["sum"].proof
    assert list(named(proof)) == ["square"]
    assert list(named(renamed(proof, lambda name: f"file/{name}"))) == ["file/square"]
    assert [claim.id for claim in reachable(CLAIMS["sum"], CLAIMS.values())] == ["square"]
    text = FILE.replace('claim = "square"', 'claim = "sqare"')
    with pytest.raises(ValueError, match=r"claims\[1\].proof: no claim has the id 'sqare'"):
        document.read_text(text)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("proof.pieces = 5", "expected a method"),
        ("for_all.x = {low = 1, above = 1, grid = [2]}", "one of low and above, not both"),
        ("for_all.x = {low = 1, high = 2}", "missing required field `grid`"),
        ('expected = "HOLDS"', "expected"),
    ],
)
def test_what_is_no_proof_or_domain_is_an_error(field: str, message: str) -> None:
    text = f'schema_version = 1\n[[claims]]\nid = "c"\nkind = "relation"\nclaim = "1 < 2"\n{field}'
    with pytest.raises(ValueError, match=message):
        document.read_text(text)


@pytest.mark.parametrize(
    ("other", "verdict"),
    [
        ("2*log(1/delta)/log(1.25/delta)", Verdict.REFUTED),
        ("2", Verdict.UNDECIDED),  # the claimed one
        ("log(1/delta)/log(1.25/delta)", Verdict.UNDECIDED),  # not the limit
    ],
)
def test_a_limit_is_refuted_by_another_one_that_is_proved(other: str, verdict: Verdict) -> None:
    text = f"""
schema_version = 1
[[claims]]
kind = "limit"
id = "ratio"
expression = "log(1/delta)*(1 + sqrt(1 + 1/N))**2/(2*log(1.25/delta))"
variable = "N"
at = [1000, 100000]
over.low = 1
limit = 2
proof = {{method = "continuity", limit = "{other}"}}
for_all.delta = {{above = 0, below = 1, grid = ["0.5", "0.1"]}}
"""
    found = verify(document.read_text(text).claims[0])
    assert found.verdict is verdict, found.reason
    if verdict is Verdict.REFUTED:
        assert f"It tends to {other}" in found.reason
        assert found.witness["case"] in ({"delta": "0.5"}, {"delta": "0.1"})


# Kinds of claims that the kernel does not have are stated to it as comparisons, and no weaker.


STATED = {
    "profile/holds": "approximate-dp",
    "profile/refuted": "approximate-dp",
    "tradeoff/refuted": "relation",
    "monotone/supported": "relation",
    "monotone/refuted": "relation",
    "minimiser/holds": "relation",
    "minimiser/refuted": "relation",
    "printed-number/holds": "relation",
    "printed-number/refuted": "relation",
    "limit/supported": "relation",
    "optimality/refuted": "relation",
}


@pytest.mark.parametrize("name", STATED)
def test_every_kind_has_a_certificate_that_is_valid(name: str) -> None:
    data = certified(name)
    assert data["theorem"]["kind"] == STATED[name]
    assert check(data).outcome is Outcome.VALID


def outcome(proof: dict[str, Any], **fields: Any) -> Outcome:
    """Check the theorem that a claim would have if it held."""
    claim = msgspec.convert(
        {"id": "c", "variable": "n", "at": ["1", "2"], **fields}, KINDS[fields["kind"]]
    )
    witness = {"proof": proof} if proof else {}
    theorem = theorem_of(claim, "HOLDS")
    return check({"version": 2, "theorem": theorem, "lemmas": [], "witness": witness}).outcome


SUM = {"let": {"S": "sum(j, 0, n, j)", "T": "S*2"}, "expression": "T - n"}


@pytest.mark.parametrize(
    ("true", "fields"),
    [
        # names of let that see the variable are put at n + 1, too: T − n = n²
        (True, {**SUM, "direction": "increasing", "over": {"low": "0", "integer": True}}),
        (False, {**SUM, "direction": "decreasing", "over": {"low": "0", "integer": True}}),
        (False, {**SUM, "direction": "increasing", "over": {"low": "-3", "integer": True}}),
        (True, {"expression": "n**2", "direction": "increasing", "over": {"low": "0"}}),
        (False, {"expression": "n**2", "direction": "increasing", "over": {"low": "-1"}}),
        (False, {"expression": "0*n", "direction": "increasing", "over": {"low": "0"}}),
        # at every integer up to the end, not beyond it
        (
            True,
            {"expression": "n*(7 - n)", "direction": "increasing"}
            | {"over": {"low": "1", "high": "2", "integer": True}},
        ),
        (
            False,
            {"expression": "n*(7 - n)", "direction": "increasing"}
            | {"over": {"low": "1", "high": "4", "integer": True}},
        ),
    ],
)
def test_monotone_functions(true: bool, fields: dict[str, Any]) -> None:
    found = outcome({"method": "positive"}, kind="monotone", **fields)
    assert (found is Outcome.VALID) is true


@pytest.mark.parametrize(
    ("true", "fields"),
    [
        (True, {"expression": "(n - 3)**2", "claimed": "3", "over": {"low": "0"}}),
        (False, {"expression": "(n - 3)**2", "claimed": "2", "over": {"low": "0"}}),
        (True, {"expression": "n", "claimed": "0", "over": {"low": "0"}}),
        (False, {"expression": "n", "claimed": "0", "over": {"low": "-1"}}),
        (
            True,
            {"let": {"S": "n - 3"}, "expression": "S**2", "claimed": "7/2 - 1/2"}
            | {"over": {"above": "-inf"}},
        ),
    ],
)
def test_least_points(true: bool, fields: dict[str, Any]) -> None:
    found = outcome({"method": "positive"}, kind="minimiser", **fields)
    assert (found is Outcome.VALID) is true


WORDS = {"source": "", "proof": {"method": "positive"}}


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "monotone", "expression": "n**2", "direction": "increasing"},
        {"kind": "minimiser", "expression": "n**2", "claimed": "1"},
    ],
)
def test_points_do_not_hold_by_a_proof(fields: dict[str, Any]) -> None:
    """A proof of the listed values is none of the claim."""
    given = {"id": "c", **WORDS, **fields}
    given |= {"variable": "n", "at": ["1", "2"]}
    claim = msgspec.convert(given, KINDS[fields["kind"]])
    assert verify(claim).verdict is Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("true", "value", "printed"),
    [
        (True, "1/8", "0.13"), (True, "1/8", "0.125"), (False, "1/8", "0.12499"),
        (True, "-1/8", "-0.13"), (False, "-1/8", "0.13"), (True, "1234", "1.2e3"),
        (False, "1251", "1.2e3"),
    ],
)  # fmt: skip
def test_printed_numbers(true: bool, value: str, printed: str) -> None:
    claim = {"id": "c", "kind": "printed-number", "expression": value, "printed": printed}
    theorem = theorem_of(msgspec.convert(claim, KINDS["printed-number"]), "HOLDS")
    found = check({"version": 2, "theorem": theorem, "lemmas": [], "witness": {}})
    assert (found.outcome is Outcome.VALID) is true


def test_names_are_put_where_they_stand_alone() -> None:
    put = {"n": "(n + 1)", "mu": "m"}
    assert substituted("n + nn*f(n, 'n', mu=mu)\n- 1e-3", put) == (
        "(n + 1) + nn*f((n + 1), 'n', mu=m) - 1e-3"
    )
    # a variable may be called as what is asked of a mechanism: the question stays what it is
    assert substituted("delta(Gaussian(3), delta)", {"delta": "1/2"}) == "delta(Gaussian(3), 1/2)"


# Optimality by a dual, and its refutation by a rival: what is accepted, and what is not.


BOX = {"type": "Box", "bounds": ["1", "10", "1000"]}
SPARSE = {
    "type": "SparseBox", "dimension": "9", "sparsity": "9", "bound": "1", "signed": False,
}  # fmt: skip
NOISE = {"type": "IntegerNoise", "E": "3", "eta": "1/2", "support": "2"}
RIVAL = {"probabilities": ["1/16", "3/16", "1/2", "3/16", "1/16"], "lowest": "-2"}


def among(space: dict[str, Any], mu: str = "1", objective: str = "total") -> dict[str, Any]:
    return {"type": "Gaussian", "space": space, "mu": mu, "objective": objective}


@pytest.mark.parametrize(
    ("value", "family", "dual"),
    [
        # (1 + 10 + 1000)²/μ²
        ("1011**2/4", among(BOX, "2"), {"law": "corners"}),
        ("1011**2/12", among(BOX, "2", "mean"), {"law": "corners"}),
        # nine counts: ((s + 1)/2)² each at s = 3
        ("4", among(SPARSE, objective="mean"), {"law": "sparse", "ones": "6"}),
        # replace-one: d for each query
        ("9", among({**SPARSE, "signed": True}, objective="mean"), {"law": "sparse", "ones": "9"}),
        ("1", among({**SPARSE, "dimension": "1", "sparsity": "1"}), {"law": "sparse", "ones": "1"}),
    ],
)
def test_a_dual_that_reaches_the_value_proves_it(
    value: str, family: dict[str, Any], dual: dict[str, Any]
) -> None:
    assert verify(Optimality(id="x", value=value, among=family, dual=dual)).verdict is Verdict.HOLDS
    above = Optimality(id="x", value=f"{value} + 1e-30", among=family, dual=dual)
    assert verify(above).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("family", "dual", "message"),
    [
        (among(BOX), {"law": "sparse", "ones": "1"}, "corners"),
        (among(BOX, "0"), {"law": "corners"}, "Expected .0. > 0"),
        (among({**BOX, "bounds": ["-1"]}), {"law": "corners"}, "Expected .-1. >= 0"),
        (among({**BOX, "bounds": ["1) + (5"]}), {"law": "corners"}, "expected an expression"),
        (among({**BOX, "radius": "1"}), {"law": "corners"}, "nothing else"),
        (among({"type": "Ball"}), {"law": "corners"}, "expected space to have"),
        (among(BOX, objective="least"), {"law": "corners"}, "total or mean"),
        (among(SPARSE), {"law": "sparse", "ones": "10"}, "10. <= .9."),
        (among(SPARSE), {"law": "sparse", "ones": "1/2"}, "floor..1/2.. == .1/2."),
        (among({**SPARSE, "sparsity": "10"}), {"law": "sparse", "ones": "1"}, "10. <= .9."),
        (among({**SPARSE, "signed": "no"}), {"law": "sparse", "ones": "1"}, "true or false"),
    ],
)
def test_a_dual_of_another_family_is_refused(
    family: dict[str, Any], dual: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        verify(Optimality(id="x", value="1", among=family, dual=dual))


def test_a_rival_of_the_family_refutes() -> None:
    found = verify(Optimality(id="x", value="1/10", among=NOISE, rival=RIVAL))
    assert found.verdict is Verdict.REFUTED
    assert found.true["competitor"] == {"lower": "0.0625", "upper": "0.0625"}
    best = Optimality(id="x", value="1/16", among=NOISE, rival=RIVAL)
    assert verify(best).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probabilities": ["1/16", "3/16", "1/2", "3/16", "1/8"]}, "== 1"),
        ({"probabilities": ["-1/16", "5/16", "1/2", "5/16", "-1/16"]}, ">= 0"),
        ({"probabilities": ["1/8", "3/8", "1/2"]}, ""),
        ({"probabilities": ["0", "1/16", "3/16", "1/2", "1/4"], "lowest": "-3"}, "<= .2."),
        ({"probabilities": ["1/4", "1/4", "1/4", "1/4"], "lowest": "-2"}, "== .1/2."),
        ({"lowest": "1"}, "with 0 in its support"),
    ],
)
def test_a_law_that_is_no_rival_is_refused(change: dict[str, Any], message: str) -> None:
    claim: dict[str, Any] = {"id": "x", "value": "1/10", "among": NOISE}
    if not message:  # one-sided, but of the family
        assert verify(Optimality(**claim, rival={**RIVAL, **change})).verdict is Verdict.UNDECIDED
        return
    with pytest.raises(InvalidInputError, match=message):
        verify(Optimality(**claim, rival={**RIVAL, **change}))
