"""ONNX Runtime for every GPU of the papers' sites: which releases are chosen, what is refused, and what gets built."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest
from packaging.version import Version

from hpcgen.blocks.requirements import in_range
from hpcgen.blocks.steps import Archive, GitTree, Run, Wheels
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, InputError, PolicyError, UnknownNameError
from hpcgen.core.model.image_paths import SCRATCH
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Plan
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble, notices
from hpcgen.recipe.stages import Assembly
from tests.unit.building_blocks.test_system import chosen, context, facts

SITE = """\
name: it
title: a node with one kind of GPU
system: {{os: linux, architecture: {architecture}}}
partitions:
  main:
    cpu: {{target: {cpu}, cores: 8}}
    memory: {{total_gb: 32}}
    {gpu}
default_partition: main
containers: {{preferred: docker, engines: {{docker: {{}}}}}}
scheduler: {{kind: none}}
network: {{internet: {{login: true, compute: true, build: true}}}}
"""

P40 = "vendor: nvidia, model: P40, capability: 6.1"
P100 = "vendor: nvidia, model: P100, capability: 6.0"
V100 = "vendor: nvidia, model: V100, capability: 7.0"
T4 = "vendor: nvidia, model: T4, capability: 7.5"
A100 = "vendor: nvidia, model: A100, capability: 8.0"
H100 = "vendor: nvidia, model: H100, capability: 9.0"
MI50 = "vendor: amd, model: MI50, target: gfx906"
MI250X = "vendor: amd, model: MI250X, target: gfx90a"
NEW = {"nvidia": "590", "amd": "30.10"}


def with_driver(gpu: str) -> str:
    """A GPU as a profile has it, with a new driver where its text says none; of MI50 the last that is for it."""
    vendor = gpu.split()[1].rstrip(",") if gpu else ""
    new = "6.1" if gpu == MI50 else NEW.get(vendor)
    return gpu if new is None or "driver:" in gpu else f"{gpu}, driver: {new}"


SHELLCHECK = Path(sysconfig.get_path("scripts")) / "shellcheck"


def planned(
    collection: Path, gpu: str, *settings: str, architecture: str = "x86_64", stack: str = "", gpus: int | None = None
) -> Plan:
    cpu = "x86_64_v3" if architecture == "x86_64" else "neoverse_v2"
    text = SITE.format(gpu=f"gpu: {{{with_driver(gpu)}}}" if gpu else "", architecture=architecture, cpu=cpu)
    (collection / "site_profiles" / "it.yaml").write_text(text)
    if stack:
        (collection / "recipes" / "onnxruntime.yaml").write_text(stack)
    catalog = Catalog([collection])
    return make_plan(
        catalog,
        catalog.site("it"),
        catalog.stack("onnxruntime"),
        settings=settings,
        job=JobRequest(gpus_per_node=gpus),
        site_document=catalog.site_document("it"),
        stack_document=catalog.stack_document("onnxruntime"),
    )


def versions(plan: Plan) -> dict[str, str]:
    return {b.name: b.version for b in plan.blocks}


def option(plan: Plan, block: str, name: str) -> object:
    found = plan.block(block)
    assert found is not None
    return found.options[name]


def assembled(plan: Plan) -> Assembly:
    return assemble(plan, Catalog())


def steps(assembly: Assembly) -> list[Run]:
    return [step for stage in (assembly.builder, assembly.final) for _, step in stage.steps]


CUDA_12 = {"onnxruntime": "1.26.0", "cuda": "12.9.1", "cudnn": "9.10.2.21"}
CUDA_13 = {"onnxruntime": "1.31.1", "cuda": "13.5.0", "cudnn": "9.17.1.4"}
CHOICES = [
    ("", {"onnxruntime": "1.32.0"}),
    (P40, CUDA_12),
    (P100, CUDA_12),
    (V100, CUDA_12),
    (T4, CUDA_13),
    (A100, CUDA_13),
    (H100, CUDA_13),
    (f"{A100}, driver: 535.54.03", {**CUDA_12, "cudnn": "9.17.1.4"}),
    (f"{V100}, driver: 470.57.02", {"onnxruntime": "1.18.1", "cuda": "11.8.0", "cudnn": "8.9.5.30"}),
    (MI250X, {"onnxruntime": "1.27.1", "migraphx": "7.2.4", "rocm": "7.2.4"}),
    (MI50, {"onnxruntime": "1.32.0"}),
]
WITH_TENSORRT = [
    (P40, {"onnxruntime": "1.17.1", "tensorrt": "8.6.1.6", "cuda": "11.8.0", "cudnn": "8.9.5.30"}),
    (V100, {"onnxruntime": "1.20.2", "tensorrt": "10.4.0.26", "cuda": "12.9.1", "cudnn": "9.10.2.21"}),
    (T4, {**CUDA_13, "tensorrt": "10.16.1.11"}),
]


@pytest.mark.parametrize(("gpu", "wanted"), CHOICES)
def test_the_gpu_decides_what_computes_and_with_which_releases(
    collection: Path, gpu: str, wanted: dict[str, str]
) -> None:
    found = versions(planned(collection, gpu, gpus=None if len(wanted) > 1 else 0))
    gpu_parts = {"cuda", "cudnn", "tensorrt", "rocm", "migraphx"}
    assert {name: version for name, version in found.items() if name in gpu_parts | {"onnxruntime"}} == wanted


@pytest.mark.parametrize(("gpu", "wanted"), WITH_TENSORRT)
def test_tensorrt_on_request_is_the_last_for_the_gpu(collection: Path, gpu: str, wanted: dict[str, str]) -> None:
    found = versions(planned(collection, gpu, "onnxruntime.provider=tensorrt"))
    assert {name: found[name] for name in wanted} == wanted


def test_every_list_of_these_plans_has_hashes(collection: Path) -> None:
    for gpu, wanted in CHOICES:
        assert not assembled(planned(collection, gpu, gpus=None if len(wanted) > 1 else 0)).loose, gpu
    for gpu, _ in WITH_TENSORRT:
        assert not assembled(planned(collection, gpu, "onnxruntime.provider=tensorrt")).loose, gpu


def test_an_old_driver_or_gpu_computes_on_the_cpu_and_says_so(collection: Path) -> None:
    for gpu, why in ((f"{P40}, driver: 418.39", "driver is 418.39"), (MI50, "no code for gfx906")):
        with pytest.raises(PolicyError, match="but the image cannot use them"):
            planned(collection, gpu)
        plan = planned(collection, gpu, gpus=0)
        assert option(plan, "onnxruntime", "provider") == "cpu"
        assert any(why in notice for notice in notices(assembled(plan)))
    asked = planned(collection, P40, "onnxruntime.provider=cpu", gpus=0)
    assert any("cpu was requested" in notice for notice in notices(assembled(asked)))
    assert not any("CPU" in notice for notice in notices(assembled(planned(collection, ""))))


def test_the_oldest_driver_and_amds_targets_are_those_of_the_tables() -> None:
    catalog = Catalog()
    rows = catalog.releases("onnxruntime").values()
    module = sys.modules[catalog.block("onnxruntime").__module__]
    drivers = [
        row.host["driver"].removeprefix(">=")
        for version, row in catalog.releases("cuda").items()
        if any("cuda" in release.accepts and in_range(version, release.accepts["cuda"]) for release in rows)
    ]
    assert min(drivers, key=Version) == module.OLDEST_DRIVER
    packages = [release for release in rows if "source" not in release.only["install"]]
    migraphx = [release.accepts["migraphx"] for release in packages if "migraphx" in release.accepts]
    known = catalog.releases("rocm")
    fitting = [row for version, row in known.items() if any(in_range(version, wanted) for wanted in migraphx)]
    assert fitting
    assert all(set(row.targets) == module.AMD_TARGETS for row in fitting)


@pytest.mark.parametrize(
    ("gpu", "settings", "said"),
    [
        (P40, ["cuda.version=13.0.0"], "cuda 12.9.1 is the last that supports capability 6.1"),
        (P40, ["cuda.version=13.0.2"], "cuda 12.9.1 is the last that supports capability 6.1"),
        (V100, ["onnxruntime.version=1.31.1"], "cuda 12.9.1 is the last that supports capability 7.0"),
        (V100, ["cudnn.version=9.17.1.4"], "cudnn 9.10.2.21 is the last that supports capability 7.0"),
        (
            V100,
            ["onnxruntime.provider=tensorrt", "tensorrt.version=10.9"],
            "tensorrt 10.4.0.26 is the last that supports capability 7.0",
        ),
        (
            P40,
            ["onnxruntime.provider=tensorrt", "tensorrt.version=>=10"],
            "tensorrt 8.6.1.6 is the last that supports capability 6.1",
        ),
        (MI50, ["onnxruntime.provider=migraphx"], "rocm 5.7.1 is the last that supports target gfx906"),
        (
            f"{MI50}, driver: 30.10",
            ["onnxruntime.provider=migraphx"],
            "the node's target gfx906 ({place}): only rocm 5.7.1",
        ),
        (
            f"{A100}, driver: 535.54.03",
            ["cuda.version=>=13"],
            "cuda 12.9.1 is the last that supports driver 535.54.03",
        ),
        (
            f"{P40}, driver: 418.39",
            ["onnxruntime.provider=cuda"],
            "cuda 10.1.243 is the last that supports driver 418.39",
        ),
        (P40, ["onnxruntime.provider=migraphx"], "the node's GPU vendor nvidia"),
        (MI250X, ["onnxruntime.provider=cuda"], "the node's GPU vendor amd"),
    ],
)
def test_a_release_without_the_gpu_is_refused_and_the_last_one_with_it_named(
    collection: Path, gpu: str, settings: list[str], said: str
) -> None:
    with pytest.raises(ConflictError) as failure:
        planned(collection, gpu, *settings)
    where = f"{collection / 'site_profiles' / 'it.yaml'}:8:45"
    assert said.format(place=where) in str(failure.value)


def test_on_arm_there_is_no_older_package_with_cuda(collection: Path) -> None:
    assert versions(planned(collection, H100, architecture="aarch64"))["onnxruntime"] == "1.31.1"
    with pytest.raises(ConflictError, match="the architecture aarch64"):
        planned(collection, H100, "onnxruntime.version=1.26.0", architecture="aarch64")


def test_provider_is_an_option_of_the_block_and_no_word_of_others(collection: Path) -> None:
    assert "cuda" not in versions(planned(collection, V100, "onnxruntime.provider=cpu", gpus=0))
    for setting in ("onnxruntime.provider=rocm", "python.provider=cpu"):
        with pytest.raises(UnknownNameError):
            planned(collection, V100, setting)


@pytest.mark.parametrize("name", ["onnxruntime", "tensorrt", "rocm", "migraphx", "rccl"])
def test_every_release_says_where_it_is_from_and_needs_only_what_there_is(name: str) -> None:
    catalog = Catalog()
    for version, release in catalog.releases(name).items():
        assert release.source is not None, version
        for other, wanted in release.accepts.items():
            assert any(in_range(known, wanted) for known in catalog.releases(other)), (version, other)


# from source

SOURCE = "onnxruntime.install=source"


def build_script(assembly: Assembly) -> list[str]:
    """The words of the command that compiles."""
    (line,) = [line for step in steps(assembly) for line in step.commands if "build.py" in line]
    return shlex.split(line)


def parts(assembly: Assembly) -> dict[str, GitTree]:
    return {item.url: item for _, item in assembly.inputs if isinstance(item, GitTree)}


def test_from_source_every_part_is_a_git_tree_and_cmake_fetches_nothing(collection: Path) -> None:
    plan = planned(collection, "", SOURCE)
    assert (versions(plan)["onnxruntime"], option(plan, "onnxruntime", "provider")) == ("1.21.0", "cpu")
    assembly = assembled(plan)
    words = build_script(assembly)
    flags = next(word for word in words if word.startswith("CXXFLAGS="))
    assert "-march=x86-64-v3" in flags
    # A library that asks for an executable stack is not loaded by glibc 2.41.
    assert "LDFLAGS=-Wl,-z,noexecstack" in words
    assert "FETCHCONTENT_FULLY_DISCONNECTED=ON" in words
    folders = dict(word.removeprefix("FETCHCONTENT_SOURCE_DIR_").split("=") for word in words if "SOURCE_DIR_" in word)
    # Every part but the source itself has its folder, and a step before the compiler fills it.
    assert len(folders) == len(parts(assembly)) - 1 > 10
    commands = [line for step in steps(assembly) for line in step.commands]
    compiled = next(place for place, line in enumerate(commands) if "build.py" in line)
    for name, folder in folders.items():
        filled = [place for place, line in enumerate(commands) if f" {folder}/.git" in line]
        assert filled and max(filled) < compiled, name
    assert not any("cutlass" in url or "cudnn" in url for url in parts(assembly))
    assert not assembly.loose


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_from_source_what_it_needs_is_installed_and_no_wheel_of_itself(collection: Path, architecture: str) -> None:
    assembly = assembled(planned(collection, "", SOURCE, architecture=architecture))
    (needed,) = [
        item for block, item in assembly.inputs if block.name.startswith("onnxruntime") and isinstance(item, Wheels)
    ]
    names = {re.split("[=<>]", line)[0] for line in needed.requirements}
    assert {"coloredlogs", "flatbuffers", "numpy", "packaging", "protobuf", "sympy"} <= names
    assert "onnxruntime" not in names


def test_the_patches_of_the_source_are_applied_to_its_parts(collection: Path) -> None:
    commands = [line for step in steps(assembled(planned(collection, "", SOURCE))) for line in step.commands]
    patched = {Path(shlex.split(line)[-1]).name for line in commands if line.startswith("patch ")}
    assert patched == {"flatbuffers.patch", "onnx.patch", "protobuf_cmake.patch"}
    fetched = next(place for place, line in enumerate(commands) if "microsoft/onnxruntime" in line)
    assert all(place > fetched for place, line in enumerate(commands) if line.startswith("patch "))


def test_from_source_the_image_keeps_the_wheel_alone(collection: Path) -> None:
    assembly = assembled(planned(collection, "", SOURCE))
    assert {"git", "patch"} <= set(assembly.packages["builder"])
    assert not {"git", "patch", "g++"} & set(assembly.packages["final"])
    removed = [
        line for step in steps(assembly) for line in step.commands if line.startswith("rm -rf") and SCRATCH in line
    ]
    assert any("onnxruntime-parts" in line for line in removed)


def test_from_source_cuda_is_whole_and_the_code_is_for_the_gpu(collection: Path) -> None:
    plan = planned(collection, V100, SOURCE)
    assert in_range(versions(plan)["cuda"], ">=12,<13")
    assert (option(plan, "cuda", "obtain"), option(plan, "cudnn", "obtain")) != ("wheels", "wheels")
    assembly = assembled(plan)
    words = build_script(assembly)
    assert {"--use_cuda", "--cuda_home=/opt/cuda", "CMAKE_CUDA_ARCHITECTURES=70-real"} <= set(words)
    assert any("cutlass" in url for url in parts(assembly))
    with pytest.raises(ConflictError, match="unknown compute capability"):
        assembled(planned(collection, "vendor: nvidia, model: V100", SOURCE))


def test_from_source_migraphx_is_that_of_the_release(collection: Path) -> None:
    plan = planned(collection, MI250X, SOURCE)
    assert versions(plan)["migraphx"] == "6.4.1"
    assert {"--use_migraphx", "--migraphx_home=/opt/rocm"} <= set(build_script(assembled(plan)))


def test_a_tree_for_an_option_that_does_not_exist_is_named(collection: Path) -> None:
    built_in = Path(__file__).resolve().parents[3] / "building_blocks" / "onnxruntime.yaml"
    table = built_in.read_text("utf-8").replace("only: {provider: [cuda]}}", "only: {providers: [cuda]}}")
    (collection / "building_blocks" / "onnxruntime.yaml").write_text(table)
    catalog = Catalog([collection])
    with pytest.raises(InputError) as failure:
        assemble(planned(collection, "", SOURCE), catalog)
    assert "the tree cudnn_frontend of onnxruntime 1.21.0 is for providers" in str(failure.value)
    assert "the tree cutlass" in str(failure.value)
    assert "one of install, jobs, provider" in str(failure.value)


def test_from_source_there_is_no_tensorrt(collection: Path) -> None:
    with pytest.raises(ConflictError) as failure:
        planned(collection, V100, SOURCE, "onnxruntime.provider=tensorrt")
    # Which option to change, not a list of releases that none of these options allows.
    changes = [remedy.settings for remedy in failure.value.remedies]
    assert changes == [{"onnxruntime.provider": None}, {"onnxruntime.install": None}]
    assert "expected:" not in str(failure.value)


# CUDA's libraries alone


def test_cuda_and_cudnn_are_wheels_where_that_is_enough(collection: Path) -> None:
    plan = planned(collection, V100)
    assert (option(plan, "cuda", "obtain"), option(plan, "cudnn", "obtain")) == ("wheels", "wheels")
    # No compiler comes along, and no image of NVIDIA.
    assert "gnu" not in versions(plan)
    assembly = assembled(plan)
    assert assembly.builder.image.name == assembly.final.image.name == "ubuntu:24.04"
    assert not any(isinstance(item, Archive) for _, item in assembly.inputs)
    hashed = [item for block, item in assembly.inputs if block.name.startswith("cuda") and isinstance(item, Wheels)]
    assert any("nvidia-cublas-cu12==12.9.1.4 --hash=sha256:" in line for item in hashed for line in item.requirements)
    found = assembly.final.environment["LD_LIBRARY_PATH"].split(":")
    assert {"/opt/cuda/lib64", "/opt/cudnn/lib"} <= set(found)
    assert "XLA_FLAGS" not in assembly.final.environment


def test_cuda_is_whole_where_somebody_wants_more(collection: Path) -> None:
    assert option(planned(collection, V100, "cuda.obtain=archive"), "cuda", "obtain") == "archive"
    stack = "name: onnxruntime\ntitle: t\nblocks:\n  onnxruntime: {}\n  %s: {}\nrun: {command: [it]}\n"
    # The stack names CUDA itself, or has something that is compiled with it.
    for more in ("cuda", "nccl"):
        plan = planned(collection, V100, stack=stack % more)
        assert option(plan, "cuda", "obtain") == "auto", more
        assert option(plan, "cudnn", "obtain") == "wheels"


@pytest.mark.parametrize("name", ["cuda", "cudnn"])
def test_libraries_of_wheels_are_found_in_one_folder(name: str, tmp_path: Path) -> None:
    python = tmp_path / "python" / "lib" / "python3.12" / "site-packages" / "nvidia"
    for library in ("cublas/lib/libcublas.so.12", "cu13/lib/libcudart.so.13", "cudnn/lib/libcudnn.so.9"):
        (python / library).parent.mkdir(parents=True)
        (python / library).write_text("")
    version = {"cuda": "12.9.1", "cudnn": "9.10.2.21"}[name]
    others = {"cuda": chosen("cuda", "12.9.1", obtain="wheels"), "python": chosen("python", "3.12.3")}
    block, ctx = context(name, version, others=others, obtain="wheels")
    (link,) = [step for step in block.build(ctx) if any(line.startswith("ln -s") for line in step.commands)]
    script = "\n".join(link.commands).replace("/opt/", f"{tmp_path}/")
    subprocess.run(["sh", "-ec", script], check=True)
    (folder,) = block.runtime(ctx).copies
    found = {path.name: path.is_file() for path in (tmp_path / folder.removeprefix("/opt/")).iterdir()}
    assert found["libcudnn.so.9"]
    assert ("libcudart.so.13" in found) == (name == "cuda")


# TensorRT


@pytest.mark.parametrize("linked", [True, False])
def test_tensorrt_keeps_headers_and_shared_libraries(linked: bool, tmp_path: Path) -> None:
    top = tmp_path / "TensorRT-10.4.0.26"
    real = top / "targets" / "x86_64-linux-gnu" / "lib" if linked else top / "lib"
    for folder in (real, top / "include", top / "samples" / "data"):
        folder.mkdir(parents=True)
    for path in (real / "libnvinfer.so.10.4.0", real / "libnvinfer_static.a", top / "include" / "NvInfer.h"):
        path.write_text("")
    (real / "libnvinfer.so.10").symlink_to("libnvinfer.so.10.4.0")
    (top / "samples" / "data" / "big").write_text("")
    if linked:
        (top / "lib").symlink_to("targets/x86_64-linux-gnu/lib")
    block, ctx = context("tensorrt", "10.4.0.26", others={"cuda": chosen("cuda", "12.9.1")})
    (archive,) = block.inputs(ctx)
    assert isinstance(archive, Archive)
    assert archive.name == "TensorRT-10.4.0.26.Linux.x86_64-gnu.cuda-12.6.tar.gz"
    scratch, prefix = tmp_path / "scratch", tmp_path / "opt" / "tensorrt"
    scratch.mkdir()
    with tarfile.open(scratch / archive.name, "w:gz") as tar:
        tar.add(top, top.name)
    fetched = ctx.fetch(archive)
    lines = [line for step in block.build(ctx) for line in step.commands if line not in fetched]
    script = "\n".join(lines).replace(SCRATCH, str(scratch)).replace("/opt/tensorrt", str(prefix))
    subprocess.run(["sh", "-ec", script], check=True)
    assert {path.name for path in (prefix / "lib").iterdir()} == {"libnvinfer.so.10.4.0", "libnvinfer.so.10"}
    assert (prefix / "lib" / "libnvinfer.so.10").is_file()
    assert (prefix / "include" / "NvInfer.h").is_file()
    assert not any(scratch.iterdir())


def test_tensorrt_without_an_archive_for_cuda_and_architecture_is_a_conflict() -> None:
    others = {"cuda": chosen("cuda", "12.9.1")}
    block, ctx = context("tensorrt", "10.16.1.11", facts(architecture="aarch64"), others=others)
    with pytest.raises(ConflictError, match=r"no archive for CUDA 12\.9\.1 on aarch64"):
        block.inputs(ctx)


def test_licences_to_accept_are_those_of_what_is_installed(collection: Path) -> None:
    def licences(gpu: str, *settings: str) -> set[str]:
        promises = assembled(planned(collection, gpu, *settings)).capabilities.values()
        return {licence.name for each in promises for licence in each.licences}

    assert licences("") == licences(MI250X) == set()
    assert licences(T4) == {"nvidia-cuda-eula", "nvidia-cudnn"}
    assert licences(T4, "onnxruntime.provider=tensorrt") == {"nvidia-cuda-eula", "nvidia-cudnn", "nvidia-tensorrt"}


# ROCm


def test_migraphx_comes_from_amds_image_and_packages(collection: Path) -> None:
    assembly = assembled(planned(collection, MI250X))
    assert assembly.builder.image.name == assembly.final.image.name == "rocm/dev-ubuntu-24.04:7.2.4"
    assert "migraphx" in assembly.packages["final"]
    assert "/opt/rocm/lib" in assembly.final.environment["LD_LIBRARY_PATH"].split(":")
    with pytest.raises(ConflictError):
        planned(collection, MI250X, "ubuntu.version=20.04")


def test_rccl_goes_with_its_rocm(collection: Path) -> None:
    stack = "name: onnxruntime\ntitle: t\nblocks:\n  rccl: {}\nrun: {command: [it]}\n"
    found = versions(planned(collection, MI50, stack=stack))
    assert (found["rccl"], found["rocm"], found["ubuntu"]) == ("5.7.1", "5.7.1", "22.04")


# what is built and tested


@pytest.mark.parametrize("settings", [(), ("onnxruntime.provider=tensorrt",)])
@pytest.mark.parametrize("gpu", [P40, V100, T4, MI250X])
def test_steps_and_self_test_are_clean_for_shellcheck(collection: Path, gpu: str, settings: tuple[str, ...]) -> None:
    assembly = assembled(planned(collection, gpu, *(settings if gpu != MI250X else ())))
    for step in steps(assembly):
        script = "#!/bin/sh\n" + "\n".join(step.commands) + "\n"
        # "cd" without "|| exit": the formats join commands so that a failing one ends the step.
        words = [str(SHELLCHECK), "--norc", "--severity=warning", "--exclude=SC2164", "-"]
        done = subprocess.run(words, input=script, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
    done = subprocess.run([SHELLCHECK, "--norc", "-"], input=assembly.selftest, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_self_test_wants_the_provider_and_uses_it_where_there_is_a_gpu(collection: Path) -> None:
    for gpu, provider, device in (("", "CPU", ""), (V100, "CUDA", "/dev/nvidiactl"), (MI250X, "MIGraphX", "/dev/kfd")):
        script = assembled(planned(collection, gpu)).selftest
        assert f"{provider}ExecutionProvider" in script
        (line,) = [line for line in script.splitlines() if "onnx_step.py" in line]
        assert device in line


@pytest.mark.parametrize(
    ("missing", "passes"), [([], True), (["libcuda.so.1"], True), (["libcuda.so.1", "libcudnn.so.9"], False)]
)
def test_the_self_test_finds_missing_libraries_without_a_gpu(
    collection: Path, tmp_path: Path, missing: list[str], passes: bool
) -> None:
    selftest = assembled(planned(collection, V100)).selftest
    (line,) = [line for line in selftest.splitlines() if "libonnxruntime_providers_cuda.so" in line]
    capi = tmp_path / "lib" / "python3.12" / "site-packages" / "onnxruntime" / "capi"
    check = shlex.split(line)[-1].replace("/opt/python", str(tmp_path))
    words, path = ["sh", "-c", check], {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert subprocess.run(words, env=path, capture_output=True).returncode != 0, "there is no such library"
    capi.mkdir(parents=True)
    (capi / "libonnxruntime_providers_cuda.so").write_text("")
    told = "\n".join([f"\t{name} => not found" for name in missing] + ["\tlibc.so.6 => /lib/libc.so.6 (0x1)"])
    (tmp_path / "ldd").write_text(f"#!/bin/sh\ncat << 'END'\n{told}\nEND\n")
    (tmp_path / "ldd").chmod(0o755)
    assert (subprocess.run(words, env=path).returncode == 0) == passes


def test_the_program_takes_the_images_provider(collection: Path) -> None:
    files = [file for step in steps(assembled(planned(collection, V100))) for file in step.files]
    told = [file.text for file in files if file.target == "/opt/onnxruntime/share/provider"]
    assert told == ["CUDAExecutionProvider\n"]
