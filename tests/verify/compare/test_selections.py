"""Comparisons of what is chosen by scores, and of counts by keys that come from the data."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import laplace

import dpassay
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.geometry.workload import Quantile, Selection
from dpassay.accountant.mechanisms import (
    ExponentialMechanism,
    LaplaceThreshold,
    PartitionSelection,
    PermuteAndFlip,
)
from dpassay.verifier.claims import ApproximateDP
from dpassay.verifier.kernel import Outcome, check
from dpassay.verifier.verdict import Verdict
from tests.quick import quick


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("candidates", [2, 3, 50])
def test_no_scores_are_farther_from_the_best(candidates: int, monotone: bool) -> None:
    asked = f"Selection({candidates}, 2, {monotone})"
    found = dpassay.compare(asked, epsilon=1, delta="1e-6", metrics=["regret:0.9"])
    (row,) = (row for row in found.rows if row.candidate.name == "exponential mechanism")
    mechanism, limit = row.found.mechanism, row.value("regret:0.9")
    assert isinstance(mechanism, ExponentialMechanism)
    assert limit is not None

    def beyond(scores: list[float], distance: float) -> float:
        chances = [float(p.mid()) for p in mechanism.probabilities(scores)]
        return sum(p for p, u in zip(chances, scores, strict=True) if u <= -distance)

    t = float(limit)
    assert beyond([0.0] + [-t] * (candidates - 1), t) == pytest.approx(0.1, rel=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(50):
        scores = -rng.exponential(t, candidates - 1)
        assert beyond([0.0, *scores], t) <= 0.1 * (1 + 1e-12)


def test_a_quantile_is_a_choice_by_ranks() -> None:
    added, replaced = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
    assert Quantile(9, "3/4").plain(added) == Selection(9, "3/4")
    assert Quantile(9, "1/5").plain(added) == Selection(9, "4/5")
    assert Quantile(9, "1/5").plain(replaced) == Selection(9, 1)


@pytest.mark.parametrize("budget", quick([{"rho": "0.1"}, {"epsilon": 1, "delta": "1e-6"}], 1))
def test_several_choices_are_at_most_those_of_noise(budget: dict[str, Any]) -> None:
    rows = dpassay.compare("Selection(10)", **budget, releases=4).rows
    assert len(rows) == 2
    for row in rows:
        mechanism = row.found.mechanism
        assert row.is_private
        assert isinstance(mechanism, ExponentialMechanism | PermuteAndFlip)
        kind = "Logistic" if isinstance(mechanism, ExponentialMechanism) else "Laplace"
        noise = dpassay.calibrate(kind, **budget, count=4)
        assert isinstance(noise.mechanism, dpassay.Logistic | dpassay.Laplace)
        scale = float(noise.mechanism.scale)
        assert float(mechanism.epsilon) == pytest.approx(1 / scale, rel=1e-10)
        assert float(mechanism.epsilon) <= 1 / scale
        assert row.found.whole == noise.whole


@pytest.mark.parametrize(
    "mechanism",
    quick(
        [
            "PartitionSelection(epsilon='1/3', delta='0.2')",
            "PartitionSelection(epsilon=1, delta='1e-6')",
            "Guaranteed(epsilon='1/3', delta='0.2')",
        ],
        0,
        2,
    ),
)
def test_what_a_mechanism_is_made_for_is_met_with_equality(mechanism: str, tmp_path: Path) -> None:
    made = dpassay.parse(mechanism)
    assert isinstance(made, (PartitionSelection, dpassay.Guaranteed))

    def judged(delta: object) -> tuple[Verdict, Outcome]:
        claim = ApproximateDP(
            id="own",
            source="test",
            statement="Its own.",
            mechanism=mechanism,
            adjacency="add-remove",
            epsilon=str(made.epsilon),
            delta=str(delta),
        )
        finding, certificate = dpassay.certify(claim)
        path = tmp_path / "c.json"
        path.write_text(json.dumps(certificate))
        return finding.verdict, check(json.loads(path.read_text())).outcome

    assert judged(made.delta) == (Verdict.HOLDS, Outcome.VALID)
    less = Fraction(made.delta.rational or 0) * (1 - Fraction(1, 10**30))
    assert judged(less) == (Verdict.REFUTED, Outcome.VALID)


def test_released_keys_reach_the_threshold() -> None:
    mechanism = LaplaceThreshold(scale=2, threshold=10)
    counts = np.array([0, 1, 12, 500])
    shown = mechanism.release(counts, 4000, rng=np.random.default_rng(7))
    assert shown.shape == (4000, 4)
    assert (shown[:, 0] == -1).all()
    assert ((shown == -1) | (shown >= 10)).all()
    # 4000 runs: at a false-alarm rate of 1e-6 a share is within 4.9 standard errors.
    for column, count in enumerate(counts[1:], start=1):
        chance = laplace.sf((10 - count) / 2)
        share = (shown[:, column] >= 0).mean()
        assert abs(share - chance) <= 4.9 * math.sqrt(chance * (1 - chance) / 4000) + 1e-3
    with pytest.raises(InvalidInputError, match="≥ 0"):
        mechanism.release([-1.0])
