"""Lists of packages that are taken as source, and of what their builds require, beside the list that asks for them.

What can be built with the same tools is one list, ``NAME-source-N``. Tools that the environment has are taken from
there, in particular its setuptools: below 81, so with pkg_resources, which an old setup.py may import. It is too new
for ``use_2to3``, which went with 58. What else is required is in ``NAME-tools-N``, for a folder of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hpcgen.blocks.inputs.wheels import SOURCE, TOOLS
from hpcgen.core.errors import ConflictError
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.units import some
from hpcgen.core.support.wheel_tags import WheelTarget
from hpcgen.recipe.requirement_lines import package_line, requirements

if TYPE_CHECKING:
    from hpcgen.supply.pin.uv_resolver import Resolved


class UnbuildableError(ConflictError):
    """What the builds of some source packages require is not to be had."""

    packages: Sequence[Resolved] = ()


def source_lists(
    name: str,
    built: Sequence[Resolved],
    there: Sequence[str],
    target: WheelTarget,
    compiler: bool,
    say: Callable[[str], None],
) -> dict[str, list[str]]:
    """Hashed lines by the name of their list.

    built: source packages with what was read of them. there: hashed lines of the environment that they are built in.
    compiler: whether the image is built with one. UnbuildableError: what a build requires is not available as wheels.
    """
    by_tools: dict[tuple[str, ...], list[Resolved]] = {}
    for each in built:
        asked = each.source.tools if each.source is not None else ()
        by_tools.setdefault(tuple(sorted(set(asked))), []).append(each)
    found: dict[str, list[str]] = {}
    for number, (asked, packages) in enumerate(sorted(by_tools.items(), key=lambda each: each[1][0].name), 1):
        if tools := _tools(asked, packages, there, target):
            found[name + TOOLS.format(number)] = tools
        found[name + SOURCE.format(number)] = [each.line for each in packages]
    say(f"built from their source packages, since no wheel fits: {some([f'{e.name} {e.version}' for e in built], 20)}")
    for each in built if not compiler else ():
        if each.source is not None and each.source.compiled:
            say(
                f"warning: {each.name} {each.version} has {each.source.compiled}, and the image is built without a "
                "compiler; --add gnu, if its build needs one"
            )
    return found


def _tools(asked: Sequence[str], packages: Sequence[Resolved], there: Sequence[str], target: WheelTarget) -> list[str]:
    """Hashed lines of what builds require beyond the environment, whose versions count as far as they will do."""
    from hpcgen.supply.pin.wheels import lock_wheels

    has = {said.name: said.version for line in there if (said := package_line(line.partition(" --hash=")[0]))}
    plain = [each for each in requirements(asked) if each.marker is None and not each.extras]
    names = [normal_name(each.name) for each in plain if each.specifier.contains(has.get(normal_name(each.name), "0"))]
    if len(plain) == len(asked) and all(name in has for name in names) and len(names) == len(asked):
        return []
    where = (target.python, target.architecture, target.glibc)
    try:
        lines = lock_wheels(asked, *where, constraints=there)
    except ConflictError:
        try:
            lines = lock_wheels(asked, *where)
        except ConflictError as failure:
            told = some([f"{each.name} {each.version}" for each in packages])
            first = failure.problems[0]
            refused = UnbuildableError(
                f"{told}: no wheel fits, and build requirements of the source package are not available:\n"
                f"{first.message}",
                remedy="choose a version with wheels",
            )
            refused.packages = packages
            raise refused from None
    return [line for line in lines if line not in there]
