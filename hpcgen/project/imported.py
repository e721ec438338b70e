"""Packages that programs import and no list names: frameworks as blocks, what is well known by name, the rest told."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from packaging.specifiers import SpecifierSet

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import FileWord, PythonSource
from hpcgen.core.model.project import BLOCK
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.units import some
from hpcgen.project.draft import Draft
from hpcgen.project.modules import conda_name, conda_names, import_names, is_standard, packages_with

_LAST_1 = "1.15.5"
"""The last release of TensorFlow 1."""
MPI_BLOCKS = ("mpi4py", "horovod", "deepspeed")
_MOST = 12
"""Of what is told in one remark."""


class Listed(NamedTuple):
    """The packages that the project's list has, by name.

    ``conda``: those are conda's, from ``channels``. ``complete``: the list is a lock, which has all that is wanted.
    """

    names: frozenset[str] = frozenset()
    conda: bool = False
    complete: bool = False
    channels: tuple[str, ...] = ()

    def has(self, name: str, packages: Sequence[str]) -> bool:
        """Whether it has an imported name by one of its packages, by its name in conda, or by a package called so.

        One for GPUs may have CUDA's version behind its name: dgl-cuda11.1.
        """
        known = {*packages, *conda_names(name), normal_name(name.partition(".")[0])}
        return not known.isdisjoint(re.sub(r"-cuda[\d.-]*$", "", each) for each in self.names)


class Imported(NamedTuple):
    """What files import. ``own``: names that may be files or folders of the project.

    ``installed``: packages in one version that the README installs. ``programs``: those of the files that are started.
    """

    sources: list[PythonSource]
    own: Collection[str]
    installed: Sequence[FileWord] = ()
    programs: Sequence[PythonSource] = ()

    def first(self) -> Mapping[str, Position]:
        """The first place of each name that is neither Python's nor the project's, without which nothing works."""
        found: dict[str, Position] = {}
        for each in (each for source in self.sources for each in source.imports if each.sure and each.package):
            if each.package not in self.own and not is_standard(each.package):
                found.setdefault(each.name, each.where)
        return found

    def late(self, listed: Listed, catalog: Catalog) -> dict[str, Position]:
        """Packages that programs import in functions or under conditions, and neither otherwise nor in the list."""
        found: dict[str, Position] = {}
        there = self.missing(listed, catalog)
        for each in (each for source in self.programs for each in source.imports if each.late and each.package):
            packages = packages_with(each.name, _known(catalog)) if each.package not in self.own else ()
            if packages and not listed.has(each.name, packages) and packages[0] not in there:
                found.setdefault(packages[0], each.where)
        known = {*listed.names, *there, *found}
        return {name: where for name, where in found.items() if not known & import_names().comes_with.get(name, set())}

    def late_strange(self, listed: Listed, catalog: Catalog) -> dict[str, Position]:
        """First parts of names of which nobody here knows the package, that are imported only in such places."""
        known = _known(catalog)
        sure = {name.partition(".")[0] for name in self.first()}
        # A program's own, and what several of its modules import, is more than a choice among others.
        files = Counter(name for source in self.sources for name in {each.package for each in source.imports})
        own = {source.file for source in self.programs}
        every = [each for source in self.sources for each in source.imports if each.late and each.package]
        late = [each for each in every if each.where.file in own or files[each.package] > 1]
        return {
            each.package: each.where
            for each in reversed(late)
            if not (each.package in self.own or each.package in sure or is_standard(each.package))
            and not (listed.has(each.name, ()) or packages_with(each.name, known))
        }

    def missing(self, listed: Listed, catalog: Catalog) -> dict[str, Position]:
        """Packages that are imported and not in the list, but for those that come with others anyhow."""
        known = _known(catalog)
        found: dict[str, Position] = {}
        for name, where in self.first().items():
            packages = packages_with(name, known)
            if packages and not listed.has(name, packages):
                found.setdefault(packages[0], where)
        there = {*listed.names, *found}
        return {name: where for name, where in found.items() if not there & import_names().comes_with.get(name, set())}

    def strange(self, listed: Listed, catalog: Catalog) -> dict[str, Position]:
        """First parts of names of which nobody here knows the package."""
        known = _known(catalog)
        names = {name: where for name, where in self.first().items() if not listed.has(name, ())}
        told = {name.partition(".")[0] for name in names if packages_with(name, known)}
        return {
            first: where for name, where in reversed(names.items()) if (first := name.partition(".")[0]) not in told
        }


def add_imported(imported: Imported, listed: Listed, catalog: Catalog, draft: Draft) -> None:
    """Blocks and packages for what is imported and not listed; what is not known is a remark."""
    blocks = {name for name, block in catalog.distributions.items() if block in draft.blocks}
    with_blocks = listed._replace(names=listed.names | blocks)
    wanted = imported.missing(with_blocks, catalog)
    late = imported.late(with_blocks, catalog)
    if not listed.names and not listed.conda:
        # Without a list nothing says that a program can do without them; which of several frameworks is for a person.
        brought = {name: _frameworks(name, catalog) for name in (*wanted, *late)}
        several = len({each for names in brought.values() for each in names}) > 1
        wanted |= {name: where for name, where in late.items() if not brought[name] or not several}
    if listed.conda and not listed.complete and "conda-forge" in (listed.channels or ("conda-forge",)):
        add_to_conda(draft, wanted, "imported, and not in the list")
    elif listed.conda or listed.complete:
        _tell(wanted, "imported, and not in the list of packages", "add what is missing there", draft)
    else:
        _add(wanted, imported, listed, catalog, draft)
    left = {name: where for name, where in late.items() if name not in wanted} | imported.late_strange(listed, catalog)
    text = "imported only in functions or under conditions, and not in the list of packages"
    _tell(left, text, "add what your runs need", draft)
    text = "imported, in no list, and init does not know which package has it"
    remedy = "add that to the list or to `requirements`, or copy the module"
    _tell(imported.strange(listed, catalog), text, remedy, draft)
    _old_tensorflow(imported, draft)
    _compilers(imported, listed, draft)


def _frameworks(name: str, catalog: Catalog) -> set[str]:
    """What a package requires of the blocks' packages, or itself if it is such a one and needs no other.

    PyTorch's own libraries are PyTorch.
    """
    from hpcgen.planning.frameworks import required_frameworks

    found = {*required_frameworks(catalog, name)} or {name} & catalog.distributions.keys()
    return {"torch" if each.startswith("torch") else each for each in found}


def _compilers(imported: Imported, listed: Listed, draft: Draft) -> None:
    """What compiles CUDA code of the project while it runs."""
    compiles = next((each.compiles for each in imported.sources if each.compiles), None)
    if compiles is None or "pytorch" not in draft.blocks:
        return
    with_extensions(draft, f"{compiles.text} compiles CUDA code when the program runs", compiles.where)
    if not listed.complete and "ninja" not in listed.names:
        draft.add_block(BLOCK, f"ninja, by which {compiles.text} compiles")
        draft.blocks[BLOCK].setdefault("options", {}).setdefault("requirements", []).append("ninja")


def add_to_conda(draft: Draft, wanted: Mapping[str, Position], why: str) -> None:
    """Packages by their names in the index, as further packages of conda."""
    if wanted:
        options = draft.blocks["conda_packages"]["options"]
        options["packages"] = [*options.get("packages", []), *sorted(conda_name(name) for name in wanted)]
        draft.torch_of_conda = draft.torch_of_conda or "torch" in wanted
        draft.because(("blocks", "conda_packages"), None, f"{why}: {some(list(_said(wanted)), 30)}")


def _known(catalog: Catalog) -> set[str]:
    """Packages of which the release table knows what they require; they are imported by their names."""
    rows = catalog.releases(BLOCK).values() if BLOCK in catalog.names("block") else ()
    table = msgspec.convert(next((row.values.get("requires", {}) for row in rows), {}), dict[str, str])
    return {each.partition("[")[0] for each in table}


def _add(wanted: Mapping[str, Position], imported: Imported, listed: Listed, catalog: Catalog, draft: Draft) -> None:
    """Blocks of frameworks, also of those that packages require, and the other packages by their names."""
    from hpcgen.planning.frameworks import required_frameworks

    by_list = "no list names it" if listed.names else "no file lists the requirements"
    for name, where in wanted.items():
        if (block := catalog.distributions.get(name)) is not None and block not in draft.blocks:
            _block(block, f"{name} is imported here, and {by_list}", where, draft)
    others = {name: where for name, where in wanted.items() if name not in catalog.distributions}
    own = {catalog.distributions[name] for name in listed.names if name in catalog.distributions}
    for name, where in others.items():
        for distribution in required_frameworks(catalog, name):
            if (block := catalog.distributions[distribution]) not in {*draft.blocks, *own}:
                _block(block, f"{name} is imported here and requires {distribution}", where, draft)
    for block in [name for name in draft.blocks if name not in own and name in catalog.distributions.values()]:
        _version(block, imported.installed, catalog, draft)
    if others:
        why = f"imported, and in no list: {some(list(_said(others)), 30)}; `hpcgen lock` chooses their versions"
        draft.add_block(BLOCK, why)
        draft.blocks[BLOCK].setdefault("options", {}).setdefault("requirements", []).extend(sorted(others))


def _block(block: str, why: str, where: Position, draft: Draft) -> None:
    options = {}
    if block == "horovod":
        options = {"frameworks": [each for each in ("tensorflow", "pytorch", "mxnet") if each in draft.blocks]}
    draft.add_block(block, why, where, **(options if any(options.values()) else {}))
    if block in MPI_BLOCKS:
        draft.add_block("mpi", f"{block} needs an MPI; the site decides which one", where)


def _version(block: str, installed: Sequence[FileWord], catalog: Catalog, draft: Draft) -> None:
    """The version of a framework that the README installs, where there is such a release; else the newest is taken."""
    from hpcgen.planning.own_wheels import is_listed

    alike = [each for each, of in catalog.distributions.items() if of == block]
    pin = next((each for each in installed if normal_name(each.text.partition("==")[0]) in alike), None)
    if pin is None:
        draft.because(("blocks", block), None, "no version of it is asked for: the newest that fits is taken")
        return
    version = f"=={pin.text.partition('==')[2]}"
    if is_listed(catalog, block, version):
        draft.blocks[block]["version"] = version
        draft.because(("blocks", block), version, f"{pin.text} is what the README installs", pin.where)
    else:
        text = f"the README installs {pin.text}, of which no release is known here; the newest {block} may be too new"
        draft.remark(text, pin.where)


def _old_tensorflow(imported: Imported, draft: Draft) -> None:
    old = next((each.old for each in imported.sources if each.old is not None), None)
    if old is None or "tensorflow" not in draft.blocks:
        return
    if "keras" in old.text:
        text = (
            f"{old.text} is of Keras 2: TensorFlow has Keras 3 since 2.16, so name an older release, or write what "
            "Keras 3 has"
        )
        draft.remark(text, old.where)
        return
    if "version" not in draft.blocks["tensorflow"] and SpecifierSet(draft.asked.get("tensorflow", "")).contains(
        _LAST_1
    ):
        draft.blocks["tensorflow"]["version"] = "<2"
        draft.because(("blocks", "tensorflow"), "<2", f"{old.text} is of TensorFlow 1", old.where)
    elif not draft.blocks["tensorflow"].get("version", "").startswith(("<2", "==1", "~=1")):
        text = (
            f"{old.text} is of TensorFlow 1: where the plan has a newer release, the code has to be moved to that "
            "or to `tensorflow.compat.v1`"
        )
        draft.remark(text, old.where)


def _said(named: Mapping[str, Position]) -> Iterator[str]:
    return (f"{name} ({where.file}:{where.line})" for name, where in named.items())


def _tell(named: Mapping[str, Position], what: str, remedy: str, draft: Draft) -> None:
    if named:
        draft.remark(f"{what}: {some(list(_said(named)), _MOST)}; {remedy}")


def with_extensions(draft: Draft, why: str, where: Position) -> None:
    """PyTorch with the compilers that its extensions in CUDA need, on nodes where CUDA computes."""
    draft.blocks["pytorch"].setdefault("options", {})["extensions"] = True
    draft.because(("blocks", "pytorch"), None, f"{why}; where it can do without, remove `extensions`", where)
