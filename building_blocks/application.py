"""A program of your own, compiled inside the builder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from hpcgen.blocks.base import Block, BlockOptions, Context, Situation, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.compiler_word import CompilerWord
from hpcgen.blocks.standard_mpi import by_standard, linked
from hpcgen.blocks.steps import (
    Archive,
    Environment,
    GitTree,
    Input,
    Packages,
    Run,
    Runtime,
    Test,
    TextFile,
    command,
    lines,
    run,
)
from hpcgen.core.errors import InputError
from hpcgen.core.model.fields import Commit, Sha256, SourceAddress, Text
from hpcgen.core.model.image_paths import SCRATCH
from hpcgen.core.model.stack import CopyTarget
from hpcgen.core.support.quoting import sh, sh_assign

ARCHIVE = re.compile(r"\.(tar|tar\.(gz|bz2|xz)|tgz|tbz2|txz)$")
FOLDER, SCRIPT, WRAPPERS = f"{SCRATCH}/application", f"{SCRATCH}/application-commands", f"{SCRATCH}/application-mpi"
# The last word of it is the name of the tree where all of it is kept.
SOURCE = f"{FOLDER}/src"


def _with_mpi(situation: Situation) -> bool:
    return bool(situation.options.mpi)


class Application(Block):
    """Your own program, from a git repository, a file or the stack's own code, compiled by the stack's commands.

    They run in the folder of the source. The image gets what they put into ``$PREFIX`` (/opt/application), or, if that
    stays empty, the whole folder as /opt/application/src. The stack's own code stays where it is. ``CC``, ``CXX``,
    ``CFLAGS``, ``CXXFLAGS``, ``FFLAGS`` and ``FCFLAGS`` are set for the partition's CPU, with ``-O3``; a build that
    sets its own optimisation level keeps it. All blocks that the stack names earlier are available.
    """

    name = "application"
    of_project = True
    needs = (need("gnu"), need("cmake", build_only=True), need("mpi", when=_with_mpi))

    example = {"source": "https://example.org/solver-1.2.tar.gz", "sha256": 64 * "0", "commands": ["make install"]}

    class Options(BlockOptions, frozen=True):
        """Where the source is, what pins it, and how it is built.

        ``source``: with ``commit`` a git repository, without its submodules; with ``sha256`` a tar archive, whose
        single top folder is stripped, or any other file as it is. ``folder``: instead of a source, the folder into
        which the stack's ``copy`` or ``git`` puts the code. ``commands``: each a complete bash command on one line; the
        build stops at the first that fails. ``mpi``: it is linked with the image's MPI. ``fast_math``: with
        ``-ffast-math``, by which sums are taken in another order, what is not a number is not looked for, and very
        small numbers become 0: other results. ``flags``: more words for the compilers of all languages, after those for
        the CPU, so the last ``-O`` is theirs.
        """

        source: SourceAddress | None = None
        commit: Commit | None = None
        sha256: Sha256 | None = None
        folder: CopyTarget | None = None
        commands: list[Text] = []
        mpi: bool = False
        fast_math: bool = False
        flags: list[CompilerWord] = []

        def __post_init__(self) -> None:
            if self.commit and self.sha256:
                raise ValueError("`commit` pins a git repository and `sha256` a file: name one of them")
            if self.folder and self.source:
                raise ValueError(
                    "`folder` is where the stack's own code is, and `source` fetches other code: name one of them"
                )

    def inputs(self, ctx: Context) -> list[Input]:
        return [] if ctx.options.folder else [self._source(ctx)]

    def _source(self, ctx: Context) -> GitTree | Archive:
        """The source; InputError where the stack does not say what it is, or nothing pins it."""
        source, commit, sha256 = ctx.options.source, ctx.options.commit, ctx.options.sha256
        if not source:
            expected = "options: {source: https://…, commit: … or sha256: …, commands: […]}"
            raise InputError("the block application has nothing to compile", expected=expected)
        if commit:
            return GitTree(source, commit)
        if sha256:
            return Archive(source, sha256)
        head = command("git", "ls-remote", source, "HEAD")
        raise InputError(
            f"nothing pins {source}",
            expected="application.commit for a git repository, application.sha256 for an archive or another file",
            remedy=f"`{head}` shows the newest commit, `sha256sum {source.rpartition('/')[2]}` the hash of a file",
        )

    def packages(self, ctx: Context) -> Packages:
        """What fetches a git tree."""
        tools = ["git"] if ctx.options.commit else []
        return Packages(build={"apt": tools, "dnf": tools, "zypper": tools})

    def environment(self, ctx: Context) -> Environment:
        """Its programs and libraries, or those at the top of the folder that is kept."""
        folders = [f"{ctx.prefix}/bin", _kept(ctx)]
        return Environment(paths={"PATH": folders, "LD_LIBRARY_PATH": [f"{ctx.prefix}/lib", f"{ctx.prefix}/lib64"]})

    def flags(self, ctx: Context) -> Mapping[str, str]:
        """-O3 for the node's CPU: with -O2, such a target can be slower than none (benchmarks/flags.py)."""
        flags = ["-O3", *ctx.flags, *(["-ffast-math"] if ctx.options.fast_math else []), *ctx.options.flags]
        return dict.fromkeys(("CFLAGS", "CXXFLAGS", "FFLAGS", "FCFLAGS"), " ".join(flags))

    def build(self, ctx: Context) -> Iterable[Run]:
        keep = []
        if ctx.options.folder is None:
            yield run("source", command("mkdir", "-p", FOLDER), _bring(ctx, self._source(ctx)))
            keep = [command("find", ctx.prefix, "-maxdepth", "0", "-empty", "-exec", "mv", SOURCE, "-t", "{}", "+")]
        yield run(
            "commands",
            TextFile("files/application/commands", SCRIPT, _script(ctx, self.flags(ctx))),
            _wrappers(ctx),
            command("mkdir", "-p", ctx.prefix),
            # Every base has bash; only there does a pipe fail with any of its parts.
            command("bash", "-eo", "pipefail", SCRIPT),
            keep,
            command("rm", "-rf", FOLDER, SCRIPT, WRAPPERS),
            finds=ctx.options.folder or "",
        )

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(ctx.prefix, *([ctx.options.folder] if ctx.options.folder else [])))

    def test(self, ctx: Context) -> list[Test]:
        """Every library that its programs were linked with is found; the GPU driver's is the host's."""
        programs = f'for program in {ctx.prefix}/bin/* {_kept(ctx)}/*; do ldd "$program"; done 2> /dev/null'
        return [Test("libraries", f"{{ {programs}; }} | grep 'not found' | grep -vc 'libcuda.so.1 ' | grep -qx 0")]

    def capabilities(self, ctx: Context) -> Capabilities:
        """With which MPI interface it is linked."""
        return linked(ctx) if ctx.options.mpi else Capabilities()


def _bring(ctx: Context, item: GitTree | Archive) -> list[str]:
    if isinstance(item, GitTree):
        return ctx.tree(item, SOURCE)
    if ARCHIVE.search(item.name):
        return ctx.unpack(item, SOURCE)
    return [*ctx.fetch(item), command("mkdir", SOURCE), command("cp", ctx.local(item), f"{SOURCE}/{item.name}")]


def _kept(ctx: Context) -> str:
    """Where the image has the folder of the source, if it has it."""
    return str(ctx.options.folder or f"{ctx.prefix}/src")


def _script(ctx: Context, flags: Mapping[str, str]) -> str:
    """The commands, each in quotes: what one of them says ends neither its line nor, where it fails, in silence."""
    return lines(
        *(f"export {sh_assign(name, value)}" for name, value in {"PREFIX": ctx.prefix, **flags}.items()),
        *([f'export PATH="{WRAPPERS}:$PATH"'] if _wrapped(ctx) else []),
        command("cd", ctx.options.folder or SOURCE),
        *(f"eval {sh(line, 'a command of the block application')}" for line in ctx.options.commands),
    )


def _wrapped(ctx: Context) -> bool:
    return ctx.options.mpi and by_standard(ctx.facts)


def _wrappers(ctx: Context) -> list[TextFile]:
    """Under the usual names the MPI compilers that link with the standard's library, where programs must."""
    return [
        TextFile(f"files/application/{name}", f"{WRAPPERS}/{name}", lines("#!/bin/sh", f'exec {name}_abi "$@"'), True)
        for name in (("mpicc", "mpicxx") if _wrapped(ctx) else ())
    ]
