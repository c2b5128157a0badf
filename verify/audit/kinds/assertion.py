"""`assert_private`: a claim as one line of a test suite, proved where it can be, else audited."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.verifier.audit.kinds.auditor import audit
from dpassay.verifier.audit.kinds.known import known
from dpassay.verifier.audit.kinds.result import AuditResult
from dpassay.verifier.audit.runs.blocks import Datasets, time_limit
from dpassay.verifier.audit.runs.plan import own_pairs
from dpassay.verifier.audit.runs.target import target
from dpassay.verifier.audit.statistics.guarantee import Claim
from dpassay.verifier.verdict import Finding

_LEAST = 1000
"""Runs a side, however slow the mechanism is: fewer could refute little at 1e-6."""
_MOST = 20_000_000
"""Runs a side, however fast it is: beyond, scoring takes longer than drawing."""
_SHARE = 0.5
"""Part of the time that drawing may take: scoring and the certificate need the rest."""


class PrivacyError(AssertionError):
    """The claim was refuted; `result` holds the evidence."""

    def __init__(self, result: AuditResult | Finding) -> None:
        super().__init__(str(result))
        self.result = result


def assert_private(
    mechanism: Any,
    claim: Claim,
    *,
    pairs: Iterable[Datasets] | None = None,
    alpha: float = 1e-6,
    seconds: float = 20.0,
    seed: int = 0,
    samples: int | None = None,
    adjacency: Adjacency | str | None = None,
    bits: bool | None = None,
) -> AuditResult | Finding:
    """Raise PrivacyError if a claim is refuted; return the finding or the audit otherwise.

    A claim about a mechanism of this package is decided exactly, without any run, wherever
    `verify` decides it; runs are drawn besides where `pairs` or `samples` ask for them. All else
    is audited.

    Parameters
    ----------
    mechanism, claim, pairs
        As for `dpassay.verifier.audit.audit`.
    alpha
        The largest probability with which a private mechanism fails the test.
    seconds
        What it may take, roughly. The number of runs is fixed from the speed of a few runs before
        the outcome of any is looked at.
    seed
        The same runs every time, so that a test does not flicker; change it for fresh ones.
    samples
        Runs a side instead, whatever they take.
    adjacency
        The neighbouring relation, required where the guarantee of a mechanism depends on it.
    bits
        Whether the last bits of floats are looked at, as for `audit`: the test fails by them where
        they are part of the claim, bits=True.
    """
    finding = known(mechanism, claim, adjacency)
    if finding is not None and finding.refuted:
        raise PrivacyError(finding)
    if finding is not None and pairs is None and samples is None:
        return finding
    listed = None if pairs is None else list(pairs)
    count = samples or _affordable(mechanism, listed, seconds)
    result = audit(
        mechanism,
        claim,
        pairs=listed,
        samples=count,
        significance=alpha,
        seed=seed,
        adjacency=adjacency,
        bits=bits,
    )
    if result.refuted:
        raise PrivacyError(result)
    return result


def _affordable(mechanism: Any, pairs: list[Datasets] | None, seconds: float) -> int:
    """Return how many runs a side take about half of the time."""
    audited = target(mechanism)
    dataset = (pairs or list(own_pairs(mechanism)))[0][0]
    rng = np.random.default_rng(0)
    size, spent = 8, 0.0
    while spent < seconds / 200 and size < _MOST // 64:
        size *= 4
        started = time.perf_counter()
        with time_limit(seconds, f"{size} runs of {audited.name}"):
            audited.sample(dataset, size, rng)
        spent = time.perf_counter() - started
    rate = size / max(spent, 1e-9)
    return int(min(_MOST, max(_LEAST, _SHARE * seconds * rate / 2)))
