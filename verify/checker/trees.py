"""Errors of counting trees a second time: by splitting off the last digit of every time step.

With t = ku + d and digits −low..k−1−low, the vertices of all t ≤ n are those of all u, once for
each d that keeps 1 ≤ ku + d ≤ n, and |d| for each. The other path counts digits level by level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import final

from dpassay.verifier.checker.reals import UnknownError

_MOST_DIGITS = 100_000
"""Largest arity of a tree that is followed."""
_MOST_USES = 1_000_000
"""Most vertices of all outputs that are written out."""


def vertices(arity: int, steps: int, low: int) -> Fraction:
    """Sum |d| over the digits of 1..steps, from the shortest time steps up."""
    if arity > _MOST_DIGITS:
        raise UnknownError(f"the digits of a tree of arity {arity}")
    digits = range(-low, arity - low)
    needed, added = {steps}, {steps}
    while added:  # every (n − d)//k is below n
        added = {(n - d) // arity for n in added for d in digits}
        added = {n for n in added if n > 0}
        needed |= added
    totals = {0: 0}
    for n in sorted(needed):
        total = 0
        for digit in digits:
            first, last = (0 if digit > 0 else 1), (n - digit) // arity
            if last >= first:
                total += totals[last] + abs(digit) * (last - first + 1)
        totals[n] = total
    return Fraction(totals[steps])


def _height(arity: int, steps: int, low: int) -> int:
    height, reach = 0, 0
    while height == 0 or reach < steps:
        height, reach = height + 1, reach * arity + (arity - 1 - low)
    return height


def _shape(arity: Fraction, steps: Fraction, *, signed: bool) -> tuple[int, int, int]:
    """Return k ≥ 2, n ≥ 1 and the negative of the least digit; raise ValueError otherwise."""
    if arity != int(arity) or steps != int(steps) or arity < 2 or steps < 1:
        raise ValueError("arity or steps of a tree out of range")
    return int(arity), int(steps), (int(arity) - 1) // 2 if signed else 0


def height(arity: Fraction, steps: Fraction, *, signed: bool) -> Fraction:
    """Return the least number of digits that writes every time step."""
    return Fraction(_height(*_shape(arity, steps, signed=signed)))


def mean_squared_error(arity: Fraction, steps: Fraction, *, signed: bool) -> Fraction:
    """Return 2h² times the average number of vertices of an output."""
    k, n, low = _shape(arity, steps, signed=signed)
    return 2 * _height(k, n, low) ** 2 * vertices(k, n, low) / n


def honaker(steps: Fraction) -> Fraction:
    """Return 2h² times the average of Σ v_i over the binary digits, v_i by its recursion."""
    n, total, weight, level = int(steps), Fraction(0), Fraction(1), 0
    while n >> level:
        block = 1 << level
        full, rest = divmod(n + 1, 2 * block)
        total += weight * (full * block + max(0, rest - block))
        weight, level = 1 / (1 + 1 / (2 * weight)), level + 1
    return 2 * level**2 * total / n


def digits(arity: int, step: int, low: int) -> list[int]:
    """Return the digits −low..k−1−low of a time step, the last one first."""
    found = []
    while step:
        digit = (step + low) % arity - low
        found.append(digit)
        step = (step - digit) // arity
    return found


@final
@dataclass(frozen=True)
class Use:
    """A vertex that an output adds or takes away: the inputs start+1, …, start+size."""

    step: int
    start: int
    size: int
    sign: int


def uses(arity: int, steps: int, low: int) -> list[Use]:
    """Return the vertices that the outputs combine.

    With t = (…)kⁱ⁺¹ + d kⁱ + …, u the time step without its last i digits: d > 0 adds the d
    vertices of size kⁱ before u, d < 0 takes away the |d| behind it.
    """
    if vertices(arity, steps, low) > _MOST_USES:
        raise UnknownError(f"the vertices of {steps} steps one by one")
    found = []
    for step in range(1, steps + 1):
        rest, size = step, 1
        for digit in digits(arity, step, low):
            for j in range(abs(digit)):
                start = rest - (j + 1) * size if digit > 0 else rest + j * size
                found.append(Use(step, start, size, 1 if digit > 0 else -1))
            rest -= digit * size
            size *= arity
    return found


def _spans(found: list[Use]) -> dict[tuple[int, int], list[int]]:
    """Return the outputs that use each vertex."""
    spans: dict[tuple[int, int], list[int]] = {}
    for use in found:
        spans.setdefault((use.start, use.size), []).append(use.step)
    return spans


def _most(ranges: list[tuple[int, int]]) -> int:
    """Return how many ranges (first, beyond) hold one point at most."""
    changes: dict[int, int] = {}
    for first, beyond in ranges:
        changes[first] = changes.get(first, 0) + 1
        changes[beyond] = changes.get(beyond, 0) - 1
    return max(accumulate(changes[place] for place in sorted(changes)))


def _misfits(found: list[Use], leaves: int) -> int:
    """Count the outputs whose vertices leave the tree, or do not add up to the prefix."""
    wrong, edges = set(), {use.step: {0: 1, use.step: -1} for use in found}
    for use in found:
        if use.start < 0 or use.start + use.size > leaves or use.start % use.size:
            wrong.add(use.step)
        for edge, sign in ((use.start, -use.sign), (use.start + use.size, use.sign)):
            edges[use.step][edge] = edges[use.step].get(edge, 0) + sign
    return len(wrong | {step for step, sums in edges.items() if any(sums.values())})


def _clashes(found: list[Use]) -> int:
    """Count the ends that name two vertices or signs, and the vertices that have two such names.

    The name of a vertex is where the sum arrives: its end where it is added, its start where it is
    taken away.
    """
    named: dict[int, set[tuple[int, int, int]]] = {}
    names: dict[tuple[int, int], set[int]] = {}
    for use in found:
        name = use.start + use.size if use.sign > 0 else use.start
        named.setdefault(name, set()).add((use.start, use.size, use.sign))
        names.setdefault((use.start, use.size), set()).add(name)
    return sum(len(v) > 1 for v in named.values()) + sum(len(v) > 1 for v in names.values())


_QUESTIONS: dict[str, Callable[[list[Use], int, int], int]] = {
    # the most used vertices that one input of the stream lies under
    "load": lambda found, steps, _: _most(
        [(a, min(a + size, steps)) for a, size in _spans(found) if a < steps]
    ),
    "terms": lambda found, *_: len(_spans(found)),
    # the most vertices that are between their first and their last use at once
    "live": lambda found, *_: _most([(min(at), max(at) + 1) for at in _spans(found).values()]),
    # the vertices whose uses are not consecutive outputs
    "gaps": lambda found, *_: sum(
        max(at) - min(at) + 1 != len(at) for at in _spans(found).values()
    ),
    "misfits": lambda found, _, leaves: _misfits(found, leaves),
    "clashes": lambda found, *_: _clashes(found),
}
WALKED = tuple(_QUESTIONS)
"""Questions about the vertices that are used, one by one."""


def walked(arity: Fraction, steps: Fraction, *, question: str, signed: bool) -> Fraction:
    """Answer a question about the vertices of all outputs."""
    k, n, low = _shape(arity, steps, signed=signed)
    return Fraction(_QUESTIONS[question](uses(k, n, low), n, k ** _height(k, n, low)))
