"""Signatures by SSH keys, as git has them: made and checked by ``ssh-keygen -Y``, with a file of allowed signers.

Source: ssh-keygen(1), "-Y sign", "ALLOWED SIGNERS"; PROTOCOL.sshsig. A namespace keeps a signature from counting for
something else that is signed by the same key.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec

from hpcgen.core.errors import InputError, PolicyError
from hpcgen.core.support.processes import require_program
from hpcgen.core.support.units import harmless

BUNDLE, LOCK, ARTIFACT, PROVENANCE = "hpcgen-bundle", "hpcgen-lock", "hpcgen-artifact", "hpcgen-provenance"
"""Namespaces: of a bundle's manifest, of a lock, of an artifact's record, and of where an image comes from."""
_KEY = "a private SSH key, or the public one of a key in your agent"
_GOOD = re.compile(r"with (\S+ key SHA256:[A-Za-z0-9+/=]+)")


class Signer(msgspec.Struct, frozen=True):
    """Who signed: the ``key`` with its fingerprint, and its ``name`` among the allowed signers, if they were asked."""

    key: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.key})" if self.name else f"{self.key}, which is not a trusted key"


def check_key(key: Path) -> None:
    """InputError where there is no such key, before anything is done that is to be signed."""
    if not key.is_file():
        raise InputError(f"there is no key {key}", "--sign", _KEY, "ssh-keygen -t ed25519 makes one")


def sign(data: bytes, key: Path, namespace: str) -> str:
    """The signature of some bytes.

    ``key``: a private key, or the public one of a key that an agent has. A passphrase is asked for on the terminal.
    InputError: ``ssh-keygen`` does not sign with that key.
    """
    with tempfile.TemporaryDirectory(prefix="hpcgen-") as folder:
        file = Path(folder, "data")
        file.write_bytes(data)
        done = _run(["sign", "-q", "-f", str(key.absolute()), "-n", namespace, str(file)])
        if done.returncode:
            message = f"ssh-keygen does not sign with {key}: {_last(done)}"
            raise InputError(message, "--sign", _KEY, "ssh-keygen -t ed25519 makes one")
        return file.with_name("data.sig").read_text("ascii")


def signer_of(what: str, data: bytes, signature: str, namespace: str, allowed: Path | None = None) -> Signer:
    """Who signed some bytes.

    what: what messages call them. signature: "" where there is none.
    allowed: a file of allowed signers, one of whom it has to be; without one, whoever has the key.
    PolicyError: nobody signed them, they were changed since, or none of the allowed signers did.
    InputError: the file of allowed signers cannot be read.
    """
    if allowed is not None and not allowed.is_file():
        raise InputError(f"there is no file {allowed}", "signers", "a file of allowed signers, as ssh-keygen(1) has it")
    if not signature:
        raise _refused(f"{what} is not signed", allowed)
    with tempfile.TemporaryDirectory(prefix="hpcgen-") as folder:
        file = Path(folder, "signature")
        file.write_text(signature, "utf-8")
        told = ["-n", namespace, "-s", str(file)]
        done = _run(["check-novalidate", *told], data)
        found = _GOOD.search(done.stdout.decode("utf-8", "replace"))
        if done.returncode or found is None:
            raise _refused(f"the signature of {what} is not one of these bytes: {_last(done)}", allowed)
        if allowed is None:
            return Signer(found[1])
        listed = ["-f", str(_ssh_signers(allowed, Path(folder)))]
        names = _run(["find-principals", "-s", str(file), *listed], b"").stdout.decode("utf-8", "replace").splitlines()
        for name in names:
            if _run(["verify", *told, *listed, "-I", name], data).returncode == 0:
                return Signer(found[1], harmless(name))
        raise _refused(f"{what} is signed with the {found[1]}, which is of none of the allowed signers", allowed)


def named_signer(what: str, data: bytes, signature: str, namespace: str, allowed: Path | None) -> Signer:
    """As :func:`signer_of`, but it need be none of the allowed signers, who are called by their names."""
    if allowed is not None:
        with suppress(PolicyError):
            return signer_of(what, data, signature, namespace, allowed)
    return signer_of(what, data, signature, namespace)


def _ssh_signers(allowed: Path, folder: Path) -> Path:
    """The allowed signers without OpenPGP keys, which are no lines of ssh-keygen's; ``folder``: for a copy."""
    from hpcgen.core.support.signing_keys import public_keys, without_public_keys

    if not public_keys(allowed):
        return allowed.absolute()
    copy = folder / "signers"
    copy.write_text(without_public_keys(allowed), "utf-8")
    return copy


def _refused(message: str, allowed: Path | None) -> PolicyError:
    expected = f"a signature by one of the signers in {allowed}" if allowed is not None else "an intact signature"
    return PolicyError(message, expected=expected, remedy="ask the signer for it again")


def _run(words: list[str], data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """``ssh-keygen`` with these bytes on its stdin; with this process's own where there are none, for passphrases."""
    program = require_program("ssh-keygen", "make and check signatures", "install OpenSSH's client, 8.2 or later")
    return subprocess.run([program, "-Y", *words], input=data, capture_output=True, check=False)


def _last(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    text = lines[-1] if lines else f"it ends with status {done.returncode}"
    return harmless(text)[:200]
