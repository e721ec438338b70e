"""A newer CUDA than the node's driver runs by itself: by the libraries that a block of the image brings for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from hpcgen.blocks.requirements import Requirement, in_range
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import Remedy
from hpcgen.core.model.nodes import Gpu
from hpcgen.core.model.release import Release
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import Stack
from hpcgen.core.support.wheel_tags import as_numbers
from hpcgen.planning.drivers import kept
from hpcgen.planning.question import PlanRequest
from hpcgen.planning.resolver.question import Question


def bringing(catalog: Catalog, names: Iterable[str]) -> str | None:
    """The first of these blocks that brings a newer driver's libraries."""
    return next((name for name in names if catalog.has_block(name) and catalog.block(name).brings_driver), None)


def wrong_driver(gpu: Gpu, release: Release) -> str:
    """Why the libraries of a release are of no use to a node's programs; "" where they are, or where they rest."""
    branches = list(map(str, release.values["branches"]))
    if not older(gpu, release):
        return ""
    if gpu.data_center is False:
        return f"only data-centre GPUs can use a newer driver's libraries, and {gpu.model} is none"
    if branch(str(gpu.driver)) not in branches:
        return f"they work with drivers {', '.join(branches)}, and the node has {gpu.driver_label}"
    return ""


def older(gpu: Gpu, release: Release) -> bool:
    """Whether the node's driver is of an older branch than the libraries."""
    return gpu.driver is not None and int(branch(gpu.driver)) < int(branch(str(release.values["driver"])))


def branch(driver: str) -> str:
    """The first number of a driver's version."""
    return driver.partition(".")[0]


def driver_of(gpu: Gpu, release: Release | None) -> str | None:
    """The driver by which programs of the image run: the node's, or that of the libraries in the image."""
    if release is not None and older(gpu, release) and not wrong_driver(gpu, release):
        return str(release.values["driver"])
    return gpu.driver


def as_programs_see(
    catalog: Catalog, site: Site, partition: str, stack: Stack, said: Mapping[str, Mapping[str, str]]
) -> Site:
    """The site for the choice of versions: with the driver by which programs of the image run.

    The same record for the same site. The contract holds the plan against the node's own driver.
    """
    gpu, name = site.partitions[partition].gpu, bringing(catalog, stack.blocks)
    if gpu is None or name is None or gpu.vendor != catalog.block(name).gpu_vendor:
        return site
    wanted = said.get(name, {}).get("version") or stack.blocks[name].version or ""
    rows = {number: row for number, row in catalog.releases(name).items() if _meant(number, wanted)}
    newest = rows[max(rows, key=as_numbers)] if rows else None
    driver = driver_of(gpu, newest)
    if driver == gpu.driver:
        return site
    seen = msgspec.structs.replace(gpu, driver=driver, driver_assumed=False)

    def made() -> Site:
        node = msgspec.structs.replace(site.partitions[partition], gpu=seen)
        return msgspec.structs.replace(site, partitions={**site.partitions, partition: node})

    return kept(catalog, (id(site), partition, driver), site, made)


def _meant(number: str, wanted: str) -> bool:
    return not wanted or in_range(number, wanted if wanted[0] in "<>=!~" else f"=={wanted}")


def newer_drivers(question: Question, clash: Iterable[Requirement], asked: PlanRequest) -> Iterator[Remedy]:
    """What keeps all that was asked for where the node's driver is too old, on GPUs that are known to allow it."""
    gpu, catalog = question.facts.partition.gpu, question.catalog
    if gpu is None or not gpu.data_center or not any(b.by == "driver" for each in clash for b in each.origin.bounds):
        return
    name = bringing(catalog, catalog.names("block"))
    if name is not None and name not in {*asked.stack.blocks, *asked.added}:
        yield Remedy(added=(name,), text=f"--add {name}")
