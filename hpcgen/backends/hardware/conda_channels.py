"""Channels of conda: by what names they are known, and at which addresses they are."""

from __future__ import annotations

from collections.abc import Sequence

_HOST = "https://conda.anaconda.org"
_DEFAULTS = ("https://repo.anaconda.com/pkgs/main", "https://repo.anaconda.com/pkgs/r")
"""What conda's channel ``defaults`` stands for: docs.conda.io, "channels", "default channels"."""
_NO_CHANNEL = "nodefaults"


def channel_of(text: str) -> str:
    """The channel that ``text`` takes its package from; empty where it names none."""
    return text.partition("::")[0] if "::" in text else ""


def channel_addresses(named: Sequence[str]) -> list[str]:
    """Addresses of channels that are named as conda does."""
    found: list[str] = []
    for each in named:
        plain = each.rstrip("/")
        if plain != _NO_CHANNEL:
            found += _DEFAULTS if plain == "defaults" else [plain if "://" in plain else f"{_HOST}/{plain}"]
    return list(dict.fromkeys(found))
