"""Single libraries of the host that are bound into an image, beside what the image has of the same name."""

from __future__ import annotations

import re

from hpcgen.backends.hardware.c_library import of_glibc
from hpcgen.core.support.units import some
from hpcgen.planning.contract.case import Check, ContractCase

_LIBRARY = re.compile(r"(lib[A-Za-z0-9_+.-]*?|ld-linux[a-z0-9_-]*)\.so\.(\d+(?:\.\d+)*)")
_OF_IMAGE = "/usr/lib64"
"""Distributions of RPM keep their libraries there, those of dpkg nothing but the loader's link."""


def own_libraries(case: ContractCase) -> str:
    """Which of these the image has itself, by its packages: one SONAME serves programs and the host alike."""
    installed = set(case.packages)
    found = [
        f"{name} ({package})"
        for name in _bound(case).values()
        if (package := next((each for each in debian_names(name) if each in installed), ""))
    ]
    return f"; the image has {some(found)} itself, which serves as well" if found else ""


def hidden_libraries(case: ContractCase) -> list[Check]:
    """The host's are of the C library, or lie where the base keeps its own, which programs of the image then miss."""
    bound = _bound(case)
    if parts := [name for name in bound.values() if of_glibc(name)]:
        reason = f"{some(parts)} of the host's C library would be loaded beside other parts of the image's"
        return [Check("binds", "broken", reason, "do not bind it: the image has its own", "", "mpi.binds")]
    base = case.plan.block("base")
    row = case.releases.get(base.name) if base is not None else None
    hiding = [name for target, name in bound.items() if target.rsplit("/", 1)[0] == _OF_IMAGE]
    if base is None or row is None or row.values.get("package_manager") in (None, "apt") or not hiding:
        return []
    reason = (
        f"{some(hiding)} of the host are bound into {_OF_IMAGE}, where {base.name} {base.version} keeps its own: "
        "programs of the image load the host's of these, which may be older"
    )
    remedy = "use a base of Debian or Ubuntu, which keeps nothing there: image.distribution in the profile"
    return [Check("binds", "doubtful", reason, remedy, "", "mpi.binds")]


def debian_names(soname: str) -> list[str]:
    """What packages of Debian and Ubuntu with a library are called. Source: Debian Policy, 8.1."""
    match = _LIBRARY.fullmatch(soname)
    if match is None:
        return []
    name, number = match[1].lower().replace("_", "-"), match[2]
    joined = f"{name}{'-' if name[-1].isdigit() else ''}{number}"
    return [joined, f"{joined}t64"]


def _bound(case: ContractCase) -> dict[str, str]:
    """The name of each such library by where it is seen inside."""
    targets = [bind.target for bind in case.host.binds if bind.file] if case.host is not None else []
    return {target: name for target in targets if _LIBRARY.fullmatch(name := target.rsplit("/", 1)[1])}
