"""Keys of --sign, and OpenPGP keys between the lines of allowed signers."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.core.errors import InputError, PolicyError
from hpcgen.core.support.signatures import PROVENANCE, sign, signer_of
from hpcgen.core.support.signing_keys import SigningKeys, public_keys, signing_keys
from tests.helpers.ssh_keys import allowed, ssh_key

FINGERPRINT = "0123456789ABCDEF0123456789ABCDEF01234567"


def block(text: str) -> str:
    return f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{text}\n-----END PGP PUBLIC KEY BLOCK-----\n"


def test_one_key_of_each_kind_signs(tmp_path: Path) -> None:
    spaced = f"pgp:{FINGERPRINT[:4].lower()} {FINGERPRINT[4:]}"
    assert signing_keys([tmp_path / "key", spaced]) == SigningKeys(tmp_path / "key", FINGERPRINT)
    assert signing_keys([]) == SigningKeys()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pgp:01234567"], "is not the full fingerprint"),
        (["pgp:alice@example.org"], "is not the full fingerprint"),
        (["one", "other"], "second key of the same type"),
        ([f"pgp:{FINGERPRINT}", f"pgp:{FINGERPRINT}"], "second key of the same type"),
    ],
)
def test_what_names_no_key_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        signing_keys(words)


def test_openpgp_keys_stand_between_those_of_ssh(tmp_path: Path) -> None:
    for name in ("alice", "eve"):
        ssh_key(tmp_path / name)
    signers = allowed(tmp_path / "signers", {"alice@example.org": tmp_path / "alice"})
    signers.write_text(block("first") + signers.read_text() + block("second"))
    assert public_keys(signers) == [block("first"), block("second")]
    good, bad = (sign(b"text", tmp_path / name, PROVENANCE) for name in ("alice", "eve"))
    assert signer_of("it", b"text", good, PROVENANCE, signers).name == "alice@example.org"
    with pytest.raises(PolicyError, match="none of the allowed signers"):
        signer_of("it", b"text", bad, PROVENANCE, signers)
