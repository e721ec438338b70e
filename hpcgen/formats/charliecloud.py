"""Charliecloud: one build script with the Dockerfile in it, in the dialect that ch-image 0.31 and 0.45 both read."""

from __future__ import annotations

from hpcgen.assemble import Assembly
from hpcgen.bundle_paths import MOUNT
from hpcgen.errors import InputError, Problem
from hpcgen.formats.bundled import base_names, script_part, usage
from hpcgen.formats.docker import CH_IMAGE, base_name, instructions
from hpcgen.formats.files import kit_files
from hpcgen.formats.header import commented, header
from hpcgen.formats.templates import fill
from hpcgen.model.plan import Plan
from hpcgen.text import sh

DELIMITER = "HPCGEN_DOCKERFILE"


def build_script(plan: Plan, assembly: Assembly) -> str:
    """build.sh: builds with ch-image, converts with ch-convert, prints the hash."""
    dockerfile = instructions(plan, assembly, CH_IMAGE)
    if DELIMITER in dockerfile.splitlines():
        raise InputError(Problem(f"a line of the Dockerfile is {DELIMITER}, which ends it in the build script"))
    return fill(
        "build_charliecloud.sh",
        header=commented(header(plan, "Build script")),
        usage=usage(plan, "OUTPUT"),
        where="without a network, from a bundle" if plan.supply == "bundle" else "on a machine that has a network",
        start=script_part(plan, "bundle.sh"),
        bases=script_part(plan, "bundle_charliecloud.sh", bases=base_names(assembly), mount=MOUNT),
        image=sh(f"{plan.stack.name}-{plan.site.name}"),
        output=sh(f"{plan.stack.name}.sqfs"),
        kit_files=" ".join(kit_files(plan)),
        certificates=" ".join(sh(f.source) for f in assembly.builder.host_files),
        certificate_names=" ".join(sh(base_name(f.target)) for f in assembly.builder.host_files),
        delimiter=DELIMITER,
        dockerfile=dockerfile,
    )
