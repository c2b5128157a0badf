"""Verify a certificate of optimal count noise, without a solver, in fractions alone.

The certificate lists the laws, the multipliers and rational bounds of E = e^ε. Everything that is
concluded is recomputed here: that the laws are laws with P1 to P3 and what δ they reach (an upper
bound of the optimum), that the multipliers are feasible for the dual of the full program and what
they prove (a lower bound). No code is shared with what made the certificate.

For multipliers s ≥ 0 of p(z | n) ≤ E p(z' | n') + δ, with n' = n ± 1 and z' = z + n − n', and free
λ_n, μ_n of mass and mean, Σ s ≤ 1 and

    Σ s leaving (n, z) − E Σ s entering (n, z) − λ_n − μ_n z ≥ 0   for every n and every z ≠ 0

give δ ≥ Σ_n (1 − η) λ_n + η (Σ s leaving (n, 0) − E Σ s entering (n, 0)). With one law for all
counts, n is dropped from λ, μ and the entries. Where events of several outcomes are bounded (the
objective "true-delta"), the largest s of each ordered pair (n, n') counts in Σ s, not their sum.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

from dpassay.verifier.checker.optima.rationals import (
    best,
    encloses_exponential,
    gap_problems,
    integer,
    number,
)
from dpassay.verifier.checker.outcome import Theorem

Problems = list[tuple[str, str]]


def count_noise_problems(data: Mapping[str, Any]) -> Problems:
    """Return the fields of a certificate that are wrong, and what is wrong with them."""
    problems: Problems = []
    _Check(data, problems).run()
    return problems


def count_noise_theorem(data: Mapping[str, Any]) -> Theorem:
    """Say what a certificate without problems proves."""
    asked = data["problem"]
    power = f"epsilon = {asked['epsilon']}" if asked["ratio"] is None else f"E = {asked['ratio']}"
    counts = f"for all counts n >= {asked['support']}"
    if asked["max_count"] is not None:
        counts = f"for counts n from {asked['min_count']} to {asked['max_count']}"
    events = "all events" if asked["objective"] == "true-delta" else "single outcomes"
    what = (
        f"the least delta at {power}, of {events}, of noise with mean 0 and P(0) = "
        f"{asked['eta']} on -min(n, {asked['support']})..{asked['support']} {counts}"
    )
    return best(what, data["delta"])


@dataclass
class _Check:
    data: Mapping[str, Any]
    problems: Problems
    eta: Fraction = field(init=False)
    support: int = field(init=False)
    max_count: int | None = field(init=False)
    min_count: int = field(init=False)
    single: bool = field(init=False)

    def run(self) -> None:
        """Check every field that says something."""
        problem = self.data["problem"]
        self.eta = number(problem["eta"])
        self.support = integer(problem["support"], 1)
        given = problem["max_count"]
        self.max_count = None if given is None else integer(given, 1)
        self.single = problem["objective"] == "singular"
        self.min_count = integer(problem["min_count"], 1)
        if not 0 < self.eta < 1:
            self.problems.append(("problem.eta", "is not in (0, 1)"))
        lower, upper = (number(self.data["ratio"][end]) for end in ("lower", "upper"))
        if not encloses_exponential(problem["epsilon"], problem["ratio"], lower, upper):
            self.problems.append(("ratio", "does not enclose e^epsilon"))
        claimed = [number(self.data["delta"][end]) for end in ("lower", "upper")]
        self.problems += gap_problems("delta", *claimed)
        reached = self._reached(lower)
        if reached > claimed[1]:
            self.problems.append(("delta.upper", "is smaller than what the laws reach"))
        proved = max(self._proved(upper, lower), Fraction(0))
        if proved < claimed[0]:
            self.problems.append(("delta.lower", "is larger than what the multipliers prove"))
        exact = self.data["exact"]
        if exact is not None and not proved == reached == number(exact):
            self.problems.append(("exact", "is not what both the laws and the multipliers give"))

    def _reached(self, ratio: Fraction) -> Fraction:
        """Return the largest excess of an outcome, or of all, over all neighbours, at least 0."""
        laws = self._laws()
        worst = Fraction(0)
        for first, second, shift in self._neighbours(laws):
            other = dict(second)
            excess = [mass - ratio * other.get(z - shift, Fraction(0)) for z, mass in first]
            above = [entry for entry in excess if entry > 0]
            zero = Fraction(0)
            worst = max(worst, max(above, default=zero) if self.single else sum(above, zero))
        return worst

    def _laws(self) -> list[tuple[int, int | None, list[tuple[int, Fraction]]]]:
        """Read the laws with the counts that they are for, and check P1, P2 and P3."""
        result = []
        for index, entry in enumerate(self.data["laws"]):
            start = integer(entry["from"], 1)
            end = None if entry["to"] is None else integer(entry["to"], start)
            low = int(entry["lowest"])
            masses = [number(text) for text in entry["probabilities"]]
            law = list(enumerate(masses, start=low))
            place = f"laws[{index}]"
            if min(masses) < 0 or sum(masses) != 1:
                self.problems.append((place, "is not a probability law"))
            if dict(law).get(0) != self.eta:
                self.problems.append((place, "does not have P(0) = eta"))
            if sum(z * mass for z, mass in law) != 0:
                self.problems.append((place, "does not have mean 0"))
            least = -min(start, self.support)
            if any(mass and not least <= z <= self.support for z, mass in law):
                self.problems.append((place, "leaves its support"))
            result.append((start, end, law))
        self._check_counts([(start, end) for start, end, _ in result])
        return result

    def _check_counts(self, counts: Sequence[tuple[int, int | None]]) -> None:
        """Require that the laws follow each other and cover every count."""
        first = self.support if self.max_count is None else self.min_count
        starts = [first] + [-1 if end is None else end + 1 for _, end in counts[:-1]]
        wrong = [start for start, _ in counts] != starts or counts[-1][1] != self.max_count
        if wrong or (self.max_count is None and len(counts) != 1):
            self.problems.append(("laws", "do not cover every count once"))

    @staticmethod
    def _neighbours(
        laws: Sequence[tuple[int, int | None, list[tuple[int, Fraction]]]],
    ) -> Iterator[tuple[list[tuple[int, Fraction]], list[tuple[int, Fraction]], int]]:
        """Yield each pair of laws at counts n and n + shift, shift = ±1."""
        for start, end, law in laws:
            if end is None or end > start:
                yield law, law, 1
                yield law, law, -1
        for (_, _, law), (_, _, following) in pairwise(laws):
            yield law, following, 1
            yield following, law, -1

    def _proved(self, high: Fraction, low: Fraction) -> Fraction:
        """Return the lower bound of δ that the multipliers prove, after checking them."""
        dual = self.data["dual"]
        mass = self._by_count(dual["mass"])
        mean = self._by_count(dual["mean"])
        leaving: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
        entering: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
        total: dict[object, Fraction] = defaultdict(Fraction)
        same: dict[tuple[object, int], Fraction] = defaultdict(Fraction)
        for index, (n, other, z, text) in enumerate(dual["flows"]):
            flow = number(text)
            if flow < 0 or abs(n - other) != 1 or not (self._known(n) and self._known(other)):
                self.problems.append((f"dual.flows[{index}]", "is no multiplier of the program"))
            pair = n - other if self.max_count is None else (n, other)
            if self.single:
                total[pair] += flow
            else:  # one law for all counts: flows of one z are one multiplier
                same[pair, z] += flow
                total[pair] = max(total[pair], same[pair, z])
            leaving[self._entry(n, z)] += flow
            entering[self._entry(other, z + n - other)] += flow
        if sum(total.values()) > 1:
            self.problems.append(("dual.flows", "have a sum above 1"))
        bound = sum(mass.values(), start=Fraction(0)) * (1 - self.eta)
        for n in sorted({*mass, *mean, *(n for n, _ in leaving), *(n for n, _ in entering)}):
            reach = self.support if self.max_count is None else min(n, self.support)
            for z in range(-reach, self.support + 1):
                out, into = leaving[n, z], entering[n, z]
                if z == 0:
                    bound += self.eta * (out - high * into)
                elif out - high * into < mass.get(n, 0) + mean.get(n, 0) * z:
                    self.problems.append(("dual", f"is not feasible at count {n}, noise {z}"))
        return bound

    def _by_count(self, entries: Mapping[str, str]) -> dict[int, Fraction]:
        values = {int(count): number(text) for count, text in entries.items()}
        if not all(self._known(n) or (n == 0 and self.max_count is None) for n in values):
            self.problems.append(("dual", "has a multiplier of a count that does not occur"))
        return values

    def _known(self, count: int) -> bool:
        if self.max_count is None:
            return count >= self.support
        return self.min_count <= count <= self.max_count

    def _entry(self, count: int, z: int) -> tuple[int, int]:
        return (0 if self.max_count is None else count), z
