"""What is shipped, and what it is called."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import dpassay
import dpassay.accountant.mechanisms

ROOT = Path(dpassay.__file__).resolve().parent.parent
EXTRAS = ("core", "test", "dev")
FOLDERS = {"accountant": "accountant", "lp": "lp", "verify": "verifier", "figures": "figures"}
"""Of the repository, and what each is called inside the package."""


def read_toml(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / name).read_text(encoding="utf-8"))


def normalised(requirement: str) -> str:
    """Name and version of one line, as both files spell them."""
    name, version = requirement.split(";", maxsplit=1)[0].strip().split("==")
    return f"{re.sub(r'[-_.]+', '-', name).lower()}=={version}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        capture_output=True,
        check=True,
        cwd=ROOT,
    )
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


def test_metadata() -> None:
    metadata = importlib.metadata.metadata("dpassay")
    project = read_toml("pyproject.toml")["project"]
    assert metadata["Version"] == project["version"] == dpassay.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert not [c for c in metadata.get_all("Classifier", []) if c.startswith("Private")]


def test_console_script() -> None:
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="dpassay")
    assert script.value == "dpassay:main"
    assert script.load() is dpassay.main


def test_public_names_are_those_of_the_stub() -> None:
    stub = ast.parse((ROOT / "dpassay/__init__.pyi").read_text(encoding="utf-8"))
    listed: set[str] = set()
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            if names == ["*"]:
                assert node.module == "dpassay.accountant.mechanisms"
                names = list(dpassay.accountant.mechanisms.DESCRIPTIONS)
            listed.update(names)
            source = importlib.import_module(str(node.module))
            assert all(getattr(dpassay, name) is getattr(source, name) for name in names)
    assert {*dir(dpassay)} <= {*listed, "__all__", "__version__"}
    assert len(dir(dpassay)) < 70
    imported: dict[str, object] = {}
    exec("from dpassay import *", imported)
    assert imported.keys() - {"__builtins__"} == listed


def test_wheel_has_only_our_names(wheel: zipfile.ZipFile) -> None:
    version = dpassay.__version__
    assert {name.partition("/")[0] for name in wheel.namelist()} == {
        "dpassay",
        f"dpassay-{version}.dist-info",
    }


def test_wheel_is_complete(wheel: zipfile.ZipFile) -> None:
    shipped = [name for name in wheel.namelist() if not name.endswith("/")]
    sources = {
        f"dpassay/{room}/{path.relative_to(ROOT / folder)}"
        for folder, room in FOLDERS.items()
        for suffix in ("py", "toml", "json")
        for path in (ROOT / folder).rglob(f"*.{suffix}")
    }
    assert sources | {"dpassay/py.typed", "dpassay/__init__.pyi"} <= set(shipped)
    assert len(shipped) == len(set(shipped))


@pytest.mark.slow
def test_wheel_of_the_source_archive_has_the_same_files(
    wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    build = [sys.executable, "-m", "hatchling", "build"]
    subprocess.run(
        [*build, "-t", "sdist", "-d", tmp_path], capture_output=True, check=True, cwd=ROOT
    )
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path, filter="data")
    source = next(path for path in tmp_path.iterdir() if path.is_dir())
    subprocess.run([*build, "-t", "wheel"], capture_output=True, check=True, cwd=source)
    (rebuilt,) = (source / "dist").glob("*.whl")
    with zipfile.ZipFile(rebuilt) as file:
        assert {
            info.filename: info.CRC for info in file.infolist() if "RECORD" not in info.filename
        } == {info.filename: info.CRC for info in wheel.infolist() if "RECORD" not in info.filename}


@pytest.mark.slow
def test_wheel_works_beside_the_names_of_its_rooms(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    """A user's own modules and folders may be called like the folders of the repository."""
    site, here = tmp_path / "site", tmp_path / "here"
    wheel.extractall(site)
    (here / "figures").mkdir(parents=True)
    for name in ("accountant", "verify", "lp"):
        (here / f"{name}.py").write_text("raise SystemExit('the wrong module')\n")
    program = """
import sys
sys.path.insert(1, sys.argv[1])
import dpassay, dpassay.integrations.opacus
print(dpassay.__file__, dpassay.figures.__file__)
print(dpassay.delta(dpassay.Gaussian(standard_deviation=1), epsilon=1))
print(dpassay.verify("Gaussian(3) is (1, 1e-5)-DP").verdict.value)
print(dpassay.optimal_count_noise.__module__, dpassay.plot.__module__)
"""
    (here / "program.py").write_text(program)
    run = subprocess.run(
        [sys.executable, "program.py", site], capture_output=True, text=True, check=True, cwd=here
    )
    places, delta, verdict, homes = run.stdout.splitlines()
    package = site / "dpassay"
    assert places == f"{package / '__init__.py'} {package / 'figures' / '__init__.py'}"
    assert delta == str(dpassay.delta(dpassay.Gaussian(standard_deviation=1), epsilon=1))
    assert verdict == "REFUTED"
    assert homes == "dpassay.lp.count_noise dpassay.figures.plot"


@pytest.mark.parametrize("folder", FOLDERS)
def test_folders_are_not_imported_under_their_own_names(folder: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", f"import {folder}"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert run.returncode == 1
    assert f"ImportError: Import dpassay.{FOLDERS[folder]}:" in run.stderr


def test_constraints_are_those_of_the_lock() -> None:
    locked = {
        f"{package['name']}=={package['version']}"
        for package in read_toml("uv.lock")["package"]
        if package["name"] != "dpassay"
    }
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert {normalised(line) for line in lines if not line.startswith("#")} == locked


@pytest.mark.parametrize("extra", EXTRAS)
def test_requirements_have_the_hashes_of_the_lock(extra: str) -> None:
    """Every requirement is a locked version, with all its hashes and no others."""
    locked = {
        f"{package['name']}=={package['version']}": {
            file["hash"]
            for file in [*package.get("wheels", []), package.get("sdist")]
            if file is not None
        }
        for package in read_toml("uv.lock")["package"]
        if package["name"] != "dpassay"
    }
    text = (ROOT / "requirements" / f"{extra}.txt").read_text(encoding="utf-8")
    written = text.replace("\\\n", " ").splitlines()
    found = {}
    for line in written:
        if not line.startswith("#"):
            requirement, *hashes = line.split(" --hash=")
            found[normalised(requirement)] = {one.strip() for one in hashes}
    assert found == {requirement: locked[requirement] for requirement in found}
    assert all(found.values())


@pytest.mark.parametrize("extra", EXTRAS)
def test_requirements_are_complete(extra: str) -> None:
    """They are what the lock says that the extra needs, and what builds the package."""
    packages: dict[str, list[Any]] = {}
    for package in read_toml("uv.lock")["package"]:
        packages.setdefault(package["name"], []).append(package)
    (project,) = packages["dpassay"]
    extras = {"core": [], "test": ["test"], "dev": ["dev"]}[extra]
    waiting = [*project["dependencies"], *project["dev-dependencies"]["build"]]
    for name in extras:
        waiting += project["optional-dependencies"][name]
    needed: set[str] = set()
    while waiting:
        row = waiting.pop()
        for package in packages[row["name"]]:
            if "version" in row and row["version"] != package["version"]:
                continue
            wanted = [*package.get("dependencies", [])] * (package["name"] not in needed)
            for name in row.get("extra", []):
                wanted += package.get("optional-dependencies", {}).get(name, [])
            if package["name"] not in needed:
                needed.add(package["name"])
            waiting += wanted
    text = (ROOT / "requirements" / f"{extra}.txt").read_text(encoding="utf-8")
    written = {line.split("==")[0] for line in text.splitlines() if line[:1] not in ("#", " ")}
    assert written == needed - {"dpassay"}


def test_lock_is_of_this_project() -> None:
    project = read_toml("pyproject.toml")["project"]
    wanted = {None: project["dependencies"], **project["optional-dependencies"]}
    declared = {
        (requirement.name, str(requirement.specifier), extra)
        for extra, lines in wanted.items()
        for requirement in map(Requirement, lines)
    }
    (package,) = (p for p in read_toml("uv.lock")["package"] if p["name"] == "dpassay")
    locked = {
        (row["name"], row.get("specifier", ""), extra[1] if extra else None)
        for row in package["metadata"]["requires-dist"]
        for extra in [re.fullmatch(r"extra == '(.*)'", row.get("marker", ""))]
    }
    assert locked == declared


def test_lock_names_only_public_places() -> None:
    text = (ROOT / "uv.lock").read_text(encoding="utf-8")
    hosts = set(re.findall(r'"[a-z+]+://([^/"]*)', text))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}
    assert {str(row["source"]) for row in read_toml("uv.lock")["package"]} == {
        "{'registry': 'https://pypi.org/simple'}",
        "{'editable': '.'}",
    }


def test_the_kernel_is_a_distribution_of_its_own(tmp_path: Path) -> None:
    """Its command checks a certificate where nothing else of dpassay is."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    folder = ROOT / "distributions" / "dpassay-check"
    subprocess.run(build, capture_output=True, check=True, cwd=folder)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        assert {name.partition("/")[0] for name in file.namelist()} == {
            "dpassay_check",
            f"dpassay_check-{dpassay.__version__}.dist-info",
        }
        file.extractall(tmp_path / "site")
    _, certificate = dpassay.certify("Gaussian(3) is (1, 1e-5)-DP")
    (tmp_path / "c.json").write_text(json.dumps(certificate))
    program = """
import sys
sys.path.insert(0, "site")
from dpassay_check.__main__ import main
code = main(["c.json"])
assert not [name for name in sys.modules if name.startswith("dpassay.")]
sys.exit(code)
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("VALID  REFUTED: Gaussian(standard_deviation=3) is (1, 1e-5)-DP")
