"""A plan and a store of artifacts → a recipe that takes what is there, once what is missing has been compiled."""

from __future__ import annotations

import getpass
import gzip
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from hpcgen._version import __version__
from hpcgen.backends.engines.building import query
from hpcgen.builders.artifacts.bundled import bundled_store
from hpcgen.builders.artifacts.claims import claimed
from hpcgen.builders.artifacts.local_wheels import with_local_wheels
from hpcgen.builders.artifacts.quick import QuickRecipe
from hpcgen.builders.artifacts.sources import ArtifactSource
from hpcgen.builders.artifacts.store import ArtifactStore
from hpcgen.builders.choosing import choose_builder
from hpcgen.builders.display import Watcher
from hpcgen.builders.preparing import BuildOptions
from hpcgen.builders.running import build_kit
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import BuildFailedError
from hpcgen.core.model.artifact import Artifact
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.file_formats import ARTIFACT
from hpcgen.core.support.hashing import file_sha256
from hpcgen.core.support.leftovers import scratch_folder
from hpcgen.core.support.units import DAWN
from hpcgen.core.support.writing import CopiedFile
from hpcgen.images.convert import convert
from hpcgen.images.reference import ImageReference
from hpcgen.kit.folder import here_document, read_kit
from hpcgen.kit.kit import kit_of, recipe_facts, store_kit
from hpcgen.recipe.artifact_recipes import KeyedBlock, artifact_assembly, artifact_plan, keyed_blocks
from hpcgen.recipe.artifacts import StoredArtifact
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.formats import format_for
from hpcgen.recipe.stages import Assembly

if TYPE_CHECKING:
    from hpcgen.core.model.lock import Lock

_PERMISSIONS = 0o777


def with_artifacts(
    plan: Plan,
    catalog: Catalog,
    lock: Lock | None,
    content: str,
    options: BuildOptions,
    watcher: Watcher,
    compiles: bool = True,
) -> BuildOptions:
    """How the kit of a plan is built with a store of artifacts and this machine's packages, as the options or the
    bundle have them.

    ``content``: the plan hash. ``compiles``: as of :func:`stored_artifacts`, which raises the same errors.
    """
    stored = stored_artifacts(plan, catalog, lock, options, watcher, compiles)
    if not stored and not options.local_wheels:
        return options
    pins = lock.pins if lock is not None else None
    quick = _quick(plan, assemble(plan, catalog, pins, content, stored=stored), stored, options, watcher.note)
    return replace(options, quick=quick)


def stored_artifacts(
    plan: Plan,
    catalog: Catalog,
    lock: Lock | None,
    options: BuildOptions,
    watcher: Watcher,
    compiles: bool = True,
    only: str = "",
) -> dict[str, StoredArtifact]:
    """What the store that the options name has of a plan, by block.

    compiles: what the store lacks is brought from where the options say, or compiled, each block in an image of its
        own, and kept. From a bundle it is compiled in the image; what the bundle itself has is taken.
    only: this block alone, and what it is compiled with.
    BuildFailedError, MissingToolError, OutputError: as :func:`~hpcgen.builders.running.build_kit`.
    """
    own = ArtifactStore(options.artifacts, options.signers) if options.artifacts is not None else None
    bundled = bundled_store(options.bundle, options.signers)
    stores = [each for each in (own, bundled) if each is not None]
    if not stores:
        return {}
    asked = _Asked(plan, catalog, lock, options, watcher, stores[0])
    sources = [ArtifactSource(each, asked.store) for each in options.artifact_sources]
    stored: dict[str, StoredArtifact] = {}
    blocks = keyed_blocks(plan, catalog, lock.pins if lock is not None else None)
    wanted = {only}.union(*(each.needs for each in blocks if each.name == only))
    for keyed in (each for each in blocks if not only or each.name in wanted):
        held = (each.find(keyed.key, watcher.note) for each in stores)
        found = next((each for each in held if each is not None), None)
        if found is not None:
            watcher.note(asked.taken(found))
        elif compiles and plan.supply == "network":
            found = _obtained(asked, keyed, sources, stored)
        if found is not None:
            stored[keyed.name] = found
    of_bundle = bundled is not None and any(each.place == str(bundled.folder) for each in stored.values())
    if options.signers is None and (of_bundle or any(each.gave for each in sources)):
        watcher.note("warning: no signature was required: list trusted signers as `signers` in your config file")
    return stored


def _quick(
    plan: Plan,
    assembly: Assembly,
    stored: Mapping[str, StoredArtifact],
    options: BuildOptions,
    tell: Callable[[str], None],
) -> QuickRecipe:
    """The recipe of an assembly that unpacks what is stored, and takes packages of this machine's folders if asked to;
    ``tell`` is told which.
    """
    if options.local_wheels:
        assembly = with_local_wheels(assembly, tell)
    written = format_for(plan.format).recipe(plan, assembly)
    facts, text = recipe_facts(written, assembly), str(written.text)
    return QuickRecipe(
        recipe=here_document(text, facts.heredoc) if facts.heredoc else text,
        facts=facts,
        archives={each.path: CopiedFile(each.source, each.sha256) for each in assembly.archives},
        origins={name: replace(each.record.origin, place=each.place) for name, each in stored.items()},
    )


class _Asked(NamedTuple):
    """What is built, how, and with which store."""

    plan: Plan
    catalog: Catalog
    lock: Lock | None
    options: BuildOptions
    watcher: Watcher
    store: ArtifactStore

    def taken(self, found: StoredArtifact) -> str:
        """A line on what is taken from the store."""
        return f"{found.record.label}: {found.record.origin}; taken from {found.place}"


def _obtained(
    asked: _Asked, keyed: KeyedBlock, sources: Sequence[ArtifactSource], stored: Mapping[str, StoredArtifact]
) -> StoredArtifact:
    """What the store does not have: from others, or compiled; if another process is at it, it is waited for."""
    store, tell = asked.store, asked.watcher.note
    with claimed(store.record_path(keyed.key).with_suffix(".busy"), keyed.label, tell):
        if (found := store.find(keyed.key)) is not None:
            tell(asked.taken(found))
            return found
        for source in sources:
            if (found := source.bring(keyed.key, tell)) is not None:
                return found
        tell(f"{keyed.label} is compiled once, and kept in {store.folder}")
        return _compiled(asked, keyed, stored)


def _compiled(asked: _Asked, keyed: KeyedBlock, stored: Mapping[str, StoredArtifact]) -> StoredArtifact:
    """Compile one block in an image that is gone afterwards, and keep its folders."""
    plan, catalog, lock, options, watcher, store = asked
    alone = artifact_plan(plan, keyed)
    used = {name: each for name, each in stored.items() if name in keyed.needs}
    pins = lock.pins if lock is not None else None
    quick = None
    if used or options.local_wheels:
        # What is taken of this machine's folders is told for the whole image.
        quick = _quick(alone, artifact_assembly(alone, plan, catalog, pins, used), used, options, lambda _: None)
    with scratch_folder("hpcgen-artifact-") as folder:
        store_kit(
            folder / "kit", kit_of(alone, catalog, artifact_assembly(alone, plan, catalog, pins, {}), lock).all_files
        )
        builder = choose_builder(alone, options.engine)
        name = str(folder / "image") if builder.image_is_file else f"localhost/hpcgen-artifact:{keyed.key[:12]}"
        how = replace(options, output=name, record=False, log=folder / "log", notest=True, signers=None, quick=quick)
        record = build_kit(read_kit(folder / "kit"), how, watcher)
        assert record.image is not None
        image = ImageReference(record.image.kind, record.image.name, start=True)
        try:
            archive = folder / "artifact.tar.gz"
            _pack(image, keyed, folder / "root.tar", archive)
        finally:
            if not builder.image_is_file:
                for words in builder.remove_images([record.image.name]):
                    query(words, {"USER": getpass.getuser(), **os.environ}, timeout_s=600)
        made = Artifact(
            artifact=ARTIFACT.newest,
            key=keyed.key,
            block=keyed.name,
            version=keyed.label.partition(" ")[2],
            folders=list(keyed.folders),
            sha256=file_sha256(archive),
            bytes=archive.stat().st_size,
            base=keyed.base,
            architecture=plan.site.system.architecture,
            target=plan.site.partitions[plan.partition].cpu.target,
            needs=keyed.needs,
            made=record.started,
            engine=f"{record.engine} {record.engine_version}".strip(),
            hpcgen=__version__,
            seconds=record.seconds,
        )
        return store.put(made, archive)


def _pack(image: ImageReference, keyed: KeyedBlock, root: Path, archive: Path) -> None:
    """Write the folders of a block as an archive, the same bytes for the same files: by name, of one owner and date.

    BuildFailedError: there is no file in them.
    """
    files = 0
    with (
        archive.open("wb") as stream,
        gzip.GzipFile("", "wb", 6, stream, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as made,
    ):
        for member, content in _members(image, keyed.folders, made, root):
            made.addfile(member, content)
            files += member.isreg()
    if not files:
        message = f"the steps of {keyed.label} left no file in {', '.join(keyed.folders)}"
        raise BuildFailedError(message, remedy="build with --no-cache, and correct `artifact` of the block")


Member = tuple[tarfile.TarInfo, IO[bytes] | None]


def _members(image: ImageReference, folders: Sequence[str], made: tarfile.TarFile, root: Path) -> Iterator[Member]:
    """What lies in these folders of an image, by name, with its content; links to one file after that.

    ``made``: the archive that it is for. ``root``: where all files of an image that is no folder may lie as one archive
    meanwhile.
    """
    inside = sorted(folder.strip("/") for folder in folders)
    if image.kind == "directory":
        # A folder that an ordinary user built has parts that its owner may not read.
        top = Path(image.name)
        places = [top / folder for folder in inside if os.path.lexists(top / folder)]
        for path in sorted(path for place in places for path in (place, *place.rglob("*"))):
            member = made.gettarinfo(path, str(path.relative_to(top)))
            if _is_kept(member):
                with path.open("rb") if member.isreg() else nullcontext() as content:
                    yield _plain(member), content
        return
    convert(image, ImageReference("tar", str(root)))
    with tarfile.open(root, "r:") as whole:
        found: dict[str, tarfile.TarInfo] = {}
        for member in whole:
            member.name = _relative(member.name)
            if member.islnk():
                member.linkname = _relative(member.linkname)
            if _is_kept(member) and any(f"{member.name}/".startswith(f"{folder}/") for folder in inside):
                found[member.name] = member
        for member in sorted(found.values(), key=lambda each: (each.islnk(), each.name)):
            yield _plain(member), whole.extractfile(member) if member.isreg() else None
    root.unlink()


def _is_kept(member: tarfile.TarInfo) -> bool:
    return member.isreg() or member.isdir() or member.issym() or member.islnk()


def _relative(name: str) -> str:
    return name.removeprefix("./").strip("/")


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The same without owner, date and what else one build has and the next one has not."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime, member.pax_headers = DAWN, {}
    member.mode &= _PERMISSIONS
    return member
