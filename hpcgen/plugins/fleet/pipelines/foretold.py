"""What whoever writes a pipeline should know of it: members that it cannot build, or does not test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpcgen.core.support.units import counted
from hpcgen.plugins.fleet.changes import MemberState
from hpcgen.plugins.fleet.pipelines.options import ARM, PipelineOptions, build_kind
from hpcgen.recipe.formats import format_for


def foretold(service: str, machine: str, states: Sequence[MemberState], options: PipelineOptions) -> list[str]:
    """Lines for the user.

    ``machine``: where jobs run by default, as :attr:`~hpcgen.recipe.formats.Format.setup` calls it.
    """
    planned = [each for each in states if each.plan is not None]
    lines = [f"warning: {problem}" for each in states for problem in each.problems]
    foreign = [each.member.name for each in planned if build_kind(each) == ARM]
    if foreign and service == "gitlab" and not options.runner(ARM, []):
        lines.append(f"warning: {_listed(foreign)}: for aarch64, and no runner is named for that: their jobs fail")
        lines.append("  remedy: --runner aarch64=TAG")
    own = [each for each in planned if build_kind(each) != ARM]
    for form in sorted({each.format for each in own}):
        if options.runner(form, []) or options.image(form, ""):
            continue
        lines += _missing(service, machine, form, [each for each in own if each.format == form])
    untested = [each.member.name for each in planned if each.member.test and not each.tests]
    if untested:
        lines.append(
            f"note: {_listed(untested)}: no tests beyond the self-test that ends the build: they start ranks by the "
            "site's MPI, which the pipeline's machines lack"
        )
        lines.append("  remedy: `test_site: SITE` in the fleet names the profile of the machine that tests")
    return lines


def _missing(service: str, machine: str, form: str, states: Sequence[MemberState]) -> Iterator[str]:
    known = format_for(form)
    remedy = f"--runner {form}=LABEL"
    if service == "gitlab":
        remedy += f", --image {form}=IMAGE, or the variable HPCGEN_SETUP_{form.upper()}"
    if machine not in known.setup:
        yield f"warning: {_listed([each.member.name for each in states])}: {machine} has no engine for {form}"
        yield f"  remedy: {remedy}"
        return
    ready = known.ready_engines.get(machine)
    for each in states:
        if ready is not None and each.member.engine is not None and each.member.engine not in ready:
            yield f"warning: {each.member.name}: {machine} has {' and '.join(ready)}, not {each.member.engine}"
            yield f"  remedy: {remedy}"


def _listed(names: Sequence[str]) -> str:
    """The first of them, and how many there are if they are many."""
    few = ", ".join(names[:5])
    return few if len(names) <= 5 else f"{few} and {counted(len(names) - 5, 'more member')}"
