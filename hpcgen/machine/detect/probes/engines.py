"""Container engines: which are installed, in which version, and whether a user can build with them."""

from __future__ import annotations

import re

from hpcgen.backends.engines import ENGINES
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.seen import Seen

_VERSION = re.compile(r"(?<!\d)\d{1,9}(?:\.\d{1,9}){1,3}")
_NAMES = (
    "apptainer",
    "singularity",
    "charliecloud",
    "podman-hpc",
    "podman",
    "docker",
    "shifter",
    "sarus",
    "sarusctl",
    "enroot",
)
_FORMATS = {
    "apptainer": ["sif"],
    "singularity": ["sif"],
    "charliecloud": ["squashfs", "folder"],
    "podman": ["oci"],
    "podman-hpc": ["oci"],
    "docker": ["oci"],
    "shifter": ["oci"],
}
# What an option of srun shows to be an engine, which is no program.
_PLUGINS = {"enroot": ("pyxis", "--container-image"), "sarusctl": ("sarus-suite", "--edf")}
_PREFERENCE = ("apptainer", "singularity", "charliecloud", "podman-hpc", "podman", "docker")
_SHOWN = 120


def probe(machine: Machine, seen: Seen) -> None:
    found = []
    for name in _NAMES:
        command = f"{name}-version"
        answer = machine.output(command)
        if answer.text is None:
            if not answer.missing:
                seen.notes.append(f"{name}: {answer.why}")
            continue
        if name == "singularity" and "apptainer" in answer.text:
            # Apptainer installs itself under its old name as well.
            continue
        match = _VERSION.search(answer.text)
        version = match[0] if match else None
        if name in _PLUGINS:
            engine, option = _PLUGINS[name]
            seen.notes.append(f"{name} {version or ''} is installed: the engine {engine}, if srun has {option}")
            continue
        if name not in ENGINES:
            seen.notes.append(f"{name} {version or ''} is installed, but profiles cannot name it".replace("  ", " "))
            continue
        found.append(name)
        how = machine.how(command)
        if not ENGINES.find(name).tells_version:
            seen.add(f"containers.engines.{name}", {}, how)
            seen.add_unseen(f"containers.engines.{name}.version", f"{name} does not tell it")
            continue
        seen.add(f"containers.engines.{name}.version", version, how)
        if version is None:
            seen.add(f"containers.engines.{name}", {}, how)
            said = answer.text.split("\n", 1)[0][:_SHOWN]
            seen.add_unseen(f"containers.engines.{name}.version", f"{how} says {said!r}")
    _preferred(found, seen)
    _building(machine, found, seen)


def _preferred(found: list[str], seen: Seen) -> None:
    if not found:
        seen.add_unseen("containers.preferred", "no container engine is on PATH; a module may bring one")
        return
    preferred = next((name for name in _PREFERENCE if name in found), found[0])
    seen.add("containers.preferred", preferred, f"installed, and first of {', '.join(_PREFERENCE)}")
    formats = sorted({kind for name in found for kind in _FORMATS.get(name, [])})
    seen.add("containers.image_formats", formats, "the kinds of images that the installed engines start")


def _building(machine: Machine, found: list[str], seen: Seen) -> None:
    """Whether the user has subordinate ids, as --fakeroot wants, and may make user namespaces."""
    mapped = has_subordinate_ids(machine)
    namespaces = seen.value("system.user_namespaces")
    for name in ("apptainer", "singularity"):
        if name in found and mapped and namespaces:
            seen.add(f"containers.engines.{name}.fakeroot", True, "/etc/subuid and /etc/subgid have this user")
    if namespaces is None:
        seen.add_unseen("containers.unprivileged_build", "whether users may create user namespaces is unknown")
    else:
        able = bool(namespaces) and any(name in found for name in ("apptainer", "charliecloud", "podman", "podman-hpc"))
        seen.add("containers.unprivileged_build", able, "user namespaces, and an engine that builds in them")


def has_subordinate_ids(machine: Machine) -> bool:
    """Whether /etc/subuid and /etc/subgid both give this user ids. Source: subuid(5)."""
    user = machine.environment.get("USER", "")
    lines = [(machine.text(path) or "").split("\n") for path in ("/etc/subuid", "/etc/subgid")]
    return bool(user) and all(any(line.startswith(f"{user}:") for line in part) for part in lines)
