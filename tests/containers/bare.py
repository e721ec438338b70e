"""A base that installs nothing and asks no server: builds on it take seconds, and say as much about an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

BLOCK = '''\
from hpcgen.blocks.base import Block


class Debian(Block):
    """Debian as it is."""

    name = "debian"
    provides = ("base",)
'''


def write_bare_base(collection: Path) -> None:
    """Put the block in the place of the built-in Debian."""
    folder = collection / "building_blocks"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "debian.py").write_text(BLOCK)


def without_servers(profile: dict[str, Any]) -> dict[str, Any]:
    """The profile without what only package managers need: a site with these has steps for them in every recipe."""
    network = {name: value for name, value in profile["network"].items() if name not in ("ca_certificates", "proxy")}
    network["mirrors"] = {"images": network["mirrors"]["images"]}
    return {**profile, "network": network}
