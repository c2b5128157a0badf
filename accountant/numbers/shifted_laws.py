"""A law against itself, moved: for the mpmath route, which is loaded where it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accountant.numbers.reference import Reference
else:
    Reference = Any

__all__ = ["Reference", "shifted_density", "shifted_masses"]


def shifted_density(
    log_density: Callable[[Any, Any], Any],
    by: Callable[[], Any],
    log_normaliser: Callable[[Any], Any] = lambda mp: mp.mpf(0),
    *,
    knots: Callable[[Any], list[Any]] = lambda t: [0 * t, t],
) -> Reference:
    """Return f(x − t) against f(x).

    Parameters
    ----------
    log_density
        ln f from mpmath's context and x, less what `log_normaliser` returns from the context.
    by
        Returns t at mpmath's precision.
    knots
        Returns points from t, between which the loss is monotone.
    """
    from mpmath import mp

    from accountant.numbers.reference import Continuous

    return Continuous(
        log_p=lambda x: log_density(mp, x - by()),
        log_q=lambda x: log_density(mp, x),
        log_normaliser=log_normaliser,
        knots=lambda: knots(by()),
    )


def shifted_masses(mass: Callable[[Any, int], Any], by: int) -> Reference:
    """Return p(z − s) against p(z) on the integers, p from mpmath's context and z."""
    from mpmath import mp

    from accountant.numbers.reference import Discrete

    return Discrete(lambda z: (mass(mp, z - by), mass(mp, z)), None, None)
