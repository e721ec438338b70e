"""Two ranks of one node, each in a container of Apptainer without setuid: which way 64 MB go, and how fast."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from container_tools import BaseImage, Run, Sid, script

from hpcgen.backends.engines import engine_for
from hpcgen.backends.engines.base import Call
from hpcgen.core.support.quoting import line

SOURCE = Path(__file__).parents[2] / "building_blocks" / "files" / "rank_test.c"
WITHIN = re.compile(r"^within .*: 64 MB from rank 0 to rank 1 at ([\d.]+) GB/s, (.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def place(testbed_env: dict[str, str], plain_base_image: BaseImage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image as a folder, rank_test, and a link to the MPICH that starts and carries both."""
    made = tmp_path_factory.mktemp("within")
    mpich = script("make-host-mpi", "--mpich", env=testbed_env).strip()
    image = made / "image"
    image.mkdir()
    subprocess.run(["tar", "-C", image, "--exclude=./dev/*", "-xf", plain_base_image.root_tar], check=True)
    (image / "place").mkdir()
    subprocess.run(["cp", "-r", mpich, made / "mpich"], check=True)
    words = [
        "gcc",
        "-O2",
        "-Wall",
        "-Werror",
        "-rdynamic",
        "-I",
        made / "mpich/include",
        SOURCE,
        "-o",
        made / "rank_test",
    ]
    links = ["-L", made / "mpich/lib", "-lmpi", "-Wl,--allow-shlib-undefined", "-Wl,-rpath,$ORIGIN/mpich/lib"]
    subprocess.run([*words, *links], check=True)
    subprocess.run(["chmod", "-R", "a+rX", made], check=True)
    return made


def started(sid: Sid, place: Path, join: int, env: dict[str, str]) -> Run:
    """The ranks by Hydra, on the words that hpcgen starts Apptainer with."""
    groups = engine_for("apptainer", "1.4.5").words(Call(image="/place/image", folder="/place", join=join))
    container: Sequence[str] = [word for group in groups for word in group]
    ranks = ["/place/mpich/bin/mpiexec", "-launcher", "fork", "-n", "2", *container, "/place/rank_test"]
    variables = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", **env}
    return sid.run(["bash", "-c", line(ranks)], binds=[(place, "/place")], env=variables, cwd="/place", check=False)


def test_ranks_read_each_others_memory_only_with_sharens(sid: Sid, place: Path) -> None:
    shared = started(sid, place, 2, {})
    assert shared.returncode == 0, shared.stdout
    apart = started(sid, place, 0, {})
    assert apart.returncode != 0 and "process_vm_readv" in apart.stdout, apart.stdout
    told = started(sid, place, 0, {"MPIR_CVAR_CH4_CMA_ENABLE": "0"})
    assert told.returncode == 0, told.stdout
    found = {name: WITHIN.search(run.stdout) for name, run in {"shared": shared, "told": told}.items()}
    ways = {name: each[2] for name, each in found.items() if each is not None}
    closed = "not by CMA, which is closed: Operation not permitted, another user namespace"
    assert ways == {"shared": "by CMA", "told": closed}
    print({name: f"{each[1]} GB/s" for name, each in found.items() if each is not None})
