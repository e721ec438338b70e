"""No program that a build itself runs is compiled for the CPU of the partition, which the builder may not have."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import cache

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble

MARCH = "-march=skylake-avx512"
FLAGS = f"{MARCH} -mtune=skylake-avx512"
INSTALLS = ("tensorflow", "pytorch", "onnxruntime", "torchvision", "torchaudio")
RUN = {
    "tensorflow": "Bazel's host tools, which --copt is not for",
    "pytorch": "protoc and SLEEF's generators, which have a CMake file of their own",
    "onnxruntime": "protoc, likewise",
    "gromacs": "",
    "horovod": "",
    "hpl": "",
    "lammps": "",
    "torchvision": "",
    "torchaudio": "",
}
"""Blocks that compile for the partition's CPU, and what of it their builds run; nothing if empty."""


@cache
def commands() -> dict[str, list[str]]:
    """Of each block, every command that it has in a build from source of a shipped stack for SuperMUC's CPU."""
    catalog = Catalog([])
    found: dict[str, list[str]] = {}
    for stack in catalog.names("stack"):
        for settings in ([], *([f"{name}.install=source"] for name in INSTALLS)):
            try:
                plan = make_plan(catalog, catalog.site("supermuc"), catalog.stack(stack), settings=settings)
                steps = assemble(plan, catalog).builder.steps
            except HpcgenError:
                continue
            for label, step in steps:
                texts = [*step.commands, *(file.text for file in step.files)]
                found.setdefault(label.split()[0], []).extend(texts)
    return found


def words(version: str) -> Iterator[str]:
    catalog = Catalog([])
    settings = [f"tensorflow.version={version}", "tensorflow.install=source"]
    plan = make_plan(catalog, catalog.site("supermuc"), catalog.stack("tf"), settings=settings)
    for label, step in assemble(plan, catalog).builder.steps:
        if label.startswith("tensorflow"):
            for command in step.commands:
                yield from shlex.split(command)


def test_of_each_block_that_compiles_for_the_cpu_it_is_known_what_its_build_runs() -> None:
    found = {name for name, texts in commands().items() if any(MARCH in text for text in texts)}
    # Blocks without a way from source for this site are not in it; whatever else appears has to be looked at.
    assert found <= RUN.keys() and {"tensorflow", "pytorch", "onnxruntime", "horovod", "gromacs"} <= found


SOURCES = [version for version, row in Catalog([]).releases("tensorflow").items() if "source" in row.archives]


@pytest.mark.parametrize("version", SOURCES)
def test_tensorflows_host_tools_have_no_flags_in_any_release(version: str) -> None:
    found = list(words(version))
    assert f"--copt={MARCH}" in found
    # configure writes these as --host_copt, too.
    assert [word for word in found if word.startswith("CC_OPT_FLAGS=")] == ["CC_OPT_FLAGS=-Wno-sign-compare"]
    assert not any("host_copt" in word or "distinct_host" in word for word in found)
    assert "/march=native/d" in found


@pytest.mark.parametrize("block", ["pytorch", "onnxruntime"])
def test_cmake_takes_the_flags_from_parts_that_the_build_runs(block: str) -> None:
    texts = commands()[block]
    hook = next(text for text in texts if text.startswith("#") and "CMAKE_CXX_FLAGS" in text)
    assert f'"{FLAGS}"' in hook
    assert any("CMAKE_PROJECT_protobuf_INCLUDE=" in text and "host_tools.cmake" in text for text in texts)


def test_glow_compiles_generators_and_none_of_it_for_the_partition() -> None:
    plan = make_plan(Catalog([]), Catalog([]).site("workstation"), Catalog([]).stack("pytorch-glow"))
    steps = [step for label, step in assemble(plan, Catalog([])).builder.steps if label.startswith("glow")]
    assert steps and not any("-march" in command for step in steps for command in step.commands)
