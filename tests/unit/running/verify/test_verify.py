"""hpcgen test: what is made of the lines that an image prints, and each promise kept, broken and skipped."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from hpcgen.api import default_catalog
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.record import TestResult as Result
from hpcgen.core.model.record import TestRun as Run
from hpcgen.kit.kit import make_kit
from hpcgen.planning.planner import make_plan
from hpcgen.running.verify.contract import engine_tests, node_tests, older, rank_tests
from hpcgen.running.verify.junit import junit_xml
from hpcgen.running.verify.lines import SelfTestLines, agree, read_ranks, version_of
from hpcgen.running.verify.node import engine_script, engine_version, node_command, read_node
from hpcgen.running.verify.starts import StartResult, start_script
from tests.conftest import ROOT, Command

replace = msgspec.structs.replace


def plan_for(site: str, stack: str = "mpi-hello") -> Plan:
    catalog = default_catalog()
    return make_plan(catalog, catalog.site(site), catalog.stack(stack))


def by_name(results: list[Result]) -> dict[str, Result]:
    return {each.name: each for each in results}


# the lines of the self-test


def read(text: str, status: int | None = 0) -> list[Result]:
    ticks = iter(range(100))
    reader = SelfTestLines(lambda group, name: None, lambda result: None, lambda: float(next(ticks)))
    for line in text.splitlines():
        reader.feed(line)
    return reader.finish(status, 30)


COMPLETE = """\
hpcgen-test: begin python 3.12.3: version
Python 3.12.3
hpcgen-test: end ok
hpcgen-test: begin tensorflow 2.15.1: matrix: product
Traceback
ValueError: 3
hpcgen-test: end FAILED: status 1
hpcgen-test: begin tensorflow 2.15.1: GPU
hpcgen-test: end skipped: no /dev/nvidiactl
hpcgen-test: done
"""


def test_each_test_has_its_block_result_time_reason_and_output() -> None:
    passed, failed, skipped = read(COMPLETE, 1)
    assert passed == Result(
        group="python", name="version", result="passed", seconds=1.0, reason="", output="Python 3.12.3"
    )
    assert (failed.group, failed.name) == ("tensorflow", "matrix: product")
    assert (failed.result, failed.reason, failed.output) == ("failed", "status 1", "Traceback\nValueError: 3")
    assert (skipped.result, skipped.reason) == ("skipped", "no /dev/nvidiactl")


def test_results_are_told_while_the_script_still_runs() -> None:
    told: list[str] = []
    reader = SelfTestLines(lambda group, name: told.append(f"{group} {name}"), lambda each: told.append(each.result))
    for line in COMPLETE.splitlines()[:4]:
        reader.feed(line)
    assert told == ["python version", "passed", "tensorflow matrix: product"]


def test_a_container_that_does_not_start_is_one_failed_test_with_what_it_said() -> None:
    (only,) = read("ch-run[7]: error: can't mkdir /mnt/host: Read-only file system\n", 1)
    assert (only.group, only.name, only.result) == ("contract", "self-test", "failed")
    assert only.reason == "the start ended with status 1 before the first test"
    assert "Read-only" in only.output


def test_a_script_that_ends_inside_a_test_fails_that_test() -> None:
    results = read("\n".join(COMPLETE.splitlines()[:5]), 137)
    assert [each.result for each in results] == ["passed", "failed"]
    assert results[1].reason == "the start ended with status 137 (the signal SIGKILL) in the middle of it"
    assert results[1].output == "Traceback"


def test_a_script_that_ends_between_two_tests_fails() -> None:
    results = read("\n".join(COMPLETE.splitlines()[:3]), 0)
    assert [each.result for each in results] == ["passed", "failed"]
    assert "after 1 tests" in results[1].reason


def test_a_script_that_hangs_fails_with_its_limit() -> None:
    results = read("\n".join(COMPLETE.splitlines()[:5]), None)
    assert results[1].reason == "it was ended after 30 s in the middle of it"


def test_a_launcher_that_fails_after_the_last_test_is_told() -> None:
    text = "hpcgen-test: begin a 1: b\nhpcgen-test: end ok\nhpcgen-test: done\nBAD TERMINATION\n"
    assert [each.result for each in read(text, 0)] == ["passed"]
    results = read(text, 9)
    assert results[-1].result == "failed"
    assert "BAD TERMINATION" in results[-1].output


def test_an_outcome_that_nobody_knows_is_no_pass() -> None:
    (only,) = read("hpcgen-test: begin a 1: b\nhpcgen-test: end perhaps\nhpcgen-test: done\n")
    assert (only.result, only.reason) == ("failed", "perhaps")


def test_the_rendered_self_test_speaks_so(tmp_path: Path) -> None:
    """The script itself, with a block whose tests run anywhere."""
    from hpcgen.blocks.steps import Test as Step
    from hpcgen.recipe.selftest import selftest_script

    steps = [Step("yes", "echo fine", expect="fine"), Step("no", "echo oh; exit 3"), Step("fab", "true", "/dev/none")]
    script = tmp_path / "selftest.sh"
    script.write_text(selftest_script(plan_for("workstation"), [("block 1", steps)]))
    reader = SelfTestLines(lambda group, name: None, lambda result: None)
    ended = start_script(f"sh {script} --lines", 30, reader.feed)
    results = reader.finish(ended.status, 30)
    assert [(each.name, each.result, each.reason) for each in results] == [
        ("yes", "passed", ""),
        ("no", "failed", "status 3"),
        ("fab", "skipped", "no /dev/none"),
    ]
    assert results[1].output == "oh"


def test_the_self_test_of_an_image_of_the_first_release_is_understood() -> None:
    """It says "left out", and has no line for programs at its end."""
    reader = SelfTestLines(lambda group, name: None, lambda result: None)
    # Its test of libraries asks ldconfig, which the PATH of an ordinary user lacks.
    script = f"PATH=$PATH:/usr/sbin:/sbin sh {ROOT}/tests/specimens/0.1.0/kits/docker/selftest.sh --lines"
    ended = start_script(script, 60, reader.feed)
    results = by_name(reader.finish(ended.status, 60))
    assert results["psm2 on the device"].result == "skipped"
    assert {each.result for each in results.values()} == {"passed", "failed", "skipped"}
    assert "self-test" not in results


# starting


def test_a_start_is_ended_with_all_its_children_when_its_time_is_up(tmp_path: Path) -> None:
    began = time.monotonic()
    ended = start_script(f"echo begun; (sleep 30; touch {tmp_path}/late) & wait", 1)
    # bash warns first of a locale that is not installed.
    assert (ended.status, ended.lines[-1:]) == (None, ["begun"])
    assert time.monotonic() - began < 20


def test_a_start_that_never_stops_talking_is_ended_too() -> None:
    assert start_script("while :; do echo x; done", 0.2, lambda line: None).status is None


def test_the_callers_image_does_not_take_the_place_of_the_tested_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCGEN_IMAGE", "/another")
    assert start_script("echo image ${HPCGEN_IMAGE:-none}", 10).lines[-1:] == ["image none"]


def test_the_callers_variables_do_not_change_the_lines_that_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_LABELIO", "1")
    monkeypatch.setenv("OMPI_MCA_orte_tag_output", "1")
    lines = start_script("echo ${SLURM_LABELIO:-plain} ${OMPI_MCA_orte_tag_output:-plain}", 10).lines
    assert lines[-1:] == ["plain plain"]


# the engine


def engine(plan: Plan, printed: str, status: int | None = 0) -> Result:
    (only,) = engine_tests(plan, StartResult(status, printed.splitlines(), 0.1))
    return only


def test_engine_is_held_against_the_profile() -> None:
    plan = plan_for("hlrs-testbed")
    assert engine(plan, "/usr/bin/singularity\nsingularity version 3.4.1-1\n").result == "passed"
    newer = engine(plan, "singularity-ce version 3.11.4\n")
    assert (newer.result, newer.reason) == ("passed", "singularity 3.11.4; the profile says 3.4.1")
    old = engine(plan, "2.6.1-dist\n")
    assert old.result == "failed"
    assert "2.6.1 is installed" in old.reason
    assert "says 3.4.1" in old.reason


@pytest.mark.parametrize("site", ["alps", "perlmutter"])
def test_another_programs_release_is_not_held_against_the_engines(site: str) -> None:
    """srun, which starts the Container Engine, tells Slurm's release."""
    asked = engine_script(plan_for(site), {})
    assert ("--version" in asked) == (site == "perlmutter")
    assert engine(plan_for(site), "/usr/bin/srun\n").result == "passed"


def test_missing_engine_fails_and_says_so() -> None:
    result = engine(plan_for("supermuc"), "ch-run is not on PATH\n", 69)
    assert (result.result, result.reason, result.output) == (
        "failed",
        "ch-run does not start here",
        "ch-run is not on PATH",
    )


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("/usr/bin/ch-run\n0.31", "0.31"),
        ("apptainer version 1.4.5", "1.4.5"),
        ("podman version 4.3.1", "4.3.1"),
        ("Docker version 27.3.1, build ce12230", "27.3.1"),
        ("singularity version 3.4.1-1", "3.4.1"),
        ("no number", ""),
    ],
)
def test_versions_of_engines(printed: str, version: str) -> None:
    assert engine_version(printed.splitlines()) == version


@pytest.mark.parametrize(
    ("here", "wanted", "is_older"),
    [
        ("0.31", "0.45", True),
        ("0.45", "0.31", False),
        ("1.4", "1.4.5", False),
        ("1.10", "1.9", False),
        ("x", "1", False),
    ],
)
def test_older_as_far_as_both_go(here: str, wanted: str, is_older: bool) -> None:
    assert older(here, wanted) is is_older


# the node


X86 = "mmx sse sse2 pni ssse3 sse4_1 sse4_2 popcnt cx16 lahf_lm movbe avx avx2 bmi1 bmi2 fma abm f16c xsave"
NODE = f"""\
processor\t: 0
flags\t\t: fpu {X86}
power management:

hpcgen-node: devices
/dev/nvidiactl
hpcgen-node: driver
NVRM version: NVIDIA UNIX x86_64 Kernel Module  418.39  Sat Feb  9 19:19:37 CST 2019
GCC version:  gcc version 7.3.0
hpcgen-node: libraries
/usr/lib/x86_64-linux-gnu/libcuda.so.1
hpcgen-node: end
"""


def node(plan: Plan, printed: str, built_for: str = "") -> dict[str, Result]:
    lines = printed.splitlines()
    return by_name(node_tests(plan, read_node(lines), StartResult(0, lines, 0.1), built_for))


def test_cpu_has_what_the_image_was_planned_for_or_the_test_fails() -> None:
    plan = plan_for("workstation")
    assert plan.site.partitions["main"].cpu.target == "x86_64_v3"
    assert node(plan, NODE)["CPU"].result == "passed"
    lacking = node(plan, NODE.replace(" avx2", ""))["CPU"]
    assert lacking.result == "failed"
    assert "x86_64_v3" in lacking.reason
    assert "avx2" in lacking.reason
    newer = node(plan_for("supermuc"), NODE)["CPU"]
    assert newer.result == "failed"
    assert "avx512f" in newer.reason
    assert node(plan, NODE.replace("flags", "nothing"))["CPU"].result == "skipped"


def test_a_cpu_whose_hypervisor_hides_what_code_does_not_use_passes() -> None:
    cpuinfo = (ROOT / "tests" / "cpus" / "broadwell-virtual").read_text().split("\n\n")[0]
    printed = cpuinfo + NODE[NODE.index("\n\n") :]
    assert node(plan_for("workstation"), printed, "broadwell")["CPU"].result == "passed"
    assert "lacks avx2" in node(plan_for("workstation"), printed.replace(" avx2", ""), "broadwell")["CPU"].reason


def test_an_image_for_another_cpu_than_the_profiles_is_held_against_its_own() -> None:
    plan = plan_for("workstation")
    result = node(plan, NODE, "skylake_avx512")["CPU"]
    assert result.result == "failed"
    assert "the image is for skylake_avx512" in result.reason
    assert node(plan, NODE, "x86_64_v2")["CPU"].reason == "it has all features that code for x86_64_v2 uses"
    profile = node(plan, NODE.replace(" avx2", ""), "x86_64_v2")["CPU"]
    assert (profile.result, "the profile of workstation says x86_64_v3" in profile.reason) == ("failed", True)


def test_this_machine_prints_what_is_read() -> None:
    words = node_command()
    ended = start_script(f"{words[0]} {words[1]} '{words[2].replace(chr(39), chr(39) + chr(92) + chr(39) * 2)}'", 20)
    found = read_node(ended.lines)
    assert found is not None
    assert {"fpu", "asimd"} & found.features


def test_gpu_driver_and_device() -> None:
    plan = plan_for("hlrs-testbed")
    good = node(plan, NODE)
    assert (good["GPU device"].result, good["GPU driver"].result) == ("passed", "passed")
    assert node(plan, NODE.replace("418.39", "430.50"))["GPU driver"].result == "passed"
    open_module = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build"
    assert "580.65.06" in node(plan, NODE.replace(NODE.splitlines()[7], open_module))["GPU driver"].reason
    old = node(plan, NODE.replace("418.39", "410.48"))["GPU driver"]
    assert (old.result, "410.48" in old.reason, "418.39" in old.reason) == ("failed", True, True)
    alone = node(plan, NODE.replace("/usr/lib/x86_64-linux-gnu/libcuda.so.1\n", ""))["GPU driver"]
    assert alone.result == "failed"
    assert "libcuda.so.1" in alone.reason


def test_without_a_gpu_its_tests_are_skipped_with_the_reason() -> None:
    none = node(plan_for("hlrs-testbed"), NODE.replace("/dev/nvidiactl\n", "").replace(NODE.splitlines()[7], ""))
    assert (none["GPU device"].result, none["GPU driver"].result) == ("skipped", "skipped")
    assert "/dev/nvidiactl" in none["GPU device"].reason
    assert node(plan_for("workstation"), NODE)["GPU driver"].reason == "the partition has no GPU"


def test_an_image_that_does_not_start_proves_nothing_of_the_node() -> None:
    results = node(plan_for("hlrs-testbed"), "FATAL: could not open image\n")
    assert {each.result for each in results.values()} == {"skipped"}


# the ranks


HOST = "/dss/dsshome1/lrz/sys/intel/impi2019u6/compilers_and_libraries_2020.0.154/linux/mpi/intel64"
RANKS = "\n".join(
    [
        "[0] MPI startup(): Intel(R) MPI Library, Version 2019 Update 6  Build 20191024 (id: 082ae5608)",
        "[0] MPI startup(): libfabric provider: psm2",
        *(
            f"rank {rank} of 4 on i01\nrank {rank} maps {HOST}/libfabric/lib/prov/libpsmx2-fi.so\n"
            f"rank {rank} maps {HOST}/lib/release/libmpi.so.12.0"
            for rank in (1, 0, 3, 2)
        ),
        "library Intel(R) MPI Library 2019 Update 6 for Linux* OS",
        "within i01: 64 MB from rank 0 to rank 1 at 5.12 GB/s, not by CMA",
    ]
)
NAMES = ["ranks", "MPI library", "one MPI library", "MPI version", "fabric provider", "within a node"]


def ranks(text: str, status: int | None = 0, plan: Plan | None = None) -> dict[str, Result]:
    return by_name(rank_tests(plan or plan_for("supermuc"), StartResult(status, text.splitlines(), 1.0)))


def test_a_good_job_passes_every_test() -> None:
    results = ranks(RANKS)
    assert list(results) == NAMES
    assert {each.result for each in results.values()} == {"passed"}, results


def test_how_fast_ranks_of_a_node_send_is_said_where_they_did() -> None:
    said = ranks(RANKS)["within a node"]
    assert said.reason == "i01: 64 MB from rank 0 to rank 1 at 5.12 GB/s, not by CMA"
    assert ranks(RANKS.rpartition("\n")[0])["within a node"].result == "skipped"


def test_ranks_are_found_behind_the_label_of_a_launcher() -> None:
    labelled = "\n".join(f"[1,0]<stdout>:{line}" for line in RANKS.splitlines())
    plain = {name: each.reason for name, each in ranks(RANKS).items()}
    assert {name: each.reason for name, each in ranks(labelled).items()} == plain


def test_a_rank_is_found_behind_the_half_of_a_line_of_another() -> None:
    """Intel MPI writes the start of its own lines first, and a launcher passes on what there is."""
    torn = RANKS.replace("rank 3 of 4", "[0] MPI startup(): rank 3 of 4").replace("rank 2 maps", "Rank    Prank 2 maps")
    assert {each.result for each in ranks(torn).values()} == {"passed"}


def test_ranks_that_are_jobs_of_their_own_fail() -> None:
    result = ranks(RANKS.replace(" of 4 on", " of 1 on").replace("rank 1 of", "rank 0 of"), 3)["ranks"]
    assert result.result == "failed"
    assert "jobs of 1 instead of one of 4" in result.reason
    assert "PMI" in result.reason


def test_a_rank_that_is_missing_or_ends_badly_fails() -> None:
    text = RANKS.replace("rank 3 of 4 on i01\n", "")
    assert "rank 3 of 4 did not come up" in ranks(text)["ranks"].reason
    assert ranks(RANKS, 139)["ranks"].result == "failed"
    assert ranks(RANKS, None)["ranks"].result == "failed"


def test_no_rank_at_all_fails_once_and_leaves_the_rest_out() -> None:
    results = ranks("Fatal error in MPI_Init\n", 1)
    assert results["ranks"].result == "failed"
    assert results["ranks"].output == "Fatal error in MPI_Init"
    assert {results[name].result for name in NAMES[1:]} == {"skipped"}


def test_the_images_library_in_place_of_the_hosts_fails() -> None:
    image = "/opt/intel_mpi/intel64/lib/release/libmpi.so.12.0"
    results = ranks(RANKS.replace(f"{HOST}/lib/release/libmpi.so.12.0", image))
    assert results["MPI library"].result == "failed"
    assert image in results["MPI library"].reason
    assert results["one MPI library"].result == "passed"


def test_a_library_behind_a_bound_link_is_the_hosts() -> None:
    assert ranks(RANKS.replace(f"{HOST}/lib/", "/lrz/sys/spack/impi/lib/"))["MPI library"].result == "passed"


def test_where_the_host_only_starts_the_ranks_the_image_keeps_its_own_library() -> None:
    plan = plan_for("supermuc")
    mpi = plan.site.mpi
    assert mpi is not None
    plan = replace(plan, site=replace(plan.site, mpi=replace(mpi, binds=[], libraries=[])))
    image = "/opt/intel_mpi/intel64/lib/release/libmpi.so.12.0"
    assert (
        ranks(RANKS.replace(f"{HOST}/lib/release/libmpi.so.12.0", image), plan=plan)["MPI library"].result == "passed"
    )
    assert ranks(RANKS, plan=plan)["MPI library"].result == "failed"


def test_one_rank_with_another_library_is_told() -> None:
    text = RANKS.replace(f"rank 2 maps {HOST}/lib/release", "rank 2 maps /opt/intel_mpi/lib")
    results = ranks(text)
    assert results["one MPI library"].result == "failed"
    assert "rank 2: /opt/intel_mpi/lib/libmpi.so.12.0" in results["one MPI library"].reason
    gone = ranks(RANKS.replace(f"rank 2 maps {HOST}/lib/release/libmpi.so.12.0", ""))
    assert (gone["MPI library"].result, gone["one MPI library"].result) == ("failed", "failed")


def test_another_version_than_the_profiles_fails() -> None:
    result = ranks(RANKS.replace("2019 Update 6 for", "2019 Update 9 for"))["MPI version"]
    assert result.result == "failed"
    assert "2019.6.154" in result.reason


def test_another_provider_than_the_profiles_fails_and_a_silent_mpi_is_skipped() -> None:
    wrong = ranks(RANKS.replace("provider: psm2", "provider: tcp"))["fabric provider"]
    assert (wrong.result, wrong.reason) == ("failed", "tcp is used, but the profile says psm2 for omni-path")
    assert ranks(RANKS.replace("provider: psm2", "provider: psm2;ofi_rxm"))["fabric provider"].result == "passed"
    silent = ranks(RANKS.replace("libfabric provider", "something"))["fabric provider"]
    assert (silent.result, "does not say" in silent.reason) == ("skipped", True)


def test_a_node_with_another_release_of_the_library_breaks_the_contract() -> None:
    mixed = ranks(f"{RANKS}\nrank 1 has library Intel(R) MPI Library 2021.16 for Linux* OS\n")["one MPI library"]
    assert mixed.result == "failed"
    assert mixed.reason.startswith("ranks of one job use different releases: rank 0: Intel(R) MPI Library 20")
    assert mixed.reason.endswith("; rank 1: Intel(R) MPI Library 2021.16 for Linux* OS")


def test_without_a_host_mpi_the_images_own_is_wanted() -> None:
    plan = plan_for("workstation")
    version = plan.block("mpi").version  # type: ignore[union-attr]
    text = f"rank 0 of 1 on pc\nrank 0 maps /opt/mpich/lib/libmpi.so.12.4.2\nlibrary MPICH Version:      {version}\n"
    results = ranks(text, plan=plan)
    assert [results[name].result for name in NAMES] == ["passed", "passed", "passed", "passed", "skipped", "skipped"]
    other = ranks(text.replace("/opt/mpich", "/usr"), plan=plan)
    assert other["MPI library"].result == "failed"
    assert ranks(text.replace(version, "3.4.2"), plan=plan)["MPI version"].result == "failed"


def test_a_stack_without_mpi_leaves_the_ranks_out() -> None:
    results = rank_tests(plan_for("supermuc", "onnxruntime"), None)
    assert [each.name for each in results] == NAMES
    assert {(each.result, each.reason) for each in results} == {("skipped", "the stack runs without MPI")}


@pytest.mark.parametrize(
    ("library", "version"),
    [
        ("Intel(R) MPI Library 2021.17 for Linux* OS", "2021.17"),
        ("Intel(R) MPI Library 2019 Update 6 for Linux* OS", "2019.6"),
        ("MPICH Version:      4.3.2", "4.3.2"),
        ("MPICH Version:\t4.0.2", "4.0.2"),
        ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4", "4.1.4"),
        ("MPI VERSION    : CRAY MPICH version 8.1.27.26 (ANL base 3.4a2)", "8.1.27.26"),
        ("some library", ""),
    ],
)
def test_versions_of_mpi_libraries(library: str, version: str) -> None:
    assert version_of(library) == version


def test_versions_agree_as_far_as_both_go() -> None:
    assert agree("2021.17", "2021.17.2")
    assert agree("8.1.27.26", "8.1.27")
    assert not agree("2021.16", "2021.17.2")
    assert not agree("2021.1", "2021.17.2")


def test_mpich_says_its_provider_in_its_own_words() -> None:
    text = "==== Capability set configuration ====\nlibfabric provider: tcp;ofi_rxm - 192.168.1.0/24\n"
    assert read_ranks(text.splitlines()).provider == "tcp;ofi_rxm"


@pytest.mark.parametrize(
    ("lines", "provider"),
    [
        # As 4.1.4 and 5.0.7 print them.
        (["[vm:28433] selected ob1 best priority 20", "[vm:28433] select: component ob1 selected"], "tcp"),
        (
            ["[vm:25608] mtl_ofi_component.c:343: mtl:ofi:provider: psm2", "[vm:1] select: component cm selected"],
            "psm2",
        ),
        (
            ["[vm:25694] mtl_ofi_component.c:337: mtl:ofi:prov: verbs;ofi_rxm", "select: component cm selected"],
            "verbs;ofi_rxm",
        ),
        (["[vm:1] mtl_ofi_component.c:337: mtl:ofi:prov: tcp;ofi_rxm", "select: component ucx selected"], "ucx"),
        (["[vm:25694] select: component v not in the include list"], ""),
    ],
)
def test_open_mpi_says_its_component_and_the_provider_below_it(lines: list[str], provider: str) -> None:
    assert read_ranks(lines).provider == provider


def test_ucx_is_as_good_as_the_verbs_that_the_profile_names() -> None:
    from hpcgen.core.model.nodes import Fabric

    plan = plan_for("supermuc")
    fabric = Fabric(kind="infiniband", provider="verbs")
    plan = msgspec.structs.replace(plan, site=msgspec.structs.replace(plan.site, fabric=fabric))
    text = RANKS.replace("libfabric provider: psm2", "select: component ucx selected")
    assert ranks(text, plan=plan)["fabric provider"].result == "passed"
    assert ranks(text.replace("ucx", "ob1"), plan=plan)["fabric provider"].reason.startswith("tcp is used")


# results


def run_of(*results: Result) -> Run:
    return Run(started="2026-11-21T03:00:00Z", site="here", engine="charliecloud", results=list(results), seconds=2.5)


RESULTS = (
    Result(group="python", name="version", result="passed", seconds=0.25, output="Python 3.12 <&> \x1b[31mred\x1b[0m"),
    Result(group="contract", name="ranks", result="failed", seconds=1.0, reason="2 & 3", output="a\x00b\x08\ufffe\nü"),
    Result(group="contract", name="GPU", result="skipped", reason="no device"),
)


def test_junit_counts_and_holds_every_result() -> None:
    root = ElementTree.fromstring(junit_xml(run_of(*RESULTS), "x.sif"))
    assert root.tag == "testsuites"
    assert {key: root.get(key) for key in ("tests", "failures", "errors", "time")} == {
        "tests": "3",
        "failures": "1",
        "errors": "0",
        "time": "2.500",
    }
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == ["python", "contract"]
    contract = suites["contract"]
    assert (contract.get("tests"), contract.get("failures"), contract.get("skipped")) == ("2", "1", "1")
    assert contract.get("timestamp") == "2026-11-21T03:00:00"
    ranks_case, gpu = contract
    assert (ranks_case.get("classname"), ranks_case.get("name"), ranks_case.get("time")) == (
        "here.contract",
        "ranks",
        "1.000",
    )
    failure = ranks_case.find("failure")
    assert failure is not None
    assert failure.get("message") == "2 & 3"
    skipped = gpu.find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "no device"
    assert suites["python"][0].findtext("system-out") == "Python 3.12 <&> red"


def test_junit_leaves_out_what_xml_cannot_hold() -> None:
    text = junit_xml(run_of(*RESULTS), "x\x07.sif")
    root = ElementTree.fromstring(text)
    assert root.get("name") == "x.sif on here by charliecloud"
    assert root.findtext(".//testcase[@name='ranks']/system-out") == "ab\nü"


def test_junit_uses_only_what_the_schema_of_jenkins_has() -> None:
    """junit-10.xsd of jenkinsci/xunit-plugin: elements in elements, and their attributes."""
    children = {
        "testsuites": {"testsuite"},
        "testsuite": {"testcase"},
        "testcase": {"failure", "skipped", "system-out"},
    }
    attributes = {
        "testsuites": {"name", "time", "tests", "failures", "errors"},
        "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
        "testcase": {"name", "classname", "time"},
        "failure": {"type", "message"},
        "skipped": {"type", "message"},
        "system-out": set(),
    }
    for element in ElementTree.fromstring(junit_xml(run_of(*RESULTS), "x.sif")).iter():
        assert set(element.attrib) <= attributes[element.tag]
        assert {child.tag for child in element} <= children.get(element.tag, set())


def test_table_shows_reasons_and_the_end_of_a_failures_output(capsys: pytest.CaptureFixture[str]) -> None:
    import io

    from hpcgen.cli.test_report import report

    many = "\n".join(f"line {number}" for number in range(40)) + "\n\x1b[2Jlast\tone\x07"
    failed = Result(group="contract", name="ranks", result="failed", reason="why", output=many)
    again = replace(failed, name="MPI library")
    text = report(run_of(failed, again, RESULTS[2]), io.StringIO())
    assert "contract  ranks        failed   0.0      why\n" in text
    assert "contract  GPU          skipped           no device\n" in text
    assert "contract: ranks, contract: MPI library (the last 12 of 41 lines)\n" in text
    assert text.count("line 39") == 1
    assert "line 39" in text
    assert "line 20" not in text
    assert "  | last    one\n" in text
    assert text.endswith("0 passed, 2 failed, 1 skipped on here by charliecloud in 2.5 s")


# the command


@pytest.fixture
def folder_image(tmp_path: Path) -> Path:
    """A folder with the record that an image carries, which is all that is read before a start."""
    catalog = default_catalog()
    kit = make_kit(plan_for("supermuc"), catalog)
    place = tmp_path / "image" / "opt" / "hpcgen" / "kit"
    place.mkdir(parents=True)
    (tmp_path / "image" / "ch").mkdir()
    for name, file in kit.files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(file.text)
    return tmp_path / "image"


def test_without_the_engine_one_test_fails_and_nothing_else_is_tried(
    folder_image: Path, hpcgen: Command, tmp_path: Path
) -> None:
    """supermuc loads its modules first; where there are none, that is said too."""
    import shutil

    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "env", "git"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    env = {"PATH": str(tools), "HPCGEN_RECORDS": str(tmp_path / "records")}
    done = hpcgen("test", str(folder_image), "--json", "--junit", str(tmp_path / "report.xml"), env=env)
    assert done.returncode == 9, done.stderr
    (only,) = json.loads(done.stdout)["results"]
    assert (only["name"], only["result"]) == ("engine", "failed")
    assert "ch-run is not on PATH" in only["output"]
    assert "hpcgen: error: contract: engine: ch-run does not start here" in done.stderr
    assert ElementTree.parse(tmp_path / "report.xml").getroot().get("failures") == "1"


def test_an_image_without_a_record_needs_a_machine(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "image" / "ch").mkdir(parents=True)
    done = hpcgen("test", str(tmp_path / "image"))
    assert done.returncode == 3
    assert "the site for" in done.stderr
    assert done.stdout == ""


def test_tcp_on_a_fast_fabric_fails_though_the_profile_names_no_provider() -> None:
    from hpcgen.core.model.nodes import Fabric

    plan = plan_for("supermuc")

    def over(kind: Any, provider: str) -> Any:
        site = msgspec.structs.replace(plan.site, fabric=Fabric(kind=kind))
        text = RANKS.replace("libfabric provider: psm2", f"libfabric provider: {provider}")
        return ranks(text, plan=msgspec.structs.replace(plan, site=site))["fabric provider"]

    assert over("infiniband", "verbs;ofi_rxm").result == over("efa", "efa").result == "passed"
    for provider in ("tcp;ofi_rxm", "sockets"):
        slow = over("infiniband", provider)
        assert slow.result == "failed"
        assert slow.reason == f"{provider} is used, but nodes have infiniband, which verbs or mlx or ucx drives"
    assert over("ethernet", "tcp").result == "skipped"
