"""RPM packages as zypper in the base image names them. zypper is a stand-in; tests/containers has the real one."""

from __future__ import annotations

import bz2
import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from hpcgen.core.errors import FetchError, HpcgenError, InputError, PolicyError
from hpcgen.core.model.lock import KeyPin, PackagePin
from hpcgen.supply.pin.zypper_packages import Zypper
from tests.unit.supply.pin.test_os_packages import Base

FINGERPRINT = "22C07BA534178CD02EFE22AAB88B2FD43DBDC284"
KEY = "gpg-pubkey-3dbdc284-53674dd4"
RAW = "/var/cache/zypp/raw"
KEYS = f"""\
= {KEY}
-----BEGIN PGP PUBLIC KEY BLOCK-----
Version: rpm-4.20.1

cmluZw==
-----END PGP PUBLIC KEY BLOCK-----
"""
GPGV = f"""\
= 0 0
[GNUPG:] NEWSIG
[GNUPG:] EXPKEYSIG B88B2FD43DBDC284 openSUSE Project Signing Key
[GNUPG:] VALIDSIG {FINGERPRINT} 2026-11-14 1 0 4 0 1 8 01 {FINGERPRINT}"""
REPOSITORY = """\
<repo alias="{alias}" name="main" type="rpm-md" priority="{priority}" enabled="{enabled}" gpgcheck="1">
<url>https://mirror.example.org/leap/{alias}/</url>
</repo>"""
PACKAGE = """\
<package type="rpm">
  <name>{name}</name>
  <arch>x86_64</arch>
  <version epoch="{epoch}" ver="{version}" rel="1.2"/>
  <checksum type="{kind}" pkgid="YES">{hash}</checksum>
  <summary>A &lt;file&gt;</summary>
  <size package="1356" installed="9" archive="9"/>
  <location href="x86_64/{name}-{version}-1.2.x86_64.rpm"/>
  <format>
    <rpm:provides><rpm:entry name="{name}"/><rpm:entry name="capability-of-{name}"/></rpm:provides>
    <rpm:requires><rpm:entry name="{requires}"/></rpm:requires>
    <file>/usr/bin/{name}</file>
  </format>
</package>
"""
SUMMARY = """\
<?xml version='1.0'?>
<stream>
<message type="info">Loading repository data...</message>
<install-summary download-size="12423" space-usage-diff="15" packages-to-change="2">
<to-upgrade>
<solvable type="package" name="libneeded" edition="1:2.0^git5-1.2" arch="x86_64" edition-old="1-1" summary="&amp;"/>
</to-upgrade>
<to-install>
<solvable type="package" name="hello" edition="1.0-1.2" arch="x86_64" summary="A file">
<description>A file.</description></solvable>
<solvable type="pattern" name="basis" edition="1-1" arch="noarch"/>
</to-install>
<to-remove>
<solvable type="package" name="gone" edition="1-1" arch="noarch"/>
</to-remove>
</install-summary>
<prompt id="0">
<text>Continue?</text>
</prompt>
</stream>"""
UNSOLVED = """\
<message type="info">Resolving package dependencies...</message>
<prompt id="1">
<description>Problem: nothing provides &apos;nowhere&apos; needed by broken-1-1.noarch
 Solution 1: do not install broken-1-1.noarch
</description>
</prompt>"""


def package(name: str = "hello", version: str = "1.0", **other: str) -> str:
    values = {"epoch": "0", "kind": "sha256", "hash": "d" * 64, "requires": "/usr/bin/libneeded", **other}
    return PACKAGE.format(name=name, version=version, **values)


NEEDED = package("libneeded", "2.0^git5", epoch="1", hash="e" * 64, requires="capability-of-hello")


def index(base: Base, alias: str, *packages: str, pack: Callable[[bytes], bytes] = gzip.compress) -> None:
    """What zypper fetched of a repository."""
    about = 'xmlns="http://linux.duke.edu/metadata/common" xmlns:rpm="http://linux.duke.edu/metadata/rpm"'
    listed = f'<?xml version="1.0"?>\n<metadata {about} packages="9">\n{"".join(packages)}</metadata>\n'
    data = pack(listed.encode())
    base.files |= {
        f"{RAW}/{alias}/repodata/primary": data,
        f"{RAW}/{alias}/repodata/repomd.xml.asc": b"signature",
        f"{RAW}/{alias}/repodata/repomd.xml": f"""\
<?xml version="1.0" encoding="UTF-8"?>
<repomd xmlns="http://linux.duke.edu/metadata/repo">
  <revision>7</revision>
  <data type="primary">
    <checksum type="sha512">{hashlib.sha512(data).hexdigest()}</checksum>
    <location href="repodata/primary"/>
    <timestamp>1794647699</timestamp>
  </data>
  <data type="filelists"><timestamp>1794647700.25</timestamp></data>
</repomd>""".encode(),
    }


def repositories(*rows: str) -> tuple[int, str]:
    return 0, "\n".join(["<stream>", "<repo-list>", *rows, "</repo-list>", "</stream>"])


@pytest.fixture
def base(tmp_path: Path) -> Base:
    made = Base(tmp_path)
    made.answers = {
        "zypper --non-interactive refresh": (0, "All repositories have been refreshed."),
        "repos --uri": repositories(
            REPOSITORY.format(alias="own", priority=99, enabled=1),
            REPOSITORY.format(alias="debug", priority=99, enabled=0),
        ),
        "install --dry-run": (0, SUMMARY),
        "rpm -qa gpg-pubkey": (0, KEYS),
        "gpgv": (0, GPGV),
    }
    index(made, "own", package("others"), package(), package(version="0.9"), NEEDED)
    return made


def zypper(base: Base) -> Zypper:
    manager = Zypper(base)  # type: ignore[arg-type]
    manager.update()
    return manager


def test_packages_are_those_that_zypper_names_with_the_hashes_of_its_indexes(base: Base) -> None:
    manager = zypper(base)
    where = "https://mirror.example.org/leap/own/x86_64"
    assert manager.added(["hello"]) == {
        "hello": PackagePin(
            version="1.0-1.2",
            architecture="x86_64",
            sha256="d" * 64,
            size=1356,
            url=f"{where}/hello-1.0-1.2.x86_64.rpm",
        ),
        "libneeded": PackagePin(
            version="1:2.0^git5-1.2",
            architecture="x86_64",
            sha256="e" * 64,
            size=1356,
            url=f"{where}/libneeded-2.0^git5-1.2.x86_64.rpm",
        ),
    }
    assert manager.depends(["hello"]) == {"hello": ["libneeded"], "libneeded": ["hello"]}


def test_nothing_is_added_where_the_image_has_all_of_it(base: Base) -> None:
    base.answers["install --dry-run"] = (0, '<message type="info">Nothing to do.</message>')
    assert zypper(base).added(["hello"]) == {}


@pytest.mark.parametrize("pack", [bytes, bz2.compress])
def test_an_index_may_be_packed_otherwise(base: Base, pack: Callable[[bytes], bytes]) -> None:
    index(base, "own", package(), NEEDED, pack=pack)
    assert list(zypper(base).added(["hello"])) == ["hello", "libneeded"]


def test_the_keys_are_those_of_rpms_database_that_signed_the_indexes_also_expired_ones(base: Base) -> None:
    pins, epoch = zypper(base).keys()
    where = "https://mirror.example.org/leap/own own"
    assert pins == [KeyPin(fingerprint=FINGERPRINT, keyring=KEY, index=where, date="2026-11-14T09:15:00Z")]
    assert epoch == 1794647700
    assert base.files["/.hpcgen/0-0.ring"] == b"ring"


def test_an_index_that_no_key_signed_is_refused(base: Base) -> None:
    base.answers["gpgv"] = (0, GPGV.replace("EXPKEYSIG", "BADSIG"))
    with pytest.raises(PolicyError, match="leap/own own is not signed by any key") as caught:
        zypper(base).keys()
    assert "rpm --import" in str(caught.value)


def test_longer_hashes_are_held_against_the_files_whose_sha256_is_pinned(base: Base) -> None:
    index(base, "own", package(kind="sha512", hash="a" * 128), NEEDED)
    sums = f"{'b' * 64}  own/x86_64/hello-1.0-1.2.x86_64.rpm\n{'a' * 128}  own/x86_64/hello-1.0-1.2.x86_64.rpm"
    base.answers["download"] = (0, f"Retrieving package hello-1.0-1.2.x86_64\n{sums}")
    added = zypper(base).added(["hello"])
    assert (added["hello"].sha256, added["libneeded"].sha256) == ("b" * 64, "e" * 64)
    assert "hello.x86_64=1.0-1.2" in base.scripts[-1]
    assert "libneeded" not in base.scripts[-1]

    base.answers["download"] = (0, sums.replace("a" * 128, "c" * 128))
    with pytest.raises(FetchError, match=r"hello-1.0-1.2.x86_64.rpm does not have the sha512"):
        zypper(base).added(["hello"])
    base.answers["download"] = (0, "Abort, retry, ignore? (a): a")
    with pytest.raises(FetchError, match="Abort, retry, ignore"):
        zypper(base).added(["hello"])


def test_of_several_repositories_that_of_the_higher_priority_counts(base: Base) -> None:
    own, new, same = (
        REPOSITORY.format(alias=alias, priority=priority, enabled=1)
        for alias, priority in (("own", 99), ("new", 90), ("new", 99))
    )
    base.answers["repos --uri"] = repositories(own, new)
    index(base, "new", package(hash="f" * 64))
    assert zypper(base).added(["hello"])["hello"].sha256 == "f" * 64
    base.answers["repos --uri"] = repositories(own, same)
    with pytest.raises(InputError, match=r"hello-1.0-1.2.x86_64 is another file in new than in own"):
        zypper(base).added(["hello"])
    index(base, "new", package())
    assert zypper(base).added(["hello"])["hello"].sha256 == "d" * 64


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ('<message type="error">No provider of &apos;hullo&apos; found.</message>', "No provider of 'hullo' found."),
        (UNSOLVED, "Problem: nothing provides 'nowhere' needed by broken-1-1.noarch Solution 1: do not install"),
        ("zypper: not found", "zypper: not found"),
    ],
)
def test_what_zypper_cannot_install_is_said(base: Base, answer: str, said: str) -> None:
    base.answers["install --dry-run"] = (104, answer)
    with pytest.raises(InputError) as caught:
        zypper(base).added(["hullo"])
    assert said in str(caught.value)


def test_indexes_that_cannot_be_read_are_said(base: Base) -> None:
    base.answers["zypper --non-interactive refresh"] = (4, "Valid metadata not found at specified URL")
    with pytest.raises(FetchError, match="zypper refresh failed"):
        zypper(base)


REPOMD, PRIMARY = f"{RAW}/own/repodata/repomd.xml", f"{RAW}/own/repodata/primary"


@pytest.mark.parametrize(
    ("path", "data", "said"),
    [
        (REPOMD, b"", "is not XML"),
        (REPOMD, b"<repomd><data type='other'/></repomd>", "names no primary list"),
        (REPOMD, b"<repomd><data type='primary'/></repomd>", "data has no checksum"),
        (PRIMARY, b"changed", "does not have the sha512"),
    ],
)
def test_a_damaged_index_is_refused(base: Base, path: str, data: bytes, said: str) -> None:
    base.files[path] = data
    with pytest.raises(FetchError, match=r"the index .* own is not understood") as caught:
        zypper(base).added(["hello"])
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("listed", "error", "said"),
    [
        (package().replace('package="1356"', 'package="many"'), FetchError, "a package of the primary list"),
        (package().replace("<arch>", "<ark>").replace("</arch>", "</ark>"), FetchError, "package has no arch"),
        (package(version="1.1"), FetchError, "no repository's index has hello-1.0-1.2.x86_64"),
        (package(kind="sha1", hash="d" * 40), InputError, "no sha256, only SHA1"),
        (package().replace("x86_64/hello", "x86_64/hullo"), FetchError, "is in the file hullo-1.0-1.2.x86_64.rpm"),
    ],
)
def test_packages_that_could_not_be_fetched_again_are_refused(
    base: Base, listed: str, error: type[HpcgenError], said: str
) -> None:
    index(base, "own", listed, NEEDED)
    with pytest.raises(error, match=said):
        zypper(base).added(["hello"])


@pytest.mark.parametrize("inside", ["<to-install a=b/>", '<to-install><solvable type="package"/></to-install>'])
def test_answers_that_are_none_are_refused(base: Base, inside: str) -> None:
    base.answers["install --dry-run"] = (0, f"<install-summary>{inside}</install-summary>")
    with pytest.raises(FetchError, match="zypper's output cannot be parsed"):
        zypper(base).added(["hello"])
