"""A lock → all files that its bundle must hold, hpcgen's own wheels too; base images come as their own layout."""

from __future__ import annotations

import base64
import contextlib
import csv
import email.parser
import hashlib
import importlib.metadata
import importlib.util
import io
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
from packaging.requirements import Requirement

from hpcgen.blocks.inputs.base import Fetcher, by_kind
from hpcgen.blocks.inputs.bazel import BazelFiles
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, FetchError, HpcgenError, InputError, Problem
from hpcgen.core.model.bundle import WantedFile
from hpcgen.core.model.image_paths import COPIED, COPIED_LIST
from hpcgen.core.model.lock import Lock
from hpcgen.core.support.hashing import TreeFile, below, sha256_of
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.stages import Assembly
from hpcgen.supply.net.package_index import find_files
from hpcgen.supply.net.wheel_index import wheel_licence, wheel_metadata
from hpcgen.supply.pin.model_files import wanted_files
from hpcgen.supply.pin.uv_resolver import run_uv
from hpcgen.supply.pin.wheels import lock_wheels


def wanted(
    lock: Lock, catalog: Catalog, folder: Path, *, own: bool = True, compiled: Collection[str] = ()
) -> list[WantedFile]:
    """Every file of a lock's bundle, sorted by kind and name, each content once.

    folder: where files may be made that are no downloads (git trees, hpcgen's own wheel).
    own: whether hpcgen itself and what it needs is wanted too.
    compiled: blocks whose sources are not wanted, by their names.
    FetchError: an index does not have what the lock names.
    InputError: the lock does not fit this hpcgen's collections, or an input cannot be bundled.
    """
    from hpcgen.supply.pin.git_trees import fetch_tree

    inputs = [each for each in check_lock(lock, catalog).inputs if each[0].name not in compiled]
    fetcher = Fetcher(lock.plan.site.network.mirrors, lock.pins, folder, catalog.release, find_files, fetch_tree)
    found: list[WantedFile] = []
    problems: list[Problem] = []
    asks: list[Callable[[], list[WantedFile]]] = [
        partial(_packages, lock),
        *([partial(own_wheels, folder)] if own else []),
    ]
    asks.append(partial(_copied, lock, catalog, folder))
    asks.append(lambda: [file for model in lock.plan.stack.run.models for file in wanted_files(model).values()])
    asks += [partial(kind.wanted, of_kind, fetcher) for kind, of_kind in by_kind(inputs).items()]
    for ask in asks:
        try:
            found.extend(ask())
        except HpcgenError as error:
            problems.extend(error.problems)
    if problems:
        raise FetchError(problems)
    # The same wheel may be both in the image and needed by hpcgen: then both indexes name it.
    once = {(each.kind, each.sha256, each.file): each for each in found}
    return sorted(once.values(), key=lambda each: (each.kind, each.name, each.file))


def lacking(lock: Lock, catalog: Catalog) -> list[str]:
    """What a build from the lock's bundle is known to need that no bundle can hold, for people."""
    found = (item.lacking for _, item in check_lock(lock, catalog).inputs if isinstance(item, BazelFiles))
    return [text for text in found if text]


def check_lock(lock: Lock, catalog: Catalog) -> Assembly:
    """What the lock's plan assembles to; InputError where these collections make another image of it."""
    try:
        assembly = assemble(lock.plan, catalog, lock.pins)
    except HpcgenError as error:
        raise _without_collections(lock, catalog, error) from error
    made = assembly.labels["io.hpcgen.content"]
    if made == lock.content:
        return assembly
    from hpcgen._version import __version__
    from hpcgen.supply.pin.locking import collection_files

    here = collection_files(lock.plan, catalog)
    names = sorted(name for name in {*here, *lock.collections} if here.get(name) != lock.collections.get(name))
    changed = f"these differ: {', '.join(names)}" if names else "all its files are the same"
    lie = "".join(f"; {name} is {catalog.names_of_folders.get(name, 'not here')}" for name in lock.own_collections)
    raise InputError(
        Problem(
            f"this hpcgen would not build the image that the lock pins; {changed}{lie}",
            expected=f"hpcgen {lock.hpcgen} with the collections that the lock was made with (this is {__version__})",
            remedy="install that release (it is in the bundle), add its collections, or write the lock again with: "
            f"{lock.plan.command or 'hpcgen lock'}",
        )
    )


def _without_collections(lock: Lock, catalog: Catalog, error: HpcgenError) -> HpcgenError:
    """The error of a lock's plan, or what explains it: a collection that the lock was made with is not here."""
    missing = [name for name in lock.own_collections if name not in catalog.names_of_folders]
    if not missing:
        return error
    problems = [
        Problem(
            f"the lock was made with the collection {name}, which is not here",
            remedy="name its folder before the command: hpcgen --collection DIR …; a bundle of the lock holds it",
        )
        for name in missing
    ]
    return InputError([*problems, *error.problems])


def _packages(lock: Lock) -> list[WantedFile]:
    found = []
    for stage in lock.pins.packages.values():
        for name, pin in stage.added.items():
            file, title = pin.file(name), f"{name} {pin.version}"
            urls = [pin.url]
            found.append(WantedFile(kind="package", name=title, file=file, sha256=pin.sha256, urls=urls, size=pin.size))
    return found


def _copied(lock: Lock, catalog: Catalog, folder: Path) -> list[WantedFile]:
    """The stack's own files by what is in them, and for each entry of ``copy`` their list."""
    found = []
    for copy in lock.plan.copied:
        tree = catalog.copied.tree(lock.plan, copy)
        listed = folder / f"{copy.sha256}.list"
        listed.write_text(tree.text, encoding="utf-8")
        whole = TreeFile(f"list of {copy.to}", copy.sha256, False, listed)
        for stored, file in [(COPIED_LIST, whole), *((COPIED, each) for each in tree.files)]:
            name = file.path if file is whole else f"/{below(file.path, copy.to)}"
            urls = [file.source.absolute().as_uri()] if file.source is not None else []
            found.append(
                WantedFile(kind="copied", name=name, file=stored, sha256=file.sha256, urls=urls, size=file.bytes)
            )
    return found


PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
ARCHITECTURES = ("x86_64", "aarch64")
GLIBC = ("2.17", "2.28")
"""Old enough for every system that has one of these Pythons; the newer where a package has no wheels for the older."""
_TAG = "py3-none-any"
_OF_THE_INSTALLER = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "RECORD.jws", "RECORD.p7s")
_DATE = (1980, 1, 1, 0, 0, 0)
"""Of every file in the wheel, so that the same files are the same bytes; the oldest date that a zip can hold."""


def own_wheels(folder: Path) -> list[WantedFile]:
    """hpcgen and its dependencies, so that ``pip install --no-index --find-links`` needs nothing else.

    ``folder``: hpcgen's own wheel is written there, and must be there until it was fetched. ConflictError, FetchError,
    InputError, MissingToolError: what stands in the way, and what to do.
    """
    wheel = own_wheel(folder)
    data = wheel.read_bytes()
    own = WantedFile(
        kind="hpcgen",
        name=f"hpcgen {wheel.name.split('-')[1]}",
        file=wheel.name,
        sha256=sha256_of(data),
        urls=[wheel.absolute().as_uri()],
        size=len(data),
        licence=wheel_licence(wheel),
    )
    return [own, *dependencies(requirements_of(wheel))]


def dependencies(
    requirements: Sequence[str],
    pythons: Sequence[str] = PYTHONS,
    architectures: Sequence[str] = ARCHITECTURES,
) -> list[WantedFile]:
    """The files of everything that the requirements need, for each Python on each architecture."""
    targets = [(python, architecture) for python in pythons for architecture in architectures]
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        locked = pool.map(lambda target: _locked(requirements, *target), targets)
        lines = sorted({line for each in locked for line in each})
    return [msgspec.structs.replace(each, kind="hpcgen") for each in find_files(lines)]


def _locked(requirements: Sequence[str], python: str, architecture: str) -> list[str]:
    """Lines for one Python on one architecture, for the oldest C library that all have wheels for."""
    *older, newest = GLIBC
    for glibc in older:
        with contextlib.suppress(ConflictError):
            return lock_wheels(requirements, python, architecture, glibc)
    return lock_wheels(requirements, python, architecture, newest)


def requirements_of(wheel: Path) -> list[str]:
    """What a wheel needs, without its extras."""
    fields = email.parser.HeaderParser().parsestr(wheel_metadata(wheel))
    needs = [str(each) for each in fields.get_all("Requires-Dist", [])]
    return [need for need in needs if "extra ==" not in str(Requirement(need).marker or "")]


def own_wheel(folder: Path) -> Path:
    """The wheel of the hpcgen that runs: from the files that pip installed, or built from the checkout."""
    folder.mkdir(parents=True, exist_ok=True)
    package = _package()
    distribution = _installed(package)
    if distribution is not None:
        return rebuild(distribution, folder)
    checkout = package.parent
    if not (checkout / "pyproject.toml").is_file():
        raise InputError(
            f"hpcgen runs from {package}, which pip did not install and which is not a checkout",
            remedy="install hpcgen with pip, or pip install -e a checkout",
        )
    return _built(checkout, folder)


def rebuild(distribution: importlib.metadata.Distribution, folder: Path) -> Path:
    """The wheel that a package was installed from, put together again from its files.

    InputError: it cannot be: files are missing, or pip kept no list of them.
    """
    listing = distribution.read_text("RECORD") or ""
    files, missing = {}, []
    for row in csv.reader(listing.splitlines()):
        name = row[0] if row else ""
        if not _of_the_wheel(name):
            continue
        path = Path(str(distribution.locate_file(name)))
        if path.is_file():
            files[name] = (path.read_bytes(), os.access(path, os.X_OK))
        else:
            missing.append(name)
    name, version = distribution.metadata["Name"], distribution.version
    remedy = f"reinstall {name}: pip install --force-reinstall {name}=={version}"
    if missing:
        shown = ", ".join(missing[:5])
        raise InputError(f"the installation of {name} lacks {len(missing)} files: {shown}", remedy=remedy)
    if not files:
        raise InputError(f"the installation of {name} has no list of its files (RECORD)", remedy=remedy)
    return _write(folder / f"{name.replace('-', '_')}-{version}-{_TAG}.whl", files)


def _package() -> Path:
    """The folder of the package that runs."""
    spec = importlib.util.find_spec("hpcgen")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).resolve().parent


def _installed(package: Path) -> importlib.metadata.Distribution | None:
    """The distribution that put the running files there; None for a checkout, also an editable one."""
    try:
        distribution = importlib.metadata.distribution("hpcgen")
    except importlib.metadata.PackageNotFoundError:
        return None
    at = Path(str(distribution.locate_file("hpcgen"))).resolve()
    return distribution if at == package and not _editable(distribution) else None


def _editable(distribution: importlib.metadata.Distribution) -> bool:
    """As pip notes it: https://packaging.python.org/en/latest/specifications/direct-url/"""
    told = json.loads(distribution.read_text("direct_url.json") or "{}")
    return bool(told.get("dir_info", {}).get("editable"))


def _built(checkout: Path, folder: Path) -> Path:
    there = importlib.util.find_spec("hatchling") is not None
    into = folder / "built"
    words = ["build", "--wheel", "--quiet", "--out-dir", str(into.absolute()), str(checkout)]
    done = run_uv([*words, *(["--no-build-isolation"] if there else [])], None, folder, "build hpcgen's own wheel")
    built = sorted(into.glob("*.whl"))
    if done.returncode != 0 or len(built) != 1:
        said = " ".join(f"{done.stdout}\n{done.stderr}".split())[-600:]
        raise FetchError(
            f"hpcgen's own wheel could not be built from {checkout}: {said or 'uv made none'}",
            remedy=f"{sys.executable} -m pip install hatchling, or install hpcgen from a wheel",
        )
    with zipfile.ZipFile(built[0]) as archive:
        files = {
            entry.filename: (archive.read(entry), bool(entry.external_attr >> 16 & 0o111))
            for entry in archive.infolist()
            if not entry.is_dir() and _of_the_wheel(entry.filename)
        }
    target = _write(folder / built[0].name, files)
    shutil.rmtree(into)
    return target


def _of_the_wheel(name: str) -> bool:
    """Does an installed file come from the wheel, unchanged? Not what the installer and Python added."""
    parts = name.split("/")
    if not name or name.startswith("/") or ".." in parts or "__pycache__" in parts:
        return False
    return not (parts[0].endswith(".dist-info") and parts[-1] in _OF_THE_INSTALLER)


def _write(target: Path, files: Mapping[str, tuple[bytes, bool]]) -> Path:
    """A wheel of the files (content, executable); uncompressed, since zlib's bytes differ between its releases."""
    info = next(name.partition("/")[0] for name in files if ".dist-info/" in name)
    record = f"{info}/RECORD"
    names = sorted(files, key=lambda name: (name.startswith(f"{info}/"), name))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as wheel:
        for name in names:
            data, executable = files[name]
            wheel.writestr(_entry(name, executable), data)
        wheel.writestr(_entry(record, False), _record(files, names, record))
    return target


def _entry(name: str, executable: bool) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.create_system = 3
    entry.external_attr = (0o100755 if executable else 0o100644) << 16
    return entry


def _record(files: Mapping[str, tuple[bytes, bool]], names: Iterable[str], own: str) -> str:
    """Source: https://packaging.python.org/en/latest/specifications/recording-installed-packages/#the-record-file"""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for name in names:
        data = files[name][0]
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode("ascii")
        writer.writerow([name, f"sha256={digest}", len(data)])
    writer.writerow([own, "", ""])
    return text.getvalue()
