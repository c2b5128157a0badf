"""Each method of proof: what is true is proved, what is nearly true is not."""

from __future__ import annotations

from typing import Any

import pytest

from dpassay.verifier.ranges import ProofError, prove

_INTEGER = {"low": "1", "integer": True}
_POSITIVE = {"above": "0"}
_UNIT = {"low": "0", "high": "1"}


def _claim(claim: str, proof: dict[str, Any] | str, **for_all: Any) -> dict[str, Any]:
    spec = {"method": proof} if isinstance(proof, str) else proof
    return {"kind": "relation", "id": "x", "claim": claim, "proof": spec, "for_all": for_all}


_SLOPE = {"method": "derivative", "variable": "x"}
_PIECES = {"method": "split", "variable": "x", "at": ["1/2", "3/4", "1"],
           "proofs": [{"method": "positive"}] * 4}  # fmt: skip
_TRUE: list[dict[str, Any]] = [
    _claim("sqrt(2)*sqrt(3) == sqrt(6)", "cases"),
    _claim("sqrt(5 + 2*sqrt(6)) == sqrt(2) + sqrt(3)", "cases"),
    _claim("sqrt(2) + sqrt(3) < sqrt(10)", "cases"),
    _claim("abs(i - 3) <= 3", "cases", i={"low": "0", "high": "6", "integer": True}),
    _claim("x/(x + 1) + 1/(x + 1) == 1", "identity", x=_POSITIVE),
    _claim("sqrt(x**2*y) == x*sqrt(y)", "identity", x=_POSITIVE, y=_POSITIVE),
    _claim("exp(x)*exp(x/2) == exp(3*x/2)", "identity", x={"above": "-inf"}),
    _claim("log(x**3/y) == 3*log(x) - log(y)", "identity", x=_POSITIVE, y=_POSITIVE),
    _claim("4**n == 2**(2*n)", "identity", n=_INTEGER),
    _claim("sum(i, 1, n, i**3) == (n*(n + 1)/2)**2", "identity", n=_INTEGER),
    _claim("(x - 1)*sum(i, 0, n, x**i) == x**(n + 1) - 1", "identity", n=_INTEGER, x=_POSITIVE),
    _claim("sum(i, 0, n, x**i) <= sum(i, 0, n, x**i) + 1 - 1", "identity", n=_INTEGER, x=_POSITIVE),
    _claim("binomial(n + 1, 2) == n*(n + 1)/2", "identity", n=_INTEGER),
    _claim("Phi(x) + Phi(-x) == 1", "identity", x={"above": "-inf"}),
    _claim("x**2 + 1 > 2*x", "positive", x={"above": "1"}),
    _claim("x*(1 - x) <= 1/4", "positive", x=_UNIT),
    _claim("(x - y)**2 <= c**2", "positive", c=_POSITIVE, x={"low": "0", "high": "c"},
           y={"low": "0", "high": "c"}),
    _claim("sqrt(x + 1) < sqrt(x) + 1", "positive", x=_POSITIVE),
    _claim("n**2 >= n", "positive", n=_INTEGER),
    _claim("x**3 - x + 1 > 0",
           _PIECES, x={"low": "0"}),
    _claim("exp(-x) < 1", "sweep", x=_POSITIVE),
    _claim("x*exp(-x) <= 0.37", "sweep", x={"low": "0", "high": "50"}),
    _claim("tanh(x) + 1/x > 1/2", "sweep", x=_POSITIVE),
    _claim("exp(x) >= 1 + x", {**_SLOPE}, x={"low": "0"}),
    _claim("exp(x) >= 1 + x", {**_SLOPE, "from": "high"}, x={"above": "-inf", "high": "0"}),
    _claim("log(1 + x) < x", {**_SLOPE}, x=_POSITIVE),
    _claim("2**n >= n + 1", {"method": "induction", "variable": "n", "factor": "2"}, n=_INTEGER),
    _claim("x >= min(x, y)", {"method": "combine", "from": [{"fact": "min(x, y) <= x"}]},
           x=_POSITIVE, y=_POSITIVE),
]  # fmt: skip
_TRUE += [
    _claim("sum(i, 1, n, 1/((x + 1/2)*2**i)) == (1 - 1/2**n)/(x + 1/2)", "identity", n=_INTEGER,
           x=_POSITIVE),
    _claim("sum(i, 1, n, sum(j, 1, n, i*j)) == (n*(n + 1)/2)**2", "identity", n=_INTEGER),
    _claim("sum(i, 0, n, x**i) > n", {"method": "induction", "variable": "n"},
           n={"low": "0", "integer": True}, x={"low": "1"}),
    _claim("Phi(-x) < exp(-x**2/2)/(sqrt(2*pi())*x)",
           {"method": "derivative", "variable": "x", "from": "infinity"}, x=_POSITIVE),
    _claim("mills(x) < 1/x",
           {"method": "form", "form": "Phi(-x) < exp(-x**2/2)/(sqrt(2*pi())*x)",
            "times": "sqrt(2*pi())*exp(x**2/2)",
            "proof": {"method": "derivative", "variable": "x", "from": "infinity"}}, x=_POSITIVE),
    _claim("mills(x) > mills(y)",
           {"method": "derivative", "variable": "y", "slope": {"method": "sweep"}},
           x={"above": "-inf"}, y={"above": "x"}),
    _claim("abs(x - y) <= 1", {"method": "branch", "of": "abs(x - y)"}, x=_UNIT, y=_UNIT),
    _claim("max(x, 1 - x) >= 1/2", {"method": "branch", "of": "max(x, 1 - x)",
           "proofs": [{"method": "combine", "from": [{"assume": 0, "times": "1/2"}]}] * 2},
           x=_UNIT),
    _claim("17*count_noise_delta(exp(e), 1/2, 8) <= 0.001",
           {"method": "branch", "of": "count_noise_delta(exp(e), 1/2, 8)"}, e={"low": "1.1"}),
]  # fmt: skip
_FALSE: list[dict[str, Any]] = [
    _claim("sqrt(2)*sqrt(3) == sqrt(6) + 1e-100", "cases"),
    _claim("sqrt(5 + 2*sqrt(6)) < sqrt(2) + sqrt(3)", "cases"),
    _claim("abs(i - 3) < 3", "cases", i={"low": "0", "high": "6", "integer": True}),
    _claim("abs(i - 3) <= 3", "cases", i={"low": "0", "high": "7", "integer": True}),
    _claim("x/(x + 1) + 2/(x + 1) == 1", "identity", x=_POSITIVE),
    _claim("x/x == 1", "identity", x={"low": "0"}),
    _claim("sqrt(x**2) == x", "identity", x={"above": "-inf"}),
    _claim("log(x**2) == 2*log(x)", "identity", x={"low": "-1"}),
    _claim("(x**2)**y == x**(2*y)", "identity", x={"low": "-2", "below": "0"}, y=_POSITIVE),
    _claim("sum(i, 1, n, i) == n*(n + 1)/2", "identity", n={"low": "-5", "integer": True}),
    _claim("sum(i, 1, n, i) == n*(n + 1)/2", "identity", n=_POSITIVE),
    _claim("sum(i, 0, n, x**i) == (x**(n + 1) - 1)/(x - 1)", "identity", n=_INTEGER, x=_POSITIVE),
    _claim("(sum(i, 0, n, x**i) - 1)/(x - 1) == (sum(i, 0, n, x**i) - 1)/(x - 1)", "identity",
           n=_INTEGER, x=_POSITIVE),
    _claim("sum(i, 0, n, x**i) + x/x == sum(i, 0, n, x**i) + 1", "identity", n=_INTEGER,
           x={"low": "0"}),
    _claim("floor(x) == x", "identity", x=_POSITIVE),
    _claim("x**2 + 1 > 2*x", "positive", x={"low": "1"}),
    _claim("x*(1 - x) < 1/4", "positive", x=_UNIT),
    _claim("x < 1", "positive", x=_UNIT),
    _claim("x > 0", "positive", x=_UNIT),
    _claim("(x - y)**2 < c**2", "positive", c=_POSITIVE, x={"low": "0", "high": "c"},
           y={"low": "0", "high": "c"}),
    _claim("n**2 >= n + 1", "positive", n=_INTEGER),
    _claim("1/x > 0", "positive", x={"above": "-1"}),
    _claim("x**3 - x + 3/8 > 0",
           _PIECES, x={"low": "0"}),
    _claim("exp(-x) < 1", "sweep", x={"low": "0"}),
    _claim("x*exp(-x) <= 0.367", "sweep", x={"low": "0", "high": "50"}),
    _claim("1/(x - 1)**2 > 0", "sweep", x={"low": "0", "high": "3"}),
    _claim("0*log(x) <= x + 2", "sweep", x={"low": "-1", "high": "1"}),
    _claim("abs(x - 1/3) > 0", "sweep", x=_UNIT),
    _claim("x < y", {"method": "sweep", "form": "0 < y", "times": "1"}, x=_POSITIVE, y=_POSITIVE),
    _claim("x <= y", {"method": "sweep", "form": "y <= x", "times": "-1"},
           x={"low": "2"}, y={"high": "1"}),
    _claim("exp(x) > 1 + x", {**_SLOPE}, x={"low": "0"}),
    _claim("1/x >= 1", {**_SLOPE, "from": "high"}, x={"low": "-1", "high": "1"}),
    _claim("floor(x) <= 0", {**_SLOPE}, x={"low": "0"}),
    _claim("2**n > n + 1", {"method": "induction", "variable": "n", "factor": "2"}, n=_INTEGER),
    _claim("n <= 5", {"method": "induction", "variable": "n"}, n=_INTEGER),
    _claim("n <= 5", {"method": "induction", "variable": "n", "factor": "-1"}, n=_INTEGER),
    _claim("n <= 1", {"method": "induction", "variable": "n", "factor": "0"}, n=_INTEGER),
    _claim("max(x, y) <= x", {"method": "combine", "from": [{"fact": "max(x, y) <= x"}]},
           x=_POSITIVE, y=_POSITIVE),
    _claim("x <= 0", {"method": "combine", "from": [{"fact": "x >= 0", "times": "-1"}]},
           x=_POSITIVE),
]  # fmt: skip

_TRUE += [
    _claim("floor((2*q + 1)**h/2) == ((2*q + 1)**h - 1)/2", "identity", q=_INTEGER, h=_INTEGER),
    _claim("floor((n**2 + n + 1)/2) == (n**2 + n)/2", "identity", n=_INTEGER),
]
_FALSE += [
    _claim("floor((2*q)**h/2) == ((2*q)**h - 1)/2", "identity", q=_INTEGER, h=_INTEGER),
    _claim("floor((3*q + 1)**h/2) == ((3*q + 1)**h - 1)/2", "identity", q=_INTEGER, h=_INTEGER),
    _claim("floor((n**2 + 1)/2) == n**2/2", "identity", n=_INTEGER),
    _claim("sum(i, 1, n, 1/((x + 1/2)*2**i)) == (1 - 1/2**n)/(2*x + 1)", "identity", n=_INTEGER,
           x=_POSITIVE),
    _claim("sum(i, 1, n, sum(j, 1, n, i)) == (n*(n + 1)/2)**2", "identity", n=_INTEGER),
    _claim("sum(i, 0, n, x**i) > n + 1", {"method": "induction", "variable": "n"},
           n={"low": "0", "integer": True}, x={"low": "1"}),
    _claim("Phi(-x) < exp(-x**2/2)/(2.6*x)",
           {"method": "derivative", "variable": "x", "from": "infinity"}, x=_POSITIVE),
    _claim("1/x <= -1", {"method": "derivative", "variable": "x", "from": "infinity"}, x=_POSITIVE),
    _claim("mills(x) > mills(y)",
           {"method": "derivative", "variable": "y", "slope": {"method": "sweep"}},
           x={"above": "-inf"}, y={"low": "x"}),
    _claim("abs(x - y) < 1", {"method": "branch", "of": "abs(x - y)"}, x=_UNIT, y=_UNIT),
    _claim("max(x, 1 - x) <= x", {"method": "branch", "of": "max(x, 1 - x)"}, x=_UNIT),
    _claim("abs(x) <= x", {"method": "branch", "of": "abs(x)"}, x={"above": "-inf"}),
    _claim("17*count_noise_delta(exp(e), 1/2, 8) <= 0.001",
           {"method": "branch", "of": "count_noise_delta(exp(e), 1/2, 8)"}, e={"low": "1"}),
    _claim("x != 0", {"method": "combine", "from": [{"fact": "x - x == 0"}],
           "rest": {"method": "sweep"}}, x={"low": "0"}),
]  # fmt: skip


@pytest.mark.parametrize("claim", _TRUE, ids=lambda c: c["claim"])
def test_true_statements_are_proved(claim: dict[str, Any]) -> None:
    """A proof that goes through says the theorem."""
    assert prove(claim).theorem


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(
            claim,
            marks=[pytest.mark.slow] * ("count_noise_delta" in claim["claim"]),
            id=f"{claim['claim']} {claim['proof']['method']}",
        )
        for claim in _FALSE
    ],
)
def test_false_or_undefined_statements_are_not_proved(claim: dict[str, Any]) -> None:
    """False at one value, or undefined there, or with a proof that has a hole: refused."""
    with pytest.raises(ProofError):
        prove(claim, seconds=10)


_LEMMA = _claim("x**2 <= x", "positive", x=_UNIT)


def _by_lemma(claim: str, at: str, times: str = "1", **for_all: Any) -> dict[str, Any]:
    entry = {"claim": "square", "at": {"x": at}, "times": times}
    return _claim(claim, {"method": "combine", "from": [entry]}, **for_all)


def test_a_lemma_is_used_at_points_of_its_domain() -> None:
    """y/2 lies in [0, 1] for y in [0, 2]."""
    claim = _by_lemma("y**2/4 <= y/2", "y/2", y={"low": "0", "high": "2"})
    assert prove(claim, {"square": _LEMMA}).theorem


@pytest.mark.parametrize(
    "claim",
    [
        _by_lemma("y**2/4 <= y/2", "y/2", y={"low": "0", "high": "3"}),
        _by_lemma("y**2 <= y", "y", times="-1", y=_UNIT),
        _by_lemma("y**2 < y", "y", y=_UNIT),
        _by_lemma("y**2 == y", "y", y=_UNIT),
    ],
)
def test_a_lemma_is_not_misused(claim: dict[str, Any]) -> None:
    """Outside of its domain, with a negative multiplier, or for a stronger relation."""
    with pytest.raises(ProofError):
        prove(claim, {"square": _LEMMA})


def test_lemmas_do_not_rest_on_themselves_or_on_what_is_not_proved() -> None:
    """A circle, a false lemma and an unknown one end in an error."""
    circle = {**_by_lemma("x**2 <= x", "x", x=_UNIT)}
    with pytest.raises(ProofError, match="itself"):
        prove(circle, {"square": circle})
    claim = _by_lemma("y**2 <= y", "y", y=_UNIT)
    with pytest.raises(ProofError):
        prove(claim, {"square": _claim("x**2 <= x", "positive", x={"low": "0", "high": "2"})})
    with pytest.raises(ProofError, match="no lemma"):
        prove(claim, {})


@pytest.mark.parametrize(
    "changes",
    [
        {"for_all": {"x": {"statement": "all x", "grid": [1]}}},
        {"for_all": {"x": {"low": "y"}}},
        {"for_all": {}},
        {"for_all": {"x": {"low": "0", "above": "0"}}},
        {"for_all": {"x": {"low": "2", "high": "1"}}},
        {"proof": {"method": "magic"}},
        {"proof": {"method": "positive", "because": "it is so"}},
        {"proof": "sweep"},
        {"proof": {}},
        {"kind": "pending"},
        {"claim": "__import__('os')"},
        {"claim": "x.real <= 1"},
        {"claim": "0 <= x <= 1"},
        {"claim": "x**1e99999999 >= 0"},
        {"claim": "(" * 3000 + "x" + ")" * 3000 + " >= 0"},
        {"claim": "mu(Gaussian(standard_deviation=1, standard_deviation=x)) > 0"},
        {"claim": "mu(Gaussian(standard_deviation=1, colour=x)) > 0"},
        {"claim": "mu(Gaussian(standard_deviation=0 - x)) <= 0"},
        {"claim": "mu(Unheard(of=1)) >= 0"},
        {"let": {"x": "1"}},
    ],
)
def test_malformed_claims_end_in_an_error(changes: dict[str, Any]) -> None:
    """Nothing but ProofError comes out of hostile data."""
    claim = {**_claim("x**2 >= 0", "positive", x={"low": "0"}), **changes}
    with pytest.raises(ProofError):
        prove(claim)


def test_every_listed_case_is_proved() -> None:
    """`where` gives one goal for each combination."""
    claim = {**_claim("x <= c", "positive", x=_UNIT), "where": {"c": [1, 2, "7/2"]}}
    assert prove(claim).theorem
    with pytest.raises(ProofError):
        prove({**claim, "where": {"c": [1, 2, "1/2"]}})


def test_assumptions_restrict_a_domain() -> None:
    """With x ≤ y the claim is true, and the assumption is part of the theorem."""
    proof = {"method": "combine", "from": [{"assume": 0}]}
    claim = {**_claim("2*x <= x + y", proof, x=_POSITIVE, y=_POSITIVE), "assume": ["x <= y"]}
    assert "x <= y" in prove(claim).theorem
    with pytest.raises(ProofError):
        prove({**claim, "assume": ["x <= y + 1"]})


def test_time_is_bounded() -> None:
    """A proof that would go on for ever ends in an error."""
    claim = _claim("sin(x)**2 + cos(x)**2 < 1 + 1e-30", "sweep", x={"low": "0", "high": "1000"})
    with pytest.raises(ProofError):
        prove(claim, seconds=0.5)


_DUAL: dict[str, Any] = {
    "kind": "optimality",
    "id": "x",
    "value": "variance(CorrelatedGaussian(dimension=s**2, mu=1), 0)",
    "among": {"type": "Gaussian", "mu": "1", "objective": "mean",
     "space": {"type": "SparseBox", "dimension": "s**2", "sparsity": "s**2", "bound": "1",
     "signed": False}},
    "dual": {"law": "sparse", "ones": "(s**2+s)/2"},
    "for_all": {"s": {"low": "1", "integer": True}},
    "proof": {"method": "positive"},
}  # fmt: skip


def test_optimality_rests_on_a_dual_and_its_conditions() -> None:
    """The law on records with (s² + s)/2 ones proves Algorithm 1 optimal for d = s²."""
    assert "no member of" in prove(_DUAL).theorem


@pytest.mark.parametrize(
    "changes",
    [
        {"dual": {"law": "sparse", "ones": "s**2/2"}},
        {"dual": {"law": "sparse", "ones": "s**2 + 1"}},
        {"value": "1.001*variance(CorrelatedGaussian(dimension=s**2, mu=1), 0)"},
        {"dual": {}, "lower_bound": "s**2"},
        {"tolerance": "0)*0 + (s**9"},
        {"tolerance": "s"},
    ],
)
def test_false_optimality_is_not_proved(changes: dict[str, Any]) -> None:
    """A law that is none, a value above the bound, or a bound that is only typed."""
    with pytest.raises(ProofError):
        prove({**_DUAL, **changes})
