"""Models of a hub on two virtual nodes: fetched once before the job, and found by name by the hub's own library.

The nodes have no network but each other's, so that a rank that asked for a file would find nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

import pytest
from container_tools import ChImage, run
from leftovers import remove
from slurm_site import SlurmSite
from virtual_cluster import VirtualCluster

from tests.helpers.file_server import make_certificate, serving

pytestmark = pytest.mark.slow
NODES = 2
COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {"config.json": b'{"layers": 2}\n', "w/model.safetensors": os.urandom(3_000_000)}
PROGRAM = """\
import hashlib, os
from pathlib import Path
from huggingface_hub import snapshot_download
from mpi4py import MPI
folder = Path(snapshot_download("org/bert"))
sums = [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in {names!r}]
all_found = MPI.COMM_WORLD.gather(("rank", MPI.COMM_WORLD.rank, "on", os.uname().nodename, *sums))
for found in all_found or []:
    print(*found)
"""


def test_every_rank_finds_by_name_what_was_fetched_once(
    site: SlurmSite[VirtualCluster], ch_image: ChImage, tmp_path: Path
) -> None:
    key = make_certificate(tmp_path)
    own = {"HPCGEN_COLLECTIONS": str(site.collection), "HPCGEN_RECORDS": str(tmp_path / "records")}
    hpcgen = [sys.executable, "-m", "hpcgen"]
    with serving(key) as server:
        address = f"org/bert/resolve/{COMMIT}"
        server.files |= {f"{address}/{name}": content for name, content in FILES.items()}
        files = {name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in FILES.items()}
        stack = {
            "name": "hub",
            "title": "Ranks that read a model of a hub",
            "blocks": {
                "mpi4py": {},
                "mpi": {},
                "python_packages": {"options": {"packages": ["huggingface_hub==2.4.0"]}},
            },
            "run": {
                "command": ["python3", "ranks.py"],
                "gpus_per_node": 0,
                "models": [{"name": "bert", "from": server.url(address), "files": files, "to": "/models/bert"}],
            },
        }
        (site.work / "hpcgen.yaml").write_text(json.dumps(stack))
        (site.work / "ranks.py").write_text(PROGRAM.format(names=list(FILES)))
        image = site.work / "image"
        build = ["build", "--site", "here", "--engine", "ch-image", "-o", str(image)]
        ch_image.run([*hpcgen, *build], cwd=site.work, env=own)
        fetch = ["data", "fetch", "--site", "here"]
        told = run([*hpcgen, *fetch], cwd=site.work, env={**ch_image.env, **own, "SSL_CERT_FILE": str(key[1])})
        assert "bert: fetched 3.0 MB" in told.stdout
        asked = len(server.requests)
    done = site.run("submit", str(image), "--nodes", str(NODES))
    assert done.returncode == 0, done.stdout + done.stderr
    sums = " ".join(each["sha256"] for each in files.values())
    found = [line for line in done.stdout.splitlines() if line.startswith("rank ")]
    assert found == [f"rank {rank} on n{1 + rank // 2} {sums}" for rank in range(4)], done.stdout
    assert asked == len(FILES)
    remove(image)
