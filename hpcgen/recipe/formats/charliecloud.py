"""Charliecloud: one build script with the Dockerfile in it, in the dialect that ch-image 0.31 and 0.45 both read."""

from __future__ import annotations

from types import MappingProxyType

import msgspec

from hpcgen.backends.engines.charliecloud import CHECK, TELL, base_script
from hpcgen.backends.engines.common import squashing_words
from hpcgen.backends.hardware.mirrors import names_image
from hpcgen.blocks.steps import Image, run
from hpcgen.core.errors import InputError
from hpcgen.core.model.image_paths import MOUNT
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.recipe_facts import PulledBase, StoredBase
from hpcgen.core.support.quoting import sh
from hpcgen.core.support.units import DAWN
from hpcgen.recipe.formats import Format
from hpcgen.recipe.formats.bundled import base_names, context, exported_date, script, script_part
from hpcgen.recipe.formats.docker import CH_IMAGE, base_reference, instructions
from hpcgen.recipe.formats.hpccm_session import Written
from hpcgen.recipe.stages import Assembly, Stage

DELIMITER = "HPCGEN_DOCKERFILE"
FAKEROOT = "fakeroot"
"""The package that ``ch-image build --force`` of 0.31 requires in every image where package tools run."""


ARGUMENTS = {"builder": "HPCGEN_BUILDER_BASE", "final": "HPCGEN_BASE"}
"""The build argument of each stage that says which base image it starts from: ch-image takes each for one stage."""


def _named_base(plan: Plan, stage: Stage) -> Stage:
    """Name the base in an instruction, where it is or may be imported.

    ch-image's cache knows an import by no more than that it was imported (build_cache.py of 0.31, import_id): it would
    take the steps of another base for those of this one. What a registry alone has by its digest is left as it is.
    """
    if not _may_be_imported(plan, stage.image):
        return stage
    local = plan.base is not None and bool(plan.base.kind)
    told = stage.image.digest if plan.supply == "bundle" or local else ""
    told = told or "pulled"
    return msgspec.structs.replace(stage, arguments={ARGUMENTS[stage.name]: told, **stage.arguments})


def _may_be_imported(plan: Plan, image: Image) -> bool:
    """Not of an image that is added to, for which there is no cache."""
    if plan.extends is not None:
        return False
    if plan.base is not None and plan.base.kind:
        return True
    named = names_image(plan.site.network.mirrors, image.name, "charliecloud")
    return plan.supply == "bundle" or not image.digest or bool(named)


def _with_fakeroot(stage: Stage) -> Stage:
    """Install what ch-image would install itself, where it sees no bundle, before its first step with package tools.

    It starts that by the words apt, apt-get and dpkg (fakeroot.py of 0.31); a program named with its folder is none.
    """
    tool = "/usr/bin/apt-get -o APT::Sandbox::User=root"
    install = f"DEBIAN_FRONTEND=noninteractive {tool} install -y --no-install-recommends {FAKEROOT}"
    step = ("charliecloud", run("required by ch-image --force", f"{tool} update", install))
    before, after = stage.steps[: stage.prepared], stage.steps[stage.prepared :]
    more = bool(stage.before_copies)
    return msgspec.structs.replace(stage, steps=[*before, step, *after], before_copies=stage.before_copies + more)


def _pulled(plan: Plan, assembly: Assembly) -> list[PulledBase]:
    """The base images with a digest that ch-image can pull: it takes none and checks none."""
    if plan.supply == "bundle":
        return []
    images = [stage.image for stage in (assembly.builder, assembly.final)]
    known = {base_reference(plan, each, CH_IMAGE): each.digest for each in images if each.digest and each.in_registry}
    return [PulledBase(name=name, digest=digest) for name, digest in sorted(known.items())]


def _stored(plan: Plan, assembly: Assembly) -> list[StoredBase]:
    """The base images that may have been imported under their names."""
    if plan.supply == "bundle":
        return []
    stages = [stage for stage in assembly.stages if _may_be_imported(plan, stage.image)]
    return [
        StoredBase(name=base_reference(plan, each.image, CH_IMAGE), argument=ARGUMENTS[each.name]) for each in stages
    ]


def _told_lines(bases: list[PulledBase], stored: list[StoredBase]) -> list[str]:
    """Lines that tell ch-image's cache what was imported."""
    words = [word for base in stored for word in (base.name, base.argument)]
    told = {base.name for base in stored}
    words += [word for base in bases if base.name not in told for word in (base.name, "")]
    call = f'read -r -a told <<< "$(base_words {" ".join(map(sh, words))})"'
    return ["\n" + base_script(TELL).removesuffix("\n"), call, 'options+=("${told[@]}")'] if words else []


def _check_lines(bases: list[PulledBase]) -> list[str]:
    """Lines that compare what was pulled with the digests."""
    calls = [f"check_bases {sh(base.name)} {sh(base.digest)}" for base in bases]
    return ["\n" + base_script(CHECK).removesuffix("\n"), *calls] if bases else []


class CharliecloudFormat(Format):
    """build.sh with a Dockerfile for ch-image in it."""

    name = "charliecloud"
    recipe_file = "build.sh"
    engine_file = "Dockerfile"
    packages = (FAKEROOT,)
    base_from_tar = True
    first_kit_folder = "kit"
    setup = MappingProxyType(
        {
            "debian:12": "apt-get -q update && apt-get -qy --no-install-recommends install charliecloud squashfs-tools",
            "ubuntu-24.04": "sudo sysctl -qw kernel.apparmor_restrict_unprivileged_userns=0 && sudo apt-get -q update "
            "&& sudo apt-get -qy install charliecloud squashfs-tools",
        }
    )

    def recipe(self, plan: Plan, assembly: Assembly) -> Written:
        """build.sh: builds with ch-image, converts with ch-convert, prints the hash."""
        stages = [assembly.builder, assembly.final]
        if plan.supply == "bundle" and assembly.manager == "apt":
            stages = [_with_fakeroot(stage) for stage in stages]
        builder, final = (_named_base(plan, stage) for stage in stages)
        assembly = msgspec.structs.replace(assembly, builder=builder, final=final)
        dockerfile = instructions(plan, assembly, CH_IMAGE)
        if DELIMITER in dockerfile.text.splitlines():
            raise InputError(
                f"a line of the Dockerfile is {DELIMITER}, which ends it in the build script",
                remedy="take that line out of the stack's texts",
            )
        where = "without a network, from a bundle" if plan.supply == "bundle" else "on a machine that has a network"
        about = (
            f"Builds with ch-image {where}, and converts with ch-convert.\n"
            "OUTPUT may end in .sqfs (squashfs) or .tar.gz, or be a folder; copy it to the system afterwards.\n"
            "HPCGEN_BUILD_OPTIONS are further words for ch-image build.\n"
            "The Dockerfile in this script is in the dialect that ch-image 0.31 and later read."
        )
        bases, stored = _pulled(plan, assembly), _stored(plan, assembly)
        text = script(
            plan,
            "build_charliecloud.sh",
            "output",
            about,
            assembly.base_notes,
            files=context(plan, assembly),
            bases=script_part(plan, "bundle_charliecloud.sh", bases=base_names(assembly), mount=MOUNT),
            image=sh(f"{plan.stack.name}-{plan.site.name}"),
            output=sh(f"{plan.stack.name}.sqfs"),
            delimiter=DELIMITER,
            dawn=str(DAWN),
            date=exported_date(assembly),
            squashing=" ".join(squashing_words(plan)),
            dockerfile=dockerfile.text,
            told=_told_lines(bases, stored),
            check=_check_lines(bases),
        )
        return Written(text, dockerfile.steps, DELIMITER, bases, stored)
