"""Ranks that a self-test starts by the image's own launcher, whichever MPI that is of."""

from __future__ import annotations

from hpcgen.core.support.quoting import command

KEPT = ("PATH", "LD_LIBRARY_PATH", "I_MPI_ROOT", "MPI4PY_LIBMPI", "MPIR_CVAR_CH4_NETMOD")
SETTINGS = (
    "HOME=/tmp",
    "HYDRA_LAUNCHER=fork",
    "I_MPI_HYDRA_BOOTSTRAP=fork",
    "OMPI_ALLOW_RUN_AS_ROOT=1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
)


def own_ranks(ranks: int, *words: str) -> str:
    """A shell command that starts a program on some ranks of this machine.

    With nothing around it of another launcher, for the self-test may be a rank itself. The program is told the number
    of ranks, as those of a job are.
    """
    kept = " ".join(f'{name}="${{{name}:-}}"' for name in KEPT)
    return f"env -i {kept} {command(*SETTINGS, f'HPCGEN_RANKS={ranks}', 'mpiexec', '-n', str(ranks), *words)}"
