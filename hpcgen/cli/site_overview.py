"""What a list of sites says of each beyond its name: what jobs may count on, and how well that is known."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hpcgen.core.config.provenance import Sourced


class SiteOverview(msgspec.Struct, frozen=True):
    """One line of ``hpcgen list sites``.

    nodes: "several" where a host's MPI starts ranks of several nodes, "untried" where the batch system's own launcher
        would have to start those of the image, "one" where nothing can.
    gpus: of a node, of each kind of node that has any.
    driver: "known", "unknown", or "some" where only some kinds of node say their GPUs' driver; "" without GPUs.
    mpi: the host's.
    mpi_verified: whether its release was read in a source; None where the profile names none.
    newest: the youngest date of a source that somebody read.
    engine: what starts images there.
    batch: the batch system.
    """

    nodes: str
    gpus: list[str]
    driver: str
    mpi: str
    mpi_verified: bool | None
    newest: str
    engine: str = ""
    batch: str = ""


def overview(facts: Sequence[Sourced]) -> SiteOverview:
    """What the facts of a profile, its parents' among them, come to."""
    said = {fact.path: fact for fact in facts}
    mpi = said.get("mpi.flavour")
    release = said.get("mpi.version", mpi)
    gpus = _gpus(facts)
    drivers = [f"{path}.driver" in said for path in gpus]
    batch, engine = said.get("scheduler.kind"), said.get("containers.preferred")
    return SiteOverview(
        nodes="several" if mpi is not None else _without_mpi(batch),
        gpus=list(dict.fromkeys(gpus.values())),
        driver="" if not drivers else "known" if all(drivers) else "some" if any(drivers) else "unknown",
        mpi=" ".join(str(fact.value) for fact in (mpi, said.get("mpi.version")) if fact is not None),
        mpi_verified=None if release is None else release.mark == "verified",
        newest=max((fact.source.date or "" for fact in facts if fact.source and fact.mark == "verified"), default=""),
        engine=str(engine.value) if engine is not None else "",
        batch=str(batch.value) if batch is not None and batch.value != "none" else "",
    )


def _without_mpi(batch: Sourced | None) -> str:
    from hpcgen.backends.schedulers import SCHEDULERS

    if batch is None or batch.value not in SCHEDULERS.names():
        return "one"
    return "untried" if SCHEDULERS.find(str(batch.value)).launcher else "one"


def _gpus(facts: Sequence[Sourced]) -> dict[str, str]:
    """The path of each kind of node's GPUs → how many there are of what."""
    parts: dict[str, dict[str, object]] = {}
    for fact in facts:
        steps = fact.path.split(".")
        if len(steps) == 4 and steps[0] == "partitions" and steps[2] == "gpu":
            parts.setdefault(".".join(steps[:3]), {})[steps[3]] = fact.value
    return {path: f"{gpu.get('count', 1)} × {gpu.get('model', '?')}" for path, gpu in parts.items()}
