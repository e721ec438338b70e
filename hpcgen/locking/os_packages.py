"""OS packages of a stage, as apt in the very base image would install them: versions, hashes, addresses, keys.

apt is asked in the unpacked base, after the stage's own first steps (certificates, mirror), what it would download.
Nothing is installed. Sources: apt-get(8), apt.conf(5), dpkg-query(1); apt's private-install.cc for the format of
``--print-uris``, acquire-item.cc for file names, and update.cc: ``APT::Update::Error-Mode`` is known from 2.1.15
on, and before it ``apt-get update`` ends well although an index could not be reached, with a warning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote

import msgspec

from hpcgen.config.decoding import record_from
from hpcgen.errors import FetchError, InputError, PolicyError, Problem
from hpcgen.locking.base_shell import BaseShell, base_shell, failed, quoted, script_of
from hpcgen.model.lock import KeyPin, PackagePin, StagePackages
from hpcgen.recipe.stages import Stage
from hpcgen.support.certificates import read_certificates

_UPDATE = [
    "apt-get",
    *("-o", "APT::Sandbox::User=root"),  # there is no other user in the namespace
    *("-o", "APT::Update::Error-Mode=any"),
    *("-o", "Acquire::Languages=none"),
    *("-o", "Acquire::Retries=3"),
    "update",
]
_INSTALL = [
    "apt-get",
    *("-o", "APT::Sandbox::User=root"),
    *("-o", "Acquire::ForceHash=SHA256"),
    *("install", "--print-uris", "-qq", "-y", "--no-install-recommends", "--"),
]
_TROUBLE = re.compile(r"E: |W: (Failed to fetch|Some index files failed|GPG error|An error occurred during the sign)")
_URI = re.compile(r"'([^' ]+)' (\S+) (\d+) (\S*)")
_PRESENT = r"dpkg-query -W -f '${db:Status-Abbrev}|${Package}|${Version}\n'"
_ANOTHER = "the base is not as Debian and Ubuntu make it: --image NAME=REFERENCE names another"


def resolve_packages(
    layout: Path, image: str, stage: Stage, names: Sequence[str], manager: str, say: Callable[[str], None]
) -> tuple[StagePackages, list[KeyPin], int]:
    """What a stage's package step would bring into a base image, and who vouches for it.

    Parameters
    ----------
    layout: OCI layout that holds the base image.
    image: its name in the plan.
    stage: its host files, variables, and the steps before its packages are used.
    names: packages that are asked for.
    manager: the base's package manager; only ``apt`` can be pinned.
    say: told what is being done.

    Returns
    -------
    The packages, the keys of the indexes, and the newest date of the indexes in seconds since 1970 (0 without names).

    Raises
    ------
    InputError: a package that the base's repositories do not have, or that has no sha256.
    FetchError: an index could not be read.
    PolicyError: another package manager, an unsigned index, or nothing here can run the image.
    """
    if manager != "apt":
        raise PolicyError(
            f"the packages of {image} cannot be pinned: its package manager is {manager}",
            expected="a base with apt: debian or ubuntu",
            remedy="choose one with --set base.provider=debian; render without a lock works for every base",
        )
    with base_shell(layout, image, {**stage.arguments, **stage.environment}) as shell:
        present = _present(shell)
        if not names:
            return _checked(image, present, {}), [], 0
        _prepare(shell, stage, say)
        say(f"reading the package indexes of {image}")
        _update(shell)
        from hpcgen.locking.apt_keys import key_pins

        keys, epoch = key_pins(shell)
        added = _added(shell, names)
        say(f"{len(names)} packages requested, {len(added)} to fetch, {len(present)} already in {image}")
        return _checked(image, present, added), keys, epoch


def _checked(image: str, present: dict[str, str], added: dict[str, PackagePin]) -> StagePackages:
    """Names and versions are the image's own words, so they are held against what a lock may say."""
    try:
        return record_from({"present": present, "added": msgspec.to_builtins(added)}, StagePackages)
    except msgspec.ValidationError as failure:
        raise FetchError(
            f"{image}: the output of apt and dpkg is not understood: {failure}", remedy=_ANOTHER
        ) from failure


def _prepare(shell: BaseShell, stage: Stage, say: Callable[[str], None]) -> None:
    """Host files, and the steps before the packages: the site's certificates and mirrors."""
    for file in stage.host_files:
        shell.put(file.target, read_certificates(file.source))
    for label, step in stage.steps[: stage.prepared]:
        say(f"{label}: {step.about}")
        for text_file in step.files:
            shell.put(text_file.target, text_file.text.encode())
        shell.check(script_of(step.commands), f"{label}, {step.about},")


def _update(shell: BaseShell) -> None:
    status, lines = shell.run(quoted(_UPDATE))
    if status or any(_TROUBLE.match(line) for line in lines):
        raise failed(shell.image, "apt-get update", lines, status)


def _present(shell: BaseShell) -> dict[str, str]:
    lines = shell.check(_PRESENT, "listing the packages")
    rows = [line.split("|") for line in lines]
    return {row[1]: row[2] for row in sorted(rows) if len(row) == 3 and row[0][1:2] == "i"}


def _added(shell: BaseShell, names: Sequence[str]) -> dict[str, PackagePin]:
    status, lines = shell.run(f"apt-get clean\n{quoted([*_INSTALL, *names])}")
    if status:
        said = [line.removeprefix("E: ") for line in lines if line.startswith("E: ")] or lines[-5:]
        remedy = "check the package's name for this distribution"
        raise InputError(Problem(f"{shell.image}: {line}", remedy=remedy) for line in said)
    found = dict(read_uri(line, shell.image) for line in lines if line.startswith("'"))
    return {name: found[name] for name in sorted(found)}


def read_uri(line: str, image: str) -> tuple[str, PackagePin]:
    """One line of ``--print-uris``: address, NAME_VERSION_ARCHITECTURE.deb with ``:`` as ``%3a``, size, hash."""
    match = _URI.fullmatch(line)
    if match is None:
        raise FetchError(f"{image}: apt's answer is not understood: {line[:200]}", remedy=_ANOTHER)
    url, file, size, hashed = match.groups()
    kind, _, value = hashed.partition(":")
    parts = [unquote(part) for part in file.removesuffix(".deb").split("_")]
    if kind != "SHA256" or len(parts) != 3:
        raise InputError(
            f"{image}: the repository gives {file} no sha256, only {kind or 'nothing'}",
            remedy="ask the repository's maintainers to add SHA256 to its index",
        )
    if not re.match(r"(https?|file|copy):", url):
        raise FetchError(
            f"{image}: {file} is at {url}",
            expected="an address of http, https or file",
            remedy="name a mirror of such an address: network.mirrors of the profile",
        )
    name, version, architecture = parts
    return name, PackagePin(version=version, architecture=architecture, sha256=value.lower(), size=int(size), url=url)
