"""Resolve with uv, and choose from the files of each version the one that pip would install.

Source: https://docs.astral.sh/uv/reference/cli/#uv-pip-compile. Seen with uv 0.13.8.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from packaging.utils import canonicalize_name

from hpcgen.errors import FetchError, Problem
from hpcgen.locking.pip_resolver import no_solution, source_packages
from hpcgen.locking.wheels import Request, Resolved, Target, best_wheel
from hpcgen.net.package_index import PackageIndex

_GLIBC = (40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 28, 17)
"""The versions of glibc 2 for which uv has a platform."""
_OLDEST_PYTHON = (3, 8)
_LIMIT_S = 900
_OWN = ("UV_INDEX", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_CONSTRAINT", "UV_OVERRIDE")
"""Beginnings of variables that would change what is resolved; the indexes are pip's, for uv as for pip."""


def suits(request: Request) -> bool:
    """Is uv installed, and does it know this Python and this platform?"""
    return (
        shutil.which("uv") is not None and request.target.release >= _OLDEST_PYTHON and bool(_platform(request.target))
    )


def resolve(request: Request) -> list[Resolved]:
    """Everything to install.

    Raises
    ------
    ConflictError, FetchError, MissingToolError: as :func:`hpcgen.locking.wheels.lock_wheels`.
    """
    with tempfile.TemporaryDirectory(prefix="hpcgen-wheels-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        sources = source_packages(request, folder)
        versions = _compiled(request, folder)
    index = PackageIndex(request.indexes)
    with ThreadPoolExecutor(8) as pool:
        wheels = [(name, version) for name, version in versions.items() if name not in sources]
        chosen = list(pool.map(lambda pin: _chosen(pin[0], pin[1], index, request.target), wheels))
    problems = [each for each in chosen if isinstance(each, Problem)]
    if problems:
        raise FetchError(problems)
    return [*sources.values(), *(each for each in chosen if isinstance(each, Resolved))]


def _compiled(request: Request, folder: Path) -> dict[str, str]:
    """uv's list: every package with its version. Its hashes are not asked for: they are those of one index alone."""
    asked, held, listing = folder / "asked.in", folder / "held.in", folder / "listing.txt"
    asked.write_text("".join(f"{line}\n" for line in (*request.sdists, *request.requirements)), "utf-8")
    held.write_text("".join(f"{line}\n" for line in request.constraints), "utf-8")
    command = ["uv", "pip", "compile", str(asked), "--constraints", str(held), "--output-file", str(listing)]
    command += ["--quiet", "--no-config", "--no-header", "--no-annotate", "--python", sys.executable]
    command += ["--python-version", request.target.python, "--python-platform", _platform(request.target)]
    command += ["--only-binary", ":all:", "--index-strategy", "unsafe-best-match"]
    command += ["--find-links", str(folder), *_index_words(request)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=_environment(os.environ), timeout=_LIMIT_S
    )
    if done.returncode != 0:
        raise no_solution("uv", request, (done.stderr or done.stdout).splitlines())
    pins = re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", listing.read_text("utf-8"), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


def _chosen(name: str, version: str, index: PackageIndex, target: Target) -> Resolved | Problem:
    """The file that pip would take from all indexes together."""
    files = [each for each in index.files(name, version) if each.file.endswith(".whl")]
    # pip takes a file that was withdrawn only if there is no other.
    files = [each for each in files if not each.yanked] or files
    by_file = {each.file: each for each in files}
    best = best_wheel(by_file, target)
    sha256 = best and (by_file[best].sha256 or index.own_hash(by_file[best]))
    if not best or not sha256:
        return Problem(f"no package index has a wheel of {name} {version} for this Python with a sha256")
    return Resolved(name, version, best, sha256)


def _index_words(request: Request) -> list[str]:
    """uv does not read pip's settings, so it is told what they say."""
    links: tuple[str, ...] = ()
    indexes = request.indexes
    if indexes is None:
        from hpcgen.net.pip_settings import pip_settings

        settings = pip_settings()
        indexes, links = settings.indexes, settings.links
    words = [word for link in links for word in ("--find-links", link)]
    if not indexes:
        return [*words, "--no-index"]
    first, *more = indexes
    return [*words, "--default-index", first, *(word for address in more for word in ("--index", address))]


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    environment = {name: value for name, value in own.items() if not name.startswith(_OWN)}
    if certificates := own.get("PIP_CERT") or own.get("REQUESTS_CA_BUNDLE"):
        environment.setdefault("SSL_CERT_FILE", certificates)
    return {**environment, "UV_PYTHON_DOWNLOADS": "never"}


def _platform(target: Target) -> str:
    """uv's name for the target, for the newest glibc that is not newer; empty if it has none."""
    minor = next((minor for minor in _GLIBC if minor <= target.newest), None)
    known = target.architecture in ("x86_64", "aarch64") and minor is not None
    return f"{target.architecture}-manylinux_2_{minor}" if known else ""
