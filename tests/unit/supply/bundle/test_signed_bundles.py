"""Bundles and locks that somebody signed: whose they are, and that another's are refused where a signer is required."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import hpcgen as library
from hpcgen.core.errors import PolicyError
from tests.conftest import Command
from tests.helpers.bundles import NAMES, a_lock, make, tree
from tests.helpers.ssh_keys import allowed, ssh_key


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("alice", "eve"):
        ssh_key(folder / name)
    allowed(folder / "signers", {"alice@example.org": folder / "alice"})
    return folder


ALICE = "signed by alice@example.org (ED25519 key SHA256:"


@pytest.mark.parametrize("target", ["B", "B.tar"])
def test_a_bundle_says_who_signed_it(tmp_path: Path, keys: Path, hpcgen: Command, target: str) -> None:
    make(tmp_path, target, sign=keys / "alice")
    done = hpcgen("bundle", "verify", target, "--signer", str(keys / "signers"))
    assert done.returncode == 0 and f"it is {ALICE}" in done.stderr, done.stderr
    done = hpcgen("bundle", "verify", target)
    assert done.returncode == 0 and "which is not a trusted key" in done.stderr, done.stderr


def test_the_signature_is_all_that_differs_and_sums_hold(tmp_path: Path, keys: Path) -> None:
    make(tmp_path, "plain")
    make(tmp_path, "B", sign=keys / "alice")
    signed = tree(tmp_path / "B")
    assert signed.pop("bundle.json.sig")
    assert signed == tree(tmp_path / "plain")


def test_what_is_not_signed_by_an_allowed_signer_is_refused(tmp_path: Path, keys: Path, hpcgen: Command) -> None:
    make(tmp_path, "plain")
    make(tmp_path, "eves", sign=keys / "eve")
    (tmp_path / "config.yaml").write_text(f"signers: {keys}/signers\n")
    config = {"HPCGEN_CONFIG": str(tmp_path / "config.yaml")}
    for name, said in (("plain", "is not signed"), ("eves", "which is of none of the allowed signers")):
        for words in (
            ["bundle", "verify", name],
            ["render", "--bundle", name],
            ["build", "--dry-run", "--bundle", name],
        ):
            for more, env in ((["--signer", str(keys / "signers")], {}), ([], config)):
                done = hpcgen(*words, *more, env=env)
                assert done.returncode == 6 and said in done.stderr, (words, done.stderr)


def test_a_bundle_that_was_made_anew_after_tampering_is_refused(tmp_path: Path, keys: Path, hpcgen: Command) -> None:
    """Whoever can write to the medium makes manifest, sums and hashes fit; the signature they cannot make."""
    make(tmp_path, "B", sign=keys / "alice")
    signature = (tmp_path / "B" / "bundle.json.sig").read_bytes()
    make(tmp_path, "evil", [*NAMES[1:], "evil.tar.gz"])
    (tmp_path / "evil" / "bundle.json.sig").write_bytes(signature)
    done = hpcgen("bundle", "verify", "evil", "--signer", str(keys / "signers"))
    assert done.returncode == 6 and "is not one of these bytes" in done.stderr
    # Without a list of signers a signature that does not fit is a mistake too; without any it is as whole as before.
    assert hpcgen("bundle", "verify", "evil").returncode == 6
    (tmp_path / "evil" / "bundle.json.sig").unlink()
    done = hpcgen("bundle", "verify", "evil")
    assert done.returncode == 0 and "it is not signed" in done.stderr


def test_files_that_run_before_the_build_are_held_against_the_signed_manifest(
    tmp_path: Path, keys: Path, hpcgen: Command
) -> None:
    make(tmp_path, "B", sign=keys / "alice")
    done = hpcgen("render", "--bundle", "B", "-o", "kit", "--signer", str(keys / "signers"))
    assert done.returncode == 0 and f"B is {ALICE}" in done.stderr, done.stderr
    for name in ("collections/ours/building_blocks/x.py", "hpcgen.lock.sig", "more"):
        shutil.copytree(tmp_path / "B", tmp_path / "C")
        (tmp_path / "C" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "C" / name).write_text("")
        done = hpcgen("render", "--bundle", "C", "-o", "kit2", "--signer", str(keys / "signers"))
        assert done.returncode == 6 and f"in C: {name} was not signed" in done.stderr, done.stderr
        shutil.rmtree(tmp_path / "C")
    lock = tmp_path / "B" / "hpcgen.lock"
    lock.write_text(a_lock(epoch=1).text)
    done = hpcgen("render", "--bundle", "B", "-o", "kit2", "--signer", str(keys / "signers"))
    assert done.returncode == 6 and "in B: hpcgen.lock is not as it was signed" in done.stderr, done.stderr
    lock.rename(tmp_path / "elsewhere")
    lock.symlink_to(tmp_path / "elsewhere")
    done = hpcgen("render", "--bundle", "B", "-o", "kit2", "--signer", str(keys / "signers"))
    assert done.returncode == 6 and "in B: hpcgen.lock is a symbolic link" in done.stderr, done.stderr


def test_an_increment_brings_the_signature_along(tmp_path: Path, keys: Path, hpcgen: Command) -> None:
    make(tmp_path, "old")
    make(tmp_path, "new", [*NAMES[1:], "fresh.whl"], sign=keys / "alice")
    assert hpcgen("bundle", "diff", "old", "new", "-o", "more.tar").returncode == 0
    done = hpcgen("bundle", "verify", "more.tar", "--signer", str(keys / "signers"))
    assert done.returncode == 0, done.stderr
    assert hpcgen("bundle", "join", "old", "more.tar", "-o", "joined").returncode == 0
    assert tree(tmp_path / "joined") == tree(tmp_path / "new")


def test_a_lock_is_signed_beside_it_and_its_kit_and_bundle_have_that(
    tmp_path: Path, keys: Path, hpcgen: Command
) -> None:
    from hpcgen.core.support.signatures import LOCK, sign
    from hpcgen.kit.lockfile.lock import read_lock

    lock, signature = tmp_path / "hpcgen.lock", tmp_path / "hpcgen.lock.sig"
    lock.write_text(a_lock().text)
    signers = ["--signer", str(keys / "signers")]
    done = hpcgen("render", "--locked", "hpcgen.lock", "-o", "kit", *signers)
    assert done.returncode == 6 and "the lock hpcgen.lock is not signed" in done.stderr
    signature.write_text(sign(lock.read_bytes(), keys / "alice", LOCK))
    done = hpcgen("render", "--locked", "hpcgen.lock", "-o", "kit", *signers)
    assert done.returncode == 0 and f"its lock is {ALICE}" in done.stderr, done.stderr
    assert (tmp_path / "kit" / "hpcgen.lock.sig").read_text() == signature.read_text()
    make(tmp_path, "B", lock=read_lock(lock))
    assert (tmp_path / "B" / "hpcgen.lock.sig").read_text() == signature.read_text()
    assert hpcgen("bundle", "verify", "B").returncode == 0
    (tmp_path / "config.yaml").write_text(f"signers: {keys}/signers\n")
    make(tmp_path, "C", lock=read_lock(lock), sign=keys / "alice")
    done = hpcgen("render", "--bundle", "C", env={"HPCGEN_CONFIG": str(tmp_path / "config.yaml")})
    assert done.returncode == 0 and f"its lock is {ALICE}" in done.stderr, done.stderr
    signature.write_text(sign(lock.read_bytes(), keys / "eve", LOCK))
    assert hpcgen("render", "--locked", "hpcgen.lock", *signers).returncode == 6
    signature.write_text(sign(b"another", keys / "alice", LOCK))
    assert hpcgen("render", "--locked", "hpcgen.lock").returncode == 6
    # An older kit's signature does not stay in a kit whose lock has none.
    signature.unlink()
    assert hpcgen("render", "--locked", "hpcgen.lock", "-o", "kit").returncode == 0
    assert not (tmp_path / "kit" / "hpcgen.lock.sig").exists()


def test_a_build_of_a_kit_requires_it_too(tmp_path: Path, keys: Path, hpcgen: Command) -> None:
    make(tmp_path, "B", sign=keys / "eve")
    assert hpcgen("render", "--bundle", "B", "-o", "kit").returncode == 0
    done = hpcgen("build", "kit", "--bundle", "B", "--signer", str(keys / "signers"))
    assert done.returncode == 6 and "which is of none of the allowed signers" in done.stderr, done.stderr


def test_a_new_lock_does_not_keep_the_old_signature(tmp_path: Path, keys: Path) -> None:
    from hpcgen.cli.lock_command import write_lock
    from hpcgen.kit.lockfile.lock import read_lock

    lock = tmp_path / "our.lock"
    write_lock(lock, a_lock(), keys / "alice")
    assert read_lock(lock).signature.startswith("-----BEGIN SSH SIGNATURE-----")
    write_lock(lock, a_lock(epoch=1), None)
    assert read_lock(lock).signature == "" and list(tmp_path.iterdir()) == [lock]
    # Only what is a signature goes.
    (tmp_path / "our.lock.sig").write_text("mine")
    write_lock(lock, a_lock(), None)
    assert (tmp_path / "our.lock.sig").read_text() == "mine"


def test_a_key_that_is_not_there_is_said_before_anything_else(tmp_path: Path, hpcgen: Command) -> None:
    (tmp_path / "hpcgen.lock").write_text(a_lock().text)
    for words in (["bundle", "create", "--lock", "hpcgen.lock", "-o", "B"], ["lock", "-o", "new.lock"]):
        done = hpcgen(*words, "--sign", "nosuch")
        assert done.returncode == 3 and "there is no key nosuch" in done.stderr, done.stderr
    assert hpcgen("lock", "--check", "--sign", "nosuch").returncode == 2


def test_a_signer_of_nothing_is_a_mistake(keys: Path, hpcgen: Command) -> None:
    for words in (["render", "--site", "workstation", "--stack", "mpi-hello"], ["build", "--dry-run", "kit"]):
        done = hpcgen(*words, "--signer", str(keys / "signers"))
        assert done.returncode == 2 and "it requires --bundle, --locked or --cache" in done.stderr


def test_a_record_says_who_signed_the_lock(tmp_path: Path, keys: Path) -> None:
    from hpcgen.builders.bundles import lock_signer
    from hpcgen.core.support.signatures import LOCK, sign
    from hpcgen.kit.folder import read_kit
    from hpcgen.kit.kit import make_kit, store_kit
    from tests.helpers.locks import CATALOG

    lock = a_lock()
    kit = make_kit(lock.plan, CATALOG, lock)
    store_kit(tmp_path / "kit", kit.all_files)
    assert lock_signer(read_kit(tmp_path / "kit"), keys / "signers") == ""
    signature = tmp_path / "kit" / "hpcgen.lock.sig"
    signature.write_text(sign(lock.text.encode(), keys / "alice", LOCK))
    assert lock_signer(read_kit(tmp_path / "kit"), keys / "signers").startswith("alice@example.org (ED25519 key")
    signature.write_text(sign(lock.text.encode(), keys / "eve", LOCK))
    assert "is not a trusted key" in lock_signer(read_kit(tmp_path / "kit"), keys / "signers")
    signature.write_text(sign(b"another", keys / "alice", LOCK))
    assert lock_signer(read_kit(tmp_path / "kit"), None) == "no one: its signature is for another lock"


def test_where_no_program_can_tell_a_required_signature_is_an_error(
    tmp_path: Path, keys: Path, hpcgen: Command
) -> None:
    make(tmp_path, "B", sign=keys / "alice")
    (tmp_path / "bin").mkdir()
    env = {"PATH": str(tmp_path / "bin")}
    assert hpcgen("bundle", "verify", "B", env=env).returncode == 0
    done = hpcgen("bundle", "verify", "B", "--signer", str(keys / "signers"), env=env)
    assert done.returncode == 69 and "ssh-keygen is not on PATH" in done.stderr


def test_the_command_says_it_as_json(tmp_path: Path, keys: Path, hpcgen: Command) -> None:
    make(tmp_path, "B", sign=keys / "alice")
    done = hpcgen("bundle", "verify", "B", "--json", "--signer", str(keys / "signers"))
    assert json.loads(done.stdout)["signer"].startswith("alice@example.org (ED25519 key SHA256:")


def test_the_library_requires_the_signature_that_the_config_file_requires(
    tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = a_lock()
    assert library.render(lock).recipe
    (tmp_path / "config.yaml").write_text(f"signers: {keys}/signers\n")
    monkeypatch.setenv("HPCGEN_CONFIG", str(tmp_path / "config.yaml"))
    with pytest.raises(PolicyError, match="is not signed"):
        library.render(lock)
