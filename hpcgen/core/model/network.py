"""The networks of a site, its proxy and its mirrors. Data only."""

from typing import Annotated, Literal

from hpcgen.core.model.fields import AbsolutePath, Record, Url, matching


class Internet(Record, frozen=True):
    """From where the internet is reached: login nodes, compute nodes, the host that builds images."""

    login: bool
    compute: bool
    build: bool = True


ProxyAddress = Annotated[
    str,
    matching(
        r"^https?://[A-Za-z0-9.:@/_-]+$(?!\n)",
        "the http(s):// address of a proxy, with its port",
        "http://proxy.example.org:3128",
    ),
]
ProxyExceptions = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9.:,*/_-]*$(?!\n)",
        "names of hosts, with commas and no spaces between them",
        "localhost,.example.org",
    ),
]


class Proxy(Record, frozen=True):
    """A proxy; that of the build host is used while building and never left in the image."""

    http: ProxyAddress | None = None
    https: ProxyAddress | None = None
    no_proxy: ProxyExceptions = ""

    def variables(self) -> dict[str, tuple[str, str]]:
        """The variables that programs read, as some know the small and some the capital names: the field, the value."""
        said = {"http_proxy": ("http", self.http), "https_proxy": ("https", self.https)}
        said["no_proxy"] = ("no_proxy", self.no_proxy)
        return {
            name: (field, value) for small, (field, value) in said.items() if value for name in (small, small.upper())
        }


AptAddress = Annotated[
    str,
    matching(
        r"^https?://[A-Za-z0-9.:@/_~+-]+$(?!\n)",
        "the http(s):// address of an archive, without spaces or quotes",
        "http://mirror.example.org/debian",
    ),
]


class AptMirror(Record, frozen=True):
    """A mirror of a Debian or Ubuntu archive. Packages are authenticated by the archive's own signing key.

    http is accepted here alone: apt checks signatures, and a base image has no certificates yet.
    """

    archive: AptAddress
    security: AptAddress | None = None


class DnfMirror(Record, frozen=True):
    """A mirror of a distribution's dnf repositories: ``archive`` is the folder that holds the releases.

    https alone: the packages are signed, the indexes of Rocky Linux are not.
    """

    archive: Annotated[
        str,
        matching(
            r"^https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/+@%:,=-]*)?$(?!\n)",
            "an https:// address without spaces, quotes, ? or #",
            "https://mirror.example.org/rocky",
        ),
    ]


ImageReference = Annotated[
    str,
    matching(r"^[A-Za-z0-9/][A-Za-z0-9._/:@+-]*$(?!\n)", "an image name or a path", "registry.example.org/debian:12"),
]
Registry = Annotated[
    str,
    matching(
        r"^(localhost(:[0-9]{1,5})?|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(:[0-9]{1,5})?|[A-Za-z0-9-]+:[0-9]{1,5})"
        r"(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$(?!\n)",
        "a registry and a folder in it, without https:// and a tag",
        "registry.example.org/proxy",
    ),
]


class ImageMirror(Record, frozen=True):
    """Where a base image is found by each format, where it is not pulled from its registry.

    ``bootstrap`` is Singularity's agent for ``singularity``: docker, oci-archive, localimage …
    """

    docker: ImageReference | None = None
    charliecloud: ImageReference | None = None
    singularity: ImageReference | None = None
    bootstrap: Literal["docker", "docker-archive", "localimage", "oci", "oci-archive", "oras"] = "docker"


FilesMirror = Annotated[
    str,
    matching(
        r"^(https://[A-Za-z0-9.-]+(:[0-9]{1,5})?|file://|(?=/))(/[A-Za-z0-9._~/+@%:,=-]*)?$(?!\n)",
        "an https:// address, or a folder as a path or a file:// address, without spaces or quotes",
        "https://mirror.example.org/sources",
    ),
]


class Mirrors(Record, frozen=True):
    """Mirrors of the build host; ``files`` holds archives by their file name, ``images`` base images by name.

    ``files`` may be a folder of the machine that makes bundles; the steps of a build do not see it.

    ``conda`` has every channel by the path that it has on its own host: ``conda-forge``, ``pkgs/main``.
    ``registry`` has every base image that ``images`` does not name, by the path that it has in its own registry.
    """

    apt: dict[Literal["debian", "ubuntu"], AptMirror] = {}
    dnf: dict[Literal["rockylinux"], DnfMirror] = {}
    pip: Url | None = None
    conda: Url | None = None
    files: FilesMirror | None = None
    images: dict[ImageReference, ImageMirror] = {}
    registry: Registry | None = None


class Network(Record, frozen=True):
    """What can be reached from where, and what must be trusted on the way.

    ``proxy`` is that of the machine that builds, ``job_proxy`` the one by which jobs reach what is outside.
    """

    internet: Internet
    ca_certificates: list[AbsolutePath] = []
    proxy: Proxy | None = None
    job_proxy: Proxy | None = None
    mirrors: Mirrors = Mirrors()
