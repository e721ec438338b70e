"""Conda packages that suit what a plan asks for, base and node, chosen by py-rattler in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hpcgen.blocks.conda import question
from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import ConflictError, FetchError
from hpcgen.core.model.conda import CondaPackage
from hpcgen.core.model.plan import PlannedConda
from hpcgen.core.support.extras import extra
from hpcgen.core.support.leftovers import scratch_folder
from hpcgen.core.support.package_names import normal_name
from hpcgen.readers.pip_text import is_version

_LIMIT_S = 900
_LAST_LINES = 30
_LINE = 400
_NOTHING_FITS = "Cannot solve"


def solve_conda(asked: PlannedConda, program: str, channels: Mapping[str, str]) -> list[CondaPackage]:
    """Every package to install, by name.

    program: the text of ``conda_program.py``.
    channels: the address by which each channel is asked; packages have that of the channel itself.
    ConflictError: nothing fits what is asked for.
    FetchError: a channel does not answer, or has a package without a sha256.
    MissingToolError: py-rattler is not installed.
    """
    with extra("conda", "choose conda packages"):
        if importlib.util.find_spec("rattler") is None:
            raise ImportError(name="py-rattler")
    request = json.dumps(question(asked, lambda channel: channels.get(channel, channel)))
    with scratch_folder("hpcgen-conda-") as folder:
        answer = _answer(folder, program, request)
    return sorted((_package(each, channels) for each in answer), key=lambda each: each.name)


def _answer(folder: Path, program: str, request: str) -> list[dict[str, Any]]:
    script, asked = folder / "conda_program.py", folder / "request.json"
    script.write_text(program, "utf-8")
    asked.write_text(request, "utf-8")
    command = [sys.executable, str(script), "solve", str(asked)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise FetchError(
            f"no conda packages were chosen within {_LIMIT_S} s",
            remedy="name narrower ranges of versions, or fewer channels",
        ) from None
    if done.returncode == 0:
        return list(json.loads(done.stdout))
    said = "\n".join(line[:_LINE] for line in done.stderr.strip().splitlines()[-_LAST_LINES:])
    if _NOTHING_FITS in said:
        raise ConflictError(
            f"no set of conda packages fits the request, the base and the node:\n{said}",
            remedy="widen the ranges of versions, or name a channel that has the packages",
        )
    raise FetchError(
        f"the conda packages could not be chosen: {said or 'py-rattler said nothing'}",
        remedy="check that the channels are reachable: their addresses, the proxy, certificates",
    )


def _package(said: Mapping[str, Any], channels: Mapping[str, str]) -> CondaPackage:
    """A package of the answer, under the address of its channel."""
    url = str(said["url"])
    for channel, asked in channels.items():
        if url.startswith(f"{asked.rstrip('/')}/"):
            url = f"{channel}{url[len(asked.rstrip('/')) :]}"
            break
    if not said.get("sha256"):
        raise FetchError(f"the channel has no sha256 for {said['fn']}", remedy="use the package from another channel")
    fields = {name: said[name] for name in ("name", "version", "build", "subdir", "sha256", "depends")}
    try:
        more = {"url": url, "size": said.get("size"), "licence": said.get("license") or ""}
        return record_from({**fields, **more}, CondaPackage)
    except msgspec.ValidationError as failure:
        raise FetchError(
            f"the channel's entry for {said['fn']} is invalid: {failure}",
            remedy="choose another build, or another channel",
        ) from failure


def lock_beside(packages: Sequence[CondaPackage], asked: Sequence[str], architecture: str, glibc: str) -> list[str]:
    """Hashed lines of what is asked of a Python package index, without what the conda packages have already.

    ConflictError: no Python is among the packages, or nothing fits beside them. Other errors are those of
    :func:`hpcgen.supply.pin.wheels.lock_wheels`.
    """
    from hpcgen.supply.pin.wheels import lock_wheels

    python = next((each.version for each in packages if each.name == "python"), None)
    if python is None:
        raise ConflictError(
            "pip packages are requested, but there is no Python among the conda packages",
            remedy="add python to `dependencies`",
        )
    there = {
        normal_name(each.name): each.version
        for each in packages
        if any(need.split(" ")[0] in ("python", "python_abi") for need in each.depends)
    }
    held = [f"{name}=={version}" for name, version in there.items() if is_version(version)]
    lines = lock_wheels(list(asked), python, architecture, glibc, constraints=held)
    return [line for line in lines if normal_name(line.partition("==")[0]) not in there]
