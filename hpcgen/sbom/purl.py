"""Package URLs, by which vulnerability databases and licence tools know a package.

Source: package-url/purl-spec, clause 5 (character encoding) and the definitions of the types deb, pypi, oci and
generic. A colon stands as it is; so does a slash in a qualifier's value, as in the examples of those definitions.
"""

from __future__ import annotations

import re
from urllib.parse import quote


def purl(kind: str, name: str, version: str = "", *, namespace: str = "", **qualifiers: str) -> str:
    """A package URL; empty qualifiers are left out, the others sorted."""
    path = f"{_encoded(namespace)}/{_encoded(name)}" if namespace else _encoded(name)
    end = f"@{_encoded(version)}" if version else ""
    pairs = [f"{key}={quote(value, safe=':/')}" for key, value in sorted(qualifiers.items()) if value]
    return f"pkg:{kind}/{path}{end}" + ("?" + "&".join(pairs) if pairs else "")


def debian_package(distribution: str, release: str, name: str, version: str, architecture: str) -> str:
    """A package of Debian or Ubuntu; locks pin no other. ``architecture`` is empty where it is not known."""
    where = {"arch": architecture, "distro": f"{distribution}-{release}"}
    return purl("deb", name.lower(), version, namespace=distribution, **where)


def python_package(name: str, version: str) -> str:
    """A package of a Python package index."""
    return purl("pypi", python_name(name), version)


def python_name(name: str) -> str:
    """The form in which names of Python packages are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def image(name: str, digest: str, architecture: str) -> str:
    """A container image by its digest; ``name`` with registry and tag."""
    repository, _, tag = name.rpartition(":") if ":" in name.rsplit("/", 1)[-1] else (name, "", "")
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(architecture, architecture)
    last = repository.rsplit("/", 1)[-1].lower()
    return purl("oci", last, digest, arch=arch, repository_url=repository, tag=tag)


def download(name: str, version: str, url: str, sha256: str) -> str:
    """Software that no package index names, by the address and hash of its archive."""
    return purl("generic", name, version, checksum=f"sha256:{sha256}" if sha256 else "", download_url=url)


def _encoded(text: str) -> str:
    return quote(text, safe=":")
