"""The ledger of the count query paper: every verdict with its reason, its numbers again."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from mpmath import exp, fsum, log, mp, mpf

from verify.document import Document, read_paper
from verify.verdict import Finding, Verdict

pytestmark = pytest.mark.slow  # the default run decides the two shorter ledgers

FINDINGS = Path(__file__).parents[3] / "docs" / "findings" / "count-queries.md"

REFUTED = """
abstract/superiority/wording section-1/probability-reading/wording section-1/heavier-tail/wording
section-1/epsilon-monotone/exact section-1/support-monotone/reported/wording
p2/smaller-eta/wording p2/smaller-eta/exact/wording proposition-4/complete theorem-3/feasible
theorem-3/value theorem-3/proof-equality theorem-3/strict-order
theorem-3/optimal-mechanism/wording figure-1/identical-variance figure-1/gaussian-p-1
figure-1/gaussian-p-2 figure-1/gaussian-epsilon remark-2/guarantee remark-2/guarantee/by-hand
remark-2/domain/wording section-3/readily equations-7-8/wording figure-3/small-eta
figure-4/same-variance figure-4/same-utility/wording equation-45 section-5/guarantee
section-3/readily/large figure-4/poor-below-1.1/wording
"""
SLIPS = """
section-1/county-factor lemma-3/last-display equation-36/range theorem-2/only-if
figure-1/gaussian-ratio figure-1/mechanism-epsilon
"""
HOLDS = """
section-1/county-factor/corrected section-1/probability-reading/corrected
section-1/heavier-tail/corrected section-1/support-9-13 p2/smaller-eta/corrected
proposition-2/grows equations-7-8/corrected section-3/readily/corrected proposition-1
example-1/equation-4 example-1/counts example-1/equation-5 example-1/equation-5/coefficients
example-1/equation-6 definition-1/sensitivity remark-1 section-3/none-dominates proposition-3
equations-20-22 section-3/identities section-3/identities/sums lemma-1/step lemma-1/sum
lemma-2/step equation-35 theorem-3/value/by-hand theorem-3/optimal-mechanism/corrected figure-1/e
figure-1/c figure-1/c-3 figure-1/c-2 figure-1/regime figure-1/delta-3 figure-1/maximum
figure-1/p-1 figure-1/p-2 figure-1/ratio figure-1/variance figure-1/identical-variance/corrected
figure-1/gaussian-p-1/corrected figure-1/gaussian-p-1/parameter figure-1/gaussian-p-2/corrected
figure-1/gaussian-p-2/parameter figure-1/gaussian-ratio/corrected
figure-1/gaussian-ratio/identical-variance figure-1/gaussian-epsilon/corrected
figure-1/gaussian-epsilon/parameter figure-1/mechanism-epsilon/corrected figure-1/tail
figure-1/improves figure-1/graceful remark-2/guarantee/by-hand/law
remark-2/guarantee/by-hand/corrected remark-2/guarantee/tight remark-2/domain/corrected
figure-2/d-8/end figure-2/within-3 figure-3/threshold figure-3/left figure-3/right figure-3/knees
figure-4/same-variance/corrected figure-4/same-utility/corrected figure-4/superiority
figure-4/superiority/exact figure-4/superiority/reversed section-5/composition
section-5/composition/small-epsilon section-1/geometric-optimal section-1/epsilon-monotone
section-1/epsilon-monotone/last section-1/support-monotone section-1/eta-threshold
section-1/eta-threshold/above p1 p1/footnote-2 p3/footnote-3 equation-3 equation-3/general
proposition-2 section-3/readily/large/corrected equation-16 proposition-4
proposition-4/complete/corrected lemma-1 lemma-2 theorem-1 equation-34 lemma-3 lemma-3/last
lemma-4 equation-36 lemma-4/end theorem-2 theorem-2/before theorem-2/end theorem-2/last
theorem-2/only-if/corrected definition-2 equation-40 equations-41-43 equation-44 theorem-3/relaxed
theorem-3/relaxed/last theorem-3/feasible/corrected theorem-3/feasible/converse
theorem-3/footnote-5 theorem-3/strict-order/corrected figure-1/support remark-2/guarantee/exact
remark-2/guarantee/one-of-two remark-2/below-threshold remark-2/chain figure-2/d-8
variance-formula figure-4/poor-below-1.1/corrected figure-4/poor-below-1.1/floor
figure-4/poor-below-1.1/gaussian section-1/geometric-uneven section-1/geometric-extremes
section-1/geometric-support section-1/support-depends-on-n section-1/support-costs-delta
beyond/geometric
"""
ARGUED = """
theorem-3/value/corrected theorem-3/value/range remark-2/guarantee/corrected equation-45/corrected
proposition-2/fourier-motzkin
"""
STANDS = {Verdict.HOLDS, Verdict.ARGUED}
PENDING = {
    "proof": """section-1/explicit-fair""",
    "data": """figure-2 figure-4 section-4/many-experiments section-5/tighter""",
}
VERDICTS = {
    **dict.fromkeys(REFUTED.split(), Verdict.REFUTED),
    **dict.fromkeys(SLIPS.split(), Verdict.SLIP),
    **dict.fromkeys(HOLDS.split(), Verdict.HOLDS),
    **dict.fromkeys(ARGUED.split(), Verdict.ARGUED),
    **{name: Verdict.PENDING for names in PENDING.values() for name in names.split()},
}

WORST: dict[str, tuple[dict[str, str], str, Fraction | int]] = {
    "abstract/superiority/wording": ({"epsilon": "0.5"}, "factor", Fraction(114, 100)),
    "section-1/probability-reading/wording": ({"eta": "0.5"}, "factor", 11_000),
    "section-1/heavier-tail/wording": ({"u": "0.0000000000001"}, "difference", 1),
    "section-1/support-monotone/reported/wording": (
        {"E": "4", "eta": "0.8"},
        "factor",
        Fraction(6, 5),
    ),
    "proposition-4/complete": ({"E": "4", "eta": "0.01"}, "difference", Fraction(28, 100)),
    "theorem-2/only-if": ({"E": "2", "eta": "0.6"}, "difference", 0),
    "theorem-3/feasible": ({"E": "4", "D": "2"}, "difference", Fraction(28, 100)),
    "theorem-3/value": ({"E": "4", "D": "5"}, "factor", Fraction(36, 10)),
    "figure-1/identical-variance": ({}, "difference", Fraction(28, 1000)),
    "figure-1/gaussian-ratio": ({}, "difference", Fraction(88, 100)),
    "remark-2/guarantee": ({"epsilon": "2.2", "eta": "0.01", "D": "8"}, "factor", 250_000),
    "remark-2/guarantee/by-hand": ({}, "factor", Fraction(13, 10)),
    "figure-3/small-eta": ({"epsilon": "2.2"}, "factor", 180_000),
    "figure-4/same-utility/wording": ({"epsilon": "1.1"}, "difference", Fraction(13, 100)),
    "equation-45": ({"epsilon": "2.997"}, "factor", Fraction(107, 100)),
    "section-5/guarantee": ({"eta": "0.02"}, "factor", 180_000),
}
"""Refuted claim → part of the counterexample that is reported, and how bad it is at least."""


@pytest.fixture(scope="module")
def ledger() -> Document:
    return read_paper("count-queries")


@pytest.fixture(scope="module")
def findings(decided: Callable[[str], dict[str, Finding]]) -> dict[str, Finding]:
    return decided("count-queries")


def test_the_table_names_every_claim(ledger: Document) -> None:
    assert {claim.id for claim in ledger.claims} == set(VERDICTS)


def test_verdicts(findings: dict[str, Finding]) -> None:
    assert {name: finding.verdict for name, finding in findings.items()} == VERDICTS
    assert all(each.source and each.statement and each.reason for each in findings.values())


def test_every_proof_is_accepted(ledger: Document, findings: dict[str, Finding]) -> None:
    proofs = {claim.id: claim.proof["method"] for claim in ledger.claims if claim.proof}
    assert proofs
    for name, method in proofs.items():
        assert findings[name].route.startswith(f"proof by {method}, ")


@pytest.mark.parametrize("name", REFUTED.split() + SLIPS.split())
def test_a_refutation_names_its_cause_and_a_claim_that_holds(
    findings: dict[str, Finding], name: str
) -> None:
    finding = findings[name]
    assert finding.cause
    named = set(re.findall(r"[a-z][a-z0-9./-]*[a-z0-9]", finding.correction)) & set(VERDICTS)
    assert named
    assert {findings[other].verdict for other in named} <= STANDS
    assert f"`{name}`" in FINDINGS.read_text("utf-8")


def test_findings_point_to_claims_of_the_ledger() -> None:
    text = FINDINGS.read_text("utf-8")
    named = set(re.findall(r"`([a-z0-9-]+(?:/[A-Za-z0-9./-]+)?)`", text))
    assert named - {"verify/papers/count-queries.toml"} <= set(VERDICTS)
    corrected = re.findall(r"^- Corrected:(.*?)(?=^- |^#|\Z)", text, re.MULTILINE | re.DOTALL)
    for entry in corrected:
        kinds = {VERDICTS[name] for name in re.findall(r"`([a-z0-9-]+/?[A-Za-z0-9./-]*)`", entry)}
        assert kinds & STANDS, entry


@pytest.mark.parametrize("name", WORST)
def test_the_worst_counterexample(findings: dict[str, Finding], name: str) -> None:
    case, margin, least = WORST[name]
    finding = findings[name]
    assert case.items() <= finding.witness.get("case", {}).items()
    assert Fraction(finding.margin[margin]["lower"]) >= least


@pytest.mark.parametrize("needs", PENDING)
def test_pending_says_what_it_needs(findings: dict[str, Finding], needs: str) -> None:
    for name in PENDING[needs].split():
        assert findings[name].reason.startswith(f"Needs {needs}: ")


# ---------------------------------------------------------------- the numbers, by brute force


def gap(law: dict[int, Fraction], ratio: int, shift: int) -> list[Fraction]:
    """Return p(z) − E p(z + shift) for every z of the support."""
    return [mass - ratio * law.get(z + shift, Fraction(0)) for z, mass in law.items()]


def true_delta(law: dict[int, Fraction], ratio: int) -> Fraction:
    """Return the largest P(S) − E Q(S) over all events, one by one, in both directions."""
    return max(
        sum(chosen, start=Fraction(0))
        for shift in (1, -1)
        for size in range(len(law) + 1)
        for chosen in itertools.combinations(gap(law, ratio, shift), size)
    )


def singular_delta(law: dict[int, Fraction], ratio: int) -> Fraction:
    return max(max(gap(law, ratio, shift)) for shift in (1, -1))


def symmetric(eta: Fraction, *masses: Fraction) -> dict[int, Fraction]:
    law = {z: mass for i, mass in enumerate(masses, start=1) for z in (i, -i)}
    assert eta + 2 * sum(masses) == 1
    return {0: eta, **law}


def test_the_counterexample_by_hand() -> None:
    printed = symmetric(Fraction(1, 100), Fraction(33, 80), Fraction(33, 400))
    assert true_delta(printed, 4) == Fraction(43, 80)  # claimed: 5·33/400 = 33/80
    assert singular_delta(printed, 4) == Fraction(149, 400)  # claimed: 33/400
    better = symmetric(Fraction(1, 100), Fraction(107, 400), Fraction(91, 400))
    assert singular_delta(better, 4) == Fraction(91, 400)


def test_no_law_beats_the_corrected_optimum() -> None:
    total = Fraction(99, 200)
    grid = [symmetric(Fraction(1, 100), x, total - x) for x in
            (total * Fraction(i, 400) for i in range(401))]  # fmt: skip
    assert min(singular_delta(law, 4) for law in grid) >= Fraction(91, 400)


def test_laws_that_differ_by_count_beat_one_law() -> None:
    """Over 3320, for the counts 3, …, 7: total one, mean zero, P(0) = 9/20, δ = 17/332 at E = 2."""
    ends = [170, 510, 46, 1494, 662, 400, 38], [170, 48, 662, 1494, 662, 246, 38]
    rows = [*ends, [5, 246, 662, 1494, 662, 246, 5], ends[1][::-1], ends[0][::-1]]
    laws = {n: dict(zip(range(n - 3, n + 4), row, strict=True)) for n, row in enumerate(rows, 3)}
    for n, law in laws.items():
        assert (sum(law.values()), law[n] * 20) == (3320, 9 * 3320)
        assert sum((y - n) * mass for y, mass in law.items()) == 0
    worst = max(
        mass - 2 * laws[other].get(y, 0)
        for n in laws
        for other in (n - 1, n + 1)
        if other in laws
        for y, mass in laws[n].items()
    )
    assert Fraction(worst, 3320) == Fraction(17, 332)
    with mp.workdps(30):
        one_law, _ = definition_2(str(log(2)), "0.45", 3)
        assert mp.almosteq(one_law, mpf(19) / 340, mpf("1e-20"))


def test_definition_2_is_not_the_optimal_mechanism() -> None:
    printed = symmetric(Fraction(1, 2), Fraction(1, 5), Fraction(1, 20))
    rival = symmetric(Fraction(1, 2), Fraction(3, 16), Fraction(1, 16))
    assert (singular_delta(printed, 3), true_delta(printed, 3)) == (
        Fraction(1, 20),
        Fraction(1, 10),
    )
    assert true_delta(rival, 3) == Fraction(1, 16)


# ---------------------------------------------------------------- the numbers, in mpmath


def definition_2(epsilon: str, eta: str, support: int) -> tuple[mpf, list[mpf]]:
    """Return d* and p(0), …, p(D), by eqs. (23), (32) and (37)–(39) as printed."""
    ratio, share = exp(mpf(epsilon)), mpf(eta)
    b, c = 2 / (1 - share), 2 * share / (1 - share)

    def power_sum(terms: int, weight: Callable[[int], int]) -> mpf:
        return fsum(weight(j) * ratio**j for j in range(terms))

    bounds = [
        (c * power_sum(k, lambda j: 1) - ratio**k) / (b * power_sum(k, lambda j: j + 1))
        for k in range(1, support + 1)
    ]
    last = 1 / (b * power_sum(support, lambda j: support - j))
    delta = max(*bounds, last)
    if delta == last:
        alpha = [b * delta]
        for _ in range(support - 1):
            alpha.append(ratio * alpha[-1] + b * delta)
        alpha.reverse()
    else:
        alpha = [(c - b * delta) / ratio]
        for _ in range(bounds.index(delta)):
            alpha.append((alpha[-1] - b * delta) / ratio)
        alpha += [mpf(0)] * (support - len(alpha))
    return delta, [share, *(weight / b for weight in alpha)]


def hockey_stick(law: Callable[[int], mpf], epsilon: str, reach: int) -> mpf:
    ratio = exp(mpf(epsilon))
    return fsum(max(0, law(z) - ratio * law(z + 1)) for z in range(-reach, reach + 1))


def mechanism_delta(epsilon: str, eta: str, support: int) -> mpf:
    _, masses = definition_2(epsilon, eta, support)
    law = dict(enumerate(masses))
    return hockey_stick(lambda z: law.get(abs(z), mpf(0)), epsilon, support + 1)


def discrete_gaussian(parameter: str) -> Callable[[int], mpf]:
    v = mpf(parameter)
    total = fsum(exp(-(mpf(z) ** 2) / (2 * v)) for z in range(-60, 61))
    return lambda z: exp(-(mpf(z) ** 2) / (2 * v)) / total


def lower(finding: Finding, name: str) -> mpf:
    return mpf(finding.true[name]["lower"])


@pytest.mark.parametrize(
    ("name", "value", "setting"),
    [
        ("remark-2/guarantee", "delta", ("2.2", "0.01", 8)),
        ("figure-3/small-eta", "delta", ("2.2", "0.02", 8)),
        ("figure-3/left", "delta", ("1.1", "0.5", 8)),
        ("figure-3/right", "delta", ("2.2", "0.8", 8)),
        ("section-1/epsilon-monotone/exact", "value at 0.36", ("0.36", "0.01", 6)),
        ("section-1/epsilon-monotone/exact", "value at 0.52", ("0.52", "0.01", 6)),
        ("p2/smaller-eta/exact/wording", "value at 0.02", ("1.1", "0.02", 8)),
        ("abstract/superiority/wording", "left", ("0.5", "0.5", 6)),
    ],
)
def test_exact_delta_of_definition_2(
    findings: dict[str, Finding], name: str, value: str, setting: tuple[str, str, int]
) -> None:
    with mp.workdps(40):
        found = lower(findings[name], value)
        assert mp.almosteq(found, mechanism_delta(*setting), mpf("1e-14"))


def test_the_discrete_gaussian_of_equal_variance(findings: dict[str, Finding]) -> None:
    with mp.workdps(40):
        law = discrete_gaussian("0.72645745977938865569807589815")
        found = lower(findings["abstract/superiority/wording"], "right")
        assert mp.almosteq(found, hockey_stick(law, "0.5", 60), mpf("1e-14"))
        assert found < lower(findings["abstract/superiority/wording"], "left")


@pytest.mark.parametrize(
    ("suffix", "parameter", "printed"),
    [
        ("", "0.288087343747787210651769671825", False),
        ("/parameter", "0.266015601049", True),
    ],
)
def test_the_discrete_gaussian_of_figure_1(
    findings: dict[str, Finding], suffix: str, parameter: str, printed: bool
) -> None:
    """The printed values are those of the parameter σ², not of the variance σ²."""
    with mp.workdps(40):
        law = discrete_gaussian(parameter)
        least = log((law(1) - mpf("0.0049")) / law(2))
        for name, value in (("p-1", law(1)), ("p-2", law(2)), ("epsilon", least)):
            finding = findings[f"figure-1/gaussian-{name}{suffix}"]
            assert mp.almosteq(lower(finding, "value"), value, mpf("1e-12"))
            assert finding.verdict is (Verdict.HOLDS if printed else Verdict.REFUTED)
        _, masses = definition_2("2.18", "0.8", 6)
        wanted = fsum(2 * z**2 * mass for z, mass in enumerate(masses))
        variance = fsum(z**2 * law(z) for z in range(-60, 61))
        assert mp.almosteq(variance, wanted, mpf("1e-12")) is not printed


def test_equation_45_with_the_variance_is_too_small(findings: dict[str, Finding]) -> None:
    with mp.workdps(40):
        law = discrete_gaussian("0.501005")
        variance, epsilon = fsum(z**2 * law(z) for z in range(-60, 61)), mpf("2.997")

        def above(threshold: mpf) -> mpf:
            return fsum(law(z) for z in range(-60, 61) if z > threshold)

        half = mpf(1) / 2
        printed = above(epsilon * variance - half) - exp(epsilon) * above(epsilon * variance + half)
        assert mp.almosteq(lower(findings["equation-45"], "left"), printed, mpf("1e-13"))
        true = hockey_stick(law, "2.997", 60)
        assert mp.almosteq(lower(findings["equation-45"], "right"), true, mpf("1e-13"))
        assert printed < true
