"""SSH keys for tests, made by ssh-keygen, and files of allowed signers."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path


def ssh_key(path: Path) -> Path:
    """A new key without a passphrase."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)], check=True)
    return path


def allowed(path: Path, keys: Mapping[str, Path]) -> Path:
    """A file of allowed signers; the names may have options behind them."""
    path.write_text("".join(f"{name} {key.with_name(f'{key.name}.pub').read_text()}" for name, key in keys.items()))
    return path
