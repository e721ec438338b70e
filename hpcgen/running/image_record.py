"""What a job of an image that hpcgen did not build rests on, in a file beside its script: ``NAME.image.json``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from hpcgen._version import __version__
from hpcgen.core.support.writing import write_file
from hpcgen.running.image_job import ImageJob
from hpcgen.running.job_files import JOBS

_ENDING = ".image.json"
_MOST_BYTES = 64 * 1024 * 1024


def write_image_record(job: ImageJob, folder: Path) -> Path | None:
    """Write it into a folder; None for an image that hpcgen built, which has all of this in itself.

    OutputError: it cannot be written.
    """
    found = job.plan.found
    if job.facts is None or found is None:
        return None
    plan = job.plan
    mpi = plan.site.mpi
    told: dict[str, Any] = {
        "hpcgen": __version__,
        "image": job.image,
        "digest": found.digest,
        "site": plan.site.name,
        "partition": plan.partition,
        "engine": plan.engine,
        "host_mpi": f"{mpi.flavour} {mpi.version}" if mpi is not None and mpi.shown_inside else None,
        "seen": [{"name": block.name, "version": block.version} for block in plan.blocks],
        "decisions": [str(finding) for finding in plan.findings],
        "facts": msgspec.to_builtins(job.facts),
    }
    file = folder / f"{plan.stack.name}{_ENDING}"
    write_file(file, msgspec.json.format(msgspec.json.encode(told), indent=1).decode() + "\n")
    return file


def another_image(job: ImageJob, start: Path) -> str:
    """That the last job of this image from a folder rested on other content under the same name; "" where not.

    ``start``: the folder that jobs start in.
    """
    found = job.plan.found
    if found is None or not found.digest:
        return ""
    files = sorted((start / JOBS).glob(f"*/{job.plan.stack.name}{_ENDING}"), key=lambda each: each.stat().st_mtime)
    for file in reversed(files):
        told = _told(file)
        if told.get("image") == job.image:
            if told.get("digest") in ("", None, found.digest):
                return ""
            return f"{job.image} has changed since the last job from here ({file}): its digest differs"
    return ""


def _told(file: Path) -> dict[str, Any]:
    """A file that anybody may have changed."""
    try:
        data = file.read_bytes() if file.stat().st_size < _MOST_BYTES else b"{}"
        found = msgspec.json.decode(data)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
