"""Our own mechanisms as targets: the dataset is the true answer, the output answer + noise.

A mechanism says itself at which true answers its worst case is attained (`worst_answers`) and how
its outputs are drawn (`outputs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError

Pair: TypeAlias = tuple[Any, Any]


@final
@dataclass(frozen=True)
class MechanismTarget:
    """A mechanism of this package; a dataset is a true answer (of a composition: one per part)."""

    mechanism: Mechanism

    @property
    def name(self) -> str:
        """Its notation."""
        return str(self.mechanism)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `size` releases of the true answer `dataset`."""
        return self.mechanism.outputs(dataset, size, rng=rng)


def neighbours(mechanism: Mechanism) -> list[Pair]:
    """Return the pairs of true answers (without, with the record) at which the worst is attained.

    Raises InvalidInputError for a mechanism that lists none.
    """
    found = mechanism.worst_answers()
    if not found:
        raise InvalidInputError(
            f"No worst pair of true answers is listed for {type(mechanism).__name__}. "
            "Name two with pairs=[(answer, neighbouring answer)]."
        )
    return found
