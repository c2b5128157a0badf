"""Outputs and scores of other libraries: tensors, and the auditor of JAX-Privacy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpassay
from tests.verify.foreign.installed import library

RUNS = 4000


class Tensor:
    """What matters of a tensor here: numpy refuses it before `detach`, and knows no bfloat16."""

    def __init__(self, values: Any, dtype: str = "torch.float32", *, attached: bool = True) -> None:
        self.values, self.dtype, self.attached = values, dtype, attached

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, *_: Any, **__: Any) -> Any:
        if self.attached or self.dtype == "torch.bfloat16":
            raise RuntimeError("Call detach() first")
        return np.asarray(self.values)

    def detach(self) -> Tensor:
        return Tensor(self.values, self.dtype, attached=False)

    def cpu(self) -> Tensor:
        return self

    def float(self) -> Tensor:
        return Tensor(self.values, attached=False)


@pytest.mark.parametrize("dtype", ["torch.float32", "torch.bfloat16"])
def test_outputs_may_be_tensors(dtype: str) -> None:
    rng = np.random.default_rng(1)
    near, far = rng.laplace(0, 1, RUNS), rng.laplace(3, 1, RUNS)
    asked: dict[str, Any] = {"claim": "0.5", "seed": 1}
    for make in (Tensor, lambda rows, kind: [Tensor(row, kind) for row in rows[:, np.newaxis]]):
        found = dpassay.audit_samples(make(near, dtype), make(far, dtype), **asked)
        assert str(found.verdict) == "REFUTED"


def test_a_mechanism_may_return_tensors() -> None:
    def noisy(dataset: float, size: int, rng: np.random.Generator) -> Any:
        return Tensor(dataset + rng.laplace(0, 1, size), "torch.bfloat16")

    found = dpassay.audit(noisy, claim="0.1", pair=(0.0, 3.0), samples=RUNS, seed=1)
    assert str(found.verdict) == "REFUTED"


def test_an_auditor_of_jax_privacy_has_the_scores() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(2, 1, RUNS), rng.normal(0, 1, RUNS)
    auditor = SimpleNamespace(_in_canary_scores=scores[0], _out_canary_scores=scores[1])
    found = dpassay.audit_scores(auditor, delta=1e-5, seed=1)
    assert found.epsilon == dpassay.audit_scores(*scores, delta=1e-5, seed=1).epsilon
    with pytest.raises(dpassay.InvalidInputError, match="not ndarray alone"):
        dpassay.audit_scores(scores[0])


def test_the_auditor_of_jax_privacy_itself() -> None:
    auditing = library("jax_privacy.auditing")
    rng = np.random.default_rng(1)
    scores = rng.normal(2, 1, RUNS), rng.normal(0, 1, RUNS)
    found = dpassay.audit_scores(auditing.CanaryScoreAuditor(*scores), delta=1e-5, seed=1)
    assert found.epsilon == dpassay.audit_scores(*scores, delta=1e-5, seed=1).epsilon


def test_tensors_of_torch_itself() -> None:
    torch = library("torch")
    torch.manual_seed(1)
    near = torch.randn(RUNS, dtype=torch.bfloat16)
    far = (torch.randn(RUNS) + 4).requires_grad_()
    found = dpassay.audit_samples(near, far, claim="0.1", seed=1)
    assert str(found.verdict) == "REFUTED"
