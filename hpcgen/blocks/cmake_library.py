"""Libraries that CMake compiles from an archive for the partition's CPU, and finds again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

from hpcgen.blocks.base import Block
from hpcgen.blocks.context import Context
from hpcgen.blocks.steps import Environment, Run, Runtime, Test, command, run
from hpcgen.core.model.image_paths import SCRATCH


class CMakeLibraryBlock(Block):
    """A shared library with its headers.

    ``library``: its file in ``lib``. ``needs_library``: a library that the self-test sees it linked with.
    ``folder``: of the archive, where its CMakeLists.txt is.
    """

    library: ClassVar[str]
    needs_library: ClassVar[str]
    folder: ClassVar[str] = ""

    @abstractmethod
    def settings(self, ctx: Context) -> Mapping[str, str]:
        """Variables of CMake, beside the place and the kind of the build."""

    def environment(self, ctx: Context) -> Environment:
        """Found by CMake while building, and by the loader."""
        return Environment(
            paths={"LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]}, build_paths={"CMAKE_PREFIX_PATH": [ctx.prefix]}
        )

    def build(self, ctx: Context) -> Iterable[Run]:
        source, folder = f"{SCRATCH}/{self.name}", f"{SCRATCH}/{self.name}-build"
        settings = {
            "CMAKE_BUILD_TYPE": "Release",
            "CMAKE_INSTALL_PREFIX": ctx.prefix,
            "CMAKE_INSTALL_LIBDIR": "lib",
            **self.settings(ctx),
        }
        words = [f"-D{name}={value}" for name, value in settings.items()]
        yield run("fetch", ctx.unpack(ctx.archive(), source))
        yield run(
            "configure and compile",
            command("cmake", "-S", f"{source}/{self.folder}".rstrip("/"), "-B", folder, *words),
            # Without a number make starts as many compilers as there are files.
            f'cmake --build {folder} --parallel "$(nproc)"',
        )
        yield run(
            "install",
            command("cmake", "--build", folder, "--target", "install"),
            command("rm", "-rf", source, folder),
            joins="previous",
        )

    def runtime(self, ctx: Context) -> Runtime:
        """The library and its headers."""
        return Runtime(copies=(ctx.prefix,))

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        return (ctx.prefix,)

    def test(self, ctx: Context) -> list[Test]:
        """Every library that it needs is found."""
        return [Test("library", command("ldd", f"{ctx.prefix}/lib/{self.library}"), expect=self.needs_library)]
