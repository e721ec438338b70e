"""Programs of an image as commands of this machine: from a shell, in a job of a real Slurm, by modules, in Jupyter."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from container_tools import Slurm, run
from slurm_site import SlurmSite
from test_host_mpi import check

Site = SlurmSite[Slurm]
STACK = {
    "name": "mpi-hello",
    "title": "Ours",
    "blocks": {"rank_test": {}, "mpi": {}},
    "run": {"command": ["/opt/rank_test/bin/rank_test"], "gpus_per_node": 0},
    "commands": [
        *("sh", "cat", "printf"),
        {"program": "rank_test=/opt/rank_test/bin/rank_test", "words": ["run", "--ranks"]},
    ],
}
ODD = ["a b", "", "*", "two\nlines", "$HOME", "'\"\\", "-n", "é"]
JOB = """\
#!/bin/bash
#SBATCH -n 2 -t 2 -o job.out
cd "$SLURM_SUBMIT_DIR/sub folder"
. {lmod}
module use {modules}
module load mpi-hello
type -P rank_test
{bin}/sh -c 'exit 42'; echo "status $?"
{bin}/printf '%s|' "a b" "" "*" $'two\\nlines'; echo
head -c 300000 /dev/urandom > in.bin; {bin}/cat < in.bin > out.bin; cmp in.bin out.bin && echo "same bytes"
{bin}/sh -c 'trap "echo caught; exit 3" TERM; echo ready; while :; do sleep 0.1; done' &
sleep 1; kill -TERM $!; wait $!; echo "signal $?"
echo "mpiexec:"; I_MPI_HYDRA_BOOTSTRAP=fork mpiexec -n 2 rank_test
echo "srun:"; srun --mpi=pmi2 -n 2 rank_test
"""
COMPLETED = '. "$1"; _completion_loader rank_test; complete -p rank_test'
CELL = "import os, sys; print(sys.prefix, os.getcwd(), open('beside.txt').read())"


@pytest.fixture
def prefix(site: Site, mpi_hello_image: Path, tmp_path: Path) -> Path:
    """mpi-hello's programs as commands."""
    place = tmp_path / "my apps"
    (site.collection / "recipes").mkdir()
    (site.collection / "recipes/mpi-hello.yaml").write_text(json.dumps(STACK))
    done = site.hpcgen("install", str(mpi_hello_image), "--site", "here", "--prefix", str(place))
    assert done.returncode == 0, done.stderr
    return place


def test_commands_do_as_the_programs_themselves(prefix: Path, site: Site, tmp_path: Path) -> None:
    def called(name: str, *words: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([prefix / "bin" / name, *words], cwd=tmp_path, env=site.env, capture_output=True, **more)

    said = called("printf", "%s|", *ODD)
    assert said.stdout.decode() == "".join(f"{word}|" for word in ODD), said.stderr
    data = bytes(range(256)) * 1000
    assert called("cat", input=data).stdout == data
    assert called("sh", "-c", "exit 42").returncode == 42
    (tmp_path / "beside.txt").write_text("seen")
    assert called("cat", "beside.txt").stdout == b"seen"
    sleeper = subprocess.Popen(
        [prefix / "bin/sh", "-c", "echo $$; exec sleep 60"], env=site.env, stdout=-1, cwd=tmp_path
    )
    assert sleeper.stdout is not None and int(sleeper.stdout.readline()) == sleeper.pid
    sleeper.send_signal(signal.SIGTERM)
    assert sleeper.wait(20) == -signal.SIGTERM


def test_commands_in_a_job_and_as_ranks(prefix: Path, site: Site) -> None:
    (site.work / "sub folder").mkdir()
    lmod = "/usr/share/lmod/lmod/init/bash"
    text = JOB.format(lmod=lmod, modules=f"'{prefix}/modulefiles'", bin=f"'{prefix}/bin'")
    (site.work / "job.sh").write_text(text)
    env = {**site.env, "MODULEPATH": str(prefix / "modulefiles")}
    done = run(["sbatch", "-W", "job.sh"], cwd=site.work, env=env, check=False, timeout=200)
    output = (site.work / "job.out").read_text()
    assert done.returncode == 0, output
    before, _, ranks = output.partition("mpiexec:\n")
    assert before.splitlines() == [
        *(f"{prefix}/bin/rank_test", "status 42", "a b||*|two", "lines|", "same bytes", "ready", "caught", "signal 3"),
    ]
    for each in ranks.split("srun:\n"):
        check(each)


def test_both_kinds_of_module_commands_read_the_module(prefix: Path, site: Site, tmp_path: Path) -> None:
    """Debian has either Lmod or Environment Modules, so the latter is unpacked here. bash-completion finds words."""
    run(["apt-get", "-q", "download", "environment-modules", "bash-completion"], cwd=tmp_path)
    for package in tmp_path.glob("*.deb"):
        run(["dpkg", "-x", package, tmp_path / "modules"])
    completion = tmp_path / "modules/usr/share/bash-completion/bash_completion"
    (tcl,) = (tmp_path / "modules/usr/lib").glob("*-linux-*/modulecmd.tcl")
    env = {**site.env, "MODULEPATH": str(prefix / "modulefiles"), "XDG_DATA_DIRS": ""}
    for words in (["tclsh", str(tcl), "bash"], ["/usr/share/lmod/lmod/libexec/lmod", "bash"]):
        said = subprocess.run([*words, "load", "mpi-hello"], env=env, capture_output=True, text=True)
        shown = subprocess.run(
            ["bash", "-c", f"{said.stdout}\ntype -P rank_test; echo $XDG_DATA_DIRS; {COMPLETED}", "-", completion],
            env=env,
            capture_output=True,
            text=True,
        )
        assert shown.stdout.splitlines() == [
            f"{prefix}/bin/rank_test",
            f"{prefix}/share:/usr/local/share:/usr/share",
            "complete -o bashdefault -o default -o filenames -f -W 'run --ranks' rank_test",
        ], said.stderr + shown.stderr
        told = subprocess.run([*words, "help", "mpi-hello"], env=env, capture_output=True, text=True)
        assert "rank_test" in told.stderr + told.stdout, told


def test_uninstall_leaves_nothing(prefix: Path, site: Site) -> None:
    done = site.hpcgen("uninstall", "mpi-hello", "--prefix", str(prefix))
    assert done.returncode == 0, done.stderr
    assert not prefix.exists()


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a Jupyter that has no kernel of its own."""
    place = tmp_path_factory.mktemp("jupyter") / "venv"
    uv = [sys.executable, "-m", "uv"]
    run([*uv, "venv", "-q", place])
    run([*uv, "pip", "install", "-q", "--python", place / "bin/python", "nbclient==0.10.2"])
    return place / "bin"


def test_a_notebook_runs_in_the_kernel_of_the_image(
    python_image: Path, jupyter: Path, testbed_env: dict[str, str], tmp_path: Path
) -> None:
    prefix = tmp_path / "apps"
    hpcgen = [sys.executable, "-m", "hpcgen", "--collection", python_image.parent / "collection"]
    run([*hpcgen, "install", python_image, "--prefix", prefix, "--kernel"], env=testbed_env)
    work = tmp_path / "notes"
    work.mkdir()
    (work / "beside.txt").write_text("beside it")
    cell = {"cell_type": "code", "id": "a", "source": CELL, "outputs": [], "metadata": {}, "execution_count": None}
    about = {"kernelspec": {"name": "python-packages", "display_name": "x"}}
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": about, "cells": [cell]}
    (work / "n.ipynb").write_text(json.dumps(book))
    env = {**testbed_env, "JUPYTER_PATH": str(prefix / "share/jupyter"), "HOME": str(tmp_path)}
    run([jupyter / "jupyter-execute", "--inplace", "n.ipynb"], cwd=work, env=env, timeout=120)
    (output,) = json.loads((work / "n.ipynb").read_text())["cells"][0]["outputs"]
    assert "".join(output["text"]) == "/opt/python /mnt/0 beside it\n"
