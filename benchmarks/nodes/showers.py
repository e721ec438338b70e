"""How many showers per second 3DGAN learns from on more and more nodes, with one rank and thread on each.

    python benchmarks/nodes/showers.py IMAGE --nodes 1 2 4 --rounds 9

IMAGE is one of the stack 3dgan for a site with an Intel MPI. On a cluster of virtual nodes (root,
``.ci/install-tools``); in one allocation all numbers of nodes run in turns, so that load that comes and goes meets them
all. Each rank has the same work, whatever their number: weak scaling. All nodes share this machine's processors, so
there is nothing to gain from more nodes than these.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import (
    TESTBED,
    SlurmSite,
    VirtualCluster,
    host_and_base,
    job_script,
    script,
    spread,
    variables,
    virtual_cluster,
)

PROGRAM = ("python3", "/opt/gan3d/share/gan3d_step.py")
JOB = re.compile(r"^job ranks (\d+) showers per second ([\d.]+)$", re.MULTILINE)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image", type=Path)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--showers", type=int, default=256, help="of each rank and epoch")
    asked = parser.parse_args()
    image = asked.image.resolve()
    env = {**os.environ, **variables(script("environment"))}
    host, base = host_and_base(env)
    facts = json.loads(subprocess.run([sys.executable, TESTBED / "machine_facts.py"], capture_output=True).stdout)
    with (
        tempfile.TemporaryDirectory(prefix="nodes-") as folder,
        virtual_cluster(env, max(asked.nodes), Path(folder), image.parent) as cluster,
    ):
        site = SlurmSite(Path(folder), facts, base, host, cluster)
        seen = rounds_of(site, image, asked.nodes, asked.rounds, asked.showers)
    first = seen[asked.nodes[0]]
    print(f"load {os.getloadavg()[0]:.1f}; showers per second, median (lowest to highest quarter); ratio by round")
    for nodes, speeds in seen.items():
        each, ratio = spread(speeds), statistics.median(a / b for a, b in zip(speeds, first, strict=True))
        print(f"{nodes:5} nodes  {each.median:.1f} ({each.lower:.1f} to {each.upper:.1f})  {ratio:.2f}")


def rounds_of(
    site: SlurmSite[VirtualCluster], image: Path, nodes: list[int], rounds: int, showers: int
) -> dict[int, list[float]]:
    """Showers per second of the whole job by number of nodes, one for each round after a first that does not count."""
    jobs = {number: job_script(site, image, number, *PROGRAM, "--showers", str(showers)) for number in nodes}
    turns = [number for _ in range(rounds + 1) for number in nodes]
    commands = "".join(f"HPCGEN_PREFLIGHT=0 bash {jobs[number]}\n" for number in turns)
    allocation = ["salloc", "-Q", "-N", str(max(nodes)), "--ntasks-per-node", "1", "--mem", "0"]
    command = [*site.cluster.prefix, *allocation, "bash", "-ec", commands]
    done = subprocess.run(command, cwd=site.work, env=site.env, stdout=subprocess.PIPE, text=True)
    told = [(int(ranks), float(speed)) for ranks, speed in JOB.findall(done.stdout)]
    if done.returncode != 0 or [ranks for ranks, _ in told] != turns:
        sys.exit(f"status {done.returncode}\n{done.stdout}")
    return {number: [speed for ranks, speed in told if ranks == number][1:] for number in nodes}


if __name__ == "__main__":
    main()
