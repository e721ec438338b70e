"""A script that starts a program of an image as if it were one of the host: as a command, or as a rank of a launcher.

It has the start line of a job without the launcher and without what a job's size decides (threads, number of ranks), as
whoever calls it decides that: the user, a batch script, ``srun``, ``mpiexec``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from hpcgen._version import __version__
from hpcgen.backends.engines import Call
from hpcgen.backends.schedulers import scheduler_for
from hpcgen.backends.schedulers.none import Direct
from hpcgen.core.errors import PolicyError
from hpcgen.core.model.host_mpi import Bind
from hpcgen.core.model.image_paths import EVERY_IMAGE_HAS
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.quoting import Shell, line, plain, sh_assign
from hpcgen.core.support.templates import Template
from hpcgen.launch.collectives import by_engine, by_plugin_folders, collectives_environment, plugin_folders
from hpcgen.launch.parts import container_part, exports_part, image_part, start_part
from hpcgen.launch.start import Start, host_mpi, start
from hpcgen.launch.within_node import apart, apart_settings, joins

OF_THE_JOB = ("HPCGEN_RANKS", "OMP_NUM_THREADS")
"""What the size of a job decides: a command has them as its caller has."""
CONNECTION = EVERY_IMAGE_HAS
"""Where a kernel sees the folder of its connection file: a folder of every image, since images are read-only."""
_fill = Template(Path(__file__).with_name("templates") / "command.sh").fill


def command_start(
    plan: Plan,
    image_environment: Mapping[str, str],
    more_inside: Mapping[str, str] | None = None,
    *,
    kernel: bool = False,
    shown: Sequence[Bind] = (),
) -> Start:
    """How a program of an image is started as a command.

    plan: laid out for the site; the size of its job does not matter.
    image_environment: variables of the image's final stage, as they are at its end.
    more_inside: variables that are set in the container alone.
    kernel: it is a Jupyter kernel, which is given a connection file and listens on the network.
    shown: folders of the host that it sees beside those of the plan.
    PolicyError: an option of the batch system's launcher starts the site's engine, so that a rank cannot.
    """
    job = replace(plan.job, nodes=1, ranks_per_node=1)
    plan = replace(plan, job=job)
    stack, run = plan.stack, plan.stack.run
    # The image's own MPI starts no ranks here: a caller who wants that calls the image's mpiexec.
    alone = replace(plan, stack=replace(stack, run=replace(run, mpi=False)))
    how = start(alone, image_environment, more_inside, shown=shown)
    if how.engine.launcher:
        raise PolicyError(
            f"{how.engine.name} starts containers with an option of {how.engine.launcher}: a command cannot start one",
            expected="an engine that runs the program in its own process, such as Apptainer or Charliecloud",
            remedy="name another engine with --engine, or start the image by hpcgen run and hpcgen submit",
        )
    if any(each.mounted for each in how.data):
        raise PolicyError(
            f"{how.engine.name} is started as a command, but only jobs mount packed data",
            remedy="mount it first (squashfuse FILE FOLDER) and bind that folder, or use hpcgen run or hpcgen submit",
        )
    if host_mpi(plan, how.engine) is not None:
        how = start(plan, image_environment, more_inside, shown=shown)
    binds = how.call.binds
    if kernel:
        binds = (*binds, Bind(source=Shell('"$connection"'), target=CONNECTION))
    call = replace(
        how.call,
        binds=binds,
        attached=True,
        shared_memory=run.mpi or bool(how.call.gpu),
        host_network=kernel,
        ranks_outside=joins(plan, how.mpi) and not kernel,
    )
    call = _reaching_other_nodes(plan, how, call, image_environment)
    exported = {name: value for name, value in how.variables.exported.items() if name not in OF_THE_JOB}
    if how.mpi is not None and call.ranks_outside and apart(plan, how.engine, how.mpi):
        exported = {**apart_settings(plan, how.engine, how.mpi), **exported}
    return replace(how, call=call, outer=[], caches=None, variables=replace(how.variables, exported=exported))


def between_nodes(plan: Plan, how: Start) -> dict[str, str]:
    """What a command sets as part of a job of several nodes: as such a job of hpcgen, but for what the site says.

    ``how``: as the command is started on one node.
    """
    if not how.engine.started_by_launcher:
        return {}
    found = collectives_environment(_of_several_nodes(plan), how.engine)
    return {name: value for name, value in found.items() if name not in how.variables.exported}


def command_script(
    plan: Plan,
    image_environment: Mapping[str, str],
    image: str,
    more_inside: Mapping[str, str] | None = None,
    *,
    named: bool = False,
    kernel: tuple[str, ...] = (),
    shown: Sequence[Bind] = (),
) -> str:
    """The script that starts a program of an image; or a Jupyter kernel in it.

    plan, image_environment, more_inside: as for :func:`command_start`.
    image: the image's absolute path, or its name in the engine's store.
    named: it is a name.
    kernel: the words inside of which the connection file is the last argument; none for a script that is given a
        program and its arguments.
    shown: as for :func:`command_start`.
    PolicyError, InputError: as :func:`command_start`, and for a value that cannot be written in a script.
    """
    how = command_start(plan, image_environment, more_inside, kernel=bool(kernel), shown=shown)
    name = "kernel" if kernel else "start"
    usage = f"{name} /CONNECTION/FILE" if kernel else f"{name} PROGRAM [ARGUMENT …]"
    title = plain(plan.stack.name, "the stack's name")
    loads = plan.site.system.loading(how.modules)
    parts = [
        _fill("top", title=title, version=__version__, usage=usage),
        _fill("modules", verb=loads[0].split()[0], modules=loads) if loads else "",
        start_part(Direct(), how, name, folder=True),
        _fill("connection", usage=usage, file_name=name) if kernel else "",
        image_part(plan, how, name, image, named),
        exports_part(how, Direct()),
        _between_part(plan, how) if not kernel else "",
        _fill("ranks", join=how.engine.join_words()) if _joins(how) else "",
        "" if how.engine.host_environment else _fill("terminal"),
        container_part(how, name),
        _fill("kernel", words=line(kernel), inside=CONNECTION) if kernel else _fill("program"),
    ]
    return "\n".join(str(part) for part in parts if part)


def _of_several_nodes(plan: Plan) -> Plan:
    return replace(plan, job=replace(plan.job, nodes=max(2, plan.job.nodes)))


def _reaching_other_nodes(plan: Plan, how: Start, call: Call, image_environment: Mapping[str, str]) -> Call:
    """A call whose ranks may be on several nodes: with the engine's plugin, and what only these are told."""
    several = _of_several_nodes(plan)
    inside = dict(call.inside)
    if folders := plugin_folders(several, how.engine):
        path = inside.get("LD_LIBRARY_PATH", image_environment.get("LD_LIBRARY_PATH", ""))
        inside["LD_LIBRARY_PATH"] = by_plugin_folders(path, folders)
    inherited = (*call.inherited, *between_nodes(plan, how))
    return replace(call, inside=inside, inherited=inherited, gpu_collectives=by_engine(several, how.engine))


def _between_part(plan: Plan, how: Start) -> str:
    found = between_nodes(plan, how)
    if not found:
        return ""
    settings = [f'[ "${{{name}+set}}" ] || export {sh_assign(name, value)}' for name, value in found.items()]
    return _fill("between", nodes=scheduler_for(plan.site.scheduler).node_count or "1", settings=settings)


def _joins(how: Start) -> bool:
    return how.call.ranks_outside and bool(how.engine.join_words())
