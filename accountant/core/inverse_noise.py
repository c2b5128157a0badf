"""Symmetric noise of one number as a function of an exponential variable.

With E standard exponential and F the distribution function of the noise, |noise| is the increasing
function g(E), F(g(y)) = 1 − e^{−y}/2. So a declaration of g is enough for a release on a lattice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from flint import arb

from dpassay.accountant.core.arrays import NDArray, np
from dpassay.accountant.numbers.exact import ExactReal


@final
@dataclass(frozen=True)
class InverseNoise:
    """A density symmetric about 0, by its inverse in units of its scale.

    The functions stand at the top of a module: other processes get them by name.

    Parameters
    ----------
    scale
        The unit of the noise.
    magnitude
        Maps an array namespace and doubles y ≥ 0 to g(y), to within 16·2^−53·(1 + g(y)).
    exact
        Maps a ball y ≥ 0 to a ball that contains g(y).
    slope
        A bound of g′.
    survival
        Maps doubles x ≥ 0 to P(noise ≥ x·scale), to a few units in the last place.
    reach
        An x beyond which the noise lies with a probability below 2⁻⁵⁰.
    """

    scale: ExactReal
    magnitude: Callable[[Any, Any], Any]
    exact: Callable[[arb], arb]
    slope: float
    survival: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    reach: float = 36.0
