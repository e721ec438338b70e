"""A base image is held against the plan by its files, before anything is locked."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import FetchError
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.hashing import sha256_of
from hpcgen.images.oci_layout import MANIFEST_TYPE, add
from hpcgen.planning.planner import make_plan
from hpcgen.supply.pin.base_system import check_base

CATALOG = Catalog()
NAME = "ubuntu:22.04"
AMD64, ARM64 = (b"\x7fELF\x02\x01\x01" + b"\0" * 9 + b"\x03\0" + machine for machine in (b"\x3e\0", b"\xb7\0"))
JAMMY = 'PRETTY_NAME="Ubuntu"\nVERSION_ID="22.04"\nID=ubuntu\n'
BOOKWORM = "VERSION_ID='12'\nID=debian\n"


@pytest.fixture(scope="module")
def plan() -> Plan:
    settings = ("base.provider=ubuntu", "base.version=22.04")
    return make_plan(CATALOG, CATALOG.site("workstation"), CATALOG.stack("mpi-hello"), settings=settings)


def layout_of(folder: Path, files: Mapping[str, bytes], links: Mapping[str, str]) -> Path:
    """An OCI layout with an image of these files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, target in links.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    layer = gzip.compress(packed.getvalue(), mtime=0)
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}}).encode()
    blobs, described = {}, []
    for data in (config, layer):
        digest = f"sha256:{sha256_of(data)}"
        blobs[digest] = folder / digest[7:]
        blobs[digest].write_bytes(data)
        described.append({"digest": digest, "size": len(data), "mediaType": "application/octet-stream"})
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": {**described[0], "mediaType": "application/vnd.oci.image.config.v1+json"},
        "layers": [{**described[1], "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip"}],
    }
    add(folder / "images", NAME, blobs, json.dumps(manifest).encode())
    return folder / "images"


def look(plan: Plan, folder: Path, release: str, shell: bytes = AMD64) -> None:
    files = {"usr/lib/os-release": release.encode(), "usr/bin/dash": shell}
    links = {"bin": "usr/bin", "usr/bin/sh": "dash", "etc/os-release": "../usr/lib/os-release"}
    check_base(plan, CATALOG, NAME, "oci-archive:base.tar", layout_of(folder, files, links))


def test_the_base_of_the_plan_is_taken(plan: Plan, tmp_path: Path) -> None:
    look(plan, tmp_path, JAMMY)


def test_a_shell_that_is_no_program_says_nothing(plan: Plan, tmp_path: Path) -> None:
    look(plan, tmp_path, JAMMY, b"#!")


def test_another_distribution_is_refused_with_the_plan_that_it_is_for(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(FetchError) as raised:
        look(plan, tmp_path, BOOKWORM)
    (problem,) = raised.value.problems
    assert problem.message == "the base image ubuntu:22.04 from oci-archive:base.tar is amd64 debian 12"
    assert problem.expected == "amd64 ubuntu 22.04, as the plan has it"
    assert problem.remedy.endswith("; or lock for this one: --set base.provider=debian --set base.version=12")


def test_programs_of_another_architecture_are_refused_whatever_the_image_says(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"is arm64 ubuntu 22\.04") as raised:
        look(plan, tmp_path, JAMMY, ARM64)
    assert raised.value.problems[0].remedy == "name another one: --image ubuntu:22.04=REFERENCE"


def test_what_it_says_steers_no_terminal(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(FetchError) as raised:
        look(plan, tmp_path, "ID=\x1b[31mevil\nVERSION_ID=" + "9" * 5000)
    assert raised.value.problems[0].message.endswith("is amd64 [31mevil " + "9" * 40)
