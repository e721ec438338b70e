"""buildah, and podman, whose ``build`` is buildah's.

Output, seen with buildah 1.28.2 and podman 4.3.1: ``[1/2] STEP 4/40: RUN …`` when an instruction begins (the
bracket is left out where there is one stage), ``--> Using cache ID`` where it is taken from the cache, ``--> ID``
when it is kept, ``[2/2] COMMIT NAME`` at the end. Steps are kept with ``--layers`` alone (buildah-build(1)).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from hpcgen.build.engines.base import Call, Reader, Target, Work, asked
from hpcgen.build.engines.dockerfiles import DockerfileBuilder
from hpcgen.build.progress import Event
from hpcgen.build.steps import Recipe
from hpcgen.model.record import BuiltImage

_STEP = re.compile(r"(?:\[(\d+)/(\d+)\] )?STEP (\d+)/(\d+): ([A-Z]+)\b")
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


class Buildah(DockerfileBuilder):
    """Into the store that buildah, podman and skopeo share. ``BUILDAH_ISOLATION`` is read by the program itself."""

    store = "podman"

    def build(self, work: Work) -> list[Call]:
        """build, into a temporary name."""
        cache = ["--layers"] if work.cache else ["--no-cache", "--layers=false"]
        words = [self.program, "build", *cache, "--force-rm", "--format", "docker", *work.options, *self.labels(work)]
        return [Call((*words, "-f", str(work.recipe), "-t", work.target.temporary, str(work.context)))]

    def publish(self, work: Work) -> list[Call]:
        """The final name for the image of the temporary one."""
        return [Call((self.program, "tag", work.target.temporary, work.target.name))]

    def clean(self, work: Work, built: bool) -> list[Call]:
        """The temporary name goes; the image with it, if that is its only one."""
        return [Call((self.program, "rmi", work.target.temporary))]

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


def _bytes(size: object) -> int | None:
    """podman says a number, buildah ``180 MB``."""
    if isinstance(size, int):
        return size
    found = re.fullmatch(r"([\d.]+) ?([KMGT]?B)", str(size).upper())
    return round(float(found[1]) * _UNITS[found[2]]) if found is not None else None
