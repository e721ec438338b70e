"""ReFrame's settings → the partitions of a system, how jobs are started there, and its engines.

Source: ReFrame's documentation, "Configuration Reference" (systems, partitions, devices, processor, container
platforms), of releases 3 and 4.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from hpcgen.backends.hardware.mpi_abi import abi_of
from hpcgen.core.config.yamlfile import loads
from hpcgen.core.errors import InputError, did_you_mean
from hpcgen.core.support.units import some
from hpcgen.machine.detect.commands import ProbeCommand, ask
from hpcgen.machine.detect.seen import Seen
from hpcgen.machine.site_sources.python_data import Literal, read_literal
from hpcgen.machine.site_sources.said import SourceFacts, SourceSettings, gpu_of, gpu_of_arch, kind_name, version, whole
from hpcgen.readers.folder import ProjectFolder

SCHEDULERS = {
    "slurm": "slurm",
    "squeue": "slurm",
    "pbs": "pbs",
    "torque": "torque",
    "sge": "gridengine",
    "flux": "flux",
}
_LAUNCHERS = {"srun": "srun", "srunalloc": "srun", "mpirun": "mpirun", "mpiexec": "mpiexec", "ibrun": "ibrun"}
_ENGINES = {
    "apptainer": "apptainer",
    "singularity": "singularity",
    "docker": "docker",
    "podman": "podman",
    "shifter": "shifter",
}
_QUEUE = re.compile(r"(?:-p|-q|--partition|--queue)[ =]?([A-Za-z0-9][A-Za-z0-9._+,-]{0,63})")
_ACCOUNT = re.compile(r"(?:-A|--account)[ =]?\S+|-P \S+")
_MODULE = re.compile(r"(openmpi|mpich|cray-mpich|intel-?mpi|impi|mvapich2?)[/-](\d[\w.]{0,30})", re.IGNORECASE)
_FLAVOURS = {"impi": "intel", "intelmpi": "intel", "intel-mpi": "intel", "mvapich": "mvapich2"}


def read_reframe(folder: ProjectFolder, file: str, asked: SourceSettings) -> Seen:
    """The facts of a settings file: Python that is written out, JSON or YAML.

    ``asked``: which of its systems is meant, and whether it may be run. InputError: it is no such file, or has several
    systems of which none is called so.
    """
    text, name = folder.text(file), folder.shown(file)
    if not file.endswith(".py"):
        return facts_of(SourceFacts.of(loads(text, name)), asked.system)
    said = read_literal(text, name)
    why = "site_configuration is computed" if said is None else some(said.computed, 4) if said.computed else ""
    if why and asked.may_run(name, why):
        return facts_of(run_settings(name, name), asked.system)
    if said is None:
        raise InputError(
            "its site_configuration is computed, not written out",
            name,
            "site_configuration = {…}",
            "add --run-settings, which runs the file in a separate process",
        )
    return facts_of(said, asked.system)


def facts_of(said: SourceFacts, system: str) -> Seen:
    """The facts of settings that were read; InputError as :func:`read_reframe`."""
    seen = Seen()
    number = _system_number(said, system)
    place = ("systems", number)
    own = said.text(*place, "name")
    seen.notes.append(
        f"{said.how(*place, 'name')}: the system is called {own[:80]}; {said.text(*place, 'descr')[:200]}"
    )
    if said.text(*place, "modules_system") not in ("", "nomod"):
        seen.add("system.modules", "module", said.how(*place, "modules_system"))
    partitions = said.listed(*place, "partitions")
    on_login = [
        said.text(*place, "partitions", each, "scheduler") in ("local", "ssh") for each in range(len(partitions))
    ]
    for each in range(len(partitions)):
        at = (*place, "partitions", each)
        if on_login[each] and not all(on_login):
            seen.notes.append(f"{said.how(*at, 'name')}: {said.text(*at, 'name')[:80]} has no scheduler: a login node")
            continue
        _partition(said, at, seen)
    _mpi(said, own, seen)
    computed = said.computed if isinstance(said, Literal) else []
    if computed:
        seen.notes.append(f"computed, so not known without --run-settings: {some(computed, 6)}")
    return seen


def _system_number(said: SourceFacts, system: str) -> int:
    names = {said.text("systems", each, "name"): each for each in range(len(said.listed("systems")))}
    names.pop("", None)
    if not names:
        raise InputError("it names no system", said.name, "systems: a list of mappings with a name")
    real = {name: each for name, each in names.items() if name != "generic"} or names
    if system in names:
        return names[system]
    if len(real) == 1:
        return next(iter(real.values()))
    hint = did_you_mean(system, list(real))
    raise InputError(f"it has {len(real)} systems, and none is called {system!r}", said.name, hint, "add --system NAME")


def _partition(said: SourceFacts, at: tuple[Any, ...], seen: Seen) -> None:
    node = f"partitions.{kind_name(said.text(*at, 'name'))}"
    _node(said, at, node, seen)
    _devices(said, at, node, seen)
    _batch(said, at, node, seen)
    _engines(said, at, seen)


def _node(said: SourceFacts, at: tuple[Any, ...], node: str, seen: Seen) -> None:
    def add(path: str, value: Any, key: str, words: str = "") -> None:
        seen.add(f"{node}.{path}", value, said.how(*at, "processor", key) + words)

    arch = said.text(*at, "processor", "arch")
    if re.fullmatch(r"[a-z0-9_]{1,40}", arch):
        add("cpu.target", arch, "arch")
    threads = said.whole(*at, "processor", "num_cpus_per_core") or 1
    cpus = said.whole(*at, "processor", "num_cpus")
    add("cpu.cores", cpus // threads if cpus else None, "num_cpus", ", num_cpus / num_cpus_per_core")
    if cpus:
        add("cpu.threads_per_core", threads, "num_cpus_per_core" if threads > 1 else "num_cpus")
    add("cpu.sockets", said.whole(*at, "processor", "num_sockets"), "num_sockets")
    domains = said.listed(*at, "processor", "topology", "numa_nodes")
    add("cpu.numa_domains", len(domains) or None, "topology")
    if model := said.text(*at, "processor", "model"):
        add("cpu.model", model, "model")
    why = (
        f"{said.how(*at)} has no `processor`" if not said.mapping(*at, "processor") else "its `processor` does not say"
    )
    for path in ("cpu.target", "cpu.cores"):
        seen.add_unseen(f"{node}.{path}", f"{why}; ReFrame detects it: reframe --detect-host-topology")
    seen.add_unseen(f"{node}.memory.total_gb", "ReFrame's settings have no memory of nodes")


def _devices(said: SourceFacts, at: tuple[Any, ...], node: str, seen: Seen) -> None:
    gpus = [
        each for each in range(len(said.listed(*at, "devices"))) if said.text(*at, "devices", each, "type") == "gpu"
    ]
    for each in gpus[:1]:
        place = (*at, "devices", each)
        arch, how = said.text(*place, "arch"), said.how(*place)
        model = said.text(*place, "model")
        seen.add(f"{node}.gpu.count", said.whole(*place, "num_devices") or 1, how)
        for field, value in {**(gpu_of(model) if model else {}), **gpu_of_arch(arch)}.items():
            seen.add(f"{node}.gpu.{field}", value, how)
        seen.add(f"{node}.gpu.model", model, how)
        for field in ("vendor", "model"):
            seen.add_unseen(f"{node}.gpu.{field}", f"{how} does not say it")
    if len(gpus) > 1:
        seen.notes.append(f"{said.how(*at, 'devices')}: GPUs of several kinds; a profile has one kind per node")


def _batch(said: SourceFacts, at: tuple[Any, ...], node: str, seen: Seen) -> None:
    scheduler, how = said.text(*at, "scheduler"), said.how(*at, "scheduler")
    if scheduler in SCHEDULERS:
        seen.add("scheduler.kind", SCHEDULERS[scheduler], how)
    elif scheduler in ("local", "ssh"):
        seen.add("scheduler.kind", "none", how)
    else:
        seen.add_unseen("scheduler.kind", f"{how} says {scheduler[:40]!r}, for which hpcgen writes no jobs")
    launcher = said.text(*at, "launcher")
    if launcher in _LAUNCHERS:
        seen.add("mpi.launcher", _LAUNCHERS[launcher], said.how(*at, "launcher"))
    directives, queues = [], []
    how = said.how(*at, "access")
    for option in said.listed(*at, "access"):
        text = str(option).strip() if isinstance(option, (str, int)) else ""
        if match := _QUEUE.fullmatch(text):
            queues += [{"name": name} for name in match[1].split(",") if name]
        elif _ACCOUNT.fullmatch(text):
            seen.add("scheduler.account", "required", how)
            seen.notes.append(f"{how}: jobs name an account; give yours by --account")
        elif text.startswith("-"):
            directives.append(text)
    seen.add(f"{node}.queues", queues, how)
    seen.add(f"{node}.directives", directives, how)
    if limit := whole(said.get(*at, "max_jobs")):
        seen.notes.append(f"{said.how(*at, 'max_jobs')}: ReFrame itself keeps at most {limit} jobs there")


def _engines(said: SourceFacts, at: tuple[Any, ...], seen: Seen) -> None:
    platforms = said.listed(*at, "container_platforms")
    for each in range(len(platforms)):
        place = (*at, "container_platforms", each)
        kind, how = said.text(*place, "type"), said.how(*place, "type")
        engine = _ENGINES.get(kind.lower())
        if engine is None:
            seen.notes.append(f"{how}: the container platform {kind[:40]} has no engine of that name in profiles")
            continue
        seen.add(f"containers.engines.{engine}", {}, how)
        modules = [
            name
            for word in said.listed(*place, "modules")
            if (name := word if isinstance(word, str) else str(word.get("name", "")) if isinstance(word, dict) else "")
        ]
        seen.add(f"containers.engines.{engine}.modules", modules, how)
        seen.add_unseen(f"containers.engines.{engine}.version", "ReFrame's settings have no versions of engines")
        if (len(platforms) == 1 or said.get(*place, "default") in (True, "true")) and not seen.value(
            "containers.preferred"
        ):
            seen.add("containers.preferred", engine, how)
    if len(platforms) > 1:
        seen.add_unseen(
            "containers.preferred", f"{said.how(*at, 'container_platforms')} names several, none as default"
        )


def _mpi(said: SourceFacts, system: str, seen: Seen) -> None:
    """The MPI that the modules of the system's environments bring, where that is one."""
    found: dict[tuple[str, str], str] = {}
    for each in range(len(said.listed("environments"))):
        targets = said.listed("environments", each, "target_systems")
        if targets and not any(str(target).split(":")[0] in ("*", system) for target in targets):
            continue
        for word in said.listed("environments", each, "modules"):
            name = word if isinstance(word, str) else str(word.get("name", "")) if isinstance(word, dict) else ""
            if match := _MODULE.search(name[:200]):
                flavour = match[1].lower()
                found.setdefault((_FLAVOURS.get(flavour, flavour), match[2]), said.how("environments", each, "modules"))
    if len(found) > 1:
        named = some([f"{flavour} {number} ({how})" for (flavour, number), how in found.items()], 6)
        seen.add_unseen("mpi", f"environments have several: {named}; write the one that jobs use")
    for (flavour, number), how in list(found.items())[: len(found) == 1]:
        seen.add("mpi.flavour", flavour, how)
        seen.add("mpi.version", version(number), how)
        seen.add("mpi.abi", abi_of(flavour), how)
        seen.add_unseen("mpi.root", f"the folder that the module of {how} brings")


# A settings file in Python, run in a process of its own, once somebody has said that it may.
#
# That process is not a cage: it is the user's, as ReFrame's own is. It has no variables, no modules of the user's, a
# limit on its time and on what it prints, and what it prints is taken as JSON.

TIMEOUT_S = 20.0
_PROGRAM = """
import json, os, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (15, 15))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
answer = os.dup(1)
os.dup2(2, 1)
names = {"__name__": "settings", "__file__": sys.argv[1]}
with open(sys.argv[1], encoding="utf-8") as file:
    exec(compile(file.read(), sys.argv[1], "exec"), names)
text = json.dumps(names["site_configuration"], default=str)
sys.stdout.flush()
with os.fdopen(answer, "w") as out:
    out.write("\\n" + text)
# What the file left to be done at the end would follow the answer.
os._exit(0)
"""


def run_settings(path: str, name: str) -> SourceFacts:
    """What a settings file gives when it is run. Who calls this has asked the user.

    ``path``: the file. ``name``: what messages call it. InputError: it ends with an error, takes longer than
    ``TIMEOUT_S`` seconds, or gives no mapping.
    """
    command = ProbeCommand(
        (sys.executable, "-I", "-B", "-c", _PROGRAM, str(Path(path).absolute())), timeout_s=TIMEOUT_S
    )
    answer = ask(command, {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}, {})
    if answer.text is None:
        why = answer.why.replace(sys.executable, "Python")
        raise InputError(f"running it failed: {why}", name, remedy="write out the computed values, or name a JSON file")
    try:
        data: Any = json.loads(answer.text.rpartition("\n")[2])
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise InputError(
            "running it gave no mapping called site_configuration",
            name,
            remedy="omit --run-settings: literal values in the file are read without running it",
        )
    return SourceFacts(data, f"{name} as it was run", None)
