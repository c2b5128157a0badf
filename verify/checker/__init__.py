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

All else is of other laws (`declared`, `compositions`, `mechanisms`), and of proofs over whole
domains (`kernel`). Certificates of optima and of audits are checked by `dpassay.verifier.kernel`,
which also knows how words of strangers are printed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
from flint import arb, fmpq

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier import rules, seal
from dpassay.verifier.budget import SpentError, within_budget
from dpassay.verifier.checker.arithmetic import largest, settle
from dpassay.verifier.checker.facts import mechanism
from dpassay.verifier.checker.laws import hockey_stick
from dpassay.verifier.checker.mechanisms.pairs import fits, pairs
from dpassay.verifier.checker.outcome import Checked, Outcome, Theorem, theorem
from dpassay.verifier.checker.reals import UnknownError, ball
from dpassay.verifier.checker.schema import excess, shape_problems, unheard
from dpassay.verifier.checker.steps import Steps
from dpassay.verifier.kernel import VERSION
from dpassay.verifier.kernel import check as by_witness

__all__ = ["Checked", "Outcome", "Theorem", "check", "check_file"]

Problems = list[tuple[str, str]]

_BITS = 448
"""At which what has no precision of its own is evaluated."""


def check_file(path: Path) -> list[Checked]:
    """Check every certificate of a file; raise InvalidInputError if it is no such file."""
    return [check(data) for data in seal.read(path)]


def check(data: Mapping[str, Any]) -> Checked:
    """Check one certificate: of a claim here, of an audit or optimum (version 2) by the kernel.

    What takes more than `dpassay.verifier.budget` has is NOT CHECKED.
    """
    try:
        return within_budget(_by_kernel if "version" in data else _checked, data)
    except SpentError as spent:
        verdict = str(data.get("verdict", ""))
        return Checked(name(data), verdict, [], [], 0.0, not_checked=str(spent))


def _checked(data: Mapping[str, Any]) -> Checked:
    started = time.perf_counter()
    problems, not_checked = excess(data)
    if "kind" in data and data.get("schema_version") == seal.SCHEMA_VERSION:
        not_checked = "certificates of audits and optima are of version 2 now: make it again"
    if not problems and not not_checked:
        problems = _unlike_any(data)
        not_checked = "" if problems else unheard(data)
    given: list[str] = []
    recomputed: list[str] = []
    said: Theorem | None = None
    if not problems and not not_checked:
        said = _check_claim(data, problems, given, recomputed)
    return Checked(
        id=name(data),
        verdict=str(data.get("verdict", "")),
        problems=problems,
        taken_as_given=list(dict.fromkeys(given)),
        seconds=time.perf_counter() - started,
        recomputed=recomputed,
        theorem=None if problems else said,
        not_checked=not_checked,
    )


def _by_kernel(data: Mapping[str, Any]) -> Checked:
    started = time.perf_counter()
    if type(data["version"]) is int and data["version"] > VERSION:
        other = f"it is of version {data['version']}, and version {VERSION} is known here"
        return Checked(name(data), "", [], [], 0.0, not_checked=other)
    with ctx.workprec(_BITS):
        found = by_witness(data, _profile)
    said = [f"{name}: {value}" for name, value in found.numbers.items()]
    said += [f"lemma {lemma}" for lemma in found.lemmas]
    return Checked(
        id=name(data),
        verdict="" if found.problems else str(data["theorem"]["verdict"]),
        problems=[*found.problems],
        taken_as_given=[*found.assumptions],
        seconds=time.perf_counter() - started,
        recomputed=said,
        theorem=found.theorem,
    )


def _profile(text: str, epsilon: fmpq) -> arb | None:
    """Return δ(ε) of an audited claim's mechanism; None where its laws are not known here."""
    noise = mechanism(text)
    if not fits(noise, None):  # which relation is meant is not said
        return None
    at = Fraction(int(epsilon.p), int(epsilon.q))
    try:
        return ball(settle(lambda: [largest([hockey_stick(law, at) for law in pairs(noise)])])[0])
    except UnknownError:
        return None


def name(data: Mapping[str, Any]) -> str:
    """Return what its author calls a certificate."""
    described = data.get("theorem", data.get("claim"))
    known = described if isinstance(described, Mapping) else {}
    return str(known.get("id", known.get("kind", "")))


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
