"""Programs of an image as commands of this machine: from a shell, in a job of a real Slurm, by modules, in Jupyter."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, ChImage, Slurm, run
from leftovers import kept_while_used
from slurm_site import SlurmSite
from test_host_mpi import check
from test_rendered_kits import site_profile

Site = SlurmSite[Slurm]
COMMANDS = ("sh", "cat", "printf", "rank_test=/opt/rank_test/bin/rank_test")
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
KERNEL_STACK = {
    "name": "with-kernel",
    "title": "Python with a kernel",
    "blocks": {"python_packages": {"options": {"packages": ["ipykernel==6.29.5"]}}},
    "run": {"command": ["python3"], "mpi": False},
}
CELL = "import os, sys; print(sys.prefix, os.getcwd(), open('beside.txt').read())"


@pytest.fixture
def prefix(site: Site, mpi_hello_image: Path, tmp_path: Path) -> Path:
    """mpi-hello's programs as commands."""
    place = tmp_path / "my apps"
    named = [word for each in COMMANDS for word in ("--command", each)]
    done = site.hpcgen("install", str(mpi_hello_image), "--site", "here", "--prefix", str(place), *named)
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
    """Debian has either Lmod or Environment Modules, so the latter is unpacked here."""
    run(["apt-get", "-q", "download", "environment-modules"], cwd=tmp_path)
    (package,) = tmp_path.glob("environment-modules_*.deb")
    run(["dpkg", "-x", package, tmp_path / "modules"])
    (tcl,) = (tmp_path / "modules/usr/lib").glob("*-linux-*/modulecmd.tcl")
    env = {**site.env, "MODULEPATH": str(prefix / "modulefiles")}
    for words in (["tclsh", str(tcl), "bash"], ["/usr/share/lmod/lmod/libexec/lmod", "bash"]):
        said = subprocess.run([*words, "load", "mpi-hello"], env=env, capture_output=True, text=True)
        shown = subprocess.run(
            ["bash", "-c", said.stdout + "\ntype -P rank_test"], env=env, capture_output=True, text=True
        )
        assert shown.stdout == f"{prefix}/bin/rank_test\n", said.stderr + shown.stderr
        told = subprocess.run([*words, "help", "mpi-hello"], env=env, capture_output=True, text=True)
        assert "rank_test" in told.stderr + told.stdout, told


def test_uninstall_leaves_nothing(prefix: Path, site: Site) -> None:
    done = site.hpcgen("uninstall", "mpi-hello", "--prefix", str(prefix))
    assert done.returncode == 0, done.stderr
    assert not prefix.exists()


@pytest.fixture(scope="module")
def kernel_image(
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    ch_image: ChImage,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[tuple[Path, Path]]:
    """An image with ipykernel, and the collection that it was built from."""
    with kept_while_used(request, tmp_path_factory, "with-kernel") as folder:
        for kind, data in (
            ("site_profiles/here", site_profile(machine_facts, plain_base_image)),
            ("recipes/with-kernel", KERNEL_STACK),
        ):
            path = folder / f"{kind}.yaml"
            path.parent.mkdir()
            path.write_text(json.dumps(data))
        words = [sys.executable, "-m", "hpcgen", "--collection", folder]
        run([*words, "render", "--site", "here", "--stack", "with-kernel", "-o", folder / "kit"])
        ch_image.run(["bash", folder / "kit/build.sh", folder / "image"], env={"HPCGEN_BUILD_OPTIONS": "--no-cache"})
        yield folder / "image", folder


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a Jupyter that has no kernel of its own."""
    place = tmp_path_factory.mktemp("jupyter") / "venv"
    run([sys.executable, "-m", "venv", place])
    run([place / "bin/pip", "install", "-q", "--disable-pip-version-check", "nbclient==0.10.2"])
    return place / "bin"


def test_a_notebook_runs_in_the_kernel_of_the_image(
    kernel_image: tuple[Path, Path], jupyter: Path, testbed_env: dict[str, str], tmp_path: Path
) -> None:
    image, collection = kernel_image
    prefix = tmp_path / "apps"
    words = [
        sys.executable,
        "-m",
        "hpcgen",
        "--collection",
        collection,
        "install",
        image,
        "--prefix",
        prefix,
        "--kernel",
    ]
    run(words, env=testbed_env)
    work = tmp_path / "notes"
    work.mkdir()
    (work / "beside.txt").write_text("beside it")
    cell = {"cell_type": "code", "id": "a", "source": CELL, "outputs": [], "metadata": {}, "execution_count": None}
    about = {"kernelspec": {"name": "with-kernel", "display_name": "x"}}
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": about, "cells": [cell]}
    (work / "n.ipynb").write_text(json.dumps(book))
    env = {**testbed_env, "JUPYTER_PATH": str(prefix / "share/jupyter"), "HOME": str(tmp_path)}
    run([jupyter / "jupyter-execute", "--inplace", "n.ipynb"], cwd=work, env=env, timeout=120)
    (output,) = json.loads((work / "n.ipynb").read_text())["cells"][0]["outputs"]
    assert "".join(output["text"]) == "/opt/python /mnt/0 beside it\n"
