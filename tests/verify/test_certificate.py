"""Certificates: their shape, their seal, their files, and the published schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dpassay.verifier import certificate, schema, seal
from dpassay.verifier.claims import KINDS
from tests.verify.forge import CLAIMS, certified


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda claim: claim.id)
def test_every_kind_has_a_certificate_of_the_published_shape(claim: Any) -> None:
    finding, data = certificate.certify(claim)
    assert data is not None
    plain = json.loads(json.dumps(data))
    parsed = msgspec.convert(plain, seal.Certificate)
    assert parsed.verdict == finding.verdict.value
    assert parsed.facts
    assert seal.broken(plain) == []
    assert msgspec.convert(parsed.claim, KINDS[claim.kind]) == claim


def test_a_refutation_names_the_pair_the_event_and_both_probabilities() -> None:
    data = certified("approximate-dp/refuted")
    (event,) = data["facts"]
    assert event["fact"] == "event"
    assert event["law"]["law"] == "gaussian"
    assert "the release, scaled" in event["description"]
    assert data["conclusion"] == "p - exp(epsilon)*q > delta"
    assert {"lower", "upper"} == set(event["p"]) == set(event["q"])


@pytest.mark.slow
def test_a_refutation_names_an_event_where_only_a_grid_with_few_digits_answers() -> None:
    claim = KINDS["approximate-dp"](
        id="few",
        mechanism="Composed([Laplace(scale=10), DiscreteGaussian(parameter=25)], 10)",
        epsilon="2.8",
        delta="1e-5",
    )
    finding, data = certificate.certify(claim)
    assert (finding.verdict.value, "No evidence" in finding.reason) == ("REFUTED", False)
    assert data is not None
    (event,) = data["facts"]
    assert float(event["p"]["lower"]) <= 1.4e-4 <= float(event["p"]["upper"])


def test_pending_claims_have_no_certificate() -> None:
    claim = KINDS["pending"](id="x", needs="lp", reason="an optimum over many laws")
    finding, data = certificate.certify(claim)
    assert finding.verdict.value == "PENDING"
    assert data is None


def test_leaves_are_named_by_their_paths() -> None:
    data = {"a": [{"b": "1"}, {}], "c": {"d": 2}, "e": []}
    paths = [path for path, _ in seal.leaves(data)]
    assert paths == ["a[0].b", "a[1]", "c.d", "e"]


def test_a_leaf_that_is_added_or_removed_is_named() -> None:
    data = certified("approximate-dp/refuted")
    data["facts"][0]["note"] = "1"
    del data["facts"][0]["q"]["upper"]
    assert set(seal.broken(data)) == {"facts[0].note", "facts[0].q.upper"}


def test_files_hold_one_or_several(tmp_path: Path) -> None:
    one, two = certified("approximate-dp/refuted"), certified("relation/equal")
    seal.write(tmp_path / "one.json", [one])
    seal.write(tmp_path / "two.json", [one, two])
    assert seal.read(tmp_path / "one.json") == [one]
    assert seal.read(tmp_path / "two.json") == [one, two]
    assert isinstance(json.loads((tmp_path / "one.json").read_text("utf-8")), dict)


@pytest.mark.parametrize("name", schema.generate())
def test_the_published_schema_is_the_generated_one(name: str) -> None:
    """After a change of a type: python -m dpassay.verifier.schema."""
    assert schema.stored(name) == schema.generate()[name]
