"""Projects in R and Julia: the block of the language, and its packages."""

from __future__ import annotations

import re
from typing import Any

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import Position, Problems
from hpcgen.core.model.own_containers import ContainerFile
from hpcgen.core.model.own_languages import LanguageProject
from hpcgen.core.model.own_notebooks import Notebook
from hpcgen.core.model.own_project import FileWord
from hpcgen.core.support.units import counted, some
from hpcgen.project.compiled import PREFIX
from hpcgen.project.draft import Draft
from hpcgen.project.found import Found

# R.

_SCRIPT = re.compile(r"(?:[^/]+/){0,3}[^/]+\.([rR]|[rR]md|qmd)")
_ASIDE = re.compile(r"(^|/)(renv|tests?|docs?|man|inst|vignettes|packrat)/")
_MOST = 300


def choose_r(
    found: Found, container: ContainerFile | None, notebooks: list[Notebook], catalog: Catalog, draft: Draft
) -> None:
    """The block ``r``, with the packages that the distribution has; the others are said."""
    from hpcgen.readers.r_project import read_description, read_r_script, read_renv_lock

    lock = found.read(read_renv_lock, "renv.lock") if found.tree.has("renv.lock") else None
    described = found.read(read_description, "DESCRIPTION") if found.tree.has("DESCRIPTION") else None
    more = container.installed.r if container is not None else []
    kernel = next((FileWord("IRkernel", Position(each.file, 1, 1)) for each in notebooks if each.language == "r"), None)
    files = [path for path in _small(found, _SCRIPT) if not _ASIDE.search(path)]
    launched = [each.words[0] for file in (*found.jobs, *found.scripts) for each in file.launched]
    alone = not draft.blocks and ("Rscript" in launched or any(re.fullmatch(r"[^/]+\.[rR]", path) for path in files))
    if not (lock or described or more or kernel or alone):
        return
    quiet = found._replace(problems=Problems())
    scripts = [one for path in files[:_MOST] if (one := quiet.read(read_r_script, path)) is not None]
    loaded = {each.text: each for one in scripts for each in one.packages}
    if lock is not None:
        direct = [each for each in lock.packages if each.text in loaded]
        asked, why = direct or lock.packages, f"{counted(len(direct or lock.packages), 'package')} of renv.lock"
        why += " that scripts load; what those need comes with them" if direct else ""
    elif described is not None:
        asked, why = described.packages, "the packages of DESCRIPTION"
    else:
        asked, why = (
            [*more, *loaded.values()],
            "what the container installs and scripts load" if more else "scripts load it",
        )
    if kernel is not None:
        asked = [*asked, kernel]
    document = next((path for path in files if path.lower().endswith("md")), None)
    if document is not None and all(each.text != "rmarkdown" for each in asked):
        asked = [*asked, FileWord("rmarkdown", Position(document, 1, 1))]
    missing = _missing(asked, catalog)
    if (
        lock is not None
        and "conda_packages" not in draft.blocks
        and [each for each in missing if each not in lock.others]
    ):
        _by_conda(asked, why, lock, document, draft)
    else:
        _put_r(asked, missing, why, draft)
        if described is not None and found.tree.has("NAMESPACE"):
            _install_own(missing, draft)
        if lock is not None and lock.version:
            text = (
                f"renv.lock is of R {lock.version}; R and the packages have the distribution's versions, not the lock's"
            )
            draft.remark(text, lock.version_where)


def _missing(asked: list[FileWord], catalog: Catalog) -> list[FileWord]:
    """Those of the packages that the distribution does not have."""
    newest = list(catalog.releases("r").values())[-1].values
    there = {str(each) for kind in ("cran", "bioc") for each in newest[kind]}
    return [each for each in asked if each.text.lower() not in there]


def _put_r(asked: list[FileWord], missing: list[FileWord], why: str, draft: Draft) -> None:
    taken = list(dict.fromkeys(each.text for each in asked if each not in missing))
    where = asked[0].where if asked else None
    options = {"options": {"packages": taken}} if taken else {}
    draft.put(("blocks", "r"), options, f"{why}, as the distribution has it", where)
    if missing:
        text = f"not in the distribution, and not installed: {some([each.text for each in missing], 8)}"
        draft.remark(f"{text}; `conda_packages` has most packages of R as r-NAME", missing[0].where)


def _install_own(missing: list[FileWord], draft: Draft) -> None:
    """The project as a package of R in a library of the image; R installs none that lacks a package."""
    where = Position("NAMESPACE", 1, 1)
    if missing:
        return draft.remark(f"a package of R, and not installed, since {missing[0].text} is not", where)
    lines = ['mkdir -p "$PREFIX/R"', 'R CMD INSTALL --library="$PREFIX/R" .']
    commands = [*draft.data.get("build", {}).get("commands", []), *lines]
    draft.put(("build", "commands"), commands, "the project is a package of R, which library() loads", where)
    draft.put(("run", "environment", "R_LIBS"), f"{PREFIX}/R", "where that package is installed", where)


def _by_conda(asked: list[FileWord], why: str, lock: LanguageProject, document: str | None, draft: Draft) -> None:
    """R and the packages from conda-forge, in the lock's R, where the distribution does not have all of them."""
    own = {each.text for each in lock.others}
    bioc = {each.text for each in lock.bioconductor}
    names = [
        f"{'bioconductor' if each.text in bioc else 'r'}-{each.text.lower()}" for each in asked if each.text not in own
    ]
    minor = re.match(r"\d+\.\d+", lock.version)
    first = [f"r-base={minor[0]}" if minor else "r-base", *(["pandoc"] if document is not None else [])]
    channels = ["conda-forge", *(["bioconda"] if any(name.startswith("bioc") for name in names) else [])]
    options = {"packages": [*first, *dict.fromkeys(names)], "channels": channels}
    why += f", for R {lock.version}" if minor else ""
    draft.put(("blocks", "conda_packages"), {"options": options}, f"{why}; the distribution lacks some", asked[0].where)
    draft.remark("`hpcgen lock` chooses the packages of conda; they are not the versions of renv.lock", asked[0].where)
    for each in [each for each in asked if each.text in own]:
        draft.leave_open(
            f"the package {each.text} of R comes from no archive of packages: install it in `build`", each.where
        )


def _small(found: Found, pattern: re.Pattern[str]) -> list[str]:
    return [each.path for each in found.tree.files if pattern.fullmatch(each.path) and each.size < 512 * 1024]


# Julia.

_JULIA = re.compile(r"(?:[^/]+/){0,2}[^/]+\.jl")
_MPI, _ON_GPUS = ("MPI", "MPIPreferences", "PencilArrays"), ("CUDA", "AMDGPU", "oneAPI", "Reactant")


def choose_julia(found: Found, catalog: Catalog, draft: Draft) -> None:
    """The block ``julia``, and the packages by Pkg while the image is built."""
    from hpcgen.readers.julia_project import PROJECTS, read_julia_project, read_manifest

    name = next(iter(found.tree.named(*PROJECTS)), None)
    scripts = [path for path in _small(found, _JULIA) if "/" not in path]
    if name is None and (draft.blocks or not scripts):
        return
    project = found.read(read_julia_project, name) if name is not None else None
    held = next(iter(found.tree.named("JuliaManifest.toml", "Manifest.toml")), None)
    manifest = found.read(read_manifest, held) if held is not None else None
    asked = {each.text: each for file in (manifest, project) if file is not None for each in file.packages}
    mpi = next((asked[each] for each in _MPI if each in asked), None)
    block: dict[str, Any] = {"options": {"mpi": True}} if mpi is not None else {}
    said = next((each for each in (manifest, project) if each is not None and each.version), None)
    listed = catalog.releases("julia")
    if said is not None and any(_fits(version, said.version) for version in listed):
        block["version"] = said.version
    elif said is not None:
        draft.remark(
            f"{said.file} is for Julia {said.version}, of which hpcgen has no release: {some(list(listed))}",
            said.version_where,
        )
    draft.put(("blocks", "julia"), block, "a project in Julia", Position(name or scripts[0], 1, 1))
    if mpi is not None:
        draft.add_block("mpi", f"{mpi.text} loads an MPI; the site decides which one", mpi.where)
    if gpu := next((asked[each] for each in _ON_GPUS if each in asked), None):
        text = f"{gpu.text} fetches its libraries on first use into ~/.julia: start it once with a network and a GPU"
        draft.remark(text, gpu.where)
        draft.gpu_package = draft.gpu_package or gpu.text


def _fits(version: str, versions: str) -> bool:
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(versions).contains(version)
