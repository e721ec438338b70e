"""Memory that is freed is kept by default, in huge pages, where programs on CPUs were measured to gain by that.

Only variables of the C library's malloc and of PyTorch's are set. No other allocator takes its place by default: with
one OpenVINO crashes, and what an MPI that watches memory by hooks of its own makes of it was not measured. Programs on
GPUs, and kinds without a measured row, have what they always had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hpcgen.blocks.requirements import Origin, Requirement
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.plan import Finding, Plan
from hpcgen.core.model.project import BLOCK, PackageFile
from hpcgen.core.model.release import MeasuredDefault
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import Stack
from hpcgen.core.support.package_names import normal_name

DECIDES = ("GLIBC_TUNABLES", "LD_PRELOAD", "MALLOC_", "THP_MEM_ALLOC_ENABLE")
"""Who sets a variable that begins so has chosen."""


def default_demands(
    catalog: Catalog,
    site: Site,
    partition: str,
    stack: Stack,
    said: Mapping[str, Mapping[str, str]],
    demands: Sequence[Requirement] = (),
    files: Iterable[PackageFile] = (),
    kept: Mapping[str, str] | None = None,
) -> list[Requirement]:
    """The demand for the block that an image is to have by default; none where it computes on GPUs or somebody chose.

    Parameters
    ----------
    said: what ``--set`` says, by block and option.
    demands, files: what is asked for beside the stack's blocks, and files of the user's project.
    kept: versions of an earlier plan's blocks, where there is one: what that had not, this has not.
    """
    if site.partitions[partition].gpu is not None or _decided(site, partition, stack, said):
        return []
    blocks = {*stack.blocks, *(name for each in demands for name in each.allowed or ())}
    row = _row(catalog, blocks, _packages(stack, said, files))
    if row is None or row.adds is None or not catalog.has_block(row.adds):
        return []
    # Who asks for a part of it has chosen, and an earlier plan may have had a part.
    parts = [row.adds, *(each.name for each in catalog.block(row.adds).needs)]
    wanted = [name for name in parts if not kept or name in kept]
    if not wanted or blocks & {*parts}:
        return []
    origin = Origin(f"what was measured of {row.title}", kind="stack")
    return [Requirement(catalog.identifier(wanted[0]), {wanted[0]: ""}, origin, {})]


def measured_row(catalog: Catalog, plan: Plan) -> MeasuredDefault | None:
    """Why a block is there that nobody asked for; None where there is none."""
    packages = {each.name for each in plan.project.packages} if plan.project is not None else set()
    row = _row(catalog, {each.name for each in plan.blocks}, packages | _packages(plan.stack, {}, ()))
    if (
        row is None
        or not row.adds
        or row.adds in plan.stack.blocks
        or all(each.name != row.adds for each in plan.blocks)
    ):
        return None
    before = plan.extends.blocks if plan.extends is not None else []
    return row if all(each.name != row.adds for each in before) else None


def gained(row: MeasuredDefault) -> str:
    """What was measured, in words."""
    most_first = sorted(row.gained.items(), key=lambda each: (-each[1], each[0]))
    times = ", ".join(f"{name} {times:.2f}" for name, times in most_first)
    return f"{times} times as fast on {row.on}, {row.measured}"


def memory_default(catalog: Catalog, plan: Plan) -> list[Finding]:
    """What is there by default, and what it gained where it was measured."""
    row = measured_row(catalog, plan)
    if row is None:
        return []
    message = f"{row.adds} by default for {row.title}: {gained(row)}"
    remedy = "`memory: plain` in the stack leaves it out"
    return [Finding(name="memory default", severity="note", message=message, remedy=remedy)]


def _decided(site: Site, partition: str, stack: Stack, said: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether the stack, the profile or ``--set`` says how memory is allocated."""
    variables = {*stack.run.environment, *site.environment_of(partition)}
    if stack.memory == "plain" or any(name.startswith(DECIDES) for name in variables):
        return True
    return any(_preloads(name, stack, said) for name in stack.blocks)


def _preloads(name: str, stack: Stack, said: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether an allocator is to take malloc's place, by the option that those have."""
    return str({**stack.blocks[name].options, **said.get(name, {})}.get("preload")).lower() == "true"


def _row(catalog: Catalog, blocks: Iterable[str], packages: Iterable[str]) -> MeasuredDefault | None:
    there, named = {*blocks}, {*packages}
    return next(
        (row for row in catalog.measured_defaults if there & {*row.blocks} or named & {*row.packages}),
        None,
    )


def _packages(stack: Stack, said: Mapping[str, Mapping[str, str]], files: Iterable[PackageFile]) -> set[str]:
    """Names of the Python packages that are asked for."""
    asked = {each.name for file in files for each in file.requirements}
    if BLOCK not in stack.blocks:
        return asked
    pins = stack.blocks[BLOCK].options.get("packages")
    lines = list(pins) if isinstance(pins, list) else []
    lines += said.get(BLOCK, {}).get("packages", "").split(",")
    return asked | {normal_name(line.partition("==")[0]) for line in lines if line}
