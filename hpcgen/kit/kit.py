"""plan → kit: the files that ``render -o DIR`` writes, as text."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hpcgen.backends.schedulers import SCHEDULERS
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.decoding import record_from
from hpcgen.core.model.fields import Record
from hpcgen.core.model.image_paths import LOCK_SIGNATURE
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.recipe_facts import Certificate, RecipeFacts
from hpcgen.core.support.file_formats import KIT, RECIPE
from hpcgen.core.support.hashing import LIST, read_plain
from hpcgen.core.support.units import counted, size, some
from hpcgen.core.support.writing import CopiedFile, KitFile, write_kit
from hpcgen.kit.copied import files_of_trees, list_text, listed, names_in
from hpcgen.kit.lockfile.lock import HEADER, lock_text
from hpcgen.recipe.assemble import assemble, notices
from hpcgen.recipe.formats import FACTS_FILE, FORMATS, format_for
from hpcgen.recipe.formats.bundled import base_name
from hpcgen.recipe.stages import Assembly

if TYPE_CHECKING:
    from hpcgen.core.model.lock import Lock
    from hpcgen.recipe.formats.hpccm_session import Written

DECISION, REPORT, STACK = "decision.json", "decision.md", "stack.yaml"
"""What ``hpcgen optimise`` adds to a kit: why it is as it is, for programs and for people; a stack that is its own."""
_MAX_BYTES = 64 * 1024 * 1024


class Kit(msgspec.Struct, frozen=True):
    """The recipe as text, every file of the kit by name, and what the user should know.

    ``details``: what is shown of it only on request. ``copied``: the stack's own files by their names in the kit, each
    where it lies now.
    """

    recipe: str
    files: dict[str, KitFile]
    notices: list[str]
    details: list[str] = []
    copied: dict[str, CopiedFile] = {}

    def __repr__(self) -> str:
        return f"<Kit of {counted(len(self.all_files), 'file')}: {some(list(self.all_files))}>"

    def _repr_html_(self) -> str:
        """For notebooks: its files, and what the user should know."""
        from hpcgen.core.support.markup import table

        rows = [(name, size(len(file.text.encode()))) for name, file in self.files.items()]
        rows += [(name, f"copied from {file.source}") for name, file in self.copied.items()]
        return table(("file", "size"), [*rows, *(("notice", each) for each in self.notices)])

    @property
    def all_files(self) -> dict[str, KitFile | CopiedFile]:
        """Everything that a kit's folder has."""
        return {**self.files, **self.copied}


def programs() -> frozenset[str]:
    """Names of the files of kits that are started."""
    jobs = (SCHEDULERS.find(name).file_name for name in SCHEDULERS.names())
    return frozenset({"build.sh", "selftest.sh", "preflight.sh", *jobs})


def known_files() -> frozenset[str]:
    """Every name that a file of some kit has: what an older kit in the same folder may have left behind."""
    recipes = (format_for(name).recipe_file for name in FORMATS.names())
    return programs() | {
        "plan.json",
        "hpcgen.lock",
        LOCK_SIGNATURE,
        FACTS_FILE,
        LIST,
        DECISION,
        REPORT,
        STACK,
        *recipes,
    }


def plan_text(plan: Plan) -> str:
    """plan.json: the whole plan, so that the kit can be written again from it alone."""
    return _json(plan)


def read_plan(data: object, name: str) -> Plan:
    """The plan in what a plan.json says.

    InputError: a newer hpcgen wrote it. msgspec.ValidationError: it is no plan of this release.
    """
    KIT.check(data, name)
    plan = record_from(data, Plan)
    if said := plan.contradiction():
        raise msgspec.ValidationError(said)
    return plan


def read_facts(data: object, name: str) -> RecipeFacts:
    """What a recipe.json says; raises as :func:`read_plan` does."""
    RECIPE.check(data, name)
    return record_from(data, RecipeFacts)


def recipe_facts(written: Written, assembly: Assembly) -> RecipeFacts:
    """What a build must know of a recipe beside its text."""
    certificates = [
        Certificate(source=file.source, name=base_name(file.target)) for file in assembly.builder.host_files
    ]
    return RecipeFacts(
        recipe=RECIPE.newest,
        steps=written.steps,
        certificates=certificates,
        files=[path for path in assembly.files if "/" in path],
        heredoc=written.heredoc,
        bases=written.bases,
        stored=written.stored,
        rank_tests=assembly.rank_tests,
        kept=written.kept,
    )


def _json(record: Record) -> str:
    return msgspec.json.format(msgspec.json.encode(record), indent=1).decode() + "\n"


def store_kit(folder: Path, files: Mapping[str, KitFile | CopiedFile]) -> None:
    """Write a kit, whole or not at all, in place of an older one; what is not hpcgen's there stays.

    OutputError: as :func:`hpcgen.core.support.writing.write_kit`. InputError: a file that is copied is no longer what
    was planned.
    """

    # Those that the new one names too may have been put there by hand, after a rebuild without them.
    new = files.get(LIST)
    kept = set(names_in(new.text) if isinstance(new, KitFile) else [])

    def older(folder: Path) -> set[str]:
        names: list[str] = []
        with contextlib.suppress(OSError, ValueError, RecursionError):
            names = msgspec.json.decode(read_plain(folder / FACTS_FILE, _MAX_BYTES), type=RecipeFacts).files
        return {*names, *(set(listed(folder)) - kept)}

    write_kit(folder, files, known_files(), _is_kit, older)


def _is_kit(folder: Path) -> bool:
    """Whether hpcgen wrote what lies there: a lock may be in anybody's folder, beside their own Dockerfile."""
    try:
        head = read_plain(folder / "hpcgen.lock", len(HEADER))[: len(HEADER)]
        plan = msgspec.json.decode(read_plain(folder / "plan.json", _MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return False
    return head == HEADER.encode() and isinstance(plan, dict) and {"hpcgen", "site", "stack"} <= plan.keys()


def make_kit(plan: Plan, catalog: Catalog, lock: Lock | None = None) -> Kit:
    """Every file of the kit; with a lock everything that it pins stands in the recipe, and it is itself in the kit.

    InputError where files that the stack copies are not here as they were planned.
    """
    assembly = assemble(plan, catalog) if lock is None else assemble(plan, catalog, lock.pins, lock.content)
    return kit_of(plan, catalog, assembly, lock)


def kit_of(plan: Plan, catalog: Catalog, assembly: Assembly, lock: Lock | None = None) -> Kit:
    """The kit of an assembly; errors as of :func:`make_kit`."""
    from hpcgen.launch.script import job_script, preflight_script

    form = format_for(plan.format)
    written = form.recipe(plan, assembly)
    recipe = str(written.text)
    job_name, job_text = job_script(plan, assembly.final.environment)
    files = {
        form.recipe_file: KitFile(recipe, form.recipe_file == "build.sh"),
        job_name: KitFile(str(job_text), True),
        "preflight.sh": KitFile(str(preflight_script(plan, assembly.final.environment)), True),
        "plan.json": KitFile(plan_text(plan), False),
        FACTS_FILE: KitFile(_json(recipe_facts(written, assembly)), False),
        "hpcgen.lock": KitFile(lock_text(plan, assembly) if lock is None else lock.text, False),
    }
    files |= {path: KitFile(file.text, file.executable) for path, file in assembly.files.items()}
    if "build.sh" not in files:
        files["build.sh"] = KitFile(str(form.build_script(plan, assembly)), True)
    if lock is not None and lock.signature:
        files[LOCK_SIGNATURE] = KitFile(lock.signature)
    trees = {each.to: catalog.copied.tree(plan, each) for each in plan.copied}
    if trees:
        files[LIST] = KitFile(list_text(trees))
    brought = {each.to: trees[each.to] for each in plan.brought}
    copied = {
        **files_of_trees(brought),
        **{each.path: CopiedFile(each.source, each.sha256) for each in assembly.archives},
    }
    return Kit(recipe, files, notices(assembly), assembly.details, copied)
