"""A kit as a folder, and the build context that is made from it."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from hpcgen.blocks.inputs import KINDS
from hpcgen.blocks.inputs.image import Image
from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import InputError, Problems
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.recipe_facts import ContextName, RecipeFacts
from hpcgen.core.support.certificates import read_certificates
from hpcgen.core.support.file_formats import KIT, LOCK
from hpcgen.core.support.hashing import FOLDER, LIST, below, read_plain, sha256_of
from hpcgen.core.support.units import DAWN
from hpcgen.core.support.writing import CopiedFile, copy_checked
from hpcgen.kit.copied import trees_of_list
from hpcgen.kit.kit import read_facts, read_plan
from hpcgen.recipe.formats import FACTS_FILE, format_for, kit_files

T = TypeVar("T")
_FIRST_HEREDOC = "HPCGEN_DOCKERFILE"
"""Ends the Dockerfile in a build script of hpcgen 0.1.0, whose kits do not say so."""
MAX_BYTES = 16 * 1024 * 1024


class KitFolder(msgspec.Struct, frozen=True):
    """A kit that ``render -o`` wrote: where it is, its plan, its recipe as the engine reads it, its lock.

    ``facts``: what a build must know of the recipe; None in a kit of hpcgen 0.1.0.
    ``host_files``: files of this machine that go into the image, with their names in the build context.
    ``copied``: the stack's own files by their names in the kit, as its list says that they are.
    """

    folder: Path
    plan: Plan
    recipe: str
    lock: dict[str, Any]
    facts: RecipeFacts | None = None
    host_files: list[tuple[str, str]] = []
    copied: dict[str, CopiedFile] = {}

    @property
    def names(self) -> list[str]:
        """The kit's files by their paths in it."""
        return [*files_of(self.plan), *(self.facts.files if self.facts is not None else [])]

    @property
    def content(self) -> str:
        """The plan's hash: the same hash, the same image."""
        return str(self.lock.get("content", ""))

    def inputs(self) -> list[str]:
        """What the build takes from outside, one line each, with the hashes that there are."""
        lines = sorted({line for each in self.lock.get("images", {}).values() for line in Image.recorded(each)})
        for entry in self.lock.get("inputs", []):
            lines += [line for key in entry.keys() & KINDS.keys() for line in KINDS[key].recorded(entry)]
        return list(dict.fromkeys(lines))


def read_kit(folder: Path) -> KitFolder:
    """Read a kit's folder. InputError: it is no kit, or a file of it is missing or cannot be read."""
    folder = folder.absolute()
    if not (folder / "plan.json").is_file():
        raise InputError(
            f"{folder} is not a kit: it has no plan.json",
            remedy="make one with hpcgen render --site SITE --stack STACK -o DIR",
        )
    plan = _decoded(folder / "plan.json", read_plan)
    form = format_for(plan.format)
    recipe = _read(folder / form.recipe_file)
    for name in files_of(plan):
        _read(_inside(folder, name))
    lock = _lock(folder / "hpcgen.lock")
    if FACTS_FILE not in files_of(plan):
        if form.engine_file != form.recipe_file:
            recipe = here_document(recipe, _FIRST_HEREDOC)
        return KitFolder(folder, plan, recipe, lock, None, _certificates_in(_read(folder / "build.sh")))
    facts = _decoded(folder / FACTS_FILE, read_facts)
    if facts.heredoc:
        recipe = here_document(recipe, facts.heredoc)
    for name in facts.files:
        _read(_inside(folder, name))
    certificates = [(each.source, each.name) for each in facts.certificates]
    return KitFolder(folder, plan, recipe, lock, facts, certificates, _copied(folder, plan))


def read_texts(kit: KitFolder) -> dict[str, str]:
    """The text of each file of a kit; InputError as :func:`read_kit`."""
    return {name: _read(_inside(kit.folder, name)) for name in kit.names}


def _copied(folder: Path, plan: Plan) -> dict[str, CopiedFile]:
    """What the kit's list says that it copies, if that is what the plan means."""
    if not plan.copied:
        return {}
    trees = trees_of_list(_read(folder / LIST), plan, f"the kit's {LIST}")
    return {
        f"{FOLDER}/{path}": CopiedFile(folder / FOLDER / path, file.sha256, file.executable)
        for target in (each.to for each in plan.brought)
        for file in trees[target].files
        for path in [below(file.path, target)]
    }


def files_of(plan: Plan) -> list[str]:
    """The files of the kit that a plan lies in, in whatever format that is written."""
    return [name for name in kit_files(plan) if plan.number > 1 or name != FACTS_FILE]


def _inside(folder: Path, name: str) -> Path:
    """A file of the kit, which must lie there: a link could bring any file of this machine into the image."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InputError(
            f"the kit's {name} is a link that leads out of the kit",
            expected="a file, or a link inside the kit",
            remedy="put the file itself there, if you know its contents",
        )
    return path


def _decoded(path: Path, convert: Callable[[object, str], T]) -> T:
    data: object = None
    try:
        data = msgspec.json.decode(_read(path))
        return convert(data, str(path))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise KIT.not_understood(data, str(path), error) from error


def _lock(path: Path) -> dict[str, Any]:
    from hpcgen.core.config.written_yaml import read_written

    try:
        data = read_written(_read(path), str(path))
    except InputError as error:
        said = error.problems[0].message
        raise InputError(f"{path} cannot be read: {said}", remedy="render the kit again") from error
    LOCK.check(data, str(path))
    return data


def _read(path: Path) -> str:
    try:
        data = read_plain(path, MAX_BYTES)
        if len(data) > MAX_BYTES:
            raise InputError(f"{path} is larger than any file of a kit", remedy="render the kit again")
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        said = failure.strerror if isinstance(failure, OSError) else "it is not UTF-8"
        raise InputError(
            f"the kit's {path.name} cannot be read: {said}", remedy="render the kit again with -o"
        ) from failure


def here_document(script: str, word: str) -> str:
    """What a script has in a here-document, up to a word; InputError where it has none."""
    _, begun, rest = script.partition(f"<< '{word}'\n")
    text, ended, _ = rest.partition(f"\n{word}\n")
    if not (begun and ended):
        raise InputError(
            f"the kit's recipe has no here-document that ends with {word}",
            remedy="render the kit again with this hpcgen",
        )
    return f"{text}\n"


def _certificates_in(script: str) -> list[tuple[str, str]]:
    """Files of the building machine with their names in the context, by the build script of hpcgen 0.1.0."""
    sources = _array(script, "certificates")
    names = _array(script, "certificate_names") or [Path(source).name for source in sources]
    if len(sources) != len(names) or not all(source.startswith("/") for source in sources):
        raise InputError("the kit's build.sh names certificates that cannot be copied", remedy="render the kit again")
    try:
        return list(zip(sources, record_from(names, list[ContextName]), strict=True))
    except msgspec.ValidationError as failure:
        message = f"the kit's build.sh names a certificate that cannot be copied: {failure}"
        raise InputError(message, remedy="render the kit again") from failure


def _array(script: str, name: str) -> list[str]:
    line = next((line for line in script.splitlines() if line.startswith(f"{name}=(") and line.endswith(")")), "")
    return shlex.split(line.partition("(")[2].removesuffix(")"))


def check_host_files(kit: KitFolder) -> None:
    """InputError where a certificate of the site is not on this machine, or what is there is none."""
    problems = Problems()
    for path, _name in kit.host_files:
        with problems.caught():
            read_certificates(path)
    problems.raise_as(InputError)


def make_context(
    kit: KitFolder, context: Path, bundle: Path | None = None, more: Mapping[str, CopiedFile] = MappingProxyType({})
) -> None:
    """The folder that a recipe copies from, as its format requires it: the kit's files, certificates, the bundle.

    InputError where a file that the stack copies is not what the plan says.

    ``more``: files that are none of the kit, by their paths.

    A file's time is made from its content, because ch-image's cache knows it by name, size, mode and time
    (lib/build.py, src_metadata): so a kit that was written anew costs no step its cache. It knows a folder so, too.
    """
    form = format_for(kit.plan.format)
    inside = context / form.first_kit_folder if kit.facts is None else context
    for name in kit.names:
        _copy(kit.folder / name, inside / name)
    for name, file in {**kit.copied, **more}.items():
        _put_copied(inside / name, file)
    if form.certificate_folder:
        for source, name in kit.host_files:
            _put(context / form.certificate_folder / name, read_certificates(source))
    if form.bundle_link and bundle is not None:
        (context / form.bundle_link).symlink_to(bundle)
    for folder, _, _ in os.walk(context, topdown=False):
        os.utime(folder, (DAWN, DAWN))


def _copy(source: Path, target: Path) -> None:
    executable = source.stat().st_mode & stat.S_IXUSR or source.suffix == ".sh"
    _put(target, source.read_bytes(), 0o755 if executable else 0o644)


def _put(target: Path, data: bytes, mode: int = 0o644) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    target.chmod(mode)
    _date(target, sha256_of(data))


def _put_copied(target: Path, file: CopiedFile) -> None:
    """A file of any size; the folders above it get a mode that is the same under every umask, as it has itself."""
    made = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    for folder in made:
        folder.chmod(0o755)
    with target.open("wb") as stream:
        copy_checked(file, stream)
    target.chmod(0o755 if file.executable else 0o644)
    _date(target, file.sha256)


def _date(target: Path, sha256: str) -> None:
    time = DAWN + int(sha256[:7], 16)
    os.utime(target, (time, time))
