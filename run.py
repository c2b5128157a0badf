"""Run dpassay from a clone, in an environment of its own.

    python3 run.py                         the demonstration
    python3 run.py ARGS                    dpassay ARGS
    python3 run.py test [PYTEST ARGS]      the tests
    python3 run.py --setup core|test|dev   only create or refresh the environment
    python3 run.py --verbose …             the same, and show what the installation says

The environment is `.venv` beside this file. It is made from the lock by uv where there is one,
else by venv and pip, from the same versions and hashes in `requirements/`; and made again when
`pyproject.toml`, these files, the Python version or the place of the clone has changed. A Python
too old must still be able to read this file and say so. What the installation says goes to
`.venv.log`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, NoReturn, Sequence  # noqa: UP035 (Python 3.8 reads this)

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOG = ROOT / ".venv.log"
STAMP = VENV / "dpassay-stamp.json"
NEWER = ("python3.13", "python3.12", "python3.11", "python3.14")
EXTRAS = ("core", "test", "dev")  # each contains the one before
LAST = 15  # lines of the log that are shown after a failure
INPUTS = ("pyproject.toml", "uv.lock", *(f"requirements/{extra}.txt" for extra in EXTRAS))


def main(arguments: Sequence[str]) -> None:
    """Do what the command line says; it returns only where no other program takes over."""
    require_python(sys.version_info[:2])
    if os.name != "posix":
        raise SystemExit("run.py needs Linux, macOS or WSL. Elsewhere: pip install -e .")
    arguments = list(arguments)
    if arguments[:1] == ["--verbose"]:
        Progress.verbose = bool(arguments.pop(0))
    first, rest = (arguments or ["demo"])[0], arguments[1:]
    if first == "--setup":
        if len(rest) != 1 or rest[0] not in EXTRAS:
            raise SystemExit(f"Usage: python3 run.py --setup {'|'.join(EXTRAS)}")
        ensure(rest[0])
    elif first == "test":
        ensure("test")
        os.chdir(ROOT)
        # One process for each core, with consecutive tests; who is done takes some of the others'.
        # The tests start hundreds of programs: they keep compiled files, whatever the caller set.
        replace_by(
            [str(PYTHON), "-m", "pytest", "-n", "auto", "--dist", "worksteal", *rest],
            PYTHONDONTWRITEBYTECODE="",
        )
    else:
        # Some figures train classifiers, with scikit-learn; the tests have it.
        ensure("test" if first == "figures" else "core")
        # How its advice is to be typed.
        replace_by([str(VENV / "bin" / "dpassay"), first, *rest], DPASSAY_COMMAND="python3 run.py")


def require_python(version: tuple[int, int]) -> None:
    """Return if this Python is new enough; else go on with a newer one, or end with the remedy."""
    if version >= (3, 11):
        return
    for name in NEWER:
        found = shutil.which(name)
        # A shim of a version manager may exist for a Python that is not there.
        if found and succeeds([found, "-c", ""]):
            replace_by([found, *sys.argv])
    raise SystemExit(
        f"dpassay needs Python 3.11 or newer; {sys.executable} is {version[0]}.{version[1]} and no "
        "newer one is on PATH. Install one (apt install python3 python3-venv, or uv python "
        "install 3.12, or https://www.python.org) and run this file with it."
    )


def ensure(wanted: str) -> None:
    """Leave an environment that is up to date and has at least the extra `wanted`."""
    if is_current(wanted):
        return
    try:
        prepare(wanted)
    except OSError as error:
        raise SystemExit(
            f"run.py: cannot make .venv in {ROOT}: {error.strerror}. Put the clone into a folder "
            "that can be written."
        ) from None


def prepare(wanted: str) -> None:
    """Make the environment, while no other run does."""
    with locked() as lock:
        if is_current(wanted):  # another run has just made it
            return
        extra = max(wanted, read_stamp()["extra"], key=EXTRAS.index)
        STAMP.unlink(missing_ok=True)  # an interrupted installation leaves none
        LOG.write_text("")
        with Progress(f"preparing .venv ({extra}) with Python {sys.version.split()[0]}"):
            install(extra, lock)
        unfinished = STAMP.with_suffix(".new")
        unfinished.write_text(json.dumps({"inputs": fingerprint(), "extra": extra}) + "\n")
        unfinished.replace(STAMP)


def fingerprint() -> str:
    """Return a hash of everything that the environment is a function of."""
    digest = hashlib.sha256(repr((sys.version_info[:2], str(ROOT))).encode())
    for name in INPUTS:
        digest.update(hashlib.sha256((ROOT / name).read_bytes()).digest())
    return digest.hexdigest()


def read_stamp() -> dict[str, str]:
    """Return what the last finished installation recorded."""
    try:
        stamp = json.loads(STAMP.read_text())
        return {"inputs": str(stamp["inputs"]), "extra": EXTRAS[EXTRAS.index(stamp["extra"])]}
    except (OSError, ValueError, TypeError, KeyError):  # none, or a damaged one
        return {"inputs": "", "extra": "core"}


def is_current(wanted: str) -> bool:
    """Tell whether the environment is the one that the lock describes, with the extra."""
    stamp = read_stamp()
    return (
        stamp["inputs"] == fingerprint()
        and EXTRAS.index(stamp["extra"]) >= EXTRAS.index(wanted)
        and PYTHON.exists()  # a link to a Python that may have been removed
    )


def install(extra: str, lock: int) -> None:
    """Fill `.venv` with the locked versions and this clone (editable)."""
    # Inside an activated .venv, sys.executable is what may be replaced: use what it came from.
    python = getattr(sys, "_base_executable", sys.executable)
    uv = find_uv()
    if uv:
        command = [*uv, "sync", "--frozen", "--inexact", "--reinstall-package", "dpassay"]
        if succeeds(command + ["--python", python] + ["--extra", extra] * (extra != "core"), lock):
            return
        say("uv did not succeed; trying venv and pip")

    pip = [str(PYTHON), "-m", "pip", "install"]
    steps = [
        [*pip, "--require-hashes", "-r", f"requirements/{extra}.txt"],
        [*pip, "--no-deps", "--no-build-isolation", "-e", "."],  # what builds it is among these
    ]
    usable = f"import pip, sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    if not succeeds([str(PYTHON), "-c", usable]):
        steps.insert(0, [*venv_maker(python), "--clear", str(VENV)])
    for step in steps:
        if not succeeds(step, lock):
            raise SystemExit(f"This step failed; .venv is unfinished: {' '.join(step)}\n{tail()}")


def find_uv() -> list[str]:
    """Return the command that is uv, or nothing."""
    candidates = ["uv"], [sys.executable, "-m", "uv"]
    return next((uv for uv in candidates if succeeds([*uv, "--version"])), [])


def venv_maker(python: str) -> list[str]:
    """Return the command that makes an environment with pip in it."""
    if importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"):
        return [python, "-m", "venv"]
    if importlib.util.find_spec("virtualenv"):
        return [sys.executable, "-m", "virtualenv", "--python", python]
    raise SystemExit(
        f"{python} cannot make environments: ensurepip is missing. On Debian and Ubuntu: apt "
        "install python3-venv. Or install uv (https://docs.astral.sh/uv). Then run this again."
    )


def succeeds(command: Sequence[str], lock: int | None = None) -> bool:
    """Run a command and tell whether it returned 0; a step of the installation is logged."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
    try:
        with open(os.devnull if lock is None else LOG, "a") as log:
            shown = sys.stderr if Progress.verbose and lock is not None else log
            return not subprocess.call(
                command,
                cwd=ROOT,
                env={**inherited, "UV_PROJECT_ENVIRONMENT": str(VENV)},
                stdin=subprocess.DEVNULL,
                stdout=shown,
                stderr=shown,
                # Held while the step goes on, come what may.
                pass_fds=() if lock is None else (lock,),
            )
    except OSError:
        return False


def tail() -> str:
    """Return the end of the log, or where everything was shown."""
    if Progress.verbose:
        return "What it said stands above."
    lines = LOG.read_text(errors="replace").splitlines() if LOG.exists() else []
    return "\n".join([*lines[-LAST:], f"Everything that was said: {LOG}"])


class Progress:
    """One line on stderr that says what goes on, and for how long; a spinner on a terminal."""

    verbose = False

    def __init__(self, text: str) -> None:
        self.text = text
        self.over = threading.Event()
        self.started = time.monotonic()
        self.live = sys.stderr.isatty() and not Progress.verbose
        self.thread = threading.Thread(target=self.turn, daemon=True)

    def __enter__(self) -> None:
        if self.live:
            self.thread.start()
        else:
            say(self.text)

    def turn(self) -> None:
        """Rewrite the line until it is over."""
        for mark in itertools.cycle("|/-\\"):
            seconds = time.monotonic() - self.started
            sys.stderr.write(f"\r\x1b[2Krun.py: {self.text} {mark} {seconds:.0f} s")
            sys.stderr.flush()
            if self.over.wait(0.2):
                return

    def __exit__(self, *problem: object) -> None:
        self.over.set()
        if self.live:
            self.thread.join()
            sys.stderr.write("\r\x1b[2K")
        if problem[0] is None:
            say(f"ready after {time.monotonic() - self.started:.0f} s")


@contextmanager
def locked() -> Iterator[int]:
    """Hold the lock that lets one installation at a time into `.venv`."""
    import fcntl  # POSIX only

    with open(ROOT / ".venv.lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another run that prepares .venv")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def replace_by(command: list[str], **environment: str) -> NoReturn:
    """Become another program: its output, signals and exit code are the caller's."""
    sys.stdout.flush()
    os.execve(command[0], command, {**os.environ, **environment})


def say(text: str) -> None:
    """Report progress, on stderr."""
    print("run.py: " + text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        raise SystemExit(130) from None
