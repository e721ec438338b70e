"""Is a bundle what its manifest says, and the manifest that of its lock? All that is wrong, at once."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import msgspec

from hpcgen.core.errors import HpcgenError, InputError, MissingToolError, PolicyError, Problem
from hpcgen.core.model.bundle import Manifest
from hpcgen.core.model.image_paths import (
    COLLECTIONS,
    FILES,
    IMAGES,
    LOCK,
    LOCK_SIGNATURE,
    MANIFEST,
    SIGNATURE,
    SUMS,
    image_name,
)
from hpcgen.core.model.lock import Lock
from hpcgen.core.support.file_formats import NewerFormatError
from hpcgen.core.support.hashing import file_sha256, sha256_of
from hpcgen.core.support.progress import Watch
from hpcgen.core.support.units import some
from hpcgen.images.folder import MAX_FILE
from hpcgen.images.oci_layout import BLOBS, LayoutError, OciLayout, blob_path
from hpcgen.supply.bundle.documents import INCREMENT, MANIFEST_BYTES, Increment, read_record, sums_of, sums_text
from hpcgen.supply.bundle.own_collections import left_behind
from hpcgen.supply.bundle.reading import BundleReader, above, open_bundle, printable
from hpcgen.supply.bundle.store import hash_all

_SHOWN, _SIGNATURE_BYTES = 20, 64 * 1024
_REMEDY = "copy or make the bundle again: hpcgen bundle create --lock FILE -o DIR --reuse keeps the intact files"


class Verification(msgspec.Struct):
    """What a check found; ``files`` and ``bytes`` are those of the manifest, ``increment``: only some are here.

    ``signer``: who signed it, "" where nobody did, or no program here can tell.
    ``collections``: those that it brings; ``left_behind``: folders of those that a lock of hpcgen 0.1.0 was made with,
    and that its bundle does not have.
    """

    path: str
    problems: list[str]
    manifest: Manifest | None = None
    increment: bool = False
    signer: str = ""
    files: int = 0
    bytes: int = 0
    collections: list[str] = []
    left_behind: list[str] = []

    def raise_problems(self) -> None:
        """InputError with all problems, if there are any."""
        if self.problems:
            *above, last = self.problems
            raise InputError([*(Problem(text, self.path) for text in above), Problem(last, self.path, "", _REMEDY)])


def verify(
    path: Path, lock: Path | None = None, jobs: int = 2, watch: Watch | None = None, signers: Path | None = None
) -> Verification:
    """Check a bundle: every file, and that manifest, sums, lock and images fit each other.

    path: a folder, a tar file, or the first piece of one.
    lock: the bundle must be that of this lock.
    jobs: how many files are hashed at once.
    signers: a file of allowed signers, one of whom must have signed it.
    InputError: there is no bundle at all, or a newer hpcgen made it.
    PolicyError: its signature is not that of its manifest, or of no allowed signer.
    """
    source = open_bundle(path)
    data = source.manifest_bytes()
    verdict = Verification(path=str(path), problems=list(source.problems), signer=_signer(source, data, signers))
    try:
        verdict.manifest = manifest = read_record(data, Manifest, MANIFEST)
    except NewerFormatError:
        raise
    except InputError as error:
        verdict.problems += [problem.message for problem in error.problems]
        return verdict
    check = _Check(source, manifest, sha256_of(data), verdict)
    check.files(jobs, watch or Watch())
    check.lock(lock)
    if not verdict.increment:
        check.images()
    return verdict


def _signer(source: BundleReader, manifest: bytes, signers: Path | None) -> str:
    """Who signed a bundle; raises as :func:`verify`, and MissingToolError where a signer is required."""
    from hpcgen.core.support.signatures import BUNDLE, signer_of

    signed = SIGNATURE in source.files
    if not signed and signers is None:
        return ""
    signature = source.read(SIGNATURE, _SIGNATURE_BYTES).decode("ascii", "replace") if signed else ""
    try:
        return str(signer_of(f"the bundle {source.path}", manifest, signature, BUNDLE, signers))
    except MissingToolError:
        if signers is not None:
            raise
        return ""


def check_signed(folder: Path, signers: Path) -> str:
    """Who signed a bundle, whose lock and collections are those of its manifest; all else a build checks.

    PolicyError: it is not signed by an allowed signer, or one of these files is not as it was signed.
    """
    source = open_bundle(folder)
    data = source.manifest_bytes()
    signer = _signer(source, data, signers)
    signed = {item.path: item.sha256 for item in read_record(data, Manifest, MANIFEST).items}
    unsigned = source.files.keys() - signed.keys() - {MANIFEST, SUMS, SIGNATURE}
    wrong = [*source.problems, *(f"{path} was not signed" for path in sorted(unsigned))]
    for path in signed:
        if path in (LOCK, LOCK_SIGNATURE) or path.startswith(f"{COLLECTIONS}/"):
            held = source.files.get(path)
            if held is None or held.size > MANIFEST_BYTES or sha256_of(source.read(path)) != signed[path]:
                wrong.append(f"{path} is not as it was signed")
    if wrong:
        remedy = "hpcgen bundle verify lists every difference; get the bundle again"
        raise PolicyError(f"in {folder}: {some(wrong, 3)}", remedy=remedy)
    return signer


def check_bundle(folder: Path, lock_text: str, signers: Path | None = None) -> None:
    """InputError unless a bundle is whole and that of this lock; PolicyError as :func:`verify`."""
    verdict = verify(folder, signers=signers)
    ours = sha256_of(lock_text)
    if verdict.manifest is not None and verdict.manifest.lock != ours:
        verdict.problems.insert(0, _other_lock(verdict.manifest, "the kit's"))
    verdict.raise_problems()


class _Check:
    """One check of a bundle with a readable manifest."""

    def __init__(self, source: BundleReader, manifest: Manifest, manifest_hash: str, verdict: Verification) -> None:
        self.source, self.manifest, self.verdict = source, manifest, verdict
        self.sums = sums_of(manifest, manifest_hash)
        self.sizes = {item.path: item.size for item in manifest.items}
        verdict.files, verdict.bytes = len(self.sizes), sum(self.sizes.values())
        self.expected = set(self.sums)
        if INCREMENT in source.files:
            self._narrow()

    def _narrow(self) -> None:
        """An increment has only some of the files."""
        self.verdict.increment = True
        try:
            data = self.source.read(INCREMENT)
            increment = read_record(data, Increment, INCREMENT)
        except NewerFormatError:
            raise
        except InputError as error:
            self.verdict.problems += [problem.message for problem in error.problems]
            return
        listed = set(increment.files)
        if strange := listed - set(self.sizes):
            self._say(f"{printable(each)} is listed in {INCREMENT}, but not in {MANIFEST}" for each in sorted(strange))
        self.sums = {path: each for path, each in self.sums.items() if path in listed or path == MANIFEST}
        self.sums[INCREMENT] = sha256_of(data)
        self.expected = set(self.sums)

    def files(self, jobs: int, watch: Watch) -> None:
        """The manifest with itself, the files with the manifest, the sums with both."""
        self._say(self._contradictions())
        there = self.source.files
        self._say((f"{path} is missing" for path in sorted(self.expected - there.keys())), "files are missing")
        extra = sorted(there.keys() - self.expected - {SUMS, SIGNATURE})
        self._say(
            (f"{path} does not belong to the bundle: the manifest has no such file" for path in extra), "such files"
        )
        listed = {folder for path in self.expected for folder in above(path)}
        empty = (printable(each) for each in sorted(self.source.empty) if each not in listed)
        self._say(
            (f"{each} does not belong to it: the manifest has no file in this folder" for each in empty), "folders"
        )
        altered, sound = [], {}
        for path in sorted(self.expected & there.keys()):
            size = self.sizes.get(path, there[path].size)
            if there[path].size < size:
                altered.append(f"{path} is truncated: {there[path].size} of {size} bytes")
            elif there[path].size > size:
                altered.append(f"{path} is too long: {there[path].size} bytes instead of {size}")
            else:
                sound[path] = (there[path].open, size)
        hashes = hash_all(sound, "checking", jobs, watch)
        for path, found in sorted(hashes.items()):
            if isinstance(found, OSError):
                altered.append(f"{path} cannot be read: {found.strerror or found}")
            elif found[0] != self.sums[path]:
                altered.append(f"{path} is altered: its sha256 is {found[0]}, expected {self.sums[path]}")
        self._say(altered, "files are damaged")
        self._check_sums()

    def _contradictions(self) -> Iterable[str]:
        """What is wrong with the manifest by itself."""
        seen: dict[str, tuple[str, int]] = {}
        for item in self.manifest.items:
            if seen.setdefault(item.path, (item.sha256, item.size)) != (item.sha256, item.size):
                yield f"{MANIFEST} contradicts itself about {item.path}"
            parts = item.path.split("/")
            named = parts[1] if parts[0] == FILES and len(parts) == 3 else ""
            if item.path.startswith(f"{IMAGES}/{BLOBS}/"):
                named = parts[-1]
            if (parts[0] == FILES and not named) or named not in ("", item.sha256):
                yield f"{MANIFEST}: the hash of {item.path} is given as {item.sha256}"
            if item.path in (MANIFEST, SUMS, SIGNATURE):
                yield f"{MANIFEST} lists {item.path}"

    def _check_sums(self) -> None:
        if SUMS not in self.source.files:
            self._say([f"{SUMS} is missing"])
            return
        try:
            found = self.source.read(SUMS, MANIFEST_BYTES)
        except InputError as error:
            self._say(problem.message for problem in error.problems)
            return
        expected = sums_text(self.sums)
        if found != expected:
            lines, wanted = (set(text.decode("utf-8", "replace").splitlines()) for text in (found, expected))
            differing = sorted({printable(line[66:]) for line in lines ^ wanted}) or ["the order of its lines"]
            more = f" and {len(differing) - 3} more" if len(differing) > 3 else ""
            self._say([f"{SUMS} does not match the manifest: {', '.join(differing[:3])}{more}"])

    def lock(self, asked: Path | None) -> None:
        """The lock with its seal, the manifest with the lock, and the lock that was asked for."""
        from hpcgen.kit.lockfile.lock import parse_lock

        listed = {item.path: item.sha256 for item in self.manifest.items}.get(LOCK)
        if listed != self.manifest.lock:
            self._say([f"{MANIFEST} contradicts itself about {LOCK}"])
        if asked is not None:
            try:
                ours = file_sha256(asked)
            except OSError as failure:
                raise InputError(f"{asked} cannot be read: {failure.strerror}", "--lock") from failure
            if ours != self.manifest.lock:
                self._say([_other_lock(self.manifest, f"{asked}'s")])
        if LOCK not in self.source.files:
            return
        try:
            held = parse_lock(self.source.read(LOCK).decode("utf-8", "replace"), f"the bundle's {LOCK}")
        except HpcgenError as error:
            self._say(problem.message for problem in error.problems)
            return
        if held.content != self.manifest.content:
            self._say([f"{MANIFEST} is for another lock: its content is {self.manifest.content}, not {held.content}"])
        self.held: Lock | None = held
        self._check_packages(held)
        self._check_collections(held)

    def _check_collections(self, held: Lock) -> None:
        """Are the collections there that the lock was made with?"""
        there = {item.path.split("/")[1] for item in self.manifest.items if item.kind == "collection"}
        self.verdict.collections = sorted(there)
        missing = (name for name in held.own_collections if name not in there)
        self._say(
            f"the lock was made with the collection {name}, and the manifest has none of its files" for name in missing
        )
        self.verdict.left_behind = left_behind(held)

    def _check_packages(self, held: Lock) -> None:
        """Are the OS packages that the lock pins all there? They are those that no other hash of the bundle names."""
        there = {item.sha256 for item in self.manifest.items}
        pinned = {
            f"{name} {pin.version}": pin.sha256
            for stage in held.pins.packages.values()
            for name, pin in stage.added.items()
        }
        missing = sorted(name for name, sha256 in pinned.items() if sha256 not in there)
        self._say((f"the lock pins the package {name}, and the manifest has none" for name in missing), "packages too")

    def images(self) -> None:
        """Does the image layout hold what its index names, and what the lock pins?"""
        held = getattr(self, "held", None)
        pins = held.pins.images if held is not None else {}
        paths = [path for path in self.source.files if path.startswith(f"{IMAGES}/")]
        if not paths and not pins:
            return
        layout = OciLayout(IMAGES, lambda path: io.BytesIO(self.source.read(f"{IMAGES}/{path}", MAX_FILE)))
        try:
            named = layout.named()
            needed = {each for digest in named.values() for each in layout.needed(digest)}
        except LayoutError as failure:
            self._say([f"{IMAGES}: {failure.why}"])
            return
        except InputError as error:
            self._say(f"{IMAGES}: {problem.message}" for problem in error.problems)
            return
        lost = sorted(each for each in needed if f"{IMAGES}/{blob_path(each)}" not in self.source.files)
        self._say(f"{IMAGES}: the blob {each} is needed but missing" for each in lost)
        for name, pin in sorted(pins.items()):
            if named.get(image_name(name)) != pin.bundled:
                self._say(
                    [f"{IMAGES}: {name} is {named.get(image_name(name), 'missing')}, the lock pins {pin.bundled}"]
                )

    def _say(self, texts: Iterable[str], more: str = "such problems") -> None:
        """Note problems; of many of one kind the first, and how many more there are."""
        known = set(self.verdict.problems)
        new = [text for text in texts if text not in known]
        self.verdict.problems += new[:_SHOWN]
        if len(new) > _SHOWN:
            self.verdict.problems.append(f"{len(new) - _SHOWN} more {more}")


def _other_lock(manifest: Manifest, whose: str) -> str:
    made = f"{manifest.stack} for {manifest.site}, content {manifest.content[:12]}…"
    return f"the bundle is for a lock other than {whose}: {made}"
