"""A package of the distribution: the blocks and lines that ask for it, and its version, where a lock pins that."""

from __future__ import annotations

from collections.abc import Iterator

from hpcgen.core.model.lock import StagePackages
from hpcgen.planning.explain.case import ExplainCase, Explanation, Ground, parts_in

BLOCK = "os_packages"


def package(case: ExplainCase, name: str, stage: str) -> Explanation:
    """A package of a stage: the blocks that ask for it, or that others need it, or that the base has it."""
    manager = str(case.parts[0].ctx.base.release.values["package_manager"])
    grounds = []
    for part in parts_in(case, stage):
        wanted = part.block.packages(part.ctx)
        uses = [("to run", wanted.run), *([("to build", wanted.build)] if stage == "builder" else [])]
        for use, names in uses:
            if name in names.get(manager, []):
                grounds.append(case.method(part.planned.name, "packages", f"{part.label} asks for it {use}"))
    grounds += _asked(case, name)
    base = case.plan.blocks[0]
    version = ""
    pinned = _pinned(case, stage)
    if pinned is not None and name in pinned.added:
        pin = pinned.added[name]
        version = pin.version
        if not grounds:
            grounds.append(Ground(kind="rule", text="requested packages need it"))
        grounds.append(Ground(kind="lock", text=f"sha256:{pin.sha256}"))
        grounds.append(Ground(kind="lock", text=f"from {pin.url or 'the packages that the base comes with'}"))
    elif pinned is not None and name in pinned.present:
        version = pinned.present[name]
        grounds.append(Ground(kind="rule", text=f"the base image {base.label} has it already"))
    else:
        text = f"the version that {manager} finds for {base.label} on the day of the build; `hpcgen lock` pins it"
        grounds.append(Ground(kind="rule", text=text))
    mirrors = case.plan.site.network.mirrors
    for path, known in (("apt", mirrors.apt), ("dnf", mirrors.dnf)):
        if path == manager and base.name in known:
            grounds.append(case.fact(f"network.mirrors.{path}.{base.name}"))
    return Explanation(
        kind="package of the distribution", name=name, value=version, stage=stage, grounds=grounds, see=["base"]
    )


def locked(case: ExplainCase) -> Iterator[tuple[str, str]]:
    """Packages of a lock with their stages: those that are asked for, what they need, and what the base has."""
    if case.lock is not None:
        for stage, pinned in case.lock.pins.packages.items():
            yield from ((name, stage) for name in (*pinned.added, *pinned.present))


def _pinned(case: ExplainCase, stage: str) -> StagePackages | None:
    found = case.lock.pins.packages if case.lock is not None else {}
    return next((pinned for of, pinned in found.items() if of == stage), None)


def _asked(case: ExplainCase, name: str) -> Iterator[Ground]:
    """The line of the stack, and that of the file from which `hpcgen init` took it."""
    for number, word in enumerate(case.option_words(BLOCK, "packages")):
        if word == name:
            yield case.said_in_list(BLOCK, "packages", number, f"--add apt:{name}")
            where = case.asked_files.apt.get(name)
            if where is not None:
                shown = case.asked_files.shown(f"{where.file}:{where.line}", BLOCK)
                yield Ground(kind="file", text=f"{where.file} names it", place=shown)
