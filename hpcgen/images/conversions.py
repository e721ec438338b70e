"""Single conversions between kinds of images, and the shortest chain of them that works here.

One row says from what to what, which programs it takes, and how the commands look. What hpcgen does itself
(``roots``) takes no program. Facts of the programs: ch-convert(1) and its text (0.31), skopeo-copy(1), buildah-push(1),
buildah-from(1), podman-save(1), Apptainer's "build" reference, unsquashfs and mksquashfs -h; each chain was run.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path

import msgspec

from hpcgen.images import roots
from hpcgen.images.roots import Marks
from hpcgen.images.squashfs import sif_squashfs_offset


class Step(msgspec.Struct, frozen=True):
    """A command, or something that hpcgen does itself; ``undo`` is run if a later part of the chain fails.

    ``about`` is what a person reads.
    """

    about: str = ""
    argv: list[str] = []
    action: Callable[[], None] | None = None
    undo: list[str] = []


class Way(msgspec.Struct, frozen=True):
    """What a conversion is told: source, target, marks of the image, a word that is used once, and the final flag."""

    source: str
    target: str
    marks: Marks
    token: str
    last: bool
    architecture: str = "amd64"


class Conversion(msgspec.Struct, frozen=True):
    """One row. ``cost`` is about how often the image is read and written; of equal chains the first rows win."""

    start: str
    end: str
    programs: tuple[str, ...]
    cost: int
    steps: Callable[[Way], list[Step]]


def _command(*argv: str, undo: Sequence[str] = ()) -> Step:
    return Step(argv=list(argv), undo=list(undo))


def _marked(way: Way) -> Step:
    return Step("add the image's variables and mount points", action=lambda: roots.mark_folder(_path(way), way.marks))


def _path(way: Way) -> Path:
    return Path(way.target)


def _pack(way: Way) -> list[Step]:
    owner = [] if os.geteuid() == 0 else ["--owner=0", "--group=0"]
    left_out = [f"--exclude={name}" for name in ("./.git", "./.gitignore", "./ch/git.pickle")]
    tar = _command("tar", "-C", way.source, "--numeric-owner", *owner, *left_out, "-cf", way.target, ".")
    return [tar, Step("add the image's variables", action=lambda: roots.mark_tar(_path(way), way.marks))]


def _unpack(way: Way) -> list[Step]:
    # Devices are the engine's to give, and only root could make them.
    devices = ["--exclude=./dev/*", "--exclude=dev/*"]
    tar = _command(
        "tar", "-C", way.target, "--numeric-owner", "--delay-directory-restore", *devices, "-xpf", way.source
    )
    return [_command("mkdir", way.target), tar, _marked(way)]


def _unsquash(way: Way) -> list[Step]:
    return [_command("unsquashfs", "-no-progress", "-no-xattrs", "-dest", way.target, way.source), _marked(way)]


def _unsquash_sif(way: Way) -> list[Step]:
    offset = str(sif_squashfs_offset(way.source))
    options = ["-no-progress", "-no-xattrs", "-offset", offset]
    return [_command("unsquashfs", *options, "-dest", way.target, way.source), _marked(way)]


def _squash(way: Way) -> list[Step]:
    options = ["-noappend", "-no-progress", "-no-xattrs", "-all-root"]
    return [_command("mksquashfs", way.source, way.target, *options)]


def _apptainer(program: str, prefix: str, sandbox: bool) -> Callable[[Way], list[Step]]:
    def steps(way: Way) -> list[Step]:
        options = ["--sandbox"] if sandbox else []
        build = _command(program, "build", *options, way.target, f"{prefix}{way.source}")
        return [build, _marked(way)] if sandbox else [build]

    return steps


def _tar_to_oci(way: Way) -> list[Step]:
    level = 6 if way.last else 1
    source, target = Path(way.source), Path(way.target)
    return [
        Step(
            f"write {target.name}: an OCI archive of one layer, with variables and labels",
            action=lambda: roots.tar_to_oci(source, target, way.marks, way.architecture, level),
        )
    ]


def _oci_to_tar(way: Way) -> list[Step]:
    source, target = Path(way.source), Path(way.target)
    return [
        Step(f"join the layers in {target.name}", action=lambda: roots.oci_to_tar(source, target)),
        Step("add the image's variables", action=lambda: roots.mark_tar(target, way.marks)),
    ]


def _skopeo(before: str, after: str) -> Callable[[Way], list[Step]]:
    return lambda way: [_command("skopeo", "copy", "--quiet", f"{before}:{way.source}", f"{after}:{way.target}")]


def _podman_save(way: Way) -> list[Step]:
    return [_command("podman", "save", "--quiet", "--format", "oci-archive", "-o", way.target, way.source)]


def _buildah_push(way: Way) -> list[Step]:
    return [_command("buildah", "push", "--quiet", way.source, f"oci-archive:{way.target}")]


def _buildah_commit(way: Way) -> list[Step]:
    container = f"hpcgen-{way.token}"
    remove = ["buildah", "rm", container]
    return [
        _command("buildah", "from", "--quiet", "--name", container, f"oci-archive:{way.source}", undo=remove),
        _command("buildah", "commit", "--quiet", "--rm", "--format", "oci", container, way.target),
    ]


def _ch_convert(form: str) -> Callable[[Way], list[Step]]:
    return lambda way: [_command("ch-convert", "-i", "ch-image", "-o", form, way.source, way.target)]


def _ch_import(way: Way) -> list[Step]:
    return [_command("ch-image", "import", way.source, way.target, undo=["ch-image", "delete", way.target])]


TABLE = (
    Conversion("podman", "oci-archive", ("skopeo",), 2, _skopeo("containers-storage", "oci-archive")),
    Conversion("podman", "oci-archive", ("podman",), 2, _podman_save),
    Conversion("podman", "oci-archive", ("buildah",), 2, _buildah_push),
    Conversion("docker", "oci-archive", ("docker", "skopeo"), 2, _skopeo("docker-daemon", "oci-archive")),
    Conversion("oci-archive", "podman", ("skopeo",), 2, _skopeo("oci-archive", "containers-storage")),
    Conversion("oci-archive", "podman", ("buildah",), 3, _buildah_commit),
    Conversion("oci-archive", "docker", ("docker", "skopeo"), 2, _skopeo("oci-archive", "docker-daemon")),
    Conversion("oci-archive", "sif", ("apptainer",), 3, _apptainer("apptainer", "oci-archive:", False)),
    Conversion("oci-archive", "sif", ("singularity",), 3, _apptainer("singularity", "oci-archive:", False)),
    Conversion("oci-archive", "tar", (), 2, _oci_to_tar),
    Conversion("tar", "oci-archive", (), 2, _tar_to_oci),
    Conversion("tar", "directory", ("tar",), 2, _unpack),
    Conversion("directory", "tar", ("tar",), 2, _pack),
    Conversion("foreign", "tar", ("tar",), 2, _pack),
    Conversion("directory", "squashfs", ("mksquashfs",), 3, _squash),
    Conversion("squashfs", "directory", ("unsquashfs",), 2, _unsquash),
    Conversion("sif", "directory", ("unsquashfs",), 2, _unsquash_sif),
    Conversion("sif", "directory", ("apptainer",), 2, _apptainer("apptainer", "", True)),
    Conversion("sif", "directory", ("singularity",), 2, _apptainer("singularity", "", True)),
    Conversion("sandbox", "sif", ("apptainer",), 3, _apptainer("apptainer", "", False)),
    Conversion("sandbox", "sif", ("singularity",), 3, _apptainer("singularity", "", False)),
    Conversion("sandbox", "foreign", (), 0, lambda way: []),
    Conversion("ch-image", "directory", ("ch-convert",), 2, _ch_convert("dir")),
    Conversion("ch-image", "squashfs", ("ch-convert",), 3, _ch_convert("squash")),
    Conversion("directory", "ch-image", ("ch-image",), 2, _ch_import),
)
"""Every single conversion. ``foreign`` is a folder that lacks Charliecloud's marks, so that they are added to a copy;
``sandbox`` is such a folder that Apptainer made."""


def chain(start: str, end: str, have: Callable[[str], bool]) -> list[Conversion] | None:
    """The cheapest rows that lead from one kind to the other with programs that ``have`` tells; None if none does."""
    waiting: list[tuple[int, list[int], str]] = [(0, [], start)]
    done: set[str] = set()
    while waiting:
        cost, taken, kind = heapq.heappop(waiting)
        if kind == end:
            return [TABLE[number] for number in taken]
        if kind in done:
            continue
        done.add(kind)
        for number, row in enumerate(TABLE):
            if row.start == kind and row.end not in done and all(have(program) for program in row.programs):
                heapq.heappush(waiting, (cost + row.cost, [*taken, number], row.end))
    return None


def missing(start: str, end: str, have: Callable[[str], bool]) -> list[str]:
    """The fewest programs that would have to be installed; empty if no program helps."""
    absent = sorted({program for row in TABLE for program in row.programs if not have(program)})
    for count in (1, 2, 3):
        for extra in combinations(absent, count):
            if chain(start, end, partial(_with, have, extra)) is not None:
                return list(extra)
    return []


def _with(have: Callable[[str], bool], extra: Sequence[str], program: str) -> bool:
    return program in extra or have(program)
