"""Package indexes that a list may name without an effect: the default one, and those of blocks' frameworks."""

from __future__ import annotations

import contextlib
import importlib
import re
import urllib.parse

_HOSTS = (
    (r"download(-r2)?\.pytorch\.org", "PyTorch's own: hpcgen chooses the build for the site's GPUs"),
    (r"storage\.googleapis\.com/jax-releases", "JAX's own: hpcgen chooses the build for the site's GPUs"),
    (
        r"pypi\.(ngc\.)?nvidia\.com|developer\.download\.nvidia\.com",
        "NVIDIA's own: its packages are taken from the default index",
    ),
)
"""Host, for one with the first folder, and why the address decides nothing."""


def known_index(address: str) -> str:
    """Which public index an address names and why hpcgen does not need it; empty for another.

    ``address``: of an index or a page of links; for ``--trusted-host`` a host alone.
    """
    try:
        parts = urllib.parse.urlsplit(address if "://" in address else f"https://{address}")
        host, path = (parts.hostname or "").lower(), parts.path
    except ValueError:
        return ""
    if host and host in _default_hosts():
        return "the default index, which pip uses anyhow"
    place = f"{host}/{path.strip('/').partition('/')[0]}"
    return next((why for pattern, why in _HOSTS if re.fullmatch(pattern, host) or re.fullmatch(pattern, place)), "")


def _default_hosts() -> tuple[str, ...]:
    """Hosts of pip's default index and of its files, as pip itself has them; none where there is no pip."""
    with contextlib.suppress(ImportError, AttributeError):
        index = importlib.import_module("pip._internal.models.index").PyPI
        return (str(index.netloc), str(index.file_storage_domain))
    return ()
