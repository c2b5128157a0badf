"""What becomes of a claim whose proof is accepted, and of one whose proof is not."""

from __future__ import annotations

import pytest

from dpassay.verifier import batch, document, kernel, prover
from dpassay.verifier.ask import verify
from dpassay.verifier.proof import named, reachable, renamed
from dpassay.verifier.verdict import Verdict

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
