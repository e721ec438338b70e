"""The programs of a project in R or Julia: its scripts as candidates, and the environment that one of Julia needs."""

from __future__ import annotations

import json
import re
from posixpath import join, normpath

from hpcgen.core.errors import Position, Problems
from hpcgen.core.model.own_project import JobFile, Launched
from hpcgen.core.support.quoting import command
from hpcgen.project.draft import APP, Draft
from hpcgen.project.found import Found

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
    conda = draft.blocks.get("conda_packages", {}).get("options", {}).get("packages", [])
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
