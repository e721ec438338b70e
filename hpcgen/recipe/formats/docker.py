"""Dockerfile, and the script that builds it with docker, podman or buildah."""

from __future__ import annotations

import msgspec

from hpcgen.blocks.steps import Run
from hpcgen.engines import builder_of, engine_for
from hpcgen.model.bundle_paths import MOUNT
from hpcgen.model.image_paths import KIT
from hpcgen.model.plan import Plan
from hpcgen.model.recipe_facts import StepLabel
from hpcgen.platform.mirrors import image_mirror, split_image
from hpcgen.recipe.assemble import Assembly, Stage
from hpcgen.recipe.formats import Format, kit_files
from hpcgen.recipe.formats.bundled import base_names, bundled_base, script_part, template, usage
from hpcgen.recipe.formats.header import commented, header
from hpcgen.recipe.formats.hpccm_session import Primitive, Written, emit, primitive
from hpcgen.support.quoting import docker_arg, docker_env, docker_label, sh

_CACHES = {"pip": "/root/.cache/pip"}
CERTIFICATE_FOLDER = "certificates"
"""Folder of the build context that the build script fills with the site's certificates."""
KIT_FOLDER = "kit"
"""Folder of the build context that the build script fills with the kit's files."""


class Dialect(msgspec.Struct, frozen=True):
    """What a reader of Dockerfiles can do.

    ``mounts``: ``RUN --mount``; ``digest``: ``FROM name:tag@sha256:…``.
    """

    mounts: bool
    digest: bool


BUILDKIT = Dialect(mounts=True, digest=True)
CH_IMAGE = Dialect(mounts=False, digest=False)


def qualified(image: str) -> str:
    """An image name with its registry: buildah and podman would ask which one is meant."""
    registry, path = split_image(image)
    return f"{registry or 'docker.io'}/{path}"


def dockerfile(plan: Plan, assembly: Assembly) -> Written:
    """The Dockerfile for BuildKit, buildah and podman."""
    written = instructions(plan, assembly, BUILDKIT)
    held = f"the kit's files in {KIT_FOLDER}/"
    if assembly.builder.host_files:
        held += f" and the site's certificates in {CERTIFICATE_FOLDER}/"
    notes = ["", f"The build context holds {held} (build.sh puts them there)."]
    if plan.supply == "bundle":
        notes.append("The bundle is a build context of its own, called bundle; no step has a network.")
    top = commented([*header(plan, "Dockerfile"), *notes])
    # The line asks a registry for its frontend, which a build without a network cannot.
    syntax = "# syntax=docker/dockerfile:1\n" if plan.supply == "network" else ""
    return Written(f"{syntax}{top}\n\n{written.text}\n", written.steps)


def instructions(plan: Plan, assembly: Assembly, dialect: Dialect) -> Written:
    """The instructions of both stages in one dialect."""
    builder = _stage(plan, assembly.builder, dialect)
    final = _stage(plan, assembly.final, dialect)
    final.append(_raw(f"COPY {KIT_FOLDER}/ {KIT}/"))
    labels = "\n".join(docker_label(key, value) for key, value in assembly.labels.items())
    final.append(_raw(labels))
    return emit([builder, final], "docker")


def _raw(text: str) -> Primitive:
    return primitive("raw", docker=text)


def _stage(plan: Plan, stage: Stage, dialect: Dialect) -> list[Primitive]:
    builder = "builder" if stage.name == "builder" else ""
    # hpccm guesses the distribution from the image's name; nothing that is printed here depends on it.
    result = [
        primitive("baseimage", image=_from(plan, stage, dialect), _as=builder, _distro="ubuntu22", _arch="x86_64")
    ]
    if stage.arguments:
        lines = [docker_arg(name, value) for name, value in stage.arguments.items()]
        result.append(_raw("\n".join(lines)))
    if stage.environment:
        result.append(_raw("\n".join(docker_env(name, value) for name, value in stage.environment.items())))
    if stage.host_files:
        lines = [f"COPY {CERTIFICATE_FOLDER}/{base_name(f.target)} {f.target}" for f in stage.host_files]
        result.append(_raw("\n".join(lines)))
    if stage.copies:
        result.append(_raw("\n".join(f"COPY --from=builder {path} {path}" for path in stage.copies)))
    for label, step in stage.steps:
        result.append(primitive("comment", text=f"{label}: {step.about}", reformat=False))
        words = " ".join(_run_words(plan, step)) if dialect.mounts else ""
        told = StepLabel(block=label, about=step.about)
        result.append(primitive("shell", told, commands=step.commands, _arguments=words))
    return result


def _run_words(plan: Plan, step: Run) -> list[str]:
    if plan.supply == "bundle":
        return [f"--mount=type=bind,from=bundle,target={MOUNT}"]
    return [f"--mount=type=cache,target={_CACHES[name]}" for name in step.caches]


def _from(plan: Plan, stage: Stage, dialect: Dialect) -> str:
    image = stage.image
    if plan.supply == "bundle":
        return bundled_base(image)
    mirror = image_mirror(plan.site.network.mirrors, image.name)
    if mirror is not None:
        local = mirror.docker if dialect.mounts else mirror.charliecloud
        if local is not None:
            pinned = image.digest and dialect.digest and not local.startswith("localhost/")
            return f"{local}@{image.digest}" if pinned and "@" not in local else local
    name = qualified(image.name)
    return f"{name}@{image.digest}" if image.digest and dialect.digest else name


def base_name(path: str) -> str:
    """The last part of a path."""
    return path.rsplit("/", 1)[1]


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


def build_script(plan: Plan, assembly: Assembly) -> str:
    """build.sh for the engines that read Dockerfiles."""
    return template("build_docker.sh").fill(
        header=commented(header(plan, "Build script")),
        usage=usage(plan, "TAG"),
        start=script_part(plan, "bundle.sh"),
        bases=script_part(plan, "bundle_docker.sh", bases=base_names(assembly)),
        image=sh(f"{plan.stack.name}:{plan.site.name}"),
        kit_files=" ".join(kit_files(plan)),
        engine=sh(builder_of(plan.engine).builder_name()),
        after=engine_for(plan.engine).after_build(plan.stack.name),
        date=_date_lines(assembly.final.arguments.get("SOURCE_DATE_EPOCH")),
        certificates=" ".join(sh(f.source) for f in assembly.builder.host_files),
        certificate_names=" ".join(sh(base_name(f.target)) for f in assembly.builder.host_files),
    )


class DockerFormat(Format):
    """A Dockerfile for BuildKit, buildah and podman."""

    name = "docker"
    recipe_file = engine_file = "Dockerfile"
    kit_folder = KIT_FOLDER
    certificate_folder = CERTIFICATE_FOLDER

    def recipe(self, plan: Plan, assembly: Assembly) -> Written:
        """The Dockerfile."""
        return dockerfile(plan, assembly)

    def build_script(self, plan: Plan, assembly: Assembly) -> str:
        """For docker, podman and buildah."""
        return build_script(plan, assembly)
