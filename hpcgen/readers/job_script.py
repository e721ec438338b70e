"""Job scripts and others that start programs: what they ask of a batch system, and what they start. Nothing is run."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec.structs import replace

from hpcgen.core.errors import InputError, Position
from hpcgen.core.model.own_project import FileWord, JobFact, JobFile
from hpcgen.core.secret_rules import without_secrets
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.job_directives import MARKS, read_directives
from hpcgen.readers.shell_script import MOST_LINES, Script

_DIRECTIVE = re.compile(rf"({'|'.join(map(re.escape, MARKS))})[ \t]+(-.*)")
_LONGEST_LINE = 100_000


def read_script(folder: ProjectFolder, path: str, own: frozenset[str] = frozenset()) -> JobFile | None:
    """What a script says; None where it is no job script and starts nothing. InputError where it is no text.

    ``own``: names of programs of the project.
    """
    lines = folder.text(path).replace("\r\n", "\n").split("\n")[:MOST_LINES]
    marked = [
        (match[1], FileWord(without_secrets(match[2].rstrip()), Position(path, number, 1)))
        for number, line in enumerate(lines, 1)
        if (match := _DIRECTIVE.match(line))
    ]
    batch = MARKS[marked[0][0]] if marked else ""
    facts, other = (
        read_directives(batch, [said for mark, said in marked if MARKS[mark] == batch]) if batch else ([], [])
    )
    text = "\n".join(line[:_LONGEST_LINE] for line in lines)
    job = JobFile(path, batch, marked[0][1].where if marked else Position(path, 1, 1), facts, other)

    def beside(path: str) -> str | None:
        try:
            return folder.text(path)
        except InputError:
            return None

    found = script_of(text, job, other=beside, own=own)
    return found if found.batch or found.launched else None


def script_of(
    text: str,
    job: JobFile,
    line: int = 1,
    other: Callable[[str], str | None] = lambda path: None,
    own: frozenset[str] = frozenset(),
) -> JobFile:
    """A file of which the directives are known, with what its text starts.

    ``line``: where the text begins in the file. ``other``: reads another script of the project. ``own``: names of its
    programs.
    """
    known = variables_of(job.facts)
    body = Script(job.file, known, line, True, other, own).read(text)
    if not body.launched:
        body = Script(job.file, known, line, False, other, own).read(text)
    return replace(
        job,
        launched=body.launched,
        variables=list(body.exported.values()),
        secrets=list(body.secrets.values()),
        modules=body.modules,
        sourced=body.sourced,
        scripts=body.scripts,
        unclosed=body.unclosed,
    )


def variables_of(facts: list[JobFact]) -> dict[str, str]:
    """Variables of the batch system whose values follow from the directives."""
    value = {each.field: each.value for each in facts}
    nodes, on_node, ranks = value.get("nodes", "1"), value.get("ranks_per_node", ""), value.get("ranks", "")
    ranks = ranks or (str(int(nodes) * int(on_node)) if on_node else "")
    on_node = on_node or (str(int(ranks) // int(nodes)) if ranks and int(ranks) % int(nodes) == 0 else "")
    names = {
        "SLURM_NNODES SLURM_JOB_NUM_NODES": nodes if "nodes" in value or facts else "",
        "SLURM_NTASKS SLURM_NPROCS NSLOTS LSB_DJOB_NUMPROC PJM_MPI_PROC": ranks,
        "SLURM_NTASKS_PER_NODE SLURM_TASKS_PER_NODE": on_node,
        "SLURM_CPUS_PER_TASK OMP_NUM_THREADS": value.get("threads", ""),
        "SLURM_GPUS_PER_NODE SLURM_GPUS_ON_NODE": value.get("gpus_per_node", ""),
    }
    return {name: text for several, text in names.items() if text for name in several.split()}


def has_secrets(folder: ProjectFolder, path: str) -> bool:
    """Whether a script has what may be a secret. InputError where it is no text."""
    return any(without_secrets(line) != line for line in folder.text(path).split("\n"))
