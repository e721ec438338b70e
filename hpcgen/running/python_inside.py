"""Which Pythons an image has, and which packages each of them: one start tells it all, and nothing is imported."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from hpcgen.core.errors import JobFailedError, MissingToolError
from hpcgen.core.model.fields import AbsolutePath, Name, Version
from hpcgen.core.support.leftovers import scratch_folder
from hpcgen.core.support.processes import NOT_HERE, require_program
from hpcgen.core.support.quoting import command
from hpcgen.core.support.units import some
from hpcgen.running.here import status_text
from hpcgen.running.image_job import ImageJob
from hpcgen.running.verify.starts import StartResult, start_job, start_script, with_layout

MARK = "hpcgen-python:"
TIMEOUT_S = 300.0
_MOST = 20
"""Pythons of an image that are listened to."""

_ALIASES = {
    "sklearn": ["scikit-learn"],
    "tensorflow": ["tensorflow-cpu", "tensorflow-gpu", "intel-tensorflow", "tensorflow-rocm"],
    "onnxruntime": ["onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-migraphx"],
    "tvm": ["apache-tvm"],
}
"""What else the package index calls that which has a module."""

# Python 3.6 and later: the images of TensorFlow 2.1 have that.
_LOOK = f"""
import importlib.util, json
aliases = {_ALIASES!r}
try:
    from importlib.metadata import version
except ImportError:
    def version(name):
        import pkg_resources
        return pkg_resources.get_distribution(name).version
def known(module):
    for name in [module] + aliases.get(module, []):
        try:
            return version(name)
        except Exception:
            pass
    return ""
found = {{}}
for module in sys.argv[1:]:
    try:
        spec = importlib.util.find_spec(module)
    except Exception:
        continue
    if spec is not None and spec.origin is not None:
        found[module] = known(module)
said = {{"program": sys.executable, "version": "%d.%d.%d" % sys.version_info[:3], "modules": found}}
print("\\n{MARK} " + json.dumps(said, sort_keys=True))
"""
_PROGRAM = f"{NOT_HERE}; import base64; exec(base64.b64decode('{base64.b64encode(_LOOK.encode()).decode()}'))"
"""The same on one line, as a word of a job script has to be."""

# What is on PATH comes first; then where images have the Python with the framework though they say no PATH.
_EACH = (
    "look=$1; shift; "
    "for each in python3 python /opt/*/bin/python3 /usr/local/bin/python3 /usr/bin/python3; do "
    'if command -v "$each" >/dev/null 2>&1; then "$each" -c "$look" "$@" 2>/dev/null; fi; done; :'
)


class FoundPython(msgspec.Struct, frozen=True):
    """A Python: its ``program`` there, its ``version``, and of the ``modules`` that were asked for those that it has.

    A module's version is "" where no package says which it is. ``start``: the words that start it, where it was asked
    for by a whole command.
    """

    program: AbsolutePath
    version: Version
    modules: dict[Name, Annotated[str, msgspec.Meta(max_length=100)]]
    start: list[str] = []

    def versions(self) -> dict[Name, Version]:
        """Itself and the modules of which the version is known, as reports have it."""
        known = {name: version for name, version in sorted(self.modules.items()) if version}
        return msgspec.convert({"python": self.version, **known}, dict[Name, Version])

    def __str__(self) -> str:
        has = some([f"{name} {version}".strip() for name, version in sorted(self.modules.items())])
        started = command(*self.start) if self.start else self.program
        return f"{started} {self.version} with {has}" if self.modules else f"{started} {self.version}"


def python_inside(job: ImageJob, modules: Sequence[str], image: str) -> FoundPython:
    """The first Python of an image that has most of the modules.

    job: how the image is started, sealed or not.
    image: its name, for messages.
    MissingToolError: it has none. JobFailedError: it cannot be started.
    """
    alone = with_layout(job, ["sh", "-c", _EACH, "sh", _PROGRAM, *modules], 1)
    with scratch_folder("hpcgen-python-") as folder:
        ended = start_job(alone, TIMEOUT_S, folder=folder)
    if ended.status != 0:
        said = " | ".join([each.strip() for each in ended.lines if each.strip()][-3:]) or "nothing"
        how = "is still running" if ended.status is None else f"ended with {status_text(ended.status)}"
        raise JobFailedError(
            f"{image} cannot be started to look inside: `sh` in it {how} and said: {said}",
            remedy="it needs /bin/sh and /usr/bin/env, and has to be for this machine's processor; --engine names "
            "another engine",
        )
    return _best(ended, modules, image)


def python_here(words: Sequence[str], modules: Sequence[str]) -> FoundPython:
    """The same of a Python that a command of this machine starts: its path or its name on PATH, with words before it.

    MissingToolError: there is no such program, or what it starts is no Python.
    """
    # Not resolved: the link to a Python is what makes an environment of it.
    program = str(Path(require_program(words[0], "measure without a container", "name another program")).absolute())
    # A wrapper that sets variables is started again, and not what it starts.
    start = [program, *words[1:]]
    ended = start_script(f"exec {command(*start, '-c', _PROGRAM, *modules)}\n", TIMEOUT_S)
    return msgspec.structs.replace(_best(ended, modules, command(*start)), program=program, start=start)


def _best(ended: StartResult, modules: Sequence[str], where: str) -> FoundPython:
    lines = [each.removeprefix(MARK) for each in ended.lines if each.startswith(MARK)][:_MOST]
    found: list[FoundPython] = []
    for line in lines:
        try:
            found.append(msgspec.convert(msgspec.json.decode(line), FoundPython))
        except (msgspec.MsgspecError, RecursionError):
            continue
    if not found:
        raise MissingToolError(
            f"there is no Python in {where}", expected="python3 on its PATH", remedy="use an image with the framework"
        )
    return max(found, key=lambda each: len(each.modules))


def lacking(found: FoundPython, modules: Sequence[str]) -> list[str]:
    """Those that it does not have."""
    return [each for each in modules if each not in found.modules]
