r"""Audits that may stop at any time: evidence that is valid after every round.

Rounds of runs on datasets that fair coins choose. Before a round an event E, an opposite event F, a
point (ε, δ) of the claim and a stake θ in [0, 1/(e^ε + δ)] are chosen from the rounds before. Each
run then multiplies a capital by

    1 + θ(1 − δ) for a right guess, 1 − θ(e^ε + δ) for a wrong one, 1 − θδ for none,

of mean 1 + θ(P(right) − e^ε P(wrong) − δ) ≤ 1 under the claim (`statistics.guesses`): a bet
against the claim that cannot win on average. The evidence is a mixture over the round k in which
the betting begins, of weight 1/(k(k + 1)), so that early bets in ignorance cost little:

    M_t = (M_{t−1} + w_t) F_t,    evidence E_t = M_t + 1/(t + 1).

It is a non-negative supermartingale from 1 under the claim, whoever chooses what and when to stop,
so P(sup_t E_t ≥ 1/significance) ≤ significance (Ville 1939; Waudby-Smith and Ramdas, "Estimating
means of bounded random variables by betting", 2024).
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, final

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.errors import NeitherTrueNorFalse
from dpassay.accountant.numbers.exact import floats_in_short
from dpassay.accountant.numbers.reading import few
from dpassay.verifier.audit.kinds.known import known_or_none, told
from dpassay.verifier.audit.kinds.players import Learner
from dpassay.verifier.audit.kinds.result import COMPARE, HINT
from dpassay.verifier.audit.kinds.rounds import Evidence, KeptRounds, Round
from dpassay.verifier.audit.outcome import Outcome, decided, shown
from dpassay.verifier.audit.runs import disk
from dpassay.verifier.audit.runs.blocks import Datasets
from dpassay.verifier.audit.runs.plan import Plan
from dpassay.verifier.audit.runs.target import MechanismError
from dpassay.verifier.audit.statistics.guarantee import Claim, Guarantee, guarantee

if TYPE_CHECKING:
    from dpassay.verifier.verdict import Finding


@final
@dataclass(frozen=True, eq=False, repr=False)
class SequentialResult(NeitherTrueNorFalse):
    """A sequential audit."""

    compare: ClassVar[str] = COMPARE
    outcome: Outcome
    target: str
    guarantee: Guarantee
    pairs: tuple[Datasets, ...]
    rounds: tuple[Round, ...]
    evidence: float
    """The largest evidence, a number of mean ≤ 1 under the claim at every time."""
    significance: float
    seed: int
    samples: int
    """Runs a side on average: half of all runs."""
    seconds: float
    notes: tuple[str, ...] = ()
    finding: Finding | None = None
    """The exact verdict on the claim, of a mechanism of this package."""

    @property
    def verdict(self) -> Outcome:
        """The outcome of the runs, but REFUTED where the claim is known exactly to be false."""
        return decided(self.outcome, self.finding) or self.outcome

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted, by the runs or exactly."""
        return self.verdict is Outcome.REFUTED

    @property
    def p_value(self) -> float:
        """A p-value that is valid at every time: 1/evidence."""
        return min(1.0, 1 / self.evidence)

    @property
    def advice(self) -> str:
        """Say what the outcome is worth, and what would confirm it."""
        if self.outcome is not Outcome.REFUTED:
            return "Not a proof: what did not show in these runs is not excluded."
        if self.significance > HINT:
            return (
                "A hint: to confirm it, audit again with another seed and significance 1e-6 "
                "(--confidence 0.999999)."
            )
        return f"A private mechanism is accused with probability at most {few(self.significance)}."

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "schema_version": 1,
            "verdict": self.verdict.value,
            "target": self.target,
            "claim": self.guarantee.to_json(),
            "pairs": [[shown(dataset) for dataset in pair] for pair in self.pairs],
            "evidence": self.evidence,
            "p_value": self.p_value,
            "significance": self.significance,
            "seed": str(self.seed),
            "samples": self.samples,
            "rounds": [entry.to_json() for entry in self.rounds],
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
            "advice": self.advice,
        }

    def certificate(self, replay: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the evidence as a certificate, for `dpassay check`.

        `replay` says how the runs were drawn: see `kinds.replay`.
        """
        from dpassay.verifier.prover import audits

        return audits.sequential(self, replay)

    def __str__(self) -> str:
        """Return the result in a few lines."""
        bets = [entry for entry in self.rounds if entry.stake > 0]
        lines = [
            f"{self.verdict.value}  {floats_in_short(self.guarantee.description)} of {self.target}",
            f"  evidence     {few(self.evidence, 4)} (p-value {few(self.p_value, 3)} at any time), "
            f"{few(1 / self.significance, 4)} refutes",
            f"  runs         {self.samples} pairs in {len(self.rounds)} rounds",
        ]
        if bets:
            last = bets[-1]
            pair = self.pairs[last.pair]
            lines += [
                f"  neighbours   {shown(pair[0])} and {shown(pair[1])}",
                f"  last bet     {last.event}: {last.right} right and {last.wrong} wrong in "
                f"{last.runs} runs",
            ]
        return "\n".join([*lines, f"  {self.advice}", *(f"  note: {n}" for n in self.notes)])

    __repr__ = __str__


def audit_until_refuted(
    mechanism: Any,
    claim: Claim,
    *,
    pairs: Iterable[Datasets] | None = None,
    samples: int = 1_000_000,
    significance: float = 0.05,
    seed: int | None = None,
    adjacency: Adjacency | str | None = None,
    timeout: float | None = None,
    bits: bool = False,
    progress: Callable[[int, float], None] | None = None,
    checkpoint: Path | str | None = None,
    errors_are_outputs: bool = False,
) -> SequentialResult:
    """Draw runs until the claim is refuted, at most `samples` a side.

    Arguments and errors as for `dpassay.verifier.audit.audit`; `progress` is told the pairs of runs
    so far and the evidence. With `bits` the last bits of floats are bet on too, as part of the
    claim. A checkpoint keeps every round with its outputs: the same call goes on after the last.
    """
    started = time.perf_counter()
    path = None if checkpoint is None else Path(checkpoint)
    plan = Plan.of(
        mechanism,
        guarantee(claim, adjacency=adjacency),
        pairs=pairs,
        samples=samples,
        significance=significance,
        seed=disk.kept_seed(path) if seed is None else seed,
        timeout=timeout,
        check_size=False,
        bits=bits,
        errors_are_outputs=errors_are_outputs,
    )
    kept = KeptRounds(path, disk.digest(plan.digest(), "until refuted"), plan.seed)
    found = played(plan, Learner(plan), kept, started, progress)
    finding = known_or_none(mechanism, claim, adjacency)
    return dataclasses.replace(found, finding=finding, notes=(*told(finding), *found.notes))


def played(
    plan: Plan,
    player: Learner,
    kept: KeptRounds,
    started: float,
    progress: Callable[[int, float], None] | None = None,
) -> SequentialResult:
    """Play rounds until the claim is refuted, or the runs of the plan or the player's end."""
    player.resume(kept)
    evidence = Evidence()
    for entry in kept.rounds:
        evidence.add(entry)
    used, most = sum(entry.runs for entry in kept.rounds), 2 * plan.samples
    enough = 1 / plan.significance
    while used < most and evidence.best < enough:
        try:
            entry, outputs = player.play(len(kept.rounds), used, most - used)
        except MechanismError as error:
            raise MechanismError(f"{error} {kept.described(used // 2)}") from error.__cause__
        if entry.runs == 0:
            break
        kept.add(entry, outputs, player.state())
        evidence.add(entry)
        used += entry.runs
        if progress is not None:
            progress(used // 2, evidence.now)
    return SequentialResult(
        outcome=Outcome.REFUTED if evidence.best >= enough else Outcome.NOT_REFUTED,
        target=plan.target.name,
        guarantee=plan.guarantee,
        pairs=plan.pairs,
        rounds=tuple(kept.rounds),
        evidence=evidence.best,
        significance=plan.significance,
        seed=plan.seed,
        samples=used // 2,
        seconds=time.perf_counter() - started,
        notes=tuple(player.notes),
    )
