"""Images that hpcgen did not build are read as they lie: what is in them, by which file; made to do harm or not."""

from __future__ import annotations

import json
import os
import re
import resource
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from hpcgen.core.errors import HpcgenError, InputError
from hpcgen.core.model.image_facts import ImageFacts, Shown
from hpcgen.images.reading.facts import image_facts
from hpcgen.images.reference import parse_image
from tests.conftest import Command
from tests.helpers.trees import INTEL, OPENMPI, library
from tests.unit.images.test_images import image_of, layer, oci_archive
from tests.unit.images.test_packages import STATUS

GNU = "usr/lib/x86_64-linux-gnu"
SITE = "usr/lib/python3/dist-packages"
KINDS = ["directory", "image.tar", "image.tar.gz", "in-a-folder.tar", "oci-archive"]
GLIBC = b"\0GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\n\0"
MPICH = b"\0x/mpich-4.0.2/src/a.c\0cmd=init pmi_version=%d\0"
MPI_H = b"#define OMPI_MAJOR_VERSION 4\n#define OMPI_MINOR_VERSION 1\n#define OMPI_RELEASE_VERSION 6\n"
VERBS = b"\x001.17.0\0vrb_open_ep\0psm3\0cxi\0"
"""A name of a function, and names of providers in a list."""
VERSION_PY = """from typing import Optional
__version__ = '2.5.1+cu124'
debug = False
cuda: Optional[str] = '12.4'
hip: Optional[str] = None
"""


def with_section(data: bytes, name: str, content: bytes) -> bytes:
    """A library with one more section."""
    names = b"\0.shstrtab\0" + name.encode() + b"\0"
    place = len(data) + -len(data) % 8
    whole = data.ljust(place, b"\0") + content + names
    table = len(whole) + -len(whole) % 8
    rows = [bytes(64)]
    for at, offset, size in ((1, place + len(content), len(names)), (11, place, len(content))):
        rows.append(struct.pack("<IIQQQQIIQQ", at, 1, 0, 0, offset, size, 0, 0, 8, 0))
    whole = whole.ljust(table, b"\0") + b"".join(rows)
    return whole[:40] + struct.pack("<Q", table) + whole[48:58] + struct.pack("<HHH", 64, 3, 1) + whole[64:]


def fat_binary(*entries: tuple[int, int]) -> bytes:
    """A container of code: kinds (1: PTX, 2: machine code) and compute capabilities."""
    rows = b"".join(
        struct.pack("<HHIQIIHHI", kind, 0x101, 64, 32, 0, 0, 0, 0, capability).ljust(96, b"\0")
        for kind, capability in entries
    )
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(rows)) + rows


def program(loader: str, level: int = 0) -> bytes:
    """A program that asks for a loader, and for a level of x86-64."""
    note = struct.pack("<III4sIIQ", 4, 16, 5, b"GNU\0", 0xC0008002, 4, level)
    text = loader.encode() + b"\0"
    at = 64 + 2 * 56
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0
    )
    rows = struct.pack("<IIQQQQQQ", 3, 4, at, 0, 0, len(text), len(text), 1)
    rows += struct.pack("<IIQQQQQQ", 0x6474E553, 4, at + len(text), 0, 0, len(note), len(note), 8)
    return head + rows + text + note


def torch_library() -> bytes:
    code = fat_binary((2, 70), (2, 90), (1, 90)) + bytes(24) + fat_binary((2, 120))
    return with_section(library("libtorch_cuda.so"), ".nv_fatbin", code)


TREE: dict[str, bytes | str] = {
    "etc/os-release": "../usr/lib/os-release",
    "usr/lib/os-release": b'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    "bin": "usr/bin",
    "usr/bin/sh": "dash",
    "usr/bin/dash": program("/lib64/ld-linux-x86-64.so.2", 4),
    f"{GNU}/libc.so.6": library("libc.so.6", GLIBC),
    f"{GNU}/libstdc++.so.6": "libstdc++.so.6.0.30",
    f"{GNU}/libstdc++.so.6.0.30": library("libstdc++.so.6", b"\0GLIBCXX_3.4.9\0GLIBCXX_3.4.30\0GLIBCXX_3.4\0"),
    "var/lib/dpkg/status": STATUS.encode() + b"\nPackage: libucx0\nStatus: install ok installed\nVersion: 1.13.1-1\n",
    f"{GNU}/libmpich.so.12": "libmpich.so.12.2.2",
    f"{GNU}/libmpich.so.12.2.2": library("libmpich.so.12", MPICH, needed=("libucp.so.0", "libc.so.6")),
    f"{GNU}/openmpi/lib/libmpi.so.40": library("libmpi.so.40", OPENMPI),
    f"{GNU}/openmpi/lib/openmpi3/mca_pmix_ext3x.so": b"",
    f"{GNU}/openmpi/lib/openmpi3/mca_mtl_ofi.so": b"",
    f"{GNU}/openmpi/include/mpi.h": MPI_H,
    "opt/intel/lib/libmpi.so.12": library("libmpi.so.12", INTEL + b"\0libpmix.so\0"),
    f"{GNU}/libfabric.so.1": library("libfabric.so.1", VERBS, needed=("libpsm2.so.2",)),
    f"{GNU}/libucp.so.0": library("libucp.so.0"),
    f"{GNU}/ucx/libuct_ib.so.0": b"",
    f"{GNU}/libibverbs.so.1.14.44.0": b"",
    f"{GNU}/libibverbs/libmlx5-rdmav34.so": "../libmlx5.so.1.24.44.0",
    f"{GNU}/libmlx5.so.1.24.44.0": b"",
    "usr/bin/python3.11": program("/lib64/ld-linux-x86-64.so.2") + b"\x003.11.2\x003.2.0\0",
    "usr/bin/python3": "python3.11",
    f"{SITE}/torch-2.5.1+cu124.dist-info/METADATA": b"",
    f"{SITE}/torch/version.py": VERSION_PY.encode(),
    f"{SITE}/torch/lib/libtorch_cuda.so": torch_library(),
    f"{SITE}/torch/lib/libtorch_python.so": library("libtorch_python.so", b"\0sm_70 sm_90 compute_90\0"),
    f"{SITE}/nvidia_cudnn_cu12-9.1.0.70.dist-info/METADATA": b"",
    f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9": library("libcudnn.so.9"),
    f"{SITE}/nvidia/nccl/lib/libnccl.so.2": library("libnccl.so.2", b"\0NCCL version 2.21.5+cuda12.4\0"),
    f"{SITE}/torch/lib/libgomp-24e2ab19.so.1.0.0": library("libgomp-24e2ab19.so.1.0.0"),
    "opt/conda/conda-meta/llvm-openmp-18.1.8-0.json": b'{"name": "llvm-openmp", "version": "18.1.8"}',
    "opt/conda/lib/libomp.so": library("libomp.so"),
    "opt/conda/lib/libgomp.so.1": "libomp.so",
    "opt/conda/lib/libgomposite.so": library("libgomposite.so"),
    "opt/plugin/lib/libnccl-net.so": library("libnccl-net.so"),
    "usr/local/cuda-12.4/compat/libcuda.so.550.54.15": b"",
    "usr/local/cuda-12.4/lib64/libcudart.so.12.4.127": b"",
    "usr/bin/gcc-12": program("/lib64/ld-linux-x86-64.so.2") + b"\x0012.2.0\0",
    "usr/local/share/jupyter/kernels/ir/kernel.json": b"{}",
}


def written(root: Path, tree: dict[str, bytes | str]) -> Path:
    for name, content in tree.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            place.write_bytes(content)
        else:
            place.symlink_to(content)
    return root


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("tree") / "root", TREE)


def read(image: Path) -> ImageFacts:
    return image_facts(parse_image(str(image)))


def read_as(kind: str, tree: Path, folder: Path) -> ImageFacts:
    if kind == "oci-archive":
        # The upper layer takes one away, and puts others in the place of those below.
        lower = {**TREE, f"{SITE}/old-1.dist-info/METADATA": b"", "usr/lib/os-release": b"ID=other\n"}
        upper = {f"{SITE}/.wh.old-1.dist-info": b"", "usr/lib/os-release": TREE["usr/lib/os-release"]}
        return read(oci_archive(folder / "image.oci", [layer({**lower}), layer({**upper})]))
    (folder / "x").mkdir()
    (folder / "x" / "root").symlink_to(tree)
    return read(image_of(kind, tree) if kind == "directory" else image_of(kind, (folder / "x" / "root").resolve()))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_image_says_the_same(kind: str, tree: Path, tmp_path: Path) -> None:
    facts, folder = read_as(kind, tree, tmp_path), read(tree)
    for name in (
        "system",
        "mpi",
        "fabric",
        "gpu",
        "openmp",
        "python",
        "frameworks",
        "compilers",
        "jupyter",
        "packages",
        "unread",
    ):
        assert getattr(facts, name) == getattr(folder, name), name
    assert facts.folders[0].files == folder.folders[0].files


def test_the_system_is_what_its_shell_and_libraries_say(tree: Path) -> None:
    system = read(tree).system
    assert system.distribution == Shown("debian", "/usr/lib/os-release")
    assert system.release is not None and system.release.value == "12"
    assert system.architecture == Shown("amd64", "/usr/bin/dash")
    assert system.c_library is not None and system.c_library.name == "glibc"
    assert system.c_library.version == Shown("2.36", f"/{GNU}/libc.so.6")
    assert system.cxx == Shown("GLIBCXX_3.4.30", f"/{GNU}/libstdc++.so.6.0.30")
    assert system.cpu == [Shown("x86-64-v3", "/usr/bin/dash")]


def test_an_image_with_musl_is_not_taken_for_one_with_glibc(tmp_path: Path) -> None:
    # Debian's package of musl lies beside glibc, and gcompat's glibc beside musl: the shell decides.
    both: dict[str, bytes | str] = {
        "lib/ld-musl-x86_64.so.1": library("libc.musl", b"\x001.2.4\0"),
        f"{GNU}/libc.so.6": library("libc.so.6", GLIBC),
        "lib/apk/db/installed": b"P:musl\nV:1.2.4-r2\n\nP:busybox\nV:1.36.1-r5\n",
        "bin/busybox": program("/lib/ld-musl-x86_64.so.1"),
        "bin/sh": "/bin/busybox",
    }
    facts = read(written(tmp_path / "root", both))
    library_of = facts.system.c_library
    assert library_of is not None and library_of.name == "musl"
    assert library_of.version == Shown("1.2.4", "/lib/ld-musl-x86_64.so.1")
    assert [(each.name, each.version) for each in facts.packages] == [("busybox", "1.36.1-r5"), ("musl", "1.2.4-r2")]
    assert facts.system.distribution is None


def test_each_mpi_is_told_with_what_its_ranks_understand(tree: Path) -> None:
    found = {each.name: each for each in read(tree).mpi}
    assert {name: each.version.value for name, each in found.items() if each.version} == {
        "mpich": "4.0.2",
        "openmpi": "4.1.6",
        "intel": "2021.11",
    }
    assert {name: (each.abi, [shown.value for shown in each.pmi]) for name, each in found.items()} == {
        "mpich": ("mpich", ["pmi"]),
        "openmpi": ("openmpi", ["pmix"]),
        "intel": ("mpich", ["pmix"]),
    }
    assert found["mpich"].soname == "libmpich.so.12" and found["mpich"].file == f"/{GNU}/libmpich.so.12.2.2"
    assert [shown.value for shown in found["mpich"].uses] == ["libucp.so.0"]
    assert [shown.value for shown in found["openmpi"].uses] == ["mtl_ofi"]
    assert found["openmpi"].header == Shown("4.1.6", f"/{GNU}/openmpi/include/mpi.h")
    assert found["mpich"].header is None


def test_open_mpi_with_its_components_inside_is_told_by_pmix(tmp_path: Path) -> None:
    tree: dict[str, bytes | str] = {
        "opt/lib/libmpi.so.40": library("libmpi.so.40", OPENMPI),
        "opt/lib/libopen-pal.so.40": library("libopen-pal.so.40", b"\0pmix3x\0"),
        "usr/lib/os-release": b"ID=x\n",
    }
    (found,) = read(written(tmp_path / "root", tree)).mpi
    assert found.pmi == [Shown("pmix", "/opt/lib/libopen-pal.so.40")]


def test_providers_are_those_that_are_there_not_those_that_are_named(tree: Path) -> None:
    fabric = read(tree).fabric
    assert [each.value for each in fabric.providers] == ["psm2", "verbs"]
    assert [each.value for each in fabric.transports] == ["ib"] and [each.value for each in fabric.verbs] == ["mlx5"]
    releases = {each.name: each.version.value for each in fabric.libraries if each.version}
    assert releases == {"libfabric": "1.17.0", "ucx": "1.13.1", "rdma-core": "44.0"}


def test_code_for_gpus_is_counted_in_the_code_itself(tree: Path) -> None:
    gpu = read(tree).gpu
    code = {(each.by, each.file.rsplit("/", 1)[-1]): (each.cubins, each.ptx) for each in gpu.code}
    assert code[("code", "libtorch_cuda.so")] == (["7.0", "9.0", "12.0"], ["9.0"])
    assert code[("list", "libtorch_python.so")] == (["7.0", "9.0"], ["9.0"])
    releases = {each.name: each.version.value if each.version else None for each in gpu.libraries}
    assert releases == {
        "cuda": "12.4.127",
        "cudnn": "9.1.0.70",
        "nccl": "2.21.5",
        "nccl-plugin": None,
        "compat": "550.54.15",
    }


def test_python_frameworks_compilers_and_jupyter_are_told(tree: Path) -> None:
    facts = read(tree)
    assert [(each.file, each.version) for each in facts.python] == [
        ("/usr/bin/python3.11", Shown("3.11.2", "/usr/bin/python3.11"))
    ]
    (torch,) = facts.frameworks
    assert torch.version is not None and torch.version.value == "2.5.1+cu124" and torch.variant == "cuda"
    assert torch.built_with == Shown("12.4", f"/{SITE}/torch/version.py")
    assert [(each.name, each.version.value) for each in facts.compilers if each.version] == [("gcc", "12.2.0")]
    assert [each.name for each in facts.jupyter] == ["kernel ir"]
    assert [(each.name, each.file, each.version.value if each.version else "") for each in facts.openmp] == [
        ("libgomp", f"/{SITE}/torch/lib/libgomp-24e2ab19.so.1.0.0", ""),
        ("libomp", "/opt/conda/lib/libomp.so", "18.1.8"),
    ]


def test_a_package_that_points_to_a_compiler_does_not_say_its_release(tmp_path: Path) -> None:
    stanza = "Package: {0}\nStatus: install ok installed\nVersion: {1}\n"
    packages = {"clang": "1:14.0-55.7~deb12u1", "clang-14": "1:14.0.6-12"}
    status = "\n".join(stanza.format(*each) for each in packages.items())
    tree: dict[str, bytes | str] = {"usr/lib/llvm-14/bin/clang": b"", "var/lib/dpkg/status": status.encode()}
    (compiler,) = read(written(tmp_path / "root", tree)).compilers
    assert compiler.version is not None and compiler.version.value == "14.0.6"


VARIANTS = {
    "cpu": ("__version__ = '2.5.1+cpu'\ncuda: Optional[str] = None\nhip: Optional[str] = None\n", "cpu", None),
    "rocm": (
        "__version__ = '2.5.1'\ncuda: Optional[str] = None\nhip: Optional[str] = '6.2.41133'\n",
        "rocm",
        "6.2.41133",
    ),
    "other": ("__version__ = '2.5.1'\n", None, None),
}


@pytest.mark.parametrize(("text", "variant", "release"), VARIANTS.values(), ids=VARIANTS)
def test_a_framework_is_for_what_it_says_itself(
    text: str, variant: str | None, release: str | None, tmp_path: Path
) -> None:
    root = written(tmp_path / "r", {"opt/v/torch/version.py": text.encode(), "usr/lib/os-release": b"ID=x\n"})
    (torch,) = read(root).frameworks
    assert torch.variant == variant and (torch.built_with and torch.built_with.value) == release


# As in the wheels of TensorFlow 2.10.1 and 2.21.0; the last as a mapping.
BUILD_INFO = {
    "[('is_cuda_build', False), ('is_rocm_build', False), ('is_tensorrt_build', False)]": ("cpu", None),
    "[('cuda_version', '12.5.1'), ('is_cuda_build', True), ('is_rocm_build', False)]": ("cuda", "12.5.1"),
    "{'is_cuda_build': False, 'is_rocm_build': True, 'rocm_version': '6.2'}": ("rocm", "6.2"),
    "[]": (None, None),
}


@pytest.mark.parametrize(("text", "told"), BUILD_INFO.items())
def test_tensorflow_says_what_it_was_built_for(text: str, told: tuple[str | None, str | None], tmp_path: Path) -> None:
    info = f"import collections\n\nbuild_info = collections.OrderedDict({text})\n".encode()
    place = "opt/v/tensorflow/python/platform/build_info.py"
    (each,) = read(written(tmp_path / "r", {place: info, "usr/lib/os-release": b"ID=x\n"})).frameworks
    assert (each.variant, each.built_with and each.built_with.value) == told


def test_what_a_container_does_is_said_by_configuration_or_by_files_of_engines(tmp_path: Path, tree: Path) -> None:
    config = {
        "Entrypoint": ["/opt/nvidia/entrypoint.sh"],
        "Cmd": None,
        "User": "1000",
        "Env": ["PATH=/usr/bin", "HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyzabcdefgh"],
        "ExposedPorts": {"8888/tcp": {}},
        "Labels": {"com.nvidia.x": "1"},
    }
    archive = oci_archive(tmp_path / "a.oci", [layer({"usr/lib/os-release": b"ID=x\n"})], config=config)
    told = read(archive).settings
    assert told.entrypoint == ["/opt/nvidia/entrypoint.sh"] and told.command == [] and told.user == "1000"
    assert told.ports == ["8888/tcp"] and told.environment == {"HF_TOKEN": "…", "PATH": "/usr/bin"}
    assert told.labels == {"com.nvidia.x": "1"} and told.shown_by == ["the image's configuration"]
    scripts: dict[str, bytes | str] = {
        ".singularity.d/runscript": b'#!/bin/sh\nOCI_ENTRYPOINT=\'"/entry" "a b"\'\nOCI_CMD=\'"bash"\'\n',
        ".singularity.d/env/10-docker2singularity.sh": b'#!/bin/sh\nexport A="1"\nexport PATH="$PATH:/x"\n',
        "usr/lib/os-release": b"ID=x\n",
    }
    told = read(written(tmp_path / "sandbox", scripts)).settings
    assert told.entrypoint == ["/entry", "a b"] and told.command == ["bash"]
    assert told.environment == {"A": "1"} and told.user is None and told.ports is None
    assert read(tree).settings.entrypoint is None


# What the commands print.


def test_inspect_shows_contents_as_text_json_and_bill_of_materials(tree: Path, hpcgen: Command) -> None:
    done = hpcgen("inspect", str(tree))
    assert done.returncode == 0, done.stderr
    assert re.search(r"MPI +mpich 4\.0\.2, libmpich\.so\.12, ranks by pmi +/usr/lib", done.stdout)
    assert re.search(r"GPU code for +7\.0 9\.0 12\.0; PTX 9\.0 ", done.stdout)
    told = json.loads(hpcgen("inspect", str(tree), "--json").stdout)
    assert told["image_facts"] == 1 and told["image"]["kind"] == "directory"
    assert told["facts"]["frameworks"][0]["variant"] == "cuda"
    bill = hpcgen("inspect", str(tree), "--sbom").stdout
    document = json.loads(bill)
    addresses = {each["name"]: each["purl"] for each in document["components"] if "purl" in each}
    assert addresses["libucx0"] == "pkg:deb/debian/libucx0@1.13.1-1?distro=debian-12"
    assert addresses["torch"].startswith("pkg:pypi/torch@2.5.1")
    assert addresses["mpich"] == "pkg:generic/mpich@4.0.2"
    assert bill == hpcgen("inspect", str(tree), "--sbom").stdout
    assert_valid(bill)


def assert_valid(bill: str) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill) is None


def test_an_archive_is_held_against_a_machine_though_no_engine_starts_it(tmp_path: Path, hpcgen: Command) -> None:
    files = {"etc/os-release": b"ID=debian\nVERSION_ID=12\n", "bin/sh": program("/lib64/ld-linux-x86-64.so.2")}
    image = f"oci-archive:{oci_archive(tmp_path / 'image.oci', [layer({**files})])}"
    done = hpcgen("contract", "--image", image, "--site", "supermuc", "--json")
    assert done.returncode == 0, done.stderr
    outcomes = {each["name"]: each["outcome"] for each in json.loads(done.stdout)}
    assert (outcomes["policy"], outcomes["CPU"]) == ("holds", "holds")
    assert "no engine starts" in hpcgen("job", image, "--site", "supermuc", "--", "true").stderr


def test_a_name_in_a_registry_is_told_how_to_bring_it(hpcgen: Command) -> None:
    done = hpcgen("run", "docker://example.org/pytorch:24.10", "--site", "workstation")
    assert done.returncode == 3 and "podman pull example.org/pytorch:24.10" in done.stderr


# What was made to do harm.


def test_programs_that_end_at_any_kilobyte_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    names = [name for name, data in TREE.items() if isinstance(data, bytes) and data[:4] == b"\x7fELF"]
    whole = {name: bytes(TREE[name]).ljust(8 * 1024, b"\0") for name in names}  # type: ignore[arg-type]
    whole[f"{SITE}/torch/lib/libtorch_cuda.so"] = with_section(
        library("libtorch_cuda.so"), ".nv_fatbin", fat_binary(*[(2, 90)] * 80)
    )
    for length in range(64, 9 * 1024, 1024):
        cut: dict[str, bytes | str] = {name: data[:length] for name, data in whole.items()}
        read(written(tmp_path / str(length), {**cut, "usr/lib/os-release": b"ID=x\n"}))


@pytest.mark.parametrize("seed", range(60))
def test_programs_with_wrong_bytes_are_read_or_passed_over(seed: int, tmp_path: Path) -> None:
    import random

    chance = random.Random(seed)
    damaged: dict[str, bytes | str] = {}
    for name, data in TREE.items():
        if isinstance(data, bytes) and data[:4] == b"\x7fELF":
            changed = bytearray(data)
            for _ in range(chance.randint(1, 24)):
                changed[chance.randrange(4, min(len(changed), 512))] = chance.choice(
                    [0, 1, 0x7F, 0xFF, chance.randrange(256)]
                )
            damaged[name] = bytes(changed)
    read(written(tmp_path / "root", {**damaged, "usr/lib/os-release": b"ID=x\n"}))


def sparse(place: Path, size: int, first: bytes = b"") -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("wb") as stream:
        stream.write(first)
        stream.truncate(size)


ZSTD = b"\x28\xb5\x2f\xfd"
UNPACKS = """#!{0}
import gzip, sys
assert sys.argv[1:4] == ["-d", "-c", "-q"]
sys.stdout.buffer.write(gzip.decompress(open(sys.argv[4], "rb").read()[4:]))
"""
"""Stands for zstd, which not every machine has: what follows its mark is gzip's."""


def test_layers_of_zstd_are_read_by_its_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = layer(
        {"etc/os-release": b"ID=x\nVERSION_ID=1\n", "bin/sh": program("/lib/ld.so"), "zeros": bytes(6 << 20)}
    )
    image = oci_archive(tmp_path / "image.oci", [layer({"etc/os-release": b"ID=y\n"}), ZSTD + release])
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(InputError, match="zstd is not on PATH"):
        read(image)
    tool = tmp_path / "bin" / "zstd"
    tool.write_text(UNPACKS.format(sys.executable))
    tool.chmod(0o755)
    told = read(image).system
    assert told.distribution is not None and told.distribution.value == "x" and told.architecture is not None
    monkeypatch.setattr("hpcgen.core.support.limits._BYTES", 1 << 20)
    with pytest.raises(InputError, match="far more than an image of its size"):
        read(image)
    tool.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(InputError, match="zstd cannot unpack"):
        read(image)


def test_files_of_gigabytes_cost_neither_memory_nor_time(tmp_path: Path, tree: Path) -> None:
    root = written(tmp_path / "root", {"usr/lib/os-release": b"ID=x\n"})
    sparse(root / SITE / "evil-1.dist-info" / "METADATA", 1024**3)
    sparse(root / "var/lib/dpkg/status", 1024**3)
    sparse(root / "usr/bin/sh", 2 * 1024**3)
    sparse(root / "opt/a/libmpi.so.12", 2 * 1024**3)
    sparse(root / "opt/torch/version.py", 1024**3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    facts = read(root)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024
    assert [each.name for each in facts.packages] == ["evil"] and facts.mpi == [] and facts.frameworks == []
    assert any("/var/lib/dpkg/status has" in each for each in facts.unread)


def test_links_that_lead_out_show_nothing_of_the_host(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"ID=host\n")
    evil: dict[str, bytes | str] = {
        "etc/os-release": f"{tmp_path}/secret",
        "usr/lib/os-release": f"../../../../../../../../../..{tmp_path}/secret",
        f"{GNU}/libc.so.6": "/proc/self/exe",
        "usr/bin/sh": "sh",
        "usr/bin/python3": "loop",
        "usr/bin/loop": "python3",
        "opt/up": "..",
        "var/lib/dpkg/status": STATUS.encode(),
    }
    facts = read(written(tmp_path / "root", evil))
    assert facts.system.distribution is None and facts.system.c_library is None and facts.python == []
    assert len(facts.packages) == 1


def test_what_is_no_file_and_what_cannot_be_named_is_passed_over(tmp_path: Path) -> None:
    root = written(tmp_path / "root", {"usr/lib/os-release": b"ID=x\n"})
    for name in ("usr/bin/sh", f"{GNU}/libc.so.6", "opt/torch/version.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(root / name)
    (root / SITE).mkdir(parents=True)
    for name in ("a\nb-1.dist-info", "\x1b[31m-1.dist-info", "b-1\n.dist-info"):
        (root / SITE / name).mkdir()
        (root / SITE / name / "METADATA").write_bytes(b"")
    (root / os.fsdecode(b"opt/\xff\xfe")).write_bytes(b"")
    facts = read(root)
    assert facts.packages == [] and facts.frameworks == [] and facts.system.architecture is None
    assert facts.unread == ["4 of its file names cannot be printed and were skipped"]


HOSTILE_CONFIGURATIONS: list[Any] = [
    {"Entrypoint": {"a": 1}, "Env": "x", "ExposedPorts": [1], "Labels": [], "User": [], "Cmd": 3},
    {"Entrypoint": [["a"], None], "Env": [None, 1, "=", "A"], "Labels": {"a": {"b": 1}}, "User": {"x": 1}},
    {"Env": [f"A{number}=x" for number in range(100_000)]},
]


@pytest.mark.parametrize("config", HOSTILE_CONFIGURATIONS, ids=["types", "nested", "many"])
def test_a_configuration_of_any_shape_is_shown(config: Any, tmp_path: Path) -> None:
    archive = oci_archive(tmp_path / "a.oci", [layer({"usr/lib/os-release": b"ID=x\n"})], config=config)
    assert len(read(archive).settings.environment) <= 2000


def test_an_archive_cut_anywhere_is_an_input_error_or_read(tmp_path: Path, tree: Path) -> None:
    whole = image_of("image.tar.gz", tree).read_bytes()
    for length in range(0, len(whole), max(len(whole) // 12, 1)):
        (tmp_path / "cut.tar.gz").write_bytes(whole[:length])
        try:
            read(tmp_path / "cut.tar.gz")
        except HpcgenError:
            continue
