"""Bounded noise for counts: Sadeghi, Asoodeh and Calmon, Definition 2 as printed, a second time.

E = e^ε, B = 2/(1 − η), C = 2η/(1 − η) = Bη; P(Z = 0) = η and P(Z = ±i) = α_i/B for i ≤ D. With
the weights w_m = 1, E, …, E^{m−1} let P_m be their sum, S_m = Σ (j + 1) E^j and
A_m = Σ (m − j) E^j = P_1 + … + P_m. All is rational where E and η are.

δ* is the largest of δ_k = (C P_k − E^k)/(B S_k), 1 ≤ k ≤ D, and δ_{D+1} = 1/(B A_D). For
C ≤ C_D = P_{D+1}/A_D the last one is it, and α_j = P_{D+1−j}/A_D; else α_j is what
C = E α_1 + Bδ*, α_j = E α_{j+1} + Bδ* leave, (C − Bδ*P_j)/E^j, as long as it is positive.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, final

from dpassay.verifier.checker.arithmetic import largest, total
from dpassay.verifier.checker.reals import UnknownError, exp

_MOST: Final = 2000


@final
class CountNoise:
    """The sums for E, η and D."""

    def __init__(self, ratio: Any, eta: Any, support: Any) -> None:
        if not ratio >= 1 or not 0 < eta < 1 or support < 1 or support != int(support):
            raise ValueError("E, eta or D of count noise out of range")
        if support > _MOST:
            raise UnknownError(f"count noise of support {support}")
        self.e, self.eta, self.d = ratio, eta, int(support)
        self.b = 2 / (1 - eta)
        self.c = self.b * eta
        self.powers, self.p, self.s, self.a = (
            [Fraction(1)],
            [Fraction(0)],
            [Fraction(0)],
            [Fraction(0)],
        )
        for m in range(self.d + 1):
            self.p.append(self.p[m] + self.powers[m])
            self.s.append(self.s[m] + (m + 1) * self.powers[m])
            self.a.append(self.a[m] + self.p[m + 1])
            self.powers.append(self.powers[m] * ratio)

    @property
    def delta(self) -> Any:
        """δ*, the largest of δ_1, …, δ_{D+1}."""
        return largest([*self._lemma_one(), 1 / (self.b * self.a[self.d])])

    @property
    def optimal_delta(self) -> Any:
        """The least largest p(z) − E p(z ± 1) of any law.

        δ_1, …, δ_D, and for 0 ≤ m ≤ D/2 the bounds (1 − C(E + … + E^m))/(B(A_m + A_{D−m})):
        α_i ≤ Bδ P_{D+1−i} from outside inward, α_i ≤ E^i C + Bδ P_i from 0 outward, and Σα = 1. A
        law between the least and the greatest solution of these attains the largest of them all.
        """
        found = self._lemma_one()
        for m in range(self.d // 2 + 1):
            head = self.c * (self.p[m + 1] - 1)
            tail = self.a[m] + self.a[self.d - m]
            found.append((1 - head) / (self.b * tail))
        return largest(found)

    def _lemma_one(self) -> list[Any]:
        excess = [self.c * self.p[k] - self.powers[k] for k in range(1, self.d + 1)]
        return [x / (self.b * self.s[k]) for k, x in enumerate(excess, 1)]

    def weight(self, j: Any) -> Any:
        """Return α_j."""
        j = int(j)
        if not 1 <= j <= self.d:
            raise ValueError("j of count noise out of range")
        whole = self.a[self.d]
        if not self.c * whole > self.p[self.d + 1]:
            return self.p[self.d + 1 - j] / whole
        left = self.c - self.b * self._delta() * self.p[j]
        return largest([left / self.powers[j], Fraction(0)])

    def _delta(self) -> Any:
        if not hasattr(self, "_known"):
            self._known = self.delta
        return self._known

    def mass(self, z: Any) -> Any:
        """Return P(Z = z)."""
        if z == 0:
            return self.eta
        return self.weight(abs(int(z))) / self.b if abs(z) <= self.d else Fraction(0)

    def masses(self) -> list[Any]:
        """Return P(Z = −D), …, P(Z = D)."""
        side = [self.mass(i) for i in range(1, self.d + 1)]
        return [*reversed(side), self.eta, *side]

    def variance(self) -> Any:
        """Return Σ z² P(Z = z)."""
        return total([2 * i * i * self.mass(i) for i in range(1, self.d + 1)])


def count_noise(epsilon: Any, eta: Any, support: Any) -> CountNoise:
    """Return the law for ε, η and D."""
    return CountNoise(exp(epsilon), eta, support)


@lru_cache(maxsize=64)
def exactly(ratio: Fraction, eta: Fraction, support: Fraction) -> CountNoise:
    """Return the law for rational E and η: functions of the language ask for it term by term."""
    return CountNoise(ratio, eta, support)
