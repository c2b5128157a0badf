"""Continual counting with unary chains from both ends of every block."""

from __future__ import annotations

from fractions import Fraction

from dpassay.accountant.core.description import declared
from dpassay.accountant.core.validate import Integer, OptionalPositive
from dpassay.accountant.counting.delannoy import Chains, parent
from dpassay.accountant.counting.tree_walk import Rows, written_out
from dpassay.accountant.mechanisms.counting.linear_counter import MOST_LISTED, LinearCounter
from dpassay.accountant.numbers.exact import ExactReal


@declared
class DelannoyCounter(LinearCounter):
    """Count with s levels of unary chains, the best tree of noise for its sensitivity.

    Time steps are the words of s integers with Σ|d_i| ≤ T and a positive first digit, in
    lexicographic order, and an output has Σ|d_i| noise variables (see
    `dpassay.accountant.counting.delannoy`).
    Algorithm 2 of "Count on Your Elders" is the special case that bounds each digit instead of
    the sum. The mean squared error is 2s²/ε² times the average of Σ|d_i|.

    There are as many outputs as noise variables, each output with one that none before it in its
    path has, so outputs and measured sums determine each other and the profile is exact.

    Parameters
    ----------
    steps
        n, the number of inputs and outputs.
    levels
        s ≥ 1, at most n: the most measured sums that one input is in.
    epsilon, mu, contributions
        As in `LinearCounter`: exactly one of the first two.
    """

    example = "DelannoyCounter(steps=12, levels=2, epsilon=1)"

    steps: Integer = Integer(least=1)
    levels: Integer = Integer(least=1)
    epsilon: OptionalPositive = OptionalPositive()
    mu: OptionalPositive = OptionalPositive()
    contributions: Integer = Integer(1, least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        Chains(self.levels, self.steps)

    @property
    def chains(self) -> Chains:
        """The words of the time steps."""
        return Chains(self.levels, self.steps)

    @property
    def distances(self) -> tuple[ExactReal, ...]:
        """One in each level: the first input is in the first interval of every level."""
        return (ExactReal.of_rational(1),) * self.levels

    def units(self) -> Fraction:
        """Return Σ_t Σ|d_i(t)|."""
        return Fraction(self.chains.units())

    def output_units(self) -> list[Fraction]:
        """Return Σ|d_i(t)| for every step t."""
        self.require(MOST_LISTED, "to write out the words")
        return [Fraction(sum(map(abs, word))) for word in self.chains.words()]

    def factorisation(self) -> tuple[Rows, Rows]:
        """Return L, with entries 0 and 1, and R, with entries 0 and ±1; both square."""
        self.require_entries(self.steps)
        words = list(self.chains.words())
        place = {word: index for index, word in enumerate([(0,) * self.levels, *words])}
        return written_out(self.steps, {place[word]: place[parent(word)] for word in words})
