#!/usr/bin/env python3
"""Write a hashed wheel list: exact versions with their sha256, complete with every dependency.

    tools/lock_wheels.py --python 3.10.12 tensorflow-cpu-2.15.1 'tensorflow-cpu==2.15.1' 'setuptools<81'

asks uv what those need for that Python on Linux x86_64 and writes
building_blocks/wheels/tensorflow-cpu-2.15.1-cp310.txt. uv reads metadata, not the wheels themselves, where the
index has it; the index is that of pip's own configuration, and its address is never written. Needs the extra ``lock``.
Exit status 1 if uv finds no solution. ``--into DIR`` writes the list into a collection of your own, which may be new.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from hpcgen.errors import HpcgenError  # noqa: E402
from hpcgen.locking.uv_resolver import Request, Resolved  # noqa: E402
from hpcgen.locking.wheel_targets import WheelTarget  # noqa: E402
from hpcgen.locking.wheels import resolve  # noqa: E402
from hpcgen.support.writing import write_file  # noqa: E402

WHEELS = ROOT / "building_blocks" / "wheels"
# The oldest C library that the distributions with this Python have: Ubuntu 18.04 has 2.27, but manylinux has
# no name between 2.17 and 2.28 that projects use.
GLIBC = {"3.6": "2.17"}
OTHER_GLIBC = "2.28"


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--python", required=True, type=python_version, metavar="X.Y.Z", help="exact version of CPython"
    )
    parser.add_argument(
        "--glibc", metavar="X.Y", help="the C library of the oldest base it is for, if newer than usual"
    )
    parser.add_argument("--sdist", action="append", default=[], metavar="NAME==X", help="take this one as source")
    parser.add_argument("--every-python", action="store_true", help="the list is the same for every Python: no -cpXY")
    parser.add_argument("--into", type=Path, default=WHEELS, metavar="DIR", help="where the list is written")
    parser.add_argument("name", help="name of the list, without -cpXY.txt")
    parser.add_argument("requirements", nargs="+", help="requirements, and ranges that hold versions back")
    return parser.parse_args(argv)


def python_version(text: str) -> str:
    """The version of a CPython, whose number has at least two parts."""
    if not re.fullmatch(r"\d+(\.\d+){1,2}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a version such as 3.12.3")
    return text


def resolved(python: str, sdists: Sequence[str], requirements: Sequence[str], glibc: str = "") -> list[Resolved]:
    """Everything to install; source packages are taken without their dependencies, which must be asked for."""
    glibc = glibc or GLIBC.get(".".join(python.split(".")[:2]), OTHER_GLIBC)
    request = Request(WheelTarget(python, "x86_64", glibc), tuple(requirements), tuple(sdists))
    return resolve(request)


def bound_to_one_python(found: Sequence[Resolved]) -> list[str]:
    """Wheels that other Pythons cannot install: those with compiled parts and no stable interface."""
    names = [item.file for item in found]
    return [name for name in names if name.endswith(".whl") and not re.search(r"-(py3|py2\.py3|cp\d+-abi3)-", name)]


def main(argv: Sequence[str] | None = None) -> int:
    """Write one list; returns the exit status."""
    args = arguments(argv)
    try:
        return write_list(args)
    except HpcgenError as error:
        print(error, file=sys.stderr)
        return 1


def write_list(args: argparse.Namespace) -> int:
    """Resolve, and write the list, in a folder that is made if it is not there."""
    found = resolved(args.python, args.sdist, args.requirements, args.glibc or "")
    bound = bound_to_one_python(found) if args.every_python else []
    if bound:
        print(f"not for every Python: {', '.join(bound)}; leave --every-python out", file=sys.stderr)
        return 1
    major, minor = args.python.split(".")[:2]
    words = ["--python", args.python, *(["--every-python"] if args.every_python else [])]
    words += ["--glibc", args.glibc] if args.glibc else []
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
    write_file(target, "\n".join([*header, *(item.line for item in found)]) + "\n", folders=True)
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
