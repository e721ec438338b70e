"""The files of a user's project that asked for packages, as they lie here, if they are still those of the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.project import CONDA
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import HpcgenError, Position, Problems
from hpcgen.core.model.fields import Digest
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.project import BLOCK

if TYPE_CHECKING:
    from hpcgen.core.model.conda import CondaFile
    from hpcgen.core.model.requirement import PackageFile


class _Read(Protocol):
    """A file that was read, with the sha256 of each that belongs to it."""

    @property
    def read(self) -> dict[str, Digest]: ...


F = TypeVar("F", bound=_Read)


class AskedFiles:
    """What files of the project say, beyond what the plan has of them. Without the files there is nothing.

    Parameters
    ----------
    document: the stack's file, if it is here; without one, paths are from the present folder.
    """

    def __init__(self, plan: Plan, catalog: Catalog, document: Document | None) -> None:
        self._plan, self._catalog, self._document = plan, catalog, document

    @cached_property
    def python(self) -> list[PackageFile]:
        """Files of Python packages."""
        known = self._plan.project.files if self._plan.project is not None else {}
        return self._same(BLOCK, self._catalog.project.packages, known)

    @cached_property
    def conda(self) -> list[CondaFile]:
        """Files of conda packages."""
        known = self._plan.conda.files if self._plan.conda is not None else {}
        return self._same(CONDA, self._catalog.project.conda, known)

    @cached_property
    def apt(self) -> dict[str, Position]:
        """Names in apt.txt beside the stack, which `hpcgen init` takes the option of the block from."""
        from hpcgen.readers.apt_txt import read_apt
        from hpcgen.readers.folder import ProjectFolder

        if self._document is None or self._document.file_of(["blocks"]) is None:
            return {}
        folder = ProjectFolder(self._catalog.project.folder(self._document, "os_packages"))
        try:
            return {each.text: each.where for each in read_apt(folder, "apt.txt", Problems())}
        except HpcgenError:
            return {}

    def shown(self, origin: str, block: str = BLOCK) -> str:
        """A file and line of the project, from where the person is."""
        return str(self._catalog.project.folder(self._document, block) / origin)

    def _same(
        self,
        block: str,
        read: Callable[[Document | None, Sequence[str]], list[F]],
        known: Mapping[str, Digest],
    ) -> list[F]:
        """Those that have not changed since the plan was made."""
        planned = self._plan.block(block)
        names = planned.options.get("files") if planned is not None else None
        if not isinstance(names, list) or not names or not known:
            return []
        try:
            files = read(self._document, [str(name) for name in names])
        except HpcgenError:
            return []
        return files if {path: digest for each in files for path, digest in each.read.items()} == known else []
