"""Dockerfile, and the script that builds it with docker, podman or buildah."""

from __future__ import annotations

from types import MappingProxyType

import msgspec

from hpcgen.blocks.steps import Image, Run
from hpcgen.engines import builder_of, engine_for
from hpcgen.engines.steps import HPCGEN, TEST_STEP
from hpcgen.model.bundle_paths import MOUNT
from hpcgen.model.image_paths import KIT, NOTEST
from hpcgen.model.plan import Plan
from hpcgen.model.recipe_facts import StepLabel
from hpcgen.platform.mirrors import image_mirror, qualified
from hpcgen.recipe.formats import Format, kit_files
from hpcgen.recipe.formats.bundled import (
    base_name,
    base_names,
    bundled_base,
    context,
    script,
    script_part,
)
from hpcgen.recipe.formats.header import commented, header
from hpcgen.recipe.formats.hpccm_session import Primitive, Written, emit, primitive
from hpcgen.recipe.formats.layout import FILES, copies, grouped, of_step, wrapped
from hpcgen.recipe.selftest import BUILD_TEST
from hpcgen.recipe.stages import Assembly, Stage
from hpcgen.support.quoting import docker_arg, docker_labels, docker_variables, sh
from hpcgen.support.traced import Subject, together, traced
from hpcgen.support.trees import FOLDER, LIST

_CACHES = {"pip": "/root/.cache/pip"}
CERTIFICATE_FOLDER = "certificates"
"""Folder of the build context that the build script fills with the site's certificates."""


class Dialect(msgspec.Struct, frozen=True):
    """What a reader of Dockerfiles can do.

    ``mounts``: ``RUN --mount``; ``digest``: ``FROM name:tag@sha256:…``; ``entrypoint``: its images have one.
    """

    mounts: bool
    digest: bool
    entrypoint: bool


BUILDKIT = Dialect(mounts=True, digest=True, entrypoint=True)
CH_IMAGE = Dialect(mounts=False, digest=False, entrypoint=False)


def instructions(plan: Plan, assembly: Assembly, dialect: Dialect) -> Written:
    """The instructions of both stages in one dialect."""
    earlier = [_stage(plan, stage, dialect) for stage in assembly.stages[:-1]]
    final = [*_stage(plan, assembly.final, dialect), *_copied(assembly.final), *_test()]
    final.append(_raw("\n".join(_kit_lines(plan, assembly)), Subject("kit")))
    if assembly.final.made_by_others and dialect.entrypoint:
        told = "# It starts what it is told, not what the base image starts.\nENTRYPOINT []"
        final.append(_raw(told, Subject("base")))
    final.append(_raw(docker_labels(assembly.labels)))
    return emit([*earlier, final], "docker")


def _raw(text: str, of: Subject | None = None) -> Primitive:
    return primitive("raw", of=of, docker=text)


def _copied(stage: Stage) -> list[Primitive]:
    """The stack's own files, after all that takes long: a change of them runs none of it again."""
    if not stage.copied:
        return []
    return [_raw(together([f"# {HPCGEN}: files of the stack, as {LIST} says", *_copy_lines(stage)], "\n"))]


def _copy_lines(stage: Stage) -> list[str]:
    ends = {each.to: "" if each.single else "/" for each in stage.copied}
    return [
        traced(f"COPY {FOLDER}{target}{end} {target}{end}", Subject("copied", target)) for target, end in ends.items()
    ]


def _test() -> list[Primitive]:
    """The self-test as a step: a build that fails it makes no image, as with %test of a definition file."""
    label = f"# {HPCGEN}: {TEST_STEP}, unless --build-arg {NOTEST}=1"
    told = StepLabel(block=HPCGEN, about=TEST_STEP)
    of = Subject("self-test")
    return [
        primitive("raw", joined=True, of=of, docker=f"{label}\n{docker_arg(NOTEST, '0')}"),
        primitive("shell", told, of=of, commands=[BUILD_TEST]),
    ]


def _kit_lines(plan: Plan, assembly: Assembly) -> list[str]:
    lines = ["# hpcgen: the kit, by which the image says what it is", f"COPY {' '.join(kit_files(plan))} {KIT}/"]
    return [*lines, f"COPY {FILES}/ {KIT}/{FILES}/"] if any("/" in path for path in assembly.files) else lines


def _stage(plan: Plan, stage: Stage, dialect: Dialect) -> list[Primitive]:
    builder = "builder" if stage.name == "builder" else ""
    # hpccm guesses the distribution from the image's name; nothing that is printed here depends on it.
    result = [
        primitive(
            "baseimage",
            of=Subject("base"),
            image=base_reference(plan, stage.image, dialect),
            _as=builder,
            _distro="ubuntu22",
            _arch="x86_64",
        )
    ]
    if stage.arguments:
        lines = [traced(docker_arg(name, value), Subject("argument", name)) for name, value in stage.arguments.items()]
        result.append(_raw(together(lines, "\n")))
    if stage.environment:
        result.append(_raw(docker_variables(stage.environment)))
    if stage.host_files:
        lines = [
            traced(f"COPY {CERTIFICATE_FOLDER}/{base_name(f.target)} {f.target}", Subject("certificate", f.target))
            for f in stage.host_files
        ]
        result.append(_raw(together(lines, "\n")))
    if stage.copies:
        lines = [traced(f"COPY --from=builder {path} {path}", Subject("kept", path)) for path in stage.copies]
        result.append(_raw(together(lines, "\n")))
    for label, about, steps in grouped(stage.steps):
        result.append(primitive("comment", joined=True, of=of_step(label, steps[0]), text=about, reformat=False))
        for step in steps:
            if step.finds and stage.copied:
                result.append(primitive("raw", joined=True, docker=together(_copy_lines(stage), "\n")))
            result += _step(plan, label, step, dialect, last=step is steps[-1])
    return result


def _step(plan: Plan, label: str, step: Run, dialect: Dialect, last: bool) -> list[Primitive]:
    """The files that a step finds, and its ``RUN``; an empty line comes after a block's last one."""
    result, of = [], of_step(label, step)
    if step.files:
        joined = bool(step.commands) or not last
        result.append(primitive("raw", joined=joined, of=of, docker="\n".join(copies(step.files))))
    if step.commands:
        words = " ".join(_run_words(plan, step)) if dialect.mounts else ""
        commands = [wrapped(command) for command in step.commands]
        told = StepLabel(block=label, about=step.about)
        arguments = f"{words} \\\n   " if words else ""
        result.append(primitive("shell", told, joined=not last, of=of, commands=commands, _arguments=arguments))
    return result


def _run_words(plan: Plan, step: Run) -> list[str]:
    if plan.supply == "bundle":
        return [f"--mount=type=bind,from=bundle,target={MOUNT}"]
    return [f"--mount=type=cache,target={_CACHES[name]}" for name in step.caches]


def base_reference(plan: Plan, image: Image, dialect: Dialect) -> str:
    """How ``FROM`` names a base image: in the bundle, at a mirror of the site or in its registry."""
    if plan.extends is not None:
        return image.name
    if plan.supply == "bundle":
        return bundled_base(image)
    mirror = image_mirror(plan.site.network.mirrors, image.name, image.pulled)
    if mirror is not None:
        local = mirror.docker if dialect.mounts else mirror.charliecloud
        if local is not None:
            pinned = image.digest and dialect.digest and not local.startswith("localhost/")
            return f"{local}@{image.digest}" if pinned and "@" not in local else local
    name = qualified(image.pulled)
    return f"{name}@{image.digest}" if image.digest and dialect.digest else name


def _date_lines(epoch: str | None) -> str:
    """Lines that give the image and its files the date of the lock."""
    if epoch is None:
        return ""
    return f"""# The same image again has the same dates: those of the lock.
case $(basename "$engine") in
    docker) options+=(--build-arg SOURCE_DATE_EPOCH={epoch}) ;;
    *) options+=(--timestamp {epoch}) ;;
esac
"""


class DockerFormat(Format):
    """A Dockerfile for BuildKit, buildah and podman."""

    name = "docker"
    recipe_file = engine_file = "Dockerfile"
    first_kit_folder = "kit"
    certificate_folder = CERTIFICATE_FOLDER
    # Hosted Ubuntu runners have buildah and podman.
    setup = MappingProxyType({"debian:12": "apt-get -q update && apt-get -qy --no-install-recommends install buildah"})
    # Source: buildah-build(1), storage.conf(5).
    unprivileged = MappingProxyType({"BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs"})

    def recipe(self, plan: Plan, assembly: Assembly) -> Written:
        """The Dockerfile for BuildKit, buildah and podman."""
        written = instructions(plan, assembly, BUILDKIT)
        notes = []
        if assembly.builder.host_files:
            notes.append(f"build.sh puts the site's certificates into {CERTIFICATE_FOLDER}/ beside the kit's files")
        if plan.supply == "bundle":
            notes.append("the bundle is a build context of its own, called bundle; no step has a network")
        top = commented([*header(plan), *assembly.base_notes, *notes])
        # The line asks a registry for its frontend, which a build without a network cannot.
        syntax = "# syntax=docker/dockerfile:1\n" if plan.supply == "network" else ""
        text = together([syntax, traced(top, Subject("header")), "\n\n", written.text, "\n"])
        return Written(text, written.steps)

    def build_script(self, plan: Plan, assembly: Assembly) -> str:
        """build.sh for the engines that read Dockerfiles."""
        about = (
            "Builds the Dockerfile beside this script with docker (BuildKit), podman or buildah.\n"
            "HPCGEN_ENGINE chooses the engine, HPCGEN_BUILD_OPTIONS are further words for its build command."
        )
        return script(
            plan,
            "build_docker.sh",
            "tag",
            about,
            context=context(plan, assembly),
            bases=script_part(plan, "bundle_docker.sh", bases=base_names(assembly)),
            image=sh(f"{plan.stack.name}:{plan.site.name}"),
            engine=sh(builder_of(plan.engine).builder_name()),
            after=engine_for(plan.engine).after_build(plan.stack.name),
            date=_date_lines(assembly.final.arguments.get("SOURCE_DATE_EPOCH")),
        )
