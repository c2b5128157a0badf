"""Certificates: their shape, their seal, their files, and the published schemas."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.errors import InvalidInputError
from tests.verify.forge import CLAIMS, certified
from verify import certificate, schema, seal
from verify.claims import KINDS
from verify.verdict import Finding


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
    assert "half-space" in event["description"]
    assert data["conclusion"] == "p - exp(epsilon)*q > delta"
    assert {"lower", "upper"} == set(event["p"]) == set(event["q"])


def test_pending_claims_have_no_certificate() -> None:
    claim = KINDS["pending"](id="x", needs="lp", reason="an optimum over many laws")
    finding, data = certificate.certify(claim)
    assert finding.verdict.value == "PENDING"
    assert data is None


def test_leaves_are_named_by_their_paths() -> None:
    data = {"a": [{"b": "1"}, {}], "c": {"d": 2}, "e": []}
    paths = [path for path, _ in seal.leaves(data)]
    assert paths == ["a[0].b", "a[1]", "c.d", "e"]


@pytest.mark.slow
@given(st.recursive(st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(
    st.text("abc", min_size=1), inner), max_leaves=8))  # fmt: skip
def test_a_seal_is_whole_until_a_leaf_changes(value: Any) -> None:
    data = {"value": value}
    data["seal"] = seal.seal({"value": value})
    assert seal.broken(data) == []
    for path in data["seal"]:
        missing = {**data, "seal": {k: v for k, v in data["seal"].items() if k != path}}
        assert seal.broken(missing) == [path]


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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"schema_version": 1, "cla', "is not a JSON certificate: .* Was the file cut off"),
        (b"schema_version = 1", "is not a JSON certificate"),
        (b"\xff\xfe", "is not a JSON certificate"),
        (b"", "is not a JSON certificate"),
        (b"3", "expected an object or a list"),
        (b"[]", "expected an object or a list"),
        (b'["a"]', "expected an object or a list"),
        (b"[" * 100_000, "is not a JSON certificate"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=message):
        seal.read(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=re.escape("Cannot read")):
        seal.read(tmp_path / "absent.json")


@pytest.mark.parametrize("name", schema.generate())
def test_the_published_schema_is_the_generated_one(name: str) -> None:
    """After a change of a type: python -m verify.schema."""
    assert schema.stored(name) == schema.generate()[name]


def test_the_claims_schema_knows_every_kind() -> None:
    text = json.dumps(schema.stored("claims.schema.json"))
    assert all(f'"{kind}"' in text for kind in KINDS)


def test_the_finding_schema_lists_the_fields_of_the_json_output() -> None:
    definition = schema.stored("finding.schema.json")["$defs"]["Finding"]
    assert list(definition["properties"]) == list(Finding.__struct_fields__)
