"""The script that starts a program of an image as a command of the host."""

from __future__ import annotations

import subprocess
import sysconfig
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

import hpcgen
from hpcgen.core.model.plan import Plan
from hpcgen.launch.command import command_script

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
        ("perlmutter", ""),
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


ON_TWO = (
    {"SLURM_STEP_NUM_NODES": "2", "SLURM_JOB_NUM_NODES": "2"},
    {"SLURM_JOB_NUM_NODES": "2"},
    {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"},
    {"PMI_SIZE": "4", "MPI_LOCALNRANKS": "2"},
)
ON_ONE: tuple[dict[str, str], ...] = (
    {},
    {"SLURM_STEP_NUM_NODES": "1", "SLURM_JOB_NUM_NODES": "2"},
    {"PMI_SIZE": "4", "MPI_LOCALNRANKS": "4"},
    {"PMI_SIZE": "4"},
)


@pytest.mark.parametrize("env", [*ON_TWO, *ON_ONE])
def test_gpus_of_several_nodes_send_by_the_sites_network(env: dict[str, str]) -> None:
    """And on one node nothing is set that would stop what needs no network."""
    text = script(planned("perlmutter", "pytorch-ddp"))
    assert "--nccl" in text and "\n    -e NCCL_NET\n" in text
    assert "LD_LIBRARY_PATH=/opt/udiImage/modules/nccl-plugin/lib:" in text
    part = text[text.index("nodes=${SLURM") : text.index("\nfi\n", text.index("nodes=${SLURM"))] + "\nfi\n"
    shown = part + 'echo "${NCCL_NET-none} ${NCCL_SOCKET_IFNAME-none} ${GLOO_SOCKET_IFNAME-none}"'

    def said(env: dict[str, str]) -> str:
        return subprocess.run(["bash", "-euc", shown], env=env, capture_output=True, text=True).stdout

    assert said(env) == ("AWS Libfabric hsn0 hsn0\n" if env in ON_TWO else "none none none\n")
    if env in ON_TWO:
        assert said({**env, "NCCL_NET": "Socket"}) == "Socket hsn0 hsn0\n"


def test_what_the_site_says_of_networks_stays() -> None:
    made = planned("leonardo", "pytorch-ddp")
    assert "export NCCL_NET=IB" in script(made)
    told = replace(made, site=replace(made.site, environment={"NCCL_NET": "Socket", "UCX_TLS": "rc"}))
    assert "\nexport NCCL_NET=Socket\nexport UCX_TLS=rc\n" in script(told)
    assert "NCCL" not in script(planned("supermuc", "pytorch-ddp"))


def test_docker_and_podman_get_input_terminal_and_signals() -> None:
    assert "\n    -i ${terminal:+-t}\n    --init\n" in script(plan("workstation", "docker"))
    assert "\n    -i ${terminal:+-t}\n    --pid=host\n" in script(plan("workstation", "podman"))
    assert "--network=host" not in script(plan("workstation", "podman"))
    assert "--network=host" in script(plan("workstation", "podman"), KERNEL)


def test_a_kernel_says_what_it_cannot_take() -> None:
    text = script(plan("workstation", "podman"), KERNEL).replace("command -v podman", "true")
    for word, status in (("relative.json", 64), ("/a:b/kernel.json", 65)):
        assert subprocess.run(["bash", "-c", text, "kernel", word], capture_output=True).returncode == status
