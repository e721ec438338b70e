"""A page of links by which pip finds the Python packages of a bundle, and what a package says of its licence.

pip reads the page through ``--find-links``: it takes a file's name from the last part of a link, and its hash from the
link's fragment. Source: https://pip.pypa.io/en/stable/cli/pip_wheel/#cmdoption-f and the simple repository API,
https://packaging.python.org/en/latest/specifications/simple-repository-api/.
Read by pip 9.0, 18.1, 21.3, 23.2 and 26.3.
"""

from __future__ import annotations

import email.parser
import html
import re
import urllib.parse
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import msgspec

from hpcgen.core.model.bundle import BundleItem
from hpcgen.core.support.package_names import licence_expression
from hpcgen.core.support.templates import table
from hpcgen.supply.net.source_members import UNREADABLE, source_members

_METADATA_BYTES = 1024 * 1024


class _Licences(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    classifiers: dict[str, str]
    free_text: dict[str, str]


def _licences() -> _Licences:
    return table(Path(__file__).with_name("wheel_licences.yaml"), _Licences)


def wheel_index(items: Iterable[BundleItem]) -> str:
    """A page with a link to every item, relative to the bundle's folder."""
    lines = []
    for item in sorted(items, key=lambda each: (each.path.rpartition("/")[2], each.sha256)):
        link = f"{urllib.parse.quote(item.path)}#sha256={item.sha256}"
        lines.append(f'<a href="{html.escape(link)}">{html.escape(item.path.rpartition("/")[2])}</a><br>')
    head = '<!DOCTYPE html>\n<html>\n<head><meta charset="utf-8"><title>Python packages</title></head>\n<body>\n'
    return head + "".join(f"{line}\n" for line in lines) + "</body>\n</html>\n"


def wheel_licence(path: Path) -> str:
    """The licence of a wheel or source package as an SPDX expression; empty where it does not say it clearly."""
    try:
        text = wheel_metadata(path) if path.name.endswith(".whl") else _source_metadata(path)
    except UNREADABLE:
        return ""
    return metadata_licence(text)


def metadata_licence(text: str) -> str:
    """The same from the text of METADATA or PKG-INFO."""
    fields = email.parser.HeaderParser().parsestr(text)
    if expression := str(fields.get("License-Expression", "")).strip():
        return licence_expression(expression)
    said = [str(each).rpartition("::")[2].strip() for each in fields.get_all("Classifier", []) if "License ::" in each]
    licences = {_licences().classifiers.get(each, "") for each in said if each != "OSI Approved"}
    if len(licences) == 1 and (only := licences.pop()):
        return only
    parts = re.split(r" (OR|AND) ", str(fields.get("License", "")).strip()[:200])
    meant = [part if part in ("OR", "AND") else _free_text(part) for part in parts]
    return " ".join(meant) if all(meant) else ""


def _free_text(text: str) -> str:
    rows = _licences().free_text.items()
    return next((licence for form, licence in rows if re.fullmatch(form, text, re.IGNORECASE)), "")


def wheel_metadata(path: Path) -> str:
    """METADATA of a wheel, as far as anybody writes it; KeyError without one."""
    with zipfile.ZipFile(path) as wheel:
        for member in wheel.infolist():
            if re.fullmatch(r"[^/]+\.dist-info/METADATA", member.filename):
                with wheel.open(member) as stream:
                    return _text(stream)
    raise KeyError("METADATA")


def _source_metadata(path: Path) -> str:
    for name, stream in source_members(path):
        if re.fullmatch(r"(\./)?[^/]+/PKG-INFO", name):
            return _text(stream())
    raise KeyError("PKG-INFO")


def _text(stream: IO[bytes]) -> str:
    return stream.read(_METADATA_BYTES).decode("utf-8", "replace")
