"""Spack packages from an environment file of the user's project."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from msgspec.structs import asdict

from hpcgen.blocks.base import Block, BlockOptions, Context, Situation, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.spack import (
    ANSWER,
    BUILD_TOOLS,
    CHOOSE,
    ENVIRONMENT,
    MIRROR_FOLDER,
    MPI_NAMES,
    PACKAGES,
    PLACE,
    PROGRAM,
    SPACK,
    chosen_text,
)
from hpcgen.blocks.standard_mpi import by_standard
from hpcgen.blocks.steps import (
    Environment,
    Input,
    Packages,
    Part,
    Run,
    Runtime,
    SpackSources,
    Test,
    TextFile,
    Wheels,
    command,
    lines,
    run,
)
from hpcgen.core.errors import ConflictError
from hpcgen.core.model.project import ProjectPath
from hpcgen.core.model.spack import PlannedSpack


def _with_mpi(situation: Situation) -> bool:
    return bool(situation.options.mpi)


def _with_cuda(situation: Situation) -> bool:
    return bool(situation.options.cuda)


class SpackPackages(Block):
    """Spack packages over the image's MPI, compiled with the distribution's GCC.  Source: https://spack.io

    ``hpcgen lock`` chooses them in the unpacked base; the lock contains Spack's own lock and the sha256 of every
    source. The view ``/opt/spack_packages/view`` has all their programs and libraries. Spack itself and packages needed
    only to compile others are not in the image.
    """

    name = "spack_packages"
    needs = (
        need("gnu"),
        need("python", ">=3.9,<3.14", build_only=True),
        need("mpi", when=_with_mpi, providers=MPI_NAMES),
        need("cuda", when=_with_cuda),
    )

    class Options(BlockOptions, frozen=True):
        """``files``: spack.yaml of the project. ``mpi``: packages may use the image's MPI.

        ``cuda``: packages may use the image's CUDA, for the partition's GPU.
        """

        files: list[ProjectPath] = []
        mpi: bool = True
        cuda: bool = False

    def inputs(self, ctx: Context) -> list[Input]:
        """Spack and its packages; what chooses, until a lock has chosen; the sources."""
        if ctx.spack is None:
            return []
        trees = [ctx.git_tree(name) for name in ("spack", "packages")]
        return [*trees, *([] if ctx.spack.chosen else [_clingo(ctx)]), _sources(ctx, ctx.spack)]

    def packages(self, ctx: Context) -> Packages:
        """What Spack calls, and tools that packages are built with. Source: "System Prerequisites" of its docs."""
        if ctx.spack is None:
            return Packages()
        tools = ["autoconf", "automake", "bison", "bzip2", "ca-certificates", "cmake", "curl", "diffutils", "file"]
        tools += ["findutils", "gawk", "git", "gzip", "libtool", "m4", "make", "patch", "perl", "tar", "unzip", "zstd"]
        apt = [*tools, "pkg-config", "xz-utils"]
        return Packages(build={"apt": apt, **{each: [*tools, "xz"] for each in ("dnf", "zypper")}})

    def environment(self, ctx: Context) -> Environment:
        """Its programs and libraries; while building, compilers, CMake and pkg-config find it."""
        if ctx.spack is None:
            return Environment()
        view = f"{ctx.prefix}/view"
        libraries = [f"{view}/lib", f"{view}/lib64"]
        return Environment(
            paths={"PATH": [f"{view}/bin"], "LD_LIBRARY_PATH": libraries},
            build_paths={
                "CMAKE_PREFIX_PATH": [view],
                "CPATH": [f"{view}/include"],
                "LIBRARY_PATH": libraries,
                "PKG_CONFIG_PATH": [f"{folder}/pkgconfig" for folder in libraries],
            },
        )

    def build(self, ctx: Context) -> Iterable[Run]:
        asked = ctx.spack
        if asked is None:
            return
        yield run("Spack", _program(ctx), ctx.tree(ctx.git_tree("spack"), SPACK))
        yield run("Spack's packages", ctx.tree(ctx.git_tree("packages"), PACKAGES))
        settings = TextFile("files/spack/spack.yaml", f"{ENVIRONMENT}/spack.yaml", _settings(ctx, asked))
        if asked.chosen is None:
            sources = f"{PLACE}/sources.py"
            yield run("solver", ctx.pip(_clingo(ctx), target=f"{PLACE}/clingo"), caches=("pip",))
            yield run(
                CHOOSE,
                settings,
                TextFile("files/spack/sources.py", sources, ctx.text_file("spack_sources.py")),
                _spack("external", "find", "gcc", *BUILD_TOOLS),
                _spack("concretize"),
                _spack("python", sources, ANSWER),
            )
        else:
            lock = TextFile("files/spack/spack.lock", f"{ENVIRONMENT}/spack.lock", chosen_text(asked.chosen))
            yield run("sources", settings, lock, ctx.supply.spack_sources(_sources(ctx, asked), MIRROR_FOLDER))
        yield run(
            "compile",
            _spack("install", "--no-cache", "--fail-fast"),
            _spack("gc", "--yes-to-all"),
            command("rm", "-rf", PLACE),
        )

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(ctx.prefix,) if ctx.spack is not None else ())

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        """All of it, once a lock has chosen."""
        return (ctx.prefix,) if ctx.spack is not None and ctx.spack.chosen is not None else ()

    def test(self, ctx: Context) -> list[Test]:
        """Each program and library of the view finds what it is linked with; the driver's library is the host's."""
        if ctx.spack is None:
            return []
        view = f"{ctx.prefix}/view"
        # Deeper there may be plugins, which find libraries by the program that loads them.
        which = ["-maxdepth", "2", "(", "-path", "*/bin/*", "-o", "-path", "*/lib*/*.so*", ")", "-type", "f"]
        linked = command("find", "-L", f"{view}/", *which, "-exec", "ldd", "{}", "+")
        missing = f"{linked} 2> /dev/null | grep 'not found' | grep -vc 'libcuda.so.1 ' | grep -qx 0"
        return [Test("view", command("ls", "-d", f"{view}/")), Test("libraries", missing)]

    def capabilities(self, ctx: Context) -> Capabilities:
        """What is compiled for NVIDIA's GPUs needs one."""
        return Capabilities(gpu_vendors=("nvidia",) if ctx.options.cuda else ())

    def long_build(self, ctx: Context) -> str:
        return "from minutes to hours, by the number of packages" if ctx.spack is not None else ""

    def notices(self, ctx: Context) -> list[str]:
        """Parts of the files without an effect, and that nobody has chosen yet."""
        if ctx.spack is None:
            return ["spack_packages: no file of the project is named: --set spack_packages.files=spack.yaml"]
        notes = list(ctx.spack.notes)
        if ctx.spack.chosen is not None:
            return notes
        return [*notes, "spack_packages: versions are chosen while the image is built, until hpcgen lock pins them"]


def _clingo(ctx: Context) -> Wheels:
    version = ctx.release.values["clingo"]
    return ctx.wheels(ctx.facts.listed(f"clingo-{version}"), [f"clingo=={version}"])


def _sources(ctx: Context, asked: PlannedSpack) -> SpackSources:
    sources = tuple(asked.chosen.sources) if asked.chosen is not None else None
    return SpackSources(ctx.prefix, tuple(asked.specs), sources)


def _spack(*words: str) -> Part:
    """A command of Spack on the environment."""
    return command(PROGRAM, *words)


def _program(ctx: Context) -> TextFile:
    """Spack with no settings but the environment's."""
    python = f"{ctx.use('python').prefix}/bin/python"
    variables = [
        f"PYTHONPATH={PLACE}/clingo",
        f"SPACK_PYTHON={python}",
        "SPACK_DISABLE_LOCAL_CONFIG=1",
        f"SPACK_USER_CACHE_PATH={PLACE}/cache",
    ]
    line = command("exec", "env", *variables, python, f"{SPACK}/bin/spack", "-e", ENVIRONMENT)
    return TextFile("files/spack/spack.sh", PROGRAM, lines("#!/bin/sh", f'{line} "$@"'), executable=True)


def _settings(ctx: Context, asked: PlannedSpack) -> str:
    """The environment, in YAML that is JSON too.

    Sources: Spack's documentation, "Environments", "Package Settings", "Using External GPU Support"; a key that ends
    with a colon takes the place of Spack's defaults.
    """
    unify: Any = {"true": True, "false": False}.get(asked.unify, asked.unify)
    environment = {
        "specs": asked.specs,
        "view": f"{ctx.prefix}/view",
        # Programs look for libraries in LD_LIBRARY_PATH first, where a job puts the host's MPI.
        "config": {
            "install_tree": {"root": f"{ctx.prefix}/store"},
            "shared_linking": {"type": "runpath", "bind": False},
            "build_stage": [f"{PLACE}/stage"],
            "source_cache": f"{PLACE}/source",
            "misc_cache": f"{PLACE}/misc",
            "url_fetch_method": "curl --proto =https,file",
            "locks": False,
        },
        "concretizer": {
            "unify": unify,
            "reuse": False,
            "targets": {"host_compatible": False, "granularity": "microarchitectures"},
        },
        "bootstrap": {"enable": False},
        "mirrors:": {"sources": {"url": ctx.supply.spack_mirror(MIRROR_FOLDER), "binary": False}},
        "repos:": {"builtin": f"{PACKAGES}/repos/spack_repo/builtin"},
        "packages": _package_settings(ctx, asked),
    }
    return json.dumps({"spack": environment}, indent=1) + "\n"


def _package_settings(ctx: Context, asked: PlannedSpack) -> dict[str, Any]:
    """What the files say, and the image's own MPI, compiler and CUDA in place of what Spack would build."""
    said = {name: {key: value for key, value in asdict(each).items() if value} for name, each in asked.packages.items()}
    every = said.pop("all", {})
    require = [*every.pop("require", []), f"target={asked.target}"]
    found: dict[str, Any] = {name: {"buildable": False} for name in ("gcc", "mpi", "cuda", "hip")}
    # A base may have another GCC beside the one that was chosen.
    found["gcc"]["require"] = [f"@{ctx.use('gnu').version.partition('.')[0]}"]
    gcc = {language: ["gcc"] for language in ("c", "cxx", "fortran")}
    found["all"] = {**every, "require": require, "providers": gcc}
    if ctx.options.mpi:
        mpi = ctx.use("mpi")
        name = _mpi_name(ctx)
        found[name] = {"buildable": False, "externals": [{"spec": f"{name}@{mpi.version}", "prefix": mpi.prefix}]}
        found["mpi"]["require"] = [name]
        found["all"]["providers"]["mpi"] = [name]
    if ctx.options.cuda:
        cuda = ctx.use("cuda")
        found["cuda"]["externals"] = [{"spec": f"cuda@{cuda.version}", "prefix": cuda.prefix}]
        architecture = f"cuda_arch={ctx.capability('spack_packages').replace('.', '')}"
        found["all"]["variants"] = [*every.get("variants", []), "+cuda", architecture]
    return {**found, **{name: {**found.get(name, {}), **each} for name, each in said.items()}}


def _mpi_name(ctx: Context) -> str:
    """What Spack calls the image's MPI; ConflictError where its packages cannot be compiled over it."""
    if by_standard(ctx.facts):
        raise ConflictError(
            "Spack links programs with the MPI's own library, and the host's MPI takes the place of the standard's",
            remedy="compile the packages in `build` of the stack, by mpicc_abi",
        )
    return MPI_NAMES[ctx.use("mpi").name]
