"""Runs that depend on each other, which no count may take for independent ones.

*Changed datasets.* A mechanism that adds noise to its dataset in place begins each run where the
one before ended.

*Copies.* A mechanism with a generator of its own is copied with it to every process, a forked
process begins with the state of its parent, and a generator that is seeded by the time is the same
for a while: each makes blocks that begin alike. Let p̂ be the frequencies of the first n outputs of
a block. If runs are independent with any law p, another block begins with the same n outputs with
probability ∏ p(output) ≤ ∏ p̂(output) = exp(−n·entropy of p̂): where this is small, equal beginnings
are copies.
"""

from __future__ import annotations

import hashlib
import math
import pickle
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from dpassay.verifier.audit.runs.target import MechanismError, Target

_LENGTHS = 64, 512, 4096
"""Outputs at the beginning of a block that are looked at, more where they tell little."""
_ENOUGH = 60.0
"""Nats that they must tell: independent blocks are taken for copies with probability 1e-26 a pair,
so 1e-10 in all where 10⁸ blocks are compared."""


@final
@dataclass(eq=False)
class Watched:
    """A target that notes how its first outputs begin."""

    target: Target
    beginning: bytes = b""
    """A digest; empty where the outputs tell too little."""
    _looked: bool = field(default=False)

    @property
    def name(self) -> str:
        """That of the target."""
        return self.target.name

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """Return the outputs of the target."""
        outputs = self.target.sample(dataset, size, rng)
        if not self._looked:
            self._looked, self.beginning = True, _beginning(outputs)
        return outputs


@final
@dataclass(eq=False)
class Beginnings:
    """How the blocks that were counted begin."""

    name: str
    seen: set[bytes] = field(default_factory=set)

    def add(self, beginning: bytes) -> None:
        """Note one more; raise MechanismError if it was there."""
        if beginning and beginning in self.seen:
            raise MechanismError(
                f"{self.name} returned the same outputs in two blocks of runs: they are not "
                "independent. Does it seed a generator of its own, or does every worker get a copy "
                "of one? Use the rng that the audit gives it, or executor=None (--workers 1)."
            )
        self.seen.add(beginning)


def state(dataset: Any) -> Any:
    """Return what is in a dataset that a mechanism could change; None where that is not known."""
    try:
        if hasattr(dataset, "__array__"):  # tensors and frames too
            array = np.asarray(dataset)
            return pickle.dumps(array.tolist()) if array.dtype == object else array.tobytes()
        return pickle.dumps(dataset) if isinstance(dataset, (list, tuple, dict, set)) else None
    except Exception:  # noqa: BLE001 (of tensors on a device, or of what is in it: anything)
        return None


def require_unchanged(name: str, before: Any, dataset: Any) -> None:
    """Raise MechanismError where a dataset is not what it was."""
    if state(dataset) != before:
        raise MechanismError(
            f"{name} changes the dataset that it is given: runs that begin where others ended are "
            "not independent. Give it a copy, such as lambda dataset, rng: "
            "mechanism(copy.deepcopy(dataset), rng)."
        )


def told(outputs: Sequence[bytes]) -> float:
    """Return n times the entropy of p̂, in nats."""
    count = len(outputs)
    return sum(times * math.log(count / times) for times in Counter(outputs).values())


def _beginning(outputs: Any) -> bytes:
    for length in _LENGTHS:
        if not hasattr(outputs, "__getitem__") or len(outputs) < length:
            break
        first = [
            one.tobytes() if isinstance(one, (np.ndarray, np.generic)) else repr(one).encode()
            for one in outputs[:length]
        ]
        if told(first) >= _ENOUGH:
            return hashlib.sha256(b"\0".join(first)).digest()[:16]
    return b""
