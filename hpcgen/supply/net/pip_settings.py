"""pip's own settings: the indexes, folders and certificates that this machine's pip uses.

pip itself is asked, so that its files and variables count as they do for ``pip download``. Indexes are places of one
machine and never written to a lock.
Source: https://pip.pypa.io/en/stable/topics/configuration/ and …/cli/pip_config/. Seen with pip 20.3 to 26.3.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hpcgen.core.errors import InputError, MissingToolError, Problems
from hpcgen.core.support.processes import NOT_HERE

_TIMEOUT_S = 600
_SETTING = re.compile(r"(:env:|download|global)\.([a-z-]+)=(.+)")
_DEFAULT_INDEX = re.compile(r"Base URL of the Python Package Index \(default\s+(\S+?)\)")
# pip takes long to start, so it starts once. What its command line loads besides takes as long again, and since 25.3
# ``config list`` sorts by the names of files, and so does not tell which of two counts. It is asked where pip keeps its
# settings elsewhere, and says what is wrong with them; the help of ``list``, which loads least, has the default index
# too, which its own section of the settings must not change.
_PROGRAM = """
import os, runpy
try:
    from pip._internal.configuration import Configuration
    from pip._internal.models.index import PyPI
    settings = Configuration(isolated=False)
    settings.load()
    values = {}
    for name, value in settings.items():
        # Since 25.3 a file with its values, in the order in which they count.
        values.update(value if isinstance(value, dict) else {name: value})
    lines = [f"{name}={value!r}" for name, value in values.items()]
    lines.append(f"Base URL of the Python Package Index (default {PyPI.simple_url})")
except Exception:
    for words in (["config", "list"], ["list", "--help"]):
        sys.argv = ["pip", "--disable-pip-version-check", *words]
        try:
            runpy.run_module("pip", run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise
        os.environ["PIP_CONFIG_FILE"] = os.devnull
else:
    print(*lines, sep="\\n")
"""


class PipSettings(msgspec.Struct, frozen=True):
    """What a pip uses.

    indexes: addresses of simple indexes, in pip's order.
    links: folders, files and pages with links to packages.
    cert: a file or folder with certificate authorities, or nothing.
    """

    indexes: tuple[str, ...]
    links: tuple[str, ...]
    cert: str


_FOLDERS: list[str] = []


def look_in(folders: Sequence[Path]) -> None:
    """Have folders of packages looked at as well, whatever index is asked, until other ones are named.

    Raises
    ------
    InputError: with all that are no folders.
    """
    problems = Problems()
    for each in folders:
        if not each.is_dir():
            problems.add(f"{each} is not a folder", "--wheel-dir", "a folder with .whl files")
    problems.raise_as(InputError)
    _FOLDERS[:] = [str(each.absolute()) for each in folders]


def named_folders() -> tuple[str, ...]:
    """What :func:`look_in` was told."""
    return tuple(_FOLDERS)


@functools.cache
def pip_settings() -> PipSettings:
    """The settings of the pip beside hpcgen, or of the first Python on PATH that has one.

    MissingToolError: there is no pip. InputError: pip cannot read its own configuration, or does not end.
    """
    # hpcgen's own Python first, since its environment's pip.conf is the nearest.
    names = [sys.executable, shutil.which("python3"), shutil.which("python")]
    pythons = list(dict.fromkeys(name for name in names if name))
    for python in pythons:
        done = _pip(python)
        if done.returncode == 0:
            return _settings(python, done.stdout)
        if "No module named" not in done.stderr:
            said = " ".join((done.stderr or done.stdout).split())[-300:]
            raise InputError(f"pip of {python} cannot list its indexes: {said}", remedy="mend pip")
    raise MissingToolError(
        f"pip is needed to find out which package indexes this machine uses; {' and '.join(pythons)} have none",
        remedy=f"{sys.executable} -m ensurepip --upgrade",
    )


def _settings(python: str, text: str) -> PipSettings:
    """From the lines ``section.name='value'``, and pip's help.

    Of the sections that say something, the last that pip reads counts.
    """
    sections: dict[str, dict[str, str]] = {"global": {}, "download": {}, ":env:": {}}
    for found in filter(None, map(_SETTING.fullmatch, text.splitlines())):
        sections[found[1]][found[2]] = str(ast.literal_eval(found[3]))
    values = {name: value for each in sections.values() for name, value in each.items() if value}
    indexes: list[str] = []
    if values.get("no-index", "0").lower() not in ("1", "true", "yes", "on", "y", "t"):
        indexes = [values.get("index-url") or _default_index(python, text), *values.get("extra-index-url", "").split()]
    return PipSettings(tuple(indexes), tuple(values.get("find-links", "").split()), values.get("cert", ""))


def _default_index(python: str, text: str) -> str:
    """The index of a pip that was told of none, as its help names it."""
    found = _DEFAULT_INDEX.search(" ".join(text.split()))
    if found is None:
        raise InputError(f"pip of {python} has no index configured", remedy="pip config set global.index-url ADDRESS")
    return found[1]


def _pip(python: str) -> subprocess.CompletedProcess[str]:
    """Its settings and its help."""
    # From Python 3.11 on no module is taken from the folder that it is started in.
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    command = [python, "-c", f"{NOT_HERE}\n{_PROGRAM}"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, env=environment)
    except subprocess.TimeoutExpired:
        raise InputError(
            f"pip of {python} did not list its indexes within {_TIMEOUT_S} s",
            remedy=f"check whether it starts: {python} -m pip config list",
        ) from None
