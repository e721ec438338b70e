"""One MPI in an image: no package of the distribution brings a second one besides that of a block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hpcgen.core.model.mpi_packages import MpiPackages
from hpcgen.core.model.plan import PlannedBlock
from hpcgen.core.support.units import some
from hpcgen.planning.contract.case import Check, ContractCase, holds, skipped

NAME = "one MPI"


def packages(case: ContractCase) -> list[Check]:
    """The packages that blocks ask for by name; what these depend on is known once they are locked."""
    block = case.mpi
    if block is None:
        return [skipped(NAME, "the image has no MPI of a block")]
    names = sorted({name for by, names in case.requested.items() if by != block.name for name in names})
    found = [_check(case, block, row, [name]) for name in names if (row := _second(case, block, name)) is not None]
    return found or [holds(NAME, f"no package of the distribution is known to bring another than {block.label}")]


def brought(case: ContractCase, chains: Iterable[Sequence[str]]) -> list[Check]:
    """The packages that bring an MPI by what they depend on.

    ``chains``: each from a package that was asked for down to an MPI's own.
    """
    block = case.mpi
    if block is None:
        return []
    rows = [(chain, _second(case, block, chain[-1])) for chain in chains]
    return [_check(case, block, row, chain) for chain, row in rows if row is not None]


def depends(chain: Sequence[str]) -> str:
    """A chain of dependencies for people: a depends on b, which depends on c."""
    return ", which depends on ".join([" depends on ".join(chain[:2]), *chain[2:]])


def _second(case: ContractCase, block: PlannedBlock, name: str) -> MpiPackages | None:
    """The MPI that a package brings, unless the image's MPI is the distribution's own."""
    manager, table = _manager(case), case.mpi_packages()
    row = table.mpi_of(manager, name)
    own = {mine.library for each in case.requested.get(block.name, ()) if (mine := table.mpi_of(manager, each))}
    if case.plan.mpi.folder.startswith(("/usr/lib", "/lib")):
        own.add(case.mpi_capabilities.mpi_library)
    return row if row is not None and row.library not in own else None


def _check(case: ContractCase, block: PlannedBlock, row: MpiPackages, chain: Sequence[str]) -> Check:
    """Doubtful where both libraries have one name: then the image's may be found first."""
    mine, asked = case.mpi_capabilities.mpi_library, chain[0]
    others = [each for each, names in case.requested.items() if asked in names and each != "os_packages"]
    who = f"the package {asked}" + (f", which the block {some(others)} asks for," if others else "")
    whose = f"the distribution's {row.mpi} ({row.library})"
    here = f"{block.label} ({mine})" if mine else block.label
    told = f": {depends(chain)}" if len(chain) > 1 else ""
    if row.library == mine:
        reason = f"{who} brings {whose} besides {here}{told}; programs may load either, since both have one name"
        return Check(NAME, "doubtful", reason, _remedy(case, block, chain))
    reason = (
        f"{who} brings {whose}, a second MPI besides {here}{told}; programs linked with it do not use the site's fabric"
    )
    return Check(NAME, "broken", reason, _remedy(case, block, chain), "one MPI")


def _remedy(case: ContractCase, block: PlannedBlock, chain: Sequence[str]) -> str:
    table, manager, asked = case.mpi_packages(), _manager(case), chain[0]
    if len(chain) == 1 and table.is_mpi(manager, asked):
        return f"leave {asked} out: {block.name} brings the library, its headers and compilers"
    if instead := table.instead_of(manager, asked, case.known_blocks()):
        return f"instead of {asked}, use {instead}"
    return f"leave {asked} out, and compile what needs it in `build`, over the image's MPI"


def _manager(case: ContractCase) -> str:
    """The base's package manager; "" of an image by others, where it is not known."""
    row = case.releases.get(case.plan.blocks[0].name)
    return str(row.values.get("package_manager", "")) if row is not None else ""
