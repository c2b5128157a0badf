"""Correlated noise: how far one record moves C x, and the errors of A C⁻¹Z.

A record in the steps π moves C x by Σ_{i∈π} u_i ⊗ C_{·i}, ‖u_i‖ ≤ 1. Expanding the square,
‖·‖² ≤ Σ_{i,j∈π} |⟨C_{·i}, C_{·j}⟩| =: h(π), and Σ s_i s_j ⟨C_{·i}, C_{·j}⟩ is reached for all
signs s. So Δ² is the largest h where signs are found that reach it. The largest h is that of

* the longest column, where a record takes part once;
* the worst first step, where steps are exactly b apart;
* the longest columns b apart, where those are orthogonal: whether the last one is taken or not,
  the rest is the same question for fewer columns;
* steps 1, 1 + b, 1 + 2b, …, where |⟨C_{·i}, C_{·j}⟩| does not grow when i and j ≥ i + b (or i = j)
  are both one later, nor when the later one alone is. By induction from the last step of π: when
  all steps from one on are moved to earlier ones, together, every entry of h moves along a
  diagonal or along a row to an entry that is not smaller;
* all patterns, one by one, where these are few.

Where a record takes part in steps j, j + b, … by chance and columns end before the next of these,
rows j + mb to j + mb + b − 1 of C x + Z show one participation: given what is before them, a normal
vector that is moved by ‖C_{·,j+mb}‖ at most, with the probability of a sample. So the releases are
sampled Gaussian ones. A first step whose columns, sorted, are no longer than those of another, and
no more, is no worse: less distance is a post-processing of more.

Where the first step j of a record is uniform among b, W = dP/dQ is the mean of exp(X_j − Var X_j/2)
for normal X_j with the covariances of the sums of columns j, j + b, …; for all gradients these are
at most those of the absolute columns. Convex functions of W grow with every covariance (Kahane
1986), so that covariances that are all a, or d on the diagonal, bound them: those of a Gaussian
release and a random allocation. To know j mod s as well is no more private.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate
from math import comb, expm1, inf, lcm, log1p
from typing import Any, Final

from flint import arb, fmpq, fmpq_poly, fmpz_mat

from dpassay.verifier.checker.notation import Noise, rational
from dpassay.verifier.checker.reals import Real, UnknownError, ball

STRATEGIES: Final = ("identity", "square-root", "tree")
ALLOCATED: Final = "random-allocation"
SCHEMAS: Final = ("single", "cyclic", "min-separation", ALLOCATED)
_MOST_STEPS: Final = 100_000
"""Steps of a mechanism."""
_MOST_ROWS: Final = 1024
"""Columns whose inner products are formed: half a million."""
_MOST_BITS: Final = 1 << 28
"""Bits of all coefficients together, in the longest of their terms."""
_MOST_SQUARE: Final = 1 << 31
"""Bits of all inner products together."""
_MOST_PATTERNS: Final = 20_000
"""Patterns that are looked at one by one."""
_MOST_TERMS: Final = 100_000_000
"""Inner products that are added up for all patterns together."""
_STEEPEST: Final = 300.0
"""Largest exponent of a χ² divergence."""
_MOST_ENTRIES: Final = 2_000_000
"""Steps of a substitution in balls."""

Column = list[Fraction]


def strategy(value: Any) -> Any:
    """Require a name, Toeplitz coefficients, the rows of a matrix, or a recursion."""
    if isinstance(value, str) and value in STRATEGIES:
        return value
    if isinstance(value, Noise) and value.name == "BufferedToeplitz":
        return value
    if not isinstance(value, list) or not value:
        raise ValueError("a strategy")
    if not isinstance(value[0], list):
        return [rational(entry) for entry in value]
    if not all(isinstance(row, list) for row in value):
        raise ValueError("a list of rows")
    return [[rational(entry) for entry in row] for row in value]


def misfit(noise: Noise) -> str:
    """Say which arguments do not fit together."""
    given, n, b = noise["strategy"], noise["steps"], noise["separation"]
    if n > _MOST_STEPS:
        return f"more than {_MOST_STEPS} steps"
    if noise["participation"] == "single":
        if b is not None or noise["participations"] is not None:
            return "a separation or participations of a single participation"
    elif b is None:
        return "no separation"
    if noise["participation"] == ALLOCATED and b > n:
        return "a separation above the steps, of a first step by chance"
    if noise["participation"] == ALLOCATED and noise["participations"] is not None:
        return "participations of a random allocation"
    if given == "tree" and n > _MOST_ROWS:
        return f"a tree above more than {_MOST_ROWS} steps"
    irregular = noise["participation"] != "cyclic" or noise["participations"] is not None
    if noise["step_sampling_prob"] is not None and irregular:
        return "a sample of steps that are not every b-th"
    if (
        b is not None
        and noise["participations"] is not None
        and (noise["participations"] - 1) * b >= n
    ):
        return "participations that do not fit into the steps"
    if isinstance(given, list) and isinstance(given[0], list):
        wrong = _matrix_misfit(given, n, noise["bands"])
    else:
        cut_off = isinstance(given, list) and (len(given) > n or not given[0])
        wrong = "coefficients beyond the steps, or no first one" if cut_off else ""
    if not wrong and noise["step_sampling_prob"] is not None and _bands(noise) > b:
        return "a sample of columns that overlap"
    return wrong


def _bands(noise: Noise) -> int:
    """Return the least number of steps by which every column is known to have ended."""
    given, n = noise["strategy"], int(noise["steps"])
    if given == "tree":
        return max(int(sum(row, Fraction(0))) for row in _rows(noise) or [])
    if isinstance(given, Noise) or given == "square-root":
        return min(n, int(noise["bands"] or n))
    if isinstance(given[0], list):
        return 1 + max(i - j for i, row in enumerate(given) for j, entry in enumerate(row) if entry)
    return len(coefficients(noise))


def _rows(noise: Noise) -> list[Column] | None:
    """Return C where it is given by entries, and of a tree: a row for each vertex that is used.

    A tree is started every `bands` steps. Of s steps since then an output adds the vertices of the
    binary digits of s: those that begin at an even multiple of their length.
    """
    given = noise["strategy"]
    if isinstance(given, list) and isinstance(given[0], list):
        return given
    if given != "tree":
        return None
    n, period, rows = int(noise["steps"]), _period(noise), []
    for start in range(0, n, period):
        length = 1
        while length <= (room := min(period, n - start)):
            for place in range(0, room - length + 1, 2 * length):
                first = start + place
                rows.append([Fraction(int(first <= i < first + length)) for i in range(n)])
            length *= 2
    return rows


def _period(noise: Noise) -> int:
    return min(int(noise["bands"] or noise["steps"]), int(noise["steps"]))


def _matrix_misfit(rows: list[Column], steps: Any, bands: Any) -> str:
    if len(rows) != steps or len(rows) > _MOST_ROWS or any(len(row) != steps for row in rows):
        return "rows that are not as many as steps"
    if bands is not None:
        return "bands of a matrix that is given"
    if any(any(row[i + 1 :]) or not row[i] for i, row in enumerate(rows)):
        return "a strategy that is not lower triangular, or singular"
    return ""


def squared_sensitivity(noise: Noise) -> Fraction:
    """Return Δ². Raises UnknownError where this file has no proof of it."""
    b, k = _schema(noise)
    given = _rows(noise)
    if given is not None:
        return _largest([list(column) for column in zip(*given, strict=True)], noise)
    c = coefficients(noise)
    falling = all(x >= y for x, y in zip(c, [*c[1:], Fraction(0)], strict=True))
    if k == 1 or len(c) <= b or falling:
        # column i is column 1 moved down by i − 1 and cut off: no longer than column 1
        return _first_steps(c, int(noise["steps"]), b, k)
    n = int(noise["steps"])
    if n > _MOST_ROWS:
        raise UnknownError(f"the inner products of {n} columns")
    padded = c + [Fraction(0)] * (n - len(c))
    return _largest([[Fraction(0)] * i + padded[: n - i] for i in range(n)], noise)


def sampled(noise: Noise) -> bool:
    """Whether a record takes part by chance."""
    return noise.name == "MatrixMechanism" and noise["step_sampling_prob"] not in (None, 1)


def allocated(noise: Noise) -> bool:
    """Whether the first step of a record is chosen by chance."""
    return noise.name == "MatrixMechanism" and noise["participation"] == ALLOCATED


Even = tuple[Fraction, Fraction, int]
"""The covariance of all normal variables, that of each with itself, and how many there are."""


def even_columns(noise: Noise) -> tuple[Even, Even]:
    """Return covariances that are no larger, and what bounds all gradients, in units of σ²."""
    n = int(noise["steps"])
    b = min(int(noise["separation"]), n)
    if n > _MOST_ROWS:
        raise UnknownError(f"the inner products of {n} columns")
    rows = _rows(noise)
    if rows is None:
        c = coefficients(noise)
        c = c + [Fraction(0)] * (n - len(c))
        rows = [c[i::-1] + [Fraction(0)] * (n - 1 - i) for i in range(n)]
    plain = [[sum(row[j::b], Fraction(0)) for row in rows] for j in range(b)]
    above = [[sum(map(abs, row[j::b]), Fraction(0)) for row in rows] for j in range(b)]
    signed, absolute = _inner(plain), _inner(above)
    low = min(signed[i][i] for i in range(b))
    common = min((signed[i][j] for i in range(b) for j in range(i)), default=Fraction(0))
    if common < 0:
        raise UnknownError("a random allocation of columns with negative inner products")
    whole, found = max(absolute[i][i] for i in range(b)), []
    for s in range(1, b + 1):
        most = [absolute[i][j] for i in range(b) for j in range(i % s, i, s)]
        found.append((max(most, default=Fraction(0)), whole, b // s))
        if not found[-1][0]:
            break
    noise_multiplier = float(ball(noise["noise_multiplier"]).mid())

    def spread(even: Even) -> float:
        a, d = (float(each) / noise_multiplier**2 for each in even[:2])
        steep = min(d - a, _STEEPEST)
        return a + (d - a - steep) + log1p(expm1(steep) / even[2])

    return (min(common, low), low, b), min(found, key=spread)


def _inner(columns: list[Column]) -> list[list[Fraction]]:
    products, unit = _products(columns)
    return [[entry * unit for entry in row] for row in products]


def sampled_squares(noise: Noise) -> list[list[Fraction]]:
    """Return the squared norms of the columns of the worst records that take part by chance."""
    b, n = int(noise["separation"]), int(noise["steps"])
    given = _rows(noise)
    if given is not None:
        norms = [sum((row[i] ** 2 for row in given), Fraction(0)) for i in range(n)]
    else:
        c = coefficients(noise)
        cut = [*accumulate(e * e for e in c)][::-1]  # of the last columns
        norms = [cut[0]] * (n - len(cut)) + cut
    found: list[list[Fraction]] = []
    for own in (sorted(norms[first::b], reverse=True) for first in range(min(b, n))):
        if not any(_no_longer(own, other) for other in found):
            found = [other for other in found if not _no_longer(other, own)] + [own]
    return found


def _no_longer(one: list[Fraction], other: list[Fraction]) -> bool:
    padded = one + [Fraction(0)] * (len(other) - len(one))
    return len(one) <= len(other) and all(x <= y for x, y in zip(padded, other, strict=True))


def _schema(noise: Noise) -> tuple[int, int]:
    """Return the separation b and the most participations k."""
    n = int(noise["steps"])
    if noise["participation"] == "single":
        return n, 1
    b = int(noise["separation"])
    return b, int(noise["participations"] or -(-n // b))


def coefficients(noise: Noise) -> Column:
    """Return the Toeplitz coefficients, without zeros at the end."""
    given, n = noise["strategy"], int(noise["steps"])
    count = min(n, int(noise["bands"] or n))
    if given == "identity":
        return [Fraction(1)]
    if isinstance(given, list):
        found = given[:count]
    elif given == "square-root":
        _require(2 * count * count)
        found = [Fraction(comb(2 * j, j), 4**j) for j in range(count)]
    else:
        scales, decays = given["output_scales"], given["decays"]
        sizes = ((abs(theta.numerator) | theta.denominator).bit_length() for theta in decays)
        _require(count * count * sum(sizes))
        found = [Fraction(1)]
        for i in range(count - 1):
            found.append(sum((w * t**i for w, t in zip(scales, decays, strict=True)), Fraction(0)))
    while not found[-1]:
        found = found[:-1]
    return found


def _require(bits: int) -> None:
    if bits > _MOST_BITS:
        raise UnknownError("coefficients of so many digits")


def _first_steps(c: Column, n: int, b: int, k: int) -> Fraction:
    """Return ‖Σ_{m<k} C_{·,1+mb}‖²: below x^n, c(x)(1 + x^b + … + x^{(k−1)b}) has these entries."""
    series = fmpq_poly([fmpq(entry.numerator, entry.denominator) for entry in c])
    comb_of_steps = fmpq_poly([int(t % b == 0) for t in range(min(n, (k - 1) * b + 1))])
    sums = (series * comb_of_steps).coeffs()[:n]
    square = sum((entry * entry for entry in sums), fmpq(0))
    return Fraction(int(square.p), int(square.q))


def _largest(columns: list[Column], noise: Noise) -> Fraction:
    b, k = _schema(noise)
    n = len(columns)
    products, unit = _products(columns, _MOST_SQUARE)
    size = [[abs(entry) for entry in row] for row in products]

    def h(pattern: tuple[int, ...]) -> int:
        return sum(size[i][j] for i in pattern for j in pattern)

    def every(start: int) -> tuple[int, ...]:
        return tuple(range(start, n, b))[:k]

    if n * min(k, -(-n // b)) ** 2 > _MOST_TERMS:
        raise UnknownError(f"the worst of {n} patterns of {k} steps")
    if k == 1 or noise["participation"] == "cyclic":
        best = max(map(every, range(n)), key=h)
    elif all(size[i][j] == 0 for i in range(n) for j in range(i + b, n)):
        best = _longest([size[i][i] for i in range(n)], b, k)
    elif _declines(size, b):
        best = every(0)
    elif sum(comb(n - (m - 1) * (b - 1), m) for m in range(1, k + 1)) <= _MOST_PATTERNS:
        best = max(_patterns(n, b, k), key=h)
    else:
        raise UnknownError("the worst steps of a record")
    if not _reached(products, best):
        raise UnknownError("the signs of the worst record")
    return h(best) * unit


def _products(columns: list[Column], most: float = inf) -> tuple[list[list[int]], Fraction]:
    """Return the inner products as integers, and their unit."""
    below = lcm(*(entry.denominator for column in columns for entry in column))
    listed = [[int(entry * below) for entry in column] for column in columns]
    longest = max(abs(entry).bit_length() for column in listed for entry in column)
    if 2 * longest * len(columns) ** 2 > most:
        raise UnknownError("inner products of so many digits")
    matrix = fmpz_mat(listed)
    found = (matrix * matrix.transpose()).tolist()
    return [[int(entry) for entry in row] for row in found], Fraction(1, below * below)


def _longest(squares: list[int], b: int, k: int) -> tuple[int, ...]:
    """Return at most k steps b apart of the largest sum, with the last column or without it."""
    best: list[list[tuple[int, tuple[int, ...]]]] = [[(0, ())] * (k + 1)]
    for i, square in enumerate(squares):
        before = best[max(0, i + 1 - b)]
        taken = [(value + square, (*steps, i)) for value, steps in before[:k]]
        best.append([best[-1][0], *(max(x, y) for x, y in zip(best[-1][1:], taken, strict=True))])
    return best[-1][k][1]


def _declines(size: list[list[int]], b: int) -> bool:
    n = len(size)
    pairs = ((i, j) for i in range(n) for j in (i, *range(i + b, n)))
    return all(
        (j + 1 == n or size[i + 1][j + 1] <= size[i][j])
        and (i == j or j + 1 == n or size[i][j + 1] <= size[i][j])
        for i, j in pairs
    )


def _patterns(n: int, b: int, k: int) -> Iterator[tuple[int, ...]]:
    for first in range(n):
        yield (first,)
        if k > 1:
            for rest in _patterns(n - first - b, b, k - 1):
                yield (first, *(first + b + step for step in rest))


def _reached(products: list[list[int]], pattern: tuple[int, ...]) -> bool:
    """Whether signs make all inner products ≥ 0: overlapping columns tell each other's sign."""
    signs: dict[int, int] = {}
    for start in pattern:
        if start in signs:
            continue
        signs[start], waiting = 1, [start]
        while waiting:
            i = waiting.pop()
            for j in pattern:
                if products[i][j] and j not in signs:
                    signs[j] = signs[i] if products[i][j] > 0 else -signs[i]
                    waiting.append(j)
    return all(signs[i] * signs[j] * products[i][j] >= 0 for i in pattern for j in pattern)


def error_units(noise: Noise, step: int) -> Any:
    """Return ‖B_t‖² for B C = A, A the lower triangle of ones, and a step t counted from 0.

    The row has B_tj = (1 − Σ_{j<i≤t} B_ti C_ij)/C_jj from the last entry on. Of a tree it has a one
    for each one among the binary digits of the steps of every tree.
    """
    if noise["strategy"] == "tree":
        trees, rest = divmod(step + 1, _period(noise))
        return Fraction(trees * _period(noise).bit_count() + rest.bit_count())
    return _squares(noise, step)[-1]


def mean_units(noise: Noise) -> Any:
    """Return the average of ‖B_t‖² over all steps."""
    n = int(noise["steps"])
    given = noise["strategy"]
    if given == "tree":
        return sum((error_units(noise, step) for step in range(n)), Fraction(0)) / n
    if isinstance(given, list) and isinstance(given[0], list):
        if n**3 > _MOST_ENTRIES:
            raise UnknownError(f"the error of {n} steps")
        found = [error_units(noise, step) for step in range(n)]
    else:
        found = _squares(noise, n - 1)
    return Real(sum((value.ball for value in found), arb(0))) / n


def _squares(noise: Noise, step: int) -> list[Any]:
    """Return ‖B_0‖², …, ‖B_t‖² of a Toeplitz strategy, else ‖B_t‖² alone."""
    given = noise["strategy"]
    whole = isinstance(given, list) and isinstance(given[0], list)
    coefficient = [] if whole else [ball(c) for c in coefficients(noise)]
    if (step + 1) * (step + 1 if whole else len(coefficient)) > _MOST_ENTRIES:
        raise UnknownError(f"the error of step {step + 1}")
    row: list[arb] = []  # B_tt, B_t,t−1, …
    total, squares = arb(0), []
    for lag in range(step + 1):
        j = step - lag
        if whole:
            column = [ball(given[i][j]) for i in range(step, j - 1, -1)]  # C_tj, …, C_jj
        else:
            column = coefficient[lag::-1] if lag < len(coefficient) else coefficient[::-1]
            column = [arb(0)] * (lag + 1 - len(column)) + column
        rest = 1 - sum((x * y for x, y in zip(row, column, strict=False)), arb(0))
        row.append(rest / column[-1])
        total += row[-1] * row[-1]
        squares.append(Real(total))
    return squares[-1:] if whole else squares
