"""The files of jobs in a project: each has a folder below ``.hpcgen/jobs`` with its script, preflight and output."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec.structs import replace

from hpcgen.backends.schedulers import scheduler_for
from hpcgen.core.errors import OutputError
from hpcgen.core.model.image_paths import OWN_FOLDER
from hpcgen.core.model.site import Site
from hpcgen.core.support.writing import write_file

JOBS = f"{OWN_FOLDER}/jobs"
OUTPUT, ERRORS = "output", "errors"
"""What the batch system writes there; errors where it keeps them apart."""


def job_folder(start: Path, name: str) -> Path:
    """A new folder for one job: no other submission, however near in time, has the same.

    start: the folder that the job starts in, made if it is not there.
    name: what the batch system calls the job.
    OutputError: it cannot be made.
    """
    try:
        above = own_folder(start, JOBS)
        while True:
            numbers = [int(found[1]) for each in above.iterdir() if (found := _numbered(each.name, name))]
            folder = above / f"{name}-{max(numbers, default=0) + 1}"
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return folder
    except OSError as failure:
        raise OutputError(
            f"cannot make a folder for the job in {start / JOBS}: {failure.strerror}",
            remedy="start it in a folder that you may write, or name one with --folder",
        ) from failure


def own_folder(start: Path, path: str) -> Path:
    """A folder for hpcgen's own files in a project, which git leaves out; OSError if it cannot be made."""
    folder = start / path
    folder.mkdir(parents=True, exist_ok=True)
    ignored = start / OWN_FOLDER / ".gitignore"
    if not ignored.exists():
        write_file(ignored, "*\n")
    return folder


def _numbered(text: str, name: str) -> re.Match[str] | None:
    return re.fullmatch(rf"{re.escape(name)}-(\d{{1,9}})", text, re.ASCII)


def with_output(site: Site, folder: Path, start: Path, asked: str = "") -> Site:
    """The site whose jobs write where it is asked, or else, unless the profile says where, into the job's folder.

    ``folder``: of the job; ``start``: where it starts. ``asked``: a name, which may have the patterns of the batch
    system.
    """
    inside, facts = str(folder.relative_to(start)), site.scheduler
    if asked or facts.output:
        return replace(site, scheduler=replace(facts, output=asked or facts.output))
    _, apart = scheduler_for(facts).default_files(folder.name, "1", facts)
    error = facts.error or (f"{inside}/{ERRORS}" if apart else "")
    return replace(site, scheduler=replace(facts, output=f"{inside}/{OUTPUT}", error=error))
