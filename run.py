"""Run dpassay from a clone, in its own virtual environment.

    python3 run.py                         run the demonstration
    python3 run.py ARGS                    run dpassay ARGS
    python3 run.py test [PYTEST ARGS]      run the tests
    python3 run.py --setup core|test|dev   only create or update the environment
    python3 run.py --verbose …             the same, and show the output of the installation

The environment is the folder `.venv` next to this file. It is created from the lock file by uv, if
uv is available, and otherwise by venv and pip with the same versions and hashes from
`requirements/`. It is updated when `pyproject.toml`, the lock files, the Python version or the path
of the clone changes. The output of the installation is written to `.venv.log`.

This file must remain valid for old Python versions, so that it can report that they are too old.
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
EXTRAS = ("core", "test", "dev")  # each includes the one before
LAST = 15  # number of lines of the log to show after a failure
INPUTS = ("pyproject.toml", "uv.lock", *(f"requirements/{extra}.txt" for extra in EXTRAS))


def main(arguments: Sequence[str]) -> None:
    """Run the command line; this returns only for --setup."""
    require_python(sys.version_info[:2])
    if os.name != "posix":
        raise SystemExit("run.py needs Linux, macOS or WSL. On other systems: pip install -e .")
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
        # One process per core; idle processes take over tests of others. The tests start hundreds
        # of programs, so compiled files are kept whatever the caller has set.
        replace_by(
            [str(PYTHON), "-m", "pytest", "-n", "auto", "--dist", "worksteal", *rest],
            PYTHONDONTWRITEBYTECODE="",
        )
    else:
        # Some figures need scikit-learn, which is part of the extra "test".
        ensure("test" if first == "figures" else "core")
        # DPASSAY_COMMAND is how dpassay spells its own command in advice.
        replace_by([str(VENV / "bin" / "dpassay"), first, *rest], DPASSAY_COMMAND="python3 run.py")


def require_python(version: tuple[int, int]) -> None:
    """Return if this Python is new enough, else switch to a newer one or exit with advice."""
    if version >= (3, 11):
        return
    for name in NEWER:
        found = shutil.which(name)
        # A version manager may have a shim for a Python that is not installed.
        if found and succeeds([found, "-c", ""]):
            replace_by([found, *sys.argv])
    raise SystemExit(
        f"dpassay needs Python 3.11 or newer; {sys.executable} is {version[0]}.{version[1]} and no "
        "newer one is on PATH. Install one (apt install python3 python3-venv, or uv python "
        "install 3.12, or https://www.python.org) and run this file with it."
    )


def ensure(wanted: str) -> None:
    """Make sure that the environment is up to date and includes the extra `wanted`."""
    if is_current(wanted):
        return
    try:
        prepare(wanted)
    except OSError as error:
        raise SystemExit(
            f"run.py: cannot create .venv in {ROOT}: {error.strerror}. Move the clone to a "
            "writable folder."
        ) from None


def prepare(wanted: str) -> None:
    """Create or update the environment, excluding other runs meanwhile."""
    with locked() as lock:
        if is_current(wanted):  # another run has just finished
            return
        extra = max(wanted, read_stamp()["extra"], key=EXTRAS.index)
        STAMP.unlink(missing_ok=True)  # so an interrupted installation has no stamp
        LOG.write_text("")
        with Progress(f"preparing .venv ({extra}) with Python {sys.version.split()[0]}"):
            install(extra, lock)
        unfinished = STAMP.with_suffix(".new")
        unfinished.write_text(json.dumps({"inputs": fingerprint(), "extra": extra}) + "\n")
        unfinished.replace(STAMP)


def fingerprint() -> str:
    """Return a hash of everything that the environment depends on."""
    digest = hashlib.sha256(repr((sys.version_info[:2], str(ROOT))).encode())
    for name in INPUTS:
        digest.update(hashlib.sha256((ROOT / name).read_bytes()).digest())
    return digest.hexdigest()


def read_stamp() -> dict[str, str]:
    """Return the record of the last completed installation."""
    try:
        stamp = json.loads(STAMP.read_text())
        return {"inputs": str(stamp["inputs"]), "extra": EXTRAS[EXTRAS.index(stamp["extra"])]}
    except (OSError, ValueError, TypeError, KeyError):  # missing or damaged
        return {"inputs": "", "extra": "core"}


def is_current(wanted: str) -> bool:
    """Whether the environment is up to date and includes the extra `wanted`."""
    stamp = read_stamp()
    return (
        stamp["inputs"] == fingerprint()
        and EXTRAS.index(stamp["extra"]) >= EXTRAS.index(wanted)
        and PYTHON.exists()  # it links to a Python that may have been removed
    )


def install(extra: str, lock: int) -> None:
    """Install the locked versions and this clone (editable) into `.venv`."""
    # In an activated .venv, sys.executable may be replaced; use the Python it was created from.
    python = getattr(sys, "_base_executable", sys.executable)
    uv = find_uv()
    if uv:
        command = [*uv, "sync", "--frozen", "--inexact", "--reinstall-package", "dpassay"]
        if succeeds(command + ["--python", python] + ["--extra", extra] * (extra != "core"), lock):
            return
        say("uv failed; trying venv and pip")

    pip = [str(PYTHON), "-m", "pip", "install"]
    steps = [
        [*pip, "--require-hashes", "-r", f"requirements/{extra}.txt"],
        [*pip, "--no-deps", "--no-build-isolation", "-e", "."],  # the build backend is installed
    ]
    usable = f"import pip, sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    if not succeeds([str(PYTHON), "-c", usable]):
        steps.insert(0, [*venv_maker(python), "--clear", str(VENV)])
    for step in steps:
        if not succeeds(step, lock):
            raise SystemExit(f"This step failed; .venv is incomplete: {' '.join(step)}\n{tail()}")


def find_uv() -> list[str]:
    """Return the command that runs uv, or an empty list."""
    candidates = ["uv"], [sys.executable, "-m", "uv"]
    return next((uv for uv in candidates if succeeds([*uv, "--version"])), [])


def venv_maker(python: str) -> list[str]:
    """Return the command that creates a virtual environment with pip."""
    if importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"):
        return [python, "-m", "venv"]
    if importlib.util.find_spec("virtualenv"):
        return [sys.executable, "-m", "virtualenv", "--python", python]
    raise SystemExit(
        f"{python} cannot create virtual environments: ensurepip is missing. On Debian and Ubuntu: "
        "apt install python3-venv. Or install uv (https://docs.astral.sh/uv). Then run this again."
    )


def succeeds(command: Sequence[str], lock: int | None = None) -> bool:
    """Run a command and return whether its exit code is 0; with a lock, log its output."""
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
                # The step holds the lock even if this process is killed.
                pass_fds=() if lock is None else (lock,),
            )
    except OSError:
        return False


def tail() -> str:
    """Return the last lines of the log and its path."""
    if Progress.verbose:
        return "Its output is above."
    lines = LOG.read_text(errors="replace").splitlines() if LOG.exists() else []
    return "\n".join([*lines[-LAST:], f"The complete output: {LOG}"])


class Progress:
    """A line on stderr with the current action and its duration; on a terminal, with a spinner."""

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
        """Rewrite the line until the action is over."""
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
    """Hold a lock, so that only one installation at a time changes `.venv`."""
    import fcntl  # POSIX only

    with open(ROOT / ".venv.lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another run that is preparing .venv")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def replace_by(command: list[str], **environment: str) -> NoReturn:
    """Replace this process by another program, which inherits its output and signals."""
    sys.stdout.flush()
    os.execve(command[0], command, {**os.environ, **environment})


def say(text: str) -> None:
    """Print a progress message to stderr."""
    print("run.py: " + text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        raise SystemExit(130) from None
