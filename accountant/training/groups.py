"""What k records of one person have together, where nothing exact is known: both ends.

**The rule.** If ε is enough for one record at δ₁, then kε is for k records at δ₁ Σ_{i<k} e^{iε}
(change them one after the other). Every δ₁ whose sum is at most δ gives an upper bound.

**Random allocation, above.** The noise of a step is the sum of k independent parts of variance
σ²/k: a step is a function of k releases, one of each record with a part of its own. So k records
are no worse than k allocations of one record, with √k times its sensitivity.

**Random allocation, below.** Gradients of the k records in orthogonal directions are k independent
allocations. With one direction, and with other gradients 0, the sum of all noisy sums of E epochs
of t steps is N(kE, Etσ²) against N(0, Etσ²), whatever the steps of the records: so for shuffled
batches too.

**Shuffled batches, above.** Let the records of the person be in different batches in all but K of
E epochs. Given the order, an epoch is a Gaussian release of sensitivity √k, or of at most k. Two
given records are in one batch with probability at most p = (B − 1)/(N − 1), so that
P(K > m) is at most that of Bin(E, min(1, k(k − 1)p/2)), and by joint convexity

    δ(ε) ≤ Σ_m P(K = m) δ_μ(ε),   μ = √(kE + (k² − k)m)/σ.

δ_μ increases with m, so that the binomial law may stand for that of K.

**Batches without replacement, below.** Let the k records have gradients u, all others −u. Against
k records −u more, the sum of a batch moves by 2i, i of k records of N being in a batch of B.

**Batches without replacement, and Poisson ones that are cut, above.** With probability η ≤ kB/N
some of the k records are drawn. Where none is, and where those that are drawn are put in the place
of others or are replaced, sums are at most 2k apart: by advanced joint convexity the profile is at
most that of a sample, with probability η, of sensitivity 2k (`SampledWithoutReplacement`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from flint import arb

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.sampling import (
    MixtureOfGaussians,
    RandomAllocation,
    SampledWithoutReplacement,
)
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import first, halved
from dpassay.accountant.pairs.gaussian import gaussian_tails

_TRIES = 8
"""Values of δ₁ that are tried: after five the bound hardly falls."""
_SETTLED = 1e-2
"""How near to δ, relatively, the sum of the rule comes: ε changes by a tenth of that."""
_PRECISION = 96
"""Bits of sums of profiles, which have twelve digits."""
_HALVINGS = 40
"""Steps of the search for an ε: about twelve digits."""


def one_is_drawn(sigma: ExactReal, batch: int, size: int, steps: int, group: int) -> Mechanism:
    """Return a release that is no better than batches in which k records are replaced."""
    whole = SampledWithoutReplacement(Gaussian(sigma, 2 * group), min(group * batch, size), size)
    return times(whole, steps)


def times(release: Mechanism, count: int) -> Mechanism:
    """Return a release that is made so often."""
    return release if count == 1 else Composed(release, count)


def by_rule(epsilon: Callable[[ExactReal], Interval], group: int, delta: ExactReal) -> Decimal:
    """Return an upper bound of ε(δ) of a group from ε(δ) of one record: see *The rule*."""
    best = Decimal("Infinity")
    if delta.sign == 0:
        return best
    whole = float(delta)
    low, high = -math.inf, math.log(whole)  # ln δ₁ with a sum below δ, and above
    at = high - math.log(group)
    for _ in range(_TRIES):
        first = ExactReal.of_rational(Fraction(math.exp(at)))
        each = epsilon(first).upper
        if not each.is_finite():  # as at a level below the smallest float
            break
        with ctx.workprec(_PRECISION):
            terms = ((i * ball(Fraction(each))).exp() for i in range(group))
            total = first.ball() * sum(terms, start=arb(0))
            short = float((delta.ball() / total).log().mid())
            if total <= delta.ball():
                low, best = max(low, at), min(best, group * each)
            else:
                high = min(high, at)
        if 0 <= short <= _SETTLED:
            break
        at += short - _SETTLED / 2
        if not low < at < high:
            at = (low + high) / 2 if math.isfinite(low) else high - 2 * abs(short)
    return best


def gathered(sigma: ExactReal, steps: int, epochs: int, group: int) -> list[Mechanism]:
    """Return releases that are no worse than random allocation of a group; some are the worst."""
    direction = Gaussian(sigma * ExactReal.of_root(Fraction(epochs * steps)), group * epochs)
    return [times(RandomAllocation(Gaussian(sigma), steps), group * epochs), direction]


def shared_noise(sigma: ExactReal, steps: int, epochs: int, group: int) -> Mechanism:
    """Return a release that is no better than random allocation of a group."""
    alone = Gaussian(sigma, ExactReal.of_root(Fraction(group)))
    return times(RandomAllocation(alone, steps), group * epochs)


def shuffled(
    sigma: ExactReal, epochs: int, group: int, together: Fraction, delta: ExactReal
) -> Decimal:
    """Return an upper bound of ε(δ) of shuffled batches, `together` being p."""
    if delta.sign == 0:
        return Decimal("Infinity")
    with ctx.workprec(_PRECISION):
        chance, choose = ball(min(Fraction(1), together * math.comb(group, 2))), arb(1)
        runs = []
        for m in range(epochs + 1):
            square = ball(Fraction(group * epochs + (group**2 - group) * m))
            weight = choose * chance**m * (1 - chance) ** (epochs - m)
            runs.append((weight, square.sqrt() / sigma.ball()))
            choose = choose * (epochs - m) / (m + 1)

    def enough(epsilon: Fraction) -> bool:
        at, total = ExactReal.of_rational(epsilon), arb(0)
        with ctx.workprec(_PRECISION):
            for weight, mu in runs:
                tails = gaussian_tails(mu, at)
                total += weight * (tails.p_above - at.ball().exp() * tails.q_above)
            return bool(total <= delta.ball())

    whole = Fraction(first(lambda n: n > 0 and enough(Fraction(n))))
    _, least = halved(lambda at: not enough(at), whole - 1, whole, _HALVINGS)
    return Interval.of_exact(least).upper


def drawn(
    sigma: ExactReal, batch: int, size: int, steps: int, group: int, *, moves: int = 2
) -> Mechanism:
    """Return a release that a group has with batches without replacement."""
    ways = range(max(0, batch - size + group), min(batch, group) + 1)
    law = [
        Fraction(math.comb(group, i) * math.comb(size - group, batch - i), math.comb(size, batch))
        for i in ways
    ]
    return times(MixtureOfGaussians(sigma, [moves * i for i in ways], law), steps)
