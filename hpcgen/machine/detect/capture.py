"""Writes what detection reads of this machine as a small tree, for those who have to understand it elsewhere."""

from __future__ import annotations

import json
import os
import re
import struct
import tempfile
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from hpcgen._version import __version__
from hpcgen.core.errors import OutputError
from hpcgen.core.secret_rules import without_secrets
from hpcgen.core.support.file_formats import CAPTURE
from hpcgen.machine.detect.detection import detect
from hpcgen.machine.detect.elf import Library, find_text, read_library
from hpcgen.machine.detect.machine import Recorder
from hpcgen.machine.detect.mpi_library import SYMBOLS, VENDOR, VERSIONS
from hpcgen.machine.detect.probes.cpu import SHARED_MEMORY
from hpcgen.machine.detect.probes.images import BASE, LOCAL
from hpcgen.machine.detect.probes.squashfs import CONFIG_LINES, PROGRAMS
from hpcgen.machine.detect.probes.system import KINDS, RELEASE, WORTH_KNOWING
from hpcgen.machine.detect.seen import Seen

# What a captured tree keeps of each file: the lines that detection reads, without what is private.

_CPU_KEYS = ("processor", "vendor_id", "model name", "physical id", "core id", "CPU implementer", "CPU part")
_ONCE = ("flags", "Features")
_QUEUE = re.compile(r"Queue:|\s*(queue_type|started|enabled|resources_max\.(nodect|walltime))\s*=")

_CLUSTER_QUEUE = re.compile(r"(qname|qtype|h_rt|pe_list) ")

Reduction = Callable[[str], str]


class Private:
    """Takes this user's and this machine's names out of text and paths, and secrets.

    ``user``, ``home``, ``node``: names to be replaced by ``user``, ``/home/user`` and ``node``. root's own names are
    nobody's.
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
        return _lines(text, lambda line: line.startswith(("MaxArraySize", "SlurmdSpoolDir")))
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
    """Shared file systems, without the names of their servers and without options; and the size of /dev/shm."""
    parts = [line.split(" ") for line in text.split("\n")]
    shared = (f"shared {part[1]} {part[2]} rw 0 0\n" for part in parts if len(part) > 3 and part[2] in KINDS)
    memory = re.search(SHARED_MEMORY, text, re.MULTILINE)
    return "".join([*shared, *([f"tmpfs /dev/shm tmpfs rw,size={memory[1]}k 0 0\n"] if memory else [])])


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
    ("/proc/*limits", _matching(r"^Max locked memory ")),
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


DROPPED = (
    "user names and home folders (they are `user` and /home/user)",
    "this machine's name (it is `node`) and the names of file servers",
    "user names and passwords in addresses of mirrors and proxies",
    "serial numbers and UUIDs, users and groups of queues, names of nodes",
    "contents of certificates and libraries: only name, dependencies and version of a library are kept",
    "everything except the lines, variables and modules that detection reads",
)
"""What a captured tree does not have, for people."""

_README = """\
Files of a machine that `hpcgen site new --detect` reads, written by `hpcgen site capture`.
  root/          files by their path; links as they were
  commands/      output of programs; NAME.failed says why one failed
  environment    variables
  capture.json   the number of this layout, and the hpcgen that wrote it
Not included: {dropped}.
Addresses of mirrors and proxies, and paths of software, are in it: review it before you pass it on.
"""
_LIST_PATHS = ("PATH", "LD_LIBRARY_PATH")


class Captured(msgspec.Struct, frozen=True):
    """What was written: how many files and answers, and what was seen on the way."""

    files: int
    answers: int
    seen: Seen


def capture(machine: Recorder, folder: Path) -> Captured:
    """Detect, and write all that was read into an empty or new folder, whole or not at all.

    OutputError: the folder has something in it, or cannot be written.
    """
    _check_empty(folder)
    seen = detect(machine)
    environment = machine.environment
    user = environment.get("USER", "")
    private = Private(user, environment.get("HOME", ""), os.uname().nodename)
    try:
        with tempfile.TemporaryDirectory(prefix=".hpcgen-", dir=folder.absolute().parent) as aside:
            whole = Path(aside) / "tree"
            files = _write_root(machine, whole / "root", user, private)
            answers = _write_answers(machine, whole / "commands", private)
            lines = [f"{name}={private(value)}\n" for name, value in _variables(machine).items()]
            (whole / "environment").write_text("".join(lines), encoding="utf-8")
            number = {CAPTURE.field: CAPTURE.newest, "hpcgen": __version__}
            (whole / "capture.json").write_text(json.dumps(number) + "\n", encoding="utf-8")
            (whole / "README").write_text(_README.format(dropped="; ".join(DROPPED)), encoding="utf-8")
            whole.chmod(0o755)
            whole.rename(folder)
    except OSError as failure:
        raise OutputError(
            f"{folder} cannot be written: {failure.strerror or failure}",
            remedy="name a folder that you may write, on a disk with room",
        ) from failure
    return Captured(files, answers, seen)


def _check_empty(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise OutputError(f"{folder} is not a folder", remedy="name a new folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise OutputError(f"{folder} is not empty", remedy="name a new folder")
    if not folder.absolute().parent.is_dir():
        raise OutputError(f"{folder.absolute().parent} does not exist", remedy="create it, or name another folder")


def _write_root(machine: Recorder, root: Path, user: str, private: Private) -> int:
    """Folders, links, texts and stubs of libraries; what was only looked for is an empty file."""
    root.mkdir(parents=True)
    files = 0
    for path, target in sorted(machine.links.items()):
        place = _place(root, private(path))
        place.symlink_to(private(target))
    for path in sorted(machine.existing):
        place = root / private(path).lstrip("/")
        if machine.is_dir(path):
            place.mkdir(parents=True, exist_ok=True)
        elif machine.is_file(path):
            _place(root, private(path)).write_bytes(_content(machine, path, user, private))
            files += 1
    return files


def _place(root: Path, path: str) -> Path:
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _content(machine: Recorder, path: str, user: str, private: Private) -> bytes:
    if path in machine.texts:
        return private(reduce_file(path, machine.texts[path], user)).encode()
    if path in machine.blobs:
        return _excerpt(machine, path)
    return b""


def _excerpt(machine: Recorder, path: str) -> bytes:
    """Of a library what detection reads of it."""
    with machine.blob(path) as blob:
        if blob is None:
            return b""
        library = read_library(blob, SYMBOLS)
        patterns = (RELEASE,) if path.rsplit("/", 1)[-1].startswith("libc") else (VENDOR, *VERSIONS.values())
        matches = [match[0] for pattern in patterns if (match := find_text(blob, pattern))]
        architecture = "aarch64" if blob.at(18, 2) == b"\xb7\0" else "x86_64"
    text = b"\0" + b"\0".join(matches) + b"\0" if matches else b""
    return stub(library if library is not None else Library(""), text, architecture)


def _write_answers(machine: Recorder, folder: Path, private: Private) -> int:
    folder.mkdir()
    for name, answer in machine.answers.items():
        if answer.text is not None:
            (folder / name).write_text(private(reduce_output(name, answer.text)), encoding="utf-8")
        elif not answer.missing:
            (folder / f"{name}.failed").write_text(private(answer.why) + "\n", encoding="utf-8")
    return len([answer for answer in machine.answers.values() if answer.text is not None])


def _variables(machine: Recorder) -> dict[str, str]:
    """Those that detection reads; of search paths only the folders that it found something in."""
    found = {}
    for name, value in machine.environment.items():
        if name in _LIST_PATHS:
            value = ":".join(part for part in value.split(":") if _holds_any(machine, name, part))
        elif name == "LOADEDMODULES":
            value = ":".join(part for part in value.split(":") if "mpi" in part.lower())
        if value:
            found[name] = value
    return found


def _holds_any(machine: Recorder, name: str, folder: str) -> bool:
    if not folder.startswith("/"):
        return False
    if name == "LD_LIBRARY_PATH":
        return any(path.startswith(f"{folder.rstrip('/')}/lib") for path in (*machine.existing, *machine.links))
    return any(machine.is_file(f"{folder}/{program}") for program in ("mpiexec", "mpirun", *PROGRAMS))


# Writes libraries with nothing but what :mod:`hpcgen.machine.detect.elf` reads: captured trees are small.

_MACHINES = {"x86_64": 62, "aarch64": 183}
_HEADER = 64 + 2 * 56


class _Names:
    """A table of names."""

    def __init__(self) -> None:
        self.content = b"\0"

    def __call__(self, text: str) -> int:
        place = len(self.content)
        self.content += text.encode("ascii") + b"\0"
        return place


def stub(library: Library, text: bytes = b"", architecture: str = "x86_64") -> bytes:
    """A library with this name, these needs and these texts, and no code.

    ``text``: what else is in it, for those who search it for a version.

    >>> stub(Library("libmpi.so.12"))[:4]
    b'\\x7fELF'
    """
    names = _Names()
    tags = [(1, names(name)) for name in library.needed]
    if library.soname:
        tags.append((14, names(library.soname)))
    if library.runpath:
        tags.append((29, names(":".join(library.runpath))))
    versions = {"libc.so.6": ("GLIBC", library.glibc), "libstdc++.so.6": ("GLIBCXX", library.glibcxx)}
    asked = [(file, f"{prefix}_{version}") for file, (prefix, version) in versions.items() if version]
    needs = b"".join(_needs(names, *each, last=each is asked[-1]) for each in asked)
    places = [(names(symbol), value.encode() + b"\0") for symbol, value in library.strings.items()]
    # 5 tags more: names, their size, symbols, needs and their number; and the end.
    dynamic_size = 16 * (len(tags) + 6)
    needs_at = _HEADER + dynamic_size
    symbols_at = needs_at + len(needs)
    names_at = symbols_at + 24 * (len(places) + 1)
    values_at = names_at + len(names.content)
    symbols, values = bytes(24), b""
    for name, value in places:
        symbols += struct.pack("<IBBHQQ", name, 0x11, 0, 1, values_at + len(values), len(value))
        values += value
    tags += [(5, names_at), (10, len(names.content)), (6, symbols_at)]
    tags += [(0x6FFFFFFE, needs_at), (0x6FFFFFFF, len(asked))] if needs else []
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in tags).ljust(dynamic_size, b"\0")
    body = dynamic + needs + symbols + names.content + values + text
    return _header(_HEADER + len(body), dynamic_size, architecture) + body


def _header(size: int, dynamic_size: int, architecture: str) -> bytes:
    identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head = struct.pack("<HHIQQQIHHHHHH", 3, _MACHINES[architecture], 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, size, size, 4096)
    dynamic = struct.pack("<IIQQQQQQ", 2, 4, _HEADER, _HEADER, _HEADER, dynamic_size, dynamic_size, 8)
    return identity + head + load + dynamic


def _needs(names: _Names, file: str, version: str, last: bool) -> bytes:
    """One need: a symbol version of a library, and the way to the next."""
    entry = struct.pack("<HHIII", 1, 1, names(file), 16, 0 if last else 32)
    return entry + struct.pack("<IHHII", 0, 0, 2, names(version), 0)
