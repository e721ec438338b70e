"""Request files: which form one has, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import Document, load
from hpcgen.core.errors import InputError, Position
from hpcgen.core.model.plan import Finding
from hpcgen.core.model.request import OptimiseRequest
from hpcgen.plugins.tuning.requests.checks import checked
from hpcgen.plugins.tuning.requests.modak import is_modak, translate
from hpcgen.plugins.tuning.requests.values import optimisation_of

Dialect = Literal["hpcgen", "listing", "released", "example"]
"""hpcgen's own form; of MODAK the one printed in its paper, that of its release, and that of its longer examples."""


class ReadRequest(msgspec.Struct, frozen=True):
    """A request as it was read.

    Parameters
    ----------
    findings: what the file says and hpcgen cannot do, or reads in a way that a person should know.
    where: the place in the file that says a field of the request, such as ``("limits", "nodes")``; of the nearest
        field above, where the file does not say it.
    """

    request: OptimiseRequest
    findings: list[Finding]
    dialect: Dialect
    where: Callable[[tuple[str, ...]], Position]


def read_request(path: Path) -> ReadRequest:
    """Read a request file.

    Raises
    ------
    InputError: with every mistake of the file, each with file, line and column.
    """
    try:
        document = load(path)
    except InputError as error:
        first = error.problems[0]
        if path.suffix != ".json" or "a tab" not in first.message:
            raise
        # Outside of braces YAML has no tabs, which JSON is often indented with: a part of a file, such as one section.
        remedy = "put the text between { and }"
        raise InputError("this is only a part of a JSON file", first.where, "one mapping in braces", remedy) from error
    return request_from(document)


def request_from(document: Document) -> ReadRequest:
    """The request of a document; as :func:`read_request`."""
    if not is_modak(document.data):
        request = checked(convert(document, OptimiseRequest), document.position)
        return ReadRequest(request, [], "hpcgen", document.position)
    translated, findings, released = translate(document)
    request = checked(convert(translated, OptimiseRequest), translated.position)
    listing = {"ai_training", "ai_inference", "hpc"} & set(optimisation_of(document.data))
    return ReadRequest(
        request,
        findings,
        "listing" if listing else "released" if released else "example",
        translated.position,
    )
