"""Which keys signed the package indexes that apt read, each with the key ring that the source allows.

apt has checked the signatures when it read the indexes; here they are checked once more for the fingerprints.
Sources: sources.list(5) and apt-get(8) "indextargets"; apt's methods/sqv.cc and apt-pkg/contrib/gpgv.cc for how a
signed text is taken apart; RFC 4880, 7 (cleartext signatures).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

import msgspec

from hpcgen.core.errors import FetchError
from hpcgen.core.model.lock import KeyPin
from hpcgen.core.support.deb822 import paragraphs
from hpcgen.supply.pin.base_shell import BaseShell, quoted
from hpcgen.supply.pin.index_signatures import KEY_BLOCK, SignedIndex, dearmoured, signers
from hpcgen.supply.pin.package_manager import index_keys, unsigned

APT_GET = (
    "apt-get",
    *("-o", "Acquire::GzipIndexes=false"),
    *("-o", "Dir::Cache::pkgcache=pkgcache.bin"),
    *("-o", "Dir::Cache::srcpkgcache="),
)
"""The words that apt is started with where it reads indexes.

Images of Debian and Ubuntu are set to save space: apt keeps its indexes compressed and no cache of them, and so reads
them all anew whenever it starts. Here it reads them once. Its second cache is of use where only the installed packages
change. Source: apt.conf(5), "Dir::Cache" and "Acquire::GzipIndexes"; debuerreotype's debuerreotype-minimizing-config.
"""
_TARGETS = "$(CREATED_BY)|$(FILENAME)|$(REPO_URI)|$(RELEASE)|$(METAKEY)"
_SIGNATURE = "-----BEGIN PGP SIGNATURE-----"

_LIST_SOURCES = """
eval "$(apt-config shell LIST Dir::Etc::sourcelist/f PARTS Dir::Etc::sourceparts/d)"
for file in "$LIST" "$PARTS"/*; do
  if [ -f "$file" ]; then echo "$file"; fi
done
"""


class AptSource(msgspec.Struct, frozen=True):
    """A repository as apt's sources name it. ``signed_by``: key rings, fingerprints, a key, or nothing."""

    uri: str
    suite: str
    signed_by: str
    file: str


class AptRelease(msgspec.Struct, frozen=True):
    """A signed index that apt read: the repository, the text without its signature, and the signature."""

    uri: str
    suite: str
    text: str
    signature: bytes

    @property
    def date(self) -> datetime:
        """The ``Date`` field; FetchError if there is none."""
        found = re.search(r"^Date: *(.+)$", self.text, re.MULTILINE)
        try:
            date = parsedate_to_datetime(found.group(1)) if found else None
        except (TypeError, ValueError):
            date = None
        if date is None:
            raise FetchError(
                f"the index {self.uri} {self.suite} has no date",
                expected="a field Date",
                remedy="name another mirror: network.mirrors of the profile",
            )
        return date.astimezone(timezone.utc) if date.tzinfo else date.replace(tzinfo=timezone.utc)


def key_pins(shell: BaseShell) -> tuple[list[KeyPin], int]:
    """The keys of all indexes that apt has read, and the newest date among the indexes, in seconds since 1970.

    PolicyError: an index that no key signed. FetchError: an index that cannot be understood, or nothing in the image
    verifies signatures.
    """
    releases = _releases(shell)
    sources = _sources(shell)
    good = signers(
        shell,
        [SignedIndex(each.text.encode(), each.signature, _rings(shell, each, sources)) for each in releases],
    )
    bad = [f"{each.uri} {each.suite}" for each, found in zip(releases, good, strict=True) if not found]
    if bad:
        remedy = "remove [trusted=yes] from the source, and name its key ring with signed-by"
        raise unsigned(shell.image, bad, remedy)
    dates = [int(release.date.timestamp()) for release in releases]
    pins = [
        pin
        for release, date, found in zip(releases, dates, good, strict=True)
        for pin in index_keys(f"{release.uri} {release.suite}", date, found)
    ]
    return pins, max(dates, default=0)


# what apt read


def _releases(shell: BaseShell) -> list[AptRelease]:
    lines = shell.check(quoted([*APT_GET, "indextargets", "--format", _TARGETS]), "listing the package indexes")
    wanted: dict[tuple[str, str], str] = {}
    for line in lines:
        created, _, rest = line.partition("|")
        parts = rest.split("|")
        if created == "Packages" and len(parts) == 4:
            file, uri, suite, key = parts
            # The local name is the address of the index; its folder's is the same without the key.
            wanted.setdefault((uri, suite), file[: file.rfind(key.replace("/", "_"))])
    return [_release(shell, uri, suite, start) for (uri, suite), start in sorted(wanted.items())]


def _release(shell: BaseShell, uri: str, suite: str, start: str) -> AptRelease:
    found = shell.read([f"{start}InRelease", f"{start}Release", f"{start}Release.gpg"])
    if f"{start}InRelease" in found:
        text, signature = split_signed(found[f"{start}InRelease"].decode("utf-8", "replace"))
        return AptRelease(uri, suite, text, signature.encode())
    text = found.get(f"{start}Release", b"").decode("utf-8", "replace")
    return AptRelease(uri, suite, text, found.get(f"{start}Release.gpg", b""))


def split_signed(message: str) -> tuple[str, str]:
    """The text that a cleartext signature signs, and the signature. What is outside of both does not count.

    The text is without the trailing white space of lines and without the last line break, which are not signed.
    """
    head, _, rest = message.replace("\r\n", "\n").partition("\n\n")
    body, mark, signature = rest.partition(f"\n{_SIGNATURE}\n")
    if not head.startswith("-----BEGIN PGP SIGNED MESSAGE-----\n") or not mark:
        return "", ""
    lines = [line.removeprefix("- ").rstrip(" \t") for line in body.split("\n")]
    return "\n".join(lines), f"{_SIGNATURE}\n{signature}"


# what apt trusts


def _sources(shell: BaseShell) -> list[AptSource]:
    files = shell.check(_LIST_SOURCES, "reading apt's configuration")
    texts = shell.read(files)
    found: list[AptSource] = []
    for path in files:
        text = texts.get(path, b"").decode("utf-8", "replace")
        if path.endswith(".sources"):
            found += _deb822(text, path)
        elif path.endswith(".list"):
            found += _one_line(text, path)
    return found


def _one_line(text: str, path: str) -> Iterable[AptSource]:
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)", line.partition("#")[0])
        if match:
            options = dict(each.split("=", 1) for each in (match[1] or "").split() if "=" in each)
            signed_by = {name.lower(): value for name, value in options.items()}.get("signed-by", "")
            yield AptSource(match[2], match[3], signed_by, path)


def _deb822(text: str, path: str) -> Iterable[AptSource]:
    for fields in paragraphs(text):
        # A key may stand there itself: lines begun with a space, an empty one as a dot.
        signed_by = "\n".join(line.strip().removeprefix(".") for line in fields.get("Signed-By", "").splitlines())
        for uri in fields.get("URIs", "").split():
            for suite in fields.get("Suites", "").split():
                yield AptSource(uri, suite, signed_by, path)


def _rings(shell: BaseShell, release: AptRelease, sources: Sequence[AptSource]) -> dict[str, bytes]:
    """Key rings that may vouch for an index, by the name shown to people, without armour."""
    fitting = [s for s in sources if s.uri.rstrip("/") == release.uri.rstrip("/") and s.suite == release.suite]
    rings: dict[str, bytes] = {}
    for source in fitting:
        if KEY_BLOCK in source.signed_by:
            rings[f"the key in {source.file}"] = dearmoured(source.signed_by.encode())
        else:
            paths = [path for path in re.split(r"[,\s]+", source.signed_by) if path.startswith("/")]
            rings |= {path: dearmoured(data) for path, data in shell.read(paths).items()}
    if rings:
        return rings
    names = shell.check("ls /etc/apt/trusted.gpg.d 2>/dev/null || true", "listing apt's key rings")
    paths = [f"/etc/apt/trusted.gpg.d/{name}" for name in names if name.endswith((".gpg", ".asc"))]
    found = shell.read([*paths, "/etc/apt/trusted.gpg"])
    return {path: dearmoured(data) for path, data in found.items() if data}
