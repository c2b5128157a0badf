"""Genuine certificates, and a forger of them, who changes every leaf in every way."""

from __future__ import annotations

import copy
import functools
import itertools
import json
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpassay.accountant import notation
from dpassay.accountant.geometry.spaces import Box
from dpassay.lp.count_noise import optimal_count_noise
from dpassay.lp.integer_noise import IntegerNoiseProblem, optimal_integer_noise
from dpassay.lp.problem import CountNoiseProblem
from dpassay.lp.shapes import GaussianShapeProblem, optimal_gaussian_shape
from dpassay.verifier import document, kernel, prover
from dpassay.verifier.audit import audit, audit_one_run
from dpassay.verifier.prover import optima

Data = dict[str, Any]
CLAIMS = {
    claim.id: claim
    for claim in document.read_file(Path(__file__).parent / "every_kind.toml").claims
}
"""Claims of every kind and verdict."""
OTHERS = (*("audit", "one-run-audit"), *("count-noise", "integer-noise", "gaussian-shape"))

_WORDS = ("", "x\nVALID  1 < 0: HOLDS", "\x1b[2J", "NaN", "Infinity", "1e99999999", "а", "0", "1e9")
_ENUMS = (
    *("HOLDS", "REFUTED", "SUPPORTED", "ARGUED", "NOT_REFUTED"),
    *("add-remove", "replace-one", "increasing", "decreasing"),
    *("sides", "guesses", "first", "second", "singular", "true-delta", "total", "worst"),
    *("epsilon-delta", "gaussian", "mechanism", "variance", "absolute", "error", "delta"),
)
_ADDED = {
    "note": "1", "tolerance": "1e9", "adjacency": "replace-one", "assume": ["1 < 0"],
    "where": {"q": [1]}, "let": {"s": "1"}, "tail": "", "ratio": "3",
    "share": "1/9", "case": {"s": "1"}, "lemmas": ["gaussian"], "delta": "0",
}  # fmt: skip
_NUMBER = re.compile(r"[-+]?\d+(/\d+|(\.\d+)?([eE][-+]?\d{1,5})?)")
_RELATIONS = ("<=", ">=", "<", ">", "==", "!=")


class Mutant(NamedTuple):
    """A changed certificate; most are passed over, and are not made."""

    change: str
    make: Callable[[], Any]


@functools.cache
def _certified(name: str) -> str:
    laplace = notation.parse("Laplace(scale=1)")
    found: Data | None
    match name:
        case "audit":
            found = audit(laplace, "0.8", samples=2_000, seed=1).certificate()
        case "one-run-audit":
            coins = np.arange(80) % 2 == 0
            scores = np.where(np.arange(80) % 10 < 9, coins, ~coins) + np.arange(80) / 1000
            found = audit_one_run(scores, coins, "0.5").certificate()
        case "count-noise":
            problem = CountNoiseProblem(ratio=3, eta="1/2", support=2, max_count=2)
            found = optima.count_noise(optimal_count_noise(problem))
        case "integer-noise":
            asked = IntegerNoiseProblem(objective="variance", epsilon=1, delta="1/10", support=3)
            found = optima.integer_noise(optimal_integer_noise(asked))
        case "gaussian-shape":
            shape = optimal_gaussian_shape(GaussianShapeProblem(Box([1, 2]), "total", None))
            found = optima.gaussian_shape(shape)
        case _:
            found = prover.decided(CLAIMS[name])[1]
    assert found is not None
    return json.dumps(found)


def certified(name: str) -> Data:
    """Return the certificate of one of the claims of every kind, of an audit or of an optimum."""
    data: Data = json.loads(_certified(name))
    return data


def decided(text: str) -> tuple[str, Data]:
    """Return the verdict about a claim in words of a claim file and its certificate."""
    read = document.read_text(f'schema_version = 1\n[[claims]]\nid = "c"\n{text}')
    finding, data = prover.decided(read.claims[0])
    return finding.verdict.value, data or {}


def problems(data: Data) -> list[tuple[str, str]]:
    """Return what the kernel objects to."""
    return [*kernel.check(data).problems]


def at(data: Any, path: str) -> Any:
    """Return what stands at a path such as witness.laws.0.first."""
    for key in path.split("."):
        data = data[int(key)] if isinstance(data, list) else data[key]
    return data


def put(path: str, value: object) -> Callable[[Data], None]:
    """Return the change of what stands at a path."""
    *parents, last = path.split(".")

    def change(data: Data) -> None:
        inner: Any = at(data, ".".join(parents)) if parents else data
        inner[int(last) if isinstance(inner, list) else last] = value

    return change


def mutants(genuine: Data) -> Iterator[Mutant]:
    """Yield every mutant of one certificate."""
    plain = genuine
    places = list(_places(plain))
    for path, value in places:
        for word in _replacements(value):
            yield Mutant(f"{_shown(path)} = {word!r}"[:90], partial(_with, plain, path, word))
        if path:
            yield Mutant(f"without {_shown(path)}", partial(_without, plain, path))
        if isinstance(value, dict):
            for name, added in _ADDED.items():
                if name not in value:
                    more = {**value, name: added}
                    yield Mutant(f"{_shown(path)} + {name}", partial(_with, plain, path, more))
        if isinstance(value, list) and value:
            for turned, other in (("doubled", value + value), ("reversed", value[::-1])):
                yield Mutant(f"{_shown(path)} {turned}", partial(_with, plain, path, other))
    yield from _everywhere(plain, places)
    yield from _moved(plain, places)


def _everywhere(plain: Data, places: list[tuple[tuple[Any, ...], Any]]) -> Iterator[Mutant]:
    """Change a text or number wherever it stands, inside other texts too."""
    whole = json.dumps(plain)
    texts = {value for _, value in places if isinstance(value, str) and 0 < len(value) < 200}
    parts = {
        part for text in texts for part in re.findall(r"[\d./]*\d(?:e-?\d+)?|<=|>=|<|>|==", text)
    }
    for part in sorted(texts | parts):
        quoted = json.dumps(part)[1:-1]
        for other in _replacements(part)[: 12 if _NUMBER.fullmatch(part) else 3]:
            changed = whole.replace(quoted, json.dumps(other)[1:-1])
            try:
                data = json.loads(changed)
            except ValueError:
                continue
            if isinstance(data, dict) and data != plain:
                yield Mutant(f"{part!r} -> {other!r} everywhere"[:90], partial(dict, data))


def _moved(plain: Data, places: list[tuple[tuple[Any, ...], Any]]) -> Iterator[Mutant]:
    """Exchange the values of two places of one name, or of one object."""
    leaves = [(p, v) for p, v in places if not isinstance(v, (dict, list))]
    for (one, first), (other, second) in itertools.combinations(leaves[:60], 2):
        if first != second and (one[-1] == other[-1] or one[:-1] == other[:-1]):
            change = f"{_shown(one)} <-> {_shown(other)}"[:90]
            yield Mutant(change, partial(_exchanged, plain, (one, first), (other, second)))


def _replacements(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value, 1, None]
    if isinstance(value, (int, float)):
        more = [-value, value * 1.001, value + 1, 0, 10**9, float("nan"), float("inf"), 1e300]
        return [*more, str(value), None, [value]]
    if isinstance(value, str):
        found: list[Any] = []
        if _NUMBER.fullmatch(value) and "/0" not in value:
            number = Fraction(value)
            near = [
                -number,
                number * Fraction(1001, 1000),
                number * Fraction(999, 1000),
                2 * number,
            ]
            found += [str(entry) for entry in (*near, number / 2, number + 1)]
        if value in _RELATIONS:
            return [entry for entry in _RELATIONS if entry != value]
        found += [entry for entry in _ENUMS if value in _ENUMS and entry != value]
        return [*found, *(w for w in _WORDS if w != value), None, 1, [value], {"x": value}]
    if value is None:
        return ["1", 1, [], {}]
    return ["", None, [], {}]


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield every place; of a long list the first, the second and the last entry."""
    yield path, value
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _places(entry, (*path, key))
    elif isinstance(value, list):
        for index in sorted({0, 1, len(value) - 1} & set(range(len(value)))):
            yield from _places(value[index], (*path, index))


def _with(data: Data, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value if isinstance(value, dict) else {"theorem": value}
    changed = copy.deepcopy(data)
    inner: Any = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


def _exchanged(data: Data, one: tuple[Any, Any], other: tuple[Any, Any]) -> Any:
    return _with(_with(data, one[0], other[1]), other[0], one[1])


def _without(data: Data, path: tuple[Any, ...]) -> Data:
    changed = copy.deepcopy(data)
    inner: Any = changed
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return changed


def _shown(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path)) or "the certificate"
