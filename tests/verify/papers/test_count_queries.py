"""The ledger of the count query paper: every verdict with its reason, its numbers again."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import pytest
from mpmath import exp, fsum, log, mp, mpf

from verify.verdict import Finding, Verdict

pytestmark = pytest.mark.slow  # the default run decides the two shorter ledgers


@pytest.fixture(scope="module")
def findings(decided: Callable[[str], dict[str, Finding]]) -> dict[str, Finding]:
    return decided("count-queries")


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
