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


def commented(lines: list[str]) -> str:
    """The lines as a comment of shells, Dockerfiles and definition files; InputError if one would not stay one."""
    return "\n".join(f"# {plain(line, 'a comment')}".rstrip() for line in lines)
