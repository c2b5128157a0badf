"""What has no truth value says so; words of verdicts are strings."""

from __future__ import annotations

import dataclasses
from enum import StrEnum

import numpy as np
import pytest

import dpassay
from dpassay.accountant.errors import DpassayError
from dpassay.verifier.audit import audit_samples
from dpassay.verifier.audit.guarantees import Outcome as AuditOutcome
from dpassay.verifier.audit.result import AuditResult
from dpassay.verifier.compare.comparison import Row
from dpassay.verifier.kernel import Checked
from dpassay.verifier.kernel import Outcome as CheckOutcome
from dpassay.verifier.verdict import Rigour, Verdict


def test_a_refuted_claim_fails_an_assertion_of_its_verdict() -> None:
    finding = dpassay.verify("Gaussian(1) is (1, 1e-5)-DP")
    assert finding.verdict == "REFUTED"
    assert not finding.holds
    with pytest.raises(DpassayError, match=r"\.verdict: HOLDS, ARGUED and SUPPORTED are different"):
        assert finding


@pytest.mark.parametrize("words", [Verdict, Rigour, AuditOutcome, CheckOutcome])
def test_words_are_strings(words: type[StrEnum]) -> None:
    for word in words:
        assert word == word.value
        assert f"{word}" == str(word) == word.value


def test_an_audit_is_neither_true_nor_false() -> None:
    rng = np.random.default_rng(1)
    found = audit_samples(rng.normal(0, 1, 2000), rng.normal(9, 1, 2000), claim=1, seed=1)
    assert found.outcome == "REFUTED"
    with pytest.raises(DpassayError, match=r"compare \.outcome"):
        bool(found)


def test_a_check_is_neither_true_nor_false() -> None:
    _, certificate = dpassay.certify("Laplace(2)", epsilon="0.5")
    assert certificate is not None
    checked = dpassay.check(certificate)
    assert checked.outcome == "VALID"
    with pytest.raises(TypeError, match=r"compare \.outcome"):
        bool(checked)


@pytest.mark.parametrize(
    "kind",
    [
        AuditResult,
        Checked,
        Row,
    ],
)
def test_no_result_with_several_outcomes_is_true(kind: type) -> None:
    with pytest.raises((DpassayError, TypeError), match="is neither true nor false: compare"):
        bool(object.__new__(kind))
    if dataclasses.is_dataclass(kind):
        assert "compare" not in {field.name for field in dataclasses.fields(kind)}
