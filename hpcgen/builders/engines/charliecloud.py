"""Charliecloud's ch-image and ch-convert.

Output, seen with 0.31 and 0.45 and read in their lib/build.py: ``  4* RUN.F …`` is the line of the Dockerfile, then
``*`` where the instruction was taken from the cache, ``.`` where it is done, a space where that is not known yet.

The cache needs git 2.28.1 or later; without it ch-image does without by itself (lib/build_cache.py). 0.31 has git
sign with the user's name and fails where that is not set, so it is set here; 0.45 brings a name of its own.
``ch-image delete NAME`` removes the stages' images too and leaves the cache as it is.

What ``COPY`` copies is known to the cache by its path as well as by size and time (lib/filesystem.py, stat_bytes), and
for ``--from`` that is the path of the stage's image: so the context is named by a path relative to the folder that
ch-image is started in, and the image in the store is called the same in every build. ch-image itself lets only one
build at a time use a store.
"""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Iterator
from pathlib import Path

from hpcgen.builders.engines.base import Builder, Call, Reader, Target, Work, asked
from hpcgen.builders.places import file_target, job_image, measured
from hpcgen.builders.progress import Event
from hpcgen.builders.steps import HPCGEN, Labels, Recipe, Step, dockerfile_steps
from hpcgen.model.bundle_paths import MOUNT
from hpcgen.model.plan import Plan
from hpcgen.model.record import BuiltImage

_LINE = re.compile(r" *(\d+)([ .*]) ?([A-Z]+)\b")
NAMING = "Dockerfile.name"
CONVERSIONS = {"squashfs": "squash", "tar": "tar", "directory": "dir"}
_SIGNATURE = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "hpcgen"), ("EMAIL", "hpcgen@localhost"))
}


class Charliecloud(Builder):
    """A squashfs file, an archive or a folder, by the name's end; ``ch-image:NAME`` stays in ch-image's store."""

    format = "charliecloud"

    def needs(self, target: Target) -> dict[str, str]:
        """What turns the image in the store into a file."""
        if target.kind == "ch-image":
            return {}
        words = {"ch-convert": "write the image (it comes with Charliecloud)"}
        if target.kind == "squashfs":
            words["mksquashfs"] = "write a .sqfs file; give -o a name without ending for a folder instead"
        return words

    def target(self, plan: Plan, output: str | None, token: str) -> Target:
        """A file, a folder, or a name in the store."""
        name = output or job_image(plan)
        if name.startswith("ch-image:"):
            return Target("ch-image", name.partition(":")[2], self.stored_name(plan))
        return file_target(name, token, {".sqfs": "squashfs", ".squashfs": "squashfs", ".tar.gz": "tar", ".tgz": "tar"})

    @staticmethod
    def stored_name(plan: Plan) -> str:
        """What the image is called in ch-image's store while it is built."""
        return f"hpcgen-build-{plan.stack.name}-{plan.site.name}"

    def recipe(self, text: str, labels: Labels | None = None) -> Recipe:
        """The steps of the Dockerfile."""
        return dockerfile_steps(text, labels)

    def later_steps(self, target: Target) -> list[Step]:
        """What the image is written as."""
        what = {"squashfs": "write the squashfs file", "tar": "write the archive", "directory": "write the folder"}
        if target.kind == "ch-image":
            return []
        return [Step(HPCGEN, what[target.kind], 2, "WRITE")]

    def _environment(self, work: Work) -> dict[str, str]:
        """ch-image refers to the user by name; ch-run shows the steps $TMPDIR as /tmp, which is then theirs alone."""
        own = {**_SIGNATURE, "USER": getpass.getuser()}
        return {"TMPDIR": str(work.scratch), **{name: value for name, value in own.items() if not os.environ.get(name)}}

    def load(self, work: Work) -> list[Call]:
        """Each base, anew in every build: an import that was stopped leaves half an image under the name."""
        if work.bundle is None:
            return []
        env = {name: value for name, value in self._environment(work).items() if name != "TMPDIR"}
        return [
            Call(("ch-image", "import", str(work.bundle.root_tar(b)), b.stored), env=env) for b in work.bundle.bases
        ]

    def build(self, work: Work) -> list[Call]:
        """build into the store, and convert; ``--force`` lets package managers run without privilege."""
        env = self._environment(work)
        words = ["ch-image", "build", "--force", *([] if work.cache else ["--no-cache"]), *work.options]
        if work.bundle is not None:
            words += ["--bind", f"{work.bundle.folder}:{MOUNT}"]
        stored = self.stored_name(work.plan)
        end = ("-f", work.recipe.name, work.context.name)
        calls = [Call((*words, "-t", stored, *end), env=env, cwd=work.recipe.parent)]
        if work.target.kind != "ch-image":
            format = CONVERSIONS[work.target.kind]
            convert = ("ch-convert", "-i", "ch-image", "-o", format, stored, work.target.temporary)
            env = {name: value for name, value in env.items() if name == "USER"}
            calls.append(Call(convert, env=env, step=len(work.steps) - 1))
        return calls

    def publish(self, work: Work) -> list[Call]:
        """A name in the store is given by a build of nothing but the base, which is the image."""
        if work.target.kind != "ch-image":
            return []
        words = ["ch-image", "build", *([] if work.cache else ["--no-cache"]), "-t", work.target.name]
        end = ("-f", NAMING, work.context.name)
        return [Call((*words, *end), env=self._environment(work), cwd=work.recipe.parent)]

    def more_files(self, target: Target) -> dict[str, str]:
        """What :meth:`publish` builds."""
        return {NAMING: f"FROM {target.temporary}\n"} if target.kind == "ch-image" else {}

    def clean(self, work: Work, built: bool) -> list[Call]:
        """The image in the store and those of its stages; what the cache has of them stays."""
        env = {name: value for name, value in self._environment(work).items() if name != "TMPDIR"}
        return [Call(("ch-image", "delete", self.stored_name(work.plan)), env=env)]

    def reader(self, recipe: Recipe) -> Reader:
        """By the line of the Dockerfile."""
        lines = {step.line: index for index, step in enumerate(recipe.steps) if step.line}

        def read(line: str) -> Iterator[Event]:
            found = _LINE.match(line)
            if found is None:
                return
            index = lines.get(int(found[1]))
            if index is not None and recipe.steps[index].keyword == found[3]:
                yield Event("cached" if found[2] == "*" else "begin", index)

        return read

    def built_image(self, target: Target) -> BuiltImage:
        """Of an image in the store, the size of its folder."""
        if target.kind != "ch-image":
            return measured(target.kind, Path(target.name))
        status, text = asked(["ch-image", "gestalt", "storage-path"])
        folder = Path(text.strip().splitlines()[-1]) / "img" / _folder_name(target.name) if status == 0 else None
        size = measured("directory", folder).bytes if folder is not None and folder.is_dir() else None
        return BuiltImage(kind="ch-image", name=target.name, bytes=size)


def _folder_name(reference: str) -> str:
    """How ch-image writes a name as a folder's (image.py, for_path)."""
    return reference.replace("/", "%").replace(":", "+")
