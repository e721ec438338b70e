"""What a kind of image is, and what a conversion between two of them is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

from hpcgen.core.errors import InputError
from hpcgen.images.folder import MAX_FILE
from hpcgen.images.marks import Marks

if TYPE_CHECKING:
    from hpcgen.images.reading.files import ImageFileSource


class CarriedSignature(msgspec.Struct, frozen=True):
    """What is to be said of the signatures that an image itself carries."""

    outcome: Literal["holds", "does not hold", "unknown"]
    reason: str


class ConversionStep(msgspec.Struct, frozen=True):
    """A command, or something that hpcgen does itself; ``undo`` is run if a later part of the chain fails.

    ``about`` is what the user reads.
    """

    about: str = ""
    argv: list[str] = []
    action: Callable[[], None] | None = None
    undo: list[str] = []


class ConversionTask(msgspec.Struct, frozen=True):
    """What a conversion is told: source, target, marks of the image, a word that is used once, and the final flag.

    ``replaces``: an image may be there under the target's name, which no undoing may take away.
    """

    source: str
    target: str
    marks: Marks
    token: str
    last: bool
    architecture: str = "amd64"
    replaces: bool = False

    @property
    def path(self) -> Path:
        """The target, where it is a file or folder."""
        return Path(self.target)


class ConversionRule(msgspec.Struct, frozen=True):
    """One row: from a kind or form of it to another, by programs that all have to be installed.

    ``cost`` is about how often the image is read and written; of equal chains the first rows win.
    """

    start: str
    end: str
    programs: tuple[str, ...]
    cost: int
    steps: Callable[[ConversionTask], list[ConversionStep]]


def conversion_command(*argv: str, undo: Sequence[str] = ()) -> ConversionStep:
    """A step that is one command."""
    return ConversionStep(argv=list(argv), undo=list(undo))


def by_command(*argv: str, undo: Sequence[str] = ()) -> Callable[[ConversionTask], list[ConversionStep]]:
    """A conversion that is one command; ``{source}`` and ``{target}`` in its words are filled in.

    ``undo`` takes the target away again, where none was there before.
    """

    def steps(task: ConversionTask) -> list[ConversionStep]:
        words, back = ([word.format(source=task.source, target=task.target) for word in each] for each in (argv, undo))
        return [conversion_command(*words, undo=() if task.replaces else back)]

    return steps


class ImageKind:
    """One kind of image: how it is recognised, read without a start, and converted.

    ``name``: as records and ``KIND:NAME`` have it. ``stored``: it is a name in an engine's store, not a file or folder.
    ``signs_itself``: an image can carry signatures.
    ``spelled``: it is shown as ``KIND:NAME``, since the name alone does not say it. ``endings``: of file names, that
    which hpcgen gives first. ``conversions``: the single conversions from it. ``tagged``: the store gives names a tag.
    """

    name: ClassVar[str]
    stored: ClassVar[bool] = False
    signs_itself: ClassVar[bool] = False
    spelled: ClassVar[bool] = False
    tagged: ClassVar[bool] = False
    endings: ClassVar[tuple[str, ...]] = ()
    conversions: ClassVar[tuple[ConversionRule, ...]] = ()

    def recognises(self, path: Path, first: bytes) -> bool:
        """Whether a path is of this kind, by its first 512 bytes (none of a folder)."""
        return False

    def form(self, name: str) -> str:
        """What conversions know it by, where a kind has several forms."""
        return self.name

    def start_form(self, name: str) -> str:
        """What engines name in ``starts``, where a kind has several forms."""
        return self.name

    def read(self, name: str, paths: Sequence[str], most: int = MAX_FILE) -> dict[str, bytes]:
        """Regular files by their absolute path in the image; those that it does not have are not in the answer.

        most: bytes that one of them may have.
        InputError: the image cannot be read, or is made to do harm.
        MissingToolError: a program that reads this kind of image is not installed.
        UnknownNameError: the store has no image of that name.
        """
        raise NotImplementedError

    def read_started(self, name: str, paths: Sequence[str], most: int = MAX_FILE) -> dict[str, bytes]:
        """The same where the image may be started for it."""
        return self.read(name, paths, most)

    def listed(self, name: str, wanted: Callable[[str], bool]) -> set[str] | None:
        """The absolute paths in the image that are wanted; None where it cannot be listed as it is.

        InputError, MissingToolError, UnknownNameError: as :meth:`read`.
        """
        return None

    def folders(self, name: str, paths: Sequence[str]) -> set[str] | None:
        """Those of absolute paths that are folders in it; None where nobody has to know."""

    def files(self, name: str) -> AbstractContextManager[ImageFileSource | None]:
        """All its files, for as long as they are looked at; None where it cannot be listed as it is.

        InputError, MissingToolError, UnknownNameError: as :meth:`read`.
        """
        return nullcontext()

    def configuration(self, name: str) -> dict[str, Any] | None:
        """What its configuration says of containers, in the words of OCI; None for a kind that has none."""
        return None

    def settings(self, name: str) -> Marks | None:
        """Variables and labels that stand beside the image's files; None for a kind that has none."""
        return None

    def digest(self, name: str) -> str:
        """``sha256:…`` of a file, or by which a store knows the image; "" where nothing tells it from another one."""
        from hpcgen.core.support.hashing import file_sha256

        path = Path(name)
        return f"sha256:{file_sha256(path)}" if not self.stored and path.is_file() else ""

    def signature(self, name: str, signers: Path | None) -> CarriedSignature | None:
        """Of the signatures that an image carries, by a file of allowed signers; None where it carries none."""
        return None

    def check_signing_key(self, fingerprint: str) -> None:
        """InputError, MissingToolError: an image of this kind cannot be signed here by that OpenPGP key."""
        raise InputError(
            f"an image of the kind {self.name} cannot contain a signature",
            "--sign",
            "an SSH key, or -o IMAGE.sif",
            "hpcgen fleet publish --sign pgp:FINGERPRINT signs images in a registry",
        )

    def sign(self, name: str, fingerprint: str) -> None:
        """Sign an image by the OpenPGP key that was checked.

        OutputError: it was not signed.
        """
        self.check_signing_key(fingerprint)

    def bytes_on_disk(self, name: str) -> int | None:
        """How much it takes; None where nobody can tell. OSError if it cannot be read."""
        return Path(name).stat().st_size

    def source(self, name: str) -> str:
        """What conversions call it, whatever program does them."""
        return name

    def target(self, name: str) -> str:
        """What conversions call one that they make."""
        return name

    def programs(self) -> tuple[str, ...]:
        """Programs that read a store, the one that reads best first."""
        return ()

    def is_stored(self, name: str) -> bool:
        """Whether the store has the image."""
        raise NotImplementedError
