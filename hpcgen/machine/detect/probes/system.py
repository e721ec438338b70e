"""Operating system, C library, kernel, and whether users may make user namespaces."""

from __future__ import annotations

import re

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
