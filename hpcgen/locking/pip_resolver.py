"""Resolve with pip: for another Python, another architecture and another C library than this machine's.

pip reads metadata, not the wheels themselves, where the index has it. Seen with pip 23.2 and 26.3.
"""

from __future__ import annotations

import collections
import json
import os
import re
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hpcgen.errors import ConflictError, FetchError, HpcgenError, InputError, Problem
from hpcgen.locking.wheels import Request, Resolved, platforms
from hpcgen.net.package_index import PackageIndex
from hpcgen.net.pip_settings import pip_environment, pip_settings
from hpcgen.support.processes import stream

_LAST_LINES = 16
_KEPT_LINES = 2000
_LINE = 400
_NO_ANSWER = re.compile(
    r"NewConnectionError|ConnectionError|Connection ?[Rr]efused|[Tt]imed ?out|Could not fetch URL|error sending request"
    r"|SSLError|CERTIFICATE_VERIFY|dns error"
)
_PLACES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX")

# pip's --python-version chooses files for another Python, but reads markers such as python_version < "3.10" as
# those of the Python that runs it, and so leaves out what only the other one needs; and `pip install` (23.2 does)
# compares the Requires-Python of a package with the Python that runs it. This runs pip with the other's markers and
# the other's version.
PIP = """
import sys
from pip._internal.cli.main import main
from pip._internal.resolution.resolvelib import factory
from pip._vendor.packaging import markers
version, machine = sys.argv.pop(1), sys.argv.pop(1)
own = markers.default_environment
def other():
    short = ".".join(version.split(".")[:2])
    full = version if version.count(".") == 2 else version + ".0"
    return {**own(), "python_full_version": full, "python_version": short, "implementation_version": full,
        "platform_machine": machine, "sys_platform": "linux", "platform_system": "Linux", "os_name": "posix",
        "implementation_name": "cpython", "platform_python_implementation": "CPython"}
markers.default_environment = other
candidate = factory.RequiresPythonCandidate
factory.RequiresPythonCandidate = lambda info: candidate(tuple(int(part) for part in version.split(".")))
sys.exit(main(sys.argv[1:]))
"""


def resolve(request: Request) -> list[Resolved]:
    """Everything to install.

    Raises
    ------
    ConflictError, FetchError, MissingToolError: as :func:`hpcgen.locking.wheels.lock_wheels`.
    """
    with tempfile.TemporaryDirectory(prefix="hpcgen-wheels-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        sources = source_packages(request, folder)
        held = folder / "constraints.txt"
        held.write_text("".join(f"{line}\n" for line in request.constraints), "utf-8")
        words = ["--only-binary", ":all:", "--implementation", "cp", "--python-version", request.target.python]
        words += [word for platform in platforms(request.target) for word in ("--platform", platform)]
        words += ["--find-links", str(folder), "--constraint", str(held), *index_words(request)]
        found = _report(folder, request, [*words, "--", *request.sdists, *request.requirements])
        resolved = [_resolved(item) for item in found]
        return [sources.get(each.name, each) for each in resolved]


def source_packages(request: Request, folder: Path) -> dict[str, Resolved]:
    """The source packages that are asked for, by name; in ``folder`` a wheel without content stands for each.

    A resolver that works for another Python takes no source packages: it would have to run their programs. So
    their dependencies are not known, and must be asked for.
    """
    sources: dict[str, Resolved] = {}
    index = PackageIndex(request.indexes) if request.sdists else None
    problems = []
    for line in request.sdists:
        pin = Requirement(line)
        version = str(pin.specifier).removeprefix("==")
        if len(pin.specifier) != 1 or not str(pin.specifier).startswith("==") or version.endswith("*"):
            raise InputError(Problem(f"{line!r} does not say which source package", expected="name==version"))
        assert index is not None
        files = [each for each in index.files(pin.name, version) if not each.file.endswith(".whl") and each.sha256]
        if not files:
            problems.append(Problem(f"no package index has {line} as source with a sha256"))
            continue
        name = canonicalize_name(pin.name)
        chosen = min(files, key=lambda each: (not each.file.endswith(".tar.gz"), each.file))
        sources[name] = Resolved(name, version, chosen.file, chosen.sha256)
        _stand_in(folder, name, version)
    if problems:
        raise FetchError(problems)
    return sources


def index_words(request: Request) -> list[str]:
    """Options that name the indexes, where the request does."""
    if request.indexes is None:
        return []
    if not request.indexes:
        return ["--no-index"]
    first, *more = request.indexes
    return ["--index-url", first, *(word for address in more for word in ("--extra-index-url", address))]


def no_solution(program: str, request: Request, said: Sequence[str]) -> HpcgenError:
    """The resolver's last words as an error: no solution, or an index that does not answer."""
    lines = [_plain(line)[:_LINE] for line in said if line.strip()]
    # What comes before the first error is progress, and warnings of indexes that did not answer.
    first = next((number for number, line in enumerate(lines) if re.match(r"ERROR|error|  [×✗]|[×✗]", line)), 0)
    last, warnings = lines[first:], [line for line in lines[:first] if _NO_ANSWER.search(line)]
    silent = bool(warnings) and any("from versions: none" in line for line in last)
    words = "\n  ".join([*(warnings[-1:] if silent else []), *last[:_LAST_LINES]])
    target = request.target
    asked = ", ".join([*request.sdists, *request.requirements][:12])
    where = f"CPython {target.python}, {target.architecture}, glibc {target.glibc}"
    if silent or _NO_ANSWER.search(words):
        return FetchError(Problem(f"{program} could not ask a package index for {asked}:\n  {words}"))
    return ConflictError(
        Problem(
            f"{program} found no wheels for {asked} on {where}:\n  {words}",
            remedy="choose other versions; packages that exist as source only cannot be locked here",
        )
    )


def _report(folder: Path, request: Request, words: Sequence[str]) -> list[dict[str, Any]]:
    """What pip would install."""
    report = folder / "report.json"
    settings = pip_settings()
    command = [settings.python, "-c", PIP, request.target.python, request.target.architecture]
    command += ["install", "--dry-run", "--ignore-installed", "--progress-bar", "off", "--no-input", "--no-color"]
    command += ["--disable-pip-version-check", "--report", str(report), "--target", str(folder / "nowhere")]
    environment = pip_environment()
    if request.indexes is not None:
        # pip would add the indexes and folders of its own settings to those it is told.
        environment = {name: value for name, value in environment.items() if name not in _PLACES}
        environment["PIP_CONFIG_FILE"] = os.devnull
        command += ["--cert", settings.cert] if settings.cert else []
    said: collections.deque[str] = collections.deque(maxlen=_KEPT_LINES)
    if stream([*command, *words], said.append, env=environment) != 0:
        raise no_solution("pip", request, list(said))
    found: list[dict[str, Any]] = json.loads(report.read_text("utf-8"))["install"]
    return found


def _resolved(item: dict[str, Any]) -> Resolved:
    metadata, download = item["metadata"], item["download_info"]
    archive = download["archive_info"]
    # pip before 23.1 has "hash" alone: https://packaging.python.org/en/latest/specifications/direct-url/
    sha256 = archive.get("hashes", {}).get("sha256") or archive.get("hash", "").removeprefix("sha256=")
    file = download["url"].partition("#")[0].rpartition("/")[2]
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise FetchError(Problem(f"the package index gives no sha256 for {file}"))
    return Resolved(canonicalize_name(metadata["name"]), metadata["version"], file, sha256)


def _stand_in(folder: Path, name: str, version: str) -> None:
    """A wheel without content."""
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def _plain(line: str) -> str:
    """A line of a program, without colours and other control characters."""
    return "".join(c for c in re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line) if c.isprintable())
