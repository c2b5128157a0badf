"""Composition of several releases computed from the same data."""

from __future__ import annotations

import functools
import re
from abc import ABC
from collections.abc import Sequence
from typing import Any, TypeAlias, final

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency, Direction, require
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair, WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Field, Integer, NonNegative, Probability, declared
from dpassay.accountant.errors import (
    AdjacencyError,
    InvalidInputError,
    NotApplicableError,
    expected,
    no_mechanism,
)
from dpassay.accountant.mechanisms.wrappers.channel import Tabulated
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair
from dpassay.accountant.pairs.gaussian import GaussianPair

# --- Fields that hold mechanisms, and the base class of mechanisms on randomly chosen records -----

Parts: TypeAlias = Mechanism | tuple[Mechanism, ...]
_NUMBER = re.compile(r"[-+.e/]*[0-9][-+0-9.e/]*")
_REMEDY = 'Write one such as Gaussian(standard_deviation="1.1").'


@final
class OneMechanism(Field[Mechanism, Mechanism]):
    """A field that holds a mechanism."""

    def read(self, value: Mechanism) -> Mechanism:
        """Return the value; raise InvalidInputError or NotApplicableError if it does not fit."""
        return _mechanism(self._name, value)


@final
class Mechanisms(Field[Parts, Mechanism | Sequence[Mechanism]]):
    """A field that holds a mechanism or a non-empty tuple of mechanisms."""

    def read(self, value: Mechanism | Sequence[Mechanism]) -> Parts:
        """Return the mechanism or the tuple; an error names the first entry that does not fit."""
        if not isinstance(value, (list, tuple)):
            return _mechanism(self._name, value, enclosed=True)
        if not value:
            raise InvalidInputError(f"Expected {self._name} to have at least one entry. Give one.")
        return tuple(
            _mechanism(f"{self._name}[{i}]", entry, enclosed=True) for i, entry in enumerate(value)
        )


def _mechanism(name: str, value: object, *, enclosed: bool = False) -> Mechanism:
    """Return the value if it is a mechanism that can be composed, else raise.

    With `enclosed`, also accept a mechanism whose composition is only known to lie between bounds.
    """
    if isinstance(value, str):
        if _NUMBER.fullmatch(value):
            remedy = "Write one such as Gaussian(3) or RandomizedResponse(2)."
            raise InvalidInputError(f"Expected {name} to be a mechanism, not {value}. {remedy}")
        remedy = f"Write it without quotation marks, or read it: dpassay.parse({value!r})."
        raise expected(name, value, "to be a mechanism, not a text", remedy)
    if not isinstance(value, Mechanism):
        raise no_mechanism(name, value, _REMEDY)
    if value.only_alone and not (enclosed and value.dominated_by is not None):
        raise NotApplicableError(f"{name}={value!r}: {value.only_alone}")
    return value


def _asked(name: str) -> Any:
    """Return a method that calls the same method of the inner mechanism."""

    def ask(self: OnChosenRecords, *args: Any, **named: Any) -> Any:
        return getattr(self.mechanism, name)(*args, **named)

    return ask


class OnChosenRecords(Mechanism, ABC):
    """A mechanism run on randomly chosen records; noise and error are those of the inner one."""

    mechanism: OneMechanism

    sample = _asked("sample")
    variances = _asked("variances")
    mean_squared_error = _asked("mean_squared_error")
    mean_absolute_error = _asked("mean_absolute_error")
    probability_exact = _asked("probability_exact")
    covariance_matrix = _asked("covariance_matrix")
    quantile = _asked("quantile")

    @property
    def dimension(self) -> int:
        """The number of coordinates of the inner mechanism."""
        return self.mechanism.dimension

    @property
    def is_symmetric(self) -> bool:
        """Whether the noise of the inner mechanism is symmetric."""
        return self.mechanism.is_symmetric

    @property
    def unchanged(self) -> Mechanism | None:
        """The equal mechanism without sampling if every record is always used, else None."""
        return None

    def enclosed_gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return μ of `unchanged`, or the general enclosure if that is None."""
        if self.unchanged is None:
            return super().enclosed_gaussian_mu(adjacency)
        return self.unchanged.gaussian_mu(adjacency)

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the exact μ of `unchanged`, or None."""
        return None if self.unchanged is None else self.unchanged.exact_gaussian_mu(adjacency)


MAX_COORDINATES = 1_000_000
"""Limit on the coordinates whose noise or variances are listed."""


@declared
class Composed(Mechanism):
    """Run one mechanism, or each of a list, `count` times on the same data.

    Parameters
    ----------
    mechanism
        A mechanism or a list of mechanisms, which may themselves be composed or subsampled.
    count
        The number of times that the whole list is run, an integer ≥ 1.

    Notes
    -----
    If the pair (P_i, Q_i) dominates release i for all earlier outputs, then (⊗P_i, ⊗Q_i) dominates
    the composition (Dong, Roth and Su 2022, Theorem 4; Zhu, Dong and Wang 2022, Theorem 10).
    Releases with independent noise that all change by their full sensitivity attain it. The order
    of the releases does not matter.

    All releases compare the same two datasets in the same direction. A release may have several
    worst pairs, or under replace-one a pair whose two directions differ (the same replacement can
    move one release one way and the next release the other way). Each release then chooses among
    its pairs, adaptively, and the profile is enclosed instead of exact
    (`dpassay.accountant.composition.adaptive`). Its lower bound is attained by choices fixed in
    advance, so the enclosure is valid for non-adaptive choices too.
    """

    example = "Composed(mechanism=Gaussian(standard_deviation=4), count=10)"

    mechanism: Mechanisms = Mechanisms()
    count: Integer = Integer(1, least=1)

    def parts(self) -> list[tuple[Mechanism, int]]:
        """Return the distinct mechanisms and their counts, with nested compositions expanded."""
        return list(_parts(self).items())

    @property
    def dominated_by(self) -> Mechanism | None:
        """The composition of what dominates each part, None if every part's own pair does."""
        parts = [(part.dominated_by, part, n) for part, n in self.parts()]
        if all(bound is None for bound, _, _ in parts):
            return None
        return Composed(tuple(Composed(bound or part, n) for bound, part, n in parts))

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the products of the worst pairs of the parts.

        Raises
        ------
        AdjacencyError
            If the relation does not fit a part, or a part needs a relation and none is given.
        NotApplicableError
            If no method can compute the product.
        """
        adjacency = self._relation(adjacency)
        cases = [(part, count, part.worst_case(adjacency)) for part, count in self.parts()]
        if len(cases) == 1 and cases[0][1] == 1:
            return cases[0][2]
        if self.dominated_by is not None:
            from dpassay.accountant.composition.adaptive import enclosed

            dominating = self.dominated_by.worst_case(adjacency)
            return enclosed(cases, dominating)
        families = {
            direction: [
                (self._family(part, case, direction, adjacency), n, not case.enveloped)
                for part, n, case in cases
            ]
            for direction in Direction
        }
        if any(len(family) > 1 for found in families.values() for family, *_ in found):
            return self._adaptive(families)
        remove = self._product([(part, n, case.remove[0]) for part, n, case in cases], adjacency)
        if all(case.remove == case.add for _, _, case in cases):
            add = remove
        else:
            add = self._product([(part, n, case.add[0]) for part, n, case in cases], adjacency)
        return WorstCase(
            (remove,),
            (add,),
            "Adaptive releases are dominated by the product of the pairs that dominate each of "
            "them; independent releases that all change by their full sensitivity attain it.",
        )

    def _relation(self, adjacency: Adjacency | None) -> Adjacency | None:
        """Return the given relation, or else the one that the parts declare, or None.

        Raises AdjacencyError if no relation is given and the parts declare different ones.
        """
        if adjacency is not None:
            return adjacency
        declared = {getattr(part, "adjacency", None) for part, _ in self.parts()} - {None}
        if not declared:
            return None
        if len(declared) > 1:
            raise AdjacencyError(
                "Expected adjacency to be named for Composed: its parts are made for different "
                "neighbouring relations. Give adjacency='add-remove' or 'replace-one' (--adjacency "
                "on the command line)."
            )
        (found,) = declared
        return found

    @staticmethod
    def _family(
        part: Mechanism, case: WorstCase, direction: Direction, adjacency: Adjacency | None
    ) -> tuple[Pair, ...]:
        """Return the pairs among which a release can choose.

        Under replace-one both directions are possible, except for `Tabulated`, which describes two
        given datasets.
        """
        if case.enveloped and adjacency is not Adjacency.ADD_REMOVE:
            return case.pairs(None)
        differs = case.remove != case.add and not isinstance(part, Tabulated)
        if differs and require(adjacency, part) is Adjacency.REPLACE_ONE:
            return case.pairs(None)
        return case.pairs(direction)

    @staticmethod
    def _adaptive(
        families: dict[Direction, list[tuple[tuple[Pair, ...], int, bool]]],
    ) -> WorstCase:
        from dpassay.accountant.composition.adaptive import adaptive

        remove, add = (adaptive(families[direction]) for direction in Direction)
        return WorstCase(
            (remove,),
            (add,),
            "Each release may have any of several worst pairs, chosen adaptively. Lower bound: "
            "products of chosen pairs, which are attained. Upper bound: the product of their "
            "envelopes, which dominates every choice.",
        )

    def _product(
        self, cases: Sequence[tuple[Mechanism, int, Pair]], adjacency: Adjacency | None
    ) -> Pair:
        gaussian = [(part, n) for part, n, pair in cases if isinstance(pair, GaussianPair)]
        factors = [(pair, n) for _, n, pair in cases if not isinstance(pair, GaussianPair)]
        if gaussian:
            whole = Composed(tuple(Composed(part, n) for part, n in gaussian))
            joint = GaussianPair(whole if factors else self, adjacency)
            if not factors:
                return joint
            factors.insert(0, (joint, 1))
        from dpassay.accountant.composition.choose import (
            product,  # imports NumPy and SciPy, which takes a second
        )

        return product(factors)

    def enclosed_gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return √(Σ count·μ²) (Dong, Roth and Su 2022, Corollary 2)."""
        adjacency = self._relation(adjacency)
        squares = (count * part.gaussian_mu(adjacency) ** 2 for part, count in self.parts())
        return sum(squares, start=arb(0)).sqrt()

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return √(Σ count·μ²) as an exact number, None if a part has no exact μ."""
        adjacency, total = self._relation(adjacency), ExactReal.of_rational(0)
        for part, count in self.parts():
            mu = part.exact_gaussian_mu(adjacency)
            if mu is None:
                return None
            total += mu.squared.times(count)
        return total.root()

    @property
    def dimension(self) -> int:
        """The number of coordinates of all releases together."""
        return sum(count * part.dimension for part, count in self.parts())

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of all releases: `size` rows, with columns grouped by mechanism.

        Raises NotApplicableError if there are more than `MAX_COORDINATES` columns.
        """
        self._require_few()
        columns = []
        for part, count in self.parts():
            drawn = part.sample(size * count, rng=rng)
            columns.append(drawn.reshape(size, -1))
        return np.hstack(columns)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Release the answers of all parts, in the column order of `sample`.

        Raises NotApplicableError if there are more than `MAX_COORDINATES` columns, or if a part
        cannot release on a lattice.
        """
        self._require_few()
        answer = np.asarray(value)
        widths = [max(len(part.variances()), part.dimension) for part, _ in self.parts()]
        total = sum(width * n for width, (_, n) in zip(widths, self.parts(), strict=True))
        if answer.shape != (total,):
            raise expected(
                "value", f"array of shape {answer.shape}", f"to have {total} coordinates"
            )
        start, columns = 0, []
        for width, (part, n) in zip(widths, self.parts(), strict=True):
            for _ in range(n):
                own = answer[start : start + width]
                drawn = part.releases(own if width > 1 else own[0], times, rng)
                columns.append(drawn.reshape(times, width))
                start += width
        released: Array = np.hstack(columns)
        return released

    @property
    def is_symmetric(self) -> bool:
        """Whether the noise of every part is symmetric."""
        return all(part.is_symmetric for part, _ in self.parts())

    def mean_absolute_error(self) -> arb:
        """Return the mean absolute error averaged over all released coordinates."""
        parts = self.parts()
        total = sum((n * p.dimension * p.mean_absolute_error() for p, n in parts), start=arb(0))
        return total / self.dimension

    def probability_exact(self) -> arb:
        """Return the probability of one coordinate if all releases have the same law."""
        parts = self.parts()
        return parts[0][0].probability_exact() if len(parts) == 1 else super().probability_exact()

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return one pair that combines the last listed pair of every part, one entry per part."""
        listed = [part.worst_answers() for part, _ in self.parts()]
        if not all(listed):
            return []
        return [(tuple(own[-1][0] for own in listed), tuple(own[-1][1] for own in listed))]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the outputs of all parts, side by side; `answer` has one entry per part."""
        columns = [
            part.outputs(own, size * count, rng=rng).reshape(size, -1)
            for (part, count), own in zip(self.parts(), answer, strict=True)
        ]
        return np.hstack(columns)

    def variances(self) -> list[arb]:
        """Return the variance of each coordinate, grouped by mechanism, or one if all are equal."""
        parts = self.parts()
        entries = [(part, count, list(part.variances())) for part, count in parts]
        if len(entries) == 1 and len(entries[0][2]) == 1:
            return entries[0][2]
        self._require_few()
        listed = []
        for part, count, own in entries:
            listed += count * (own if len(own) > 1 else own * part.dimension)
        return listed

    def mean_squared_error(self) -> arb:
        """Return the mean squared error averaged over all released coordinates."""
        total = arb(0)
        for part, count in self.parts():
            total += count * part.dimension * part.mean_squared_error()
        return total / self.dimension

    def quantile(self, probability: ExactReal) -> arb:
        """Return the quantile of one coordinate if all releases have the same law."""
        parts = self.parts()
        if len(parts) == 1:
            return parts[0][0].quantile(probability)
        return super().quantile(probability)

    def _require_few(self) -> None:
        if self.dimension > MAX_COORDINATES:
            raise NotApplicableError(
                f"Expected at most {MAX_COORDINATES} coordinates to be listed, not "
                f"{self.dimension}. Ask for those of one release."
            )


@functools.lru_cache(maxsize=256)
def _parts(composed: Composed) -> dict[Mechanism, int]:
    entries = composed.mechanism
    found: dict[Mechanism, int] = {}
    for entry in entries if isinstance(entries, tuple) else (entries,):
        inner = _parts(entry) if isinstance(entry, Composed) else {entry: 1}
        for part, count in inner.items():
            found[part] = found.get(part, 0) + composed.count * count
    return found


# --- A mechanism known only by its (ε, δ) guarantee -----------------------------------------------


@declared
class Guaranteed(Mechanism, FiniteLaws):
    """An arbitrary (ε, δ)-DP mechanism: the worst of all mechanisms with this guarantee.

    Parameters
    ----------
    epsilon, delta
        ε ≥ 0 and δ in [0, 1].

    Notes
    -----
    Let P have the masses (δ, (1 − δ)e^ε/(1 + e^ε), (1 − δ)/(1 + e^ε), 0) and let Q be P reversed.
    The pair (P, Q) dominates every (ε, δ)-DP mechanism and is itself (ε, δ)-DP (Kairouz, Oh and
    Viswanath 2015). So the bound for a composition of such parts is the best one that follows from
    their guarantees alone, for any neighbouring relation that all guarantees share. The noise is
    unknown, so errors and samples are not available.
    """

    example = "Guaranteed(epsilon='0.1', delta='1e-6')"
    no_variance = (
        "Guaranteed stands for any mechanism with its guarantee, so its variance is not known. "
        "Ask the mechanism itself."
    )

    epsilon: NonNegative = NonNegative()
    delta: Probability = Probability(0)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the four masses and their reverse."""
        reason = "It dominates every mechanism with this guarantee, and has the guarantee itself."
        return WorstCase.symmetric(FinitePair(self, 0), reason)

    def outcomes(self, index: int) -> Sequence[str]:
        """Return the names of the four privacy losses."""
        return ("infinity", str(self.epsilon), str(-self.epsilon), "-infinity")

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return the four masses and their reverse."""
        delta = self.delta.ball()
        odds = (-self.epsilon.ball()).exp()
        likely, rare = (1 - delta) / (1 + odds), (1 - delta) * odds / (1 + odds)
        p = [delta, likely, rare, arb(0)]
        return p, p[::-1]

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return ±ε for the two finite losses, None for ±∞."""
        return [None, self.epsilon, -self.epsilon, None]

    def exact_infinity_masses(self, index: int) -> tuple[ExactReal, ExactReal]:
        """Return (δ, δ): the P-mass where q = 0 and the Q-mass where p = 0."""
        return self.delta, self.delta

    def is_mirrored(self, index: int) -> bool:
        """Return True: Q is P reversed."""
        return True

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Raise NotApplicableError: the law of the noise is unknown."""
        raise NotApplicableError(
            "Guaranteed stands for any mechanism with its guarantee, so it has no noise to draw. "
            "Sample the mechanism itself."
        )
