"""Every leaf of every kind of genuine certificate changed: what passes states something true.

Truth is decided by another program than the checker's: `dpassay verify`'s own machinery decides
the mutated claim anew, an optimum is solved again, an audit's p-value is computed by the auditor.
Where that leaves a claim undecided, a mutant may not pass.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections import Counter
from fractions import Fraction

import msgspec
import pytest

from dpassay.accountant.errors import DpassayError
from dpassay.accountant.geometry.spaces import Box
from dpassay.lp.count_noise import optimal_count_noise
from dpassay.lp.integer_noise import optimal_integer_noise
from dpassay.lp.integer_problem import IntegerNoiseProblem
from dpassay.lp.problem import CountNoiseProblem
from dpassay.lp.shape_problem import GaussianShapeProblem
from dpassay.lp.shapes import optimal_gaussian_shape
from dpassay.verifier import checker
from dpassay.verifier.audit import Counts, Design, audit_one_run, p_value
from dpassay.verifier.audit.kinds.rounds import Evidence, Round
from dpassay.verifier.checker import Outcome, apart
from dpassay.verifier.claims import KINDS
from dpassay.verifier.exact import verify
from tests.quick import quick
from tests.verify.forge import CLAIMS, OTHERS, Data, certified, mutants

_SECONDS = 10
"""Of processor time for a mutant; one that takes more is not checked, and does not pass."""
EVERY = 193
"""The default suite looks at every 193rd mutant of some certificates."""
EVERY_SLOW = 11
"""Each leaf has some twenty mutants."""


def is_true(data: Data) -> bool:
    """Whether a certificate that passed states something true."""
    match data.get("kind"):
        case "audit":
            return _audit(data)
        case "sequential-audit":
            return _bets(data)
        case "one-run-audit":
            return _one_run(data)
        case "count-noise" | "integer-noise" | "gaussian-shape" as kind:
            key = "problem" if kind == "count-noise" else "given"
            stated = data["delta"] if kind == "count-noise" else data["optimum"]
            try:
                low, high = _optimum(kind, json.dumps(data[key]))
            except DpassayError:
                return False
            return low <= Fraction(stated["upper"]) and Fraction(stated["lower"]) <= high
    claim = {key: value for key, value in data["claim"].items() if key != "statement"}
    if data["verdict"] == "REFUTED":  # in the case that it names
        grids = {name: [value] for name, value in data["case"].items()}
        claim = {**claim, "where": grids, "for_all": {}}
    found = _decided(json.dumps(claim))
    return found == data["verdict"] or (found, data["verdict"]) == ("HOLDS", "SUPPORTED")


@functools.cache
def _decided(text: str) -> str:
    claim = json.loads(text)
    for domain in claim.get("for_all", {}).values():
        domain.setdefault("statement", "")
    try:
        return verify(msgspec.convert(claim, KINDS[claim["kind"]])).verdict.value
    except (DpassayError, msgspec.ValidationError, ArithmeticError) as error:
        return str(error)


@functools.cache
def _optimum(kind: str, text: str) -> tuple[Fraction, Fraction]:
    asked = json.loads(text)
    if kind == "gaussian-shape":
        space = Box(asked["space"]["bounds"])
        value = optimal_gaussian_shape(
            GaussianShapeProblem(space, asked["objective"], asked["weights"])
        ).value
    elif kind == "count-noise":
        value = optimal_count_noise(CountNoiseProblem(**asked)).delta
    else:
        value = optimal_integer_noise(IntegerNoiseProblem(**asked)).value
    return Fraction(value.lower), Fraction(value.upper)


def _audit(data: Data) -> bool:
    """Compare with the auditor's p-value, which has fewer cells: 0.7 of it at least is the same."""
    counts = Counts(**{**data["counts"], "design": Design(data["counts"]["design"])})
    tested = [float(Fraction(data["tested"][name])) for name in ("epsilon", "delta")]
    found = p_value(counts, *tested, spared=data["spared"])
    refuted = data["p_value"] <= data["significance"] < 1
    claimed = data["claim"]["kind"] == "epsilon-delta" and data["tested"] in data["claim"]["points"]
    enough = data["p_value"] >= 0.7 * found
    return bool(claimed and enough and (data["verdict"] == "REFUTED") == refuted)


def _one_run(data: Data) -> bool:
    """Audit the scores again, with the numbers of guesses that are stated."""
    scores = [float(each) for text in data["scores"] for each in text.split()]
    coins = [coin == "1" for text in data["included"] for coin in text]
    points = [(each["epsilon"], each["delta"]) for each in data["claim"]["points"]]
    try:
        found = audit_one_run(
            scores,
            coins,
            points,
            delta=data["delta"],
            guesses=data["guesses_tried"],
            significance=data["significance"],
            seed=int(data["seed"]),
        )
    except DpassayError:
        return False
    room = 1 + 1e-5
    refuted = data["p_value"] <= data["significance"]
    return bool(
        data["epsilon_lower_bound"] <= found.epsilon * room
        and data["mu_lower_bound"] <= found.mu * room
        and data["p_value"] * room >= (found.p_value or 0.0)
        and (data["verdict"] == "REFUTED") == refuted
    )


def _bets(data: Data) -> bool:
    evidence = Evidence()
    for entry in data["rounds"]:
        plain = {key: value for key, value in entry.items() if key != "tested"}
        evidence.add(Round(**entry["tested"], **plain))
    stated, level = float(data["evidence"]), float(data["significance"])
    refuted = bool(data["verdict"] == "REFUTED")
    return stated <= evidence.best * (1 + 1e-5) and refuted == (stated * level >= 1)


def _forge(names: list[str], every: int) -> tuple[dict[str, Counter[str]], list[str]]:
    """Check mutants; return the outcomes, and those that pass and state something false."""
    outcomes: dict[str, Counter[str]] = {name: Counter() for name in names}
    chosen = [
        (name, mutant)
        for name in names
        for mutant in itertools.islice(mutants(certified(name)), 0, None, every)
    ]
    found = apart.check_all((mutant.data for _, mutant in chosen), seconds=_SECONDS)
    wrong = []
    for (name, mutant), checked in zip(chosen, found, strict=True):
        outcome = checked.outcome
        outcomes[name][outcome.value] += 1
        passed = outcome is Outcome.VALID or (name in OTHERS and outcome is Outcome.CONDITIONAL)
        crashed = "Please report" in checked.not_checked
        if crashed or (passed and not is_true(mutant.data)):
            wrong.append(f"{name}: {mutant.change} {checked.not_checked}")
    return outcomes, wrong


@pytest.mark.parametrize("name", [*OTHERS, *quick(CLAIMS)])
def test_what_is_genuine_is_true(name: str) -> None:
    data = certified(name)
    assert checker.check(data).problems == []
    assert is_true(data)


def test_a_sample_of_forgeries() -> None:
    names = [*CLAIMS, *OTHERS][::6]
    outcomes, wrong = _forge(names, EVERY)
    assert wrong == []
    assert all(outcomes[name]["INVALID"] > 0 for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("group", range(8))
def test_forgeries_of_every_leaf(group: int) -> None:
    """Certificates of one group are checked by one process."""
    names = [*CLAIMS, *OTHERS][group::8]
    outcomes, wrong = _forge(names, EVERY_SLOW)
    assert wrong == []
    assert all(outcomes[name].total() > 40 for name in names)
