"""What Spack chooses for an environment, in the unpacked base image.

Package recipes of Spack are Python programs, so they run where the build would run them: in the base (base_shell),
after the distribution's packages and the step of Python, without the steps of other blocks. What they leave is taken
for specs, addresses and hashes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hpcgen.blocks.spack import ANSWER, CHOOSE
from hpcgen.blocks.steps import Run
from hpcgen.catalog.project import SPACK
from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import ConflictError, FetchError, Problem, Problems
from hpcgen.core.model.lock import ImagePin, Lock
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.spack import SpackPin, SpackSource
from hpcgen.core.secret_rules import public
from hpcgen.core.support.certificates import read_certificates
from hpcgen.recipe.stages import Assembly, Stage
from hpcgen.supply.pin.base_images import fetch_image
from hpcgen.supply.pin.base_shell import BaseShell, base_shell, failed, laid_out, script_of

_LAST_LINES, _LINE = 40, 300


def pinned_spack(
    plan: Plan,
    loose: Assembly,
    images: Mapping[str, ImagePin],
    layout: Path,
    old: Lock | None,
    say: Callable[[str], None],
) -> SpackPin | None:
    """What is chosen for the plan's environment, or an older lock has for the same; None without one.

    loose: the plan's stages without pins. layout: OCI layout for the base images.
    ConflictError: nothing fits the specs, or a package has a source that no hash pins.
    FetchError: a step before that fails. Other errors as :func:`base_shell`.
    """
    if plan.spack is None:
        return None
    if old is not None and old.pins.spack is not None and old.plan.spack == plan.spack:
        return old.pins.spack
    stage = loose.builder
    name = stage.image.name
    fetch_image(images[name], name, plan.site.system.architecture, layout)
    say(f"Spack packages: {len(plan.spack.specs)} requested")
    with base_shell(layout, name, {**stage.arguments, **stage.environment}, several_ids=True) as shell:
        _choose(shell, stage, _steps(plan, stage), say)
        answer = shell.read([ANSWER]).get(ANSWER, b"")
    pin = chosen(answer)
    say(f"Spack chose {len({each.package for each in pin.sources})} packages to compile")
    return pin


def _steps(plan: Plan, stage: Stage) -> list[tuple[str, Run]]:
    """The builder's first steps, the distribution's packages, Python, and those of Spack up to the choice."""
    own = {name: block.label for name in (SPACK, "python", "gnu") if (block := plan.block(name)) is not None}
    steps = [
        (label, step)
        for place, (label, step) in enumerate(stage.steps)
        if not step.checks and (place < stage.prepared or label in ("distribution", *own.values()))
    ]
    last = next(place for place, (label, step) in enumerate(steps) if (label, step.about) == (own[SPACK], CHOOSE))
    return steps[: last + 1]


def _choose(shell: BaseShell, stage: Stage, steps: list[tuple[str, Run]], say: Callable[[str], None]) -> None:
    # Unpacking took the rights away that programs of other users than root need; Python's pools want /dev/shm.
    shell.check("chmod 1777 /tmp /var/tmp\nmkdir -p -m 1777 /dev/shm", "preparing the base")
    for host_file in stage.host_files:
        shell.put(host_file.target, read_certificates(host_file.source))
    for label, step in steps:
        say(f"{label}: {step.about}")
        status, lines = shell.run(script_of(laid_out(shell, step)))
        if status and step.about == CHOOSE:
            raise _nothing_fits(lines)
        if status:
            raise failed(shell.image, f"{label}, {step.about},", lines, status)


def _nothing_fits(lines: list[str]) -> ConflictError:
    first = next((place for place, line in enumerate(lines) if line.startswith("==> Error")), 0)
    said = "\n".join(f"    {public(line, _LINE)}" for line in lines[first:][-_LAST_LINES:] if line.strip())
    remedy = "correct the specs as Spack says above"
    if any("fortran" in line.lower() for line in lines):
        remedy += "; for packages in Fortran: --set gnu.fortran=true, and the same of the MPI's block"
    return ConflictError(f"Spack could not choose packages:\n{said}", remedy=remedy)


def chosen(answer: bytes) -> SpackPin:
    """What ``building_blocks/files/spack_sources.py`` has left, as far as a lock takes it.

    ConflictError: a package has a source that no hash pins. FetchError: it is not understood.
    """
    try:
        said: dict[str, Any] = json.loads(answer)
        loose = sorted({str(each["package"]) for each in said["sources"] if not each["path"]})
        Problems(
            Problem(
                f"the source of {public(name, 100)} has no sha256, such as one from a git repository",
                expected="a release for which Spack has the archive's sha256",
                remedy="name another version in spack.yaml",
            )
            for name in loose
        ).raise_as(ConflictError)
        sources = {each["path"]: record_from(_fields(each), SpackSource) for each in said["sources"]}
        lock = json.dumps(said["lock"], separators=(",", ":"), sort_keys=True)
        pin = SpackPin(lock, [sources[path] for path in sorted(sources)])
        return record_from(msgspec.to_builtins(pin), SpackPin)
    except (ValueError, KeyError, TypeError) as failure:
        raise FetchError(
            f"Spack's result cannot be parsed: {failure}", remedy="choose another release of spack_packages"
        ) from failure


def _fields(said: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a source; an address that is not https is left out, as Spack's public mirror has the file."""
    url = str(said.get("url") or "")
    return {name: said[name] for name in ("package", "path", "sha256")} | (
        {"url": url} if url.startswith("https://") else {}
    )
