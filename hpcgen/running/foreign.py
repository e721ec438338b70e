"""An image that hpcgen did not build: the plan by which it is started, and what is said of it.

The site's profile alone decides what happens on the host. What was read of the image decides how much of the host it
gets: its MPI where the binary interfaces agree, else a start of the image's own, else one process.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from hpcgen._version import __version__
from hpcgen.backends.engines import Engine, engine_for, engine_format
from hpcgen.backends.hardware.mpi_abi import MPI_LIBRARIES, wanted_abi
from hpcgen.backends.schedulers import launched_by
from hpcgen.core.config.user_config import usual
from hpcgen.core.errors import InputError, PolicyError, Problem, Problems
from hpcgen.core.model.image_facts import ImageFacts
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Finding, FoundImage, Plan, PlannedBlock, PlannedMpi
from hpcgen.core.model.site import Site, SiteEngine
from hpcgen.core.model.stack import RunSpec, Stack
from hpcgen.core.support.file_formats import KIT
from hpcgen.core.support.units import some
from hpcgen.launch.job.layout import resolve_job

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.images.recorded import RecordedKit
    from hpcgen.images.reference import ImageReference
    from hpcgen.planning.contract.case import Check, ContractCase

STACK = Stack(name="foreign", title="an image that hpcgen did not build", blocks={}, run=RunSpec(mpi=False))
PROCESSES = "processes"
"""Stands for the MPI of an image that has none, where several processes are asked for: the launcher starts them."""

_SHELLS = ("sh", "bash", "dash", "ash", "zsh", "csh", "tcsh", "fish")
_OF_BUILDS = ("network", "licences", "conda packages", "Python packages")
"""Checks of what a build fetches, which an image that is there has behind it."""

_OF_MPI = ("MPI ABI", "MPI version", "PMI", "transport key", "fabric provider", "libfabric", "TCP fallback")

_OTHER = "use another tag of the image, or add what it lacks: hpcgen extend"
_REMEDIES = {
    "C library": "use a tag of the image with a newer base",
    "MPI ABI": "use a tag with that MPI, or add one: hpcgen extend",
    "MPI version": "use a tag with an older MPI, or add one: hpcgen extend",
    "private MPI": _OTHER,
    "PMI": "name another one in mpi.pmi of the profile, or use an image with another MPI",
    "fabric provider": f"name the host's folders with it in fabric.libraries and mpi.binds, or {_OTHER}",
    "GPU use": "--gpus 0 for a job on CPUs only, or take a tag of the image for these GPUs",
}
"""What to do where blocks cannot be chosen any more, by the name of the check."""


class ForeignStart(msgspec.Struct, frozen=True):
    """What stands for a kit, and what was read.

    ``request``: with the layout that an image without MPI can have.
    """

    kit: RecordedKit
    site: Site
    request: JobRequest
    facts: ImageFacts | None = None

    def onto(
        self, plan: Plan, image: ImageReference, catalog: Catalog, folders: Iterable[str], *, digest: bool
    ) -> Plan:
        """The laid-out plan for its engine, with the parts of the host that the image can have.

        ``folders``: where data of the host is to be seen. ``digest``: whether somebody writes down which image it was:
        every byte of it is read for that.
        """
        if self.facts is None:
            return plan
        plan = replace(plan, found=_found(plan, image, self.facts, folders, digest))
        return _with_mpi(plan, self.facts, catalog)


def bare(site: Site) -> Site:
    """The site without what is bound into images, for a start of one process that needs nothing of it."""
    return replace(site, file_systems={}, mpi=None)


def foreign_plan(
    site: Site,
    partition: str | None,
    stack: Stack = STACK,
    request: JobRequest | None = None,
    blocks: list[PlannedBlock] | None = None,
) -> Plan:
    """A plan whose blocks are none, or what was seen in the image.

    UnknownNameError: there is no such partition. PolicyError: the job does not fit the machine.
    """
    name = site.default_partition if partition is None else site.known_partition(partition)
    return Plan(
        number=KIT.newest,
        hpcgen=__version__,
        site=site,
        stack=stack,
        partition=name,
        format=engine_format(site.containers.preferred),
        engine=site.containers.preferred,
        blocks=blocks or [],
        job=resolve_job(site, name, stack, request or JobRequest()),
    )


def plain_start(image: ImageReference, site: Site, partition: str | None, request: JobRequest) -> ForeignStart:
    """A start of one process for which nothing but the image's variables is read; errors as :func:`foreign_plan`."""
    from hpcgen.images.convert import own_marks
    from hpcgen.images.recorded import RecordedKit

    site = bare(site)
    environment, _ = own_marks(image)
    return ForeignStart(RecordedKit({}, foreign_plan(site, partition), environment, ""), site, request)


def foreign_start(
    image: ImageReference, catalog: Catalog, site: Site | None, partition: str | None, request: JobRequest
) -> ForeignStart:
    """A start of an image by what was read of it; errors as :func:`foreign_plan`.

    InputError: nothing says which machine this is, or the image cannot be read.
    """
    from hpcgen.images.convert import own_marks
    from hpcgen.images.reading.facts import image_facts
    from hpcgen.images.recorded import RecordedKit
    from hpcgen.images.remembered import remembered
    from hpcgen.planning.observed import seen

    site = site or _usual_site(image, catalog)
    facts = remembered(image, "facts", ImageFacts, lambda: image_facts(image))
    environment, _ = own_marks(image)
    several = (request.nodes or 1) > 1 or (request.ranks_per_node or 1) > 1
    blocks = seen(facts, catalog, wanted_abi(site.mpi) if site.mpi is not None else "").blocks
    if several and not facts.mpi:
        blocks = [*blocks, PlannedBlock(name=PROCESSES, version="", provides=["mpi"], mpi=PlannedMpi())]
        # One on each node, as for torchrun, unless somebody says how many.
        request = replace(request, ranks_per_node=request.ranks_per_node or 1)
    run = RunSpec(mpi=several, command=_own_command(facts))
    stack = Stack(name=_name(image), title=STACK.title, blocks={}, run=run)
    plan = foreign_plan(site, partition, stack, request, blocks)
    return ForeignStart(RecordedKit({}, plan, environment, ""), site, request, facts)


def _usual_site(image: ImageReference, catalog: Catalog) -> Site:
    """The site of the user's config file; InputError without one."""
    if (own := usual("site", None)) is not None:
        return catalog.site(own[0])
    raise InputError(
        f"the site for {image} is unknown: hpcgen did not build this image",
        expected="--site NAME|FILE",
        remedy="`hpcgen list sites` shows the known ones (workstation for a machine of your own), "
        "`hpcgen site new NAME --detect` writes a profile of this one",
    )


def _name(image: ImageReference) -> str:
    """A stack's name out of the image's, for the job's name."""
    last = posixpath.basename(image.name.partition("@")[0]).partition(":")[0].partition(".")[0].lower()
    return re.sub(r"[^a-z0-9._-]+", "-", last).strip("-._")[:40] or STACK.name


def _own_command(facts: ImageFacts) -> list[str]:
    """What the image starts by itself, where that is a program and not a shell."""
    settings = facts.settings
    words = [*(settings.entrypoint or []), *(settings.command or [])]
    shell = len(words) <= 1 and (not words or posixpath.basename(words[0]) in _SHELLS)
    if shell or not all(word.isprintable() for word in words):
        return []
    if "/" in words[0]:
        words[0] = posixpath.normpath(posixpath.join(settings.folder or "/", words[0]))
    return words


def _found(plan: Plan, image: ImageReference, facts: ImageFacts, more: Iterable[str], digest: bool) -> FoundImage:
    """The image's folders, as far as the engine needs to know them, and its digest where it is asked for."""
    from hpcgen.images.identity import identity_of
    from hpcgen.images.remembered import remembered
    from hpcgen.recipe.bind_targets import bind_targets

    engine = _engine(plan)
    wanted = sorted({*bind_targets(plan), *more})
    entry = facts.settings.entrypoint or []
    python = next((each.file for each in facts.python), "")
    identity = remembered(image, "digest", str, lambda: identity_of(image)) if digest else ""
    told = FoundImage(digest=identity, entry_point=entry, python=python)
    if not engine.targets_in_image:
        return replace(told, folders=wanted)

    def folders() -> list[str]:
        found = image.image_kind.folders(image.name, wanted)
        return wanted if found is None else sorted(found)

    there = remembered(image, f"folders {wanted}", list[str], folders)
    made = [each for each in wanted if each not in there] if engine.can_make_targets() else []
    return replace(told, folders=sorted({*there, *made}), made=made)


def _engine(plan: Plan) -> Engine:
    return engine_for(plan.engine, plan.site.containers.engines.get(plan.engine, SiteEngine()).version)


# Which MPI the ranks get: the host's, or the image's own by a launcher that it understands.


def _with_mpi(plan: Plan, facts: ImageFacts, catalog: Catalog) -> Plan:
    """With the host's MPI where it can take the place of the image's; else what else can start its ranks."""
    host = plan.site.mpi
    if not plan.stack.run.mpi:
        return plan
    if not facts.mpi:
        alone = _started_alone(plan) if host is not None else plan
        return _told(alone, "the image has no MPI: its processes are started without one")
    case = foreign_case(plan, facts, catalog)
    if host is None or case.host is None or not (case.swapped or host.shown_inside):
        return plan
    against = _against(case)
    if not against:
        message = f"the host's {host.flavour} {host.version} replaces {_mpi_of(plan)}"
        return _told(plan, message)
    understood = case.mpi_capabilities.pmi
    common = [each for each in host.pmi if each in understood]
    by_batch = launched_by(host.launcher, plan.site.scheduler) is not None
    # Where the profile says what the launcher offers, and that is nothing of the image's, the check of PMI says so.
    refused = bool(host.pmi and understood and not common) and plan.job.nodes > 1
    launched = by_batch and (bool(common) or refused)
    own = _started_alone(plan, common) if launched else replace(plan, site=replace(plan.site, mpi=None))
    how = f"started by {host.launcher} with {(common or host.pmi)[0]}" if launched else "started by itself"
    why = "; ".join(each.reason for each in against)
    return _told(own, f"the image keeps its own {_mpi_of(plan)}, {how}: {why}", against[0].remedy, "warning")


def _against(case: ContractCase) -> list[Check]:
    """Why the host's MPI cannot take the image's place."""
    from hpcgen.planning.contract.case import Check
    from hpcgen.planning.contract.verdict import checks_of

    checks = checks_of(case, only=("C library", "MPI ABI", "MPI version"))
    found = [_with_remedy(each) for each in checks if each.outcome == "broken"]
    made = case.plan.found.folders if case.plan.found is not None else []
    targets = [bind.target for bind in (case.host.binds if case.host is not None else []) if not bind.file]
    if missing := sorted(set(targets) - set(made)):
        reason = f"it has no folder {some(missing)} to bind the host's to, and {case.engine.name} makes none"
        todo = "use another engine (--engine) or a newer Charliecloud"
        found.append(Check("binds", "broken", reason, todo))
    return found


def _started_alone(plan: Plan, pmi: list[Any] | None = None) -> Plan:
    """The host's launcher starts the ranks, and nothing of its MPI is seen inside."""
    host = plan.site.mpi
    assert host is not None
    nothing: dict[str, Any] = {"libraries": [], "binds": [], "bind_modules": [], "preload": [], "gpu": {}, "root": None}
    # How ranks of a node share memory is a question of theirs, not of the host's.
    flavour: Any = plan.mpi.flavour or host.flavour
    alone = replace(host, **nothing, flavour=flavour, abi=plan.mpi.abi or host.abi, pmi=pmi or host.pmi, environment={})
    return replace(plan, site=replace(plan.site, mpi=alone))


def _mpi_of(plan: Plan) -> str:
    block = plan.block("mpi")
    return block.label if block is not None else "MPI"


def _told(plan: Plan, message: str, remedy: str = "", severity: Any = "note") -> Plan:
    finding = Finding(name="MPI", severity=severity, message=message, remedy=remedy)
    return replace(plan, findings=[*plan.findings, finding])


# The contract.


def foreign_case(plan: Plan, facts: ImageFacts, catalog: Catalog) -> ContractCase:
    """The case of such an image's plan."""
    from hpcgen.planning.observed import observed_case, seen

    return observed_case(plan, facts, seen(facts, catalog, plan.mpi.abi))


def foreign_checks(plan: Plan, facts: ImageFacts, catalog: Catalog) -> list[Check]:
    """The checks of an image that is there, each with what can still be done."""
    from hpcgen.planning.contract.verdict import checks_of

    without = (*_OF_BUILDS, *_OF_MPI) if plan.block(PROCESSES) is not None else _OF_BUILDS
    return [_with_remedy(each) for each in checks_of(foreign_case(plan, facts, catalog), without=without)]


def _with_remedy(check: Check) -> Check:
    if check.name == "policy" and check.outcome == "broken":
        # What a site refuses is refused where the engine is chosen; that it does not name one is no refusal.
        return replace(check, outcome="skipped" if check.path == "containers.engines" else "doubtful")
    added = re.sub(r"(?=--add \w)", "hpcgen extend IMAGE ", check.remedy)
    return replace(check, remedy=_REMEDIES.get(check.name, added)) if check.remedy else check


def foreign_findings(
    plan: Plan, facts: ImageFacts, catalog: Catalog, asked: JobRequest, allow_unsupported: bool
) -> list[Finding]:
    """What the user should know before it starts. PolicyError: a promise is broken, and nobody said to go on."""
    from hpcgen.planning.contract.verdict import findings_of, problems_of

    checks = foreign_checks(plan, facts, catalog)
    if not allow_unsupported:
        problems = problems_of(checks, lambda path: f"{path} of the profile of {plan.site.name}")
        Problems(problems).raise_as(PolicyError)
    found = [*findings_of(checks), *_read_findings(plan, facts)]
    entry = plan.found.entry_point if plan.found is not None else []
    if entry and asked.command:
        message = f"the image's entry point is left out: {' '.join(entry)}"
        remedy = "put it before the command if you need it"
        found.append(Finding(name="entry point", severity="note", message=message, remedy=remedy))
    return found


def _read_findings(plan: Plan, facts: ImageFacts) -> list[Finding]:
    from hpcgen.planning.observed import labels

    told = f"hpcgen did not build it; it contains: {labels(plan.blocks)}"
    found = [Finding(name="image", severity="detail", message=told, remedy="hpcgen inspect shows all of it")]
    if facts.unread:
        message = f"of the image was not read: {'; '.join(facts.unread[:3])}"
        found.append(Finding(name="image", severity="note", message=message))
    return found


def set_inside(plan: Plan, facts: ImageFacts) -> dict[str, str]:
    """Variables by which programs of the image find the host's MPI where that is in the place of its own.

    mpi4py's wheels look beside their Python before they ask the loader. Source: mpi4py/_mpiabi.py of 4.1.
    """
    host = plan.site.mpi
    replaced = plan.stack.run.mpi and bool(facts.mpi) and host is not None and host.shown_inside
    mpi4py = any(each.kind == "python" and each.name == "mpi4py" for each in facts.packages)
    return {"MPI4PY_LIBMPI": MPI_LIBRARIES[plan.mpi.abi]} if replaced and mpi4py else {}


def no_program(plan: Plan) -> InputError:
    """That neither the user nor the image says what is started."""
    return InputError(
        Problem(
            f"there is no program to start: {plan.stack.name} itself starts a shell",
            expected="`-- COMMAND` at the end of the command line",
        )
    )
