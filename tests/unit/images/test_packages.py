"""The packages of an image that no lock pins are read from the records in it, whatever kind of image it is."""

from __future__ import annotations

import json
import sqlite3
import struct
from pathlib import Path

import pytest

from hpcgen.core.errors import InputError
from hpcgen.images.packages import packages_in, packages_pinned
from hpcgen.images.reference import parse_image
from hpcgen.images.rpm_database import RpmRecord, rpm_packages
from tests.conftest import ROOT, Command
from tests.unit.images.test_images import STORED, layer, oci_archive, tar

SITE = "opt/venv/lib/python3.12/site-packages"
RPM = "var/lib/rpm/rpmdb.sqlite"
STATUS = """Package: libc6
Status: install ok installed
Version: 2.36-9+deb12u13

Package: gone
Status: deinstall ok config-files
Version: 1
"""
RECORDS: dict[str, bytes] = {
    "var/lib/dpkg/status": STATUS.encode(),
    f"{SITE}/Typing_Extensions-4.12.2.dist-info/METADATA": b"",
    f"{SITE}/no_metadata-1.dist-info/RECORD": b"",
    "usr/lib/python3/dist-packages/PyYAML-6.0.1.egg-info": b"",
    "opt/conda/conda-meta/numpy-base-1.26.4-py312_0.json": b"{}",
    "opt/conda/conda-meta/history": b"",
}
FOUND = [
    ("conda", "numpy-base", "1.26.4", "/opt/conda/conda-meta"),
    ("os", "libc6", "2.36-9+deb12u13", "/var/lib/dpkg/status"),
    ("python", "pyyaml", "6.0.1", "/usr/lib/python3/dist-packages"),
    ("python", "typing-extensions", "4.12.2", f"/{SITE}"),
]


def a_header(name: str, version: str, release: str, epoch: int | None = None, source: str = "") -> bytes:
    """A package as rpm keeps it."""
    index, store = b"", b""
    for tag, text in ((1000, name), (1001, version), (1002, release), *([(1044, source)] if source else [])):
        index += struct.pack(">4I", tag, 6, len(store), 1)
        store += text.encode() + b"\0"
    if epoch is not None:
        store += bytes(-len(store) % 4)
        index += struct.pack(">4I", 1003, 4, len(store), 1)
        store += struct.pack(">I", epoch)
    return struct.pack(">2I", len(index) // 16, len(store)) + index + store


def sqlite_database(folder: Path, blobs: list[bytes], before: str = "") -> bytes:
    file = folder / "db"
    file.unlink(missing_ok=True)
    with sqlite3.connect(file) as connection:
        connection.execute(before or "CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB NOT NULL)")
        if not before:
            connection.executemany("INSERT INTO Packages (blob) VALUES (?)", [(blob,) for blob in blobs])
    connection.close()
    return file.read_bytes()


def ndb_database(blobs: list[bytes]) -> bytes:
    slots, data = b"", b""
    for number, blob in enumerate(blobs, 1):
        slots += struct.pack("<4s3I", b"Slot", number, (4096 + len(data)) // 16, 0)
        data += struct.pack("<4s3I", b"BlbS", number, 0, len(blob)) + blob
        data += bytes(-len(data) % 16)
    empty = struct.pack("<4s3I", b"Slot", 0, 0, 0)
    slots += empty * ((4096 - 32 - len(slots)) // 16)
    return struct.pack("<4s4I", b"RpmP", 0, 1, 1, len(blobs) + 1) + bytes(12) + slots + data


def written(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.parametrize("kind", ["folder", "tar", "tar.gz", "oci"])
def test_every_kind_of_image_says_the_same(kind: str, tmp_path: Path) -> None:
    root = written(tmp_path / "root", RECORDS)
    image = root
    if kind.startswith("tar"):
        image = tar(tmp_path / f"image.{kind}", root)
    elif kind == "oci":
        # The upper layer takes a package away, and what was below an older version of another.
        lower = layer({**RECORDS, f"{SITE}/old-1.dist-info/METADATA": b""})
        image = oci_archive(tmp_path / "image.oci", [lower, layer({f"{SITE}/.wh.old-1.dist-info": b""})])
    found = packages_in(parse_image(str(image)))
    assert [(each.kind, each.name, each.version, each.where) for each in found.found] == FOUND
    assert found.unread == []


@pytest.mark.parametrize("kind", ["sqlite", "ndb"])
def test_rpm_databases_are_read(kind: str, tmp_path: Path) -> None:
    blobs = [a_header("bash", "5.1.8", "9.el9"), a_header("vim", "9", "1", 2), a_header("gpg-pubkey", "1", "2")]
    data = sqlite_database(tmp_path, blobs) if kind == "sqlite" else ndb_database(blobs)
    assert rpm_packages(data, RPM) == [RpmRecord("bash", "5.1.8-9.el9"), RpmRecord("vim", "2:9-1")]


def test_a_source_package_has_the_epoch_of_what_is_built_from_it(tmp_path: Path) -> None:
    source = "perl-5.32.1-481.el9.src.rpm"
    blobs = [
        a_header("perl-libs", "5.32.1", "481.el9", 4, source),
        # It has a version of its own.
        a_header("perl-Errno", "1.30", "481.el9", None, source),
        a_header("alone", "1", "2", 3, "other-src-9-1.src.rpm"),
    ]
    found = rpm_packages(sqlite_database(tmp_path, blobs), RPM)
    assert [(each.name, each.source, each.source_version) for each in found] == [
        ("perl-libs", "perl", "4:5.32.1-481.el9"),
        ("perl-Errno", "perl", "4:5.32.1-481.el9"),
        ("alone", "other-src", "3:9-1"),
    ]


HARM = {
    "berkeley": bytes(16),
    "cut off": b"SQLite format 3\0" + bytes(100),
    "header": ndb_database([struct.pack(">2I", 2**28, 2**28)]),
    "slot": b"RpmP" + struct.pack("<4I", 0, 1, 1, 1) + bytes(12) + bytes(64),
}


@pytest.mark.parametrize("data", HARM.values(), ids=HARM)
def test_a_database_that_cannot_be_read_is_said_and_the_rest_is_shown(data: bytes, tmp_path: Path) -> None:
    root = written(tmp_path / "root", {**RECORDS, RPM: data})
    found = packages_in(parse_image(str(root)))
    assert len(found.found) == len(FOUND)
    assert len(found.unread) == 1 and RPM in found.unread[0]


def test_a_view_that_never_ends_is_not_asked(tmp_path: Path) -> None:
    view = (
        "CREATE VIEW Packages AS WITH RECURSIVE n(blob) AS (SELECT x'00' UNION ALL SELECT blob FROM n) SELECT * FROM n"
    )
    with pytest.raises(InputError, match="no table of packages"):
        rpm_packages(sqlite_database(tmp_path, [], view), RPM)


def test_links_of_an_image_are_not_walked(tmp_path: Path) -> None:
    root = written(tmp_path / "root", {"etc/x": b""})
    written(tmp_path / "host", RECORDS)
    (root / "var").symlink_to(tmp_path / "host" / "var")
    (root / "opt").symlink_to(tmp_path / "host" / "opt")
    assert packages_in(parse_image(str(root))).found == []


def test_inspect_shows_them_with_where_they_were_read(tmp_path: Path, hpcgen: Command) -> None:
    kit = {f"opt/hpcgen/kit/{file.name}": file.read_bytes() for file in STORED.iterdir() if file.is_file()}
    root = written(tmp_path / "root", RECORDS | kit)
    shown = hpcgen("inspect", str(root))
    assert "read from" in shown.stdout, shown.stderr
    assert any(
        line.split() == ["libc6", "2.36-9+deb12u13", "os", "/var/lib/dpkg/status"] for line in shown.stdout.split("\n")
    )
    told = json.loads(hpcgen("inspect", str(root), "--json").stdout)
    assert told["packages_from"] == "image" and len(told["packages"]) == len(FOUND)


def test_of_a_lock_that_pins_them_its_pins_are_shown() -> None:
    from hpcgen.core.config.yamlfile import loads

    text = (ROOT / "tests" / "specimens" / "0.1.0" / "locks" / "hpcgen.lock").read_text("utf-8")
    found = {(each.kind, each.name): each.version for each in packages_pinned(loads(text, "lock").data)}
    assert found["os", "libgomp1"] == "1:2.0-1" and found["os", "libc6"] == "2.36-9+deb12u13"
    assert found["python", "packaging"] == "26.3"
    assert packages_pinned({"pinned_packages": [1], "inputs": [{"requirements": 3}, 4]}) == []
