"""Signatures by real SSH keys: whose they are, and whatever else is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hpcgen.core.errors import InputError, PolicyError
from hpcgen.core.support.signatures import BUNDLE, LOCK, Signer, sign, signer_of
from tests.helpers.ssh_keys import allowed, ssh_key


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("alice", "eve"):
        ssh_key(folder / name)
    allowed(folder / "signers", {"alice@example.org": folder / "alice"})
    return folder


def test_the_name_is_that_of_the_allowed_signers(keys: Path) -> None:
    signature = sign(b"bytes", keys / "alice", LOCK)
    found = signer_of("it", b"bytes", signature, LOCK, keys / "signers")
    assert found.name == "alice@example.org" and found.key.startswith("ED25519 key SHA256:")
    assert signer_of("it", b"bytes", signature, LOCK) == Signer(found.key)
    assert "is not a trusted key" in str(signer_of("it", b"bytes", signature, LOCK))


def test_a_signature_is_what_ssh_keygen_itself_takes(keys: Path) -> None:
    (keys / "s.sig").write_text(sign(b"bytes", keys / "alice", LOCK))
    words = ["-f", str(keys / "signers"), "-I", "alice@example.org", "-n", LOCK, "-s", str(keys / "s.sig")]
    done = subprocess.run(["ssh-keygen", "-Y", "verify", *words], input=b"bytes", capture_output=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("data", "who", "namespace", "said"),
    [
        (b"Bytes", "alice", LOCK, "is not one of these bytes"),
        (b"bytes", "alice", BUNDLE, "is not one of these bytes"),
        (b"bytes", "eve", LOCK, "which is of none of the allowed signers"),
        (b"bytes", "", LOCK, "it is not signed"),
        (b"bytes", "junk", LOCK, "is not one of these bytes"),
    ],
)
def test_all_else_is_refused(keys: Path, data: bytes, who: str, namespace: str, said: str) -> None:
    signature = {"": "", "junk": "junk"}[who] if who in ("", "junk") else sign(b"bytes", keys / who, LOCK)
    with pytest.raises(PolicyError, match=said):
        signer_of("it", data, signature, namespace, keys / "signers")


@pytest.mark.parametrize("options", ['namespaces="git"', 'valid-before="20200101"', "cert-authority"])
def test_options_of_the_allowed_signers_count(keys: Path, tmp_path: Path, options: str) -> None:
    allowed(tmp_path / "signers", {f"alice@example.org {options}": keys / "alice"})
    with pytest.raises(PolicyError, match="none of the allowed signers"):
        signer_of("it", b"bytes", sign(b"bytes", keys / "alice", LOCK), LOCK, tmp_path / "signers")


def test_keys_and_files_that_are_not_there(keys: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ssh-keygen does not sign with"):
        sign(b"bytes", tmp_path / "none", LOCK)
    with pytest.raises(InputError, match="there is no file"):
        signer_of("it", b"bytes", "", LOCK, tmp_path / "none")
