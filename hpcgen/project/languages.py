"""Projects in R and Julia: the blocks and packages of the languages, their scripts, and the environments of Julia."""

from __future__ import annotations

import json
import re
from posixpath import join, normpath
from typing import Any

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import Position, Problems
from hpcgen.core.model.own_containers import ContainerFile
from hpcgen.core.model.own_languages import LanguageProject
from hpcgen.core.model.own_notebooks import Notebook
from hpcgen.core.model.own_project import FileWord, JobFile, Launched
from hpcgen.core.support.quoting import command
from hpcgen.core.support.units import counted, some
from hpcgen.project.compiled import PREFIX
from hpcgen.project.draft import APP, Draft
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


_DEPOT = "JULIA_DEPOT_PATH=/opt/julia/depot:"
_OWN = "/opt/julia/programs"
"""The environment of programs that load packages which the project itself does not ask for."""
_PROJECTS, _MANIFESTS = ("JuliaProject.toml", "Project.toml"), ("JuliaManifest.toml", "Manifest.toml")
_OF_JULIA = frozenset(
    re.findall(
        r"\w+",
        "Artifacts Base Base64 Core Dates DelimitedFiles Distributed Downloads FileWatching InteractiveUtils Libdl "
        "LinearAlgebra Logging Main Markdown Mmap Pkg Printf Profile REPL Random SHA Serialization SharedArrays "
        "Sockets SparseArrays Statistics TOML Test UUIDs Unicode",
    )
)
"""What every environment of Julia has."""
_LARGEST = 512 * 1024
_SCRIPTS = {
    "r": re.compile(r"(?:[^/]+/){0,3}[^/]+\.([rR]|[rR]md)"),
    "julia": re.compile(r"[^/]+\.jl|(examples|scripts|experiments?|runscripts|simulations?)/(?:[^/]+/){0,1}[^/]+\.jl"),
}
_NO_PROGRAMS = re.compile(
    r"(?i:readme|index)\.[rR]md$|(^|/)(renv|tests?|docs?|man|inst|vignettes|packrat|R|src(?=/[^/]+\.jl$))/|(^|/)\."
)
_USUAL = ("main", "run", "analysis", "simulation", "simulate", "driver", "_targets", "app", "solve")


def _scripts(found: Found, language: str) -> list[str]:
    """Scripts that may be programs, as they are numbered or named."""
    small = [each.path for each in found.tree.files if each.size < _LARGEST]
    return sorted(path for path in small if _SCRIPTS[language].fullmatch(path) and not _NO_PROGRAMS.search(path))


def language_of(draft: Draft) -> str:
    """``julia`` or ``r``, whichever block brings it; empty for neither."""
    conda = draft.options_of("conda_packages").get("packages", [])
    if "julia" in draft.blocks:
        return "julia"
    return "r" if "r" in draft.blocks or any(re.match(r"r-base\b", each) for each in conda) else ""


def _words(path: str, found: Found) -> list[str]:
    """How a script is started, by its path in the project."""
    if path.endswith(".jl"):
        return ["julia", "--project", "--threads=auto", path]
    if path == "_targets.R":
        return ["Rscript", "-e", "targets::tar_make()"]
    if not path.lower().endswith("md"):
        return ["Rscript", path]
    # The image is read-only, where a document would be written beside its source.
    root = ", knit_root_dir = getwd()" if _from_top(path, found) else ""
    rendered = f'rmarkdown::render("{APP}/{path}", output_dir = getwd(), intermediates_dir = tempdir(){root})'
    return ["Rscript", "-e", rendered]


def _from_top(path: str, found: Found) -> bool:
    """Whether a document names files by their paths in the project, rather than from its own folder."""
    folder = path.rpartition("/")[0]
    named = set(re.findall(r"""["']([\w.-]+(?:/[\w.-]+)+)["']""", _text(path, found)))
    return bool(folder) and any(found.tree.has(each) and not found.tree.has(f"{folder}/{each}") for each in named)


def script_jobs(found: Found, draft: Draft) -> list[JobFile]:
    """Each script as what could be started."""
    language = language_of(draft)
    paths = [path for path in _scripts(found, language) if '"' not in path and "\\" not in path] if language else []
    places = [(path, Position(path, 1, 1)) for path in paths]
    return [JobFile(path, "", at, launched=[Launched(_words(path, found), at)]) for path, at in places]


def likely_script(found: Found, draft: Draft) -> JobFile | None:
    """The one with a usual name in the folder itself, or the only one of all."""
    jobs = script_jobs(found, draft)
    jobs = [each for each in jobs if not (each.file.endswith("R") and _installs(_text(each.file, found)))]
    top = [each for each in jobs if "/" not in each.file and not each.file.lower().endswith("md")]
    usual = [each for name in _USUAL for each in top if each.file.rpartition(".")[0] == name]
    alone = top if len(top) == 1 else jobs if len(jobs) == 1 else []
    return next(iter([*usual, *alone]), None)


_SETS_UP = re.compile(
    r"(?:\w+::)*(?:install[\w.]*|restore|activate|init|snapshot)\(|"
    r"library\((?:renv|remotes|devtools|pak)\)|options\(|[\"'),}]"
)


def _installs(text: str) -> bool:
    """Whether a script in R does nothing but install packages."""
    lines = [code for line in text.split("\n") if (code := line.partition("#")[0].strip())]
    return bool(lines) and all(map(_SETS_UP.match, lines))


# Julia's environments.


def choose_environments(found: Found, draft: Draft) -> None:
    """Each command of Julia with the environment that it runs in, which Pkg fills while the image is built."""
    if "julia" not in draft.blocks:
        return
    run = draft.data["run"]
    needed: dict[str, list[str]] = {}
    if "command" in run:
        run["command"] = _placed(run["command"], found, needed)
    for each in run.get("steps", []):
        each["command"] = _placed(each["command"], found, needed)
    if not needed and _has_project("", found):
        needed[APP] = []
    if not needed:
        return
    lines = [_filled(folder, added, found) for folder, added in needed.items()]
    locked = [each for folder in needed for each in _MANIFESTS if found.tree.has(normpath(join(_inside(folder), each)))]
    how = "as Manifest.toml has them, by their hashes" if locked else "in the newest versions that fit"
    where = Position(next((each for each in _PROJECTS if found.tree.has(each)), _PROJECTS[-1]), 1, 1)
    commands = [*draft.data.get("build", {}).get("commands", []), *lines]
    draft.put(("build", "commands"), commands, f"Pkg installs the packages, {how}, and compiles them", where)
    draft.remark("Pkg needs a network while the image is built: locks and bundles do not have its packages yet", where)
    if not locked:
        text = "no Manifest.toml: the versions are those of the day of the build; `Pkg.resolve()` writes one"
        draft.remark(text, where)


def _inside(folder: str) -> str:
    """A place in the image by its path in the project."""
    return folder.removeprefix(APP).lstrip("/") if folder.startswith(APP) else folder


def _has_project(folder: str, found: Found) -> bool:
    return any(found.tree.has(normpath(join(folder, name))) for name in _PROJECTS)


def _placed(words: list[str], found: Found, needed: dict[str, list[str]]) -> list[str]:
    """The words with the place of the environment; ``needed``: what each has to be given beside its own packages."""
    option = next((n for n, word in enumerate(words) if re.match(r"--project(=|$)", word)), None)
    if words[0] != "julia" or option is None:
        return words
    asked = words[option].partition("=")[2]
    script = next((_inside(word) for word in words[option + 1 :] if re.match(rf"{APP}/.*\.jl$", word)), "")
    folder, added = asked, list[str]()
    if asked in ("", ".", "@."):
        folder = _nearest(script.rpartition("/")[0], found)
        if folder == APP and (added := _strange(script, found)):
            folder = _OWN
    elif _has_project(inside := normpath(_inside(asked)), found):
        folder = normpath(f"{APP}/{inside}")
    if folder not in (_OWN, "") and not folder.startswith(APP):
        return words
    if folder:
        needed[folder] = [*needed.get(folder, []), *(each for each in added if each not in needed.get(folder, []))]
    return [*words[:option], *([f"--project={folder}"] if folder else []), *words[option + 1 :]]


def _nearest(folder: str, found: Found) -> str:
    """The environment that Julia takes in a folder of the project: its own, or that of a folder above it."""
    while folder and not _has_project(folder, found):
        folder = folder.rpartition("/")[0]
    return f"{APP}/{folder}".rstrip("/") if _has_project(folder, found) else ""


def _strange(script: str, found: Found) -> list[str]:
    """What a script loads that neither the project nor Julia itself has."""
    text = _text(script, found) if script else ""
    loaded = [
        name
        for match in re.finditer(r"(?m)^\s*(?:using|import)\s+([^#\n:]+(?:,\s*\n[^#\n:]+)*)", text)
        for each in match[1].split(",")
        if (name := re.split(r"\s+as\s+|\.(?!$)", each.strip())[0]) and re.fullmatch(r"[A-Za-z]\w{0,80}", name)
    ]
    known = {*_packages("", found), _name(found), *_OF_JULIA}
    own = {each.path.rpartition("/")[2].removesuffix(".jl") for each in found.tree.files if each.path.endswith(".jl")}
    return sorted({*loaded} - known - own)


def _text(path: str, found: Found) -> str:
    quiet = found._replace(problems=Problems())
    return quiet.read(lambda folder, name: folder.text(name), path) or ""


def _packages(folder: str, found: Found) -> list[str]:
    from hpcgen.readers.julia_project import read_julia_project

    paths = [path for name in _PROJECTS if found.tree.has(path := normpath(join(folder, name)))]
    quiet = found._replace(problems=Problems())
    project = quiet.read(read_julia_project, paths[0]) if paths else None
    return [each.text for each in project.packages] if project is not None else []


def _name(found: Found) -> str:
    """Of the package that the project is; empty where it is none."""
    text = next((_text(name, found) for name in _PROJECTS if found.tree.has(name)), "")
    match = re.search(r'(?m)^name\s*=\s*"([A-Za-z]\w*)"', text)
    return match[1] if match and found.tree.has(f"src/{match[1]}.jl") else ""


def _filled(folder: str, added: list[str], found: Found) -> str:
    """The command by which Pkg fills an environment; the package that the project is comes from there."""
    inside = _inside(folder)
    locked = any(found.tree.has(normpath(join(inside, name))) for name in _MANIFESTS)
    own = _name(found)
    develop = own and (folder == _OWN or (folder != APP and not locked and own in _packages(inside, found)))
    steps = [
        "using Pkg",
        *([f'Pkg.develop(path="{APP}")'] if develop else []),
        *([f"Pkg.add({json.dumps(added)})"] if added else []),
        "Pkg.instantiate()",
        "Pkg.precompile()",
    ]
    return f"{_DEPOT} {command('julia', f'--project={folder}', '-e', '; '.join(steps))}"
