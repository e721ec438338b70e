"""Which file of packages is taken, and the blocks of the frameworks that it names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import Position
from hpcgen.core.support.units import some
from hpcgen.planning.own_wheels import unlisted_blocks
from hpcgen.project.draft import Draft
from hpcgen.project.found import Found

if TYPE_CHECKING:
    from hpcgen.core.model.conda import CondaFile
    from hpcgen.core.model.project import PackageFile, PackageRequirement

MPI_BLOCKS = ("mpi4py", "horovod", "deepspeed")
GPU_BLOCKS = ("pytorch", "tensorflow", "jax", "horovod", "deepspeed", "mxnet", "onnxruntime", "vllm")
"""Blocks whose programs compute on GPUs where there are some."""
_PYTHON_LOCKS = ("pylock.toml", "uv.lock", "poetry.lock", "pdm.lock")
_CONDA_LOCKS = ("pixi.lock", "conda-lock.yml", "conda-lock.yaml", "conda-linux-64.lock")
_WISHES = ("requirements.txt", "requirements.in", "environment.yml", "environment.yaml", "pyproject.toml")
_REQUIREMENTS = re.compile(r"(requirements/[^/]+|[^/]*requirements[^/]*)\.(txt|in)")
_WHY = {
    **dict.fromkeys(_PYTHON_LOCKS, "a lock: every package in one version, by its hash"),
    **dict.fromkeys(_CONDA_LOCKS, "a lock: every package in one build, by its hash"),
    "requirements.txt": "the requirements of the project; `hpcgen lock` chooses the versions that they leave open",
    "requirements.in": "the requirements of the project; `hpcgen lock` chooses the versions",
    "environment.yml": "the requirements of the project; `hpcgen lock` chooses the builds",
    "environment.yaml": "the requirements of the project; `hpcgen lock` chooses the builds",
    "pyproject.toml": "the project's dependencies; `hpcgen lock` chooses the versions",
}
_ON_GPUS = re.compile(
    r"(cupy|nvidia|cuda|pycuda|jax|tensorflow|pytorch|rmm|cudf|cuml)(-.*)?|pytorch-gpu|torchvision|cudatoolkit"
)
"""Packages of an index or of conda that bring code for GPUs, or come with what does."""
_FOR_ARCHITECTURE, _FOR_PYTHON = "x86_64", "3.12"
"""What markers are read for here; a plan reads them again for its own image."""
_IMPORTED = {"torch": "pytorch", "tensorflow": "tensorflow", "jax": "jax", "mpi4py": "mpi4py", "horovod": "horovod"}


def choose_packages(found: Found, catalog: Catalog, draft: Draft) -> None:
    """The block that installs the project's packages, and those of the frameworks among them."""
    there = found.tree.named(*_PYTHON_LOCKS, *_CONDA_LOCKS, *_WISHES)
    if "requirements.txt" not in there and "requirements.in" not in there:
        more = sorted(each.path for each in found.tree.files if _REQUIREMENTS.fullmatch(each.path))
        at = next((n for n, name in enumerate(there) if name in _WISHES), len(there))
        there[at:at] = more[:1]
    if there and there[0] != "pyproject.toml":
        # Of a project that has another file, pyproject.toml says what the package needs, and that is in the other.
        _take(found, catalog, draft, there[0], [name for name in there[1:] if name != "pyproject.toml"])
    elif there:
        _take(found, catalog, draft, there[0], [])
    if not draft.blocks:
        _from_imports(found, draft)


def _take(found: Found, catalog: Catalog, draft: Draft, name: str, others: list[str]) -> None:
    """One file, and why it is that one."""
    conda = name in _CONDA_LOCKS or name.startswith("environment.")
    why = _WHY.get(name, "the requirements of the project")
    if others:
        why += f"; taken rather than {some(others)}" + (
            ", without hashes" if name in _PYTHON_LOCKS + _CONDA_LOCKS and _loose(others) else ""
        )
    where = Position(name, 1, 1)
    if conda:
        file = found.conda(name)
        if file is not None:
            _conda_remarks(file, draft)
        draft.put(("blocks", "conda_packages"), {"options": {"files": [name]}}, why, where)
        return
    packages = found.packages(name)
    if packages is not None and not packages.requirements and not packages.roots and not found.problems:
        if name == "pyproject.toml":
            draft.remark("pyproject.toml names no dependencies", where)
        else:
            draft.remark(f"{name} names no packages", where)
        return
    draft.put(("blocks", "python_packages"), {"options": {"files": [name]}}, why, where)
    if packages is not None:
        _frameworks(packages, catalog, draft)
        for note in packages.notes:
            draft.remark(note.text, note.where)
        if groups := [each for each in packages.group_names if each not in packages.default_groups]:
            text = f"not installed: the groups {some(groups)}; `groups: [{groups[0]}]` next to `files` adds one"
            draft.because(("blocks", "python_packages"), None, text, where)


def _loose(names: Iterable[str]) -> bool:
    return all(name in _WISHES for name in names)


def _frameworks(file: PackageFile, catalog: Catalog, draft: Draft) -> None:
    """The blocks that bring packages of the file."""
    from hpcgen.readers.locked import selected

    owners: dict[str, PackageRequirement] = {}
    wanted = selected(file, _FOR_PYTHON, _FOR_ARCHITECTURE)
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


def _from_block(block: str, each: PackageRequirement, owners: Collection[str], draft: Draft) -> None:
    options = {}
    if block == "horovod":
        options = {"frameworks": [name for name in ("tensorflow", "pytorch", "mxnet") if name in owners]}
    why = f"{each.asked} comes from this block, built for the site's CPU, GPU and MPI; the file says which version"
    draft.add_block(block, why, each.where, **(options if any(options.values()) else {}))


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


def _conda_remarks(file: CondaFile, draft: Draft) -> None:
    """What a plan will say of the file, and whether it asks for MPI."""
    for note in file.notes:
        draft.remark(note.text, note.where)
    locked = [each.name for found in file.environments.values() for one in found.values() for each in one.packages]
    names = [*(each.name for each in file.needs), *locked]
    draft.gpu_package = next((name for name in names if _ON_GPUS.fullmatch(name)), "")
    for each in file.needs:
        if each.name in ("mpi4py", "mpich", "openmpi", "mpi"):
            draft.add_block("mpi", f"{each.spec}: the image's MPI replaces conda's", each.where)


def _from_imports(found: Found, draft: Draft) -> None:
    """Frameworks that sources import, where no file says what the project needs: a hint, no more."""
    for source in found.sources:
        for name, where in source.imports.items():
            if name in _IMPORTED and _IMPORTED[name] not in draft.blocks:
                why = f"imported here, and no file lists the requirements: the newest {name} that fits"
                draft.add_block(_IMPORTED[name], why, where)
                if _IMPORTED[name] in MPI_BLOCKS:
                    draft.add_block("mpi", f"{name} needs an MPI; the site decides which one", where)
