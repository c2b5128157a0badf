"""The abstract class of mechanisms: the questions that each of them answers."""

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
from dpassay.accountant.errors import NotApplicableError, expected
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.release.lattice import InverseNoise, InvertedNoise, LatticeSampler


class Mechanism(Askable, Drawable, Description, ABC):
    """A randomised algorithm with a known output law, as frozen data without computed state.

    A concrete mechanism is a final frozen dataclass whose fields are the arguments of its notation;
    `repr` returns that notation. Methods that return balls work at flint's current precision. The
    functions in `dpassay.accountant.questions.profile`, `tradeoff`, `guarantees` and `utility` turn
    the balls into enclosures of a requested width.
    """

    noise_argument: ClassVar[str | None] = None
    """The argument that `calibrate` varies; None if there is no single one."""
    noise_grows: ClassVar[bool] = True
    """Whether a larger `noise_argument` means more noise, and hence never a larger δ."""
    gaussian_noise_argument: ClassVar[str | None] = None
    """An alternative to `noise_argument`, for Gaussian noise."""
    example: ClassVar[str] = ""
    """One mechanism of this class in the notation, for its documentation page and the table of
    capabilities."""

    no_variance: ClassVar[str] = ""
    """If outputs have no variance: why, and which question to ask instead."""

    def __init_subclass__(cls) -> None:
        """Let every method that takes a relation also take its name, such as "add-remove"."""
        super().__init_subclass__()
        for name in _ABOUT_A_RELATION & vars(cls).keys():
            setattr(cls, name, _reading_the_relation(getattr(cls, name)))

    @property
    def only_alone(self) -> str:
        """Why no composition or sample is known exactly, and what to ask; empty if one is."""
        if self.dominated_by is None:
            return ""
        return (
            "Which neighbours are worst depends on the question: a composition is only enclosed, "
            f"and a sample not known. It is at most that of {self.dominated_by!r}: ask about that "
            "for an upper bound."
        )

    @property
    def dominated_by(self) -> Mechanism | None:
        """A mechanism whose worst pair dominates every release, whatever the earlier outputs were.

        None if the mechanism's own worst pair does. Otherwise a composition is enclosed from above
        by this mechanism and from below by `attained` pairs of neighbours.
        """
        return None

    def attained(self) -> tuple[Pair, ...]:
        """Return pairs of neighbours (with, without the record) that give lower bounds."""
        return ()

    @abstractmethod
    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the dominating pairs, and the reason why they are worst.

        Raises AdjacencyError if the relations have different pairs and `adjacency` is None.
        """

    @property
    def dimension(self) -> int:
        """Number of coordinates of the true answer (default 1)."""
        return 1

    @abstractmethod
    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` independent releases, shape (size,) or (size, dimension).

        For simulation only: continuous noise is drawn in floating point. Use `release` for data.
        """

    @classmethod
    def adds_real_noise(cls) -> bool:
        """Whether these mechanisms can release real answers on a lattice (`lattice_sampler`)."""
        own = cls.lattice_sampler is not Mechanism.lattice_sampler
        return own or cls.inverse_noise is not Mechanism.inverse_noise

    def lattice_sampler(self) -> LatticeSampler:
        """Return the sampler that releases real answers on one fixed lattice.

        The default inverts `inverse_noise` for each entry of an answer. Raises NotApplicableError
        for a mechanism without lattice sampler.
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
        """Release a true answer with exact noise, on a fixed lattice.

        Adding `sample` to the answer in floating point is not private: the last bits of the sum
        reveal much about the answer (Mironov, 2012). A real-valued release is rounded to a lattice
        that depends only on the scale of the noise, which does not increase δ
        (`dpassay.accountant.release.lattice`). Integer noise is added to integers only.

        Parameters
        ----------
        value
            The answer: one number per coordinate, or any array if the noise of all entries is
            independent and identically distributed.
        size
            Number of independent releases of this value, along a new first axis; None for one
            release without that axis.
        rng
            The source of randomness. A NumPy generator is for tests and simulation only, since its
            output is predictable.
        """
        times = 1 if size is None else integer("size", size, least=0)
        if not hasattr(rng, "integers"):
            remedy = "Leave it out; a simulation may give np.random.default_rng(1)."
            raise expected("rng", rng, "to be a source of randomness", remedy)
        found = self.releases(value, times, rng)
        return found[0] if size is None else found

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Release a true answer `times` times, along a new first axis: see `release`."""
        return _sampler(self).release(value, times, rng=rng)

    def variances(self) -> Sequence[arb]:
        """Return the variance of each released coordinate; a single entry if all are equal.

        Raises NotApplicableError if no variance exists or is known.
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

        Raises NotApplicableError if the coordinates have no common scalar law.
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

        Raises NotApplicableError if no formula is known.
        """
        raise self._unknown("mean absolute error")

    def probability_exact(self) -> arb:
        """Return P(released = true) for one coordinate.

        Raises NotApplicableError if no formula is known.
        """
        raise self._unknown("probability of no error")

    def _unknown(self, what: str) -> NotApplicableError:
        return NotApplicableError(
            f"The {what} of {type(self).__name__} is not known in closed form. Ask for its "
            "variance, or simulate it with `sample`."
        )

    def inverse_noise(self) -> InverseNoise | None:
        """Return the noise of one number as a function of an exponential variable.

        `lattice_sampler` uses it. None if the noise does not have a single symmetric density with
        an elementary inverse.
        """
        return None

    def worst_shift(self) -> Any:
        """Return a difference of neighbouring true answers that attains the worst pair.

        None if no such difference is listed.
        """
        return None

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return neighbouring true answers (without, with the record) that attain the worst pair.

        An audit runs the mechanism on these. Empty if none are listed.
        """
        shift = self.worst_shift()
        return [] if shift is None else [(np.zeros_like(np.asarray(shift)), shift)]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` outputs for a true answer, one per row, for simulations and audits."""
        if self.adds_real_noise():  # outputs as `release` gives them, without floating-point leaks
            return _sampler(self).release(answer, size, rng=rng)
        released: Array = self.sample(size, rng=rng) + np.asarray(answer)
        return released

    def gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return the exact μ of a mechanism whose trade-off function is Gaussian.

        The default is `exact_gaussian_mu`, or else `enclosed_gaussian_mu`.
        """
        known = self.exact_gaussian_mu(adjacency)
        return self.enclosed_gaussian_mu(adjacency) if known is None else known.ball()

    def enclosed_gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return the μ of `gaussian_mu` as a ball, if no exact number is known.

        Raises NotApplicableError for a mechanism that is not exactly Gaussian DP.
        """
        raise NotApplicableError(
            f"{type(self).__name__} is not exactly Gaussian DP: its trade-off function is not G_mu "
            "for any mu. Ask mu for the least mu that is enough."
        )

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the exact μ if it is known as an exact number, else None.

        Balls cannot prove that two numbers are equal; an exact μ decides a claim met with equality.
        """
        return None

    def exact_rho(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the exact ρ of zCDP, μ²/2, if it is known as an exact number, else None."""
        mu = self.exact_gaussian_mu(adjacency)
        return None if mu is None else mu.squared.times(Fraction(1, 2))


def _reading_the_relation(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that also accepts the name of a relation, such as "add-remove"."""

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
    """Return the lattice sampler, cached: its coefficients are rounded once."""
    return mechanism.lattice_sampler()


# --- Defaults that follow from the shape of the noise alone ---------------------------------------

_SENSITIVITIES = ("sensitivity", "l1_sensitivity", "l2_sensitivity")
"""Names of arguments that bound the difference of neighbouring true answers and are attained."""


class SymmetricDensity(Mechanism, ABC):
    """A mechanism whose noise has, in every coordinate, a density symmetric about 0."""

    @property
    def is_symmetric(self) -> bool:
        """True."""
        return True

    def worst_shift(self) -> Any:
        """Return the sensitivity (for a vector, in the first coordinate), or None without one."""
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
    """A mechanism whose noise is normal with mean 0 in every coordinate, perhaps correlated."""

    def mean_absolute_error(self) -> arb:
        """Return √(2/π) times the average standard deviation of the coordinates."""
        deviations = [entry.sqrt() for entry in self.variances()]
        return (2 / arb.pi()).sqrt() * sum(deviations, start=arb(0)) / len(deviations)
