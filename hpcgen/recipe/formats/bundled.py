"""Parts of recipes and build scripts for builds from a bundle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hpcgen.backends.engines import builder_of
from hpcgen.blocks.steps import Image, Run, command, run
from hpcgen.core.model.image_paths import (
    ACCEPT_LICENCES,
    EMULATE,
    EVERY_IMAGE_HAS,
    IMAGES,
    MOUNT,
    NOTEST,
    STORED_BASES,
    image_name,
)
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.hashing import FOLDER, LIST
from hpcgen.core.support.quoting import line, plain, sh
from hpcgen.core.support.templates import Template
from hpcgen.recipe.formats import format_for, kit_files
from hpcgen.recipe.formats.base import commented, header, wrapped
from hpcgen.recipe.stages import Assembly

BUNDLE_LINK = "bundle"
"""What the bundle is called in the folder that a definition file is read in."""

_SHORT = 12


def bundled_base(image: Image) -> str:
    """The name that a base image has in an engine's store once it was loaded from the bundle.

    The digest is in the name, so that an older one of the same tag is never taken for it.
    """
    return f"{STORED_BASES}{image_name(image.name)}:{image.digest.removeprefix('sha256:')[:_SHORT]}"


def base_names(assembly: Assembly) -> str:
    """For a shell's array: name in the store and name in the bundle's OCI layout, of each base image."""
    images = {bundled_base(stage.image): image_name(stage.image.name) for stage in (assembly.builder, assembly.final)}
    return " ".join(f"{sh(stored)} {sh(held)}" for stored, held in sorted(images.items()))


def definition_base(image: Image) -> tuple[str, str]:
    """Where a definition file finds a base image, and by which bootstrap agent."""
    # Apptainer 1.4.5 takes the name after a colon for a part of the folder's name; the digest it understands.
    return f"{BUNDLE_LINK}/{IMAGES}@{image.digest}", "oci"


def template(name: str) -> Template:
    """A template of the build scripts."""
    return Template(Path(__file__).with_name("templates") / name)


def script(
    plan: Plan, name: str, variable: str, about: str, notes: Sequence[str] = (), **values: str | Sequence[str]
) -> str:
    """A build script: the template of that name, with what all of them have.

    variable, about: as for :func:`arguments`.
    notes: more lines for its top.
    values: what this template has beside.
    """
    top = commented([*header(plan, "build script of "), *notes])
    common = {"header": top, "arguments": arguments(plan, variable, about), "bundle": script_part(plan, "bundle.sh")}
    return template(name).fill(**common, **values)


def script_part(plan: Plan, name: str, /, **values: str) -> str:
    """Additional lines of a build script for a bundle, or none where the build has a network."""
    return template(name).fill(**values) if plan.supply == "bundle" else ""


def arguments(plan: Plan, name: str, about: str) -> str:
    """Lines by which a build script reads its words, into the variable ``name``; ``--help`` tells them.

    ``about``: what the script does, for its help.
    """
    bundled, architecture = plan.supply == "bundle", plan.site.system.architecture
    common = template("common.sh")
    options = [part for part, has in (("option", bundled), ("licence_option", plan.licences)) if has]
    usage = [word for word, has in (("--bundle DIR", bundled), ("[--accept-licence NAME]", plan.licences)) if has]
    return common.fill(
        "arguments",
        usage=" ".join(["build.sh", *usage, f"[--notest] [{name.upper()}]"]),
        about=[plain(text, "a line of help") for text in about.splitlines()],
        licences=_licence_help(plan),
        bundle="bundle=${HPCGEN_BUNDLE:-}" if bundled else "",
        variable=NOTEST,
        notest=line(format_for(plan.format).notest),
        machines="aarch64 | arm64" if architecture == "aarch64" else architecture,
        architecture=architecture,
        emulate=EMULATE,
        platform=line(builder_of(plan.engine).platform_words(architecture)),
        name=name,
        options=[line for part in options for line in common.fill(part).splitlines()],
        accepted=f"accepted={_accepted_before(plan)}${{{ACCEPT_LICENCES}:-}}" if plan.licences else "",
        licences_asked=_licences_asked(plan),
    )


def _accepted_before(plan: Plan) -> str:
    """The licences that were accepted when the plan was locked or built, for a list with commas."""
    return "".join(f"{each.name}," for each in plan.licences if each.accepted)


def _licence_help(plan: Plan) -> list[str]:
    """The licences in the help of a build script."""
    if not plan.licences:
        return []
    listed = [f"  {each.name}: {plain(each.title, 'a line of help')}, {each.url}" for each in plan.licences]
    how = "The user accepts them: by --accept-licence NAME (all for every one), by"
    return [
        "The build installs software under these licences.",
        f"{how} {ACCEPT_LICENCES}=NAME,NAME, or when asked:",
        *listed,
    ]


def _licences_asked(plan: Plan) -> str:
    """Lines by which a build script asks for what ``hpcgen build`` asks for."""
    if not plan.licences:
        return ""
    calls = [f"accept_licence {sh(each.name)} {sh(each.title)} {sh(each.url)}" for each in plan.licences]
    return template("common.sh").fill("licences", variable=ACCEPT_LICENCES, licences=calls)


def context(plan: Plan, assembly: Assembly, certified: bool = True) -> str:
    """Lines by which a build script fills the folder ``$context`` with the kit and, if ``certified``, certificates."""
    names = " ".join(sorted({*kit_files(plan), *assembly.files}))
    listed = [line.removesuffix(" \\") for line in wrapped(names, "").splitlines()]
    copied = ""
    if certified and assembly.builder.host_files:
        targets = " ".join(sh(base_name(file.target)) for file in assembly.builder.host_files)
        copied = certificates(assembly) + template("common.sh").fill("copied", names=targets)
    programs = [path for path, file in sorted(assembly.files.items()) if file.executable and not path.endswith(".sh")]
    executables = "".join(f" | {sh(path)}" for path in programs)
    return template("common.sh").fill(
        "context",
        kit_files=listed,
        executables=executables,
        stack_files=stack_files(plan, put=True),
        certificates=copied,
    )


def stack_files(plan: Plan, put: bool) -> list[str]:
    """Lines by which a build script checks the stack's own files; none where there are none.

    ``put``: they are put into the folder ``$context``; else the recipe takes the kit's folder of them, as a whole.
    """
    if not plan.copied:
        return []
    common, names = template("common.sh"), {"folder": FOLDER, "list": LIST}
    no_others = [] if put else common.fill("no_others", **names).splitlines()
    install = ['install -D -m "${line:65:3}" "$kit/$file" "$context/$file"'] if put else []
    return common.fill("stack_files", install=install, no_others=no_others, **names).splitlines()


def certificates(assembly: Assembly) -> str:
    """Lines that check that the site's certificates exist; none where it has none."""
    sources = " ".join(sh(file.source) for file in assembly.builder.host_files)
    return template("common.sh").fill("certificates", files=sources) if sources else ""


def exported_date(assembly: Assembly) -> str:
    """Lines by which a build script of a lock has image files made with the lock's date; none without a lock."""
    epoch = assembly.final.arguments.get("SOURCE_DATE_EPOCH")
    return (
        f"# The same image again has the same dates: those of the lock.\nexport SOURCE_DATE_EPOCH={epoch}\n"
        if epoch
        else ""
    )


def base_name(path: str) -> str:
    """The last part of a path."""
    return path.rsplit("/", 1)[1]


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
