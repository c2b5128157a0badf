"""Releases on a fixed lattice: continuous mechanisms without a floating-point side channel.

A mechanism that releases the real vector Y = v + noise is replaced by one that releases
⌊Y_j/g_j + 1/2⌋·g_j, where the steps g_j = 2^{e_j} depend only on the scale of the noise. This is
post-processing of Y that does not depend on v, so every guarantee of the mechanism holds unchanged:
neither the sensitivity nor δ grows. The rounding error of a coordinate is at most g_j/2, which is
at most 2^−33 of its scale. Every output lies on the same lattice for all v.

A program has these guarantees only if it rounds exactly. The noise is a real number whose digits
are drawn on demand (`dpassay.accountant.release.sampling`). A coordinate is first computed in
doubles, with a bound on its error. If a rounding boundary lies within this bound, the coordinate is
computed again in ball arithmetic, with further digits, until the rounding is decided. The law of
the output is thus exactly that of the rounded real mechanism.

Noise comes from the operating system (`dpassay.accountant.core.randomness`). Two things are not
covered: the time that a draw takes, and how v was computed. The sensitivity must be that of the
floating-point numbers passed in.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, final

from flint import arb, fmpq, fmpz

from dpassay.accountant.core.arrays import Array, ArrayLike, NDArray, np
from dpassay.accountant.core.randomness import SECURE, Randomness
from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.accountant.numbers.exact import ExactReal, factor
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.release import sampling
from dpassay.accountant.release.sampling import WORD, LazyReals, Numbers, laplace, normal

if TYPE_CHECKING:
    from dpassay.accountant.geometry.ellipse import Covariance


Row: TypeAlias = list[tuple[int, arb]]

RESOLUTION = 32
"""The lattice step is the largest power of two that is at most 2^−RESOLUTION times the noise's
scale."""

_UNIT = 2.0**-53
"""Bound on the relative rounding error of one operation with doubles."""
_BLOCK = 1 << 18
"""Numbers drawn at a time; they fill 2 MB."""
_LARGEST_INDEX = 1 << 61
"""Lattice points from this index on are added as Python integers; sums of smaller ones fit in
int64."""


class Noise(ABC):
    """A real random vector: a function of lazy reals that is evaluated in doubles or in balls."""

    law: str = "normal"
    """The law of the lazy reals: "normal" for N(0, 1), "laplace" for the density e^{−|x|}/2."""

    @property
    def dimension(self) -> int:
        """Number of coordinates (default 1)."""
        return 1

    @property
    def inputs(self) -> int:
        """Number of lazy reals that one vector needs (default 1)."""
        return 1

    @abstractmethod
    def scales(self) -> list[float]:
        """Return the scale of the noise of each coordinate, which determines its lattice step."""

    def draw(self, count: int, *, rng: Randomness, bits: int = WORD) -> LazyReals:
        """Draw `count` lazy reals."""
        return (normal if self.law == "normal" else laplace)(count, rng=rng, bits=bits)

    @abstractmethod
    def floats(self, drawn: Array, steps: Array) -> tuple[Array, Array]:
        """Return the coordinates divided by their steps, and bounds on the errors.

        Parameters
        ----------
        drawn
            Shape (vectors, inputs): doubles, each within `input_error` of its lazy real.
        steps
            The lattice steps, powers of two.
        """

    @abstractmethod
    def ball(self, coordinate: int, number: Numbers) -> arb:
        """Return one coordinate as a ball, at flint's current precision.

        `number(i)` is a ball that contains lazy real i of this vector.
        """


def input_error(drawn: Array) -> Array:
    """Bound |double − number| for the doubles of `LazyReals.floats` with at least 52 digits."""
    bound: Array = _UNIT * (np.abs(drawn) + 3)
    return bound


@final
class LinearNoise(Noise):
    """Noise whose coordinates are linear combinations of independent normal or Laplace variables.

    Parameters
    ----------
    rows
        Returns, for each coordinate, its terms (index, coefficient), with coefficients as balls at
        flint's current precision.
    variables
        The number of variables.
    law
        The law of the variables.
    """

    def __init__(
        self, rows: Callable[[], Sequence[Row]], variables: int, law: str = "normal"
    ) -> None:
        self.variables, self.law = variables, law
        self._rows = functools.lru_cache(maxsize=None)(lambda _precision: rows())
        with ctx.workprec(128):
            terms = rows()
        width = max(len(row) for row in terms)
        self._indices = np.zeros((len(terms), width), dtype=np.intp)
        self._values = np.zeros((len(terms), width))
        for j, row in enumerate(terms):
            for place, (index, coefficient) in enumerate(row):
                self._indices[j, place], self._values[j, place] = index, float(coefficient)

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self._indices)

    @property
    def inputs(self) -> int:
        """Number of variables."""
        return self.variables

    def scales(self) -> list[float]:
        """Return the Euclidean norm of the coefficients of each coordinate."""
        return [math.hypot(*row) for row in self._values.tolist()]

    def floats(self, drawn: Array, steps: Array) -> tuple[Array, Array]:
        """Return the combinations, and error bounds (m + 8)·2^−53·Σ|c|(|x| + 3) for m terms.

        A coefficient is rounded once (to within 2^−52 of itself), a variable is known to within
        `input_error`, and m products and sums in any order add (m + 1)·2^−53 of Σ|c x|.
        """
        indices, values = self._indices, self._values
        scaled = values / steps[:, np.newaxis]
        terms = values.shape[1]
        if terms == 1:
            found = drawn[:, indices[:, 0]] * scaled[:, 0]
            bound = np.abs(found) + 3 * np.abs(scaled[:, 0])
        elif terms <= 3:
            found = np.zeros((len(drawn), len(values)))
            bound = np.zeros_like(found)
            for place in range(terms):
                product = drawn[:, indices[:, place]] * scaled[:, place]
                found += product
                bound += np.abs(product)
                bound += 3 * np.abs(scaled[:, place])
        else:
            dense = np.zeros((self.variables, len(values)))
            for place in range(terms):
                np.add.at(dense, (indices[:, place], np.arange(len(values))), scaled[:, place])
            found = drawn @ dense
            bound = (np.abs(drawn) + 3) @ np.abs(dense)
        return found, (terms + 8) * _UNIT * bound

    def ball(self, coordinate: int, number: Numbers) -> arb:
        """Return Σ c x over the terms of the coordinate."""
        terms = self._rows(ctx.prec)[coordinate]
        return sum((c * number(index) for index, c in terms), start=arb(0))


@final
class LatticeSampler:
    """Adds noise to values and rounds the result to a fixed lattice.

    Parameters
    ----------
    noise
        The real noise.
    resolution
        Each step is 2^−resolution times the scale of its coordinate, rounded down to a power of
        two.
    repeated
        Whether one-dimensional noise is added independently to every entry of a value.
    common
        Whether all coordinates share one step: the least one, and at most 1.
    """

    def __init__(
        self,
        noise: Noise,
        *,
        resolution: int = RESOLUTION,
        repeated: bool = False,
        common: bool = False,
    ) -> None:
        scales = noise.scales()
        for index, scale in enumerate(scales):
            if not 2.0**-900 < scale < 2.0**900:
                raise expected(
                    f"scale of the noise of coordinate {index}",
                    scale,
                    "between 2^-900 and 2^900",
                    "Rescale the answer.",
                )
        self.real_noise, self._repeated = noise, repeated
        self._exponents = [math.frexp(scale)[1] - 1 - resolution for scale in scales]
        if common:
            self._exponents = [min(0, *self._exponents)] * len(self._exponents)
        self._steps = np.array([2.0**exponent for exponent in self._exponents])

    @property
    def lattice(self) -> tuple[Fraction, ...]:
        """The lattice step of each coordinate, a power of two that does not depend on the value."""
        return tuple(Fraction(2) ** exponent for exponent in self._exponents)

    def release(
        self, value: ArrayLike, size: int | None = None, *, rng: Randomness = SECURE
    ) -> NDArray[np.float64]:
        """Release a value with noise, once or several times with independent noise.

        Parameters
        ----------
        value
            One finite number per coordinate, or any array if the noise is repeated.
        size
            Number of releases, along a new first axis; None for one release without that axis.
        rng
            The source of randomness. A NumPy generator is for tests and simulation only, since its
            output is predictable.

        Returns
        -------
        NDArray[np.float64]
            Multiples of the lattice steps. Above 2^53 steps, where doubles cannot represent every
            multiple, the exact multiple is rounded to a double, which is post-processing too.
        """
        values = _finite(value)
        shape = values.shape if size is None else (size, *values.shape)
        count = 1 if size is None else size
        if self._repeated:
            rows = np.broadcast_to(values.reshape(1, -1), (count, values.size)).reshape(-1, 1)
        else:
            if values.size != self.real_noise.dimension or values.ndim > 1:
                raise expected(
                    "value",
                    f"array of shape {values.shape}",
                    f"to have {self.real_noise.dimension} coordinates",
                    "Give one number for each.",
                )
            rows = np.broadcast_to(values.reshape(1, -1), (count, values.size))
        return self.numbers(self.whole_steps(rows, rng=rng)).reshape(shape)

    def numbers(self, whole: Array) -> NDArray[np.float64]:
        """Convert numbers of steps to doubles."""
        if whole.dtype != object:
            doubles: NDArray[np.float64] = np.ldexp(whole.astype(float), np.array(self._exponents))
            return doubles
        exact: Array = whole * np.array(self.lattice)
        return exact.astype(float)

    def noise(self, size: int, *, rng: Randomness) -> NDArray[np.float64]:
        """Draw `size` releases of the value 0: noise alone, shape (size,) or (size, dimension)."""
        zero = np.zeros(() if self._repeated else self.real_noise.dimension)
        return self.release(zero, size, rng=rng)

    def whole_steps(self, rows: Array, *, rng: Randomness) -> Array:
        """Return ⌊(value + noise)/step + 1/2⌋ for rows of values."""
        block = max(1, _BLOCK // self.real_noise.inputs)
        parts = [
            self._block(rows[start : start + block], rng) for start in range(0, len(rows), block)
        ]
        if not parts:
            return np.empty(rows.shape, dtype=np.int64)
        joined: Array = np.concatenate(parts)
        return joined

    def _block(self, rows: Array, rng: Randomness) -> Array:
        inputs = self.real_noise.inputs
        drawn = self.real_noise.draw(len(rows) * inputs, rng=rng)
        approximate, bound = self.real_noise.floats(drawn.floats().reshape(-1, inputs), self._steps)
        with np.errstate(over="ignore"):
            scaled = rows / self._steps
        base = np.floor(scaled)
        far = ~(np.abs(base) + np.abs(approximate) < _LARGEST_INDEX)
        if far.any():
            base = np.where(far, 0.0, base)
            scaled = np.where(far, 0.0, scaled)
        offset = approximate + ((scaled - base) + 0.5)
        bound = bound + 4 * _UNIT * (np.abs(offset) + 2)
        low, high = np.floor(offset - bound), np.floor(offset + bound)
        result: Array = base.astype(np.int64) + np.where(far, 0.0, low).astype(np.int64)
        undecided = np.argwhere((low != high) | far)
        if far.any():
            result = result.astype(object)
        for row, coordinate in undecided.tolist():
            result[row, coordinate] = self._exact(
                drawn, row, coordinate, Fraction(float(rows[row, coordinate])), rng
            )
        return result

    def _exact(
        self, drawn: LazyReals, row: int, coordinate: int, value: Fraction, rng: Randomness
    ) -> int:
        """Round one coordinate in ball arithmetic, with as many digits as the decision needs."""
        inputs = self.real_noise.inputs
        start = row * inputs
        step = Fraction(2) ** self._exponents[coordinate]
        quotient = value / step + Fraction(1, 2)
        precision = 128 + max(0, abs(quotient.numerator // quotient.denominator).bit_length())
        while True:
            with ctx.workprec(precision):
                noise = self.real_noise.ball(coordinate, drawn.numbers(start))
                shift = arb(fmpq(quotient.numerator, quotient.denominator))
                place = noise / arb(fmpq(step.numerator, step.denominator)) + shift
                low, high = place.lower().floor(), place.upper().floor()
                if low.is_exact() and high.is_exact():
                    bottom, top = low.unique_fmpz(), high.unique_fmpz()
                    if isinstance(bottom, fmpz) and bottom == top:
                        return int(bottom)
            drawn.refine(*range(start, start + inputs), rng=rng)
            precision *= 2


def release_stream(
    sampler: LatticeSampler, value: ArrayLike, times: int, *, rng: Randomness
) -> Array:
    """Release the prefix sums of a stream in [0, 1]ⁿ with linear noise, on one lattice.

    The inputs are rounded to the lattice. Its step is a power of two at most 1, so they stay in
    [0, 1], the sensitivity does not grow, and their sums are exact integers of steps. Rounding the
    sum of such a prefix and real noise is the same as adding the rounded noise to the prefix.

    Raises InvalidInputError unless there are as many inputs as coordinates, all in [0, 1].
    """
    inputs = np.asarray(value, dtype=float)
    steps = len(sampler.lattice)
    if inputs.shape != (steps,):
        raise expected("value", f"array of shape {inputs.shape}", f"to have {steps} inputs")
    if not ((inputs >= 0) & (inputs <= 1)).all():
        place = int(np.argmin((inputs >= 0) & (inputs <= 1)))
        raise expected(f"value[{place}]", inputs[place], "in [0, 1]")
    per_unit = int(1 / sampler.lattice[0])
    whole = np.array([math.floor(Fraction(x) * per_unit + Fraction(1, 2)) for x in inputs], object)
    sums = np.cumsum(whole)
    if steps * per_unit < _LARGEST_INDEX:
        sums = sums.astype(np.int64)
    noise = sampler.whole_steps(np.zeros((times, steps)), rng=rng)
    return sampler.numbers(sums + noise)


def release_integers(noise: Callable[[int], Array], value: ArrayLike, times: int) -> Array:
    """Add integer noise, drawn by `noise(count)`, to every entry of an integer value.

    Raises InvalidInputError if an entry is not an integer: rounding it could move two neighbours
    further apart than the sensitivity.
    """
    answer = integers(value)
    shape = (times, *answer.shape)
    drawn: Array = noise(math.prod(shape)).reshape(shape)
    if len(drawn.ravel()) and max(-int(drawn.min()), int(drawn.max())) >= _LARGEST_INDEX:
        return drawn.astype(object) + answer
    return drawn + answer


def categories(value: ArrayLike, number: int) -> Array:
    """Return an array of integers, each of which must be one of the categories 0, …, number − 1."""
    found = integers(value)
    for place, entry in enumerate(found.flat):
        if not 0 <= entry < number:
            raise expected(f"value[{place}]", entry, f"in 0..{number - 1}")
    return found


def release_reports(
    draw: Callable[[int, int], Array],
    value: ArrayLike,
    times: int,
    *,
    inputs: int,
    width: tuple[int, ...] = (),
) -> Array:
    """Release reports of every entry of an array of inputs 0, …, inputs − 1, `times` times.

    `draw(input, count)` returns `count` reports of an input, each of shape `width`.
    """
    truth = categories(value, inputs)
    every = np.broadcast_to(truth, (times, *truth.shape))
    reports = np.empty((*every.shape, *width), dtype=np.int64)
    for entry in np.unique(truth):
        here = every == entry
        reports[here] = draw(int(entry), int(here.sum()))
    return reports


def integers(value: ArrayLike, *, coordinates: int | None = None) -> NDArray[np.int64]:
    """Convert an integer answer to int64.

    Raises InvalidInputError, which names the first entry that is not an integer, or if the number
    of coordinates is not `coordinates`.
    """
    values = _finite(value)
    if not (values == np.floor(values)).all():
        place = int(np.flatnonzero(values != np.floor(values))[0])
        raise expected(
            f"value[{place}]",
            values.flat[place],
            "to be an integer",
            "Round it first, and give the sensitivity of what is rounded.",
        )
    if coordinates is not None and values.shape != (coordinates,):
        raise expected(
            "value", f"array of shape {values.shape}", f"to have {coordinates} coordinates"
        )
    return values.astype(np.int64)


def _finite(value: ArrayLike) -> Array:
    """Convert to doubles; raise InvalidInputError if an entry is not finite or would be rounded."""
    given = np.asarray(value)
    if given.dtype == object or given.dtype.kind not in "iufb":
        raise InvalidInputError(
            f"Expected value to hold numbers (doubles or integers), not {given.dtype}. Convert it "
            "first: the sensitivity must be that of what is released."
        )
    values = given.astype(float)
    if not np.isfinite(values).all():
        place = int(np.flatnonzero(~np.isfinite(values))[0])
        raise expected(f"value[{place}]", values.flat[place], "to be finite", "Replace it first.")
    if given.dtype.kind == "f" and given.dtype.itemsize > values.dtype.itemsize:
        raise expected(
            "value",
            f"an array of {given.dtype}",
            "to hold doubles",
            "Round it first, and give the sensitivity of what is rounded.",
        )
    if given.dtype.kind in "iu" and ((given > 2**53) | (given < -(2**53))).any():
        raise expected("value", "an integer", "of magnitude at most 2^53", "Doubles hold no more.")
    return values


# --- The real noise of the mechanisms, for release on a lattice -----------------------------------

_MOST_STEPS = 2000
"""Most steps in the table of a geometric law; beyond its end the law restarts (no memory)."""


def independent(scales: Callable[[], Sequence[arb]], law: str = "normal") -> LinearNoise:
    """Return independent noise with these scales (standard deviations if the law is normal)."""
    return LinearNoise(
        lambda: [[(j, scale)] for j, scale in enumerate(scales())], _length(scales), law
    )


def shared(
    dimension: int, scales: Callable[[], tuple[arb, arb, arb | None]], groups: int = 1
) -> LinearNoise:
    """Return, in each group, a·x₀ + b·x_j for j = 1..dimension, then c·x₀ unless c is None.

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
    """Return scale·L z, for independent variables z of the given law and a rational matrix L."""

    def terms() -> list[Row]:
        each = scale()
        return [[(j, each * ball(entry)) for j, entry in enumerate(row) if entry] for row in rows]

    return LinearNoise(terms, len(rows[0]), law)


def coloured(covariance: Covariance) -> LinearNoise:
    """Return noise with law N(0, Σ)."""
    return LinearNoise(lambda: square_root(covariance), covariance.dimension)


def square_root(covariance: Covariance) -> list[Row]:
    """Return the rows of a matrix A with A A' = Σ, at flint's current precision.

    If Σ is diagonal, A is diagonal. If (1, …, 1) and its complement are eigenspaces, A is
    across·(I − J) + along·J, with the square roots of the eigenvalues and J = 11'/d. Otherwise A is
    L√D from Σ = L D L'.
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
@dataclass(frozen=True)
class InverseNoise:
    """A law with a density symmetric about 0, given by its inverse in units of its scale.

    Let E be standard exponential and F the distribution function of noise/scale. Then |noise|/scale
    has the law of the increasing function g(E), where F(g(y)) = 1 − e^{−y}/2. This suffices for a
    release on a lattice.

    The functions are defined at the top of a module, so that other processes can import them.

    Parameters
    ----------
    scale
        The unit of the noise.
    magnitude
        Maps an array namespace and doubles y ≥ 0 to g(y), to within 16·2^−53·(1 + g(y)).
    exact
        Maps a ball y ≥ 0 to a ball that contains g(y).
    slope
        An upper bound on g′.
    survival
        Maps doubles x ≥ 0 to P(noise ≥ x·scale), to a few units in the last place.
    reach
        An x with P(|noise| > x·scale) < 2⁻⁵⁰.
    """

    scale: ExactReal
    magnitude: Callable[[Any, Any], Any]
    exact: Callable[[arb], arb]
    slope: float
    survival: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    reach: float = 36.0


@final
@dataclass(frozen=True)
class InvertedNoise(Noise):
    """±scale·g(E): the inverse of a symmetric law at a lazy exponential variable E.

    The sign and E together are a lazy Laplace variable. Its law is exact, and so is that of the
    noise.
    """

    declared: InverseNoise
    law = "laplace"

    def scales(self) -> list[float]:
        """Return the scale of the law."""
        return [float(self.declared.scale)]

    def floats(self, drawn: Array, steps: Array) -> tuple[Array, Array]:
        """Return ±scale·g(|x|)/step and bounds on its error.

        |x| is known to within `input_error`, which g multiplies by at most its slope. g is computed
        to within 16·2^−53·(1 + g). The scale and its product are rounded once each; dividing by the
        step, a power of two, is exact.
        """
        size = np.abs(drawn)
        height = self.declared.magnitude(np, size)
        scale = float(self.declared.scale) / steps
        bound = self.declared.slope * input_error(drawn) + 20 * _UNIT * (1 + height)
        return np.sign(drawn) * height * scale, bound * scale * (1 + 2.0**-20)

    def ball(self, coordinate: int, number: Numbers) -> arb:
        """Return ±scale·g(|x|), with the sign of the midpoint of the ball of x."""
        x = number(0)
        size = self.declared.scale.ball() * self.declared.exact(abs(x))
        return size if x.mid() > 0 else -size


@final
@dataclass(frozen=True)
class StaircaseNoise(Noise):
    """±Δ·f(x), where f climbs from k to k + γ on [2k, 2k + 1] and to k + 1 on [2k + 1, 2k + 2].

    The integer part of x selects the step with the probabilities of the staircase; the fraction is
    uniform. f is continuous with slopes at most 1, so it does not amplify errors.

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
        """Draw the step by inversion of a table, then the sign and the fraction.

        Beyond the table the law of the step is memoryless, so the table is used again.
        """
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
        """Return ±Δ·f(x)/step and bounds on its error."""
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
        """Return ±Δ·f(x); the integer part of x is that of the midpoint of its ball."""
        x = number(0)
        sign = 1 if x.mid() > 0 else -1
        middle = abs(x.mid()).floor().unique_fmpz()
        assert middle is not None  # a midpoint is exact
        whole, odd = divmod(int(middle), 2)
        place = abs(x) - int(middle)
        gamma = self.gamma()
        part = gamma + (1 - gamma) * place if odd else gamma * place
        return sign * self.sensitivity() * (whole + part)


def _length(scales: Callable[[], Sequence[arb]]) -> int:
    with ctx.workprec(64):
        return len(scales())
