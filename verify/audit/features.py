"""Features: maps from outputs to one number each, out of which events are made.

A feature is plain data and a function of the single output, so that {feature ≥ t} and
{feature in a set} are events. Every proposer is asked for features once, on the training runs
alone, and may learn whatever it likes from them; the events that come out are then tested on
fresh runs, so that nothing a proposer does can make a test invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from verify.audit.outputs import Matrix


@runtime_checkable
class Feature(Protocol):
    """A number for every output."""

    @property
    def name(self) -> str:
        """What the report calls it, such as `exponent of output[0]`."""

    @property
    def discrete(self) -> bool:
        """Whether its values are taken one by one (categories, bits) rather than in order."""

    def __call__(self, outputs: Matrix) -> NDArray[np.float64]:
        """Return one number per row; no NaN."""

    def to_json(self) -> Mapping[str, Any]:
        """Return plain data that says how it is computed."""


Proposer: TypeAlias = Callable[[Matrix, Matrix], Iterable[Feature]]
"""Given the training outputs of both datasets, return features."""
