"""Correlated noise for training and prefix sums: the Gaussian matrix mechanism."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency, require
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.noise import GaussianNoise
from dpassay.accountant.core.pair import Pair, WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import (
    Integer,
    OneOf,
    OptionalInteger,
    OptionalProbability,
    Positive,
)
from dpassay.accountant.counting.allocated_columns import Even, allocated_columns
from dpassay.accountant.counting.column_sensitivity import ColumnSensitivity
from dpassay.accountant.counting.participation import ALLOCATED, SCHEMAS, Participation
from dpassay.accountant.counting.sampled_columns import sampled_releases
from dpassay.accountant.counting.strategies import Dense, StrategyField, Toeplitz, strategy
from dpassay.accountant.errors import (
    AdjacencyError,
    InvalidInputError,
    NotApplicableError,
    expected,
)
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, ball
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.pairs.between import Between
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.release.lattice import LatticeSampler, LinearNoise, release_stream

_MOST_LISTED = 100_000
"""Steps of a Toeplitz strategy: every question takes all of its coefficients."""
_MOST_RELEASED = 1024
"""Steps that are released on a lattice, with half a million coefficients."""


@declared
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
        for which C² = A (Fichtenberger, Henzinger and Upadhyay 2023); or `BufferedToeplitz`; or
        "tree", the vertices of a binary tree that is started again every `bands` steps (DP-FTRL,
        Kairouz, McMahan, Song, Thakkar, Thakurta and Xu 2021), for which B adds those of the
        binary digits. All numbers are rational.
    noise_multiplier
        σ, in units of the most that one record changes the input of one step (the clipping norm,
        where a record is added, removed or zeroed out; twice that where it is replaced).
    steps
        n ≥ 1.
    participation
        The steps that one record may take part in: "single", one; "cyclic", steps exactly
        `separation` apart (the same order in every epoch); "min-separation", steps at least
        `separation` apart; "random-allocation", steps exactly `separation` apart from a first one
        of these on that is chosen uniformly for each record, and kept (balls in bins).
    separation, participations
        b ≥ 1, and at most how often one record takes part (None: as often as fits).
    bands
        Keeps the first coefficients of a Toeplitz strategy, and takes the others for 0. With
        "square-root" this is the banded square root of Kalinin and Lampert (2024).
    step_sampling_prob
        q: each record takes part in its steps by chance, independently. For "cyclic" participation
        with separation ≥ bands; the first step of a record, of the first b, is fixed beforehand.

    Notes
    -----
    The sensitivity is Δ = max ‖Σ_{i∈π} u_i ⊗ C_{·i}‖ over the patterns π of the schema and vectors
    ‖u_i‖ ≤ 1; how it is found, and proved, is in `dpassay.accountant.counting.participation`. The
    mechanism is exactly Δ/σ-GDP, with inputs and participations chosen after earlier outputs.

    *Proof.* The outputs determine y = C x + Z and are a function of it, A C⁻¹y. Without
    adaptivity Σ u_i ⊗ C_{·i} is the difference of two means under N(0, σ²I); the largest is
    attained, and has the pair of Δ/σ. With it (Denisov et al. 2022, Theorem 2.1, for one
    participation), let y_1, …, y_{t−1} be given: then x_t and the u_i, i ≤ t, are, and the means
    of y_t differ by v_t = Σ_{i≤t} C_ti u_i. On every path Σ‖v_t‖² ≤ Δ²; a further output of its own
    noise makes that an equality. Under the second stream, conditioning from the last step on,
    E exp(iθ Σ⟨v_t, Z_t⟩ + θ²σ² Σ‖v_t‖²/2) = 1. So Σ⟨v_t, Z_t⟩ is N(0, σ²Δ²), and the privacy loss,
    Σ⟨v_t, Z_t⟩/σ² − Δ²/2σ², has the law it has without adaptivity.

    With "random-allocation" it is exact where columns of all first steps have the same length, and
    the same inner products, and has two ends elsewhere:
    `dpassay.accountant.counting.allocated_columns`.

    With `step_sampling_prob` it is a composition of sampled Gaussian releases: the proof is in
    `dpassay.accountant.counting.sampled_columns`.

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
    participation: OneOf = OneOf(*SCHEMAS)
    separation: OptionalInteger = OptionalInteger(least=1)
    participations: OptionalInteger = OptionalInteger(least=1)
    bands: OptionalInteger = OptionalInteger(least=1)
    step_sampling_prob: OptionalProbability = OptionalProbability()

    def __post_init__(self) -> None:
        if self.steps > _MOST_LISTED:
            raise expected("steps", self.steps, f"at most {_MOST_LISTED}")
        bands, b = self.matrix.bands, self.schema.separation
        if self.step_sampling_prob is None:
            return
        if self.participation != "cyclic" or self.participations is not None:
            raise InvalidInputError(
                "Expected step_sampling_prob only with participation='cyclic' and no "
                "participations: a record may take part in every separation-th step, by chance."
            )
        if bands > b:
            raise expected(
                "separation",
                b,
                f"≥ {bands}, the bands of the strategy, where step_sampling_prob is given",
                f"Cut the strategy off with bands={b}, or leave step_sampling_prob out.",
            )

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
    def column_sensitivity(self) -> ColumnSensitivity:
        """Δ², and why it is that."""
        return ColumnSensitivity(self.matrix, self.schema)

    def sensitivity(self) -> Interval:
        """Enclose Δ: both ends of what is proved, where the worst pattern is not known."""
        found = self.column_sensitivity
        with ctx.workprec(128):
            low, high = map(ball, found.ends) if found.is_open else (found.ball(), found.ball())
            return Interval.between(low.sqrt(), high.sqrt(), 20)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return N(Δ/σ, 1) against N(0, 1), no matter which relation; of samples, the composition.

        Where the sensitivity is only enclosed, so is all that is asked about the pair. Raises
        AdjacencyError for samples and random allocation unless add-remove is named.
        """
        if self._sampled:
            return self._worst_sample(adjacency)
        if self._allocated:
            return self._worst_allocation(adjacency)
        pair: Pair = GaussianPair(self, None)
        if self.column_sensitivity.is_open:
            ends = map(self._release, self.column_sensitivity.ends)
            low, high = (GaussianPair(end, None) for end in ends)
            pair = Between((low,), high, "how private the worst record is")
        return WorstCase.symmetric(
            pair,
            "The outputs are a function of C x + Z, which a record moves by a sum of columns of C; "
            f"Gaussian noise hides the longest one least. {self.column_sensitivity.reason}",
        )

    @property
    def _sampled(self) -> bool:
        """Whether a record may be left out by chance."""
        return self.step_sampling_prob is not None and self.step_sampling_prob.rational != 1

    def _worst_sample(self, adjacency: Adjacency | None) -> WorstCase:
        self._require_added(adjacency, "step_sampling_prob")
        cases = [release.worst_case(adjacency) for release in self.sampled_releases()]
        return WorstCase(
            tuple(pair for case in cases for pair in case.remove),
            tuple(pair for case in cases for pair in case.add),
            "Bands do not reach from one step of a record to its next one, so that each is a "
            "sampled Gaussian release of its own, moved by the norm of a column of C. Assumed: "
            f"the first of its steps, every {self.schema.separation}-th, is fixed for each record "
            "beforehand, and it takes part in each with step_sampling_prob, independently.",
        )

    def _require_added(self, adjacency: Adjacency | None, argument: str) -> None:
        if require(adjacency, self) is Adjacency.REPLACE_ONE:
            raise AdjacencyError(
                f"MatrixMechanism with {argument} is for a record that is added, removed or zeroed "
                "out. Name adjacency='add-remove'."
            )

    @property
    def _allocated(self) -> bool:
        """Whether the first step of a record is chosen by chance."""
        return self.participation == ALLOCATED

    @cached_property
    def _covariances(self) -> tuple[Even, Even]:
        return allocated_columns(self.matrix, self.schema.separation, self.noise_multiplier)

    def _worst_allocation(self, adjacency: Adjacency | None) -> WorstCase:
        self._require_added(adjacency, "participation='random-allocation'")
        least, most = (even.release(self.noise_multiplier) for even in self._covariances)
        case = most.worst_case(adjacency)
        if least == most:
            return case
        (low,), (high,) = least.worst_case(adjacency).remove, case.remove
        pair = Between((low,), high, "how private this random allocation of columns is")
        return WorstCase(
            (pair,),
            (pair.reverse(),),
            "By Kahane's inequality convex functions of the mean of lognormal likelihood ratios "
            "grow with the inner products of columns: below with the least of them, above with the "
            "largest, where some of the first step may be known.",
        )

    def sampled_releases(self) -> list[Composed]:
        """Return the compositions of sampled Gaussian releases of which the worst is as private."""
        if self.step_sampling_prob is None:
            raise NotApplicableError("Nothing is sampled: step_sampling_prob is left out.")
        return sampled_releases(
            self.matrix, self.schema, self.noise_multiplier, self.step_sampling_prob
        )

    def _release(self, square: Fraction) -> Gaussian:
        return Gaussian(self.noise_multiplier, ExactReal.of_root(square))

    @property
    def only_alone(self) -> str:
        """Say what to compose where the sensitivity, or the profile, is only enclosed."""
        if self._allocated:
            least, most = self._covariances
            if least == most:
                return ""
            return (
                "This random allocation of columns is known between two ends only. Ask about "
                f"{most.release(self.noise_multiplier)!r}, which is no more private."
            )
        if self._sampled or not self.column_sensitivity.is_open:
            return ""
        found = self.sensitivity()
        more = Gaussian(self.noise_multiplier, str(found.upper))
        return (
            f"The sensitivity of this strategy is only known to lie between {found.lower:.12g} and "
            f"{found.upper:.12g}. Ask about {more!r}, which is no more private."
        )

    def gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return Δ/σ."""
        if self._sampled or self._allocated:
            return super().gaussian_mu(adjacency)
        return self.column_sensitivity.ball().sqrt() / self.noise_multiplier.ball()

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the same where Δ² is known exactly."""
        if self._sampled or self._allocated:
            return None
        known = self.column_sensitivity.exact
        return None if known is None else ExactReal.of_root(known) / self.noise_multiplier

    def worst_shift(self) -> Array:
        """Return by how much the record of the largest sensitivity moves every prefix sum.

        Where it is in its steps by chance, by how much it would if it were in all.
        """
        if self._allocated:
            return np.arange(1.0, self.steps + 1)
        record = self.column_sensitivity.record
        inputs = np.zeros(self.steps)
        inputs[list(record)] = list(record.values())
        return np.cumsum(inputs)

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` outputs for true prefix sums, where samples leave out inputs by chance."""
        if self._allocated:
            b = self.schema.separation
            first = rng.integers(0, b, (size, 1))
            taken = np.arange(self.steps) % b == first
        elif self._sampled:
            taken = rng.random((size, self.steps)) < float(self.step_sampling_prob or 1)
        else:
            return super().outputs(answer, size, rng=rng)
        inputs = np.diff(np.asarray(answer, dtype=float), prepend=0.0)
        released: Array = self.sample(size, rng=rng)
        released += np.cumsum(np.where(taken, inputs, 0.0), axis=1)
        return released

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
            return self.matrix.prefix_rows()
        listed = self.matrix.prefix_coefficients()
        return [listed[i::-1] for i in range(self.steps)]

    def step_noise(
        self, shape: tuple[int, ...] = (), *, rng: np.random.Generator
    ) -> Iterator[Array]:
        """Draw C⁻¹Z step by step, each an array of a shape: the noise of a gradient.

        It solves C y = Z by substitution, and stores as many arrays as there are bands. For
        simulation: it is drawn in floating point.
        """
        from dpassay.accountant.counting.streams.matrix_noise import correlated

        return correlated(self.matrix, float(self.noise_multiplier), shape, rng)

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of the prefix sums of `size` whole runs, one row each."""
        drawn = np.array(list(self.step_noise((size,), rng=rng)))
        return np.cumsum(drawn, axis=0).T

    def lattice_sampler(self) -> LatticeSampler:
        """Return the noise of the prefix sums of a stream, on one lattice with the integers."""

        def rows() -> list[list[tuple[int, arb]]]:
            each = self.noise_multiplier.ball()
            return [
                [(j, each * b) for j, b in enumerate(row) if not b.is_zero()]
                for row in self._rows()
            ]

        width = len(self.matrix.integers) if isinstance(self.matrix, Dense) else self.steps
        return LatticeSampler(LinearNoise(rows, width), common=True)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Release all n prefix sums of a stream of n inputs in [0, 1], on one lattice."""
        if self._sampled or self._allocated:
            raise NotApplicableError(
                "MatrixMechanism with step_sampling_prob or random allocation chooses records "
                "before it answers, so there is no one true stream. Choose them yourself, and "
                "release with participation='cyclic' and without step_sampling_prob."
            )
        return release_stream(self.lattice_sampler(), value, times, rng=rng)
