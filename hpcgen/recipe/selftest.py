"""The self-test: a POSIX shell script inside the image that proves each block works."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from hpcgen.blocks.steps import Test
from hpcgen.core.model.image_paths import NOTEST, SELFTEST
from hpcgen.core.model.plan import Plan, PlannedBlock
from hpcgen.core.model.recipe_facts import RankTest
from hpcgen.core.support.quoting import command, sh
from hpcgen.core.support.templates import Template
from hpcgen.core.support.traced import Subject, traced

_fill = Template(Path(__file__).with_name("templates") / "selftest.sh").fill

MARK = "hpcgen-test:"
"""Every line of ``--lines`` that no test printed begins with it."""

BUILD_TEST = f"/bin/sh {SELFTEST} --build"
"""What ends a build, in every format."""

PASSED, FAILED, SKIPPED = "ok", "FAILED", "skipped"
"""The results that the script prints."""

GPU_DEVICES = {"nvidia": "/dev/nvidiactl", "amd": "/dev/kfd", "intel": "/dev/dri/renderD128"}
"""What a node with GPUs of a vendor has; the graphics of a server's management chip have no render node."""

_EXPANDED = re.compile(r"\$[\w{(]")
"""What a shell replaces, and shellcheck asks about where it stands in single quotes."""

_MOST = 200
"""Files of which the loader is asked what it would load, each by a process of its own."""

DRIVER_FILE = "/proc/driver/nvidia/version"
"""Where NVIDIA's driver reports its version."""


def selftest_script(plan: Plan, tests: list[tuple[str, list[Test]]], folders: Sequence[str] = ()) -> str:
    """The script for a plan.

    ``tests``: pairs of a block's label and its tests. ``folders``: where the blocks' programs are; whatever calls MPI
    is looked for below them.
    """
    lines: list[str] = []
    for label, block_tests in tests:
        for test in block_tests:
            if test.ranks:
                continue
            words = f"{sh(f'{label}: {test.name}')} {sh(test.expect)} {sh(test.command)}"
            device = _device(plan, test.device)
            if _EXPANDED.search(test.command):
                lines.append("# shellcheck disable=SC2016 # the shell that runs the test expands it")
            checked = f"check_with {sh(device)} {words}" if device else f"check {words}"
            lines.append(traced(checked, Subject("test", f"{label}: {test.name}")))
    mpi = plan.block("mpi")
    if mpi is not None and folders:
        name = sh(f"{mpi.label}: symbols")
        values = {"name": name, "folders": command(*folders), "own": f"/opt/{mpi.name}"}
        lines += _fill("symbols", **values, passed=PASSED, failed=FAILED).splitlines()
    if mpi is not None and (programs := own_programs(plan)):
        values = {"name": sh(f"{mpi.label}: linked with it"), "programs": command(*programs)}
        lines += _fill("linked", **values, passed=PASSED, failed=FAILED).splitlines()
    if mpi is not None and f"/opt/{mpi.name}" in folders:
        lines += _one_mpi(plan, mpi, folders)
    return _fill(
        title=f"{plan.stack.name} for {plan.site.name}, partition {plan.partition}",
        path=SELFTEST,
        mark=MARK,
        passed=PASSED,
        failed=FAILED,
        skipped=SKIPPED,
        notest=NOTEST,
        tests=lines,
    )


def _one_mpi(plan: Plan, mpi: PlannedBlock, folders: Sequence[str]) -> list[str]:
    """The lines that look for programs that load another MPI than the block's."""
    places = [place for _, _, place in plan.stack.code_places]
    # A file that came with an MPI may load it: in a wheel, or in a folder that was copied as it is.
    bundles = ["/site-packages/.* loads .*/site-packages/"]
    bundles += [f"^{re.escape(place)}/.* loads {re.escape(place)}/" for place in places]
    # Programs of the distribution's packages count, too, but for those of somebody else's image, and where the user
    # wants them all the same.
    packaged = ["/usr/bin"] if plan.base is None and not plan.overruled else []
    return _fill(
        "one_mpi",
        name=sh(f"{mpi.label}: one MPI"),
        own=f"/opt/{mpi.name}",
        folders=command(*folders, *places, *packaged),
        programs=command(*own_programs(plan)),
        bundles=sh("|".join(bundles)),
        most=str(_MOST),
        passed=PASSED,
        failed=FAILED,
    ).splitlines()


def own_programs(plan: Plan) -> list[str]:
    """The user's own files that a job over MPI starts as ranks: each by its path in the image."""
    run = plan.stack.run
    places = [*(place for _, _, place in plan.stack.code_places), "/opt/application"]
    commands = [step.command for step in run.steps] or [run.command]
    words = [word for words in commands if run.mpi for word in _started(words)]
    return list(dict.fromkeys(word for word in words if any(word.startswith(f"{place}/") for place in places)))


def _started(words: list[str]) -> list[str]:
    """The program of a command, also of one that a shell replaces itself with."""
    if words[:2] == ["bash", "-c"] and len(words) == 3:
        match = re.match(r"exec (/[\w./+-]+)(?: |$)", words[2])
        return [match[1]] if match else []
    return words[:1]


def rank_tests(plan: Plan, tests: list[tuple[str, list[Test]]]) -> list[RankTest]:
    """Those that are started as ranks of a job over several nodes, for the kit's recipe.json.

    ``tests``: pairs of a block's name and its tests.
    """
    return [
        RankTest(
            block=block,
            name=test.name,
            command=test.command,
            ranks=test.ranks,
            device=_device(plan, test.device),
            expect=test.expect,
            figures=test.figures,
            measure=test.measure,
        )
        for block, block_tests in tests
        for test in block_tests
        if test.ranks
    ]


def _device(plan: Plan, wanted: str) -> str:
    """The device file that stands for ``gpu`` or ``fabric`` at the site; a path stands for itself."""
    if wanted == "gpu":
        gpu = plan.site.partitions[plan.partition].gpu
        return GPU_DEVICES[gpu.vendor] if gpu is not None else "/dev/nvidiactl"
    if wanted == "fabric":
        return plan.fabric.devices[0] if plan.fabric.devices else "/dev/no-fabric"
    return wanted
