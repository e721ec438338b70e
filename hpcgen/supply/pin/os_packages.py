"""OS packages of a stage, as the package manager in the very base image would install them.

It is asked in the unpacked base, after the stage's own first steps (certificates, mirror), what it would download.
Nothing is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import FetchError
from hpcgen.core.model.lock import KeyPin, PackagePin, StagePackages
from hpcgen.core.support.certificates import read_certificates
from hpcgen.recipe.stages import Stage
from hpcgen.supply.pin.apt_packages import Apt
from hpcgen.supply.pin.base_shell import BaseShell, base_shell, script_of
from hpcgen.supply.pin.brought_by import chains_to
from hpcgen.supply.pin.dnf_packages import Dnf
from hpcgen.supply.pin.package_manager import PackageManager
from hpcgen.supply.pin.zypper_packages import Zypper

_MANAGERS: Mapping[str, type[PackageManager]] = {"apt": Apt, "dnf": Dnf, "zypper": Zypper}


class PackageAnswer(msgspec.Struct, frozen=True):
    """What a stage's package step would bring, who vouches for it, and the date of the indexes.

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
    only where these steps changed its settings.

    Returns an answer for each stage, in their order.

    layout: OCI layout that holds the base images.
    asked: the stages, of which host files, variables, and the steps before their packages are used, each with the
        packages that it asks for.
    manager: the bases' package manager.
    say: told what is being done.
    watched: whether it is to be known what brings a package.
    InputError: a package that the base's repositories do not have, or that has no sha256.
    FetchError: an index could not be read.
    PolicyError: an unsigned index, or nothing here can run the image.
    """
    answers: dict[int, PackageAnswer] = {}
    waiting = sorted(range(len(asked)), key=lambda number: asked[number][0].prepared)
    while waiting:
        first = asked[waiting[0]][0]
        with base_shell(layout, first.image.name, _variables(first)) as shell:
            base = _PreparedBase(shell, _MANAGERS[manager](shell), say, watched)
            for number in tuple(waiting):
                if base.leads_to(asked[number][0]):
                    waiting.remove(number)
                    answers[number] = base.answer(*asked[number])
    return [answers[number] for number in range(len(asked))]


def _variables(stage: Stage) -> dict[str, str]:
    return {**stage.arguments, **stage.environment}


class _PreparedBase:
    """An unpacked base in which the first steps of stages are done, one stage after the other."""

    def __init__(
        self, shell: BaseShell, manager: PackageManager, say: Callable[[str], None], watched: Callable[[str], bool]
    ) -> None:
        self.shell, self.manager, self.say, self.watched = shell, manager, say, watched
        self.present = manager.present()
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
        if self._settings() != self.settings:
            say(f"reading the package indexes of {image}")
            self.manager.update()
            self.keys, self.epoch = self.manager.keys()
            self.settings = self._settings()
        added = self.manager.added(names)
        say(f"{len(names)} packages requested, {len(added)} to fetch, {len(self.present)} already in {image}")
        ends = {name for name in added if self.watched(name)}
        chains = chains_to(ends, names, self.manager.depends(added)) if ends else []
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

    def _settings(self) -> dict[str, tuple[int, int]]:
        """Size and time of the files that say where the package manager looks and whom it trusts."""
        found = {}
        for folder in self.manager.settings:
            for place in sorted((self.shell.root / folder).rglob("*")):
                about = place.lstat()
                found[str(place.relative_to(self.shell.root))] = (about.st_size, about.st_mtime_ns)
        return found


def _checked(image: str, present: dict[str, str], added: dict[str, PackagePin]) -> StagePackages:
    """Names and versions are the image's own words, so they are held against what a lock may say."""
    try:
        return record_from({"present": present, "added": msgspec.to_builtins(added)}, StagePackages)
    except msgspec.ValidationError as failure:
        raise FetchError(
            f"{image}: its package manager's output cannot be parsed: {failure}",
            remedy="the base differs from its distribution's own: name another with --image NAME=REFERENCE",
        ) from failure
