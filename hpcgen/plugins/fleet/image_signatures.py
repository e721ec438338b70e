"""Signatures of published images by OpenPGP keys, and the policy by which podman, buildah and skopeo demand them.

A signature is of the kind "simple signing": it has the image's name and digest, and lies in a folder or on a web server
that registries.d names, the lookaside. skopeo makes it, by GnuPG's keyring.

Source: containers-policy.json(5), containers-registries.d(5), skopeo-copy(1); docker/registries_d.go of
containers/image. Seen with skopeo 1.9.3 and podman 4.3.1.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
from pathlib import Path

from hpcgen.builders.records.store import of_image, save
from hpcgen.core.errors import InputError, OutputError
from hpcgen.core.support.processes import require_program
from hpcgen.core.support.signing_keys import public_keys
from hpcgen.core.support.writing import yaml_text
from hpcgen.images.reference import ImageReference
from hpcgen.images.skopeo import REGISTRY, WITHOUT_POLICY, at_digest

_CAPABILITIES = 11
"""Which field of a key has what it is for. Source: doc/DETAILS of GnuPG, "Field 12"."""
_GNUPG = "gpg shows them: gpg --list-secret-keys; gpg --import takes a key from a file"


def check_gnupg_key(fingerprint: str) -> str:
    """What is to be known of a key of GnuPG's keyring; "" as a rule.

    InputError: the keyring has no such secret key. MissingToolError: gpg or skopeo is not here.
    """
    require_program("skopeo", "sign images in a registry", "install skopeo")
    gpg = require_program("gpg", "sign images in a registry", "install GnuPG")
    words = [gpg, "--batch", "--with-colons", "--list-secret-keys", fingerprint]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        message = f"GnuPG's keyring has no secret key {fingerprint}"
        raise InputError(message, "--sign", "the fingerprint of a key of yours", _GNUPG)
    rows = [line.split(":") for line in done.stdout.splitlines()]
    if any(row[0] == "ssb" and "s" in row[_CAPABILITIES] for row in rows if len(row) > _CAPABILITIES):
        return f"the key {fingerprint} signs with a subkey, and podman 4.3 rejects such signatures"
    return ""


def sign_published(target: str, digest: str, fingerprint: str, authfile: Path | None) -> None:
    """Sign an image that was pushed, under the name that it has; a passphrase is asked for by GnuPG.

    Parameters
    ----------
    target: such as ``registry.example.org/x:1``. digest: of its manifest there.
    authfile: the login, as in containers-auth.json(5); skopeo's own if None.

    Raises
    ------
    OutputError: it was not signed.
    """
    skopeo = require_program("skopeo", "sign images in a registry", "install skopeo")
    # A policy of this machine may already demand the signature that is made here.
    words = [skopeo, WITHOUT_POLICY, "copy", "--quiet", "--preserve-digests", "--sign-by", fingerprint]
    words += ["--authfile", str(authfile)] if authfile is not None else []
    name = f"{REGISTRY}{target}"
    status = subprocess.run([*words, at_digest(name, digest), name], stdout=2, check=False).returncode
    if status:
        raise OutputError(
            f"{target} was published, but not signed: skopeo ended with status {status}",
            remedy="read its output above; hpcgen fleet publish --sign KEY NAME signs it again",
        )


def sign_file(image: ImageReference, fingerprint: str) -> bool:
    """Sign an image that carries its signatures itself, unless it has one; whether it was signed now.

    The record of its build gets the new digest. OutputError: it was not signed.
    """
    if image.image_kind.signature(image.name, None) is not None:
        return False
    image.image_kind.sign(image.name, fingerprint)
    record = of_image(image)
    if record is not None:
        save(record.with_signed_image(image.image_kind.digest(image.name), image.bytes_on_disk()))
    return True


def policy_files(registry: str, signers: Path, lookaside: str) -> dict[str, str]:
    """policy.json and the file in registries.d by which a machine takes only signed images of a registry.

    Parameters
    ----------
    registry: with or without a path. signers: a file with the OpenPGP keys, one of which must have signed.
    lookaside: the address of the signatures: ``https://…``, or ``file:///…``.

    Raises
    ------
    InputError: the file has no such keys; the address is none.
    """
    keys = public_keys(signers)
    if not keys:
        message = f"{signers} has no OpenPGP key, the only kind that these programs support"
        raise InputError(message, "--signer", remedy="gpg --armor --export FINGERPRINT >> FILE adds one")
    if not re.fullmatch(r"(https?://[^/\s]|file:///)\S*", lookaside):
        expected = "https://sigs.example.org/hpc, or file:///srv/signatures"
        raise InputError(f"{lookaside!a} is not a lookaside address", "--lookaside", expected)
    data = base64.b64encode("".join(keys).encode()).decode()
    demanded = {"type": "signedBy", "keyType": "GPGKeys", "keyData": data}
    policy = {
        "default": [{"type": "insecureAcceptAnything"}],
        "transports": {"docker": {registry: [demanded]}},
    }
    file = re.sub(r"[^A-Za-z0-9.-]", "-", registry)
    return {
        "policy.json": json.dumps(policy, indent=2) + "\n",
        f"registries.d/{file}.yaml": yaml_text({"docker": {registry: {"lookaside": lookaside}}}),
    }
