"""What is fixed before the first run, and what a few runs tell about the form of outputs."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, expected, shortened
from dpassay.accountant.numbers.reading import few
from dpassay.verifier.audit.learning import bits
from dpassay.verifier.audit.learning.outputs import Alphabet, Matrix
from dpassay.verifier.audit.runs import blocks, copies
from dpassay.verifier.audit.runs.blocks import PROBING, Datasets
from dpassay.verifier.audit.runs.laws import MechanismTarget, neighbours
from dpassay.verifier.audit.runs.target import NOT_REPEATABLE, MechanismError, Target, target
from dpassay.verifier.audit.statistics.binomial import MOST_RUNS
from dpassay.verifier.audit.statistics.exact_test import SPARED, Counts, least, p_value
from dpassay.verifier.audit.statistics.guarantee import Guarantee

_PROBE = 8
"""Runs of a side that show the form of outputs."""
_TRIES = 64, 512
"""Runs with other generators that are compared, more where the same ones tell little."""
_SURE = 20.0
"""Nats that they must tell (`runs.copies`): independent runs are the same with chance 2e-9."""


@final
@dataclass(frozen=True)
class Plan:
    """What is fixed before the first run."""

    target: Target
    guarantee: Guarantee
    pairs: tuple[Datasets, ...]
    samples: int
    significance: float
    seed: int
    timeout: float | None
    claimed: bool = True
    """Whether the guarantee is claimed; else it says where ε is bounded."""
    bits: bool | None = None
    """Whether the last bits of floats are looked at: not if False, and as part of the claim if
    True."""

    @staticmethod
    def of(
        mechanism: Any,
        whole: Guarantee,
        *,
        pairs: Iterable[Datasets] | None,
        samples: int,
        significance: float,
        seed: int | None,
        timeout: float | None,
        errors_are_outputs: bool = False,
        claimed: bool = True,
        bits: bool | None = None,
    ) -> Plan:
        """Check the arguments."""
        if not 0 < significance < 1:
            raise expected("significance", significance, "in (0, 1)")
        if samples < 20:
            raise expected("samples", samples, "≥ 20", "Training and test need some runs each.")
        listed = own_pairs(mechanism) if pairs is None else _read(pairs)
        fixed = secrets.randbits(63) if seed is None else int(seed)
        runs = target(mechanism, errors_are_outputs=errors_are_outputs)
        if isinstance(runs, MechanismTarget) and not claimed:
            runs, bits = replace(runs, simulated=True), False
        plan = Plan(runs, whole, listed, samples, significance, fixed, timeout, claimed, bits)
        plan.require_enough()
        return plan

    def require_enough(self) -> None:
        """Raise where even the clearest counts could not refute the claim."""
        whole, level = self.guarantee, self.significance
        if can_refute(whole, self.samples, level):
            return
        needed = least(lambda runs: can_refute(whole, runs, level), MOST_RUNS)
        if needed is None:
            raise InvalidInputError("No number of runs can refute this claim.")
        raise InvalidInputError(
            f"Expected samples={self.samples} to be enough: even an event of probability 1 against "
            f"0 is refuted at significance {few(self.significance)} only from {needed} runs a side "
            "on."
        )


def can_refute(whole: Guarantee, runs: int, significance: float) -> bool:
    """Whether an event of probability 1 against 0 would refute some point of a claim."""
    counts, spared = Counts(runs, runs, 0, runs), SPARED * significance
    return any(
        p_value(counts, float(p.epsilon), float(p.delta), spared=spared) <= significance
        for p in whole.candidates()
    )


def own_pairs(mechanism: Any) -> tuple[Datasets, ...]:
    """Return the pairs that a mechanism of this package, or its attribute `pairs`, names."""
    if isinstance(mechanism, Mechanism):
        return tuple(neighbours(mechanism))
    listed = getattr(mechanism, "pairs", None)
    if listed is not None and not callable(listed):
        return tuple(listed)
    raise _no_pairs("")


def _read(pairs: Any) -> tuple[Datasets, ...]:
    """Return a list of pairs as a tuple; InvalidInputError for anything else."""
    try:
        listed = tuple(pairs)
        fine = listed and all(not isinstance(pair, str) and len(pair) == 2 for pair in listed)
    except TypeError:  # not iterable, or an entry has no length
        fine = False
    if not fine:
        raise _no_pairs(f", not pairs={shortened(repr(pairs))}")
    return listed


def _no_pairs(given: str) -> InvalidInputError:
    return InvalidInputError(
        f"Expected pairs of neighbouring datasets{given}. Write pairs=[(dataset, neighbour)], or "
        'pairs=dpassay.verifier.audit.neighbours("table"); also "count", "number", "vector" '
        'and "rows".'
    )


def probe(plan: Plan, alphabet: Alphabet, notes: list[str]) -> int:
    """Run a few times: learn the form of an output, and whether runs follow the rng."""
    widths: list[int] = []
    worked = 0
    for index, pair in enumerate(plan.pairs[:4]):
        for side, dataset in enumerate(pair):
            for form in (Alphabet(width=alphabet.width), alphabet):
                rng = blocks.generator(plan.seed, PROBING, index, 0, side)
                try:
                    with blocks.time_limit(plan.timeout, f"{_PROBE} runs of {plan.target.name}"):
                        rows = blocks.draw(plan.target, dataset, _PROBE, rng, alphabet=form)
                except MechanismError:
                    if len(plan.pairs) == 1:
                        raise
                    continue
                worked = index if not widths else worked
                widths.append(rows.shape[1])
    if called := getattr(plan.target, "called", ""):
        notes.append(f"called as {called}")
    if widths:
        require_independent(plan, worked, alphabet, notes)
    return int(max(widths, default=1))


def require_independent(plan: Plan, index: int, alphabet: Alphabet, notes: list[str]) -> None:
    """Look at runs of a pair: do other generators give other outputs, and the same the same?

    Raises
    ------
    MechanismError
        If other generators give the same outputs: such runs are not independent.
    """
    for runs in _TRIES:
        drawn = [
            blocks.draw(
                plan.target,
                plan.pairs[index][0],
                runs,
                blocks.generator(plan.seed, PROBING, index, key, 0),
                alphabet=Alphabet(width=alphabet.width),
            )
            for key in (1, 1, 2)
        ]
        again, other = _same(drawn[0], drawn[1]), _same(drawn[0], drawn[2])
        constant = bool((drawn[0] == drawn[0][:1]).all())
        sure = copies.told([row.tobytes() for row in drawn[0]]) >= _SURE
        if not other or constant or sure:
            break
    if other and sure:
        raise MechanismError(
            f"{plan.target.name} returned the same outputs for different random generators: its "
            "runs are not independent. Does it seed a generator of its own, or write over the "
            "array that it returned before?"
        )
    found = ""
    if constant and again and other:
        found = (
            "64 runs gave one output: the mechanism may be deterministic on this dataset (if it "
            "keeps its answer or its seed, runs are not independent and no refutation holds)"
        )
    elif not again:
        found = NOT_REPEATABLE
    notes += [found] * (bool(found) and found not in notes)


def _same(first: Matrix, second: Matrix) -> bool:
    alike = first.shape == second.shape and np.array_equal(first, second, equal_nan=True)
    return bool(alike and np.array_equal(np.signbit(first), np.signbit(second)))


def oddities(
    first: Matrix, second: Matrix, *, mixed: bool, with_bits: bool = True
) -> Iterable[str]:
    """Say what is odd about the outputs that an event is learned from."""
    sides = first, second
    lengths = np.unique(np.concatenate([side[:, 0] for side in sides])) if mixed else first[:0, 0]
    if len(lengths) > 1:
        yield (
            f"outputs have {len(lengths)} different lengths, {lengths[0]:g} to {lengths[-1]:g} "
            "(the length counts as part of the output)"
        )
    if not np.issubdtype(np.result_type(first, second), np.floating):
        return
    if with_bits and (said := bits.bounded(first)):
        yield said
    if all(np.isfinite(side).all() for side in sides):
        return
    contain = [np.isnan(side).any(axis=1) for side in sides]
    if share := float(np.mean(np.concatenate(contain))):
        yield f"{share:.2%} of the training outputs contain NaN (it counts as a value)"
    if any(np.isinf(side).any() for side in sides):
        yield "some outputs are infinite"
