"""Control files as Debian writes them: of packages, of apt's sources, of copyright."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from debian.deb822 import Deb822


def paragraphs(text: str) -> list[Deb822]:
    """The paragraphs of a text: fields by name, whatever its case, in their order.

    A value keeps its further lines, each begun with a space. Lines that are no field are passed over.
    """
    from debian.deb822 import Deb822

    return [each for each in Deb822.iter_paragraphs(text.splitlines(), use_apt_pkg=False) if each]
