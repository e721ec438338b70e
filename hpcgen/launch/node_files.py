"""What each node of a job gets for itself: the image's file, copied once, and packed data, mounted.

By default the image is copied where its size times the number of nodes is large: docs/staging.md has the model. A file
that many nodes read at once comes from few servers; a copy is read once, and goes from node to node.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from hpcgen.backends.launchers import launcher_of
from hpcgen.backends.schedulers import scheduler_for
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.quoting import expanded, line, quoted
from hpcgen.core.support.templates import Template
from hpcgen.core.support.traced import Subject, traced
from hpcgen.core.support.units import counted
from hpcgen.launch.caches import NODE
from hpcgen.launch.start import Start

LIMIT_MB = 100_000
"""From which size × nodes on ``auto`` copies."""

_fill = Template(Path(__file__).with_name("templates") / "node_files.sh").fill


def node_folder(plan: Plan) -> str:
    """The folder of a node for files of a job, as a word of shell: the file system for which the profile says so."""
    node = plan.site.file_system("node")
    if node is None or not node.place:
        return NODE
    if node.folder is None and node.variable is not None:
        return f'"${{{node.variable}:-{NODE}}}"'
    return quoted(expanded(node.place))


def stages(plan: Plan, how: Start, named: bool) -> bool:
    """Whether a job script may copy the image: not what is in an engine's store, nor of itself for one node."""
    stage = plan.stack.run.stage
    return how.engine.image_is_file and not named and (stage == "node" or (stage == "auto" and plan.job.nodes > 1))


def uses_nodes(plan: Plan, how: Start, named: bool) -> bool:
    """Whether anything is put on the nodes, which has to go at the end."""
    return stages(plan, how, named) or bool(_mounted(how))


def nodes_part(plan: Plan, how: Start, name: str, named: bool) -> str:
    """Shell that puts the image on the nodes, and the function ``leave_nodes`` that takes everything away again.

    ``name``: what the script calls itself in messages. ``named``: the image is a name in the engine's store.
    """
    if not uses_nodes(plan, how, named):
        return ""
    variable = scheduler_for(plan.site.scheduler).job_variable
    job = f"-${{{variable}:-0}}" if variable else ""
    text = _fill("each_node", words=line(_each_node(plan, how)), folder=node_folder(plan), job=job)
    if not stages(plan, how, named):
        return traced(text, Subject("bind"))
    nodes = str(plan.job.nodes)
    if plan.stack.run.stage == "auto":
        decided = _fill("auto", nodes=nodes, limit=str(LIMIT_MB), file_name=name)
    else:
        decided = _fill("asked", file_name=name)
    copies = scheduler_for(plan.site.scheduler).copies_to_nodes if plan.job.nodes > 1 else ()
    copy = f'{line(copies)} "$image" "$node_place/${{image##*/}}" || ' if copies else ""
    text += "\n" + _fill("stage", decided=decided, copy=copy, nodes=counted(plan.job.nodes, "node"), file_name=name)
    return traced(text, Subject("image"))


def packed_part(how: Start, name: str) -> str:
    """Shell that mounts packed data on every node; "" where there is none, or the engine does it."""
    files = _mounted(how)
    if not files:
        return ""
    mounts = "mount" if how.engine.sees_mounts else "unpack"
    return traced(_fill("packed", sources=line(files), way=mounts, file_name=name), Subject("bind"))


def without_mounted(plan: Plan, how: Start) -> Plan:
    """The plan without the data that only a job script mounts."""
    run = plan.stack.run
    named = [*run.binds, *run.models]
    named_data = [data for data in how.data if not data.hub]
    kept = [each for each, data in zip(named, named_data, strict=True) if not data.mounted]
    binds = [each for each in kept if isinstance(each, str)]
    models = [each for each in kept if not isinstance(each, str)]
    return replace(plan, stack=replace(plan.stack, run=replace(run, binds=binds, models=models)))


def _mounted(how: Start) -> list[str]:
    return [each.source for each in how.data if each.mounted]


def _each_node(plan: Plan, how: Start) -> list[str]:
    """The words before a command that is to run once on each node; those of a program that does nothing for one."""
    job = plan.job
    if job.nodes == 1:
        return ["env"]
    own = scheduler_for(plan.site.scheduler).on_each_node(job.nodes)
    if own:
        # Beside the step of the ranks, in releases that know of it.
        return ["env", "SLURM_OVERLAP=1", *own]
    one = replace(job, ranks_per_node=1, threads_per_rank=job.ranks_per_node * job.threads_per_rank)
    return launcher_of(how.mpi, plan.site.scheduler).words(one) if how.mpi is not None else ["env"]
