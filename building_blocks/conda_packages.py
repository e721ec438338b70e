"""Conda packages requested by a stack or by a file of its project."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

import msgspec

from hpcgen.blocks.base import Block, BlockOptions, Context, need
from hpcgen.blocks.caches import of_gpus, of_packages
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.conda import asked_of_conda, conda_fetch, conda_files, conda_request, conda_wheels
from hpcgen.blocks.git_packages import built_package, fetching, package_tree
from hpcgen.blocks.gpu_wheels import vendor_of
from hpcgen.blocks.nvidia import LICENCES
from hpcgen.blocks.steps import Environment, Input, Packages, Run, Runtime, Test, TextFile, Wheels, command, run
from hpcgen.blocks.wheel_program import share_program
from hpcgen.core.model.image_paths import SCRATCH
from hpcgen.core.model.plan import PlannedConda
from hpcgen.core.model.project import ProjectPath
from hpcgen.core.support.package_names import asked_name
from hpcgen.readers.conda_text import CUDA_PACKAGES, asked_with_cuda, spec_name

PREFIX = "/opt/conda"

Spec = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9_][^\x00-\x1f\x7f-\x9f\u2028\u2029]{0,499}\Z",
        description="a conda package with its range of versions",
        examples=["numpy>=1.26,<3"],
    ),
]
Channel = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._+-]+)*/?|[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*)\Z",
        description="the name or https address of a channel",
        examples=["conda-forge"],
    ),
]


class CondaPackages(Block):
    """Conda packages in /opt/conda, installed by py-rattler.  Source: https://github.com/conda/rattler

    A lock of pixi or conda-lock is installed exactly; for an environment.yml, and for packages that the stack names,
    ``hpcgen lock`` chooses the versions. Post-link scripts are not run. If PyTorch is among the packages, ``ranks.py``
    in the block's share folder tells each rank its place, like the one of the block ``pytorch``.
    """

    name = "conda_packages"
    needs = (need("python", ">=3.10", build_only=True),)

    class Options(BlockOptions, frozen=True):
        """Which packages.

        ``files``: environment.yml, pixi.lock, conda-lock.yml or an explicit list of the project. ``environment``: which
        one, if the lock has several. ``packages``: additional ones, in conda's notation. ``channels``: used instead of
        those in the files.
        """

        files: list[ProjectPath] = []
        environment: str = ""
        packages: list[Spec] = []
        channels: list[Channel] = []

    def inputs(self, ctx: Context) -> list[Input]:
        """py-rattler for the builder, and the packages."""
        files = conda_files(ctx, PREFIX)
        wheels = conda_wheels(ctx)
        found: list[Input] = [_rattler(ctx), files] if files.packages or files.asked else []
        return [*found, *([wheels] if wheels.requirements else []), *map(package_tree, asked_of_conda(ctx).from_git)]

    def packages(self, ctx: Context) -> Packages:
        """What fetches repositories."""
        return fetching(asked_of_conda(ctx).from_git)

    def environment(self, ctx: Context) -> Environment:
        """What an activated environment has, but for scripts of packages."""
        if not self.inputs(ctx):
            return Environment()
        known = msgspec.convert(ctx.release.values.get("activated", {}), dict[str, str])
        names = {each.name for each in conda_files(ctx, PREFIX).packages}
        sets = [word.split("=", 1) for name, words in known.items() if name in names for word in words.split()]
        told = {variable: text.replace("{prefix}", PREFIX) for variable, text in sets}
        both = {"CONDA_PREFIX": PREFIX, "PYTHONNOUSERSITE": "1", **told, **asked_of_conda(ctx).variables}
        return Environment(both=both, paths={"PATH": [f"{PREFIX}/bin"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        if not self.inputs(ctx):
            return
        folder, files = f"{SCRATCH}/conda", conda_files(ctx, PREFIX)
        python = ["env", f"PYTHONPATH={folder}/rattler", f"{ctx.use('python').prefix}/bin/python"]
        program, request = f"{folder}/program.py", f"{folder}/request.json"
        yield run("py-rattler", ctx.pip(_rattler(ctx), target=f"{folder}/rattler"), caches=("pip",))
        yield run(
            "packages",
            conda_fetch(ctx, files, folder),
            TextFile("files/conda/program.py", program, ctx.text_file("conda_program.py")),
            TextFile("files/conda/request.json", request, conda_request(ctx, files, folder)),
            command(*python, program, "install", request),
            command("rm", "-rf", folder),
        )
        wheels, trees = conda_wheels(ctx), asked_of_conda(ctx).from_git
        if wheels.requirements or trees:
            parts = [ctx.pip(wheels, into=PREFIX)] if wheels.requirements else []
            parts += [built_package(ctx, each, PREFIX, files.hashed and wheels.hashed) for each in trees]
            yield run("Python packages", *parts, caches=("pip",))
        if any(_imported(ctx)):
            text = ctx.text_file("imports.py")
            yield run("program of the self-test", TextFile("files/conda/imports.py", _program(ctx), text))
        if _has_torch(ctx):
            yield run("program of the ranks", share_program(ctx, "torch_ranks.py", "ranks.py"))

    def runtime(self, ctx: Context) -> Runtime:
        share = (ctx.prefix,) if any(_imported(ctx)) or _has_torch(ctx) else ()
        return Runtime(copies=(PREFIX, *share) if self.inputs(ctx) else ())

    def test(self, ctx: Context) -> list[Test]:
        """The environment has each package, its Python starts, and what is asked for by name can be imported."""
        packages = conda_files(ctx, PREFIX).packages
        meta = [f"{PREFIX}/conda-meta/{each.name}-{each.version}-{each.build}.json" for each in packages]
        tests = [Test("packages", command("ls", *meta))] if meta else []
        python = next((each for each in packages if each.name == "python"), None)
        if python is not None:
            starts = command(f"{PREFIX}/bin/python", "-c", "import sys; print(sys.version.split()[0])")
            tests.append(Test("python", starts, expect=python.version))
        of_conda, of_pip = _imported(ctx)
        words = [[name, f"{PREFIX}/conda-meta"] for name in of_conda] + [[name] for name in of_pip]
        for each in words:
            line = command(f"{PREFIX}/bin/python", _program(ctx), *each)
            tests.append(Test(f"import of {each[0]}", line, expect="imported:"))
        return tests

    def capabilities(self, ctx: Context) -> Capabilities:
        """NVIDIA's GPUs, where packages with CUDA are there, or those are asked for that channels or the index have so.

        The channels' packages share LLVM's or Intel's OpenMP in most environments.
        """
        asked = asked_of_conda(ctx)
        if asked.packages:
            uses = any(each.name in CUDA_PACKAGES or "cuda" in each.build for each in asked.packages)
        else:
            uses = "__cuda" in asked.virtual and bool(asked_with_cuda(asked.needs))
        gpu = ctx.facts.partition.gpu
        carrying = any(vendor_of(*_wheel(each)) == "nvidia" for each in asked.pip)
        vendors = ("nvidia",) if uses or carrying else ()
        names = _names(asked)
        return Capabilities(
            gpu_vendors=vendors,
            caches=(*of_packages(names), *of_gpus(vendors)),
            licences=LICENCES if carrying and gpu is not None and gpu.vendor == "nvidia" else (),
            kmp=True,
        )

    def notices(self, ctx: Context) -> list[str]:
        """Lines of the files without an effect, and that nobody has chosen yet."""
        notes = list(asked_of_conda(ctx).notes)
        if conda_files(ctx, PREFIX).hashed:
            return notes
        return [*notes, "conda_packages: versions are chosen while the image is built, until hpcgen lock pins them"]


def _imported(ctx: Context) -> tuple[list[str], list[str]]:
    """Packages of conda and of the Python index that are asked for by name, where there is a Python to import them."""
    asked = asked_of_conda(ctx)
    named = [name for name in map(spec_name, asked.needs) if name]
    if "python" not in ({each.name for each in asked.packages} or named):
        return [], []
    pip = _of_pip(asked) if named else []
    return sorted({*named} - {"python", "pip"}), sorted({*filter(None, pip)})


def _of_pip(asked: PlannedConda) -> list[str]:
    return [asked_name(line) for line in asked.pip]


def _names(asked: PlannedConda) -> list[str]:
    """What the environment has, of conda and of the Python index, or what is asked for before a lock."""
    return [*([each.name for each in asked.packages] or map(spec_name, asked.needs)), *_of_pip(asked)]


def _wheel(line: str) -> tuple[str, str]:
    """What pip is asked for, with extras, and its exact version, where that is said."""
    match = re.match(r"([\w.-]+(?:\[[\w.,\s-]*\])?)(?:\s*==\s*([\w.+!-]+))?", line)
    return (match[1], match[2] or "") if match else ("", "")


def _has_torch(ctx: Context) -> bool:
    """Whether the environment has PyTorch, whose programs are to be told their ranks' places."""
    return not {"torch", "pytorch", "pytorch-gpu"}.isdisjoint(_names(asked_of_conda(ctx)))


def _program(ctx: Context) -> str:
    return f"{ctx.prefix}/share/imports.py"


def _rattler(ctx: Context) -> Wheels:
    return ctx.wheels(ctx.facts.listed(f"py-rattler-{ctx.version}"), [f"py-rattler=={ctx.version}"])
