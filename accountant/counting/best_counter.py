"""The best known mechanism here for continual counting, for a length and a budget."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, Final, final

from flint import arb, arb_mat

from dpassay.accountant.budget.calibrate import calibrate
from dpassay.accountant.budget.target import EpsilonDelta, Mu, Rho, Target
from dpassay.accountant.core.validate import integer
from dpassay.accountant.counting.counters import BinaryTree, BridgedTree, KaryTree, LinearCounter
from dpassay.accountant.counting.grids import Digits, Grids, Tree
from dpassay.accountant.counting.square_root import SquareRootFactorization
from dpassay.accountant.errors import expected
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.questions import accuracy

# --- A lower bound for all factorisation mechanisms of prefix sums, by nuclear norms --------------
# Let A = L R be the n prefix sums, and add noise with independent entries N(0, σ²) to R x. Let ‖R‖
# be the largest norm of a column of R, so that μ = ‖R‖/σ. The mean squared error is ‖L‖²‖R‖²/(nμ²)
# in the Frobenius norm of L. For every vector w, with diagonal matrix W,
#
#     ‖A W‖_* = ‖L (R W)‖_* ≤ ‖L‖ ‖R W‖ ≤ ‖L‖ ‖R‖ (Σ w_t²)^{1/2},
#
# where ‖·‖_* is the sum of the singular values. So the error is at least ‖A W‖_*²/(n Σ w_t² μ²) for
# every w, and some w attains the optimum (γ₂ duality). Here w_t = ln(6 n cot(πx/2)), x = (t + ½)/n,
# nearly the diagonal of (A'A)^{1/2}, made constant on blocks. At n = 10, 100 and 1000 this is
# within 0.5, 0.2 and 0.2 % of the best w.
#
# *Laplace noise.* Columns with ‖R_t‖₁ ≤ 1 have ‖R_t‖₂ ≤ 1, and the variance is twice the squared
# scale. So the error is at least twice the same bound, with ε² in place of μ². *Contributions.* Let
# neighbours differ in up to c positions. With random signs, the mean of ‖R x‖² is Σ‖R_t‖² over
# these positions. Drawing t with probability c w_t²/Σw² (at most 1) multiplies the bound by c.
#
# *The sum, rigorously.* With B = A⁻¹ and K = W² + s²BB', Σ_k (1 + s²/σ_k²)⁻¹ = tr K⁻¹W² is the
# derivative of ln det(τW² + s²BB') at τ = 1. The determinant is s²ⁿ v_n, where (u, v) starts at
# (0, 1), and each step adds u/s² to v and then τw² times v to u. All numbers are positive, and a
# block of equal weights is a power of a matrix. By Poisson summation, with s = e^{jH},
#
#     (2H/π) Σ_j s Σ_k (1 + s²/σ_k²)⁻¹ = Σ_k σ_k (1 + 2 Σ_{i ≥ 1} cos(2πi ln σ_k/H) sech(π²i/H)).
#
# Hence the sum over any subset of j on the left, divided by 1 + 2 Σ_i sech(π²i/H), is a lower bound
# on Σ_k σ_k.

_BITS = 128
"""Bits of precision; a block of 2ᵏ equal steps loses k of them."""
_STEP = Fraction(1, 2)
"""H: the sum over i, by which the bound is reduced, is about 1e-8."""
_FACTOR = 6
"""The factor 6 in the weights; from 4 to 12 the bound changes by at most 0.1 % at n = 100."""
_REACH = 16.0
"""Range of ln s beyond the logarithms of all singular values; truncation loses a share e^-16."""
_GROWTH = 1.5
"""Growth of the lengths of blocks from both ends; twice as many gain less than 0.01 %."""


def least_units(steps: int, contributions: int = 1) -> Fraction:
    """Return a lower bound on the mean squared error of all Gaussian factorisations, times μ².

    Twice this is a lower bound for all Laplace factorisations, times ε². The bound is rounded down;
    it is close to the optimum if `contributions` = 1.

    Raises
    ------
    InvalidInputError
        Unless steps, contributions ≥ 1.
    """
    steps = integer("steps", steps, least=1)
    contributions = integer("contributions", contributions, least=1)
    bound, most = _least_error_bound(steps)
    return bound * min(Fraction(contributions), most)


@functools.lru_cache(maxsize=64)
def _least_error_bound(steps: int) -> tuple[Fraction, Fraction]:
    """Return the bound for c = 1, and the largest c with c·w_t² ≤ Σw² for all t."""
    edges = _edges(steps)
    blocks = [(_least_error_weight((a + b) / 2 / steps, steps), b - a) for a, b in pairwise(edges)]
    squares = sum((w * w * size for w, size in blocks), Fraction(0))
    heaviest = max(w for w, _ in blocks)
    with ctx.workprec(_BITS):
        step = arb(_STEP.numerator) / _STEP.denominator
        low = math.log(float(min(w for w, _ in blocks)) / 2) - _REACH
        high = math.log(float(heaviest) * steps) + _REACH
        nodes = range(math.floor(low / float(_STEP)), math.ceil(high / float(_STEP)) + 1)
        total = sum((_term((j * step).exp(), blocks) for j in nodes), start=arb(0))
        base = arb.pi() ** 2 / step
        rest = sum((2 / (base * i).cosh() for i in range(1, 9)), start=arb(0))
        rest += 8 * (-9 * base).exp()  # sech(x) ≤ 2e^{−x}, and e^{−base} < ½
        norm = 2 * step / arb.pi() * total / (1 + rest)
        bound = norm**2 / (steps * arb(squares.numerator) / squares.denominator)
        return Fraction(Interval.of_ball(bound).lower), squares / (heaviest * heaviest)


def _term(s: arb, blocks: list[tuple[Fraction, int]]) -> arb:
    """Return s·tr K⁻¹W²."""
    inverse = 1 / (s * s)
    state = arb_mat([[0], [1], [0], [0]])  # u, v and their derivatives with respect to τ
    for weight, size in blocks:
        square = (arb(weight.numerator) / weight.denominator) ** 2
        x = square * inverse
        step = arb_mat(
            [
                [1 + x, square, 0, 0],
                [inverse, 1, 0, 0],
                [x, square, 1 + x, square],
                [0, 0, inverse, 1],
            ]
        )
        state = step**size * state
    u, v, du, dv = (state[i, 0] for i in range(4))
    found: arb = s * (dv + du * inverse) / (v + u * inverse)
    return found


def _least_error_weight(x: float, steps: int) -> Fraction:
    """Return the weight at position x·n of the stream, > 0; the bound holds for any weights."""
    value = math.log(_FACTOR * steps / math.tan(math.pi * x / 2))
    return Fraction(round(value * 1024), 1024)


def _edges(steps: int) -> list[int]:
    """Return where blocks begin, and the end; lengths grow from both ends towards the middle."""
    half, length, edges = (steps + 1) // 2, 1.0, [0]
    while edges[-1] < half:
        edges.append(min(half, edges[-1] + int(length)))
        length = max(length + 0.25, length * _GROWTH if length >= 4 else length)
    return sorted({*edges, *(steps - edge for edge in edges)})


LARGEST_STORED: Final = 1 << 20
"""Most steps for which the square root, which stores all its noise, is considered."""
_LARGEST_ARITY = 48
"""Largest arity that is tried; the error grows with it, and the best trees have smaller ones."""
_TALLEST = 12
"""Largest height of a tree that is searched; each height requires a product of all arities."""
_ROUNDS = 20
"""Most rounds of changing one arity by 1; improvement stops earlier."""
_POOLED = 1
"""Generations pooled into a cell; two would gain 0.3 % more and store `arity` times as much."""
_DIGITS = 12
"""Digits of a calibrated μ, rounded towards more noise."""

Build: Any = Callable[..., LinearCounter]
_COUNTERS: Final = (BinaryTree, BridgedTree, KaryTree, SquareRootFactorization)


@final
@dataclass(frozen=True, slots=True)
class BestCounter:
    """The result of `best_counter`."""

    mechanism: LinearCounter
    """The mechanism of least mean squared error among those considered."""
    error: Interval
    """An enclosure of its mean squared error."""
    reason: str
    """Why it is the best, and compared with what."""
    others: tuple[tuple[LinearCounter, Interval], ...]
    """The other mechanisms considered, with their errors in increasing order."""
    bound: Interval
    """No factorisation L R with noise of law `bound_law` has an error below the lower end."""
    bound_law: str
    """"Laplace" for pure ε-DP, else "Gaussian"."""


def best_counter(steps: int, budget: Target | Number, *, contributions: int = 1) -> BestCounter:
    """Return the mechanism of least mean squared error that is known here.

    For pure ε-DP the candidates are `BridgedTree` with the best arities, and the best tree of
    "Count on Your Elders". For an approximate budget they are bridged trees of several heights,
    calibrated to it with Laplace and with Gaussian noise, and up to 2²⁰ steps the square-root
    factorization. The result is the best of these, not of all mechanisms; `bound` is a lower bound
    for every factorisation (`dpassay.accountant.counting.best_counter`).

    Parameters
    ----------
    steps
        n ≥ 1, the number of inputs and outputs.
    budget
        A number ε > 0 for pure ε-DP, or `EpsilonDelta`, `Mu` or `Rho`.
    contributions
        c ≥ 1: each person has at most c positions.

    Raises
    ------
    InvalidInputError
        If an argument is out of range, or the budget is of another kind.
    """
    steps = integer("steps", steps, least=1)
    contributions = integer("contributions", contributions, least=1)
    found: list[tuple[Fraction, LinearCounter, Interval]] = []
    for counter in _candidates(steps, _target(budget), contributions):
        error = accuracy.mean_squared_error(counter)
        found.append((Fraction(error.upper), counter, error))
    found.sort(key=lambda entry: entry[0])
    (_, best, error), *rest = found
    others = tuple((counter, other) for _, counter, other in rest)
    law, bound = _bound(steps, _target(budget), contributions)
    reason = f"{_reason(best, error, others)} {_against(error, law, bound)}"
    return BestCounter(best, error, reason, others, bound, law)


def named_counter(
    name: str, steps: int, target: EpsilonDelta, *, contributions: int = 1
) -> LinearCounter:
    """Return a mechanism by its name, with the best structure for pure ε-DP.

    If δ > 0 the noise is Gaussian. Raises InvalidInputError for a name that is not a counter, for a
    KaryTree with δ > 0, and for a SquareRootFactorization with δ = 0.
    """
    builds: dict[str, Build] = {kind.__name__: kind for kind in _COUNTERS}
    build = builds.get(name)
    if build is None:
        known = ", ".join(builds)
        raise expected("mechanism", name, "to be for streams", f"Known: {known}.")
    if build is KaryTree:
        if target.delta.sign:
            raise expected("delta", target.delta, "to be 0 for KaryTree", "Try another mechanism.")
        return _best_tree(steps, target.epsilon, contributions)
    if build is SquareRootFactorization and not target.delta.sign:
        raise expected("delta", target.delta, "> 0 for SquareRootFactorization", "It is Gaussian.")
    arguments: dict[str, Any] = {"steps": steps, "contributions": contributions}
    if name == BridgedTree.__name__:
        arguments |= _pooled(best_arities(steps))
    if target.delta.sign:
        return _scaled(partial(build, **arguments), _gaussian_mu(target))
    counter: LinearCounter = build(**arguments, epsilon=target.epsilon)
    return counter


def _best_tree(steps: int, epsilon: ExactReal, contributions: int) -> KaryTree:
    trees = (Tree(k, steps, Digits.SIGNED) for k in range(2, _LARGEST_ARITY + 1))
    tree = min(trees, key=Tree.mean_squared_error)
    return KaryTree(steps, tree.arity, epsilon, contributions=contributions)


def best_arities(steps: int, height: int | None = None) -> tuple[int, ...]:
    """Return the arities of the `BridgedTree` of least mean squared error for Laplace noise.

    One generation is pooled. The search covers all heights up to 12 (or the given one) and inner
    arities up to 48 that differ by at most 1; from the best of these it descends by single changes
    of an arity. The result is the best found, not a proved optimum.
    """
    if height is None:
        return min(
            (best_arities(steps, h) for h in _heights(steps)),
            key=lambda arities: _weight(arities, steps),
        )
    return _best_arities(steps, height)


def _heights(steps: int) -> range:
    """Return the heights at which arities within the search range have room for the steps."""
    least = 1
    while 4 * _LARGEST_ARITY**least < steps:
        least += 1
    return range(min(least, _TALLEST), min(_TALLEST, max(1, steps.bit_length() - 1)) + 1)


@functools.lru_cache(maxsize=256)
def _best_arities(steps: int, height: int) -> tuple[int, ...]:
    if height == 1:
        return (steps,)
    best: tuple[int, ...] | None = None
    for arity in range(2, _LARGEST_ARITY + 1):
        for larger in range(height - 1):
            inner = (arity + 1,) * larger + (arity,) * (height - 1 - larger)
            arities = (-(-steps // math.prod(inner)), *inner)
            if arities[0] > 4 * _LARGEST_ARITY:
                continue
            if best is None or _weight(arities, steps) < _weight(best, steps):
                best = arities
        if arity ** (height - 1) > steps:
            break
    if best is None:
        root = max(2, math.floor(steps ** (1 / height)))
        best = (-(-steps // root ** (height - 1)), *(root,) * (height - 1))
    return _downhill(best, steps)


def _downhill(arities: tuple[int, ...], steps: int) -> tuple[int, ...]:
    for _ in range(_ROUNDS):
        changed = [
            (-(-steps // math.prod(inner)), *inner)
            for place in range(1, len(arities))
            for change in (-1, 1)
            if arities[place] + change >= 2
            for inner in [(*arities[1:place], arities[place] + change, *arities[place + 1 :])]
        ]
        best = min(changed, key=lambda other: _weight(other, steps), default=arities)
        if _weight(best, steps) >= _weight(arities, steps):
            break
        arities = best
    return arities


@functools.lru_cache(maxsize=1 << 14)
def _weight(arities: tuple[int, ...], steps: int) -> Fraction:
    """Return the mean squared error with Laplace noise, times ε²/2."""
    return len(arities) ** 2 * Grids(arities, steps, _POOLED).units() / steps


def _pooled(arities: tuple[int, ...]) -> dict[str, Any]:
    return {"arities": arities, "pooled": min(_POOLED, len(arities) - 1)}


def _target(budget: Target | Number) -> Target:
    if isinstance(budget, (EpsilonDelta, Mu, Rho)):
        if isinstance(budget, EpsilonDelta) and budget.epsilon.sign <= 0:
            raise expected("epsilon", budget.epsilon, "> 0", "No counter has epsilon 0.")
        return budget
    if isinstance(budget, Target):
        raise expected("budget", budget, "to be a number, EpsilonDelta, Mu or Rho")
    number = exact(budget, "epsilon")
    if number.sign <= 0:
        raise expected("epsilon", budget, "> 0", "Give a positive number.")
    return EpsilonDelta(number)


def _candidates(steps: int, target: Target, contributions: int) -> Iterator[LinearCounter]:
    fixed: dict[str, Any] = {"steps": steps, "contributions": contributions}
    if isinstance(target, EpsilonDelta) and target.delta.sign == 0:
        yield BridgedTree(**fixed, **_pooled(best_arities(steps)), epsilon=target.epsilon)
        yield _best_tree(steps, target.epsilon, contributions)
        return
    # the noise for an approximate budget grows more slowly with the height
    weights = {h: _weight(best_arities(steps, h), steps) / h for h in _heights(steps)}
    least = min(weights.values())
    if isinstance(target, EpsilonDelta):
        for height, weight in weights.items():
            if weight <= 4 * least:
                yield _laplace(target, {**fixed, **_pooled(best_arities(steps, height))})
    mu, best = _gaussian_mu(target), min(weights, key=lambda h: weights[h])
    pooled = _pooled(best_arities(steps, best))
    yield _scaled(partial(BridgedTree, **fixed, **pooled), mu)
    if steps <= LARGEST_STORED:
        yield _scaled(partial(SquareRootFactorization, **fixed), mu)


def _laplace(target: EpsilonDelta, arguments: dict[str, Any]) -> LinearCounter:
    """Return bridged trees with Laplace noise, calibrated to an approximate budget."""
    if arguments["contributions"] > 1:
        return BridgedTree(**arguments, epsilon=_largest_epsilon(target))
    # with Laplace noise only the measurements have an exact profile to calibrate
    found = calibrate(BridgedTree, target, **arguments, released="measurements").mechanism
    assert isinstance(found, BridgedTree)
    return found.releasing("outputs")


def _scaled(build: Build, mu: ExactReal) -> LinearCounter:
    """Return the counter calibrated to μ-GDP, using less noise if it is known to reveal less."""
    counter: LinearCounter = build(mu=mu)
    bridged, several = isinstance(counter, BridgedTree), counter.contributions > 1
    if counter.worst_positions() is None if several else not bridged:
        return counter
    true = counter.exact_gaussian_mu(None)

    def largest() -> arb:
        return mu.ball() ** 2 / counter.gaussian_mu(None).upper()

    most = enclose(largest if true is None else (mu * mu / true).ball).lower
    scaled: LinearCounter = build(mu=exact(Context(prec=_DIGITS, rounding=ROUND_FLOOR).plus(most)))
    return scaled


def _largest_epsilon(target: EpsilonDelta) -> ExactReal:
    """Return ln((e^ε + δ)/(1 − δ)), rounded down: every mechanism with this pure ε is (ε, δ)-DP.

    Randomised response with ε' is the worst case: δ = (e^ε' − e^ε)/(e^ε' + 1).
    """
    epsilon, delta = target.epsilon, target.delta

    def largest() -> arb:
        return ((epsilon.ball().exp() + delta.ball()) / (1 - delta.ball())).log()

    most = enclose(largest)
    return exact(Context(prec=_DIGITS, rounding=ROUND_FLOOR).plus(most.lower))


def _gaussian_mu(target: Target) -> ExactReal:
    """Return the exact μ, or the largest one with `_DIGITS` digits that calibration proves."""
    if isinstance(target, Mu):
        return target.mu
    if isinstance(target, Rho):
        root = ExactReal.of_rational(2) * target.rho
        if root.rational is not None:
            return ExactReal.of_root(root.rational)
    noise = calibrate(Gaussian, target).mechanism
    assert isinstance(noise, Gaussian)
    deviation = noise.standard_deviation.rational
    assert deviation is not None
    most = Interval.of_exact(1 / deviation).lower
    return exact(Context(prec=_DIGITS, rounding=ROUND_FLOOR).plus(most))


def _bound(steps: int, target: Target, contributions: int) -> tuple[str, Interval]:
    """Return a law of noise, and a lower bound on the error of every factorisation with it."""
    units = ExactReal.of_rational(least_units(steps, contributions))
    if isinstance(target, EpsilonDelta) and target.delta.sign == 0:
        return "Laplace", enclose(lambda: 2 * units.ball() / target.epsilon.ball() ** 2)
    if isinstance(target, EpsilonDelta):
        deviation = exact(calibrate(Gaussian, target).least.lower)
        return "Gaussian", enclose(lambda: units.ball() * deviation.ball() ** 2)
    if isinstance(target, Mu):
        return "Gaussian", enclose(lambda: units.ball() / target.mu.ball() ** 2)
    assert isinstance(target, Rho)
    return "Gaussian", enclose(lambda: units.ball() / (2 * target.rho.ball()))


def _against(error: Interval, law: str, bound: Interval) -> str:
    """Compare the best error with the bound, rounded so that the statement is proved."""
    ratio = Fraction(error.upper) / Fraction(bound.lower)
    if ratio < 1:
        times = _rounded(1 / ratio, ROUND_FLOOR)
        return f"Every factorisation with {law} noise has at least {times} times as much."
    more = f"{_rounded(100 * (ratio - 1), ROUND_CEILING)} % more"
    if ratio >= 2:
        more = f"{_rounded(ratio, ROUND_CEILING)} times that"
    low = _rounded(Fraction(bound.lower), ROUND_FLOOR)
    return f"No factorisation with {law} noise has less than {low}; this has at most {more}."


def _rounded(value: Fraction, rounding: str) -> Decimal:
    """Round to four digits."""
    context = Context(prec=4, rounding=rounding)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _reason(
    best: LinearCounter, error: Interval, others: tuple[tuple[LinearCounter, Interval], ...]
) -> str:
    name = type(best).__name__
    text = f"{name} is the only mechanism considered."
    if others:
        next_best, next_error = others[0]
        ratio = f"{float(next_error.lower / error.upper):.4g}"
        larger = "as large" if ratio == "1" else f"{ratio} times as large"
        text = (
            f"{name} has the least mean squared error of {len(others) + 1} mechanisms; that of the "
            f"next, {next_best!r}, is {larger}."
        )
    if best.mu is not None and best.steps > LARGEST_STORED:
        text += f" The square root stores all its noise and is left out beyond {LARGEST_STORED}."
    return text
