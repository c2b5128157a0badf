"""One law for all counts n ≥ D: the optimum that is known in closed form, as laws and multipliers.

With x_0 = C, x_{D+1} = 0 and s = Bδ the comparisons of a symmetric law p(±i) = α_i/B are
x_i ≤ E x_j + s for |i − j| = 1. Their least and greatest solutions are

    v_i = max(0, (C − s P_i)/E^i),    u_i = min(s P_{D+1−i}, E^i C + s P_i),

so that a law exists if and only if Σ v ≤ 1 ≤ Σ u, and a mixture of v and u is one
(`dpassay.accountant.counting.count_noise`, `CountNoise.optimal_delta`). The
multipliers that prove
that nothing is smaller are those of the summation: for δ_k of Lemma 1 they follow the chain from
z = 0 to k, w_i = (w_{i+1} + 1)/E; for the bound with m, which the paper leaves out for m ≥ 1,
they follow the chain from m inward, u_i = 1 + E u_{i+1}, and from m + 1 outward,
t_i = 1 + E t_{i−1}.

The certificate made of them is checked like any other; nothing here is taken on trust.
"""

from __future__ import annotations

from flint import arb, fmpq

from dpassay.accountant.counting.count_noise import CountNoise
from dpassay.lp.build import CountProgram
from dpassay.lp.problem import CountNoiseProblem, Value, to_fmpq


def closed_form(
    problem: CountNoiseProblem, program: CountProgram
) -> tuple[list[Value], list[Value]]:
    """Return a point and multipliers of the program of one law, in this order.

    Parameters
    ----------
    problem
        E, η and D; `max_count` is None.
    program
        `count_program` of `Layout.one_law`, with all constraints.
    """
    noise = CountNoise(problem.exponential(), to_fmpq(problem.eta), problem.support)
    delta = noise.optimal_delta
    law = _weights(noise, noise.b * delta)
    point: list[Value] = [delta]
    point += [_middle(law[abs(z) - 1] / noise.b) for _, z in program.entries]
    return point, _multipliers(noise, program)


def _weights(noise: CountNoise, slack: Value) -> list[Value]:
    """Return α_1, …, α_D, a mixture of the least and the greatest solution."""
    low: list[Value] = []
    high: list[Value] = []
    for i in range(1, noise.support + 1):
        inner = (noise.c - slack * noise.plain[i]) / noise.powers[i]
        outer = noise.powers[i] * noise.c + slack * noise.plain[i]
        low.append(_greater(inner, fmpq(0)))
        high.append(-_greater(-slack * noise.plain[noise.support + 1 - i], -outer))
    least, greatest = (sum(values, start=fmpq(0)) for values in (low, high))
    if not bool(greatest > least):
        return low
    share = (1 - least) / (greatest - least)
    return [a + share * (b - a) for a, b in zip(low, high, strict=True)]


def _multipliers(noise: CountNoise, program: CountProgram) -> list[Value]:
    """Return the multipliers of the largest lower bound."""
    support, ratio = noise.support, noise.ratio
    flows: dict[tuple[int, int], Value] = {}  # (z, z') → multiplier of p(z) ≤ E p(z') + δ, z ≥ 0
    ends = [(noise.bound(k), k) for k in range(1, support + 1)]
    splits = [(noise.missing_bound(m), m) for m in range(support // 2 + 1)]
    best, end = max(ends, key=lambda pair: _size(pair[0]))
    other, split = max(splits, key=lambda pair: _size(pair[0]))
    level: Value = fmpq(0)
    if _size(best) >= _size(other):
        mass = fmpq(-1)
        for i in range(end, 0, -1):
            level = flows[i - 1, i] = (level + 1) / ratio
    else:
        mass = fmpq(1)
        for i in range(split, 0, -1):
            level = flows[i, i - 1] = 1 + ratio * level
        level = fmpq(0)
        for i in range(split + 1, support + 1):
            level = flows[i, i + 1] = 1 + ratio * level
    total = 2 * sum(flows.values(), start=fmpq(0))
    result: list[Value] = [mass / total, fmpq(0)]
    for comparison, z in program.flows:
        # p(z) is compared with p(z − shift); the mirror image has the same multiplier
        further = z - comparison.shift
        sign = -1 if z < 0 or further < 0 else 1
        value = flows.get((sign * z, sign * further), fmpq(0))
        result.append(value / total)
    return result


def _greater(a: Value, b: Value) -> Value:
    if isinstance(a, fmpq) and isinstance(b, fmpq):
        return a if a >= b else b
    return arb(a).max(arb(b))


def _size(value: Value) -> arb:
    return arb(value).mid()


def _middle(value: Value) -> Value:
    return value.mid() if isinstance(value, arb) else value
