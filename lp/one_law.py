"""One law for all counts: when it is optimal, and its closed form.

Part 1: laws that depend on the count have a smaller δ only if there are few counts.

Let K consecutive counts n ≥ D have laws p_0, …, p_{K−1} on −D..D with P(Z = 0) = η, mean 0 and
largest excess δ of single outcomes. Define v_0 = η, v_z = (v_{z−1} − δ)/E, and for 0 ≤ m ≤ D/2
u_0 = η, u_z = E u_{z−1} + δ for z ≤ m, u_{D+1} = 0, u_z = E u_{z+1} + δ for z > m. A single law
requires 2 Σ_{z≤k} v_z ≤ 1 − η for k ≤ D, that is δ ≥ δ_k, and 2 Σ_z u_z ≥ 1 − η, that is δ ≥ δ^(m)
(`CountNoise.bound`, `CountNoise.missing_bound`). With C = 2η/(1 − η), C_k = P_{k+1}/A_k and
C_0 = ∞, the optimum of a single law is δ_k for C_k ≤ C ≤ C_{k−1} and some δ^(m) for C ≤ C_D.

**Theorem.** The optimum over all laws is that of one law if and only if K is at least

    2k + 1  for C_k ≤ C < C_{k−1} and k < D,   2D  for C_D < C < C_{D−1},   D + 1  for C < C_D,
    and for C = C_D: 2 if E = 1 or D = 1, else D.

So 2D counts, N = 3D − 1, are always enough. A single count has δ = 0.

**Sufficiency.** Let e_i(z) = p_i(z) − v_z, f_i(z) = p_i(−z) − v_z for z ≥ 1. Comparing an output
with the neighbour that has the smaller error gives e_i(z) ≥ e_{i+1}(z − 1)/E, so e_i(z) ≥ 0 if
i + z < K, and f_i(z) ≥ 0 if z ≤ i.
(1) K ≥ 2k + 1: the law i = k has e, f ≥ 0 for z ≤ k. Its mass gives 1 − η ≥ 2 Σ_{z≤k} v_z.
(2) k = D, K ≥ 2D: the law i = D has f ≥ 0, and e ≥ 0 for z < D. Its mean is 0, so D Σ e ≥ Σ z e = Σ
    z f ≥ 0: its mass is at least 2 Σ v again.
(3) K ≥ D + 1, δ^(m). Take D + 1 of the laws; e, f are now excesses over u, with e(0) = e(D + 1) =
    0: e_i(z) ≤ E e_{i−1}(z + 1) for z > m, i ≥ 1, e_i(z) ≤ E e_{i+1}(z − 1) for z ≤ m, i < D, and
    f_i(z) satisfies what e_{D−i}(z) does. It is enough to find λ_i ≥ 0, not all 0, and μ_i with
    λ_{D−i} = λ_i, μ_{D−i} = −μ_i and Σ_i Σ_z (λ_i − μ_i z) e_i(z) ≤ 0: add the mirror image; the
    means are 0, so Σ_i λ_i (1 − η) ≤ 2 Σ_i λ_i Σ_z u_z. With A = λ − mμ, B = λ + mμ, zero outside
    m..D − m, let λ_m = 1, μ_m = 0 if D = 2m, and else μ_m = 1 = A_m, μ_{D−m} = −1, B_{D−m} = 1, and
    for m < i < D − m
        A_i = (a A_{i−1} + b B_{i+1})/E,  B_i = (b A_{i−1} + a B_{i+1})/E,
        a = (2m + 1)/(2m + 2),  b = 1 − a:
    a walk that is stopped at its ends, so there is one solution, and 0 ≤ A, B ≤ 1 inside. Then
    A_i = μ_i + A_{i−1}/E for i < D − m, and B_i = −μ_i + B_{i+1}/E for i > m. Weights of the
    comparisons, all ≥ 0, that make up the sum, for z = m + r and z = m + 1 − r with r ≥ 1:
        w_i = A_i − rμ_i + E w_{i+1}(r − 1),   q_i = λ_i − (m + 1)μ_i + rμ_i + E q_{i−1}(r − 1).
    For m ≤ i ≤ D − m and r ≤ D − m − i, w_i = r A_{i−1}/E, so w_0 = 0 as it must. Beyond, w_i is
    linear in r with slope y_i = E y_{i+1} − μ_i, and exceeds that line by E^{D−m−i} A_{D−m} > 0 at
    r = D − m − i; y_{D−m} = 1, y_i ≥ B_i for i > m, and y_m = E^{D−2m−1}(E − B_{m+1}) ≥ 0. q_m = r,
    q_i ≥ r A_i, q_{D−m} ≥ 2(m + 1) − r > 0, and then q_i = E q_{i−1}(r − 1) ends with q_D = 0.
(4) C = C_D. Let e, f be excesses over δ_D P_{D+1−|z|}, so e_i(z) ≤ E e_{i−1}(z + 1) − (δ_D − δ) for
    z ≥ 0, i ≥ 1. Their masses and means are 0: δ ≥ δ_D if weights w_i(z) ≥ 0, not all 0, of these
    make up Σ (λ_i − μ_i z) e_i(z), z ≥ 1, with λ, μ as in (3). For E = 1, K = 2: w_1(z) = 2z + 1,
    λ = 1, μ_0 = 2. For K = D ≥ 2: a_0 = a_D = 0, and the other a_i ≥ 0 in turn with E a_{i+1} +
    a_{D−1−i} = a_i + E a_{D−i} + E^{−i} − E^{i+1−D}, plus 1 for i = 0, for i < D − 1 − i; μ_0 = 1
    = −μ_{D−1}, μ = 0 between, λ_i = a_i − E a_{i+1} + E^{−i}, less 1 for i = D − 1; w_i(z) = a_i +
    zE^{−i} for z ≤ D − i, a_i + (D − i)E^{−i} + (z + i − D)E^{D−1−i} beyond, i ≥ 1.

**Necessity.** For smaller K the copies of the optimal law can be perturbed slightly so that all
masses fall below 1 − η (in (3): rise above it) by the same amount, the means stay 0 and no tight
comparison is violated. At a slightly smaller δ the perturbed laws, mixed with a law of too large
(too small) mass, are a solution.
(1) k < D, K = 2k. In the law k + j, j < k, lower p(k − j) by t E^j and raise p(D) by (k − j) t
    E^j/D, and mirror this in the law k − 1 − j. The means stay 0, and every mass falls, as k − j <
    D; p(±D) is below δ, and may be raised until all fall by the same.
(2) k = D, K = 2D − 1. The same from the law D − 1 on, which lowers p(D) and p(−D) by t.
(3) K = D ≥ 2. As BδP_{D+1−z} falls and E^z C + BδP_z rises with z, two δ^(m) at most are largest:
    those of m − 1 and m, where 1 ≤ m ≤ D/2. (If it is one, of m ≥ 1 or of 0, take this m or m = 1.)
    Only the comparisons in (3) above are tight, and both for z = m. By Farkas' lemma the copies can
    be moved unless λ, μ as there exist, of any sign but Σλ > 0, with D laws. Let a_i, b_i ≥ 0 be
    the weights of the outward and of the inward comparison of e_i(m), a'_i, b'_i those of f_i(m):
    A = a + b, B = a' + b'. The law 0 has nothing before it, so
        E^r a_r = Σ_{j<r} E^j ((r − j)μ_j − A_j),  r ≤ D − m,    a_0 = 0,
        E^r b'_r = Σ_{j<r} E^j ((r − j)μ_j − B_j),  r < m,       b'_0 = 0.
    For r = 1, …, m − 1 in turn μ_{r−1} ≥ A_{r−1}, B_{r−1} ≥ 0, but B = A + 2mμ: they are 0. Let l =
    m − 1, h = D − m; a_l = b'_l = 0, λ = μ = 0 outside l..h. M_i = Σ_{j≤i} E^{j−i} μ_j is b_i + E
    a_{i+1} for i < h, so M_i ≥ b_i ≥ 0; its mirror image M' is ≥ 0 for i > l, and M_i + M'_i =
    (M_{i−1} + M'_{i+1})/E for l < i < h. Their sum gives M_{h−1} ≤ M_l. And 2mM_l ≤ A_l + 2mμ_l =
    B_l = a'_l ≤ M'_{l+1}/E = M_{h−1}/E. So M_l = M_{h−1} = 0: all of l and h is 0, as are a_{l+1},
    b'_{l+1}, and the same holds for l + 1..h − 1, and so on; where l = h, a = b = 0. So λ = 0.
(4) C = C_D, E > 1, K = D − 1 ≥ 2. Only the comparisons in (4) above are tight: there are laws for a
    smaller δ unless w, λ, μ as there exist. Let a_i = w_i(0), a_0 = a_K = 0, M as in (3). That w_0
    = 0 means E a_{i+1} = a_i + M_i − λ_i for i < K and M_{K−1} = 0; so w_i(z) = a_i + zM_{i−1}/E.
    As λ_i = λ_{K−1−i}, S_i = E a_i + a_{K−i} ≥ 0 has S_{i+1} ≤ E S_i + M_i − M_{K−1−i}; and M_i +
    M_{K−1−i} = (M_{i−1} + M_{K−2−i})/E. By induction S_{i+1} ≤ M_i and M_{K−1−i} ≥ E M_{i−1}, so M
    ≥ 0; the sum over i is ΣM = ΣM/E, so M = 0, S = 0 and w = 0.

Part 2: the closed form of one law for all counts n ≥ D, as a primal and a dual solution.

With x_i = α_i for 1 ≤ i ≤ D, x_0 = C, x_{D+1} = 0 and s = Bδ, the comparisons of a symmetric law
p(±i) = α_i/B are x_i ≤ E x_j + s for |i − j| = 1. Their least and greatest solutions are

    v_i = max(0, (C − s P_i)/E^i),    u_i = min(s P_{D+1−i}, E^i C + s P_i).

Hence a law exists if and only if Σ v ≤ 1 ≤ Σ u, and then a mixture of v and u is one
(`dpassay.accountant.counting.count_noise`, `CountNoise.optimal_delta`). The multipliers that prove
optimality are those of the summation. For δ_k of Lemma 1 they follow the chain from z = 0 to k,
w_i = (w_{i+1} + 1)/E. For the bound with m, which the paper omits for m ≥ 1, they follow the chain
from m inward, u_i = 1 + E u_{i+1}, and from m + 1 outward, t_i = 1 + E t_{i−1}.

The proof does not rely on this derivation: the solution is verified like any other.
"""

from __future__ import annotations

from flint import arb, fmpq

from dpassay.accountant.counting.count_noise import CountNoise
from dpassay.lp.build import CountProgram
from dpassay.lp.problem import CountNoiseProblem, Value, middle, to_fmpq


def counts_for_one_law(problem: CountNoiseProblem) -> int | None:
    """Return the least K such that for K consecutive counts n ≥ D one law is optimal.

    For fewer counts, laws that depend on the count have a smaller δ of single outcomes. The result
    is None if C cannot be told from a crossover C_k at the current precision.
    """
    noise = CountNoise(problem.exponential(), to_fmpq(problem.eta), problem.support)
    last = problem.support
    for k in range(1, last + 1):
        end = noise.crossover(k)
        tie = isinstance(end, fmpq) and end == noise.c
        if _below(end, noise.c) or (tie and k < last):
            return min(2 * k + 1, 2 * last)
        if tie:
            return 2 if noise.ratio == 1 else max(2, last)
        if not _below(noise.c, end):
            return None
    return last + 1


def _below(a: Value, b: Value) -> bool:
    return bool(a < b) if isinstance(a, fmpq) and isinstance(b, fmpq) else bool(arb(a) < arb(b))


def closed_form(
    problem: CountNoiseProblem, program: CountProgram
) -> tuple[list[Value], list[Value]]:
    """Return the primal point and the multipliers of the program of a single law.

    Parameters
    ----------
    problem
        A problem with `max_count` None.
    program
        The `count_program` of `Layout.one_law`.
    """
    noise = CountNoise(problem.exponential(), to_fmpq(problem.eta), problem.support)
    delta = noise.optimal_delta
    law = _weights(noise, noise.b * delta)
    point: list[Value] = [delta]
    point += [_middle(law[abs(z) - 1] / noise.b) for _, z in program.entries]
    return point, _multipliers(noise, program)


def _weights(noise: CountNoise, slack: Value) -> list[Value]:
    """Return α_1, …, α_D of sum 1, a mixture of the least and the greatest solution."""
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
    """Return the multipliers that prove the largest lower bound."""
    support, ratio = noise.support, noise.ratio
    flows: dict[tuple[int, int], Value] = {}  # (z, z') → multiplier of p(z) ≤ E p(z') + δ, z ≥ 0
    ends = [(noise.bound(k), k) for k in range(1, support + 1)]
    splits = [(noise.missing_bound(m), m) for m in range(support // 2 + 1)]
    best, end = max(ends, key=lambda pair: middle(pair[0]))
    other, split = max(splits, key=lambda pair: middle(pair[0]))
    level: Value = fmpq(0)
    if middle(best) >= middle(other):
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


def _middle(value: Value) -> Value:
    return value.mid() if isinstance(value, arb) else value
