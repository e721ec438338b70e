"""Images signed by OpenPGP keys, judged by the programs that start them: SIF files, and images of a real registry."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from container_tools import Run, SidHpcgen, need, run
from test_build import SidBuild, Small, record_in, sid_build, sid_small, words
from test_referrers import CONTENT, record

from hpcgen.builders.records.store import save
from hpcgen.plugins.fleet.records import LockedImage, read_lock, update_lock
from tests.helpers.pgp_keys import PgpKey, end_agent, pgp_key
from tests.helpers.ssh_keys import allowed, ssh_key

__all__ = ["sid_build", "sid_small"]

KEYRING = {"APPTAINER_KEYSDIR": "/kit/keyring"}


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[dict[str, PgpKey]]:
    home = tmp_path / "gnupg"
    yield {name: pgp_key(home, name) for name in ("alice", "eve")}
    end_agent(home)


@pytest.fixture
def built(sid_small: Small, sid_build: SidBuild, keys: dict[str, PgpKey]) -> str:
    """The digest that the record has of image.sif, which alice signed as it was built."""
    folder = sid_small.folder
    for name, key in keys.items():
        (folder / f"{name}.secret").write_text(key.secret)
        (folder / f"only_{name}").write_text(key.public)
    collection = sid_small.collection("signed")
    sid_build.hpcgen.sid.folder(folder)
    sid_build.env.update(KEYRING)
    for name in keys:
        sid_build.run(["apptainer", "key", "import", f"{name}.secret"])
    command = [
        *words(f"/kit/{collection.name}", "apptainer", "image.sif"),
        "--sign",
        f"pgp:{keys['alice'].fingerprint}",
    ]
    record = record_in(sid_build.hpcgen.run(command, binds=sid_build.binds, env=sid_build.env, cwd="/kit"))
    return str(record["image"]["digest"])


def test_a_sif_carries_its_signature(
    built: str, sid_small: Small, sid_build: SidBuild, keys: dict[str, PgpKey]
) -> None:
    folder = sid_small.folder

    def hpcgen(*command: str, **env: str) -> Run:
        return sid_build.hpcgen.run(
            command, binds=sid_build.binds, env={**sid_build.env, **env}, cwd="/kit", check=False
        )

    def verified(image: str, signers: str) -> tuple[int, str]:
        done = hpcgen("verify", image, "--signer", signers, "--json")
        assert "[" in done.stdout, done.stdout
        (row,) = json.loads(done.stdout[done.stdout.index("[") :])
        return done.returncode, row["reason"]

    assert built == f"sha256:{sid_build.run(['sha256sum', 'image.sif']).stdout.split()[0]}"
    accepted = sid_build.run(["apptainer", "verify", "--local", "image.sif"]).stdout
    assert keys["alice"].fingerprint in accepted and "Verified signature(s)" in accepted
    assert verified("image.sif", "only_alice") == (0, f"by alice <alice@example.org> ({keys['alice'].fingerprint})")
    assert verified("image.sif", "only_eve") == (6, "its key belongs to none of the allowed signers")

    (folder / "config.yaml").write_text("images: {require_signature: true}\nsigners: /kit/only_alice\n")
    (folder / "other.yaml").write_text("images: {require_signature: true}\nsigners: /kit/only_eve\n")
    started = hpcgen("--collection", "/kit/signed", "run", "image.sif", HPCGEN_CONFIG="/kit/config.yaml")
    assert started.returncode == 0 and started.stdout.split()[-1] == "signed", started.stdout
    refused = hpcgen("--collection", "/kit/signed", "run", "image.sif", HPCGEN_CONFIG="/kit/other.yaml")
    assert refused.returncode == 6 and "none of the allowed signers" in refused.stdout, refused.stdout

    changed = bytearray((folder / "image.sif").read_bytes())
    changed[len(changed) // 2] ^= 1
    (folder / "changed.sif").write_bytes(changed)
    assert sid_build.hpcgen.sid.run(
        ["apptainer", "verify", "--local", "changed.sif"],
        binds=sid_build.binds, env=sid_build.env, cwd="/kit", check=False,
    ).returncode  # fmt: skip
    assert verified("changed.sif", "only_alice") == (6, "the file was changed since it was signed")
    # What is added is seen by whoever starts the image.
    add = "mkdir -p empty && mksquashfs empty more.sqfs -quiet && cp image.sif more.sif"
    add += " && apptainer sif add --datatype 4 --parttype 3 --partfs 1 --partarch 2 more.sif more.sqfs"
    sid_build.run(["bash", "-c", add])
    code, said = verified("more.sif", "only_alice")
    assert code == 6 and "object" in said, said
    # A signature of a stranger beside that of an allowed signer.
    sid_build.run(["bash", "-c", "cp image.sif two.sif && apptainer sign --keyidx 1 two.sif"])
    assert verified("two.sif", "only_alice") == (6, "its key belongs to none of the allowed signers")
    (folder / "both").write_text(keys["alice"].public + keys["eve"].public)
    code, said = verified("two.sif", "both")
    assert code == 0 and "alice" in said and "eve" in said


def test_what_cannot_be_signed_is_said_before_the_build(
    sid_small: Small, sid_build: SidBuild, keys: dict[str, PgpKey]
) -> None:
    sid_build.env.update(KEYRING)
    collection = sid_small.collection("unsigned")
    sid_build.hpcgen.sid.folder(sid_small.folder)
    for output, said in (("image.sif", "keyring has no secret key"), ("image", "cannot contain a signature")):
        command = [*words(f"/kit/{collection.name}", "apptainer", output), "--sign", f"pgp:{keys['eve'].fingerprint}"]
        done = sid_build.hpcgen.run(command, binds=sid_build.binds, env=sid_build.env, cwd="/kit", check=False)
        assert done.returncode == 3 and said in done.stdout, done.stdout
        assert not (sid_small.folder / output).exists()


# Images of a registry


@pytest.fixture
def registry(tmp_path: Path, testbed_env: dict[str, str]) -> Iterator[str]:
    """The address of a registry of Debian's on the loopback, without encryption and password."""
    need("docker-registry", path=testbed_env["PATH"])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    settings = {"storage": {"filesystem": {"rootdirectory": str(tmp_path / "registry")}}, "http": {"addr": address}}
    (tmp_path / "registry.yml").write_text(json.dumps({"version": 0.1, **settings}))
    with (tmp_path / "registry.log").open("w") as log:
        words = ["docker-registry", "serve", str(tmp_path / "registry.yml")]
        server = subprocess.Popen(words, env=testbed_env, stdout=log, stderr=subprocess.STDOUT)
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(f"http://{address}/v2/")
                break
            except OSError:
                time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait()


@pytest.fixture
def member(
    registry: str, keys: dict[str, PgpKey], tmp_path: Path, testbed_env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> str:
    """A fleet of one image, which was built; the name below which it is published. The image has one file."""
    home = tmp_path / "home/.config/containers"
    home.mkdir(parents=True)
    (home / "registries.conf").write_text(f'[[registry]]\nlocation = "{registry}"\ninsecure = true\n')
    storage = f'[storage]\ndriver = "vfs"\ngraphroot = "{tmp_path}/s"\nrunroot = "{tmp_path}/r"\n'
    (tmp_path / "storage.conf").write_text(storage)
    own = {"HOME": tmp_path / "home", "CONTAINERS_STORAGE_CONF": tmp_path / "storage.conf"}
    own |= {"GNUPGHOME": tmp_path / "gnupg", "HPCGEN_RECORDS": tmp_path / "records"}
    for name, value in {**testbed_env, **own}.items():
        monkeypatch.setenv(name, str(value))
    for name, key in keys.items():
        (tmp_path / f"only_{name}").write_text(key.public)
    image(tmp_path, "localhost/one:latest", "12")
    fleet = {"registry": f"{registry}/hpc", "members": [{"stack": "mpi-hello", "site": "workstation", "name": "one"}]}
    (tmp_path / "fleet.yaml").write_text(json.dumps(fleet))
    built = LockedImage(content=CONTENT, format="docker", engine="buildah", image="podman:one:latest")
    update_lock(tmp_path / "fleet.lock", {"one": built})
    return f"{registry}/hpc"


def image(folder: Path, name: str, version: str) -> None:
    (folder / "os-release").write_text(f"ID=debian\nVERSION_ID={version}\n")
    with tarfile.open(folder / "root.tar", "w") as archive:
        archive.add(folder / "os-release", "etc/os-release")
    run(["podman", "import", "--quiet", folder / "root.tar", name])


def hpcgen(folder: Path, *command: str, check: bool = True) -> Run:
    return run([sys.executable, "-m", "hpcgen", *command], cwd=folder, check=check)


def test_podman_pulls_what_was_signed_and_nothing_else(member: str, keys: dict[str, PgpKey], tmp_path: Path) -> None:
    def demand(signers: str) -> None:
        """What an administrator does with what hpcgen writes."""
        given = ["--signer", signers, "--lookaside", f"file://{tmp_path}/signatures"]
        hpcgen(tmp_path, "fleet", "policy", *given, "-o", "home/.config/containers")

    def pulled(name: str) -> str:
        done = run(["podman", "pull", name], check=False)
        assert (done.returncode == 0) == ("Storing signatures" in done.stdout), done.stdout
        return "" if done.returncode == 0 else done.stdout

    demand("only_alice")
    run(["buildah", "push", "--quiet", "localhost/one:latest", f"docker://{member}/unsigned:1"])
    assert "A signature was required, but no signature exists" in pulled(f"{member}/unsigned:1")

    ssh_key(tmp_path / "bob")
    allowed(tmp_path / "bobs", {"bob@example.org": tmp_path / "bob"})
    save(record("podman", "one:latest", f"sha256:{'0' * 64}"))
    signing = ["--sign", f"pgp:{keys['alice'].fingerprint}", "--sign", "bob"]
    said = hpcgen(tmp_path, "fleet", "publish", *signing).stdout
    published = read_lock(tmp_path / "fleet.lock")["one"]
    assert f"one: signed {published.digest} with the OpenPGP key {keys['alice'].fingerprint}" in said
    assert not pulled(published.published)
    assert not pulled(f"{published.published.rpartition(':')[0]}@{published.digest}")
    # The statement lies beside the same image.
    hpcgen(tmp_path, "verify", f"docker://{published.published}", "--signer", "bobs")

    demand("only_eve")
    assert "Source image rejected: Invalid GPG signature" in pulled(published.published)
    (tmp_path / "both").write_text(keys["eve"].public + keys["alice"].public)
    demand("both")
    assert not pulled(published.published)

    demand("only_alice")
    image(tmp_path, "localhost/other:latest", "13")
    run(["buildah", "push", "--quiet", "localhost/other:latest", f"docker://{published.published}"])
    assert "A signature was required, but no signature exists" in pulled(published.published)
    # A signature of one name is none of another.
    run(["skopeo", "--insecure-policy", "copy", "--quiet", "--preserve-digests", "--remove-signatures",
         f"docker://{published.published.rpartition(':')[0]}@{published.digest}",
         f"docker://{member}/renamed:1"])  # fmt: skip
    moved = tmp_path / "signatures/hpc"
    (signed,) = moved.glob("one@*")
    signed.rename(moved / signed.name.replace("one@", "renamed@"))
    refused = pulled(f"{member}/renamed:1")
    assert "Source image rejected" in refused and "is not accepted" in refused, refused


def test_nothing_is_pushed_with_a_key_that_is_not_there(member: str, tmp_path: Path) -> None:
    done = hpcgen(tmp_path, "fleet", "publish", "--sign", f"pgp:{'0' * 40}", check=False)
    assert done.returncode == 3 and "GnuPG's keyring has no secret key" in done.stdout, done.stdout
    assert not read_lock(tmp_path / "fleet.lock")["one"].published


def test_a_sif_is_signed_in_its_file_before_it_is_pushed(
    registry: str, keys: dict[str, PgpKey], sid_hpcgen: SidHpcgen, tmp_path: Path
) -> None:
    folder = tmp_path / "sid"
    folder.mkdir()
    (folder / "alice.secret").write_text(keys["alice"].secret)
    for name, key in keys.items():
        (folder / f"only_{name}").write_text(key.public)
    fleet = {"registry": f"{registry}/hpc", "members": [{"stack": "mpi-hello", "site": "workstation", "name": "one"}]}
    (folder / "fleet.yaml").write_text(json.dumps(fleet))
    built = LockedImage(content=CONTENT, format="singularity", engine="apptainer", image="sif:/kit/one.sif")
    update_lock(folder / "fleet.lock", {"one": built})
    sid_hpcgen.sid.folder(folder)
    place: dict[str, Any] = {"binds": [(folder, "/kit")], "env": {**KEYRING, "APPTAINER_NOHTTPS": "1"}, "cwd": "/kit"}
    make = "mkdir empty && mksquashfs empty root.sqfs -quiet && apptainer sif new one.sif && apptainer sif add"
    make += " --datatype 4 --parttype 2 --partfs 1 --partarch 2 --groupid 1 one.sif root.sqfs"
    sid_hpcgen.sid.run(["bash", "-c", f"{make} && apptainer key import alice.secret"], **place)
    publish = ["fleet", "publish", "one", "--sign", f"pgp:{keys['alice'].fingerprint}"]
    assert "one: signed /kit/one.sif" in sid_hpcgen.run(publish, **place).stdout
    # Once is enough.
    assert "signed" not in sid_hpcgen.run(publish, **place).stdout
    sid_hpcgen.sid.run(["apptainer", "pull", "pulled.sif", f"oras://{registry}/hpc/one:{CONTENT[:12]}"], **place)
    said = sid_hpcgen.run(["verify", "pulled.sif", "--signer", "only_alice"], **place).stdout
    assert "signature in the image  holds    by alice" in said, said
    # Apptainer accepts whom the machine's administrator knows, hpcgen whom the user allows.
    known = "cp -a /etc/apptainer /tmp/known && mount --bind /tmp/known /etc/apptainer"
    place |= {"before": f"{known} && apptainer key import --global /kit/only_alice"}
    place["env"] = {"APPTAINER_KEYSDIR": "/kit/empty-keyring"}
    assert "Verified" in sid_hpcgen.sid.run(["apptainer", "verify", "--local", "pulled.sif"], **place).stdout
    refused = sid_hpcgen.run(["verify", "pulled.sif", "--signer", "only_eve"], check=False, **place)
    assert refused.returncode == 6 and "none of the allowed signers" in refused.stdout, refused.stdout
