"""File systems that nodes share, from /proc/mounts. Local disks and what the kernel makes up are no facts of a site."""

from __future__ import annotations

import re

from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.seen import Seen

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


def probe(machine: Machine, seen: Seen) -> None:
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
