"""What a base image says that it is, held against the plan before anything in it is asked or started."""

from __future__ import annotations

from pathlib import Path

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import FetchError
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.release import PLATFORMS
from hpcgen.images.folder import SHELL, machine_of
from hpcgen.images.oci_layout import folder_layout
from hpcgen.machine.detect.probes.system import os_settings
from hpcgen.recipe.bases import BaseSystem, wanted_system

OS_RELEASE = "/etc/os-release"


def check_base(plan: Plan, catalog: Catalog, name: str, origin: str, layout: Path) -> None:
    """Hold a fetched image against the plan: the machine of its shell, whatever its configuration says, and os-release.

    origin: where it is from.
    layout: the OCI layout that holds it.
    FetchError: it is another one; the remedy names the plan that it is for, where there is one.
    """
    wanted = wanted_system(plan, catalog.release(plan.blocks[0]).values)
    found = _found(layout, name, wanted.architecture)
    if f"{found}.".startswith(wanted.begins):
        return
    raise FetchError(
        f"the base image {name} from {origin} is {found}",
        expected=f"{wanted}, as the plan has it",
        remedy=f"name another one: --image {name}=REFERENCE{_plan_for(catalog, wanted, found)}",
    )


def _found(layout: Path, name: str, otherwise: str) -> BaseSystem:
    files = folder_layout(layout).image(name).read([OS_RELEASE, SHELL])
    settings = os_settings(files.get(OS_RELEASE, b"").decode("utf-8", "replace"))
    # Its configuration was held against the plan when it was fetched.
    machine = machine_of(files.get(SHELL, b"")) or otherwise
    # Where packages are not Debian's, the plan has the name that `uname -m` says.
    machine = next((each for each in PLATFORMS if otherwise == each and PLATFORMS[each] == machine), machine)
    said = ("".join(filter(str.isprintable, settings.get(key, "")))[:40] for key in ("ID", "VERSION_ID"))
    return BaseSystem(machine, *said)


def _plan_for(catalog: Catalog, wanted: BaseSystem, found: BaseSystem) -> str:
    """The options of a plan for the distribution that was found, where the collections know it."""
    if wanted.architecture != found.architecture:
        return ""
    for block in catalog.virtuals["base"]:
        for version, row in catalog.releases(block).items():
            if (row.values.get("os_id"), version) == (found.os_id, found.version):
                return f"; or lock for this one: --set base.provider={block} --set base.version={version}"
    return ""
