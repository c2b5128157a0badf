"""What a forger writes into the certificate of an audit: nothing false passes, nothing is hidden.

The certificates are genuine but for what each test says, and sealed by the product's own sealer.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpassay.accountant import notation
from dpassay.verifier import checker
from dpassay.verifier.audit import audit, audit_samples, audit_scores, audit_until_refuted
from dpassay.verifier.audit.kinds.replay import replay
from dpassay.verifier.checker import Outcome
from tests.verify.forge import Data, certified, put, sealed

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
        "sequential": lambda: audit_until_refuted(LAPLACE, "0.3", samples=2000, seed=1),
        "samples": lambda: audit_samples(first, second, "0.3", seed=1),
        "scores": lambda: audit_scores(first, second, ("0.1", "0.01"), seed=1),
    }
    return json.dumps(certified("one-run-audit") if name == "run" else made[name]().certificate())


def forged(name: str, *changes: Callable[[Data], Any]) -> checker.Checked:
    data: Data = json.loads(_genuine(name))
    for change in changes:
        change(data)
    return checker.check(sealed(data))


def _one_sided(data: Data) -> None:
    """Nearly all runs are on one dataset, which every run is guessed to be on."""
    data["histogram"], data["event"]["marks"] = [[20_000], [20]], [1]
    data["event"]["favours"] = "first"
    data["counts"] |= {"hits": 20_000, "misses": 20, "runs": 20_020, "other_runs": 20_020}
    data |= {"p_value": 1e-300, "verdict": "REFUTED", "samples": 10_010}
    data |= {"epsilon_lower_bound": 3.0, "delta_lower_bound": 0.0}


@pytest.mark.parametrize("name", ["guesses", "gaussian", "sequential", "samples", "scores"])
def test_what_is_genuine_rests_on_the_runs(name: str) -> None:
    found = forged(name)
    assert found.outcome is Outcome.CONDITIONAL, found.problems
    assert found.verdict == "REFUTED"
    assert "chosen" in found.taken_as_given[0] or "were fixed before" in found.taken_as_given[-1]


def test_no_bound_of_delta_bounds_no_mu() -> None:
    data = json.loads(_genuine("few"))
    assert (data["delta_lower_bound"], data["mu_lower_bound"]) == (0, 0)
    assert forged("few").outcome is Outcome.CONDITIONAL


def test_coins_that_fell_on_one_side_are_not_fair() -> None:
    assert json.loads(_genuine("guesses"))["counts"]["design"] == "guesses"
    found = forged("guesses", _one_sided)
    assert [field for field, _ in found.problems] == ["histogram"]
    assert "fair coin chose" in forged("guesses").taken_as_given[0]


@pytest.mark.parametrize("name", ["guesses", "samples"])
def test_an_event_may_always_be_chosen_too_late(name: str) -> None:
    """All of the risk on one event does not say that it was chosen before the runs."""
    found = forged(name, lambda data: data.update(share=1.0))
    assert found.outcome is Outcome.CONDITIONAL
    assert any("were fixed before" in text for text in found.taken_as_given)


@pytest.mark.parametrize("name", ["samples", "scores", "guesses"])
def test_no_seed_is_said_to_draw_what_it_does_not(name: str) -> None:
    data = json.loads(_genuine(name))
    assert "replay" not in data
    assert "draws them again" not in forged(name).taken_as_given[0]


def test_more_runs_were_counted_than_were_made() -> None:
    found = forged("samples", lambda data: data.update(samples=3))
    assert [field for field, _ in found.problems] == ["samples"]


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("sequential", "p_value", 0.5),
        ("sequential", "evidence", 25.0),
        ("sequential", "rounds.0.right", 10**9),
        ("guesses", "samples", 10**9),
        ("run", "mu_tested.0.delta", "0.5"),
    ],
)
def test_what_is_recounted_has_one_value(name: str, path: str, value: object) -> None:
    assert [field.split(".")[0] for field, _ in forged(name, put(path, value)).problems]


@pytest.mark.parametrize("text", ["-1/5", "0", "-0"])
def test_no_mu_is_below_zero(text: str) -> None:
    def claim(data: Data) -> None:
        data["claim"] |= {"parameter": text, "description": f"{text}-GDP"}

    found = forged("gaussian", claim)
    assert [field for field, _ in found.problems] == ["claim.parameter"]


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
        _put("counts", "hits", value=10**18),
        _put("counts", "misses", value=-1),
        _put("counts", "runs", value=float("nan")),
        _put("counts", "runs", value=10**19),
        _put("histogram", 0, 0, value=-5),
        _put("histogram", 0, 0, value=10**18),
        _put("histogram", value=[[1], [2]]),
        _put("share", value=0.0),
        _put("share", value=2.0),
        _put("share", value=0.01),
        _put("spared", value=0.04),
        _put("tested", "delta", value="2"),
        _put("tested", "delta", value="-1/2"),
        _put("tested", "epsilon", value="-1"),
        _put("tested", "epsilon", value="1/3"),
        _put("claim", "points", 0, "delta", value="1"),
        _put("event", "favours", value="both"),
        _put("event", "marks", 0, value=2),
        _put("event", "marks", value=[]),
        _put("p_value", value=0.0),
        _put("epsilon_lower_bound", value=9.0),
        _put("delta_lower_bound", value=0.9),
        _put("verdict", value="HOLDS"),
        _put("verdict", value="NOT_REFUTED"),
    ],
)
@pytest.mark.parametrize("name", ["guesses", "scores"])
def test_what_does_not_add_up(name: str, change: Callable[[Data], None]) -> None:
    """Counts, shares, points and bounds that no audit has, of both designs."""
    assert forged(name, change).outcome is Outcome.INVALID


def test_sides_may_not_be_swapped() -> None:
    """The same counts, with the datasets exchanged, refute nothing."""
    swapped = forged("scores", lambda data: data["histogram"].reverse())
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
        (_put("seed", value="2"), "histogram"),
        (_put("target", value="Laplace(scale=9)"), "target"),
        (_put("replay", "target", value="Laplace(scale=2)"), "target"),
        (_put("replay", "samples", value=300), "histogram"),
        (_put("replay", "pairs", value=[["0", "5"]]), "pair"),
        (_put("pair", value=["0", "0.5"]), "pair"),
        (_put("pairs_searched", value=9), "pairs_searched"),
        (_put("training_runs", value=1), "training_runs"),
        (_put("samples", value=10**6), "samples"),
        (_put("significance", value=0.9), "spared"),
        (_put("event", "description", value="never"), "event.description"),
        (_put("epsilon_lower_bound", value=0.0), "epsilon_lower_bound"),
        (_put("p_value", value=1.0), "p_value"),
        (_put("advice", value="Proved."), "advice"),
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
        chosen[data["verdict"], data["p_value"] < 1e-20] = not replay((data, False)).any_seed
    assert chosen == {
        ("NOT_REFUTED", False): False,
        ("REFUTED", False): True,
        ("REFUTED", True): False,
    }
