"""The driver of a node's GPUs: that of ``--driver``, or where nobody names one, the one that is planned for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from packaging.version import InvalidVersion, Version

from hpcgen.blocks.requirements import in_range
from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.checks import wrong_amd_driver
from hpcgen.core.errors import InputError
from hpcgen.core.model.nodes import Gpu
from hpcgen.core.model.plan import Finding, Plan
from hpcgen.core.model.release import AssumedDriver
from hpcgen.core.model.site import Site

KEPT = 64
"""Of so many sites without a driver a catalog keeps what is planned for."""
OPTION = "--driver"


def with_drivers(catalog: Catalog, site: Site) -> Site:
    """The site with a driver for all its GPUs: where the profile names none, that of the collections' tables.

    The same record for the same site, by which the resolver knows what it has worked out.
    """
    lacking = [name for name, each in site.partitions.items() if each.gpu is not None and each.gpu.driver is None]
    if not lacking:
        return site

    def made() -> Site:
        partitions = dict(site.partitions)
        for name in lacking:
            gpu = partitions[name].gpu
            row = assumed(catalog, gpu) if gpu is not None else None
            if gpu is not None and row is not None:
                gpu = msgspec.structs.replace(gpu, driver=row.driver, driver_assumed=True)
                partitions[name] = msgspec.structs.replace(partitions[name], gpu=gpu)
        return msgspec.structs.replace(site, partitions=partitions)

    return kept(catalog, id(site), site, made)


def kept(catalog: Catalog, key: object, site: Site, make: Callable[[], Site]) -> Site:
    """What a catalog remembers of a site, made the first time."""
    known = catalog.with_drivers.get(key)
    if known is not None and known[0] is site:
        return known[1]
    found = make()
    if len(catalog.with_drivers) >= KEPT:
        catalog.with_drivers.clear()
    catalog.with_drivers[key] = (site, found)
    return found


def assumed(catalog: Catalog, gpu: Gpu) -> AssumedDriver | None:
    """The first row that is for a GPU; None if none is."""

    def fits(row: AssumedDriver) -> bool:
        by_capability = not row.capability or (gpu.capability is not None and in_range(gpu.capability, row.capability))
        return row.vendor == gpu.vendor and by_capability and (not row.targets or gpu.target in row.targets)

    return next(filter(fits, catalog.gpu_drivers), None)


def with_driver(site: Site, partition: str | None, driver: str) -> Site:
    """The site with the driver of ``--driver`` in one partition.

    InputError: the nodes have no GPU, or it is no version of its driver. UnknownNameError: no such partition.
    """
    name = site.known_partition(partition or site.default_partition)
    node = site.partitions[name]
    if node.gpu is None:
        raise InputError(f"a node of {name} has no GPU", OPTION, remedy=f"leave {OPTION} out")
    changed: dict[str, Any] = {**msgspec.to_builtins(node.gpu), "driver": driver, "driver_assumed": False}
    try:
        Version(driver)
        gpu = msgspec.convert(changed, Gpu)
    except (msgspec.ValidationError, InvalidVersion):
        raise InputError(f"{driver!r} is not a driver version", OPTION, "such as 550.54.15") from None
    if gpu.vendor == "amd" and (wrong := wrong_amd_driver(driver)):
        raise InputError([wrong.at(OPTION)])
    return msgspec.structs.replace(site, partitions={**site.partitions, name: msgspec.structs.replace(node, gpu=gpu)})


def assumption(catalog: Catalog, plan: Plan) -> list[Finding]:
    """What was assumed of the driver, where something in the image depends on it."""
    gpu = plan.site.partitions[plan.partition].gpu
    by_conda = plan.conda is not None and "__cuda" in plan.conda.virtual
    asked = by_conda or any("driver" in block.host for block in plan.blocks)
    if gpu is None or not gpu.driver_assumed or not asked:
        return []
    row = assumed(catalog, gpu)
    why = f", {row.why}" if row is not None and row.driver == gpu.driver else ""
    message = f"no driver of {gpu.model} is named, so this is planned for {gpu.driver}{why}"
    return [Finding(name="assumed driver", severity="note", message=message, remedy=said_by(gpu, plan.partition))]


def said_by(gpu: Gpu, partition: str) -> str:
    """How somebody says the real driver."""
    shown = "nvidia-smi prints it" if gpu.vendor == "nvidia" else "the release of amdgpu-dkms on a node"
    return f"{OPTION} VERSION or partitions.{partition}.gpu.driver of the profile says the real one: {shown}"
