"""The header of every file."""

from __future__ import annotations

from hpcgen.core.model.plan import Plan
from hpcgen.core.support.quoting import plain


def header(plan: Plan, what: str = "") -> list[str]:
    """Three lines without comment marks: what it makes of which versions, how it was made, where the reasons are.

    Named are the blocks that the stack asks for, with the MPI, and the base.

    Parameters
    ----------
    what: the kind of file, such as ``build script of ``; "" for the recipe itself.
    """
    asked = [block for name in (*plan.stack.blocks, "mpi") if (block := plan.block(name)) is not None]
    named = {block.name: f"{block.name} {block.version}" for block in asked if not block.build_only}
    base = plan.blocks[0]
    named.pop(base.name, None)
    made = f": {plan.command}" if plan.command else " from Python"
    return [
        f"{what}{plan.stack.name} for {plan.site.name}, partition {plan.partition}: {', '.join(named.values())} "
        f"on {base.name} {base.version}",
        f"made by hpcgen {plan.hpcgen}{made}",
        "why these versions: plan.json next to this file, or the same command with plan in place of render",
    ]


def commented(lines: list[str]) -> str:
    """The lines as a comment of shells, Dockerfiles and definition files; InputError if one would not stay one."""
    return "\n".join(f"# {plain(line, 'a comment')}".rstrip() for line in lines)
