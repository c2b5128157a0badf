"""How `run.py` decides; no environment is made here."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import run

PIP = ["-m", "pip", "install"]


class Replaced(BaseException):
    """The process would have become another program."""


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with an environment that has never been filled."""
    (tmp_path / "requirements").mkdir()
    for name in run.INPUTS:
        (tmp_path / name).write_text(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(run, "LOG", tmp_path / ".venv.log")
    monkeypatch.setattr(run, "PYTHON", tmp_path / ".venv" / "bin" / "python")
    monkeypatch.setattr(run, "STAMP", tmp_path / ".venv" / "stamp.json")
    return tmp_path


@pytest.fixture
def installed(clone: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The extras that were asked for, in an installation that takes no time."""
    extras: list[str] = []

    def install(extra: str, lock: int) -> None:
        assert not run.STAMP.exists()
        run.PYTHON.parent.mkdir(parents=True, exist_ok=True)
        run.PYTHON.touch()
        extras.append(extra)

    monkeypatch.setattr(run, "install", install)
    return extras


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The program that the process became."""
    command: list[str] = []

    def replace_by(other: list[str], **_: str) -> None:
        command.extend(other)
        raise Replaced

    monkeypatch.setattr(run, "replace_by", replace_by)
    return command


@pytest.fixture
def commands(clone: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that would have been run; all succeed."""
    seen: list[list[str]] = []

    def succeeds(command: list[str], lock: int | None = None) -> bool:
        seen.append([str(part) for part in command])
        return True

    monkeypatch.setattr(run, "succeeds", succeeds)
    return seen


def test_the_first_run_installs_and_the_second_does_not(
    installed: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    run.ensure("core")
    run.ensure("core")
    assert installed == ["core"]
    told = capfd.readouterr()
    assert told.out == ""
    assert "preparing .venv (core)" in told.err


def test_an_extra_is_added_once_and_kept(installed: list[str], clone: Path) -> None:
    for wanted in ("core", "test", "core", "test"):
        run.ensure(wanted)
    assert installed == ["core", "test"]
    (clone / "uv.lock").write_text("changed")
    run.ensure("core")
    assert installed == ["core", "test", "test"]


@pytest.mark.parametrize("name", run.INPUTS)
def test_a_changed_input_is_stale(installed: list[str], clone: Path, name: str) -> None:
    run.ensure("core")
    (clone / name).write_text("changed")
    assert not run.is_current("core")


def test_an_interrupted_installation_leaves_no_stamp(
    installed: list[str], clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.ensure("core")
    (clone / "uv.lock").write_text("changed")

    def interrupted(extra: str, lock: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "install", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.ensure("core")
    assert not run.STAMP.exists()
    assert not run.is_current("core")


@pytest.mark.parametrize(
    ("arguments", "program"),
    [
        ([], ["bin/dpassay", "demo"]),
        (["doctor", "--json"], ["bin/dpassay", "doctor", "--json"]),
        (["--help"], ["bin/dpassay", "--help"]),
        (["figures", "--list"], ["bin/dpassay", "figures", "--list"]),
        (
            ["test", "-m", "slow"],
            ["bin/python", "-m", "pytest", "-n", "auto", "--dist", "worksteal", "-m", "slow"],
        ),
    ],
)
def test_what_is_run(
    installed: list[str], became: list[str], arguments: list[str], program: list[str]
) -> None:
    with pytest.raises(Replaced):
        run.main(arguments)
    assert became == [str(run.VENV / program[0]), *program[1:]]
    assert installed == ["test" if arguments[:1] in (["test"], ["figures"]) else "core"]


def test_exit_code_and_signal_are_the_programs() -> None:
    program = "import run, sys; run.replace_by([sys.executable, '-c', 'raise SystemExit(3)'])"
    done = subprocess.run([sys.executable, "-c", program], check=False, cwd=run.ROOT)
    assert done.returncode == 3


def test_every_supported_python_can_read_it() -> None:
    source = Path(run.__file__).read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 8))
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [a.name for a in node.names]
        )
    }
    assert imported <= sys.stdlib_module_names


def test_an_old_python_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or newer; .* is 3\.8 .*apt install"):
        run.require_python((3, 8))


def test_an_old_python_hands_over_to_a_newer_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, became: list[str]
) -> None:
    for name, code in (("python3.13", 127), ("python3.12", 0)):  # the first is a dead shim
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["run.py", "test", "-x"])
    with pytest.raises(Replaced):
        run.require_python((3, 9))
    assert became == [str(tmp_path / "python3.12"), "run.py", "test", "-x"]


def test_pip_where_there_is_no_uv(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "find_uv", list)
    run.install("test", 0)
    libraries, package = ([*command[1:]] for command in commands[-2:])
    assert libraries == [*PIP, "--require-hashes", "-r", "requirements/test.txt"]
    assert package == [*PIP, "--no-deps", "--no-build-isolation", "-e", "."]


def test_a_failed_step_is_named(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "succeeds", lambda command, lock=None: False)
    with pytest.raises(SystemExit, match=r"This step failed; \.venv is incomplete: .* venv"):
        run.install("core", 0)


def test_debian_without_venv_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name == "venv")
    with pytest.raises(SystemExit, match="apt install python3-venv"):
        run.venv_maker("the-python")
