"""CMakeLists.txt of a project: its programs, what it needs, and which of its options MPI hangs on."""

from __future__ import annotations

from hpcgen.core.model.own_project import BuildFile, BuildOption, FileWord
from hpcgen.readers.built_programs import in_order, program_files
from hpcgen.readers.cmake_parts import gpu_option, off_by_default
from hpcgen.readers.cmake_reading import NAME, CMakeReading
from hpcgen.readers.folder import ProjectFolder


def read_cmake(folder: ProjectFolder, path: str = NAME) -> BuildFile:
    """What the file and those that it includes say; InputError where one cannot be read."""
    first = CMakeReading(folder, path, {})
    first.read()
    options, reading = _read_with_options(folder, path, first)
    needs = reading.needs
    mpi = needs.mpi or next((FileWord(each.said, each.where) for each in options.values()), None)
    return BuildFile(
        path,
        "cmake",
        path.rpartition("/")[0],
        mpi,
        needs.fortran,
        needs.gpus,
        needs.gpu_block,
        program_files(in_order(reading.programs.built(), reading.project)),
        list(needs.libraries.values()),
        needs.parallel_hdf5,
        reading.programs.installs,
        reading.minimum,
        list(options.values()),
        gpu_option(first.switched, first.off),
        tools=["pkg-config"] if needs.pkg_config else [],
        fetches=reading.fetches,
        stops=reading.stops,
        wrappers=not needs.mpi_headers,
    )


def _read_with_options(
    folder: ProjectFolder, path: str, first: CMakeReading
) -> tuple[dict[str, BuildOption], CMakeReading]:
    """The options that are switched on, and the files as they are read with them."""

    def wanted(*subjects: str) -> dict[str, BuildOption]:
        return off_by_default(first.switched, first.off, first.values, first.needs.mpi is not None, subjects)

    def read(options: dict[str, BuildOption]) -> CMakeReading:
        if not options:
            return first
        # What they switch on is seen when they are on.
        reading = CMakeReading(ProjectFolder(folder.top), path, options)
        reading.read()
        return reading

    options = wanted("MPI", "OpenMP")
    reading = read(options)
    without_threads = wanted("MPI")
    if len(reading.stops) > len(first.stops) and without_threads != options:
        # As where a project takes one kind of threads, and another is on by itself.
        other = read(without_threads)
        if len(other.stops) < len(reading.stops):
            return without_threads, other
    return options, reading
