"""Small Python packages and an index of them in a folder, for the tests of wheel lists."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def wheel(
    folder: Path,
    name: str,
    version: str,
    tag: str = "py3-none-any",
    needs: Sequence[str] = (),
    python: str = "",
    more: Sequence[str] = (),
) -> Path:
    """A wheel that pip installs: one module with its version."""
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    fields = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *more]
    fields += [f"Requires-Python: {python}"] if python else []
    fields += [f"Requires-Dist: {need}" for need in needs]
    module = f"{name.replace('-', '_')}.py"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(module, f"version = {version!r}\ntag = {tag!r}\n")
        archive.writestr(f"{info}/METADATA", "\n".join(fields) + "\n")
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{name} = {module[:-3]}:main\n")
        listed = [module, f"{info}/METADATA", f"{info}/WHEEL", f"{info}/entry_points.txt", f"{info}/RECORD"]
        archive.writestr(f"{info}/RECORD", "".join(f"{each},,\n" for each in listed))
    return path


def source(
    folder: Path, name: str, version: str, more: Sequence[str] = (), files: Mapping[str, str] | None = None
) -> Path:
    """A source package, with further files in the place of its own; its setup.py must never run."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        texts = {
            "setup.py": "raise SystemExit('this is not to be run')",
            "PKG-INFO": "\n".join([f"Metadata-Version: 1.0\nName: {name}\nVersion: {version}", *more, ""]),
            **(files or {}),
        }
        for member, text in texts.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{member}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def index(folder: Path, *files: Path) -> str:
    """A simple index of the files in ``folder``; its address."""
    projects: dict[str, list[Path]] = {}
    for path in files:
        stem = path.name.removesuffix(".tar.gz").rpartition("-")[0] if path.suffix == ".gz" else path.name.split("-")[0]
        projects.setdefault(stem.replace("_", "-").lower(), []).append(path)
    for project, paths in projects.items():
        place = folder / "simple" / project
        place.mkdir(parents=True, exist_ok=True)
        links = [f'<a href="{path.as_uri()}#sha256={sha256(path)}">{path.name}</a>' for path in paths]
        (place / "index.html").write_text("<!DOCTYPE html><html><body>" + "\n".join(links) + "</body></html>")
    return (folder / "simple").as_uri()
