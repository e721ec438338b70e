"""What the programs of ``hpcgen bench`` have in common: what is asked, the allocator, the time of steps, the result.

They run with the image's Python, from 3.6 on, and the framework alone. What is asked is the JSON of the one argument;
the result is one line with a mark and JSON, or a line that says why there is none.
"""

import importlib
import json
import os
import platform
import re
import sys
import time
from pathlib import Path

MARK = "hpcgen-bench:"
LEAST_STEPS = 3
PLACES = ("opt/*/lib*", "usr/lib*", "usr/lib/*-linux-gnu", "usr/local/lib*")
ALLOCATORS = ("jemalloc", "tcmalloc", "mimalloc")


class Cannot(Exception):
    """The image, or this machine, cannot do what is asked; with what to do."""

    def __init__(self, message, remedy=""):
        super().__init__(f"{message}; {remedy}" if remedy else message)


def tell(**said):
    """One line, in one write, so that the lines of several ranks do not mix."""
    sys.stdout.write(f"\n{MARK} {json.dumps(said, sort_keys=True)}\n")
    sys.stdout.flush()


def loaded(allocator):
    """Whether this process has a library of that name."""
    return "/lib" + allocator in Path("/proc/self/maps").read_text()


def with_allocator(wanted):
    """Begin this process anew with another allocator, unless it has it; its library, None for the C library's."""
    if wanted == "malloc":
        for name in ALLOCATORS:
            if loaded(name):
                raise Cannot(f"the image puts {name} before every program", "leave malloc out of the allocators")
    if wanted in ("", "malloc"):
        return None
    found = sorted(str(path) for place in PLACES for path in Path("/").glob(f"{place}/lib{wanted}*.so*"))
    if loaded(wanted):
        return os.environ.get("LD_PRELOAD") or found[0]
    if not found:
        raise Cannot(f"the image has no lib{wanted}", "add the block jemalloc or gperftools, or the package")
    if os.environ.get("LD_PRELOAD") == found[0]:
        raise Cannot(
            f"{found[0]} was not loaded", "it is for another architecture or C library: leave that allocator out"
        )
    words = Path("/proc/self/cmdline").read_bytes().split(b"\0")[1:-1]
    os.environ["LD_PRELOAD"] = found[0]
    os.execv(sys.executable, [os.fsencode(sys.executable), *words])


def timed(step, seconds, together=max, wait=lambda: None):
    """Seconds of one step, and of the processors, how many were timed, and what the first took more.

    seconds: about how long steps are timed, after one that is not and two that tell how long they take.
    together: of the number of steps that each rank finds, the number that all take.
    wait: returns when the device has done all that was begun.
    """
    begin = time.perf_counter()
    step()
    wait()
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    for _ in range(2):
        step()
    wait()
    about = max((time.perf_counter() - begin) / 2, 1e-9)
    count = together([max(LEAST_STEPS, int(seconds / about))])
    begin, used = time.perf_counter(), time.process_time()
    for _ in range(count):
        step()
    wait()
    each, used = (time.perf_counter() - begin) / count, (time.process_time() - used) / count
    return {"step_seconds": each, "cpu_seconds": used, "steps": count, "overhead": max(first - each, 0.0)}


def begin():
    """What is asked, once this process has its allocator; before a framework is imported."""
    asked = json.loads(sys.argv[1])
    try:
        asked["library"] = with_allocator(asked["allocator"])
    except Cannot as why:
        give_up(why)
    return asked


def give_up(why):
    """Say why there is no result, and end."""
    tell(cannot=str(why))
    sys.exit(0)


def imported(name):
    """A module of the image."""
    try:
        return importlib.import_module(name)
    except ImportError as failure:
        give_up(f"Python cannot import {name}: {failure}")


def peak_memory():
    """The most bytes of memory that this process has had at a time.

    Of /proc, since what getrusage tells includes what this process was before it became this program.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def readers():
    """What this process has that reads variables: OpenMP's runtimes, and the memory management of the C library.

    Large pages are asked for by glibc from 2.35 on, and only where Linux leaves that to programs.
    """
    maps = Path("/proc/self/maps").read_text()
    found = sorted(set(re.findall(r"/(libgomp|libiomp5|libomp)[-.]", maps)))
    name, version = platform.libc_ver()
    if name == "glibc" and not any(loaded(each) for each in ALLOCATORS):
        found.append("glibc")
        pages = Path("/sys/kernel/mm/transparent_hugepage/enabled")
        left_to_programs = pages.exists() and "[madvise]" in pages.read_text()
        if left_to_programs and [int(part) for part in version.split(".")] >= [2, 35]:
            found.append("glibc-hugetlb")
    return found


def main(run, asked):
    """Do what is asked, and print the result."""
    try:
        result = run(asked)
    except Cannot as why:
        give_up(why)
    known = {"library": asked["library"], "memory": peak_memory(), "node": os.uname().nodename}
    tell(**dict(result, **known, readers=[*readers(), *result.get("readers", [])]))
