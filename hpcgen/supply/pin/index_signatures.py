"""Which keys signed package indexes: a verifier in the image is asked (gpgv, or sqv from Debian 13 on).

Sources: GnuPG's doc/DETAILS for the status lines; apt's methods/sqv.cc; RFC 4880, 6.2 (armour).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from hpcgen.supply.pin.base_shell import OWN, BaseShell

KEY_BLOCK = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
_FINGERPRINT = re.compile(r"[0-9A-F]{40}|[0-9A-F]{64}")

# Defines verify RING SIGNATURE TEXT, which prints what the verifier says.
_VERIFY = f"""
cd /{OWN}
if command -v gpgv > /dev/null; then
  verify() {{ gpgv --status-fd 1 --keyring "$1" "$2" "$3" 2> /dev/null; }}
elif command -v sqv > /dev/null; then
  verify() {{ sqv --keyring "$1" "$2" "$3" 2> /dev/null; }}
else
  echo "neither gpgv nor sqv is in the image"
  exit 3
fi
"""


class SignedIndex(msgspec.Struct, frozen=True):
    """What a repository signs, the signature, and the key rings that may vouch for it, without armour.

    ``rings``: by the name that is shown to people.
    """

    text: bytes
    signature: bytes
    rings: Mapping[str, bytes]


def signers(shell: BaseShell, indexes: Sequence[SignedIndex], *, expired: bool = False) -> list[dict[str, str]]:
    """For each index the fingerprints of the keys whose signatures are good, with the ring that has them.

    Parameters
    ----------
    expired: whether those of a key count whose time is over.

    Raises
    ------
    FetchError: nothing in the image verifies signatures.
    """
    script = [_VERIFY]
    names: dict[tuple[int, int], str] = {}
    for number, index in enumerate(indexes):
        shell.put(f"/{OWN}/{number}.text", index.text)
        shell.put(f"/{OWN}/{number}.signature", index.signature)
        for other, (name, data) in enumerate(sorted(index.rings.items())):
            shell.put(f"/{OWN}/{number}-{other}.ring", data)
            names[number, other] = name
            paths = " ".join(
                f"/{OWN}/{path}" for path in (f"{number}-{other}.ring", f"{number}.signature", f"{number}.text")
            )
            script.append(f"echo '= {number} {other}'\nverify {paths} || true")
    lines = shell.check("\n".join(script), "verifying the package indexes")
    return _good(lines, names, len(indexes), ("GOODSIG", "EXPKEYSIG") if expired else ("GOODSIG",))


def _good(
    lines: Iterable[str], names: dict[tuple[int, int], str], count: int, states: Sequence[str]
) -> list[dict[str, str]]:
    """Primary keys' fingerprints from gpgv's status lines, or the lines of sqv, which has nothing else."""
    found: list[dict[str, str]] = [{} for _ in range(count)]
    number, ring, good = 0, "", False
    for line in lines:
        words = line.split()
        if words[:1] == ["="] and len(words) == 3:
            number = int(words[1])
            ring = names[number, int(words[2])]
        elif words[:1] == ["[GNUPG:]"] and len(words) > 1:
            if words[1] in ("NEWSIG", "GOODSIG", "EXPKEYSIG", "REVKEYSIG", "EXPSIG", "BADSIG"):
                good = words[1] in states
            elif words[1] == "VALIDSIG" and good and _FINGERPRINT.fullmatch(words[-1]):
                found[number].setdefault(words[-1], ring)
        elif len(words) == 1 and _FINGERPRINT.fullmatch(words[0]):
            found[number].setdefault(words[0], ring)
    return found


def dearmoured(data: bytes) -> bytes:
    """An OpenPGP key ring in binary form; as it is if it has no armour."""
    if not data.lstrip().startswith(b"-----BEGIN PGP"):
        return data
    result = b""
    for block in data.decode("ascii", "replace").replace("\r\n", "\n").split(KEY_BLOCK)[1:]:
        # An empty line ends the armour's headers; the last line before the end may be a checksum.
        _, _, body = block.partition("\n\n")
        lines = body.partition("-----END")[0].split()
        try:
            result += base64.b64decode("".join(line for line in lines if not line.startswith("=")))
        except binascii.Error:
            continue
    return result
