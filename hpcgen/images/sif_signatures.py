"""Signatures in a SIF: made and judged by Apptainer, which has a keyring of its own.

Source: apptainer sign --help, apptainer verify --help; cmd/internal/cli/pgp.go and pkg/syfs/syfs.go of apptainer.
Seen with Apptainer 1.4.5: ``verify`` refuses an object that belongs to no group, a group or object that nobody signed,
and a signature by a key that it does not know, even beside another one.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import msgspec

from hpcgen.core.errors import InputError, MissingToolError, OutputError
from hpcgen.core.support.leftovers import scratch_folder
from hpcgen.core.support.signing_keys import public_keys
from hpcgen.core.support.units import harmless
from hpcgen.images.commands import CommandOutput, ask
from hpcgen.images.kinds.base import CarriedSignature

_HOUR = 3600.0
_KEYRING = ("APPTAINER_KEYSDIR", "SINGULARITY_KEYSDIR", "SINGULARITY_SYPGPDIR")
"""Where the keyring is, of each program and release."""
_UNKNOWN_KEY, _FAILED = "unknown entity", re.compile(r"^FATAL:\s*Failed to verify container: ")


class _Signer(msgspec.Struct, frozen=True, rename="pascal"):
    name: str = ""
    fingerprint: str = ""
    data_check: bool = False


class _Entry(msgspec.Struct, frozen=True, rename="pascal"):
    signer: _Signer


class _Report(msgspec.Struct, frozen=True, rename="pascal"):
    """One entry for each object that a signature is about."""

    signer_keys: list[_Entry] | None = None


def _program() -> str:
    for name in ("apptainer", "singularity"):
        if found := shutil.which(name):
            return found
    raise MissingToolError(
        "apptainer is not on PATH; it makes and checks the signatures in a SIF file",
        remedy="Apptainer comes with most distributions, or see https://apptainer.org",
    )


def key_number(fingerprint: str) -> str:
    """The number of a secret key in Apptainer's keyring. InputError where it has no such key."""
    found = _fingerprints(ask([_program(), "key", "list", "--secret"]))
    if fingerprint in found:
        return str(found.index(fingerprint))
    raise InputError(
        f"Apptainer's keyring has no secret key {fingerprint}",
        "--sign",
        "the fingerprint of a key that `apptainer key list --secret` shows",
        "apptainer key newpair makes one; apptainer key import takes what gpg --armor --export-secret-keys wrote",
    )


def _fingerprints(listed: CommandOutput) -> list[str]:
    """Of the keys that ``key list`` shows, in its order, which numbers them."""
    return re.findall(r"(?m)^\s+Fingerprint:\s+([0-9A-F]+)\s*$", listed.output.decode("utf-8", "replace"))


def sign_sif(path: str, fingerprint: str) -> None:
    """Add a signature to a SIF file; a passphrase is asked for on the terminal.

    Raises
    ------
    OutputError: it was not signed. InputError: the keyring has no such key.
    """
    words = [_program(), "sign", "--keyidx", key_number(fingerprint), str(Path(path).absolute())]
    # What it says is for people: our own stdout is not.
    status = subprocess.run(words, stdout=2, check=False).returncode
    if status:
        raise OutputError(
            f"{path} exists, but was not signed: apptainer sign ended with status {status}",
            remedy="read its output above; apptainer sign IMAGE signs it later",
        )


def judged(path: str, signers: Path | None) -> CarriedSignature:
    """Whether every signature in a SIF is of what is in it, and by an allowed signer.

    InputError: the allowed signers cannot be read, or a key of theirs cannot.
    """
    keys = public_keys(signers) if signers is not None else []
    if not keys:
        why = f"{signers} has no OpenPGP key" if signers is not None else "no allowed signers are named"
        return CarriedSignature("unknown", f"the file has one, but {why}")
    try:
        program = _program()
    except MissingToolError as missing:
        return CarriedSignature("unknown", missing.problems[0].message)
    with scratch_folder("hpcgen-keys-") as folder:
        keyring, file = folder / "keyring", folder / "key.asc"
        keyring.mkdir(mode=0o700)
        env = dict.fromkeys(_KEYRING, str(keyring))
        for key in dict.fromkeys(keys):
            file.write_text(key, "utf-8")
            if (answer := ask([program, "key", "import", str(file)], env=env)).status:
                said = harmless(answer.last_line)
                message = f"Apptainer rejects an OpenPGP key in {signers}: {said}"
                raise InputError(message, str(signers), remedy="export it again: gpg --armor --export FINGERPRINT")
        allowed = _fingerprints(ask([program, "key", "list"], env=env))
        # `--local`: no key comes from a server.
        words = [program, "verify", "--local", "--json", str(Path(path).absolute())]
        answer = ask(words, env=env, seconds=_HOUR)
    try:
        found = [each.signer for each in msgspec.json.decode(answer.output, type=_Report).signer_keys or []]
    except (msgspec.MsgspecError, UnicodeDecodeError):
        found = []
    return _judgement(answer, found, allowed)


def _judgement(answer: CommandOutput, found: list[_Signer], allowed: list[str]) -> CarriedSignature:
    """Of what ``verify`` printed, which accepts the keys of the machine's administrator, too."""
    if any(not each.data_check for each in found):
        return CarriedSignature("does not hold", "the file was changed since it was signed")
    if answer.status == 0 and found and all(each.fingerprint.upper() in allowed for each in found):
        names = sorted({f"{harmless(each.name)} ({each.fingerprint.upper()})" for each in found})
        return CarriedSignature("holds", f"by {' and '.join(names)}")
    if answer.status == 0 or _UNKNOWN_KEY in answer.last_line:
        return CarriedSignature("does not hold", "its key belongs to none of the allowed signers")
    return CarriedSignature("does not hold", harmless(_FAILED.sub("", answer.last_line)))
