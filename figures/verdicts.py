"""The tool's verdicts on the statements that the figures are about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dpassay.figures import registry
from dpassay.verifier.batch import concluded, decide_all
from dpassay.verifier.cli.verify import ledger, with_lemmas
from dpassay.verifier.verdict import Finding


def claims_of(name: str) -> list[str]:
    """Return the whole ids of the claims of a figure."""
    claims = registry.load(name).description.claims
    return [f"{registry.paper(name)}/{claim}" for claim in claims]


def decide(names: Sequence[str], *, jobs: int, keep: Path | None = None) -> dict[str, Finding]:
    """Decide the claims of some figures, and return the findings by id in the ledgers' order.

    Parameters
    ----------
    names
        Ids of figures.
    jobs
        Number of processes.
    keep
        A file that keeps what was decided for the next run.
    """
    wanted = {claim for name in names for claim in claims_of(name)}
    everything = [claim for paper in registry.papers() for claim in ledger(paper)]
    claims = with_lemmas(everything, wanted)
    outcomes = dict(decide_all(claims, lemmas=everything, jobs=jobs, keep=keep))
    findings = [outcome.finding for outcome in concluded(claims, outcomes).values()]
    return {f.id: f for f in findings if f is not None and f.id in wanted}
