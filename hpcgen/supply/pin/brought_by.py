"""Which of the packages that were asked for brings another one, by what depends on what."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from hpcgen.supply.pin.base_shell import BaseShell, quoted

_DEPENDS = re.compile(r"[ |](?:Pre)?Depends: (\S+)")


def chains_to(
    ends: Collection[str], names: Iterable[str], depends: Mapping[str, Collection[str]]
) -> list[tuple[str, ...]]:
    """From each name the shortest chain of dependencies to one of the ends; names without one are left out."""
    found: list[tuple[str, ...]] = []
    for name in sorted({each.partition(":")[0] for each in names}):
        chains: list[tuple[str, ...]] = [(name,)]
        seen = {name}
        for chain in chains:
            if chain[-1] in ends:
                found.append(chain)
                break
            further = [each for each in depends.get(chain[-1], ()) if each not in seen]
            seen.update(further)
            chains += [(*chain, each) for each in further]
    return found


def apt_depends(shell: BaseShell, names: Collection[str]) -> dict[str, list[str]]:
    """On which of the others each package depends, alternatives and packages that provide a name included.

    Source: apt-cache(8), ``depends --important``: a package at the beginning of its line, what it depends on below it
    with two columns before, and what provides such a name with four.
    """
    asked = ["apt-cache", "depends", "--important", "--", *sorted(names)]
    found: dict[str, list[str]] = {}
    of = ""
    for line in shell.check(quoted(asked), "apt-cache depends"):
        if line[:1] not in (" ", "|"):
            of = line.strip()
            continue
        match = _DEPENDS.search(line)
        needed = match[1].strip("<>") if match is not None else line.strip()
        if needed in names and needed not in found.setdefault(of, []):
            found[of].append(needed)
    return found
