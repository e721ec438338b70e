"""A bundle's apt repository: its index from the packages themselves, and licences that are stated, never guessed."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import stat
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcgen.core.errors import HpcgenError, InputError
from hpcgen.core.model.bundle import BundleItem
from hpcgen.core.model.image_paths import file_path
from hpcgen.supply.bundle.apt_index import deb_licence, read_control, read_copyright, spdx_of, write_apt_index

CONTROL = """\
Package: hello
Version: 1:2.10-3
Architecture: amd64
Maintainer: Somebody <somebody@example.org>
Depends: libc6 (>= 2.34)
Description: greets
 Two lines of text,
 .
 and a third.
"""
COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: hello

Files: *
Copyright: 1992 Somebody
License: GPL-3+

Files: debian/*
Copyright: 2020 Another
License: Expat

License: GPL-3+
 The text.
"""


def zstd_stored(data: bytes) -> bytes:
    """A zstd frame of stored blocks. Source: RFC 8878, 3.1."""
    frame = b"\x28\xb5\x2f\xfd" + bytes([0xA0]) + len(data).to_bytes(4, "little")
    parts = [data[start : start + 100_000] for start in range(0, len(data), 100_000)]
    for part in parts:
        frame += (len(part) << 3 | (part is parts[-1])).to_bytes(3, "little") + part
    return frame


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zstd_stored,
}


def tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def ar(members: dict[str, bytes]) -> bytes:
    result = b"!<arch>\n"
    for name, data in members.items():
        result += (
            f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
        )
    return result


def deb(control: str = CONTROL, copyright: str = COPYRIGHT, ending: str = ".xz") -> bytes:
    pack = PACKERS[ending]
    return ar(
        {
            "debian-binary": b"2.0\n",
            f"control.tar{ending}": pack(tar({"./md5sums": b"", "./control": control.encode()})),
            f"data.tar{ending}": pack(tar({"./usr/share/doc/hello/copyright": copyright.encode()})),
        }
    )


def put(bundle: Path, data: bytes, name: str = "hello_2.10-3_amd64.deb") -> BundleItem:
    sha256 = hashlib.sha256(data).hexdigest()
    path = bundle / file_path(sha256, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return BundleItem(
        kind="package", name=name, origin="", sha256=sha256, size=len(data), path=str(path.relative_to(bundle))
    )


@pytest.fixture
def zstd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A zstd that knows stored blocks alone, for machines that have none."""
    program = tmp_path / "bin" / "zstd"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        "data = sys.stdin.buffer.read()\n"
        "place, last = 9, False\n"
        "while not last:\n"
        "    head = int.from_bytes(data[place : place + 3], 'little')\n"
        "    last, size, place = head & 1, head >> 3, place + 3\n"
        "    sys.stdout.buffer.write(data[place : place + size])\n"
        "    place += size\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize("ending", PACKERS)
def test_reads_packages_of_every_compression(tmp_path: Path, zstd: None, ending: str) -> None:
    path = tmp_path / "hello.deb"
    path.write_bytes(deb(ending=ending))
    assert read_control(path)["Description"] == "greets\n Two lines of text,\n .\n and a third."
    assert read_copyright(path, "hello") == COPYRIGHT
    assert deb_licence(path) == "GPL-3.0-or-later AND MIT"


def test_index_has_the_control_fields_and_where_the_file_is(tmp_path: Path) -> None:
    lie = "Filename: ../../etc/passwd\nSHA256: 00\nSize: 1\n"
    item = put(tmp_path, deb(CONTROL.replace("Maintainer", lie + "Maintainer")))
    write_apt_index(tmp_path, [item], 1_700_000_000)
    text = (tmp_path / "Packages").read_text()
    assert text.startswith("Package: hello\nVersion: 1:2.10-3\nArchitecture: amd64\nMaintainer: ")
    assert text.endswith(f"\n and a third.\nFilename: {item.path}\nSize: {item.size}\nSHA256: {item.sha256}\n")
    assert "passwd" not in text
    release = (tmp_path / "Release").read_text()
    assert "Date: Tue, 14 Nov 2023 22:13:20 UTC\n" in release
    assert f" {hashlib.sha256(text.encode()).hexdigest()} {len(text)} Packages\n" in release


def test_index_is_the_same_in_whatever_order_the_packages_come(tmp_path: Path) -> None:
    items = [put(tmp_path, deb(CONTROL.replace("hello", name)), f"{name}.deb") for name in ("zz", "aa", "mm")]
    write_apt_index(tmp_path, items, 1)
    first = [(tmp_path / name).read_bytes() for name in ("Packages", "Release")]
    write_apt_index(tmp_path, items[::-1], 1)
    assert first == [(tmp_path / name).read_bytes() for name in ("Packages", "Release")]
    names = [line for line in first[0].decode().splitlines() if line.startswith("Package:")]
    assert names == ["Package: aa", "Package: mm", "Package: zz"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not an ar archive"),
        (deb()[:90], "truncated"),
        (ar({"debian-binary": b"2.0\n"}), "no control.tar"),
        (deb(CONTROL.replace("Version: 1:2.10-3\n", "")), "lacks Version"),
        (deb(CONTROL + "\nPackage: second\n"), "2 paragraphs"),
        (deb(CONTROL.replace("greets", "\x1b[31mgreets")), "control characters"),
        (deb(CONTROL.replace("hello", "../hello", 1)), "a package named '../hello'"),
        (deb(CONTROL.replace("greets", "greets\n" + " x" * 600_000)), "far too large"),
    ],
)
def test_packages_that_are_none_are_refused_by_name(tmp_path: Path, data: bytes, why: str) -> None:
    good, bad = put(tmp_path, deb()), put(tmp_path, data, "bad.deb")
    with pytest.raises(InputError, match=why) as caught:
        write_apt_index(tmp_path, [good, bad], 1)
    assert bad.path in str(caught.value)
    assert not (tmp_path / "Packages").exists()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damage_anywhere_is_an_error_that_is_explained_or_none(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = bytearray(deb(ending=data.draw(st.sampled_from(["", ".gz", ".xz"]))))
    place = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        del whole[place:]
    else:
        whole[place] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.mktemp("deb") / "hello.deb"
    path.write_bytes(whole)
    try:
        fields = read_control(path)
    except HpcgenError as error:
        assert str(path) in str(error) or "absurdly" in str(error) or "bytes" in str(error)
    else:
        assert fields["Package"]
    assert isinstance(deb_licence(path), str)


def test_a_wrong_bit_anywhere_in_a_compressed_part_is_no_traceback(tmp_path: Path) -> None:
    """Also in the checksum at its end, which is looked at while the file before it is read."""
    whole = deb(ending=".gz")
    path = tmp_path / "hello.deb"
    refused = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 2]) + whole[place + 1 :])
        try:
            read_control(path)
        except HpcgenError:
            refused += 1
    assert refused > 100


def stated(*licences: str) -> str:
    files = "\n".join(f"Files: {number}\nLicense: {each}\n" for number, each in enumerate(licences))
    return f"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\n{files}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (stated("GPL-2+"), "GPL-2.0-or-later"),
        (stated("Expat", "expat"), "MIT"),
        (stated("GPL-2+ or LGPL-3"), "GPL-2.0-or-later OR LGPL-3.0-only"),
        (stated("GPL-2+ or LGPL-3", "Zlib"), "(GPL-2.0-or-later OR LGPL-3.0-only) AND Zlib"),
        (stated("GPL-2+ or Expat, and ISC"), "(GPL-2.0-or-later OR MIT) AND ISC"),
        (stated("GPL-2+ or Expat and ISC"), "GPL-2.0-or-later OR MIT AND ISC"),
        (stated("GPL-3+ with Bison exception"), ""),
        (stated("Expat", "public-domain"), ""),
        (stated("MIT"), ""),
        (stated(), ""),
        (stated("Expat").replace("Format", "Formats"), ""),
        (stated("Expat").replace("/1.0/", "/2.0/"), ""),
        ("This package was debianized by somebody.\nLicense: Expat\n", ""),
    ],
)
def test_licence_is_what_the_copyright_file_says_or_nothing(text: str, expected: str) -> None:
    assert spdx_of(text) == expected


def test_every_short_name_stands_for_a_licence_of_spdx() -> None:
    from license_expression import get_spdx_licensing

    from hpcgen.supply.bundle.apt_index import _short_names

    known = get_spdx_licensing()
    unknown = [name for name in _short_names().values() if known.validate(name).errors]
    assert unknown == []
