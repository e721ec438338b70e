"""The job script and the run line as text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec.structs import replace

from hpcgen.engines import Engine
from hpcgen.job.measured_layouts import memory_text
from hpcgen.launch.environment import BOOTSTRAP
from hpcgen.launch.preflight import PREFLIGHT, STATUS, has_rank_test, preflight_text
from hpcgen.launch.start import Start, start
from hpcgen.model.plan import Plan
from hpcgen.recipe.formats.header import header as file_header
from hpcgen.schedulers import Direct, Header, Scheduler, scheduler_for
from hpcgen.support.quoting import plain, sh, sh_assign
from hpcgen.support.shell_words import FOLDER, Shell, joined, line, loading, quoted


def job_script(
    plan: Plan,
    image_environment: Mapping[str, str],
    image: str | None = None,
    *,
    direct: bool = False,
    named: bool = False,
    built_for: str = "",
    preflight: bool = True,
) -> tuple[str, str]:
    """File name and text of the script that starts a plan's image as a job.

    Parameters
    ----------
    image_environment: variables of the image's final stage, as they are at its end (nothing to expand).
    image: the image's file or name; where the build script puts it if None.
    direct: for starting it right here, in the present folder, in an allocation or without one.
    named: ``image`` is a name in the engine's store, not a file.
    built_for: archspec's name of the CPU that the image was compiled for, if it is not that of the plan's partition.
    preflight: look first whether the nodes have what the job counts on.

    Raises
    ------
    PolicyError: the site's engine or MPI cannot start the job as it is laid out.
    InputError: a value that cannot be written in a script or its header.
    """
    scheduler = Direct() if direct else scheduler_for(plan.site.scheduler)
    how = start(plan, image_environment)
    values = _values(plan, scheduler, how, image, named)
    name = scheduler.file_name
    checks = preflight_text(plan, how, name, built_for=built_for, named=named) if preflight else ""
    return name, _template("job.sh.j2").render(values, preflight=checks, job=True)


def preflight_script(plan: Plan, image_environment: Mapping[str, str]) -> str:
    """The preflight of the kit's job script alone, to be run by hand in an allocation. Raises as :func:`job_script`."""
    how = start(plan, image_environment)
    values = _values(plan, Direct(), how, None, False)
    values.update(file_name=PREFLIGHT, header=_header(plan, "Preflight"), status=STATUS)
    values.update(ranks=has_rank_test(plan, how), preflight=preflight_text(plan, how, ""))
    return str(_template("job.sh.j2").render(values, job=False))


def run_line(plan: Plan, image_environment: Mapping[str, str]) -> str:
    """The line of shell that the job script comes to, with the image in the folder that it is started in."""
    how = start(plan, image_environment)
    directory = plan.site.containers.image_directory
    here = Shell('"$PWD"')
    name = how.engine.image_names(plan.stack.name, plan.site.name)[0]
    if not how.engine.image_is_file:
        image: str = name
    else:
        image = f"{directory}/{name}" if directory is not None else joined(here, f"/{name}")
    call = replace(how.call, image=image, folder=here)
    container = [word for group in how.engine.words(call) for word in group]
    exports = [Shell(sh_assign(name, value)) for name, value in how.variables.exported.items()]
    return line([*exports, *how.outer, *container, *how.inner, *plan.job.command])


def _values(plan: Plan, scheduler: Scheduler, how: Start, image: str | None, named: bool) -> dict[str, Any]:
    """What the template is filled with: every piece is quoted or checked here."""
    scheduler_header = Header(
        name=plan.stack.name,
        job=plan.job,
        partition=plan.site.partitions[plan.partition],
        scheduler=plan.site.scheduler,
    )
    engine = how.engine
    names = engine.image_names(plan.stack.name, plan.site.name)
    directory = plan.site.containers.image_directory
    folder = FOLDER if directory is None else directory
    return {
        "file_name": scheduler.file_name,
        "directives": [f"{scheduler.mark} {item}" for item in scheduler.directives(scheduler_header)],
        "account_missing": _account_line(plan, scheduler),
        "header": _header(plan, "Job script"),
        "reasons": [plain(text, "a reason") for text in plan.job.reasons],
        "memory": memory_text(plan.site.partitions[plan.partition], plan.job),
        # VALET is there in a login shell alone.
        "shell_options": " -l" if how.modules and plan.site.system.modules == "valet" else "",
        "modules": loading(plan.site.system.modules, how.modules),
        "start": scheduler.start,
        "programs": [sh(word) for word in dict.fromkeys([*how.outer[:1], engine.command_name()])],
        "image_missing": _missing(engine, named),
        # No variable of the caller puts another in place of an image that was named.
        "image": quoted(image) if image is not None else "",
        "images": _images(engine, names, folder),
        "charliecloud_gpu": engine.name == "charliecloud" and bool(how.call.gpu),
        "exports": [sh_assign(name, value) for name, value in how.variables.exported.items()],
        "command": line(plan.job.command),
        "definition": [quoted(text) for text in engine.definition(how.call)],
        "container": [line(group) for group in [*engine.words(how.call), how.inner] if group],
        "outer": line(how.outer),
        "alone": _alone(how) if isinstance(scheduler, Direct) else [],
        "exec": isinstance(scheduler, Direct) and not engine.within_srun,
    }


def _header(plan: Plan, what: str) -> list[str]:
    return [plain(text, "the header") for text in file_header(plan, what)]


def _missing(engine: Engine, named: bool) -> str:
    """Shell that succeeds where there is no such image; "" where the engine itself says so best."""
    if not engine.image_is_file:
        return f'! {sh(engine.command_name())} image inspect "$image" > /dev/null 2>&1'
    return "" if named else '[ ! -e "$image" ]'


def _alone(how: Start) -> list[str]:
    """Variables for a start without an allocation: the launcher would ask the batch system for nodes."""
    names = [name for name in BOOTSTRAP.values() if how.variables.exported.get(name, "fork") != "fork"]
    return [sh_assign(name, "fork") for name in names]


def _images(engine: Engine, names: list[str], folder: str) -> list[str]:
    return [joined(folder, f"/{name}") for name in names] if engine.image_is_file else [quoted(names[0])]


def _account_line(plan: Plan, scheduler: Scheduler) -> str:
    """The directive to be filled in where the site wants an account and none was given."""
    if plan.site.scheduler.account != "required" or plan.job.account or not scheduler.mark:
        return ""
    return f"{scheduler.mark} {scheduler.account_option}"


@cache
def _template(name: str) -> Any:
    # jinja2 takes longer to load than everything else here.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("hpcgen.launch"),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)
