"""Models and data sets that a job reads: where each is fetched from, what it must be, and where the program sees it."""

from typing import Annotated

from hpcgen.core.model.fields import AbsolutePath, Bytes, Name, Record, Sha256, matching

_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9._~+-]*"
MODEL_STORE = "models"
"""The folder for them among the downloads that jobs share."""

ModelAddress = Annotated[
    str,
    matching(
        rf"^https://[A-Za-z0-9.-]+(:[0-9]{{1,5}})?(/{_SEGMENT})+$(?!\n)",
        "the https:// address of a file, or of a folder whose `files` are listed, without ?, % and @",
        "https://example.org/models/segmenter.onnx",
    ),
]
ModelPath = Annotated[
    str,
    matching(
        rf"^{_SEGMENT}(/{_SEGMENT})*$(?!\n)",
        "a file's path below `from`: letters, digits and . _ ~ + -, no part beginning with a full stop",
        "onnx/model.onnx",
    ),
]


class ModelFile(Record, frozen=True):
    """What a file must be; ``size`` in bytes tells beforehand whether it fits."""

    sha256: Sha256
    size: Bytes | None = None


class Model(Record, frozen=True, rename={"from_": "from"}):
    """A model or a data set, which is fetched before the job and is no part of the image.

    ``from_``: a file, of which ``sha256`` and ``size`` are, or a folder, with ``files`` below it, each by its path.
    ``to``: the folder where the program sees the files, read-only; of one squashfs file it sees what is in it.
    """

    name: Name
    from_: ModelAddress
    to: AbsolutePath
    sha256: Sha256 | None = None
    size: Bytes | None = None
    files: dict[ModelPath, ModelFile] = {}

    @property
    def parts(self) -> dict[str, tuple[str, ModelFile]]:
        """The address of each file and what it must be, by its path below :attr:`folder`."""
        if self.sha256 is not None:
            name = self.from_.rpartition("/")[2]
            return {name: (self.from_, ModelFile(sha256=self.sha256, size=self.size))}
        return {path: (f"{self.from_}/{path}", file) for path, file in sorted(self.files.items())}

    @property
    def folder(self) -> str:
        """Its folder among all of them, named by its content: the same from another address is the same."""
        from hpcgen.core.support.hashing import sha256_of

        listed = "".join(f"{file.sha256}  {path}\n" for path, (_, file) in self.parts.items())
        return sha256_of(listed)

    @property
    def place(self) -> str:
        """What is shown at ``to``: its folder, or its squashfs file."""
        from hpcgen.core.model.host_data import PACKED

        packed = self.sha256 is not None and self.from_.endswith(PACKED)
        return f"{self.folder}/{next(iter(self.parts))}" if packed else self.folder

    @property
    def bytes(self) -> int | None:
        """How large it is; None where a file does not say."""
        sizes = [file.size for _, file in self.parts.values()]
        return None if None in sizes else sum(size for size in sizes if size is not None)
