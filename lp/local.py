"""The report of one's category with the least variance of counts, among all reports, with proof.

A person holds one of k categories x and reports y with the probability Q(y|x) ≤ e^ε Q(y|x′). How
many hold j is estimated without bias by the sum of a_j(y) over the reports: E[a_j|x] is 1 for x = j
and 0 for others. With a share s of holders a person adds V_j = s Var(a_j|j) + (1 − s) Var(a_j|x),
averaged over x ≠ j; V is the average of V_j over j. (At s = 1/k it is the variance of all counts
over k, averaged over x, and at s = 0 that of a count which few people hold.)

**Theorem.** The least V is that of a subset selection (Ye and Barg 2018), of the best size d.

*Symmetric reports.* A random renaming of the categories, which is reported too, changes neither the
loss nor V. So let all names be alike, m(y) be the average of Q(y|x) over x, and r_x = Q(y|x)/m(y):
Σ r_x = k, r_x ≤ e^ε r_x′, and Q averaged over x ≠ j is m (k − r_j)/(k − 1).

*One number.* With w(r) = s r + (1 − s)(k − r)/(k − 1) = α + βr, V + s = E_m[w(r_j) a_j²], where
E_m[r_j a_j] = 1 and E_m[a_j] = 1/k. The least over a_j is b′G⁻¹b, b = (1, 1/k), u = (r_j, 1),
G = E_m[uu′/w(r_j)]. As E_m[r_j] = 1, E[r/w] = (1 − αg)/β and E[r²/w] = (1 − αE[r/w])/β for
g = E[1/w]: so G = A + g zz′, z = (−α/β, 1), and b′G⁻¹b falls as g grows. Where β = 0 the same holds
for E[r²].

*A linear program.* As names are alike g is the mean over y of the average of φ(r_x) over x, φ = 1/w
or r². It is convex in r, so that a vertex of {Σ r_x = k, r_x ≤ e^ε r_x′} in the place of each r is
no worse: of k − 1 independent constraints r_x = e^ε r_x′ each is between the largest and the
smallest entry, so that there are no others: d entries are e^ε times as large as the rest. Such a
report is a subset of size d; of shares m_d of sizes, Σ m_d = 1, g = Σ m_d φ_d. The dual of this
program is y ≥ φ_d for all d: its optimum is the largest φ_d, at one size.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.core.validate import integer, rational
from dpassay.accountant.errors import expected
from dpassay.accountant.mechanisms.wrappers.channel import SubsetSelection
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.interval import Interval, ball, enclose
from dpassay.accountant.numbers.precision import ctx

_MOST = 10_000
"""Categories: every size is compared, in milliseconds for each hundred."""
_BITS = (64, 256, 1024)
"""Precisions at which sizes are told apart."""


@final
@dataclass(frozen=True)
class LocalOptimum:
    """The best report, and what proves that none is better.

    Parameters
    ----------
    mechanism
        The subset selection.
    share
        s, the share of people who hold a category.
    value
        The least V: what a person adds to the variance of an estimated count.
    dual
        y, the largest φ_d: no report has a larger mean of φ, so none a smaller V.
    holder, other
        What one who holds a category adds to the variance of its count, and one who does not.
    """

    mechanism: SubsetSelection
    share: Fraction
    value: Interval
    dual: Interval
    holder: Interval
    other: Interval


def optimal_local(candidates: int, epsilon: Number, share: Number | None = None) -> LocalOptimum:
    """Return the report of one of `candidates` categories with the least variance of counts.

    Parameters
    ----------
    candidates
        k in 2..10000.
    epsilon
        ε > 0, the largest privacy loss.
    share
        s in [0, 1], rational: how many of those who report hold a category; 1/k by default, so that
        V is the average over all counts.

    Raises
    ------
    InvalidInputError
        If an argument is out of range.
    UndecidedError
        If the value of a very large ε is not enclosed.
    """
    k = integer("candidates", candidates, least=2)
    if k > _MOST:
        raise expected("candidates", k, f"in 2..{_MOST}")
    level = exact(epsilon, "epsilon")
    if level.sign <= 0:
        raise expected("epsilon", epsilon, "> 0", "Give a positive number.")
    s = Fraction(1, k) if share is None else rational("share", share, least=0)
    if s > 1:
        raise expected("share", share, "in [0, 1]")
    sizes = _best(k, level, s)
    made = [SubsetSelection(level, k, d) for d in sizes]

    def holder(mechanism: SubsetSelection) -> arb:
        p, q = mechanism.chances()
        return p * (1 - p) / (p - q) ** 2

    def value() -> arb:
        found = [ball(s) * holder(m) + ball(1 - s) * m.variances()[0] for m in made]
        return functools.reduce(arb.min, found)

    def dual() -> arb:
        return functools.reduce(arb.max, [_mean(k, d, level, s) for d in sizes])

    return LocalOptimum(
        mechanism=made[0],
        share=s,
        value=enclose(value),
        dual=enclose(dual),
        holder=enclose(lambda: holder(made[0])),
        other=enclose(lambda: made[0].variances()[0]),
    )


def _best(k: int, epsilon: ExactReal, share: Fraction) -> list[int]:
    """Return the size with the largest φ_d, or those that no precision tells apart."""
    left = list(range(1, k))
    for bits in _BITS:
        with ctx.workprec(bits):
            found = [(_mean(k, d, epsilon, share), d) for d in left]
            largest = functools.reduce(arb.max, [value.lower() for value, _ in found])
            left = [d for value, d in found if not value < largest]
        if len(left) == 1:
            break
    return left


def _mean(k: int, d: int, epsilon: ExactReal, share: Fraction) -> arb:
    """Return φ_d: the average of 1/w(r), or of r² where w is constant."""
    odds = epsilon.ball().exp()
    c = k / (d * odds + (k - d))
    slope = share - (1 - share) / Fraction(k - 1)

    def shape(r: arb) -> arb:
        if not slope:
            return r * r
        return 1 / (ball((1 - share) * k / Fraction(k - 1)) + ball(slope) * r)

    return (d * shape(c * odds) + (k - d) * shape(c)) / k
