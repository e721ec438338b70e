"""Base images: which sources are tried, which digest is pinned, and that nothing half-written is ever trusted."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import signal
import stat
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpcgen.core.errors import FetchError, HpcgenError, InputError, MissingToolError, OutputError
from hpcgen.core.model.lock import ImagePin
from hpcgen.core.model.network import ImageMirror
from hpcgen.images.oci_layout import aside, folder_layout
from hpcgen.images.reading.facts import image_facts
from hpcgen.supply.pin.base_images import fetch_image, image_sources, pin_image, root_tar
from hpcgen.supply.pin.foreign_base import fetched_image

OCI = "application/vnd.oci.image.manifest.v1+json"
DOCKER = "application/vnd.docker.distribution.manifest.v2+json"
LAYER = {
    OCI: "application/vnd.oci.image.layer.v1.tar+gzip",
    DOCKER: "application/vnd.docker.image.rootfs.diff.tar.gzip",
}

# Stands for skopeo: STORE/NAME.json is what `inspect --raw kind:NAME` prints, STORE/blobs has the rest.
SKOPEO = """\
import hashlib, json, os, shutil, sys, time
from pathlib import Path
store = Path(os.environ["STUB_STORE"])
words = [word for word in sys.argv[1:] if not word.startswith("-")]
name = words[1].split("@sha256:")[1] if "@sha256:" in words[1] else words[1].rsplit("/", 1)[-1].replace(":", "-")
found = store / f"{name}.json"
if not found.exists():
    sys.exit(f'time="now" level=fatal msg="reading {words[1]}: not known \\\\"here\\\\""')
if words[0] == "inspect":
    sys.stdout.write(found.read_text())
else:
    target = Path(words[2].removeprefix("dir:"))
    target.mkdir()
    for blob in (store / "blobs").iterdir():
        shutil.copy(blob, target)
    while os.environ.get("STUB_HANG"):
        time.sleep(1)
    shutil.copy(found, target / "manifest.json")
"""


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def layer(*files: tuple[str, str | None, str]) -> bytes:
    """A layer of (path, content or None, kind): ``f`` file, ``d`` folder, ``l`` link, ``h`` hard link, ``c`` device."""
    kinds = {
        "f": tarfile.REGTYPE,
        "d": tarfile.DIRTYPE,
        "l": tarfile.SYMTYPE,
        "h": tarfile.LNKTYPE,
        "c": tarfile.CHRTYPE,
    }
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, text, kind in files:
            member = tarfile.TarInfo(name)
            member.type, member.mode = kinds[kind], 0o755 if kind == "d" else 0o644
            data = (text or "").encode() if kind == "f" else b""
            member.size = len(data)
            if kind in "lh":
                member.linkname = text or ""
            archive.addfile(member, io.BytesIO(data))
    return gzip.compress(out.getvalue(), mtime=0)


class Store:
    """What the stub of skopeo knows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "blobs").mkdir(parents=True)

    def blob(self, data: bytes, kind: str) -> dict[str, Any]:
        (self.folder / "blobs" / digest(data)[7:]).write_bytes(data)
        return {"mediaType": kind, "digest": digest(data), "size": len(data)}

    def image(self, name: str, *layers: bytes, kind: str = OCI, architecture: str = "amd64", **config: Any) -> str:
        """Put an image in; the digest of its manifest."""
        text = json.dumps({"architecture": architecture, "os": "linux", "config": config}).encode()
        manifest = {
            "schemaVersion": 2,
            "mediaType": kind,
            "config": self.blob(text, "application/vnd.oci.image.config.v1+json"),
            "layers": [self.blob(each, LAYER[kind]) for each in layers],
        }
        return self.document(name, manifest)

    def document(self, name: str, content: dict[str, Any]) -> str:
        text = json.dumps(content, indent=3)
        for each in (name, digest(text.encode())[7:]):
            (self.folder / f"{each.rpartition('/')[2].replace(':', '-')}.json").write_text(text)
        return digest(text.encode())


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    program = tmp_path / "bin" / "skopeo"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{SKOPEO}")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("STUB_STORE", str(tmp_path / "store"))
    return Store(tmp_path / "store")


BASE = layer(("./etc", None, "d"), ("./etc/a", "1", "f"), ("./dev/null", None, "c"))


# where an image is looked for


@pytest.mark.parametrize(
    ("mirror", "expected"),
    [
        (None, ["docker://docker.io/library/debian:12"]),
        (ImageMirror(docker="registry.example.org/base/debian:12"), ["docker://registry.example.org/base/debian:12"]),
        (ImageMirror(docker="localhost/debian:12"), ["containers-storage:localhost/debian:12"]),
        (ImageMirror(singularity="/base/d.tar", bootstrap="oci-archive"), ["oci-archive:/base/d.tar"]),
        (ImageMirror(singularity="example.org/x:1", bootstrap="docker"), ["docker://example.org/x:1"]),
        (ImageMirror(singularity="/base/d.sif", bootstrap="localimage"), ["docker://docker.io/library/debian:12"]),
        (ImageMirror(charliecloud="debian:12"), ["docker://docker.io/library/debian:12"]),
        (
            ImageMirror(docker="localhost/d:1", singularity="/d.tar", bootstrap="docker-archive"),
            ["containers-storage:localhost/d:1", "docker-archive:/d.tar"],
        ),
    ],
)
def test_sources_are_the_sites_or_the_registry(mirror: ImageMirror | None, expected: list[str]) -> None:
    assert image_sources("debian:12", mirror, {}) == expected
    assert image_sources("debian:12", mirror, {"debian:12": "oci-archive:/x"}) == ["oci-archive:/x"]


# what is pinned


def test_pins_the_first_source_that_has_it_and_says_why_others_have_not(store: Store, tmp_path: Path) -> None:
    wanted = store.image("debian:12", BASE)
    pin = pin_image("debian:12", ["docker://example.org/none:1", "docker://example.org/debian:12"], "x86_64")
    assert pin == ImagePin(digest=wanted, origin="docker://example.org/debian:12")
    with pytest.raises(FetchError) as caught:
        pin_image("debian:12", ["docker://example.org/none:1", "docker://example.org/no:2"], "x86_64")
    text = str(caught.value)
    assert 'docker://example.org/none:1: reading docker://example.org/none:1: not known "here"' in text
    assert "docker://example.org/no:2: reading" in text and "--image debian:12=" in text and "level=" not in text


def test_of_several_architectures_the_sites_is_pinned_and_not_the_list(store: Store, tmp_path: Path) -> None:
    found = {name: store.image(f"{name}:1", BASE, architecture=name) for name in ("amd64", "arm64")}
    platforms = [{"digest": found[name], "platform": {"os": "linux", "architecture": name}} for name in found]
    kind = "application/vnd.oci.image.index.v1+json"
    store.document("both:1", {"schemaVersion": 2, "mediaType": kind, "manifests": platforms})
    for architecture, name in (("x86_64", "amd64"), ("aarch64", "arm64")):
        pin = pin_image("both:1", ["docker://example.org/both:1"], architecture)
        assert pin.digest == found[name]
        fetch_image(pin, "both:1", architecture, tmp_path / name)
        assert folder_layout(tmp_path / name).image("both:1").config()["architecture"] == name
    store.document("one:1", {"schemaVersion": 2, "mediaType": kind, "manifests": platforms[1:]})
    with pytest.raises(FetchError, match="has no image for linux/amd64, only linux/arm64"):
        pin_image("one:1", ["docker://example.org/one:1"], "x86_64")


def test_a_digest_that_is_known_is_pinned_whatever_the_tag_has_now(store: Store) -> None:
    wanted = store.image("debian:12", BASE)
    kind = "application/vnd.oci.image.index.v1+json"
    entry = {"digest": wanted, "platform": {"os": "linux", "architecture": "amd64"}}
    index = store.document("list:1", {"schemaVersion": 2, "mediaType": kind, "manifests": [entry]})
    source = ["docker://example.org/debian:12"]
    assert store.image("debian:12", BASE, author="later") == pin_image("debian:12", source, "x86_64").digest != wanted
    for known in (wanted, index):
        assert pin_image("debian:12", source, "x86_64", known) == ImagePin(digest=wanted, origin=source[0])
    gone = digest(b"gone")
    with pytest.raises(FetchError, match="--latest-base"):
        pin_image("debian:12", source, "x86_64", gone)
    (store.folder / f"{gone[7:]}.json").write_text((store.folder / f"{wanted[7:]}.json").read_text())
    with pytest.raises(FetchError, match="the registry returned a different image"):
        pin_image("debian:12", source, "x86_64", gone)


def test_docker_manifest_is_pinned_as_it_is_and_converted_without_touching_blobs(store: Store, tmp_path: Path) -> None:
    wanted = store.image("cuda:1", BASE, kind=DOCKER)
    pin = pin_image("cuda:1", ["docker://example.org/cuda:1"], "x86_64")
    assert pin.digest == wanted and pin.oci not in (None, wanted)
    fetch_image(pin, "cuda:1", "x86_64", tmp_path / "layout")
    image = folder_layout(tmp_path / "layout").image("cuda:1")
    assert image.digest == pin.oci
    assert image.manifest["mediaType"] == OCI
    assert [each["mediaType"] for each in image.manifest["layers"]] == [LAYER[OCI]]
    assert [each["digest"] for each in image.manifest["layers"]] == [digest(BASE)]


def test_a_stores_image_is_pinned_by_its_plain_layers(store: Store, tmp_path: Path) -> None:
    store.image("debian:12", gzip.decompress(BASE))
    pin = pin_image("debian:12", ["containers-storage:localhost/debian:12"], "x86_64")
    fetch_image(pin, "debian:12", "x86_64", tmp_path / "layout")
    image = folder_layout(tmp_path / "layout").image("debian:12")
    assert image.digest == pin.digest and pin.oci is None
    assert image.manifest["layers"][0]["mediaType"] == "application/vnd.oci.image.layer.v1.tar"


def test_unknown_manifest_is_refused_in_words(store: Store) -> None:
    store.document("old:1", {"schemaVersion": 1, "mediaType": "application/vnd.docker.distribution.manifest.v1+json"})
    with pytest.raises(FetchError, match="a manifest of kind application/vnd"):
        pin_image("old:1", ["docker://example.org/old:1"], "x86_64")


def test_without_skopeo_the_message_says_what_it_is_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match="skopeo is not on PATH; it is needed to look at the base image x:1"):
        pin_image("x:1", ["docker://example.org/x:1"], "x86_64")


# what is fetched


def fetched(store: Store, layout: Path, name: str = "debian:12", *layers: bytes) -> ImagePin:
    store.image(name, *(layers or (BASE,)), Env=["PATH=/bin", "A=b=c"], Labels={"l": "1"}, WorkingDir="/srv")
    pin = pin_image(name, [f"docker://example.org/{name}"], "x86_64")
    fetch_image(pin, name, "x86_64", layout)
    return pin


def test_one_layout_holds_several_images_by_name(store: Store, tmp_path: Path) -> None:
    layout = tmp_path / "images"
    first = fetched(store, layout)
    other = fetched(store, layout, "example.org/other:1", layer(("./b", "2", "f")))
    index = json.loads((layout / "index.json").read_text())
    names = [each["annotations"]["org.opencontainers.image.ref.name"] for each in index["manifests"]]
    assert names == ["debian-12", "example.org-other-1"]
    assert folder_layout(layout).image("debian:12").digest == first.digest
    assert folder_layout(layout).image("example.org/other:1").digest == other.digest
    assert sorted(path.name for path in layout.iterdir()) == ["blobs", "index.json", "oci-layout"]


def test_what_is_there_is_not_fetched_again_and_what_is_damaged_is(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = tmp_path / "images"
    pin = fetched(store, layout)
    whole = {path: path.read_bytes() for path in layout.rglob("*") if path.is_file()}
    monkeypatch.setenv("STUB_STORE", "/nowhere")
    fetch_image(pin, "debian:12", "x86_64", layout)
    monkeypatch.setenv("STUB_STORE", str(store.folder))
    for path, data in whole.items():
        for damaged in (data[:-1], data[:-1] + bytes([data[-1] ^ 1]), None):
            path.unlink()
            if damaged is not None:
                path.write_bytes(damaged)
            fetch_image(pin, "debian:12", "x86_64", layout)
            assert {each: each.read_bytes() for each in layout.rglob("*") if each.is_file()} == whole


def test_another_image_under_the_same_name_is_refused(store: Store, tmp_path: Path) -> None:
    pin = fetched(store, tmp_path / "a")
    store.image("debian:12", layer(("./moved", "", "f")))
    with pytest.raises(FetchError) as caught:
        fetch_image(
            msgspec.structs.replace(pin, origin="oci-archive:/debian:12"), "debian:12", "x86_64", tmp_path / "b"
        )
    assert pin.digest in str(caught.value) and "is not the pinned one" in str(caught.value)
    assert not (tmp_path / "b" / "index.json").exists()
    # A registry is asked for the digest, so the tag may move.
    fetch_image(pin, "debian:12", "x86_64", tmp_path / "b")


def test_altered_blobs_and_other_architectures_are_refused(store: Store, tmp_path: Path) -> None:
    pin = fetched(store, tmp_path / "a")
    with pytest.raises(FetchError, match="is for amd64"):
        fetch_image(pin, "debian:12", "aarch64", tmp_path / "b")
    blob = store.folder / "blobs" / digest(BASE)[7:]
    blob.write_bytes(BASE[:-1] + b"x")
    with pytest.raises(FetchError, match="altered, truncated or missing"):
        fetch_image(pin, "debian:12", "x86_64", tmp_path / "b")
    assert not (tmp_path / "b" / "index.json").exists()


def test_an_image_of_a_registry_is_bounded_by_its_manifest(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned = ImagePin(digest=store.image("debian:12", layer(("a", "x", "f"))), origin="docker://host.example/debian:12")
    told: list[str] = []
    fetch_image(pinned, "debian:12", "x86_64", tmp_path / "images", told.append)
    assert len(told) == 1 and told[0].startswith("fetches ") and told[0].endswith(" from host.example")
    (store.folder / "blobs" / "more").write_bytes(bytes(17 << 20))
    with pytest.raises(FetchError, match="sends more than its manifest says"):
        fetch_image(pinned, "debian:12", "x86_64", tmp_path / "others")
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 9}))
    with pytest.raises(FetchError, match="9 B are free in"):
        fetch_image(pinned, "debian:12", "x86_64", tmp_path / "others")


def test_an_image_of_a_registry_is_here_while_it_is_read(store: Store) -> None:
    pinned = store.image("debian:12", layer(("etc/os-release", "ID=debian\n", "f")), Env=["WHO=me"])
    with fetched_image("host.example/debian:12", "riscv64") as image:
        assert str(image) == f"docker://host.example/debian:12@{pinned}" and image.bytes_on_disk()
        facts = image_facts(image)
        assert facts.system.distribution is not None and facts.settings.environment == {"WHO": "me"}
    assert not Path(image.name).exists()
    with pytest.raises(FetchError) as raised, fetched_image("host.example/none:1", "x86_64"):
        pass
    assert all("skopeo login host.example" in each.remedy for each in raised.value.problems if each.remedy)


def test_a_manifest_without_sizes_is_not_followed(store: Store, tmp_path: Path) -> None:
    described = {"mediaType": "x", "digest": digest(b"x")}
    manifest = {"schemaVersion": 2, "mediaType": OCI, "config": described, "layers": [{**described, "size": -1}]}
    pinned = ImagePin(digest=store.document("debian:12", manifest), origin="docker://debian:12")
    with pytest.raises(FetchError, match="does not say how large"):
        fetch_image(pinned, "debian:12", "x86_64", tmp_path / "images")


def test_killed_while_copying_leaves_what_was_there_and_the_next_run_goes_on(store: Store, tmp_path: Path) -> None:
    layout = tmp_path / "images"
    fetched(store, layout)
    before = {path: path.read_bytes() for path in layout.rglob("*") if path.is_file()}
    store.image("other:1", layer(("./b", "2", "f")))
    pin = pin_image("other:1", ["docker://example.org/other:1"], "x86_64")
    code = (
        "import sys, msgspec; from pathlib import Path; from hpcgen.core.model.lock import ImagePin\n"
        "from hpcgen.supply.pin.base_images import fetch_image\n"
        "fetch_image(msgspec.json.decode(sys.argv[1], type=ImagePin), 'other:1', 'x86_64', Path(sys.argv[2]))"
    )
    argv = [sys.executable, "-c", code, msgspec.json.encode(pin).decode(), str(layout)]
    process = subprocess.Popen(argv, env={**os.environ, "STUB_HANG": "1"}, start_new_session=True)
    aside_folder = layout / ".hpcgen-fetch" / "image"
    deadline = time.monotonic() + 30
    while not aside_folder.is_dir() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert aside_folder.is_dir()
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    for pid in (process.pid, *map(int, children)):
        os.kill(pid, signal.SIGKILL)
    process.wait()
    assert {path: path.read_bytes() for path in before} == before
    fetch_image(pin, "other:1", "x86_64", layout)
    assert folder_layout(layout).image("other:1").digest == pin.digest
    assert sorted(path.name for path in layout.iterdir()) == ["blobs", "index.json", "oci-layout"]


def test_two_at_once_are_kept_apart(tmp_path: Path) -> None:
    with aside(tmp_path), pytest.raises(OutputError, match="another hpcgen"), aside(tmp_path):
        pass


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"manifests": [1]}', '{"manifests": []}', "{" * 1000])
def test_damaged_index_is_explained(tmp_path: Path, text: str) -> None:
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(HpcgenError):
        folder_layout(tmp_path).image("debian:12")


def test_blob_names_do_not_lead_out_of_the_layout(tmp_path: Path) -> None:
    entry = {"digest": "sha256:../../../etc/passwd", "annotations": {"org.opencontainers.image.ref.name": "debian-12"}}
    (tmp_path / "index.json").write_text(json.dumps({"manifests": [entry]}))
    with pytest.raises(InputError, match="malformed"):
        folder_layout(tmp_path).image("debian:12")


# the root as one tar file


def test_root_tar_is_what_a_container_would_see(store: Store, tmp_path: Path) -> None:
    lower = layer(
        ("./etc", None, "d"),
        ("./etc/kept", "kept", "f"),
        ("./etc/gone", "gone", "f"),
        ("./etc/changed", "old", "f"),
        ("./opaque", None, "d"),
        ("./opaque/old", "old", "f"),
        ("./first", "linked", "f"),
        ("./second", "./first", "h"),
        ("./dev/null", None, "c"),
        ("../outside", "caught", "f"),
    )
    upper = layer(
        ("./etc/.wh.gone", "", "f"),
        ("./etc/changed", "new", "f"),
        ("./opaque/.wh..wh..opq", "", "f"),
        ("./opaque/new", "new", "f"),
        ("./.wh.first", "", "f"),
    )
    fetched(store, tmp_path / "images", "debian:12", lower, upper)
    for name in ("a.tar", "b.tar"):
        root_tar(tmp_path / "images", "debian:12", tmp_path / name)
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()
    with tarfile.open(tmp_path / "a.tar") as archive:
        members = {member.name: member for member in archive}
        texts = {
            name: stream.read().decode() for name, member in members.items() if (stream := archive.extractfile(member))
        }
    metadata = json.loads(texts.pop("./ch/metadata.json"))
    assert metadata["env"] == {"PATH": "/bin", "A": "b=c"}
    assert (metadata["labels"], metadata["cwd"]) == ({"l": "1"}, "/srv")
    assert texts == {
        "./etc/kept": "kept",
        "./etc/changed": "new",
        "./opaque/new": "new",
        "./second": "linked",
        "./outside": "caught",
        "./ch/environment": "PATH=/bin\nA=b=c\n",
    }
    assert not any(member.isdev() for member in members.values())


def test_root_tar_of_a_full_disk_or_a_missing_image_leaves_nothing(store: Store, tmp_path: Path) -> None:
    fetched(store, tmp_path / "images")
    with pytest.raises(InputError, match="names no image other-1"):
        root_tar(tmp_path / "images", "other:1", tmp_path / "x.tar")
    with pytest.raises(OutputError, match="cannot write"):
        root_tar(tmp_path / "images", "debian:12", tmp_path / "no" / "x.tar")
    (tmp_path / "images/blobs/sha256" / digest(BASE)[7:]).write_bytes(BASE[:40])
    with pytest.raises(InputError, match="cannot be read"):
        root_tar(tmp_path / "images", "debian:12", tmp_path / "x.tar")
    assert not list(tmp_path.glob("*x.tar*"))
