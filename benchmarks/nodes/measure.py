"""What starting over several nodes costs: the bare program, its container, the preflight. Run it on a quiet machine.

    python benchmarks/nodes/measure.py --nodes 1 2 4 16 --rounds 7

On a cluster of virtual nodes, as the container tests make it (root, ``.ci/install-tools``), with one rank of mpi-hello
on each. In an allocation these run in turns, so that load that comes and goes meets them all:

    bare        the host's mpiexec starts the program on its own
    container   the job script without its preflight
    preflight   the job script

All nodes share this machine's processors, so what nodes do at the same time is done one after the other here. What
remains on a cluster, beside its own launcher twice, is to collect what the nodes and ranks say. That is measured for
the sizes of --collect, with a launcher that prints what so many ranks would.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests" / "containers"), str(ROOT)]

from container_tools import TESTBED, BaseImage, HostMpi, script, variables  # noqa: E402
from mpi_hello import HOST_ROOT, profile, render  # noqa: E402
from slurm_site import SlurmSite  # noqa: E402
from timing import Command, Spread, alternating, spread, start  # noqa: E402
from virtual_cluster import VirtualCluster, virtual_cluster  # noqa: E402

LAUNCHER = """\
#!/bin/bash
ranks=$2
case "$*" in *rank_test*) tests=1 ;; *) tests=0 ;; esac
exec awk -v ranks="$ranks" -v tests="$tests" 'BEGIN {
    for (i = 0; i < ranks; i++)
        if (tests)
            printf "rank %d of %d on n%d\\nrank %d maps HOST/lib/libmpi.so.12\\n", i, ranks, i, i
        else
            printf "preflight-node\\tn%d\\n", i
}'
"""
"""A launcher that starts nothing: each of its ranks has answered, and all is well."""


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=[1, 2, 4, 16])
    parser.add_argument("--collect", type=int, nargs="*", default=[16, 768, 6336])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="seconds as JSON")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside is not None:
        print(json.dumps(_in_turns(asked.inside, asked.rounds)))
        return
    with tempfile.TemporaryDirectory(prefix="nodes-") as folder:
        result = measure(Path(folder), asked.nodes, asked.collect, asked.rounds)
    if asked.json:
        print(json.dumps(result, default=lambda each: each.__dict__))
    else:
        _print(result)


def measure(folder: Path, nodes: list[int], collect: list[int], rounds: int) -> dict[str, Any]:
    """Seconds of each way by number of nodes, and of collecting by number of ranks."""
    env = {**os.environ, **variables(script("environment"))}
    host, base = host_and_base(env)
    done = subprocess.run([sys.executable, TESTBED / "machine_facts.py"], capture_output=True, text=True, check=True)
    facts = json.loads(done.stdout)
    kit = render(profile(facts, base, host), folder / "image")
    build = ["bash", str(kit / "build.sh"), str(folder / "mpi-hello")]
    subprocess.run(build, env={**env, "HPCGEN_BUILD_OPTIONS": "--no-cache"}, check=True, capture_output=True)
    with virtual_cluster(env, max(nodes), folder) as cluster:
        (folder / "jobs").mkdir()
        site = SlurmSite(folder / "jobs", facts, base, host, cluster)
        started = {number: _started(site, folder / "mpi-hello", number, rounds) for number in nodes}
        collected = {number: _collected(site, folder / "mpi-hello", number, rounds) for number in collect}
    return {"start": started, "collect": collected, "load": os.getloadavg()[0]}


def host_and_base(env: Mapping[str, str]) -> tuple[HostMpi, BaseImage]:
    """What the test bed has."""
    root, folder = Path(script("make-host-mpi", env=env).strip()), Path(env["HPCGEN_TESTBED"])
    script("make-base", "--without-certificates", env=env)
    archives = (folder / f"debian12-plain{ending}.tar" for ending in ("", "-root"))
    base = BaseImage("debian:12-plain", "localhost/debian:12-plain", *archives)
    return HostMpi({**env, "I_MPI_ROOT": str(root), "LD_LIBRARY_PATH": str(root / "lib")}, root), base


def job_script(site: SlurmSite[VirtualCluster], image: Path, nodes: int, *command: str) -> Path:
    """The script of a job with one rank on each node, of the stack's command or another."""
    folder = site.work / f"{nodes}-nodes"
    folder.mkdir(exist_ok=True)
    layout = ["--nodes", str(nodes), "--ranks-per-node", "1", "-o", str(folder / "job.slurm")]
    done = site.run("job", str(image), *layout, *(["--", *command] if command else []))
    if done.returncode != 0:
        sys.exit(done.stderr)
    return folder / "job.slurm"


def _started(site: SlurmSite[VirtualCluster], image: Path, nodes: int, rounds: int) -> dict[str, Spread]:
    job = job_script(site, image, nodes)
    ranks = ["mpiexec", "-n", str(nodes), "-ppn", "1"]
    libraries = f"LD_LIBRARY_PATH={site.host.root}/lib"
    program = [*ranks, "env", libraries, f"{image}/opt/rank_test/bin/rank_test"]
    script = job.with_name("bare.sh")
    script.write_text(f"export I_MPI_HYDRA_BOOTSTRAP=slurm I_MPI_PIN=off\nexec {' '.join(program)}\n")
    allocation = ["salloc", "-Q", "-N", str(nodes), "--ntasks-per-node", "1", "--mem", "0"]
    inside = [sys.executable, __file__, "--rounds", str(rounds), "--inside", str(job)]
    done = subprocess.run(
        [*site.cluster.prefix, *allocation, *inside], cwd=job.parent, env=site.env, capture_output=True, text=True
    )
    if done.returncode != 0:
        sys.exit(f"{nodes} nodes: {done.stdout}\n{done.stderr}")
    return {name: spread(seconds) for name, seconds in json.loads(done.stdout.splitlines()[-1]).items()}


def _in_turns(job: Path, rounds: int) -> dict[str, list[float]]:
    """In the allocation: the ways one after the other."""
    shell = ["/bin/bash", str(job)]
    commands = {
        "bare": Command(["/bin/bash", str(job.with_name("bare.sh"))], {}),
        "container": Command(shell, {"HPCGEN_PREFLIGHT": "0"}),
        "preflight": Command(shell, {}),
    }
    return {name: times.wall for name, times in alternating(commands, rounds).items()}


def _collected(site: SlurmSite[VirtualCluster], image: Path, ranks: int, rounds: int) -> Spread:
    """The preflight of a job of so many nodes, whose launcher has all answers at once."""
    job = job_script(site, image, ranks)
    own = job.with_name("bin")
    own.mkdir(exist_ok=True)
    launcher = own / "mpiexec"
    launcher.write_text(LAUNCHER.replace("HOST", HOST_ROOT))
    launcher.chmod(0o755)
    path = os.pathsep.join([str(own), site.env["PATH"]])
    command = Command(["/bin/bash", str(job.with_name("job.preflight.sh")), str(image)], {"PATH": path})
    start(command)
    return spread([start(command)[0] for _ in range(rounds)])


def _print(result: Mapping[str, Any]) -> None:
    print(f"load {result['load']:.1f}; seconds, median (lowest to highest quarter)")
    for nodes, ways in result["start"].items():
        print(f"{nodes:5} nodes", *(f"{name} {_told(each)}" for name, each in ways.items()), sep="  ")
    for ranks, each in result["collect"].items():
        print(f"{ranks:5} ranks' answers collected in {_told(each)}")


def _told(each: Spread) -> str:
    return f"{each.median:.2f} ({each.lower:.2f} to {each.upper:.2f})"


if __name__ == "__main__":
    main()
