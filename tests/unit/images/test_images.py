"""Images that are files and folders: named, read without being started, their kits written again.

The images are made here with Python's own tools: a folder, tar files, an OCI archive. SIF, squashfs and stores
need real engines: tests/containers/test_images.py.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from hpcgen.core.errors import InputError, UnknownNameError
from hpcgen.core.support import limits
from hpcgen.images.oci_layout import archive_image
from hpcgen.images.recorded import recorded_kit
from hpcgen.images.reference import ImageReference, parse_image
from tests.conftest import GOLDEN, Command

STORED = GOLDEN / "workstation" / "mpi-hello"
KIT = "opt/hpcgen/kit"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An image's root with a kit in it."""
    folder = tmp_path / "root"
    shutil.copytree(STORED, folder / KIT)
    return folder


def tar(path: Path, folder: Path, name: str = ".") -> Path:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as archive:
        archive.add(folder, name)
    return path


Members = dict[str, bytes | str | None]


def layer(members: Members) -> bytes:
    """A layer: bytes are a file, text is a symbolic link's target, None a folder."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                member.size = len(content)
            elif content is None:
                member.type = tarfile.DIRTYPE
            else:
                member.type, member.linkname = tarfile.SYMTYPE, content
            archive.addfile(member, io.BytesIO(content) if isinstance(content, bytes) else None)
    return gzip.compress(out.getvalue())


def files_in(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by its path in it."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def oci_archive(path: Path, layers: list[bytes], labels: dict[str, str] | None = None, config: Any = None) -> Path:
    """An OCI archive as skopeo and buildah write it; ``config``: all that it says of containers."""
    blobs: dict[str, bytes] = {}

    def put(data: bytes, kind: str) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    settings = config or {"Labels": labels or {}}
    config = put(json.dumps({"config": settings}).encode(), "config.v1+json")
    described = [put(data, "layer.v1.tar+gzip") for data in layers]
    manifest = put(json.dumps({"schemaVersion": 2, "config": config, "layers": described}).encode(), "manifest.v1+json")
    blobs["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode()
    blobs["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    with tarfile.open(path, "w") as archive:
        for name, data in blobs.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def kit_layer() -> bytes:
    return layer({f"{KIT}/{name}": data for name, data in files_in(STORED).items()})


def image_of(kind: str, root: Path) -> Path:
    """The root as an image of some kind."""
    place = root.parent
    if kind == "directory":
        return root
    if kind == "oci-archive":
        return oci_archive(place / "image.oci", [layer({"etc/x": b"x"}), kit_layer()])
    return tar(place / kind, root, "image" if kind == "in-a-folder.tar" else ".")


KINDS = ["directory", "image.tar", "image.tar.gz", "in-a-folder.tar", "oci-archive"]


@pytest.mark.parametrize("kind", KINDS)
def test_rebuild_writes_the_kit_of_the_image_byte_for_byte(kind: str, root: Path, hpcgen: Command) -> None:
    image = image_of(kind, root)
    done = hpcgen("rebuild", str(image), "-o", "again")
    assert done.returncode == 0, done.stderr
    again = root.parent / "again"
    assert files_in(again) == files_in(STORED)
    assert (again / "build.sh").stat().st_mode & 0o100
    assert "would write the same files" in done.stderr
    assert done.stdout == ""


def test_rebuild_writes_the_stored_kit_where_this_hpcgen_would_write_another(root: Path, hpcgen: Command) -> None:
    recipe = root / KIT / "Dockerfile"
    recipe.write_text(recipe.read_text() + "# by an older release\n")
    done = hpcgen("rebuild", str(root), "-o", "again", "--json")
    assert done.returncode == 0
    assert (root.parent / "again" / "Dockerfile").read_bytes() == recipe.read_bytes()
    assert "would write Dockerfile differently" in done.stderr
    assert json.loads(done.stdout)["differ"] == ["Dockerfile"]


def test_a_kit_of_a_later_release_is_shown_and_written_and_its_plan_not_guessed(root: Path, hpcgen: Command) -> None:
    path = root / KIT / "plan.json"
    plan = {**json.loads(path.read_text()), "hpcgen": "9.0.0", "something_new": [1]}
    path.write_text(json.dumps(plan))
    shown = json.loads(hpcgen("inspect", str(root), "--json").stdout)
    assert (shown["hpcgen"], shown["stack"]) == ("9.0.0", "mpi-hello")
    done = hpcgen("rebuild", str(root), "-o", "again")
    assert done.returncode == 0
    assert (root.parent / "again" / "plan.json").read_bytes() == path.read_bytes()
    assert "is unknown" in done.stderr
    with pytest.raises(InputError, match=r"use a newer hpcgen here: >= 9\.0\.0"):
        recorded_kit(parse_image(str(root)))


@pytest.mark.parametrize("path", ["../../../etc/passwd", "/etc/passwd", "files/a\n", ""])
def test_a_kit_s_list_of_files_leads_nowhere_else(path: str, root: Path, hpcgen: Command) -> None:
    told = root / KIT.lstrip("/") / "recipe.json"
    told.write_text(json.dumps({**json.loads(told.read_text()), "files": [path]}))
    done = hpcgen("rebuild", str(root), "-o", "again")
    assert done.returncode == 3 and "recipe.json in" in done.stderr and "is damaged" in done.stderr
    assert not (root.parent / "again").exists()


def test_a_kit_that_lacks_one_of_its_files_is_told(root: Path, hpcgen: Command) -> None:
    (root / KIT.lstrip("/") / "files/tests/rank_test.c").unlink()
    done = hpcgen("rebuild", str(root), "-o", "again")
    assert done.returncode == 3 and "files/tests/rank_test.c is not in its /opt/hpcgen/kit" in done.stderr


def test_inspect_shows_what_is_in_the_image(root: Path, hpcgen: Command) -> None:
    text = hpcgen("inspect", str(root)).stdout
    for words in ("mpi-hello", "workstation, partition main", "libfabric-2.6.0.tar.bz2", "mpich  ", "Dockerfile"):
        assert words in text
    assert hpcgen("inspect", str(root), "--recipe").stdout == (STORED / "Dockerfile").read_text()
    assert hpcgen("inspect", str(root), "--lock").stdout == (STORED / "hpcgen.lock").read_text()
    told = json.loads(hpcgen("inspect", str(root), "--json").stdout)
    assert told["content"] in (STORED / "hpcgen.lock").read_text()
    assert told["image"]["bytes"] == sum(len(data) for data in files_in(STORED).values())
    assert {each["name"] for each in told["files"]} == set(files_in(STORED))


def test_what_an_image_says_cannot_command_the_terminal(root: Path, hpcgen: Command) -> None:
    path = root / KIT / "plan.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "command": "\x1b]0;mine\x07", "blocks": 7}))
    done = hpcgen("inspect", str(root))
    assert done.returncode == 0
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("plan.json", "[" * 100_000, "damaged"),
        ("plan.json", "[]", "not a mapping"),
        ("plan.json", "\udcff", "not text"),
        ("hpcgen.lock", "a: &x [1]\nb: *x\n", "hpcgen.lock"),
        ("plan.json", " " * (16 * 1024 * 1024 + 1), "more than"),
    ],
    ids=["deep", "a list", "not text", "an alias", "large"],
)
def test_a_record_that_is_absurd_is_an_input_error(
    name: str, text: str, says: str, root: Path, hpcgen: Command
) -> None:
    (root / KIT / name).write_text(text, errors="surrogateescape")
    done = hpcgen("inspect", str(root))
    assert done.returncode == 3
    assert says in done.stderr
    assert "internal error" not in done.stderr


LINKS: Members = {
    "usr/lib/os-release": b"Debian",
    "etc/os-release": "../usr/lib/os-release",
    "etc/absolute": "/usr/lib/os-release",
    "lib": "usr/lib",
    "etc/outside": "../../../../../../etc/passwd",
    "etc/loop": "loop",
}
SEEN = {"/etc/os-release": b"Debian", "/etc/absolute": b"Debian", "/lib/os-release": b"Debian"}
ASKED = [*SEEN, "/etc/outside", "/etc/loop", "/usr/lib", "/nothing"]


def test_links_are_followed_inside_the_image_alone(tmp_path: Path) -> None:
    for name, content in LINKS.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.symlink_to(str(content))
    as_tar = tar(tmp_path / "a.tar.gz", tmp_path / "root")
    in_layers = oci_archive(tmp_path / "a.oci", [layer({name: content}) for name, content in LINKS.items()])
    for image in (tmp_path / "root", as_tar, in_layers):
        assert parse_image(str(image)).read(ASKED) == SEEN, image


def test_layers_hide_what_lies_below(tmp_path: Path) -> None:
    layers = [
        layer({"a/one": b"1", "a/two": b"2", "b/three": b"3", "c/four": b"4", "d/five": b"5"}),
        layer({"a/.wh.one": b"", "b/.wh..wh..opq": b"", "b/new": b"n", ".wh.c": b"", "d": b"now a file"}),
        layer({"a/one": b"again", "c/six": b"6"}),
    ]
    image = parse_image(str(oci_archive(tmp_path / "a.tar", layers)))
    assert image.kind == "oci-archive"
    wanted = ["/a/one", "/a/two", "/b/three", "/b/new", "/c/four", "/c/six", "/d/five", "/d"]
    assert image.read(wanted) == {
        "/a/one": b"again",
        "/a/two": b"2",
        "/b/new": b"n",
        "/c/six": b"6",
        "/d": b"now a file",
    }


def test_a_label_that_is_not_of_the_kit_is_told(tmp_path: Path, hpcgen: Command) -> None:
    oci_archive(tmp_path / "a.oci", [kit_layer()], {"io.hpcgen.content": "0" * 64})
    done = hpcgen("inspect", "a.oci")
    assert done.returncode == 0
    assert "built from another recipe" in done.stderr


def test_damaged_archives_are_input_errors(tmp_path: Path, root: Path) -> None:
    whole = oci_archive(tmp_path / "a.oci", [kit_layer()]).read_bytes()
    cut = tmp_path / "cut.oci"
    cut.write_bytes(whole[: len(whole) // 2])
    half = tmp_path / "half.tar.gz"
    half.write_bytes(tar(tmp_path / "whole.tar.gz", root).read_bytes()[:2000])
    bomb = tmp_path / "header.tar.gz"
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 8 * 1024**3
    bomb.write_bytes(gzip.compress(header.tobuf()))
    for path in (cut, half, bomb):
        with pytest.raises(InputError):
            parse_image(f"oci-archive:{path}" if path == cut else str(path)).read(["/opt/hpcgen/kit/plan.json"])


def header(kind: bytes, size: int) -> bytes:
    """The first block of a tar file: a member of a kind that claims a size."""
    member = tarfile.TarInfo("a" if kind == tarfile.REGTYPE else "././@LongLink")
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


def zeros(pack: Any, first: bytes, count: int) -> bytes:
    """Compressed: some bytes, and mebibytes of zeros."""
    data = pack.compress(first)
    return data + b"".join(pack.compress(bytes(1 << 20)) for _ in range(count)) + pack.flush()


def endless_map() -> bytes:
    """A sparse file of GNU tar's newest form, whose map names ten million pieces."""
    out = io.BytesIO()
    keys = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "a", "GNU.sparse.realsize": "9"}
    member = tarfile.TarInfo("a")
    member.size, member.pax_headers = 2 << 20, keys
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(member, io.BytesIO((b"9999999\n" + b"1\n" * (1 << 20))[: 2 << 20]))
    return out.getvalue()


BOMBS = {
    "a.tar.bz2": (
        lambda: zeros(bz2.BZ2Compressor(), header(tarfile.REGTYPE, 8 << 30), 20),
        "would unpack to far more",
    ),
    "a.tar.gz": (
        lambda: zeros(zlib.compressobj(9, wbits=31), header(tarfile.REGTYPE, 8 << 30), 1),
        "would unpack to far more",
    ),
    "b.tar.gz": (lambda: gzip.compress(header(tarfile.DIRTYPE, 0) * 8_000), "far more files"),
    "name.tar": (lambda: header(tarfile.GNUTYPE_LONGNAME, 3 << 30), "extended header is far too large"),
    "pax.tar": (lambda: header(tarfile.XHDTYPE, 3 << 30), "extended header is far too large"),
    "path.tar": (lambda: layer({"a/" * 5000: b""}), "it has a file name that is far too long"),
    "sparse.tar": (lambda: endless_map(), "does not end"),
}


def test_a_file_of_a_kit_cannot_command_the_terminal_either(root: Path) -> None:
    recipe = root / KIT / "Dockerfile"
    recipe.write_text(recipe.read_text() + "# \x1b]0;owned\x07\n")
    command = [sys.executable, "-m", "hpcgen", "inspect", str(root), "--recipe"]
    whole = subprocess.run(command, capture_output=True, check=True).stdout
    assert whole == recipe.read_bytes(), "a pipe gets it byte for byte"
    terminal, inside = os.openpty()
    process = subprocess.Popen(command, stdout=inside)
    os.close(inside)
    shown = b""
    try:
        while piece := os.read(terminal, 65536):
            shown += piece
    except OSError:  # the end of a terminal
        pass
    os.close(terminal)
    assert process.wait() == 0
    assert "# �]0;owned�".encode() in shown and b"\x1b" not in shown


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_cannot_stand_for_endless_reading(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A small part of what is allowed, for the sake of those who wait for the tests.
    monkeypatch.setattr(limits, "_BYTES", limits._BYTES // 64)
    monkeypatch.setattr(limits, "_MEMBERS", limits._MEMBERS // 64)
    make, said = BOMBS[name]
    path = tmp_path / name
    path.write_bytes(make())
    if name in ("name.tar", "pax.tar"):
        os.truncate(path, 4 << 30)  # sparse: it takes a block of the disk
    began = time.monotonic()
    with pytest.raises(InputError, match=said):
        recorded_kit(parse_image(str(path)))
    assert time.monotonic() - began < 60


def test_layers_and_links_without_end_are_input_errors(tmp_path: Path) -> None:
    many = oci_archive(tmp_path / "many.oci", [layer({"a": b""})] * 2000)
    with pytest.raises(InputError, match="2000 layers"):
        recorded_kit(parse_image(str(many)))
    links = layer({"opt": "/opt/" + "x/" * 2000})
    with pytest.raises(InputError, match="no kit in"):
        recorded_kit(parse_image(str(oci_archive(tmp_path / "links.oci", [links]))))


def sif(path: Path, *more: int) -> None:
    """A SIF with a file system that is no squashfs, and empty objects of other kinds."""
    head = b"#!/usr/bin/env run-singularity\n".ljust(32, b"\0") + b"SIF_MAGIC\0" + b"01\0" + b"02\0" + bytes(16)
    head += struct.pack("<8q", 0, 0, 0, 1 + len(more), 128, 585 * (1 + len(more)), 4096, 0)
    for number, kind in enumerate((0x4004, *more), 1):
        of_kind = struct.pack("<2i", 2, 2) if kind == 0x4004 else b""
        head += struct.pack("<i?3I7q128s384s", kind, True, number, 1, 0, 4096, 0, 0, 0, 0, 0, 0, b"", of_kind)
    path.write_bytes(head.ljust(8192, b"\0"))


def test_a_signature_in_a_sif_is_unknown_where_nobody_can_judge_it(tmp_path: Path, hpcgen: Command) -> None:
    sif(tmp_path / "plain.sif")
    sif(tmp_path / "signed.sif", 0x4005)
    (tmp_path / "ssh").write_text("alice@example.org ssh-ed25519 AAAA\n")
    key = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n"
    (tmp_path / "both").write_text((tmp_path / "ssh").read_text() + key)
    env = {"PATH": str(tmp_path)}
    assert "cannot be read" in hpcgen("verify", "plain.sif", env=env).stderr
    for signers, why in (
        ([], "no allowed signers are named"),
        (["--signer", "ssh"], "has no OpenPGP key"),
        (["--signer", "both"], "apptainer is not on PATH"),
    ):
        done = hpcgen("verify", "signed.sif", *signers, env=env)
        assert done.returncode == 6 and "signature in the image  unknown" in done.stdout, done.stderr
        assert why in " ".join(done.stdout.split())


def test_a_sif_that_only_a_start_reads_is_started_when_asked_alone(tmp_path: Path, hpcgen: Command) -> None:
    sif(tmp_path / "a.sif")
    env = with_programs(tmp_path, apptainer=f'echo "$@" >> {tmp_path}/started; echo "No such file" >&2; exit 1')
    for command in (
        ["inspect", "a.sif"],
        ["rebuild", "a.sif", "-o", "kit"],
        ["job", "a.sif"],
        ["convert", "a.sif", "b"],
    ):
        done = hpcgen(*command, env=env)
        assert done.returncode == 3 and "only starting the image can read it" in done.stderr
    assert "--start" in done.stderr and not (tmp_path / "started").exists()
    done = hpcgen("inspect", "a.sif", "--start", env=env)
    assert "cannot be listed where it is" in done.stderr and "exec --containall" in (tmp_path / "started").read_text()


def test_images_are_known_by_what_they_hold(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "named.sqfs").write_bytes(b"#!/usr/bin/env run-singularity\n\0SIF_MAGIC\0" + b"\0" * 100)
    assert parse_image("named.sqfs") == ImageReference("sif", str(tmp_path / "named.sqfs"))
    assert parse_image("./root") == ImageReference("directory", str(root))
    assert parse_image("podman:localhost/x:1") == ImageReference("podman", "localhost/x:1")
    assert str(parse_image("ch-image:x")) == "ch-image:x"
    (tmp_path / "text.sif").write_text("not an image")
    with pytest.raises(InputError, match="not a container image"):
        parse_image("text.sif")
    with pytest.raises(UnknownNameError, match="there is no image"):
        parse_image("absent.sif")
    for bad in ("podman:-rf", "docker:a b", "x\n", "podman:$(x)"):
        with pytest.raises(InputError):
            parse_image(bad)


def test_a_docker_archive_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    for name in ("manifest.json", "0123.json", "0123.tar"):
        (tmp_path / "saved" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "saved" / name).write_text("[]")
    with tarfile.open(tmp_path / "saved.tar", "w") as archive:
        for file in sorted((tmp_path / "saved").iterdir()):
            archive.add(file, file.name)
    with pytest.raises(InputError, match="skopeo copy docker-archive"):
        parse_image(str(tmp_path / "saved.tar"))


def test_names_are_looked_up_in_the_storage_of_ch_image(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, hpcgen: Command
) -> None:
    """ch-image itself is not asked: a program of that name on PATH says that its storage is used here."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ch-image").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin" / "ch-image").chmod(0o755)
    root.rename(tmp_path / "img")
    (tmp_path / "storage" / "img").mkdir(parents=True)
    (tmp_path / "img").rename(tmp_path / "storage" / "img" / "my%hello+1")
    there = {"PATH": str(tmp_path / "bin"), "CH_IMAGE_STORAGE": str(tmp_path / "storage")}
    for name in ("my/hello:1", "ch-image:my/hello:1"):
        told = json.loads(hpcgen("inspect", name, "--json", env=there).stdout)
        assert (told["image"]["kind"], told["stack"]) == ("ch-image", "mpi-hello")
    done = hpcgen("inspect", "ch-image:other", env=there)
    assert (done.returncode, "CH_IMAGE_STORAGE" in done.stderr) == (4, True)


def with_programs(tmp_path: Path, **scripts: str) -> dict[str, str]:
    """A PATH with tar and these programs alone.

    They stand for squashfs-tools and Apptainer, which a machine of the unit tier does not have.
    """
    folder = tmp_path / "programs"
    folder.mkdir(exist_ok=True)
    for name in ("tar", "mkdir", "gzip", "sleep"):
        if not (folder / name).exists():
            (folder / name).symlink_to(str(shutil.which(name)))
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return {"PATH": str(folder)}


def leftovers(tmp_path: Path) -> list[str]:
    return [path.name for path in tmp_path.iterdir() if path.name.startswith(".hpcgen")]


def test_a_folder_becomes_oci_archive_tar_and_folder_again(root: Path, tmp_path: Path, hpcgen: Command) -> None:
    (root / "usr" / "lib").mkdir(parents=True)
    (root / "lib").symlink_to("usr/lib")
    (root / "usr" / "lib" / "tool").write_text("#!/bin/sh\n")
    (root / "usr" / "lib" / "tool").chmod(0o755)
    (root / "usr" / "lib" / "same").hardlink_to(root / "usr" / "lib" / "tool")
    env = with_programs(tmp_path)
    for source, target in (("root", "a.oci"), ("a.oci", "b.tar.gz"), ("b.tar.gz", "c")):
        done = hpcgen("convert", source, target, env=env)
        assert done.returncode == 0, done.stderr
        assert f"made {'oci-archive:' if target == 'a.oci' else ''}{tmp_path / target}" in done.stderr
    assert leftovers(tmp_path) == []
    assert hpcgen("rebuild", "c", "-o", "again").returncode == 0
    assert files_in(tmp_path / "again") == files_in(STORED)
    tool = tmp_path / "c" / "lib" / "tool"
    assert tool.stat().st_mode & 0o111 and tool.samefile(tmp_path / "c" / "usr" / "lib" / "same")


def test_an_image_is_said_to_be_for_the_machine_of_its_programs(root: Path, tmp_path: Path, hpcgen: Command) -> None:
    """Converted on another machine, it stays what it is."""
    (root / "bin").mkdir(exist_ok=True)
    for machine, said in ((b"\xb7\0", "arm64"), (b"\x3e\0", "amd64")):
        (root / "bin" / "sh").write_bytes(b"\x7fELF" + b"\0" * 14 + machine)
        assert hpcgen("convert", "root", f"{said}.oci", env=with_programs(tmp_path)).returncode == 0
        assert archive_image(str(tmp_path / f"{said}.oci")).config()["architecture"] == said


def test_variables_and_labels_go_with_the_image(root: Path, tmp_path: Path, hpcgen: Command) -> None:
    env = with_programs(tmp_path)
    assert hpcgen("convert", "root", "a.oci", env=env).returncode == 0
    config = archive_image(str(tmp_path / "a.oci")).settings()
    assert "MPI_HOME=/opt/mpich" in config["Env"]
    assert config["Labels"]["io.hpcgen.kit.plan.json"] + "\n" == (STORED / "plan.json").read_text()
    assert config["Labels"]["io.hpcgen.content"] in (STORED / "hpcgen.lock").read_text()
    assert hpcgen("convert", "a.oci", "c", env=env).returncode == 0
    assert "MPI_HOME=/opt/mpich\n" in (tmp_path / "c" / "ch" / "environment").read_text()
    assert "export MPI_HOME=/opt/mpich\n" in (tmp_path / "c" / ".singularity.d/env/91-environment.sh").read_text()
    assert (tmp_path / "c" / "mnt" / "9").is_dir() and (tmp_path / "c" / "etc" / "hosts").is_file()


def test_layers_are_joined_as_an_engine_would(tmp_path: Path, hpcgen: Command) -> None:
    first = io.BytesIO()
    with tarfile.open(fileobj=first, mode="w") as archive:
        for name, data in (("a/one", b"1"), ("a/gone", b"2"), ("b/below", b"3"), ("f/name", b"old")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        other = tarfile.TarInfo("f/other")
        other.type, other.linkname = tarfile.LNKTYPE, "f/name"
        archive.addfile(other)
        long = tarfile.TarInfo("a/" + "x" * 150)
        archive.addfile(long)
    upper = layer({"a/.wh.gone": b"", "b": b"now a file", "f/name": b"new"})
    oci_archive(tmp_path / "a.oci", [gzip.compress(first.getvalue()), upper])
    done = hpcgen("convert", "a.oci", "c", env=with_programs(tmp_path))
    assert done.returncode == 0, done.stderr
    root = tmp_path / "c"
    assert sorted(path.name for path in (root / "a").iterdir()) == ["one", "x" * 150]
    assert (root / "b").read_bytes() == b"now a file"
    assert ((root / "f/name").read_bytes(), (root / "f/other").read_bytes()) == (b"new", b"old")


def test_what_is_missing_is_named_and_what_is_there_is_kept(root: Path, tmp_path: Path, hpcgen: Command) -> None:
    env = with_programs(tmp_path)
    done = hpcgen("convert", "root", "a.sif", env=env)
    assert done.returncode == 69
    assert "apptainer is not on PATH" in done.stderr
    (tmp_path / "b.tar").write_text("mine")
    assert hpcgen("convert", "root", "b.tar", env=env).returncode == 7
    assert (tmp_path / "b.tar").read_text() == "mine"
    assert hpcgen("convert", "root", "b.tar", "--force", env=env).returncode == 0
    assert hpcgen("convert", "b.tar", "c.tar.gz", env=env).returncode == 3
    assert hpcgen("convert", "root", "no/b.oci", env=env).returncode == 7


def test_a_dry_run_prints_commands_and_does_nothing(root: Path, tmp_path: Path, hpcgen: Command) -> None:
    env = with_programs(tmp_path, mksquashfs="exit 1")
    before = sorted(tmp_path.iterdir())
    done = hpcgen("convert", "root", "with space.sqfs", "--dry-run", env=env)
    assert done.returncode == 0
    assert "mksquashfs WORK/2 WORK/3.sqfs" in done.stdout
    assert done.stdout.splitlines()[-1] == f"mv WORK/3.sqfs '{tmp_path}/with space.sqfs'"
    assert sorted(tmp_path.iterdir()) == before


def test_a_program_that_fails_leaves_nothing_behind(root: Path, tmp_path: Path, hpcgen: Command) -> None:
    env = with_programs(tmp_path, mksquashfs='echo half > "$2"; echo "no space"; exit 1')
    (tmp_path / "old.sqfs").write_text("old")
    done = hpcgen("convert", "root", "old.sqfs", "--force", env=env)
    assert done.returncode == 8
    assert "no space" in done.stderr
    assert (tmp_path / "old.sqfs").read_text() == "old"
    assert leftovers(tmp_path) == []


def test_ctrl_c_leaves_nothing_behind(root: Path, tmp_path: Path) -> None:
    env = with_programs(tmp_path, mksquashfs='echo half > "$2"; echo started > "$0.started"; exec sleep 60')
    command = [sys.executable, "-m", "hpcgen", "convert", str(root), "a.sqfs"]
    with subprocess.Popen(command, cwd=tmp_path, env={**os.environ, **env}, stderr=subprocess.PIPE) as process:
        started = tmp_path / "programs" / "mksquashfs.started"
        while not started.exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 130
    assert not (tmp_path / "a.sqfs").exists()
    assert leftovers(tmp_path) == []


def test_a_link_that_leads_out_of_an_image_is_not_written_through(tmp_path: Path, hpcgen: Command) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "ch").symlink_to(outside)
    tar(tmp_path / "evil.tar", tmp_path / "evil")
    done = hpcgen("convert", "evil.tar", "c", env=with_programs(tmp_path))
    assert done.returncode == 3
    assert "out of the image" in done.stderr
    assert list(outside.iterdir()) == []
    assert not (tmp_path / "c").exists()
