"""The table of lemmas: the worst pairs of output distributions over all neighbours.

TABLE is what a reader has to believe. A row has a name, a statement with its conditions, a source,
and lines that substitute the arguments of mechanisms:

    Name … word …: law(formula, …)**count; key formula; …

A word is a relation (without one the line is for any), the value of an argument (`noise=Laplace`,
`mu!=None`), `upper` for a pair that only bounds the mechanism from above, or `lower` for one that
only bounds it from below. Without these two, some neighbours attain the pair. The first line that
fits applies. Keys: `let` names a formula; `if` is a condition; `loss` is the supremum of the loss;
`rho` is a ρ with D_a ≤ ρa; `variance` is that of the noise of each answer, and `last` that of the
last one, the size; `alone`: the pair depends on ε, so it is exact for a single release only.

`worst` returns *ways*. A way is a product of factors (laws, count): `count` releases, each with any
one of the laws (P, Q). H of the mechanism is at most the maximum over the ways of a direction:
a record removed, or added. For other relations both directions have the same ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

from flint import arb, fmpq

from . import expressions, laws
from .expressions import Node, comparison, parse
from .laws import INFINITE, ONE, ZERO, Law, resolve
from .notation import Noise
from .numbers import Budget, NotProved, Number, Wrong, compare, sqrt, whole

TABLE = """
gaussian | Gaussian noise N(0, s²) on answers of ℓ₂-sensitivity D: the worst pair is N(μ, 1) against N(0, 1), μ = D/s | Dong, Roth, Su 2022, Theorem 2.7
    Gaussian: gaussian(l2_sensitivity/standard_deviation); variance standard_deviation**2
gaussian-space | noise N(0, Σ) on answers whose differences v lie in a space: the worst pair is N(μ, 1) against N(0, 1), μ² = sup v'Σ⁻¹v. An invertible linear map of the output changes nothing; nor does an output that is independent of the data and of all others | likelihood ratio of N(v, Σ) to N(0, Σ)
correlated | CorrelatedGaussian releases n + 2η and f_i + η + z_i, Var η = A/(4μ²), Var z_i = B/(4μ²), B = d + c², A = B/c². This is equivalent to independent releases of f_i − n/2 + z_i and n + 2η. The worst pair is N(m, 1) against N(0, 1): m = μ under add-remove, m = μ√(4d/B) ≤ 2μ under replace-one. Without the size, m² is μ² times the maximum of 4j(B − j)/B² ≤ 1 over integers j ≤ d under add-remove, and μ² times 4d/B − 4(d mod 2)/B² under replace-one | 4‖v − 1/2‖²/B + 1/A = 1 for entries 0 and 1
    CorrelatedGaussian add-remove release_size=True: gaussian(mu)
    CorrelatedGaussian replace-one release_size=True c=None: gaussian(mu*sqrt(4*dimension/(dimension + sqrt(dimension)))); last (sqrt(dimension) + 1)/mu**2
    CorrelatedGaussian replace-one release_size=True c!=None: gaussian(mu*sqrt(4*dimension/(dimension + c**2))); last (dimension/c**2 + 1)/mu**2
    CorrelatedGaussian add-remove c=None: gaussian(mu*sqrt(4*j*(B - j))/B); let B = dimension + sqrt(dimension); let j = min(dimension, floor(B/2 + 1/2)); variance (sqrt(dimension) + 1)**2/(4*mu**2)
    CorrelatedGaussian add-remove c!=None: gaussian(mu*sqrt(4*j*(B - j))/B); let B = dimension + c**2; let j = min(dimension, floor(B/2 + 1/2)); variance (dimension/c**2 + 1 + dimension + c**2)/(4*mu**2)
    CorrelatedGaussian add-remove upper: gaussian(mu)
    CorrelatedGaussian replace-one upper: gaussian(2*mu)
known-size | KnownSizeGaussian releases f − n/2 with noise of variance d/(4μ²), and may release the size with noise of variance 1/μ₀²: √(μ² + μ₀²) under add-remove (μ without the size), 2μ under replace-one | ‖v − 1/2‖² ≤ d/4
    KnownSizeGaussian add-remove size_mu=None: gaussian(mu); variance dimension/(4*mu**2)
    KnownSizeGaussian add-remove size_mu!=None: gaussian(sqrt(mu**2 + size_mu**2)); variance dimension/(4*mu**2) + 1/(4*size_mu**2); last 1/size_mu**2
    KnownSizeGaussian replace-one: gaussian(2*mu)
elliptical | EllipticalGaussian adds independent noise of variance Δ_j ΣΔ/μ² to answers that move by at most Δ_j: Σ Δ_j²/σ_j² = μ² at the corners of the box | substitution
    EllipticalGaussian: gaussian(mu)
one-sided | OneSidedGaussian releases n + η and f_j + Δ_j η/2 + z_j, Var η = S/(|Δ|μ²), Var z_j = Δ_j S/(4μ²), S = ΣΔ + |Δ|, |Δ| the Euclidean norm: μ under add-remove | as for correlated
    OneSidedGaussian add-remove: gaussian(mu)
groups | DisjointGroupsGaussian: given n_j + 2η_j the counts are f_jk − n_j/2 + z_jk. Adding a record gives m² = d/(4 Var z) + 1/(4 Var η); a replacement gives d/Var z within a row, and twice the former between two rows. Designed for add-remove, Var z = (d + √d)/(4μ²) and Var η = (1 + √d)/(4μ²); for replace-one, Var z = d/μ² and Var η = 1/μ² (4/μ² as printed) | as for correlated
    DisjointGroupsGaussian add-remove adjacency=add-remove: gaussian(mu)
    DisjointGroupsGaussian replace-one adjacency=add-remove: gaussian(mu*sqrt(4*dimension/(dimension + sqrt(dimension)))); variance (sqrt(dimension) + 1)**2/(4*mu**2)
    DisjointGroupsGaussian replace-one adjacency=replace-one: gaussian(mu)
    DisjointGroupsGaussian add-remove adjacency=replace-one as_printed=False: gaussian(mu*sqrt(1/2)); variance (dimension + 1)/mu**2
    DisjointGroupsGaussian add-remove adjacency=replace-one as_printed=True: gaussian(mu*sqrt(5/16)); variance (dimension + 4)/mu**2
optimal-groups | OptimalGroups is μ-GDP, and no better, under the relation that it is designed for | Σ w'Σ⁻¹w of entries ±1 with Σ's three eigenvalues is at most 1, and 1 for some
    OptimalGroups add-remove adjacency=add-remove: gaussian(mu)
    OptimalGroups replace-one adjacency=replace-one: gaussian(mu)
ellipse | noise of covariance Σ/μ² for records of at most k ones, where Σ has the eigenvalue a₁ on (1, …, 1) and a₂ on its complement: a record with j ones has v'Σ⁻¹v = j²/(d a₁) + (j − j²/d)/a₂. CountEllipse has 1 at j = k, and at most 1 for j < k if 2k ≤ d: a₁ = √P S, a₂ = √(Q/(d − 1)) S, S = √P + √((d − 1)Q), P = k²/d, Q = k − P. OptimalEllipse has the least trace among those with at most 1 for all j ≤ k, so it has 1 for some j | eigenvectors
    CountEllipse add-remove: gaussian(mu); if 2*sparsity <= dimension; variance (sparsity + sqrt((dimension - 1)*sparsity*(dimension - sparsity)))**2/(dimension**2*mu**2)
    OptimalEllipse add-remove: gaussian(mu); if sparsity <= dimension
    OptimalEllipse add-remove upper: gaussian(mu); if 2*sparsity <= dimension; variance (sparsity + sqrt((dimension - 1)*sparsity*(dimension - sparsity)))**2/(dimension**2*mu**2)
matrix-variate | matrix noise with row covariance Σ and column covariance Ψ on answers at Frobenius distance at most D: μ = D/√(λ(Σ)λ(Ψ)), λ the least eigenvalue | ‖Σ^(−1/2) X Ψ^(−1/2)‖ ≤ ‖X‖/√(λ(Σ)λ(Ψ)), with equality at D uv'
laplace | Laplace noise of scale b on answers of ℓ₁-sensitivity D: the worst pair is Laplace laws at distance D/b. If the entries move by given s_i, it is the product of Laplace laws at distances |s_i|/b | the trade-off function of a sum of ℓ₁-distances is worst in one coordinate: Dong, Roth, Su 2022
    Laplace: laplace(l1_sensitivity/scale); variance 2*scale**2
    LaplaceVector upper: pure(shifted/scale); variance 2*scale**2
discrete-laplace | masses ∝ e^(−|z|/b) on the integers, shifted by up to D: log-concave, so the full shift is worst. Clipping to an interval of length at least D merges only outcomes of equal loss | best events are half-lines
    DiscreteLaplace: discrete_laplace(scale, sensitivity); variance 2*exp(-1/scale)/(1 - exp(-1/scale))**2
    TruncatedGeometric: discrete_laplace(scale, sensitivity); if sensitivity <= high - low
discrete-gaussian | masses ∝ e^(−z²/(2v)) on the integers, shifted by up to D: log-concave, so the full shift is worst; D_a ≤ a D²/(2v) | Canonne, Kamath, Steinke 2020
    DiscreteGaussian: discrete_gaussian(parameter, sensitivity)
discrete-correlated | DiscreteCorrelatedGaussian releases 2f_i − n + Z_i, Z_i of parameter v = (d + c²)/μ², and pn + W, W of parameter q²v, c = p/q: adding a record moves them by ±1 and p, a replacement by up to 2 and by 0 | reflection
    DiscreteCorrelatedGaussian add-remove: discrete_gaussian(v, 1)**dimension * discrete_gaussian(v*denominator**2, c*denominator); let v = (dimension + c**2)/mu**2; rho mu**2/2
    DiscreteCorrelatedGaussian replace-one: discrete_gaussian(v, 2)**dimension; let v = (dimension + c**2)/mu**2; if denominator >= 1
own-density | noise of an even log-concave density, shifted by up to D: best events are half-lines, and the full shift is worst | densities.py
skellam | a difference of two Poisson variables, shifted by up to D: log-concave, so the full shift is worst | best events are half-lines
    Skellam: skellam(variance, sensitivity); variance variance
logistic | logistic noise of scale b, shifted by up to D: log-concave, so the full shift is worst | best events are half-lines
    Logistic: logistic(sensitivity/scale); variance pi()**2*scale**2/3
truncated-laplace | Laplace noise of scale b truncated to [−A, A], shifted by up to D ≤ A: log-concave, so the full shift is worst | best events are half-lines
    TruncatedLaplace: truncated_laplace(sensitivity/scale, bound/scale); if sensitivity <= bound
staircase | a density that falls by the factor e^(−ε) over each length D, in two steps: at shift D the losses are ε, 0 and −ε; H grows with the shift s, as P(|noise| ≤ s/2) does | Geng, Viswanath 2014
    Staircase: response(side, middle, side*exp(-epsilon)); loss epsilon; if epsilon > 0; let h = (1 - exp(-epsilon))/(2*(gamma + exp(-epsilon)*(1 - gamma))); let side = 1/2 + h*min(gamma, 1 - gamma); let middle = h*max((1 - 2*gamma)*exp(-epsilon), 2*gamma - 1)
integer-noise | a law on the integers, shifted by each of −D, …, D: neighbours may move the count up or down | the definition
count-noise | the symmetric law on −D, …, D of the published formula, shifted by 1 | Sadeghi, Asoodeh, Calmon, Definition 2
table | P and Q are the laws on two data sets, the only ones: P with the record and Q without it. P against Q if it is removed, Q against P if it is added, in all releases alike | the definition
channel | a row of probabilities for each input. Neighbours are any two inputs, or the listed pairs, in both orders | the definition
randomized-response | the true category has odds e^ε to 1 against each other category: (e^ε, k − 2, 1)/(e^ε + k − 1) against its reverse | the definition
    RandomizedResponse: response(exp(epsilon), categories - 2, 1); loss epsilon
local-report | a report is a set of categories. Of two given categories it contains only the first, only the second, or both or neither: (a, r, b) against (b, r, a) | symmetry of the mechanism in the categories
    SubsetSelection size=None: response(exp(epsilon), exp(epsilon)*(d - 1)/(categories - d) + (categories - d - 1)/d, 1); loss epsilon; let d = max(1, floor(categories/(exp(epsilon) + 1) + 1/2))
    SubsetSelection size!=None: response(exp(epsilon), exp(epsilon)*(size - 1)/(categories - size) + (categories - size - 1)/size, 1); loss epsilon; if size < categories
    UnaryEncoding optimised=False: response(p*p, 2*p*(1 - p), (1 - p)*(1 - p)); loss epsilon; let p = exp(epsilon/2)/(1 + exp(epsilon/2))
    UnaryEncoding optimised=True: response((1 - q)/2, 1/2, q/2); loss epsilon; let q = 1/(1 + exp(epsilon))
    Rappor: response((1 - flip/2)**2, flip*(1 - flip/2), flip**2/4)
guaranteed | every (ε, δ)-DP mechanism is dominated by the masses (δ, (1 − δ)e^ε/(1 + e^ε), (1 − δ)/(1 + e^ε), 0) against their reverse; Guaranteed has this pair | Kairouz, Oh, Viswanath 2015
    Guaranteed: guaranteed(epsilon, delta)
exponential | scores that move against each other by at most t: an event of probability p rises to at most p e^t/(1 + p(e^t − 1)), and the gain is largest where (1 + p(e^t − 1))² = e^(t−ε); D_a ≤ a t²/8. For a quantile on a line, the score −|N(y) − pn| moves by at most 1 if a record is replaced, and by at most max(p, 1 − p) if one is added. With one record at an end of the range, and enough others at one point, it moves by that much in both directions, below the point and above it | Dong, Durfee, Rogers 2020; Cesar, Rogers 2021
    ExponentialMechanism: bounded_range(epsilon); alone
    PrivateQuantile add-remove adjacency=add-remove: bounded_range(epsilon); alone; if lower < upper; if probability > 0; if probability < 1
    PrivateQuantile replace-one adjacency=replace-one: bounded_range(epsilon); alone; if lower < upper; if probability > 0; if probability < 1
    ReportNoisyMax noise=Gumbel returns=index: bounded_range(sensitivity*(2 - monotone)/scale); alone
permute-and-flip | exponential noise on scores that move against each other by at most t of its units: H is at most that of Laplace laws at distance t, and two candidates attain it. Proof: let p(x) be the probability that the largest noisy score belongs to a given set of candidates, if their scores are raised by x. Raising them by t, with all others fixed, is worst, so compare p(x + t) with p(x). The exponential density equals its tail. So the density at y of the largest of several noisy scores is at most the probability that exactly one of them is above y, and so at most that of any being above. Integrated over the largest of the set this is p' ≤ 1 − p; with the roles exchanged, p' ≤ p. The distribution function of a Laplace law has p' = min(p, 1 − p), so p moves at most as far in t | Ding, Kifer, et al. 2021; McKenna, Sheldon 2020
    PermuteAndFlip: laplace(epsilon); alone
    ReportNoisyMax noise=Exponential returns=index: laplace(sensitivity*(2 - monotone)/scale); alone
noisy-max | the index of the largest noisy score, where scores move against each other by at most t of the noise's units. From above: no loss exceeds t for Laplace noise, and H is at most that of the noise of one score shifted by t; for Gaussian noise each of k candidates adds at most H of N(t, 1), given the noise of the others. From below: all but two candidates are far behind, and the first of the two is chosen if a difference of two noises is below the difference a of the scores, which moves by t. For Gaussian noise the pairs of all a have the H of N(t/√2, 1) together; for Laplace noise P(difference > x) = (2 + x)e^(−x)/4 for x > 0, taken from −t/2 to t/2, from −t to 0, and from −1 − t to −1 | Dwork, Roth 2014, Claim 3.9
    ReportNoisyMax upper noise=Gaussian returns=index: several(sensitivity*(2 - monotone)/scale, candidates)
    ReportNoisyMax lower noise=Gaussian returns=index: gaussian(sensitivity*(2 - monotone)/scale*sqrt(1/2)); alone
    ReportNoisyMax upper noise=Laplace returns=index: laplace(sensitivity*(2 - monotone)/scale)
    ReportNoisyMax lower noise=Laplace returns=index: event(1 - q, q); let x = sensitivity*(2 - monotone)/scale/2; let q = (2 + x)*exp(-x)/4
    ReportNoisyMax lower noise=Laplace returns=index: event(1/2, q); let x = sensitivity*(2 - monotone)/scale; let q = (2 + x)*exp(-x)/4
    ReportNoisyMax lower noise=Laplace returns=index: event(3*exp(-1)/4, q); let x = 1 + sensitivity*(2 - monotone)/scale; let q = (2 + x)*exp(-x)/4
above-threshold | threshold noise of scale s and query noise of scale r, in units of the sensitivity. The supremum of the loss is 1/s + 2c/r, or 1/s + c/r if all answers move in one direction; with a fresh threshold, c times that of c = 1. Streams with answers at a and 1 come arbitrarily close to it. Endless streams, and streams without query noise, distinguish neighbours with certainty in the limit; with noisy values the loss is unbounded. From below: the first answer, 1/2 below the threshold on one dataset and 1/2 above it on the other, is yes if Z < 1/2 instead of Z > 1/2, Z the difference of the noises | Lyu, Su, Li 2017
    AboveThreshold variant=endless: disjoint()
    AboveThreshold query_scale=0: disjoint()
    AboveThreshold upper variant=noisy-values: disjoint()
    AboveThreshold lower variant=noisy-values: unbounded()
    AboveThreshold upper variant=standard: pure(sensitivity*(1/threshold_scale + count*(2 - monotone)/query_scale)); if query_scale > 0
    AboveThreshold upper variant=fresh-threshold: pure(sensitivity*count*(1/threshold_scale + (2 - monotone)/query_scale)); if query_scale > 0
    AboveThreshold lower variant=standard: reaching(sensitivity*(1/threshold_scale + count*(2 - monotone)/query_scale)); if query_scale > 0
    AboveThreshold lower variant=fresh-threshold: reaching(sensitivity*count*(1/threshold_scale + (2 - monotone)/query_scale)); if query_scale > 0
    AboveThreshold lower variant=standard: event(1 - t, t); let s = threshold_scale/sensitivity; let r = query_scale/sensitivity; let t = (r**2*exp(-1/(2*r)) - s**2*exp(-1/(2*s)))/(2*(r**2 - s**2)); if query_scale > 0; if query_scale != threshold_scale
partition-selection | keys are released such that the four inequalities of (ε, δ)-DP hold for every number of users; the key of a single user is released with probability δ | Desfontaines, Voss, Gipson, Mandayam 2022
    PartitionSelection upper add-remove: guaranteed(epsilon, delta)
    PartitionSelection lower add-remove: event(delta, 0)
threshold | counts of users by key, each shown if it exceeds τ after noise. A user is in k keys, of which j are new, with no other user. All j new keys stay hidden with probability P(noise < τ − D)^j; otherwise one is shown, which reveals the user. The counts of the other k − j keys move by D | the definition
counter | (all arities but the first are at least 2.) An input is in h measured sums of a tree with noise of scale h/ε, or of standard deviation √h/μ; or it moves R x by a vector of norm μ in units of the noise: h Laplace laws at distance ε/h, or N(μ, 1) against N(0, 1). This is exact if n ≥ k^(h − 1) and the outputs determine the sums, else an upper bound. With c contributions the noise is c times as large. The first c positions fill as many whole cells of sizes K_i as they can, and no other positions have a larger Σ s² in any level. The outputs (pooled = r) show Σ (1 − K_(i + r + 1)/K_i)s² of it, and no more if they end before the last of the filled cells of the first level | Dwork, Naor, Pitassi, Rothblum 2010; post-processing
    BinaryTree mu!=None contributions=1: gaussian(mu)
    SquareRootFactorization contributions=1: gaussian(mu)
    BridgedTree mu!=None contributions=1 released=measurements: gaussian(mu)
    BridgedTree mu!=None contributions!=1 released=measurements: gaussian(mu*sqrt(cells_square/height)/contributions)
    BridgedTree mu!=None released=outputs: gaussian(mu*sqrt(shown_square/height)/contributions); if steps >= cells_end
    SquareRootFactorization upper contributions!=1: gaussian(mu)
    SquareRootFactorization lower contributions!=1: gaussian(mu/contributions)
    BridgedTree upper mu!=None released=outputs: gaussian(mu*sqrt(shown_square/height)/contributions)
    BinaryTree mu=None contributions=1: laplace(epsilon/height)**height; loss epsilon
    BridgedTree mu=None contributions=1 released=measurements: laplace(epsilon/height)**height; loss epsilon
    BridgedTree upper mu=None contributions=1: laplace(epsilon/height)**height; loss epsilon
    BridgedTree lower mu=None released=measurements: reaching(epsilon); if steps >= contributions
    KaryTree contributions=1: laplace(epsilon/height)**height; if steps >= arity**(height - 1); loss epsilon
    KaryTree BinaryTree BridgedTree upper mu=None: pure(epsilon)
composition | releases one after the other, independent or chosen after seeing the earlier outcomes. The pairs of different releases need not belong to one record or attribute: a composition of two channels may compare the inputs 1 and 2 in the first, and 3 and 4 in the second, as if each were about another attribute of the record. Every such choice is bounded: a product of laws that are above each pair of their release is above all compositions of these pairs (lattice.py, Lemma products) | Zhu, Dong, Wang 2022
poisson | each record takes part independently with probability q: ((1 − q)Q + qP, Q) if it is removed, (P, (1 − q)P + qQ) if it is added. Under replace-one for Gaussian noise only: the sensitivity bounds what one record adds to the answer, μ in units of the noise, so the two records move it by up to μ in opposite directions: means 0 and μ with weights 1 − q and q, against means 0 and −μ | Zhu, Dong, Wang 2022
without-replacement | m of n records take part, and any two records are neighbours: both mixtures of a replace-one pair with q = m/n, in both orders | Balle, Barthe, Gaboardi 2018
allocation | a record takes part in k of t steps, chosen uniformly. From above: if the steps were revealed, it would be a composition of k releases; H is jointly convex, so hiding them is no worse. From below: the first step alone is a release with sampling rate q = k/t | joint convexity of H; post-processing
shuffled | the reports of n users in random order, where one user has another record. From above: no worse than that user's report alone; and if any two records have losses of at most t, no worse than `clones` of noises.py. From below, for randomised response, which reports the true category with probability p and each other one with q: if all users have one category, all reports are that category with probability p^n, and if one user has another, with p^(n − 1)q | post-processing; Feldman, McMillan, Talwar 2021, Theorem 3.1; the definition
matrix | the noise C⁻¹Z of a lower triangular Toeplitz matrix C, Z of standard deviation s. Neighbours differ in the steps of one record, in each by a vector of norm at most 1 (under any relation): N(Δ/s, 1) against N(0, 1). If the columns of a record's steps share no row, Δ² is the sum of their squared norms, largest for the first steps. The square-root strategy has c_j = C(2j, j)/4^j | Denisov, McMahan, Rush, Smith, Thakurta 2022
rank-one | noise z√σ v, z ~ N(0, 1), v uniform on the sphere of R^M, on answers at distance D. From below: the output is within r < D of the first answer with probability erf(r/√(2σ)). From the second answer this needs |z|√σ in [D − r, D + r], a direction towards the first, and sin² ≤ (r/D)² of the angle with their line, where sin² is a Beta((M − 1)/2, 1/2) variable. E v_j² = 1/M | Ji, Li, Definition 8; geometry
    RankOneGaussian upper: disjoint(); variance sigma_star/dimension
mixture | N(0, s²) around a random one of several answers: Σ w_i N(m_i, 1) against N(0, 1), and the reverse; under replace-one against the opposite means | Choquette-Choo et al. 2024
pure | losses in [−ε, ε] are dominated by randomised response with ε; then D_a ≤ a ε²/2 | Kairouz, Oh, Viswanath 2015; Bun, Steinke 2016
"""  # noqa: E501


@dataclass(frozen=True)
class Line:
    """One line of a row: mechanisms, conditions in words, law and keys."""

    row: str
    names: tuple[str, ...]
    words: tuple[str, ...]
    law: Node
    also: tuple[tuple[str, Any], ...]

    def fits(self, noise: Noise, adjacency: str | None, *, any_relation: bool = False) -> bool:
        """Return whether the words fit a mechanism and a relation."""
        for word in self.words:
            key, equal, wanted = word.replace("!=", "=").partition("=")
            if not equal and not any_relation and word not in ("upper", "lower", adjacency):
                return False
            if equal and (str(noise.arguments.get(key, "None")) == wanted) == ("!=" in word):
                return False
        return True

    def entries(self, key: str) -> list[Any]:
        """Return the values of a key: comparisons for `if`, (name, formula) for `let`."""
        return [found for k, found in self.also if k == key]

    def factors(self) -> list[tuple[Node, Node]]:
        """Return the factors of the product of laws, with their counts."""
        found, waiting = list[tuple[Node, Node]](), [self.law]
        for node in waiting:
            if node.op == "*":
                waiting += node.args
            else:
                found.append(node.args if node.op == "**" else (node, expressions.ONE))
        return found


def _entry(text: str) -> tuple[str, Any]:
    key, _, rest = text.partition(" ")
    if key == "let":
        name, _, formula = rest.partition(" = ")
        return key, (name, parse(formula))
    return key, comparison(rest) if key == "if" else parse(rest) if rest else None


@dataclass(frozen=True)
class Row:
    """A lemma and its source."""

    statement: str
    source: str


LEMMAS: dict[str, Row] = {}
"""Name → lemma."""
LINES: dict[str, list[Line]] = {}
"""Mechanism → its lines, in order."""
for _text in TABLE.strip().split("\n"):
    if not _text.startswith(" "):
        _row, _statement, _source = _text.split(" | ")
        LEMMAS[_row] = Row(_statement, _source)
        continue
    _head, _, _body = _text.strip().partition(": ")
    _law, *_rest = _body.split("; ")
    _line = Line(
        _row,
        tuple(word for word in _head.split() if word[0].isupper()),
        tuple(word for word in _head.split() if not word[0].isupper()),
        parse(_law),
        tuple(map(_entry, _rest)),
    )
    for _name in _line.names:
        LINES.setdefault(_name, []).append(_line)

Factor: TypeAlias = tuple[tuple[Law, ...], int]
Way: TypeAlias = tuple[Factor, ...]


@dataclass
class Worst:
    """The ways of both directions, and the names of the lemmas they rest on.

    `lower` has ways that bound the mechanism from below; None if neighbours attain the ways.
    """

    remove: list[Way]
    add: list[Way]
    rows: set[str]
    lower: list[Way] | None = None

    @property
    def ways(self) -> list[Way]:
        """All ways, each once."""
        return self.remove + [way for way in self.add if not any(way is w for w in self.remove)]


def one(*found: Law) -> list[Way]:
    """Return a way of a single release for each law."""
    return [(((law,), 1),) for law in found]


def in_both_orders(row: str, *found: Law) -> Worst:
    """Return the ways of single releases of (P, Q) and (Q, P), for each law."""
    ways = one(*found)
    ways += one(*(laws.swapped(law) for law in found if not law.symmetric))
    return Worst(ways, ways, {row})


# --- arguments ----------------------------------------------------------------------------------
Value: TypeAlias = Callable[[str], Number]
DERIVED = {"height", "denominator", "cells_square", "shown_square", "cells_end"}
"""Names in formulas that are not arguments; `particular` computes them."""
DOMAINS = {
    "> 0": "standard_deviation l2_sensitivity l1_sensitivity scale mu c size_mu parameter threshold"
    " threshold_scale bound variance noise_multiplier sensitivity sigma_star radius",
    ">= 0": "epsilon query_scale",
    "integer >= 1": "dimension sparsity groups count steps counts users partitions contributions"
    " population sample_size selected support participations size buckets levels separation bands",
    "integer >= 2": "categories arity candidates",
    "in [0, 1]": "sampling_prob gamma delta flip step_sampling_prob",
    "in (0, 1)": "eta",
    "integer": "low high lowest",
    "integer >= 0": "pooled",
}
DOMAIN = {name: domain for domain, names in DOMAINS.items() for name in names.split()}
"""Argument → its domain in every mechanism, except those in `STRICTER`."""
FLAGS = {"monotone", "subtraction", "release_size", "as_printed", "optimised", "adaptive"}
STRICTER = dict.fromkeys(
    [
        *((name, "sensitivity") for name in ("DiscreteLaplace", "DiscreteGaussian", "Skellam")),
        *((name, "sensitivity") for name in ("IntegerNoise", "TruncatedGeometric")),
    ],
    "integer >= 1",
)


def domain(noise: Noise, key: str) -> str:
    """Return the domain of an argument; a selection has the domains of its noise."""
    return STRICTER.get((noise.arguments.get("noise", noise.name), key), DOMAIN.get(key, ""))


class Arguments:
    """The arguments of a mechanism, as numbers checked to be in their domains."""

    def __init__(self, noise: Noise, value: Value) -> None:
        self.noise, self.value, self.known = noise, value, dict[str, Number]()
        for key in FLAGS & noise.arguments.keys():
            if noise[key] not in ("True", "False"):
                raise self.wrong(key, "expected True or False")
        for key, text in noise.arguments.items():
            if isinstance(text, str) and text != "None" and key in DOMAIN:
                self[key]

    def __contains__(self, key: str) -> bool:
        return key in self.noise.arguments or key in self.known or key in DERIVED

    def evaluated(self, node: Node) -> Number:
        """Return the value of a formula in the arguments."""
        return expressions.value(node, Budget(seconds=1e9), at=self)

    def __getitem__(self, key: str) -> Number:
        if key not in self.known and key in self.noise.arguments:
            self.known[key] = self._argument(key)
        elif key not in self.known:
            from .particular import derived

            found = derived(self, key)
            self.known[key] = found if isinstance(found, arb) else fmpq(found)
        return self.known[key]

    def _argument(self, key: str) -> Number:
        text = self.noise[key]
        if key in FLAGS:
            return fmpq(text == "True")
        if not isinstance(text, str):
            raise self.wrong(key, "expected a number")
        number = self.value(text)
        wanted = domain(self.noise, key)
        if wanted and not _within(number, wanted):
            raise self.wrong(key, f"expected a number {wanted}")
        return number

    def integer(self, key: str) -> int:
        """Return an argument that is a whole number."""
        return whole(self[key])

    def numbers(self, key: str, relation: str = ">=") -> list[Number]:
        """Return a list of numbers, each in `relation` to 0 (any number if it is empty)."""
        entries = self.noise[key]
        if not isinstance(entries, list) or not all(isinstance(x, str) for x in entries or [0]):
            raise self.wrong(key, "expected a list of numbers")
        found = [self.value(text) for text in entries]
        if relation and not all(resolve(x, relation, ZERO) for x in found):
            raise self.wrong(key, f"expected numbers {relation} 0")
        return found

    def masses(self, key: str) -> list[Number]:
        """Return a list of numbers ≥ 0 whose sum is 1, as far as balls decide."""
        found = self.numbers(key)
        if compare(sum(found, ZERO), "!=", ONE):
            raise self.wrong(key, "does not sum to 1")
        return found

    def wrong(self, key: str, reason: str) -> Wrong:
        """Return the error of an argument."""
        return Wrong("theorem.mechanism", f"{self.noise.name} with {key}: {reason}")


def _within(x: Number, domain: str) -> bool:
    if domain.startswith("integer"):
        if isinstance(x, arb):
            raise NotProved("the value of an integer argument is not exact")
        least = domain.partition(">=")[2]
        return bool(x.q == 1 and (not least or x >= int(least)))
    if domain.startswith("in"):
        ends = (">", "<") if "(" in domain else (">=", "<=")
        return resolve(x, ends[0], ZERO) and resolve(x, ends[1], ONE)
    relation, _, number = domain.partition(" ")
    return resolve(x, relation, fmpq(int(number)))


# --- substitution -------------------------------------------------------------------------------
def law_of(name: str) -> Callable[..., Law]:
    """Return the function that constructs a law of the table."""
    if name in LAWS:
        return LAWS[name]
    if name not in RARER:
        raise NotProved(f"the table of lemmas has no law {name}")
    found: Callable[..., Law] = getattr(import_module(".noises", __package__), name)
    return found


LAWS: dict[str, Callable[..., Law]] = {
    "gaussian": laws.gaussian,
    "laplace": laws.laplace,
    "guaranteed": laws.guaranteed,
    "response": laws.response,
    "pure": partial(laws.guaranteed, delta=ZERO),
    "event": laws.event,
    "disjoint": laws.disjoint,
    "unbounded": partial(laws.reaching, INFINITE),
    "reaching": laws.reaching,
}
RARER = {"bounded_range", "discrete_gaussian", "discrete_laplace", "logistic", "several",
         "skellam", "truncated_laplace"}  # fmt: skip
"""Laws that are defined in `noises`."""


def _conditions(line: Line, args: Arguments) -> bool:
    """Return whether the conditions of a line hold; if so, define its names."""
    value = args.evaluated
    met = all(resolve(value(a), relation, value(b)) for a, relation, b in line.entries("if"))
    for name, formula in line.entries("let") if met else ():
        args.known[name] = value(formula)
    return met


def _substituted(line: Line, args: Arguments) -> Way:
    """Return the product of laws of a line for the given arguments."""
    way: list[Factor] = []
    for node, count in line.factors():
        values: list[Any] = [args.evaluated(a) for a in node.args]
        if node.op in ("discrete_laplace", "discrete_gaussian", "skellam"):
            values[1] = whole(values[1])
        law = law_of(node.op)(*values)
        if line.entries("loss") and node.op == "response":
            law = replace(law, largest=args["epsilon"], grid=args["epsilon"])
        if line.entries("alone"):
            law = replace(law, only_alone=True)
        way.append(((law,), whole(args.evaluated(count))))
    if sum(n for _, n in way) > 10**9:
        raise NotProved("a composition has more than 10^9 releases")
    return tuple(way)


def by_lines(args: Arguments, adjacency: str | None) -> Worst | None:
    """Return the first line that applies, or else the upper and lower lines; None without one."""
    fitting = [line for line in LINES.get(args.noise.name, ()) if line.fits(args.noise, adjacency)]
    upper: list[Way] = []
    below: list[Way] = []
    for line in fitting:
        plain = not {"upper", "lower"} & {*line.words}
        if (upper and "lower" not in line.words) or not _conditions(line, args):
            continue
        way = _substituted(line, args)
        if "lower" in line.words:
            below.append(way)
            continue
        upper = [way]
        if plain:
            alike = all(f[0].symmetric for f, _ in way)
            back: Way = tuple(((laws.swapped(f[0]),), n) for f, n in way)
            both = upper if alike else [way, back]
            return Worst(both, both, {line.row})
    return Worst(upper, upper, {line.row for line in fitting}, below) if upper else None


def relation_of(noise: Noise, adjacency: str | None) -> str | None:
    """Return the relation of the theorem, or else the one the mechanism is designed for."""
    made = noise.arguments.get("adjacency")
    return adjacency or (made if isinstance(made, str) else None)


def has_relation(noise: Noise, adjacency: str | None) -> bool:
    """Return whether `RELATION` permits a relation; None permits replace-one."""
    wanted = RELATION.get(noise.name)
    return wanted in (None, adjacency or "replace-one")


# --- mechanisms with lists, matrices and mechanisms inside ---------------------------------------
Special: TypeAlias = Callable[[Arguments, str | None, Budget], Worst]


def merged(way: Way) -> Way:
    """Return a way with its Gaussian factors merged: their μ² add up."""
    smooth = [(found, count) for found, count in way if len(found) == 1 and found[0].mu is not None]
    if not smooth or (len(smooth) == 1 and smooth[0][1] == 1):
        return way
    square = sum((2 * count * found[0].rho for found, count in smooth if found[0].rho), ZERO)
    rest = tuple(factor for factor in way if factor not in smooth)
    return (((laws.gaussian(sqrt(square), square),), 1), *rest)


# --- all mechanisms -----------------------------------------------------------------------------
SPECIAL = {
    "compositions": "Composed PoissonSubsampled SampledWithoutReplacement",
    "densities": "AdditiveNoise",
    "particular": "BoundedCountNoise BridgedTree Channel GaussianThreshold "
    "GeneralGaussian IntegerNoise LaplaceThreshold LaplaceVector MatrixMechanism "
    "MatrixVariateGaussian MixtureOfGaussians RandomAllocation RankOneGaussian Shuffled Tabulated",
}
"""Module → the mechanisms whose worst pairs are computed by its WORST, not by lines."""
RELATION = {
    "RandomizedResponse": "replace-one",
    **dict.fromkeys(("Rappor", "SubsetSelection", "UnaryEncoding"), "replace-one"),
    "SampledWithoutReplacement": "replace-one",
    "Shuffled": "replace-one",
    "RandomAllocation": "add-remove",
    **dict.fromkeys(("GaussianThreshold", "LaplaceThreshold"), "add-remove"),
}
"""Mechanism → the only relation under which the table has it."""

POSITIVE = {"EllipticalGaussian": "sensitivities", "OneSidedGaussian": "bounds"}
"""Mechanism → its list of positive numbers."""


def worst(noise: Any, adjacency: str | None, value: Value, budget: Budget) -> Worst:
    """Return the worst pairs of a mechanism under a relation.

    Raises Wrong for arguments outside their domain, and NotProved if the table has no row.
    """
    if not isinstance(noise, Noise):
        raise Wrong("theorem.mechanism", "expected a mechanism")
    if not has_relation(noise, adjacency):
        raise NotProved(f"the table of lemmas has {noise.name} under {RELATION[noise.name]}")
    args = Arguments(noise, value)
    if noise.name in POSITIVE:
        args.numbers(POSITIVE[noise.name], ">")
    for module, names in SPECIAL.items():
        if noise.name in names.split():
            own: Special = import_module(f".{module}", __package__).WORST[noise.name]
            return own(args, adjacency, budget)
    found = by_lines(args, relation_of(noise, adjacency))
    if found is None:
        under = f" under {adjacency}" if adjacency else " without its relation"
        raise NotProved(f"the table of lemmas has no row for {noise.name}{under}, as it is given")
    return found
