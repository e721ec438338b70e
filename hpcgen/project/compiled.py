"""How what has to be compiled is compiled: the ``build`` of the stack, the MPI that it asks for, its programs."""

from __future__ import annotations

import re

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import BuildFile
from hpcgen.core.support.quoting import command
from hpcgen.core.support.units import some
from hpcgen.project.draft import APP, Draft
from hpcgen.project.found import Found
from hpcgen.project.python_program import lists_python

_FOLDER = "build"
_OLD_CMAKE = (3, 16)
"""The oldest that a base of hpcgen has; what asks for no newer one needs no range."""
PREFIX = "/opt/application"
"""$PREFIX of a stack's ``build``."""
_JOBS = '-j "$(nproc)"'
_MODULES = ".gitmodules"
_BUILDS = re.compile(
    r"(?:[^/]+/){0,3}(CMakeLists\.txt|[^/]+\.(cmake|mk|am|ac|in|py|toml|sh)|meson\.build|configure|[^/]*[Mm]ake[Ff]ile[^/]*)"
)
_LARGEST, _MOST = 256 * 1024, 200
"""Of files that may name a submodule: bytes of one, and how many are read."""


def without_build_beside(found: Found, draft: Draft) -> Found:
    """The project without the build of a folder in it, where the whole is one in Python: that compiles a tool."""
    build = found.build
    if build is None or not build.folder or found.table.name is None or not lists_python(draft):
        return found
    text = f"{build.file} is beside the Python project; where that needs it, `build:` says how it is compiled"
    draft.remark(text, Position(build.file, 1, 1))
    return found._replace(build=None)


def choose_build(found: Found, draft: Draft) -> None:
    """The ``build`` of the stack, the MPI that it asks for, and where its programs are then."""
    build = found.build
    if missing := _needed_submodules(found):
        text = f"{submodules_text(missing)}; then `hpcgen init --force` reads what needs them"
        draft.leave_open(text, missing[0][1])
    if build is None:
        return
    _open_questions(build, draft)
    if not build.programs and found.backend is not None:
        if build.mpi is not None:
            draft.add_block("mpi", f"{build.mpi.text} asks for MPI; the site decides which one", build.mpi.where)
        return
    if build.mpi is None and not build.programs:
        text = f"{build.file} exists, but init finds no program in it; `build:` in the stack says how it is compiled"
        draft.remark(text, Position(build.file, 1, 1))
        return
    if build.mpi is not None:
        draft.add_block("mpi", f"{build.mpi.text} asks for MPI; the site decides which one", build.mpi.where)
        if build.fortran_mpi is not None:
            why = f"{build.fortran_mpi.text}: MPI's Fortran bindings are only there on request"
            draft.put(("blocks", "mpi"), {"options": {"fortran": True}}, why, build.fortran_mpi.where)
    if build.fortran is not None:
        why = f"{build.fortran.text}: the Fortran compiler is only installed on request"
        draft.add_block("gnu", why, build.fortran.where, fortran=True)
    if build.gpus is not None and build.gpu_block:
        options = {"obtain": "archive"} if build.gpu_block == "cuda" else {}
        draft.add_block(build.gpu_block, f"{build.gpus.text} compiles for GPUs", build.gpus.where, **options)
        if options:
            draft.blocks[build.gpu_block].setdefault("options", {}).update(options)
        draft.gpu_package = draft.gpu_package or "the compiled program"
    commands = _COMMANDS[build.kind](build, draft)
    first = build.programs[0] if build.programs else build.mpi
    where = first.where if first is not None else None
    said = f"{build.file} makes {build.programs[0].path}" if build.programs else f"{build.file} compiles it"
    draft.put(("build", "commands"), commands, f"{said}; compiled for the CPUs of the partition", where)
    _reasons(build, draft)
    if build.mpi is not None:
        draft.put(("build", "mpi"), True, "the program is linked with the image's MPI", build.mpi.where)
    for program in build.programs:
        place = program.path.replace("$PREFIX", PREFIX) if program.path[0] == "$" else f"{APP}/{program.path}"
        draft.programs.setdefault(program.path.rpartition("/")[2], place)


def _reasons(build: BuildFile, draft: Draft) -> None:
    """Of what the commands of the build say beside the plain ones."""
    for option in build.options:
        why = f"{option.word}: {option.said or 'an option of the project'}{_off(option.word)}"
        draft.because(("build", "commands"), option.word, why, option.where)
    if build.kind == "cmake" and build.wrappers and build.mpi is not None:
        why = f"MPI's compilers, since {build.file} does not say where MPI's headers are"
        draft.because(("build", "commands"), "-DCMAKE_C_COMPILER=mpicc", why, build.mpi.where)
    for flag in build.flags:
        draft.because(("build", "commands"), flag.word, f"{flag.word}: {flag.said}", flag.where)
    for name, value in build.weak.items():
        draft.because(("build", "commands"), value.text, f"{name}={value.text}: as it is in the image", value.where)
    for step in build.before:
        draft.because(("build", "commands"), step.text, f"{step.text}: what the build needs first", step.where)


def _off(word: str) -> str:
    return "; it is off by default" if word.startswith(("-D", "--with-", "--enable-")) else ""


def _open_questions(build: BuildFile, draft: Draft) -> None:
    """What is missing in the folder, or comes only while it builds."""
    for stop in build.stops:
        draft.leave_open(stop.text, stop.where)
    for remark in build.remarks:
        draft.remark(remark.text, remark.where)
    if build.fetches:
        names = some([each.text for each in build.fetches])
        text = f"the build downloads {names}: it needs the network, and a bundle does not carry them"
        draft.remark(text, build.fetches[0].where)
    if (option := build.gpu_option) is not None and not build.gpu_block:
        said = f": {option.said}" if option.said else ""
        text = f"computes on CPUs as it is; {option.word}{said} is for GPUs, with a block that brings the compiler"
        draft.remark(text, option.where)


def submodules_text(missing: list[tuple[str, Position]]) -> str:
    """Which are missing, and what brings them."""
    names = some([path for path, _ in missing])
    return f"submodules that are not here: {names}: `git submodule update --init --recursive` brings them"


def missing_submodules(found: Found) -> list[tuple[str, Position]]:
    """Those of .gitmodules without a file in the folder, each with its place there."""
    if not found.tree.has(_MODULES):
        return []
    text = found.read(lambda folder, path: folder.text(path), _MODULES) or ""
    named = [
        (match[1], Position(_MODULES, number, 1))
        for number, line in enumerate(text.split("\n"), 1)
        if (match := re.match(r"\s*path\s*=\s*(\S+)\s*$", line))
    ]
    return [each for each in named if not any(file.path.startswith(f"{each[0]}/") for file in found.tree.files)]


def _needed_submodules(found: Found) -> list[tuple[str, Position]]:
    """Of those that are missing, for a build those that its files name."""
    gone = missing_submodules(found)
    if not gone or found.build is None:
        return gone
    files = [each.path for each in found.tree.files if each.size < _LARGEST and _BUILDS.fullmatch(each.path)]
    texts = [found.read(lambda folder, path: folder.text(path), path) or "" for path in files[:_MOST]]

    def asked(path: str) -> bool:
        # A file may go through all folders of one, or have a variable for it.
        folder, _, name = path.rpartition("/")
        words = "|".join(re.escape(each) for each in (name, folder) if each)
        return any(re.search(rf"(?<![\w-])({words})(?![\w-])", text) for text in texts)

    return [each for each in gone if asked(each[0])]


def _inside(build: BuildFile, text: str) -> str:
    """A command in the folder of the build; all commands are of one shell, which stays where it is."""
    return f"({command('cd', build.folder)} && {text})" if build.folder else text


def _flags(build: BuildFile, language: str) -> str:
    return " ".join(flag.word for flag in build.flags if flag.language == language)


_LANGUAGES = {"CXXFLAGS": "CXX", "FCFLAGS": "Fortran", "FFLAGS": "Fortran"}


def _added(name: str, variable: str, flags: str) -> str:
    """A word that sets ``name`` to the flags for the CPU, which ``variable`` has, and these; empty without any."""
    return f'{name}="${variable} {flags}"' if flags else ""


def _cmake(build: BuildFile, draft: Draft) -> list[str]:
    minimum = build.minimum
    if minimum is not None and re.fullmatch(r"\d+\.\d+(\.\d+)*", minimum.text):
        parts = tuple(int(each) for each in minimum.text.split(".")[:2])
        if parts > _OLD_CMAKE:
            draft.put(("blocks", "cmake"), {"version": f">={minimum.text}"}, "cmake_minimum_required", minimum.where)
    place = "/".join(part for part in (build.folder, _FOLDER) if part)
    source = ["-S", build.folder] if build.folder else []
    options = [option.word for option in build.options]
    if build.wrappers and build.mpi is not None:
        options += ["-DCMAKE_C_COMPILER=mpicc", "-DCMAKE_CXX_COMPILER=mpicxx"]
        options += ["-DCMAKE_Fortran_COMPILER=mpifort"] if build.fortran is not None else []
    if build.gpu_block == "rocm":
        # Modules for HIP are looked for below this variable of CMake, which is not that of the environment.
        options.append("-DROCM_PATH=/opt/rocm")
    # CMake reads the variable only where this option does not say the flags.
    languages = {"CXX": "CXXFLAGS", "Fortran": "FFLAGS"}.items()
    flags = [_added(f"-DCMAKE_{name}_FLAGS", each, _flags(build, name)) for name, each in languages]
    configure = command("cmake", *source, "-B", place, "-DCMAKE_BUILD_TYPE=Release", *options)
    return [
        *_before(build),
        " ".join(filter(None, [configure, *flags])),
        f"{command('cmake', '--build', place)} {_JOBS}",
    ]


def _meson(build: BuildFile, draft: Draft) -> list[str]:
    place = "/".join(part for part in (build.folder, _FOLDER) if part)
    options = [option.word for option in build.options]
    source = [build.folder] if build.folder else []
    setup = command("meson", "setup", place, *source, "--buildtype=release", *options)
    return [*_before(build), setup, command("meson", "compile", "-C", place)]


def _cargo(build: BuildFile, draft: Draft) -> list[str]:
    words = command("cargo", "build", "--release", *(option.word for option in build.options))
    return [*_before(build), _inside(build, words)]


def _autotools(build: BuildFile, draft: Draft) -> list[str]:
    compilers = []
    if build.mpi is not None:
        compilers = ["CC=mpicc", "CXX=mpicxx", *(["FC=mpifort", "F77=mpifort"] if build.fortran is not None else [])]
    flags = [_added(name, name, _flags(build, each)) for name, each in _LANGUAGES.items()]
    words = command(*(option.word for option in build.options), *compilers)
    configure = " ".join(filter(None, ['./configure --prefix="$PREFIX"', words, *flags]))
    return [*_before(build), _inside(build, configure), f"{_make_in(build)} {_JOBS}", f"{_make_in(build)} install"]


def _make(build: BuildFile, draft: Draft) -> list[str]:
    words = [command(f"{name}={said.text}") for name, said in build.weak.items()]
    name = build.file.rpartition("/")[2]
    plain = name in ("Makefile", "makefile", "GNUmakefile") or any(
        each.text.endswith(" Makefile") for each in build.before
    )
    file = [] if plain else [command("-f", name)]
    return [
        *_before(build),
        " ".join([_make_in(build), *file, *([build.target] if build.target else []), _JOBS, *words]),
    ]


def _make_in(build: BuildFile) -> str:
    return command("make", *(["-C", build.folder] if build.folder else []))


def _before(build: BuildFile) -> list[str]:
    return [_inside(build, each.text) for each in build.before]


_COMMANDS = {"cmake": _cmake, "make": _make, "autotools": _autotools, "meson": _meson, "cargo": _cargo}
