"""What a captured tree keeps of each file: the lines that detection reads, without what is private."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from hpcgen.core.secret_rules import without_secrets
from hpcgen.machine.detect.probes.file_systems import KINDS
from hpcgen.machine.detect.probes.images import BASE, LOCAL
from hpcgen.machine.detect.probes.modules import WORTH_KNOWING
from hpcgen.machine.detect.probes.squashfs import CONFIG_LINES

_CPU_KEYS = ("processor", "vendor_id", "model name", "physical id", "core id", "CPU implementer", "CPU part")
_ONCE = ("flags", "Features")
_QUEUE = re.compile(r"Queue:|\s*(queue_type|started|enabled|resources_max\.(nodect|walltime))\s*=")

_CLUSTER_QUEUE = re.compile(r"(qname|qtype|h_rt|pe_list) ")

Reduction = Callable[[str], str]


class Private:
    """Takes this user's and this machine's names out of text and paths, and secrets.

    Parameters
    ----------
    user, home, node: names to be replaced by ``user``, ``/home/user`` and ``node``. root's own names are nobody's.
    """

    def __init__(self, user: str, home: str, node: str) -> None:
        self._pairs: list[tuple[re.Pattern[str], str]] = []
        if len(home) > 1 and user != "root":
            self._pairs.append((re.compile(re.escape(home.rstrip("/")) + r"(?![A-Za-z0-9._-])"), "/home/user"))
        short = node.partition(".")[0]
        for name, instead in ((node, "node"), (short, "node"), (user if user != "root" else "", "user")):
            if len(name) >= 3 and name not in ("localhost", "user", "node"):
                self._pairs.append((re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])"), instead))

    def __call__(self, text: str) -> str:
        """The text without them. What stands in their place is left out by detection as they are."""
        text = without_secrets(text, mask="hidden")
        for pattern, instead in self._pairs:
            text = pattern.sub(instead, text)
        return text


def reduce_file(path: str, text: str, user: str) -> str:
    """The lines of a file that detection reads."""
    if path in ("/etc/subuid", "/etc/subgid"):
        return _lines(text, lambda line: line.startswith(f"{user}:"))
    for pattern, reduction in _FILES:
        if fnmatchcase(path, pattern):
            return reduction(text)
    return text


def reduce_output(name: str, text: str) -> str:
    """The lines of a program's output that detection reads."""
    if name == "scontrol-node":
        match = re.search(r"\bPartitions=\S+", text)
        return f"{match[0]}\n" if match else ""
    if name == "scontrol-config":
        return _lines(text, lambda line: line.startswith("MaxArraySize"))
    if name == "qstat-queues":
        return _lines(text, lambda line: bool(_QUEUE.match(line)))
    if name == "qconf-queues":
        return _lines(text, lambda line: bool(_CLUSTER_QUEUE.match(line)))
    if name == "module-avail":
        return _lines(text, lambda line: bool(WORTH_KNOWING.fullmatch(line.strip().removesuffix("(default)"))))
    if name.endswith("-version"):
        return "\n".join(text.split("\n")[:5])
    return text


def _lines(text: str, wanted: Callable[[str], bool]) -> str:
    return "".join(f"{line}\n" for line in text.split("\n") if wanted(line))


def _matching(pattern: str) -> Reduction:
    compiled = re.compile(pattern)
    return lambda text: _lines(text, lambda line: bool(compiled.search(line)))


def _cpuinfo(text: str) -> str:
    """What tells CPUs apart, and the flags of the first: a node with 256 of them has half a megabyte of flags."""
    kept: list[str] = []
    seen: set[str] = set()
    for line in text.split("\n"):
        key = line.partition(":")[0].strip()
        if key in _CPU_KEYS or (key in _ONCE and key not in seen):
            kept.append(line)
        elif not line and kept and kept[-1]:
            kept.append("")
        seen.add(key)
    return "\n".join(kept) + "\n"


def _mounts(text: str) -> str:
    """Shared file systems, without the names of their servers and without options."""
    parts = [line.split(" ") for line in text.split("\n")]
    return "".join(f"shared {part[1]} {part[2]} rw 0 0\n" for part in parts if len(part) > 3 and part[2] in KINDS)


def _images(text: str) -> str:
    """Names of base images; what else a store has is nobody's business."""
    try:
        images = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    names = [name for image in images if isinstance(image, dict) for name in image.get("names") or []]
    kept = [name for name in names if isinstance(name, str) and BASE.fullmatch(name.removeprefix(LOCAL))]
    return json.dumps([{"names": kept}]) + "\n"


_FILES: tuple[tuple[str, Reduction], ...] = (
    ("/proc/cpuinfo", _cpuinfo),
    ("/proc/meminfo", _matching(r"^MemTotal:")),
    ("/proc/*mounts", _mounts),
    ("/proc/driver/nvidia/gpus/*/information", _matching(r"^Model:")),
    ("/proc/driver/nvidia/version", _matching(r"^NVRM version:")),
    ("/sys/class/kfd/*", _matching(r"^gfx_target_version ")),
    ("/sys/devices/virtual/kfd/*", _matching(r"^gfx_target_version ")),
    ("/etc/apt/sources.list", _matching(r"^\s*deb\s")),
    ("/etc/apt/sources.list.d/*.list", _matching(r"^\s*deb\s")),
    ("/etc/apt/sources.list.d/*.sources", _matching(r"^(\s*$|[^#])")),
    ("*pip.conf", _matching(r"^\s*index[-_]url\s*[=:]")),
    ("*storage.conf", _matching(r"^\s*graphroot\s*=")),
    ("*-images/images.json", _images),
    ("/boot/config-*", _matching(CONFIG_LINES)),
    ("/proc/config.gz", _matching(CONFIG_LINES)),
    ("*/modules/*/config", _matching(CONFIG_LINES)),
    ("*/.config", _matching(CONFIG_LINES)),
    ("*/plugstack.conf*", _matching(r"earplug\.so")),
    ("*/pkgconfig/*.pc", _matching(r"^Version:")),
    ("*/os-release", _matching(r"^(ID|VERSION_ID|VERSION_CODENAME|PRETTY_NAME)=")),
)
