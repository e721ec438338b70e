"""Images in the store of Podman, Docker or ch-image: is one there, what it says of itself, its files without a start.

podman and docker copy files out of a container that was made and never started; buildah mounts one. The container
is removed again, whatever happens.
"""

from __future__ import annotations

import io
import os
import posixpath
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from hpcgen.core.errors import InputError, MissingToolError, UnknownNameError
from hpcgen.core.model.image_paths import KIT
from hpcgen.core.support.placing import folder_bytes
from hpcgen.core.support.processes import own_module
from hpcgen.core.support.quoting import line
from hpcgen.images.archive import content, members
from hpcgen.images.commands import ask
from hpcgen.images.folder import MAX_FILE, folders_of, list_folder, read_folder
from hpcgen.images.kinds.archives import skopeo
from hpcgen.images.kinds.base import (
    ConversionRule,
    ConversionStep,
    ConversionTask,
    ImageKind,
    by_command,
    conversion_command,
)
from hpcgen.images.marks import Marks
from hpcgen.images.reading.files import ImageFileSource
from hpcgen.images.reading.sources import FolderSource, exported

_SAVE = by_command("podman", "save", "--quiet", "--format", "oci-archive", "-o", "{target}", "{source}")
_PUSH = by_command("buildah", "push", "--quiet", "{source}", "oci-archive:{target}")
_ABSENT = ("no such image", "not known", "image not known", "No such image", "no such object")


class StoredImage(msgspec.Struct, frozen=True):
    """What a store says of an image: ``labels``, ``environment``, ``bytes`` on the disk, ``digest``, ``id``."""

    labels: dict[str, str] = {}
    environment: dict[str, str] = {}
    bytes: int | None = None
    digest: str = ""
    id: str = ""

    @property
    def known_digest(self) -> str:
        """The digest with its algorithm; "" where what the store says is none."""
        found = re.fullmatch(r"(?:sha256:)?([0-9a-f]{64})", self.digest)
        return f"sha256:{found[1]}" if found is not None else ""


def _stored(kind: str, program: str, name: str) -> StoredImage:
    """What the store of podman or docker says of an image; errors as :func:`_told`."""
    return _facts(_told(kind, program, name))


def _told(kind: str, program: str, name: str) -> dict[str, Any]:
    """The same in the words of the engine.

    UnknownNameError: there is no such image. MissingToolError: no program reads this store here.
    """
    answer = ask([program, *_inspect(program), name])
    if answer.status:
        if any(word in answer.complaint for word in _ABSENT):
            raise UnknownNameError(f"{kind} has no image {name}", remedy=f"{kind} images lists those it has")
        raise InputError(
            f"{Path(program).name} cannot inspect {name}: {answer.last_line}",
            remedy="fix the reported problem; `hpcgen inspect` runs the same command",
        )
    try:
        told = msgspec.json.decode(answer.output)
    except (ValueError, RecursionError) as failure:
        raise InputError(
            f"{Path(program).name} does not print JSON for {name}",
            remedy=f"check that {program} is the engine itself and not a wrapper that prints something else",
        ) from failure
    first = told[0] if isinstance(told, list) and told else told
    return first if isinstance(first, dict) else {}


def _inspect(program: str) -> list[str]:
    return ["inspect", "--type", "image"] if Path(program).name == "buildah" else ["image", "inspect"]


def _config_of(told: dict[str, Any]) -> dict[str, Any]:
    """buildah shows the image's configuration as OCI has it, podman and docker in fields of their own."""
    oci = told.get("OCIv1") or {}
    config = told.get("Config") if isinstance(told.get("Config"), dict) else oci.get("config") or {}
    return config if isinstance(config, dict) else {}


def _facts(told: dict[str, Any]) -> StoredImage:
    config = _config_of(told)
    pairs = (str(each).partition("=") for each in config.get("Env") or [])
    size = told.get("Size")
    return StoredImage(
        labels={str(key): str(value) for key, value in (config.get("Labels") or {}).items()},
        environment={name: value for name, _, value in pairs},
        bytes=size if isinstance(size, int) else None,
        id=str(told.get("Id") or told.get("FromImageID") or ""),
        digest=str(told.get("Digest") or told.get("FromImageDigest") or told.get("Id") or ""),
    )


def _read(program: str, name: str, paths: Sequence[str]) -> dict[str, bytes]:
    if Path(program).name == "buildah":
        return _read_mounted(program, name, paths)
    with container_of(program, name, ["create", "--pull", "never", name, "true"]) as container:
        found: dict[str, bytes] = {}
        folders: dict[str, list[str]] = {}
        for path in paths:
            folders.setdefault(posixpath.dirname(path), []).append(path)
        for folder, wanted in folders.items():
            for source in [folder] if folder == KIT else wanted:
                found.update(_copied(program, container, source, wanted))
        return found


def _copied(program: str, container: str, source: str, wanted: Sequence[str]) -> dict[str, bytes]:
    """Copy one file or folder out as a tar stream; its members are named from the source's own name on."""
    answer = ask([program, "cp", f"{container}:{source}", "-"])
    if answer.status:
        return {}
    parent = posixpath.dirname(source)
    found = {}
    name = f"{container}:{source}"
    for archive, member in members(io.BytesIO(answer.output), name):
        path = posixpath.normpath(posixpath.join(parent, member.name))
        if path in wanted and member.isreg():
            found[path] = content(archive, member, name)
    return found


def _read_mounted(program: str, name: str, paths: Sequence[str]) -> dict[str, bytes]:
    with container_of(program, name, ["from", "--pull-never", name]) as container:
        if os.geteuid() == 0:
            answer = ask([program, "mount", container])
            if answer.status == 0:
                return read_folder(answer.output.decode().strip(), paths)
        else:
            # The store's folders belong to the user's other identities: they are read from inside their namespace.
            reader = f'exec {line(own_module("hpcgen.images.folder"))} "$HPCGEN_ROOT" "$@"'
            words = ["unshare", "--mount", f"HPCGEN_ROOT={container}", "--", "sh", "-c", reader, "sh"]
            answer = ask([program, *words, *paths])
            if answer.status == 0:
                return msgspec.msgpack.decode(answer.output, type=dict[str, bytes])
        raise InputError(
            f"buildah cannot show the files of {name}: {answer.last_line}",
            remedy="fix the reported problem, or convert the image to an OCI archive and name that",
        )


@contextmanager
def container_of(program: str, name: str, words: Sequence[str]) -> Iterator[str]:
    """A container of an image that is made by these words, never started, and removed at the end."""
    answer = ask([program, *words])
    if answer.status:
        raise UnknownNameError(
            f"{Path(program).name} cannot create a container of {name}: {answer.last_line}",
            remedy=f"{Path(program).name} images lists those it has",
        )
    container = answer.output.decode().split()[-1]
    try:
        yield container
    finally:
        ask([program, "rm", container])


def _buildah_commit(task: ConversionTask) -> list[ConversionStep]:
    container = f"hpcgen-{task.token}"
    remove = ["buildah", "rm", container]
    return [
        conversion_command(
            "buildah", "from", "--quiet", "--name", container, f"oci-archive:{task.source}", undo=remove
        ),
        conversion_command("buildah", "commit", "--quiet", "--rm", "--format", "oci", container, task.target),
    ]


class EngineStore(ImageKind):
    """Base of the stores; ``tools``: programs that read one, the one that reads best first."""

    stored = True
    spelled = True
    tagged = True
    tools: tuple[str, ...] = ()

    def programs(self) -> tuple[str, ...]:
        return self.tools

    def program(self) -> str:
        """The program that reads this store here; MissingToolError if none is installed."""
        for tool in self.tools:
            if found := shutil.which(tool):
                return found
        names = " or ".join(self.tools)
        raise MissingToolError(
            f"{names} is not on PATH; it is needed to read {self.name}'s images", remedy=f"install {names}"
        )

    def is_stored(self, name: str) -> bool:
        """Whether it can be inspected."""
        program = self.program()
        return ask([program, *_inspect(program), name]).status == 0

    def read(self, name: str, paths: Sequence[str], most: int = MAX_FILE) -> dict[str, bytes]:
        """Out of a container that is made and not started."""
        return _read(self.program(), name, paths)

    @contextmanager
    def files(self, name: str) -> Iterator[ImageFileSource | None]:
        """Those of a container that is made and not started, exported as one tar file; buildah has no such command."""
        program = self.program()
        if Path(program).name == "buildah":
            yield None
            return
        with container_of(program, name, ["create", "--pull", "never", name, "true"]) as container:
            yield exported(program, container, f"{self.name}:{name}", self.bytes_on_disk(name) or 0)

    def configuration(self, name: str) -> dict[str, Any] | None:
        return _config_of(_told(self.name, self.program(), name))

    def settings(self, name: str) -> Marks | None:
        told = _stored(self.name, self.program(), name)
        return Marks(dict(told.environment), dict(told.labels), digest=told.known_digest)

    def digest(self, name: str) -> str:
        """As its store has it."""
        return _stored(self.name, self.program(), name).known_digest

    def source(self, name: str) -> str:
        """Its ID: skopeo takes a name without a registry for one of docker.io, where the engines look everywhere."""
        return _stored(self.name, self.program(), name).id or name

    def bytes_on_disk(self, name: str) -> int | None:
        return _stored(self.name, self.program(), name).bytes


class PodmanStore(EngineStore):
    """The store that buildah, podman and skopeo share."""

    name = "podman"
    tools = ("podman", "buildah")

    def target(self, name: str) -> str:
        """With the registry that builds give a name without one: skopeo would call it docker.io's."""
        return name if "/" in name else f"localhost/{name}"

    conversions = (
        ConversionRule("podman", "oci-archive", ("skopeo",), 2, skopeo("containers-storage", "oci-archive")),
        ConversionRule("podman", "oci-archive", ("podman",), 2, _SAVE),
        ConversionRule("podman", "oci-archive", ("buildah",), 2, _PUSH),
        ConversionRule("oci-archive", "podman", ("skopeo",), 2, skopeo("oci-archive", "containers-storage")),
        ConversionRule("oci-archive", "podman", ("buildah",), 3, _buildah_commit),
    )


class DockerStore(EngineStore):
    """The store of the Docker engine."""

    name = "docker"
    tools = ("docker",)
    conversions = (
        ConversionRule("docker", "oci-archive", ("docker", "skopeo"), 2, skopeo("docker-daemon", "oci-archive")),
        ConversionRule("oci-archive", "docker", ("docker", "skopeo"), 2, skopeo("oci-archive", "docker-daemon")),
    )


# Images in ch-image's storage, where each is a folder.

_CONVERT = ("ch-convert", "-i", "ch-image", "-o")
_IMPORT = by_command("ch-image", "import", "{source}", "{target}", undo=["ch-image", "delete", "{target}"])


def storage_folder(name: str) -> Path:
    """The folder of an image in ch-image's storage. Source: ch-image(1), and seen with 0.31 and 0.45."""
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or str(os.getuid())
    storage = os.environ.get("CH_IMAGE_STORAGE") or f"/var/tmp/{user}.ch"
    return Path(storage) / "img" / name.replace("/", "%").replace(":", "+")


class ChImageStore(ImageKind):
    """A name in ch-image's storage."""

    name = "ch-image"
    stored = True
    spelled = True
    conversions = (
        ConversionRule(
            "ch-image", "directory", ("ch-convert",), 2, by_command(*_CONVERT, "dir", "{source}", "{target}")
        ),
        ConversionRule(
            "ch-image", "squashfs", ("ch-convert",), 3, by_command(*_CONVERT, "squash", "{source}", "{target}")
        ),
        ConversionRule("directory", "ch-image", ("ch-image",), 2, _IMPORT),
    )

    def programs(self) -> tuple[str, ...]:
        """ch-image itself, though nothing but the folder is read."""
        return ("ch-image",)

    def is_stored(self, name: str) -> bool:
        """Whether its folder is there."""
        return storage_folder(name).is_dir()

    def read(self, name: str, paths: Sequence[str], most: int = MAX_FILE) -> dict[str, bytes]:
        folder = storage_folder(name)
        if not folder.is_dir():
            raise UnknownNameError(
                f"ch-image has no image {name} ({folder} is not there)",
                remedy="ch-image list shows its images; CH_IMAGE_STORAGE is its folder",
            )
        return read_folder(str(folder), paths, most)

    def listed(self, name: str, wanted: Callable[[str], bool]) -> set[str] | None:
        folder = storage_folder(name)
        return list_folder(str(folder), wanted) if folder.is_dir() else None

    def folders(self, name: str, paths: Sequence[str]) -> set[str] | None:
        folder = storage_folder(name)
        return folders_of(folder, paths) if folder.is_dir() else None

    def files(self, name: str) -> AbstractContextManager[ImageFileSource | None]:
        folder = storage_folder(name)
        return nullcontext(FolderSource(str(folder)) if folder.is_dir() else None)

    def bytes_on_disk(self, name: str) -> int | None:
        folder = storage_folder(name)
        return folder_bytes(folder) if folder.is_dir() else None
