"""Programs that fail: whether they do is seen by whoever runs them. A failure is its name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.verify.audit.zoo.case import EPSILON, broken, control
from tests.verify.audit.zoo.draws import laplace

_FOLKLORE = "folklore"


def _seen(release: Callable[[Any], float], inputs: Any) -> list[Any]:
    """Return outputs or, for a run that raises, the name of the error."""
    found: list[Any] = []
    for each in inputs:
        try:
            found.append(release(each))
        except (ArithmeticError, ValueError) as error:
            found.append(type(error).__name__)
    return found


@broken("fails-without-records", EPSILON, ((), (0.5,)), true=math.inf, source=_FOLKLORE)
def fails_without_records(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Divide a sum of records of [0, 1] by their number, then add noise: none is an error."""
    noise = laplace(rng, 1 / EPSILON, size)
    return _seen(lambda z: sum(dataset) / len(dataset) + z, noise)


@broken("fails-on-a-sampled-record", EPSILON, ((1, 2), (1, 300)), true=math.inf, source=_FOLKLORE)
def fails_on_a_sampled_record(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Count a sample of 1 %, with each record read as a byte first: 300 is none, once in 100."""

    def release(drawn: Any) -> float:
        sampled, noise = drawn
        return len(bytes([dataset[1]] if sampled else [])) + float(noise)

    return _seen(
        release, zip(rng.random(size) < 0.01, laplace(rng, 1 / EPSILON, size), strict=True)
    )


@control("fails-after-noise", EPSILON, (1, 2), true=EPSILON, source="post-processing")
def fails_after_noise(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    """Take the logarithm of a noisy count: whether that fails is a function of what is private."""
    return _seen(math.log, dataset + laplace(rng, 1 / EPSILON, size))
