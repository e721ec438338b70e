"""A captured tree gives the facts of the machine it was captured on, and nothing that is private."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from hpcgen.machine.detect.capture import Private, reduce_file, reduce_output
from tests.conftest import Command
from tests.helpers.trees import INTEL, library

SCRIPTS = {
    "sinfo": "echo 'general*|up|10|96|180000|(null)|2|24|2|2-00:00:00|1-infinite'",
    "srun": "echo 'MPI plugin types are...'; echo '\tpmi2'",
    "scontrol": "echo 'NodeName=secretnode01 NodeAddr=10.9.8.7 Partitions=general OS=Linux Owner=jane'; "
    "echo 'MaxArraySize = 2001'",
    "apptainer": "echo 'apptainer version 1.4.5'",
    "podman": "echo 'no such runtime' >&2; exit 1",
    "qstat": "exit 1",
}


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """This machine with a batch system, an engine and an MPI of its own, as variables."""
    tools = tmp_path / "site" / "bin"
    tools.mkdir(parents=True)
    for name, script in SCRIPTS.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    real = tmp_path / "site" / "storage" / "mpi-2021"
    (real / "lib").mkdir(parents=True)
    (real / "bin").mkdir()
    (real / "bin" / "mpiexec").write_text("#!/bin/sh\n")
    code = b"\x90" * 100_000 + b"jane's secret"
    (real / "lib" / "libmpi.so.12").write_bytes(
        library("libmpi.so.12", INTEL + code, glibc="2.14", needed=("libc.so.6",))
    )
    (tmp_path / "site" / "mpi").symlink_to("storage/mpi-2021")
    home = tmp_path / "home"
    (home / ".config" / "pip").mkdir(parents=True)
    (home / ".config" / "pip" / "pip.conf").write_text(
        "[global]\nindex-url = https://jane:s3cret@pypi.example.org/simple\n# jane's own\n[install]\nuser = jane\n"
    )
    init = tmp_path / "site" / "modules" / "init"
    init.mkdir(parents=True)
    modules = "/sw: openmpi/4.1.6 jane-private/1 'impi/2021.11(default)'"
    (init / "bash").write_text(f"module() {{ [ $LMOD_SHORT_TIME -gt 3600 ] && printf '%s\\n' {modules}; }}\n")
    (tmp_path / "slurm.conf").write_text("ControlMachine=secretnode00\n")
    return {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "SLURM_CONF": str(tmp_path / "slurm.conf"),
        "I_MPI_ROOT": str(tmp_path / "site" / "mpi"),
        "HOME": str(home),
        # Not part of the paths that the test has on this machine, which the capture would hide with the name.
        "USER": "jane-of-the-lab",
        "MODULESHOME": str(init.parent),
        "MODULEPATH": "/sw",
        "https_proxy": "http://jane:s3cret@proxy.example.org:3128",
        "SECRET_TOKEN": "s3cret",
        "HPCGEN_ENTRY_POINTS": "0",
    }


def without_user(text: str, home: str) -> str:
    """As a captured tree has it, in which the user's name, which the test's folder has, is replaced."""
    return re.sub(r"pytest-of-\w+", "pytest-of-user", text.replace(home, "/home/user"))


def test_a_captured_tree_gives_the_same_facts(hpcgen: Command, machine: dict[str, str], tmp_path: Path) -> None:
    live = hpcgen("site", "new", "here", "--detect", env=machine)
    assert live.returncode == 0, live.stderr
    captured = hpcgen("site", "capture", "tree", env=machine)
    assert captured.returncode == 0, captured.stderr
    there = hpcgen("site", "new", "here", "--detect", "--root", "tree")
    home = machine["HOME"]
    same = there.stdout.replace("from a captured tree", "from the machine itself")
    # When it was captured is not known, so its facts are only as young as that day.
    assert same.count("    dated_by: reading\n") == same.count("    verified: yes\n")
    same = same.replace("    dated_by: reading\n", "")
    assert without_user(same, home) == without_user(live.stdout, home)
    assert without_user(there.stderr, home) == without_user(live.stderr, home)
    for seen in (
        "apptainer:\n      version: 1.4.5",
        "flavour: intel",
        "version: 2021.11",
        "kind: slurm",
        "max_array_size: 2001",
        "site/mpi/.",
    ):
        assert seen in live.stdout
    assert "note: modules of engines and MPI: openmpi/4.1.6, impi/2021.11\n" in live.stderr


def test_nothing_private_is_captured(hpcgen: Command, machine: dict[str, str], tmp_path: Path) -> None:
    done = hpcgen("site", "capture", "tree", env=machine)
    assert "dropped: user names" in done.stderr
    paths = [path for path in (tmp_path / "tree").rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(paths) > 10
    for path in paths:
        content = path.read_bytes()
        for private in (b"jane", b"s3cret", b"secretnode", b"10.9.8.7"):
            assert private not in content, path
        assert len(content) < 100_000, path


def test_certificates_are_named_and_not_copied(hpcgen: Command, machine: dict[str, str], tmp_path: Path) -> None:
    hpcgen("site", "capture", "tree", env=machine)
    for path in (tmp_path / "tree" / "root").rglob("*.crt"):
        assert path.read_bytes() == b""


def test_a_folder_with_something_in_it_is_left_alone(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "mine").write_text("x")
    done = hpcgen("site", "capture", "tree")
    assert done.returncode == 7
    assert [path.name for path in (tmp_path / "tree").iterdir()] == ["mine"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tree"]


def test_a_folder_that_cannot_be_made_is_an_error(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for target in ("file", "nowhere/tree", "file/tree"):
        assert hpcgen("site", "capture", target).returncode == 7


def test_an_empty_folder_is_taken(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    assert hpcgen("site", "capture", "tree").returncode == 0
    assert (tmp_path / "tree" / "root" / "proc" / "cpuinfo").is_file()


# names


def test_names_of_users_and_machines_are_replaced_as_words() -> None:
    private = Private("jane", "/nfs/home/jane", "login01.cluster.example.org")
    assert private("/nfs/home/jane/x /scratch/jane/y janeway") == "/home/user/x /scratch/user/y janeway"
    assert private("login01.cluster.example.org login01 login012") == "node node login012"
    assert private("https://jane:pw@mirror.example.org/x") == "https://hidden@mirror.example.org/x"


def test_root_and_short_names_stay() -> None:
    private = Private("root", "/root", "vm")
    assert private("/root/.config root vm") == "/root/.config root vm"


def test_subordinate_ids_of_others_stay_out() -> None:
    assert reduce_file("/etc/subuid", "john:1:2\njane:100000:65536\n", "jane") == "jane:100000:65536\n"


def test_of_mounts_only_shared_ones_without_their_servers() -> None:
    text = "server.example.org:/export/home /home nfs4 rw,addr=10.1.2.3 0 0\n/dev/sda1 / ext4 rw 0 0\n"
    assert reduce_file("/proc/12345/mounts", text, "jane") == "shared /home nfs4 rw 0 0\n"


def test_of_a_gpu_only_its_model() -> None:
    text = "Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-9221d5d1\n"
    path = "/proc/driver/nvidia/gpus/0000:01:00.0/information"
    assert reduce_file(path, text, "jane") == "Model: \t\t NVIDIA A100\n"


def test_of_a_queue_not_who_may_use_it() -> None:
    text = "Queue: batch\n    queue_type = Execution\n    acl_users = jane\n    enabled = True\n    started = True\n"
    assert "jane" not in reduce_output("qstat-queues", text)
