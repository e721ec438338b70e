"""The parts of which the scripts that start an image consist: libraries, what comes before the container, its words."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from hpcgen.backends.engines import Engine, engine_for
from hpcgen.backends.engines.base import NO_IMAGE
from hpcgen.backends.schedulers import Scheduler
from hpcgen.backends.schedulers.none import Direct
from hpcgen.core.model.host_mpi import HostMpi
from hpcgen.core.model.models import MODEL_STORE
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.quoting import FOLDER, joined, line, quoted, sh, sh_assign
from hpcgen.core.support.templates import Template
from hpcgen.core.support.traced import Subject, Traced, together, traced
from hpcgen.launch.environment import BOOTSTRAP
from hpcgen.launch.start import Start, group_subjects, host_mpi

# Where the MPI library of a rank must come from: the host's folders as they are seen inside, or the image's own.


def swapped_in(plan: Plan) -> HostMpi | None:
    """The host's MPI, where it takes the place of the image's; not where it only starts the image's ranks."""
    host = host_mpi(plan, engine_for(plan.engine, None))
    return host if host is not None and host.shown_inside else None


def mpi_folders(plan: Plan) -> tuple[str, list[str]]:
    """Whose MPI the ranks must use, in words, and the folders that its libraries are below, inside of the image."""
    host, block = swapped_in(plan), plan.block("mpi")
    if host is None:
        return "the image's own", [plan.mpi.folder or f"/opt/{block.name}"] if block is not None else []
    # A link among the libraries leads to another folder that is bound too.
    folders = [*host.libraries, *(bind.target for bind in host.binds), host.root]
    return f"the host's ({host.flavour})", list(dict.fromkeys(folder for folder in folders if folder is not None))


fill = Template(Path(__file__).with_name("templates") / "job.sh").fill
"""A part of the scripts' common template."""


def module_lines(plan: Plan, how: Start) -> list[Traced]:
    """The lines that load the site's modules, and those that the site has before."""
    system = plan.site.system
    before = [traced(line, Subject("fact", path)) for line, path in system.preparing(how.modules)]
    loads = system.loading(how.modules)[len(before) :]
    return before + [traced(line, Subject("module", each)) for line, each in zip(loads, how.modules, strict=True)]


USER_NAMED = ': "${USER:=$(id -un 2> /dev/null || id -u)}"; export USER'
"""For an engine with ``asks_user``."""


def start_part(scheduler: Scheduler, how: Start, name: str, *, folder: bool) -> str:
    """How a script begins: errors end it, and the programs of the host have to be there.

    ``name``: what the script calls itself in messages. ``folder``: the folder that it is started in is noted.
    """
    programs = {how.engine.command_name(): "container engine", **dict.fromkeys(how.outer[:1], "MPI or batch system")}
    return fill(
        "start",
        start=scheduler.start,
        folder="folder=$PWD" if folder else "",
        user=USER_NAMED if how.engine.asks_user else "",
        programs=[_program(name, word, whose) for word, whose in programs.items()],
    )


def _program(name: str, program: str, whose: str) -> str:
    message = f"{name}: {program} is not on PATH; it comes with the {whose} of the site"
    return traced(fill("program", program=sh(program), message=sh(message)).rstrip(), Subject("program", program))


def image_part(
    plan: Plan, how: Start, name: str, image: str | None, named: bool, *, asked: Literal["", "before", "by caller"] = ""
) -> str:
    """Which image is meant, and whether it is there.

    ``asked``: the engine, which takes a while to answer, was asked ``before`` the script was written for this start, or
    is asked ``by caller`` where the script has words beside the image's.
    """
    directory = plan.site.containers.image_directory
    images = _images(how.engine, plan, FOLDER if directory is None else directory)
    if image is not None:
        # No variable of the caller puts another in place of an image that was named.
        text = f"image={quoted(image)}\n"
    elif len(images) == 1:
        text = f"image=${{HPCGEN_IMAGE:-{images[0]}}}\n"
    else:
        text = fill("first_image", images=images)
    missing, told = how.engine.missing_image(named)
    if told == NO_IMAGE and image is None:
        told += ": make it with build.sh, or set HPCGEN_IMAGE"
    in_store = not how.engine.image_is_file
    if not missing or (in_store and asked == "before"):
        return traced(text, Subject("image"))
    if in_store and asked == "by caller":
        missing = f'[ "$#" -le 1 ] && {missing}'
    text += fill("image_missing", file_name=name, missing=missing, told=told)
    return traced(text, Subject("image"))


def exports_part(how: Start, scheduler: Scheduler) -> str:
    """The variables that are set outside of the container."""
    exports = [
        traced(f"export {sh_assign(name, value)}\n", Subject("job variable", name))
        for name, value in how.variables.exported.items()
    ]
    alone = _alone(how) if isinstance(scheduler, Direct) else []
    if how.caches is not None:
        exports.append(traced(how.caches.export(), Subject("caches")))
    if how.models:
        exports.append(traced(fill("model_store", folder=how.models, below=MODEL_STORE), Subject("models")))
    return together([*exports, fill("alone", exports=[f"export {text}" for text in alone]) if alone else ""])


def container_part(how: Start, name: str, *, cleans: bool = False) -> str:
    """The words that start the image, as an array of the shell; before them what they name of the host.

    ``cleans``: the script takes away what it put on nodes when it ends.
    """
    gpu = how.engine.driver_in_image and bool(how.call.gpu)
    definition = [quoted(text) for text in how.engine.definition(how.call)]
    bound = how.binding
    caches = how.caches
    last = [
        how.inner,
        how.under_old_driver,
        bound.words() if bound is not None else [],
        caches.words() if caches is not None else [],
    ]
    before = how.engine.before_words()
    groups = [group for group in [before, *how.engine.start_words(how.call), *last] if group]
    words = [line(group) for group in groups]
    root = how.mpi.root if how.mpi is not None and how.mpi.root is not None else ""
    of = group_subjects(how)
    short = [
        traced(_with_variable(text, root), of.get(tuple(group), Subject("engine", how.engine.name)))
        for text, group in zip(words, groups, strict=True)
    ]
    lines = [f"{text} \\" for text in definition[:-1]] + definition[-1:]
    return together(
        [
            fill("gpu") if gpu else "",
            _file_systems(how),
            _data(how, name),
            _definition(how.engine, name, lines, cleans) if definition else "",
            traced(f"{bound.function()}\n", Subject("job", "rank_gpus")) if bound is not None else "",
            traced(f"{caches.function()}\n", Subject("caches")) if caches is not None else "",
            traced(f"mpi={root}\n", Subject("fact", "mpi.root")) if short != words else "",
            fill("before_container") if before else "",
            fill("container", words=short),
        ]
    )


def _data(how: Start, name: str) -> str:
    if not how.data:
        return ""
    from hpcgen.launch.data import data_part, models_part
    from hpcgen.launch.node_files import packed_part

    parts = [data_part(how.data, name), models_part(how.data, name), packed_part(how, name)]
    return together(filter(None, parts))


def _definition(engine: Engine, name: str, lines: list[str], cleans: bool) -> str:
    """The file that the engine reads, where no path has a sign that it would read as something else."""
    signs = engine.definition_reads
    return fill(
        "definition",
        checked="$image$folder" if engine.image_is_file else "$folder",
        signs=sh(signs),
        shown=sh(" ".join("space" if sign == " " else sign for sign in signs)),
        file_name=name,
        also="; leave_nodes" if cleans else "",
        lines=lines,
    )


def _file_systems(how: Start) -> str:
    """The words that bind those of the site's file systems that are there."""
    paths = how.call.file_systems
    text = fill("file_systems", paths=line(paths), words=how.engine.bind_in_place()) if paths else ""
    return traced(text, Subject("file systems"))


def _with_variable(text: str, root: str) -> str:
    """Shell text that names the MPI's folder by the variable ``mpi``, where that is shorter to read."""
    plainly = root != "" and sh(root) == root and "'" not in text
    return text.replace(root, '"$mpi"') if plainly else text


def _alone(how: Start) -> list[str]:
    """Variables for a start without an allocation: the launcher would ask the batch system for nodes."""
    names = [name for name in BOOTSTRAP if how.variables.exported.get(name, "fork") != "fork"]
    return [sh_assign(name, "fork") for name in names]


def _images(engine: Engine, plan: Plan, folder: str) -> list[str]:
    names = engine.image_names(plan.stack.name, plan.site.name)
    return [joined(folder, f"/{name}") for name in names] if engine.image_is_file else [quoted(names[0])]
