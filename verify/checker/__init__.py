"""The independent checker: a certificate is verified by a second path, in balls.

A certificate is what a stranger may have written. Its shape is strict (`schema`), what has to be
concluded is derived from the claim, not read; every fact is enclosed again at rising precision; a
comparison is decided by enclosures, or it is taken as given; and the theorem that comes out is said
in the checker's own words. None of our code is shared with the path that made the certificate (an
import contract says so). Both rest on Arb's ball arithmetic, whose enclosures are proved; the tests
hold its laws against mpmath.

To believe that (ε, δ)-DP of Gaussian noise HOLDS, read these files, of which 1,600 lines run:

- numbers, exact or balls, and how they are compared:
  `special`, `monomials`, `reals`, `arithmetic`;
- the texts of a claim, and what they are worth:
  `kernel.expressions`, `language`;
- the mechanism, its neighbours, and its worst pair, N(μ, 1) against N(0, 1):
  `notation`, `mechanisms.arguments`, `mechanisms.neighbours`, `mechanisms.pairs`,
  `mechanisms.gaussian`, `mechanisms.matrices` (whether a record takes part by chance);
- H(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ):
  `laws`, `compositions.composed` (whether a law is a product);
- the certificate, what has to be concluded, and what is said:
  `seal`, `schema`, `facts`, `kinds`, `stated`, `steps`, `outcome`.

All else is of other laws (`declared`, `compositions`, `mechanisms`), of proofs over whole domains
(`kernel`), of optima (`optima`) and of audits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier import rules, seal
from dpassay.verifier.budget import SpentError, within_budget
from dpassay.verifier.checker.audits import audit_problems, sequential_problems
from dpassay.verifier.checker.one_run import one_run_problems
from dpassay.verifier.checker.optima.count_noise import count_noise_problems, count_noise_theorem
from dpassay.verifier.checker.optima.gaussian_shape import (
    gaussian_shape_problems,
    gaussian_shape_theorem,
)
from dpassay.verifier.checker.optima.integer_noise import (
    integer_noise_problems,
    integer_noise_theorem,
)
from dpassay.verifier.checker.outcome import Checked, Outcome, Theorem, audit_theorem, theorem
from dpassay.verifier.checker.reals import UnknownError
from dpassay.verifier.checker.schema import excess, shape_problems, unheard
from dpassay.verifier.checker.steps import Steps

__all__ = ["Checked", "Outcome", "Theorem", "check", "check_file"]

Problems = list[tuple[str, str]]

_BITS = 448
"""At which what has no precision of its own is evaluated."""
_OPTIMA: dict[str, tuple[Callable[[Mapping[str, Any]], Problems], Callable[..., Theorem]]] = {
    "count-noise": (count_noise_problems, count_noise_theorem),
    "integer-noise": (integer_noise_problems, integer_noise_theorem),
    "gaussian-shape": (gaussian_shape_problems, gaussian_shape_theorem),
}
"""The certificates of `dpassay optimal`, by their kind."""
_AUDITS = {
    "audit": audit_problems,
    "sequential-audit": sequential_problems,
    "one-run-audit": one_run_problems,
}


def check_file(path: Path) -> list[Checked]:
    """Check every certificate of a file; raise InvalidInputError if it is no such file."""
    return [check(data) for data in seal.read(path)]


def check(data: Mapping[str, Any]) -> Checked:
    """Check one certificate: of a claim, or of an audit or optimum, which have a kind.

    What takes more than `dpassay.verifier.budget` has is NOT CHECKED.
    """
    try:
        return within_budget(_checked, data)
    except SpentError as spent:
        verdict = str(data.get("verdict", ""))
        return Checked(name(data), verdict, [], [], 0.0, not_checked=str(spent))


def _checked(data: Mapping[str, Any]) -> Checked:
    started = time.perf_counter()
    problems, not_checked = excess(data)
    if not problems and not not_checked:
        problems = _unlike_any(data)
        not_checked = "" if problems else unheard(data)
    given: list[str] = []
    recomputed: list[str] = []
    said: Theorem | None = None
    if not problems and not not_checked:
        if data.get("kind") in _AUDITS:
            problems, given = _AUDITS[data["kind"]](data)
            said = None if problems else audit_theorem(data)
        elif "kind" in data:
            prove, say = _OPTIMA[data["kind"]]
            with ctx.workprec(_BITS):
                problems, not_checked = _read(prove, data)
            said = None if problems or not_checked else say(data)
        else:
            said = _check_claim(data, problems, given, recomputed)
    return Checked(
        id=name(data),
        verdict=str(data.get("verdict", "OPTIMAL" if "kind" in data else "")),
        problems=problems,
        taken_as_given=list(dict.fromkeys(given)),
        seconds=time.perf_counter() - started,
        recomputed=recomputed,
        theorem=None if problems else said,
        not_checked=not_checked,
    )


def _read(
    prove: Callable[[Mapping[str, Any]], Problems], data: Mapping[str, Any]
) -> tuple[Problems, str]:
    """Return what is wrong with the certificate of an optimum, or why that is not found."""
    try:
        return prove(data), ""
    except UnknownError as error:
        return [], f"it is not found again here: {error}"
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        return [("certificate", f"cannot be read: {type(error).__name__} {error}")], ""


def name(data: Mapping[str, Any]) -> str:
    """Return what its author calls a certificate."""
    claim = data.get("claim")
    described = claim if isinstance(claim, Mapping) else {"id": data.get("kind", "")}
    return str(described.get("id", described.get("description", "")))


def _unlike_any(data: Mapping[str, Any]) -> Problems:
    """Return why data are no certificate under its seal; of another version nothing is known."""
    version = data.get("schema_version")
    if type(version) is not int:
        return [("schema_version", f"expected {seal.SCHEMA_VERSION}")]
    if version != seal.SCHEMA_VERSION:
        return []
    if stale := seal.broken(data):
        return [(path, "does not match its seal") for path in stale]
    return shape_problems(data)


def _check_claim(
    data: Mapping[str, Any], problems: Problems, given: list[str], recomputed: list[str]
) -> Theorem | None:
    certificate = msgspec.convert(data, seal.Certificate)
    lemmas = [(f"lemmas[{i}]", lemma) for i, lemma in enumerate(certificate.lemmas)]
    for path, claim in [("claim", certificate.claim), *lemmas]:
        found = rules.errors(claim)
        problems += [(f"{path}.{field}" if field else path, what) for field, what in found]
    if problems:
        return None
    with ctx.workprec(_BITS):
        steps = Steps(certificate, problems, given)
        steps.run()
    recomputed += steps.recomputed
    if problems:
        return None
    return theorem(certificate.claim, certificate.verdict, certificate.case, steps.count)
