"""Which file of packages is taken, and the blocks of the frameworks that it names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import Position, Problems
from hpcgen.core.model.own_project import FileWord, JobFile, PythonSource
from hpcgen.core.model.project import BLOCK, GitRequirement
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.units import some
from hpcgen.planning.own_wheels import unlisted_blocks
from hpcgen.project.candidates import candidates_of, likeliest
from hpcgen.project.draft import Draft
from hpcgen.project.found import OF_PROJECT, Found
from hpcgen.project.imported import MPI_BLOCKS, Imported, Listed, add_imported
from hpcgen.project.members import likeliest as likeliest_member
from hpcgen.project.members import members_of, with_siblings
from hpcgen.project.modules import Modules, above, import_names, packages_with
from hpcgen.project.python_program import may_start, named, started
from hpcgen.readers.pip_text import WRITE

if TYPE_CHECKING:
    from hpcgen.core.model.conda import CondaFile
    from hpcgen.core.model.project import PackageFile, PackageRequirement

GPU_BLOCKS = ("pytorch", "tensorflow", "jax", "horovod", "deepspeed", "mxnet", "onnxruntime", "vllm")
"""Blocks whose programs compute on GPUs where there are some."""
_PYTHON_LOCKS = ("pylock.toml", "uv.lock", "poetry.lock", "pdm.lock")
_CONDA_LOCKS = ("pixi.lock", "conda-lock.yml", "conda-lock.yaml", "conda-linux-64.lock")
_LISTS = ("requirements.txt", "requirements.in")
_REQUIREMENTS = re.compile(r"(requirements/[^/]+|[^/]*requirements[^/]*)\.(txt|in)")
_CONDA = re.compile(r"(environment|conda|env)([_.-][^/]*)?\.ya?ml")
_MAIN = re.compile(r"(^|[/_-])(requirements|base|main|core|common|train|training|gpu|cuda|environment|conda|env)\.")
"""Of several lists, names of the one for the programs."""
_NOT_MAIN = re.compile(r"(^|[/_.-])(dev|tests?|docs?|lint|ci|build|pre-commit|cpu|mac|macos|osx|win|windows)[._-]")
_LOCK, _WISH = (
    "a lock: every package in one {}, by its hash",
    "the requirements of the project; `hpcgen lock` chooses the {}",
)
_WHY = {
    **dict.fromkeys(_PYTHON_LOCKS, _LOCK.format("version")),
    **dict.fromkeys(_CONDA_LOCKS, _LOCK.format("build")),
    "requirements.txt": "the requirements of the project; `hpcgen lock` chooses the versions that they leave open",
    "requirements.in": _WISH.format("versions"),
    "environment.yml": _WISH.format("builds"),
    "environment.yaml": _WISH.format("builds"),
    **dict.fromkeys(OF_PROJECT, "the project's dependencies; `hpcgen lock` chooses the versions"),
}
_ON_GPUS = re.compile(
    r"(cupy|nvidia|cuda|pycuda|jax|tensorflow|pytorch|rmm|cudf|cuml)(-.*)?|pytorch-gpu|torchvision|cudatoolkit"
)
"""Packages of an index or of conda that bring code for GPUs, or come with what does."""
_FOR_ARCHITECTURE, _FOR_PYTHON = "x86_64", "3.12"
"""What markers are read for here; a plan reads them again for its own image."""


def choose_packages(found: Found, catalog: Catalog, draft: Draft, asked: str = "") -> None:
    """The block that installs the project's packages, and those of the frameworks among them.

    ``asked``: which of the project's command lines is taken; else the likeliest.
    """
    modules = Modules(found)
    taken_job = likeliest(candidates_of(found, draft), asked)
    programs = with_settings(started(found, modules, taken_job), taken_job, found)
    names, listed = _files(found, programs), Listed()
    # Where nothing says which program it is, all but tests and the like may be.
    sources = modules.reached(programs) if programs else [each for each in found.sources if may_start(each.file)]
    if not names and found.build is not None and found.build.programs and not named(found, modules, taken_job):
        # Beside a program that is compiled scripts that nobody starts draw pictures of its results.
        known = {each.package for source in sources for each in source.imports}
        sources = sources if known & {"torch", "tensorflow", "jax"} else []
    own = modules.own_names - _of_settings(programs, modules)
    imported = Imported(sources, own, found.readme.installed, programs)
    for number, name in enumerate(names):
        others = [each for each in names[number + 1 :] if each not in OF_PROJECT]
        taken = _take(found, catalog, draft, name, others, imported)
        if taken is not None:
            listed = taken
            break
    else:
        listed = _take_members(found, catalog, draft, imported)
    listed = listed._replace(names=listed.names | with_groups(found.readme.groups, found, catalog, draft))
    if not listed.conda and not listed.complete and names:
        listed = _with_own(found, imported, listed, catalog, draft)
    add_imported(imported, listed, catalog, draft)


def _take_members(found: Found, catalog: Catalog, draft: Draft, imported: Imported) -> Listed:
    """The project in a folder that has what is imported, with the others that it asks for: their code is here."""
    members = members_of(found)
    wanted = imported.missing(Listed(), catalog)
    first = likeliest_member(members, wanted, [each.file for each in imported.programs])
    listed = _take(found, catalog, draft, first.file, [], imported) if first is not None else None
    if first is None or listed is None:
        return Listed()
    siblings = with_siblings(first, members)[1:]
    options = draft.blocks[BLOCK]["options"]
    for each in siblings:
        options["files"].append(each.file)
        options.setdefault("without", []).append(each.name)
        text = f"{each.name} is the project in {each.folder}, whose code is here: what that asks for is installed"
        draft.because(("blocks", BLOCK), None, text, Position(each.file, 1, 1))
        gpu = draft.gpu_package
        listed = listed._replace(names=listed.names | {*choose_frameworks(each.packages, catalog, draft), each.name})
        draft.gpu_package = draft.gpu_package or gpu
    return listed


def with_settings(programs: list[PythonSource], taken: JobFile | None, found: Found) -> list[PythonSource]:
    """Programs with what settings import that their command names: gin has modules registered by that."""
    from hpcgen.readers.gin import read_gin

    paths = found.tree.paths()
    words = [word.rpartition("=")[2].strip("\"'") for each in (taken.launched if taken else []) for word in each.words]
    files = [each for each in dict.fromkeys(words) if each.endswith(".gin") and each in paths]
    quiet = found._replace(problems=Problems())
    more = [name for file in files for name in quiet.read(read_gin, file) or []]
    return [replace(programs[0], imports=[*programs[0].imports, *more]), *programs[1:]] if programs else []


def _of_settings(programs: list[PythonSource], modules: Modules) -> set[str]:
    """First parts of what settings import that the project has in no place where it would be found by that."""
    of_gin = {each.package for source in programs for each in source.imports if each.where.file.endswith(".gin")}
    return {name for name in of_gin if not modules.module(name)}


def _with_own(found: Found, imported: Imported, listed: Listed, catalog: Catalog, draft: Draft) -> Listed:
    """The list, and with it what the project as a package asks for, where that has more of what is imported."""
    taken = draft.options_of(BLOCK).get("files", [])
    missing = imported.missing(listed, catalog)
    for name in found.tree.named(*OF_PROJECT):
        known = len(found.problems)
        own = found.packages(name) if taken and not {*taken} & {*OF_PROJECT} else None
        brings = [each for each in own.requirements if each.name in missing] if own is not None else []
        if own is None or not brings or len(found.problems) > known:
            del found.problems[known:]
            continue
        taken.append(name)
        text = f"{name} too, which has {some([each.name for each in brings])}, which is imported and not in {taken[0]}"
        draft.because(("blocks", BLOCK), None, text, brings[0].where)
        gpu = draft.gpu_package
        names = choose_frameworks(own, catalog, draft)
        draft.gpu_package = draft.gpu_package or gpu
        return listed._replace(names=listed.names | {*names})
    return listed


def with_groups(asked: Sequence[FileWord], found: Found, catalog: Catalog, draft: Draft) -> set[str]:
    """The extras with which people install the project, where its own list has them, with the blocks for them.

    Returns the names of the packages that these files have then.
    """
    options = draft.options_of(BLOCK)
    quiet = found._replace(problems=Problems())
    files = [quiet.packages(name) for name in options.get("files", [])] if asked else []
    there = {name for file in files if file is not None for name in file.group_names} - {*options.get("groups", [])}
    groups = [each for each in asked if each.text in there]
    if not groups:
        return set()
    names = [each.text for each in groups]
    options["groups"] = [*options.get("groups", []), *names]
    where = groups[0].where
    draft.because(("blocks", BLOCK), None, f"{where.file} installs the project with {some(names)}", where)
    gpu = draft.gpu_package
    listed = [choose_frameworks(file, catalog, draft, options["groups"]) for file in files if file is not None]
    draft.gpu_package = draft.gpu_package or gpu
    return {name for each in listed for name in each}


def _files(found: Found, programs: list[PythonSource]) -> list[str]:
    """Files that list packages, the likeliest first: locks, lists beside the program, then those of the project."""
    named, paths = found.tree.named, [each.path for each in found.tree.files]
    folders = dict.fromkeys(folder for each in programs for folder in above(each.file) if folder)
    beside = [f"{folder}/{name}" for folder in folders for name in (*_LISTS, "environment.yml", "environment.yaml")]
    pip = [path for path in paths if _REQUIREMENTS.fullmatch(path) and not re.search(r"(^|[/_.-])conda[._-]", path)]
    more = sorted((path for path in pip if not _NOT_MAIN.search(path)), key=_likely)
    conda = sorted((path for path in paths if _CONDA.fullmatch(path) and not _NOT_MAIN.search(path)), key=_likely)
    shown = [each.text for each in found.readme.environments if each.text in paths]
    if not shown and not any(_CONDA.fullmatch(path.rpartition("/")[2]) for path in paths):
        conda = [path for path in paths if re.fullmatch(r"[^/]+\.ya?ml", path) and _is_environment(path, found)]
    main = [path for path in more if _MAIN.search(path)]
    ordered = [
        *named(*_PYTHON_LOCKS, *_CONDA_LOCKS),
        *(path for path in beside if path in paths),
        *named(*_LISTS),
        *(main[:1] if not named(*_LISTS) else []),
        *[*shown, *conda][:1],
        *named(*OF_PROJECT),
        *(more[:1] if not main else []),
    ]
    return list(dict.fromkeys(ordered))


def _is_environment(path: str, found: Found) -> bool:
    """Whether a file of another name is an environment of conda: it names channels and packages."""
    file = found._replace(problems=Problems()).conda(path)
    return file is not None and bool(file.channels and file.needs)


def _likely(path: str) -> tuple[bool, bool, int, str]:
    """The order of several lists: one that is called like all of them, then one for GPUs or for training."""
    plain = re.search(r"(^|/)(requirements|environment)\.", path)
    return (not plain, not re.search(r"gpu|cuda|train", path), len(path), path)


def _take(
    found: Found, catalog: Catalog, draft: Draft, name: str, others: list[str], imported: Imported
) -> Listed | None:
    """One file, and why it is that one; None where it names no packages, so that another is to be taken."""
    why = _WHY.get(name.rpartition("/")[2], "the requirements of the project")
    if others:
        loose = name in _PYTHON_LOCKS + _CONDA_LOCKS and not {*others} & {*_PYTHON_LOCKS, *_CONDA_LOCKS}
        why += f"; taken rather than {some(others)}" + (", without hashes" if loose else "")
    where = Position(name, 1, 1)
    if name in _CONDA_LOCKS or name.endswith((".yml", ".yaml")):
        known = len(found.problems)
        conda = found.conda(name)
        if conda is None and name in _CONDA_LOCKS and others:
            first = found.problems[known]
            del found.problems[known:]
            draft.remark(f"{name} is not taken, since {first.message}; {first.remedy}", where)
            return None
        draft.put(("blocks", "conda_packages"), {"options": {"files": [name]}}, why, where)
        return conda_listed(conda, draft) if conda is not None else Listed(conda=True, complete=True)
    before = len(found.problems)
    packages = found.packages(name)
    if packages is not None and not packages.requirements and not packages.roots:
        # What is worked out when the project is built stands in setup.py, if at all.
        again = name == "pyproject.toml" and found.tree.named("setup.cfg", "setup.py")
        if len(found.problems) == before or again:
            del found.problems[before:]
            draft.remark(f"{name} names no {'dependencies' if name in OF_PROJECT else 'packages'}", where)
            return None
    draft.put(("blocks", "python_packages"), {"options": {"files": [name]}}, why, where)
    if packages is None:
        return Listed()
    packages = _meant(packages, draft)
    _without_forks(packages, catalog, draft)
    wanted = choose_frameworks(packages, catalog, draft)
    if len(found.problems) > before:
        _without_unneeded(packages, before, found, catalog, imported, draft)
    for note in packages.notes:
        draft.remark(note.text, note.where)
    taken = {*packages.default_groups, *(each.text for each in found.readme.groups)}
    if groups := [each for each in packages.group_names if each not in taken]:
        text = f"not installed: the groups {some(groups)}; `groups: [{groups[0]}]` next to `files` adds one"
        draft.because(("blocks", "python_packages"), None, text, where)
    # A lock has all that may be wanted, also what only some groups need.
    names = [*wanted, *(each.name for each in packages.requirements if packages.locked)]
    return Listed(frozenset(names), complete=packages.locked)


def _meant(packages: PackageFile, draft: Draft) -> PackageFile:
    """The list with the packages that are meant where it has a name of conda, or of a module."""
    mistaken = import_names().mistaken
    wrong = [each for each in packages.requirements if each.name in mistaken and not packages.locked]
    if not wrong:
        return packages
    options = draft.blocks[BLOCK]["options"]
    meant = [replace(each, name=mistaken[each.name], specifier="", version="") for each in wrong]
    options["without"] = [each.name for each in wrong]
    options["requirements"] = sorted({each.name for each in meant})
    for old, new in zip(wrong, meant, strict=True):
        text = f"{old.name} is not on the index under that name: replaced by {new.name}, without a version"
        draft.because(("blocks", BLOCK), None, text, old.where)
    return replace(packages, requirements=[*(each for each in packages.requirements if each not in wrong), *meant])


def _without_forks(packages: PackageFile, catalog: Catalog, draft: Draft) -> None:
    """Leave out what the list takes from a repository and a block brings as a release."""
    for each in packages.requirements:
        if isinstance(each, GitRequirement) and each.name in catalog.distributions and not packages.locked:
            options = draft.blocks[BLOCK]["options"]
            options["without"] = [*options.get("without", []), each.name]
            text = f"{each.name} is a release, from its block, and not what {each.url} has"
            draft.remark(text, each.where)


def _without_unneeded(
    packages: PackageFile, before: int, found: Found, catalog: Catalog, imported: Imported, draft: Draft
) -> None:
    """Leave out what is on lines that cannot be taken, where a block brings it or no program here imports it."""
    needed = {each for name in imported.first() for each in (*packages_with(name), normal_name(name.partition(".")[0]))}
    unneeded = [each for each in packages.refused if each.text in catalog.distributions or each.text not in needed]
    # What is only written wrongly is to be mended.
    if any(each.remedy == WRITE for each in found.problems[before:]):
        return
    known = found._replace(problems=Problems())
    known.packages(packages.file, names := [each.text for each in unneeded if each.text])
    if names and not known.problems:
        del found.problems[before:]
        options = draft.blocks[BLOCK]["options"]
        options["without"] = [*options.get("without", []), *names]
        for each in unneeded:
            why = "a block brings it" if each.text in catalog.distributions else "no program here imports it"
            text = f"{each.text} is left out, since its line names no release of it and {why}"
            draft.because(("blocks", BLOCK), None, text, each.where)


def choose_frameworks(file: PackageFile, catalog: Catalog, draft: Draft, groups: Collection[str] = ()) -> list[str]:
    """The blocks that bring packages of the file and its groups; the names of these packages and of the others."""
    from hpcgen.readers.locked import selected

    owners: dict[str, PackageRequirement] = {}
    wanted = selected(file, _FOR_PYTHON, _FOR_ARCHITECTURE, groups)
    draft.gpu_package = next((each.name for each in wanted if _ON_GPUS.fullmatch(each.name)), "")
    for each in wanted:
        if each.name in catalog.distributions:
            owners.setdefault(catalog.distributions[each.name], each)
    required = _required(wanted, catalog, owners)
    own = unlisted_blocks(catalog, [(block, each.specifier) for block, each in owners.items()])
    for block, each in owners.items():
        if block in own:
            text = f"{each.asked} is installed as the project's own wheel, untried: no release table has that version"
            draft.because(("blocks", "python_packages"), None, text, each.where)
            if block in GPU_BLOCKS:
                draft.gpu_package = draft.gpu_package or each.name
        else:
            _from_block(block, each, owners, draft)
        if block in MPI_BLOCKS:
            draft.add_block("mpi", f"{each.name} needs an MPI; the site decides which one", each.where)
    for block, (each, distribution) in required.items():
        draft.add_block(block, f"{each.asked} requires {distribution}, which comes from this block", each.where)
        if block in MPI_BLOCKS:
            draft.add_block("mpi", f"{distribution} needs an MPI; the site decides which one", each.where)
    for refused in file.refused:
        if refused.text in catalog.distributions:
            why = f"{refused.text} comes from this block, not as the line has it"
            draft.add_block(catalog.distributions[refused.text], why, refused.where)
    return [*(each.name for each in wanted), *(each.text for each in file.refused)]


def _from_block(block: str, each: PackageRequirement, owners: Collection[str], draft: Draft) -> None:
    options = {}
    if block == "horovod":
        options = {"frameworks": [name for name in ("tensorflow", "pytorch", "mxnet") if name in owners]}
    why = f"{each.asked} comes from this block, built for the site's CPU, GPU and MPI; the file says which version"
    draft.add_block(block, why, each.where, **(options if any(options.values()) else {}))
    draft.asked[block] = each.specifier


def _required(
    wanted: Iterable[PackageRequirement], catalog: Catalog, owners: Collection[str]
) -> dict[str, tuple[PackageRequirement, str]]:
    """Blocks of what packages require that no line names, each with the first such package and what it requires."""
    from hpcgen.planning.frameworks import required_frameworks

    found: dict[str, tuple[PackageRequirement, str]] = {}
    for each in wanted:
        for distribution in required_frameworks(catalog, each.name, each.extras):
            if (block := catalog.distributions[distribution]) not in owners:
                found.setdefault(block, (each, distribution))
    return found


def conda_listed(file: CondaFile, draft: Draft) -> Listed:
    """What a plan will say of the file, and whether it asks for MPI."""
    for note in file.notes:
        draft.remark(note.text, note.where)
    locked = [each.name for found in file.environments.values() for one in found.values() for each in one.packages]
    names = [*(each.name for each in file.needs), *(each.name for each in file.pip), *locked]
    names += [each.text for each in file.refused]
    draft.gpu_package = next((name for name in names if _ON_GPUS.fullmatch(name)), "")
    draft.torch_of_conda = not {"pytorch", "pytorch-gpu", "torch"}.isdisjoint(names)
    for each in file.needs:
        if each.name in ("mpi4py", "mpich", "openmpi", "mpi"):
            draft.add_block("mpi", f"{each.spec}: the image's MPI replaces conda's", each.where)
    return Listed(frozenset(names), conda=True, complete=file.locked, channels=tuple(file.channels))
