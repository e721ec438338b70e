"""Whether what mounts an engine's squashfs and SIF files reads zstd: the kernel, squashfuse, or either.

An installation may mount in more than one way, by its configuration and by who starts it. All of its ways have to read
zstd. Sources: Apptainer 1.5, internal/pkg/image/driver/imagedriver.go (squashfuse_ll or squashfuse, of its own folder
or of PATH, without starter-suid and, with it, where ``allow setuid-mount squashfs`` does not let the kernel mount);
SingularityCE 4.5, internal/pkg/runtime/launcher/native/launcher_linux.go (the kernel with starter-suid, squashfuse in
user namespaces); ch-run(1), "Image format" (libsquashfuse_ll, where it is linked with it).
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import msgspec

from hpcgen.machine.detect.elf import Library, read_library
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.seen import Seen

CONFIGS = (
    "/boot/config-{release}",
    "/proc/config.gz",
    "/lib/modules/{release}/config",
    "/lib/modules/{release}/build/.config",
)
"""Where distributions keep what the kernel was built with, by its release; the first that can be read is taken."""
CONFIG_LINES = r"^(# )?CONFIG_SQUASHFS(_ZSTD)?[= ]"
_SET = re.compile(r"^CONFIG_SQUASHFS_ZSTD=[ym]$", re.MULTILINE)
_HELPERS = ("squashfuse_ll", "squashfuse")
PROGRAMS = ("apptainer", "singularity", "ch-run", *_HELPERS)
"""Those whose files are looked at, on PATH."""
_LIBRARIES = (
    "/lib64",
    "/usr/lib64",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/lib",
)


class _Reading(msgspec.Struct, frozen=True):
    """Whether something reads zstd, None where that is not known; and how it is known, or why not."""

    zstd: bool | None
    how: str


def probe(machine: Machine, seen: Seen) -> None:
    for engine, program in (("apptainer", "apptainer"), ("singularity", "singularity"), ("charliecloud", "ch-run")):
        path = f"containers.engines.{engine}"
        if not any(fact == path or fact.startswith(f"{path}.") for fact in seen.facts):
            continue
        ways = _ways(machine, program, seen.value("system.kernel"))
        if unable := [way for way in ways if way.zstd is False]:
            seen.add(f"{path}.squashfs", "gzip", unable[0].how)
        elif unknown := [way for way in ways if way.zstd is None]:
            seen.add_unseen(f"{path}.squashfs", unknown[0].how)
        else:
            seen.add(f"{path}.squashfs", "zstd", "; ".join(way.how for way in ways))


def _ways(machine: Machine, program: str, release: str | None) -> list[_Reading]:
    """What may mount the engine's files; one at least."""
    place = machine.program(program)
    real = machine.real(place) if place is not None else None
    if place is None or real is None:
        return [_Reading(None, f"{program} is not on PATH as a file")]
    if program == "ch-run":
        return [_of_file(machine, real)]
    own = f"{PurePosixPath(real).parent.parent}/libexec/{program}/bin"
    if not machine.is_file(f"{own}/starter") and not machine.is_file(f"{own}/starter-suid"):
        return [_Reading(None, f"{own} has no starter, which tells how {program} mounts")]
    helper = _helper(machine, own)
    by_squashfuse = [_of_file(machine, helper)] if helper is not None else []
    if machine.is_file(f"{own}/starter-suid"):
        return [_of_kernel(machine, release), *by_squashfuse]
    return by_squashfuse or [_Reading(None, f"{program} is not setuid, and finds no squashfuse")]


def _helper(machine: Machine, own: str) -> str | None:
    """The squashfuse that an engine finds: its own first, by name."""
    for name in _HELPERS:
        path = f"{own}/{name}" if machine.is_file(f"{own}/{name}") else machine.program(name)
        if path is not None:
            return path
    return None


def _of_kernel(machine: Machine, release: str | None) -> _Reading:
    for pattern in CONFIGS:
        path = pattern.format(release=release)
        text = machine.text(path) if release is not None or path == pattern else None
        # A file without the line that all kernels since 2.6.29 have tells nothing.
        if text is None or "CONFIG_SQUASHFS" not in text:
            continue
        match = _SET.search(text)
        return _Reading(bool(match), f"{path} has {match[0] if match else 'no CONFIG_SQUASHFS_ZSTD'}")
    return _Reading(None, f"none of {', '.join(CONFIGS)} can be read".format(release=release or "RELEASE"))


def _of_file(machine: Machine, path: str, follow: bool = True) -> _Reading:
    """A program or library with squashfuse in it: it decompresses by the libraries that it needs.

    Source: squashfuse's decompress.c and m4/squashfuse_decompress.m4. One that needs no libz either holds them itself.
    """
    library = _library(machine, path)
    if library is None:
        return _Reading(None, f"{path} cannot be read as a program")
    for name in library.needed:
        if name.startswith("libzstd.so"):
            return _Reading(True, f"{path} needs {name}")
    for name in library.needed:
        if name.startswith("libsquashfuse"):
            found = [f"{folder}/{name}" for folder in (*library.runpath, *_LIBRARIES)]
            place = next((each for each in found if each.startswith("/") and machine.is_file(each)), None)
            # No library of squashfuse needs another one.
            return _of_file(machine, place, follow=False) if place and follow else _Reading(None, f"{name} is missing")
    if any(name.startswith("libz.so") for name in library.needed):
        return _Reading(False, f"{path} needs libz and no libzstd")
    return _Reading(None, f"{path} needs no library that decompresses")


def _library(machine: Machine, path: str) -> Library | None:
    with machine.blob(path) as blob:
        return read_library(blob) if blob is not None else None
