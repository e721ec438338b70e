"""Which base image a stage starts from, and what is said of it: the dated one of a release table, or another.

A stage begins with a look at it: what a mirror, a store of images or the user names may be anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from hpcgen.backends.hardware.mirrors import names_image, qualified
from hpcgen.blocks.inputs.image import Image
from hpcgen.blocks.steps import Compound, Run, command, run
from hpcgen.core.errors import InputError
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.release import PLATFORMS
from hpcgen.core.support.quoting import sh

if TYPE_CHECKING:
    from hpcgen.core.model.lock import Pins


CHECK = "check the base image"


class BaseSystem(msgspec.Struct, frozen=True):
    """What a base image has to be.

    ``architecture``: as registries and dpkg call it, or where packages are not Debian's, as ``uname -m`` does.
    ``os_id``, ``version``: ``ID`` and ``VERSION_ID`` of its os-release, which may say more than ``version`` after a
    point; both empty where the table of the distribution does not say its ``os_id``.
    """

    architecture: str
    os_id: str = ""
    version: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.architecture, self.os_id, self.version)))

    @property
    def begins(self) -> str:
        """How an image that is this is told, with a point after it."""
        return f"{self}." if self.os_id else f"{self} "


def wanted_system(plan: Plan, values: Mapping[str, Any]) -> BaseSystem:
    """What the base images of a plan have to be. ``values``: of the release row of its distribution."""
    architecture: str = plan.site.system.architecture
    if values.get("package_manager") == "apt":
        architecture = PLATFORMS[architecture]
    if plan.base is not None:
        return BaseSystem(architecture, plan.base.os_id, plan.base.os_version)
    known = (str(values["os_id"]), plan.blocks[0].version) if "os_id" in values else ("", "")
    return BaseSystem(architecture, *known)


def base_check(plan: Plan, image: Image, values: Mapping[str, Any]) -> tuple[str, Run]:
    """The first step of a stage, which ends the build on another base than the plan is for.

    Source: os-release(5), dpkg(1).
    """
    wanted = wanted_system(plan, values)
    # By its whole path: at the word dpkg alone, ch-image --force would install fakeroot.
    dpkg = "/usr/bin/dpkg --print-architecture 2> /dev/null || " if values.get("package_manager") == "apt" else ""
    settings = """eval "$(grep -E '^(ID|VERSION_ID)=' /etc/os-release)\""""
    # Not ${ID-}: buildah 1.28 reads the text of the recipe, which is a label, as if it were one's of a Dockerfile.
    found = f'found=$(ID="" VERSION_ID=""; {settings}; echo "$({dpkg}uname -m) $ID $VERSION_ID")'
    if plan.extends is not None:
        remedy = "extend an image that was built for this site"
    elif plan.base is not None:
        remedy = "plan again: the image is another one now"
    elif plan.supply == "bundle":
        remedy = "make the lock and the bundle again from the right image"
    else:
        remedy = "correct network.mirrors.images of the profile, or import the right image under its name"
    before, after = f"hpcgen: wrong base image: {image.pulled} should be {wanted} and is ", f"; {remedy}"
    told = f'echo {sh(before)}"$found"{sh(after)} >&2'
    check = f'case "$found." in {sh(wanted.begins)}*) ;; *) {told}; exit 65 ;; esac'
    return "hpcgen", msgspec.structs.replace(run(CHECK, Compound(found), Compound(check), joins="next"), checks=True)


def base_for(plan: Plan, image: Image) -> Image:
    """The image for the site's architecture; by its moving tag where that is asked for, or the site has its own.

    What a mirror of the site names for an image may be any build of it: the table's digest says nothing of that.
    """
    if plan.base is not None:
        return Image(plan.base.image, plan.base.digest or "", in_registry=not plan.base.kind)
    chosen = image.moving() if plan.latest_base or _own(plan, image) else image
    return chosen.on(plan.site.system.architecture)


def base_notes(plan: Plan, images: Iterable[Image]) -> list[str]:
    """One line for each base image that no digest pins."""
    places = {image.name: _own(plan, image) for image in images if not image.digest}
    return [
        f"base image {name}{f', here {place},' if place else ''} has no digest and may change (hpcgen lock pins it)"
        for name, place in places.items()
        if "@" not in place
    ]


def base_labels(plan: Plan, base: Image, pins: Pins | None) -> dict[str, str]:
    """Labels with name and digest of the image that another one starts from; none for an image of the site's own.

    Source: OCI image specification 1.1, annotations.md.
    """
    if plan.extends is not None or (plan.base is not None and plan.base.kind and pins is None):
        return {}
    # In a bundle it may have another digest; where it comes from, it has that of the lock.
    digest = pins.images[base.name].digest if pins is not None and base.name in pins.images else base.digest
    if not digest and _own(plan, base):
        return {}
    said = {"name": qualified(base.pulled), "digest": digest}
    return {f"org.opencontainers.image.base.{key}": value for key, value in said.items() if value}


def _own(plan: Plan, image: Image) -> str:
    return names_image(plan.site.network.mirrors, image.name, plan.format)


TRACES = ("/var/cache/ldconfig/aux-cache", "/var/log/alternatives.log", "/var/log/apt", "/var/log/dpkg.log")
"""What package tools leave that differs from one build to the next."""


def known_manager(values: Mapping[str, Any]) -> str:
    """The package manager of a base by the values of its release row; InputError where hpcgen does not know it."""
    manager = str(values["package_manager"])
    if manager not in _INSTALL:
        message = f"hpcgen knows no package manager {manager!r}"
        expected = f"{' or '.join(_INSTALL)} as package_manager in the row of the base"
        raise InputError(message, expected=expected, remedy="correct the release table of the base")
    return manager


def install(manager: str, names: Sequence[str], pinned: bool, told: str = "") -> list[str]:
    """Commands that install packages and leave no downloads behind.

    manager: one that :func:`known_manager` knows.
    names: packages, with a version each where ``pinned``.
    told: a file for what apt says of the packages that it fetches, with their hashes; other managers say nothing.
    """
    commands = _INSTALL[manager](names, pinned)
    return [commands[0], _apt_tells(names, told), *commands[1:]] if told and manager == "apt" else commands


def _apt(names: Sequence[str], pinned: bool) -> list[str]:
    return [
        "apt-get update",
        "DEBIAN_FRONTEND=noninteractive " + command("apt-get", "install", "-y", "--no-install-recommends", *names),
        "apt-get clean",
        "rm -rf /var/lib/apt/lists/*",
        *([command("rm", "-rf", *TRACES)] if pinned else []),
    ]


def _apt_tells(names: Sequence[str], told: str) -> str:
    """Source: apt-get(8), ``--print-uris``."""
    options = ["-o", "Acquire::ForceHash=SHA256", "install", "--print-uris", "-qq", "-y", "--no-install-recommends"]
    return f"{command('apt-get', *options, *names)} > {told}"


def _dnf(names: Sequence[str], pinned: bool) -> list[str]:
    return [command("dnf", "install", "-y", "--setopt=install_weak_deps=False", *names), "dnf clean all"]


def _zypper(names: Sequence[str], pinned: bool) -> list[str]:
    """Source: the manual page of zypper, "--non-interactive" and "--no-recommends"."""
    return [
        command("zypper", "--non-interactive", "install", "--no-recommends", *names),
        "zypper --non-interactive clean --all",
    ]


_INSTALL: Mapping[str, Callable[[Sequence[str], bool], list[str]]] = {"apt": _apt, "dnf": _dnf, "zypper": _zypper}
