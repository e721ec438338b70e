"""What recipes and build scripts say where the build takes everything from a bundle."""

from __future__ import annotations

from pathlib import Path

from hpcgen.blocks.steps import Image, Run, command, run
from hpcgen.model.bundle_paths import EVERY_IMAGE_HAS, IMAGES, MOUNT, image_name
from hpcgen.model.plan import Plan
from hpcgen.recipe.assemble import Assembly
from hpcgen.support.quoting import sh
from hpcgen.support.templates import Template

BUNDLE_LINK = "bundle"
"""What the bundle is called in the folder that a definition file is read in."""

_SHORT = 12


def bundled_base(image: Image) -> str:
    """The name that a base image has in an engine's store once it was loaded from the bundle.

    The digest is in the name, so that an older one of the same tag is never taken for it.
    """
    return f"localhost/hpcgen-base/{image_name(image.name)}:{image.digest.removeprefix('sha256:')[:_SHORT]}"


def base_names(assembly: Assembly) -> str:
    """For a shell's array: name in the store and name in the bundle's OCI layout, of each base image."""
    images = {bundled_base(stage.image): image_name(stage.image.name) for stage in (assembly.builder, assembly.final)}
    return " ".join(f"{sh(stored)} {sh(held)}" for stored, held in sorted(images.items()))


def definition_base(image: Image) -> tuple[str, str]:
    """Where a definition file finds a base image, and by which bootstrap agent."""
    # Apptainer 1.4.5 takes the name after a colon for a part of the folder's name; the digest it understands.
    return f"{BUNDLE_LINK}/{IMAGES}@{image.digest}", "oci"


def usage(plan: Plan, output: str) -> str:
    """The words of the build script."""
    return f"build.sh --bundle DIR [{output}]" if plan.supply == "bundle" else f"build.sh [{output}]"


def template(name: str) -> Template:
    """A template of the build scripts."""
    return Template(Path(__file__).with_name("templates") / name)


def script_part(plan: Plan, name: str, /, **values: str) -> str:
    """Lines that a build script has beside the others, or none where the build has a network."""
    return template(name).fill(**values) if plan.supply == "bundle" else ""


def link_steps(plan: Plan) -> list[tuple[str, Run]]:
    """The first step of a definition file's stage: the bundle, where all steps look for it."""
    if plan.supply == "network":
        return []
    folder = MOUNT.rpartition("/")[0]
    make = run("the bundle", command("mkdir", "-p", folder), command("ln", "-sfn", EVERY_IMAGE_HAS, MOUNT))
    return [("hpcgen", make)]


def unlink_steps(plan: Plan) -> list[tuple[str, Run]]:
    """The last step, which leaves no trace of it."""
    return [("hpcgen", run("remove the bundle's link", command("rm", MOUNT)))] if plan.supply == "bundle" else []
