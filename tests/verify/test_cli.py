"""The command line end to end: what it prints, and the exit codes."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import dpassay
from dpassay.accountant.core.asking import Drawable
from dpassay.verifier.cli import main
from dpassay.verifier.cli.verify import with_lemmas
from dpassay.verifier.document import read_text

PROGRAM = [sys.executable, "-m", "dpassay"]

CLAIMS = """\
schema_version = 1
[[claims]]
kind = "approximate-dp"
id = "false"
statement = "Three is enough."
mechanism = "Gaussian(standard_deviation=3)"
epsilon = 1
delta = 1e-5
cause = "the classical calibration was mistyped"
[[claims]]
kind = "pure-dp"
id = "true/laplace"
mechanism = "Laplace(scale=2)"
epsilon = "0.5"
[[claims]]
kind = "pending"
id = "later"
needs = "lp"
reason = "it is about an optimum"
"""
SLOW = """\
[[claims]]
kind = "tradeoff"
id = "slow-{index}"
mechanism = "Laplace(scale='{scale}')"
bound = "1-exp(1.1)*alpha"
low = "0.001"
high = "0.3"
"""


@pytest.fixture
def claims(tmp_path: Path) -> Path:
    path = tmp_path / "claims.toml"
    path.write_text(CLAIMS, "utf-8")
    return path


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, check=False, cwd=cwd, timeout=60
    )


def printed_json(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def is_enclosure(value: dict[str, str]) -> bool:
    return Decimal(value["lower"]) <= Decimal(value["upper"])


# ---------------------------------------------------------------- help and usage


def test_help_imports_nothing_heavy() -> None:
    result = subprocess.run(
        [sys.executable, "-X", "importtime", *PROGRAM[1:], "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "examples:" in result.stdout
    loaded = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert loaded.isdisjoint(
        {"numpy", "scipy", "cvxpy", "flint", "mpmath", "matplotlib", "rich", "msgspec"}
    )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"dpassay {dpassay.__version__}\n"


# ---------------------------------------------------------------- bad input


def test_bad_claim_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(CLAIMS.replace("delta = 1e-5", 'delta = "open(1)"').replace("needs", "need"))
    assert main(["verify", str(path)]) == 2
    errors = capsys.readouterr().err
    assert "claims[0].delta" in errors
    assert "claims[2].need: unknown field. Did you mean 'needs'?" in errors

    path.write_text(CLAIMS.replace('"approximate-dp"', '"gdp"'))
    assert main(["verify", str(path)]) == 2
    assert "unknown kind 'gdp'. Did you mean 'gaussian-dp'?" in capsys.readouterr().err

    for written in ("true", "1.0", '"1"'):
        path.write_text(CLAIMS.replace("schema_version = 1", f"schema_version = {written}"))
        assert main(["verify", str(path)]) == 2
        assert "schema_version: expected 1, not" in capsys.readouterr().err

    path.write_text(CLAIMS.replace("epsilon = 1", f"epsilon = {'9' * 5000}"))
    assert main(["verify", str(path)]) == 2
    assert "digits" in capsys.readouterr().err

    path.write_text(CLAIMS[:150])  # cut off
    assert main(["verify", str(path)]) == 2
    assert "is not a TOML file" in capsys.readouterr().err


def test_wrong_types_in_a_claim_file_say_what_to_type(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "types.toml"
    path.write_text(
        'schema_version = 1\n[[claims]]\nid = "a"\nkind = "pure-dp"\nmechanism = "Laplace(1)"\n'
        'epsilon = [1]\nassume = "n > 2"\nlemmas = "b"\nwhere = { n = 3 }\nstatement = "…"\n'
    )
    assert main(["verify", str(path)]) == 2
    errors = capsys.readouterr().err
    for text in (
        'claims[0].epsilon: expected a text or a number, not a list. Write epsilon = "…".',
        'claims[0].assume: expected a list, not a text or a number. Write assume = ["…"].',
        'claims[0].where.n: expected a list, not a text or a number. Write n = ["…"].',
        "4 errors",
    ):
        assert text in errors


def test_a_claim_file_may_start_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(CLAIMS, "utf-8")
    answer = main(["verify", str(path)])
    path.write_text(CLAIMS, "utf-8-sig")
    assert main(["verify", str(path)]) == answer == 1


def test_one_bad_claim_does_not_hide_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(CLAIMS.replace("Laplace(scale=2)", "Laplace(scale=0-2)"))
    assert main(["verify", str(path), "--json"]) == 2
    output = capsys.readouterr()
    assert [entry["id"] for entry in json.loads(output.out)["findings"]] == ["false", "later"]
    assert "dpassay: error: Claim 'true/laplace'" in output.err


# ---------------------------------------------------------------- profile


def test_profile_answers_several_questions(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["profile", "Laplace(scale=2)", "--epsilon", "0.3", "--delta", "1e-6"]
    arguments += ["--alpha", "0.05", "--order", "2", "--rho", "--mse", "--variance"]
    assert main([*arguments, "--total-variation", "--json"]) == 0
    data = printed_json(capsys)
    for key in ("delta", "epsilon", "beta", "renyi", "rho", "mse", "variance", "total_variation"):
        assert set(data[key]) == {"lower", "upper"}
        assert is_enclosure(data[key])
    assert data["mse"] == data["variance"] == {"lower": "8", "upper": "8"}
    assert data["mechanism"] == "Laplace(scale=2)"
    assert main(arguments) == 0
    assert "delta     at epsilon 0.3  0.0951625819640" in capsys.readouterr().out


def test_profile_lists_variances_that_differ(capsys: pytest.CaptureFixture[str]) -> None:
    noise = "CorrelatedGaussian(dimension=4, mu=1)"
    assert main(["profile", noise, "--variance", "--json"]) == 0
    values = printed_json(capsys)["variance"]
    assert len(values) == 5
    assert values[0] == values[3] != values[4]


def test_profile_draws_the_points_that_were_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []

    def draw(thing: Any, path: Path) -> None:
        drawn.append((repr(thing.mechanism), [answer.at for answer in thing.answers], path))

    monkeypatch.setattr(Drawable, "drawer", draw)
    path = tmp_path / "profile.svg"
    arguments = ["profile", "Laplace(scale=2)", "--epsilon", "0.1", "--mse", "--plot", str(path)]
    assert main(arguments) == 0
    assert f"wrote {path}" in capsys.readouterr().err
    assert drawn == [("Laplace(scale=2)", ["at epsilon 0.1"], path)]
    monkeypatch.setattr(Drawable, "drawer", None)
    assert main(arguments) == 2
    assert "cannot draw" in capsys.readouterr().err


# ---------------------------------------------------------------- calibrate


def test_calibrate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "Gaussian", "--epsilon", "1", "--delta", "1e-5", "--json"]) == 0
    data = printed_json(capsys)
    assert data["mechanism"] == "Gaussian(standard_deviation='3.73063163482')"
    assert is_enclosure(data["least"])
    assert Decimal(data["achieved"]["delta"]["upper"]) <= Decimal("1e-5")


# ---------------------------------------------------------------- verify


def test_verify_json_has_the_keys_of_the_contract(
    claims: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(claims), "--json"]) == 1
    data = printed_json(capsys)
    assert set(data) == {"schema_version", "findings"}
    keys = {"id", "source", "statement", "verdict", "true", "claimed", "margin", "rigour"}
    keys |= {"witness", "reason"}
    assert all(keys <= set(finding) for finding in data["findings"])
    refuted, holds, pending = data["findings"]
    assert [f["verdict"] for f in data["findings"]] == ["REFUTED", "HOLDS", "PENDING"]
    assert is_enclosure(refuted["true"]["delta"])
    assert refuted["claimed"] == {"epsilon": "1", "delta": "1e-5"}
    assert refuted["witness"]["fact"] == "event"
    assert holds["rigour"] == "PROVED"
    assert pending["rigour"] == "NONE"


def test_verify_shows_many_in_a_table(claims: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claims.write_text(CLAIMS + SLOW.format(index=0, scale=1), "utf-8")
    assert main(["verify", str(claims)]) == 1
    text = capsys.readouterr().out
    assert "REFUTED  false         20.75" in text
    assert "4 claims: 2 HOLDS, 1 REFUTED, 1 PENDING" in text
    assert text.count("because: the classical calibration was mistyped") == 1
    assert main(["verify", str(claims), "--details"]) == 1
    assert capsys.readouterr().out.count("because  ") == 4


@pytest.mark.parametrize(
    ("only", "code", "ids"),
    [
        (["true"], 0, ["true/laplace"]),
        (["true/laplace"], 0, ["true/laplace"]),
        (["*l*"], 1, ["false", "true/laplace", "later"]),
        (["later"], 3, ["later"]),
        (["later", "true"], 0, ["true/laplace", "later"]),
    ],
)
def test_verify_only(
    claims: Path,
    only: Sequence[str],
    code: int,
    ids: Sequence[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = [part for wanted in only for part in ("--only", wanted)]
    assert main(["verify", str(claims), "--json", *options]) == code
    assert [entry["id"] for entry in printed_json(capsys)["findings"]] == list(ids)


def test_claims_that_an_argument_rests_on_come_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(
        "schema_version = 1\n"
        '[[claims]]\nkind = "relation"\nid = "lemma"\nclaim = "2 > 1"\n'
        '[[claims]]\nkind = "relation"\nid = "theorem"\nclaim = "x**2 >= 0"\n'
        'argument = "A square is not negative."\nlemmas = ["lemma"]\n'
        'for_all.x = {statement = "x real", grid = [1, 2]}\n'
    )
    assert main(["verify", str(path), "--only", "theorem", "--json"]) == 3
    (finding,) = printed_json(capsys)["findings"]
    assert (finding["id"], finding["verdict"]) == ("theorem", "ARGUED")
    document = read_text(path.read_text())
    assert [c.id for c in with_lemmas(document.claims, {"theorem"})] == ["lemma", "theorem"]


# ---------------------------------------------------------------- certificates


def test_certificate_and_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "certificate.json"
    mechanism = ["Gaussian(standard_deviation=3)", "--epsilon", "1", "--delta", "1e-5"]
    assert main(["verify", *mechanism, "--certificate", str(path), "--quiet"]) == 1
    assert f"wrote {path} (1 certificate)" in capsys.readouterr().err
    assert main(["check", str(path)]) == 0
    theorem = "VALID  REFUTED: Gaussian(standard_deviation=3) is (1, 1e-5)-DP"
    assert capsys.readouterr().out.startswith(theorem)
    assert main(["check", str(path), "--json"]) == 0
    (entry,) = printed_json(capsys)["certificates"]
    assert entry["outcome"] == "VALID"
    assert entry["theorem"]["mechanism"] == "Gaussian(standard_deviation=3)"
    assert entry["theorem"]["verdict"] == "REFUTED"
    assert entry["assumptions"] == []
    assert entry["problems"] == []

    data = json.loads(path.read_text())
    good = tmp_path / "good.json"
    good.write_bytes(path.read_bytes())
    data["theorem"]["delta"] = "0.5"
    path.write_text(json.dumps(data))
    assert main(["check", str(path)]) == 3
    assert "the claim could not be refuted" in capsys.readouterr().out
    assert main(["check", str(path), str(good), "--quiet"]) == 3  # the worst of both
    assert capsys.readouterr().out == ""


def test_certificates_of_a_file(claims: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = claims.with_name("certificates.json")
    assert main(["verify", str(claims), "--certificate", str(path), "--quiet"]) == 1
    assert len(json.loads(path.read_text())) == 2
    assert main(["verify", str(claims), "--certificate", str(path), "--only", "later"]) == 3
    assert "is not written" in capsys.readouterr().err
    assert main(["verify", str(claims), "--certificate", "no/where.json"]) == 2


# ---------------------------------------------------------------- long runs


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupted_run_prints_what_was_finished(tmp_path: Path, jobs: str) -> None:
    path, written = tmp_path / "claims.toml", tmp_path / "certificates.json"
    count = 600
    parts = [SLOW.format(index=i, scale=f"{i + 100}/100") for i in range(count)]
    path.write_text("schema_version = 1\n" + "".join(parts))
    arguments = ["verify", str(path), "--jobs", jobs, "--certificate", str(written), "--json"]
    with subprocess.Popen(
        [*PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()  # of progress, which begins once something is finished
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f" of {count} claims" in first
    assert "Traceback" not in errors
    findings = json.loads(output)["findings"]
    assert 1 <= len(findings) < count
    assert f"interrupted after {len(findings)} of {count} claims" in errors
    certificates = json.loads(written.read_text("utf-8"))
    assert len(certificates if isinstance(certificates, list) else [certificates]) == len(findings)


def test_the_workers_of_a_killed_run_end(tmp_path: Path) -> None:
    """They hold the other end of the pipe: it closes when the last of them has ended."""
    path = tmp_path / "claims.toml"
    parts = [SLOW.format(index=i, scale=f"{i + 100}/100") for i in range(60)]
    path.write_text("schema_version = 1\n" + "".join(parts))
    with subprocess.Popen(
        [*PROGRAM, "verify", str(path), "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            deadline = time.monotonic() + 200
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            while len(children.read_text().split()) < 3:  # both workers, and what tracks them
                assert time.monotonic() < deadline
                time.sleep(0.02)
            process.kill()
            output, _ = process.communicate(timeout=30)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert output == b""


# ---------------------------------------------------------------- what is seen


def test_a_terminal_sees_colour() -> None:
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    mechanism = "Gaussian(standard_deviation=3)"
    with subprocess.Popen(
        [*PROGRAM, "verify", mechanism, "--epsilon", "1", "--delta", "1e-5"],
        stdout=follower,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as process:
        os.close(follower)
        seen = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
        os.close(leader)
    assert process.returncode == 1
    text = seen.decode()
    assert "\x1b[" in text
    for mark in ("REFUTED", "0.000207512202053", "20.75 times", "(1, 1e-5)-DP"):
        assert mark in text


# ---------------------------------------------------------------- doctor


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    data = printed_json(capsys)
    assert data["sound"] is True
    assert {"python", "python-flint", "two routes to a delta", "terminal"} <= {
        entry["name"] for entry in data["examined"]
    }
    assert main(["doctor"]) == 0
    assert "Everything that is needed works." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("requirement", "said", "code"),
    [
        ("no-such-library>=1", "BAD  no-such-library        not installed", 70),
        ("mpmath>=999.9", "which is below 999.9", 70),
        ("no-such-library>=1; extra == 'test'", "not installed (optional)", 0),
        ("pytest>=999; extra == 'test'", "which is below 999", 0),
        ("mpmath>=1.2.9", "ok   mpmath", 0),
    ],
)
def test_doctor_finds_what_is_missing_or_too_old(
    requirement: str,
    said: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("importlib.metadata.requires", lambda name: [requirement])
    assert main(["doctor"]) == code
    shown = " ".join(capsys.readouterr().out.split())
    assert " ".join(said.split()) in shown
