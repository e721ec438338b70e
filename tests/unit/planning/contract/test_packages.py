"""What a user's lock asks of base and host is held against them before anything is built."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import make_kit
from hpcgen.planning.contract.packages import packages
from hpcgen.planning.contract.verdict import case_of, checks_of

STACK = """name: mine
title: my project
blocks: {{{before}python_packages: {{options: {{files: [{file}]}}}}}}
run: {{mpi: {mpi}, command: [python3, app.py]}}
"""
OLD_CPU = """name: old
title: old
extends: workstation
partitions: {main: {cpu: {target: x86_64_v2, cores: 4}}}
"""
OLDEST_CPU = OLD_CPU.replace("x86_64_v2", "x86_64")


def locked(name: str, version: str, *wheels: str, sdist: bool = False) -> str:
    """A package of a pylock.toml."""
    stem = name.replace("-", "_")
    files = ", ".join(
        f'{{name = "{stem}-{version}-{each}.whl", hashes = {{sha256 = "{number:064x}"}}}}'
        for number, each in enumerate(wheels, 1)
    )
    text = f'[[packages]]\nname = "{name}"\nversion = "{version}"\nwheels = [{files}]\n'
    if sdist:
        text += f'sdist = {{name = "{stem}-{version}.tar.gz", hashes = {{sha256 = "{99:064x}"}}}}\n'
    return text


def lock(*packages: str, python: str = ">=3.8") -> str:
    return f'lock-version = "1.0"\nrequires-python = "{python}"\ncreated-by = "test"\n\n' + "\n".join(packages)


ANY = "py3-none-any"
LINUX = "cp311-cp311-manylinux_2_17_x86_64"
BOTH = ("cp312-cp312-manylinux_2_17_x86_64", LINUX, "cp39-cp39-manylinux_2_17_x86_64")


class Conflict(NamedTuple):
    """A project on a site, and what is said of it."""

    text: str
    said: str = ""
    site: str = "workstation"
    settings: tuple[str, ...] = ()
    file: str = "pylock.toml"
    before: str = ""
    mpi: str = "false"


DEBIAN_11 = ("base.provider=debian", "debian.version=11")
DEBIAN_12 = ("base.provider=debian", "debian.version=12")
CONFLICTS = {
    "a wheel for a newer C library than the base has": Conflict(
        lock(locked("fast", "1.0", "cp39-cp39-manylinux_2_34_x86_64")),
        r"fast 1.0 \(pylock.toml:5\) cannot be installed: its wheels need glibc 2.34 or newer, and debian 11 has 2.31"
        r"[\s\S]*use a newer base: .*debian 12",
        settings=DEBIAN_11,
    ),
    "wheels for other Pythons": Conflict(
        lock(locked("fast", "1.0", "cp38-cp38-manylinux_2_17_x86_64", "cp39-cp39-manylinux_2_17_x86_64")),
        r"fast 1.0 \(pylock.toml:5\) cannot be installed: its wheels are only for CPython 3.8, CPython 3.9, "
        r'and the image has 3.11[\s\S]*--set "python.version=3.9.\*"',
        settings=DEBIAN_12,
    ),
    "wheels for another implementation of Python": Conflict(
        lock(locked("fast", "1.0", "pp311-pypy311_pp73-manylinux_2_17_x86_64")),
        r"its wheels are only for PyPy 3.11, and the image has 3.11",
        settings=DEBIAN_12,
    ),
    "wheels for Python without its lock": Conflict(
        lock(locked("fast", "1.0", "cp311-cp311t-manylinux_2_17_x86_64")),
        r"its wheels are only for CPython 3.11 without the lock of the interpreter, and the image has 3.11",
        settings=DEBIAN_12,
    ),
    "wheels for other systems": Conflict(
        lock(locked("fast", "1.0", "cp311-cp311-win_amd64", "cp311-cp311-macosx_11_0_arm64")),
        r"fast 1.0 \(pylock.toml:5\) cannot be installed: its wheels are only for Windows, macOS",
    ),
    "wheels for Alpine": Conflict(
        lock(locked("fast", "1.0", "cp311-cp311-musllinux_1_2_x86_64")), r"its wheels are only for musl"
    ),
    "wheels for another architecture": Conflict(
        lock(locked("fast", "1.0", *BOTH)),
        r"fast 1.0 \(pylock.toml:5\) cannot be installed: its wheels are only for x86_64, and the nodes are aarch64",
        site="alps",
    ),
    "only the source is for this architecture, and there is no compiler": Conflict(
        lock(locked("fast", "1.0", *BOTH, sdist=True)),
        r"fast 1.0 \(pylock.toml:5\) is built from its source package fast-1.0.tar.gz: its wheels are only for x86_64, "
        r"and the nodes are aarch64, and the image is built without a compiler[\s\S]*--add gnu",
        site="alps",
    ),
    "the project's range of Pythons": Conflict(
        lock(locked("plain", "1.0", ANY), python=">=3.13"),
        r"the project by pylock.toml:2 asks for python >=3.13[\s\S]*--set debian asks for debian ==12"
        r"|--set debian[\s\S]*the project by pylock.toml:2 asks for python >=3.13",
        settings=DEBIAN_12,
    ),
    "CUDA on a node of AMD's GPUs": Conflict(
        lock(locked("cupy-cuda12x", "13.3.0", "cp312-cp312-manylinux2014_x86_64")),
        r"site_profiles/lumi-g.yaml:\d+:\d+: cupy-cuda12x 13.3.0 \(pylock.toml:5\) is built for NVIDIA's CUDA, and the "
        r"node has",
        site="lumi-g",
    ),
    "ROCm on a node of NVIDIA's GPUs": Conflict(
        lock(locked("cupy-rocm-5-0", "12.0", ANY)),
        r"cupy-rocm-5-0 12.0 \(pylock.toml:5\) is built for AMD's ROCm, and the node has",
        site="juwels-booster",
    ),
    "a CUDA that is too new for the driver": Conflict(
        lock(locked("cupy-cuda12x", "13.3.0", ANY)),
        r"hlrs-testbed.yaml:\d+:\d+: cupy-cuda12x 13.3.0 \(pylock.toml:5\) is built for CUDA 12, which needs driver "
        r"525, and the node has 418.39",
        site="hlrs-testbed",
    ),
    "a wheel that is an MPI, and the host's": Conflict(
        lock(locked("impi-rt", "2021.15", ANY)),
        r"impi-rt 2021.15 \(pylock.toml:5\) brings Intel MPI, and the host's openmpi 5.0.5 starts the ranks",
        site="juwels-booster",
        before="mpi: {}, ",
        mpi="true",
    ),
    "a wheel that is an MPI, and the image's": Conflict(
        "mpich==4.2.2\nmpi4py>=4\n",
        r"mpich 4.2.2 \(requirements.txt:1\) brings MPICH, and the image has mpich .*: programs may load either",
        file="requirements.txt",
        mpi="true",
    ),
    "a CPU without AVX2": Conflict(
        lock(locked("polars", "1.20.0", "cp39-abi3-manylinux_2_17_x86_64")),
        r"polars 1.20.0 \(pylock.toml:5\) needs avx, avx2, fma, which the nodes' CPU \(x86_64_v2\) lacks",
        site=OLD_CPU,
    ),
    "a CPU that is older than NumPy's baseline": Conflict(
        lock(locked("numpy", "2.4.1", LINUX, "cp312-cp312-manylinux_2_28_x86_64")),
        r"numpy 2.4.1 \(pylock.toml:5\) needs cx16, popcnt, sse4_2, ssse3, which[\s\S]*use numpy outside of >=2.4",
        site=OLDEST_CPU,
    ),
    "a framework that is too new for the driver": Conflict(
        "torch==2.12.0\n",
        r"torch==2.12.0 of requirements.txt:1 asks for pytorch ==2.12.0[\s\S]*driver 418.39",
        site="hlrs-testbed",
        settings=("pytorch.accelerator=cuda", "pytorch.install=pip"),
        file="requirements.txt",
    ),
    "a framework in another version than the stack's": Conflict(
        "jax==0.6.2\n",
        r"hpcgen.yaml:3:\d+\) asks for jax ==0.10.2[\s\S]*jax==0.6.2 of requirements.txt:1 asks for jax ==0.6.2",
        file="requirements.txt",
        before='jax: {version: "==0.10.2"}, ',
    ),
    "a package in another version than a block takes": Conflict(
        "setuptools==82.0.0\n",
        r"no version of setuptools suits all packages: requirements.txt:1 asks for setuptools==82.0.0, "
        r"python 3.\S+ asks for setuptools<81[\s\S]*change the version in your file",
        file="requirements.txt",
    ),
    "a range that a block's list does not meet": Conflict(
        "click\nsetuptools>=81\n",
        r"no version of setuptools suits all packages: requirements.txt:2 asks for setuptools>=81, "
        r"python 3.\S+ asks for setuptools<81",
        file="requirements.txt",
    ),
}


def planned(folder: Path, case: Conflict) -> Plan:
    site = case.site
    if "\n" in site:
        site = str(folder / "old.yaml")
        Path(site).write_text(case.site, "utf-8")
    (folder / case.file).write_text(case.text, "utf-8")
    stack = folder / "hpcgen.yaml"
    stack.write_text(STACK.format(file=case.file, before=case.before, mpi=case.mpi), "utf-8")
    # Nothing but the packages is asked of the GPUs.
    return hpcgen.plan(site, str(stack), settings=case.settings, catalog=Catalog(), account="a", gpus_per_node=0)


@pytest.mark.parametrize("name", CONFLICTS)
def test_each_conflict_is_found_before_anything_is_built(tmp_path: Path, name: str) -> None:
    case = CONFLICTS[name]
    with pytest.raises(HpcgenError, match=case.said):
        make_kit(planned(tmp_path, case), Catalog())


QUIET = {
    "wheels for anything": Conflict(lock(locked("plain", "1.0", ANY))),
    "an older interface that newer Pythons keep": Conflict(
        lock(locked("fast", "1.0", "cp38-abi3-manylinux_2_17_x86_64"))
    ),
    "one wheel of many that suits": Conflict(
        lock(locked("fast", "1.0", *BOTH, "cp312-cp312-win_amd64")), settings=DEBIAN_12
    ),
    "wheels for ARM on ARM": Conflict(
        lock(locked("fast", "1.0", "cp312-cp312-manylinux_2_28_aarch64", "cp312-cp312-manylinux_2_28_x86_64")),
        site="alps",
    ),
    "CUDA on NVIDIA's GPUs of an unknown driver": Conflict(
        lock(locked("cupy-cuda12x", "13.3.0", ANY)), site="juwels-booster"
    ),
    "CUDA that the driver runs": Conflict(lock(locked("cupy-cuda13x", "14.0", ANY)), site="perlmutter"),
    "NVIDIA's tools that need no CUDA": Conflict(lock(locked("nvidia-ml-py", "12.535", ANY)), site="lumi-g"),
    "a package whose name has cu in it": Conflict(lock(locked("accumulation-tree", "0.6.4", ANY)), site="lumi-g"),
    "NumPy on the CPU that it needs": Conflict(lock(locked("numpy", "2.4.1", LINUX)), site=OLD_CPU, settings=DEBIAN_12),
    "an MPI in a wheel where nothing else is one": Conflict(lock(locked("mpich", "4.2.2", ANY))),
}


@pytest.mark.parametrize("name", QUIET)
def test_what_suits_is_not_complained_of(tmp_path: Path, name: str) -> None:
    plan = planned(tmp_path, QUIET[name])
    (check,) = checks_of(case_of(plan, Catalog()), only=("Python packages",))
    assert check.outcome == "holds"


def test_a_source_package_with_a_compiler_is_a_warning(tmp_path: Path) -> None:
    plan = planned(
        tmp_path, Conflict(lock(locked("fast", "1.0", *BOTH, sdist=True)), "", site="alps", before="gnu: {}, ")
    )
    (check,) = checks_of(case_of(plan, Catalog()), only=("Python packages",))
    assert check.outcome == "doubtful" and "fast 1.0 (pylock.toml:5) is built from its source package" in check.reason
    assert plan.project is not None and plan.project.packages[0].hashes == [f"sha256:{99:064x}"]


def test_builds_for_gpus_on_a_node_without_are_a_warning(tmp_path: Path) -> None:
    plan = planned(tmp_path, Conflict(lock(locked("cupy-cuda12x", "13.3.0", ANY)), ""))
    assert any("built for GPUs, and the node has none: cupy-cuda12x" in each.message for each in plan.findings)


@pytest.mark.parametrize(
    ("package", "outcome"),
    [
        ("nvidia-dali-cuda120", "broken"),
        ("nvidia-nvimgcodec", "broken"),
        ("xformers==0.0.33", "doubtful"),
        ("flash-attn==2.8.3", "doubtful"),
        ("bitsandbytes==0.48.2", "doubtful"),
        ("bitsandbytes==0.49.0", "holds"),
        ("nvidia-ml-py", "holds"),
        ("nvidia-modulus", "broken"),
        ("h5py", "holds"),
    ],
)
def test_packages_for_cuda_are_told_on_gpus_of_amd(tmp_path: Path, package: str, outcome: str) -> None:
    (tmp_path / "requirements.txt").write_text(f"{package}\n")
    stack = tmp_path / "s.yaml"
    stack.write_text(STACK.format(before="pytorch: {}, ", file="requirements.txt", mpi="false"))
    plan = hpcgen.plan("lumi-g", str(stack), catalog=Catalog(), account="a", allow_unsupported=True)
    checks = packages(case_of(plan, Catalog()))
    assert [each.outcome for each in checks] == [outcome]
