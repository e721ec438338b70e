"""Trees of strangers and machines in disorder: nothing leaves the tree, nothing hangs, nothing reaches the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgen.core.config.yamlfile import loads
from hpcgen.core.errors import InputError
from hpcgen.core.support.cpu_lists import read_list
from hpcgen.machine.detect import tree as tree_of_files
from hpcgen.machine.detect.capture import stub
from hpcgen.machine.detect.commands import MAX_OUTPUT, ProbeCommand, ask
from hpcgen.machine.detect.elf import Library, read_library
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.profile import profile_of
from hpcgen.machine.detect.seen import Seen
from hpcgen.machine.detect.tree import Blob, MachineTree
from hpcgen.machine.detect.yaml_text import dump
from tests import conftest
from tests.helpers.trees import library, link, make_tree, seen_in

PRINTABLE = st.text(st.characters(blacklist_categories=("C", "Z")) | st.just(" "), max_size=40)


def test_links_do_not_leave_the_tree(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("ID=stolen\nVERSION_ID=1\n")
    for number, target in enumerate(["../../../secret", "../" * 40 + str(secret).lstrip("/"), str(secret)]):
        tree = make_tree(tmp_path / f"tree{number}")
        (tree / "root/etc/os-release").unlink()
        link(tree, "/etc/os-release", target)
        assert seen_in(tree).value("system.os") is None


def test_links_inside_the_tree_are_followed_as_on_the_machine(tmp_path: Path) -> None:
    tree = make_tree(tmp_path, {"/usr/lib/os-release": "ID=fedora\n"})
    (tree / "root/etc/os-release").unlink()
    link(tree, "/etc/os-release", "../../../usr/lib/os-release")
    assert seen_in(tree).value("system.os") == "fedora"


def test_a_root_that_is_a_link_is_no_tree(tmp_path: Path) -> None:
    make_tree(tmp_path / "real")
    (tmp_path / "false").mkdir()
    (tmp_path / "false" / "root").symlink_to(tmp_path / "real" / "root")
    with pytest.raises(InputError, match="not a captured tree"):
        Machine.captured(tmp_path / "false")


def test_commands_and_variables_do_not_leave_the_tree(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "docker-version").write_text("Docker version 99.9\n")
    (outside / "environment").write_text("USER=stolen\n")
    tree = make_tree(tmp_path / "tree")
    (tree / "commands").rmdir()
    (tree / "commands").symlink_to(outside)
    (tree / "environment").unlink()
    (tree / "environment").symlink_to(outside / "environment")
    machine = Machine.captured(tree)
    assert machine.output("docker-version").text is None
    assert machine.environment == {}


def test_a_circle_of_links_ends(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    link(tree, "/opt/a", "b")
    link(tree, "/opt/b", "a")
    link(tree, "/opt/c", "c/c/c")
    root = MachineTree(str(tree / "root"))
    assert root.real("/opt/a") is None
    assert root.text("/opt/c") is None


def test_a_pipe_does_not_stop_detection(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    (tree / "root/proc/cpuinfo").unlink()
    os.mkfifo(tree / "root/proc/cpuinfo")
    assert seen_in(tree).value("node.cpu.cores") is None


def test_a_huge_file_is_refused_and_said(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    with (tree / "root/etc/os-release").open("wb") as file:
        file.truncate(10 * 1024**3)
    seen = seen_in(tree)
    assert seen.value("system.os") is None
    assert any("/etc/os-release is larger than" in note for note in seen.notes)


def test_a_huge_library_is_not_read_whole(tmp_path: Path) -> None:
    tree = make_tree(tmp_path, {"/opt/mpich/lib/libmpi.so.12": library("libmpi.so.12")})
    with (tree / "root/opt/mpich/lib/libmpi.so.12").open("r+b") as file:
        file.truncate(20 * 1024**3)
    started = time.monotonic()
    assert seen_in(tree).value("mpi.flavour") == "mpich"
    assert time.monotonic() - started < 30


@pytest.fixture
def most_names(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many names of a folder are taken: fewer than usual, since folders and links take long to make and remove."""
    monkeypatch.setattr(tree_of_files, "MAX_NAMES", 200)
    return 200


def test_a_folder_of_very_many_names_is_bounded(tmp_path: Path, most_names: int) -> None:
    folder = tmp_path / "root/sys/class/infiniband"
    folder.mkdir(parents=True)
    for number in range(most_names + 50):
        (folder / f"x{number}").symlink_to("nowhere")
    tree = MachineTree(str(tmp_path / "root"))
    assert len(tree.names("/sys/class/infiniband")) == most_names
    assert "more than" in tree.refused["/sys/class/infiniband"]


def test_very_many_files_are_not_all_read(tmp_path: Path) -> None:
    tree = MachineTree(str(make_tree(tmp_path, {f"/x/{number}": "x" * 1000 for number in range(10)}) / "root"))
    tree.budget.left = 4500
    assert [tree.text(f"/x/{number}") is not None for number in range(10)] == [True] * 4 + [False] * 6
    assert "too large" in tree.refused["/x/4"]
    with tree.blob("/x/5") as blob:
        assert blob is not None and blob.at(0, 1000) == b""


def test_a_pattern_stops_at_very_many_paths(tmp_path: Path, most_names: int) -> None:
    for first in range(4):
        for second in range(70):
            (tmp_path / "root" / str(first) / str(second)).mkdir(parents=True)
    assert len(MachineTree(str(tmp_path / "root")).glob("/*/*")) == most_names


def test_control_characters_never_reach_the_terminal(tmp_path: Path, hpcgen: conftest.Command) -> None:
    files: dict[str, str | bytes] = {
        "/etc/os-release": 'ID=debian\nVERSION_ID="12\x1b[31m"\nNAME="\u202eevil"\n',
        "/proc/mounts": "x /scratch\x07 lustre rw 0 0\ny /work lustre rw 0 0\n",
        "/proc/sys/kernel/osrelease": "6.1\x1b]0;evil\x07\n",
    }
    commands = {"docker-version": "Docker version 24\x1b[2J.0\nDocker version 24.0.7\n", "sinfo": "a\x00b\n"}
    done = hpcgen("site", "new", "x", "--detect", "--root", str(make_tree(tmp_path / "t", files, commands)))
    assert done.returncode == 0
    assert all(line.isprintable() for line in (done.stdout + done.stderr).split("\n"))
    assert "  os: debian\n" in done.stdout
    assert "os_version" not in done.stdout.split("sources:")[0].replace("open: system.os_version", "")
    assert "/etc/os-release has control characters; 2 of its lines were skipped" in done.stderr


def test_junk_everywhere_gives_no_facts_and_no_error(tmp_path: Path, hpcgen: conftest.Command) -> None:
    junk = bytes(range(256)) * 64
    places = [
        "/etc/os-release",
        "/proc/cpuinfo",
        "/proc/meminfo",
        "/proc/mounts",
        "/proc/sys/kernel/osrelease",
        "/etc/pip.conf",
        "/etc/subuid",
        "/proc/sys/user/max_user_namespaces",
        "/lib64/libc.so.6",
        "/usr/lib64/libmpi.so.12",
        "/opt/openmpi/lib/libmpi.so.40",
        "/etc/apt/sources.list",
        "/sys/bus/pci/devices/0/vendor",
        "/sys/class/infiniband/x/ports/1/link_layer",
        "/proc/driver/nvidia/version",
        "/var/lib/containers/storage/overlay-images/images.json",
    ]
    tree = make_tree(tmp_path / "t", dict.fromkeys(places, junk), environment={"USER": "root"})
    for name in ("sinfo", "srun-mpi-list", "docker-version", "qstat-queues", "module-avail"):
        (tree / "commands" / name).write_bytes(junk)
    done = hpcgen("site", "new", "x", "--detect", "--root", str(tree))
    assert done.returncode == 0, done.stderr
    assert "lacks required facts" in done.stderr


LONG = {
    "digits": "1" * 40_000,
    "points": "1." * 20_000 + "x",
    "blank lines": "\n" * 40_000,
    "blanks": " " * 40_000,
    "blank queue": "Queue: a\n" + "\n" * 40_000 + "x",
    "names": "/mpi-" + "mpi" * 13_000,
    "a number that is none": "²",
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_no_text_of_a_tree_takes_quadratic_time(text: str, tmp_path: Path) -> None:
    places = [
        "/proc/sys/user/max_user_namespaces",
        "/proc/driver/nvidia/version",
        "/sys/module/nvidia/version",
        "/etc/slurm/plugstack.conf",
        "/etc/pip.conf",
        "/root/storage.conf",
        "/etc/apt/sources.list.d/a.sources",
        "/opt/openmpi/share/Version",
    ]
    blobs = dict.fromkeys(["/lib64/libc.so.6", "/usr/lib64/libmpi.so.12"], b"\0v1.1." + text.encode())
    commands = ["sinfo", "qstat-queues", "docker-version", "apptainer-version", "srun-mpi-list", "module-avail"]
    environment = {"USER": "root", "CONTAINERS_STORAGE_CONF": "/root/storage.conf", "PIP_CONFIG_FILE": "/etc/pip.conf"}
    tree = make_tree(tmp_path, {**dict.fromkeys(places, text), **blobs}, dict.fromkeys(commands, text), environment)
    (tree / "commands" / "sinfo").unlink()
    began = time.monotonic()
    seen_in(tree)
    assert time.monotonic() - began < 5


def test_a_tree_with_nothing_lists_what_is_open(tmp_path: Path, hpcgen: conftest.Command) -> None:
    (tmp_path / "t" / "root").mkdir(parents=True)
    done = hpcgen("site", "new", "x", "--detect", "--root", "t", "-o", "x.yaml")
    assert done.returncode == 0, done.stderr
    for path in ("system.os", "system.glibc", "system.kernel", "node", "mpi", "containers.preferred", "fabric.kind"):
        shown = path.replace("node", "partitions.main.cpu.target")
        assert f"open: {shown}:" in done.stderr
        assert f"# open: {shown}: " in (tmp_path / "x.yaml").read_text()
    checked = hpcgen("check", "x.yaml")
    assert checked.returncode == 3
    for field in ("os", "cpu", "memory", "preferred", "engines"):
        assert f"`{field}` is missing" in checked.stderr


def test_a_tree_is_left_as_it_was(tmp_path: Path) -> None:
    tree = make_tree(tmp_path, {"/opt/mpich/lib/libmpi.so.12": library("libmpi.so.12")})

    def state() -> list[tuple[str, int, int]]:
        return [(str(path), path.lstat().st_mtime_ns, path.lstat().st_size) for path in sorted(tree.rglob("*"))]

    before = state()
    seen_in(tree)
    assert state() == before


def test_no_program_is_started_for_a_captured_tree(tmp_path: Path, hpcgen: conftest.Command) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("docker", "sinfo", "ch-run", "bash"):
        (tools / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
        (tools / name).chmod(0o755)
    environment = {"PATH": f"{tools}:{os.environ['PATH']}"}
    tree = make_tree(tmp_path / "t", {"/etc/slurm/slurm.conf": ""}, environment=environment)
    assert hpcgen("site", "new", "x", "--detect", "--root", str(tree), env=environment).returncode == 0
    assert not (tmp_path / "started").exists()


def test_slurm_is_not_asked_without_its_configuration(tmp_path: Path, hpcgen: conftest.Command) -> None:
    """Its programs would ask the network's name service where the controller is."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sinfo", "srun", "scontrol"):
        (tools / name).write_text(f"#!/bin/sh\necho $0 >> {tmp_path}/started\necho 'x|up|1|1|1|a|1|1|1|1|1'\n")
        (tools / name).chmod(0o755)
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "SLURM_CONF": ""}
    if not any(map(Path.is_file, (Path("/etc/slurm/slurm.conf"), Path("/run/slurm/conf/slurm.conf")))):
        assert hpcgen("site", "new", "x", "--detect", env=environment).returncode == 0
        assert not (tmp_path / "started").exists()
    (tmp_path / "slurm.conf").write_text("")
    done = hpcgen("site", "new", "x", "--detect", env={**environment, "SLURM_CONF": str(tmp_path / "slurm.conf")})
    assert "kind: slurm" in done.stdout
    assert "sinfo" in (tmp_path / "started").read_text()


WATCHED = """
import os, sys

sys.dont_write_bytecode = True
CHANGES = ("socket.", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod")

def watch(event, args):
    writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if event.startswith(CHANGES) or (writes and args[0] != os.devnull):
        print(event, args, file=sys.stderr)
        os._exit(1)

sys.addaudithook(watch)
from hpcgen.machine.detect.detection import detect
from hpcgen.machine.detect.machine import Machine
print(len(detect(Machine.live()).facts))
"""


def test_detection_on_this_machine_only_reads() -> None:
    """No file is opened for writing and no socket made; what the programs do that it starts, they do by themselves."""
    done = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, cwd=conftest.ROOT)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 8


# programs


def run(*argv: str, timeout_s: float = 10.0) -> tuple[str | None, str]:
    answer = ask(ProbeCommand(argv, timeout_s=timeout_s), dict(os.environ), {})
    return answer.text, answer.why


def test_a_program_that_does_not_end_is_ended(tmp_path: Path) -> None:
    started = time.monotonic()
    # What it started itself must end as well, and holds the output open.
    text, why = run("sh", "-c", f"(sleep 60; touch {tmp_path}/late) & sleep 60", timeout_s=0.5)
    assert text is None and "gave no answer in time" in why
    assert time.monotonic() - started < 10


def test_a_program_that_prints_for_ever_is_ended() -> None:
    text, why = run("yes")
    assert text is None and f"more than {MAX_OUTPUT} bytes" in why


def test_what_a_program_says_when_it_fails_is_told() -> None:
    text, why = run("sh", "-c", "echo 'no such \033[31mcluster' >&2; echo second >&2; exit 3")
    assert text is None
    assert why == "sh ended with status 3: second"


def test_programs_read_no_input() -> None:
    assert run("cat") == ("", "")


# libraries and text


@given(st.data())
def test_broken_libraries_are_no_libraries(data: st.DataObject) -> None:
    """Whatever is changed in a library, reading it ends and gives a library or nothing."""
    whole = stub(Library("libmpi.so.12", ("libc.so.6",), ("/a",), "2.34", {"MPII_Version_string": "4.2"}), b"text")
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))]
    descriptor = os.memfd_create("library")
    try:
        os.write(descriptor, bytes(content))
        said = read_library(Blob(descriptor, len(content)), ("MPII_Version_string",))
    finally:
        os.close(descriptor)
    assert said is None or said.soname.isprintable()


def test_lists_of_numbers_are_bounded() -> None:
    assert read_list("0-3,8") == [0, 1, 2, 3, 8]
    assert len(read_list("0-999999,0-999999")) == 65536


@given(PRINTABLE, PRINTABLE)
def test_any_text_is_the_same_text_in_the_profile(key: str, value: str) -> None:
    data = {"section": {f"k{key}": value, "list": [value, {"x": value}]}}
    assert loads(dump(data), "x").data == data


@given(st.dictionaries(st.sampled_from(["system.os", "system.kernel", "mpi.version", "node.cpu.model"]), PRINTABLE))
def test_a_profile_stays_yaml_whatever_was_seen(facts: dict[str, str]) -> None:
    seen = Seen()
    for path, value in facts.items():
        seen.add(path, value, f"how # {value}")
    seen.add_unseen("fabric.kind", "why: # 'x'")
    loads(profile_of(seen, "x", "2026-11-20").text, "x")


def test_what_a_profile_cannot_hold_is_left_open() -> None:
    seen = Seen()
    seen.add("system.os", "Not A Name!", "/etc/os-release")
    seen.add("system.os_version", "12", "/etc/os-release")
    seen.add("no.such.field", "x", "y")
    profile = profile_of(seen, "x", "2026-11-20")
    assert "a profile cannot hold 'Not A Name!'" in profile.open["system.os"]
    assert profile.open["no.such.field"] == "profiles have no such field"
    assert not profile.complete
