"""Passwords in a profile or a recipe, which would be copied into plans, kits and images for everybody to read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import Problem
from hpcgen.core.support.addresses import has_password, names_user

_ELSEWHERE = {
    "proxy": "leave it out, and set http_proxy and https_proxy where the image is built: buildah, podman and ch-image "
    "take them from the environment, Apptainer takes APPTAINERENV_http_proxy, docker the proxies of its config.json",
    "mirrors": "leave it out, and use a mirror that asks for none",
}
"""What to do instead, by the part of ``network`` that it is in."""


def passwords(document: Document) -> Iterator[Problem]:
    """Each address with a password, and in ``network`` each with a user's name, which may be a token.

    The address itself is not shown.
    """
    for path, text in _texts(document.data, ()):
        network = path[0] == "network"
        if not (has_password(text) or (network and names_user(text))):
            continue
        what = "a password" if has_password(text) else "a user's name"
        remedy = _ELSEWHERE.get(str(path[1]), "") if network and len(path) > 1 else ""
        yield Problem(
            f"this address contains {what}, which would end up in the plan, the recipe and the image",
            document.position(path),
            remedy=remedy or "leave it out, and let programs read it from the environment or a file of the user's",
        )


def _texts(data: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every text, with its path."""
    if isinstance(data, str):
        yield path, data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from _texts(value, (*path, key))
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from _texts(value, (*path, number))
