"""The ledger of "Better Gaussian Mechanism": every verdict, and its numbers a second time."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from mpmath import exp, matrix, mp, mpf, ncdf, sqrt

from verify.document import Document, read_paper
from verify.verdict import Finding, Verdict

FINDINGS = Path(__file__).parents[3] / "docs" / "findings" / "better-gaussian.md"

REFUTED = """
theorem-3-1-simplified/wording corollary-3-1/four-values/wording section-4-1/reduce-k-d/wording
section-5/exact-match/wording
"""
SLIPS = """
section-3/recover-f lemma-3-4/domain lemma-4-2/equivalence algorithm-2/improves-replace-one
section-4-1/recalled-variance
"""
HOLDS = """
abstract/variance-split abstract/beats-standard section-1/limit-half
section-1/limit-half/decreasing section-1/clipped-sensitivity
section-1/clipped-sensitivity/attained parallelogram section-1/counting-sensitivity
section-1/counting-sensitivity/replace-one theorem-3-1-simplified/corrected hidden-size/square
theorem-3-1-simplified/d-2 section-1/half-lower-bound section-1/replacement-optimum
section-1/group-privacy section-1/known-size remark-2-3/epsilon-delta remark-2-3/rdp
remark-2-3/zcdp lemma-2-1 algorithm-1 algorithm-1/norm algorithm-1/tight algorithm-1/replace-one
section-3/half-distance figure-1/replacement-corners figure-1/add-remove-corners figure-1/circles
figure-1/ellipse lemma-3-1 section-3/recover-f/corrected lemma-3-2 lemma-3-2/attained lemma-3-3
lemma-3-4 lemma-3-4/mean lemma-3-4/last lemma-3-4/independent lemma-3-4/optimal-C theorem-3-1
theorem-3-1/error corollary-3-1 corollary-3-1/entries corollary-3-1/four-values/corrected
note-practitioners/discrete note-practitioners/discrete/sum note-practitioners/discrete/not-gdp
note-practitioners/rational-C section-3-1/half-sensitivity section-3-1/fresh-estimates
section-3-1/ratio-C lemma-3-5/privacy lemma-3-5/variance lemma-3-5/size-variance
lemma-3-5/hidden-size section-3-1/global-minimum section-3-1/monotone-A section-3-1/monotone-B
section-3-1/no-benefit-small-C section-3-1/d-10000-min section-3-1/c-100/variance
section-3-1/c-100/size section-3-1/c-100/identity section-3-1/c-100/half
section-3-1/still-outperforms section-3-1/diminishing figure-2/curve figure-2/covariance
figure-2/covariance/norm lemma-3-6 lemma-3-6/exact-size lemma-3-6/private-estimate lemma-3-6/error
section-4/norm lemma-4-1/add-remove lemma-4-1/replace-one lemma-4-2/add-remove
lemma-4-2/replace-one lemma-4-2/replace-one/cases lemma-4-2/replace-one/d-1
lemma-4-2/equivalence/corrected lemma-4-2/corrected lemma-4-2/corrected/cases
lemma-4-2/sensitivity-cases algorithm-2/improves-replace-one/corrected
algorithm-2/improves-add-remove algorithm-2/c-choice algorithm-2/c-choice/below
algorithm-2/wrong-adjacency section-4/better-counts section-4-1/standard-k ellipse/dual
ellipse/through-j ellipse/through-j/private ellipse/above-peak ellipse/below-peak ellipse/step-up
ellipse/step-down ellipse/two-binding ellipse/two-binding/dual ellipse/two-binding/weight
section-4-1/jy-optimal lemma-4-3/privacy lemma-4-3/variance section-4-1/odd-variance
section-4-1/optimum-monotone section-4-1/nested lemma-4-4 lemma-4-4/odd lemma-4-4/printed-0.87
lemma-4-4/sharp lemma-4-4/sharp/odd lemma-4-4/even-gap lemma-4-4/even-gap/decreasing
lemma-4-4/even-gap/printed-0.46 lemma-4-4/odd-gap lemma-4-4/odd-gap/sum
lemma-4-4/odd-gap/decreasing lemma-4-4/odd-gap/at-3 lemma-4-4/odd-gap/smaller-dimension
lemma-4-4/exact-d3-k1 lemma-4-4/d3-in-range lemma-4-4/d1 section-4-1/size-ellipse
section-4-1/reduce-k-d/squares section-4-1/tiny-d section-4-1/tiny-d/root
section-4-1/tiny-d/up-to-3 figure-3/left figure-3/left/algorithm-1 figure-3/right
figure-3/preferred figure-3/continued section-5/exact-match/corrected section-5/loss-law
section-5/fhss24 section-5/scale section-6/laplace section-6/laplace/variance
section-6/laplace/quarter section-6/laplace/small-d section-5/su16/domains lemma-2-2/event
section-4/same-noise section-4/same-noise/two-groups
"""
ARGUED = """
theorem-3-1-simplified/squares section-4-1/open-problem section-4-1/reduce-k-d/corrected lemma-2-2
"""
PENDING = {
    "proof": """definitions-2-1-to-2-5 section-5/su16 section-5/literature
        section-6/overlapping-groups section-6/sparse-histogram""",
    "audit": "note-practitioners/floating-point",
}
VERDICTS = {
    **dict.fromkeys(REFUTED.split(), Verdict.REFUTED),
    **dict.fromkeys(SLIPS.split(), Verdict.SLIP),
    **dict.fromkeys(HOLDS.split(), Verdict.HOLDS),
    **dict.fromkeys(ARGUED.split(), Verdict.ARGUED),
    **{name: Verdict.PENDING for names in PENDING.values() for name in names.split()},
}

STANDING = {Verdict.HOLDS, Verdict.ARGUED}
COUNTEREXAMPLES: dict[str, tuple[dict[str, str], str, str]] = {
    "theorem-3-1-simplified/wording": ({"d": "2"}, "0.98517143", "1"),
    "section-5/exact-match/wording": ({"d": "2"}, "0.98517143", "1"),
    "section-3/recover-f": ({"n": "2", "f": "0", "C": "1"}, "0", "-2"),
    "lemma-3-4/domain": ({"d": "1"}, "2", "1"),
    "corollary-3-1/four-values/wording": ({"d": "9"}, "0", "0"),
    "lemma-4-2/equivalence": ({"d": "1", "m": "0.5"}, "16", "4"),
    "algorithm-2/improves-replace-one": ({"d": "2"}, "6", "4"),
    "section-4-1/recalled-variance": ({"d": "4", "m": "0.5"}, "9", "4.5"),
    "section-4-1/reduce-k-d/wording": ({"d": "4"}, "2.25", "2.25"),
}
"""Refuted claim → the case that is reported, and the beginning of both sides."""


@pytest.fixture(scope="module")
def ledger() -> Document:
    return read_paper("better-gaussian")


@pytest.fixture(scope="module")
def findings(decided: Callable[[str], dict[str, Finding]]) -> dict[str, Finding]:
    return decided("better-gaussian")


def test_the_table_names_every_claim(ledger: Document) -> None:
    assert {claim.id for claim in ledger.claims} == set(VERDICTS)


@pytest.mark.slow
def test_verdicts(findings: dict[str, Finding]) -> None:
    assert {name: finding.verdict for name, finding in findings.items()} == VERDICTS
    assert all(each.source and each.statement and each.reason for each in findings.values())


@pytest.mark.parametrize("name", REFUTED.split() + SLIPS.split())
def test_a_refutation_names_its_cause_and_a_claim_that_holds(
    findings: dict[str, Finding], name: str
) -> None:
    finding = findings[name]
    assert finding.cause
    named = re.findall(r"[a-z][a-z0-9-]*-\d[a-zA-Z0-9-]*(?:/[a-zA-Z0-9-]+)*", finding.correction)
    assert any(VERDICTS.get(other) in STANDING for other in named), finding.correction
    assert f"`{name}`" in FINDINGS.read_text("utf-8")


def test_findings_point_to_claims_of_the_ledger() -> None:
    text = FINDINGS.read_text("utf-8")
    named = set(re.findall(r"`([a-z0-9-]+(?:/[A-Za-z0-9./-]+)?)`", text))
    assert named - {"verify/papers/better-gaussian.toml"} <= set(VERDICTS)
    for entry in re.findall(r"^- Corrected:(.*?)(?=^- |^#|\Z)", text, re.MULTILINE | re.DOTALL):
        ids = re.findall(r"`([a-z0-9-]+/?[A-Za-z0-9./-]*)`", entry)
        assert ids
        assert {VERDICTS[name] for name in ids} <= STANDING, entry


@pytest.mark.parametrize("name", COUNTEREXAMPLES)
def test_the_worst_counterexample(findings: dict[str, Finding], name: str) -> None:
    case, left, right = COUNTEREXAMPLES[name]
    witness = findings[name].witness
    assert witness["case"] == case
    assert witness["left"].startswith(left)
    assert witness["right"].startswith(right)


@pytest.mark.parametrize("name", ARGUED.split())
def test_what_is_argued_shows_the_argument_and_rests_on_lemmas_that_stand(
    ledger: Document, findings: dict[str, Finding], name: str
) -> None:
    claim = next(claim for claim in ledger.claims if claim.id == name)
    assert claim.argument in findings[name].reason
    assert claim.lemmas
    assert {VERDICTS[lemma] for lemma in claim.lemmas} <= STANDING


@pytest.mark.parametrize("needs", PENDING)
def test_pending_says_what_it_needs(findings: dict[str, Finding], needs: str) -> None:
    for name in PENDING[needs].split():
        assert findings[name].reason.startswith(f"Needs {needs}: ")


# ---------------------------------------------------------------- the numbers, a second time


def largest_norm(covariance: matrix, vectors: list[tuple[int, ...]]) -> mpf:
    """The largest √(v'Σ⁻¹v), by solving for every v."""
    norms = [matrix(v).T * mp.lu_solve(covariance, matrix(v)) for v in vectors]
    return sqrt(max(norm[0] for norm in norms))


def algorithm_1(d: int, size: bool) -> matrix:
    """The covariance of Corollary 3.1, without its last row and column where the size is hidden."""
    root = sqrt(mpf(d))
    full = matrix(d + 1, d + 1)
    for i, j in itertools.product(range(d + 1), repeat=2):
        weight = (2 if i == d else 1) * (2 if j == d else 1)
        full[i, j] = weight * (root + 1) / 4 + (i == j < d) * (d + root) / 4
    return full if size else full[:d, :d]


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_the_size_decides_the_norm(d: int) -> None:
    with mp.workdps(40):
        records = list(itertools.product((0, 1), repeat=d))
        with_size = largest_norm(algorithm_1(d, True), [(*v, 1) for v in records])
        without = largest_norm(algorithm_1(d, False), [v for v in records if any(v)])
        assert abs(with_size - 1) < mpf(10) ** -35
        if d in (1, 4):
            assert abs(without - 1) < mpf(10) ** -35
        else:
            assert without < mpf("0.995")
        if d == 2:
            assert abs(without**2 - (12 * sqrt(mpf(2)) - 16)) < mpf(10) ** -35


@pytest.mark.parametrize(("eta", "worst"), [(Fraction(4), Fraction(5, 8)), (Fraction(1), 1)])
def test_algorithm_2_between_rows(eta: Fraction, worst: Fraction) -> None:
    """Two records in different rows, d = 2: (v − c/2)²/Var z + c²/(4 Var η) for each row."""
    d = 2
    one = [sum((Fraction(x) - Fraction(1, 2)) ** 2 for x in v) / d + 1 / (4 * eta)
           for v in itertools.product((0, 1), repeat=d) if any(v)]  # fmt: skip
    assert 2 * max(one) == worst


def test_bound_from_three_ones() -> None:
    """d = 4: the four records with three ones prove that 9/4 per query is optimal."""
    records = [tuple(int(i != j) for j in range(4)) for i in range(4)]
    moment = [[Fraction(sum(v[i] * v[j] for v in records), 4) for j in range(4)] for i in range(4)]
    root = [[Fraction(3, 4) if i == j else Fraction(1, 4) for j in range(4)] for i in range(4)]
    square = [[sum(root[i][m] * root[m][j] for m in range(4)) for j in range(4)] for i in range(4)]
    assert square == moment
    assert sum(root[i][i] for i in range(4)) ** 2 / 4 == Fraction(9, 4)


def test_discrete_gaussian_on_the_embedding(findings: dict[str, Finding]) -> None:
    """δ(1/4) at d = C = μ = 1 by summing over the integers that matter."""
    with mp.workdps(30):
        weights = {z: exp(-mpf(z * z) / 4) for z in range(-40, 41)}
        total = sum(weights.values())
        masses: dict[int, mpf] = {}
        for (x, p), (y, q) in itertools.product(weights.items(), repeat=2):
            masses[x + y] = masses.get(x + y, mpf(0)) + p * q / total**2
        # the pair at (0, 0) and (1, 1): the loss at x + y = t is (2t − 2)/4 with its sign
        delta = sum(
            (p * max(mpf(0), 1 - exp(mpf("0.25") - mpf(1 - t) / 2)) for t, p in masses.items()),
            mpf(0),
        )
        gaussian = ncdf(mpf("0.25")) - exp(mpf("0.25")) * ncdf(mpf("-0.75"))
        found = findings["note-practitioners/discrete/not-gdp"].true
        assert mp.almosteq(mpf(found["left"]["lower"]), delta, mpf("1e-14"))
        assert mp.almosteq(mpf(found["right"]["lower"]), gaussian + mpf("0.004"), mpf("1e-14"))


@pytest.mark.parametrize("d", [2, 3, 5, 6, 7])
def test_the_gap_of_lemma_4_4(d: int) -> None:
    """The bound V(j), maximised over the allowed j, never leaves more than (2√2 − 1)/4."""
    with mp.workdps(30):
        for k in range((d + 1) // 2, d + 1):
            best = max((j + sqrt(mpf((d - 1) * j * (d - j)))) ** 2 / d**2 for j in range(1, k + 1))
            gap = (sqrt(mpf(d)) + 1) ** 2 / 4 - best
            limit = (2 * sqrt(mpf(2)) - 1) / 4
            assert gap <= limit + mpf(10) ** -25
