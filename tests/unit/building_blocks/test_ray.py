"""ray-job: how the nodes of a job find each other, and that nothing of it outlives the command or a lost node."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from hpcgen.catalog.catalog import Catalog
from tests.conftest import ROOT

FILES = ROOT / "building_blocks" / "files"
VARIABLE = "HPCGEN_TEST_RAY"
"""Names a Python with the package ray, for the tests that start clusters."""

COMMAND = """
import os, ray, sys, time
ray.init("auto", log_to_driver=False, logging_level="ERROR")
print(*sorted(node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]), *sys.argv[1:], flush=True)
time.sleep(float(os.environ.get("LASTS", "0")))
sys.exit(3)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A job's folder with the programs as they lie in an image."""
    shutil.copy(FILES / "ray_job.py", tmp_path / "ray-job")
    shutil.copy(FILES / "torch_ranks.py", tmp_path / "ranks.py")
    (tmp_path / "command.py").write_text(COMMAND)
    return tmp_path


@pytest.fixture
def program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(folder)
    monkeypatch.chdir(folder)
    for name in list(os.environ):
        if name.startswith(("SLURM_", "PMI_", "NCCL_", "GLOO_", "RAY_")):
            monkeypatch.delenv(name)
    shutil.copy(folder / "ray-job", folder / "ray_job.py")
    spec = importlib.util.spec_from_file_location("ray_job", folder / "ray_job.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("ranks", None)


def test_the_interface_is_found_as_nccl_reads_its_names(program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert program.interface_address("lo") == "127.0.0.1"
    assert program.interface_address("nothing-such,=lo") is None
    assert program.interface_address("=lo") == "127.0.0.1"
    assert program.interface_address("=l") is None
    assert program.interface_address("l") == "127.0.0.1"
    assert program.interface_address("^docker") is None
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "lo")
    assert program.own_address("192.0.2.7") == "127.0.0.1"
    monkeypatch.setenv("RAY_JOB_ADDRESS", "127.0.0.9")
    assert program.own_address() == "127.0.0.9"


def test_numbers_are_put_into_the_command(program: ModuleType) -> None:
    words = ["serve", "--tensor-parallel-size={gpus}", "{nodes}", '{"a": 1}']
    assert program.filled(words, 2, [4, 4]) == ["serve", "--tensor-parallel-size=4", "2", '{"a": 1}']
    assert program.filled(["{nodes}"], 2, [0, 0]) == ["2"]
    with pytest.raises(program.Lost, match="found no GPU"):
        program.filled(words, 2, [0, 0])
    with pytest.raises(program.Lost, match="different numbers of GPUs: 3, 4"):
        program.filled(words, 2, [4, 3])


def test_each_job_and_step_has_a_meeting_place_of_its_own(
    program: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setenv("SLURM_STEP_ID", "3")
    assert program.meeting_place() == folder / ".ray-job-12-3"


def test_only_the_owner_may_read_the_token_and_only_who_knows_it_is_let_in(program: ModuleType, folder: Path) -> None:
    file = folder / ".ray-job-0-0"
    assert program.meet(file) is None
    with socket.create_server(("127.0.0.1", 0)) as door:
        others = program.Others(door, 1)
        port = door.getsockname()[1]
        program.invite(file, {"address": "127.0.0.1", "port": 1, "door": port, "token": "right"})
        assert file.stat().st_mode & 0o777 == 0o600
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(b"wrong\n")
            assert not others.join("right")
            assert stranger.recv(10) == b""
        with socket.create_connection(("127.0.0.1", port)) as friend:
            friend.sendall(b"right\n")
            assert others.join("right")
            assert friend.recv(20) == b"welcome\n"
            others.check()
        with pytest.raises(program.Lost, match="1 of 1 other nodes ended"):
            others.check()
        others.tell("end")


def test_a_file_that_an_earlier_start_left_behind_leads_nowhere(program: ModuleType, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    file = folder / ".ray-job-0-0"
    program.invite(file, {"address": "127.0.0.1", "port": 1, "door": port, "token": "old"})
    assert program.meet(file) is None


@pytest.mark.parametrize(
    ("words", "variables", "said"),
    [
        ([], {}, "a command is missing"),
        (["true"], {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1"}, "one rank on each"),
    ],
)
def test_what_cannot_be_started_is_said(folder: Path, words: list[str], variables: dict[str, str], said: str) -> None:
    done = subprocess.run([sys.executable, folder / "ray-job", *words], env=variables, capture_output=True, text=True)
    assert done.returncode == 2
    assert said in done.stderr


class Job:
    """Two ranks as if on two nodes, which are two addresses of the loopback."""

    def __init__(self, folder: Path, **variables: str) -> None:
        python = os.environ[VARIABLE]
        command = [python, folder / "ray-job", python, folder / "command.py", "{nodes}"]
        self.ranks = []
        for rank in range(2):
            place = {"PMI_RANK": str(rank), "PMI_SIZE": "2", "RAY_JOB_ADDRESS": f"127.0.0.{rank + 2}"}
            environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "SLURM_JOB_ID": "7", **place, **variables}
            files = {"stdout": (folder / f"out{rank}").open("w"), "stderr": (folder / f"err{rank}").open("w")}
            self.ranks.append(subprocess.Popen(command, cwd=folder, env=environment, **files))
        self.folder = folder

    def wait(self) -> list[int]:
        return [rank.wait(120) for rank in self.ranks]

    def said(self, text: str) -> None:
        """Wait until the command has printed something."""
        end = time.monotonic() + 90
        while text not in (self.folder / "out0").read_text():
            assert time.monotonic() < end, (self.folder / "err0").read_text()
            time.sleep(0.3)


def left_behind(folder: Path) -> list[str]:
    """Processes of clusters of this test: their environment has its folder as home."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"HOME={folder}\0" in (process / "environ").read_text():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_two_nodes_become_one_cluster_which_ends_with_the_command(folder: Path) -> None:
    job = Job(folder)
    assert job.wait() == [3, 0], (folder / "err0").read_text()
    assert (folder / "out0").read_text() == "127.0.0.2 127.0.0.3 2\n"
    assert not list(folder.glob(".ray-job*"))
    assert not left_behind(folder)


@pytest.mark.slow
@pytest.mark.parametrize(("lost", "why"), [(1, "1 of 1 other nodes ended"), (0, "the first node ended")])
def test_a_lost_node_ends_the_job(folder: Path, lost: int, why: str) -> None:
    job = Job(folder, LASTS="600")
    job.said("127.0.0.3")
    job.ranks[lost].send_signal(signal.SIGTERM)
    statuses = job.wait()
    assert statuses[lost] == 143 and statuses[1 - lost] == 1
    assert why in (folder / f"err{1 - lost}").read_text()
    assert not left_behind(folder)


@pytest.mark.parametrize("architecture", ["", "-aarch64"])
def test_the_block_knows_all_that_ray_needs(architecture: str) -> None:
    catalog = Catalog()
    listed = (ROOT / "building_blocks" / "wheels" / f"ray-2.60.0{architecture}-cp312.txt").read_text().splitlines()
    names = {line.partition("==")[0] for line in listed if not line.startswith("#")}
    assert names == {"ray", "msgpack", *sys.modules[catalog.block("ray").__module__].NEEDED}
