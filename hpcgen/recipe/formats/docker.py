"""Dockerfile, and the script that builds it with docker, podman or buildah."""

from __future__ import annotations

from types import MappingProxyType

import msgspec

from hpcgen.backends.engines import builder_of, engine_for
from hpcgen.backends.engines.steps import HPCGEN, TEST_STEP
from hpcgen.backends.hardware.mirrors import image_mirror, qualified
from hpcgen.blocks.steps import ArchiveFile, Image, Run, TextFile
from hpcgen.core.model.image_paths import KIT, MOUNT, NOTEST
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.recipe_facts import StepLabel
from hpcgen.core.support.hashing import FOLDER, LIST
from hpcgen.core.support.quoting import docker_arg, docker_labels, docker_variables, sh
from hpcgen.core.support.traced import Subject, together, traced
from hpcgen.recipe.formats import Format, kit_files
from hpcgen.recipe.formats.base import FILES, RunLayer, commented, copies, header, of_step, sections, wrapped
from hpcgen.recipe.formats.bundled import (
    base_name,
    base_names,
    bundled_base,
    context,
    script,
    script_part,
)
from hpcgen.recipe.formats.hpccm_session import Primitive, Written, emit, primitive
from hpcgen.recipe.selftest import BUILD_TEST
from hpcgen.recipe.stages import Assembly, Stage

_CACHES = {"pip": "/root/.cache/pip"}
CERTIFICATE_FOLDER = "certificates"
"""Folder of the build context that the build script fills with the site's certificates."""


class Dialect(msgspec.Struct, frozen=True):
    """The features of a reader of Dockerfiles.

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
    final = [*_stage(plan, assembly.final, dialect), *_kit_folder(assembly), *_test_argument()]
    final += [*_copied(assembly.final), *_test()]
    told = "# hpcgen: the kit, which describes the image"
    final.append(_raw(f"{told}\nCOPY {' '.join(kit_files(plan))} {KIT}/", Subject("kit")))
    if assembly.final.made_by_others and dialect.entrypoint:
        told = "# It starts the command it is given, not the base image's.\nENTRYPOINT []"
        final.append(_raw(told, Subject("base")))
    final.append(_raw(docker_labels(assembly.labels)))
    return emit([*earlier, final], "docker")


def _raw(text: str, of: Subject | None = None) -> Primitive:
    return primitive("raw", of=of, docker=text)


def _copied(stage: Stage) -> list[Primitive]:
    """The stack's own code and files, after all else, so that a change of them repeats little."""
    built = _kept(stage.own)
    if not stage.copied:
        return built
    return [*built, _raw(together([f"# {HPCGEN}: files of the stack, as {LIST} says", *_copy_lines(stage)], "\n"))]


def _kept(paths: list[str]) -> list[Primitive]:
    lines = [traced(f"COPY --from=builder {path} {path}", Subject("kept", path)) for path in paths]
    return [_raw(together(lines, "\n"))] if lines else []


def _copy_lines(stage: Stage) -> list[str]:
    ends = {each.to: "" if each.single else "/" for each in stage.copied}
    return [
        traced(f"COPY {FOLDER}{target}{end} {target}{end}", Subject("copied", target)) for target, end in ends.items()
    ]


def _test_argument() -> list[Primitive]:
    label = f"# {HPCGEN}: --build-arg {NOTEST}=1 leaves the self-test out"
    return [_raw(f"{label}\n{docker_arg(NOTEST, '0')}", Subject("self-test"))]


def _test() -> list[Primitive]:
    """The self-test as a step: a build that fails it makes no image, as with %test of a definition file."""
    told = StepLabel(block=HPCGEN, about=TEST_STEP)
    of = Subject("self-test")
    label = primitive("comment", joined=True, of=of, text=f"{HPCGEN}: {TEST_STEP}", reformat=False)
    return [label, primitive("shell", told, of=of, commands=[BUILD_TEST])]


def _kit_folder(assembly: Assembly) -> list[Primitive]:
    """The files of the kit that steps used, which change no more often than these."""
    if not any("/" in path for path in assembly.files):
        return []
    return [_raw(f"# {HPCGEN}: the kit's files of the steps above\nCOPY {FILES}/ {KIT}/{FILES}/", Subject("kit"))]


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
    if plan.base is not None and dialect.entrypoint:
        result.append(_raw("# The base image may have another user.\nUSER 0", Subject("base")))
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
    result += _steps(plan, stage, stage.steps[: stage.before_copies], dialect)
    result += _kept([path for path in stage.copies if path not in stage.own])
    return result + _steps(plan, stage, stage.steps[stage.before_copies :], dialect)


def _steps(plan: Plan, stage: Stage, steps: list[tuple[str, Run]], dialect: Dialect) -> list[Primitive]:
    result = []
    for about, found in sections(steps):
        of = of_step(*found[0].steps[0])
        result.append(primitive("comment", joined=True, of=of, text=about, reformat=False))
        for layer in found:
            finds = any(step.finds for _, step in layer.steps)
            result += _layer(plan, layer, dialect, _copy_lines(stage) if finds else [], last=layer is found[-1])
    return result


def _layer(plan: Plan, layer: RunLayer, dialect: Dialect, code: list[str], last: bool) -> list[Primitive]:
    """The files that its steps find, the stack's ``code`` after them, and its ``RUN``.

    ``last``: an empty line comes after it.
    """
    result = []
    commands = [traced(wrapped(line), of_step(label, step)) for label, step in layer.steps for line in step.commands]
    files: list[tuple[TextFile | ArchiveFile, Subject]] = []
    for label, step in layer.steps:
        files += [(file, of_step(label, step)) for file in step.files]
        files += [(file, of_step(label, step)) for file in step.archives]
    if files:
        lines = "\n".join(copies(file for file, _ in files))
        result.append(primitive("raw", joined=bool(commands) or not last, of=files[0][1], docker=lines))
    if code:
        result.append(primitive("raw", joined=True, docker=together(code, "\n")))
    if commands:
        words = _run_words(plan, [step for _, step in layer.steps]) if dialect.mounts else []
        start = traced(" ".join(["RUN", *words, *(["\\\n    "] if words else [""])]), of_step(*layer.steps[0]))
        text = together([start, together(commands, " && \\\n    ")])
        told = StepLabel(block=layer.label, about=layer.about)
        result.append(primitive("raw", told, joined=not last, docker=text))
    return result


def _run_words(plan: Plan, steps: list[Run]) -> list[str]:
    if plan.supply == "bundle":
        return [f"--mount=type=bind,from=bundle,target={MOUNT}"]
    caches = dict.fromkeys(name for step in steps for name in step.caches)
    return [f"--mount=type=cache,target={_CACHES[name]}" for name in caches]


def base_reference(plan: Plan, image: Image, dialect: Dialect) -> str:
    """How ``FROM`` names a base image: in the bundle, at a mirror of the site or in its registry."""
    if plan.extends is not None:
        return image.name
    if plan.supply == "bundle":
        return bundled_base(image)
    if plan.base is not None and plan.base.kind:
        return plan.base.image
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
    setup = MappingProxyType(
        {"debian:12": "apt-get -q update && apt-get -qy --no-install-recommends install buildah", "ubuntu-24.04": ""}
    )
    # Source: github.com/actions/runner-images, images/ubuntu/Ubuntu2404-Readme.md, "Tools".
    ready_engines = MappingProxyType({"debian:12": ("buildah",), "ubuntu-24.04": ("docker", "podman", "buildah")})
    # Source: buildah-build(1), storage.conf(5).
    unprivileged = MappingProxyType({"BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs"})

    def recipe(self, plan: Plan, assembly: Assembly) -> Written:
        """The Dockerfile for BuildKit, buildah and podman."""
        written = instructions(plan, assembly, BUILDKIT)
        notes = []
        if assembly.builder.host_files:
            notes.append(f"build.sh puts the site's certificates into {CERTIFICATE_FOLDER}/ next to the kit's files")
        if plan.supply == "bundle":
            notes.append("the bundle is the build context `bundle`; no step has a network")
        top = commented([*header(plan), *assembly.base_notes, *notes])
        # The line asks a registry for its frontend, which a build without a network cannot.
        syntax = "# syntax=docker/dockerfile:1\n" if plan.supply == "network" else ""
        text = together([syntax, traced(top, Subject("header")), "\n\n", written.text, "\n"])
        return Written(text, written.steps)

    def build_script(self, plan: Plan, assembly: Assembly) -> str:
        """build.sh for the engines that read Dockerfiles."""
        about = (
            "Builds the Dockerfile next to this script with docker (BuildKit), podman or buildah.\n"
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
