"""Programs that a build compiles and then runs itself: protoc, generators of code.

They run where the image is built, on a CPU that may be older than the partition's, so they get no flags for that.
Source: CMake's manual of ``CMAKE_PROJECT_<PROJECT-NAME>_INCLUDE``, a file that is read at the end of ``project()``.
"""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.context import Context
from hpcgen.blocks.steps import TextFile, lines
from hpcgen.core.model.image_paths import SCRATCH

PLAIN = f"{SCRATCH}/host_tools.cmake"


def plain_projects(ctx: Context, projects: Iterable[str]) -> dict[str, str]:
    """CMake's variables by which these projects of a build are compiled without the flags for the partition's CPU.

    ``projects``: their names as their own ``project()`` has them; the libraries that their programs are linked with
    must be of them, too.
    """
    return {f"CMAKE_PROJECT_{name}_INCLUDE": PLAIN for name in projects} if ctx.flags else {}


def plain_file(ctx: Context) -> list[TextFile]:
    """The file that the variables name, for the step that calls CMake."""
    if not ctx.flags:
        return []
    flags = " ".join(ctx.flags)
    text = lines(
        "# What this project builds is run while the image is built, perhaps on an older CPU than the image is for.",
        *(f'string(REPLACE "{flags}" "" {name} "${{{name}}}")' for name in ("CMAKE_C_FLAGS", "CMAKE_CXX_FLAGS")),
    )
    return [TextFile("files/settings/host_tools.cmake", PLAIN, text)]
