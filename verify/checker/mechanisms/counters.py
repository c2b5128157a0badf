"""Continual counting: how many measured sums one input is in, and the error of every output.

A counter releases L z for measured sums R x + z, L R the prefix sums. An input moves the measured
sums by a column of R, with entries 0 and ±1 for all trees here: h of them for the worst column.
Independent noise of scale h/ε on each makes this h Laplace laws at distance ε/h, and smaller
changes are a post-processing of the largest one.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from math import comb, isqrt
from typing import Any, Final

from dpassay.verifier.checker import trees
from dpassay.verifier.checker.notation import Noise
from dpassay.verifier.checker.reals import UnknownError

COUNTERS = (
    "BinaryTree",
    "BridgedTree",
    "DelannoyCounter",
    "HonakerTree",
    "KaryTree",
    "NormalizedSquareRoot",
    "SmoothBinary",
    "SquareRootFactorization",
)
SQUARE_ROOTS: Final = ("SquareRootFactorization", "NormalizedSquareRoot")
_MOST_LEVELS: Final = 10_000
_MOST_WORDS: Final = 10_000_000
"""Of the numbers of words that are added up, by length and norm."""
_MOST_STEPS: Final = 4096
"""Most steps of the square root whose rational numbers are written out."""
_MOST_NORMALIZED: Final = 128
"""Most steps of the one with columns of one length: its L has n² entries."""
_MOST_DISTANCES: Final = 64
"""Steps of one whose laws with Laplace noise are listed."""
_LEVELS: Final = 256
"""Of its weights."""


def sums_of_an_input(noise: Noise) -> int:
    """Return h, the measured sums that the worst input is in; all of them change by 1.

    * A k-ary tree of h levels: the vertices of a level are disjoint, so at most one of each. For
      n ≥ k^{h−1} the outputs at 1, k, …, k^{h−1} are one vertex each, all above the first input.
      That is the case without subtraction, as n is beyond the capacity k^{h−1} − 1 of fewer
      levels; with it, the mechanism has no exact law for the n below.
    * The binary tree, and Honaker's estimates from it: k = 2, and 2^{h−1} ≤ n < 2^h.
    * Bridged grids: an input is in one cell of each grid, and all cells are measured.
    * Chains: of the intervals of a level, which lie side by side in blocks, at most one holds an
      input; the first interval of each level begins with the first input.
    * Balanced leaves: of the h/2 zeros on the way to the first leaf 0^{h/2}1^{h/2}, the vertex 0^i
      is used where some later leaf among n begins otherwise: where at most n leaves begin with
      0^i, C(h − i, h/2) ≤ n. The way to another leaf begins with fewer zeros, and behind its
      first 1 has as many zeros fewer.
    """
    n = int(noise["steps"])
    match noise.name:
        case "BinaryTree" | "HonakerTree":
            return n.bit_length()
        case "BridgedTree":
            return len(noise["arities"])
        case "DelannoyCounter":
            return int(noise["levels"])
        case "SmoothBinary":
            half = balanced(n)
            return sum(comb(2 * half - i, half) <= n for i in range(1, half + 1))
        case "KaryTree" | "DiscreteKaryTree":
            return int(trees.height(noise["arity"], noise["steps"], signed=noise["subtraction"]))
    raise UnknownError(f"the measured sums of {noise.name}")


def has_exact_law(noise: Noise) -> bool:
    """Whether some outputs of a tree show a vertex of every level alone (`sums_of_an_input`)."""
    return bool(noise["steps"] >= noise["arity"] ** (sums_of_an_input(noise) - 1))


def several_positions(noise: Noise) -> list[Fraction]:
    """Return by how much the worst c positions of a person move the measured sums.

    R has no negative entry, so that norms are largest where all inputs rise by 1.

    * Bridged grids: c positions fill at most ⌊c/K⌋ cells of size K, and one with the rest: the
      first c do so in all grids at once, which makes the sums of squares largest.
    * The square root: columns s and s + d have the product Σ f_i f_{i+d} over i < n − s − d, which
      falls in s and in d, as f falls: the first c columns have the least of each in their order.
    """
    n = int(noise["steps"])
    c = min(int(noise["contributions"]), n)
    if noise.name == "BridgedTree":
        size, found = 1, [Fraction(1)] * c
        for arity in reversed([int(k) for k in noise["arities"][1:]]):
            size *= arity
            found += [Fraction(size)] * (c // size)
            found += [Fraction(c % size)] if c % size else []
        return found
    if noise.name == "SquareRootFactorization":
        column = square_root_column(noise)
        return [sum(column[max(0, t - c) : t], Fraction(0)) for t in range(1, n + 1)]
    raise ValueError(f"{noise.name} has no exact pair for several contributions")


def distances(noise: Noise) -> list[Any]:
    """Return the distances of the worst Laplace laws, ε/h for each of h measured sums."""
    h = sums_of_an_input(noise)
    if h > _MOST_LEVELS:
        raise UnknownError(f"the law of {h} Laplace releases")
    return [noise["epsilon"] / h] * h


def balanced(steps: int) -> int:
    """Return h/2, the least with C(h, h/2) > n."""
    half = 1
    while comb(2 * half, half) <= steps:
        half += 1
    return half


def unit_variance(noise: Noise) -> Any:
    """Return the variance of one noise variable: 2(cΔ₁/ε)², or (cΔ₂)²/μ²."""
    epsilon, mu, c = noise["epsilon"], noise["mu"], noise["contributions"] or Fraction(1)
    if noise.name in SQUARE_ROOTS:
        column = square_root_column(noise)
        one, two = sum(column, Fraction(0)), sum((f * f for f in column), Fraction(0))
    else:
        one = two = Fraction(sums_of_an_input(noise))
    if epsilon is not None:
        return 2 * (c * one) ** 2 / (epsilon * epsilon)
    return c * c * two / (mu * mu)


def square_root_column(noise: Noise) -> list[Fraction]:
    """Return f_0, …, f_{n−1}, f_j = C(2j, j)/4ʲ: the first column of √A, and the longest."""
    if noise["steps"] > _MOST_STEPS:
        raise UnknownError(f"the rational numbers of {noise['steps']} steps")
    found = [Fraction(1)]
    for j in range(1, int(noise["steps"])):
        found.append(found[-1] * Fraction(2 * j - 1, 2 * j))
    return found


def units(noise: Noise) -> Fraction:
    """Return the squared Frobenius norm of L: the unit variances in all outputs together."""
    n = int(noise["steps"])
    match noise.name:
        case "BinaryTree":
            return trees.vertices(2, n, 0)
        case "KaryTree":
            k = int(noise["arity"])
            return trees.vertices(k, n, (k - 1) // 2 if noise["subtraction"] else 0)
        case "HonakerTree":
            return trees.honaker(Fraction(n)) * n / (2 * n.bit_length() ** 2)
        case "SmoothBinary":
            return Fraction(n * balanced(n))
        case "BridgedTree":
            return _bridged(n, [int(k) for k in noise["arities"]], int(noise["pooled"]))
        case "DelannoyCounter":
            return _chains(n, int(noise["levels"]))
        case "SquareRootFactorization":  # row t has the squares of f_0, …, f_{t−1}
            column = square_root_column(noise)
            return sum(((n - j) * f * f for j, f in enumerate(column)), Fraction(0))
        case "NormalizedSquareRoot":
            return sum(_normalized(noise), Fraction(0))
    raise UnknownError(f"the error of {noise.name}")


def output_units(noise: Noise, step: int) -> Fraction:
    """Return the squared norm of a row of L: the unit variances in the output at a time step."""
    match noise.name:
        case "BinaryTree":
            return Fraction(step.bit_count())
        case "KaryTree":
            k = int(noise["arity"])
            low = (k - 1) // 2 if noise["subtraction"] else 0
            return Fraction(sum(map(abs, trees.digits(k, step, low))))
        case "HonakerTree":
            return sum(
                (Fraction(1 << i, (2 << i) - 1) for i in range(step.bit_length()) if step >> i & 1),
                Fraction(0),
            )
        case "SmoothBinary":
            return Fraction(balanced(int(noise["steps"])))
        case "SquareRootFactorization":
            return sum((f * f for f in square_root_column(noise)[:step]), Fraction(0))
        case "BridgedTree":
            arities, pooled = [int(k) for k in noise["arities"]], int(noise["pooled"])
            return _bridged(step, arities, pooled) - _bridged(step - 1, arities, pooled)
        case "NormalizedSquareRoot":
            return _normalized(noise)[step - 1]
    raise UnknownError(f"the variance of one output of {noise.name}")


def _normalized(noise: Noise) -> list[Fraction]:
    """Return the squared norms of the rows of L = A W M⁻¹, R = M W⁻¹.

    M is the square root, and w_t the least whole number with w_t²·S_n ≥ 256²·S_{n−t}, S_m the sum
    of the first m of the f_j²: column t of R has the squared length S_{n−t}(256/w_t)² ≤ S_n. Its ℓ1
    norm is at most that of the first column: with F_m = Σ_{j<m} f_j = 2m f_m it is F_m/F_n times
    256/w_t, and F_m/F_n ≤ √(S_m/S_n), as (1 + 1/2m)² > 1 + 1/m ≥ 1 + f_m²/S_m. Column j of M⁻¹ has
    the entries f_k/(1 − 2k), k = t − j, and A adds them up with the weights.
    """
    n = int(noise["steps"])
    if n > _MOST_NORMALIZED:
        raise UnknownError(f"the rational numbers of {n} steps")
    column = square_root_column(noise)
    weights = _weights(column)
    inverse = [f / (1 - 2 * k) for k, f in enumerate(column)]
    found = [Fraction(0)] * n
    for j in range(n):
        entry = Fraction(0)
        for t in range(j, n):
            entry += weights[t] * inverse[t - j]
            found[t] += entry * entry
    return found


def _weights(column: list[Fraction]) -> list[Fraction]:
    """Return w_t/256."""
    lengths = list(accumulate(f * f for f in column))
    weights = []
    for length in reversed(lengths):
        square = _LEVELS**2 * length / lengths[-1]
        root = isqrt(square.numerator // square.denominator)
        weights.append(Fraction(root if root**2 == square else root + 1, _LEVELS))
    return weights


def normalized_columns(noise: Noise) -> list[list[Fraction]]:
    """Return the columns of R: the first, and those whose weight is less than that before.

    Other columns are a part of the one before. With Laplace noise any of these may be worst: a
    later one has a smaller ℓ1 norm, but fewer and larger entries.
    """
    column = square_root_column(noise)
    weights = _weights(column)
    kept = [t for t, w in enumerate(weights) if not t or w < weights[t - 1]]
    return [[f / weights[t] for f in column[: len(column) - t]] for t in kept]


def laplace_columns(noise: Noise, columns: list[list[Fraction]]) -> list[dict[str, Any]]:
    """Return Laplace laws for entries of columns, whose first one has the largest ℓ1 norm."""
    if noise["steps"] > _MOST_DISTANCES:
        raise ValueError(f"{noise.name} of over {_MOST_DISTANCES} steps")
    unit = noise["epsilon"] / sum(columns[0], Fraction(0))
    moved = [sorted(unit * entry for entry in column) for column in columns]
    return [{"law": "laplace-product", "distances": distances} for distances in moved]


def _bridged(n: int, arities: list[int], pooled: int) -> Fraction:
    """Sum the units of the outputs 1..n, level by level.

    At t = jK + r in a cell of size K the first level has j whole cells and a part r/K of the
    next: j + (r/K)² units. On a later level, t is counted from the start of the parent cell of
    k cells, and an even share of all k is taken off: less (j + r/K)²/k, for
    Σ(c − s)² = Σc² − ks² with s = Σc/k.

    A sum of a cell of size K is also that of its pooled generations, of sizes K', K'', …: measured
    with the variances 1, K/K', K/K'', …, it has the variance K/(K + K' + K'' + …) from all of them.
    Levels stay uncorrelated: an upper one weighs the cells of a parent alike, a lower one with a
    sum of 0.
    """
    total, size = Fraction(0), 1
    sizes: list[int] = []
    for level in reversed(range(len(arities))):
        k = arities[level]
        sizes.insert(0, size)
        share = Fraction(size, sum(sizes[: pooled + 1]))
        parent = size * k if level else n + 1
        for length, times_over in ((parent, (n + 1) // parent), ((n + 1) % parent, 1)):
            if length and times_over:
                cells, rest = divmod(length, size)
                whole = size * cells * (cells - 1) // 2 + cells * rest
                parts = Fraction(cells * _squares(size) + _squares(rest), size * size)
                off = Fraction(_squares(length), k * size * size) if level else Fraction(0)
                total += share * times_over * (whole + parts - off)
        size *= k
    return total


def _squares(count: int) -> int:
    """Return 0² + 1² + … + (count − 1)²."""
    return (count - 1) * count * (2 * count - 1) // 6


def _chains(n: int, levels: int) -> Fraction:
    """Sum Σ|d_i| over the n words of least norm with a positive first digit other than 0.

    Of the words with norm j there are half of N(s, j) − N(s, j − 1), N counting those of norm up
    to j by the recursion N(s, j) = N(s − 1, j) + N(s, j − 1) + N(s − 1, j − 1).
    """
    if levels > _MOST_LEVELS:
        raise UnknownError(f"the error of {levels} levels of chains")
    row = [1] * (levels + 1)  # N(0, j), …, N(s, j) for j = 0
    total, used, norm = 0, 0, 0
    while used < n:
        after = [1]
        for s in range(1, levels + 1):
            after.append(after[s - 1] + row[s] + row[s - 1])
        norm += 1
        if norm * levels > _MOST_WORDS:
            raise UnknownError(f"the error of chains with {n} steps")
        fresh = min((after[levels] - row[levels]) // 2, n - used)
        total, used, row = total + norm * fresh, used + fresh, after
    return Fraction(total)
