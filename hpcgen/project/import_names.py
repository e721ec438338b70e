"""Which package of the index an import comes from, where that is well known: the table ``import_names.yaml``."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

from msgspec import Struct

from hpcgen.core.support.templates import table


class ImportNames(Struct, frozen=True, forbid_unknown_fields=True):
    """The table, whose comments say what each part is."""

    otherwise: dict[str, tuple[str, ...]]
    alike: frozenset[str]
    comes_with: dict[str, frozenset[str]]
    gone: frozenset[str]
    of_block: frozenset[str]
    of_conda: dict[str, tuple[str, ...]]
    mistaken: dict[str, str]


def import_names() -> ImportNames:
    """The table of imports and their packages."""
    return table(Path(__file__).with_suffix(".yaml"), ImportNames)


def is_standard(name: str) -> bool:
    """Whether every Python has a module, or had it in the past."""
    return name in sys.stdlib_module_names or name in import_names().gone | import_names().of_block


def packages_with(name: str, known: Collection[str] = ()) -> tuple[str, ...]:
    """The packages of the index that have an imported name; none where that is not known.

    ``name``: dotted, as it is imported. ``known``: packages that are called like what they have, but for ``_`` and
    ``-``.
    """
    first, known_names = name.partition(".")[0], import_names()
    for each in (name, ".".join(name.split(".")[:3]), ".".join(name.split(".")[:2]), first):
        if each in known_names.otherwise:
            return known_names.otherwise[each]
    plain = first.replace("_", "-").lower()
    return (plain,) if first in known_names.alike or plain in known else ()


def conda_name(package: str) -> str:
    """What conda-forge calls a package of the index."""
    names = (of_conda[0] for name, of_conda in import_names().of_conda.items() if package in packages_with(name))
    return next(names, package)


def conda_names(name: str) -> tuple[str, ...]:
    """What conda calls packages that have an imported name."""
    return import_names().of_conda.get(name.partition(".")[0], ())
