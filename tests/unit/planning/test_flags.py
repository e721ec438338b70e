"""Flags of the user's own code: for 30 CPUs and four compilers, and what is said where a compiler does not know one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hpcgen import api
from hpcgen.backends.hardware.microarchitecture import family
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.plan import Plan
from hpcgen.planning.explain.answers import explain
from hpcgen.planning.explain.case import ExplainCase
from hpcgen.planning.planner import make_plan

CATALOG = Catalog()
COMPILERS = ("9.4.0", "11.5.0", "12.2.0", "13.3.0")
EXPECTED = {
    "nehalem": "nehalem nehalem nehalem nehalem",
    "westmere": "westmere westmere westmere westmere",
    "sandybridge": "sandybridge sandybridge sandybridge sandybridge",
    "ivybridge": "ivybridge ivybridge ivybridge ivybridge",
    "haswell": "haswell haswell haswell haswell",
    "broadwell": "broadwell broadwell broadwell broadwell",
    "skylake": "skylake skylake skylake skylake",
    "skylake_avx512": "skylake-avx512 skylake-avx512 skylake-avx512 skylake-avx512",
    "mic_knl": "knl knl knl knl",
    "cascadelake": "cascadelake cascadelake cascadelake cascadelake",
    "cannonlake": "cannonlake cannonlake cannonlake cannonlake",
    "icelake": "icelake-client icelake-client icelake-client icelake-client",
    "sapphirerapids": "icelake-client* sapphirerapids sapphirerapids sapphirerapids",
    "alderlake": "skylake* alderlake alderlake alderlake",
    "x86_64_v2": "x86-64* x86-64-v2 x86-64-v2 x86-64-v2",
    "x86_64_v3": "x86-64* x86-64-v3 x86-64-v3 x86-64-v3",
    "x86_64_v4": "x86-64* x86-64-v4 x86-64-v4 x86-64-v4",
    "zen": "znver1 znver1 znver1 znver1",
    "zen2": "znver2 znver2 znver2 znver2",
    "zen3": "znver2* znver3 znver3 znver3",
    "zen4": "x86-64* znver3* znver3* znver4",
    "zen5": "x86-64* znver3* znver3* znver4*",
    "aarch64": "armv8-a armv8-a armv8-a armv8-a",
    "neoverse_n1": "neoverse-n1 neoverse-n1 neoverse-n1 neoverse-n1",
    "neoverse_v1": "neoverse-v1 neoverse-v1 neoverse-v1 neoverse-v1",
    "neoverse_v2": "armv8.5-a+sve* neoverse-v2 armv9-a+i8mm+bf16* neoverse-v2",
    "a64fx": "armv8.2-a+crc+sha2+fp16+sve* a64fx a64fx a64fx",
    "thunderx2": "thunderx2t99 thunderx2t99 thunderx2t99 thunderx2t99",
    "neoverse_n2": "armv8.5-a+sve* neoverse-n2 neoverse-n2 neoverse-n2",
    "ampere1": "neoverse-n1* ampere1 ampere1 ampere1",
}
"""What follows -march= or -mcpu= by each compiler; with a star where the plan says that it is not the CPU's own."""


def planned(target: str, compiler: str, **options: Any) -> Plan:
    source = {"source": "https://example.org/solver.tar.gz", "sha256": "a" * 64, "commands": ["make"]}
    data = {
        "name": "own",
        "title": "a program of one's own",
        "blocks": {"application": {"options": {**source, **options}}},
        "run": {"command": ["solver"], "mpi": False, "gpus_per_node": 0},
    }
    site = msgspec.to_builtins(CATALOG.site("workstation"))
    site["system"]["architecture"] = family(target)
    site["partitions"]["main"]["cpu"]["target"] = target
    here = msgspec.convert(site, type(CATALOG.site("workstation")))
    settings = [f"gnu.version={compiler}"]
    return make_plan(CATALOG, here, api.load_stack(data, catalog=CATALOG), settings=settings)


def said(plan: Plan, word: str = "CFLAGS") -> str:
    (found,) = explain(ExplainCase(plan, CATALOG), word)
    return found.value


def named(plan: Plan) -> str:
    """The CPU that own code is compiled for, as in the table."""
    level, first, *_ = said(plan).split()
    assert level == "-O3"
    assert first.startswith(("-march=", "-mcpu="))
    return first.partition("=")[2] + "*" * any(each.name == "compiler" for each in plan.findings)


@pytest.mark.parametrize("target", EXPECTED)
def test_own_code_is_compiled_for_the_cpu_or_the_nearest_that_the_compiler_knows(target: str) -> None:
    assert [named(planned(target, compiler)) for compiler in COMPILERS] == EXPECTED[target].split()


def test_a_newer_compiler_is_named_with_its_distributions() -> None:
    (found,) = [each for each in planned("zen4", "12.2.0").findings if each.name == "compiler"]
    assert found.message.endswith("does not know the CPU zen4: own code is compiled for the nearest, -march=znver3")
    assert "gnu 12.3.0 does" in found.remedy and "ubuntu ==22.04" in found.remedy


def test_only_who_compiles_own_code_is_told() -> None:
    stack = CATALOG.stack("mpi-hello")
    plan = make_plan(CATALOG, CATALOG.site("roihu-cpu"), stack)
    assert plan.block("gnu") is not None
    assert not [each for each in plan.findings if each.name == "compiler"]


def test_more_flags_come_last_so_they_win() -> None:
    plan = planned("zen3", "12.2.0", fast_math=True, flags=["-O2", "--param=max-inline-insns-single=50"])
    words = "-O3 -march=znver3 -mtune=znver3 -ffast-math -O2 --param=max-inline-insns-single=50"
    assert said(plan) == said(plan, "FCFLAGS") == words
    with pytest.raises(HpcgenError, match="a compiler flag"):
        planned("zen3", "12.2.0", flags=["-O2 $(id)"])


def test_fast_math_is_there_only_by_a_word() -> None:
    assert "-ffast-math" not in said(planned("zen3", "12.2.0"))
    assert said(planned("zen3", "12.2.0", fast_math=True), "FCFLAGS").endswith(" -ffast-math")
