"""The parts of a job script: numbers, directives, variables, binds, modules and the start of the program."""

from __future__ import annotations

from hpcgen.core.model.hub_cache import HUB_CACHE, hub_repositories
from hpcgen.core.model.reasons import JobReason
from hpcgen.launch.environment import HARMFUL, Giver
from hpcgen.launch.job.queues import limits
from hpcgen.planning.explain.case import ExplainCase, Explanation, Ground, Refused

_RULES = {
    "collectives": "so that GPUs and processes of several nodes use the intended network",
    "scheduler": "the launcher of the host's MPI needs it in jobs of this batch system",
    "engine": "ranks of a node are in containers that may not read each other's memory, which the MPI would do",
    "pinning": "the start line keeps each rank to its CPUs, and the MPI must not do it again",
    "image": "a variable of the image, which this engine does not set by itself",
    "host mpi": "the host's MPI replaces the image's",
    "launcher": "the image's own launcher starts the ranks on one node",
    "caller": "only for this start",
}


def job(case: ExplainCase, field: str) -> Explanation:
    """A number of the job."""
    plan = case.plan
    grounds = []
    for each in plan.job.reasons:
        if not isinstance(each, JobReason) or each.field != field:
            continue
        paths = {"layout": "layouts", "site default": "scheduler.default_time", "one per GPU": "partitions.*.gpu.count"}
        paths |= {"all of a node": "partitions.*.gpu.count", "shared cores": "partitions.*.cpu.cores"}
        grounds.append(Ground(kind="command" if each.rule == "asked" else "job", text=str(each)))
        if each.rule in paths:
            grounds.append(case.fact(paths[each.rule]))
        elif each.rule == "stack":
            grounds.append(case.said_by_stack("run"))
    refused = []
    if field == "queue":
        queues = plan.site.partitions[plan.partition].queues
        grounds.append(case.fact("partitions.*.queues"))
        why = "it takes {}; another comes first"
        refused = [Refused(what=q.name, why=why.format(limits(q))) for q in queues if q.name != plan.job.queue]
    if field == "name" and not grounds:
        grounds.append(Ground(kind="rule", text="a job is called as its stack, unless --job-name says otherwise"))
    if field == "account" and not grounds:
        grounds.append(Ground(kind="command", text="--account, or the user's own settings"))
    if field == "rank_gpus":
        grounds.append(Ground(kind="job", text=f"each rank sees {plan.job.rank_gpus} GPUs"))
    value = plan.job_name if field == "name" else str(getattr(plan.job, field, ""))
    return Explanation(kind="job", name=field, value=value, grounds=grounds, refused=refused)


def variable(case: ExplainCase, name: str) -> list[Explanation]:
    """A variable of the job: as it is set outside, and inside where that differs."""
    values, found = case.start.variables, []
    if name in values.exported:
        found.append(_variable(case, name, values.exported[name], values.givers[name], "variable of the job"))
    if name in values.inside:
        kind = "variable inside the container"
        found.append(_variable(case, name, values.inside[name], values.inside_givers[name], kind))
    return found


def _variable(case: ExplainCase, name: str, value: str, giver: Giver, kind: str) -> Explanation:
    grounds = [Ground(kind="rule", text=_RULES[giver.by])] if giver.by in _RULES else []
    if giver.by in ("site", "host mpi", "scheduler") and giver.path:
        grounds.append(case.fact(giver.path))
    elif giver.by == "stack":
        # What `hpcgen tune --write` says of it stands in a note that begins with its name.
        measured = (each for each in case.plan.stack.notes if name in each.partition(":")[0].split())
        grounds.append(case.said_by_stack(giver.path, next(measured, "")))
    elif giver.by == "job":
        for field in giver.path.split():
            grounds += job(case, field).grounds
    return Explanation(kind=kind, name=name, value=value, grounds=grounds)


def bind(case: ExplainCase, target: str) -> Explanation:
    """A folder of the host that the container sees."""
    mpi = case.plan.host_mpi
    found = next((each for each in mpi.binds if each.target == target), None) if mpi is not None else None
    models = [each.to for each in case.plan.stack.run.models]
    if found is None and target in models:
        path = f"run.models.{models.index(target)}.from"
        return Explanation(kind="bind", name=target, grounds=[case.said_by_stack(path)])
    if found is None and target == HUB_CACHE and hub_repositories(case.plan.stack.run.models):
        return Explanation(kind="bind", name=target, grounds=[case.said_by_stack("run.models.0.from")])
    if found is None and case.start.data:
        return Explanation(kind="bind", name=target, grounds=[case.said_by_stack("run.binds")])
    grounds = [Ground(kind="rule", text="the host's MPI and the libraries that it loads are there")]
    if found is not None:
        grounds.append(case.fact(f"{case.plan.mpi_path('binds', found)}.source"))
    return Explanation(kind="bind", name=target, grounds=grounds)


def file_systems(case: ExplainCase, name: str = "") -> Explanation:
    """The site's file systems that the container sees in their own place."""
    names = [key for key, each in case.plan.site.file_systems.items() if each.bind]
    return Explanation(kind="file systems", name=name, grounds=[case.fact(f"file_systems.{key}") for key in names])


def module(case: ExplainCase, name: str) -> Explanation:
    """A module that the job loads."""
    site, grounds = case.plan.site, []
    lists = {"scheduler.modules": site.scheduler.modules}
    mpi = case.plan.host_mpi
    for field in ("modules", "bind_modules"):
        if mpi is not None and name in getattr(mpi, field):
            lists[case.plan.mpi_path(field, name).rpartition(".")[0]] = [name]
    if case.plan.engine in site.containers.engines:
        lists[f"containers.engines.{case.plan.engine}.modules"] = site.containers.engines[case.plan.engine].modules
    grounds = [case.fact(path) for path, names in lists.items() if name in names]
    return Explanation(kind="module", name=name, grounds=grounds)


def engine(case: ExplainCase, name: str = "") -> Explanation:
    """The container engine, and those that the site has or forbids."""
    site, plan = case.plan.site, case.plan
    grounds = [case.fact("containers.preferred")]
    if plan.engine in site.containers.engines:
        grounds.append(case.fact(f"containers.engines.{plan.engine}"))
    refused = []
    for other, each in site.containers.engines.items():
        if other != plan.engine:
            why = each.reason or ("another is preferred" if each.allowed else "the site does not allow it")
            where = case.fact(f"containers.engines.{other}").place
            refused.append(Refused(what=other, why=why, place=where))
    return Explanation(kind="engine", name=name or plan.engine, value=plan.engine, grounds=grounds, refused=refused)


def launch(case: ExplainCase) -> Explanation:
    """The line that starts the ranks."""
    how = case.start
    if how.mpi is not None and case.plan.site.mpi is not None:
        grounds = [case.fact("mpi.launcher"), case.fact("mpi.pmi")]
    elif how.inner:
        grounds = [Ground(kind="rule", text="the image's own launcher starts the ranks, in one container")]
    else:
        grounds = [Ground(kind="rule", text="one process, which no launcher starts")]
    for field in ("nodes", "ranks_per_node"):
        grounds += job(case, field).grounds
    return Explanation(kind="launch line", name=" ".join([*how.outer, *how.inner]), grounds=grounds, see=["engine"])


def command(case: ExplainCase) -> Explanation:
    """The command that the job starts."""
    asked = case.plan.job.command != case.plan.stack.run.command
    said = Ground(kind="command", text="the command after --") if asked else case.said_by_stack("run.command")
    return Explanation(kind="command", name=" ".join(case.plan.job.command), grounds=[said])


def unset(case: ExplainCase) -> Explanation:
    """Variables of the host that the container must not see."""
    grounds = [Ground(kind="rule", text=f"the image lacks these files, or has other versions: {' '.join(HARMFUL)}")]
    if case.plan.mpi.host_settings:
        names = " ".join(case.plan.mpi.host_settings)
        grounds.append(Ground(kind="rule", text=f"they say where another MPI than the image's has its files: {names}"))
    grounds += [case.fact("unset_environment")] if case.plan.site.unset_environment else []
    return Explanation(kind="variables kept out", name="", grounds=grounds)


def own(kind: str) -> Explanation:
    """Lines of every job script."""
    rules = {
        "preflight": "checks before the start that the nodes meet the requirements of image and job",
        "caches": "where programs keep downloads and compiled code, by their blocks' variables",
        "models": "where `hpcgen data fetch` puts what `run.models` of the stack names; submit and run do that, too",
        "image": "where the build puts the image, unless HPCGEN_IMAGE names another",
        "program": "a program that the start needs, missed here and not in the middle of a job",
        "header": "what the file is for, and the command that recreates it",
        "kit": "the image carries the kit that it was built from",
        "self-test": "a build ends with the self-test, so that no image that fails it gets its name",
    }
    return Explanation(kind=kind, name="", grounds=[Ground(kind="rule", text=rules.get(kind, "every kit has this"))])
