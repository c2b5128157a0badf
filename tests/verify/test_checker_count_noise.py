"""The checker of optimal count noise accepts proofs, and names the field of every forgery."""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from lp.count_noise import optimal_count_noise
from lp.problem import CountNoiseProblem
from lp.report import certificate
from verify import seal
from verify.checker import check

Data = dict[str, Any]


def made(**options: Any) -> Data:
    solution = optimal_count_noise(CountNoiseProblem(**options))
    data: Data = json.loads(json.dumps(certificate(solution)))
    return data


def problems(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Check data under a new seal."""
    plain = {key: value for key, value in data.items() if key != "seal"}
    return check({**plain, "seal": seal.seal(plain)}).problems


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": "1.5", "eta": "1/2", "support": 6, "max_count": 20},
        {"epsilon": "2.2", "eta": "0.7", "support": 16, "max_count": 1_000_000},
        {"epsilon": "2.2", "eta": "0.3", "support": 16},
        {"epsilon": "1.5", "eta": "1/10", "support": 6, "max_count": 20},
        {"epsilon": "sqrt(2)", "eta": "1/2", "support": 4},
        {"epsilon": 0, "eta": "1/2", "support": 3, "max_count": 30},
        {"ratio": 3, "eta": "1/2", "support": 4, "max_count": 3},
        {"ratio": 3, "eta": "4/5", "support": 4},
        {"epsilon": 1, "eta": "1/2", "support": 4, "max_count": 1},
        {"epsilon": 1, "eta": "1/2", "support": 3, "objective": "true-delta"},
        {"ratio": 3, "eta": "1/2", "support": 3, "max_count": 5, "objective": "true-delta"},
        {"epsilon": 2, "eta": "1/2", "support": 3, "max_count": 99, "objective": "true-delta"},
    ],
)
def test_accepts_proofs(options: dict[str, Any]) -> None:
    data = made(**options)
    assert problems(data) == []
    assert check(data | {"seal": seal.seal(data)}).valid


@functools.cache
def _bases() -> dict[str, Data]:
    ordinary = {"epsilon": "1.5", "eta": "1/2", "support": 3, "max_count": 6}
    return {
        "by-count": made(**ordinary),
        "one-law": made(epsilon="1.5", eta="1/2", support=3),
        "exact": made(ratio=3, eta="1/2", support=3),
        "true": made(**ordinary, objective="true-delta"),
    }


def _scaled(place: str, key: str, factor: str) -> Callable[[Data], None]:
    def forge(data: Data) -> None:
        data[place][key] = str(Fraction(data[place][key]) * Fraction(factor))

    return forge


def _set(path: str, value: object) -> Callable[[Data], None]:
    *parents, last = path.split(".")

    def forge(data: Data) -> None:
        inner: Any = data
        for key in parents:
            inner = inner[int(key) if key.isdigit() else key]
        inner[int(last) if last.isdigit() else last] = value

    return forge


def _moved_mass(data: Data) -> None:
    law = [Fraction(p) for p in data["laws"][0]["probabilities"]]
    law[0], law[-1] = law[0] + Fraction(1, 1000), law[-1] - Fraction(1, 1000)
    data["laws"][0]["probabilities"] = [str(p) for p in law]


def _other_law(data: Data) -> None:
    """Keep mass, mean and P(0), and lose privacy."""
    law = [Fraction(p) for p in data["laws"][2]["probabilities"]]
    two = 2 - data["laws"][2]["lowest"]
    change = law[two] / 2
    law[two - 1 : two + 2] = [law[two - 1] + change, law[two] - 2 * change, law[two + 1] + change]
    data["laws"][2]["probabilities"] = [str(p) for p in law]


def _larger_flow(data: Data) -> None:
    flow = data["dual"]["flows"][0]
    flow[3] = str(Fraction(flow[3]) + 1)


def _dropped_flow(data: Data) -> None:
    del data["dual"]["flows"][0]


def _negative_flow(data: Data) -> None:
    data["dual"]["flows"][0][3] = "-1"


def _far_flow(data: Data) -> None:
    data["dual"]["flows"][0][1] += 3


def _larger_mass(data: Data) -> None:
    for count, value in data["dual"]["mass"].items():
        data["dual"]["mass"][count] = str(abs(Fraction(value)) * 2 + 1)


def _missing_count(data: Data) -> None:
    del data["laws"][1]


FORGERIES: list[tuple[str, Callable[[Data], None], str]] = [
    ("by-count", _scaled("delta", "upper", "999/1000"), "delta.upper"),
    ("by-count", _scaled("delta", "lower", "1001/1000"), "delta.lower"),
    ("by-count", _set("problem.epsilon", "1.6"), "ratio"),
    ("by-count", _set("problem.epsilon", "-1"), "ratio"),
    ("by-count", _set("ratio.lower", "5"), "ratio"),
    ("by-count", _set("problem.eta", "2/5"), "laws[0]"),
    ("by-count", _set("problem.eta", "1"), "problem.eta"),
    ("by-count", _set("problem.support", 2), "laws[1]"),
    ("by-count", _set("problem.max_count", 7), "laws"),
    ("by-count", _missing_count, "laws"),
    ("by-count", _moved_mass, "laws[0]"),
    ("by-count", _other_law, "delta.upper"),
    ("by-count", _larger_flow, "dual.flows"),
    ("by-count", _dropped_flow, "dual"),
    ("by-count", _negative_flow, "dual.flows[0]"),
    ("by-count", _far_flow, "dual.flows[0]"),
    ("by-count", _larger_mass, "dual"),
    ("by-count", _set("dual.mass", {"77": "1"}), "dual"),
    ("by-count", _set("exact", "1/100"), "exact"),
    ("by-count", _set("laws.0.probabilities", []), "laws[0].probabilities"),
    ("by-count", _set("problem.objective", "best"), "problem.objective"),
    ("by-count", _set("problem.objective", "true-delta"), "delta.upper"),
    ("by-count", _set("schema_version", 2), "schema_version"),
    ("by-count", _set("delta.lower", "1e999999999"), "delta.lower"),
    ("one-law", _scaled("delta", "lower", "1001/1000"), "delta.lower"),
    ("one-law", _set("laws.0.from", 2), "laws"),
    ("one-law", _larger_flow, "dual.flows"),
    ("exact", _set("exact", "1/58"), "exact"),
    ("exact", _set("problem.ratio", "3.001"), "ratio"),
    ("true", _scaled("delta", "upper", "999/1000"), "delta.upper"),
    ("true", _scaled("delta", "lower", "1001/1000"), "delta.lower"),
    ("true", _larger_flow, "dual.flows"),
    ("true", _set("problem.objective", "singular"), "dual.flows"),
]


@pytest.mark.parametrize(("base", "forge", "field"), FORGERIES)
def test_names_the_field_of_a_forgery(base: str, forge: Callable[[Data], None], field: str) -> None:
    data = copy.deepcopy(_bases()[base])
    forge(data)
    assert field in [name for name, _ in problems(data)]


def test_a_changed_digit_is_found_by_the_seal() -> None:
    data = copy.deepcopy(_bases()["exact"])
    sealed = data | {"seal": seal.seal(data)}
    sealed["laws"][0]["probabilities"][0] = "1/3"
    found = check(sealed)
    assert [field for field, _ in found.problems] == ["laws[0].probabilities[0]"]
    assert not check({"kind": "best-noise", "seal": {}}).valid
