"""Correlated noise for training and prefix sums: the Gaussian matrix mechanism."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

from flint import arb

from accountant.core.adjacency import Adjacency
from accountant.core.noise import GaussianNoise
from accountant.core.pair import WorstCase
from accountant.core.randomness import SECURE
from accountant.core.validate import Field, Integer, OptionalInteger, Positive
from accountant.counting.participation import Most, Participation, largest, progression
from accountant.counting.strategies import Dense, StrategyField, Toeplitz, strategy
from accountant.errors import NotApplicableError, expected
from accountant.mechanisms.additive.gaussian import Gaussian
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import Interval, ball
from accountant.numbers.precision import cached_property, ctx
from accountant.pairs.gaussian import GaussianPair

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from accountant.core.randomness import Randomness
    from accountant.release.lattice import LatticeSampler

_MOST_LISTED = 100_000
"""Steps of a Toeplitz strategy: every question takes all of its coefficients."""
_MOST_RELEASED = 1024
"""Steps that are released on a lattice, with half a million coefficients."""


@final
class Schema(Field[str, str]):
    """The name of a participation schema, checked together with its numbers."""

    def read(self, value: str) -> str:
        """Require a text."""
        if not isinstance(value, str):
            raise expected(self._name, value, "to be a name such as 'single'")
        return value


@final
@dataclass(frozen=True, repr=False)
class MatrixMechanism(GaussianNoise):
    """Add the noise C⁻¹Z to the inputs of n steps, and so A C⁻¹Z to their prefix sums A x.

    Z has independent entries N(0, σ²). C is the strategy, lower triangular, so that the noise of a
    step is made from that of the steps before: DP-FTRL by matrix factorisation, A = B C with
    B = A C⁻¹ (Denisov, McMahan, Rush, Smith and Thakurta 2022, "Improved Differential Privacy for
    SGD via Optimal Private Linear Operators on Adaptive Streams"). C = I is DP-SGD unsampled.

    Parameters
    ----------
    strategy
        C: the rows of a lower-triangular matrix; or a list of Toeplitz coefficients c_0, c_1, …
        (C_ij = c_{i−j}, 0 beyond the list); or "identity"; or "square-root", c_j = C(2j, j)/4ʲ,
        for which C² = A (Fichtenberger, Henzinger and Upadhyay 2023); or `BufferedToeplitz`. All
        numbers are rational.
    noise_multiplier
        σ, in units of the most that one record changes the input of one step (the clipping norm,
        where a record is added, removed or zeroed out; twice that where it is replaced).
    steps
        n ≥ 1.
    participation
        The steps that one record may take part in: "single", one; "cyclic", steps exactly
        `separation` apart (the same order in every epoch); "min-separation", steps at least
        `separation` apart.
    separation, participations
        b ≥ 1, and at most how often one record takes part (None: as often as fits).
    bands
        Keeps the first coefficients of a Toeplitz strategy, and takes the others for 0. With
        "square-root" this is the banded square root of Kalinin and Lampert (2024).

    Notes
    -----
    The sensitivity is Δ = max ‖Σ_{i∈π} u_i ⊗ C_{·i}‖ over the patterns π of the schema and vectors
    ‖u_i‖ ≤ 1; how it is found, and proved, is in `accountant.counting.participation`. The
    mechanism is exactly Δ/σ-GDP, with inputs and participations chosen after earlier outputs.

    *Proof.* The outputs determine y = C x + Z and are a function of it, A C⁻¹y. Without
    adaptivity Σ u_i ⊗ C_{·i} is the difference of two means under N(0, σ²I); the largest is
    attained, and has the pair of Δ/σ. With it (Denisov et al. 2022, Theorem 2.1, for one
    participation), let y_1, …, y_{t−1} be given: then x_t and the u_i, i ≤ t, are, and the means
    of y_t differ by v_t = Σ_{i≤t} C_ti u_i. On every path Σ‖v_t‖² ≤ Δ²; a further output of its own
    noise makes that an equality. Under the second stream, conditioning from the last step on,
    E exp(iθ Σ⟨v_t, Z_t⟩ + θ²σ² Σ‖v_t‖²/2) = 1. So Σ⟨v_t, Z_t⟩ is N(0, σ²Δ²), and the privacy loss,
    Σ⟨v_t, Z_t⟩/σ² − Δ²/2σ², has the law it has without adaptivity.

    Errors are those of the prefix sums in each coordinate: output t has variance σ²‖B_t‖².
    """

    noise_argument = "noise_multiplier"
    example = (
        "MatrixMechanism(strategy='square-root', noise_multiplier=2, steps=16, "
        "participation='min-separation', separation=4, bands=4)"
    )

    strategy: StrategyField = StrategyField()
    noise_multiplier: Positive = Positive()
    steps: Integer = Integer(least=1)
    participation: Schema = Schema()
    separation: OptionalInteger = OptionalInteger(least=1)
    participations: OptionalInteger = OptionalInteger(least=1)
    bands: OptionalInteger = OptionalInteger(least=1)

    def __post_init__(self) -> None:
        """Require arguments that fit together."""
        if self.steps > _MOST_LISTED:
            raise expected("steps", self.steps, f"at most {_MOST_LISTED}")
        assert self.schema.steps == self.matrix.steps

    @cached_property
    def schema(self) -> Participation:
        """The patterns of one record."""
        return Participation.of(
            self.participation, self.steps, self.separation, self.participations
        )

    @cached_property
    def matrix(self) -> Toeplitz | Dense:
        """C."""
        return strategy(self.strategy, self.steps, self.bands)

    @cached_property
    def _toeplitz_reason(self) -> str | None:
        """Say why participations from the first step on are worst; None where that is open."""
        c = self.matrix
        if not isinstance(c, Toeplitz):
            return None
        if self.schema.most == 1:
            return "The first column is the longest."
        if c.bands <= self.schema.separation:
            return "Columns of one record are orthogonal, and earlier ones are longer."
        if c.decreases or (c.nonnegative and self.schema.schema == "cyclic"):
            return (
                "Coefficients are not negative, and inner products of columns fall with time"
                + (" and distance" if c.decreases else "")
                + ": participations from the first step on, as close as may be, are worst."
            )
        return None

    @cached_property
    def _most(self) -> tuple[Most, int]:
        """What is proved about Δ², and its denominator, from the inner products of columns."""
        dense = self.matrix.dense() if isinstance(self.matrix, Toeplitz) else self.matrix
        if dense is None:
            raise NotApplicableError(
                "The sensitivity of a Toeplitz strategy whose coefficients rise or are negative "
                "takes the inner products of all columns, here of too many digits. Give at most "
                "1024 steps and shorter coefficients, or separation ≥ bands."
            )
        return largest(dense.gram, self.schema), dense.below**2

    @cached_property
    def exact_squared_sensitivity(self) -> Fraction | None:
        """Δ², where it is proved and rational of not too many digits, else None."""
        if self._toeplitz_reason is None:
            most, below = self._most
            return Fraction(most.lower, below) if most.lower == most.upper else None
        assert isinstance(self.matrix, Toeplitz)
        if self.matrix.exact is None:
            return None
        integers, below = self.matrix.exact
        return Fraction(progression(integers, self.schema, 0), below**2)

    def squared_sensitivity(self) -> arb:
        """Return Δ² as a ball: as wide as what is not known of it."""
        known = self.exact_squared_sensitivity
        if known is not None:
            return ball(known)
        if self._toeplitz_reason is None:
            most, below = self._most
            return (arb(most.lower) / below).union(arb(most.upper) / below)
        return _progression(self, ctx.prec)

    def sensitivity(self) -> Interval:
        """Enclose Δ: both ends of what is proved, where the worst pattern is not known."""
        with ctx.workprec(128):
            if self._toeplitz_reason is None:
                most, below = self._most
                ends = (arb(most.lower) / below, arb(most.upper) / below)
            else:
                ends = (self.squared_sensitivity(),) * 2
            return Interval.between(ends[0].sqrt(), ends[1].sqrt(), 20)

    @property
    def reason(self) -> str:
        """Why the worst pattern is that, or between what its sensitivity lies."""
        return self._toeplitz_reason or self._most[0].reason

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return N(Δ/σ, 1) against N(0, 1), no matter which relation."""
        if self._toeplitz_reason is None and self.exact_squared_sensitivity is None:
            raise self._open()
        return WorstCase.symmetric(
            GaussianPair(self, None),
            "The outputs are a function of C x + Z, which a record moves by a sum of columns of C; "
            f"Gaussian noise hides the longest one least. {self.reason}",
        )

    def _open(self) -> NotApplicableError:
        found = self.sensitivity()
        more = Gaussian(self.noise_multiplier, str(found.upper))
        return NotApplicableError(
            f"The sensitivity of this strategy is only known to lie between {found.lower:.12g} and "
            f"{found.upper:.12g}. {self.reason} Ask about {more!r}, which is no more private."
        )

    def gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return Δ/σ."""
        return self.squared_sensitivity().sqrt() / self.noise_multiplier.ball()

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the same where Δ² is known exactly."""
        known = self.exact_squared_sensitivity
        return None if known is None else ExactReal.of_root(known) / self.noise_multiplier

    def worst_shift(self) -> NDArray[Any]:
        """Return by how much the record of the largest sensitivity moves every prefix sum."""
        import numpy as np

        if self._toeplitz_reason is None:
            record = self._most[0].record
        else:
            record = dict.fromkeys(self.schema.first(), 1)
        inputs = np.zeros(self.steps)
        inputs[list(record)] = list(record.values())
        return np.cumsum(inputs)

    @property
    def dimension(self) -> int:
        """The number of steps n, for inputs of one coordinate."""
        return self.steps

    def variances(self) -> list[arb]:
        """Return σ²‖B_t‖² for the prefix sum of every step."""
        square = self.noise_multiplier.ball() ** 2
        if isinstance(self.matrix, Dense):
            rows = self.matrix.prefix_rows()
            return [square * sum((b * b for b in row), arb(0)) for row in rows]
        found, total = [], arb(0)
        for b in self.matrix.prefix_coefficients():
            total += b * b
            found.append(square * total)
        return found

    def covariance_matrix(self) -> list[list[arb]]:
        """Return σ²B Bᵀ."""
        square, rows = self.noise_multiplier.ball() ** 2, self._rows()
        return [
            [
                square * sum((a * b for a, b in zip(one, other, strict=False)), arb(0))
                for other in rows
            ]
            for one in rows
        ]

    def _rows(self) -> list[list[arb]]:
        """Return the rows of B up to the diagonal."""
        if self.steps > _MOST_RELEASED:
            raise expected("steps", self.steps, f"at most {_MOST_RELEASED} to write out all noise")
        if isinstance(self.matrix, Dense):
            return [row[: i + 1] for i, row in enumerate(self.matrix.prefix_rows())]
        listed = self.matrix.prefix_coefficients()
        return [listed[i::-1] for i in range(self.steps)]

    def step_noise(
        self, shape: tuple[int, ...] = (), *, rng: np.random.Generator
    ) -> Iterator[NDArray[Any]]:
        """Draw C⁻¹Z step by step, each an array of a shape: the noise of a gradient.

        It solves C y = Z by substitution, and stores as many arrays as there are bands. For
        simulation: it is drawn in floating point.
        """
        import numpy as np

        sigma, bands = float(self.noise_multiplier), self.matrix.bands
        kept: deque[NDArray[Any]] = deque(maxlen=bands - 1)
        for row in self.matrix.floats():
            step = np.asarray(rng.normal(0.0, sigma, shape))
            if kept:
                step = step - np.tensordot(row[1 : len(kept) + 1], np.stack(kept), axes=1)
            step = step / row[0]
            kept.appendleft(step)
            yield step

    def sample(self, size: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw the noise of the prefix sums of `size` whole runs, one row each."""
        import numpy as np

        drawn = np.array(list(self.step_noise((size,), rng=rng)))
        return np.cumsum(drawn, axis=0).T

    def lattice_sampler(self) -> LatticeSampler:
        """Return the noise of the prefix sums of a stream, on one lattice with the integers."""
        from accountant.release.lattice import LatticeSampler, LinearNoise

        def rows() -> list[list[tuple[int, arb]]]:
            each = self.noise_multiplier.ball()
            return [[(j, each * b) for j, b in enumerate(row)] for row in self._rows()]

        return LatticeSampler(LinearNoise(rows, self.steps), common=True)

    def release(
        self, value: ArrayLike, size: int | None = None, *, rng: Randomness = SECURE
    ) -> NDArray[Any]:
        """Release all n prefix sums of a stream of n inputs in [0, 1], on one lattice."""
        from accountant.release.lattice import release_stream

        return release_stream(self.lattice_sampler(), value, size, rng=rng)


@functools.lru_cache(maxsize=64)
def _progression(mechanism: MatrixMechanism, precision: int) -> arb:
    """Return Δ² once for every precision."""
    assert isinstance(mechanism.matrix, Toeplitz)
    found: arb = progression(mechanism.matrix.balls(), mechanism.schema, arb(0))
    return found
