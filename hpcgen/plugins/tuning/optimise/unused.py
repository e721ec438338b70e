"""What a request says and nothing was decided by: never passed over in silence."""

from __future__ import annotations

from collections.abc import Iterator

from hpcgen.core.model.decision import LayoutOption
from hpcgen.core.model.plan import Finding
from hpcgen.core.model.request import OptimiseRequest

_DATA = ("location", "format", "size_gb", "prefetch", "cache")
"""Of the data, what the program itself has to be told."""


def unused(request: OptimiseRequest, layouts: list[LayoutOption]) -> list[Finding]:
    """A finding for each of them.

    Parameters
    ----------
    layouts: those that were measured.
    """
    return [Finding(name="request", severity="note", message=text) for text in _unused(request, layouts)]


def _unused(request: OptimiseRequest, layouts: list[LayoutOption]) -> Iterator[str]:
    if request.tune:
        yield "tune: settings are tried out with the built image, by `hpcgen tune IMAGE --workload NAME`"
    efficiency = request.limits.efficiency
    if efficiency is not None and not any(each.estimate.value is not None for each in layouts):
        yield f"limits.efficiency {efficiency:g} bounds nothing: no rows over several nodes are of this workload here"
    data = request.workload.data
    said = [f"workload.data.{name}" for name in _DATA if getattr(data, name) not in (None, "")]
    said += ["workload.epochs"] if request.workload.epochs is not None else []
    if said:
        yield f"{', '.join(said)}: the program itself has to be told, in `run.arguments`"
