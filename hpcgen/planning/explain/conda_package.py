"""A conda package: the line that asks for it, its build, and the facts of base, node and MPI that decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpcgen.catalog.project import CONDA
from hpcgen.core.model.conda import CondaPackage
from hpcgen.core.support.units import some
from hpcgen.planning.explain.case import ExplainCase, Explanation, Ground, Refused
from hpcgen.readers.conda_text import spec_name

_FACTS = {"__archspec": "partitions.*.cpu.target", "__cuda": "partitions.*.gpu.driver"}
"""The facts that virtual packages are read from."""


def names(case: ExplainCase) -> list[str]:
    """Packages that are asked for, and those that a lock has beside them."""
    asked = case.plan.conda
    needs = [spec_name(each) for each in asked.needs] if asked is not None else []
    return list(dict.fromkeys(filter(None, [*needs, *(each.name for each in _locked(case))])))


def package(case: ExplainCase, name: str) -> Explanation:
    """A package of the conda environment."""
    asked = case.plan.conda
    assert asked is not None
    locked = _locked(case)
    found = next((each for each in locked if each.name == name), None)
    grounds = [*_asked(case, name), *_needed(name, locked)]
    if found is not None:
        kind = "file" if asked.packages else "lock"
        files = [file.file for file in case.asked_files.conda if file.locked] if kind == "file" else []
        where = case.asked_files.shown(files[0], CONDA) if files else ""
        grounds.append(Ground(kind=kind, text=f"{found.exact} from {found.url}", place=where))  # type: ignore[arg-type]
    else:
        text = f"no lock: chosen while the image is built, from {some(asked.channels)}; `hpcgen lock` pins it"
        grounds.append(Ground(kind="rule", text=text))
    grounds.append(case.fact("system.architecture", f"so the packages are for {asked.subdir}"))
    grounds += _virtual(case, found)
    held = [each for each in asked.held if spec_name(each) == name]
    mpi = case.plan.block("mpi")
    if held and mpi is not None:
        text = f"held to {' and '.join(held)}: {mpi.label} of the image, or the host's in its place, is the MPI"
        grounds.append(Ground(kind="rule", text=text))
    return Explanation(
        kind="conda package",
        name=name,
        value=f"{found.version} {found.build}" if found is not None else "",
        grounds=grounds,
        refused=list(_refused(case, name, found)),
        see=[CONDA, *(["mpi"] if held else [])],
    )


def _locked(case: ExplainCase) -> Sequence[CondaPackage]:
    if case.plan.conda is None:
        return []
    return case.plan.conda.packages or (case.lock.pins.conda if case.lock is not None else [])


def _asked(case: ExplainCase, name: str) -> Iterator[Ground]:
    """Lines of files and of the stack that ask for it."""
    asked = case.plan.conda
    assert asked is not None
    own = case.option_words(CONDA, "packages")
    for number, spec in enumerate(own):
        if spec_name(spec) == name:
            yield case.said_in_list(CONDA, "packages", number)
    there = [need for file in case.asked_files.conda for need in file.needs if need.name == name]
    for need in there:
        where = case.asked_files.shown(f"{need.where.file}:{need.where.line}", CONDA)
        yield Ground(kind="file", text=need.spec, place=where)
    for spec in asked.needs if not there else ():
        if spec_name(spec) == name and spec not in own:
            yield Ground(kind="file", text=f"{spec}, in {some(sorted(asked.files)) or 'the requirements of pip'}")


def _needed(name: str, locked: Sequence[CondaPackage]) -> Iterator[Ground]:
    needers = [each.name for each in locked if any(spec_name(need) == name for need in each.depends)]
    if needers:
        yield Ground(kind="rule", text=f"needed by {some(sorted(needers))}")


def _virtual(case: ExplainCase, found: CondaPackage | None) -> Iterator[Ground]:
    """The build's requirements on base and node; without a build, the facts that will decide."""
    asked = case.plan.conda
    assert asked is not None
    needs = [each for each in found.depends if each.startswith("__")] if found is not None else []
    for need in needs:
        name, _, versions = need.partition(" ")
        has = asked.virtual.get(name, "")
        here = f"it needs {name} {versions}".rstrip() + (f", and there is {has}" if has else "")
        if name in _FACTS:
            yield case.fact(_FACTS[name], here)
        elif name == "__glibc":
            yield Ground(kind="rule", text=f"{here}, of {case.plan.blocks[0].label}")
    if found is None:
        for name, path in _FACTS.items():
            if name in asked.virtual:
                yield case.fact(path, f"builds for {name} {asked.virtual[name]} are chosen")


def _refused(case: ExplainCase, name: str, found: CondaPackage | None) -> Iterator[Refused]:
    """Builds of a lock for other platforms."""
    if found is None or case.plan.conda is None:
        return
    for file in case.asked_files.conda:
        for platforms in file.environments.values():
            for platform, inside in platforms.items():
                other = next((each for each in inside.packages if each.name == name and each != found), None)
                if other is not None:
                    why = f"for {platform}, and the nodes are {case.plan.conda.subdir}"
                    where = case.asked_files.shown(file.file, CONDA)
                    yield Refused(what=other.exact, why=why, place=where)
