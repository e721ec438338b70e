"""``--set BLOCK.OPTION=VALUE``: parsed, and checked against the blocks that exist."""

from __future__ import annotations

from collections.abc import Sequence

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError, Problem, Problems, UnknownNameError, did_you_mean
from hpcgen.core.support.quoting import plain


def parse_settings(settings: Sequence[str], catalog: Catalog) -> dict[str, dict[str, str]]:
    """block → option → value, the last of a repeated option. Every mistake is told at once.

    Raises
    ------
    InputError: not of the form BLOCK.OPTION=VALUE, or with control characters.
    UnknownNameError: no such block or virtual.
    """
    result: dict[str, dict[str, str]] = {}
    problems = Problems()
    unknown = Problems()
    for text in settings:
        path, equals, value = text.partition("=")
        block, dot, option = path.partition(".")
        if not (equals and dot and block and option):
            problems.add(
                f"{text!r} is not a setting",
                where="--set",
                expected="BLOCK.OPTION=VALUE, such as tensorflow.install=pip",
            )
            continue
        try:
            plain(value, f"the value of {path}")
        except InputError as error:
            problems += [problem.at("--set") for problem in error.problems]
            continue
        if wrong := unknown_block(block, catalog, "--set"):
            unknown += wrong
            continue
        result.setdefault(block, {})[option] = value
    if problems:
        raise InputError([*problems, *unknown])
    unknown.raise_as(UnknownNameError)
    return result


def unknown_block(name: str, catalog: Catalog, option: str) -> list[Problem]:
    """The mistake of an option that names neither a block nor a virtual; empty if it does."""
    if name in catalog.virtuals or catalog.has_block(name):
        return []
    from hpcgen.catalog.other_names import successor_of

    remedy = successor_of(catalog, name) or did_you_mean(name, [*catalog.names("block"), *catalog.virtuals])
    return [Problem(f"no block is called {name!r}", option, remedy=remedy)]
