"""The commands by which each package manager of a base installs packages in a build step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hpcgen.blocks.steps import command
from hpcgen.core.errors import InputError

TRACES = ("/var/cache/ldconfig/aux-cache", "/var/log/alternatives.log", "/var/log/apt", "/var/log/dpkg.log")
"""What package tools leave that differs from one build to the next."""


def install(manager: str, names: Sequence[str], pinned: bool, told: str = "") -> list[str]:
    """Commands that install packages and leave no downloads behind.

    Parameters
    ----------
    manager: ``values.package_manager`` of the base's release row.
    names: packages, with a version each where ``pinned``.
    told: a file for what apt says of the packages that it fetches, with their hashes; other managers say nothing.

    Raises
    ------
    InputError: no such package manager is known.
    """
    if manager not in _INSTALL:
        message = f"hpcgen knows no package manager {manager!r}"
        expected = f"{' or '.join(_INSTALL)} as package_manager in the row of the base"
        raise InputError(message, expected=expected, remedy="correct the release table of the base")
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
