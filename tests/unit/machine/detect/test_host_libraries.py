"""What of a host's libraries an image is shown: all that its MPI needs, and nothing that the image must have."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hpcgen.machine.detect.capture import capture
from hpcgen.machine.detect.elf import read_library
from hpcgen.machine.detect.machine import Recorder
from hpcgen.machine.detect.seen import Seen
from hpcgen.machine.detect.tree import MachineTree
from tests.helpers.trees import INTEL, library, link, make_tree, seen_in

MPI = "/opt/cray/pe/mpich/8.1.31/ofi/gnu/12.3"
CRAY = b"\0CRAY MPICH version 8.1.31 (ANL base 3.4a2)\0"

# OLCF's example of Apptainer with the host's MPI: olcf/olcf_containers_examples@032b962,
# frontier/containers_on_frontier_docs/gpu_aware_mpi_example.
CONTAINLIBS = (
    "/usr/lib64/libcxi.so.1",
    "/usr/lib64/libjson-c.so.5",
    "/lib64/libtinfo.so.6",
    "/usr/lib64/libnl-3.so.200",
    "/usr/lib64/libgfortran.so.5",
    "/usr/lib64/libjansson.so.4",
    "/usr/lib64/libxpmem.so.0",
)
BINDPATH = ("/var/spool/slurmd", "/opt/cray")


def frontier(folder: Path) -> Seen:
    """A tree as on Frontier. Which of the libraries asks for which is made up: the example does not say it."""
    files: dict[str, str | bytes] = {
        f"{MPI}/lib-abi-mpich/libmpi.so.12": library(
            "libmpi.so.12",
            CRAY,
            needed=("libfabric.so.1", "libpmi2.so.0", "libxpmem.so.0", "libgfortran.so.5", "libm.so.6", "libc.so.6"),
            glibc="2.31",
        ),
        "/opt/cray/libfabric/1.22.0/lib64/libfabric.so.1": library(
            "libfabric.so.1", needed=("libcxi.so.1", "libjson-c.so.5", "libtinfo.so.6", "libc.so.6"), glibc="2.34"
        ),
        "/opt/cray/pe/pmi/6.1.15/lib/libpmi2.so.0": library("libpmi2.so.0", needed=("libpals.so.0", "libc.so.6")),
        "/opt/cray/pals/1.6/lib/libpals.so.0": library(
            "libpals.so.0", needed=("libjansson.so.4", "libstdc++.so.6"), glibcxx="3.4.29"
        ),
        "/usr/lib64/libcxi.so.1": library("libcxi.so.1", needed=("libnl-3.so.200", "libpthread.so.0")),
        "/usr/lib64/libgfortran.so.5": library("libgfortran.so.5", needed=("libquadmath.so.0", "libgcc_s.so.1")),
        "/usr/lib64/libstdc++.so.6": library("libstdc++.so.6", needed=("libown.so.1",), glibc="2.38"),
        "/usr/lib64/libc.so.6": library("libc.so.6", glibc="2.38"),
        "/etc/ld.so.conf": "include /etc/ld.so.conf.d/*.conf\n",
        "/etc/ld.so.conf.d/cray.conf": "/opt/cray/pe/lib64 # PMI\n/opt/cray/pals/1.6/lib\n",
        "/sys/devices/pci/cxi/cxi0/uevent": "",
        "/etc/slurm/slurm.conf": "ClusterName=frontier\n",
        "/var/spool/slurmd/cred_state": "",
    }
    names = ("libjson-c.so.5", "libtinfo.so.6", "libnl-3.so.200", "libjansson.so.4", "libxpmem.so.0", "libgcc_s.so.1")
    files |= {f"/usr/lib64/{name}": library(name, needed=("libc.so.6",)) for name in (*names, "libquadmath.so.0")}
    commands = {
        "sinfo": "batch*|up|9472|64|512000|gpu:8|1|64|2|2:00:00|1-91\n",
        "srun-mpi-list": "MPI plugin types are...\n\tcray_shasta\n\tnone\n\tpmi2\n",
        "scontrol-config": "SlurmdSpoolDir          = /var/spool/slurmd\n",
    }
    tree = make_tree(folder, files, commands, {"CRAY_MPICH_DIR": MPI})
    link(tree, "/lib64", "usr/lib64")
    link(tree, "/sys/class/cxi/cxi0", "../../devices/pci/cxi/cxi0")
    link(tree, "/opt/cray/pe/lib64/libpmi2.so.0", "../pmi/6.1.15/lib/libpmi2.so.0")
    return seen_in(tree)


def places(seen: Seen) -> dict[str, dict[str, Any]]:
    return {bind["target"]: bind for bind in seen.value("mpi.binds")}


def test_detection_finds_what_olcfs_example_binds(tmp_path: Path) -> None:
    seen = frontier(tmp_path)
    binds = places(seen)
    rows = []
    for path in CONTAINLIBS:
        name = path.rsplit("/", 1)[1]
        bind = binds.get(f"/usr/lib64/{name}")
        why = next((note.split(":")[0] for note in seen.notes if note.startswith("not bound") and name in note), "")
        rows.append((name, f"{bind['source']} file={bind.get('file')}" if bind else why))
    for path in BINDPATH:
        below = [target for target in binds if f"{target}/".startswith(f"{path}/")]
        rows.append((path, ", ".join(below)))
    print("\n".join(f"{name:20} {said}" for name, said in rows))
    found = dict(rows)
    own = found.pop("libtinfo.so.6")
    assert own == "not bound, because every image has its own"
    assert all(found.values()), found
    assert {name for name, said in found.items() if "file=True" in said} == {
        path.rsplit("/", 1)[1] for path in CONTAINLIBS if "libtinfo" not in path
    }
    # That this one is needed as well the example does not say: libgfortran asks for it.
    single = {target for target, bind in binds.items() if bind.get("file")}
    assert single - {f"/usr/lib64/{name}" for name in found} == {"/usr/lib64/libquadmath.so.0"}


def test_nothing_of_the_c_library_is_bound_and_its_need_is_that_of_what_is(tmp_path: Path) -> None:
    seen = frontier(tmp_path)
    bound = {target.rsplit("/", 1)[1] for target in places(seen)}
    assert bound.isdisjoint({"libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2", "libstdc++.so.6"})
    # The fabric's library asks for it. What the host's own libstdc++ asks for is no matter of the image.
    assert seen.value("mpi.glibc") == "2.34"
    (own,) = [note for note in seen.notes if "every image has" in note]
    assert own.endswith(": libgcc_s.so.1, libstdc++.so.6, libtinfo.so.6; they need GLIBCXX_3.4.29 of its libstdc++")
    (said,) = [note for note in seen.notes if "of the C library" in note]
    assert not any("libown" in note for note in seen.notes)
    assert said.endswith(": libc.so.6, libm.so.6, libpthread.so.0")


def test_folders_behind_links_are_bound_and_searched(tmp_path: Path) -> None:
    """libpmi2.so.0 is a link in /opt/cray/pe/lib64, and what it needs is where ld.so.conf says."""
    seen = frontier(tmp_path)
    folders = seen.value("mpi.libraries")
    assert folders == [
        f"{MPI}/lib-abi-mpich",
        "/opt/cray/libfabric/1.22.0/lib64",
        "/opt/cray/pe/lib64",
        "/opt/cray/pals/1.6/lib",
        "/usr/lib64",
    ]
    shown = [target for target, bind in places(seen).items() if "file" not in bind]
    for path in (*folders[:-1], "/opt/cray/pe/pmi/6.1.15/lib"):
        assert any(f"{path}/".startswith(f"{target}/") for target in shown), path


def test_a_libfabric_that_an_mpi_brings_is_followed_though_it_is_opened_by_name(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "/opt/intel/oneapi/mpi/2021.11/lib/libmpi.so.12": library("libmpi.so.12", INTEL, needed=("libc.so.6",)),
        "/opt/intel/oneapi/mpi/2021.11/opt/mpi/libfabric/lib/libfabric.so.1": library(
            "libfabric.so.1", needed=("librdmacm.so.1",)
        ),
        "/usr/lib64/librdmacm.so.1": library("librdmacm.so.1"),
    }
    assert "/usr/lib64/librdmacm.so.1" in places(seen_in(make_tree(tmp_path, files)))


def test_what_is_found_nowhere_is_named_with_what_asks_for_it(tmp_path: Path) -> None:
    mpich = library("libmpi.so.12", strings={"MPII_Version_string": "4.2.1"}, needed=("libucp.so.0", "libc.so.6"))
    seen = seen_in(make_tree(tmp_path, {"/opt/mpich/lib/libmpi.so.12": mpich}))
    assert "found nowhere, so the MPI may not start: libucp.so.0 (for libmpi.so.12)" in seen.notes
    assert seen.value("mpi.binds") == [{"source": "/opt/mpich", "target": "/opt/mpich"}]


def test_libraries_that_need_each_other_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "/opt/mpich/lib/libmpi.so.12": library(
            "libmpi.so.12", strings={"MPII_Version_string": "4.2.1"}, needed=("liba.so.1",), runpath=("$ORIGIN/own",)
        ),
        "/opt/mpich/lib/own/liba.so.1": library("liba.so.1", needed=("libb.so.1",)),
        "/usr/lib/x86_64-linux-gnu/libb.so.1": library("libb.so.1", needed=("liba.so.1", "libmpi.so.12")),
    }
    seen = seen_in(make_tree(tmp_path, files))
    assert places(seen)["/usr/lib64/libb.so.1"] == {
        "source": "/usr/lib/x86_64-linux-gnu/libb.so.1",
        "target": "/usr/lib64/libb.so.1",
        "file": True,
    }
    assert seen.value("mpi.libraries") == ["/opt/mpich/lib", "/opt/mpich/lib/own", "/usr/lib64"]


def test_a_captured_tree_has_all_of_them(tmp_path: Path) -> None:
    """As whoever gets the tree sees it, with a library that only the user's own path leads to."""
    seen = frontier(tmp_path / "frontier")
    files = tmp_path / "frontier"
    (files / "root" / "usr" / "lib64" / "libxpmem.so.0").rename(files / "root" / "opt" / "libxpmem.so.0")
    (files / "environment").write_text(f"CRAY_MPICH_DIR={MPI}\nLD_LIBRARY_PATH=/nowhere:/opt\n")
    seen = seen_in(files)
    assert "/opt" in places(seen)
    capture(Recorder.captured(files), tmp_path / "tree")
    again = seen_in(tmp_path / "tree")
    for path in ("mpi.binds", "mpi.libraries", "mpi.glibc"):
        assert again.value(path) == seen.value(path)
    assert again.notes == seen.notes


def test_versions_of_real_libraries_are_read(tmp_path: Path) -> None:
    """Of whatever C++ library this Python's machine has."""
    real = next(Path("/usr/lib").rglob("libstdc++.so.6"), None)
    if real is None:
        pytest.skip("no libstdc++ here")
    with MachineTree("/").blob(str(real)) as blob:
        assert blob is not None
        said = read_library(blob)
    assert said is not None and said.soname == "libstdc++.so.6" and said.glibc is not None
    assert said.glibcxx is None and "libc.so.6" in said.needed


@pytest.mark.containers
def test_real_libraries_that_need_each_other_are_followed(tmp_path: Path) -> None:
    """As a linker writes them, with links as packages install them."""
    gcc = shutil.which("gcc")
    assert gcc is not None, "gcc is missing"
    root = tmp_path / "root"
    made = {"usr/lib64/libnl-3.so.200": [], "usr/lib64/libcxi.so.1": ["usr/lib64/libnl-3.so.200"]}
    made["opt/mpich/lib/libmpi.so.12"] = ["usr/lib64/libcxi.so.1"]
    make_tree(tmp_path)
    for path, needs in made.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        source = 'const char MPII_Version_string[] = "4.2.1"; int one(void){return 1;}'
        name = place.name
        words = [gcc, "-shared", "-fPIC", "-x", "c", "-", f"-Wl,-soname,{name}", "-Wl,--no-as-needed", "-o"]
        others = ["-x", "none", *(str(root / each) for each in needs)]
        subprocess.run([*words, f"{place}.0", *others], input=source, text=True, check=True)
        place.symlink_to(f"{name}.0")
    seen = seen_in(tmp_path)
    single = [target for target, bind in places(seen).items() if bind.get("file")]
    assert single == ["/usr/lib64/libcxi.so.1", "/usr/lib64/libnl-3.so.200"]
    assert any(note.startswith("not bound, because they are of the C library") for note in seen.notes)
