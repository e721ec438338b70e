"""Singularity and Apptainer definition file, and the script that builds it.

Two stages by name need Singularity 3.2. Before 3.5.3 ``%files from`` followed symbolic links, so what the final
stage keeps travels as one tar file. Source: Singularity's change log for 3.5.3.
"""

from __future__ import annotations

from hpcgen.assemble import Assembly, Stage
from hpcgen.errors import PolicyError, Problem
from hpcgen.formats.header import commented, header
from hpcgen.formats.hpccm_session import Primitive, emit, primitive
from hpcgen.formats.templates import fill
from hpcgen.image_paths import SELFTEST
from hpcgen.model.plan import Plan
from hpcgen.requirements import in_range
from hpcgen.steps import Run, command, run
from hpcgen.text import plain, sh, sh_assign

CARGO = "/opt/hpcgen-kept.tar"


def definition(plan: Plan, assembly: Assembly) -> str:
    """The definition file."""
    _check_version(plan)
    builder, final = assembly.builder, assembly.final
    stages = [_builder(plan, builder, final.copies), _final(plan, final, assembly)]
    return commented(header(plan, "Definition file")) + "\n\n" + emit(stages, "singularity") + "\n"


def _check_version(plan: Plan) -> None:
    engine = plan.site.containers.engines.get(plan.engine)
    if (
        engine is not None
        and engine.version is not None
        and not in_range(engine.version, ">=3.2" if plan.engine == "singularity" else "")
    ):
        raise PolicyError(
            Problem(
                f"{plan.site.name} has Singularity {engine.version}, which cannot build in two stages",
                expected="Singularity 3.2 or newer",
                remedy="correct containers.engines.singularity.version, or build elsewhere",
            )
        )


def _builder(plan: Plan, stage: Stage, kept: list[str]) -> list[Primitive]:
    result = _start(plan, stage)
    result += [part for label, step in stage.steps for part in _step(label, step)]
    if kept:
        paths = [path.lstrip("/") for path in kept]
        result += _step("hpcgen", run("pack what is kept", command("tar", "-C", "/", "-cf", CARGO, *paths)))
    return result


def _final(plan: Plan, stage: Stage, assembly: Assembly) -> list[Primitive]:
    result = _start(plan, stage)
    if stage.copies:
        result.insert(1, primitive("copy", _from="builder", src=CARGO, dest=CARGO))
        unpack = run("unpack what is kept", command("tar", "-C", "/", "-xf", CARGO), command("rm", CARGO))
        result += _step("hpcgen", unpack)
    result += [part for label, step in stage.steps for part in _step(label, step)]
    if stage.environment:
        lines = [f"    export {sh_assign(name, value)}" for name, value in stage.environment.items()]
        result.append(_raw("\n".join(["%environment", *lines])))
    result.append(_raw('%runscript\n    exec "$@"'))
    result.append(_raw(f"%test\n    /bin/sh {SELFTEST}"))
    labels = [f"    {key} {plain(value, key)}" for key, value in assembly.labels.items()]
    result.append(_raw("\n".join(["%labels", *labels])))
    return result


def _raw(text: str) -> Primitive:
    return primitive("raw", singularity=_guarded(text))


def _guarded(text: str) -> str:
    """Apptainer 1.2 and later read ``{{ name }}`` as a template argument."""
    if "{{" in text:
        raise PolicyError(Problem("a definition file cannot hold '{{': Apptainer reads it as a template argument"))
    return text


def _start(plan: Plan, stage: Stage) -> list[Primitive]:
    """The stage's header, the files it takes from the building machine, and its variables while building."""
    name = "builder" if stage.name == "builder" else "final"
    image, bootstrap = _from(plan, stage)
    result = [
        primitive(
            "baseimage",
            image=image,
            _as=name,
            _bootstrap=bootstrap,
            _docker_env=False,
            _distro="ubuntu22",
            _arch="x86_64",
        )
    ]
    if stage.host_files:
        lines = [f"    {file.source} {file.target}" for file in stage.host_files]
        result.append(_raw("\n".join(["%files", *lines])))
    exports = [f"    export {sh_assign(key, value)}" for key, value in {**stage.arguments, **stage.environment}.items()]
    result.append(_raw("\n".join(["%post", "    set -eu", *exports])))
    return result


def _step(label: str, step: Run) -> list[Primitive]:
    """One step in a shell of its own, as a Dockerfile's RUN has one; the first failing line ends the build."""
    for line in step.commands:
        _guarded(line)
    commands = ["(", "cd /", *step.commands, ")"]
    return [
        primitive("comment", text=f"{label}: {step.about}", reformat=False),
        primitive("shell", chdir=False, commands=commands),
    ]


def _from(plan: Plan, stage: Stage) -> tuple[str, str]:
    image = stage.image
    mirror = plan.site.network.mirrors.images.get(image.name)
    if mirror is not None and mirror.singularity is not None:
        return mirror.singularity, mirror.bootstrap
    # Singularity takes a tag or a digest, not both.
    return (f"{image.name.rsplit(':', 1)[0]}@{image.digest}" if image.digest else image.name), "docker"


def build_script(plan: Plan, assembly: Assembly) -> str:
    """build.sh for Apptainer and Singularity."""
    engine = plan.site.containers.engines.get(plan.engine)
    return fill(
        "build_singularity.sh",
        header=commented(header(plan, "Build script")),
        engine=sh(plan.engine),
        output=sh(f"{plan.stack.name}.sif"),
        fakeroot=" --fakeroot" if engine is None or engine.fakeroot else "",
        certificates=" ".join(sh(f.source) for f in assembly.builder.host_files),
    )
