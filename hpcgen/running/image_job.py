"""A built image and a site → the script that starts it, right here or as a job.

The plan comes with the image. Laid out anew for another site or another number of nodes it keeps its blocks: what is
in the image does not change, only how it is started.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from hpcgen.backends.engines import engine_for, preferring, runners
from hpcgen.core.config.user_config import usual
from hpcgen.core.errors import InputError, PolicyError
from hpcgen.core.model.fields import EngineName
from hpcgen.core.model.host_mpi import Bind
from hpcgen.core.model.job import JobRequest, Queueing
from hpcgen.core.model.plan import Finding, Plan
from hpcgen.core.model.record import ImageKindName
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import Stack
from hpcgen.core.support.quoting import sh
from hpcgen.images.kinds import kind_for
from hpcgen.launch.job.layout import job_findings
from hpcgen.launch.script import job_script, plain_script, preflight_script
from hpcgen.planning.reproduce import step_words
from hpcgen.recipe.assemble import assemble
from hpcgen.running.data import DataRequest, with_data
from hpcgen.running.host_side import changed_variables, host_side, laid_out, started_as
from hpcgen.running.image_findings import bind_findings, check_mpi, contract_findings, onto_folders, unseen_data
from hpcgen.running.signed import require_signed

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.image_facts import ImageFacts
    from hpcgen.images.reference import ImageReference
    from hpcgen.running.foreign import ForeignStart


class ImageJob(msgspec.Struct, frozen=True):
    """What is started, and how.

    environment: variables of the image, as its recipe sets them.
    image: an absolute path or a name in the engine's store; "" where the kit's job script looks for it.
    kind: where the image lies; None for ``image=""``.
    built_for: archspec's name of the CPU that the image was compiled for, "" if it is that of the plan.
    inside: variables of a stranger's stack, which are set in the container alone.
    queueing: how it is queued, if it goes to a batch system.
    sealed: foreign code runs in it: without a network, and with nothing of the host but the folder that it starts in.
    shown: folders of the host that it sees beside that.
    content: hash of the plan that the image was built from; "" where hpcgen did not build it.
    facts: what was read of an image that hpcgen did not build.
    plain: there is no image: the command runs on the machine itself.
    keep_cache: what its programs compile is kept for its next job.
    sha256: of the signed image, which a job compares again before it starts; "" where nobody asks for a signature.
    """

    plan: Plan
    environment: dict[str, str]
    image: str = ""
    kind: ImageKindName | None = None
    built_for: str = ""
    inside: dict[str, str] = {}
    queueing: Queueing = Queueing()
    sealed: bool = False
    shown: tuple[Bind, ...] = ()
    content: str = ""
    facts: ImageFacts | None = None
    plain: bool = False
    sha256: str = ""
    keep_cache: bool = False

    @property
    def foreign(self) -> bool:
        """Whether hpcgen did not build the image, so that what it has is known by its files, if at all."""
        return not self.plan.blocks or self.facts is not None

    @property
    def named(self) -> bool:
        """Whether the image is a name in an engine's store."""
        return self.kind is not None and kind_for(self.kind).stored

    def need_command(self) -> None:
        """InputError where neither the stack nor the user says what is started."""
        job = self.plan.job
        if not job.command and not job.steps:
            if self.facts is not None:
                from hpcgen.running.foreign import no_program

                raise no_program(self.plan)
            raise InputError(
                f"there is no program to start: the stack {self.plan.stack.name} names none",
                expected="`-- COMMAND` at the end of the command line",
                remedy="with `command` below `run` in the stack, no job needs that",
            )


def plan_for_image(
    image: ImageReference,
    catalog: Catalog,
    *,
    trust: bool = False,
    site: Site | None = None,
    partition: str | None = None,
    request: JobRequest | None = None,
    engine: EngineName | None = None,
    account: Callable[[Site], str | None] | None = None,
    elsewhere: bool = False,
    stack: Stack | None = None,
    beside: Callable[[], Stack] | None = None,
    foreign: Callable[[], Site] | None = None,
    data: DataRequest | None = None,
    allow_unsupported: bool = False,
    converted: bool = False,
    signed: bool = True,
) -> ImageJob:
    """The plan that an image carries, laid out for a site; of one that hpcgen did not build, a plan by what it holds.

    catalog: where the user's own profile of the recorded site is: it decides what happens on the host.
    trust: the image's record may decide that.
    site: another site than the recorded one.
    partition: kind of node; the recorded one on the recorded site, else the site's default.
    request: what is asked of the job. Without a layout asked for, on the recorded site, it is the recorded one.
    engine: another engine than the site prefers.
    account: the user's own account at a site, for a request without one; it comes before the recorded one.
    elsewhere: it is started on the site's nodes, so that what is installed here says nothing.
    stack: the stack that it was built from as its user has it now, which decides how the program is started.
    beside: the stack of the user's present folder, which is taken for ``stack`` where the image is one of that name.
    foreign: starts an image that hpcgen did not build as one process without the host's MPI, unread: the site that it
        is started at where none is named.
    data: the data of the host that it sees; none of its own if None.
    allow_unsupported: an image that hpcgen did not build is started although it breaks the contract with the host.
    converted: an archive, which no engine starts, is first made into what the site's engine does.
    signed: an image without a signed statement is refused where the user or the site asks for one.
    InputError: the image is for a site of which the user has no profile, or nothing says which machine this is.
    PolicyError: nothing allowed here starts this kind of image; the job does not fit the machine; the contract is
        broken by an image that hpcgen did not build; its signature is missing or wrong.
    UnknownNameError: there is no such partition.
    """
    from hpcgen.images.recorded import known_kit

    replace = msgspec.structs.replace
    asked = request or JobRequest()
    kit, other = known_kit(image), None
    if kit is None:
        other = _foreign(image, catalog, site, partition, asked, foreign)
        kit, site, asked, trust = other.kit, other.site, other.request, False
    elif stack is None and beside is not None and (own_stack := beside()).name == kit.plan.stack.name:
        stack = own_stack
    side = host_side(kit.plan, site, catalog, trust=trust, stack=stack)
    if asked.account is None and account is not None:
        asked = replace(asked, account=account(side.site or kit.plan.site))
    recorded = side.recorded if stack is None else started_as(side.recorded, stack)
    plan = laid_out(recorded, side.site, partition, asked, renewed=site is None, anew=recorded.stack != kit.plan.stack)
    sha256 = require_signed(image, plan.site, catalog) if signed else ""
    chosen = choose_engine(_usual(plan.site, stack), image.kind, image.name, engine, elsewhere, converted)
    again = _command(str(image), site, partition, asked, engine, data)
    plan = replace(plan, engine=chosen, command=again, findings=[])
    built = kit.plan
    if other is not None:
        folders = data.named(plan, own_stack=False) if data is not None else ()
        plan = built = other.onto(plan, image, catalog, folders, digest=elsewhere)
    own = stack is not None or trust
    unseen = [] if own else unseen_data(plan)
    plan = with_data(plan, data, built, own)
    inside: dict[str, str] = {}
    if not side.stack_outside:
        run = plan.stack.run
        inside, plan = run.environment, replace(plan, stack=replace(plan.stack, run=replace(run, environment={})))
    plan = onto_folders(built, plan)
    facts = other.facts if other is not None else None
    if facts is not None:
        contract, built_for, of_image = _as_read(plan, facts, catalog, asked, allow_unsupported)
        inside |= of_image
    else:
        check_mpi(plan)
        contract = [*contract_findings(plan), *bind_findings(built, plan)]
        built_for = built.site.partitions[built.partition].cpu.target
    findings = [
        *side.findings,
        *(changed_variables(kit.plan, catalog) if stack is None and other is None and not trust else []),
        *unseen,
        *contract,
        *job_findings(plan.site, plan.partition, plan.job, asked),
    ]
    plan = replace(plan, findings=[*plan.findings, *findings])
    environment, content = dict(kit.environment), kit.content
    return ImageJob(
        plan, environment, image.name, image.kind, built_for, inside, content=content, facts=facts, sha256=sha256
    )


def _as_read(
    plan: Plan, facts: ImageFacts, catalog: Catalog, asked: JobRequest, allow_unsupported: bool
) -> tuple[list[Finding], str, dict[str, str]]:
    """Of an image that hpcgen did not build: what is said of the contract, its CPU target, and variables for inside."""
    from hpcgen.planning.observed import compiled_for
    from hpcgen.running.foreign import foreign_findings, set_inside

    findings = foreign_findings(plan, facts, catalog, asked, allow_unsupported)
    return findings, compiled_for(facts), set_inside(plan, facts)


def _foreign(
    image: ImageReference,
    catalog: Catalog,
    site: Site | None,
    partition: str | None,
    asked: JobRequest,
    unread: Callable[[], Site] | None,
) -> ForeignStart:
    """What stands for the kit of an image that has none."""
    from hpcgen.running.foreign import foreign_start, plain_start

    if unread is not None:
        return plain_start(image, site or unread(), partition, asked)
    return foreign_start(image, catalog, site, partition, asked)


def plan_for_stack(
    plan: Plan,
    catalog: Catalog,
    image: ImageReference | None = None,
    engine: EngineName | None = None,
    elsewhere: bool = False,
    data: DataRequest | None = None,
) -> ImageJob:
    """The job of a stack that is planned anew.

    image: for an image that carries no record; where the kit's job script looks for it if None.
    engine: another engine than the site prefers.
    elsewhere, data: as for :func:`plan_for_image`.
    PolicyError: the engine is not allowed, or starts no such image; a signature is required and missing or wrong.
    """

    sha256 = require_signed(image, plan.site, catalog)
    if image is not None:
        chosen = choose_engine(_usual(plan.site), image.kind, image.name, engine, elsewhere)
        plan = msgspec.structs.replace(plan, engine=chosen)
    elif engine is not None:
        plan = msgspec.structs.replace(plan, engine=_allowed(plan.site, (engine,), "the image")[0])
    environment = assemble(plan, catalog).final.environment
    plan = with_data(plan, data)
    name, kind = (image.name, image.kind) if image is not None else ("", None)
    return ImageJob(plan, environment, name, kind, sha256=sha256)


def direct_script(job: ImageJob, preflight: str = "") -> str:
    """bash that starts the job right here: in an allocation where there is one, else on this machine.

    ``preflight``: name of the file with :func:`checks` beside the script, "" to start without them. PolicyError,
    InputError: as :func:`hpcgen.launch.job_script`.
    """
    if job.plain:
        return plain_script(job.plan)
    _, text = job_script(
        job.plan,
        job.environment,
        job.image or None,
        direct=True,
        named=job.named,
        preflight=preflight,
        more_inside=job.inside,
        sealed=job.sealed,
        shown=job.shown,
        alone=True,
        keep_cache=job.keep_cache,
    )
    return str(text)


def batch_script(job: ImageJob, preflight: str) -> tuple[str, str]:
    """File name and text of the job script, with the image written in, so that no variable has to reach the job.

    ``preflight``: name of the file with :func:`checks` in the folder that the job starts in.
    """
    name, text = job_script(
        job.plan,
        job.environment,
        job.image or None,
        named=job.named,
        preflight=preflight,
        more_inside=job.inside,
        queueing=job.queueing,
        alone=True,
        keep_cache=job.keep_cache,
    )
    return name, str(text)


def checks(job: ImageJob) -> str:
    """The preflight of a job: the script that its own script calls first."""
    return preflight_script(
        job.plan, job.environment, named=job.named, built_for=job.built_for, more_inside=job.inside, sha256=job.sha256
    )


def _usual(site: Site, stack: Stack | None = None) -> Site:
    """The site with the engine that the user's stack or config file prefers, where it has that one."""
    found = usual("engine", site.name, stack)
    return site if found is None else preferring(site, *found)


def choose_engine(
    site: Site,
    kind: ImageKindName,
    name: str,
    asked: EngineName | None,
    elsewhere: bool = False,
    converted: bool = False,
) -> EngineName:
    """The engine that starts an image: the asked one, else of those at hand the site's preferred, else the first.

    elsewhere: it is started on other machines: the site's preferred engine, or one that its profile names, is at hand.
    converted: what no engine starts, every one will.
    PolicyError: the engine that was asked for cannot start it or is not allowed; none that can is allowed.
    """
    form = kind_for(kind).start_form(name)
    starters = {each: engine.starts.index(form) for each, engine in runners().items() if form in engine.starts}
    able = tuple(sorted(starters, key=lambda each: starters[each]))
    if not able and converted:
        able = tuple(runners())
    if not able:
        remedy = f"convert it first: hpcgen convert {name} …"
        raise PolicyError(f"no engine starts an image of the kind {kind}: {name}", remedy=remedy)
    if asked is not None and asked not in able:
        expected = f"--engine {' or '.join(able)}"
        message = f"{asked} does not start an image of the kind {kind}"
        raise PolicyError(message, "--engine", expected, engine_for(asked).image_todo)
    known = site.containers.engines
    allowed = _allowed(site, (asked,) if asked is not None else able, name)
    allowed.sort(key=lambda each: (each != site.containers.preferred, each not in known))
    if elsewhere and allowed[0] in known:
        return allowed[0]
    return next((each for each in allowed if _at_hand(site, each)), allowed[0])


def _allowed(site: Site, wanted: tuple[EngineName, ...], image: str) -> list[EngineName]:
    known = site.containers.engines
    allowed = [each for each in wanted if each not in known or known[each].allowed]
    if not allowed:
        why = "; ".join(f"{each}: {known[each].reason}" for each in wanted)
        remedy = "convert it: hpcgen convert, or build it for this site"
        message = f"{site.name} does not allow {' or '.join(wanted)} to start {image} ({why})"
        raise PolicyError(message, remedy=remedy)
    return allowed


def _at_hand(site: Site, engine: EngineName) -> bool:
    """Whether a program is there, or comes with a module of the site."""
    known = site.containers.engines.get(engine)
    if known is not None and known.modules:
        return True
    return shutil.which(engine_for(engine).command_name()) is not None


def _command(
    image: str,
    site: Site | None,
    partition: str | None,
    request: JobRequest,
    engine: EngineName | None,
    data: DataRequest | None,
) -> str:
    """The command that prints the job script."""
    words = ["hpcgen", "job", image]
    for option, value in (
        ("--site", site.name if site is not None else None),
        ("--partition", partition),
        ("--engine", engine),
        ("--nodes", request.nodes),
        ("--ranks-per-node", request.ranks_per_node),
        ("--threads", request.threads_per_rank),
        ("--time", request.walltime),
        ("--queue", request.queue),
        ("--account", request.account),
        ("--memory-per-rank", request.memory_per_rank_gb),
        ("--job-name", request.name),
        ("--stage", data.stage if data is not None else None),
    ):
        if value is not None:
            words += [option, str(value)]
    words += [word for each in (data.given if data is not None else ()) for word in ("--bind", each)]
    words += step_words(request)
    if request.command:
        words += ["--", *request.command]
    return " ".join(sh(word) for word in words)
