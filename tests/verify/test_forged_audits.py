"""What a forger writes into the certificate of an audit: nothing false passes, nothing is hidden.

The certificates are genuine but for what each test says.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpassay.accountant import notation
from dpassay.verifier import kernel as checker
from dpassay.verifier.audit import audit, audit_samples, audit_scores
from dpassay.verifier.audit.auditor import replay
from dpassay.verifier.kernel import Outcome
from tests.verify.forge import Data, certified, put

LAPLACE = notation.parse("Laplace(scale=1)")
GAUSSIAN = notation.parse("Gaussian(standard_deviation=2)")


@functools.cache
def _genuine(name: str) -> str:
    rng = np.random.default_rng(3)
    first, second = rng.laplace(1, 1, 600), rng.laplace(0, 1, 500)
    made: dict[str, Callable[[], Any]] = {
        "guesses": lambda: audit(LAPLACE, "0.5", samples=1000, seed=1),
        "gaussian": lambda: audit(GAUSSIAN, {"mu": "0.2"}, samples=2000, seed=1),
        "few": lambda: audit(GAUSSIAN, {"mu": "0.2"}, samples=200, seed=1),
        "samples": lambda: audit_samples(first, second, "0.3", seed=1),
        "scores": lambda: audit_scores(first, second, ("0.1", "0.01"), seed=1),
    }
    if name == "run":
        return json.dumps(certified("one-run-audit"))
    return json.dumps(made[name]().certificate())


def forged(name: str, *changes: Callable[[Data], Any]) -> checker.Checked:
    data: Data = json.loads(_genuine(name))
    for change in changes:
        change(data)
    return checker.check(data)


def _one_sided(data: Data) -> None:
    """Nearly all runs are on one dataset, which every run is guessed to be on."""
    data["witness"] |= {"histogram": [[20_000], [20]], "marks": [1], "favours": "first"}
    data["theorem"] |= {"p_value": "1e-300", "verdict": "REFUTED"}
    data["theorem"] |= {"epsilon_lower_bound": "3"}


@pytest.mark.parametrize("name", ["guesses", "gaussian", "samples", "scores"])
def test_what_is_genuine_rests_on_the_runs(name: str) -> None:
    found = forged(name)
    assert found.outcome is Outcome.CONDITIONAL, found.problems
    assert str(found.theorem).startswith("REFUTED")
    assert "was chosen before" in found.assumptions[0] or "fixed before" in found.assumptions[-1]


def test_coins_that_fell_on_one_side_are_not_fair() -> None:
    assert json.loads(_genuine("guesses"))["witness"]["design"] == "guesses"
    found = forged("guesses", _one_sided)
    assert [field for field, _ in found.problems] == ["witness.histogram"]
    assert "fair coin chose" in forged("guesses").assumptions[0]


@pytest.mark.parametrize("name", ["guesses", "samples"])
def test_an_event_may_always_be_chosen_too_late(name: str) -> None:
    """All of the risk on one event does not say that it was chosen before the runs."""
    found = forged(name, put("theorem.share", "1"))
    assert found.outcome is Outcome.CONDITIONAL
    assert any("were fixed before" in text for text in found.assumptions)


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("run", "theorem.epsilon_lower_bound", "9"),
        ("run", "theorem.delta", "-1/100000"),
        ("run", "witness.guesses_tried", [1]),
    ],
)
def test_what_is_recounted_has_one_value(name: str, path: str, value: object) -> None:
    assert forged(name, put(path, value)).outcome is Outcome.INVALID


@pytest.mark.parametrize("text", ["-1/5", "0", "-0"])
def test_no_mu_is_below_zero(text: str) -> None:
    def claim(data: Data) -> None:
        data["theorem"]["claim"] |= {"parameter": text, "description": f"{text}-GDP"}

    found = forged("gaussian", claim)
    assert [field for field, _ in found.problems] == ["theorem.claim.parameter"]


def _put(*path: Any, value: Any) -> Callable[[Data], None]:
    def change(data: Data) -> None:
        inner: Any = data
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        _put("witness", "histogram", 0, 0, value=-5),
        _put("witness", "histogram", 0, 0, value=10**15),
        _put("witness", "histogram", 0, 0, value=10**19),
        _put("witness", "histogram", value=[[1], [2]]),
        _put("theorem", "share", value="0"),
        _put("theorem", "share", value="2"),
        _put("theorem", "share", value="1/100"),
        _put("theorem", "tested", "delta", value="2"),
        _put("theorem", "tested", "delta", value="-1/2"),
        _put("theorem", "tested", "epsilon", value="-1"),
        _put("theorem", "tested", "epsilon", value="1/3"),
        _put("theorem", "claim", "points", 0, "delta", value="1"),
        _put("witness", "favours", value="both"),
        _put("witness", "marks", 0, value=2),
        _put("witness", "marks", value=[]),
        _put("theorem", "p_value", value="0"),
        _put("theorem", "epsilon_lower_bound", value="9"),
        _put("theorem", "significance", value="100"),
        _put("theorem", "significance", value="1"),
        _put("theorem", "verdict", value="HOLDS"),
        _put("theorem", "verdict", value="NOT_REFUTED"),
    ],
)
@pytest.mark.parametrize("name", ["guesses", "scores"])
def test_what_does_not_add_up(name: str, change: Callable[[Data], None]) -> None:
    """Counts, shares, points and bounds that no audit has, of both designs."""
    assert forged(name, change).outcome is Outcome.INVALID


def test_sides_may_not_be_swapped() -> None:
    """The same counts, with the datasets exchanged, refute nothing."""
    swapped = forged("scores", lambda data: data["witness"]["histogram"].reverse())
    assert swapped.outcome is Outcome.INVALID


RECIPE = {
    "target": "Laplace(scale=1)",
    "samples": 200,
    "pairs": None,
    "search": None,
    "adjacency": None,
}


@functools.cache
def _replayable() -> str:
    return json.dumps(audit(LAPLACE, "0.3", samples=200, seed=1).certificate(RECIPE))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (_put("witness", "seed", value="2"), "witness.histogram"),
        (_put("theorem", "target", value="Laplace(scale=9)"), "theorem.target"),
        (_put("witness", "replay", "target", value="Laplace(scale=2)"), "theorem.target"),
        (_put("witness", "replay", "samples", value=300), "witness.histogram"),
        (_put("witness", "replay", "pairs", value=[["0", "5"]]), "witness.pair"),
        (_put("witness", "pair", value=["0", "0.5"]), "witness.pair"),
        (_put("witness", "pairs_searched", value=9), "witness.pairs_searched"),
        (_put("witness", "training_runs", value=1), "witness.training_runs"),
        (_put("theorem", "significance", value="0.9"), "theorem.epsilon_lower_bound"),
        (_put("witness", "event", "description", value="never"), "witness.event.description"),
        (_put("theorem", "epsilon_lower_bound", value="0"), "theorem.epsilon_lower_bound"),
        (_put("theorem", "p_value", value="1"), "theorem.p_value"),
    ],
)
def test_a_replay_tells(change: Callable[[Data], None], field: str) -> None:
    data = json.loads(_replayable())
    assert not replay((data, False)).problems
    change(data)
    assert any(path.startswith(field) for path, _ in replay((data, False)).problems)


def test_a_bound_rests_on_the_seed_though_the_verdict_does_not() -> None:
    """One seed in twenty gives a bound that is too large, whatever the p-value of the claim."""
    chosen = {}
    for claim, samples in (("0.3", 200), ("0.1", 400), ("0.1", 1000)):
        found = audit(LAPLACE, claim, samples=samples, seed=1)
        data = json.loads(json.dumps(found.certificate({**RECIPE, "samples": samples})))
        chosen[data["theorem"]["verdict"], float(data["theorem"]["p_value"]) < 1e-20] = not replay(
            (data, False)
        ).any_seed
    assert chosen == {
        ("NOT_REFUTED", False): False,
        ("REFUTED", False): True,
        ("REFUTED", True): False,
    }
