"""Programs that are linked with the binary interface of the MPI 5 standard, where a host's MPI is to replace it."""

from __future__ import annotations

from hpcgen.backends.hardware.mpi_abi import MPI_LIBRARIES, STANDARD, wanted_abi
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.context import Context
from hpcgen.blocks.declared import Facts
from hpcgen.blocks.steps import Test, command


def by_standard(facts: Facts) -> bool:
    """Whether programs of the image are linked with the standard's library, because the host's MPI takes its place."""
    return facts.mpi is not None and wanted_abi(facts.mpi) == STANDARD


def mpicc(ctx: Context) -> str:
    """The MPI compiler for C; for C++ it is ``mpicxx`` with the same ending.

    Source: MPICH's and Open MPI's own wrappers, which link with ``libmpi_abi`` by the standard's ``mpi.h``.
    """
    return "mpicc_abi" if by_standard(ctx.facts) else "mpicc"


def mpicxx(ctx: Context) -> str:
    """The MPI compiler for C++."""
    return "mpicxx_abi" if by_standard(ctx.facts) else "mpicxx"


def linked(ctx: Context) -> Capabilities:
    """The capabilities of a block of which all programs are linked by :func:`mpicc` or :func:`mpicxx`."""
    return Capabilities(linked_mpi=STANDARD if by_standard(ctx.facts) else "")


def linked_test(ctx: Context, program: str) -> list[Test]:
    """That a program is linked with the standard's library, where it is to be."""
    if not by_standard(ctx.facts):
        return []
    return [Test("MPI interface", command("ldd", program), expect=MPI_LIBRARIES[STANDARD])]
