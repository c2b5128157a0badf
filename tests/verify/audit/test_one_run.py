"""One-run audits: the bound against every mechanism with few canaries, the level, the power."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb
from scipy import optimize, sparse, stats

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier import kernel as checker
from dpassay.verifier.audit import audit_one_run, canaries_needed
from dpassay.verifier.audit.exact_test import gaussian_delta
from dpassay.verifier.audit.guarantees import Outcome, gaussian
from dpassay.verifier.audit.one_run import (
    BothOrders,
    bound,
    bound_of_claim,
    curve_bound,
    tail_bound,
)
from dpassay.verifier.kernel.statistics import BITS, one_run_bound
from tests.quick import slow

ROUNDING = 1e-5
"""Relative: what the bound adds for rounding, and what the solver of linear programs loses."""


def best_mechanism(m: int, r: int, v: int, points: list[tuple[float, float]]) -> float:
    """Return max P(at least v of r guesses are right) over all mechanisms, by a linear program."""
    inputs = list(itertools.product((-1, 1), repeat=m))
    outputs = [t for t in itertools.product((-1, 0, 1), repeat=m) if sum(map(abs, t)) == r]
    at = {(s, t): i for i, (s, t) in enumerate(itertools.product(inputs, outputs))}
    gain = np.zeros(len(at))
    for (s, t), i in at.items():
        gain[i] = (sum(x == y for x, y in zip(s, t, strict=True)) >= v) / len(inputs)
    rows: list[int] = []
    columns: list[int] = []
    entries: list[float] = []
    limits: list[float] = []
    slack = len(at)
    for s, j, (epsilon, delta) in itertools.product(inputs, range(m), points):
        other = (*s[:j], -s[j], *s[j + 1 :])
        first = slack
        for t in outputs:  # p_s(t) − e^ε p_s'(t) ≤ z
            rows += [len(limits)] * 3
            columns += [at[s, t], at[other, t], slack]
            entries += [1.0, -math.exp(epsilon), -1.0]
            limits.append(0.0)
            slack += 1
        rows += [len(limits)] * len(outputs)
        columns += range(first, slack)
        entries += [1.0] * len(outputs)
        limits.append(delta)
    sums = sparse.csr_array(
        (np.ones(len(at)), ([inputs.index(s) for s, _ in at], list(at.values()))),
        shape=(len(inputs), slack),
    )
    equal_one: Any = sums
    below: Any = sparse.csr_array((entries, (rows, columns)), shape=(len(limits), slack))
    found = optimize.linprog(
        -np.concatenate([gain, np.zeros(slack - len(at))]),
        A_ub=below,
        b_ub=limits,
        A_eq=equal_one,
        b_eq=np.ones(len(inputs)),
        method="highs",
    )
    assert found.fun is not None
    return -float(found.fun)


@pytest.mark.parametrize(
    ("m", "r", "v"), [(1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2), (3, 2, 2), (3, 3, 2), (3, 3, 3)]
)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.02), (0.7, 0.01), (2.0, 0.0), (2.0, 0.1)])
def test_the_bound_is_the_best_that_any_mechanism_does(
    m: int, r: int, v: int, epsilon: float, delta: float
) -> None:
    found = float(tail_bound(v, r, m, epsilon, delta)[0])
    best = best_mechanism(m, r, v, [(epsilon, delta)])
    assert best <= found * (1 + ROUNDING)
    assert found <= best * (1 + ROUNDING)


@pytest.mark.parametrize(("m", "r", "v"), [(1, 1, 1), (2, 2, 2), (3, 2, 2), (3, 3, 2), (3, 3, 3)])
@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
def test_no_mechanism_with_a_curve_does_more_than_its_bound(
    m: int, r: int, v: int, mu: float
) -> None:
    epsilons = np.array([0.0, 0.4, 1.0, 2.0, 3.5])
    curve = gaussian_delta(mu, epsilons)
    best = best_mechanism(m, r, v, list(zip(epsilons.tolist(), curve.tolist(), strict=True)))
    both = BothOrders.of(epsilons, curve)
    single = float(tail_bound(v, r, m, epsilons, curve).min())
    found, places = curve_bound(v, r, m, both, 0.5)
    assert best <= min(single, found) * (1 + ROUNDING)
    assert min(single, found) <= 1.15 * best  # sets of counts that are no tails would give the rest
    rng = np.random.default_rng(1)
    for _ in range(20):  # any points of the curve make it true
        some = rng.integers(0, 2 * len(epsilons), len(places) or 1).tolist()
        assert best <= bound(v, r, m, both, some) * (1 + ROUNDING)


def test_the_bound_where_masses_underflow() -> None:
    far = tail_bound(2000, 2000, 2000, 0.0, 1e-300)  # P(W = 2000) = 2^-2000
    assert 1e-300 <= float(far[0]) <= 1e-289
    assert 0 < float(tail_bound(2000, 2000, 2000, 0.0, 0.0)[0]) <= 1e-289
    assert list(tail_bound(0, 9, 9, [0.0, 1.0], 0.0)) == [1, 1]


@pytest.mark.parametrize("missed", [0, slow(1), slow(7), slow(60), slow(300)])
def test_the_bound_is_that_of_many_digits(missed: int) -> None:
    """Where β is below what doubles hold and P(W = v) just above it, nothing is refuted by that."""
    r, m = 1250, 20_000
    for epsilon in (0.0, 0.1, 0.134, 0.2, 1.0, 3.0, 8.0):
        for delta in (0.0, 1e-9, 0.34):
            found = float(tail_bound(r - missed, r, m, epsilon, delta)[0])
            with ctx.workprec(BITS):
                exact = float(one_run_bound(r - missed, r, m, [(arb(epsilon), arb(delta))]))
            assert exact <= found <= max(exact * (1 + ROUNDING), 1e-289)


def test_the_level_under_canaries_that_are_spoiled_together() -> None:
    # One loss of N(mu, 1) against N(0, 1), and randomised response with its size on every coin:
    # exactly mu-GDP. At most 5 % of audits may accuse it; their number exceeds the bound below with
    # probability 1e-6.
    mu, m, audits = 1.0, 100, 20_000
    rng = np.random.default_rng(7)
    loss = np.abs(mu * rng.normal(size=audits) + mu**2 / 2 * rng.choice([-1, 1], audits))
    right = rng.binomial(m, 1 / (1 + np.exp(-loss)))
    claim = gaussian(mu)
    p_values = np.array([bound_of_claim(v, m, m, claim) for v in range(m + 1)])[right]
    accused = int((p_values <= 0.05).sum())
    assert accused <= stats.binom.isf(1e-6, audits, 0.05)
    # tests that take the canaries for independent accuse it more often than their level
    naive = stats.binom.sf(right - 1, m, stats.norm.cdf(mu / 2)) <= 0.05
    assert naive.mean() > 0.15


def test_a_private_run_is_spared_and_a_leak_is_found() -> None:
    rng = np.random.default_rng(3)
    coins = rng.random(2000) < 0.5
    leak = audit_one_run(coins * 3.0 + rng.normal(size=2000), coins, (1, "1e-5"))
    assert leak.refuted
    assert leak.epsilon > 2
    assert leak.mu is not None
    assert leak.mu > 0.5
    assert "epsilon(0.00001) >= 4." in str(checker.check(leak.certificate()).theorem)
    private = audit_one_run(rng.normal(size=2000), coins, "0.1")
    assert private.outcome is private.verdict is Outcome.NOT_REFUTED
    assert private.epsilon <= 0.1
    nothing = audit_one_run(rng.normal(size=2000), coins)
    assert nothing.outcome is None
    assert nothing.verdict is None
    assert "epsilon(1e-5) ≥" in str(nothing)


@pytest.mark.slow
def test_a_run_answers_as_other_audits_do(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    coins = rng.random(1000) < 0.5
    scores = 2.0 * coins + rng.normal(size=1000)  # mu = 2
    found = audit_one_run(scores, coins, delta=1e-5, seed=1)
    for epsilon in (0, 0.5, 1, 2):
        assert 0 < found.delta(epsilon) <= gaussian_delta(2.0, epsilon)
    assert found.epsilon > 1
    assert gaussian_delta(2.0, found.epsilon) > 1e-5
    told = json.loads(json.dumps(found.to_json()))
    assert (told["canaries"], told["verdict"]) == (1000, None)
    assert told["right"] == found.counts.hits
    assert found._repr_html_().startswith("<div>")
    found.plot(tmp_path / "one-run.png")
    assert (tmp_path / "one-run.png").stat().st_size > 10_000


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 4.0])
def test_bounds_of_delta_are_where_the_tail_passes_the_level(epsilon: float) -> None:
    coins = np.arange(500) % 2 == 0
    found = audit_one_run(coins + 0.8 * np.cos(np.arange(500)), coins, seed=1)
    guesses = found.guesses
    assert guesses is not None
    bound = guesses.delta(epsilon)
    assert bound > 0

    def least_tail(delta: float) -> float:
        return min(
            float(tail_bound(v, r, 500, epsilon, delta)[0]) for r, v in guesses.right.items()
        )

    assert least_tail(bound) <= guesses.level < least_tail(bound * (1 + 1e-6))


def test_equal_scores_tell_nothing_whatever_the_order_of_the_canaries() -> None:
    coins = np.repeat([True, False], 500)
    scores = np.zeros(1000)
    scores[0] = 1.0
    assert audit_one_run(scores, coins).epsilon == 0


def test_the_plan_is_enough() -> None:
    epsilon, truth = 1.0, 2.0
    m = canaries_needed(epsilon, truth)
    chance = 1 / (1 + math.exp(-truth))
    least = next(v for v in range(m + 1) if float(tail_bound(v, m, m, epsilon, 1e-5)[0]) <= 0.05)
    assert stats.binom.sf(least - 1, m, chance) >= 0.9
    assert canaries_needed(1, 2, delta=0.02) > canaries_needed(1, 2, delta=0)
    with pytest.raises(InvalidInputError, match="truth=1"):
        canaries_needed(2, 1)
    with pytest.raises(InvalidInputError, match="smaller delta"):
        canaries_needed(8, 8.0001, delta=0.01)


# ------------------------------------------------------------ certificates


def _made(claim: Any, scale: float = 1.0) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    coins = rng.random(600) < 0.5
    scores = np.round(coins * 2.0 + scale * rng.normal(size=600), 1)  # many are equal
    data: dict[str, Any] = json.loads(
        json.dumps(audit_one_run(scores, coins, claim, seed=3).certificate())
    )
    return data


@pytest.mark.parametrize(
    ("claim", "scale"),
    [(1, 1.0), ((1, "1e-5"), 50.0), ({"mu": "0.3"}, 1.0), ({"mu": "sqrt(2)"}, 50.0), (4, 1.0)],
)
def test_the_scores_are_counted_again(claim: Any, scale: float) -> None:
    found = checker.check(_made(claim, scale))
    assert found.outcome is checker.Outcome.CONDITIONAL, found.problems
    assert "fair coin" in found.assumptions[0]
    assert "fixed before" in found.assumptions[1]


_POINT = {"epsilon": "1", "delta": "0", "reversed": False}
FORGED: list[tuple[str, dict[str, Any]]] = [
    ("theorem.p_value", {"theorem": {"p_value": "1e-9"}}),
    ("theorem.verdict", {"theorem": {"verdict": "NOT_REFUTED"}}),
    ("theorem.epsilon_lower_bound", {"theorem": {"epsilon_lower_bound": "9"}}),
    ("witness.guesses_tried", {"witness": {"guesses_tried": [600, 600, 150, 37, 9]}}),
    ("witness.guesses_tried", {"witness": {"guesses": 17}}),
    ("theorem.p_value", {"witness": {"guesses_tried": [600, *range(200, 301), 150, 37, 9]}}),
    ("witness.included", {"witness": {"included": "1" * 600}}),
    ("witness.included", {"witness": {"included": "2" * 600}}),
    ("witness.included", {"witness": {"included": "01" * 250}}),
    ("witness.tested", {"witness": {"tested": [_POINT]}}),
]


@pytest.fixture(scope="module")
def honest() -> dict[str, Any]:
    return _made({"mu": "0.3"})


@pytest.mark.parametrize(("field", "change"), FORGED)
def test_what_is_forged_is_named(
    field: str, change: dict[str, Any], honest: dict[str, Any]
) -> None:
    forged = {name: {**honest[name], **fields} for name, fields in change.items()}
    found = checker.check({**honest, **forged})
    assert field in {path.split("[")[0] for path, _ in found.problems}


def test_other_scores_than_were_counted() -> None:
    data = _made(1)
    data["witness"]["scores"].reverse()
    assert "theorem.p_value" in dict(checker.check(data).problems)
    data["witness"]["scores"] = ["nan"] * 600
    assert "witness.scores[0]" in dict(checker.check(data).problems)


def test_nothing_is_certified_where_nothing_is_claimed() -> None:
    rng = np.random.default_rng(5)
    with pytest.raises(InvalidInputError, match="needs a claim"):
        audit_one_run(rng.normal(size=50), rng.random(50) < 0.5).certificate()
