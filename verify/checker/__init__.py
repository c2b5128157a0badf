"""The independent checker: a certificate is verified by a second path, in balls.

What has to be concluded is derived from the claim, not read from the certificate; every fact is
enclosed again at rising precision; a comparison is decided by enclosures, or it is taken as given.
None of our code is shared with the path that made the certificate (an import contract says so).
Both rest on Arb's ball arithmetic, whose enclosures are proved; products of laws are enclosed in
mpmath, and the tests hold the other laws against mpmath.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import msgspec
from flint import ctx
from mpmath import mp

from verify import seal
from verify.checker.arithmetic import interval_digits
from verify.checker.audits import audit_problems, sequential_problems
from verify.checker.count_noise import count_noise_problems
from verify.checker.gaussian_shape import gaussian_shape_problems
from verify.checker.integer_noise import integer_noise_problems
from verify.checker.steps import Steps

__all__ = ["Checked", "check", "check_file"]

_DIGITS, _BITS = 100, 448
_OPTIMA: dict[str, Callable[[Mapping[str, Any]], list[tuple[str, str]]]] = {
    "count-noise": count_noise_problems,
    "integer-noise": integer_noise_problems,
    "gaussian-shape": gaussian_shape_problems,
}
"""The certificates of `dpassay optimal`, by their kind."""
_AUDITS = {"audit": audit_problems, "sequential-audit": sequential_problems}


@final
@dataclass(frozen=True)
class Checked:
    """What the checker found about one certificate."""

    id: str
    verdict: str
    problems: list[tuple[str, str]]
    """The field that is wrong, as a path such as `facts[0].p.lower`, and what is wrong."""
    taken_as_given: list[str]
    """What the checker could not recompute and took from the certificate."""
    seconds: float
    recomputed: list[str] = field(default_factory=list)
    """To how many digits the numbers of a product of laws were enclosed again."""

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def check_file(path: Path) -> list[Checked]:
    """Check every certificate of a file; raise InvalidInputError if it is no such file."""
    return [check(data) for data in seal.read(path)]


def check(data: Mapping[str, Any]) -> Checked:
    """Check one certificate: of a claim, or of an audit or optimum, which have a kind."""
    if data.get("kind") in _AUDITS:
        return _check_audit(data)
    if "kind" in data:
        return _check_optimum(data)
    started = time.perf_counter()
    problems: list[tuple[str, str]] = []
    given: list[str] = []
    recomputed: list[str] = []
    stale = seal.broken(data)
    if data.get("schema_version") != seal.SCHEMA_VERSION:
        problems.append(("schema_version", f"expected {seal.SCHEMA_VERSION}"))
    elif stale:
        problems += [(path, "does not match its seal") for path in stale]
    else:
        try:
            certificate = msgspec.convert(data, seal.Certificate)
            with mp.workdps(_DIGITS), interval_digits(_DIGITS), ctx.workprec(_BITS):
                steps = Steps(certificate, problems, given)
                recomputed = steps.recomputed
                steps.run()
        except msgspec.ValidationError as error:
            text, _, where = str(error).partition(" - at ")
            problems.append((where.strip("`").removeprefix("$").removeprefix("."), text))
    claim = data.get("claim")
    return Checked(
        id=str(claim.get("id", "")) if isinstance(claim, dict) else "",
        verdict=str(data.get("verdict", "")),
        problems=problems,
        taken_as_given=list(dict.fromkeys(given)),
        seconds=time.perf_counter() - started,
        recomputed=recomputed,
    )


def _check_optimum(data: Mapping[str, Any]) -> Checked:
    started = time.perf_counter()
    kind = str(data["kind"])
    problems = [(path, "does not match its seal") for path in seal.broken(data)]
    if kind not in _OPTIMA:
        problems = [("kind", f"expected one of {', '.join(_OPTIMA)}")]
    elif not problems:
        problems = _OPTIMA[kind](data)
    return Checked(kind, "OPTIMAL", problems, [], time.perf_counter() - started)


def _check_audit(data: Mapping[str, Any]) -> Checked:
    started = time.perf_counter()
    problems = [(path, "does not match its seal") for path in seal.broken(data)]
    given: list[str] = []
    if not problems:
        problems, given = _AUDITS[data["kind"]](data)
    claim = data.get("claim")
    name = str(claim.get("description", "")) if isinstance(claim, dict) else ""
    seconds = time.perf_counter() - started
    return Checked(name, str(data.get("verdict", "")), problems, given, seconds)
