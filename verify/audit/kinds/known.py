"""What needs no run: the exact verdict on a claim about a mechanism of this package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import DpassayError
from dpassay.verifier.audit.statistics.guarantee import Claim, Guarantee
from dpassay.verifier.claims.guarantee import guarantee
from dpassay.verifier.exact import verify
from dpassay.verifier.verdict import Finding, Verdict

_WORDS = ({"epsilon"}, {"epsilon", "delta"}, {"mu"}, {"rho"}, {"order", "renyi"})


def known(mechanism: Any, claim: Claim, adjacency: Adjacency | str | None = None) -> Finding | None:
    """Decide a claim about a mechanism of this package: HOLDS or REFUTED; None where neither is.

    Of several points (ε, δ) the first that is refuted is told; None too for a claimed curve, and
    for a program, which can only be run.

    Raises AdjacencyError where the verdict depends on a relation that is not given.
    """
    if not isinstance(mechanism, Mechanism) or not (listed := _words(claim)):
        return None
    relation = Adjacency.read(adjacency)
    near = None if relation is None else relation.value
    findings = [
        verify(guarantee(words, mechanism=str(mechanism), adjacency=near, source="audit"))
        for words in listed
    ]
    refuted = [finding for finding in findings if finding.verdict is Verdict.REFUTED]
    if not refuted and any(not finding.holds for finding in findings):
        return None
    return (refuted or findings)[0]


def known_or_none(
    mechanism: Any, claim: Claim, adjacency: Adjacency | str | None = None
) -> Finding | None:
    """Return the same for an audit, which has its runs where there is no exact answer."""
    try:
        return known(mechanism, claim, adjacency)
    except DpassayError:  # no relation is given, or the runs are of what has no exact answer
        return None


def told(finding: Finding | None) -> list[str]:
    """Say in a line what is known without any run; nothing where nothing is."""
    if finding is None:
        return []
    return [f"known exactly, without any run: {finding.verdict}: {finding.formal}"]


def _words(claim: Claim) -> list[dict[str, Any]]:
    """Return the points of a claim, each in the words of `guarantee`."""
    if isinstance(claim, Guarantee):
        return [point.to_json() for point in claim.points]
    if isinstance(claim, Mapping):
        return [dict(claim)] if set(claim) in _WORDS else []
    if isinstance(claim, Mechanism) or callable(claim):
        return []
    if isinstance(claim, Sequence) and not isinstance(claim, str):
        points: list[Any] = list(claim)
        if len(points) == 2 and not isinstance(points[0], (list, tuple)):
            points = [points]
        if any(not isinstance(point, (list, tuple)) or len(point) != 2 for point in points):
            return []  # as `guarantee` says
        return [{"epsilon": epsilon, "delta": delta} for epsilon, delta in points]
    return [{"epsilon": claim}]
