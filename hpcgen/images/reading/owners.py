"""Of which release a file of the image is: by the file itself, by its name, else by the package that brings it.

A package counts only for files where its packager puts them: the distribution's for those that are in none of the
places of the others, conda's for its environment, pip's for the environment of its site-packages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from hpcgen.core.model.image_facts import ImagePackage, Shown
from hpcgen.core.support.templates import table

_PRODUCTS = Path(__file__).with_suffix(".yaml")
_UPSTREAM = re.compile(r"(?:\d+:)?v?(\d+(?:\.\d+)*(?:rc\d+|[ab]\d+)?)")


class Owners:
    """Answers by the packages of one image."""

    def __init__(self, packages: Iterable[ImagePackage]) -> None:
        self._packages = list(packages)

    def release(self, product: str, file: str) -> Shown | None:
        """The release of a product in a file, by the package that brings it; None where none does."""
        return self.of(table(_PRODUCTS, dict[str, str])[product], file)

    def packages_of(self, pattern: str) -> list[ImagePackage]:
        """The packages of Python and conda with a name that fits."""
        fits = re.compile(pattern).fullmatch
        return [each for each in self._packages if each.kind != "os" and fits(each.name)]

    def of(self, pattern: str, file: str) -> Shown | None:
        """The release of the first package of a name that fits, and that can have brought the file."""
        fits = re.compile(pattern).fullmatch
        for each in self._packages:
            if fits(each.name) and _brings(each, file) and (match := _UPSTREAM.match(each.version)):
                return Shown(match[1], f"the package {each.name} {each.version} by {each.where}")
        return None


def _brings(package: ImagePackage, file: str) -> bool:
    if package.kind == "os":
        return not file.startswith(("/usr/local/", "/opt/conda")) and "/site-packages/" not in file
    if package.kind == "conda":
        return file.startswith(f"{package.where.removesuffix('conda-meta')}")
    # Wheels may put libraries beside Python's own, as those of MPIs do.
    return file.startswith(
        (f"{package.where}/", f"{re.sub('/lib(64)?/python[0-9.]+/[a-z-]+$', '', package.where)}/lib")
    )


def named_release(file: str, pattern: str) -> Shown | None:
    """The release that a file's own name says."""
    match = re.search(pattern, file.rsplit("/", 1)[-1])
    return Shown(match[1], f"the name of {file}") if match else None


def first_said(*answers: Shown | None) -> Shown | None:
    """The first answer that is one."""
    return next((each for each in answers if each is not None), None)


def said_by(text: str | None, file: str) -> Shown | None:
    """A text that stands in a file."""
    return Shown(text, file) if text else None


def in_order(found: Iterable[Shown]) -> Sequence[Shown]:
    """Each value once, sorted, with the first file that shows it."""
    kept: dict[str, Shown] = {}
    for each in sorted(found):
        kept.setdefault(each.value, each)
    return list(kept.values())
