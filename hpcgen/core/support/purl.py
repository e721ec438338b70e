"""Package URLs, by which vulnerability databases and licence tools know a package."""

from __future__ import annotations

from hpcgen.core.support.package_names import normal_name


def purl(kind: str, name: str, version: str = "", *, namespace: str = "", **qualifiers: str) -> str:
    """A package URL; empty qualifiers are left out."""
    from packageurl import PackageURL

    return PackageURL(kind, namespace, name, version, qualifiers).to_string()


def debian_package(distribution: str, release: str, name: str, version: str, architecture: str) -> str:
    """A package of Debian or Ubuntu; ``architecture`` is empty where it is not known."""
    where = {"arch": architecture, "distro": f"{distribution}-{release}"}
    return purl("deb", name.lower(), version, namespace=distribution, **where)


def rpm_package(distribution: str, release: str, name: str, version: str, architecture: str) -> str:
    """An RPM package; ``version`` may begin with an epoch, ``architecture`` is empty where it is not known."""
    epoch, _, rest = version.rpartition(":")
    where = {"arch": architecture, "distro": f"{distribution}-{release}", "epoch": epoch}
    return purl("rpm", name, rest, namespace=distribution, **where)


def python_package(name: str, version: str) -> str:
    """A package of a Python package index."""
    return purl("pypi", normal_name(name), version)


def conda_package(name: str, version: str, build: str, channel: str, subdir: str, file: str) -> str:
    """A package of conda; ``channel`` is the address of its channel, ``file`` the name of its file."""
    channel = channel.removeprefix("https://conda.anaconda.org/")
    kind = "conda" if file.endswith(".conda") else "tar.bz2"
    return purl("conda", name, version, build=build, channel=channel, subdir=subdir, type=kind)


def image(name: str, digest: str, architecture: str) -> str:
    """A container image by its digest; ``name`` with registry and tag."""
    repository, _, tag = name.rpartition(":") if ":" in name.rsplit("/", 1)[-1] else (name, "", "")
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(architecture, architecture)
    last = repository.rsplit("/", 1)[-1].lower()
    return purl("oci", last, digest, arch=arch, repository_url=repository, tag=tag)


def download(name: str, version: str, url: str, sha256: str) -> str:
    """Software that no package index names, by the address and hash of its archive."""
    return purl("generic", name, version, checksum=f"sha256:{sha256}" if sha256 else "", download_url=url)
