"""Programs of an image as commands by other engines than Charliecloud: Apptainer in the sid root, and Podman."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, HostMpi, Sid, SidHpcgen, run
from mpi_hello import HOST_ROOT, profile, render
from test_host_mpi import check
from test_rendered_kits import BASE_IN_SID, CERTIFICATES, site_profile

pytestmark = pytest.mark.slow
COMMANDS = ("sh", "cat", "printf", "rank_test=/opt/rank_test/bin/rank_test")
USED = """\
set -u
mkdir -p "$1 used" && cd "$1 used"
export PATH="$1/bin:$PATH"
type -P printf
"$1"/bin/printf '%s|' "a b" "" "*" $'two\\nlines' '$HOME' "'\\"\\\\" -n é; echo
"$1"/bin/sh -c 'exit 42'; echo "status $?"
head -c 300000 /dev/urandom > in.bin; "$1"/bin/cat < in.bin > out.bin; cmp in.bin out.bin && echo "same bytes"
echo seen > beside.txt; "$1"/bin/cat beside.txt
"$1"/bin/sh -c 'echo aside >&2' 2> err.txt; cat err.txt  # the engine says nothing of its own
"$1"/bin/sh -c 'trap "echo caught; exit 3" TERM; echo ready; while :; do sleep 0.1; done' > said.txt &
until [ -s said.txt ]; do sleep 0.1; done
kill -TERM $!; wait $!; echo "handled $?"; cat said.txt
"$1"/bin/sh -c 'echo ready; exec sleep 60' > plain.txt &
until [ -s plain.txt ]; do sleep 0.1; done
kill -TERM $!; wait $!; echo "ended $?"
echo "in a launcher:"
# Of standard input nothing is read that the program does not want.
echo "for later" | { "$1"/bin/sh -c true; cat; }
"$2"/bin/mpiexec.hydra -n 2 "$1"/bin/rank_test
"""
SEEN = [
    "a b||*|two",
    "lines|$HOME|'\"\\|-n|é|",
    *("status 42", "same bytes", "seen", "aside", "handled 3", "ready", "caught", "ended 143"),
]


@pytest.fixture(scope="module")
def kit(
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    host_mpi: HostMpi,
    sid: Sid,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A kit with its image in both forms, and the collection of its site."""
    folder = tmp_path_factory.mktemp("apptainer")
    facts = profile(machine_facts, plain_base_image, host_mpi)
    facts["containers"]["preferred"] = "apptainer"
    facts["mpi"] |= {"bootstrap": "fork", "binds": [{"source": "/host-mpi", "target": HOST_ROOT}]}
    kit = render(facts, folder, "--format", "singularity")
    collection = kit / "ours/site_profiles"
    collection.mkdir(parents=True)
    (collection / "here.yaml").write_text(json.dumps(facts))
    sid.folder(kit)
    binds = [(kit, "/kit"), (plain_base_image.archive.parent, BASE_IN_SID), (CERTIFICATES, str(CERTIFICATES))]
    options = {"HPCGEN_ENGINE": "apptainer", "HPCGEN_BUILD_OPTIONS": "--sandbox"}
    sid.run(["bash", "build.sh", "sandbox"], binds=binds, cwd="/kit", env=options)
    sid.run(["apptainer", "build", "image.sif", "sandbox"], binds=[(kit, "/kit")], cwd="/kit")
    return kit


@pytest.mark.parametrize("image", ["sandbox", "image.sif"])
def test_by_apptainer(image: str, kit: Path, sid: Sid, sid_hpcgen: SidHpcgen, host_mpi: HostMpi) -> None:
    prefix = f"/kit/apps of {image}"
    binds = [(kit, "/kit"), (host_mpi.root, "/host-mpi")]
    named = [word for each in COMMANDS for word in ("--command", each)]
    words = ["--collection", "/kit/ours", "install", f"/kit/{image}", "--site", "here", "--prefix", prefix, *named]
    sid_hpcgen.run(words, binds=binds, cwd="/kit")
    env = {"I_MPI_ROOT": "/host-mpi", "LD_LIBRARY_PATH": "/host-mpi/lib", "I_MPI_HYDRA_BOOTSTRAP": "fork"}
    said = sid.run(["bash", "-c", USED, "used", prefix, "/host-mpi"], binds=binds, env=env, timeout=300).stdout
    before, _, ranks = said.partition("in a launcher:\n")
    assert before.splitlines() == [f"{prefix}/bin/printf", *SEEN]
    assert ranks.startswith("for later\n"), ranks
    check(ranks)
    sid_hpcgen.run(["uninstall", "mpi-hello", "--prefix", prefix], binds=binds)
    assert not (kit / prefix.removeprefix("/kit/")).exists()


def test_by_podman(
    mpi_hello_image: Path,
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    testbed_env: dict[str, str],
    tmp_path: Path,
) -> None:
    """One process, since no launcher reaches in; of standard input Podman takes all."""
    profiles = tmp_path / "ours/site_profiles"
    profiles.mkdir(parents=True)
    (profiles / "here.yaml").write_text(json.dumps(site_profile(machine_facts, plain_base_image)))
    hpcgen = [sys.executable, "-m", "hpcgen", "--collection", tmp_path / "ours"]
    image, prefix = "podman:localhost/mpi-hello:1", tmp_path / "my apps"
    run([*hpcgen, "convert", mpi_hello_image, image], env=testbed_env)
    named = [word for each in COMMANDS for word in ("--command", each)]
    words = ["install", image, "--site", "here", "--engine", "podman", "--prefix", prefix, *named]
    run([*hpcgen, *words], env=testbed_env)
    said = run(["bash", "-c", USED.partition('echo "in a launcher')[0], "used", prefix], env=testbed_env, cwd=tmp_path)
    assert said.stdout.splitlines() == [f"{prefix}/bin/printf", *SEEN]
