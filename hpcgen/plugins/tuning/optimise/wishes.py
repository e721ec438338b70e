"""What a request wants of its job's header, in the words of each batch system, and what of it cannot be had."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from hpcgen.core.model.plan import Finding
from hpcgen.core.model.site import Site
from hpcgen.plugins.tuning.requests.described_site import storage_words
from hpcgen.plugins.tuning.requests.records import JobWishes

_PBS = {"after": "-W depend={}", "begin": "-a {}", "environment": "-v {}", "all": "-V"}
_OPTIONS = {
    "slurm": {
        "after": "--dependency={}",
        "array": "--array={}",
        "begin": "--begin={}",
        "exclusive": "--exclusive",
        "qos": "--qos={}",
        "nodes": "--nodelist={}",
        "environment": "--export={}",
        "all": "--export=ALL",
    },
    "torque": {**_PBS, "array": "-t {}", "qos": "-l qos={}", "exclusive": "-l naccesspolicy=singlejob"},
    "pbs": {**_PBS, "array": "-J {}"},
    "gridengine": {"begin": "-a {}", "environment": "-v {}", "all": "-V"},
}
"""Options of a job's header.

Sources: sbatch(1); qsub(1B) of Torque, and its page on requesting resources (``qos`` and ``naccesspolicy`` are those of
its schedulers Maui and Moab); qsub(1B) of PBS Pro, whose arrays are one range; qsub(1) of Grid Engine.
"""


def wished_options(kind: str, wishes: JobWishes) -> tuple[list[str], list[str]]:
    """Options, and the names of wishes that there are none for."""
    known, options, lost = _OPTIONS.get(kind, {}), [], []
    for name, value in _said(wishes):
        form = known.get("all" if value is True and name == "environment" else name)
        if kind == "pbs" and name == "array" and "," in str(value):
            form = None
        if form is not None:
            options.append(form.format(value))
        elif (kind, name) != ("torque", "nodes"):
            lost.append(name)
    return options, lost


def _said(wishes: JobWishes) -> Iterator[tuple[str, object]]:
    for name in ("after", "array", "begin", "exclusive", "qos", "nodes", "environment"):
        value = getattr(wishes, name)
        if value:
            yield name, ",".join(value) if isinstance(value, list) else value


def with_storage(site: Site, wishes: JobWishes) -> tuple[Site, list[Finding]]:
    """The site whose file systems of a class are seen in the job's containers."""
    if wishes.storage is None:
        return site, []
    found = {name: each for name, each in site.file_systems.items() if each.use == storage_words(wishes.storage)}
    if not found:
        message = f"job.storage: no file system of {site.name} is of the class {wishes.storage}, as far as is known"
        remedy = "name a folder in `run.arguments`, or describe the system's `storage` in `infrastructure`"
        return site, [Finding(name="job", severity="warning", message=message, remedy=remedy)]
    places = ", ".join(str(each.path) for each in found.values())
    seen = {name: replace(each, bind=True) for name, each in found.items()}
    message = f"of the storage class {wishes.storage} is {places}, which the job sees in its own place"
    return replace(site, file_systems={**site.file_systems, **seen}), [
        Finding(name="job", severity="note", message=message)
    ]
