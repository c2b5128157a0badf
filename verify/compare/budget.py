"""What may be spent: a guarantee for all releases together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

from dpassay.accountant.budget.target import EpsilonDelta, Mu, ProfileBelow, Rho, Target
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import Integer, Probability, Relation
from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.sampling import PoissonSubsampled
from dpassay.accountant.numbers.exact import Number
from dpassay.verifier.claim import Claim
from dpassay.verifier.claims.guarantee import guarantee


@final
@dataclass(frozen=True)
class Budget:
    """A guarantee, the neighbouring relation that it is about, and how many releases share it.

    Parameters
    ----------
    target
        `EpsilonDelta`, `Mu`, `Rho`, or `ProfileBelow` a mechanism's profile.
    adjacency
        Who is a neighbour. The sensitivities of the workload are those for this relation.
    releases
        How often the whole workload is released, each time with fresh noise; the guarantee is
        for all of them together.
    sampling_prob
        The probability with which a person takes part in a release, independently.
    schedule
        Releases of unequal noise, as factors of the spread; `releases` is then how often the
        schedule is run. Errors are those of a release with factor 1.
    """

    target: Target
    adjacency: Relation = Relation("add-remove")
    releases: Integer = Integer(1, least=1)
    sampling_prob: Probability = Probability(1)
    schedule: tuple[Number, ...] = ()

    def __post_init__(self) -> None:
        target = self.target
        if not isinstance(target, Target):
            raise expected("target", target, "to be a target", "Write epsilon=1, delta=1e-5.")
        if isinstance(target, ProfileBelow) and target.relation is None:
            # A profile that needs no relation is the same under the one that is meant here.
            object.__setattr__(self, "target", replace(target, relation=self.adjacency))
        if objection := self.target.objection():
            raise InvalidInputError(objection)
        if self.sampling_prob.sign == 0:
            raise InvalidInputError(
                "Expected sampling_prob=0 > 0. With 0 nobody's data is used; leave the query out."
            )
        if self.is_sampled and self.adjacency is not Adjacency.ADD_REMOVE:
            raise InvalidInputError(
                f"Expected adjacency='add-remove' with sampling_prob={self.sampling_prob}, not "
                f"{self.adjacency.value!r}: the exact laws of Poisson subsampling are for it."
            )

    @property
    def is_sampled(self) -> bool:
        """Whether a person may be left out of a release."""
        return self.sampling_prob.rational != 1

    @property
    def epsilon_delta(self) -> EpsilonDelta | None:
        """The target, where it is (ε, δ)-DP."""
        return self.target if isinstance(self.target, EpsilonDelta) else None

    @property
    def total_releases(self) -> int:
        """How many releases share the guarantee."""
        return self.releases * max(1, len(self.schedule))

    def whole(self, release: Mechanism) -> Mechanism:
        """Return all releases together."""
        one = PoissonSubsampled(release, self.sampling_prob) if self.is_sampled else release
        return one if self.releases == 1 else Composed(one, self.releases)

    def claim(
        self, whole: Mechanism, name: str, adjacency: Adjacency | None = None
    ) -> Claim | None:
        """Return the claim that a mechanism keeps to the budget; None for a profile.

        It is for the budget's neighbouring relation unless another is given.
        """
        kinds = {EpsilonDelta: ("epsilon", "delta"), Mu: ("mu",), Rho: ("rho",)}
        names = kinds.get(type(self.target))
        if names is None:
            return None
        return guarantee(
            {part: getattr(self.target, part) for part in names},
            id=name,
            source="comparison",
            mechanism=str(whole),
            adjacency=(adjacency or self.adjacency).value,
        )

    def __str__(self) -> str:
        relation = self.adjacency.value
        several = f", {self.total_releases} releases together" if self.total_releases > 1 else ""
        if self.schedule:
            factors = ", ".join(str(factor) for factor in self.schedule)
            several += f" with the spreads {factors}"
        part = f", each with a {self.sampling_prob} sample" if self.is_sampled else ""
        return f"{self.target} under {relation}{several}{part}"

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "target": str(self.target),
            "adjacency": self.adjacency.value,
            "releases": self.releases,
            "sampling_prob": str(self.sampling_prob),
            "schedule": [str(factor) for factor in self.schedule],
        }
