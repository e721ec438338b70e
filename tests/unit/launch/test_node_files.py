"""What a job script puts on its nodes. The scripts are run by bash; srun, sbcast and ch-run are small programs here."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from hpcgen.core.model.batch import BatchSystem
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import FileSystem
from hpcgen.launch import node_files
from hpcgen.launch.script import job_script
from tests.unit.launch.test_preflight import Here

replace = msgspec.structs.replace

# Runs the command once: every "node" is this machine.
SRUN = '#!/bin/bash\necho "srun $*" >> calls\nwhile [[ $1 = -* ]]; do shift; done\nexec "$@"\n'
MPIEXEC = '#!/bin/bash\nshift 4\nexec "$@"\n'
SBCAST = '#!/bin/bash\necho sbcast >> calls\ncp "$2" "$3"\n'
CH_RUN = '#!/bin/bash\necho "ch-run $*" >> calls\nls -d "$PWD"/local/*/* >> calls\nexit 3\n'
SQUASHFUSE = '#!/bin/bash\necho "mounted $1" >> calls\ntouch "$2/mounted-file"\n'
FUSERMOUNT = '#!/bin/bash\nrm "$2"/*\necho unmounted >> calls\n'


class Nodes(Here):
    """The same machine with Slurm, a folder of the node and an image of one file."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        programs = {"srun": SRUN, "sbcast": SBCAST, "ch-run": CH_RUN, "squashfuse_ll": SQUASHFUSE}
        for name, text in {**programs, "fusermount3": FUSERMOUNT, "mpiexec": MPIEXEC}.items():
            self.program(name, text)
        (folder / "local").mkdir()
        (folder / "data.sqfs").touch()
        (folder / "image.sqfs").write_text("image")
        # Not every node has what is local to some.
        other = FileSystem(kind="local", path=str(folder / "none"))
        local = FileSystem(kind="local", path=str(folder / "local"), role="node")
        self.site = replace(self.site, scheduler=BatchSystem(kind="slurm"), file_systems={"disk": other, "node": local})

    def planned(self, nodes: int = 4, **run: object) -> Plan:
        plan = self.plan(nodes)
        return replace(plan, stack=replace(plan.stack, run=replace(plan.stack.run, **run)))

    def job(self, plan: Plan, image: str = "image.sqfs") -> tuple[str, list[str]]:
        """What the job said, and what was called; nothing of it may remain."""
        text = job_script(plan, {}, str(self.folder / image), preflight="")[1]
        env = {"PATH": f"{self.bin}:{os.environ['PATH']}"}
        done = subprocess.run(["bash"], input=text, cwd=self.folder, env=env, capture_output=True, text=True)
        assert done.returncode == 3 or "packed data could not" in done.stderr, done.stderr
        assert not [*(self.folder / "local").iterdir()]
        return done.stderr, (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def nodes(tmp_path: Path) -> Nodes:
    return Nodes(tmp_path)


def started(calls: list[str]) -> str:
    return next(call for call in calls if call.startswith("ch-run "))


def test_an_image_is_copied_to_the_nodes_and_removed(nodes: Nodes) -> None:
    said, calls = nodes.job(nodes.planned(stage="node"))
    assert "stage: copied to" in said and "of 4 nodes" in said
    assert f"{nodes.folder}/local/hpcgen-" in started(calls)
    assert any(call.endswith("/image.sqfs") and "/local/hpcgen-" in call for call in calls)
    assert "sbcast" in calls and "--nodes=4 --ntasks=4" in calls[0]


def test_without_sbcast_each_node_copies(nodes: Nodes) -> None:
    nodes.program("sbcast", "#!/bin/sh\nexit 1\n")
    said, calls = nodes.job(nodes.planned(stage="node"))
    assert "stage: copied to" in said and "/local/hpcgen-" in started(calls)
    assert any(" cp -L -- " in call for call in calls)


def test_a_failed_copy_warns_and_starts_from_the_shared_file(nodes: Nodes) -> None:
    for name in ("sbcast", "cp"):
        nodes.program(name, "#!/bin/sh\nexit 1\n")
    said, calls = nodes.job(nodes.planned(stage="node"))
    assert "warning: the image was not copied to every node" in said
    assert f" {nodes.folder}/image.sqfs " in started(calls)


@pytest.mark.parametrize(("limit", "kind", "copied"), [(100_000, "ext2/ext3", 0), (0, "ext2/ext3", 1), (0, "tmpfs", 0)])
def test_size_times_nodes_decide_and_memory_is_left_alone(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, limit: int, kind: str, copied: int
) -> None:
    stat = shutil.which("stat")
    nodes.program("stat", f'#!/bin/bash\nif [ "$1" = -fc ]; then echo {kind}; else exec {stat} "$@"; fi\n')
    monkeypatch.setattr(node_files, "LIMIT_MB", limit)
    said, calls = nodes.job(nodes.planned())
    assert ("/local/hpcgen-" in started(calls)) is bool(copied)
    assert ("takes memory here" in said) is (kind == "tmpfs")
    assert copied or not [call for call in calls if call.startswith("srun")]


def test_nothing_is_copied_for_one_node_or_where_nobody_wants_it(nodes: Nodes) -> None:
    for plan in (nodes.planned(1), nodes.planned(stage="none")):
        assert "stage" not in job_script(plan, {}, "/shared/image.sqfs", preflight="")[1]


def test_a_folder_is_read_where_it_is(nodes: Nodes) -> None:
    said, calls = nodes.job(nodes.planned(stage="node"), "mpi-hello")
    assert "mpi-hello is a folder" in said and f" {nodes.folder}/mpi-hello " in started(calls)


@pytest.mark.parametrize("number", [1, 4])
def test_packed_data_is_mounted_and_unmounted(nodes: Nodes, number: int) -> None:
    _, calls = nodes.job(nodes.planned(number, binds=[f"{nodes.folder}/data.sqfs:/mnt/1:ro"], stage="none"))
    assert "/data-0:/mnt/1 " in started(calls)
    assert f"mounted {nodes.folder}/data.sqfs" in calls
    assert calls.index("unmounted") > calls.index(started(calls))


def test_without_squashfuse_it_is_unpacked_and_a_failure_ends_the_job(nodes: Nodes) -> None:
    plan = nodes.planned(1, binds=[f"{nodes.folder}/data.sqfs:/mnt/1"])
    nodes.program("squashfuse_ll", "#!/bin/sh\nexit 1\n")
    nodes.program("unsquashfs", '#!/bin/sh\necho unpacked >> calls; touch "$4/file"\n')
    said, calls = nodes.job(plan)
    assert "unpacked" in calls and "is unpacked to" in said and "/data-0:/mnt/1 " in started(calls)
    nodes.program("unsquashfs", "#!/bin/sh\nexit 1\n")
    said, _ = nodes.job(plan)
    assert "packed data could not be mounted or unpacked" in said
