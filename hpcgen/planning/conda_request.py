"""The conda request of a plan, with the properties of base, node and MPI that limit it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hpcgen.blocks.requirements import in_range
from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.project import CONDA
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.model.nodes import Gpu
from hpcgen.core.model.plan import PlannedBlock, PlannedConda
from hpcgen.core.model.site import Site
from hpcgen.core.support.wheel_tags import as_numbers, minor_of

FAMILIES = {"mpich": "mpich", "intel_mpi": "mpich", "mvapich": "mpich", "mvapich2": "mpich", "openmpi": "openmpi"}
"""Which of conda-forge's MPI packages has the binary interface of a block."""
_KERNEL = "4.18"
"""What is said of Linux: that of the oldest distributions that sites run (RHEL 8); no profile has it."""


def planned_conda(
    catalog: Catalog, site: Site, partition: str, blocks: Sequence[PlannedBlock], document: Document | None
) -> PlannedConda | None:
    """The conda request of the blocks of a plan; errors as :func:`hpcgen.catalog.conda_asked.asked_of_conda`."""
    block = next((each for each in blocks if each.name == CONDA), None)
    if block is None:
        return None
    from hpcgen.catalog.conda_asked import asked_of_conda

    asked = asked_of_conda(catalog.project, block, document, site.system.architecture)
    if asked is None:
        return None
    return msgspec.structs.replace(
        asked,
        held=_held(blocks),
        virtual=_virtual(catalog, site, partition, blocks[0]),
    )


def _held(blocks: Sequence[PlannedBlock]) -> list[str]:
    """No second MPI: conda-forge has empty builds of the image's family, which use the MPI that is there.

    Source: https://conda-forge.org/docs/user/tipsandtricks/#using-external-message-passing-interface-mpi-libraries
    """
    mpi = next((each for each in blocks if "mpi" in each.provides), None)
    family = FAMILIES.get(mpi.name, "") if mpi is not None else ""
    return [f"mpi=*={family}", f"{family}=*=external_*"] if family else []


def _virtual(catalog: Catalog, site: Site, partition: str, base: PlannedBlock) -> dict[str, str]:
    """Source: https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-virtual.html."""
    node = site.partitions[partition]
    glibc = str(catalog.release(base).values.get("glibc", ""))
    found = {"__unix": "0", "__linux": _KERNEL, "__archspec": f"1={node.cpu.target}"}
    if glibc:
        found["__glibc"] = glibc
    if cuda := _cuda(catalog, node.gpu):
        found["__cuda"] = cuda
    return found


def _cuda(catalog: Catalog, gpu: Gpu | None) -> str:
    """The newest CUDA that the node's driver runs; empty without a GPU, or if the driver is not known."""
    if gpu is None or gpu.vendor != "nvidia" or gpu.driver is None:
        return ""
    driver = gpu.driver
    known = [
        version
        for version, row in catalog.releases("cuda").items()
        if "driver" in row.host and in_range(driver, row.host["driver"])
    ]
    return minor_of(max(known, key=as_numbers)) if known else ""
