"""The part of a definition file that is built once and kept, as Apptainer keeps no steps.

It is an image of its own, from which the rest of the builder starts (``Bootstrap: localimage``). One of a stack and a
site is there at a time, below the folder where the engine keeps its downloads, for its owner alone.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from hpcgen.backends.engines.building import Work
from hpcgen.backends.engines.steps import STEP_MARK
from hpcgen.core.model.recipe_facts import KeptPart
from hpcgen.core.support.hashing import file_sha256

FOLDER = "hpcgen-builders"
NAME = re.compile(r"[a-z0-9._-]+-[0-9a-f]{32}\.sif")
_PLAIN_PATH = re.compile(r"/[A-Za-z0-9._/@+-]+")
"""What ``From:`` takes as it is: a definition file quotes nothing."""


class KeptStage(msgspec.Struct, frozen=True):
    """A kept image, and what is built.

    ``image``: its file. ``first``, ``rest``: the definition files of it and of all else. ``needs``: files of the kit
    that it installs. ``steps``: how many it has, with its base.
    """

    image: Path
    first: str
    rest: str
    needs: list[str]
    steps: int

    @property
    def there(self) -> bool:
        """Whether it was built before; what others could have written does not count."""
        return not self.image.is_symlink() and self.image.is_file() and own(self.image)

    @property
    def older(self) -> list[Path]:
        """Those of the same stack and site, which it replaces."""
        mine = self.image.name[:-37]
        return [each for each in kept_files(self.image.parent) if each.name[:-37] == mine and each != self.image]

    def texts(self, work: Work) -> dict[Path, str]:
        """Both definition files, and what the folder has in which the first is built."""
        folder = first_folder(work)
        needs = {folder / name: (work.kit / name).read_text(encoding="utf-8") for name in self.needs}
        return {**needs, folder / "first.def": self.first, rest_file(work): self.rest}


def first_folder(work: Work) -> Path:
    """Where the kept image is built."""
    return work.scratch / "kept"


def rest_file(work: Work) -> Path:
    """The definition file of all else."""
    return work.scratch / "rest.def"


def kept_stage(work: Work, part: KeptPart, cache: Path, about: Iterable[str]) -> KeptStage | None:
    """What of a build is kept.

    Returns None where it cannot be kept: others may write in the folder, or its name would have to be quoted.

    part: where it stands in the recipe.
    cache: the folder of the engine's downloads.
    about: what else decides the result: the engine and its version, who builds.
    """
    folder = cache / FOLDER
    if not _PLAIN_PATH.fullmatch(str(folder)) or (folder.exists() and not own(folder)):
        return None
    lines = work.recipe.read_text(encoding="utf-8").split("\n")
    head, section = lines[part.stage : part.files], lines[part.files : part.variables]
    taken = [line for number, line in enumerate(section, part.files) if not part.copied or number != part.copied]
    # The rest brings the kit's files anew.
    away = ["%post", f"    rm -rf {part.arrival}", ""]
    first = [*head, *taken, *lines[part.variables : part.end], *away]
    digest = hashlib.sha256()
    for text in [*about, *(line for line in first if STEP_MARK not in line)]:
        digest.update(f"{text}\n".encode())
    try:
        for name in part.needs:
            digest.update(f"{name} {file_sha256(work.kit / name)}\n".encode())
        for source in [each.source for each in work.certificates] + ([part.base] if part.base else []):
            facts = Path(source).stat()
            digest.update(f"{source} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    except OSError:
        return None  # the build says what is missing
    image = folder / f"{work.plan.stack.name}-{work.plan.site.name}-{digest.hexdigest()[:32]}.sif".lower()
    start = ["BootStrap: localimage", f"From: {image}", "Stage: builder", ""]
    rest = [*lines[: part.stage], *start, *section, *lines[part.variables : part.steps], *lines[part.end :]]
    return KeptStage(image, "\n".join(first), "\n".join(rest), part.needs, part.count + 1)


def own(path: Path) -> bool:
    """Whether nobody else could have written it."""
    facts = path.lstat()
    return facts.st_uid == os.geteuid() and not facts.st_mode & 0o022


def kept_files(folder: Path) -> list[Path]:
    """The kept images of a folder of such."""
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return []
    return [each for each in found if NAME.fullmatch(each.name) and not each.is_symlink() and own(each)]
