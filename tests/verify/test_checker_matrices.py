"""Certificates of matrix mechanisms with chance or trees, and of replaced mixtures."""

from __future__ import annotations

import pytest

from tests.verify.forge import decided
from verify import checker


def matrix(strategy: str, more: str, steps: int = 12) -> str:
    return (
        f"MatrixMechanism(strategy={strategy}, noise_multiplier=3, steps={steps}, "
        f"separation={min(4, steps)}, {more})"
    )


ALLOCATED = "participation='random-allocation'"
CLAIMS = [
    (matrix("'identity'", ALLOCATED), "add-remove", "1.2", "HOLDS"),
    (matrix("'identity'", ALLOCATED), "add-remove", "0.5", "REFUTED"),
    (matrix("'square-root'", f"bands=2, {ALLOCATED}"), "add-remove", "2.5", "HOLDS"),
    (matrix("'square-root'", f"bands=2, {ALLOCATED}"), "add-remove", "0.5", "REFUTED"),
    (matrix("'tree'", f"bands=4, {ALLOCATED}"), "add-remove", "3.5", "HOLDS"),
    (matrix("[[3, 0], [4, 5]]", ALLOCATED, 2), "add-remove", "8", "HOLDS"),
    (matrix("'tree'", "bands=4, participation='cyclic'"), "replace-one", "5", "HOLDS"),
    (
        "MixtureOfGaussians(standard_deviation=2, sensitivities=[0, 1, 2], "
        "sampling_probs=['0.9', '0.08', '0.02'])",
        "replace-one",
        "1",
        "HOLDS",
    ),
]


@pytest.mark.parametrize(("mechanism", "relation", "epsilon", "verdict"), CLAIMS)
def test_certificates_are_valid_and_forged_ones_are_not(
    mechanism: str, relation: str, epsilon: str, verdict: str
) -> None:
    said, data = decided(
        f'kind = "approximate-dp"\nmechanism = "{mechanism}"\nepsilon = "{epsilon}"\n'
        f'delta = "1e-4"\nadjacency = "{relation}"'
    )
    assert said == verdict
    assert checker.check(data).valid
    values = [fact for fact in data["facts"] if "value" in fact]
    for fact in values:
        fact["value"] = {end: str(float(x) * 3) for end, x in fact["value"].items()}
    assert not values or not checker.check(data).valid
