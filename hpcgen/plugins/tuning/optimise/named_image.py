"""The image that a request names: started as it is, by a job script that is made for it."""

from __future__ import annotations

import re

import msgspec

from hpcgen.backends.engines import engine_for
from hpcgen.backends.hardware.mpi_abi import abi_of
from hpcgen.blocks.inputs.archive import Archive
from hpcgen.blocks.inputs.git_tree import GitTree
from hpcgen.core.errors import PolicyError
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Finding, Plan, PlannedBlock, PlannedMpi
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import RunSpec, Stack
from hpcgen.core.support.quoting import command, sh
from hpcgen.core.support.writing import KitFile
from hpcgen.launch.parts import container_part
from hpcgen.launch.script import job_script, preflight_script
from hpcgen.launch.start import start
from hpcgen.plugins.tuning.optimise.application import BLOCK, command_lines
from hpcgen.plugins.tuning.requests.records import Build, OptimiseRequest
from hpcgen.running.foreign import foreign_plan

_REGISTRY = re.compile(r"^(docker|library|oras|shub)://")
_FILE = re.compile(r"^[./]|\.(sif|simg|img|sqfs|sqsh)$")
_ARCHIVE = re.compile(r"\.(tar|tar\.(gz|bz2|xz)|tgz|tbz2|txz)$")
UNKNOWN = (
    "nothing is known of what is in it: not its releases, whether it was compiled for these CPUs, nor its C library"
)


def image_plan(
    site: Site,
    partition: str,
    request: OptimiseRequest,
    job: JobRequest,
    ranks: bool,
    environment: dict[str, str],
    again: str = "",
) -> Plan:
    """The plan that starts the image: no block of it is known, but for the MPI that the request says it has.

    ranks: the program runs as ranks of MPI.
    environment: what a graph compiler that is to be used wants to be set.
    again: the command that decides the same again.
    PolicyError: the job does not fit the machine.
    """
    gpus = 0 if request.limits.gpus_per_node is None and request.hardware.accelerator is None else None
    run = RunSpec(command=job.command or [], mpi=ranks, environment=environment, gpus_per_node=gpus)
    stack = Stack(name=image_name(str(request.container)), title=str(request.container), blocks={}, run=run)
    plain = foreign_plan(site, partition, stack, job)
    planned = msgspec.structs.replace(plain, blocks=[_block(site, request, ranks)], command=again)
    return msgspec.structs.replace(planned, findings=_findings(planned, request))


def image_name(reference: str) -> str:
    """What the image is called here: the last part of its name with its tag, or its file."""
    last = reference.rstrip("/").rpartition("/")[2]
    last = re.sub(r"\.(sif|simg|img|sqfs|sqsh)$", "", last).replace(":", "_").lower()
    return re.sub(r"[^a-z0-9._-]+", "-", last).strip("-._")[:64] or "image"


def image_files(plan: Plan, request: OptimiseRequest) -> dict[str, KitFile]:
    """The job script and its preflight; build.sh, where the image has to be fetched, or a program built in it."""
    reference = str(request.container)
    engine = engine_for(plan.engine, None)
    local = reference if is_file(reference) else None
    image = local if engine.image_is_file else _REGISTRY.sub("", reference)
    name, text = job_script(plan, {}, image)
    files = {name: KitFile(str(text), True), "preflight.sh": KitFile(str(preflight_script(plan, {})), True)}
    steps = [] if local else _fetching(plan, reference)
    if request.build is not None:
        steps += _building(plan, request.build, local)
    if steps:
        head = ["#!/bin/bash", "# Fetches and builds what the job script starts, in this folder.", "set -euo pipefail"]
        lines = [*head, 'cd "$(dirname "$0")"', "folder=$PWD", *steps]
        files["build.sh"] = KitFile("\n".join(lines) + "\n", True)
    return files


def is_file(reference: str) -> bool:
    """Whether an image is named by its file."""
    return not _REGISTRY.match(reference) and _FILE.search(reference) is not None


def _fetching(plan: Plan, reference: str) -> list[str]:
    """Commands that fetch the image to where the job script looks for it; none where a start fetches it."""
    address = reference if _REGISTRY.match(reference) else f"docker://{reference}"
    engine = engine_for(plan.engine, None)
    if not engine.image_is_file:
        return []
    names = engine.image_names(plan.stack.name, plan.site.name)
    how = engine.fetch(address, names[0])
    if not how:
        raise PolicyError(
            f"hpcgen does not know how {plan.engine} fetches {reference}",
            remedy="fetch it yourself, and name its file in `container`",
        )
    fetch = " && ".join(command(*words) for words in how)
    return [f"[ -e {sh(names[0])} ] || {{ {fetch}; }}"]


def _building(plan: Plan, build: Build, local: str | None) -> list[str]:
    """Commands that fetch the program's source, hold it against its pin, and build it in the image, on one process."""
    image = sh(local) if local else f'"$folder"/{sh(engine_for(plan.engine, None).image_names(plan.stack.name, "")[0])}'
    alone = msgspec.structs.replace(plan, job=msgspec.structs.replace(plan.job, nodes=1, ranks_per_node=1))
    run = msgspec.structs.replace(plan.stack.run, mpi=False)
    alone = msgspec.structs.replace(alone, stack=msgspec.structs.replace(plan.stack, run=run))
    if build.commit is not None:
        source = GitTree(build.src, build.commit).online_commands(BLOCK)
        inside = f"cd {BLOCK} && "
    else:
        archive, mirror = Archive(build.src, str(build.sha256)), plan.site.network.mirrors.files
        file = archive.name
        url = archive.fetched_from(mirror)
        source = [
            command("curl", "-fsSL", "--proto", "=https", "--retry", "3", "-o", file, url),
            f"{command('echo', f'{build.sha256}  {file}')} | sha256sum -c -",
        ]
        inside = ""
        if _ARCHIVE.search(file):
            unpack = command("tar", "-xf", file, "-C", BLOCK, "--strip-components=1")
            source.append(f"{command('mkdir', BLOCK)} && {unpack}")
            inside = f"cd {BLOCK} && "
    words = container_part(start(alone, {}), "build.sh")
    commands = [f'"${{container[@]}}" /bin/sh -ec {sh(inside + line)}' for line in command_lines(build)]
    return [*source, f"image={image}", str(words).rstrip(), *commands]


def _block(site: Site, request: OptimiseRequest, ranks: bool) -> PlannedBlock:
    """The image, for ranks as what provides the ranks' MPI: the one that the request names, else of the host's kind."""
    wished, host = request.mpi.flavour, site.mpi
    flavour = wished or (host.flavour if host is not None else "")
    abi = abi_of(wished) if wished else host.abi if host is not None else ""
    image = PlannedBlock(name="image", version=str(request.container))
    mpi = PlannedMpi(abi=abi, flavour=flavour)
    return msgspec.structs.replace(image, provides=["mpi"], mpi=mpi) if ranks else image


def _findings(plan: Plan, request: OptimiseRequest) -> list[Finding]:
    reference = str(request.container)
    told = [f"{reference} is started as it is: {UNKNOWN}"]
    if not is_file(reference) and "@sha256:" not in reference:
        told.append(f"what {reference} is may change: the name is not a digest (NAME@sha256:…)")
    if (mpi := plan.blocks[0].mpi) is not None:
        said = mpi.flavour
        told.append(
            f"whether its MPI and the launcher understand each other cannot be known; {said or 'none'} is assumed"
        )
    if plan.job.gpus_per_node:
        told.append("whether its CUDA or ROCm works with the driver of the nodes cannot be known")
    return [Finding(name="container", severity="warning", message=text) for text in told]
