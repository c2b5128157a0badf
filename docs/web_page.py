"""Build the page that decides claims and checks certificates in a browser: `docs/build.py --page`.

The folder works from any web server, and without a network: Pyodide (by npm), python-flint and
msgspec compiled for it (by pip), the rest from this clone and its environment. Versions and hashes
of what is downloaded are below. kernel.zip has what checks certificates; dpassay.zip all else.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "docs" / "page"
DOWNLOADS = ROOT / "build" / "downloads"
MEGABYTES = 25
"""What a visitor downloads at most."""
PYODIDE = "314.0.7"
INDEX = f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE}/full/"
"""Where Pyodide fetches further packages, once the visitor has agreed."""
_WASM = "cp314-cp314-pyemscripten_2026_0_wasm32.whl"
FLINT, MSGSPEC = f"python_flint-0.9.0-{_WASM}", f"msgspec-0.23.0-{_WASM}"
_TARBALL = f"pyodide-{PYODIDE}.tgz"
HASHES = {
    _TARBALL: "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0",
    FLINT: "b31f5c00e0e36040ab58d00b3025156e20869b990d776e4bf90f870b1ee11ad3",
    MSGSPEC: "1836f50ad87e7c56600b648a1b75c3bbcce62835cb1f489435fc5fee8d068831",
}
"""SHA-256 of what is downloaded."""
_RUNTIME = [
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
]
_PARTS = {"accountant": "accountant", "lp": "lp", "verify": "verifier"}
"""Folders of this clone, and what they are called below dpassay."""


def build(folder: Path) -> None:
    """Write the page and all that it loads into a folder; raise OSError if it is too large."""
    for name in HASHES:
        download(name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tarfile.open(DOWNLOADS / _TARBALL) as archive:
        for name in _RUNTIME:
            content = archive.extractfile(f"package/{name}").read()
            if name.endswith(".mjs"):
                content = content.replace(b"pyodide.asm.mjs", b"pyodide.asm.js")
            # Some web servers do not call .mjs JavaScript.
            (folder / name.replace(".mjs", ".js")).write_bytes(content)
    with ZipFile(folder / "kernel.zip", "w", ZIP_DEFLATED) as archive:
        copy_wheel(FLINT, archive)
        for path, name in files(ROOT / "verify" / "kernel", "dpassay_check"):
            archive.write(path, name)
        archive.write(SOURCES / "ask.py", "ask.py")
    with ZipFile(folder / "dpassay.zip", "w", ZIP_DEFLATED) as archive:
        copy_wheel(MSGSPEC, archive)
        for path, name in all_else():
            archive.write(path, name)
    write_page(folder)
    size = sum(path.stat().st_size for path in folder.iterdir())
    if size > MEGABYTES * 10**6:
        raise OSError(f"The page has {size} bytes, more than {MEGABYTES} MB.")


def download(name: str) -> None:
    """Get a file from its registry, unless it is there, and compare its hash."""
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    if not (DOWNLOADS / name).exists():
        with TemporaryDirectory(dir=DOWNLOADS) as new:
            if name == _TARBALL:
                command = ["npm", "pack", "--silent", f"pyodide@{PYODIDE}"]
            else:
                package, number, python, abi, platform = name.removesuffix(".whl").split("-")
                pip = [sys.executable, "-m", "pip"] if find_spec("pip") else ["pip"]
                command = [*pip, "download", "-q", "--no-deps", f"{package}=={number}"]
                command += ["--python-version", python[2:], "--abi", abi, "--platform", platform]
            subprocess.run(command, cwd=new, check=True, stdout=subprocess.DEVNULL)
            (Path(new) / name).rename(DOWNLOADS / name)
    found = hashlib.sha256((DOWNLOADS / name).read_bytes()).hexdigest()
    if found != HASHES[name]:
        raise OSError(f"{DOWNLOADS / name} has the SHA-256 {found}, not {HASHES[name]}.")


def copy_wheel(name: str, archive: ZipFile) -> None:
    """Add what a wheel installs, without its tests."""
    with ZipFile(DOWNLOADS / name) as wheel:
        for member in wheel.namelist():
            if "/test/" not in member:
                archive.writestr(member, wheel.read(member), ZIP_DEFLATED)


def files(folder: Path, name: str) -> Iterator[tuple[Path, str]]:
    """Yield the files of a package, and where they lie in an archive."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path, f"{name}/{path.relative_to(folder).as_posix()}"


def all_else() -> Iterator[tuple[Path, str]]:
    """Yield what decides claims and writes the page of a verdict."""
    yield ROOT / "dpassay" / "__init__.py", "dpassay/__init__.py"
    for folder, name in _PARTS.items():
        papers = ROOT / folder / "papers"
        for path, place in files(ROOT / folder, f"dpassay/{name}"):
            if papers not in path.parents:
                yield path, place
    yield ROOT / "figures" / "__init__.py", "dpassay/figures/__init__.py"
    yield from files(ROOT / "figures" / "pages", "dpassay/figures/pages")
    for name in ("jinja2", "markupsafe"):  # markupsafe is Python where it is not compiled
        for path, place in files(Path(str(import_module(name).__file__)).parent, name):
            if path.suffix == ".py":
                yield path, place


def write_page(folder: Path) -> None:
    """Write the page, its style and its programs."""
    loaded = sum(path.stat().st_size for path in folder.iterdir() if path.suffix != ".js")
    text = (SOURCES / "index.html").read_text("utf-8")
    for name, value in {"BYTES": loaded, "INDEX": INDEX, "VERSION": version("dpassay")}.items():
        text = text.replace(f"@{name}@", str(value))
    (folder / "index.html").write_text(text, encoding="utf-8")
    styles = (ROOT / "figures" / "pages" / "templates" / "style.css", SOURCES / "page.css")
    style = "".join(path.read_text("utf-8") for path in styles)
    (folder / "page.css").write_text(style, encoding="utf-8")
    for name in ("page.js", "worker.js"):
        shutil.copyfile(SOURCES / name, folder / name)
