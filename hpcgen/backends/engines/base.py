"""What an engine is given and what it answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import msgspec

from hpcgen.core.errors import InputError, PolicyError, Problem
from hpcgen.core.model.fields import FormatName
from hpcgen.core.model.host_mpi import Bind, HostMpi
from hpcgen.core.model.release import PLATFORMS
from hpcgen.core.support.quoting import FOLDER, IMAGE, Shell, joined

if TYPE_CHECKING:
    from hpcgen.backends.engines.building import BuildFolder, EngineCommand, LeftImage, Target, Work
    from hpcgen.backends.engines.steps import Labels, Reader, Recipe, Step
    from hpcgen.core.model.plan import Plan
    from hpcgen.core.model.record import BuiltImage


class Call(msgspec.Struct, frozen=True):
    """One start of a container, without its command.

    image, folder: the image, and the folder that the job is started in; words.
    binds: host paths to be seen inside.
    file_systems: folders of the host to be seen inside in their own place, those of them that the node has; words.
    inside: variables to be set inside.
    inherited: names of variables that are set outside and wanted inside.
    unset: names of variables of the host that must not be seen inside.
    gpu: the vendor of the node's GPUs, "" without.
    gpu_cdi: the CDI name of all of them, where the profile has one.
    devices: device files of the fabric.
    join: ranks of a node that share one container, 0 if each has its own.
    shared_memory: whether processes inside talk to each other through memory.
    mpi: the family of the host's MPI, ``mpich`` or ``openmpi``, if it takes part in the start; "" without.
    fabric: the kind of the site's fabric.
    python: whether it has Python.
    gpu_collectives: libraries such as ``NCCL``, by which GPUs send each other data, whose plugin the engine brings.
    sealed: whether foreign code runs in it: no network, and of the host only the job's folder and ``binds``.
    attached: whether it is a command of the user's shell, with a terminal or a pipe, to which signals are sent.
    host_network: whether it listens on the host's network.
    ranks_outside: whether a launcher of the caller starts it: only the script knows how many ranks share a node.
    options: of the engine, which the site wants at every start.
    packed: squashfs files of which the content is to be seen inside, for an engine that mounts them.
    makes_targets: whether the image lacks folders that something is bound to.
    """

    image: str = IMAGE
    folder: str = FOLDER
    binds: tuple[Bind, ...] = ()
    file_systems: tuple[str, ...] = ()
    inside: Mapping[str, str] = {}
    inherited: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()
    gpu: str = ""
    gpu_cdi: str = ""
    devices: tuple[str, ...] = ()
    join: int = 0
    shared_memory: bool = False
    mpi: str = ""
    fabric: str = "none"
    python: bool = False
    gpu_collectives: tuple[str, ...] = ()
    sealed: bool = False
    attached: bool = False
    host_network: bool = False
    ranks_outside: bool = False
    options: tuple[str, ...] = ()
    packed: tuple[Bind, ...] = ()
    makes_targets: bool = False


class Engine:
    """One container engine: what it reads, how it builds, starts, keeps and pushes images, and since which release.

    A subclass says what it can do. One that starts no image has ``runs = False``, one that builds none
    ``builds = False`` and names in ``built_by`` the engine whose images it takes.

    Of all: ``name``, as profiles have it; ``format``: what its images are built from.

    Of one that starts images: ``program``: to be found on PATH, the name if empty. ``starts``: the kinds of image that
    it starts as they lie there, the one that it is made for first; ``sandbox`` is a folder that Apptainer built,
    ``registry`` an image that no machine has as a file.
    ``host_environment``: the host's variables enter by themselves. ``image_environment``: the image's own are set by
    the engine. ``started_by_launcher``: a launcher on the host can start one container per rank. ``library_path``: what
    the engine adds to the library path, to be kept when that is set inside. ``image_is_file``: the image is a file or
    folder; else it is in the engine's own store. ``launcher``: the batch system's program of which an option starts the
    container. ``shows_home``: the home directory is seen inside. ``brings_mpi``, ``brings_fabrics``: binary interfaces
    and kinds of fabric for which it shows the host's libraries inside without being told of their folders.
    ``brings_collectives``: by the kind of fabric, libraries of collectives between GPUs for which it brings a plugin;
    ``collectives_folders``: where that lies inside, if the loader does not find it by itself. ``image_releases``: the
    oldest release that starts an image file, by the end of its name. ``driver_in_image``: the GPU driver's libraries
    have to be in the image. ``targets_in_image``: it binds only onto folders that the image has, ``mount_points`` among
    them. ``bind_option``: the one that binds a folder. ``read_only_binds``: what it binds can be closed to changes.
    ``packed_since``: the release since which it mounts squashfs files as data, "" where none does; ``sees_mounts``: it
    binds what the user has mounted by FUSE, which root is kept out of. ``asks_user``: its program refuses to start
    without the variable USER, which containers, cron and some batch systems do not set.
    ``definition_reads``: signs that no path can have in its definition file. ``tells_version``: its program says with
    ``--version`` which release of the engine this is. ``image_todo``: what the user does with an image file, where it
    starts none; without signs that a shell reads. ``dev_containers``: editors start images of its store.
    ``environment_prefixes``: what the names of variables of the host begin with that it sets inside without that, the
    first that is set counting. ``signal_words``: options by which a signal ends a program inside as it would outside.
    ``user_namespaces``: as it is usually installed, it starts containers in a user namespace, which the kernel must
    allow to ordinary users.

    Of one that builds: ``builder``: its program and its name in records, the engine's own name if empty.
    ``alone``: it does one step after the other. ``service``: it works through a service of the machine, so others are
    tried before. ``builds_since``: the release that reads our recipes, and for what of them. ``comes_from``: where a
    person gets it. ``storage_variables``: they say where it keeps images, steps and temporary files.
    ``converter``: its script that writes image files, where that puts its own folder first on PATH; beside that is lib.
    ``adds_to``: kinds of image, as ``starts`` has them, that its builds can start from.
    ``archive_by``: the program by which they start from an OCI archive, "" where they do not.
    ``makes``: the kinds of image that its builds write, that of its own store first. ``reads_dockerfiles``: it builds a
    Dockerfile of anybody's, but for ``not_read``: patterns of its text, each with what becomes of that.
    ``differs_before``: what differs between two images of one lock, if it is known, before the release ``equal_since``,
    which makes them equal; "" where no release is known to.
    """

    name: ClassVar[str]
    format: ClassVar[FormatName]
    runs: ClassVar[bool] = True
    builds: ClassVar[bool] = True
    built_by: ClassVar[str] = ""

    program: ClassVar[str] = ""
    starts: ClassVar[tuple[str, ...]] = ()
    host_environment: ClassVar[bool] = True
    image_environment: ClassVar[bool] = True
    started_by_launcher: ClassVar[bool] = True
    library_path: ClassVar[str] = ""
    image_is_file: ClassVar[bool] = True
    launcher: ClassVar[str] = ""
    brings_mpi: ClassVar[tuple[str, ...]] = ()
    brings_fabrics: ClassVar[tuple[str, ...]] = ()
    brings_collectives: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    collectives_folders: ClassVar[tuple[str, ...]] = ()
    image_releases: ClassVar[Mapping[str, str]] = {}
    driver_in_image: ClassVar[bool] = False
    shows_home: ClassVar[bool] = False
    targets_in_image: ClassVar[bool] = False
    mount_points: ClassVar[tuple[str, ...]] = ()
    read_only_binds: ClassVar[bool] = True
    bind_option: ClassVar[str] = ""
    packed_since: ClassVar[str] = ""
    sees_mounts: ClassVar[bool] = False
    asks_user: ClassVar[bool] = False
    definition_reads: ClassVar[str] = ""
    tells_version: ClassVar[bool] = True
    image_todo: ClassVar[str] = ""
    dev_containers: ClassVar[bool] = False
    environment_prefixes: ClassVar[tuple[str, ...]] = ()
    signal_words: ClassVar[Sequence[str]] = ()
    user_namespaces: ClassVar[bool] = False

    builder: ClassVar[str] = ""
    alone: ClassVar[bool] = True
    service: ClassVar[bool] = False
    builds_since: ClassVar[tuple[str, str]] = ("", "")
    comes_from: ClassVar[str] = ""
    storage_variables: ClassVar[tuple[str, ...]] = ()
    equal_since: ClassVar[str] = ""
    differs_before: ClassVar[str] = ""
    converter: ClassVar[str] = ""
    adds_to: ClassVar[tuple[str, ...]] = ()
    archive_by: ClassVar[str] = ""
    makes: ClassVar[tuple[str, ...]] = ()
    reads_dockerfiles: ClassVar[bool] = False
    not_read: ClassVar[Mapping[str, str]] = {}

    def __init__(self, version: str | None = None) -> None:
        self.version = version

    # what it can do

    def extended_name(self, content: str, file: str) -> str:
        """How a recipe names a finished image that is a file or folder.

        ``content``: the hash of the plan that it was built from. ``file``: its name beside the kit.
        """
        return file

    @classmethod
    def command_name(cls) -> str:
        """The program that starts images, to be found on PATH."""
        return cls.program or cls.name

    @classmethod
    def builder_name(cls) -> str:
        """The program that builds images, which is also what records call it."""
        return cls.builder or cls.name

    @classmethod
    def programs(cls) -> set[str]:
        """Its own programs, by which people call it too; the batch system's is not one."""
        return {cls.builder_name(), *(() if cls.launcher else (cls.command_name(),))}

    def at_least(self, version: str) -> bool:
        """Whether the engine is known to be ``version`` or newer; an unknown version is the oldest."""
        if self.version is None:
            return False
        from packaging.version import Version

        try:
            return Version(self.version) >= Version(version)
        except ValueError:
            return False

    def requires(self, gpu: str, fakeroot: bool) -> list[tuple[str, str]]:
        """The releases that options of every kit came with, each with the option.

        ``gpu``: the vendor of the node's GPUs, "" without. ``fakeroot``: whether the profile says that it builds with
        ``--fakeroot``.
        """
        return []

    def unsupported_reason(self, gpu: str) -> str:
        """Why it cannot show GPUs of a vendor ("" for no GPU) inside; "" if it can."""
        return ""

    def refuse(self, message: str, remedy: str) -> PolicyError:
        """That this engine cannot do what the job needs."""
        return PolicyError(f"{self.name} {self.version or 'of unknown version'}: {message}", remedy=remedy)

    def unsealed_reason(self) -> str:
        """Why it cannot start a container without a network and with nothing of the host; "" if it can."""
        return "hpcgen knows no options that hide the host and disable the network"

    # starting images

    def oldest(self, call: Call) -> str:
        """The oldest release that has every option in the words of a call; "" where every supported one has them."""
        return ""

    def image_names(self, stack: str, site: str) -> list[str]:
        """Names of the image, those to be tried first coming first."""
        raise NotImplementedError

    def words(self, call: Call) -> list[list[str]]:
        """The command line up to the container's command, grouped as it is best read."""
        raise NotImplementedError

    def given_by_host(self, name: str) -> Shell:
        """What modules of the site have the engine set inside as a variable, with ``:`` behind it; empty where not."""
        found = ""
        for prefix in reversed(self.environment_prefixes):
            found = f"${{{prefix}{name}:-{found}}}"
        return Shell(f'"$(v="{found}"; echo "${{v:+$v:}}")"') if found else Shell("")

    def start_words(self, call: Call) -> list[list[str]]:
        """These, with the site's own options after those that tell the program what to do."""
        groups = self.words(call)
        first = next((at for at, group in enumerate(groups) if group[:1] == [self.command_name()]), 0)
        return [*groups[: first + 1], *([list(call.options)] if call.options else []), *groups[first + 1 :]]

    def before_words(self) -> list[str]:
        """Words before the command line, for what containers that start together on a node would race to make."""
        return []

    def bind_in_place(self) -> str:
        """Words of shell that show the host's folder ``$path`` inside, in its own place; "" where it cannot."""
        return f'{self.bind_option} "$path:$path"' if self.bind_option else ""

    def join_words(self) -> str:
        """Words of shell by which the ``$ranks`` ranks of a node share one container; "" where they need none."""
        return ""

    def ranks_together(self, mpi: str) -> bool:
        """Whether ranks of a node that a launcher starts one by one may read each other's memory.

        The kernel forbids it between user namespaces, and each container without setuid has one of its own.

        ``mpi``: as ``Call.mpi``.
        """
        return not self.user_namespaces

    def definition(self, call: Call) -> list[str]:
        """Lines of a file that the engine reads at the start, as words of shell; none for most."""
        return []

    def missing_image(self, named: bool) -> tuple[str, str]:
        """Shell that succeeds where there is no image ``$image`` to start, and what is told then.

        Both are "" where the engine itself says so best. The second is text within double quotes of a shell.

        ``named``: ``$image`` is a name in the engine's store, though it starts files too.
        """
        return ("", "") if named else ('[ ! -e "$image" ]', NO_IMAGE)

    def header_options(self, call: Call, image: str) -> list[tuple[str, str]]:
        """Options of Slurm's job header by which a node sets the image up once for all ranks, and their values.

        ``image``: its name.
        """
        return []

    def can_make_targets(self) -> bool:
        """Whether it binds onto folders that an image does not have, if it is told to."""
        return not self.targets_in_image

    def mounts_packed(self) -> bool:
        """Whether it is known to mount squashfs files as data."""
        return bool(self.packed_since) and self.at_least(self.packed_since)

    def swaps(self, host: HostMpi) -> bool:
        """Whether a host's MPI takes the place of an image's: its libraries are shown, or the engine brings them."""
        return host.shown_inside or host.abi in self.brings_mpi

    def fetch(self, address: str, name: str) -> list[list[str]]:
        """Commands that bring an image of a registry (``docker://…``) to a file or folder here; none if unknown."""
        return []

    def after_build(self, stack: str) -> str:
        """Lines of shell that make the image ``$tag``, which ``$engine`` built, ready for this engine."""
        return ""

    @classmethod
    def platform_words(cls, architecture: str) -> tuple[str, ...]:
        """Words of its build command for another architecture than the machine's. Source: the engines' manuals."""
        return ("--platform", f"linux/{PLATFORMS[architecture]}")

    def enter(self, root: str, chroot: list[str]) -> list[str]:
        """The words that run a command as root in an image's files, with the host's network; none if it cannot.

        ``root``: the folder with the files, which the command may change. ``chroot``: words that go there, for whoever
        is root of a mount namespace.
        """
        return []

    # building and pushing images

    def requires_programs(self, target: Target) -> dict[str, str]:
        """Further programs that a build requires, each with what for."""
        return {}

    def installed_version(self) -> str:
        """The version that the installed builder names; empty if it names none."""
        from hpcgen.backends.engines.building import query, version_in

        return version_in(query([self.builder_name(), "--version"])[1])

    def problem(self) -> Problem | None:
        """Why the installed builder cannot build here, if it says so when it is asked."""
        return None

    def differs(self, target: Target) -> str:
        """Why another build of the same lock will have another digest; "" where it has the same, or nobody knows."""
        from packaging.version import InvalidVersion, Version

        version = self.installed_version()
        if not self.differs_before or not version or target.kind in ("directory", "ch-image"):
            return ""
        try:
            if self.equal_since and Version(version) >= Version(self.equal_since):
                return ""
        except InvalidVersion:
            return ""
        since = f", which is equal since {self.equal_since}" if self.equal_since else ""
        return f"{self.builder_name()} {version} writes {self.differs_before} anew into every image{since}"

    def target(self, plan: Plan, output: str | None, token: str) -> Target:
        """Where the image goes; ``output`` as it was asked for, or where the job script looks for it."""
        raise NotImplementedError

    def recipe(self, text: str, labels: Labels | None = None) -> Recipe:
        """The steps of the recipe's text; ``labels`` of the instructions that run commands, None if there are none."""
        raise NotImplementedError

    def later_steps(self, target: Target) -> list[Step]:
        """Steps after those of the recipe."""
        return []

    def begin(self) -> None:
        """Note what :meth:`clean` has to know; called once, before the first command."""

    def places(self, work: Work) -> list[BuildFolder]:
        """Folders of this machine that the engine writes to while it builds, as far as they are known."""
        return []

    def growing(self, work: Work) -> list[tuple[Path, str]]:
        """Folders and patterns of the files that grow while the image's file is written."""
        return []

    def load(self, work: Work) -> list[EngineCommand]:
        """Commands that bring the base images of a bundle to the engine."""
        return []

    def build(self, work: Work) -> list[EngineCommand]:
        """Commands that make the image under its temporary name."""
        raise NotImplementedError

    def publish(self, work: Work) -> list[EngineCommand]:
        """Commands that give a whole image its final name; a file's is given by the caller."""
        return []

    def more_files(self, work: Work) -> dict[Path, str]:
        """Files that the commands read beside the kit, near the recipe or in the build's scratch folder."""
        return {}

    def clean(self, work: Work, built: bool) -> list[EngineCommand]:
        """Commands that remove what a build leaves; each may fail, where there is nothing."""
        return []

    def left_images(self) -> list[LeftImage]:
        """What builds of hpcgen's left in its store without a name of the user's; not what a running build may use."""
        return []

    def remove_images(self, names: Sequence[str]) -> list[list[str]]:
        """Commands that remove such images; one that is in use stays."""
        return []

    def reader(self, recipe: Recipe) -> Reader:
        """What reads the output of the commands of :meth:`build`."""
        raise NotImplementedError

    def built_image(self, target: Target) -> BuiltImage:
        """Size and digest of the result."""
        from hpcgen.backends.engines.building import measured

        return measured(target.kind, Path(target.name))

    def login(self, user: str, password: str, folder: Path) -> dict[str, str]:
        """Variables by which it logs in to a registry; ``folder`` has a config.json as in containers-auth.json(5)."""
        return {}

    def push(self, kind: str, name: str, target: str, scratch: Path) -> list[list[str]]:
        """Commands that bring an image that it built to ``target`` in a registry; none if it pushes no such kind.

        A digest is left in ``scratch``/digest where the program tells one.
        """
        return []


NO_IMAGE = "there is no image $image"
FILE_SYSTEMS = Shell('${file_systems[@]+"${file_systems[@]}"}')
"""What :meth:`Engine.bind_in_place` made of ``Call.file_systems``. Bash before 4.4 calls an empty array unset."""


def file_system_words(call: Call) -> list[list[str]]:
    """The place in the command line of the file systems that the node has."""
    return [[FILE_SYSTEMS]] if call.file_systems else []


JOINED = Shell('${joined[@]+"${joined[@]}"}')
"""What :meth:`Engine.join_words` gave, where there are several ranks on the node."""


def bind_words(option: str, binds: Iterable[Bind]) -> list[list[str]]:
    """``-b SOURCE:TARGET`` for each bind."""
    return [[option, bound(bind)] for bind in binds]


def bound(bind: Bind) -> str:
    """``SOURCE:TARGET``, with ``:ro`` where nothing inside may change it: as one word, which may be shell.

    Apptainer, Podman, Docker, pyxis, Shifter and EDF files have this form in common, the flag included.
    """
    for path in (bind.source, bind.target):
        refuse_separators(path, "a bind")
    parts = (bind.source, ":", bind.target, ":ro" if bind.read_only else "")
    return joined(*filter(None, parts)) if any(isinstance(part, Shell) for part in parts) else "".join(parts)


def refuse_separators(path: str, where: str) -> None:
    """InputError for a path that would be read as several binds."""
    if not isinstance(path, Shell) and (":" in path or "," in path):
        raise InputError(
            f"{path!r} cannot be bound: engines read ':' and ',' as separators",
            where,
            remedy="use a path without them, such as a link to it",
        )


def assigned(name: str, value: str) -> str:
    """``NAME=VALUE`` as one word, of a value that may be shell."""
    return joined(f"{name}=", value) if isinstance(value, Shell) else f"{name}={value}"


def environment_words(call: Call, unset: Iterable[str] = ()) -> list[list[str]]:
    """``/usr/bin/env`` with the variables, to be put before the command inside the image.

    Every image has it, whatever the engine's version; no engine's own rules of expansion, quotes or separators
    get between; and it comes after everything that the image sets by itself. Into a sealed container no variable of
    the host enters by itself.
    """
    out = [] if call.sealed else [word for name in unset for word in ("-u", name)]
    named = call.inherited if call.sealed else ()
    values: list[list[str]] = [[joined(f"{name}=", Shell(f'"${{{name}-}}"'))] for name in named]
    values += [[assigned(name, value)] for name, value in call.inside.items()]
    return [["/usr/bin/env", *out], *values] if out or values else []
