"""The real noise of the mechanisms, for release on a lattice."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

from flint import arb

from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.inverse_noise import InverseNoise
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.quadratic import factor
from dpassay.accountant.release import sampling
from dpassay.accountant.release.lattice import LinearNoise, Noise, Row, input_error
from dpassay.accountant.release.lazy_reals import WORD, LazyReals, Numbers

if TYPE_CHECKING:
    from dpassay.accountant.geometry.covariances import Covariance

_UNIT = 2.0**-53
"""Relative error of one operation with floats."""
_MOST_STEPS = 2000
"""Steps of a table of a geometric law; beyond its end the law begins anew."""


def independent(scales: Callable[[], Sequence[arb]], law: str = "normal") -> LinearNoise:
    """Return independent coordinates of these scales (standard deviations for normal noise)."""
    return LinearNoise(
        lambda: [[(j, scale)] for j, scale in enumerate(scales())], _length(scales), law
    )


def shared(
    dimension: int, scales: Callable[[], tuple[arb, arb, arb | None]], groups: int = 1
) -> LinearNoise:
    """Return in each group a·x₀ + b·x_j for j = 1..dimension, and c·x₀ last unless c is None.

    `scales` returns (a, b, c). All x are independent N(0, 1).
    """

    def rows() -> list[Row]:
        a, b, c = scales()
        found: list[Row] = []
        for group in range(groups):
            start = group * (dimension + 1)
            found += [[(start, a), (start + j, b)] for j in range(1, dimension + 1)]
            found += [] if c is None else [[(start, c)]]
        return found

    return LinearNoise(rows, groups * (dimension + 1))


def combined(rows: Sequence[Sequence[Fraction]], scale: Callable[[], arb], law: str) -> LinearNoise:
    """Return scale·L z for independent variables z of a law and a rational matrix L."""

    def terms() -> list[Row]:
        each = scale()
        return [[(j, each * ball(entry)) for j, entry in enumerate(row) if entry] for row in rows]

    return LinearNoise(terms, len(rows[0]), law)


def coloured(covariance: Covariance) -> LinearNoise:
    """Return N(0, Σ)."""
    return LinearNoise(lambda: square_root(covariance), covariance.dimension)


def square_root(covariance: Covariance) -> list[Row]:
    """Return the rows of a matrix A with A A' = Σ, at flint's current precision.

    A is diagonal where Σ is; across·(I − J) + along·J with the roots of the eigenvalues where
    (1, …, 1) and its complement are eigenspaces, J = 11'/d; and L√D from Σ = L D L' elsewhere.
    """
    d = covariance.dimension
    variances, axes = covariance.independent, covariance.axes
    if variances is not None:
        entries = variances * d if len(variances) == 1 else variances
        return [[(j, ball(entry).sqrt())] for j, entry in enumerate(entries)]
    if axes is not None:
        along, across = (ball(axis).sqrt() for axis in axes)
        common = (along - across) / d
        return [[(j, common + across if i == j else common) for j in range(d)] for i in range(d)]
    factors = factor(covariance.matrix())
    pivots = [ball(pivot).sqrt() for pivot in factors.pivots]
    return [
        [(j, ball(entry) * pivot) for j, (entry, pivot) in enumerate(zip(row, pivots, strict=True))]
        for row in factors.lower
    ]


@final
class KroneckerNoise(Noise):
    """A·N·B' flattened row by row, for an m×n matrix N of independent N(0, 1) variables.

    Parameters
    ----------
    left, right
        The rows of A (m×m) and B (n×n), as balls at flint's current precision.
    """

    def __init__(
        self, left: Callable[[], Sequence[Row]], right: Callable[[], Sequence[Row]]
    ) -> None:
        self._rows = functools.lru_cache(maxsize=None)(lambda _precision: (left(), right()))
        with ctx.workprec(128):
            self._factors = _dense(left()), _dense(right())

    @property
    def dimension(self) -> int:
        """M·n."""
        left, right = self._factors
        return len(left) * len(right)

    @property
    def inputs(self) -> int:
        """As many."""
        return self.dimension

    def scales(self) -> list[float]:
        """Return the products of the norms of a row of A and a row of B."""
        left, right = (np.sqrt((matrix**2).sum(axis=1)) for matrix in self._factors)
        return [float(a * b) for a in left for b in right]

    def floats(self, drawn: Array, steps: Array) -> tuple[Array, Array]:
        """Return A N B' over the steps; each of the two products adds its share of rounding."""
        left, right = self._factors
        m, n = len(left), len(right)
        matrices = drawn.reshape(-1, m, n)
        found = left @ matrices @ right.T
        bound = np.abs(left) @ (np.abs(matrices) + 3) @ np.abs(right).T
        scale = 1 / steps.reshape(m, n)
        return (
            (found * scale).reshape(len(drawn), -1),
            (bound * scale).reshape(len(drawn), -1) * ((m + n + 12) * _UNIT),
        )

    def ball(self, coordinate: int, number: Numbers) -> arb:
        """Return Σ A_ik N_kl B_jl."""
        left, right = self._rows(ctx.prec)
        i, j = divmod(coordinate, len(right))
        total = arb(0)
        for k, a in left[i]:
            inner = sum((b * number(k * len(right) + column) for column, b in right[j]), arb(0))
            total += a * inner
        return total


@final
@dataclass(frozen=True)
class RankOneNoise(Noise):
    """root·ℓ·h/‖h‖ for a vector h of N(0, 1) variables and one more, ℓ.

    Parameters
    ----------
    root
        The standard deviation of the length, as a ball at flint's current precision.
    coordinates
        How many there are.
    """

    root: Callable[[], arb]
    coordinates: int

    @property
    def dimension(self) -> int:
        """How many coordinates."""
        return self.coordinates

    @property
    def inputs(self) -> int:
        """The direction, then ℓ."""
        return self.dimension + 1

    def scales(self) -> list[float]:
        """Return root/√M: the standard deviation of every coordinate."""
        with ctx.workprec(128):
            return [float(self.root()) / math.sqrt(self.dimension)] * self.dimension

    def floats(self, drawn: Array, steps: Array) -> tuple[Array, Array]:
        """Return the coordinates over the steps.

        The squared norm S is right to 2·2^−53·S, by the squares and one rounding of their sum; the
        errors of the h_i, at most (|h_i| + 3)·2^−53, move it by at most (2 + 6√(M/S))·2^−53·S to
        first order.
        """
        direction, length = drawn[:, :-1], drawn[:, -1:]
        squares = np.array([[math.fsum(row)] for row in (direction * direction).tolist()])
        with ctx.workprec(128):
            scale = float(self.root())
        norms = np.sqrt(squares)
        factor_ = scale / steps / norms
        found = length * direction * factor_
        relative = _UNIT * (12 + 6 * np.sqrt(self.dimension / squares))
        loose = (np.abs(length) + 3) * (np.abs(direction) + 3) * factor_ * (6 * _UNIT)
        return found, loose + relative * np.abs(found)

    def ball(self, coordinate: int, number: Numbers) -> arb:
        """Return root·ℓ·h_i/‖h‖."""
        length = number.squares(self.dimension).sqrt()
        return self.root() * number(self.dimension) * number(coordinate) / length


@final
@dataclass(frozen=True)
class InvertedNoise(Noise):
    """±scale·g(E): the inverse of a symmetric density at a lazy exponential variable E.

    Its sign and E together are a lazy Laplace variable, whose law is exact; so is that of g.
    """

    declared: InverseNoise
    law = "laplace"

    def scales(self) -> list[float]:
        """Return the scale."""
        return [float(self.declared.scale)]

    def floats(self, drawn: Array, steps: Array) -> tuple[Array, Array]:
        """Return ±scale·g(|x|)/step and a bound of its error.

        |x| is known to `input_error`, which g multiplies by its slope at most; g itself is right to
        16·2^−53·(1 + g); the scale is rounded once, its product once, the step is a power of two.
        """
        size = np.abs(drawn)
        height = self.declared.magnitude(np, size)
        scale = float(self.declared.scale) / steps
        bound = self.declared.slope * input_error(drawn) + 20 * _UNIT * (1 + height)
        return np.sign(drawn) * height * scale, bound * scale * (1 + 2.0**-20)

    def ball(self, coordinate: int, number: Numbers) -> arb:
        """Return ±scale·g(|x|); the middle of the ball tells the sign."""
        x = number(0)
        size = self.declared.scale.ball() * self.declared.exact(abs(x))
        return size if x.mid() > 0 else -size


@final
@dataclass(frozen=True)
class StaircaseNoise(Noise):
    """±Δ·f(x), where f climbs from k to k + γ on [2k, 2k + 1] and to k + 1 on [2k + 1, 2k + 2].

    The whole part of x chooses the step, with the probabilities of the staircase, and its fraction
    is uniform. f is continuous with slopes at most 1, so errors do not grow.

    Parameters
    ----------
    epsilon, gamma, sensitivity
        The parameters of the staircase, as balls at flint's current precision.
    """

    epsilon: Callable[[], arb]
    gamma: Callable[[], arb]
    sensitivity: Callable[[], arb]

    def scales(self) -> list[float]:
        """Return Δ·max(1, 1/ε)/4."""
        with ctx.workprec(128):
            return [float(self.sensitivity()) * max(1.0, 1 / float(self.epsilon())) / 4]

    def draw(self, count: int, *, rng: Randomness, bits: int = WORD) -> LazyReals:
        """Draw the step by inversion (the law is memoryless beyond the table), sign and place."""
        with ctx.workprec(128):
            steps = min(_MOST_STEPS, math.ceil(20 / float(self.epsilon())) + 1)
        whole = np.zeros(count, dtype=np.int64)
        active = np.arange(count)
        while len(active):
            drawn = sampling.indices_by_inversion(
                lambda: self._cumulative(steps), len(active), rng=rng
            )
            whole[active] += drawn
            active = active[drawn == 2 * steps]
        word = rng.integers(0, 2 << bits, count)
        return LazyReals(1 - 2 * (word & 1), whole, word >> 1, bits)

    def _cumulative(self, steps: int) -> list[arb]:
        """Return P(whole ≤ i) for i < 2·steps: 1 − b^k(1 − (1 − b)p) and 1 − b^{k+1}."""
        fall = (-self.epsilon()).exp()
        gamma = self.gamma()
        near = gamma / (gamma + fall * (1 - gamma))
        inner = 1 - (-(-self.epsilon()).expm1()) * near
        found = []
        for k in range(steps):
            power = (-k * self.epsilon()).exp()
            found += [1 - power * inner, 1 - power * fall]
        return found

    def floats(self, drawn: Array, steps: Array) -> tuple[Array, Array]:
        """Return Δ·f(x)/step and a bound."""
        with ctx.workprec(128):
            gamma, scale = float(self.gamma()), float(self.sensitivity()) / steps
        size = np.abs(drawn)
        whole = np.floor(size)
        place = size - whole
        odd = whole % 2
        height = (whole - odd) / 2 + np.where(odd == 0, gamma * place, gamma + (1 - gamma) * place)
        bound = (input_error(drawn) + 6 * _UNIT * (height + 1)) * scale
        return np.sign(drawn) * height * scale, bound * (1 + 2.0**-20)

    def ball(self, coordinate: int, number: Numbers) -> arb:
        """Return ±Δ·f(x); the middle of the ball tells the whole part."""
        x = number(0)
        sign = 1 if x.mid() > 0 else -1
        middle = abs(x.mid()).floor().unique_fmpz()
        assert middle is not None  # a midpoint is exact
        whole, odd = divmod(int(middle), 2)
        place = abs(x) - int(middle)
        gamma = self.gamma()
        part = gamma + (1 - gamma) * place if odd else gamma * place
        return sign * self.sensitivity() * (whole + part)


def _dense(rows: Sequence[Row]) -> Array:
    """Return a square matrix in doubles."""
    found = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        for j, value in row:
            found[i, j] = float(value)
    return found


def _length(scales: Callable[[], Sequence[arb]]) -> int:
    with ctx.workprec(64):
        return len(scales())
