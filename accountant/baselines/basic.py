"""Basic composition: ε and δ add up."""

from __future__ import annotations

from flint import arb

from accountant.baselines.guarantee import Given, read
from accountant.numbers.interval import Interval, enclose


def basic(releases: Given) -> tuple[Interval, Interval]:
    """Return (Σ count·ε, Σ count·δ) (Dwork, McSherry, Nissim and Smith 2006)."""
    entries = read(releases)
    return (
        enclose(lambda: sum((n * g.epsilon.ball() for g, n in entries), start=arb(0))),
        enclose(lambda: sum((n * g.delta.ball() for g, n in entries), start=arb(0)).min(arb(1))),
    )
