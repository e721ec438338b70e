"""What must be known of an image of others to build on it, read from its files: nothing of it is started.

All of it is a stranger's: sizes are bounded by the readers, no link leads out of the image, and no file of it is a
shell's. Sources: os-release(5); PEP 405 for environments; PEP 376 for records of packages.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.core.model.fields import FileName
from hpcgen.core.model.image_paths import STORED_BASES
from hpcgen.core.model.plan import BaseImage, BasePython
from hpcgen.core.model.release import PLATFORMS
from hpcgen.core.support.leftovers import scratch_folder
from hpcgen.core.support.package_names import normal_name
from hpcgen.images.commands import ask
from hpcgen.images.folder import SHELL, machine_of
from hpcgen.images.reference import ImageReference

_RELEASES = ("/etc/os-release", "/usr/lib/os-release")
_MOST = 64 * 1024
_MOST_PROGRAM = 16 * 1024 * 1024
_WORD = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
_SETTING = re.compile(r"""(ID|VERSION_ID)=(["']?)([A-Za-z0-9._-]{0,40})\2\s*""")
_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FOLDER = re.compile(r"/[A-Za-z0-9._+/-]{1,200}")
_PROGRAM = re.compile(r"(?P<bin>/.*/bin|/bin)/python3\.(?P<minor>\d{1,3})")
_RECORD = re.compile(
    r"(?P<where>/.*/python3\.(?P<minor>\d{1,3})/(?:site|dist)-packages|/usr/lib/python3/dist-packages)/"
    r"(?P<name>[^/-]{1,200})-(?P<version>[^/-]{1,100})\.(?:dist|egg)-info(?:/.*)?"
)
_MOST_PACKAGES = 5000
_ALIKE = {"almalinux": "rocky", "rhel": "rocky", "centos": "rocky", "ol": "rocky", "sles": "opensuse-leap"}
"""Distributions made of the same sources, with the same C library and package manager, by their ID.

Source for SUSE Linux Enterprise: openSUSE's wiki, "Closing the Leap gap".
"""


class Readable(Protocol):
    """An image whose files can be read by their paths in it."""

    def read(self, paths: Sequence[str], most: int = ...) -> dict[str, bytes]:
        """Regular files."""

    def listed(self, wanted: Callable[[str], bool]) -> set[str]:
        """Paths that are wanted."""


class Referred(msgspec.Struct, frozen=True):
    """An image of this machine as :class:`Readable`."""

    image: ImageReference

    def read(self, paths: Sequence[str], most: int = _MOST) -> dict[str, bytes]:
        return self.image.read(paths, most)

    def listed(self, wanted: Callable[[str], bool]) -> set[str]:
        return self.image.image_kind.listed(self.image.name, wanted) or set()


def observed_image(image: ImageReference, catalog: Catalog, architecture: str) -> BaseImage:
    """What an image of this machine says of itself, and how recipes name it.

    InputError: it cannot be read; no base block stands for it; it is of another architecture; a recipe cannot name it.
    """
    from hpcgen.images.convert import own_marks

    variables, _ = own_marks(image)
    if image.image_kind.listed(image.name, lambda path: False) is None:
        # A store that shows no list of files gives a copy of the image.
        with scratch_folder("hpcgen-base-") as folder:
            copy = _copied(image, folder)
            found = observed(Referred(copy), str(image), variables, catalog, architecture)
    else:
        found = observed(Referred(image), str(image), variables, catalog, architecture)
    digest = image.image_kind.digest(image.name) or None
    if image.image_kind.stored:
        return msgspec.structs.replace(found, image=image.name, kind=image.kind, digest=digest)
    path = Path(image.name)
    try:
        msgspec.convert(path.name, FileName)
    except msgspec.ValidationError as failure:
        raise InputError(
            f"a recipe cannot name {path.name!r}: {failure}", remedy="rename the image, or link to it"
        ) from None
    stem = re.sub(r"[^a-z0-9]+", "-", path.name.partition(".")[0].lower()).strip("-") or "image"
    tag = digest.removeprefix("sha256:")[:12] if digest else "folder"
    kind = image.image_kind.start_form(image.name)
    name = f"{STORED_BASES}{stem}:{tag}"
    return msgspec.structs.replace(found, image=name, kind=kind, file=path.name, digest=digest)


def _copied(image: ImageReference, folder: Path) -> ImageReference:
    """The files of an image of a store as one archive, as a container that is not started has them."""
    from hpcgen.images.convert import convert
    from hpcgen.images.kinds.store import EngineStore, container_of

    kind = image.image_kind
    program = kind.program() if isinstance(kind, EngineStore) else ""
    if Path(program).name not in ("podman", "docker"):
        copy = ImageReference("oci-archive", str(folder / "image.oci"))
        convert(image, copy)
        return copy
    with container_of(program, image.name, ["create", "--pull", "never", image.name, "true"]) as container:
        written = ask([program, "export", "-o", str(folder / "root.tar"), container])
    if written.status:
        raise InputError(f"{image} cannot be read: {written.last_line}", remedy="convert it first: hpcgen convert")
    return ImageReference("tar", str(folder / "root.tar"))


def observed(
    image: Readable, name: str, variables: Mapping[str, str], catalog: Catalog, architecture: str
) -> BaseImage:
    """What the files of an image say. Errors as :func:`observed_image`."""
    files = image.read([*_RELEASES, SHELL], _MOST_PROGRAM)
    machine, wanted = machine_of(files.get(SHELL, b"")), PLATFORMS[architecture]
    if machine not in ("", wanted):
        raise InputError(
            f"{name} is an image for {machine}, and the site is {wanted}", remedy=f"name the one for {wanted}"
        )
    text = next((files[path] for path in _RELEASES if path in files), b"")[:_MOST].decode("utf-8", "replace")
    said = {match[1]: match[3] for line in text.split("\n") if (match := _SETTING.fullmatch(line))}
    os_id, version = said.get("ID", ""), said.get("VERSION_ID", "")
    if not _WORD.fullmatch(os_id):
        raise InputError(
            f"{name} does not state its distribution: its /etc/os-release has no ID",
            remedy="build it with only your own Dockerfile: hpcgen build --dockerfile FILE",
        )
    block, release = _base_block(catalog, name, os_id, version)
    environment = {
        key: value
        for key, value in variables.items()
        if _VARIABLE.fullmatch(key) and value.isprintable() and not {"$", "\\", "\u2028"} & set(value)
    }
    return BaseImage(
        image="x",
        os_id=os_id,
        os_version=version,
        block=block,
        release=release,
        environment=environment,
        python=_python(image, environment.get("PATH") or ":".join(_PATH)),
    )


def _base_block(catalog: Catalog, name: str, os_id: str, version: str) -> tuple[str, str]:
    """The block and the release that stand for a distribution, whose package manager and C library they know."""
    known = []
    for block in catalog.virtuals["base"]:
        for release, row in catalog.releases(block).items():
            called = row.values.get("os_id", "")
            known.append(f"{called} {release}")
            if called == _ALIKE.get(os_id, os_id) and f"{version}.".startswith(f"{release}."):
                return block, release
    if os_id == "alpine":
        raise InputError(
            f"{name} is Alpine Linux {version}, which uses musl: hpcgen can add nothing to it",
            remedy="its packages come by `RUN apk add` in a Dockerfile of your own (hpcgen build --dockerfile FILE); "
            "wheels, the host's MPI and GPU drivers are made for glibc, so start from another image for these",
        )
    raise InputError(
        f"{name} is {os_id} {version}, and hpcgen has no package names for it",
        expected=" or ".join(known),
        remedy="build it with only your own Dockerfile: hpcgen build --dockerfile FILE",
    )


def _python(image: Readable, path: str) -> BasePython | None:
    """The Python that programs are started by, and its packages by the names of their records."""
    folders = [folder for folder in path.split(":") if _FOLDER.fullmatch(folder)]

    def wanted(each: str) -> bool:
        return posixpath.dirname(each) in folders or _RECORD.fullmatch(each) is not None

    found = image.listed(wanted)
    programs = {match["bin"]: int(match["minor"]) for each in found if (match := _PROGRAM.fullmatch(each))}
    for folder in folders:
        program = f"{folder}/python3" if f"{folder}/python3" in found else ""
        minor = programs.get(folder)
        if not program or minor is None:
            continue
        places = {f"{posixpath.dirname(folder)}/{lib}/python3.{minor}" for lib in ("lib", "lib64", "local/lib")}
        packages = {
            normal_name(match["name"]): match["version"]
            for each in sorted(found)
            if (match := _RECORD.fullmatch(each)) and (posixpath.dirname(match["where"]) in places)
        }
        if len(packages) > _MOST_PACKAGES:
            packages = {}
        return BasePython(program=program, version=f"3.{minor}", packages=packages)
    return None
