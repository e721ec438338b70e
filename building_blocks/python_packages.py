"""Python packages of your own, besides those that blocks install."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

import msgspec

from hpcgen.blocks.base import Block, BlockOptions, Context, need
from hpcgen.blocks.caches import of_gpus, of_packages
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.git_packages import built_package, fetching, package_tree
from hpcgen.blocks.gpu_wheels import CUDA_WHEELS, vendor_of
from hpcgen.blocks.nvidia import LICENCES
from hpcgen.blocks.steps import (
    Input,
    Packages,
    Part,
    Run,
    Runtime,
    Test,
    TextFile,
    Wheels,
    command,
    lines,
    run,
)
from hpcgen.core.model.image_paths import SCRATCH
from hpcgen.core.model.project import LOCKED, GitPackage, Project, ProjectPath
from hpcgen.core.support.units import some

Pin = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?==[0-9][0-9A-Za-z.!+]*$(?!\n)",
        description="a package with its exact version",
        examples=["h5py==3.11.0"],
    ),
]


Requirement = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?"
        r"((==|~=|!=|>=|<=|>|<)[0-9A-Za-z.*+!]+(,(==|~=|!=|>=|<=|>|<)[0-9A-Za-z.*+!]+)*)?$(?!\n)",
        description="a package, with its range of versions where that matters",
        examples=["h5py>=3.10"],
    ),
]
_ABSENT = (
    "import sys; from importlib.metadata import distributions as all; "
    "found = {str(each.metadata['Name']).lower() for each in all()} & set(sys.argv[1:]); "
    "sys.exit('pip brought what hpcgen has blocks for: ' + ', '.join(sorted(found))) if found else print('as planned')"
)
"""Fails where one of the packages that it is given is installed."""

GroupName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$(?!\n)",
        description="the name of an extra or a dependency group",
        examples=["test"],
    ),
]


class PythonPackages(Block):
    """Packages of the Python package index in /opt/python: those that a stack names, and those of a project's files.

    A lock with hashes (``pylock.toml``, ``uv.lock``, ``poetry.lock``, ``pdm.lock``, requirements with ``--hash``) is
    installed exactly, with nothing else. Lists without hashes get them with ``hpcgen lock``; without a lock, pip adds
    dependencies and takes the newest release in a range on the day of the build. Packages that have blocks, such as
    PyTorch and mpi4py, come from these blocks. The build fails if packages do not fit those already installed (``pip
    check``).
    """

    name = "python_packages"
    of_project = True
    needs = (need("python"),)

    class Options(BlockOptions, frozen=True):
        """``packages``: such as ``h5py==3.11.0``; ranges, addresses and pip's own options are refused.

        ``requirements``: such as ``h5py>=3.10``, as in a requirements file, if the project has none. ``files``:
        requirements.txt, pylock.toml, uv.lock, poetry.lock, pdm.lock, pyproject.toml, setup.py or setup.cfg of the
        project. ``groups``: the extras and dependency groups to install from them. ``without``: packages of them to
        leave out, unless the file is a lock.
        """

        packages: list[Pin] = []
        requirements: list[Requirement] = []
        files: list[ProjectPath] = []
        groups: list[GroupName] = []
        without: list[GroupName] = []

    def inputs(self, ctx: Context) -> list[Input]:
        """What the files lock, as it is, all else, and the repositories of packages."""
        built = [each for pair in _sources(ctx) for each in pair if each is not None]
        return [*_lists(ctx), *built, *map(package_tree, _from_git(ctx))]

    def packages(self, ctx: Context) -> Packages:
        """What fetches repositories."""
        return fetching(_from_git(ctx))

    def build(self, ctx: Context) -> Iterable[Run]:
        lists, trees = _lists(ctx), _from_git(ctx)
        if lists or trees:
            # What an image of others has together is its makers' to answer for.
            of_image = ctx.use("python").options.obtain == "image"
            check = [] if of_image else command(f"{ctx.use('python').prefix}/bin/python", "-m", "pip", "check")
            complete = bool(lists) and all(each.hashed for each in lists)
            parts = [_installed(ctx, each) for each in lists if each.requirements]
            parts += [_compiled(ctx, *each) for each in _sources(ctx)]
            parts += [built_package(ctx, each, ctx.use("python").prefix, complete) for each in trees]
            yield run("Python packages", *parts, check, caches=("pip",))
        if _imported(ctx):
            text = ctx.text_file("imports.py")
            yield run("program of the self-test", TextFile("files/tests/imports.py", _program(ctx), text))

    def runtime(self, ctx: Context) -> Runtime:
        """The program of the self-test; the packages are in the Python environment."""
        return Runtime(copies=(ctx.prefix,) if _imported(ctx) else ())

    def test(self, ctx: Context) -> list[Test]:
        """Each is there in the version that was asked for, and what the project itself names can be imported."""
        python = f"{ctx.use('python').prefix}/bin/python"
        tests = []
        for pin in ctx.options.packages:
            name, version = pin.split("==")
            tests.append(Test(name, command(python, "-m", "pip", "show", name), expect=f"Version: {version}"))
        if ctx.project is not None and ctx.project.packages:
            tests.append(Test("packages of the project", command(python, "-m", "pip", "check")))
        if ctx.project is not None and ctx.project.absent and ctx.use("python").at_least("3.8"):
            name, program = "no framework by accident", command(python, "-c", _ABSENT, *ctx.project.absent)
            tests.append(Test(name, program, expect="as planned"))
        for name in _imported(ctx):
            tests.append(Test(f"import of {name}", command(python, _program(ctx), name), expect="imported:"))
        return tests

    def capabilities(self, ctx: Context) -> Capabilities:
        """The GPUs that the index's builds of well-known frameworks compute on, and whether Intel's OpenMP is there.

        Wheels of frameworks that the project itself names bring NVIDIA's libraries, as those of blocks do.
        """
        carrying = False
        pins = [tuple(pin.split("==")) for pin in ctx.options.packages]
        vendors = dict.fromkeys(vendor for name, version in pins if (vendor := vendor_of(name, version)))
        gpu = ctx.facts.partition.gpu
        for each in ctx.project.packages if ctx.project is not None and gpu is not None else ():
            # What is for others is told with its line by the contract. TensorFlow's wheels for ARM are without CUDA.
            if each.name.startswith("tensorflow") and ctx.facts.architecture != "x86_64":
                continue
            asked = each.asked.partition("]")[0] if "[" in each.asked else each.name
            if gpu is not None and vendor_of(asked, each.version) == gpu.vendor:
                vendors[gpu.vendor] = None
                carrying = carrying or "[" in asked or each.name in CUDA_WHEELS
        names = {pin[0] for pin in pins} | {each.name for each in (ctx.project.packages if ctx.project else ())}
        return Capabilities(
            gpu_vendors=tuple(vendors),
            caches=(*of_packages(names), *of_gpus(vendors)),
            licences=LICENCES if carrying and "nvidia" in vendors else (),
            kmp=not names.isdisjoint(("intel-openmp", "intel-tensorflow", "mkl")),
        )

    def notices(self, ctx: Context) -> list[str]:
        """What is not checked but by version, or not even that; which packages have ended and what took their place."""
        superseded = msgspec.convert(ctx.release.values.get("superseded", {}), dict[str, str])
        names = [re.sub(r"[-_.]+", "-", pin.split("==")[0]).lower() for pin in ctx.options.packages]
        found = ["python_packages: the listed packages are pinned by version, not by hash"] if names else []
        lines = [line for built, _ in _sources(ctx) for line in built.requirements]
        if lines:
            told = some([line.partition(" ")[0].replace("==", " ") for line in lines], 20)
            found.append(f"built from their source packages, since no wheel fits: {told}")
        if ctx.project is not None:
            names += [each.name for each in ctx.project.packages]
            found += _of_project(ctx.project)
        return found + [f"{name} has ended: {superseded[name]}" for name in names if name in superseded]


def _imported(ctx: Context) -> list[str]:
    """Packages that the project itself names, not those that they need; the program is for Python 3.8 and newer."""
    if not ctx.use("python").at_least("3.8"):
        return []
    return [each.name for each in ctx.project.packages if each.direct] if ctx.project is not None else []


def _program(ctx: Context) -> str:
    return f"{ctx.prefix}/share/imports.py"


def _lists(ctx: Context) -> list[Wheels]:
    """The lists to install, in their order."""
    project, loose = ctx.project, list(ctx.options.packages)
    places = tuple((each.name, each.origin) for each in project.packages) if project is not None else ()
    locked = []
    if project is not None and project.hashed:
        built = {line for wheels, _ in ctx.source_lists(LOCKED) for line in wheels.requirements}
        pins = tuple(each.line for each in project.packages if each.line not in built)
        asked = tuple(each.asked for each in project.packages)
        locked.append(Wheels(LOCKED, pins, hashed=True, asked=asked, places=places))
    elif project is not None:
        loose += [each.asked for each in project.packages]
    rest = [msgspec.structs.replace(ctx.wheels(ctx.me.name, loose), places=places)] if loose else []
    return [*locked, *rest]


def _sources(ctx: Context) -> list[tuple[Wheels, Wheels | None]]:
    """What a lock has as source, of the project's own lock first, each with what its build requires."""
    return [each for name in (LOCKED, ctx.me.name) for each in ctx.source_lists(name)]


def _installed(ctx: Context, wheels: Wheels) -> list[Part]:
    """Parts of a step that installs a list; one without hashes beside what the files hold further packages to."""
    held = ctx.project.constraints if ctx.project is not None else []
    if wheels.hashed or not held:
        return ctx.pip(wheels)
    path = f"{SCRATCH}/constraints.txt"
    listed = TextFile("files/requirements/constraints.txt", path, lines(*held))
    return [listed, *ctx.pip(wheels, extra=["-c", path])]


def _compiled(ctx: Context, wheels: Wheels, tools: Wheels | None) -> list[Part]:
    """Parts of a step that builds source packages of a lock with what is installed, and with tools that go again."""
    # The hooks of PEP 517, also for an old setup.py, which would fetch what its setup_requires names by itself.
    words = ["--no-build-isolation", "--use-pep517"]
    if tools is None:
        return ctx.pip(wheels, compiled=":all:", extra=words)
    folder = f"{SCRATCH}/{tools.name}"
    return [
        *ctx.pip(tools, target=folder),
        f'export PATH="{folder}/bin:$PATH"',
        *ctx.pip(wheels, compiled=":all:", variables={"PYTHONPATH": folder}, extra=words),
        command("rm", "-rf", folder),
    ]


def _from_git(ctx: Context) -> list[GitPackage]:
    return ctx.project.from_git if ctx.project is not None else []


def _of_project(project: Project) -> list[str]:
    """What a person should know of what the project's files ask for."""
    ranges = [f"{each.asked} ({each.origin})" for each in project.packages if not each.version]
    built = [f"{each.name} ({each.origin})" for each in project.from_git]
    moving = [f"{each.reference} of {each.url} ({each.origin})" for each in project.from_git if not each.commit]
    handed = [f"{each.name} ({each.origin}) by {each.block}" for each in project.handed_over if each.versions]
    found = []
    if ranges:
        found.append(
            "without a lock these are the newest on the day of the build, or what a list of a block has "
            f"(hpcgen lock pins them): {some(ranges)}"
        )
    elif project.packages and not project.hashed:
        found.append("python_packages: the packages of the project's files are pinned by version, not by hash")
    if built:
        found.append(
            "built from repositories at their commits, with setuptools or what your file lists as their build backend: "
            f"{some(built)}; beside hashed lists, everything that they require must be listed too"
        )
    if moving:
        found.append(
            "of these repositories the build takes what a branch or tag has on that day, which moves until hpcgen lock "
            f"pins its commit: {some(moving)}"
        )
    if handed:
        found.append(f"not installed from the project's files but brought by blocks: {some(handed)}")
    return found + project.notes
