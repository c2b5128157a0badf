"""Check a certificate: three outcomes, and what each rests on.

Nothing wrong and no assumption: the theorem was proved (VALID). Assumptions: nothing is wrong, and
the theorem rests on them (CONDITIONAL). Problems: the fields that are wrong (INVALID).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import programs, schema, statistics
from .numbers import Budget, NotProved, Proof, Wrong
from .theorem import Theorem, said

SECONDS = 48
"""Of processor time for one certificate."""
LEMMAS = {
    "gaussian": (
        "a mechanism is mu-GDP where no pair of neighbours is easier to tell apart than N(mu, 1) "
        "from N(0, 1), whose profile is Phi(mu/2 - e/mu) - exp(e) Phi(-mu/2 - e/mu) (Dong, Roth "
        "and Su 2022)"
    ),
    "gaussian-space": (
        "adding N(0, S) is mu-GDP where v' S^-1 v <= mu^2 for every difference v of the answers to "
        "neighbours (Balle and Wang 2018; Dong, Roth and Su 2022)"
    ),
}
"""What is trusted besides Arb, FLINT, Python and these files."""


@dataclass(frozen=True)
class Found:
    """What was found about one certificate."""

    theorem: Theorem | None = None
    """What was proved, or would be if the assumptions are true; None where something is wrong."""
    assumptions: tuple[str, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()
    """The field that is wrong, as a path such as `witness.flows[3]`, and what is wrong with it."""
    lemmas: tuple[str, ...] = ()
    numbers: Mapping[str, str] = field(default_factory=dict)
    """What was computed on the way."""


def check(certificate: Any, profile: statistics.Profile | None = None) -> Found:
    """Check one certificate: plain data, as JSON has it.

    An audited claim may be the profile of a mechanism, which `profile` computes; without it the
    theorem rests on the tested points.
    """
    budget = Budget(seconds=SECONDS)
    try:
        data = schema.require(certificate)
        theorem, rows = data["theorem"], {*data["lemmas"]}
        if unknown := rows - {*LEMMAS}:
            raise Wrong("lemmas", f"{min(unknown)} is no lemma of the kernel")
        try:
            if theorem["verdict"] == "OPTIMAL":
                proof = programs.prove(theorem, data["witness"], budget)
            else:
                proof = statistics.prove(theorem, data["witness"], budget, profile)
        except NotProved as error:
            unproved = f"the theorem itself, which was not proved here: {error}"
            proof = Proof(lemmas=rows, conditions=[unproved])
        if rows != proof.lemmas:
            raise Wrong("lemmas", f"expected {json.dumps(sorted(proof.lemmas))}")
    except Wrong as error:
        return Found(problems=((error.field, error.reason),))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        why = f"cannot be read: {type(error).__name__} {error}"
        return Found(problems=(("certificate", why),))
    conditions = tuple(dict.fromkeys(proof.conditions))
    rests_on = tuple(sorted(proof.lemmas))
    return Found(said(theorem, proof), conditions, (), rests_on, dict(proof.numbers))
