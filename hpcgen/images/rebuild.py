"""The kit out of an image again, and whether this hpcgen would write the same one today."""

from __future__ import annotations

import msgspec

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError, InputError
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.file_formats import KIT
from hpcgen.core.support.hashing import FOLDER, LIST, FileTree
from hpcgen.core.support.writing import CopiedFile, KitFile
from hpcgen.images.recorded import StoredKit, typed_kit
from hpcgen.kit.copied import files_of_trees, trees_of_list
from hpcgen.kit.kit import make_kit
from hpcgen.kit.lockfile.lock import is_sealed, parse_lock


class Comparison(msgspec.Struct, frozen=True):
    """``differ``: files that this hpcgen writes otherwise; ``reason``: why it writes none at all, else empty.

    ``made`` is the kit that it writes.
    """

    differ: list[str] = []
    reason: str = ""
    made: dict[str, KitFile] = {}

    @property
    def same(self) -> bool:
        """Whether it writes every file as it is in the image."""
        return not self.differ and not self.reason


def compare(kit: StoredKit, catalog: Catalog, name: str) -> Comparison:
    """Make the kit from the plan in the image, with this hpcgen and its collections, and lay it beside the stored one.

    Files that only one of them has count as different, unless the image could be read in parts only.
    """
    try:
        plan = typed_kit(kit, name).plan
        # Here no more of them is asked than which they are.
        trees = _listed(kit, plan, name)
        catalog.copied.places.append(lambda copy: trees.get(copy.to))
        text = kit.files["hpcgen.lock"].text
        lock = parse_lock(text, f"hpcgen.lock in {name}") if is_sealed(text) else None
        made = make_kit(plan, catalog, lock).files
    except HpcgenError as error:
        return Comparison(reason=error.problems[0].message)
    names = set(kit.files) | (set(made) if kit.whole else set())
    return Comparison(sorted(each for each in names if made.get(each) != kit.files.get(each)), made=made)


def stack_files(kit: StoredKit, catalog: Catalog, name: str) -> tuple[dict[str, CopiedFile], list[str]]:
    """The stack's own files, which an image has at their places alone: those that are here, and what of them is not.

    Returns them by their names in the kit, and a sentence for each that is missing.
    """
    missing: list[str] = []
    here: dict[str, FileTree] = {}
    try:
        plan = typed_kit(kit, name).plan
    except HpcgenError:
        return {}, []
    for copy in plan.copied:
        try:
            here[copy.to] = catalog.copied.tree(plan, copy)
        except InputError as error:
            put = f"put it into the kit's {FOLDER}{copy.to} as its {LIST} says, or copy {copy.to} out of the image"
            missing.append(f"{error.problems[0].message}; before a build, {put}")
    return files_of_trees(here), missing


def _listed(kit: StoredKit, plan: Plan, name: str) -> dict[str, FileTree]:
    return trees_of_list(kit.files[LIST].text, plan, f"{LIST} in {name}") if LIST in kit.files and plan.copied else {}


def whole_kit(kit: StoredKit, comparison: Comparison, name: str) -> dict[str, KitFile]:
    """The files to write: those of the image, and where it was read in parts only, the rest as this hpcgen makes it.

    InputError: the rest is missing and cannot be made such that it fits, or a newer hpcgen made a kit of files that
    this one does not know.
    """
    KIT.check(kit.plan, f"the kit in {name}")
    if kit.whole:
        return kit.files
    if not comparison.same:
        raise InputError(
            f"only labels of {name} can be read here, and this hpcgen would write other files of its kit differently",
            remedy="read the image where its engine runs, or use the hpcgen named by its label io.hpcgen.version",
        )
    return comparison.made
