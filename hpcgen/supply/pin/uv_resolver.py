"""Resolve with uv, and choose from the files of each version the one that pip would install.

Source: https://docs.astral.sh/uv/reference/cli/#uv-pip-compile. Seen with uv 0.13.8 and 0.13.9.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

import msgspec
from packaging.requirements import Requirement

from hpcgen.core.errors import ConflictError, FetchError, HpcgenError, InputError, Problem, Problems
from hpcgen.core.support.extras import extra
from hpcgen.core.support.leftovers import scratch_folder
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.wheel_tags import WheelTarget, best_wheel
from hpcgen.readers.locked import file_name
from hpcgen.supply.net.package_index import PackageIndex
from hpcgen.supply.net.pip_settings import named_folders, pip_settings
from hpcgen.supply.pin.source_metadata import SourcePackage
from hpcgen.supply.pin.source_offers import SourceOffers, searched_in_vain, stand_in

ARCHITECTURES = ("x86_64", "aarch64")
"""Those that uv has platforms for."""
_LOCAL = "provided"
"""The local part of versions that stand for packages which come another way."""
_GLIBC = (40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 28, 17)
"""The versions of glibc 2 for which uv has a platform."""
_LIMIT_S = 900
_FINDING = threading.Lock()
_ROUNDS = 60
_OF_ITS_WORK = ("DEBUG ", "TRACE ", "INFO ", "WARN ", "warning: ")
_LAST_LINES = 16
_LINE = 400
_NO_ANSWER = re.compile(r"Failed to fetch|error sending request|[Tt]imed ?out|dns error|invalid peer certificate")
_OWN = (
    *("UV_INDEX", "UV_NO_INDEX", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"),
    *("UV_CONSTRAINT", "UV_OVERRIDE", "UV_OFFLINE"),
)
"""Beginnings of variables that would change what is resolved; the indexes are pip's, for uv as for pip."""


class Request(msgspec.Struct, frozen=True):
    """What is to be resolved.

    sdists: ``name==version`` of packages that are taken as source; what they need must be asked for.
    constraints: ``name==version`` of packages that are there already, if they are needed.
    indexes: addresses of simple indexes, instead of those of pip's settings.
    provided: ``name==version`` of packages that come another way, and what they require of the others.
    preferred: ``name==version`` of what is taken wherever it can be.
    subject: what messages say was asked for, where that is not all of the requirements.
    sources: whether a package is taken as source where no version that fits has a wheel: never, if nothing of it has
        to be compiled, or in any case.
    """

    target: WheelTarget
    requirements: tuple[str, ...]
    sdists: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    indexes: tuple[str, ...] | None = None
    provided: tuple[tuple[str, tuple[str, ...]], ...] = ()
    preferred: tuple[str, ...] = ()
    subject: tuple[str, ...] = ()
    sources: Literal["", "pure", "any"] = ""


class Resolved(msgspec.Struct, frozen=True):
    """One package: the normalised name, the version, the file that would be installed, and what was read of it where
    that is a source package which nobody asked for as such.
    """

    name: str
    version: str
    file: str
    sha256: str
    source: SourcePackage | None = None

    @property
    def line(self) -> str:
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"


def resolve(request: Request) -> list[Resolved]:
    """Everything to install.

    ConflictError, FetchError, MissingToolError: as :func:`hpcgen.supply.pin.wheels.lock_wheels`.
    """
    with scratch_folder("hpcgen-wheels-") as folder:
        index = PackageIndex(request.indexes)
        sources = _source_packages(request, index, folder)
        found, offers = _solved(request, index, folder, _tells_wheels(request, index))
    for each in found:
        if (offer := offers.of(each.name, each.version)) is not None:
            sources[each.name] = Resolved(each.name, each.version, offer.file.file, offer.sha256, offer.read)
    with ThreadPoolExecutor(8) as pool:
        wheels = [each for each in found if each.name not in sources]
        chosen = list(pool.map(lambda each: _chosen(each, index, request.target), wheels))
    Problems(each for each in chosen if isinstance(each, Problem)).raise_as(FetchError)
    return [*sources.values(), *(each for each in chosen if isinstance(each, Resolved))]


def joint_versions(request: Request) -> dict[str, str]:
    """The version of everything that a solution has, by normal name; errors as :func:`resolve`."""
    with scratch_folder("hpcgen-wheels-") as folder:
        found, _ = _solved(request, PackageIndex(request.indexes), folder, False)
        return {each.name: each.version for each in found}


class NoSolution(ConflictError):
    """uv found none; ``lacking`` are the ranges of packages by name in which it missed wheels."""

    lacking: Mapping[str, Sequence[str]] = {}


def _solved(request: Request, index: PackageIndex, folder: Path, files: bool) -> tuple[list[_Found], SourceOffers]:
    """uv's answer, asked again as often as packages without wheels stand in its way.

    Where wheels alone have an answer, nothing is compiled for another one.
    """
    none, offers = (SourceOffers(request.target, request.requirements, index, folder) for _ in range(2))
    plain: list[_Found] | None = None
    failures: list[NoSolution] = []
    for number in range(_ROUNDS):
        try:
            found, lacking = _compiled(request, folder, files)
        except NoSolution as failure:
            failures.append(failure)
            if request.sources and offers.within(failure.lacking):
                continue
            break
        plain = found if number == 0 else plain
        if request.sources and (offers.within(lacking) or offers.read((each.name, each.version) for each in found)):
            continue
        built = {each.name: offer for each in found if (offer := offers.of(each.name, each.version)) is not None}
        compiled = any(each.read is not None and each.read.compiled for each in built.values())
        if any(name in built for name, _ in offers.refused):
            failures = []
            break
        if not compiled or (plain is None and request.sources == "any"):
            return found, offers
        break
    if plain is not None:
        return plain, none
    raise (_refused(failures[-1:], offers) if offers.refused else failures[-1]) from None


def _refused(failures: Sequence[ConflictError], offers: SourceOffers) -> ConflictError:
    """The failures, and why source packages were no way out."""
    told = [
        Problem(
            f"{name} {version} has no wheel for this Python, and its source package must be run "
            f"to find its requirements: {why}",
            remedy=f"choose a version of it with wheels, or write {name} @ git+https://…@COMMIT, which is built as it "
            "is, and a line for each package that it requires",
        )
        for (name, version), why in offers.refused.items()
    ]
    return ConflictError([*(problem for each in failures for problem in each.problems), *told])


def run_uv(
    words: Sequence[str], indexes: Sequence[str] | None, folder: Path, purpose: str
) -> subprocess.CompletedProcess[str]:
    """Run uv in a folder with pip's indexes, folders and certificates, or with the given indexes alone."""
    command = [_uv(purpose), *words, "--no-config", "--python", sys.executable, *_index_words(indexes)]
    environment = _environment(os.environ)
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=_LIMIT_S)


def _uv(purpose: str) -> str:
    """The uv of the extra, or one on PATH.

    One thread at a time: while Python's sysconfig is first asked in one, it tells others that names have no value
    (up to 3.12), and ``find_uv_bin`` puts such a name together.
    """
    with _FINDING, extra("lock", purpose):
        try:
            from uv import find_uv_bin

            return str(find_uv_bin())
        except (ImportError, FileNotFoundError):
            if (found := shutil.which("uv")) is None:
                raise ImportError(name="uv") from None
            return found


def _source_packages(request: Request, index: PackageIndex, folder: Path) -> dict[str, Resolved]:
    """The source packages that are asked for, by name; in ``folder`` a wheel without content stands for each.

    A resolver that works for another Python takes no source packages: it would have to run their programs. So
    their dependencies are not known, and must be asked for.
    """
    sources: dict[str, Resolved] = {}
    problems = Problems()
    for line in request.sdists:
        pin = Requirement(line)
        version = str(pin.specifier).removeprefix("==")
        if len(pin.specifier) != 1 or not str(pin.specifier).startswith("==") or version.endswith("*"):
            raise InputError(f"{line!r} does not say which source package", expected="name==version")
        files = [each for each in index.files(pin.name, version) if not each.file.endswith(".whl") and each.sha256]
        if not files:
            problems.add(
                f"no package index has {line} as source with a sha256",
                remedy="name another version, or an index that has it: network.mirrors.pip of the profile",
            )
            continue
        name = normal_name(pin.name)
        chosen = min(files, key=lambda each: (not each.file.endswith(".tar.gz"), each.file))
        sources[name] = Resolved(name, version, chosen.file, chosen.sha256)
        stand_in(folder, name, version, ())
    problems.raise_as(FetchError)
    return sources


class _Found(NamedTuple):
    """A package of uv's answer, with the sha256 of its wheels by their names where uv tells all of a remote index."""

    name: str
    version: str
    wheels: Mapping[str, str]


def _tells_wheels(request: Request, index: PackageIndex) -> bool:
    """Whether uv's answer has every wheel of the one remote index that pip would choose from, for this C library."""
    return len(index.remote) == 1 and request.target.newest in _GLIBC


def _compiled(request: Request, folder: Path, files: bool) -> tuple[list[_Found], dict[str, list[str]]]:
    """uv's answer: every package with its version, and with ``files`` the wheels that run there; and the ranges of
    packages by name in which it found no wheel.

    To read the pages of a remote index once more for these takes several times as long as all that uv does.
    """
    asked, held = folder / "asked.in", folder / "held.in"
    listing = folder / ("pylock.toml" if files else "listing.txt")
    asked.write_text("".join(f"{line}\n" for line in (*request.sdists, *request.requirements)), "utf-8")
    provided = dict(_provide(request, folder))
    held.write_text("".join(f"{line}\n" for line in (*request.constraints, *provided.values())), "utf-8")
    listing.unlink(missing_ok=True)
    if request.preferred:
        # uv takes the versions of a file that is there already wherever it can.
        listing.write_text("".join(f"{line}\n" for line in request.preferred), "utf-8")
    words = ["pip", "compile", str(asked), "--constraints", str(held), "--output-file", str(listing)]
    words += ["--format", "pylock.toml"] if files else []
    words += ["--verbose", "--no-header", "--no-annotate", "--find-links", str(folder)]
    words += ["--python-version", request.target.python, "--python-platform", _platform(request.target)]
    words += ["--only-binary", ":all:", "--index-strategy", "unsafe-best-match"]
    done = run_uv(words, request.indexes, folder, "lock wheels")
    said = [_plain(line) for line in (done.stderr or done.stdout).splitlines()]
    lacking = searched_in_vain(said)
    if done.returncode != 0:
        # Before that it tells of its work, also of requests that it sent again.
        start = next((number for number, line in enumerate(said) if re.match(r"\s*(error\b|×)", line)), 0)
        told = [each for each in said[start:] if not each.startswith(_OF_ITS_WORK)]
        raise _no_solution(request, told, lacking)
    if files:
        found = [_found(each) for each in tomllib.loads(listing.read_text("utf-8")).get("packages", [])]
    else:
        pins = re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", listing.read_text("utf-8"), re.MULTILINE)
        found = [_Found(normal_name(name), version, {}) for name, version in pins]
    return [each for each in found if each.name not in provided], lacking


def _provide(request: Request, folder: Path) -> Iterator[tuple[str, str]]:
    """Wheels without content for what comes another way, each by name with the line that holds it to this wheel.

    No index has a version with such a local part, so none of its files, and nothing that these require, is taken.
    """
    for line, needs in request.provided:
        name, _, version = line.partition("==")
        local = f"{version.partition('+')[0]}+{_LOCAL}"
        stand_in(folder, name, local, needs)
        yield normal_name(name), f"{name}=={local}"


def _found(package: Mapping[str, Any]) -> _Found:
    """A package of a pylock.toml that uv wrote; without wheels where they are of this machine, or lack a hash."""
    wheels = [(each.get("url", ""), each.get("hashes", {}).get("sha256", "")) for each in package.get("wheels", [])]
    whole = all(url.startswith("https:") and sha256 for url, sha256 in wheels)
    by_file = {file_name(url): sha256 for url, sha256 in wheels} if whole else {}
    return _Found(normal_name(package["name"]), package["version"], by_file)


def _chosen(found: _Found, index: PackageIndex, target: WheelTarget) -> Resolved | Problem:
    """The file that pip would take from all indexes together."""
    name, version = found.name, found.version
    files = [each for each in index.files(name, version, remote=not found.wheels) if each.file.endswith(".whl")]
    # pip takes a file that was withdrawn only if there is no other.
    files = [each for each in files if not each.yanked] or files
    by_file = {each.file: each for each in files}
    best = best_wheel({*by_file, *found.wheels}, target)
    if best is not None and best in found.wheels:
        return Resolved(name, version, best, found.wheels[best])
    sha256 = best and (by_file[best].sha256 or index.own_hash(by_file[best]))
    if not best or not sha256:
        return Problem(
            f"no package index has a wheel of {name} {version} for this Python with a sha256",
            remedy="choose another version of it or of Python, or an index that has it",
        )
    return Resolved(name, version, best, sha256)


def _index_words(indexes: Sequence[str] | None) -> list[str]:
    """uv does not read pip's settings, so it is told what they say.

    Of two indexes that have a version, uv tells the files of the one that comes first, and the default index is the
    last. Those of this machine come last: their files are looked at anyway, a remote index's pages would be asked for.
    """
    links = named_folders() if indexes is not None else (*named_folders(), *pip_settings().links)
    indexes = indexes if indexes is not None else pip_settings().indexes
    words = [word for link in links for word in ("--find-links", link)]
    if not indexes:
        return [*words, "--no-index"]
    *before, last = sorted(indexes, key=lambda address: address.startswith("file:"))
    return [*words, *(word for address in before for word in ("--index", address)), "--default-index", last]


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    environment = {name: value for name, value in own.items() if not name.startswith(_OWN)}
    if certificates := own.get("PIP_CERT") or own.get("REQUESTS_CA_BUNDLE") or pip_settings().cert:
        environment.setdefault("SSL_CERT_DIR" if Path(certificates).is_dir() else "SSL_CERT_FILE", certificates)
    # Not uv's own certificate authorities but the machine's, as everywhere else; before 0.10 it is called NATIVE_TLS.
    return {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1", **environment, "UV_PYTHON_DOWNLOADS": "never"}


def _platform(target: WheelTarget) -> str:
    """uv's name for the target, for the newest glibc that is not newer."""
    minor = next((minor for minor in _GLIBC if minor <= target.newest), _GLIBC[-1])
    return f"{target.architecture}-manylinux_2_{minor}"


def _no_solution(request: Request, said: Sequence[str], lacking: dict[str, list[str]]) -> HpcgenError:
    """uv's last words as an error: no solution, or an index that does not answer."""
    lines = [line[:_LINE] for line in said if line.strip()]
    words = "\n  ".join(lines[:_LAST_LINES])
    every = (*request.sdists, *(request.subject or request.requirements))
    # Only those that are part of it, if uv names any.
    told = {normal_name(word) for word in re.findall(r"[A-Za-z0-9][A-Za-z0-9._-]*", words)}
    part = [line for line in every if normal_name(Requirement(line).name) in told]
    asked = ", ".join((part or every)[:12])
    if _NO_ANSWER.search(words):
        return FetchError(
            f"uv could not query a package index for {asked}:\n  {words}",
            remedy="try again; behind a proxy or with an index of your own: docs/mirrors.md",
        )
    target = request.target
    where = f"CPython {target.python}, {target.architecture}, glibc {target.glibc}"
    remedy = "choose other versions"
    remedy += "" if request.sources else "; packages that exist only as source are not taken here"
    failure = NoSolution(f"uv found no wheels for {asked} on {where}:\n  {words}", remedy=remedy)
    named = re.findall(r"Wheels are required for `([A-Za-z0-9._-]+)`", "\n".join(said))
    failure.lacking = {**{normal_name(name): ["*"] for name in named}, **lacking}
    return failure


def _plain(line: str) -> str:
    """A line of a program, without colours and other control characters."""
    return "".join(c for c in re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line) if c.isprintable())
