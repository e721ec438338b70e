"""The Python packages of a user's files against base and host: each finding with the package and the line that asks.

Of a lock it is known which wheels there are, and their names say for what they are built. What else some packages bring
or ask of a host (an MPI of their own, a CPU) is in the release table of the block that installs them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from hpcgen.backends.hardware.microarchitecture import code_features
from hpcgen.blocks.requirements import in_range
from hpcgen.core.model.project import ProjectPackage
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.units import some
from hpcgen.core.support.wheel_tags import as_numbers, glibc_of, minor_of
from hpcgen.planning.contract.case import Check, ContractCase, holds, skipped
from hpcgen.planning.contract.untried import brought, untried
from hpcgen.planning.contract.wheel_names import NAME, Hosts, cuda_driver, cuda_of, gpu_vendor, hosts_of, said

_SYSTEMS = {"win": "Windows", "macosx": "macOS", "musllinux": "musl", "manylinux": "glibc", "linux": "glibc"}

_BUILDS = {"nvidia": "NVIDIA's CUDA", "amd": "AMD's ROCm", "intel": "Intel's GPUs"}


class _Tags(msgspec.Struct, frozen=True):
    """The tags in the name of a wheel: implementation, systems (``glibc``, ``musl``, ``macOS`` …) and architectures."""

    file: str
    pythons: frozenset[str]
    system: str
    architectures: frozenset[str]


def packages(case: ContractCase) -> list[Check]:
    """Each package can be installed in this image and fits the node."""
    project = case.plan.project
    if project is None or not project.packages:
        return [skipped(NAME, "no file of a project asks for packages")]
    found = [check for each in project.packages for check in _of_file(case, each)]
    found += [*_of_host(case, project.packages), *untried(case)]
    return found or [holds(NAME, f"no known obstacle to the {len(project.packages)} packages of the files")]


def chosen(case: ContractCase, lines: Iterable[str]) -> list[Check]:
    """The same of what ``hpcgen lock`` chose for ranges, and of what that needs; files and C library it minds itself.

    What the files lock was held before. A build for GPUs that no line asks for is doubtful at most: some packages
    need NVIDIA's libraries everywhere, and run without.

    ``lines``: requirements with versions and hashes, of lists of the user's own packages.
    """
    project = case.plan.project
    named = {each.name: each for each in project.packages} if project is not None else {}
    asked: list[ProjectPackage] = []
    others: list[ProjectPackage] = []
    every: list[ProjectPackage] = []
    for line in lines:
        name, version = _pin(line)
        plain = normal_name(name.partition("[")[0])
        mine = named.get(plain)
        every.append(ProjectPackage(name=plain, asked=line, origin="", version=version))
        if mine is not None and mine.version:
            continue
        origin = f"{mine.origin}, chosen by the lock" if mine is not None else "chosen by the lock"
        package = ProjectPackage(name=plain, asked=f"{plain}=={version}", origin=origin, version=version)
        (others if mine is None else asked).append(package)
    hosts = hosts_of(case)
    # What their names say was held when the plan was made.
    found = [check for each in asked for check in _cpu(case, each, hosts)]
    return [*found, *map(_at_most_doubtful, _of_host(case, others)), *brought(case, every)]


def by_accident(case: ContractCase, owners: Mapping[str, str], lines: Iterable[str]) -> dict[str, Check]:
    """What the index brings as a dependency of something, by the block that exists for it and the plan does not have.

    ``owners``: the block that brings a package, by its name. ``lines``: as for :func:`chosen`, of the list beside the
    blocks.
    """
    there = {*(each.name for each in case.plan.blocks), *(each.block for each in case.untried.values())}
    found = {}
    for line in lines:
        name, version = _pin(line)
        block = owners.get(normal_name(name.partition("[")[0]), "")
        if block and block not in there:
            reason = (
                f"one of your packages requires {name} {version}, of which the index has one build for all machines"
            )
            remedy = f"--add {block}: the block installs the build for the site's GPUs, CPU and MPI"
            found[block] = Check(NAME, "broken", reason, remedy, f"the block {block}")
    return found


def _pin(line: str) -> tuple[str, str]:
    """Name, as it is written, and version in a line that a lock chose."""
    name, _, version = line.partition(" --hash")[0].partition(";")[0].strip().partition("==")
    return name, version


def _of_host(case: ContractCase, every: Sequence[ProjectPackage]) -> list[Check]:
    hosts = hosts_of(case)
    found = list(_gpu(case, every, hosts))
    return found + [check for each in every for check in (*_mpi(case, each, hosts), *_cpu(case, each, hosts))]


def _at_most_doubtful(check: Check) -> Check:
    on_gpus = check.path.endswith((".gpu", ".gpu.driver"))
    return msgspec.structs.replace(check, outcome="doubtful") if on_gpus and check.outcome == "broken" else check


# files


def _of_file(case: ContractCase, package: ProjectPackage) -> Iterator[Check]:
    """A lock names a wheel for this image, or a source package that can be compiled."""
    if package.file or not (package.others or package.sdist):
        return
    why, remedy = _why(case, package) if package.others else ("the lock has no wheel of it", "")
    if not package.sdist:
        yield Check(NAME, "broken", f"{said(package)} cannot be installed: {why}", remedy, "a wheel for this image")
        return
    compiler = case.plan.block("gnu") is not None
    reason = f"{said(package)} is built from its source package {package.sdist}: {why}"
    if package.others and not compiler:
        remedy = f"{remedy}, or --add gnu for a compiler while the image is built"
        yield Check(NAME, "broken", f"{reason}, and the image is built without a compiler", remedy, "a wheel, or gnu")
    else:
        more = "" if compiler else "; --add gnu if it has compiled parts"
        yield Check(NAME, "doubtful", reason, f"`hpcgen lock` pins what its build requires{more}")


def _why(case: ContractCase, package: ProjectPackage) -> tuple[str, str]:
    """Why none of the wheels can be installed, the first reason that rules all of the rest out, and what to do."""
    every = [tags for file in package.others if (tags := _tags(file)) is not None]
    here, python = case.site.system.architecture, case.plan.block("python")
    linux = [each for each in every if each.system == "glibc"]
    if not linux:
        systems = ", ".join(sorted({each.system for each in every}))
        return f"its wheels are only for {systems or 'unknown systems'}", "lock it for Linux with glibc"
    mine = [each for each in linux if here in each.architectures or "any" in each.architectures]
    if not mine:
        others = ", ".join(sorted({name for each in linux for name in each.architectures}))
        return (
            f"its wheels are only for {others}, and the nodes are {here}",
            f"choose a version with wheels for {here}",
        )
    minor = minor_of(python.version) if python is not None else "3"
    fitting = [each for each in mine if any(_runs(tag, minor) for tag in each.pythons)]
    if not fitting:
        told = sorted({tag for each in mine for tag in each.pythons}, key=_python_order)
        names = some([_python_name(tag) for tag in told], 6)
        last = next((_python_name(tag).split()[-1] for tag in reversed(told) if re.fullmatch(r"cp3\d+", tag)), "")
        remedy = f'--set "python.version={last}.*"' if last else "lock a version with wheels for it"
        return f"its wheels are only for {names}, and the image has {minor}", remedy
    asked = min((glibc_of(each.file) for each in fitting), key=as_numbers)
    base = case.plan.blocks[0]
    row = case.releases.get(base.name)
    has = str(row.values.get("glibc", "")) if row is not None else ""
    newer = [name for name, glibc in case.bases().items() if as_numbers(glibc) >= as_numbers(asked)]
    return f"its wheels need glibc {asked} or newer, and {base.label} has {has}", f"use a newer base: {some(newer)}"


def _tags(file: str) -> _Tags | None:
    words = file.removesuffix(".whl").split("-")
    if len(words) < 5:
        return None
    pythons, abis, platforms = (words[at].split(".") for at in (-3, -2, -1))
    kinds = pythons if "abi3" not in abis else [f"{each}+" for each in pythons]
    kinds = [f"{each}t" for each in pythons] if abis[0].endswith("t") and abis[0][:2] == "cp" else kinds
    system = next((name for start, name in _SYSTEMS.items() if platforms[0].startswith(start)), "")
    if platforms == ["any"]:
        return _Tags(file, frozenset(kinds), "glibc", frozenset({"any"}))
    where = (
        re.search(r"(x86_64|aarch64|i686|armv7l|ppc64le|s390x|riscv64|arm64|amd64|win32)$", each) for each in platforms
    )
    return _Tags(file, frozenset(kinds), system, frozenset(match[1] for match in where if match))


def _runs(tag: str, minor: str) -> bool:
    """Whether a wheel with this tag of a Python runs on CPython ``minor``."""
    number = tuple(int(part) for part in minor.split("."))
    if tag in ("py3", f"cp{minor.replace('.', '')}", f"py{minor.replace('.', '')}"):
        return True
    since = re.fullmatch(r"cp3(\d+)\+", tag)
    return since is not None and (3, int(since[1])) <= number


def _python_order(tag: str) -> tuple[str, int]:
    number = re.search(r"3(\d+)", tag)
    return (tag[:2], int(number[1]) if number else 0)


def _python_name(tag: str) -> str:
    found = re.fullmatch(r"(cp|pp)3(\d+)(t|\+)?.*", tag)
    if found is None:
        return tag
    kind = {"cp": "CPython", "pp": "PyPy"}[found[1]]
    more = {"t": " without the lock of the interpreter", "+": " and newer"}.get(found[3] or "", "")
    return f"{kind} 3.{found[2]}{more}"


# hosts


def _gpu(case: ContractCase, every: Iterable[ProjectPackage], hosts: Hosts) -> Iterator[Check]:
    """Builds for GPUs against the vendor of the node's, and those for CUDA against its driver."""
    gpu, path = case.partition.gpu, f"partitions.{case.plan.partition}.gpu"
    every = list(every)
    cuda = {each.name: (each, cuda_of(each)) for each in every if gpu_vendor(each) == "nvidia"}
    others = [(each, vendor) for each in every if (vendor := gpu_vendor(each)) in _BUILDS and vendor != "nvidia"]
    if gpu is None:
        useless = [said(each) for each, _ in cuda.values()] + [said(each) for each, _ in others]
        if useless:
            reason = f"built for GPUs, and the node has none: {some(useless)}"
            yield Check(NAME, "doubtful", reason, "ask for the builds without GPUs in your file")
        return
    for each, of in [*((each, "nvidia") for each, _ in cuda.values()), *others]:
        if gpu.vendor != of:
            reason = f"{said(each)} is built for {_BUILDS[of]}, and the node has {gpu.model}"
            remedy = f"take it out of your file for this site, or use a package for GPUs of {gpu.vendor}"
            yield Check(NAME, "broken", reason, remedy, f"a build for {gpu.vendor}", path)
    for each in every if gpu.vendor != "nvidia" else ():
        for asked, known in hosts.cuda_alone.items():
            if _asked(asked, each):
                reason = f"{said(each)} may not run on {gpu.model}: {known}"
                yield Check(NAME, "doubtful", reason, "use another package for this site", path=path)
    for each, number in cuda.values() if gpu.vendor == "nvidia" else ():
        if gpu.driver is not None and (oldest := cuda_driver(case, number, gpu.driver)):
            here = gpu.driver_label
            reason = f"{said(each)} is built for CUDA {number}, which needs driver {oldest}, and the node has {here}"
            older = [name for name, driver in hosts.cuda_drivers.items() if in_range(gpu.driver, f">={driver}")]
            remedy = f"lock its build for CUDA {max(older)}" if older else "take it out of your file for this site"
            yield Check(NAME, "broken", reason, remedy, f"driver {oldest} or newer", f"{path}.driver")


def _mpi(case: ContractCase, package: ProjectPackage, hosts: Hosts) -> Iterator[Check]:
    """A wheel that is an MPI, or has one inside, beside that of the image or the host."""
    name = hosts.mpi_wheels.get(package.name)
    if name is None:
        return
    mpi, remedy = (
        case.mpi,
        f"take {package.name} out of your file; the block mpi4py uses the image's MPI",
    )
    if case.host is not None and (mpi is not None or case.swapped):
        told = f"the host's {case.host.flavour} {case.host.version}"
        reason = f"{said(package)} brings {name}, and {told} starts the ranks: each would run on its own"
        yield Check(NAME, "broken", reason, remedy, "one MPI", "mpi.flavour")
    elif mpi is not None:
        reason = f"{said(package)} brings {name}, and the image has {mpi.label}: programs may load either"
        yield Check(NAME, "broken", reason, remedy, "one MPI")
    elif case.plan.stack.run.mpi:
        reason = f"{said(package)} brings {name}, which does not support the site's network and launcher"
        yield Check(NAME, "doubtful", reason, remedy)


def _cpu(case: ContractCase, package: ProjectPackage, hosts: Hosts) -> Iterator[Check]:
    """A wheel that does not start on the node's CPU."""
    if case.site.system.architecture != "x86_64":
        return
    target = case.partition.cpu.target
    for asked, features in hosts.cpu_wheels.items():
        found = _asked(asked, package) if package.version else None
        if found is None:
            continue
        name, versions = found
        missing = [each for each in features.split() if each not in code_features(target)]
        if missing:
            reason = f"{said(package)} needs {some(missing)}, which the nodes' CPU ({target}) lacks: it does not start"
            remedy = f"use {name} outside of {versions}" if versions else f"use another package than {name}"
            yield Check(NAME, "broken", reason, remedy, "", f"partitions.{case.plan.partition}.cpu.target")


def _asked(asked: str, package: ProjectPackage) -> tuple[str, str] | None:
    """The name and the range that ``asked`` consists of, where the package is of both."""
    name, versions = re.fullmatch(r"([a-z0-9-]+)(.*)", asked).groups()  # type: ignore[union-attr]
    if not fnmatchcase(package.name, name):
        return None
    return (name, versions) if not versions or (package.version and in_range(package.version, versions)) else None
