"""The table of lemmas: from a mechanism to the worst pairs of its neighbours.

`LEMMAS` is what a reader has to believe: a name, a sentence, a source. `worst` substitutes the
arguments of a mechanism. It returns *ways*: each is a product of factors, and a factor is one or
more laws (P, Q), of which neighbours may have any, with a number of times. H of the mechanism is at
most the largest over the ways, for each direction: a record removed, and a record added. Under
another relation there is one direction, which contains the laws of both.

`attained` says what of it is no more than neighbours have: the whole curve; the supremum of the
loss; or nothing, where the ways are an upper bound and refute nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from flint import arb, fmpq, fmpq_mat

from . import laws
from .laws import INFINITE, ONE, ZERO, Answer, Law, table, told
from .notation import Noise
from .numbers import (
    Budget,
    NotProved,
    Number,
    Wrong,
    ball,
    compare,
    exp,
    maximum,
    sqrt,
    whole,
)


@dataclass(frozen=True)
class Row:
    """A lemma: what it says, and where it is proved."""

    statement: str
    source: str


TABLE = """
gaussian | Gaussian noise N(0, s²) on an answer of ℓ₂-sensitivity D: N(μ, 1) against N(0, 1), μ = D/s | Dong, Roth, Su 2022, Theorem 2.7
gaussian-space | N(0, Σ) whose answers move by a v of a space: N(μ, 1) against N(0, 1), μ² = sup v'Σ⁻¹v; a one-to-one linear map, or one that an independent output does not see, changes nothing | likelihood ratio of N(v, Σ) to N(0, Σ)
correlated | n + 2η, f_i + η + z_i with variances A and B over 4μ², B = d + c², A = B/c²: they are as good as f_i − n/2 + z_i and n + 2η, independent: add-remove μ, replace-one μ√(4d/B); without the size μ² times the largest 4j(B − j)/B², j ≤ d, or 4d/B − 4(d mod 2)/B² | 4‖v − 1/2‖²/B + 1/A = 1 for entries 0 and 1
known-size | f − n/2 with noise of variance d/(4μ²), and the size with 1/μ₀²: add-remove √(μ² + μ₀²), replace-one 2μ | ‖v − 1/2‖² ≤ d/4
elliptical | variances Δ_j ΣΔ/μ² over the box of Δ: Σ Δ_j²/σ_j² = μ² at its corners | substitution
one-sided | n + η and f_j + Δ_j η/2 + z_j, Var η = S/(|Δ|μ²), Var z_j = Δ_j S/(4μ²), S = ΣΔ + |Δ|: add-remove μ, replace-one μ√(4ΣΔ/S) | as for correlated
groups | DisjointGroupsGaussian, given n_j + 2η_j the counts are f_jk − n_j/2 + z_jk: a record adds d/(4 Var z) + 1/(4 Var η), a replacement d/Var z within a row, twice the former between two | as for correlated
optimal-groups | OptimalGroups has μ under the relation that it is made for | Σ w'Σ⁻¹w of entries ±1 with Σ's three eigenvalues is at most 1
ellipse | for k-sparse 0/1 records, Σ/μ² with the eigenvalue a₁ on (1, …, 1) and a₂ else: j ones have j²/(d a₁) + (j − j²/d)/a₂, a quadratic in j; a difference of n entries ±1 of sum t has t²/(d a₁) + (n − t²/d)/a₂ | eigenvectors; CountEllipse: j = k, a₁ = √P S, a₂ = √(Q/(d − 1)) S, S = √P + √((d − 1)Q), P = k²/d, Q = k − P
matrix-variate | noise with row and column covariances, answers of Frobenius distance ≤ D: μ = D/√(least eigenvalues' product) | ‖Σ^(−1/2) X Ψ^(−1/2)‖ ≤ ‖X‖/√(λ(Σ)λ(Ψ)), with equality at D uv'
laplace | Laplace noise of scale b on an answer of ℓ₁-sensitivity D: Laplace laws at distance D/b; entries that move by s_i: the product of those at |s_i|/b | the trade-off function of a sum of ℓ₁-distances is worst in one coordinate: Dong, Roth, Su 2022
discrete-laplace | masses ~ e^(−|z|/b) on the integers, moved by D: log-concave, so the full distance is worst; cut at both ends it merges outcomes of equal loss | best events are half-lines
discrete-gaussian | masses ~ e^(−z²/(2v)) on the integers, moved by D: log-concave, so the full distance is worst; D_a ≤ a D²/(2v) | Canonne, Kamath, Steinke 2020
discrete-correlated | 2f_i − n + Z_i of parameter v = (d + c²)/μ², and pn + W of q²v, c = p/q: a record moves them by ±1 and p, a replacement by 2 and 0 | reflection
skellam | a difference of two Poisson numbers, moved by D: log-concave | best events are half-lines
logistic | logistic noise of scale b, moved by D: log-concave | best events are half-lines
truncated-laplace | Laplace noise of scale b on [−A, A], moved by D ≤ A: log-concave | best events are half-lines
staircase | density falling by e^(−ε) per D in two steps: at distance D the losses are ε, 0, −ε | H grows with P(|noise| ≤ s/2)
integer-noise | a law on the integers, moved by each of −D, …, D: a record may count up or down in either direction | the definition
count-noise | a symmetric law on −D, …, D of the printed formula, moved by 1 | Sadeghi, Asoodeh, Calmon, Definition 2
table | P and Q as they are listed, in both orders | the definition
channel | the laws of any two inputs, or of the listed neighbours, in both orders | the definition
randomized-response | a category is kept with odds e^ε to 1: (e^ε, k − 2, 1)/(e^ε + k − 1) against its reverse | the definition
local-report | a report is a set of categories; of two categories it has the first alone, the second alone, or says nothing: (a, r, b) against (b, r, a) | symmetry of the mechanism in the categories
guaranteed | any (ε, δ)-private mechanism is dominated by (δ, (1 − δ)e^ε, (1 − δ), 0), the inner masses over 1 + e^ε, against its reverse, and this one has it | Kairouz, Oh, Viswanath 2015
exponential | scores that move by t against each other: events of probability p rise to p e^t/(1 + p(e^t − 1)) at most: the largest gain has (1 + p(e^t − 1))² = e^(t−ε); D_a ≤ a t²/8 | Dong, Durfee, Rogers 2020; Cesar, Rogers 2021
permute-and-flip | exponential noise, scores that move by t of its units: H is that of Laplace laws at distance t | p' ≤ min(p, 1 − p)
noisy-max | the index of the largest noisy score, scores that move by t of the noise's units: no loss beyond t | Dwork, Roth 2014, Claim 3.9
top | k selections, each ε-private, or the k largest of one noise: no loss beyond kε | McSherry, Talwar 2007
above-threshold | threshold noise s, query noise r in units of the sensitivity: the supremum of the loss is 1/s + 2c/r, or 1/s + c/r where answers move one way; c times that of c = 1 with a fresh threshold; endless streams or no noise on answers tell neighbours apart; shown values have no bound | Lyu, Su, Li 2017; streams at a and 1 come near to it
partition-selection | the keys released so that the four inequalities of (ε, δ) hold for every number of users | Desfontaines, Voss, Gipson, Mandayam 2022
propose-test-release | a Laplace release after a noisy integer distance passes a threshold: unstable neighbours, which have distance 0, stable ones, and for the others H is convex in the chances of passing, so largest at distances 0 and next to the threshold | π(n) = e^(−r) π(n + 1) below the threshold, 1 − π alike above
threshold | a user in k keys, of which j are new: all of j new keys stay hidden with probability P(noise < τ − D)^j, else one is shown that has no other origin; the k − j others move by D | the definition
counter | an input is in h measured sums of a tree with noise h/ε (or of √h/μ each): h Laplace laws at distance ε/h, or N(μ, 1) | Dwork, Naor, Pitassi, Rothblum 2010; post-processing; exact where n ≥ k^(h − 1)
composition | independent or adaptive releases: products of what is above each release are above all (lattice.py, Lemma products) | Zhu, Dong, Wang 2022
poisson | each record takes part with probability q: ((1 − q)Q + qP, Q) if it is removed, (P, (1 − q)P + qQ) if it is added | Zhu, Dong, Wang 2022
without-replacement | m of n records take part: both mixtures of a replace-one pair with q = m/n, in both orders | Balle, Barthe, Gaboardi 2018
mixture | N(0, s²) around a random one of several answers: Σ w_i N(m_i, 1) against N(0, 1), and the reverse; replace-one: against the opposite means | Choquette-Choo et al. 2024
pure | losses within [−ε, ε] are dominated by randomised response of ε; then D_a ≤ a ε²/2 | Kairouz, Oh, Viswanath 2015; Bun, Steinke 2016
"""
LEMMAS: dict[str, Row] = {
    name: Row(statement, source)
    for name, statement, source in (
        [part.strip() for part in line.split(" | ")] for line in TABLE.split("\n")[1:-1]
    )
}
"""Name → lemma."""

Factor: TypeAlias = tuple[tuple[Law, ...], int]
Way: TypeAlias = tuple[Factor, ...]
CURVE, LARGEST, NOTHING = "curve", "largest", "nothing"


@dataclass
class Worst:
    """The ways of both directions, the rows they rest on, and what of them is attained."""

    remove: list[Way]
    add: list[Way]
    rows: set[str]
    attained: str = CURVE

    @property
    def ways(self) -> list[Way]:
        """All ways, each once."""
        found = list(self.remove)
        return found + [way for way in self.add if not any(_alike(way, w) for w in found)]


def _alike(a: Way, b: Way) -> bool:
    return a is b or (
        len(a) == len(b)
        and all(n == m and len(x) == len(y) for (x, n), (y, m) in zip(a, b, strict=True))
        and all(
            p is q or (p.symmetric and p is q)
            for (x, _), (y, _) in zip(a, b, strict=True)
            for p, q in zip(x, y, strict=True)
        )
    )


def one(*found: Law) -> list[Way]:
    """Return the ways of a single release: each law is one."""
    return [(((law,), 1),) for law in found]


def _same(row: str, *found: Law, attained: str = CURVE) -> Worst:
    ways = one(*found)
    back = one(*(laws.swapped(law) for law in found if not law.symmetric))
    return Worst(ways + back, [*ways, *back], {row}, attained)


# --- arguments ----------------------------------------------------------------------------------
Value: TypeAlias = Callable[[str], Number]
DOMAINS = {
    "> 0": "standard_deviation l2_sensitivity l1_sensitivity scale mu c size_mu parameter threshold"
    " threshold_scale test_scale bound variance noise_multiplier sigma_star sensitivity",
    ">= 0": "epsilon query_scale",
    "integer >= 1": "dimension sparsity groups count steps counts users partitions contributions"
    " population sample_size selected support participations size buckets",
    "integer >= 2": "categories arity candidates",
    "in [0, 1]": "sampling_prob gamma delta flip step_sampling_prob",
    "in (0, 1)": "eta",
    "integer": "low high lowest",
}
DOMAIN = {name: domain for domain, names in DOMAINS.items() for name in names.split()}
"""Argument → what it may be, in every mechanism; `STRICTER` has the exceptions."""
STRICTER = {
    (name, "sensitivity"): "integer >= 1"
    for name in [
        "DiscreteLaplace",
        "DiscreteGaussian",
        "IntegerNoise",
        "Skellam",
        "TruncatedGeometric",
    ]
} | {("MatrixMechanism", "participations"): "integer >= 1", ("L2Ball", "radius"): "> 0"}


@dataclass
class Arguments:
    """The arguments of a mechanism, as numbers within their domains."""

    noise: Noise
    value: Value
    known: dict[str, Number] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Number:
        if key not in self.known:
            text = self.noise[key]
            if not isinstance(text, str):
                raise self.wrong(key, "expected a number")
            number = self.value(text)
            domain = STRICTER.get((self.noise.name, key), DOMAIN.get(key, ""))
            if domain and not _within(number, domain):
                raise self.wrong(key, f"expected a number {domain}")
            self.known[key] = number
        return self.known[key]

    def integer(self, key: str) -> int:
        """Return an argument that is a whole number."""
        return whole(self[key])

    def given(self, key: str) -> bool:
        """Return whether an optional argument is given."""
        return bool(self.noise[key] != "None")

    def flag(self, key: str) -> bool:
        """Return True or False."""
        if self.noise[key] not in ("True", "False"):
            raise self.wrong(key, "expected True or False")
        return bool(self.noise[key] == "True")

    def word(self, key: str, *words: str) -> str:
        """Return one of some words."""
        if self.noise[key] not in words:
            raise self.wrong(key, f"expected one of {', '.join(words)}")
        return str(self.noise[key])

    def numbers(self, key: str, relation: str = ">=") -> list[Number]:
        """Return a list of numbers ≥ 0 (or > 0, or any)."""
        entries = self.noise[key]
        if not isinstance(entries, list) or not entries:
            raise self.wrong(key, "expected a list of numbers")
        found = []
        for text in entries:
            if not isinstance(text, str):
                raise self.wrong(key, "expected a list of numbers")
            found.append(self.value(text))
            if relation and not told(found[-1], relation, ZERO):
                raise self.wrong(key, f"expected numbers {relation} 0")
        return found

    def wrong(self, key: str, reason: str) -> Wrong:
        """Return the error of an argument."""
        return Wrong("theorem.mechanism", f"{self.noise.name} with {key}: {reason}")


def _within(x: Number, domain: str) -> bool:
    if domain.startswith("integer"):
        if isinstance(x, arb):
            raise NotProved("a whole number is given by a formula that is not exact")
        least = domain.partition(">=")[2]
        return bool(x.q == 1 and (not least or x >= int(least)))
    if domain.startswith("in"):
        ends = (">", "<") if "(" in domain else (">=", "<=")
        return told(x, ends[0], ZERO) and told(x, ends[1], ONE)
    relation, _, number = domain.partition(" ")
    return told(x, relation, fmpq(int(number)))


# --- Gaussian mechanisms: μ as a formula in the arguments ------------------------------------------
B = "(dimension + c**2)"
SMALL = "(bound_sum + bound_norm)"
MU: dict[str, tuple[str, dict[str, str]]] = {
    "Gaussian": ("gaussian", {"": "l2_sensitivity/standard_deviation"}),
    "CorrelatedGaussian": (
        "correlated",
        {"add-remove": "mu", "replace-one": f"mu*sqrt(4*dimension/{B})"},
    ),
    "KnownSizeGaussian": (
        "known-size",
        {"add-remove": "sqrt(mu**2 + size_mu**2)", "replace-one": "2*mu"},
    ),
    "EllipticalGaussian": ("elliptical", {"": "mu"}),
}
"""Mechanism → the row, and by relation ("" for any) the formula; √dimension stands for c² if c is
left out, and 0 for size_mu."""
UPPER = {"CorrelatedGaussian": {"add-remove": "mu", "replace-one": "2*mu"}}
"""Mechanism → what μ is at most: 4j(B − j) ≤ B², and 4d/B ≤ 4, with the size or without."""


def mu_formula(noise: Noise, adjacency: str | None) -> tuple[str, str] | None:
    """Return the row and the formula of μ in the texts of the arguments, where there is one."""
    given = {key: f"({text})" for key, text in noise.arguments.items() if isinstance(text, str)}
    if noise.name == "DisjointGroupsGaussian":
        return "groups", _groups_formula(given, noise, adjacency)
    if noise.name == "OptimalGroups" and adjacency in (None, noise["adjacency"]):
        return "optimal-groups", given["mu"]
    if noise.name == "OneSidedGaussian" and adjacency != "replace-one":
        return "one-sided", given["mu"]
    if noise.name == "CountEllipse" and adjacency == "add-remove":
        d, k = given["dimension"], given["sparsity"]
        if f"2*{noise['sparsity']}" == noise["dimension"]:
            return "ellipse", given["mu"]
        del d, k
    if noise.name == "GeneralGaussian":
        square = _space_formula(noise)
        return None if square is None else ("gaussian-space", f"sqrt({square})")
    if noise.name not in MU:
        return None
    row, formulas = MU[noise.name]
    formula = formulas.get(adjacency or "", formulas.get(""))
    if formula is None:
        raise NotProved(f"{noise.name} needs its relation: add-remove or replace-one")
    if given.get("size_mu") == "(None)":
        given["size_mu"] = "0"
    if noise.name == "CorrelatedGaussian":
        if given.get("c") == "(None)":
            given["c"] = f"sqrt(sqrt{given['dimension']})"
        if noise["release_size"] == "False":
            return None
    return row, _substituted(formula, given)


def _substituted(formula: str, given: dict[str, str]) -> str:
    import re

    return re.sub(r"[a-z]\w*", lambda m: given.get(m[0], m[0]), formula)


def _groups_formula(given: dict[str, str], noise: Noise, adjacency: str | None) -> str:
    d, made = given["dimension"], noise["adjacency"]
    shared, own = f"((1 + sqrt{d})/4)", f"(({d} + sqrt{d})/4)"
    if made == "replace-one":
        shared, own = ("4" if noise["as_printed"] == "True" else "1"), d
        if adjacency != "add-remove":  # 1, or twice the 5/16 or 1/2 of a record
            return given["mu"]
    alone = f"({d}/(4*{own}) + 1/(4*{shared}))"
    if (adjacency or made) == "add-remove":
        return f"{given['mu']}*sqrt({alone})"
    return f"{given['mu']}*sqrt(max({d}/{own}, {alone}*min(2, {given['groups']})))"


def _space_formula(noise: Noise) -> str | None:
    """Return sup v'Σ⁻¹v of independent noise over a space whose longest vectors are known."""
    covariance, space = noise["covariance"], noise["space"]
    if not isinstance(covariance, Noise) or not isinstance(space, Noise):
        return None
    while space.name == "DisjointGroups" and isinstance(space["space"], Noise):
        space = space["space"]
    if covariance.name == "Isotropic":
        squares = {
            "SparseBox": lambda: f"({space['sparsity']})*({space['bound']})**2",
            "L2Ball": lambda: f"({space['radius']})**2",
            "Box": lambda: " + ".join(f"({b})**2" for b in space["bounds"]),
        }.get(space.name)
        return f"({squares()})/({covariance['variance']})" if squares else None
    if covariance.name == "Diagonal" and space.name == "Box":
        pairs = zip(space["bounds"], covariance["variances"], strict=False)
        return " + ".join(f"({b})**2/({v})" for b, v in pairs)
    return None


def _mu(noise: Noise, args: Arguments, adjacency: str | None, budget: Budget) -> Worst | None:
    """Return the pair of a Gaussian mechanism."""
    found = mu_formula(noise, adjacency)
    replaced = adjacency == "replace-one"
    if noise.name in ("CorrelatedGaussian", "KnownSizeGaussian", "CountEllipse", "OptimalEllipse"):
        _named(noise, adjacency)
    if found is not None:
        if noise.name == "GeneralGaussian":
            _checked_space(noise, args.value)
        for key, text in noise.arguments.items():
            if isinstance(text, str) and text != "None" and key in DOMAIN:
                args[key]
        if noise.name in ("EllipticalGaussian", "OneSidedGaussian"):
            args.numbers("sensitivities" if noise.name[0] == "E" else "bounds", ">")
        return _same(found[0], laws.gaussian(args.value(found[1])))
    match noise.name:
        case "CorrelatedGaussian":
            return _same(
                "correlated", root(args["mu"] * args["mu"] * _without_size(args, replaced))
            )
        case "OneSidedGaussian":
            bounds = args.numbers("bounds", ">")
            total = sum(bounds, ZERO)
            square = 4 * total / (total + sqrt(sum((b * b for b in bounds), ZERO)))
            return _same("one-sided", laws.gaussian(args["mu"] * sqrt(square)))
        case "CountEllipse" | "OptimalEllipse":
            return _same("ellipse", root(args["mu"] * args["mu"] * _ellipse(noise, args, replaced)))
        case "MatrixVariateGaussian":
            least = [_least(noise[f"{side}_covariance"], args.value) for side in ("row", "column")]
            mu = args["l2_sensitivity"] / sqrt(least[0] * least[1])
            return _same("matrix-variate", laws.gaussian(mu))
        case "GeneralGaussian":
            return _same("gaussian-space", root(_general(noise, args.value, budget)))
    return None


def root(square: Number) -> Law:
    """Return the law of a Gaussian mechanism from μ²."""
    return laws.gaussian(sqrt(square), square)


def _named(noise: Noise, adjacency: str | None) -> None:
    if adjacency is None:
        raise NotProved(f"{noise.name} needs its relation: add-remove or replace-one")


def _without_size(args: Arguments, replaced: bool) -> Number:
    d = args.integer("dimension")
    c2 = args["c"] * args["c"] if args.given("c") else sqrt(fmpq(d))
    b = d + c2
    if replaced:
        return 4 * d / b - 4 * (d % 2) / (b * b)
    near = int(ball(b / 2).mid().floor().unique_fmpz())
    ones = {min(d, max(0, j)) for j in range(near - 2, near + 4)}
    return maximum([4 * j * (b - j) / (b * b) for j in sorted(ones)])


def _ellipse(noise: Noise, args: Arguments, replaced: bool) -> Number:
    """Return the largest norm of a record with at most k ones, or of a difference, for μ = 1."""
    d, k = args.integer("dimension"), args.integer("sparsity")
    if k > d or (noise.name == "CountEllipse" and 2 * k > d > 1):
        raise args.wrong("sparsity", "is above the dimension, or half of it")
    for along, across in _axes(d, k, best=noise.name == "OptimalEllipse"):

        def square(entries: int, total: int, a: Number = along, b: Number = across) -> Number:
            part = fmpq(total * total, d)
            return part / a + (entries - part) / b

        # j²(1/a₁ − 1/a₂)/d + j/a₂ has its top at j = d/(2(1 − a₂/a₁)) where a₁ > a₂
        ends = {1, k}
        if compare(along, ">", across):
            top = int(ball(fmpq(d) / (2 * (1 - across / along))).mid().floor().unique_fmpz())
            ends |= {min(k, max(1, top + i)) for i in (-1, 0, 1, 2)}
        largest = maximum([square(j, j) for j in sorted(ends)])
        if noise.name == "OptimalEllipse" and compare(largest, ">", ONE):
            continue  # not the best one
        if not replaced:
            return largest
        if compare(across, ">", along):
            return maximum([square(k, k), square(k + min(k, d - k), k - min(k, d - k))])
        most = min(2 * k, d)
        return square(most, most % 2)
    raise NotProved("the best ellipse of this dimension and sparsity")


def _axes(d: int, k: int, *, best: bool) -> Iterator[tuple[Number, Number]]:
    """Yield a₁ and a₂ for records with j ones: of CountEllipse j = k, else j near (d + √d)/2."""
    near = (d + int(fmpq(d).p.isqrt())) // 2
    tried = {min(k, max(1, near + i)) for i in (-1, 0, 1, 2)} if best else {k}
    for j in sorted(tried):
        if d == 1:
            yield ONE, ONE
            continue
        root, share = sqrt(fmpq((d - 1) * j * (d - j))), fmpq(j, d)
        if compare(root, ">", 0) or j < d:
            yield share * (j + root), share * (d - j + root / (d - 1))
    if best:
        for j in range(max(1, near - 2), min(k, near + 3)):
            ps = [fmpq(n * n, d) for n in (j, j + 1)]
            qs = [n - p for n, p in zip((j, j + 1), ps, strict=True)]
            determinant = ps[0] * qs[1] - ps[1] * qs[0]
            if determinant:
                x, y = (qs[1] - qs[0]) / determinant, (ps[0] - ps[1]) / determinant
                excess = [p * x * x * (d - 1) - q * y * y for p, q in zip(ps, qs, strict=True)]
                if x > 0 and y > 0 and excess[0] * excess[1] <= 0:
                    yield 1 / x, 1 / y


def rows_of(covariance: Any, value: Value, field: str = "covariance") -> list[list[fmpq]]:
    """Return the rows of a covariance, exactly."""

    def exact(text: Any) -> fmpq:
        number = value(text) if isinstance(text, str) else None
        if not isinstance(number, fmpq):
            raise NotProved(f"an entry of a {field} is not a rational number")
        return number

    if not isinstance(covariance, Noise):
        raise Wrong("theorem.mechanism", f"expected a {field}")
    match covariance.name:
        case "Matrix":
            rows = [[exact(x) for x in row] for row in covariance["rows"]]
        case "Diagonal":
            diagonal = [exact(x) for x in covariance["variances"]]
            rows = [
                [x if i == j else ZERO for j in range(len(diagonal))]
                for i, x in enumerate(diagonal)
            ]
        case "Isotropic" | "Exchangeable":
            size = exact(covariance["dimension"])
            if not (size.q == 1 and 1 <= size <= 1000):
                raise NotProved("a covariance of more than 1000 dimensions")
            on = exact(covariance["variance" if covariance.name == "Isotropic" else "diagonal"])
            off = exact(covariance["off_diagonal"]) if covariance.name == "Exchangeable" else ZERO
            rows = [[on if i == j else off for j in range(int(size.p))] for i in range(int(size.p))]
        case _:
            raise Wrong("theorem.mechanism", f"expected a {field}, not {covariance.name}")
    if any(len(row) != len(rows) for row in rows) or any(
        rows[i][j] != rows[j][i] for i in range(len(rows)) for j in range(i)
    ):
        raise Wrong("theorem.mechanism", f"expected a symmetric {field}")
    return rows


def _least(covariance: Noise, value: Value) -> Number:
    """Return the least eigenvalue of independent noise, or of two axes."""
    if covariance.name == "Isotropic":
        least = value(covariance["variance"])
    elif covariance.name == "Diagonal":
        entries = [value(text) for text in covariance["variances"]]
        least = -maximum([-x for x in entries])
    else:
        raise NotProved("the least eigenvalue of a matrix")
    if not told(least, ">", ZERO):
        raise Wrong("theorem.mechanism", "expected variances > 0")
    return least


def _general(noise: Noise, value: Value, budget: Budget) -> Number:
    from .programs import dimension, is_positive, largest_square

    rows = rows_of(noise["covariance"], value)
    space = _exact_space(noise["space"], value)
    if not is_positive(rows, strictly=True):
        raise NotProved("a covariance that is not positive definite")
    if len(rows) != dimension(space):
        raise Wrong("theorem.mechanism", "covariance and space have different dimensions")
    if space.name == "L2Ball":
        raise NotProved("the longest vector of a ball under a matrix")
    inverse = fmpq_mat(rows).inv()
    size = len(rows)
    found = largest_square(
        space, [[inverse[i, j] for j in range(size)] for i in range(size)], budget
    )
    return found if isinstance(found, (fmpq, arb)) else fmpq(found)


def _exact_space(space: Any, value: Value) -> Noise:
    """Return a space with its numbers as exact texts."""

    def exact(key: str, entry: Any) -> Any:
        if isinstance(entry, list):
            return [exact(key, x) for x in entry]
        if isinstance(entry, Noise):
            return _exact_space(entry, value)
        if entry in ("True", "False"):
            return entry
        number = value(entry)
        if not isinstance(number, fmpq):
            raise NotProved("a number of a space is not rational")
        return str(number)

    if not isinstance(space, Noise):
        raise Wrong("theorem.mechanism", "expected a space")
    return Noise(space.name, {key: exact(key, entry) for key, entry in space.arguments.items()})


def _checked_space(noise: Noise, value: Value) -> None:
    """Require that covariance and space have one dimension and that variances are positive."""
    covariance, space = noise["covariance"], noise["space"]

    def size(of: Noise) -> Number:
        if of.name == "DisjointGroups":
            return value(of["groups"]) * size(of["space"])
        if of.name in ("Box", "Diagonal"):
            return fmpq(len(of["bounds" if of.name == "Box" else "variances"]))
        return value(of["dimension"])

    if told(size(covariance), "!=", size(space)):
        raise Wrong("theorem.mechanism", "covariance and space have different dimensions")
    entries = covariance["variances"] if covariance.name == "Diagonal" else [covariance["variance"]]
    if not all(told(value(x), ">", ZERO) for x in entries):
        raise Wrong("theorem.mechanism", "expected variances > 0")
    inner = space
    while inner.name == "DisjointGroups":
        if not told(value(inner["groups"]), ">=", ONE):
            raise Wrong("theorem.mechanism", "expected groups >= 1")
        inner = inner["space"]
    if inner.name == "SparseBox" and not (
        told(value(inner["sparsity"]), ">=", ONE)
        and told(value(inner["sparsity"]), "<=", value(inner["dimension"]))
    ):
        raise Wrong("theorem.mechanism", "expected a sparsity from 1 to the dimension")


# --- all mechanisms -----------------------------------------------------------------------------
def pure(epsilon: Number) -> Law:
    """Return randomised response of ε."""
    return guaranteed(epsilon, ZERO)


def worst(noise: Any, adjacency: str | None, value: Value, budget: Budget) -> Worst:
    """Return the worst pairs of a mechanism under a relation.

    Raises Wrong for arguments outside their domain, NotProved for what the table does not know.
    """
    if not isinstance(noise, Noise):
        raise Wrong("theorem.mechanism", "expected a mechanism")
    args = Arguments(noise, value)
    found = _mu(noise, args, adjacency, budget) or _counter(noise, args)
    if found is not None:
        return found
    if noise.name not in _WORST:
        raise NotProved(f"the table of lemmas has no row for {noise.name}")
    if noise.name in _GIVEN_SIZE and adjacency == "add-remove":
        raise NotProved(f"{noise.name} has a given number of records: its relation is replace-one")
    if noise.name in _ADDED and adjacency != "add-remove":
        raise NotProved(f"{noise.name} is known under add-remove")
    return _WORST[noise.name](args, adjacency, budget)


_GIVEN_SIZE = [
    "RandomizedResponse",
    "HadamardResponse",
    "LocalHashing",
    "Rappor",
    "SubsetSelection",
    "UnaryEncoding",
    "SampledWithoutReplacement",
    "Shuffled",
]
_ADDED = ["GaussianThreshold", "LaplaceThreshold", "PartitionSelection", "RandomAllocation"]


def _counter(noise: Noise, args: Arguments) -> Worst | None:
    """Return the law of a tree: ε or μ is what it is made for."""
    if noise.name not in (
        "BinaryTree",
        "KaryTree",
        "HonakerTree",
        "DelannoyCounter",
        "BridgedTree",
    ):
        return None
    if args.integer("contributions") > 1:
        raise NotProved(f"{noise.name} with several contributions")
    if noise.name != "KaryTree" and args.given("mu"):
        return _same("counter", laws.gaussian(args["mu"]), attained=_hidden(noise))
    n = args.integer("steps")
    attained = _hidden(noise)
    match noise.name:
        case "BinaryTree" | "HonakerTree":
            h = n.bit_length()
        case "DelannoyCounter":
            h = args.integer("levels")
        case "BridgedTree":
            h = len(noise["arities"])
        case _:
            k = args.integer("arity")
            low, h, reach = ((k - 1) // 2 if args.flag("subtraction") else 0), 0, 0
            while h == 0 or reach < n:
                h, reach = h + 1, reach * k + (k - 1 - low)
            if n < k ** (h - 1):
                attained = NOTHING
    if h > 10_000:
        raise NotProved("a tree of so many levels")
    t = args["epsilon"] / h
    return Worst(*[[(((laws.laplace(t),), h),)]] * 2, {"counter"}, attained)


def _hidden(noise: Noise) -> str:
    """Outputs of these show less than the sums that are measured."""
    shown = (
        noise.name in ("BinaryTree", "KaryTree")
        or noise.arguments.get("released") == "measurements"
    )
    return CURVE if shown else NOTHING


def _laplace(args: Arguments, *_: Any) -> Worst:
    return _same("laplace", laws.laplace(args["l1_sensitivity"] / args["scale"]))


def _laplace_vector(args: Arguments, *_: Any) -> Worst:
    shifts = [x for x in args.numbers("shifts", "") if not compare(x, "==", 0)]
    distances: dict[str, tuple[Number, int]] = {}
    for x in shifts:
        t = maximum([x, -x]) / args["scale"]
        distances[str(t)] = (t, distances.get(str(t), (t, 0))[1] + 1)
    way = tuple(((laws.laplace(t),), n) for t, n in distances.values())
    ways = [way] if way else one(table([(ONE, ONE)]))
    return Worst(ways, ways, {"laplace"})


def _integers(row: str, law: Callable[[Number, int], Law], key: str) -> Callable[..., Worst]:
    return lambda args, *_: _same(row, law(args[key], args.integer("sensitivity")))


def _logistic(args: Arguments, *_: Any) -> Worst:
    return _same("logistic", laws.logistic(args["sensitivity"] / args["scale"]))


def _truncated_laplace(args: Arguments, *_: Any) -> Worst:
    b, scale = args["bound"], args["scale"]
    if not told(b, ">=", args["sensitivity"]):
        raise NotProved("noise that does not reach as far as the answers differ")
    return _same(
        "truncated-laplace", laws.truncated_laplace(args["sensitivity"] / scale, b / scale)
    )


def _truncated_geometric(args: Arguments, *_: Any) -> Worst:
    low, high, s = (args.integer(key) for key in ("low", "high", "sensitivity"))
    if s > high - low:
        raise args.wrong("sensitivity", "is above high - low")
    return _same("discrete-laplace", laws.discrete_laplace(args["scale"], s))


def _discrete_correlated(args: Arguments, adjacency: str | None, _: Budget) -> Worst:
    _named(args.noise, adjacency)
    d, c = args.integer("dimension"), args["c"]
    if not isinstance(c, fmpq):
        raise NotProved("a c that is not rational")
    v = (d + c * c) / (args["mu"] * args["mu"])
    if adjacency == "replace-one":
        way: Way = (((laws.discrete_gaussian(v, 2),), d),)
    else:
        size = laws.discrete_gaussian(v * c.q * c.q, int(c.p))
        way = (((laws.discrete_gaussian(v, 1),), d), ((size,), 1))
    return Worst([way], [way], {"discrete-correlated", "discrete-gaussian"})


def _staircase(args: Arguments, *_: Any) -> Worst:
    gamma, decay = args["gamma"], exp(-args["epsilon"])
    rest = 1 - gamma
    height = (1 - decay) / (2 * (gamma + decay * rest))
    least = -maximum([-gamma, -rest])
    side, gap = fmpq(1, 2) + height * least, 1 - 2 * gamma
    middle = height * maximum([gap, -gap]) * (decay if told(gap, ">", ZERO) else 1)
    law = table([(side, decay * side), (middle, middle), (decay * side, side)])
    epsilon = args["epsilon"]
    return _same("staircase", replace(law, largest=epsilon, symmetric=True, grid=epsilon))


def _masses(args: Arguments, key: str) -> list[Number]:
    found = args.numbers(key)
    if compare(sum(found, ZERO), "!=", ONE) is True or not all(isinstance(x, fmpq) for x in found):
        if all(isinstance(x, fmpq) for x in found):
            raise args.wrong(key, "does not sum to 1")
        if compare(sum(found, ZERO), "!=", ONE) is True:
            raise args.wrong(key, "does not sum to 1")
    return found


def shifted(masses: Sequence[Number], shift: int) -> Law:
    """Return a law on the integers moved up by so many, against itself."""
    none = [ZERO] * shift
    return table(list(zip([*none, *masses], [*masses, *none], strict=True)))


def _integer_noise(args: Arguments, *_: Any) -> Worst:
    masses, most = _masses(args, "probabilities"), args.integer("sensitivity")
    if most > 200:
        raise NotProved("integer noise of a sensitivity beyond 200")
    args["lowest"]
    ups = tuple(shifted(masses, s) for s in range(1, most + 1))
    downs = tuple(laws.swapped(law) for law in ups if not law.symmetric)
    ways: list[Way] = [((ups + downs, 1),)]  # each may be that of any record, in any release
    return Worst(ways, ways, {"integer-noise"})


def count_noise(e: Number, eta: Number, d: int) -> tuple[Number, list[Number]]:
    """Return δ*, and P(Z = −D), …, P(Z = D), for E = e^ε.

    b = 2/(1 − η), c = bη; with w_m = 1, E, …: P_m, S_m = Σ (j + 1)E^j and A_m = P_1 + … + P_m. δ* is
    the largest of (cP_k − E^k)/(bS_k) and 1/(bA_D); the weights are P_(D+1−j)/A_D if
    cA_D ≤ P_(D+1), else max(0, (c − bδ*P_j)/E^j), over b.
    """
    if d > 2000:
        raise NotProved("count noise of a support beyond 2000")
    b = 2 / (1 - eta)
    c = b * eta
    w, p, s, a = [ONE], [ZERO], [ZERO], [ZERO]
    for m in range(d + 1):
        p.append(p[m] + w[m])
        s.append(s[m] + (m + 1) * w[m])
        a.append(a[m] + p[m + 1])
        w.append(w[m] * e)
    deltas = [(c * p[k] - w[k]) / (b * s[k]) for k in range(1, d + 1)]
    best = maximum([*deltas, 1 / (b * a[d])])
    if told(c * a[d], "<=", p[d + 1]):
        weights = [p[d + 1 - j] / a[d] for j in range(1, d + 1)]
    else:
        weights = [maximum([(c - b * best * p[j]) / w[j], ZERO]) for j in range(1, d + 1)]
    side = [x / b for x in weights]
    return best, [*reversed(side), eta, *side]


def _count_noise(args: Arguments, *_: Any) -> Worst:
    _, masses = count_noise(exp(args["epsilon"]), args["eta"], args.integer("support"))
    return _same("count-noise", replace(shifted(masses, 1), symmetric=True))


def _tabulated(args: Arguments, *_: Any) -> Worst:
    p, q = _masses(args, "p"), _masses(args, "q")
    if len(p) != len(q):
        raise args.wrong("p", "has another length than q")
    law = table(list(zip(p, q, strict=True)))
    return Worst(one(law), one(laws.swapped(law)), {"table"})


def _channel(args: Arguments, adjacency: str | None, budget: Budget) -> Worst:
    matrix = args.noise["matrix"]
    if not isinstance(matrix, list) or not 2 <= len(matrix) <= 100:
        raise args.wrong("matrix", "expected 2 to 100 rows")
    rows = []
    for entries in matrix:
        row = Arguments(Noise(args.noise.name, {"matrix": entries}), args.value)
        rows.append(_masses(row, "matrix"))
    if len({len(row) for row in rows}) > 1:
        raise args.wrong("matrix", "has rows of different lengths")
    pairs = [(i, j) for i in range(len(rows)) for j in range(i)]
    if args.given("neighbours"):
        pairs = [(whole(args.value(i)), whole(args.value(j))) for i, j in args.noise["neighbours"]]
        if any(i == j or not (0 <= i < len(rows) and 0 <= j < len(rows)) for i, j in pairs):
            raise args.wrong("neighbours", "are no two inputs")
    elif adjacency == "add-remove":
        raise NotProved("Channel has a given number of records: its relation is replace-one")
    ways = {(i, j) for pair in pairs for i, j in (pair, pair[::-1])}
    budget.check(cases=len(ways))
    found: dict[Any, Law] = {}
    for i, j in sorted(ways):
        both = list(zip(rows[i], rows[j], strict=True))
        found.setdefault(tuple(sorted((str(p), str(q)) for p, q in both)), table(both))
    every: list[Way] = [((tuple(found.values()), 1),)]
    return Worst(every, every, {"channel"})


def _response(args: Arguments, *_: Any) -> Worst:
    odds, rest = exp(args["epsilon"]), args["categories"] - 2
    all_ = odds + rest + 1
    law = table([(odds / all_, 1 / all_), (rest / all_, rest / all_), (1 / all_, odds / all_)])
    return _same(
        "randomized-response",
        replace(law, largest=args["epsilon"], symmetric=True, grid=args["epsilon"]),
    )


def _local(args: Arguments, *_: Any) -> Worst:
    """Return (a, r, b): of two categories a report has the first alone, both or none, the second."""
    name, largest = args.noise.name, None
    if name == "Rappor":
        p, q = 1 - args["flip"] / 2, args["flip"] / 2
        parts = [p * (1 - q), p * q + (1 - p) * (1 - q), (1 - p) * q]
    else:
        largest, k = args["epsilon"], args["categories"]
        odds = exp(largest)
        if name == "HadamardResponse":
            parts = [odds, odds + 1, ONE]
        elif name == "SubsetSelection":
            d = args["size"] if args.given("size") else _nearest(k / (odds + 1))
            if not d < k:
                raise args.wrong("size", "expected fewer than the categories")
            parts = [odds, odds * (d - 1) / (k - d) + (k - d - 1) / d, ONE]
        elif name == "LocalHashing":
            g = args["buckets"] if args.given("buckets") else _nearest(odds + 1)
            parts = [(g - 1) * odds, (g - 1) * (g - 2) + odds + g - 1, g - 1]
        else:
            root = exp(largest / 2)
            p, q = root / (1 + root), 1 / (1 + root)
            if args.flag("optimised"):
                p, q = fmpq(1, 2), 1 / (1 + odds)
            parts = [p * (1 - q), p * q + (1 - p) * (1 - q), (1 - p) * q]
    a, r, b = (part / sum(parts, ZERO) for part in parts)
    law = table([(a, b), (r, r), (b, a)])
    law = replace(law, symmetric=True, largest=law.largest if largest is None else largest)
    return _same("local-report", law)


def _nearest(x: Number) -> fmpq:
    return fmpq(max(1, whole(x + fmpq(1, 2))))


def _guaranteed(args: Arguments, *_: Any) -> Worst:
    return _same("guaranteed", guaranteed(args["epsilon"], args["delta"]))


def guaranteed(epsilon: Number, delta: Number) -> Law:
    """Return the pair that dominates whatever is (ε, δ)-private."""
    odds, rest = exp(epsilon), 1 - delta
    a, b = rest * odds / (1 + odds), rest / (1 + odds)
    law = table([(delta, ZERO), (a, b), (b, a), (ZERO, delta)])

    def answer(loss: Number) -> Answer:
        return (delta, ZERO) if compare(loss, ">=", epsilon) else law.answer(loss)

    finite = compare(delta, "==", 0)
    largest = epsilon if finite else INFINITE
    return replace(law, symmetric=True, largest=largest, answer=answer, grid=epsilon)


def _exponential(args: Arguments, *_: Any) -> Worst:
    return _same("exponential", laws.bounded_range(args["epsilon"]))


def _permute(args: Arguments, *_: Any) -> Worst:
    return _same("permute-and-flip", replace(laws.laplace(args["epsilon"]), only_alone=True))


def _noisy_max(args: Arguments, *_: Any) -> Worst:
    noise = args.word("noise", "Gumbel", "Laplace", "Exponential", "Gaussian", "DiscreteLaplace")
    args["candidates"]
    if args.word("returns", "index", "gap", "value") != "index" or noise in ("Gaussian",):
        raise NotProved(f"ReportNoisyMax of {noise} noise that returns {args.noise['returns']}")
    t = args["sensitivity"] * (1 if args.flag("monotone") else 2) / args["scale"]
    if noise == "Gumbel":
        return _same("exponential", laws.bounded_range(t))
    if noise == "Exponential":
        return _same("permute-and-flip", replace(laws.laplace(t), only_alone=True))
    return _same("noisy-max", pure(t), attained=NOTHING)


def _top(args: Arguments, *_: Any) -> Worst:
    args.word("noise", "Gumbel", "Laplace", "Exponential")
    args.flag("monotone")
    t = args["epsilon"] * args.integer("selected")
    return _same("top", pure(t), attained=NOTHING)


def _above_threshold(args: Arguments, *_: Any) -> Worst:
    variant = args.word("variant", "standard", "fresh-threshold", "noisy-values", "endless")
    if args.word("noise", "Laplace", "Gaussian") != "Laplace":
        raise NotProved("AboveThreshold with Gaussian noise")
    c, move = args.integer("count"), 1 if args.flag("monotone") else 2
    told_apart = table([(ONE, ZERO), (ZERO, ONE)])
    if variant == "endless" or compare(args["query_scale"], "==", 0):
        return _same("above-threshold", told_apart)
    s, r = (args["sensitivity"] / args[key] for key in ("threshold_scale", "query_scale"))
    if variant == "noisy-values":
        law = replace(told_apart, answer=_unknown("answers that are shown"))
        return _same("above-threshold", law, attained=LARGEST)
    alone = s + move * r
    t = c * alone if variant == "fresh-threshold" else s + c * move * r
    attained = LARGEST if not args.given("steps") else NOTHING
    return _same("above-threshold", pure(t), attained=attained)


def _unknown(what: str) -> Callable[[Number], Answer]:
    def answer(_: Number) -> Answer:
        raise NotProved(f"the curve of {what}")

    return answer


def _partition_selection(args: Arguments, *_: Any) -> Worst:
    law = guaranteed(args["epsilon"], args["delta"])
    return _same("partition-selection", law, attained=NOTHING)


def _threshold(args: Arguments, *_: Any) -> Worst:
    k, away = args.integer("partitions"), args["threshold"] - args["sensitivity"]
    if k > 200:
        raise NotProved("a user in more than 200 partitions")
    if args.noise.name == "GaussianThreshold":
        shown, moved = laws.normal_above(away / args["standard_deviation"]), None
        moved = args["sensitivity"] / args["standard_deviation"]
    else:
        tail = exp(-maximum([away, -away]) / args["scale"]) / 2
        shown = tail if told(away, ">=", ZERO) else 1 - tail
        moved = args["sensitivity"] / args["scale"]
    hidden = 1 - shown
    remove: list[Way] = []
    add: list[Way] = []
    for new in range(k, -1, -1):
        none = ONE
        for _ in range(new):
            none = none * hidden
        fresh = table([(1 - none, ZERO), (none, ONE)])
        rest: Way = ()
        if new < k and args.noise.name == "GaussianThreshold":
            rest = (((laws.gaussian(moved * sqrt(fmpq(k - new))),), 1),)
        elif new < k:
            rest = (((laws.laplace(moved),), k - new),)
        remove.append((*((((fresh,), 1),) if new else ()), *rest))
        add.append((*((((laws.swapped(fresh),), 1),) if new else ()), *rest))
    return Worst(remove, add, {"threshold"})


def _propose_test_release(args: Arguments, *_: Any) -> Worst:
    tau, r = args["threshold"], 1 / args["test_scale"]
    release = laws.laplace(args["sensitivity"] / args["scale"])

    def passes(margin: Number) -> Number:
        rare = exp(-maximum([margin, -margin])) / 2
        return rare if told(margin, ">=", ZERO) else 1 - rare

    a = passes(tau * r)
    unstable = table([(a, ZERO), (1 - a, 1 - a), (ZERO, a)])
    found = [replace(unstable, symmetric=True), release]
    near = whole(tau)
    for n in sorted({0, near - 1, near, near + 1}):
        if n >= 0:
            low, high = passes((tau - n) * r), passes((tau - n - 1) * r)
            found += [laws.tested(release, high, low), laws.tested(release, low, high)]
    return _same("propose-test-release", *found)


def _composed(args: Arguments, adjacency: str | None, budget: Budget) -> Worst:
    inside, count = args.noise["mechanism"], args.integer("count")
    parts = inside if isinstance(inside, list) else [inside]
    args.flag("adaptive")
    remove: Way = ()
    add: Way = ()
    rows, attained = {"composition"}, CURVE
    for part in parts:
        budget.check(cases=1)
        found = worst(part, adjacency, args.value, budget)
        rows |= found.rows
        if adjacency != "add-remove":
            found = replace(found, remove=found.ways, add=found.ways)
        ways = [_joined(ways) for ways in (found.remove, found.add)]
        attained = max(attained, found.attained, key=[CURVE, LARGEST, NOTHING].index)
        if len(parts) == count == 1:
            return replace(found, rows=rows)
        remove, add = (
            sofar + tuple((laws_, n * count) for laws_, n in way)
            for sofar, way in zip((remove, add), ways, strict=True)
        )
    if any(law.only_alone for laws_, _ in remove for law in laws_):
        attained = NOTHING
    return Worst([remove], [add], rows, attained)


def _joined(ways: Sequence[Way]) -> Way:
    """Return one way for any of several: the laws of single releases become one factor."""
    if len(ways) == 1:
        return ways[0]
    if any(len(way) != 1 or way[0][1] != 1 for way in ways):
        raise NotProved("a composition of a mechanism with several products of worst pairs")
    return ((tuple(law for way in ways for law in way[0][0]), 1),)


def _sampled(args: Arguments, adjacency: str | None, budget: Budget) -> Worst:
    inner = args.noise["mechanism"]
    if args.noise.name == "PoissonSubsampled":
        q, row = args["sampling_prob"], "poisson"
        if adjacency == "replace-one":
            return _sampled_replaced(args, q, budget)
        if adjacency is None:
            raise NotProved("PoissonSubsampled needs its relation: add-remove or replace-one")
        found = worst(inner, adjacency, args.value, budget)
        remove, add = _joined(found.remove), _joined(found.add)
    else:
        q, row = args["sample_size"] / args["population"], "without-replacement"
        if told(q, ">", ONE):
            raise args.wrong("sample_size", "is above the population")
        found = worst(inner, "replace-one", args.value, budget)
        remove = add = _joined(found.ways)
    rows = {row, *found.rows}
    if told(q, "==", ZERO):
        nothing = one(table([(ONE, ONE)]))
        return Worst(nothing, nothing, rows)
    if told(q, "==", ONE):
        return replace(found, rows=rows)
    remove, add = (merged(way) for way in (remove, add))
    if len(remove) != 1 or remove[0][1] != 1 or len(add) != 1 or add[0][1] != 1:
        raise NotProved("a sampled composition")
    one_way = tuple(laws.sampled(law, q) for law in remove[0][0])
    other = tuple(laws.diluted(law, q) for law in add[0][0])
    attained = found.attained
    if any(law.only_alone for law in (*remove[0][0], *add[0][0])) and attained == CURVE:
        attained = CURVE
    if args.noise.name == "SampledWithoutReplacement":
        both: list[Way] = [((one_way + other, 1),)]
        return Worst(both, both, rows, attained)
    return Worst([((one_way, 1),)], [((other, 1),)], rows, attained)


def _sampled_replaced(args: Arguments, q: Number, budget: Budget) -> Worst:
    """Return a Gaussian release of a replaced record, sampled before and after: means ±μ."""
    if not isinstance(args.noise["mechanism"], Noise) or args.noise["mechanism"].name != "Gaussian":
        raise NotProved("a sampled replacement of other than Gaussian noise")
    found = worst(args.noise["mechanism"], "replace-one", args.value, budget)
    mu = found.remove[0][0][0][0].mu
    assert mu is not None
    return _same("mixture", _opposite([(ZERO, 1 - q), (mu, q)]))


def _opposite(entries: Sequence[Answer]) -> Law:
    """Return the mixture of N(m, 1) by weights, as (m, w), against that of the opposite means."""
    entries = [(m, w) for m, w in entries if not compare(w, "==", 0)]
    if all(compare(m, "==", 0) for m, _ in entries):
        return table([(ONE, ONE)])
    p, q = [(w, m) for m, w in entries], [(w, -m) for m, w in entries]
    return replace(laws.gaussian_mixture(p, q), symmetric=True)


def _mixture(args: Arguments, adjacency: str | None, _: Budget) -> Worst:
    _named(args.noise, adjacency)
    sizes, weights = args.numbers("sensitivities"), _masses(args, "sampling_probs")
    if len(sizes) != len(weights):
        raise args.wrong("sensitivities", "has another length than sampling_probs")
    entries = [(s / args["standard_deviation"], w) for s, w in zip(sizes, weights, strict=True)]
    entries = [(m, w) for m, w in entries if not compare(w, "==", 0)]
    if adjacency == "replace-one":
        return _same("mixture", _opposite(entries))
    if all(compare(m, "==", 0) for m, _ in entries):
        return _same("mixture", table([(ONE, ONE)]))
    p, plain = [(w, m) for m, w in entries], [(ONE, ZERO)]
    law = laws.gaussian_mixture(p, plain)
    back = laws.gaussian_mixture(plain, [(w, -m) for w, m in p])  # reflected
    return Worst(one(law), one(back), {"mixture"})


def merged(way: Way) -> Way:
    """Return a way with its Gaussian factors made one, as their μ² add up."""
    square, rest = None, []
    for found, count in way:
        if len(found) == 1 and found[0].mu is not None:
            rho = found[0].rho
            assert rho is not None
            square = 2 * count * rho + (0 if square is None else square)
            last = (found, count)
        else:
            rest.append((found, count))
    if square is None:
        return way
    single = sum(1 for f, _ in way if f[0].mu is not None) == 1 and last[1] == 1
    gaussian = last if single else ((root(square),), 1)
    return (gaussian, *rest)


_WORST: dict[str, Callable[..., Worst]] = {
    "AboveThreshold": _above_threshold,
    "BoundedCountNoise": _count_noise,
    "Channel": _channel,
    "Composed": _composed,
    "DiscreteCorrelatedGaussian": _discrete_correlated,
    "DiscreteGaussian": _integers("discrete-gaussian", laws.discrete_gaussian, "parameter"),
    "DiscreteLaplace": _integers("discrete-laplace", laws.discrete_laplace, "scale"),
    "ExponentialMechanism": _exponential,
    "GaussianThreshold": _threshold,
    "Guaranteed": _guaranteed,
    "HadamardResponse": _local,
    "IntegerNoise": _integer_noise,
    "Laplace": _laplace,
    "LaplaceThreshold": _threshold,
    "LaplaceVector": _laplace_vector,
    "LocalHashing": _local,
    "Logistic": _logistic,
    "MixtureOfGaussians": _mixture,
    "PartitionSelection": _partition_selection,
    "PermuteAndFlip": _permute,
    "PoissonSubsampled": _sampled,
    "ProposeTestRelease": _propose_test_release,
    "RandomizedResponse": _response,
    "Rappor": _local,
    "ReportNoisyMax": _noisy_max,
    "SampledWithoutReplacement": _sampled,
    "Skellam": _integers("skellam", laws.skellam, "variance"),
    "Staircase": _staircase,
    "SubsetSelection": _local,
    "Tabulated": _tabulated,
    "TopSelections": _top,
    "TruncatedGeometric": _truncated_geometric,
    "TruncatedLaplace": _truncated_laplace,
    "UnaryEncoding": _local,
}
"""Mechanism → its worst pairs."""
