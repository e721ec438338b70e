"""Which of several programs people start: the one that most of a project's pages and scripts name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from msgspec.structs import replace

from hpcgen.core.model.own_project import BuildFile
from hpcgen.readers.folder import ProjectFolder, ProjectTree

_TOLD = re.compile(
    r"(?:[^/]+/){0,2}(?:(?:README|INSTALL|QUICKSTART)[^/]*|[^/]+\.(?:md|rst|sh|slurm|sbatch|job|ya?ml))"
    r"|(?:docs?|documentation)/.+\.(?:md|rst|txt)|(?:[^/]+/){0,3}run[^/.]*",
    re.I,
)
_WORD = re.compile(r"(?<![\w.+-])[\w+.-]*[\w+]")
_MOST, _LARGEST = 150, 256 * 1024
"""Of the files: how many are read, and bytes of one."""


def most_mentioned(
    build: BuildFile, tree: ProjectTree, read: Callable[[Callable[[ProjectFolder, str], str], str], str | None]
) -> BuildFile:
    """The build with the programs for which nothing else speaks in the order of the files that name them.

    ``read``: reads a file with a reader; None where that is no text.
    """
    likeliest = min((each.likely for each in build.programs), default=0)
    names = {each.name for each in build.programs if each.likely == likeliest}
    if len(names) < 2:
        return build
    counted: Counter[str] = Counter()
    paths = [each.path for each in tree.files if each.size <= _LARGEST and _TOLD.fullmatch(each.path)]
    for path in sorted(paths, key=lambda path: path.count("/"))[:_MOST]:
        text = read(lambda folder, path: folder.text(path), path) or ""
        counted.update(names & {*_WORD.findall(text)})
    programs = sorted(build.programs, key=lambda each: (each.likely, -counted[each.name]))
    return replace(build, programs=programs)
