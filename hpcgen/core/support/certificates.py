"""Certificates that a recipe copies from the building machine, and nothing else that a profile may name there."""

from __future__ import annotations

from pathlib import Path

from hpcgen.core.errors import InputError
from hpcgen.core.support.hashing import read_plain

MAX_BYTES = 16 * 1024 * 1024
"""The authorities of a whole distribution take less than half a megabyte."""

_FIELD = "network.ca_certificates"


def read_certificates(path: str) -> bytes:
    """The certificates in a file of this machine.

    A profile, a kit or a lock may be a stranger's, and what it names goes into an image that others will have: a
    file of keys or passwords must not.

    InputError: there is no such file, it has no certificate in PEM, or a private key.
    """
    try:
        data = read_plain(Path(path), MAX_BYTES)
    except FileNotFoundError as failure:
        raise InputError(
            f"the site's certificate {path} is not on this machine",
            _FIELD,
            remedy="copy it here, or correct the profile",
        ) from failure
    except OSError as failure:
        raise InputError(
            f"the site's certificate {path} cannot be read: {failure.strerror}",
            _FIELD,
            remedy="make it readable for the user who builds",
        ) from failure
    if b"PRIVATE KEY-----" in data:
        raise InputError(
            f"{path} has a private key, which would go into the image",
            _FIELD,
            expected="only the certificate of the authority",
            remedy="put the certificate into a separate file, and name that",
        )
    if b"-----BEGIN CERTIFICATE-----" not in data or len(data) > MAX_BYTES:
        raise InputError(
            f"{path} is not a certificate; recipes copy only certificates from this machine",
            _FIELD,
            expected="a file in PEM, with the line -----BEGIN CERTIFICATE-----",
            remedy=f"openssl x509 -inform der -in {path} -out NAME.crt makes one of a certificate in DER",
        )
    return data
