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
from typing import Any

import msgspec
import pytest

from dpassay.accountant.errors import DpassayError
from dpassay.accountant.geometry.spaces import Box
from dpassay.lp.count_noise import optimal_count_noise
from dpassay.lp.integer_noise import IntegerNoiseProblem, optimal_integer_noise
from dpassay.lp.problem import CountNoiseProblem
from dpassay.lp.shapes import GaussianShapeProblem, optimal_gaussian_shape
from dpassay.verifier.ask import verify
from dpassay.verifier.audit import Counts, Design, audit_one_run, p_value
from dpassay.verifier.claims import KINDS
from dpassay.verifier.kernel import Outcome, check
from dpassay.verifier.kernel.schema import require
from dpassay.verifier.processes import check_all
from tests.quick import quick
from tests.verify.forge import CLAIMS, OTHERS, Data, certified, mutants

_SECONDS = 10
"""Of processor time for a mutant; one that takes more is not checked, and does not pass."""
EVERY = 31
"""The default suite looks at every 31st mutant of some certificates."""
EVERY_SLOW = 2
"""Each leaf has some twenty mutants."""


def is_true(data: Data) -> bool:
    """Whether a certificate that passed states something true."""
    whole = require(data)
    theorem, witness = whole["theorem"], whole["witness"]
    if theorem["kind"] not in KINDS:
        return _is_true(theorem, witness)
    claim = {k: _given(v) for k, v in theorem.items() if k not in ("statement", "verdict") and v}
    if theorem["verdict"] == "REFUTED":  # in the case that it names
        grids = {name: [value] for name, value in witness["case"].items()}
        claim = {**claim, "where": grids, "for_all": {}}
        if theorem["kind"] == "minimiser":
            claim["at"] = sorted({theorem["claimed"], witness["rival"]}, key=Fraction)
    by = {"method": "sweep"} if theorem["verdict"] == "HOLDS" and theorem["for_all"] else {}
    claim |= {"id": "c", "source": "", "proof": witness.get("proof", by)}
    if claim.get("mu") == "0":  # no guarantee that may be claimed, and the same as 0-DP
        claim |= {"kind": "pure-dp", "epsilon": claim.pop("mu")}
    found = _decided(json.dumps(claim))
    if theorem["verdict"] == "ARGUED":
        return found != "REFUTED"
    if found == theorem["verdict"] or (found, theorem["verdict"]) == ("HOLDS", "SUPPORTED"):
        return True
    is_range = theorem["verdict"] == "HOLDS" and bool(theorem["for_all"])
    return is_range and found != "REFUTED" and _at_points(claim)


def _at_points(claim: Data) -> bool:
    """Whether a claim over ranges that nothing but the kernel proves is true at 17 points of each.

    Of a range without points nothing is said.
    """
    grids = {}
    for name, domain in claim["for_all"].items():
        ends = [domain.get("low", domain.get("above")), domain.get("high", domain.get("below"))]
        try:
            low, high = (None if end is None else Fraction(end) for end in ends)
        except ValueError:
            return False
        low = low if low is not None else (Fraction(0) if high is None else high - 16)
        high = high if high is not None else low + 16
        points = [low + (high - low) * k / 16 for k in range(17)]
        points = points[1 * ("above" in domain) : len(points) - 1 * ("below" in domain)]
        points = [point for point in points if point.denominator == 1 or not domain.get("integer")]
        if low > high or not points:
            return True
        grids[name] = [str(point) for point in points]
    if claim["kind"] == "approximate-dp":
        about = [claim["mechanism"], claim["epsilon"]]
        about += [f"adjacency='{claim['adjacency']}'"] if "adjacency" in claim else []
        words = {"kind": "relation", "claim": f"delta({', '.join(about)}) <= {claim['delta']}"}
        words |= {"let": claim["let"]} if "let" in claim else {}
    elif claim["kind"] == "relation":
        words = {k: v for k, v in claim.items() if k not in ("for_all", "proof")}
    else:
        return False
    where = {**claim.get("where", {}), **grids}
    return _decided(json.dumps({**words, "id": "c", "source": "", "where": where})) == "HOLDS"


def _given(value: Any) -> Any:
    """Return a record without the fields that are left out."""
    if isinstance(value, dict):
        other = {"Box": ("signed",), "IntegerNoise": ("objective",)}.get(value.get("type", ""), ())
        kept = {k: v for k, v in value.items() if v not in (None, "", []) and k not in other}
        return {key: _given(entry) for key, entry in kept.items()}
    return value


def _is_true(theorem: Data, witness: Data) -> bool:
    match theorem["kind"]:
        case "audit":
            return _audit(theorem, witness)
        case "one-run-audit":
            return _one_run(theorem, witness)
        case kind:
            given = ("kind", "verdict", "lower", "upper")
            asked = {k: v for k, v in theorem.items() if k not in given}
            try:
                low, high = _optimum(kind, json.dumps(asked))
            except DpassayError:
                return False
            return low <= Fraction(theorem["upper"]) and Fraction(theorem["lower"]) <= high


@functools.cache
def _decided(text: str) -> str:
    claim = json.loads(text)
    if claim["kind"] == "relation":  # asked without a relation, its questions must agree on both
        claim.pop("adjacency", None)
    for domain in claim.get("for_all", {}).values():
        domain |= {"statement": "", "grid": domain.get("grid") or [domain.get("high")]}
    try:
        return str(verify(msgspec.convert(claim, KINDS[claim["kind"]])).verdict.value)
    except (DpassayError, msgspec.ValidationError, ArithmeticError) as error:
        return str(error)


@functools.cache
def _optimum(kind: str, text: str) -> tuple[Fraction, Fraction]:
    asked = json.loads(text)
    value: Any
    if kind == "gaussian-shape":
        bounds = json.loads(asked["space"].removeprefix("Box(bounds=").removesuffix(")"))
        problem = GaussianShapeProblem(Box(bounds), asked["objective"], asked["weights"])
        value = optimal_gaussian_shape(problem).value
    elif kind == "count-noise":
        value = optimal_count_noise(CountNoiseProblem(**asked)).delta
    else:
        asked["costs"] = asked["costs"] or None
        value = optimal_integer_noise(IntegerNoiseProblem(**asked)).value
    return Fraction(value.lower), Fraction(value.upper)


def _audit(theorem: Data, witness: Data) -> bool:
    """Compare with the auditor's p-value, which has fewer cells: 0.7 of it at least is the same."""
    marks, histogram = witness["marks"], witness["histogram"]
    first, second = histogram if witness["favours"] == "first" else histogram[::-1]

    def count(row: list[int], mark: int) -> int:
        return sum(n for n, own in zip(row, marks, strict=True) if own == mark)

    if witness["design"] == "guesses":
        runs = sum(first) + sum(second)
        right = count(first, 1) + count(second, -1)
        counts = Counts(right, runs, count(second, 1) + count(first, -1), runs, Design.GUESSES)
    else:
        counts = Counts(count(first, 1), sum(first), count(second, 1), sum(second), Design.SIDES)
    tested = [float(Fraction(theorem["tested"][name])) for name in ("epsilon", "delta")]
    stated, level, share = (
        float(Fraction(theorem[name])) for name in ("p_value", "significance", "share")
    )
    found = p_value(counts, *tested, spared=0.01 * min(stated, level) * share) / share
    points = theorem["claim"]["points"]
    claimed = theorem["claim"]["kind"] == "epsilon-delta" and theorem["tested"] in points
    enough = stated >= 0.7 * min(1.0, found)
    return bool(claimed and enough and (theorem["verdict"] == "REFUTED") == (stated <= level < 1))


def _one_run(theorem: Data, witness: Data) -> bool:
    """Audit the scores again, with the numbers of guesses that are stated."""
    points = [(each["epsilon"], each["delta"]) for each in theorem["claim"]["points"]]
    number = {
        name: float(Fraction(theorem[name]))
        for name in ("delta", "significance", "p_value", "epsilon_lower_bound")
    }
    try:
        found = audit_one_run(
            [float(Fraction(score)) for score in witness["scores"]],
            [coin == "1" for coin in witness["included"]],
            points,
            delta=number["delta"],
            guesses=witness["guesses_tried"],
            significance=number["significance"],
            seed=int(witness["seed"]),
        )
    except DpassayError:
        return False
    room = 1 + 1e-5
    refuted = number["p_value"] <= number["significance"]
    return bool(
        number["epsilon_lower_bound"] <= found.epsilon * room
        and number["p_value"] * room >= (found.p_value or 0.0)
        and (theorem["verdict"] == "REFUTED") == refuted
    )


def _forge(names: list[str], every: int) -> tuple[dict[str, Counter[str]], list[str]]:
    """Check mutants; return the outcomes, and those that pass and state something false."""
    outcomes: dict[str, Counter[str]] = {name: Counter() for name in names}
    chosen = [
        (name, mutant)
        for name in names
        for mutant in itertools.islice(mutants(certified(name)), 0, None, every)
    ]
    found = check_all((mutant.make() for _, mutant in chosen), seconds=_SECONDS)
    wrong = []
    for (name, mutant), checked in zip(chosen, found, strict=True):
        outcome = checked.outcome
        outcomes[name][outcome.value] += 1
        passed = outcome is Outcome.VALID or (name in OTHERS and outcome is Outcome.CONDITIONAL)
        crashed = "Please report" in str(checked)
        unproved = any("the theorem itself" in text for text in checked.assumptions)
        if crashed or (passed and not unproved and not is_true(mutant.make())):
            wrong.append(f"{name}: {mutant.change} {checked}")
    return outcomes, wrong


@pytest.mark.parametrize("name", [*OTHERS, *quick(CLAIMS)])
def test_what_is_genuine_is_true(name: str) -> None:
    data = certified(name)
    assert check(data).problems == ()
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
