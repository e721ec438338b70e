"""The keys of ``--sign``: an SSH key in a file, and an OpenPGP key by its fingerprint in a keyring of the user's.

Each signs what its own verifiers read: an SSH key hpcgen's statements; an OpenPGP key SIF files, and images in
registries. Public OpenPGP keys stand in a file of allowed signers, between the lines of SSH keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from hpcgen.core.errors import InputError
from hpcgen.core.support.hashing import read_plain

PGP = "pgp:"
"""How an OpenPGP key begins in ``--sign``; its fingerprint follows."""
KEY_HELP = f"an SSH key, or {PGP}FINGERPRINT of an OpenPGP key"
_PUBLIC = re.compile(r"-----BEGIN PGP PUBLIC KEY BLOCK-----.*?-----END PGP PUBLIC KEY BLOCK-----[ \t]*\n?", re.DOTALL)
_MAX_BYTES = 16 * 1024 * 1024


class SigningKeys(msgspec.Struct, frozen=True):
    """``ssh``: the file. ``pgp``: the fingerprint, in capital letters; "" where there is none."""

    ssh: Path | None = None
    pgp: str = ""


NO_KEYS = SigningKeys()


def signing_keys(words: Iterable[Path | str]) -> SigningKeys:
    """What ``--sign`` was given. InputError: no fingerprint, or two keys of one kind."""
    found = SigningKeys()
    for word in map(str, words):
        kind = "pgp" if word.startswith(PGP) else "ssh"
        if getattr(found, kind):
            raise InputError(f"{word} is a second key of the same type", "--sign", "one SSH key and one OpenPGP key")
        value = _fingerprint(word) if kind == "pgp" else Path(word)
        found = msgspec.structs.replace(found, **{kind: value})
    return found


def _fingerprint(word: str) -> str:
    text = word.removeprefix(PGP).replace(" ", "")
    if not re.fullmatch(r"[0-9A-Fa-f]{40}|[0-9A-Fa-f]{64}", text):
        raise InputError(
            f"{word} is not the full fingerprint of an OpenPGP key",
            "--sign",
            f"{PGP} and 40 hexadecimal digits",
            "gpg --list-secret-keys shows the fingerprints",
        )
    return text.upper()


def public_keys(signers: Path) -> list[str]:
    """The OpenPGP keys in a file of allowed signers, armoured, one block each. InputError: it cannot be read."""
    return _PUBLIC.findall(_text(signers))


def without_public_keys(signers: Path) -> str:
    """The rest of such a file, which is what ssh-keygen reads."""
    return _PUBLIC.sub("", _text(signers))


def _text(signers: Path) -> str:
    try:
        return read_plain(signers, _MAX_BYTES)[:_MAX_BYTES].decode("utf-8", "replace")
    except OSError as failure:
        message = f"the allowed signers {signers} cannot be read: {failure.strerror}"
        raise InputError(message, "signers", "a file that you may read") from failure
