"""Files that Bazel fetches by itself, while it builds.

In a build from a bundle they are laid out where Bazel looks before it asks the network.

Up to Bazel 6 that is ``--distdir``: of a file that is asked for with a sha256, Bazel tries the last part of the first
url in each such folder, and passes over a file whose hash differs (DownloadManager.java of Bazel 4.2.3 and of
bazelbuild/bazel@05db27e). So where two files have one name, the second lies in a second folder.

From Bazel 7 on it is ``--repository_cache``: ``content_addressable/sha256/HASH/file``. Its rules also ask that the
file was put there for the same urls (tools/build_defs/repo/cache.bzl), unless
BAZEL_HTTP_RULES_URLS_AS_DEFAULT_CANONICAL_ID is 0.

``--experimental_repository_disable_download`` makes anything that is not there an error at once, with its name
(seen in 4.2.3 and 7.7.1, which calls it ``--repository_disable_download`` and still takes the old name; 2.1.0 does not
know it). It binds what Bazel downloads, not what a repository rule runs (pip, git): that only finds no network.

What Bazel reads of module registries (6 and later) it takes from a folder too: ``--registry=file://…`` (IndexRegistry
and RegistryFactoryImpl.java). Of the rest of a registry (its list of mirrors, yanked versions) nothing is needed.

Seen to build offline from a read-only bundle: 2.1.0 and 4.2.3 with the folders, 7.7.1 with the cache and a registry.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec

from hpcgen.blocks.inputs.base import INDEX, Fetcher, ImageView, Input, OfBlocks, Pinned
from hpcgen.core.errors import InputError, Problem
from hpcgen.core.model.bazel import BazelFile, BazelList, BazelPin
from hpcgen.core.model.image_paths import MOUNT, SCRATCH, WHEEL_INDEX, file_path
from hpcgen.core.model.network import Mirrors
from hpcgen.core.support.quoting import command
from hpcgen.core.support.units import counted

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self

    from hpcgen.core.model.bundle import WantedFile
    from hpcgen.core.model.component import Component

DISTDIR = f"{SCRATCH}/bazel-distdir"
CACHE = f"{SCRATCH}/bazel-repository-cache"
REGISTRIES = f"{SCRATCH}/bazel-registries"

# rules_python starts pip with --isolated, which makes it ignore PIP_*, unless it is told not to (pip_repository.bzl).
_ALONE = [
    "--experimental_repository_disable_download",
    "--repo_env=RULES_PYTHON_PIP_ISOLATED=0",
    "--repo_env=PIP_NO_INDEX=1",
    f"--repo_env=PIP_FIND_LINKS=file://{MOUNT}/{WHEEL_INDEX}",
]


class BazelCall(msgspec.Struct, frozen=True):
    """How a step builds targets of a Bazel workspace: ``program`` is all before the verb.

    ``name``: of the list of what it fetches. ``version``: of Bazel. ``folder``: the workspace. ``registries``:
    addresses of module registries, where they are others than Bazel's own.
    """

    name: str
    version: str
    folder: str
    program: tuple[str, ...]
    options: tuple[str, ...]
    targets: tuple[str, ...]
    registries: tuple[str, ...] = ()


class BazelFiles(Input, frozen=True):
    """What Bazel fetches by itself while it builds; ``files`` is empty where nobody has made the list ``name``.

    ``run``: what a lock has of a Bazel that was run, which may also have fetched nothing. ``unknown``: repositories
    that a build is known to need besides, of whose files no public sha256 was found.
    """

    name: str
    files: tuple[BazelFile, ...]
    run: BazelPin | None = None
    unknown: tuple[str, ...] = ()
    key = "bazel"

    def entry(self) -> dict[str, Any]:
        return {self.key: self.name, "files": {file.sha256: file.name for file in self.files}}

    def pinned(self) -> Iterator[Pinned]:
        for file in self.files:
            yield Pinned("bazel", file.name, file.urls[0] if file.urls else INDEX, f"sha256:{file.sha256}")
        if not self.known:
            yield Pinned("bazel", self.name, "the files that its workspace names", "sha256, inside the source")

    def unmirrored(self, mirrors: Mirrors) -> str:
        return "Bazel's downloads"

    @staticmethod
    def recorded(entry: Mapping[str, Any]) -> list[str]:
        return [f"bazel {name} sha256:{sha256}" for sha256, name in entry["files"].items()]

    @classmethod
    def wanted(cls, inputs: OfBlocks[Self], fetcher: Fetcher) -> list[WantedFile]:
        """Each file once, from https addresses alone, or the index of pip's settings."""
        return [wanted for _, item in inputs for wanted in item._wanted(fetcher)]

    def _wanted(self, fetcher: Fetcher) -> list[WantedFile]:
        from hpcgen.core.model.bundle import WantedFile

        self.require()
        lines = sorted({f"{file.package} --hash=sha256:{file.sha256}" for file in self.files if file.package})
        packages = {each.sha256: each.urls for each in (fetcher.find_files(lines, None) if lines else [])}
        names, found = self.held_names(), dict[tuple[bool, str], WantedFile]()
        for file in self.files:
            label, sha256 = f"{self.name} {file.name}", file.sha256
            # A mirror that a project names by http is asked by https; the hash decides.
            urls = [url for url in file.urls if url.startswith("https:")]
            urls = urls or packages.get(sha256) or ["https:" + url.removeprefix("http:") for url in file.urls]
            if known := found.get((file.pip, sha256)):
                label, urls = known.name, list(dict.fromkeys([*known.urls, *urls]))
            # What pip asks for must be on the page of a bundle's wheels.
            kind: Literal["wheel", "bazel"] = "wheel" if file.pip else "bazel"
            found[file.pip, sha256] = WantedFile(kind=kind, name=label, file=names[sha256], sha256=sha256, urls=urls)
        return [found[key] for key in sorted(found)]

    @classmethod
    def components(cls, inputs: OfBlocks[Self], view: ImageView) -> Iterator[tuple[Component, bool]]:
        """Which of them end up in a program, Bazel alone knows: so none is said to be in the image."""
        from hpcgen.core.model.component import Component
        from hpcgen.core.support import purl

        for block, file in ((block, file) for block, item in inputs for file in item.files):
            url = file.urls[0] if file.urls else ""
            package, _, version = file.package.partition("==")
            address = purl.python_package(package, version) if package else ""
            component = Component(
                f"file:{file.name}:{file.sha256[:12]}",
                "file",
                package or file.name,
                version,
                purl=address or purl.download(file.name, "", url, file.sha256),
                licence=view.licence(file.sha256),
                sha256=file.sha256,
                url=url,
                block=block.name,
                note="fetched by Bazel during the build; parts may be compiled in",
            )
            yield component, False

    def held_names(self) -> dict[str, str]:
        """sha256 → the file's name in a bundle, which holds every content once, whatever names Bazel looks for."""
        names: dict[str, str] = {}
        for file in self.files:
            name = file_name(file)
            names[file.sha256] = min(names.get(file.sha256, name), name)
        return names

    def distdir_commands(self, version: str) -> list[str]:
        """Commands that lay out the folder for Bazel ``version``, as links into the bundle.

        InputError: the list is empty: nobody has made it.
        """
        self.require()
        held, folders = self.held_names(), self._folders()
        if _major(version) >= 7:
            content = sorted({file.sha256 for file in self.files if not file.pip})
            folders = {f"{CACHE}/content_addressable/sha256/{sha256}": {"file": sha256} for sha256 in content}
        folders |= self._registries()
        commands = []
        for folder, members in folders.items():
            commands.append(command("mkdir", "-p", folder))
            commands += [
                command("ln", "-sfn", f"{MOUNT}/{file_path(sha256, held[sha256])}", f"{folder}/{name}")
                for name, sha256 in members.items()
            ]
        return commands

    def bazel_words(self, version: str) -> list[str]:
        """Options of ``bazel build`` and ``bazel fetch`` that go with :meth:`distdir_commands`.

        InputError: as there.
        """
        self.require()
        if _major(version) >= 7:
            place = [f"--repository_cache={CACHE}", "--repo_env=BAZEL_HTTP_RULES_URLS_AS_DEFAULT_CANONICAL_ID=0"]
        else:
            place = [f"--distdir={folder}" for folder in self._folders()]
        numbers = sorted({int(file.registry.split("/")[0]) for file in self.files if file.registry})
        place += [f"--registry=file://{REGISTRIES}/{number}" for number in numbers]
        return [*place, *(_ALONE if _major(version) >= 4 else [])]

    def _registries(self) -> dict[str, dict[str, str]]:
        """The same for module registries, each a folder of its own."""
        folders: dict[str, dict[str, str]] = {}
        for file in self.files:
            if file.registry:
                folder, _, name = f"{REGISTRIES}/{file.registry}".rpartition("/")
                folders.setdefault(folder, {})[name] = file.sha256
        return dict(sorted(folders.items()))

    def _folders(self) -> dict[str, dict[str, str]]:
        """Folder → file name → sha256; each folder has a name once."""
        hashes: dict[str, list[str]] = {}
        for file in (file for file in self.files if not file.pip and not file.registry):
            known = hashes.setdefault(file_name(file), [])
            if file.sha256 not in known:
                known.append(file.sha256)
        folders: dict[str, dict[str, str]] = {}
        for name, several in sorted(hashes.items()):
            for number, sha256 in enumerate(several, 1):
                folders.setdefault(DISTDIR if number == 1 else f"{DISTDIR}-{number}", {})[name] = sha256
        return dict(sorted(folders.items()))

    @property
    def known(self) -> bool:
        """Whether it was listed what Bazel fetches, also where that is nothing."""
        return bool(self.files) or self.run is not None

    @property
    def lacking(self) -> str:
        """What a bundle lacks for a build without a network, for people; empty if nothing is known of that."""
        if not self.unknown:
            return ""
        return (
            f"of what Bazel fetches for {self.name}, the sha256 of {counted(len(self.files), 'file')} is known, and "
            f"not that of {', '.join(self.unknown)}: without these no build from a bundle succeeds "
            "(hpcgen lock --fetch-bazel learns them: docs/bazel-inputs.md)"
        )

    def require(self) -> None:
        """Refuse a list that nobody has made."""
        if not self.known:
            raise InputError(
                f"the files that Bazel fetches for {self.name} are unknown, so it cannot be built without a network",
                expected=f"a lock that has it, or building_blocks/bazel/{self.name}.yaml in a collection",
                remedy="write the lock again with hpcgen lock --fetch-bazel, which runs Bazel to learn it "
                "(docs/bazel-inputs.md); or choose a version that has a list, or another way to install it",
            )


def file_name(file: BazelFile) -> str:
    """The name that Bazel looks for: the last part of the first url's path."""
    if file.file:
        return file.file
    return posixpath.basename(urlsplit(file.urls[0]).path) or file.name


def _major(version: str) -> int:
    return int(version.split(".", 1)[0])


def pinned_files(name: str, pin: BazelPin) -> BazelFiles:
    """What a lock has, under the name of the list that it stands for."""
    return BazelFiles(name, tuple(pin.files), pin)


def read_bazel_files(path: Path, shown: str) -> BazelFiles:
    """The list in a file, ``building_blocks/bazel/NAME.yaml``; it is called as the file is, without ``.yaml``.

    InputError: the file is not such a list, or contradicts itself about one address.
    """
    from hpcgen.core.config.decoding import convert
    from hpcgen.core.config.yamlfile import load

    document = load(path, shown)
    listed = convert(document, BazelList)
    seen: dict[str, str] = {}
    problems = []
    for number, file in enumerate(listed.files):
        if bool(file.urls) == bool(file.package and file.file):
            where = document.position(["files", number])
            problems.append(
                Problem(
                    f"{file.name} must have either urls, or file and package", where, remedy="take one of the two out"
                )
            )
        for place, url in enumerate(file.urls):
            if seen.setdefault(url, file.sha256) != file.sha256:
                where = document.position(["files", number, "urls", place])
                problems.append(Problem(f"{url} is listed with two hashes", where, remedy="keep the right one"))
    if problems:
        raise InputError(problems)
    return BazelFiles(path.stem, tuple(listed.files), unknown=tuple(each.name for each in listed.unknown))
