"""Docker. It builds with BuildKit: by the plugin buildx, which a client of 23 or later needs, or built into an older.

GPUs: ``--gpus`` came with 19.03. For CDI names AMD's toolkit asks for 25 or later.
Source: github.com/ROCm/container-toolkit@192fe8e, docs/container-runtime/requirements.rst.

Output of ``--progress=plain`` (seen with 20.10.24; moby/buildkit issues 3834, 5644 and docker/cli issue 3423 show it):
``#8 [builder 3/9] RUN …`` when a step is known, ``#8 0.106 …`` what it prints, ``#8 CACHED``, ``#8 DONE 1.2s``,
``#8 ERROR: …`` and ``#8 CANCELED``. Numbers of lines that a step prints may be wrong (3834), those of its state are
not; steps of both stages run side by side. In a failing build CACHED may also mean that a step was left out (5644).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from hpcgen.backends.engines.base import Call
from hpcgen.backends.engines.building import EngineCommand, Target, Work, query, version_in
from hpcgen.backends.engines.dockerfiles import DockerfileEngine
from hpcgen.backends.engines.steps import Event, Reader, Recipe
from hpcgen.core.errors import MissingToolError, Problem
from hpcgen.core.model.image_paths import IMAGES
from hpcgen.core.model.record import BuiltImage
from hpcgen.core.support.quoting import Shell

_NAMED = re.compile(r"#(\d+) \[(?:(\S+) +)?(\d+)/(\d+)\] ([A-Z]+)\b")
_STATE = re.compile(r"#(\d+) (CACHED|CANCELED|DONE(?: ([\d.]+)s)?|ERROR:? .*)$")
PLUGIN_FROM = 23
CDI_SINCE = "25"


class Docker(DockerfileEngine):
    """Into the store of the Docker engine."""

    name = "docker"
    starts = ("docker",)
    store = "docker"
    adds_to = ("docker",)
    makes = ("docker",)
    alone = False
    service = True
    dev_containers = True

    def requires(self, gpu: str, fakeroot: bool) -> list[tuple[str, str]]:
        return [("19.03", "--gpus")] if gpu == "nvidia" else []

    def _user_words(self) -> list[list[str]]:
        return [["--user", Shell('"$(id -u):$(id -g)"'), "-e", "HOME=/tmp"]]

    def oldest(self, call: Call) -> str:
        """Of CDI names."""
        return CDI_SINCE if call.gpu and call.gpu_cdi else ""

    def _gpu_words(self, call: Call) -> list[str]:
        return ["--gpus", "all"] if call.gpu == "nvidia" and not call.gpu_cdi else super()._gpu_words(call)

    def problem(self) -> Problem | None:
        """No engine that answers, or a client that lost BuildKit with its plugin."""
        status, text = query(["docker", "version", "--format", "{{.Server.Version}}"])
        if status != 0:
            said = next((line for line in reversed(text.splitlines()) if line.strip()), "it does not say why")
            return Problem(
                f"docker cannot reach an engine: {said.strip()}",
                remedy="start the engine (DOCKER_HOST names another), or build with podman or buildah: --engine podman",
            )
        if not self._buildx() and self._major() >= PLUGIN_FROM:
            return Problem(
                f"docker {self.installed_version()} has no plugin buildx, without which it cannot use BuildKit",
                remedy="install docker-buildx (https://docs.docker.com/go/buildx/), or build with --engine podman",
            )
        return None

    def _buildx(self) -> bool:
        return query(["docker", "buildx", "version"])[0] == 0

    def _major(self) -> int:
        return int((version_in(self.installed_version()) or "0").split(".")[0])

    def build(self, work: Work) -> list[EngineCommand]:
        """buildx with ``--load``, because some of its drivers leave the image in the cache alone."""
        cache = [] if work.cache else ["--no-cache"]
        end = ("-f", str(work.recipe), "-t", work.target.temporary, str(work.context))
        words = ["docker", "buildx", "build", "--load"] if self._buildx() else ["docker", "build"]
        # BuildKit from 0.11 on gives the image this date. Source: its docs/build-repro.md.
        date = [] if work.epoch is None else ["--build-arg", f"SOURCE_DATE_EPOCH={work.epoch}"]
        words += ["--progress=plain", *cache, *self._bundle_words(work), *date, *work.options]
        return [EngineCommand((*words, *self.labels(work), *end), env={"DOCKER_BUILDKIT": "1"})]

    def _bundle_words(self, work: Work) -> list[str]:
        """The bundle, and the bases where they are: a context's name stands for the image of that name."""
        if work.bundle is None:
            return []
        if not self._buildx():
            raise MissingToolError(
                f"docker {self.installed_version()} without the plugin buildx cannot build from a bundle",
                remedy="install docker-buildx 0.8 or later, or build with --engine podman",
            )
        folder = work.bundle.folder
        contexts = [f"bundle={folder}"]
        contexts += [f"{base.stored}=oci-layout://{folder / IMAGES}:{base.held}" for base in work.bundle.bases]
        return ["--network=none", *(word for context in contexts for word in ("--build-context", context))]

    def clean(self, work: Work, built: bool) -> list[EngineCommand]:
        return [EngineCommand(("docker", "rmi", work.target.temporary))]

    def temporary_name(self, token: str) -> str:
        """Without a registry's name it is nobody else's."""
        return f"hpcgen-build:{token}"

    def reader(self, recipe: Recipe) -> Reader:
        """By the stage and the number of the layer; an unnamed stage is ``stage-1``."""
        places = {(step.stage, step.layer): index for index, step in enumerate(recipe.steps)}
        names = {"builder": 1, "stage-0": 1, "stage-1": 2}
        known: dict[str, int] = {}

        def read(line: str) -> Iterator[Event]:
            found = _NAMED.match(line)
            if found is not None:
                index = places.get((names.get(found[2] or "stage-0", 0), int(found[3])))
                if index is not None and recipe.steps[index].keyword == found[5] and found[1] not in known:
                    known[found[1]] = index
                    yield Event("begin", index)
                return
            state = _STATE.match(line)
            if state is None or state[1] not in known:
                return
            index = known[state[1]]
            if state[2] == "CACHED":
                yield Event("cached", index)
            elif state[2].startswith("DONE"):
                yield Event("done", index, float(state[3]) if state[3] else None)
            elif state[2].startswith("ERROR"):
                yield Event("failed", index)

        return read

    def built_image(self, target: Target) -> BuiltImage:
        """Size, and the image's ID, which is the digest of its configuration."""
        status, text = query(["docker", "image", "inspect", "--format", "{{.Size}} {{.Id}}", target.name])
        size, digest = text.split()[:2] if status == 0 and len(text.split()) >= 2 else ("", "")
        return BuiltImage(
            kind=target.kind, name=target.name, bytes=int(size) if size.isdigit() else None, digest=digest
        )

    def login(self, user: str, password: str, folder: Path) -> dict[str, str]:
        return {"DOCKER_CONFIG": str(folder)}

    def push(self, kind: str, name: str, target: str, scratch: Path) -> list[list[str]]:
        """Under the name that it has in the registry."""
        return [["docker", "tag", name, target], ["docker", "push", target]] if kind == self.store else []
