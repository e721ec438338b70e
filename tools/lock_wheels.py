#!/usr/bin/env python3
"""Write a hashed wheel list: exact versions with their sha256, complete with every dependency.

    tools/lock_wheels.py --python 3.10.12 tensorflow-cpu-2.15.1 'tensorflow-cpu==2.15.1' 'setuptools<81'

asks pip what it would install for that Python on Linux x86_64 and writes
building_blocks/wheels/tensorflow-cpu-2.15.1-cp310.txt. pip reads metadata, not the wheels themselves, where the
index has it; the index is pip's own configuration, and its address is never written. Known to work with pip 26.3.
Exit status 1 if pip finds no solution.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WHEELS = Path(__file__).resolve().parent.parent / "building_blocks" / "wheels"
# The oldest C library that the distributions with this Python have: Ubuntu 18.04 has 2.27, but manylinux has
# no name between 2.17 and 2.28 that projects use.
GLIBC = {"3.6": 17}
OTHER_GLIBC = 28

# pip's --python-version chooses files for another Python, but reads markers such as python_version < "3.10" as
# those of the Python that runs it, and so leaves out what only the other one needs. This runs pip with the
# other's markers.
PIP = """
import sys
from pip._internal.cli.main import main
from pip._vendor.packaging import markers
version = sys.argv.pop(1)
own = markers.default_environment
def other():
    short = ".".join(version.split(".")[:2])
    return {**own(), "python_full_version": version, "python_version": short, "platform_machine": "x86_64"}
markers.default_environment = other
sys.exit(main(sys.argv[1:]))
"""


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, metavar="X.Y.Z", help="exact version of CPython")
    parser.add_argument("--sdist", action="append", default=[], metavar="NAME==X", help="take this one as source")
    parser.add_argument("--every-python", action="store_true", help="the list is the same for every Python: no -cpXY")
    parser.add_argument("--into", type=Path, default=WHEELS, metavar="DIR", help="where the list is written")
    parser.add_argument("name", help="name of the list, without -cpXY.txt")
    parser.add_argument("requirements", nargs="+", help="requirements, and ranges that hold versions back")
    return parser.parse_args(argv)


def platforms(python: str) -> list[str]:
    """pip's platform options: every manylinux that the distributions with this Python run."""
    newest = GLIBC.get(".".join(python.split(".")[:2]), OTHER_GLIBC)
    names = [f"manylinux_2_{minor}_x86_64" for minor in range(newest, 4, -1)]
    names += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"]
    return [word for name in names for word in ("--platform", name)]


def pip_report(folder: str, python: str, words: Sequence[str]) -> list[dict[str, Any]]:
    """What pip would install; raises CalledProcessError if there is no solution."""
    target = Path(folder, "report.json")
    command = [sys.executable, "-c", PIP, python, "install", "--dry-run", "--ignore-installed", "--quiet"]
    command += ["--report", str(target), "--target", str(Path(folder, "nowhere"))]
    subprocess.run([*command, *words], check=True)
    found: list[dict[str, Any]] = json.loads(target.read_text("utf-8"))["install"]
    return found


def stand_in(folder: str, item: dict[str, Any]) -> None:
    """A wheel without content for a package that exists as source only, so that pip can resolve the rest.

    pip takes no source packages while it resolves for another Python.
    """
    name, version = item["metadata"]["name"], item["metadata"]["version"]
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    with zipfile.ZipFile(Path(folder, f"{name.replace('-', '_')}-{version}-py3-none-any.whl"), "w") as wheel:
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def resolve(python: str, sdists: Sequence[str], requirements: Sequence[str]) -> list[dict[str, Any]]:
    """Everything to install; source packages are taken without their dependencies, which must be asked for."""
    with tempfile.TemporaryDirectory() as folder:
        sources: dict[str, dict[str, Any]] = {}
        for requirement in sdists:
            for item in pip_report(folder, python, ["--no-deps", "--no-binary", ":all:", requirement]):
                sources[item["metadata"]["name"]] = item
                stand_in(folder, item)
        words = ["--only-binary", ":all:", "--implementation", "cp", "--python-version", python]
        words += [*platforms(python), "--find-links", folder, *sdists, *requirements]
        found = pip_report(folder, python, words)
        return [sources.get(item["metadata"]["name"], item) for item in found]


def lines(found: Sequence[dict[str, Any]]) -> list[str]:
    """Requirement lines with a hash each, sorted by normalised name."""
    result = {}
    for item in found:
        metadata = item["metadata"]
        name = re.sub(r"[-_.]+", "-", metadata["name"]).lower()
        sha256 = item["download_info"]["archive_info"]["hashes"]["sha256"]
        result[name] = f"{name}=={metadata['version']} --hash=sha256:{sha256}"
    return [result[name] for name in sorted(result)]


def bound_to_one_python(found: Sequence[dict[str, Any]]) -> list[str]:
    """Wheels of a report that other Pythons cannot install: those with compiled parts and no stable interface."""
    names = [item["download_info"]["url"].rsplit("/", 1)[-1] for item in found]
    return [name for name in names if name.endswith(".whl") and not re.search(r"-(py3|py2\.py3|cp\d+-abi3)-", name)]


def main(argv: Sequence[str] | None = None) -> int:
    """Write one list; returns the exit status."""
    args = arguments(argv)
    try:
        found = resolve(args.python, args.sdist, args.requirements)
    except subprocess.CalledProcessError as error:
        print(f"pip found no solution (status {error.returncode})", file=sys.stderr)
        return 1
    bound = bound_to_one_python(found) if args.every_python else []
    if bound:
        print(f"not for every Python: {', '.join(bound)}; leave --every-python out", file=sys.stderr)
        return 1
    major, minor = args.python.split(".")[:2]
    words = ["--python", args.python, *(["--every-python"] if args.every_python else [])]
    for name in args.sdist:
        words += ["--sdist", name]
    words += [args.name, *args.requirements]
    which = "any" if args.every_python else f"{major}.{minor}"
    header = [
        f"# CPython {which}, Linux x86_64: every package that pip installs, with its sha256.",
        f"# tools/lock_wheels.py {shlex.join(words)}",
    ]
    suffix = "" if args.every_python else f"-cp{major}{minor}"
    target = args.into / f"{args.name}{suffix}.txt"
    target.write_text("\n".join([*header, *lines(found)]) + "\n", "utf-8")
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
