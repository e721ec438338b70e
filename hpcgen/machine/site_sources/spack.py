"""Spack's ``packages.yaml``, ``compilers.yaml`` and environments, clusters for Stackinator → what is installed there.

Source: Spack's documentation, "Package Settings" (externals, providers), "Compiler Configuration", "Configuration
Files" (scopes, ``::``, includes). Stackinator's, "Cluster Configuration", and eth-cscs/alps-cluster-config:
``packages.yaml`` and ``network.yaml`` have Spack's externals, ``network.yaml`` also the MPIs of stacks.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from hpcgen.backends.hardware.mpi_abi import abi_of
from hpcgen.core.config.yamlfile import loads
from hpcgen.core.errors import InputError
from hpcgen.machine.detect.seen import NODE, Seen
from hpcgen.machine.site_sources.said import SourceFacts, SourceSettings, gpu_of_arch, version
from hpcgen.readers.folder import ProjectFolder

FILES = ("packages.yaml", "compilers.yaml", "toolchains.yaml", "upstreams.yaml", "mirrors.yaml", "config.yaml")
"""What is read of a folder."""

MPI = {
    "openmpi": "openmpi",
    "mpich": "mpich",
    "cray-mpich": "cray-mpich",
    "intel-oneapi-mpi": "intel",
    "intel-mpi": "intel",
    "mvapich2": "mvapich2",
    "mvapich": "mvapich2",
    "parastationmpi": "parastation",
}
_ENGINES = {
    "apptainer": "apptainer",
    "singularityce": "singularity",
    "charliecloud": "charliecloud",
    "podman": "podman",
}
_WORTH_KNOWING = ("cuda", "hip", "hsa-rocr-dev", "rocm-core", "ucx", "libfabric", "rdma-core", "slurm", "pmix", "nvhpc")
_FABRICS = (("cxi", "slingshot"), ("efa", "efa"), ("psm2", "omni-path"), ("opx", "omni-path"), ("verbs", "infiniband"))
_FAMILIES = {"x86_64", "aarch64"}
_SPEC = re.compile(r"([a-z0-9][a-z0-9_.-]{0,99})(?:@=?([A-Za-z0-9][A-Za-z0-9._+-]{0,63}))?(?=$|[\s%+~^/:,])")
_SYSTEM = re.compile(r"(rhel|rocky|almalinux|alma|centos|ubuntu|debian|sles|opensuse|amzn|fedora)[-_]?([0-9.]*)")
_TOPS = ("packages", "compilers", "toolchains", "upstreams", "mirrors", "config", "include", "spack", "mpi")


class External(msgspec.Struct, frozen=True):
    """An external package: what it is, and where it is said."""

    name: str
    version: str
    spec: str
    prefix: str
    modules: list[str]
    how: str


def read_spack(folder: ProjectFolder, file: str, asked: SourceSettings) -> Seen:
    """The facts of a file of Spack's, or of those in a folder; ``asked`` is not used.

    InputError: a file is no YAML, or has nothing that Spack's files have.
    """
    files = [file]
    if (folder.top / file).is_dir():
        files = [path for name in FILES if folder.holds(path := posixpath.normpath(f"{file}/{name}"))]
        if not files:
            expected = f"a folder with any of {', '.join(FILES)}"
            raise InputError("there is no Spack file", folder.shown(file), expected)
    return read_files(folder, files)


def read_files(folder: ProjectFolder, files: list[str]) -> Seen:
    """The facts of several files together, as Spack takes them together."""
    seen, externals, wanted = Seen(), list[External](), list[str]()
    for each in files:
        said = SourceFacts.of(loads(folder.text(each), folder.shown(each)))
        tops = {str(key).rstrip(":"): key for key in said.data}
        if not set(tops) & set(_TOPS):
            expected = f"one of {', '.join(_TOPS)} at the top"
            raise InputError("not a Spack configuration", said.name, expected, "name another file")
        for name, steps in _sections(said, tops):
            if name == "packages":
                externals += _externals(said, steps) + _old_externals(said, steps, seen)
                wanted += _providers(said, steps)
                _targets(said, steps, seen)
            elif name == "compilers":
                _compilers(said, steps, seen)
            else:
                _noted(said, name, steps, seen)
    _installed(externals, seen)
    _mpi([each for each in externals if each.name in MPI], wanted, seen)
    return seen


def _sections(said: SourceFacts, tops: dict[str, Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Sections of a file by name; those of an environment lie below ``spack:``."""
    for name, key in tops.items():
        if name == "spack":
            yield from ((str(below).rstrip(":"), (key, below)) for below in said.mapping(key))
        else:
            yield name, (key,)


def _noted(said: SourceFacts, name: str, steps: tuple[Any, ...], seen: Seen) -> None:
    how, value = said.how(*steps), said.get(*steps)
    if name == "include" and value:
        seen.notes.append(f"{how}: other files are included, which were not read; name them as well")
    elif name == "upstreams" and isinstance(value, dict):
        seen.notes.append(f"{how}: upstream installations were not followed: {', '.join(map(str, value))[:200]}")
    elif name == "mirrors" and isinstance(value, dict):
        seen.notes.append(f"{how}: mirrors of Spack's own kind: {', '.join(map(str, value))[:200]}")
    elif name == "toolchains" and isinstance(value, dict):
        seen.notes.append(f"{how}: toolchains: {', '.join(map(str, value))[:200]}")
    elif name == "mpi" and isinstance(value, dict):
        seen.notes.append(f"{how}: software stacks are built with {', '.join(map(str, value))[:200]}")


def _externals(said: SourceFacts, steps: tuple[Any, ...]) -> list[External]:
    found = []
    for package in said.mapping(*steps):
        if package in ("all", "all:"):
            continue
        key = next((each for each in said.mapping(*steps, package) if str(each).rstrip(":") == "externals"), "")
        for number in range(len(said.listed(*steps, package, key))):
            place = (*steps, package, key, number)
            spec = said.text(*place, "spec")
            match = _SPEC.match(spec)
            if match is None:
                where = said.how(*place)
                raise InputError(f"{spec[:80]!r} is not a spec", where, "such as openmpi@4.1.6", "write `spec:`")
            modules = [text for each in said.listed(*place, "modules") if isinstance(text := each, str)]
            prefix = said.text(*place, "prefix")
            prefix = prefix if prefix == "/" else prefix.rstrip("/")
            found.append(External(match[1], match[2] or "", spec, prefix, modules, said.how(*place)))
    return found


def _old_externals(said: SourceFacts, steps: tuple[Any, ...], seen: Seen) -> list[External]:
    """Those in the form before Spack 0.16: mappings of specs to ``paths`` and ``modules``, with a note on each."""
    found = []
    for package in said.mapping(*steps):
        for form in ("paths", "modules"):
            place = (*steps, package, form)
            there = [each for spec in said.mapping(*place) if (each := _old_external(said, place, package, str(spec)))]
            if there:
                seen.notes.append(f"{said.how(*place)}: {form} of {package} is the form before Spack 0.16")
            found += there
    return found


def _old_external(said: SourceFacts, place: tuple[Any, ...], package: str, spec: str) -> External | None:
    match, value = _SPEC.match(spec), said.get(*place, spec)
    words = [text for each in (value if isinstance(value, list) else [value]) if isinstance(text := each, str)]
    if match is None or match[1] != package or not words:
        return None
    how = said.how(*place, spec)
    if place[-1] == "modules":
        # Cray's MPI was an MPICH to Spack then.
        name = "cray-mpich" if package == "mpich" and words[0].startswith("cray-mpich") else package
        return External(name, match[2] or "", spec, "", words, how)
    return (
        External(package, match[2] or "", spec, words[0].rstrip("/") or "/", [], how) if words[0][:1] == "/" else None
    )


def _providers(said: SourceFacts, steps: tuple[Any, ...]) -> list[str]:
    """The MPI that Spack is told to take, the first choice first."""
    listed = said.listed(*steps, "all", "providers", "mpi")
    required = said.get(*steps, "mpi", "require")
    words = [*listed, *(required if isinstance(required, list) else [required])]
    names = [match[1] for word in words if isinstance(word, str) and (match := _SPEC.match(word.strip()))]
    return [name for name in names if name in MPI]


def _targets(said: SourceFacts, steps: tuple[Any, ...], seen: Seen) -> None:
    """The CPU that everything is built for."""
    told: list[tuple[str, str]] = []
    if targets := said.listed(*steps, "all", "target"):
        told = [(str(target), said.how(*steps, "all", "target")) for target in targets]
    required = said.get(*steps, "all", "require")
    for word in required if isinstance(required, list) else [required]:
        if isinstance(word, str) and (match := re.search(r"\btarget=([a-z0-9_]{1,40})", word)):
            told.append((match[1], said.how(*steps, "all", "require")))
    names = [(name, how) for name, how in told if re.fullmatch("[a-z0-9_]{1,40}", name)]
    for name, how in names:
        if name in _FAMILIES:
            seen.add("system.architecture", name, how)
    own = [(name, how) for name, how in names if name not in _FAMILIES and not name.startswith("x86_64_v")]
    if len(own) == 1:
        seen.add(f"{NODE}.cpu.target", *own[0])
    elif own:
        seen.notes.append(f"{own[0][1]}: software is built for {', '.join(name for name, _ in own)}")


def _compilers(said: SourceFacts, steps: tuple[Any, ...], seen: Seen) -> None:
    for number in range(len(said.listed(*steps))):
        place = (*steps, number, "compiler")
        _system(said.text(*place, "operating_system"), said.how(*place, "operating_system"), seen)
        if (family := said.text(*place, "target")) in _FAMILIES:
            seen.add("system.architecture", family, said.how(*place, "target"))
        if spec := said.text(*place, "spec"):
            seen.notes.append(f"{said.how(*place, 'spec')}: compiler {spec[:80]}")


def _system(text: str, how: str, seen: Seen) -> None:
    match = _SYSTEM.fullmatch(text)
    if match and seen.value("system.os") is None:
        seen.add("system.os", "almalinux" if match[1] == "alma" else match[1], how)
        seen.add("system.os_version", version(match[2]), how)


def _installed(externals: list[External], seen: Seen) -> None:
    """What of the externals is a fact, and what is worth a note."""
    for each in externals:
        if match := re.search(r"\bos=([a-z0-9._-]{1,40})", each.spec):
            _system(match[1], each.how, seen)
        if each.name == "slurm":
            seen.add("scheduler.kind", "slurm", each.how)
        if engine := _ENGINES.get(each.name):
            seen.add(f"containers.engines.{engine}.version", version(each.version), each.how)
            if each.modules:
                seen.add(f"containers.engines.{engine}.modules", each.modules, each.how)
        if each.name == "libfabric" and (match := re.search(r"\bfabrics=([a-z0-9_,]{1,200})", each.spec)):
            offered = match[1].split(",")
            if fabric := next((pair for pair in _FABRICS if pair[0] in offered), None):
                _first(seen)("fabric.kind", fabric[1], each.how)
                _first(seen)("fabric.provider", fabric[0], each.how)
        _architecture(each, seen)
        if each.name in _WORTH_KNOWING:
            where = f" in {each.prefix}" if each.prefix else f" by {', '.join(each.modules)}" if each.modules else ""
            seen.notes.append(f"{each.how}: {each.name} {each.version}{where}")
    engines = sorted({path.split(".")[2] for path in seen.facts if path.startswith("containers.engines.")})
    if len(engines) == 1:
        how = seen.facts[next(path for path in seen.facts if path.startswith("containers.engines."))].how
        seen.add("containers.preferred", engines[0], f"{how}, the one engine there")


def _architecture(each: External, seen: Seen) -> None:
    """The GPUs that a package was built for, where that is one."""
    match = re.search(r"\b(cuda_arch|amdgpu_target)=([a-z0-9,]{1,100})", each.spec)
    words = (
        {word.rstrip("a") if match and match[1] == "cuda_arch" else word for word in match[2].split(",")}
        if match
        else set()
    )
    if match and len(words) == 1:
        arch = words.pop()
        for field, value in gpu_of_arch(f"sm_{arch}" if match[1] == "cuda_arch" else arch).items():
            _first(seen)(f"{NODE}.gpu.{field}", value, f"{each.how}, {match[0]}")
        seen.add_unseen(f"{NODE}.gpu.model", f"{each.how} describes only the processors that code can run on")


def _first(seen: Seen) -> Callable[[str, Any, str], None]:
    """Adds a fact that is not there yet."""

    def add(path: str, value: Any, how: str) -> None:
        if path not in seen.facts:
            seen.add(path, value, how)

    return add


def _mpi(found: list[External], wanted: list[str], seen: Seen) -> None:
    """The host's MPI, where it is clear which one that is."""
    first = next((name for name in wanted if any(each.name == name for each in found)), None)
    chosen = [each for each in found if first is None or each.name == first]
    if len(chosen) > 1:
        named = ", ".join(f"{each.name} {each.version} ({each.how})" for each in chosen[:8])
        seen.add_unseen("mpi", f"several are installed: {named}; write the one that jobs use")
        return
    for each in chosen:
        flavour = MPI[each.name]
        seen.add("mpi.flavour", flavour, each.how)
        seen.add("mpi.version", version(each.version), each.how)
        seen.add("mpi.abi", abi_of(flavour), f"{each.how}, {each.name}")
        seen.add("mpi.root", each.prefix, each.how)
        seen.add("mpi.modules", each.modules, each.how)
        seen.add_unseen("mpi.launcher", "Spack does not say how ranks are started: srun, mpiexec, mpirun")
        seen.add_unseen("mpi.libraries", f"the folder of its libraries in {each.prefix or 'its prefix'}, and the binds")


_FILES = ("packages.yaml", "network.yaml", "compilers.yaml", "upstreams.yaml", "mirrors.yaml")


def read_stackinator(folder: ProjectFolder, file: str, asked: SourceSettings) -> Seen:
    """The facts of a cluster's folder.

    folder: that which holds it: files of clusters are often links to what several share.
    file: the cluster's folder in it.
    asked: is not used.
    InputError: it is no such folder, or its files are not as Spack's are.
    """
    files = [path for name in _FILES if folder.holds(path := posixpath.normpath(f"{file}/{name}"))]
    if not any(path.endswith("packages.yaml") for path in files):
        expected = "a folder with packages.yaml, and network.yaml or compilers.yaml"
        raise InputError("not a Stackinator cluster", folder.shown(file), expected, "name the cluster's folder")
    seen = read_files(folder, files)
    seen.notes.append(f"{folder.shown(file)}: recipes and environments of stacks do not describe the system")
    return seen
