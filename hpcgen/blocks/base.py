"""Block: the base class of building blocks, and what a block may ask while it is written down.

A block reads like a declaration: what it needs, its options, its packages, its steps. It sees typed facts
of the site and the blocks chosen beside it, never the site's name and never the format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.context import Chosen as Chosen
from hpcgen.blocks.context import Context as Context
from hpcgen.blocks.declared import BlockOptions as BlockOptions
from hpcgen.blocks.declared import Condition as Condition
from hpcgen.blocks.declared import Facts as Facts
from hpcgen.blocks.declared import Need as Need
from hpcgen.blocks.declared import SiteRange as SiteRange
from hpcgen.blocks.declared import Situation as Situation
from hpcgen.blocks.declared import need as need
from hpcgen.blocks.guarded import guarded
from hpcgen.blocks.steps import Archive, Environment, HostFile, Image, Input, Packages, Run, Runtime, Test


class Block:
    """Base class of every building block. Subclasses override what applies to them.

    The class's docstring names the software and its source. ``name`` is the file's name. ``gpu_vendor``: whose GPUs it
    is for (``nvidia``, ``amd``); a node with others cannot have it. ``releases`` are the rows of a class that is in no
    collection, and so has no table beside it: version → what a row of one says. ``example``: options of a stack with
    which `hpcgen check` tries a block that needs some. ``distributions``: packages of the Python index, by their normal
    names, that it brings itself, so that they are not installed from a user's file; ``companions``: patterns of those
    that come with them there. ``agrees``: by the name of a block that it is built for, the option that has to be as
    that one's. ``passes_on``: by the name of an option, what has to have it, too, where this block has it: the
    compilers and the MPI that Fortran is compiled with. ``gpu_memory``: by the name of a block with a run time for
    GPUs, the option with which it sends from and to their memory, and since which release. ``brings_driver``: it brings
    the user-mode ``driver`` (a value of its rows) for nodes whose own is of an older branch, one of its rows'
    ``branches``; all that asks for a driver has that one then. ``of_project``: what the project asks for itself, which
    changes most often: its packages and steps come after those of all other blocks. ``of_base``: named in no version,
    it is the base's own, and does not decide which base that is.
    """

    name: ClassVar[str]
    provides: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[Need, ...]] = ()
    build_only: ClassVar[bool] = False
    of_project: ClassVar[bool] = False
    of_base: ClassVar[bool] = False
    distributions: ClassVar[tuple[str, ...]] = ()
    companions: ClassVar[tuple[str, ...]] = ()
    agrees: ClassVar[Mapping[str, str]] = {}
    passes_on: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    gpu_memory: ClassVar[Mapping[str, tuple[str, str]]] = {}
    gpu_vendor: ClassVar[str] = ""
    brings_driver: ClassVar[bool] = False
    example: ClassVar[Mapping[str, Any]] = {}
    releases: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    class Options(BlockOptions, frozen=True):
        """No options."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, method in list(vars(cls).items()):
            if name.startswith("_") or not callable(getattr(Block, name, None)) or isinstance(method, type):
                continue
            if isinstance(method, classmethod):
                setattr(cls, name, classmethod(guarded(method.__func__)))
            elif callable(method):
                setattr(cls, name, guarded(method))

    @classmethod
    def defaults(cls, facts: Facts) -> dict[str, Any]:
        """Option defaults that depend on the site; the class's own defaults otherwise."""
        return {}

    @classmethod
    def alternatives(cls, facts: Facts) -> Mapping[str, tuple[Any, ...]]:
        """By option, values that take the place of its default in releases that cannot be had with that, in order.

        Such releases come after those that can; what the user set never gives way.
        """
        return {}

    @classmethod
    def preference(cls, facts: Facts) -> int | None:
        """How well a provider of a virtual suits the site: 0 is best, None means it cannot work there."""
        return 0

    @classmethod
    def site_ranges(cls, facts: Facts) -> list[SiteRange]:
        """Versions that the site imposes on this block."""
        return []

    def inputs(self, ctx: Context) -> list[Input]:
        """Everything the build takes from outside, other than distribution packages."""
        archives = [Archive(row.url, row.sha256) for _, row in sorted(ctx.release.archives.items())]
        return [*archives, *map(ctx.git_tree, ctx.trees())]

    def base_image(self, ctx: Context, stage: str) -> Image | None:
        """The image that a stage (``builder`` or ``final``) starts from; at most one block of a plan says."""
        return None

    def host_files(self, ctx: Context) -> list[HostFile]:
        """Files of the building machine that both stages need before anything else."""
        return []

    def prepare(self, ctx: Context, stage: str) -> Iterable[Run]:
        """Steps of a stage (``builder`` or ``final``) before its first network step."""
        return ()

    def finish(self, ctx: Context, stage: str) -> Iterable[Run]:
        """Steps after all others of a stage, which undo what must not stay."""
        return ()

    def packages(self, ctx: Context) -> Packages:
        """Distribution packages, installed in one step at the start of each stage."""
        return Packages()

    def environment(self, ctx: Context) -> Environment:
        """Variables, PATH-like folders and build arguments of both stages."""
        return Environment()

    def flags(self, ctx: Context) -> Mapping[str, str]:
        """Variables with the compiler flags that its steps give to the user's own code; the image has none of them."""
        return {}

    def build(self, ctx: Context) -> Iterable[Run]:
        """The build steps, in the builder stage."""
        return ()

    def runtime(self, ctx: Context) -> Runtime:
        """What the final stage keeps."""
        return Runtime()

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        """The folders that compiling it fills, where all that its steps leave lies in them; else none.

        A Python package is left as a wheel (``ctx.compile_wheel``, in ``ctx.wheel_folder``) by one step, and installed
        by another (``ctx.install_wheel``): steps that install packages into an environment are done in any case.

        They can be kept, and unpacked into the builder of another image in the place of its steps: so only what the
        block is given may decide on their content, nothing of them may be licensed to one user or belong to a host,
        and no block may put files into a folder of another one.
        """
        return ()

    def test(self, ctx: Context) -> list[Test]:
        """Proofs that it works inside the image."""
        return []

    def suits_pip(self, ctx: Context) -> bool:
        """Whether the self-test may ask ``pip check`` of the image's Python environment.

        False where packages lack by intent what they say that they need, or come with an image of others.
        """
        return True

    def capabilities(self, ctx: Context) -> Capabilities:
        """What it can do for a host, or asks of it."""
        return Capabilities()

    def long_build(self, ctx: Context) -> str:
        """What compiling it takes, where that is long: ``hours and 40 GB of disk``; empty where it is not."""
        return ""

    def notices(self, ctx: Context) -> list[str]:
        """What the user should know before building: what will not work, or takes another way than he expects."""
        return []

    def details(self, ctx: Context) -> list[str]:
        """What is shown only on request, such as a licence that the build accepts."""
        return []
