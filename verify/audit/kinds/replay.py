"""Audits drawn again from the seed of their certificate: the same runs, the same counts?

No part of the kernel: the runs come from the sampler that is audited, and the event
is learned again from the training runs, as it was the first time.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

from dpassay.accountant import notation
from dpassay.accountant.errors import DpassayError, InvalidInputError
from dpassay.verifier.audit.kinds.auditor import audit
from dpassay.verifier.audit.runs.plan import neighbours
from dpassay.verifier.audit.runs.target import named
from dpassay.verifier.sentence import is_notation

_MOST_RUNS = 10**8
"""Runs a side that are drawn again: beyond, whoever checks waits for minutes."""
_MOST_SEEDS = 1e18
"""How many seeds somebody may have tried before this one."""


@final
@dataclass(frozen=True)
class Replayed:
    """What drawing again showed."""

    problems: list[tuple[str, str]]
    runs: int = 0
    rests_on: tuple[str, ...] = ()
    """What no replay can show."""
    not_replayed: str = ""
    """Why the runs cannot be drawn again; empty where they were."""
    any_seed: bool = False
    """Whether the verdict stands whoever chose the seed; a bound, which holds at the significance
    itself, does not."""


def replay(request: tuple[Mapping[str, Any], bool]) -> Replayed:
    """Draw the runs of a checked certificate again; the flag allows to import what it names."""
    data, code = request
    theorem, witness = data["theorem"], data["witness"]
    how = witness.get("replay")
    if how is None:
        return Replayed([], not_replayed="the certificate does not say how they were drawn")
    how = dict.fromkeys(("pairs", "search", "adjacency")) | how
    foreign = not is_notation(how["target"])
    if foreign and not code:
        why = f"{how['target']} is code that the certificate names, which --replay-code runs"
        return Replayed([], not_replayed=why)
    if theorem["kind"] != "audit":
        return Replayed([], not_replayed="audits that bet are no longer made")
    if theorem["claim"]["kind"] == "profile":
        return Replayed([], not_replayed="the claimed profile is a function of its author")
    if how["samples"] > _MOST_RUNS:
        return Replayed([], not_replayed=f"more than {_MOST_RUNS} runs; audit with another seed")
    try:
        result = _again(named(how["target"]), data, how)
        found = result.certificate(witness["replay"])
    except DpassayError as error:
        return Replayed([], not_replayed=str(error))
    own, theirs = dict(_leaves(json.loads(json.dumps(found)))), dict(_leaves(data))
    changed = [path for path in {**own, **theirs} if own.get(path) != theirs.get(path)]
    why = "is not what the seed gives (or another version of numpy drew it)"
    rests = []
    if foreign:
        rests.append(f"that the code that is now called {how['target']} is what was meant")
    if how["pairs"] or how["search"]:
        pairs = witness.get("pair") or witness["pairs"]
        rests.append(f"that {pairs} are neighbours under the claim")
    refuted = theorem["verdict"] == "REFUTED"
    chosen = refuted and result.p_value * _MOST_SEEDS > result.significance
    if chosen:
        rests.append(
            f"that the seed {witness['seed']} was not chosen among many for its outcome; audit "
            "with another one"
        )
    problems = [(path, why) for path in changed]
    return Replayed(problems, 2 * how["samples"], tuple(rests), any_seed=not chosen)


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield every leaf of nested data with its path, such as `witness.marks[0]`."""
    if isinstance(value, Mapping) and value:
        for key, entry in value.items():
            yield from _leaves(entry, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for index, entry in enumerate(value):
            yield from _leaves(entry, f"{path}[{index}]")
    else:
        yield path, value


def _again(mechanism: Any, data: Mapping[str, Any], how: Mapping[str, Any]) -> Any:
    """Make the audit once more."""
    arguments: dict[str, Any] = {
        "pairs": _pairs(how),
        "samples": how["samples"],
        "significance": float(data["theorem"]["significance"]),
        "seed": int(data["witness"]["seed"]),
        "adjacency": how["adjacency"],
    }
    return audit(mechanism, _claim(data["theorem"]["claim"]), **arguments)


def _claim(claim: Mapping[str, Any]) -> Any:
    if claim["kind"] == "epsilon-delta":
        return [(point["epsilon"], point["delta"]) for point in claim["points"]]
    if claim["kind"] == "gaussian":
        return {"mu": claim["parameter"]}
    return notation.parse(claim["parameter"])


def _pairs(how: Mapping[str, Any]) -> list[tuple[Any, Any]] | None:
    """Return the pairs of datasets, None for a mechanism's own."""
    found: list[tuple[Any, Any]] = [
        (literal(first), literal(second)) for first, second in how["pairs"] or ()
    ]
    if how["search"]:
        found += neighbours(how["search"], adjacency=how["adjacency"] or "add-remove")
    return found or None


def literal(text: str) -> Any:
    """Read a dataset; raise InvalidInputError where it is no Python literal."""
    special = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}
    if text in special:
        return special[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise InvalidInputError(
            f"Expected a dataset as a Python literal such as 0, [1, 2] or '\"text\"', not {text!r}."
        ) from None
