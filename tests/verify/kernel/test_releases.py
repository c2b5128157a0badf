"""Guarantees of mechanisms: what is proved, what is refuted, and that false ones never are."""

from __future__ import annotations

from typing import Any

import pytest

from dpassay.verifier.kernel.numbers import Budget, NotProved, Wrong
from dpassay.verifier.kernel.releases import prove
from dpassay.verifier.kernel.schema import KINDS, fit
from dpassay.verifier.prover.releases import hints

SAMPLED = "Composed(PoissonSubsampled(Gaussian(1), '1/5'), 10)"


def _proof(kind: str, verdict: str, witness: dict[str, Any] | None = None, **fields: Any) -> Any:
    theorem = fit({"kind": kind, "verdict": verdict, **fields}, KINDS[kind][0], "theorem")
    return prove(theorem, witness or {}, Budget(seconds=40))


TRUE: list[tuple[str, dict[str, Any]]] = [
    ("pure-dp", {"mechanism": "Laplace(scale=3)", "epsilon": "1/3"}),
    ("pure-dp", {"mechanism": "KaryTree(steps=27, arity=3, epsilon=1)", "epsilon": "1"}),
    ("approximate-dp", {"mechanism": "Gaussian(4)", "epsilon": "1", "delta": "1e-3"}),
    ("gaussian-dp", {"mechanism": "Gaussian(4)", "mu": "1/4"}),
    ("zcdp", {"mechanism": "DiscreteGaussian(4)", "rho": "1/8"}),
    ("zcdp", {"mechanism": "Guaranteed(1)", "rho": "1/2"}),
    ("renyi-dp", {"mechanism": "Gaussian(2)", "order": "3", "epsilon": "3/8"}),
    ("approximate-dp", {"mechanism": "Guaranteed(1, '0.001')", "epsilon": "1", "delta": "0.001"}),
    (
        "approximate-dp",
        {"mechanism": SAMPLED, "epsilon": "1", "delta": "0.2", "adjacency": "add-remove"},
    ),
    (
        "gaussian-dp",
        {
            "mechanism": "Gaussian(D/m, D)",
            "mu": "m",
            "for_all": {"D": {"above": "0"}, "m": {"above": "0"}},
        },
    ),
]
FALSE: list[tuple[str, dict[str, Any]]] = [
    ("pure-dp", {"mechanism": "Laplace(scale=3)", "epsilon": "0.3333"}),
    ("pure-dp", {"mechanism": "Gaussian(3)", "epsilon": "100"}),
    ("approximate-dp", {"mechanism": "Gaussian(4)", "epsilon": "1", "delta": "1e-6"}),
    ("gaussian-dp", {"mechanism": "Gaussian(4)", "mu": "0.2499"}),
    ("zcdp", {"mechanism": "Gaussian(2)", "rho": "0.1249"}),
    ("renyi-dp", {"mechanism": "Gaussian(2)", "order": "3", "epsilon": "0.3749"}),
    ("approximate-dp", {"mechanism": "Guaranteed(1, '0.001')", "epsilon": "1", "delta": "0.0009"}),
    (
        "approximate-dp",
        {"mechanism": SAMPLED, "epsilon": "1", "delta": "0.02", "adjacency": "add-remove"},
    ),
]


@pytest.mark.parametrize(("kind", "fields"), TRUE)
def test_true_guarantees_hold_and_are_not_refuted(kind: str, fields: dict[str, Any]) -> None:
    assert _proof(kind, "HOLDS", **fields).lemmas
    if "for_all" not in fields:
        with pytest.raises(NotProved):
            _proof(kind, "REFUTED", {"case": {}}, **fields)


@pytest.mark.parametrize(("kind", "fields"), FALSE)
def test_false_guarantees_are_refuted_and_do_not_hold(kind: str, fields: dict[str, Any]) -> None:
    assert _proof(kind, "REFUTED", {"case": {}}, **fields).lemmas
    with pytest.raises(NotProved):
        _proof(kind, "HOLDS", **fields)


@pytest.mark.parametrize(
    "witness",
    [
        {"step": "100"},
        {"step": "1/3", "bits": "64"},
        {"step": "1/977", "step_add": "1/11"},
        {"bits": "200", "direction": "add"},
        {"direction": "nowhere"},
    ],
)
def test_no_hint_makes_a_false_guarantee_hold(witness: dict[str, Any]) -> None:
    kind, fields = FALSE[-1]
    with pytest.raises(NotProved):
        _proof(kind, "HOLDS", witness, **fields)
    kind, fields = TRUE[8]
    with pytest.raises(NotProved):
        _proof(kind, "REFUTED", {"case": {}, **witness}, **fields)


@pytest.mark.parametrize(
    ("witness", "field"),
    [
        ({"case": {}}, "witness.case"),
        ({"case": {"s": "5"}}, "witness.case.s"),
        ({"case": {"s": "2", "t": "1"}}, "witness.case"),
        ({"case": "s"}, "witness.case"),
    ],
)
def test_a_case_is_one_of_those_that_are_listed(witness: dict[str, Any], field: str) -> None:
    fields: dict[str, Any] = {"mechanism": "Gaussian(s)", "mu": "1/3", "where": {"s": ["2", "4"]}}
    with pytest.raises(Wrong) as error:
        _proof("gaussian-dp", "REFUTED", witness, **fields)
    assert error.value.field == field
    assert _proof("gaussian-dp", "REFUTED", {"case": {"s": "2"}}, **fields)


@pytest.mark.parametrize("case", ["0", "7/2", "-1", "6"])
def test_a_case_is_inside_its_range(case: str) -> None:
    ranges = {"n": {"low": "1", "high": "5", "integer": True}}
    fields: dict[str, Any] = {"mechanism": "Gaussian(1, n)", "mu": "1/2", "for_all": ranges}
    with pytest.raises(Wrong):
        _proof("gaussian-dp", "REFUTED", {"case": {"n": case}}, **fields)
    assert _proof("gaussian-dp", "REFUTED", {"case": {"n": "3"}}, **fields)


def test_a_range_never_sees_its_own_variable() -> None:
    ranges = {"n": {"low": "1", "high": "n + 1"}}
    fields: dict[str, Any] = {"mechanism": "Gaussian(1, n)", "mu": "1/2", "for_all": ranges}
    with pytest.raises(Wrong, match="the variable that it bounds"):
        _proof("gaussian-dp", "REFUTED", {"case": {"n": "3"}}, **fields)


def test_every_listed_case_has_to_hold() -> None:
    fields: dict[str, Any] = {
        "mechanism": "Gaussian(s)",
        "mu": "1/3",
        "where": {"s": ["4", "5", "2"]},
    }
    with pytest.raises(NotProved, match="s = 2"):
        _proof("gaussian-dp", "HOLDS", **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"mechanism": "Gaussian(D/m, D)", "mu": "m", "for_all": {"D": {}, "m": {"above": "0"}}},
        {
            "mechanism": "KnownSizeGaussian(d, m)",
            "mu": "m",
            "adjacency": "add-remove",
            "for_all": {"d": {"low": "1"}, "m": {"above": "0"}},
        },
        {
            "mechanism": "Gaussian(D/m, D)",
            "mu": "m*(1 - 1/10**9)",
            "for_all": {"D": {"above": "0"}, "m": {"above": "0"}},
        },
    ],
    ids=["sensitivity without a sign", "dimension that is not whole", "too small"],
)
def test_ranges_outside_the_domain_or_false_do_not_hold(fields: dict[str, Any]) -> None:
    with pytest.raises((NotProved, Wrong)):
        _proof("gaussian-dp", "HOLDS", **fields)


@pytest.mark.parametrize(("verdict", "delta"), [("REFUTED", "0.06306"), ("HOLDS", "0.06319")])
def test_the_prover_finds_a_lattice_for_a_margin_of_a_thousandth(verdict: str, delta: str) -> None:
    fields = {"mechanism": SAMPLED, "epsilon": "1", "delta": delta, "adjacency": "add-remove"}
    claim = {"kind": "approximate-dp", **fields}
    theorem = fit({**claim, "verdict": verdict}, KINDS[claim["kind"]][0], "theorem")
    found = hints(theorem, {}, refuted=verdict == "REFUTED")
    assert found["step"]
    assert _proof(verdict=verdict, witness={"case": {}, **found}, **claim).lemmas


def test_a_composition_of_shuffled_reports_is_bounded_without_delay() -> None:
    mechanism = "Composed(Shuffled(RandomizedResponse(1), users=100000), 3)"
    fields: dict[str, Any] = {"mechanism": mechanism, "epsilon": "2", "delta": "0.3"}
    assert "shuffled" in _proof("approximate-dp", "HOLDS", **fields).lemmas
