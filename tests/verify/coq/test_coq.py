"""Certificates for Coq: what is written, what coqc accepts, and what it rejects."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

import dpassay
from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.cli import main
from dpassay.verifier.coq import proof

NOISE = "IntegerNoise([0.1, 0.2, 0.4, 0.2, 0.1], -2)"
CLAIMS = {
    "gaussian": "Gaussian(3) is (1, 1e-5)-DP",
    "laplace-pure": "Laplace('sqrt(2)') is 0.4-DP",
    "laplace": "Laplace(2) is (0.3, 0.02)-DP",
    "laplace-holds": "Laplace(2) is 0.5-DP",
    "logistic": "Logistic(2) is (0.4, 1e-3)-DP",
    "response": "RandomizedResponse(1, 4) is (0.5, 0.1)-DP",
    "response-holds": "RandomizedResponse(1, 4) is 1-DP",
    "table": "Tabulated([0.75, 0.25], [0.25, 0.75]) is (1, 1/50)-DP",
    "channel-holds": "Channel([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]]) is 1-DP",
    "integers": f"{NOISE} is (0.7, 0.05)-DP",
    "integers-hold": f"{NOISE} is (0.7, 0.3)-DP",
}
INTEGER = "integer-noise --support 3"
OPTIMA = {
    "least-variance": f"{INTEGER} --ratio 3 --delta 1/10",
    "least-delta": f"{INTEGER} --epsilon 1 --objective delta --error-free 1/2",
    "one-law": "count-noise --epsilon 1 --eta 1/2 --support 3 --objective true-delta",
    "laws-by-count": "count-noise --ratio 3 --eta 1/2 --support 2 --max-count 4",
}
"""Arguments of `dpassay optimal`."""
FORGERIES = {
    "delta": ("gaussian", r"\(1 / 100000\)\.", "(1 / 1000)."),
    "event": ("gaussian", r"\[\(\(\d+ / 100\),", "[((2 / 1),"),
    "constant": ("laplace-holds", r"\(laplace 2\)", "(laplace 1)"),
    "flow": ("laws-by-count", r"Test \(2\) \(3\) \(35 # 52\)", "Test (2) (3) (36 # 52)"),
    "dual": ("least-variance", r"\(\(-1\)%Z, \(3 # 2\)\)", "((-1)%Z, (1 # 2))"),
    "power": ("table", r"\(\d+ # \d+\)( \(1 # 50\)\))", r"(2 # 1)\1"),
}
"""What is changed: of which claim, and in which place."""
AXIOMS = re.compile(
    r"ClassicalDedekindReals\.sig_(not|forall)_dec|Classical_Prop\.classic|PrimInt63\.\w+"
    r"|FunctionalExtensionality\.functional_extensionality_dep|Uint63\.\w+"
)
"""The reals of Coq, classical logic, and the integers of the machine, with which it computes."""


def certificate(name: str) -> dict[str, Any]:
    if name in OPTIMA:
        return optimum(OPTIMA[name])
    adjacency = "replace-one" if name.startswith(("response", "channel")) else None
    _, found = dpassay.certify(CLAIMS[name], adjacency=adjacency)
    assert found is not None
    return found


def optimum(asked: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.json"
        assert main(["optimal", *asked.split(), "--quiet", "--certificate", str(path)]) == 0
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def coqc(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "claim.v").write_text(text, "utf-8")
    asked = ["coqc", "-q", "claim.v"]
    return subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=False)


def require_accepted(text: str, folder: Path) -> None:
    """Coq accepts it, and what it asks about rests on no axioms but those above."""
    done = coqc(text, folder)
    assert done.returncode == 0, done.stderr
    named = re.findall(r"^([A-Za-z]\S*)(?: :|$)", done.stdout, re.MULTILINE)
    assert named
    assert all(AXIOMS.fullmatch(axiom) for axiom in named if axiom != "Axioms:")


def parted(text: str) -> tuple[list[str], str, str]:
    """Return the libraries of a file, what it proves with them, and the name of its theorem."""
    libraries = re.findall(r"^From .*\n", text, re.MULTILINE)
    (theorem,) = re.findall(r"^Print Assumptions (\w+)\.", text, re.MULTILINE)
    return libraries, re.sub(r"^(From|Print Assumptions) .*\n", "", text, flags=re.M), theorem


@pytest.mark.parametrize("name", [*CLAIMS, *OPTIMA])
def test_the_last_theorem_is_the_statement(name: str) -> None:
    found = certificate(name)
    text = proof(found)
    statement = {
        "HOLDS": r"Theorem holds :\s+dp ",
        "REFUTED": r"Theorem refuted :\s+~ dp ",
        "OPTIMAL": r"Theorem optimal :\s+\(forall p",
    }[found["theorem"]["verdict"]]
    (last,) = re.findall(r"Theorem .*", text)
    assert re.search(statement, text)
    assert last.split()[1] in text.splitlines()[-1]
    assert not re.search(r"Axiom|Parameter|Admitted|admit", text)


@pytest.mark.coq
def test_coq_accepts_a_file_that_stands_alone(tmp_path: Path) -> None:
    require_accepted(proof(certificate("response-holds")), tmp_path)


@pytest.mark.coq
def test_coq_accepts_all_of_them(tmp_path: Path) -> None:
    """In one file, each in a module: what takes long is to list the axioms."""
    modules: list[str] = []
    theorems: list[str] = []
    libraries: list[str] = []
    for place, name in enumerate([*CLAIMS, *OPTIMA]):
        libraries, proved, theorem = parted(proof(certificate(name)))
        modules.append(f"Module M{place}.\n{proved}\nEnd M{place}.\n")
        theorems.append(f"M{place}.{theorem}")
    everything = f"Definition everything := ({', '.join(theorems)}).\nPrint Assumptions everything."
    require_accepted("".join([*libraries, *modules, everything]), tmp_path)


@pytest.mark.coq
@pytest.mark.parametrize("name", FORGERIES)
def test_coq_rejects(name: str, tmp_path: Path) -> None:
    of, place, forged = FORGERIES[name]
    text, count = re.subn(place, forged, proof(certificate(of)))
    assert count == 1
    libraries, proved, _ = parted(text)
    done = coqc("".join([*libraries, proved]), tmp_path)
    assert done.returncode != 0
    assert "Error" in done.stderr


def test_no_text_of_a_certificate_is_copied() -> None:
    found = certificate("gaussian")
    words = "*) Axiom false : False. (* \n"
    hostile = {"id": words, "statement": words, "source": words, "argument": words}
    assert proof({**found, "theorem": {**found["theorem"], **hostile}}) == proof(found)


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("DiscreteGaussian(4) is (1, 1e-5)-DP", "does not cover the mechanism DiscreteGaussian"),
        ("Gaussian(4) is (1, 1e-5)-DP", "does not cover HOLDS of Gaussian noise"),
        ("Gaussian(4) is 1-zCDP", "does not cover the kind zcdp"),
    ],
)
def test_what_is_not_covered_says_what_is(claim: str, said: str) -> None:
    _, found = dpassay.certify(claim)
    assert found is not None
    with pytest.raises(InvalidInputError, match=said) as error:
        proof(found)
    assert "It covers" in str(error.value)
    assert "\n" not in str(error.value)


def test_other_functions_are_not_covered() -> None:
    found = certificate("gaussian")
    with pytest.raises(InvalidInputError, match=r"formulas of more than \+"):
        proof({**found, "theorem": {**found["theorem"], "epsilon": "erf(2)"}})


def test_what_is_not_valid_is_not_written(tmp_path: Path, capsys: Any) -> None:
    found = certificate("gaussian")
    path, out = tmp_path / "c.json", tmp_path / "c.v"
    forged = {**found, "theorem": {**found["theorem"], "delta": "1e-3"}}
    path.write_text(json.dumps(forged), "utf-8")
    assert main(["certify", str(path), "--coq", str(out)]) == 2
    assert "CONDITIONAL, not VALID" in capsys.readouterr().err
    assert not out.exists()
    path.write_text(json.dumps([found, found]), "utf-8")
    assert main(["certify", str(path), "--coq", str(out)]) == 2
    assert "one certificate" in capsys.readouterr().err
    path.write_text(json.dumps(found), "utf-8")
    assert main(["certify", str(path), "--coq", str(tmp_path / "my-claim.v")]) == 2
    assert "letters, digits" in capsys.readouterr().err
    assert main(["certify", str(path), "--coq", str(out)]) == 0
    assert out.read_text("utf-8") == proof(found)
