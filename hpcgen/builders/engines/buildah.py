"""buildah, and podman, whose ``build`` is buildah's.

Output, seen with buildah 1.28.2 and podman 4.3.1: ``[1/2] STEP 4/40: RUN …`` when an instruction begins (the
bracket is left out where there is one stage), ``--> Using cache ID`` where it is taken from the cache, ``--> ID``
when it is kept, ``[2/2] COMMIT NAME`` at the end. Steps are kept with ``--layers`` alone (buildah-build(1)).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from hpcgen.builders.engines.base import Call, Reader, Target, Work, asked
from hpcgen.builders.engines.dockerfiles import DockerfileBuilder
from hpcgen.builders.progress import Event
from hpcgen.builders.steps import Recipe
from hpcgen.model.bundle_paths import IMAGES
from hpcgen.model.record import BuilderName, BuiltImage

_STEP = re.compile(r"(?:\[(\d+)/(\d+)\] )?STEP (\d+)/(\d+): ([A-Z]+)\b")
_LAYER = re.compile(r"--> ([0-9a-f]{11,64})$")
_SHORT = 11
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


class Buildah(DockerfileBuilder):
    """Into the store that buildah, podman and skopeo share. ``BUILDAH_ISOLATION`` is read by the program itself."""

    store = "podman"

    def __init__(self, name: BuilderName) -> None:
        super().__init__(name)
        self._before: frozenset[str] | None = None
        self._layers: set[str] = set()

    def begin(self) -> None:
        """Which containers there are."""
        self._before = frozenset(each["id"] for each in self._containers())

    def _containers(self) -> list[dict[str, str]]:
        """Working containers of builds, with ``id``, ``imageid`` and ``image``."""
        of_podman = ["ps", "-a", "--external", "--no-trunc", "--format", "json"]
        listing = ["containers", "--json"] if self.name == "buildah" else of_podman
        status, text = asked([self.program, *listing])
        found = json.loads(text) or [] if status == 0 else []
        lower = [{key.lower(): value for key, value in each.items()} for each in found]
        return [{**each, "image": each.get("imagename", each.get("image", ""))} for each in lower]

    def load(self, work: Work) -> list[Call]:
        """Each base from the OCI layout, under the name that the recipe has."""
        calls = []
        for base in work.bundle.bases if work.bundle is not None else []:
            layout = f"oci:{work.bundle.folder / IMAGES}:{base.held}" if work.bundle is not None else ""
            calls.append(Call((self.program, "pull", "--quiet", layout)))
            calls.append(Call((self.program, "tag", base.identity, base.stored)))
        return calls

    def _bundle_words(self, work: Work) -> list[str]:
        if work.bundle is None:
            return []
        # buildah before 1.30 has no RUN --network; its isolation chroot takes no other network than the host's.
        network = [] if os.environ.get("BUILDAH_ISOLATION") == "chroot" else ["--network", "none"]
        # Else they ask localhost for a newer base: its name says that this is its registry.
        return ["--pull=never", "--build-context", f"bundle={work.bundle.folder}", *network]

    def build(self, work: Work) -> list[Call]:
        """build, into a temporary name."""
        cache = ["--layers"] if work.cache else ["--no-cache", "--layers=false"]
        cache += [*self._bundle_words(work), *([] if work.epoch is None else ["--timestamp", str(work.epoch)])]
        words = [self.program, "build", *cache, "--force-rm", "--format", "docker", *work.options, *self.labels(work)]
        return [Call((*words, "-f", str(work.recipe), "-t", work.target.temporary, str(work.context)))]

    def publish(self, work: Work) -> list[Call]:
        """The final name for the image of the temporary one."""
        return [Call((self.program, "tag", work.target.temporary, work.target.name))]

    def clean(self, work: Work, built: bool) -> list[Call]:
        """The temporary name goes, the image with it, if that is its only one; and what a stopped buildah left.

        An interrupted podman leaves the working containers of its stage (4.3.1 does). They are new, and were made
        from the base or from a layer that this build has named. One from a base may also be another build's.
        """
        calls = [Call((self.program, "rmi", work.target.temporary))]
        if built or self._before is None:
            return calls
        bases = {step.image for step in work.steps if step.image}
        alone = not _another_build()
        for each in self._containers():
            ours = each["imageid"][:_SHORT] in self._layers or (alone and each["image"] in bases)
            if ours and each["id"] not in self._before:
                force = ("-f",) if self.name == "podman" else ()
                calls.append(Call((self.program, "rm", *force, each["id"])))
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
        status, text = asked([self.program, "images", "--json", target.name])
        if self.name == "podman":
            status, text = asked(["podman", "images", "--format", "json", target.name])
        size, digest = None, ""
        if status == 0:
            found: dict[str, object] = next(iter(json.loads(text)), {})
            lower = {key.lower(): value for key, value in found.items()}
            size, digest = _bytes(lower.get("size")), str(lower.get("digest", ""))
        return BuiltImage(kind=target.kind, name=target.name, bytes=size, digest=digest)


def _another_build() -> bool:
    """Whether buildah or podman builds something now; ours has ended."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].rsplit(b"/", 1)[-1] in (b"buildah", b"podman") and {b"build", b"bud"} & set(words[1:3]):
            return True
    return False


def _bytes(size: object) -> int | None:
    """podman says a number, buildah ``180 MB``."""
    if isinstance(size, int):
        return size
    found = re.fullmatch(r"([\d.]+) ?([KMGT]?B)", str(size).upper())
    return round(float(found[1]) * _UNITS[found[2]]) if found is not None else None
