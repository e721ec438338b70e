"""What every file says at its top."""

from __future__ import annotations

from hpcgen.model.plan import Plan
from hpcgen.support.quoting import plain


def header(plan: Plan, what: str) -> list[str]:
    """Lines without comment marks: version, site, stack, and the command that gives this very file again, if any."""
    made = [f"by hpcgen {plan.hpcgen}; made again by:", f"  {plan.command}"]
    if not plan.command:
        made = [f"by hpcgen {plan.hpcgen}, from Python"]
    return [f"{what} of {plan.stack.name} for {plan.site.name}, partition {plan.partition}", *made]


def recipe_header(plan: Plan, what: str = "") -> list[str]:
    """Three lines for a recipe or its script: what it makes of which versions, how it was made, where the reasons are.

    Named are the blocks that the stack asks for, with the MPI, and the base.
    """
    wanted = [block for name in (*plan.stack.blocks, "mpi") if (block := plan.block(name)) is not None]
    named = {block.name: f"{block.name} {block.version}" for block in wanted if not block.build_only}
    base = plan.blocks[0]
    named.pop(base.name, None)
    versions = ", ".join(named.values())
    return [
        f"{what}{plan.stack.name} for {plan.site.name}, partition {plan.partition}: {versions} "
        f"on {base.name} {base.version}",
        f"made by hpcgen {plan.hpcgen}: {plan.command}",
        "why these versions: hpcgen explain, or plan.json beside this file",
    ]


def commented(lines: list[str]) -> str:
    """The lines as a comment of shells, Dockerfiles and definition files; InputError if one would not stay one."""
    return "\n".join(f"# {plain(line, 'a comment')}".rstrip() for line in lines)
