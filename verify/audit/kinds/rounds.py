"""Rounds of a sequential audit: what they were, what they prove, and how they are kept."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.audit.learning.outputs import Matrix
from dpassay.verifier.audit.runs import disk
from dpassay.verifier.audit.statistics.guarantee import Point

_ROUNDING = 1e-12
"""Relative, for each term and each product: doubles are wrong by 1e-15."""


@final
@dataclass(frozen=True)
class Round:
    """One round: what was bet, and how it came out."""

    epsilon: str
    delta: str
    stake: float
    right: int
    wrong: int
    runs: int
    event: str
    pair: int

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        bet = asdict(self)
        tested = {name: bet.pop(name) for name in ("epsilon", "delta")}
        return {"tested": tested, **bet}

    @property
    def log_factor(self) -> float:
        """The logarithm of what the round multiplied the capital by."""
        point = Point.read(self.epsilon, self.delta)
        return log_factor((self.right, self.wrong, self.runs), point, self.stake)


def log_factor(counts: tuple[int, int, int], point: Point, stake: float) -> float:
    """Return the logarithm of the factor of a round, rounded down.

    The chance of a loss is raised by 10⁻¹² of itself and the sum lowered by 10⁻¹² of its parts,
    which is far more than doubles and their elementary functions are wrong by.
    """
    right, wrong, runs = counts
    factor, delta = math.exp(float(point.epsilon)), float(point.delta)
    lost = stake * (factor + delta) * (1 + _ROUNDING)
    terms = (
        right * math.log1p(stake * (1 - delta)),
        wrong * (math.log1p(-lost) if lost < 1 else -math.inf) if wrong else 0.0,
        (runs - right - wrong) * math.log1p(-stake * delta),
    )
    if terms[1] == -math.inf:
        return -math.inf
    return sum(terms) - _ROUNDING * sum(map(abs, terms))


@final
class Evidence:
    """E_t = M_t + 1/(t + 1) with M_t = (M_{t−1} + w_t) F_t, over the rounds, rounded down."""

    def __init__(self) -> None:
        self._rounds, self._capital = 0, 0.0
        self.now, self.best = 1.0, 1.0

    def add(self, entry: Round) -> None:
        """Count one more round."""
        self._rounds += 1
        weight = 1 / (self._rounds * (self._rounds + 1))
        self._capital = (self._capital + weight) * math.exp(min(700.0, entry.log_factor))
        self._capital *= 1 - _ROUNDING
        self.now = self._capital + (1 - _ROUNDING) / (self._rounds + 1)
        self.best = max(self.best, self.now)


@final
class KeptRounds:
    """Rounds with their outputs on disk, whole at any time; nowhere for no path.

    The file lists the rounds; the outputs of round k are beside it, in FILE.round-k.npz.
    """

    def __init__(self, path: Path | None, digest: str, seed: int) -> None:
        self._path, self._digest, self._seed = path, digest, seed
        self.rounds: list[Round] = []
        self.state: dict[str, Any] = {}
        data = disk.begun(path, digest)
        if data is None:
            return
        try:
            self.rounds = [Round(**entry) for entry in data["rounds"]]
            self.state = dict(data["state"])
        except (ValueError, KeyError, TypeError):
            raise InvalidInputError(f"{path} is no checkpoint of an audit until refuted.") from None

    def add(
        self, entry: Round, outputs: tuple[Matrix, Matrix] | None, state: dict[str, Any]
    ) -> None:
        """Keep one more round, its outputs first; `state` is what a player needs to go on."""
        self.rounds.append(entry)
        if self._path is None:
            return
        if outputs is not None:
            path = self._outputs(len(self.rounds) - 1)
            disk.save(path, first=outputs[0], second=outputs[1])
        data = {
            "audit": self._digest,
            "seed": str(self._seed),
            "rounds": [asdict(one) for one in self.rounds],
            "state": state,
        }
        disk.write(self._path, data)

    def outputs(self, number: int) -> tuple[Matrix, Matrix]:
        """Return the outputs of a round.

        Raises InvalidInputError where they are missing.
        """
        path = self._outputs(number)
        found = disk.arrays(path, "first", "second")
        if found is None:
            raise InvalidInputError(
                f"{path}, which belongs to the checkpoint {self._path}, cannot be read. Remove the "
                "checkpoint to begin again."
            )
        return found[0], found[1]

    def described(self, pairs: int) -> str:
        """Say what is kept of so many pairs of runs."""
        counted = f"{len(self.rounds)} rounds ({pairs} pairs of runs) were drawn and"
        return f"{counted} {disk.whereabouts(self._path)}"

    def _outputs(self, number: int) -> Path:
        return disk.beside(self._path, f"round-{number}")
