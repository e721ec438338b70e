"""The apt repository that a bundle is: ``Packages`` and ``Release`` over the .deb files, and their licences.

Read by apt as a flat repository, ``deb [trusted=yes] file:/opt/hpcgen/bundle ./``: it is not signed, since the
bundle's own sums vouch for it. Sources: sources.list(5) "exact path"; Debian's wiki, DebianRepository/Format;
copyright-format 1.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from email.utils import formatdate
from functools import cache
from pathlib import Path

import msgspec

from hpcgen.core.errors import HpcgenError, InputError, Problems
from hpcgen.core.model.bundle import BundleItem
from hpcgen.core.model.bundle_paths import APT_INDEX
from hpcgen.core.support.deb822 import paragraphs
from hpcgen.core.support.hashing import sha256_of
from hpcgen.supply.bundle.deb import read_control, read_copyright

RELEASE = "Release"
_LICENCES = Path(__file__).with_name("debian_licences.yaml")
# What the index says of a file itself; a control file may not.
_OWN = {"filename", "size", "md5sum", "sha1", "sha256", "sha512"}
_FORMAT = re.compile(r"https?://www\.debian\.org/doc/(packaging-manuals/)?copyright-format/1\.0/?")


def write_apt_index(bundle: Path, packages: Sequence[BundleItem], epoch: int) -> None:
    """Write ``Packages`` and ``Release``. The same packages give the same bytes.

    Parameters
    ----------
    bundle: the bundle's folder; the packages lie in it already.
    epoch: the date of the index, in seconds since 1970.

    Raises
    ------
    InputError: packages that cannot be read, all of them.
    OutputError: the bundle cannot be written.
    """
    from hpcgen.core.support.writing import write_file

    stanzas: list[tuple[tuple[str, ...], str]] = []
    problems = Problems()
    for item in packages:
        with problems.caught():
            stanzas.append(_stanza(bundle / item.path, item))
    problems.raise_as(InputError)
    index = "\n".join(text for _, text in sorted(stanzas))
    write_file(bundle / APT_INDEX, index)
    write_file(bundle / RELEASE, release(index, epoch))


def release(index: str, epoch: int) -> str:
    """The ``Release`` file for the text of ``Packages``."""
    data = index.encode("utf-8")
    date = formatdate(epoch, usegmt=True).replace("GMT", "UTC")
    lines = [
        "Origin: hpcgen",
        "Label: hpcgen bundle",
        f"Date: {date}",
        "SHA256:",
        f" {sha256_of(data)} {len(data)} {APT_INDEX}",
    ]
    return "\n".join([*lines, ""])


def _stanza(path: Path, item: BundleItem) -> tuple[tuple[str, ...], str]:
    """A package's paragraph, with what it is sorted by."""
    fields = read_control(path)
    key = (fields["Package"], fields["Version"], fields["Architecture"])
    if not re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", key[0]):
        raise InputError(f"{path} says that it is a package named {key[0][:60]!r}", remedy="fetch it again")
    for name in _OWN:
        fields.pop(name, None)
    fields.update({"Filename": item.path, "Size": str(item.size), "SHA256": item.sha256})
    return (*key, item.path), fields.dump()


def deb_licence(path: Path) -> str:
    """The SPDX expression for all that a package's source says of its files; empty unless every name is known.

    A licence is taken only from a copyright file in Debian's machine-readable format. Nothing is guessed.
    """
    try:
        package = read_control(path)["Package"]
        return spdx_of(read_copyright(path, package))
    except HpcgenError:
        return ""


def spdx_of(text: str) -> str:
    """The SPDX expression of a machine-readable copyright file; empty if it is none or has an unknown licence."""
    stanzas = paragraphs(text)
    if not stanzas or not _FORMAT.fullmatch(stanzas[0].get("format", "")):
        return ""
    named = [each.get("license", "").split("\n")[0].strip() for each in stanzas if "files" in each]
    if not named:
        return ""
    found = [_expression(each) for each in dict.fromkeys(named)]
    if not all(found):
        return ""
    parts = sorted(set(found))
    return parts[0] if len(parts) == 1 else " AND ".join(f"({each})" if " OR " in each else each for each in parts)


def _expression(short: str) -> str:
    """One ``License`` line. ``and`` binds closer than ``or``, and a comma before either looser than both."""
    parts = re.split(r",\s+(and|or)\s+", short)
    words = {each.lower() for each in parts[1::2]}
    if len(words) > 1 or "," in "".join(parts[::2]):
        return ""
    return _joined((_operands(each, ("or", "and")) for each in parts[::2]), words.pop() if words else "and")


def _operands(text: str, words: Sequence[str]) -> str:
    """What stands between these words, of which each binds closer than the one before it; below them are names."""
    if not words:
        return _short_names().get(text.lower(), "")
    parts = re.split(rf"\s+{words[0]}\s+", text.strip(), flags=re.IGNORECASE)
    return _joined((_operands(each, words[1:]) for each in parts), words[0])


def _joined(parts: Iterable[str], word: str) -> str:
    found = list(dict.fromkeys(parts))
    if not all(found):
        return ""
    inner = [f"({each})" if len(found) > 1 and word == "and" and " OR " in each else each for each in found]
    return f" {word.upper()} ".join(inner)


@cache
def _short_names() -> dict[str, str]:
    return msgspec.yaml.decode(_LICENCES.read_bytes(), type=dict[str, str])
