"""Apptainer over two virtual nodes: that of the sid root, called from each node through a program of its name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from container_tools import TESTBED, BaseImage, HostMpi, Sid
from mpi_hello import profile, render
from slurm_site import SlurmSite
from test_rendered_kits import BASE_IN_SID, CERTIFICATES
from virtual_cluster import VirtualCluster

pytestmark = pytest.mark.slow
NODES = 2

PROGRAM = """\
#!/bin/bash
# The sid root has a user, a PATH and a home of its own; all else of the job's environment goes with it.
given=()
while IFS= read -r -d '' each; do
    case $each in PATH=* | HOME=* | USER=* | LOGNAME=* | SHELL=*) ;; *) given+=(-e "$each") ;; esac
done < <(env -0)
exec @enter@ -b @folder@:@folder@ -b @host@:@host@ -C "$PWD" "${given[@]}" -- apptainer "$@"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where everything lies that jobs need, open to the user of the sid root."""
    made = tmp_path_factory.mktemp("apptainer")
    for each in (made, *made.parents):
        if each.is_relative_to(tmp_path_factory.getbasetemp()):
            each.chmod(0o755)
    return made


@pytest.fixture(scope="module")
def image(
    folder: Path, machine_facts: dict[str, Any], plain_base_image: BaseImage, host_mpi: HostMpi, sid: Sid
) -> Path:
    """mpi-hello as a sandbox: a SIF takes minutes to compress."""
    facts = profile(machine_facts, plain_base_image, host_mpi)
    kit = sid.folder(render(facts, folder / "image", "--format", "singularity"))
    binds = [(kit, "/kit"), (plain_base_image.archive.parent, BASE_IN_SID), (CERTIFICATES, str(CERTIFICATES))]
    options = {"HPCGEN_ENGINE": "apptainer", "HPCGEN_BUILD_OPTIONS": "--sandbox"}
    sid.run(["bash", "build.sh", "image"], binds=binds, cwd="/kit", env=options)
    return kit / "image"


@pytest.mark.parametrize(("launcher", "more"), [("mpiexec", {}), ("srun", {"pmi": ["pmi2"]})])
@pytest.mark.parametrize("ranks", [1, 2])
def test_ranks_of_two_nodes_meet(
    folder: Path,
    image: Path,
    cluster: VirtualCluster,
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    host_mpi: HostMpi,
    sid: Sid,
    launcher: str,
    more: dict[str, Any],
    ranks: int,
) -> None:
    place = folder / f"{launcher}-{ranks}"
    place.mkdir()
    site = SlurmSite(place, machine_facts, plain_base_image, host_mpi, cluster)
    site.profile["containers"]["preferred"] = "apptainer"
    site.profile["mpi"].update(launcher=launcher, **more)
    site.write()
    words = {"@enter@": TESTBED / "enter-sid", "@folder@": folder, "@host@": host_mpi.root}
    (place / "bin").mkdir()
    program = place / "bin" / "apptainer"
    program.write_text(re.sub("@[a-z]+@", lambda found: str(words[found[0]]), PROGRAM))
    program.chmod(0o755)
    sid.folder(place)
    done = site.run("submit", str(image), "--nodes", "2", "--ranks-per-node", str(ranks))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"preflight: passed: {2 * ranks} ranks with /opt/host-mpi/lib/libmpi.so.12 over tcp" in done.stdout
    seen = set(re.findall(r"^rank (\d) of (\d) on (n\d)$", done.stdout, re.MULTILINE))
    assert seen == {(str(rank), str(2 * ranks), f"n{rank // ranks + 1}") for rank in range(2 * ranks)}
