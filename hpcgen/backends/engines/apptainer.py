"""Apptainer and Singularity.

Options by release, from the change logs in apptainer/apptainer: ``--rocm`` Singularity 3.5.0; ``--env`` 3.6.0, before
which the image's %environment also won over ``SINGULARITYENV_X``. ``--env`` reads a comma as the start of another
variable, so ``env`` inside is used in every release; it also comes after the image's %environment.

``--sharens`` came with Apptainer 1.3.0: processes with one parent, as a launcher's ranks of a node are, use the user
namespace and the mounts of the first of them (cmd/internal/cli/actions.go). Seen with 1.4.5: two ranks of MPICH 5.0.2
abort without it at their first collective, and of MPICH over UCX send by TCP.

Output of a build, seen with Apptainer 1.4.5: ``INFO:    Starting build...`` at the beginning, then what the steps print
(each names itself, see ``steps.step_mark``), lines of ``INFO:`` when the next stage's base is taken, and at the end
``INFO:    Running testscript`` and ``INFO:    Creating SIF file...``. The file is written to the given name while the
build goes on. Steps are never kept: what is the same for every state of a project is (see ``kept_stage``).

``SOURCE_DATE_EPOCH`` gives a SIF its dates and no random id since Apptainer 1.5.0 (its CHANGELOG.md). Of two files that
1.4.5 built with it, the id, the dates in header and descriptors and the label org.label-schema.build-date differed: the
squashfs in them is mksquashfs's, which takes the variable since 4.4.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import msgspec

from hpcgen.backends.engines.base import (
    JOINED,
    Call,
    Engine,
    bind_words,
    bound,
    environment_words,
    file_system_words,
)
from hpcgen.backends.engines.building import BuildFolder, EngineCommand, LeftImage, Target, Work, file_target, query
from hpcgen.backends.engines.common import SQUASHING, squashing_words
from hpcgen.backends.engines.kept_stage import FOLDER as BUILDERS
from hpcgen.backends.engines.kept_stage import KeptStage, first_folder, kept_files, kept_stage, rest_file
from hpcgen.backends.engines.steps import (
    HPCGEN,
    STEP_BEGINS,
    TEST_STEP,
    Event,
    Labels,
    Reader,
    Recipe,
    Step,
    definition_steps,
)
from hpcgen.core.model.image_paths import EVERY_IMAGE_HAS, FILES
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.release import PLATFORMS
from hpcgen.core.support.placing import PARTIAL
from hpcgen.core.support.quoting import joined

SHARES = "1.3"
"""The release with ``--sharens``."""
QUICKLY = ("-comp", "gzip", "-Xcompression-level", "1")
"""For an image that is read once or twice, on this machine. Source: mksquashfs(1)."""


class Apptainer(Engine):
    """A SIF file, or a folder (a sandbox) where the name does not end in .sif.

    The host's variables enter, the image's own are set over them; the library path is the image's alone.
    """

    name = "apptainer"
    shows_home = True
    format = "singularity"
    starts = ("sif", "sandbox")
    adds_to = ("sif", "sandbox")
    makes = ("sif", "directory")
    archive_by = "apptainer"
    bind_option = "-B"
    # `image-src` came with Singularity 3.6; without setuid Apptainer mounts by squashfuse since 1.1 (its CHANGELOG.md).
    packed_since = "1.1"
    sees_mounts = True
    # Since 1.1, unless it is installed with setuid. Source: its admin guide, "Setuid vs non-setuid".
    user_namespaces = True
    # Where --nv and --rocm put the driver's libraries.
    library_path = "/.singularity.d/libs"
    comes_from = "Apptainer comes with most distributions, or see https://apptainer.org"
    # Its user guide, "Environment and Metadata"; Singularity's where its own is not set.
    environment_prefixes: ClassVar[tuple[str, ...]] = ("APPTAINERENV_", "SINGULARITYENV_")
    storage_variables = ("APPTAINER_CACHEDIR", "APPTAINER_TMPDIR")
    equal_since = "1.5"
    differs_before = "the file's id and its dates"
    rocm_since = ""
    # Its user guide, "Definition Files": both run on the host, as whoever builds.
    not_read: ClassVar[Mapping[str, str]] = {
        r"^[ \t]*%(setup|pre)\b": "the section runs on this machine, outside the image"
    }

    def oldest(self, call: Call) -> str:
        """The one with ``--sharens`` or ``--rocm``, where it is used."""
        if call.join > 1 and self.join_words():
            return SHARES
        return self.rocm_since if call.gpu == "amd" else ""

    def image_names(self, stack: str, site: str) -> list[str]:
        return [f"{stack}.sif"]

    def fetch(self, address: str, name: str) -> list[list[str]]:
        return [[self.name, "pull", name, address]]

    def unsupported_reason(self, gpu: str) -> str:
        """``--rocm`` in Singularity before 3.5, or of unknown version."""
        old = gpu == "amd" and self.rocm_since and not self.at_least(self.rocm_since)
        return f"AMD GPUs need --rocm, which came with {self.rocm_since}" if old else ""

    def unsealed_reason(self) -> str:
        """``--containall`` leaves out all of the host, its variables included; any user may have no network at all."""
        return ""

    def words(self, call: Call) -> list[list[str]]:
        """exec, with the folder of the job at its own place."""
        # What a command says is its program's: Apptainer 1.4.5 tells of gocryptfs, which is not there, at each SIF.
        groups: list[list[str]] = [[self.name, *(["-q"] if call.attached else []), "exec"]]
        if call.sealed:
            groups += [["--containall", "--no-home"], ["--net", "--network", "none"]]
        if call.gpu == "nvidia":
            groups.append(["--nv"])
        elif call.gpu == "amd":
            if reason := self.unsupported_reason(call.gpu):
                raise self.refuse(reason, "state the version in the profile")
            groups.append(["--rocm"])
        groups += bind_words(self.bind_option, call.binds) + file_system_words(call)
        groups += [[self.bind_option, joined(bound(each), ":image-src=/,ro")] for each in call.packed]
        groups.append(["-B", call.folder, "--pwd", call.folder])
        if self.join_words() and call.join > 1:
            groups.append([self.join_words()])
        elif self.join_words() and call.ranks_outside:
            groups.append([JOINED])
        groups.append([call.image])
        return groups + environment_words(call, call.unset)

    def join_words(self) -> str:
        """Where the release is known to have it."""
        return "--sharens" if self.user_namespaces and self.at_least(SHARES) else ""

    def ranks_together(self, mpi: str) -> bool:
        """By that option, or without user namespaces."""
        return super().ranks_together(mpi) or bool(self.join_words())

    @classmethod
    def platform_words(cls, architecture: str) -> tuple[str, ...]:
        """Source: apptainer build --help."""
        return ("--arch", PLATFORMS[architecture])

    def enter(self, root: str, chroot: list[str]) -> list[str]:
        """Source: apptainer exec --help."""
        return [self.name, "exec", "--fakeroot", "--writable", "--contain", "--no-home", root]

    def target(self, plan: Plan, output: str | None, token: str) -> Target:
        """A file, or a folder."""
        from hpcgen.backends.engines import job_image

        return file_target(output or job_image(plan), token, {".sif": "sif"})

    def recipe(self, text: str, labels: Labels | None = None) -> Recipe:
        """The steps of the definition file."""
        return definition_steps(text, labels)

    def later_steps(self, target: Target) -> list[Step]:
        """The image is tested as it is built, and a SIF file takes as long to write as many steps."""
        test = Step(HPCGEN, TEST_STEP, 2, "TEST")
        return [test, Step(HPCGEN, "write the SIF file", 2, "WRITE")] if target.kind == "sif" else [test]

    def _cache(self) -> Path:
        return Path(os.environ.get(self.storage_variables[0]) or Path.home() / f".{self.name}" / "cache").absolute()

    def places(self, work: Work) -> list[BuildFolder]:
        """Where it unpacks, and what it keeps of downloads. Source: apptainer build --help, "Build environment"."""
        cache, temporary = self.storage_variables
        at = self._cache()
        unpacked = Path(os.environ.get(temporary) or os.environ.get("TMPDIR") or "/tmp")
        about = "three times the image's size; not a network file system"
        return [
            BuildFolder(unpacked, "the unpacked image", f"set {temporary} to a folder on a larger disk ({about})"),
            BuildFolder(at, "the downloads", f"empty it ({self.name} cache clean), or set {cache} to another folder"),
        ]

    def growing(self, work: Work) -> list[tuple[Path, str]]:
        """The file system, written where it unpacks, and the SIF that it is copied into. Source: sif.go of 1.4.5."""
        path = Path(work.target.temporary)
        squashfs = (self.places(work)[0].path, "bundle-temp-*/squashfs-*")
        return [squashfs, (path.parent, glob.escape(path.name))] if work.target.kind == "sif" else []

    def build(self, work: Work) -> list[EngineCommand]:
        """build, in the folder from which the definition file takes the kit's files and a bundle's images.

        What is kept of the builder is built first, where it is not there.
        """
        # Of Apptainer since 1.5 the whole file has that date, of older ones the file system in it (mksquashfs 4.4).
        # The label with the date of the build names the zone too.
        env = {} if work.epoch is None else {"SOURCE_DATE_EPOCH": str(work.epoch), "TZ": "UTC0"}
        bound = ["--bind", f"{work.bundle.folder}:{EVERY_IMAGE_HAS}:ro"] if work.bundle is not None else []
        kind = ["--sandbox"] if work.target.kind == "directory" else []
        words = [*self._begin(work), *kind, *bound, *self._squashing(work), *work.options, work.target.temporary]
        kept = self._kept(work)
        if kept is None:
            return [EngineCommand((*words, str(work.recipe)), env=env, cwd=work.context)]
        rest = EngineCommand((*words, str(rest_file(work))), env=env, cwd=work.context)
        if kept.there:
            return [msgspec.structs.replace(rest, cached=min(kept.steps, len(work.steps)))]
        part = kept.image.with_name(f"{_unfinished(work)}{kept.image.name}")
        return [
            EngineCommand(("mkdir", "-p", "-m", "700", str(kept.image.parent))),
            EngineCommand(("mkdir", "-p", str(first_folder(work) / FILES))),
            EngineCommand(
                (*self._begin(work), *self._compressed(QUICKLY), *work.options, str(part), "first.def"),
                cwd=first_folder(work),
            ),
            EngineCommand(("chmod", "go-w", str(part))),
            EngineCommand(("mv", "-f", str(part), str(kept.image))),
            rest,
            *(EngineCommand(("rm", "-f", str(each))) for each in kept.older),
        ]

    def _begin(self, work: Work) -> list[str]:
        site = work.plan.site.containers.engines.get(work.plan.engine)
        rootless = site is not None and site.fakeroot and not work.root
        return [self.builder_name(), "build", *(["--fakeroot"] if rootless else []), "--force"]

    def _kept(self, work: Work) -> KeptStage | None:
        """What is kept of the builder, where steps may be taken from a cache."""
        if work.kept is None or not work.cache or work.bundle is not None:
            return None
        return kept_stage(work, work.kept, self._cache(), [self.installed_version(), *self._begin(work), *work.options])

    def more_files(self, work: Work) -> dict[Path, str]:
        """The definition files of what is kept and of the rest, with what the first installs."""
        kept = self._kept(work)
        return kept.texts(work) if kept is not None else {}

    def clean(self, work: Work, built: bool) -> list[EngineCommand]:
        """What was to be kept and is not whole."""
        found = (self._cache() / BUILDERS).glob(f"{glob.escape(_unfinished(work))}*")
        return [EngineCommand(("rm", "-f", str(each))) for each in found]

    def left_images(self) -> list[LeftImage]:
        """What is kept of builders."""
        return [LeftImage(each.name, each.stat().st_size, cache=True) for each in kept_files(self._cache() / BUILDERS)]

    def remove_images(self, names: Sequence[str]) -> list[list[str]]:
        return [["rm", "-f", "--", *(str(self._cache() / BUILDERS / name) for name in names)]]

    def _squashing(self, work: Work) -> list[str]:
        """How the SIF is compressed."""
        return self._compressed(squashing_words(work.plan)) if work.target.kind == "sif" else []

    def _compressed(self, words: Sequence[str]) -> list[str]:
        """Options of mksquashfs, where the installed builder takes them."""
        return [SQUASHING, " ".join(words)] if self._takes_compressor else []

    @cached_property
    def _takes_compressor(self) -> bool:
        return SQUASHING in query([self.builder_name(), "build", "--help"])[1]

    def reader(self, recipe: Recipe) -> Reader:
        """By the number that a step prints, and by what the program itself says between them."""
        marks = [index for index, step in enumerate(recipe.steps) if step.keyword == "MARK"]
        said = {"TEST": "Running testscript", "WRITE": "Creating SIF file..."}
        later = {text: i for i, step in enumerate(recipe.steps) for key, text in said.items() if step.keyword == key}
        current = -1

        def begin(index: int) -> Event:
            nonlocal current
            current = index
            return Event("begin", index)

        def read(line: str) -> Iterator[Event]:
            found = re.match(STEP_BEGINS, line)
            if found is not None and int(found[1]) <= len(marks):
                yield begin(marks[int(found[1]) - 1])
            elif line.startswith("INFO: "):
                text = line.partition(":")[2].strip()
                if text in later:
                    # What is kept of the builder is tested and written before that, as an image of its own.
                    if not marks or current >= marks[-1]:
                        yield begin(later[text])
                # The program itself speaks before the first step and between those of two stages.
                elif current + 1 < len(recipe.steps) and recipe.steps[current + 1].keyword == "BASE":
                    yield begin(current + 1)

        return read

    def login(self, user: str, password: str, folder: Path) -> dict[str, str]:
        """Those of a pull, also for oras://. Source: cmd/internal/cli/push.go of apptainer."""
        prefix = f"{self.name.upper()}_DOCKER"
        return {f"{prefix}_USERNAME": user, f"{prefix}_PASSWORD": password}

    def push(self, kind: str, name: str, target: str, scratch: Path) -> list[list[str]]:
        """A SIF file as it is, by ORAS."""
        return [[self.name, "push", name, f"oras://{target}"]] if kind == "sif" else []


def _unfinished(work: Work) -> str:
    """How the name of a kept image begins while it is written."""
    return f"{PARTIAL}{work.token}-"


class Singularity(Apptainer):
    """Singularity, whose older releases lack options."""

    name = "singularity"
    archive_by = "singularity"
    environment_prefixes = ("SINGULARITYENV_",)
    storage_variables = ("SINGULARITY_CACHEDIR", "SINGULARITY_TMPDIR")
    equal_since = ""
    rocm_since = "3.5"
    packed_since = "3.6"
    user_namespaces = False

    def requires(self, gpu: str, fakeroot: bool) -> list[tuple[str, str]]:
        return [("3.2", "a build in two stages"), *([("3.3", "--fakeroot")] if fakeroot else [])]
