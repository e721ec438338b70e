"""pip's own settings: the indexes, folders and certificates that this machine's pip uses.

pip itself is asked, so that its files, variables and defaults count exactly as they do for ``pip download``. Indexes
are places of one machine and never written to a lock.
Source: https://pip.pypa.io/en/stable/topics/configuration/, and pip's module ``_internal.commands``, as pip 22.2, 23.2,
24.2 and 26.3 have it.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys

import msgspec

from hpcgen.errors import InputError, MissingToolError, Problem

_TIMEOUT_S = 60
OLDEST = (22, 2)
"""pip's ``--dry-run`` and ``--report`` came with this version: https://pip.pypa.io/en/stable/news/#v22-2."""

_QUERY = """
import json, sys
import pip
version = [int(part) for part in pip.__version__.split(".")[:2] if part.isdigit()]
from pip._internal.commands import create_command
options, _ = create_command("download").parse_args([])
indexes = [] if options.no_index else [options.index_url, *options.extra_index_urls]
json.dump({"version": version, "indexes": indexes, "links": options.find_links, "cert": options.cert or ""}, sys.stdout)
"""


class PipSettings(msgspec.Struct, frozen=True):
    """What a pip uses.

    Parameters
    ----------
    python: the interpreter that has this pip.
    indexes: addresses of simple indexes, in pip's order.
    links: folders, files and pages with links to packages.
    cert: a file or folder with certificate authorities, or nothing.
    """

    python: str
    version: tuple[int, ...]
    indexes: tuple[str, ...]
    links: tuple[str, ...]
    cert: str


def pip_environment() -> dict[str, str]:
    """This process's environment, for a Python that takes no module from the folder it is started in (3.11)."""
    return {**os.environ, "PYTHONSAFEPATH": "1"}


@functools.cache
def pip_settings() -> PipSettings:
    """The settings of the pip beside hpcgen, or of the first Python on PATH that has one.

    Raises
    ------
    MissingToolError: there is no pip of 22.2 or later.
    InputError: pip cannot read its own configuration.
    """
    seen = []
    for python in _pythons():
        done = subprocess.run(
            [python, "-c", _QUERY], capture_output=True, text=True, timeout=_TIMEOUT_S, env=pip_environment()
        )
        if done.returncode == 0:
            found = json.loads(done.stdout)
            version = tuple(found["version"])
            if version >= OLDEST:
                strings = {name: tuple(str(word) for word in found[name]) for name in ("indexes", "links")}
                return PipSettings(python, version, strings["indexes"], strings["links"], str(found["cert"]))
            seen.append(f"{python} has pip {'.'.join(map(str, version))}")
        elif "No module named" in done.stderr:
            seen.append(f"{python} has no pip")
        else:
            said = " ".join((done.stderr or done.stdout).split())[-300:]
            raise InputError(Problem(f"pip of {python} cannot say what its indexes are: {said}", remedy="mend pip"))
    raise MissingToolError(
        Problem(
            f"pip is needed to find Python packages: {'; '.join(seen)}",
            expected="pip 22.2 or later",
            remedy=f"{sys.executable} -m ensurepip --upgrade, or python3 -m pip install --upgrade pip",
        )
    )


def _pythons() -> list[str]:
    """Interpreters whose pip may be asked: hpcgen's own first, since its environment's pip.conf is the nearest."""
    names = [sys.executable, shutil.which("python3"), shutil.which("python")]
    return list(dict.fromkeys(name for name in names if name))
