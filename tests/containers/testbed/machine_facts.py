#!/usr/bin/env python3
"""Print what a site profile has to know about this machine, as JSON.

Usage: machine_facts.py

Mirrors, package index, proxy, certificate authorities, CPU target, cores and
memory are read where the machine itself keeps them. They are for profiles
written at run time: never write one of these addresses into a committed file.
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

CERTIFICATES = Path("/usr/local/share/ca-certificates")

# The flags that the x86-64 psABI asks of each level, as /proc/cpuinfo has them.
LEVELS = {
    "x86_64_v2": "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3",
    "x86_64_v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave",
    "x86_64_v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}


def output(*command: str) -> str:
    """What the command prints, or nothing where it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def debian() -> dict[str, str | None]:
    """The mirrors in apt's configuration."""
    text = output("apt-get", "indextargets", "--format", "$(CREATED_BY) $(REPO_URI) $(RELEASE)")
    found: dict[str, str] = {}
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        address, _, release = rest.rpartition(" ")
        if kind == "Packages":
            found.setdefault(release, address.rstrip("/"))
    return {
        "mirror": found.get("bookworm"),
        "security_mirror": found.get("bookworm-security"),
    }


def pip() -> dict[str, Any]:
    """The package indexes pip is told to use; None stands for pip's own default."""
    settings: dict[str, str] = {}
    for line in output(sys.executable, "-m", "pip", "config", "list").splitlines():
        key, _, value = line.partition("=")
        settings[key.rpartition(".")[2]] = value.strip("'\"")
    for name in ("index-url", "extra-index-url"):
        from_environment = os.environ.get("PIP_" + name.upper().replace("-", "_"))
        if from_environment:
            settings[name] = from_environment

    def remote(name: str) -> list[str]:
        # a file:// index is a folder of this machine: no container sees it
        urls = settings.get(name, "").replace("\\n", " ").split()
        return [u for u in urls if u.startswith(("https://", "http://"))]

    return {
        "index_url": next(iter(remote("index-url")), None),
        "extra_index_urls": remote("extra-index-url"),
    }


def proxy() -> dict[str, str]:
    """The proxy variables that are set, by their lower-case names."""
    found = {}
    for name in ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy"):
        value = os.environ.get(name) or os.environ.get(name.upper())
        if value:
            found[name] = value
    return found


def cpu_target() -> str:
    """The machine's name in archspec, or the level its flags reach."""
    for command in (["archspec", "cpu"], [sys.executable, "-m", "archspec", "cpu"]):
        name = output(*command).strip()
        if name:
            return name
    machine = platform.machine()
    if machine != "x86_64":
        return machine
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    flags = next((set(x.split()[2:]) for x in text.splitlines() if x.startswith("flags")), set())
    target = machine
    for level, needed in LEVELS.items():
        if not flags.issuperset(needed.split()):
            break
        target = level
    return target


def memory_gib() -> float:
    """Memory of the whole machine."""
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def facts() -> dict[str, Any]:
    """Everything, in the order of the output."""
    return {
        "debian": debian(),
        "pip": pip(),
        "proxy": proxy(),
        "ca_certificates": [str(p) for p in sorted(CERTIFICATES.glob("*.crt"))],
        "cpu": {"target": cpu_target(), "machine": platform.machine()},
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": memory_gib(),
        "glibc": platform.libc_ver()[1],
    }


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    print(json.dumps(facts(), indent=2))
