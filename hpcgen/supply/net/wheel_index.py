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

from hpcgen.core.model.bundle import BundleItem
from hpcgen.core.support.package_names import licence_expression
from hpcgen.supply.net.source_members import UNREADABLE, source_members

_METADATA_BYTES = 1024 * 1024

_CLASSIFIERS = {
    "Boost Software License 1.0 (BSL-1.0)": "BSL-1.0",
    "CC0 1.0 Universal (CC0 1.0) Public Domain Dedication": "CC0-1.0",
    "Eclipse Public License 1.0 (EPL-1.0)": "EPL-1.0",
    "Eclipse Public License 2.0 (EPL-2.0)": "EPL-2.0",
    "European Union Public Licence 1.1 (EUPL 1.1)": "EUPL-1.1",
    "European Union Public Licence 1.2 (EUPL 1.2)": "EUPL-1.2",
    "GNU Affero General Public License v3": "AGPL-3.0-only",
    "GNU Affero General Public License v3 or later (AGPLv3+)": "AGPL-3.0-or-later",
    "GNU General Public License v2 (GPLv2)": "GPL-2.0-only",
    "GNU General Public License v2 or later (GPLv2+)": "GPL-2.0-or-later",
    "GNU General Public License v3 (GPLv3)": "GPL-3.0-only",
    "GNU General Public License v3 or later (GPLv3+)": "GPL-3.0-or-later",
    "GNU Lesser General Public License v2 (LGPLv2)": "LGPL-2.0-only",
    "GNU Lesser General Public License v2 or later (LGPLv2+)": "LGPL-2.0-or-later",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "GNU Lesser General Public License v3 or later (LGPLv3+)": "LGPL-3.0-or-later",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "Mozilla Public License 1.0 (MPL)": "MPL-1.0",
    "Mozilla Public License 1.1 (MPL 1.1)": "MPL-1.1",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
    "Universal Permissive License (UPL)": "UPL-1.0",
    "zlib/libpng License": "Zlib",
}
"""Licence classifiers that can mean one SPDX licence only. "BSD License" and "Apache Software License" are not among
them: they stand for several. Source: https://peps.python.org/pep-0639/appendix-mapping-classifiers/"""

_FREE_TEXT = (
    (r"apache(-| software| licen[cs]e| software licen[cs]e)*,?( version)?[ -]v?2(\.0)?", "Apache-2.0"),
    (r"(the )?mit( licen[cs]e)?", "MIT"),
    (r"(modified |new )?bsd[ -]3([ -]clause)?( licen[cs]e)?|3[ -]clause bsd( licen[cs]e)?", "BSD-3-Clause"),
    (r"bsd[ -]2([ -]clause)?( licen[cs]e)?|2[ -]clause bsd( licen[cs]e)?", "BSD-2-Clause"),
    (r"isc( licen[cs]e)?", "ISC"),
    (r"mpl[ -]2(\.0)?|mozilla public licen[cs]e 2\.0", "MPL-2.0"),
    (r"psf-2\.0", "PSF-2.0"),
    (r"(the )?unlicense", "Unlicense"),
)
"""What the older ``License`` field, which is free text, is believed to mean when it says exactly this."""


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
    licences = {_CLASSIFIERS.get(each, "") for each in said if each != "OSI Approved"}
    if len(licences) == 1 and (only := licences.pop()):
        return only
    parts = re.split(r" (OR|AND) ", str(fields.get("License", "")).strip()[:200])
    meant = [part if part in ("OR", "AND") else _free_text(part) for part in parts]
    return " ".join(meant) if all(meant) else ""


def _free_text(text: str) -> str:
    return next((licence for form, licence in _FREE_TEXT if re.fullmatch(form, text, re.IGNORECASE)), "")


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
