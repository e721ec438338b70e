"""Container engines: how a command runs inside an image. One class per family; nothing here knows a site."""

from __future__ import annotations

from hpcgen.engines.base import Call, Engine
from hpcgen.model.fields import EngineName

__all__ = ["Call", "Engine", "engine_for"]


def engine_for(name: EngineName, version: str | None) -> Engine:
    """The engine of a name. Without ``version`` it uses only what every supported release has."""
    if name == "charliecloud":
        from hpcgen.engines.charliecloud import Charliecloud

        return Charliecloud(name, version)
    if name in ("apptainer", "singularity"):
        from hpcgen.engines.apptainer import Apptainer

        return Apptainer(name, version)
    if name == "podman-hpc":
        from hpcgen.engines.podman_hpc import PodmanHpc

        return PodmanHpc(name, version)
    if name == "container-engine":
        from hpcgen.engines.container_engine import ContainerEngine

        return ContainerEngine(name, version)
    from hpcgen.engines.docker import Docker

    return Docker(name, version)
