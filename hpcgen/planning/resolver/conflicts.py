"""If nothing fits: the clashing requirements, the place of each, and the releases that the site allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpcgen.backends.hardware.mpi_abi import wanted_abi, whose
from hpcgen.blocks.requirements import Candidate, Requirement, refusing_facts, version
from hpcgen.core.errors import InputError
from hpcgen.planning.resolver.clash import clash
from hpcgen.planning.resolver.exact import exact
from hpcgen.planning.resolver.question import Question

SHOWN = 6
"""So many releases of one block are listed; of more the number is told."""


def clash_of(question: Question) -> list[Requirement]:
    """Requirements that clash by themselves, where there is no plan.

    Raises
    ------
    InputError: only blocks that need each other stand in the way.
    """
    stated = exact(question, question.all_roots())
    if circle := stated.circle():
        raise _circle_error(question, circle)
    found = clash(stated).requirements
    # What the user asks for and nothing meets is the mistake, though it takes somebody who needs the block to clash.
    said = (each for each in found if each.origin.kind in ("set", "stack", "file"))
    return next(([each] for each in said if not fitting(question, each)), found)


def _circle_error(question: Question, blocks: Sequence[str]) -> InputError:
    circle = ", ".join(f"{one} needs {other}" for one, other in zip(blocks, [*blocks[1:], blocks[0]], strict=True))
    places = ", ".join(str(question.catalog.block_origin(name)) for name in blocks)
    return InputError(f"these blocks need each other: {circle}", where=places, remedy="take one of the needs out")


def told(question: Question, clashing: Sequence[Requirement]) -> str:
    """The clash in words, a line for each requirement, and the releases that the site allows."""
    said = list(_lines(question, clashing))
    more = [line for requirement in clashing for line in unsuited(question, requirement)]
    more += [line for requirement in clashing for line in last_releases(question, requirement)]
    first = f"no known release fits: {said.pop()}" if len(clashing) == 1 else "these cannot be combined:"
    return "\n  - ".join([first, *said, *dict.fromkeys(more)])


def _lines(question: Question, clashing: Sequence[Requirement]) -> Iterator[str]:
    of_block: dict[str, int] = {}
    for each in clashing:
        by = each.origin.by if each.origin.kind == "block" else ""
        of_block[by] = of_block.get(by, 0) + 1
        if not by or of_block[by] <= SHOWN:
            words = {"site": "with {}: {}", "block": "{} needs {}"}.get(each.origin.kind, "{} asks for {}")
            if each.origin.why:
                words = "{} only works with {}: " + each.origin.why.replace("{", "{{").replace("}", "}}")
            yield words.format(_who(each), _what(question, each))
    for by, number in of_block.items():
        if by and number > SHOWN:
            yield f"and {number - SHOWN} more releases of {by}"


def _who(requirement: Requirement) -> str:
    place = requirement.origin.place()
    return f"{requirement.origin.text} ({place})" if place is not None else requirement.origin.text


def _what(question: Question, requirement: Requirement) -> str:
    if requirement.origin.kind == "site":
        names = [str(c) for c in fitting(question, requirement)]
        if not names:
            return f"no known {requirement.identifier}"
        return f"only {', '.join(names[:6])}" + (" …" if len(names) > 6 else "")
    return str(requirement)


def unsuited(question: Question, requirement: Requirement) -> list[str]:
    """Providers that a requirement names and that cannot work at the site; of an MPI also which one the host has."""
    providers = question.catalog.virtuals.get(requirement.identifier, [])
    suited = question.providers(requirement.identifier)
    host, where = question.facts.mpi, ""
    if requirement.identifier == "mpi" and host is not None:
        place, abi = question.node.place("mpi.abi"), whose(wanted_abi(host))
        where = f", whose {host.flavour} {host.version} has the binary interface of {abi}"
        where += f" ({place})" if place is not None else ""
    names = [name for name in requirement.allowed or () if name in providers and name not in suited]
    return [f"{name} cannot work at this site{where}" for name in names]


def last_releases(question: Question, requirement: Requirement) -> list[str]:
    """For each fact of the node that ends a block's releases: the last one that the fact allows, in words."""
    facts = question.node.known
    lines = []
    for block in dict.fromkeys(c.block for c in question.candidates(requirement.identifier)):
        known = [
            c
            for c in question.candidates(requirement.identifier)
            if c.block == block and question.here(c).for_gpu(c.version)
        ]
        known.sort(key=lambda candidate: version(candidate.version), reverse=True)
        for name, (value, _) in facts.items() if known else ():
            fitting = [c for c in known if name not in refusing_facts(question.release(c), facts)]
            if not fitting:
                lines.append(f"no known {block} supports {name} {value}")
            elif fitting[0] is not known[0]:
                lines.append(f"{fitting[0]} is the last that supports {name} {value}")
    return lines


def fitting(question: Question, requirement: Requirement) -> list[Candidate]:
    """The candidates that a requirement accepts, whatever else there is."""
    return [c for c in question.candidates(requirement.identifier) if requirement.accepts(c)]


def known(question: Question, requirement: Requirement) -> str:
    """The versions that there are, where a requirement asks for another one."""
    every = question.candidates(requirement.identifier)
    names = [str(c) for c in every if c.block in (requirement.allowed or ())] or [str(c) for c in every]
    return f"one of {', '.join(names[:12])}" + (" …" if len(names) > 12 else "") if names else ""
