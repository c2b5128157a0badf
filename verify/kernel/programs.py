"""Optima, proved in rational arithmetic by a feasible point and a dual feasible point.

A theorem says that the optimum is in [lower, upper], with a relative gap of at most 1e-6. The
witness has a feasible point with a value of at most `upper`, and multipliers that prove `lower`.

**count-noise.** Let p_n be the law of the noise on a count n, on −min(n, D)..D, with mean 0 and
p_n(0) = η. For neighbours n' = n ± 1 and z' = z + n − n', δ is the maximum of p_n(z) − E p_{n'}(z')
over single outcomes ("singular"), or over n, n' of the sum of its positive parts over z
("true-delta"). Take multipliers s ≥ 0 of p_n(z) ≤ E p_{n'}(z') + δ with Σ s ≤ 1, and λ_n, μ_n of
any sign for mass and mean. If

    Σ s leaving (n, z) − E Σ s entering (n, z) ≥ λ_n + μ_n z     for every n and every z ≠ 0

then δ ≥ Σ_n (1 − η) λ_n + η (Σ s leaving (n, 0) − E Σ s entering (n, 0)), by adding the
inequalities. With one law for all counts ≥ D, the index n is dropped. For true-delta, Σ s has the
largest s of each ordered pair (n, n') in the place of their sum.

**integer-noise.** A law p on −D..D satisfies Σ max(0, p(z) − E p(z − s)) ≤ δ for s = ±1, …, ±S. For
tests 0 ≤ w_s(z) ≤ λ_s, s > 0, it has Σ_z w_s(z)(p(z) − E p(z − s)) ≤ λ_s δ. So with
h(z) = cost(z) + Σ_s (w_s(z) − E w_s(z + s)),

    Σ cost(z) p(z) ≥ Σ h(z) p(z) − δ Σ λ_s ≥ min_z (h(z) + h(−z))/2 − δ Σ λ_s,

since the mirror image of p is feasible too. If p(0) = η is prescribed, the minimum becomes
η h(0) + (1 − η) min_{z≠0}. If δ is the objective, the cost is 0 and δ ≥ min/Σ λ_s. If p must be
nonincreasing in |z|, multipliers m_z ≥ 0 of p(z) ≥ p(z + 1) reduce (h(z) + h(−z))/2 by
(m_z − m_{z−1})/2, and h(0) by m_0.

**gaussian-shape.** N(0, Σ) is 1-GDP over a space V of differences if v'Σ⁻¹v ≤ 1 for all v in V
(lemma `gaussian-space`); this is convex in v, so the vertices of V suffice. For a law w on V or −V
and M = Σ w_v vv', tr(Σ⁻¹M) = E[v'Σ⁻¹v] ≤ 1. For S = diag(r) with r_i² ≤ weight_i·share_i,
tr(SΣS) ≥ tr(SΣS) tr(Σ⁻¹M) ≥ (tr (SMS)^{1/2})² by Cauchy–Schwarz, and (SMS)^{1/2} ⪰ B for every
symmetric B with SMS ⪰ B² (the root is operator monotone, and |B| ⪰ B). So (tr B)² is a lower bound
if tr B ≥ 0. Shares are 1 for the total variance, and a law on coordinates for the worst variance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

from flint import fmpq, fmpq_mat

from .notation import Noise, parse
from .numbers import Budget, NotProved, Proof, Wrong, ball, decide, rational
from .theorem import Theorem, described, formula

Data = Mapping[str, Any]
WIDEST_GAP = fmpq(1, 10**6)
"""Limit on (upper − lower)/upper of an optimum."""
MOST_VERTICES = 1 << 15
"""Limit on the vertices of a space of differences."""
_SPACES = ("Box", "FiniteSet", "SparseBox", "L2Ball", "DisjointGroups")
Rows = list[list[fmpq]]


def prove(theorem: Data, witness: Data, budget: Budget) -> Proof:
    """Prove both bounds of an optimum."""
    lower, upper = rational(theorem["lower"]), rational(theorem["upper"])
    if not 0 <= lower <= upper or upper - lower > WIDEST_GAP * upper:
        raise Wrong("theorem.lower", "expected 0 <= lower <= upper with a relative gap up to 1e-6")
    reached, proved = _KINDS[theorem["kind"]](theorem, witness, budget)
    if reached > upper:
        raise Wrong("theorem.upper", f"the witness reaches only {_few(reached)}")
    if proved < lower:
        raise Wrong("theorem.lower", f"the witness proves only {_few(proved)}")
    return Proof(lemmas={"gaussian-space"} if theorem["kind"] == "gaussian-shape" else set())


def _few(value: fmpq) -> str:
    return str(ball(value).str(8, radius=False))


def _power(theorem: Data, witness: Data, budget: Budget) -> Any:
    """Return rationals 1 ≤ low ≤ e^ε ≤ high from the witness, after checking them."""
    low, high = map(rational, witness["ratio"])
    if (theorem["ratio"] is None) == (theorem["epsilon"] is None):
        raise Wrong("theorem.ratio", "expected either epsilon or ratio, which is e^epsilon")
    if theorem["ratio"] is not None:
        enclosed: bool | None = low <= rational(theorem["ratio"]) <= high
    elif (square := _signed_square(theorem["epsilon"], "theorem.epsilon")) < 0:
        raise Wrong("theorem.epsilon", "expected a number >= 0")
    else:

        def between() -> bool | None:
            power = ball(square).sqrt().exp()
            if power < ball(low) or power > ball(high):
                return False
            return True if ball(low) <= power <= ball(high) else None

        enclosed = decide(between, budget)
    if low < 1 or not enclosed:
        raise Wrong("witness.ratio", "does not enclose e^epsilon, or is below 1")
    return low, high


# --- count noise --------------------------------------------------------------------------------
_Law = tuple[int, int | None, dict[int, fmpq]]


def _count_noise(theorem: Data, witness: Data, budget: Budget) -> Any:
    eta, support, last = rational(theorem["eta"]), theorem["support"], theorem["max_count"]
    if not 0 < eta < 1:
        raise Wrong("theorem.eta", "expected a number in (0, 1)")
    if last is None and theorem["min_count"] != 1:
        raise Wrong("theorem.min_count", "is given without max_count")
    low, high = _power(theorem, witness, budget)
    first = support if last is None else theorem["min_count"]
    laws = _laws(witness["laws"], eta, support, (first, last))
    single = theorem["objective"] == "singular"
    worst = fmpq(0)
    for law, other, shift in _neighbours(laws):
        budget.check()
        excess = [mass - low * other.get(z - shift, fmpq(0)) for z, mass in law.items()]
        above = [entry for entry in excess if entry > 0]
        worst = max(worst, max(above, default=fmpq(0)) if single else sum(above, fmpq(0)))
    proved = _multipliers(witness, theorem, eta, high, budget)
    return worst, max(proved, fmpq(0))


def _laws(entries: Sequence[Any], eta: fmpq, support: int, counts: Any) -> list[_Law]:
    """Parse the laws (first count, last count, masses), and check that they are feasible."""
    found: list[_Law] = []
    expected, last = counts
    for index, entry in enumerate(entries):
        masses = map(rational, entry["probabilities"])
        law = dict(enumerate(masses, start=entry["lowest"]))
        start, end = entry["first"], entry["last"]
        reasons = {
            "is not a probability law": min(law.values()) < 0 or sum(law.values()) != 1,
            "does not have P(0) = eta": law.get(0) != eta,
            "does not have mean 0": sum(z * mass for z, mass in law.items()) != 0,
            "leaves its support": any(
                mass != 0 and not -min(start, support) <= z <= support for z, mass in law.items()
            ),
            "is not for the counts that follow": start != expected
            or (end is None and last is not None)
            or (end is not None and end < start),
        }
        for reason, applies in reasons.items():
            if applies:
                raise Wrong(f"witness.laws[{index}]", reason)
        found.append((start, end, law))
        expected = -1 if end is None else end + 1
    if found[-1][1] != last or (last is None and len(found) != 1):
        raise Wrong("witness.laws", "do not cover every count once")
    return found


def _neighbours(laws: Sequence[_Law]) -> Iterator[tuple[dict[int, fmpq], dict[int, fmpq], int]]:
    """Yield (law at n, law at n + shift, shift) for all neighbours, shift = ±1."""
    for start, end, law in laws:
        if end is None or end > start:
            yield law, law, 1
            yield law, law, -1
    for (_, _, law), (_, _, following) in pairwise(laws):
        yield law, following, 1
        yield following, law, -1


def _multipliers(witness: Data, theorem: Data, eta: fmpq, high: fmpq, budget: Budget) -> fmpq:
    """Return the lower bound of δ that the multipliers prove; raise Wrong if infeasible."""
    support, last = theorem["support"], theorem["max_count"]
    least = support if last is None else theorem["min_count"]

    def known(count: int) -> bool:
        return count >= least and (last is None or count <= last)

    def by_count(name: str) -> dict[int, fmpq]:
        found = {int(count): rational(text) for count, text in witness[name].items()}
        if not all(known(count) or (count == 0 and last is None) for count in found):
            raise Wrong(f"witness.{name}", "has a multiplier of a count that does not occur")
        return found

    mass, mean = by_count("mass"), by_count("mean")
    leaving: dict[tuple[int, int], fmpq] = defaultdict(fmpq)
    entering: dict[tuple[int, int], fmpq] = defaultdict(fmpq)
    total: dict[object, fmpq] = defaultdict(fmpq)
    same: dict[object, fmpq] = defaultdict(fmpq)
    for index, entry in enumerate(witness["flows"]):
        n, other, z = (entry[k] for k in ("count", "other", "noise"))
        flow = rational(entry["flow"])
        if flow < 0 or abs(n - other) != 1 or not (known(n) and known(other)):
            raise Wrong(f"witness.flows[{index}]", "is not a multiplier of the program")
        pair = n - other if last is None else (n, other)
        if theorem["objective"] == "singular":
            total[pair] += flow
        else:  # flows with the same z are one multiplier
            same[pair, z] += flow
            total[pair] = max(total[pair], same[pair, z])
        leaving[0 if last is None else n, z] += flow
        entering[0 if last is None else other, z + n - other] += flow
    if sum(total.values(), fmpq(0)) > 1:
        raise Wrong("witness.flows", "have a sum above 1")
    bound = sum(mass.values(), fmpq(0)) * (1 - eta)
    for n in sorted({*mass, *mean, *(n for n, _ in leaving), *(n for n, _ in entering)}):
        budget.check()
        reach = support if last is None else min(n, support)
        for z in range(-reach, support + 1):
            net = leaving.get((n, z), fmpq(0)) - high * entering.get((n, z), fmpq(0))
            if z == 0:
                bound += eta * net
            elif net < mass.get(n, fmpq(0)) + mean.get(n, fmpq(0)) * z:
                raise Wrong("witness", f"the dual is not feasible at count {n}, noise {z}")
    return bound


# --- integer noise ------------------------------------------------------------------------------
def _integer_noise(theorem: Data, witness: Data, budget: Budget) -> Any:
    objective, largest, shifts = (theorem[k] for k in ("objective", "support", "sensitivity"))
    width = 2 * largest + 1
    law = [rational(mass) for mass in witness["law"]]
    tests = [[rational(entry) for entry in test] for test in witness["tests"]]
    steps = [rational(step) for step in witness["steps"]]
    fixed = None if theorem["error_free"] is None else rational(theorem["error_free"])
    allowed = None if theorem["delta"] is None else rational(theorem["delta"])
    wrong = {
        "theorem.delta": (allowed is None) != (objective == "delta"),
        "theorem.costs": len(theorem["costs"]) != (largest if objective == "cost" else 0),
        "witness.law": len(law) != width or min(law) < 0 or sum(law) != 1,
        "witness.tests": len(tests) != shifts
        or any(len(test) != width or min(test) < 0 for test in tests),
        "witness.steps": len(steps) != (largest if theorem["monotone"] else 0)
        or min(steps, default=fmpq(0)) < 0,
    }
    for where, applies in wrong.items():
        if applies:
            raise Wrong(where, "does not fit the objective, or is no law, test or step")
    if fixed is not None and law[largest] != fixed:
        raise Wrong("witness.law", "has another P(Z = 0)")
    sides = law[largest:], law[largest::-1]
    if theorem["monotone"] and any(a < b for side in sides for a, b in pairwise(side)):
        raise Wrong("witness.law", "does not fall with |z|")
    low, high = _power(theorem, witness, budget)
    divergence = max(
        _divergence(each, shift, low) for each in (law, law[::-1]) for shift in range(1, shifts + 1)
    )
    costs = [_cost(theorem, abs(z)) for z in range(-largest, largest + 1)]
    if allowed is not None and divergence > allowed:
        raise Wrong("witness.law", "exceeds delta")
    cost = sum((c * p for c, p in zip(costs, law, strict=True)), fmpq(0))
    budget.check()
    values = [
        costs[i]
        + sum(
            (
                test[i] - (high * test[i + s] if i + s < width else 0)
                for s, test in enumerate(tests, start=1)
            ),
            fmpq(0),
        )
        for i in range(width)
    ]
    means = [(values[i] + values[-1 - i]) / 2 for i in range(largest, width)]
    for z, step in enumerate(steps):
        means[z] -= step / (2 if z else 1)
        means[z + 1] += step / 2
    least = min(means) if fixed is None else fixed * means[0] + (1 - fixed) * min(means[1:])
    total = sum((max(test) for test in tests), fmpq(0))
    if allowed is not None:
        return cost, least - allowed * total
    return divergence, max(least, fmpq(0)) / total if total else fmpq(0)


def _divergence(law: Sequence[fmpq], shift: int, ratio: fmpq) -> fmpq:
    """Return Σ max(0, p(z) − E p(z − shift))."""
    moved = [fmpq(0)] * shift + list(law)
    excess = (p - ratio * q for p, q in zip(law, moved, strict=False))
    return sum((entry for entry in excess if entry > 0), fmpq(0))


def _cost(theorem: Data, z: int) -> fmpq:
    """Return the cost of an error of size z."""
    objective = theorem["objective"]
    if not z or objective == "delta":
        return fmpq(0)
    if objective == "cost":
        return rational(theorem["costs"][z - 1])
    return fmpq(z ** {"variance": 2, "absolute": 1, "error": 0}[objective])


# --- the shape of Gaussian noise ----------------------------------------------------------------
def _gaussian_shape(theorem: Data, witness: Data, budget: Budget) -> Any:
    weights = [rational(text) for text in theorem["weights"]]
    size, space = len(weights), parse(theorem["space"], "theorem.space")
    if min(weights, default=fmpq(0)) <= 0 or dimension(space) != size:
        raise Wrong("theorem.weights", "expected a number > 0 for each coordinate of the space")
    covariance = symmetric(witness["covariance"], size, "witness.covariance")
    if not is_positive(covariance, strictly=True):
        raise Wrong("witness.covariance", "is not positive definite")
    if not largest_square(space, _rows(fmpq_mat(covariance).inv()), budget) <= 1:
        raise Wrong("witness.covariance", "is too small for the space, or that is not decided")
    total, shares = theorem["objective"] == "total", [*map(rational, witness["shares"])]
    if len(shares) != size or min(shares) < 0 or (total and {*shares} != {fmpq(1)}):
        raise Wrong("witness.shares", "expected 1 for each coordinate, or a law on them")
    if not total and sum(shares) > 1:
        raise Wrong("witness.shares", "have a sum above 1")
    variances = [weight * covariance[i][i] for i, weight in enumerate(weights)]
    return (sum(variances) if total else max(variances)), _trace(space, weights, shares, witness)


def _trace(space: Noise, weights: Sequence[fmpq], shares: Sequence[fmpq], witness: Data) -> fmpq:
    """Return (tr B)², after checking B, the scales and the law on the space."""
    size, scales, law = len(weights), *([*map(rational, witness[k])] for k in ("scales", "law"))
    if len(scales) != size or any(
        scale < 0 or scale * scale > weight * share
        for scale, weight, share in zip(scales, weights, shares, strict=True)
    ):
        raise Wrong("witness.scales", "expected 0 <= scale and scale^2 <= weight*share")
    if len(law) != len(witness["vertices"]) or min(law, default=fmpq(0)) < 0 or sum(law) > 1:
        raise Wrong("witness.law", "is no law on the vertices")
    matrix = [[fmpq(0)] * size for _ in range(size)]
    for index, (mass, entry) in enumerate(zip(law, witness["vertices"], strict=True)):
        square, vector = rational(entry["square"]), [*map(rational, entry["entries"])]
        squares = [
            square * x * abs(x) for x in vector
        ]  # signed squares of the vector √square·entries
        if square < 0 or len(vector) != size or not contains(space, squares):
            raise Wrong(f"witness.vertices[{index}]", "is not in the space")
        scaled = [scale * x for scale, x in zip(scales, vector, strict=True)]
        for i, x in enumerate(scaled):
            for j, y in enumerate(scaled) if x else ():
                matrix[i][j] += mass * square * x * y
    root = symmetric(witness["root"], size, "witness.root")
    rest = fmpq_mat(matrix) - fmpq_mat(root) * fmpq_mat(root)
    if not is_positive(_rows(rest), strictly=False):
        raise Wrong("witness.root", "its square exceeds the matrix of second moments")
    return max(sum((root[i][i] for i in range(size)), fmpq(0)), fmpq(0)) ** 2


def symmetric(texts: Sequence[Sequence[str]], size: int, where: str) -> Rows:
    """Parse a symmetric matrix."""
    lists = all(isinstance(x, list) for x in (texts, *texts))
    if not lists or len(texts) != size or any(len(row) != size for row in texts):
        raise Wrong(where, f"expected {size} rows of {size} numbers")
    rows = [[rational(text) for text in row] for row in texts]
    if any(rows[i][j] != rows[j][i] for i in range(size) for j in range(i)):
        raise Wrong(where, "is not symmetric")
    return rows


def _rows(matrix: fmpq_mat) -> Rows:
    return [list(row) for row in matrix.table()]


def is_positive(matrix: Rows, *, strictly: bool) -> bool:
    """Whether a symmetric matrix is positive definite, or semidefinite, by its pivots."""
    work = [list(row) for row in matrix]
    for k, row in enumerate(work):
        pivot = row[k]
        if pivot < 0 or (pivot == 0 and (strictly or any(row[k + 1 :]))):
            return False
        for i in range(k + 1, len(work)) if pivot else ():
            if ratio := work[i][k] / pivot:
                work[i] = [a - ratio * b for a, b in zip(work[i], row, strict=True)]
    return True


# --- spaces of differences ----------------------------------------------------------------------
def _signed_square(value: Any, where: str = "theorem.space") -> fmpq:
    """Return x·|x| for a number that is rational or the square root of a rational."""
    text = str(value).strip()
    sign, text = (-1, text[1:]) if text[:1] == "-" else (1, text)
    root = text.startswith("sqrt(") and text.endswith(")")
    try:
        x = rational(text[5:-1] if root else text)
    except ValueError:
        raise NotProved(f"{text[:40]!a} is neither a fraction nor the square root of one") from None
    if x < 0:
        raise Wrong(where, f"has the number {text[:40]!a}")
    return sign * (x if root else x * x)


def dimension(space: Any) -> int:
    """Return the dimension of a space of differences; raise Wrong if it is malformed."""
    if not isinstance(space, Noise) or space.name not in _SPACES:
        raise Wrong("theorem.space", f"expected one of {', '.join(_SPACES)}")
    given = space.arguments
    lists = [given.get(name, []) for name in ("bounds", "vectors")]
    if not all(isinstance(entry, list) for entry in [*lists, *lists[1]]):
        raise Wrong("theorem.space", "expected lists of numbers")
    sizes = [int(str(given[k])) for k in ("dimension", "sparsity", "groups") if k in given]
    bounds = [*(given[name] for name in ("radius", "bound") if name in given), *lists[0]]
    widths = {*map(len, lists[1])}
    numbers = [*map(fmpq, sizes), *map(_signed_square, bounds), *map(fmpq, widths)]
    signed = str(given.get("signed", False)) in ("True", "False")
    if min(numbers, default=fmpq(0)) <= 0 or len(widths) > 1 or not signed:
        raise Wrong("theorem.space", "expected numbers > 0, and vectors of one length")
    if space.name == "DisjointGroups":
        return sizes[0] * dimension(given["space"])
    return sizes[0] if sizes else len(lists[0]) or max(widths)


def contains(space: Noise, squares: Sequence[fmpq]) -> bool:
    """Whether a space contains the vector with these signed squares, or its negative."""
    if len(squares) != dimension(space):
        return False
    name, given, active = space.name, space.arguments, [x for x in squares if x]
    if name == "Box":
        bounds = map(_signed_square, given["bounds"])
        return all(abs(x) <= bound for x, bound in zip(squares, bounds, strict=True))
    if name == "L2Ball":
        return bool(sum(map(abs, squares), fmpq(0)) <= _signed_square(given["radius"]))
    if name == "SparseBox":
        alike = all(x > 0 for x in active) or all(x < 0 for x in active)
        within = all(abs(x) <= _signed_square(given["bound"]) for x in active)
        few = len(active) <= int(given["sparsity"])
        return few and within and (str(given["signed"]) == "True" or alike)
    if name == "FiniteSet":
        listed = [[_signed_square(x) for x in vector] for vector in given["vectors"]]
        return any(vector in (list(squares), [-x for x in squares]) for vector in listed)
    size = dimension(given["space"])
    busy = [b for i in range(0, len(squares), size) if any(b := squares[i : i + size])]
    return len(busy) <= 1 and all(contains(given["space"], block) for block in busy)


def largest_square(space: Noise, inverse: Rows, budget: Budget) -> Any:
    """Return the maximum of v'Av over a space, A = Σ⁻¹, as a fraction or a ball.

    For an L2Ball of radius r the result is 0 if the maximum r² λ_max is at most 1, that is if
    I − r²A is positive semidefinite, and 2 if not. For other spaces all vertices are visited, with
    entries ±bound, or 0 in a sparse space.
    """
    name, given, size = space.name, space.arguments, len(inverse)
    if name == "DisjointGroups":
        width, starts = dimension(given["space"]), range(0, size, dimension(given["space"]))
        blocks = [[row[i : i + width] for row in inverse[i : i + width]] for i in starts]
        return _largest([largest_square(given["space"], block, budget) for block in blocks])
    if name == "L2Ball":
        square = _signed_square(given["radius"])
        rest = [[(i == j) - square * x for j, x in enumerate(row)] for i, row in enumerate(inverse)]
        return fmpq(0 if is_positive(rest, strictly=False) else 2)
    if name == "FiniteSet":
        vectors = [[_signed_square(x) for x in vector] for vector in given["vectors"]]
        return _largest([sum(map(sum, _scaled(inverse, v)), fmpq(0)) for v in vectors])
    sparse = name == "SparseBox"
    bounds = [given["bound"]] * size if sparse else given["bounds"]
    matrix, values = _scaled(inverse, [*map(_signed_square, bounds)]), [fmpq(0)]
    signs = (1, -1) if not sparse or str(given["signed"]) == "True" else (1,)
    most = min(int(given["sparsity"]), size) if sparse else size
    if most > 16:  # more than 2^15 vertices
        raise NotProved(f"the largest norm over more than {MOST_VERTICES} vertices")

    def visit(start: int, left: int, value: Any, slope: list[Any]) -> None:
        budget.check()
        if len(values) > MOST_VERTICES:
            raise NotProved(f"the largest norm over more than {MOST_VERTICES} vertices")
        if sparse or start == size:
            values.append(value)
        for i in range(start, size if sparse else min(start + 1, size)) if left else ():
            for x in signs[: 1 if left == most else 2]:  # x and −x agree
                more = value + matrix[i][i] + 2 * x * slope[i]
                moved = [entry + x * matrix[i][j] for j, entry in enumerate(slope)]
                visit(i + 1, left - 1, more, moved)

    visit(0, most, fmpq(0), [fmpq(0)] * size)
    return _largest(values)


def _scaled(inverse: Rows, squares: Sequence[fmpq]) -> list[list[Any]]:
    """Return the matrix of v_i A_ij v_j for a vector given by signed squares."""
    return [
        [x * _product(squares[i], squares[j]) if x else x for j, x in enumerate(row)]
        for i, row in enumerate(inverse)
    ]


def _product(a: fmpq, b: fmpq) -> Any:
    """Return xy for the signed squares of x and y: a fraction if it is rational, else a ball."""
    square, sign = abs(a * b), 1 if (a > 0) == (b > 0) else -1
    top, bottom = square.p.isqrt(), square.q.isqrt()
    if top * top == square.p and bottom * bottom == square.q:
        return sign * fmpq(top, bottom)
    return sign * ball(square).sqrt()


def _largest(values: Sequence[Any]) -> Any:
    """Return the maximum of fractions and balls."""
    if all(isinstance(value, fmpq) for value in values):
        return max(values)
    return reduce(lambda a, b: a.max(b), map(ball, values))


_KINDS: Mapping[str, Callable[[Data, Data, Budget], Any]] = {
    "count-noise": _count_noise,
    "integer-noise": _integer_noise,
    "gaussian-shape": _gaussian_shape,
}


# --- optima in words ---
_OPTIMA = {
    "count-noise": "the least delta at {power} of noise with mean 0 and P(0) = {eta} on "
    "-min(n, {support})..{support} for all counts n {counts}",
    "integer-noise": "the least {what} at {power} of a law on -{support}..{support}",
    "gaussian-shape": "the least {objective} variance of Gaussian noise that is 1-GDP over {space}",
}
_ERRORS = {
    "variance": "mean of Z^2",
    "absolute": "mean absolute error",
    "error": "P(Z != 0)",
    "cost": "mean cost of |Z| = 1, 2, ...",
    "delta": "delta",
}
_SAID = {"kind", "verdict", "lower", "upper", "epsilon", "ratio", "eta", "support", "space"} | {
    "min_count",
    "max_count",
}


def in_words(theorem: Data, *_: Any) -> Theorem:
    """Return an optimum in the kernel's words, with every field that is given."""
    words = {"support": "", **{name: formula(text) for name, text in theorem.items()}}
    at = "epsilon" if theorem.get("ratio") is None else "ratio"
    words["power"] = f"{'E' if at == 'ratio' else at} = {words.get(at)}"
    few = theorem.get("max_count") is not None
    words["counts"] = "from {min_count} to {max_count}" if few else ">= {support}"
    words["counts"] = words["counts"].format_map(words)
    words["what"] = _ERRORS.get(theorem["objective"], "")
    rest = [
        f"{name} = {described(value)}"
        for name, value in theorem.items()
        if name not in _SAID and value not in (None, False, [])
    ]
    what = _OPTIMA[theorem["kind"]].format_map(words)
    return Theorem("", "", f"{what} ({', '.join(rest)}) {_optimum(theorem)}", "OPTIMAL")


def _optimum(theorem: Data) -> str:
    lower, upper = rational(theorem["lower"]), rational(theorem["upper"])
    text = theorem["upper"]
    shown = formula(text) if len(text) <= 60 else f"about {ball(upper).str(12, radius=False)}"
    if lower == upper:
        return f"is {shown}, exactly optimal"
    power = next((k for k in range(6, 400) if upper - lower > upper / 10 ** (k + 1)), 400)
    return f"is at most {shown}, optimal within a relative gap of 1e-{power}"
