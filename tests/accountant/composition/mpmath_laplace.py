"""The independent route for products of Laplace laws."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

from mpmath import mp, mpf

from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from tests.accountant.mpmath_reference import Reference

_MAX_COORDINATES = 4


@final
@dataclass(frozen=True)
class LaplaceProductReference(Reference):
    """The law of the loss under P, by cases: each coordinate on +t, on −t, or between.

    With the coordinates I between, and the others on atoms, the loss is c + l where l has the
    density Π (1/4) e^{−t/2} · e^{l/2} · V(l), and V is the convolution of the indicators of
    (−t, t) over I, V(l) = Σ over signs of Π σ_i · (l + σ·t)₊^{m−1}/(m − 1)!, m = |I|.
    """

    unit: ExactReal
    multiples: tuple[int, ...]

    def integrate(self, integrand: Callable[[Any, Any], Any], epsilon: Any | None) -> Any:
        """Sum over the 3^d cases, one quadrature each."""
        if len(self.multiples) > _MAX_COORDINATES:
            raise NotApplicableError(
                f"The mpmath route sums 3^d cases; it serves d ≤ {_MAX_COORDINATES}, "
                f"not {len(self.multiples)}."
            )
        distances = [number * self.unit.mpf() for number in self.multiples]
        total = mpf(0)
        for case in itertools.product((1, -1, 0), repeat=len(distances)):
            weight, start = mpf(1), mpf(0)
            between = [t for t, side in zip(distances, case, strict=True) if side == 0]
            for t, side in zip(distances, case, strict=True):
                weight *= {1: mpf(1) / 2, -1: mp.exp(-t) / 2, 0: mp.exp(-t / 2) / 4}[side]
                start += side * t
            total += _case(integrand, epsilon, weight, start, between)
        return total


def _case(
    integrand: Callable[[Any, Any], Any],
    epsilon: Any | None,
    weight: Any,
    start: Any,
    between: Sequence[Any],
) -> Any:
    if not between:
        # an atom within rounding of ε lies at ε, and so not above it
        counted = epsilon is None or start > epsilon + mp.ldexp(1, -mp.prec // 2)
        return integrand(weight, weight * mp.exp(-start)) if counted else mpf(0)
    knots = _signed_sums(between)
    least = knots[0] if epsilon is None else max(knots[0], epsilon - start)
    cuts = [least, *(knot for knot in knots if knot > least)]

    def value(loss: Any) -> Any:
        p = weight * mp.exp(loss / 2) * _convolution(between, loss)
        return integrand(p, p * mp.exp(-start - loss))

    return mp.quad(value, cuts) if len(cuts) > 1 else mpf(0)


def _signed_sums(values: Sequence[Any]) -> list[Any]:
    signs = itertools.product((1, -1), repeat=len(values))
    return sorted({sum(s * v for s, v in zip(row, values, strict=True)) for row in signs})


def _convolution(halves: Sequence[Any], at: Any) -> Any:
    """Return V(l)."""
    m, total = len(halves), mpf(0)
    for signs in itertools.product((1, -1), repeat=m):
        base = at + sum(s * t for s, t in zip(signs, halves, strict=True))
        if base > 0:
            total += mp.fprod(signs) * base ** (m - 1)
    return total / mp.factorial(m - 1)
