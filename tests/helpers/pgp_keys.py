"""OpenPGP keys for tests, made by GnuPG in a keyring of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec

_PASSPHRASE = ["--pinentry-mode", "loopback", "--passphrase", ""]


class PgpKey(msgspec.Struct, frozen=True):
    """``public``, ``secret``: armoured."""

    fingerprint: str
    public: str
    secret: str


def pgp_key(home: Path, name: str) -> PgpKey:
    """A new key without a passphrase in the keyring ``home``, of NAME@example.org."""
    home.mkdir(mode=0o700, exist_ok=True)
    who = f"{name}@example.org"
    _gpg(home, *_PASSPHRASE, "--quick-generate-key", f"{name} <{who}>", "rsa3072", "sign", "never")
    listed = _gpg(home, "--with-colons", "--list-secret-keys", who)
    fingerprint = next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr:"))
    secret = _gpg(home, *_PASSPHRASE, "--armor", "--export-secret-keys", fingerprint)
    return PgpKey(fingerprint, _gpg(home, "--armor", "--export", fingerprint), secret)


def end_agent(home: Path) -> None:
    """End what GnuPG started for a keyring."""
    environment = {**os.environ, "GNUPGHOME": str(home)}
    subprocess.run(["gpgconf", "--kill", "all"], env=environment, check=True)


def _gpg(home: Path, *words: str) -> str:
    done = subprocess.run(
        ["gpg", "--homedir", str(home), "--batch", "--quiet", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
