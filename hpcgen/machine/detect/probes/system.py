"""What the system offers: its release, C library, kernel, user namespaces, environment modules, shared file systems."""

from __future__ import annotations

import re

from hpcgen.core.support.units import some
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.seen import Seen

_SETTING = re.compile(r"([A-Z_]+)=(.*)")
RELEASE = re.compile(rb"GNU C Library [^\n\0]{0,200}? release version (\d{1,9}\.\d{1,9})")
_LIBC = ("/lib64/libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/lib/libc.so.6")
_MAX_LIBC = 16 * 1024 * 1024
_KERNEL = re.compile(r"[A-Za-z0-9._+-]+")
_SWITCHES = {
    "/proc/sys/kernel/unprivileged_userns_clone": "0",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
}
"""Files of the kernel with the value that forbids user namespaces."""


def probe(machine: Machine, seen: Seen) -> None:
    _os_release(machine, seen)
    _glibc(machine, seen)
    _kernel(machine, seen)
    _namespaces(machine, seen)


def os_release(machine: Machine) -> dict[str, str]:
    """The settings of os-release. Source: os-release(5)."""
    return os_settings(machine.text("/etc/os-release") or machine.text("/usr/lib/os-release") or "")


def os_settings(text: str) -> dict[str, str]:
    """The settings in the text of an os-release."""
    found = (_SETTING.fullmatch(line.strip()) for line in text.split("\n"))
    return {match[1]: match[2].strip("\"'") for match in found if match}


def _os_release(machine: Machine, seen: Seen) -> None:
    settings = os_release(machine)
    how = "/etc/os-release"
    seen.add("system.os", settings.get("ID"), how)
    seen.add("system.os_version", settings.get("VERSION_ID"), how)
    if not settings:
        seen.add_unseen("system.os", "no os-release can be read")
    if "VERSION_ID" not in settings:
        seen.add_unseen("system.os_version", "os-release names none")


def _glibc(machine: Machine, seen: Seen) -> None:
    """What the library says of itself: ldd and getconf may belong to another one."""
    for path in _LIBC:
        with machine.blob(path) as blob:
            if blob is None:
                continue
            if blob.size > _MAX_LIBC:
                machine.refused[path] = f"is larger than {_MAX_LIBC} bytes"
                continue
            if match := RELEASE.search(blob.at(0, blob.size)):
                seen.add("system.glibc", match[1].decode(), f"{path}, by its own version text")
                return
    seen.add_unseen("system.glibc", f"no GNU C library at {' or '.join(_LIBC)}")


def _kernel(machine: Machine, seen: Seen) -> None:
    release = machine.line("/proc/sys/kernel/osrelease")
    if release and _KERNEL.fullmatch(release):
        seen.add("system.kernel", release, "/proc/sys/kernel/osrelease")
    else:
        seen.add_unseen("system.kernel", "/proc/sys/kernel/osrelease cannot be read")


def _namespaces(machine: Machine, seen: Seen) -> None:
    """Three switches can forbid them. Sources: user_namespaces(7), Debian's and Ubuntu's kernel settings."""
    most = machine.line("/proc/sys/user/max_user_namespaces")
    if most is None or not re.fullmatch("[0-9]{1,18}", most):
        seen.add_unseen("system.user_namespaces", "/proc/sys/user/max_user_namespaces cannot be read")
        return
    closed = [path for path, forbidding in _SWITCHES.items() if machine.line(path) == forbidding]
    if int(most) == 0:
        closed.insert(0, "/proc/sys/user/max_user_namespaces")
    seen.add("system.user_namespaces", not closed, ", ".join(closed) or "/proc/sys/user/max_user_namespaces")


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+/-]{0,199}")
WORTH_KNOWING = re.compile(r"(apptainer|singularity|charliecloud|podman|enroot|sarus|.*mpi.*|.*mpich.*)(/.*)?", re.I)
_SHOWN = 20


def see_modules(machine: Machine, seen: Seen) -> None:
    """``system.modules``, and notes of modules that bring engines or an MPI."""
    init = machine.module_init()
    if init is None:
        return
    seen.add("system.modules", "module", init)
    names = [name for name in available(machine) if WORTH_KNOWING.fullmatch(name)]
    if names:
        seen.notes.append(f"modules of engines and MPI: {some(names, _SHOWN)}")
    elif machine.output("module-avail").text is None:
        seen.notes.append(f"modules: {machine.output('module-avail').why}")


def loaded(machine: Machine) -> list[str]:
    """Modules that are loaded now."""
    names = machine.environment.get("LOADEDMODULES", "").split(":")
    return [name for name in names if _NAME.fullmatch(name)]


def available(machine: Machine) -> list[str]:
    """Modules that ``module -t avail`` names, without the folders that they lie in."""
    lines = (line.strip().removesuffix("(default)") for line in (machine.output("module-avail").text or "").split("\n"))
    return list(dict.fromkeys(line for line in lines if _NAME.fullmatch(line) and not line.endswith("/")))


KINDS = {
    "lustre": "lustre",
    "gpfs": "gpfs",
    "nfs": "nfs",
    "nfs4": "nfs",
    "beegfs": "beegfs",
    "ceph": "cephfs",
    "fuse.ceph": "cephfs",
    "fuse.dfuse": "daos",
    "fuse.daos": "daos",
}
_OF_THE_IMAGE = {"bin", "boot", "etc", "lib", "lib64", "opt", "root", "run", "sbin", "tmp", "usr", "var"}
_PATH = re.compile(r"/[A-Za-z0-9._/+@%:,=-]{1,200}")
_MOST = 30


def see_file_systems(machine: Machine, seen: Seen) -> None:
    """Facts below ``file_systems``, by a name made of the path. What would hide folders of images is not bound."""
    found = 0
    for line in (machine.text("/proc/mounts") or "").split("\n"):
        parts = line.split(" ")
        if len(parts) < 4 or parts[2] not in KINDS or not _PATH.fullmatch(parts[1]):
            continue
        name = re.sub(r"[^a-z0-9]+", "-", parts[1].lower()).strip("-")[:60]
        if found >= _MOST:
            seen.notes.append(f"/proc/mounts has more than {_MOST} shared file systems; the rest was skipped")
            return
        found += 1
        bind = {} if parts[1].split("/")[1] in _OF_THE_IMAGE else {"bind": True}
        seen.add(f"file_systems.{name}", {"kind": KINDS[parts[2]], "path": parts[1], **bind}, "/proc/mounts")
