"""The ledger of "Count on Your Elders": every verdict, and its numbers a second time."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from math import comb
from pathlib import Path

import pytest
from mpmath import exp, log, mp, mpf, pi, quad, sqrt

from accountant.mechanisms import LaplaceVector
from accountant.questions import profile
from verify.document import Document, read_paper
from verify.verdict import Finding, Verdict

pytestmark = pytest.mark.slow  # the default run decides the two shorter ledgers

FINDINGS = Path(__file__).parents[3] / "docs" / "findings" / "count-on-your-elders.md"

REFUTED = """
section-1-1/huu-bound/cited corollary-5-5/ratio-2 claim-1/worse/finite
section-1-3/huu-laplace/finite
"""
HOLDS = """
abstract/k-19-exponent abstract/gaussian-replaceable abstract/gaussian-replaceable/exact-gaussian
abstract/gaussian-replaceable/small-epsilon abstract/gaussian-replaceable/exact-laplace
abstract/strictly-better abstract/strictly-better/threshold abstract/strictly-better/classic
section-1-1/best-known/bettered section-1-1/factor-4 section-1-1/huu-bound/logarithm
section-1-1/huu-bound/central-binomial section-1-1/huu-bound/tail section-1-1/huu-constant
section-1-1/huu-constant/exponent theorem-1-2 theorem-1-2/two-digits theorem-1-2/capacity
theorem-1-2/finite theorem-1-2/powers-of-ten theorem-1-2/calibrated theorem-1-2/calibrated/private
theorem-1-3/mean-loss theorem-1-3/largest-loss hoeffding theorem-1-3/never-worse
theorem-1-3/second-branch section-1-2/factor-2 section-1-2/factor-2/optima
section-1-3/honaker-factor-2/weights section-1-3/honaker-factor-2/approached
section-1-3/smooth-binary-factor-4 section-1-3/smooth-binary-factor-4/height
section-1-3/smooth-binary-factor-4/largest section-1-3/more-than-factor-2-away
section-2/mse-equals-variance definition-3-2 algorithm-1/variance lemma-3-3 lemma-3-5
lemma-3-5/digit-average section-3-2/k-17 section-3-2/k-17/value section-3-3/half-vertices
section-3-3/factor-2 definition-3-8 section-3-3/height/enough section-3-3/height/least
section-3-3/right-half proposition-4-1/outweighs lemma-4-5 section-4-2/variance lemma-4-7
lemma-4-7/digit-average lemma-4-7/other-n corollary-4-9/scaling corollary-4-9/k-19
corollary-4-9/0.1236 corollary-4-9/factor-4 corollary-4-9/factor-4/finite
corollary-4-9/k-19/finite lemma-4-14/other-n section-5/gaussian-noise-grows lemma-5-1
lemma-5-1/natural-logarithm proof-5-3/second-constant proof-5-3/0.92 lemma-5-4/unequal
lemma-5-4/root lemma-5-4/loose corollary-5-5/variance corollary-5-5/limit
corollary-5-5/ratio-2/corrected section-5-2/l2-from-l1 section-5-2/l1-from-l2 lemma-a-2
lemma-a-2/one lemma-a-3 lemma-a-3/range definition-c-1 claim-1/mse/sum proof-c-2/digit-average
claim-1/worse/best-odd claim-1/worse/million appendix-c/factor corollary-c-3/k-20
corollary-c-3/k-20/value appendix-c/scaling-worse lemma-d-1/mean lemma-d-1/laplace proof-d-2/tanh
proof-d-3/taylor proof-d-4 section-1-3/huu-laplace section-1-3/huu-laplace/better
abstract/gaussian-replaceable/pi theorem-1-3/zcdp
"""
ARGUED = """
theorem-1-1/privacy theorem-1-1/mse theorem-1-1/time-and-space section-1-1/huu-bound/corrected
theorem-1-3 section-1-3/honaker-factor-2 section-3-2/binary-levels lemma-3-3/sensitivity
lemma-3-3/adaptive theorem-3-7/privacy theorem-3-7/mse theorem-3-7/time-and-space theorem-3-7/live
proposition-4-1 proposition-4-3 lemma-4-5/sensitivity proposition-4-10 lemma-4-12/live
lemma-4-14/terms lemma-5-4 claim-1/valid claim-1/mse proof-c-2/recursion corollary-c-3/scaling
lemma-d-1
"""
STANDS = {Verdict.HOLDS, Verdict.ARGUED}
PENDING = {
    "proof": """abstract/all-factorizations
        section-1-1/best-known section-1-1/huu-optimal section-1-1/common-delta
        section-1-3/related-work definition-3-1 definition-a-1 section-6/asymptotics""",
    "data": "figures-1-and-2",
    "lp": "section-6/which-noise",
}
VERDICTS = {
    **dict.fromkeys(REFUTED.split(), Verdict.REFUTED),
    **dict.fromkeys(HOLDS.split(), Verdict.HOLDS),
    **dict.fromkeys(ARGUED.split(), Verdict.ARGUED),
    **{name: Verdict.PENDING for names in PENDING.values() for name in names.split()},
}


@pytest.fixture(scope="module")
def ledger() -> Document:
    return read_paper("count-on-your-elders")


@pytest.fixture(scope="module")
def findings(decided: Callable[[str], dict[str, Finding]]) -> dict[str, Finding]:
    return decided("count-on-your-elders")


def test_the_table_names_every_claim(ledger: Document) -> None:
    assert {claim.id for claim in ledger.claims} == set(VERDICTS)


def test_verdicts(findings: dict[str, Finding]) -> None:
    assert {name: finding.verdict for name, finding in findings.items()} == VERDICTS
    assert all(each.source and each.statement and each.reason for each in findings.values())


@pytest.mark.parametrize("name", REFUTED.split())
def test_a_refutation_names_its_cause_and_a_claim_that_holds(
    findings: dict[str, Finding], name: str
) -> None:
    finding = findings[name]
    assert finding.cause
    named = re.findall(r"[a-z][a-z0-9-]*(?:/[a-z0-9-]+)+", finding.correction)
    assert any(VERDICTS.get(other) in STANDS for other in named), finding.correction
    assert f"`{name}`" in FINDINGS.read_text("utf-8")


def test_findings_point_to_claims_of_the_ledger() -> None:
    text = FINDINGS.read_text("utf-8")
    named = set(re.findall(r"`([a-z0-9-]+(?:/[A-Za-z0-9./-]+)?)`", text))
    assert named - {"verify/papers/count-on-your-elders.toml"} <= set(VERDICTS)
    for entry in re.findall(r"^- Corrected:(.*?)(?=^- |^#|\Z)", text, re.MULTILINE | re.DOTALL):
        ids = re.findall(r"`([a-z0-9-]+/?[A-Za-z0-9./-]*)`", entry)
        assert {VERDICTS[name] for name in ids} <= STANDS, entry


def test_the_counterexamples(findings: dict[str, Finding]) -> None:
    bound = findings["section-1-1/huu-bound/cited"]
    assert bound.witness["case"] == {"n": "1"}
    assert (bound.witness["left"], bound.witness["right"][:7]) == ("1", "0.86298")
    ratio = findings["corollary-5-5/ratio-2"]
    assert ratio.witness["case"] == {"delta": "0.5"}
    even = findings["claim-1/worse/finite"]
    assert (even.witness["claimed"], even.witness["rival"]) == ("9", "8")
    assert even.true["value at 8"]["lower"] == "32"
    assert even.true["value at 9"]["lower"] == "33"


@pytest.mark.parametrize("name", ARGUED.split())
def test_argued(ledger: Document, findings: dict[str, Finding], name: str) -> None:
    claim = next(claim for claim in ledger.claims if claim.id == name)
    assert claim.lemmas
    assert {findings[lemma].verdict for lemma in claim.lemmas} <= STANDS
    assert claim.argument in findings[name].reason


@pytest.mark.parametrize("needs", PENDING)
def test_pending_says_what_it_needs(findings: dict[str, Finding], needs: str) -> None:
    for name in PENDING[needs].split():
        assert findings[name].reason.startswith(f"Needs {needs}: ")


# ---------------------------------------------------------------- the numbers, a second time


def vertices(arity: int, steps: int) -> tuple[int, int]:
    """The height, and the vertices of all outputs, by writing every time step in signed digits."""
    low = (arity - 1) // 2
    height = 1
    while (arity - 1 - low) * (arity**height - 1) // (arity - 1) < steps:
        height += 1
    total = 0
    for step in range(1, steps + 1):
        rest = step
        for _ in range(height):
            digit = (rest + low) % arity - low
            total += abs(digit)
            rest = (rest - digit) // arity
        assert rest == 0
    return height, total


@pytest.mark.parametrize(("steps", "best"), [(1000, 14), (10_000, 28)])
def test_the_best_arity(steps: int, best: int) -> None:
    """What theorem-1-2/calibrated says of k = 2, …, 64, and which of them is best."""
    errors = {}
    for arity in range(2, 65):
        height, total = vertices(arity, steps)
        errors[arity] = Fraction(2 * height**2 * total, steps)
    assert min(errors, key=errors.__getitem__) == best
    with mp.workdps(30):
        gaussian = 2 * mpf("0.92") * log(steps) * (1 + log(mpf(4 * steps) / 5) / pi) ** 2
        assert gaussian < mpf(errors[best].numerator) / errors[best].denominator


def test_even_arity_at_32() -> None:
    assert vertices(8, 32) == (2, 128)
    errors = {}
    for arity in range(3, 68, 2):
        height, total = vertices(arity, 32)
        errors[arity] = Fraction(2 * height**2 * total, 32)
    assert min(errors.values()) == errors[9] == errors[65] == 33


@pytest.mark.parametrize("n", range(1, 31))
def test_the_square_root_factorization(n: int) -> None:
    """n ≤ 6 are the exceptions, by multiplying the factors out: M[i][j] = C(2m, m)/4^m, m = i−j."""
    root = [Fraction(comb(2 * m, m), 4**m) for m in range(n)]
    column = sum((entry**2 for entry in root), Fraction(0))
    rows = sum(((n - m) * entry**2 for m, entry in enumerate(root)), Fraction(0)) / n
    for i in range(n):  # M² is the lower triangular matrix of ones
        assert sum(root[m] * root[i - m] for m in range(i + 1)) == 1
    with mp.workdps(30):
        product = column * rows
        value = mpf(product.numerator) / product.denominator
        assert (value <= (1 + log(mpf(4 * n) / 5) / pi) ** 2) == (n >= 7)


def test_the_limit_of_the_ratio(findings: dict[str, Finding]) -> None:
    with mp.workdps(30):
        found = mpf(findings["corollary-5-5/ratio-2"].true["value at 10000000"]["lower"])
        expected = 2 * log(2) / log(mpf("2.5")) * ((1 + sqrt(1 + mpf(1) / 10**7)) / 2) ** 2
        assert mp.almosteq(found, expected, mpf("1e-14"))


def test_lemma_5_4_in_two_dimensions() -> None:
    """δ at ε = 1 with the λ of δ = 0.9, by conditioning on the loss of one coordinate."""
    with mp.workdps(25):
        level = -log(mpf("0.9"))
        t = mpf(mp.nstr(sqrt(level + 1) - sqrt(level), 15))  # each shift in units of λ, Δ₂ = √2

        def one(epsilon: mpf) -> mpf:
            """The hockey stick of one coordinate, at any real ε."""
            if epsilon >= t:
                return mpf(0)
            return 1 - exp(epsilon) if epsilon <= -t else 1 - exp((epsilon - t) / 2)

        delta = one(1 - t) / 2 + exp(-t) / 2 * one(1 + t)
        # dP = e^{(u − t)/2}/4 du between the atoms; a shift u leaves ε − u to the other coordinate
        kink = 1 - t
        ends = [-t, *([kink] if -t < kink < t else []), t]
        delta += quad(lambda u: exp((u - t) / 2) / 4 * one(1 - u), ends)
        shifts = [mp.nstr(t, 15)] * 2
        found = profile.delta(LaplaceVector(scale=1, shifts=shifts), 1)
        assert mp.almosteq(mpf(str(found.lower)), delta, mpf("1e-20"), mpf("1e-20"))
        assert mpf("0.05") < delta < mpf("0.9")


def test_threshold_exponent() -> None:
    with mp.workdps(30):
        k = mpf(19)
        odd = k * (1 - k**-2) / (2 * (log(k) / log(2)) ** 3)
        second = 4 * log(2) ** 3 / pi**2
        assert mp.almosteq(odd / second, mpf("0.915695295699375803372870653448"), mpf("1e-28"))
        assert mpf("0.91") < odd / second < mpf("0.92")
