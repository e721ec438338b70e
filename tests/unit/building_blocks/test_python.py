"""Python, TensorFlow, Horovod and ONNX Runtime blocks: what a person finds in the recipe."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpcgen.api import default_catalog
from hpcgen.blocks.base import Chosen, Context, Facts, Situation
from hpcgen.blocks.options import block_options
from hpcgen.blocks.sources import Supply
from hpcgen.blocks.steps import Run, Wheels
from hpcgen.catalog.beside_blocks import read_wheel_list
from hpcgen.core.errors import ConflictError, UnknownNameError
from hpcgen.core.model.network import Internet, Mirrors, Network
from hpcgen.core.model.nodes import Cpu, Fabric, Gpu, Memory
from hpcgen.core.model.site import Partition
from hpcgen.planning.planner import make_plan

ROOT = Path(__file__).resolve().parents[3]
BLOCKS = ["python", "python_packages", "cmake", "bazel", "onednn", "tensorflow", "horovod", "onnxruntime"]
SKYLAKE = ("-march=skylake-avx512", "-mtune=skylake-avx512")


def facts(
    target: str = "skylake_avx512", gpu: Gpu | None = None, certificates: bool = False, architecture: str = "x86_64"
) -> Facts:
    network = Network(
        internet=Internet(login=True, compute=True),
        ca_certificates=["/etc/site/ca.crt"] if certificates else [],
        mirrors=Mirrors(),
    )
    partition = Partition(cpu=Cpu(target=target, cores=48), memory=Memory(total_gb=96), gpu=gpu)
    return Facts(partition, Fabric(kind="none"), None, network, architecture)


def chosen(name: str, version: str, **options: Any) -> Chosen:
    catalog = default_catalog()
    block = catalog.block(name)
    return Chosen(name, version, msgspec.convert(options, block.Options), catalog.releases(name)[version])


def stub(name: str, version: str) -> Chosen:
    """A block whose own table does not matter here."""
    from hpcgen.core.model.release import Release

    return Chosen(name, version, None, Release())


def context(
    me: Chosen,
    site: Facts,
    python: str = "3.10.12",
    base: tuple[str, str] = ("ubuntu", "22.04"),
    others: tuple[Chosen, ...] = (),
    flags: tuple[str, ...] = SKYLAKE,
) -> Context:
    tag = "cp" + "".join(python.split(".")[:2])

    def find(name: str, fallback: tuple[str, ...]) -> tuple[str, ...] | None:
        lists = default_catalog().beside
        listed = lists.wheels(name) or lists.wheels(f"{name}-{tag}")
        return listed.lines if listed is not None else None

    present = {c.name: c for c in (chosen("python", python), *others)}
    return Context(
        me=me,
        facts=site,
        others=present,
        base=chosen(*base),
        flags=flags,
        supply=Supply(site.network),
        find_wheels=find,
        find_file=default_catalog().beside.text_file,
    )


def steps(ctx: Context) -> list[Run]:
    return list(default_catalog().block(ctx.me.name)().build(ctx))


def commands(ctx: Context) -> list[str]:
    return [command for step in steps(ctx) for command in step.commands]


def written(ctx: Context) -> list[str]:
    """Lines of the files that the steps find in the builder."""
    return [line for step in steps(ctx) for file in step.files for line in file.text.splitlines()]


def words_of(ctx: Context, start: str) -> list[str]:
    """Words of the one command that has ``start``."""
    (found,) = [c for c in commands(ctx) if start in c]
    return shlex.split(found)


def tensorflow(version: str, bazel: str, site: Facts | None = None, **rest: Any) -> Context:
    options = rest.pop("options", {"install": "source"})
    others = (chosen("bazel", bazel), chosen("gnu", "11.4.0"), *rest.pop("others", ()))
    return context(chosen("tensorflow", version, **options), site or facts(), others=others, **rest)


# all blocks


@pytest.mark.parametrize("name", BLOCKS)
def test_release_tables_name_a_source_for_every_row(name: str) -> None:
    for version, row in default_catalog().releases(name).items():
        assert row.source is not None, f"{name} {version}"
        assert row.source.from_


@pytest.mark.parametrize("version", sorted(default_catalog().releases("tensorflow")))
def test_every_tensorflow_release_is_fetched_under_its_own_name(version: str) -> None:
    for archive in default_catalog().releases("tensorflow")[version].archives.values():
        assert archive.url.endswith(f"/v{version}/tensorflow-{version}.tar.gz")


def test_every_bazel_and_python_that_tensorflow_asks_for_exists() -> None:
    from hpcgen.blocks.requirements import in_range

    catalog = default_catalog()
    for version, row in catalog.releases("tensorflow").items():
        if row.archives:
            assert any(in_range(b, row.accepts["bazel"]) for b in catalog.releases("bazel")), version
            assert any(in_range(g, row.accepts["gnu"]) for g in catalog.releases("gnu")), version
        assert any(in_range(p, row.accepts["python"]) for p in catalog.releases("python")), version


# Python


def test_python_environment_gets_hashed_pip() -> None:
    ctx = context(chosen("python", "3.6.9"), facts(), python="3.6.9", base=("ubuntu", "18.04"))
    lines = commands(ctx)
    assert "/usr/bin/python3 -m venv /opt/python" in lines
    (install,) = [line for line in lines if " pip install " in line]
    assert "--require-hashes" in install
    assert any(line.startswith("pip==21.3.1 --hash=sha256:") for line in written(ctx))


def test_python_packages_of_the_distribution_only() -> None:
    block = default_catalog().block("python")()
    rocky = block.packages(context(chosen("python", "3.11"), facts(), python="3.11", base=("rockylinux", "9")))
    assert rocky.build == {"dnf": ["python3.11", "python3.11-devel"]}
    old = block.packages(context(chosen("python", "3.8.10"), facts(), python="3.8.10", base=("ubuntu", "20.04")))
    assert old.run == {"apt": ["python3", "python3-distutils"]}


@pytest.mark.parametrize("pin", ["h5py==3.11.0", "torch==2.4.1+cpu", "A.b_c-d==1!2.0rc1"])
def test_exact_pins_are_taken(pin: str) -> None:
    block_options(default_catalog().block("python_packages"), facts(), {"packages": [pin]}, {}, lambda name: None)


@pytest.mark.parametrize(
    "pin",
    [
        "h5py",
        "h5py>=3",
        "h5py==3.*",
        "--index-url=https://x",
        "-r x==1",
        "h5py==1 ; x",
        "git+https://x==1",
        "a==1\n",
        "a ==1",
    ],
)
def test_what_is_no_exact_pin_is_refused(pin: str) -> None:
    with pytest.raises(UnknownNameError):
        block_options(default_catalog().block("python_packages"), facts(), {"packages": [pin]}, {}, lambda name: None)


def test_packages_of_ones_own_are_installed_and_checked() -> None:
    ctx = context(chosen("python_packages", "1", packages=["h5py==3.11.0"]), facts())
    lines = commands(ctx)
    assert written(ctx) == ["h5py==3.11.0"]
    assert lines[-1] == "/opt/python/bin/python -m pip check"
    assert not steps(context(chosen("python_packages", "1"), facts()))


# tools for the builder


def test_cmake_stays_out_of_the_image() -> None:
    block = default_catalog().block("cmake")
    ctx = context(chosen("cmake", "3.31.10"), facts())
    assert block.build_only
    assert block().environment(ctx).paths == {}
    assert block().environment(ctx).build_paths == {"PATH": ["/opt/cmake/cmake/data/bin"]}
    install = words_of(ctx, "pip install")
    assert install[install.index("--target") + 1] == "/opt/cmake"
    assert "--require-hashes" in install


@pytest.mark.parametrize(("architecture", "ending"), [("x86_64", "linux-x86_64"), ("aarch64", "linux-arm64")])
def test_bazel_is_the_binary_for_the_architecture(architecture: str, ending: str) -> None:
    ctx = context(chosen("bazel", "6.5.0"), facts(architecture=architecture))
    (archive,) = default_catalog().block("bazel")().inputs(ctx)
    assert archive.url.endswith(ending)  # type: ignore[union-attr]


def test_bazel_without_a_known_binary_says_what_to_do() -> None:
    ctx = context(chosen("bazel", "3.1.0"), facts(architecture="aarch64"))
    with pytest.raises(ConflictError, match=r"3\.1\.0 for aarch64(.|\n)*install=pip"):
        default_catalog().block("bazel")().inputs(ctx)


def test_onednn_is_compiled_for_the_cpu() -> None:
    words = words_of(context(chosen("onednn", "2.7.3"), facts()), "CMAKE_INSTALL_PREFIX")
    assert "-DDNNL_ARCH_OPT_FLAGS=-march=skylake-avx512 -mtune=skylake-avx512" in words
    assert "-DCMAKE_INSTALL_PREFIX=/opt/onednn" in words


# TensorFlow


def test_a_cpu_with_avx_512_gets_the_wheel_of_the_newest_release() -> None:
    """oneDNN in it uses AVX-512; hours of Bazel are for who asks for them."""
    catalog = default_catalog()
    plan = make_plan(catalog, catalog.site("supermuc"), catalog.stack("tf"))
    found = plan.block("tensorflow")
    assert found is not None
    assert (found.version, found.options["install"]) == ("2.21.0", "pip")


def test_options_of_a_source_build_are_said_to_do_nothing_for_a_wheel() -> None:
    ctx = tensorflow("2.15.1", "6.1.0", options={"install": "pip", "copt": ["-O3"], "jobs": 4})
    said = default_catalog().block("tensorflow")().notices(ctx)
    assert said == [f"tensorflow.{name} is for tensorflow.install=source alone" for name in ("copt", "jobs")]


def test_cpu_flags_are_literally_in_the_bazel_command() -> None:
    ctx = tensorflow("2.15.1", "6.1.0", options={"install": "source", "copt": ["-mprefer-vector-width=512"], "jobs": 4})
    build = words_of(ctx, " build --config=opt")
    for word in ("--copt=-march=skylake-avx512", "--copt=-mtune=skylake-avx512", "--copt=-mprefer-vector-width=512"):
        assert word in build
    assert "--jobs=4" in build
    assert "--repo_env=TF_PYTHON_VERSION=3.10" in build


def test_configure_asks_nothing_and_its_native_flags_go() -> None:
    lines = commands(tensorflow("2.15.1", "6.1.0"))
    (configure,) = [line for line in lines if "./configure" in line]
    assert configure.endswith("./configure < /dev/null")
    words = shlex.split(configure)
    assert "CC_OPT_FLAGS=-Wno-sign-compare" in words
    assert "TF_NEED_CLANG=0" in words
    assert "TF_NEED_CUDA=0" in words
    assert "sed -i /march=native/d .tf_configure.bazelrc" in lines
    assert "march=native" not in " ".join(words_of(tensorflow("2.15.1", "6.1.0"), " build --config=opt"))


@pytest.mark.parametrize(
    ("version", "bazel", "target", "noaws", "mkl"),
    [
        ("2.3.1", "3.1.0", "build_pip_package", True, True),
        ("2.4.4", "3.1.0", "build_pip_package", True, False),
        ("2.16.2", "6.5.0", "build_pip_package", True, False),
        ("2.17.1", "6.5.0", "wheel", True, False),
        ("2.18.1", "6.5.0", "wheel", False, False),
    ],
)
def test_target_and_switches_follow_the_version(version: str, bazel: str, target: str, noaws: bool, mkl: bool) -> None:
    ctx = tensorflow(version, bazel)
    build = words_of(ctx, " build --config=opt")
    assert build[-1] == f"//tensorflow/tools/pip_package:{target}"
    assert ("--config=noaws" in build) is noaws
    assert ("--config=mkl" in build) is mkl
    assert ("--repo_env=WHEEL_NAME=tensorflow" in build) is (target == "wheel")
    (wheel,) = [
        line for line in commands(ctx) if line.endswith(" /opt/hpcgen/wheels/tensorflow") and "mkdir" not in line
    ]
    assert ("wheel_house/*.whl" in wheel) is (target == "wheel")
    assert words_of(ctx, "--find-links")[-2:] == ["/opt/hpcgen/wheels/tensorflow", "tensorflow"]


@pytest.mark.parametrize(("mkl", "version", "bazel"), [(True, "2.15.1", "6.1.0"), (False, "2.3.1", "3.1.0")])
def test_mkl_is_as_the_person_says(mkl: bool, version: str, bazel: str) -> None:
    build = words_of(tensorflow(version, bazel, options={"install": "source", "mkl": mkl}), " build --config=opt")
    assert ("--config=mkl" in build) is mkl


def test_bazel_trusts_the_sites_certificates() -> None:
    ctx = tensorflow("2.15.1", "6.1.0", facts(certificates=True))
    trust = "--host_jvm_args=-Djavax.net.ssl.trustStore=/etc/ssl/certs/java/cacerts"
    (build,) = [line for line in commands(ctx) if " bazel " in line]
    assert trust in build
    block = default_catalog().block("tensorflow")()
    assert "ca-certificates-java" in block.packages(ctx).build["apt"]
    assert not any("trustStore" in line for line in commands(tensorflow("2.15.1", "6.1.0")))


@pytest.mark.parametrize(("version", "bazel", "wanted"), [("2.12.1", "5.3.0", False), ("2.13.1", "5.3.0", True)])
def test_patchelf_is_there_when_the_wheel_needs_it(version: str, bazel: str, wanted: bool) -> None:
    packages = default_catalog().block("tensorflow")().packages(tensorflow(version, bazel))
    assert ("patchelf" in packages.build["apt"]) is wanted
    assert "patchelf" not in packages.run["apt"]


def test_needs_are_installed_hashed_and_without_tensorflow_itself() -> None:
    ctx = tensorflow("2.15.1", "6.1.0")
    (wheels,) = [i for i in default_catalog().block("tensorflow")().inputs(ctx) if isinstance(i, Wheels)]
    assert wheels.hashed
    assert any(line.startswith("numpy==1.") for line in wheels.requirements)
    assert not any(line.startswith("tensorflow==") for line in wheels.requirements)


def test_wheel_without_cuda_where_there_is_no_gpu() -> None:
    options = {"install": "pip"}
    plain = tensorflow("2.15.1", "6.1.0", facts("haswell"), options=options)
    assert any("tensorflow-cpu==2.15.1 --hash=sha256:" in line for line in written(plain))
    gpu = tensorflow("2.15.1", "6.1.0", facts(gpu=Gpu(vendor="nvidia", model="V100")), options=options)
    assert any(re.search(r"tensorflow==2\.15\.1 --hash=sha256:", line) for line in written(gpu))
    tests = default_catalog().block("tensorflow")().test(gpu)
    assert [test.device for test in tests if test.name == "GPU"] == ["gpu"]


def test_without_a_list_versions_are_pinned() -> None:
    ctx = tensorflow("2.10.1", "5.1.1", facts("haswell"), options={"install": "pip"})
    text = "\n".join(commands(ctx))
    assert "--require-hashes" not in text
    assert "protobuf<3.20" in written(ctx)


def test_gpu_build_needs_the_capability() -> None:
    others = (stub("cuda", "12.2.2"), stub("cudnn", "8.9.7"), stub("nccl", "2.19.3"))
    known = tensorflow(
        "2.15.1", "6.1.0", facts(gpu=Gpu(vendor="nvidia", model="V100", capability="7.0")), others=others
    )
    words = words_of(known, "./configure")
    assert "TF_CUDA_COMPUTE_CAPABILITIES=7.0" in words
    assert "TF_CUDA_VERSION=12.2" in words
    assert "--config=cuda" in words_of(known, " build --config=opt")
    with pytest.raises(ConflictError, match=r"gpu\.capability"):
        commands(tensorflow("2.15.1", "6.1.0", facts(gpu=Gpu(vendor="nvidia", model="V100")), others=others))


def test_hub_image_and_its_packages() -> None:
    block = default_catalog().block("tensorflow")()
    ctx = tensorflow("2.12.0", "5.3.0", options={"install": "hub"}, python="3.8.10", base=("ubuntu", "20.04"))
    image = block.base_image(ctx, "final")
    assert image is not None
    assert image.name == "tensorflow/tensorflow:2.12.0"
    assert any("include-system-site-packages = true" in line for line in commands(ctx))
    with pytest.raises(ConflictError, match=r"2\.15\.1"):
        block.base_image(tensorflow("2.15.1", "6.1.0", options={"install": "hub"}), "final")


@pytest.mark.parametrize("flag", ["-O3", "-mprefer-vector-width=512"])
def test_compiler_flags_are_taken(flag: str) -> None:
    block_options(default_catalog().block("tensorflow"), facts(), {"copt": [flag]}, {}, lambda name: None)


@pytest.mark.parametrize("flag", ["O3", "-O3 -g", "--x$(y)", "-I`x`", "-O3\n"])
def test_what_is_no_compiler_flag_is_refused(flag: str) -> None:
    with pytest.raises(UnknownNameError):
        block_options(default_catalog().block("tensorflow"), facts(), {"copt": [flag]}, {}, lambda name: None)


def test_onednn_is_switched_on_where_it_is_off_by_itself() -> None:
    block = default_catalog().block("tensorflow")()
    for version, bazel, on in (("2.4.4", "3.1.0", False), ("2.6.5", "3.7.2", True), ("2.15.1", "6.1.0", False)):
        both = block.environment(tensorflow(version, bazel)).both
        assert both == ({"TF_ENABLE_ONEDNN_OPTS": "1"} if on else {}), version


# Horovod


def horovod(site: Facts, *others: Chosen, **options: Any) -> Context:
    first = (chosen("tensorflow", "2.15.1", install="pip"), chosen("gnu", "12.3.0"))
    return context(chosen("horovod", "0.28.1", **options), site, others=(*first, *others))


def test_horovod_is_compiled_by_hash_against_what_is_there() -> None:
    ctx = horovod(facts(), stub("mpi", "4.2.3"))
    words = words_of(ctx, "pip wheel")
    for word in ("HOROVOD_WITH_MPI=1", "HOROVOD_WITHOUT_GLOO=1", "HOROVOD_CPU_OPERATIONS=MPI"):
        assert word in words
    assert "HOROVOD_BUILD_ARCH_FLAGS=-march=skylake-avx512 -mtune=skylake-avx512" in words
    assert not any(word.startswith("HOROVOD_GPU") for word in words)
    assert {"--no-deps", "--require-hashes", "--no-binary"} <= set(words_of(ctx, "pip download"))
    release = default_catalog().releases("horovod")["0.28.1"]
    assert any(f"horovod==0.28.1 --hash=sha256:{release.values['sdist']}" in line for line in written(ctx))


def test_horovod_on_gpus_uses_nccl() -> None:
    site = facts(gpu=Gpu(vendor="nvidia", model="V100", capability="7.0"))
    ctx = horovod(site, stub("mpi", "4.2.3"), stub("cuda", "12.2.2"), stub("nccl", "2.19.3"))
    words = words_of(ctx, "pip wheel")
    for word in ("HOROVOD_GPU=CUDA", "HOROVOD_GPU_OPERATIONS=NCCL", "HOROVOD_BUILD_CUDA_CC_LIST=70"):
        assert word in words


@pytest.mark.parametrize(
    ("options", "gpu", "wanted"),
    [
        ({}, None, {"mpi"}),
        ({"cpu_operations": "gloo"}, None, set()),
        ({"cpu_operations": "gloo"}, Gpu(vendor="nvidia", model="V100"), {"cuda", "nccl"}),
        ({"gpu_operations": "mpi"}, Gpu(vendor="nvidia", model="V100"), {"mpi", "cuda"}),
        ({"gpu_operations": "none"}, Gpu(vendor="nvidia", model="V100"), {"mpi"}),
    ],
)
def test_horovod_needs_what_it_is_built_for(options: dict[str, Any], gpu: Gpu | None, wanted: set[str]) -> None:
    block = default_catalog().block("horovod")
    situation = Situation(facts(gpu=gpu), msgspec.convert(options, block.Options))
    active = {need.name for need in block.needs if need.when is None or need.when(situation)}
    assert active & {"mpi", "cuda", "nccl", "oneccl"} == wanted


def test_horovod_keeps_what_breaks_it_away() -> None:
    ranges = {need.name: need.versions for need in default_catalog().block("horovod").needs}
    assert ranges["gnu"] == ">=8,<13"
    assert ranges["cmake"] == ">=3.13,<4"
    assert ranges["tensorflow"].endswith("<2.16")


def test_training_step_reaches_the_image_whole() -> None:
    text = default_catalog().beside.text_file("horovod_step.py")
    ast.parse(text, feature_version=(3, 6))
    ctx = horovod(facts(), stub("mpi", "4.2.3"))
    assert (text, "/opt/horovod/share/step.py") in [(file.text, file.target) for s in steps(ctx) for file in s.files]
    assert default_catalog().block("horovod")().runtime(ctx).copies == ("/opt/horovod",)


def test_stack_runs_what_the_block_writes() -> None:
    stack = default_catalog().stack("tf-horovod")
    assert stack.run.command == ["python3", "/opt/horovod/share/step.py"]
    assert stack.run.mpi
    assert next(iter(stack.blocks)) == "tensorflow"


# ONNX Runtime


def onnxruntime(version: str, python: str = "3.12.3", **rest: Any) -> Context:
    return context(chosen("onnxruntime", version), facts(**rest), python=python, base=("ubuntu", "24.04"))


def test_onnxruntime_is_installed_by_hash_without_numpy_2_where_that_breaks_it() -> None:
    for version, numpy in (("1.31.1", "2"), ("1.18.1", "1")):
        lines = written(onnxruntime(version))
        assert any(f"onnxruntime=={version} --hash=sha256:" in line for line in lines)
        assert any(f"numpy=={numpy}." in line for line in lines)
        assert any("--require-hashes" in line for line in commands(onnxruntime(version)))


def test_onnxruntime_for_another_architecture_has_no_hash_of_x86() -> None:
    lines = written(onnxruntime("1.18.1", architecture="aarch64"))
    assert not any("sha256" in line for line in lines)
    assert "numpy<2" in lines


def test_onnxruntime_has_a_list_for_every_python_of_a_base_that_it_accepts() -> None:
    from hpcgen.blocks.requirements import in_range

    catalog = default_catalog()
    # Ubuntu's and Debian's own; the oldest release for a Python is not the only one that fits it.
    newest = {"3.6.9": "1.10.0", "3.8.10": "1.19.2", "3.9": "1.19.2", "3.10.12": "1.23.2", "3.12.3": "1.32.0"}
    rows = catalog.releases("onnxruntime")
    for python, wanted in newest.items():
        fits = [version for version, row in rows.items() if in_range(python, row.accepts["python"])]
        best = max(fits, key=lambda version: tuple(map(int, version.split("."))))
        assert best == wanted
        assert catalog.beside.wheels(f"onnxruntime-{best}-cp{''.join(python.split('.')[:2])}")


def test_unknown_provider_is_refused() -> None:
    with pytest.raises(UnknownNameError):
        block_options(default_catalog().block("onnxruntime"), facts(), {"provider": "rocm"}, {}, lambda name: None)


def test_inference_step_reaches_the_image_whole_and_is_the_stacks_command() -> None:
    text = default_catalog().beside.text_file("onnx_step.py")
    ast.parse(text, feature_version=(3, 6))
    ctx = onnxruntime("1.31.1")
    assert (text, "/opt/onnxruntime/share/onnx_step.py") in [(f.text, f.target) for s in steps(ctx) for f in s.files]
    assert default_catalog().block("onnxruntime")().runtime(ctx).copies == ("/opt/onnxruntime",)
    stack = default_catalog().stack("onnxruntime")
    assert stack.run.command == ["python3", "/opt/onnxruntime/share/onnx_step.py"]
    assert not stack.run.mpi


# wheel lists

LISTS = sorted((ROOT / "building_blocks" / "wheels").glob("*.txt"))
OURS_NAMES = r"(pip|cmake|cuda|cudnn|horovod|onnxruntime(-gpu|-migraphx)?|tensorflow(-cpu)?)-\d"
OURS = [path for path in LISTS if re.match(OURS_NAMES, path.name)]


def by_python(path: Path) -> list[tuple[str, ...]]:
    """The lines of a list, for each Python of one for several."""
    read = read_wheel_list(path, path.name)
    return [each.lines for each in read.by_python.values()] or [read.lines]


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_wheel_lists_are_exact_hashed_sorted_and_name_no_host(path: Path) -> None:
    text = path.read_text("utf-8")
    assert "://" not in text
    for lines in by_python(path):
        names = []
        for line in lines:
            match = re.fullmatch(r"([a-z0-9][a-z0-9-]*)==[0-9][0-9a-z.+!]* --hash=sha256:[0-9a-f]{64}", line)
            assert match, line
            names.append(match[1])
        assert names == sorted(set(names))


@pytest.mark.parametrize("path", [p for p in OURS if p.name.startswith("tensorflow")], ids=lambda path: path.name)
def test_tensorflow_lists_hold_what_must_be_held_back(path: Path) -> None:
    for lines in by_python(path):
        versions = dict(line.split(" ")[0].split("==") for line in lines)
        named = versions.get("tensorflow", versions.get("tensorflow-cpu", versions.get("tensorflow-cpu-aws", "")))
        major, minor = (int(part) for part in named.split(".")[:2])
        assert int(versions["setuptools"].split(".")[0]) < 81
        if (major, minor) <= (2, 17):
            assert versions["numpy"].startswith("1.")
        if (major, minor) <= (2, 11):
            assert tuple(map(int, versions["protobuf"].split(".")[:2])) < (3, 20)
