"""The script that starts a program of an image as a command of the host."""

from __future__ import annotations

import subprocess
import sysconfig
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

import hpcgen
from hpcgen.launch.command import command_script
from hpcgen.model.plan import Plan

SHELLCHECK = Path(sysconfig.get_path("scripts")) / "shellcheck"
KERNEL = ("python3", "-m", "ipykernel_launcher", "-f")
COUNTS = (("2(x3),1", 0, 2), ("2(x3),1", 2, 2), ("2(x3),1", 3, 1), ("4", 0, 4), ("1,3", 1, 3), ("8(x2),2(x2)", 3, 2))


@cache
def planned(site: str, stack: str = "mpi-hello", engine: str = "") -> Plan:
    made = hpcgen.plan(hpcgen.load_site(site), hpcgen.load_stack(stack))
    return replace(made, engine=engine) if engine else made


def plan(site: str, engine: str = "") -> Plan:
    return planned(site, engine=engine)


def script(made: Plan, kernel: tuple[str, ...] = ()) -> str:
    named = made.engine in ("docker", "podman", "podman-hpc")
    image = "localhost/hello:1" if named else "/images/hello"
    return command_script(made, {"PATH": "/opt/python/bin:/usr/bin"}, image, named=named, kernel=kernel)


@pytest.mark.parametrize("kernel", [(), KERNEL], ids=["start", "kernel"])
@pytest.mark.parametrize(
    ("site", "engine"),
    [
        ("supermuc", ""),
        ("lumi-c", ""),
        ("workstation", "docker"),
        ("workstation", "podman"),
        ("lumi-c", "charliecloud"),
    ],
)
def test_shellcheck_finds_nothing(site: str, engine: str, kernel: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "start").write_text(script(plan(site, engine), kernel))
    done = subprocess.run([SHELLCHECK, "--severity=style", tmp_path / "start"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("counts", "node", "ranks"), COUNTS)
def test_ranks_of_a_node_share_a_container_where_their_mpi_needs_it(counts: str, node: int, ranks: int) -> None:
    """As srun says how many there are on each node."""
    text = script(plan("lumi-c", "charliecloud"))
    part = text[text.index("ranks=${MPI_LOCALNRANKS") : text.index("# The site's file systems")]
    env = {"SLURM_STEP_TASKS_PER_NODE": counts, "SLURM_NODEID": str(node)}
    shown = part + '\necho "$ranks ${joined[*]-}"'
    said = subprocess.run(["bash", "-euc", shown], env=env, capture_output=True, text=True)
    assert said.stdout == (f"{ranks} --join --join-ct={ranks}\n" if ranks > 1 else "1 \n"), said.stderr
    for env in ({}, {"MPI_LOCALNRANKS": "1", "SLURM_STEP_TASKS_PER_NODE": "4"}):
        assert subprocess.run(["bash", "-euc", shown], env=env, capture_output=True).stdout == b"1 \n"
    assert "joined" not in script(plan("supermuc"))  # Intel MPI does without


def test_docker_and_podman_get_input_terminal_and_signals() -> None:
    assert "\n    -i ${terminal:+-t}\n    --init\n" in script(plan("workstation", "docker"))
    assert "\n    -i ${terminal:+-t}\n    --pid=host\n" in script(plan("workstation", "podman"))
    assert "--network=host" not in script(plan("workstation", "podman"))
    assert "--network=host" in script(plan("workstation", "podman"), KERNEL)


def test_a_kernel_says_what_it_cannot_take() -> None:
    text = script(plan("workstation", "podman"), KERNEL).replace("command -v podman", "true")
    for word, status in (("relative.json", 64), ("/a:b/kernel.json", 65)):
        assert subprocess.run(["bash", "-c", text, "kernel", word], capture_output=True).returncode == status
