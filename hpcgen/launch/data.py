"""Data of the host that a job sees: ``SRC[:DST[:ro]]``, as stacks, options and the config file say it → binds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hpcgen.backends.engines import Engine, engine_for
from hpcgen.core.errors import InputError
from hpcgen.core.model.host_data import NamedData, parse_data
from hpcgen.core.model.host_mpi import Bind
from hpcgen.core.model.image_paths import SUBMIT_FOLDER, overlap
from hpcgen.core.model.models import MODEL_STORE, Model
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import SiteEngine
from hpcgen.core.support.quoting import FOLDER, Shell, expanded, joined, line, sh
from hpcgen.core.support.templates import Template
from hpcgen.core.support.traced import Subject, traced

if TYPE_CHECKING:
    from hpcgen.core.model.hub_cache import HubRepository

_fill = Template(Path(__file__).with_name("templates") / "job.sh").fill
_SYSTEM = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin", "/sys", "/usr")
"""Folders of an image into which nothing of the user's is bound."""
_ABOVE = ("/opt", "/run", "/var", SUBMIT_FOLDER, "/opt/hpcgen")
"""Folders that have to be seen; into some of them something may be bound."""
_STORE = "HPCGEN_MODELS"
"""The variable of a job script with the folder of all models."""
_HUB = "HPCGEN_HUB"
"""That with the folder where they are found by name."""


class BoundData(NamedTuple):
    """What the engine binds, the host's path of it, and the variables that this is made of where the job runs.

    ``mounted``: it is a squashfs file, and the job script makes of it the folder that the engine binds.
    ``model``: it was fetched for the job. ``hub``: it is the folder in which the job script shows
    these of them by name.
    """

    bind: Bind
    source: str
    variables: list[str]
    packed: bool = False
    mounted: bool = False
    model: bool = False
    hub: tuple[HubRepository, ...] = ()


def data_of(plan: Plan) -> tuple[BoundData, ...]:
    """What a plan's stack names, as the engine binds it: variables have the values of the node where the job starts.

    Relative paths are from the folder that the job is started in.

    InputError: a bind that cannot be written, or that would hide what the image needs. PolicyError: the engine cannot
    bind it.
    """
    given = [parse_data(text, f"run.binds.{number}") for number, text in enumerate(plan.stack.run.binds)]
    models = models_named(plan.stack.run.models, plan)
    by_engine, found, number = _engine(plan).mounts_packed(), [], 0
    for each in [*given, *models]:
        bind = _bind(plan, each)
        mounted = each.packed and not by_engine
        source = bind.source
        if mounted:
            bind = Bind(source=joined(Shell('"$node_place"'), f"/data-{number}"), target=bind.target)
            number += 1
        model = each in models
        found.append(BoundData(bind, source, [] if model else each.variables, each.packed, mounted, model))
    hub = hub_named(plan.stack.run.models)
    # Somebody's own cache is taken in its stead.
    if hub is not None and hub.target not in [each.target for each in given]:
        from hpcgen.core.model.hub_cache import hub_repositories

        bind = _bind(plan, hub)
        found.append(BoundData(bind, bind.source, [], model=True, hub=tuple(hub_repositories(plan.stack.run.models))))
    return tuple(found)


def hub_named(models: Sequence[Model]) -> NamedData | None:
    """The folder in which programs find models by their names on the hub; jobs may add others to it."""
    if not models:
        return None
    from hpcgen.core.model.hub_cache import HUB_CACHE, hub_repositories

    if not hub_repositories(models):
        return None
    return NamedData(f"${{{_HUB}}}", HUB_CACHE, where="run.models", title=f"the cache of the hub, {HUB_CACHE},")


def models_named(models: Sequence[Model], plan: Plan) -> list[NamedData]:
    """Models and data sets of a plan's stack, each below the folder that the job script calls by a variable."""
    read_only = _engine(plan).read_only_binds
    return [
        NamedData(
            f"${{{_STORE}}}/{each.place}",
            each.to,
            read_only,
            f"run.models.{number}.to",
            f"the model {each.name}, {each.to},",
        )
        for number, each in enumerate(models)
    ]


def check_data(plan: Plan, data: Sequence[NamedData], made: Sequence[str]) -> None:
    """The errors of :func:`data_of`, where the option or file that names it can still be said.

    ``made``: the folders for data that the image has, as :func:`hpcgen.recipe.bind_targets.data_targets` gives them.
    InputError: besides, a place that the image does not have, for an engine that makes none.
    """
    engine = _engine(plan)
    for each in data:
        _bind(plan, each)
        target = each.target or each.source
        if engine.targets_in_image and target not in (*engine.mount_points, *made):
            raise _no_target(engine, each, target)


def models_part(data: Sequence[BoundData], name: str) -> str:
    """Shell that ends a job before it starts where a model is not there, and has those of the hub found by name."""
    sources = [each.source for each in data if each.model and not each.hub]
    if not sources:
        return ""
    text = _fill("models", sources=line(sources), file_name=name)
    for each in data:
        rows = [f"{one.folder} {one.commit} {'main' if one.main else '-'} {one.files}" for one in each.hub]
        if rows:
            from hpcgen.core.model.hub_cache import cache_name

            text += _fill("hub", folder=cache_name(each.hub), below=MODEL_STORE, entries=rows, file_name=name)
    return traced(text, Subject("models"))


def data_part(data: Sequence[BoundData], name: str) -> str:
    """Shell that ends a job before it starts where its data is not there, or a variable that names it."""
    data = [each for each in data if not each.model]
    if not data:
        return ""
    names = dict.fromkeys(variable for each in data for variable in each.variables)
    named = _fill("data_variables", names=line(names), file_name=name) if names else ""
    text = _fill("data", variables=named, sources=line(each.source for each in data), file_name=name)
    return traced(text, Subject("bind"))


def _bind(plan: Plan, data: NamedData) -> Bind:
    source = expanded(data.source)
    if not isinstance(source, Shell) and not source.startswith("/"):
        source = joined(FOLDER, f"/{source}")
    engine = _engine(plan)
    if data.read_only and not engine.read_only_binds and not data.packed:
        raise InputError(
            f"{data.text}: {engine.name} cannot bind a folder read-only",
            data.where,
            remedy="leave out :ro, or use another engine",
        )
    if data.target or not isinstance(source, Shell):
        _check_target(plan, engine, data, data.target or str(source))
    # A path with a variable in it is known on the node alone. Packed data has no other state than read-only.
    return Bind(source=source, target=data.target or source, read_only=data.read_only and not data.packed)


def _check_target(plan: Plan, engine: Engine, data: NamedData, target: str) -> None:
    """InputError for a place in the image that has to be seen, or that the engine does not find there."""
    target = target.rstrip("/")
    inside = [each for each in _SYSTEM if overlap(target, each)]
    above = [each for each in _ABOVE if f"{each}/".startswith(f"{target}/")]
    own = [each for each in own_places(plan) if overlap(target, each)]
    if hidden := [*own, *above, *inside]:
        raise InputError(
            f"{data.text} would hide {hidden[0]} of the image, {_why(plan, hidden[0])}",
            data.where,
            expected="a path that nothing else uses",
            remedy=f"bind it elsewhere, such as {data.source}:{(*engine.mount_points, '/data')[0]}",
        )


def _engine(plan: Plan) -> Engine:
    return engine_for(plan.engine, plan.site.containers.engines.get(plan.engine, SiteEngine()).version)


def own_places(plan: Plan) -> list[str]:
    """What the image's blocks and the stack's own files have, and the host's MPI."""
    mpi = plan.site.mpi
    bound = [bind.target for bind in mpi.binds] if mpi is not None else []
    code = [place for _, _, place in plan.stack.code_places]
    return [*code, *(f"/opt/{block.name}" for block in plan.in_image), "/opt/hpcgen", *bound]


def _why(plan: Plan, place: str) -> str:
    if place == SUBMIT_FOLDER:
        return "where the job's own folder is seen"
    if place in [own for _, _, own in plan.stack.code_places]:
        return "where the stack's own files are"
    return "which the program is started with" if place in own_places(plan) else "a folder of the system"


def _no_target(engine: Engine, data: NamedData, target: str) -> InputError:
    free = f"{data.source}:{engine.mount_points[0]}" if engine.mount_points else ""
    again = f"name {target if data.target else 'SRC:/data'} in `run.binds` of the stack and build the image again"
    if data.title:
        # Of a model: its place is the stack's.
        free, again = "", "build the image again, which makes the folder"
    return InputError(
        f"{data.text}: {engine.name} binds only onto folders of the image, and this one may not have {target}",
        data.where,
        remedy=f"--bind {sh(free)}, or {again}" if free else again,
    )
