"""Where a build takes its inputs from: the network with the site's mirrors, or a bundle.

The only place that knows the difference. Blocks ask their context (``ctx.fetch``, ``ctx.pip``, ``ctx.bazel``), the
context asks here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hpcgen.backends.hardware.mirrors import conda_mirror, repository_lines
from hpcgen.blocks.inputs.spack import MIRROR, SpackSources
from hpcgen.blocks.steps import Archive, BazelFiles, GitTree, Image, command
from hpcgen.core.model.image_paths import MOUNT, SCRATCH, WHEEL_INDEX, file_path
from hpcgen.core.model.network import AptMirror, Mirrors, Network

if TYPE_CHECKING:
    from hpcgen.core.model.conda import CondaPackage
    from hpcgen.core.model.lock import ImagePin


class Supply:
    """The network. ``mirrors`` and ``proxy`` are the site's."""

    packages_from = "the site's mirror"

    def __init__(self, network: Network | None) -> None:
        self.mirrors = Mirrors() if network is None else network.mirrors
        self.proxy = None if network is None else network.proxy
        self.pip_index = self.mirrors.pip

    def image(self, name: str, pin: ImagePin) -> Image:
        """A base image with its digest, as a lock has it."""
        return Image(name, pin.digest, pin.dated or "", in_registry=pin.origin.startswith("docker://"))

    def fetch(self, archive: Archive, target: str) -> list[str]:
        """Commands that bring an archive to a path in the builder and check its sha256.

        https alone, also after a redirect; a mirror of the site is used where there is one.
        """
        url = archive.fetched_from(self.mirrors.files)
        bring = command("curl", "-fsSL", "--proto", "=https", "--retry", "3", "-o", target, url)
        return [f"mkdir -p {SCRATCH}", bring, *_checked(archive.sha256, target)]

    def pip_words(self) -> list[str]:
        """Options of ``pip install``, beside those that a requirements file asks for."""
        return []

    def apt_sources(self, distribution: str, values: Any) -> list[str]:
        """Lines of a sources.list that stand for the distribution's own; empty to leave those.

        ``distribution``: the base block, ``debian`` or ``ubuntu``. ``values``: of its release row: ``codename`` and
        ``keyring``.
        """
        mirror: AptMirror | None = next(
            (mirror for name, mirror in self.mirrors.apt.items() if name == distribution), None
        )
        if mirror is None:
            return []
        suite = values["codename"]
        parts = "main" if distribution == "debian" else "main universe"
        start = f"deb [signed-by={values['keyring']}]"
        lines = [f"{start} {mirror.archive} {suite} {parts}", f"{start} {mirror.archive} {suite}-updates {parts}"]
        # Ubuntu's archive holds the security updates too; Debian's are a separate archive.
        security = mirror.security or (mirror.archive if distribution == "ubuntu" else None)
        if security is not None:
            lines.append(f"{start} {security} {suite}-security {parts}")
        return lines

    def arguments(self) -> dict[str, str]:
        """Variables of every step, which do not stay in the image."""
        return {}

    def apt_settings(self) -> list[str]:
        """Lines of apt's configuration that go with them."""
        return []

    def dnf_repositories(self, distribution: str, values: Any) -> list[str]:
        """Lines of a repository file that stands for all of the distribution's own; empty to leave those.

        ``distribution``: the base block, ``rockylinux``. ``values``: of its release row: ``repositories`` and
        ``more_repositories`` by name, ``keyring``.
        """
        mirror = next((mirror for name, mirror in self.mirrors.dnf.items() if name == distribution), None)
        return [] if mirror is None else repository_lines(mirror.archive, values)

    def package_file(self, sha256: str, name: str) -> str:
        """Where the file of an RPM package lies already; empty where the package manager has to fetch it."""
        return ""

    def bazel_setup(self, files: BazelFiles, version: str) -> list[str]:
        """Commands before Bazel's own; Bazel ``version`` fetches by itself what its workspace names, by sha256."""
        return []

    def bazel_words(self, files: BazelFiles, version: str, registries: Sequence[str] = ()) -> list[str]:
        """Options of ``bazel build``, with the addresses of module registries that it is to use."""
        return [f"--registry={url}" for url in registries]

    def tree(self, tree: GitTree, into: str) -> list[str]:
        """Commands that bring a git tree at its commit into a new folder."""
        return tree.online_commands(into)

    def conda_sources(self, packages: Sequence[CondaPackage], into: str) -> dict[str, str]:
        """Where the files of conda packages are fetched from, by where each lies in the builder then."""
        return {f"{into}/{each.file}": conda_mirror(self.mirrors, each.url) for each in packages}

    def spack_mirror(self, folder: str) -> str:
        """Where Spack looks for sources first; ``folder``: that of :meth:`spack_sources`."""
        return MIRROR

    def spack_sources(self, sources: SpackSources, folder: str) -> list[str]:
        """Commands that lay out a mirror of Spack; nothing where Spack fetches by itself, by sha256."""
        return []


class BundleSupply(Supply):
    """A bundle, bound at :data:`hpcgen.core.model.image_paths.MOUNT` while the steps run; no remote source is left."""

    packages_from = "the bundle"

    def __init__(self, trees: Mapping[str, str]) -> None:
        super().__init__(None)
        self.trees = trees

    def image(self, name: str, pin: ImagePin) -> Image:
        """The same in the bundle's layout."""
        return Image(name, pin.bundled)

    def fetch(self, archive: Archive, target: str) -> list[str]:
        """A link to the file, checked all the same: the bundle may have changed since it was verified."""
        held = f"{MOUNT}/{file_path(archive.sha256, archive.name)}"
        return [f"mkdir -p {SCRATCH}", command("ln", "-sf", held, target), *_checked(archive.sha256, target)]

    def pip_words(self) -> list[str]:
        """No index but the bundle's."""
        return ["--no-index", "--find-links", f"file://{MOUNT}/{WHEEL_INDEX}"]

    def arguments(self) -> dict[str, str]:
        """No configuration of the base image's pip adds another place to look at."""
        return {"PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "1"}

    def apt_sources(self, distribution: str, values: Any) -> list[str]:
        """The bundle's folder is a flat repository."""
        return [f"deb [trusted=yes] file:{MOUNT} ./"] if values["package_manager"] == "apt" else []

    def apt_settings(self) -> list[str]:
        """apt's own user need not be able to read the bundle."""
        return ['APT::Sandbox::User "root";']

    def package_file(self, sha256: str, name: str) -> str:
        """In the bundle, whose sums vouch for it."""
        return f"{MOUNT}/{file_path(sha256, name)}"

    def bazel_setup(self, files: BazelFiles, version: str) -> list[str]:
        """The files where Bazel looks for them."""
        return files.distdir_commands(version)

    def bazel_words(self, files: BazelFiles, version: str, registries: Sequence[str] = ()) -> list[str]:
        """That Bazel looks there and nowhere else."""
        return files.bazel_words(version)

    def tree(self, tree: GitTree, into: str) -> list[str]:
        """The tree's archive, unpacked."""
        return tree.bundled_commands(self.trees.get(f"{tree.url}@{tree.commit}", ""), into)

    def conda_sources(self, packages: Sequence[CondaPackage], into: str) -> dict[str, str]:
        """They lie in the bundle, and nothing is fetched."""
        return {f"{MOUNT}/{file_path(each.sha256, each.file)}": "" for each in packages}

    def spack_mirror(self, folder: str) -> str:
        """The folder that is laid out of the bundle."""
        return f"file://{folder}"

    def spack_sources(self, sources: SpackSources, folder: str) -> list[str]:
        """The bundle's files where Spack looks for them."""
        return sources.bundled_commands(folder)


def _checked(sha256: str, path: str) -> list[str]:
    listing = command(path + ".sha256")
    return [f"printf '%s  %s\\n' {sha256} {command(path)} > {listing}", f"sha256sum -c --quiet {listing}"]
