"""A second MPI in an image: what a build says at its end of programs that load it, and of files that only bring it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace
from test_symbols import compiled

from hpcgen.core.model.stack import Copied
from hpcgen.kit.folder import read_kit
from hpcgen.recipe.selftest import selftest_script

GOLDEN = Path(__file__).parents[1] / "golden"
MPI = "int MPI_Init(int *argc, char ***argv) { return 0; }\n"
CALLS = "int MPI_Init(int *argc, char ***argv);\nint main(int argc, char **argv) { return MPI_Init(&argc, &argv); }\n"
USES = "int MPI_Init(int *argc, char ***argv);\nint H5Open(void) { return MPI_Init(0, 0); }\n"
OPENS = "int H5Open(void);\nint main(void) { return H5Open(); }\n"
SITE_PACKAGES = "opt/python/lib/python3.12/site-packages"


class Image:
    """A folder in an image's place, with an MPI of its own that a program uses."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.own = self.library("opt/mpich/lib/libmpi.so.12", MPI)
        self.program("opt/tool/bin/tool", CALLS, self.own)

    def library(self, path: str, text: str, *options: str | Path) -> Path:
        name = f"-Wl,-soname,{path.rpartition('/')[2]}"
        return compiled(self.root / path, text, "-shared", "-fPIC", name, *options)

    def program(self, path: str, text: str, *libraries: Path) -> Path:
        found = [f"-Wl,-rpath-link,{self.root}/usr/lib", "-Wl,--disable-new-dtags"]
        return compiled(
            self.root / path, text, *libraries, *(f"-Wl,-rpath,{each.parent}" for each in libraries), *found
        )

    def tested(self, copied: str = "", starts: str = "true", asked: str = "") -> list[str]:
        """The lines of the test about one MPI, at the end of a build of a stack that copies a folder.

        ``asked``: a further word of the command that requested it.
        """
        plan = read_kit(GOLDEN / "workstation" / "mpi-hello").plan
        plan = replace(plan, command=f"{plan.command} {asked}")
        stack = replace(plan.stack, run=replace(plan.stack.run, command=[starts]))
        stack = replace(stack, copy=[Copied(from_=".", to=copied)]) if copied else stack
        text = selftest_script(replace(plan, stack=stack), [], ["/opt/mpich", "/opt/tool", "/opt/python"])
        for folder in ("/opt", "/usr", "/lib"):
            text = text.replace(f" {folder}", f" {self.root}{folder}").replace(f"^{folder}", f"^{self.root}{folder}")
        text = text.replace("find / ", f"find {self.root} ")
        for folder in ("opt/python", "usr/bin", "lib"):
            (self.root / folder).mkdir(exist_ok=True, parents=True)
        env = {**os.environ, "LD_LIBRARY_PATH": f"{self.root}/opt/mpich/lib:{self.root}/usr/lib"}
        done = subprocess.run(["/bin/sh", "-s", "--", "--build"], input=text, env=env, capture_output=True, text=True)
        assert done.stderr == ""
        lines = done.stdout.replace(str(self.root), "").splitlines()
        return lines[next(number for number, line in enumerate(lines) if "one MPI" in line) :]


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image(tmp_path)


def test_an_image_with_its_own_mpi_alone_passes(image: Image) -> None:
    assert image.tested() == ["ok       mpich 4.3.2: one MPI", "2 passed, 0 failed, 0 skipped"]


def test_a_program_that_loads_a_second_mpi_by_a_library_ends_the_build(image: Image) -> None:
    second = image.library("usr/lib/libmpi.so.40", MPI)
    hdf5 = image.library("usr/lib/libhdf5_openmpi.so.103", USES, second)
    image.program("opt/tool/bin/writer", OPENS, hdf5)
    said = "/opt/tool/bin/writer loads /usr/lib/libmpi.so.40"
    assert image.tested()[:2] == [f"FAILED   mpich 4.3.2: one MPI: {said}, a second MPI", f"         | {said}"]


def test_a_library_of_the_same_name_counts_only_where_it_is_loaded(image: Image) -> None:
    """LD_LIBRARY_PATH leads to the image's own, but a program's own path comes before it."""
    second = image.library("usr/lib/libmpi.so.12", MPI)
    told = "/usr/lib/libmpi.so.12 is in the image too, for files that came with it alone"
    assert image.tested()[0] == f"ok       mpich 4.3.2: one MPI: {told}"
    image.program("opt/tool/bin/fixed", CALLS, second)
    assert "/opt/tool/bin/fixed loads /usr/lib/libmpi.so.12, a second MPI" in image.tested()[0]


def test_a_package_whose_program_loads_a_second_mpi_ends_the_build_unless_it_is_wanted(image: Image) -> None:
    # As programs in Fortran do, by the library of their bindings alone.
    bindings = image.library("usr/lib/libmpi_mpifh.so.40", USES, image.library("usr/lib/libmpi.so.40", MPI))
    image.program("usr/bin/abinit", OPENS, bindings)
    (line, *_) = image.tested()
    assert line.startswith("FAILED") and "/usr/bin/abinit loads /usr/lib/libmpi.so.40, a second MPI" in line
    (line, *_) = image.tested(asked="--allow-unsupported")
    assert line.startswith("ok")


def test_a_wheel_with_an_mpi_for_its_own_files_is_a_note(image: Image) -> None:
    inside = image.library(f"{SITE_PACKAGES}/fast.libs/libmpi-1a2b3c4d.so.12.1.1", MPI)
    image.library(f"{SITE_PACKAGES}/fast/_fast.so", USES, inside, f"-Wl,-rpath,{inside.parent}")
    told = "libmpi-1a2b3c4d.so.12.1.1 is in the image too, for files that came with it alone"
    assert image.tested()[0] == f"ok       mpich 4.3.2: one MPI: /{SITE_PACKAGES}/fast.libs/{told}"


def test_a_copied_folder_may_bring_an_mpi_that_the_jobs_program_does_not_load(image: Image) -> None:
    inside = image.library("opt/vendor/mpi/libmpi.so.12", MPI)
    image.program("opt/vendor/bin/solver", CALLS, inside)
    image.program("opt/vendor/bin/other", CALLS, image.own)
    assert image.tested("/opt/vendor", "/opt/vendor/bin/other")[0].startswith("ok  ")
    said = "/opt/vendor/bin/solver loads /opt/vendor/mpi/libmpi.so.12, a second MPI"
    assert said in image.tested("/opt/vendor", "/opt/vendor/bin/solver")[0]
