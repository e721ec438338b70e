"""What is attacked: a profile, a stack, a job, a fleet and a lock in which every text field says something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import Stack

CATALOG = Catalog()
Path = tuple[str | int, ...]
ENGINES = {
    **{"charliecloud": "0.31", "apptainer": "1.4.5", "singularity": "3.11.4", "docker": "26.1", "podman": "4.9.4"},
    **{"pyxis": "0.24", "sarus-suite": "1.0", "shifter": "22.02"},
}
SCHEDULERS = ("slurm", "pbs", "torque", "gridengine", "flux", "lsf", "pjm", "htcondor", "none")
KEY = "key:"
"""Stands before the last step of a path where the key is the text, not the value."""


def _profile() -> dict[str, Any]:
    """SuperMUC-NG's with more of everything."""
    data: dict[str, Any] = msgspec.to_builtins(CATALOG.site("supermuc"))
    del data["extends"]
    data["system"] |= {"module_paths": ["/soft/modulefiles"], "setup": ["module reset"]}
    data["system"] |= {"kernel": "5.14", "glibc": "2.28", "modules": "module", "architecture": "x86_64"}
    data |= {"default_partition": "thin", "partitions": {"thin": data["partitions"]["thin"]}, "archived": "closed"}
    thin = data["partitions"]["thin"]
    gpu = {
        "vendor": "nvidia",
        "model": "A100",
        "capability": "8.0",
        "driver": "550.54",
        "driver_assumed": True,
        "target": "sm_80",
        "fabric": "infiniband",
        "cdi": "nvidia.com/gpu=all",
        "tiles": 1,
    }
    thin["gpu"] = {**gpu, "count": 2, "cpus": ["0-23", "24-47"]}
    thin["copy_devices"] = ["/dev/xpmem"]
    thin["memory"] = {**thin["memory"], "locked_gb": "unlimited"}
    thin["performance"] = {"latency": {"value": 1.5, "unit": "us", "nodes": 2, "ranks_per_node": 1}}
    thin |= {"directives": ["--exclusive"], "chunk": ["node_type=rome"], "environment": {"LOCAL_A": "b c"}}
    thin["fabric"] = {
        **data["fabric"],
        "libraries": ["/usr/lib64/libpsm2.so.2"],
        "libfabric": "1.22.0",
        "interface": "ib0",
    }
    thin["queues"] = [{"name": "micro", "directives": ["--qos=x"], "min_time": "00:00:01", "max_time": "48:00:00"}]
    thin["queues"][0] |= {"times": [{"max_nodes": 9, "max_time": "24:00:00"}], "by_account": True}
    data["fabric"] |= {"libraries": ["/usr/lib64/libpsm2.so.2"], "libfabric": "1.22.0", "interface": "ib0"}
    data["mpi"] |= {"glibc": "2.26", "environment": {"FI_PROVIDER_PATH": "/opt/prov"}, "modules": ["mpi.intel/2019"]}
    data["mpi"] |= {"preload": ["/opt/own/first.so"], "bind_modules": ["show-mpi/1"]}
    shown = [{"source": "/usr/share/libdrm", "target": "/usr/share/libdrm", "read_only": True}]
    of_gpus = {"environment": {"GPU_MPI": "1 2"}, "preload": ["/opt/gtl.so"], "libraries": ["/opt/gtl"], "binds": shown}
    data["mpi"]["gpu"] = {
        "nvidia": {**of_gpus, "modules": ["cuda/12"], "bind_modules": ["show-gpu"], "runtime": ">=12"}
    }
    engine = {"run_options": ["--own"], "modules": ["engine/1"], "reason": "because it is so", "decided": "2025-01"}
    data["containers"]["engines"] = {name: {**engine, "version": ENGINES[name], "squashfs": "zstd"} for name in ENGINES}
    data["containers"] |= {"image_directory": "/data/images", "build_on": ["login"], "image_formats": ["squashfs"]}
    data["file_systems"] = {
        "work": {"kind": "lustre", "path": "/work", "variable": "WORK", "use": "data of projects", "bind": True},
        "own": {"kind": "vast", "path": "/own", "role": "scratch", "folder": "/own/${USER}", "bind": True},
    }
    data["scheduler"] |= {"kind": "pbs", "resources": {"filesystems": "home:eagle"}}
    data["scheduler"] |= {"before_submitting": "workgroup -g NAME", "output": "job.out"}
    data["scheduler"] |= {"parallel_environment": "mpi", "one_node_environment": "smp", "memory_request": "h_vmem"}
    thin["parallel_environment"] = "mpi48"
    thin["cpu"] |= {"system_cores": 1}
    thin["queues"][0] |= {"default_memory": {"cpu": 1.5}, "max_memory": {"node": 90}}
    data["scheduler"] |= {"container_universe": False}
    data["scheduler"] |= {"gpu_bind": "variable", "gpu_request": "gres"}
    data["scheduler"] |= {"error": "job.err", "modules": ["slurm_setup"], "account": "required"}
    data["environment"] = {"OMP_PLACES": "cores", "SITE_TEXT": "a b"}
    data["unset_environment"] = ["SITE_SECRET"]
    data |= {"image": {"distribution": "ubuntu"}, "aliases": ["sng"], "operator": "LRZ", "closed": "2030-01"}
    data |= {"links": ["https://example.org/a"], "notes": ["A note on it."], "layouts": data["layouts"][:1]}
    data["network"] = {
        "internet": {"login": True, "compute": True, "build": True},
        "ca_certificates": ["/etc/pki/ca.pem"],
        "proxy": {"http": "http://proxy.example.org:3128", "https": "http://proxy.example.org:3128", "no_proxy": "a"},
        "job_proxy": {"http": "http://p.example.org:1", "https": "http://p.example.org:1", "no_proxy": "b"},
        "mirrors": {
            "apt": {
                name: {"archive": f"http://m.example.org/{name}", "security": "http://m.example.org/s"}
                for name in ("debian", "ubuntu")
            },
            "dnf": {"rockylinux": {"archive": "https://mirror.example.org/rocky"}},
            "pip": "https://mirror.example.org/simple",
            "conda": "https://mirror.example.org/conda",
            "files": "https://mirror.example.org/files",
            "registry": "mirror.example.org/proxy",
            "images": {
                "debian:12": {
                    "docker": "a.example.org/debian:12",
                    "charliecloud": "b.example.org/debian:12",
                    "singularity": "c.example.org/debian:12",
                    "bootstrap": "docker",
                }
            },
        },
    }
    data["sources"] = {
        "mpi.version": {
            "from": "module avail",
            "checked": "2026-01-01",
            "verified": "yes",
            "as_of": "2025-01",
            "dated_by": "reading",
            "note": "as seen",
        }
    }
    return data


def _stack() -> dict[str, Any]:
    """A small one with options."""
    return {
        "name": "tried",
        "title": "What is tried",
        "blocks": {
            "rank_test": {},
            "mpi": {"version": "", "provider": "mpich"},
            "os_packages": {"options": {"packages": ["git"]}},
            "python": {},
            "python_packages": {
                "options": {"packages": ["h5py==3.11.0"], "files": ["pyproject.toml"], "groups": ["lock"]}
            },
        },
        "run": {
            "command": ["python3", "train.py", "--lr", "0.1"],
            "environment": {"MY_TEXT": "a b"},
            "gpus_per_node": 0,
            "rank_gpus": "own",
            "stage": "node",
            "checkpoint": ["kill", "-USR1", "1"],
            "binds": ["$WORK/a b:/data/in"],
            "models": [
                {"name": "one", "from": "https://example.org/m/one.onnx", "sha256": "c" * 64, "to": "/models/one"},
                {
                    "name": "two",
                    "from": "https://example.org/two",
                    "to": "/models/two",
                    "files": {"config.json": {"sha256": "c" * 64}},
                },
            ],
            "steps": [{"name": "prepare", "command": ["python3", "prepare.py", "a b"]}],
        },
        "copy": [{"from": "pyproject.toml", "to": "/opt/tried/read.md", "ignore": ["*.log"], "not_secret": ["*.key"]}],
        "git": [{"from": "https://example.org/group/code.git", "commit": "c" * 40, "to": "/opt/tried/code"}],
        "build": {"in": "/opt/tried/code", "commands": ["make"], "flags": ["-funroll-loops"]},
        "commands": ["python3", {"program": "train=/app/bin/train", "words": ["fit", "--epochs"]}],
        "notes": ["A note."],
        "open": ["a library: bring it"],
        **{"site": "workstation", "partition": "main", "engine": "podman", "account": "pn12ab"},
        "suits": [
            {
                **{"kinds": ["hpc"], "framework": "pytorch", "compiler": "torch.compile"},
                **{"settings": ["pytorch.compile=true"], "takes": ["keras"]},
            }
        ],
    }


PROFILE, STACK = _profile(), _stack()
JOB: dict[str, Any] = {
    "partition": "thin",
    "settings": ["mpi.provider=mpich"],
    "add": ["hwloc"],
    "walltime": "02:00:00",
    "queue": "micro",
    "account": "pn12ab",
    "command": ["./program", "--data", "x y"],
}
FLEET: dict[str, Any] = {
    "members": [
        {
            **{"stack": "mpi-hello", "site": "workstation", "name": "one", "partition": "main", "format": "docker"},
            **{"settings": ["mpi.provider=mpich"], "engine": "podman", "test_site": "workstation"},
        }
    ],
    "registry": "registry.example.org/hpc",
    "collections": [],
    "build_on": "supermuc",
    "defaults": {"site": "workstation", "format": "docker", "engine": "podman", "test_site": "workstation"},
}


def texts(data: Any, path: Path = ()) -> Iterator[Path]:
    """The path of every text in plain data, of keys too."""
    if isinstance(data, str):
        yield path
    elif isinstance(data, dict):
        for key, value in data.items():
            yield (*path, f"{KEY}{key}")
            yield from texts(value, (*path, key))
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from texts(value, (*path, number))


def replaced(data: Any, path: Path, text: str) -> Any:
    """A copy with another text at that path."""
    step, *rest = path
    if isinstance(step, str) and step.startswith(KEY) and not rest:
        return {text if key == step.removeprefix(KEY) else key: value for key, value in data.items()}
    new = replaced(data[step], tuple(rest), text) if rest else text
    if isinstance(data, list):
        return [*data[:step], new, *data[step + 1 :]]
    return {**data, step: new}


def at(data: Any, path: Path) -> str:
    """The text at a path."""
    for step in path:
        if isinstance(step, str) and step.startswith(KEY):
            return step.removeprefix(KEY)
        data = data[step]
    return str(data)


def text_fields(kind: type = Site) -> set[tuple[str, ...]]:
    """The text fields of a record by its types: what a subject must say something in. ``*`` is any item or key."""
    found: set[tuple[str, ...]] = set()
    _walk(msgspec.inspect.type_info(kind), (), found)
    return found


def _walk(info: Any, path: tuple[str, ...], found: set[tuple[str, ...]]) -> None:
    kinds = msgspec.inspect
    if isinstance(info, kinds.Metadata):
        _walk(info.type, path, found)
    elif isinstance(info, kinds.UnionType):
        for each in info.types:
            _walk(each, path, found)
    elif isinstance(info, kinds.StructType):
        for field in info.fields:
            _walk(field.type, (*path, field.encode_name), found)
    elif isinstance(info, kinds.ListType):
        _walk(info.item_type, (*path, "*"), found)
    elif isinstance(info, kinds.DictType):
        _walk(info.value_type, (*path, "*"), found)
    elif isinstance(info, (kinds.StrType, kinds.LiteralType)):
        found.add(path)


def said_fields(data: Any, kind: type) -> set[tuple[str, ...]]:
    """Those of them that plain data says something in."""
    fields = text_fields(kind)
    return {
        field
        for field in fields
        for path in texts(data)
        if len(path) == len(field) and all(want in ("*", step) for want, step in zip(field, path, strict=True))
    }


RECORDS: dict[str, tuple[dict[str, Any], type]] = {"profile": (PROFILE, Site), "stack": (STACK, Stack)}
