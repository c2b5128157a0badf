"""The second distribution: the kernel and its command, without the toolkit."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import flint
import pytest

import dpassay
from dpassay.verifier import kernel, prover
from tests.verify.forge import certified

ROOT = Path(dpassay.__file__).parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's content and python-flint, and nothing else."""
    folder = tmp_path_factory.mktemp("dpassay-check")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        capture_output=True,
        check=True,
        cwd=ROOT / "distributions" / "dpassay-check",
    )
    (built,) = folder.glob("*.whl")
    site = folder / "site"
    with zipfile.ZipFile(built) as wheel:
        wheel.extractall(site)
    library = Path(flint.__file__).parent
    for beside in library.parent.glob("*flint*"):
        if beside.suffix != ".dist-info":
            (site / beside.name).symlink_to(beside)
    return site


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command with no packages but those of the folder."""
    return subprocess.run(
        [sys.executable, "-S", "-m", "dpassay_check", *arguments],
        env={"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_is_the_kernel(installed: Path) -> None:
    own = {path.name: path.read_bytes() for path in (ROOT / "verify" / "kernel").glob("*.py")}
    shipped = {path.name: path.read_bytes() for path in (installed / "dpassay_check").glob("*.py")}
    assert shipped == own
    texts = {"LICENSE", "py.typed", "certificate.md", "kernel.md", "certificate.schema.json"}
    assert texts <= {path.name for path in (installed / "dpassay_check").iterdir()}
    (metadata,) = installed.glob("*.dist-info/METADATA")
    found = Parser().parsestr(metadata.read_text("utf-8"))
    assert found["Version"] == dpassay.__version__
    assert found.get_all("Requires-Dist") == ["python-flint>=0.9"]


def test_it_imports_flint_and_the_standard_library(installed: Path) -> None:
    program = (
        "import sys, importlib, pathlib, dpassay_check as kernel\n"
        "for path in pathlib.Path(kernel.__file__).parent.glob('[a-z]*.py'):\n"
        "    importlib.import_module('dpassay_check.' + path.stem)\n"
        "tops = {name.partition('.')[0] for name in sys.modules}\n"
        "own = {name for name in tops if 'cython' not in name}  # of flint's build\n"
        "print(sorted(own - set(sys.stdlib_module_names) - {'__main__'}))"
    )
    found = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "['dpassay_check', 'flint']"


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [("gaussian-shape", 0, "VALID  OPTIMAL"), ("audit", 3, "CONDITIONAL\n  rests on: ")],
)
def test_it_checks(name: str, code: int, words: str, installed: Path, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    prover.write(path, [certified(name)])
    found = run(installed, str(path))
    assert (found.returncode, found.stderr) == (code, "")
    assert found.stdout.startswith(words)
    plain = json.loads(run(installed, str(path), "--json").stdout)["certificates"][0]
    theorem = kernel.check(certified(name)).to_json()["theorem"]
    assert plain["theorem"] == theorem


def test_it_says_what_it_trusts_and_reads(installed: Path) -> None:
    assert run(installed, "--trust").stdout == kernel.trust() + "\n"
    schema = json.loads(run(installed, "--schema").stdout)
    assert schema == json.loads(json.dumps(kernel.json_schema()))
    assert run(installed).returncode == 2
    assert run(installed, "nowhere.json").returncode == 2
