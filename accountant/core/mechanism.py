"""The questions that every mechanism answers."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields
from fractions import Fraction
from typing import Any, ClassVar

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.asking import Askable, Drawable
from dpassay.accountant.core.pair import Pair, WorstCase
from dpassay.accountant.core.randomness import SECURE, Randomness
from dpassay.accountant.core.validate import Description, integer
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.release.lattice import InverseNoise, InvertedNoise, LatticeSampler


class Mechanism(Askable, Drawable, Description, ABC):
    """A randomised algorithm with a known law: frozen data that functions compute on.

    A concrete mechanism is a final frozen dataclass whose fields are the arguments of the
    notation; `repr` gives the notation back. Methods that return balls work at flint's current
    precision; the functions of `dpassay.accountant.questions.profile`, `tradeoff`, `guarantees` and
    `utility` turn them into enclosures of a stated width.
    """

    noise_argument: ClassVar[str | None] = None
    """The argument that `calibrate` adjusts; None where there is no single one."""
    noise_grows: ClassVar[bool] = True
    """Whether a larger `noise_argument` means more noise (and never a larger δ)."""
    gaussian_noise_argument: ClassVar[str | None] = None
    """Another argument that may stand in its place, and makes the noise Gaussian."""
    example: ClassVar[str] = ""
    """One mechanism of this class in the notation, which its page and the table of capabilities
    show."""

    no_variance: ClassVar[str] = ""
    """Why an output has no variance, and what to ask, where it has none."""

    def __init_subclass__(cls) -> None:
        """Let every question about a relation take its name too."""
        super().__init_subclass__()
        for name in _ABOUT_A_RELATION & vars(cls).keys():
            setattr(cls, name, _reading_the_relation(getattr(cls, name)))

    @property
    def only_alone(self) -> str:
        """Why no composition or sample of it is known exactly, and what to ask; empty if one is."""
        if self.dominated_by is None:
            return ""
        return (
            "Which neighbours are worst depends on the question: a composition is only enclosed, "
            f"and a sample not known. It is at most that of {self.dominated_by!r}: ask about that "
            "for an upper bound."
        )

    @property
    def dominated_by(self) -> Mechanism | None:
        """A mechanism whose worst pair dominates every release, whatever came before.

        None where that of the mechanism does. Else a composition has two ends: this, and `attained`
        pairs of neighbours.
        """
        return None

    def attained(self) -> tuple[Pair, ...]:
        """Return pairs of neighbours for lower bounds, with the record against without it."""
        return ()

    @abstractmethod
    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the dominating pairs, and why they are worst.

        Raises AdjacencyError where the relations differ and none is named.
        """

    @property
    def dimension(self) -> int:
        """Number of coordinates of the true answer (default: one)."""
        return 1

    @abstractmethod
    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` independent releases, shape (size,) or (size, dimension).

        For simulation: continuous noise is drawn in floating point. `release` is for use.
        """

    @classmethod
    def adds_real_noise(cls) -> bool:
        """Whether these mechanisms release real answers on a lattice (`lattice_sampler`)."""
        own = cls.lattice_sampler is not Mechanism.lattice_sampler
        return own or cls.inverse_noise is not Mechanism.inverse_noise

    def lattice_sampler(self) -> LatticeSampler:
        """Return the sampler that releases real answers on one fixed lattice.

        By default by inversion of `inverse_noise`, for every entry of an answer. Raises
        NotApplicableError for a mechanism without one.
        """
        declared = self.inverse_noise()
        if declared is None:
            raise NotApplicableError(
                f"{type(self).__name__} has no release of real answers here: no lattice sampler is "
                "known for its noise. `sample` simulates the noise in floats, for tests only."
            )
        return LatticeSampler(InvertedNoise(declared), repeated=True)

    def release(
        self, value: ArrayLike, size: int | None = None, *, rng: Randomness = SECURE
    ) -> Array:
        """Release a true answer: its noise is exact, and every output lies on a fixed lattice.

        Adding `sample` to the answer in floating point instead would leak it: the last bits of
        the sum tell much about the answer (Mironov, 2012). A real mechanism is rounded to a
        lattice that depends on the scale of its noise alone, which costs nothing in δ
        (`dpassay.accountant.release.lattice`); integer noise is added to integers only.

        Parameters
        ----------
        value
            The answer: one number per coordinate, or any array where the noise is the same and
            independent for every entry.
        size
            How many independent releases of this value, along a new first axis; None is one.
        rng
            Draws the noise. A generator of NumPy is for tests and simulation: it can be guessed.
        """
        times = 1 if size is None else integer("size", size, least=0)
        found = self.releases(value, times, rng)
        return found[0] if size is None else found

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Release a true answer several times, along a new first axis: see `release`."""
        return _sampler(self).release(value, times, rng=rng)

    def variances(self) -> Sequence[arb]:
        """Return the variance of each released coordinate; one entry if they are all equal.

        Raises NotApplicableError where there is none.
        """
        raise NotApplicableError(self.no_variance or f"The variance of {self!r} is not known.")

    def mean_squared_error(self) -> arb:
        """Return the average over the released coordinates of E[(released − true)²]."""
        entries = self.variances()
        return sum(entries, start=arb(0)) / len(entries)

    def covariance_matrix(self) -> list[list[arb]]:
        """Return the covariance matrix of the noise (default: independent coordinates)."""
        entries = list(self.variances())
        entries *= self.dimension if len(entries) == 1 else 1
        zero = arb(0)
        return [[v if i == j else zero for j in range(len(entries))] for i, v in enumerate(entries)]

    def quantile(self, probability: ExactReal) -> arb:
        """Return the least x with P(noise ≤ x) ≥ probability, for one coordinate.

        Raises NotApplicableError where the coordinates have no common scalar law.
        """
        raise NotApplicableError(
            f"{type(self).__name__} has no quantile: it is not one scalar law. Ask for its "
            "variance, or simulate it with `sample`."
        )

    @property
    def is_symmetric(self) -> bool:
        """Whether the noise of every coordinate is known to be symmetric about 0."""
        return False

    def mean_absolute_error(self) -> arb:
        """Return the average over the released coordinates of E|released − true|.

        Raises NotApplicableError where no formula is known.
        """
        raise self._unknown("mean absolute error")

    def probability_exact(self) -> arb:
        """Return P(released = true) of one coordinate.

        Raises NotApplicableError where no formula is known.
        """
        raise self._unknown("probability of no error")

    def _unknown(self, what: str) -> NotApplicableError:
        return NotApplicableError(
            f"The {what} of {type(self).__name__} is not known in closed form. Ask for its "
            "variance, or simulate it with `sample`."
        )

    def inverse_noise(self) -> InverseNoise | None:
        """Return the noise of one number as a function of an exponential variable.

        It serves `lattice_sampler`. None where the noise is not one
        symmetric density whose inverse is elementary.
        """
        return None

    def worst_shift(self) -> Any:
        """Return a difference of two neighbouring true answers that attains the worst pair.

        None where none is listed.
        """
        return None

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return neighbouring true answers (without, with the record) that attain the worst pair.

        What an audit runs the mechanism on. Empty where none are listed.
        """
        shift = self.worst_shift()
        return [] if shift is None else [(np.zeros_like(np.asarray(shift)), shift)]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` outputs for a true answer, one per row, for simulation and audits."""
        if self.adds_real_noise():  # no floating-point leaks
            return _sampler(self).release(answer, size, rng=rng)
        released: Array = self.sample(size, rng=rng) + np.asarray(answer)
        return released

    def gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return the exact μ of a mechanism whose trade-off function is Gaussian.

        By default that of `exact_gaussian_mu`, or else of `enclosed_gaussian_mu`.
        """
        known = self.exact_gaussian_mu(adjacency)
        return self.enclosed_gaussian_mu(adjacency) if known is None else known.ball()

    def enclosed_gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return it as a ball, where no exact number is known.

        Raises NotApplicableError for a mechanism that is not exactly Gaussian DP.
        """
        raise NotApplicableError(
            f"{type(self).__name__} is not exactly Gaussian DP: its trade-off function is not G_mu "
            "for any mu. Ask mu for the least mu that is enough."
        )

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the exact μ where it is known as an exact number, else None.

        Balls never prove that two numbers are equal; this decides a claim that is just met.
        """
        return None

    def exact_rho(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the exact ρ of zCDP where it is known as an exact number (μ²/2), else None."""
        mu = self.exact_gaussian_mu(adjacency)
        return None if mu is None else mu.squared.times(Fraction(1, 2))


def _reading_the_relation(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that takes "add-remove" for the relation of that name, as `ask` does."""

    @functools.wraps(method)
    def read(self: Mechanism, adjacency: Adjacency | str | None) -> Any:
        return method(self, Adjacency.read(adjacency))

    return read


_ABOUT_A_RELATION = {
    name
    for name, method in vars(Mechanism).items()
    if "adjacency" in getattr(method, "__annotations__", {})
}


@functools.lru_cache(maxsize=32)
def _sampler(mechanism: Mechanism) -> LatticeSampler:
    """Round the coefficients of a mechanism's noise once."""
    return mechanism.lattice_sampler()


# --- What follows from the shape of the noise alone, for every mechanism of that shape ------------

_SENSITIVITIES = ("sensitivity", "l1_sensitivity", "l2_sensitivity")
"""Arguments of mechanisms that no difference of true answers exceeds, and that one attains."""


class SymmetricDensity(Mechanism, ABC):
    """Every coordinate of the noise has a density that is symmetric about 0."""

    @property
    def is_symmetric(self) -> bool:
        """True."""
        return True

    def worst_shift(self) -> Any:
        """Return the full sensitivity, of a vector in its first coordinate; None without one."""
        known = [field.name for field in fields(self) if field.name in _SENSITIVITIES]  # type: ignore[arg-type]  # dataclasses
        if not known:
            return None
        shift = float(getattr(self, known[0]))
        if getattr(type(self), "dimension", None) is Mechanism.dimension:
            return shift
        return np.array([shift] + [0.0] * (self.dimension - 1))

    def probability_exact(self) -> arb:
        """Return 0: a law with a density has no atoms."""
        return arb(0)


class GaussianNoise(SymmetricDensity, ABC):
    """Every coordinate of the noise is normal with mean 0; coordinates may be dependent."""

    def mean_absolute_error(self) -> arb:
        """Return √(2/π) times the average standard deviation of the coordinates."""
        deviations = [entry.sqrt() for entry in self.variances()]
        return (2 / arb.pi()).sqrt() * sum(deviations, start=arb(0)) / len(deviations)
