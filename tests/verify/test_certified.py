"""Claims about products and samples: verdict, certificate, independent check, and false ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dpassay.verifier.kernel import Outcome, check
from tests.quick import quick
from tests.tables import rows
from tests.verify.forge import Data, decided

HERE = Path(__file__).parent
MECHANISMS = {row[0]: row[1] for row in rows(HERE / "certified_mechanisms.txt")}
FIELDS = {
    "dp": ("approximate-dp", "epsilon", "delta"), "pure": ("pure-dp", "epsilon"),
    "rho": ("zcdp", "rho"), "mu": ("gaussian-dp", "mu"), "renyi": ("renyi-dp", "order", "epsilon"),
}  # fmt: skip
RELATIONS = {"-": None, "both": "add-remove", "one": "replace-one"}


@cache
def _certified(row: str) -> tuple[str, str]:
    kind, name, relation, *numbers = row.split()
    mechanism = MECHANISMS.get(name, name)
    tag, *names = FIELDS[kind]
    fields: dict[str, Any] = dict(zip(names, numbers, strict=True))
    if RELATIONS[relation]:
        fields["adjacency"] = RELATIONS[relation]
    lines = "".join(f'{key} = "{value}"\n' for key, value in fields.items())
    said, data = decided(f'kind = "{tag}"\nmechanism = "{mechanism}"\n{lines}')
    assert data
    return said, json.dumps(data)


def certified(row: str) -> Data:
    return dict(json.loads(_certified(" ".join(row.split()))[1]))


def claims() -> list[Any]:
    table = [line.split() for (line,) in rows(HERE / "certified.txt")]
    slow = [pytest.mark.slow]
    return [
        pytest.param(
            verdict, " ".join(word for word in words if word not in ("slow", "given")),
            "given" in words, marks=slow if "slow" in words else [],
            id=f"{verdict} {' '.join(words)}",
        )
        for verdict, *words in table
    ]  # fmt: skip


@pytest.mark.parametrize(("verdict", "row", "given"), claims())
def test_a_claim_is_decided_and_its_certificate_accepted(
    verdict: str, row: str, given: bool
) -> None:
    assert _certified(row)[0] == verdict
    checked = check(certified(row))
    assert checked.outcome is (Outcome.CONDITIONAL if given else Outcome.VALID), str(checked)


def _everywhere(old: str, new: str) -> Callable[[Data], Data]:
    """Replace a text wherever it stands."""

    def change(data: Data) -> Data:
        text = json.dumps(data)
        assert old in text
        return dict(json.loads(text.replace(old, new)))

    return change


def _in_claim(**changes: str) -> Callable[[Data], Data]:
    def change(data: Data) -> Data:
        return {**data, "theorem": data["theorem"] | changes}

    return change


TRAINING = "dp training both 2 1e-5"
REPLACED, ANSWERS, FIXED = (
    "dp replaced one 0.3 0.001", "dp three-answers one 4 0.001", "dp fixed-size one 0.1 0.01",
)  # fmt: skip
STEP_ONCE, MANY = "dp step both 1 2.1e-13", "dp laplace-1000 both 20 1e-6"
FALSE: list[tuple[str, Callable[[Data], Data]]] = [
    (TRAINING, _in_claim(delta="2.4e-7")),
    (TRAINING, _in_claim(epsilon="1.5")),
    (TRAINING, _everywhere("count=7032", "count=70320")),
    (TRAINING, _everywhere("256/60000", "384/60000")),
    (TRAINING, _in_claim(verdict="REFUTED")),
    (TRAINING, _in_claim(adjacency="replace-one")),
    ("dp both both 1 1e-6", _in_claim(delta="1e-30")),
    (STEP_ONCE, _everywhere("256/60000", "288/60000")),
    (STEP_ONCE, _in_claim(adjacency="replace-one")),
    (REPLACED, _everywhere("'0.1'", "'0.5'")),
    (ANSWERS, _in_claim(epsilon="1")),
    (MANY, _everywhere("count=1000", "count=2000")),
    ("dp integers both 5 0.1", _in_claim(delta="1e-9")),
    ("dp listed-samples both 1 0.01", _everywhere("count=12", "count=1300")),
    ("renyi training both 8 2", _in_claim(order="80")),
    ("mu three-and-step both 3.1", _in_claim(mu="3")),
    ("mu coarse both 7", _in_claim(mu="5")),
    ("mu tree-few-outputs - 0.82", _in_claim(mu="0.7817")),
    ("rho training both 3000", _in_claim(rho="0.1")),
    ("rho laplace both 0.36789", _in_claim(rho="0.3678")),
    ("dp shuffled-4 - 1 0", _in_claim(epsilon="0.0001")),
    *((f"dp {row} 1e-4", _in_claim(delta="1e-30")) for row in (
        "groups one 1",
    )),
]  # fmt: skip


@pytest.mark.parametrize(("row", "change"), quick(FALSE, 0, 1, *range(7, len(FALSE))))
def test_what_is_false_is_never_valid(row: str, change: Callable[[Data], Data]) -> None:
    genuine = certified(row)
    changed = change(genuine)
    assert changed != genuine
    assert check(changed).outcome is not Outcome.VALID
