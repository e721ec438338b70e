"""Singularity and Apptainer definition file, and the script that builds it.

Two stages by name need Singularity 3.2. Before 3.5.3 ``%files from`` followed symbolic links, so what the final
stage keeps travels as one tar file. Source: Singularity's change log for 3.5.3.
"""

from __future__ import annotations

import re
from types import MappingProxyType

from hpcgen.backends.engines.common import SQUASHING, squashing_words
from hpcgen.backends.engines.steps import step_mark
from hpcgen.backends.hardware.mirrors import image_mirror
from hpcgen.blocks.steps import Run, command, run
from hpcgen.core.errors import PolicyError
from hpcgen.core.model.image_paths import EVERY_IMAGE_HAS, KIT
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.recipe_facts import KeptPart, StepLabel
from hpcgen.core.support.hashing import FOLDER
from hpcgen.core.support.quoting import plain, sh, sh_assign
from hpcgen.core.support.traced import Subject, together, traced
from hpcgen.recipe.artifacts import FOLDER as ARTIFACTS
from hpcgen.recipe.formats import Format, kit_files
from hpcgen.recipe.formats.base import FILES, commented, grouped, header, of_step, wrapped
from hpcgen.recipe.formats.bundled import (
    BUNDLE_LINK,
    certificates,
    context,
    definition_base,
    exported_date,
    link_steps,
    script,
    script_part,
    stack_files,
    unlink_steps,
)
from hpcgen.recipe.formats.hpccm_session import Primitive, Written, emit, primitive
from hpcgen.recipe.selftest import BUILD_TEST
from hpcgen.recipe.stages import Assembly, Stage

CARGO = "/opt/hpcgen-kept.tar"
_FILES_AS_BASE = ("localimage", "oci-archive", "docker-archive")

Steps = list[tuple[str, Run]]


def _packing(steps: Steps, kept: list[str]) -> Steps:
    if not kept:
        return steps
    paths = [path.lstrip("/") for path in kept]
    return [*steps, ("hpcgen", run("pack what is kept", command("tar", "-C", "/", "-cf", CARGO, *paths)))]


def _unpacking(kept: list[str]) -> Steps:
    if not kept:
        return []
    unpack = run("unpack what is kept", command("tar", "-C", "/", "-xf", CARGO), command("rm", CARGO))
    return [("hpcgen", unpack)]


def _top_names(plan: Plan, assembly: Assembly) -> list[str]:
    """Names in the top folder of the kit."""
    return sorted({*kit_files(plan), *(path.partition("/")[0] for path in assembly.files)})


def _copied_step(stage: Stage) -> Steps:
    """Move the files that came as one folder to their places, with the modes that a Dockerfile's build gives them."""
    if not stage.copied:
        return []
    targets = [each.to for each in stage.copied]
    folders = sorted({target.rpartition("/")[0] for target in targets} - {""})
    return [
        (
            "hpcgen",
            run(
                "files of the stack",
                [command("install", "-d", "-m", "755", *folders)] if folders else [],
                [command("mv", "-T", f"{_arrival(FOLDER)}{target}", target) for target in targets],
                command("chmod", "-R", "u=rwX,go=rX", *targets),
                command("rm", "-r", _arrival(FOLDER)),
            ),
        )
    ]


def _with_copied(stage: Stage) -> Steps:
    """The builder's steps, with the stack's files put to their places before the first that finds them there."""
    first = next((number for number, (_, step) in enumerate(stage.steps) if step.finds), 0)
    return [*stage.steps[:first], *_copied_step(stage), *stage.steps[first:]]


def _kit_step(plan: Plan, assembly: Assembly) -> tuple[str, Run]:
    """%files makes no folders in older releases, so the kit's files are put into theirs afterwards."""
    moves = [command("mv", _arrival(name), f"{KIT}/{name}") for name in _top_names(plan, assembly)]
    return ("hpcgen", run("the kit", command("mkdir", "-p", KIT), moves))


def _arrival(name: str) -> str:
    """Where a file of the kit is in a stage until a step uses it; ``files`` comes as a folder."""
    return f"/opt/hpcgen-kit-{name}"


def _final_start(plan: Plan, assembly: Assembly) -> list[Primitive]:
    stage = assembly.final
    result = _start(plan, stage)
    names = [*_top_names(plan, assembly), *([FOLDER] if stage.copied else [])]
    lines = [f"    {name} {_arrival(name)}" for name in names]
    result.insert(1, _raw("\n".join(["%files", *lines]), Subject("kit")))
    if stage.copies:
        packed = Subject("kept", stage.copies[0])
        result.insert(1, primitive("copy", of=packed, _from="builder", src=CARGO, dest=CARGO))
    return result


def _final_end(stage: Stage, assembly: Assembly) -> list[Primitive]:
    result = []
    if stage.environment:
        lines = [
            traced(f"    export {_split(sh_assign(name, value))}", Subject("variable", name))
            for name, value in stage.environment.items()
        ]
        result.append(_raw(together(["%environment", *lines], "\n")))
    result.append(_raw('%runscript\n    exec "$@"', Subject("command")))
    result.append(_raw(f"%test\n    {BUILD_TEST}", Subject("self-test")))
    labels = [
        traced(f"    {key} {_spaced(plain(value, key))}", Subject("label", key))
        for key, value in assembly.labels.items()
    ]
    result.append(_raw(together(["%labels", *labels], "\n")))
    return result


def _raw(text: str, of: Subject | None = None) -> Primitive:
    return primitive("raw", of=of, singularity=_guarded(text))


def _guarded(text: str) -> str:
    """Apptainer 1.2 and later read ``{{ name }}`` as a template argument, in comments and quotes too."""
    if "{{" in text:
        at = next(line.strip() for line in text.splitlines() if "{{" in line)
        message = "a definition file cannot hold '{{': Apptainer reads it as a template argument"
        raise PolicyError(f"{message}: {at[:120]!r}", remedy="in single quotes of a shell, {''{ means the same")
    return text


def _split(quoted: str) -> str:
    """Words as ``quoting`` writes them, the same to a shell without ``{{``: braces are in single quotes there."""
    return re.sub(r"\{(?=\{)", "{''", quoted)


def _spaced(words: str) -> str:
    """Text for people, without ``{{``."""
    return re.sub(r"\{(?=\{)", "{ ", words)


def _start(plan: Plan, stage: Stage) -> list[Primitive]:
    """The stage's header, the files it takes from the building machine, and its variables while building."""
    name = "builder" if stage.name == "builder" else "final"
    image, bootstrap = _from(plan, stage)
    result = [
        primitive(
            "baseimage",
            of=Subject("base"),
            image=image,
            _as=name,
            _bootstrap=bootstrap,
            _docker_env=False,
            _distro="ubuntu22",
            _arch="x86_64",
        )
    ]
    lines: list[str] = [
        traced(f"    {file.source} {file.target}", Subject("certificate", file.target)) for file in stage.host_files
    ]
    if name == "builder" and any("/" in file.path for _, step in stage.steps for file in step.files):
        lines.append(traced(f"    {FILES} {_arrival(FILES)}", Subject("kit")))
    if any(step.archives for _, step in stage.steps):
        lines.append(traced(f"    {ARTIFACTS} {_arrival(ARTIFACTS)}", Subject("kit")))
    if name == "builder" and stage.copied:
        lines.append(traced(f"    {FOLDER} {_arrival(FOLDER)}", Subject("kit")))
    if lines:
        result.append(_raw(together(["%files", *lines], "\n")))
    variables = {**stage.arguments, **stage.environment}
    exports = [
        traced(
            f"    export {_split(sh_assign(key, value))}",
            Subject("argument" if key in stage.arguments else "variable", key),
        )
        for key, value in variables.items()
    ]
    result.append(_raw(together(["%post", "    set -eu", *exports], "\n")))
    return result


def _steps(steps: Steps, first: int, total: int) -> list[Primitive]:
    result = []
    number = first
    for label, about, runs in grouped(steps):
        of = of_step(label, runs[0])
        result.append(primitive("comment", joined=True, of=of, text=_spaced(about), reformat=False))
        for step in runs:
            result.append(_step(label, step, number, total, joined=step is not runs[-1]))
            number += 1
    return result


def _step(label: str, step: Run, number: int, total: int, joined: bool) -> Primitive:
    """One step in a shell of its own, as a Dockerfile's RUN has one; the first failing line ends the build.

    Apptainer says nothing of its own between two steps, so each names itself.
    """
    for line in step.commands:
        _guarded(line)
    modes = {True: "755", False: "644"}
    files = [
        command("install", "-D", "-m", modes[file.executable], _arrival(file.path), file.target) for file in step.files
    ]
    folders = sorted({file.target.rpartition("/")[0] for file in step.archives})
    files += [command("mkdir", "-p", *folders)] if folders else []
    files += [command("mv", _arrival(file.path), file.target) for file in step.archives]
    commands = [
        "(",
        "cd /",
        _split(command("echo", step_mark(number, total, label, step.about))),
        *(wrapped(line) for line in (*map(_split, files), *step.commands)),
        ")",
    ]
    told = StepLabel(block=label, about=step.about)
    return primitive("shell", told, joined, of_step(label, step), chdir=False, commands=commands)


def _kept(
    plan: Plan, stage: Stage, written: list[Primitive], lines: list[int], above: int, text: str
) -> KeptPart | None:
    """Where the part stands that is the same for every state of the project; None where its base may change unseen."""
    image, bootstrap = _from(plan, stage)
    file = bootstrap in _FILES_AS_BASE
    beside = plan.base is not None and bool(plan.base.kind)
    if beside or plan.supply == "bundle" or not (file or "@sha256:" in image):
        return None
    begin = [above + line for line in lines]
    first = next(number for number, each in enumerate(written) if each.name == "comment")
    # The last step of it, if the next one has a comment of its own.
    steps = [number for number, each in enumerate(written) if each.label is not None]
    last = next((n for n in range(min(stage.kept, len(steps) - 1), 0, -1) if steps[n] - steps[n - 1] > 1), 0)
    if not last:
        return None
    taken = f"    {FOLDER} {_arrival(FOLDER)}"
    between = text.split("\n")[begin[1] : begin[first - 1]]
    return KeptPart(
        stage=begin[0],
        files=begin[1],
        variables=begin[first - 1],
        steps=begin[first],
        end=begin[steps[last] - 1],
        count=last,
        arrival=_arrival(FILES),
        copied=begin[1] + between.index(taken) if taken in between else 0,
        needs=sorted({file.path for _, step in stage.steps[:last] for file in step.files if "/" in file.path}),
        base=image if file else "",
    )


def _from(plan: Plan, stage: Stage) -> tuple[str, str]:
    image = stage.image
    if plan.extends is not None:
        return image.name, "localimage"
    if plan.supply == "bundle":
        return definition_base(image)
    if plan.base is not None and plan.base.kind:
        return plan.base.file, "oci-archive" if plan.base.kind == "oci-archive" else "localimage"
    mirror = image_mirror(plan.site.network.mirrors, image.name, image.pulled)
    name, bootstrap = image.pulled, "docker"
    if mirror is not None and mirror.singularity is not None:
        name, bootstrap = mirror.singularity, mirror.bootstrap
    if not image.digest or bootstrap != "docker" or "@" in name:
        return name, bootstrap
    # Singularity takes a tag or a digest, not both; what follows the last colon is a port if it has a slash.
    untagged, _, tag = name.rpartition(":")
    return f"{untagged if untagged and '/' not in tag else name}@{image.digest}", bootstrap


def _tags(plan: Plan, assembly: Assembly) -> list[str]:
    """The tags for the digests of base images: a definition file takes a tag or a digest, not both."""
    images = {stage.image.digest: stage.image for stage in (assembly.builder, assembly.final)}
    dated = [image for image in images.values() if image.dated and plan.supply == "network"]
    return [f"base image {image.pulled}, by its digest: {image.digest[:19]}…" for image in dated]


class SingularityFormat(Format):
    """A definition file, which takes the kit's files from the folder that the engine is started in."""

    name = "singularity"
    recipe_file = engine_file = "Singularity.def"
    certificate_folder = ""
    bundle_link = BUNDLE_LINK
    notest = ("--notest",)
    # Debian 12 has no Apptainer: name an image that has one (--image singularity=…).
    setup = MappingProxyType(
        {
            "ubuntu-24.04": "sudo add-apt-repository -y ppa:apptainer/ppa && sudo apt-get -q update "
            "&& sudo apt-get -qy install apptainer"
        }
    )
    ready_engines = MappingProxyType({"ubuntu-24.04": ("apptainer",)})

    def recipe(self, plan: Plan, assembly: Assembly) -> Written:
        builder, final = assembly.builder, assembly.final
        steps = [*link_steps(plan), *_packing(_with_copied(builder), final.copies)] if builder.steps else []
        final_steps = [
            *link_steps(plan),
            *_unpacking(final.copies),
            *final.steps,
            *_copied_step(final),
            _kit_step(plan, assembly),
            *unlink_steps(plan),
        ]
        total = len(steps) + len(final_steps)
        earlier = [[*_start(plan, builder), *_steps(steps, 1, total)]] if steps else []
        last = [*_final_start(plan, assembly), *_steps(final_steps, len(steps) + 1, total)]
        written = emit([*earlier, [*last, *_final_end(final, assembly)]], "singularity")
        # The command among them is quoted for a shell, and stays the same to one.
        top = _split(commented([*header(plan), *assembly.base_notes, *_tags(plan, assembly)]))
        text = together([traced(top, Subject("header")), "\n\n", written.text, "\n"])
        kept = _kept(plan, builder, earlier[0], written.lines[0], top.count("\n") + 2, text) if steps else None
        return Written(_guarded(text), written.steps, kept=kept)

    def build_script(self, plan: Plan, assembly: Assembly) -> str:
        """build.sh for Apptainer and Singularity."""
        engine = plan.site.containers.engines.get(plan.engine)
        about = (
            "Builds Singularity.def next to this script.\n"
            "HPCGEN_ENGINE chooses the command (apptainer or singularity), HPCGEN_BUILD_OPTIONS are further words "
            "for its\nbuild command, --sandbox for example."
        )
        bases = {"link": BUNDLE_LINK, "mount": EVERY_IMAGE_HAS}
        if plan.supply == "bundle":
            # It takes the certificates from where they are.
            bases["context"] = context(plan, assembly, certified=False)
        return script(
            plan,
            "build_singularity.sh",
            "output",
            about,
            certificates=certificates(assembly),
            stack_files=stack_files(plan, put=False) if plan.supply == "network" else [],
            bases=script_part(plan, "bundle_singularity.sh", **bases),
            engine=sh(plan.engine),
            date=exported_date(assembly),
            squashing_option=SQUASHING,
            squashing=sh(" ".join(squashing_words(plan))),
            image=sh(f"{plan.stack.name}.sif"),
            fakeroot=" --fakeroot" if engine is None or engine.fakeroot else "",
        )
