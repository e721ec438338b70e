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

from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import FetchError, InputError, PolicyError, Problem
from hpcgen.core.model.lock import KeyPin, PackagePin, StagePackages
from hpcgen.core.support.certificates import read_certificates
from hpcgen.recipe.stages import Stage
from hpcgen.supply.pin.apt_keys import APT_GET, key_pins
from hpcgen.supply.pin.base_shell import BaseShell, base_shell, failed, quoted, script_of
from hpcgen.supply.pin.brought_by import apt_depends, chains_to

_UPDATE = [
    *APT_GET,
    *("-o", "APT::Sandbox::User=root"),  # there is no other user in the namespace
    *("-o", "APT::Update::Error-Mode=any"),
    *("-o", "Acquire::Languages=none"),
    *("-o", "Acquire::Retries=3"),
    "update",
]
_INSTALL = [
    *APT_GET,
    *("-o", "APT::Sandbox::User=root"),
    *("-o", "Acquire::ForceHash=SHA256"),
    *("install", "--print-uris", "-qq", "-y", "--no-install-recommends", "--"),
]
_TROUBLE = re.compile(r"E: |W: (Failed to fetch|Some index files failed|GPG error|An error occurred during the sign)")
_URI = re.compile(r"'([^' ]+)' (\S+) (\d+) (\S*)")
_PRESENT = r"dpkg-query -W -f '${db:Status-Abbrev}|${Package}|${Version}\n'"
_ANOTHER = "the base is not as Debian and Ubuntu make it: --image NAME=REFERENCE names another"


class PackageAnswer(msgspec.Struct, frozen=True):
    """What a stage's package step would bring, who vouches for it, and the date of the indexes.

    Parameters
    ----------
    keys: of the indexes.
    epoch: the newest date of the indexes in seconds since 1970, 0 where none was read.
    chains: from each package that was asked for down to the nearest that is watched, by what depends on what.
    """

    packages: StagePackages
    keys: list[KeyPin] = []
    epoch: int = 0
    chains: list[tuple[str, ...]] = []


def resolve_packages(
    layout: Path,
    asked: Sequence[tuple[Stage, Sequence[str]]],
    manager: str,
    say: Callable[[str], None],
    watched: Callable[[str], bool] = lambda name: False,
) -> list[PackageAnswer]:
    """What the package steps of stages would bring into their base images, and who vouches for it.

    A base is unpacked once for all stages whose first steps go on where another's end, and its indexes are read again
    only where these steps changed apt's settings.

    Parameters
    ----------
    layout: OCI layout that holds the base images.
    asked: the stages, of which host files, variables, and the steps before their packages are used, each with the
        packages that it asks for.
    manager: the bases' package manager; only ``apt`` can be pinned.
    say: told what is being done.
    watched: whether it is to be known what brings a package.

    Returns
    -------
    An answer for each stage, in their order.

    Raises
    ------
    InputError: a package that the base's repositories do not have, or that has no sha256.
    FetchError: an index could not be read.
    PolicyError: another package manager, an unsigned index, or nothing here can run the image.
    """
    if manager != "apt":
        raise PolicyError(
            f"the packages of {asked[0][0].image.name} cannot be pinned: its package manager is {manager}",
            expected="a base with apt: debian or ubuntu",
            remedy="choose one with --set base.provider=debian; render without a lock works for every base",
        )
    answers: dict[int, PackageAnswer] = {}
    waiting = sorted(range(len(asked)), key=lambda number: asked[number][0].prepared)
    while waiting:
        first = asked[waiting[0]][0]
        with base_shell(layout, first.image.name, _variables(first)) as shell:
            base = _PreparedBase(shell, say, watched)
            for number in tuple(waiting):
                if base.leads_to(asked[number][0]):
                    waiting.remove(number)
                    answers[number] = base.answer(*asked[number])
    return [answers[number] for number in range(len(asked))]


def _variables(stage: Stage) -> dict[str, str]:
    return {**stage.arguments, **stage.environment}


class _PreparedBase:
    """An unpacked base in which the first steps of stages are done, one stage after the other."""

    def __init__(self, shell: BaseShell, say: Callable[[str], None], watched: Callable[[str], bool]) -> None:
        self.shell, self.say, self.watched = shell, say, watched
        self.present = _present(shell)
        self.stage: Stage | None = None
        self.settings: dict[str, tuple[int, int]] | None = None
        self.keys: list[KeyPin] = []
        self.epoch = 0

    def leads_to(self, stage: Stage) -> bool:
        """Whether the stage begins with what was done here."""
        done = self.stage
        if done is None or stage.image.name != self.shell.image:
            return stage.image.name == self.shell.image
        return stage.host_files == done.host_files and stage.steps[: done.prepared] == done.steps[: done.prepared]

    def answer(self, stage: Stage, names: Sequence[str]) -> PackageAnswer:
        image, say = self.shell.image, self.say
        say(f"packages of the {stage.name} stage: {len(names)} requested")
        if not names:
            return PackageAnswer(_checked(image, self.present, {}))
        self.shell.use(_variables(stage))
        self._prepare(stage)
        if _apt_settings(self.shell) != self.settings:
            say(f"reading the package indexes of {image}")
            _update(self.shell)
            self.keys, self.epoch = key_pins(self.shell)
            self.settings = _apt_settings(self.shell)
        added = _added(self.shell, names)
        say(f"{len(names)} packages requested, {len(added)} to fetch, {len(self.present)} already in {image}")
        ends = {name for name in added if self.watched(name)}
        chains = chains_to(ends, names, apt_depends(self.shell, added)) if ends else []
        return PackageAnswer(_checked(image, self.present, added), self.keys, self.epoch, chains)

    def _prepare(self, stage: Stage) -> None:
        """Host files, and the steps before the packages: the site's certificates and mirrors."""
        done = self.stage.prepared if self.stage is not None else 0
        self.stage = stage
        for file in stage.host_files if not done else []:
            self.shell.put(file.target, read_certificates(file.source))
        for label, step in stage.steps[done : stage.prepared]:
            if step.checks:
                continue  # it was looked at when it was fetched
            self.say(f"{label}: {step.about}")
            for text_file in step.files:
                self.shell.put(text_file.target, text_file.text.encode())
            self.shell.check(script_of(step.commands), f"{label}, {step.about},")


def _apt_settings(shell: BaseShell) -> dict[str, tuple[int, int]]:
    """Size and time of the files that say where apt looks and whom it trusts."""
    found = {}
    for folder in ("etc/apt", "usr/share/keyrings", "etc/ssl/certs"):
        for place in sorted((shell.root / folder).rglob("*")):
            about = place.lstat()
            found[str(place.relative_to(shell.root))] = (about.st_size, about.st_mtime_ns)
    return found


def _checked(image: str, present: dict[str, str], added: dict[str, PackagePin]) -> StagePackages:
    """Names and versions are the image's own words, so they are held against what a lock may say."""
    try:
        return record_from({"present": present, "added": msgspec.to_builtins(added)}, StagePackages)
    except msgspec.ValidationError as failure:
        raise FetchError(
            f"{image}: the output of apt and dpkg is not understood: {failure}", remedy=_ANOTHER
        ) from failure


def _update(shell: BaseShell) -> None:
    # Without packages that lie in the image already, all that apt would install has an address.
    status, lines = shell.run(f"apt-get clean\n{quoted(_UPDATE)}")
    if status or any(_TROUBLE.match(line) for line in lines):
        raise failed(shell.image, "apt-get update", lines, status)


def _present(shell: BaseShell) -> dict[str, str]:
    lines = shell.check(_PRESENT, "listing the packages")
    rows = [line.split("|") for line in lines]
    return {row[1]: row[2] for row in sorted(rows) if len(row) == 3 and row[0][1:2] == "i"}


def _added(shell: BaseShell, names: Sequence[str]) -> dict[str, PackagePin]:
    status, lines = shell.run(quoted([*_INSTALL, *names]))
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
