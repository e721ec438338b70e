"""Which packages of a file one environment gets: a Python, an architecture, and the groups that somebody names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from packaging.markers import Marker

from hpcgen.core.model.project import PackageFile, PackageRequirement


def environment(python: str, architecture: str) -> dict[str, str]:
    """The variables of markers (PEP 508) in an image: CPython on Linux.

    Parameters
    ----------
    python: its version, ``3.11.2``, or ``3.11``, which counts as its first release.
    architecture: ``x86_64`` or ``aarch64``.
    """
    full = python if python.count(".") > 1 else f"{python}.0"
    return {
        "implementation_name": "cpython",
        "implementation_version": full,
        "os_name": "posix",
        "platform_machine": architecture,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": full,
        "python_version": ".".join(full.split(".")[:2]),
        "sys_platform": "linux",
    }


def selected(
    file: PackageFile, python: str, architecture: str, groups: Iterable[str] = (), brought: Collection[str] = ()
) -> list[PackageRequirement]:
    """The packages that are wanted there, sorted by name; of each place of the file one.

    Parameters
    ----------
    python, architecture: as for :func:`environment`.
    groups: names of groups and extras.
    brought: packages that somebody else brings, with all that they need.
    """
    fixed = environment(python, architecture)
    chosen = _Groups(tuple(sorted(groups)), tuple(file.default_groups))
    if file.roots:
        return _reached(file, fixed, chosen, brought)
    listed = [*file.requirements, *(each for name in chosen.named for each in file.groups.get(name, []))]
    unique = {(each.name, each.where): each for each in listed if chosen.holds(each.marker, fixed)}
    return [unique[key] for key in sorted(unique)]


class _Groups:
    """Groups that are wanted, for markers that speak of them."""

    def __init__(self, named: tuple[str, ...], default: tuple[str, ...]) -> None:
        self.named = named
        self._all = frozenset({*named, *default})

    def holds(self, marker: str, fixed: Mapping[str, str], extras: Iterable[str] = ()) -> bool:
        """Whether a marker is true there."""
        if not marker:
            return True
        sets = {"extras": frozenset(self.named), "dependency_groups": self._all}
        return any(
            _marker(marker).evaluate({**fixed, **sets, "extra": extra}, "lock_file")
            for extra in ("", *self.named, *extras)
        )


@lru_cache(maxsize=4096)
def _marker(text: str) -> Marker:
    return Marker(text)


def _reached(
    file: PackageFile, fixed: Mapping[str, str], chosen: _Groups, brought: Collection[str]
) -> list[PackageRequirement]:
    """What a graph leads to from the project on, and not only through what others bring."""
    packages: dict[str, list[PackageRequirement]] = {}
    for each in file.requirements:
        packages.setdefault(each.name, []).append(each)
    found: dict[tuple[str, str], tuple[PackageRequirement, set[str]]] = {}
    waiting = [each for each in file.roots if not each.extra or each.extra in chosen.named]
    while waiting:
        need = waiting.pop()
        if not chosen.holds(need.marker, fixed):
            continue
        for package in packages.get(need.name, []):
            if need.version not in ("", package.version):
                continue
            _, extras = found.setdefault((package.name, package.version), (package, {"-"}))
            new = {*need.extras, ""} - extras
            extras |= new
            if package.name not in brought:
                waiting += [each for each in package.needs if each.extra in new]
    return [found[key][0] for key in sorted(found)]
