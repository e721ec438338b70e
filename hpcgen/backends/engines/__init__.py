"""Container engines, one class and one file each; nothing here knows a site.

An engine of a collection lies in its ``engines/NAME.py``, one of an installed package is an entry point of the group
``hpcgen.engines``.
"""

from __future__ import annotations

import os

from msgspec.structs import replace

from hpcgen.backends.engines.base import Call, Engine
from hpcgen.core.errors import InputError, did_you_mean
from hpcgen.core.model.fields import FormatName
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import Site
from hpcgen.core.support.registry import Registry

__all__ = [
    "ENGINES",
    "Call",
    "Engine",
    "builder_for",
    "builder_of",
    "builders",
    "engine_called",
    "engine_for",
    "engine_format",
    "format_to_build",
    "job_image",
    "preferring",
    "runners",
]

ENGINES: Registry[Engine] = Registry(
    "engine",
    "engines",
    {
        "charliecloud": "hpcgen.backends.engines.charliecloud:Charliecloud",
        "apptainer": "hpcgen.backends.engines.apptainer:Apptainer",
        "singularity": "hpcgen.backends.engines.apptainer:Singularity",
        "docker": "hpcgen.backends.engines.docker:Docker",
        "podman": "hpcgen.backends.engines.podman:Podman",
        "podman-hpc": "hpcgen.backends.engines.podman_hpc:PodmanHpc",
        "buildah": "hpcgen.backends.engines.buildah:Buildah",
        "pyxis": "hpcgen.backends.engines.pyxis:Pyxis",
        "container-engine": "hpcgen.backends.engines.container_engine:ContainerEngine",
        "sarus-suite": "hpcgen.backends.engines.sarus_suite:SarusSuite",
        "shifter": "hpcgen.backends.engines.shifter:Shifter",
    },
)


def engine_for(name: str, version: str | None = None) -> Engine:
    """The engine of a name. Without ``version`` it uses only what every supported release has."""
    return ENGINES.find(name)(version)


def engine_format(name: str) -> FormatName:
    """The format that the images of an engine are built from."""
    return ENGINES.find(name).format


def runners() -> dict[str, type[Engine]]:
    """Every engine that starts images, by its name."""
    return {name: found for name in ENGINES.names() if (found := ENGINES.find(name)).runs}


def builders() -> dict[str, type[Engine]]:
    """Every engine that builds images, by the name of its builder, the one that is tried first coming first."""
    able = [found for name in ENGINES.names() if (found := ENGINES.find(name)).builds]
    able.sort(key=lambda each: each.service)
    return {each.builder_name(): each for each in able}


def engine_called(word: str) -> type[Engine] | None:
    """The engine of a name, or of the program by which it builds or starts: ``ch-image`` is charliecloud."""
    if word in ENGINES:
        return ENGINES.find(word)
    return next((found for name in ENGINES.names() if word in (found := ENGINES.find(name)).programs()), None)


def preferring(site: Site, word: str, where: str) -> Site:
    """The site with this as its preferred engine; unchanged where its profile does not have or allow that one.

    InputError: no engine is called so. ``where``: the file that names it.
    """
    found = engine_called(word)
    if found is None or not found.runs:
        known = list(runners())
        raise InputError(f"no engine that starts images is called {word!r}", where, remedy=did_you_mean(word, known))
    there = site.containers.engines.get(found.name)
    if there is None or not there.allowed:
        return site
    return replace(site, containers=replace(site.containers, preferred=found.name))


def builder_for(name: str) -> Engine:
    """The engine that builds, by the name of its builder or its own.

    InputError: it is none, or one that only starts images.
    """
    found = engine_called(name)
    if found is not None and found.builds:
        return found()
    known = [each.name for each in builders().values()]
    if found is None:
        raise InputError(f"no engine is called {name!r}", "--engine", remedy=did_you_mean(name, known))
    raise InputError(
        f"{name} starts images but cannot build them",
        "--engine",
        expected=" or ".join(known),
        remedy=f"build with {found.built_by}: --engine {found.built_by}",
    )


def builder_of(name: str) -> type[Engine]:
    """The engine whose images an engine starts: itself where it builds."""
    found = ENGINES.find(name)
    return found if found.builds else ENGINES.find(found.built_by)


def format_to_build(preferred: str, builder: str | None) -> FormatName | None:
    """The format that a builder reads, where the images of a site's preferred engine are built from another."""
    wanted = builder_for(builder).format if builder is not None else None
    return None if wanted == engine_format(preferred) else wanted


def job_image(plan: Plan, stack: str = "") -> str:
    """The file, or the name in a store, where the job script looks for the image first.

    A file is in the site's folder of images where that is on this machine, else in the current folder.

    ``stack``: what stands for the stack's name.
    """
    site_engine = plan.site.containers.engines.get(plan.engine)
    engine = engine_for(plan.engine, site_engine.version if site_engine is not None else None)
    name = engine.image_names(stack or plan.stack.name, plan.site.name)[0]
    folder = plan.site.containers.image_directory
    if engine.image_is_file and folder is not None and os.access(folder, os.W_OK | os.X_OK):
        return f"{folder}/{name}"
    return name
