"""Base images that lie in the machine's own image stores already: a build with them asks no registry.

Only names are read, from the stores' own files: asking an engine could make it set up its store. Sources: ch-image(1),
"Storage directory"; containers-storage.conf(5).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.probes.system import os_release
from hpcgen.machine.detect.seen import Seen

_DISTRIBUTIONS = ("debian", "ubuntu")
"""Those whose images have the names of the distributions themselves."""
BASE = re.compile(rf"({'|'.join(_DISTRIBUTIONS)}):\d+(\.\d+)?")
_GRAPHROOT = re.compile(r'^[ \t]*graphroot[ \t]*=[ \t]*"(/[^"\n]+)"', re.MULTILINE)
LOCAL = "localhost/"
_MAX_INDEX = 16 * 1024 * 1024


def probe(machine: Machine, seen: Seen) -> None:
    """``network.mirrors.images`` and ``image.distribution``."""
    found: dict[str, dict[str, str]] = {}
    for name in charliecloud_images(machine):
        if BASE.fullmatch(name):
            found.setdefault(name, {})["charliecloud"] = name
    for name in podman_images(machine):
        base = name.removeprefix(LOCAL)
        if name.startswith(LOCAL) and BASE.fullmatch(base):
            found.setdefault(base, {})["docker"] = name
    if not found:
        return
    how = "names in the image stores of ch-image and podman"
    seen.add("network.mirrors.images", dict(sorted(found.items())), how)
    own = os_release(machine).get("ID", "")
    distributions = sorted({name.partition(":")[0] for name in found}, key=lambda name: (name != own, name))
    seen.add("image.distribution", distributions[0], f"its base image is here; {how}")


def charliecloud_images(machine: Machine) -> list[str]:
    """Base images in ch-image's storage."""
    storage = machine.environment.get("CH_IMAGE_STORAGE") or f"/var/tmp/{machine.environment.get('USER', '')}.ch"
    names = [name for base in _DISTRIBUTIONS for name in machine.names(f"{storage}/img", f"{base}+*")]
    return [name.replace("+", ":") for name in names]


def podman_images(machine: Machine) -> list[str]:
    """Images in the storage that podman and buildah share."""
    return [name for root in _storage(machine) for name in _names(machine, root)]


def _storage(machine: Machine) -> list[str]:
    home = machine.environment.get("HOME", "")
    settings = [machine.environment.get("CONTAINERS_STORAGE_CONF", "")]
    settings += [f"{home}/.config/containers/storage.conf"] if home else []
    for path in settings:
        match = _GRAPHROOT.search(machine.text(path) or "") if path else None
        if match:
            return [match[1]]
    own = (
        "/var/lib/containers/storage"
        if machine.environment.get("USER") == "root"
        else f"{home}/.local/share/containers/storage"
    )
    return [own]


def _names(machine: Machine, root: str) -> Iterator[str]:
    for driver in ("overlay", "vfs", "btrfs"):
        text = machine.text(f"{root}/{driver}-images/images.json", _MAX_INDEX)
        if not text:
            continue
        try:
            images = json.loads(text)
        except (ValueError, RecursionError):
            continue
        for image in images if isinstance(images, list) else []:
            names = image.get("names") if isinstance(image, dict) else None
            yield from (name for name in names or [] if isinstance(name, str) and name.isprintable())
