"""Where programs keep what they download and compile: the function of the job scripts, run as it is written."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from hpcgen.backends.engines import engine_for
from hpcgen.blocks.caches import HUGGING_FACE, JAX, TORCH, TRITON, of_gpus, of_packages
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.caches import Cache
from hpcgen.core.support.quoting import line
from hpcgen.launch.caches import Caches, caches_of
from hpcgen.launch.start import start
from hpcgen.planning.planner import make_plan as planned
from tests.conftest import Command
from tests.unit.launch.test_launch import make_plan

SHOWN = 'for name in TORCH_HOME HF_HOME HF_TOKEN_PATH TRITON_CACHE_DIR; do echo "$name=${!name:-}"; done'


class Rank:
    """A machine with a home directory, a folder of the node, and a folder of the job, where a rank is started."""

    def __init__(self, folder: Path, caches: tuple[Cache, ...], *, keep: bool = False) -> None:
        self.home, self.node, self.here = (folder / name for name in ("home", "node", "here"))
        for each in (self.home, self.node, self.here):
            each.mkdir(exist_ok=True)
        self.caches = Caches(caches, str(self.node), "", "gfx90a", keep)

    def start(self, program: str, **more: str) -> subprocess.Popen[str]:
        words = line([*self.caches.words(), "bash", "-c", program])
        script = f"set -euo pipefail\n{self.caches.function()}\n{words}\n"
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), **more}
        return subprocess.Popen(["bash", "-c", script], cwd=self.here, env=env, text=True, stdout=subprocess.PIPE)

    def run(self, program: str = SHOWN, **more: str) -> dict[str, str]:
        out, _ = self.start(program, **more).communicate(timeout=60)
        return dict(row.split("=", 1) for row in out.splitlines())

    def left(self) -> list[str]:
        return sorted(path.name for path in self.node.iterdir())


@pytest.fixture
def rank(tmp_path: Path) -> Rank:
    return Rank(tmp_path, (*TORCH, *TRITON, *HUGGING_FACE))


def test_downloads_are_shared_and_compiled_code_is_on_the_node_while_the_rank_runs(rank: Rank) -> None:
    found = rank.run(f'{SHOWN}; [ -d "$TRITON_CACHE_DIR" ] && touch "$TRITON_CACHE_DIR/kernel"')
    assert found["HF_HOME"] == f"{rank.here}/.cache/huggingface"
    assert found["TORCH_HOME"] == f"{rank.here}/.cache/torch"
    assert found["TRITON_CACHE_DIR"].startswith(f"{rank.node}/hpcgen-cache-")
    assert rank.left() == []
    assert (rank.here / ".cache" / "huggingface").is_dir()


def test_two_ranks_have_folders_of_their_own(rank: Rank) -> None:
    program = "echo TRITON=$TRITON_CACHE_DIR; read -t 30 _ || true"
    first, second = (rank.start(program) for _ in range(2))
    assert first.communicate(timeout=60)[0] != second.communicate(timeout=60)[0]


def test_variables_of_the_user_win(rank: Rank, tmp_path: Path) -> None:
    found = rank.run(HF_HOME="/mine", TRITON_CACHE_DIR=str(tmp_path / "kernels"), HPCGEN_CACHE=str(tmp_path / "all"))
    assert found["HF_HOME"] == "/mine"
    assert found["HF_TOKEN_PATH"] == ""
    assert found["TRITON_CACHE_DIR"] == str(tmp_path / "kernels")
    assert found["TORCH_HOME"] == str(tmp_path / "all" / "torch")
    assert rank.run(XDG_CACHE_HOME=str(tmp_path / "xdg"))["TORCH_HOME"] == str(tmp_path / "xdg" / "torch")


def test_what_the_home_directory_has_is_used_and_a_token_stays_there(rank: Rank) -> None:
    (rank.home / ".cache" / "torch").mkdir(parents=True)
    assert rank.run()["TORCH_HOME"] == ""
    token = rank.home / ".cache" / "huggingface" / "token"
    token.parent.mkdir()
    token.touch()
    found = rank.run()
    assert found["HF_HOME"] == f"{rank.here}/.cache/huggingface"
    assert found["HF_TOKEN_PATH"] == str(token)


def test_the_status_and_the_input_are_those_of_the_program(rank: Rank) -> None:
    assert rank.start("exit 7").wait(60) == 7
    words = line([*rank.caches.words(), "cat"])
    done = subprocess.run(
        ["bash", "-c", f"{rank.caches.function()}\n{words}"], input="through", text=True, capture_output=True
    )
    assert done.stdout == "through"


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_reaches_the_program_and_nothing_is_left(rank: Rank, sent: signal.Signals) -> None:
    name = sent.name.removeprefix("SIG")
    started = rank.start(f"trap 'echo got {name}; exit 3' {name}; echo ready; while :; do sleep 0.05; done")
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    assert len(rank.left()) == 1
    started.send_signal(sent)
    assert started.wait(60) == 3
    assert started.stdout.read() == f"got {name}\n"
    assert rank.left() == []


def test_a_signal_that_comes_while_the_program_starts_ends_both(rank: Rank) -> None:
    # Bash takes a function of the environment for its own `trap`: the function sets its traps slowly by it.
    slow = {"BASH_FUNC_trap%%": '() { sleep 0.2; builtin trap "$@"; }'}
    started = rank.start("builtin trap 'exit 3' INT; echo ready; while :; do sleep 0.05; done", **slow)
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    started.send_signal(signal.SIGINT)
    assert started.wait(60) == 3
    assert rank.left() == []


def test_what_a_killed_rank_left_goes_with_the_next_one_and_no_other(rank: Rank) -> None:
    old = time.time() - 600
    left, running, others = (rank.node / name for name in ("hpcgen-cache-left", "hpcgen-cache-held", "others"))
    for each in (left, running, others):
        each.mkdir()
        os.utime(each, (old, old))
    descriptor = os.open(running, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        rank.run()
    finally:
        os.close(descriptor)
    assert rank.left() == ["hpcgen-cache-held", "others"]


def test_a_node_without_room_still_starts_the_program(rank: Rank) -> None:
    rank.caches = replace(rank.caches, node=str(rank.node / "missing"))
    assert rank.run()["TRITON_CACHE_DIR"] == ""


def test_kept_code_comes_back_to_the_same_rank(tmp_path: Path) -> None:
    rank = Rank(tmp_path, TRITON, keep=True)
    # Of a launcher of MPI: both ranks of a node have the number of what Slurm started there.
    job = {"HPCGEN_RANKS": "2", "SLURM_PROCID": "0", "PMI_RANK": "1"}
    seen = 'echo "seen=$(ls "$TRITON_CACHE_DIR")"; touch "$TRITON_CACHE_DIR/kernel"'
    assert rank.run(seen, **job)["seen"] == ""
    assert rank.run(seen, **job)["seen"] == "kernel"
    assert rank.run(seen, **{**job, "PMI_RANK": "0"})["seen"] == ""
    assert rank.run(seen, **{**job, "HPCGEN_RANKS": "4"})["seen"] == ""
    assert rank.left() == []


def test_what_is_of_use_to_a_later_job_alone_is_on_where_it_is_kept(tmp_path: Path) -> None:
    assert JAX[0].variable not in Rank(tmp_path, (*JAX, *TRITON)).caches.function()
    assert JAX[0].variable in Rank(tmp_path, (*JAX, *TRITON), keep=True).caches.function()


def test_packages_of_a_project_bring_theirs_by_any_spelling() -> None:
    assert [each.variable for each in of_packages(["Huggingface_Hub", "cupy-cuda12x", "numpy"])] == [
        "HF_HOME",
        "HF_TOKEN_PATH",
        "CUPY_CACHE_DIR",
    ]
    assert [each.variable for each in of_gpus(["amd"])] == ["MIOPEN_CUSTOM_CACHE_DIR", "MIOPEN_USER_DB_PATH"]


@pytest.mark.parametrize(
    ("site", "engine", "shared"),
    [
        ("lumi-g", "singularity", '/scratch/"$SLURM_JOB_ACCOUNT"/"$USER"/hpcgen-cache'),
        ("leonardo", "singularity", '"$SCRATCH"/hpcgen-cache-"$USER"'),
        # Charliecloud binds onto folders of the image alone, and no recipe knows the value of a variable.
        ("leonardo", "charliecloud", ""),
        ("workstation", "podman", ""),
    ],
)
def test_downloads_go_to_scratch_where_it_is_seen_inside(site: str, engine: str, shared: str) -> None:
    plan = make_plan(site, mpi=False)
    plan = replace(plan, blocks=[replace(plan.blocks[0], caches=list(TORCH))])
    found = caches_of(plan, engine_for(engine, None))
    assert found is not None
    assert (str(found.shared), found.node) == (shared, "/tmp")


def test_a_home_with_a_limit_is_warned_of(hpcgen: Command, tmp_path: Path) -> None:
    words = ("--site", "lumi-g", "--stack", "pytorch-ddp", "--account", "project_1")
    assert hpcgen("render", *words, "-o", str(tmp_path / "kit")).returncode == 0
    text = (tmp_path / "kit" / "preflight.sh").read_text()
    start = text.index("        caches=(")
    check = text[start : text.index("        done\n", start) + len("        done\n")]
    script = f'preflight_finding() {{ echo "$2: $4"; }}\n{check}'
    (tmp_path / ".cache" / "torch").mkdir(parents=True)

    def said(**env: str) -> str:
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **env}
        return subprocess.run(["bash", "-c", script], env=env, cwd="/", text=True, stdout=subprocess.PIPE).stdout

    assert said() == f"TORCH_HOME: {tmp_path}/.cache/torch\n"
    assert said(TORCH_HOME="/scratch/torch") == ""
    assert said(TORCH_HOME="/scratch/torch", TRITON_CACHE_DIR=f"{tmp_path}/t") == f"TRITON_CACHE_DIR: {tmp_path}/t\n"
    assert said(HPCGEN_CACHE=f"{tmp_path}/elsewhere", HOME="/home/nobody") == ""


@pytest.mark.parametrize(
    ("site", "stack", "expected"),
    [
        ("lumi-g", "pytorch-ddp", {"TORCH_HOME", "TRITON_CACHE_DIR", "MIOPEN_CUSTOM_CACHE_DIR", "MIOPEN_USER_DB_PATH"}),
        ("lumi-g", "vllm", {"HF_HOME", "VLLM_CACHE_ROOT", "MIOPEN_USER_DB_PATH"}),
        ("juwels-booster", "pytorch-ddp", {"TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "CUDA_CACHE_PATH"}),
        ("leonardo", "vllm", {"HF_HOME", "HF_TOKEN_PATH", "TORCH_HOME", "VLLM_CACHE_ROOT", "CUDA_CACHE_PATH"}),
        ("supermuc", "tf-horovod", {"KERAS_HOME"}),
        ("supermuc", "mpi-hello", set()),
    ],
)
def test_a_plan_has_the_caches_of_its_blocks(site: str, stack: str, expected: set[str]) -> None:
    catalog = Catalog()
    plan = planned(catalog, catalog.site(site), catalog.stack(stack))
    found = caches_of(plan, engine_for(plan.engine, None))
    variables = {each.variable for each in found.caches} if found is not None else set()
    assert variables >= expected and bool(variables) == bool(expected)


def test_foreign_code_that_is_sealed_off_gets_none() -> None:
    plan = make_plan("workstation", engine="podman", mpi=False)
    plan = replace(plan, blocks=[replace(plan.blocks[0], caches=list(TORCH))])
    assert start(plan, {}).caches is not None
    assert start(plan, {}, sealed=True).caches is None


def test_no_secret_enters_an_image_as_the_name_of_a_cache() -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "PATH"):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"variable": name, "kind": "compiled"}, Cache)
