"""The block rank_test as others see it: its program, and what the MPI libraries that it loads print and are called."""

from __future__ import annotations

from pathlib import Path

from hpcgen.backends.hardware.mpi_abi import MPI_LIBRARIES, STANDARD
from hpcgen.core.model.plan import Plan

RANK_TEST = "rank_test"
"""The block whose program says which ranks there are, and what they have loaded."""

RANK_PROGRAM = f"/opt/{RANK_TEST}/bin/{RANK_TEST}"

LABEL = r"([^a-z]*[]>:] *|.*<stdout>: *)"
"""A regular expression, of Python and of awk: what launchers put before each line of a rank when they are asked to.

Seen: ``0: `` of srun, ``[0] `` and ``2026-11-22 18:43:15 : `` of Hydra, ``[1,0]<stdout>:`` and ``Sun Nov 22 18:43:14
2026<stdout>:`` of Open MPI.
"""

MPI_FILE = r"/(libmpi(_[a-z0-9_]+)?\.so|libmpich\.so)"
"""A regular expression, of Python and of awk, that finds an MPI library among the files that a rank has mapped."""

PROVIDER_IS = "libfabric provider: "
"""What an MPI puts before the name of the provider that it has chosen."""

DEBUG = {
    "I_MPI_DEBUG": "4",
    "MPIR_CVAR_DEBUG_SUMMARY": "1",
    "MPIR_CVAR_CH4_OFI_CAPABILITY_SETS_DEBUG": "1",
}
"""Variables that have an MPI say at its start which provider of libfabric it has chosen.

Intel MPI 2021.17: ``[0] MPI startup(): libfabric provider: tcp``, seen; 2019: the same, UCL-ARC/rcps-buildscripts
issue 224. MPICH from 3.3 on: ``libfabric provider: tcp`` (pmodels/mpich, ch4/netmod/ofi, ofi_init.c); the first name
of its variable is that of 4.x, the second that of 3.x.
"""

OPEN_MPI_DEBUG = {"OMPI_MCA_pml_base_verbose": "10", "OMPI_MCA_opal_common_ofi_verbose": "1"}
"""The same for Open MPI, which says much more: ``select: component ob1 selected``, once for each rank.

Seen with 4.1.4 and 5.0.7. The component cm goes over libfabric, and says ``mtl:ofi:prov: psm2`` (4.1) or
``mtl:ofi:provider: psm2`` (5.0).
"""

OPEN_MPI_COMPONENT = r"select: component (cm|ob1|ucx) selected"
OPEN_MPI_OFI = r"mtl:ofi:prov(ider)?: "
"""Regular expressions, of Python and of awk: the component that was chosen, and what stands before cm's provider."""

OPEN_MPI_PROVIDERS = {"ob1": "tcp", "ucx": "ucx"}
"""What the other components come to between nodes."""

OPEN_MPI_CHATTER = r"^\[[^]]*:[0-9]+\] (mca: base: |select(ed)?:? |mtl_ofi|check:select)"
"""What else it says then, of which nothing matters to people. Seen with 4.1.4."""


def rank_words(plan: Plan) -> list[str]:
    """The command of a rank that tells these things; empty where an image has none.

    In an image that hpcgen did not build its Python loads its MPI; of the standard's interface alone that is not done.
    """
    if plan.block(RANK_TEST) is not None:
        return [RANK_PROGRAM]
    abi, python = plan.mpi.abi, plan.found.python if plan.found is not None else ""
    if not python or abi in ("", STANDARD):
        return []
    text = (Path(__file__).with_name("programs") / "rank_program.py").read_text("utf-8")
    library = MPI_LIBRARIES[abi]
    return [python, "-c", f"exec({text!r})", library, f"{plan.mpi.folder}/{library}", abi]
