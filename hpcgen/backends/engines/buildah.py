"""buildah, which builds images but cannot start them; podman's ``build`` is buildah's too.

Output, seen with buildah 1.28.2 and podman 4.3.1: ``[1/2] STEP 4/40: RUN …`` when an instruction begins (the
bracket is left out where there is one stage), ``--> Using cache ID`` where it is taken from the cache, ``--> ID``
when it is kept, ``[2/2] COMMIT NAME`` at the end. Steps are kept with ``--layers`` alone (buildah-build(1)).

With ``--timestamp`` two builds have the same layers; since 1.41 they have the same digest, too (CHANGELOG.md, "build:
--source-date-epoch/--timestamp use static hostname/cid"). ``--source-date-epoch`` came then, and leaves dates in layers
as they are. podman has 1.41 since 5.6.0 (RELEASE_NOTES.md).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from hpcgen.backends.engines.building import BuildFolder, EngineCommand, Target, Work, query, query_list
from hpcgen.backends.engines.dockerfiles import DockerfileEngine
from hpcgen.backends.engines.steps import Event, Reader, Recipe
from hpcgen.core.model.image_paths import IMAGES
from hpcgen.core.model.record import BuiltImage

_STEP = re.compile(r"(?:\[(\d+)/(\d+)\] )?STEP (\d+)/(\d+): ([A-Z]+)\b")
_LAYER = re.compile(r"--> ([0-9a-f]{11,64})$")
_SHORT = 11
_STORE_BY = (b"CONTAINERS_STORAGE_CONF", b"STORAGE_DRIVER", b"XDG_DATA_HOME", b"HOME")
"""Variables that decide where the store is.  Source: containers-storage.conf(5), buildah(1)."""
_STORAGE = "containers-storage:"
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


class Buildah(DockerfileEngine):
    """Into the store that buildah, podman and skopeo share. ``BUILDAH_ISOLATION`` is read by the program itself.

    ``containers_words``, ``remove_words``, ``images_words``: its words that list and remove containers, and tell of an
    image. ``store_place``: where its ``info`` says the store is.
    """

    name = "buildah"
    runs = False
    store = "podman"
    adds_to = ("podman",)
    makes = ("podman",)
    archive_by = "skopeo"
    comes_from = "podman and buildah come with most distributions"
    storage_variables = ("CONTAINERS_STORAGE_CONF", "CONTAINERS_CONF")
    equal_since = "1.41"
    differs_before = "the name of the container that built it"
    containers_words: ClassVar[tuple[str, ...]] = ("containers", "--json")
    remove_words: ClassVar[tuple[str, ...]] = ("rm",)
    images_words: ClassVar[tuple[str, ...]] = ("images", "--json")
    store_place: ClassVar[str] = "{{.store.GraphRoot}}"

    def __init__(self, version: str | None = None) -> None:
        super().__init__(version)
        self._before: frozenset[str] | None = None
        self._layers: set[str] = set()

    def enter(self, root: str, chroot: list[str]) -> list[str]:
        """By a user namespace with all ids of the user. Source: podman-unshare(1), buildah-unshare(1)."""
        return [self.builder_name(), "unshare", *chroot]

    def begin(self) -> None:
        self._before = frozenset(each["id"] for each in self._containers())

    def _containers(self) -> list[dict[str, str]]:
        """Working containers of builds, with ``id``, ``imageid`` and ``image``."""
        found = query_list([self.builder_name(), *self.containers_words])
        lower = [{key.lower(): value for key, value in each.items()} for each in found]
        return [{**each, "image": each.get("imagename", each.get("image", ""))} for each in lower]

    def places(self, work: Work) -> list[BuildFolder]:
        """The store, and what TMPDIR says; without that it is /var/tmp (buildah-build(1))."""
        status, text = query([self.builder_name(), "info", "--format", self.store_place])
        remedy = (
            f"remove unneeded images ({self.builder_name()} images), or move the store to a larger disk with "
            "graphroot in ~/.config/containers/storage.conf"
        )
        store = [BuildFolder(Path(text.strip()), "images", remedy)] if status == 0 and text.startswith("/") else []
        temporary = Path(os.environ.get("TMPDIR") or "/var/tmp")
        return [*store, BuildFolder(temporary, "temporary files", "set TMPDIR to a folder on a larger disk")]

    def load(self, work: Work) -> list[EngineCommand]:
        """Each base from the OCI layout, under the name that the recipe has.

        buildah and podman first give it a name that is the layout's path, which need not be one that they allow.
        """
        beneath = work.plan.base
        if work.bundle is None:
            if beneath is None or not beneath.file:
                return []
            place = (work.kit / beneath.file).resolve()
            return [EngineCommand(("skopeo", "copy", "--quiet", f"oci-archive:{place}", _STORAGE + beneath.image))]
        calls = []
        for base in work.bundle.bases:
            pull = (self.builder_name(), "pull", "--quiet", f"oci:{IMAGES}:{base.held}")
            calls.append(EngineCommand(pull, cwd=work.bundle.folder))
            calls.append(EngineCommand((self.builder_name(), "tag", base.identity, base.stored)))
        return calls

    def _bundle_words(self, work: Work) -> list[str]:
        if work.bundle is None:
            return []
        # buildah before 1.30 has no RUN --network; its isolation chroot takes no other network than the host's.
        network = [] if os.environ.get("BUILDAH_ISOLATION") == "chroot" else ["--network", "none"]
        # Else they ask localhost for a newer base: its name says that this is its registry.
        return ["--pull=never", "--build-context", f"bundle={work.bundle.folder}", *network]

    def build(self, work: Work) -> list[EngineCommand]:
        """build, into a temporary name."""
        cache = ["--layers"] if work.cache else ["--no-cache", "--layers=false"]
        cache += [*self._bundle_words(work), *([] if work.epoch is None else ["--timestamp", str(work.epoch)])]
        words = ["--force-rm", "--format", "docker", *work.options, *self.labels(work)]
        end = ("-f", str(work.recipe), "-t", work.target.temporary, str(work.context))
        return [EngineCommand((self.builder_name(), "build", *cache, *words, *end))]

    def clean(self, work: Work, built: bool) -> list[EngineCommand]:
        """The temporary name goes, the image with it, if that is its only one; and what a stopped buildah left.

        An interrupted podman leaves the working containers of its stage (4.3.1 does). They are new, and were made
        from the base or from a layer that this build has named. One from a base may also be another build's.
        """
        calls = [EngineCommand((self.builder_name(), "rmi", work.target.temporary))]
        if work.bundle is not None and work.bundle.bases:
            # What it is called after the pull: by the path, or, by buildah 1.43, as the layout calls it.
            names = [f"localhost/{IMAGES}", *(f"docker.io/library/{base.held}" for base in work.bundle.bases)]
            calls += [EngineCommand((self.builder_name(), "rmi", name)) for name in names]
        if built or self._before is None:
            return calls
        bases = {step.image for step in work.steps if step.image}
        alone = not another_build()
        for each in self._containers():
            ours = each["imageid"][:_SHORT] in self._layers or (alone and each["image"] in bases)
            if ours and each["id"] not in self._before:
                calls.append(EngineCommand((self.builder_name(), *self.remove_words, each["id"])))
        return calls

    def reader(self, recipe: Recipe) -> Reader:
        """By the stage and the number of the instruction."""
        places = {(step.stage, step.instruction): index for index, step in enumerate(recipe.steps)}
        counts = recipe.instructions
        current: int | None = None

        def read(line: str) -> Iterator[Event]:
            nonlocal current
            found = _STEP.match(line)
            if found is not None:
                stage, stages, number, total = (int(group or 1) for group in found.groups()[:4])
                # What a step prints could look the same but for the numbers.
                if stages == len(counts) and stage <= stages and total >= counts[stage - 1]:
                    current = places.get((stage, number))
                    if current is not None and recipe.steps[current].keyword == found[5]:
                        yield Event("begin", current)
            elif layer := _LAYER.match(line):
                self._layers.add(layer[1])
            elif line.startswith("--> Using cache ") and current is not None:
                yield Event("cached", current)
                current = None

        return read

    def built_image(self, target: Target) -> BuiltImage:
        """Size as the store counts it, and the digest of the manifest."""
        found = query_list([self.builder_name(), *self.images_words, target.name])
        lower = {key.lower(): value for each in found[:1] for key, value in each.items()}
        size, digest = _bytes(lower.get("size")), str(lower.get("digest", ""))
        return BuiltImage(kind=target.kind, name=target.name, bytes=size, digest=digest)

    def login(self, user: str, password: str, folder: Path) -> dict[str, str]:
        return {"REGISTRY_AUTH_FILE": str(folder / "config.json")}

    def push(self, kind: str, name: str, target: str, scratch: Path) -> list[list[str]]:
        """With the digest that the registry has."""
        words = [self.builder_name(), "push", "--digestfile", str(scratch / "digest"), name, f"docker://{target}"]
        return [words] if kind == self.store else []


def another_build() -> bool:
    """Whether buildah or podman builds something in this store now; ours has ended."""
    ours = os.environb
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if words[0].rsplit(b"/", 1)[-1] not in (b"buildah", b"podman") or not {b"build", b"bud"} & set(words[1:3]):
                continue
            given = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            # It has ended, or is another user's, whose store is another one.
            continue
        theirs = dict(each.partition(b"=")[::2] for each in given)
        if all(ours.get(name) == theirs.get(name) for name in _STORE_BY):
            return True
    return False


def _bytes(size: object) -> int | None:
    """podman says a number, buildah ``180 MB``."""
    if isinstance(size, int):
        return size
    found = re.fullmatch(r"([\d.]+) ?([KMGT]?B)", str(size).upper())
    return round(float(found[1]) * _UNITS[found[2]]) if found is not None else None
