"""The three commands of the README, typed on a terminal in examples/first-job, for a cluster of four virtual nodes.

What they print is the picture below them: `--update-golden` writes it to tools/docs/terminal.txt, from which
`python tools/docs/pictures.py` draws. The cluster is ``slurm-cpu`` as somebody would extend it for this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from container_tools import ChImage
from slurm_site import SlurmSite
from virtual_cluster import VirtualCluster

from tests.conftest import ROOT
from tests.helpers.first_screen import COLUMNS, commands_of
from tests.helpers.terminal import on_a_terminal, screen

pytestmark = pytest.mark.slow
NODES = 4


@pytest.fixture
def project(site: SlurmSite[VirtualCluster]) -> Path:
    """The example in a folder that all nodes see, with a collection and a config file of the user's."""
    profiles = site.collection / "site_profiles"
    (profiles / "here.yaml").unlink()
    site.profile |= {"name": "slurm-cpu", "title": "A Slurm cluster"}
    site.profile["partitions"]["cpu"]["queues"] = [{"name": site.cluster.partitions[0], "max_nodes": NODES}]
    (profiles / "slurm-cpu.yaml").write_text(json.dumps(site.profile))
    (site.work / "config.yaml").write_text(
        f"collections: [{site.collection}]\nlicences: {{intel-eula: 2026-11-29}}\nrecords: {site.work}/records\n"
    )
    return Path(shutil.copytree(ROOT / "examples" / "first-job", site.work / "pi"))


def test_the_three_commands_of_the_readme(
    site: SlurmSite[VirtualCluster],
    project: Path,
    ch_image: ChImage,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "docs"))
    import pictures
    import terminal

    programs = Path(sys.executable).parent
    env = {**site.env, "HPCGEN_CONFIG": str(site.work / "config.yaml"), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    env["PATH"] = os.pathsep.join([env["PATH"], str(programs)])
    recording: list[str] = []
    for command in commands_of(ROOT / "README.md"):
        start = site.cluster.prefix if "submit" in command else ()
        words = [*start, str(programs / "hpcgen"), *command.split()[1:]]
        said = screen(on_a_terminal(words, "", env, project, COLUMNS))
        print(f"$ {command}", *said, sep="\n")
        recording += [f"$ {command}", *terminal.shortened(said), ""]
    assert "pi is about 3.14" in recording[-3] and "succeeded" in recording[-2]
    if request.config.getoption("--update-golden"):
        terminal.RECORDING.write_text("\n".join(recording).rstrip("\n") + "\n", "utf-8")
        pictures.main()
