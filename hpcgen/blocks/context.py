"""What a block may ask while it is written down: the plan as it sees it, and where its inputs come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import msgspec

from hpcgen.blocks.declared import Facts
from hpcgen.blocks.guarded import known
from hpcgen.blocks.inputs.wheels import SOURCE, TOOLS
from hpcgen.blocks.sources import Supply
from hpcgen.blocks.steps import (
    Archive,
    BazelCall,
    BazelFiles,
    GitTree,
    InstalledList,
    Part,
    TextFile,
    WheelFile,
    Wheels,
    command,
    lines,
)
from hpcgen.blocks.ways import wheel_for
from hpcgen.core.errors import ConflictError, InputError, Problem, Problems
from hpcgen.core.model.image_paths import BUILT_WHEELS, SCRATCH
from hpcgen.core.model.plan import PlannedConda
from hpcgen.core.model.project import Project
from hpcgen.core.model.release import Release, ReleaseTree
from hpcgen.core.model.spack import PlannedSpack
from hpcgen.core.support.units import DAWN


class Chosen(msgspec.Struct, frozen=True):
    """A block chosen beside this one."""

    name: str
    version: str
    options: Any
    release: Release

    @property
    def prefix(self) -> str:
        """Where it is installed in the image."""
        return f"/opt/{self.name}"

    def at_least(self, version: str) -> bool:
        """Whether the chosen version is ``version`` or newer."""
        from packaging.version import Version

        return Version(self.version) >= Version(version)


class Context(msgspec.Struct, frozen=True):
    """All that a block's methods are given.

    ``me`` is the block itself as chosen, ``others`` maps each need (also the virtual's name) to what was
    chosen for it. ``flags`` are the compiler flags for the partition's CPU. ``supply`` is where the build takes
    its inputs from; blocks call :meth:`fetch`, :meth:`pip` and their like. ``find_wheels`` looks up a hashed wheel
    list by its name (and is told what stands in for a missing one), ``find_bazel`` a list of Bazel's inputs and
    ``find_file`` a text file; blocks call :meth:`wheels`, :meth:`bazel_files` and :meth:`text_file`.
    ``instead``: beside other blocks, the lines that take the place of some of the block's wheel lists; an empty one of
    a line that goes. ``project``: what files of the user's project ask for. ``conda``: what is asked of conda
    (:mod:`hpcgen.blocks.conda`), ``spack``: of Spack. ``locked``: the lists of a lock.
    """

    me: Chosen
    facts: Facts
    others: Mapping[str, Chosen]
    base: Chosen
    flags: tuple[str, ...]
    supply: Supply
    find_wheels: Callable[[str, tuple[str, ...]], tuple[str, ...] | None] = lambda name, fallback: None
    find_bazel: Callable[[str], BazelFiles | None] = lambda name: None
    find_file: Callable[[str], str] = lambda name: f"(text of {name})"
    instead: Mapping[str, str] = {}
    project: Project | None = None
    conda: PlannedConda | None = None
    spack: PlannedSpack | None = None
    locked: Mapping[str, Sequence[str]] = {}

    @property
    def options(self) -> Any:
        return self.me.options

    @property
    def version(self) -> str:
        return self.me.version

    @property
    def release(self) -> Release:
        return self.me.release

    @property
    def prefix(self) -> str:
        return self.me.prefix

    def has(self, name: str) -> bool:
        """Whether something was chosen for this need."""
        return name in self.others

    def use(self, name: str) -> Chosen:
        """What was chosen for a need of this block."""
        return known(self.others, name, "this block's needs")

    def capability(self, software: str) -> str:
        """The compute capability of the partition's GPU, which ``software`` is compiled for; ConflictError without."""
        gpu = self.facts.partition.gpu
        if gpu is None or gpu.capability is None:
            raise ConflictError(
                f"{software} cannot be compiled for a GPU of unknown compute capability",
                remedy=f"add gpu.capability to the partition in the site profile, or set {self.me.name}.install=pip",
            )
        return gpu.capability

    def compiled_for_nodes(self, frameworks: Iterable[str]) -> list[str]:
        """What to tell before a build that loads one of these blocks as compiled for the partition's CPU."""
        found = [name for name in frameworks if self.flags and self.has(name)]
        target = self.facts.partition.cpu.target
        return [
            f"the build of {self.me.name} loads {name}, which is then compiled for {target}: the building machine "
            f"needs such a CPU, or {name} installed by pip"
            for name in found
            if getattr(self.use(name).options, "install", "") == "source"
        ]

    def archive(self, name: str = "source") -> Archive:
        """An archive of this release's row."""
        row = known(self.release.archives, name, "the archives of this release")
        return Archive(row.url, row.sha256)

    def fetch(self, archive: Archive) -> list[str]:
        """Commands that bring an archive to :meth:`local` and check its sha256. The only way to download."""
        return self.supply.fetch(archive, self.local(archive))

    def local(self, archive: Archive) -> str:
        """Where a fetched archive lies in the builder."""
        return f"{SCRATCH}/{archive.name}"

    def unpack(self, archive: Archive, into: str) -> list[str]:
        """Commands that fetch an archive and unpack its content, without its top folder, into a new folder."""
        return [
            *self.fetch(archive),
            command("mkdir", "-p", into),
            command("tar", "-xf", self.local(archive), "-C", into, "--strip-components=1", "--no-same-owner"),
        ]

    def trees(self) -> dict[str, ReleaseTree]:
        """The git trees of this release's row that the block's options ask for, by name.

        InputError: the row names an option that the block has not.
        """
        options = msgspec.structs.asdict(self.options)
        Problems(
            Problem(
                f"the tree {name} of {self.me.name} {self.version} is for {option}, which the block does not have",
                expected=f"one of {', '.join(sorted(options))}",
                remedy=f"correct `only` of the tree in the release table of {self.me.name}",
            )
            for name, row in sorted(self.release.trees.items())
            for option in sorted(row.only.keys() - options.keys())
        ).raise_as(InputError)
        return {
            name: row
            for name, row in sorted(self.release.trees.items())
            if all(str(options[option]) in values for option, values in row.only.items())
        }

    def git_tree(self, name: str) -> GitTree:
        """A git tree of this release's row."""
        row = known(self.release.trees, name, "the git trees of this release")
        return GitTree(row.url, row.commit)

    def tree(self, tree: GitTree, into: str) -> list[str]:
        """Commands that bring a git tree at its commit into a new folder."""
        return self.supply.tree(tree, into)

    def bazel_files(self, name: str) -> BazelFiles:
        """What Bazel fetches by itself, by the name of the list; empty where nobody has made one."""

        return self.find_bazel(name) or BazelFiles(name, ())

    def bazel_setup(self, files: BazelFiles) -> list[str]:
        """Commands that lay out what Bazel would fetch by itself; nothing where it has a network."""
        return self.supply.bazel_setup(files, self.use("bazel").version)

    def bazel_build(
        self,
        files: BazelFiles,
        folder: str,
        *,
        program: Iterable[str],
        options: Iterable[str] = (),
        targets: Iterable[str],
        registries: Iterable[str] = (),
    ) -> list[Part]:
        """Parts of a step that builds targets of a Bazel workspace; :meth:`bazel_setup` comes before it.

        They also say what ``hpcgen lock --fetch-bazel`` runs to learn what Bazel fetches.

        folder: the workspace, which the block's earlier steps have made.
        program: the words before the verb: ``bazel`` with its startup options, and ``env`` with variables before it.
        options, targets: the words after the verb.
        registries: addresses of the module registries, where they are others than Bazel's own default.
        """
        version = self.use("bazel").version
        call = BazelCall(files.name, version, folder, tuple(program), tuple(options), tuple(targets), tuple(registries))
        more = self.supply.bazel_words(files, version, call.registries)
        return [call, command("cd", folder), command(*call.program, "build", *call.options, *more, *call.targets)]

    def wheels(self, name: str, fallback: Iterable[str], *, asks: Iterable[str] | None = None) -> Wheels:
        """The hashed wheel list ``name`` for the chosen Python, or the pinned ``fallback`` without hashes.

        ``asks``: which versions the block can do with, where ``fallback`` says more than that.
        """
        loose = tuple(fallback)
        found = self.find_wheels(name, loose)
        return Wheels(
            name, loose if found is None else found, found is not None, loose if asks is None else tuple(asks)
        )

    def source_lists(self, name: str) -> Iterator[tuple[Wheels, Wheels | None]]:
        """What a lock has as source of a list: each with what its builds require beyond the environment."""
        for number in count(1):
            built, tools = (name + each.format(number) for each in (SOURCE, TOOLS))
            if built not in self.locked:
                return
            needed = Wheels(tools, tuple(self.locked[tools]), True) if tools in self.locked else None
            yield Wheels(built, tuple(self.locked[built]), True), needed

    def beside_others(self, wheels: Wheels) -> Wheels:
        """A wheel list of this block, with the versions on which it agrees with those of the other blocks."""
        lines = (self.instead.get(line, line) for line in wheels.requirements)
        return msgspec.structs.replace(wheels, requirements=tuple(line for line in lines if line))

    def wheel_file(self) -> WheelFile:
        """The wheel of this release by its address, for the chosen Python and the node's architecture."""
        row = wheel_for(self.release, self.use("python").version, self.facts.architecture)
        if row is None:
            raise ConflictError(
                f"{self.me.name} {self.version} has no wheel file for Python {self.use('python').version}",
                remedy=f"choose another version of {self.me.name}, or another way to install it",
            )
        return WheelFile(row.url, row.sha256)

    def pip_file(self, file: WheelFile, *, complete: bool = True) -> list[str]:
        """Commands that fetch a wheel by its address and install it, after all that it needs.

        ``complete``: whether the build fails if something that it needs is not there.
        """
        pip = ["/opt/python/bin/python", "-m", "pip"]
        install = command(*pip, "install", "--no-deps", "--no-index", self.local(file))
        checked = [command(*pip, "check")] if complete else []
        return [*self.fetch(file), install, command("rm", "-f", self.local(file)), *checked]

    def pip_unpack(self, wheels: Wheels, into: str) -> list[Part]:
        """Parts of a step that fetches one source package by its hashed line, and unpacks it to be changed."""
        listing, folder = f"{SCRATCH}/{wheels.name}.txt", f"{SCRATCH}/{wheels.name}"
        pip = ["/opt/python/bin/python", "-m", "pip", "download", "--no-deps", "--require-hashes"]
        words = [*self.supply.pip_words(), "--no-binary", ":all:", "--no-build-isolation", "-d", folder, "-r", listing]
        unpack = ["--strip-components=1", "--no-same-owner", "-C", into]
        return [
            TextFile(f"files/requirements/{wheels.name}.txt", listing, lines(*wheels.requirements)),
            command(*pip, *words),
            command("mkdir", "-p", into),
            f"tar -xf {folder}/*.tar.gz {command(*unpack)}",
        ]

    @property
    def wheel_folder(self) -> str:
        """Where a block leaves the wheels that it compiles: a folder of its artifact."""
        return f"{BUILT_WHEELS}/{self.me.name}"

    def compile_wheel(self, folder: str, variables: Mapping[str, str] | None = None) -> list[Part]:
        """Parts of a step that makes a wheel of an unpacked source, with all that it needs in the environment already.

        Not in pip's own cache of wheels, which knows nothing of the MPI, the flags and the variables that it is
        compiled with. The same content is the same file on any day.
        """
        words = [f"{name}={value}" for name, value in sorted((variables or {}).items())]
        pip = ["/opt/python/bin/python", "-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation"]
        return [
            command("env", f"SOURCE_DATE_EPOCH={DAWN}", *words, *pip, "-w", self.wheel_folder, folder),
            command("rm", "-rf", folder),
        ]

    def install_wheel(self, package: str = "", source: Wheels | None = None) -> list[Part]:
        """Parts of a step that installs what a step before, or an artifact, left in :attr:`wheel_folder`.

        ``package``: its name; else it is installed by the file's, which pip notes as the place that it came from.
        ``source``: the list with the package's source, where it comes by one.
        """
        pip = ["/opt/python/bin/python", "-m", "pip", "install", "--no-deps", "--no-index"]
        by_name = command(*pip, "--find-links", self.wheel_folder, package)
        return [
            InstalledList(source.name if source is not None else "", "/opt/python", compiled=True),
            by_name if package else f"{command(*pip)} {self.wheel_folder}/*.whl",
        ]

    def text_file(self, name: str) -> str:
        """The text of ``building_blocks/files/<name>``, for programs that a block puts into the image."""
        return self.find_file(name)

    def pip(
        self,
        wheels: Wheels,
        *,
        into: str = "/opt/python",
        target: str = "",
        prefix: str = "",
        compiled: str = "",
        variables: Mapping[str, str] | None = None,
        extra: Iterable[str] = (),
    ) -> list[Part]:
        """Parts of a step that installs a wheel list with the pip of a Python environment.

        wheels: the list, which becomes a requirements file of the kit.
        into: the environment.
        target, prefix: a folder that takes the packages instead, as ``pip install`` has it.
        compiled: the package to compile from its source; wheels alone are taken of the others.
        variables: environment of pip and what it starts.
        extra: further options of ``pip install``.
        """
        wheels = self.beside_others(wheels)
        listing = f"{SCRATCH}/{wheels.name}.txt"
        checks = ["--no-deps", "--require-hashes"] if wheels.hashed else []
        # Its cache of wheels knows nothing of the MPI, the flags and the variables that one was compiled with.
        uncached = ["--no-cache-dir"] if compiled else []
        words = [*uncached, *checks, *self.supply.pip_words(), *(["--no-binary", compiled] if compiled else []), *extra]
        words += ["--target", target] if target else ["--prefix", prefix] if prefix else []
        environment = ["env", *(f"{name}={value}" for name, value in variables.items())] if variables else []
        return [
            InstalledList(wheels.name, target or prefix or into, bool(compiled), into),
            TextFile(f"files/requirements/{wheels.name}.txt", listing, lines(*wheels.requirements)),
            command(*environment, f"{into}/bin/python", "-m", "pip", "install", *words, "-r", listing),
        ]
