"""The ledger of "Less is More": every verdict with its reason, and its numbers a second time."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from mpmath import (
    erfc,
    exp,
    expm1,
    findroot,
    gammainc,
    log,
    loggamma,
    mp,
    mpf,
    ncdf,
    pi,
    quad,
    sqrt,
)

from verify.document import Document, read_paper
from verify.verdict import Finding, Verdict

pytestmark = pytest.mark.slow
"""The ledger takes 40 s; two shorter ones are decided in the default suite."""

FINDINGS = Path(__file__).parents[3] / "docs" / "findings" / "less-is-more.md"

REFUTED = """
section-7-2/wishart/cited abstract/lower-bounds/classic/wording abstract/lower-bounds/analytic
abstract/lower-bounds/mvg/wording abstract/lower-order/classic/finite
abstract/lower-order/analytic/finite abstract/lower-order/mvg/finite
abstract/lower-order/prescribed-budgets abstract/kurtosis-stability
definition-2/alternative/wording section-3/analytic-derivation theorem-4/analytic
theorem-4/curse-removable section-4/clue property-1 theorem-5 theorem-5/half-space theorem-5/ball
theorem-5/proof/tight/wording theorem-5/proof/event remark-1/triangle theorem-7/as-low-as
theorem-7/psi-is-sine/wording section-5/curse-lifted corollary-1/lower-by-M/finite
corollary-1/theta-CM section-5/null-space-leak section-6/kurtosis-meaning
section-6/definitions/wording remark-2/gaussian-reference remark-2/asymptotics
remark-2/asymptotics/skewness remark-2/asymptotics/anisotropic corollary-2/loss/finite
corollary-2/stability section-7-1/sensitivity/wording section-7-1/budget-10000-times/wording
section-7-1/loss-r1smg section-7-1/loss-others/classic section-7-1/loss-others/analytic
section-7-1/loss-others/mvg section-7-1/dp-claim section-7-1/less-likely-large
section-7-2/dp-claim section-7-2/mvg-0.011 section-7-3/equation-16/amplification
section-7-3/equation-16/amplification/witness section-7-3/epsilon0-0.54 section-7-3/epsilon0-3.52
section-7-3/step section-7-3/dpsgd-2.673 section-7-3/dpsgd-20.713 section-7-3/r1smg-total
appendix-b/dp appendix-b/dp/r1smg table-1 section-7-1/max-counts/mvg
"""
SLIPS = """
section-4/equation-6/inequality theorem-7/expectation-as-printed corollary-1/theta-CA
theorem-8/mvg-last-line theorem-8/power-sums section-7-2/total-deviation-2041
section-7-3/epsilon0-5.42 section-5/cov-equals-r
"""
HOLDS = """
abstract/lower-bounds/classic/corrected abstract/lower-bounds/mvg/corrected
abstract/kurtosis-stability/corrected abstract/kurtosis-stability/two-dimensions proposition-1
section-1/order-M definition-2/sufficient theorem-1/range-is-needed theorem-3/looseness
theorem-3/looseness/exact-calibration theorem-3/looseness/pca section-3/classic-expectation
section-3/analytic-derivation/steps lemma-1 lemma-1/trace-of-the-power section-3/equation-4
section-3/equation-5 theorem-4/analytic/corrected theorem-4/analytic/proof
theorem-4/analytic/increasing section-4/equation-6/equality section-4/equation-6/corrected
property-1/corrected section-5/volume theorem-5/needed theorem-5/needed/least theorem-5/needed/pca
theorem-5/needed/against-gaussian theorem-5/corrected/proof theorem-5/ball/general
theorem-5/proof/equation-13 theorem-5/proof/equation-14 theorem-7/expectation
theorem-7/decreasing/small theorem-7/decreasing/proof theorem-7/as-low-as/corrected
section-5/curse-lifted/corrected corollary-1/theta-CA/corrected corollary-1/theta-CM/corrected
section-5/toy-vectors theorem-8/value theorem-8/value-35-3 theorem-8/classic theorem-9/value
theorem-9/classic remark-2/asymptotics/corrected remark-2/leptokurtic corollary-2/loss/corrected
section-7-1/sensitivity/replacement section-7-1/epsilon-bound section-7-1/budget-below
section-7-1/loss-r1smg/corrected section-7-1/loss-others/classic/corrected
section-7-1/loss-others/analytic/corrected section-7-1/loss-others/mvg/corrected
section-7-1/smaller-mean section-7-2/sensitivity section-7-2/epsilon section-7-2/one-ten-millionth
section-7-3/step/corrected section-7-2/classic-above-one section-7-2/mvg-0.011/corrected
section-7-3/equation-16/amplification/corrected section-7-3/steps section-7-3/epsilon0-0.71
section-7-3/epsilon0-5.42/corrected section-7-3/delta0-3.33e-7 section-7-3/epsilon0-0.54/corrected
section-7-3/epsilon0-3.52/corrected section-7-3/delta0-1e-7 section-7-3/epsilon0-beyond
appendix-b/linear appendix-b/parameters appendix-b/converges appendix-b/dp/needed
appendix-c/equation-20 appendix-c/transformation appendix-c/removes-gamma appendix-c/still-victim
section-7-3/dpsgd-1.795 section-7-3/dpsgd-16.983 section-7-3/dpsgd-2.673/corrected
section-7-3/dpsgd-20.713/corrected section-7-3/r1smg-total/corrected
section-7-3/strong-composition-looser section-7-1/h-b section-7-2/mod-sulq
section-7-2/wishart/corrected theorem-1 theorem-2 theorem-3 theorem-4/classic theorem-4/mvg
theorem-8/mvg theorem-9/mvg section-7-3/equation-16/composition/mean appendix-a/equation-17
appendix-b/mvg-more section-2/gamma-half section-5/cov-equals-r/rank section-5/equation-7-8
beyond/theorem-5/four-dimensions beyond/theorem-5/four-dimensions/end theorem-6/rotation
section-7-1/loss-others/part-of-the-map section-7-1/max-counts/mvg/corrected
section-7-2/nonprivate-zero section-7-3/no-sampling-rate appendix-d/order-1e5 section-3/vec
"""
SUPPORTED = """
theorem-5/three-dimensions theorem-7/rate
"""
ARGUED = """
section-7-3/equation-16/composition lemma-2 theorem-5/corrected theorem-5/proof/theta-exists
theorem-7/decreasing theorem-7/limit corollary-1/theta-CC corollary-1/gamma-ratio
corollary-1/CR-theta section-5/null-space section-1/full-rank theorem-6 section-7-2/symmetrise
"""
PENDING = {
    "proof": """section-1/epsilon-range theorem-2/closed-form
        section-5/intuition definition-7
        remark-1/one-over-M section-8/zhao section-7-1/dawa section-7-2/ppca""",
    "data": """section-7-1/max-counts section-7-1/comparable-dawa section-7-2/mvg-epsilon-5
        section-7-2/accuracy-96.89 section-7-2/figure-6 appendix-d/deviation-1e3
        appendix-d/accuracy-half""",
    "training": "section-7-3/mnist-epochs section-7-3/figures-7-8",
}
VERDICTS = {
    **dict.fromkeys(REFUTED.split(), Verdict.REFUTED),
    **dict.fromkeys(SLIPS.split(), Verdict.SLIP),
    **dict.fromkeys(HOLDS.split(), Verdict.HOLDS),
    **dict.fromkeys(SUPPORTED.split(), Verdict.SUPPORTED),
    **dict.fromkeys(ARGUED.split(), Verdict.ARGUED),
    **{name: Verdict.PENDING for names in PENDING.values() for name in names.split()},
}

WORST: dict[str, tuple[dict[str, str], str, Fraction | int]] = {
    "abstract/lower-bounds/analytic": ({"epsilon": "0.00001"}, "factor", 10**6),
    "abstract/lower-order/classic/finite": ({"M": "3"}, "factor", 10**17),
    "abstract/lower-order/prescribed-budgets": ({"M": "5760000"}, "factor", 10**5),
    "abstract/kurtosis-stability": ({"M": "7921", "k": "5"}, "factor", 10**100),
    "theorem-4/analytic": ({"epsilon": "0.00001", "delta": "0.0000000001"}, "factor", 4 * 10**6),
    "theorem-4/curse-removable": ({"M": "100000"}, "factor", 300),
    "property-1": ({"M": "100000"}, "factor", 300),
    "theorem-5/half-space": ({"M": "7921", "delta": "0.0000001"}, "factor", 10**6),
    "theorem-5/ball": ({"M": "7921", "delta": "0.0000000001"}, "factor", 10**7),
    "theorem-7/as-low-as": ({"M": "100"}, "factor", Fraction(168, 100)),
    "corollary-1/theta-CA": ({"epsilon": "0.000000001"}, "factor", 6000),
    "corollary-1/theta-CM": ({"r": "10000"}, "factor", Fraction(3, 2)),
    "corollary-2/loss/finite": ({"M": "3", "epsilon": "0.3"}, "factor", 10**17),
    "section-4/equation-6/inequality": ({"coefficient": "-1"}, "difference", 2),
    "section-7-1/loss-r1smg": ({"M": "7921"}, "difference", 387_110),
    "section-7-1/loss-others/mvg": ({"M": "89"}, "factor", 10**13),
    "section-7-3/equation-16/amplification": ({"epsilon0": "5.42"}, "factor", 29),
    "appendix-b/dp": ({"M": "1000000", "epsilon": "0.000000001"}, "factor", 10**14),
}
"""Refuted claim → part of the counterexample that is reported, and how bad it is at least."""


@pytest.fixture(scope="module")
def ledger() -> Document:
    return read_paper("less-is-more")


@pytest.fixture(scope="module")
def findings(decided: Callable[[str], dict[str, Finding]]) -> dict[str, Finding]:
    return decided("less-is-more")


def test_the_table_names_every_claim(ledger: Document) -> None:
    assert {claim.id for claim in ledger.claims} == set(VERDICTS)


def test_verdicts(findings: dict[str, Finding]) -> None:
    assert {name: finding.verdict for name, finding in findings.items()} == VERDICTS
    assert all(each.source and each.statement and each.reason for each in findings.values())


@pytest.mark.parametrize("name", REFUTED.split() + SLIPS.split())
def test_a_refutation_names_its_cause_and_a_claim_that_holds(
    findings: dict[str, Finding], name: str
) -> None:
    finding = findings[name]
    assert all((finding.cause, finding.correction))
    text = FINDINGS.read_text("utf-8")
    assert f"`{name}`" in text


def test_findings_point_to_claims_of_the_ledger() -> None:
    text = FINDINGS.read_text("utf-8")
    named = set(re.findall(r"`([a-z0-9-]+(?:/[A-Za-z0-9./-]+)?)`", text))
    assert named - {"verify/papers/less-is-more.toml"} <= set(VERDICTS)
    corrected = re.findall(r"^- Corrected:(.*?)(?=^- |^#|\Z)", text, re.MULTILINE | re.DOTALL)
    for entry in corrected:
        ids = re.findall(r"`([a-z0-9-]+/?[A-Za-z0-9./-]*)`", entry)
        kinds = {VERDICTS[name] for name in ids}
        assert kinds & {Verdict.HOLDS, Verdict.ARGUED, Verdict.PENDING}, entry


@pytest.mark.parametrize("name", WORST)
def test_the_worst_counterexample(findings: dict[str, Finding], name: str) -> None:
    case, margin, least = WORST[name]
    finding = findings[name]
    assert case.items() <= finding.witness["case"].items()
    assert Fraction(finding.margin[margin]["lower"]) >= least


def test_every_proof_is_accepted(ledger: Document, findings: dict[str, Finding]) -> None:
    proofs = {claim.id: claim.proof["method"] for claim in ledger.claims if claim.proof}
    assert proofs
    for name, method in proofs.items():
        assert findings[name].route.startswith(f"proof by {method}, ")


@pytest.mark.parametrize("needs", PENDING)
def test_pending_says_what_it_needs(findings: dict[str, Finding], needs: str) -> None:
    for name in PENDING[needs].split():
        assert findings[name].reason.startswith(f"Needs {needs}: ")


# ---------------------------------------------------------------- the numbers, in mpmath


def lower(finding: Finding, name: str) -> mpf:
    return mpf(finding.true[name]["lower"])


def gaussian_delta(epsilon: mpf, mu: mpf) -> mpf:
    return ncdf(mu / 2 - epsilon / mu) - exp(epsilon) * ncdf(-mu / 2 - epsilon / mu)


def inverse_psi(dimension: int, delta: str) -> mpf:
    size = mpf(dimension)
    logarithm = log(sqrt(pi) / mpf(delta)) + loggamma(size / 2) - loggamma((size - 1) / 2)
    return exp(2 * logarithm / (size - 2))


def test_the_printed_noise_of_the_pickup_counts(findings: dict[str, Finding]) -> None:
    with mp.workdps(40):
        value = lower(findings["section-7-1/loss-r1smg"], "value")
        assert mp.almosteq(value, 4 * inverse_psi(7921, "1e-7") * 10**5, mpf("1e-14"))


def test_the_bound_of_theorem_3(findings: dict[str, Finding]) -> None:
    with mp.workdps(40):
        size = mpf(2400)
        change = size * sqrt(2) / 24016
        first = sum(1 / mpf(i) for i in range(1, 2401))
        half = sum(1 / sqrt(mpf(i)) for i in range(1, 2401))
        tail = 2 * size * sqrt(7 * log(10)) + 14 * log(10) + size**2
        alpha = (first + (first + half) / 4) * change**2
        beta = 2 * sqrt(size) * first * change * tail
        root = (-beta + sqrt(beta**2 + 8 * alpha * mpf("1.6"))) / (2 * alpha)
        found = lower(findings["section-7-2/mvg-0.011"], "value")
        assert mp.almosteq(found, root**2, mpf("1e-8"))  # the difference cancels 24 digits


def test_delta_of_the_plotted_loss(findings: dict[str, Finding]) -> None:
    with mp.workdps(30):
        delta = gaussian_delta(mpf("0.5"), sqrt(2 / (mpf(55000) / 7921)))
        found = lower(findings["section-7-1/loss-others/analytic"], "delta")
        assert mp.almosteq(found, delta, mpf("1e-14"))


def test_tails_of_the_losses(findings: dict[str, Finding]) -> None:
    finding = findings["corollary-2/stability"]
    with mp.workdps(30):
        assert mp.almosteq(lower(finding, "left"), erfc(1), mpf("1e-14"))
        other = gammainc(mpf(7921) / 2, 7921, regularized=True)
        assert mp.almosteq(lower(finding, "right"), other, mpf("1e-12"))
        assert other < mpf(10) ** -500


@pytest.mark.parametrize(
    ("total", "epochs", "images", "root"),
    [
        ("1.795", 30, 60000, "0.712521"),
        ("16.983", 30, 60000, "5.425176"),
        ("2.673", 100, 60000, "0.571539"),
        ("2.673", 100, 50000, "0.521739"),
        ("20.713", 100, 60000, "3.490966"),
        ("20.713", 100, 50000, "3.186343"),
    ],
)
def test_roots_of_equation_16(total: str, epochs: int, images: int, root: str) -> None:
    with mp.workdps(30):
        rate = mpf(256) / images
        steps = epochs / rate
        scale = sqrt(2 * steps * log(mpf(10) ** 10))
        found = findroot(
            lambda e: scale * rate * e + steps * rate * e * expm1(rate * e) - mpf(total), mpf(root)
        )
        assert abs(found - mpf(root)) < mpf("1e-6")


def test_amplification_by_sampling(findings: dict[str, Finding]) -> None:
    with mp.workdps(30):
        value = log(1 + mpf(256) / 60000 * expm1(mpf("5.42")))
        found = lower(findings["section-7-3/equation-16/amplification"], "left")
        assert mp.almosteq(found, value, mpf("1e-14"))


def slab_mass(dimension: int, kappa: mpf) -> mpf:
    """P(|⟨n, u⟩| ≤ Δ/2): the mass of √σ_* z x in the slab, over the density of x = ⟨v, u⟩."""
    size = mpf(dimension)
    constant = 2 * exp(loggamma(size / 2) - loggamma((size - 1) / 2)) / sqrt(pi)

    def density(x: mpf) -> mpf:
        inside = mp.erf(kappa / (2 * sqrt(mpf(2)) * x)) if x else mpf(1)
        return constant * (1 - x * x) ** ((size - 3) / 2) * inside

    width = 1 / sqrt(size)
    return quad(density, [0, width / 100, width / 10, width, 3 * width, 10 * width, 20 * width])


def test_the_half_space_is_a_lower_bound(findings: dict[str, Finding]) -> None:
    """The closed form of the ledger lies below the quadrature of the same slab's mass."""
    with mp.workdps(25):
        epsilon = mpf("0.9") / 7921
        mass = slab_mass(7921, sqrt(epsilon / 2 / inverse_psi(7921, "1e-7")))
        event = mass - expm1(epsilon) * (1 - mass) / 2
        assert mpf("0.17") < lower(findings["theorem-5/half-space"], "left") < event < mpf("0.6")


def test_delta_of_the_pickup_release(findings: dict[str, Finding]) -> None:
    """The exact δ lies between the half-space's value and the total variation, both quadratures."""
    with mp.workdps(25):
        epsilon = mpf("1e-5")
        mass = slab_mass(7921, sqrt(epsilon / 2 / inverse_psi(7921, "1e-7")))
        event = mass - expm1(epsilon) * (1 - mass) / 2
        assert event < lower(findings["section-7-1/dp-claim"], "delta") < mass
        assert mass - event < mpf("5e-6")


def test_needed_noise_brackets_delta(findings: dict[str, Finding]) -> None:
    enough, less = (findings[name] for name in ("theorem-5/needed", "theorem-5/needed/least"))
    with mp.workdps(20):
        assert lower(enough, "left") < mpf("1e-7") < lower(less, "left")
        assert lower(less, "left") / lower(enough, "left") < mpf("1.0001")


def test_slab_bound(findings: dict[str, Finding]) -> None:
    with mp.workdps(40):
        epsilon, delta = mpf("1e-9"), mpf("1e-10")
        mass = (expm1(epsilon) + 2 * delta) / (exp(epsilon) + 1)
        count = mp.floor((1 / mass - 1) / 2)
        bound = mpf(10) ** 6 * mass * count * (4 * count**2 - 1) / 6
        assert mp.almosteq(lower(findings["appendix-b/dp"], "left"), bound, mpf("1e-14"))


def test_ratios_of_raw_moments() -> None:
    moments = [Fraction(1)]
    for i in range(4):
        moments.append(moments[-1] * (1 + 2 * i))
    _, first, second, third, fourth = moments
    assert fourth / second**2 == Fraction(35, 3)
    assert third**2 / second**3 == Fraction(25, 3)
    central = fourth - 4 * third * first + 6 * second * first**2 - 3 * first**4
    assert central / (second - first**2) ** 2 == 15
